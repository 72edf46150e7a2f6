/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <rte_cycles.h>
#include <rte_timer.h>

#include "splitter.h"

#define DRAIN_SECONDS 5	   /* patience with an NF that gives nothing back */
#define FAREWELL_SECONDS 3 /* ... that does not say that it has done all */
#define WELCOME_MS 500	   /* ... that may subscribe or not: one that does, does so at once */

/* Packets wait in a queue that no NF serves. */
static bool
unserved(const struct splitter *s)
{
	const struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++)
			if (h->absent[q] != 0 && h->way[q].sent != h->way[q].back)
				return true;
	return false;
}

const char *
queue_name(const struct splitter *s, const struct hop *h, uint16_t q)
{
	static char text[64];

	if (s->nhops == 1)
		snprintf(text, sizeof(text), "queue %u", q);
	else
		snprintf(text, sizeof(text), "queue %u of link \"%s\"", q, h->o->name);
	return text;
}

void
end_run(struct splitter *s, const char *why, int status)
{
	if (s->ended != NULL)
		return;
	s->ended = why;
	s->status = status;
}

/* ---- what is due now and then ----------------------------------------------------- */

/* Its heartbeat has not moved for too long. */
static bool
stands_still(struct splitter *s, struct hop *h, uint16_t q)
{
	struct nfmeta_link_stats stats = {.sz = sizeof(stats)};
	uint64_t now = rte_rdtsc();

	if (s->o->fence == 0 || nfmeta_link_stats(h->link, q, &stats) != 0)
		return false;
	if (h->epoch[q] != stats.epoch) { /* one that still prepares itself is not meant */
		h->epoch[q] = stats.epoch;
		h->beat[q] = stats.heartbeat;
		h->still[q] = 0;
	} else if (stats.heartbeat != h->beat[q]) {
		h->beat[q] = stats.heartbeat;
		h->still[q] = now;
	}
	return h->still[q] != 0 && now - h->still[q] > s->o->fence * s->hz;
}

/* NFMETA_PEER_ALIVE or _NONE: one that died is buried, one that stands still cut off. */
static int
peer_of(struct splitter *s, struct hop *h, uint16_t q)
{
	int peer = nfmeta_link_peer(h->link, q);

	if (peer == NFMETA_PEER_ALIVE) {
		h->died[q] = false;
		if (!stands_still(s, h, q))
			return peer;
		h->still[q] = rte_rdtsc(); /* not again at once, if it cannot be */
		return cut_off(s, h, q) == 0 ? NFMETA_PEER_NONE : peer;
	}
	if (peer != NFMETA_PEER_DEAD)
		return peer;
	/* Not now, if the next NF is just looking whether the queue is free. */
	return bury(s, h, q) == 0 ? NFMETA_PEER_NONE : NFMETA_PEER_ALIVE;
}

static void
check_hop(struct splitter *s, struct hop *h, uint64_t now)
{
	struct nfmeta_link_stats stats = {.sz = sizeof(stats)};
	uint64_t patience = RTE_MAX(s->o->wait_nf, UINT64_C(1)) * s->hz;
	uint16_t q;

	for (q = 0; q < h->o->queues && !h->gone; q++) {
		if (peer_of(s, h, q) == NFMETA_PEER_ALIVE) {
			if (h->absent[q] != 0)
				note("an NF serves %s again", queue_name(s, h, q));
			h->absent[q] = 0;
			continue;
		}
		if (h->absent[q] == 0) {
			h->absent[q] = now;
			nfmeta_link_stats(h->link, q, &stats);
			if (!h->died[q])
				note(stats.epoch > 0 ? "the NF of %s left" : "no NF serves %s",
				     queue_name(s, h, q));
		}
		if (balance_spare(h->balance, q) && h->way[q].sent == h->way[q].back)
			continue; /* the others do it all */
		/* told not to wait for one, and nothing has to wait for it */
		if (s->o->wait_nf == 0 && h->o->when_full != NFMETA_FULL_WAIT && s->in.left > 0)
			continue;
		if (now - h->absent[q] < patience)
			continue;
		complain("no other NF came to %s within %ju s", queue_name(s, h, q),
			 (uintmax_t)(patience / s->hz));
		h->gone = true;
		s->status = EXIT_PEER;
		if (h->o->when_full != NFMETA_FULL_BYPASS)
			end_run(s, "the end of the NF", EXIT_PEER);
	}
}

static void
check_peers(struct splitter *s, uint64_t now)
{
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		check_hop(s, &s->hop[i], now);
}

static void
reload(struct splitter *s)
{
	if (s->apps != NULL)
		apps_reload(s->apps);
	if (s->first.policy != NULL)
		policy_reload(s->first.policy);
}

