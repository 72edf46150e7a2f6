/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_BALANCE_H
#define EXAMPLES_SPLITTER_BALANCE_H

/*
 * To which queue of a link a new session goes.  One balancer for each link; all it knows of
 * the link is what it is told, so that it can be tried without one.
 *
 *   hash   the two addresses choose: nothing is remembered, nothing can be evened out
 *   load   the session's first packet chooses, by what the queues have to do just then
 *   pairs  likewise, but all sessions between two addresses stay together as long as one
 *          of them lives
 *
 * A queue's score is what came for it lately, by its weight, and how much it is pressed: by
 * packets that wait, by an NF that says it is busy.  Two queues are drawn by their weights,
 * and the one with the lower score gets the session.  To take the lowest of all would send
 * everything that begins until the next look to one queue; so only where both are pressed
 * all are looked at.  Weights that nobody gave are learned: packets in the time that the NF
 * was busy with them.
 */

#include <stdbool.h>
#include <stdint.h>

#include <nfmeta/nfmeta.h>

#define BALANCE_HASH 0
#define BALANCE_LOAD 1
#define BALANCE_PAIRS 2

#define BALANCE_WEIGHT_MAX 1000
#define BALANCE_NEVER UINT64_MAX

extern const char *const balance_names[]; /* by BALANCE_* */

/* What a queue was given; they only grow. */
struct balance_seen {
	uint64_t sent, back; /* packets: to the NF, by it */
	uint64_t refused;    /* there was no room for */
};

struct balance_queue {
	struct balance_seen seen; /* at the last look */
	uint32_t given_weight;
	double weight;	/* given, or learned; of all that may get sessions the mean is 1 */
	double rate;	/* packets a second that came for it, lately */
	double promise; /* ... that its newest sessions are taken to bring */
	double pressed; /* 0: it is not; 1: its ring is full, or its NF says so */
	double speed;	/* packets a second that its NF can do; 0: not known */
	bool there;	/* an NF is */
	bool drains;	/* ... that wants no more sessions */
	bool stuck;	/* ... that gives nothing back */
	uint64_t away;	/* TSC since when it should get none; 0: it may */
	uint64_t moved; /* TSC of when a packet came back, or there was none there */

	/* the NF's word */
	uint32_t busy;	   /* permille */
	uint64_t busy_at;  /* TSC; 0: it said nothing */
	uint64_t busy_was; /* packets back then */

	/* for people */
	uint64_t flows, sessions; /* live now; ever */
	uint64_t depth_max, depth_sum;
};

/* Sessions with the same two addresses, and others whose addresses have the same hash. */
struct balance_group {
	uint32_t live;
	uint8_t queue; /* of the last one */
};

#define BALANCE_GROUPS 65536

struct balance {
	uint16_t queues;
	uint8_t mode;
	bool weighted; /* weights were given */
	uint32_t ring_size;
	uint32_t total_weight; /* given ones */
	uint64_t hz;
	uint64_t move_after; /* TSC cycles; BALANCE_NEVER */
	uint64_t last;	     /* TSC of the last look */
	uint64_t looks;
	uint64_t flows;
	uint64_t can;	    /* bit per queue: may get new sessions */
	uint64_t leave;	    /* ... : live sessions are to go elsewhere */
	double room;	    /* sum of the weights of those that may */
	double per_session; /* packets a second that a session brings */
	uint32_t random;
	struct balance_group *group; /* NULL: BALANCE_HASH */
	struct balance_queue q[NFMETA_QUEUES_MAX];
};

struct balance_opts {
	uint16_t queues;
	uint8_t mode;		/* BALANCE_* */
	uint32_t ring_size;	/* packets that can be at an NF */
	const uint16_t *weight; /* of each queue; NULL: all the same, or learned */
	uint64_t hz;		/* of the clock that "now" is */
	/* live sessions of a queue that gets no new ones go elsewhere after that long */
	uint64_t move_after;
};

/* NULL: out of memory, the line said. */
struct balance *balance_create(const struct balance_opts *o);
void balance_destroy(struct balance *b);

/* A session begins: its queue. */
uint16_t balance_choose(struct balance *b, const struct nfmeta_flow_key *key);
/* ... on this one, unless that may get none: where one with the same key ended, or its master is. */
uint16_t balance_again(struct balance *b, const struct nfmeta_flow_key *key, uint16_t queue);
/* A session ends, or leaves this queue. */
void balance_end(struct balance *b, const struct nfmeta_flow_key *key, uint16_t queue);
/* The queue of a packet that has no session. */
uint16_t balance_lone(const struct balance *b, const struct nfmeta_flow_key *key);

/* Every millisecond or so: seen of each queue. */
void balance_look(struct balance *b, const struct balance_seen *seen, uint64_t now);
/* An NF serves this queue, or none does. */
void balance_serves(struct balance *b, uint16_t q, bool there, uint64_t now);
/* Its NF says how busy it is; back: packets that came back from it so far. */
void balance_busy(struct balance *b, uint16_t q, uint32_t permille, uint64_t back, uint64_t now);
/* Its NF says that it wants no more sessions, or does again. */
void balance_drains(struct balance *b, uint16_t q, bool drains, uint64_t now);

/* Nobody waits for an NF on this queue: it has no sessions, and others get the new ones. */
static inline bool
balance_spare(const struct balance *b, uint16_t q)
{
	return b->mode != BALANCE_HASH && b->q[q].flows == 0 &&
	       (b->can & ~(UINT64_C(1) << q)) != 0 && (b->can & UINT64_C(1) << q) == 0;
}

#endif
