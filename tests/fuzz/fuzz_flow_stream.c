/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Both ends of a link's flow state in one process, driven by the input: flows begin
 * and end, packets travel, messages and what looks like some travel between them, the
 * NF subscribes, leaves and comes back.  Nothing is read that is not there, no message
 * overtakes a packet, and whatever was done to the stream, after a bounded number of
 * rounds the NF is in step and both tables are equal.
 *
 * Input: a byte of options, then operations, one byte each, and their arguments.
 */
#include "hidden.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <rte_eal.h>

#define FLOWS 32
#define POOL_SIZE 511
#define HELD 64
#define ROUNDS 64
#define TYPES                                                                                      \
	(NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |                            \
	 NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct flow {
	uint32_t app_id;
	uint16_t gen;
	uint8_t action;
	bool lives;
	bool told; /* the NF's: since the snapshot's first message */
};

/* What a packet carries. */
struct cargo {
	uint32_t id;
	uint16_t gen;
	uint64_t number; /* of the packet */
	uint64_t seq;	 /* of the last message that went out before it */
};

static char prefix[64];
static struct rte_mempool *pool;
static const uint8_t *input;
static size_t input_left;

static struct nfmeta_link *link_p, *link_n;
static struct flow ours[FLOWS], theirs[FLOWS];
static struct rte_mbuf *held[HELD];
static uint16_t n_held;
static uint64_t sent, received, last_seq;
static uint64_t sent_before[1 << 16]; /* packets, by the sequence of a message */
static bool backlog, dirty, dirty_up, answered, asked, telling;
static uint32_t cursor; /* of the snapshot */

static uint8_t
take(void)
{
	if (input_left == 0)
		return 0;
	input_left--;
	return *input++;
}

static uint64_t
take64(void)
{
	uint64_t w = 0;
	int i;

	for (i = 0; i < 8; i++)
		w = w << 8 | take();
	return w;
}

static void
leave(void)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *args[] = {"fuzz",
			"--no-huge",
			"--no-shconf",
			"--no-pci",
			"-m",
			"64",
			"-l",
			"0",
			"--log-level",
			"critical",
			"--no-telemetry",
			"--file-prefix",
			prefix,
			NULL};
	cpu_set_t cpus;

	(void)argc;
	(void)argv;
	snprintf(prefix, sizeof(prefix), "nfmeta-fuzz-%d", getpid());
	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	must(rte_eal_init(RTE_DIM(args) - 1, args) >= 0);
	atexit(leave);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pool = rte_pktmbuf_pool_create("p", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	must(pool != NULL);
	return 0;
}

static uint32_t
nf_state(void)
{
	return link_n->nf.sync->state;
}

static struct feed *
feed(void)
{
	return link_p->q[0].feed;
}

/* The message that a side was given lies, whole, where messages are. */
static bool
whole(const struct nfmeta_flow_batch *b, bool up)
{
	const struct feed *f = feed();
	const struct reader *r = up ? &f->in : &link_n->nf.sync->in;
	const struct rte_mbuf *m;

	if (link_p->carrier == NFMETA_CARRIER_RING)
		return (const uint64_t *)(const void *)b == r->words + r->at &&
		       sizeof(*b) + b->count * b->entry_size <= (r->have - r->at) * 8u;
	m = up ? f->meta[f->meta_head & f->meta_mask] : link_n->nf.sync->meta;
	return rte_pktmbuf_mtod(m, const void *) == b &&
	       sizeof(*b) + b->count * b->entry_size <= m->data_len;
}

/* ---- The upfront NF ------------------------------------------------------------ */

/* A message went out, or not: what is behind it can be asked later. */
static void
went(uint64_t before, int rc)
{
	uint64_t s;

	for (s = before + 1; s <= feed()->seq; s++)
		sent_before[s % RTE_DIM(sent_before)] = sent;
	if (rc == 0 &&
	    (feed()->state == NFMETA_FEED_SNAPSHOT || feed()->state == NFMETA_FEED_STREAM))
		last_seq = feed()->seq;
}

static void
tell(uint8_t type, const void *entries, uint16_t n)
{
	bool gap = feed()->state == NFMETA_FEED_GAP;
	uint64_t before = feed()->seq;
	int rc = nfmeta_flow_send(link_p, 0, type, entries, n);

	if (gap && feed()->state == NFMETA_FEED_GAP && type <= NFMETA_MSG_RESET)
		must(rc == -EAGAIN);

	must(rc == 0 || rc == -EAGAIN);
	must(rc == 0 || feed()->state == NFMETA_FEED_GAP);
	went(before, rc);
}

static struct nfmeta_flow_state
state_of(uint32_t id)
{
	return (struct nfmeta_flow_state){.flow_id = id,
					  .flow_gen = ours[id].gen,
					  .action = ours[id].action,
					  .app_id = ours[id].app_id};
}

/* n entries from id on; many of them may be of the same flow */
static void
flows_begin(uint32_t id, uint32_t n)
{
	struct nfmeta_flow_state e[FLOWS];
	uint16_t k = 0;

	for (; n > 0; n--, id++) {
		struct flow *f = &ours[id % FLOWS];

		if (f->lives)
			continue;
		*f = (struct flow){.gen = (uint16_t)(f->gen + 1), .lives = true};
		e[k++] = state_of(id % FLOWS);
	}
	if (k != 0)
		tell(NFMETA_MSG_NEW, e, k);
}

static void
flows_change(uint32_t id, uint32_t n)
{
	struct nfmeta_flow_state e[128];
	uint16_t k = 0;

	for (; n > 0; n--, id++) {
		struct flow *f = &ours[id % FLOWS];

		if (!f->lives)
			continue;
		f->action = (uint8_t)((f->action + 1) % 5);
		f->app_id += id;
		e[k++] = state_of(id % FLOWS);
	}
	if (k != 0)
		tell(NFMETA_MSG_UPDATE, e, k);
}

static void
flows_end(uint32_t id, uint32_t n)
{
	struct nfmeta_flow_delete e[FLOWS];
	uint16_t k = 0;

	for (; n > 0; n--, id++) {
		struct flow *f = &ours[id % FLOWS];

		if (!f->lives)
			continue;
		f->lives = false;
		e[k++] = (struct nfmeta_flow_delete){.flow_id = id % FLOWS, .flow_gen = f->gen};
	}
	if (k != 0)
		tell(NFMETA_MSG_DELETE, e, k);
}

static void
flows_reset(void)
{
	uint32_t i;

	for (i = 0; i < FLOWS; i++)
		ours[i].lives = false;
	tell(NFMETA_MSG_RESET, NULL, 0);
}

static void
snapshot(uint32_t n)
{
	struct nfmeta_flow_state e[FLOWS];
	uint32_t at = asked ? 0 : cursor;
	uint8_t flags = asked ? NFMETA_MSG_FIRST : 0;
	uint64_t before = feed()->seq;
	uint16_t k = 0;
	int rc;

	if (!asked && !telling)
		return;
	for (; n > 0 && at < FLOWS; at++) {
		if (!ours[at].lives)
			continue;
		e[k++] = state_of(at);
		n--;
	}
	if (at == FLOWS)
		flags |= NFMETA_MSG_LAST;
	rc = nfmeta_flow_snapshot(link_p, 0, e, k, flags);
	must(rc == 0 || rc == -EAGAIN || rc == -NFMETA_EGAP);
	went(before, rc);
	if (rc == -EAGAIN)
		return;
	asked = false;
	telling = rc == 0 && (flags & NFMETA_MSG_LAST) == 0;
	cursor = at;
}

static bool
collect(void)
{
	const struct nfmeta_flow_batch *b = NULL;
	uint64_t before = feed()->seq;
	int rc = nfmeta_flow_collect(link_p, 0, &b);

	went(before, 1); /* the marker */
	must(rc == 0 || rc == 1 || rc == -NFMETA_EMESSAGE);
	if (rc == 1) {
		rc = nfmeta__flow_check(b, NFMETA_FLOW_MESSAGE_BYTES, 1);
		must(rc > 0 || (rc == 0 && (b->type & NFMETA_MSG_OPTIONAL) != 0));
		must(whole(b, true));
		asked |= b->type == NFMETA_MSG_RESYNC;
		return true;
	}
	return rc != 0;
}

static void
packets(uint32_t id, uint32_t n)
{
	struct rte_mbuf *m;
	struct cargo *c;

	for (; n > 0; n--, id++) {
		if (!ours[id % FLOWS].lives)
			continue;
		m = rte_pktmbuf_alloc(pool);
		must(m != NULL);
		c = (void *)rte_pktmbuf_append(m, 60);
		*c = (struct cargo){id % FLOWS, ours[id % FLOWS].gen, sent, last_seq};
		if (nfmeta_send_burst(link_p, 0, &m, 1) == 1)
			sent++;
		else
			rte_pktmbuf_free(m);
	}
}

static uint32_t
packets_back(void)
{
	struct rte_mbuf *m[64];
	uint64_t before = feed()->seq;
	uint8_t how[64];
	uint32_t k = nfmeta_collect_burst(link_p, 0, m, how, 64), i;

	for (i = 0; i < k; i++)
		must(how[i] == NFMETA_FORWARD);
	rte_pktmbuf_free_bulk(m, k);
	went(before, 1);
	return k;
}

/* ---- The NF ----------------------------------------------------------------------- */

static bool
older(const struct flow *f, uint16_t gen)
{
	return nfmeta_flow_newer(f->gen, gen) && f->lives;
}

static void
learn(const struct nfmeta_flow_state *e, bool snapshot)
{
	struct flow *f = &theirs[e->flow_id % FLOWS];

	/* What was known before the snapshot's first message is no reason to doubt it. */
	if (e->flow_id >= FLOWS || (older(f, e->flow_gen) && !(snapshot && !f->told)))
		return;
	*f = (struct flow){e->app_id, e->flow_gen, e->action, true, true};
}

static void
forget(const struct nfmeta_flow_delete *e)
{
	if (e->flow_id < FLOWS && !older(&theirs[e->flow_id], e->flow_gen))
		theirs[e->flow_id].lives = false;
}

static void
apply(const struct nfmeta_flow_batch *b)
{
	uint16_t i;

	if (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_FIRST) != 0)
		for (i = 0; i < FLOWS; i++)
			theirs[i].told = false;
	if (b->type == NFMETA_MSG_RESET)
		for (i = 0; i < FLOWS; i++)
			theirs[i].lives = false;
	for (i = 0; i < b->count; i++) {
		if (b->type == NFMETA_MSG_DELETE)
			forget(nfmeta_flow_entry(b, i));
		else if (b->type != NFMETA_MSG_COUNTERS)
			learn(nfmeta_flow_entry(b, i), b->type == NFMETA_MSG_SNAPSHOT);
	}
	if (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_LAST) != 0)
		for (i = 0; i < FLOWS; i++)
			theirs[i].lives &= theirs[i].told;
}

