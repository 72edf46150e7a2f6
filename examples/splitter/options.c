/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "splitter.h"

enum {
	OPT_IN = 256,
	OPT_OUT,
	OPT_LINK,
	OPT_QUEUES,
	OPT_RING,
	OPT_FULL,
	OPT_PLACEMENT,
	OPT_LOOP,
	OPT_FIRST,
	OPT_COUNT,
	OPT_SECONDS,
	OPT_CARRIER,
	OPT_TABLE,
	OPT_TIMEOUT,
	OPT_TIMEOUT_UDP,
	OPT_TIMEOUT_CLOSED,
	OPT_MAX_FLOWS,
	OPT_NO_VLAN,
	OPT_WAIT_NF,
	OPT_PREFIX,
	OPT_JSON,
	OPT_FLOWS,
	OPT_BLANKS,
	OPT_FENCE,
	OPT_POLICY,
	OPT_RULES,
	OPT_APPS,
	OPT_APP_FLOWS,
	OPT_APP_PACKETS,
	OPT_CORRELATE,
	OPT_CORRELATE_SECONDS,
	OPT_CORRELATE_MAX,
	OPT_CONFIG,
	OPT_CHECK,
	OPT_BALANCE,
	OPT_WEIGHT,
	OPT_WEIGHTS,
	OPT_MOVE,
	OPT_RATE,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct option longopts[] = {
	{"in", required_argument, NULL, OPT_IN},
	{"out", required_argument, NULL, OPT_OUT},
	{"link", required_argument, NULL, OPT_LINK},
	{"queues", required_argument, NULL, OPT_QUEUES},
	{"balance", required_argument, NULL, OPT_BALANCE},
	{"weight", required_argument, NULL, OPT_WEIGHT},
	{"weights", required_argument, NULL, OPT_WEIGHTS},
	{"move", required_argument, NULL, OPT_MOVE},
	{"ring-size", required_argument, NULL, OPT_RING},
	{"when-full", required_argument, NULL, OPT_FULL},
	{"placement", required_argument, NULL, OPT_PLACEMENT},
	{"loop", required_argument, NULL, OPT_LOOP},
	{"rate", required_argument, NULL, OPT_RATE},
	{"first", required_argument, NULL, OPT_FIRST},
	{"count", required_argument, NULL, OPT_COUNT},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"blanks", required_argument, NULL, OPT_BLANKS},
	{"carrier", required_argument, NULL, OPT_CARRIER},
	{"flow-table", no_argument, NULL, OPT_TABLE},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"timeout-udp", required_argument, NULL, OPT_TIMEOUT_UDP},
	{"timeout-closed", required_argument, NULL, OPT_TIMEOUT_CLOSED},
	{"max-flows", required_argument, NULL, OPT_MAX_FLOWS},
	{"key-without-vlan", no_argument, NULL, OPT_NO_VLAN},
	{"wait-nf", required_argument, NULL, OPT_WAIT_NF},
	{"fence", required_argument, NULL, OPT_FENCE},
	{"file-prefix", required_argument, NULL, OPT_PREFIX},
	{"json", required_argument, NULL, OPT_JSON},
	{"flows", required_argument, NULL, OPT_FLOWS},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"rules", required_argument, NULL, OPT_RULES},
	{"apps", no_argument, NULL, OPT_APPS},
	{"app-flows", required_argument, NULL, OPT_APP_FLOWS},
	{"app-packets", required_argument, NULL, OPT_APP_PACKETS},
	{"correlate", required_argument, NULL, OPT_CORRELATE},
	{"correlate-timeout", required_argument, NULL, OPT_CORRELATE_SECONDS},
	{"correlate-max", required_argument, NULL, OPT_CORRELATE_MAX},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check", required_argument, NULL, OPT_CHECK},
	{"memory", required_argument, NULL, 'm'},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: %s --in pcap:FILE|PORT [options] [-- EAL options]\n"
	"Classifies packets, hands them to the NF of a link, forwards what comes back.\n"
	"\n"
	"  --in pcap:FILE       read a capture (pcap or pcapng, Ethernet)\n"
	"  --in PORT            receive from a DPDK port: its number or name\n"
	"  --out pcap:FILE      write what the NF forwards, with the times of the input\n"
	"  --out PORT           send it out of a DPDK port\n"
	"  --out none           count it and free it (default)\n"
	"  --link NAME          name of the link (ids); repeated: packets go by these links in\n"
	"                       this order.  NAME,queues=N,ring-size=N,when-full=WHAT,\n"
	"                       balance=HOW,weights=N:N:...,weight=Q:N,move=N: what this one\n"
	"                       has of its own\n"
	"  --queues N           queues of the link, one NF each (1)\n"
	"  --balance HOW        the queue of a new session: by the hash of its two addresses, by\n"
	"                       load: what the queues have to do, or by that in pairs: sessions\n"
	"                       between the same two addresses together (hash)\n"
	"  --weights N,N...     what each queue is to get, to the others (hash: 1,1...; else\n"
	"                       learned from the NFs); 0: no sessions\n"
	"  --weight Q=N         ... of one queue, the others have 1\n"
	"  --move N             load, pairs: live sessions of an NF that left, died, was cut off,\n"
	"                       or drains go to others after N seconds (never)\n"
	"  --ring-size N        packets at the NF per queue, a power of 2 (1024)\n"
	"  --when-full WHAT     wait, drop or bypass (captures: wait; ports: drop)\n"
	"  --placement WHERE    auto, dynfield, udata64 or headroom (auto)\n"
	"  --loop N             read the capture into memory, replay it N times; 0: no end\n"
	"  --rate N             captures: at most so many packets a second\n"
	"  --first N            use only the first N packets of the capture\n"
	"  --count N            stop after N packets\n"
	"  --seconds N          stop after N seconds\n"
	"  --blanks N           packets that an NF can have made, per queue, at a time (0)\n"
	"  --carrier WHAT       how the NFs are told of flows: ring, inband, table or none\n"
	"                       (ring)\n"
	"  --flow-table         a flow table that NFs can read, too\n"
	"  --timeout N          seconds after which an idle flow ends (300)\n"
	"  --timeout-udp N      ... one of UDP (60)\n"
	"  --timeout-closed N   ... one of TCP, after FIN from both ends or RST (10)\n"
	"  --max-flows N        flows at one time; then the oldest ends (262144)\n"
	"  --key-without-vlan   one 5-tuple on two VLANs is one flow\n"
	"  --wait-nf N          seconds to wait for an NF on every queue (30)\n"
	"  --fence N            seconds after which an NF that stands still is cut off (10);\n"
	"                       0: never\n"
	"  --policy FILE        which flows go by which links, which are dropped: [policy];\n"
	"                       SIGHUP: read it anew\n"
	"  --rules FILE         rules by application: [filter] and [shunt] (the file that the\n"
	"                       environment's NFMETA_RULES names); SIGHUP: read it anew\n"
	"  --apps               look for applications without rules, too\n"
	"  --app-flows N        flows looked into at a time (4096)\n"
	"  --app-packets N      packets with payload looked into, of a flow (24)\n"
	"  --correlate WHAT     data flows go to the NF of their control session: of ftp, sip,\n"
	"                       on other ports as ftp:2121, or none (ftp,sip)\n"
	"  --correlate-timeout N  seconds that a flow so announced is expected (180)\n"
	"  --correlate-max N    flows expected at a time; then the oldest is not (16384)\n"
	"  --file-prefix NAME   name that this program and its NFs share (nfmeta)\n"
	"  -m, --memory MB      use at most so much hugepage memory\n"
	"  --config FILE        read options from a file; those given here go first\n"
	"  --check FILE         say what is wrong with such a file, and with its rules\n"
	"  --json FILE          write a report; \"-\": to stdout\n"
	"  --flows FILE         write the flows as CSV\n"
	"  --quiet              no progress, no summary\n"
	"  --verbose            show EAL's log\n"
	"\n"
	"  EAL options make ports, e.g. -- --vdev net_tap0,iface=tap0; without -a, PCI\n"
	"  devices are left alone.\n";

