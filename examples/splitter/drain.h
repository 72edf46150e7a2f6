/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_DRAIN_H
#define EXAMPLES_SPLITTER_DRAIN_H

/*
 * A message type of the examples' own: an NF tells the splitter that it wants no more new
 * sessions (it is to end soon), or does again.  One entry; holds for this attach of the NF.
 * A splitter that does not know it skips it, as all types from NFMETA_MSG_OWN on.
 */

#include <stdint.h>

#include <nfmeta/abi.h>

#define DRAIN_MSG NFMETA_MSG_OWN

struct drain_entry {
	uint32_t drains; /* 1: no more; 0: as before */
	uint32_t reserved;
};

#endif
