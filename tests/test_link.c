/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Links, both ends in one process.  Refusals first; then that every packet is
 * where the counters say, whatever the two ends do.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>
#include <rte_ring.h>

#include <nfmeta/nfmeta.h>

#define POOL_SIZE 2047

#include "oneproc.h"

static void
create(const struct nfmeta_link_opts *o)
{
	ck_ok(nfmeta_link_create("t", o, &link_p));
}

static void
create_and_attach(const struct nfmeta_link_opts *o)
{
	create(o);
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
}

static void
detach_and_destroy(void)
{
	uint64_t lost = 1;

	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_destroy(link_p, &lost));
	ck_assert_uint_eq(lost, 0);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}

static void
packets(struct rte_mbuf **m, unsigned int n)
{
	unsigned int i;

	ck_assert_int_eq(rte_pktmbuf_alloc_bulk(pool, m, n), 0);
	for (i = 0; i < n; i++)
		*(uint32_t *)rte_pktmbuf_append(m[i], 60) = i;
}

static uint32_t
number(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod(m, const uint32_t *);
}

static struct nfmeta_link_stats
stats(void)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)}, t = {.sz = sizeof(t)};

	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	if (link_n != NULL) { /* both ends see the same */
		ck_ok(nfmeta_link_stats(link_n, 0, &t));
		t.heartbeat = s.heartbeat; /* each end has the other one's */
		ck_assert_mem_eq(&s, &t, sizeof(s));
	}
	return s;
}

static unsigned int zones;

static void
count_zone(const struct rte_memzone *mz, void *arg)
{
	(void)mz;
	(void)arg;
	zones++;
}

/* Memzones are all that a link is made of: rings are memzones, too. */
static unsigned int
memzones(void)
{
	zones = 0;
	rte_memzone_walk(count_zone, NULL);
	return zones;
}

static uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- Create ------------------------------------------------------------------- */

static const char *const bad_names[] = {
	NULL, "", "sixteen_letters_", "a b", "a ", " a", "a/b", "a\n", "\xc3\xa4", "a%s",
};

START_TEST(create_bad_name)
{
	struct nfmeta_link *link = NULL;
	unsigned int before = memzones(), i;

	for (i = 0; i < RTE_DIM(bad_names); i++) {
		ck_refused(nfmeta_link_create(bad_names[i], NULL, &link), EINVAL);
		ck_assert_ptr_null(link);
		ck_refused(nfmeta_link_attach(bad_names[i], 0, 0, &link), EINVAL);
		ck_assert_ptr_null(link);
		ck_assert_uint_eq(memzones(), before);
	}
}
END_TEST

START_TEST(create_good_names)
{
	static const char *const names[] = {"a", "fifteen_letters", "A-z_0.9", "..."};
	struct nfmeta_link *links[RTE_DIM(names)];
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		ck_ok(nfmeta_link_create(names[i], NULL, &links[i]));
	for (i = 0; i < RTE_DIM(names); i++) {
		ck_ok(nfmeta_link_attach(names[i], 0, 0, &link_n));
		ck_assert_str_eq(nfmeta_link_shared(link_n)->name, names[i]);
		ck_ok(nfmeta_link_detach(link_n));
		ck_ok(nfmeta_link_destroy(links[i], NULL));
	}
}
END_TEST

static const struct nfmeta_field no_field;
static const struct nfmeta_link_opts bad_options[] = {
	{.sz = 0},
	{.sz = 3},
	NFMETA_LINK_OPTS(.ring_size = 32),
	NFMETA_LINK_OPTS(.ring_size = 100),
	NFMETA_LINK_OPTS(.ring_size = 1023),
	NFMETA_LINK_OPTS(.ring_size = 131072),
	NFMETA_LINK_OPTS(.queues = 65),
	NFMETA_LINK_OPTS(.when_full = 4),
	NFMETA_LINK_OPTS(.carrier = 4),
	NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_TABLE),
	NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_INBAND),
	NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_RING, .flow_ring = 511),
	NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_RING, .flow_ring = 1048577),
	NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_RING, .flow_backlog = 16777217),
	NFMETA_LINK_OPTS(.blanks = 1025, .pool = (void *)1),
	NFMETA_LINK_OPTS(.blanks = 1),
	NFMETA_LINK_OPTS(.field = &no_field),
};

START_TEST(create_bad_option)
{
	struct nfmeta_link *link = NULL;
	unsigned int before = memzones(), i;

	for (i = 0; i < RTE_DIM(bad_options); i++) {
		ck_refused(nfmeta_link_create("t", &bad_options[i], &link), EINVAL);
		ck_assert_ptr_null(link);
		ck_assert_uint_eq(memzones(), before);
	}
}
END_TEST

START_TEST(create_bad_field)
{
	struct nfmeta_field good, f;
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.field = &f);
	struct nfmeta_link *link;

	ck_ok(nfmeta_field_register(NULL, &good));
	f = good;
	f.offset = sizeof(struct rte_mbuf) - 8;
	ck_refused(nfmeta_link_create("t", &o, &link), EINVAL);
	f = good;
	f.flag |= 1;
	ck_refused(nfmeta_link_create("t", &o, &link), EINVAL);
	f = good;
	f.size = 24;
	ck_refused(nfmeta_link_create("t", &o, &link), EINVAL);
	f = good;
	f.seal_offset = sizeof(struct rte_mbuf) - 1;
	ck_refused(nfmeta_link_create("t", &o, &link), EINVAL);
	ck_refused(nfmeta_link_create("t", NULL, NULL), EINVAL);
}
END_TEST

/* Callers with an older, or a newer, idea of the options. */
START_TEST(create_other_opts_size)
{
	struct {
		struct nfmeta_link_opts known;
		uint64_t later;
	} newer = {.known = {.sz = sizeof(newer)}};
	struct nfmeta_link_opts older = {.sz = 8, .ring_size = 128, .queues = 1000};

	create(&older);
	ck_assert_uint_eq(nfmeta_link_shared(link_p)->ring_size, 128);
	ck_assert_uint_eq(nfmeta_link_shared(link_p)->queue_count, 1);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	create(&newer.known);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	newer.later = 1;
	ck_refused(nfmeta_link_create("t", &newer.known, &link_p), EINVAL);
}
END_TEST

START_TEST(create_twice)
{
	struct nfmeta_link *second = NULL;
	struct rte_mbuf *m;

	create_and_attach(NULL);
	ck_refused(nfmeta_link_create("t", NULL, &second), EEXIST);
	ck_assert_ptr_null(second);
	packets(&m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, &m, NULL, 1), 1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 1);
	detach_and_destroy();
}
END_TEST

