/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * sessions - what an active flow buffer (AFB) in front of the session table gains.
 *
 * The table is an rte_hash, both directions of a flow one session; its number for a key
 * is the session's.  The AFB is direct-mapped, has no collision handling, and one word of
 * 8 bytes a slot: half of the key's hash, and the session's number.  A word is read and
 * replaced at once, so readers need no lock; whether the session is the right one says
 * its own key, in the line that is read anyway.  A miss asks the table and replaces the
 * word.
 */
#include <err.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#define BURST 32
#define THREADS 2
#define ROUNDS_MAX 99
#define PACKET_MAX 16384
#define OTHERS_US 20 /* a burst that takes longer was interrupted: it does not count */

struct session {
	struct nfmeta_flow_key key;
	uint64_t seen;
	uint64_t pad;
} __rte_cache_aligned;

struct afb {
	uint64_t *words;
	uint32_t mask; /* slots - 1; 0: there is none */
};

struct trace {
	uint32_t *flow; /* of each packet */
	size_t packets;
	uint32_t flows;
};

/* How the table is made: for one thread, with a lock, with readers that need none. */
static const struct {
	const char *name;
	uint32_t flags;
} tables[] = {
	{"for one thread", RTE_HASH_EXTRA_FLAGS_EXT_TABLE},
	{"with its lock", RTE_HASH_EXTRA_FLAGS_EXT_TABLE | RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY},
	{"lock-free readers",
	 RTE_HASH_EXTRA_FLAGS_EXT_TABLE | RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF},
};
static const double factors[] = {1, 0.5, 0.25, 0.125};

static uint32_t opt_flows = 1 << 20;
static size_t opt_packets = 4 << 20;
static unsigned int opt_rounds = 9;
static double opt_skew = 0.9;
static const char *opt_capture;
static bool opt_miss_only;

static struct nfmeta_flow_key *keys; /* by flow */
static struct rte_hash *hashes[RTE_DIM(tables)];
static struct session *sessions[RTE_DIM(tables)];

/* ---- traces -------------------------------------------------------------------------- */

static uint64_t
random64(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void *
need(size_t n, size_t size)
{
	void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(n * size, RTE_CACHE_LINE_SIZE));

	if (p == NULL)
		errx(1, "no memory");
	memset(p, 0, n * size);
	return p;
}

/* Flow k, of any size, has a share of 1/k^skew of the packets. */
static struct trace
zipf(uint32_t flows, size_t packets, double skew)
{
	struct trace t = {need(packets, sizeof(uint32_t)), packets, flows};
	double *upto = need(flows, sizeof(*upto)), sum = 0, u;
	uint32_t lo, hi, mid;
	size_t i;

	for (i = 0; i < flows; i++)
		upto[i] = sum += pow((double)(i + 1), -skew);
	for (i = 0; i < packets; i++) {
		u = (double)(random64() >> 11) / (double)(UINT64_C(1) << 53) * sum;
		for (lo = 0, hi = flows - 1; lo < hi;) {
			mid = lo + (hi - lo) / 2;
			if (upto[mid] > u)
				hi = mid;
			else
				lo = mid + 1;
		}
		t.flow[i] = lo;
	}
	free(upto);
	return t;
}

static void
make_keys(uint32_t flows)
{
	uint64_t r;
	uint32_t i;

	keys = need(flows, sizeof(*keys));
	for (i = 0; i < flows; i++) {
		r = random64();
		memcpy(keys[i].addr_a, &i, 4);
		memcpy(keys[i].addr_b, &r, 4);
		memcpy(keys[i].port_a, (uint8_t *)&r + 4, 2);
		memcpy(keys[i].port_b, (uint8_t *)&r + 6, 2);
		keys[i].proto = 6;
		keys[i].ip_version = 4;
	}
}

