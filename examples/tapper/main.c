/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * tapper - an NF: what is on a queue of a link, for programs that listen on a kernel interface.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

#include "tapper.h"

#define SLICE_MS 200 /* a signal is heard that often while waiting for primary and link */

enum {
	OPT_LINK = 256,
	OPT_QUEUE,
	OPT_TAP,
	OPT_IFACE,
	OPT_MTU,
	OPT_PREFIX,
	OPT_TIMEOUT,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct option longopts[] = {
	{"link", required_argument, NULL, OPT_LINK},
	{"queue", required_argument, NULL, OPT_QUEUE},
	{"tap", required_argument, NULL, OPT_TAP},
	{"iface", required_argument, NULL, OPT_IFACE},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"file-prefix", required_argument, NULL, OPT_PREFIX},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"json", required_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: %s --tap NAME|--iface NAME [options]\n"
	"Serves one queue of a splitter's link: writes a copy of every packet to a kernel\n"
	"interface, for programs that listen there (tcpdump, Zeek), and gives it back to be\n"
	"forwarded.\n"
	"\n"
	"  --tap NAME           a tap; it is made, and goes with this program, if it is not there\n"
	"                       (ip tuntap add NAME mode tap: one that stays)\n"
	"  --iface NAME         an interface that is there, such as one end of a veth pair:\n"
	"                       packets leave by it, and are seen at the other end\n"
	"  --mtu N              of the tap\n"
	"  --link NAME          name of the link (ids)\n"
	"  --queue Q            its queue (0)\n"
	"  --file-prefix NAME   the splitter's (nfmeta)\n"
	"  --timeout N          seconds to wait for the splitter and its link (30)\n"
	"  --json FILE          write a report; \"-\": to stdout\n"
	"  --quiet              no summary\n"
	"  --verbose            show EAL's log\n"
	"\n"
	"Exit status: 0 ended as asked, 1 could not start, or the interface is gone, 3 the\n"
	"splitter died.\n";

static int
options(int argc, char **argv, struct tapper_opts *o)
{
	uint64_t v = 0;
	int c, rc = 0;

	opterr = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, "+:h", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_LINK:
			o->link = optarg;
			break;
		case OPT_QUEUE:
			rc = parse_u64("--queue", optarg, 0, NFMETA_QUEUES_MAX - 1, &v);
			o->queue = (uint16_t)v;
			break;
		case OPT_TAP:
			o->tap = optarg;
			break;
		case OPT_IFACE:
			o->iface = optarg;
			break;
		case OPT_MTU:
			rc = parse_u64("--mtu", optarg, 68, 65521, &v);
			o->mtu = (uint32_t)v;
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
	if (rc != 0)
		return rc;
	if (optind < argc)
		return complain("\"%s\" is not an option (see --help)", argv[optind]);
	if ((o->tap == NULL) == (o->iface == NULL))
		return complain("--tap NAME or --iface NAME: one of them is wanted");
	if (o->mtu != 0 && o->tap == NULL)
		return complain("--mtu is for --tap: ip link set %s mtu %u", o->iface, o->mtu);
	return 0;
}

/* Primary and link; both may still have to come. */
static int
attach(const struct tapper_opts *o, struct nfmeta_link **link)
{
	struct nfmeta_eal_opts eo =
		NFMETA_EAL_OPTS(.file_prefix = o->file_prefix,
				.log_file = o->verbose ? "/dev/stderr" : NULL, );
	uint64_t left = o->timeout * 1000, slice;
	bool eal = false;
	int rc;

	do {
		slice = RTE_MIN(left, (uint64_t)SLICE_MS);
		left -= slice;
		eo.timeout_ms = (uint32_t)slice;
		rc = eal ? nfmeta_link_attach(o->link, o->queue, (uint32_t)slice, link)
			 : nfmeta_eal_attach(&eo);
		if (rc == 0 && !eal) {
			eal = true;
			rc = -NFMETA_ENOLINK;
			left += slice; /* a look at least */
		}
	} while (
		(rc == -NFMETA_ENOLINK || rc == -NFMETA_ENOPRIMARY || rc == -NFMETA_EPRIMARYDEAD) &&
		left > 0 && !stop_asked());
	if (rc == 0)
		return 0;
	if (stop_asked())
		complain("stopped before there was a link '%s'", o->link);
	else
		complain("%s", nfmeta_error());
	if (eal)
		nfmeta_eal_detach();
	return -1;
}

/* Returns the exit status. */
static int
loop(struct nfmeta_link *link, struct iface *iface, uint64_t *packets, const char **ended)
{
	uint64_t now, next_check = 0, quarter = rte_get_tsc_hz() / 4;
	static const uint8_t how[BURST]; /* NFMETA_FORWARD is 0 */
	struct idle idle = {.sleep_us = IDLE_US};
	struct rte_mbuf *pkts[BURST];
	bool closing = false;
	uint16_t n;
	int rc;

	_Static_assert(NFMETA_FORWARD == 0, "how");
	for (;;) {
		n = nfmeta_recv_burst(link, pkts, NULL, BURST);
		if (n > 0) {
			*packets += n;
			rc = iface_write(iface, pkts, n);
			nfmeta_return_burst(link, pkts, how, n);
			if (rc != 0) {
				*ended = "the end of the interface";
				return EXIT_BAD;
			}
			idle_over(&idle);
		} else if (closing) {
			*ended = "the close of the link";
			return EXIT_OK;
		} else {
			idle_wait(&idle);
		}
		if (stop_asked()) {
			*ended = "a signal";
			return EXIT_OK;
		}
		now = rte_rdtsc();
		if (now < next_check)
			continue;
		next_check = now + quarter;
		rc = nfmeta_link_check(link);
		if (rc == -NFMETA_ECLOSING) {
			closing = true;
		} else if (rc != 0) {
			complain("%s", nfmeta_error());
			*ended = rc == -NFMETA_EFENCED ? "having been cut off"
						       : "the death of the splitter";
			return EXIT_PEER;
		}
	}
}

static void
summary(const struct tapper_opts *o, const struct iface *i, uint64_t packets, const char *ended)
{
	const struct iface_counts *c = &i->c;

	note("ended by %s; queue %u, interface %s", ended, o->queue, i->name);
	note("packets %" PRIu64 ", written %" PRIu64 ", too big %" PRIu64
	     ", interface down %" PRIu64 ", no room %" PRIu64 ", gone %" PRIu64,
	     packets, c->written, c->too_big, c->down, c->no_room, c->gone);
}

static void
report(struct json *j, const struct tapper_opts *o, const struct iface *i, uint64_t packets)
{
	json_object(j, NULL);
	json_text(j, "interface", i->name);
	json_number(j, "queue", o->queue);
	json_number(j, "packets", packets);
	json_number(j, "written", i->c.written);
	json_object(j, "not_written");
	json_number(j, "too_big", i->c.too_big);
	json_number(j, "down", i->c.down);
	json_number(j, "no_room", i->c.no_room);
	json_number(j, "gone", i->c.gone);
	json_end(j);
	json_end(j);
}

int
main(int argc, char **argv)
{
	struct tapper_opts o = {.link = "ids", .file_prefix = "nfmeta", .timeout = 30};
	struct nfmeta_link *link;
	const char *ended = NULL;
	uint64_t packets = 0;
	struct iface iface;
	struct json json;
	int status = EXIT_BAD, rc;

	say_program(argv[0]);
	rc = options(argc, argv, &o);
	if (rc != 0)
		return rc > 0 ? EXIT_OK : EXIT_BAD;
	stop_install();
	if (json_open(&json, o.json) != 0)
		return EXIT_BAD;
	/* The interface first: who listens is there before the first packet comes. */
	if (iface_open(&iface, &o) == 0) {
		if (!o.quiet)
			note("interface %s is there; waiting for link \"%s\"", iface.name, o.link);
		if (attach(&o, &link) == 0) {
			if (!o.quiet)
				note("serving queue %u", o.queue);
			status = loop(link, &iface, &packets, &ended);
			nfmeta_link_detach(link);
			nfmeta_eal_detach();
		}
		iface_close(&iface);
	}
	if (ended == NULL) {
		json_discard(&json);
		return EXIT_BAD;
	}
	if (!o.quiet)
		summary(&o, &iface, packets, ended);
	report(&json, &o, &iface, packets);
	return json_close(&json) != 0 && status == EXIT_OK ? EXIT_BAD : status;
}
