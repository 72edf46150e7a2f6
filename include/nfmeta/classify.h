/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_CLASSIFY_H
#define NFMETA_CLASSIFY_H

/*
 * classify.h - one pass over a packet: what is it, is it whole, are its
 * checksums right, which flow does it belong to.
 *
 * Understood: Ethernet; any stack of up to 8 tags (0x8100, 0x88a8, 0x9100), in
 * the bytes or stripped into the mbuf; IPv4 with options; IPv6 with at most 16
 * extension headers (hop-by-hop, routing, destination options, fragment, AH,
 * mobility, HIP, shim6); TCP, UDP, SCTP, ICMP, ICMPv6.  Tunnels are recognised
 * (NFMETA_TUNNEL_OUTER), not entered.  What each flag promises is normative in
 * bindings-spec/README.md.
 *
 * Classify needs no rte_eal_init: it is a pure function of the mbuf.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include <nfmeta/abi.h>
#include <nfmeta/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The VLAN ids are part of the flow key: one 5-tuple on two VLANs is two flows. */
#define NFMETA_CLASSIFY_VLAN_IN_KEY 0x0001
/** Compute L4 checksums that the NIC has not judged (costs a pass over the payload). */
#define NFMETA_CLASSIFY_L4_CSUM 0x0002
/** What most upfront NFs want. */
#define NFMETA_CLASSIFY_DEFAULT (NFMETA_CLASSIFY_VLAN_IN_KEY | NFMETA_CLASSIFY_L4_CSUM)

/**
 * Classify a burst.
 *
 * Fills for every packet a whole record (NFMETA_RECORD_FULL; flow, app id,
 * action, tenant and user fields are the caller's to add, timestamp is 0) and
 * a canonical flow key.  Before a flow is known, NFMETA_FLOW_REVERSE in the
 * record says that the packet's source is end b of the key; whoever owns the
 * flows replaces it with nfmeta_record_set_flow().
 *
 * Also fills what DPDK has a place for: mbuf packet_type, l2_len, l3_len,
 * l4_len (0 where not known; l3_len, and l4_len with it, also where it does not
 * fit), and the rx checksum flags where they said "unknown".  A checksum the NIC
 * has judged is not computed again, except: ICMP, which NICs do not know; and
 * tunnels, where only RTE_MBUF_F_RX_OUTER_* are about the headers described
 * here, and where the rx checksum flags stay as they are.
 *
 * Stamping is a step of its own (nfmeta_record_set_burst), after the caller has
 * added what it knows.
 *
 * @param policy  NFMETA_CLASSIFY_* bits; others are ignored
 * @param pkts    n packets
 * @param n       how many
 * @param recs    n records, out
 * @param keys    n keys, out; ip_version 0 where the packet is not IP or its
 *                IP header cannot be read.  NULL: not wanted
 *
 * Packets of any number of segments; bytes behind pkt_len are never read.
 * Whoever holds the mbufs, any process.  Since 0.1.
 */
NFMETA_API void nfmeta_classify_burst(uint32_t policy, struct rte_mbuf *const *pkts, uint16_t n,
				      struct nfmeta_record *recs, struct nfmeta_flow_key *keys);

#ifdef __cplusplus
}
#endif
#endif
