/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TABLE_H
#define NFMETA_TABLE_H

/*
 * table.h - a flow table that the upfront NF writes and others only read.
 *
 * 64 bytes, one cache line, per flow; the flow id is the index.  An entry has the
 * tuple, state, application, action, and packets and bytes per direction.  Readers
 * never write, so they never block the writer, and never see half of an entry.
 *
 * The table is a carrier of flow state of its own (NFMETA_CARRIER_TABLE: nothing
 * is sent to the NF, which looks up what it wants to know), or comes beside
 * messages.  One table serves any number of links.
 *
 *     upfront NF                                NF
 *     nfmeta_table_open    a flow begins        nfmeta_table_lookup  the flow of a record
 *     nfmeta_table_count   per packet           nfmeta_table_read    an entry, to list all
 *     nfmeta_table_set     something is known
 *     nfmeta_table_close   the flow ended
 *
 * An entry has the addresses, protocol and ports of the flow key and no more: two
 * flows that differ only in VLAN or tenant look alike here, and so do all that are
 * not IP.  Flow id and generation tell them apart.
 *
 * A counter is full after 268435455 packets or 64 GiB and stays there.  The
 * upfront NF that needs more keeps its own.
 *
 * Threads: each entry is written by one thread of the primary at a time (the one
 * that owns the flow); anybody reads at any time.  nfmeta_flow_send() on a link with
 * a table writes the entries of the flows it tells of: the same thread.
 *
 * A look-up in a large table is a cache miss: prefetch the entries of a burst
 * (rte_prefetch0(&flows[id])).
 *
 * What is called per packet is inline; the same functions are symbols of the
 * library, for languages that cannot inline.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rte_pause.h>

#include <nfmeta/abi.h>
#include <nfmeta/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NFMETA_INLINE
#define NFMETA_INLINE static inline
#endif

struct nfmeta_link;
struct nfmeta_table; /* process-local */

#define NFMETA_TABLE_FLOWS_MAX (UINT32_C(1) << 26)

/* ---- Make and find ---------------------------------------------------------- */

/**
 * Make a table.  Give it to links by nfmeta_link_opts.table.
 *
 * @param name   1 to 15 of letters, digits, '_', '-', '.'; unique under the file prefix
 * @param flows  entries: flow ids 0 to flows - 1; at most NFMETA_TABLE_FLOWS_MAX.  Takes
 *               64 bytes of hugepage memory each, in one piece
 * @param table  set on success; yours until nfmeta_table_destroy()
 * @return 0, or
 *   -EINVAL        name or number is not possible
 *   -EEXIST        a table or memzone of this name exists
 *   -ENOMEM        too little hugepage memory in one piece; the sentence says how much
 *   -NFMETA_EROLE  called in a secondary, or before rte_eal_init
 *
 * One thread, primary.  Since 0.1.
 */
NFMETA_API int nfmeta_table_create(const char *name, uint32_t flows, struct nfmeta_table **table);

/**
 * Give the memory back.  Not before the links that name the table are destroyed.
 * NULL, or the table of an NF's link: does nothing.
 *
 * @param table  of nfmeta_table_create(); void afterwards
 *
 * One thread, primary, nobody else in the table.  Since 0.1.
 */
NFMETA_API void nfmeta_table_destroy(struct nfmeta_table *table);

/**
 * The entries.  Ask once, not per packet.
 *
 * @param table  of nfmeta_table_create() or nfmeta_link_table()
 * @param flows  if not NULL: set to how many there are
 * @return entry 0; an NF must not write.  NULL (and 0 flows) if table is NULL
 *
 * Any thread, either side.  Since 0.1.
 */
NFMETA_API struct nfmeta_table_flow *nfmeta_table_flows(const struct nfmeta_table *table,
							uint32_t *flows);

/**
 * The table of a link, for reading.  Lives as long as the link.
 *
 * @param link  of either side
 * @return NULL if the link has none
 *
 * Either side.  Since 0.1.
 */
NFMETA_API const struct nfmeta_table *nfmeta_link_table(const struct nfmeta_link *link);

/* ---- Private to this header --------------------------------------------------- */

#define NFMETA__TABLE_TRIES 64 /* with pauses: far longer than a writer that runs takes */

