/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_RECORD_H
#define NFMETA_RECORD_H

/*
 * record.h - write and read the record of an mbuf.
 *
 * The writer registers a field once (nfmeta_field_register), stamps packets
 * (nfmeta_record_set) and publishes the field with its links.  A reader gets
 * the field from its link (nfmeta_link_field) and calls nfmeta_record_get or
 * nfmeta_record_peek.
 *
 * Whatever goes wrong is meant to read as "no record": the dynflag tells fresh
 * and recycled mbufs (DPDK clears ol_flags, not dynamic fields), the first two
 * bytes tell foreign and other-version writers, and the seal tells a clobbered
 * record, or one whose packet was moved or cut since.  The seal always shows one
 * push, pull, append or trim and any change within 16 bits; other accidents it
 * misses once in 2^16.  It does not cover the packet's bytes: who rewrites them
 * (NAT) stamps anew or takes the record off.  Nor can it know a flag that was
 * copied into another mbuf without the record's bytes, where an old record of the
 * same start and length may lie: take the record off (nfmeta_record_clear) before
 * rte_gso_segment, and with HEADROOM before rte_pktmbuf_copy or attaching an
 * external buffer.
 *
 * Everything down to nfmeta_record_shift is inline; the same functions are
 * symbols of the library, for languages that cannot inline.
 */

#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include <nfmeta/abi.h>
#include <nfmeta/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NFMETA_INLINE
#define NFMETA_INLINE static inline
#endif

/* ---- Fields: cold, once per process ------------------------------------- */

/** Options of nfmeta_field_register(); zero means "default" everywhere. */
struct nfmeta_field_opts {
	uint32_t sz;	       /**< sizeof(struct nfmeta_field_opts) */
	uint8_t placement;     /**< NFMETA_PLACE_*; AUTO: DYNFIELD, else HEADROOM, else UDATA64 */
	uint8_t size;	       /**< DYNFIELD: bytes, 16 (default) or 32; others: 0 */
	uint16_t headroom_use; /**< bytes that your own code prepends; HEADROOM leaves them free */
};
#define NFMETA_FIELD_OPTS(...)                                                                     \
	{                                                                                          \
		.sz = sizeof(struct nfmeta_field_opts), __VA_ARGS__                                \
	}

/**
 * Find room for the record and register it with DPDK (rte_mbuf_dynfield_register,
 * rte_mbuf_dynflag_register).  Calling again with the same wish gives the same
 * field.  DPDK cannot unregister: the room stays taken until the process ends.
 *
 * @param opts   NULL: all defaults
 * @param field  filled on success
 * @return 0, or
 *   -EINVAL           opts has a value that is not allowed
 *   -NFMETA_EROLE     called in a secondary, which cannot register dynamic fields
 *   -NFMETA_ENOROOM   does not fit; the sentence names the dynamic fields in the way
 *   -NFMETA_EFIELD    somebody registered our name with another size
 *   -ENOMEM           no memory for the shared description
 *
 * Primary process, after rte_eal_init, one thread at a time.  Since 0.1.
 */
NFMETA_API int nfmeta_field_register(const struct nfmeta_field_opts *opts,
				     struct nfmeta_field *field);

/* ---- Private to this header ---------------------------------------------- */

static inline uint64_t
nfmeta__word(const void *p, unsigned int i)
{
	uint64_t w;

	memcpy(&w, (const uint8_t *)p + 8 * i, 8);
	return w;
}

static inline uint64_t
nfmeta__rotl(uint64_t w, unsigned int n)
{
	return w << n | w >> (64 - n);
}

/* The bursts below are laid out once per shape of the field; all of this goes into them. */
#define NFMETA__HOT static inline __attribute__((always_inline))

/*
 * Every word is rotated by its own amount and XORed, then folded to the width
 * of the seal: a change within one 16-bit unit always shows, any other but one
 * time in 2^16 (2^32 in headroom).  start and len enter by a sum that a push,
 * pull, append or trim of less than 32 KiB always changes.
 *
 * The first two words are handed over: who has just written them must not load
 * them again, a load that spans several younger stores waits for all of them.
 */
