/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "link.h" /* first: it chooses the memory model of rte_ring */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Messages ---------------------------------------------------------------- */

#define DOWN 0
#define UP 1

static const struct kind {
	const char *name;
	uint8_t entry; /* bytes of the struct */
	uint8_t way;
	uint16_t least, most; /* entries */
} kinds[] = {
	[NFMETA_MSG_NEW] = {"NEW", sizeof(struct nfmeta_flow_state), DOWN, 1, 128},
	[NFMETA_MSG_UPDATE] = {"UPDATE", sizeof(struct nfmeta_flow_state), DOWN, 1, 128},
	[NFMETA_MSG_DELETE] = {"DELETE", sizeof(struct nfmeta_flow_delete), DOWN, 1, 256},
	[NFMETA_MSG_COUNTERS] = {"COUNTERS", sizeof(struct nfmeta_flow_counters), DOWN, 1, 51},
	[NFMETA_MSG_SNAPSHOT] = {"SNAPSHOT", sizeof(struct nfmeta_flow_state), DOWN, 0, 128},
	[NFMETA_MSG_RESET] = {"RESET", 8, DOWN, 0, 0},
	[NFMETA_MSG_HEARTBEAT] = {"HEARTBEAT", 8, DOWN, 0, 0},
	[NFMETA_MSG_VERDICT] = {"VERDICT", sizeof(struct nfmeta_flow_verdict), UP, 1, 85},
	[NFMETA_MSG_LOAD] = {"LOAD", sizeof(struct nfmeta_flow_load), UP, 1, 1},
	[NFMETA_MSG_RESYNC] = {"RESYNC", sizeof(struct nfmeta_flow_mark), UP, 1, 1},
	[NFMETA_MSG_ACK] = {"ACK", sizeof(struct nfmeta_flow_mark), UP, 1, 1},
};
static const struct kind own_kind = {"an own type", 8, DOWN, 1, 256};

/* Of the users of the library: it only carries them. */
static bool
own_type(uint8_t type)
{
	return type >= NFMETA_MSG_OWN;
}

/* NULL: a type of somebody's own. */
static const struct kind *
kind_of(uint8_t type)
{
	return type < RTE_DIM(kinds) && kinds[type].entry != 0 ? &kinds[type] : NULL;
}

static size_t
message_bytes(const struct nfmeta_flow_batch *b)
{
	return sizeof(*b) + (size_t)b->count * b->entry_size;
}

/* A header: what follows it, and where the next message begins, can be told. */
static bool
framed(const struct nfmeta_flow_batch *b)
{
	return b->magic == NFMETA_FLOW_MAGIC && b->abi == NFMETA_ABI_MAJOR &&
	       b->entry_size % 8 == 0 && (b->entry_size != 0 || b->count == 0) &&
	       (uint32_t)b->count * b->entry_size <= NFMETA_FLOW_BYTES;
}

/* 1: to be delivered; 0: to be skipped; -NFMETA_EMESSAGE: must not be skipped, and cannot be used. */
static int
judge(const struct nfmeta_flow_batch *b, int way)
{
	const struct kind *k = kind_of(b->type);

	if (!framed(b))
		return -NFMETA_EMESSAGE;
	if (k == NULL)
		return b->type & NFMETA_MSG_OPTIONAL ? 0 : -NFMETA_EMESSAGE;
	if (k->way != way || b->count < k->least || b->count > k->most ||
	    (b->count != 0 && b->entry_size < k->entry))
		return -NFMETA_EMESSAGE;
	if ((b->flags & (NFMETA_MSG_FIRST | NFMETA_MSG_LAST)) != 0 &&
	    b->type != NFMETA_MSG_SNAPSHOT)
		return -NFMETA_EMESSAGE;
	return 1;
}

int
nfmeta__flow_check(const void *bytes, size_t len, int up)
{
	const struct nfmeta_flow_batch *b = bytes;
	int rc;

	if (len < sizeof(*b))
		return -EAGAIN;
	rc = judge(b, up);
	if (rc >= 0 && len < message_bytes(b))
		return -EAGAIN;
	return rc == 1 ? (int)message_bytes(b) : rc;
}

/* What a caller wants to send: the kind, or NULL and the sentence. */
static const struct kind *
sendable(uint8_t type, const void *entries, uint16_t n, int way)
{
	const struct kind *k = own_type(type) ? &own_kind : kind_of(type);

	if (k == NULL) {
		nfmeta__fail(EINVAL,
			     "there is no message of type %u: NFMETA_MSG_..., or an own type from "
			     "%d to 255",
			     type, NFMETA_MSG_OWN);
		return NULL;
	}
	if (!own_type(type) && (k->way != way || type == NFMETA_MSG_SNAPSHOT ||
				type == NFMETA_MSG_RESYNC || type == NFMETA_MSG_ACK)) {
		nfmeta__fail(EINVAL, "%s is not for this call: %s", k->name,
			     type == NFMETA_MSG_SNAPSHOT ? "use nfmeta_flow_snapshot()"
			     : k->way != way		 ? "it goes the other way"
							 : "the library sends it by itself");
		return NULL;
	}
	if (n < k->least || n > k->most) {
		nfmeta__fail(EINVAL, "a message %s with %u entries: %u to %u are allowed", k->name,
			     n, k->least, k->most);
		return NULL;
	}
	if (n != 0 && entries == NULL) {
		nfmeta__fail(EINVAL, "there are no entries, but %u are to be sent", n);
		return NULL;
	}
	return k;
}

