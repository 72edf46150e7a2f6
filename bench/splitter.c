/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * splitter - what a packet costs in each stage of the splitter, and how its flow table grows.
 *
 * The splitter's own sources, with an NF in the same thread that gives everything back.
 * Bursts go from stage to stage as in the program, so caches are as warm as there, but for
 * what other cores would take: that is what micro measures.  Every measurement is a process
 * of its own, since EAL's memory ends with the process.
 */
#include <assert.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_timer.h>
#include <rte_udp.h>
#include <rte_version.h>

#include "../examples/splitter/splitter.h"

#define ROUNDS_MAX 99
#define OTHERS_US 50 /* a burst that takes longer was interrupted: it does not count */
#define TRACE_PACKETS 65536
#define TRACE_FLOWS 16384
#define TRACE_SKEW 1.0
#define LARGEST (4u << 20)
#define POLICY_SESSIONS 65536u

enum {
	RECEIVE,
	CLASSIFY,
	LOOKUP,
	STAMP,
	TELL,
	SEND,
	NF,
	COLLECT,
	OUTPUT,
	WHOLE, /* the program's own loop, NF included */
	STAGES
};
static const char *const stages[STAGES] = {"receive", "classify", "lookup",  "stamp",  "tell",
					   "send",    "nf",	  "collect", "output", "whole"};

enum {
	INSERT,
	HIT,
	MISS,
	EXPIRE,
	STEPS
};
static const char *const steps[STEPS] = {"insert", "hit", "miss", "expire"};

/* What a child found out. */
struct result {
	uint64_t packets, bytes, flows; /* of the trace */
	unsigned int rounds;
	double ns[STAGES][ROUNDS_MAX]; /* per packet, or per session */
	double longest[ROUNDS_MAX];    /* ms: one call of the timer that ends sessions */
	double huge_mb, other_mb;      /* of memory that the process has */
};

static const char *opt_prefix = "nfmeta-bench", *opt_huge_dir, *opt_json, *opt_capture;
static unsigned int opt_rounds = 9, opt_packets = 1 << 20;
static uint32_t opt_largest = LARGEST;
static const char *policy; /* NULL: none */

static uint64_t
random64(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* ---- the splitter ---------------------------------------------------------------------- */

/* As the program would be started. */
static struct splitter *
open_splitter(struct splitter_opts *o, const char *capture, uint32_t max_flows, const char *timeout)
{
	char in[4096], flows[16];
	char *argv[] = {(char *)"splitter",
			(char *)"--quiet",
			(char *)"--in",
			in,
			(char *)"--loop",
			(char *)"0",
			(char *)"--file-prefix",
			(char *)(uintptr_t)opt_prefix,
			(char *)"--max-flows",
			flows,
			(char *)"--timeout",
			(char *)(uintptr_t)timeout,
			NULL,
			NULL,
			NULL,
			NULL,
			NULL,
			NULL};
	int argc = (int)RTE_DIM(argv) - 6;
	struct splitter *s = NULL;

	snprintf(in, sizeof(in), "pcap:%s", capture);
	snprintf(flows, sizeof(flows), "%u", max_flows);
	if (policy != NULL) {
		argv[argc++] = (char *)"--policy";
		argv[argc++] = (char *)(uintptr_t)policy;
	}
	if (opt_huge_dir != NULL) {
		argv[argc++] = (char *)"--";
		argv[argc++] = (char *)"--huge-dir";
		argv[argc++] = (char *)(uintptr_t)opt_huge_dir;
	}
	splitter_defaults(o);
	if (splitter_options(argc, argv, o) == 0)
		s = splitter_open(o);
	if (s == NULL)
		exit(1);
	return s;
}

/* ---- stages ----------------------------------------------------------------------------- */

static const uint8_t on[BURST]; /* NFMETA_FORWARD */

static struct nfmeta_link *
attach(const struct splitter_opts *o)
{
	struct nfmeta_link *nf;

	if (nfmeta_link_attach(o->link[0].name, 0, 5000, &nf) != 0 ||
	    nfmeta_flow_subscribe(nf, NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_DELETE) |
					      NFMETA_TYPE(NFMETA_MSG_UPDATE)) != 0)
		errx(1, "%s", nfmeta_error());
	return nf;
}

