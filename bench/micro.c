/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/*
 * micro.c - what one packet costs on its way through a link, and what the
 * record adds to it.
 *
 * Two processes on one core each.  The primary sends 64-byte packets, the
 * secondary reads them and returns them, the primary collects them and sends
 * the same mbufs again, so that no packet pool is in the figures.  What is
 * compared and why stands in README.md beside this file.  "micro flow" is flow.c.
 */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>
#include <rte_prefetch.h>
#include <rte_random.h>
#include <rte_tcp.h>
#include <rte_version.h>

#include <nfmeta/nfmeta.h>

#include "bench.h"

#define CONTROL "nfmeta_micro"

/* ---- What is compared ------------------------------------------------------ */

enum work {
	WORK_HOP,   /* read the mbuf and the header, no record anywhere */
	WORK_GET,   /* records copied out by nfmeta_recv_burst */
	WORK_PEEK,  /* records read where they lie */
	WORK_RAW,   /* as many bytes in the same place, believed as they are */
	WORK_REDO,  /* nfmeta_classify_burst and a lookup in a flow table */
	WORK_PLAIN, /* the same, IPv4 only, written by hand */
};

static const struct variant {
	const char *name;
	const char *label;
	uint8_t placement; /* of the link that is used */
	uint8_t work;
	uint8_t stamp; /* 1: the primary writes a record; 2: as many bytes, unproved */
} variants[] = {
	{"bare", "bare hop", NFMETA_PLACE_DYNFIELD, WORK_HOP, 0},
	{"dynfield", "+ record, DYNFIELD", NFMETA_PLACE_DYNFIELD, WORK_GET, 1},
	{"udata64", "+ record, UDATA64", NFMETA_PLACE_UDATA64, WORK_GET, 1},
	{"headroom", "+ record, HEADROOM", NFMETA_PLACE_HEADROOM, WORK_GET, 1},
	{"dynfield_peek", "+ record, DYNFIELD, peek", NFMETA_PLACE_DYNFIELD, WORK_PEEK, 1},
	{"udata64_peek", "+ record, UDATA64, peek", NFMETA_PLACE_UDATA64, WORK_PEEK, 1},
	{"headroom_peek", "+ record, HEADROOM, peek", NFMETA_PLACE_HEADROOM, WORK_PEEK, 1},
	{"redo", "+ redo, nfmeta_classify", NFMETA_PLACE_DYNFIELD, WORK_REDO, 0},
	{"redo_plain", "+ redo, IPv4 by hand", NFMETA_PLACE_DYNFIELD, WORK_PLAIN, 0},
	{"raw", "+ 16 bytes without proof", NFMETA_PLACE_DYNFIELD, WORK_RAW, 2},
};
#define VARIANTS RTE_DIM(variants)
enum {
	BARE = 0,
	DYNFIELD,
	UDATA64,
	HEADROOM,
	REDO = 7,
	REDO_PLAIN,
	RAW
};

static const uint32_t sizes[] = {1024, 16384};
#define SIZES RTE_DIM(sizes)

static const char *const place_names[] = {
	[NFMETA_PLACE_DYNFIELD] = "dynfield",
	[NFMETA_PLACE_UDATA64] = "udata64",
	[NFMETA_PLACE_HEADROOM] = "headroom",
};
#define PLACES 3

struct options opt = {.rounds = 7, .run_ms = 300, .warm_ms = 60, .cores = {0, 1}};

void
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "micro: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	/* Not exit(): EAL's destructors have nothing to tidy after a failure. */
	_exit(1);
}

static void
link_name(char name[NFMETA_NAME_SIZE], unsigned int i)
{
	snprintf(name, NFMETA_NAME_SIZE, "micro-%u", i);
}

/* Links are numbered size by size, in the order of the placements. */
static unsigned int
link_index(unsigned int size, uint8_t placement)
{
	return size * PLACES + placement - 1;
}

static void
pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("cannot run on core %d: %s", core, strerror(errno));
}

/* A 64-byte TCP packet of a flow, all checksums right. */
static void
make_packet(uint8_t *p, uint32_t flow)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)p;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	memset(p, 0, PKT_LEN);
	eth->dst_addr.addr_bytes[0] = 2;
	eth->src_addr.addr_bytes[0] = 2;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16(PKT_LEN - sizeof(*eth));
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_TCP;
	ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 0) + flow);
	ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 1, 0, 1));
	tcp->src_port = rte_cpu_to_be_16((uint16_t)(1024 + flow));
	tcp->dst_port = rte_cpu_to_be_16(443);
	tcp->data_off = 5 << 4;
	tcp->tcp_flags = RTE_TCP_ACK_FLAG;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
}

/* ---- Secondary: the NF -------------------------------------------------------- */

/* IPv4 5-tuple, the ends sorted. */
struct tuple {
	uint64_t a; /* address and port */
	uint64_t b;
	uint64_t proto;
};

static struct rte_hash *flow_table, *plain_table;
struct control *control;

/*
 * The least that an NF does which trusts nobody: lengths, both checksums, the
 * 5-tuple.  Returns the offset of the L4 header, 0 for what is not understood.
 */
static inline uint32_t
plain_parse(const struct rte_mbuf *m, struct tuple *t)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_tcp_hdr *l4;
	uint64_t src, dst;
	uint32_t ip_len, len = m->data_len;
	uint16_t csum;

	if (len < sizeof(*eth) + sizeof(*ip) ||
	    eth->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return 0;
	ip_len = rte_ipv4_hdr_len(ip);
	if (ip->version_ihl >> 4 != 4 || ip_len < sizeof(*ip) ||
	    rte_be_to_cpu_16(ip->total_length) < ip_len ||
	    rte_be_to_cpu_16(ip->total_length) > len - sizeof(*eth) ||
	    (ip->fragment_offset & rte_cpu_to_be_16(0x3fff)) != 0 ||
	    ip->next_proto_id != IPPROTO_TCP ||
	    rte_be_to_cpu_16(ip->total_length) < ip_len + sizeof(*l4))
		return 0;
	csum = rte_raw_cksum(ip, ip_len);
	l4 = (const struct rte_tcp_hdr *)((const uint8_t *)ip + ip_len);
	if (csum != 0xffff || rte_ipv4_udptcp_cksum(ip, l4) != 0)
		return 0;
	src = (uint64_t)ip->src_addr << 16 | l4->src_port;
	dst = (uint64_t)ip->dst_addr << 16 | l4->dst_port;
	t->a = RTE_MIN(src, dst);
	t->b = RTE_MAX(src, dst);
	t->proto = ip->next_proto_id;
	return (uint32_t)sizeof(*eth) + ip_len;
}