void
splitter_defaults(struct splitter_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->out_none = true;
	o->file_prefix = "nfmeta";
	o->all = (struct link_opts){.name = "ids", .queues = 1, .ring_size = 1024};
	spread_defaults(&o->all.spread);
	o->max_flows = 262144;
	o->carrier = NFMETA_CARRIER_RING;
	o->timeout = 300;
	o->timeout_udp = 60;
	o->timeout_closed = 10;
	o->wait_nf = 30;
	o->fence = 10;
	o->app_flows = 4096;
	o->app_packets = 24;
	correlate_parse("--correlate", "ftp,sip", &o->correlate);
	o->correlate.seconds = 180;
	o->correlate.max = 16384;
	o->first = UINT64_MAX;
	o->policy = NFMETA_CLASSIFY_DEFAULT;
}

/* "pcap:FILE", "none" or a port */
static int
parse_place(const char *option, const char *text, const char **place, bool *capture, bool *none)
{
	*capture = strncmp(text, "pcap:", 5) == 0;
	*place = *capture ? text + 5 : text;
	if (none != NULL)
		*none = strcmp(text, "none") == 0;
	if (**place == '\0')
		return complain("%s \"%s\": pcap:FILE, or the number or name of a port is wanted",
				option, text);
	return 0;
}

