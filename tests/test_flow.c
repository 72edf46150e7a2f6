/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Flow state, both ends in one process and one thread, so that every order of
 * events can be had.  Most tests run on both carriers of messages.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <nfmeta/nfmeta.h>

#define POOL_SIZE 4095

#include "oneproc.h"
#define ALL                                                                                        \
	(NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |                            \
	 NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS))

static uint8_t when_full; /* 0: default */
static __thread const struct nfmeta_flow_batch *msg;

/* For loops: Check notes in a file where every ck_assert was. */
#define must(c)                                                                                    \
	do {                                                                                       \
		if (!(c))                                                                          \
			ck_abort_msg("not so: %s", #c);                                            \
	} while (0)

static const uint8_t carriers[] = {NFMETA_CARRIER_RING, NFMETA_CARRIER_INBAND};

/* A link on which the least is a full one: 512 words, no backlog; 64 packets in-band. */
static void
open_link(uint8_t carrier, uint32_t backlog)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.carrier = carrier, .when_full = when_full,
						     .ring_size = 64, .blanks = 8, .pool = pool,
						     .flow_ring = 512, .flow_backlog = backlog);

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
}

static struct nfmeta_flow_stats
flow_stats(const struct nfmeta_link *link)
{
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};

	must(nfmeta_flow_stats(link, 0, &s) == 0);
	return s;
}

static struct nfmeta_link_stats
link_stats(void)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};

	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	return s;
}

/* What came back goes to the pool; returns how many packets. */
static unsigned int
collect(void)
{
	struct rte_mbuf *m[64];
	unsigned int all = 0, i;
	uint8_t how[64];
	uint16_t n;

	while ((n = nfmeta_collect_burst(link_p, 0, m, how, 64)) != 0) {
		for (i = 0; i < n; i++) {
			must((how[i] & NFMETA_META) != (NFMETA_META));
			rte_pktmbuf_free(m[i]);
		}
		all += n;
	}
	return all;
}

static void
close_link(void)
{
	uint64_t lost = 1;

	ck_ok(nfmeta_link_detach(link_n));
	collect();
	ck_ok(nfmeta_link_destroy(link_p, &lost));
	ck_assert_uint_eq(lost, 0);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}

/* The primary's part until nothing comes: RESYNCs are left to the caller. */
static int
next_up(void)
{
	collect();
	return nfmeta_flow_collect(link_p, 0, &msg);
}

static void
expect_request(void)
{
	ck_assert_int_eq(next_up(), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_RESYNC);
}

static void
expect_snapshot(uint8_t flags, unsigned int count)
{
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_SNAPSHOT);
	ck_assert_uint_eq(msg->flags, flags);
	ck_assert_uint_eq(msg->count, count);
}

/* Subscribed and told that there is nothing. */
static void
start(uint8_t carrier, uint32_t backlog)
{
	open_link(carrier, backlog);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOST);
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_STREAM);
	ck_assert_int_eq(next_up(), 0);
}

static void
send_packets(unsigned int n, uint32_t first)
{
	struct rte_mbuf *m;
	unsigned int i;

	for (i = 0; i < n; i++) {
		m = rte_pktmbuf_alloc(pool);
		ck_assert_ptr_nonnull(m);
		*(uint32_t *)rte_pktmbuf_append(m, 60) = first + i;
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
	}
}

/* Receive up to max, all of them numbered on from first; give them back. */
static unsigned int
receive(unsigned int max, uint32_t first)
{
	struct rte_mbuf *m[64];
	uint16_t n, i;

	n = nfmeta_recv_burst(link_n, m, NULL, (uint16_t)max);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(*rte_pktmbuf_mtod(m[i], uint32_t *), first + i);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, NULL, n), n);
	return n;
}

static int
send_delete(uint32_t id, uint16_t gen)
{
	struct nfmeta_flow_delete d = {id, gen, NFMETA_END_TIMEOUT};

	return nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, &d, 1);
}

static void
expect_delete(uint32_t id)
{
	const struct nfmeta_flow_delete *d;

	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_DELETE);
	d = nfmeta_flow_entry(msg, 0);
	ck_assert_uint_eq(d->flow_id, id);
}

/* ---- what can be sent -------------------------------------------------------- */

START_TEST(no_carrier)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS();
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_refused(send_delete(1, 1), NFMETA_ENOFLOW);
	ck_refused(nfmeta_flow_collect(link_p, 0, &msg), NFMETA_ENOFLOW);
	ck_refused(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST), NFMETA_ENOFLOW);
	ck_refused(nfmeta_flow_subscribe(link_n, ALL), NFMETA_ENOFLOW);
	ck_refused(nfmeta_flow_reply(link_n, NFMETA_MSG_LOAD, &s, 1), NFMETA_ENOFLOW);
	ck_refused(nfmeta_flow_stats(link_n, 0, &s), NFMETA_ENOFLOW);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	close_link();
}
END_TEST

START_TEST(wrong_calls)
{
	uint64_t e[NFMETA_FLOW_BYTES / 8 + 1] = {0};

	start(NFMETA_CARRIER_RING, 0);
	ck_refused(nfmeta_flow_send(link_p, 1, NFMETA_MSG_DELETE, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_n, 0, NFMETA_MSG_DELETE, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, e, 0), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, e, 257), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, NULL, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, e, 129), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_COUNTERS, e, 52), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_RESET, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_SNAPSHOT, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_VERDICT, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, 0, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, 99, e, 1), EINVAL);
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_OPTIONAL | 9, e, 1), EINVAL);
	ck_refused(nfmeta_flow_reply(link_n, NFMETA_MSG_DELETE, e, 1), EINVAL);
	ck_refused(nfmeta_flow_reply(link_n, NFMETA_MSG_RESYNC, e, 1), EINVAL);
	ck_refused(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, e, 86), EINVAL);
	ck_refused(nfmeta_flow_reply(link_p, NFMETA_MSG_VERDICT, e, 1), EINVAL);
	ck_refused(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(NFMETA_MSG_VERDICT)), EINVAL);
	ck_refused(nfmeta_flow_subscribe(link_n, NFMETA_MSG_NEW | NFMETA_MSG_DELETE), EINVAL);
	ck_refused(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(9)), EINVAL);
	ck_refused(nfmeta_flow_subscribe(link_p, ALL), EINVAL);
	ck_refused(nfmeta_flow_next(link_p, &msg), EINVAL);
	ck_refused(nfmeta_flow_next(link_n, NULL), EINVAL);
	ck_refused(nfmeta_flow_collect(link_p, 0, NULL), EINVAL);
	ck_refused(nfmeta_flow_broadcast(NULL, 1, NFMETA_MSG_DELETE, e, 1), EINVAL);
	ck_refused(nfmeta_flow_collect(link_n, 0, &msg), EINVAL);
	ck_refused(nfmeta_flow_snapshot(link_p, 0, NULL, 0, 0x80), EINVAL);
	ck_refused(nfmeta_flow_snapshot(link_p, 0, NULL, 1, NFMETA_MSG_FIRST), EINVAL);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	close_link();
}
END_TEST

