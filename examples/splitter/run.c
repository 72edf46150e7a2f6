/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_hash_crc.h>
#include <rte_timer.h>

#include "splitter.h"

#define DRAIN_SECONDS 5 /* patience with an NF that gives nothing back */
#define LEAVE_SECONDS 3 /* ... and with one that does not detach */

struct splitter {
	const struct splitter_opts *o;
	struct capture_info info;
	struct json json;
	struct rte_mempool *pool;
	struct input in;
	struct output out;
	struct nfmeta_field field;
	struct flow_table *flows;
	struct nfmeta_link *link;
	struct splitter_counts c;
	struct progress progress;
	uint64_t hz, start, end;
	uint64_t next_timer, next_peer; /* TSC */
	uint64_t absent[NFMETA_QUEUES_MAX]; /* TSC since when; 0: an NF is there */
	const char *ended; /* why; NULL: running */
	int status;
	bool nf_gone; /* everything is bypassed from now on */
	/* packets of one burst, sorted by queue */
	struct rte_mbuf *sorted[NFMETA_QUEUES_MAX][BURST];
	uint16_t nsorted[NFMETA_QUEUES_MAX];
};

static uint64_t
in_flight(const struct splitter *s)
{
	uint64_t n = 0;
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		n += nfmeta_link_in_flight(s->link, q);
	return n;
}

static void
end_run(struct splitter *s, const char *why, int status)
{
	if (s->ended != NULL)
		return;
	s->ended = why;
	s->status = status;
}

/* ---- packets that come back ---------------------------------------------------- */

static uint16_t
forward(struct splitter *s, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t bytes[BURST];
	int done, i;

	for (i = 0; i < n; i++)
		bytes[i] = pkts[i]->pkt_len;
	done = output_burst(&s->out, pkts, n);
	if (done < 0) {
		end_run(s, "the output cannot be written", EXIT_BAD);
		done = 0;
	}
	for (i = 0; i < done; i++)
		s->c.out_bytes += bytes[i];
	s->c.out += (unsigned int)done;
	s->c.drop_output += (unsigned int)(n - done);
	return (uint16_t)done;
}

static void
send_backward(struct splitter *s, struct rte_mbuf *m)
{
	if (s->in.capture || !s->in.started) {
		rte_pktmbuf_free(m);
		s->c.drop_backward++;
	} else if (port_send(s->in.port, &m, 1) == 1) {
		s->c.backward++;
	} else {
		s->c.drop_output++;
	}
}

/* One burst from every queue; returns how many packets came. */
static unsigned int
collect(struct splitter *s)
{
	struct rte_mbuf *pkts[BURST], *keep[BURST];
	unsigned int total = 0;
	uint8_t how[BURST];
	uint16_t q, i, n, nkeep;

	for (q = 0; q < s->o->queues; q++) {
		n = nfmeta_collect_burst(s->link, q, pkts, how, BURST);
		for (i = nkeep = 0; i < n; i++) {
			if (how[i] == NFMETA_FORWARD) {
				keep[nkeep++] = pkts[i];
			} else if (how[i] == NFMETA_BACKWARD) {
				send_backward(s, pkts[i]);
			} else {
				rte_pktmbuf_free(pkts[i]);
				s->c.drop_nf++;
			}
		}
		if (nkeep > 0)
			forward(s, keep, nkeep);
		total += n;
	}
	return total;
}

/* ---- what is due now and then ----------------------------------------------------- */

static void
check_peers(struct splitter *s, uint64_t now)
{
	uint64_t patience = RTE_MAX(s->o->wait_nf, UINT64_C(1)) * s->hz;
	uint16_t q;

	if (s->nf_gone)
		return;
	for (q = 0; q < s->o->queues; q++) {
		switch (nfmeta_link_peer(s->link, q)) {
		case NFMETA_PEER_ALIVE:
			s->absent[q] = 0;
			continue;
		case NFMETA_PEER_DEAD:
			complain("the NF of queue %u died", q);
			break;
		default:
			if (s->absent[q] == 0) {
				s->absent[q] = now;
				note("the NF of queue %u left", q);
			}
			/* told not to wait for one, and nothing has to wait for it */
			if (s->o->wait_nf == 0 && s->o->when_full != NFMETA_FULL_WAIT)
				continue;
			if (now - s->absent[q] < patience)
				continue;
			complain("no other NF came to queue %u within %ju s", q,
				 (uintmax_t)(patience / s->hz));
		}
		s->nf_gone = true;
		s->status = EXIT_PEER;
		if (s->o->when_full != NFMETA_FULL_BYPASS)
			end_run(s, "the NF is gone", EXIT_PEER);
		return;
	}
}

