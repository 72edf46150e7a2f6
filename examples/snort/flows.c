/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nfmeta-daq.h"

/*
 * The upfront NF names a flow by id and generation; the engine by addresses and ports. So
 * those of the first packet are kept, by id, in pages, so that ids may be any.
 */
#define PAGE_IDS 4096
#define PAGES (UINT32_MAX / PAGE_IDS + 1)

struct page {
	struct mark marks[PAGE_IDS];
	struct nfmeta_daq_near near[PAGE_IDS][NFMETA_DAQ_NEAR];
	struct flow *flows; /* PAGE_IDS of them, once something of one was worth it */
};

static struct mark *
known(const struct core *c, uint32_t id)
{
	struct page *page = c->pages[id / PAGE_IDS];

	return page != NULL ? &page->marks[id % PAGE_IDS] : NULL;
}

/* NULL: no memory, and nothing is known of the flow. */
static struct mark *
find(struct core *c, uint32_t id)
{
	struct page **page = &c->pages[id / PAGE_IDS];

	if (unlikely(*page == NULL)) {
		*page = aligned_alloc(64, RTE_ALIGN(sizeof(**page), 64));
		if (*page == NULL)
			return NULL;
		memset(*page, 0, sizeof(**page));
		if (c->pages_used <= id / PAGE_IDS)
			c->pages_used = id / PAGE_IDS + 1;
	}
	return &(*page)->marks[id % PAGE_IDS];
}

/* Of a flow that has a mark. */
static struct nfmeta_daq_near *
near(const struct core *c, uint32_t id)
{
	return c->pages[id / PAGE_IDS]->near[id % PAGE_IDS];
}

/* Of a flow that has a mark. NULL: nothing was worth it yet. */
static struct flow *
had(const struct core *c, uint32_t id)
{
	const struct page *page = c->pages[id / PAGE_IDS];

	return page->flows != NULL ? &page->flows[id % PAGE_IDS] : NULL;
}

/* Of a flow that has a mark. NULL: no memory. */
static struct flow *
details(struct core *c, uint32_t id)
{
	struct page *page = c->pages[id / PAGE_IDS];

	if (unlikely(page->flows == NULL)) {
		page->flows = aligned_alloc(64, PAGE_IDS * sizeof(*page->flows));
		if (page->flows == NULL)
			return NULL;
		memset(page->flows, 0, PAGE_IDS * sizeof(*page->flows));
	}
	return &page->flows[id % PAGE_IDS];
}

int
flows_start(struct core *c)
{
	const uint64_t types = NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |
			       NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS);
	struct nfmeta_flow_stats stats = {.sz = sizeof(stats)};

	c->subscribed = c->carrier = false;
	if (c->link == NULL || c->o.ignore_records)
		return 0;
	c->pages = calloc(PAGES, sizeof(*c->pages));
	if (c->pages == NULL)
		return core_fail(c, "no memory for the table of flows");
	/* Without a carrier, or with a table alone, nobody tells; that is no failure. */
	c->carrier = nfmeta_flow_stats(c->link, c->queue, &stats) == 0 && !c->o.keep_verdicts;
	c->subscribed = nfmeta_flow_subscribe(c->link, types) == 0;
	return 0;
}

void
flows_stop(struct core *c)
{
	uint32_t i;

	for (i = 0; c->pages != NULL && i < c->pages_used; i++) {
		if (c->pages[i] != NULL)
			free(c->pages[i]->flows);
		free(c->pages[i]);
	}
	free(c->pages);
	c->pages = NULL;
	c->pages_used = 0;
	c->sweep = NO_SWEEP;
	c->batch = NULL;
	c->verdicts = 0;
	c->snapshot = 0;
	c->near = false;
}

/* ---- begin and end, for the engine ------------------------------------------------ */

