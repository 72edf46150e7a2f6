/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>

#include "splitter.h"

uint64_t
ways_in_flight(const struct splitter *s)
{
	uint64_t n = 0;
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		n += s->way[q].sent - s->way[q].back + s->way[q].tail - s->way[q].head;
	return n;
}

/* ---- out ------------------------------------------------------------------------- */

static uint16_t
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
static bool
pass_by(struct splitter *s, struct flow *f, struct rte_mbuf *m, struct rte_mbuf **now,
	uint16_t *nnow)
{
	struct way *w = &s->way[f->queue];
	uint64_t last;

	if (f->place <= w->back) {
		now[(*nnow)++] = m;
	} else if (w->tail - w->head <= w->mask) {
		if (w->tail != w->head) {
			last = w->place[(w->tail - 1) & w->mask];
			f->place = RTE_MAX(f->place, last);
		}
		w->held[w->tail & w->mask] = m;
		w->place[w->tail++ & w->mask] = f->place;
		s->c.shunted_held++;
	} else {
		s->c.not_shunted++;
		return false;
	}
	s->c.shunted++;
	s->c.shunted_bytes += m->pkt_len;
	return true;
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
			forward(s, pkts, n);
			n = 0;
		}
	}
	if (n > 0)
		forward(s, pkts, n);
}

void
ways_release(struct splitter *s)
{
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		release(s, &s->way[q], UINT64_MAX);
}

/* An NF can say that it is APPS_WHO, too: that costs the figures, nothing else. */
static bool
by_rule(const struct splitter *s, const struct flow *f)
{
	return s->apps != NULL && f->decision.who == APPS_WHO;
}

/* Was decided for its flow; true: the packet goes to the NF all the same. */
static __rte_noinline bool
act(struct splitter *s, struct flow *f, struct rte_mbuf *m, const struct nfmeta_record *r,
    uint64_t tsc, struct rte_mbuf **now, uint16_t *nnow)
{
	uint8_t was = f->decision.action, action = nfmeta_flow_act(&f->decision, tsc);

	if (f->decision.action != was) /* its time is over */
		feed_update(s->feed, f);
	if (action == NFMETA_ACTION_INSPECT)
		return true;
	if (action == NFMETA_ACTION_DROP) {
		flow_pass(f, r->flags, m->pkt_len);
		rte_pktmbuf_free(m);
		if (by_rule(s, f)) {
			s->c.drop_rule++;
			apps_count(s->apps, f)->discarded++;
		} else {
			s->c.drop_verdict++;
		}
		return false;
	}
	if (!pass_by(s, f, m, now, nnow))
		return true;
	flow_pass(f, r->flags, m->pkt_len);
	if (by_rule(s, f)) {
		s->c.shunted_rule++;
		apps_count(s->apps, f)->shunted++;
	}
	return false;
}

/* ---- back --------------------------------------------------------------------------- */

static void
take_back(struct splitter *s, struct way *w, struct rte_mbuf **pkts, const uint8_t *how, uint16_t n)
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
		}
		switch (how[i] & (NFMETA_DROP | NFMETA_BACKWARD)) {
		case NFMETA_FORWARD:
			keep[nkeep++] = pkts[i];
			bypassed += (how[i] & NFMETA_RECLAIMED) != 0;
			break;
		case NFMETA_BACKWARD:
			send_backward(s, pkts[i]);
			break;
		default:
			rte_pktmbuf_free(pkts[i]);
			if ((how[i] & NFMETA_RECLAIMED) != 0)
				s->c.drop_dead++;
			else
				s->c.drop_nf++;
		}
	}
	if (nkeep > 0)
		s->c.bypassed += RTE_MIN(forward(s, keep, nkeep), bypassed);
}

