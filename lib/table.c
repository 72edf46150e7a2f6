/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_memzone.h>
#include <rte_random.h>

#include "internal.h"

struct nfmeta_table {
	const struct rte_memzone *zone;
	struct nfmeta_table_flow *flow;
	uint32_t flows;
	bool mine; /* made here, not found */
};

static size_t
table_bytes(uint32_t flows)
{
	return sizeof(struct nfmeta_shared_table) +
	       (size_t)flows * sizeof(struct nfmeta_table_flow);
}

/* ---- Primary ---------------------------------------------------------------- */

/* Why there is no zone: rte_errno says. */
static int
no_zone(const char *name, uint32_t flows)
{
	size_t len = table_bytes(flows);

	if (rte_errno == EEXIST)
		return nfmeta__fail(EEXIST, "table '%s' exists already: choose another name", name);
	if (rte_errno == ENOSPC)
		return nfmeta__fail(ENOMEM, "no memzone for table '%s': DPDK has as many as it can",
				    name);
	return nfmeta__fail(
		ENOMEM,
		"no memory for table '%s': %" PRIu32 " flows take %zu bytes (%zu MiB) of hugepage "
		"memory in one piece: give the primary more, or ask for fewer flows; with "
		"--legacy-mem add --iova-mode=va, or a piece ends where physical memory does",
		name, flows, len, (len + (1 << 20) - 1) >> 20);
}

int
nfmeta_table_create(const char *name, uint32_t flows, struct nfmeta_table **out)
{
	char zone[NFMETA_NAME_SIZE];
	struct nfmeta_shared_table *s;
	struct nfmeta_table *t;
	int rc;

	if (out == NULL)
		return nfmeta__fail(EINVAL, "there is no place to put the table");
	rc = nfmeta__check_name("table", name);
	if (rc != 0)
		return rc;
	if (flows == 0 || flows > NFMETA_TABLE_FLOWS_MAX)
		return nfmeta__fail(EINVAL,
				    "table '%s' is to have %" PRIu32 " flows: 1 to %" PRIu32
				    " are allowed",
				    name, flows, NFMETA_TABLE_FLOWS_MAX);
	if (rte_lcore_count() == 0)
		return nfmeta__fail(
			NFMETA_EROLE,
			"DPDK is not initialised: call rte_eal_init() before you create table '%s'",
			name);
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return nfmeta__fail(NFMETA_EROLE,
				    "table '%s' can be created by the DPDK primary only, this "
				    "process is a secondary: use nfmeta_link_table()",
				    name);
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", sizeof(*t));

	/* In one piece of virtual addresses only: no device looks at it. */
	snprintf(zone, sizeof(zone), "nfmeta_t.%s", name);
	t->zone = rte_memzone_reserve_aligned(zone, table_bytes(flows), SOCKET_ID_ANY, 0,
					      RTE_CACHE_LINE_SIZE);
	if (t->zone == NULL) {
		free(t);
		return no_zone(name, flows);
	}
	s = t->zone->addr;
	t->flow = (struct nfmeta_table_flow *)(s + 1);
	t->flows = flows;
	t->mine = true;
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELAXED);
	memset((uint8_t *)s + sizeof(s->magic), 0, table_bytes(flows) - sizeof(s->magic));
	s->abi_major = NFMETA_ABI_MAJOR;
	s->abi_minor = NFMETA_ABI_MINOR;
	s->entry_size = sizeof(struct nfmeta_table_flow);
	s->entry_offset = sizeof(*s);
	s->flows = flows;
	do {
		s->instance = (uint32_t)rte_rand();
	} while (s->instance == 0);
	/* Last: a reader looks at nothing before it sees the magic number. */
	__atomic_store_n(&s->magic, NFMETA_TABLE_MAGIC, __ATOMIC_RELEASE);
	*out = t;
	return 0;
}

void
nfmeta_table_destroy(struct nfmeta_table *t)
{
	struct nfmeta_shared_table *s;

	if (t == NULL || !t->mine)
		return;
	s = t->zone->addr;
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELEASE);
	rte_memzone_free(t->zone);
	free(t);
}

