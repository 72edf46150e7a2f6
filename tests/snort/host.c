/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

struct options o = {.snaplen = 65535,
		    .timeout_ms = 100,
		    .pool = 256,
		    .batch = 64,
		    .instances = 1,
		    .rule_verdict = PASS};

const char *const got_names[] = {"ok", "timeout", "interrupted", "end", "error", "nobuf"};
static const char *const verdict_names[] = {"pass",	 "block",  "replace", "whitelist",
					    "blacklist", "ignore", "retry"};

volatile sig_atomic_t told_to_stop;
bool want_break;
const uint8_t *want_inject;
uint32_t want_inject_len;

static FILE *out;
static uint8_t injected[65536];

#define FLOWS 65536
/* What is known of a flow, by id: its generation + 1 while it is open. */
static uint32_t open_gen[FLOWS];
/* ... of whom a packet was seen. */
static uint32_t seen_gen[FLOWS];

static struct {
	uint64_t packets, bytes, cut, began, ended, end_packets, end_bytes;
	uint64_t late;	/* packets, or ends, of flows that are not open */
	uint64_t stray; /* packets of flows whose begin was not told */
	uint64_t new_flow, reverse, flow, opaque, tcp_good, l3_good, l4_good, csum_error, decode;
	uint64_t new_wrong; /* packets that say so and should not, or the other way round */
	uint64_t records, tenants, spaces, groups, significant, offsets_wrong;
	uint64_t verdict[VERDICTS];
	uint64_t injected, not_injected, breaks, timeouts, rounds, reloads, restarts;
	uint64_t first_us, last_us;
	bool sof_seen;
} c;

void
host_fail(const char *text)
{
	fprintf(stderr, "host: %s\n", text);
	exit(1);
}

void
host_line(const char *text)
{
	fprintf(stderr, "host: %s\n", text);
}

/* ---- packets ---------------------------------------------------------------------- */

static void
write_packet(const struct seen *s)
{
	const uint32_t head[4] = {(uint32_t)s->ts.tv_sec, (uint32_t)s->ts.tv_usec, s->caplen,
				  s->pktlen};

	if (out == NULL)
		return;
	fwrite(head, sizeof(head), 1, out);
	fwrite(s->data, s->caplen, 1, out);
}

/* IPv4 without options on Ethernet is enough here. */
static bool
has_port(const struct seen *s, uint16_t port)
{
	const uint8_t *d = s->data;

	return s->caplen >= 38 && d[12] == 8 && d[13] == 0 && d[14] == 0x45 &&
	       ((d[34] << 8 | d[35]) == port || (d[36] << 8 | d[37]) == port);
}

static void
look_at_decode(const struct seen *s)
{
	const uint8_t *d = s->data;

	c.decode++;
	c.l3_good += s->l3_good;
	c.l4_good += s->l4_good;
	c.csum_error += s->csum_error;
	/* where the record says that an IP header is, one has to be */
	if (s->l3_off != 0xffff &&
	    (s->l3_off >= s->caplen || (d[s->l3_off] >> 4 != 4 && d[s->l3_off] >> 4 != 6)))
		c.offsets_wrong++;
	if (s->l4_off != 0xffff && (s->l4_off > s->caplen || s->l4_off <= s->l3_off))
		c.offsets_wrong++;
}

static void
look(const struct seen *s)
{
	c.packets++;
	c.bytes += s->pktlen;
	c.cut += s->caplen < s->pktlen;
	c.new_flow += s->is_new;
	c.reverse += s->reverse;
	c.flow += s->has_flow;
	c.opaque += s->has_opaque;
	c.tcp_good += s->tcp_good;
	c.records += s->record;
	c.tenants += s->tenant != 0;
	c.spaces += s->space != 0;
	c.groups += s->group >= 0;
	c.significant += s->significant;
	if (s->decode)
		look_at_decode(s);
	if (c.sof_seen && s->has_flow && s->record && open_gen[s->flow_id % FLOWS] != s->gen + 1u)
		c.stray++;
	if (s->has_flow && s->decode) {
		c.new_wrong +=
			s->is_new != (s->may_be_new && seen_gen[s->flow_id % FLOWS] != s->gen + 1u);
		seen_gen[s->flow_id % FLOWS] = s->gen + 1u;
	}
	c.last_us = (uint64_t)s->ts.tv_sec * 1000000 + (uint64_t)s->ts.tv_usec;
	if (c.first_us == 0)
		c.first_us = c.last_us;
	write_packet(s);
}

