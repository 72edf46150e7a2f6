/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * NFs that die with packets: what they had comes back exactly, and the next one
 * takes their place.  Check's child of each test is the primary; the secondaries
 * are this program again, started with a role.
 */
#include <errno.h>

#include <rte_random.h>
#include <rte_ring.h>

#include "twoproc.h"

#define BURST 32
#define HANDS 64     /* packets that a juggler holds, at most */
#define KEPT 8	     /* ... at least, when so many were sent */
#define SEQS 4000000 /* packets of a test, at most */

static struct nfmeta_link *link_p;

/* ---- The roles ---------------------------------------------------------------------- */

static int
attach(char **arg, struct nfmeta_link **link)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 10000, link);
	return rc;
}

/* hold PREFIX LINK N BLANKS BACK: take packets and blanks, give some back, keep the rest. */
static int
role_hold(char **arg)
{
	unsigned int packets = (unsigned int)atoi(arg[2]), blanks = (unsigned int)atoi(arg[3]);
	unsigned int back = (unsigned int)atoi(arg[4]), n;
	static struct rte_mbuf *m[65536];
	struct nfmeta_link *link;
	int rc = attach(arg, &link);

	for (n = 0; rc == 0 && n < packets;)
		n += nfmeta_recv_burst(link, m + n, NULL, (uint16_t)(packets - n));
	if (rc == 0 && nfmeta_return_burst(link, m, NULL, (uint16_t)back) != back)
		rc = 1;
	while (rc == 0 && blanks > 0)
		blanks -= nfmeta_blank_burst(link, m, (uint16_t)blanks);
	say(rc);
	wait_for_parent();
	return rc != 0;
}

/* juggle PREFIX LINK: hold some, take and give back others, in any order, until killed. */
static int
role_juggle(char **arg)
{
	struct rte_mbuf *m[HANDS + BURST], *blank;
	uint8_t how[] = {NFMETA_INJECTED | NFMETA_DROP};
	struct nfmeta_link *link;
	unsigned int n = 0, i, k;
	int rc = attach(arg, &link);

	say(rc);
	while (rc == 0) {
		n += nfmeta_recv_burst(link, m + n, NULL, BURST);
		for (k = 0; n - k > HANDS || (n - k > KEPT && rte_rand_max(4) == 0); k++) {
			struct rte_mbuf *last = m[n - 1 - k];

			i = (unsigned int)rte_rand_max(n - k);
			m[n - 1 - k] = m[i];
			m[i] = last;
		}
		n -= k;
		nfmeta_return_burst(link, m + n, NULL, (uint16_t)k);
		if (rte_rand_max(8) == 0 && nfmeta_blank_burst(link, &blank, 1) == 1)
			nfmeta_return_burst(link, &blank, how, 1);
	}
	return 1;
}

/* stand PREFIX LINK: hold five, give back others and blanks, until told that it was cut off. */
static int
role_stand(char **arg)
{
	struct rte_mbuf *m[5 + BURST], *blank;
	uint8_t how[] = {NFMETA_INJECTED | NFMETA_DROP};
	struct nfmeta_link *link;
	unsigned int n = 0;
	uint64_t asked = 0;
	int rc = attach(arg, &link);

	say(rc);
	while (rc == 0) {
		n += nfmeta_recv_burst(link, m + n, NULL, (uint16_t)(RTE_DIM(m) - n));
		if (n > 5)
			n -= nfmeta_return_burst(link, m + 5, NULL, (uint16_t)(n - 5));
		if (nfmeta_blank_burst(link, &blank, 1) == 1)
			nfmeta_return_burst(link, &blank, how, 1);
		if (now_us() - asked < 1000)
			continue;
		asked = now_us();
		rc = nfmeta_link_check(link);
	}
	say(rc);
	rc = nfmeta_link_detach(link);
	say(rc);
	nfmeta_eal_detach();
	return rc != 0;
}

/*
 * told PREFIX LINK N BACK: subscribe, say so; take N packets and whatever messages come
 * until there were as many NEW ones as it takes; give BACK packets back; keep the rest, and the
 * last message.
 */