static int
no_carrier(const struct nfmeta_link *link)
{
	if (link->carrier == NFMETA_CARRIER_TABLE)
		return nfmeta__fail(NFMETA_ENOFLOW,
				    "link '%s' has a table and no messages down: look the flows up "
				    "in it, nfmeta_link_table()",
				    link->shared->name);
	return nfmeta__fail(NFMETA_ENOFLOW,
			    "link '%s' was made without a carrier for flow state: the upfront NF "
			    "chooses one in nfmeta_link_opts.carrier",
			    link->shared->name);
}

static int
no_batch(void)
{
	return nfmeta__fail(EINVAL, "there is no place to put the message");
}

static int
bad_message(const struct nfmeta_link *link, const struct nfmeta_flow_batch *b)
{
	if (b->magic != NFMETA_FLOW_MAGIC)
		return nfmeta__fail(NFMETA_EMESSAGE,
				    "what came on link '%s' is not a message (0x%08" PRIx32
				    "): memory was overwritten; it was thrown away",
				    link->shared->name, b->magic);
	if (kind_of(b->type) == NULL)
		return nfmeta__fail(NFMETA_EMESSAGE,
				    "a message of type %u came on link '%s', which must be "
				    "understood and is not known here: install a newer libnfmeta",
				    b->type, link->shared->name);
	return nfmeta__fail(NFMETA_EMESSAGE,
			    "a message of type %u came on link '%s' with ABI %u and %u entries of "
			    "%u bytes, which cannot be: it was left out",
			    b->type, link->shared->name, b->abi, b->count, b->entry_size);
}

/* ---- Flow rings ----------------------------------------------------------------- */

/* All or nothing: a reader never sees a part of a message. */
static bool
ring_put(struct rte_ring *ring, const struct nfmeta_flow_batch *head, const void *entries,
	 size_t bytes)
{
	uint64_t words[MESSAGE_WORDS];

	memcpy(words, head, sizeof(*head));
	if (bytes != 0)
		memcpy(words + HEADER_WORDS, entries, bytes);
	return rte_ring_sp_enqueue_bulk(ring, (void **)words,
					(unsigned int)(HEADER_WORDS + bytes / 8), NULL) != 0;
}

/* Elements that the consumer can take; what was written before they were put there is seen. */
static inline uint32_t
there(const struct rte_ring *ring)
{
	return __atomic_load_n(&ring->prod.tail, __ATOMIC_ACQUIRE) - ring->cons.tail;
}

/* How many of n words are whole messages; all, if there is something that is none. */
static uint32_t
whole(const uint64_t *words, uint32_t n)
{
	const struct nfmeta_flow_batch *b;
	uint32_t at = 0, next;

	while (n - at >= HEADER_WORDS) {
		b = (const void *)(words + at);
		if (!framed(b))
			return n;
		next = at + (uint32_t)(message_bytes(b) / 8);
		if (next > n)
			return at;
		at = next;
	}
	return at;
}

/*
 * Takes whole messages only: half of one that went with the handle of an NF that
 * leaves would be missing to the next.
 */
static void
reader_fill(struct reader *r)
{
	uint32_t n;

	r->at = 0;
	n = rte_ring_dequeue_burst_start(r->ring, (void **)r->words, READER_WORDS, NULL);
	r->have = whole(r->words, n);
	if (r->have == 0) /* rings carry whole messages: this is none */
		r->have = n;
	if (n != 0)
		rte_ring_dequeue_finish(r->ring, r->have);
}

/*
 * The message that is next, or NULL.  What has no frame has no end either: it is
 * shown as a header that is none, and reader_next() throws all away.
 */
static const struct nfmeta_flow_batch *
reader_head(struct reader *r)
{
	static const struct nfmeta_flow_batch none;
	const struct nfmeta_flow_batch *b;
	uint32_t left;

	if (r->at == r->have) {
		if (there(r->ring) == 0)
			return NULL;
		reader_fill(r);
	}
	b = (const void *)(r->words + r->at);
	left = r->have - r->at;
	if (left < HEADER_WORDS || (framed(b) && left < message_bytes(b) / 8))
		return &none;
	return b;
}

static void
reader_next(struct reader *r)
{
	const struct nfmeta_flow_batch *b = reader_head(r);
	uint32_t left;

	if (b != NULL && framed(b)) {
		r->at += (uint32_t)(message_bytes(b) / 8);
		return;
	}
	/* Up to a moment at which the ring had whole messages, and no further. */
	left = there(r->ring);
	r->at = r->have = 0;
	while (left != 0)
		left -= rte_ring_sc_dequeue_burst(r->ring, (void **)r->words,
						  RTE_MIN(left, (uint32_t)READER_WORDS), NULL);
}

