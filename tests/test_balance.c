/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The splitter's balancer alone, in a world of numbers: queues of NFs that do so many packets a
 * millisecond, sessions that come, send, and end.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rte_hash_crc.h>

#include "../examples/splitter/balance.h"

#define HZ UINT64_C(1000000)
#define MS (HZ / 1000)
#define RING 1024
#define LIVE 65536

static uint32_t
random32(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16);
}

static double
random1(void)
{
	return (random32() + 0.5) / 4294967296.0;
}

static struct nfmeta_flow_key
key_of(uint32_t a, uint32_t b, uint16_t port)
{
	struct nfmeta_flow_key k = {.ip_version = 4, .proto = 6};

	memcpy(k.addr_a, &a, 4);
	memcpy(k.addr_b, &b, 4);
	memcpy(k.port_a, &port, 2);
	return k;
}

/* ---- a world ------------------------------------------------------------------------ */

struct session {
	struct nfmeta_flow_key key;
	double rate, owed; /* packets a millisecond */
	uint32_t left;
	uint16_t queue;
};

struct world {
	struct balance *b;
	uint16_t queues;
	uint64_t now;
	bool tells;			 /* NFs say how busy they are, four times a second */
	double speed[NFMETA_QUEUES_MAX]; /* of the NF, packets a millisecond */
	double done[NFMETA_QUEUES_MAX];
	uint64_t busy[NFMETA_QUEUES_MAX]; /* packets since its last word */
	struct balance_seen seen[NFMETA_QUEUES_MAX];
	uint64_t packets, lost;
	uint64_t begun[NFMETA_QUEUES_MAX]; /* sessions */
	uint32_t n;
	struct session live[LIVE];
};

static void
begin(struct world *w, const struct nfmeta_flow_key *key, double rate, uint32_t packets)
{
	struct session *s = &w->live[w->n++];

	ck_assert_uint_lt(w->n, LIVE);
	*s = (struct session){.key = *key, .rate = rate, .left = packets};
	s->queue = balance_choose(w->b, key);
	ck_assert_uint_lt(s->queue, w->queues);
	w->begun[s->queue]++;
}

static void
send_some(struct world *w, struct session *s)
{
	uint32_t k;

	s->owed += s->rate;
	k = (uint32_t)s->owed;
	if (k > s->left)
		k = s->left;
	s->owed -= k;
	s->left -= k;
	for (; k > 0; k--) {
		struct balance_seen *q = &w->seen[s->queue];

		w->packets++;
		if (q->sent - q->back < RING) {
			q->sent++;
		} else {
			q->refused++;
			w->lost++;
		}
	}
}

/* One millisecond. */
static void
step(struct world *w)
{
	uint32_t i;
	uint16_t q;

	for (i = 0; i < w->n;) {
		send_some(w, &w->live[i]);
		if (w->live[i].left > 0) {
			i++;
			continue;
		}
		balance_end(w->b, &w->live[i].key, w->live[i].queue);
		w->live[i] = w->live[--w->n];
	}
	w->now += MS;
	for (q = 0; q < w->queues; q++) {
		uint64_t depth = w->seen[q].sent - w->seen[q].back, k;

		w->done[q] += w->speed[q];
		k = (uint64_t)w->done[q];
		w->done[q] -= (double)k;
		k = k < depth ? k : depth;
		w->seen[q].back += k;
		w->busy[q] += k;
		if (w->tells && (w->now / MS + q * 13) % 250 == 0) {
			balance_busy(w->b, q, (uint32_t)(w->busy[q] * 4 / w->speed[q]),
				     w->seen[q].back, w->now);
			w->busy[q] = 0;
		}
	}
	balance_look(w->b, w->seen, w->now);
}

static struct world *
world(uint16_t queues, uint8_t mode, const uint16_t *weight, const double *speed)
{
	const struct balance_opts o = {
		.queues = queues,
		.mode = mode,
		.ring_size = RING,
		.weight = weight,
		.hz = HZ,
		.move_after = BALANCE_NEVER,
	};
	struct world *w = calloc(1, sizeof(*w));

	w->b = balance_create(&o);
	ck_assert_ptr_nonnull(w->b);
	w->queues = queues;
	w->now = HZ;
	memcpy(w->speed, speed, queues * sizeof(*speed));
	return w;
}