static int
role_told(char **arg)
{
	unsigned int packets = (unsigned int)atoi(arg[2]), back = (unsigned int)atoi(arg[3]);
	const uint64_t types = NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_DELETE);
	const struct nfmeta_flow_batch *b;
	static struct rte_mbuf *m[65536];
	struct nfmeta_link *link;
	unsigned int n = 0;
	bool told = false;
	int rc = attach(arg, &link);

	if (rc == 0)
		rc = nfmeta_flow_subscribe(link, types);
	say(rc);
	while (rc == 0 && (n < packets || !told)) {
		if (n < packets)
			n += nfmeta_recv_burst(link, m + n, NULL, (uint16_t)(packets - n));
		if (n == packets || !told) /* else the last one stays in hand */
			told = nfmeta_flow_next(link, &b) == 1 && b->type == NFMETA_MSG_NEW &&
			       n == packets;
	}
	if (rc == 0 && nfmeta_return_burst(link, m, NULL, (uint16_t)back) != back)
		rc = 1;
	say(rc);
	wait_for_parent();
	return rc != 0;
}

/* torn PREFIX LINK HOW: as one that dies inside of ring operations, with 20 packets in hand. */
static int
role_torn(char **arg)
{
	struct rte_ring *down, *up, *blank, *flow_down, *flow_up;
	struct rte_mbuf *m[20];
	struct nfmeta_link *link;
	unsigned int n = 0;
	int rc = attach(arg, &link);

	while (rc == 0 && n < RTE_DIM(m))
		n += nfmeta_recv_burst(link, m + n, NULL, (uint16_t)(RTE_DIM(m) - n));
	down = rte_ring_lookup("nfm.t.d0");
	up = rte_ring_lookup("nfm.t.u0");
	blank = rte_ring_lookup("nfm.t.b0");
	flow_down = rte_ring_lookup("nfm.t.f0");
	flow_up = rte_ring_lookup("nfm.t.v0");
	if (rc == 0 &&
	    (down == NULL || up == NULL || blank == NULL || flow_down == NULL || flow_up == NULL))
		rc = 1;
	if (rc == 0 && strcmp(arg[2], "half") == 0) {
		down->cons.head += 3; /* taken, but not for good */
		blank->cons.head += 2;
		up->prod.head += 5; /* a place for five, and nothing put there */
		flow_down->cons.head += 3;
		flow_up->prod.head += 5;
	} else if (rc == 0) { /* indices that cannot be: beyond the other side's */
		down->cons.tail = down->cons.head = down->prod.tail + 7;
		blank->cons.tail = blank->cons.head = blank->prod.tail + 100000;
		up->prod.tail = up->prod.head = up->cons.tail - 3;
		flow_down->cons.tail = flow_down->cons.head = flow_down->prod.tail + 7;
		flow_up->prod.tail = flow_up->prod.head = flow_up->cons.tail - 3;
	}
	say(rc);
	wait_for_parent();
	return rc != 0;
}

static const struct role roles[] = {{"torn", 3, role_torn},
				    {"told", 4, role_told},
				    {"hold", 5, role_hold},
				    {"juggle", 2, role_juggle},
				    {"stand", 2, role_stand}};

/* ---- The primary ---------------------------------------------------------------------- */

static uint32_t seq; /* of the next packet */
static uint8_t back[SEQS];

static uint32_t
seq_of(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod(m, const uint32_t *);
}

/* Sends up to n packets; returns how many were accepted. */
static unsigned int
send(unsigned int n)
{
	struct rte_mbuf *m[BURST];
	unsigned int sent = 0, i, k;

	while (sent < n) {
		k = RTE_MIN(n - sent, (unsigned int)BURST);
		if (rte_pktmbuf_alloc_bulk(pool, m, k) != 0)
			return sent;
		for (i = 0; i < k; i++)
			*(uint32_t *)(void *)rte_pktmbuf_append(m[i], 64) = seq + i;
		i = nfmeta_send_burst(link_p, 0, m, (uint16_t)k);
		rte_pktmbuf_free_bulk(m + i, k - i);
		seq += i;
		sent += i;
		if (i < k)
			break;
	}
	return sent;
}

