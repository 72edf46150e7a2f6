/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_tcp.h>

#include "policy.h"
#include "splitter.h"

/* ---- the list of all flows --------------------------------------------------------- */

static void
list_append(struct flow_table *t, struct flow *f)
{
	uint32_t id = flow_id(t, f);

	f->prev = t->tail;
	f->next = FLOW_NONE;
	if (t->tail != FLOW_NONE)
		t->flows[t->tail].next = id;
	else
		t->head = id;
	t->tail = id;
	f->touched = 0;
}

static void
list_remove(struct flow_table *t, struct flow *f)
{
	if (f->prev != FLOW_NONE)
		t->flows[f->prev].next = f->next;
	else
		t->head = f->next;
	if (f->next != FLOW_NONE)
		t->flows[f->next].prev = f->prev;
	else
		t->tail = f->prev;
}

/*
 * A packet does not move its flow in the list: that would touch three slots.  It
 * marks it, and here, where one has to go, marked ones get a second turn.  So what
 * is evicted had no packet while the list went round, or, when all are busy, is
 * the one of those looked at whose last packet is the longest ago.
 */
#define LOOK_MAX 32

static struct flow *
oldest(struct flow_table *t)
{
	struct flow *f, *best = NULL;
	int i;

	for (i = 0; i < LOOK_MAX && t->head != FLOW_NONE; i++) {
		f = &t->flows[t->head];
		if (!f->touched)
			return f;
		if (best == NULL || f->last < best->last)
			best = f;
		list_remove(t, f);
		list_append(t, f);
	}
	return best;
}

/* ---- begin and end ---------------------------------------------------------------------- */

/* ---- who is told: the NFs of the flow's links ------------------------------------------ */

static void
tell_new(struct flow_table *t, const struct flow *f)
{
	const struct chain *c = flow_chain(t, f);
	uint8_t i;

	for (i = 0; i < c->n; i++)
		feed_new(t->feeds[c->link[i]], f);
}

void
flows_tell_update(struct flow_table *t, const struct flow *f)
{
	const struct chain *c = flow_chain(t, f);
	uint8_t i;

	for (i = 0; i < c->n; i++)
		feed_update(t->feeds[c->link[i]], f);
}

static void
tell_end(struct flow_table *t, struct flow *f, uint16_t reason)
{
	const struct chain *c = flow_chain(t, f);
	uint8_t i;

	for (i = 0; i < c->n; i++)
		feed_end(t->feeds[c->link[i]], f, reason);
}

/* Start counting anew in this slot. was: the queues of the flow of this key before; or NULL. */
static void
begin_flow(struct flow_table *t, struct flow *f, const struct nfmeta_flow_key *key,
	   const struct nfmeta_record *r, const uint8_t *was)
{
	unsigned int direction = (r->flags & NFMETA_FLOW_REVERSE) != 0;
	uint16_t generation = (uint16_t)(f->generation + 1);
	uint8_t wanted[LINKS_MAX], i;

	memset(f, 0, sizeof(*f));
	if (t->more != NULL)
		memset(flow_more(t, f, 1), 0, (t->first->links - 1u) * sizeof(*t->more));
	f->key = *key;
	f->generation = generation;
	f->used = 1;
	f->first_reverse = direction & 1;
	first_packet(t->first, t, f, r);
	if (t->correlate != NULL && correlate_first(t->correlate, f)) {
		for (i = 0; i < t->first->links; i++)
			wanted[i] = flow_queue(t, f, i);
		was = wanted;
	}
	first_queues(t->first, t, f, was);
	list_append(t, f);
	t->counts.flows++;
	t->counts.active++;
	if (t->entries != NULL)
		nfmeta_table_open(&t->entries[flow_id(t, f)], generation, key, (int)direction);
	tell_new(t, f);
}

/* One of the same key has just ended: at the same NFs, where these are still there. */
static void
begin_again(struct flow_table *t, struct flow *f, const struct nfmeta_flow_key *key,
	    const struct nfmeta_record *r)
{
	uint8_t was[LINKS_MAX], i;

	for (i = 0; i < t->first->links; i++)
		was[i] = flow_queue(t, f, i);
	begin_flow(t, f, key, r, was);
}