static void
unmake(struct world *w)
{
	balance_destroy(w->b);
	free(w);
}

/*
 * Sessions of all sizes, few of them with most of the packets, between addresses of which
 * some have many: "load" of all that the NFs can do.
 */
static void
traffic(struct world *w, unsigned int ms, double load)
{
	const double mean = 47; /* packets: of the sizes below, about */
	double speed = 0, due = 0, size, rate;
	uint16_t q;

	for (q = 0; q < w->queues; q++)
		speed += w->speed[q];
	for (; ms > 0; ms--) {
		for (due += speed * load / mean; due >= 1; due--) {
			uint32_t pair = (uint32_t)(pow(random1(), 3) * 400);
			struct nfmeta_flow_key k = key_of(pair, ~pair, (uint16_t)random32());

			size = 12 / pow(random1(), 1 / 1.3);
			size = size < 20000 ? size : 20000;
			rate = 0.1 + random1() * 2 + size / 2000;
			begin(w, &k, rate, (uint32_t)size);
		}
		step(w);
	}
}
static double
share(const struct world *w, uint16_t q)
{
	uint64_t all = 0;
	uint16_t i;

	for (i = 0; i < w->queues; i++)
		all += w->seen[i].sent + w->seen[i].refused;
	return (double)(w->seen[q].sent + w->seen[q].refused) / (double)all;
}

/* ---- hash ---------------------------------------------------------------------------- */

START_TEST(hash_is_of_addresses)
{
	const struct nfmeta_flow_key none = {0};
	double speed[NFMETA_QUEUES_MAX] = {0};
	struct nfmeta_flow_key k, other;
	struct world *w;
	uint32_t i;
	uint16_t n, q;

	for (n = 1; n <= NFMETA_QUEUES_MAX; n = (uint16_t)(n * 2 - n / 3)) {
		w = world(n, BALANCE_HASH, NULL, speed);
		for (i = 0; i < 1000; i++) {
			k = key_of(random32(), random32(), (uint16_t)i);
			q = balance_choose(w->b, &k);
			ck_assert_uint_eq(q, (uint64_t)rte_hash_crc(&k, 32, 0) * n >> 32);
			other = key_of(0, 0, 77);
			memcpy(other.addr_a, k.addr_a, 32);
			other.fragment = 1;
			ck_assert_uint_eq(balance_choose(w->b, &other), q);
			ck_assert_uint_eq(balance_lone(w->b, &other), q);
			/* but who follows a control session */
			q = (uint16_t)((q + 1) % n);
			ck_assert_uint_eq(balance_again(w->b, &other, q), q);
		}
		ck_assert_uint_eq(balance_choose(w->b, &none), 0);
		/* whoever dies or drains */
		balance_serves(w->b, 0, false, w->now);
		balance_drains(w->b, (uint16_t)(n - 1), true, w->now);
		ck_assert_uint_eq(balance_choose(w->b, &k),
				  (uint64_t)rte_hash_crc(&k, 32, 0) * n >> 32);
		ck_assert_uint_eq(w->b->leave, 0);
		unmake(w);
	}
}
END_TEST

START_TEST(hash_by_weights)
{
	static const uint16_t weight[] = {1, 0, 5, 2};
	static const double speed[4];
	struct world *w = world(4, BALANCE_HASH, weight, speed);
	uint64_t n[4] = {0};
	struct nfmeta_flow_key k;
	uint32_t i;

	for (i = 0; i < 80000; i++) {
		k = key_of(random32(), random32(), 1);
		n[balance_choose(w->b, &k)]++;
	}
	ck_assert_uint_eq(n[1], 0);
	ck_assert_double_eq_tol(n[0] / 10000.0, 1, 0.05);
	ck_assert_double_eq_tol(n[2] / 10000.0, 5, 0.05);
	ck_assert_double_eq_tol(n[3] / 10000.0, 2, 0.05);
	unmake(w);
}
END_TEST

/* ---- load ---------------------------------------------------------------------------- */

static const double same[] = {50, 50, 50, 50};
static const double unequal[] = {20, 40, 80, 160};