static inline uint16_t
port_at(const struct rte_mbuf *m, uint32_t off)
{
	return *rte_pktmbuf_mtod_offset(m, const uint16_t *, off);
}

/* An L4 offset that the 8-byte record does not carry. */
static inline uint32_t
find_l4(const struct rte_mbuf *m)
{
	return (uint32_t)sizeof(struct rte_ether_hdr) +
	       (*rte_pktmbuf_mtod_offset(m, const uint8_t *, sizeof(struct rte_ether_hdr)) & 15) *
		       4;
}

static inline uint32_t
use_record(const struct nfmeta_record *r, const struct rte_mbuf *m, uint8_t *how)
{
	uint32_t l4;

	if (r == NULL || (r->flags & NFMETA_FLOW_KNOWN) == 0) {
		*how = NFMETA_DROP;
		return 0;
	}
	*how = NFMETA_FORWARD;
	l4 = r->size >= NFMETA_RECORD_CORE ? r->l4_off : find_l4(m);
	return r->flow_id + port_at(m, l4);
}

/* One order.  Every work gets its own copy of this function. */
static __rte_always_inline void
serve(struct nfmeta_link *link, uint32_t seq, const enum work work)
{
	const struct nfmeta_field *field = nfmeta_link_field(link);
	uint64_t bursts = 0, packets = 0, sum = 0, idle = 0, empty = 0;
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	struct tuple tuples[BURST];
	struct rte_mbuf *pkts[BURST];
	const void *lookup[BURST];
	uint32_t l4[BURST];
	int32_t pos[BURST];
	uint8_t how[BURST];
	uint16_t i, n;

	for (;;) {
		n = nfmeta_recv_burst(link, pkts, work == WORK_GET ? recs : NULL, BURST);
		if (n == 0) {
			if (__atomic_load_n(&control->stop, __ATOMIC_ACQUIRE) == seq)
				break;
			if (empty == 0)
				empty = rte_rdtsc();
			rte_pause();
			continue;
		}
		if (unlikely(empty != 0)) {
			idle += rte_rdtsc() - empty;
			empty = 0;
		}
		bursts++;
		packets += n;
		for (i = 0; i < n; i++) {
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
			if (work == WORK_PEEK || work == WORK_RAW)
				nfmeta_record_prefetch(field, pkts[i]);
		}
		switch (work) {
		case WORK_HOP:
			for (i = 0; i < n; i++) {
				how[i] = pkts[i]->pkt_len == PKT_LEN ? NFMETA_FORWARD : NFMETA_DROP;
				sum += pkts[i]->ol_flags + port_at(pkts[i], L4_OFF);
			}
			break;
		case WORK_GET:
			for (i = 0; i < n; i++)
				sum += use_record(&recs[i], pkts[i], &how[i]);
			break;
		case WORK_PEEK:
			for (i = 0; i < n; i++)
				sum += use_record(nfmeta_record_peek(field, pkts[i]), pkts[i],
						  &how[i]);
			break;
		case WORK_RAW:
			for (i = 0; i < n; i++)
				sum += use_record((const struct nfmeta_record *)RTE_PTR_ADD(
							  pkts[i], field->offset),
						  pkts[i], &how[i]);
			break;
		case WORK_REDO:
			nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, pkts, n, recs, keys);
			for (i = 0; i < n; i++)
				lookup[i] = &keys[i];
			rte_hash_lookup_bulk(flow_table, lookup, n, pos);
			for (i = 0; i < n; i++) {
				how[i] = pos[i] >= 0 && recs[i].flags & NFMETA_L4_CSUM_GOOD
						 ? NFMETA_FORWARD
						 : NFMETA_DROP;
				sum += (uint32_t)pos[i] + port_at(pkts[i], recs[i].l4_off);
			}
			break;
		case WORK_PLAIN:
			for (i = 0; i < n; i++) {
				l4[i] = plain_parse(pkts[i], &tuples[i]);
				lookup[i] = &tuples[i];
			}
			rte_hash_lookup_bulk(plain_table, lookup, n, pos);
			for (i = 0; i < n; i++) {
				how[i] = pos[i] >= 0 && l4[i] != 0 ? NFMETA_FORWARD : NFMETA_DROP;
				sum += (uint32_t)pos[i] + port_at(pkts[i], l4[i]);
			}
			break;
		}
		nfmeta_return_burst(link, pkts, how, n);
	}
	control->bursts = bursts;
	control->packets = packets;
	control->idle = idle;
	control->sum = sum;
}

#define SERVE(name, work)                                                                          \
	static __rte_noinline void serve_##name(struct nfmeta_link *link, uint32_t seq)            \
	{                                                                                          \
		serve(link, seq, work);                                                            \
	}
SERVE(hop, WORK_HOP)
SERVE(get, WORK_GET)
SERVE(peek, WORK_PEEK)
SERVE(raw, WORK_RAW)
SERVE(redo, WORK_REDO)
SERVE(plain, WORK_PLAIN)

static struct rte_hash *
make_table(const char *name, uint32_t key_len)
{
	struct rte_hash_parameters p = {
		.name = name,
		.entries = 2 * FLOWS,
		.key_len = key_len,
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};
	struct rte_hash *h = rte_hash_create(&p);

	if (h == NULL)
		die("no flow table: %s", rte_strerror(rte_errno));
	return h;
}