/* These are the primary's again: each one for the first time. */
static void
take(struct rte_mbuf **m, const uint8_t *how, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if ((how[i] & NFMETA_INJECTED) == 0) {
			uint32_t s = seq_of(m[i]);

			ck_assert_msg(s < seq && back[s] == 0, "packet %u came back twice", s);
			back[s] = 1;
		}
	rte_pktmbuf_free_bulk(m, n);
}

static unsigned int
collect(void)
{
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	unsigned int n = nfmeta_collect_burst(link_p, 0, m, how, BURST);

	take(m, how, n);
	return n;
}

static void
all_back(bool alone)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	uint32_t i;

	for (i = 0; i < seq; i++)
		ck_assert_msg(back[i] == 1, "packet %u did not come back", i);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.sent, seq);
	ck_assert_uint_eq(s.collected, seq);
	ck_assert_uint_eq(s.foreign, 0);
	ck_assert_uint_eq(s.down, 0);
	ck_assert_uint_eq(s.held, 0);
	if (alone) /* else the next NF may have given back blanks */
		ck_assert_uint_eq(s.up, 0);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 0);
}

/* The pool, but for the blanks in stock: so many, and none of them twice. */
static void
pool_is_exact(unsigned int blanks)
{
	static struct rte_mbuf *m[POOL_SIZE];
	unsigned int i, n = POOL_SIZE - blanks;

	ck_assert_uint_eq(rte_mempool_avail_count(pool), n);
	for (i = 0; i < n; i++) {
		m[i] = rte_pktmbuf_alloc(pool);
		ck_assert_ptr_nonnull(m[i]);
		*(uint32_t *)(void *)rte_pktmbuf_append(m[i], 64) = i;
	}
	for (i = 0; i < n; i++)
		ck_assert_msg(seq_of(m[i]) == i, "an mbuf is in the pool twice");
	rte_pktmbuf_free_bulk(m, n);
}

static void
until_dead(struct child *nf)
{
	murder(nf);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
}

/* ---- Tests ------------------------------------------------------------------------------- */

/* All of it, in the order sent, with the policy of the link and word of what was touched. */
START_TEST(in_order)
{
	static const uint8_t policies[] = {NFMETA_FULL_DROP, NFMETA_FULL_WAIT, NFMETA_FULL_BYPASS};
	const uint8_t policy = policies[_i],
		      how_lost = NFMETA_RECLAIMED |
				 (policy == NFMETA_FULL_BYPASS ? NFMETA_FORWARD : NFMETA_DROP);
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 512, .when_full = policy, .blanks = 64, .pool = pool);
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct rte_mbuf *m[7];
	uint8_t how[7];
	struct child nf;
	uint32_t at = 0;
	int n, i;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 7), 0); /* nobody was there */
	ck_assert_uint_eq(send(512), 512);
	nf = START("hold", prefix_of(""), "t", "42", "3", "10");
	ck_said(&nf, 0);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 7), -EBUSY);
	until_dead(&nf);
	while ((n = nfmeta_link_reclaim(link_p, 0, m, how, 7)) > 0) {
		for (i = 0; i < n; i++, at++) {
			ck_assert_uint_eq(seq_of(m[i]), at);
			ck_assert_uint_eq(how[i], at < 10   ? NFMETA_FORWARD
						  : at < 42 ? how_lost | NFMETA_ORPHAN
							    : how_lost);
		}
		take(m, how, (unsigned int)n);
	}
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(at, 512);
	all_back(true);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.reclaimed, 502);
	ck_assert_uint_eq(s.orphans, 32);
	ck_assert_uint_eq(s.blanks, s.injected);
	pool_is_exact(61);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 7), 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);

	/* Another one gets all that is sent from now on. */
	ck_assert_uint_eq(send(100), 100);
	nf = START("hold", prefix_of(""), "t", "100", "61", "100");
	ck_said(&nf, 0);
	while (nfmeta_link_in_flight(link_p, 0) > 0)
		collect();
	all_back(true);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.epoch, 2);
	until_dead(&nf);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 7), 0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	remove_dead_lcores();
}
END_TEST

