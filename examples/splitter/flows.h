/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_FLOWS_H
#define EXAMPLES_SPLITTER_FLOWS_H

/*
 * The flow table: lookup.c finds flows, flows.c puts packets into them, expire.c makes the
 * table and ends flows.  feed.c tells the NFs.
 *
 * rte_hash gives every key a number: that is the flow id, and the index of the
 * flow's slot.  A number is given again when its flow has ended; the slot's
 * generation grows each time, so that id and generation together are unique.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_timer.h>

#include <nfmeta/nfmeta.h>

#include "first.h"

struct apps;
struct correlate;
struct feed;
struct rte_hash;
struct rte_mbuf;

/* flow.closing */
#define FLOW_FIN_A 0x01 /* end a of the key has sent a FIN */
#define FLOW_FIN_B 0x02
#define FLOW_RST 0x04

/* A flow at one link. */
struct flow_at {
	uint64_t place; /* of its last packet among those of the queue: path.c */
	struct nfmeta_flow_decision decision;
};

/* What the NF of a link did not get; [0]: in the direction of the first packet. */
struct flow_passed {
	uint64_t packets[2], bytes[2];
};

/* ... at a link behind the first one: there is a line of it for each. */
struct flow_more {
	struct flow_at at;
	struct flow_passed passed;
	uint8_t queue;
} __rte_cache_aligned;

struct flow {
	struct nfmeta_flow_key key;
	uint64_t last; /* TSC of the last packet */
	uint16_t generation;
	uint8_t used : 1;
	uint8_t first_reverse : 1; /* the first packet came from end b */
	uint8_t chain;		   /* the links that it goes by: first.h */
	uint8_t base_known;	   /* bit per direction */
	uint8_t closing;	   /* FLOW_* */
	uint8_t queue;		   /* of the first link */
	uint8_t touched;	   /* had packets since it was put into the list */

	uint64_t packets[2], bytes[2]; /* from end a, from end b */
	uint32_t base[2];	       /* TCP: first sequence number, as if it were a SYN's */
	struct flow_at at;	       /* the first link */

	/* apps.c; 0 without it */
	uint32_t app_id; /* as in the record */
	uint32_t seen;	 /* packets before the one that is at work */
	uint16_t app_slot;
	uint8_t app_state; /* APP_* */
	uint8_t app_looks; /* packets that were looked into */
	uint8_t rules;	   /* edition of the rules that the decision is from */
	uint16_t policy;   /* whose counters: policy.c */

	/* correlate.c; 0 without it */
	uint8_t control;  /* CONTROL_* */
	uint8_t expected; /* by its control session */

	struct flow_passed passed; /* the first link */
	uint32_t prev, next;	   /* slots; FLOW_NONE: none */
} __rte_cache_aligned;

#define FLOW_NONE UINT32_MAX

#define FLOW_ENDS (NFMETA_END_STOPPED + 1)

struct flow_counts {
	uint64_t flows;	 /* made since the start */
	uint64_t active; /* in the table now */
	uint64_t ended[FLOW_ENDS];
	uint64_t timed_out;		     /* ended by the timer */
	uint64_t moved;			     /* to another queue */
	uint64_t unknown;		     /* packets that got no flow: table full */
	uint64_t buffer_hits, buffer_misses; /* lookups: lookup.c */
};

struct flow_opts {
	uint32_t max_flows;
	uint64_t timeout, timeout_udp, timeout_closed; /* seconds */
	const char *csv;			       /* NULL: none */
	bool shared;				       /* in a table that NFs read, too */
};

struct flow_table {
	struct rte_hash *hash;
	struct flow *flows;
	struct flow_more *more; /* of each flow for each link but the first; NULL: one link */
	uint64_t *buffer;	/* of active flows: lookup.c */
	uint32_t buffer_slots;
	uint32_t slots;
	uint32_t move;	     /* next slot that is looked at for a session to move */
	uint32_t head, tail; /* list of all flows: what was put there first is first */
	uint32_t sweep;	     /* next slot the timer looks at */
	uint32_t sweep_step;
	uint64_t timeout, timeout_udp, timeout_closed; /* TSC cycles */
	uint64_t hand;				       /* TSC of the burst that is at work */
	bool moved;				       /* a flow was evicted in this burst */
	struct rte_timer timer;
	struct flow_counts counts;
	struct nfmeta_table *shared;
	struct nfmeta_table_flow *entries; /* of the shared table, or NULL */
	struct first *first;
	struct feed *feeds[LINKS_MAX]; /* by link */
	struct apps *apps;	       /* NULL: nobody looks into packets */
	struct correlate *correlate;   /* NULL: nor into control sessions */
	/* several links: has it packets on its way between them?  It cannot end then. */
	bool (*under_way)(const void *arg, const struct flow *f);
	const void *under_way_arg;
	bool hurry; /* it ends all the same */
	FILE *csv;
	const char *csv_path;
};

