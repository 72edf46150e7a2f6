/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/*
 * flow.c - what flow state costs: deletes that travel in messages, compared with
 * ids on a bare ring; packets with and without deletes between them; the shared
 * table.  "micro flow"; README.md beside this file says how.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <rte_pause.h>
#include <rte_prefetch.h>
#include <rte_random.h>
#include <rte_ring.h>

#include <nfmeta/nfmeta.h>

#include "bench.h"

#define RING_SIZE 2048 /* of the links */
#define WORDS 8192     /* of the flow rings, and of the bare ring */
#define IN_FLIGHT 1024 /* packets */
#define BATCH_MAX 256
#define TABLE_FLOWS (UINT32_C(4) << 20)
#define TABLE_OPS (UINT32_C(1) << 20) /* of a run */
#define HOT_FLOWS 32

enum {
	LINK_PLAIN, /* no carrier */
	LINK_RING,
	LINK_INBAND,
	LINK_TABLE,
	LINKS
};
static const struct {
	const char *name;
	uint8_t carrier;
} link_kinds[LINKS] = {
	[LINK_PLAIN] = {"micro-plain", 0},
	[LINK_RING] = {"micro-ring", NFMETA_CARRIER_RING},
	[LINK_INBAND] = {"micro-inband", NFMETA_CARRIER_INBAND},
	[LINK_TABLE] = {"micro-table", NFMETA_CARRIER_TABLE},
};

/* ---- What is compared ------------------------------------------------------ */

enum work {
	WORK_BARE,    /* take ids from the bare ring; link: burst */
	WORK_DELETES, /* take messages */
	WORK_PACKETS, /* take packets with records, and messages if the link has any */
	WORK_READ,    /* read the table; link: TABLE_* */
};

static const uint16_t batches[] = {1, 16, 64, 256};
#define BATCHES RTE_DIM(batches)
static const struct {
	const char *name;
	uint8_t work;
	uint8_t link;
} ways[] = {
	{"bare", WORK_BARE, 0},
	{"ring", WORK_DELETES, LINK_RING},
	{"inband", WORK_DELETES, LINK_INBAND},
};
#define WAYS RTE_DIM(ways)
static double delete_ns[WAYS][BATCHES][ROUNDS_MAX];

/* Of the packets, one in ten is followed by a delete; they are gathered. */
static const struct {
	const char *name;
	const char *label;
	uint8_t link;
	uint8_t gather; /* deletes to a message; 1: those of a burst */
	uint8_t base;	/* index of what it is compared with */
} flows_of[] = {
	{"plain", "link without flow state", LINK_PLAIN, 0, 0},
	{"ring_idle", "ring, no deletes", LINK_RING, 0, 0},
	{"ring_burst", "ring, after each burst", LINK_RING, 1, 1},
	{"ring_64", "ring, 64 at a time", LINK_RING, 64, 1},
	{"inband_idle", "in-band, no deletes", LINK_INBAND, 0, 0},
	{"inband_burst", "in-band, after each burst", LINK_INBAND, 1, 4},
	{"inband_64", "in-band, 64 at a time", LINK_INBAND, 64, 4},
};
#define PACKET_KINDS RTE_DIM(flows_of)
static double packet_ns[PACKET_KINDS][ROUNDS_MAX];

enum {
	TABLE_HOT,    /* HOT_FLOWS flows in turn */
	TABLE_RANDOM, /* any flow */
	TABLE_AHEAD,  /* any flow, the lines of a burst are fetched first */
	TABLE_WAYS
};
static const char *const table_ways[TABLE_WAYS] = {"hot", "random", "random_prefetched"};
enum {
	TABLE_COUNT,
	TABLE_SET,
	TABLE_READ,
	TABLE_CALLS
};
static const char *const table_calls[TABLE_CALLS] = {"count", "set", "read"};
static double table_ns[TABLE_CALLS][TABLE_WAYS][ROUNDS_MAX];

/* ---- Both sides ------------------------------------------------------------- */

static struct nfmeta_link *links[LINKS];
static struct rte_ring *bare;
static struct nfmeta_table *table;
static struct nfmeta_table_flow *entries; /* not to be written by the secondary */
static uint32_t nb_entries;

static uint32_t
any_flow(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(((*x >> 32) * nb_entries) >> 32);
}