/* The NF of a queue gave these back, in the order sent. */
static void
came_back(struct splitter *s, struct way *w, struct rte_mbuf **pkts, const uint8_t *how, uint16_t n)
{
	uint16_t i, k;

	for (i = 0; i < n; i += k) {
		k = (uint16_t)(n - i);
		if (unlikely(w->head != w->tail))
			k = (uint16_t)RTE_MIN((uint64_t)k, w->place[w->head & w->mask] - w->back);
		take_back(s, w, pkts + i, how + i, k);
		release(s, w, w->back);
	}
}

static unsigned int
collect_queue(struct splitter *s, uint16_t q)
{
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	uint16_t n = nfmeta_collect_burst(s->link, q, pkts, how, BURST);

	came_back(s, &s->way[q], pkts, how, n);
	return n;
}

int
bury(struct splitter *s, uint16_t q)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t orphans = s->c.orphans, reclaimed = s->c.reclaimed;
	uint8_t how[BURST];
	int n;

	while ((n = nfmeta_link_reclaim(s->link, q, pkts, how, BURST)) > 0)
		came_back(s, &s->way[q], pkts, how, (uint16_t)n);
	if (n != 0)
		return n;
	s->died[q] = true;
	s->c.deaths++;
	complain("the NF of queue %u died; %ju packets were reclaimed, %ju of them from its hands",
		 q, (uintmax_t)(s->c.reclaimed - reclaimed), (uintmax_t)(s->c.orphans - orphans));
	return 0;
}

int
cut_off(struct splitter *s, uint16_t q)
{
	struct way *w = &s->way[q];
	uint64_t packets;

	while (collect_queue(s, q) > 0)
		;
	if (nfmeta_link_fence(s->link, q, &packets) != 0)
		return complain("%s", nfmeta_error());
	while (collect_queue(s, q) > 0) /* what was set aside */
		;
	s->c.fenced++;
	s->c.drop_fenced += packets;
	w->back = w->sent;
	release(s, w, w->back);
	s->died[q] = true;
	complain("the NF of queue %u stood still for %ju s and was cut off; %ju packets that it had"
		 " are lost",
		 q, (uintmax_t)s->o->fence, (uintmax_t)packets);
	return 0;
}

unsigned int
collect(struct splitter *s)
{
	unsigned int total = 0;
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		total += collect_queue(s, q);
	if (unlikely(s->nf_gone))
		ways_release(s);
	return total;
}

/* ---- to the NF ----------------------------------------------------------------------- */

/* These did not go to the NF: nothing waits for them. */
static void
forget_places(struct splitter *s, uint16_t q, struct rte_mbuf *const *pkts, uint16_t n)
{
	struct way *w = &s->way[q];
	struct nfmeta_record r;
	struct flow *f;
	uint32_t at;
	uint16_t i;

	for (i = 0; i < n; i++) {
		if (nfmeta_record_get(&s->field, pkts[i], &r) == 0 ||
		    (r.flags & NFMETA_FLOW_KNOWN) == 0)
			continue;
		f = &s->flows->flows[r.flow_id];
		f->place = RTE_MIN(f->place, w->sent);
		flow_pass(f, r.flags, pkts[i]->pkt_len);
	}
	for (at = w->tail; at != w->head && w->place[(at - 1) & w->mask] > w->sent; at--)
		w->place[(at - 1) & w->mask] = w->sent;
}

/* The link did not take these. */
static void
turn_away(struct splitter *s, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	if (s->o->carrier != 0)
		forget_places(s, q, pkts, n);
	if (s->o->when_full == NFMETA_FULL_BYPASS) {
		s->c.bypassed += forward(s, pkts, n);
		return;
	}
	rte_pktmbuf_free_bulk(pkts, n);
	if (s->o->when_full == NFMETA_FULL_WAIT)
		s->c.drop_stopped += n;
	else
		s->c.drop_full += n;
}