START_TEST(not_subscribed)
{
	open_link(carriers[_i], 0);
	ck_ok(send_delete(1, 1));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_p).sent, 0);
	/* Only what was asked for, and only once the snapshot was told. */
	ck_ok(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(NFMETA_MSG_NEW)));
	ck_ok(send_delete(1, 1));
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	ck_ok(send_delete(1, 1));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_p).sent, 1);
	/* And no more after it has had enough. */
	ck_ok(nfmeta_flow_subscribe(link_n, 0));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_RESET, NULL, 0));
	ck_assert_uint_eq(flow_stats(link_p).sent, 1);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_IDLE);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_OFF);
	send_packets(3, 0);
	ck_assert_uint_eq(receive(64, 0), 3);
	close_link();
}
END_TEST

/* Every type arrives as it was sent, the longest message too. */
START_TEST(content)
{
	struct nfmeta_flow_delete d[256];
	struct nfmeta_flow_state f = {7, 3, NFMETA_ACTION_SHUNT, 0, 91 << 16 | 7, {0}};
	struct nfmeta_flow_counters c = {7, 3, {0}, {10, 20}, {1000, 2000}};
	unsigned int i;

	start(carriers[_i], 0);
	for (i = 0; i < 256; i++)
		d[i] = (struct nfmeta_flow_delete){i * 3, (uint16_t)i, NFMETA_END_CLOSED};
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, &f, 1));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_COUNTERS, &c, 1));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, d, 256));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_NEW);
	ck_assert_uint_eq(msg->count, 1);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), &f, sizeof(f));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_COUNTERS);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), &c, sizeof(c));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_DELETE);
	ck_assert_uint_eq(msg->count, 256);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), d, sizeof(d));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	close_link();
}
END_TEST

/* Through a ring of 512 words, many times around. */
START_TEST(around)
{
	unsigned int i;

	start(carriers[_i], NFMETA_NO_BACKLOG);
	for (i = 0; i < 5000; i++) {
		ck_ok(send_delete(i, 1));
		if (i % 3 == 2) {
			expect_delete(i - 2);
			expect_delete(i - 1);
			expect_delete(i);
			ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
			collect();
		}
	}
	close_link();
}
END_TEST

/* ---- order ------------------------------------------------------------------------ */

START_TEST(one_order)
{
	start(carriers[_i], 0);
	send_packets(5, 0);
	ck_ok(send_delete(1, 1));
	send_packets(2, 5);
	ck_ok(send_delete(2, 1));
	ck_ok(send_delete(3, 1));
	send_packets(4, 7);

	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0); /* not before its packets */
	ck_assert_uint_eq(receive(3, 0), 3);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(64, 3), 2); /* and no packet before it */
	ck_assert_uint_eq(receive(64, 5), 0);
	expect_delete(1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(64, 5), 2);
	expect_delete(2);
	expect_delete(3);
	ck_assert_uint_eq(receive(64, 7), 0); /* the caller may still read it */
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(64, 7), 4);
	ck_assert_uint_eq(collect(), 11);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 0);
	close_link();
}
END_TEST

/* No packet is needed for a delete to arrive, also when the link is closing. */
START_TEST(idle_chain)
{
	start(carriers[_i], 0);
	ck_ok(send_delete(1, 1));
	expect_delete(1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	nfmeta_link_close(link_p);
	ck_ok(send_delete(2, 1));
	expect_delete(2);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	close_link();
}
END_TEST

/* Meta packets are no packets: not for the counters, not in the bursts. */
START_TEST(counters)
{
	struct nfmeta_link_stats s;

	start(NFMETA_CARRIER_INBAND, 0);
	collect();
	send_packets(3, 0);
	ck_ok(send_delete(1, 1));
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 3);
	s = link_stats();
	ck_assert_uint_eq(s.sent, 3);
	ck_assert_uint_eq(s.down, 3);
	ck_assert_uint_eq(s.metas, 1);
	ck_assert_uint_eq(receive(64, 0), 3);
	expect_delete(1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	s = link_stats();
	ck_assert_uint_eq(s.returned, 3);
	ck_assert_uint_eq(s.up, 3);
	ck_assert_uint_eq(collect(), 3);
	s = link_stats();
	ck_assert_uint_eq(s.collected, 3);
	ck_assert_uint_eq(s.metas, 0);
	ck_assert_uint_eq(s.up, 0);
	ck_assert_uint_eq(s.held, 0);
	close_link();
}
END_TEST

/* A link full of packets has no room for a message in-band: it goes before the next packet. */
START_TEST(inband_full)
{
	struct rte_mbuf *m;
	unsigned int i;

	start(NFMETA_CARRIER_INBAND, 0);
	collect();
	send_packets(64, 0);
	ck_ok(send_delete(1, 1));
	ck_assert_uint_eq(flow_stats(link_p).backlog, 1);
	m = rte_pktmbuf_alloc(pool);
	*(uint32_t *)rte_pktmbuf_append(m, 60) = 64;
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 0);
	ck_assert_uint_eq(receive(2, 0), 2);
	ck_assert_uint_eq(collect(), 2);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
	ck_assert_uint_eq(flow_stats(link_p).backlog, 0);
	for (i = 2; i < 64; i += receive(8, i))
		;
	ck_assert_uint_eq(receive(8, 64), 0);
	expect_delete(1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(8, 64), 1);
	close_link();
}
END_TEST

/* The caller cannot give back what only the library may. */
START_TEST(not_yours_to_say)
{
	struct rte_mbuf *m[2];
	uint8_t how[2] = {NFMETA_META, NFMETA_META};

	start(carriers[_i], 0);
	send_packets(2, 0);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, NULL, 2), 2);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, how, 2), 2);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, 2), 2);
	ck_assert_uint_eq(how[0], NFMETA_DROP);
	ck_assert_uint_eq(how[1], NFMETA_DROP);
	rte_pktmbuf_free_bulk(m, 2);
	close_link();
}
END_TEST

/* ---- loss ---------------------------------------------------------------------------- */

/* Until the first one is given up; returns how many were not. */
static unsigned int
fill(void)
{
	unsigned int n = 0;
	int rc;

	while ((rc = send_delete(n, 1)) == 0)
		n++;
	ck_assert_int_eq(rc, -EAGAIN);
	return n;
}

