/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The golden vectors of bindings-spec: the library reads and writes what the
 * text says.  The files have one vector a line, so plain searching reads them.
 */
#include "../lib/error.c" /* nfmeta__flow_check() is hidden in the library */
#include "../lib/link.c"
#include "../lib/reclaim.c"
#include "../lib/flow.c"
static const struct rte_memzone *table_zone; /* what a reader finds under any name */
#define rte_memzone_lookup(name) (table_zone != NULL && (name) != NULL ? table_zone : NULL)
#include "../lib/table.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <nfmeta/nfmeta.h>

#include "packet.h"

#define LINE 65536 /* the longest message, in words and numbers */

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
	static char line[LINE];
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
	static char line[LINE];
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
	static char line[LINE];

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

/* ---- Handshakes --------------------------------------------------------------- */

#define HANDSHAKE_MAX 4096

/* The good ones; what others change. */
static struct handshake {
	char name[128];
	uint32_t len;
	uint8_t bytes[HANDSHAKE_MAX];
} handshake[16];

/* The next text of a list, without its quotes. */
static const char *
next_text(const char **at, char out[128])
{
	ck_assert_int_ge(sscanf(*at, "%*[^\"]\"%127[^\"]", out), 0);
	*at = strchr(*at, '"');
	ck_assert(*at != NULL);
	if ((*at)[1] == '"')
		out[0] = '\0';
	*at = strchr(*at + 1, '"') + 1;
	return out;
}

static void
same_text(const char *line, const char *name, const char *field)
{
	char wanted[160];

	snprintf(wanted, sizeof(wanted), "\"%s\": \"%s\"", name, field);
	ck_assert_msg(strstr(line, wanted) != NULL, "%s: %s is '%s'", name_of(line), name, field);
}

static unsigned int
read_handshakes(FILE *f, char *line, size_t size)
{
	unsigned int n = 0;

	while (fgets(line, (int)size, f) != NULL && strstr(line, "\"judged\"") == NULL) {
		struct handshake *h = &handshake[n];

		if (find(line, "bytes") == NULL)
			continue;
		ck_assert_uint_lt(++n, RTE_DIM(handshake));
		strcpy(h->name, name_of(line));
		h->len = bytes(line, "bytes", h->bytes, sizeof(h->bytes));
	}
	return n;
}

START_TEST(handshakes)
{
	FILE *f = vectors("handshakes.json");
	uint32_t count = 0, q, i;
	static char line[LINE];

	while (fgets(line, sizeof(line), f) != NULL && strstr(line, "\"judged\"") == NULL) {
		static uint64_t room[HANDSHAKE_MAX / 8];
		struct nfmeta_shared_link *s = (void *)room;
		uint32_t len;
		const char *at;
		char text[128];

		if (find(line, "bytes") == NULL)
			continue;
		len = bytes(line, "bytes", (void *)room, sizeof(room));
#define SAME(name, value) ck_assert_msg(number(line, name) == (value), "%s: " name, name_of(line))
		SAME("size", len);
		SAME("magic", s->magic);
		SAME("abi_major", s->abi_major);
		SAME("abi_minor", s->abi_minor);
		SAME("size", s->size);
		SAME("features_required", s->features_required);
		SAME("features_offered", s->features_offered);
		SAME("instance", s->instance);
		SAME("state", s->state);
		SAME("queue_count", s->queue_count);
		SAME("queue_size", s->queue_size);
		SAME("queue_offset", s->queue_offset);
		SAME("when_full", s->when_full);
		SAME("ring_size", s->ring_size);
		SAME("blanks", s->blanks);
		SAME("field_flag", s->field.flag);
		SAME("field_key", s->field.key);
		SAME("field_offset", s->field.offset);
		SAME("field_seal_offset", s->field.seal_offset);
		SAME("field_placement", s->field.placement);
		SAME("field_size", s->field.size);
		SAME("flow_ring", s->flow_ring);
		SAME("flow_carrier", s->flow_carrier);
		SAME("heartbeat", s->heartbeat);
#undef SAME
		same_text(line, "link", s->name);
		same_text(line, "library_version", s->library_version);
		same_text(line, "dpdk_version", s->dpdk_version);
		same_text(line, "pool_name", s->pool_name);
		same_text(line, "pool_ops", s->pool_ops);
		same_text(line, "flow_table", s->flow_table);
		at = find(line, "queues");
		for (q = 0; q < s->queue_count; q++) {
			struct nfmeta_shared_queue *b =
				(void *)((uint8_t *)s + s->queue_offset + q * s->queue_size);
			const char *names[] = {b->down, b->up, b->blank, b->flow_down, b->flow_up};

			for (i = 0; i < RTE_DIM(names); i++) {
				next_text(&at, text);
				if (i < 3 || s->flow_carrier != 0)
					ck_assert_str_eq(text, names[i]);
				else
					ck_assert_str_eq(text, "");
			}
		}
		count++;
	}
	fclose(f);
	ck_assert_uint_gt(count, 8);
}
END_TEST

