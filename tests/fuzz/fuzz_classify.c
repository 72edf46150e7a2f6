/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * libFuzzer target: any bytes, in any segments, with any flags of a NIC.
 *
 *     byte 0     policy (2 bits), NIC flags (6 bits, see nic[])
 *     byte 1     checksum verdicts: IP, L4, outer L4 (2 bits each), outer IP (1 bit)
 *     bytes 2-3  vlan_tci
 *     bytes 4-5  vlan_tci_outer
 *     byte 6     cuts into segments (0 to 3)
 *     bytes 7-9  where, in 1/256 of the packet
 *     the rest   the packet
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../packet.h"

#define HEAD 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static struct rte_mbuf *
make(const uint8_t *head, const uint8_t *packet, uint32_t len, const uint32_t *cuts, uint32_t n)
{
	static const uint64_t nic[6] = {
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED,
		RTE_MBUF_F_RX_LRO,
		RTE_MBUF_F_RX_QINQ,
		RTE_MBUF_F_RX_RSS_HASH,
		RTE_MBUF_F_RX_FDIR,
	};
	static const uint64_t ip[4] = {RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
				       RTE_MBUF_F_RX_IP_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_NONE};
	static const uint64_t l4[4] = {RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, RTE_MBUF_F_RX_L4_CKSUM_GOOD,
				       RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_L4_CKSUM_NONE};
	static const uint64_t outer[4] = {
		RTE_MBUF_F_RX_OUTER_L4_CKSUM_UNKNOWN, RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD,
		RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD, RTE_MBUF_F_RX_OUTER_L4_CKSUM_INVALID};
	struct rte_mbuf *m = packet_new(packet, len, cuts, n);
	int i;

	for (i = 0; i < 6; i++)
		if (head[0] >> 2 & 1 << i)
			m->ol_flags |= nic[i];
	m->ol_flags |= ip[head[1] & 3] | l4[head[1] >> 2 & 3] | outer[head[1] >> 4 & 3];
	if (head[1] & 0x40)
		m->ol_flags |= RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD;
	m->vlan_tci = (uint16_t)(head[2] << 8 | head[3]);
	m->vlan_tci_outer = (uint16_t)(head[4] << 8 | head[5]);
	m->tx_offload = ~UINT64_C(0);
	return m;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t len, policy, cuts[3], n, i, cut;
	struct outcome one, two, three;
	const uint8_t *packet;
	struct rte_mbuf *m;
	const char *wrong;

	if (size < HEAD || size - HEAD > UINT16_MAX)
		return 0;
	packet = data + HEAD;
	len = (uint32_t)size - HEAD;
	policy = data[0] & 3;
	n = data[6] & 3;
	for (i = 0; i < n; i++) {
		cuts[i] = data[7 + i] * len / 256;
		if (i > 0 && cuts[i] < cuts[i - 1])
			cuts[i] = cuts[i - 1];
	}

	m = make(data, packet, len, NULL, 0);
	one = packet_classify(m, policy);
	wrong = outcome_wrong(&one, len);
	must(wrong == NULL, wrong);
	must(one.tx_offload >> 24 == ~UINT64_C(0) >> 24, "more than header lengths was touched");
	two = packet_classify(m, policy);
	must(outcome_same(&one, &two), "the second time it is another");
	packet_free(m);

	m = make(data, packet, len, cuts, n);
	three = packet_classify(m, policy);
	must(outcome_same(&one, &three), "in segments it is another");
	packet_free(m);

	/* what is there of a cut packet is as it is in the whole one */
	cut = len * data[9] / 256;
	m = make(data, packet, cut, NULL, 0);
	two = packet_classify(m, policy);
	packet_free(m);
	wrong = outcome_wrong(&two, cut);
	must(wrong == NULL, wrong);
	if (two.rec.l4_off != NFMETA_OFF_NONE) {
		must(two.rec.l4_off == one.rec.l4_off, "cut, L4 is elsewhere");
		must(cut < two.rec.l4_off + 6u || memcmp(&one.key, &two.key, sizeof(one.key)) == 0,
		     "cut, it is another flow");
	}
	return 0;
}