void
tick(struct splitter *s, uint64_t now)
{
	struct report r;
	uint8_t i;

	if (now < s->next_timer)
		return;
	s->next_timer = now + s->hz / 1000;
	rte_timer_manage();
	if (stop_asked())
		end_run(s, "a signal", EXIT_OK);
	if ((s->apps != NULL || s->first.policy != NULL) && reload_asked())
		reload(s);
	if (s->o->seconds > 0 && now - s->start > s->o->seconds * s->hz) {
		s->in.left = 0;
		s->time_over = true;
	}
	if (s->flows->hurry && now > s->hurry_until)
		s->flows->hurry = false;
	if (now >= s->next_peer) {
		s->next_peer = now + s->hz / 4;
		check_peers(s, now);
	}
	for (i = 0; i < s->nhops; i++)
		spread_look(s, &s->hop[i], now);
	if (!s->o->quiet && now >= s->progress.next) {
		r = (struct report){
			.o = s->o, .hop = s->hop, .c = &s->c, .flows = &s->flows->counts};
		progress_line(&s->progress, &r, now, (uint32_t)ways_in_flight(s));
	}
}

/* ---- start, run, end ------------------------------------------------------------------ */

/* Is there an NF; with "busy": one that has packets? */
static bool
served(struct splitter *s, bool busy)
{
	bool any = false;
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++) /* all: one that died is buried */
			if (!busy || h->way[q].sent != h->way[q].back)
				any |= peer_of(s, h, q) == NFMETA_PEER_ALIVE;
	return any;
}

/* The first queue that no NF serves; NULL: all are served. */
static struct hop *
find_unserved(struct splitter *s, uint16_t *q)
{
	struct hop *h;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (*q = 0; *q < h->o->queues; ++*q)
			if (nfmeta_link_peer(h->link, *q) != NFMETA_PEER_ALIVE)
				return h;
	return NULL;
}

static int
wait_for_nfs(struct splitter *s)
{
	uint64_t until = rte_rdtsc() + s->o->wait_nf * s->hz;
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops] && !s->o->quiet; h++)
		note("link \"%s\" is ready: %u queue%s, file prefix %s", h->o->name, h->o->queues,
		     h->o->queues > 1 ? "s" : "", s->o->file_prefix);
	if (s->o->wait_nf == 0)
		return 0;
	for (;;) {
		served(s, false); /* one that died meanwhile is buried: another may come */
		h = find_unserved(s, &q);
		if (h == NULL)
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
		 q, h->o->name, (uintmax_t)s->o->wait_nf, s->o->file_prefix, h->o->name, q);
	end_run(s, "no NF", EXIT_BAD);
	return -1;
}

static bool
feeds_ready(const struct splitter *s)
{
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		if (!feed_ready(s->hop[i].feed))
			return false;
	return true;
}

static bool
feeds_held_up(struct splitter *s, uint64_t now, uint64_t patience)
{
	bool held = false;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		held |= feed_held_up(s->hop[i].feed, now, patience);
	return held;
}

static bool
feeds_settle(struct splitter *s, uint64_t now, uint64_t patience)
{
	bool settled = true;
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		settled &= feed_settle(s->hop[i].feed, now, patience);
	return settled;
}

/* An NF may still give something back, or has to be told. */
static bool
any_left(const struct splitter *s)
{
	uint8_t i;

	for (i = 0; i < s->nhops; i++)
		if (!s->hop[i].gone)
			return true;
	return false;
}

/* NFs that subscribe learn of every flow from its start. */
static void
welcome(struct splitter *s)
{
	uint64_t now = rte_rdtsc(), until = now + s->hz / 1000 * WELCOME_MS;

	while (s->o->wait_nf > 0 && !feeds_ready(s) && now < until && !stop_asked()) {
		if (collect(s) + feeds_round(s, now) == 0)
			rte_delay_us_sleep(100);
		now = rte_rdtsc();
	}
}

/*
 * Several links: what is at one of them has to get to the next, before the flows end that
 * it is of, and before a link closes.
 */
static void
let_through(struct splitter *s)
{
	struct idle idle = {.sleep_us = IDLE_US};
	uint64_t now = rte_rdtsc(), last = now;
	bool alive = true;

	while (s->nhops > 1 && alive && ways_alive(s) > 0 && now - last < DRAIN_SECONDS * s->hz) {
		if (collect(s) + feeds_round(s, now) > 0) {
			last = now;
			idle_over(&idle);
		} else {
			idle_wait(&idle);
		}
		now = rte_rdtsc();
		if (now >= s->next_peer) {
			s->next_peer = now + s->hz / 4;
			alive = served(s, true) || s->waiting > 0;
		}
	}
}

/*
 * All flows end, not faster than the NFs can be told; these say when they have
 * done all there was.  One that does not move is not waited for, and holds up no other.
 */
