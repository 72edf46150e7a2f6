/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef HIDDEN_H
#define HIDDEN_H

/*
 * For targets of functions that are hidden in the library: they are built from its
 * sources, see CMakeLists.txt.
 */

#include "../../lib/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(so)                                                                                   \
	do {                                                                                       \
		if (!(so)) {                                                                       \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #so);           \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Bytes of an entry of a known type. */
static inline uint32_t
natural(uint8_t type)
{
	switch (type) {
	case NFMETA_MSG_NEW:
	case NFMETA_MSG_UPDATE:
	case NFMETA_MSG_SNAPSHOT:
		return sizeof(struct nfmeta_flow_state);
	case NFMETA_MSG_COUNTERS:
		return sizeof(struct nfmeta_flow_counters);
	case NFMETA_MSG_VERDICT:
		return sizeof(struct nfmeta_flow_verdict);
	case NFMETA_MSG_LOAD:
		return sizeof(struct nfmeta_flow_load);
	default:
		return 8;
	}
}

#endif
