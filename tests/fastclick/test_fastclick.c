/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What the FastClick elements decide, without FastClick: records from annotations
 * against classify, flow ids, what is told to the NF and when, copies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <check.h>
#include <pcap/pcap.h>

#define POOL_SIZE 2047

#include "../oneproc.h"
#include "../packet.h"
#include "nfmeta-fastclick.h"

#define ALL                                                                                        \
	(NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |                            \
	 NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS))
#define CHECKED_ALL (FC_CHECKED_IP | FC_CHECKED_TCP | FC_CHECKED_UDP | FC_CHECKED_ICMP)

/* For loops: Check notes in a file where every ck_assert was. */
#define must(c)                                                                                    \
	do {                                                                                       \
		if (!(c))                                                                          \
			ck_abort_msg("not so: %s", #c);                                            \
	} while (0)

static const struct nfmeta_flow_batch *msg;
static struct fc_flows flows;

static uint64_t
draw(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* ---- records ------------------------------------------------------------------------- */

/* One packet by both ways; returns whether there was something to compare. */
static bool
same(const uint8_t *bytes, uint32_t len)
{
	const uint16_t csum = NFMETA_L3_CSUM_MASK | NFMETA_L4_CSUM_MASK;
	struct rte_mbuf *m = segment_new(bytes, len);
	struct nfmeta_flow_key key;
	struct nfmeta_record c, r;
	uint32_t type;
	bool v4;

	nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, &m, 1, &c, &key);
	v4 = c.l3_off != NFMETA_OFF_NONE && bytes[c.l3_off] >> 4 == 4;
	if (v4) {
		nfmeta_record_init(&r);
		type = fc_stamp(&r, m->buf_addr, len, c.l3_off, CHECKED_ALL);
		if ((r.flags & ~csum) != (c.flags & ~csum) || r.l4_off != c.l4_off ||
		    r.l3_off != c.l3_off || r.payload_off != c.payload_off ||
		    r.vlan_count != c.vlan_count || r.vlan_outer != c.vlan_outer ||
		    r.vlan_inner != c.vlan_inner)
			ck_abort_msg(
				"flags %#x for %#x, offsets %u %u %u for %u %u %u, tags %u for %u, "
				"length %u",
				r.flags, c.flags, r.l3_off, r.l4_off, r.payload_off, c.l3_off,
				c.l4_off, c.payload_off, r.vlan_count, c.vlan_count, len);
		/* Good is what classify could judge, and nothing else. */
		must((r.flags & NFMETA_L4_CSUM_GOOD) == 0 || (c.flags & NFMETA_L4_CSUM_MASK) != 0);
		must((c.flags & NFMETA_L4_CSUM_GOOD) == 0 || (r.flags & NFMETA_L4_CSUM_GOOD) != 0 ||
		     bytes[c.l3_off + 9] == 132);
		must((r.flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) == 0);
		if (r.l4_off != NFMETA_OFF_NONE &&
		    (type & RTE_PTYPE_L4_MASK) != (m->packet_type & RTE_PTYPE_L4_MASK))
			ck_abort_msg("type %#x for %#x, flags %#x", type, m->packet_type, r.flags);
		/* nothing was checked: no checksum is good */
		nfmeta_record_init(&r);
		fc_stamp(&r, m->buf_addr, len, c.l3_off, 0);
		must((r.flags & csum) == 0);
		/* the core alone is the beginning of the whole */
		fc_record_core(&r);
		must(r.size == NFMETA_RECORD_CORE && r.flags == 0 && r.l3_off == NFMETA_OFF_NONE &&
		     r.l4_off == NFMETA_OFF_NONE && r.payload_off == NFMETA_OFF_NONE &&
		     r.flow_gen == 0 && r.abi == NFMETA_ABI_MAJOR);
		must(fc_pair(m->buf_addr, len, c.l3_off) == fc_pair_of_key(&key));
	}
	packet_free(m);
	return v4;
}

/* Every packet of the captures, and each with bytes changed and cut off. */
START_TEST(stamp_is_classify)
{
	char errors[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const uint8_t *bytes;
	unsigned long n = 0;
	uint8_t copy[2048];
	pcap_t *p;
	int i;

	p = pcap_open_offline(CAPTURE, errors);
	ck_assert_msg(p != NULL, "%s", errors);
	while (pcap_next_ex(p, &h, &bytes) == 1) {
		uint32_t len = RTE_MIN(h->caplen, (uint32_t)sizeof(copy));

		n += same(bytes, len);
		for (i = 0; i < 200; i++) {
			uint64_t x = draw();
			uint32_t cut = len;

			memcpy(copy, bytes, len);
			copy[x % RTE_MIN(len, 60U)] = (uint8_t)(x >> 8);
			if ((x & 0x10000) != 0)
				copy[12 + (x >> 20) % RTE_MIN(len - 12, 30U)] ^=
					(uint8_t)(1 << (x >> 30) % 8);
			if ((x & 0x20000) != 0)
				cut = 1 + (uint32_t)(x >> 40) % len;
			n += same(copy, cut);
		}
	}
	pcap_close(p);
	ck_assert_uint_gt(n, 10000);
}
END_TEST

/* An annotation that points elsewhere promises nothing and reads nothing beyond. */
START_TEST(stamp_of_nonsense)
{
	struct nfmeta_record r;
	uint8_t bytes[64];
	int i;

	for (i = 0; i < 200000; i++) {
		uint32_t len = (uint32_t)(draw() % sizeof(bytes)), k;
		uint8_t *exact = malloc(len + (len == 0));

		for (k = 0; k < len; k++)
			exact[k] = (uint8_t)draw();
		nfmeta_record_init(&r);
		fc_stamp(&r, exact, len, (uint16_t)(draw() % 80), CHECKED_ALL);
		must((r.flags & NFMETA_L3_VALID) == 0 || (r.flags & NFMETA_L2_VALID) != 0);
		fc_pair(exact, len, (uint16_t)(draw() % 80));
		free(exact);
	}
	memset(bytes, 0, sizeof(bytes));
	bytes[14] = 0x45; /* an IP header behind what is not Ethernet with IP */
	nfmeta_record_init(&r);
	ck_assert_uint_eq(fc_stamp(&r, bytes, 64, 14, CHECKED_ALL), 0);
	ck_assert_uint_eq(r.flags, 0);
	ck_assert_uint_eq(r.l3_off, NFMETA_OFF_NONE);
}
END_TEST

/* UDP to each port there is: it is a tunnel for both, or for none. */
START_TEST(tunnels)
{
	static const uint16_t known[] = {2152, 4789, 6081};
	uint8_t bytes[60] = {[12] = 0x08, [14] = 0x45, [17] = 46, [22] = 64, [23] = 17,
			     [26] = 10,	  [30] = 11,   [34] = 4,  [39] = 26};
	struct nfmeta_record r;
	unsigned int n = 0, i;

	for (i = 0; i < 65536; i++) {
		bytes[36] = (uint8_t)(i >> 8);
		bytes[37] = (uint8_t)i;
		nfmeta_record_init(&r);
		fc_stamp(&r, bytes, sizeof(bytes), 14, CHECKED_ALL);
		if ((r.flags & NFMETA_TUNNEL_OUTER) != 0)
			must(n < RTE_DIM(known) && i == known[n++]);
		else
			must((r.flags & NFMETA_L4_VALID) != 0);
		if (i % 64 == 0 || (r.flags & NFMETA_TUNNEL_OUTER) != 0)
			must(same(bytes, sizeof(bytes)));
	}
	ck_assert_uint_eq(n, RTE_DIM(known));
}
END_TEST

/* ---- flows ----------------------------------------------------------------------------- */

/* A plain packet's record is the same by the short way and by the long one. */
START_TEST(short_way)
{
	uint8_t bytes[60] = {[12] = 0x08, [14] = 0x45, [17] = 46, [22] = 64,  [23] = 6,
			     [26] = 10,	  [30] = 11,   [34] = 4,  [46] = 0x50};
	struct fc_plain_words plain;
	uint64_t core[2], was[2];
	struct nfmeta_record r;
	struct fc_flow *flow;
	int reverse;

	ck_assert_int_eq(fc_flows_init(&flows, 64), 0);
	fc_flows_number(&flows, 2, 3);
	fc_plain_init(&plain, FC_CHECKED_IP | FC_CHECKED_TCP);
	fc_begin(&flows, 40);
	flow = fc_begin(&flows, 41);
	flow->generation = 0x8001;
	ck_assert_uint_ne(fc_plain(&plain, bytes, sizeof(bytes), core), 0);
	memcpy(was, core, sizeof(was));
	ck_assert(!fc_put_plain(&flows, 0, core, 1));
	ck_assert(!fc_put_plain(&flows, 42, core, 1));
	ck_assert(!fc_put_plain(&flows, 41, core, 1)); /* the NF has to be told of it */
	ck_assert_mem_eq(core, was, sizeof(was));
	fc_put_flow(&flows, flow, &r, 0, 0);
	for (reverse = 0; reverse < 2; reverse++) {
		fc_record_core(&r);
		ck_assert_uint_ne(
			fc_stamp(&r, bytes, sizeof(bytes), 14, FC_CHECKED_IP | FC_CHECKED_TCP), 0);
		fc_put_flow(&flows, flow, &r, reverse, 0);
		fc_plain(&plain, bytes, sizeof(bytes), core);
		ck_assert(fc_put_plain(&flows, 41, core, reverse));
		ck_assert_mem_eq(core, &r, sizeof(core));
		ck_assert_uint_eq(r.flags & NFMETA_FLOW_REVERSE,
				  reverse != 0 ? NFMETA_FLOW_REVERSE : 0);
		ck_assert_uint_eq(r.flow_gen, 0x8001);
	}
	fc_flows_free(&flows);
}
END_TEST

START_TEST(ids)
{
	struct fc_flow *a, *b;
	uint32_t id;
	int i;

	ck_assert_int_eq(fc_flows_init(&flows, 64), 0);
	fc_flows_number(&flows, 2, 3);
	a = fc_begin(&flows, 1);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(fc_begin(&flows, 1), a);
	ck_assert_uint_eq(flows.c.begun, 1);
	id = fc_id(&flows, a);
	ck_assert_uint_eq(id % 4, 2); /* 2 bits for 3 */
	ck_assert_ptr_eq(fc_by_id(&flows, id, 1), a);
	ck_assert_ptr_null(fc_by_id(&flows, id, 2));
	ck_assert_ptr_null(fc_by_id(&flows, id + 1, 1)); /* another instance's */
	ck_assert_ptr_null(fc_by_id(&flows, UINT32_MAX, 1));
	ck_assert_ptr_null(fc_find(&flows, 2));
	for (i = 2; i <= 64; i++)
		must(fc_begin(&flows, (uint32_t)i) != NULL);
	ck_assert_ptr_null(fc_begin(&flows, 65)); /* full */
	ck_assert_uint_eq(flows.c.no_room, 1);
	fc_end(&flows, 65, NFMETA_END_NONE); /* that one ends, too: not known */
	ck_assert_uint_eq(flows.nending, 0);
	fc_end(&flows, 1, NFMETA_END_NONE);
	fc_end(&flows, 1, NFMETA_END_NONE); /* twice is once */
	ck_assert_uint_eq(flows.nending, 1);
	ck_assert_ptr_eq(fc_find(&flows, 1), a); /* packets of it may still come */
	ck_assert_ptr_null(fc_begin(&flows, 66));
	fc_flush(&flows);
	ck_assert_ptr_null(fc_find(&flows, 1));
	b = fc_begin(&flows, 67);
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(b->generation, 2); /* the id again, with the next generation */
	ck_assert_ptr_null(fc_by_id(&flows, id, 1));
	/* ids come again as late as can be */
	a = fc_find(&flows, 3);
	fc_end(&flows, 3, NFMETA_END_NONE);
	fc_flush(&flows);
	fc_end(&flows, 2, NFMETA_END_NONE);
	fc_flush(&flows);
	ck_assert_ptr_eq(fc_begin(&flows, 68), a);
	ck_assert_ptr_ne(fc_begin(&flows, 69), a);
	fc_end_all(&flows, NFMETA_END_STOPPED);
	fc_flush(&flows);
	ck_assert_uint_eq(flows.c.begun, flows.c.ended);
	fc_flows_free(&flows);
}
END_TEST

/* Against a table of which nothing can be wrong. */
START_TEST(whatever_begins_and_ends)
{
	enum {
		N = 4096,
		ROOM = 512
	};
	static bool there[N];
	unsigned int live = 0, i, k;

	memset(there, 0, sizeof(there));
	ck_assert_int_eq(fc_flows_init(&flows, ROOM), 0);
	for (i = 0; i < 300000; i++) {
		uint32_t a = (uint32_t)(draw() % N) * (i % 2 ? 1 : 1024); /* crowds in the index */

		k = a % N;
		if (a >= N || draw() % 3 != 0) {
			a = k;
			if (!there[a] && live < ROOM) {
				must(fc_begin(&flows, a) != NULL);
				there[a] = true;
				live++;
			}
		} else if (there[a]) {
			fc_end(&flows, a, 0);
			fc_flush(&flows);
			there[a] = false;
			live--;
		}
		must((fc_find(&flows, k) != NULL) == there[k]);
		must(flows.c.begun - flows.c.ended == live);
	}
	for (i = 0; i < N; i++) {
		struct fc_flow *f = fc_find(&flows, i);

		must((f != NULL) == there[i]);
		must(f == NULL || f->aggregate == i);
	}
	fc_flows_free(&flows);
}
END_TEST

/* ---- messages ---------------------------------------------------------------------------- */

static void
open_link(uint8_t carrier)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.carrier = carrier, .blanks = 16, .pool = pool,
						     .queues = 2, .when_full = NFMETA_FULL_DROP);

	ck_ok(nfmeta_link_create("fc", &o, &link_p));
	ck_ok(nfmeta_link_attach("fc", 0, 0, &link_n));
	ck_assert_int_eq(fc_flows_init(&flows, 2048), 0);
	flows.link = link_p;
	flows.queues = 2;
	flows.told = calloc(2, sizeof(*flows.told));
}

