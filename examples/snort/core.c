/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include "nfmeta-daq.h"

#define CHECK_US 500000 /* between two looks whether the link is still there */
#define CHECK_IDLE_US 100000
#define TRUST_TIME_S 10 /* a record's time that is further from the clock is a replayed one */
#define FETCH_BYTES UINT64_C(1536)
#define RETRY_US 100000 /* RETRY: until the next try */
#define RETRY_MAX 20	/* tries; then the packet is blocked */

int
core_fail(struct core *c, const char *fmt, ...)
{
	size_t at = (size_t)snprintf(c->err, sizeof(c->err), "nfmeta: ");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err + at, sizeof(c->err) - at, fmt, ap);
	va_end(ap);
	return -1;
}

static void
look_at_clock(struct core *c)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	c->now.tv_sec = ts.tv_sec;
	c->now.tv_usec = ts.tv_nsec / 1000;
	c->now_us = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- items ---------------------------------------------------------------------- */

struct item *
core_item(struct core *c, enum kind kind)
{
	struct item *i;

	if (c->n_free == 0)
		return NULL;
	i = c->free[--c->n_free];
	i->kind = kind;
	i->near = NULL;
	return i;
}

void
core_item_free(struct core *c, struct item *i)
{
	c->free[c->n_free++] = i;
}

/* ---- back ------------------------------------------------------------------------ */

static void
flush(struct core *c)
{
	if (c->backs > 0 && !c->gone) {
		flows_send(c); /* who has the packets knows what was decided */
		c->source->flush(c);
	}
	c->backs = 0;
}

void
core_give_back(struct core *c, struct rte_mbuf *m, uint8_t how)
{
	if (unlikely(c->backs == BURST * 2))
		flush(c);
	c->back[c->backs] = m;
	c->how[c->backs++] = how;
	if ((how & NFMETA_INJECTED) == 0) {
		c->c.dropped += how == NFMETA_DROP;
		c->c.forwarded += how != NFMETA_DROP;
	}
}

/* Nobody looked at it: what is inline goes on only if the link's policy is to fail open. */
static void
give_back_unseen(struct core *c, struct rte_mbuf *m)
{
	c->c.unseen++;
	core_give_back(c, m, c->o.is_inline && !c->bypass ? NFMETA_DROP : NFMETA_FORWARD);
}

/* The engine changed the bytes, not their number. What was known of them is void. */
static void
replace(struct core *c, struct item *i)
{
	struct rte_mbuf *m = i->m;
	uint32_t at, k;

	if (i->copied)
		for (at = 0; m != NULL && at < i->len; m = m->next, at += k) {
			k = RTE_MIN(i->len - at, (uint32_t)m->data_len);
			memcpy(rte_pktmbuf_mtod(m, uint8_t *), i->data + at, k);
		}
	i->m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	if (c->link != NULL)
		nfmeta_record_clear(&c->field, i->m);
}

/* Waits for its next try; false: it cannot. */
static bool
hold(struct core *c, struct item *i)
{
	if (c->n_held == HELD || c->n_held + 1 >= c->o.items || ++i->tries > RETRY_MAX)
		return false;
	c->held[c->n_held++] = (struct held){.item = i, .due = c->now_us + RETRY_US};
	c->c.retries++;
	return true;
}

static void
stop_for_good(struct core *c)
{
	uint64_t came, lost;

	if (c->source == NULL || core_outstanding(c) > 0)
		return;
	flush(c);
	if (!c->gone) {
		c->source->stats(c, &came, &lost);
		c->came += came;
		c->lost += lost;
	}
	flows_stop(c);
	c->source->stop(c);
	c->source = NULL;
	stats_write(c);
}

/*
 * What the engine touches for a packet is fetched one packet before: fetched at once for a
 * whole batch it would be more than fits. Where checksums are not computed, copying the
 * payload would wait for it instead.
 */