static void
farewell(struct splitter *s)
{
	uint64_t now = rte_rdtsc(), patience = FAREWELL_SECONDS * s->hz;
	bool more = true, alive = any_left(s);
	struct idle idle = {.sleep_us = IDLE_US};

	while (alive) {
		if (more && !feeds_held_up(s, now, patience)) {
			more = flows_stop(s->flows, 1024);
			feeds_flush(s);
		}
		if (collect(s) + feeds_round(s, now) > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
		if (!more && feeds_settle(s, now, patience))
			break;
		now = rte_rdtsc();
		if (now >= s->next_peer) {
			s->next_peer = now + s->hz / 4;
			alive = served(s, false);
		}
	}
	flows_stop(s->flows, UINT32_MAX);
	feeds_flush(s);
}

/* Packets in queues that nobody came to: they are freed with the link. */
static uint64_t
unserved_packets(struct splitter *s)
{
	uint64_t n = 0;
	struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++)
			if (h->way[q].sent != h->way[q].back &&
			    peer_of(s, h, q) == NFMETA_PEER_NONE)
				n += h->way[q].sent - h->way[q].back;
	return n;
}

static bool
any_died(const struct splitter *s)
{
	const struct hop *h;
	uint16_t q;

	for (h = s->hop; h < &s->hop[s->nhops]; h++)
		for (q = 0; q < h->o->queues; q++)
			if (h->died[q])
				return true;
	return false;
}

/* Nothing new goes out; what is at the NFs comes back, if they still live. */
static void
drain(struct splitter *s)
{
	struct idle idle = {.sleep_us = IDLE_US};
	uint64_t last = rte_rdtsc();
	bool alive = any_left(s);
	uint8_t i;
	uint64_t waited;

	s->closing = true;
	for (i = 0; i < s->nhops; i++)
		nfmeta_link_close(s->hop[i].link);
	for (;;) {
		feeds_round(s, last);
		if (collect(s) > 0) {
			last = rte_rdtsc();
			idle_over(&idle);
			continue;
		}
		if (ways_in_flight(s) == 0 || !alive || rte_rdtsc() - last > DRAIN_SECONDS * s->hz)
			break;
		idle_wait(&idle);
		if (rte_rdtsc() < s->next_peer)
			continue;
		s->next_peer = rte_rdtsc() + s->hz / 4;
		alive = served(s, true);
	}
	ways_release(s);
	if (any_died(s) && s->status == EXIT_OK)
		s->status = EXIT_PEER;
	waited = unserved_packets(s);
	s->c.drop_unserved += waited;
	s->c.lost = ways_in_flight(s) - waited;
	if (waited > 0 && s->status == EXIT_OK) {
		complain("%ju packets waited for an NF, and none came", (uintmax_t)waited);
		s->status = EXIT_PEER;
	}
	if (s->c.lost > 0 && s->status == EXIT_OK) {
		complain("%ju packets did not come back from the NF", (uintmax_t)s->c.lost);
		s->status = EXIT_PEER;
	}
}

int
splitter_run(struct splitter *s)
{
	struct rte_mbuf *pkts[BURST];
	struct idle idle = {.sleep_us = IDLE_US};
	uint64_t now, heard;
	unsigned int n, back;

	now = heard = s->start = s->end = rte_rdtsc();
	if (wait_for_nfs(s) == 0) {
		welcome(s);
		now = heard = s->start = rte_rdtsc();
		s->progress = (struct progress){.start = now, .next = now + s->hz};
		while (s->ended == NULL) {
			/* what waits between links makes the input wait, too */
			n = s->waiting > 0 ? 0
					   : input_burst(&s->in, pkts, BURST, ways_in_flight(s));
			now = rte_rdtsc();
			if (n > 0)
				work(s, pkts, (uint16_t)n, now);
			back = collect(s) + feeds_round(s, now);
			tick(s, now);
			if (n + back > 0) {
				heard = now;
				idle_over(&idle);
				continue;
			}
			if (s->in.left == 0 &&
			    (ways_alive(s) == 0 ||
			     (unserved(s) && now - heard > DRAIN_SECONDS * s->hz)))
				end_run(s, s->time_over ? "--seconds" : "the end of the input",
					EXIT_OK);
			if (s->in.capture && ways_in_flight(s) == 0 && now - heard > 2 * s->hz) {
				complain("capture \"%s\" ended %ju packets early: did it change"
					 " meanwhile?",
					 s->o->in, (uintmax_t)s->in.left);
				end_run(s, "a failure of the input", EXIT_BAD);
			}
			idle_wait(&idle);
		}
		s->end = rte_rdtsc();
		let_through(s);
		farewell(s);
	}
	drain(s);
	return s->status;
}