/* What the NF is told it does not keep. */
static uint16_t
serve(struct nfmeta_link *nf)
{
	const struct nfmeta_flow_batch *msg;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *pkts[BURST];
	uint16_t n, heard, sum = 0;

	do { /* packets stop where a message is next */
		n = nfmeta_recv_burst(nf, pkts, recs, BURST);
		for (heard = 0; nfmeta_flow_next(nf, &msg) != 0; heard++)
			;
		nfmeta_return_burst(nf, pkts, on, n);
		sum = (uint16_t)(sum + n);
	} while (n + heard > 0);
	return sum;
}

/* One burst through all stages; ticks[stage] grows by what each took. */
static unsigned int
by_stages(struct splitter *s, struct nfmeta_link *nf, uint64_t *ticks)
{
	struct nfmeta_flow_key keys[BURST];
	struct nfmeta_record recs[BURST];
	struct flow *flows[BURST];
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	struct hop *h = &s->hop[0];
	uint64_t t[STAGES];
	uint16_t n, k, back;

	t[RECEIVE] = rte_rdtsc();
	n = input_burst(&s->in, pkts, BURST, 0);
	t[CLASSIFY] = rte_rdtsc();
	nfmeta_classify_burst(s->o->policy, pkts, n, recs, keys);
	t[LOOKUP] = rte_rdtsc();
	/* where it stops short a flow has to end first: nothing of it is sent yet here */
	for (k = 0; k < n; k = (uint16_t)(k + back)) {
		back = flows_burst(s->flows, pkts + k, recs + k, keys + k, flows, (uint16_t)(n - k),
				   rte_rdtsc());
		flows_sent(s->flows);
	}
	t[STAMP] = rte_rdtsc();
	nfmeta_record_set_burst(&s->field, pkts, recs, n);
	t[TELL] = rte_rdtsc();
	feed_flush(h->feed);
	feed_round(h->feed, t[TELL]);
	t[SEND] = rte_rdtsc();
	if (nfmeta_send_burst(h->link, 0, pkts, n) != n)
		errx(1, "the link is full");
	t[NF] = rte_rdtsc();
	if (serve(nf) != n)
		errx(1, "packets do not come to the NF");
	t[COLLECT] = rte_rdtsc();
	back = nfmeta_collect_burst(h->link, 0, pkts, how, BURST);
	t[OUTPUT] = rte_rdtsc();
	if (back != n || output_burst(&s->out, pkts, n) != n)
		errx(1, "packets do not come back");
	t[WHOLE] = rte_rdtsc();
	if (t[WHOLE] - t[RECEIVE] > rte_get_tsc_hz() / 1000000 * OTHERS_US)
		return 0;
	for (k = 0; k < WHOLE; k++)
		ticks[k] += t[k + 1] - t[k];
	return n;
}

/* One burst as the program does it. */
static unsigned int
at_once(struct splitter *s, struct nfmeta_link *nf, uint64_t *ticks)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t now = rte_rdtsc(), then;
	uint16_t n = input_burst(&s->in, pkts, BURST, 0);

	work(s, pkts, n, now);
	serve(nf);
	if (collect(s) != n)
		errx(1, "packets do not come back");
	feeds_round(s, now);
	then = rte_rdtsc();
	if (then - now > rte_get_tsc_hz() / 1000000 * OTHERS_US)
		return 0;
	ticks[WHOLE] += then - now;
	return n;
}

