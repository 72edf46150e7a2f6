/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"

#define PRINT_MAX 5 /* disagreements that are told in words */
#define IDS_MAX (UINT32_C(1) << 24)

/* What a flow id stands for, as its packets said so far. */
struct audit_id {
	struct nfmeta_flow_key key;
	uint16_t generation;
	uint8_t used;
	uint8_t first_reverse;
};

/* ... and a key. */
struct audit_key {
	uint32_t id;
	uint16_t generation;
	uint8_t used;
};

int
audit_create(struct audit *a, uint32_t keys)
{
	a->keys = calloc(keys, sizeof(*a->keys));
	return a->keys != NULL ? 0 : complain("out of memory");
}

void
audit_destroy(struct audit *a)
{
	free(a->keys);
	free(a->ids);
	a->keys = NULL;
	a->ids = NULL;
}

__attribute__((format(printf, 3, 4))) static void
differs(const struct audit *a, uint64_t *count, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	(*count)++;
	if (a->disagreements >= PRINT_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("packet %ju disagrees: %s", (uintmax_t)a->compared, text);
}

static struct audit_id *
find_id(struct audit *a, uint32_t id)
{
	uint32_t n = RTE_MAX(a->known, UINT32_C(4096));
	struct audit_id *p;

	if (id < a->known)
		return &a->ids[id];
	if (id >= IDS_MAX)
		return NULL;
	while (n <= id)
		n *= 2;
	p = realloc(a->ids, n * sizeof(*p));
	if (p == NULL)
		return NULL;
	memset(p + a->known, 0, (n - a->known) * sizeof(*p));
	a->ids = p;
	a->known = n;
	return &p[id];
}

/*
 * The same key has the same id and generation, and the other way round, until a
 * packet says that its flow is new.
 */
static void
compare_flow(struct audit *a, const struct nfmeta_record *r, const struct nfmeta_record *mine,
	     const struct nfmeta_flow_key *key, int32_t own)
{
	bool reverse = (r->flags & NFMETA_FLOW_REVERSE) != 0;
	bool mine_reverse = (mine->flags & NFMETA_FLOW_REVERSE) != 0;
	bool is_new = (r->flags & NFMETA_FLOW_NEW) != 0;
	struct audit_key *k = &a->keys[own];
	struct audit_id *i = find_id(a, r->flow_id);

	if (i == NULL)
		return;
	if (is_new && i->used && r->size >= NFMETA_RECORD_CORE && i->generation == r->flow_gen)
		differs(a, &a->flow, "flow %u generation %u is new a second time", r->flow_id,
			r->flow_gen);
	if (!is_new && i->used && memcmp(&i->key, key, sizeof(*key)) != 0)
		differs(a, &a->flow, "flow %u has another key than before", r->flow_id);
	if (!is_new && i->used && i->generation != r->flow_gen)
		differs(a, &a->flow, "flow %u has generation %u, had %u, and is not new",
			r->flow_id, r->flow_gen, i->generation);
	if (!is_new && k->used && (k->id != r->flow_id || k->generation != r->flow_gen))
		differs(a, &a->flow, "its key was flow %u.%u before, is %u.%u, and is not new",
			k->id, k->generation, r->flow_id, r->flow_gen);
	/* the first packet of a flow is against nothing */
	if (is_new && reverse)
		differs(a, &a->direction, "the first packet of flow %u is reverse", r->flow_id);
	if (!is_new && i->used && reverse != (mine_reverse != (i->first_reverse != 0)))
		differs(a, &a->direction, "direction of flow %u: record %d, here %d", r->flow_id,
			reverse, !reverse);

	if (is_new || !i->used) {
		i->key = *key;
		i->generation = r->flow_gen;
		i->first_reverse = mine_reverse != reverse;
		i->used = 1;
	}
	k->id = r->flow_id;
	k->generation = r->flow_gen;
	k->used = 1;
}

void
audit_packet(struct audit *a, const struct nfmeta_field *f, const struct rte_mbuf *m,
	     const struct nfmeta_record *mine, const struct nfmeta_flow_key *key, int32_t own)
{
	const uint16_t flow_bits = NFMETA_FLOW_KNOWN | NFMETA_FLOW_NEW | NFMETA_FLOW_REVERSE;
	struct nfmeta_record r;
	uint64_t sum;

	a->compared++;
	if (nfmeta_record_get(f, m, &r) == 0) {
		differs(a, &a->no_record, "it has no record");
		a->disagreements++;
		return;
	}
	a->later += r.size >= NFMETA_RECORD_FULL && r.chain > 0;
	sum = a->flags + a->offsets + a->vlan + a->flow + a->direction;
	if (((r.flags ^ mine->flags) & ~flow_bits) != 0)
		differs(a, &a->flags, "flags: record 0x%04x, here 0x%04x", r.flags, mine->flags);
	if (r.size >= NFMETA_RECORD_CORE && (r.l3_off != mine->l3_off || r.l4_off != mine->l4_off ||
					     r.payload_off != mine->payload_off))
		differs(a, &a->offsets, "offsets: record %u %u %u, here %u %u %u", r.l3_off,
			r.l4_off, r.payload_off, mine->l3_off, mine->l4_off, mine->payload_off);
	if (r.size >= NFMETA_RECORD_WIDE &&
	    (r.vlan_count != mine->vlan_count || r.vlan_outer != mine->vlan_outer ||
	     r.vlan_inner != mine->vlan_inner))
		differs(a, &a->vlan, "VLAN: record %u tags %u %u, here %u tags %u %u", r.vlan_count,
			r.vlan_outer, r.vlan_inner, mine->vlan_count, mine->vlan_outer,
			mine->vlan_inner);
	if ((r.flags & NFMETA_FLOW_KNOWN) != 0 && key->ip_version == 0)
		differs(a, &a->flow, "it has flow %u, but is not IP", r.flow_id);
	/* without a flow it may be because a table is full */
	if ((r.flags & NFMETA_FLOW_KNOWN) != 0 && own >= 0)
		compare_flow(a, &r, mine, key, own);
	if (sum != a->flags + a->offsets + a->vlan + a->flow + a->direction)
		a->disagreements++;
}
