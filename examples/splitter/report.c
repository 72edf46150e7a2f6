/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <rte_cycles.h>

#include "splitter.h"

#define QUEUES_SHOWN 8 /* in a line; the report has all */

/* Of the first link's queues: the share of the packets since the last line, those at the NF now. */
static const char *
by_queue(struct progress *p, const struct hop *h, char *text, size_t size)
{
	uint16_t q, n = h->o->queues;
	struct queue_report u[NFMETA_QUEUES_MAX];
	uint64_t all = 0;
	size_t at;

	text[0] = '\0';
	if (n == 1)
		return text;
	for (q = 0; q < n; q++) {
		u[q] = spread_queue(h, q);
		all += u[q].packets - p->queue[q];
	}
	at = (size_t)snprintf(text, size, "; by queue");
	for (q = 0; q < n; q++) {
		if (q < QUEUES_SHOWN && at < size)
			at += (size_t)snprintf(
				text + at, size - at, " %.0f%%/%ju%s",
				all > 0 ? 100.0 * (double)(u[q].packets - p->queue[q]) / (double)all
					: 0.0,
				(uintmax_t)u[q].depth,
				!u[q].there   ? " gone"
				: u[q].drains ? " drains"
					      : "");
		p->queue[q] = u[q].packets;
	}
	return text;
}

void
progress_line(struct progress *p, const struct report *r, uint64_t now, uint32_t in_flight)
{
	uint64_t hz = rte_get_tsc_hz();
	double gap = (double)(now - p->next + hz) / (double)hz;
	char queues[QUEUES_SHOWN * 32];

	note("%3ju s: in %.3f, out %.3f Mpkt/s, %ju flows, %u packets in the link%s",
	     (uintmax_t)((now - p->start) / hz), (double)(r->c->in - p->in) / gap / 1e6,
	     (double)(r->c->out - p->out) / gap / 1e6, (uintmax_t)r->flows->active, in_flight,
	     by_queue(p, r->hop, queues, sizeof(queues)));
	p->in = r->c->in;
	p->out = r->c->out;
	p->next = now + hz;
}

static uint64_t
dropped(const struct splitter_counts *c)
{
	return c->drop_full + c->drop_nf + c->drop_verdict + c->drop_rule + c->drop_policy +
	       c->drop_backward + c->drop_output + c->drop_stopped + c->drop_unserved +
	       c->drop_dead + c->drop_fenced;
}

static const char *
placement_name(const struct nfmeta_field *f)
{
	switch (f->placement) {
	case NFMETA_PLACE_DYNFIELD:
		return "dynfield";
	case NFMETA_PLACE_UDATA64:
		return "udata64";
	case NFMETA_PLACE_HEADROOM:
		return "headroom";
	}
	return "none";
}

/* By NFMETA_END_*. */
static const char *const ends[FLOW_ENDS] = {"not_said", "timeout", "closed", "reset",
					    "evicted",	"reused",  "stopped"};

static double
per_message(const struct feed_counts *f)
{
	return f->delete_messages > 0 ? (double)f->deletes / (double)f->delete_messages : 0;
}

static void
flow_summary(const struct report *r)
{
	const struct feed_counts *f = r->feed;
	uint64_t ended = 0;
	int i;

	printf("  flows        %ju", (uintmax_t)r->flows->flows);
	for (i = 1; i < FLOW_ENDS; i++) {
		ended += r->flows->ended[i];
		if (r->flows->ended[i] > 0)
			printf(", %s %ju", ends[i], (uintmax_t)r->flows->ended[i]);
	}
	printf("; ended %ju", (uintmax_t)ended);
	if (r->flows->unknown > 0)
		printf("; table full for %ju packets", (uintmax_t)r->flows->unknown);
	printf("\n");
	if (r->o->carrier == 0)
		return;
	printf("  messages     %ju (%s), %.1f deletes in one; given up %ju, resyncs %ju\n",
	       (uintmax_t)f->messages, carrier_names[r->o->carrier], per_message(f),
	       (uintmax_t)f->given_up, (uintmax_t)f->resyncs_answered);
	if (f->verdicts > 0 || r->c->shunted > 0)
		printf("  verdicts     %ju applied, %ju late; shunted %ju packets (%ju bytes)\n",
		       (uintmax_t)f->verdicts_applied, (uintmax_t)f->verdicts_late,
		       (uintmax_t)r->c->shunted, (uintmax_t)r->c->shunted_bytes);
}