static bool
next(void)
{
	const struct nfmeta_flow_batch *b = NULL;
	bool first, snapshot_part, last;
	int rc = nfmeta_flow_next(link_n, &b);

	/* Nothing is lost but what was given up. */
	must(dirty || link_n->nf.sync->gaps <= feed()->gaps);
	must(rc == 0 || rc == 1 || rc == -NFMETA_EMESSAGE);
	if (rc != 1) {
		must(rc == 0 || nf_state() == NFMETA_SYNC_LOST);
		return rc != 0;
	}
	must(nfmeta__flow_check(b, NFMETA_FLOW_MESSAGE_BYTES, 0) > 0 && whole(b, false));
	must(b->type != NFMETA_MSG_HEARTBEAT && b->instance == link_p->instance);
	must(b->epoch == link_n->nf.sync->epoch);
	snapshot_part = b->type == NFMETA_MSG_SNAPSHOT;
	first = snapshot_part && (b->flags & NFMETA_MSG_FIRST) != 0;
	last = snapshot_part && (b->flags & NFMETA_MSG_LAST) != 0;
	must(nf_state() == NFMETA_SYNC_LOADING || nf_state() == NFMETA_SYNC_SYNCED);
	must(!last || nf_state() == NFMETA_SYNC_SYNCED);
	must(!first || last || nf_state() == NFMETA_SYNC_LOADING);
	must(link_n->nf.sync->seen == b->seq);
	if (!dirty)
		must(received >= sent_before[b->seq % RTE_DIM(sent_before)]);
	apply(b);
	return true;
}

