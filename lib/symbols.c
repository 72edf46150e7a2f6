/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/* The inline functions of record.h, flow.h and table.h once more, as symbols, for
 * languages that cannot inline.
 */
#define NFMETA_INLINE __attribute__((visibility("default")))

#include <nfmeta/record.h>
#include <nfmeta/flow.h>
#include <nfmeta/table.h>