static void
fetch(const struct core *c, const struct item *i)
{
	const uint8_t *data = i->data;
	uint32_t at, k;

	for (at = 0; at < RTE_MIN(i->len, FETCH_BYTES); at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(data + at);
	if (!c->near || i->near == NULL)
		return;
	for (k = 0; k < NFMETA_DAQ_NEAR; k++) {
		data = i->near[k].at;
		for (at = 0; at < RTE_MIN(i->near[k].bytes, FETCH_BYTES); at += RTE_CACHE_LINE_SIZE)
			rte_prefetch0(data + at);
	}
}

void
core_finish(struct core *c, struct item *i, enum verdict v)
{
	uint8_t how = NFMETA_FORWARD;

	if (i->next != NULL && i->next->next != NULL && i->next->next->kind == KIND_PACKET)
		fetch(c, i->next->next);
	if (unlikely(i->index == 0) && i->near != NULL && i->near[0].at != NULL)
		c->near = true; /* looked for in one of the items only: it is a line per flow */
	if (i->kind != KIND_PACKET) {
		core_item_free(c, i);
		if (unlikely(!c->started))
			stop_for_good(c);
		return;
	}
	c->c.verdict[v]++;
	switch (v) {
	case VERDICT_PASS:
		break;
	case VERDICT_REPLACE:
		if (c->o.is_inline && !c->gone)
			replace(c, i);
		break;
	case VERDICT_WHITELIST:
		flows_say(c, i, NFMETA_ACTION_FORWARD, 0);
		break;
	case VERDICT_IGNORE:
		flows_say(c, i, NFMETA_ACTION_SHUNT, 0);
		break;
	case VERDICT_BLACKLIST:
		if (c->o.is_inline)
			flows_say(c, i, NFMETA_ACTION_DROP, NFMETA_VERDICT_STICKY);
		how = NFMETA_DROP;
		break;
	case VERDICT_RETRY:
		if (c->started && hold(c, i))
			return;
		how = NFMETA_DROP;
		break;
	default:
		how = NFMETA_DROP;
	}
	if (!c->o.is_inline)
		how = NFMETA_FORWARD;
	core_item_free(c, i);
	if (likely(!c->gone))
		core_give_back(c, i->m, how);
	if (unlikely(!c->started))
		stop_for_good(c);
}

/* ---- a packet on its way in --------------------------------------------------------- */

/* In one piece, at most snaplen of it. 0, or -1: no memory. */
static int
set_data(struct core *c, struct item *i)
{
	const struct rte_mbuf *m = i->m;
	uint32_t at = 0, k;

	i->whole = m->pkt_len;
	i->len = RTE_MIN(i->whole, c->o.snaplen);
	i->copied = m->nb_segs > 1 && i->len > m->data_len;
	if (likely(!i->copied)) {
		i->data = rte_pktmbuf_mtod(m, uint8_t *);
		return 0;
	}
	if (i->room == NULL) /* once per item, where packets come in pieces at all */
		i->room = malloc(c->o.snaplen);
	if (i->room == NULL)
		return -1;
	i->data = i->room;
	for (; m != NULL && at < i->len; m = m->next, at += k) {
		k = RTE_MIN(i->len - at, (uint32_t)m->data_len);
		memcpy(i->data + at, rte_pktmbuf_mtod(m, const uint8_t *), k);
	}
	return 0;
}

static void
set_time(struct core *c, struct item *i)
{
	int64_t s = (int64_t)(i->r.timestamp / 1000000000);

	i->ts = c->now;
	if (c->o.time == TIME_CLOCK || i->r.size < NFMETA_RECORD_FULL || i->r.timestamp == 0)
		return;
	if (c->o.time == TIME_AUTO && llabs(s - (int64_t)c->now.tv_sec) > TRUST_TIME_S)
		return;
	i->ts.tv_sec = s;
	i->ts.tv_usec = (suseconds_t)(i->r.timestamp % 1000000000 / 1000);
}

static void
count_record(struct core *c, const struct item *i)
{
	uint16_t f = i->r.flags;

	if (i->r.size == 0) {
		c->c.no_record++;
		return;
	}
	c->c.records++;
	if ((f & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0)
		c->c.checksum_bad++;
	else if ((f & NFMETA_L4_CSUM_GOOD) != 0)
		c->c.checksum_good++;
	else
		c->c.checksum_unknown++;
}

/* The flow of this one has a packet that waits for its next try. */
static bool
flow_is_held(const struct core *c, const struct item *i)
{
	uint32_t k;

	for (k = 0; k < c->n_held; k++)
		if (names_flow(&i->r) && names_flow(&c->held[k].item->r) &&
		    c->held[k].item->r.flow_id == i->r.flow_id &&
		    c->held[k].item->r.flow_gen == i->r.flow_gen)
			return true;
	return false;
}

/* It went back, or goes: the engine does not get it. */
static void
skip(struct core *c, struct rte_mbuf *m, uint64_t *why, bool drop)
{
	c->at++;
	c->c.packets++;
	c->c.bytes += m->pkt_len;
	++*why;
	if (why == &c->c.no_room)
		give_back_unseen(c, m);
	else
		core_give_back(c, m, drop ? NFMETA_DROP : NFMETA_FORWARD);
}

static bool
matches(const struct core *c, const struct item *i)
{
	struct pcap_pkthdr h = {.caplen = i->len, .len = i->whole};

	return pcap_offline_filter(&c->filter, &h, i->data) != 0;
}

/* The packet at hand, or what has to be told before it; NULL: it is none for the engine. */
static struct item *
next_packet(struct core *c)
{
	struct rte_mbuf *m = c->pkts[c->at];
	struct item *i = c->free[c->n_free - 1], *before;

	if (c->at + 1 < c->n)
		rte_prefetch0(rte_pktmbuf_mtod(c->pkts[c->at + 1], const void *));
	i->m = m;
	if (unlikely(set_data(c, i) != 0)) {
		skip(c, m, &c->c.no_room, false);
		return NULL;
	}
	if (unlikely(c->filter.bf_insns != NULL) && !matches(c, i)) {
		skip(c, m, &c->c.filtered, false);
		return NULL;
	}
	i->r = c->recs[c->at];
	if (unlikely(c->n_held > 0) && flow_is_held(c, i)) {
		skip(c, m, &c->c.retry_dropped, c->o.is_inline);
		return NULL;
	}
	if (likely(c->pages != NULL && names_flow(&i->r))) {
		before = flows_before(c, m, &i->r);
		if (unlikely(before != NULL))
			return before;
	}
	i = core_item(c, KIND_PACKET);
	c->at++;
	c->c.packets++;
	c->c.bytes += m->pkt_len;
	c->c.segmented += m->nb_segs > 1;
	c->c.truncated += i->len < i->whole;
	i->first = false;
	i->why = i->tries = 0;
	i->app_id = i->r.size >= NFMETA_RECORD_WIDE ? i->r.app_id : 0;
	count_record(c, i);
	set_time(c, i);
	flows_packet(c, i);
	return i;
}

static struct item *
next_held(struct core *c)
{
	struct item *i = c->held[0].item;

	if (c->held[0].due > c->now_us)
		return NULL;
	memmove(c->held, c->held + 1, --c->n_held * sizeof(c->held[0]));
	return i;
}

static void
check(struct core *c)
{
	uint64_t came, lost;
	int rc;

	c->checked = c->now_us;
	flows_send(c);
	rc = c->source->check(c);
	c->closing = rc == ST_END;
	if (rc != ST_ERROR)
		return;
	core_came(c, &came, &lost); /* what is asked for from now on */
	c->came = came;
	c->lost = lost;
	c->gone = true;
}

static void
receive(struct core *c)
{
	look_at_clock(c);
	if (unlikely(c->now_us - c->checked > CHECK_US))
		check(c);
	c->at = 0;
	c->n = likely(!c->gone) ? c->source->receive(c, c->pkts) : 0;
	c->dry = c->n == 0;
	if (!c->dry) {
		c->last_us = c->now_us;
		if (unlikely(c->first_us == 0)) {
			c->first_us = c->now_us;
			c->cpu_before = cpu_ns();
		}
	}
	if (c->link == NULL || c->o.ignore_records)
		return;
	nfmeta_record_get_burst(&c->field, c->pkts, c->recs, c->n);
	flows_prefetch(c, c->recs, c->n);
}

static struct item *
next_item(struct core *c, int *status)
{
	struct item *i;

	for (;;) {
		if (unlikely(c->n_held > 0) && (i = next_held(c)) != NULL)
			return i;
		if (unlikely(c->n_free == 0)) {
			*status = ST_STARVED;
			return NULL;
		}
		if (c->at < c->n) {
			i = next_packet(c);
			if (likely(i != NULL))
				return i;
			continue;
		}
		/* Messages are between bursts: those that came before the next packet. */
		if (c->subscribed && (i = flows_told(c)) != NULL)
			return i;
		if (c->dry) {
			c->dry = false;
			*status = ST_NOTHING;
			return NULL;
		}
		receive(c);
	}
}

struct item *
core_next(struct core *c, int *status)
{
	struct item *i = next_item(c, status);

	if (i == NULL)
		return NULL;
	if (c->newest != NULL)
		c->newest->next = i;
	c->newest = i;
	i->next = NULL;
	return i;
}

/* Nothing came: spin, then pause, then sleep. */
static void
idle(uint32_t rounds)
{
	if (rounds > 4096)
		usleep(1000);
	else if (rounds > 2048)
		usleep(50);
	else if (rounds > 1024)
		sched_yield(); /* the upfront NF may need this very CPU */
	else if (rounds > 64)
		rte_pause();
}

struct item *
core_get(struct core *c, int *status)
{
	uint64_t until = 0;
	struct item *i;
	uint32_t rounds;

	*status = ST_OK;
	flush(c);
	if (!c->started) {
		core_fail(c, "not started");
		*status = ST_ERROR;
		return NULL;
	}
	for (rounds = 0;; rounds++) {
		if (__atomic_load_n(&c->interrupted, __ATOMIC_RELAXED)) {
			__atomic_store_n(&c->interrupted, false, __ATOMIC_RELAXED);
			*status = ST_INTERRUPTED;
			return NULL;
		}
		if (rounds > 64 && c->now_us - c->checked > CHECK_IDLE_US)
			check(c);
		i = likely(!c->gone) ? core_next(c, status) : NULL;
		if (i != NULL || *status == ST_STARVED)
			return i;
		if (unlikely(c->gone)) {
			*status = ST_ERROR;
			return NULL;
		}
		*status = ST_OK;
		flush(c); /* what was filtered */
		if (c->closing && c->n_held == 0) {
			*status = ST_END;
			return NULL;
		}
		if (until == 0)
			until = c->now_us + (uint64_t)c->o.timeout_ms * 1000;
		if (c->o.timeout_ms != 0 && c->now_us >= until) {
			*status = ST_TIMEOUT;
			return NULL;
		}
		idle(rounds);
	}
}

void
core_interrupt(struct core *c)
{
	__atomic_store_n(&c->interrupted, true, __ATOMIC_SEQ_CST);
}

/* ---- packets of the engine's own ------------------------------------------------------ */

int
core_inject(struct core *c, const struct item *like, const uint8_t *data, uint32_t len,
	    bool reverse)
{
	const uint64_t tags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED |
			      RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
	struct rte_mbuf *m;
	uint32_t room;

	if (!c->started || c->gone) {
		core_fail(c, "the module is not started: nothing can be injected");
		return -EINVAL;
	}
	m = c->source->blank(c);
	if (m == NULL) {
		c->c.not_injected++;
		core_fail(c, "no blank for a packet to inject: the upfront NF stocks them"
			     " (splitter --blanks)");
		return -EAGAIN;
	}
	room = rte_pktmbuf_tailroom(m);
	if (len == 0 || len > room) {
		c->c.not_injected++;
		core_give_back(c, m, NFMETA_INJECTED | NFMETA_DROP);
		core_fail(c, "a packet of %u bytes cannot be injected: 1 to %u are possible", len,
			  room);
		return -EINVAL;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), data, len);
	if (like != NULL && like->kind == KIND_PACKET) { /* tags that are not in the bytes */
		m->ol_flags |= like->m->ol_flags & tags;
		m->vlan_tci = like->m->vlan_tci;
		m->vlan_tci_outer = like->m->vlan_tci_outer;
		m->port = like->m->port;
	}
	c->c.injected++;
	core_give_back(c, m, NFMETA_INJECTED | (reverse ? NFMETA_BACKWARD : NFMETA_FORWARD));
	return 0;
}

/* ---- begin and end ---------------------------------------------------------------------- */

struct core *
core_new(const struct opts *o)
{
	struct core *c = calloc(1, sizeof(*c));
	uint32_t k;

	if (c == NULL)
		return NULL;
	c->o = *o;
	if (c->o.snaplen == 0 || c->o.snaplen > PACKET_MAX)
		c->o.snaplen = PACKET_MAX;
	if (c->o.items == 0)
		c->o.items = BURST;
	c->items = calloc(c->o.items, sizeof(*c->items));
	c->free = calloc(c->o.items, sizeof(*c->free));
	if (c->items == NULL || c->free == NULL) {
		core_free(c);
		return NULL;
	}
	for (k = 0; k < c->o.items; k++) {
		c->items[k].index = (uint16_t)k;
		core_item_free(c, &c->items[c->o.items - 1 - k]);
		c->items[c->o.items - 1 - k].index = (uint16_t)(c->o.items - 1 - k);
	}
	c->sweep = NO_SWEEP;
	return c;
}

int
core_start(struct core *c)
{
	const struct source *s =
		strncmp(c->o.input, "dpdk:", 5) == 0 ? &source_ports : &source_link;

	if (c->started || c->source != NULL)
		return core_fail(c, "started already, or packets of the last run are still with"
				    " the engine");
	if (stats_check(c) != 0 || s->start(c) != 0)
		return -1;
	c->source = s;
	c->at = c->n = c->backs = 0;
	c->dry = c->closing = c->gone = false;
	look_at_clock(c);
	c->checked = c->now_us;
	if (flows_start(c) != 0) {
		stop_for_good(c);
		return -1;
	}
	c->started = true;
	c->cpu_before = cpu_ns();
	return 0;
}

void
core_stop(struct core *c)
{
	uint32_t k;

	if (!c->started)
		return;
	c->started = false;
	if (c->first_us != 0)
		c->c.cpu_ns += cpu_ns() - c->cpu_before;
	for (k = 0; k < c->n_held; k++) {
		core_item_free(c, c->held[k].item);
		if (!c->gone)
			core_give_back(c, c->held[k].item->m,
				       c->o.is_inline ? NFMETA_DROP : NFMETA_FORWARD);
	}
	c->n_held = 0;
	for (; c->at < c->n && !c->gone; c->at++) {
		c->c.packets++;
		c->c.bytes += c->pkts[c->at]->pkt_len;
		give_back_unseen(c, c->pkts[c->at]);
	}
	stop_for_good(c);
}

void
core_came(struct core *c, uint64_t *came, uint64_t *lost)
{
	*came = *lost = 0;
	if (c->source != NULL && !c->gone)
		c->source->stats(c, came, lost);
	*came += c->came;
	*lost += c->lost;
}

void
core_free(struct core *c)
{
	uint32_t k;

	core_stop(c);
	pcap_freecode(&c->filter);
	for (k = 0; c->items != NULL && k < c->o.items; k++)
		free(c->items[k].room);
	free(c->items);
	free(c->free);
	free(c);
}

int
core_filter(struct core *c, const char *filter)
{
	struct bpf_program program;
	pcap_t *p = pcap_open_dead(DLT_EN10MB, (int)c->o.snaplen);
	int rc = -1;

	if (p == NULL)
		return core_fail(c, "no memory for the filter");
	if (pcap_compile(p, &program, filter, 1, PCAP_NETMASK_UNKNOWN) == 0) {
		pcap_freecode(&c->filter);
		c->filter = program;
		rc = 0;
	} else {
		core_fail(c, "filter \"%s\": %s", filter, pcap_geterr(p));
	}
	pcap_close(p);
	return rc;
}