/* What the NF has held for longer than the ring remembers is found, too. */
START_TEST(held_for_long)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 64);
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	struct child nf;
	int n;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	nf = START("juggle", prefix_of(""), "t");
	ck_said(&nf, 0);
	while (seq < 100000) {
		send(BURST);
		collect();
	}
	until_dead(&nf);
	while ((n = nfmeta_link_reclaim(link_p, 0, m, how, BURST)) > 0)
		take(m, how, (unsigned int)n);
	all_back(true);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_gt(s.orphans, 0);
	pool_is_exact(0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	remove_dead_lcores();
}
END_TEST

/* Killed anywhere in its work, and another one comes at once. */
START_TEST(again_at_once)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256, .blanks = 16, .pool = pool);
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	unsigned int round, zones;
	struct rte_mbuf *m[BURST];
	struct child nf, next;
	uint8_t how[BURST];
	uint64_t end;
	int n;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	zones = memzones();
	nf = START("juggle", prefix_of(""), "t");
	for (round = 1; round <= 50; round++) {
		ck_said(&nf, 0);
		end = now_us() + 1000 + rte_rand_max(20000);
		while (now_us() < end && seq + BURST < SEQS) {
			send(BURST);
			collect();
		}
		if (round % 2 == 0)
			kill(nf.pid, SIGSTOP); /* killed when it has no time for anything */
		until_dead(&nf);
		next = START("juggle", prefix_of(""), "t"); /* waits until the place is free */
		while ((n = nfmeta_link_reclaim(link_p, 0, m, how, BURST)) != 0) {
			if (n < 0) /* the next one looks whether the queue is free */
				ck_assert_int_eq(n, -EBUSY);
			else
				take(m, how, (unsigned int)n);
		}
		all_back(false);
		ck_assert_uint_eq(memzones(), zones);
		nf = next;
	}
	ck_said(&nf, 0);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.epoch, 51);
	ck_assert_uint_le(s.orphans, 50 * (HANDS + BURST));
	until_dead(&nf);
	while ((n = nfmeta_link_reclaim(link_p, 0, m, how, BURST)) > 0)
		take(m, how, (unsigned int)n);
	all_back(true);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Only some of it is taken back before the link goes. */
START_TEST(destroyed_meanwhile)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256, .blanks = 16, .pool = pool);
	struct rte_mbuf *m[5];
	struct child nf;
	uint8_t how[5];
	uint64_t orphans = 0;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_uint_eq(send(200), 200);
	nf = START("hold", prefix_of(""), "t", "100", "2", "20");
	ck_said(&nf, 0);
	until_dead(&nf);
	if (_i > 0) {
		ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 5), 5);
		take(m, how, 5);
	}
	if (_i > 1)
		while (nfmeta_link_in_flight(link_p, 0) > 150) {
			ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 5), 5);
			take(m, how, 5);
		}
	ck_ok(nfmeta_link_destroy(link_p, &orphans));
	ck_assert_uint_eq(orphans, _i > 1 ? 50 : 82);
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Packets of pools that were made after the link, some with small mbufs. */
START_TEST(later_pools)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256);
	const unsigned int rooms[] = {RTE_MBUF_DEFAULT_BUF_SIZE, 0, 9216};
	struct rte_mempool *later[RTE_DIM(rooms)];
	struct rte_mbuf *m[BURST];
	unsigned int i, n = 0;
	uint8_t how[BURST];
	struct child nf;
	char name[16];

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_uint_eq(send(20), 20);
	for (i = 0; i < RTE_DIM(rooms); i++) {
		snprintf(name, sizeof(name), "later%u", i);
		later[i] =
			rte_pktmbuf_pool_create(name, 127, 0, 0, (uint16_t)rooms[i], SOCKET_ID_ANY);
		ck_assert_ptr_nonnull(later[i]);
		ck_assert_int_eq(rte_pktmbuf_alloc_bulk(later[i], m, BURST), 0);
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, BURST), BURST);
	}
	nf = START("hold", prefix_of(""), "t", "100", "0", "10");
	ck_said(&nf, 0);
	until_dead(&nf);
	for (;;) {
		int k = nfmeta_link_reclaim(link_p, 0, m, how, BURST);

		if (k <= 0)
			break;
		rte_pktmbuf_free_bulk(m, (unsigned int)k);
		n += (unsigned int)k;
	}
	ck_assert_uint_eq(n, 20 + RTE_DIM(rooms) * BURST);
	pool_is_exact(0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	for (i = 0; i < RTE_DIM(rooms); i++) {
		ck_assert_uint_eq(rte_mempool_avail_count(later[i]), 127);
		rte_mempool_free(later[i]);
	}
	remove_dead_lcores();
}
END_TEST