/* ---- In-band ---------------------------------------------------------------------- */

/* Where in an mbuf's buffer a message begins: behind the headroom, if it has the room. */
static uint32_t
meta_place(uint32_t buf_len)
{
	return RTE_MIN((uint32_t)RTE_PKTMBUF_HEADROOM,
		       RTE_ALIGN_FLOOR(buf_len - NFMETA_FLOW_MESSAGE_BYTES, 8));
}

/*
 * In most pools the buffer is behind the mbuf.  All lines at once, those of the message
 * together with those that say where it is: 64 deletes have 9.
 */
#define META_LINES 9
static const uint8_t *
meta_guess(const struct rte_mbuf *m)
{
	return (const uint8_t *)(m + 1) + meta_place(RTE_MBUF_DEFAULT_BUF_SIZE);
}

static void
meta_fill(struct rte_mbuf *m, const struct nfmeta_flow_batch *head, const void *entries,
	  size_t bytes)
{
	struct nfmeta_flow_batch *b;

	m->data_off = (uint16_t)meta_place(m->buf_len);
	m->data_len = (uint16_t)(sizeof(*head) + bytes);
	m->pkt_len = m->data_len;
	b = rte_pktmbuf_mtod(m, struct nfmeta_flow_batch *);
	memcpy(b, head, sizeof(*head));
	if (bytes != 0)
		memcpy(b + 1, entries, bytes);
}

/* The message in a meta packet, or a header that says that there is none. */
static const struct nfmeta_flow_batch *
meta_message(const struct rte_mbuf *m)
{
	static const struct nfmeta_flow_batch none;
	const struct nfmeta_flow_batch *b = rte_pktmbuf_mtod(m, const struct nfmeta_flow_batch *);

	if (m->data_len < sizeof(*b) || (uint32_t)m->data_off + m->data_len > m->buf_len)
		return &none;
	if (framed(b) && message_bytes(b) > m->data_len)
		return &none;
	return b;
}

/* ---- The primary's side -------------------------------------------------------------- */

int
nfmeta__feed_make(struct nfmeta_link *link, struct upfront *q, uint32_t backlog)
{
	struct feed *f = calloc(1, sizeof(*f));
	uint32_t metas = rte_align32pow2(RTE_MAX(link->blanks, 1u));

	if (f == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", sizeof(*f));
	q->feed = f;
	if (backlog != NFMETA_NO_BACKLOG) {
		f->backlog_size = rte_align32pow2(backlog);
		f->backlog = malloc(f->backlog_size * sizeof(f->backlog[0]));
		if (f->backlog == NULL)
			return nfmeta__fail(ENOMEM, "no memory for a backlog of %u words", backlog);
	}
	if (link->carrier == NFMETA_CARRIER_INBAND) {
		f->meta = calloc(metas, sizeof(struct rte_mbuf *));
		if (f->meta == NULL)
			return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted",
					    metas * sizeof(struct rte_mbuf *));
		f->meta_mask = metas - 1;
	}
	return 0;
}

void
nfmeta__feed_free(struct upfront *q)
{
	struct feed *f = q->feed;

	if (f == NULL)
		return;
	rte_pktmbuf_free_bulk(f->spare, f->nspare);
	for (; f->meta_head != f->meta_tail; f->meta_head++)
		rte_pktmbuf_free(f->meta[f->meta_head & f->meta_mask]);
	rte_ring_free(f->down);
	rte_ring_free(f->in.ring);
	free(f->meta);
	free(f->backlog);
	free(f);
	q->feed = NULL;
}

static bool
way_down(struct nfmeta_link *link, struct upfront *q, const struct nfmeta_flow_batch *head,
	 const void *entries, size_t bytes)
{
	struct feed *f = q->feed;
	struct rte_mbuf *m;
	size_t i;

	if (link->carrier == NFMETA_CARRIER_RING)
		return ring_put(f->down, head, entries, bytes);
	if (q->sent - q->back >= link->ring_size)
		return false;
	m = f->nspare != 0 ? f->spare[--f->nspare] : rte_pktmbuf_alloc(link->pool);
	if (m == NULL)
		return false;
	meta_fill(m, head, entries, bytes);
	if (!nfmeta__meta_send(link, q, m)) {
		rte_pktmbuf_free(m);
		return false;
	}
	/* The next message is as long, likely, and an NF has its lines. */
	for (i = 0; f->nspare != 0 && i < sizeof(*head) + bytes; i += RTE_CACHE_LINE_SIZE)
		nfmeta__prefetch_write(meta_guess(f->spare[f->nspare - 1]) + i);
	return true;
}

/* ---- the backlog ---- */

/* Words from "at" to the end of the ring; the rest of n is at its begin. */
static size_t
backlog_first(const struct feed *f, uint32_t at, size_t n)
{
	return RTE_MIN(n, (size_t)(f->backlog_size - (at & (f->backlog_size - 1))));
}

