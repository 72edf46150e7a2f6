/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * An upfront NF for the tests, where the splitter is too honest or too regular: it cuts
 * packets into segments of any size, says of checksums what it is told to say, ends
 * flows while the link goes on, and leaves a link idle.  Compares every packet that
 * comes back with the one that went out.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#include "common.h"

#define BURST 32
#define FLOWS 16384 /* a power of 2 */
#define PACKET_MAX 262144

enum stamp {
	HONEST,
	NONE,
	GOOD,
	BAD,
	BAD_IP
};
static const char *const stamps[] = {"honest", "none", "good", "bad", "bad-ip", NULL};
static const char *const places[] = {"auto", "dynfield", "udata64", "headroom", NULL};
static const char *const carriers[] = {"none", "ring", "inband", NULL};

static struct {
	const char *in, *out, *injected, *link, *file_prefix, *json;
	uint64_t room, mbufs, ring, loops, stay, counters, blanks, tenant, app;
	int stamp, placement, carrier;
	bool end_flows;
} o = {.link = "ids",
       .file_prefix = "nfmeta",
       .room = 2048,
       .mbufs = 8191,
       .ring = 1024,
       .loops = 1,
       .blanks = 32,
       .carrier = NFMETA_CARRIER_RING};

struct packet {
	uint32_t len;
	uint64_t us;
	uint8_t *data;
};

struct flow {
	struct nfmeta_flow_key key;
	bool used, reverse, named;
	uint32_t verdicts;
	uint64_t packets;
};

static struct packet *packets;
static uint32_t npackets;
static struct flow flows[FLOWS];
static struct rte_mempool *pool;
static struct nfmeta_link *wire;
static struct nfmeta_field field;

static struct {
	uint64_t sent, back, forwarded, dropped, backward, injected, injected_backward, blanks,
		changed;
	uint64_t flows, deletes, shunts, drops, other_verdicts, repeated, resyncs;
	uint64_t left_ms; /* since 1970: when the NF was seen to have left */
	bool heard;
} c;

/* ---- the capture ---------------------------------------------------------------- */

static int
read_capture(void)
{
	struct {
		uint32_t sec, usec, caplen, len;
	} h;
	uint8_t head[24];
	FILE *f = fopen(o.in, "rb");
	struct packet *p;

	if (f == NULL)
		return complain("%s: %s", o.in, strerror(errno));
	if (fread(head, sizeof(head), 1, f) != 1 || memcmp(head, "\xd4\xc3\xb2\xa1", 4) != 0) {
		fclose(f);
		return complain("%s: a pcap file of this machine's byte order is wanted", o.in);
	}
	while (fread(&h, sizeof(h), 1, f) == 1) {
		p = realloc(packets, (npackets + 1) * sizeof(*p));
		if (p == NULL || h.caplen > PACKET_MAX)
			break;
		packets = p;
		p += npackets++;
		p->len = h.caplen;
		p->us = h.sec * UINT64_C(1000000) + h.usec;
		p->data = malloc(h.caplen + 1);
		if (p->data == NULL || fread(p->data, 1, h.caplen, f) != h.caplen)
			break;
	}
	if (!feof(f) || npackets == 0) {
		fclose(f);
		return complain("%s: empty, cut off, or a packet is too long", o.in);
	}
	fclose(f);
	return 0;
}

static FILE *
write_capture(const char *path)
{
	const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, PACKET_MAX, 1};
	FILE *f = fopen(path, "wb");

	if (f == NULL || fwrite(head, sizeof(head), 1, f) != 1)
		complain("%s: %s", path, strerror(errno));
	return f;
}

static void
write_packet(FILE *f, const uint8_t *data, uint32_t len, uint64_t us)
{
	const uint32_t head[4] = {(uint32_t)(us / 1000000), (uint32_t)(us % 1000000), len, len};

	if (f == NULL)
		return;
	fwrite(head, sizeof(head), 1, f);
	fwrite(data, len, 1, f);
}

/* ---- flows -------------------------------------------------------------------------- */

static struct flow *
find_flow(const struct nfmeta_flow_key *key)
{
	const uint8_t *b = (const uint8_t *)key;
	uint32_t at = 2166136261u;
	size_t i;

	for (i = 0; i < sizeof(*key); i++)
		at = (at ^ b[i]) * 16777619u;
	for (i = 0; i < FLOWS; i++, at++) {
		struct flow *f = &flows[at & (FLOWS - 1)];

		if (!f->used || memcmp(&f->key, key, sizeof(*key)) == 0)
			return f;
	}
	return NULL;
}

