/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * From keys to flow numbers: a buffer of active flows in front of the rte_hash.
 *
 * The buffer is direct-mapped, and nothing is done about collisions: a slot is one word,
 * the key's hash and the flow's number, and the last one that was looked for has it.
 * Whether it is right says the key in the flow's own line, which is needed anyway; so a
 * word about a flow that has ended harms nothing, and nobody has to take it away.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "splitter.h"

static inline void
fetch(const struct flow_table *t, int32_t id)
{
	if (id < 0)
		return;
	rte_prefetch0(&t->flows[id]);
	rte_prefetch0((const char *)&t->flows[id] + RTE_CACHE_LINE_SIZE);
}

static void
ask_table(struct flow_table *t, const struct nfmeta_flow_key *keys, int32_t *ids, uint16_t n)
{
	const void *want[BURST];
	uint16_t i;

	for (i = 0; i < n; i++)
		want[i] = &keys[i];
	rte_hash_lookup_bulk(t->hash, want, n, ids);
	for (i = 0; i < n; i++)
		fetch(t, ids[i]);
}

static inline bool
is_of(const struct flow_table *t, int32_t id, const struct nfmeta_flow_key *key)
{
	return t->flows[id].used && memcmp(&t->flows[id].key, key, sizeof(*key)) == 0;
}

void
flows_lookup(struct flow_table *t, const struct nfmeta_flow_key *keys, int32_t *ids, uint16_t n)
{
	hash_sig_t hash[BURST], missed_hash[BURST];
	uint32_t mask = t->buffer_slots - 1;
	const void *want[BURST];
	int32_t found[BURST];
	uint16_t missed[BURST], i, k = 0;
	uint64_t word;

	/* With more flows than slots the misses cost more than the hits save. */
	if (t->counts.active > t->buffer_slots) {
		ask_table(t, keys, ids, n);
		return;
	}
	for (i = 0; i < n; i++) {
		hash[i] = rte_hash_crc(&keys[i], sizeof(keys[i]), 0);
		rte_prefetch0(&t->buffer[hash[i] & mask]);
	}
	for (i = 0; i < n; i++) {
		word = t->buffer[hash[i] & mask];
		ids[i] = word >> 32 == hash[i] ? (int32_t)(uint32_t)word - 1 : -1;
		fetch(t, ids[i]);
	}
	for (i = 0; i < n; i++) {
		if (ids[i] >= 0 && is_of(t, ids[i], &keys[i]))
			continue;
		missed[k] = i;
		missed_hash[k] = hash[i];
		want[k++] = &keys[i];
	}
	t->counts.buffer_hits += n - k;
	t->counts.buffer_misses += k;
	if (k == 0)
		return;
	rte_hash_lookup_with_hash_bulk(t->hash, want, missed_hash, k, found);
	for (i = 0; i < k; i++) {
		ids[missed[i]] = found[i];
		fetch(t, found[i]);
		if (found[i] >= 0)
			t->buffer[missed_hash[i] & mask] =
				(uint64_t)missed_hash[i] << 32 | ((uint32_t)found[i] + 1);
	}
}

int
flows_make_buffer(struct flow_table *t, uint32_t max_flows)
{
	t->buffer_slots = rte_align32pow2(RTE_MAX(max_flows / 4, UINT32_C(64)));
	t->buffer = aligned_alloc(RTE_CACHE_LINE_SIZE, t->buffer_slots * sizeof(*t->buffer));
	if (t->buffer == NULL)
		return complain("no memory for %u flows: take a smaller --max-flows", max_flows);
	memset(t->buffer, 0, t->buffer_slots * sizeof(*t->buffer));
	return 0;
}
