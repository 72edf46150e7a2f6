/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The shared flow table: what becomes of an entry, what is refused, and that
 * no reader ever sees half of an entry.  Built together with lib/table.c, for what
 * the library does not export.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_memzone.h>

#include "../lib/internal.h"

static char prefix[64];

static void
setup(void)
{
	char *argv[] = {"test_table",
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

	ck_assert_int_ge(rte_eal_init(RTE_DIM(argv) - 1, argv), 0);
}

static void
expect(int rc, int want, const char *part)
{
	ck_assert_msg(rc == want, "%s (%s) instead of %s", nfmeta_strerror(rc), nfmeta_error(),
		      nfmeta_strerror(want));
	ck_assert_msg(strstr(nfmeta_error(), part) != NULL, "'%s' lacks '%s'", nfmeta_error(),
		      part);
}

static struct nfmeta_table *
make(const char *name, uint32_t flows)
{
	struct nfmeta_table *t = NULL;
	int rc = nfmeta_table_create(name, flows, &t);

	ck_assert_msg(rc == 0, "%s", nfmeta_error());
	ck_assert_ptr_nonnull(t);
	return t;
}

/* An entry that no table is needed for. */
static struct nfmeta_table_flow entry __attribute__((aligned(64)));

static struct nfmeta_table_flow
copy_of(const struct nfmeta_table_flow *f, int want)
{
	struct nfmeta_table_flow c;

	ck_assert_int_eq(nfmeta_table_read(f, &c), want);
	ck_assert_uint_eq(c.seq % 2, 0);
	return c;
}

static struct nfmeta_flow_key
ipv4(void)
{
	struct nfmeta_flow_key k = {
		.addr_a = {10, 1, 2, 3},
		.addr_b = {192, 168, 0, 255},
		.port_a = {0x1f, 0x90},
		.port_b = {0x01, 0xbb},
		.vlan = {{0, 42}},
		.proto = 6,
		.ip_version = 4,
		.tenant = {0, 0, 0, 9},
	};

	return k;
}

static struct nfmeta_flow_key
ipv6(void)
{
	struct nfmeta_flow_key k = {
		.port_a = {0, 53}, .port_b = {0xff, 0xfe}, .proto = 17, .ip_version = 6};
	int i;

	for (i = 0; i < 16; i++) {
		k.addr_a[i] = (uint8_t)(0x20 + i);
		k.addr_b[i] = (uint8_t)(0xe0 + i);
	}
	return k;
}

/* ---- Create ----------------------------------------------------------------- */

START_TEST(without_eal)
{
	struct nfmeta_table *t;

	expect(nfmeta_table_create("t", 1, &t), -NFMETA_EROLE, "rte_eal_init()");
}
END_TEST

START_TEST(create_refused)
{
	static const char *const names[] = {"",	   " t",   "t ",  "a/b",
					    "a:b", "\xc3", "t\n", "sixteen_letters_"};
	struct nfmeta_table *t = NULL;
	size_t i;

	for (i = 0; i < RTE_DIM(names); i++)
		ck_assert_int_eq(nfmeta_table_create(names[i], 1, &t), -EINVAL);
	expect(nfmeta_table_create("sixteen_letters_", 1, &t), -EINVAL, "longer than 15");
	expect(nfmeta_table_create("a b", 1, &t), -EINVAL, "character 2 is 0x20");
	expect(nfmeta_table_create(NULL, 1, &t), -EINVAL, "needs a name");
	expect(nfmeta_table_create("t", 0, &t), -EINVAL, "to have 0 flows: 1 to 67108864");
	expect(nfmeta_table_create("t", NFMETA_TABLE_FLOWS_MAX + 1, &t), -EINVAL, "67108865");
	expect(nfmeta_table_create("t", UINT32_MAX, &t), -EINVAL, "4294967295");
	expect(nfmeta_table_create("t", 1, NULL), -EINVAL, "no place");
	/* 128 MiB of 64 */
	expect(nfmeta_table_create("t", 2 << 20, &t), -ENOMEM, "134217792 bytes (129 MiB)");
	expect(nfmeta_table_create("t", NFMETA_TABLE_FLOWS_MAX, &t), -ENOMEM, "4294967360 bytes");
	ck_assert_ptr_null(t);
	ck_assert_ptr_null(rte_memzone_lookup("nfmeta_t.t"));
}
END_TEST

START_TEST(create_twice)
{
	struct nfmeta_table *a = make("t", 4), *b = make("fifteen.letters", 4), *c = NULL;

	expect(nfmeta_table_create("t", 4, &c), -EEXIST, "'t' exists");
	ck_assert_ptr_nonnull(rte_memzone_reserve("nfmeta_t.x", 64, SOCKET_ID_ANY, 0));
	expect(nfmeta_table_create("x", 4, &c), -EEXIST, "'x' exists");
	ck_assert_ptr_null(c);
	ck_assert_str_eq(nfmeta__table_zone(b), "nfmeta_t.fifteen.letters");
	nfmeta_table_destroy(a);
	nfmeta_table_destroy(b);
	nfmeta_table_destroy(NULL);
	ck_assert_ptr_null(rte_memzone_lookup("nfmeta_t.t"));
}
END_TEST

/* 40 MiB, 20 times: memory that is given back can be had again, and is empty. */
START_TEST(memory_of_a_table)
{
	struct nfmeta_flow_key k = ipv4();
	uint32_t n, i, flows = 640 * 1024;
	struct nfmeta_table_flow *f, c;
	int round;

	for (round = 0; round < 20; round++) {
		struct nfmeta_table *t = make("t", flows);

		f = nfmeta_table_flows(t, &n);
		ck_assert_uint_eq(n, flows);
		ck_assert_uint_eq((uintptr_t)f % 64, 0);
		for (i = 0; i < n; i += 1001) {
			ck_assert_int_eq(nfmeta_table_read(&f[i], &c), 0);
			ck_assert_uint_eq(c.flow_gen, 0);
			nfmeta_table_open(&f[i], 1, &k, 0);
		}
		nfmeta_table_open(&f[n - 1], 1, &k, 0);
		ck_assert_int_eq(nfmeta_table_read(&f[n - 1], &c), 1);
		nfmeta_table_destroy(t);
	}
	f = nfmeta_table_flows(NULL, &n);
	ck_assert_ptr_null(f);
	ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(published)
{
	struct nfmeta_table *t = make("t", 1000), *u = make("u", 1);
	const struct rte_memzone *z = rte_memzone_lookup("nfmeta_t.t");
	const struct nfmeta_shared_table *s = z->addr;
	const struct nfmeta_shared_table *other = rte_memzone_lookup("nfmeta_t.u")->addr;

	ck_assert_uint_eq(s->magic, NFMETA_TABLE_MAGIC);
	ck_assert_uint_eq(s->abi_major, NFMETA_ABI_MAJOR);
	ck_assert_uint_eq(s->abi_minor, NFMETA_ABI_MINOR);
	ck_assert_uint_eq(s->entry_size, 64);
	ck_assert_uint_eq(s->entry_offset, 64);
	ck_assert_uint_eq(s->flows, 1000);
	ck_assert_uint_ne(s->instance, 0);
	ck_assert_uint_ne(s->instance, other->instance);
	ck_assert_uint_ge(z->len, 64 + 1000 * 64);
	ck_assert_ptr_eq((const uint8_t *)s + 64, nfmeta_table_flows(t, NULL));
	nfmeta_table_destroy(t);
	nfmeta_table_destroy(u);
}
END_TEST

/* ---- One entry --------------------------------------------------------------- */

START_TEST(open_ipv4)
{
	static const uint8_t a[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
	static const uint8_t b[16] = {[10] = 0xff, 0xff, 192, 168, 0, 255};
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow c;

	memset(&entry, 0xa5, sizeof(entry)); /* nothing of it may stay */
	entry.seq = 8;
	nfmeta_table_open(&entry, 777, &k, 1);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.seq, 10);
	ck_assert_uint_eq(c.flow_gen, 777);
	ck_assert_uint_eq(c.state, NFMETA_TABLE_OPEN | NFMETA_TABLE_REVERSE);
	ck_assert_uint_eq(nfmeta_table_state(&c), NFMETA_TABLE_OPEN);
	ck_assert_uint_eq(nfmeta_table_action(&c), NFMETA_ACTION_NONE);
	ck_assert_uint_eq(c.proto, 6);
	ck_assert_uint_eq(c.app_id, 0);
	ck_assert_mem_eq(c.port_a, k.port_a, 2);
	ck_assert_mem_eq(c.port_b, k.port_b, 2);
	ck_assert_mem_eq(c.addr_a, a, 16);
	ck_assert_mem_eq(c.addr_b, b, 16);
	ck_assert_uint_eq(c.from_a, 0);
	ck_assert_uint_eq(c.from_b, 0);
	ck_assert_mem_eq(&c, &entry, sizeof(c));
}
END_TEST

START_TEST(open_others)
{
	static const uint8_t zero[16];
	struct nfmeta_flow_key k = ipv6();
	struct nfmeta_table_flow c;

	nfmeta_table_open(&entry, 65535, &k, 0);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.flow_gen, 65535);
	ck_assert_uint_eq(c.state, NFMETA_TABLE_OPEN);
	ck_assert_uint_eq(c.proto, 17);
	ck_assert_mem_eq(c.addr_a, k.addr_a, 16);
	ck_assert_mem_eq(c.addr_b, k.addr_b, 16);
	ck_assert_mem_eq(c.port_a, k.port_a, 2);
	ck_assert_mem_eq(c.port_b, k.port_b, 2);
	/* not IP: the whole key is zero */
	memset(&k, 0, sizeof(k));
	nfmeta_table_open(&entry, 0, &k, 0);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.proto, 0);
	ck_assert_mem_eq(c.addr_a, zero, 16);
	ck_assert_mem_eq(c.addr_b, zero, 16);
}
END_TEST

