/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The record: every placement carries it, and whatever happens to an mbuf
 * behind the record's back reads as "no record".  Check forks for every test,
 * so each has a DPDK registry of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <nfmeta/nfmeta.h>

static struct rte_mempool *pool;

static char prefix[64];

static void
setup(void)
{
	char *argv[] = {"test_record",
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
	pool = rte_pktmbuf_pool_create("p", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(pool);
}

static const struct nfmeta_field_opts placements[] = {
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 32),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_UDATA64),
	NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_HEADROOM),
};
/* The second wants another size of the first one's name; tested by itself. */
static const int usable[] = {0, 2, 3};

static struct nfmeta_field
field_of(int i)
{
	struct nfmeta_field f;

	ck_assert_msg(nfmeta_field_register(&placements[i], &f) == 0, "%s", nfmeta_error());
	return f;
}

static struct rte_mbuf *
packet(uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	ck_assert_ptr_nonnull(m);
	memset(rte_pktmbuf_append(m, len), 0x5a, len);
	return m;
}

/* A record with another value in every byte. */
static struct nfmeta_record
sample(void)
{
	struct nfmeta_record r;
	int i;

	nfmeta_record_init(&r);
	r.flags = NFMETA_L3_VALID | NFMETA_FLOW_KNOWN;
	r.flow_id = 0xdeadbeef;
	r.l3_off = 14;
	r.l4_off = 34;
	r.payload_off = 54;
	r.flow_gen = 777;
	r.app_id = 0x00070091;
	r.port = 3;
	r.vlan_outer = 301;
	r.vlan_inner = 345;
	r.vlan_count = 2;
	r.action = NFMETA_ACTION_INSPECT;
	r.timestamp = UINT64_C(1700000000123456789);
	r.tenant = 9;
	r.chain = 1;
	r.tunnels = 2;
	for (i = 0; i < 16; i++)
		r.user[i] = (uint8_t)(0xa0 + i);
	return r;
}

START_TEST(round_trip)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record in = sample(), out, fresh;
	struct rte_mbuf *m = packet(100);

	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), 0);
	ck_assert_uint_eq(out.size, 0);
	ck_assert_uint_eq(out.l4_off, NFMETA_OFF_NONE);
	ck_assert_int_eq(nfmeta_record_set(&f, m, &in), 1);
	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), f.size);
	ck_assert_uint_eq(out.size, f.size);
	in.size = f.size;
	ck_assert_mem_eq(&in, &out, f.size);
	/* what is not carried reads as an empty record has it */
	nfmeta_record_init(&fresh);
	ck_assert_mem_eq((uint8_t *)&fresh + f.size, (uint8_t *)&out + f.size, 64u - f.size);
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
	nfmeta_record_clear(&f, m);
	ck_assert_ptr_null(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(m);
}
END_TEST

START_TEST(size_zero_takes_it_off)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample();
	struct rte_mbuf *m = packet(100);

	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	r.size = 0;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 0);
	ck_assert_ptr_null(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(m);
}
END_TEST

/* A writer that knows less: its record is shorter than the room. */
START_TEST(prefix_rule)
{
	static const uint8_t sizes[] = {8, 16, 32, 64};
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(100);
	uint32_t want;
	size_t i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		r.size = sizes[i];
		want = RTE_MIN(sizes[i], f.size);
		ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
		ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), want);
		ck_assert_uint_eq(out.flow_id, r.flow_id);
		ck_assert_uint_eq(out.l4_off, want >= 16 ? r.l4_off : NFMETA_OFF_NONE);
		ck_assert_uint_eq(out.app_id, want >= 32 ? r.app_id : 0);
		ck_assert_uint_eq(out.timestamp, want >= 64 ? r.timestamp : 0);
	}
	rte_pktmbuf_free(m);
}
END_TEST

/* A size that there is not is taken down to one that there is. */
START_TEST(odd_sizes)
{
	static const uint8_t sizes[][2] = {{4, 0},   {7, 0},   {8, 8},	 {9, 8},   {12, 8},
					   {17, 16}, {31, 16}, {33, 32}, {63, 32}, {200, 64}};
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(100);
	uint32_t want;
	size_t i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		r.size = sizes[i][0];
		want = RTE_MIN(sizes[i][1], f.size);
		ck_assert_int_eq(nfmeta_record_set(&f, m, &r), want != 0);
		ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), want);
	}
	rte_pktmbuf_free(m);
}
END_TEST

