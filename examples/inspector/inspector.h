/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_INSPECTOR_H
#define EXAMPLES_INSPECTOR_H

/*
 * The inspector is an NF: it serves one queue of a link.  What it does with a
 * packet is small (count per flow, look at a header byte and a payload byte), so
 * that its three modes show what getting there costs:
 *
 *   trust  the record says what the headers are and which flow it is
 *   redo   the record is ignored: header checks, checksums, flow lookup anew
 *   audit  both, compared
 *
 *   options.c  command line     run.c    the loop
 *   work.c     the three modes  audit.c  the comparison
 *   track.c    flows, verdicts  told.c   flows, as the splitter tells of them
 *   report.c   figures
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#include "../common/common.h"
#include "track.h"

#define BURST 32

#define MODE_TRUST 0
#define MODE_REDO 1
#define MODE_AUDIT 2

/* ---- options.c ---------------------------------------------------------------- */

struct inspector_opts {
	const char *link;
	const char *file_prefix;
	const char *json;
	uint16_t queue;
	int mode;
	uint64_t timeout;	/* seconds to wait for primary and link */
	uint64_t drop_every;	/* every Nth packet is dropped; 0: none */
	uint64_t verdict_after; /* packets of a flow; 0: no verdicts */
	uint8_t verdict;	/* NFMETA_ACTION_SHUNT or _DROP */
	uint32_t hold;		/* packets kept in hand, to try faults; 0: none */
	uint32_t idle_us;	/* longest sleep when nothing comes; 0: none */
	bool no_flow_state;
	uint64_t cost;	   /* ns spent on a packet, beside the work */
	uint64_t sleep;	   /* likewise, asleep */
	const char *flows; /* CSV of flows */
	uint32_t max_flows;
	uint32_t policy; /* NFMETA_CLASSIFY_*, as the splitter has it */
	bool quiet;
	bool verbose;
	bool thread; /* of the splitter's process: signals are its business */
};

extern const char *const inspector_modes[];

void inspector_defaults(struct inspector_opts *o);
/* 0: run; 1: help was asked for and printed; -1: bad, the line is said. */
int inspector_options(int argc, char **argv, struct inspector_opts *o);

/* ---- work.c --------------------------------------------------------------------- */

struct work_counts {
	uint64_t packets, bytes;
	uint64_t no_record; /* came without one: done as in redo */
	uint64_t invalid;   /* headers are not whole */
	uint64_t bad_checksum;
	uint64_t no_flow; /* not IP, or no room for its flow */
	uint64_t flows;
	uint64_t checks_saved;	/* checksums that did not have to be computed */
	uint64_t lookups_saved; /* flow lookups that were not needed */
	uint64_t dropped;
	uint64_t with_app;    /* the record names the application */
	uint64_t app_differs; /* of these: a message named another one */
	uint64_t digest;      /* of the bytes looked at, so that they are */
};

struct worker;
struct audit;

/* NULL on failure, the line said. */
struct worker *worker_create(const struct inspector_opts *o, const struct nfmeta_field *field);
/* Process up to BURST packets; how: what is to happen to each. */
void worker_burst(struct worker *w, struct rte_mbuf **pkts, uint8_t *how, uint16_t n);
struct work_counts worker_counts(const struct worker *w);
const struct audit *worker_audit(const struct worker *w);
struct tracker *worker_tracker(struct worker *w);
void worker_leave_hash(struct worker *w);
/* 0, or -1 and the line said: the CSV of flows could not be written. */
int worker_destroy(struct worker *w);

/* ---- audit.c ---------------------------------------------------------------------- */

struct audit_id;
struct audit_key;

struct audit {
	uint64_t compared;
	uint64_t disagreements;					   /* packets with at least one */
	uint64_t no_record, flags, offsets, vlan, flow, direction; /* of what kind */
	uint64_t later; /* the record says that there was an NF before this one */
	/* what was seen so far */
	struct audit_id *ids; /* by flow id */
	uint32_t known;
	struct audit_key *keys; /* by our own number for the key */
};

int audit_create(struct audit *a, uint32_t keys);
/* mine: what nfmeta_classify_burst() says here; own: our number for its key, or -1 */
void audit_packet(struct audit *a, const struct nfmeta_field *f, const struct rte_mbuf *m,
		  const struct nfmeta_record *mine, const struct nfmeta_flow_key *key, int32_t own);
void audit_destroy(struct audit *a);

/* ---- run.c --------------------------------------------------------------------------- */

#define HOLD_MAX 4096

struct inspector_result {
	struct work_counts counts;
	struct audit audit; /* the counters */
	struct track_counts track;
	uint64_t cycles; /* from a receive that gave packets to their return */
	uint64_t bursts;
	double ns_per_packet;	  /* all of it: the machine's other work, too */
	uint32_t ns_burst_median; /* of a packet in the median burst: without that */
	const char *ended;
	int status; /* EXIT_* */
};

/* Needs EAL.  Attaches, works to the end, detaches; the line said on failure. */
void inspector_run(const struct inspector_opts *o, struct inspector_result *r);

/* ---- report.c ------------------------------------------------------------------------- */

void inspector_summary(const struct inspector_opts *o, const struct inspector_result *r);
void inspector_json(struct json *j, const struct inspector_opts *o,
		    const struct inspector_result *r);

#endif