static void
backlog_write(struct feed *f, uint32_t at, const void *in, size_t words)
{
	size_t first = backlog_first(f, at, words);

	memcpy(f->backlog + (at & (f->backlog_size - 1)), in, first * 8);
	memcpy(f->backlog, (const uint64_t *)in + first, (words - first) * 8);
}

static void
backlog_read(const struct feed *f, uint32_t at, void *out, size_t words)
{
	size_t first = backlog_first(f, at, words);

	memcpy(out, f->backlog + (at & (f->backlog_size - 1)), first * 8);
	memcpy((uint64_t *)out + first, f->backlog, (words - first) * 8);
}

static bool
backlog_put(struct feed *f, const struct nfmeta_flow_batch *head, const void *entries, size_t bytes)
{
	uint32_t words = (uint32_t)(HEADER_WORDS + bytes / 8);

	if (f->backlog_size - (f->backlog_tail - f->backlog_head) < words)
		return false;
	backlog_write(f, f->backlog_tail, head, HEADER_WORDS);
	if (bytes != 0)
		backlog_write(f, f->backlog_tail + HEADER_WORDS, entries, bytes / 8);
	f->backlog_tail += words;
	f->backlog_messages++;
	return true;
}

static void
backlog_clear(struct upfront *q)
{
	q->feed->backlog_head = q->feed->backlog_tail;
	q->feed->backlog_messages = 0;
	q->feed->marker = false;
	q->behind = false;
}

void
nfmeta__feed_reset(struct upfront *q)
{
	struct feed *f = q->feed;

	put(&q->shared->flow_types, 0);
	backlog_clear(q);
	f->request = 0;
	f->state = NFMETA_FEED_IDLE;
	put(&q->shared->flow_seen, f->seq);
	/* It may have died between a message and its count. */
	if (get(&q->shared->flow_replies) < f->collected)
		put(&q->shared->flow_replies, f->collected);
}

static struct nfmeta_flow_batch
header(const struct nfmeta_link *link, const struct upfront *q, uint8_t type, uint16_t n,
       uint16_t entry_size)
{
	return (struct nfmeta_flow_batch){
		.magic = NFMETA_FLOW_MAGIC,
		.abi = NFMETA_ABI_MAJOR,
		.type = type,
		.count = n,
		.entry_size = n != 0 ? entry_size : 0,
		.source = (uint16_t)(q - link->q),
		.instance = link->instance,
		.epoch = q->feed->epoch,
		.seq = q->feed->seq + 1,
		.barrier = q->sent,
	};
}

static void
next_seq(struct upfront *q)
{
	put(&q->shared->flow_sent, ++q->feed->seq);
}

void
nfmeta__flow_flush(struct nfmeta_link *link, struct upfront *q)
{
	struct {
		struct nfmeta_flow_batch head;
		uint64_t words[MESSAGE_WORDS - HEADER_WORDS];
	} message;
	struct feed *f = q->feed;
	size_t bytes;

	while (f->backlog_head != f->backlog_tail) {
		backlog_read(f, f->backlog_head, &message.head, HEADER_WORDS);
		bytes = message_bytes(&message.head) - sizeof(message.head);
		backlog_read(f, f->backlog_head + HEADER_WORDS, message.words, bytes / 8);
		if (!way_down(link, q, &message.head, message.words, bytes))
			return;
		f->backlog_head += (uint32_t)(HEADER_WORDS + bytes / 8);
		f->backlog_messages--;
	}
	if (f->marker) {
		message.head = header(link, q, NFMETA_MSG_HEARTBEAT, 0, 0);
		if (!way_down(link, q, &message.head, NULL, 0))
			return;
		next_seq(q);
		f->marker = false;
	}
	q->behind = false;
}

/* Does anybody want to be told?  Sees that a subscriber has left. */
static uint64_t
wanted(struct nfmeta_link *link, struct upfront *q)
{
	uint64_t types = get(&q->shared->flow_types);
	struct feed *f = q->feed;

	if (types == 0) {
		backlog_clear(q);
		f->request = 0;
		f->state = NFMETA_FEED_IDLE;
	} else if (f->backlog_head != f->backlog_tail || f->marker) {
		nfmeta__flow_flush(link, q);
	}
	return types;
}

static int
give_up(struct nfmeta_link *link, struct upfront *q)
{
	struct feed *f = q->feed;

	next_seq(q);
	put(&q->shared->flow_lost, ++f->lost);
	if (f->state != NFMETA_FEED_GAP) {
		f->state = NFMETA_FEED_GAP;
		f->gaps++;
		f->marker = true;
		q->behind = link->carrier == NFMETA_CARRIER_INBAND;
	}
	return nfmeta__fail(EAGAIN,
			    "queue %u of link '%s' has no room for message %" PRIu64
			    ": the NF is too slow and will be told everything anew",
			    (unsigned int)(q - link->q), link->shared->name, f->seq);
}