/*
 * Words of an entry; a place is always accessed in the same size.  4-byte words:
 * 0 seq, 1 generation, state and protocol.  8-byte words: 1 application and ports, 2
 * to 5 addresses, 6 and 7 counters.
 */
typedef uint32_t __attribute__((__may_alias__)) nfmeta__table_u32;
typedef uint64_t __attribute__((__may_alias__)) nfmeta__table_u64;

static inline uint32_t
nfmeta__table_get32(const struct nfmeta_table_flow *f, unsigned int i)
{
	return __atomic_load_n((const nfmeta__table_u32 *)(const void *)f + i, __ATOMIC_RELAXED);
}

static inline void
nfmeta__table_put32(struct nfmeta_table_flow *f, unsigned int i, uint32_t w)
{
	__atomic_store_n((nfmeta__table_u32 *)(void *)f + i, w, __ATOMIC_RELAXED);
}

static inline uint64_t
nfmeta__table_get64(const struct nfmeta_table_flow *f, unsigned int i)
{
	return __atomic_load_n((const nfmeta__table_u64 *)(const void *)f + i, __ATOMIC_RELAXED);
}

static inline void
nfmeta__table_put64(struct nfmeta_table_flow *f, unsigned int i, uint64_t w)
{
	__atomic_store_n((nfmeta__table_u64 *)(void *)f + i, w, __ATOMIC_RELAXED);
}

static inline uint32_t
nfmeta__table_word(uint16_t generation, uint8_t state, uint8_t proto)
{
	return (uint32_t)proto << 24 | (uint32_t)state << 16 | generation;
}

/* ThreadSanitizer does not know fences.  It need not: all that is shared is atomic. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* A seq left odd by a writer that did not come to its end stays odd, then ends even. */
static inline uint32_t
nfmeta__table_begin(struct nfmeta_table_flow *f)
{
	uint32_t seq = nfmeta__table_get32(f, 0) | 1;

	nfmeta__table_put32(f, 0, seq);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return seq;
}

static inline void
nfmeta__table_end(struct nfmeta_table_flow *f, uint32_t seq)
{
	__atomic_store_n((nfmeta__table_u32 *)(void *)f, seq + 1, __ATOMIC_RELEASE);
}

/* One try: 1, or 0 if a writer came in between. */
static inline int
nfmeta__table_try(const struct nfmeta_table_flow *f, struct nfmeta_table_flow *copy)
{
	uint32_t seq =
		__atomic_load_n((const nfmeta__table_u32 *)(const void *)f, __ATOMIC_ACQUIRE);
	uint64_t w[8];

	if ((seq & 1) != 0)
		return 0;
	/* not a loop: the words stay in registers until they are judged */
	w[0] = (uint64_t)nfmeta__table_get32(f, 1) << 32 | seq;
	w[1] = nfmeta__table_get64(f, 1);
	w[2] = nfmeta__table_get64(f, 2);
	w[3] = nfmeta__table_get64(f, 3);
	w[4] = nfmeta__table_get64(f, 4);
	w[5] = nfmeta__table_get64(f, 5);
	w[6] = nfmeta__table_get64(f, 6);
	w[7] = nfmeta__table_get64(f, 7);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (nfmeta__table_get32(f, 0) != seq)
		return 0;
	memcpy(copy, w, sizeof(w));
	return 1;
}

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

static inline void
nfmeta__table_addr(uint64_t w[2], const uint8_t addr[16], uint8_t ip_version)
{
	uint32_t v4;

	memcpy(w, addr, 16);
	if (ip_version == 4) {
		memcpy(&v4, addr, 4);
		w[0] = 0;
		w[1] = (uint64_t)v4 << 32 | 0xffff0000;
	}
}

/* ---- Write: primary ----------------------------------------------------------- */

