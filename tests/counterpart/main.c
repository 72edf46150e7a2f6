/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Both sides of a link in one program; tests/counterpart/check runs two differently
 * built ones against each other.
 *
 *     counterpart-NAME primary EAL-OPTIONS   makes link "demo"; ends when stdin does
 *                                            (NFMETA_CARRIER in the environment: with
 *                                            that carrier of flow state)
 *     counterpart-NAME nf PREFIX             attaches, takes 32 packets, waits for stdin
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

#include <nfmeta/nfmeta.h>

#define PACKETS 32
#define POOL_SIZE 1023

/* The same program is built with the library of ABI 1.0, which had no flow state. */
#if NFMETA_ABI_MINOR >= 1
static void
choose_carrier(struct nfmeta_link_opts *o)
{
	const char *carrier = getenv("NFMETA_CARRIER");

	if (carrier == NULL)
		return;
	o->carrier = (uint8_t)atoi(carrier);
	o->blanks = o->carrier == NFMETA_CARRIER_INBAND ? 64 : 0;
}

static int
subscribe(struct nfmeta_link *link)
{
	return nfmeta_flow_subscribe(link, UINT64_C(1) << NFMETA_MSG_DELETE);
}
#else
static void
choose_carrier(struct nfmeta_link_opts *o)
{
	(void)o;
}

static int
subscribe(struct nfmeta_link *link)
{
	(void)link;
	return 0;
}
#endif

static int
fail(int rc)
{
	printf("%s: %s\n", nfmeta_strerror(rc), nfmeta_error());
	return 1;
}

/* Waits so many ms; true: the one who started us wants the end. */
static int
told_to_end(int ms)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	char c;

	return poll(&p, 1, ms) == 1 && read(0, &c, 1) <= 0;
}

static void
count_zone(const struct rte_memzone *mz, void *n)
{
	(void)mz;
	++*(unsigned int *)n;
}

static unsigned int
zones(void)
{
	unsigned int n = 0;

	rte_memzone_walk(count_zone, &n);
	return n;
}

static unsigned int
send_packets(struct nfmeta_link *link, struct rte_mempool *pool)
{
	struct rte_mbuf *m[PACKETS];
	struct nfmeta_record r;
	unsigned int i;

	if (rte_pktmbuf_alloc_bulk(pool, m, PACKETS) != 0)
		return 0;
	nfmeta_record_init(&r);
	r.flags = NFMETA_L2_VALID | NFMETA_FLOW_KNOWN;
	for (i = 0; i < PACKETS; i++) {
		memset(rte_pktmbuf_append(m[i], 64), 0, 64);
		r.flow_id = i;
		nfmeta_record_set(nfmeta_link_field(link), m[i], &r);
	}
	i = nfmeta_send_burst(link, 0, m, PACKETS);
	rte_pktmbuf_free_bulk(m + i, PACKETS - i);
	return i;
}

static int
primary(int argc, char **argv)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS();
	unsigned int sent = 0, back = 0, n, before;
	struct rte_mbuf *m[PACKETS];
	struct nfmeta_field field;
	struct nfmeta_link *link;
	uint8_t how[PACKETS];
	int rc;

	if (rte_eal_init(argc, argv) < 0) {
		printf("rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return fail(nfmeta_link_create("other", NULL, &link));
	o.pool = rte_pktmbuf_pool_create("packets", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					 SOCKET_ID_ANY);
	if (o.pool == NULL) {
		printf("no pool: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	choose_carrier(&o);
	rc = nfmeta_field_register(NULL, &field);
	if (rc != 0)
		return fail(rc);
	o.field = &field;
	before = zones();
	rc = nfmeta_link_create("demo", &o, &link);
	if (rc != 0)
		return fail(rc);
	n = zones();
	printf("up: ops %d %s\n", o.pool->ops_index, nfmeta_link_shared(link)->pool_ops);
	fflush(stdout);
	while (!told_to_end(5)) {
		if (sent == 0 && nfmeta_link_peer(link, 0) == NFMETA_PEER_ALIVE)
			sent = send_packets(link, o.pool);
		if (sent == back)
			continue;
		rc = nfmeta_collect_burst(link, 0, m, how, PACKETS);
		rte_pktmbuf_free_bulk(m, (unsigned int)rc);
		back += (unsigned int)rc;
	}
	nfmeta_link_stats(link, 0, &s);
	rc = nfmeta_link_peer(link, 0);
	printf("end: attached %u, sent %u, back %u, peer %d, memzones %+d, free %d\n", s.epoch,
	       sent, back, rc, (int)zones() - (int)n,
	       (int)rte_mempool_avail_count(o.pool) - POOL_SIZE);
	rc = nfmeta_link_destroy(link, NULL);
	if (rc != 0)
		return fail(rc);
	printf("gone: memzones %+d\n", (int)zones() - (int)before);
	rte_mempool_free(o.pool);
	rte_eal_cleanup();
	return 0;
}

static int
nf(const char *prefix)
{
	struct nfmeta_eal_opts eal = NFMETA_EAL_OPTS(.file_prefix = prefix);
	struct nfmeta_record recs[PACKETS];
	struct rte_mbuf *m[PACKETS];
	unsigned int n, i, got = 0, patience;
	struct nfmeta_link *link;
	int rc;

	rc = nfmeta_eal_attach(&eal);
	if (rc == 0)
		rc = nfmeta_link_attach("demo", 0, 0, &link);
	if (rc != 0) {
		fail(rc);
		nfmeta_eal_detach();
		return 1;
	}
	for (patience = 0; got < PACKETS && patience < 10000; patience++) {
		n = nfmeta_recv_burst(link, m, recs, PACKETS);
		for (i = 0; i < n; i++)
			got += recs[i].size != 0 && recs[i].flow_id == got;
		nfmeta_return_burst(link, m, NULL, (uint16_t)n);
		usleep(1000);
	}
	printf("attached: %u records, primary has %s, this is %s, ABI %d.%d here and %d.%d there, "
	       "flow state: %s\n",
	       got, nfmeta_link_shared(link)->library_version, nfmeta_version(), NFMETA_ABI_MAJOR,
	       NFMETA_ABI_MINOR, nfmeta_link_shared(link)->abi_major,
	       nfmeta_link_shared(link)->abi_minor, nfmeta_strerror(subscribe(link)));
	fflush(stdout);
	while (!told_to_end(100))
		;
	rc = nfmeta_link_detach(link);
	nfmeta_eal_detach();
	return rc != 0 ? fail(rc) : got != PACKETS;
}

int
main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "primary") == 0)
		return primary(argc - 1, argv + 1);
	if (argc == 3 && strcmp(argv[1], "nf") == 0)
		return nf(argv[2]);
	fprintf(stderr, "usage: %s primary EAL-OPTION... | nf PREFIX\n", argv[0]);
	return 2;
}