START_TEST(recycled_mbuf_has_none)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample();
	struct rte_mbuf *m[255];
	int i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 255; i++) {
			m[i] = packet(100);
			ck_assert_ptr_null(nfmeta_record_peek(&f, m[i]));
			ck_assert_int_eq(nfmeta_record_set(&f, m[i], &r), 1);
		}
		for (i = 0; i < 255; i++)
			rte_pktmbuf_free(m[i]);
	}
}
END_TEST

/* Any byte of record or seal changed, any version or size byte: none. */
START_TEST(clobbered)
{
	struct nfmeta_field f = field_of(usable[_i]);
	int headroom = f.placement == NFMETA_PLACE_HEADROOM;
	struct nfmeta_record r = sample();
	struct rte_mbuf *m = packet(100);
	uint8_t *base = headroom ? m->buf_addr : (uint8_t *)m;
	int at, value;

	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	for (at = 0; at < f.size; at++)
		for (value = 1; value < 256; value++) {
			base[f.offset + at] ^= (uint8_t)value;
			ck_assert_msg(nfmeta_record_peek(&f, m) == NULL, "byte %d ^ %d", at, value);
			base[f.offset + at] ^= (uint8_t)value;
		}
	for (at = 0; at < (headroom ? 4 : 2); at++) {
		base[f.seal_offset + at] ^= 0x10;
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		base[f.seal_offset + at] ^= 0x10;
	}
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(m);
}
END_TEST

/* Random bytes in place of the record: wrong ones are never believed. */
START_TEST(foreign_bytes)
{
	struct nfmeta_field f = field_of(usable[_i]);
	int headroom = f.placement == NFMETA_PLACE_HEADROOM;
	struct rte_mbuf *m = packet(100);
	uint8_t *base = headroom ? m->buf_addr : (uint8_t *)m;
	int i, at, believed = 0;

	srandom(1);
	m->ol_flags |= f.flag;
	for (i = 0; i < 100000; i++) {
		for (at = 0; at < f.size; at++)
			base[f.offset + at] = (uint8_t)random();
		base[f.offset] = NFMETA_ABI_MAJOR; /* the hardest kind: looks like one */
		base[f.offset + 1] = f.size;
		for (at = 0; at < (headroom ? 4 : 2); at++)
			base[f.seal_offset + at] = (uint8_t)random();
		believed += nfmeta_record_peek(&f, m) != NULL;
	}
	/* a 16-bit seal: 1.5 expected of 100000 forgeries; 32 bits: none */
	ck_assert_int_le(believed, headroom ? 0 : 12);
	rte_pktmbuf_free(m);
}
END_TEST

/* A packet that was moved or cut without a word has no record. */
START_TEST(stale)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample();
	struct rte_mbuf *m;
	uint16_t n;

	for (n = 1; n <= 50; n++) {
		m = packet(1000);
		ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
		ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, n));
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		ck_assert_ptr_nonnull(rte_pktmbuf_prepend(m, n)); /* back where it was */
		ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
		ck_assert_ptr_nonnull(rte_pktmbuf_prepend(m, n));
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, n));
		ck_assert_int_eq(rte_pktmbuf_trim(m, n), 0);
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		rte_pktmbuf_free(m);
	}
}
END_TEST

START_TEST(shift_push_pull)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(1000);

	r.flags |= NFMETA_L2_VALID;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	ck_assert_ptr_nonnull(rte_pktmbuf_prepend(m, 4));
	ck_assert_int_eq(nfmeta_record_shift(&f, m, -4), 1);
	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), f.size);
	ck_assert_uint_eq(out.flow_id, r.flow_id);
	if (f.size >= 16) {
		ck_assert_uint_eq(out.l3_off, 18);
		ck_assert_uint_eq(out.l4_off, 38);
		ck_assert_uint_eq(out.payload_off, 58);
	}
	/* the packet starts with something else now; what was checked behind it stays */
	ck_assert_uint_eq(out.flags, NFMETA_L3_VALID | NFMETA_FLOW_KNOWN);
	ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, 18));
	if (f.size < NFMETA_RECORD_CORE) { /* cannot tell what was pulled off */
		ck_assert_int_eq(nfmeta_record_shift(&f, m, 18), 0);
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		rte_pktmbuf_free(m);
		return;
	}
	ck_assert_int_eq(nfmeta_record_shift(&f, m, 18), 1);
	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), f.size);
	ck_assert_uint_eq(out.l3_off, 0);
	/* L3 pulled off, and a lie about the distance: none */
	ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, 2));
	ck_assert_int_eq(nfmeta_record_shift(&f, m, 2), 0);
	ck_assert_ptr_null(nfmeta_record_peek(&f, m));
	r.l3_off = 14;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, 2));
	ck_assert_int_eq(nfmeta_record_shift(&f, m, 3), 0);
	ck_assert_ptr_null(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(m);
}
END_TEST

