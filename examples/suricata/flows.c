/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

/*
 * The upfront NF names a flow by id and generation; Suricata has hash and start time of
 * its own, which the first packet of a flow shows when Suricata is done with it.  A table
 * per worker, by id, in pages, so that ids may be any.  A flow is Suricata's and may be
 * gone at any time: it is looked for in Suricata's hash table, under its lock, before
 * something is done to it.
 */
#define PAGES (UINT32_MAX / PAGE_IDS + 1)

static FlowStorageId storage_id = {.id = -1};
static uint32_t var_flow_id, var_generation, var_app_id;
static uint64_t ended[WORKERS];
static bool stopped;

/* ---- Suricata's side ------------------------------------------------------------ */

/* What is stored with a flow is no pointer: whose it is, and that it is known. */
static void *
owner(uint16_t queue)
{
	return (void *)((uintptr_t)queue + 1);
}

/* Any thread. A flow that the upfront NF ended has nothing stored any more. */
static void
flow_gone(void *value)
{
	if (!stopped)
		__atomic_add_fetch(&ended[(uintptr_t)value - 1], 1, __ATOMIC_RELAXED);
}

void
flows_register(void)
{
	storage_id = FlowStorageRegister("nfmeta", sizeof(void *), NULL, flow_gone);
	/* "metadata": {"flowints": ...} of eve; rules can ask for them, too */
	var_flow_id = VarNameStoreRegister("nfmeta.flow_id", VAR_TYPE_FLOW_INT);
	var_generation = VarNameStoreRegister("nfmeta.generation", VAR_TYPE_FLOW_INT);
	var_app_id = VarNameStoreRegister("nfmeta.app_id", VAR_TYPE_FLOW_INT);
}

void
flows_unregister(void)
{
	VarNameStoreUnregister(var_flow_id, VAR_TYPE_FLOW_INT);
	VarNameStoreUnregister(var_generation, VAR_TYPE_FLOW_INT);
	VarNameStoreUnregister(var_app_id, VAR_TYPE_FLOW_INT);
}

void
flows_stop(void)
{
	stopped = true; /* what ends now, ends because Suricata does */
}

uint64_t
flows_ended(uint16_t queue)
{
	return __atomic_load_n(&ended[queue], __ATOMIC_RELAXED);
}

void
flows_app(Flow *f, uint32_t app_id)
{
	if (app_id != 0)
		FlowVarAddIntNoLock(f, var_app_id, app_id);
}

static bool
same_time(SCTime_t a, SCTime_t b)
{
	return a.secs == b.secs && a.usecs == b.usecs;
}

static bool
is_it(const struct seen *s, const Flow *f)
{
	if (f->flow_hash != s->hash)
		return false;
	if (s->flow != NULL)
		return f == s->flow && same_time(f->startts, s->start);
	/* One that is not known yet, and whose last packet was at that time. */
	return FlowGetStorageById(f, storage_id) == NULL &&
	       (same_time(f->lastts, s->start) || same_time(f->startts, s->start));
}

/*
 * FlowGetExistingFlowFromFlowId() would take the first of several that are alike, and finds
 * nothing when flow.hash-size does not divide 65536.
 */
Flow *
flows_find(const struct seen *s)
{
	FlowBucket *b = &flow_hash[s->hash % flow_config.hash_size];
	Flow *f;

	FBLOCK_LOCK(b);
	for (f = b->head; f != NULL && !is_it(s, f); f = f->next)
		;
	if (f != NULL)
		FLOWLOCK_WRLOCK(f);
	FBLOCK_UNLOCK(b);
	return f;
}

/* ---- the table --------------------------------------------------------------------- */

int
flows_start(struct worker *w)
{
	const uint64_t types = NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS) |
			       NFMETA_TYPE(NFMETA_MSG_UPDATE);
	struct nfmeta_flow_stats stats = {.sz = sizeof(stats)};

	w->pages = calloc(PAGES, sizeof(*w->pages));
	if (w->pages == NULL) {
		SCLogError("no memory for the table of flows");
		return -1;
	}
	if (opts.ignore_records)
		return 0;
	w->carrier = nfmeta_flow_stats(w->link, w->queue, &stats) == 0;
	if (nfmeta_flow_subscribe(w->link, types) == 0)
		return 0;
	/* With a table as carrier there is nothing to subscribe to; verdicts go up all the same. */
	w->table = nfmeta_table_flows(nfmeta_link_table(w->link), &w->table_flows);
	if (w->table == NULL)
		SCLogNotice("queue %u: %s: flows end by Suricata's own time-outs", w->queue,
			    nfmeta_error());
	return 0;
}

