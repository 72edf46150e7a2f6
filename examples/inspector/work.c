/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "inspector.h"

struct worker {
	const struct inspector_opts *o;
	struct nfmeta_field field;
	struct work_counts c;
	struct tracker track;  /* trust, audit: flows by the splitter's id */
	struct rte_hash *hash; /* redo, audit, and trust for packets without record */
	struct seen *own;      /* its number for a key is the index */
	uint64_t next_drop;
	uint64_t cost;	       /* TSC cycles */
	uint64_t sleep, awake; /* likewise; TSC when it has slept for all so far */
	struct audit audit;
};

/* ---- the work itself, the same in all modes --------------------------------------- */

static inline uint8_t
byte_at(const struct rte_mbuf *m, uint32_t off)
{
	uint8_t copy;
	const uint8_t *p;

	if (likely(off < m->data_len))
		return *rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
	p = rte_pktmbuf_read(m, off, 1, &copy);
	return p != NULL ? *p : 0;
}

static inline void
look(struct worker *w, const struct rte_mbuf *m, uint16_t flags, uint32_t l3, uint32_t payload,
     struct seen *flow)
{
	w->c.bytes += m->pkt_len;
	flow->packets++;
	flow->bytes += m->pkt_len;
	w->c.digest += byte_at(m, l3);
	w->c.digest += byte_at(m, payload);
	if (unlikely((flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0))
		w->c.bad_checksum++;
	if (unlikely((flags & NFMETA_L2_VALID) == 0))
		w->c.invalid++;
}

/* ---- redo ---------------------------------------------------------------------------- */

/* Nobody has looked at the checksums. */
static inline void
forget_checksums(struct rte_mbuf *m)
{
	m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
}

static int
make_hash(struct worker *w)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters p = {
		.name = name,
		.entries = w->o->max_flows,
		.key_len = sizeof(struct nfmeta_flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};

	/* in memory of the primary: the name must be no other NF's, nor a thread's */
	snprintf(name, sizeof(name), "nf_%d_%jx", (int)getpid(), (uintmax_t)(uintptr_t)w);
	w->hash = rte_hash_create(&p);
	if (w->hash != NULL)
		w->own = calloc((size_t)rte_hash_max_key_id(w->hash) + 1, sizeof(*w->own));
	if (w->own == NULL)
		return complain("no memory for a table of %u flows: take a smaller --max-flows, or"
				" give the splitter more memory",
				w->o->max_flows);
	return 0;
}

/* Its number in our own table, or -1. */
static int32_t
own_flow(struct worker *w, const struct nfmeta_flow_key *key, int32_t found)
{
	if (found < 0 && key->ip_version != 0)
		found = rte_hash_add_key(w->hash, key);
	if (found < 0) {
		w->c.no_flow++;
		return -1;
	}
	if (w->own[found].state == SEEN_NEVER) {
		w->own[found].state = SEEN_OPEN;
		w->c.flows++;
	}
	return found;
}

/* The flow as the splitter names it. */
static void
audit_track(struct worker *w, const struct rte_mbuf *m)
{
	const struct nfmeta_record *r = nfmeta_record_peek(&w->field, m);
	struct seen *f;

	if (r == NULL || (r->flags & NFMETA_FLOW_KNOWN) == 0)
		return;
	f = track_packet(&w->track, r);
	f->packets++;
	f->bytes += m->pkt_len;
	track_counted(&w->track, f, r->flow_id);
}

static void
redo(struct worker *w, struct rte_mbuf **pkts, uint16_t n, bool audit)
{
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	const void *want[BURST];
	int32_t ids[BURST];
	uint16_t i;

	for (i = 0; i < n; i++) {
		forget_checksums(pkts[i]);
		want[i] = &keys[i];
	}
	nfmeta_classify_burst(w->o->policy, pkts, n, recs, keys);
	rte_hash_lookup_bulk(w->hash, want, n, ids);
	for (i = 0; i < n; i++)
		if (ids[i] >= 0)
			rte_prefetch0(&w->own[ids[i]]);
	for (i = 0; i < n; i++) {
		ids[i] = own_flow(w, &keys[i], ids[i]);
		look(w, pkts[i], recs[i].flags, recs[i].l3_off, recs[i].payload_off,
		     ids[i] >= 0 ? &w->own[ids[i]] : &w->track.nobody);
		if (audit) {
			audit_packet(&w->audit, &w->field, pkts[i], &recs[i], &keys[i], ids[i]);
			audit_track(w, pkts[i]);
		}
	}
}

/* ---- trust --------------------------------------------------------------------------- */

static inline struct seen *
known_flow(struct worker *w, const struct nfmeta_record *r)
{
	if (unlikely((r->flags & NFMETA_FLOW_KNOWN) == 0)) {
		w->c.no_flow++;
		return &w->track.nobody;
	}
	w->c.lookups_saved++;
	return track_packet(&w->track, r);
}

/* A packet without a record costs what it costs without nfmeta. */
static __rte_noinline void
no_record(struct worker *w, struct rte_mbuf *m)
{
	w->c.no_record++;
	if (w->hash == NULL && make_hash(w) != 0) {
		w->c.no_flow++;
		return;
	}
	redo(w, &m, 1, false);
}

static void
trust(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct nfmeta_record *r[BURST];
	struct seen *flow;
	uint32_t l3, payload;
	uint16_t i;

	for (i = 0; i < n; i++)
		nfmeta_record_prefetch(&w->field, pkts[i]);
	for (i = 0; i < n; i++) {
		r[i] = nfmeta_record_peek(&w->field, pkts[i]);
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const void *));
		if (unlikely(r[i] == NULL))
			continue;
		if (r[i]->flow_id < w->track.ids)
			rte_prefetch0(&w->track.by_id[r[i]->flow_id]);
		if (r[i]->size >= NFMETA_RECORD_CORE && r[i]->payload_off < pkts[i]->data_len)
			rte_prefetch0(
				rte_pktmbuf_mtod_offset(pkts[i], const void *, r[i]->payload_off));
	}
	for (i = 0; i < n; i++) {
		if (unlikely(r[i] == NULL)) {
			no_record(w, pkts[i]);
			continue;
		}
		if (likely(r[i]->size >= NFMETA_RECORD_CORE)) {
			l3 = r[i]->l3_off;
			payload = r[i]->payload_off;
		} else { /* the word alone: the lengths are in the mbuf */
			l3 = pkts[i]->l2_len;
			payload = l3 + pkts[i]->l3_len + pkts[i]->l4_len;
		}
		w->c.checks_saved += (r[i]->flags & NFMETA_L3_CSUM_MASK) != 0;
		w->c.checks_saved += (r[i]->flags & NFMETA_L4_CSUM_MASK) != 0;
		flow = known_flow(w, r[i]);
		if (r[i]->size >= NFMETA_RECORD_WIDE && r[i]->app_id != 0) {
			w->c.with_app++;
			w->c.app_differs += w->track.c.subscribed && r[i]->app_id != flow->app_id;
		}
		look(w, pkts[i], r[i]->flags, l3, payload, flow);
		track_counted(&w->track, flow, r[i]->flow_id);
	}
}

