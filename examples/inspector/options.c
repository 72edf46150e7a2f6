/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <getopt.h>
#include <string.h>

#include "inspector.h"

enum {
	OPT_LINK = 256,
	OPT_QUEUE,
	OPT_MODE,
	OPT_PREFIX,
	OPT_TIMEOUT,
	OPT_JSON,
	OPT_DROP,
	OPT_VERDICT_AFTER,
	OPT_DROP_AFTER,
	OPT_HOLD,
	OPT_IDLE,
	OPT_COST,
	OPT_SLEEP,
	OPT_NO_FLOW_STATE,
	OPT_FLOWS,
	OPT_MAX_FLOWS,
	OPT_NO_VLAN,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct option longopts[] = {
	{"link", required_argument, NULL, OPT_LINK},
	{"queue", required_argument, NULL, OPT_QUEUE},
	{"mode", required_argument, NULL, OPT_MODE},
	{"file-prefix", required_argument, NULL, OPT_PREFIX},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"json", required_argument, NULL, OPT_JSON},
	{"drop-every", required_argument, NULL, OPT_DROP},
	{"verdict-after", required_argument, NULL, OPT_VERDICT_AFTER},
	{"drop-after", required_argument, NULL, OPT_DROP_AFTER},
	{"hold", required_argument, NULL, OPT_HOLD},
	{"idle-sleep", required_argument, NULL, OPT_IDLE},
	{"cost", required_argument, NULL, OPT_COST},
	{"sleep", required_argument, NULL, OPT_SLEEP},
	{"no-flow-state", no_argument, NULL, OPT_NO_FLOW_STATE},
	{"flows", required_argument, NULL, OPT_FLOWS},
	{"max-flows", required_argument, NULL, OPT_MAX_FLOWS},
	{"key-without-vlan", no_argument, NULL, OPT_NO_VLAN},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: %s [options]\n"
	"Serves one queue of a splitter's link.\n"
	"\n"
	"  --link NAME          name of the link (ids)\n"
	"  --queue Q            its queue (0)\n"
	"  --mode trust         take headers and flow from the record (default)\n"
	"  --mode redo          ignore the record: check, sum up and look up anew\n"
	"  --mode audit         do both and compare\n"
	"  --file-prefix NAME   the splitter's (nfmeta)\n"
	"  --timeout N          seconds to wait for the splitter and its link (10)\n"
	"  --drop-every N       have every Nth packet dropped\n"
	"  --verdict-after N    trust, audit: have a flow shunted after N packets\n"
	"  --drop-after N       trust, audit: have a flow dropped after N packets\n"
	"  --hold N             keep the last N packets in hand, until more come or none does\n"
	"                       for a millisecond: to try what happens when it is killed\n"
	"  --idle-sleep US      longest sleep when nothing comes, in microseconds (100);\n"
	"                       0: none, the CPU is the inspector's own\n"
	"  --cost NS            spend so many nanoseconds more on every packet (0)\n"
	"  --sleep NS           likewise, asleep: a slow NF that leaves its CPU to others (0)\n"
	"  --no-flow-state      do not ask to be told of flows, give no verdicts\n"
	"  --flows FILE         trust, audit: write the flows as CSV\n"
	"  --max-flows N        redo, audit: flows at one time (262144)\n"
	"  --key-without-vlan   redo, audit: as given to the splitter\n"
	"  --json FILE          write a report; \"-\": to stdout\n"
	"  --quiet              no summary\n"
	"  --verbose            show EAL's log\n"
	"\n"
	"SIGUSR1: tell the splitter to give this NF no new flows, and end when it has none left;\n"
	"once more: as before.\n"
	"Exit status: 0 ended as asked, 1 could not start, 3 the splitter died.\n";

const char *const inspector_modes[] = {"trust", "redo", "audit", NULL};

void
inspector_defaults(struct inspector_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->link = "ids";
	o->file_prefix = "nfmeta";
	o->timeout = 10;
	o->idle_us = IDLE_US;
	o->max_flows = 262144;
	o->policy = NFMETA_CLASSIFY_DEFAULT;
}

static int
parse_after(const char *option, const char *text, uint8_t verdict, struct inspector_opts *o)
{
	if (o->verdict_after > 0 && o->verdict != verdict)
		return complain("--verdict-after and --drop-after: one of them");
	o->verdict = verdict;
	return parse_u64(option, text, 1, UINT64_MAX - 1, &o->verdict_after);
}

/* Options that only make sense together. */
static int
check(const struct inspector_opts *o)
{
	if (o->mode == MODE_REDO && (o->verdict_after > 0 || o->flows != NULL))
		return complain("--mode redo ignores the record, and so knows no flow ids:"
				" --verdict-after, --drop-after and --flows want trust or audit");
	if (o->no_flow_state && o->verdict_after > 0)
		return complain("--no-flow-state gives no verdicts: not with --verdict-after or"
				" --drop-after");
	return 0;
}

int
inspector_options(int argc, char **argv, struct inspector_opts *o)
{
	uint64_t v;
	int c, rc = 0;

	opterr = 0;
	optind = 1;
	while (rc == 0 && (c = getopt_long(argc, argv, "+:h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_LINK:
			o->link = optarg;
			break;
		case OPT_QUEUE:
			rc = parse_u64("--queue", optarg, 0, NFMETA_QUEUES_MAX - 1, &v);
			o->queue = (uint16_t)v;
			break;
		case OPT_MODE:
			rc = parse_choice("--mode", optarg, inspector_modes, &o->mode);
			break;
		case OPT_PREFIX:
			o->file_prefix = optarg;
			break;
		case OPT_TIMEOUT:
			rc = parse_u64("--timeout", optarg, 0, 1000000, &o->timeout);
			break;
		case OPT_JSON:
			o->json = optarg;
			break;
		case OPT_DROP:
			rc = parse_u64("--drop-every", optarg, 1, UINT64_MAX, &o->drop_every);
			break;
		case OPT_VERDICT_AFTER:
			rc = parse_after("--verdict-after", optarg, NFMETA_ACTION_SHUNT, o);
			break;
		case OPT_DROP_AFTER:
			rc = parse_after("--drop-after", optarg, NFMETA_ACTION_DROP, o);
			break;
		case OPT_HOLD:
			rc = parse_u64("--hold", optarg, 1, HOLD_MAX, &v);
			o->hold = (uint32_t)v;
			break;
		case OPT_IDLE:
			rc = parse_u64("--idle-sleep", optarg, 0, 100000, &v);
			o->idle_us = (uint32_t)v;
			break;
		case OPT_COST:
			rc = parse_u64("--cost", optarg, 0, 1000000, &o->cost);
			break;
		case OPT_SLEEP:
			rc = parse_u64("--sleep", optarg, 0, 1000000, &o->sleep);
			break;
		case OPT_NO_FLOW_STATE:
			o->no_flow_state = true;
			break;
		case OPT_FLOWS:
			o->flows = optarg;
			break;
		case OPT_MAX_FLOWS:
			rc = parse_u64("--max-flows", optarg, 8, 1 << 24, &v);
			o->max_flows = (uint32_t)v;
			break;
		case OPT_NO_VLAN:
			o->policy &= ~(uint32_t)NFMETA_CLASSIFY_VLAN_IN_KEY;
			break;
		case OPT_QUIET:
			o->quiet = true;
			break;
		case OPT_VERBOSE:
			o->verbose = true;
			break;
		case OPT_HELP:
		case 'h':
			printf(usage, say_name());
			return 1;
		default:
			return bad_option(c, argv);
		}
	}
	if (rc == 0 && optind < argc)
		return complain("\"%s\" is not an option (see --help)", argv[optind]);
	return rc == 0 ? check(o) : rc;
}