/* Any name of a link may be somebody else's; the whole link goes away again. */
START_TEST(create_name_taken)
{
	static const char *const rings[] = {"nfm.t.d0", "nfm.t.u1", "nfm.t.b2"};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 3, .blanks = 64, .pool = pool);
	unsigned int before, i;

	ck_ok(nfmeta_link_create("first", NULL, &link_p)); /* registers the field */
	for (i = 0; i < RTE_DIM(rings); i++) {
		struct rte_ring *r = rte_ring_create(rings[i], 64, SOCKET_ID_ANY, 0);

		before = memzones();
		ck_refused(nfmeta_link_create("t", &o, &link_p), EEXIST);
		ck_assert_ptr_nonnull(strstr(nfmeta_error(), rings[i]));
		ck_assert_uint_eq(memzones(), before);
		ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
		rte_ring_free(r);
	}
	ck_assert_ptr_nonnull(rte_memzone_reserve("nfmeta.t", 64, SOCKET_ID_ANY, 0));
	before = memzones();
	ck_refused(nfmeta_link_create("t", &o, &link_p), EEXIST);
	ck_assert_uint_eq(memzones(), before);
}
END_TEST

START_TEST(create_without_memory)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.queues = 64, .ring_size = 4096, .blanks = 64, .pool = pool);
	struct nfmeta_field f;
	unsigned int before;
	size_t size;

	ck_ok(nfmeta_field_register(NULL, &f));
	for (size = 16 << 20; size >= 4 << 20; size /= 2)
		while (rte_malloc(NULL, size, 0) != NULL)
			;
	before = memzones();
	ck_refused(nfmeta_link_create("t", &o, &link_p), ENOMEM);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), " bytes"));
	ck_assert_uint_eq(memzones(), before);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
	/* A smaller one fits. */
	create(NULL);
}
END_TEST

static uint64_t
heap_used(void)
{
	struct rte_malloc_socket_stats s;

	ck_assert_int_eq(rte_malloc_get_socket_stats(0, &s), 0);
	return s.heap_allocsz_bytes;
}

START_TEST(memory_of_a_link)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.queues = 4, .ring_size = 1024, .blanks = 256, .pool = pool);
	struct nfmeta_field f;
	uint64_t before, used;

	ck_ok(nfmeta_field_register(NULL, &f));
	before = heap_used();
	create(&o);
	used = heap_used() - before;
	ck_assert_msg(used < 512 << 10, "%lu bytes", (unsigned long)used);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	ck_assert_uint_eq(heap_used(), before);

	o.carrier = NFMETA_CARRIER_RING;
	create(&o);
	used = heap_used() - before;
	ck_assert_msg(used < 768 << 10, "%lu bytes with flow state", (unsigned long)used);
	printf("a link of 4 queues, 1024 packets each, with flow state: %lu KiB\n",
	       (unsigned long)used >> 10);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	ck_assert_uint_eq(heap_used(), before);
}
END_TEST

START_TEST(without_eal)
{
	struct nfmeta_link *link;

	ck_refused(nfmeta_link_create("t", NULL, &link), NFMETA_EROLE);
	ck_refused(nfmeta_link_attach("t", 0, 0, &link), NFMETA_EROLE);
}
END_TEST

/* ---- Attach --------------------------------------------------------------------- */

START_TEST(attach_unknown)
{
	unsigned int before = memzones();
	struct nfmeta_link *link = NULL;
	uint64_t start = now_us(), took;

	ck_refused(nfmeta_link_attach("t", 0, 0, &link), NFMETA_ENOLINK);
	ck_assert_uint_lt(now_us() - start, 50000);
	start = now_us();
	ck_refused(nfmeta_link_attach("t", 0, 100, &link), NFMETA_ENOLINK);
	took = now_us() - start;
	ck_assert_uint_ge(took, 100000);
	ck_assert_uint_lt(took, 1000000);
	ck_assert_ptr_null(link);
	ck_assert_uint_eq(memzones(), before);

	create(NULL);
	ck_refused(nfmeta_link_attach("T", 0, 0, &link), NFMETA_ENOLINK);
	ck_refused(nfmeta_link_attach("t ", 0, 0, &link), EINVAL);
	ck_refused(nfmeta_link_attach("t", 1, 0, &link), EINVAL);
	ck_refused(nfmeta_link_attach("t", 64, 0, &link), EINVAL);
	ck_refused(nfmeta_link_attach("t", 0, 0, NULL), EINVAL);
	ck_assert_ptr_null(link);
}
END_TEST

static void *
attach_thread(void *rc)
{
	*(int *)rc = nfmeta_link_attach("t", 0, 5000, &link_n);
	return NULL;
}

START_TEST(attach_waits_for_the_link)
{
	pthread_t thread;
	int rc = 1;

	pthread_create(&thread, NULL, attach_thread, &rc);
	usleep(50000);
	create(NULL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rc, 0);
	detach_and_destroy();
}
END_TEST

START_TEST(attach_one_at_a_time)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 2);
	struct nfmeta_link *second = NULL;

	create(&o);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 1), NFMETA_PEER_NONE);
	ck_assert_uint_eq(stats().epoch, 1);
	ck_refused(nfmeta_link_attach("t", 0, 0, &second), NFMETA_EQUEUETAKEN);
	ck_ok(nfmeta_link_attach("t", 1, 0, &second));
	ck_ok(nfmeta_link_detach(link_n));
	link_n = NULL;
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_assert_uint_eq(stats().epoch, 2);
	ck_ok(nfmeta_link_detach(second));
	detach_and_destroy();
}
END_TEST

START_TEST(attach_closing)
{
	struct nfmeta_link *second;

	create_and_attach(NULL);
	ck_ok(nfmeta_link_check(link_n));
	nfmeta_link_close(link_p);
	ck_refused(nfmeta_link_check(link_n), NFMETA_ECLOSING);
	ck_refused(nfmeta_link_attach("t", 0, 0, &second), NFMETA_ECLOSING);
	detach_and_destroy();
	ck_refused(nfmeta_link_attach("t", 0, 0, &second), NFMETA_ENOLINK);
	create_and_attach(NULL); /* the name is free again */
	ck_ok(nfmeta_link_check(link_n));
	detach_and_destroy();
}
END_TEST

START_TEST(attach_half_built)
{
	struct nfmeta_shared_link *s;

	create(NULL);
	s = rte_memzone_lookup("nfmeta.t")->addr;
	s->state = NFMETA_LINK_BUILDING;
	ck_refused(nfmeta_link_attach("t", 0, 20, &link_n), NFMETA_ENOLINK);
	s->magic = 0;
	ck_refused(nfmeta_link_attach("t", 0, 20, &link_n), NFMETA_ENOLINK);
}
END_TEST

/* ---- Handshakes that must be refused ---------------------------------------------- */

#define SHARED(what) static void what(struct nfmeta_shared_link *s, struct nfmeta_shared_queue *q)
#define TAMPER(name, change)                                                                       \
	SHARED(name)                                                                               \
	{                                                                                          \
		(void)s;                                                                           \
		(void)q;                                                                           \
		change;                                                                            \
	}