int
host_packet(const struct seen *s)
{
	int v = PASS;

	look(s);
	if (o.ncycle > 0)
		v = o.cycle[(c.packets - 1) % (uint64_t)o.ncycle];
	if (o.rule_port != 0 && has_port(s, o.rule_port))
		v = o.rule_verdict;
	if (v == REPLACE)
		s->data[s->caplen - 1] ^= 0xff;
	want_break = o.break_after != 0 && c.packets % o.break_after == 0;
	want_inject = NULL;
	if (o.inject_every != 0 && c.packets % o.inject_every == 0) {
		want_inject_len =
			o.inject_big ? sizeof(injected) - 1 : (s->caplen < 60 ? s->caplen : 60);
		memcpy(injected, s->data,
		       want_inject_len < s->caplen ? want_inject_len : s->caplen);
		want_inject = injected;
	}
	if (o.hold_us != 0)
		usleep((useconds_t)o.hold_us);
	c.verdict[v]++;
	return v;
}

void
host_injected(bool good)
{
	c.injected += good;
	c.not_injected += !good;
}

void
host_flow(const struct ended *e)
{
	uint32_t *gen = &open_gen[e->flow_id % FLOWS];

	if (!e->is_end) {
		c.began++;
		if (!e->named)
			return;
		c.sof_seen = true;
		c.late += *gen != 0; /* the one before has not ended */
		*gen = e->gen + 1u;
		return;
	}
	c.ended++;
	c.end_packets += e->packets;
	c.end_bytes += e->bytes;
	if (!e->named)
		return;
	if (c.sof_seen)
		c.late += *gen != e->gen + 1u;
	*gen = 0;
}

/* ---- options ------------------------------------------------------------------------- */

static uint64_t
number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end != '\0' || end == text)
		host_fail("a number is wanted");
	return n;
}

static int
verdict(const char *name)
{
	int v;

	for (v = 0; v < VERDICTS; v++)
		if (strcmp(name, verdict_names[v]) == 0)
			return v;
	host_fail("no such verdict");
	return 0;
}

static void
cycle(char *text)
{
	char *word;

	while ((word = strsep(&text, ",")) != NULL && o.ncycle < CYCLE_MAX)
		o.cycle[o.ncycle++] = verdict(word);
}

static void
rule(char *text)
{
	char *colon = strchr(text, ':');

	if (colon == NULL)
		host_fail("--rule PORT:VERDICT is wanted");
	*colon = '\0';
	o.rule_port = (uint16_t)number(text);
	o.rule_verdict = verdict(colon + 1);
}