/* NULL: the engine does not want to know. */
static struct item *
tell(struct core *c, enum kind kind, uint32_t id, const struct mark *k, uint16_t reason)
{
	struct item *i;
	struct flow *f;

	if (c->o.flow_messages == TELL_NONE ||
	    (kind == KIND_BEGAN && c->o.flow_messages == TELL_END))
		return NULL;
	f = details(c, id);
	if (f == NULL)
		return NULL;
	i = core_item(c, kind);
	i->id = id;
	i->reason = reason;
	i->ts = c->now;
	i->flow = *f;
	i->flow.gen = k->gen;
	i->flow.app_id = k->app_id;
	i->m = NULL;
	i->data = NULL;
	i->len = 0;
	c->c.flows_began += kind == KIND_BEGAN;
	c->c.flows_ended += kind == KIND_ENDED;
	return i;
}

static struct item *
end(struct core *c, uint32_t id, struct mark *k, uint16_t reason)
{
	if ((k->state & FLOW_OPEN) == 0)
		return NULL;
	k->state = 0;
	return tell(c, KIND_ENDED, id, k, reason);
}

/* ---- packets ----------------------------------------------------------------------- */

static void
set_ends(struct flow *f, const uint8_t *ip, uint32_t len, bool v4, bool reverse)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint32_t size = v4 ? 4 : 16, at = v4 ? 12 : 8;
	int side;

	if (len < at + 2 * size)
		return;
	for (side = 0; side < 2; side++, at += size) {
		uint8_t *to = f->addr[side ^ (int)reverse];

		if (v4)
			memcpy(to, mapped, sizeof(mapped));
		memcpy(to + 16 - size, ip + at, size);
	}
}

static uint8_t
protocol(const struct rte_mbuf *m, const uint8_t *ip, bool v4)
{
	switch (m->packet_type & RTE_PTYPE_L4_MASK) {
	case RTE_PTYPE_L4_TCP:
		return IPPROTO_TCP;
	case RTE_PTYPE_L4_UDP:
		return IPPROTO_UDP;
	case RTE_PTYPE_L4_SCTP:
		return IPPROTO_SCTP;
	case RTE_PTYPE_L4_ICMP:
		return v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	default:
		return v4 ? ip[9] : ip[6];
	}
}

static uint16_t
net16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Who talks to whom, from the first packet. All headers are in the first segment, or unknown. */
static void
learn(struct core *c, struct flow *f, const struct rte_mbuf *m, const struct nfmeta_record *r)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	bool reverse = (r->flags & NFMETA_FLOW_REVERSE) != 0, v4;
	uint32_t len = m->data_len;

	memset(f, 0, sizeof(*f));
	f->began = c->now_us;
	f->tenant = r->tenant;
	f->port = r->port;
	if ((r->flags & NFMETA_L3_VALID) == 0 || r->l3_off + 20u > len)
		return;
	v4 = data[r->l3_off] >> 4 == 4;
	set_ends(f, data + r->l3_off, len - r->l3_off, v4, reverse);
	f->proto = protocol(m, data + r->l3_off, v4);
	/* The innermost tag is the one of Snort's flow key. */
	if ((r->flags & NFMETA_L2_VALID) != 0 && r->l3_off >= 18)
		f->vlan = net16(data + r->l3_off - 4) & 0x0fff;
	if ((r->flags & NFMETA_L4_VALID) == 0 || r->l4_off + 4u > len)
		return;
	if (f->proto == IPPROTO_ICMP || f->proto == IPPROTO_ICMPV6) {
		f->l4_port[0] = data[r->l4_off];
	} else {
		f->l4_port[reverse] = net16(data + r->l4_off);
		f->l4_port[!reverse] = net16(data + r->l4_off + 2);
	}
}

void
flows_prefetch(const struct core *c, const struct nfmeta_record *recs, uint16_t n)
{
	const struct page *page;
	uint32_t at;
	uint16_t i;

	for (i = 0; i < n; i++) {
		page = names_flow(&recs[i]) ? c->pages[recs[i].flow_id / PAGE_IDS] : NULL;
		if (unlikely(page == NULL))
			continue;
		at = recs[i].flow_id % PAGE_IDS;
		rte_prefetch0(&page->marks[at]);
		if (c->near)
			rte_prefetch0(page->near[at]);
	}
}