TAMPER(bad_magic, s->magic ^= 1)
TAMPER(bad_major, s->abi_major++)
TAMPER(bad_size_small, s->size = 511)
TAMPER(bad_size_large, s->size += 4096)
TAMPER(bad_feature, s->features_required = UINT64_C(1) << 63)
TAMPER(bad_state, s->state = 3)
TAMPER(bad_count_0, s->queue_count = 0)
TAMPER(bad_count_many, s->queue_count = 65)
TAMPER(bad_count_long, s->queue_count = 6)
TAMPER(bad_queue_size, s->queue_size = 128)
TAMPER(bad_queue_size_odd, s->queue_size = 257)
TAMPER(bad_queue_offset, s->queue_offset = 448)
TAMPER(bad_queue_offset_far, s->queue_offset = 0xffc0)
TAMPER(bad_policy_0, s->when_full = 0)
TAMPER(bad_policy_4, s->when_full = 4)
TAMPER(bad_ring_size, s->ring_size = 1000)
TAMPER(bad_ring_large, s->ring_size = 65536)
TAMPER(bad_blanks, s->blanks = 2000)
TAMPER(bad_instance, s->instance = 0)
TAMPER(bad_name, s->name[0] = 'u')
TAMPER(bad_name_end, memset(s->name, 'n', sizeof(s->name)))
TAMPER(bad_pool_end, memset(s->pool_name, 'n', sizeof(s->pool_name)))
TAMPER(bad_dpdk, s->dpdk_version[5]++)
TAMPER(bad_dpdk_end, memset(s->dpdk_version, '1', sizeof(s->dpdk_version)))
TAMPER(bad_mbuf_size, s->mbuf_layout[0] = 192)
TAMPER(bad_mbuf_last, s->mbuf_layout[NFMETA_MBUF_POINTS - 1] += 8)
TAMPER(bad_pool, s->pool_name[0] = 'q')
TAMPER(bad_ops, strcpy(s->pool_ops, "bucket"))
TAMPER(bad_field_place, s->field.placement = 0)
TAMPER(bad_field_place_4, s->field.placement = 4)
TAMPER(bad_field_size, s->field.size = 128)
TAMPER(bad_field_offset, s->field.offset = 120)
TAMPER(bad_field_align, s->field.offset += 4)
TAMPER(bad_field_seal, s->field.seal_offset = 127)
TAMPER(bad_field_flag, s->field.flag = 0)
TAMPER(bad_field_flags, s->field.flag = 3)
TAMPER(bad_ring_name, q->down[0] = 'X')
TAMPER(bad_up_name, q->up[0] = 'X')
TAMPER(bad_blank_name, q->blank[0] = '\0')
TAMPER(bad_ring_end, memset(q->up, 'n', sizeof(q->up)))
TAMPER(bad_other_queue, memset(q[1].down, 'n', sizeof(q[1].down)))
TAMPER(bad_carrier, s->flow_carrier = 4)
TAMPER(bad_carrier_none, s->flow_carrier = 0)
TAMPER(bad_carrier_table, s->flow_carrier = NFMETA_CARRIER_TABLE)
TAMPER(bad_carrier_inband, s->flow_carrier = NFMETA_CARRIER_INBAND)
TAMPER(bad_flow_ring, s->flow_ring = 511)
TAMPER(bad_flow_ring_large, s->flow_ring = 16384)
TAMPER(bad_flow_queue_size, s->queue_size = 448)
TAMPER(bad_flow_down, q->flow_down[0] = 'X')
TAMPER(bad_flow_up, q->flow_up[0] = '\0')
TAMPER(bad_flow_end, memset(q->flow_down, 'n', sizeof(q->flow_down)))
TAMPER(bad_table, strcpy(s->flow_table, "nowhere"))
TAMPER(bad_table_end, memset(s->flow_table, 'n', sizeof(s->flow_table)))

static const struct {
	void (*change)(struct nfmeta_shared_link *, struct nfmeta_shared_queue *);
	int code;
	const char *says[2]; /* both sides' values */
} tampered[] = {
	{bad_magic, NFMETA_EFORMAT, {"magic", NULL}},
	{bad_major, NFMETA_EABI, {"ABI 2", "ABI 1"}},
	{bad_size_small, NFMETA_EFORMAT, {"size", NULL}},
	{bad_size_large, NFMETA_EFORMAT, {"size", NULL}},
	{bad_feature, NFMETA_EFEATURE, {"0x8000000000000000", "0x1"}},
	{bad_state, NFMETA_EFORMAT, {"state", NULL}},
	{bad_count_0, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_count_many, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_count_long, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_queue_size, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_queue_size_odd, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_queue_offset, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_queue_offset_far, NFMETA_EFORMAT, {"queues", NULL}},
	{bad_policy_0, NFMETA_EFORMAT, {"policy", NULL}},
	{bad_policy_4, NFMETA_EFORMAT, {"policy", NULL}},
	{bad_ring_size, NFMETA_EFORMAT, {"ring size", NULL}},
	{bad_ring_large, NFMETA_EFORMAT, {"65536", "1024"}},
	{bad_blanks, NFMETA_EFORMAT, {"ring size", NULL}},
	{bad_instance, NFMETA_EFORMAT, {"instance", NULL}},
	{bad_name, NFMETA_EFORMAT, {"name", NULL}},
	{bad_name_end, NFMETA_EFORMAT, {"name", NULL}},
	{bad_pool_end, NFMETA_EFORMAT, {"name", NULL}},
	{bad_dpdk, NFMETA_EDPDKVERSION, {"the primary runs DPDK 3", "this side DPDK 2"}},
	{bad_dpdk_end, NFMETA_EFORMAT, {"name", NULL}},
	{bad_mbuf_size, NFMETA_EMBUF, {"size 192", "this side 128"}},
	{bad_mbuf_last, NFMETA_EMBUF, {"tx_offload 80", "this side 72"}},
	{bad_pool, NFMETA_EPOOLOPS, {"'q'", NULL}},
	{bad_ops, NFMETA_EPOOLOPS, {"'bucket'", "'ring_mp_mc'"}},
	{bad_field_place, NFMETA_EFORMAT, {"placement", NULL}},
	{bad_field_place_4, NFMETA_EFORMAT, {"placement", NULL}},
	{bad_field_size, NFMETA_EFORMAT, {"size of records", NULL}},
	{bad_field_offset, NFMETA_EFORMAT, {"inside", NULL}},
	{bad_field_align, NFMETA_EFORMAT, {"aligned", NULL}},
	{bad_field_seal, NFMETA_EFORMAT, {"seal", NULL}},
	{bad_field_flag, NFMETA_EFORMAT, {"flag", NULL}},
	{bad_field_flags, NFMETA_EFORMAT, {"flag", NULL}},
	{bad_ring_name, NFMETA_EFORMAT, {"Xfm.t.d0", NULL}},
	{bad_up_name, NFMETA_EFORMAT, {"Xfm.t.u0", NULL}},
	{bad_blank_name, NFMETA_EFORMAT, {"missing", NULL}},
	{bad_ring_end, NFMETA_EFORMAT, {"no end", NULL}},
	{bad_other_queue, NFMETA_EFORMAT, {"no end", NULL}},
	{bad_carrier, NFMETA_EFORMAT, {"carrier", NULL}},
	{bad_carrier_none, NFMETA_EFORMAT, {"carrier", NULL}},
	{bad_carrier_table, NFMETA_EFORMAT, {"table", NULL}},
	{bad_carrier_inband, NFMETA_EFORMAT, {"carrier", NULL}},
	{bad_flow_ring, NFMETA_EFORMAT, {"flow ring", NULL}},
	{bad_flow_ring_large, NFMETA_EFORMAT, {"16384", "8191"}},
	{bad_flow_queue_size, NFMETA_EFORMAT, {"flow state", NULL}},
	{bad_flow_down, NFMETA_EFORMAT, {"Xfm.t.f0", NULL}},
	{bad_flow_up, NFMETA_EFORMAT, {"missing", NULL}},
	{bad_flow_end, NFMETA_EFORMAT, {"no end", NULL}},
	{bad_table, NFMETA_EFORMAT, {"nowhere", NULL}},
	{bad_table_end, NFMETA_EFORMAT, {"table", NULL}},
};

