/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Every allocation and lookup of the library fails once (the first, the second, ...
 * until there is none left to fail), and again with all that follow it: an error
 * that says so, nothing left behind, and the same call works after it.  lib/ is
 * compiled in with inject.h in front.  Then links that come and go 1000 times.
 */
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "../lib/internal.h"
#include "twoproc.h"

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void); /* gcc comes without the header */
#endif

#define BURST 32
#define BLOCKS 1024

/* ---- Calls that fail: what inject.h asks ------------------------------------------------ */

bool inject(const char *call, int error);
void *inject_took(void *block);
void inject_gave(void *block);
void *inject_mapped(void *map, size_t len);
void inject_unmapped(size_t len);

static unsigned int asked;   /* calls since arm() */
static unsigned int fail_at; /* the one that fails, counted from 1; 0: none */
static bool fail_on;	     /* ... and all after it */
static const char *failed;   /* the first one that failed */
static bool unlink_failed;   /* since arm() */
static char all_failed[512]; /* names of all that ever failed, " name name " */
static void *blocks[BLOCKS];
static unsigned int live_blocks;
static size_t mapped;

/* What happens just before the next fcntl(). */
static void (*meanwhile)(void);

bool
inject(const char *call, int error)
{
	char name[64];

	if (meanwhile != NULL && strcmp(call, "fcntl") == 0) {
		void (*now)(void) = meanwhile;

		meanwhile = NULL;
		now();
	}
	asked++;
	if (fail_at == 0 || asked < fail_at || (asked > fail_at && !fail_on))
		return false;
	if (failed == NULL)
		failed = call;
	snprintf(name, sizeof(name), " %s ", call);
	if (strstr(all_failed, name) == NULL)
		snprintf(all_failed + strlen(all_failed), sizeof(all_failed) - strlen(all_failed),
			 "%s", name);
	unlink_failed = unlink_failed || strcmp(call, "unlink") == 0;
	errno = error;
	rte_errno = error;
	return true;
}

static void
arm(unsigned int n, bool on)
{
	asked = 0;
	fail_at = n;
	fail_on = on;
	failed = NULL;
	unlink_failed = false;
}

/* The call that failed first, or NULL. */
static const char *
disarm(void)
{
	fail_at = 0;
	return failed;
}

void *
inject_took(void *block)
{
	if (block != NULL && live_blocks < BLOCKS)
		blocks[live_blocks++] = block;
	return block;
}

/* Not in the list: libc made it (open_memstream). */
void
inject_gave(void *block)
{
	unsigned int i;

	for (i = 0; i < live_blocks; i++)
		if (blocks[i] == block) {
			blocks[i] = blocks[--live_blocks];
			return;
		}
}

void *
inject_mapped(void *map, size_t len)
{
	if (map != MAP_FAILED)
		mapped += len;
	return map;
}

void
inject_unmapped(size_t len)
{
	mapped -= len;
}

/* ---- What there is ------------------------------------------------------------------------ */

static unsigned int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

/* The library's files; asserts nothing. */
static unsigned int
own_files(const char *start, bool remove)
{
	DIR *d = opendir(run_file("", ""));
	struct dirent *e;
	unsigned int n = 0;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, start, strlen(start)) != 0)
			continue;
		n++;
		if (remove)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d != NULL)
		closedir(d);
	return n;
}

struct state {
	unsigned int zones, files, descriptors, blocks, packets, huge_blocks;
	size_t mapped, huge_bytes;
};

static struct state
look(void)
{
	struct rte_malloc_socket_stats heap;
	struct state s = {0};

	if (rte_lcore_count() != 0) {
		s.zones = memzones();
		s.packets = pool != NULL ? rte_mempool_avail_count(pool) : 0;
		rte_malloc_get_socket_stats(0, &heap);
		s.huge_blocks = heap.alloc_count;
		s.huge_bytes = heap.heap_allocsz_bytes;
	}
	s.files = own_files("nfmeta.", false);
	s.descriptors = descriptors();
	s.blocks = live_blocks;
	s.mapped = mapped;
	return s;
}

