/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_LIB_LINK_H
#define NFMETA_LIB_LINK_H

/* What a link is inside a process: link.c moves packets, flow.c messages. */

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define TSAN
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#ifdef TSAN
/* DPDK's other ring code orders plain accesses by barriers, which it cannot see. */
#define RTE_USE_C11_MEM_MODEL
#endif

#include <stdbool.h>

#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "internal.h"

#define MESSAGE_WORDS (NFMETA_FLOW_MESSAGE_BYTES / 8) /* of the longest message */
#define HEADER_WORDS (sizeof(struct nfmeta_flow_batch) / 8)
#define SPARE_METAS 32	  /* meta packets that a queue keeps for itself */
#define READER_WORDS 1024 /* taken from a flow ring at a time: many small messages */

/* Takes whole messages from a flow ring. */
struct reader {
	struct rte_ring *ring;
	uint32_t at, have; /* words read, words there */
	uint64_t words[READER_WORDS];
};

/* The primary's side of the messages of a queue. */
struct feed {
	struct rte_ring *down; /* NFMETA_CARRIER_RING */
	uint32_t state;	       /* NFMETA_FEED_* */
	uint32_t epoch;	       /* of the NF that is told */
	uint64_t seq;	       /* last one used */
	uint64_t lost;
	uint64_t acked;
	uint64_t gaps;
	uint64_t stale;
	uint64_t refused;
	uint64_t collected;
	uint32_t request_epoch;
	uint16_t request; /* of the NF, not answered yet; 0: none */
	uint16_t ask;	  /* what the present snapshot answers */
	bool marker;	  /* the NF has to notice that something was given up */
	bool shown;	  /* the caller reads the message that is first on its way up */
	/* messages that wait, one after the other; counters of words run freely */
	uint64_t *backlog;
	uint32_t backlog_size; /* power of 2 */
	uint32_t backlog_head;
	uint32_t backlog_tail;
	uint32_t backlog_messages;
	/* NFMETA_CARRIER_INBAND: up messages that came with the packets */
	struct rte_mbuf *spare[SPARE_METAS]; /* came back, for the next messages down */
	uint32_t nspare;
	struct rte_mbuf **meta;
	uint32_t meta_mask;
	uint32_t meta_head;
	uint32_t meta_tail;
	struct reader in; /* other carriers */
};

/* The NF's side. */
struct sync {
	struct rte_ring *up;   /* not with NFMETA_CARRIER_INBAND */
	struct rte_mbuf *meta; /* NFMETA_CARRIER_INBAND: the message that is next */
	uint32_t state;	       /* NFMETA_SYNC_* */
	uint32_t epoch;
	uint64_t types;	   /* subscribed to */
	uint64_t expected; /* sequence of the next message */
	uint64_t seen;
	uint64_t replies;
	uint64_t ack; /* to be sent; 0: none */
	uint64_t gaps;
	uint64_t stale;
	uint64_t refused;
	uint16_t ask;
	bool resync; /* to be sent */
	bool shown;  /* the caller reads the message that is next */
	struct reader in;
};

/* What is at an NF. */
#define AT_NONE 0
#define AT_PACKET 1
#define AT_BLANK 2
#define AT_META 3
/* Of the map, by disposition, four bits each. */
#define AT_OF_HOW                                                                                  \
	(AT_PACKET | AT_PACKET << 4 | AT_PACKET << 8 | AT_META << 12 | AT_BLANK << 16 |            \
	 AT_BLANK << 20 | AT_BLANK << 24 | AT_BLANK << 28)
#define AT_RING 0x80 /* bit, while reclaiming: it was found on a ring */

/* An NF may give back only what it was given, as what it was given: else it is dropped. */
static inline uint8_t
how_mended(uint8_t what)
{
	return what == AT_PACKET ? NFMETA_DROP
	       : what == AT_META ? NFMETA_META
				 : NFMETA_INJECTED | NFMETA_DROP;
}

/*
 * A byte of AT_* for each place where an mbuf can begin.  The primary's own; a dead NF
 * can neither forge nor forget it.  In a pool an mbuf lies behind its header of 64 bytes and
 * has 128 at least, so no two are in one place, whatever pools come and go.
 */
#define PLACE_SHIFT 7
struct map {
	uint8_t *at;
	uintptr_t base; /* address of the first place */
	uint64_t places;
};

static inline uint64_t
place_of(const struct map *map, const void *m)
{
	return ((uintptr_t)m - map->base) >> PLACE_SHIFT;
}

/* All rings of a queue; NULL: the link has none of this kind. */
struct rings {
	struct rte_ring *down, *up, *blank, *flow_down, *flow_up;
};

/* What an NF that was cut off may still write to, until its process has ended. */
struct fenced {
	struct fenced *next;
	struct rings rings;
	struct map map; /* what it had */
	uint32_t place;
	int lease;
};

/* The primary's side of a queue.  Counters are what the shared ones mirror. */
struct upfront {
	struct rte_ring *down;
	struct rte_ring *up;
	struct rte_ring *blank;
	struct nfmeta_shared_queue *shared;
	uint64_t sent;
	uint64_t back;	     /* of the sent: out of the up ring; collected or in the stash */
	uint32_t limit;	     /* packets admitted; 0 when closed */
	uint32_t restock_at; /* missing blanks that are worth an allocation */
	uint64_t collected;
	uint64_t stocked;
	uint64_t unstocked;
	uint64_t refused;
	struct rte_mbuf **stash; /* NFMETA_FULL_WAIT: taken from the up ring while waiting */
	uint32_t stash_head;
	uint32_t stash_tail;
	int lease;
	struct map map;
	bool reclaiming;	/* the NF died: its lease is ours, what it had is in dead[] */
	struct rte_mbuf **dead; /* oldest first */
	uint32_t dead_at, dead_hands, dead_all; /* next; first those from its hands */
	uint64_t reclaimed;
	uint64_t orphans;
	uint64_t foreign;
	uint32_t place;	       /* number of *shared */
	uint64_t cut_off;      /* packets that they had */
	struct fenced *fenced; /* those whose process has not ended */
	bool behind;	       /* in-band messages wait, which go before the packets to come */
	struct feed *feed;     /* NULL: no flow state */
	uint64_t meta_sent;
	uint64_t meta_collected;
} __rte_cache_aligned;

