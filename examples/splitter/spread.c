/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The balancer learns what the queues have to do, and what their NFs say.
 */
#include <stdlib.h>
#include <string.h>

#include "splitter.h"

/* Sessions of a queue that is to lose them, looked for in so many slots at a time. */
#define MOVE_SCAN 2048

static void
hear(const struct splitter *s, struct hop *h, uint16_t q, uint64_t now)
{
	struct feed_said *said = feed_said(h->feed, q);

	if (said->loads != h->loads[q]) {
		h->loads[q] = said->loads;
		balance_busy(h->balance, q, said->load.busy, h->way[q].back, now);
	}
	if (h->absent[q] != 0) /* the next one is another */
		said->drains = false;
	if (said->drains == h->balance->q[q].drains)
		return;
	balance_drains(h->balance, q, said->drains, now);
	if (h->o->spread.balance != BALANCE_HASH)
		note(said->drains ? "%s gets no new sessions: its NF drains; it had %ju"
				  : "%s gets new sessions again; it had %ju",
		     queue_name(s, h, q), (uintmax_t)h->balance->q[q].sessions);
}

static void
move(struct splitter *s, struct hop *h)
{
	struct balance *b = h->balance;
	uint64_t left, back[NFMETA_QUEUES_MAX] = {0};
	bool any = false;
	uint16_t q;

	for (left = b->leave; left != 0; left &= left - 1) {
		q = (uint16_t)__builtin_ctzll(left);
		if (!b->q[q].there && h->way[q].sent != h->way[q].back)
			take_back_waiting(s, h, q);
		back[q] = h->way[q].back;
		any |= b->q[q].flows > 0;
	}
	if (any)
		flows_move(s->flows, h->number, b->leave, back, MOVE_SCAN);
}

void
spread_look(struct splitter *s, struct hop *h, uint64_t now)
{
	struct balance *b = h->balance;
	struct balance_seen seen[NFMETA_QUEUES_MAX];
	uint16_t q;

	for (q = 0; q < h->o->queues; q++) {
		seen[q] = (struct balance_seen){
			.sent = h->way[q].sent,
			.back = h->way[q].back,
			.refused = h->way[q].refused,
		};
		if (b->q[q].there && !b->q[q].drains && h->absent[q] != 0 &&
		    b->mode != BALANCE_HASH)
			note("%s gets no new sessions; it had %ju", queue_name(s, h, q),
			     (uintmax_t)b->q[q].sessions);
		balance_serves(b, q, h->absent[q] == 0, now);
		hear(s, h, q, now);
	}
	balance_look(b, seen, now);
	if (b->leave != 0)
		move(s, h);
}

struct balance *
spread_create(const struct link_opts *o, uint64_t hz)
{
	const struct balance_opts bo = {
		.queues = o->queues,
		.mode = o->spread.balance,
		.ring_size = o->ring_size,
		.weight = o->spread.weighted ? o->spread.weight : NULL,
		.hz = hz,
		.move_after = o->spread.move != UINT64_MAX ? o->spread.move * hz : BALANCE_NEVER,
	};

	return balance_create(&bo);
}

/* ---- options ------------------------------------------------------------------------- */

void
spread_defaults(struct spread_opts *o)
{
	int q;

	*o = (struct spread_opts){.move = UINT64_MAX};
	for (q = 0; q < NFMETA_QUEUES_MAX; q++)
		o->weight[q] = 1;
}

static int
parse_weights(const char *option, const char *text, struct spread_opts *o)
{
	char copy[1024], *word, *rest = NULL;
	uint16_t n = 0;
	uint64_t v;

	if (strlen(text) >= sizeof(copy))
		return complain("%s \"%s\": too long", option, text);
	strcpy(copy, text);
	for (word = strtok_r(copy, ",:", &rest); word != NULL; word = strtok_r(NULL, ",:", &rest)) {
		if (n == NFMETA_QUEUES_MAX)
			return complain("%s \"%s\": a link has %d queues at most", option, text,
					NFMETA_QUEUES_MAX);
		if (parse_u64(option, word, 0, BALANCE_WEIGHT_MAX, &v) != 0)
			return -1;
		o->weight[n++] = (uint16_t)v;
	}
	o->weights = n;
	o->weighted = true;
	return 0;
}

static int
parse_weight(const char *option, const char *text, struct spread_opts *o)
{
	const char *equals = strpbrk(text, "=:");
	uint64_t q, v;
	char name[8];

	if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof(name))
		return complain("%s \"%s\": QUEUE=WEIGHT is wanted, 0=2", option, text);
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	if (parse_u64(option, name, 0, NFMETA_QUEUES_MAX - 1, &q) != 0 ||
	    parse_u64(option, equals + 1, 0, BALANCE_WEIGHT_MAX, &v) != 0)
		return -1;
	o->weight[q] = (uint16_t)v;
	o->weight_last = RTE_MAX(o->weight_last, (uint16_t)q);
	o->weighted = true;
	return 0;
}

int
spread_parse(int what, const char *option, const char *text, struct spread_opts *o)
{
	int i;

	o->own = true;
	switch (what) {
	case SPREAD_BALANCE:
		if (parse_choice(option, text, balance_names, &i) != 0)
			return -1;
		o->balance = (uint8_t)i;
		return 0;
	case SPREAD_WEIGHTS:
		return parse_weights(option, text, o);
	case SPREAD_WEIGHT:
		return parse_weight(option, text, o);
	default:
		return parse_u64(option, text, 0, 1000000, &o->move);
	}
}

int
spread_check(const struct link_opts *l)
{
	const struct spread_opts *o = &l->spread;
	unsigned int sum = 0;
	uint16_t q;

	if (o->weights != 0 && o->weights != l->queues)
		return complain("--weights has %u of them for %u queue%s (--queues)", o->weights,
				l->queues, l->queues > 1 ? "s" : "");
	if (o->weight_last >= l->queues)
		return complain("--weight %u=%u: there is no such queue: --queues is %u",
				o->weight_last, o->weight[o->weight_last], l->queues);
	for (q = 0; q < l->queues; q++)
		sum += o->weight[q];
	if (sum == 0)
		return complain("all weights are 0: no queue would get a session");
	if (o->move != UINT64_MAX && o->balance == BALANCE_HASH)
		return complain("--move goes with --balance load or pairs: hash moves nothing");
	return 0;
}

/* ---- for people ------------------------------------------------------------------------ */

struct queue_report
spread_queue(const struct hop *h, uint16_t q)
{
	const struct balance_queue *u = &h->balance->q[q];

	return (struct queue_report){
		.packets = h->way[q].sent + h->way[q].refused,
		.refused = h->way[q].refused,
		.depth = h->way[q].sent - h->way[q].back,
		.depth_max = u->depth_max,
		.depth_mean = h->balance->looks > 0
				      ? (double)u->depth_sum / (double)h->balance->looks
				      : 0,
		.flows = u->flows,
		.sessions = u->sessions,
		.busy = u->busy,
		.weight = u->given_weight,
		.speed = u->speed,
		.drains = u->drains,
		.there = u->there,
	};
}
