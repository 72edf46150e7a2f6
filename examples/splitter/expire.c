/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lcore.h>

#include "splitter.h"

#define SWEEP_HZ 10 /* how often the timer looks at a part of the table */

/* ---- the CSV ------------------------------------------------------------------------ */

static int
open_csv(struct flow_table *t, const char *path)
{
	if (path == NULL)
		return 0;
	t->csv_path = path;
	t->csv = fopen(path, "w");
	if (t->csv == NULL)
		return complain("--flows: cannot write \"%s\": %s", path, strerror(errno));
	fprintf(t->csv, "proto,addr_a,port_a,addr_b,port_b,vlan_outer,vlan_inner,fragment,"
			"packets_a,packets_b,bytes_a,bytes_b,id,generation,app,master,"
			"master_generation\n");
	return 0;
}

/* Two columns, empty if it has none. */
static const char *
master_of(const struct flow_table *t, const struct flow *f, char *text, size_t size)
{
	uint16_t generation;
	uint32_t id;

	if (!f->expected)
		return ",";
	correlate_master(t->correlate, f, &id, &generation);
	snprintf(text, size, "%u,%u", id, generation);
	return text;
}

void
flows_write(struct flow_table *t, const struct flow *f)
{
	const struct nfmeta_flow_key *k = &f->key;
	int family = k->ip_version == 4 ? AF_INET : AF_INET6;
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN], master[32];

	if (t->csv == NULL)
		return;
	inet_ntop(family, k->addr_a, a, sizeof(a));
	inet_ntop(family, k->addr_b, b, sizeof(b));
	fprintf(t->csv, "%u,%s,%u,%s,%u,%u,%u,%u,%ju,%ju,%ju,%ju,%u,%u,%u,%s\n", k->proto, a,
		k->port_a[0] << 8 | k->port_a[1], b, k->port_b[0] << 8 | k->port_b[1],
		k->vlan[0][0] << 8 | k->vlan[0][1], k->vlan[1][0] << 8 | k->vlan[1][1], k->fragment,
		(uintmax_t)f->packets[0], (uintmax_t)f->packets[1], (uintmax_t)f->bytes[0],
		(uintmax_t)f->bytes[1], flow_id(t, f), f->generation, f->app_id & 0xffff,
		master_of(t, f, master, sizeof(master)));
}

int
flows_close_csv(struct flow_table *t)
{
	int rc;

	if (t->csv == NULL)
		return 0;
	rc = ferror(t->csv);
	rc |= fclose(t->csv);
	t->csv = NULL;
	if (rc == 0)
		return 0;
	return complain("--flows: writing \"%s\" failed: %s", t->csv_path, strerror(errno));
}

/* ---- time-outs -------------------------------------------------------------------- */

static inline uint64_t
timeout_of(const struct flow_table *t, const struct flow *f)
{
	if (flow_closed(f))
		return t->timeout_closed;
	return f->key.proto == IPPROTO_UDP ? t->timeout_udp : t->timeout;
}

static uint16_t
reason_of(const struct flow *f)
{
	if (!flow_closed(f))
		return NFMETA_END_TIMEOUT;
	return f->closing & FLOW_RST ? NFMETA_END_RESET : NFMETA_END_CLOSED;
}

/*
 * Runs also while a burst waits for room at the NF: flows that have packets in it
 * (last is the burst's time) do not end then, however long it takes.
 */
static void
sweep(struct rte_timer *timer, void *arg)
{
	struct flow_table *t = arg;
	uint64_t now = rte_rdtsc();
	struct flow *f;
	uint32_t i;

	(void)timer;
	for (i = 0; i < t->sweep_step; i++) {
		f = &t->flows[t->sweep];
		if (f->used && now > f->last && now - f->last > timeout_of(t, f) &&
		    f->last != t->hand &&
		    (t->under_way == NULL || !t->under_way(t->under_way_arg, f))) {
			flows_end(t, f, reason_of(f));
			t->counts.timed_out++;
		}
		if (++t->sweep == t->slots)
			t->sweep = 0;
	}
	for (i = 0; i < t->first->links; i++)
		feed_flush(t->feeds[i]);
}

