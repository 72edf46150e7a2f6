/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "link.h" /* first: it chooses the memory model of rte_ring */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>

/* ---- Where mbufs lie --------------------------------------------------------- */

struct span {
	uintptr_t lo, hi;
};

/* DPDK does not say which of its pools hold mbufs. */
static bool
holds_mbufs(const struct rte_mempool *mp)
{
	const struct rte_mempool_objhdr *first = STAILQ_FIRST(&mp->elt_list);

	return first != NULL && mp->elt_size >= sizeof(struct rte_mbuf) &&
	       mp->private_data_size >= sizeof(struct rte_pktmbuf_pool_private) &&
	       ((const struct rte_mbuf *)(first + 1))->pool == mp;
}

static void
add_memory(struct rte_mempool *mp __rte_unused, void *arg, struct rte_mempool_memhdr *mem,
	   unsigned int i __rte_unused)
{
	struct span *s = arg;

	s->lo = RTE_MIN(s->lo, (uintptr_t)mem->addr);
	s->hi = RTE_MAX(s->hi, (uintptr_t)mem->addr + mem->len);
}

static void
add_pool(struct rte_mempool *mp, void *arg)
{
	struct span *s = arg;

	if (!holds_mbufs(mp))
		return;
	rte_mempool_mem_iter(mp, add_memory, s);
}

struct visit {
	void (*see)(struct rte_mbuf *m, void *arg);
	void *arg;
};

static void
see_object(struct rte_mempool *mp __rte_unused, void *arg, void *object,
	   unsigned int i __rte_unused)
{
	const struct visit *v = arg;

	v->see(object, v->arg);
}

static void
see_pool(struct rte_mempool *mp, void *arg)
{
	if (holds_mbufs(mp))
		rte_mempool_obj_iter(mp, see_object, arg);
}

/* Calls see() for every mbuf that there is. */
static void
see_all(void (*see)(struct rte_mbuf *, void *), void *arg)
{
	struct visit v = {see, arg};

	rte_mempool_walk(see_pool, &v);
}

_Static_assert(sizeof(struct rte_mbuf) + sizeof(struct rte_mempool_objhdr) > 1 << PLACE_SHIFT,
	       "mbufs lie closer to each other than places");

/* ---- The map -------------------------------------------------------------------- */

struct maps {
	const struct map *from;
	struct map *to;
};

static void
carry_over(struct rte_mbuf *m, void *arg)
{
	const struct maps *maps = arg;
	uint64_t was = place_of(maps->from, m), is = place_of(maps->to, m);

	if (was < maps->from->places && is < maps->to->places)
		maps->to->at[is] = maps->from->at[was];
}

