/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include "nfmeta-fastclick.h"

/* ---- queues ------------------------------------------------------------------------ */

/* Every bit of the result depends on every one of x (the finisher of MurmurHash3). */
static uint32_t
mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x85ebca6b;
	x ^= x >> 13;
	x *= 0xc2b2ae35;
	return x ^ x >> 16;
}

/* The sum is the same for both directions. */
static uint32_t
pair_of(uint32_t a, uint32_t b)
{
	return mix(mix(a) + mix(b));
}

static uint32_t
fold(const uint8_t *addr)
{
	return mix(mix(mix(fc_word(addr)) ^ fc_word(addr + 4)) ^ fc_word(addr + 8)) ^
	       fc_word(addr + 12);
}

uint32_t
fc_pair(const uint8_t *data, uint32_t len, uint16_t l3_off)
{
	const uint8_t *ip = data + l3_off;

	if (l3_off == NFMETA_OFF_NONE || len < (uint32_t)l3_off + 20)
		return 0;
	if (ip[0] >> 4 == 4)
		return pair_of(fc_word(ip + 12), fc_word(ip + 16));
	if (ip[0] >> 4 == 6 && len >= (uint32_t)l3_off + 40)
		return pair_of(fold(ip + 8), fold(ip + 24));
	return 0;
}

uint32_t
fc_pair_of_key(const struct nfmeta_flow_key *key)
{
	if (key->ip_version == 4)
		return pair_of(fc_word(key->addr_a), fc_word(key->addr_b));
	if (key->ip_version == 6)
		return pair_of(fold(key->addr_a), fold(key->addr_b));
	return 0;
}

/* ---- the record ---------------------------------------------------------------------- */

/* Ethernet and its tags end where the IP header begins. */
static bool
ether_is_whole(struct nfmeta_record *r, const uint8_t *data, uint16_t l3_off)
{
	uint32_t off = 12, type;
	uint8_t tags = 0;

	if (likely(l3_off == 14))
		return fc_be16(data + 12) == 0x0800;
	for (; off + 2 <= l3_off && tags <= 8; off += 4) {
		type = fc_be16(data + off);
		if (type == 0x0800 && off + 2 == l3_off) {
			r->vlan_count = tags;
			return true;
		}
		if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
			return false;
		if (off + 4 > l3_off)
			return false;
		if (tags == 0)
			r->vlan_outer = (uint16_t)fc_be16(data + off + 2);
		else if (tags == 1)
			r->vlan_inner = (uint16_t)fc_be16(data + off + 2);
		tags++;
	}
	return false;
}

/* A source route: the pseudo-header has another address than the header. */
static bool
source_route(const uint8_t *ip, uint32_t header)
{
	uint32_t i = 20;

	while (i < header && ip[i] != 0) {
		if (ip[i] == 131 || ip[i] == 137)
			return true;
		if (ip[i] == 1)
			i++;
		else if (i + 1 < header && ip[i + 1] >= 2)
			i += ip[i + 1];
		else
			break;
	}
	return false;
}

/* The source is the higher end of the canonical key: address and port are one unit. */
static bool
from_end_b(const uint8_t *ip, const uint8_t *ports)
{
	uint32_t src = rte_be_to_cpu_32(fc_word(ip + 12)), dst = rte_be_to_cpu_32(fc_word(ip + 16));

	return src > dst || (src == dst && ports != NULL && fc_be16(ports) > fc_be16(ports + 2));
}

/* there: bytes that the IP datagram has for L4, at least 4. */
static uint32_t
stamp_l4(struct nfmeta_record *r, const uint8_t *ip, uint32_t ip_header, uint32_t there, bool whole,
	 unsigned int checked)
{
	const bool first = (r->flags & NFMETA_FRAG_FIRST) != 0;
	const uint8_t *l4 = ip + ip_header;
	uint32_t header, udp, type;
	bool good;

	switch (ip[9]) {
	case IPPROTO_TCP:
		header = there >= 20 ? (uint32_t)(l4[12] >> 4) * 4 : 0;
		if (header < 20)
			header = UINT32_MAX; /* no such header */
		good = (checked & FC_CHECKED_TCP) != 0;
		type = RTE_PTYPE_L4_TCP;
		break;
	case IPPROTO_UDP:
		header = 8;
		udp = there >= 8 ? fc_be16(l4 + 4) : 0;
		whole = whole && udp >= 8 && (udp <= there || first);
		good = (checked & FC_CHECKED_UDP) != 0 && there >= 8 && fc_be16(l4 + 6) != 0;
		type = RTE_PTYPE_L4_UDP;
		if (fc_is_tunnel(fc_be16(l4 + 2)))
			r->flags |= NFMETA_TUNNEL_OUTER;
		break;
	case IPPROTO_SCTP:
		header = 12;
		good = false;
		type = RTE_PTYPE_L4_SCTP;
		break;
	case IPPROTO_ICMP:
		header = 8;
		good = (checked & FC_CHECKED_ICMP) != 0;
		type = RTE_PTYPE_L4_ICMP;
		break;
	default:
		return 0;
	}
	r->l4_off = (uint16_t)(r->l3_off + ip_header);
	if (unlikely(fc_word(ip + 12) == fc_word(ip + 16)) && ip[9] != IPPROTO_ICMP &&
	    from_end_b(ip, l4))
		r->flags |= NFMETA_FLOW_REVERSE;
	if (there < header)
		return type;
	r->payload_off = (uint16_t)(r->l4_off + header);
	if (!whole)
		return type;
	r->flags |= NFMETA_L4_VALID;
	if (good && !first && (ip_header == 20 || !source_route(ip, ip_header)))
		r->flags |= NFMETA_L4_CSUM_GOOD;
	return type;
}

