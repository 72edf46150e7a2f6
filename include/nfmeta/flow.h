/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_FLOW_H
#define NFMETA_FLOW_H

/*
 * flow.h - the upfront NF owns the flows, its NFs are told.
 *
 * An NF that subscribes runs no time-outs of its own.  It is told which flows
 * began, changed and ended, in order with the packets of its queue, and says what
 * is to happen with a flow (shunt, drop).  Per queue of a link:
 *
 *     upfront NF                                          NF
 *     nfmeta_flow_send      ── NEW, UPDATE, DELETE … ──▶  nfmeta_flow_next
 *     nfmeta_flow_snapshot  ── SNAPSHOT ─────────────▶
 *     nfmeta_flow_collect   ◀── VERDICT, LOAD ────────    nfmeta_flow_reply
 *                           ◀── RESYNC, ACK ──────────    (by the library itself)
 *
 * Order.  Packets and messages of a queue have one order, the upfront NF's:
 * nfmeta_recv_burst() stops where a message is next, nfmeta_flow_next() holds a
 * message back until the packets before it were received.  So a delete never
 * overtakes a packet of its flow, whichever carrier the link has.  (Packets may
 * overtake a message that waits in the backlog; snapshots and RESET never wait there.)  An NF that
 * subscribes therefore calls nfmeta_flow_next() until it says 0, after every
 * nfmeta_recv_burst(), also after one that gave nothing.
 *
 * Names.  Flow id and generation together name a flow; an id is used again
 * with the next generation (see nfmeta_flow_newer()).  A message about an older
 * generation than the one that is known changes nothing; what a snapshot tells holds,
 * whatever was known before it.
 *
 * Loss.  A message that an NF has no room for waits in the link's backlog.  When
 * that is full, too, nfmeta_flow_send() says -EAGAIN: the message is given up
 * and the NF has to be told the whole state: it notices (its next message has a
 * sequence number too high, and if there is no next one the library sends
 * one), asks (RESYNC), and gets a SNAPSHOT, while packets go on.  Nobody else is
 * held up.  The same way an NF that has just attached learns what there is.
 *
 *     the NF's side (the library)          the upfront NF's side, per queue
 *     NFMETA_SYNC_LOST     asks, waits     NFMETA_FEED_IDLE      nobody subscribed, or not told yet
 *     NFMETA_SYNC_LOADING  in a snapshot   NFMETA_FEED_SNAPSHOT  FIRST is out, LAST is not
 *     NFMETA_SYNC_SYNCED   up to date      NFMETA_FEED_STREAM    goes on
 *                                          NFMETA_FEED_GAP       a message was given up
 *
 * The functions with a body are symbols of the library, too, for languages that cannot
 * inline.
 *
 * Threads: down and up messages of a queue belong to the threads that its
 * packets belong to (link.h).
 */

#include <stdint.h>

#include <nfmeta/abi.h>
#include <nfmeta/error.h>
#include <nfmeta/link.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NFMETA_INLINE
#define NFMETA_INLINE static inline
#endif

#define NFMETA_FEED_IDLE 0
#define NFMETA_FEED_SNAPSHOT 1
#define NFMETA_FEED_STREAM 2
#define NFMETA_FEED_GAP 3

#define NFMETA_SYNC_OFF 0 /* not subscribed */
#define NFMETA_SYNC_LOST 1
#define NFMETA_SYNC_LOADING 2
#define NFMETA_SYNC_SYNCED 3

/** Bit of a message type for nfmeta_flow_subscribe(). */
#define NFMETA_TYPE(type) (UINT64_C(1) << ((type)&63))

/** Most entries of a type that fit into one message. */
#define NFMETA_FLOW_MAX(type_of_entry) (NFMETA_FLOW_BYTES / sizeof(type_of_entry))