void
nfmeta__table_apply(struct nfmeta_table *t, uint8_t type, const void *entries, uint16_t n)
{
	const struct nfmeta_flow_delete *d = entries;
	const struct nfmeta_flow_state *f = entries;
	uint16_t i;

	switch (type) {
	case NFMETA_MSG_NEW:
	case NFMETA_MSG_UPDATE:
		for (i = 0; i < n; i++, f++)
			if (f->flow_id < t->flows && f->action <= NFMETA_ACTION_SHUNT)
				nfmeta_table_set(&t->flow[f->flow_id], f->flow_gen,
						 NFMETA_TABLE_KEEP, f->action, f->app_id);
		break;
	case NFMETA_MSG_DELETE:
		for (i = 0; i < n; i++, d++)
			if (d->flow_id < t->flows)
				nfmeta_table_close(&t->flow[d->flow_id], d->flow_gen);
		break;
	}
}

/* ---- NF ----------------------------------------------------------------------- */

static int
no_table(const char *zone, const char *what)
{
	return nfmeta__fail(NFMETA_EFORMAT,
			    "memzone '%s' is not a flow table: %s; another program uses the name, "
			    "or memory was overwritten",
			    zone, what);
}

int
nfmeta__table_find(const char *name, struct nfmeta_table **out)
{
	const struct rte_memzone *zone = rte_memzone_lookup(name);
	const struct nfmeta_shared_table *s;
	struct nfmeta_shared_table is;
	struct nfmeta_table *t;

	if (zone == NULL)
		return nfmeta__fail(NFMETA_EFORMAT,
				    "the flow table of the link is not there (memzone '%s'): the "
				    "primary has to keep it until the link is destroyed",
				    name);
	s = zone->addr;
	if (zone->len < sizeof(*s))
		return no_table(name, "too short");
	if (__atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != NFMETA_TABLE_MAGIC)
		return no_table(name, "wrong magic number");
	memcpy(&is, s, sizeof(is)); /* what is judged is what is used */
	if (is.abi_major != NFMETA_ABI_MAJOR)
		return nfmeta__fail(
			NFMETA_EABI,
			"flow table '%s' is of ABI %u, this side speaks ABI %u: install "
			"the same major version of libnfmeta on both sides",
			name, is.abi_major, NFMETA_ABI_MAJOR);
	if (is.entry_size != sizeof(struct nfmeta_table_flow))
		return nfmeta__fail(NFMETA_EFORMAT,
				    "memzone '%s' is not a flow table: its entries have %u bytes, "
				    "in ABI %u they have %zu; memory was overwritten",
				    name, is.entry_size, NFMETA_ABI_MAJOR,
				    sizeof(struct nfmeta_table_flow));
	if (is.instance == 0)
		return no_table(name, "it has no instance number");
	if (is.entry_offset < sizeof(is) || is.entry_offset % RTE_CACHE_LINE_SIZE != 0)
		return no_table(name, "the place of its entries is not possible");
	if (is.flows == 0 || is.flows > NFMETA_TABLE_FLOWS_MAX)
		return no_table(name, "the number of its flows is not possible");
	if (is.entry_offset + (size_t)is.flows * is.entry_size > zone->len)
		return nfmeta__fail(NFMETA_EFORMAT,
				    "memzone '%s' is not a flow table: %" PRIu32
				    " flows do not fit into its %zu bytes; memory was overwritten",
				    name, is.flows, zone->len);

	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", sizeof(*t));
	t->zone = zone;
	t->flow = (void *)((uint8_t *)zone->addr + is.entry_offset);
	t->flows = is.flows;
	*out = t;
	return 0;
}

void
nfmeta__table_drop(struct nfmeta_table *t)
{
	if (t != NULL && !t->mine)
		free(t);
}

/* ---- Both --------------------------------------------------------------------- */

struct nfmeta_table_flow *
nfmeta_table_flows(const struct nfmeta_table *t, uint32_t *flows)
{
	if (flows != NULL)
		*flows = t != NULL ? t->flows : 0;
	return t != NULL ? t->flow : NULL;
}

const char *
nfmeta__table_zone(const struct nfmeta_table *t)
{
	return t->zone->name;
}