START_TEST(set_rules)
{
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow before, c;

	/* no flow yet: generation 0 is the entry's, but nothing is open */
	ck_assert_int_eq(nfmeta_table_set(&entry, 0, NFMETA_TABLE_ESTABLISHED, 1, 1), 0);
	copy_of(&entry, 0);

	nfmeta_table_open(&entry, 5, &k, 1);
	nfmeta_table_count(&entry, 0, 3, 180);
	nfmeta_table_count(&entry, 1, 4, 240);
	before = copy_of(&entry, 1);
	ck_assert_int_eq(nfmeta_table_set(&entry, 4, NFMETA_TABLE_CLOSING, 1, 1), 0);
	ck_assert_int_eq(nfmeta_table_set(&entry, 6, NFMETA_TABLE_CLOSING, 1, 1), 0);
	c = copy_of(&entry, 1);
	ck_assert_mem_eq(&c, &before, sizeof(c));

	ck_assert_int_eq(nfmeta_table_set(&entry, 5, NFMETA_TABLE_ESTABLISHED, NFMETA_ACTION_SHUNT,
					  0xfedcba98),
			 1);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(nfmeta_table_state(&c), NFMETA_TABLE_ESTABLISHED);
	ck_assert_uint_eq(nfmeta_table_action(&c), NFMETA_ACTION_SHUNT);
	ck_assert_uint_eq(c.state & NFMETA_TABLE_REVERSE, NFMETA_TABLE_REVERSE);
	ck_assert_uint_eq(c.app_id, 0xfedcba98);
	ck_assert_uint_eq(c.seq, before.seq + 2);
	/* and nothing else */
	c.state = before.state;
	c.app_id = before.app_id;
	c.seq = before.seq;
	ck_assert_mem_eq(&c, &before, sizeof(c));

	ck_assert_int_eq(nfmeta_table_set(&entry, 5, NFMETA_TABLE_KEEP, 15, 0), 1);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(nfmeta_table_state(&c), NFMETA_TABLE_ESTABLISHED);
	ck_assert_uint_eq(nfmeta_table_action(&c), 15);
	ck_assert_uint_eq(c.app_id, 0);

	/* the entry's direction is not the caller's to change */
	nfmeta_table_open(&entry, 6, &k, 0);
	nfmeta_table_set(&entry, 6, 0xff, 0, 0);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.state & NFMETA_TABLE_REVERSE, 0);

	ck_assert_int_eq(nfmeta_table_close(&entry, 6), 1);
	ck_assert_int_eq(nfmeta_table_set(&entry, 6, NFMETA_TABLE_OPEN, 1, 1), 0);
	copy_of(&entry, 0);
}
END_TEST