static void
run_stages(struct result *r, const char *capture, uint32_t max_flows)
{
	struct splitter_opts o;
	struct splitter *s = open_splitter(&o, capture, max_flows, "300");
	struct nfmeta_link *nf = attach(&o);
	uint64_t ticks[STAGES], staged, whole, all;
	unsigned int i, k;

	for (i = 0; i < opt_rounds + 1; i++) { /* the first warms up, makes the flows */
		memset(ticks, 0, sizeof(ticks));
		for (staged = whole = all = 0; all < opt_packets; all += 2 * BURST) {
			staged += by_stages(s, nf, ticks);
			whole += at_once(s, nf, ticks);
		}
		if (staged == 0 || whole == 0)
			errx(1, "every burst was interrupted");
		for (k = 0; i > 0 && k < STAGES; k++)
			r->ns[k][i - 1] = (double)ticks[k] * 1e9 / (double)rte_get_tsc_hz() /
					  (double)(k == WHOLE ? whole : staged);
	}
	r->rounds = opt_rounds;
	r->packets = s->info.packets;
	r->bytes = s->info.bytes;
	r->flows = s->flows->counts.active;
	if (nfmeta_link_detach(nf) != 0)
		errx(1, "%s", nfmeta_error());
	if (splitter_close(s, EXIT_OK) != EXIT_OK)
		exit(1);
}

/* ---- growth ----------------------------------------------------------------------------- */

/* Every number another key; those from "sessions" on are never in the table. */
static void
make_key(struct nfmeta_flow_key *k, uint64_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15); /* odd: no two are the same */
	uint64_t y = x ^ x >> 31;

	memset(k, 0, sizeof(*k));
	memcpy(k->addr_a, &x, 4);
	memcpy(k->addr_b, (uint8_t *)&x + 4, 4);
	memcpy(k->port_a, &y, 2);
	memcpy(k->port_b, (uint8_t *)&y + 2, 2);
	k->proto = IPPROTO_UDP;
	k->ip_version = 4;
}

static double
per(uint64_t ticks, uint64_t n)
{
	return (double)ticks * 1e9 / (double)rte_get_tsc_hz() / (double)RTE_MAX(n, UINT64_C(1));
}

/* n packets of flows: 0, 1 ... (one for each, insert) or any of the sessions. */
static double
packets(struct splitter *s, struct rte_mbuf **pkts, uint64_t n, uint64_t sessions, int step)
{
	uint64_t limit = rte_get_tsc_hz() / 1000000 * OTHERS_US, ticks = 0, timed = 0, i, tsc;
	struct nfmeta_flow_key keys[BURST];
	struct nfmeta_record recs[BURST];
	struct flow *flows[BURST];
	int32_t ids[BURST];
	uint16_t k;

	for (i = 0; i + BURST <= n; i += BURST) {
		memset(recs, 0, sizeof(recs));
		for (k = 0; k < BURST; k++)
			make_key(&keys[k], step == INSERT ? i + k
					   : step == HIT  ? random64() % sessions
							  : sessions + random64() % sessions);
		tsc = rte_rdtsc();
		if (step == MISS) {
			flows_lookup(s->flows, keys, ids, BURST);
		} else {
			if (flows_burst(s->flows, pkts, recs, keys, flows, BURST, tsc) != BURST)
				errx(1, "a flow had to end");
			feeds_flush(s);
			flows_sent(s->flows);
		}
		tsc = rte_rdtsc() - tsc;
		if (tsc < limit) {
			ticks += tsc;
			timed += BURST;
		}
		for (k = 0; step == MISS && k < BURST; k++)
			if (ids[k] >= 0)
				errx(1, "a flow was found that is not there");
	}
	return per(ticks, timed);
}