START_TEST(gap_and_snapshot)
{
	struct nfmeta_flow_state f[3] = {
		{5, 1, 0, 0, 0, {0}}, {6, 2, 0, 0, 0, {0}}, {7, 1, 0, 0, 0, {0}}};
	unsigned int n, i;

	start(carriers[_i], NFMETA_NO_BACKLOG);
	collect();
	n = fill();
	ck_assert_uint_eq(n, carriers[_i] == NFMETA_CARRIER_RING ? 512 / 6 : 64);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_GAP);
	ck_assert_uint_eq(flow_stats(link_p).lost, 1);
	ck_refused(send_delete(n, 1), EAGAIN);
	ck_assert_uint_eq(flow_stats(link_p).lost, 2);
	ck_assert_uint_eq(flow_stats(link_p).gaps, 1);
	for (i = 0; i < n; i++)
		expect_delete(i);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED); /* it cannot know */
	/* Nothing more is sent, and yet it notices. */
	ck_assert_int_eq(next_up(), 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOST);
	ck_assert_uint_eq(flow_stats(link_n).gaps, 1);
	expect_request();
	ck_assert_int_eq(next_up(), 0); /* it asks once */
	ck_ok(nfmeta_flow_snapshot(link_p, 0, f, 2, NFMETA_MSG_FIRST));
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_SNAPSHOT);
	ck_ok(send_delete(6, 2));
	ck_ok(nfmeta_flow_snapshot(link_p, 0, f + 2, 1, NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_FIRST, 2);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOADING);
	expect_delete(6);
	expect_snapshot(NFMETA_MSG_LAST, 1);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	ck_ok(send_delete(7, 1));
	expect_delete(7);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_STREAM);
	ck_assert_uint_eq(flow_stats(link_p).sent, flow_stats(link_n).seen);
	close_link();
}
END_TEST

/* A message is given up in the middle of a snapshot. */
START_TEST(gap_in_snapshot)
{
	struct nfmeta_flow_state f = {5, 1, 0, 0, 0, {0}};
	unsigned int n;

	start(carriers[_i], NFMETA_NO_BACKLOG);
	collect();
	ck_ok(nfmeta_flow_subscribe(link_n, ALL)); /* asks anew */
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, &f, 1, NFMETA_MSG_FIRST));
	fill();
	ck_refused(nfmeta_flow_snapshot(link_p, 0, &f, 1, NFMETA_MSG_LAST), NFMETA_EGAP);
	ck_refused(nfmeta_flow_snapshot(link_p, 0, &f, 1, NFMETA_MSG_FIRST), NFMETA_EGAP);
	expect_snapshot(NFMETA_MSG_FIRST, 1);
	while (nfmeta_flow_next(link_n, &msg) == 1)
		ck_assert_uint_eq(msg->type, NFMETA_MSG_DELETE);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOADING);
	ck_assert_int_eq(next_up(), 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOST);
	expect_request();
	/* No room: nothing was told, nothing is lost by it. */
	ck_ok(nfmeta_flow_snapshot(link_p, 0, &f, 1, NFMETA_MSG_FIRST));
	n = 0;
	for (;;) {
		int rc = nfmeta_flow_snapshot(link_p, 0, &f, 1, 0);

		if (rc != 0) {
			ck_assert_int_eq(rc, -EAGAIN);
			break;
		}
		n++;
	}
	expect_snapshot(NFMETA_MSG_FIRST, 1);
	while (n-- > 0)
		expect_snapshot(0, 1);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	collect();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_LAST, 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	ck_assert_uint_eq(flow_stats(link_n).gaps, 1);
	close_link();
}
END_TEST

/* What does not fit waits, in order, and is counted. */
START_TEST(backlog)
{
	unsigned int i, n = 300;

	start(carriers[_i], 4096);
	collect();
	for (i = 0; i < n; i++)
		ck_ok(send_delete(i, 1));
	ck_assert_uint_gt(flow_stats(link_p).backlog, 0);
	for (i = 0; i < n;) {
		while (nfmeta_flow_next(link_n, &msg) == 1) {
			ck_assert_uint_eq(
				((const struct nfmeta_flow_delete *)nfmeta_flow_entry(msg, 0))
					->flow_id,
				i);
			i++;
		}
		ck_assert_int_eq(next_up(), 0);
	}
	ck_assert_uint_eq(flow_stats(link_p).backlog, 0);
	ck_assert_uint_eq(flow_stats(link_p).lost, 0);
	ck_assert_uint_eq(flow_stats(link_n).gaps, 0);
	/* Full in the end, too: then a gap, and the others still come. */
	n = fill();
	ck_assert_uint_ge(n, 4096 / 6);
	for (i = 0; flow_stats(link_n).state == NFMETA_SYNC_SYNCED;) {
		while (nfmeta_flow_next(link_n, &msg) == 1)
			i++;
		ck_assert_int_le(next_up(), 1);
	}
	ck_assert_uint_eq(i, n);
	close_link();
}
END_TEST

/* A short message that would fit does not pass by a long one that does not. */
START_TEST(long_before_short)
{
	struct nfmeta_flow_delete d[256] = {{0, 0, 0}};
	unsigned int i;

	start(NFMETA_CARRIER_RING, 4096);
	for (i = 0; i < 2; i++) {
		d[0].flow_id = i;
		ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, d, 256));
	}
	ck_assert_uint_eq(flow_stats(link_p).backlog, 1);
	ck_ok(send_delete(2, 1));
	ck_assert_uint_eq(flow_stats(link_p).backlog, 2);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &msg), 1);
	ck_refused(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST), EAGAIN);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0); /* it waits for FIRST */
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST));
	ck_assert_uint_eq(flow_stats(link_p).backlog, 0);
	expect_snapshot(NFMETA_MSG_FIRST, 0);
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_LAST, 0);
	for (i = 0; i < 2; i++) {
		d[0].flow_id = i;
		ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, d, 256));
	}
	ck_ok(send_delete(2, 1));
	expect_delete(0);
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &msg), 0);
	expect_delete(1);
	expect_delete(2);
	close_link();
}
END_TEST

/* ---- who asks, who answers ------------------------------------------------------------ */

START_TEST(next_nf)
{
	const struct nfmeta_flow_verdict v = {.flow_id = 1, .verdict = NFMETA_ACTION_DROP};
	struct nfmeta_flow_state f = {5, 1, 0, 0, 0, {0}};

	start(carriers[_i], 0);
	collect();
	ck_ok(send_delete(1, 1));
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	/* What the one before said is void. */
	ck_assert_int_eq(next_up(), 0);
	ck_assert_uint_eq(flow_stats(link_p).stale, 1);
	/* What it was told does not reach the new one, subscribed or not. */
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).stale, 1);
	ck_ok(send_delete(2, 1));
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, &f, 1, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	ck_ok(send_delete(3, 1));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 1);
	expect_delete(3);
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	ck_assert_int_eq(next_up(), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_VERDICT);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), &v, sizeof(v));
	ck_assert_int_eq(next_up(), 0);
	close_link();
}
END_TEST