int
nfmeta_flow_send(struct nfmeta_link *link, uint16_t queue, uint8_t type, const void *entries,
		 uint16_t n)
{
	static const uint64_t always =
		NFMETA_TYPE(NFMETA_MSG_RESET) | NFMETA_TYPE(NFMETA_MSG_HEARTBEAT);
	struct nfmeta_flow_batch head;
	const struct kind *k;
	struct upfront *q;
	struct feed *f;
	size_t bytes;

	if (unlikely(link == NULL || queue >= link->served))
		return nfmeta__not_primary(link, queue);
	k = sendable(type, entries, n, DOWN);
	if (unlikely(k == NULL))
		return -EINVAL;
	if (link->table != NULL)
		nfmeta__table_apply(link->table, type, entries, n);
	if (link->carrier == 0 && link->table == NULL)
		return no_carrier(link);
	if (link->carrier == 0 || link->carrier == NFMETA_CARRIER_TABLE)
		return 0;
	q = &link->q[queue];
	f = q->feed;
	if (((wanted(link, q) | always) & NFMETA_TYPE(type)) == 0)
		return 0;
	if (f->state == NFMETA_FEED_IDLE)
		return 0;
	if (f->state == NFMETA_FEED_GAP)
		return type == NFMETA_MSG_HEARTBEAT ? 0 : give_up(link, q);
	head = header(link, q, type, n, k->entry);
	bytes = (size_t)n * k->entry;
	if (f->backlog_head != f->backlog_tail || !way_down(link, q, &head, entries, bytes)) {
		/* Packets may overtake what waits: RESET would end flows that began behind it. */
		if (type == NFMETA_MSG_RESET || !backlog_put(f, &head, entries, bytes))
			return give_up(link, q);
		q->behind = link->carrier == NFMETA_CARRIER_INBAND;
	}
	next_seq(q);
	return 0;
}

int
nfmeta_flow_broadcast(const struct nfmeta_flow_to *to, uint16_t n_to, uint8_t type,
		      const void *entries, uint16_t n)
{
	int first = 0, rc;
	uint16_t i;

	if (to == NULL && n_to != 0)
		return nfmeta__fail(EINVAL, "there are no places, but %u are to be told", n_to);
	for (i = 0; i < n_to; i++) {
		rc = nfmeta_flow_send(to[i].link, to[i].queue, type, entries, n);
		if (first == 0)
			first = rc;
	}
	return first;
}

int
nfmeta_flow_snapshot(struct nfmeta_link *link, uint16_t queue,
		     const struct nfmeta_flow_state *flows, uint16_t n, uint8_t flags)
{
	const bool begins = (flags & NFMETA_MSG_FIRST) != 0;
	struct nfmeta_flow_batch head;
	struct upfront *q;
	struct feed *f;
	uint64_t types;
	int rc;

	rc = nfmeta__not_primary(link, queue);
	if (rc != 0)
		return rc;
	if ((flags & ~(NFMETA_MSG_FIRST | NFMETA_MSG_LAST)) != 0)
		return nfmeta__fail(EINVAL, "flags 0x%x: NFMETA_MSG_FIRST and _LAST are allowed",
				    flags);
	if (n > NFMETA_FLOW_MAX(struct nfmeta_flow_state) || (n != 0 && flows == NULL))
		return nfmeta__fail(EINVAL,
				    "%u flows at %p in a part of a snapshot: 0 to %zu are "
				    "allowed",
				    n, (const void *)flows,
				    NFMETA_FLOW_MAX(struct nfmeta_flow_state));
	if (link->carrier != NFMETA_CARRIER_RING && link->carrier != NFMETA_CARRIER_INBAND)
		return no_carrier(link);
	q = &link->q[queue];
	f = q->feed;
	types = wanted(link, q);
	if (types == 0 || (begins && f->request == 0))
		return nfmeta__fail(
			NFMETA_EGAP,
			"no NF at queue %u of link '%s' waits for a snapshot: begin one "
			"when a RESYNC comes",
			queue, link->shared->name);
	if (!begins && f->state != NFMETA_FEED_SNAPSHOT)
		return nfmeta__fail(
			NFMETA_EGAP,
			"the snapshot for queue %u of link '%s' is void: %s; leave it, a "
			"RESYNC comes",
			queue, link->shared->name,
			f->state == NFMETA_FEED_GAP ? "a message was given up" : "none was begun");
	head = header(link, q, NFMETA_MSG_SNAPSHOT, n, sizeof(*flows));
	head.flags = flags;
	head.ask = begins ? f->request : f->ask;
	head.epoch = begins ? f->request_epoch : f->epoch;
	if (f->backlog_head != f->backlog_tail ||
	    !way_down(link, q, &head, flows, n * sizeof(*flows)))
		return nfmeta__fail(EAGAIN, "queue %u of link '%s' has no room now", queue,
				    link->shared->name);
	next_seq(q);
	if (begins) {
		f->epoch = f->request_epoch;
		f->ask = f->request;
		f->request = 0;
		f->marker = false;
		q->behind = false;
	}
	f->state = flags & NFMETA_MSG_LAST ? NFMETA_FEED_STREAM : NFMETA_FEED_SNAPSHOT;
	return 0;
}

