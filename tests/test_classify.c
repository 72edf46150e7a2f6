/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Classify: what every kind of packet gives, whole, cut, split and damaged.
 * Golden keys of bindings-spec/vectors are tested in test_vectors.c.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <nfmeta/nfmeta.h>

#include "packet.h"

/* ---- Building packets ------------------------------------------------------ */

/*
 * A packet is written as its layers, "eth/ip4/tcp:1000:80/data:10".  Numbers as
 * in C.  Every layer enters its number into the one before; lengths and
 * checksums are right, unless a layer says otherwise:
 *
 *   eth  tag:TPID:TCI  ip4:FRAGFIELD  opt (4 bytes of IPv4 options)
 *   lsrr (8 bytes: a source route)  ip6  hop:LEN  dst:LEN  route:LEN:SEGMENTSLEFT
 *   home (a home address), latehome (behind padding)  mh:LEN  frag:FIELD  ah:LEN  tcp:SRC:DST
 *   tcpopt:SRC:DST (8 bytes of options)  udp:SRC:DST  sctp:SRC:DST
 *   icmp:TYPE:ID  icmp6:TYPE:ID  proto:NUMBER  data:LEN  rev (addresses swapped)
 *   end (lengths and checksums are filled here, not at the last layer); behind it:
 *   tail:LEN (in the IPv4 datagram, behind UDP)  pad:LEN (behind the datagram)
 *   set:OFFSET:BYTE (damage)
 */
struct build {
	uint8_t b[10240];
	uint32_t len;
	uint32_t next; /* where the next layer's number goes */
	uint32_t l3, l4;
	int version, proto, sums;
};