/* What the one before had not read to its end does not lie in the way. */
START_TEST(next_nf_after_a_rest)
{
	const struct nfmeta_flow_delete d[64] = {{0, 0, 0}};
	unsigned int i, messages;

	for (messages = 1; messages < 40; messages++) {
		struct nfmeta_link_opts o =
			NFMETA_LINK_OPTS(.carrier = carriers[_i], .blanks = 8, .pool = pool);

		ck_ok(nfmeta_link_create("t", &o, &link_p));
		ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
		ck_ok(nfmeta_flow_subscribe(link_n, ALL));
		expect_request();
		ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
		for (i = 0; i < messages; i++)
			ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_DELETE, d, 64));
		expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
		ck_ok(nfmeta_link_detach(link_n));
		ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
		ck_ok(nfmeta_flow_subscribe(link_n, ALL));
		ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
		ck_assert_uint_eq(flow_stats(link_n).refused, 0);
		ck_assert_int_eq(next_up(), 1);
		ck_assert_int_eq(next_up(), 0);
		close_link();
	}
}
END_TEST

/* An answer to an older question is none to this one. */
START_TEST(old_answer)
{
	start(carriers[_i], 0);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST));
	ck_ok(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(NFMETA_MSG_DELETE)));
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_LAST));
	ck_ok(send_delete(1, 1));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOST);
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	ck_assert_int_eq(next_up(), 0);
	close_link();
}
END_TEST

/* Told an NF that does not listen: leftovers are no packets for it. */
START_TEST(next_nf_deaf)
{
	start(carriers[_i], 0);
	collect();
	send_packets(2, 0);
	ck_ok(send_delete(1, 1));
	send_packets(2, 2);
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_assert_uint_eq(receive(64, 0), carriers[_i] == NFMETA_CARRIER_RING ? 4 : 2);
	ck_assert_uint_eq(receive(64, 2), carriers[_i] == NFMETA_CARRIER_RING ? 0 : 2);
	close_link();
}
END_TEST

START_TEST(heartbeat)
{
	start(carriers[_i], 0);
	collect();
	ck_ok(send_delete(1, 1));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0));
	expect_delete(1);
	ck_assert_int_eq(next_up(), 0); /* not done before the NF asks for the next */
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_int_eq(next_up(), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_ACK);
	ck_assert_int_eq(next_up(), 0);
	ck_assert_uint_eq(flow_stats(link_p).acked, flow_stats(link_p).sent);
	close_link();
}
END_TEST

START_TEST(reset)
{
	start(carriers[_i], 0);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_RESET, NULL, 0));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_RESET);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	close_link();
}
END_TEST

/* Not asked for in a gap, not answered inside a snapshot. */
START_TEST(heartbeat_out_of_time)
{
	uint64_t sent;

	start(carriers[_i], NFMETA_NO_BACKLOG);
	fill();
	sent = flow_stats(link_p).sent;
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0));
	ck_assert_uint_eq(flow_stats(link_p).sent, sent);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	while (next_up() != 1 || msg->type != NFMETA_MSG_RESYNC)
		nfmeta_flow_next(link_n, &msg);
	while (nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST) == -EAGAIN) {
		nfmeta_flow_next(link_n, &msg);
		ck_assert_int_eq(next_up(), 0);
	}
	expect_snapshot(NFMETA_MSG_FIRST, 0);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_int_eq(next_up(), 0);
	ck_assert_uint_eq(flow_stats(link_p).acked, 0);
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_LAST));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0));
	expect_snapshot(NFMETA_MSG_LAST, 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_int_eq(next_up(), 1);
	ck_assert_uint_eq(flow_stats(link_p).acked, flow_stats(link_p).sent);
	close_link();
}
END_TEST

/* It must not wait: packets of flows that begin behind it would come first. */
START_TEST(reset_does_not_wait)
{
	start(carriers[_i], 4096);
	while (flow_stats(link_p).backlog == 0)
		ck_ok(send_delete(1, 1));
	ck_refused(nfmeta_flow_send(link_p, 0, NFMETA_MSG_RESET, NULL, 0), EAGAIN);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_GAP);
	while (flow_stats(link_n).state == NFMETA_SYNC_SYNCED) {
		while (nfmeta_flow_next(link_n, &msg) == 1)
			ck_assert_uint_eq(msg->type, NFMETA_MSG_DELETE);
		ck_assert_int_le(next_up(), 1);
	}
	close_link();
}
END_TEST

/* The way up is full: the caller hears it, and a due RESYNC is not lost. */
START_TEST(up_full)
{
	struct nfmeta_flow_verdict v = {.verdict = NFMETA_ACTION_SHUNT};
	const struct nfmeta_flow_verdict *got;
	unsigned int n = 0, i;
	int rc;

	start(carriers[_i], 0);
	collect();
	while ((rc = nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1)) == 0)
		v.flow_id = ++n;
	ck_assert_int_eq(rc, -EAGAIN);
	ck_assert_uint_eq(n, carriers[_i] == NFMETA_CARRIER_RING ? 512 / 8 : 8);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(next_up(), 1);
		ck_assert_uint_eq(msg->type, NFMETA_MSG_VERDICT);
		got = nfmeta_flow_entry(msg, 0);
		ck_assert_uint_eq(got->flow_id, i);
	}
	ck_assert_int_eq(next_up(), 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	expect_request();
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	ck_assert_int_eq(next_up(), 1);
	close_link();
}
END_TEST

/* ---- what nobody sends ------------------------------------------------------------------ */

static void
put_words(const void *words, unsigned int bytes)
{
	struct rte_ring *ring = rte_ring_lookup("nfm.t.f0");

	ck_assert_ptr_nonnull(ring);
	ck_assert_uint_ne(rte_ring_sp_enqueue_bulk(ring, (void *const *)words, bytes / 8, NULL), 0);
}

static struct nfmeta_flow_batch
by_hand(uint8_t type, uint16_t count, uint16_t entry_size)
{
	struct nfmeta_flow_batch b = {.magic = NFMETA_FLOW_MAGIC, .abi = 1, .type = type};

	b.count = count;
	b.entry_size = entry_size;
	b.instance = nfmeta_link_shared(link_p)->instance;
	b.epoch = 1;
	b.seq = flow_stats(link_n).seen + 1;
	return b;
}

