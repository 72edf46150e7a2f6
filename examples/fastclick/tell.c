/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <string.h>

#include "nfmeta-fastclick.h"

#define SCAN 4096    /* slots that one round of a snapshot looks at */
#define ROUND_MAX 64 /* messages of one round */

static int
tell(struct fc_flows *f, uint16_t queue, uint8_t type, const void *entries, uint16_t *n)
{
	int rc = 0;

	if (*n == 0)
		return 0;
	rc = nfmeta_flow_send(f->link, queue, type, entries, *n);
	if (rc == -EAGAIN) /* the NF will ask for a snapshot */
		f->c.given_up++;
	*n = 0;
	return rc;
}

void
fc_tell_new(struct fc_flows *f, uint16_t queue)
{
	struct fc_told *t;

	if (f->told == NULL)
		return;
	t = &f->told[queue - f->queue];
	f->c.told_new += t->nnews;
	tell(f, queue, NFMETA_MSG_NEW, t->news, &t->nnews);
}

/* What a flow had passed by is told before its end. */
static void
tell_ends(struct fc_flows *f, uint16_t queue)
{
	struct fc_told *t = &f->told[queue - f->queue];

	f->c.told_counters += t->ncounters;
	tell(f, queue, NFMETA_MSG_COUNTERS, t->counters, &t->ncounters);
	f->c.told_deletes += t->ndeletes;
	f->c.delete_messages += t->ndeletes != 0;
	tell(f, queue, NFMETA_MSG_DELETE, t->deletes, &t->ndeletes);
}

static void
add_end(struct fc_flows *f, const struct fc_flow *flow)
{
	struct fc_told *t = &f->told[flow->queue - f->queue];

	if (flow->passed[0] + flow->passed[1] != 0)
		t->counters[t->ncounters++] = (struct nfmeta_flow_counters){
			.flow_id = fc_id(f, flow),
			.flow_gen = flow->generation,
			.packets = {flow->passed[0], flow->passed[1]},
			.bytes = {flow->passed_bytes[0], flow->passed_bytes[1]},
		};
	t->deletes[t->ndeletes++] = (struct nfmeta_flow_delete){
		.flow_id = fc_id(f, flow),
		.flow_gen = flow->generation,
		.reason = flow->reason,
	};
	if (t->ndeletes == FC_DELETES) {
		tell_ends(f, flow->queue);
	} else if (t->ncounters == FC_COUNTERS) {
		f->c.told_counters += t->ncounters;
		tell(f, flow->queue, NFMETA_MSG_COUNTERS, t->counters, &t->ncounters);
	}
}

void
fc_flush(struct fc_flows *f)
{
	struct fc_flow *flow;
	uint16_t q;

	while (f->ending != FC_NONE) {
		flow = &f->slots[f->ending];
		f->ending = flow->next;
		/* a flow of which no packet came as far as to the NF is not known there */
		if (f->told != NULL && (flow->state & FC_SEEN) != 0)
			add_end(f, flow);
		fc_drop(f, flow);
	}
	f->ended_last = FC_NONE;
	f->nending = 0;
	for (q = f->queue; f->told != NULL && q < f->queue + f->queues; q++)
		tell_ends(f, q);
}

/* Some of the flows of the queue; those that begin meanwhile are told by NEW. */
static void
snapshot(struct fc_flows *f, uint16_t queue)
{
	struct fc_told *t = &f->told[queue - f->queue];
	struct nfmeta_flow_state out[FC_STATES];
	uint32_t i = t->cursor, stop = RTE_MIN(f->used, i + SCAN);
	uint8_t flags;
	uint16_t n = 0;
	int rc;

	for (; i < stop && n < FC_STATES; i++) {
		const struct fc_flow *flow = &f->slots[i];

		if ((flow->state & FC_SEEN) != 0 && flow->queue == queue)
			out[n++] = (struct nfmeta_flow_state){
				.flow_id = fc_id(f, flow),
				.flow_gen = flow->generation,
				.action = flow->decision.action,
			};
	}
	flags = (t->begun ? 0 : NFMETA_MSG_FIRST) | (i >= f->used ? NFMETA_MSG_LAST : 0);
	rc = n == 0 && flags == 0 ? 0 : nfmeta_flow_snapshot(f->link, queue, out, n, flags);
	if (rc == 0) {
		t->begun = true;
		t->cursor = i;
		t->asked = (flags & NFMETA_MSG_LAST) == 0;
		f->c.resyncs_answered += !t->asked;
	} else if (rc != -EAGAIN) {
		t->asked = false; /* void: the NF asks again */
	}
}

static void
verdict(struct fc_flows *f, uint16_t queue, const struct nfmeta_flow_verdict *v, uint64_t now,
	uint64_t second)
{
	struct fc_flow *flow = fc_by_id(f, v->flow_id, v->flow_gen);
	struct fc_told *t = &f->told[queue - f->queue];
	uint8_t was;

	f->c.verdicts++;
	if (flow == NULL || (flow->state & (FC_SEEN | FC_ENDING)) != FC_SEEN ||
	    flow->queue != queue || v->verdict == NFMETA_ACTION_NONE ||
	    v->verdict > NFMETA_ACTION_SHUNT) {
		f->c.verdicts_late++;
		return;
	}
	was = flow->decision.action;
	if (!nfmeta_flow_decide(&flow->decision, v, now, second)) {
		f->c.verdicts_kept++;
		return;
	}
	f->c.verdicts_applied++;
	if (flow->decision.action == was)
		return;
	t->updates[t->nupdates++] = (struct nfmeta_flow_state){
		.flow_id = v->flow_id,
		.flow_gen = v->flow_gen,
		.action = flow->decision.action,
	};
	f->c.told_updates++;
	if (t->nupdates == FC_STATES)
		tell(f, queue, NFMETA_MSG_UPDATE, t->updates, &t->nupdates);
}

unsigned int
fc_collect(struct fc_flows *f, uint16_t queue, uint64_t now, uint64_t second)
{
	const struct nfmeta_flow_batch *b;
	struct fc_told *t;
	unsigned int n;
	uint16_t i;
	int rc;

	if (f->told == NULL)
		return 0;
	t = &f->told[queue - f->queue];
	for (n = 0; n < ROUND_MAX; n++) {
		rc = nfmeta_flow_collect(f->link, queue, &b);
		if (rc == 0)
			break;
		if (rc < 0) {
			f->c.refused++;
			continue;
		}
		switch (b->type) {
		case NFMETA_MSG_VERDICT:
			for (i = 0; i < b->count; i++)
				verdict(f, queue, nfmeta_flow_entry(b, i), now, second);
			break;
		case NFMETA_MSG_LOAD:
			memcpy(&t->load, nfmeta_flow_entry(b, 0), sizeof(t->load));
			break;
		case NFMETA_MSG_RESYNC:
			f->c.resyncs++;
			t->asked = true;
			t->begun = false;
			t->cursor = 0;
			break;
		}
	}
	tell(f, queue, NFMETA_MSG_UPDATE, t->updates, &t->nupdates);
	if (unlikely(t->asked))
		snapshot(f, queue);
	return n;
}

bool
fc_settled(struct fc_flows *f)
{
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};
	bool all = true;
	uint16_t q;

	for (q = f->queue; f->told != NULL && q < f->queue + f->queues; q++) {
		if (nfmeta_flow_stats(f->link, q, &s) != 0 || s.state == NFMETA_FEED_IDLE)
			continue;
		if (s.state == NFMETA_FEED_STREAM && s.acked >= s.sent)
			continue;
		all = false;
	}
	return all;
}