static uint16_t
receive(uint16_t n)
{
	uint16_t k, i;

	n = RTE_MIN(n, (uint16_t)(HELD - n_held));
	k = nfmeta_recv_burst(link_n, held + n_held, NULL, n);
	must(k <= n);
	for (i = 0; i < k; i++) {
		const struct cargo *c = rte_pktmbuf_mtod(held[n_held + i], const struct cargo *);
		struct flow *f = &theirs[c->id];

		must(c->number == received);
		received++;
		if (!dirty && !backlog && nf_state() >= NFMETA_SYNC_LOADING)
			must(link_n->nf.sync->seen >= c->seq);
		if (!f->lives || nfmeta_flow_newer(c->gen, f->gen))
			*f = (struct flow){.gen = c->gen, .lives = true};
		f->told |= f->gen == c->gen;
	}
	n_held += k;
	return k;
}

static void
give_back(uint16_t n)
{
	n = RTE_MIN(n, n_held);
	must(nfmeta_return_burst(link_n, held, NULL, n) == n);
	memmove(held, held + n, (size_t)(n_held - n) * sizeof(held[0]));
	n_held -= n;
}

static void
attach(void)
{
	must(nfmeta_link_attach("f", 0, 0, &link_n) == 0);
	memset(theirs, 0, sizeof(theirs));
}