START_TEST(close_rules)
{
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow before, c;

	ck_assert_int_eq(nfmeta_table_close(&entry, 0), 0);
	nfmeta_table_open(&entry, 2, &k, 1);
	nfmeta_table_set(&entry, 2, NFMETA_TABLE_CLOSING, NFMETA_ACTION_DROP, 7);
	nfmeta_table_count(&entry, 1, 1, 60);
	before = copy_of(&entry, 1);
	/* a late delete of the flow before */
	ck_assert_int_eq(nfmeta_table_close(&entry, 1), 0);
	c = copy_of(&entry, 1);
	ck_assert_mem_eq(&c, &before, sizeof(c));

	ck_assert_int_eq(nfmeta_table_close(&entry, 2), 1);
	c = copy_of(&entry, 0);
	ck_assert_uint_eq(c.state, 0);
	ck_assert_uint_eq(c.flow_gen, 2);
	ck_assert_uint_eq(c.seq, before.seq + 2);
	c.state = before.state;
	c.seq = before.seq;
	ck_assert_mem_eq(&c, &before, sizeof(c));
	ck_assert_int_eq(nfmeta_table_close(&entry, 2), 0);
	ck_assert_int_eq(nfmeta_table_close(&entry, 3), 0);
	c = copy_of(&entry, 0);
	ck_assert_uint_eq(c.seq, before.seq + 2);

	/* generations wrap: 65535 and 32769 are older than 0 */
	nfmeta_table_open(&entry, 0, &k, 0);
	ck_assert_int_eq(nfmeta_table_close(&entry, 65535), 0);
	ck_assert_int_eq(nfmeta_table_close(&entry, 32769), 0);
	copy_of(&entry, 1);
	/* a newer flow that ended means that the older one did */
	ck_assert_int_eq(nfmeta_table_close(&entry, 1), 1);
	c = copy_of(&entry, 0);
	ck_assert_uint_eq(c.flow_gen, 0);
	nfmeta_table_open(&entry, 65535, &k, 0);
	ck_assert_int_eq(nfmeta_table_close(&entry, 0), 1);
	copy_of(&entry, 0);
}
END_TEST