/* Flows of a capture, numbered as they come; "keys" are theirs then. */
static struct trace
from_capture(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, error);
	struct rte_hash_parameters hp = {
		.name = "capture", .entries = 1 << 20, .key_len = sizeof(keys[0])};
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("p", 63, 0, 0, PACKET_MAX, SOCKET_ID_ANY);
	struct rte_hash *h = rte_hash_create(&hp);
	struct trace t = {need(1 << 22, sizeof(uint32_t)), 0, 0};
	struct rte_mbuf *m = pool != NULL ? rte_pktmbuf_alloc(pool) : NULL;
	struct nfmeta_flow_key key;
	struct nfmeta_record r;
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int32_t *number = need(1 << 21, sizeof(*number));
	int32_t id;

	if (p == NULL)
		errx(1, "cannot read \"%s\": %s", path, error);
	if (h == NULL || m == NULL)
		errx(1, "no memory for \"%s\"", path);
	keys = need(1 << 20, sizeof(*keys));
	while (pcap_next_ex(p, &head, &bytes) == 1 && t.packets < 1 << 22) {
		if (head->caplen > PACKET_MAX - RTE_PKTMBUF_HEADROOM)
			continue;
		rte_pktmbuf_reset(m);
		memcpy(rte_pktmbuf_append(m, (uint16_t)head->caplen), bytes, head->caplen);
		nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, &m, 1, &r, &key);
		if (key.ip_version == 0)
			continue;
		id = rte_hash_add_key(h, &key);
		if (id < 0)
			errx(1, "too many flows in \"%s\"", path);
		if (number[id] == 0) {
			keys[t.flows] = key;
			number[id] = (int32_t)++t.flows;
		}
		t.flow[t.packets++] = (uint32_t)number[id] - 1;
	}
	pcap_close(p);
	rte_hash_free(h);
	free(number);
	return t;
}

/* ---- table and AFB ----------------------------------------------------------------------- */

static uint32_t
hash_of(const struct nfmeta_flow_key *key)
{
	return rte_hash_crc(key, sizeof(*key), 0);
}

/* The slot is of the lower bits, what is compared of all others and these. */
static inline uint64_t
word_of(uint32_t hash, uint32_t id)
{
	return (uint64_t)hash << 32 | (id + 1);
}

static struct afb
make_afb(uint32_t flows, double factor)
{
	uint32_t slots = rte_align32pow2((uint32_t)ceil(flows * factor));

	if (factor == 0)
		return (struct afb){NULL, 0};
	return (struct afb){need(slots, sizeof(uint64_t)), slots - 1};
}

static void
make_table(unsigned int k, uint32_t flows)
{
	struct rte_malloc_socket_stats before, after;
	struct rte_hash_parameters p = {
		.name = tables[k].name,
		.entries = flows,
		.key_len = sizeof(keys[0]),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = (uint8_t)tables[k].flags,
	};
	int32_t id;
	uint32_t i;

	rte_malloc_get_socket_stats(0, &before);
	hashes[k] = rte_hash_create(&p);
	if (hashes[k] == NULL)
		errx(1, "no hugepage memory for a table of %u sessions", flows);
	rte_malloc_get_socket_stats(0, &after);
	sessions[k] = rte_zmalloc(
		NULL, ((size_t)rte_hash_max_key_id(hashes[k]) + 1) * sizeof(struct session),
		RTE_CACHE_LINE_SIZE);
	if (sessions[k] == NULL)
		errx(1, "no hugepage memory for %u sessions", flows);
	for (i = 0; i < flows; i++) {
		id = rte_hash_add_key(hashes[k], &keys[i]);
		if (id < 0)
			errx(1, "flow %u does not fit into the table", i);
		sessions[k][id].key = keys[i];
		sessions[k][id].seen = i;
	}
	printf("table %-18s %6.1f MB per million sessions, and 64 bytes a session\n",
	       tables[k].name,
	       (double)(after.heap_allocsz_bytes - before.heap_allocsz_bytes) / flows);
}