/* The next message of the NF, or NULL. */
static const struct nfmeta_flow_batch *
up_head(const struct nfmeta_link *link, struct feed *f)
{
	if (link->carrier != NFMETA_CARRIER_INBAND)
		return reader_head(&f->in);
	if (f->meta_head == f->meta_tail)
		return NULL;
	return meta_message(f->meta[f->meta_head & f->meta_mask]);
}

static void
up_next(struct nfmeta_link *link, struct upfront *q)
{
	struct feed *f = q->feed;

	if (link->carrier != NFMETA_CARRIER_INBAND)
		reader_next(&f->in);
	else
		nfmeta__meta_done(q, f->meta[f->meta_head++ & f->meta_mask]);
	put(&q->shared->flow_collected, ++f->collected);
}

static void
take_request(struct upfront *q, const struct nfmeta_flow_batch *b)
{
	struct feed *f = q->feed;

	if (b->epoch != f->epoch && f->state != NFMETA_FEED_IDLE) {
		backlog_clear(q); /* another NF: what waits was for the one before */
		f->state = NFMETA_FEED_IDLE;
	}
	f->request = b->ask;
	f->request_epoch = b->epoch;
}

int
nfmeta_flow_collect(struct nfmeta_link *link, uint16_t queue,
		    const struct nfmeta_flow_batch **batch)
{
	const struct nfmeta_flow_batch *b;
	struct upfront *q;
	struct feed *f;
	int rc;

	if (unlikely(link == NULL || queue >= link->served))
		return nfmeta__not_primary(link, queue);
	if (unlikely(batch == NULL))
		return no_batch();
	q = &link->q[queue];
	f = q->feed;
	if (unlikely(f == NULL))
		return no_carrier(link);
	if (f->shown) {
		f->shown = false;
		up_next(link, q);
	}
	if (f->backlog_head != f->backlog_tail || f->marker)
		wanted(link, q);
	while ((b = up_head(link, f)) != NULL) {
		/* The epoch is looked at after the message was seen: not that of an NF before. */
		if (framed(b) &&
		    (b->instance != link->instance ||
		     b->epoch != __atomic_load_n(&q->shared->epoch, __ATOMIC_ACQUIRE))) {
			f->stale++;
			up_next(link, q);
			continue;
		}
		rc = judge(b, UP);
		if (rc < 0) {
			f->refused++;
			rc = bad_message(link, b);
			up_next(link, q);
			return rc;
		}
		if (rc == 0 && !own_type(b->type)) {
			up_next(link, q);
			continue;
		}
		if (b->type == NFMETA_MSG_RESYNC)
			take_request(q, b);
		if (b->type == NFMETA_MSG_ACK)
			f->acked = ((const struct nfmeta_flow_mark *)nfmeta_flow_entry(b, 0))->seq;
		f->shown = true;
		*batch = b;
		return 1;
	}
	return 0;
}

/* ---- The NF's side --------------------------------------------------------------------- */