START_TEST(shift_keeps_none)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(1000);

	r.l4_off = r.payload_off = NFMETA_OFF_NONE;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	ck_assert_ptr_nonnull(rte_pktmbuf_prepend(m, 4));
	ck_assert_int_eq(nfmeta_record_shift(&f, m, -4), 1);
	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), f.size);
	ck_assert_uint_eq(out.l4_off, NFMETA_OFF_NONE);
	ck_assert_uint_eq(out.payload_off, NFMETA_OFF_NONE);
	rte_pktmbuf_free(m);
}
END_TEST

/* Headroom: pushes that reach the record, and come back again. */
START_TEST(headroom_overwritten)
{
	struct nfmeta_field f = field_of(3);
	struct nfmeta_record r = sample();
	struct rte_mbuf *m;
	uint16_t n;
	char *p;

	for (n = 1; n <= RTE_PKTMBUF_HEADROOM; n++) {
		m = packet(64);
		ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
		p = rte_pktmbuf_prepend(m, n);
		ck_assert_ptr_nonnull(p);
		memset(p, 0xc3, n);
		ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		ck_assert_ptr_nonnull(rte_pktmbuf_adj(m, n));
		if (n <= RTE_PKTMBUF_HEADROOM - NFMETA_HEADROOM_ROOM)
			ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
		else
			ck_assert_ptr_null(nfmeta_record_peek(&f, m));
		rte_pktmbuf_free(m);
	}
}
END_TEST

START_TEST(headroom_too_small_or_shared)
{
	struct nfmeta_field f = field_of(3);
	struct nfmeta_record r = sample();
	struct rte_mbuf *m = packet(64), *clone;

	m->data_off = NFMETA_HEADROOM_ROOM - 1;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 0);
	ck_assert_ptr_null(nfmeta_record_peek(&f, m));
	m->data_off = NFMETA_HEADROOM_ROOM;
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);

	/* a clone shares the buffer: it may read, and nobody may write */
	clone = rte_pktmbuf_clone(m, pool);
	ck_assert_ptr_nonnull(clone);
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, clone));
	ck_assert_int_eq(nfmeta_record_set(&f, clone, &r), 0);
	clone->ol_flags |= f.flag;
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, clone));
	ck_assert_ptr_nonnull(rte_pktmbuf_adj(clone, 4));
	ck_assert_int_eq(nfmeta_record_shift(&f, clone, 4), 0);
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(clone);
	rte_pktmbuf_free(m);
}
END_TEST

START_TEST(clone_and_copy)
{
	struct nfmeta_field f = field_of(0);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(64), *other;

	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	other = rte_pktmbuf_clone(m, pool);
	ck_assert_uint_eq(nfmeta_record_get(&f, other, &out), f.size);
	rte_pktmbuf_free(other);
	other = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
	ck_assert_uint_eq(nfmeta_record_get(&f, other, &out), f.size);
	rte_pktmbuf_free(other);
	other = rte_pktmbuf_copy(m, pool, 20, UINT32_MAX); /* another packet now */
	ck_assert_ptr_null(nfmeta_record_peek(&f, other));
	rte_pktmbuf_free(other);
	rte_pktmbuf_free(m);
}
END_TEST

