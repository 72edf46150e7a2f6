/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <rte_cycles.h>

#include "splitter.h"

void
progress_line(struct progress *p, const struct report *r, uint64_t now, uint32_t in_flight)
{
	uint64_t hz = rte_get_tsc_hz();
	double gap = (double)(now - p->next + hz) / (double)hz;

	note("%3ju s: in %.3f, out %.3f Mpkt/s, %ju flows, %u packets at the NF",
	     (uintmax_t)((now - p->start) / hz), (double)(r->c->in - p->in) / gap / 1e6,
	     (double)(r->c->out - p->out) / gap / 1e6, (uintmax_t)r->flows->active, in_flight);
	p->in = r->c->in;
	p->out = r->c->out;
	p->next = now + hz;
}

static uint64_t
dropped(const struct splitter_counts *c)
{
	return c->drop_full + c->drop_nf + c->drop_backward + c->drop_output + c->drop_stopped;
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

void
report_summary(const struct report *r)
{
	const struct splitter_counts *c = r->c;

	printf("%s: %.3f s, %.3f Mpkt/s, ended by: %s; record: %s, %u bytes\n", say_name(),
	       r->seconds, r->seconds > 0 ? (double)c->in / r->seconds / 1e6 : 0.0, r->ended,
	       placement_name(r->field), r->field->size);
	printf("  packets in   %ju (%ju bytes)\n", (uintmax_t)c->in, (uintmax_t)c->in_bytes);
	printf("  packets out  %ju (%ju bytes)", (uintmax_t)c->out, (uintmax_t)c->out_bytes);
	if (c->bypassed > 0)
		printf(", of them %ju not inspected", (uintmax_t)c->bypassed);
	if (c->backward > 0)
		printf("; back where they came from: %ju", (uintmax_t)c->backward);
	printf("\n  dropped      %ju", (uintmax_t)dropped(c));
	if (dropped(c) > 0)
		printf(" (link full %ju, by the NF %ju, no way back %ju, output %ju, stopped %ju)",
		       (uintmax_t)c->drop_full, (uintmax_t)c->drop_nf, (uintmax_t)c->drop_backward,
		       (uintmax_t)c->drop_output, (uintmax_t)c->drop_stopped);
	printf("\n  lost         %ju", (uintmax_t)c->lost);
	if (c->pool_lost > 0)
		printf(" (%ju of them in the hands of a dead NF)", (uintmax_t)c->pool_lost);
	printf("\n  flows        %ju (timed out %ju, ports used again %ju)",
	       (uintmax_t)r->flows->flows, (uintmax_t)r->flows->timed_out,
	       (uintmax_t)r->flows->reused);
	if (r->flows->unknown > 0)
		printf("; table full for %ju packets", (uintmax_t)r->flows->unknown);
	printf("\n");
	fflush(stdout);
}

int
report_json(struct json *j, const struct report *r)
{
	const struct splitter_counts *c = r->c;

	json_object(j, NULL);
	json_text(j, "program", "splitter");
	json_text(j, "version", nfmeta_version());
	json_text(j, "ended_by", r->ended);
	json_real(j, "seconds", r->seconds);
	json_number(j, "queues", r->o->queues);
	json_text(j, "placement", placement_name(r->field));
	json_number(j, "record_bytes", r->field->size);
	json_number(j, "packets_in", c->in);
	json_number(j, "bytes_in", c->in_bytes);
	json_number(j, "packets_out", c->out);
	json_number(j, "bytes_out", c->out_bytes);
	json_number(j, "packets_bypassed", c->bypassed);
	json_number(j, "packets_backward", c->backward);
	json_object(j, "dropped");
	json_number(j, "link_full", c->drop_full);
	json_number(j, "by_nf", c->drop_nf);
	json_number(j, "no_way_back", c->drop_backward);
	json_number(j, "output", c->drop_output);
	json_number(j, "stopped", c->drop_stopped);
	json_end(j);
	json_number(j, "lost", c->lost);
	json_number(j, "lost_to_pool", c->pool_lost);
	json_number(j, "flows", r->flows->flows);
	json_number(j, "flows_timed_out", r->flows->timed_out);
	json_number(j, "flows_reused", r->flows->reused);
	json_number(j, "packets_without_flow", r->flows->unknown);
	if (r->o->json_more != NULL)
		r->o->json_more(j, r->o->json_arg);
	return json_close(j);
}