static void
stamp_flow(struct nfmeta_record *r, const struct nfmeta_flow_key *key, struct nfmeta_flow_state *s,
	   uint16_t *news)
{
	struct flow *f = key->ip_version != 0 ? find_flow(key) : NULL;
	bool is_new;

	if (f == NULL)
		return;
	is_new = !f->used;
	if (is_new) {
		f->used = true;
		f->key = *key;
		f->reverse = (r->flags & NFMETA_FLOW_REVERSE) != 0;
		s[(*news)++] = (struct nfmeta_flow_state){
			.flow_id = (uint32_t)(f - flows), .flow_gen = 1, .app_id = (uint32_t)o.app};
		c.flows++;
	}
	f->packets++;
	nfmeta_record_set_flow(r, (uint32_t)(f - flows), 1, f->reverse, is_new);
}

static void
stamp(struct nfmeta_record *r)
{
	uint16_t l3 = r->flags & NFMETA_L3_VALID ? NFMETA_L3_CSUM_GOOD : 0;
	uint16_t l4 = r->flags & NFMETA_L4_VALID ? NFMETA_L4_CSUM_GOOD : 0;

	switch (o.stamp) {
	case HONEST:
		return;
	case NONE:
		r->size = 0;
		return;
	case BAD_IP:
		l3 = l3 != 0 ? NFMETA_L3_CSUM_BAD : 0;
		break;
	case BAD:
		l4 = l4 != 0 ? NFMETA_L4_CSUM_BAD : 0;
		break;
	}
	r->flags = (uint16_t)((r->flags & ~(NFMETA_L3_CSUM_MASK | NFMETA_L4_CSUM_MASK)) | l3 | l4);
}

/* ---- there and back ------------------------------------------------------------------- */

static struct rte_mbuf *
make(const struct packet *p)
{
	struct rte_mbuf *head = NULL, *m;
	uint32_t at, k;

	for (at = 0; at < p->len; at += k) {
		m = rte_pktmbuf_alloc(pool);
		if (m == NULL || (head != NULL && rte_pktmbuf_chain(head, m) != 0)) {
			rte_pktmbuf_free(m);
			rte_pktmbuf_free(head);
			return NULL;
		}
		if (head == NULL) {
			head = m;
			head->port = 0;
		}
		k = RTE_MIN(p->len - at, (uint32_t)o.room);
		m->data_len = (uint16_t)k;
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), p->data + at, k);
		if (m != head)
			head->pkt_len += k;
		else
			m->pkt_len = k;
	}
	return head;
}

static void
take_back(struct rte_mbuf *m, uint8_t how, FILE *out, FILE *injected)
{
	static uint8_t room[PACKET_MAX];
	const struct packet *p;
	const uint8_t *data;

	if ((how & NFMETA_INJECTED) != 0) {
		if ((how & NFMETA_DROP) != 0) {
			c.blanks++;
		} else {
			c.injected++;
			c.injected_backward += (how & NFMETA_BACKWARD) != 0;
			data = rte_pktmbuf_read(m, 0, m->pkt_len, room);
			write_packet(injected, data, m->pkt_len,
				     how & NFMETA_BACKWARD ? 1000000 : 0);
		}
		rte_pktmbuf_free(m);
		return;
	}
	p = &packets[c.back++ % npackets];
	data = m->pkt_len <= PACKET_MAX ? rte_pktmbuf_read(m, 0, m->pkt_len, room) : NULL;
	if (data == NULL || m->pkt_len != p->len || memcmp(data, p->data, p->len) != 0)
		c.changed++;
	if ((how & NFMETA_BACKWARD) != 0) {
		c.backward++;
	} else if ((how & NFMETA_DROP) != 0) {
		c.dropped++;
	} else {
		c.forwarded++;
		write_packet(out, p->data, p->len, p->us);
	}
	rte_pktmbuf_free(m);
}

static unsigned int
collect(FILE *out, FILE *injected)
{
	const struct nfmeta_flow_batch *msg;
	const struct nfmeta_flow_verdict *v;
	struct rte_mbuf *pkts[BURST];
	uint8_t how[BURST];
	unsigned int n, i;

	n = nfmeta_collect_burst(wire, 0, pkts, how, BURST);
	for (i = 0; i < n; i++)
		take_back(pkts[i], how[i], out, injected);
	while (o.carrier != 0 && nfmeta_flow_collect(wire, 0, &msg) == 1) {
		n++;
		if (msg->type == NFMETA_MSG_RESYNC) {
			/* it has not been told of any flow yet, or of all that there are */
			nfmeta_flow_snapshot(wire, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST);
			c.resyncs++;
		}
		for (i = 0; msg->type == NFMETA_MSG_VERDICT && i < msg->count; i++) {
			v = nfmeta_flow_entry(msg, (uint16_t)i);
			if (v->verdict == NFMETA_ACTION_SHUNT)
				c.shunts++;
			else if (v->verdict == NFMETA_ACTION_DROP)
				c.drops++;
			else
				c.other_verdicts++;
			if (v->flow_id < FLOWS && flows[v->flow_id].verdicts++ > 0)
				c.repeated++;
		}
	}
	return n;
}