/* NULL, or what is not as it was. */
static const char *
changed(const struct state *was)
{
	const struct state is = look();
	static char text[160];

#define SAME(what)                                                                                 \
	if (was->what != is.what) {                                                                \
		snprintf(text, sizeof(text), #what " was %zu, is %zu (hugepage heap %zd bytes)",   \
			 (size_t)was->what, (size_t)is.what,                                       \
			 (ssize_t)(is.huge_bytes - was->huge_bytes));                              \
		return text;                                                                       \
	}
	SAME(zones)
	SAME(files)
	SAME(descriptors)
	SAME(blocks)
	SAME(packets)
	SAME(huge_blocks)
	SAME(huge_bytes)
	SAME(mapped)
#undef SAME
	return NULL;
}

/* ---- One call of the library, made to fail in every place ----------------------------------- */

struct call {
	int (*run)(void);
	void (*before)(void);  /* makes what run() takes down; or NULL */
	void (*undo)(void);    /* takes back what run() made; or NULL */
	const int *codes;      /* documented errors, ended by 0 */
	const char *forgiven;  /* " name name ": their failure may go unnoticed */
	const char *must_fail; /* names that have to be among those that failed */
};

static bool
among(const char *names, const char *name)
{
	char with_blanks[80];

	snprintf(with_blanks, sizeof(with_blanks), " %s ", name);
	return strstr(names, with_blanks) != NULL;
}

static bool
documented(const struct call *c, int rc)
{
	const int *code;

	for (code = c->codes; *code != 0; code++)
		if (rc == -*code)
			return true;
	return false;
}

#define WRONG(...)                                                                                 \
	do {                                                                                       \
		snprintf(text, sizeof(text), __VA_ARGS__);                                         \
		return text;                                                                       \
	} while (0)

/*
 * NULL, or what is wrong.  Asserts nothing itself: it runs in children, too.  The
 * first success is to warm up: what DPDK or libc keep for ever is there then.
 */
static const char *
try_call(const struct call *c, bool on)
{
	static char text[1400];
	struct state base, before;
	const char *what, *left;
	unsigned int n, hits = 0;
	char name[64];
	int rc;

	all_failed[0] = '\0';
	for (n = 0; n < 200; n++) {
		base = look();
		if (c->before != NULL)
			c->before();
		before = look();
		nfmeta__fail(0, "%s", "");
		arm(n, on);
		rc = c->run();
		what = disarm();
		if (n != 0 && what == NULL && asked >= n)
			WRONG("call %u was to fail and did not", n);
		if (rc != 0 && what == NULL)
			WRONG("nothing failed, but it says %s: %s", nfmeta_strerror(rc),
			      nfmeta_error());
		if (rc != 0) {
			hits++;
			if (!documented(c, rc))
				WRONG("call %u, %s, failed: %s is not documented: %s", n, what,
				      nfmeta_strerror(rc), nfmeta_error());
			if (strlen(nfmeta_error()) < 16)
				WRONG("call %u, %s, failed: %s says only '%s'", n, what,
				      nfmeta_strerror(rc), nfmeta_error());
			if (unlink_failed)
				own_files("nfmeta.t.", true); /* the library could not */
			left = changed(&before);
			if (left != NULL)
				WRONG("call %u, %s, failed (%s): %s", n, what, nfmeta_error(),
				      left);
			rc = c->run();
			if (rc != 0)
				WRONG("call %u, %s, failed; the next try says %s: %s", n, what,
				      nfmeta_strerror(rc), nfmeta_error());
		} else if (what != NULL && !among(c->forgiven, what)) {
			WRONG("call %u, %s, failed, and nobody noticed", n, what);
		}
		if (c->undo != NULL)
			c->undo();
		if (unlink_failed)
			own_files("nfmeta.t.", true);
		left = n == 0 ? NULL : changed(&base);
		if (left != NULL)
			WRONG("after call %u, %s, had failed: %s", n, what != NULL ? what : "none",
			      left);
		if (n != 0 && what == NULL)
			break;
	}
	if (n == 200)
		WRONG("there is no end to it");
	if (hits == 0)
		WRONG("no failure was noticed");
	for (left = c->must_fail; sscanf(left, "%63s", name) == 1;) {
		if (!among(all_failed, name))
			WRONG("%s never failed; these did:%s", name, all_failed);
		left = strstr(left, name) + strlen(name);
	}
	return NULL;
}

