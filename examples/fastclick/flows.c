/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfmeta-fastclick.h"

int
fc_flows_init(struct fc_flows *f, uint32_t max_flows)
{
	uint32_t places = 1;

	memset(f, 0, sizeof(*f));
	while (places < 2 * max_flows)
		places *= 2;
	f->nslots = max_flows;
	f->mask = places - 1;
	f->free = f->freed = f->ending = f->ended_last = FC_NONE;
	/* memory that was never touched costs nothing */
	f->slots = aligned_alloc(64, (size_t)max_flows * sizeof(*f->slots));
	f->index = calloc(places, sizeof(*f->index));
	if (f->slots != NULL && f->index != NULL)
		return 0;
	fc_flows_free(f);
	return -ENOMEM;
}

void
fc_flows_free(struct fc_flows *f)
{
	free(f->slots);
	free(f->index);
	free(f->told);
	f->slots = NULL;
	f->index = NULL;
	f->told = NULL;
}

void
fc_flows_number(struct fc_flows *f, uint32_t instance, uint32_t instances)
{
	f->instance = instance;
	for (f->shift = 0; 1U << f->shift < instances; f->shift++)
		;
}

/* Those behind the hole that would not be found any more move up. */
static void
unindex(struct fc_flows *f, uint32_t hole)
{
	uint32_t i = hole, home;

	for (;;) {
		i = (i + 1) & f->mask;
		if (f->index[i] == 0)
			break;
		home = f->slots[f->index[i] - 1].aggregate & f->mask;
		if (((i - home) & f->mask) < ((i - hole) & f->mask))
			continue;
		f->index[hole] = f->index[i];
		hole = i;
	}
	f->index[hole] = 0;
}

/* ---- begin and end ----------------------------------------------------------------- */

/* The one that was free for longest, so that ids come again late. */
static struct fc_flow *
take(struct fc_flows *f)
{
	struct fc_flow *flow;

	if (f->used < f->nslots) {
		flow = &f->slots[f->used++];
		flow->generation = 0;
		return flow;
	}
	if (f->free == FC_NONE)
		return NULL;
	flow = &f->slots[f->free];
	f->free = flow->next;
	if (f->free == FC_NONE)
		f->freed = FC_NONE;
	return flow;
}

struct fc_flow *
fc_begin(struct fc_flows *f, uint32_t aggregate)
{
	uint32_t i = fc_place(f, aggregate);
	struct fc_flow *flow;

	if (f->index[i] != 0)
		return &f->slots[f->index[i] - 1];
	flow = take(f);
	if (flow == NULL) {
		f->c.no_room++;
		return NULL;
	}
	*flow = (struct fc_flow){
		.aggregate = aggregate,
		.generation = (uint16_t)(flow->generation + 1),
		.state = FC_OPEN,
		.next = FC_NONE,
	};
	f->index[i] = (uint32_t)(flow - f->slots) + 1;
	f->c.begun++;
	return flow;
}

static void
end(struct fc_flows *f, struct fc_flow *flow, uint16_t reason)
{
	uint32_t slot = (uint32_t)(flow - f->slots);

	if ((flow->state & FC_ENDING) != 0)
		return;
	flow->state |= FC_ENDING;
	flow->reason = reason;
	flow->next = FC_NONE;
	if (f->ending == FC_NONE)
		f->ending = slot;
	else
		f->slots[f->ended_last].next = slot;
	f->ended_last = slot;
	f->nending++;
}

void
fc_end(struct fc_flows *f, uint32_t aggregate, uint16_t reason)
{
	struct fc_flow *flow = fc_find(f, aggregate);

	if (flow != NULL)
		end(f, flow, reason);
}

void
fc_end_all(struct fc_flows *f, uint16_t reason)
{
	uint32_t i;

	for (i = 0; i < f->used; i++)
		if (f->slots[i].state != 0)
			end(f, &f->slots[i], reason);
}

void
fc_drop(struct fc_flows *f, struct fc_flow *flow)
{
	uint32_t slot = (uint32_t)(flow - f->slots);

	unindex(f, fc_place(f, flow->aggregate));
	flow->state = 0;
	flow->next = FC_NONE;
	if (f->free == FC_NONE)
		f->free = slot;
	else
		f->slots[f->freed].next = slot;
	f->freed = slot;
	f->c.ended++;
}

/* ---- packets ------------------------------------------------------------------------ */

uint16_t
fc_put_flow(struct fc_flows *f, struct fc_flow *flow, struct nfmeta_record *r, int reverse,
	    uint16_t queue)
{
	bool is_new = (flow->state & FC_SEEN) == 0;

	/* the direction is the annotation's, not what a classification found */
	r->flags &= (uint16_t)~NFMETA_FLOW_REVERSE;
	nfmeta_record_set_flow(r, fc_id(f, flow), flow->generation, reverse, is_new);
	r->action = flow->decision.action;
	if (is_new) {
		flow->state |= FC_SEEN;
		flow->queue = (uint8_t)queue;
		if (f->told != NULL) {
			struct fc_told *t = &f->told[queue - f->queue];

			if (t->nnews == FC_STATES)
				fc_tell_new(f, queue);
			t->news[t->nnews++] = (struct nfmeta_flow_state){
				.flow_id = r->flow_id,
				.flow_gen = flow->generation,
				.action = flow->decision.action,
			};
		}
	}
	return flow->queue;
}
