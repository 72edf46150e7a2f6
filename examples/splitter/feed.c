/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "splitter.h"

#define STATES NFMETA_FLOW_MAX(struct nfmeta_flow_state)
#define DELETES NFMETA_FLOW_MAX(struct nfmeta_flow_delete)
#define COUNTERS NFMETA_FLOW_MAX(struct nfmeta_flow_counters)
#define SCAN 4096    /* slots looked at for a snapshot in one round */
#define ROUND_MAX 64 /* messages taken from a queue in one round */

const char *const carrier_names[] = {"none", "ring", "inband", "table", NULL};

/* What is to be told to the NF of a queue. */
struct told {
	uint16_t ncounters, ndeletes, nnews, nupdates;
	bool asked; /* a snapshot is to be given */
	bool begun;
	bool beat;	 /* asked whether all is done */
	uint32_t cursor; /* next slot that goes into it */
	uint64_t done;	 /* how far the NF was */
	uint64_t moved;	 /* TSC of when that changed */
	struct feed_said said;
	struct nfmeta_flow_counters counters[COUNTERS];
	struct nfmeta_flow_delete deletes[DELETES];
	struct nfmeta_flow_state news[STATES];
	struct nfmeta_flow_state updates[STATES];
};

struct feed {
	struct nfmeta_link *link; /* NULL: there is nobody to be told */
	struct flow_table *flows;
	uint8_t number;	  /* of the link */
	uint64_t pending; /* bit per queue: something is to be told */
	uint64_t behind;  /* bit per queue: messages wait for room */
	uint16_t queues;
	uint8_t carrier;
	struct feed_counts c;
	struct told q[];
};

static struct nfmeta_flow_stats
stats_of(const struct feed *f, uint16_t q)
{
	struct nfmeta_flow_stats stats = {.sz = sizeof(stats)};

	nfmeta_flow_stats(f->link, q, &stats);
	return stats;
}

static bool
tells(const struct feed *f)
{
	return f->link != NULL && f->carrier != NFMETA_CARRIER_TABLE;
}

/* ---- down ------------------------------------------------------------------------- */

static void
tell(struct feed *f, uint16_t q, uint8_t type, const void *entries, uint16_t *n)
{
	int rc;

	if (*n == 0)
		return;
	/* -EAGAIN: given up and counted by the link; the NF will ask for a snapshot */
	rc = nfmeta_flow_send(f->link, q, type, entries, *n);
	if (type == NFMETA_MSG_DELETE && rc == 0) {
		f->c.delete_messages++;
		f->c.deletes += *n;
	}
	*n = 0;
}

static void
look_behind(struct feed *f, uint16_t q)
{
	f->behind &= ~(UINT64_C(1) << q);
	if (tells(f) && stats_of(f, q).backlog > 0)
		f->behind |= UINT64_C(1) << q;
}

/*
 * What an ended flow had passed by goes before its end, its end before the flow
 * that has its number now, which goes before what changes for it.
 */
static void
flush_queue(struct feed *f, uint16_t q)
{
	struct told *t = &f->q[q];

	tell(f, q, NFMETA_MSG_COUNTERS, t->counters, &t->ncounters);
	tell(f, q, NFMETA_MSG_DELETE, t->deletes, &t->ndeletes);
	tell(f, q, NFMETA_MSG_NEW, t->news, &t->nnews);
	tell(f, q, NFMETA_MSG_UPDATE, t->updates, &t->nupdates);
	f->pending &= ~(UINT64_C(1) << q);
	look_behind(f, q);
}

void
feed_flush(struct feed *f)
{
	while (f->pending != 0)
		flush_queue(f, (uint16_t)__builtin_ctzll(f->pending));
}

static inline struct told *
to_tell(struct feed *f, uint8_t q)
{
	f->pending |= UINT64_C(1) << q;
	return &f->q[q];
}

static inline struct nfmeta_flow_state
state_of(const struct feed *f, const struct flow *flow)
{
	const struct flow_at *at =
		f->number == 0 ? &flow->at : &flow_more(f->flows, flow, f->number)->at;

	return (struct nfmeta_flow_state){
		.flow_id = flow_id(f->flows, flow),
		.flow_gen = flow->generation,
		.action = at->decision.action,
		.app_id = flow->app_id,
	};
}

void
feed_new(struct feed *f, const struct flow *flow)
{
	struct told *t;
	uint8_t q;

	if (f->link == NULL)
		return;
	q = flow_queue(f->flows, flow, f->number);
	t = to_tell(f, q);
	t->news[t->nnews++] = state_of(f, flow);
	if (t->nnews == STATES)
		flush_queue(f, q);
}

void
feed_update(struct feed *f, const struct flow *flow)
{
	struct told *t;
	uint8_t q;

	if (f->link == NULL)
		return;
	q = flow_queue(f->flows, flow, f->number);
	t = to_tell(f, q);
	t->updates[t->nupdates++] = state_of(f, flow);
	if (t->nupdates == STATES)
		flush_queue(f, q);
}