/* By the splitter's own timer, in real time. */
static double
expire_all(struct splitter *s, double *longest)
{
	uint64_t active = s->flows->counts.active, ticks = 0, most = 0, was, tsc;

	rte_delay_us_sleep(1050000); /* the time-out is a second */
	while (s->flows->counts.active > 0) {
		was = s->flows->counts.active;
		tsc = rte_rdtsc();
		rte_timer_manage();
		tsc = rte_rdtsc() - tsc;
		if (s->flows->counts.active < was) {
			ticks += tsc;
			most = RTE_MAX(most, tsc);
		}
		rte_delay_us_sleep(1000);
	}
	*longest = per(most, 1000000);
	return per(ticks, active);
}

static double
status_mb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	double kb = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kb = atof(line + strlen(name));
	if (f != NULL)
		fclose(f);
	return kb / 1024;
}

static void
run_growth(struct result *r, const char *capture, uint32_t sessions)
{
	unsigned int rounds = RTE_MIN(opt_rounds, 3u), i;
	struct rte_mbuf *pkts[BURST];
	struct splitter_opts o;
	struct splitter *s = open_splitter(&o, capture, sessions, "1");

	if (rte_pktmbuf_alloc_bulk(s->pool, pkts, BURST) != 0)
		errx(1, "no mbufs");
	for (i = 0; i < BURST; i++)
		pkts[i]->pkt_len = pkts[i]->data_len = 64;
	for (i = 0; i < rounds; i++) {
		r->ns[INSERT][i] = packets(s, pkts, sessions, sessions, INSERT);
		if (s->flows->counts.active != sessions)
			errx(1, "%ju sessions, not %u", (uintmax_t)s->flows->counts.active,
			     sessions);
		r->ns[HIT][i] = packets(s, pkts, opt_packets, sessions, HIT);
		r->ns[MISS][i] = packets(s, pkts, opt_packets, sessions, MISS);
		if (i == 0) {
			r->huge_mb = status_mb("HugetlbPages:");
			r->other_mb = status_mb("RssAnon:");
		}
		r->ns[EXPIRE][i] = expire_all(s, &r->longest[i]);
	}
	r->rounds = rounds;
	r->flows = sessions;
	rte_pktmbuf_free_bulk(pkts, BURST);
	if (splitter_close(s, EXIT_OK) != EXIT_OK)
		exit(1);
}

/* First packets, with a policy to look into; nothing else of growth. */
static void
run_policy(struct result *r, const char *capture, uint32_t sessions)
{
	struct rte_mbuf *pkts[BURST];
	struct splitter_opts o;
	struct splitter *s = open_splitter(&o, capture, sessions, "300");
	unsigned int i;

	if (rte_pktmbuf_alloc_bulk(s->pool, pkts, BURST) != 0)
		errx(1, "no mbufs");
	for (i = 0; i < BURST; i++)
		pkts[i]->pkt_len = pkts[i]->data_len = 64;
	for (i = 0; i < opt_rounds + 1; i++) { /* the first warms up */
		r->ns[INSERT][i > 0 ? i - 1 : 0] = packets(s, pkts, sessions, sessions, INSERT);
		while (flows_stop(s->flows, 1024))
			feeds_flush(s);
		feeds_flush(s);
	}
	r->rounds = opt_rounds;
	r->flows = sessions;
	rte_pktmbuf_free_bulk(pkts, BURST);
	if (splitter_close(s, EXIT_OK) != EXIT_OK)
		exit(1);
}

/* ---- a trace ---------------------------------------------------------------------------- */

