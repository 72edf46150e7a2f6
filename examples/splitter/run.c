/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <time.h>

#include <rte_cycles.h>
#include <rte_hash_crc.h>
#include <rte_timer.h>

#include "splitter.h"

#define DRAIN_SECONDS 5 /* patience with an NF that gives nothing back */

static uint64_t
in_flight(const struct splitter *s)
{
	uint64_t n = 0;
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		n += nfmeta_link_in_flight(s->link, q);
	return n;
}

/* Packets wait in a queue that no NF serves. */
static bool
unserved(const struct splitter *s)
{
	uint16_t q;

	for (q = 0; q < s->o->queues; q++)
		if (s->absent[q] != 0 && nfmeta_link_in_flight(s->link, q) > 0)
			return true;
	return false;
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
		end_run(s, "a failure of the output", EXIT_BAD);
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
	struct nfmeta_link_stats stats = {.sz = sizeof(stats)};
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
				nfmeta_link_stats(s->link, q, &stats);
				note(stats.epoch > 0 ? "the NF of queue %u left"
						     : "no NF serves queue %u",
				     q);
			}
			/* told not to wait for one, and nothing has to wait for it */
			if (s->o->wait_nf == 0 && s->o->when_full != NFMETA_FULL_WAIT &&
			    s->in.left > 0)
				continue;
			if (now - s->absent[q] < patience)
				continue;
			complain("no other NF came to queue %u within %ju s", q,
				 (uintmax_t)(patience / s->hz));
		}
		s->nf_gone = true;
		s->status = EXIT_PEER;
		if (s->o->when_full != NFMETA_FULL_BYPASS)
			end_run(s, "the end of the NF", EXIT_PEER);
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
	end_run(s, "no NF", EXIT_BAD);
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
			if (s->in.left == 0 &&
			    (in_flight(s) == 0 || s->nf_gone ||
			     (unserved(s) && now - heard > DRAIN_SECONDS * s->hz)))
				end_run(s, "the end of the input", EXIT_OK);
			if (s->in.capture && in_flight(s) == 0 && now - heard > 2 * s->hz) {
				complain("capture \"%s\" ended %ju packets early: did it change"
					 " meanwhile?",
					 s->o->in, (uintmax_t)s->in.left);
				end_run(s, "a failure of the input", EXIT_BAD);
			}
			idle_wait(&idle);
		}
		s->end = rte_rdtsc();
	}
	drain(s);
	return s->status;
}