/** Counters of one queue since the link was made. */
struct nfmeta_flow_stats {
	uint32_t sz;	    /**< set to sizeof(struct nfmeta_flow_stats) before the call */
	uint32_t state;	    /**< primary: NFMETA_FEED_*; NF: NFMETA_SYNC_* */
	uint64_t sent;	    /**< down messages so far, given up ones too: the last one's seq */
	uint64_t lost;	    /**< of the sent: given up */
	uint64_t seen;	    /**< seq of the last down message the NF took in order */
	uint64_t acked;	    /**< primary: seq up to which an NF said it has done all; NF: 0 */
	uint64_t replies;   /**< up messages so far */
	uint64_t collected; /**< of the replies: taken by nfmeta_flow_collect, stale ones too */
	uint64_t gaps;	    /**< this side: times it came to FEED_GAP, or SYNC_LOST by a gap */
	uint64_t stale;	    /**< this side: messages of another epoch or instance, left unread */
	uint64_t refused;   /**< this side: messages that were malformed or not known */
	uint32_t backlog;   /**< primary: messages that wait for room; NF: 0 */
	uint32_t reserved;
};

/* ---- Upfront NF: primary process ------------------------------------------ */

/**
 * Tell the NF of a queue.  What nobody subscribed to is accepted and goes nowhere.
 * If the link has a shared table: NEW, UPDATE and DELETE are applied first to the
 * entries that are open there (nfmeta_table_set, nfmeta_table_close); to open one with its
 * tuple is yours, nfmeta_table_open(), before NEW.  A flow is told by one thread then.
 * The table runs ahead of the messages; RESET, and an action that there is not, leave it alone.
 *
 * @param link     of nfmeta_link_create()
 * @param queue    0 to queues - 1
 * @param type     NFMETA_MSG_NEW, _UPDATE, _DELETE, _COUNTERS, _RESET, _HEARTBEAT, or a
 *                 type of your own from NFMETA_MSG_OWN on
 * @param entries  n entries of the type's struct; own types: of 8 bytes
 * @param n        1 to NFMETA_FLOW_MAX(struct); RESET, HEARTBEAT: 0
 * @return 0: on its way, waiting in the backlog, or nobody wants it;
 *   -EAGAIN          given up: the NF is too slow; it will ask for a snapshot
 *   -EINVAL          no such queue, type, or number of entries
 *   -NFMETA_ENOFLOW  the link has no carrier for messages
 *
 * A HEARTBEAT makes the NF say how far it is: all is done when, in NFMETA_FEED_STREAM,
 * nfmeta_flow_stats.acked is as high as .sent.  It is not sent in FEED_GAP: repeat it.  A RESET for which
 * there is no room now is given up: the snapshot that follows says the same.
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_send(struct nfmeta_link *link, uint16_t queue, uint8_t type,
				const void *entries, uint16_t n);

/** One of the places that nfmeta_flow_broadcast() tells. */
struct nfmeta_flow_to {
	struct nfmeta_link *link;
	uint16_t queue;
	uint16_t reserved[3];
};

/**
 * nfmeta_flow_send() to several NFs.  Each has its own backlog: one that gives
 * up (or fails) does not keep the others from being told.
 *
 * @param to       n_to queues of links
 * @param n_to     how many
 * @param type     as for nfmeta_flow_send(), as the next two
 * @param entries  n entries
 * @param n        how many
 * @return 0, or what the first that did not accept returned
 *
 * The one sending thread of all these queues, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_broadcast(const struct nfmeta_flow_to *to, uint16_t n_to, uint8_t type,
				     const void *entries, uint16_t n);

/**
 * Take the next message of the NF of a queue.  Also moves the backlog on: call
 * it in every round of your loop, until it returns 0, after nfmeta_collect_burst().
 *
 * You get VERDICT, LOAD, ACK and types of your own as they are, RESYNC as
 * a request: tell the NF all flows of this queue with nfmeta_flow_snapshot(), the
 * first call with NFMETA_MSG_FIRST.  An older request that you did not begin to
 * answer is void then.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @param batch  set to the message: header, and entries behind it; valid until
 *               the next nfmeta_flow_collect() for this queue
 * @return 1: there is one; 0: none now;
 *   -EINVAL             no such queue
 *   -NFMETA_ENOFLOW     the link has no carrier
 *   -NFMETA_EMESSAGE    the NF sent what is not a message, or one of a type that must
 *                       be known and is not; it was taken off and counted
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_collect(struct nfmeta_link *link, uint16_t queue,
				   const struct nfmeta_flow_batch **batch);

/**
 * Answer a RESYNC: tell all flows of the queue, in as many calls as you like,
 * with other messages and packets in between.  A flow that ends after it was told
 * is deleted as usual; one that begins meanwhile may be told or not.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @param flows  n flows; NULL with n 0
 * @param n      0 to NFMETA_FLOW_MAX(struct nfmeta_flow_state)
 * @param flags  NFMETA_MSG_FIRST in the first call, NFMETA_MSG_LAST in the last; both may be one
 * @return 0: told;
 *   -EAGAIN        no room now: nothing was told; call again later, with the flows there are then:
 *                  one that has ended meanwhile must not be told
 *   -NFMETA_EGAP   a message was given up meanwhile, or nobody waits for this snapshot:
 *                  leave it; a RESYNC comes if one is needed
 *   -EINVAL, -NFMETA_ENOFLOW   as nfmeta_flow_send()
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_snapshot(struct nfmeta_link *link, uint16_t queue,
				    const struct nfmeta_flow_state *flows, uint16_t n,
				    uint8_t flags);

/* ---- NF: secondary process, or another thread of the primary -------------- */