static void
put16(uint8_t *b, unsigned int v)
{
	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

/* Slow and plain on purpose: what lib/classify.c is compared with. */
static uint16_t
inet_sum(const uint8_t *b, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i < len; i++) {
		sum += i % 2 == 0 ? (uint32_t)b[i] << 8 : b[i];
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return (uint16_t)sum;
}

static uint32_t
crc32c(const uint8_t *b, uint32_t len)
{
	uint32_t crc = 0xffffffff, i, bit;

	for (i = 0; i < len; i++)
		for (bit = 0, crc ^= b[i]; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	return ~crc;
}

static uint32_t
l4_sum_field(const struct build *p)
{
	switch (p->proto) {
	case IPPROTO_TCP:
		return p->l4 + 16;
	case IPPROTO_UDP:
		return p->l4 + 6;
	case IPPROTO_SCTP:
		return p->l4 + 8;
	default:
		return p->l4 + 2;
	}
}

static void
fill_l4_sum(struct build *p)
{
	uint8_t *field = p->b + l4_sum_field(p), *addr;
	uint32_t len = p->len - p->l4, sum = 0;

	if (p->proto == IPPROTO_SCTP) {
		memset(field, 0, 4);
		sum = crc32c(p->b + p->l4, len);
		field[0] = (uint8_t)sum;
		field[1] = (uint8_t)(sum >> 8);
		field[2] = (uint8_t)(sum >> 16);
		field[3] = (uint8_t)(sum >> 24);
		return;
	}
	put16(field, 0);
	if (p->proto != IPPROTO_ICMP) {
		addr = p->b + p->l3 + (p->version == 4 ? 12 : 8);
		sum = inet_sum(addr, p->version == 4 ? 8 : 32, (uint32_t)p->proto);
		sum = inet_sum((uint8_t[]){(uint8_t)(len >> 8), (uint8_t)len}, 2, sum);
	}
	sum = (uint16_t)~inet_sum(p->b + p->l4, len, sum);
	if (sum == 0 && p->proto == IPPROTO_UDP)
		sum = 0xffff;
	put16(field, sum);
}

static void
fill_l3(struct build *p)
{
	uint8_t *h = p->b + p->l3;

	if (p->version == 4) {
		put16(h + 2, p->len - p->l3);
		put16(h + 10, 0);
		put16(h + 10, (uint16_t)~inet_sum(h, (h[0] & 15) * 4u, 0));
	} else if (p->version == 6) {
		put16(h + 4, p->len - p->l3 - 40);
	}
}

static void
fill(struct build *p)
{
	fill_l3(p);
	if (p->l4 != 0 && p->proto == IPPROTO_UDP)
		put16(p->b + p->l4 + 4, p->len - p->l4);
	if (p->l4 != 0)
		fill_l4_sum(p);
}

/* Append n zero bytes as layer number; further numbers go to next in them. */
static uint8_t *
layer(struct build *p, uint32_t n, unsigned int number, uint32_t next)
{
	uint8_t *at = p->b + p->len;

	memset(at, 0, n);
	if (p->version == 0 && p->len > 0)
		put16(p->b + p->next, number);
	else
		p->b[p->next] = (uint8_t)number;
	p->next = p->len + next;
	p->len += n;
	ck_assert_uint_le(p->len, sizeof(p->b));
	return at;
}

static uint8_t *
l4_layer(struct build *p, uint32_t n, int proto)
{
	uint8_t *at = layer(p, n, (unsigned int)proto, 0);

	p->l4 = p->len - n;
	p->proto = proto;
	return at;
}

static void
add(struct build *p, const char *name, unsigned int a, unsigned int b)
{
	static const uint8_t ip6[32] = {0x20, 1, 0x0d, 0xb8, [15] = 1,
					0x20, 1, 0x0d, 0xb8, [31] = 2};
	static const uint8_t ip4[8] = {192, 0, 2, 1, 198, 51, 100, 2};
	uint8_t *h, swap[16];
	unsigned int i;

	if (strcmp(name, "eth") == 0) {
		memcpy(p->b, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x06", 14);
		p->next = 12;
		p->len = 14;
	} else if (strcmp(name, "tag") == 0) {
		h = layer(p, 4, a, 2);
		put16(h, b);
	} else if (strcmp(name, "ip4") == 0) {
		p->l3 = p->len;
		h = layer(p, 20, 0x0800, 9);
		p->version = 4;
		h[0] = 0x45;
		h[8] = 64;
		h[9] = 253;
		put16(h + 6, a);
		memcpy(h + 12, ip4, 8);
	} else if (strcmp(name, "opt") == 0) {
		memcpy(p->b + p->len, "\x01\x01\x01\x01", 4);
		p->b[p->l3]++;
		p->len += 4;
	} else if (strcmp(name, "lsrr") == 0) {
		memcpy(p->b + p->len, "\x83\x07\x04\xc0\0\x02\x09", 8);
		p->b[p->l3] += 2;
		p->len += 8;
	} else if (strcmp(name, "ip6") == 0) {
		p->l3 = p->len;
		h = layer(p, 40, 0x86dd, 6);
		p->version = 6;
		h[0] = 0x60;
		h[6] = 253;
		h[7] = 64;
		memcpy(h + 8, ip6, 32);
	} else if (strcmp(name, "hop") == 0 || strcmp(name, "dst") == 0 ||
		   strcmp(name, "mh") == 0) {
		i = name[0] == 'h' ? IPPROTO_HOPOPTS : name[0] == 'd' ? IPPROTO_DSTOPTS : 135;
		h = layer(p, a, i, 0);
		h[1] = (uint8_t)(a / 8 - 1);
		h[2] = 1;
		h[3] = (uint8_t)(RTE_MIN(a, 256u) - 4);
	} else if (strcmp(name, "home") == 0) {
		h = layer(p, 24, IPPROTO_DSTOPTS, 0);
		memcpy(h, "\0\x02\x01\x02\0\0\xc9\x10", 8);
	} else if (strcmp(name, "latehome") == 0) { /* not the first option */
		h = layer(p, 32, IPPROTO_DSTOPTS, 0);
		memcpy(h, "\0\x03\x01\x08\0\0\0\0\0\0\0\0\0\0\xc9\x10", 16);
	} else if (strcmp(name, "route") == 0) {
		h = layer(p, a, IPPROTO_ROUTING, 0);
		h[1] = (uint8_t)(a / 8 - 1);
		h[3] = (uint8_t)b;
	} else if (strcmp(name, "frag") == 0) {
		h = layer(p, 8, IPPROTO_FRAGMENT, 0);
		put16(h + 2, a);
	} else if (strcmp(name, "ah") == 0) {
		h = layer(p, a, IPPROTO_AH, 0);
		h[1] = (uint8_t)(a / 4 - 2);
	} else if (strcmp(name, "tcp") == 0 || strcmp(name, "tcpopt") == 0) {
		h = l4_layer(p, name[3] ? 28 : 20, IPPROTO_TCP);
		put16(h, a);
		put16(h + 2, b);
		h[12] = name[3] ? 0x70 : 0x50;
		h[13] = 0x10;
	} else if (strcmp(name, "udp") == 0) {
		h = l4_layer(p, 8, IPPROTO_UDP);
		put16(h, a);
		put16(h + 2, b);
	} else if (strcmp(name, "sctp") == 0) {
		h = l4_layer(p, 12, IPPROTO_SCTP);
		put16(h, a);
		put16(h + 2, b);
	} else if (strcmp(name, "icmp") == 0 || strcmp(name, "icmp6") == 0) {
		h = l4_layer(p, 8, name[4] ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
		h[0] = (uint8_t)a;
		put16(h + 4, b);
	} else if (strcmp(name, "proto") == 0) {
		layer(p, 0, a, 0);
	} else if (strcmp(name, "data") == 0) {
		for (i = 0; i < a; i++)
			p->b[p->len++] = (uint8_t)(~i * 7 ^ i >> 6);
	} else if (strcmp(name, "rev") == 0) {
		i = p->version == 4 ? 4 : 16;
		h = p->b + p->l3 + (p->version == 4 ? 12 : 8);
		memcpy(swap, h, i);
		memmove(h, h + i, i);
		memcpy(h + i, swap, i);
	} else if (strcmp(name, "end") == 0) {
		fill(p);
		p->sums = 1;
	} else if (strcmp(name, "set") == 0) {
		p->b[a] = (uint8_t)b;
	} else if (strcmp(name, "tail") == 0) {
		p->len += a;
		fill_l3(p);
	} else if (strcmp(name, "pad") == 0) {
		memset(p->b + p->len, 0x55, a);
		p->len += a;
	} else {
		ck_abort_msg("no layer \"%s\"", name);
	}
}

static struct build
build(const char *spec)
{
	char text[256], *word, *save;
	unsigned int a, b;
	struct build p;

	memset(&p, 0, sizeof(p));
	snprintf(text, sizeof(text), "%s", spec);
	for (word = strtok_r(text, "/", &save); word != NULL; word = strtok_r(NULL, "/", &save)) {
		char *arg = strchr(word, ':');

		a = b = 0;
		if (arg != NULL) {
			*arg++ = '\0';
			a = (unsigned int)strtoul(arg, &arg, 0);
			if (*arg == ':')
				b = (unsigned int)strtoul(arg + 1, NULL, 0);
		}
		add(&p, word, a, b);
	}
	if (!p.sums)
		fill(&p);
	return p;
}

/* ---- Helpers ----------------------------------------------------------------- */

#define DEFAULT NFMETA_CLASSIFY_DEFAULT

static struct outcome
outcome_of(const uint8_t *b, uint32_t len, const uint32_t *cuts, uint32_t n, uint64_t ol_flags,
	   uint32_t policy)
{
	struct rte_mbuf *m = packet_new(b, len, cuts, n);
	struct outcome o, again;
	const char *wrong;

	m->ol_flags = ol_flags;
	m->vlan_tci = 0x2002;
	m->vlan_tci_outer = 0x4001;
	o = packet_classify(m, policy);
	wrong = outcome_wrong(&o, len);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	again = packet_classify(m, policy);
	ck_assert_msg(outcome_same(&o, &again), "the second time it is another");
	packet_free(m);
	return o;
}

static struct outcome
whole(const struct build *p)
{
	return outcome_of(p->b, p->len, NULL, 0, 0, DEFAULT);
}

static struct outcome
outcome_of_spec(const char *spec)
{
	struct build p = build(spec);

	return whole(&p);
}

static uint32_t
random32(void)
{
	static uint64_t x = UINT64_C(0x9e3779b97f4a7c15);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 32);
}

static unsigned int
port_a(const struct outcome *o)
{
	return o->key.port_a[0] << 8 | o->key.port_a[1];
}

static unsigned int
port_b(const struct outcome *o)
{
	return o->key.port_b[0] << 8 | o->key.port_b[1];
}

/* ---- Every kind of packet ----------------------------------------------------- */

#define V2 NFMETA_L2_VALID
#define V3 (V2 | NFMETA_L3_VALID)
#define V4 (V3 | NFMETA_L4_VALID)
#define G3 NFMETA_L3_CSUM_GOOD
#define B3 NFMETA_L3_CSUM_BAD
#define G4 NFMETA_L4_CSUM_GOOD
#define B4 NFMETA_L4_CSUM_BAD
#define FF NFMETA_FRAG_FIRST
#define FL NFMETA_FRAG_LATER
#define RV NFMETA_FLOW_REVERSE
#define TU NFMETA_TUNNEL_OUTER
#define NO NFMETA_OFF_NONE
#define P3(l2, l3) (RTE_PTYPE_L2_##l2 | RTE_PTYPE_L3_##l3)
#define PT(l2, l3, l4) (P3(l2, l3) | RTE_PTYPE_L4_##l4)
#define TUNNEL(t) RTE_PTYPE_TUNNEL_##t

#define X8 "/dst:8/dst:8/dst:8/dst:8/dst:8/dst:8/dst:8/dst:8"

static const struct kind {
	const char *spec;
	uint16_t flags;
	uint16_t l3, l4, payload;
	uint8_t proto;
	uint16_t a, b; /* ports in the key */
	uint32_t ptype;
} kinds[] = {
	/* L4 over IPv4 */
	{"eth/ip4/tcp:40000:443/data:10", V4 | G3 | G4, 14, 34, 54, 6, 40000, 443,
	 PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcp:443:40000/data:11/rev", V4 | G3 | G4 | RV, 14, 34, 54, 6, 40000, 443,
	 PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcpopt:1:2", V4 | G3 | G4, 14, 34, 62, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip4/opt/tcp:1:2/data:3", V4 | G3 | G4, 14, 38, 58, 6, 1, 2, PT(ETHER, IPV4_EXT, TCP)},
	{"eth/ip4/udp:53:5353/data:3", V4 | G3 | G4, 14, 34, 42, 17, 53, 5353,
	 PT(ETHER, IPV4, UDP)},
	{"eth/ip4/udp:53:5353/data:3/end/set:40:0/set:41:0", V4 | G3, 14, 34, 42, 17, 53, 5353,
	 PT(ETHER, IPV4, UDP)},
	{"eth/ip4/sctp:1:2/data:13", V4 | G3 | G4, 14, 34, 46, 132, 1, 2, PT(ETHER, IPV4, SCTP)},
	{"eth/ip4/icmp:8:77/data:5", V4 | G3 | G4, 14, 34, 42, 1, 77, 77, PT(ETHER, IPV4, ICMP)},
	{"eth/ip4/icmp:0:77/data:5/rev", V4 | G3 | G4 | RV, 14, 34, 42, 1, 77, 77,
	 PT(ETHER, IPV4, ICMP)},
	{"eth/ip4/icmp:3:77/data:28", V4 | G3 | G4, 14, 34, 42, 1, 0, 0, PT(ETHER, IPV4, ICMP)},
	{"eth/ip4/proto:50/data:20", V3 | G3, 14, NO, NO, 50, 0, 0, PT(ETHER, IPV4, NONFRAG)},
	{"eth/ip4/proto:58/data:20", V3 | G3, 14, NO, NO, 58, 0, 0, PT(ETHER, IPV4, NONFRAG)},
	/* behind the datagram, and UDP that ends before it does */
	{"eth/ip4/tcp:1:2/end/pad:6", V4 | G3 | G4, 14, 34, 54, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip4/udp:1:2/data:4/end/tail:4/pad:3", V4 | G3 | G4, 14, 34, 42, 17, 1, 2,
	 PT(ETHER, IPV4, UDP)},
	/* L4 over IPv6 */
	{"eth/ip6/tcp:40000:443/data:10", V4 | G4, 14, 54, 74, 6, 40000, 443, PT(ETHER, IPV6, TCP)},
	{"eth/ip6/udp:7:9/data:1/rev", V4 | G4 | RV, 14, 54, 62, 17, 9, 7, PT(ETHER, IPV6, UDP)},
	{"eth/ip6/sctp:1:2/data:40", V4 | G4, 14, 54, 66, 132, 1, 2, PT(ETHER, IPV6, SCTP)},
	{"eth/ip6/icmp6:128:513", V4 | G4, 14, 54, 58, 58, 513, 513, PT(ETHER, IPV6, ICMP)},
	{"eth/ip6/icmp6:129:513/rev", V4 | G4 | RV, 14, 54, 58, 58, 513, 513,
	 PT(ETHER, IPV6, ICMP)},
	{"eth/ip6/icmp6:135:513/data:16", V4 | G4, 14, 54, 58, 58, 0, 0, PT(ETHER, IPV6, ICMP)},
	{"eth/ip6/proto:59", V3, 14, NO, NO, 59, 0, 0, PT(ETHER, IPV6, NONFRAG)},
	{"eth/ip6/proto:50/data:20", V3, 14, NO, NO, 50, 0, 0, PT(ETHER, IPV6, NONFRAG)},
	{"eth/ip6/proto:1/data:20", V3, 14, NO, NO, 1, 0, 0, PT(ETHER, IPV6, NONFRAG)},
	/* IPv6 extension headers */
	{"eth/ip6/hop:8/dst:16/tcp:1:2", V4 | G4, 14, 78, 98, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/hop:16/dst:8/route:24:0/ah:24/dst:8/udp:1:2/data:7", V4 | G4, 14, 134, 142, 17, 1,
	 2, PT(ETHER, IPV6_EXT, UDP)},
	{"eth/ip6/hop:2048/tcp:1:2", V4 | G4, 14, 2102, 2122, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/mh:16/tcp:1:2", V4 | G4, 14, 70, 90, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/hop:8/proto:50/data:9", V3, 14, NO, NO, 50, 0, 0, PT(ETHER, IPV6_EXT, NONFRAG)},
	{"eth/ip6/frag:0/tcp:1:2", V4 | G4, 14, 62, 82, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/hop:8/end/pad:20", V2, 14, NO, NO, 0, 0, 0, P3(ETHER, IPV6_EXT)},
	{"eth/ip6" X8 X8 "/tcp:1:2", V4 | G4, 14, 182, 202, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6" X8 X8 "/dst:8/tcp:1:2", V2, 14, NO, NO, 60, 0, 0, P3(ETHER, IPV6_EXT)},
	/* the checksum is for addresses that are not in the IP header */
	{"eth/ip6/route:24:1/tcp:1:2", V4, 14, 78, 98, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/home/tcp:1:2", V4, 14, 78, 98, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip6/latehome/tcp:1:2", V4, 14, 86, 106, 6, 1, 2, PT(ETHER, IPV6_EXT, TCP)},
	{"eth/ip4/opt/lsrr/tcp:1:2", V4 | G3, 14, 46, 66, 6, 1, 2, PT(ETHER, IPV4_EXT, TCP)},
	/* fragments */
	{"eth/ip4:0x2000/tcp:1:2/data:4", V4 | G3 | FF, 14, 34, 54, 6, 1, 2, PT(ETHER, IPV4, FRAG)},
	{"eth/ip4:0x2000/udp:1:2/data:8/end/set:38:9", V4 | G3 | FF, 14, 34, 42, 17, 1, 2,
	 PT(ETHER, IPV4, FRAG)},
	{"eth/ip4:0x2003/tcp:1:2", V3 | G3 | FL, 14, NO, NO, 6, 0, 0, PT(ETHER, IPV4, FRAG)},
	{"eth/ip4:0x4000/tcp:1:2", V4 | G3 | G4, 14, 34, 54, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip6/frag:1/udp:1:2/data:8", V4 | FF, 14, 62, 70, 17, 1, 2, PT(ETHER, IPV6_EXT, FRAG)},
	{"eth/ip6/frag:1/hop:8/udp:1:2", V4 | FF, 14, 70, 78, 17, 1, 2, PT(ETHER, IPV6_EXT, FRAG)},
	{"eth/ip6/frag:9/udp:1:2/data:8", V3 | FL, 14, NO, NO, 17, 0, 0, PT(ETHER, IPV6_EXT, FRAG)},
	{"eth/ip6/frag:8/proto:60/data:8", V3 | FL, 14, NO, NO, 60, 0, 0,
	 PT(ETHER, IPV6_EXT, FRAG)},
	{"eth/ip6/frag:1/frag:8/proto:6/data:8", V3 | FL, 14, NO, NO, 6, 0, 0,
	 PT(ETHER, IPV6_EXT, FRAG)},
	/* tags */
	{"eth/tag:0x8100:42/ip4/tcp:1:2", V4 | G3 | G4, 18, 38, 58, 6, 1, 2,
	 PT(ETHER_VLAN, IPV4, TCP)},
	{"eth/tag:0x88a8:42/tag:0x8100:43/ip6/tcp:1:2", V4 | G4, 22, 62, 82, 6, 1, 2,
	 PT(ETHER_QINQ, IPV6, TCP)},
	{"eth/tag:0x9100:1/tag:0x8100:2/tag:0x8100:3/tag:0x8100:4/tag:0x8100:5/tag:0x8100:6/"
	 "tag:0x8100:7/tag:0x8100:8/ip4/tcp:1:2",
	 V4 | G3 | G4, 46, 66, 86, 6, 1, 2, PT(ETHER_QINQ, IPV4, TCP)},
	{"eth/tag:0x9100:1/tag:0x8100:2/tag:0x8100:3/tag:0x8100:4/tag:0x8100:5/tag:0x8100:6/"
	 "tag:0x8100:7/tag:0x8100:8/tag:0x8100:9/ip4/tcp:1:2",
	 0, NO, NO, NO, 0, 0, 0, RTE_PTYPE_UNKNOWN},
	/* tunnels: the outer headers are described */
	{"eth/ip4/proto:47/data:40", V3 | G3 | TU, 14, NO, NO, 47, 0, 0,
	 PT(ETHER, IPV4, NONFRAG) | TUNNEL(GRE)},
	{"eth/ip4/proto:4/data:40", V3 | G3 | TU, 14, NO, NO, 4, 0, 0,
	 PT(ETHER, IPV4, NONFRAG) | TUNNEL(IP)},
	{"eth/ip4/proto:41/data:40", V3 | G3 | TU, 14, NO, NO, 41, 0, 0,
	 PT(ETHER, IPV4, NONFRAG) | TUNNEL(IP)},
	{"eth/ip6/dst:8/proto:41/data:40", V3 | TU, 14, NO, NO, 41, 0, 0,
	 PT(ETHER, IPV6_EXT, NONFRAG) | TUNNEL(IP)},
	{"eth/ip4/udp:999:4789/data:40", V4 | G3 | G4 | TU, 14, 34, 42, 17, 999, 4789,
	 PT(ETHER, IPV4, UDP) | TUNNEL(VXLAN)},
	{"eth/ip4/udp:4789:999/data:40", V4 | G3 | G4, 14, 34, 42, 17, 4789, 999,
	 PT(ETHER, IPV4, UDP)},
	{"eth/ip6/udp:999:6081/data:40", V4 | G4 | TU, 14, 54, 62, 17, 999, 6081,
	 PT(ETHER, IPV6, UDP) | TUNNEL(GENEVE)},
	{"eth/ip6/udp:999:6081/data:40/end/set:60:0/set:61:0", V4 | TU, 14, 54, 62, 17, 999, 6081,
	 PT(ETHER, IPV6, UDP) | TUNNEL(GENEVE)},
	{"eth/ip4/udp:2152:2152/data:40", V4 | G3 | G4 | TU, 14, 34, 42, 17, 2152, 2152,
	 PT(ETHER, IPV4, UDP) | TUNNEL(GTPU)},
	/* damaged */
	{"eth/ip4/tcp:1:2/end/set:24:0", V4 | B3 | G4, 14, 34, 54, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcp:1:2/end/set:45:9", V4 | G3 | B4, 14, 34, 54, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip6/udp:1:2/end/set:60:0/set:61:0", V4 | B4, 14, 54, 62, 17, 1, 2,
	 PT(ETHER, IPV6, UDP)},
	{"eth/ip4/tcp:1:2/end/set:46:0x40", V3 | G3, 14, 34, NO, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcp:1:2/end/set:46:0x60", V3 | G3, 14, 34, NO, 6, 1, 2, PT(ETHER, IPV4, TCP)},
	{"eth/ip4/udp:1:2/end/set:39:7", V3 | G3, 14, 34, 42, 17, 1, 2, PT(ETHER, IPV4, UDP)},
	{"eth/ip4/udp:1:2/end/set:39:9/pad:9", V3 | G3, 14, 34, 42, 17, 1, 2, PT(ETHER, IPV4, UDP)},
	{"eth/ip4/tcp:1:2/end/set:14:0x55", V2, NO, NO, NO, 0, 0, 0, RTE_PTYPE_L2_ETHER},
	{"eth/ip4/tcp:1:2/end/set:14:0x44", V2, NO, NO, NO, 0, 0, 0, RTE_PTYPE_L2_ETHER},
	{"eth/ip4/tcp:1:2/end/set:14:0x4f", V2, 14, NO, NO, 6, 0, 0, P3(ETHER, IPV4_EXT)},
	{"eth/ip6/tcp:1:2/end/set:14:0x40", V2, NO, NO, NO, 0, 0, 0, RTE_PTYPE_L2_ETHER},
	/* lengths that do not fit: still a flow, not valid */
	{"eth/ip4/tcp:1:2/end/set:16:1/set:24:0", V2 | B3, 14, 34, 54, 6, 1, 2,
	 PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcp:1:2/end/set:17:0/set:24:0", V2 | B3, 14, 34, 54, 6, 1, 2,
	 PT(ETHER, IPV4, TCP)},
	{"eth/ip4/tcp:1:2/end/set:17:19/set:24:0", V2 | B3, 14, NO, NO, 6, 0, 0, P3(ETHER, IPV4)},
	{"eth/ip4/tcp:1:2/end/set:17:23/set:24:0", V3 | B3, 14, NO, NO, 6, 0, 0, P3(ETHER, IPV4)},
	{"eth/ip4/icmp:8:77/end/set:17:25/set:24:0", V3 | B3, 14, 34, NO, 1, 0, 0,
	 PT(ETHER, IPV4, ICMP)},
	{"eth/ip6/tcp:1:2/end/set:19:21", V2, 14, 54, 74, 6, 1, 2, PT(ETHER, IPV6, TCP)},
	{"eth/ip6/tcp:1:2/end/set:19:0", V2, 14, 54, 74, 6, 1, 2, PT(ETHER, IPV6, TCP)},
	{"eth/ip6/tcp:1:2/end/set:19:3", V3, 14, NO, NO, 6, 0, 0, P3(ETHER, IPV6)},
	{"eth/ip6/dst:16/tcp:1:2/end/set:55:9", V2, 14, NO, NO, 60, 0, 0, P3(ETHER, IPV6_EXT)},
	/* not IP */
	{"eth/data:46", V2, NO, NO, NO, 0, 0, 0, RTE_PTYPE_L2_ETHER},
	{"eth/tag:0x8100:42/end/set:17:6/pad:40", V2, NO, NO, NO, 0, 0, 0, RTE_PTYPE_L2_ETHER_VLAN},
};

START_TEST(every_kind)
{
	const struct kind *k = &kinds[_i];
	struct outcome o = outcome_of_spec(k->spec);
	uint32_t l2 = 0, l3 = 0, l4 = 0;
	struct rte_mbuf m;

	ck_assert_msg(o.rec.flags == k->flags, "%s: flags %#x", k->spec, o.rec.flags);
	ck_assert_msg(o.rec.l3_off == k->l3, "%s: l3_off %u", k->spec, o.rec.l3_off);
	ck_assert_msg(o.rec.l4_off == k->l4, "%s: l4_off %u", k->spec, o.rec.l4_off);
	ck_assert_msg(o.rec.payload_off == k->payload, "%s: payload %u", k->spec,
		      o.rec.payload_off);
	ck_assert_msg(o.packet_type == k->ptype, "%s: ptype %#x", k->spec, o.packet_type);
	ck_assert_msg(o.key.proto == k->proto, "%s: proto %u", k->spec, o.key.proto);
	ck_assert_msg(port_a(&o) == k->a && port_b(&o) == k->b, "%s: ports %u %u", k->spec,
		      port_a(&o), port_b(&o));
	ck_assert_int_eq(o.key.fragment, (k->flags & FL) != 0);
	ck_assert_int_eq(o.rec.port, 7);

	/* what DPDK has a place for */
	m.tx_offload = o.tx_offload;
	if (k->l3 != NO)
		l2 = k->l3;
	if (k->l4 != NO && k->l4 - k->l3 < 512)
		l3 = k->l4 - k->l3;
	if (k->payload != NO && l3 != 0)
		l4 = k->payload - k->l4;
	if (l2 != 0)
		ck_assert_uint_eq(m.l2_len, l2);
	if (k->l4 != NO)
		ck_assert_uint_eq(m.l3_len, l3);
	ck_assert_uint_eq(m.l4_len, l4);
	ck_assert_uint_eq(o.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK,
			  k->flags & TU	  ? 0
			  : k->flags & G3 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD
			  : k->flags & B3 ? RTE_MBUF_F_RX_IP_CKSUM_BAD
					  : 0);
	ck_assert_uint_eq(o.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK,
			  k->flags & TU	  ? 0
			  : k->flags & G4 ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
			  : k->flags & B4 ? RTE_MBUF_F_RX_L4_CKSUM_BAD
					  : 0);
}
END_TEST

/* The table above has every flag that classify knows, set and not set. */
START_TEST(every_flag)
{
	const uint16_t flags = NFMETA_FLAGS_ALL & ~(NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW);
	uint16_t set = 0, clear = 0;
	size_t i;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		set |= kinds[i].flags;
		clear |= (uint16_t)~kinds[i].flags;
	}
	ck_assert_uint_eq(set & flags, flags);
	ck_assert_uint_eq(clear & flags, flags);
}
END_TEST

START_TEST(bytes_cut_anywhere)
{
	struct build p = build(kinds[_i].spec);
	struct outcome all = whole(&p), o;
	uint32_t len;

	for (len = 0; len < p.len; len++) {
		o = outcome_of(p.b, len, NULL, 0, 0, DEFAULT);
		if (all.rec.l3_off == NO ||
		    len < all.rec.l3_off + (all.key.ip_version == 4 ? 20u : 40u)) {
			ck_assert_uint_eq(o.key.ip_version, 0);
			continue;
		}
		ck_assert_mem_eq(o.key.addr_a, all.key.addr_a, 32);
		ck_assert_uint_eq(o.rec.l3_off, all.rec.l3_off);
		/* the first 4 bytes of L4 (ICMP echo: 6) make the flow */
		if (all.rec.l4_off == NO ? len >= p.len : len >= all.rec.l4_off + 6u)
			ck_assert_mem_eq(&o.key, &all.key, sizeof(o.key));
		if (all.rec.l4_off != NO && len < all.rec.l4_off + 4u)
			ck_assert_uint_eq(o.rec.l4_off, NO);
		if (len < p.l3 + (p.version == 4 ? p.b[p.l3 + 2] << 8 | p.b[p.l3 + 3]
						 : 40 + (p.b[p.l3 + 4] << 8 | p.b[p.l3 + 5])))
			ck_assert_uint_eq(o.rec.flags & NFMETA_L3_VALID, 0);
	}
}
END_TEST

START_TEST(bytes_behind_pkt_len)
{
	struct build p = build("eth/ip4/icmp:8:77/data:20");
	struct outcome shorter, cut;
	struct rte_mbuf *m;
	uint32_t len;

	for (len = 0; len < p.len; len++) {
		shorter = outcome_of(p.b, len, NULL, 0, 0, DEFAULT);
		m = packet_new(p.b, p.len, NULL, 0);
		m->pkt_len = len;
		cut = packet_classify(m, DEFAULT);
		packet_free(m);
		ck_assert(outcome_same(&shorter, &cut));
	}
}
END_TEST

START_TEST(bytes_split_anywhere)
{
	struct build p = build(kinds[_i].spec);
	struct outcome all = whole(&p), o;
	uint32_t cuts[sizeof(p.b)], i;

	for (i = 0; i <= p.len; i++) { /* an empty segment at either end, too */
		o = outcome_of(p.b, p.len, &i, 1, 0, DEFAULT);
		ck_assert_msg(outcome_same(&all, &o), "%s split at %u", kinds[_i].spec, i);
	}
	for (i = 0; i < p.len; i++)
		cuts[i] = i;
	o = outcome_of(p.b, p.len, cuts, p.len, 0, DEFAULT);
	ck_assert_msg(outcome_same(&all, &o), "%s in single bytes", kinds[_i].spec);
	for (i = 0; i < 50; i++) {
		cuts[0] = random32() % (p.len + 1);
		cuts[1] = cuts[0] + random32() % (p.len - cuts[0] + 1);
		cuts[2] = cuts[1]; /* an empty segment in the middle */
		o = outcome_of(p.b, p.len, cuts, 3, 0, DEFAULT);
		ck_assert_msg(outcome_same(&all, &o), "%s split at %u, %u", kinds[_i].spec, cuts[0],
			      cuts[1]);
	}
}
END_TEST

/* Every single wrong bit that a checksum covers is found. */
START_TEST(bits_flipped_anywhere)
{
	const struct kind *k = &kinds[_i];
	struct build p = build(k->spec);
	struct outcome o;
	uint32_t bit, end;

	if (k->flags & G3) {
		for (bit = k->l3 * 8u; bit < (k->l3 + (p.b[k->l3] & 15) * 4u) * 8; bit++) {
			p.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
			o = whole(&p);
			if (p.b[k->l3] >> 4 == 4 &&
			    (p.b[k->l3] & 15) == (build(k->spec).b[k->l3] & 15))
				ck_assert_uint_eq(o.rec.flags & NFMETA_L3_CSUM_MASK, B3);
			else
				ck_assert_uint_eq(o.rec.flags & NFMETA_L3_CSUM_GOOD, 0);
			p.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	if (!(k->flags & G4) || p.len > 200)
		return;
	end = k->l3 + (p.version == 4 ? 0 : 40) +
	      (p.version == 4 ? p.b[k->l3 + 3] : p.b[k->l3 + 5]);
	if (k->proto == IPPROTO_UDP)
		end = k->l4 + p.b[k->l4 + 5];
	for (bit = k->l4 * 8u; bit < end * 8; bit++) {
		p.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		o = whole(&p);
		if ((o.rec.flags & NFMETA_L4_VALID) &&
		    !(k->proto == IPPROTO_UDP && p.b[k->l4 + 6] == 0 && p.b[k->l4 + 7] == 0))
			ck_assert_msg((o.rec.flags & NFMETA_L4_CSUM_MASK) == B4, "%s bit %u",
				      k->spec, bit);
		ck_assert_uint_eq(o.rec.flags & G4, 0);
		p.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

/* Random lengths and contents, random segments: as the plain sums in this file say. */
START_TEST(checksums_as_computed_plainly)
{
	static const char *const specs[] = {
		"eth/ip4/tcp:1:2/data:%u",	 "eth/ip4/udp:1:2/data:%u",
		"eth/ip4/sctp:1:2/data:%u",	 "eth/ip4/icmp:8:2/data:%u",
		"eth/ip6/tcp:1:2/data:%u",	 "eth/ip6/udp:1:2/data:%u",
		"eth/ip6/sctp:1:2/data:%u",	 "eth/ip6/icmp6:1:2/data:%u",
		"eth/ip6/dst:8/tcp:1:2/data:%u",
	};
	uint32_t cuts[3], i, j, wrong;
	struct outcome o;
	struct build p;
	char spec[64];

	for (i = 0; i < 20000; i++) {
		snprintf(spec, sizeof(spec), specs[i % RTE_DIM(specs)],
			 i < 1000 ? 9000 - i : random32() % 600);
		p = build(spec);
		wrong = random32() & 1;
		for (j = p.len; i % 3 == 0 && j-- > p.l4 + 20;)
			p.b[j] = i % 2 ? 0xff : (uint8_t)random32();
		fill_l4_sum(&p);
		if (wrong)
			p.b[l4_sum_field(&p) + random32() % 2] ^= 1 << random32() % 8;
		for (j = 0; j < 3; j++)
			cuts[j] = (j > 0 ? cuts[j - 1] : 0) + random32() % (p.len / 4);
		o = outcome_of(p.b, p.len, cuts, 3, 0, DEFAULT);
		if (p.proto == IPPROTO_UDP && memcmp(p.b + p.l4 + 6, "\0", 2) == 0)
			continue;
		ck_assert_msg((o.rec.flags & NFMETA_L4_CSUM_MASK) == (wrong ? B4 : G4), "%s: %#x",
			      spec, o.rec.flags);
	}
}
END_TEST

/* ---- What the NIC says ---------------------------------------------------------- */

#define IP(v) RTE_MBUF_F_RX_IP_CKSUM_##v
#define L4(v) RTE_MBUF_F_RX_L4_CKSUM_##v
#define TCP_BAD "eth/ip4/tcp:1:2/end/set:45:9/set:24:0"
#define UDP_NONE "eth/ip4/udp:1:2/end/set:40:0/set:41:0"
#define UDP6_NONE "eth/ip6/udp:1:2/end/set:60:0/set:61:0"
#define SUMS (NFMETA_L3_CSUM_MASK | NFMETA_L4_CSUM_MASK)

static const struct verdict {
	const char *spec;
	uint64_t nic;
	uint32_t policy;
	uint16_t flags;
	uint64_t after; /* checksum bits of ol_flags */
} verdicts[] = {
	/* judged: taken over, not computed */
	{TCP_BAD, IP(GOOD) | L4(GOOD), DEFAULT, G3 | G4, IP(GOOD) | L4(GOOD)},
	{TCP_BAD, IP(NONE) | L4(NONE), DEFAULT, G3 | G4, IP(NONE) | L4(NONE)},
	{"eth/ip4/tcp:1:2", IP(BAD) | L4(BAD), DEFAULT, B3 | B4, IP(BAD) | L4(BAD)},
	{"eth/ip4/sctp:1:2", L4(BAD), DEFAULT, G3 | B4, IP(GOOD) | L4(BAD)},
	{"eth/ip4/tcp:1:2", L4(GOOD), 0, G3 | G4, IP(GOOD) | L4(GOOD)},
	/* not judged: computed, L4 by policy */
	{"eth/ip4/tcp:1:2", 0, DEFAULT, G3 | G4, IP(GOOD) | L4(GOOD)},
	{"eth/ip4/tcp:1:2", 0, 0, G3, IP(GOOD)},
	{TCP_BAD, 0, DEFAULT, B3 | B4, IP(BAD) | L4(BAD)},
	{TCP_BAD, 0, 0, B3, IP(BAD)},
	{TCP_BAD, RTE_MBUF_F_RX_LRO, DEFAULT, B3, IP(BAD)},
	/* no checksum there */
	{UDP_NONE, L4(BAD), DEFAULT, G3, IP(GOOD) | L4(BAD)},
	{UDP_NONE, L4(GOOD), DEFAULT, G3, IP(GOOD) | L4(GOOD)},
	{UDP_NONE, 0, DEFAULT, G3, IP(GOOD)},
	{UDP6_NONE, L4(GOOD), DEFAULT, B4, L4(GOOD)},
	{UDP6_NONE, 0, 0, B4, L4(BAD)},
	/* fragments */
	{"eth/ip4:0x2000/udp:1:2", L4(BAD), DEFAULT, G3, IP(GOOD) | L4(BAD)},
	{"eth/ip4:0x2000/udp:1:2", L4(GOOD), DEFAULT, G3, IP(GOOD) | L4(GOOD)},
	{"eth/ip4:0x2000/udp:1:2", 0, DEFAULT, G3, IP(GOOD)},
	{"eth/ip4:0x00b9/udp:1:2", L4(BAD), DEFAULT, G3, IP(GOOD) | L4(BAD)},
	{"eth/ip6/frag:1/udp:1:2", L4(GOOD), DEFAULT, 0, L4(GOOD)},
	/* IPv6 has no header checksum */
	{"eth/ip6/tcp:1:2", IP(GOOD) | L4(GOOD), DEFAULT, G4, IP(GOOD) | L4(GOOD)},
	{"eth/ip6/tcp:1:2", IP(BAD) | L4(NONE), DEFAULT, G4, IP(BAD) | L4(NONE)},
	/* NICs do not know ICMP */
	{"eth/ip4/icmp:8:2", L4(BAD), DEFAULT, G3 | G4, IP(GOOD) | L4(BAD)},
	{"eth/ip4/icmp:8:2/end/set:36:9", L4(GOOD), DEFAULT, G3 | B4, IP(GOOD) | L4(GOOD)},
	{"eth/ip6/icmp6:128:2", L4(GOOD), 0, 0, L4(GOOD)},
	/* the checksum is for other addresses: the NIC does not know that */
	{"eth/ip6/route:24:1/tcp:1:2", L4(BAD), DEFAULT, 0, L4(BAD)},
	/* no L4 header, or one that is not valid */
	{"eth/ip4/proto:47/data:9", L4(GOOD), DEFAULT, G3, L4(GOOD)},
	{"eth/ip4/udp:1:2/end/set:39:7", L4(BAD), DEFAULT, G3, IP(GOOD) | L4(BAD)},
	/* in a tunnel the verdict may be about the inner headers */
	{"eth/ip4/udp:1:4789/end/set:24:0/set:34:9", IP(GOOD) | L4(GOOD), DEFAULT, B3 | B4,
	 IP(GOOD) | L4(GOOD)},
	{"eth/ip4/udp:1:4789", IP(BAD) | L4(BAD), DEFAULT, G3 | G4, IP(BAD) | L4(BAD)},
	{"eth/ip4/udp:1:4789", RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD | RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD,
	 DEFAULT, B3 | B4, 0},
	{"eth/ip4/udp:1:4789/end/set:34:9", RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD, DEFAULT, G3 | G4, 0},
	{"eth/ip4/udp:1:4789", RTE_MBUF_F_RX_OUTER_L4_CKSUM_INVALID, DEFAULT, G3 | G4, 0},
};

START_TEST(nic_verdicts)
{
	const struct verdict *v = &verdicts[_i];
	struct build p = build(v->spec);
	struct outcome o = outcome_of(p.b, p.len, NULL, 0, v->nic, v->policy);
	const uint64_t sums = IP(NONE) | L4(NONE);

	ck_assert_msg((o.rec.flags & SUMS) == v->flags, "%s: %#x", v->spec, o.rec.flags);
	ck_assert_msg((o.ol_flags & sums) == v->after, "%s: %#lx", v->spec, o.ol_flags & sums);
	ck_assert_msg((o.ol_flags & ~sums) == (v->nic & ~sums), "other flags were touched");
}
END_TEST

/* ---- Tags and policy -------------------------------------------------------------- */

START_TEST(tags_stripped_and_in_the_bytes)
{
	struct build p = build("eth/tag:0x8100:0x6003/tag:0x8100:4/ip4/tcp:1:2");
	const uint64_t vlan = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	const uint64_t qinq = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
	static const uint8_t ids[][4] = {{0, 3, 0, 4}, {0, 2, 0, 3}, {0, 1, 0, 3}, {0, 1, 0, 2}};
	const struct {
		uint64_t ol_flags;
		uint16_t outer, inner, count;
	} t[] = {
		{0, 0x6003, 4, 2},
		{RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_QINQ, 0x6003, 4, 2}, /* copied, not stripped */
		{vlan, 0x2002, 0x6003, 3},
		{qinq, 0x4001, 0x6003, 3},
		{qinq | vlan, 0x4001, 0x2002, 4},
	};
	static const uint8_t of[] = {0, 0, 1, 2, 3};
	struct outcome o;
	size_t i;

	for (i = 0; i < RTE_DIM(t); i++) {
		o = outcome_of(p.b, p.len, NULL, 0, t[i].ol_flags, DEFAULT);
		ck_assert_uint_eq(o.rec.vlan_outer, t[i].outer);
		ck_assert_uint_eq(o.rec.vlan_inner, t[i].inner);
		ck_assert_uint_eq(o.rec.vlan_count, t[i].count);
		ck_assert_mem_eq(o.key.vlan, ids[of[i]], 4);
		ck_assert_uint_eq(o.packet_type & RTE_PTYPE_L2_MASK, RTE_PTYPE_L2_ETHER_QINQ);
		o = outcome_of(p.b, p.len, NULL, 0, t[i].ol_flags, 0);
		ck_assert_mem_eq(o.key.vlan, "\0\0\0", 4);
	}
	/* 8 tags at most, stripped ones too */
	p = build("eth/tag:0x8100:1/tag:0x8100:2/tag:0x8100:3/tag:0x8100:4/tag:0x8100:5/"
		  "tag:0x8100:6/ip4/tcp:1:2");
	o = outcome_of(p.b, p.len, NULL, 0, qinq | vlan, 0);
	ck_assert_uint_eq(o.rec.vlan_count, 8);
	ck_assert_uint_eq(o.rec.l4_off, 58);
	p = build("eth/tag:0x8100:1/tag:0x8100:2/tag:0x8100:3/tag:0x8100:4/tag:0x8100:5/"
		  "tag:0x8100:6/tag:0x8100:7/ip4/tcp:1:2");
	o = outcome_of(p.b, p.len, NULL, 0, qinq | vlan, 0);
	ck_assert_uint_eq(o.rec.flags, 0);
}
END_TEST

START_TEST(one_tag)
{
	struct outcome o = outcome_of_spec("eth/tag:0x8100:0xe02a/ip4/tcp:1:2");

	ck_assert_uint_eq(o.rec.vlan_outer, 0xe02a); /* the whole TCI */
	ck_assert_uint_eq(o.rec.vlan_inner, 0);
	ck_assert_uint_eq(o.rec.vlan_count, 1);
	ck_assert_mem_eq(o.key.vlan, "\0\x2a\0\0", 4); /* the id */
}
END_TEST

START_TEST(burst_and_no_keys)
{
	struct rte_mbuf *m[40];
	struct nfmeta_record recs[40];
	struct nfmeta_flow_key keys[40];
	struct build p;
	struct outcome o;
	unsigned int i;

	for (i = 0; i < 40; i++) {
		p = build(kinds[i].spec);
		m[i] = packet_new(p.b, p.len, NULL, 0);
		m[i]->tx_offload = UINT64_MAX;
	}
	nfmeta_classify_burst(DEFAULT | 0xffff0000, m, 40, recs, keys);
	for (i = 0; i < 40; i++) {
		o = outcome_of_spec(kinds[i].spec);
		ck_assert_mem_eq(&recs[i], &o.rec, sizeof(o.rec));
		ck_assert_mem_eq(&keys[i], &o.key, sizeof(o.key));
		ck_assert_uint_eq(m[i]->tx_offload, o.tx_offload | ~UINT64_C(0xffffff));
	}
	memset(recs, 0, sizeof(recs));
	nfmeta_classify_burst(DEFAULT, m, 40, recs, NULL);
	for (i = 0; i < 40; i++) {
		o = outcome_of_spec(kinds[i].spec);
		ck_assert_mem_eq(&recs[i], &o.rec, sizeof(o.rec));
		packet_free(m[i]);
	}
	nfmeta_classify_burst(DEFAULT, m, 0, NULL, NULL);
}
END_TEST

/* ---- Keys ---------------------------------------------------------------------------- */

struct tuple {
	uint8_t src[16], dst[16];
	uint8_t ports[4];
	int version;
	const char *l4;
};

static struct outcome
classify_tuple(const struct tuple *t, int swap)
{
	unsigned int n = t->version == 4 ? 4 : 16;
	struct build p;
	char spec[32];
	uint8_t *addr;

	snprintf(spec, sizeof(spec), "eth/ip%d/%s", t->version, t->l4);
	p = build(spec);
	addr = p.b + p.l3 + (t->version == 4 ? 12 : 8);
	memcpy(addr, swap ? t->dst : t->src, n);
	memcpy(addr + n, swap ? t->src : t->dst, n);
	memcpy(p.b + p.l4, swap ? t->ports + 2 : t->ports, 2);
	memcpy(p.b + p.l4 + 2, swap ? t->ports : t->ports + 2, 2);
	fill(&p);
	return outcome_of(p.b, p.len, NULL, 0, 0, NFMETA_CLASSIFY_VLAN_IN_KEY);
}

/* Few different bytes, so that ends often share an address, a port or both. */
static struct tuple
random_tuple(void)
{
	static const char *const l4[] = {"tcp", "udp", "sctp"};
	struct tuple t;
	int i;

	t.version = random32() & 1 ? 4 : 6;
	t.l4 = l4[random32() % 3];
	for (i = 0; i < 16; i++) {
		t.src[i] = random32() % 16 ? 0x80 : (uint8_t)random32();
		t.dst[i] = random32() % 16 ? 0x80 : (uint8_t)random32();
	}
	for (i = 0; i < 4; i++)
		t.ports[i] = random32() % 3 ? 0x80 : (uint8_t)random32();
	return t;
}

START_TEST(both_directions_one_key)
{
	struct outcome one, two;
	struct tuple t;
	int i, order;

	for (i = 0; i < 50000; i++) {
		t = random_tuple();
		one = classify_tuple(&t, 0);
		two = classify_tuple(&t, 1);
		ck_assert_mem_eq(&one.key, &two.key, sizeof(one.key));
		order = memcmp(t.src, t.dst, t.version == 4 ? 4 : 16);
		if (order == 0)
			order = memcmp(t.ports, t.ports + 2, 2);
		ck_assert_int_eq((one.rec.flags & RV) != 0, order > 0);
		ck_assert_int_eq((two.rec.flags & RV) != 0, order < 0);
	}
}
END_TEST

/* (A, p1) - (B, p2) and (A, p2) - (B, p1) are two flows. */
START_TEST(ends_are_units)
{
	struct tuple t = {.version = 4, .l4 = "tcp", .src = {1}, .dst = {2}, .ports = {0, 1, 0, 2}};
	struct tuple u = {.version = 4, .l4 = "tcp", .src = {1}, .dst = {2}, .ports = {0, 2, 0, 1}};
	struct outcome one = classify_tuple(&t, 0), two = classify_tuple(&u, 0);

	ck_assert_mem_ne(&one.key, &two.key, sizeof(one.key));
	two = classify_tuple(&u, 1);
	ck_assert_mem_ne(&one.key, &two.key, sizeof(one.key));
}
END_TEST

static int
by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct nfmeta_flow_key));
}

START_TEST(distinct_flows_distinct_keys)
{
	enum {
		FLOWS = 100000
	};
	static const char *const l4[] = {"tcp", "udp", "sctp"};
	struct nfmeta_flow_key *keys = calloc(FLOWS, sizeof(*keys));
	struct tuple t = {.l4 = "tcp"};
	uint32_t i;

	/* the number is spread over all parts: none may be left out of the key */
	for (i = 0; i < FLOWS; i++) {
		t.version = i & 1 ? 4 : 6;
		t.l4 = l4[i / 2 % 3];
		t.src[3] = 1 + i / 6 % 8;
		t.dst[0] = 8;
		t.dst[1] = (uint8_t)(i / 48 % 8);
		t.ports[1] = (uint8_t)(i / 384 % 8);
		t.ports[2] = (uint8_t)(i / 3072 % 8);
		t.ports[3] = (uint8_t)(i / 24576);
		keys[i] = classify_tuple(&t, random32() & 1).key;
	}
	qsort(keys, FLOWS, sizeof(*keys), by_bytes);
	for (i = 1; i < FLOWS; i++)
		ck_assert_mem_ne(&keys[i - 1], &keys[i], sizeof(*keys));
	free(keys);
}
END_TEST

START_TEST(set_flow_gives_direction)
{
	struct nfmeta_record r = outcome_of_spec("eth/ip4/tcp:1:2/rev").rec;

	nfmeta_record_set_flow(&r, 5, 3, 1, 1); /* the first packet is never against itself */
	ck_assert_uint_eq(r.flags & (NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW | RV),
			  NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW);
	ck_assert_uint_eq(r.flow_id, 5);
	ck_assert_uint_eq(r.flow_gen, 3);
	r = outcome_of_spec("eth/ip4/tcp:2:1").rec;
	nfmeta_record_set_flow(&r, 5, 3, 1, 0);
	ck_assert_uint_eq(r.flags & (NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW | RV),
			  NFMETA_FLOW_KNOWN | RV);
}
END_TEST

/* ---- Cases from users of such systems ------------------------------------------------- */

START_TEST(case_10_fragments)
{
	static const uint32_t cut = 64;
	struct build p = build("eth/ip6/frag:8/proto:6/data:20");
	struct outcome o;

	/* a: 82 bytes in segments of 64 and 18 */
	ck_assert_uint_eq(p.len, 82);
	o = outcome_of(p.b, p.len, &cut, 1, 0, DEFAULT);
	ck_assert_uint_eq(o.rec.flags, V3 | FL);
	ck_assert_uint_eq(o.rec.l4_off, NO);
	ck_assert_uint_eq(o.rec.payload_off, NO);
	ck_assert_mem_eq(o.key.port_a, "\0\0\0", 4);
	ck_assert_uint_eq(o.key.fragment, 1);
	/* b: what looks like ports is payload */
	o = outcome_of_spec(
		"eth/ip4:0x00b9/proto:6/data:20/set:34:0/set:35:0x50/set:36:1/set:37:0xbb");
	ck_assert_uint_eq(o.rec.flags, V3 | G3 | FL);
	ck_assert_uint_eq(o.rec.l4_off, NO);
	ck_assert_mem_eq(o.key.port_a, "\0\0\0", 4);
	ck_assert_uint_eq(o.key.fragment, 1);
	/* c */
	o = outcome_of_spec("eth/ip4:0x2000/tcp:80:443/data:12");
	ck_assert_uint_eq(o.rec.flags, V4 | G3 | FF);
	ck_assert_uint_eq(port_a(&o), 80);
	ck_assert_uint_eq(port_b(&o), 443);
	ck_assert_uint_eq(o.key.fragment, 0);
}
END_TEST

START_TEST(case_11_ipv6_extensions)
{
	struct build p = build("eth/ip6/hop:8/dst:16/tcp:1:2");
	struct outcome o = whole(&p); /* compares with a second run, too */

	ck_assert_uint_eq(o.rec.l4_off, 78);
	ck_assert_uint_eq(o.key.proto, IPPROTO_TCP);
}
END_TEST

START_TEST(case_12_double_tags)
{
	static const char *const specs[] = {
		"eth/tag:0x88a8:301/tag:0x8100:345/ip4/tcp:1:2",
		"eth/tag:0x8100:345/ip4/tcp:1:2",
		"eth/ip4/tcp:1:2",
	};
	const uint64_t ol_flags[] = {
		0,
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED,
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ |
			RTE_MBUF_F_RX_QINQ_STRIPPED,
	};
	struct nfmeta_flow_key key;
	struct rte_mbuf *m;
	struct outcome o;
	struct build p;
	int i;

	for (i = 0; i < 3; i++) {
		p = build(specs[i]);
		m = packet_new(p.b, p.len, NULL, 0);
		m->ol_flags = ol_flags[i];
		m->vlan_tci = i == 1 ? 301 : 345;
		m->vlan_tci_outer = 301;
		o = packet_classify(m, DEFAULT);
		packet_free(m);
		ck_assert_uint_eq(o.rec.vlan_outer, 301);
		ck_assert_uint_eq(o.rec.vlan_inner, 345);
		ck_assert_uint_eq(o.rec.vlan_count, 2);
		if (i == 0)
			key = o.key;
		ck_assert_mem_eq(&o.key, &key, sizeof(key));
	}
}
END_TEST

START_TEST(case_13_key_bytes)
{
	struct build p = build("eth/tag:0x8100:42/ip4/tcp:40000:443");
	struct nfmeta_flow_key golden = {
		.addr_a = {192, 0, 2, 1},
		.addr_b = {198, 51, 100, 2},
		.port_a = {0x9c, 0x40},
		.port_b = {0x01, 0xbb},
		.proto = 6,
		.ip_version = 4,
	};
	struct outcome add, del;

	/* VLAN not part of the key */
	add = outcome_of(p.b, p.len, NULL, 0, 0, 0);
	p = build("eth/tag:0x8100:42/ip4/tcp:443:40000/rev");
	del = outcome_of(p.b, p.len, NULL, 0, 0, 0);
	ck_assert_mem_eq(&add.key, &golden, sizeof(golden));
	ck_assert_mem_eq(&del.key, &golden, sizeof(golden));
	/* part of it */
	golden.vlan[0][1] = 0x2a;
	add = outcome_of(p.b, p.len, NULL, 0, 0, NFMETA_CLASSIFY_VLAN_IN_KEY);
	ck_assert_mem_eq(&add.key, &golden, sizeof(golden));
}
END_TEST

START_TEST(case_14_checksum_verdicts)
{
	static const struct {
		const char *spec;
		uint16_t want;
	} t[] = {
		{UDP_NONE, 0},
		{UDP6_NONE, B4},
		{"eth/ip4:0x2000/udp:1:2", 0},
		{"eth/ip4:0x00b9/udp:1:2", 0},
		{"eth/ip4/udp:1:2/data:2/end/set:42:1", B4},
	};
	struct build p;
	size_t i;

	for (i = 0; i < RTE_DIM(t); i++) {
		p = build(t[i].spec);
		ck_assert_uint_eq(outcome_of(p.b, p.len, NULL, 0, L4(BAD), DEFAULT).rec.flags &
					  NFMETA_L4_CSUM_MASK,
				  t[i].want);
	}
}
END_TEST

/* ---- A real capture ---------------------------------------------------------------------- */

START_TEST(sample_capture)
{
	uint8_t b[65536], h[24];
	uint32_t len, cuts[2], n = 0;
	struct outcome one, two;
	char path[512], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s", __FILE__);
	slash = strrchr(path, '/');
	snprintf(slash != NULL ? slash + 1 : path, 64, "data/sample.pcap");
	f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s is missing", path);
	ck_assert_uint_eq(fread(h, 1, 24, f), 24);
	ck_assert_uint_eq(h[20], 1); /* Ethernet */
	while (fread(h, 1, 16, f) == 16) {
		len = h[8] | h[9] << 8;
		ck_assert_uint_eq(fread(b, 1, len, f), len);
		one = outcome_of(b, len, NULL, 0, 0, DEFAULT);
		cuts[0] = random32() % (len + 1);
		cuts[1] = cuts[0] + random32() % (len - cuts[0] + 1);
		two = outcome_of(b, len, cuts, 2, 0, DEFAULT);
		ck_assert_msg(outcome_same(&one, &two), "packet %u split at %u, %u", n, cuts[0],
			      cuts[1]);
		n++;
	}
	fclose(f);
	ck_assert_uint_gt(n, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("classify");
	TCase *tc = tcase_create("classify");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, every_kind, 0, RTE_DIM(kinds));
	tcase_add_test(tc, every_flag);
	tcase_add_loop_test(tc, bytes_cut_anywhere, 0, RTE_DIM(kinds));
	tcase_add_test(tc, bytes_behind_pkt_len);
	tcase_add_loop_test(tc, bytes_split_anywhere, 0, RTE_DIM(kinds));
	tcase_add_loop_test(tc, bits_flipped_anywhere, 0, RTE_DIM(kinds));
	tcase_add_test(tc, checksums_as_computed_plainly);
	tcase_add_loop_test(tc, nic_verdicts, 0, RTE_DIM(verdicts));
	tcase_add_test(tc, tags_stripped_and_in_the_bytes);
	tcase_add_test(tc, one_tag);
	tcase_add_test(tc, burst_and_no_keys);
	tcase_add_test(tc, both_directions_one_key);
	tcase_add_test(tc, ends_are_units);
	tcase_add_test(tc, distinct_flows_distinct_keys);
	tcase_add_test(tc, set_flow_gives_direction);
	tcase_add_test(tc, case_10_fragments);
	tcase_add_test(tc, case_11_ipv6_extensions);
	tcase_add_test(tc, case_12_double_tags);
	tcase_add_test(tc, case_13_key_bytes);
	tcase_add_test(tc, case_14_checksum_verdicts);
	tcase_add_test(tc, sample_capture);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