static void
apps_summary(const struct apps *a)
{
	const char *const *names = dpi_names(a->dpi);
	const struct app_count *c;
	unsigned int i;

	printf("  applications of %ju flows known, of %ju not; %ju packets looked into; %u rules\n",
	       (uintmax_t)a->c.known, (uintmax_t)a->c.unknown, (uintmax_t)a->c.packets, a->rules.n);
	for (i = 0; names[i] != NULL; i++) {
		c = &a->by_app[i];
		if (c->flows > 0)
			printf("    %-20s %ju flows, %ju packets: inspected %ju, shunted %ju,"
			       " discarded %ju\n",
			       names[i], (uintmax_t)c->flows, (uintmax_t)c->packets,
			       (uintmax_t)c->inspected, (uintmax_t)c->shunted,
			       (uintmax_t)c->discarded);
	}
}

static void
policy_summary(const struct report *r)
{
	const struct policy_count *c;

	printf("  policy       %u rules; not inspected %ju packets, dropped %ju\n",
	       r->policy->rules.n, (uintmax_t)r->c->forwarded, (uintmax_t)r->c->drop_policy);
	for (c = r->policy->counts; c < &r->policy->counts[r->policy->ncounts]; c++)
		if (c->packets > 0)
			printf("    %-20s %ju flows, %ju packets (%ju bytes): inspected %ju\n",
			       c->name, (uintmax_t)c->flows, (uintmax_t)c->packets,
			       (uintmax_t)c->bytes, (uintmax_t)c->inspected);
}

static uint64_t
hop_sent(const struct hop *h, uint64_t *back)
{
	uint64_t sent = 0;
	uint16_t q;

	*back = 0;
	for (q = 0; q < h->o->queues; q++) {
		sent += h->way[q].sent;
		*back += h->way[q].back;
	}
	return sent;
}

static uint64_t
hop_dropped(const struct hop_counts *c)
{
	return c->full + c->dropped + c->verdict + c->dead + c->fenced;
}

static void
links_summary(const struct report *r)
{
	const struct hop *h;
	uint64_t sent, back;

	for (h = r->hop; h < &r->hop[r->o->links]; h++) {
		sent = hop_sent(h, &back);
		printf("  link %-8s packets %ju, back %ju; passed by: full %ju, shunted %ju;"
		       " dropped %ju\n",
		       h->o->name, (uintmax_t)sent, (uintmax_t)back, (uintmax_t)h->c.bypassed,
		       (uintmax_t)h->c.shunted, (uintmax_t)hop_dropped(&h->c));
	}
}

static double
share_of(const struct hop *h, const struct queue_report *u)
{
	uint64_t all = 0;
	uint16_t q;

	for (q = 0; q < h->o->queues; q++)
		all += h->way[q].sent + h->way[q].refused;
	return all > 0 ? (double)u->packets / (double)all : 0;
}

static void
queues_summary(const struct report *r)
{
	struct queue_report u;
	const struct hop *h;
	uint16_t q;

	for (h = r->hop; h < &r->hop[r->o->links]; h++) {
		if (h->o->queues == 1)
			continue;
		printf("  balance      %s, link %s; sessions moved %ju\n",
		       balance_names[h->o->spread.balance], h->o->name, (uintmax_t)r->flows->moved);
		for (q = 0; q < h->o->queues; q++) {
			u = spread_queue(h, q);
			printf("    queue %-2u   %ju packets (%.1f %%), no room for %ju; %ju "
			       "sessions;"
			       " at the NF %.0f on average, %ju at most; NF busy %.1f %%\n",
			       q, (uintmax_t)u.packets, 100 * share_of(h, &u), (uintmax_t)u.refused,
			       (uintmax_t)u.sessions, u.depth_mean, (uintmax_t)u.depth_max,
			       u.busy / 10.0);
		}
	}
}