/* Sends a burst; false: told to stop, or nobody takes it. */
static bool
send_all(struct rte_mbuf **pkts, uint16_t n, FILE *out, FILE *injected)
{
	uint64_t until = rte_rdtsc() + 20 * rte_get_tsc_hz();
	struct idle idle = {0};
	uint16_t sent = 0, k;

	while (sent < n && !stop_asked() && rte_rdtsc() < until) {
		k = nfmeta_send_burst(wire, 0, pkts + sent, (uint16_t)(n - sent));
		sent += k;
		if (collect(out, injected) + k > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
	}
	c.sent += sent;
	rte_pktmbuf_free_bulk(pkts + sent, (unsigned int)(n - sent));
	return sent == n;
}

/* Until everything is back, at most so long without a sign. */
static bool
all_back(double seconds, FILE *out, FILE *injected)
{
	uint64_t hz = rte_get_tsc_hz(), heard = rte_rdtsc();
	struct idle idle = {0};

	while (nfmeta_link_in_flight(wire, 0) != 0) {
		if (collect(out, injected) > 0) {
			heard = rte_rdtsc();
			idle_over(&idle);
		} else if (rte_rdtsc() - heard > (uint64_t)(seconds * (double)hz)) {
			return false;
		} else {
			idle_wait(&idle);
		}
	}
	return true;
}

static bool
run_packets(FILE *out, FILE *injected)
{
	struct nfmeta_flow_state news[BURST];
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	struct rte_mbuf *pkts[BURST];
	uint64_t at = 0, end = o.loops * npackets;
	uint16_t n, i, nnews;

	while (at < end && !stop_asked()) {
		for (n = 0; n < BURST && at + n < end; n++) {
			pkts[n] = make(&packets[(at + n) % npackets]);
			if (pkts[n] == NULL)
				break;
		}
		if (n == 0) {
			if (!all_back(20, out, injected) || nfmeta_link_in_flight(wire, 0) != 0)
				break;
			continue;
		}
		nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, pkts, n, recs, keys);
		nnews = 0;
		for (i = 0; i < n; i++) {
			stamp_flow(&recs[i], &keys[i], news, &nnews);
			recs[i].timestamp = packets[(at + i) % npackets].us * 1000;
			recs[i].tenant = (uint32_t)o.tenant;
			recs[i].app_id = (uint32_t)o.app;
			stamp(&recs[i]);
		}
		nfmeta_record_set_burst(&field, pkts, recs, n);
		if (nnews > 0 && o.carrier != 0 &&
		    nfmeta_flow_send(wire, 0, NFMETA_MSG_NEW, news, nnews) != 0)
			complain("the NF does not take messages");
		if (!send_all(pkts, n, out, injected))
			return false;
		at += n;
	}
	return all_back(20, out, injected) && c.sent == end;
}

/* ---- flows end -------------------------------------------------------------------------- */

static void
tell(uint8_t type, const void *entry)
{
	uint64_t until = rte_rdtsc() + 5 * rte_get_tsc_hz();

	while (nfmeta_flow_send(wire, 0, type, entry, 1) == -EAGAIN && rte_rdtsc() < until)
		collect(NULL, NULL);
}