void
fc_plain_init(struct fc_plain_words *plain, unsigned int checked)
{
	const uint64_t all = NFMETA_ABI_MAJOR | NFMETA_RECORD_CORE << 8 |
			     FC_FLAG(NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_L4_VALID) |
			     ((checked & FC_CHECKED_IP) != 0 ? FC_FLAG(NFMETA_L3_CSUM_GOOD) : 0);

	plain->tcp = plain->udp = plain->udp_absent = all;
	if ((checked & FC_CHECKED_TCP) != 0)
		plain->tcp |= FC_FLAG(NFMETA_L4_CSUM_GOOD);
	if ((checked & FC_CHECKED_UDP) != 0)
		plain->udp |= FC_FLAG(NFMETA_L4_CSUM_GOOD);
}

uint32_t
fc_stamp(struct nfmeta_record *r, const uint8_t *data, uint32_t len, uint16_t l3_off,
	 unsigned int checked)
{
	const uint32_t ipv4 = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN;
	const uint8_t *ip = data + l3_off;
	uint32_t header, total, fragment, there, type;
	struct fc_plain_words plain;
	uint64_t core[2];
	bool whole;

	if (likely(l3_off == FC_PLAIN_OFF)) {
		fc_plain_init(&plain, checked);
		type = fc_plain(&plain, data, len, core);
		if (likely(type != 0)) {
			core[0] &= ~UINT64_C(0xff00); /* r may be of another size */
			core[0] |= (uint64_t)r->size << 8;
			memcpy(r, core, sizeof(core));
			if (fc_plain_reverse(data))
				r->flags |= NFMETA_FLOW_REVERSE;
			return type;
		}
	}
	if (l3_off == NFMETA_OFF_NONE || len < (uint32_t)l3_off + 20 || ip[0] >> 4 != 4)
		return 0;
	header = (uint32_t)(ip[0] & 15) * 4;
	if (header < 20 || len > 65535 || !ether_is_whole(r, data, l3_off))
		return 0;
	r->flags |= NFMETA_L2_VALID;
	r->l3_off = l3_off;
	there = len - l3_off;
	total = fc_be16(ip + 2);
	fragment = fc_be16(ip + 6) & 0x3fff;
	if (from_end_b(ip, NULL))
		r->flags |= NFMETA_FLOW_REVERSE;
	if (ip[9] == IPPROTO_GRE || ip[9] == IPPROTO_IPIP || ip[9] == IPPROTO_IPV6)
		r->flags |= NFMETA_TUNNEL_OUTER;
	if ((fragment & 0x1fff) != 0)
		r->flags |= NFMETA_FRAG_LATER;
	else if (fragment != 0)
		r->flags |= NFMETA_FRAG_FIRST;
	if (header > there)
		return ipv4;
	if ((checked & FC_CHECKED_IP) != 0)
		r->flags |= NFMETA_L3_CSUM_GOOD;
	whole = total >= header && total <= there;
	if (whole)
		r->flags |= NFMETA_L3_VALID;
	if ((r->flags & NFMETA_FRAG_LATER) != 0)
		return ipv4 | RTE_PTYPE_L4_FRAG;
	if (total == 0) /* captured before the NIC cut it */
		total = there;
	if (total < header + 4 || there < header + 4)
		return ipv4;
	there = RTE_MIN(total, there) - header;
	type = stamp_l4(r, ip, header, there, whole, checked);
	return ipv4 | (fragment != 0 ? RTE_PTYPE_L4_FRAG : type);
}
