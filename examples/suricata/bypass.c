/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

/*
 * A flow that Suricata bypasses is shunted: one VERDICT goes up, then its packets pass
 * by this NF.  What passed, COUNTERS tells before the flow's DELETE.
 */

/* True: the flow stays. It ends with its DELETE, since nobody else sees its packets. */
static bool
still_there(Flow *f, void *data, time_t now)
{
	(void)data;
	if ((f->flow_end_flags & FLOW_END_FLAG_FORCED) != 0)
		return false;
	flow_time_goes_on(f, (SCTime_t){.secs = (uint64_t)now});
	return true;
}

/* Suricata's callback, its flow locked. 0: Suricata bypasses the flow by itself. */
int
bypass_packet(Packet *p)
{
	struct in_hand *h = in_hand(p);
	struct worker *w = h->w;
	FlowBypassInfo *info;

	if (w->verdicts == VERDICTS)
		bypass_send(w);
	if (p->flow == NULL || w->verdicts == VERDICTS) {
		w->c.verdicts_refused++;
		return 0;
	}
	info = FlowGetStorageById(p->flow, GetFlowBypassInfoID());
	if (info == NULL)
		return 0;
	info->BypassUpdate = still_there;
	w->verdict[w->verdicts++] = (struct nfmeta_flow_verdict){
		.flow_id = h->flow_id, .flow_gen = h->flow_gen, .verdict = NFMETA_ACTION_SHUNT};
	h->shunted = true;
	h->swapped = ((p->flowflags & FLOW_PKT_TOCLIENT) != 0) !=
		     ((h->flags & NFMETA_FLOW_REVERSE) != 0);
	return 1;
}

/* No room: they wait for the next time. */
void
bypass_send(struct worker *w)
{
	if (w->verdicts == 0 ||
	    nfmeta_flow_reply(w->link, NFMETA_MSG_VERDICT, w->verdict, (uint16_t)w->verdicts) != 0)
		return;
	w->c.verdicts_sent += w->verdicts;
	w->verdicts = 0;
}

/* For eve's flow record and Suricata's own counters; f is locked. */
void
bypass_counters(struct worker *w, Flow *f, const struct nfmeta_flow_counters *c, bool swapped)
{
	FlowBypassInfo *info = FlowGetStorageById(f, GetFlowBypassInfoID());
	uint64_t packets, bytes;

	if (info == NULL)
		return;
	packets = c->packets[0] + c->packets[1] - info->todstpktcnt - info->tosrcpktcnt;
	bytes = c->bytes[0] + c->bytes[1] - info->todstbytecnt - info->tosrcbytecnt;
	info->todstpktcnt = c->packets[swapped];
	info->todstbytecnt = c->bytes[swapped];
	info->tosrcpktcnt = c->packets[!swapped];
	info->tosrcbytecnt = c->bytes[!swapped];
	StatsAddUI64(w->tv, w->bypassed_packets, packets);
	StatsAddUI64(w->tv, w->bypassed_bytes, bytes);
	w->c.shunted_packets += packets;
	w->c.shunted_bytes += bytes;
}