static __rte_always_inline double
run_table(const unsigned int call, const unsigned int way)
{
	uint32_t i, j, loop, at[BURST];
	struct nfmeta_table_flow copy;
	uint64_t x = rte_rand(), sum = 0, start = 0;

	for (loop = 0; loop < (TABLE_OPS + TABLE_OPS / 8) / BURST; loop++) {
		if (loop == TABLE_OPS / 8 / BURST)
			start = rte_rdtsc_precise();
		for (i = 0; i < BURST; i++) {
			at[i] = way == TABLE_HOT ? i % HOT_FLOWS : any_flow(&x);
			if (way != TABLE_AHEAD)
				continue;
			if (call == TABLE_READ)
				rte_prefetch0(&entries[at[i]]);
			else
				prefetch_write(&entries[at[i]]);
		}
		for (i = 0; i < BURST; i++) {
			j = at[i];
			if (call == TABLE_COUNT)
				nfmeta_table_count(&entries[j], i & 1, 1, PKT_LEN);
			else if (call == TABLE_SET)
				sum += (uint32_t)nfmeta_table_set(&entries[j], 1, NFMETA_TABLE_KEEP,
								  NFMETA_ACTION_INSPECT, loop);
			else
				sum += nfmeta_table_read(&entries[j], &copy) == 1 &&
				       copy.flow_gen == 1;
		}
		__asm__ volatile("" : : "r"(&copy) : "memory");
	}
	start = rte_rdtsc_precise() - start;
	if (call != TABLE_COUNT && sum != (uint64_t)loop * BURST)
		die("a flow is not in the table");
	return tsc_to_ns(start) / TABLE_OPS;
}

#define RUN_TABLE(name, call, way)                                                                 \
	static __rte_noinline double run_table_##name(void)                                        \
	{                                                                                          \
		return run_table(call, way);                                                       \
	}
RUN_TABLE(count_hot, TABLE_COUNT, TABLE_HOT)
RUN_TABLE(count_random, TABLE_COUNT, TABLE_RANDOM)
RUN_TABLE(count_ahead, TABLE_COUNT, TABLE_AHEAD)
RUN_TABLE(set_hot, TABLE_SET, TABLE_HOT)
RUN_TABLE(set_random, TABLE_SET, TABLE_RANDOM)
RUN_TABLE(set_ahead, TABLE_SET, TABLE_AHEAD)
RUN_TABLE(read_hot, TABLE_READ, TABLE_HOT)
RUN_TABLE(read_random, TABLE_READ, TABLE_RANDOM)
RUN_TABLE(read_ahead, TABLE_READ, TABLE_AHEAD)

static double (*const table_runs[TABLE_CALLS][TABLE_WAYS])(void) = {
	{run_table_count_hot, run_table_count_random, run_table_count_ahead},
	{run_table_set_hot, run_table_set_random, run_table_set_ahead},
	{run_table_read_hot, run_table_read_random, run_table_read_ahead},
};

/* ---- Secondary: the NF -------------------------------------------------------- */

void
flow_attach(void)
{
	unsigned int l;

	for (l = 0; l < LINKS; l++) {
		if (nfmeta_link_attach(link_kinds[l].name, 0, 5000, &links[l]) != 0)
			die("secondary: %s", nfmeta_error());
		if ((l == LINK_RING || l == LINK_INBAND) &&
		    nfmeta_flow_subscribe(links[l], NFMETA_TYPE(NFMETA_MSG_DELETE)) != 0)
			die("secondary: %s", nfmeta_error());
	}
	entries = nfmeta_table_flows(nfmeta_link_table(links[LINK_TABLE]), &nb_entries);
	bare = rte_ring_lookup("micro-bare");
	if (bare == NULL)
		die("secondary: no bare ring");
}

void
flow_detach(void)
{
	unsigned int l;

	for (l = 0; l < LINKS; l++)
		if (nfmeta_link_detach(links[l]) != 0)
			die("secondary: %s", nfmeta_error());
}

/* To be asked before looking for what may still have come. */
static int
over(uint32_t seq)
{
	return __atomic_load_n(&control->stop, __ATOMIC_ACQUIRE) == seq;
}

static void
serve_bare(uint32_t seq, unsigned int burst)
{
	uint64_t deletes = 0, sum = 0;
	void *ids[BATCH_MAX];
	unsigned int i, n;
	int last;

	for (;;) {
		last = over(seq);
		n = rte_ring_sc_dequeue_burst(bare, ids, burst, NULL);
		if (n == 0) {
			if (last)
				break;
			rte_pause();
		}
		for (i = 0; i < n; i++)
			sum += (uintptr_t)ids[i];
		deletes += n;
	}
	control->deletes = deletes;
	control->sum = sum;
}

