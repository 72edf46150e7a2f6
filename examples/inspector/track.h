/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_INSPECTOR_TRACK_H
#define EXAMPLES_INSPECTOR_TRACK_H

/*
 * track.c, told.c - what this NF keeps about flows, by the splitter's flow id: what
 * packets say, and what messages say.
 *
 * There is no time-out here: a flow is forgotten when the splitter says so (or,
 * where it tells nothing, when another flow comes under the same id).
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <nfmeta/nfmeta.h>

struct inspector_opts;

/* seen.state */
#define SEEN_NEVER 0
#define SEEN_OPEN 1
#define SEEN_ENDED 2 /* generation: the one that was told to have ended */

/* seen.flags */
#define SEEN_GENERATION 0x01 /* is known: by a message, or a record that has one */
#define SEEN_VERDICT 0x02    /* was said */

struct seen {
	uint64_t packets;
	uint64_t bytes;
	uint16_t generation;
	uint16_t mark; /* of the last snapshot that it is part of */
	uint8_t state;
	uint8_t flags;
	uint8_t action;	 /* NFMETA_ACTION_*, as the splitter said */
	uint32_t app_id; /* likewise; 0: not known */
};

/* What of a flow passed by this NF. */
struct passed {
	uint64_t packets;
	uint64_t bytes;
};

/* opened = deleted + replaced + swept + reset + open */
struct track_counts {
	uint64_t opened;
	uint64_t deleted;
	uint64_t replaced; /* a newer flow came under the id, without a word */
	uint64_t swept;	   /* were not in a snapshot */
	uint64_t reset;
	uint64_t open; /* at the end */
	uint64_t deletes_unknown;
	uint64_t after_delete; /* packets of a flow that was told to have ended */
	uint64_t messages;
	uint64_t snapshots; /* whole ones */
	uint64_t refused;
	uint64_t verdicts_sent;
	uint64_t apps;		/* flows whose application was told */
	uint64_t verdicts_seen; /* flows that the splitter said to shunt or drop */
	uint64_t passed_packets, passed_bytes;
	uint64_t gaps, stale; /* of nfmeta_flow_stats */
	uint32_t sync;	      /* likewise: state */
	uint8_t carrier;
	bool subscribed;
};

struct tracker {
	struct seen *by_id;
	uint32_t ids;
	uint16_t mark;
	bool drains;	     /* was said */
	bool synced;	     /* all flows there are were told */
	uint64_t verdict_at; /* packets of a flow; UINT64_MAX: none is said */
	uint8_t verdict;
	uint16_t nverdicts;
	uint16_t queue;
	struct nfmeta_link *link;
	struct passed *passed; /* by id, too; NULL: nothing did */
	uint32_t passed_ids;
	FILE *csv;
	const char *csv_path;
	struct seen nobody; /* packets without a flow */
	struct track_counts c;
	struct nfmeta_flow_verdict verdicts[NFMETA_FLOW_MAX(struct nfmeta_flow_verdict)];
};

extern const char *const sync_names[]; /* by NFMETA_SYNC_* */

/* 0, or -1 and the line said. */
int track_create(struct tracker *t, const struct inspector_opts *o);
/* Subscribes, if there is something to be told.  0, or -1 and the line said. */
int track_subscribe(struct tracker *t, const struct inspector_opts *o, struct nfmeta_link *link);
/* Sends what verdicts there are, as far as there is room. */
void track_reply(struct tracker *t);
void track_load(struct tracker *t, uint32_t busy);
/* Says whether this NF wants no more flows, if that is news; true: it has none left. */
bool track_drain(struct tracker *t, bool drains);
/* Before the link is left. */
void track_end(struct tracker *t);
/* 0, or -1 and the line said: the CSV could not be written. */
int track_destroy(struct tracker *t);

/* ---- told.c ---- */

/* Takes all messages whose turn it is; returns how many. */
unsigned int track_messages(struct tracker *t);

/* ---- track.c for told.c ---- */

/* What there is about an id; NULL: no room. */
struct seen *track_seen(struct tracker *t, uint32_t id);
struct passed *track_passed(struct tracker *t, uint32_t id);
void track_open(struct tracker *t, struct seen *f, uint16_t generation, bool known);
void track_close(struct tracker *t, struct seen *f, const char *why);
void track_replace(struct tracker *t, struct seen *f);
/* End all flows, or those that were not told of since the snapshot began; how many. */
uint64_t track_forget(struct tracker *t, bool all, const char *why);
/* Where the link says it is. */
void track_sync(struct tracker *t);

/* ---- track.c for the packets ---- */

struct seen *track_first(struct tracker *t, const struct nfmeta_record *r);
void track_judge(struct tracker *t, struct seen *f, uint32_t id);

/* The flow of a packet, by its record, which says NFMETA_FLOW_KNOWN. */
static inline struct seen *
track_packet(struct tracker *t, const struct nfmeta_record *r)
{
	struct seen *f = r->flow_id < t->ids ? &t->by_id[r->flow_id] : NULL;

	if (__builtin_expect(
		    f == NULL || f->state != SEEN_OPEN || (r->flags & NFMETA_FLOW_NEW) != 0 ||
			    (r->size >= NFMETA_RECORD_CORE && f->generation != r->flow_gen),
		    0))
		f = track_first(t, r);
	f->mark = t->mark;
	return f;
}

/* After the packet was counted: is it time for a verdict? */
static inline void
track_counted(struct tracker *t, struct seen *f, uint32_t id)
{
	if (__builtin_expect(f->packets >= t->verdict_at, 0))
		track_judge(t, f, id);
}

#endif