/* The NF's own flow tables, with all flows in them. */
static void
make_tables(void)
{
	static uint8_t buf[PKT_LEN] __rte_cache_aligned;
	struct rte_mbuf mbuf, *m = &mbuf;
	struct nfmeta_flow_key key;
	struct nfmeta_record rec;
	struct tuple t;
	uint32_t flow;

	flow_table = make_table("micro_flow", sizeof(struct nfmeta_flow_key));
	plain_table = make_table("micro_plain", sizeof(struct tuple));
	memset(&mbuf, 0, sizeof(mbuf));
	mbuf.buf_addr = buf;
	mbuf.buf_len = mbuf.data_len = PKT_LEN;
	mbuf.pkt_len = PKT_LEN;
	mbuf.nb_segs = 1;
	for (flow = 0; flow < FLOWS; flow++) {
		make_packet(buf, flow);
		mbuf.ol_flags = 0;
		nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, &m, 1, &rec, &key);
		if (key.ip_version != 4 || rec.l4_off != L4_OFF ||
		    (rec.flags & (NFMETA_L3_CSUM_GOOD | NFMETA_L4_CSUM_GOOD)) !=
			    (NFMETA_L3_CSUM_GOOD | NFMETA_L4_CSUM_GOOD) ||
		    plain_parse(m, &t) != L4_OFF)
			die("a packet that was made here is not understood");
		if (rte_hash_add_key(flow_table, &key) < 0 || rte_hash_add_key(plain_table, &t) < 0)
			die("the flow table is full");
	}
}

static struct nfmeta_link *links[SIZES * PLACES]; /* either side's */

static void
hop_attach(void)
{
	char name[NFMETA_NAME_SIZE];
	unsigned int i;

	make_tables();
	for (i = 0; i < RTE_DIM(links); i++) {
		link_name(name, i);
		if (nfmeta_link_attach(name, 0, 5000, &links[i]) != 0)
			die("secondary: %s", nfmeta_error());
	}
}

static void
hop_serve(uint32_t seq)
{
	static void (*const serves[])(struct nfmeta_link *, uint32_t) = {
		[WORK_HOP] = serve_hop, [WORK_GET] = serve_get,	  [WORK_PEEK] = serve_peek,
		[WORK_RAW] = serve_raw, [WORK_REDO] = serve_redo, [WORK_PLAIN] = serve_plain,
	};

	serves[control->work](links[control->link], seq);
}

static void
hop_detach(void)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(links); i++)
		if (nfmeta_link_detach(links[i]) != 0)
			die("secondary: %s", nfmeta_error());
	rte_hash_free(flow_table);
	rte_hash_free(plain_table);
}

static int
secondary(void)
{
	struct nfmeta_eal_opts eal = NFMETA_EAL_OPTS(.timeout_ms = 10000);
	const struct rte_memzone *mz;
	uint32_t seq = 0, now;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(opt.cores[1]);
	eal.file_prefix = opt.prefix;
	if (nfmeta_eal_attach(&eal) != 0)
		die("secondary: %s", nfmeta_error());
	mz = rte_memzone_lookup(CONTROL);
	if (mz == NULL)
		die("secondary: no memzone %s", CONTROL);
	control = mz->addr;
	(opt.flow ? flow_attach : hop_attach)();
	__atomic_store_n(&control->done, 1, __ATOMIC_RELEASE);
	for (seq = 1;; seq = now) {
		while ((now = __atomic_load_n(&control->seq, __ATOMIC_ACQUIRE)) == seq)
			usleep(100);
		if (control->work == WORK_QUIT)
			break;
		(opt.flow ? flow_serve : hop_serve)(now);
		__atomic_store_n(&control->done, now, __ATOMIC_RELEASE);
	}
	(opt.flow ? flow_detach : hop_detach)();
	nfmeta_eal_detach();
	return 0;
}

/* ---- Primary: the upfront NF --------------------------------------------------- */

static pid_t child;
struct rte_mbuf *mbufs[MBUFS];
static struct nfmeta_field fields[PLACES];

/* ns: per packet and round trip.  busy: of these, not spent waiting for packets. */
static struct hop {
	double ns[ROUNDS_MAX];
	double primary_busy[ROUNDS_MAX];
	double secondary_busy[ROUNDS_MAX];
	double burst[ROUNDS_MAX]; /* mean, as received */
} hops[SIZES][VARIANTS];

enum {
	HOT_SET,
	HOT_GET,
	HOT_PEEK,
	HOT_SET_BURST,
	HOT_GET_BURST,
	HOTS
};
static const char *const hot_names[HOTS] = {"set", "get", "peek", "set_burst", "get_burst"};
static double hot[PLACES][HOTS][ROUNDS_MAX];

void
check_child(void)
{
	int status;

	if (waitpid(child, &status, WNOHANG) == child)
		die("the secondary process ended (status %#x)", (unsigned int)status);
}

/*
 * What receiving a packet does to the mbuf, and its arrival to the data; then
 * what an upfront NF does that knows the packet's flow.
 */
static __rte_always_inline void
prepare(const struct nfmeta_field *field, struct rte_mbuf **pkts, uint16_t n,
	struct nfmeta_record *recs, uint32_t id, const int stamp, const int write_header,
	uint64_t *sum)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		m->data_off = RTE_PKTMBUF_HEADROOM;
		m->ol_flags = 0;
		m->packet_type = 0;
		m->pkt_len = PKT_LEN;
		m->data_len = PKT_LEN;
		m->vlan_tci = 0;
		if (write_header)
			prefetch_write(rte_pktmbuf_mtod(m, void *));
		else
			rte_prefetch0(rte_pktmbuf_mtod(m, void *));
	}
	for (i = 0; i < n; i++) {
		struct rte_ether_hdr *eth = rte_pktmbuf_mtod(pkts[i], struct rte_ether_hdr *);

		*sum += eth->ether_type;
		if (write_header)
			memcpy(&eth->src_addr.addr_bytes[2], &id, sizeof(id));
		if (stamp)
			recs[i].flow_id = (id + i) & (FLOWS - 1);
	}
	if (stamp == 1)
		nfmeta_record_set_burst(field, pkts, recs, n);
	if (stamp == 2) {
		for (i = 0; i < n; i++)
			prefetch_write(RTE_PTR_ADD(pkts[i], field->offset));
		for (i = 0; i < n; i++)
			memcpy(RTE_PTR_ADD(pkts[i], field->offset), &recs[i], NFMETA_RECORD_CORE);
	}
}

