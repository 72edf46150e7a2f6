/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A flow's first packet.  The one place where it is decided by which NFs a flow goes.
 */
#include <string.h>

#include "balance.h"
#include "flows.h"
#include "policy.h"

void
first_init(struct first *d, uint8_t links)
{
	uint8_t all[LINKS_MAX], i;

	memset(d, 0, sizeof(*d));
	d->links = links;
	for (i = 0; i < links; i++)
		all[i] = i;
	first_chain(d, all, links); /* CHAIN_ALL */
	d->nchains += 2;	    /* CHAIN_NONE, CHAIN_DROP */
}

int
first_chain(struct first *d, const uint8_t *links, uint8_t n)
{
	struct chain *c;
	uint16_t i;

	for (i = 0; i < d->nchains; i++)
		if (d->chains[i].n == n && memcmp(d->chains[i].link, links, n) == 0)
			return i;
	if (d->nchains == CHAINS_MAX)
		return -1;
	c = &d->chains[d->nchains++];
	c->n = n;
	memcpy(c->link, links, n);
	for (i = 0; i < n; i++)
		c->mask |= (uint8_t)(1u << links[i]);
	return (int)(c - d->chains);
}

/* The user's policy. */
static void
by_policy(const struct first *d, const struct flow_table *t, struct flow *f,
	  const struct nfmeta_record *r)
{
	const struct policy_rule *rule =
		policy_find(d->policy, &f->key, (r->flags & NFMETA_FLOW_REVERSE) != 0, r);
	const struct chain *c = &d->chains[rule->chain];
	uint8_t i;

	f->policy = rule->slot;
	f->chain = rule->chain;
	for (i = 0; rule->shunt && i < c->n; i++)
		flow_at(t, f, c->link[i])->decision = (struct nfmeta_flow_decision){
			.action = NFMETA_ACTION_SHUNT,
			.who = POLICY_WHO,
			.left = rule->after,
		};
}

void
first_packet(const struct first *d, const struct flow_table *t, struct flow *f,
	     const struct nfmeta_record *r)
{
	f->chain = CHAIN_ALL;
	if (d->policy != NULL)
		by_policy(d, t, f, r);
}

void
first_queues(const struct first *d, const struct flow_table *t, struct flow *f,
	     const uint8_t *wanted)
{
	const struct chain *c = &d->chains[f->chain];
	struct balance *b;
	uint8_t i, link;

	for (i = 0; i < c->n; i++) {
		link = c->link[i];
		b = d->balance[link];
		flow_set_queue(t, f, link,
			       wanted != NULL ? balance_again(b, &f->key, wanted[link])
					      : balance_choose(b, &f->key));
	}
}

void
first_leave(const struct first *d, const struct flow_table *t, struct flow *f)
{
	const struct chain *c = &d->chains[f->chain];
	uint8_t i, link;

	for (i = 0; i < c->n; i++) {
		link = c->link[i];
		balance_end(d->balance[link], &f->key, flow_queue(t, f, link));
	}
}

uint8_t
lone_chain(const struct first *d, const struct nfmeta_flow_key *key, const struct nfmeta_record *r,
	   uint32_t bytes)
{
	const struct policy_rule *rule;
	struct policy_count *c;

	if (d->policy == NULL)
		return CHAIN_ALL;
	rule = policy_find(d->policy, key, (r->flags & NFMETA_FLOW_REVERSE) != 0, r);
	c = &d->policy->counts[rule->slot];
	c->packets++;
	c->bytes += bytes;
	c->inspected += d->chains[rule->chain].n > 0;
	return rule->chain;
}

uint16_t
lone_queue(const struct first *d, const struct nfmeta_flow_key *key, uint8_t link)
{
	return balance_lone(d->balance[link], key);
}
