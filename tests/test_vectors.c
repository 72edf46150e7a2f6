/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The golden vectors of bindings-spec: the library reads and writes what the
 * text says.  The files have one vector a line, so plain searching reads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <nfmeta/nfmeta.h>

#include "packet.h"

#define LINE 8192

static FILE *
vectors(const char *name)
{
	char path[512], *slash;
	FILE *f;

	snprintf(path, sizeof(path) - 64, "%s", __FILE__);
	slash = strrchr(path, '/');
	snprintf(slash != NULL ? slash + 1 : path, 64, "../bindings-spec/vectors/%s", name);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	return f;
}

/* The text behind "name": in a line, or NULL. */
static const char *
find(const char *line, const char *name)
{
	char wanted[64];
	const char *at;

	snprintf(wanted, sizeof(wanted), "\"%s\": ", name);
	at = strstr(line, wanted);
	if (at == NULL)
		return NULL;
	at += strlen(wanted);
	return *at == '"' || *at == '[' ? at + 1 : at;
}

static uint64_t
number(const char *line, const char *name)
{
	const char *at = find(line, name);

	ck_assert_msg(at != NULL, "no \"%s\" in %s", name, line);
	return strtoull(at, NULL, 0);
}

static uint32_t
bytes(const char *line, const char *name, uint8_t *out, uint32_t room)
{
	const char *at = find(line, name);
	unsigned int byte;
	uint32_t n;

	ck_assert_msg(at != NULL, "no \"%s\" in %s", name, line);
	for (n = 0; sscanf(at + 2 * n, "%2x", &byte) == 1; n++) {
		ck_assert_uint_lt(n, room);
		out[n] = (uint8_t)byte;
	}
	return n;
}

static const char *
name_of(const char *line)
{
	static char name[128];

	ck_assert_int_eq(sscanf(line, " {\"name\": \"%127[^\"]", name), 1);
	return name;
}

/* The first segment's header gets what a stripping NIC would leave. */
static void
strip(struct rte_mbuf *m, const char *line)
{
	const char *at = find(line, "stripped");
	unsigned int outer, inner;
	int n = sscanf(at, "%u, %u", &outer, &inner);

	if (n >= 1) {
		m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		m->vlan_tci = (uint16_t)outer;
	}
	if (n == 2) {
		m->ol_flags |= RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
		m->vlan_tci_outer = (uint16_t)outer;
		m->vlan_tci = (uint16_t)inner;
	}
}

START_TEST(flow_keys)
{
	FILE *f = vectors("flow-keys.json");
	uint8_t packet[2048], key[48];
	char line[LINE];
	uint32_t len, cut, count = 0;

	while (fgets(line, sizeof(line), f) != NULL) {
		if (find(line, "packet") == NULL)
			continue;
		len = bytes(line, "packet", packet, sizeof(packet));
		ck_assert_uint_eq(bytes(line, "key", key, sizeof(key)), sizeof(key));
		for (cut = 0; cut <= len; cut++) {
			struct rte_mbuf *m = packet_new(packet, len, &cut, 1);
			struct outcome o;

			strip(m, line);
			o = packet_classify(m, (uint32_t)number(line, "policy"));
			packet_free(m);
			ck_assert_msg(memcmp(&o.key, key, sizeof(key)) == 0, "%s: key",
				      name_of(line));
			ck_assert_msg(o.rec.flags == number(line, "flags"), "%s: flags %#x",
				      name_of(line), o.rec.flags);
			ck_assert_msg(o.rec.l3_off == number(line, "l3_off") &&
					      o.rec.l4_off == number(line, "l4_off") &&
					      o.rec.payload_off == number(line, "payload_off"),
				      "%s: offsets %u %u %u", name_of(line), o.rec.l3_off,
				      o.rec.l4_off, o.rec.payload_off);
		}
		count++;
	}
	fclose(f);
	ck_assert_uint_gt(count, 50);
}
END_TEST