/* One run.  Every mbuf that is sent is one that was collected just before. */
static __rte_always_inline void
run_hop(struct nfmeta_link *link, uint32_t in_flight, const int stamp, const int write_header,
	double *ns, double *busy)
{
	const struct nfmeta_field *field = nfmeta_link_field(link);
	uint64_t now, t0 = 0, start, looked, warm = ms_to_tsc(opt.warm_ms),
		      run = ms_to_tsc(opt.run_ms);
	uint64_t packets = 0, loops = 0, sum = 0, idle = 0, empty = 0;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	uint32_t id = 0, left;
	uint16_t i, n;

	for (i = 0; i < BURST; i++) {
		nfmeta_record_init(&recs[i]);
		recs[i].size = field->size;
		recs[i].flags = NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_L4_VALID |
				NFMETA_L3_CSUM_GOOD | NFMETA_L4_CSUM_GOOD | NFMETA_FLOW_KNOWN;
		recs[i].l3_off = sizeof(struct rte_ether_hdr);
		recs[i].l4_off = L4_OFF;
		recs[i].payload_off = L4_OFF + sizeof(struct rte_tcp_hdr);
	}
	for (left = 0; left < in_flight; left += BURST) {
		prepare(field, &mbufs[left], BURST, recs, id, stamp, write_header, &sum);
		if (nfmeta_send_burst(link, 0, &mbufs[left], BURST) != BURST)
			die("the link does not take %u packets", in_flight);
	}
	start = looked = rte_rdtsc();
	for (;;) {
		n = nfmeta_collect_burst(link, 0, pkts, how, BURST);
		if (unlikely((++loops & 63) == 0)) {
			now = rte_rdtsc();
			if (t0 == 0 && now - start > warm) {
				t0 = now;
				packets = idle = 0;
				empty = empty != 0 ? now : 0;
			} else if (t0 != 0 && now - t0 > run && packets != 0) {
				*ns = tsc_to_ns(now - t0) / (double)packets;
				*busy = tsc_to_ns(now - t0 - idle) / (double)packets;
				break;
			}
			if (now - looked > ms_to_tsc(100)) {
				looked = now;
				check_child();
			}
		}
		if (n == 0) {
			if (empty == 0)
				empty = rte_rdtsc();
			rte_pause();
			continue;
		}
		if (unlikely(empty != 0)) {
			idle += rte_rdtsc() - empty;
			empty = 0;
		}
		packets += n;
		prepare(field, pkts, n, recs, id, stamp, write_header, &sum);
		id += n;
		if (unlikely(nfmeta_send_burst(link, 0, pkts, n) != n))
			die("the link did not accept a packet that it had given back");
	}

	/* The last ones, and all that are still on their way. */
	memcpy(mbufs, pkts, n * sizeof(pkts[0]));
	for (left = n; left < in_flight; left += n) {
		n = nfmeta_collect_burst(link, 0, &mbufs[left], how,
					 (uint16_t)RTE_MIN(in_flight - left, (uint32_t)BURST));
		for (i = 0; i < n; i++)
			if (how[i] != NFMETA_FORWARD)
				die("the secondary refused a packet: the figures would be wrong");
		now = rte_rdtsc();
		if (n == 0 && now - looked > ms_to_tsc(5000))
			die("packets were lost: %u of %u came back", left, in_flight);
		if (n != 0)
			looked = now;
	}
	__asm__ volatile("" : : "r"(sum));
}

#define RUN_HOP(name, stamp, write_header)                                                         \
	static __rte_noinline void name(struct nfmeta_link *link, uint32_t in_flight, double *ns,  \
					double *busy)                                              \
	{                                                                                          \
		run_hop(link, in_flight, stamp, write_header, ns, busy);                           \
	}
RUN_HOP(run_unstamped_read, 0, 0)
RUN_HOP(run_unstamped_write, 0, 1)
RUN_HOP(run_stamped_read, 1, 0)
RUN_HOP(run_stamped_write, 1, 1)
RUN_HOP(run_raw_read, 2, 0)
RUN_HOP(run_raw_write, 2, 1)

void
order(uint32_t work, uint32_t link)
{
	control->work = work;
	control->link = link;
	__atomic_store_n(&control->seq, control->seq + 1, __ATOMIC_RELEASE);
}

void
await(void)
{
	unsigned int i;

	for (i = 0; __atomic_load_n(&control->done, __ATOMIC_ACQUIRE) != control->seq; i++) {
		check_child();
		if (i > 300000)
			die("the secondary process does not answer");
		usleep(100);
	}
}

static void
measure_hop(unsigned int s, unsigned int v, unsigned int round)
{
	static void (*const runs[3][2])(struct nfmeta_link *, uint32_t, double *, double *) = {
		{run_unstamped_read, run_unstamped_write},
		{run_stamped_read, run_stamped_write},
		{run_raw_read, run_raw_write},
	};
	unsigned int l = link_index(s, variants[v].placement);
	struct hop *h = &hops[s][v];
	uint64_t start;

	order(variants[v].work, l);
	start = rte_rdtsc();
	runs[variants[v].stamp][opt.write_header](links[l], sizes[s], &h->ns[round],
						  &h->primary_busy[round]);
	start = rte_rdtsc() - start;
	__atomic_store_n(&control->stop, control->seq, __ATOMIC_RELEASE);
	await();
	/* Over the whole run, warming up too. */
	h->secondary_busy[round] =
		h->ns[round] * (1 - RTE_MIN(1, (double)control->idle / (double)start));
	h->burst[round] = (double)control->packets / (double)control->bursts;
	fprintf(stderr, "micro: round %u/%u, %5u in flight, %-26s %6.1f ns\n", round + 1,
		opt.rounds, sizes[s], variants[v].label, h->ns[round]);
}

/* ---- Writing and reading alone, all in the first-level cache ------------------- */

#define HOT_LOOPS 20000

