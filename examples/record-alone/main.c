/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A record on a packet, in one process: stamp it, move the packet, read it.
 *
 *     cc main.c $(pkg-config --cflags --libs nfmeta libdpdk) -o record-alone
 *     ./record-alone --no-huge --no-shconf --no-pci -m 64
 */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

static void
show(const char *when, const struct nfmeta_field *field, const struct rte_mbuf *m)
{
	struct nfmeta_record r;

	if (nfmeta_record_get(field, m, &r) == 0)
		printf("%-14s no record\n", when);
	else
		printf("%-14s %u bytes: flow %u, IP header at %u, L4 header at %u\n", when, r.size,
		       r.flow_id, r.l3_off, r.l4_off);
}

int
main(int argc, char **argv)
{
	struct nfmeta_field field;
	struct nfmeta_record r;
	struct rte_mempool *pool;
	struct rte_mbuf *m;
	int rc;

	if (rte_eal_init(argc, argv) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}

	/* Once per process: find room for the record in the mbuf. */
	rc = nfmeta_field_register(NULL, &field);
	if (rc != 0) {
		fprintf(stderr, "%s: %s\n", nfmeta_strerror(rc), nfmeta_error());
		return 1;
	}

	pool = rte_pktmbuf_pool_create("packets", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       (int)rte_socket_id());
	m = pool != NULL ? rte_pktmbuf_alloc(pool) : NULL;
	if (m == NULL || rte_pktmbuf_append(m, 64) == NULL) {
		fprintf(stderr, "no packet: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	memset(rte_pktmbuf_mtod(m, void *), 0, 64);
	show("fresh", &field, m);

	/* Say what is known about the packet.  Classify fills this from the bytes. */
	nfmeta_record_init(&r);
	r.flags = NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_L4_VALID | NFMETA_FLOW_KNOWN;
	r.flow_id = 7;
	r.l3_off = 14;
	r.l4_off = 34;
	nfmeta_record_set(&field, m, &r);
	show("stamped", &field, m);

	/* A tag of 4 bytes goes in front: the record moves along ... */
	rte_pktmbuf_prepend(m, 4);
	nfmeta_record_shift(&field, m, -4);
	show("pushed", &field, m);

	/* ... and without that call it is gone, rather than wrong. */
	rte_pktmbuf_adj(m, 4);
	show("moved, untold", &field, m);

	rte_pktmbuf_free(m);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
