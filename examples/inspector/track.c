/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../splitter/drain.h"
#include "inspector.h"

#define IDS_MAX (UINT32_C(1) << 24) /* flow ids beyond are not counted per flow */

const char *const sync_names[] = {"off", "lost", "loading", "synced"};

/* ---- what there is by id -------------------------------------------------------- */

/* A larger array, new entries 0; false: no memory, nothing is changed. */
static bool
more(void **array, uint32_t *n, size_t size, uint32_t id)
{
	uint32_t want = RTE_MAX(*n, UINT32_C(4096));
	uint8_t *p;

	while (want <= id)
		want *= 2;
	p = realloc(*array, want * size);
	if (p == NULL)
		return false;
	memset(p + *n * size, 0, (want - *n) * size);
	*array = p;
	*n = want;
	return true;
}

struct seen *
track_seen(struct tracker *t, uint32_t id)
{
	void *array = t->by_id;

	if (id < t->ids)
		return &t->by_id[id];
	if (id >= IDS_MAX || !more(&array, &t->ids, sizeof(*t->by_id), id))
		return NULL;
	t->by_id = array;
	return &t->by_id[id];
}

struct passed *
track_passed(struct tracker *t, uint32_t id)
{
	void *array = t->passed;

	if (id < t->passed_ids)
		return &t->passed[id];
	if (id >= IDS_MAX || !more(&array, &t->passed_ids, sizeof(*t->passed), id))
		return NULL;
	t->passed = array;
	return &t->passed[id];
}

/* ---- begin and end --------------------------------------------------------------- */

void
track_open(struct tracker *t, struct seen *f, uint16_t generation, bool known)
{
	memset(f, 0, sizeof(*f));
	f->state = SEEN_OPEN;
	f->generation = generation;
	f->flags = known ? SEEN_GENERATION : 0;
	f->mark = t->mark;
	t->c.opened++;
}

void
track_close(struct tracker *t, struct seen *f, const char *why)
{
	uint32_t id = (uint32_t)(f - t->by_id);
	struct passed none = {0}, *p = id < t->passed_ids ? &t->passed[id] : &none;

	t->c.passed_packets += p->packets;
	t->c.passed_bytes += p->bytes;
	if (t->csv != NULL)
		fprintf(t->csv, "%u,%u,%ju,%ju,%ju,%s\n", id, f->generation, (uintmax_t)f->packets,
			(uintmax_t)p->packets, (uintmax_t)(f->bytes + p->bytes), why);
	memset(p, 0, sizeof(*p));
	f->state = SEEN_ENDED;
	f->flags = 0;
}

void
track_replace(struct tracker *t, struct seen *f)
{
	track_close(t, f, "replaced");
	t->c.replaced++;
}

uint64_t
track_forget(struct tracker *t, bool all, const char *why)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < t->ids; i++) {
		if (t->by_id[i].state != SEEN_OPEN || (!all && t->by_id[i].mark == t->mark))
			continue;
		track_close(t, &t->by_id[i], why);
		n++;
	}
	return n;
}

/* ---- packets ------------------------------------------------------------------------ */

void
track_sync(struct tracker *t)
{
	struct nfmeta_flow_stats stats = {.sz = sizeof(stats)};

	nfmeta_flow_stats(t->link, t->queue, &stats);
	t->c.sync = stats.state;
	t->c.gaps = stats.gaps;
	t->c.stale = stats.stale;
	t->synced = stats.state == NFMETA_SYNC_SYNCED;
}

/*
 * A packet of a flow that was told to have ended: that must not be, and is counted.
 * When messages are missing, the packet knows better.
 */
static bool
is_late(struct tracker *t)
{
	if (!t->c.subscribed)
		return false;
	track_sync(t);
	t->c.after_delete += t->synced;
	return t->synced;
}

/* A packet that opens its flow, or is the first that one sees of it, or is too late. */
struct seen *
track_first(struct tracker *t, const struct nfmeta_record *r)
{
	bool known = r->size >= NFMETA_RECORD_CORE, is_new = (r->flags & NFMETA_FLOW_NEW) != 0;
	struct seen *f = track_seen(t, r->flow_id);
	uint16_t generation;

	if (f == NULL)
		return &t->nobody;
	/* without one in the record, it is that of the flow the splitter told of */
	generation = known ? r->flow_gen : f->generation;
	if (f->state == SEEN_OPEN) {
		if ((generation == f->generation || (f->flags & SEEN_GENERATION) == 0) &&
		    !(is_new && f->packets > 0))
			return f;
		if (nfmeta_flow_newer(f->generation, generation) && is_late(t))
			return &t->nobody;
		track_replace(t, f);
	} else if (f->state == SEEN_ENDED && !nfmeta_flow_newer(generation, f->generation) &&
		   (known || !is_new) && is_late(t)) {
		return &t->nobody;
	}
	track_open(t, f, generation, known);
	return f;
}