static __rte_always_inline double
measure_hot(const struct nfmeta_field *f, const unsigned int what)
{
	struct nfmeta_record recs[BURST], out[BURST];
	const struct nfmeta_record *r;
	uint32_t i, loop, id = 0;
	uint64_t t0 = 0, sum = 0;

	for (i = 0; i < BURST; i++) {
		nfmeta_record_init(&recs[i]);
		recs[i].flags = NFMETA_FLOW_KNOWN;
		recs[i].l4_off = L4_OFF;
		mbufs[i]->data_off = RTE_PKTMBUF_HEADROOM;
		mbufs[i]->pkt_len = mbufs[i]->data_len = PKT_LEN;
		mbufs[i]->ol_flags = 0;
	}
	if (nfmeta_record_set_burst(f, mbufs, recs, BURST) != BURST)
		die("a record could not be written");

	for (loop = 0; loop < HOT_LOOPS + HOT_LOOPS / 8; loop++) {
		if (loop == HOT_LOOPS / 8)
			t0 = rte_rdtsc_precise();
		switch (what) {
		case HOT_SET:
			for (i = 0; i < BURST; i++) {
				recs[0].flow_id = id++;
				sum += (uint32_t)nfmeta_record_set(f, mbufs[i], &recs[0]);
			}
			break;
		case HOT_GET:
			for (i = 0; i < BURST; i++)
				sum += nfmeta_record_get(f, mbufs[i], &out[i]);
			break;
		case HOT_PEEK:
			for (i = 0; i < BURST; i++) {
				r = nfmeta_record_peek(f, mbufs[i]);
				sum += r != NULL ? r->flow_id : 0;
			}
			break;
		case HOT_SET_BURST:
			recs[loop % BURST].flow_id = id++;
			sum += nfmeta_record_set_burst(f, mbufs, recs, BURST);
			break;
		case HOT_GET_BURST:
			sum += nfmeta_record_get_burst(f, mbufs, out, BURST);
			break;
		}
		/* Memory may have changed: do it all again. */
		__asm__ volatile("" : : "r"(recs), "r"(out), "r"(sum) : "memory");
	}
	return tsc_to_ns(rte_rdtsc_precise() - t0) / HOT_LOOPS / BURST;
}

#define HOT(name, what)                                                                            \
	static __rte_noinline double hot_##name(const struct nfmeta_field *f)                      \
	{                                                                                          \
		return measure_hot(f, what);                                                       \
	}
HOT(set, HOT_SET)
HOT(get, HOT_GET)
HOT(peek, HOT_PEEK)
HOT(set_burst, HOT_SET_BURST)
HOT(get_burst, HOT_GET_BURST)

/* ---- Memory and size of the library -------------------------------------------- */

static void
add_memzone(const struct rte_memzone *mz, void *arg)
{
	*(uint64_t *)arg += mz->len;
}

struct memory {
	uint64_t memzones; /* bytes */
	uint64_t heap;	   /* bytes that EAL's heap gave out for it, memzones included */
};

static struct memory
memory_now(void)
{
	struct rte_malloc_socket_stats stats;
	struct memory m = {0, 0};
	int socket;

	rte_memzone_walk(add_memzone, &m.memzones);
	for (socket = 0; socket < RTE_MAX_NUMA_NODES; socket++)
		if (rte_malloc_get_socket_stats(socket, &stats) == 0)
			m.heap += stats.heap_allocsz_bytes;
	return m;
}

/* What a link with 4 queues of 1024 takes. */
static struct memory
measure_memory(uint32_t blanks, struct rte_mempool *pool)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 4, .ring_size = 1024);
	struct memory before, after;
	struct nfmeta_link *link;

	o.field = &fields[0];
	o.blanks = blanks;
	o.pool = pool;
	before = memory_now();
	if (nfmeta_link_create("micro-mem", &o, &link) != 0)
		die("%s", nfmeta_error());
	after = memory_now();
	if (nfmeta_link_destroy(link, NULL) != 0)
		die("%s", nfmeta_error());
	after.memzones -= before.memzones;
	after.heap -= before.heap;
	return after;
}

struct text {
	const char *path;
	uint64_t text;	   /* section .text */
	uint64_t readonly; /* all sections that are loaded and not written: "text" of size(1) */
};

static struct text
measure_text(void)
{
	struct text t = {NULL, 0, 0};
	const Elf64_Ehdr *eh;
	const Elf64_Shdr *sh;
	const char *names;
	struct stat st;
	Dl_info info;
	int fd, i;

	if (dladdr((void *)(uintptr_t)nfmeta_version, &info) == 0)
		die("where libnfmeta is loaded from is not known");
	t.path = info.dli_fname;
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		die("%s: %s", t.path, strerror(errno));
	eh = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (eh == MAP_FAILED || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh->e_ident[EI_CLASS] != ELFCLASS64)
		die("%s is not a 64-bit ELF file", t.path);
	sh = (const Elf64_Shdr *)((const uint8_t *)eh + eh->e_shoff);
	names = (const char *)eh + sh[eh->e_shstrndx].sh_offset;
	for (i = 0; i < eh->e_shnum; i++) {
		if ((sh[i].sh_flags & (SHF_ALLOC | SHF_WRITE)) != SHF_ALLOC)
			continue;
		t.readonly += sh[i].sh_size;
		if (strcmp(names + sh[i].sh_name, ".text") == 0)
			t.text = sh[i].sh_size;
	}
	munmap((void *)(uintptr_t)eh, (size_t)st.st_size);
	return t;
}

/* ---- Results --------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread
spread_of(const double *v)
{
	double sorted[ROUNDS_MAX];
	unsigned int n = opt.rounds;

	memcpy(sorted, v, n * sizeof(v[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare);
	return (struct spread){(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[0], sorted[n - 1]};
}

struct spread
ratio_of(const double *values, const double *base)
{
	double r[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < opt.rounds; i++)
		r[i] = values[i] / base[i];
	return spread_of(r);
}

static struct spread
ratio(unsigned int s, unsigned int v, unsigned int base)
{
	return ratio_of(hops[s][v].ns, hops[s][base].ns);
}

static struct bar {
	char name[64];
	const char *unit;
	double value, limit;
	int at_least; /* else: at most */
} bars[32];
static unsigned int nb_bars;

