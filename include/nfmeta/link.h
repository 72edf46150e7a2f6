/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_LINK_H
#define NFMETA_LINK_H

/*
 * link.h - hand packets to another process and get every one back.
 *
 * The upfront NF (DPDK primary) creates a link; it has 1 to 64 queues.  An NF
 * (DPDK secondary, or another thread of the same process) attaches to one
 * queue.  Per queue there are three single-producer, single-consumer rings:
 *
 *     upfront NF                                   NF
 *     nfmeta_send_burst     ── down ──▶  nfmeta_recv_burst
 *     nfmeta_collect_burst  ◀── up ────  nfmeta_return_burst
 *     (stocks by itself)    ── blank ─▶  nfmeta_blank_burst
 *
 * Ownership: the NF never allocates and never frees a packet.  What it receives
 * it returns, with a disposition; blanks it takes it returns too, filled or
 * not.  The upfront NF admits at most ring_size packets to a queue, rings and
 * hands together, so the up ring always has room and returning never fails.
 *
 * Threads: for each queue, one thread of the primary sends and collects, one
 * thread of the NF receives, returns and takes blanks.  Different queues are
 * independent.  An NF that forks passes its sign of life on: let the child close
 * its files or exec.  Create, close and destroy: one thread, no other one in a call
 * on that link.  Stats, peer and check: any thread.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include <nfmeta/abi.h>
#include <nfmeta/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nfmeta_link;  /* process-local */
struct nfmeta_table; /* table.h */

/** Options of nfmeta_link_create(); zero means "default" everywhere. */
struct nfmeta_link_opts {
	uint32_t sz;	    /**< sizeof(struct nfmeta_link_opts) */
	uint32_t ring_size; /**< packets at the NF per queue; power of 2, 64..65536; 1024 */
	uint16_t queues;    /**< 1..64; 1 */
	uint8_t when_full;  /**< NFMETA_FULL_*; DROP */
	uint8_t carrier;    /**< NFMETA_CARRIER_* of flow state (flow.h); 0: none.  INBAND wants
				 blanks, and a pool with mbufs of NFMETA_FLOW_MESSAGE_BYTES, headroom
				 counted (RTE_MBUF_DEFAULT_BUF_SIZE is enough) */
	uint32_t wait_us;   /**< NFMETA_FULL_WAIT: longest wait of one call, µs; 1000 */
	uint32_t blanks;    /**< blanks kept stocked per queue, at most 1024; 0: no injection */
	struct rte_mempool *pool;	  /**< where blanks come from; NULL only with blanks 0 */
	const struct nfmeta_field *field; /**< NULL: nfmeta_field_register(NULL, ...) */
	uint32_t flow_ring;    /**< 8-byte words a flow ring holds, 512..1048576; 8191.  A message
				    takes 5 and its entries; one that does not fit goes to the backlog */
	uint32_t flow_backlog; /**< words that wait per queue when a way down is full, up to
				    16777216; 65536; NFMETA_NO_BACKLOG: none */
	struct nfmeta_table *table; /**< shared flow table (table.h); NULL: none */
	uint32_t spares; /**< sets of rings kept for queues whose NF is cut off, up to 64; 1 */
	uint32_t reserved;
};
#define NFMETA_NO_BACKLOG UINT32_MAX
#define NFMETA_LINK_OPTS(...)                                                                      \
	{                                                                                          \
		.sz = sizeof(struct nfmeta_link_opts), __VA_ARGS__                                 \
	}

/** Counters of one queue since the link was made. */
struct nfmeta_link_stats {
	uint32_t sz;	    /**< set to sizeof(struct nfmeta_link_stats) before the call */
	uint32_t epoch;	    /**< NFs that attached so far */
	uint64_t sent;	    /**< packets accepted by nfmeta_send_burst */
	uint64_t refused;   /**< packets it did not accept, each time they were tried */
	uint64_t received;  /**< of the sent: taken by an NF */
	uint64_t returned;  /**< of the received: given back */
	uint64_t collected; /**< of the returned: taken by nfmeta_collect_burst */
	uint64_t blanks;    /**< blanks taken by an NF; in-band, its messages are among them */
	uint64_t injected;  /**< of the blanks: given back, filled or not */
	uint64_t down;	    /**< packets in the down ring now */
	uint64_t held;	    /**< packets in the NF's hands now (received - returned) */
	uint64_t up;	    /**< given back, not yet collected, injected ones too */
	uint64_t metas;	    /**< meta packets anywhere on the link; in none of the others */
	/* counted by the primary; 0 in an NF's handle */
	uint64_t reclaimed; /**< of the collected: taken back from NFs that died */
	uint64_t orphans;   /**< of the reclaimed: were in the hands of such an NF */
	uint64_t foreign;   /**< came back, but were not at the NF: thrown away */
	uint64_t fenced;    /**< of the collected: were at NFs that were cut off */
	/** Moved by the NF's nfmeta_recv_burst() and nfmeta_link_check(); in an NF's handle: by the
	    primary's nfmeta_link_peer().  Begins anew with every set of rings. */
	uint64_t heartbeat;
};