int
nfmeta__sync_make(struct nfmeta_link *link)
{
	link->nf.sync = calloc(1, sizeof(struct sync));
	if (link->nf.sync == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", sizeof(struct sync));
	return 0;
}

static void
drop_meta(struct nf *nf)
{
	if (nf->sync->meta != NULL)
		nfmeta__meta_return(nf, nf->sync->meta);
	nf->sync->meta = NULL;
}

void
nfmeta__sync_leave(struct nfmeta_link *link)
{
	if (link->nf.sync == NULL)
		return;
	put(&link->nf.shared->flow_types, 0);
	link->nf.sync->state = NFMETA_SYNC_OFF;
	link->nf.sync->shown = false;
	drop_meta(&link->nf);
}

void
nfmeta__sync_free(struct nfmeta_link *link)
{
	free(link->nf.sync);
	link->nf.sync = NULL;
}

static bool
way_up(struct nfmeta_link *link, uint8_t type, const void *entries, uint16_t n, uint16_t entry_size)
{
	struct nf *nf = &link->nf;
	struct sync *s = nf->sync;
	struct nfmeta_flow_batch head = {
		.magic = NFMETA_FLOW_MAGIC,
		.abi = NFMETA_ABI_MAJOR,
		.type = type,
		.count = n,
		.entry_size = entry_size,
		.source = link->queue,
		.ask = type == NFMETA_MSG_RESYNC ? s->ask : 0,
		.instance = link->instance,
		.epoch = s->epoch,
		.seq = s->replies + 1,
	};
	size_t bytes = (size_t)n * entry_size;
	struct rte_mbuf *m;

	if (link->carrier != NFMETA_CARRIER_INBAND) {
		if (!ring_put(s->up, &head, entries, bytes))
			return false;
	} else {
		if (nfmeta_blank_burst(link, &m, 1) == 0)
			return false;
		meta_fill(m, &head, entries, bytes);
		nfmeta__meta_reply(nf, m);
	}
	put(&nf->shared->flow_replies, ++s->replies);
	return true;
}

/* What the library itself has to say; false: there is no room for it now. */
static bool
say_due(struct nfmeta_link *link)
{
	struct sync *s = link->nf.sync;
	struct nfmeta_flow_mark mark;

	if (s->resync) {
		mark.seq = s->expected;
		s->resync = !way_up(link, NFMETA_MSG_RESYNC, &mark, 1, sizeof(mark));
	}
	if (s->ack != 0 && !s->resync) {
		mark.seq = s->ack;
		if (way_up(link, NFMETA_MSG_ACK, &mark, 1, sizeof(mark)))
			s->ack = 0;
	}
	return !s->resync && s->ack == 0;
}

static void
get_lost(struct sync *s)
{
	s->state = NFMETA_SYNC_LOST;
	s->ack = 0;
	s->resync = true;
	if (++s->ask == 0)
		s->ask = 1;
}

int
nfmeta_flow_subscribe(struct nfmeta_link *link, uint64_t types)
{
	/* from NEW to HEARTBEAT, and own types */
	static const uint64_t down = UINT64_C(0xffffffff000000fe);
	int rc = nfmeta__not_nf(link);
	struct sync *s;

	if (rc != 0)
		return rc;
	if (link->carrier != NFMETA_CARRIER_RING && link->carrier != NFMETA_CARRIER_INBAND)
		return no_carrier(link);
	if ((types & ~down) != 0)
		return nfmeta__fail(EINVAL,
				    "0x%" PRIx64 " in the types: no such messages come down; say "
				    "NFMETA_TYPE(NFMETA_MSG_NEW) | ...",
				    types & ~down);
	if (types == 0) {
		nfmeta__sync_leave(link);
		return 0;
	}
	s = link->nf.sync;
	s->expected = s->seen + 1;
	s->types = types;
	put(&link->nf.shared->flow_types, types);
	get_lost(s);
	say_due(link);
	return 0;
}

static void
take_meta(struct nf *nf, void *tagged)
{
	struct rte_mbuf *m = (struct rte_mbuf *)((uintptr_t)tagged & ~(uintptr_t)NFMETA_HOW_MASK);
	unsigned int i;

	rte_prefetch0(m);
	for (i = 0; i < META_LINES; i++)
		rte_prefetch0(meta_guess(m) + i * RTE_CACHE_LINE_SIZE);
	/* Counted when it goes back: it is not one of those that the caller holds. */
	nf->sync->meta = m;
}

/* In-band: take the next element off the ring if it is a meta packet. */
static void
look_inband(struct nf *nf)
{
	void *e;

	if (nf->sync->meta != NULL || rte_ring_dequeue_burst_start(nf->down, &e, 1, NULL) == 0)
		return;
	if (((uintptr_t)e & NFMETA_HOW_MASK) == NFMETA_META) {
		rte_ring_dequeue_finish(nf->down, 1);
		take_meta(nf, e);
	} else {
		rte_ring_dequeue_finish(nf->down, 0);
	}
}

static const struct nfmeta_flow_batch *
down_head(const struct nfmeta_link *link, struct nf *nf)
{
	if (link->carrier != NFMETA_CARRIER_INBAND)
		return reader_head(&nf->sync->in);
	look_inband(nf);
	return nf->sync->meta != NULL ? meta_message(nf->sync->meta) : NULL;
}

static void
down_next(const struct nfmeta_link *link, struct nf *nf)
{
	nf->sync->shown = false;
	if (link->carrier != NFMETA_CARRIER_INBAND)
		reader_next(&nf->sync->in);
	else
		drop_meta(nf);
}

/* Not before the packets that were sent before it.  A barrier that never comes is none. */
static bool
too_early(const struct nf *nf, const struct nfmeta_flow_batch *b)
{
	return b->barrier > nf->received && b->barrier <= get(&nf->shared->sent);
}

/* What a well-formed message does to the state; true: the caller gets it. */
static bool
step(struct nf *nf, const struct nfmeta_flow_batch *b, bool skip)
{
	struct sync *s = nf->sync;
	const bool begins = b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_FIRST) != 0;

	if (s->state == NFMETA_SYNC_LOST && !(begins && b->ask == s->ask))
		return false;
	if (s->state != NFMETA_SYNC_LOST && b->seq != s->expected) {
		s->gaps++;
		get_lost(s);
		return false;
	}
	s->seen = b->seq;
	s->expected = b->seq + 1;
	put(&nf->shared->flow_seen, s->seen);
	if (skip)
		return false;
	if (begins)
		s->state = NFMETA_SYNC_LOADING;
	if (b->type == NFMETA_MSG_HEARTBEAT) {
		if (s->state == NFMETA_SYNC_SYNCED)
			s->ack = b->seq;
		return false;
	}
	if (b->type == NFMETA_MSG_RESET ||
	    (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_LAST) != 0))
		s->state = NFMETA_SYNC_SYNCED;
	return true;
}