void
feed_end(struct feed *f, struct flow *flow, uint16_t reason)
{
	const struct flow_passed *passed;
	struct told *t;
	uint8_t q;

	if (f->link == NULL)
		return;
	q = flow_queue(f->flows, flow, f->number);
	passed = flow_passed(f->flows, flow, f->number);
	t = to_tell(f, q);
	if (passed->packets[0] + passed->packets[1] > 0) {
		t->counters[t->ncounters++] = (struct nfmeta_flow_counters){
			.flow_id = flow_id(f->flows, flow),
			.flow_gen = flow->generation,
			.packets = {passed->packets[0], passed->packets[1]},
			.bytes = {passed->bytes[0], passed->bytes[1]},
		};
	}
	t->deletes[t->ndeletes++] = (struct nfmeta_flow_delete){
		.flow_id = flow_id(f->flows, flow),
		.flow_gen = flow->generation,
		.reason = reason,
	};
	if (t->ndeletes == DELETES)
		flush_queue(f, q);
	else if (t->ncounters == COUNTERS)
		tell(f, q, NFMETA_MSG_COUNTERS, t->counters, &t->ncounters);
}

/* Does it go by the NF of this queue? */
static inline bool
is_there(const struct feed *f, const struct flow *flow, uint16_t q)
{
	return flow->used && flow_queue(f->flows, flow, f->number) == q &&
	       (flow_chain(f->flows, flow)->mask & 1u << f->number) != 0;
}

/*
 * All flows of the queue, some in each round.  A flow that begins meanwhile is
 * told by NEW, one that ends by DELETE: what is behind the cursor need not be
 * looked at again.
 */
static void
snapshot(struct feed *f, uint16_t q)
{
	struct nfmeta_flow_state out[STATES];
	struct told *t = &f->q[q];
	uint32_t i = t->cursor, end = RTE_MIN(f->flows->slots, i + SCAN);
	uint16_t n = 0;
	uint8_t flags;
	int rc;

	if (f->flows->counts.active == 0)
		i = end = f->flows->slots;
	for (; i < end && n < STATES; i++)
		if (is_there(f, &f->flows->flows[i], q))
			out[n++] = state_of(f, &f->flows->flows[i]);
	flags = (t->begun ? 0 : NFMETA_MSG_FIRST) | (i == f->flows->slots ? NFMETA_MSG_LAST : 0);
	rc = n == 0 && flags == 0 ? 0 : nfmeta_flow_snapshot(f->link, q, out, n, flags);
	if (rc == 0) {
		t->begun |= (flags & NFMETA_MSG_FIRST) != 0;
		t->cursor = i;
		t->asked = (flags & NFMETA_MSG_LAST) == 0;
		f->c.resyncs_answered += !t->asked;
	} else if (rc != -EAGAIN) {
		t->asked = false; /* void: the NF asks again */
	}
}

/* ---- up ----------------------------------------------------------------------------- */

/* A flow that has ended meanwhile, or was never that NF's: the verdict does nothing. */
static void
verdict(struct feed *f, uint16_t q, const struct nfmeta_flow_verdict *v, uint64_t now)
{
	struct flow *flow = flow_find(f->flows, v->flow_id, v->flow_gen);
	struct nfmeta_flow_decision *d;
	uint8_t was;

	f->c.verdicts++;
	if (flow == NULL || !is_there(f, flow, q) || v->verdict == NFMETA_ACTION_NONE ||
	    v->verdict > NFMETA_ACTION_SHUNT) {
		f->c.verdicts_late++;
		return;
	}
	d = &flow_at(f->flows, flow, f->number)->decision;
	was = d->action;
	if (!nfmeta_flow_decide(d, v, now, rte_get_tsc_hz())) {
		f->c.verdicts_kept++;
		return;
	}
	f->c.verdicts_applied++;
	if (d->action != was)
		feed_update(f, flow);
}

static void
message(struct feed *f, uint16_t q, const struct nfmeta_flow_batch *b, uint64_t now)
{
	struct told *t = &f->q[q];
	const struct drain_entry *d;
	uint16_t i;

	if (b->epoch != t->said.epoch) { /* another NF */
		t->said.epoch = b->epoch;
		t->said.drains = false;
	}
	switch (b->type) {
	case NFMETA_MSG_VERDICT:
		for (i = 0; i < b->count; i++)
			verdict(f, q, nfmeta_flow_entry(b, i), now);
		break;
	case NFMETA_MSG_LOAD:
		memcpy(&t->said.load, nfmeta_flow_entry(b, 0), sizeof(t->said.load));
		t->said.loads++;
		break;
	case DRAIN_MSG:
		d = nfmeta_flow_entry(b, 0);
		t->said.drains = d->drains != 0;
		break;
	case NFMETA_MSG_RESYNC:
		f->c.resyncs++;
		t->asked = true;
		t->begun = false;
		t->cursor = 0;
		break;
	}
}

