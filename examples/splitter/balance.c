/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>

#include <rte_common.h>
#include <rte_hash_crc.h>

#include "../common/common.h"
#include "balance.h"

/* Seconds. */
#define LATELY 0.1 /* how far back a rate looks */
#define STUCK 0.1  /* without a packet back */
#define OLD_WORD 3 /* after which what an NF said of itself does not count */

#define BUSY_FROM 850 /* permille: from here on an NF is pressed */
#define LEARN_BUSY 50 /* permille, and packets, for a word to say how fast an NF is */
#define LEARN_PACKETS 256
#define SPREAD_MAX 32.0 /* learned weights: the lowest is no less than mean / this */
#define PRESSED_ALL 0.5 /* where all queues are looked at */
#define PRESSED 4.0	/* what a full ring is worth, in shares of the packets */
#define STUCK_IS 8.0

const char *const balance_names[] = {"hash", "load", "pairs", NULL};

/* ---- hash ---------------------------------------------------------------------------- */

/*
 * Both directions of a session, and its fragments, have the same two addresses:
 * these alone are in it.
 */
static inline uint32_t
hash_of(const struct nfmeta_flow_key *key, uint32_t salt)
{
	return rte_hash_crc(key, 32, salt);
}

static uint16_t
by_hash(const struct balance *b, uint32_t hash)
{
	uint32_t at = (uint32_t)((uint64_t)hash * b->total_weight >> 32);
	uint16_t q = 0;

	if (!b->weighted)
		return (uint16_t)at;
	while (at >= b->q[q].given_weight)
		at -= b->q[q++].given_weight;
	return q;
}

#define TRIES 64

/* Where one queue may get none, only what it would have got goes elsewhere. */
uint16_t
balance_lone(const struct balance *b, const struct nfmeta_flow_key *key)
{
	uint32_t salt;
	uint16_t q;

	if (b->queues == 1)
		return 0;
	if (b->mode == BALANCE_HASH && key->ip_version == 0)
		return 0;
	for (salt = 0; salt < TRIES; salt++) {
		q = by_hash(b, key->ip_version != 0 || salt > 0 ? hash_of(key, salt) : 0);
		if (b->mode == BALANCE_HASH || (b->can & UINT64_C(1) << q) != 0)
			return q;
	}
	return b->can != 0 ? (uint16_t)__builtin_ctzll(b->can) : 0;
}

/* ---- load ---------------------------------------------------------------------------- */

static inline uint32_t
draw(struct balance *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 17;
	b->random ^= b->random << 5;
	return b->random;
}

static uint16_t
by_weight(struct balance *b)
{
	double at = (double)draw(b) / 4294967296.0 * b->room;
	uint64_t left = b->can;
	uint16_t q;

	for (;;) {
		q = (uint16_t)__builtin_ctzll(left);
		left &= left - 1;
		if (left == 0 || at < b->q[q].weight)
			return q;
		at -= b->q[q].weight;
	}
}

/* 1: it has just its share, and is not pressed. */
static double
score(const struct balance *b, uint16_t q, double mean)
{
	const struct balance_queue *u = &b->q[q];

	return (u->rate + u->promise) / (u->weight * mean) + PRESSED * u->pressed +
	       (u->stuck ? STUCK_IS : 0);
}

/* Packets a second for a weight of 1. */
static double
mean_rate(const struct balance *b)
{
	double sum = 1;
	uint16_t q;

	for (q = 0; q < b->queues; q++)
		if ((b->can & UINT64_C(1) << q) != 0)
			sum += b->q[q].rate + b->q[q].promise;
	return sum / b->room;
}

static uint16_t
lowest(struct balance *b, double mean)
{
	double s, least = 0;
	uint64_t left = b->can;
	uint16_t q, best = 0;
	bool any = false;

	for (; left != 0; left &= left - 1) {
		q = (uint16_t)__builtin_ctzll(left);
		s = score(b, q, mean);
		if (any && s >= least)
			continue;
		any = true;
		least = s;
		best = q;
	}
	return best;
}

static uint16_t
by_load(struct balance *b)
{
	uint16_t x, y;
	double mean;

	if ((b->can & (b->can - 1)) == 0) /* one, or none */
		return b->can != 0 ? (uint16_t)__builtin_ctzll(b->can) : 0;
	mean = mean_rate(b);
	x = by_weight(b);
	y = by_weight(b);
	if (score(b, y, mean) < score(b, x, mean))
		x = y;
	if (b->q[x].pressed > PRESSED_ALL || b->q[x].stuck)
		x = lowest(b, mean);
	return x;
}