START_TEST(record_fields)
{
	FILE *f = vectors("records.json");
	struct nfmeta_record r;
	uint8_t user[16];
	char line[LINE];
	uint32_t len, count = 0;

#define SAME(field)                                                                                \
	ck_assert_msg(find(line, #field) == NULL || number(line, #field) == r.field,               \
		      "%s: " #field, name_of(line))
	while (fgets(line, sizeof(line), f) != NULL) {
		if (find(line, "bytes") == NULL)
			continue;
		len = bytes(line, "bytes", (uint8_t *)&r, sizeof(r));
		ck_assert_uint_eq(len, r.size);
		SAME(abi);
		SAME(size);
		SAME(flags);
		SAME(flow_id);
		SAME(l3_off);
		SAME(l4_off);
		SAME(payload_off);
		SAME(flow_gen);
		SAME(app_id);
		SAME(port);
		SAME(vlan_outer);
		SAME(vlan_inner);
		SAME(vlan_count);
		SAME(action);
		SAME(timestamp);
		SAME(tenant);
		SAME(chain);
		SAME(tunnels);
		if (len == 64) {
			ck_assert_uint_eq(bytes(line, "user", user, sizeof(user)), 16);
			ck_assert_mem_eq(user, r.user, 16);
		}
		count++;
	}
#undef SAME
	fclose(f);
	ck_assert_uint_gt(count, 10);
}
END_TEST

/* Put the vector's bytes where they belong; read them; write them anew. */
START_TEST(sealed_records)
{
	const uint64_t flag = UINT64_C(1) << 40;
	FILE *f = vectors("records.json");
	uint32_t good = 0, refused = 0;
	uint8_t record[64], seal[8], buf[128], *base;
	struct nfmeta_record out, in;
	struct rte_mbuf m;
	char line[LINE];

	while (fgets(line, sizeof(line), f) != NULL) {
		struct nfmeta_field field = {.flag = flag};
		uint32_t size, seal_size, reads;

		if (find(line, "seal") == NULL)
			continue;
		memset(&m, 0, sizeof(m));
		memset(buf, 0, sizeof(buf));
		memset(&in, 0, sizeof(in));
		size = bytes(line, "record", record, sizeof(record));
		seal_size = bytes(line, "seal", seal, sizeof(seal));
		reads = (uint32_t)number(line, "reads");
		field.key = number(line, "key");
		field.size = (uint8_t)number(line, "size");
		field.placement = (uint8_t)number(line, "placement");
		ck_assert_uint_eq(size, field.size);
		if (field.placement == NFMETA_PLACE_HEADROOM) {
			field.seal_offset = offsetof(struct nfmeta_record, seal);
			base = buf;
		} else {
			field.offset = RTE_ALIGN(offsetof(struct rte_mbuf, dynfield1), 8);
			field.seal_offset = offsetof(struct rte_mbuf, dynfield1);
			base = (uint8_t *)&m;
		}
		m.buf_addr = buf;
		m.refcnt = 1;
		m.nb_segs = 1;
		m.data_off = (uint16_t)number(line, "start");
		m.pkt_len = (uint32_t)number(line, "length");
		m.ol_flags = number(line, "present") ? flag : 0;
		memcpy(base + field.offset, record, size);
		memcpy(base + field.seal_offset, seal, seal_size);

		ck_assert_msg((nfmeta_record_peek(&field, &m) != NULL) == (reads != 0), "%s: peek",
			      name_of(line));
		ck_assert_msg(nfmeta_record_get(&field, &m, &out) == reads, "%s: get",
			      name_of(line));
		ck_assert_uint_eq(out.size, reads);
		if (reads == 0) {
			refused++;
			continue;
		}
		ck_assert_mem_eq(&out, record, reads);
		memcpy(&in, record, size);
		memset(base + field.offset, 0, size);
		memset(base + field.seal_offset, 0, seal_size);
		m.ol_flags = 0;
		ck_assert_int_eq(nfmeta_record_set(&field, &m, &in), 1);
		ck_assert_mem_eq(base + field.seal_offset, seal, seal_size);
		if (field.placement == NFMETA_PLACE_HEADROOM)
			memset(base + field.seal_offset, 0, seal_size);
		ck_assert_mem_eq(base + field.offset, record, size);
		ck_assert_uint_eq(m.ol_flags, flag);
		good++;
	}
	fclose(f);
	ck_assert_uint_gt(good, 20);
	ck_assert_uint_gt(refused, 40);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vectors");
	TCase *tc = tcase_create("vectors");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, flow_keys);
	tcase_add_test(tc, record_fields);
	tcase_add_test(tc, sealed_records);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