NFMETA__HOT uint32_t
nfmeta__seal(const struct nfmeta_field *f, uint64_t w0, uint64_t w1, const void *r, uint16_t start,
	     uint32_t len)
{
	const int headroom = f->placement == NFMETA_PLACE_HEADROOM;
	uint64_t x = f->key ^ w0, w3;

	if (f->size >= 16)
		x ^= nfmeta__rotl(w1, 7);
	if (f->size >= 32) {
		w3 = nfmeta__word(r, 3);
		if (headroom) /* the other half is the seal's own place */
			w3 &= 0xffffffff;
		x ^= nfmeta__rotl(nfmeta__word(r, 2), 13) ^ nfmeta__rotl(w3, 19);
	}
	if (f->size >= 64)
		x ^= nfmeta__rotl(nfmeta__word(r, 4), 29) ^ nfmeta__rotl(nfmeta__word(r, 5), 37) ^
		     nfmeta__rotl(nfmeta__word(r, 6), 43) ^ nfmeta__rotl(nfmeta__word(r, 7), 53);
	x ^= x >> 32;
	if (!headroom)
		x ^= x >> 16;
	x ^= (start + len * 0x9e36u) & 0xffff;
	return headroom ? (uint32_t)x : (uint16_t)x;
}

/* This mbuf has no room for record and seal. */
NFMETA__HOT int
nfmeta__tight(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	return f->placement == NFMETA_PLACE_HEADROOM &&
	       unlikely(m->data_off < NFMETA_HEADROOM_ROOM);
}

/* The room is another mbuf's, too: reading is fine, writing is not. */
NFMETA__HOT int
nfmeta__shared(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	return f->placement == NFMETA_PLACE_HEADROOM &&
	       unlikely(!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1);
}

/* What the offsets of the field count from. */
NFMETA__HOT uint8_t *
nfmeta__base(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	if (f->placement != NFMETA_PLACE_HEADROOM)
		return (uint8_t *)(uintptr_t)m;
	return (uint8_t *)m->buf_addr;
}

NFMETA__HOT void
nfmeta__seal_write(const struct nfmeta_field *f, uint8_t *base, uint32_t seal)
{
	uint16_t seal16 = (uint16_t)seal;

	if (f->placement == NFMETA_PLACE_HEADROOM)
		memcpy(base + f->seal_offset, &seal, 4);
	else
		memcpy(base + f->seal_offset, &seal16, 2);
}

NFMETA__HOT uint32_t
nfmeta__seal_read(const struct nfmeta_field *f, const uint8_t *base)
{
	uint16_t seal16;
	uint32_t seal;

	if (f->placement == NFMETA_PLACE_HEADROOM) {
		memcpy(&seal, base + f->seal_offset, 4);
		return seal;
	}
	memcpy(&seal16, base + f->seal_offset, 2);
	return seal16;
}

/* The record as it was sealed for a packet of this start and length, or NULL. */
NFMETA__HOT struct nfmeta_record *
nfmeta__find(const struct nfmeta_field *f, const struct rte_mbuf *m, uint16_t start, uint32_t len)
{
	uint64_t w0, w1 = 0;
	uint8_t *base, *r, size;

	if ((m->ol_flags & f->flag) == 0 || nfmeta__tight(f, m))
		return NULL;
	base = nfmeta__base(f, m);
	r = base + f->offset;
	w0 = nfmeta__word(r, 0);
	if (unlikely((w0 & 0xffff) != (NFMETA_ABI_MAJOR | (uint32_t)f->size << 8))) {
		size = (uint8_t)(w0 >> 8);
		if ((uint8_t)w0 != NFMETA_ABI_MAJOR || size < 8 || size > f->size ||
		    (size & (size - 1)) != 0)
			return NULL;
	}
	if (f->size >= 16)
		w1 = nfmeta__word(r, 1);
	if (unlikely(nfmeta__seal(f, w0, w1, r, start, len) != nfmeta__seal_read(f, base)))
		return NULL;
	return (struct nfmeta_record *)(void *)r;
}

/*
 * wide reads the caller's record in words.  Not wide reads one by one the fields
 * that are most often written just before, so that they come from the store
 * buffer.
 */