/* The key stays in the hash. */
static void
end_here(struct flow_table *t, struct flow *f, uint16_t reason)
{
	tell_end(t, f, reason);
	first_leave(t->first, t, f);
	if (t->apps != NULL)
		apps_forget(t->apps, f);
	if (t->first->policy != NULL)
		policy_count(t->first->policy, t, f);
	if (t->entries != NULL)
		nfmeta_table_close(&t->entries[flow_id(t, f)], f->generation);
	flows_write(t, f);
	list_remove(t, f);
	f->used = 0;
	t->counts.ended[reason]++;
	t->counts.active--;
}

void
flows_end(struct flow_table *t, struct flow *f, uint16_t reason)
{
	end_here(t, f, reason);
	rte_hash_del_key(t->hash, &f->key);
}

/*
 * For the NFs it has ended, and begins, with what was decided and is known of it.  A new
 * generation: what the NF it leaves still says is of one of the two.
 */
static void
move_flow(struct flow_table *t, struct flow *f, uint8_t link)
{
	struct balance *b = t->first->balance[link];
	const struct chain *c = flow_chain(t, f);
	uint8_t i;

	tell_end(t, f, NFMETA_END_NONE);
	balance_end(b, &f->key, flow_queue(t, f, link));
	flow_set_queue(t, f, link, balance_choose(b, &f->key));
	if (t->entries != NULL)
		nfmeta_table_close(&t->entries[flow_id(t, f)], f->generation);
	f->generation++;
	flow_at(t, f, link)->place = 0;
	for (i = 0; i < c->n; i++)
		memset(flow_passed(t, f, c->link[i]), 0, sizeof(struct flow_passed));
	if (t->entries != NULL) {
		nfmeta_table_open(&t->entries[flow_id(t, f)], f->generation, &f->key,
				  f->first_reverse);
		nfmeta_table_set(&t->entries[flow_id(t, f)], f->generation,
				 flow_closed(f) ? NFMETA_TABLE_CLOSING : NFMETA_TABLE_ESTABLISHED,
				 f->at.decision.action, f->app_id);
	}
	tell_new(t, f);
	t->counts.moved++;
}

void
flows_move(struct flow_table *t, uint8_t link, uint64_t queues, const uint64_t *back,
	   uint32_t slots)
{
	struct flow *f;
	uint8_t q;

	for (; slots > 0; slots--) {
		f = &t->flows[t->move];
		if (++t->move == t->slots)
			t->move = 0;
		if (!f->used || (flow_chain(t, f)->mask & 1u << link) == 0 || f->last == t->hand)
			continue;
		q = flow_queue(t, f, link);
		if ((queues & UINT64_C(1) << q) != 0 && flow_at(t, f, link)->place <= back[q] &&
		    (t->under_way == NULL || !t->under_way(t->under_way_arg, f)))
			move_flow(t, f, link);
	}
	for (link = 0; link < t->first->links; link++)
		feed_flush(t->feeds[link]);
}

/* Its packets of this burst are not sent yet, or others are between two links. */
static inline bool
in_hand(const struct flow_table *t, const struct flow *f)
{
	return f->last == t->hand ||
	       (unlikely(t->under_way != NULL) && !t->hurry && t->under_way(t->under_way_arg, f));
}

/*
 * What a TCP header says about its flow: FIN and RST, and whether this is the
 * first packet of a new connection between the same two ports.  The latter as
 * Wireshark decides: it is a SYN without ACK, and its sequence number is not the
 * one that this direction started with.
 */
static bool
tcp_again(struct flow_table *t, struct flow *f, const struct rte_tcp_hdr *tcp, unsigned int dir,
	  bool is_new)
{
	uint32_t seq = rte_be_to_cpu_32(tcp->sent_seq);
	bool syn = (tcp->tcp_flags & RTE_TCP_SYN_FLAG) != 0;

	if (!is_new && syn && (tcp->tcp_flags & RTE_TCP_ACK_FLAG) == 0 &&
	    (f->base_known & 1u << dir) != 0 && f->base[dir] != seq)
		return true;
	if ((f->base_known & 1u << dir) == 0) {
		f->base_known |= (uint8_t)(1u << dir);
		f->base[dir] = syn ? seq : seq - 1;
	}
	if (unlikely((tcp->tcp_flags & (RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG)) != 0)) {
		if ((tcp->tcp_flags & RTE_TCP_FIN_FLAG) != 0)
			f->closing |= (uint8_t)(FLOW_FIN_A << dir);
		if ((tcp->tcp_flags & RTE_TCP_RST_FLAG) != 0)
			f->closing |= FLOW_RST;
		if (t->entries != NULL && flow_closed(f))
			nfmeta_table_set(&t->entries[flow_id(t, f)], f->generation,
					 NFMETA_TABLE_CLOSING, f->at.decision.action, f->app_id);
	}
	return false;
}

