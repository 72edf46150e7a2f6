/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#define TRUST_TIME_S 10 /* a record's time that is further from the clock is a replayed one */

/* Suricata's timers run on the clock: packets of last year would end their flows. */
static void
use_time(struct worker *w, Packet *p, uint64_t ns)
{
	int64_t secs = (int64_t)(ns / 1000000000);

	if (llabs(secs - (int64_t)w->now.secs) <= TRUST_TIME_S) {
		p->ts.secs = (uint64_t)secs;
		p->ts.usecs = ns % 1000000000 / 1000;
	}
}

static void
use_checksums(struct worker *w, Packet *p, const struct rte_mbuf *m, uint16_t flags)
{
	if ((flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0) {
		if ((flags & NFMETA_L3_CSUM_BAD) != 0)
			packet_l3_csum_bad(p);
		if ((flags & NFMETA_L4_CSUM_BAD) != 0)
			packet_l4_csum_bad(p);
		w->c.checksum_bad++;
	} else if ((flags & NFMETA_L4_CSUM_GOOD) != 0 &&
		   ((flags & NFMETA_L3_CSUM_GOOD) != 0 || RTE_ETH_IS_IPV6_HDR(m->packet_type))) {
		p->flags |= PKT_IGNORE_CHECKSUM;
		w->c.checksum_good++;
	} else { /* Suricata looks for itself */
		w->c.checksum_unknown++;
	}
}

/* What the upfront NF found out need not be done again. */
static void
use_record(struct worker *w, Packet *p, struct in_hand *h, const struct nfmeta_record *r)
{
	w->c.records++;
	use_checksums(w, p, h->m, r->flags);
	/* An id without a generation is no name. */
	if (r->size >= NFMETA_RECORD_CORE && (r->flags & NFMETA_FLOW_KNOWN) != 0) {
		h->flags = r->flags;
		h->flow_id = r->flow_id;
		h->flow_gen = r->flow_gen;
		if (w->carrier)
			p->BypassPacketsFlow = bypass_packet;
	}
	if (r->size >= NFMETA_RECORD_WIDE)
		h->app_id = r->app_id;
	if (r->size >= NFMETA_RECORD_FULL && r->timestamp != 0)
		use_time(w, p, r->timestamp);
}

/* Tags that are not in the bytes any more; others Suricata finds by itself. */
static void
stripped_tags(Packet *p, const struct rte_mbuf *m)
{
	p->vlan_id[2] = 0; /* Suricata resets two of three */
	if (likely((m->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)) ==
		   0))
		return;
	if ((m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0)
		p->vlan_id[p->vlan_idx++] = m->vlan_tci_outer & 0x0fff;
	p->vlan_id[p->vlan_idx++] = m->vlan_tci & 0x0fff;
}

/* Bytes in one piece are looked at where they are; others are copied. */
static int
set_data(Packet *p, const struct rte_mbuf *m)
{
	uint32_t at = 0;

	if (likely(m->nb_segs == 1))
		return PacketSetData(p, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	SET_PKT_LEN(p, m->pkt_len);
	for (; m != NULL; at += m->data_len, m = m->next)
		if (PacketCopyDataOffset(p, at, rte_pktmbuf_mtod(m, const uint8_t *),
					 m->data_len) != 0)
			return -1;
	return 0;
}

Packet *
packet_make(struct worker *w, struct rte_mbuf *m)
{
	const struct nfmeta_record *r;
	struct in_hand *h;
	Packet *p;

	w->c.packets++;
	w->c.bytes += m->pkt_len;
	w->c.segmented += m->nb_segs > 1;
	if (unlikely(m->pkt_len > MAX_PAYLOAD_SIZE)) {
		w->c.too_big++;
		return NULL;
	}
	p = PacketGetFromQueueOrAlloc();
	if (unlikely(p == NULL || set_data(p, m) != 0)) { /* no memory */
		if (p != NULL)
			PacketFreeOrRelease(p);
		w->c.no_packet++;
		return NULL;
	}
	h = in_hand(p);
	*h = (struct in_hand){.w = w, .m = m};
	p->pkt_src = PKT_SRC_WIRE;
	p->datalink = LINKTYPE_ETHERNET;
	p->livedev = w->device;
	p->ts = w->now;
	stripped_tags(p, m);
	r = w->records ? nfmeta_record_peek(&w->field, m) : NULL;
	if (likely(r != NULL))
		use_record(w, p, h, r);
	else
		w->c.no_record++;
	return p;
}
