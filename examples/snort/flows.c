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

static struct flow *
known(const struct core *c, uint32_t id)
{
	struct flow *page = c->pages[id / PAGE_IDS];

	return page != NULL ? &page[id % PAGE_IDS] : NULL;
}

/* NULL: no memory, and nothing is known of the flow. */
static struct flow *
find(struct core *c, uint32_t id)
{
	struct flow **page = &c->pages[id / PAGE_IDS];

	if (unlikely(*page == NULL)) {
		*page = aligned_alloc(64, PAGE_IDS * sizeof(**page));
		if (*page == NULL)
			return NULL;
		memset(*page, 0, PAGE_IDS * sizeof(**page));
		if (c->pages_used <= id / PAGE_IDS)
			c->pages_used = id / PAGE_IDS + 1;
	}
	return &(*page)[id % PAGE_IDS];
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

	for (i = 0; c->pages != NULL && i < c->pages_used; i++)
		free(c->pages[i]);
	free(c->pages);
	c->pages = NULL;
	c->pages_used = 0;
	c->sweep = NO_SWEEP;
	c->batch = NULL;
	c->verdicts = 0;
	c->mark = 0;
}

/* ---- begin and end, for the engine ------------------------------------------------ */

/* NULL: the engine does not want to know. */
static struct item *
tell(struct core *c, enum kind kind, uint32_t id, const struct flow *f, uint16_t reason)
{
	struct item *i;

	if (c->o.flow_messages == TELL_NONE ||
	    (kind == KIND_BEGAN && c->o.flow_messages == TELL_END))
		return NULL;
	i = core_item(c, kind);
	i->id = id;
	i->reason = reason;
	i->ts = c->now;
	i->flow = *f;
	i->m = NULL;
	i->data = NULL;
	i->len = 0;
	c->c.flows_began += kind == KIND_BEGAN;
	c->c.flows_ended += kind == KIND_ENDED;
	return i;
}

static struct item *
end(struct core *c, uint32_t id, struct flow *f, uint16_t reason)
{
	if ((f->state & FLOW_OPEN) == 0)
		return NULL;
	f->state = 0;
	return tell(c, KIND_ENDED, id, f, reason);
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

	memset(f->packets, 0, sizeof(*f) - offsetof(struct flow, packets));
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
flows_prefetch(const struct core *c, const struct rte_mbuf *m)
{
	const struct nfmeta_record *r = nfmeta_record_peek(&c->field, m);

	if (r != NULL && names_flow(r))
		rte_prefetch0(known(c, r->flow_id));
}

struct item *
flows_before(struct core *c, const struct rte_mbuf *m, const struct nfmeta_record *r)
{
	struct flow *f = find(c, r->flow_id);
	uint32_t app_id;
	struct item *i;

	if (unlikely(f == NULL))
		return NULL;
	if (likely((f->state & FLOW_OPEN) != 0 && f->gen == r->flow_gen))
		return NULL;
	if ((f->state & FLOW_OPEN) != 0) { /* its DELETE was lost */
		i = end(c, r->flow_id, f, NFMETA_END_NONE);
		if (i != NULL)
			return i;
	}
	app_id = f->gen == r->flow_gen ? f->app_id : 0; /* NEW may have told it */
	f->gen = r->flow_gen;
	f->said = NFMETA_ACTION_NONE;
	learn(c, f, m, r);
	f->app_id = app_id;
	f->mark = c->mark;
	f->state = FLOW_OPEN | FLOW_FRESH;
	return tell(c, KIND_BEGAN, r->flow_id, f, 0);
}

void
flows_packet(struct core *c, struct item *i)
{
	struct flow *f;
	int side;

	if (c->pages == NULL || !names_flow(&i->r)) {
		i->first = (i->r.flags & NFMETA_FLOW_NEW) != 0;
		return;
	}
	f = known(c, i->r.flow_id);
	if (unlikely(f == NULL))
		return;
	side = (i->r.flags & NFMETA_FLOW_REVERSE) != 0;
	f->packets[side]++;
	f->bytes[side] += i->whole;
	f->mark = c->mark;
	i->first = (f->state & FLOW_FRESH) != 0;
	f->state = FLOW_OPEN;
	if (i->app_id == 0)
		i->app_id = f->app_id;
	else
		f->app_id = i->app_id;
}

/* ---- what is told ----------------------------------------------------------------------- */

static void
counters(struct core *c, struct flow *f, const struct nfmeta_flow_counters *n)
{
	int side;

	if ((f->state & FLOW_OPEN) == 0 || f->gen != n->flow_gen)
		return;
	for (side = 0; side < 2; side++) { /* so far, not since the last time */
		c->c.shunted_packets += (uint32_t)n->packets[side] - f->passed_packets[side];
		c->c.shunted_bytes += n->bytes[side] - f->passed_bytes[side];
		f->passed_packets[side] = (uint32_t)n->packets[side];
		f->passed_bytes[side] = n->bytes[side];
	}
}

/* NEW, UPDATE, SNAPSHOT */
static struct item *
there_is(struct core *c, struct flow *f, const struct nfmeta_flow_state *n)
{
	struct item *i = NULL;

	if (f->gen != n->flow_gen) {
		if (c->batch->type == NFMETA_MSG_UPDATE)
			return NULL;
		i = end(c, n->flow_id, f, NFMETA_END_NONE); /* its DELETE was lost */
		f->gen = n->flow_gen;
		f->app_id = 0;
	}
	if (n->app_id != 0)
		f->app_id = n->app_id;
	f->mark = c->mark;
	return i;
}

static struct item *
entry(struct core *c, const void *e)
{
	const struct nfmeta_flow_delete *d = e;
	struct flow *f = find(c, *(const uint32_t *)e); /* all begin with the id */

	c->c.deletes_in += c->batch->type == NFMETA_MSG_DELETE;
	if (f == NULL)
		return NULL;
	switch (c->batch->type) {
	case NFMETA_MSG_NEW:
	case NFMETA_MSG_UPDATE:
	case NFMETA_MSG_SNAPSHOT:
		return there_is(c, f, e);
	case NFMETA_MSG_COUNTERS:
		counters(c, f, e);
		return NULL;
	case NFMETA_MSG_DELETE:
		if (f->gen != d->flow_gen)
			return NULL;
		c->c.deletes_matched += (f->state & FLOW_OPEN) != 0;
		return end(c, d->flow_id, f, d->reason);
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
	struct flow *f;

	while (c->sweep < last && i == NULL) {
		f = known(c, (uint32_t)c->sweep);
		if (f == NULL) {
			c->sweep += PAGE_IDS;
			continue;
		}
		if (f->mark != c->mark)
			i = end(c, (uint32_t)c->sweep, f, NFMETA_END_NONE);
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
		c->mark++;
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
	struct flow *f;

	if (!c->carrier || !names_flow(&i->r))
		return;
	f = known(c, i->r.flow_id);
	/* engines repeat such a verdict with each packet that is still on its way */
	if (f == NULL || f->gen != i->r.flow_gen || f->said == action)
		return;
	if (c->verdicts == VERDICTS)
		flows_send(c);
	if (c->verdicts == VERDICTS) { /* with the next packet, then */
		c->c.verdicts_refused++;
		return;
	}
	f->said = action;
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