START_TEST(counters)
{
	struct nfmeta_flow_key k = ipv6();
	struct nfmeta_table_flow c;
	int b;

	nfmeta_table_open(&entry, 1, &k, 0);
	nfmeta_table_count(&entry, 0, 1, 60);
	nfmeta_table_count(&entry, 0, 31, 1514 * 31);
	nfmeta_table_count(&entry, 7, 2, 128); /* any number that is not 0 */
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(nfmeta_table_packets(c.from_a), 32);
	ck_assert_uint_eq(nfmeta_table_bytes(c.from_a), 60 + 1514 * 31);
	ck_assert_uint_eq(nfmeta_table_packets(c.from_b), 2);
	ck_assert_uint_eq(nfmeta_table_bytes(c.from_b), 128);
	ck_assert_uint_eq(c.seq, 2); /* that of open: counting needs no retries */

	for (b = 0; b < 2; b++) {
		const uint64_t *counter = b ? &c.from_b : &c.from_a;

		/* one part is full, the other goes on */
		nfmeta_table_open(&entry, 2, &k, 0);
		nfmeta_table_count(&entry, b, NFMETA_TABLE_PACKETS_MAX - 1, 10);
		nfmeta_table_count(&entry, b, 1, 0);
		c = copy_of(&entry, 1);
		ck_assert_uint_eq(nfmeta_table_packets(*counter), NFMETA_TABLE_PACKETS_MAX);
		nfmeta_table_count(&entry, b, 1, 1);
		c = copy_of(&entry, 1);
		ck_assert_uint_eq(nfmeta_table_packets(*counter), NFMETA_TABLE_PACKETS_MAX);
		nfmeta_table_count(&entry, b, UINT64_MAX, 1);
		c = copy_of(&entry, 1);
		ck_assert_uint_eq(nfmeta_table_packets(*counter), NFMETA_TABLE_PACKETS_MAX);
		ck_assert_uint_eq(nfmeta_table_bytes(*counter), 12);

		nfmeta_table_open(&entry, 3, &k, 0);
		nfmeta_table_count(&entry, b, 1, NFMETA_TABLE_BYTES_MAX - 1);
		nfmeta_table_count(&entry, b, 1, 1);
		c = copy_of(&entry, 1);
		ck_assert_uint_eq(nfmeta_table_bytes(*counter), NFMETA_TABLE_BYTES_MAX);
		nfmeta_table_count(&entry, b, 1, 1);
		nfmeta_table_count(&entry, b, 1, UINT64_MAX);
		c = copy_of(&entry, 1);
		ck_assert_uint_eq(nfmeta_table_bytes(*counter), NFMETA_TABLE_BYTES_MAX);
		ck_assert_uint_eq(nfmeta_table_packets(*counter), 4);
		ck_assert_uint_eq(b ? c.from_a : c.from_b, 0);
	}
}
END_TEST

START_TEST(lookup)
{
	struct nfmeta_table *t = make("t", 3);
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow *f, c;
	uint32_t n;

	f = nfmeta_table_flows(t, &n);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 0, &c), 0); /* never opened */
	nfmeta_table_open(&f[2], 9, &k, 0);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 9, &c), 1);
	ck_assert_uint_eq(c.flow_gen, 9);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 8, &c), 0);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 10, &c), 0);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 1, 9, &c), 0);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 3, 9, &c), 0);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, UINT32_MAX, 9, &c), 0);
	ck_assert_int_eq(nfmeta_table_lookup(NULL, 0, 0, 9, &c), 0);
	f[2].seq |= 1;
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 9, &c), -EAGAIN);
	f[2].seq++;
	nfmeta_table_close(&f[2], 9);
	ck_assert_int_eq(nfmeta_table_lookup(f, n, 2, 9, &c), 0);
	nfmeta_table_destroy(t);
}
END_TEST