/* Flow k of so many has a share of 1/k^skew of the packets; 64 bytes each, UDP. */
static void
write_trace(FILE *f)
{
	static const uint32_t head[6] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1};
	static double upto[TRACE_FLOWS];
	struct {
		struct rte_ether_hdr eth;
		struct rte_ipv4_hdr ip;
		struct rte_udp_hdr udp;
		uint8_t data[18];
	} p;
	uint32_t record[4] = {1767225600, 0, sizeof(p), sizeof(p)}, lo, hi, mid;
	double sum = 0, u;
	unsigned int i;

	static_assert(sizeof(p) == 60, "headers leave no gaps");
	for (i = 0; i < TRACE_FLOWS; i++)
		upto[i] = sum += pow(i + 1, -TRACE_SKEW);
	memset(&p, 0, sizeof(p));
	p.eth.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	p.ip.version_ihl = 0x45;
	p.ip.total_length = rte_cpu_to_be_16(sizeof(p) - sizeof(p.eth));
	p.ip.time_to_live = 64;
	p.ip.next_proto_id = IPPROTO_UDP;
	p.udp.dgram_len = rte_cpu_to_be_16(sizeof(p.udp) + sizeof(p.data));
	fwrite(head, sizeof(head), 1, f);
	for (i = 0; i < TRACE_PACKETS; i++) {
		u = (double)(random64() >> 11) / (double)(UINT64_C(1) << 53) * sum;
		for (lo = 0, hi = TRACE_FLOWS - 1; lo < hi;) {
			mid = lo + (hi - lo) / 2;
			if (upto[mid] > u)
				hi = mid;
			else
				lo = mid + 1;
		}
		p.ip.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 0) + lo % 1024);
		p.ip.dst_addr = rte_cpu_to_be_32(RTE_IPV4(192, 0, 2, 1) + lo / 1024 % 4);
		p.udp.src_port = rte_cpu_to_be_16((uint16_t)(20000 + lo / 4096));
		p.udp.dst_port = rte_cpu_to_be_16(33000);
		p.ip.hdr_checksum = p.udp.dgram_cksum = 0;
		p.ip.hdr_checksum = rte_ipv4_cksum(&p.ip);
		p.udp.dgram_cksum = rte_ipv4_udptcp_cksum(&p.ip, &p.udp);
		record[1] = i;
		fwrite(record, sizeof(record), 1, f);
		fwrite(&p, sizeof(p), 1, f);
	}
}

/* Networks of 256 addresses anywhere, to a port: what few packets match. */
static void
write_policy(FILE *f, uint32_t lines)
{
	uint32_t i, net;

	fprintf(f, "[policy]\n");
	for (i = 0; i < lines; i++) {
		net = (uint32_t)random64();
		fprintf(f, "l%u = inspect proto udp from %u.%u.%u.0/24 to any port %u\n", i,
			net >> 24, net >> 16 & 255, net >> 8 & 255, 1024 + i);
	}
	fprintf(f, "default = inspect\n");
}

/* A file for one measurement, the only one at a time; its name goes into path. */
static FILE *
temporary(char *path, size_t size)
{
	const char *dir = getenv("TMPDIR");
	FILE *f;

	snprintf(path, size, "%s/nfmeta-bench-%d", dir != NULL ? dir : "/tmp", (int)getpid());
	f = fopen(path, "wx");
	if (f == NULL)
		err(1, "%s", path);
	return f;
}

/* ---- all of it --------------------------------------------------------------------------- */

