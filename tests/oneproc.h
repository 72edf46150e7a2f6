/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What the tests of links in one process begin with.  POOL_SIZE is the test's.
 */
#ifndef TESTS_ONEPROC_H
#define TESTS_ONEPROC_H

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

static char prefix[64];
static struct rte_mempool *pool;
static struct nfmeta_link *link_p; /* the primary's handle */
static struct nfmeta_link *link_n; /* the NF's */

static void
setup(void)
{
	char *argv[] = {prefix,
			"--no-huge",
			"--no-shconf",
			"--no-pci",
			"-m",
			"64",
			"-l",
			"0",
			"--log-level",
			"critical",
			"--no-telemetry",
			"--file-prefix",
			prefix,
			NULL};

	cpu_set_t cpus;

	ck_assert_int_eq(pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus), 0);
	ck_assert_int_ge(rte_eal_init(RTE_DIM(argv) - 1, argv), 0);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus); /* all, for both threads */
	pool = rte_pktmbuf_pool_create("p", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(pool);
}

#define ck_ok(call) ck_assert_msg((call) == 0, "%s", nfmeta_error())
#define ck_refused(call, code)                                                                     \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		ck_assert_msg(rc_ == -(code), "%s, not %s: %s", nfmeta_strerror(rc_),              \
			      nfmeta_strerror(code), nfmeta_error());                              \
		ck_assert_uint_gt(strlen(nfmeta_error()), 15);                                     \
	} while (0)

#endif