/* A writer ended in the middle. */
START_TEST(odd_for_ever)
{
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow c, untouched;

	nfmeta_table_open(&entry, 3, &k, 0);
	entry.seq++;
	memset(&c, 0x77, sizeof(c));
	untouched = c;
	ck_assert_int_eq(nfmeta_table_read(&entry, &c), -EAGAIN);
	ck_assert_mem_eq(&c, &untouched, sizeof(c));
	/* half of an entry is not made good by changing it */
	ck_assert_int_eq(nfmeta_table_set(&entry, 3, NFMETA_TABLE_KEEP, 1, 1), 0);
	nfmeta_table_count(&entry, 0, 1, 60);
	ck_assert_uint_eq(entry.seq, 3);
	ck_assert_int_eq(nfmeta_table_read(&entry, &c), -EAGAIN);
	ck_assert_int_eq(nfmeta_table_close(&entry, 2), 0);
	ck_assert_uint_eq(entry.seq, 3);
	/* but by ending it, or by another flow */
	ck_assert_int_eq(nfmeta_table_close(&entry, 3), 1);
	c = copy_of(&entry, 0);
	ck_assert_uint_eq(c.seq, 4);
	entry.seq++;
	ck_assert_int_eq(nfmeta_table_close(&entry, 3), 1);
	copy_of(&entry, 0);
	entry.seq++;
	nfmeta_table_open(&entry, 4, &k, 0);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.seq, 8);
	/* the number wraps */
	entry.seq = UINT32_MAX - 1;
	ck_assert_int_eq(nfmeta_table_set(&entry, 4, NFMETA_TABLE_KEEP, 0, 1), 1);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.seq, 0);
	entry.seq = UINT32_MAX;
	nfmeta_table_open(&entry, 5, &k, 0);
	c = copy_of(&entry, 1);
	ck_assert_uint_eq(c.seq, 0);
}
END_TEST

/* What cannot write cannot hold up a writer. */
START_TEST(readers_do_not_write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct nfmeta_table_flow *f =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table_flow c;

	ck_assert_ptr_ne(f, MAP_FAILED);
	nfmeta_table_open(&f[0], 1, &k, 0);
	f[1].seq = 1;
	ck_assert_int_eq(mprotect(f, page, PROT_READ), 0);
	ck_assert_int_eq(nfmeta_table_read(&f[0], &c), 1);
	ck_assert_int_eq(nfmeta_table_read(&f[1], &c), -EAGAIN);
	ck_assert_int_eq(nfmeta_table_lookup(f, 2, 0, 1, &c), 1);
	munmap(f, page);
}
END_TEST

/* ---- Find --------------------------------------------------------------------- */

#define ZONE "nfmeta_t.t"

START_TEST(find)
{
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table *t = make("t", 100), *found = NULL;
	struct nfmeta_table_flow c;
	uint32_t n;

	ck_assert_str_eq(nfmeta__table_zone(t), ZONE);
	ck_assert_int_eq(nfmeta__table_find(ZONE, &found), 0);
	ck_assert_ptr_ne(found, t);
	ck_assert_str_eq(nfmeta__table_zone(found), ZONE);
	nfmeta_table_open(&nfmeta_table_flows(t, NULL)[99], 1, &k, 0);
	ck_assert_int_eq(nfmeta_table_read(&nfmeta_table_flows(found, &n)[99], &c), 1);
	ck_assert_uint_eq(n, 100);
	nfmeta_table_destroy(found); /* not the one who made it: nothing */
	ck_assert_ptr_nonnull(rte_memzone_lookup(ZONE));
	nfmeta__table_drop(found);
	nfmeta__table_drop(t);
	nfmeta__table_drop(NULL);
	ck_assert_ptr_nonnull(rte_memzone_lookup(ZONE));
	nfmeta_table_destroy(t);
	expect(nfmeta__table_find(ZONE, &found), -NFMETA_EFORMAT, "'" ZONE "'");
	expect(nfmeta__table_find(ZONE, &found), -NFMETA_EFORMAT, "is not there");
}
END_TEST

static void
tamper(struct nfmeta_shared_table *s, uint32_t way)
{
	switch (way) {
	case 0:
		s->magic = 0;
		break;
	case 1:
		s->magic = NFMETA_LINK_MAGIC;
		break;
	case 2:
		s->abi_major++;
		s->entry_size = 128; /* behind the version nothing is looked at */
		break;
	case 3:
		s->entry_size = 63;
		break;
	case 4:
		s->entry_size = 128;
		break;
	case 5:
		s->instance = 0;
		break;
	case 6:
		s->entry_offset = 0;
		break;
	case 7:
		s->entry_offset = 72;
		break;
	case 8:
		s->entry_offset = 128; /* the last entry lies behind the end */
		break;
	case 9:
		s->flows = 0;
		break;
	case 10:
		s->flows++;
		break;
	case 11:
		s->flows = NFMETA_TABLE_FLOWS_MAX;
		break;
	case 12:
		s->flows = NFMETA_TABLE_FLOWS_MAX + 1;
		break;
	case 13:
		s->flows = UINT32_MAX;
		break;
	}
}