/**
 * Say which messages this NF wants.  SNAPSHOT, RESET and HEARTBEAT come with any.
 * The NF gets a snapshot first, empty or not.
 *
 * @param link   of nfmeta_link_attach()
 * @param types  NFMETA_TYPE(NFMETA_MSG_NEW) | ...; 0: none any more
 * @return 0, or
 *   -EINVAL          not the handle of an NF, or a type that does not come down
 *   -NFMETA_ENOFLOW  the link has no carrier for messages down
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_subscribe(struct nfmeta_link *link, uint64_t types);

/**
 * Take the next message, if it is its turn (see "Order" above).
 *
 * You get NEW, UPDATE, DELETE, COUNTERS, SNAPSHOT, RESET and types of your own.  From a SNAPSHOT with
 * NFMETA_MSG_FIRST to the one with NFMETA_MSG_LAST: note which of your flows are
 * told by it (or by NEW, or by a packet meanwhile); at the end forget the others.
 * RESET: forget all.  If SNAPSHOT with FIRST comes again before LAST, begin anew.
 *
 * @param link   of nfmeta_link_attach()
 * @param batch  set to the message: header, and entries behind it; valid until
 *               the next nfmeta_flow_next().  Entries are batch->entry_size bytes apart, which may
 *               be more than your struct has: nfmeta_flow_entry()
 * @return 1: there is one; 0: none now, or not its turn;
 *   -EINVAL            not the handle of an NF
 *   -NFMETA_EMESSAGE   a message of a type that must be known and is not, or not
 *                      a message at all; it was taken off, and a snapshot is asked for.
 *                      An NF that cannot go without should end.
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_next(struct nfmeta_link *link, const struct nfmeta_flow_batch **batch);

/**
 * Tell the upfront NF.
 *
 * @param link     of nfmeta_link_attach()
 * @param type     NFMETA_MSG_VERDICT, NFMETA_MSG_LOAD, or a type of your own from
 *                 NFMETA_MSG_OWN on
 * @param entries  n entries of the type's struct; own types: of 8 bytes
 * @param n        1 to NFMETA_FLOW_MAX(struct)
 * @return 0: on its way;
 *   -EAGAIN          no room now (or, in-band, no blank): nothing was sent; try again later
 *   -EINVAL          not the handle of an NF, no such type or number
 *   -NFMETA_ENOFLOW  the link has no carrier for messages
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_reply(struct nfmeta_link *link, uint8_t type, const void *entries,
				 uint16_t n);

/* ---- Both ------------------------------------------------------------------ */

/**
 * Counters of a queue.  The primary's handle knows the primary's side, an NF's
 * handle the NF's; what only the other side knows comes from shared memory.
 *
 * @param link   of either side
 * @param queue  0 to queues - 1; an NF: its own
 * @param stats  stats->sz set by the caller
 * @return 0, or -EINVAL; -NFMETA_ENOFLOW: the link has no carrier
 *
 * The thread of the queue.  Since 0.1.
 */
