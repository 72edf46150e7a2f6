/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_tcp.h>

/*
 * Suricata answers "reject" by libnet, through an interface of the kernel, which these
 * packets never saw.  Here the answer is a blank of the link, filled: TCP gets a RST, what
 * is left an ICMP "administratively prohibited" to its source.  BACKWARD goes to the
 * source, FORWARD to the destination.
 */

#define QUOTE_MAX 128 /* bytes of the packet in an ICMP */

/* What is known of the packet that is answered. */
struct bad {
	const uint8_t *l2;
	const struct rte_ipv4_hdr *ip4; /* or */
	const struct rte_ipv6_hdr *ip6;
	const struct rte_tcp_hdr *tcp;
	uint16_t l2_len;
	uint16_t l3_len; /* bytes there are from the IP header on */
	uint32_t seq_len;
	bool dropped; /* its destination does not get it */
};

static bool
look(Packet *p, struct bad *b)
{
	const uint8_t *ip;

	b->ip4 = packet_ipv4(p);
	b->ip6 = packet_ipv6(p);
	b->tcp = packet_tcp(p);
	ip = b->ip4 != NULL ? (const uint8_t *)b->ip4 : (const uint8_t *)b->ip6;
	if (ip == NULL || packet_is_tunnel(p))
		return false;
	b->l2 = GET_PKT_DATA(p);
	if (ip - b->l2 > UINT16_MAX)
		return false;
	b->l2_len = (uint16_t)(ip - b->l2);
	b->l3_len = (uint16_t)RTE_MIN(GET_PKT_LEN(p) - b->l2_len, UINT32_C(0xffff));
	if (b->tcp != NULL)
		b->seq_len = p->payload_len +
			     ((b->tcp->tcp_flags & (RTE_TCP_SYN_FLAG | RTE_TCP_FIN_FLAG)) != 0);
	return b->l2_len >= RTE_ETHER_HDR_LEN;
}

/* Room for len bytes behind the L2 and L3 headers; L2 is filled in. */
static uint8_t *
begin(const struct bad *b, struct rte_mbuf *m, bool back, uint16_t len)
{
	uint16_t ip_len = b->ip4 != NULL ? sizeof(*b->ip4) : sizeof(*b->ip6);
	uint32_t bytes = (uint32_t)b->l2_len + ip_len + len;
	uint8_t *at;

	/* rte_pktmbuf_append() takes 16 bits; hundreds of labels or tags may be in front. */
	if (bytes > rte_pktmbuf_tailroom(m))
		return NULL;
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)bytes);
	memcpy(at, b->l2, b->l2_len); /* tags, too */
	if (back) {
		memcpy(at, b->l2 + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
		memcpy(at + RTE_ETHER_ADDR_LEN, b->l2, RTE_ETHER_ADDR_LEN);
	}
	return at + b->l2_len;
}

