/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "splitter.h"

#define PASS_MS 100 /* a flow's end waits so long for its packets between links */

static uint64_t
hop_in_flight(const struct hop *h)
{
	uint64_t n = 0;
	const struct way *w;

	for (w = h->way; w < &h->way[h->o->queues]; w++)
		n += w->sent - w->back + w->waiting + w->tail - w->head;
	return n;
}

uint64_t
ways_in_flight(const struct splitter *s)
{
	uint64_t n = 0;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		n += hop_in_flight(&s->hop[i]);
	return n;
}

uint64_t
ways_alive(const struct splitter *s)
{
	uint64_t n = 0;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		if (!s->hop[i].gone)
			n += hop_in_flight(&s->hop[i]);
	return n;
}

/* ---- out ------------------------------------------------------------------------- */

uint16_t
forward(struct splitter *s, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t bytes[BURST];
	int done, i;

	for (i = 0; i < n; i++)
		bytes[i] = pkts[i]->pkt_len;
	done = output_burst(&s->out, pkts, n);
	if (done < 0) {
		end_run(s, "a failure of the output", EXIT_BAD);
		done = 0;
	}
	for (i = 0; i < done; i++)
		s->c.out_bytes += bytes[i];
	s->c.out += (unsigned int)done;
	s->c.drop_output += (unsigned int)(n - done);
	return (uint16_t)done;
}

static void
send_backward(struct splitter *s, struct rte_mbuf *m)
{
	if (s->in.capture || !s->in.started) {
		rte_pktmbuf_free(m);
		s->c.drop_backward++;
	} else if (port_send(s->in.port, &m, 1) == 1) {
		s->c.backward++;
	} else {
		s->c.drop_output++;
	}
}

/* ---- by the NF ---------------------------------------------------------------------- */

/*
 * A flow's packets leave in the order they came, also where the NF gets the first
 * ones and the others pass by: these wait until the flow's packets at the NF are
 * back.  Every flow's slot holds the place of its last packet; what waits gets
 * that place, or the place of what waits before it, if that is later, and the
 * flow keeps it.  So one comparison says whether a packet has to wait; the NF does
 * not see it either way; and a busy flow is shunted at once.  (To go on sending
 * to the NF until the flow has a pause would never end for the very flows that
 * shunting is for; to count each flow's packets at the NF would take a look at
 * every record that comes back.)
 *
 * Where more would wait than is allowed, packets go to the NF after all.
 */
static enum fate
pass_by(struct splitter *s, struct hop *h, struct flow *f, struct flow_at *at, struct rte_mbuf *m)
{
	struct way *w = &h->way[flow_queue(s->flows, f, h->number)];
	enum fate fate = PASSES;
	uint64_t last;

	if (at->place <= w->back) {
		;
	} else if (w->tail - w->head <= w->mask) {
		if (w->tail != w->head) {
			last = w->place[(w->tail - 1) & w->mask];
			at->place = RTE_MAX(at->place, last);
		}
		w->held[w->tail & w->mask] = m;
		w->place[w->tail++ & w->mask] = at->place;
		s->c.shunted_held++;
		fate = TAKEN;
	} else {
		s->c.not_shunted++;
		return TO_NF;
	}
	s->c.shunted++;
	s->c.shunted_bytes += m->pkt_len;
	h->c.shunted++;
	return fate;
}

/* Those that have waited long enough. */
static void
release(struct splitter *s, struct way *w, uint64_t back)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = 0;

	while (w->head != w->tail && w->place[w->head & w->mask] <= back) {
		pkts[n++] = w->held[w->head++ & w->mask];
		if (n == BURST) {
			go_on(s, pkts, n);
			n = 0;
		}
	}
	if (n > 0)
		go_on(s, pkts, n);
}

static void
release_all(struct splitter *s, struct hop *h)
{
	uint16_t q;

	for (q = 0; q < h->o->queues; q++)
		release(s, &h->way[q], UINT64_MAX);
}

void
ways_release(struct splitter *s)
{
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		release_all(s, &s->hop[i]);
}

/* An NF can say that it is APPS_WHO, too: that costs the figures, nothing else. */
static bool
by_rule(const struct splitter *s, const struct nfmeta_flow_decision *d)
{
	return s->apps != NULL && d->who == APPS_WHO;
}