void
report_summary(const struct report *r)
{
	const struct splitter_counts *c = r->c;

	printf("%s: %.3f s, %.3f Mpkt/s, ended by: %s; record: %s, %u bytes\n", say_name(),
	       r->seconds, r->seconds > 0 ? (double)c->in / r->seconds / 1e6 : 0.0, r->ended,
	       placement_name(r->field), r->field->size);
	printf("  packets in   %ju (%ju bytes)\n", (uintmax_t)c->in, (uintmax_t)c->in_bytes);
	if (c->injected > 0)
		printf("  injected     %ju\n", (uintmax_t)c->injected);
	printf("  packets out  %ju (%ju bytes)", (uintmax_t)c->out, (uintmax_t)c->out_bytes);
	if (c->bypassed > 0)
		printf(", of them %ju not inspected", (uintmax_t)c->bypassed);
	if (c->backward > 0)
		printf("; back where they came from: %ju", (uintmax_t)c->backward);
	printf("\n  dropped      %ju", (uintmax_t)dropped(c));
	if (dropped(c) > 0)
		printf(" (link full %ju, by the NF %ju, by its verdict %ju, by a rule %ju, by the "
		       "policy %ju, no way back %ju,"
		       " output %ju, stopped %ju, no NF %ju, NF died %ju, NF cut off %ju)",
		       (uintmax_t)c->drop_full, (uintmax_t)c->drop_nf, (uintmax_t)c->drop_verdict,
		       (uintmax_t)c->drop_rule, (uintmax_t)c->drop_policy,
		       (uintmax_t)c->drop_backward, (uintmax_t)c->drop_output,
		       (uintmax_t)c->drop_stopped, (uintmax_t)c->drop_unserved,
		       (uintmax_t)c->drop_dead, (uintmax_t)c->drop_fenced);
	printf("\n  lost         %ju\n", (uintmax_t)c->lost);
	if (c->deaths > 0)
		printf("  NFs died     %ju; %ju packets reclaimed, %ju of them from their hands\n",
		       (uintmax_t)c->deaths, (uintmax_t)c->reclaimed, (uintmax_t)c->orphans);
	if (r->o->links > 1)
		links_summary(r);
	flow_summary(r);
	if (r->correlate != NULL && r->correlate->controls > 0)
		printf("  correlated   %ju flows of %ju control sessions; expected %ju, expired "
		       "%ju\n",
		       (uintmax_t)r->correlate->matched, (uintmax_t)r->correlate->controls,
		       (uintmax_t)r->correlate->expected, (uintmax_t)r->correlate->expired);
	if (r->policy != NULL)
		policy_summary(r);
	queues_summary(r);
	if (r->apps != NULL)
		apps_summary(r->apps);
	fflush(stdout);
}

static void
json_flow_state(struct json *j, const struct report *r)
{
	const struct feed_counts *f = r->feed;
	uint64_t ended = 0;
	int i;

	json_object(j, "flow_state");
	json_text(j, "carrier", carrier_names[r->o->carrier]);
	json_number(j, "table", r->o->flow_table);
	json_number(j, "opened", r->flows->flows);
	for (i = 1; i < FLOW_ENDS; i++)
		ended += r->flows->ended[i];
	json_number(j, "deleted", ended);
	json_object(j, "deleted_by");
	for (i = 1; i < FLOW_ENDS; i++)
		json_number(j, ends[i], r->flows->ended[i]);
	json_end(j);
	json_number(j, "messages", f->messages);
	json_number(j, "messages_given_up", f->given_up);
	json_number(j, "delete_messages", f->delete_messages);
	json_real(j, "deletes_per_message", per_message(f));
	json_number(j, "resyncs", f->resyncs);
	json_number(j, "resyncs_answered", f->resyncs_answered);
	json_number(j, "verdicts", f->verdicts);
	json_number(j, "verdicts_applied", f->verdicts_applied);
	json_number(j, "verdicts_late", f->verdicts_late);
	json_number(j, "verdicts_kept", f->verdicts_kept);
	json_number(j, "packets_shunted", r->c->shunted);
	json_number(j, "bytes_shunted", r->c->shunted_bytes);
	json_number(j, "packets_shunted_by_rule", r->c->shunted_rule);
	json_number(j, "packets_shunted_held", r->c->shunted_held);
	json_number(j, "packets_not_shunted", r->c->not_shunted);
	json_number(j, "refused", f->refused);
	json_number(j, "stale", f->stale);
	json_number(j, "queues_unheard", f->unheard);
	json_object(j, "load");
	json_number(j, "busy_permille", f->load.busy);
	json_number(j, "flows", f->load.flows);
	json_number(j, "overload", f->load.overload);
	json_end(j);
	json_end(j);
}