START_TEST(bursts)
{
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record in[33], out[33];
	struct rte_mbuf *m[33];
	uint16_t i, n;

	for (n = 0; n <= 33; n++) {
		for (i = 0; i < n; i++) {
			m[i] = packet(100);
			in[i] = sample();
			in[i].flow_id = i;
			if (i % 5 == 4)
				in[i].size = 0;
		}
		ck_assert_uint_eq(nfmeta_record_set_burst(&f, m, in, n), n - n / 5);
		ck_assert_uint_eq(nfmeta_record_get_burst(&f, m, out, n), n - n / 5);
		for (i = 0; i < n; i++) {
			ck_assert_uint_eq(out[i].size, i % 5 == 4 ? 0 : f.size);
			if (out[i].size)
				ck_assert_uint_eq(out[i].flow_id, i);
			rte_pktmbuf_free(m[i]);
		}
	}
}
END_TEST

START_TEST(set_flow)
{
	struct nfmeta_record r;

	nfmeta_record_init(&r);
	r.flags = NFMETA_FLOW_REVERSE; /* source is end b; so was the first packet's */
	nfmeta_record_set_flow(&r, 0, 7, 1, 1);
	ck_assert_uint_eq(r.flags, NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW);
	ck_assert_uint_eq(r.flow_gen, 7);
	r.flags = NFMETA_FLOW_NEW; /* another flow's, from a record that is used again */
	nfmeta_record_set_flow(&r, 0, 7, 1, 0);
	ck_assert_uint_eq(r.flags, NFMETA_FLOW_KNOWN | NFMETA_FLOW_REVERSE);
}
END_TEST

/* ---- Fields ---- */

START_TEST(register_again_is_the_same)
{
	struct nfmeta_field a, b, c;

	ck_assert_int_eq(nfmeta_field_register(NULL, &a), 0);
	ck_assert_int_eq(a.placement, NFMETA_PLACE_DYNFIELD);
	ck_assert_int_eq(a.size, NFMETA_RECORD_CORE);
	ck_assert_uint_ne(a.key, 0);
	ck_assert_int_eq(nfmeta_field_register(NULL, &b), 0);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	c = field_of(0); /* by its name, not by AUTO: the same still */
	ck_assert_mem_eq(&a, &c, sizeof(a));
}
END_TEST

START_TEST(bad_options)
{
	static const struct nfmeta_field_opts bad[] = {
		{.sz = 3},
		NFMETA_FIELD_OPTS(.placement = 4),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 8),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 64),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_UDATA64, .size = 16),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_HEADROOM, .size = 32),
		NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_AUTO, .size = 16),
	};
	struct nfmeta_field f;

	ck_assert_int_eq(nfmeta_field_register(&bad[_i], &f), -EINVAL);
	ck_assert_str_ne(nfmeta_error(), "");
}
END_TEST

/* Two programs, one name, two schemas: the second is refused, both sizes named. */
START_TEST(same_name_other_schema)
{
	static const struct rte_mbuf_dynfield foreign = {
		.name = "nfmeta_record_v1", .size = 24, .align = 4};
	struct nfmeta_field f;

	ck_assert_int_ge(rte_mbuf_dynfield_register(&foreign), 0);
	ck_assert_int_eq(nfmeta_field_register(&placements[0], &f), -NFMETA_EFIELD);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "24"));
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "16"));
	ck_assert_int_eq(nfmeta_field_register(NULL, &f), -NFMETA_EFIELD);
}
END_TEST

START_TEST(other_size_of_ours)
{
	struct nfmeta_field f = field_of(0);

	ck_assert_int_eq(nfmeta_field_register(&placements[1], &f), -NFMETA_EFIELD);
}
END_TEST

/* A record that one schema stamped, read through the other's: none, never bytes. */
START_TEST(read_through_another_field)
{
	struct nfmeta_field a = field_of(0), other = a;
	struct nfmeta_record r = sample();
	struct rte_mbuf *m = packet(100);

	ck_assert_int_eq(nfmeta_record_set(&a, m, &r), 1);
	other.key ^= 0x8000; /* another primary's */
	ck_assert_ptr_null(nfmeta_record_peek(&other, m));
	other = a;
	other.size = NFMETA_RECORD_WORD; /* believes the record is the word alone */
	ck_assert_ptr_null(nfmeta_record_peek(&other, m));
	other = a;
	other.offset += 8;
	ck_assert_ptr_null(nfmeta_record_peek(&other, m));
	((struct nfmeta_record *)RTE_PTR_ADD(m, a.offset))->abi = NFMETA_ABI_MAJOR + 1;
	ck_assert_ptr_null(nfmeta_record_peek(&a, m));
	rte_pktmbuf_free(m);
}
END_TEST