/* All messages whose turn it is. */
static inline uint64_t
take_deletes(struct nfmeta_link *link, uint64_t *sum)
{
	const struct nfmeta_flow_batch *b;
	const struct nfmeta_flow_delete *d;
	uint64_t n = 0;
	uint16_t i;
	int rc;

	while ((rc = nfmeta_flow_next(link, &b)) > 0) {
		if (b->type != NFMETA_MSG_DELETE)
			continue;
		for (i = 0; i < b->count; i++) {
			d = nfmeta_flow_entry(b, i);
			*sum += d->flow_id + d->flow_gen;
		}
		n += b->count;
	}
	if (rc < 0)
		die("secondary: %s", nfmeta_error());
	return n;
}

static void
serve_deletes(struct nfmeta_link *link, uint32_t seq)
{
	uint64_t deletes = 0, sum = 0, n;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *pkts[BURST];
	int last;

	for (;;) {
		last = over(seq);
		if (nfmeta_recv_burst(link, pkts, recs, BURST) != 0)
			die("secondary: a packet where there are none");
		n = take_deletes(link, &sum);
		if (n == 0) {
			if (last)
				break;
			rte_pause();
		}
		deletes += n;
	}
	control->deletes = deletes;
	control->sum = sum;
}

static void
serve_packets(struct nfmeta_link *link, uint32_t seq, int messages)
{
	uint64_t deletes = 0, sum = 0, n = 0, packets = 0;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	uint16_t i, k;
	int last;

	for (;;) {
		last = over(seq);
		k = nfmeta_recv_burst(link, pkts, recs, BURST);
		for (i = 0; i < k; i++)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
		for (i = 0; i < k; i++) {
			how[i] = recs[i].flags & NFMETA_FLOW_KNOWN ? NFMETA_FORWARD : NFMETA_DROP;
			sum += recs[i].flow_id +
			       *rte_pktmbuf_mtod_offset(pkts[i], uint16_t *, L4_OFF);
		}
		nfmeta_return_burst(link, pkts, how, k);
		packets += k;
		if (messages)
			deletes += n = take_deletes(link, &sum);
		if (k == 0 && n == 0) {
			if (last)
				break;
			rte_pause();
		}
	}
	control->packets = packets;
	control->deletes = deletes;
	control->sum = sum;
}

void
flow_serve(uint32_t seq)
{
	switch (control->work) {
	case WORK_BARE:
		serve_bare(seq, control->link);
		break;
	case WORK_DELETES:
		serve_deletes(links[control->link], seq);
		break;
	case WORK_PACKETS:
		serve_packets(links[control->link], seq, control->link != LINK_PLAIN);
		break;
	case WORK_READ:
		control->ns = table_runs[TABLE_READ][control->link]();
		break;
	}
}

/* ---- Primary: the upfront NF --------------------------------------------------- */

static void
make_table(void)
{
	struct nfmeta_flow_key key;
	uint32_t i;
	int rc;

	for (nb_entries = TABLE_FLOWS; nb_entries >= FLOWS; nb_entries /= 2) {
		rc = nfmeta_table_create("micro", nb_entries, &table);
		if (rc == 0)
			break;
		if (rc != -ENOMEM)
			die("%s", nfmeta_error());
	}
	if (nb_entries < FLOWS)
		die("%s", nfmeta_error());
	entries = nfmeta_table_flows(table, NULL);
	memset(&key, 0, sizeof(key));
	key.ip_version = 4;
	key.proto = IPPROTO_TCP;
	for (i = 0; i < nb_entries; i++) {
		memcpy(key.addr_a, &i, sizeof(i));
		nfmeta_table_open(&entries[i], 1, &key, 0);
	}
}

static struct rte_mempool *metas;