/** nfmeta_link_peer(): what serves a queue. */
#define NFMETA_PEER_NONE 0
#define NFMETA_PEER_ALIVE 1
#define NFMETA_PEER_DEAD 2 /* it died without detaching: nfmeta_link_reclaim() */

/** Bits that nfmeta_link_reclaim() adds to a disposition. */
#define NFMETA_RECLAIMED 8 /* the NF died before it gave this packet back */
#define NFMETA_ORPHAN 16   /* with it: was in the NF's hands, which may have changed it */

/* ---- Upfront NF: primary process ------------------------------------------ */

/**
 * Make a link and publish it.
 *
 * @param name  1 to 15 of letters, digits, '_', '-', '.'; unique under the file prefix
 * @param opts  NULL: all defaults
 * @param link  set on success
 * @return 0, or
 *   -EINVAL            name or an option is not allowed
 *   -EEXIST            a link, memzone or ring of this name exists
 *   -ENOMEM            too little hugepage memory; the sentence says how much was wanted
 *   -NFMETA_EROLE      called in a secondary, or before rte_eal_init
 *   -EACCES, ...       a lease file cannot be made in DPDK's runtime directory
 *   and what nfmeta_field_register() returns, if opts->field is NULL
 *
 * After any error nothing is left behind.
 *
 * One thread, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_create(const char *name, const struct nfmeta_link_opts *opts,
				  struct nfmeta_link **link);

/**
 * Hand packets to the NF of a queue.
 *
 * A packet can be at a queue once at a time, whatever its refcnt: to send it twice, clone
 * it.  (That is not checked: of one that is there twice, the second to come back would be
 * taken for foreign, and its reference be lost.)
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @param pkts   n packets
 * @param n      how many
 * @return k <= n: pkts[0..k-1] are the link's now, pkts[k..n-1] are still yours.
 *         Short when ring_size packets are at the NF already (rings and hands).
 *         NFMETA_FULL_WAIT first waits up to wait_us for an attached NF to
 *         return some; the call sets them aside for nfmeta_collect_burst, which
 *         has to follow before ring_size of them have gathered, or waiting is
 *         in vain.  What to do with the rest is the link's policy: drop (DROP,
 *         WAIT) or forward uninspected (BYPASS).  0 after nfmeta_link_close().
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API uint16_t nfmeta_send_burst(struct nfmeta_link *link, uint16_t queue,
				      struct rte_mbuf *const *pkts, uint16_t n);

/**
 * Take back packets that the NF of a queue returned; they are yours then.
 * Also keeps the queue's blanks stocked.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @param pkts   n packets, out
 * @param how    n dispositions, out: NFMETA_FORWARD, NFMETA_DROP or NFMETA_BACKWARD;
 *               with NFMETA_INJECTED the packet was made by the NF (DROP: a blank
 *               that came back unused: free it)
 * @param n      room in pkts and how
 * @return packets taken
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API uint16_t nfmeta_collect_burst(struct nfmeta_link *link, uint16_t queue,
					 struct rte_mbuf **pkts, uint8_t *how, uint16_t n);

/**
 * Packets that were sent to a queue and not yet collected (no system call, no
 * shared read: for loops).  Blanks are not counted.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @return how many
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API uint32_t nfmeta_link_in_flight(const struct nfmeta_link *link, uint16_t queue);

/**
 * What serves a queue.  Costs a system call: ask once a second, not per burst.
 * Also moves the primary's heartbeat.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @return NFMETA_PEER_*, or -EINVAL
 *
 * Any thread, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_peer(struct nfmeta_link *link, uint16_t queue);

/**
 * Take back what an NF that died had: when nfmeta_link_peer() says
 * NFMETA_PEER_DEAD, call it until it returns 0; then the queue is free for the
 * next NF, at the next epoch.  Exact: the link knows which packets are at the NF.
 * They come in the order sent: what the NF had given back, what was in its
 * hands, what it had not received.  (Of those in its hands, the ones older than
 * what the ring remembers come first, in no order.)  Blanks and messages go
 * back to the pool by themselves; messages that the NF was to get are void, the
 * next one asks for a snapshot.
 *
 * @param link   of nfmeta_link_create()
 * @param queue  0 to queues - 1
 * @param pkts   n packets, out
 * @param how    n dispositions, out: what the NF said, or, with NFMETA_RECLAIMED,
 *               the link's policy: NFMETA_FORWARD (FULL_BYPASS: uninspected) or
 *               NFMETA_DROP (DROP, WAIT); with NFMETA_ORPHAN where the NF may have
 *               changed the packet
 * @param n      room in pkts and how
 * @return packets taken, they are yours then; 0: nothing is left (or nobody died); or
 *   -EINVAL  no such queue, no room for packets
 *   -EBUSY   an NF is alive there
 *   -ENOMEM  nothing is lost, call again
 *
 * Looks at every mbuf of the process once: not for each burst.
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_reclaim(struct nfmeta_link *link, uint16_t queue, struct rte_mbuf **pkts,
				   uint8_t *how, uint16_t n);

/**
 * Cut off an NF that stands still: its process lives (nfmeta_link_peer() says
 * NFMETA_PEER_ALIVE), but nfmeta_link_stats.heartbeat has not moved for longer than
 * you can accept.  The queue gets new rings, and is free for the next NF at once.
 * The old rings, and every packet and blank that was on them or in the NF's hands,
 * are left alone until its process has ended (go on calling nfmeta_link_peer()): if it
 * wakes up it can harm nobody, and its nfmeta_link_check() says -NFMETA_EFENCED.
 * Until then so many mbufs, and the memory of a queue, are missing.
 *
 * @param link     of nfmeta_link_create()
 * @param queue    0 to queues - 1
 * @param packets  if not NULL: how many packets were at the NF; they are gone: count
 *                 them as dropped.  (What it had returned is among them: collect first.)
 * @return 0, or
 *   -EINVAL  no such queue; nobody is there; it died: nfmeta_link_reclaim()
 *   -EBUSY   no other process can be at this link (the primary shares no files)
 *   -ENOMEM  no memory
 *   -EAGAIN  no spare rings (nfmeta_link_opts.spares): not before an NF that was cut off
 *            has ended.  (They are made with the link: for more hugepage memory DPDK
 *            asks all secondaries, and one that stands still does not answer.)
 *
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_fence(struct nfmeta_link *link, uint16_t queue, uint64_t *packets);

/**
 * Stop sending and tell the NFs (their nfmeta_link_check() says
 * -NFMETA_ECLOSING): they receive until nothing comes, return all, and detach.
 * Go on collecting until nfmeta_link_in_flight() is 0 on every queue or your
 * patience ends, then destroy.
 *
 * @param link  of nfmeta_link_create()
 *
 * One thread, primary, no other one in a call on the link.  Since 0.1.
 */
