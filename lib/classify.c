/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_geneve.h>
#include <rte_gtp.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_sctp.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <rte_vxlan.h>

#include "internal.h"

#define TAGS_MAX 8	  /* VLAN tags, stripped ones too */
#define EXTENSIONS_MAX 16 /* IPv6 extension headers; RFC 8200 knows seven places */
#define AHEAD 4		  /* packets that are prefetched */

/* IP protocols that <netinet/in.h> lacks or hides. */
#define PROTO_HIP 139
#define PROTO_SHIM6 140

struct pkt {
	struct rte_mbuf *m;
	struct nfmeta_record *r;
	const uint8_t *l3;   /* IP header, if version != 0 */
	const uint8_t *addr; /* source address, destination address behind it */
	const uint8_t *l4;   /* as much of the L4 header as there is, if r->l4_off */
	uint32_t off;	     /* of the header to be read next */
	uint32_t end;	     /* of the datagram; behind it there is Ethernet padding */
	uint32_t ptype;
	uint32_t l2_len;
	uint32_t l3_len;
	uint32_t l4_len;
	uint16_t flags;
	uint8_t version;
	uint8_t proto;
	uint8_t detour;	    /* L4 checksum is for other addresses than the header's */
	uint8_t ports[4];   /* as in the key, source first */
	uint8_t l2_buf[14]; /* for headers that straddle segments */
	uint8_t l3_buf[60];
	uint8_t l4_buf[20];
};

/* len bytes of the packet at off, in place if they lie together, or NULL. */
static inline const uint8_t *
bytes_at(const struct pkt *p, uint32_t off, uint32_t len, void *buf)
{
	if (unlikely(off + len > p->m->pkt_len))
		return NULL;
	return rte_pktmbuf_read(p->m, off, len, buf);
}