#define ck_try(call)                                                                               \
	do {                                                                                       \
		const char *wrong_ = try_call(call, false);                                        \
                                                                                                   \
		ck_assert_msg(wrong_ == NULL, "one fails: %s", wrong_);                            \
		wrong_ = try_call(call, true);                                                     \
		ck_assert_msg(wrong_ == NULL, "all fail from one on: %s", wrong_);                 \
	} while (0)

/* ---- Links, in the primary -------------------------------------------------------------------- */

static struct nfmeta_link *link_p, *link_n;
static struct nfmeta_table *table;
static struct nfmeta_link_opts opts;
static struct nfmeta_field field;

/* 0 is the smallest; the sum of all is the largest. */
static void
choose(int i)
{
	static const struct nfmeta_link_opts all[] = {
		NFMETA_LINK_OPTS(.ring_size = 64),
		NFMETA_LINK_OPTS(.ring_size = 64, .blanks = 16, .when_full = NFMETA_FULL_WAIT),
		NFMETA_LINK_OPTS(.ring_size = 64, .carrier = NFMETA_CARRIER_RING),
		NFMETA_LINK_OPTS(.ring_size = 64, .carrier = NFMETA_CARRIER_INBAND, .blanks = 16),
		NFMETA_LINK_OPTS(.ring_size = 64, .carrier = NFMETA_CARRIER_TABLE),
		NFMETA_LINK_OPTS(.ring_size = 64, .queues = 3, .blanks = 64,
				 .when_full = NFMETA_FULL_WAIT, .carrier = NFMETA_CARRIER_RING),
	};

	opts = all[i];
	opts.pool = pool;
	if (opts.carrier == NFMETA_CARRIER_TABLE || opts.queues > 1) {
		ck_ok(nfmeta_table_create("flows", 100, &table));
		opts.table = table;
	}
}
#define CHOICES 6

static int
create(void)
{
	return nfmeta_link_create("t", &opts, &link_p);
}

static void
must_create(void)
{
	ck_ok(create());
}

static int
destroy(void)
{
	return nfmeta_link_destroy(link_p, NULL);
}

static void
must_destroy(void)
{
	ck_ok(destroy());
}

static int
attach(void)
{
	return nfmeta_link_attach("t", 0, 0, &link_n);
}

static void
must_detach(void)
{
	ck_ok(nfmeta_link_detach(link_n));
}

static const int create_codes[] = {ENOMEM, EMFILE, EROFS, ENOLCK, 0};
static const int destroy_codes[] = {EBUSY, 0};
static const int attach_codes[] = {ENOMEM,	    NFMETA_ENOLINK,	NFMETA_EFORMAT,
				   NFMETA_EPOOLOPS, NFMETA_EQUEUETAKEN, 0};

START_TEST(create_fails)
{
	static const char *const must[CHOICES] = {
		"aligned_alloc rte_memzone_reserve_aligned rte_ring_create mmap open fcntl unlink",
		"rte_pktmbuf_alloc_bulk calloc",
		"calloc malloc",
		"calloc malloc rte_pktmbuf_alloc_bulk",
		"calloc malloc rte_ring_create",
		("aligned_alloc rte_memzone_reserve_aligned rte_ring_create mmap open fcntl unlink "
		 "rte_pktmbuf_alloc_bulk calloc malloc rte_mp_action_register"),
	};
	const struct call c = {
		.run = create,
		.undo = must_destroy,
		.codes = create_codes,
		/* fewer blanks, for now; there was no file to unlink */
		.forgiven = " rte_pktmbuf_alloc_bulk unlink rte_mp_action_register ",
		.must_fail = must[_i],
	};

	choose(_i);
	ck_ok(nfmeta_field_register(NULL, &field));
	opts.field = &field;
	ck_try(&c);
	nfmeta_table_destroy(table);
	table = NULL;
}
END_TEST

/* The link registers the field by itself. */
START_TEST(create_with_field_fails)
{
	const struct call c = {
		.run = create,
		.undo = must_destroy,
		.codes = create_codes,
		.forgiven = " unlink rte_mp_action_register ",
		.must_fail = "rte_mbuf_dynfield_register rte_mbuf_dynflag_register "
			     "rte_memzone_lookup",
	};

	choose(0);
	ck_try(&c);
}
END_TEST

