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
#include <rte_tcp.h>
#include <rte_timer.h>

#include "splitter.h"

/*
 * rte_hash gives every key a number: that is the flow id, and the index of the
 * flow's slot.  A number is given again when its flow has ended; the slot's
 * generation grows each time, so that id and generation together are unique.
 */
struct flow {
	struct nfmeta_flow_key key;
	uint64_t last;		       /* TSC of the last packet */
	uint64_t packets[2], bytes[2]; /* from end a of the key, from end b */
	uint32_t base[2];	       /* TCP: first sequence number, as if it were a SYN's */
	uint16_t generation;
	uint8_t used;
	uint8_t first_reverse; /* the first packet came from end b */
	uint8_t base_known;    /* bit per direction */
} __rte_cache_aligned;

struct flow_table {
	struct rte_hash *hash;
	struct flow *flows;
	uint32_t slots;
	uint32_t sweep; /* next slot the timer looks at */
	uint32_t sweep_step;
	uint64_t timeout; /* TSC cycles */
	struct rte_timer timer;
	struct flow_counts counts;
	FILE *csv;
	const char *csv_path;
};

#define SWEEP_HZ 10 /* how often the timer looks at a part of the table */

/* ---- the end of a flow ----------------------------------------------------------- */

static void
write_csv(struct flow_table *t, const struct flow *f, uint32_t id)
{
	const struct nfmeta_flow_key *k = &f->key;
	int family = k->ip_version == 4 ? AF_INET : AF_INET6;
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];

	if (t->csv == NULL)
		return;
	inet_ntop(family, k->addr_a, a, sizeof(a));
	inet_ntop(family, k->addr_b, b, sizeof(b));
	fprintf(t->csv, "%u,%s,%u,%s,%u,%u,%u,%u,%ju,%ju,%ju,%ju,%u,%u\n", k->proto, a,
		k->port_a[0] << 8 | k->port_a[1], b, k->port_b[0] << 8 | k->port_b[1],
		k->vlan[0][0] << 8 | k->vlan[0][1], k->vlan[1][0] << 8 | k->vlan[1][1], k->fragment,
		(uintmax_t)f->packets[0], (uintmax_t)f->packets[1], (uintmax_t)f->bytes[0],
		(uintmax_t)f->bytes[1], id, f->generation);
}

/* Start counting anew in this slot. */
static void
begin_flow(struct flow_table *t, struct flow *f, const struct nfmeta_flow_key *key,
	   unsigned int direction)
{
	uint16_t generation = f->generation;

	memset(f, 0, sizeof(*f));
	f->key = *key;
	f->generation = (uint16_t)(generation + 1);
	f->used = 1;
	f->first_reverse = (uint8_t)direction;
	t->counts.flows++;
}

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
		if (f->used && now - f->last > t->timeout && now > f->last) {
			write_csv(t, f, t->sweep);
			rte_hash_del_key(t->hash, &f->key);
			f->used = 0;
			t->counts.timed_out++;
			t->counts.active--;
		}
		if (++t->sweep == t->slots)
			t->sweep = 0;
	}
}

/* ---- packets ------------------------------------------------------------------------ */

/*
 * Is this TCP packet the first of a new connection between the same two ports?
 * As Wireshark decides: it is a SYN without ACK, and its sequence number is not
 * the one that this direction started with.
 */
static bool
tcp_again(struct flow *f, const struct rte_mbuf *m, const struct nfmeta_record *r, unsigned int dir,
	  bool is_new)
{
	struct rte_tcp_hdr copy;
	const struct rte_tcp_hdr *tcp = rte_pktmbuf_read(m, r->l4_off, sizeof(copy), &copy);
	uint32_t seq;
	bool syn;

	if (tcp == NULL)
		return false;
	seq = rte_be_to_cpu_32(tcp->sent_seq);
	syn = (tcp->tcp_flags & RTE_TCP_SYN_FLAG) != 0;
	if (!is_new && syn && (tcp->tcp_flags & RTE_TCP_ACK_FLAG) == 0 &&
	    (f->base_known & 1u << dir) != 0 && f->base[dir] != seq)
		return true;
	if ((f->base_known & 1u << dir) == 0) {
		f->base_known |= (uint8_t)(1u << dir);
		f->base[dir] = syn ? seq : seq - 1;
	}
	return false;
}