/**
 * A flow begins.  Whatever the entry was is overwritten: state OPEN, action
 * NFMETA_ACTION_NONE, application 0, counters 0.
 *
 * @param f              the flow's entry, &flows[id]
 * @param generation     of the flow; newer than that of the flow before under this id
 * @param key            of the flow, as nfmeta_classify_burst() gives it
 * @param first_reverse  nonzero if the flow's first packet had NFMETA_FLOW_REVERSE
 *                       when it was classified: end b sent it
 *
 * The one thread that owns the flow, primary.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_table_open(struct nfmeta_table_flow *f, uint16_t generation,
		  const struct nfmeta_flow_key *key, int first_reverse)
{
	uint8_t state = NFMETA_TABLE_OPEN | (first_reverse ? NFMETA_TABLE_REVERSE : 0);
	uint16_t port_a, port_b;
	uint64_t w[8];
	unsigned int i;
	uint32_t seq;

	memcpy(&port_a, key->port_a, 2);
	memcpy(&port_b, key->port_b, 2);
	w[1] = (uint64_t)port_b << 48 | (uint64_t)port_a << 32;
	nfmeta__table_addr(&w[2], key->addr_a, key->ip_version);
	nfmeta__table_addr(&w[4], key->addr_b, key->ip_version);
	w[6] = w[7] = 0;
	seq = nfmeta__table_begin(f);
	nfmeta__table_put32(f, 1, nfmeta__table_word(generation, state, key->proto));
	for (i = 1; i < 8; i++)
		nfmeta__table_put64(f, i, w[i]);
	nfmeta__table_end(f, seq);
}

/** As the state in nfmeta_table_set(): stays what it is. */
#define NFMETA_TABLE_KEEP NFMETA_TABLE_NONE

/**
 * Change what is known of a flow.  Does nothing unless the flow is open and of
 * this generation.
 *
 * @param f           the flow's entry, &flows[id]
 * @param generation  of the flow
 * @param state       NFMETA_TABLE_OPEN, _ESTABLISHED, _CLOSING, or NFMETA_TABLE_KEEP
 * @param action      NFMETA_ACTION_*, 0 to 15
 * @param app_id      as in the record; 0 not known
 * @return 1: done; 0: not the flow that is there
 *
 * The one thread that owns the flow, primary.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_table_set(struct nfmeta_table_flow *f, uint16_t generation, uint8_t state, uint8_t action,
		 uint32_t app_id)
{
	uint32_t seq = nfmeta__table_get32(f, 0), w = nfmeta__table_get32(f, 1);
	uint8_t was = (uint8_t)(w >> 16);

	if ((seq & 1) != 0 || (uint16_t)w != generation || (was & NFMETA_TABLE_STATE_MASK) == 0)
		return 0;
	if ((state & NFMETA_TABLE_STATE_MASK) == NFMETA_TABLE_KEEP)
		state = was;
	state = (uint8_t)((was & NFMETA_TABLE_REVERSE) | (state & NFMETA_TABLE_STATE_MASK) |
			  action << NFMETA_TABLE_ACTION_SHIFT);
	seq = nfmeta__table_begin(f);
	nfmeta__table_put32(f, 1, nfmeta__table_word(generation, state, (uint8_t)(w >> 24)));
	nfmeta__table_put64(f, 1, (nfmeta__table_get64(f, 1) & ~UINT64_C(0xffffffff)) | app_id);
	nfmeta__table_end(f, seq);
	return 1;
}

/**
 * Count packets that one end sent.  A part that is full stays at its maximum.
 *
 * @param f        the flow's entry, &flows[id]
 * @param from_b   nonzero if end b sent them: NFMETA_FLOW_REVERSE as
 *                 nfmeta_classify_burst() set it, before nfmeta_record_set_flow()
 * @param packets  how many
 * @param bytes    of whole packets from the Ethernet header on
 *
 * The one thread that owns the flow, primary.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_table_count(struct nfmeta_table_flow *f, int from_b, uint64_t packets, uint64_t bytes)
{
	unsigned int i = from_b ? 7 : 6;
	uint64_t w = nfmeta__table_get64(f, i);
	uint64_t p = w >> NFMETA_TABLE_PACKETS_SHIFT, b = w & NFMETA_TABLE_BYTES_MAX;

	p = packets < NFMETA_TABLE_PACKETS_MAX - p ? p + packets : NFMETA_TABLE_PACKETS_MAX;
	b = bytes < NFMETA_TABLE_BYTES_MAX - b ? b + bytes : NFMETA_TABLE_BYTES_MAX;
	nfmeta__table_put64(f, i, p << NFMETA_TABLE_PACKETS_SHIFT | b);
}

/**
 * A flow ended: no flow has this id until nfmeta_table_open().  Generation, tuple
 * and counters stay.  Does nothing if the flow that is there is newer.
 *
 * @param f           the entry, &flows[id]
 * @param generation  of the flow that ended
 * @return 1: done; 0: there is no flow, or a newer one
 *
 * The one thread that owns the flow, primary.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_table_close(struct nfmeta_table_flow *f, uint16_t generation)
{
	uint32_t seq = nfmeta__table_get32(f, 0), w = nfmeta__table_get32(f, 1);

	if ((seq & 1) == 0 && (w >> 16 & NFMETA_TABLE_STATE_MASK) == NFMETA_TABLE_NONE)
		return 0;
	if ((int16_t)(uint16_t)(generation - w) < 0) /* as nfmeta_flow_newer() */
		return 0;
	seq = nfmeta__table_begin(f);
	nfmeta__table_put32(f, 1,
			    nfmeta__table_word((uint16_t)w, NFMETA_TABLE_NONE, (uint8_t)(w >> 24)));
	nfmeta__table_end(f, seq);
	return 1;
}