/* The NF's side of its queue. */
struct nf {
	struct rte_ring *down;
	struct rte_ring *up;
	struct rte_ring *blank;
	struct nfmeta_shared_queue *shared;
	uint64_t received;
	uint64_t returned;
	uint64_t blanks;
	uint64_t injected;
	struct sync *sync; /* NULL: no flow state */
	uint64_t meta_received;
	uint64_t meta_returned;
} __rte_cache_aligned;

struct nfmeta_link {
	struct nf nf; /* all 0 in the primary's handle */
	struct nfmeta_field field;
	struct nfmeta_shared_link *shared;
	uint64_t wait_cycles;
	struct rte_mempool *pool;
	uint32_t blanks;
	uint32_t ring_size;
	uint32_t stash_size;
	uint16_t served; /* queues in q[]: those of the link, or 0 in an NF's handle */
	uint16_t queues; /* of the link */
	uint16_t queue;	 /* NF: its own */
	uint8_t gone;	 /* NF: the primary was seen dead */
	uint8_t carrier; /* NFMETA_CARRIER_*; 0 */
	int lease;	 /* NF */
	uint32_t instance;
	const struct rte_memzone *zone;
	struct nfmeta_table *table; /* NULL: none */
	rte_spinlock_t slow;	    /* cutting off, and looking after those that were */
	struct rings *spare;	    /* a stack: for queues whose NF is cut off */
	uint32_t spares;
	uint32_t *free_place; /* a stack: structs of queues in *shared */
	uint32_t free_places;
	struct upfront q[];
};

static inline void
put(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

static inline uint64_t
get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* ---- reclaim.c for link.c --------------------------------------------------- */

/* Makes the map of a queue, or makes it anew for pools that came later; false: no memory. */
bool nfmeta__map_make(struct upfront *q);
/* "missing": frees also what the map still says is at the NF; returns how many. */
uint64_t nfmeta__map_free(struct map *map, bool missing);
/* NFs that were cut off and have ended: what they had is free.  True: none is left. */
bool nfmeta__fenced_sweep(struct nfmeta_link *link, uint32_t queue);

/* ---- link.c for reclaim.c --------------------------------------------------- */

/* The NF's lease becomes the primary's; 0: it has it, nobody can attach. */
int nfmeta__lease_seize(struct upfront *q);
void nfmeta__lease_leave(struct upfront *q);
/* Makes a lease file anew; who holds the old one is out.  "hold": nobody comes in yet. */
int nfmeta__lease_create(const char *name, uint32_t queue, bool hold);
bool nfmeta__lease_held(int lease);
/* Rings of a queue, all or none. */
int nfmeta__rings_make(const struct nfmeta_link *link, uint32_t number, struct rings *r);
void nfmeta__rings_free(struct rings *r);
/* q->shared has no names yet. */
void nfmeta__rings_use(struct upfront *q, const struct rings *r);
struct nfmeta_shared_queue *nfmeta__place(const struct nfmeta_link *link, uint32_t place);

/* ---- link.c for flow.c ----------------------------------------------------- */

/* A meta packet down; false: no room. */
bool nfmeta__meta_send(struct nfmeta_link *link, struct upfront *q, struct rte_mbuf *m);
/* NF: a meta packet that came down goes back. */
void nfmeta__meta_return(struct nf *nf, struct rte_mbuf *m);
/* NF: a blank that was made a message goes up. */
void nfmeta__meta_reply(struct nf *nf, struct rte_mbuf *m);
/* The counters of a queue that count now. */
const struct nfmeta_shared_queue *nfmeta__current_queue(const struct nfmeta_link *link,
							uint32_t queue);
/* Primary: the caller has read a message that came up with the packets. */
void nfmeta__meta_done(struct upfront *q, struct rte_mbuf *m);
/* 0, or -EINVAL and the sentence: not this side's handle, no such queue. */
int nfmeta__not_nf(const struct nfmeta_link *link);
int nfmeta__not_primary(const struct nfmeta_link *link, uint32_t queue);

/* ---- flow.c for link.c ------------------------------------------------------- */

/* 0, or -ENOMEM: memory of one side of one queue; the rings are link.c's. */
int nfmeta__feed_make(struct nfmeta_link *link, struct upfront *q, uint32_t backlog);
/* Frees also the blanks that were not read. */
void nfmeta__feed_free(struct upfront *q);
int nfmeta__sync_make(struct nfmeta_link *link);
/* The NF died: what waits for it is void, the next one begins anew. */
void nfmeta__feed_reset(struct upfront *q);
/* Unsubscribes, gives back what is held. */
void nfmeta__sync_leave(struct nfmeta_link *link);
void nfmeta__sync_free(struct nfmeta_link *link);
/* Backlog to the way down, as far as there is room. */
void nfmeta__flow_flush(struct nfmeta_link *link, struct upfront *q);
/* NFMETA_CARRIER_RING: how many of n packets may be received before the next message. */
uint16_t nfmeta__flow_gate(struct nf *nf, uint16_t n);
/* NFMETA_CARRIER_INBAND: receive up to the next message. */
uint16_t nfmeta__flow_recv(struct nf *nf, struct rte_mbuf **pkts, uint16_t n, unsigned int *left);

#endif