static void
collect(uint64_t now)
{
	struct rte_mbuf *m[32];
	uint8_t how[32];
	uint16_t n;

	while ((n = nfmeta_collect_burst(link_p, 0, m, how, 32)) != 0)
		rte_pktmbuf_free_bulk(m, n);
	while (fc_collect(&flows, 0, now, 1) != 0)
		;
}

/* Subscribed and told what there is, in however many messages. */
static unsigned int
subscribe(void)
{
	unsigned int told = 0, rounds;

	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	for (rounds = 0; rounds < 1000; rounds++) {
		collect(0);
		while (nfmeta_flow_next(link_n, &msg) == 1) {
			must(msg->type == NFMETA_MSG_SNAPSHOT);
			told += msg->count;
			if ((msg->flags & NFMETA_MSG_LAST) != 0)
				return told;
		}
	}
	ck_abort_msg("no whole snapshot");
	return 0;
}

static void
close_link(void)
{
	ck_ok(nfmeta_link_detach(link_n));
	collect(0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	fc_flows_free(&flows);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}

/* A packet of an aggregate to queue 0, as ToNfmeta does it. */
static struct nfmeta_record
send_one(uint32_t aggregate, int reverse)
{
	struct fc_flow *flow = fc_find(&flows, aggregate);
	struct rte_mbuf *m = fc_copy(pool, "0123456789", 10);
	struct nfmeta_record r;

	must(flow != NULL && m != NULL);
	nfmeta_record_init(&r);
	r.flags = NFMETA_FLOW_REVERSE; /* what classify says without a flow is not to count */
	must(fc_put_flow(&flows, flow, &r, reverse, 0) == 0);
	fc_tell_new(&flows, 0);
	nfmeta_record_set(nfmeta_link_field(link_p), m, &r);
	must(nfmeta_send_burst(link_p, 0, &m, 1) == 1);
	return r;
}

/* The NF receives what there is until a message is due; returns how many packets. */
static unsigned int
receive(void)
{
	struct nfmeta_record r[32];
	struct rte_mbuf *m[32];
	unsigned int all = 0;
	uint16_t n;

	while ((n = nfmeta_recv_burst(link_n, m, r, 32)) != 0) {
		nfmeta_return_burst(link_n, m, NULL, n);
		all += n;
	}
	return all;
}

static void
expect(uint8_t type, unsigned int count)
{
	int rc = nfmeta_flow_next(link_n, &msg);

	ck_assert_int_eq(rc, 1);
	ck_assert_uint_eq(msg->type, type);
	ck_assert_uint_eq(msg->count, count);
}

static const uint8_t carriers[] = {NFMETA_CARRIER_RING, NFMETA_CARRIER_INBAND};

/* NEW is before the first packet, the end behind the last, though it came between. */
START_TEST(order)
{
	const struct nfmeta_flow_delete *d;
	struct nfmeta_record r;

	open_link(carriers[_i]);
	ck_assert(fc_settled(&flows)); /* nobody listens */
	ck_assert_uint_eq(subscribe(), 0);
	fc_begin(&flows, 7);
	r = send_one(7, 0);
	ck_assert_uint_eq(r.flags, NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW);
	fc_end(&flows, 7, NFMETA_END_NONE); /* the SYN behind ends it, in the same burst */
	fc_begin(&flows, 8);
	r = send_one(7, 1);
	ck_assert_uint_eq(r.flags, NFMETA_FLOW_KNOWN | NFMETA_FLOW_REVERSE);
	send_one(8, 0);
	fc_flush(&flows);

	ck_assert(!fc_settled(&flows)); /* the NF has read none of it */
	ck_assert_uint_eq(receive(), 0);
	expect(NFMETA_MSG_NEW, 1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(), 2);
	expect(NFMETA_MSG_NEW, 1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(), 1);
	expect(NFMETA_MSG_DELETE, 1);
	d = nfmeta_flow_entry(msg, 0);
	ck_assert_uint_eq(d->flow_id, r.flow_id);
	ck_assert_uint_eq(d->flow_gen, r.flow_gen);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	/* as when the link is closed: an NF says how far it is when it is asked */
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0));
	receive();
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	collect(0);
	ck_assert(fc_settled(&flows));
	close_link();
}
END_TEST