void
track_judge(struct tracker *t, struct seen *f, uint32_t id)
{
	/* with no room for more it is said with a later packet */
	if ((f->flags & SEEN_VERDICT) != 0 || (f->flags & SEEN_GENERATION) == 0 ||
	    t->nverdicts == RTE_DIM(t->verdicts))
		return;
	f->flags |= SEEN_VERDICT;
	t->verdicts[t->nverdicts++] = (struct nfmeta_flow_verdict){
		.flow_id = id,
		.flow_gen = f->generation,
		.verdict = t->verdict,
	};
}

void
track_reply(struct tracker *t)
{
	if (t->nverdicts == 0)
		return;
	if (nfmeta_flow_reply(t->link, NFMETA_MSG_VERDICT, t->verdicts, t->nverdicts) != 0)
		return; /* no room now: again with the next burst */
	t->c.verdicts_sent += t->nverdicts;
	t->nverdicts = 0;
}

/* Flows that there are. */
static uint32_t
open_now(const struct tracker *t)
{
	return (uint32_t)(t->c.opened - t->c.deleted - t->c.replaced - t->c.swept - t->c.reset);
}

void
track_load(struct tracker *t, uint32_t busy)
{
	struct nfmeta_flow_load load = {.busy = busy, .flows = open_now(t)};

	if (t->c.carrier != 0)
		nfmeta_flow_reply(t->link, NFMETA_MSG_LOAD, &load, 1);
}

bool
track_drain(struct tracker *t, bool drains)
{
	struct drain_entry d = {.drains = drains};

	if (!t->c.subscribed)
		return false;
	if (t->drains != drains && nfmeta_flow_reply(t->link, DRAIN_MSG, &d, 1) == 0) {
		t->drains = drains;
		return false; /* it may have sent some meanwhile: not at once */
	}
	return t->drains && drains && open_now(t) == 0;
}

/* ---- the shared table ------------------------------------------------------------------ */

/* Nothing was told, but it can be looked up: what has ended, and how many packets it had. */
static void
look_up_ends(struct tracker *t)
{
	const struct nfmeta_table_flow *flows;
	struct nfmeta_table_flow e;
	struct passed *p;
	uint32_t n, i;
	int rc;

	flows = nfmeta_table_flows(nfmeta_link_table(t->link), &n);
	for (i = 0; flows != NULL && i < t->ids && i < n; i++) {
		struct seen *f = &t->by_id[i];
		uint64_t packets, bytes;

		rc = f->state == SEEN_OPEN ? nfmeta_table_read(&flows[i], &e) : -EAGAIN;
		if (rc < 0 || (rc == 1 && e.flow_gen == f->generation))
			continue;
		p = track_passed(t, i);
		packets = nfmeta_table_packets(e.from_a) + nfmeta_table_packets(e.from_b);
		bytes = nfmeta_table_bytes(e.from_a) + nfmeta_table_bytes(e.from_b);
		if (p != NULL && e.flow_gen == f->generation && packets >= f->packets) {
			p->packets = packets - f->packets;
			p->bytes = bytes - f->bytes;
		}
		track_close(t, f, "not_said");
		t->c.deleted++;
	}
}

/* ---- make and unmake ---------------------------------------------------------------------- */

int
track_create(struct tracker *t, const struct inspector_opts *o)
{
	memset(t, 0, sizeof(*t));
	t->queue = o->queue;
	t->nobody.flags = SEEN_VERDICT;
	t->verdict_at = UINT64_MAX;
	if (o->flows == NULL)
		return 0;
	t->csv_path = o->flows;
	t->csv = fopen(o->flows, "w");
	if (t->csv == NULL)
		return complain("--flows: cannot write \"%s\": %s", o->flows, strerror(errno));
	fprintf(t->csv, "id,generation,packets_seen,packets_passed,bytes,reason\n");
	return 0;
}

int
track_subscribe(struct tracker *t, const struct inspector_opts *o, struct nfmeta_link *link)
{
	const uint64_t types = NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |
			       NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS);
	uint8_t carrier = nfmeta_link_shared(link)->flow_carrier;

	t->link = link;
	/* redo knows no flow ids */
	if (carrier == 0 || o->no_flow_state || o->mode == MODE_REDO)
		return 0;
	t->c.carrier = carrier;
	if (o->verdict_after > 0) {
		t->verdict_at = o->verdict_after;
		t->verdict = o->verdict;
	}
	if (carrier == NFMETA_CARRIER_TABLE)
		return 0;
	if (nfmeta_flow_subscribe(link, types) != 0)
		return complain("%s", nfmeta_error());
	t->c.subscribed = true;
	return 0;
}

void
track_end(struct tracker *t)
{
	if (t->c.subscribed)
		track_sync(t);
	else if (t->c.carrier == NFMETA_CARRIER_TABLE)
		look_up_ends(t);
	t->c.open = track_forget(t, true, "open");
}

int
track_destroy(struct tracker *t)
{
	int rc = 0;

	free(t->by_id);
	free(t->passed);
	if (t->csv != NULL) {
		rc = ferror(t->csv);
		rc |= fclose(t->csv);
		if (rc != 0)
			rc = complain("--flows: writing \"%s\" failed: %s", t->csv_path,
				      strerror(errno));
	}
	t->by_id = NULL;
	t->passed = NULL;
	t->csv = NULL;
	return rc;
}