static int
parse_queues(const char *option, const char *text, struct link_opts *l)
{
	uint64_t v;

	if (parse_u64(option, text, 1, NFMETA_QUEUES_MAX, &v) != 0)
		return -1;
	l->queues = (uint16_t)v;
	return 0;
}

static int
parse_ring(const char *option, const char *text, struct link_opts *l)
{
	uint64_t v;

	if (parse_u64(option, text, 64, 65536, &v) != 0)
		return -1;
	if ((v & (v - 1)) != 0)
		return complain("%s \"%s\": a power of 2 is wanted", option, text);
	l->ring_size = (uint32_t)v;
	return 0;
}

static int
parse_full(const char *option, const char *text, struct link_opts *l)
{
	static const char *const full[] = {"drop", "wait", "bypass", NULL};
	int i;

	if (parse_choice(option, text, full, &i) != 0)
		return -1;
	l->when_full = (uint8_t)(NFMETA_FULL_DROP + i);
	return 0;
}

/* One of a link's own: "queues=N", "ring-size=N", "when-full=WHAT", ... */
static int
parse_own(struct link_opts *l, const char *text)
{
	static const char *const names[] = {"queues",  "ring-size", "when-full", "balance",
					    "weights", "weight",    "move",	 NULL};
	char option[64], near[160], name[32];
	const char *value = strchr(text, '=');
	int i;

	snprintf(name, sizeof(name), "%.*s", (int)(value != NULL ? value - text : 31), text);
	snprintf(option, sizeof(option), "--link %.15s,%s", l->name, name);
	if (value != NULL && strcmp(name, names[0]) == 0)
		return parse_queues(option, value + 1, l);
	if (value != NULL && strcmp(name, names[1]) == 0)
		return parse_ring(option, value + 1, l);
	if (value != NULL && strcmp(name, names[2]) == 0)
		return parse_full(option, value + 1, l);
	for (i = 0; i < SPREADS && value != NULL; i++)
		if (strcmp(name, names[3 + i]) == 0)
			return spread_parse(i, option, value + 1, &l->spread);
	return complain("--link %.15s: \"%s\": queues=N, ring-size=N, when-full=WHAT, balance=HOW,"
			" weights=N:N..., weight=Q:N or move=N is wanted%s",
			l->name, text, nearest(name, names, near, sizeof(near)));
}

/* "NAME", "NAME,queues=2,..."; those of the command line take the place of the file's. */
static int
add_link(struct splitter_opts *o, const char *value)
{
	char text[512], *word, *rest = NULL;
	struct link_opts *l;
	uint8_t i;

	if (strlen(value) >= sizeof(text))
		return complain("--link \"%.32s...\": too long", value);
	strcpy(text, value);
	word = strtok_r(text, ",", &rest);
	if (word == NULL)
		return complain("--link \"%s\": a name is wanted", value);
	if (o->links_over)
		o->links = 0;
	o->links_over = false;
	for (i = 0; i < o->links; i++)
		if (strcmp(o->link[i].name, word) == 0)
			return complain("--link \"%s\": there is one of this name already", word);
	if (strlen(word) >= sizeof(l->room))
		return complain("--link \"%.32s...\": too long", word);
	if (o->links == LINKS_MAX)
		return complain(
			"--link \"%s\": there are %u links already, as many as there can be", word,
			LINKS_MAX);
	l = &o->link[o->links++];
	memset(l, 0, sizeof(*l));
	snprintf(l->room, sizeof(l->room), "%s", word);
	l->name = l->room;
	spread_defaults(&l->spread);
	while ((word = strtok_r(NULL, ",", &rest)) != NULL)
		if (parse_own(l, word) != 0)
			return -1;
	return 0;
}

