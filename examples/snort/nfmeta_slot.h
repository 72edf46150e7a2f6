/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_SLOT_H
#define NFMETA_SLOT_H

#include <stdint.h>

/*
 * For plug-ins of Snort 3 that want more than Snort itself takes: what is in this slot
 * of a message (daq_msg_get_meta) is
 *
 *   of a packet           const struct nfmeta_record *, whole; NULL: there is none
 *   of a flow's SOF, EOF  const struct nfmeta_flow_delete *: its id, generation, and why
 *
 * as in nfmeta/abi.h, valid as long as the message.
 */
#define NFMETA_DAQ_SLOT 7

/*
 * Of a packet whose flow is known by id, in this slot is
 *
 *   struct nfmeta_daq_near[NFMETA_DAQ_NEAR], the flow's; all 0 at its first packet
 *
 * A plug-in may write there where what Snort has of the flow lies. The module has that
 * fetched into the cache before each of the flow's later packets, and uses it for nothing
 * else: an address that is not good any more does no harm.
 */
#define NFMETA_DAQ_NEAR_SLOT 6
#define NFMETA_DAQ_NEAR 4

struct nfmeta_daq_near {
	const void *at;
	uint64_t bytes;
};

#endif