/* A foreign 4-byte field first, then ours: values exact, the foreign one untouched. */
START_TEST(beside_a_foreign_field)
{
	static const struct rte_mbuf_dynfield foreign = {.name = "foreign", .size = 4, .align = 4};
	int at = rte_mbuf_dynfield_register(&foreign);
	struct nfmeta_field f = field_of(usable[_i]);
	struct nfmeta_record r = sample(), out;
	struct rte_mbuf *m = packet(100);

	ck_assert_int_ge(at, 0);
	memset(RTE_PTR_ADD(m, at), 0x77, 4);
	ck_assert_int_eq(nfmeta_record_set(&f, m, &r), 1);
	ck_assert_uint_eq(nfmeta_record_get(&f, m, &out), f.size);
	r.size = f.size;
	ck_assert_mem_eq(&out, &r, 8); /* the 64-bit word */
	ck_assert_mem_eq(RTE_PTR_ADD(m, at), "\x77\x77\x77\x77", 4);
	memset(RTE_PTR_ADD(m, at), 0x11, 4);
	ck_assert_ptr_nonnull(nfmeta_record_peek(&f, m));
	rte_pktmbuf_free(m);
}
END_TEST

/* Foreign fields until `left` of the 36 bytes remain. */
static void
fill_mbuf(int left)
{
	struct rte_mbuf_dynfield foreign = {.size = 1, .align = 1};
	int i;

	for (i = 0; i < 36 - left; i++) {
		snprintf(foreign.name, sizeof(foreign.name), "foreign%d", i);
		ck_assert_int_ge(rte_mbuf_dynfield_register(&foreign), 0);
	}
}

START_TEST(auto_falls_back_to_headroom)
{
	struct nfmeta_field f;

	fill_mbuf(7);
	ck_assert_int_eq(nfmeta_field_register(NULL, &f), 0);
	ck_assert_int_eq(f.placement, NFMETA_PLACE_HEADROOM);
	ck_assert_int_eq(f.size, NFMETA_RECORD_FULL);
}
END_TEST

START_TEST(auto_names_the_fields_in_the_way)
{
	static const struct nfmeta_field_opts tight =
		NFMETA_FIELD_OPTS(.headroom_use = RTE_PKTMBUF_HEADROOM);
	struct nfmeta_field f;

	fill_mbuf(7);
	ck_assert_int_eq(nfmeta_field_register(&tight, &f), -NFMETA_ENOROOM);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "foreign0"));
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "foreign28"));
	ck_assert_int_eq(nfmeta_field_register(&placements[0], &f), -NFMETA_ENOROOM);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "foreign0"));
}
END_TEST

/* Room for the record but not for its seal, and the like: what fits is found. */
START_TEST(auto_at_the_edges)
{
	static const struct nfmeta_field_opts tight =
		NFMETA_FIELD_OPTS(.headroom_use = RTE_PKTMBUF_HEADROOM);
	static const struct {
		int left, tight;
		int placement; /* 0: none */
	} edges[] = {
		{8, 0, NFMETA_PLACE_HEADROOM},
		{8, 1, 0},
		{9, 1, 0},
		{16, 0, NFMETA_PLACE_HEADROOM},
		{16, 1, NFMETA_PLACE_UDATA64},
		{17, 1, NFMETA_PLACE_UDATA64},
		{20, 0, NFMETA_PLACE_DYNFIELD},
		{36, 1, NFMETA_PLACE_DYNFIELD},
	};
	struct rte_mbuf_dynfield none;
	struct nfmeta_field f;
	int rc;

	fill_mbuf(edges[_i].left);
	rc = nfmeta_field_register(edges[_i].tight ? &tight : NULL, &f);
	if (edges[_i].placement == 0) {
		ck_assert_int_eq(rc, -NFMETA_ENOROOM);
		return;
	}
	ck_assert_msg(rc == 0, "%s", nfmeta_error());
	ck_assert_int_eq(f.placement, edges[_i].placement);
	/* nothing but the two bytes of a seal was taken in vain */
	if (f.placement != NFMETA_PLACE_DYNFIELD)
		ck_assert_int_lt(rte_mbuf_dynfield_lookup("nfmeta_record_v1", &none), 0);
}
END_TEST