/* An NF with more to do than this one. */
static void
spend(uint64_t cycles)
{
	uint64_t until = rte_rdtsc() + cycles;

	while (rte_rdtsc() < until)
		rte_pause();
}

/*
 * An NF that waits, for a disk or another processor.  Sleeps last longer than they are
 * meant to: what was too much counts for the next ones.
 */
static void
sleep_for(struct worker *w, uint64_t cycles)
{
	uint64_t now = rte_rdtsc(), hz = rte_get_tsc_hz();

	if (w->awake + hz / 200 < now) /* it had nothing to do meanwhile */
		w->awake = now;
	w->awake += cycles;
	if (w->awake > now + hz / 20000)
		usleep((useconds_t)((w->awake - now) * 1000000 / hz));
}

/* ---- all modes ------------------------------------------------------------------------ */

void
worker_burst(struct worker *w, struct rte_mbuf **pkts, uint8_t *how, uint16_t n)
{
	uint64_t before = w->c.packets;

	w->c.packets += n;
	if (w->o->mode == MODE_TRUST)
		trust(w, pkts, n);
	else
		redo(w, pkts, n, w->o->mode == MODE_AUDIT);

	if (w->cost > 0)
		spend(n * w->cost);
	if (w->sleep > 0)
		sleep_for(w, n * w->sleep);
	memset(how, NFMETA_FORWARD, n);
	while (w->next_drop <= w->c.packets) {
		how[w->next_drop - before - 1] = NFMETA_DROP;
		w->next_drop += w->o->drop_every;
		w->c.dropped++;
	}
}

struct work_counts
worker_counts(const struct worker *w)
{
	struct work_counts c = w->c;

	if (w->o->mode == MODE_TRUST)
		c.flows += w->track.c.opened;
	return c;
}

struct tracker *
worker_tracker(struct worker *w)
{
	return &w->track;
}

const struct audit *
worker_audit(const struct worker *w)
{
	return &w->audit;
}

struct worker *
worker_create(const struct inspector_opts *o, const struct nfmeta_field *field)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		complain("out of memory");
		return NULL;
	}
	w->o = o;
	w->cost = o->cost * rte_get_tsc_hz() / 1000000000;
	w->sleep = o->sleep * rte_get_tsc_hz() / 1000000000;
	w->field = *field;
	w->next_drop = o->drop_every > 0 ? o->drop_every : UINT64_MAX;
	if (track_create(&w->track, o) != 0 || (o->mode != MODE_TRUST && make_hash(w) != 0)) {
		worker_destroy(w);
		return NULL;
	}
	if (o->mode == MODE_AUDIT &&
	    audit_create(&w->audit, (uint32_t)rte_hash_max_key_id(w->hash) + 1) != 0) {
		worker_destroy(w);
		return NULL;
	}
	return w;
}

void
worker_leave_hash(struct worker *w)
{
	w->hash = NULL;
}

int
worker_destroy(struct worker *w)
{
	int rc;

	if (w == NULL)
		return 0;
	audit_destroy(&w->audit);
	rc = track_destroy(&w->track);
	rte_hash_free(w->hash);
	free(w->own);
	free(w);
	return rc;
}
