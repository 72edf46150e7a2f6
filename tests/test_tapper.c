/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What the tapper writes of an mbuf: all of it, in one piece, with the tags that were
 * stripped. A socket of datagrams stands for the interface. tests/chain/tapper has real ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>

#include "../examples/tapper/tapper.h"

static struct rte_mempool *pool;
static struct iface iface;
static char prefix[64];
static int reader;

static void
setup(void)
{
	char *argv[] = {"test_tapper",
			"--no-huge",
			"--no-shconf",
			"--no-pci",
			"-m",
			"64",
			"-l",
			"0",
			"--log-level",
			"error",
			"--no-telemetry",
			"--file-prefix",
			prefix,
			NULL};
	int pair[2];

	ck_assert_int_ge(rte_eal_init(RTE_DIM(argv) - 1, argv), 0);
	pool = rte_pktmbuf_pool_create("p", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(pool);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	iface = (struct iface){.fd = pair[0], .tap = true, .name = "pair"};
	reader = pair[1];
}

/* len bytes, byte i is i modulo 251, in segments of at most "size" */
static struct rte_mbuf *
packet(uint32_t len, uint32_t size)
{
	struct rte_mbuf *m = NULL, *seg;
	uint32_t at = 0, k, i;
	char *to;

	while (at < len) {
		k = RTE_MIN(len - at, size);
		seg = rte_pktmbuf_alloc(pool);
		ck_assert_ptr_nonnull(seg);
		to = rte_pktmbuf_append(seg, (uint16_t)k);
		for (i = 0; i < k; i++)
			to[i] = (char)((at + i) % 251);
		at += k;
		if (m == NULL)
			m = seg;
		else
			ck_assert_int_eq(rte_pktmbuf_chain(m, seg), 0);
	}
	return m;
}

/* What comes out is the packet, with "tags" behind the addresses. */
static void
comes_out(struct rte_mbuf *m, const uint8_t *tags, uint32_t ntags)
{
	uint32_t len = m->pkt_len, at, i;
	static uint8_t got[70000];

	ck_assert_int_eq(iface_write(&iface, &m, 1), 0);
	ck_assert_int_eq(recv(reader, got, sizeof(got), 0), len + ntags);
	if (ntags > 0)
		ck_assert_mem_eq(got + 12, tags, ntags);
	for (i = 0; i < len; i++) {
		at = i < 12 ? i : i + ntags;
		ck_assert_msg(got[at] == i % 251, "byte %u of %u", at, len);
	}
	rte_pktmbuf_free(m);
}

START_TEST(in_one_piece)
{
	static const uint32_t sizes[][2] = {
		{60, 2048}, {60, 13}, {1514, 2048}, {9014, 2048}, {640, 10}};
	uint32_t i;

	for (i = 0; i < RTE_DIM(sizes); i++)
		comes_out(packet(sizes[i][0], sizes[i][1]), NULL, 0);
	ck_assert_uint_eq(iface.c.written, RTE_DIM(sizes));
}
END_TEST

START_TEST(stripped_tags)
{
	static const uint8_t one[] = {0x81, 0x00, 0x60, 0x2a};
	static const uint8_t two[] = {0x88, 0xa8, 0x01, 0x2d, 0x81, 0x00, 0x60, 0x2a};
	uint64_t vlan = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	struct rte_mbuf *m;
	uint32_t size;

	for (size = 12; size <= 60; size += 48) {
		m = packet(60, size);
		m->vlan_tci = 0x602a;
		m->vlan_tci_outer = 0x012d;
		m->ol_flags |= RTE_MBUF_F_RX_VLAN; /* it is in the bytes, too */
		comes_out(m, NULL, 0);
		m = packet(60, size);
		m->vlan_tci = 0x602a;
		m->ol_flags |= vlan;
		comes_out(m, one, sizeof(one));
		m = packet(60, size);
		m->vlan_tci = 0x602a;
		m->vlan_tci_outer = 0x012d;
		m->ol_flags |= vlan | RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
		comes_out(m, two, sizeof(two));
	}
}
END_TEST

START_TEST(refusals_are_counted)
{
	struct rte_mbuf *m = packet(650, 10), *pkts[4]; /* 65 segments */
	int i;

	ck_assert_int_eq(iface_write(&iface, &m, 1), 0);
	ck_assert_uint_eq(iface.c.too_big, 1);
	while (iface.c.no_room == 0) /* nobody reads */
		ck_assert_int_eq(iface_write(&iface, &m->next, 1), 0);
	rte_pktmbuf_free(m);
	ck_assert_uint_gt(iface.c.written, 0);
	close(reader);
	for (i = 0; i < 4; i++)
		pkts[i] = packet(60, 60);
	ck_assert_int_eq(iface_write(&iface, pkts, 4), -1);
	ck_assert_uint_eq(iface.c.gone, 4);
	rte_pktmbuf_free_bulk(pkts, 4);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tapper");
	TCase *c = tcase_create("frames");
	char dir[128];
	SRunner *r;
	int failed;

	snprintf(prefix, sizeof(prefix), "nfm-test-tapper-%d", getpid());
	say_program("test_tapper");
	tcase_add_checked_fixture(c, setup, NULL);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, in_one_piece);
	tcase_add_test(c, stripped_tags);
	tcase_add_test(c, refusals_are_counted);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