static inline uint16_t
be16(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

/* ---- Checksums ------------------------------------------------------------- */

/* The bytes at *off that lie together, at most len; *m and *off move behind them. */
static inline const uint8_t *
piece(const struct rte_mbuf **m, uint32_t *off, uint32_t len, uint32_t *n)
{
	const uint8_t *b;

	while (*off >= (*m)->data_len) {
		*off -= (*m)->data_len;
		*m = (*m)->next;
	}
	*n = RTE_MIN(len, (*m)->data_len - *off);
	b = rte_pktmbuf_mtod_offset(*m, const uint8_t *, *off);
	*off += *n;
	return b;
}

static inline uint16_t
fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* As rte_raw_cksum(), not folded; two to five times as fast on whole packets. */
static uint64_t
sum_bytes(const uint8_t *b, uint32_t n)
{
	uint64_t low = 0, high = 0, w;

	for (; n >= 8; n -= 8, b += 8) {
		memcpy(&w, b, 8);
		low += (uint32_t)w;
		high += w >> 32;
	}
	w = 0;
	memcpy(&w, b, n);
	return low + high + (uint32_t)w + (w >> 32);
}

/*
 * Internet checksum over segments, in memory byte order, not complemented.
 * rte_raw_cksum_mbuf() drops carries when a segment starts at an odd offset
 * (DPDK 22.11: it cuts the sum to 16 bits before it swaps it).
 */
static uint64_t
sum_mbuf(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	uint32_t n, done;
	const uint8_t *b;
	uint64_t sum = 0, s;

	for (done = 0; done < len; done += n) {
		b = piece(&m, &off, len - done, &n);
		s = sum_bytes(b, n);
		sum += done & 1 ? rte_bswap16(fold(s)) : s;
	}
	return sum;
}

/* CRC-32C.  librte_hash has one, but brings a tailq that the primary may lack. */
static uint32_t
crc32c(uint32_t crc, const uint8_t *b, uint32_t n)
{
#if defined(__SSE4_2__) && defined(__x86_64__)
	uint64_t wide = crc, w;

	for (; n >= 8; n -= 8, b += 8) {
		memcpy(&w, b, 8);
		wide = __builtin_ia32_crc32di(wide, w);
	}
	for (crc = (uint32_t)wide; n > 0; n--)
		crc = __builtin_ia32_crc32qi(crc, *b++);
#else
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (; n > 0; n--) {
		crc ^= *b++;
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
#endif
	return crc;
}

static int
sctp_sum_good(const struct pkt *p)
{
	static const uint8_t zero[4];
	const struct rte_mbuf *m = p->m;
	uint32_t crc, n, off = p->off + 12, left = p->end - off;
	const uint8_t *b;
	rte_le32_t stored;

	memcpy(&stored, p->l4 + 8, 4);
	crc = crc32c(0xffffffff, p->l4, 8);
	crc = crc32c(crc, zero, 4); /* in place of the checksum */
	for (; left > 0; left -= n) {
		b = piece(&m, &off, left, &n);
		crc = crc32c(crc, b, n);
	}
	return rte_cpu_to_le_32(~crc) == stored;
}

/*
 * DPDK's verify functions take the length from the IP header: wrong for
 * UDP that is shorter than its datagram and for IPv6 with extension headers.
 */
static int
l4_sum_good(const struct pkt *p)
{
	uint32_t len = p->end - p->off;
	uint64_t sum = 0;

	if (p->proto == IPPROTO_SCTP)
		return sctp_sum_good(p);
	if (p->proto == IPPROTO_UDP)
		len = be16(p->l4 + 4);
	if (p->proto != IPPROTO_ICMP)
		sum = (uint64_t)rte_raw_cksum(p->addr, p->version == 4 ? 8 : 32) +
		      rte_cpu_to_be_16(p->proto) + rte_cpu_to_be_16((uint16_t)len);
	return fold(sum + sum_mbuf(p->m, p->off, len)) == 0xffff;
}

static void
judge_l3(struct pkt *p)
{
	const uint64_t mask = RTE_MBUF_F_RX_IP_CKSUM_MASK;
	int tunnel = p->flags & NFMETA_TUNNEL_OUTER, good;
	uint64_t nic = p->m->ol_flags & mask;

	if (p->version != 4 || p->l3_len == 0)
		return;
	if (tunnel) /* then the NIC's verdict may be about the inner header */
		nic = p->m->ol_flags & RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD
			      ? RTE_MBUF_F_RX_IP_CKSUM_BAD
			      : RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN;
	good = nic != RTE_MBUF_F_RX_IP_CKSUM_BAD;
	if (nic == RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN) {
		good = rte_raw_cksum(p->l3, p->l3_len) == 0xffff;
		if (!tunnel)
			p->m->ol_flags |=
				good ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
	}
	p->flags |= good ? NFMETA_L3_CSUM_GOOD : NFMETA_L3_CSUM_BAD;
}

static void
judge_l4(struct pkt *p, uint32_t policy)
{
	const uint64_t mask = RTE_MBUF_F_RX_L4_CKSUM_MASK, ol = p->m->ol_flags;
	int tunnel = p->flags & NFMETA_TUNNEL_OUTER, good;
	uint64_t nic = ol & mask;

	if (!(p->flags & NFMETA_L4_VALID) || (p->flags & NFMETA_FRAG_MASK) || p->detour)
		return;
	if (tunnel) {
		nic = RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN;
		if ((ol & RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK) == RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD)
			nic = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		if ((ol & RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK) == RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD)
			nic = RTE_MBUF_F_RX_L4_CKSUM_BAD;
	}
	if (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6)
		nic = RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN; /* NICs only mean TCP, UDP, SCTP */
	if (p->proto == IPPROTO_UDP && be16(p->l4 + 6) == 0) {
		/* absent: allowed in IPv4, and by RFC 6935 for tunnels in IPv6 */
		if (p->version == 4 || tunnel)
			return;
		good = 0;
	} else if (nic == RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN) {
		/* packets that were put together keep the checksum of one of them */
		if (!(policy & NFMETA_CLASSIFY_L4_CSUM) || (ol & RTE_MBUF_F_RX_LRO))
			return;
		good = l4_sum_good(p);
	} else {
		good = nic != RTE_MBUF_F_RX_L4_CKSUM_BAD;
	}
	if ((ol & mask) == RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN && !tunnel)
		p->m->ol_flags |= good ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : RTE_MBUF_F_RX_L4_CKSUM_BAD;
	p->flags |= good ? NFMETA_L4_CSUM_GOOD : NFMETA_L4_CSUM_BAD;
}

/* ---- Headers ---------------------------------------------------------------- */

static inline int
is_tag(uint16_t ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100;
}

static inline void
add_tag(struct nfmeta_record *r, uint16_t tci)
{
	if (r->vlan_count == 0)
		r->vlan_outer = tci;
	else if (r->vlan_count == 1)
		r->vlan_inner = tci;
	r->vlan_count++;
}

/* Returns the EtherType behind all tags, or 0 if they are not whole. */
static uint16_t
parse_l2(struct pkt *p)
{
	const uint8_t *h = bytes_at(p, 0, 14, p->l2_buf);
	unsigned int in_data = 0;
	uint16_t ethertype;

	if (p->m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED)
		add_tag(p->r, p->m->vlan_tci_outer);
	if (p->m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		add_tag(p->r, p->m->vlan_tci);
	if (h == NULL)
		return 0;
	ethertype = be16(h + 12);
	p->off = 14;
	while (unlikely(is_tag(ethertype))) {
		h = bytes_at(p, p->off, 4, p->l2_buf);
		if (h == NULL || p->r->vlan_count == TAGS_MAX)
			return 0;
		add_tag(p->r, be16(h));
		ethertype = be16(h + 2);
		p->off += 4;
		in_data++;
	}
	p->flags |= NFMETA_L2_VALID;
	p->l2_len = p->off;
	p->ptype = in_data == 0	  ? RTE_PTYPE_L2_ETHER
		   : in_data == 1 ? RTE_PTYPE_L2_ETHER_VLAN
				  : RTE_PTYPE_L2_ETHER_QINQ;
	return ethertype;
}

/* With a source route the checksum is for its last address, not for the header's. */
static int
has_source_route(const uint8_t *opt, uint32_t len)
{
	uint32_t i = 0;

	while (i < len && opt[i] != RTE_IPV4_HDR_OPT_EOL) {
		if (opt[i] == 131 || opt[i] == 137)
			return 1;
		if (opt[i] == RTE_IPV4_HDR_OPT_NOP)
			i++;
		else if (i + 1 < len && opt[i + 1] >= 2)
			i += opt[i + 1];
		else
			break;
	}
	return 0;
}

/* parse_ipv4, parse_ipv6: nonzero if an L4 header may follow at p->off. */
static int
parse_ipv4(struct pkt *p)
{
	const uint8_t *h = bytes_at(p, p->off, sizeof(struct rte_ipv4_hdr), p->l3_buf);
	uint32_t len, total, there = p->m->pkt_len - p->off;
	uint16_t frag;

	if (h == NULL || h[0] >> 4 != 4 || (h[0] & 15) < RTE_IPV4_MIN_IHL)
		return 0;
	p->l3 = h;
	p->addr = h + 12;
	p->version = 4;
	p->proto = h[9];
	p->r->l3_off = (uint16_t)p->off;
	len = (h[0] & 15) * 4u;
	total = be16(h + 2);
	frag = be16(h + 6);
	p->ptype |= len == sizeof(struct rte_ipv4_hdr) ? RTE_PTYPE_L3_IPV4 : RTE_PTYPE_L3_IPV4_EXT;
	if (frag & RTE_IPV4_HDR_OFFSET_MASK)
		p->flags |= NFMETA_FRAG_LATER;
	else if (frag & RTE_IPV4_HDR_MF_FLAG)
		p->flags |= NFMETA_FRAG_FIRST;
	if (len > there)
		return 0;
	if (len > sizeof(struct rte_ipv4_hdr)) {
		p->l3 = bytes_at(p, p->off, len, p->l3_buf);
		p->addr = p->l3 + 12;
		p->detour = (uint8_t)has_source_route(p->l3 + 20, len - 20);
	}
	if (likely(total >= len && total <= there))
		p->flags |= NFMETA_L3_VALID;
	if (total == 0) /* captures of packets that were still to be cut by the NIC */
		total = there;
	p->end = p->off + RTE_MIN(RTE_MAX(total, len), there);
	p->off += len;
	p->l3_len = len;
	return !(p->flags & NFMETA_FRAG_LATER);
}

/* RFC 6275: the checksum is for the home address, not for the header's source. */
static int
has_home_address(const struct pkt *p, uint32_t at, uint32_t end)
{
	const uint8_t *opt;
	uint8_t buf[2];

	while (at + 2 <= end) {
		opt = bytes_at(p, at, 2, buf);
		if (opt[0] == 0xc9)
			return 1;
		at += opt[0] == 0 ? 1 : 2u + opt[1]; /* Pad1 has no length */
	}
	return 0;
}

static int
parse_ipv6(struct pkt *p)
{
	const uint8_t *h = bytes_at(p, p->off, sizeof(struct rte_ipv6_hdr), p->l3_buf);
	uint32_t start = p->off, total, len, n;
	uint8_t buf[8];

	if (h == NULL || h[0] >> 4 != 6)
		return 0;
	p->l3 = h;
	p->addr = h + 8;
	p->version = 6;
	p->proto = h[6];
	p->r->l3_off = (uint16_t)p->off;
	p->ptype |= RTE_PTYPE_L3_IPV6;
	p->off += sizeof(struct rte_ipv6_hdr);
	total = be16(h + 4);
	p->end = p->off + total;
	if (total == 0 && p->proto != IPPROTO_NONE) /* a jumbogram, or as in IPv4 */
		p->end = p->m->pkt_len;
	else if (likely(p->end <= p->m->pkt_len))
		p->flags |= NFMETA_L3_VALID;
	else
		p->end = p->m->pkt_len;

	for (n = 0;; n++) {
		switch (p->proto) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
		case IPPROTO_FRAGMENT:
		case IPPROTO_AH:
		case IPPROTO_MH:
		case PROTO_HIP:
		case PROTO_SHIM6:
			break;
		default:
			p->l3_len = p->off - start;
			return 1;
		}
		p->ptype |= RTE_PTYPE_L3_IPV6_EXT;
		if (n == EXTENSIONS_MAX || p->end - p->off < sizeof(buf))
			break;
		h = bytes_at(p, p->off, sizeof(buf), buf);
		len = p->proto == IPPROTO_FRAGMENT ? 8
		      : p->proto == IPPROTO_AH	   ? (h[1] + 2) * 4u
						   : (h[1] + 1) * 8u;
		if (len > p->end - p->off)
			break;
		if (p->proto == IPPROTO_FRAGMENT && (be16(h + 2) & RTE_IPV6_FRAG_USED_MASK))
			p->flags |= be16(h + 2) & RTE_IPV6_EHDR_FO_MASK ? NFMETA_FRAG_LATER
									: NFMETA_FRAG_FIRST;
		/* segments left, or another home */
		if ((p->proto == IPPROTO_ROUTING && h[3] != 0) ||
		    (p->proto == IPPROTO_DSTOPTS && has_home_address(p, p->off + 2, p->off + len)))
			p->detour = 1;
		p->proto = h[0];
		p->off += len;
		if (p->flags & NFMETA_FRAG_LATER) {
			p->flags &= (uint16_t)~NFMETA_FRAG_FIRST;
			p->l3_len = p->off - start;
			return 0;
		}
	}
	p->flags &= (uint16_t)~NFMETA_L3_VALID; /* the chain is cut */
	return 0;
}

static void
parse_tunnel(struct pkt *p)
{
	uint16_t dst;

	if (p->proto == IPPROTO_GRE) {
		p->ptype |= RTE_PTYPE_TUNNEL_GRE;
	} else if (p->proto == IPPROTO_IPIP || p->proto == IPPROTO_IPV6) {
		p->ptype |= RTE_PTYPE_TUNNEL_IP;
	} else if (p->proto == IPPROTO_UDP && p->r->l4_off != NFMETA_OFF_NONE) {
		dst = be16(p->ports + 2);
		if (dst == RTE_VXLAN_DEFAULT_PORT)
			p->ptype |= RTE_PTYPE_TUNNEL_VXLAN;
		else if (dst == RTE_GENEVE_DEFAULT_PORT)
			p->ptype |= RTE_PTYPE_TUNNEL_GENEVE;
		else if (dst == RTE_GTPU_UDP_PORT)
			p->ptype |= RTE_PTYPE_TUNNEL_GTPU;
	}
	if (p->ptype & RTE_PTYPE_TUNNEL_MASK)
		p->flags |= NFMETA_TUNNEL_OUTER;
}

static inline int
is_echo(const struct pkt *p)
{
	/* Numbers: DPDK's names for those of ICMP are others since 24.11. */
	return p->version == 4 ? p->l4[0] == 8 || p->l4[0] == 0
			       : p->l4[0] == 128 || p->l4[0] == 129;
}

static void
parse_l4(struct pkt *p)
{
	uint32_t room = p->end - p->off, len, type;
	int fits = 1;

	if (p->proto == IPPROTO_TCP) {
		len = sizeof(struct rte_tcp_hdr);
		type = RTE_PTYPE_L4_TCP;
	} else if (p->proto == IPPROTO_UDP) {
		len = sizeof(struct rte_udp_hdr);
		type = RTE_PTYPE_L4_UDP;
	} else if (p->proto == IPPROTO_SCTP) {
		len = sizeof(struct rte_sctp_hdr);
		type = RTE_PTYPE_L4_SCTP;
	} else if (p->proto == IPPROTO_ICMP && p->version == 4) {
		len = sizeof(struct rte_icmp_hdr);
		type = RTE_PTYPE_L4_ICMP;
	} else if (p->proto == IPPROTO_ICMPV6 && p->version == 6) {
		len = 4; /* RFC 4443: what follows is the body; RFC 4286 has messages without */
		type = RTE_PTYPE_L4_ICMP;
	} else {
		p->ptype |= RTE_PTYPE_L4_NONFRAG;
		return;
	}
	if (room < 4)
		return;
	p->l4 = bytes_at(p, p->off, RTE_MIN(room, sizeof(p->l4_buf)), p->l4_buf);
	p->ptype |= type;
	p->r->l4_off = (uint16_t)p->off;
	if (type != RTE_PTYPE_L4_ICMP) {
		memcpy(p->ports, p->l4, 4);
	} else if (room >= 6 && is_echo(p)) {
		memcpy(p->ports, p->l4 + 4, 2);
		memcpy(p->ports + 2, p->l4 + 4, 2);
	}
	if (room < len)
		return;
	if (p->proto == IPPROTO_TCP) {
		len = (p->l4[12] >> 4) * 4u;
		if (len < sizeof(struct rte_tcp_hdr) || len > room)
			return;
	} else if (p->proto == IPPROTO_UDP) {
		/* a first fragment has the length of the whole datagram */
		fits = be16(p->l4 + 4) >= len &&
		       (be16(p->l4 + 4) <= room || (p->flags & NFMETA_FRAG_FIRST));
	}
	p->l4_len = len;
	p->r->payload_off = (uint16_t)(p->off + len);
	if (fits && (p->flags & NFMETA_L3_VALID))
		p->flags |= NFMETA_L4_VALID;
}

/* ---- Results ---------------------------------------------------------------- */

static inline int
compare(const void *a, const void *b, size_t len)
{
	uint64_t x = 0, y = 0;

	memcpy(&x, a, len);
	memcpy(&y, b, len);
	x = rte_be_to_cpu_64(x);
	y = rte_be_to_cpu_64(y);
	return (x > y) - (x < y);
}

static inline int
source_is_higher(const struct pkt *p)
{
	int order;

	if (p->version == 4) {
		order = compare(p->addr, p->addr + 4, 4);
	} else {
		order = compare(p->addr, p->addr + 16, 8);
		if (order == 0)
			order = compare(p->addr + 8, p->addr + 24, 8);
	}
	return (order != 0 ? order : compare(p->ports, p->ports + 2, 2)) > 0;
}

static inline void
make_key(const struct pkt *p, uint32_t policy, int swap, struct nfmeta_flow_key *k)
{
	const struct nfmeta_record *r = p->r;
	uint8_t *src = swap ? k->addr_b : k->addr_a, *dst = swap ? k->addr_a : k->addr_b;

	memset(k, 0, sizeof(*k));
	if (p->version == 4) {
		memcpy(src, p->addr, 4);
		memcpy(dst, p->addr + 4, 4);
	} else {
		memcpy(src, p->addr, 16);
		memcpy(dst, p->addr + 16, 16);
	}
	memcpy(swap ? k->port_b : k->port_a, p->ports, 2);
	memcpy(swap ? k->port_a : k->port_b, p->ports + 2, 2);
	if (policy & NFMETA_CLASSIFY_VLAN_IN_KEY) {
		k->vlan[0][0] = r->vlan_outer >> 8 & 0x0f;
		k->vlan[0][1] = (uint8_t)r->vlan_outer;
		k->vlan[1][0] = r->vlan_inner >> 8 & 0x0f;
		k->vlan[1][1] = (uint8_t)r->vlan_inner;
	}
	k->proto = p->proto;
	k->ip_version = p->version;
	k->fragment = (p->flags & NFMETA_FRAG_LATER) != 0;
}

static void
fill_mbuf(const struct pkt *p)
{
	uint32_t l3_len = p->l3_len < 1u << RTE_MBUF_L3_LEN_BITS ? p->l3_len : 0;

	p->m->packet_type = p->ptype;
	p->m->l2_len = p->l2_len;
	p->m->l3_len = l3_len;
	p->m->l4_len = l3_len != 0 ? p->l4_len : 0;
}

static void
classify(uint32_t policy, struct rte_mbuf *m, struct nfmeta_record *r, struct nfmeta_flow_key *key)
{
	uint16_t ethertype;
	struct pkt p; /* the buffers need no zeros */
	int more = 0, swap;

	nfmeta_record_init(r);
	r->port = m->port;
	p.m = m;
	p.r = r;
	p.off = p.end = p.ptype = p.l2_len = p.l3_len = p.l4_len = 0;
	p.flags = 0;
	p.version = p.proto = p.detour = 0;
	memset(p.ports, 0, sizeof(p.ports));

	ethertype = parse_l2(&p);
	if (likely(ethertype == 0x0800))
		more = parse_ipv4(&p);
	else if (ethertype == 0x86dd)
		more = parse_ipv6(&p);
	if (more)
		parse_l4(&p);
	if (p.version != 0) {
		if (p.flags & NFMETA_FRAG_MASK)
			p.ptype = (p.ptype & ~RTE_PTYPE_L4_MASK) | RTE_PTYPE_L4_FRAG;
		parse_tunnel(&p);
		judge_l3(&p);
		judge_l4(&p, policy);
		swap = source_is_higher(&p);
		if (swap)
			p.flags |= NFMETA_FLOW_REVERSE;
		if (key != NULL)
			make_key(&p, policy, swap, key);
	} else if (key != NULL) {
		memset(key, 0, sizeof(*key));
	}
	r->flags = p.flags;
	fill_mbuf(&p);
}

void
nfmeta_classify_burst(uint32_t policy, struct rte_mbuf *const *pkts, uint16_t n,
		      struct nfmeta_record *recs, struct nfmeta_flow_key *keys)
{
	uint16_t i;

	for (i = 0; i < n && i < AHEAD; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
		rte_mbuf_prefetch_part2(pkts[i]);
	}
	for (i = 0; i < n; i++) {
		if (i + AHEAD < n) {
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + AHEAD], void *));
			rte_mbuf_prefetch_part2(pkts[i + AHEAD]);
		}
		classify(policy, pkts[i], &recs[i], keys != NULL ? &keys[i] : NULL);
	}
}