/* 700 ends are 3 messages; flows that the NF never saw are none. */
START_TEST(batches)
{
	unsigned int deletes = 0, messages = 0, counters = 0, i;

	open_link(carriers[_i]);
	subscribe();
	for (i = 1; i <= 700; i++) {
		fc_begin(&flows, i);
		send_one(i, 0);
		receive();
		while (nfmeta_flow_next(link_n, &msg) == 1)
			must(msg->type == NFMETA_MSG_NEW);
		receive();
		collect(0);
	}
	for (; i <= 800; i++)
		fc_begin(&flows, i);
	for (i = 1; i <= 60; i++)
		fc_pass(fc_find(&flows, i), i % 2, 100);
	fc_end_all(&flows, NFMETA_END_STOPPED);
	ck_assert_uint_eq(flows.nending, 800);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0); /* nothing is told before */
	fc_flush(&flows);
	for (i = 0; i < 100; i++) {
		receive();
		if (nfmeta_flow_next(link_n, &msg) != 1)
			continue;
		if (msg->type == NFMETA_MSG_DELETE) {
			deletes += msg->count;
			messages++;
		} else {
			const struct nfmeta_flow_counters *c = nfmeta_flow_entry(msg, 0);

			must(msg->type == NFMETA_MSG_COUNTERS && deletes == 0);
			must(c->packets[0] + c->packets[1] == 1 &&
			     c->bytes[0] + c->bytes[1] == 100);
			counters += msg->count;
		}
	}
	ck_assert_uint_eq(deletes, 700);
	ck_assert_uint_eq(messages, 3);
	ck_assert_uint_eq(counters, 60);
	ck_assert_uint_eq(flows.c.told_deletes, 700);
	ck_assert_uint_eq(flows.c.delete_messages, 3);
	ck_assert_uint_eq(flows.c.ended, 800);
	close_link();
}
END_TEST