void
flow_make(void)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = RING_SIZE);
	unsigned int l;

	make_table();
	/* For meta packets and blanks; with a cache for this lcore, as pools have. */
	metas = rte_pktmbuf_pool_create("micro_metas", 4 * RING_SIZE - 1, 256, 0,
					RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (metas == NULL)
		die("no packet pool: %s", rte_strerror(rte_errno));
	o.pool = metas;
	for (l = 0; l < LINKS; l++) {
		o.carrier = link_kinds[l].carrier;
		o.blanks = o.carrier == NFMETA_CARRIER_INBAND ? 32 : 0;
		o.table = l == LINK_TABLE ? table : NULL;
		o.flow_ring = o.carrier != 0 ? WORDS : 0;
		if (nfmeta_link_create(link_kinds[l].name, &o, &links[l]) != 0)
			die("%s", nfmeta_error());
	}
	bare = rte_ring_create("micro-bare", WORDS, SOCKET_ID_ANY,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (bare == NULL)
		die("no ring: %s", rte_strerror(rte_errno));
}

static struct nfmeta_flow_stats
stats_of(struct nfmeta_link *link)
{
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};

	if (nfmeta_flow_stats(link, 0, &s) != 0)
		die("%s", nfmeta_error());
	return s;
}

/* What comes up: meta packets, and the first question, which an empty snapshot answers. */
static inline void
look_up_ring(struct nfmeta_link *link)
{
	const struct nfmeta_flow_batch *b;

	while (nfmeta_flow_collect(link, 0, &b) > 0)
		if (b->type == NFMETA_MSG_RESYNC &&
		    nfmeta_flow_snapshot(link, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST) != 0)
			die("%s", nfmeta_error());
}

static void
await_stream(struct nfmeta_link *link)
{
	uint64_t start = rte_rdtsc();
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];

	do {
		if (nfmeta_collect_burst(link, 0, pkts, how, BURST) != 0)
			die("a packet where there are none");
		look_up_ring(link);
		if (rte_rdtsc() - start > ms_to_tsc(5000))
			die("the secondary does not subscribe");
	} while (stats_of(link).state != NFMETA_FEED_STREAM);
}

/* In-band, what carried the messages has to come back. */
static void
collect_metas(struct nfmeta_link *link)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	uint64_t start = rte_rdtsc();
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];

	do {
		if (nfmeta_collect_burst(link, 0, pkts, how, BURST) != 0)
			die("a packet where there are none");
		if (nfmeta_link_stats(link, 0, &s) != 0)
			die("%s", nfmeta_error());
		if (rte_rdtsc() - start > ms_to_tsc(5000))
			die("%" PRIu64 " meta packets do not come back", s.metas);
	} while (s.metas != 0);
}

static void
end_order(void)
{
	__atomic_store_n(&control->stop, control->seq, __ATOMIC_RELEASE);
	await();
}

/* Time of a run: warming up, then what counts. */
struct timer {
	uint64_t start, t0, looked;
};

/* In every loop.  0: go on; 1: counting begins; 2: over. */
static inline int
tick(struct timer *t, uint64_t loops)
{
	uint64_t now;

	if (likely((loops & 63) != 0))
		return 0;
	now = rte_rdtsc();
	if (t->start == 0)
		t->start = t->looked = now;
	if (now - t->looked > ms_to_tsc(100)) {
		t->looked = now;
		check_child();
	}
	if (t->t0 == 0 && now - t->start > ms_to_tsc(opt.warm_ms)) {
		t->t0 = now;
		return 1;
	}
	return t->t0 != 0 && now - t->t0 > ms_to_tsc(opt.run_ms) ? 2 : 0;
}

static double
run_bare(unsigned int batch)
{
	uint64_t id = 0, from = 0, loops = 0;
	struct timer t = {0, 0, 0};
	void *ids[BATCH_MAX];
	unsigned int i;
	double ns;
	int what;

	order(WORK_BARE, batch);
	for (;;) {
		for (i = 0; i < batch; i++)
			ids[i] = (void *)(uintptr_t)id++;
		do {
			what = tick(&t, ++loops);
			if (what == 1)
				from = id - batch;
			if (what == 2 && id - batch != from)
				goto over;
		} while (rte_ring_sp_enqueue_bulk(bare, ids, batch, NULL) == 0);
	}
over:
	id -= batch;
	ns = tsc_to_ns(rte_rdtsc() - t.t0) / (double)(id - from);
	end_order();
	if (control->deletes != id)
		die("%" PRIu64 " of %" PRIu64 " ids came", control->deletes, id);
	return ns;
}

/*
 * As fast as the NF takes them: never more messages on their way than there is
 * room for, so that none goes by the backlog.
 */