static void
refuse_tampered(unsigned int t)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 2, .blanks = 32, .pool = pool,
						     .carrier = NFMETA_CARRIER_RING);
	struct nfmeta_shared_link *s, copy;
	struct nfmeta_shared_queue *q, queues[2];
	unsigned int before, i;

	link_n = NULL;
	create(&o);
	s = rte_memzone_lookup("nfmeta.t")->addr;
	q = (void *)((uint8_t *)s + s->queue_offset);
	before = memzones();
	copy = *s;
	memcpy(queues, q, sizeof(queues));
	tampered[t].change(s, q);
	ck_refused(nfmeta_link_attach("t", 0, 0, &link_n), tampered[t].code);
	for (i = 0; i < 2; i++)
		if (tampered[t].says[i] != NULL)
			ck_assert_msg(strstr(nfmeta_error(), tampered[t].says[i]) != NULL,
				      "'%s' is not in: %s", tampered[t].says[i], nfmeta_error());
	ck_assert_ptr_null(link_n);
	ck_assert_uint_eq(memzones(), before);

	/* Nothing was taken: with the right bytes it attaches. */
	*s = copy;
	memcpy(q, queues, sizeof(queues));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	detach_and_destroy();
}

/* What a primary of ABI 1.0 publishes: smaller queue blocks, no flow state. */
START_TEST(older_primary)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 2);
	struct nfmeta_shared_link *s;
	struct nfmeta_shared_queue *q;
	uint8_t *second;

	create(&o);
	s = rte_memzone_lookup("nfmeta.t")->addr;
	q = (void *)((uint8_t *)s + s->queue_offset);
	second = (uint8_t *)q + 256;
	memmove(second, q + 1, 256);
	memset(second + 256, 0xff, 512);
	s->abi_minor = 0;
	s->queue_size = 256;
	s->size = s->queue_offset + 512;
	ck_ok(nfmeta_link_attach("t", 1, 0, &link_n));
	ck_refused(nfmeta_flow_subscribe(link_n, 2), NFMETA_ENOFLOW);
	ck_ok(nfmeta_link_detach(link_n));
	memcpy(second + 256, second, 256); /* for the primary, which knows only its own */
	memcpy(q + 1, second, 256);
	s->queue_size = 512;
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

START_TEST(tampered_handshake)
{
	unsigned int t;

	for (t = 0; t < RTE_DIM(tampered); t++)
		refuse_tampered(t);
}
END_TEST

/* What a newer minor version may do. */
START_TEST(newer_minor)
{
	struct nfmeta_shared_link *s;

	create(NULL);
	s = rte_memzone_lookup("nfmeta.t")->addr;
	s->abi_minor = 9;
	s->features_offered = ~UINT64_C(0);
	memset(s->reserved1, 0xff, sizeof(s->reserved1));
	memset(s->field.reserved, 0xff, sizeof(s->field.reserved));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	detach_and_destroy();
}
END_TEST

/* ---- Packets ------------------------------------------------------------------------ */

START_TEST(counters_are_exact)
{
	struct rte_mbuf *m[100], *got[100];
	struct nfmeta_link_stats s;
	uint8_t how[100];
	unsigned int i;

	create_and_attach(NULL);
	packets(m, 100);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 100), 100);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 100);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 40), 40);
	ck_assert_mem_eq(m, got, 40 * sizeof(*m));
	for (i = 0; i < 30; i++)
		how[i] = i % 3;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 30), 30);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, got, how, 10), 10);
	ck_assert_mem_eq(m, got, 10 * sizeof(*m));
	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(how[i], i % 3);
	rte_pktmbuf_free_bulk(got, 10);

	s = stats();
	ck_assert_uint_eq(s.sent, 100);
	ck_assert_uint_eq(s.refused, 0);
	ck_assert_uint_eq(s.received, 40);
	ck_assert_uint_eq(s.returned, 30);
	ck_assert_uint_eq(s.collected, 10);
	ck_assert_uint_eq(s.down, 60);
	ck_assert_uint_eq(s.held, 10);
	ck_assert_uint_eq(s.up, 20);
	ck_assert_uint_eq(s.blanks, 0);
	ck_assert_uint_eq(s.injected, 0);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 90);

	/* The next NF goes on where this one stopped. */
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m + 30, NULL, 10), 10);
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 100), 60);
	ck_assert_mem_eq(m + 40, got, 60 * sizeof(*m));
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 60), 60);
	ck_assert_uint_eq(stats().returned, 100);
	detach_and_destroy();
}
END_TEST

START_TEST(stats_of_other_sizes)
{
	union {
		struct nfmeta_link_stats s;
		uint8_t bytes[sizeof(struct nfmeta_link_stats) + 16];
	} u;
	struct rte_mbuf *m;

	create(NULL);
	packets(&m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
	memset(&u, 0xee, sizeof(u));
	u.s.sz = 16;
	ck_ok(nfmeta_link_stats(link_p, 0, &u.s));
	ck_assert_uint_eq(u.s.sz, 16);
	ck_assert_uint_eq(u.s.sent, 1);
	ck_assert_uint_eq(u.bytes[16], 0xee);
	u.s.sz = sizeof(u);
	ck_ok(nfmeta_link_stats(link_p, 0, &u.s));
	ck_assert_uint_eq(u.s.sz, sizeof(u.s));
	ck_assert_uint_eq(u.bytes[sizeof(u.s)], 0xee);
	u.s.sz = 0;
	ck_refused(nfmeta_link_stats(link_p, 0, &u.s), EINVAL);
	u.s.sz = sizeof(u.s);
	ck_refused(nfmeta_link_stats(link_p, 1, &u.s), EINVAL);
	ck_refused(nfmeta_link_stats(NULL, 0, &u.s), EINVAL);
}
END_TEST

static const uint8_t policies[] = {NFMETA_FULL_DROP, NFMETA_FULL_WAIT, NFMETA_FULL_BYPASS};

/* ring_size counts what is in the rings and in the NF's hands. */
START_TEST(full)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64, .when_full = policies[_i], .wait_us = 2000);
	struct rte_mbuf *m[100], *got[100];
	uint8_t how[100];

	create_and_attach(&o);
	packets(m, 100);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 100), 64);
	ck_assert_uint_eq(stats().refused, 36);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 36), 0);
	ck_assert_uint_eq(stats().refused, 72);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 32), 32);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 1), 0);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 32), 32);
	if (policies[_i] != NFMETA_FULL_WAIT)
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 1), 0);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, got, how, 100), 32);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 36), 32);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 64);
	rte_pktmbuf_free_bulk(got, 32);
	rte_pktmbuf_free_bulk(m + 96, 4);
	detach_and_destroy();
}
END_TEST

