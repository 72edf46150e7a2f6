/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The NF of bench/fastclick: the same work at FastClick's own rings, where it has to check and
 * look up everything itself, and at a link, where the record says it.
 *
 *   ring-pass, link-pass   gives packets back as they come
 *   ring-redo              header checks, checksums, a flow look-up of its own
 *   link-trust             takes all that from the record
 *
 * On SIGTERM it prints packets, and ns per packet of the time in which it had some.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ring.h>

#include <nfmeta/nfmeta.h>

#define BURST 32
#define FLOWS 65536

static volatile sig_atomic_t stop;
static uint64_t per_flow[FLOWS], digest, unknown;
static struct rte_hash *table;

static void
on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void
look(const struct rte_mbuf *m, const struct nfmeta_record *r, uint32_t flow)
{
	per_flow[flow % FLOWS]++;
	if (r->payload_off < m->data_len)
		digest += *rte_pktmbuf_mtod_offset(m, const uint8_t *, r->payload_off);
}

static void
redo(struct rte_mbuf **m, uint16_t n)
{
	struct nfmeta_flow_key keys[BURST];
	struct nfmeta_record r[BURST];
	uint16_t i;
	int at;

	for (i = 0; i < n; i++) /* what a NIC would say, this chain's source does not */
		m[i]->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, m, n, r, keys);
	for (i = 0; i < n; i++) {
		at = rte_hash_lookup(table, &keys[i]);
		if (at < 0)
			at = rte_hash_add_key(table, &keys[i]);
		if (at < 0)
			unknown++;
		else
			look(m[i], &r[i], (uint32_t)at);
	}
}

static void
trust(struct rte_mbuf **m, const struct nfmeta_record *r, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++)
		if (r[i].size >= NFMETA_RECORD_CORE && (r[i].flags & NFMETA_FLOW_KNOWN) != 0 &&
		    (r[i].flags & (NFMETA_L3_CSUM_GOOD | NFMETA_L4_CSUM_GOOD)) ==
			    (NFMETA_L3_CSUM_GOOD | NFMETA_L4_CSUM_GOOD))
			look(m[i], &r[i], r[i].flow_id);
		else
			unknown++;
}

static int
fail(const char *what)
{
	fprintf(stderr, "nf: %s\n", what);
	return 1;
}

int
main(int argc, char **argv)
{
	const struct rte_hash_parameters p = {.name = "nf_flows",
					      .entries = FLOWS,
					      .key_len = sizeof(struct nfmeta_flow_key),
					      .hash_func = rte_hash_crc,
					      .socket_id = SOCKET_ID_ANY};
	uint64_t packets = 0, busy = 0, from;
	struct rte_ring *down = NULL, *up = NULL;
	struct nfmeta_link *link = NULL;
	struct nfmeta_record r[BURST];
	struct rte_mbuf *m[BURST];
	bool ring, work;
	uint16_t n;
	int used;

	signal(SIGTERM, on_signal);
	used = rte_eal_init(argc, argv);
	if (used < 0)
		return fail(rte_strerror(rte_errno));
	if (argc - used != 2)
		return fail("usage: nf EAL-OPTIONS -- ring-pass|ring-redo|link-pass|link-trust");
	ring = strncmp(argv[used + 1], "ring", 4) == 0;
	work = strstr(argv[used + 1], "pass") == NULL;
	if (ring) {
		down = rte_ring_lookup("fc_2_nf");
		up = rte_ring_lookup("nf_2_fc");
		if (down == NULL || up == NULL)
			return fail("FastClick has no rings fc_2_nf, nf_2_fc");
		if (work && (table = rte_hash_create(&p)) == NULL)
			return fail("no memory for the flow table");
	} else if (nfmeta_link_attach("ids", 0, 5000, &link) != 0) {
		return fail(nfmeta_error());
	}
	while (!stop) {
		from = rte_rdtsc();
		n = ring ? (uint16_t)rte_ring_sc_dequeue_burst(down, (void **)m, BURST, NULL)
			 : nfmeta_recv_burst(link, m, work ? r : NULL, BURST);
		if (n == 0)
			continue;
		if (work && ring)
			redo(m, n);
		else if (work)
			trust(m, r, n);
		packets += n;
		if (ring) /* as large as the one down: there is room, sooner or later */
			for (uint16_t put = 0; put < n && !stop;)
				put += (uint16_t)rte_ring_sp_enqueue_burst(up, (void **)&m[put],
									   n - put, NULL);
		else
			nfmeta_return_burst(link, m, NULL, n);
		busy += rte_rdtsc() - from;
	}
	if (link != NULL)
		nfmeta_link_detach(link);
	printf("%" PRIu64 " %.1f %" PRIu64 " %" PRIu64 "\n", packets,
	       packets != 0 ? (double)busy * 1e9 / (double)rte_get_tsc_hz() / (double)packets : 0,
	       unknown, digest);
	return 0;
}