static void
restart(void)
{
	give_back(HELD);
	must(nfmeta_link_detach(link_n) == 0);
	attach();
}

static void
reply(uint16_t n)
{
	static const struct nfmeta_flow_verdict v[85];
	int rc = nfmeta_flow_reply(link_n, NFMETA_MSG_VERDICT, v, n);

	must(rc == (n == 0 || n > 85 ? -EINVAL : 0) || rc == -EAGAIN);
}

/* ---- What should not be there ------------------------------------------------------ */

static void
inject(bool up, uint64_t *words, uint32_t n)
{
	struct rte_mbuf *m;

	if (up && answered)
		return;
	dirty |= !up;
	dirty_up |= up;
	if (link_p->carrier == NFMETA_CARRIER_RING) {
		rte_ring_sp_enqueue_bulk(up ? link_n->nf.sync->up : feed()->down, (void **)words, n,
					 NULL);
		return;
	}
	if (up && nfmeta_blank_burst(link_n, &m, 1) == 0)
		return;
	if (!up) {
		m = rte_pktmbuf_alloc(pool);
		must(m != NULL);
	}
	m->data_off = 0;
	memcpy(m->buf_addr, words, n * 8);
	m->data_len = (uint16_t)(n * 8 - take() % 8);
	m->pkt_len = m->data_len;
	if (up)
		nfmeta__meta_reply(&link_n->nf, m);
	else if (!nfmeta__meta_send(link_p, &link_p->q[0], m))
		rte_pktmbuf_free(m);
	else
		dirty = true;
}

/* Any words. */
static void
garbage(bool up)
{
	uint64_t words[64];
	uint32_t n = 1 + take() % RTE_DIM(words), i;

	for (i = 0; i < n; i++)
		words[i] = take64();
	inject(up, words, n);
}

/* A message that could be one, as long as it says or not. */
static void
forge(bool up)
{
	static uint64_t words[MESSAGE_WORDS];
	struct nfmeta_flow_batch b = {.magic = NFMETA_FLOW_MAGIC, .abi = 1};
	uint8_t how = take();
	uint32_t n, i;

	b.type = take();
	b.flags = take();
	b.count = take();
	b.entry_size = (uint16_t)(take() * 4);
	b.ask = link_n->nf.sync->ask;
	b.instance = link_p->instance;
	b.epoch = link_n->nf.sync->epoch;
	b.seq = (up ? link_n->nf.sync->replies + 1 : link_n->nf.sync->expected) + (how & 3);
	if (how & 4)
		b.epoch--;
	if (how & 8)
		b.instance++;
	if (how & 16)
		b.ask++;
	/* A question that was lost, and an answer that nobody gave: nobody could tell. */
	if (!up && b.type == NFMETA_MSG_SNAPSHOT && (b.flags & NFMETA_MSG_FIRST) != 0) {
		if (dirty_up)
			b.ask = 0;
		else
			answered = true;
	}
	if (how & 32)
		b.barrier = received + take();
	if (how & 64)
		b.barrier = take64();
	memcpy(words, &b, sizeof(b));
	n = (uint32_t)(HEADER_WORDS + b.count * b.entry_size / 8);
	n = RTE_MIN(n, (uint32_t)MESSAGE_WORDS);
	for (i = HEADER_WORDS; i < n; i++)
		words[i] = i < HEADER_WORDS + 4 ? take64() : i;
	if (how & 128)
		n = 1 + take() % n;
	inject(up, words, n);
}

/* ---- Together ---------------------------------------------------------------------- */