static double
run_deletes(struct nfmeta_link *link, unsigned int l, unsigned int batch)
{
	const uint64_t window = l == LINK_RING ? WORDS / (5 + batch) : RING_SIZE / 2;
	uint64_t id = 0, from = 0, loops = 0, sent, seen;
	struct nfmeta_flow_stats s = stats_of(link);
	struct nfmeta_flow_delete d[BATCH_MAX];
	struct timer t = {0, 0, 0};
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	unsigned int i;
	double ns;
	int what;

	memset(d, 0, sizeof(d));
	sent = s.sent;
	seen = s.seen;
	order(WORK_DELETES, l);
	for (;;) {
		for (i = 0; i < batch; i++) {
			d[i].flow_id = (uint32_t)id++;
			d[i].flow_gen = 1;
		}
		do {
			what = tick(&t, ++loops);
			if (what == 1)
				from = id - batch;
			if (what == 2 && id - batch != from)
				goto over;
			if ((loops & 15) == 0 || sent - seen >= window) {
				nfmeta_collect_burst(link, 0, pkts, how, BURST);
				look_up_ring(link);
				seen = stats_of(link).seen;
			}
		} while (sent - seen >= window);
		if (nfmeta_flow_send(link, 0, NFMETA_MSG_DELETE, d, (uint16_t)batch) != 0)
			die("%s", nfmeta_error());
		sent++;
	}
over:
	id -= batch;
	ns = tsc_to_ns(rte_rdtsc() - t.t0) / (double)(id - from);
	end_order();
	collect_metas(link);
	s = stats_of(link);
	if (control->deletes != id || s.lost != 0)
		die("%" PRIu64 " of %" PRIu64 " deletes came, %" PRIu64 " messages were given up",
		    control->deletes, id, s.lost);
	return ns;
}

/* As receiving leaves a packet, with a record. */
static inline void
prepare(const struct nfmeta_field *field, struct rte_mbuf **pkts, struct nfmeta_record *recs,
	uint32_t id, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		pkts[i]->data_off = RTE_PKTMBUF_HEADROOM;
		pkts[i]->ol_flags = 0;
		pkts[i]->packet_type = 0;
		pkts[i]->pkt_len = PKT_LEN;
		pkts[i]->data_len = PKT_LEN;
		pkts[i]->vlan_tci = 0;
		recs[i].flow_id = (id + i) & (FLOWS - 1);
	}
	nfmeta_record_set_burst(field, pkts, recs, n);
}

static double
run_packets(unsigned int kind)
{
	const unsigned int l = flows_of[kind].link;
	const unsigned int least = flows_of[kind].gather;
	struct nfmeta_link *link = links[l];
	const struct nfmeta_field *field = nfmeta_link_field(link);
	uint64_t packets = 0, loops = 0, deletes = 0, due = 0;
	struct nfmeta_flow_delete d[BATCH_MAX];
	struct nfmeta_record recs[BURST];
	struct timer t = {0, 0, 0};
	struct rte_mbuf *pkts[BURST];
	uint32_t id = 0, left;
	uint8_t how[BURST];
	unsigned int i, k;
	double ns = 0;
	uint16_t n;
	int what;

	memset(d, 0, sizeof(d));
	for (i = 0; i < BURST; i++) {
		nfmeta_record_init(&recs[i]);
		recs[i].flags = NFMETA_L3_VALID | NFMETA_FLOW_KNOWN;
		recs[i].l4_off = L4_OFF;
	}
	order(WORK_PACKETS, l);
	for (left = 0; left < IN_FLIGHT; left += BURST) {
		prepare(field, &mbufs[left], recs, id, BURST);
		if (nfmeta_send_burst(link, 0, &mbufs[left], BURST) != BURST)
			die("the link does not take %u packets", IN_FLIGHT);
	}
	for (;;) {
		n = nfmeta_collect_burst(link, 0, pkts, how, BURST);
		if (l != LINK_PLAIN)
			look_up_ring(link);
		what = tick(&t, ++loops);
		if (what == 1)
			packets = 0;
		if (what == 2 && packets != 0) {
			ns = tsc_to_ns(rte_rdtsc() - t.t0) / (double)packets;
			break;
		}
		if (n == 0) {
			rte_pause();
			continue;
		}
		packets += n;
		prepare(field, pkts, recs, id, n);
		id += n;
		if (unlikely(nfmeta_send_burst(link, 0, pkts, n) != n))
			die("the link did not accept a packet that it had given back");
		if (least == 0)
			continue;
		due += n;
		if (due < 10 * least)
			continue;
		k = (unsigned int)(due / 10);
		due %= 10;
		for (i = 0; i < k; i++)
			d[i].flow_id = id + i;
		if (nfmeta_flow_send(link, 0, NFMETA_MSG_DELETE, d, (uint16_t)k) != 0)
			die("%s", nfmeta_error());
		deletes += k;
	}
	memcpy(mbufs, pkts, n * sizeof(pkts[0]));
	for (left = n; left < IN_FLIGHT; left += n) {
		n = nfmeta_collect_burst(link, 0, &mbufs[left], how,
					 (uint16_t)RTE_MIN(IN_FLIGHT - left, (uint32_t)BURST));
		for (i = 0; i < n; i++)
			if (how[i] != NFMETA_FORWARD)
				die("the secondary found no record: the figures would be wrong");
		if (n == 0 && rte_rdtsc() - t.looked > ms_to_tsc(5000))
			die("packets were lost: %u of %u came back", left, IN_FLIGHT);
	}
	end_order();
	collect_metas(link);
	if (control->deletes != deletes)
		die("%" PRIu64 " of %" PRIu64 " deletes came", control->deletes, deletes);
	return ns;
}