struct item *
flows_before(struct core *c, const struct rte_mbuf *m, const struct nfmeta_record *r)
{
	struct mark *k = find(c, r->flow_id);
	struct flow *f;
	struct item *i;

	if (unlikely(k == NULL))
		return NULL;
	if (likely((k->state & FLOW_OPEN) != 0 && k->gen == r->flow_gen))
		return NULL;
	if ((k->state & FLOW_OPEN) != 0) { /* its DELETE was lost */
		i = end(c, r->flow_id, k, NFMETA_END_NONE);
		if (i != NULL)
			return i;
	}
	if (k->gen != r->flow_gen) /* else NEW may have told it */
		k->app_id = 0;
	k->gen = r->flow_gen;
	k->said = NFMETA_ACTION_NONE;
	k->seen = c->snapshot;
	k->state = FLOW_OPEN | FLOW_FRESH;
	memset(near(c, r->flow_id), 0, NFMETA_DAQ_NEAR * sizeof(struct nfmeta_daq_near));
	/* what COUNTERS told of one before it with this id is void, too */
	f = c->o.flow_messages != TELL_NONE ? details(c, r->flow_id) : had(c, r->flow_id);
	if (f != NULL)
		learn(c, f, m, r);
	return tell(c, KIND_BEGAN, r->flow_id, k, 0);
}

void
flows_packet(struct core *c, struct item *i)
{
	struct mark *k;
	struct flow *f;
	int side;

	if (c->pages == NULL || !names_flow(&i->r)) {
		i->first = (i->r.flags & NFMETA_FLOW_NEW) != 0;
		return;
	}
	k = known(c, i->r.flow_id);
	if (unlikely(k == NULL))
		return;
	if (c->o.flow_messages != TELL_NONE && (f = details(c, i->r.flow_id)) != NULL) {
		side = (i->r.flags & NFMETA_FLOW_REVERSE) != 0;
		f->packets[side]++;
		f->bytes[side] += i->whole;
	}
	k->seen = c->snapshot;
	i->near = near(c, i->r.flow_id);
	i->first = (k->state & FLOW_FRESH) != 0;
	k->state = FLOW_OPEN;
	if (i->app_id == 0)
		i->app_id = k->app_id;
	else
		k->app_id = i->app_id;
}

/* ---- what is told ----------------------------------------------------------------------- */

static void
counters(struct core *c, const struct mark *k, const struct nfmeta_flow_counters *n)
{
	struct flow *f;
	int side;

	if ((k->state & FLOW_OPEN) == 0 || k->gen != n->flow_gen)
		return;
	f = details(c, n->flow_id);
	for (side = 0; f != NULL && side < 2; side++) { /* so far, not since the last time */
		c->c.shunted_packets += (uint32_t)n->packets[side] - f->passed_packets[side];
		c->c.shunted_bytes += n->bytes[side] - f->passed_bytes[side];
		f->passed_packets[side] = (uint32_t)n->packets[side];
		f->passed_bytes[side] = n->bytes[side];
	}
}

/* NEW, UPDATE, SNAPSHOT */
static struct item *
there_is(struct core *c, struct mark *k, const struct nfmeta_flow_state *n)
{
	struct item *i = NULL;

	if (k->gen != n->flow_gen) {
		if (c->batch->type == NFMETA_MSG_UPDATE)
			return NULL;
		i = end(c, n->flow_id, k, NFMETA_END_NONE); /* its DELETE was lost */
		k->gen = n->flow_gen;
		k->app_id = 0;
	}
	if (n->app_id != 0)
		k->app_id = n->app_id;
	k->seen = c->snapshot;
	return i;
}