static void
hand_over(struct splitter *s, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	struct idle idle = {.sleep_us = IDLE_US};
	bool wait = s->o->when_full == NFMETA_FULL_WAIT;
	uint16_t sent = 0, k;
	uint64_t now;

	while (!s->nf_gone) {
		/* Packets would overtake messages that wait: where they can wait, they do. */
		if (likely(!wait || !feed_behind(s->feed, q))) {
			k = nfmeta_send_burst(s->link, q, pkts + sent, (uint16_t)(n - sent));
			s->way[q].sent += k;
			sent += k;
			if (sent == n)
				return;
		}
		if (!wait || s->ended != NULL)
			break;
		now = rte_rdtsc();
		if (collect(s) + feed_round(s->feed, now) > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
		tick(s, now);
	}
	turn_away(s, q, pkts + sent, (uint16_t)(n - sent));
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
	r->action = f->decision.action;
	f->seen++;
}

/* Sort by queue; what passes by the NF goes its own way. */
static void
sort(struct splitter *s, struct rte_mbuf **pkts, struct nfmeta_record *recs,
     const struct nfmeta_flow_key *keys, struct flow *const *flows, uint16_t n, uint64_t tsc)
{
	struct rte_mbuf *now[BURST];
	uint16_t i, q, nnow = 0;
	struct flow *f;

	for (i = 0; i < n; i++) {
		f = flows[i];
		if (unlikely(f == NULL)) {
			q = choose_queue(&keys[i], s->o->queues);
		} else {
			q = f->queue;
			if (s->apps != NULL)
				look(s, f, pkts[i], &recs[i], tsc);
			if (unlikely(f->decision.action != NFMETA_ACTION_NONE) &&
			    !act(s, f, pkts[i], &recs[i], tsc, now, &nnow))
				continue;
			f->place = s->way[q].sent + s->nsorted[q] + 1;
		}
		if (s->apps != NULL) /* else all are stamped */
			nfmeta_record_set(&s->field, pkts[i], &recs[i]);
		s->sorted[q][s->nsorted[q]++] = pkts[i];
	}
	if (nnow > 0)
		forward(s, now, nnow);
}

void
work(struct splitter *s, struct rte_mbuf **pkts, uint16_t n, uint64_t now)
{
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	struct flow *flows[BURST];
	uint16_t i, k, q;

	s->c.in += n;
	for (i = 0; i < n; i++)
		s->c.in_bytes += pkts[i]->pkt_len;
	nfmeta_classify_burst(s->o->policy, pkts, n, recs, keys);
	for (i = 0; i < n; i += k) {
		k = flows_burst(s->flows, pkts + i, recs + i, keys + i, flows, (uint16_t)(n - i),
				i == 0 ? now : rte_rdtsc());
		set_times(s, pkts + i, recs + i, k);
		if (s->apps == NULL)
			nfmeta_record_set_burst(&s->field, pkts + i, recs + i, k);
		sort(s, pkts + i, recs + i, keys + i, flows, k, now);
		feed_flush(s->feed); /* before the packets that it is about */
		for (q = 0; q < s->o->queues; q++) {
			if (s->nsorted[q] > 0)
				hand_over(s, q, s->sorted[q], s->nsorted[q]);
			s->nsorted[q] = 0;
		}
	}
	flows_sent(s->flows);
}

/* ---- make and unmake ------------------------------------------------------------------ */

int
ways_open(struct splitter *s)
{
	uint32_t size = RTE_MIN(s->o->ring_size, (uint32_t)HELD_MAX);
	struct way *w;
	uint16_t q;

	for (q = 0; q < s->o->queues; q++) {
		w = &s->way[q];
		w->mask = size - 1;
		w->held = calloc(size, sizeof(*w->held));
		w->place = calloc(size, sizeof(*w->place));
		if (w->held == NULL || w->place == NULL)
			return complain("out of memory");
	}
	return 0;
}

void
ways_close(struct splitter *s)
{
	uint16_t q;

	for (q = 0; q < s->o->queues; q++) {
		free(s->way[q].held);
		free(s->way[q].place);
	}
}