/* It has stopped: no instruction more. */
static void
halt(struct child *nf)
{
	int status;

	ck_assert_int_eq(kill(nf->pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(nf->pid, &status, WUNTRACED), nf->pid);
	ck_assert_int_ne(WIFSTOPPED(status), 0);
}

static struct nfmeta_link_stats
stats(void)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};

	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	return s;
}

/* Cut it off; what it had counts as back.  Returns how many packets that were. */
static uint32_t
fence(void)
{
	uint64_t packets = 0, before = stats().fenced;
	uint32_t i, n = 0;

	ck_ok(nfmeta_link_fence(link_p, 0, &packets));
	while (collect() != 0) /* what was set aside before */
		;
	for (i = 0; i < seq; i++)
		if (back[i] == 0) {
			back[i] = 1;
			n++;
		}
	ck_assert_uint_eq(packets, n);
	ck_assert_uint_eq(stats().fenced, before + n);
	return n;
}

/* It wakes up beside the next one: its doings are nobody's business. */
START_TEST(fenced)
{
	static const uint8_t policies[] = {NFMETA_FULL_DROP, NFMETA_FULL_WAIT};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256, .blanks = 32, .pool = pool,
						     .when_full = policies[_i], .wait_us = 100);
	struct child nf, next;
	uint64_t beat, end;
	uint32_t gone;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_int_eq(nfmeta_link_fence(link_p, 0, NULL), -EINVAL); /* nobody */
	nf = START("stand", prefix_of(""), "t");
	ck_said(&nf, 0);
	while (seq < 9960) {
		send(BURST);
		collect();
	}
	/* So that there is room for the last ones, which with _i are to be set aside. */
	while (stats().sent - stats().collected > 128)
		collect();
	while (seq < 9990) {
		send(BURST);
		if (_i == 0)
			collect();
	}
	halt(&nf);
	beat = stats().heartbeat;
	while (send(BURST) == BURST)
		;
	while (_i == 0 && collect() != 0)
		;
	usleep(2000);
	ck_assert_uint_eq(stats().heartbeat, beat);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	gone = fence();
	ck_assert_uint_ge(gone, 5);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	all_back(true);
	ck_assert_uint_eq(send(256), 256); /* there is room for all */

	next = START("stand", prefix_of(""), "t");
	ck_said(&next, 0);
	ck_assert_uint_eq(stats().epoch, 2);
	end = now_us() + 20000;
	while (now_us() < end) {
		send(BURST);
		collect();
	}
	ck_assert_int_eq(nfmeta_link_destroy(link_p, NULL), -EBUSY);
	ck_assert_int_eq(kill(nf.pid, SIGCONT), 0);
	ck_said(&nf, NFMETA_EFENCED);
	ck_said(&nf, 0);
	end = now_us() + 20000;
	while (now_us() < end) {
		send(BURST);
		collect();
	}
	ck_assert_uint_eq(stats().foreign, 0);
	ck_assert_int_eq(finish(&nf), 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);

	/* The next one dies: it is reclaimed as ever. */
	murder(&next);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
	ck_assert_int_eq(nfmeta_link_fence(link_p, 0, NULL), -EINVAL);
	for (;;) {
		struct rte_mbuf *m[BURST];
		uint8_t how[BURST];
		int n = nfmeta_link_reclaim(link_p, 0, m, how, BURST);

		ck_assert_int_ge(n, 0);
		if (n == 0)
			break;
		take(m, how, (unsigned int)n);
	}
	all_back(true);
	/* One that is not at the queue's first rings is told, too. */
	nf = START("stand", prefix_of(""), "t");
	ck_said(&nf, 0);
	ck_assert_uint_eq(stats().epoch, 3);
	halt(&nf);
	fence();
	ck_assert_int_eq(kill(nf.pid, SIGCONT), 0);
	ck_said(&nf, NFMETA_EFENCED);
	ck_said(&nf, 0);
	ck_assert_int_eq(finish(&nf), 0);
	next = START("stand", prefix_of(""), "t");
	ck_said(&next, 0);
	ck_assert_uint_eq(stats().epoch, 4);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	nfmeta_link_close(link_p);
	ck_said(&next, NFMETA_ECLOSING);
	ck_said(&next, 0);
	ck_assert_int_eq(finish(&next), 0);
	while (collect() != 0) /* blanks */
		;
	all_back(true);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Again and again; each is killed when it has been asleep for a while. */