/* A word a quarter of a second or none; weights as they are or learned. */
START_TEST(weights_are_respected)
{
	static const uint16_t weight[] = {1, 2, 4, 8};
	struct world *w;
	uint16_t q;
	int mode;

	for (mode = BALANCE_LOAD; mode <= BALANCE_PAIRS; mode++) {
		w = world(4, (uint8_t)mode, weight, unequal);
		traffic(w, 20000, 0.6);
		for (q = 0; q < 4; q++)
			ck_assert_double_eq_tol(share(w, q), weight[q] / 15.0, 0.03);
		unmake(w);
	}
	/* all are fast enough: no reason for anything but the weights */
	w = world(4, BALANCE_LOAD, weight, (double[]){500, 500, 500, 500});
	w->tells = true;
	traffic(w, 20000, 0.1);
	for (q = 0; q < 4; q++)
		ck_assert_double_eq_tol(share(w, q), weight[q] / 15.0, 0.03);
	unmake(w);
}
END_TEST

START_TEST(weights_are_learned)
{
	struct world *w = world(4, BALANCE_LOAD, NULL, unequal);
	uint16_t q;

	w->tells = true;
	traffic(w, 5000, 0.5);
	for (q = 0; q < 4; q++)
		ck_assert_double_eq_tol(w->b->q[q].speed / 1000, unequal[q], unequal[q] * 0.1);
	unmake(w);

	w = world(4, BALANCE_LOAD, NULL, unequal);
	w->tells = true;
	traffic(w, 20000, 0.6);
	for (q = 0; q < 4; q++)
		ck_assert_double_eq_tol(share(w, q), unequal[q] / 300, 0.03);
	unmake(w);
}
END_TEST

static double
loss(uint8_t mode, const uint16_t *weight, const double *speed, bool tells, double load)
{
	struct world *w = world(4, mode, weight, speed);
	double lost;

	w->tells = tells;
	traffic(w, 10000, load);
	lost = (double)w->lost / (double)w->packets;
	unmake(w);
	return lost;
}

START_TEST(less_is_lost)
{
	static const uint16_t one[] = {1, 1, 1, 1};
	int i;

	for (i = 0; i < 4; i++) {
		double load = 0.75 + i * 0.05;
		double hash_same = loss(BALANCE_HASH, NULL, same, false, load);
		double hash_not = loss(BALANCE_HASH, NULL, unequal, false, load);
		int mode;

		ck_assert_double_gt(hash_same, 0.005);
		ck_assert_double_gt(hash_not, 0.1);
		for (mode = BALANCE_LOAD; mode <= BALANCE_PAIRS; mode++) {
			ck_assert_double_lt(loss((uint8_t)mode, NULL, same, true, load),
					    hash_same / 2);
			ck_assert_double_lt(loss((uint8_t)mode, NULL, unequal, true, load),
					    hash_not / 2);
			/* NFs that say nothing, or wrong weights: what waits is seen all the same */
			ck_assert_double_lt(loss((uint8_t)mode, NULL, unequal, false, load),
					    hash_not / 2);
			ck_assert_double_lt(loss((uint8_t)mode, one, unequal, true, load),
					    hash_not / 2);
		}
	}
}
END_TEST

/* Many sessions begin before the next look: not all go where it was best at the last one. */
START_TEST(no_herd)
{
	struct nfmeta_flow_key k;
	struct world *w;
	uint64_t was[4];
	uint32_t i;
	uint16_t q;
	int mode;

	for (mode = BALANCE_LOAD; mode <= BALANCE_PAIRS; mode++) {
		w = world(4, (uint8_t)mode, NULL, same);
		for (i = 0; i < 2000; i++) { /* nothing is known of any */
			k = key_of(random32(), random32(), 5);
			begin(w, &k, 0.1, 1);
		}
		for (q = 0; q < 4; q++)
			ck_assert_double_eq_tol((double)w->begun[q] / 2000, 0.25, 0.05);
		unmake(w);

		w = world(4, (uint8_t)mode, NULL, same);
		w->tells = true;
		balance_drains(w->b, 2, true, w->now);
		traffic(w, 3000, 0.6);
		balance_drains(w->b, 2, false, w->now); /* it has nothing to do */
		memcpy(was, w->begun, sizeof(was));
		for (i = 0; i < 2000; i++) {
			k = key_of(random32(), random32(), 5);
			begin(w, &k, 0.1, 1);
		}
		for (q = 0; q < 4; q++) {
			ck_assert_double_gt((double)(w->begun[q] - was[q]) / 2000, 0.05);
			ck_assert_double_lt((double)(w->begun[q] - was[q]) / 2000, 0.6);
		}
		ck_assert_uint_gt(w->begun[2] - was[2], 500);
		unmake(w);
	}
}
END_TEST

