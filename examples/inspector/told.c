/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "inspector.h"

/* Is this about a flow that is known to have ended, or to have been replaced? */
static bool
is_old(const struct tracker *t, const struct seen *f, const struct nfmeta_flow_state *s)
{
	/* What was known before the last snapshot began does not count against it, nor against later. */
	if (f->state == SEEN_NEVER || f->mark != t->mark)
		return false;
	return nfmeta_flow_newer(f->generation, s->flow_gen) ||
	       (f->state == SEEN_ENDED && f->generation == s->flow_gen);
}

static void
told_app(struct tracker *t, struct seen *f, uint32_t app_id)
{
	t->c.apps += f->app_id == 0 && app_id != 0;
	f->app_id = app_id;
}

/* A flow that there is. */
static void
told_flow(struct tracker *t, const struct nfmeta_flow_state *s)
{
	struct seen *f = track_seen(t, s->flow_id);

	if (f == NULL)
		return;
	if (f->state == SEEN_OPEN && (f->flags & SEEN_GENERATION) == 0) {
		f->generation = s->flow_gen; /* packets without one opened it */
		f->flags |= SEEN_GENERATION;
	}
	if (is_old(t, f, s))
		return;
	if (f->state == SEEN_OPEN && f->generation != s->flow_gen)
		track_replace(t, f);
	if (f->state != SEEN_OPEN)
		track_open(t, f, s->flow_gen, true);
	f->mark = t->mark;
	f->action = s->action;
	told_app(t, f, s->app_id);
}

static void
update_flow(struct tracker *t, const struct nfmeta_flow_state *s)
{
	struct seen *f = track_seen(t, s->flow_id);

	if (f == NULL || f->state != SEEN_OPEN || f->generation != s->flow_gen)
		return;
	f->action = s->action;
	told_app(t, f, s->app_id);
	t->c.verdicts_seen += s->action == NFMETA_ACTION_SHUNT || s->action == NFMETA_ACTION_DROP;
}

static void
delete_flow(struct tracker *t, const struct nfmeta_flow_delete *d)
{
	static const char *const why[] = {"not_said", "timeout", "closed", "reset",
					  "evicted",  "reused",	 "stopped"};
	struct seen *f = track_seen(t, d->flow_id);
	bool is_open;

	if (f == NULL)
		return;
	is_open = f->state == SEEN_OPEN;
	if (is_open && (f->flags & SEEN_GENERATION) == 0)
		f->generation = d->flow_gen;
	if (is_open && f->generation == d->flow_gen) {
		f->mark = t->mark;
		track_close(t, f, why[d->reason < RTE_DIM(why) ? d->reason : 0]);
		t->c.deleted++;
		return;
	}
	t->c.deletes_unknown++;
	if (f->state != SEEN_NEVER && !nfmeta_flow_newer(d->flow_gen, f->generation))
		return; /* about one before: changes nothing */
	if (is_open)
		track_replace(t, f);
	f->state = SEEN_ENDED;
	f->generation = d->flow_gen;
	f->mark = t->mark;
}

static void
count_passed(struct tracker *t, const struct nfmeta_flow_counters *c)
{
	struct seen *f = track_seen(t, c->flow_id);
	struct passed *p;

	if (f == NULL || f->state != SEEN_OPEN || f->generation != c->flow_gen)
		return;
	p = track_passed(t, c->flow_id);
	if (p == NULL)
		return;
	p->packets = c->packets[0] + c->packets[1]; /* so far, not since the last time */
	p->bytes = c->bytes[0] + c->bytes[1];
}

static void
message(struct tracker *t, const struct nfmeta_flow_batch *b)
{
	uint16_t i;

	if (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_FIRST) != 0)
		t->mark++;
	for (i = 0; i < b->count; i++) {
		const void *e = nfmeta_flow_entry(b, i);

		switch (b->type) {
		case NFMETA_MSG_NEW:
		case NFMETA_MSG_SNAPSHOT:
			told_flow(t, e);
			break;
		case NFMETA_MSG_UPDATE:
			update_flow(t, e);
			break;
		case NFMETA_MSG_DELETE:
			delete_flow(t, e);
			break;
		case NFMETA_MSG_COUNTERS:
			count_passed(t, e);
			break;
		}
	}
	if (b->type == NFMETA_MSG_RESET)
		t->c.reset += track_forget(t, true, "reset_all");
	if (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_LAST) != 0) {
		t->c.swept += track_forget(t, false, "snapshot");
		t->c.snapshots++;
	}
}

unsigned int
track_messages(struct tracker *t)
{
	const struct nfmeta_flow_batch *b;
	unsigned int n = 0;
	int rc;

	if (!t->c.subscribed)
		return 0;
	while ((rc = nfmeta_flow_next(t->link, &b)) != 0) {
		if (rc == 1)
			message(t, b);
		else /* a snapshot is asked for; that makes all good */
			t->c.refused++;
		n++;
	}
	if (n > 0) {
		t->c.messages += n;
		track_sync(t);
	}
	return n;
}