START_TEST(destroy_fails)
{
	const struct call c = {
		.run = destroy,
		.before = must_create,
		.codes = destroy_codes,
		.forgiven = " unlink ",
		.must_fail = "fcntl unlink",
	};

	choose(_i);
	ck_try(&c);
	nfmeta_table_destroy(table);
	table = NULL;
}
END_TEST

START_TEST(attach_fails)
{
	static const char *const must[CHOICES] = {
		("aligned_alloc open fcntl fstat stat rte_memzone_lookup rte_mempool_lookup "
		 "rte_ring_lookup"),
		"rte_ring_lookup",
		"calloc rte_ring_lookup",
		"calloc",
		"calloc rte_memzone_lookup",
		"calloc rte_memzone_lookup rte_ring_lookup",
	};
	const struct call c = {
		.run = attach,
		.undo = must_detach,
		.codes = attach_codes,
		/* it tries once more when the queue seems to be taken */
		.forgiven = " rte_mp_action_register fcntl ",
		.must_fail = must[_i],
	};

	choose(_i);
	must_create();
	ck_try(&c);
	must_destroy();
	nfmeta_table_destroy(table);
	table = NULL;
}
END_TEST

/* ---- Tables and fields ---------------------------------------------------------------------- */

static int
create_table(void)
{
	return nfmeta_table_create("flows", 1000, &table);
}

static void
destroy_table(void)
{
	nfmeta_table_destroy(table);
	table = NULL;
}

START_TEST(table_fails)
{
	static const int codes[] = {ENOMEM, 0};
	const struct call c = {
		.run = create_table,
		.undo = destroy_table,
		.codes = codes,
		.forgiven = "",
		.must_fail = "calloc rte_memzone_reserve_aligned",
	};

	ck_try(&c);
}
END_TEST

/*
 * DPDK cannot unregister: what was registered before the call that failed stays, and
 * the next try gets one step further.
 */
START_TEST(field_fails)
{
	static const struct nfmeta_field_opts places[] = {
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 32),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_UDATA64),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_HEADROOM),
	};
	struct nfmeta_field again, zero = {0};
	unsigned int n, fields = places[_i].placement == NFMETA_PLACE_HEADROOM ? 0 : 2;
	int rc;

	for (n = 1; n < 20; n++) {
		memset(&field, 0, sizeof(field));
		nfmeta__fail(0, "%s", "");
		arm(n, false);
		rc = nfmeta_field_register(&places[_i], &field);
		if (disarm() == NULL)
			break;
		if (rc == 0) { /* a description that is not there cannot be found */
			ck_assert_str_eq(failed, "rte_memzone_lookup");
			break;
		}
		ck_assert_msg(rc == -ENOMEM, "%s: %s: %s", failed, nfmeta_strerror(rc),
			      nfmeta_error());
		ck_assert_uint_gt(strlen(nfmeta_error()), 15);
		ck_assert_mem_eq(&field, &zero, sizeof(field));
	}
	ck_assert_uint_ge(n, fields + 2);
	ck_ok(nfmeta_field_register(&places[_i], &field));
	ck_ok(nfmeta_field_register(&places[_i], &again));
	ck_assert_mem_eq(&field, &again, sizeof(field));
}
END_TEST

START_TEST(field_description_fails)
{
	struct state was;

	/* 2 fields, flag, lookup, reserve */
	ck_assert_int_eq(rte_lcore_count() != 0, 1);
	arm(5, false);
	ck_assert_int_eq(nfmeta_field_register(NULL, &field), -ENOMEM);
	ck_assert_str_eq(disarm(), "rte_memzone_reserve");
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "no memory"));
	was = look();
	arm(5, false);
	ck_assert_int_eq(nfmeta_field_register(NULL, &field), -ENOMEM);
	disarm();
	ck_assert_ptr_null(changed(&was));
	ck_ok(nfmeta_field_register(NULL, &field));
}
END_TEST

/* ---- While packets and messages move ---------------------------------------------------------- */