static void
tick(struct splitter *s, uint64_t now)
{
	struct report r;

	if (now < s->next_timer)
		return;
	s->next_timer = now + s->hz / 1000;
	rte_timer_manage();
	if (stop_asked())
		end_run(s, "a signal", EXIT_OK);
	if (s->o->seconds > 0 && now - s->start > s->o->seconds * s->hz)
		s->in.left = 0;
	if (now >= s->next_peer) {
		s->next_peer = now + s->hz / 4;
		check_peers(s, now);
	}
	if (!s->o->quiet && now >= s->progress.next) {
		r = (struct report){.c = &s->c, .flows = flows_counts(s->flows)};
		progress_line(&s->progress, &r, now, (uint32_t)in_flight(s));
	}
}

/* ---- packets on their way out ------------------------------------------------------- */

/* The link did not take these. */
static void
turn_away(struct splitter *s, struct rte_mbuf **pkts, uint16_t n)
{
	if (s->o->when_full == NFMETA_FULL_BYPASS) {
		s->c.bypassed += forward(s, pkts, n);
		return;
	}
	rte_pktmbuf_free_bulk(pkts, n);
	if (s->o->when_full == NFMETA_FULL_WAIT)
		s->c.drop_stopped += n;
	else
		s->c.drop_full += n;
}