/* ---- Read: anybody ------------------------------------------------------------ */

/**
 * Copy an entry, whole.
 *
 * @param f     &flows[id]
 * @param copy  filled if the answer is 0 or 1
 * @return 1: a flow; compare copy->flow_gen with the generation you mean;
 *   0        no flow has this id now; the generation is the last one's
 *   -EAGAIN  a writer was at it all the time, or one ended in the middle: nothing is known
 *            now, ask again with a later packet
 *
 * Waits at most a few microseconds.  Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_table_read(const struct nfmeta_table_flow *f, struct nfmeta_table_flow *copy)
{
	unsigned int i;

	for (i = 0; i < NFMETA__TABLE_TRIES; i++) {
		if (nfmeta__table_try(f, copy))
			return (copy->state & NFMETA_TABLE_STATE_MASK) != NFMETA_TABLE_NONE;
		rte_pause();
	}
	return -EAGAIN;
}

/**
 * The flow that a record names (with NFMETA_FLOW_KNOWN).
 *
 * @param flows, n        as nfmeta_table_flows() gave them
 * @param id, generation  flow_id and flow_gen of the record
 * @param copy            filled if the answer is 1
 * @return 1: the flow; 0: it is not in the table (any more); -EAGAIN: as nfmeta_table_read()
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_table_lookup(const struct nfmeta_table_flow *flows, uint32_t n, uint32_t id,
		    uint16_t generation, struct nfmeta_table_flow *copy)
{
	int rc;

	if (id >= n)
		return 0;
	rc = nfmeta_table_read(&flows[id], copy);
	return rc == 1 && copy->flow_gen != generation ? 0 : rc;
}

/**
 * How far a flow is.
 *
 * @param copy  of nfmeta_table_read() or nfmeta_table_lookup()
 * @return NFMETA_TABLE_NONE, _OPEN, _ESTABLISHED or _CLOSING
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE uint8_t
nfmeta_table_state(const struct nfmeta_table_flow *copy)
{
	return copy->state & NFMETA_TABLE_STATE_MASK;
}

/**
 * What is done with the packets of a flow.
 *
 * @param copy  of nfmeta_table_read() or nfmeta_table_lookup()
 * @return NFMETA_ACTION_*
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE uint8_t
nfmeta_table_action(const struct nfmeta_table_flow *copy)
{
	return copy->state >> NFMETA_TABLE_ACTION_SHIFT;
}

/**
 * Packets in a counter.
 *
 * @param counter  from_a or from_b of a copy
 * @return how many; NFMETA_TABLE_PACKETS_MAX: so many or more
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE uint64_t
nfmeta_table_packets(uint64_t counter)
{
	return counter >> NFMETA_TABLE_PACKETS_SHIFT;
}

/**
 * Bytes in a counter.
 *
 * @param counter  from_a or from_b of a copy
 * @return how many; NFMETA_TABLE_BYTES_MAX: so many or more
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE uint64_t
nfmeta_table_bytes(uint64_t counter)
{
	return counter & NFMETA_TABLE_BYTES_MAX;
}

#ifdef __cplusplus
}
#endif
#endif