/* Packets of a pool that is younger than the link want a larger map. */
START_TEST(send_fails)
{
	struct rte_mempool *young;
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	struct nfmeta_link_stats s = {.sz = sizeof(s)};

	choose(0);
	must_create();
	ck_ok(attach());
	young = rte_pktmbuf_pool_create("young", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(young);
	ck_assert_int_eq(rte_pktmbuf_alloc_bulk(young, m, BURST), 0);
	arm(1, true);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, BURST), 0);
	ck_assert_str_eq(disarm(), "mmap");
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.sent, 0);
	ck_assert_uint_eq(s.refused, BURST);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, BURST), BURST);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, NULL, BURST), BURST);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, NULL, BURST), BURST);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, BURST), BURST);
	rte_pktmbuf_free_bulk(m, BURST);
	must_detach();
	must_destroy();
	ck_assert_uint_eq(rte_mempool_avail_count(young), 255);
	rte_mempool_free(young);
	ck_assert_uint_eq(mapped, 0);
}
END_TEST

/* Without an mbuf a snapshot is told later, and other messages wait, or are given up. */
START_TEST(inband_fails)
{
	struct nfmeta_flow_state flow = {.flow_id = 1, .flow_gen = 1};
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};
	const struct nfmeta_flow_batch *b;
	const bool waits = _i == 0;
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	int rc;

	choose(3);
	opts.flow_backlog = waits ? 0 : NFMETA_NO_BACKLOG;
	must_create();
	ck_ok(attach());
	ck_ok(nfmeta_flow_subscribe(link_n, NFMETA_TYPE(NFMETA_MSG_NEW)));
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, BURST), 0);
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &b), 1);
	ck_assert_uint_eq(b->type, NFMETA_MSG_RESYNC);
	arm(1, true);
	rc = nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST);
	ck_assert_str_eq(disarm(), "rte_pktmbuf_alloc");
	ck_assert_int_eq(rc, -EAGAIN);
	ck_ok(nfmeta_flow_snapshot(link_p, 0, NULL, 0, NFMETA_MSG_FIRST | NFMETA_MSG_LAST));

	nfmeta__fail(0, "%s", "");
	arm(1, true);
	rc = nfmeta_flow_send(link_p, 0, NFMETA_MSG_NEW, &flow, 1);
	ck_assert_str_eq(disarm(), "rte_pktmbuf_alloc");
	ck_assert_int_eq(rc, waits ? 0 : -EAGAIN);
	ck_assert_int_eq(strlen(nfmeta_error()) > 15, !waits);
	ck_ok(nfmeta_flow_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.backlog, waits);
	ck_assert_uint_eq(s.lost, !waits);
	ck_assert_int_eq(nfmeta_flow_collect(link_p, 0, &b), 0);

	ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, NULL, BURST), 0);
	ck_assert_int_eq(nfmeta_flow_next(link_n, &b), 1);
	ck_assert_uint_eq(b->type, NFMETA_MSG_SNAPSHOT);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, NULL, BURST), 0);
	if (waits) {
		ck_assert_int_eq(nfmeta_flow_next(link_n, &b), 1);
		ck_assert_uint_eq(b->type, NFMETA_MSG_NEW);
	}
	ck_assert_int_eq(nfmeta_flow_next(link_n, &b), 0);
	ck_ok(nfmeta_flow_stats(link_n, 0, &s));
	ck_assert_uint_eq(s.gaps, !waits);
	ck_assert_uint_eq(s.state, waits ? NFMETA_SYNC_SYNCED : NFMETA_SYNC_LOST);
	must_detach();
	must_destroy();
	ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

/* What a dead NF had comes back, whatever fails on the way. */
START_TEST(reclaim_fails)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct rte_mbuf *m[64];
	uint8_t how[64];
	unsigned int n, back, errors = 0;
	struct child nf;
	int rc;

	all_failed[0] = '\0';
	choose(1);
	must_create();
	for (n = 1; n < 20; n++) {
		ck_assert_int_eq(rte_pktmbuf_alloc_bulk(pool, m, 48), 0);
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 48), 48);
		nf = START("hold", prefix_of(""), "t", "20", "3");
		ck_said(&nf, 0);
		murder(&nf);
		ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
		arm(n, false);
		for (back = 0; back < 48;) {
			nfmeta__fail(0, "%s", "");
			rc = nfmeta_link_reclaim(link_p, 0, m, how, 32);
			ck_assert_int_ne(rc, 0);
			if (rc < 0) {
				errors++;
				ck_assert_msg(rc == -ENOMEM || rc == -EBUSY, "%s", nfmeta_error());
				ck_assert_uint_gt(strlen(nfmeta_error()), 15);
				continue;
			}
			back += (unsigned int)rc;
			rte_pktmbuf_free_bulk(m, (unsigned int)rc);
		}
		ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 32), 0);
		ck_assert_uint_eq(back, 48);
		ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
		if (disarm() == NULL)
			break;
	}
	ck_assert_uint_lt(n, 20);
	ck_assert_msg(among(all_failed, "malloc") && among(all_failed, "fcntl"), "only%s",
		      all_failed);
	ck_assert_uint_ge(errors, 2);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.reclaimed, s.sent);
	must_destroy();
	remove_dead_lcores();
	ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