/* Every slot is looked at twice per time-out, the shortest one. */
static void
start_timer(struct flow_table *t, const struct flow_opts *o)
{
	uint64_t udp = RTE_MIN(o->timeout, o->timeout_udp);
	uint64_t closed = RTE_MIN(o->timeout, o->timeout_closed);
	uint64_t visits = RTE_MAX(RTE_MIN(udp, closed) * SWEEP_HZ / 2, UINT64_C(1));

	t->timeout = o->timeout * rte_get_tsc_hz();
	t->timeout_udp = udp * rte_get_tsc_hz();
	t->timeout_closed = closed * rte_get_tsc_hz();
	t->sweep_step = (uint32_t)(t->slots / visits + 1);
	rte_timer_init(&t->timer);
	rte_timer_reset(&t->timer, rte_get_timer_hz() / SWEEP_HZ, PERIODICAL, rte_lcore_id(), sweep,
			t);
}

bool
flows_stop(struct flow_table *t, uint32_t n)
{
	for (; n > 0 && t->head != FLOW_NONE; n--)
		flows_end(t, &t->flows[t->head], NFMETA_END_STOPPED);
	return t->head != FLOW_NONE;
}

/* ---- make and unmake ----------------------------------------------------------------- */

static int
make_hash(struct flow_table *t, uint32_t max_flows)
{
	struct rte_hash_parameters p = {
		.name = "splitter_flows",
		.entries = max_flows,
		.key_len = sizeof(struct nfmeta_flow_key),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
		/* full when max_flows are in it, not when two buckets are */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};

	t->hash = rte_hash_create(&p);
	if (t->hash == NULL)
		return complain("too little hugepage memory for a table of %u flows, about %ju MB:"
				" take a smaller --max-flows, or more hugepages",
				max_flows, (uintmax_t)(flows_memory(max_flows, false) >> 20));
	t->slots = (uint32_t)rte_hash_max_key_id(t->hash) + 1;
	t->flows = aligned_alloc(RTE_CACHE_LINE_SIZE, t->slots * sizeof(*t->flows));
	if (t->flows == NULL)
		return complain("no memory for %u flows: take a smaller --max-flows", max_flows);
	memset(t->flows, 0, t->slots * sizeof(*t->flows));
	return 0;
}

/* Several links. */
static int
make_more(struct flow_table *t, uint32_t max_flows)
{
	size_t n = (size_t)t->slots * (t->first->links - 1u) * sizeof(*t->more);

	if (n == 0)
		return 0;
	t->more = aligned_alloc(RTE_CACHE_LINE_SIZE, n);
	if (t->more == NULL)
		return complain("no memory for %u flows at %u links: take a smaller --max-flows",
				max_flows, t->first->links);
	memset(t->more, 0, n);
	return 0;
}

static int
make_shared(struct flow_table *t, bool wanted)
{
	if (!wanted)
		return 0;
	if (nfmeta_table_create("splitter_flows", t->slots, &t->shared) != 0)
		return complain("%s", nfmeta_error());
	t->entries = nfmeta_table_flows(t->shared, NULL);
	return 0;
}

struct flow_table *
flows_create(const struct flow_opts *o, struct first *first, struct feed *const *feeds)
{
	struct flow_table *t = calloc(1, sizeof(*t));
	uint8_t i;

	if (t == NULL) {
		complain("no memory for the flow table");
		return NULL;
	}
	t->first = first;
	for (i = 0; i < first->links; i++)
		t->feeds[i] = feeds[i];
	t->head = t->tail = FLOW_NONE;
	if (rte_timer_subsystem_init() != 0) {
		complain("the timers cannot be made: no hugepage memory is left: raise -m");
		free(t);
		return NULL;
	}
	if (make_hash(t, o->max_flows) != 0 || make_more(t, o->max_flows) != 0 ||
	    flows_make_buffer(t, o->max_flows) != 0 || make_shared(t, o->shared) != 0 ||
	    open_csv(t, o->csv) != 0) {
		flows_destroy(t);
		return NULL;
	}
	start_timer(t, o);
	return t;
}

uint64_t
flows_memory(uint32_t max_flows, bool shared)
{
	/* a key slot of 64 bytes, two buckets of 64 bytes for 8 keys, the free lists */
	uint64_t n = rte_align32pow2(max_flows);

	return n * (64 + 16 + 17) + (shared ? n * sizeof(struct nfmeta_table_flow) : 0) + (1 << 20);
}

void
flows_destroy(struct flow_table *t)
{
	if (t == NULL)
		return;
	if (t->timeout != 0)
		rte_timer_stop_sync(&t->timer);
	flows_close_csv(t);
	nfmeta_table_destroy(t->shared);
	free(t->buffer);
	free(t->more);
	free(t->flows);
	free(t);
}