/* Entries may have grown since; a type may be unknown and optional. */
START_TEST(from_a_newer_side)
{
	struct {
		struct nfmeta_flow_batch b;
		struct nfmeta_flow_delete d[4];
	} m = {0};

	start(NFMETA_CARRIER_RING, 0);
	m.b = by_hand(0x80 | 5, 4, 8);
	put_words(&m, sizeof(m));
	m.b = by_hand(NFMETA_MSG_DELETE, 2, 16);
	m.b.seq++;
	m.d[0].flow_id = 4;
	m.d[2].flow_id = 5;
	put_words(&m, sizeof(m));
	expect_delete(4);
	ck_assert_uint_eq(((const struct nfmeta_flow_delete *)nfmeta_flow_entry(msg, 1))->flow_id,
			  5);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	ck_assert_uint_eq(flow_stats(link_n).refused, 0);
	close_link();
}
END_TEST

/* Nor must what was for another NF, or another link, be understood. */
START_TEST(not_for_this_nf)
{
	struct {
		struct nfmeta_flow_batch b;
		struct nfmeta_flow_delete d;
	} m = {0};
	unsigned int i;

	start(NFMETA_CARRIER_RING, 0);
	for (i = 0; i < 4; i++) {
		m.b = by_hand(i & 1 ? 0x30 : NFMETA_MSG_DELETE, 1, 8);
		if (i & 2)
			m.b.epoch = 0;
		else
			m.b.instance ^= 1;
		put_words(&m, sizeof(m));
	}
	ck_ok(send_delete(7, 1));
	expect_delete(7);
	ck_assert_uint_eq(flow_stats(link_n).stale, 4);
	ck_assert_uint_eq(flow_stats(link_n).refused, 0);
	close_link();
}
END_TEST

/* An ask is never 0, however often it is asked. */
START_TEST(many_asks)
{
	unsigned int i;

	start(NFMETA_CARRIER_RING, 0);
	for (i = 0; i < 65600; i++) {
		must(nfmeta_flow_subscribe(link_n, ALL) == 0);
		must(next_up() == 1 && msg->type == NFMETA_MSG_RESYNC && msg->ask != 0);
	}
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	close_link();
}
END_TEST

/* An NF that may not leave yet stays what it is. */
START_TEST(still_holding)
{
	struct rte_mbuf *m;

	start(carriers[_i], 0);
	send_packets(1, 0);
	ck_ok(send_delete(1, 1));
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, &m, NULL, 1), 1);
	ck_refused(nfmeta_link_detach(link_n), EBUSY);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	expect_delete(1);
	ck_refused(nfmeta_link_detach(link_n), EBUSY);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 1);
	close_link();
}
END_TEST

/* Who is shown a message holds no packet by that. */
START_TEST(returned_twice)
{
	struct rte_mbuf *m;

	start(carriers[_i], 0);
	send_packets(1, 0);
	ck_ok(send_delete(1, 1));
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, &m, NULL, 1), 1);
	expect_delete(1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 0);
	close_link();
}
END_TEST

/* An NF that keeps all blanks but one can still speak. */
START_TEST(blanks_kept)
{
	const struct nfmeta_flow_verdict v = {.flow_id = 1, .verdict = NFMETA_ACTION_DROP};
	struct rte_mbuf *m[7];
	uint8_t how[7];
	int i;

	start(NFMETA_CARRIER_INBAND, 0);
	collect();
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, m, 7), 7);
	for (i = 0; i < 5; i++) {
		ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
		ck_assert_int_eq(next_up(), 1);
		ck_assert_int_eq(next_up(), 0);
		collect();
	}
	memset(how, NFMETA_INJECTED | NFMETA_DROP, sizeof(how));
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, how, 7), 7);
	close_link();
}
END_TEST

/* A burst of nothing but messages is not the end. */
START_TEST(many_metas)
{
	struct rte_mbuf *m;
	unsigned int i;
	uint8_t how;

	start(NFMETA_CARRIER_INBAND, 0);
	collect();
	for (i = 0; i < 60; i++)
		ck_ok(send_delete(i, 1));
	for (i = 0; i < 60; i++)
		expect_delete(i);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	send_packets(1, 0);
	ck_assert_uint_eq(receive(1, 0), 1);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, &m, &how, 1), 1);
	rte_pktmbuf_free(m);
	close_link();
}
END_TEST

/* What waited for an NF that has gone does not wait for the next. */
START_TEST(backlog_of_another)
{
	start(carriers[_i], 4096);
	while (flow_stats(link_p).backlog < 3)
		ck_ok(send_delete(1, 1));
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	if (carriers[_i] == NFMETA_CARRIER_RING) /* the other has its way full of packets */
		ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	else
		while (flow_stats(link_n).state == NFMETA_SYNC_LOST &&
		       nfmeta_flow_next(link_n, &msg) == 0 && next_up() == 0)
			;
	if (carriers[_i] == NFMETA_CARRIER_RING)
		expect_request();
	ck_assert_uint_eq(flow_stats(link_p).backlog, 0);
	close_link();
}
END_TEST

/* Types of users' own are carried to who wants them. */
START_TEST(own_types)
{
	const uint64_t words[2] = {41, 42};

	start(carriers[_i], 0);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_OWN + 5, words, 2)); /* nobody wants it */
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_ok(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(NFMETA_MSG_OWN + 5)));
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_OWN + 5, words, 2));
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_OWN + 6, words, 2));
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_OWN + 7, words + 1, 1));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_OWN + 5);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), words, sizeof(words));
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_int_eq(next_up(), 1);
	ck_assert_uint_eq(msg->type, NFMETA_MSG_OWN + 7);
	ck_assert_mem_eq(nfmeta_flow_entry(msg, 0), words + 1, 8);
	ck_assert_int_eq(next_up(), 0);
	close_link();
}
END_TEST

#define BAD(...)                                                                                   \
	{                                                                                          \
		.magic = NFMETA_FLOW_MAGIC, .abi = 1, .type = NFMETA_MSG_DELETE, .count = 1,       \
		.entry_size = 8, __VA_ARGS__                                                       \
	}
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct nfmeta_flow_batch bad_messages[] = {
	BAD(.magic = 0),
	BAD(.abi = 2),
	BAD(.type = 0),
	BAD(.type = 8),
	BAD(.type = 127),
	BAD(.type = NFMETA_MSG_VERDICT),
	BAD(.count = 0),
	BAD(.count = 257),
	BAD(.count = 2, .entry_size = 1032),
	BAD(.count = 65535, .entry_size = 65528),
	BAD(.entry_size = 0),
	BAD(.entry_size = 12),
	BAD(.type = NFMETA_MSG_NEW),
	BAD(.type = NFMETA_MSG_RESET),
	BAD(.flags = NFMETA_MSG_FIRST),
	BAD(.count = 256), /* longer than it is */
};