static void
nf_leaves(void)
{
	const struct nfmeta_shared_link *s = nfmeta_link_shared(link_p);
	struct nfmeta_shared_queue *q = (void *)((uintptr_t)s + s->queue_offset);

	__atomic_store_n(&q->state, NFMETA_QUEUE_FREE, __ATOMIC_RELEASE);
}

/* It leaves in good order between the look and the lock: packets wait for the next one. */
START_TEST(left_meanwhile)
{
	struct rte_mbuf *m[48];
	struct child nf;
	uint8_t how[48];

	choose(1);
	must_create();
	ck_assert_int_eq(rte_pktmbuf_alloc_bulk(pool, m, 48), 0);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 48), 48);
	nf = START("hold", prefix_of(""), "t", "0", "0");
	ck_said(&nf, 0);
	murder(&nf);
	meanwhile = nf_leaves;
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 48), 0);
	ck_assert(meanwhile == NULL);
	ck_assert_uint_eq(nfmeta_link_in_flight(link_p, 0), 48);
	nf = START("hold", prefix_of(""), "t", "48", "0");
	ck_said(&nf, 0);
	murder(&nf);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 48), 48);
	rte_pktmbuf_free_bulk(m, 48);
	ck_assert_int_eq(nfmeta_link_reclaim(link_p, 0, m, how, 48), 0);
	must_destroy();
	remove_dead_lcores();
	ck_assert_uint_eq(live_blocks, 0);
}
END_TEST

/* ---- A secondary -------------------------------------------------------------------------------- */

static const char *eal_prefix;

static int
eal_attach(void)
{
	struct nfmeta_eal_opts o =
		NFMETA_EAL_OPTS(.file_prefix = eal_prefix, .log_file = run_file("", "nf.log"));

	return nfmeta_eal_attach(&o);
}

/* hold PREFIX LINK N BLANKS: take packets and blanks, and be killed. */
static int
role_hold(char **arg)
{
	unsigned int packets = (unsigned int)atoi(arg[2]), taken = (unsigned int)atoi(arg[3]);
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0]);
	struct rte_mbuf *m[64];
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 5000, &link_n);
	while (rc == 0 && packets > 0)
		packets -= nfmeta_recv_burst(link_n, m, NULL, (uint16_t)packets);
	while (rc == 0 && taken > 0)
		taken -= nfmeta_blank_burst(link_n, m, (uint16_t)taken);
	say(rc);
	wait_for_parent();
	return rc != 0;
}

/*
 * eal PREFIX: each call before rte_eal_init fails, all is as before and can be tried
 * again; then rte_eal_init is said to fail, once and for all.
 */
static int
role_eal(char **arg)
{
	static const int codes[] = {NFMETA_EEAL, NFMETA_ENOPRIMARY, NFMETA_ENOHUGE, EINVAL, 0};
	const struct call c = {.codes = codes};
	struct state before = {0};
	unsigned int n;
	int rc = 0;

	eal_prefix = arg[0];
	for (n = 1; n < 100; n++) {
		nfmeta__fail(0, "%s", "");
		if (n == 2)
			before = look(); /* the log stream stays */
		arm(n, true);
		rc = eal_attach();
		if (disarm() == NULL || strcmp(failed, "rte_eal_init") == 0)
			break;
		if (rc == 0 || !documented(&c, rc) || strlen(nfmeta_error()) < 16) {
			printf("1 call %u, %s: %d %s\n", n, failed, rc, nfmeta_error());
			fflush(stdout);
			return 1;
		}
		/* A file that could not be locked is nobody's: the next one takes it. */
		own_files("nfmeta.lcore.", true);
		if (n > 2 && changed(&before) != NULL) {
			printf("1 call %u, %s: %s\n", n, failed, changed(&before));
			fflush(stdout);
			return 1;
		}
	}
	if (strcmp(failed != NULL ? failed : "nothing", "rte_eal_init") != 0 ||
	    rc != -NFMETA_EEAL || !among(all_failed, "open") || !among(all_failed, "pread") ||
	    !among(all_failed, "fopencookie") || !among(all_failed, "pthread_getaffinity_np") ||
	    !among(all_failed, "fcntl") || !among(all_failed, "access"))
		printf("1 %d, after%s: %s\n", rc, all_failed, nfmeta_error());
	else if (eal_attach() != -EALREADY)
		printf("1 it tried again: %s\n", nfmeta_error());
	else
		printf("0 %u %s\n", n, all_failed);
	fflush(stdout);
	return 0;
}