/* What the NF decides is done for that flow, and told back; for one that has ended it is not. */
START_TEST(verdicts)
{
	struct nfmeta_flow_verdict v = {.verdict = NFMETA_ACTION_SHUNT, .after = 2};
	struct nfmeta_record r;
	struct fc_flow *flow;

	open_link(carriers[_i]);
	subscribe();
	fc_begin(&flows, 5);
	r = send_one(5, 0);
	receive();
	expect(NFMETA_MSG_NEW, 1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	receive();
	v.flow_id = r.flow_id;
	v.flow_gen = r.flow_gen;
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	v.flow_gen++;
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	collect(1000);
	ck_assert_uint_eq(flows.c.verdicts, 2);
	ck_assert_uint_eq(flows.c.verdicts_applied, 1);
	ck_assert_uint_eq(flows.c.verdicts_late, 1);
	flow = fc_find(&flows, 5);
	ck_assert_uint_eq(nfmeta_flow_act(&flow->decision, 1000), NFMETA_ACTION_INSPECT);
	ck_assert_uint_eq(nfmeta_flow_act(&flow->decision, 1000), NFMETA_ACTION_INSPECT);
	ck_assert_uint_eq(nfmeta_flow_act(&flow->decision, 1000), NFMETA_ACTION_SHUNT);
	receive();
	expect(NFMETA_MSG_UPDATE, 1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	/* another NF's flow is not this one's to decide */
	flow->queue = 1;
	v.flow_gen = r.flow_gen;
	v.verdict = NFMETA_ACTION_DROP;
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	collect(1000);
	ck_assert_uint_eq(flows.c.verdicts_late, 2);
	ck_assert_uint_eq(flow->decision.action, NFMETA_ACTION_SHUNT);
	flow->queue = 0;
	/* while it ends nothing is decided any more, and the next flow under the id has none */
	fc_end(&flows, 5, 0);
	v.flow_gen = r.flow_gen;
	v.verdict = NFMETA_ACTION_DROP;
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	collect(1000);
	ck_assert_uint_eq(flows.c.verdicts_late, 3);
	fc_flush(&flows);
	flows.used = flows.nslots; /* no fresh ones: the id comes again */
	flow = fc_begin(&flows, 6);
	ck_assert_uint_eq(fc_id(&flows, flow), r.flow_id);
	ck_assert_uint_eq(flow->decision.action, NFMETA_ACTION_NONE);
	flows.used = 1;
	receive();
	expect(NFMETA_MSG_DELETE, 1);
	close_link();
}
END_TEST

/* A late NF is told what there is: flows that packets were sent of, to its queue. */
START_TEST(late_nf)
{
	struct nfmeta_record r;
	unsigned int i;

	open_link(carriers[_i]);
	for (i = 1; i <= 1000; i++) {
		fc_begin(&flows, i);
		if (i <= 600)
			send_one(i, 0);
		else if (i <= 900) /* to the other queue */
			fc_put_flow(&flows, fc_find(&flows, i), &r, 0, 1);
		receive();
		collect(0);
	}
	ck_assert_uint_eq(subscribe(), 600);
	ck_assert_uint_eq(flows.c.resyncs, 1);
	ck_assert_uint_eq(flows.c.resyncs_answered, 1);
	/* who asks once more is told all once more */
	ck_assert_uint_eq(subscribe(), 600);
	ck_assert_uint_eq(flows.c.resyncs_answered, 2);
	close_link();
}
END_TEST

/* ---- copies -------------------------------------------------------------------------------- */

START_TEST(copies)
{
	static const uint32_t sizes[] = {0, 1, 60, 1918, 1919, 2048, 2049, 9014, 65535};
	static uint8_t bytes[65536], back[65536];
	struct rte_mbuf *m[16], *hold[POOL_SIZE];
	unsigned int i, n = 0;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)draw();
	for (i = 0; i < RTE_DIM(sizes); i++) {
		const void *at;

		m[0] = fc_copy(pool, bytes, sizes[i]);
		ck_assert_ptr_nonnull(m[0]);
		ck_assert_uint_eq(rte_pktmbuf_pkt_len(m[0]), sizes[i]);
		ck_assert_uint_eq(m[0]->data_off, RTE_PKTMBUF_HEADROOM);
		ck_assert_int_eq(rte_mbuf_check(m[0], 1, &(const char *){NULL}), 0);
		at = rte_pktmbuf_read(m[0], 0, sizes[i], back);
		ck_assert_int_eq(memcmp(at, bytes, sizes[i]), 0);
		rte_pktmbuf_free(m[0]);
	}
	while (n < POOL_SIZE - 3 && (hold[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	ck_assert_ptr_null(fc_copy(pool, bytes, 9014)); /* wants 5, there are 3 */
	ck_assert_uint_eq(rte_mempool_avail_count(pool), 3);
	rte_pktmbuf_free_bulk(hold, n);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}
END_TEST

int
main(void)
{
	TCase *plain = tcase_create("plain"), *eal = tcase_create("eal");
	const char *run = getenv("NFMETA_RUN_ID");
	Suite *s = suite_create("fastclick");
	SRunner *r;
	char dir[128];
	int failed;

	snprintf(prefix, sizeof(prefix), "%s-fc-%d", run != NULL ? run : "nfmeta", getpid());
	tcase_set_timeout(plain, 120);
	tcase_set_timeout(eal, 120);
	tcase_add_test(plain, stamp_is_classify);
	tcase_add_test(plain, stamp_of_nonsense);
	tcase_add_test(plain, tunnels);
	tcase_add_test(plain, short_way);
	tcase_add_test(plain, ids);
	tcase_add_test(plain, whatever_begins_and_ends);
	tcase_add_checked_fixture(eal, setup, NULL);
	tcase_add_loop_test(eal, order, 0, 2);
	tcase_add_loop_test(eal, batches, 0, 2);
	tcase_add_loop_test(eal, verdicts, 0, 2);
	tcase_add_loop_test(eal, late_nf, 0, 2);
	tcase_add_test(eal, copies);
	suite_add_tcase(s, plain);
	suite_add_tcase(s, eal);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