/* ---- NFs that drain, are gone, or stand still ------------------------------------------- */

START_TEST(who_drains_gets_none)
{
	struct nfmeta_flow_key k;
	struct world *w;
	uint64_t was;
	int mode;

	for (mode = BALANCE_LOAD; mode <= BALANCE_PAIRS; mode++) {
		unsigned int moved[4] = {0};

		w = world(4, (uint8_t)mode, NULL, same);
		traffic(w, 1000, 0.5);
		balance_drains(w->b, 1, true, w->now);
		was = w->begun[1];
		traffic(w, 1000, 0.5);
		ck_assert_uint_eq(w->begun[1], was);
		balance_serves(w->b, 2, false, w->now);
		was = w->begun[2];
		traffic(w, 1000, 0.5);
		ck_assert_uint_eq(w->begun[2], was);
		ck_assert(!balance_spare(w->b, 0));
		ck_assert(w->b->leave == 0); /* nobody said so */
		/* packets that have no session go elsewhere, too; the others' stay */
		k = key_of(1, 2, 3);
		for (k.addr_b[3] = 0; k.addr_b[3] < 200; k.addr_b[3]++) {
			uint16_t q = balance_lone(w->b, &k), h;

			h = (uint16_t)((uint64_t)rte_hash_crc(&k, 32, 0) * 4 >> 32);
			ck_assert(q != 1 && q != 2);
			ck_assert(h == 1 || h == 2 || h == q);
			moved[q] += h != q;
			ck_assert_uint_eq(balance_lone(w->b, &k), q);
		}
		ck_assert(moved[0] > 10 && moved[3] > 10);
		/* the next NF of the queue does not drain */
		balance_serves(w->b, 1, false, w->now);
		balance_serves(w->b, 1, true, w->now);
		was = w->begun[1];
		traffic(w, 1000, 0.5);
		ck_assert_uint_gt(w->begun[1], was);
		unmake(w);
	}
}
END_TEST

START_TEST(sessions_leave_when_told)
{
	const struct balance_opts o = {
		.queues = 3,
		.mode = BALANCE_LOAD,
		.ring_size = RING,
		.hz = HZ,
		.move_after = 2 * HZ,
	};
	struct balance *b = balance_create(&o);
	struct balance_seen seen[3] = {{0}};
	struct nfmeta_flow_key k = key_of(1, 2, 3);
	uint64_t now = 10 * HZ;
	uint16_t q = balance_choose(b, &k);

	balance_drains(b, q, true, now);
	balance_look(b, seen, now + 2 * HZ - MS);
	ck_assert_uint_eq(b->leave, 0);
	balance_look(b, seen, now + 2 * HZ);
	ck_assert_uint_eq(b->leave, 1u << q);
	ck_assert(!balance_spare(b, q));
	balance_end(b, &k, q);
	ck_assert_uint_ne(balance_choose(b, &k), q);
	ck_assert(balance_spare(b, q));
	/* with nobody left nothing can go anywhere */
	balance_serves(b, 0, false, now + 3 * HZ);
	balance_serves(b, 1, false, now + 3 * HZ);
	balance_serves(b, 2, false, now + 3 * HZ);
	balance_look(b, seen, now + 9 * HZ);
	ck_assert_uint_eq(b->leave, 0);
	ck_assert_uint_lt(balance_choose(b, &k), 3);
	ck_assert_uint_lt(balance_lone(b, &k), 3);
	balance_destroy(b);
}
END_TEST