static void
end_flows(void)
{
	struct nfmeta_flow_stats stats = {.sz = sizeof(stats)};
	struct nfmeta_flow_counters n;
	struct nfmeta_flow_delete d;
	uint32_t id;
	int i;

	for (id = 0; id < FLOWS; id++) {
		if (!flows[id].used)
			continue;
		if (o.counters > 0) {
			n = (struct nfmeta_flow_counters){
				.flow_id = id,
				.flow_gen = 1,
				.packets = {o.counters, 2 * o.counters},
				.bytes = {3 * o.counters, 4 * o.counters}};
			tell(NFMETA_MSG_COUNTERS, &n);
		}
		d = (struct nfmeta_flow_delete){
			.flow_id = id, .flow_gen = 1, .reason = NFMETA_END_TIMEOUT};
		tell(NFMETA_MSG_DELETE, &d);
		c.deletes++;
	}
	for (i = 0; i < 50 && !c.heard; i++) {
		nfmeta_flow_send(wire, 0, NFMETA_MSG_HEARTBEAT, NULL, 0);
		for (int k = 0; k < 100 && !c.heard; k++) {
			collect(NULL, NULL);
			nfmeta_flow_stats(wire, 0, &stats);
			c.heard = stats.state == NFMETA_FEED_STREAM && stats.acked == stats.sent;
			rte_delay_us_sleep(1000);
		}
	}
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- start and end ------------------------------------------------------------------------ */

static bool
wait_peer(int want, double seconds)
{
	uint64_t until = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	while (nfmeta_link_peer(wire, 0) != want) {
		if (stop_asked() || rte_rdtsc() > until)
			return false;
		collect(NULL, NULL);
		rte_delay_us_sleep(1000);
	}
	return true;
}

static int
open_link(void)
{
	struct nfmeta_field_opts place = NFMETA_FIELD_OPTS(.placement = (uint8_t)o.placement);
	struct nfmeta_link_opts opts =
		NFMETA_LINK_OPTS(.ring_size = (uint32_t)o.ring, .carrier = (uint8_t)o.carrier,
				 .when_full = NFMETA_FULL_WAIT, .blanks = (uint32_t)o.blanks,
				 .field = &field);

	pool = rte_pktmbuf_pool_create(
		"feeder", (uint32_t)o.mbufs, 64, 0,
		(uint16_t)(RTE_MAX(o.room, UINT64_C(2100)) + RTE_PKTMBUF_HEADROOM),
		(int)rte_socket_id());
	if (pool == NULL)
		return complain("no pool of %ju mbufs: %s", (uintmax_t)o.mbufs,
				rte_strerror(rte_errno));
	opts.pool = pool;
	if (nfmeta_field_register(&place, &field) != 0 ||
	    nfmeta_link_create(o.link, &opts, &wire) != 0)
		return complain("%s", nfmeta_error());
	note("link \"%s\" is ready", o.link);
	return 0;
}

static void
report(struct json *j, uint64_t lost)
{
	json_object(j, NULL);
	json_number(j, "sent", c.sent);
	json_number(j, "back", c.back);
	json_number(j, "lost", lost);
	json_number(j, "forwarded", c.forwarded);
	json_number(j, "dropped", c.dropped);
	json_number(j, "backward", c.backward);
	json_number(j, "injected", c.injected);
	json_number(j, "injected_backward", c.injected_backward);
	json_number(j, "blanks", c.blanks);
	json_number(j, "changed", c.changed);
	json_number(j, "flows", c.flows);
	json_number(j, "deletes", c.deletes);
	json_number(j, "heard", c.heard);
	json_number(j, "left_ms", c.left_ms);
	json_number(j, "verdicts_shunt", c.shunts);
	json_number(j, "verdicts_drop", c.drops);
	json_number(j, "verdicts_other", c.other_verdicts);
	json_number(j, "verdicts_repeated", c.repeated);
	json_number(j, "resyncs", c.resyncs);
	json_number(j, "pool_missing", rte_mempool_in_use_count(pool));
	json_end(j);
}

static int
run(struct json *j)
{
	FILE *out = o.out != NULL ? write_capture(o.out) : NULL;
	FILE *injected = o.injected != NULL ? write_capture(o.injected) : NULL;
	uint64_t until, lost = 0;
	bool good = true;
	int i;

	if (!wait_peer(NFMETA_PEER_ALIVE, 30))
		return complain("no NF came");
	note("an NF is there");
	for (i = 0; i < 500; i++) { /* it subscribes, or not */
		collect(NULL, NULL);
		rte_delay_us_sleep(1000);
		if (c.resyncs > 0)
			break;
	}
	if (o.in != NULL) {
		good = run_packets(out, injected);
		note(good ? "all packets are back" : "not all packets are back");
	}
	if (o.end_flows) {
		end_flows();
		note("flows have ended");
	}
	until = rte_rdtsc() + o.stay * rte_get_tsc_hz();
	while (o.stay > 0 && !stop_asked() && rte_rdtsc() < until) {
		if (nfmeta_link_peer(wire, 0) == NFMETA_PEER_NONE && c.left_ms == 0) {
			c.left_ms = now_ms();
			note("the NF has left");
		}
		collect(out, injected);
		rte_delay_us_sleep(1000);
	}
	nfmeta_link_close(wire);
	if (!all_back(5, out, injected))
		good = false;
	if (!wait_peer(NFMETA_PEER_NONE, 10) && !stop_asked())
		complain("the NF does not leave");
	lost = nfmeta_link_in_flight(wire, 0);
	for (i = 0; i < 5000 && nfmeta_link_destroy(wire, NULL) == -EBUSY; i++)
		rte_delay_us_sleep(1000);
	report(j, lost);
	if (out != NULL)
		fclose(out);
	if (injected != NULL)
		fclose(injected);
	return good && lost == 0 ? 0 : EXIT_PEER;
}

static int
options(int argc, char **argv, struct primary_opts *eal)
{
	enum {
		IN = 256,
		OUT,
		INJ,
		LINK,
		PREFIX,
		JSON,
		ROOM,
		MBUFS,
		RING,
		LOOP,
		STAY,
		COUNT,
		BLANKS,
		STAMP,
		PLACE,
		CARRIER,
		TENANT,
		APP,
		END
	};
	static const struct option names[] = {
		{"in", 1, NULL, IN},	       {"out", 1, NULL, OUT},
		{"injected", 1, NULL, INJ},    {"link", 1, NULL, LINK},
		{"json", 1, NULL, JSON},       {"file-prefix", 1, NULL, PREFIX},
		{"room", 1, NULL, ROOM},       {"mbufs", 1, NULL, MBUFS},
		{"ring-size", 1, NULL, RING},  {"loop", 1, NULL, LOOP},
		{"stay", 1, NULL, STAY},       {"counters", 1, NULL, COUNT},
		{"blanks", 1, NULL, BLANKS},   {"stamp", 1, NULL, STAMP},
		{"placement", 1, NULL, PLACE}, {"carrier", 1, NULL, CARRIER},
		{"tenant", 1, NULL, TENANT},   {"app", 1, NULL, APP},
		{"end-flows", 0, NULL, END},   {NULL, 0, NULL, 0},
	};
	int k, rc = 0;

	opterr = 0;
	while (rc == 0 && (k = getopt_long(argc, argv, "+:", names, NULL)) != -1) {
		switch (k) {
		case IN:
			o.in = optarg;
			break;
		case OUT:
			o.out = optarg;
			break;
		case INJ:
			o.injected = optarg;
			break;
		case LINK:
			o.link = optarg;
			break;
		case PREFIX:
			o.file_prefix = optarg;
			break;
		case JSON:
			o.json = optarg;
			break;
		case ROOM:
			rc = parse_u64("--room", optarg, 60, 65000, &o.room);
			break;
		case MBUFS:
			rc = parse_u64("--mbufs", optarg, 64, 1 << 20, &o.mbufs);
			break;
		case RING:
			rc = parse_u64("--ring-size", optarg, 64, 65536, &o.ring);
			break;
		case LOOP:
			rc = parse_u64("--loop", optarg, 1, 1 << 30, &o.loops);
			break;
		case STAY:
			rc = parse_u64("--stay", optarg, 0, 3600, &o.stay);
			break;
		case BLANKS:
			rc = parse_u64("--blanks", optarg, 0, 1024, &o.blanks);
			break;
		case COUNT:
			rc = parse_u64("--counters", optarg, 1, 1 << 30, &o.counters);
			break;
		case TENANT:
			rc = parse_u64("--tenant", optarg, 0, UINT32_MAX, &o.tenant);
			break;
		case APP:
			rc = parse_u64("--app", optarg, 0, UINT32_MAX, &o.app);
			break;
		case STAMP:
			rc = parse_choice("--stamp", optarg, stamps, &o.stamp);
			break;
		case PLACE:
			rc = parse_choice("--placement", optarg, places, &o.placement);
			break;
		case CARRIER:
			rc = parse_choice("--carrier", optarg, carriers, &o.carrier);
			break;
		case END:
			o.end_flows = true;
			break;
		default:
			rc = bad_option(k, argv);
		}
	}
	eal->file_prefix = o.file_prefix;
	eal->argc = argc - optind;
	eal->argv = argv + optind;
	return rc;
}

int
main(int argc, char **argv)
{
	struct primary_opts eal = {0};
	struct json j;
	int rc = EXIT_BAD;

	say_program(argv[0]);
	if (options(argc, argv, &eal) != 0 || (o.in != NULL && read_capture() != 0))
		return EXIT_BAD;
	if (json_open(&j, o.json) != 0)
		return EXIT_BAD;
	stop_install();
	if (primary_start(&eal) == 0) {
		if (open_link() == 0) {
			rc = run(&j);
			if (rc < 0)
				rc = EXIT_PEER;
		}
		primary_end();
	}
	if (json_close(&j) != 0 && rc == EXIT_OK)
		rc = EXIT_BAD;
	return rc;
}