/* ---- expire.c ---------------------------------------------------------------- */

/* NULL on failure, the line said.  first: the links there are; feeds: one for each. */
struct flow_table *flows_create(const struct flow_opts *o, struct first *first,
				struct feed *const *feeds);
/* Hugepage memory that a table of this size takes, in bytes. */
uint64_t flows_memory(uint32_t max_flows, bool shared);
/* End some of the flows that are left; false: there are none. */
bool flows_stop(struct flow_table *t, uint32_t n);
/* Into the CSV. */
void flows_write(struct flow_table *t, const struct flow *f);
/* 0, or -1 and the line said: the CSV could not be written. */
int flows_close_csv(struct flow_table *t);
void flows_destroy(struct flow_table *t);

/* ---- lookup.c ----------------------------------------------------------------- */

/* The number of each key's flow, or less than 0. */
void flows_lookup(struct flow_table *t, const struct nfmeta_flow_key *keys, int32_t *ids,
		  uint16_t n);
/* 0, or -1 and the line said. */
int flows_make_buffer(struct flow_table *t, uint32_t max_flows);

/* ---- flows.c ------------------------------------------------------------------ */

/* A flow ends; its number may be given to another one. */
void flows_end(struct flow_table *t, struct flow *f, uint16_t reason);
/*
 * Sessions of these queues of a link (a bit each) get another one, as far as they have no packets
 * there, nor in hand; some of the table in each call.  back: packets that are, of each queue.
 */
void flows_move(struct flow_table *t, uint8_t link, uint64_t queues, const uint64_t *back,
		uint32_t slots);

/*
 * Put a flow into the record of every IP packet, up to where a flow ends that
 * has packets in this very burst: those, and what is to be told of them, have to
 * go out before.  flows: n, out; NULL for a packet without a flow.  now: TSC, later
 * in each call.  n <= BURST.  Returns packets done; 0 (only with several links): the first
 * one has to wait for what is under way between them.
 */
uint16_t flows_burst(struct flow_table *t, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
		     const struct nfmeta_flow_key *keys, struct flow **flows, uint16_t n,
		     uint64_t now);

/* The NFs of all links that the flow goes by are told. */
void flows_tell_update(struct flow_table *t, const struct flow *f);

static inline uint32_t
flow_id(const struct flow_table *t, const struct flow *f)
{
	return (uint32_t)(f - t->flows);
}

static inline struct flow_more *
flow_more(const struct flow_table *t, const struct flow *f, uint8_t link)
{
	return &t->more[flow_id(t, f) * (uint64_t)(t->first->links - 1) + link - 1];
}

static inline struct flow_at *
flow_at(const struct flow_table *t, struct flow *f, uint8_t link)
{
	return link == 0 ? &f->at : &flow_more(t, f, link)->at;
}

static inline struct flow_passed *
flow_passed(const struct flow_table *t, struct flow *f, uint8_t link)
{
	return link == 0 ? &f->passed : &flow_more(t, f, link)->passed;
}

static inline uint8_t
flow_queue(const struct flow_table *t, const struct flow *f, uint8_t link)
{
	return link == 0 ? f->queue : flow_more(t, f, link)->queue;
}

static inline void
flow_set_queue(const struct flow_table *t, struct flow *f, uint8_t link, uint16_t q)
{
	if (link == 0)
		f->queue = (uint8_t)q;
	else
		flow_more(t, f, link)->queue = (uint8_t)q;
}

static inline const struct chain *
flow_chain(const struct flow_table *t, const struct flow *f)
{
	return &t->first->chains[f->chain];
}

/* NULL: no such flow now. */
static inline struct flow *
flow_find(const struct flow_table *t, uint32_t id, uint16_t generation)
{
	struct flow *f = id < t->slots ? &t->flows[id] : NULL;

	return f != NULL && f->used && f->generation == generation ? f : NULL;
}

/* TCP: there is nothing to come but the last answers. */
static inline bool
flow_closed(const struct flow *f)
{
	return (f->closing & FLOW_RST) != 0 ||
	       (f->closing & (FLOW_FIN_A | FLOW_FIN_B)) == (FLOW_FIN_A | FLOW_FIN_B);
}

/* A packet that the NF does not get; back: against the direction of the first one. */
static inline void
flow_pass(struct flow_passed *p, bool back, uint32_t bytes)
{
	p->packets[back]++;
	p->bytes[back] += bytes;
}

/* The packets of the burst are sent, or dealt with. */
static inline void
flows_sent(struct flow_table *t)
{
	t->hand = 0;
}

#endif