struct seen *
flows_seen(struct worker *w, uint32_t id)
{
	struct seen **page = &w->pages[id / PAGE_IDS];

	if (unlikely(*page == NULL)) {
		*page = calloc(PAGE_IDS, sizeof(**page));
		if (*page == NULL)
			return NULL;
		if (w->pages_used <= id / PAGE_IDS)
			w->pages_used = id / PAGE_IDS + 1;
	}
	return &(*page)[id % PAGE_IDS];
}

/*
 * Suricata looks every packet's flow up by its addresses, and waits for memory then. Here
 * the flow is known from the record before. Nothing is read where it may be gone: an address that
 * is not good any more does no harm.
 */
static const struct seen *
known(const struct worker *w, const struct rte_mbuf *m)
{
	const struct nfmeta_record *r = nfmeta_record_peek(&w->field, m);
	const struct seen *page;

	if (r == NULL || r->size < NFMETA_RECORD_CORE || (r->flags & NFMETA_FLOW_KNOWN) == 0)
		return NULL;
	page = w->pages[r->flow_id / PAGE_IDS];
	return page != NULL ? &page[r->flow_id % PAGE_IDS] : NULL;
}

void
flows_fetch_seen(const struct worker *w, struct rte_mbuf *const *pkts, const struct seen **seen,
		 uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		seen[i] = w->records ? known(w, pkts[i]) : NULL;
		if (seen[i] != NULL)
			rte_prefetch0(seen[i]);
	}
}

static void
fetch(const void *from, uint32_t bytes)
{
	uint32_t at;

	for (at = 0; at < bytes; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0((const uint8_t *)from + at);
}

void
flows_fetch(const struct seen *s)
{
	if (s == NULL || s->flow == NULL)
		return;
	rte_prefetch0(&flow_hash[s->hash % flow_config.hash_size]);
	fetch(s->flow, sizeof(Flow));
	fetch(s->session, sizeof(TcpSession));
}

bool
flows_end(struct worker *w, struct seen *s)
{
	Flow *f = flows_find(s);

	s->state = 0;
	if (f == NULL)
		return false;
	f->flow_end_flags |= FLOW_END_FLAG_FORCED;
	FlowSetStorageById(f, storage_id, NULL);
	FlowUpdateState(f, f->flow_state); /* the flow manager is to look at its row */
	flow_time_is_over(f, w->now);
	FLOWLOCK_UNLOCK(f);
	return true;
}

/* ---- packets -------------------------------------------------------------------------- */

/* A packet of one of Suricata's flows that is not known yet: hash and time are the flow's. */
static void
learn(struct worker *w, struct seen *s, const Packet *p, const struct in_hand *h)
{
	Flow *f;

	if ((s->state & SEEN_OPEN) != 0) {
		if (s->gen != h->flow_gen)
			flows_end(w, s); /* its DELETE was lost, or comes later */
		else if ((p->flowflags & FLOW_PKT_TOSERVER_FIRST) == 0)
			return; /* the first one back */
	}
	*s = (struct seen){
		.start = p->ts, .hash = p->flow_hash, .gen = h->flow_gen, .mark = w->mark};
	f = flows_find(s);
	if (f == NULL)
		return;
	s->flow = f;
	s->session = f->protoctx;
	s->start = f->startts;
	s->state = SEEN_OPEN;
	FlowSetStorageById(f, storage_id, owner(w->queue));
	FlowVarAddIntNoLock(f, var_flow_id, h->flow_id);
	FlowVarAddIntNoLock(f, var_generation, h->flow_gen);
	flows_app(f, h->app_id);
	FLOWLOCK_UNLOCK(f);
}

void
flows_packet(struct worker *w, const Packet *p, const struct in_hand *h)
{
	const uint8_t first = FLOW_PKT_TOSERVER_FIRST | FLOW_PKT_TOCLIENT_FIRST;
	struct seen *s;

	/* The first one may have come in pieces: then what has the flag is Suricata's own. */
	if (likely((p->flowflags & first) == 0 && !h->shunted && !w->loading &&
		   (p->proto == IPPROTO_TCP || (p->flags & PKT_HAS_FLOW) == 0)))
		return;
	s = flows_seen(w, h->flow_id);
	if (s == NULL)
		return;
	if ((p->flowflags & first) != 0 || ((p->flags & PKT_HAS_FLOW) != 0 &&
					    ((s->state & SEEN_OPEN) == 0 || s->gen != h->flow_gen)))
		learn(w, s, p, h);
	if (s->gen == h->flow_gen) {
		s->mark = w->mark;
		if (h->shunted)
			s->state = (uint16_t)((s->state & ~SEEN_SWAPPED) |
					      (h->swapped ? SEEN_SWAPPED : 0));
	}
}
