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

struct nfmeta_link; /* process-local */

/** Options of nfmeta_link_create(); zero means "default" everywhere. */
struct nfmeta_link_opts {
	uint32_t sz;	    /**< sizeof(struct nfmeta_link_opts) */
	uint32_t ring_size; /**< packets at the NF per queue; power of 2, 64..65536; 1024 */
	uint16_t queues;    /**< 1..64; 1 */
	uint8_t when_full;  /**< NFMETA_FULL_*; DROP */
	uint8_t reserved;   /**< 0 */
	uint32_t wait_us;   /**< NFMETA_FULL_WAIT: longest wait of one call, µs; 1000 */
	uint32_t blanks;    /**< blanks kept stocked per queue, at most 1024; 0: no injection */
	struct rte_mempool *pool;	  /**< where blanks come from; NULL only with blanks 0 */
	const struct nfmeta_field *field; /**< NULL: nfmeta_field_register(NULL, ...) */
};
#define NFMETA_LINK_OPTS(...)                                                                      \
	{                                                                                          \
		.sz = sizeof(struct nfmeta_link_opts), __VA_ARGS__                                 \
	}

/** Counters of one queue since the link was made. */
struct nfmeta_link_stats {
	uint32_t sz;	    /**< set to sizeof(struct nfmeta_link_stats) before the call */
	uint32_t epoch;	    /**< NFs that attached so far */
	uint64_t sent;	    /**< packets accepted by nfmeta_send_burst */
	uint64_t refused;   /**< packets it did not accept */
	uint64_t received;  /**< of the sent: taken by an NF */
	uint64_t returned;  /**< of the received: given back */
	uint64_t collected; /**< of the returned: taken by nfmeta_collect_burst */
	uint64_t blanks;    /**< blanks taken by an NF */
	uint64_t injected;  /**< of the blanks: given back, filled or not */
	uint64_t down;	    /**< packets in the down ring now */
	uint64_t held;	    /**< packets in the NF's hands now (received - returned) */
	uint64_t up;	    /**< given back, not yet collected, injected ones too */
};

/** nfmeta_link_peer(): what serves a queue. */
#define NFMETA_PEER_NONE 0
#define NFMETA_PEER_ALIVE 1
#define NFMETA_PEER_DEAD 2 /* it died without detaching */

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
 * After any error nothing is left behind.  Since 0.1.
 */
NFMETA_API int nfmeta_link_create(const char *name, const struct nfmeta_link_opts *opts,
				  struct nfmeta_link **link);

/**
 * Hand packets to the NF of a queue.
 *
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
 * @param how  n dispositions, out: NFMETA_FORWARD, NFMETA_DROP or NFMETA_BACKWARD;
 *             with NFMETA_INJECTED the packet was made by the NF (DROP: a blank
 *             that came back unused: free it)
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
 * The one sending thread of the queue, primary.  Since 0.1.
 */
NFMETA_API uint32_t nfmeta_link_in_flight(const struct nfmeta_link *link, uint16_t queue);

/**
 * What serves a queue.  Costs a system call: ask once a second, not per burst.
 * Also moves the primary's heartbeat.
 *
 * @return NFMETA_PEER_*, or -EINVAL
 *
 * Primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_peer(struct nfmeta_link *link, uint16_t queue);

/**
 * Stop sending and tell the NFs (their nfmeta_link_check() says
 * -NFMETA_ECLOSING): they receive until nothing comes, return all, and detach.
 * Go on collecting until nfmeta_link_in_flight() is 0 on every queue or your
 * patience ends, then destroy.
 *
 * Primary.  Since 0.1.
 */
NFMETA_API void nfmeta_link_close(struct nfmeta_link *link);

/**
 * Take the link down.  Frees the packets and blanks that are still in its
 * rings (how many: nfmeta_link_stats() before, down and up); what a dead NF had
 * in its hands is lost to the pool.
 *
 * @param lost  if not NULL: packets and blanks that were in a dead NF's hands;
 *              those freed from the rings are not among them
 *
 * DPDK asks all secondaries when memory is given back, and waits up to 5 s for
 * one that was killed a moment ago: not for a thread that still moves packets.
 *
 * @return 0, or -EBUSY: an NF that is alive is still attached (nothing was done)
 *
 * Primary.  Since 0.1.
 */
NFMETA_API int nfmeta_link_destroy(struct nfmeta_link *link, uint64_t *lost);

/* ---- NF: secondary process, or another thread of the primary -------------- */

/**
 * Attach to one queue of a link.  Only looks up, never creates anything.
 *
 * @param timeout_ms  how long to wait for the link to appear; 0: only look once
 * @param link        set on success
 * @return 0, or
 *   -EINVAL               name or queue is not possible
 *   -NFMETA_ENOLINK       no such link within timeout_ms
 *   -NFMETA_EPRIMARYDEAD  the primary is dead, its files are still there
 *   -NFMETA_EFORMAT, -NFMETA_EABI, -NFMETA_EFEATURE, -NFMETA_EDPDKVERSION,
 *   -NFMETA_EMBUF, -NFMETA_EPOOLOPS   the two sides do not fit; see the sentence
 *   -NFMETA_EQUEUETAKEN   a live NF serves this queue
 *   -NFMETA_EDEADNF       an NF died on this queue; the primary has to make the link anew
 *   -NFMETA_ECLOSING      the primary is closing the link
 *   -NFMETA_EROLE         called before rte_eal_init or nfmeta_eal_attach
 *   -ENOMEM
 *
 * Since 0.1.
 */
NFMETA_API int nfmeta_link_attach(const char *name, uint16_t queue, uint32_t timeout_ms,
				  struct nfmeta_link **link);

/**
 * Receive packets; they are yours to read and change until you return them.
 *
 * @param recs  n records, out: copies, size 0 where there is none; NULL: not
 *              wanted (then nfmeta_record_peek() reads them in place)
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
 * @param how  n dispositions; add NFMETA_INJECTED for blanks; NULL: all NFMETA_FORWARD
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
 * @return 0; -NFMETA_ECLOSING: nothing new is sent: receive until nothing comes,
 *         return all, detach;
 *         -NFMETA_EPRIMARYGONE: the primary died: do not touch packets any
 *         more, end the process (DPDK cannot attach again inside one process)
 *
 * NF.  Since 0.1.
 */
NFMETA_API int nfmeta_link_check(struct nfmeta_link *link);

/**
 * Leave the queue.  Another NF may attach to it then.
 *
 * @return 0, or -EBUSY: you still hold packets or blanks (nothing was done).
 *         After the primary died it always succeeds.
 *
 * The one thread of this NF's queue.  Since 0.1.
 */
NFMETA_API int nfmeta_link_detach(struct nfmeta_link *link);

/* ---- Both ------------------------------------------------------------------ */

/** Where the records of this link's packets are.  Lives as long as the link.  Since 0.1. */
NFMETA_API const struct nfmeta_field *nfmeta_link_field(const struct nfmeta_link *link);

/** The link as it was published: queues, ring_size, versions.  Read only.  Since 0.1. */
NFMETA_API const struct nfmeta_shared_link *nfmeta_link_shared(const struct nfmeta_link *link);

/**
 * Counters of a queue.  Exact when both sides rest; while they run, each
 * counter is exact for some moment during the call.
 *
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