/* ---- sessions --------------------------------------------------------------------------- */

static inline bool
may(const struct balance *b, uint16_t q)
{
	return (b->can & UINT64_C(1) << q) != 0;
}

/* No NF may get sessions: then all wait for the next one, as if all were there. */
static uint16_t
nobody(const struct balance *b, const struct nfmeta_flow_key *key)
{
	return by_hash(b, hash_of(key, 0));
}

static void
begins(struct balance *b, struct balance_group *g, uint16_t q)
{
	b->q[q].promise += b->per_session;
	b->q[q].sessions++;
	b->q[q].flows++;
	b->flows++;
	if (g != NULL) {
		g->live++;
		g->queue = (uint8_t)q;
	}
}

static inline struct balance_group *
group_of(const struct balance *b, const struct nfmeta_flow_key *key)
{
	return b->group != NULL ? &b->group[hash_of(key, 0) % BALANCE_GROUPS] : NULL;
}

uint16_t
balance_choose(struct balance *b, const struct nfmeta_flow_key *key)
{
	struct balance_group *g = group_of(b, key);
	uint16_t q;

	if (g == NULL) {
		q = balance_lone(b, key);
	} else if (g->live > 0 && may(b, g->queue) &&
		   (b->mode == BALANCE_PAIRS || key->fragment != 0)) {
		q = g->queue;
	} else if (b->can == 0) {
		q = nobody(b, key);
	} else if (key->fragment != 0 && b->mode == BALANCE_LOAD) {
		q = balance_lone(b, key);
	} else {
		q = by_load(b);
	}
	begins(b, g, q);
	return q;
}

uint16_t
balance_again(struct balance *b, const struct nfmeta_flow_key *key, uint16_t queue)
{
	if (b->mode != BALANCE_HASH && !may(b, queue))
		return balance_choose(b, key);
	begins(b, group_of(b, key), queue);
	return queue;
}

void
balance_end(struct balance *b, const struct nfmeta_flow_key *key, uint16_t queue)
{
	struct balance_group *g = group_of(b, key);

	b->q[queue].flows--;
	b->flows--;
	if (g != NULL)
		g->live--;
}

/* ---- what the queues have to do ----------------------------------------------------------- */

static void
set_away(struct balance_queue *u, bool away, uint64_t now)
{
	if (!away)
		u->away = 0;
	else if (u->away == 0)
		u->away = now;
}

/* Who may get sessions, and whose are to leave. */
static void
who_may(struct balance *b, uint64_t now)
{
	struct balance_queue *u;
	uint16_t q;

	b->can = b->leave = 0;
	for (q = 0; q < b->queues; q++) {
		u = &b->q[q];
		set_away(u, !u->there || u->drains, now);
		if (u->away == 0 && u->given_weight > 0)
			b->can |= UINT64_C(1) << q;
		else if (u->away != 0 && b->move_after != BALANCE_NEVER &&
			 now - u->away >= b->move_after)
			b->leave |= UINT64_C(1) << q;
	}
	if (b->can == 0 || b->mode == BALANCE_HASH)
		b->leave = 0;
}

/*
 * Learned weights: as fast as the NF is; one that is not known yet counts as the others'
 * mean.  Given ones stay as they are given.  Either way their mean is made 1.
 */
static void
set_weights(struct balance *b)
{
	double sum = 0, known = 0, mean;
	unsigned int n = 0, nknown = 0;
	struct balance_queue *u;
	uint16_t q;

	for (q = 0; q < b->queues; q++) {
		u = &b->q[q];
		if (!may(b, q))
			continue;
		n++;
		nknown += u->speed > 0;
		known += u->speed;
	}
	b->room = 1;
	if (n == 0)
		return;
	mean = nknown > 0 ? known / nknown : 1;
	for (q = 0; q < b->queues; q++) {
		u = &b->q[q];
		if (!may(b, q))
			continue;
		if (b->weighted)
			u->weight = u->given_weight;
		else
			u->weight = u->speed > 0 ? RTE_MAX(u->speed, mean / SPREAD_MAX) : mean;
		sum += u->weight;
	}
	for (q = 0; q < b->queues; q++)
		b->q[q].weight *= may(b, q) ? n / sum : 0;
	b->room = n;
}

