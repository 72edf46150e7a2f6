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

/* Returns why it ended. */
static const char *
loop(const struct inspector_opts *o, struct nfmeta_link *link, struct worker *w,
     struct inspector_result *r, struct costs *costs)
{
	uint64_t tsc, took, next_check = 0, quarter = rte_get_tsc_hz() / 4;
	struct rte_mbuf *pkts[BURST];
	struct idle idle = {0};
	uint8_t how[BURST];
	bool closing = false;
	uint16_t n;
	int rc;

	for (;;) {
		tsc = rte_rdtsc();
		n = nfmeta_recv_burst(link, pkts, NULL, BURST);
		if (n > 0) {
			worker_burst(w, pkts, how, n);
			nfmeta_return_burst(link, pkts, how, n);
			took = rte_rdtsc() - tsc;
			add_cost(costs, took, n);
			r->cycles += took;
			r->bursts++;
			idle_over(&idle);
		} else if (closing) {
			return "the close of the link";
		} else {
			idle_wait(&idle);
		}
		if (!o->thread && stop_asked())
			return "a signal";
		if (tsc < next_check)
			continue;
		next_check = tsc + quarter;
		rc = nfmeta_link_check(link);
		if (rc == -NFMETA_ECLOSING) {
			closing = true;
		} else if (rc != 0) {
			r->status = EXIT_PEER;
			complain("%s", nfmeta_error());
			return "the death of the splitter";
		}
	}
}

void
inspector_run(const struct inspector_opts *o, struct inspector_result *r)
{
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
	if (w == NULL || costs == NULL) {
		nfmeta_link_detach(link);
		worker_destroy(w);
		free(costs);
		return;
	}
	costs->ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	r->status = EXIT_OK;
	r->ended = loop(o, link, w, r, costs);
	r->counts = *worker_counts(w);
	r->audit = *worker_audit(w);
	if (r->counts.packets > 0)
		r->ns_per_packet =
			(double)r->cycles * costs->ns_per_cycle / (double)r->counts.packets;
	r->ns_burst_median = median_cost(costs, r->bursts);
	free(costs);
	rc = nfmeta_link_check(link);
	nfmeta_link_detach(link);
	/*
	 * An rte_hash lies in memory of the splitter.  To free it takes answers
	 * from all processes that share it; when they are ending, leave it be.
	 */
	if (rc != 0 && !o->thread)
		worker_leave_hash(w);
	worker_destroy(w);
}

void
inspector_summary(const struct inspector_opts *o, const struct inspector_result *r)
{
	const struct work_counts *c = &r->counts;
	const struct audit *a = &r->audit;

	printf("%s: queue %u, %s: %ju packets (%ju bytes), %ju flows, %.1f ns per packet, ended by:"
	       " %s\n",
	       say_name(), o->queue, inspector_modes[o->mode], (uintmax_t)c->packets,
	       (uintmax_t)c->bytes, (uintmax_t)c->flows, r->ns_per_packet, r->ended);
	if (o->mode == MODE_TRUST)
		printf("  saved: %ju checksums, %ju flow lookups; without a record: %ju packets\n",
		       (uintmax_t)c->checks_saved, (uintmax_t)c->lookups_saved,
		       (uintmax_t)c->no_record);
	if (o->mode == MODE_AUDIT)
		printf("  audit: %ju packets disagree (no record %ju, flags %ju, offsets %ju,"
		       " VLAN %ju, flow %ju, direction %ju)\n",
		       (uintmax_t)a->disagreements, (uintmax_t)a->no_record, (uintmax_t)a->flags,
		       (uintmax_t)a->offsets, (uintmax_t)a->vlan, (uintmax_t)a->flow,
		       (uintmax_t)a->direction);
	fflush(stdout);
}

void
inspector_json(struct json *j, const struct inspector_opts *o, const struct inspector_result *r)
{
	const struct work_counts *c = &r->counts;
	const struct audit *a = &r->audit;

	json_text(j, "program", "inspector");
	json_text(j, "version", nfmeta_version());
	json_text(j, "mode", inspector_modes[o->mode]);
	json_number(j, "queue", o->queue);
	json_text(j, "ended_by", r->ended);
	json_number(j, "packets", c->packets);
	json_number(j, "bytes", c->bytes);
	json_number(j, "bursts", r->bursts);
	json_real(j, "ns_per_packet", r->ns_per_packet);
	json_number(j, "ns_per_packet_median_burst", r->ns_burst_median);
	json_number(j, "flows", c->flows);
	json_number(j, "packets_without_record", c->no_record);
	json_number(j, "packets_without_flow", c->no_flow);
	json_number(j, "packets_invalid", c->invalid);
	json_number(j, "packets_bad_checksum", c->bad_checksum);
	json_number(j, "checksums_saved", c->checks_saved);
	json_number(j, "lookups_saved", c->lookups_saved);
	json_number(j, "drops_asked", c->dropped);
	json_number(j, "digest", c->digest);
	json_object(j, "audit");
	json_number(j, "compared", a->compared);
	json_number(j, "disagreements", a->disagreements);
	json_number(j, "no_record", a->no_record);
	json_number(j, "flags", a->flags);
	json_number(j, "offsets", a->offsets);
	json_number(j, "vlan", a->vlan);
	json_number(j, "flow", a->flow);
	json_number(j, "direction", a->direction);
	json_end(j);
}