static void
hand_over(struct splitter *s, uint16_t q, struct rte_mbuf **pkts, uint16_t n)
{
	struct idle idle = {0};
	uint16_t sent = 0;

	while (!s->nf_gone) {
		sent += nfmeta_send_burst(s->link, q, pkts + sent, (uint16_t)(n - sent));
		if (sent == n)
			return;
		if (s->o->when_full != NFMETA_FULL_WAIT || s->ended != NULL)
			break;
		if (collect(s) > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
		tick(s, rte_rdtsc());
	}
	turn_away(s, pkts + sent, (uint16_t)(n - sent));
}

/*
 * Both directions of a flow, and its fragments, have the same two addresses:
 * these alone choose the queue.
 */
static uint16_t
choose_queue(const struct splitter *s, const struct nfmeta_flow_key *key)
{
	uint32_t hash;

	if (s->o->queues == 1 || key->ip_version == 0)
		return 0;
	hash = rte_hash_crc(key, 32, 0);
	return (uint16_t)((uint64_t)hash * s->o->queues >> 32);
}

static void
set_times(const struct splitter *s, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
	  uint16_t n)
{
	struct timespec t;
	uint64_t now = 0, ns;
	uint16_t i;

	if (s->field.size < NFMETA_RECORD_FULL)
		return;
	if (timestamp_offset < 0) {
		clock_gettime(CLOCK_REALTIME, &t);
		now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
	for (i = 0; i < n; i++) {
		ns = packet_time(pkts[i]);
		recs[i].timestamp = ns != 0 ? ns : now;
	}
}

static void
work(struct splitter *s, struct rte_mbuf **pkts, uint16_t n, uint64_t now)
{
	struct nfmeta_record recs[BURST];
	struct nfmeta_flow_key keys[BURST];
	uint16_t i, q;

	s->c.in += n;
	for (i = 0; i < n; i++)
		s->c.in_bytes += pkts[i]->pkt_len;
	nfmeta_classify_burst(s->o->policy, pkts, n, recs, keys);
	flows_burst(s->flows, pkts, recs, keys, n, now);
	set_times(s, pkts, recs, n);
	nfmeta_record_set_burst(&s->field, pkts, recs, n);

	if (s->o->queues == 1) {
		hand_over(s, 0, pkts, n);
		return;
	}
	for (i = 0; i < n; i++) {
		q = choose_queue(s, &keys[i]);
		s->sorted[q][s->nsorted[q]++] = pkts[i];
	}
	for (q = 0; q < s->o->queues; q++) {
		if (s->nsorted[q] > 0)
			hand_over(s, q, s->sorted[q], s->nsorted[q]);
		s->nsorted[q] = 0;
	}
}

/* ---- start, run, end ------------------------------------------------------------------ */

static int
wait_for_nfs(struct splitter *s)
{
	uint64_t until = rte_rdtsc() + s->o->wait_nf * s->hz;
	uint16_t q = 0;

	if (!s->o->quiet)
		note("link \"%s\" is ready: %u queue%s, file prefix %s", s->o->link, s->o->queues,
		     s->o->queues > 1 ? "s" : "", s->o->file_prefix);
	if (s->o->wait_nf == 0)
		return 0;
	for (;;) {
		while (q < s->o->queues && nfmeta_link_peer(s->link, q) == NFMETA_PEER_ALIVE)
			q++;
		if (q == s->o->queues)
			return 0;
		if (stop_asked()) {
			end_run(s, "a signal", EXIT_OK);
			return -1;
		}
		if (rte_rdtsc() > until)
			break;
		rte_delay_us_sleep(10000);
	}
	complain("no NF came to queue %u of link \"%s\" within %ju s; start one:"
		 " inspector --file-prefix %s --link %s --queue %u",
		 q, s->o->link, (uintmax_t)s->o->wait_nf, s->o->file_prefix, s->o->link, q);
	end_run(s, "no NF came", EXIT_BAD);
	return -1;
}

/* Nothing new goes out; what is at the NFs comes back, if they still live. */
static void
drain(struct splitter *s)
{
	struct idle idle = {0};
	uint64_t last = rte_rdtsc();
	bool alive = !s->nf_gone;
	uint16_t q;

	nfmeta_link_close(s->link);
	for (;;) {
		if (collect(s) > 0) {
			last = rte_rdtsc();
			idle_over(&idle);
			continue;
		}
		if (in_flight(s) == 0 || !alive || rte_rdtsc() - last > DRAIN_SECONDS * s->hz)
			break;
		idle_wait(&idle);
		if (rte_rdtsc() < s->next_peer)
			continue;
		s->next_peer = rte_rdtsc() + s->hz / 4;
		for (q = 0, alive = false; q < s->o->queues; q++)
			alive |= nfmeta_link_in_flight(s->link, q) > 0 &&
				 nfmeta_link_peer(s->link, q) == NFMETA_PEER_ALIVE;
	}
	s->c.lost = in_flight(s);
	if (s->c.lost > 0 && s->status == EXIT_OK) {
		complain("%ju packets did not come back from the NF", (uintmax_t)s->c.lost);
		s->status = EXIT_PEER;
	}
}

int
splitter_run(struct splitter *s)
{
	struct rte_mbuf *pkts[BURST];
	struct idle idle = {0};
	uint64_t now, heard;
	unsigned int n, back;

	now = heard = s->start = s->end = rte_rdtsc();
	if (wait_for_nfs(s) == 0) {
		now = heard = s->start = rte_rdtsc();
		s->progress = (struct progress){.start = now, .next = now + s->hz};
		while (s->ended == NULL) {
			n = input_burst(&s->in, pkts, BURST, in_flight(s));
			now = rte_rdtsc();
			if (n > 0)
				work(s, pkts, (uint16_t)n, now);
			back = collect(s);
			tick(s, now);
			if (n + back > 0) {
				heard = now;
				idle_over(&idle);
				continue;
			}
			if (s->in.left == 0 && in_flight(s) == 0)
				end_run(s, "the end of the input", EXIT_OK);
			if (s->in.capture && in_flight(s) == 0 && now - heard > 2 * s->hz) {
				complain("capture \"%s\" ended %ju packets early: did it change"
					 " meanwhile?",
					 s->o->in, (uintmax_t)s->in.left);
				end_run(s, "the input failed", EXIT_BAD);
			}
			idle_wait(&idle);
		}
		s->end = rte_rdtsc();
	}
	drain(s);
	return s->status;
}

static int
open_pool(struct splitter *s)
{
	uint32_t n = input_mbufs(s->o, &s->info);

	s->pool = rte_pktmbuf_pool_create("splitter_packets", n, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					  SOCKET_ID_ANY);
	if (s->pool != NULL)
		return 0;
	return complain("too little hugepage memory for %u packet buffers, about %ju MB%s", n,
			(uintmax_t)(mbufs_memory(n) >> 20) + 1,
			s->o->megabytes > 0 ? ": raise -m" : ": add hugepages, or take a smaller"
							      " --ring-size");
}

static int
open_link(struct splitter *s)
{
	struct nfmeta_field_opts fo = NFMETA_FIELD_OPTS(.placement = s->o->placement);
	struct nfmeta_link_opts lo =
		NFMETA_LINK_OPTS(.queues = s->o->queues, .ring_size = s->o->ring_size,
				 .when_full = s->o->when_full, .wait_us = 10, .field = &s->field);

	if (nfmeta_field_register(&fo, &s->field) != 0)
		return complain("%s", nfmeta_error());
	if (nfmeta_link_create(s->o->link, &lo, &s->link) != 0)
		return complain("%s", nfmeta_error());
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
		.argv = s->o->eal_argv,
	};

	if (p.one_process && p.megabytes == 0)
		p.megabytes = 64 + ((mbufs_memory(input_mbufs(s->o, &s->info)) +
				     2 * flows_memory(s->o->max_flows)) >>
				    20);
	return primary_start(&p);
}

/* Reading and writing the same file would leave nothing of it. */
static int
check_output(const struct splitter_opts *o)
{
	struct stat in, out;

	if (!o->in_capture || !o->out_capture || stat(o->in, &in) != 0 ||
	    stat(o->out, &out) != 0 || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return 0;
	return complain("--out \"%s\" would overwrite the capture that is read", o->out);
}

struct splitter *
splitter_open(const struct splitter_opts *o)
{
	struct splitter *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		complain("out of memory");
		return NULL;
	}
	s->o = o;
	s->in.fd = -1;
	if ((o->in_capture && capture_check(o->in, o->first, &s->info) != 0) || check_output(o) != 0 ||
	    json_open(&s->json, o->json) != 0) {
		free(s);
		return NULL;
	}
	if (open_eal(s) == 0) {
		s->hz = rte_get_tsc_hz();
		if (open_pool(s) == 0 && input_open(&s->in, o, &s->info, s->pool) == 0) {
			s->flows = flows_create(o->max_flows, o->timeout, o->flows);
			if (s->flows != NULL &&
			    output_open(&s->out, o, &s->in, s->info.nano, s->pool) == 0 &&
			    open_link(s) == 0)
				return s;
		}
	}
	splitter_close(s, EXIT_BAD);
	return NULL;
}

/* An NF that lives has to detach first. */
static int
destroy_link(struct splitter *s)
{
	uint64_t until = rte_rdtsc() + LEAVE_SECONDS * s->hz;
	int rc;

	if (s->link == NULL)
		return 0;
	while ((rc = nfmeta_link_destroy(s->link, &s->c.pool_lost)) == -EBUSY &&
	       rte_rdtsc() < until)
		rte_delay_us_sleep(1000);
	s->link = NULL;
	if (rc == 0)
		return 0;
	return complain("an NF does not leave the link \"%s\"; it will find this process gone",
			s->o->link);
}

int
splitter_close(struct splitter *s, int status)
{
	bool ran = s->progress.start != 0, hung;
	struct flow_counts flows = {0};

	hung = destroy_link(s) != 0;
	if (hung)
		status = EXIT_PEER;
	if (s->flows != NULL)
		flows = *flows_counts(s->flows);
	if ((flows_destroy(s->flows) != 0 || output_close(&s->out) != 0) && status == EXIT_OK)
		status = EXIT_BAD;
	input_close(&s->in);
	if (!hung)
		rte_mempool_free(s->pool);
	if (ran) {
		struct report r = {
			.o = s->o,
			.c = &s->c,
			.flows = &flows,
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
	primary_end();
	free(s);
	return status;
}
