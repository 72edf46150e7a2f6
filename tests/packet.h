/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TESTS_PACKET_H
#define NFMETA_TESTS_PACKET_H

/*
 * packet.h - mbufs without EAL.  Each segment's bytes are an allocation of
 * their own, exactly as large as they are: sanitizers and valgrind see every
 * byte that is read too far.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

/* What classifying a packet gives. */
struct outcome {
	struct nfmeta_record rec;
	struct nfmeta_flow_key key;
	uint64_t ol_flags;
	uint64_t tx_offload;
	uint32_t packet_type;
};

static inline struct rte_mbuf *
segment_new(const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *m = aligned_alloc(64, sizeof(*m));

	memset(m, 0, sizeof(*m));
	m->buf_addr = malloc(len);
	if (len > 0)
		memcpy(m->buf_addr, bytes, len);
	m->buf_len = m->data_len = (uint16_t)len;
	m->pkt_len = len;
	m->nb_segs = 1;
	m->refcnt = 1;
	m->port = 7;
	return m;
}

/* A packet in n + 1 segments; cuts are offsets, ascending, at most len. */
static inline struct rte_mbuf *
packet_new(const uint8_t *bytes, uint32_t len, const uint32_t *cuts, uint32_t n)
{
	struct rte_mbuf *head = NULL, *m, **next = &head;
	uint32_t i, from = 0, to;

	for (i = 0; i <= n; i++, from = to) {
		to = i < n ? cuts[i] : len;
		m = segment_new(bytes + from, to - from);
		*next = m;
		next = &m->next;
	}
	head->pkt_len = len;
	head->nb_segs = (uint16_t)(n + 1);
	return head;
}

static inline void
packet_free(struct rte_mbuf *m)
{
	struct rte_mbuf *next;

	for (; m != NULL; m = next) {
		next = m->next;
		free(m->buf_addr);
		free(m);
	}
}

static inline struct outcome
packet_classify(struct rte_mbuf *m, uint32_t policy)
{
	struct outcome o;

	memset(&o, 0, sizeof(o));
	memset(&o.rec, 0xee, sizeof(o.rec)); /* classify has to write every byte */
	memset(&o.key, 0xee, sizeof(o.key));
	nfmeta_classify_burst(policy, &m, 1, &o.rec, &o.key);
	o.ol_flags = m->ol_flags;
	o.tx_offload = m->tx_offload;
	o.packet_type = m->packet_type;
	return o;
}

static inline int
outcome_same(const struct outcome *a, const struct outcome *b)
{
	return memcmp(&a->rec, &b->rec, sizeof(a->rec)) == 0 &&
	       memcmp(&a->key, &b->key, sizeof(a->key)) == 0 && a->ol_flags == b->ol_flags &&
	       a->tx_offload == b->tx_offload && a->packet_type == b->packet_type;
}

/* NULL, or what cannot be true of any packet of this length but is of o. */
static inline const char *
outcome_wrong(const struct outcome *o, uint32_t len)
{
	const struct nfmeta_record *r = &o->rec;
	const struct nfmeta_flow_key *k = &o->key;
	static const struct nfmeta_flow_key none;
	uint16_t f = r->flags;

#define WRONG_IF(c)                                                                                \
	do {                                                                                       \
		if (c)                                                                             \
			return #c;                                                                 \
	} while (0)
	WRONG_IF(r->abi != NFMETA_ABI_MAJOR || r->size != NFMETA_RECORD_FULL);
	WRONG_IF(f & ~NFMETA_FLAGS_ALL);
	WRONG_IF(f & (NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW));
	WRONG_IF((f & NFMETA_L3_VALID) && !(f & NFMETA_L2_VALID));
	WRONG_IF((f & NFMETA_L4_VALID) && !(f & NFMETA_L3_VALID));
	WRONG_IF((f & NFMETA_L3_CSUM_MASK) == NFMETA_L3_CSUM_MASK);
	WRONG_IF((f & NFMETA_L4_CSUM_MASK) == NFMETA_L4_CSUM_MASK);
	WRONG_IF((f & NFMETA_FRAG_MASK) == NFMETA_FRAG_MASK);
	WRONG_IF((f & NFMETA_L3_CSUM_MASK) && k->ip_version != 4);
	WRONG_IF((f & NFMETA_L4_CSUM_MASK) && !(f & NFMETA_L4_VALID));
	WRONG_IF((f & NFMETA_L4_CSUM_MASK) && (f & NFMETA_FRAG_MASK));
	WRONG_IF((f & NFMETA_L4_VALID) && r->payload_off == NFMETA_OFF_NONE);
	WRONG_IF((f & NFMETA_FRAG_LATER) && r->l4_off != NFMETA_OFF_NONE);
	WRONG_IF((r->l3_off == NFMETA_OFF_NONE) != (k->ip_version == 0));
	WRONG_IF(r->l3_off != NFMETA_OFF_NONE && !(f & NFMETA_L2_VALID));
	WRONG_IF(r->l3_off != NFMETA_OFF_NONE && r->l3_off + 20u > len);
	WRONG_IF(r->l4_off != NFMETA_OFF_NONE && r->l4_off + 4u > len);
	WRONG_IF(r->l4_off != NFMETA_OFF_NONE && r->l4_off < r->l3_off + 20u);
	WRONG_IF(r->payload_off != NFMETA_OFF_NONE && r->payload_off > len);
	WRONG_IF(r->payload_off != NFMETA_OFF_NONE && r->payload_off < r->l4_off + 4u);
	WRONG_IF(k->ip_version == 0 && memcmp(k, &none, sizeof(none)) != 0);
	WRONG_IF(k->ip_version != 0 && k->ip_version != 4 && k->ip_version != 6);
	WRONG_IF(k->fragment != ((f & NFMETA_FRAG_LATER) != 0));
	WRONG_IF(memcmp(k->addr_a, k->addr_b, 16) > 0);
	WRONG_IF(memcmp(k->addr_a, k->addr_b, 16) == 0 && memcmp(k->port_a, k->port_b, 2) > 0);
	WRONG_IF(r->l4_off == NFMETA_OFF_NONE && memcmp(k->port_a, "\0\0\0\0", 4) != 0);
	WRONG_IF(r->vlan_count > 8);
	WRONG_IF(k->reserved != 0 || memcmp(k->tenant, "\0\0\0\0", 4) != 0);
#undef WRONG_IF
	return NULL;
}

#endif