START_TEST(bad_message)
{
	struct {
		struct nfmeta_flow_batch b;
		struct nfmeta_flow_delete d;
	} m = {.b = bad_messages[_i]};

	start(NFMETA_CARRIER_RING, 0);
	ck_ok(send_delete(1, 1));
	m.b.instance = nfmeta_link_shared(link_p)->instance;
	m.b.epoch = 1;
	m.b.seq = flow_stats(link_n).seen + 2;
	put_words(&m, m.b.count == 0 ? sizeof(m.b) : sizeof(m));
	expect_delete(1);
	ck_assert_uint_eq(receive(64, 0), 0);
	ck_refused(nfmeta_flow_next(link_n, &msg), NFMETA_EMESSAGE);
	ck_assert_uint_eq(flow_stats(link_n).refused, 1);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_LOST);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	expect_request();
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	ck_ok(send_delete(2, 1));
	expect_snapshot(NFMETA_MSG_FIRST | NFMETA_MSG_LAST, 0);
	expect_delete(2);
	close_link();
}
END_TEST

/* A barrier that nobody could have meant does not stop the queue. */
START_TEST(impossible_barrier)
{
	struct {
		struct nfmeta_flow_batch b;
		struct nfmeta_flow_delete d;
	} m = {.d = {.flow_id = 3}};

	start(NFMETA_CARRIER_RING, 0);
	send_packets(3, 0);
	m.b = by_hand(NFMETA_MSG_DELETE, 1, 8);
	m.b.barrier = UINT64_MAX;
	put_words(&m, sizeof(m));
	expect_delete(3);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &msg), 0);
	ck_assert_uint_eq(receive(64, 0), 3);
	close_link();
}
END_TEST

START_TEST(bad_message_up)
{
	uint64_t words[6] = {1, 2, 3, 4, 5, 6};
	struct rte_ring *ring;

	start(NFMETA_CARRIER_RING, 0);
	ring = rte_ring_lookup("nfm.t.v0");
	ck_assert_ptr_nonnull(ring);
	rte_ring_sp_enqueue_bulk(ring, (void **)words, 6, NULL);
	ck_refused(next_up(), NFMETA_EMESSAGE);
	ck_assert_int_eq(next_up(), 0);
	ck_assert_uint_eq(flow_stats(link_p).refused, 1);
	close_link();
}
END_TEST

/* ---- whatever happens, tables are equal in the end ------------------------------------------ */

#define IDS 16

static struct {
	uint16_t gen;
	bool live, heard_of;
} theirs[IDS]; /* the upfront NF's */

static struct {
	uint16_t gen;
	bool live, told;
} ours[IDS]; /* the NF's */
static uint32_t cursor;
static bool in_order; /* packets never pass by messages */
static bool telling, dead[IDS][1 << 16];

static void
learn(uint32_t id, uint16_t gen)
{
	if (!ours[id].live || nfmeta_flow_newer(gen, ours[id].gen)) {
		ours[id].live = true;
		ours[id].gen = gen;
	}
	ours[id].told = true;
}

static void
nf_messages(void)
{
	const struct nfmeta_flow_delete *d;
	const struct nfmeta_flow_state *f;
	uint16_t i;

	while (nfmeta_flow_next(link_n, &msg) == 1) {
		if (msg->type == NFMETA_MSG_SNAPSHOT && (msg->flags & NFMETA_MSG_FIRST) != 0)
			for (i = 0; i < IDS; i++)
				ours[i].told = false;
		for (i = 0; i < msg->count; i++) {
			if (msg->type == NFMETA_MSG_DELETE) {
				d = nfmeta_flow_entry(msg, i);
				dead[d->flow_id][d->flow_gen] = true;
				if (!nfmeta_flow_newer(ours[d->flow_id].gen, d->flow_gen))
					ours[d->flow_id].live = false;
			} else {
				f = nfmeta_flow_entry(msg, i);
				if (!dead[f->flow_id][f->flow_gen])
					learn(f->flow_id, f->flow_gen);
				else /* only a message from the backlog comes that late */
					must((msg->type) != (NFMETA_MSG_SNAPSHOT));
			}
		}
		if (msg->type == NFMETA_MSG_SNAPSHOT && (msg->flags & NFMETA_MSG_LAST) != 0)
			for (i = 0; i < IDS; i++)
				ours[i].live &= ours[i].told;
	}
}

static void
nf_packets(void)
{
	struct rte_mbuf *m[8];
	uint32_t id, gen;
	uint16_t i, n;

	n = nfmeta_recv_burst(link_n, m, NULL, 1 + rand() % 8);
	for (i = 0; i < n; i++) {
		id = *rte_pktmbuf_mtod(m[i], uint32_t *) % IDS;
		gen = *rte_pktmbuf_mtod(m[i], uint32_t *) / IDS;
		must(!dead[id][gen]); /* no packet behind its delete */
		must(!nfmeta_flow_newer(ours[id].gen, (uint16_t)gen)); /* nor behind a newer one */
		must(!in_order || flow_stats(link_n).state != NFMETA_SYNC_SYNCED ||
		     !ours[id].live || ours[id].gen == gen);
		learn(id, (uint16_t)gen);
	}
	nfmeta_return_burst(link_n, m, NULL, n);
}

static void
tell(void)
{
	struct nfmeta_flow_state f = {0};
	uint8_t flags = cursor == 0 ? NFMETA_MSG_FIRST : 0;
	int rc;

	if (cursor == IDS - 1)
		flags |= NFMETA_MSG_LAST;
	f.flow_id = cursor;
	f.flow_gen = theirs[cursor].gen;
	rc = nfmeta_flow_snapshot(link_p, 0, &f, theirs[cursor].live, flags);
	if (rc == 0)
		cursor++;
	telling = rc == -EAGAIN || (rc == 0 && cursor < IDS);
}