static uint8_t *
put_ip4(const struct bad *b, uint8_t *at, bool back, uint8_t proto, uint16_t len)
{
	struct rte_ipv4_hdr *ip = (void *)at;

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons((uint16_t)(sizeof(*ip) + len)),
		.fragment_offset = htons(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = proto,
		.src_addr = back ? b->ip4->dst_addr : b->ip4->src_addr,
		.dst_addr = back ? b->ip4->src_addr : b->ip4->dst_addr,
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return at + sizeof(*ip);
}

static uint8_t *
put_ip6(const struct bad *b, uint8_t *at, bool back, uint8_t proto, uint16_t len)
{
	struct rte_ipv6_hdr *ip = (void *)at;

	memset(ip, 0, sizeof(*ip));
	ip->vtc_flow = htonl(UINT32_C(6) << 28);
	ip->payload_len = htons(len);
	ip->proto = proto;
	ip->hop_limits = 64;
	memcpy(&ip->src_addr, back ? &b->ip6->dst_addr : &b->ip6->src_addr, 16);
	memcpy(&ip->dst_addr, back ? &b->ip6->src_addr : &b->ip6->dst_addr, 16);
	return at + sizeof(*ip);
}

static uint8_t *
put_ip(const struct bad *b, uint8_t *at, bool back, uint8_t proto, uint16_t len)
{
	return b->ip4 != NULL ? put_ip4(b, at, back, proto, len) : put_ip6(b, at, back, proto, len);
}

static bool
fill_rst(const struct bad *b, struct rte_mbuf *m, bool back)
{
	uint8_t *at = begin(b, m, back, sizeof(struct rte_tcp_hdr)), *ip = at;
	struct rte_tcp_hdr *t;

	if (at == NULL)
		return false;
	t = (void *)put_ip(b, at, back, IPPROTO_TCP, sizeof(*t));
	memset(t, 0, sizeof(*t));
	t->data_off = sizeof(*t) / 4 << 4;
	t->tcp_flags = RTE_TCP_RST_FLAG | RTE_TCP_ACK_FLAG;
	/* It counts only if it is exactly what its receiver waits for (RFC 5961). */
	if (back) {
		t->src_port = b->tcp->dst_port;
		t->dst_port = b->tcp->src_port;
		t->sent_seq = b->tcp->recv_ack;
		t->recv_ack = htonl(ntohl(b->tcp->sent_seq) + b->seq_len);
	} else {
		t->src_port = b->tcp->src_port;
		t->dst_port = b->tcp->dst_port;
		t->sent_seq = htonl(ntohl(b->tcp->sent_seq) + (b->dropped ? 0 : b->seq_len));
		t->recv_ack = b->tcp->recv_ack;
	}
	t->cksum = b->ip4 != NULL ? rte_ipv4_udptcp_cksum((void *)ip, t)
				  : rte_ipv6_udptcp_cksum((void *)ip, t);
	return true;
}

/* Never an answer to ICMP, to many, or from nowhere (RFC 1812, 4.3.2.7; RFC 4443, 2.4). */
static bool
may_unreach(const struct bad *b)
{
	static const uint8_t nowhere[16];
	uint32_t dst;

	if (b->ip6 != NULL)
		return b->ip6->proto != IPPROTO_ICMPV6 &&
		       *(const uint8_t *)&b->ip6->dst_addr != 0xff &&
		       memcmp(&b->ip6->src_addr, nowhere, 16) != 0;
	dst = ntohl(b->ip4->dst_addr);
	return b->ip4->next_proto_id != IPPROTO_ICMP && dst < UINT32_C(0xe0000000) &&
	       b->ip4->src_addr != 0 &&
	       (ntohs(b->ip4->fragment_offset) & RTE_IPV4_HDR_OFFSET_MASK) == 0;
}

static bool
fill_unreach(const struct bad *b, struct rte_mbuf *m)
{
	uint16_t quote = RTE_MIN(b->l3_len, QUOTE_MAX), len = sizeof(struct rte_icmp_hdr) + quote;
	uint8_t *at = begin(b, m, true, len), *ip = at;
	struct rte_icmp_hdr *i;

	if (at == NULL)
		return false;
	i = (void *)put_ip(b, at, true, b->ip4 != NULL ? IPPROTO_ICMP : IPPROTO_ICMPV6, len);
	memset(i, 0, sizeof(*i));
	i->icmp_type = b->ip4 != NULL ? 3 : 1;	/* destination unreachable */
	i->icmp_code = b->ip4 != NULL ? 13 : 1; /* administratively prohibited */
	memcpy(i + 1, b->l2 + b->l2_len, quote);
	if (b->ip4 != NULL)
		i->icmp_cksum = (uint16_t)~rte_raw_cksum(i, len);
	else
		i->icmp_cksum = rte_ipv6_udptcp_cksum((void *)ip, i);
	return true;
}

static void
answer(struct worker *w, const struct bad *b, const struct rte_mbuf *of, bool back)
{
	const uint64_t tags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED |
			      RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
	struct rte_mbuf *m;
	bool filled = false;

	if (nfmeta_blank_burst(w->link, &m, 1) == 0) {
		if (w->c.not_injected++ == 0)
			SCLogWarning("queue %u: the link has no blank for the answer to a reject "
				     "rule (splitter --blanks); this is said once",
				     w->queue);
		return;
	}
	if (b->tcp != NULL)
		filled = fill_rst(b, m, back);
	else if (back && may_unreach(b))
		filled = fill_unreach(b, m);
	/* tags that are not in the bytes */
	m->ol_flags |= of->ol_flags & tags;
	m->vlan_tci = of->vlan_tci;
	m->vlan_tci_outer = of->vlan_tci_outer;
	w->c.injected += filled;
	w->c.not_injected += !filled;
	capture_give_back(w, m,
			  NFMETA_INJECTED | (!filled ? NFMETA_DROP
					     : back  ? NFMETA_BACKWARD
						     : NFMETA_FORWARD));
}

void
reject_packet(struct worker *w, Packet *p, const struct rte_mbuf *m)
{
	struct bad b = {.dropped = w->ips && PacketCheckAction(p, ACTION_DROP)};

	if (!look(p, &b)) {
		w->c.not_injected++;
		return;
	}
	if (PacketCheckAction(p, ACTION_REJECT | ACTION_REJECT_BOTH))
		answer(w, &b, m, true);
	if (PacketCheckAction(p, ACTION_REJECT_DST | ACTION_REJECT_BOTH))
		answer(w, &b, m, false);
}