/* Sessions of a burst; returns how many the AFB did not have. */
static inline unsigned int
lookup(struct rte_hash *hash, const struct session *s, const struct afb *a,
       const struct nfmeta_flow_key *burst, int32_t *ids)
{
	const void *want[BURST];
	hash_sig_t h[BURST], sig[BURST];
	int32_t found[BURST];
	uint8_t missed[BURST];
	unsigned int i, n = 0;
	uint64_t w;

	if (a->mask == 0) {
		for (i = 0; i < BURST; i++)
			want[i] = &burst[i];
		rte_hash_lookup_bulk(hash, want, BURST, ids);
		for (i = 0; i < BURST; i++)
			rte_prefetch0(&s[ids[i]]);
		return 0;
	}
	for (i = 0; i < BURST; i++) {
		h[i] = hash_of(&burst[i]);
		rte_prefetch0(&a->words[h[i] & a->mask]);
	}
	for (i = 0; i < BURST; i++) {
		w = __atomic_load_n(&a->words[h[i] & a->mask], __ATOMIC_RELAXED);
		ids[i] = w >> 32 == h[i] ? (int32_t)(uint32_t)w - 1 : -1;
		if (ids[i] >= 0)
			rte_prefetch0(&s[ids[i]]);
	}
	for (i = 0; i < BURST; i++) {
		if (ids[i] >= 0 && memcmp(&s[ids[i]].key, &burst[i], sizeof(burst[i])) == 0)
			continue;
		missed[n] = (uint8_t)i;
		sig[n] = h[i];
		want[n++] = &burst[i];
	}
	if (n == 0)
		return 0;
	rte_hash_lookup_with_hash_bulk(hash, want, sig, n, found);
	for (i = 0; i < n; i++) {
		ids[missed[i]] = found[i];
		rte_prefetch0(&s[found[i]]);
		__atomic_store_n(&a->words[sig[i] & a->mask], word_of(sig[i], (uint32_t)found[i]),
				 __ATOMIC_RELAXED);
	}
	return n;
}

/* The same for one packet, without a look ahead: what comes next is not known yet. */
static inline unsigned int
lookup_one(struct rte_hash *hash, const struct session *s, const struct afb *a,
	   const struct nfmeta_flow_key *key, int32_t *id)
{
	uint32_t h;
	uint64_t w;

	if (a->mask == 0) {
		*id = rte_hash_lookup(hash, key);
		return 0;
	}
	h = hash_of(key);
	w = __atomic_load_n(&a->words[h & a->mask], __ATOMIC_RELAXED);
	*id = (int32_t)(uint32_t)w - 1;
	if (w >> 32 == h && *id >= 0 && memcmp(&s[*id].key, key, sizeof(*key)) == 0)
		return 0;
	*id = rte_hash_lookup_with_hash(hash, key, h);
	__atomic_store_n(&a->words[h & a->mask], word_of(h, (uint32_t)*id), __ATOMIC_RELAXED);
	return 1;
}

/* ---- runs ---------------------------------------------------------------------------------- */

struct run {
	pthread_t thread;
	const struct trace *t;
	unsigned int table, cpu;
	bool pinned, single;
	struct afb *afb;
	size_t from, packets;
	double ns; /* per packet */
	uint64_t misses;
};