void
flow_measure(void)
{
	unsigned int round, b, w, k;

	await_stream(links[LINK_RING]);
	await_stream(links[LINK_INBAND]);
	for (round = 0; round < opt.rounds; round++) {
		for (b = 0; b < BATCHES; b++)
			for (w = 0; w < WAYS; w++) {
				delete_ns[w][b][round] =
					ways[w].work == WORK_BARE
						? run_bare(batches[b])
						: run_deletes(links[ways[w].link], ways[w].link,
							      batches[b]);
				fprintf(stderr,
					"micro: round %u/%u, deletes, %3u at a time, %-6s "
					"%6.2f ns\n",
					round + 1, opt.rounds, batches[b], ways[w].name,
					delete_ns[w][b][round]);
			}
		for (k = 0; k < PACKET_KINDS; k++) {
			packet_ns[k][round] = run_packets(k);
			fprintf(stderr, "micro: round %u/%u, packets, %-26s %6.1f ns\n", round + 1,
				opt.rounds, flows_of[k].label, packet_ns[k][round]);
		}
		for (w = 0; w < TABLE_WAYS; w++) {
			for (k = TABLE_COUNT; k < TABLE_READ; k++)
				table_ns[k][w][round] = table_runs[k][w]();
			order(WORK_READ, w);
			await();
			table_ns[TABLE_READ][w][round] = control->ns;
		}
	}
}

/* ---- Results --------------------------------------------------------------------- */

static void
find_bars(void)
{
	unsigned int b, w, k;

	for (b = 0; b < BATCHES; b++)
		for (w = 1; w < WAYS; w++)
			if (batches[b] == 64)
				add_bar("x bare", ratio_of(delete_ns[0][b], delete_ns[w][b]).median,
					0.5, 1, "deletes/s, 64 at a time, %s", ways[w].name);
	for (k = 0; k < PACKET_KINDS; k++)
		if (flows_of[k].gather != 0)
			add_bar("x without",
				ratio_of(packet_ns[flows_of[k].base], packet_ns[k]).median, 0.9, 1,
				"packets/s, 1 delete in 10, %s", flows_of[k].label);
}