static struct result
in_child(void (*run)(struct result *, const char *, uint32_t), const char *capture, uint32_t flows)
{
	struct result r = {0};
	int ends[2], status;
	pid_t pid;

	fflush(stdout);
	if (pipe(ends) != 0 || (pid = fork()) < 0)
		err(1, "no process");
	if (pid == 0) {
		run(&r, capture, flows);
		_exit(write(ends[1], &r, sizeof(r)) == sizeof(r) ? 0 : 1);
	}
	close(ends[1]);
	/* more than a pipe holds: read before it ends */
	for (size_t got = 0, n = 1; got < sizeof(r) && n > 0; got += n) {
		ssize_t k = read(ends[0], (char *)&r + got, sizeof(r) - got);

		n = k > 0 ? (size_t)k : 0;
	}
	close(ends[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "a measurement failed");
	return r;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *v, unsigned int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static void
json_values(FILE *f, const char *name, const double *v, unsigned int n)
{
	unsigned int i;

	fprintf(f, "\"%s\": {\"median\": %.2f, \"ns\": [", name, median(v, n));
	for (i = 0; i < n; i++)
		fprintf(f, "%s%.2f", i > 0 ? ", " : "", v[i]);
	fprintf(f, "]}");
}

static void
show_stages(const char *name, const struct result *r, FILE *json, const char *sep)
{
	double sum = 0, v;
	unsigned int k;

	printf("%s: %ju packets of %.0f bytes, %ju flows; ns per packet\n", name,
	       (uintmax_t)r->packets, (double)r->bytes / (double)r->packets, (uintmax_t)r->flows);
	for (k = 0; k < WHOLE; k++) {
		v = median(r->ns[k], r->rounds);
		sum += v;
		printf("    %-10s %7.1f\n", stages[k], v);
	}
	printf("    %-10s %7.1f\n    %-10s %7.1f  the program's own loop\n", "sum", sum,
	       stages[WHOLE], median(r->ns[WHOLE], r->rounds));
	if (json == NULL)
		return;
	fprintf(json,
		"%s\n    {\"trace\": \"%s\", \"packets\": %ju, \"packet_bytes\": %.1f, \"flows\": "
		"%ju,"
		" \"sum\": %.2f",
		sep, name, (uintmax_t)r->packets, (double)r->bytes / (double)r->packets,
		(uintmax_t)r->flows, sum);
	for (k = 0; k < STAGES; k++) {
		fprintf(json, ",\n     ");
		json_values(json, stages[k], r->ns[k], r->rounds);
	}
	fprintf(json, "}");
}

static void
show_growth(const struct result *r, const struct result *least, FILE *json, const char *sep)
{
	double more = (double)(r->flows - least->flows);
	double huge = more > 0 ? (r->huge_mb - least->huge_mb) * 1048576 / more : 0;
	double other = more > 0 ? (r->other_mb - least->other_mb) * 1048576 / more : 0;
	unsigned int k;

	printf("%9ju", (uintmax_t)r->flows);
	for (k = 0; k < STEPS; k++)
		printf(" %8.1f", median(r->ns[k], r->rounds));
	printf(" %9.1f %9.1f %9.1f", median(r->longest, r->rounds), r->huge_mb, r->other_mb);
	if (more > 0)
		printf(" %9.0f", huge + other);
	printf("\n");
	fflush(stdout);
	if (json == NULL)
		return;
	fprintf(json,
		"%s\n    {\"sessions\": %ju, \"hugepages_mb\": %.1f, \"other_mb\": %.1f,"
		" \"bytes_a_session\": %.1f, \"longest_ms\": %.2f",
		sep, (uintmax_t)r->flows, r->huge_mb, r->other_mb, huge + other,
		median(r->longest, r->rounds));
	for (k = 0; k < STEPS; k++) {
		fprintf(json, ",\n     ");
		json_values(json, steps[k], r->ns[k], r->rounds);
	}
	fprintf(json, "}");
}

static void
measure_policies(FILE *json)
{
	static const uint32_t lines[] = {0, 1, 16, 256, 4096};
	struct result r;
	char path[PATH_MAX];
	unsigned int i;
	FILE *f;

	printf("\nns per session's first packet, %u sessions\n%9s %8s\n", POLICY_SESSIONS, "lines",
	       "insert");
	for (i = 0; i < RTE_DIM(lines); i++) {
		f = temporary(path, sizeof(path));
		write_policy(f, lines[i]);
		if (fclose(f) != 0)
			err(1, "%s", path);
		policy = lines[i] > 0 ? path : NULL;
		r = in_child(run_policy, opt_capture, POLICY_SESSIONS);
		policy = NULL;
		unlink(path);
		printf("%9u %8.1f\n", lines[i], median(r.ns[INSERT], r.rounds));
		if (json == NULL)
			continue;
		fprintf(json, "%s\n    {\"lines\": %u, ", i > 0 ? "," : "", lines[i]);
		json_values(json, "insert", r.ns[INSERT], r.rounds);
		fprintf(json, "}");
	}
}

static FILE *
open_json(void)
{
	FILE *f, *info = fopen("/proc/cpuinfo", "r");
	char line[256], cpu[128] = "?";

	while (info != NULL && fgets(line, sizeof(line), info) != NULL)
		if (sscanf(line, "model name : %127[^\n\"]", cpu) == 1)
			break;
	if (info != NULL)
		fclose(info);
	if (opt_json == NULL)
		return NULL;
	f = fopen(opt_json, "w");
	if (f == NULL)
		err(1, "%s", opt_json);
	fprintf(f,
		"{\n  \"nfmeta\": \"%s\",\n  \"dpdk\": \"%s\",\n  \"cpu\": \"%s\",\n"
		"  \"compiler\": \"%s\",\n  \"rounds\": %u,\n  \"stages\": [",
		nfmeta_version(), rte_version(), cpu, __VERSION__, opt_rounds);
	return f;
}

static void
options(int argc, char **argv)
{
	static const struct option longopts[] = {{"file-prefix", required_argument, NULL, 'f'},
						 {"huge-dir", required_argument, NULL, 'd'},
						 {"json", required_argument, NULL, 'j'},
						 {"rounds", required_argument, NULL, 'r'},
						 {"capture", required_argument, NULL, 'c'},
						 {"largest", required_argument, NULL, 'l'},
						 {"quick", no_argument, NULL, 'q'},
						 {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (c) {
		case 'f':
			opt_prefix = optarg;
			break;
		case 'd':
			opt_huge_dir = optarg;
			break;
		case 'j':
			opt_json = optarg;
			break;
		case 'r':
			opt_rounds = (unsigned int)atoi(optarg);
			break;
		case 'c':
			opt_capture = optarg;
			break;
		case 'l':
			opt_largest = (uint32_t)atoi(optarg);
			break;
		case 'q':
			opt_rounds = 1;
			opt_packets = 1 << 16;
			opt_largest = 1 << 16;
			break;
		default:
			errx(1, "usage: splitter-bench --capture FILE [--rounds N] [--largest N]"
				" [--quick] [--json FILE] [--file-prefix NAME] [--huge-dir DIR]");
		}
	}
	if (opt_capture == NULL || opt_rounds < 1 || opt_rounds > ROUNDS_MAX ||
	    opt_largest < 1024 || opt_largest > 1 << 24)
		errx(1, "--capture FILE, 1 to %d rounds, 1024 to 16777216 sessions", ROUNDS_MAX);
}

int
main(int argc, char **argv)
{
	char trace[PATH_MAX];
	struct result r, least = {0};
	uint32_t sessions;
	FILE *json, *f;

	say_program(argv[0]);
	options(argc, argv);
	json = open_json();
	r = in_child(run_stages, opt_capture, 262144);
	show_stages("sample", &r, json, "");
	f = temporary(trace, sizeof(trace));
	write_trace(f);
	if (fclose(f) != 0)
		err(1, "%s", trace);
	r = in_child(run_stages, trace, 262144);
	unlink(trace);
	show_stages("generated", &r, json, ",");
	if (json != NULL)
		fprintf(json, "\n  ],\n  \"policy\": [");
	measure_policies(json);
	if (json != NULL)
		fprintf(json, "\n  ],\n  \"growth\": [");
	printf("\nns per session, ms, MB, bytes\n%9s %8s %8s %8s %8s %9s %9s %9s %9s\n", "sessions",
	       "insert", "hit", "miss", "expire", "longest", "hugepages", "other", "a session");
	for (sessions = 1024; sessions <= opt_largest; sessions *= 4) {
		r = in_child(run_growth, opt_capture, sessions);
		if (sessions == 1024)
			least = r;
		show_growth(&r, &least, json, sessions == 1024 ? "" : ",");
	}
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		if (fclose(json) != 0)
			err(1, "%s", opt_json);
	}
	return 0;
}