START_TEST(wait_is_bounded)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64, .when_full = NFMETA_FULL_WAIT, .wait_us = 20000);
	struct rte_mbuf *m[100];
	uint64_t start, took;

	create(&o);
	packets(m, 100);
	/* Nobody attached: there is nothing to wait for. */
	start = now_us();
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 100), 64);
	ck_assert_uint_lt(now_us() - start, 15000);
	/* Somebody who does nothing. */
	ck_ok(nfmeta_link_attach("t", 0, 0, &link_n));
	start = now_us();
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 36), 0);
	took = now_us() - start;
	ck_assert_uint_ge(took, 19000);
	ck_assert_uint_lt(took, 2000000);
	/* Closed: no waiting. */
	nfmeta_link_close(link_p);
	start = now_us();
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 36), 0);
	ck_assert_uint_lt(now_us() - start, 15000);
	rte_pktmbuf_free_bulk(m + 64, 36);
	detach_and_destroy();
}
END_TEST

/* Waiting sets aside what comes back; it neither gets lost nor out of order. */
START_TEST(wait_sets_aside)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 64, .when_full = NFMETA_FULL_WAIT,
						     .wait_us = 1000, .blanks = 8, .pool = pool);
	struct rte_mbuf *m[128], *got[128], *blank;
	struct nfmeta_link_stats s;
	uint8_t how[128];
	unsigned int i;

	create_and_attach(&o);
	packets(m, 128);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 64), 64);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 40), 40);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 20), 20);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, &blank, 1), 1);
	how[0] = NFMETA_INJECTED | NFMETA_DROP;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &blank, how, 1), 1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got + 20, NULL, 20), 20);

	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 64, 40), 40);
	s = stats();
	ck_assert_uint_eq(s.refused, 0);
	ck_assert_uint_eq(s.up, 41);
	ck_assert_uint_eq(s.collected, 0);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 104);

	/* 41 set aside, 10 in the ring; collected in bursts of 7. */
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 10), 10);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 10), 10);
	for (i = 0; i < 51; i += 7)
		ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, got + i, how + i, 7),
				  RTE_MIN(7u, 51 - i));
	ck_assert_ptr_eq(got[20], blank);
	ck_assert_uint_eq(how[20], NFMETA_INJECTED | NFMETA_DROP);
	for (i = 0; i < 51; i++)
		if (i != 20)
			ck_assert_uint_eq(number(got[i]), i - (i > 20));
	rte_pktmbuf_free_bulk(got, 51);
	s = stats();
	ck_assert_uint_eq(s.collected, 50);
	ck_assert_uint_eq(s.up, 0);

	/* Room is ring_size again, no more and no less; the rest goes down with the link. */
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 54);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m + 104, 24), 10);
	rte_pktmbuf_free_bulk(m + 114, 14);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 5), 5);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 5), 5);
	packets(m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 1), 1); /* 5 set aside */
	detach_and_destroy();
}
END_TEST

START_TEST(return_more_than_held)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.blanks = 16, .pool = pool);
	struct rte_mbuf *m[200], *got[200], *b[16];
	uint8_t how[200];
	unsigned int i, k;

	create_and_attach(&o);
	packets(m, 200);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, NULL, 200), 0);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 150), 150);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 150), 150);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, b, 3), 3);

	/* Blanks among packets: 10 packets, 3 blanks, then a 4th that is none. */
	memset(how, NFMETA_FORWARD, sizeof(how));
	for (i = 0; i < 3; i++) {
		got[10 + i] = b[i];
		how[10 + i] = NFMETA_INJECTED | NFMETA_BACKWARD;
	}
	how[13] = NFMETA_INJECTED;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 14), 13);
	/* 140 packets are held, 190 are offered. */
	for (i = 0; i < 140; i++)
		got[i] = m[10 + i];
	for (; i < 190; i++)
		got[i] = m[150 + i - 140];
	how[10] = how[11] = how[12] = how[13] = NFMETA_DROP;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 190), 140);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 1), 0);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 0), 0);
	ck_assert_uint_eq(stats().held, 0);

	k = nfmeta_collect_burst(link_p, 0, got, how, 200);
	ck_assert_uint_eq(k, 153);
	for (i = 0; i < k; i++)
		ck_assert_uint_eq(how[i], i < 10	    ? NFMETA_FORWARD
					  : i < 13	    ? NFMETA_INJECTED | NFMETA_BACKWARD
					  : i - 13 < 10	    ? NFMETA_FORWARD
					  : i - 13 - 10 < 4 ? NFMETA_DROP
							    : NFMETA_FORWARD);
	rte_pktmbuf_free_bulk(got, k);
	rte_pktmbuf_free_bulk(m + 150, 50);
	detach_and_destroy();
}
END_TEST

/* An NF that gives back what it was not given, or twice, harms nobody else. */
START_TEST(foreign)
{
	static const uint8_t policies[] = {NFMETA_FULL_DROP, NFMETA_FULL_WAIT};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 8, .pool = pool,
						     .when_full = policies[_i], .wait_us = 100);
	const uint8_t injected = NFMETA_INJECTED | NFMETA_FORWARD;
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct rte_mbuf *m[64], *got[64], *up[5], *blank, *mine, *more;
	uint8_t how[64];
	uint64_t held = 0;

	create_and_attach(&o);
	packets(m, 64);
	packets(&mine, 1);
	packets(&more, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 64), 64);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 64), 64);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, &blank, 1), 1);
	up[0] = got[3];
	up[1] = got[3];			   /* twice */
	up[2] = mine;			   /* was not sent */
	up[3] = (struct rte_mbuf *)0x1000; /* is no mbuf */
	up[4] = got[4];
	ck_assert_uint_eq(nfmeta_return_burst(link_n, up, NULL, 5), 5);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &got[5], &injected, 1), 1); /* is no blank */
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &blank, NULL, 1), 1);	  /* is no packet */
	if (o.when_full == NFMETA_FULL_WAIT) /* what came back is set aside */
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &more, 1), 1);
	else
		rte_pktmbuf_free(more);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, 64), 4);
	ck_assert_ptr_eq(m[0], got[3]);
	ck_assert_ptr_eq(m[1], got[4]);
	ck_assert_ptr_eq(m[2], got[5]);
	ck_assert_uint_eq(how[2], NFMETA_DROP);
	ck_assert_ptr_eq(m[3], blank);
	ck_assert_uint_eq(how[3], NFMETA_INJECTED | NFMETA_DROP);
	rte_pktmbuf_free_bulk(m, 4);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.foreign, 3);
	ck_assert_uint_eq(s.collected, 3);

	/* It counts wrongly now; what it forgets is found when the link goes. */
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &got[6], NULL, 58), 58);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, 64), 58);
	rte_pktmbuf_free_bulk(m, 58);
	rte_pktmbuf_free(mine);
	ck_ok(nfmeta_link_detach(link_n));
	ck_ok(nfmeta_link_destroy(link_p, &held));
	ck_assert_uint_eq(held, 3);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}