static void
put_flow(struct flow_table *t, struct rte_mbuf *m, struct nfmeta_record *r,
	 const struct nfmeta_flow_key *key, int32_t id, uint64_t now)
{
	unsigned int dir = (r->flags & NFMETA_FLOW_REVERSE) != 0;
	struct flow *f;
	bool is_new;

	if (id < 0) {
		/* an earlier packet of this burst may have added it */
		id = rte_hash_add_key(t->hash, key);
		if (id < 0) {
			t->counts.unknown++;
			return;
		}
	}
	f = &t->flows[id];
	is_new = !f->used;
	if (is_new) {
		begin_flow(t, f, key, dir);
		t->counts.active++;
	}
	if (key->proto == IPPROTO_TCP && (r->flags & NFMETA_L4_VALID) != 0 &&
	    tcp_again(f, m, r, dir, is_new)) {
		write_csv(t, f, (uint32_t)id);
		begin_flow(t, f, key, dir);
		tcp_again(f, m, r, dir, true);
		t->counts.reused++;
		is_new = true;
	}
	f->last = now;
	f->packets[dir]++;
	f->bytes[dir] += m->pkt_len;
	nfmeta_record_set_flow(r, (uint32_t)id, f->generation, f->first_reverse, is_new);
}

void
flows_burst(struct flow_table *t, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
	    const struct nfmeta_flow_key *keys, uint16_t n, uint64_t now)
{
	const void *want[BURST];
	int32_t ids[BURST];
	uint16_t i;

	for (i = 0; i < n; i++)
		want[i] = &keys[i];
	rte_hash_lookup_bulk(t->hash, want, n, ids);
	for (i = 0; i < n; i++) {
		if (ids[i] >= 0) {
			rte_prefetch0(&t->flows[ids[i]]);
			rte_prefetch0((const char *)&t->flows[ids[i]] + RTE_CACHE_LINE_SIZE);
		}
	}
	for (i = 0; i < n; i++)
		if (keys[i].ip_version != 0)
			put_flow(t, pkts[i], &recs[i], &keys[i], ids[i], now);
}

const struct flow_counts *
flows_counts(const struct flow_table *t)
{
	return &t->counts;
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
	};

	t->hash = rte_hash_create(&p);
	if (t->hash == NULL)
		return complain("too little hugepage memory for a table of %u flows, about %ju MB:"
				" take a smaller --max-flows, or more hugepages",
				max_flows, (uintmax_t)(flows_memory(max_flows) >> 20));
	t->slots = (uint32_t)rte_hash_max_key_id(t->hash) + 1;
	t->flows = aligned_alloc(RTE_CACHE_LINE_SIZE, t->slots * sizeof(*t->flows));
	if (t->flows == NULL)
		return complain("no memory for %u flows: take a smaller --max-flows", max_flows);
	memset(t->flows, 0, t->slots * sizeof(*t->flows));
	return 0;
}

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
			"packets_a,packets_b,bytes_a,bytes_b,id,generation\n");
	return 0;
}

/* Every slot is looked at twice per time-out. */
static void
start_timer(struct flow_table *t, uint64_t timeout_s)
{
	uint64_t visits = RTE_MAX(timeout_s * SWEEP_HZ / 2, UINT64_C(1));

	t->timeout = timeout_s * rte_get_tsc_hz();
	t->sweep_step = (uint32_t)(t->slots / visits + 1);
	rte_timer_init(&t->timer);
	rte_timer_reset(&t->timer, rte_get_timer_hz() / SWEEP_HZ, PERIODICAL, rte_lcore_id(), sweep,
			t);
}

struct flow_table *
flows_create(uint32_t max_flows, uint64_t timeout_s, const char *csv)
{
	struct flow_table *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		complain("no memory for the flow table");
		return NULL;
	}
	if (rte_timer_subsystem_init() != 0) {
		complain("the timers cannot be made: no hugepage memory is left: raise -m");
		free(t);
		return NULL;
	}
	if (make_hash(t, max_flows) != 0 || open_csv(t, csv) != 0) {
		flows_destroy(t);
		return NULL;
	}
	start_timer(t, timeout_s);
	return t;
}

uint64_t
flows_memory(uint32_t max_flows)
{
	/* a key slot of 64 bytes, a bucket of 64 bytes for 8 keys, the free list */
	return (uint64_t)rte_align32pow2(max_flows) * (64 + 8 + 16) + (1 << 20);
}

int
flows_destroy(struct flow_table *t)
{
	uint32_t i;
	int rc = 0;

	if (t == NULL)
		return 0;
	if (t->timeout != 0)
		rte_timer_stop_sync(&t->timer);
	for (i = 0; t->csv != NULL && i < t->slots; i++)
		if (t->flows[i].used)
			write_csv(t, &t->flows[i], i);
	if (t->csv != NULL) {
		rc = ferror(t->csv);
		rc |= fclose(t->csv);
		if (rc != 0)
			complain("--flows: writing \"%s\" failed: %s", t->csv_path,
				 strerror(errno));
	}
	free(t->flows);
	free(t);
	return rc != 0 ? -1 : 0;
}