NFMETA__HOT int
nfmeta__set(const struct nfmeta_field *f, struct rte_mbuf *m, const struct nfmeta_record *r,
	    int wide)
{
	uint8_t *base = nfmeta__base(f, m), *out = base + f->offset, size = f->size;
	uint64_t w0, w1 = 0, gen;
	uint32_t l3_l4;

	if (unlikely(r->size < size)) /* to a size that there is */
		size = r->size < 8 ? 0 : r->size < 16 ? 8 : r->size < 32 ? 16 : 32;
	if (unlikely(size < NFMETA_RECORD_WORD) || nfmeta__tight(f, m) || nfmeta__shared(f, m)) {
		m->ol_flags &= ~f->flag;
		return 0;
	}
	if (wide)
		w0 = nfmeta__word(r, 0) & ~UINT64_C(0xffff);
	else
		w0 = (uint64_t)r->flags << 16 | (uint64_t)r->flow_id << 32;
	w0 |= NFMETA_ABI_MAJOR | (uint64_t)size << 8;
	memcpy(out, &w0, 8);
	if (f->size >= NFMETA_RECORD_CORE) {
		if (wide) {
			w1 = nfmeta__word(r, 1);
		} else {
			memcpy(&l3_l4, &r->l3_off, 4);
			gen = r->flow_gen;
			__asm__("" : "+r"(gen)); /* or the compiler makes one wide load of it */
			w1 = l3_l4 | (uint64_t)r->payload_off << 32 | gen << 48;
		}
		memcpy(out + 8, &w1, 8);
	}
	if (f->size >= NFMETA_RECORD_WIDE)
		memcpy(out + 16, (const uint8_t *)r + 16, 16);
	if (f->size >= NFMETA_RECORD_FULL)
		memcpy(out + 32, (const uint8_t *)r + 32, 32);
	nfmeta__seal_write(f, base, nfmeta__seal(f, w0, w1, r, m->data_off, m->pkt_len));
	m->ol_flags |= f->flag;
	return 1;
}

/* Before a write: without it, a line that both sides have read is fetched twice. */
NFMETA__HOT void
nfmeta__prefetch_write(const void *p)
{
#ifdef __x86_64__
	/* __builtin_prefetch gives it only with -mprfchw, which DPDK's flags lack. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const uint8_t *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

static inline int
nfmeta__move(uint16_t *off, int32_t delta)
{
	int32_t to = *off - delta;

	if (*off == NFMETA_OFF_NONE)
		return 1;
	*off = (uint16_t)to;
	return to >= 0 && to < NFMETA_OFF_NONE;
}

static inline void
nfmeta__empty(struct nfmeta_record *r)
{
	memset(r, 0, sizeof(*r));
	r->abi = NFMETA_ABI_MAJOR;
	r->size = NFMETA_RECORD_FULL;
	r->l3_off = r->l4_off = r->payload_off = NFMETA_OFF_NONE;
}

NFMETA__HOT uint32_t
nfmeta__get(const struct nfmeta_field *f, const struct rte_mbuf *m, struct nfmeta_record *r)
{
	const struct nfmeta_record *in = nfmeta__find(f, m, m->data_off, m->pkt_len);

	if (in != NULL && in->size == NFMETA_RECORD_CORE) {
		memcpy(r, in, NFMETA_RECORD_CORE);
		memset((uint8_t *)r + NFMETA_RECORD_CORE, 0, sizeof(*r) - NFMETA_RECORD_CORE);
		return NFMETA_RECORD_CORE;
	}
	if (in != NULL && in->size == NFMETA_RECORD_FULL) {
		memcpy(r, in, NFMETA_RECORD_FULL);
		memset(r->seal, 0, sizeof(r->seal));
		return NFMETA_RECORD_FULL;
	}
	nfmeta__empty(r);
	if (in == NULL) {
		r->size = 0;
		return 0;
	}
	if (in->size == NFMETA_RECORD_WORD)
		memcpy(r, in, NFMETA_RECORD_WORD);
	else
		memcpy(r, in, NFMETA_RECORD_WIDE);
	return r->size;
}

/* ---- The record of one packet ------------------------------------------- */

/**
 * Make an empty record to fill: this ABI, full size, no flags, no offsets.
 *
 * @param r  the record
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_record_init(struct nfmeta_record *r)
{
	nfmeta__empty(r);
}

/**
 * Put a flow into a record that nfmeta_classify_burst() filled, before stamping.
 *
 * @param r               the record
 * @param id, generation  name the flow; generation grows when an id is used again
 * @param first_reverse   nonzero if the flow's first packet had NFMETA_FLOW_REVERSE
 *                        when it was classified
 * @param is_new          nonzero for that first packet, and for it alone
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_record_set_flow(struct nfmeta_record *r, uint32_t id, uint16_t generation, int first_reverse,
		       int is_new)
{
	r->flow_id = id;
	r->flow_gen = generation;
	r->flags = (uint16_t)((r->flags & ~(NFMETA_FLOW_NEW)) | NFMETA_FLOW_KNOWN);
	if (first_reverse)
		r->flags ^= NFMETA_FLOW_REVERSE;
	if (is_new)
		r->flags |= NFMETA_FLOW_NEW;
}

/**
 * Look at the record where it lies.
 *
 * @param f  the field of the link (nfmeta_link_field()) or of nfmeta_field_register()
 * @param m  the packet's first mbuf
 * @return the record, or NULL if there is none that can be trusted.  Bytes at
 *         and behind r->size are not there: test size before you read a field
 *         of the core or later.  Valid while you hold the mbuf and do not
 *         change its headers.
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE const struct nfmeta_record *
nfmeta_record_peek(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	return nfmeta__find(f, m, m->data_off, m->pkt_len);
}

/**
 * Copy the record out.  Fields that the placement does not carry read as
 * nfmeta_record_init() leaves them.
 *
 * @param f  as for nfmeta_record_peek()
 * @param m  the packet's first mbuf
 * @param r  the copy
 * @return bytes of record there were (8, 16, 32, 64), also in r->size; 0: none.
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE uint32_t
nfmeta_record_get(const struct nfmeta_field *f, const struct rte_mbuf *m, struct nfmeta_record *r)
{
	return nfmeta__get(f, m, r);
}

/**
 * Take the record off the mbuf.
 *
 * @param f  as for nfmeta_record_peek()
 * @param m  the packet's first mbuf
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_record_clear(const struct nfmeta_field *f, struct rte_mbuf *m)
{
	m->ol_flags &= ~f->flag;
}

/**
 * Stamp an mbuf.  Writes as much of the record as the placement carries, at
 * most r->size bytes, and seals it for the packet as it is now: set data_off
 * and lengths first.  A record of size 0 takes the old one off.
 *
 * @param f  as for nfmeta_record_peek()
 * @param m  the packet's first mbuf
 * @param r  what to write
 * @return 1: stamped; 0: no record on this mbuf now (size 0; or HEADROOM and
 *         the headroom is too small or the buffer is shared with another mbuf).
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_record_set(const struct nfmeta_field *f, struct rte_mbuf *m, const struct nfmeta_record *r)
{
	struct nfmeta_field c = *f; /* a store through m may not change it */

	return nfmeta__set(&c, m, r, 0);
}

