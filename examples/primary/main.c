/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The smallest upfront NF: makes packets, hands them to the NF of link "demo",
 * gets every one back.  Run it beside ../secondary.
 *
 *     cc main.c $(pkg-config --cflags --libs nfmeta libdpdk) -o primary
 *     ./primary -l 0 --no-pci -m 64
 *
 * Needs hugepages: see "Hugepages" in ../README.md.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#define BURST 32

static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* A burst of packets with a record each; a real one comes from rte_eth_rx_burst. */
static unsigned int
make_packets(struct rte_mempool *pool, const struct nfmeta_field *field, struct rte_mbuf **pkts)
{
	static uint32_t flow;
	struct nfmeta_record r;
	unsigned int i;

	if (rte_pktmbuf_alloc_bulk(pool, pkts, BURST) != 0)
		return 0;
	nfmeta_record_init(&r);
	r.flags = NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_FLOW_KNOWN;
	r.l3_off = 14;
	for (i = 0; i < BURST; i++) {
		memset(rte_pktmbuf_append(pkts[i], 64), 0, 64);
		r.flow_id = flow++ % 1000;
		nfmeta_record_set(field, pkts[i], &r);
	}
	return BURST;
}

int
main(int argc, char **argv)
{
	struct nfmeta_link_opts opts = NFMETA_LINK_OPTS(.ring_size = 1024);
	struct nfmeta_link_stats stats = {.sz = sizeof(stats)};
	struct rte_mbuf *pkts[BURST];
	struct rte_mempool *pool;
	struct nfmeta_link *link;
	uint8_t how[BURST];
	unsigned int n, sent, patience;
	int rc, peer = NFMETA_PEER_NONE;
	uint64_t orphans = 0;
	time_t asked = 0;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (rte_eal_init(argc, argv) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	pool = rte_pktmbuf_pool_create("packets", 4095, 128, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       (int)rte_socket_id());
	if (pool == NULL) {
		fprintf(stderr, "no packet pool: %s: give more memory (-m)\n",
			rte_strerror(rte_errno));
		return 1;
	}
	rc = nfmeta_link_create("demo", &opts, &link);
	if (rc != 0) {
		fprintf(stderr, "%s: %s\n", nfmeta_strerror(rc), nfmeta_error());
		return 1;
	}
	printf("link 'demo' is up\n");
	fflush(stdout);

	while (!stop) {
		/* Once a second: is somebody there?  Nobody: do not fill the ring. */
		if (time(NULL) != asked) {
			asked = time(NULL);
			peer = nfmeta_link_peer(link, 0);
			/* It died: what it had is ours again, and another one may come. */
			while (peer == NFMETA_PEER_DEAD &&
			       (rc = nfmeta_link_reclaim(link, 0, pkts, how, BURST)) > 0)
				rte_pktmbuf_free_bulk(pkts, (unsigned int)rc);
		}
		if (peer != NFMETA_PEER_ALIVE) {
			usleep(100000);
			continue;
		}
		n = make_packets(pool, nfmeta_link_field(link), pkts);
		sent = nfmeta_send_burst(link, 0, pkts, (uint16_t)n);
		rte_pktmbuf_free_bulk(pkts + sent, n - sent); /* full: the rest is still ours */

		/* Here forwarded packets would go to rte_eth_tx_burst. */
		n = nfmeta_collect_burst(link, 0, pkts, how, BURST);
		rte_pktmbuf_free_bulk(pkts, n);
		usleep(1000);
	}

	/* Let the NF return what it has; then take the link down. */
	nfmeta_link_close(link);
	for (patience = 0; nfmeta_link_in_flight(link, 0) != 0 && patience < 2000; patience++) {
		n = nfmeta_collect_burst(link, 0, pkts, how, BURST);
		rte_pktmbuf_free_bulk(pkts, n);
		usleep(1000);
	}
	/* What no NF took, or one that died has, is freed with the link. */
	nfmeta_link_stats(link, 0, &stats);
	while (nfmeta_link_destroy(link, &orphans) == -EBUSY && patience++ < 5000)
		usleep(1000);
	printf("sent %" PRIu64 ", collected %" PRIu64 ", never taken %" PRIu64 ", refused %" PRIu64
	       ", in dead hands %" PRIu64 "\n",
	       stats.sent, stats.collected, stats.down, stats.refused, stats.orphans + orphans);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