/* DPDK's version and mbuf are those of this side, but where the vector changes them. */
START_TEST(judged_handshakes)
{
	FILE *f = vectors("handshakes.json");
	unsigned int n, i, accepted = 0, again = 0, refused = 0;
	static struct nfmeta_shared_link here;
	static char line[LINE];

	nfmeta__handshake_local(&here);
	n = read_handshakes(f, line, sizeof(line));
	while (fgets(line, sizeof(line), f) != NULL) {
		static uint64_t room[HANDSHAKE_MAX / 8];
		struct nfmeta_shared_link *s = (void *)room;
		struct rte_memzone zone = {.addr = room};
		struct nfmeta_link link;
		char of[128], name[128] = "", result[128];
		const char *at, *got;
		uint32_t queue;
		int rc;

		at = find(line, "of");
		if (at == NULL)
			continue;
		ck_assert_int_eq(sscanf(at, "%127[^\"]", of), 1);
		ck_assert_int_eq(sscanf(find(line, "link"), "%127[^\"]", name), 1);
		ck_assert_int_eq(sscanf(find(line, "result"), "%127[^\"]", result), 1);
		for (i = 0; i < n && strcmp(handshake[i].name, of) != 0; i++)
			;
		ck_assert_msg(i < n, "%s: there is no \"%s\"", name_of(line), of);
		memset(room, 0, sizeof(room));
		memcpy(room, handshake[i].bytes, handshake[i].len);
		memcpy(s->dpdk_version, here.dpdk_version, sizeof(s->dpdk_version));
		memcpy(s->mbuf_layout, here.mbuf_layout, sizeof(s->mbuf_layout));
		i = (unsigned int)number(line, "at");
		bytes(line, "put", (uint8_t *)room + i, HANDSHAKE_MAX - i);
		zone.len = number(line, "length");
		queue = (uint32_t)number(line, "queue");

		if (strcmp(result, "accept") == 0) { /* behind that, the rings are looked up */
			rc = nfmeta__handshake_check(room, zone.len, name, queue);
			ck_assert_msg(rc == 0, "%s: %s", name_of(line), nfmeta_error());
			ck_assert_uint_eq(s->state, NFMETA_LINK_READY);
			accepted++;
			continue;
		}
		rc = look_at(&zone, name, queue, &link);
		got = rc == -EAGAIN ? "again" : nfmeta_strerror(rc);
		ck_assert_msg(strcmp(got, result) == 0, "%s: %s: %s", name_of(line), got,
			      nfmeta_error());
		if (rc == -EAGAIN)
			again++;
		else
			refused++;
	}
	fclose(f);
	ck_assert_uint_gt(accepted, 10);
	ck_assert_uint_gt(again, 2);
	ck_assert_uint_gt(refused, 60);
}
END_TEST

/* ---- Flow state ------------------------------------------------------------- */

/* A number of an array: "name": ["0x...", ...] */
static uint64_t
element(const char *line, const char *name, unsigned int i)
{
	const char *at = find(line, name);

	ck_assert_msg(at != NULL, "no \"%s\" in %s", name, line);
	while (i-- > 0) {
		at = strchr(at, ',');
		ck_assert_ptr_nonnull(at);
		at++;
	}
	while (*at == '"' || *at == ' ')
		at++;
	return strtoull(at, NULL, 0);
}

