/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_INTERNAL_H
#define NFMETA_INTERNAL_H

/* What the rooms of lib/ share. */

#include <nfmeta/nfmeta.h>

/*
 * Set this thread's error sentence and return -code.  One line, no newline at
 * the end, both sides' values, what to do.
 */
__attribute__((format(printf, 2, 3))) int nfmeta__fail(int code, const char *fmt, ...);

#endif