END_TEST

/* Dispositions that are not defined read as a drop; higher bits do not exist. */
START_TEST(unknown_disposition)
{
	struct rte_mbuf *m[256], *got[256];
	uint8_t how[256];
	unsigned int i;

	create_and_attach(NULL);
	packets(m, 256);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 256), 256);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 256), 256);
	for (i = 0; i < 256; i++)
		how[i] = (uint8_t)i & ~NFMETA_INJECTED;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 256), 256);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, got, how, 256), 256);
	ck_assert_mem_eq(m, got, sizeof(m));
	for (i = 0; i < 256; i++)
		ck_assert_uint_eq(how[i], (i & 3) == 3 ? NFMETA_DROP : (i & 3));
	rte_pktmbuf_free_bulk(got, 256);
	detach_and_destroy();
}
END_TEST

START_TEST(blanks)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 100, .pool = pool);
	struct rte_mbuf *b[200], *m[64], *got[200];
	struct nfmeta_link_stats s;
	uint8_t how[200];
	unsigned int i, k;

	create_and_attach(&o);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE - 100);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, b, 200), 100);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, b, 1), 0);
	for (i = 0; i < 100; i++) {
		ck_assert_uint_eq(b[i]->pkt_len, 0);
		ck_assert_uint_eq(b[i]->nb_segs, 1);
		ck_assert_uint_eq(b[i]->data_off, RTE_PKTMBUF_HEADROOM);
		ck_assert_uint_eq(b[i]->ol_flags, 0);
		*(uint32_t *)rte_pktmbuf_append(b[i], 54) = 1000 + i;
		how[i] = NFMETA_INJECTED | (i % 2 ? NFMETA_BACKWARD : NFMETA_FORWARD);
	}
	/* Not one more while they are out. */
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, got, how, 1), 0);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE - 100);
	s = stats();
	ck_assert_uint_eq(s.blanks, 100);
	ck_assert_uint_eq(s.injected, 0);

	/* The up ring takes all packets and all blanks at once. */
	packets(m, 64);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 64), 64);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 64), 64);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 64), 64);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, b, how, 100), 100);
	s = stats();
	ck_assert_uint_eq(s.injected, 100);
	ck_assert_uint_eq(s.returned, 64);
	ck_assert_uint_eq(s.up, 164);

	k = nfmeta_collect_burst(link_p, 0, got, how, 200);
	ck_assert_uint_eq(k, 164);
	for (i = 0; i < 100; i++) {
		ck_assert_uint_eq(how[64 + i],
				  NFMETA_INJECTED | (i % 2 ? NFMETA_BACKWARD : NFMETA_FORWARD));
		ck_assert_uint_eq(number(got[64 + i]), 1000 + i);
	}
	rte_pktmbuf_free_bulk(got, k);
	s = stats();
	ck_assert_uint_eq(s.collected, 64);
	ck_assert_uint_eq(s.up, 0);

	/* Stocked again, a bulk per call. */
	for (i = 0; i < 4; i++)
		nfmeta_collect_burst(link_p, 0, got, how, 1);
	k = nfmeta_blank_burst(link_n, b, 200);
	ck_assert_uint_gt(k, 68);
	memset(how, NFMETA_INJECTED | NFMETA_DROP, sizeof(how)); /* not needed after all */
	ck_assert_uint_eq(nfmeta_return_burst(link_n, b, how, k), k);
	detach_and_destroy();
}
END_TEST

START_TEST(blanks_of_an_empty_pool)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.blanks = 64, .pool = pool);
	struct rte_mbuf *all[POOL_SIZE], *b[64];
	uint8_t how[64];

	packets(all, POOL_SIZE - 10);
	create_and_attach(&o);
	ck_assert_uint_le(nfmeta_blank_burst(link_n, b, 64), 10);
	rte_pktmbuf_free_bulk(all, POOL_SIZE - 10);
	nfmeta_collect_burst(link_p, 0, all, how, 1);
	ck_assert_uint_ge(nfmeta_blank_burst(link_n, b, 32), 32);
	memset(how, NFMETA_INJECTED | NFMETA_DROP, sizeof(how));
	ck_assert_uint_eq(nfmeta_return_burst(link_n, b, how, 32), 32);
	detach_and_destroy();

	create_and_attach(NULL); /* none asked for */
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, b, 64), 0);
	detach_and_destroy();
}
END_TEST

START_TEST(detach_busy)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.blanks = 1, .pool = pool);
	struct rte_mbuf *m, *b;
	uint8_t how = NFMETA_INJECTED | NFMETA_DROP;

	create_and_attach(&o);
	packets(&m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, &m, NULL, 1), 1);
	ck_refused(nfmeta_link_detach(link_n), EBUSY);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, &b, 1), 1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 1);
	ck_refused(nfmeta_link_detach(link_n), EBUSY);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &b, &how, 1), 1);
	detach_and_destroy();
}
END_TEST

START_TEST(destroy_busy)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 3);
	struct rte_mbuf *m;
	uint64_t lost = 77;

	create(&o);
	ck_ok(nfmeta_link_attach("t", 1, 0, &link_n));
	ck_refused(nfmeta_link_destroy(link_p, &lost), EBUSY);
	ck_assert_uint_eq(lost, 77);
	/* Nothing was done. */
	ck_ok(nfmeta_link_check(link_n));
	packets(&m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 1, &m, 1), 1);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, &m, NULL, 1), 1);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, &m, NULL, 1), 1);
	detach_and_destroy();
}
END_TEST

START_TEST(destroy_frees_all)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.queues = 2, .ring_size = 256, .blanks = 32, .pool = pool);
	struct rte_mbuf *m[512], *got[256], *b[8];
	unsigned int before, i;
	uint8_t how[256];

	create(NULL);
	ck_ok(nfmeta_link_destroy(link_p, NULL)); /* the field stays */
	before = memzones();
	create_and_attach(&o);
	packets(m, 512);
	for (i = 0; i < 512; i += 8) /* chains, too */
		rte_pktmbuf_chain(m[i], rte_pktmbuf_alloc(pool));
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 256), 256);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 1, m + 256, 256), 256);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, NULL, 100), 100);
	for (i = 0; i < 100; i++)
		how[i] = i % 3;
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, how, 100), 100);
	ck_assert_uint_eq(nfmeta_blank_burst(link_n, b, 8), 8);
	memset(how, NFMETA_INJECTED, 8);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, b, how, 8), 8);
	nfmeta_link_close(link_p);
	packets(m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 1), 0);
	rte_pktmbuf_free(m[0]);
	detach_and_destroy();
	ck_assert_uint_eq(memzones(), before);
}
END_TEST