NFMETA_API int nfmeta_flow_stats(const struct nfmeta_link *link, uint16_t queue,
				 struct nfmeta_flow_stats *stats);

/**
 * An entry of a message.
 *
 * @param batch  the message, as nfmeta_flow_next() or nfmeta_flow_collect() gave it
 * @param i      0 to batch->count - 1
 * @return entry i; cast it to the struct of the message's type.  Valid as long as batch
 *
 * The thread that has the message, any process.  Since 0.1.
 */
NFMETA_INLINE const void *
nfmeta_flow_entry(const struct nfmeta_flow_batch *batch, uint16_t i)
{
	return (const uint8_t *)(batch + 1) + (uint32_t)i * batch->entry_size;
}

/**
 * Compare generations.  They count up and wrap: compared as serial numbers (RFC 1982).
 *
 * @param a  one generation
 * @param b  another
 * @return 1: a is newer than b; 0: it is not
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_flow_newer(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) > 0;
}

/* ---- Verdicts: what an upfront NF does with them ---------------------------- */

/** What was decided for a flow and one NF; all 0: nothing. */
struct nfmeta_flow_decision {
	uint8_t action; /**< NFMETA_ACTION_* */
	uint8_t flags;	/**< NFMETA_VERDICT_STICKY */
	uint16_t who;	/**< who said so */
	uint32_t left;	/**< SHUNT: packets that still go to the NF */
	uint64_t until; /**< in the caller's unit of time; 0: as long as the flow lives */
};

/**
 * Put a verdict on top of what was decided.  A sticky decision that still holds is
 * replaced by a sticky verdict only, and a sticky DROP by one of the same who only.
 * A verdict that is none of FORWARD, DROP, INSPECT and SHUNT changes nothing.
 *
 * @param d       the decision; all 0 for a new flow
 * @param v       the verdict
 * @param now     the caller's clock
 * @param second  what a second is on it
 * @return 1: the decision is the verdict's now; 0: it stays as it was
 *
 * Any thread that owns the decision.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_flow_decide(struct nfmeta_flow_decision *d, const struct nfmeta_flow_verdict *v,
		   uint64_t now, uint64_t second)
{
	if (v->verdict == NFMETA_ACTION_NONE || v->verdict > NFMETA_ACTION_SHUNT)
		return 0;
	if ((d->flags & NFMETA_VERDICT_STICKY) != 0 && (d->until == 0 || now < d->until)) {
		if ((v->flags & NFMETA_VERDICT_STICKY) == 0)
			return 0;
		if (d->action == NFMETA_ACTION_DROP && d->who != v->who)
			return 0;
	}
	d->action = v->verdict;
	d->flags = v->flags;
	d->who = v->who;
	d->left = v->verdict == NFMETA_ACTION_SHUNT ? v->after : 0;
	d->until = v->ttl != 0 ? now + v->ttl * second : 0;
	return 1;
}

/**
 * What is to happen to the next packet of a flow; counts a SHUNT's packets down.
 *
 * @param d    the decision
 * @param now  the caller's clock, as for nfmeta_flow_decide()
 * @return NFMETA_ACTION_INSPECT (hand it to the NF), NFMETA_ACTION_DROP, or
 *         NFMETA_ACTION_SHUNT (let it pass by the NF; also for FORWARD)
 *
 * Any thread that owns the decision.  Since 0.1.
 */
NFMETA_INLINE uint8_t
nfmeta_flow_act(struct nfmeta_flow_decision *d, uint64_t now)
{
	if (d->action == NFMETA_ACTION_NONE || d->action == NFMETA_ACTION_INSPECT)
		return NFMETA_ACTION_INSPECT;
	if (d->until != 0 && now >= d->until) {
		d->action = NFMETA_ACTION_INSPECT;
		d->flags = 0;
		return NFMETA_ACTION_INSPECT;
	}
	if (d->action == NFMETA_ACTION_DROP)
		return NFMETA_ACTION_DROP;
	if (d->action == NFMETA_ACTION_SHUNT && d->left > 0) {
		d->left--;
		return NFMETA_ACTION_INSPECT;
	}
	return NFMETA_ACTION_SHUNT;
}

#ifdef __cplusplus
}
#endif
#endif