unsigned int
feed_round(struct feed *f, uint64_t now)
{
	const struct nfmeta_flow_batch *b;
	unsigned int total = 0, n;
	uint16_t q;
	int rc;

	if (f->link == NULL)
		return 0;
	for (q = 0; q < f->queues; q++) {
		for (n = 0; n < ROUND_MAX; n++) {
			rc = nfmeta_flow_collect(f->link, q, &b);
			if (rc == 0)
				break;
			if (rc == 1)
				message(f, q, b, now);
		}
		total += n;
		if (unlikely((f->behind & UINT64_C(1) << q) != 0))
			look_behind(f, q);
		if (unlikely(f->q[q].asked))
			snapshot(f, q);
	}
	feed_flush(f);
	return total;
}

/* ---- how far it is ----------------------------------------------------------------- */

bool
feed_ready(const struct feed *f)
{
	uint16_t q;

	for (q = 0; tells(f) && q < f->queues; q++)
		if (stats_of(f, q).state != NFMETA_FEED_STREAM)
			return false;
	return true;
}

bool
feed_behind(const struct feed *f, uint16_t q)
{
	return (f->behind & UINT64_C(1) << q) != 0;
}

/* Has the NF of this queue taken a message, or said so, within patience? */
static bool
moves(struct told *t, const struct nfmeta_flow_stats *stats, uint64_t now, uint64_t patience)
{
	uint64_t done = stats->seen + stats->acked;

	if (t->done != done || t->moved == 0) {
		t->done = done;
		t->moved = now;
	}
	return now - t->moved < patience;
}

bool
feed_held_up(struct feed *f, uint64_t now, uint64_t patience)
{
	struct nfmeta_flow_stats stats;
	bool held = false;
	uint16_t q;

	for (q = 0; tells(f) && q < f->queues; q++) {
		stats = stats_of(f, q);
		held |= moves(&f->q[q], &stats, now, patience) && stats.backlog > 0;
	}
	return held;
}

bool
feed_settle(struct feed *f, uint64_t now, uint64_t patience)
{
	struct nfmeta_flow_stats stats;
	uint64_t unheard = 0, hope = 0;
	uint16_t q;

	for (q = 0; tells(f) && q < f->queues; q++) {
		stats = stats_of(f, q);
		if (stats.state == NFMETA_FEED_IDLE)
			continue;
		if (stats.state != NFMETA_FEED_STREAM) {
			f->q[q].beat = false; /* a snapshot is to be given first */
		} else if (!f->q[q].beat) {
			f->q[q].beat =
				nfmeta_flow_send(f->link, q, NFMETA_MSG_HEARTBEAT, NULL, 0) == 0;
			stats = stats_of(f, q);
		}
		if (f->q[q].beat && stats.acked >= stats.sent)
			continue;
		unheard++;
		hope += moves(&f->q[q], &stats, now, patience);
	}
	f->c.unheard = unheard;
	return hope == 0;
}

struct feed_said *
feed_said(struct feed *f, uint16_t q)
{
	return &f->q[q].said;
}

const struct feed_counts *
feed_counts(struct feed *f)
{
	struct nfmeta_flow_stats stats;
	uint16_t q;

	if (f->link == NULL)
		return &f->c;
	f->c.messages = f->c.given_up = f->c.refused = f->c.stale = 0;
	memset(&f->c.load, 0, sizeof(f->c.load));
	for (q = 0; q < f->queues; q++) {
		stats = stats_of(f, q);
		f->c.messages += stats.sent;
		f->c.given_up += stats.lost;
		f->c.refused += stats.refused;
		f->c.stale += stats.stale;
		f->c.load.busy += f->q[q].said.load.busy;
		f->c.load.flows += f->q[q].said.load.flows;
		f->c.load.overload += f->q[q].said.load.overload;
	}
	return &f->c;
}

void
feed_counts_add(struct feed_counts *sum, const struct feed_counts *c)
{
	sum->messages += c->messages;
	sum->given_up += c->given_up;
	sum->deletes += c->deletes;
	sum->delete_messages += c->delete_messages;
	sum->verdicts += c->verdicts;
	sum->verdicts_applied += c->verdicts_applied;
	sum->verdicts_late += c->verdicts_late;
	sum->verdicts_kept += c->verdicts_kept;
	sum->resyncs += c->resyncs;
	sum->resyncs_answered += c->resyncs_answered;
	sum->refused += c->refused;
	sum->stale += c->stale;
	sum->unheard += c->unheard;
	sum->load.busy += c->load.busy;
	sum->load.flows += c->load.flows;
	sum->load.overload += c->load.overload;
}

/* ---- make and unmake ----------------------------------------------------------------- */

struct feed *
feed_create(uint8_t number, uint16_t queues, uint8_t carrier)
{
	struct feed *f = calloc(1, sizeof(*f) + queues * sizeof(f->q[0]));

	if (f == NULL) {
		complain("out of memory");
		return NULL;
	}
	f->number = number;
	f->queues = queues;
	f->carrier = carrier;
	return f;
}

void
feed_start(struct feed *f, struct nfmeta_link *link, struct flow_table *flows)
{
	f->flows = flows;
	f->link = f->carrier != 0 ? link : NULL;
}

void
feed_destroy(struct feed *f)
{
	free(f);
}