NFMETA_API void nfmeta_link_close(struct nfmeta_link *link);

/**
 * Take the link down.  Frees the packets and blanks that are still in its
 * rings (how many: nfmeta_link_stats() before, down and up), and those that a
 * dead NF had in its hands.
 *
 * @param link     of nfmeta_link_create(); void afterwards
 * @param orphans  if not NULL: packets and blanks that were in a dead NF's hands;
 *                 those freed from the rings are not among them
 *
 * DPDK asks all secondaries when memory is given back, and waits up to 5 s for
 * one that was killed a moment ago: not for a thread that still moves packets.
 *
 * @return 0, or -EBUSY: an NF that is alive is still attached, or was cut off and
 *         its process has not ended (nothing was done)
 *
 * One thread, primary, no other one in a call on the link.  Since 0.1.
 */
NFMETA_API int nfmeta_link_destroy(struct nfmeta_link *link, uint64_t *orphans);

/* ---- NF: secondary process, or another thread of the primary -------------- */

/**
 * Attach to one queue of a link.  Only looks up, never creates anything.
 *
 * @param name        of the link
 * @param queue       0 to queues - 1
 * @param timeout_ms  how long to wait for the link to appear; 0: only look once
 * @param link        set on success
 * @return 0, or
 *   -EINVAL               name or queue is not possible
 *   -NFMETA_ENOLINK       no such link within timeout_ms
 *   -NFMETA_EPRIMARYDEAD  the primary is dead, its files are still there
 *   -NFMETA_EFORMAT, -NFMETA_EABI, -NFMETA_EFEATURE, -NFMETA_EDPDKVERSION,
 *   -NFMETA_EMBUF, -NFMETA_EPOOLOPS   the two sides do not fit; see the sentence
 *   -NFMETA_EQUEUETAKEN   a live NF serves this queue
 *   -NFMETA_EDEADNF       an NF died on this queue, and the primary did not reclaim what it
 *                         had within timeout_ms
 *   -NFMETA_ECLOSING      the primary is closing the link
 *   -NFMETA_EROLE         called before rte_eal_init or nfmeta_eal_attach
 *   -ENOMEM
 *
 * Any thread of a secondary, or of the primary as an NF in it.  Since 0.1.
 */