START_TEST(wrong_handle)
{
	struct rte_mbuf *m, *none;
	uint8_t how;

	create_and_attach(NULL);
	packets(&m, 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_n, 0, &m, 1), 0);
	ck_assert_uint_eq(nfmeta_collect_burst(link_n, 0, &none, &how, 1), 0);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_n, 0), 0);
	ck_assert_uint_eq(nfmeta_recv_burst(link_p, &none, NULL, 1), 0);
	ck_assert_uint_eq(nfmeta_return_burst(link_p, &m, NULL, 1), 0);
	ck_assert_uint_eq(nfmeta_blank_burst(link_p, &none, 1), 0);
	ck_refused(nfmeta_link_peer(link_n, 0), EINVAL);
	ck_refused(nfmeta_link_check(link_p), EINVAL);
	ck_refused(nfmeta_link_detach(link_p), EINVAL);
	ck_refused(nfmeta_link_destroy(link_n, NULL), EINVAL);
	nfmeta_link_close(link_n);
	ck_ok(nfmeta_link_check(link_n));
	/* A queue that is not there. */
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 1, &m, 1), 0);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 1, &none, &how, 1), 0);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 1), 0);
	ck_refused(nfmeta_link_peer(link_p, 1), EINVAL);
	rte_pktmbuf_free(m);
	detach_and_destroy();
}
END_TEST

START_TEST(heartbeats)
{
	const struct nfmeta_shared_link *s;
	const struct nfmeta_shared_queue *q;
	struct rte_mbuf *none;
	uint64_t before;

	create_and_attach(NULL);
	s = nfmeta_link_shared(link_p);
	q = (const void *)((const uint8_t *)s + s->queue_offset);
	before = q->heartbeat;
	nfmeta_recv_burst(link_n, &none, NULL, 1);
	ck_assert_uint_eq(q->heartbeat, before + 1);
	nfmeta_link_check(link_n);
	ck_assert_uint_eq(q->heartbeat, before + 2);
	before = s->heartbeat;
	nfmeta_link_peer(link_p, 0);
	ck_assert_uint_eq(s->heartbeat, before + 1);
	ck_assert_uint_ne(s->instance, 0);
	ck_assert_str_eq(s->library_version, NFMETA_VERSION_STRING);
	detach_and_destroy();
}
END_TEST

/* The NF learns from the link where records are; those that have none say so. */
static const struct nfmeta_field_opts placements[] = {
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 16),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 32),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_UDATA64),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_HEADROOM),
};

START_TEST(records)
{
	struct nfmeta_field field;
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.field = &field);
	struct nfmeta_record recs[64], r;
	struct rte_mbuf *m[64];
	unsigned int i, n;

	ck_ok(nfmeta_field_register(&placements[_i], &field));
	create_and_attach(&o);
	ck_assert_mem_eq(nfmeta_link_field(link_n), &field, sizeof(field));
	for (n = 1; n <= 64; n++) {
		packets(m, n);
		nfmeta_record_init(&r);
		r.flags = NFMETA_FLOW_KNOWN;
		for (i = 0; i < n; i++) {
			r.flow_id = n * 1000 + i;
			if (i % 3 != 2)
				ck_assert_int_eq(nfmeta_record_set(&field, m[i], &r), 1);
		}
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, n), n);
		memset(m, 0, sizeof(m));
		memset(recs, 0xee, sizeof(recs));
		ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, recs, 64), n);
		for (i = 0; i < n; i++) {
			ck_assert_uint_eq(recs[i].size, i % 3 != 2 ? field.size : 0);
			if (i % 3 != 2)
				ck_assert_uint_eq(recs[i].flow_id, n * 1000 + i);
			ck_assert_int_eq(nfmeta_record_peek(nfmeta_link_field(link_n), m[i]) !=
						 NULL,
					 i % 3 != 2);
		}
		if (n < 64)
			ck_assert_uint_eq(((uint8_t *)&recs[n])[1], 0xee);
		ck_assert_uint_eq(nfmeta_return_burst(link_n, m, NULL, n), n);
		ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, (uint8_t[64]){0}, 64), n);
		rte_pktmbuf_free_bulk(m, n);
	}
	detach_and_destroy();
}
END_TEST

START_TEST(many_queues)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 64, .ring_size = 64);
	struct nfmeta_link *nfs[64];
	struct rte_mbuf *m[64], *got;
	uint8_t how;
	unsigned int i;

	create(&o);
	packets(m, 64);
	for (i = 0; i < 64; i++) {
		ck_ok(nfmeta_link_attach("t", i, 0, &nfs[i]));
		ck_assert_uint_eq(nfmeta_send_burst(link_p, i, &m[i], 1), 1);
	}
	for (i = 0; i < 64; i++) {
		ck_assert_uint_eq(nfmeta_recv_burst(nfs[i], &got, NULL, 1), 1);
		ck_assert_ptr_eq(got, m[i]);
		ck_assert_uint_eq(nfmeta_return_burst(nfs[i], &got, NULL, 1), 1);
		ck_assert_uint_eq(nfmeta_collect_burst(link_p, i, &got, &how, 1), 1);
		ck_assert_ptr_eq(got, m[i]);
		rte_pktmbuf_free(got);
		ck_ok(nfmeta_link_detach(nfs[i]));
	}
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}
END_TEST

/* A 9014-byte frame, in one segment and in five, to the byte. */
START_TEST(jumbo)
{
	struct rte_mempool *jumbo =
		rte_pktmbuf_pool_create("jumbo", 3, 0, 0, 16384 + 128, SOCKET_ID_ANY);
	static uint8_t bytes[9014], back[9014];
	struct nfmeta_record recs[2], r;
	struct rte_mbuf *m[2], *got[2], *s;
	unsigned int i, part, at;

	ck_assert_ptr_nonnull(jumbo);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 + (i >> 8));
	m[0] = rte_pktmbuf_alloc(jumbo);
	memcpy(rte_pktmbuf_append(m[0], sizeof(bytes)), bytes, sizeof(bytes));
	m[1] = rte_pktmbuf_alloc(pool);
	for (at = 0, s = m[1]; at < sizeof(bytes); at += part) {
		part = RTE_MIN(2048u, (unsigned int)sizeof(bytes) - at);
		if (at != 0)
			ck_assert_int_eq(rte_pktmbuf_chain(m[1], s = rte_pktmbuf_alloc(pool)), 0);
		memcpy(rte_pktmbuf_mtod(s, void *), bytes + at, part);
		s->data_len = part;
		m[1]->pkt_len += part;
	}
	ck_assert_uint_eq(m[1]->nb_segs, 5);

	create_and_attach(NULL);
	nfmeta_record_init(&r);
	for (i = 0; i < 2; i++) {
		r.flow_id = i;
		ck_assert_int_eq(nfmeta_record_set(nfmeta_link_field(link_p), m[i], &r), 1);
	}
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 2), 2);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, got, recs, 2), 2);
	for (i = 0; i < 2; i++) {
		const void *p = rte_pktmbuf_read(got[i], 0, sizeof(bytes), back);

		ck_assert_uint_eq(got[i]->pkt_len, sizeof(bytes));
		ck_assert_mem_eq(p, bytes, sizeof(bytes));
		ck_assert_uint_eq(recs[i].size, 16);
		ck_assert_uint_eq(recs[i].flow_id, i);
	}
	ck_assert_uint_eq(nfmeta_return_burst(link_n, got, NULL, 2), 2);
	detach_and_destroy();
	ck_assert_uint_eq(rte_mempool_avail_count(jumbo), 3);
}
END_TEST