static void
primary_step(bool changes)
{
	struct nfmeta_flow_state f = {0};
	uint32_t id = (uint32_t)rand() % IDS;
	struct rte_mbuf *m;

	while (next_up() == 1)
		if (msg->type == NFMETA_MSG_RESYNC) {
			telling = true;
			cursor = 0;
		}
	if (telling)
		tell();
	if (!changes)
		return;
	f.flow_id = id;
	if (theirs[id].live && rand() % 3 == 0) {
		theirs[id].live = false;
		send_delete(id, theirs[id].gen);
	} else if (!theirs[id].live) {
		theirs[id].live = true;
		theirs[id].gen++;
		theirs[id].heard_of = rand() % 2;
		f.flow_gen = theirs[id].gen;
		if (theirs[id].heard_of)
			nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, &f, 1);
	}
	if (!theirs[id].live)
		return;
	m = rte_pktmbuf_alloc(pool);
	*(uint32_t *)rte_pktmbuf_append(m, 60) = id + theirs[id].gen * (uint32_t)IDS;
	if (nfmeta_send_burst(link_p, 0, &m, 1) == 0) {
		rte_pktmbuf_free(m);
		f.flow_gen = theirs[id].gen;
		if (!theirs[id].heard_of) /* neither by NEW nor by a packet */
			nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, &f, 1);
	}
	theirs[id].heard_of = true;
}

START_TEST(whatever_happens)
{
	unsigned int i, rounds = 60000, gaps = 0;

	srand(17 + (unsigned int)_i);
	open_link(carriers[_i & 1], _i & 2 ? 64 : NFMETA_NO_BACKLOG);
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	for (i = 0; i < rounds; i++) {
		primary_step(true);
		if (i % 4096 < 3000) { /* now and then the NF sleeps */
			if (rand() % 4 != 0)
				nf_packets();
			if (rand() % 4 != 0)
				nf_messages();
		}
		if (i % 20000 == 19999) {
			gaps += (unsigned int)flow_stats(link_n).gaps;
			ck_ok(nfmeta_link_detach(link_n)); /* another one comes, knowing nothing */
			ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
			memset(ours, 0, sizeof(ours));
			memset(dead, 0, sizeof(dead));
			ck_ok(nfmeta_flow_subscribe(link_n, ALL));
		}
	}
	for (i = 0; i < 1000; i++) {
		primary_step(false);
		nf_packets();
		nf_messages();
	}
	ck_assert_uint_gt(gaps, 0);
	ck_assert_uint_eq(flow_stats(link_n).state, NFMETA_SYNC_SYNCED);
	ck_assert_uint_eq(flow_stats(link_p).state, NFMETA_FEED_STREAM);
	for (i = 0; i < IDS; i++) {
		ck_assert_int_eq(ours[i].live, theirs[i].live);
		if (ours[i].live)
			ck_assert_uint_eq(ours[i].gen, theirs[i].gen);
	}
	close_link();
}
END_TEST

static bool stop;

static void *
nf_thread(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++) {
		if (i % 4096 < 3000) {
			nf_packets();
			nf_messages();
		}
		sched_yield();
	}
	return NULL;
}

/* The same with the two ends in two threads. */
START_TEST(two_threads)
{
	unsigned int i;
	pthread_t nf;

	srand(23 + (unsigned int)_i);
	if (_i < 4) {
		open_link(carriers[_i & 1], _i & 2 ? 64 : NFMETA_NO_BACKLOG);
	} else { /* in-band with a backlog that is never full, the sender waits for room */
		when_full = NFMETA_FULL_WAIT;
		open_link(NFMETA_CARRIER_INBAND, 1 << 20);
		in_order = true;
	}
	ck_ok(nfmeta_flow_subscribe(link_n, ALL));
	ck_assert_int_eq(pthread_create(&nf, NULL, nf_thread, NULL), 0);
	for (i = 0; i < 20000; i++)
		primary_step(true);
	while (telling || flow_stats(link_p).state != NFMETA_FEED_STREAM ||
	       flow_stats(link_p).acked < flow_stats(link_p).sent) {
		if (flow_stats(link_p).backlog == 0)
			nfmeta_flow_send(link_p, 0, NFMETA_MSG_HEARTBEAT, NULL, 0);
		/* A heartbeat is a message, too: the last one has to be heard of. */
		for (i = 0; i < 1000 && flow_stats(link_p).acked < flow_stats(link_p).sent; i++) {
			primary_step(false);
			sched_yield();
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(nf, NULL);
	nf_packets();
	for (i = 0; i < IDS; i++) {
		ck_assert_int_eq(ours[i].live, theirs[i].live);
		if (ours[i].live)
			ck_assert_uint_eq(ours[i].gen, theirs[i].gen);
	}
	while (nfmeta_link_in_flight(link_p, 0) != 0)
		nf_packets(), collect();
	close_link();
}
END_TEST

/* ---- verdicts --------------------------------------------------------------------------------- */

static int
decide(struct nfmeta_flow_decision *d, uint8_t verdict, uint8_t flags, uint32_t ttl, uint16_t who)
{
	struct nfmeta_flow_verdict v = {.verdict = verdict, .flags = flags, .ttl = ttl, .who = who};

	v.after = 3;
	return nfmeta_flow_decide(d, &v, 1000, 10);
}

START_TEST(decisions)
{
	const uint8_t sticky = NFMETA_VERDICT_STICKY;
	struct nfmeta_flow_decision d = {0};
	int i;

	ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_INSPECT);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_SHUNT, 0, 0, 1), 1);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_INSPECT);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_SHUNT);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_INSPECT, 0, 0, 1), 1);
	ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_INSPECT);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_FORWARD, 0, 0, 1), 1);
	ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_SHUNT); /* at once */

	/* Two seconds of ten. */
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_DROP, 0, 2, 1), 1);
	ck_assert_uint_eq(nfmeta_flow_act(&d, 1019), NFMETA_ACTION_DROP);
	ck_assert_uint_eq(nfmeta_flow_act(&d, 1020), NFMETA_ACTION_INSPECT);

	ck_assert_int_eq(decide(&d, NFMETA_ACTION_SHUNT, sticky, 0, 1), 1);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_INSPECT, 0, 0, 1), 0);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_DROP, 0, 0, 1), 0);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_DROP, sticky, 1, 2), 1);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_INSPECT, sticky, 0, 1), 0); /* not who dropped */
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_INSPECT, sticky, 0, 2), 1);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_DROP, sticky, 0, 2), 1);
	/* What is no verdict changes nothing, and lets nothing through. */
	d.flags = 0;
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_NONE, sticky, 0, 2), 0);
	ck_assert_int_eq(decide(&d, 5, sticky, 0, 2), 0);
	ck_assert_int_eq(decide(&d, 255, 0, 0, 2), 0);
	ck_assert_uint_eq(nfmeta_flow_act(&d, 1000), NFMETA_ACTION_DROP);
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_DROP, sticky, 0, 2), 1);
	d.until = 1000; /* has run out */
	ck_assert_int_eq(decide(&d, NFMETA_ACTION_INSPECT, 0, 0, 1), 1);
}
END_TEST