static void
detach_in_child(void)
{
	nfmeta_link_detach(link_n);
}

/* attach PREFIX: as in the primary; what asks for the primary's life is asked here only. */
static int
role_attach(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0]);
	const struct call c = {
		.run = attach,
		.undo = detach_in_child,
		.codes = attach_codes,
		.forgiven = " rte_mp_action_register fcntl ",
		.must_fail = "aligned_alloc open fcntl fstat stat rte_memzone_lookup "
			     "rte_mempool_lookup rte_ring_lookup calloc",
	};
	const char *wrong = NULL;

	if (nfmeta_eal_attach(&o) != 0)
		wrong = nfmeta_error();
	if (wrong == NULL)
		wrong = try_call(&c, false);
	if (wrong == NULL)
		wrong = try_call(&c, true);
	printf("%d %s\n", wrong != NULL, wrong != NULL ? wrong : "ok");
	fflush(stdout);
	nfmeta_eal_detach();
	return 0;
}

START_TEST(eal_attach_fails)
{
	struct child c = START("eal", prefix_of(""));

	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
	unlink(run_file("", "nf.log"));
	own_files("nfmeta.lcore.", true);
}
END_TEST

START_TEST(attach_in_a_secondary_fails)
{
	struct child c;

	choose(5);
	must_create();
	c = START("attach", prefix_of(""));
	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
	must_destroy();
	destroy_table();
}
END_TEST

/* ---- Come and go ---------------------------------------------------------------------------------- */

struct growth {
	struct state state;
	size_t heap, maps;
};

static struct growth
measure(void)
{
	struct growth g = {.state = look()};
	FILE *f = fopen("/proc/self/maps", "r");
	int c;

	while (f != NULL && (c = getc(f)) != EOF)
		g.maps += c == '\n';
	if (f != NULL)
		fclose(f);
#ifdef __SANITIZE_ADDRESS__
	g.heap = __sanitizer_get_current_allocated_bytes();
	g.maps = 0; /* it keeps what was freed */
#else
	g.heap = mallinfo2().uordblks;
#endif
	return g;
}

/* NULL, or what grew.  A block takes 32 bytes at least; a few more or less are Check's. */
static const char *
grew(const struct growth *was, unsigned int rounds)
{
	struct growth is = measure();
	static char text[200];

	if (changed(&was->state) != NULL)
		return changed(&was->state);
	if (is.heap <= was->heap + 16 * rounds + 1024 && is.maps <= was->maps + 2)
		return NULL;
	snprintf(text, sizeof(text),
		 "in %u rounds: heap from %zu to %zu bytes, maps from %zu to %zu", rounds,
		 was->heap, is.heap, was->maps, is.maps);
	return text;
}

/* rounds PREFIX N: attach and leave so often. */
static int
role_rounds(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0]);
	unsigned int rounds = (unsigned int)atoi(arg[1]), i;
	struct growth begin = {0};
	const char *wrong = NULL;
	int rc = nfmeta_eal_attach(&o);

	for (i = 0; rc == 0 && i < rounds + 10; i++) {
		if (i == 10)
			begin = measure();
		rc = nfmeta_link_attach("t", 0, 1000, &link_n);
		if (rc == 0)
			rc = nfmeta_link_detach(link_n);
	}
	if (rc == 0)
		wrong = grew(&begin, rounds);
	if (rc != 0)
		wrong = nfmeta_error();
	printf("%d %s\n", wrong != NULL, wrong != NULL ? wrong : "ok");
	fflush(stdout);
	nfmeta_eal_detach();
	return 0;
}