/* ---- Two threads ------------------------------------------------------------------- */

#define MANY 200000

static bool done;
static uint64_t nf_received, nf_blanks;

/* An NF that returns at once, and injects a packet now and then. */
static void *
nf_thread(void *arg)
{
	struct nfmeta_record recs[32];
	struct rte_mbuf *m[33];
	uint8_t how[33];
	unsigned int i, n;

	(void)arg;
	do {
		n = nfmeta_recv_burst(link_n, m, recs, 32);
		for (i = 0; i < n; i++) {
			if (recs[i].size == 0 || recs[i].flow_id != nf_received ||
			    number(m[i]) != nf_received)
				return "wrong packet, wrong record or wrong order";
			how[i] = nf_received++ % 3;
		}
		if (n != 0 && nf_received % 7 == 0 && nfmeta_blank_burst(link_n, &m[n], 1) == 1) {
			how[n++] = NFMETA_INJECTED | NFMETA_BACKWARD;
			nf_blanks++;
		}
		if (nfmeta_return_burst(link_n, m, how, n) != n)
			return "return failed";
	} while (n != 0 || !__atomic_load_n(&done, __ATOMIC_ACQUIRE));
	return nfmeta_link_detach(link_n) == 0 ? NULL : "detach failed";
}

START_TEST(two_threads)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 256, .when_full = policies[_i], .wait_us = 10000000,
				 .blanks = 16, .pool = pool);
	struct rte_mbuf *m[32], *got[64];
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct nfmeta_record r;
	uint32_t next = 0, expect = 0, injected = 0;
	unsigned int i, n = 0, k, idle = 0;
	pthread_t thread;
	uint8_t how[64];
	void *wrong;

	create_and_attach(&o);
	nfmeta_record_init(&r);
	pthread_create(&thread, NULL, nf_thread, NULL);
	while (expect < MANY) {
		for (; n < 32 && next < MANY; n++, next++) {
			m[n] = rte_pktmbuf_alloc(pool);
			if (m[n] == NULL)
				break;
			*(uint32_t *)rte_pktmbuf_append(m[n], 60) = next;
			r.flow_id = next;
			nfmeta_record_set(nfmeta_link_field(link_p), m[n], &r);
		}
		k = nfmeta_send_burst(link_p, 0, m, n);
		memmove(m, m + k, (n - k) * sizeof(*m));
		n -= k;
		if (policies[_i] == NFMETA_FULL_WAIT)
			ck_assert_uint_eq(n, 0);
		k = nfmeta_collect_burst(link_p, 0, got, how, 64);
		for (i = 0; i < k; i++) {
			if (how[i] & NFMETA_INJECTED) {
				injected++;
				continue;
			}
			ck_assert_uint_eq(number(got[i]), expect);
			ck_assert_uint_eq(how[i], expect % 3);
			expect++;
		}
		rte_pktmbuf_free_bulk(got, k);
		idle = k ? 0 : idle + 1;
		if (idle > 1000)
			usleep(100);
		ck_assert_uint_lt(idle, 100000);
		ck_ok(nfmeta_link_stats(link_p, 0, &s));
		ck_assert_uint_le(s.down, 256);
		ck_assert_uint_le(s.held, 256);
		ck_assert_uint_le(s.up, 2 * (256 + 16));
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(thread, &wrong);
	ck_assert_msg(wrong == NULL, "%s", (char *)wrong);
	while ((k = nfmeta_collect_burst(link_p, 0, got, how, 64)) != 0) {
		injected += k;
		rte_pktmbuf_free_bulk(got, k);
	}
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.sent, MANY);
	ck_assert_uint_eq(s.received, MANY);
	ck_assert_uint_eq(s.returned, MANY);
	ck_assert_uint_eq(s.collected, MANY);
	ck_assert_uint_eq(s.blanks, nf_blanks);
	ck_assert_uint_eq(s.injected, injected);
	ck_assert_uint_eq(injected, nf_blanks);
	if (policies[_i] == NFMETA_FULL_WAIT)
		ck_assert_uint_eq(s.refused, 0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
}
END_TEST

int
main(void)
{
	const char *run = getenv("NFMETA_RUN_ID");
	Suite *s = suite_create("link");
	TCase *t = tcase_create("link"), *bare = tcase_create("without EAL");
	SRunner *sr = srunner_create(s);
	char dir[128];
	int failed;

	suite_add_tcase(s, bare);
	tcase_add_test(bare, without_eal);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, create_bad_name);
	tcase_add_test(t, create_good_names);
	tcase_add_test(t, create_bad_option);
	tcase_add_test(t, create_bad_field);
	tcase_add_test(t, create_other_opts_size);
	tcase_add_test(t, create_twice);
	tcase_add_test(t, create_name_taken);
	tcase_add_test(t, create_without_memory);
	tcase_add_test(t, memory_of_a_link);
	tcase_add_test(t, attach_unknown);
	tcase_add_test(t, attach_waits_for_the_link);
	tcase_add_test(t, attach_one_at_a_time);
	tcase_add_test(t, attach_closing);
	tcase_add_test(t, attach_half_built);
	tcase_add_test(t, older_primary);
	tcase_add_test(t, tampered_handshake);
	tcase_add_test(t, newer_minor);
	tcase_add_test(t, counters_are_exact);
	tcase_add_test(t, stats_of_other_sizes);
	tcase_add_loop_test(t, full, 0, RTE_DIM(policies));
	tcase_add_test(t, wait_is_bounded);
	tcase_add_test(t, wait_sets_aside);
	tcase_add_test(t, return_more_than_held);
	tcase_add_loop_test(t, foreign, 0, 2);
	tcase_add_test(t, unknown_disposition);
	tcase_add_test(t, blanks);
	tcase_add_test(t, blanks_of_an_empty_pool);
	tcase_add_test(t, detach_busy);
	tcase_add_test(t, destroy_busy);
	tcase_add_test(t, destroy_frees_all);
	tcase_add_test(t, wrong_handle);
	tcase_add_test(t, heartbeats);
	tcase_add_loop_test(t, records, 0, RTE_DIM(placements));
	tcase_add_test(t, many_queues);
	tcase_add_test(t, jumbo);
	tcase_add_loop_test(t, two_threads, 0, RTE_DIM(policies));
	snprintf(prefix, sizeof(prefix), "%s-link-%d", run != NULL ? run : "nfmeta", getpid());
	srunner_run_all(sr, CK_NORMAL);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
