/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "inspector.h"

#define COST_MAX 4096 /* ns; what costs more is counted there */
#define SLICE_MS 200  /* a signal is heard that often while waiting for the link */

static int
attach(const struct inspector_opts *o, struct nfmeta_link **link)
{
	uint64_t left = o->timeout * 1000, slice;
	int rc;

	do {
		slice = RTE_MIN(left, (uint64_t)SLICE_MS);
		left -= slice;
		rc = nfmeta_link_attach(o->link, o->queue, (uint32_t)slice, link);
	} while (rc == -NFMETA_ENOLINK && left > 0 && !stop_asked());
	if (rc == -NFMETA_ENOLINK)
		return complain("no link '%s' within %ju s (--timeout): is it created, and is the"
				" name right?",
				o->link, (uintmax_t)o->timeout);
	return rc == 0 ? 0 : complain("%s", nfmeta_error());
}

/* Bursts by what a packet cost in them, in ns. */
struct costs {
	uint64_t bursts[COST_MAX + 1];
	double ns_per_cycle;
};

static inline void
add_cost(struct costs *c, uint64_t cycles, uint16_t n)
{
	uint64_t ns = (uint64_t)((double)cycles * c->ns_per_cycle / n);

	c->bursts[RTE_MIN(ns, (uint64_t)COST_MAX)]++;
}

static uint32_t
median_cost(const struct costs *c, uint64_t bursts)
{
	uint64_t sum = 0;
	uint32_t ns = 0;

	while (ns < COST_MAX && (sum += c->bursts[ns]) * 2 < bursts)
		ns++;
	return ns;
}

/* Packets that are done, and kept in hand all the same (--hold), oldest first. */
struct hand {
	struct rte_mbuf *pkts[HOLD_MAX + BURST];
	uint8_t how[HOLD_MAX + BURST];
	uint32_t n;
	uint64_t since; /* TSC when the last ones came */
};

/* All but the last "keep" go back. */
static void
give_back(struct nfmeta_link *link, struct hand *h, uint32_t keep)
{
	uint32_t k = h->n > keep ? h->n - keep : 0;

	nfmeta_return_burst(link, h->pkts, h->how, (uint16_t)k);
	h->n -= k;
	memmove(h->pkts, h->pkts + k, h->n * sizeof(h->pkts[0]));
	memmove(h->how, h->how + k, h->n);
}

static void
hold(struct nfmeta_link *link, struct hand *h, uint32_t keep, struct rte_mbuf *const *pkts,
     const uint8_t *how, uint16_t n)
{
	memcpy(h->pkts + h->n, pkts, n * sizeof(pkts[0]));
	memcpy(h->how + h->n, how, n);
	h->n += n;
	h->since = rte_rdtsc();
	give_back(link, h, keep);
}

/* Returns why it ended. */
static const char *
loop(const struct inspector_opts *o, struct nfmeta_link *link, struct worker *w,
     struct inspector_result *r, struct costs *costs, struct hand *hand)
{
	uint64_t tsc, took, next_check = 0, quarter = rte_get_tsc_hz() / 4;
	uint64_t patience = rte_get_tsc_hz() / 1000;
	struct tracker *t = worker_tracker(w);
	uint64_t said = rte_rdtsc(), cycles = 0;
	struct rte_mbuf *pkts[BURST];
	struct idle idle = {.sleep_us = o->idle_us};
	uint8_t how[BURST];
	bool closing = false;
	unsigned int told;
	uint16_t n;
	int rc;

	for (;;) {
		tsc = rte_rdtsc();
		n = nfmeta_recv_burst(link, pkts, NULL, BURST);
		if (n > 0) {
			worker_burst(w, pkts, how, n);
			/*
			 * Before the packets go back: a splitter that has them knows what was
			 * decided.
			 */
			track_reply(t);
			if (hand == NULL)
				nfmeta_return_burst(link, pkts, how, n);
			else
				hold(link, hand, o->hold, pkts, how, n);
			took = rte_rdtsc() - tsc;
			add_cost(costs, took, n);
			r->cycles += took;
			r->bursts++;
		} else if (hand != NULL && hand->n > 0 && tsc - hand->since > patience) {
			give_back(link, hand, 0);
		}
		told = track_messages(t);
		if (n + told > 0) {
			idle_over(&idle);
		} else if (closing && (hand == NULL || hand->n == 0)) {
			return "the close of the link";
		} else {
			idle_wait(&idle);
		}
		if (!o->thread && stop_asked())
			return "a signal";
		if (tsc < next_check)
			continue;
		next_check = tsc + quarter;
		track_reply(t);
		track_load(t, (uint32_t)((r->cycles - cycles) * 1000 / (tsc - said)));
		cycles = r->cycles;
		said = tsc;
		if (!o->thread && track_drain(t, drain_asked()) && n == 0 &&
		    (hand == NULL || hand->n == 0))
			return "having no flow left";
		rc = nfmeta_link_check(link);
		if (rc == -NFMETA_ECLOSING) {
			closing = true;
		} else if (rc != 0) {
			r->status = EXIT_PEER;
			complain("%s", nfmeta_error());
			return rc == -NFMETA_EFENCED ? "having been cut off"
						     : "the death of the splitter";
		}
	}
}

void
inspector_run(const struct inspector_opts *o, struct inspector_result *r)
{
	struct hand *hand = NULL;
	struct nfmeta_link *link;
	struct costs *costs;
	struct worker *w;
	int rc;

	memset(r, 0, sizeof(*r));
	r->status = EXIT_BAD;
	if (attach(o, &link) != 0)
		return;
	w = worker_create(o, nfmeta_link_field(link));
	costs = calloc(1, sizeof(*costs));
	if (o->hold > 0)
		hand = calloc(1, sizeof(*hand));
	if (w == NULL || costs == NULL || (o->hold > 0 && hand == NULL) ||
	    track_subscribe(worker_tracker(w), o, link) != 0) {
		nfmeta_link_detach(link);
		worker_destroy(w);
		free(costs);
		free(hand);
		return;
	}
	costs->ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	r->status = EXIT_OK;
	r->ended = loop(o, link, w, r, costs, hand);
	rc = nfmeta_link_check(link);
	if (hand != NULL && (rc == 0 || rc == -NFMETA_ECLOSING))
		give_back(link, hand, 0);
	free(hand);
	if (rc != -NFMETA_EPRIMARYGONE)
		track_end(worker_tracker(w));
	r->track = worker_tracker(w)->c;
	r->counts = worker_counts(w);
	r->audit = *worker_audit(w);
	if (r->counts.packets > 0)
		r->ns_per_packet =
			(double)r->cycles * costs->ns_per_cycle / (double)r->counts.packets;
	r->ns_burst_median = median_cost(costs, r->bursts);
	free(costs);
	nfmeta_link_detach(link);
	/*
	 * An rte_hash lies in memory of the splitter.  To free it takes answers
	 * from all processes that share it; when they are ending, leave it be.
	 */
	if (rc != 0 && !o->thread)
		worker_leave_hash(w);
	if (worker_destroy(w) != 0 && r->status == EXIT_OK)
		r->status = EXIT_BAD;
}