void
add_bar(const char *unit, double value, double limit, int at_least, const char *fmt, ...)
{
	struct bar *b = &bars[nb_bars++];
	va_list ap;

	b->unit = unit;
	b->value = value;
	b->limit = limit;
	b->at_least = at_least;
	va_start(ap, fmt);
	vsnprintf(b->name, sizeof(b->name), fmt, ap);
	va_end(ap);
}

static int
met(const struct bar *b)
{
	return b->at_least ? b->value >= b->limit : b->value <= b->limit;
}

static double
slowest(unsigned int p, unsigned int first, unsigned int last)
{
	double worst = 0;
	unsigned int h;

	for (h = first; h <= last; h++)
		worst = RTE_MAX(worst, spread_of(hot[p][h]).median);
	return worst;
}

static void
find_bars(const struct memory *mem, const struct text *text)
{
	unsigned int p;

	for (p = 0; p < PLACES; p++)
		add_bar("x bare", ratio(1, DYNFIELD + p, BARE).median, 1.05, 0,
			"hop + record, %s, %u in flight", place_names[p + 1], sizes[1]);
	for (p = 0; p < PLACES; p++)
		add_bar("x bare", ratio(0, DYNFIELD + p, BARE).median, 1.6, 0,
			"hop + record, %s, %u in flight", place_names[p + 1], sizes[0]);
	add_bar("x record", ratio(1, REDO, DYNFIELD).median, 3, 1,
		"hop + redo : hop + record, %u in flight", sizes[1]);
	for (p = 0; p < PLACES; p++)
		add_bar("ns", slowest(p, HOT_SET, HOT_PEEK), 2, 0, "slowest of set, get, peek, %s",
			place_names[p + 1]);
	for (p = 0; p < PLACES; p++)
		add_bar("ns", slowest(p, HOT_SET_BURST, HOT_GET_BURST), 2, 0,
			"slowest of set_burst, get_burst, %s", place_names[p + 1]);
	add_bar("KiB", (double)mem->heap / 1024, 1024, 0, "memory of a link, 4 queues of 1024");
	add_bar("KiB", (double)text->readonly / 1024, 128, 0, "text of libnfmeta.so");
}

static void
print_table(const struct memory *mem, const struct memory *mem_blanks, const struct text *text)
{
	struct spread s, r;
	unsigned int i, v, p, h;

	for (i = 0; i < SIZES; i++) {
		printf("\n%u packets in flight, %u bytes each; ns per packet and round trip, "
		       "median "
		       "of %u runs\n",
		       sizes[i], PKT_LEN, opt.rounds);
		printf("  %-26s %7s %7s %7s  %6s %5s %5s  %8s %9s %5s\n", "", "ns", "min", "max",
		       "x bare", "min", "max", "primary", "secondary", "burst");
		for (v = 0; v < VARIANTS; v++) {
			s = spread_of(hops[i][v].ns);
			r = ratio(i, v, BARE);
			printf("  %-26s %7.1f %7.1f %7.1f  %6.2f %5.2f %5.2f  %8.1f %9.1f %5.1f\n",
			       variants[v].label, s.median, s.min, s.max, r.median, r.min, r.max,
			       spread_of(hops[i][v].primary_busy).median,
			       spread_of(hops[i][v].secondary_busy).median,
			       spread_of(hops[i][v].burst).median);
		}
	}
	printf("\nrecord of %u hot mbufs, ns per call or per packet of a burst\n  %-12s", BURST,
	       "");
	for (h = 0; h < HOTS; h++)
		printf(" %9s", hot_names[h]);
	printf("\n");
	for (p = 0; p < PLACES; p++) {
		printf("  %-12s", place_names[p + 1]);
		for (h = 0; h < HOTS; h++)
			printf(" %9.2f", spread_of(hot[p][h]).median);
		printf("\n");
	}
	printf("\nmemory of a link, 4 queues of 1024: %.1f KiB (memzones alone %.1f); with 256 "
	       "blanks a queue %.1f KiB\n",
	       (double)mem->heap / 1024, (double)mem->memzones / 1024,
	       (double)mem_blanks->heap / 1024);
	printf("size of libnfmeta.so: %.1f KiB code and read-only data, %.1f KiB of it .text\n",
	       (double)text->readonly / 1024, (double)text->text / 1024);
}

void
print_bars(void)
{
	unsigned int i;

	printf("\nbars\n");
	for (i = 0; i < nb_bars; i++)
		printf("  %-6s  %-44s %8.2f %s %s %g\n", met(&bars[i]) ? "met" : "MISSED",
		       bars[i].name, bars[i].value, bars[i].at_least ? ">=" : "<=", bars[i].unit,
		       bars[i].limit);
}

void
json_runs(FILE *f, const char *name, const double *v)
{
	unsigned int i;

	fprintf(f, "\"%s\": [", name);
	for (i = 0; i < opt.rounds; i++)
		fprintf(f, "%s%.3f", i ? ", " : "", v[i]);
	fprintf(f, "]");
}

void
json_spread(FILE *f, struct spread s)
{
	fprintf(f, "\"median\": %.3f, \"min\": %.3f, \"max\": %.3f", s.median, s.min, s.max);
}

/* Model name of the CPU, without characters that JSON would want escaped. */
static void
cpu_model(char *out, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *p;

	snprintf(out, len, "unknown");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "model name", 10) == 0 && (p = strchr(line, ':')) != NULL) {
			snprintf(out, len, "%s", p + 2);
			break;
		}
	if (f != NULL)
		fclose(f);
	for (p = out; *p != '\0'; p++)
		if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
			*p = '\0';
}

FILE *
json_open(const char *path)
{
	FILE *f = fopen(path, "we");
	char cpu[128];

	if (f == NULL)
		die("%s: %s", path, strerror(errno));
	cpu_model(cpu, sizeof(cpu));
	fprintf(f, "{\n  \"nfmeta\": \"%s\",\n  \"dpdk\": \"%s\",\n  \"cpu\": \"%s\",\n",
		nfmeta_version(), rte_version(), cpu);
	fprintf(f, "  \"compiler\": \"%s\",\n  \"tsc_hz\": %" PRIu64 ",\n", __VERSION__,
		rte_get_tsc_hz());
	fprintf(f, "  \"cores\": [%d, %d],\n  \"rounds\": %u,\n  \"run_ms\": %u,\n", opt.cores[0],
		opt.cores[1], opt.rounds, opt.run_ms);
	return f;
}

