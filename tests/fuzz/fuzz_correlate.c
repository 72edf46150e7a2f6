/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What the splitter reads in FTP control connections and in SIP: nothing behind the bytes
 * is read, what is found can be, and in segments it is the same.
 *
 *     byte 0     1: SIP; 2: by the server; 4: SIP over UDP; 8: IPv6; 16: little room
 *     bytes 1-3  where the packet is cut into segments, in 1/256 of it
 *     the rest   the payload
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../examples/splitter/announced.h"
#include "../../examples/splitter/splitter.h"
#include "../packet.h"

#define HEAD 4
#define SLOTS 4
#define MAX 4096 /* of a payload that is looked at */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char behind[] = "\r\nPORT 1,2,3,4,5,6\r\n227 (1,2,3,4,5,6)\r\nv=0\r\n"
			     "c=IN IP4 1.2.3.4\r\nm=audio 2000 RTP/AVP 0\r\n";

static void
must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* With as many bytes as there are, and not one more. */
static unsigned int
parse(uint8_t how, const uint8_t *data, size_t len, bool whole, struct announced *out)
{
	uint8_t *bytes = malloc(len);
	unsigned int n, i, k;

	memcpy(bytes, data, len);
	memset(out, 0xee, ANNOUNCED_MAX * sizeof(*out));
	n = (how & 1) != 0 ? sip_announced(bytes, len, whole, out)
			   : ftp_announced(bytes, len, (how & 2) != 0, out);
	free(bytes);
	must(n <= ANNOUNCED_MAX, "more than there is room for");
	for (i = 0; i < n; i++) {
		must(out[i].port >= 1024, "a port of a service");
		must(out[i].proto == IPPROTO_TCP || out[i].proto == IPPROTO_UDP, "a protocol");
		must(out[i].ip_version == 4 || out[i].ip_version == 6 ||
			     (out[i].ip_version == 0 && (how & 1) == 0),
		     "an address");
		for (k = out[i].ip_version == 6 ? 16 : out[i].ip_version; k < 16; k++)
			must(out[i].addr[k] == 0, "bytes behind an address are not 0");
	}
	return n;
}

static bool
same(const struct announced *a, const struct announced *b, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (memcmp(a[i].addr, b[i].addr, 16) != 0 || a[i].port != b[i].port ||
		    a[i].proto != b[i].proto || a[i].ip_version != b[i].ip_version)
			return false;
	return true;
}