#define ID_NONE (-1)
#define ID_WAIT (-2) /* a flow has to end, but has packets in hand */

/* A number for a new key. */
static __rte_noinline int32_t
add_flow(struct flow_table *t, const struct nfmeta_flow_key *key)
{
	struct flow *f;
	int32_t id;

	if (t->moved) { /* what the burst was looked up for may be another flow now */
		id = rte_hash_lookup(t->hash, key);
		if (id >= 0)
			return id;
	}
	id = rte_hash_add_key(t->hash, key);
	if (likely(id >= 0))
		return id;
	f = oldest(t);
	if (f == NULL)
		return ID_NONE;
	if (in_hand(t, f))
		return ID_WAIT;
	flows_end(t, f, NFMETA_END_EVICTED);
	t->moved = true;
	id = rte_hash_add_key(t->hash, key);
	return id >= 0 ? id : ID_NONE;
}

static inline void
count_shared(struct flow_table *t, struct flow *f, unsigned int dir, uint32_t bytes)
{
	struct nfmeta_table_flow *e = &t->entries[flow_id(t, f)];

	nfmeta_table_count(e, (int)dir, 1, bytes);
	if (unlikely(f->packets[dir] == 1 && f->packets[!dir] != 0))
		nfmeta_table_set(e, f->generation,
				 flow_closed(f) ? NFMETA_TABLE_CLOSING : NFMETA_TABLE_ESTABLISHED,
				 f->at.decision.action, f->app_id);
}

/* false: not now, the packets before it have to be sent first. */
static inline bool
put_flow(struct flow_table *t, struct rte_mbuf *m, struct nfmeta_record *r,
	 const struct nfmeta_flow_key *key, int32_t id, struct flow **flow)
{
	unsigned int dir = (r->flags & NFMETA_FLOW_REVERSE) != 0;
	struct rte_tcp_hdr copy;
	const struct rte_tcp_hdr *tcp;
	struct flow *f;
	bool is_new;

	if (unlikely(id < 0 || t->moved)) {
		id = add_flow(t, key);
		if (id == ID_WAIT)
			return false;
		if (id < 0) {
			t->counts.unknown++;
			return true;
		}
	}
	f = &t->flows[id];
	is_new = !f->used;
	if (is_new)
		begin_flow(t, f, key, r, NULL);
	if (key->proto == IPPROTO_TCP && (r->flags & NFMETA_L4_VALID) != 0) {
		tcp = rte_pktmbuf_read(m, r->l4_off, sizeof(copy), &copy);
		if (tcp != NULL && tcp_again(t, f, tcp, dir, is_new)) {
			if (in_hand(t, f))
				return false;
			end_here(t, f, NFMETA_END_REUSED);
			begin_again(t, f, key, r);
			tcp_again(t, f, tcp, dir, true);
			is_new = true;
		}
	}
	f->last = t->hand;
	f->touched = !is_new;
	f->packets[dir]++;
	f->bytes[dir] += m->pkt_len;
	if (t->entries != NULL)
		count_shared(t, f, dir, m->pkt_len);
	if (unlikely(f->control != 0))
		correlate_look(t->correlate, f, m, r, dir);
	r->action = f->at.decision.action;
	r->app_id = f->app_id;
	nfmeta_record_set_flow(r, (uint32_t)id, f->generation, f->first_reverse, is_new);
	*flow = f;
	return true;
}

uint16_t
flows_burst(struct flow_table *t, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
	    const struct nfmeta_flow_key *keys, struct flow **flows, uint16_t n, uint64_t now)
{
	int32_t ids[BURST];
	uint16_t i;

	t->hand = now;
	t->moved = false;
	flows_lookup(t, keys, ids, n);
	for (i = 0; i < n; i++) {
		flows[i] = NULL;
		if (keys[i].ip_version != 0 &&
		    !put_flow(t, pkts[i], &recs[i], &keys[i], ids[i], &flows[i]))
			break;
	}
	return i;
}