static int
parse_names(int opt, const char *text, struct splitter_opts *o)
{
	static const char *const place[] = {"auto", "dynfield", "udata64", "headroom", NULL};
	int i;

	if (opt == OPT_CARRIER) {
		if (parse_choice("--carrier", text, carrier_names, &i) != 0)
			return -1;
		o->carrier = (uint8_t)i;
		return 0;
	}
	if (parse_choice("--placement", text, place, &i) != 0)
		return -1;
	o->placement = (uint8_t)i;
	return 0;
}

static int
parse_number(int opt, const char *text, struct splitter_opts *o)
{
	uint64_t v = 0;
	int rc = -1;

	switch (opt) {
	case OPT_QUEUES:
		return parse_queues("--queues", text, &o->all);
	case OPT_RING:
		return parse_ring("--ring-size", text, &o->all);
	case OPT_LOOP:
		rc = parse_u64("--loop", text, 0, UINT32_MAX, &o->loops);
		o->replay = true;
		break;
	case OPT_RATE:
		rc = parse_u64("--rate", text, 1, UINT32_MAX, &o->rate);
		break;
	case OPT_FIRST:
		rc = parse_u64("--first", text, 1, UINT64_MAX, &o->first);
		break;
	case OPT_COUNT:
		rc = parse_u64("--count", text, 1, UINT64_MAX, &o->count);
		break;
	case OPT_SECONDS:
		rc = parse_u64("--seconds", text, 1, 1000000, &o->seconds);
		break;
	case OPT_TIMEOUT:
		rc = parse_u64("--timeout", text, 1, 1000000, &o->timeout);
		break;
	case OPT_TIMEOUT_UDP:
		rc = parse_u64("--timeout-udp", text, 1, 1000000, &o->timeout_udp);
		break;
	case OPT_TIMEOUT_CLOSED:
		rc = parse_u64("--timeout-closed", text, 1, 1000000, &o->timeout_closed);
		break;
	case OPT_MAX_FLOWS:
		rc = parse_u64("--max-flows", text, 8, 1 << 24, &v);
		o->max_flows = (uint32_t)v;
		break;
	case OPT_FENCE:
		rc = parse_u64("--fence", text, 0, 1000000, &o->fence);
		break;
	case OPT_APP_FLOWS:
		rc = parse_u64("--app-flows", text, 1, 65534, &v);
		o->app_flows = (uint16_t)v;
		break;
	case OPT_APP_PACKETS:
		rc = parse_u64("--app-packets", text, 1, 255, &v);
		o->app_packets = (uint8_t)v;
		break;
	case OPT_CORRELATE_SECONDS:
		rc = parse_u64("--correlate-timeout", text, 1, 1000000, &o->correlate.seconds);
		break;
	case OPT_CORRELATE_MAX:
		rc = parse_u64("--correlate-max", text, 1, 1 << 24, &v);
		o->correlate.max = (uint32_t)v;
		break;
	case OPT_BLANKS:
		rc = parse_u64("--blanks", text, 0, 1024, &v);
		o->blanks = (uint32_t)v;
		break;
	case OPT_WAIT_NF:
		rc = parse_u64("--wait-nf", text, 0, 1000000, &o->wait_nf);
		break;
	case 'm':
		rc = parse_u64("--memory", text, 1, 1 << 20, &o->megabytes);
		break;
	}
	return rc;
}