START_TEST(auto_takes_the_word_if_nothing_else_fits)
{
	static const struct nfmeta_field_opts tight =
		NFMETA_FIELD_OPTS(.headroom_use = RTE_PKTMBUF_HEADROOM);
	struct nfmeta_field f;

	fill_mbuf(12);
	ck_assert_msg(nfmeta_field_register(&tight, &f) == 0, "%s", nfmeta_error());
	ck_assert_int_eq(f.placement, NFMETA_PLACE_UDATA64);
}
END_TEST

static void *
another_error(void *unused)
{
	static const struct nfmeta_field_opts bad = NFMETA_FIELD_OPTS(.placement = 9);
	struct nfmeta_field f;

	(void)unused;
	ck_assert_str_eq(nfmeta_error(), "");
	ck_assert_int_eq(nfmeta_field_register(&bad, &f), -EINVAL);
	return NULL;
}

/* A sentence is the thread's whose call failed. */
START_TEST(errors_of_two_threads)
{
	static const struct nfmeta_field_opts bad = NFMETA_FIELD_OPTS(.placement = 7);
	struct nfmeta_field f;
	pthread_t t;

	ck_assert_int_eq(nfmeta_field_register(&bad, &f), -EINVAL);
	ck_assert_int_eq(pthread_create(&t, NULL, another_error, NULL), 0);
	pthread_join(t, NULL);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "placement 7"));
}
END_TEST

START_TEST(error_names)
{
	ck_assert_str_eq(nfmeta_strerror(0), "OK");
	ck_assert_str_eq(nfmeta_strerror(-NFMETA_ENOLINK), "NFMETA_ENOLINK");
	ck_assert_str_eq(nfmeta_strerror(NFMETA_EEAL), "NFMETA_EEAL");
	ck_assert_str_eq(nfmeta_strerror(-EINVAL), "EINVAL");
	ck_assert_str_eq(nfmeta_strerror(-123456), "unknown error");
	ck_assert_str_eq(nfmeta_version(), NFMETA_VERSION_STRING);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("record");
	TCase *t = tcase_create("record");
	SRunner *sr = srunner_create(s);
	int failed, n = RTE_DIM(usable);
	char dir[128];

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, round_trip, 0, n);
	tcase_add_loop_test(t, size_zero_takes_it_off, 0, n);
	tcase_add_loop_test(t, prefix_rule, 0, n);
	tcase_add_loop_test(t, odd_sizes, 0, n);
	tcase_add_loop_test(t, recycled_mbuf_has_none, 0, n);
	tcase_add_loop_test(t, clobbered, 0, n);
	tcase_add_loop_test(t, foreign_bytes, 0, n);
	tcase_add_loop_test(t, stale, 0, n);
	tcase_add_loop_test(t, shift_push_pull, 0, n);
	tcase_add_loop_test(t, shift_keeps_none, 0, n);
	tcase_add_test(t, headroom_overwritten);
	tcase_add_test(t, headroom_too_small_or_shared);
	tcase_add_test(t, clone_and_copy);
	tcase_add_loop_test(t, bursts, 0, n);
	tcase_add_test(t, set_flow);
	tcase_add_test(t, register_again_is_the_same);
	tcase_add_loop_test(t, bad_options, 0, 7);
	tcase_add_test(t, same_name_other_schema);
	tcase_add_test(t, other_size_of_ours);
	tcase_add_test(t, read_through_another_field);
	tcase_add_loop_test(t, beside_a_foreign_field, 0, n);
	tcase_add_test(t, auto_falls_back_to_headroom);
	tcase_add_test(t, auto_names_the_fields_in_the_way);
	tcase_add_loop_test(t, auto_at_the_edges, 0, 8);
	tcase_add_test(t, auto_takes_the_word_if_nothing_else_fits);
	tcase_add_test(t, errors_of_two_threads);
	tcase_add_test(t, error_names);
	snprintf(prefix, sizeof(prefix), "nfmeta-record-%d", getpid());
	srunner_run_all(sr, CK_NORMAL);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/%s", prefix);
	rmdir(dir); /* EAL leaves it, empty */
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