START_TEST(who_stands_still_gets_few)
{
	struct world *w = world(4, BALANCE_LOAD, NULL, same);
	struct nfmeta_flow_key k;
	uint64_t was[4];
	uint32_t i;
	uint16_t q;

	traffic(w, 1000, 0.3);
	w->speed[3] = 0;
	traffic(w, 1000, 0.3);
	memcpy(was, w->begun, sizeof(was));
	traffic(w, 1000, 0.3);
	ck_assert_uint_eq(w->begun[3], was[3]);
	for (q = 0; q < 3; q++)
		ck_assert_uint_gt(w->begun[q], was[q]);
	w->speed[3] = 50;
	traffic(w, 1000, 0.3);
	ck_assert_uint_gt(w->begun[3], was[3]);

	/* also when its ring is far from full, and nothing comes for the others */
	w->seen[3].sent += 20;
	for (i = 0; i < 2000; i++) {
		w->now += MS;
		if (i == 1000)
			memcpy(was, w->begun, sizeof(was));
		balance_look(w->b, w->seen, w->now);
		k = key_of(i, i, 5);
		q = balance_choose(w->b, &k);
		w->begun[q]++;
		balance_end(w->b, &k, q);
	}
	ck_assert_uint_eq(w->begun[3], was[3]);
	unmake(w);
}
END_TEST

/* ---- what stays together ----------------------------------------------------------------- */

START_TEST(pairs_stay_together)
{
	struct world *w = world(8, BALANCE_PAIRS, NULL, (double[]){50, 50, 50, 50, 50, 50, 50, 50});
	struct nfmeta_flow_key k = key_of(1, 2, 3), later = k;
	uint16_t q = balance_choose(w->b, &k), other = q;
	int i;

	later.fragment = 1;
	memset(later.port_a, 0, sizeof(later.port_a));
	for (i = 0; i < 100; i++) {
		k.port_a[0] = (uint8_t)i;
		ck_assert_uint_eq(balance_choose(w->b, &k), q);
	}
	ck_assert_uint_eq(balance_choose(w->b, &later), q);
	for (i = 0; i < 101; i++)
		balance_end(w->b, &k, q);
	ck_assert_uint_eq(balance_choose(w->b, &k), q); /* the fragments' flow lives */
	balance_end(w->b, &k, q);
	balance_end(w->b, &later, q);
	for (i = 0; i < 50 && other == q; i++) { /* none does */
		other = balance_choose(w->b, &k);
		balance_end(w->b, &k, other);
	}
	ck_assert_uint_ne(other, q);
	ck_assert_uint_eq(w->b->flows, 0);
	unmake(w);
}
END_TEST

START_TEST(fragments_follow)
{
	struct world *w = world(8, BALANCE_LOAD, NULL, (double[]){50, 50, 50, 50, 50, 50, 50, 50});
	struct nfmeta_flow_key k, later;
	uint16_t q;
	uint32_t i;

	for (i = 0; i < 200; i++) {
		k = later = key_of(i, 7, 3);
		later.fragment = 1;
		if (i % 2 == 0) {
			q = balance_choose(w->b, &k); /* with their session, if one lives */
			ck_assert_uint_eq(balance_choose(w->b, &later), q);
			balance_end(w->b, &k, q);
		} else {
			q = balance_lone(w->b, &later); /* else by their addresses */
			ck_assert_uint_eq(balance_choose(w->b, &later), q);
		}
		balance_end(w->b, &later, q);
	}
	unmake(w);
}
END_TEST

START_TEST(again_stays)
{
	struct world *w = world(4, BALANCE_LOAD, NULL, same);
	struct nfmeta_flow_key k = key_of(1, 2, 3);
	uint16_t q = balance_choose(w->b, &k);
	int i;

	for (i = 0; i < 100; i++) {
		balance_end(w->b, &k, q);
		ck_assert_uint_eq(balance_again(w->b, &k, q), q);
	}
	balance_drains(w->b, q, true, w->now);
	balance_end(w->b, &k, q);
	ck_assert_uint_ne(balance_again(w->b, &k, q), q);
	unmake(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("balance");
	TCase *t = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, hash_is_of_addresses);
	tcase_add_test(t, hash_by_weights);
	tcase_add_test(t, weights_are_respected);
	tcase_add_test(t, weights_are_learned);
	tcase_add_test(t, less_is_lost);
	tcase_add_test(t, no_herd);
	tcase_add_test(t, who_drains_gets_none);
	tcase_add_test(t, sessions_leave_when_told);
	tcase_add_test(t, who_stands_still_gets_few);
	tcase_add_test(t, pairs_stay_together);
	tcase_add_test(t, fragments_follow);
	tcase_add_test(t, again_stays);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
