/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * From a link to the next one of the flow's chain.
 *
 * Where the next link is full and packets are to wait, they do so here, in a list per
 * queue, and nothing new is read from the input meanwhile.  So no more can wait than the
 * links hold, every link can always give back, and chains in opposite orders cannot stand
 * in each other's way.
 */
#include <rte_cycles.h>

#include "splitter.h"

static struct flow *
flow_of(const struct splitter *s, const struct note *note)
{
	return note->known ? flow_find(s->flows, note->flow_id, note->generation) : NULL;
}

/* Its flow ended while it was at an NF that stood still: later NFs were told so. */
static void
lose_flow(const struct splitter *s, struct rte_mbuf *m, struct note *note)
{
	struct nfmeta_record r;

	note->known = false;
	if (nfmeta_record_get(&s->field, m, &r) == 0)
		return;
	r.flags &= (uint16_t) ~(NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW | NFMETA_FLOW_REVERSE);
	r.flow_id = r.flow_gen = 0;
	nfmeta_record_set(&s->field, m, &r);
}

/* The next link's place in the chain and decision, where the record has room for them. */
static void
stamp(const struct splitter *s, struct rte_mbuf *m, const struct note *note,
      const struct flow_at *at)
{
	struct nfmeta_record r;

	if (s->field.size < NFMETA_RECORD_FULL || nfmeta_record_get(&s->field, m, &r) == 0)
		return;
	r.chain = note->position;
	r.action = at != NULL ? at->decision.action : NFMETA_ACTION_NONE;
	nfmeta_record_set(&s->field, m, &r);
}

void
never_came(struct splitter *s, struct rte_mbuf *m)
{
	const struct chain *c;
	struct note *note;
	struct flow *f;
	uint8_t i;

	if (s->nhops == 1)
		return;
	note = note_of(m);
	f = flow_of(s, note);
	if (f == NULL)
		return;
	c = &s->first.chains[note->chain];
	for (i = (uint8_t)(note->position + 1); i < c->n; i++)
		flow_pass(flow_passed(s->flows, f, c->link[i]), note->back, m->pkt_len);
}

/* ---- those that wait ------------------------------------------------------------------- */

static void
wait_here(struct splitter *s, struct way *w, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		note_of(pkts[i])->next = NULL;
		if (w->waiting++ == 0)
			w->first = pkts[i];
		else
			note_of(w->last)->next = pkts[i];
		w->last = pkts[i];
	}
	s->waiting += n;
}

static void
no_longer(struct splitter *s, struct way *w, struct rte_mbuf *const *pkts, uint16_t n)
{
	if (n == 0)
		return;
	w->first = note_of(pkts[n - 1])->next;
	w->waiting -= n;
	s->waiting -= n;
}

void
renumber(struct splitter *s, struct hop *h, uint16_t q)
{
	struct way *w = &h->way[q];
	uint64_t place = w->sent + h->nsorted[q];
	struct rte_mbuf *m = w->first;
	struct flow *f;
	uint32_t i;

	for (i = 0; i < w->waiting; i++) {
		place++;
		f = flow_of(s, note_of(m));
		if (f != NULL)
			flow_at(s->flows, f, h->number)->place = place;
		m = note_of(m)->next;
	}
}

/* Takes no more: nobody comes, or the run ends. */
static bool
is_shut(const struct splitter *s, const struct hop *h)
{
	return h->gone || s->closing;
}

/* As many as there is room for, without waiting. */
static uint16_t
send_some(struct hop *h, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t used = nfmeta_link_in_flight(h->link, q);
	bool wait = h->o->when_full == NFMETA_FULL_WAIT;

	if (wait && (used >= h->o->ring_size || feed_behind(h->feed, q)))
		return 0;
	if (wait)
		n = (uint16_t)RTE_MIN((uint32_t)n, h->o->ring_size - used);
	n = nfmeta_send_burst(h->link, q, pkts, n);
	h->way[q].sent += n;
	return n;
}

static void
waiting_queue(struct splitter *s, struct hop *h, uint16_t q)
{
	struct way *w = &h->way[q];
	struct rte_mbuf *pkts[BURST], *m;
	uint16_t n, k;

	while (w->waiting > 0) {
		for (n = 0, m = w->first; n < BURST && n < w->waiting; m = note_of(m)->next)
			pkts[n++] = m;
		k = is_shut(s, h) ? 0 : send_some(h, q, pkts, n);
		no_longer(s, w, pkts, k);
		if (k == n)
			continue;
		if (!is_shut(s, h) && h->o->when_full == NFMETA_FULL_WAIT)
			return;
		no_longer(s, w, pkts + k, (uint16_t)(n - k));
		turn_away(s, h, q, pkts + k, (uint16_t)(n - k));
	}
}

