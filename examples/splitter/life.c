/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <rte_cycles.h>

#include "splitter.h"

#define LEAVE_SECONDS 3 /* patience with an NF that does not detach */
#define END_SECONDS 10	/* ... with DPDK, which waits 5 s for an NF that does not answer */

static int
open_pool(struct splitter *s)
{
	uint32_t n = input_mbufs(s->o, &s->info);

	s->pool = rte_pktmbuf_pool_create("splitter_packets", n, 256, s->nhops > 1 ? NOTE_ROOM : 0,
					  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (s->pool != NULL)
		return 0;
	return complain("too little hugepage memory for %u packet buffers, about %ju MB%s", n,
			(uintmax_t)(mbufs_memory(n) >> 20) + 1,
			s->o->megabytes > 0 ? ": raise -m"
					    : ": add hugepages, or take a smaller"
					      " --ring-size");
}

static int
open_link(struct splitter *s, struct hop *h)
{
	struct nfmeta_link_opts lo =
		NFMETA_LINK_OPTS(.queues = h->o->queues, .ring_size = h->o->ring_size,
				 .when_full = h->o->when_full, .wait_us = 10, .field = &s->field,
				 .carrier = s->o->carrier, .table = s->flows->shared,
				 .spares = s->o->fence != 0 ? h->o->queues : 0);

	lo.blanks = s->o->blanks;
	lo.pool = s->o->blanks > 0 ? s->pool : NULL;
	if (nfmeta_link_create(h->o->name, &lo, &h->link) != 0)
		return complain("%s", nfmeta_error());
	feed_start(h->feed, h->link, s->flows);
	return 0;
}

static int
open_links(struct splitter *s)
{
	struct nfmeta_field_opts fo = NFMETA_FIELD_OPTS(.placement = s->o->placement);
	uint8_t i;

	if (nfmeta_field_register(&fo, &s->field) != 0)
		return complain("%s", nfmeta_error());
	for (i = 0; i < s->nhops; i++)
		if (open_link(s, &s->hop[i]) != 0)
			return -1;
	s->c.memzones = memzones();
	return 0;
}

static int
open_apps(struct splitter *s)
{
	const struct apps_opts ao = {
		.rules = s->o->rules,
		.flows = s->o->app_flows,
		.packets = s->o->app_packets,
	};

	if (!s->o->apps)
		return 0;
	s->apps = apps_open(&ao);
	return s->apps != NULL ? 0 : -1;
}

/* Read before anything is made: a fault in it ends the start. */
static int
open_policy(struct splitter *s)
{
	if (s->o->policy_file == NULL)
		return 0;
	s->first.policy = policy_open(s->o->policy_file, &s->first, s->link_names);
	return s->first.policy != NULL ? 0 : -1;
}

static int
build_policy(struct splitter *s)
{
	return s->first.policy == NULL ? 0 : policy_build(s->first.policy);
}

static int
open_flows(struct splitter *s)
{
	const struct flow_opts fo = {
		.max_flows = s->o->max_flows,
		.timeout = s->o->timeout,
		.timeout_udp = s->o->timeout_udp,
		.timeout_closed = s->o->timeout_closed,
		.csv = s->o->flows,
		.shared = s->o->flow_table,
	};

	struct feed *feeds[LINKS_MAX];
	struct hop *h;

	for (h = s->hop; h < &s->hop[s->nhops]; h++) {
		h->feed = feed_create(h->number, h->o->queues, s->o->carrier);
		h->balance = spread_create(h->o, s->hz);
		if (h->feed == NULL || h->balance == NULL)
			return -1;
		feeds[h->number] = h->feed;
		s->first.balance[h->number] = h->balance;
	}
	s->flows = flows_create(&fo, &s->first, feeds);
	if (s->flows == NULL)
		return -1;
	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		feed_start(h->feed, NULL, s->flows);
	if (s->nhops > 1) {
		s->flows->under_way = under_way;
		s->flows->under_way_arg = s;
	}
	if (s->o->correlate.n > 0) {
		s->correlate = correlate_open(&s->o->correlate, s->flows, s->hz);
		if (s->correlate == NULL)
			return -1;
		s->flows->correlate = s->correlate;
	}
	s->flows->apps = s->apps;
	if (s->apps != NULL)
		s->apps->flows = s->flows;
	return 0;
}

/* EAL with as much memory as is needed, where that has to be said before. */
static int
open_eal(struct splitter *s)
{
	struct primary_opts p = {
		.file_prefix = s->o->file_prefix,
		.megabytes = s->o->megabytes,
		.one_process = s->o->one_process,
		.verbose = s->o->verbose,
		.argc = s->o->eal_argc,
		.argv = (char **)s->o->eal_argv,
	};

	if (p.one_process && p.megabytes == 0)
		p.megabytes = 64 + ((mbufs_memory(input_mbufs(s->o, &s->info)) +
				     2 * flows_memory(s->o->max_flows, s->o->flow_table)) >>
				    20);
	return primary_start(&p);
}

/* Reading and writing the same file would leave nothing of it. */
static int
check_output(const struct splitter_opts *o)
{
	const struct {
		const char *option, *path;
	} files[] = {
		{"--out", o->out_capture ? o->out : NULL},
		{"--flows", o->flows},
		{"--json", o->json},
	};
	struct stat in, out;
	size_t i;

	if (!o->in_capture || stat(o->in, &in) != 0)
		return 0;
	for (i = 0; i < RTE_DIM(files); i++)
		if (files[i].path != NULL && stat(files[i].path, &out) == 0 &&
		    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return complain("%s \"%s\" would overwrite the capture that is read",
					files[i].option, files[i].path);
	return 0;
}

struct splitter *
splitter_open(const struct splitter_opts *o)
{
	struct splitter *s = calloc(1, sizeof(*s));
	uint8_t i;

	if (s == NULL) {
		complain("out of memory");
		return NULL;
	}
	s->o = o;
	s->in.fd = -1;
	s->nhops = o->links;
	for (i = 0; i < o->links; i++) {
		s->hop[i].o = &o->link[i];
		s->hop[i].number = i;
		s->link_names[i] = o->link[i].name;
	}
	first_init(&s->first, s->nhops);
	if ((o->in_capture && capture_check(o->in, o->first, &s->info) != 0) ||
	    check_output(o) != 0 || open_policy(s) != 0 || open_apps(s) != 0 ||
	    json_open(&s->json, o->json) != 0) {
		policy_close(s->first.policy);
		apps_close(s->apps);
		free(s);
		return NULL;
	}
	if (open_eal(s) == 0) {
		s->hz = rte_get_tsc_hz();
		if (open_pool(s) == 0 && input_open(&s->in, o, &s->info, s->pool) == 0 &&
		    build_policy(s) == 0 && open_flows(s) == 0 && ways_open(s) == 0 &&
		    output_open(&s->out, o, &s->in, s->info.nano, s->pool) == 0 &&
		    open_links(s) == 0)
			return s;
	}
	splitter_close(s, EXIT_BAD);
	return NULL;
}

/* An NF that lives has to detach first. */
static int
destroy_link(struct splitter *s, struct hop *h)
{
	uint64_t until = rte_rdtsc() + LEAVE_SECONDS * s->hz;
	int rc;

	if (h->link == NULL)
		return 0;
	while ((rc = nfmeta_link_destroy(h->link, NULL)) == -EBUSY && rte_rdtsc() < until)
		rte_delay_us_sleep(1000);
	h->link = NULL;
	if (rc == 0)
		return 0;
	s->flows->shared = NULL; /* it may still be read */
	return complain("an NF does not leave the link \"%s\"; it will find this process gone",
			h->o->name);
}

static int
destroy_links(struct splitter *s)
{
	int rc = 0;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		rc |= destroy_link(s, &s->hop[i]);
	return rc;
}

/* After the link and the input: every packet buffer is in the pool again. */
static int
check_pool(const struct splitter *s)
{
	unsigned int missing = rte_mempool_in_use_count(s->pool);

	if (missing == 0)
		return 0;
	return complain("%u packet buffers are not in the pool again", missing);
}

static void
count_zone(const struct rte_memzone *zone __rte_unused, void *arg)
{
	++*(uint32_t *)arg;
}

uint32_t
memzones(void)
{
	uint32_t n = 0;

	rte_memzone_walk(count_zone, &n);
	return n;
}

/*
 * What is to be written is written first: what follows waits for other processes.  Pool
 * and tables are not given back: EAL's memory ends with the process, and to free some of
 * it takes answers from NFs that may just be ending, too.
 */
int
splitter_close(struct splitter *s, int status)
{
	bool ran = s->progress.start != 0, exact = false;
	struct flow_counts flows = {0};
	struct feed_counts feed = {0};
	struct hop *h;

	for (h = s->hop; h < &s->hop[s->nhops]; h++) {
		if (h->feed == NULL)
			continue;
		feed_counts_add(&feed, feed_counts(h->feed));
		feed_start(h->feed, NULL, s->flows);
	}
	if (s->flows != NULL) {
		flows = s->flows->counts;
		if (flows_close_csv(s->flows) != 0 && status == EXIT_OK)
			status = EXIT_BAD;
	}
	if (output_close(&s->out) != 0 && status == EXIT_OK)
		status = EXIT_BAD;
	if (ran) {
		struct report r = {
			.o = s->o,
			.hop = s->hop,
			.c = &s->c,
			.flows = &flows,
			.feed = &feed,
			.apps = s->apps,
			.correlate = s->correlate != NULL ? correlate_counts(s->correlate, s->end)
							  : NULL,
			.policy = s->first.policy,
			.field = &s->field,
			.seconds = (double)(s->end - s->start) / (double)s->hz,
			.ended = s->ended,
		};

		if (!s->o->quiet)
			report_summary(&r);
		if (report_json(&s->json, &r) != 0 && status == EXIT_OK)
			status = EXIT_BAD;
	} else {
		json_discard(&s->json);
	}
	if (!s->o->one_process)
		primary_end_within(END_SECONDS, status);
	if (destroy_links(s) != 0)
		status = EXIT_PEER;
	else
		exact = ran && s->o->in_capture && !s->out.to_port; /* drivers may keep some */
	flows_destroy(s->flows);
	correlate_close(s->correlate);
	input_close(&s->in);
	if (exact && check_pool(s) != 0 && status == EXIT_OK)
		status = EXIT_BAD;
	ways_close(s);
	for (h = s->hop; h < &s->hop[s->nhops]; h++) {
		feed_destroy(h->feed);
		balance_destroy(h->balance);
	}
	apps_close(s->apps);
	policy_close(s->first.policy);
	primary_end();
	free(s);
	return status;
}