/* What was decided for its flow at this link. */
__rte_noinline enum fate
act(struct splitter *s, struct hop *h, struct flow *f, struct rte_mbuf *m, bool back, uint64_t tsc)
{
	struct flow_at *at = flow_at(s->flows, f, h->number);
	struct flow_passed *passed = flow_passed(s->flows, f, h->number);
	uint8_t was = at->decision.action, action = nfmeta_flow_act(&at->decision, tsc);
	uint32_t bytes = m->pkt_len;
	enum fate fate;

	if (at->decision.action != was) /* its time is over */
		feed_update(h->feed, f);
	if (action == NFMETA_ACTION_INSPECT)
		return TO_NF;
	if (action == NFMETA_ACTION_DROP) {
		flow_pass(passed, back, bytes);
		never_came(s, m);
		rte_pktmbuf_free(m);
		if (by_rule(s, &at->decision)) {
			s->c.drop_rule++;
			apps_count(s->apps, f)->discarded++;
		} else {
			s->c.drop_verdict++;
			h->c.verdict++;
		}
		return TAKEN;
	}
	fate = pass_by(s, h, f, at, m);
	if (fate == TO_NF)
		return TO_NF;
	flow_pass(passed, back, bytes);
	if (by_rule(s, &at->decision)) {
		s->c.shunted_rule++;
		apps_count(s->apps, f)->shunted++;
	}
	return fate;
}

/* ---- back --------------------------------------------------------------------------- */

/* What an NF made leaves by no other NF. */
static void
note_injected(const struct splitter *s, struct rte_mbuf *m)
{
	if (s->nhops > 1)
		*note_of(m) = (struct note){.chain = CHAIN_NONE};
}

static void
take_back(struct splitter *s, struct hop *h, struct way *w, struct rte_mbuf **pkts,
	  const uint8_t *how, uint16_t n)
{
	struct rte_mbuf *keep[BURST];
	uint16_t i, nkeep = 0, bypassed = 0;

	for (i = 0; i < n; i++) {
		if ((how[i] & NFMETA_RECLAIMED) != 0) {
			s->c.reclaimed++;
			s->c.orphans += (how[i] & NFMETA_ORPHAN) != 0;
		}
		if ((how[i] & NFMETA_INJECTED) == 0) {
			w->back++;
		} else if (how[i] == (NFMETA_INJECTED | NFMETA_DROP)) {
			rte_pktmbuf_free(pkts[i]); /* a blank that was not needed */
			continue;
		} else {
			s->c.injected++;
			note_injected(s, pkts[i]);
		}
		switch (how[i] & (NFMETA_DROP | NFMETA_BACKWARD)) {
		case NFMETA_FORWARD:
			keep[nkeep++] = pkts[i];
			bypassed += (how[i] & NFMETA_RECLAIMED) != 0;
			break;
		case NFMETA_BACKWARD:
			never_came(s, pkts[i]);
			send_backward(s, pkts[i]);
			break;
		default:
			never_came(s, pkts[i]);
			rte_pktmbuf_free(pkts[i]);
			if ((how[i] & NFMETA_RECLAIMED) != 0) {
				s->c.drop_dead++;
				h->c.dead++;
			} else {
				s->c.drop_nf++;
				h->c.dropped++;
			}
		}
	}
	h->c.bypassed += bypassed;
	if (nkeep > 0)
		s->c.bypassed += RTE_MIN(go_on(s, keep, nkeep), bypassed);
}

/* The NF of a queue gave these back, in the order sent. */
static void
came_back(struct splitter *s, struct hop *h, uint16_t q, struct rte_mbuf **pkts, const uint8_t *how,
	  uint16_t n)
{
	struct way *w = &h->way[q];
	uint16_t i, k;

	for (i = 0; i < n; i += k) {
		k = (uint16_t)(n - i);
		if (unlikely(w->head != w->tail))
			k = (uint16_t)RTE_MIN((uint64_t)k, w->place[w->head & w->mask] - w->back);
		take_back(s, h, w, pkts + i, how + i, k);
		release(s, w, w->back);
	}
}

static unsigned int
collect_queue(struct splitter *s, struct hop *h, uint16_t q)
{
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	uint16_t n = nfmeta_collect_burst(h->link, q, pkts, how, BURST);

	came_back(s, h, q, pkts, how, n);
	return n;
}

int
bury(struct splitter *s, struct hop *h, uint16_t q)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t orphans = s->c.orphans, reclaimed = s->c.reclaimed;
	uint8_t how[BURST];
	int n;

	while ((n = nfmeta_link_reclaim(h->link, q, pkts, how, BURST)) > 0)
		came_back(s, h, q, pkts, how, (uint16_t)n);
	if (n != 0)
		return n;
	h->died[q] = true;
	h->c.deaths++;
	s->c.deaths++;
	complain("the NF of %s died; %ju packets were reclaimed, %ju of them from its hands",
		 queue_name(s, h, q), (uintmax_t)(s->c.reclaimed - reclaimed),
		 (uintmax_t)(s->c.orphans - orphans));
	return 0;
}