static void
operation(void)
{
	static const struct nfmeta_flow_counters counters[51];
	uint8_t op = take(), a = take();

	switch (op % 24) {
	case 0:
	case 1:
		flows_begin(a, 1 + a / FLOWS);
		break;
	case 2:
		flows_change(a, 1 + a / 2u);
		break;
	case 3:
	case 4:
		flows_end(a, 1 + a / FLOWS);
		break;
	case 5:
	case 6:
		packets(a, 1 + a / FLOWS);
		break;
	case 7:
	case 8:
		receive(a);
		break;
	case 9:
	case 10:
		for (a %= 16; next() && a > 0; a--)
			;
		break;
	case 11:
		give_back(a);
		break;
	case 12:
		packets_back();
		break;
	case 13:
	case 14:
		collect();
		break;
	case 15:
		snapshot(a % FLOWS);
		break;
	case 16:
		must(nfmeta_flow_subscribe(link_n, a < 192 ? TYPES : 0) == 0);
		break;
	case 17:
		tell(NFMETA_MSG_HEARTBEAT, NULL, 0);
		break;
	case 18:
		if (a < 64)
			flows_reset();
		else
			tell(NFMETA_MSG_COUNTERS, counters, 1 + a % 51);
		break;
	case 19:
		reply(a % 90);
		break;
	case 20:
		if (a < 128)
			garbage(false);
		else
			forge(false);
		break;
	case 21:
		if (a < 128)
			garbage(true);
		else
			forge(true);
		break;
	case 22:
		if (a < 128)
			restart();
		break;
	default:
		tell(NFMETA_MSG_OPTIONAL | 0x60, &(uint64_t){a}, 1);
	}
}

/* Everything that is on its way arrives. */
static void
settle(void)
{
	uint32_t n = 0, k;

	do {
		must(n++ < 10000);
		k = receive(HELD);
		while (next())
			must(k++ < 10000);
		give_back(HELD);
		k += packets_back();
		while (collect())
			must(k++ < 10000);
		if (asked || telling) {
			snapshot(FLOWS);
			k++;
		}
	} while (k != 0);
}

/* In step: what the upfront NF asks now is answered. */
static void
recover(void)
{
	uint64_t seq;
	int round;

	if (nf_state() == NFMETA_SYNC_OFF)
		must(nfmeta_flow_subscribe(link_n, TYPES) == 0);
	for (round = 0; round < ROUNDS; round++) {
		settle();
		/* A RESYNC may have gone with garbage on the way up: who waits asks again. */
		if (dirty_up && nf_state() == NFMETA_SYNC_LOST) {
			must(nfmeta_flow_subscribe(link_n, TYPES) == 0);
			continue;
		}
		tell(NFMETA_MSG_HEARTBEAT, NULL, 0);
		seq = feed()->seq;
		settle();
		if (feed()->state == NFMETA_FEED_STREAM && nf_state() == NFMETA_SYNC_SYNCED &&
		    feed()->acked == seq)
			return;
	}
	fprintf(stderr, "feed %u, NF %u, %d rounds\n", feed()->state, nf_state(), ROUNDS);
	must(!"it recovers");
}

static void
compare(void)
{
	uint32_t i;

	for (i = 0; i < FLOWS; i++) {
		must(ours[i].lives == theirs[i].lives);
		if (!ours[i].lives)
			continue;
		must(ours[i].gen == theirs[i].gen && ours[i].action == theirs[i].action);
		must(ours[i].app_id == theirs[i].app_id);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 4, .pool = pool, .flow_ring = 512);
	uint64_t lost = 1;
	uint8_t options;

	input = data;
	input_left = size;
	options = take();
	o.carrier = options & 1 ? NFMETA_CARRIER_INBAND : NFMETA_CARRIER_RING;
	backlog = (options & 2) != 0;
	o.flow_backlog = backlog ? 512 : NFMETA_NO_BACKLOG;
	memset(ours, 0, sizeof(ours));
	if (options & 4) /* generations wrap */
		memset(ours, 0xff, sizeof(ours));
	for (size = 0; size < FLOWS; size++)
		ours[size].lives = false;
	sent = received = last_seq = 0;
	n_held = 0;
	dirty = dirty_up = answered = asked = telling = false;
	must(nfmeta_link_create("f", &o, &link_p) == 0);
	attach();
	packets_back(); /* stocks blanks */
	while (input_left > 0)
		operation();
	recover();
	compare();
	must(nfmeta_link_detach(link_n) == 0);
	must(nfmeta_link_destroy(link_p, &lost) == 0 && lost == 0);
	must(rte_mempool_avail_count(pool) == POOL_SIZE);
	return 0;
}