static void
print_results(void)
{
	unsigned int b, w, k;
	struct spread s, r;

	printf("\ndeletes per second, in millions, median of %u runs; x: of the bare ring's\n"
	       "  %-10s %8s %7s %7s",
	       opt.rounds, "at a time", "bare", "min", "max");
	for (w = 1; w < WAYS; w++)
		printf("  %8s %7s %7s %5s", ways[w].name, "min", "max", "x");
	printf("\n");
	for (b = 0; b < BATCHES; b++) {
		printf("  %-10u", batches[b]);
		for (w = 0; w < WAYS; w++) {
			s = spread_of(delete_ns[w][b]);
			printf(" %s%8.2f %7.2f %7.2f", w != 0 ? " " : "", 1e3 / s.median,
			       1e3 / s.max, 1e3 / s.min);
			if (w != 0)
				printf(" %5.2f", ratio_of(delete_ns[0][b], delete_ns[w][b]).median);
		}
		printf("\n");
	}
	printf("\n%u packets in flight with a record, ns per packet and round trip; x: packets per "
	       "second,\nof the link without flow state or without deletes\n"
	       "  %-26s %7s %7s %7s  %5s %5s %5s\n",
	       IN_FLIGHT, "", "ns", "min", "max", "x", "min", "max");
	for (k = 0; k < PACKET_KINDS; k++) {
		s = spread_of(packet_ns[k]);
		r = ratio_of(packet_ns[flows_of[k].base], packet_ns[k]);
		printf("  %-26s %7.1f %7.1f %7.1f  %5.2f %5.2f %5.2f\n", flows_of[k].label,
		       s.median, s.min, s.max, r.median, r.min, r.max);
	}
	printf("\nshared table of %u flows, %zu bytes each%s; ns per call\n  %-8s", nb_entries,
	       sizeof(struct nfmeta_table_flow),
	       nb_entries < TABLE_FLOWS ? " (there was no memory for 4 Mi)" : "", "");
	for (w = 0; w < TABLE_WAYS; w++)
		printf(" %18s %7s %7s", table_ways[w], "min", "max");
	printf("\n");
	for (k = 0; k < TABLE_CALLS; k++) {
		printf("  %-8s", table_calls[k]);
		for (w = 0; w < TABLE_WAYS; w++) {
			s = spread_of(table_ns[k][w]);
			printf(" %18.2f %7.2f %7.2f", s.median, s.min, s.max);
		}
		printf("\n");
	}
}

static void
write_results(const char *path)
{
	FILE *f = json_open(path);
	const char *sep = "";
	unsigned int b, w, k;

	fprintf(f, "  \"deletes\": [");
	for (b = 0; b < BATCHES; b++)
		for (w = 0; w < WAYS; w++) {
			fprintf(f, "%s\n    {\"carrier\": \"%s\", \"batch\": %u, ", sep,
				ways[w].name, batches[b]);
			json_spread(f, spread_of(delete_ns[w][b]));
			fprintf(f, ", ");
			json_runs(f, "ns", delete_ns[w][b]);
			fprintf(f, ", \"per_second\": %.0f, \"x_bare\": {",
				1e9 / spread_of(delete_ns[w][b]).median);
			json_spread(f, ratio_of(delete_ns[0][b], delete_ns[w][b]));
			fprintf(f, "}}");
			sep = ",";
		}
	fprintf(f, "\n  ],\n  \"in_flight\": %u,\n  \"packets\": [", IN_FLIGHT);
	for (k = 0, sep = ""; k < PACKET_KINDS; k++, sep = ",") {
		fprintf(f, "%s\n    {\"name\": \"%s\", \"label\": \"%s\", ", sep, flows_of[k].name,
			flows_of[k].label);
		json_spread(f, spread_of(packet_ns[k]));
		fprintf(f, ", ");
		json_runs(f, "ns", packet_ns[k]);
		fprintf(f, ", \"base\": \"%s\", \"x_base\": {", flows_of[flows_of[k].base].name);
		json_spread(f, ratio_of(packet_ns[flows_of[k].base], packet_ns[k]));
		fprintf(f, "}}");
	}
	fprintf(f, "\n  ],\n  \"table\": {\"flows\": %u, \"bytes_per_flow\": %zu, \"calls\": [",
		nb_entries, sizeof(struct nfmeta_table_flow));
	for (k = 0, sep = ""; k < TABLE_CALLS; k++)
		for (w = 0; w < TABLE_WAYS; w++, sep = ",") {
			fprintf(f, "%s\n    {\"call\": \"%s\", \"flows\": \"%s\", ", sep,
				table_calls[k], table_ways[w]);
			json_spread(f, spread_of(table_ns[k][w]));
			fprintf(f, "}");
		}
	fprintf(f, "\n  ]},\n");
	json_close(f, path);
}

void
flow_report(void)
{
	unsigned int l;

	for (l = 0; l < LINKS; l++)
		if (nfmeta_link_destroy(links[l], NULL) != 0)
			die("%s", nfmeta_error());
	nfmeta_table_destroy(table);
	rte_ring_free(bare);
	if (rte_mempool_in_use_count(metas) != 0)
		die("%u meta packets were lost", rte_mempool_in_use_count(metas));
	rte_mempool_free(metas);
	find_bars();
	print_results();
	print_bars();
	if (opt.json != NULL)
		write_results(opt.json);
}