START_TEST(find_tampered)
{
	static const struct {
		int want;
		const char *part;
	} ways[] = {
		{NFMETA_EFORMAT, "wrong magic"},
		{NFMETA_EFORMAT, "wrong magic"},
		{NFMETA_EABI, "of ABI 2, this side speaks ABI 1"},
		{NFMETA_EFORMAT, "have 63 bytes"},
		{NFMETA_EFORMAT, "have 128 bytes, in ABI 1 they have 64"},
		{NFMETA_EFORMAT, "instance"},
		{NFMETA_EFORMAT, "place of its entries"},
		{NFMETA_EFORMAT, "place of its entries"},
		{NFMETA_EFORMAT, "100 flows do not fit into its"},
		{NFMETA_EFORMAT, "number of its flows"},
		{NFMETA_EFORMAT, "101 flows do not fit into its"},
		{NFMETA_EFORMAT, "67108864 flows do not fit into its"},
		{NFMETA_EFORMAT, "number of its flows"},
		{NFMETA_EFORMAT, "number of its flows"},
	};
	struct nfmeta_table *t = make("t", 100), *found = NULL;
	struct nfmeta_shared_table *s = rte_memzone_lookup(ZONE)->addr, good = *s;
	struct rte_memzone *zone;
	size_t len;
	uint32_t i;

	/* as much as the table takes, to the byte */
	ck_assert_uint_eq(rte_memzone_lookup(ZONE)->len, 64 + 100 * 64);
	for (i = 0; i < RTE_DIM(ways); i++) {
		tamper(s, i);
		expect(nfmeta__table_find(ZONE, &found), -ways[i].want, ways[i].part);
		ck_assert_ptr_null(found);
		*s = good;
	}
	/* a newer minor version, with something in what is reserved here */
	s->abi_minor++;
	memset(s->reserved, 0xff, sizeof(s->reserved));
	ck_assert_int_eq(nfmeta__table_find(ZONE, &found), 0);
	nfmeta__table_drop(found);
	found = NULL;
	*s = good;
	zone = (struct rte_memzone *)(uintptr_t)rte_memzone_lookup(ZONE);
	len = zone->len;
	zone->len = sizeof(*s) - 1;
	expect(nfmeta__table_find(ZONE, &found), -NFMETA_EFORMAT, "too short");
	zone->len = len;
	ck_assert_ptr_null(found);
	nfmeta_table_destroy(t);
}
END_TEST

/* ---- Messages ------------------------------------------------------------------- */

