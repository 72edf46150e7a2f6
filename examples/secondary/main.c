/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The smallest NF: attaches to link "demo" of ../primary, reads the record of
 * every packet, drops one flow, returns everything.
 *
 *     cc main.c $(pkg-config --cflags --libs nfmeta libdpdk) -o secondary
 *     ./secondary                 (file prefix "rte"; another one: ./secondary PREFIX)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <nfmeta/nfmeta.h>

#define BURST 32

static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int
fail(int rc)
{
	fprintf(stderr, "%s: %s\n", nfmeta_strerror(rc), nfmeta_error());
	nfmeta_eal_detach(); /* leaves none of this process's files behind */
	return 1;
}

int
main(int argc, char **argv)
{
	struct nfmeta_eal_opts eal = NFMETA_EAL_OPTS(.timeout_ms = 5000);
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *pkts[BURST];
	struct nfmeta_link *link;
	uint64_t packets = 0, records = 0, dropped = 0;
	uint8_t how[BURST];
	unsigned int i, n;
	time_t asked = 0;
	int rc;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	eal.file_prefix = argc > 1 ? argv[1] : NULL;
	rc = nfmeta_eal_attach(&eal);
	if (rc != 0)
		return fail(rc);
	rc = nfmeta_link_attach("demo", 0, 5000, &link);
	if (rc != 0)
		return fail(rc);
	printf("attached to link 'demo'\n");
	fflush(stdout);

	while (!stop) {
		n = nfmeta_recv_burst(link, pkts, recs, BURST);
		if (n == 0)
			usleep(500);
		for (i = 0; i < n; i++) {
			how[i] = NFMETA_FORWARD;
			if (recs[i].size == 0)
				continue; /* nothing is known about this packet: look at its bytes */
			records++;
			if ((recs[i].flags & NFMETA_FLOW_KNOWN) && recs[i].flow_id == 13) {
				how[i] = NFMETA_DROP;
				dropped++;
			}
		}
		nfmeta_return_burst(link, pkts, how, (uint16_t)n);
		packets += n;

		/* Once a second: is the primary still there? */
		if (time(NULL) != asked) {
			asked = time(NULL);
			rc = nfmeta_link_check(link);
			if (rc != 0)
				break;
		}
	}
	printf("packets %" PRIu64 ", with a record %" PRIu64 ", dropped %" PRIu64 "\n", packets,
	       records, dropped);
	if (rc != 0 && rc != -NFMETA_ECLOSING)
		return fail(rc); /* the primary died, or cut us off: leave the packets alone, go */
	/* The link closes: what is still in the ring has to go back, too. */
	while (rc == -NFMETA_ECLOSING && (n = nfmeta_recv_burst(link, pkts, NULL, BURST)) != 0)
		nfmeta_return_burst(link, pkts, NULL, (uint16_t)n);
	rc = nfmeta_link_detach(link);
	nfmeta_eal_detach();
	return rc == 0 ? 0 : fail(rc);
}
