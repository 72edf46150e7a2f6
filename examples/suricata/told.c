/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#define SWEEP_PARTS 10 /* calls of told_sweep() for one round through the table */

/* What is known to be open under this name, or NULL. */
static struct seen *
open_flow(struct worker *w, uint32_t id, uint16_t gen)
{
	struct seen *s = flows_seen(w, id);

	return s != NULL && (s->state & SEEN_OPEN) != 0 && s->gen == gen ? s : NULL;
}

/* A snapshot knows it. */
static void
there_is(struct worker *w, const struct nfmeta_flow_state *n)
{
	struct seen *s = flows_seen(w, n->flow_id);

	if (s == NULL || (s->state & SEEN_OPEN) == 0)
		return;
	if (s->gen != n->flow_gen)
		flows_end(w, s);
	else
		s->mark = w->mark;
}

static void
update(struct worker *w, const struct nfmeta_flow_state *n)
{
	struct seen *s = open_flow(w, n->flow_id, n->flow_gen);
	Flow *f = s != NULL && n->app_id != 0 ? flows_find(s) : NULL;

	if (f == NULL)
		return;
	flows_app(f, n->app_id);
	FLOWLOCK_UNLOCK(f);
}

static void
counters(struct worker *w, const struct nfmeta_flow_counters *n)
{
	struct seen *s = open_flow(w, n->flow_id, n->flow_gen);
	Flow *f = s != NULL ? flows_find(s) : NULL;

	if (f == NULL)
		return;
	bypass_counters(w, f, n, (s->state & SEEN_SWAPPED) != 0);
	FLOWLOCK_UNLOCK(f);
}

/* Ends its generation and older ones, never a newer one. */
static void
delete_flow(struct worker *w, const struct nfmeta_flow_delete *n)
{
	struct seen *s = flows_seen(w, n->flow_id);

	w->c.deletes_in++;
	if (s != NULL && (s->state & SEEN_OPEN) != 0 && !nfmeta_flow_newer(s->gen, n->flow_gen))
		w->c.deletes_matched += flows_end(w, s);
}

/* All, or those that the last snapshot did not know. */
static void
forget(struct worker *w, bool all)
{
	uint32_t page, i;
	struct seen *s;

	for (page = 0; page < w->pages_used; page++) {
		s = w->pages[page];
		for (i = 0; s != NULL && i < PAGE_IDS; i++)
			if ((s[i].state & SEEN_OPEN) != 0 && (all || s[i].mark != w->mark))
				flows_end(w, &s[i]);
	}
}

static void
message(struct worker *w, const struct nfmeta_flow_batch *b)
{
	bool snapshot = b->type == NFMETA_MSG_SNAPSHOT;
	uint16_t i;

	if (snapshot && (b->flags & NFMETA_MSG_FIRST) != 0) {
		w->mark++;
		w->loading = true;
	}
	for (i = 0; i < b->count; i++) {
		const void *e = nfmeta_flow_entry(b, i);

		if (b->type == NFMETA_MSG_DELETE)
			delete_flow(w, e);
		else if (b->type == NFMETA_MSG_COUNTERS)
			counters(w, e);
		else if (b->type == NFMETA_MSG_UPDATE)
			update(w, e);
		else if (snapshot)
			there_is(w, e);
	}
	if (b->type == NFMETA_MSG_RESET) {
		forget(w, true);
		w->c.resets++;
	}
	if (snapshot && (b->flags & NFMETA_MSG_LAST) != 0) {
		forget(w, false);
		w->loading = false;
		w->c.snapshots++;
	}
}

unsigned int
told_messages(struct worker *w)
{
	const struct nfmeta_flow_batch *b;
	unsigned int n = 0;
	int rc;

	while ((rc = nfmeta_flow_next(w->link, &b)) == 1 || rc == -NFMETA_EMESSAGE) {
		if (rc == 1)
			message(w, b);
		else /* it was taken off, and a snapshot makes all good */
			SCLogWarning("queue %u: %s", w->queue, nfmeta_error());
		n++;
	}
	w->c.messages += n;
	return n;
}

/*
 * With a table as carrier nobody tells: it is looked through.  It is ahead of the
 * packets, so a flow that is not there is ended one round, about a second, later.
 */
void
told_sweep(struct worker *w)
{
	uint32_t pages = (w->pages_used + SWEEP_PARTS - 1) / SWEEP_PARTS, i, id;
	struct nfmeta_table_flow copy;
	struct seen *s;

	if (w->table == NULL)
		return;
	for (; pages > 0; pages--) {
		w->sweep = w->sweep + 1 < w->pages_used ? w->sweep + 1 : 0;
		s = w->pages[w->sweep];
		for (i = 0; s != NULL && i < PAGE_IDS; i++) {
			id = w->sweep * PAGE_IDS + i;
			if ((s[i].state & SEEN_OPEN) == 0 ||
			    nfmeta_table_lookup(w->table, w->table_flows, id, s[i].gen, &copy) != 0)
				continue;
			if ((s[i].state & SEEN_LEAVING) == 0) {
				s[i].state |= SEEN_LEAVING;
				continue;
			}
			w->c.deletes_in++;
			w->c.deletes_matched += flows_end(w, &s[i]);
		}
	}
}

/* The link is closed and all packets are through: two rounds at once. */
void
told_close(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < 2 * SWEEP_PARTS; i++)
		told_sweep(w);
}