START_TEST(apply)
{
	struct nfmeta_flow_key k = ipv4();
	struct nfmeta_table *whole = make("t", 5), *t;
	struct nfmeta_table_flow *f = nfmeta_table_flows(whole, NULL), c, beyond;
	const struct nfmeta_flow_state states[] = {
		{.flow_id = 0, .flow_gen = 1, .action = NFMETA_ACTION_DROP, .app_id = 70},
		{.flow_id = 1, .flow_gen = 1, .action = NFMETA_ACTION_DROP, .app_id = 71},
		{.flow_id = 2, .flow_gen = 0, .action = NFMETA_ACTION_DROP, .app_id = 72},
		{.flow_id = 4, .flow_gen = 0, .action = NFMETA_ACTION_DROP, .app_id = 74},
		{.flow_id = UINT32_MAX, .flow_gen = 0, .action = 1, .app_id = 75},
		{.flow_id = 3, .flow_gen = 3, .action = NFMETA_ACTION_SHUNT, .app_id = 73},
	};
	const struct nfmeta_flow_delete deletes[] = {
		{.flow_id = 1, .flow_gen = 1},
		{.flow_id = UINT32_MAX, .flow_gen = 1},
		{.flow_id = 4, .flow_gen = 1},
		{.flow_id = 3, .flow_gen = 3},
	};

	/* a table of 4, and what lies behind its end */
	((struct nfmeta_shared_table *)rte_memzone_lookup(ZONE)->addr)->flows = 4;
	ck_assert_int_eq(nfmeta__table_find(ZONE, &t), 0);
	nfmeta_table_open(&f[4], 0, &k, 0);
	beyond = copy_of(&f[4], 1);

	nfmeta_table_open(&f[0], 1, &k, 0);
	nfmeta_table_set(&f[0], 1, NFMETA_TABLE_ESTABLISHED, 0, 0);
	nfmeta_table_open(&f[1], 2, &k, 0); /* newer than what is told */
	nfmeta_table_open(&f[3], 3, &k, 1); /* 2: none */
	nfmeta__table_apply(t, NFMETA_MSG_NEW, states, 5);
	c = copy_of(&f[0], 1);
	ck_assert_uint_eq(c.app_id, 70);
	ck_assert_uint_eq(nfmeta_table_action(&c), NFMETA_ACTION_DROP);
	ck_assert_uint_eq(nfmeta_table_state(&c), NFMETA_TABLE_ESTABLISHED);
	c = copy_of(&f[1], 1);
	ck_assert_uint_eq(c.app_id, 0);
	copy_of(&f[2], 0);
	c = copy_of(&f[3], 1);
	ck_assert_uint_eq(c.app_id, 0);

	nfmeta__table_apply(t, NFMETA_MSG_UPDATE, &states[5], 1);
	c = copy_of(&f[3], 1);
	ck_assert_uint_eq(c.app_id, 73);
	ck_assert_uint_eq(c.state, NFMETA_TABLE_OPEN | NFMETA_TABLE_REVERSE |
					   NFMETA_ACTION_SHUNT << NFMETA_TABLE_ACTION_SHIFT);

	/* other types are not about the table */
	nfmeta__table_apply(t, NFMETA_MSG_COUNTERS, deletes, 4);
	nfmeta__table_apply(t, NFMETA_MSG_RESET, NULL, 0);
	nfmeta__table_apply(t, NFMETA_MSG_OPTIONAL | NFMETA_MSG_DELETE, deletes, 4);
	copy_of(&f[3], 1);

	nfmeta__table_apply(t, NFMETA_MSG_DELETE, deletes, 4);
	copy_of(&f[0], 1);
	c = copy_of(&f[1], 1); /* the newer flow survives a late delete */
	ck_assert_uint_eq(c.flow_gen, 2);
	copy_of(&f[3], 0);
	c = copy_of(&f[4], 1);
	ck_assert_mem_eq(&c, &beyond, sizeof(c));
	nfmeta__table_drop(t);
	nfmeta_table_destroy(whole);
}
END_TEST

/* ---- A writer and two readers ----------------------------------------------------- */

#define READERS 2
#define HOT 2	      /* entries; few, so that they meet */
#define ROUNDS 500000 /* of the writer, at least */
#define ROUNDS_MAX (ROUNDS * 100)
#define CHANGES 1000 /* that each reader has to see */

static struct nfmeta_table_flow hot[HOT] __attribute__((aligned(64)));
static uint32_t written;       /* rounds; set when the writer is done */
static uint64_t seen[READERS]; /* changes */
static pthread_barrier_t begin;

static uint32_t
app_of(uint16_t generation)
{
	return generation * UINT32_C(2654435761) | 1;
}

/* Everything in an entry follows from its generation. */
static struct nfmeta_flow_key
key_of(uint16_t generation)
{
	struct nfmeta_flow_key k;
	int i;

	memset(&k, 0, sizeof(k));
	for (i = 0; i < 16; i += 2) {
		memcpy(k.addr_a + i, &generation, 2);
		memcpy(k.addr_b + i, &generation, 2);
	}
	memcpy(k.port_a, &generation, 2);
	memcpy(k.port_b, &generation, 2);
	k.proto = (uint8_t)generation;
	k.ip_version = 6;
	return k;
}

static bool
enough(uint32_t rounds)
{
	int i;

	for (i = 0; i < READERS; i++)
		if (__atomic_load_n(&seen[i], __ATOMIC_RELAXED) < CHANGES)
			return rounds >= ROUNDS_MAX;
	return rounds >= ROUNDS;
}

static void *
writer(void *arg __rte_unused)
{
	uint32_t k;

	pthread_barrier_wait(&begin);
	for (k = 1; !enough(k); k++) {
		struct nfmeta_table_flow *f = &hot[k / 4 % HOT];
		uint16_t g = (uint16_t)k;
		struct nfmeta_flow_key key = key_of(g);

		nfmeta_table_open(f, g, &key, 0);
		nfmeta_table_count(f, 0, 1, g);
		nfmeta_table_set(f, g, NFMETA_TABLE_ESTABLISHED, g % 16, app_of(g));
		nfmeta_table_count(f, 1, 2, 2 * (uint64_t)g);
		if (k % 4 == 1)
			nfmeta_table_close(f, g);
	}
	__atomic_store_n(&written, k, __ATOMIC_RELEASE);
	return NULL;
}

