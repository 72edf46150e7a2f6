/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfmeta-daq.h"

#define SLICE_MS 100 /* an interrupt is heard that often while waiting for the link */

/* ---- EAL: once per process, for all instances ---------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char prefix[64]; /* "": not attached */

static void
detach(void)
{
	if (prefix[0] != '\0')
		nfmeta_eal_detach();
	prefix[0] = '\0';
}

static bool
interrupted(struct core *c)
{
	return __atomic_exchange_n(&c->interrupted, false, __ATOMIC_SEQ_CST);
}

/* The waiting is the caller's: an attached EAL stays until the process ends. */
static int
attach_eal(struct core *c)
{
	struct nfmeta_eal_opts eal =
		NFMETA_EAL_OPTS(.file_prefix = c->o.file_prefix, .timeout_ms = SLICE_MS);
	int rc;

	if (strcmp(prefix, c->o.file_prefix) == 0)
		return 0;
	if (prefix[0] != '\0') {
		core_fail(c,
			  "this process is at the upfront NF with file prefix \"%s\" already:"
			  " another one (\"%s\") wants a process of its own",
			  prefix, c->o.file_prefix);
		return -EALREADY;
	}
	rc = nfmeta_eal_attach(&eal);
	if (rc == 0) {
		strcpy(prefix, c->o.file_prefix);
		atexit(detach);
	} else if (rc == -EALREADY) {
		core_fail(c,
			  "something else in this process (another copy of this module?) has"
			  " DPDK already: %s",
			  nfmeta_error());
	} else {
		core_fail(c, "%s", nfmeta_error());
	}
	return rc;
}

static int
eal_secondary(struct core *c)
{
	uint64_t tries = (uint64_t)c->o.wait * 1000 / SLICE_MS + 1;
	int rc;

	do {
		pthread_mutex_lock(&lock);
		rc = attach_eal(c);
		pthread_mutex_unlock(&lock);
		if (rc == 0)
			return 0;
		if (interrupted(c))
			return core_fail(c, "asked to end while waiting for the upfront NF");
	} while ((rc == -NFMETA_ENOPRIMARY || rc == -NFMETA_EPRIMARYDEAD) && --tries > 0);
	return -1;
}

/* ---- start and stop ----------------------------------------------------------------- */

static int
attach_link(struct core *c)
{
	uint64_t tries = (uint64_t)c->o.wait * 1000 / SLICE_MS + 1;
	int rc;

	do { /* a queue whose NF died is taken back by the primary within a second */
		rc = nfmeta_link_attach(c->o.input, c->queue, SLICE_MS, &c->link);
		if (rc == 0)
			return 0;
		if (interrupted(c))
			return core_fail(c, "asked to end while waiting for the link \"%s\"",
					 c->o.input);
	} while ((rc == -NFMETA_ENOLINK || rc == -NFMETA_EDEADNF) && --tries > 0);
	if (rc == -NFMETA_ENOLINK)
		return core_fail(c,
				 "no link \"%s\" within %u s (wait): is it made, and is the name"
				 " right?",
				 c->o.input, c->o.wait);
	return core_fail(c, "%s", nfmeta_error());
}

static int
start(struct core *c)
{
	struct nfmeta_link_stats stats = {.sz = sizeof(stats)};
	const struct nfmeta_shared_link *s;

	c->queue = (uint16_t)(c->o.queue + c->o.instance);
	if (eal_secondary(c) != 0 || attach_link(c) != 0)
		return -1;
	s = nfmeta_link_shared(c->link);
	c->field = *nfmeta_link_field(c->link);
	c->bypass = s->when_full == NFMETA_FULL_BYPASS;
	nfmeta_link_stats(c->link, c->queue, &stats);
	c->came_before = stats.received;
	c->lost_before = stats.refused;
	return 0;
}

static void
stop(struct core *c)
{
	/* Only what the engine still has can keep it attached; the primary reclaims that. */
	if (nfmeta_link_detach(c->link) == 0)
		c->link = NULL;
}

/* ---- packets -------------------------------------------------------------------------- */

static uint16_t
receive(struct core *c, struct rte_mbuf **pkts)
{
	return nfmeta_recv_burst(c->link, pkts, NULL, BURST);
}

static void
flush(struct core *c)
{
	nfmeta_return_burst(c->link, c->back, c->how, c->backs);
}

static struct rte_mbuf *
blank(struct core *c)
{
	struct rte_mbuf *m;

	return nfmeta_blank_burst(c->link, &m, 1) == 1 ? m : NULL;
}

static int
check(struct core *c)
{
	int rc = nfmeta_link_check(c->link);

	if (rc == 0)
		return ST_OK;
	if (rc == -NFMETA_ECLOSING)
		return ST_END;
	core_fail(c, "%s", nfmeta_error());
	return ST_ERROR;
}

/* What a full link turned away was tried again, unless its policy is to drop. */
static void
stats(struct core *c, uint64_t *came, uint64_t *lost)
{
	struct nfmeta_link_stats s = {.sz = sizeof(s)};

	nfmeta_link_stats(c->link, c->queue, &s);
	*lost = 0;
	if (nfmeta_link_shared(c->link)->when_full == NFMETA_FULL_DROP)
		*lost = s.refused - c->lost_before;
	*came = s.received - c->came_before + *lost;
}

const struct source source_link = {
	.start = start,
	.stop = stop,
	.receive = receive,
	.flush = flush,
	.blank = blank,
	.check = check,
	.stats = stats,
};