static void
be16(uint8_t *at, size_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* A packet of a control session, with bytes behind it that are not the packet's. */
static struct rte_mbuf *
make(uint8_t how, const uint8_t *payload, size_t len, const uint8_t *where)
{
	static uint8_t bytes[14 + 40 + 20 + 65535 + sizeof(behind)];
	bool v6 = (how & 8) != 0, udp = (how & 5) == 5;
	size_t l3 = v6 ? 40 : 20, l4 = udp ? 8 : 20, total = l3 + l4 + len;
	uint8_t *ip = bytes + 14, *at = ip + l3;
	uint32_t cuts[3], i;

	memset(bytes, 0, 14 + l3 + l4);
	be16(bytes + 12, v6 ? 0x86dd : 0x0800);
	if (v6) {
		ip[0] = 0x60;
		be16(ip + 4, l4 + len);
		ip[6] = udp ? IPPROTO_UDP : IPPROTO_TCP;
		ip[8 + 15] = (how & 2) != 0 ? 2 : 1;
		ip[24 + 15] = (how & 2) != 0 ? 1 : 2;
	} else {
		ip[0] = 0x45;
		be16(ip + 2, total);
		ip[8] = 64;
		ip[9] = udp ? IPPROTO_UDP : IPPROTO_TCP;
		ip[12] = ip[16] = 10;
		ip[15] = (how & 2) != 0 ? 2 : 1;
		ip[19] = (how & 2) != 0 ? 1 : 2;
		memcpy(ip + 10, &(uint16_t){(uint16_t)~rte_raw_cksum(ip, 20)}, 2);
	}
	be16(at, (how & 2) != 0 ? ((how & 1) != 0 ? 5060 : 21) : 40000);
	be16(at + 2, (how & 2) != 0 ? 40000 : ((how & 1) != 0 ? 5060 : 21));
	if (udp) {
		be16(at + 4, 8 + len);
		be16(at + 6, 1); /* IPv6 wants one */
	} else {
		at[12] = 0x50;
	}
	memcpy(at + l4, payload, len);
	memcpy(at + l4 + len, behind, sizeof(behind));
	total += 14 + sizeof(behind);
	for (i = 0; where != NULL && i < 3; i++) {
		cuts[i] = (uint32_t)(where[i] * total / 256);
		if (i > 0 && cuts[i] < cuts[i - 1])
			cuts[i] = cuts[i - 1];
	}
	return packet_new(bytes, (uint32_t)total, cuts, where != NULL ? 3 : 0);
}

/* All that was announced is expected, wherever the packet is cut. */
static struct correlate_counts
whole_way(const uint8_t *head, const uint8_t *payload, size_t len, bool cut,
	  const struct announced *said, unsigned int n)
{
	struct correlate_opts o = {.max = (head[0] & 16) != 0 ? 3 : 64, .seconds = 10};
	struct first first = {.links = 1};
	struct flow_table t = {.slots = SLOTS, .hand = 1000, .first = &first};
	struct rte_mbuf *m = make(head[0], payload, len, cut ? head + 1 : NULL);
	/* without L4_CSUM: the checksum is not known, not bad */
	struct outcome p = packet_classify(m, NFMETA_CLASSIFY_VLAN_IN_KEY);
	unsigned int dir = (p.rec.flags & NFMETA_FLOW_REVERSE) != 0, i;
	struct correlate_counts counts;
	struct correlate *c;
	struct flow *f, *g;

	must(outcome_wrong(&p, m->pkt_len) == NULL && (p.rec.flags & NFMETA_L4_VALID) != 0,
	     "the packet that was made is none");
	t.flows = aligned_alloc(64, SLOTS * sizeof(*f));
	memset(t.flows, 0, SLOTS * sizeof(*f));
	must(correlate_parse("x", "ftp,sip", &o) == 0, "the options");
	c = correlate_open(&o, &t, 1);
	f = &t.flows[1];
	g = &t.flows[2];
	*f = (struct flow){.key = p.key, .used = 1, .queue = 7};
	correlate_first(c, f);
	must(f->control == ((head[0] & 1) != 0 ? CONTROL_SIP : CONTROL_FTP), "no control session");
	correlate_look(c, f, m, &p.rec, dir);
	counts = *correlate_counts(c, 1000);
	must(counts.expected <= n && (counts.expected > 0) == (n > 0), "more or less than is said");
	must(counts.expected == counts.waiting + counts.pushed_out, "one is not counted");
	must(counts.waiting <= o.max, "too many wait");
	for (i = 0; i < n && o.max == 64; i++) {
		*g = (struct flow){
			.key = {.proto = said[i].proto, .ip_version = said[i].ip_version},
			.used = 1};
		memcpy(g->key.addr_b, said[i].addr, 16);
		if (said[i].ip_version == 0) {
			memcpy(g->key.addr_b, dir == 0 ? f->key.addr_a : f->key.addr_b, 16);
			g->key.ip_version = f->key.ip_version;
		}
		be16(g->key.port_b, said[i].port);
		be16(g->key.port_a, 7);
		correlate_first(c, g);
		/* one flow for FTP, eight for SIP */
		must(g->queue == 7 || i >= ((head[0] & 1) != 0 ? 8 : 1),
		     "announced, but not expected");
	}
	counts = *correlate_counts(c, 2000);
	must(counts.waiting == 0, "waits for ever");
	correlate_close(c);
	free(t.flows);
	packet_free(m);
	return counts;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct announced one[ANNOUNCED_MAX], two[ANNOUNCED_MAX];
	struct correlate_counts a, b;
	unsigned int n, k;
	size_t len, end;
	bool whole;

	if (size < HEAD || size > HEAD + 65000)
		return 0;
	len = size - HEAD;
	n = parse(data[0], data + HEAD, len, true, one);

	/* a line without an end says nothing, unless there is nothing behind it */
	n = parse(data[0], data + HEAD, len, false, one);
	for (end = len; end > 0 && data[HEAD + end - 1] != '\n';)
		end--;
	k = parse(data[0], data + HEAD, end, true, two);
	must(n == k && same(one, two, n), "half a line was used");

	whole = (data[0] & 5) == 5 && len <= MAX;
	n = parse(data[0], data + HEAD, len < MAX ? len : MAX, whole, one);
	a = whole_way(data, data + HEAD, len, false, one, n);
	b = whole_way(data, data + HEAD, len, true, one, n);
	must(memcmp(&a, &b, sizeof(a)) == 0, "in segments it is another");
	return 0;
}
