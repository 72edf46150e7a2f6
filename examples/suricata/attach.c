/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#define SLICE_MS 100 /* a signal is heard that often while waiting for the link */

struct worker workers[WORKERS];
uint16_t workers_n;
static bool attached;

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool
go_on(uint64_t until)
{
	if (sigterm_count != 0 || sigint_count != 0)
		FatalError("asked to end while waiting for the link \"%s\"", opts.link);
	return now_ms() < until;
}

void
attach_eal(void)
{
	struct nfmeta_eal_opts eal =
		NFMETA_EAL_OPTS(.file_prefix = opts.file_prefix, .timeout_ms = SLICE_MS);
	uint64_t until = now_ms() + (uint64_t)opts.wait * 1000;
	int rc;

	do
		rc = nfmeta_eal_attach(&eal);
	while ((rc == -NFMETA_ENOPRIMARY || rc == -NFMETA_EPRIMARYDEAD) && go_on(until));
	if (rc != 0)
		FatalError("%s", nfmeta_error());
	attached = true;
}

static void
attach_queue(uint16_t queue, uint64_t until)
{
	struct worker *w = &workers[workers_n];
	int rc;

	do /* a queue whose NF died is taken back by the primary within a second */
		rc = nfmeta_link_attach(opts.link, queue, SLICE_MS, &w->link);
	while ((rc == -NFMETA_ENOLINK || rc == -NFMETA_EDEADNF) && go_on(until));
	if (rc == -NFMETA_ENOLINK)
		FatalError(
			"no link \"%s\" within %u s (wait): is it created, and is the name right?",
			opts.link, opts.wait);
	if (rc != 0)
		FatalError("%s", nfmeta_error());
	w->queue = queue;
	w->field = *nfmeta_link_field(w->link);
	w->ips = opts.ips;
	w->records = !opts.ignore_records;
	workers_n++;
}

void
attach_link(void)
{
	uint64_t until = now_ms() + (uint64_t)opts.wait * 1000;
	uint16_t first, last, queues, q;

	first = opts.first_queue < 0 ? 0 : (uint16_t)opts.first_queue;
	attach_queue(first, until);
	queues = nfmeta_link_shared(workers[0].link)->queue_count;
	last = opts.last_queue < 0 ? (uint16_t)(queues - 1) : (uint16_t)opts.last_queue;
	if (last >= queues)
		FatalError("the link \"%s\" has %u queue%s: there is none with number %u (queues)",
			   opts.link, queues, queues == 1 ? "" : "s", last);
	for (q = first + 1; q <= last; q++)
		attach_queue(q, until);
}

void
detach_all(void)
{
	uint16_t i;

	/* One that is left attached is dead for the primary, and its queue closed. */
	for (i = 0; i < workers_n; i++) {
		if (workers[i].link == NULL || workers[i].at_work)
			continue;
		nfmeta_link_detach(workers[i].link);
		workers[i].link = NULL;
	}
	if (attached)
		nfmeta_eal_detach();
	attached = false;
}