static void
round_trip(void)
{
	struct rte_mbuf *m[4];
	uint8_t how[4];

	ck_ok(attach());
	ck_assert_int_eq(rte_pktmbuf_alloc_bulk(pool, m, 4), 0);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 4), 4);
	ck_assert_uint_eq(nfmeta_recv_burst(link_n, m, NULL, 4), 4);
	ck_assert_uint_eq(nfmeta_return_burst(link_n, m, NULL, 4), 4);
	ck_assert_uint_eq(nfmeta_collect_burst(link_p, 0, m, how, 4), 4);
	rte_pktmbuf_free_bulk(m, 4);
	must_detach();
}

/* 1000 NFs come and go on one link, in one process. */
START_TEST(thousand_attaches)
{
	struct growth begin = {0};
	const char *wrong;
	unsigned int i;

	choose(_i);
	must_create();
	for (i = 0; i < 1010; i++) {
		if (i == 10)
			begin = measure();
		round_trip();
	}
	wrong = grew(&begin, 1000);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	must_destroy();
	nfmeta_table_destroy(table);
	table = NULL;
}
END_TEST

/* The link, too. */
START_TEST(thousand_links)
{
	struct growth begin = {0};
	const char *wrong;
	unsigned int i;

	choose(_i);
	for (i = 0; i < 1010; i++) {
		if (i == 10)
			begin = measure();
		must_create();
		if (i % 2 == 0)
			round_trip();
		must_destroy();
	}
	wrong = grew(&begin, 1000);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	nfmeta_table_destroy(table);
	table = NULL;
}
END_TEST

static void
rounds(const char *n)
{
	struct child c = START("rounds", prefix_of(""), n);

	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
}

/* 200 times in a secondary process: neither it nor the primary grows. */
START_TEST(two_hundred_in_a_secondary)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct growth begin;
	const char *wrong;

	choose(5);
	must_create();
	rounds("10");
	begin = measure();
	rounds("200");
	wrong = grew(&begin, 200);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	ck_ok(nfmeta_link_stats(link_p, 0, &s));
	ck_assert_uint_eq(s.epoch, 20 + 210);
	must_destroy();
	destroy_table();
}
END_TEST

/* ---- main -------------------------------------------------------------------------------------------- */

static const struct role roles[] = {
	{"hold", 4, role_hold},
	{"eal", 1, role_eal},
	{"attach", 1, role_attach},
	{"rounds", 2, role_rounds},
};

int
main(int argc, char **argv)
{
	int status = play_role(argc, argv, roles, RTE_DIM(roles));
	TCase *one, *many;
	Suite *s;

	if (status >= 0)
		return status;
	s = suite_create("calls that fail");
	one = tcase_create("one call");
	suite_add_tcase(s, one);
	tcase_add_checked_fixture(one, setup, teardown);
	tcase_set_timeout(one, 60);
	tcase_add_loop_test(one, create_fails, 0, CHOICES);
	tcase_add_test(one, create_with_field_fails);
	tcase_add_loop_test(one, destroy_fails, 0, CHOICES);
	tcase_add_loop_test(one, attach_fails, 0, CHOICES);
	tcase_add_test(one, table_fails);
	tcase_add_loop_test(one, field_fails, 0, 4);
	tcase_add_test(one, field_description_fails);
	tcase_add_test(one, send_fails);
	tcase_add_loop_test(one, inband_fails, 0, 2);
	tcase_add_test(one, reclaim_fails);
	tcase_add_test(one, left_meanwhile);
	tcase_add_test(one, eal_attach_fails);
	tcase_add_test(one, attach_in_a_secondary_fails);
	many = tcase_create("come and go");
	suite_add_tcase(s, many);
	tcase_add_checked_fixture(many, setup, teardown);
	tcase_set_timeout(many, 120);
	tcase_add_loop_test(many, thousand_attaches, 0, CHOICES);
	tcase_add_loop_test(many, thousand_links, 0, CHOICES);
	tcase_add_test(many, two_hundred_in_a_secondary);
	return run_suite(s, "inject");
}