/**
 * Tell the record that the start of the packet has moved: call it right after
 * rte_pktmbuf_adj(m, delta) with +delta, after rte_pktmbuf_prepend(m, n) with
 * -n.  Offsets move along, and NFMETA_L2_VALID goes: the packet need not start
 * with Ethernet any more.  The record comes off if it was not valid before,
 * if its L3 header was pulled off (with a record of 8 bytes: if anything was), if an
 * offset would no longer fit, or if it
 * lies in the headroom of a buffer that another mbuf shares.
 *
 * Without this call a moved packet reads as "no record".  After a change at
 * the tail, or of the bytes themselves, use nfmeta_record_set() anew.
 *
 * @param f      as for nfmeta_record_peek()
 * @param m      the packet's first mbuf
 * @param delta  bytes by which the first byte moved towards the end
 * @return 1: the record goes on; 0: there is none now.
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE int
nfmeta_record_shift(const struct nfmeta_field *f, struct rte_mbuf *m, int32_t delta)
{
	struct nfmeta_record *r =
		nfmeta__find(f, m, (uint16_t)(m->data_off - delta), m->pkt_len + (uint32_t)delta);
	uint64_t w1;

	/* a word alone has no offset that could tell whether L3 was pulled off */
	if (r == NULL || nfmeta__shared(f, m) || (r->size < NFMETA_RECORD_CORE && delta > 0) ||
	    (r->size >= NFMETA_RECORD_CORE &&
	     !(nfmeta__move(&r->l3_off, delta) && nfmeta__move(&r->l4_off, delta) &&
	       nfmeta__move(&r->payload_off, delta)))) {
		nfmeta_record_clear(f, m);
		return 0;
	}
	if (delta != 0)
		r->flags &= (uint16_t)~NFMETA_L2_VALID;
	w1 = f->size >= 16 ? nfmeta__word(r, 1) : 0;
	nfmeta__seal_write(f, nfmeta__base(f, m),
			   nfmeta__seal(f, nfmeta__word(r, 0), w1, r, m->data_off, m->pkt_len));
	return 1;
}

/* ---- Bursts --------------------------------------------------------------- */

/**
 * Prefetch what nfmeta_record_get() of this mbuf will touch, beside its first line.
 *
 * @param f  as for nfmeta_record_peek()
 * @param m  the packet's first mbuf
 *
 * Whoever holds the mbuf, any process.  Since 0.1.
 */
NFMETA_INLINE void
nfmeta_record_prefetch(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	if (f->placement == NFMETA_PLACE_HEADROOM)
		rte_prefetch0(m->buf_addr);
	else
		rte_prefetch0((const uint8_t *)m + f->offset);
}

#define NFMETA__AHEAD 4

NFMETA__HOT uint16_t
nfmeta__get_burst(const struct nfmeta_field *from, uint8_t placement, uint8_t size,
		  struct rte_mbuf *const *pkts, struct nfmeta_record *recs, uint32_t n)
{
	struct nfmeta_field f = *from;
	uint32_t i, have = 0;

