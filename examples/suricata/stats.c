/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#include <jansson.h>

#define CHUNKS_MAX (UINT32_C(1) << 20) /* what is more is summed up, but not listed */

static const char *const names[] = {
	"nfmeta.packets",	   "nfmeta.bytes",	     "nfmeta.records",
	"nfmeta.no_record",	   "nfmeta.checksum_good",   "nfmeta.checksum_bad",
	"nfmeta.checksum_unknown", "nfmeta.segmented",	     "nfmeta.too_big",
	"nfmeta.no_packet",	   "nfmeta.forwarded",	     "nfmeta.dropped",
	"nfmeta.injected",	   "nfmeta.not_injected",    "nfmeta.verdicts_sent",
	"nfmeta.verdicts_refused", "nfmeta.shunted_packets", "nfmeta.shunted_bytes",
	"nfmeta.deletes_in",	   "nfmeta.deletes_matched", "nfmeta.messages",
	"nfmeta.snapshots",	   "nfmeta.resets",	     "nfmeta.flows_ended_out",
	"nfmeta.cpu_ns",	   "nfmeta.idle_cpu_ns",
};
#define PLAIN(name) ((name) + sizeof("nfmeta.") - 1)
_Static_assert(sizeof(names) / sizeof(names[0]) == COUNTS, "a name for every counter");

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The thread's time that it spends on waiting for packets. Nobody reads the clock for
 * those who have not asked. */
static bool
timed(void)
{
	return opts.stats != NULL || opts.compare != 0;
}

static void
waited(struct worker *w, uint64_t now)
{
	if (w->chunks.busy)
		return;
	w->c.idle_cpu_ns += now - w->chunks.idle_began;
	w->chunks.idle_began = now;
}

static FILE *file; /* of stats=FILE */

/* At the start: a bad path shows before the work, and as who Suricata was started. */
void
stats_open(void)
{
	if (opts.stats == NULL)
		return;
	file = fopen(opts.stats, "we");
	if (file == NULL)
		FatalError("%s cannot be written (stats): %s", opts.stats, strerror(errno));
}

/* ---- Suricata's counters ------------------------------------------------------ */

/* In the thread's initialisation: later is too late for Suricata. */
void
stats_register(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < COUNTS; i++)
		w->ids[i] = StatsRegisterCounter(names[i], w->tv);
	/* the flow manager's, too; Suricata adds them up */
	w->bypassed_packets = StatsRegisterCounter("flow_bypassed.pkts", w->tv);
	w->bypassed_bytes = StatsRegisterCounter("flow_bypassed.bytes", w->tv);
	w->chunks.left = opts.compare;
}

void
stats_update(struct worker *w)
{
	const uint64_t *c = (const uint64_t *)&w->c;
	unsigned int i;

	w->c.flows_ended_out = flows_ended(w->queue);
	w->c.cpu_ns = cpu_ns();
	if (timed())
		waited(w, w->c.cpu_ns);
	for (i = 0; i < COUNTS; i++)
		StatsSetUI64(w->tv, w->ids[i], c[i]);
	if (w->device != NULL) /* of all workers */
		(void)SC_ATOMIC_ADD(w->device->pkts, w->c.packets - w->device_packets);
	w->device_packets = w->c.packets;
}

/* ---- compare=N ----------------------------------------------------------------- */

void
stats_idle(struct worker *w)
{
	w->chunks.busy = false;
	if (timed())
		w->chunks.idle_began = cpu_ns();
}

void
stats_busy(struct worker *w)
{
	struct chunks *k = &w->chunks;
	uint64_t now = timed() ? cpu_ns() : 0;

	waited(w, now); /* the first time: all since the thread's start */
	k->busy = true;
	if (k->began == 0) {
		k->began = now;
		k->idle_ns = w->c.idle_cpu_ns;
	}
}

void
stats_chunk(struct worker *w)
{
	struct chunks *k = &w->chunks;
	uint64_t now = cpu_ns(), ns = now - k->began - (w->c.idle_cpu_ns - k->idle_ns);
	unsigned int kind = w->records ? 0 : 1;
	uint32_t *more;

	k->packets[kind] += opts.compare;
	k->cpu_ns[kind] += ns;
	if (k->n == k->room && k->n < CHUNKS_MAX) {
		more = realloc(k->ns, (k->room * 2 + 1024) * sizeof(*k->ns));
		if (more != NULL) {
			k->ns = more;
			k->room = k->room * 2 + 1024;
		}
	}
	if (k->n < k->room)
		k->ns[k->n++] = (uint32_t)RTE_MIN(ns, UINT64_C(0xffffffff));
	w->records = !w->records;
	k->left = opts.compare;
	k->began = now;
	k->idle_ns = w->c.idle_cpu_ns;
}