/* Options that only make sense together. */
static int
check(struct splitter_opts *o)
{
	struct link_opts *l;

	if (o->in == NULL && !o->check) /* a checked file may be meant for use with --in */
		return complain("--in is missing: --in pcap:FILE or --in PORT (see --help)");
	if (o->replay && o->in != NULL && !o->in_capture)
		return complain("--loop replays a capture; --in \"%s\" is a port", o->in);
	if (o->rate != 0 && o->in != NULL && !o->in_capture)
		return complain("--rate paces a capture; --in \"%s\" is a port", o->in);
	if (o->rules == NULL)
		o->rules = getenv("NFMETA_RULES");
	if (o->rules != NULL)
		o->apps = true;
	if (o->carrier == NFMETA_CARRIER_TABLE)
		o->flow_table = true;
	/* in-band, an NF sends its messages in blanks */
	if (o->carrier == NFMETA_CARRIER_INBAND && o->blanks < BLANKS)
		o->blanks = BLANKS;
	if (o->all.when_full == 0)
		o->all.when_full = o->in_capture ? NFMETA_FULL_WAIT : NFMETA_FULL_DROP;
	if (o->links == 0)
		o->link[o->links++].name = o->all.name;
	for (l = o->link; l < &o->link[o->links]; l++) {
		l->queues = l->queues != 0 ? l->queues : o->all.queues;
		l->ring_size = l->ring_size != 0 ? l->ring_size : o->all.ring_size;
		l->when_full = l->when_full != 0 ? l->when_full : o->all.when_full;
		if (!l->spread.own)
			l->spread = o->all.spread;
		if (spread_check(l) != 0)
			return -1;
	}
	return 0;
}

/* One option; value: NULL for one that has none. */
static int
set_option(int c, const char *value, struct splitter_opts *o)
{
	switch (c) {
	case OPT_IN:
		return parse_place("--in", value, &o->in, &o->in_capture, NULL);
	case OPT_OUT:
		return parse_place("--out", value, &o->out, &o->out_capture, &o->out_none);
	case OPT_LINK:
		return add_link(o, value);
	case OPT_FULL:
		return parse_full("--when-full", value, &o->all);
	case OPT_PLACEMENT:
	case OPT_CARRIER:
		return parse_names(c, value, o);
	case OPT_BALANCE:
		return spread_parse(SPREAD_BALANCE, "--balance", value, &o->all.spread);
	case OPT_WEIGHTS:
		return spread_parse(SPREAD_WEIGHTS, "--weights", value, &o->all.spread);
	case OPT_WEIGHT:
		return spread_parse(SPREAD_WEIGHT, "--weight", value, &o->all.spread);
	case OPT_MOVE:
		return spread_parse(SPREAD_MOVE, "--move", value, &o->all.spread);
	case OPT_NO_VLAN:
		o->policy &= ~(uint32_t)NFMETA_CLASSIFY_VLAN_IN_KEY;
		return 0;
	case OPT_TABLE:
		o->flow_table = true;
		return 0;
	case OPT_PREFIX:
		o->file_prefix = value;
		return 0;
	case OPT_JSON:
		o->json = value;
		return 0;
	case OPT_POLICY:
		o->policy_file = value;
		return 0;
	case OPT_RULES:
		o->rules = value;
		return 0;
	case OPT_APPS:
		o->apps = true;
		return 0;
	case OPT_CORRELATE:
		return correlate_parse("--correlate", value, &o->correlate);
	case OPT_FLOWS:
		o->flows = value;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	}
	return parse_number(c, value, o);
}

/* --config and --check go before all others, wherever they stand. */
static int
read_config(int argc, char **argv, struct splitter_opts *o)
{
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "+:m:h", longopts, NULL)) != -1) {
		if (c != OPT_CONFIG && c != OPT_CHECK)
			continue;
		if (o->config != NULL)
			return complain("--config, --check: one file of options is enough");
		o->config = optarg;
		o->check = c == OPT_CHECK;
	}
	return o->config != NULL ? config_read(o->config, longopts, set_option, o) : 0;
}

int
splitter_options(int argc, char **argv, struct splitter_opts *o)
{
	int c, i;

	if (read_config(argc, argv, o) != 0)
		return -1;
	o->links_over = true;
	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "+:m:h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_CONFIG:
		case OPT_CHECK:
			break;
		case OPT_HELP:
		case 'h':
			printf(usage, say_name());
			return 1;
		case ':':
		case '?':
			return bad_option(c, argv);
		default:
			if (set_option(c, optarg, o) != 0)
				return -1;
		}
	}
	/* getopt stops at the first word that is no option, and behind "--" */
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return complain("\"%s\" is not an option; EAL options go behind \"--\"",
				argv[optind]);
	for (i = optind; i < argc; i++) {
		if (o->eal_argc == (int)RTE_DIM(o->eal_argv))
			return complain("more than %d words for EAL", o->eal_argc);
		o->eal_argv[o->eal_argc++] = argv[i];
	}
	if (check(o) != 0)
		return -1;
	return o->check ? config_check(o) : 0;
}