int
cut_off(struct splitter *s, struct hop *h, uint16_t q)
{
	struct way *w = &h->way[q];
	uint64_t packets;

	while (collect_queue(s, h, q) > 0)
		;
	if (nfmeta_link_fence(h->link, q, &packets) != 0)
		return complain("%s", nfmeta_error());
	while (collect_queue(s, h, q) > 0) /* what was set aside */
		;
	h->c.cut_off++;
	h->c.fenced += packets;
	s->c.fenced++;
	s->c.drop_fenced += packets;
	w->back = w->sent;
	release(s, w, w->back);
	h->died[q] = true;
	complain("the NF of %s stood still for %ju s and was cut off; %ju packets that it had"
		 " are lost",
		 queue_name(s, h, q), (uintmax_t)s->o->fence, (uintmax_t)packets);
	return 0;
}

/* As an NF of its own link: what is on the ring comes back as its policy has it. */
static uint64_t
return_all(struct splitter *s, struct hop *h, struct nfmeta_link *nf, uint16_t q, uint8_t what)
{
	const struct nfmeta_flow_batch *message;
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	uint64_t total = 0;
	uint16_t n;

	memset(how, what, sizeof(how));
	do {
		n = nfmeta_recv_burst(nf, pkts, NULL, BURST);
		nfmeta_return_burst(nf, pkts, how, n);
		total += n;
		while (nfmeta_flow_next(nf, &message) == 1)
			n++;
		while (collect_queue(s, h, q) > 0)
			;
	} while (n > 0);
	return total;
}

void
take_back_waiting(struct splitter *s, struct hop *h, uint16_t q)
{
	bool bypass = h->o->when_full == NFMETA_FULL_BYPASS;
	struct nfmeta_link *nf;
	uint64_t n;

	while (collect_queue(s, h, q) > 0)
		;
	if (h->way[q].sent == h->way[q].back || nfmeta_link_peer(h->link, q) != NFMETA_PEER_NONE ||
	    nfmeta_link_attach(h->o->name, q, 0, &nf) != 0)
		return; /* the next NF is just coming: it gets them */
	n = return_all(s, h, nf, q, bypass ? NFMETA_FORWARD : NFMETA_DROP);
	nfmeta_link_detach(nf);
	if (bypass) {
		s->c.bypassed += n;
		h->c.bypassed += n;
		return;
	}
	s->c.drop_nf -= n;
	h->c.dropped -= n;
	s->c.drop_unserved += n;
}

unsigned int
collect(struct splitter *s)
{
	unsigned int total = 0;
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++) {
		if (unlikely(s->waiting > 0))
			waiting_round(s);
		for (q = 0; q < h->o->queues; q++)
			total += collect_queue(s, h, q);
		if (unlikely(h->gone))
			release_all(s, h);
	}
	return total;
}

unsigned int
feeds_round(struct splitter *s, uint64_t now)
{
	unsigned int total = 0;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		total += feed_round(s->hop[i].feed, now);
	return total;
}

void
feeds_flush(struct splitter *s)
{
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		feed_flush(s->hop[i].feed);
}

/* ---- to the NF ----------------------------------------------------------------------- */

/* The flow that a packet was put into; back: against the direction of its first one. */
static struct flow *
flow_of(const struct splitter *s, struct rte_mbuf *m, bool *back)
{
	struct nfmeta_record r;
	struct note *note;

	if (s->nhops > 1) {
		note = note_of(m);
		*back = note->back;
		return note->known ? flow_find(s->flows, note->flow_id, note->generation) : NULL;
	}
	if (nfmeta_record_get(&s->field, m, &r) == 0 || (r.flags & NFMETA_FLOW_KNOWN) == 0)
		return NULL;
	*back = (r.flags & NFMETA_FLOW_REVERSE) != 0;
	return &s->flows->flows[r.flow_id];
}

/* These did not go to the NF: nothing waits for them. */
static void
forget_places(struct splitter *s, struct hop *h, uint16_t q, struct rte_mbuf *const *pkts,
	      uint16_t n)
{
	struct way *w = &h->way[q];
	struct flow_at *to;
	struct flow *f;
	uint64_t last;
	uint32_t at;
	uint16_t i;
	bool back;

	for (i = 0; i < n; i++) {
		f = flow_of(s, pkts[i], &back);
		if (f == NULL)
			continue;
		to = flow_at(s->flows, f, h->number);
		to->place = RTE_MIN(to->place, w->sent);
		flow_pass(flow_passed(s->flows, f, h->number), back, pkts[i]->pkt_len);
	}
	if (w->waiting > 0)
		renumber(s, h, q);
	last = w->sent + w->waiting;
	for (at = w->tail; at != w->head && w->place[(at - 1) & w->mask] > last; at--)
		w->place[(at - 1) & w->mask] = last;
}