START_TEST(generations)
{
	ck_assert(nfmeta_flow_newer(1, 0));
	ck_assert(nfmeta_flow_newer(0, 65535));
	ck_assert(nfmeta_flow_newer(32767, 0));
	ck_assert(!nfmeta_flow_newer(0, 0));
	ck_assert(!nfmeta_flow_newer(0, 1));
	ck_assert(!nfmeta_flow_newer(65535, 0));
}
END_TEST

/* ---- all links, and the table --------------------------------------------------------------------- */

START_TEST(broadcast)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_RING, .flow_ring = 512,
				 .flow_backlog = NFMETA_NO_BACKLOG);
	struct nfmeta_flow_delete d = {1, 1, 0};
	struct nfmeta_link *p[3], *n[3];
	struct nfmeta_flow_to to[3];
	char name[] = "l0";
	unsigned int i, k, got[3] = {0};

	memset(to, 0, sizeof(to));
	for (i = 0; i < 3; i++) {
		name[1] = (char)('0' + i);
		ck_ok(nfmeta_link_create(name, &o, &p[i]));
		ck_ok(nfmeta_link_attach(name, 0, 0, &n[i]));
		ck_ok(nfmeta_flow_subscribe(n[i], ALL));
		ck_assert_int_eq(nfmeta_flow_collect(p[i], 0, &msg), 1);
		ck_ok(nfmeta_flow_snapshot(p[i], 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
		to[i].link = p[i];
	}
	/* The one in the middle sleeps. */
	for (k = 0; k < 200; k++) {
		d.flow_id = k;
		ck_assert_int_eq(nfmeta_flow_broadcast(to, 3, NFMETA_MSG_DELETE, &d, 1),
				 k < (512 - 5) / 6 ? 0 : -EAGAIN);
		for (i = 0; i < 3; i += 2)
			while (nfmeta_flow_next(n[i], &msg) == 1)
				got[i] += msg->type == NFMETA_MSG_DELETE;
	}
	ck_assert_uint_eq(got[0], 200);
	ck_assert_uint_eq(got[2], 200);
	ck_assert_uint_eq(flow_stats(p[0]).lost, 0);
	ck_assert_uint_eq(flow_stats(p[1]).lost, 200 - (512 - 5) / 6);
	for (i = 0; i < 3; i++) {
		ck_ok(nfmeta_link_detach(n[i]));
		ck_ok(nfmeta_link_destroy(p[i], NULL));
	}
}
END_TEST

START_TEST(table_carrier)
{
	struct nfmeta_flow_state f = {3, 1, NFMETA_ACTION_SHUNT, 0, 77, {0}};
	const struct nfmeta_flow_verdict v = {.flow_id = 3, .flow_gen = 1};
	struct nfmeta_flow_key key = {.ip_version = 4, .proto = 6};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_TABLE);
	struct nfmeta_table_flow copy;
	struct nfmeta_table *t;
	uint32_t flows;

	ck_ok(nfmeta_table_create("t", 8, &t));
	o.table = t;
	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_assert_ptr_nonnull(nfmeta_link_table(link_n));
	nfmeta_table_flows(nfmeta_link_table(link_n), &flows);
	ck_assert_uint_eq(flows, 8);
	nfmeta_table_open(&nfmeta_table_flows(t, NULL)[3], 1, &key, 0);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_UPDATE, &f, 1));
	ck_assert_int_eq(
		nfmeta_table_read(&nfmeta_table_flows(nfmeta_link_table(link_n), NULL)[3], &copy),
		1);
	ck_assert_uint_eq(copy.app_id, 77);
	ck_ok(nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, &v, 1));
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &msg), 1);
	ck_refused(nfmeta_flow_subscribe(link_n, ALL), NFMETA_ENOFLOW);
	ck_ok(send_delete(3, 1));
	ck_assert_int_eq(
		nfmeta_table_read(&nfmeta_table_flows(nfmeta_link_table(link_n), NULL)[3], &copy),
		0);
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	nfmeta_table_destroy(t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("flow");
	TCase *c = tcase_create("flow");
	const char *run = getenv("NFMETA_RUN_ID");
	char dir[128];
	SRunner *r;
	int failed;

	snprintf(prefix, sizeof(prefix), "%s-flow-%d", run != NULL ? run : "nfmeta", getpid());
	tcase_add_checked_fixture(c, setup, NULL);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, no_carrier);
	tcase_add_test(c, wrong_calls);
	tcase_add_loop_test(c, not_subscribed, 0, 2);
	tcase_add_loop_test(c, content, 0, 2);
	tcase_add_loop_test(c, around, 0, 2);
	tcase_add_loop_test(c, one_order, 0, 2);
	tcase_add_loop_test(c, idle_chain, 0, 2);
	tcase_add_test(c, counters);
	tcase_add_test(c, inband_full);
	tcase_add_loop_test(c, not_yours_to_say, 0, 2);
	tcase_add_loop_test(c, gap_and_snapshot, 0, 2);
	tcase_add_loop_test(c, gap_in_snapshot, 0, 2);
	tcase_add_loop_test(c, backlog, 0, 2);
	tcase_add_test(c, long_before_short);
	tcase_add_loop_test(c, next_nf, 0, 2);
	tcase_add_loop_test(c, next_nf_after_a_rest, 0, 2);
	tcase_add_loop_test(c, old_answer, 0, 2);
	tcase_add_loop_test(c, next_nf_deaf, 0, 2);
	tcase_add_loop_test(c, heartbeat, 0, 2);
	tcase_add_loop_test(c, reset, 0, 2);
	tcase_add_loop_test(c, reset_does_not_wait, 0, 2);
	tcase_add_loop_test(c, up_full, 0, 2);
	tcase_add_test(c, from_a_newer_side);
	tcase_add_loop_test(c, own_types, 0, 2);
	tcase_add_test(c, not_for_this_nf);
	tcase_add_test(c, many_asks);
	tcase_add_loop_test(c, still_holding, 0, 2);
	tcase_add_loop_test(c, returned_twice, 0, 2);
	tcase_add_test(c, blanks_kept);
	tcase_add_test(c, many_metas);
	tcase_add_loop_test(c, backlog_of_another, 0, 2);
	tcase_add_loop_test(c, heartbeat_out_of_time, 0, 2);
	tcase_add_loop_test(c, bad_message, 0, RTE_DIM(bad_messages));
	tcase_add_test(c, impossible_barrier);
	tcase_add_test(c, bad_message_up);
	tcase_add_loop_test(c, whatever_happens, 0, 4);
	tcase_add_loop_test(c, two_threads, 0, 5);
	tcase_add_test(c, decisions);
	tcase_add_test(c, generations);
	tcase_add_test(c, broadcast);
	tcase_add_test(c, table_carrier);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