START_TEST(fenced_often)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 256, .blanks = 16, .pool = pool, .spares = 4);
	unsigned int round, i, zones;
	struct child nf[12];

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	zones = memzones();
	for (round = 0; round < RTE_DIM(nf); round++) {
		nf[round] = START("juggle", prefix_of(""), "t");
		ck_said(&nf[round], 0);
		for (i = 0; i < 100 + rte_rand_max(1000); i++) {
			send(BURST);
			collect();
		}
		halt(&nf[round]);
		while (collect() != 0)
			;
		if (round == 4)
			ck_assert_int_eq(nfmeta_link_fence(link_p, 0, NULL), -EAGAIN);
		if (round >= 4) { /* one that was cut off long ago ends */
			murder(&nf[round - 4]);
			ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
		}
		fence();
		all_back(true);
		if (round % 3 == 0) /* and goes on as if nothing was */
			kill(nf[round].pid, SIGCONT);
	}
	ck_assert_uint_eq(stats().epoch, RTE_DIM(nf));
	ck_assert_int_eq(nfmeta_link_destroy(link_p, NULL), -EBUSY);
	for (i = RTE_DIM(nf) - 4; i < RTE_DIM(nf); i++)
		murder(&nf[i]);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	ck_assert_uint_eq(memzones(), zones);
	pool_is_exact(16);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Sends n packets, and one message NEW behind them. */
static void
send_and_tell(unsigned int n)
{
	struct nfmeta_flow_state flow = {.flow_id = 1, .flow_gen = 1};

	ck_assert_uint_eq(send(n), n);
	ck_ok(nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, &flow, 1));
}

/* An NF that subscribed is given its (empty) snapshot. */
static struct child
start_told(const char *packets, const char *back_again)
{
	struct child nf = START("told", prefix_of(""), "t", packets, back_again);
	const struct nfmeta_flow_batch *b = NULL;

	ck_said(&nf, 0);
	collect();
	while (nfmeta_flow_collect(link_p, 0, &b) == 0)
		collect();
	ck_assert_int_eq(b->type, NFMETA_MSG_RESYNC);
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));
	return nf;
}

static void
reclaim(void)
{
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	int n;

	while ((n = nfmeta_link_reclaim(link_p, 0, m, how, BURST)) > 0)
		take(m, how, (unsigned int)n);
	ck_assert_int_eq(n, 0);
}