/* NULL, or what does not go together. */
static const char *
mixed(const struct nfmeta_table_flow *c)
{
	uint16_t g = c->flow_gen;
	struct nfmeta_flow_key k = key_of(g);

	if (memcmp(c->addr_a, k.addr_a, 16) != 0 || memcmp(c->addr_b, k.addr_b, 16) != 0)
		return "an address";
	if (memcmp(c->port_a, k.port_a, 2) != 0 || memcmp(c->port_b, k.port_b, 2) != 0)
		return "a port";
	if (c->proto != k.proto)
		return "the protocol";
	if (c->state == NFMETA_TABLE_OPEN) {
		if (c->app_id != 0)
			return "the application of an open flow";
		if (c->from_b != 0)
			return "a counter of an open flow";
	} else if (c->state != NFMETA_TABLE_NONE) {
		if (c->state != (NFMETA_TABLE_ESTABLISHED | g % 16 << NFMETA_TABLE_ACTION_SHIFT))
			return "the action";
		if (c->app_id != app_of(g))
			return "the application";
	}
	if (nfmeta_table_packets(c->from_a) > 1 || nfmeta_table_packets(c->from_b) > 2)
		return "packets";
	if (nfmeta_table_bytes(c->from_a) != nfmeta_table_packets(c->from_a) * g ||
	    nfmeta_table_bytes(c->from_b) != nfmeta_table_packets(c->from_b) * g)
		return "bytes";
	return NULL;
}

static void *
reader(void *arg)
{
	uint64_t *changes = arg;
	uint16_t last[HOT] = {0};
	const char *wrong = NULL;
	struct nfmeta_table_flow c;
	uint32_t i = 0;
	int rc;

	pthread_barrier_wait(&begin);
	while (__atomic_load_n(&written, __ATOMIC_ACQUIRE) == 0 && wrong == NULL) {
		i = (i + 1) % HOT;
		rc = nfmeta_table_read(&hot[i], &c);
		if (rc == -EAGAIN) /* the writer is not on a CPU, say */
			continue;
		wrong = c.seq == 0 ? NULL : mixed(&c);
		if (rc != (c.state != NFMETA_TABLE_NONE))
			wrong = "the answer";
		if (c.flow_gen != last[i])
			__atomic_store_n(changes, *changes + 1, __ATOMIC_RELAXED);
		last[i] = c.flow_gen;
	}
	if (wrong != NULL) /* the writer need not go on */
		__atomic_store_n(changes, CHANGES, __ATOMIC_RELAXED);
	return (void *)(uintptr_t)wrong;
}

START_TEST(never_mixed)
{
	pthread_t w, r[READERS];
	struct nfmeta_table_flow c;
	void *wrong;
	int i;

	pthread_barrier_init(&begin, NULL, READERS + 1);
	ck_assert_int_eq(pthread_create(&w, NULL, writer, NULL), 0);
	for (i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&r[i], NULL, reader, &seen[i]), 0);
	pthread_join(w, NULL);
	for (i = 0; i < READERS; i++) {
		pthread_join(r[i], &wrong);
		ck_assert_msg(wrong == NULL, "reader %d: %s is another flow's", i,
			      (const char *)wrong);
		ck_assert_uint_gt(seen[i], 0); /* a loaded machine gives it little time */
	}
	for (i = 0; i < HOT; i++) {
		ck_assert_int_ge(nfmeta_table_read(&hot[i], &c), 0);
		ck_assert_ptr_null(mixed(&c));
	}
	pthread_barrier_destroy(&begin);
}
END_TEST

int
main(void)
{
	const char *run = getenv("NFMETA_RUN_ID");
	Suite *s = suite_create("table");
	TCase *bare = tcase_create("entries"), *t = tcase_create("tables");
	SRunner *sr = srunner_create(s);
	char dir[128];
	int failed;

	suite_add_tcase(s, bare);
	tcase_set_timeout(bare, 200);
	tcase_add_test(bare, without_eal);
	tcase_add_test(bare, open_ipv4);
	tcase_add_test(bare, open_others);
	tcase_add_test(bare, set_rules);
	tcase_add_test(bare, close_rules);
	tcase_add_test(bare, counters);
	tcase_add_test(bare, odd_for_ever);
	tcase_add_test(bare, readers_do_not_write);
	tcase_add_test(bare, never_mixed);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, create_refused);
	tcase_add_test(t, create_twice);
	tcase_add_test(t, memory_of_a_table);
	tcase_add_test(t, published);
	tcase_add_test(t, lookup);
	tcase_add_test(t, find);
	tcase_add_test(t, find_tampered);
	tcase_add_test(t, apply);
	snprintf(prefix, sizeof(prefix), "%s-table-%d", run != NULL ? run : "nfmeta", getpid());
	srunner_run_all(sr, CK_NORMAL);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