/* Every field that the vector lists is where the struct says; returns how many. */
static unsigned int
same_entry(uint8_t type, const void *entry, const char *text)
{
	unsigned int n = 0;

#define SAME(s, field)                                                                             \
	do {                                                                                       \
		if (find(text, #field) == NULL)                                                    \
			break;                                                                     \
		ck_assert_msg(number(text, #field) == ((const struct s *)entry)->field,            \
			      "type %u: " #field, type);                                           \
		n++;                                                                               \
	} while (0)
#define SAME2(s, field)                                                                            \
	do {                                                                                       \
		ck_assert_uint_eq(element(text, #field, 0), ((const struct s *)entry)->field[0]);  \
		ck_assert_uint_eq(element(text, #field, 1), ((const struct s *)entry)->field[1]);  \
		n++;                                                                               \
	} while (0)
	switch (type) {
	case NFMETA_MSG_NEW:
	case NFMETA_MSG_UPDATE:
	case NFMETA_MSG_SNAPSHOT:
		SAME(nfmeta_flow_state, flow_id);
		SAME(nfmeta_flow_state, flow_gen);
		SAME(nfmeta_flow_state, action);
		SAME(nfmeta_flow_state, app_id);
		break;
	case NFMETA_MSG_DELETE:
		SAME(nfmeta_flow_delete, flow_id);
		SAME(nfmeta_flow_delete, flow_gen);
		SAME(nfmeta_flow_delete, reason);
		break;
	case NFMETA_MSG_COUNTERS:
		SAME(nfmeta_flow_counters, flow_id);
		SAME(nfmeta_flow_counters, flow_gen);
		SAME2(nfmeta_flow_counters, packets);
		SAME2(nfmeta_flow_counters, bytes);
		break;
	case NFMETA_MSG_VERDICT:
		SAME(nfmeta_flow_verdict, flow_id);
		SAME(nfmeta_flow_verdict, flow_gen);
		SAME(nfmeta_flow_verdict, verdict);
		SAME(nfmeta_flow_verdict, flags);
		SAME(nfmeta_flow_verdict, after);
		SAME(nfmeta_flow_verdict, ttl);
		SAME(nfmeta_flow_verdict, who);
		SAME(nfmeta_flow_verdict, why);
		break;
	case NFMETA_MSG_LOAD:
		SAME(nfmeta_flow_load, busy);
		SAME(nfmeta_flow_load, flows);
		SAME(nfmeta_flow_load, overload);
		break;
	case NFMETA_MSG_RESYNC:
	case NFMETA_MSG_ACK:
		SAME(nfmeta_flow_mark, seq);
		break;
	default:
		ck_abort_msg("type %u has no entries", type);
	}
#undef SAME
#undef SAME2
	return n;
}

START_TEST(messages)
{
	static const unsigned int fields[] = {
		[NFMETA_MSG_NEW] = 4,	   [NFMETA_MSG_UPDATE] = 4,   [NFMETA_MSG_DELETE] = 3,
		[NFMETA_MSG_COUNTERS] = 4, [NFMETA_MSG_SNAPSHOT] = 4, [NFMETA_MSG_VERDICT] = 8,
		[NFMETA_MSG_LOAD] = 3,	   [NFMETA_MSG_RESYNC] = 1,   [NFMETA_MSG_ACK] = 1,
	};
	FILE *f = vectors("messages.json");
	static char line[LINE];
	uint32_t len, i, count = 0, types = 0;

	while (fgets(line, sizeof(line), f) != NULL) {
		struct nfmeta_flow_batch *b;
		const char *entry;
		uint8_t *exact;
		char *text;

		if (find(line, "message") == NULL)
			continue;
		b = malloc(NFMETA_FLOW_MESSAGE_BYTES);
		len = bytes(line, "message", (uint8_t *)b, NFMETA_FLOW_MESSAGE_BYTES + 1);
		exact = malloc(len); /* no byte more, for the sanitizers */
		memcpy(exact, b, len);
		ck_assert_uint_eq(len, number(line, "length"));
		ck_assert_msg(nfmeta__flow_check(exact, len, (int)number(line, "up")) == (int)len,
			      "%s: %d", name_of(line),
			      nfmeta__flow_check(exact, len, (int)number(line, "up")));
		free(exact);

		entry = strstr(line, "\"entries\": [");
		ck_assert_ptr_nonnull(entry);
#define SAME(field)                                                                                \
	ck_assert_msg(find(line, #field) < entry && number(line, #field) == b->field,              \
		      "%s: " #field, name_of(line))
		SAME(magic);
		SAME(abi);
		SAME(type);
		SAME(flags);
		SAME(count);
		SAME(entry_size);
		SAME(source);
		SAME(ask);
		SAME(instance);
		SAME(epoch);
		SAME(seq);
		SAME(barrier);
#undef SAME
		ck_assert_uint_eq(len, sizeof(*b) + b->count * b->entry_size);
		for (i = 0; i < b->count; i++) {
			entry = strchr(entry, '{');
			ck_assert_msg(entry != NULL, "%s: too few entries", name_of(line));
			text = strndup(entry, (size_t)(strchr(entry, '}') - entry));
			ck_assert_uint_eq(
				same_entry(b->type, nfmeta_flow_entry(b, (uint16_t)i), text),
				fields[b->type]);
			free(text);
			entry++;
		}
		if (b->count != 0)
			ck_assert_msg(strchr(entry, '{') == NULL, "%s: more", name_of(line));
		types |= UINT32_C(1) << b->type;
		free(b);
		count++;
	}
	fclose(f);
	ck_assert_uint_gt(count, 40);
	ck_assert_uint_eq(types, 0xf00fe); /* all there are */
}
END_TEST

START_TEST(judged_messages)
{
	FILE *f = vectors("messages.json");
	uint32_t seen[4] = {0};
	static uint8_t data[8192];
	static char line[LINE];

	while (fgets(line, sizeof(line), f) != NULL) {
		const char *result = find(line, "result");
		uint32_t len, what;
		uint8_t *exact;
		int rc, want;

		if (result == NULL)
			continue;
		len = bytes(line, "bytes", data, sizeof(data));
		if (strncmp(result, "deliver\"", 8) == 0)
			what = 0, want = (int)number(line, "length");
		else if (strncmp(result, "skip\"", 5) == 0)
			what = 1, want = 0;
		else if (strncmp(result, "more\"", 5) == 0)
			what = 2, want = -EAGAIN;
		else
			what = 3, want = -NFMETA_EMESSAGE;
		exact = malloc(len);
		memcpy(exact, data, len);
		rc = nfmeta__flow_check(exact, len, (int)number(line, "up"));
		ck_assert_msg(rc == want, "%s: %d, not %d", name_of(line), rc, want);
		free(exact);
		seen[what]++;
	}
	fclose(f);
	ck_assert_uint_ge(seen[0], 2);
	ck_assert_uint_ge(seen[1], 10);
	ck_assert_uint_ge(seen[2], 6);
	ck_assert_uint_ge(seen[3], 80);
}
END_TEST

/* Read each entry; make each anew from key, state and counters. */
START_TEST(table_entries)
{
	FILE *f = vectors("table.json");
	static char line[LINE];
	uint32_t count = 0;

	while (fgets(line, sizeof(line), f) != NULL) {
		struct nfmeta_table_flow e, copy, made;
		struct nfmeta_flow_key key;
		uint8_t addr[16];
		uint64_t pa, pb, ba, bb;
		uint8_t phase, action;
		uint32_t app;
		int reverse;

		if (find(line, "entry") == NULL)
			continue;
		ck_assert_uint_eq(bytes(line, "entry", (uint8_t *)&e, sizeof(e) + 1), sizeof(e));
		ck_assert_uint_eq(bytes(line, "key", (uint8_t *)&key, sizeof(key) + 1),
				  sizeof(key));
#define SAME(field, value)                                                                         \
	ck_assert_msg(number(line, field) == (value), "%s: " field, name_of(line))
		SAME("seq", e.seq);
		SAME("flow_gen", e.flow_gen);
		SAME("state", e.state);
		SAME("proto", e.proto);
		SAME("app_id", e.app_id);
		SAME("from_a", e.from_a);
		SAME("from_b", e.from_b);
		SAME("port_a", (uint32_t)(e.port_a[0] << 8 | e.port_a[1]));
		SAME("port_b", (uint32_t)(e.port_b[0] << 8 | e.port_b[1]));
		ck_assert_uint_eq(bytes(line, "addr_a", addr, 17), 16);
		ck_assert_mem_eq(addr, e.addr_a, 16);
		ck_assert_uint_eq(bytes(line, "addr_b", addr, 17), 16);
		ck_assert_mem_eq(addr, e.addr_b, 16);

		ck_assert_int_eq(nfmeta_table_read(&e, &copy), 1);
		ck_assert_mem_eq(&copy, &e, sizeof(e));
		phase = (uint8_t)number(line, "phase");
		action = (uint8_t)number(line, "action");
		reverse = (int)number(line, "reverse");
		app = (uint32_t)number(line, "app_id");
		pa = number(line, "packets_a");
		pb = number(line, "packets_b");
		ba = number(line, "bytes_a");
		bb = number(line, "bytes_b");
		ck_assert_uint_eq(nfmeta_table_state(&copy), phase);
		ck_assert_uint_eq(nfmeta_table_action(&copy), action);
		ck_assert_int_eq((copy.state & NFMETA_TABLE_REVERSE) != 0, reverse);
		SAME("packets_a", nfmeta_table_packets(copy.from_a));
		SAME("bytes_a", nfmeta_table_bytes(copy.from_a));
		SAME("packets_b", nfmeta_table_packets(copy.from_b));
		SAME("bytes_b", nfmeta_table_bytes(copy.from_b));
#undef SAME

		memset(&made, 0xee, sizeof(made));
		made.seq = e.seq - 4; /* to open and to set are two changes */
		nfmeta_table_open(&made, e.flow_gen, &key, reverse);
		ck_assert_int_eq(nfmeta_table_set(&made, e.flow_gen, phase, action, app), 1);
		nfmeta_table_count(&made, 0, pa, ba);
		nfmeta_table_count(&made, 1, pb, bb);
		ck_assert_msg(memcmp(&made, &e, sizeof(e)) == 0, "%s: made anew", name_of(line));
		if (pa == NFMETA_TABLE_PACKETS_MAX && ba == NFMETA_TABLE_BYTES_MAX) {
			nfmeta_table_count(&made, 0, 1, 1); /* full stays full */
			ck_assert_uint_eq(made.from_a, e.from_a);
		}
		count++;
	}
	fclose(f);
	ck_assert_uint_gt(count, 20);
}
END_TEST

START_TEST(table_headers)
{
	FILE *f = vectors("table.json");
	unsigned int accepted = 0, refused = 0;
	static char line[LINE];

	while (fgets(line, sizeof(line), f) != NULL) {
		struct nfmeta_shared_table header = {0};
		struct rte_memzone zone = {.addr = &header};
		struct nfmeta_table *t = NULL;
		char result[128];
		uint32_t flows;
		int rc;

		if (find(line, "header") == NULL)
			continue;
		bytes(line, "header", (uint8_t *)&header, sizeof(header));
		zone.len = number(line, "length");
		ck_assert_int_eq(sscanf(find(line, "result"), "%127[^\"]", result), 1);
		table_zone = &zone;
		rc = nfmeta__table_find("nfmeta_t.demo", &t);
		table_zone = NULL;
		if (strcmp(result, "accept") != 0) {
			ck_assert_msg(strcmp(nfmeta_strerror(rc), result) == 0, "%s: %s",
				      name_of(line), nfmeta_strerror(rc));
			refused++;
			continue;
		}
		ck_assert_msg(rc == 0, "%s: %s", name_of(line), nfmeta_error());
		ck_assert_uint_eq(number(line, "entry_offset"),
				  (uintptr_t)nfmeta_table_flows(t, &flows) - (uintptr_t)&header);
		ck_assert_uint_eq(number(line, "flows"), flows);
		ck_assert_uint_eq(number(line, "instance"), header.instance);
		nfmeta__table_drop(t);
		accepted++;
	}
	fclose(f);
	ck_assert_uint_gt(accepted, 3);
	ck_assert_uint_gt(refused, 10);
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
	tcase_add_test(tc, handshakes);
	tcase_add_test(tc, judged_handshakes);
	tcase_add_test(tc, messages);
	tcase_add_test(tc, judged_messages);
	tcase_add_test(tc, table_entries);
	tcase_add_test(tc, table_headers);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
