/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "inspector.h"

static const char *
carrier_name(uint8_t carrier)
{
	static const char *const names[] = {"none", "ring", "inband", "table"};

	return carrier < RTE_DIM(names) ? names[carrier] : "unknown";
}

static void
flow_summary(const struct track_counts *t)
{
	if (t->carrier == 0)
		return;
	printf("  flows: opened %ju, deleted %ju, replaced %ju, not in a snapshot %ju, open %ju;"
	       " packets after a delete: %ju\n",
	       (uintmax_t)t->opened, (uintmax_t)t->deleted, (uintmax_t)t->replaced,
	       (uintmax_t)(t->swept + t->reset), (uintmax_t)t->open, (uintmax_t)t->after_delete);
	printf("  messages (%s): %ju, %s, gaps %ju; verdicts %ju; passed by: %ju packets\n",
	       carrier_name(t->carrier), (uintmax_t)t->messages, sync_names[t->sync],
	       (uintmax_t)t->gaps, (uintmax_t)t->verdicts_sent, (uintmax_t)t->passed_packets);
}

static void
json_flow_state(struct json *j, const struct track_counts *t)
{
	json_object(j, "flow_state");
	json_text(j, "carrier", carrier_name(t->carrier));
	json_number(j, "subscribed", t->subscribed);
	json_text(j, "sync", sync_names[t->sync]);
	json_number(j, "opened", t->opened);
	json_number(j, "deleted", t->deleted);
	json_number(j, "replaced", t->replaced);
	json_number(j, "not_in_snapshot", t->swept);
	json_number(j, "reset", t->reset);
	json_number(j, "open", t->open);
	json_number(j, "deletes_unknown", t->deletes_unknown);
	json_number(j, "packets_after_delete", t->after_delete);
	json_number(j, "messages", t->messages);
	json_number(j, "snapshots", t->snapshots);
	json_number(j, "gaps", t->gaps);
	json_number(j, "stale", t->stale);
	json_number(j, "refused", t->refused);
	json_number(j, "apps", t->apps);
	json_number(j, "verdicts_sent", t->verdicts_sent);
	json_number(j, "verdicts_seen", t->verdicts_seen);
	json_number(j, "packets_passed", t->passed_packets);
	json_number(j, "bytes_passed", t->passed_bytes);
	json_end(j);
}

void
inspector_summary(const struct inspector_opts *o, const struct inspector_result *r)
{
	const struct work_counts *c = &r->counts;
	const struct audit *a = &r->audit;

	printf("%s: queue %u, %s: %ju packets (%ju bytes), %ju flows, %.1f ns per packet, ended by:"
	       " %s\n",
	       say_name(), o->queue, inspector_modes[o->mode], (uintmax_t)c->packets,
	       (uintmax_t)c->bytes, (uintmax_t)c->flows, r->ns_per_packet, r->ended);
	if (o->mode == MODE_TRUST)
		printf("  saved: %ju checksums, %ju flow lookups; without a record: %ju packets\n",
		       (uintmax_t)c->checks_saved, (uintmax_t)c->lookups_saved,
		       (uintmax_t)c->no_record);
	if (o->mode == MODE_AUDIT)
		printf("  audit: %ju packets disagree (no record %ju, flags %ju, offsets %ju,"
		       " VLAN %ju, flow %ju, direction %ju)\n",
		       (uintmax_t)a->disagreements, (uintmax_t)a->no_record, (uintmax_t)a->flags,
		       (uintmax_t)a->offsets, (uintmax_t)a->vlan, (uintmax_t)a->flow,
		       (uintmax_t)a->direction);
	flow_summary(&r->track);
	fflush(stdout);
}

void
inspector_json(struct json *j, const struct inspector_opts *o, const struct inspector_result *r)
{
	const struct work_counts *c = &r->counts;
	const struct audit *a = &r->audit;

	json_text(j, "program", "inspector");
	json_text(j, "version", nfmeta_version());
	json_text(j, "mode", inspector_modes[o->mode]);
	json_number(j, "queue", o->queue);
	json_text(j, "ended_by", r->ended);
	json_number(j, "packets", c->packets);
	json_number(j, "bytes", c->bytes);
	json_number(j, "bursts", r->bursts);
	json_real(j, "ns_per_packet", r->ns_per_packet);
	json_number(j, "ns_per_packet_median_burst", r->ns_burst_median);
	json_number(j, "flows", c->flows);
	json_number(j, "packets_without_record", c->no_record);
	json_number(j, "packets_without_flow", c->no_flow);
	json_number(j, "packets_invalid", c->invalid);
	json_number(j, "packets_bad_checksum", c->bad_checksum);
	json_number(j, "checksums_saved", c->checks_saved);
	json_number(j, "lookups_saved", c->lookups_saved);
	json_number(j, "drops_asked", c->dropped);
	json_number(j, "packets_with_app", c->with_app);
	json_number(j, "packets_app_differs", c->app_differs);
	json_number(j, "digest", c->digest);
	json_flow_state(j, &r->track);
	json_object(j, "audit");
	json_number(j, "compared", a->compared);
	json_number(j, "disagreements", a->disagreements);
	json_number(j, "no_record", a->no_record);
	json_number(j, "flags", a->flags);
	json_number(j, "offsets", a->offsets);
	json_number(j, "vlan", a->vlan);
	json_number(j, "flow", a->flow);
	json_number(j, "direction", a->direction);
	json_number(j, "later_in_chain", a->later);
	json_end(j);
}