static void
json_apps(struct json *j, const struct apps *a)
{
	const char *const *names = dpi_names(a->dpi);
	const struct app_count *c;
	unsigned int i;

	json_object(j, "apps");
	json_number(j, "rules", a->rules.n);
	json_number(j, "reloads", a->c.reloads);
	json_number(j, "reloads_failed", a->c.reloads_failed);
	json_number(j, "flows_known", a->c.known);
	json_number(j, "flows_unknown", a->c.unknown);
	json_number(j, "flows_pushed_out", a->c.pushed_out);
	json_number(j, "packets_looked_into", a->c.packets);
	json_object(j, "by_app");
	for (i = 0; names[i] != NULL; i++) {
		c = &a->by_app[i];
		if (c->flows == 0)
			continue;
		json_object(j, names[i]);
		json_number(j, "id", i);
		json_number(j, "flows", c->flows);
		json_number(j, "packets", c->packets);
		json_number(j, "bytes", c->bytes);
		json_number(j, "inspected", c->inspected);
		json_number(j, "shunted", c->shunted);
		json_number(j, "discarded", c->discarded);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void
json_policy(struct json *j, const struct policy *p)
{
	const struct policy_count *c;

	json_object(j, "policy");
	json_number(j, "rules", p->rules.n);
	json_number(j, "reloads", p->reloads);
	json_number(j, "reloads_failed", p->reloads_failed);
	json_object(j, "by_rule");
	for (c = p->counts; c < &p->counts[p->ncounts]; c++) {
		json_object(j, c->name);
		json_number(j, "flows", c->flows);
		json_number(j, "packets", c->packets);
		json_number(j, "bytes", c->bytes);
		json_number(j, "inspected", c->inspected);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void
json_queues(struct json *j, const struct hop *h)
{
	struct queue_report u;
	char name[16];
	uint16_t q;

	json_object(j, "queue");
	for (q = 0; q < h->o->queues; q++) {
		u = spread_queue(h, q);
		snprintf(name, sizeof(name), "%u", q);
		json_object(j, name);
		json_number(j, "packets", u.packets);
		json_number(j, "refused", u.refused);
		json_real(j, "share", share_of(h, &u));
		json_number(j, "sessions", u.sessions);
		json_number(j, "flows", u.flows);
		json_real(j, "depth_mean", u.depth_mean);
		json_number(j, "depth_max", u.depth_max);
		json_number(j, "busy_permille", u.busy);
		json_number(j, "weight", u.weight);
		json_real(j, "speed", u.speed);
		json_end(j);
	}
	json_end(j);
}

/* Of the first link; those of others are with their links. */
static void
json_balance(struct json *j, const struct report *r)
{
	json_object(j, "balance");
	json_text(j, "how", balance_names[r->hop->o->spread.balance]);
	json_number(j, "weighted", r->hop->o->spread.weighted);
	json_number(j, "sessions_moved", r->flows->moved);
	json_queues(j, r->hop);
	json_end(j);
}

static void
json_links(struct json *j, const struct report *r)
{
	const struct hop *h;
	uint64_t sent, back;

	json_object(j, "links");
	for (h = r->hop; h < &r->hop[r->o->links]; h++) {
		sent = hop_sent(h, &back);
		json_object(j, h->o->name);
		json_number(j, "queues", h->o->queues);
		json_number(j, "packets", sent);
		json_number(j, "packets_back", back);
		json_number(j, "packets_bypassed", h->c.bypassed);
		json_number(j, "packets_shunted", h->c.shunted);
		json_object(j, "dropped");
		json_number(j, "link_full", h->c.full);
		json_number(j, "by_nf", h->c.dropped);
		json_number(j, "by_verdict", h->c.verdict);
		json_number(j, "nf_died", h->c.dead);
		json_number(j, "nf_cut_off", h->c.fenced);
		json_end(j);
		json_number(j, "nfs_died", h->c.deaths);
		json_number(j, "nfs_cut_off", h->c.cut_off);
		json_text(j, "balance", balance_names[h->o->spread.balance]);
		json_queues(j, h);
		json_end(j);
	}
	json_end(j);
}

static void
json_correlate(struct json *j, const struct correlate_counts *c)
{
	json_object(j, "correlation");
	json_number(j, "control_sessions", c->controls);
	json_number(j, "expected", c->expected);
	json_number(j, "matched", c->matched);
	json_number(j, "expired", c->expired);
	json_number(j, "replaced", c->replaced);
	json_number(j, "pushed_out", c->pushed_out);
	json_number(j, "waiting", c->waiting);
	json_end(j);
}

int
report_json(struct json *j, const struct report *r)
{
	const struct splitter_counts *c = r->c;
	uint16_t queues = 0;
	uint8_t i;

	for (i = 0; i < r->o->links; i++)
		queues += r->o->link[i].queues;
	json_object(j, NULL);
	json_text(j, "program", "splitter");
	json_text(j, "version", nfmeta_version());
	json_text(j, "ended_by", r->ended);
	json_real(j, "seconds", r->seconds);
	json_number(j, "queues", queues);
	json_text(j, "placement", placement_name(r->field));
	json_number(j, "record_bytes", r->field->size);
	json_number(j, "packets_in", c->in);
	json_number(j, "bytes_in", c->in_bytes);
	json_number(j, "packets_injected", c->injected);
	json_number(j, "packets_out", c->out);
	json_number(j, "bytes_out", c->out_bytes);
	json_number(j, "packets_bypassed", c->bypassed);
	json_number(j, "packets_forwarded_by_policy", c->forwarded);
	json_number(j, "packets_backward", c->backward);
	json_object(j, "dropped");
	json_number(j, "link_full", c->drop_full);
	json_number(j, "by_nf", c->drop_nf);
	json_number(j, "by_verdict", c->drop_verdict);
	json_number(j, "by_rule", c->drop_rule);
	json_number(j, "by_policy", c->drop_policy);
	json_number(j, "no_way_back", c->drop_backward);
	json_number(j, "output", c->drop_output);
	json_number(j, "stopped", c->drop_stopped);
	json_number(j, "no_nf", c->drop_unserved);
	json_number(j, "nf_died", c->drop_dead);
	json_number(j, "nf_cut_off", c->drop_fenced);
	json_end(j);
	json_number(j, "lost", c->lost);
	json_number(j, "nfs_died", c->deaths);
	json_number(j, "nfs_cut_off", c->fenced);
	json_number(j, "packets_reclaimed", c->reclaimed);
	json_number(j, "packets_orphaned", c->orphans);
	json_number(j, "memzones_more", memzones() - c->memzones);
	json_number(j, "flows", r->flows->flows);
	json_number(j, "flows_timed_out", r->flows->timed_out);
	json_number(j, "flows_reused", r->flows->ended[NFMETA_END_REUSED]);
	json_number(j, "flows_evicted", r->flows->ended[NFMETA_END_EVICTED]);
	json_number(j, "packets_without_flow", r->flows->unknown);
	json_number(j, "lookups_buffered", r->flows->buffer_hits);
	json_number(j, "lookups_buffer_missed", r->flows->buffer_misses);
	json_links(j, r);
	json_flow_state(j, r);
	if (r->correlate != NULL)
		json_correlate(j, r->correlate);
	if (r->policy != NULL)
		json_policy(j, r->policy);
	json_balance(j, r);
	if (r->apps != NULL)
		json_apps(j, r->apps);
	if (r->o->json_more != NULL)
		r->o->json_more(j, r->o->json_arg);
	return json_close(j);
}