/* Half of an operation counts as none; the rings work for the next NF. */
START_TEST(torn_rings)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 16, .pool = pool,
						     .carrier = NFMETA_CARRIER_RING);
	struct child nf;
	unsigned int round;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	for (round = 0; round < 4; round++) {
		ck_assert_uint_eq(send(60), 60);
		nf = START("torn", prefix_of(""), "t", round < 2 ? "forged" : "half");
		ck_said(&nf, 0);
		until_dead(&nf);
		reclaim();
		all_back(true);
		/* Without an index that can be believed, all 60 may have been in its hands. */
		ck_assert_uint_eq(stats().orphans,
				  round < 2 ? 60 * (round + 1) : 120 + 20 * (round - 1));
	}
	nf = start_told("60", "60");
	send_and_tell(60);
	ck_said(&nf, 0);
	while (nfmeta_link_in_flight(link_p, 0) > 0)
		collect();
	all_back(false);
	until_dead(&nf);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Messages among the packets, in its hands and on the rings, go back to the pool. */
START_TEST(messages_too)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 256, .blanks = 16, .pool = pool,
				 .carrier = _i == 0 ? NFMETA_CARRIER_INBAND : NFMETA_CARRIER_RING);
	struct nfmeta_flow_stats f = {.sz = sizeof(f)};
	const struct nfmeta_flow_batch *b;
	unsigned int i, level = 0;
	struct child nf;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	for (i = 1; i <= 2; i++) {
		nf = start_told("20", "5");
		send_and_tell(20); /* it has this message in its hands */
		send_and_tell(30); /* and these it has not received */
		send_and_tell(10);
		ck_said(&nf, 0);
		until_dead(&nf);
		reclaim();
		ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &b), 0);
		all_back(true);
		ck_assert_uint_eq(stats().orphans, i * 15);
		while (collect() != 0) /* stocks blanks */
			;
		if (i == 1)
			level = rte_mempool_avail_count(pool);
		ck_assert_uint_eq(rte_mempool_avail_count(pool), level);
		ck_assert_uint_eq(stats().metas, 0);
		ck_ok(nfmeta_flow_stats(link_p, 0, &f));
		ck_assert_uint_eq(f.state, NFMETA_FEED_IDLE);
		ck_assert_uint_eq(f.seen, f.sent);
		ck_assert_uint_eq(f.collected, f.replies);
		if (_i == 1)
			ck_assert_uint_eq(rte_ring_count(rte_ring_lookup("nfm.t.f0")), 0);
	}
	ck_assert_uint_eq(send(256), 256); /* there is room for all */
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/*
 * It is cut off while packets and messages that it gave back are set aside, and while
 * the caller reads what it said; the next one is heard from its first word.
 */
START_TEST(fenced_while_read)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 16, .pool = pool, .wait_us = 100,
				 .when_full = NFMETA_FULL_WAIT,
				 .carrier = _i == 0 ? NFMETA_CARRIER_INBAND : NFMETA_CARRIER_RING);
	struct nfmeta_flow_stats f = {.sz = sizeof(f)};
	const struct nfmeta_flow_batch *b;
	struct child nf, next;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	nf = start_told("20", "15");
	send_and_tell(20);
	ck_said(&nf, 0);
	halt(&nf);
	while (send(BURST) == BURST) /* until what came back is aside, and the link full */
		;
	/* The message that was read last is still the caller's. */
	fence();
	all_back(false);
	ck_assert_uint_eq(stats().metas, 0);
	ck_ok(nfmeta_flow_stats(link_p, 0, &f));
	ck_assert_uint_eq(f.collected + (_i == 0), f.replies); /* in-band it is kept */

	next = START("told", prefix_of(""), "t", "0", "0");
	ck_said(&next, 0);
	collect();
	while (nfmeta_flow_collect(link_p, 0, &b) == 0)
		collect();
	ck_assert_int_eq(b->type, NFMETA_MSG_RESYNC);
	ck_assert_uint_eq(b->epoch, 2);
	murder(&nf);
	until_dead(&next);
	reclaim();
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &b), 0);
	all_back(true);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* The next NF waits while some is not taken back yet, and does not come in. */