/* Most of it is never touched and takes no memory: pools may lie far from each other. */
bool
nfmeta__map_make(struct upfront *q)
{
	struct span s = {.lo = UINTPTR_MAX};
	struct map old = q->map;
	uint64_t places;
	void *at;

	rte_mempool_walk(add_pool, &s);
	if (s.lo >= s.hi)
		return true; /* no pool yet */
	places = ((s.hi - s.lo) >> PLACE_SHIFT) + 1;
	at = mmap(NULL, places, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	if (at == MAP_FAILED)
		return false;
	q->map = (struct map){.at = at, .base = s.lo, .places = places};
	if (old.at != NULL) {
		see_all(carry_over, &(struct maps){&old, &q->map});
		munmap(old.at, old.places);
	}
	return true;
}

struct freeing {
	struct map *map;
	uint64_t n;
};

static void
free_one(struct rte_mbuf *m, void *arg)
{
	struct freeing *f = arg;
	uint64_t place = place_of(f->map, m);

	if (place >= f->map->places || f->map->at[place] == AT_NONE)
		return;
	f->map->at[place] = AT_NONE;
	rte_pktmbuf_free(m);
	f->n++;
}

uint64_t
nfmeta__map_free(struct map *map, bool missing)
{
	struct freeing f = {.map = map};

	if (map->at == NULL)
		return 0;
	if (missing)
		see_all(free_one, &f);
	munmap(map->at, map->places);
	*map = (struct map){0};
	return f.n;
}

/* ---- What a dead NF had ------------------------------------------------------------ */

/*
 * A peer that died inside an operation left a head without its tail.  It is dead:
 * nobody else writes these.
 */
static void
mend_consumer(struct rte_ring *ring)
{
	uint32_t tail, there;

	if (ring == NULL)
		return;
	tail = ring->cons.tail;
	there = ring->prod.tail - tail;
	if (there > ring->capacity) /* it wrote what is not its own */
		tail = ring->prod.tail;
	ring->cons.tail = tail;
	ring->cons.head = tail;
}

static void
mend_producer(struct rte_ring *ring)
{
	if (ring == NULL)
		return;
	if (ring->prod.tail - ring->cons.tail > ring->capacity)
		ring->prod.tail = ring->cons.tail;
	ring->prod.head = ring->prod.tail;
}

static void
discard(struct rte_ring *ring)
{
	void *words[64];

	while (ring != NULL && rte_ring_sc_dequeue_burst(ring, words, RTE_DIM(words), NULL) != 0)
		;
}

/* 1: the dead NF's lease is ours; 0: nobody died; -EBUSY: an NF is there. */
static int
begin(struct nfmeta_link *link, struct upfront *q)
{
	uint32_t state = __atomic_load_n(&q->shared->state, __ATOMIC_ACQUIRE);

	if (state == NFMETA_QUEUE_FREE)
		return 0;
	if (q->lease < 0 || nfmeta__lease_seize(q) != 0)
		return nfmeta__fail(
			EBUSY, "the NF of queue %u of link '%s' lives: nothing can be reclaimed",
			(unsigned int)(q - link->q), link->shared->name);
	state = __atomic_load_n(&q->shared->state, __ATOMIC_ACQUIRE);
	if (state == NFMETA_QUEUE_FREE) { /* it had just left in good order */
		nfmeta__lease_leave(q);
		return 0;
	}
	__atomic_store_n(&q->shared->state, NFMETA_QUEUE_DEAD, __ATOMIC_RELEASE);
	mend_consumer(q->down);
	mend_producer(q->up);
	mend_consumer(q->blank);
	if (q->feed != NULL) {
		mend_consumer(q->feed->down);
		mend_producer(q->feed->in.ring);
		discard(q->feed->down);
		nfmeta__feed_reset(q);
	}
	q->reclaiming = true;
	return 1;
}

/* The mbuf of a slot, if it is of the given kind and was not found before; or NULL. */
static struct rte_mbuf *
find_slot(struct upfront *q, const struct rte_ring *ring, uint32_t slot, uint8_t what,
	  uint8_t becomes)
{
	void *const *slots = (void *const *)&ring[1];
	uintptr_t e = (uintptr_t)slots[slot & ring->mask] & ~(uintptr_t)NFMETA_HOW_MASK;
	uint64_t place = place_of(&q->map, (void *)e);

	if (place >= q->map.places || q->map.at[place] != what)
		return NULL;
	q->map.at[place] = becomes;
	return (struct rte_mbuf *)e;
}

struct hands {
	struct upfront *q;
	uint32_t first; /* of dead[], filled from behind */
	uint32_t blanks;
};

/* Not on a ring: it was in the NF's hands. */
static void
from_hands(struct rte_mbuf *m, void *arg)
{
	struct hands *h = arg;
	struct upfront *q = h->q;
	uint64_t place = place_of(&q->map, m);

	if (place >= q->map.places)
		return;
	switch (q->map.at[place]) {
	case AT_PACKET:
		if (h->first == 0)
			return;
		q->dead[--h->first] = m;
		break;
	case AT_META:
		rte_pktmbuf_free(m);
		break;
	case AT_BLANK:
		rte_pktmbuf_free(m);
		h->blanks++;
		break;
	default:
		return;
	}
	q->map.at[place] = AT_NONE;
}

/*
 * All that is at the NF, into dead[]: first what it had in its hands, then what it
 * had not received; each in the order sent, as far as that can be known: the
 * slots of the down ring that are behind its consumer still hold what was
 * received last.
 */
static int
gather(struct upfront *q)
{
	const struct rte_ring *down = q->down, *blank = q->blank;
	uint32_t tail = down->cons.tail, waiting = down->prod.tail - tail, end, i, n;
	uint32_t at_nf = (uint32_t)(q->sent - q->collected);
	struct hands h = {.q = q};
	struct rte_mbuf *m;

	q->dead = malloc((at_nf + 1) * sizeof(struct rte_mbuf *));
	if (q->dead == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted; call again",
				    at_nf * sizeof(struct rte_mbuf *));
	waiting = RTE_MIN(waiting, at_nf);
	q->dead_hands = h.first = end = at_nf - waiting;
	for (i = 0; i < waiting; i++) {
		m = find_slot(q, down, tail + i, AT_PACKET, AT_PACKET | AT_RING);
		if (m != NULL)
			q->dead[end++] = m;
	}
	discard(q->down);
	for (i = 1; i <= down->size - waiting && h.first > 0; i++) {
		m = find_slot(q, down, tail - i, AT_PACKET, AT_NONE);
		if (m != NULL)
			q->dead[--h.first] = m;
	}
	/* What is older, and blanks and metas: only the map knows. */
	n = blank != NULL ? blank->prod.tail - blank->cons.tail : 0;
	for (i = 0; i < n; i++)
		find_slot(q, blank, blank->cons.tail + i, AT_BLANK, AT_BLANK | AT_RING);
	see_all(from_hands, &h);
	for (i = 0; i < n; i++)
		find_slot(q, blank, blank->cons.tail + i, AT_BLANK | AT_RING, AT_BLANK);
	for (i = q->dead_hands; i < end; i++)
		q->map.at[place_of(&q->map, q->dead[i])] = AT_NONE;
	q->unstocked += h.blanks;
	q->dead_at = h.first;
	q->dead_all = end;
	return 0;
}

/* The queue as if the NF had left in good order. */
static void
finish(struct upfront *q)
{
	struct nfmeta_shared_queue *s = q->shared;
	uint32_t waiting = q->down->prod.tail - q->down->cons.tail; /* sent since */
	uint64_t blanks = q->stocked;

	/* Metas travel as packets, and none is left. */
	q->collected = q->back = q->sent - waiting;
	q->meta_collected = q->meta_sent;
	if (q->blank != NULL)
		blanks -= q->blank->prod.tail - q->blank->cons.tail;
	put(&s->meta_collected, q->meta_collected);
	put(&s->meta_returned, q->meta_sent);
	put(&s->meta_received, q->meta_sent);
	put(&s->collected, q->collected);
	put(&s->returned, q->collected);
	put(&s->received, q->collected);
	put(&s->unstocked, q->unstocked);
	put(&s->injected, blanks);
	put(&s->blanks, blanks);
	free(q->dead);
	q->dead = NULL;
	q->reclaiming = false;
	__atomic_store_n(&s->state, NFMETA_QUEUE_FREE, __ATOMIC_RELEASE);
	nfmeta__lease_leave(q);
}

int
nfmeta_link_reclaim(struct nfmeta_link *link, uint16_t queue, struct rte_mbuf **pkts, uint8_t *how,
		    uint16_t n)
{
	uint8_t policy;
	struct upfront *q;
	uint16_t k;
	int rc;

	rc = nfmeta__not_primary(link, queue);
	if (rc != 0)
		return rc;
	if (n == 0 || pkts == NULL || how == NULL)
		return nfmeta__fail(EINVAL, "there is no place to put the packets");
	q = &link->q[queue];
	if (!q->reclaiming) {
		rc = begin(link, q);
		if (rc <= 0)
			return rc;
	}
	if (q->dead == NULL) {
		k = nfmeta_collect_burst(link, queue, pkts, how, n);
		if (k != 0)
			return k;
		rc = gather(q);
		if (rc != 0)
			return rc;
	}
	policy = NFMETA_RECLAIMED |
		 (link->shared->when_full == NFMETA_FULL_BYPASS ? NFMETA_FORWARD : NFMETA_DROP);
	for (k = 0; k < n && q->dead_at < q->dead_all; k++, q->dead_at++) {
		bool orphan = q->dead_at < q->dead_hands;

		pkts[k] = q->dead[q->dead_at];
		how[k] = orphan ? policy | NFMETA_ORPHAN : policy;
		q->orphans += orphan;
	}
	if (k == 0) {
		finish(q);
		return 0;
	}
	q->collected += k;
	q->back += k;
	q->reclaimed += k;
	/* Against the way that is read: no difference is negative meanwhile. */
	put(&q->shared->received, RTE_MAX(get(&q->shared->received), q->collected));
	put(&q->shared->returned, RTE_MAX(get(&q->shared->returned), q->collected));
	put(&q->shared->collected, q->collected);
	return k;
}

/* ---- An NF that stands still --------------------------------------------------------- */

/* What is set aside came back already: it is to be found in the new map, as what it was. */
static void
keep_stash(struct upfront *q, struct map *old)
{
	uint32_t i, k = q->stash_head;

	for (i = k; i < q->stash_tail; i++) {
		uintptr_t e = (uintptr_t)q->stash[i], how = e & NFMETA_HOW_MASK;
		uint64_t was = place_of(old, (void *)e), is;
		uint8_t what = was < old->places ? old->at[was] : AT_NONE;

		if (what == AT_NONE) { /* it was not at the NF, or came twice */
			q->foreign++;
			continue;
		}
		is = place_of(&q->map, (void *)e);
		if (is >= q->map.places)
			continue;
		if (what != (AT_OF_HOW >> 4 * how & 0xf))
			how = how_mended(what);
		q->map.at[is] = what;
		old->at[was] = AT_NONE;
		q->stash[k++] = (void *)((e & ~(uintptr_t)NFMETA_HOW_MASK) | how);
	}
	q->stash_tail = k;
}

/* The counters go on, as if all that was at the NF had come back. */
static uint64_t
count_on(struct upfront *q, const struct nfmeta_shared_queue *old)
{
	struct nfmeta_shared_queue *s = q->shared;
	uint64_t aside = 0, metas_aside = 0, blanks_aside = 0, unread = 0, packets;
	uint32_t i;

	for (i = q->stash_head; i < q->stash_tail; i++) {
		uintptr_t how = (uintptr_t)q->stash[i] & NFMETA_HOW_MASK;

		aside += (how & NFMETA_INJECTED) == 0;
		metas_aside += how == NFMETA_META;
		blanks_aside += (how & NFMETA_INJECTED) != 0;
	}
	if (q->feed != NULL) /* messages that were not read yet */
		unread = q->feed->meta_tail - q->feed->meta_head;
	blanks_aside += unread;
	packets = q->sent - aside - q->collected - (q->meta_sent - metas_aside - q->meta_collected);
	q->cut_off += packets;
	q->collected = q->sent - aside;
	q->back = q->sent;
	q->meta_collected = q->meta_sent - metas_aside;
	q->unstocked = q->stocked - blanks_aside;
	s->epoch = __atomic_load_n(&old->epoch, __ATOMIC_RELAXED);
	s->sent = s->received = s->returned = q->sent;
	s->collected = q->collected;
	s->refused = q->refused;
	s->stocked = s->blanks = s->injected = q->stocked;
	s->unstocked = q->unstocked;
	s->meta_sent = s->meta_received = s->meta_returned = q->meta_sent;
	s->meta_collected = q->meta_collected;
	if (q->feed != NULL) {
		s->flow_sent = s->flow_seen = q->feed->seq;
		s->flow_lost = q->feed->lost;
		s->flow_collected = q->feed->collected;
		s->flow_replies = q->feed->collected + unread;
	}
	return packets;
}

static int
cut_off(struct nfmeta_link *link, uint16_t queue, uint64_t *packets)
{
	struct nfmeta_shared_queue *old;
	struct fenced *f;
	struct upfront *q;
	uint64_t n;
	int lease;

	q = &link->q[queue];
	old = q->shared;
	if (q->reclaiming || __atomic_load_n(&old->state, __ATOMIC_ACQUIRE) != NFMETA_QUEUE_TAKEN)
		return nfmeta__fail(EINVAL, "no NF is at queue %u of link '%s'", queue,
				    link->shared->name);
	if (q->lease < 0)
		return nfmeta__fail(EBUSY,
				    "the NF of queue %u of link '%s' is a thread of this process: "
				    "it cannot be cut off",
				    queue, link->shared->name);
	if (!nfmeta__lease_held(q->lease))
		return nfmeta__fail(
			EINVAL, "the NF of queue %u of link '%s' is dead: nfmeta_link_reclaim()",
			queue, link->shared->name);

	/* All that can fail comes first. */
	if (link->spares == 0 || link->free_places == 0)
		return nfmeta__fail(EAGAIN,
				    "link '%s' has no spare rings for queue %u: end the NFs that "
				    "were cut off before",
				    link->shared->name, queue);
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", sizeof(*f));
	f->map = q->map;
	q->map = (struct map){0};
	if (!nfmeta__map_make(q))
		lease = nfmeta__fail(ENOMEM, "no memory to note which packets are at the NF");
	else
		lease = nfmeta__lease_create(link->shared->name, queue, true);
	if (lease < 0) {
		nfmeta__map_free(&q->map, false);
		q->map = f->map;
		free(f);
		return lease;
	}

	f->rings = (struct rings){.down = q->down, .up = q->up, .blank = q->blank};
	if (q->feed != NULL) {
		nfmeta__feed_reset(q);
		if (link->carrier != NFMETA_CARRIER_INBAND) /* the message goes with its ring */
			q->feed->shown = false;
		f->rings.flow_down = q->feed->down;
		f->rings.flow_up = q->feed->in.ring;
	}
	f->place = q->place;
	f->lease = q->lease;
	f->next = q->fenced;
	q->fenced = f;

	q->lease = lease;
	q->place = link->free_place[--link->free_places];
	q->shared = nfmeta__place(link, q->place);
	memset(q->shared, 0, sizeof(*q->shared));
	nfmeta__rings_use(q, &link->spare[--link->spares]);
	keep_stash(q, &f->map);
	n = count_on(q, old);
	/* An attacher follows from the queue's first struct; an NF that wakes up looks at its. */
	__atomic_store_n(&old->moved, q->place, __ATOMIC_RELEASE);
	__atomic_store_n(&nfmeta__place(link, queue)->moved, q->place, __ATOMIC_RELEASE);
	nfmeta__lease_leave(q);
	if (packets != NULL)
		*packets = n;
	return 0;
}

int
nfmeta_link_fence(struct nfmeta_link *link, uint16_t queue, uint64_t *packets)
{
	int rc = nfmeta__not_primary(link, queue);

	if (rc != 0)
		return rc;
	rte_spinlock_lock(&link->slow);
	rc = cut_off(link, queue, packets);
	rte_spinlock_unlock(&link->slow);
	return rc;
}

static void
reset(struct rings *r)
{
	struct rte_ring *all[] = {r->down, r->up, r->blank, r->flow_down, r->flow_up};
	size_t i;

	for (i = 0; i < RTE_DIM(all); i++)
		if (all[i] != NULL)
			rte_ring_reset(all[i]);
}

bool
nfmeta__fenced_sweep(struct nfmeta_link *link, uint32_t queue)
{
	struct fenced **at = &link->q[queue].fenced, *f;

	while ((f = *at) != NULL) {
		if (nfmeta__lease_held(f->lease)) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		nfmeta__map_free(&f->map, true);
		/* Not given back: DPDK would ask all secondaries, one of which may be dying. */
		reset(&f->rings);
		link->spare[link->spares++] = f->rings;
		if (f->place >= link->queues)
			link->free_place[link->free_places++] = f->place;
		close(f->lease);
		free(f);
	}
	return link->q[queue].fenced == NULL;
}