	f.placement = placement;
	f.size = size;
	for (i = 0; i < n && i < NFMETA__AHEAD; i++)
		nfmeta_record_prefetch(&f, pkts[i]);
	for (i = 0; i + NFMETA__AHEAD < n; i++) {
		nfmeta_record_prefetch(&f, pkts[i + NFMETA__AHEAD]);
		have += nfmeta__get(&f, pkts[i], &recs[i]) != 0;
	}
	for (; i < n; i++)
		have += nfmeta__get(&f, pkts[i], &recs[i]) != 0;
	return (uint16_t)have;
}

NFMETA__HOT void
nfmeta__prefetch_set(const struct nfmeta_field *f, const struct rte_mbuf *m)
{
	if (f->placement == NFMETA_PLACE_HEADROOM)
		nfmeta__prefetch_write(m->buf_addr);
	else
		nfmeta__prefetch_write((const uint8_t *)m + f->offset);
}

NFMETA__HOT uint16_t
nfmeta__set_burst(const struct nfmeta_field *from, uint8_t placement, uint8_t size,
		  struct rte_mbuf *const *pkts, const struct nfmeta_record *recs, uint32_t n)
{
	struct nfmeta_field f = *from;
	uint32_t i, have = 0;

	f.placement = placement;
	f.size = size;
	for (i = 0; i < n && i < NFMETA__AHEAD; i++)
		nfmeta__prefetch_set(&f, pkts[i]);
	for (i = 0; i + NFMETA__AHEAD < n; i++) {
		nfmeta__prefetch_set(&f, pkts[i + NFMETA__AHEAD]);
		have += (uint32_t)nfmeta__set(&f, pkts[i], &recs[i], 1);
	}
	for (; i < n; i++)
		have += (uint32_t)nfmeta__set(&f, pkts[i], &recs[i], 1);
	return (uint16_t)have;
}

/**
 * nfmeta_record_get() for a burst, with prefetch.
 *
 * @param f     as for nfmeta_record_peek()
 * @param pkts  n packets
 * @param recs  n records, out
 * @param n     how many
 * @return packets that have a record; recs[i].size is 0 for the others.
 *
 * Whoever holds the mbufs, any process.  Since 0.1.
 */
NFMETA_INLINE uint16_t
nfmeta_record_get_burst(const struct nfmeta_field *f, struct rte_mbuf *const *pkts,
			struct nfmeta_record *recs, uint16_t n)
{
	if (f->placement == NFMETA_PLACE_HEADROOM)
		return nfmeta__get_burst(f, NFMETA_PLACE_HEADROOM, NFMETA_RECORD_FULL, pkts, recs,
					 n);
	if (f->size == NFMETA_RECORD_CORE)
		return nfmeta__get_burst(f, NFMETA_PLACE_DYNFIELD, NFMETA_RECORD_CORE, pkts, recs,
					 n);
	if (f->size == NFMETA_RECORD_WORD)
		return nfmeta__get_burst(f, NFMETA_PLACE_UDATA64, NFMETA_RECORD_WORD, pkts, recs,
					 n);
	return nfmeta__get_burst(f, f->placement, f->size, pkts, recs, n);
}

/**
 * nfmeta_record_set() for a burst, with prefetch.
 *
 * @param f     as for nfmeta_record_peek()
 * @param pkts  n packets
 * @param recs  n records
 * @param n     how many
 * @return packets that have a record now.
 *
 * Whoever holds the mbufs, any process.  Since 0.1.
 */
NFMETA_INLINE uint16_t
nfmeta_record_set_burst(const struct nfmeta_field *f, struct rte_mbuf *const *pkts,
			const struct nfmeta_record *recs, uint16_t n)
{
	if (f->placement == NFMETA_PLACE_HEADROOM)
		return nfmeta__set_burst(f, NFMETA_PLACE_HEADROOM, NFMETA_RECORD_FULL, pkts, recs,
					 n);
	if (f->size == NFMETA_RECORD_CORE)
		return nfmeta__set_burst(f, NFMETA_PLACE_DYNFIELD, NFMETA_RECORD_CORE, pkts, recs,
					 n);
	if (f->size == NFMETA_RECORD_WORD)
		return nfmeta__set_burst(f, NFMETA_PLACE_UDATA64, NFMETA_RECORD_WORD, pkts, recs,
					 n);
	return nfmeta__set_burst(f, f->placement, f->size, pkts, recs, n);
}

#ifdef __cplusplus
}
#endif
#endif