static void
parse(int argc, char **argv)
{
	static const struct option names[] = {
		{"dir", 1, NULL, 'd'},	     {"input", 1, NULL, 'i'},  {"filter", 1, NULL, 'f'},
		{"out", 1, NULL, 'o'},	     {"json", 1, NULL, 'j'},   {"var", 1, NULL, 'v'},
		{"inline", 0, NULL, 'Q'},    {"file", 0, NULL, 'r'},   {"show-vars", 0, NULL, 'S'},
		{"reverse", 0, NULL, 'R'},   {"twice", 0, NULL, '2'},  {"snaplen", 1, NULL, 's'},
		{"timeout", 1, NULL, 't'},   {"pool", 1, NULL, 'p'},   {"count", 1, NULL, 'n'},
		{"instances", 1, NULL, 'z'}, {"batch", 1, NULL, 'b'},  {"break", 1, NULL, 'B'},
		{"restart", 1, NULL, 'T'},   {"reload", 1, NULL, 'L'}, {"inject", 1, NULL, 'I'},
		{"back", 0, NULL, 'K'},	     {"big", 0, NULL, 'G'},    {"hold", 1, NULL, 'H'},
		{"cycle", 1, NULL, 'c'},     {"rule", 1, NULL, 'u'},   {NULL, 0, NULL, 0},
	};
	int k;

	while ((k = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (k) {
		case 'd':
			o.dirs[o.ndirs++] = optarg;
			break;
		case 'i':
			o.input = optarg;
			break;
		case 'f':
			o.filter = optarg;
			break;
		case 'o':
			o.out = optarg;
			break;
		case 'j':
			o.json = optarg;
			break;
		case 'v':
			o.vars[o.nvars++] = optarg;
			break;
		case 'Q':
			o.is_inline = true;
			break;
		case 'r':
			o.read_file = true;
			break;
		case 'S':
			o.show_vars = true;
			break;
		case 'R':
			o.reverse_finalize = true;
			break;
		case '2':
			o.twice = true;
			break;
		case 's':
			o.snaplen = number(optarg);
			break;
		case 't':
			o.timeout_ms = number(optarg);
			break;
		case 'p':
			o.pool = number(optarg);
			break;
		case 'n':
			o.count = number(optarg);
			break;
		case 'z':
			o.instances = number(optarg);
			break;
		case 'b':
			o.batch = number(optarg);
			break;
		case 'B':
			o.break_after = number(optarg);
			break;
		case 'T':
			o.restart_after = number(optarg);
			break;
		case 'L':
			o.reload_after = number(optarg);
			break;
		case 'I':
			o.inject_every = number(optarg);
			break;
		case 'K':
			o.inject_back = true;
			break;
		case 'G':
			o.inject_big = true;
			break;
		case 'H':
			o.hold_us = number(optarg);
			break;
		case 'c':
			cycle(optarg);
			break;
		case 'u':
			rule(optarg);
			break;
		default:
			exit(2);
		}
		if (o.nvars == VARS_MAX || o.ndirs == 4)
			host_fail("too many of an option");
	}
}

/* ---- the run ------------------------------------------------------------------------------ */

static void
on_signal(int sig)
{
	(void)sig;
	told_to_stop = 1;
	daq_interrupt_now();
}

static void
report(const char *ended, const struct totals *t)
{
	FILE *f = o.json != NULL ? fopen(o.json, "w") : NULL;
	struct timespec ts;
	int v;

	if (f == NULL)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
#define N(name) fprintf(f, " \"" #name "\": %" PRIu64 ",\n", c.name)
	fprintf(f, "{\"ended_by\": \"%s\",\n", ended);
	N(packets), N(bytes), N(cut), N(began), N(ended), N(end_packets), N(end_bytes), N(late);
	N(stray), N(new_wrong), N(new_flow), N(reverse), N(flow), N(opaque), N(tcp_good),
		N(l3_good), N(l4_good);
	N(csum_error), N(decode), N(records), N(tenants), N(spaces), N(groups), N(significant);
	N(offsets_wrong), N(injected), N(not_injected), N(breaks), N(timeouts), N(rounds);
	N(reloads), N(restarts), N(first_us), N(last_us);
	for (v = 0; v < VERDICTS; v++)
		fprintf(f, " \"%s\": %" PRIu64 ",\n", verdict_names[v], c.verdict[v]);
	fprintf(f,
		" \"daq\": {\"hw_received\": %" PRIu64 ", \"hw_dropped\": %" PRIu64
		", \"received\": %" PRIu64 ", \"filtered\": %" PRIu64 ", \"injected\": %" PRIu64
		", \"outstanding\": %" PRIu64,
		t->hw_received, t->hw_dropped, t->received, t->filtered, t->injected,
		t->outstanding);
	for (v = 0; v < VERDICTS; v++)
		fprintf(f, ", \"%s\": %" PRIu64, verdict_names[v], t->verdict[v]);
	fprintf(f, "},\n \"ended_ms\": %" PRIu64 "}\n",
		(uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000);
	fclose(f);
}

static const char *
run(void)
{
	uint64_t next_restart = o.restart_after, next_reload = o.reload_after;
	enum got got = GOT_OK;
	uint64_t max;

	while (!told_to_stop && (o.count == 0 || c.packets < o.count)) {
		max = o.count != 0 && o.count - c.packets < o.batch ? o.count - c.packets : o.batch;
		got = daq_get(max);
		c.rounds++;
		c.timeouts += got == GOT_TIMEOUT;
		c.breaks += got == GOT_INTERRUPTED;
		if (got == GOT_END || got == GOT_ERROR || got == GOT_NOBUF)
			return got_names[got];
		if (next_restart != 0 && c.packets >= next_restart) {
			daq_end();
			daq_begin();
			/* another NF for the link: the flows begin anew */
			memset(open_gen, 0, sizeof(open_gen));
			memset(seen_gen, 0, sizeof(seen_gen));
			c.restarts++;
			next_restart += o.restart_after;
		}
		if (next_reload != 0 && c.packets >= next_reload) {
			daq_reload();
			c.reloads++;
			next_reload += o.reload_after;
		}
	}
	return told_to_stop ? "a signal" : "count";
}

int
main(int argc, char **argv)
{
	const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 262144, 1};
	struct totals t = {0};
	const char *ended;

	parse(argc, argv);
	if (o.out != NULL) {
		out = fopen(o.out, "wb");
		if (out == NULL)
			host_fail(strerror(errno));
		fwrite(head, sizeof(head), 1, out);
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	daq_open();
	daq_begin();
	if (o.twice)
		daq_twice();
	host_line("started");
	ended = run();
	daq_end();
	daq_totals(&t);
	if (strcmp(ended, "error") == 0 || strcmp(ended, "nobuf") == 0)
		host_line(daq_error());
	daq_close();
	if (out != NULL)
		fclose(out);
	report(ended, &t);
	return strcmp(ended, "error") == 0 ? 3 : 0;
}
