/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_SLOT_H
#define NFMETA_SLOT_H

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

#endif