int
nfmeta_flow_next(struct nfmeta_link *link, const struct nfmeta_flow_batch **batch)
{
	const struct nfmeta_flow_batch *b;
	struct nf *nf;
	struct sync *s;
	int rc;

	if (unlikely(link == NULL || link->served != 0))
		return nfmeta__not_nf(link);
	if (unlikely(batch == NULL))
		return no_batch();
	nf = &link->nf;
	s = nf->sync;
	if (s == NULL || s->state == NFMETA_SYNC_OFF)
		return 0;
	if (s->shown)
		down_next(link, nf);
	if (s->resync || s->ack != 0)
		say_due(link);
	while ((b = down_head(link, nf)) != NULL) {
		/* First: what was not for this NF need not be understood by it. */
		if (framed(b) && (b->instance != link->instance || b->epoch != s->epoch)) {
			s->stale++;
			down_next(link, nf);
			continue;
		}
		rc = judge(b, DOWN);
		if (rc < 0) {
			s->refused++;
			get_lost(s);
			rc = bad_message(link, b);
			down_next(link, nf);
			say_due(link);
			return rc;
		}
		if (link->carrier == NFMETA_CARRIER_RING && too_early(nf, b))
			break;
		if (step(nf, b,
			 rc == 0 &&
				 !(own_type(b->type) && (s->types & NFMETA_TYPE(b->type)) != 0))) {
			s->shown = true;
			*batch = b;
			return 1;
		}
		down_next(link, nf);
		say_due(link);
	}
	return 0;
}

uint16_t
nfmeta__flow_gate(struct nf *nf, uint16_t n)
{
	const struct nfmeta_flow_batch *b;
	uint32_t packets;

	if (nf->sync->state == NFMETA_SYNC_OFF || nf->sync->in.ring == NULL)
		return n;
	/*
	 * First the packets that are there, then the messages: one that was sent
	 * before any of these packets is seen.
	 */
	packets = there(nf->down);
	b = reader_head(&nf->sync->in);
	if (packets < n)
		n = (uint16_t)packets;
	if (b == NULL)
		return n;
	if (nf->sync->shown || judge(b, DOWN) < 0 || !too_early(nf, b))
		return 0;
	return RTE_MIN(n, (uint16_t)RTE_MIN(b->barrier - nf->received, (uint64_t)UINT16_MAX));
}

uint16_t
nfmeta__flow_recv(struct nf *nf, struct rte_mbuf **pkts, uint16_t n, unsigned int *left)
{
	uint32_t i, k;

	for (;;) {
		if (nf->sync->meta != NULL) {
			if (nf->sync->state != NFMETA_SYNC_OFF)
				return 0;
			drop_meta(nf); /* it was for an NF before this one */
		}
		k = rte_ring_dequeue_burst_start(nf->down, (void **)pkts, n, left);
		if (k == 0)
			return 0;
		for (i = 0; i < k; i++)
			if (unlikely(((uintptr_t)pkts[i] & NFMETA_HOW_MASK) == NFMETA_META))
				break;
		if (i != 0) {
			rte_ring_dequeue_finish(nf->down, i);
			*left += k - i;
			return (uint16_t)i;
		}
		rte_ring_dequeue_finish(nf->down, 1);
		take_meta(nf, pkts[0]);
	}
}

int
nfmeta_flow_reply(struct nfmeta_link *link, uint8_t type, const void *entries, uint16_t n)
{
	int rc = nfmeta__not_nf(link);
	const struct kind *k;

	if (rc != 0)
		return rc;
	if (link->nf.sync == NULL)
		return no_carrier(link);
	k = sendable(type, entries, n, UP);
	if (k == NULL)
		return -EINVAL;
	if (!say_due(link) || !way_up(link, type, entries, n, k->entry))
		return nfmeta__fail(EAGAIN, "link '%s' has no room for a message up now",
				    link->shared->name);
	return 0;
}

/* ---- Both ---------------------------------------------------------------------------------- */

int
nfmeta_flow_stats(const struct nfmeta_link *link, uint16_t queue, struct nfmeta_flow_stats *stats)
{
	struct nfmeta_flow_stats now = {.sz = sizeof(now)};
	const struct nfmeta_shared_queue *q;
	const struct feed *f;
	const struct sync *s;

	if (link == NULL || stats == NULL || stats->sz < 2 * sizeof(uint32_t))
		return nfmeta__fail(EINVAL, "there is no link, or stats.sz is not set");
	if (queue >= link->queues)
		return nfmeta__fail(EINVAL, "link '%s' has queues 0 to %u, there is no queue %u",
				    link->shared->name, link->queues - 1u, queue);
	if (link->carrier == 0)
		return no_carrier(link);
	q = nfmeta__current_queue(link, queue);
	now.sent = get(&q->flow_sent);
	now.lost = get(&q->flow_lost);
	now.seen = get(&q->flow_seen);
	now.collected = get(&q->flow_collected);
	now.replies = get(&q->flow_replies);
	if (link->served != 0) {
		f = link->q[queue].feed;
		now.state = f->state;
		now.acked = f->acked;
		now.gaps = f->gaps;
		now.stale = f->stale;
		now.refused = f->refused;
		now.backlog = f->backlog_messages;
	} else if (q == link->nf.shared) {
		s = link->nf.sync;
		now.state = s->state;
		now.gaps = s->gaps;
		now.stale = s->stale;
		now.refused = s->refused;
	}
	now.sz = RTE_MIN(stats->sz, (uint32_t)sizeof(now));
	memcpy(stats, &now, now.sz);
	return 0;
}