NFMETA_API int nfmeta_link_attach(const char *name, uint16_t queue, uint32_t timeout_ms,
				  struct nfmeta_link **link);

/**
 * Receive packets; they are yours to read and change until you return them.
 *
 * @param link  of nfmeta_link_attach()
 * @param pkts  n packets, out
 * @param recs  n records, out: copies, size 0 where there is none; NULL: not
 *              wanted (then nfmeta_record_peek() reads them in place)
 * @param n     room in pkts and recs
 * @return packets received, 0 when there are none now
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API uint16_t nfmeta_recv_burst(struct nfmeta_link *link, struct rte_mbuf **pkts,
				      struct nfmeta_record *recs, uint16_t n);

/**
 * Give packets back, each with what is to happen to it.  Any order; for the
 * per-flow order of forwarded packets, keep the order received.
 *
 * @param link  of nfmeta_link_attach()
 * @param pkts  n packets or blanks; not yours afterwards
 * @param how   n dispositions; add NFMETA_INJECTED for blanks; NULL: all NFMETA_FORWARD
 * @param n     how many
 * @return n.  Less only if you return more than you hold: the rest was not taken
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API uint16_t nfmeta_return_burst(struct nfmeta_link *link, struct rte_mbuf *const *pkts,
					const uint8_t *how, uint16_t n);

/**
 * Take blanks: empty one-segment mbufs with the usual headroom, to fill
 * (rte_pktmbuf_append) and to return with NFMETA_INJECTED | NFMETA_FORWARD or
 * | NFMETA_BACKWARD, or with NFMETA_INJECTED | NFMETA_DROP if not needed.
 *
 * @param link  of nfmeta_link_attach()
 * @param pkts  n blanks, out
 * @param n     how many are wanted
 * @return blanks taken; 0: none in stock now
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API uint16_t nfmeta_blank_burst(struct nfmeta_link *link, struct rte_mbuf **pkts,
				       uint16_t n);

/**
 * Ask whether the link still stands.  Costs a system call: ask once a second
 * and when idle, not per burst.  Also moves the NF's heartbeat.
 *
 * @param link  of nfmeta_link_attach()
 * @return 0; -NFMETA_ECLOSING: nothing new is sent: receive until nothing comes,
 *         return all, detach;
 *         -NFMETA_EPRIMARYGONE: the primary died: do not touch packets any
 *         more, end the process (DPDK cannot attach again inside one process);
 *         -NFMETA_EFENCED: this NF stood still, and another one may have its queue:
 *         do not touch packets any more, detach
 *
 * Any thread of the NF.  Since 0.1.
 */
NFMETA_API int nfmeta_link_check(struct nfmeta_link *link);

/**
 * Leave the queue.  Another NF may attach to it then.
 *
 * @param link  of nfmeta_link_attach(); void afterwards, if it succeeds
 * @return 0, or -EBUSY: you still hold packets or blanks (nothing was done).
 *         After the primary died, or cut this NF off, it always succeeds.
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API int nfmeta_link_detach(struct nfmeta_link *link);

/* ---- Both ------------------------------------------------------------------ */

/**
 * Where the records of this link's packets are.
 *
 * @param link  of either side
 * @return the field; lives as long as the link
 *
 * Any thread, either side.  Since 0.1.
 */
NFMETA_API const struct nfmeta_field *nfmeta_link_field(const struct nfmeta_link *link);

/**
 * The link as it was published: queues, ring_size, versions.
 *
 * @param link  of either side
 * @return the handshake in shared memory: read only.  Lives as long as the link
 *
 * Any thread, either side.  Since 0.1.
 */
NFMETA_API const struct nfmeta_shared_link *nfmeta_link_shared(const struct nfmeta_link *link);

/**
 * Counters of a queue.  Exact when both sides rest; while they run, each
 * counter is exact for some moment during the call (in-band, where meta packets are taken
 * off them: nearly, and may be a little less than before).
 *
 * @param link   of either side
 * @param queue  0 to queues - 1
 * @param stats  stats->sz set by the caller
 * @return 0, or -EINVAL
 *
 * Any thread, either side.  Since 0.1.
 */
NFMETA_API int nfmeta_link_stats(const struct nfmeta_link *link, uint16_t queue,
				 struct nfmeta_link_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