void
json_close(FILE *f, const char *path)
{
	unsigned int i;

	fprintf(f, "  \"bars\": [");
	for (i = 0; i < nb_bars; i++)
		fprintf(f,
			"%s\n    {\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"%s\": %g, "
			"\"met\": %s}",
			i ? "," : "", bars[i].name, bars[i].value, bars[i].unit,
			bars[i].at_least ? "at_least" : "at_most", bars[i].limit,
			met(&bars[i]) ? "true" : "false");
	fprintf(f, "\n  ]\n}\n");
	if (fclose(f) != 0)
		die("%s: %s", path, strerror(errno));
}

static void
write_json(const char *path, const struct memory *mem, const struct memory *mem_blanks,
	   const struct text *text)
{
	FILE *f = json_open(path);
	unsigned int i, v, p, h;
	const char *sep = "";

	fprintf(f, "  \"packet_bytes\": %u,\n  \"burst\": %u,\n  \"flows\": %u,\n", PKT_LEN, BURST,
		FLOWS);
	fprintf(f, "  \"primary_writes_header\": %s,\n", opt.write_header ? "true" : "false");
	fprintf(f, "  \"hop\": [");
	for (i = 0; i < SIZES; i++)
		for (v = 0; v < VARIANTS; v++) {
			fprintf(f,
				"%s\n    {\"name\": \"%s\", \"label\": \"%s\", \"in_flight\": %u, ",
				sep, variants[v].name, variants[v].label, sizes[i]);
			json_spread(f, spread_of(hops[i][v].ns));
			fprintf(f, ", ");
			json_runs(f, "ns", hops[i][v].ns);
			fprintf(f, ", \"x_bare\": {");
			json_spread(f, ratio(i, v, BARE));
			fprintf(f,
				"}, \"primary_busy_ns\": %.1f, \"secondary_busy_ns\": %.1f, "
				"\"mean_burst\": %.1f}",
				spread_of(hops[i][v].primary_busy).median,
				spread_of(hops[i][v].secondary_busy).median,
				spread_of(hops[i][v].burst).median);
			sep = ",";
		}
	fprintf(f, "\n  ],\n  \"hot\": [");
	sep = "";
	for (p = 0; p < PLACES; p++)
		for (h = 0; h < HOTS; h++) {
			fprintf(f, "%s\n    {\"placement\": \"%s\", \"call\": \"%s\", ", sep,
				place_names[p + 1], hot_names[h]);
			json_spread(f, spread_of(hot[p][h]));
			fprintf(f, "}");
			sep = ",";
		}
	fprintf(f,
		"\n  ],\n  \"memory\": {\"queues\": 4, \"ring_size\": 1024, \"bytes\": %" PRIu64
		", \"memzone_bytes\": %" PRIu64 ", \"bytes_with_256_blanks\": %" PRIu64 "},\n",
		mem->heap, mem->memzones, mem_blanks->heap);
	fprintf(f,
		"  \"library\": {\"text_and_rodata_bytes\": %" PRIu64 ", \"text_bytes\": %" PRIu64
		"},\n",
		text->readonly, text->text);
	json_close(f, path);
}

/* ---- Both -------------------------------------------------------------------------- */

struct rte_mempool *
make_mbufs(void)
{
	struct rte_mempool *pool;
	uint32_t i, j;

	pool = rte_pktmbuf_pool_create("micro_pool", 2 * MBUFS - 1, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (pool == NULL)
		die("no packet pool: %s", rte_strerror(rte_errno));
	for (i = 0; i < MBUFS; i++) {
		mbufs[i] = rte_pktmbuf_alloc(pool);
		if (mbufs[i] == NULL || rte_pktmbuf_append(mbufs[i], PKT_LEN) == NULL)
			die("no mbuf");
		make_packet(rte_pktmbuf_mtod(mbufs[i], uint8_t *), i % FLOWS);
	}
	/* Not in the order of their addresses, as it would be in no running program. */
	for (i = MBUFS - 1; i > 0; i--) {
		j = (uint32_t)rte_rand_max(i + 1);
		RTE_SWAP(mbufs[i], mbufs[j]);
	}
	return pool;
}

static void
make_links(void)
{
	struct nfmeta_field_opts fo = NFMETA_FIELD_OPTS();
	struct nfmeta_link_opts lo = NFMETA_LINK_OPTS();
	char name[NFMETA_NAME_SIZE];
	unsigned int s, p, l;

	for (p = 0; p < PLACES; p++) {
		fo.placement = (uint8_t)(p + 1);
		if (nfmeta_field_register(&fo, &fields[p]) != 0)
			die("%s", nfmeta_error());
	}
	for (s = 0; s < SIZES; s++)
		for (p = 0; p < PLACES; p++) {
			lo.ring_size = sizes[s];
			lo.field = &fields[p];
			l = link_index(s, (uint8_t)(p + 1));
			link_name(name, l);
			if (nfmeta_link_create(name, &lo, &links[l]) != 0)
				die("%s", nfmeta_error());
		}
}

static struct memory mem, mem_blanks;
static struct text text;

static void
hop_make(void)
{
	make_links();
	mem = measure_memory(0, NULL);
	mem_blanks = measure_memory(256, mbufs[0]->pool);
	text = measure_text();
}

static void
hop_measure(void)
{
	static double (*const hots[HOTS])(const struct nfmeta_field *) = {
		hot_set, hot_get, hot_peek, hot_set_burst, hot_get_burst,
	};
	unsigned int round, s, v, p, h;

	for (round = 0; round < opt.rounds; round++) {
		for (p = 0; p < PLACES; p++)
			for (h = 0; h < HOTS; h++)
				hot[p][h][round] = hots[h](&fields[p]);
		for (s = 0; s < SIZES; s++)
			for (v = 0; v < VARIANTS; v++)
				measure_hop(s, v, round);
	}
}

static void
hop_report(void)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(links); i++)
		if (nfmeta_link_destroy(links[i], NULL) != 0)
			die("%s", nfmeta_error());
	find_bars(&mem, &text);
	print_table(&mem, &mem_blanks, &text);
	print_bars();
	if (opt.json != NULL)
		write_json(opt.json, &mem, &mem_blanks, &text);
}