static void
renew(struct balance *b, uint64_t now)
{
	who_may(b, now);
	set_weights(b);
}

static void
look_at(struct balance *b, struct balance_queue *u, const struct balance_seen *s, uint64_t now,
	double seconds)
{
	uint64_t came = s->sent - u->seen.sent + s->refused - u->seen.refused;
	uint64_t depth = s->sent - s->back;
	double part = seconds / (LATELY + seconds);

	u->rate += part * ((double)came / seconds - u->rate);
	u->promise -= part * u->promise;
	u->pressed = (double)depth / b->ring_size;
	if (u->busy_at != 0 && now - u->busy_at < OLD_WORD * b->hz && u->busy > BUSY_FROM)
		u->pressed += 0.5 * (u->busy - BUSY_FROM) / (1000 - BUSY_FROM);
	if (depth == 0 || s->back != u->seen.back || u->moved == 0)
		u->moved = now;
	u->stuck = (double)(now - u->moved) > STUCK * (double)b->hz;
	u->depth_max = RTE_MAX(u->depth_max, depth);
	u->depth_sum += depth;
	u->seen = *s;
}

void
balance_look(struct balance *b, const struct balance_seen *seen, uint64_t now)
{
	double seconds = (double)(now - b->last) / (double)b->hz, rate = 0;
	uint16_t q;

	if (now <= b->last)
		return;
	for (q = 0; q < b->queues; q++) {
		look_at(b, &b->q[q], &seen[q], now, b->last != 0 ? seconds : LATELY);
		rate += b->q[q].rate;
	}
	b->last = now;
	b->looks++;
	b->per_session = b->flows > 0 ? RTE_MAX(1.0, rate / (double)b->flows) : 1;
	renew(b, now);
}

void
balance_busy(struct balance *b, uint16_t q, uint32_t permille, uint64_t back, uint64_t now)
{
	struct balance_queue *u = &b->q[q];
	uint64_t packets = back - u->busy_was;
	double seconds = (double)(now - u->busy_at) / (double)b->hz, speed;

	if (u->busy_at != 0 && seconds < OLD_WORD && permille >= LEARN_BUSY &&
	    packets >= LEARN_PACKETS && seconds > 0) {
		speed = (double)packets / seconds * 1000 / RTE_MIN(permille, 1000u);
		u->speed = u->speed > 0 ? u->speed + (speed - u->speed) / 4 : speed;
	}
	u->busy = RTE_MIN(permille, 1000u);
	u->busy_at = now;
	u->busy_was = back;
}

void
balance_serves(struct balance *b, uint16_t q, bool there, uint64_t now)
{
	struct balance_queue *u = &b->q[q];

	if (u->there == there)
		return;
	u->there = there;
	u->drains = false; /* the next one is another */
	u->busy_at = 0;
	u->speed = 0;
	renew(b, now);
}

void
balance_drains(struct balance *b, uint16_t q, bool drains, uint64_t now)
{
	b->q[q].drains = drains;
	renew(b, now);
}

/* ---- make and unmake ------------------------------------------------------------------- */

struct balance *
balance_create(const struct balance_opts *o)
{
	struct balance *b = calloc(1, sizeof(*b));
	uint16_t q;

	if (b != NULL && o->mode != BALANCE_HASH)
		b->group = calloc(BALANCE_GROUPS, sizeof(*b->group));
	if (b == NULL || (o->mode != BALANCE_HASH && b->group == NULL)) {
		complain("out of memory");
		free(b);
		return NULL;
	}
	b->queues = o->queues;
	b->mode = o->mode;
	b->weighted = o->weight != NULL;
	b->ring_size = o->ring_size;
	b->hz = o->hz;
	b->move_after = o->move_after;
	b->random = 0x2545f491;
	b->per_session = 1;
	for (q = 0; q < b->queues; q++) {
		b->q[q].there = true; /* until somebody says that there is none */
		b->q[q].given_weight = b->weighted ? o->weight[q] : 1;
		b->total_weight += b->q[q].given_weight;
	}
	renew(b, 0);
	return b;
}

void
balance_destroy(struct balance *b)
{
	if (b != NULL)
		free(b->group);
	free(b);
}