/* ---- stats=FILE ------------------------------------------------------------------- */

static json_t *
counts(const struct counts *from)
{
	const uint64_t *c = (const uint64_t *)from;
	json_t *j = json_object();
	unsigned int i;

	for (i = 0; i < COUNTS; i++)
		json_object_set_new(j, PLAIN(names[i]), json_integer((json_int_t)c[i]));
	return j;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* ns per packet of the median chunk of a kind, over all workers */
static double
median(unsigned int kind)
{
	uint32_t *all, n = 0, i;
	double ns = 0;
	uint16_t q;

	for (q = 0; q < workers_n; q++)
		n += workers[q].chunks.n;
	all = malloc((n + 1) * sizeof(*all));
	if (all == NULL)
		return 0;
	for (n = 0, q = 0; q < workers_n; q++)
		for (i = kind; i < workers[q].chunks.n; i += 2)
			all[n++] = workers[q].chunks.ns[i];
	if (n > 0) {
		qsort(all, n, sizeof(*all), by_value);
		ns = (double)all[n / 2] / opts.compare;
	}
	free(all);
	return ns;
}

static json_t *
compared(void)
{
	static const char *const kinds[] = {"use", "ignore"};
	json_t *j = json_object(), *list, *one;
	uint64_t packets, ns;
	unsigned int kind;
	uint32_t i;
	uint16_t q;

	json_object_set_new(j, "chunk_packets", json_integer(opts.compare));
	for (kind = 0; kind < 2; kind++) {
		packets = ns = 0;
		list = json_array();
		for (q = 0; q < workers_n; q++) {
			packets += workers[q].chunks.packets[kind];
			ns += workers[q].chunks.cpu_ns[kind];
			for (i = kind; i < workers[q].chunks.n; i += 2)
				json_array_append_new(list, json_integer(workers[q].chunks.ns[i]));
		}
		one = json_object();
		json_object_set_new(one, "packets", json_integer((json_int_t)packets));
		json_object_set_new(one, "cpu_ns", json_integer((json_int_t)ns));
		json_object_set_new(one, "median_ns_per_packet", json_real(median(kind)));
		json_object_set_new(one, "chunks_cpu_ns", list);
		json_object_set_new(j, kinds[kind], one);
	}
	return j;
}

void
stats_write(void)
{
	json_t *j = json_object(), *list = json_array(), *one;
	struct counts total = {0};
	uint64_t *sum = (uint64_t *)&total;
	unsigned int i;
	uint16_t q;

	for (q = 0; q < workers_n; q++) {
		for (i = 0; i < COUNTS; i++)
			sum[i] += ((const uint64_t *)&workers[q].c)[i];
		one = counts(&workers[q].c);
		json_object_set_new(one, "queue", json_integer(workers[q].queue));
		json_array_append_new(list, one);
	}
	SCLogNotice("%" PRIu64 " packets, %" PRIu64 " with record; %" PRIu64 " forwarded, %" PRIu64
		    " dropped, %" PRIu64 " injected, %" PRIu64 " not; %" PRIu64
		    " verdicts; %" PRIu64 " of %" PRIu64 " deletes matched",
		    total.packets, total.records, total.forwarded, total.dropped, total.injected,
		    total.not_injected, total.verdicts_sent, total.deletes_matched,
		    total.deletes_in);
	if (opts.compare != 0)
		SCLogNotice("CPU per packet, median chunk: %.1f ns with records, %.1f ns"
			    " without",
			    median(0), median(1));
	if (file != NULL) {
		json_object_set_new(j, "program", json_string("nfmeta-suricata"));
		json_object_set_new(j, "version", json_string(NFMETA_VERSION_STRING));
		json_object_set_new(j, "suricata", json_string(PACKAGE_VERSION));
		json_object_set_new(j, "link", json_string(opts.link));
		json_object_set_new(j, "mode", json_string(opts.ips ? "ips" : "ids"));
		json_object_set_new(j, "total", counts(&total));
		json_object_set(j, "workers", list);
		if (opts.compare != 0)
			json_object_set_new(j, "compare", compared());
		if (json_dumpf(j, file, JSON_INDENT(1)) != 0 || fputc('\n', file) == EOF ||
		    fclose(file) != 0)
			SCLogError("%s cannot be written (stats): %s", opts.stats, strerror(errno));
		file = NULL;
	}
	json_decref(list);
	json_decref(j);
}