static int
primary(int go)
{
	char lcores[32], prefix[128];
	const char *argv[12];
	const struct rte_memzone *mz;
	struct rte_mempool *pool;
	int argc = 0, status;

	snprintf(lcores, sizeof(lcores), "0@%d", opt.cores[0]);
	snprintf(prefix, sizeof(prefix), "%s", opt.prefix);
	argv[argc++] = "micro";
	argv[argc++] = "--proc-type=primary";
	argv[argc++] = "--file-prefix";
	argv[argc++] = prefix;
	argv[argc++] = "--lcores";
	argv[argc++] = lcores;
	argv[argc++] = "--no-pci";
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "--log-level=*:error";
	if (opt.huge_dir != NULL) {
		argv[argc++] = "--huge-dir";
		argv[argc++] = opt.huge_dir;
	}
	if (rte_eal_init(argc, (char **)(uintptr_t)argv) < 0)
		die("EAL does not start: %s", rte_strerror(rte_errno));

	mz = rte_memzone_reserve_aligned(CONTROL, sizeof(*control), SOCKET_ID_ANY, 0,
					 RTE_CACHE_LINE_SIZE);
	if (mz == NULL)
		die("no memory: %s", rte_strerror(rte_errno));
	control = mz->addr;
	memset(control, 0, sizeof(*control));
	pool = make_mbufs();
	(opt.flow ? flow_make : hop_make)();
	control->seq = 1;
	if (write(go, "", 1) != 1)
		die("cannot start the secondary process: %s", strerror(errno));
	await();

	(opt.flow ? flow_measure : hop_measure)();
	order(WORK_QUIT, 0);
	if (waitpid(child, &status, 0) != child || status != 0)
		die("the secondary process failed (status %#x)", (unsigned int)status);
	(opt.flow ? flow_report : hop_report)();
	rte_pktmbuf_free_bulk(mbufs, MBUFS);
	if (rte_mempool_in_use_count(pool) != 0)
		die("%u mbufs were lost", rte_mempool_in_use_count(pool));
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}

static void
usage(FILE *f)
{
	fprintf(f,
		"usage: micro [flow] [--json FILE] [--rounds N] [--run-ms MS] [--warm-ms MS]\n"
		"             [--quick] [--cores PRIMARY,SECONDARY] [--header read|write]\n"
		"             [--file-prefix PREFIX] [--huge-dir DIR]\n"
		"Measures what a packet costs on its way through a link and back, without a\n"
		"record, with one, and with all the work that a record saves.\n"
		"  flow           measure flow state instead: deletes, and the shared table\n"
		"  --json FILE    write all figures there too\n"
		"  --rounds N     runs of each kind, 1 to 99 (7)\n"
		"  --run-ms MS    length of a run (300), after --warm-ms (60)\n"
		"  --quick        3 rounds of 100 ms: to see whether it works\n"
		"  --cores P,S    cores of the two processes (0,1)\n"
		"  --header HOW   packets: whether the primary only reads the packet's first\n"
		"                 line, so that it stays in both caches, or writes to it (read)\n"
		"Two idle cores and hugepages are needed; bench/run provides the hugepages.\n");
}

static unsigned int
number(const char *s, unsigned int min, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);

	if (end == s || *end != '\0' || n < min || n > max) {
		fprintf(stderr, "micro: \"%s\" is not a number from %u to %u\n", s, min, max);
		exit(2);
	}
	return (unsigned int)n;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", required_argument, NULL, 'j'},
		{"rounds", required_argument, NULL, 'r'},
		{"run-ms", required_argument, NULL, 't'},
		{"warm-ms", required_argument, NULL, 'w'},
		{"quick", no_argument, NULL, 'q'},
		{"cores", required_argument, NULL, 'c'},
		{"header", required_argument, NULL, 'H'},
		{"file-prefix", required_argument, NULL, 'p'},
		{"huge-dir", required_argument, NULL, 'd'},
		{"secondary", no_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c, go[2], is_secondary = 0;
	char own_prefix[64], cores[32], byte;

	snprintf(own_prefix, sizeof(own_prefix), "nfm-micro-%d", (int)getpid());
	opt.prefix = own_prefix;
	if (argc > 1 && strcmp(argv[1], "flow") == 0) {
		opt.flow = 1;
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			opt.json = optarg;
			break;
		case 'r':
			opt.rounds = number(optarg, 1, ROUNDS_MAX);
			break;
		case 't':
			opt.run_ms = number(optarg, 10, 60000);
			break;
		case 'w':
			opt.warm_ms = number(optarg, 1, 60000);
			break;
		case 'q':
			opt.rounds = 3;
			opt.run_ms = 100;
			break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &opt.cores[0], &opt.cores[1]) != 2) {
				usage(stderr);
				return 2;
			}
			break;
		case 'H':
			opt.write_header = strcmp(optarg, "write") == 0;
			if (!opt.write_header && strcmp(optarg, "read") != 0) {
				usage(stderr);
				return 2;
			}
			break;
		case 'p':
			opt.prefix = optarg;
			break;
		case 'd':
			opt.huge_dir = optarg;
			break;
		case 'S':
			is_secondary = 1;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}
	if (is_secondary)
		return secondary();

	/* The secondary is started before EAL, so that it inherits nothing of it. */
	if (pipe2(go, O_CLOEXEC) != 0)
		die("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1); /* the primary failed, and has said why */
		snprintf(cores, sizeof(cores), "%d,%d", opt.cores[0], opt.cores[1]);
		if (opt.flow)
			execl("/proc/self/exe", "micro", "flow", "--secondary", "--file-prefix",
			      opt.prefix, "--cores", cores, (char *)NULL);
		else
			execl("/proc/self/exe", "micro", "--secondary", "--file-prefix", opt.prefix,
			      "--cores", cores, (char *)NULL);
		die("cannot execute itself: %s", strerror(errno));
	}
	close(go[0]);
	return primary(go[1]);
}