void
waiting_round(struct splitter *s)
{
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++)
			if (h->way[q].waiting > 0 && h->nsorted[q] == 0)
				waiting_queue(s, h, q);
}

/* ---- on ----------------------------------------------------------------------------------- */

/* Packets of one burst for the same queue. */
struct run {
	struct hop *h;
	uint16_t q, n;
	struct rte_mbuf *pkts[BURST];
};

/* Those of the input that are in hand for this queue, and those that wait, go first. */
static void
flush(struct splitter *s, struct run *run)
{
	struct hop *h = run->h;
	struct way *w;
	uint16_t n = run->n, k = 0;

	run->n = 0;
	if (n == 0)
		return;
	w = &h->way[run->q];
	if (w->waiting == 0 && h->nsorted[run->q] == 0 && !is_shut(s, h))
		k = send_some(h, run->q, run->pkts, n);
	if (k == n)
		return;
	if (w->waiting > 0 || h->nsorted[run->q] > 0 ||
	    (h->o->when_full == NFMETA_FULL_WAIT && !is_shut(s, h)))
		wait_here(s, w, run->pkts + k, (uint16_t)(n - k));
	else
		turn_away(s, h, run->q, run->pkts + k, (uint16_t)(n - k));
}

static uint16_t
queue_of(const struct splitter *s, const struct hop *h, struct rte_mbuf *m, const struct flow *f)
{
	struct nfmeta_record r;
	struct nfmeta_flow_key key;

	if (likely(f != NULL))
		return flow_queue(s->flows, f, h->number);
	nfmeta_classify_burst(s->o->policy, &m, 1, &r, &key);
	return lone_queue(&s->first, &key, h->number);
}

static void
add(struct splitter *s, struct run *run, struct hop *h, struct rte_mbuf *m, struct flow *f)
{
	uint16_t q = queue_of(s, h, m, f);
	struct flow_at *at = NULL;

	if (run->h != h || run->q != q) {
		flush(s, run);
		run->h = h;
		run->q = q;
	}
	if (f != NULL) {
		at = flow_at(s->flows, f, h->number);
		at->place = h->way[q].sent + h->nsorted[q] + h->way[q].waiting + run->n + 1;
	}
	stamp(s, m, note_of(m), at);
	run->pkts[run->n++] = m;
}

uint16_t
go_on(struct splitter *s, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *out[BURST];
	struct run run = {.n = 0};
	uint16_t i, nout = 0;
	const struct chain *c;
	struct note *note;
	enum fate fate;
	struct hop *h;
	struct flow *f;
	uint64_t tsc;

	if (likely(s->nhops == 1))
		return forward(s, pkts, n);
	tsc = rte_rdtsc();
	for (i = 0; i < n; i++) {
		note = note_of(pkts[i]);
		c = &s->first.chains[note->chain];
		f = flow_of(s, note);
		if (f == NULL && note->known)
			lose_flow(s, pkts[i], note);
		for (fate = PASSES; fate == PASSES && ++note->position < c->n;) {
			h = &s->hop[c->link[note->position]];
			fate = TO_NF;
			if (f != NULL &&
			    flow_at(s->flows, f, h->number)->decision.action != NFMETA_ACTION_NONE)
				fate = act(s, h, f, pkts[i], note->back, tsc);
			if (fate == TO_NF)
				add(s, &run, h, pkts[i], f);
		}
		if (fate == PASSES)
			out[nout++] = pkts[i];
	}
	flush(s, &run);
	if (nout > 0)
		forward(s, out, nout);
	return n;
}

bool
under_way(const void *splitter, const struct flow *f)
{
	const struct splitter *s = splitter;
	const struct chain *c = flow_chain(s->flows, f);
	const struct flow_at *at;
	const struct hop *h;
	const struct way *w;
	uint8_t i;

	for (i = 0; i < c->n; i++) {
		h = &s->hop[c->link[i]];
		w = &h->way[flow_queue(s->flows, f, h->number)];
		at = h->number == 0 ? &f->at : &flow_more(s->flows, f, h->number)->at;
		if (!h->gone && at->place > (i + 1 < c->n ? w->back : w->sent))
			return true;
	}
	return false;
}