START_TEST(half_reclaimed)
{
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	struct child nf, next;
	int n;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	ck_assert_uint_eq(send(100), 100);
	nf = START("hold", prefix_of(""), "t", "50", "0", "10");
	ck_said(&nf, 0);
	until_dead(&nf);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 15), 10);
	take(m, how, 10);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 15), 15);
	take(m, how, 15);
	ck_assert_uint_eq(stats().up, 0);
	next = START("juggle", prefix_of(""), "t"); /* waits up to 10 s */
	usleep(300000);
	ck_assert_uint_eq(stats().epoch, 1);
	while ((n = nfmeta_link_reclaim(link_p, 0, m, how, BURST)) > 0)
		take(m, how, (unsigned int)n);
	ck_assert_int_eq(n, 0);
	all_back(false);
	ck_said(&next, 0);
	ck_assert_uint_eq(stats().epoch, 2);
	until_dead(&next);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	pool_is_exact(0);
	remove_dead_lcores();
}
END_TEST

/* Small mbufs where big ones were when the link was made. */
START_TEST(smaller_later)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256);
	struct rte_mempool *big, *small, *first = pool;
	struct rte_mbuf *m[200], *b[BURST];
	uint8_t how[BURST];
	struct child nf;
	unsigned int n = 0;
	int k;

	rte_mempool_free(first); /* its mbufs are too small */
	big = rte_pktmbuf_pool_create("big", 511, 0, 0, 9216, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(big);
	ck_ok(nfmeta_link_create("t", &o, &link_p));
	rte_mempool_free(big);
	small = rte_pktmbuf_pool_create("small", 4095, 0, 0, 0, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(small);
	ck_assert_int_eq(rte_pktmbuf_alloc_bulk(small, m, RTE_DIM(m)), 0);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, RTE_DIM(m)), RTE_DIM(m));
	nf = START("hold", prefix_of(""), "t", "150", "0", "100");
	ck_said(&nf, 0);
	while (n < 100 && (k = nfmeta_collect_burst(link_p, 0, b, how, BURST)) > 0) {
		rte_pktmbuf_free_bulk(b, (unsigned int)k);
		n += (unsigned int)k;
	}
	ck_assert_uint_eq(n, 100);
	until_dead(&nf);
	while ((k = nfmeta_link_reclaim(link_p, 0, b, how, BURST)) > 0) {
		rte_pktmbuf_free_bulk(b, (unsigned int)k);
		n += (unsigned int)k;
	}
	ck_assert_uint_eq(n, RTE_DIM(m));
	ck_assert_uint_eq(stats().foreign, 0);
	ck_assert_uint_eq(rte_mempool_avail_count(small), 4095);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	rte_mempool_free(small);
	pool = rte_pktmbuf_pool_create("p", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	remove_dead_lcores();
}
END_TEST

static TCase *
add_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 240);
	suite_add_tcase(s, t);
	return t;
}

/* ---- main ---------------------------------------------------------------------------------- */

int
main(int argc, char **argv)
{
	int status = play_role(argc, argv, roles, RTE_DIM(roles));
	TCase *t;
	Suite *s;

	if (status >= 0)
		return status;
	s = suite_create("faults");
	t = add_case(s, "dies");
	tcase_add_loop_test(t, in_order, 0, 3);
	tcase_add_test(t, torn_rings);
	tcase_add_loop_test(t, messages_too, 0, 2);
	tcase_add_test(t, half_reclaimed);
	tcase_add_loop_test(t, destroyed_meanwhile, 0, 3);
	tcase_add_test(t, held_for_long);
	tcase_add_test(t, later_pools);
	tcase_add_test(t, smaller_later);
	t = add_case(s, "stands");
	tcase_add_loop_test(t, fenced, 0, 2);
	tcase_add_loop_test(t, fenced_while_read, 0, 2);
	tcase_add_test(t, fenced_often);
	t = add_case(s, "often");
	tcase_add_test(t, again_at_once);
	return run_suite(s, "fault");
}
