/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "splitter.h"

#define NO_SLOT UINT16_MAX
#define TRIES 8 /* slots looked at for a free one */

/* ---- what is to happen -------------------------------------------------------------- */

/*
 * The rule that holds for what is known of the flow, at one link.  An NF's word is worth
 * more where it says drop, or that its word is to stay.  f->seen: packets before this one.
 */
static void
decide(struct apps *a, struct flow *f, const struct rule *rule, uint8_t link)
{
	const struct flow_passed *passed = flow_passed(a->flows, f, link);
	struct nfmeta_flow_decision *d = &flow_at(a->flows, f, link)->decision;
	bool ours = d->action != NFMETA_ACTION_NONE && d->who == APPS_WHO;
	uint64_t given = f->seen - passed->packets[0] - passed->packets[1];

	if (!ours && (d->action == NFMETA_ACTION_DROP || (d->flags & NFMETA_VERDICT_STICKY) != 0))
		return;
	if (rule == NULL) {
		if (ours)
			memset(d, 0, sizeof(*d));
		return;
	}
	*d = (struct nfmeta_flow_decision){.action = rule->action, .who = APPS_WHO};
	if (rule->action == NFMETA_ACTION_SHUNT && rule->after > given)
		d->left = (uint32_t)(rule->after - given);
}

static void
known(struct apps *a, struct flow *f, uint32_t app_id)
{
	const struct rule *rule = rules_find(&a->rules, app_id, f->key.proto);
	const struct chain *c = flow_chain(a->flows, f);
	bool news = app_id != f->app_id;
	struct flow_at *at;
	uint8_t i, was;

	f->app_id = app_id;
	f->rules = a->edition;
	for (i = 0; i < c->n; i++) {
		at = flow_at(a->flows, f, c->link[i]);
		was = at->decision.action;
		decide(a, f, rule, c->link[i]);
		if (news || at->decision.action != was)
			feed_update(a->flows->feeds[c->link[i]], f);
	}
}

/* ---- looking into packets ------------------------------------------------------------- */

static void
leave_slot(struct apps *a, struct flow *f)
{
	if (f->app_state == APP_NEW || f->app_slot == NO_SLOT)
		return;
	dpi_end(a->dpi, f->app_slot);
	a->slots[f->app_slot] = NULL;
	f->app_slot = NO_SLOT;
	if (f->app_id != 0)
		a->c.known++;
	else
		a->c.unknown++;
}

/* A place to look from.  Where all are taken, the flow has to go that has it the longest. */
static void
take_slot(struct apps *a, struct flow *f)
{
	uint16_t i, slot = a->next;

	for (i = 0; i < TRIES && a->slots[slot] != NULL; i++)
		slot = slot + 1 < a->o.flows ? (uint16_t)(slot + 1) : 0;
	if (a->slots[slot] != NULL) {
		slot = a->next;
		a->c.pushed_out += a->slots[slot]->app_id == 0;
		a->slots[slot]->app_state = APP_DONE;
		leave_slot(a, a->slots[slot]);
	}
	a->next = slot + 1 < a->o.flows ? (uint16_t)(slot + 1) : 0;
	a->slots[slot] = f;
	f->app_slot = slot;
	f->app_looks = 0;
	dpi_begin(a->dpi, slot);
}

/*
 * The IP packet without what Ethernet added behind it, in one piece; 0: it is not to be
 * looked at.  The other end throws away what has a wrong checksum; who could have it
 * looked at here could have anything inspected as what it is not.
 */