static struct item *
entry(struct core *c, const void *e)
{
	const struct nfmeta_flow_delete *d = e;
	struct mark *k = find(c, *(const uint32_t *)e); /* all begin with the id */

	c->c.deletes_in += c->batch->type == NFMETA_MSG_DELETE;
	if (k == NULL)
		return NULL;
	switch (c->batch->type) {
	case NFMETA_MSG_NEW:
	case NFMETA_MSG_UPDATE:
	case NFMETA_MSG_SNAPSHOT:
		return there_is(c, k, e);
	case NFMETA_MSG_COUNTERS:
		counters(c, k, e);
		return NULL;
	case NFMETA_MSG_DELETE:
		if (k->gen != d->flow_gen)
			return NULL;
		c->c.deletes_matched += (k->state & FLOW_OPEN) != 0;
		return end(c, d->flow_id, k, d->reason);
	default:
		return NULL;
	}
}

/* What no snapshot knows has ended. */
static struct item *
sweep(struct core *c)
{
	uint64_t last = (uint64_t)c->pages_used * PAGE_IDS;
	struct item *i = NULL;
	struct mark *k;

	while (c->sweep < last && i == NULL) {
		k = known(c, (uint32_t)c->sweep);
		if (k == NULL) {
			c->sweep += PAGE_IDS;
			continue;
		}
		if (k->seen != c->snapshot)
			i = end(c, (uint32_t)c->sweep, k, NFMETA_END_NONE);
		c->sweep++;
	}
	if (i == NULL)
		c->sweep = NO_SWEEP;
	return i;
}

static bool
next_message(struct core *c)
{
	int rc;

	while ((rc = nfmeta_flow_next(c->link, &c->batch)) == -NFMETA_EMESSAGE)
		; /* a snapshot is asked for; that makes all good */
	if (rc != 1) {
		c->batch = NULL;
		return false;
	}
	c->entry = 0;
	c->c.messages++;
	if (c->batch->type == NFMETA_MSG_RESET ||
	    (c->batch->type == NFMETA_MSG_SNAPSHOT && (c->batch->flags & NFMETA_MSG_FIRST) != 0))
		c->snapshot++;
	return true;
}

static void
end_message(struct core *c)
{
	if (c->batch->type == NFMETA_MSG_RESET) {
		c->c.resets++;
		c->sweep = 0;
	} else if (c->batch->type == NFMETA_MSG_SNAPSHOT &&
		   (c->batch->flags & NFMETA_MSG_LAST) != 0) {
		c->c.snapshots++;
		c->sweep = 0;
	}
	c->batch = NULL;
}

struct item *
flows_told(struct core *c)
{
	struct item *i;

	for (;;) {
		if (c->sweep != NO_SWEEP && (i = sweep(c)) != NULL)
			return i;
		if (c->batch == NULL && !next_message(c))
			return NULL;
		while (c->entry < c->batch->count) {
			i = entry(c, nfmeta_flow_entry(c->batch, c->entry));
			c->entry++;
			if (i != NULL)
				return i;
		}
		end_message(c);
	}
}

/* ---- what the engine decided --------------------------------------------------------------- */

void
flows_say(struct core *c, const struct item *i, uint8_t action, uint8_t flags)
{
	struct mark *k;

	if (!c->carrier || !names_flow(&i->r))
		return;
	k = known(c, i->r.flow_id);
	/* engines repeat such a verdict with each packet that is still on its way */
	if (k == NULL || k->gen != i->r.flow_gen || k->said == action)
		return;
	if (c->verdicts == VERDICTS)
		flows_send(c);
	if (c->verdicts == VERDICTS) { /* with the next packet, then */
		c->c.verdicts_refused++;
		return;
	}
	k->said = action;
	c->verdict[c->verdicts++] = (struct nfmeta_flow_verdict){
		.flow_id = i->r.flow_id,
		.flow_gen = i->r.flow_gen,
		.verdict = action,
		.flags = flags,
		.who = (uint16_t)c->o.who,
		.why = i->why,
	};
}

/* No room: they wait for the next time. */
void
flows_send(struct core *c)
{
	if (c->verdicts == 0 || c->gone || c->link == NULL ||
	    nfmeta_flow_reply(c->link, NFMETA_MSG_VERDICT, c->verdict, (uint16_t)c->verdicts) != 0)
		return;
	c->c.verdicts_sent += c->verdicts;
	c->verdicts = 0;
}