void
turn_away(struct splitter *s, struct hop *h, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	h->way[q].refused += n;
	if (s->o->carrier != 0 || s->nhops > 1)
		forget_places(s, h, q, pkts, n);
	if (h->o->when_full == NFMETA_FULL_BYPASS) {
		h->c.bypassed += n;
		s->c.bypassed += go_on(s, pkts, n);
		return;
	}
	for (i = 0; i < n; i++)
		never_came(s, pkts[i]);
	rte_pktmbuf_free_bulk(pkts, n);
	if (h->o->when_full == NFMETA_FULL_WAIT) {
		s->c.drop_stopped += n;
	} else {
		h->c.full += n;
		s->c.drop_full += n;
	}
}

static void
hand_over(struct splitter *s, struct hop *h, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	struct idle idle = {.sleep_us = IDLE_US};
	bool wait = h->o->when_full == NFMETA_FULL_WAIT;
	uint16_t sent = 0, k;
	uint64_t now;

	while (!h->gone) {
		/* Packets would overtake messages that wait: where they can wait, they do. */
		if (likely(!wait || !feed_behind(h->feed, q))) {
			k = nfmeta_send_burst(h->link, q, pkts + sent, (uint16_t)(n - sent));
			h->way[q].sent += k;
			sent += k;
			h->nsorted[q] = (uint16_t)(n - sent);
			if (sent == n)
				return;
		}
		if (!wait || s->ended != NULL)
			break;
		now = rte_rdtsc();
		if (collect(s) + feeds_round(s, now) > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
		tick(s, now);
	}
	h->nsorted[q] = 0;
	turn_away(s, h, q, pkts + sent, (uint16_t)(n - sent));
}

static void
set_times(const struct splitter *s, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
	  uint16_t n)
{
	struct timespec t;
	uint64_t now = 0, ns;
	uint16_t i;

	if (s->field.size < NFMETA_RECORD_FULL)
		return;
	if (timestamp_offset < 0) {
		clock_gettime(CLOCK_REALTIME, &t);
		now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
	for (i = 0; i < n; i++) {
		ns = packet_time(pkts[i]);
		recs[i].timestamp = ns != 0 ? ns : now;
	}
}

/* What is known of its application, and what the rules say of that, into flow and record. */
static inline void
look(struct splitter *s, struct flow *f, const struct rte_mbuf *m, struct nfmeta_record *r,
     uint64_t tsc)
{
	uint64_t ns;

	if (unlikely(apps_want(s->apps, f))) {
		ns = packet_time(m);
		apps_look(s->apps, f, m, r, ns != 0 ? ns / 1000000 : tsc / (s->hz / 1000));
	}
	r->app_id = f->app_id;
	r->action = f->at.decision.action;
	f->seen++;
}

/* The chain of a packet, which is noted if there are several links. */
static inline uint8_t
chain_of(struct splitter *s, struct rte_mbuf *m, const struct nfmeta_record *r,
	 const struct nfmeta_flow_key *key, const struct flow *f)
{
	uint8_t chain = f != NULL ? f->chain : lone_chain(&s->first, key, r, m->pkt_len);
	struct note *note;

	if (s->nhops == 1)
		return chain;
	note = note_of(m);
	*note = (struct note){.chain = chain};
	if (f != NULL) {
		note->known = true;
		note->flow_id = r->flow_id;
		note->generation = r->flow_gen;
		note->back = (r->flags & NFMETA_FLOW_REVERSE) != 0;
	}
	return chain;
}

/* Sort by link and queue; what passes by the NF goes its own way.  chains: there are some. */
static __rte_always_inline void
sort(struct splitter *s, struct rte_mbuf **pkts, struct nfmeta_record *recs,
     const struct nfmeta_flow_key *keys, struct flow *const *flows, uint16_t n, uint64_t tsc,
     const bool chains)
{
	struct rte_mbuf *now[BURST];
	struct hop *h = &s->hop[0];
	uint16_t i, q, nnow = 0;
	uint8_t chain;
	struct flow_at *at;
	enum fate fate;
	struct flow *f;

	for (i = 0; i < n; i++) {
		f = flows[i];
		if (chains) {
			chain = chain_of(s, pkts[i], &recs[i], &keys[i], f);
			if (chain == CHAIN_NONE) {
				s->c.forwarded++;
				now[nnow++] = pkts[i];
				continue;
			}
			if (chain == CHAIN_DROP) {
				s->c.drop_policy++;
				rte_pktmbuf_free(pkts[i]);
				continue;
			}
			h = &s->hop[s->first.chains[chain].link[0]];
		}
		if (s->apps != NULL && f != NULL)
			look(s, f, pkts[i], &recs[i], tsc);
		if (unlikely(f == NULL)) {
			q = lone_queue(&s->first, &keys[i], h->number);
		} else {
			q = chains ? flow_queue(s->flows, f, h->number) : f->queue;
			at = chains ? flow_at(s->flows, f, h->number) : &f->at;
			if (unlikely(at->decision.action != NFMETA_ACTION_NONE)) {
				fate = act(s, h, f, pkts[i],
					   (recs[i].flags & NFMETA_FLOW_REVERSE) != 0, tsc);
				if (fate == PASSES)
					now[nnow++] = pkts[i];
				if (fate != TO_NF)
					continue;
			}
			at->place = h->way[q].sent + h->nsorted[q] + 1;
			if (chains)
				recs[i].action = at->decision.action;
		}
		if (chains || s->apps != NULL) /* else all are stamped */
			nfmeta_record_set(&s->field, pkts[i], &recs[i]);
		h->sorted[q][h->nsorted[q]++] = pkts[i];
	}
	if (nnow > 0)
		go_on(s, now, nnow);
}

/* Several links: packets between them go on, until there is room, or the flow can end. */
static void
let_pass(struct splitter *s, struct idle *idle, uint64_t *since)
{
	uint64_t now = rte_rdtsc();

	if (*since == 0)
		*since = now;
	/* not for ever, and not again at once: an NF may stand still */
	if (now - *since > s->hz / 1000 * PASS_MS || s->ended != NULL) {
		s->flows->hurry = true;
		s->hurry_until = now + s->hz;
	}
	if (collect(s) + feeds_round(s, now) > 0)
		idle_over(idle);
	else
		idle_wait(idle);
	tick(s, now);
}

void
work(struct splitter *s, struct rte_mbuf **pkts, uint16_t n, uint64_t now)
{
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	struct idle idle = {.sleep_us = IDLE_US};
	struct flow *flows[BURST];
	uint64_t since = 0;
	struct hop *h;
	uint16_t i, k, q;

	s->c.in += n;
	for (i = 0; i < n; i++)
		s->c.in_bytes += pkts[i]->pkt_len;
	nfmeta_classify_burst(s->o->policy, pkts, n, recs, keys);
	for (i = 0; i < n; i += k) {
		k = 0;
		if (unlikely(s->waiting > 0 && s->ended == NULL)) {
			let_pass(s, &idle, &since);
			continue;
		}
		k = flows_burst(s->flows, pkts + i, recs + i, keys + i, flows, (uint16_t)(n - i),
				i == 0 ? now : rte_rdtsc());
		if (unlikely(k == 0)) {
			let_pass(s, &idle, &since);
			continue;
		}
		since = 0;
		set_times(s, pkts + i, recs + i, k);
		if (s->nhops > 1 || s->first.policy != NULL) {
			sort(s, pkts + i, recs + i, keys + i, flows, k, now, true);
		} else {
			if (s->apps == NULL)
				nfmeta_record_set_burst(&s->field, pkts + i, recs + i, k);
			sort(s, pkts + i, recs + i, keys + i, flows, k, now, false);
		}
		feeds_flush(s); /* before the packets that it is about */
		for (h = s->hop; h < &s->hop[s->nhops]; h++) {
			for (q = 0; q < h->o->queues; q++) {
				if (h->nsorted[q] > 0)
					hand_over(s, h, q, h->sorted[q], h->nsorted[q]);
				h->nsorted[q] = 0;
			}
		}
	}
	flows_sent(s->flows);
}

/* ---- make and unmake ------------------------------------------------------------------ */

static int
way_open(struct way *w, uint32_t size)
{
	w->mask = size - 1;
	w->held = calloc(size, sizeof(*w->held));
	w->place = calloc(size, sizeof(*w->place));
	return w->held != NULL && w->place != NULL ? 0 : complain("out of memory");
}

int
ways_open(struct splitter *s)
{
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++)
			if (way_open(&h->way[q], RTE_MIN(h->o->ring_size, (uint32_t)HELD_MAX)) != 0)
				return -1;
	return 0;
}

void
ways_close(struct splitter *s)
{
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++) {
		for (q = 0; q < h->o->queues; q++) {
			free(h->way[q].held);
			free(h->way[q].place);
		}
	}
}