static uint16_t
ip_packet(struct apps *a, const struct rte_mbuf *m, const struct nfmeta_record *r,
	  uint8_t ip_version, const uint8_t **l3)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;
	uint32_t len;

	if ((r->flags & NFMETA_L4_VALID) == 0 ||
	    (r->flags & (NFMETA_FRAG_MASK | NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0)
		return 0;
	*l3 = rte_pktmbuf_read(m, r->l3_off, r->payload_off - r->l3_off, a->copy);
	if (*l3 == NULL)
		return 0;
	if (ip_version == 4) {
		ip4 = (const struct rte_ipv4_hdr *)*l3;
		len = rte_be_to_cpu_16(ip4->total_length);
	} else {
		ip6 = (const struct rte_ipv6_hdr *)*l3;
		len = sizeof(*ip6) + rte_be_to_cpu_16(ip6->payload_len);
	}
	len = RTE_MIN(len, (uint32_t)RTE_MIN(m->pkt_len - r->l3_off, sizeof(a->copy)));
	if (r->l3_off + len <= r->payload_off) /* without payload it says nothing */
		return 0;
	*l3 = rte_pktmbuf_read(m, r->l3_off, len, a->copy);
	return *l3 != NULL ? (uint16_t)len : 0;
}

static void
look_into(struct apps *a, struct flow *f, const uint8_t *l3, uint16_t len, uint64_t ms)
{
	struct dpi_result r;

	if (f->app_slot == NO_SLOT)
		take_slot(a, f);
	r = dpi_look(a->dpi, f->app_slot, l3, len, ms);
	a->c.packets++;
	f->app_looks++;
	if (r.app_id != 0 && r.app_id != f->app_id)
		known(a, f, r.app_id);
	if (r.more && f->app_looks < a->o.packets)
		return;
	leave_slot(a, f);
	f->app_state = APP_DONE;
}

void
apps_look(struct apps *a, struct flow *f, const struct rte_mbuf *m, const struct nfmeta_record *r,
	  uint64_t ms)
{
	const uint8_t *l3;
	uint16_t len;

	if (f->app_state == APP_NEW) {
		f->app_state = APP_LOOKING;
		f->app_slot = NO_SLOT;
		f->rules = a->edition;
		if (a->rules.any_rest)
			known(a, f, 0);
	}
	if (f->rules != a->edition)
		known(a, f, f->app_id);
	if (f->app_state != APP_LOOKING)
		return;
	len = ip_packet(a, m, r, f->key.ip_version, &l3);
	if (len > 0)
		look_into(a, f, l3, len, ms);
}

void
apps_forget(struct apps *a, struct flow *f)
{
	const struct chain *chain = flow_chain(a->flows, f);
	struct app_count *c = apps_count(a, f);
	const struct flow_passed *passed;

	leave_slot(a, f);
	c->flows++;
	c->packets += f->packets[0] + f->packets[1];
	c->bytes += f->bytes[0] + f->bytes[1];
	if (chain->n == 0)
		return;
	passed = flow_passed(a->flows, f, chain->link[0]);
	c->inspected += f->packets[0] + f->packets[1] - passed->packets[0] - passed->packets[1];
}

/* ---- make and unmake ----------------------------------------------------------------- */

struct apps *
apps_open(const struct apps_opts *o)
{
	struct apps *a = calloc(1, sizeof(*a));

	if (a == NULL || (a->slots = calloc(o->flows, sizeof(a->slots[0]))) == NULL) {
		complain("out of memory");
		apps_close(a);
		return NULL;
	}
	a->o = *o;
	a->dpi = dpi_open(o->flows);
	if (a->dpi == NULL || (o->rules != NULL && rules_read(&a->rules, o->rules, a->dpi) != 0)) {
		apps_close(a);
		return NULL;
	}
	return a;
}

void
apps_reload(struct apps *a)
{
	struct rules rules;

	if (a->o.rules == NULL)
		return;
	if (rules_read(&rules, a->o.rules, a->dpi) != 0) {
		a->c.reloads_failed++;
		complain("the rules stay as they are");
		return;
	}
	a->rules = rules;
	a->edition++;
	a->c.reloads++;
	note("%u rules from \"%s\"", rules.n, a->o.rules);
}

void
apps_close(struct apps *a)
{
	uint32_t i;

	if (a == NULL)
		return;
	for (i = 0; a->dpi != NULL && i < a->o.flows; i++)
		if (a->slots[i] != NULL)
			dpi_end(a->dpi, (uint16_t)i);
	dpi_close(a->dpi);
	free(a->slots);
	free(a);
}