static void *
run(void *arg)
{
	struct run *r = arg;
	struct rte_hash *hash = hashes[r->table];
	struct session *s = sessions[r->table];
	struct nfmeta_flow_key burst[BURST];
	uint64_t cycles = 0, timed = 0, tsc, sum = 0, right = 0;
	uint64_t limit = rte_get_tsc_hz() / 1000000 * OTHERS_US;
	int32_t ids[BURST];
	size_t at = r->from, i, k;
	cpu_set_t set;

	if (r->pinned) {
		CPU_ZERO(&set);
		CPU_SET(r->cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	for (i = 0; i + BURST <= r->packets; i += BURST) {
		for (k = 0; k < BURST; k++) {
			if (at == r->t->packets)
				at = 0;
			right += r->t->flow[at];
			burst[k] = keys[r->t->flow[at++]];
		}
		tsc = rte_rdtsc();
		if (r->single) {
			for (k = 0; k < BURST; k++) {
				r->misses += lookup_one(hash, s, r->afb, &burst[k], &ids[k]);
				sum += s[ids[k]].seen;
			}
		} else {
			r->misses += lookup(hash, s, r->afb, burst, ids);
			for (k = 0; k < BURST; k++)
				sum += s[ids[k]].seen;
		}
		tsc = rte_rdtsc() - tsc;
		if (tsc < limit) {
			cycles += tsc;
			timed += BURST;
		}
	}
	if (sum != right)
		errx(1, "a lookup gave another flow's session");
	r->packets = i;
	r->ns = (double)cycles * 1e9 / (double)rte_get_tsc_hz() /
		(double)RTE_MAX(timed, UINT64_C(1));
	return NULL;
}

/* ns per packet and thread; misses: of the last run, a share. */
static double
measure(const struct trace *t, unsigned int table, struct afb *afb, unsigned int threads,
	bool single, double *misses)
{
	struct run r[THREADS];
	uint64_t packets = 0, missed = 0;
	double ns = 0;
	unsigned int i;

	for (i = 0; i < threads; i++) {
		r[i] = (struct run){.t = t,
				    .table = table,
				    .cpu = i,
				    .pinned = threads > 1,
				    .single = single,
				    .afb = afb,
				    .from = t->packets / threads * i,
				    .packets = t->packets};
		if (pthread_create(&r[i].thread, NULL, run, &r[i]) != 0)
			errx(1, "no thread");
	}
	for (i = 0; i < threads; i++) {
		pthread_join(r[i].thread, NULL);
		ns += r[i].ns / threads;
		packets += r[i].packets;
		missed += r[i].misses;
	}
	*misses = (double)missed / (double)packets;
	return ns;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* All kinds in turn, so that what else the machine does meets them alike. */
static void
compare(const struct trace *t, unsigned int table, unsigned int threads, bool single)
{
	double ns[RTE_DIM(factors) + 1][ROUNDS_MAX], ratio[RTE_DIM(factors) + 1][ROUNDS_MAX];
	double misses[RTE_DIM(factors) + 1];
	struct afb afb[RTE_DIM(factors) + 1];
	unsigned int i, k;

	for (k = 0; k <= RTE_DIM(factors); k++)
		afb[k] = make_afb(t->flows, k == 0 ? 0 : factors[k - 1]);
	for (i = 0; i < opt_rounds + 1; i++) /* the first warms up */
		for (k = 0; k <= RTE_DIM(factors); k++) {
			double v = measure(t, table, &afb[k], threads, single, &misses[k]);

			if (i == 0)
				continue;
			ns[k][i - 1] = v;
			ratio[k][i - 1] = v / ns[0][i - 1];
		}
	printf("table %s, %u thread%s, %s\n", tables[table].name, threads, threads > 1 ? "s" : "",
	       single ? "one packet at a time" : "bursts of 32");
	for (k = 0; k <= RTE_DIM(factors); k++) {
		if (k == 0)
			printf("    alone    ");
		else
			printf("    AFB %5.3f", factors[k - 1]);
		printf(" %7.1f ns, x %.2f, misses %5.2f %%, %5.2f MB\n", median(ns[k], opt_rounds),
		       median(ratio[k], opt_rounds), 100 * misses[k],
		       k == 0 ? 0 : (afb[k].mask + 1) * 8e-6);
		free(afb[k].words);
	}
	fflush(stdout);
}

/* Misses alone, without any table: the first time a flow comes does not count. */
static void
miss_row(const char *name, const struct trace *t)
{
	struct afb a;
	uint64_t misses, counted;
	uint8_t *was = need(t->flows, 1);
	unsigned int k;
	uint32_t f, h;
	size_t i;

	printf("%-26s %8u %9zu", name, t->flows, t->packets);
	for (k = 0; k < RTE_DIM(factors); k++) {
		a = make_afb(t->flows, factors[k]);
		memset(was, 0, t->flows);
		misses = counted = 0;
		for (i = 0; i < t->packets; i++) {
			f = t->flow[i];
			h = hash_of(&keys[f]);
			counted += was[f];
			misses += was[f] && a.words[h & a.mask] != word_of(h, f);
			was[f] = 1;
			a.words[h & a.mask] = word_of(h, f);
		}
		printf(" %7.2f", 100.0 * (double)misses / (double)RTE_MAX(counted, UINT64_C(1)));
		free(a.words);
	}
	printf("\n");
	free(was);
}

static void
misses(void)
{
	static const double skews[] = {0.9, 1.0, 1.1, 1.2, 1.3};
	struct trace t;
	char name[32];
	size_t i;

	printf("misses in %%, by slots per session     packets       1     0.5    0.25   0.125\n");
	printf("LBNL, as published                                  7.85   11.60   17.02   "
	       "24.84\n");
	for (i = 0; i < RTE_DIM(skews); i++) {
		t = zipf(opt_flows, opt_packets, skews[i]);
		snprintf(name, sizeof(name), "Zipf, exponent %.1f", skews[i]);
		miss_row(name, &t);
		free(t.flow);
	}
	if (opt_capture == NULL)
		return;
	free(keys);
	t = from_capture(opt_capture);
	miss_row("the capture", &t);
	free(t.flow);
	free(keys);
	make_keys(opt_flows);
}

static void
options(int argc, char **argv)
{
	static const struct option longopts[] = {{"flows", required_argument, NULL, 'f'},
						 {"packets", required_argument, NULL, 'p'},
						 {"rounds", required_argument, NULL, 'r'},
						 {"skew", required_argument, NULL, 's'},
						 {"capture", required_argument, NULL, 'c'},
						 {"misses", no_argument, NULL, 'm'},
						 {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		switch (c) {
		case 'f':
			opt_flows = (uint32_t)atoi(optarg);
			break;
		case 'p':
			opt_packets = (size_t)atoll(optarg);
			break;
		case 'r':
			opt_rounds = (unsigned int)atoi(optarg);
			break;
		case 's':
			opt_skew = atof(optarg);
			break;
		case 'c':
			opt_capture = optarg;
			break;
		case 'm':
			opt_miss_only = true;
			break;
		default:
			errx(1, "usage: sessions [--flows N] [--packets N] [--rounds N] [--skew S]"
				" [--capture FILE] [--misses]");
		}
	}
	if (opt_flows < 64 || opt_flows > 1 << 24 || opt_packets < 1024 || opt_rounds < 1 ||
	    opt_rounds > ROUNDS_MAX)
		errx(1, "64 to 16777216 flows, 1024 packets or more, 1 to %d rounds", ROUNDS_MAX);
}

int
main(int argc, char **argv)
{
	struct trace t;
	unsigned int k, threads;
	int n = rte_eal_init(argc, argv);

	if (n < 0)
		errx(1, "EAL cannot be started (hugepages?)");
	options(argc - n, argv + n);
	make_keys(opt_flows);
	misses();
	if (opt_miss_only)
		return 0;
	t = zipf(opt_flows, opt_packets, opt_skew);
	printf("\n%u sessions, %zu packets, Zipf %.1f; times: median of %u rounds; x: of the table"
	       " alone, median of each round's\n",
	       t.flows, t.packets, opt_skew, opt_rounds);
	for (k = 0; k < RTE_DIM(tables); k++)
		make_table(k, opt_flows);
	for (k = 0; k < RTE_DIM(tables); k++) {
		for (threads = 1; threads <= (k > 0 ? THREADS : 1); threads++) {
			compare(&t, k, threads, false);
			compare(&t, k, threads, true);
		}
	}
	free(t.flow);
	return 0;
}
