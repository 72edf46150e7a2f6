/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_APPS_H
#define EXAMPLES_SPLITTER_APPS_H

/*
 * Which application a flow is of, and what the user's rules want done with it.
 *
 *   rules.c  the file of rules
 *   apps.c   a flow from its first packet to the rule that it falls under
 *   dpi.c    the one place that knows nDPI; dpi-none.c: built without it
 */

#include <stdbool.h>
#include <stdint.h>

#include "flows.h"

#define APPS_MAX 512 /* nDPI has fewer */

/* Of a rule's flow_decision: no NF says so. */
#define APPS_WHO UINT16_MAX

/* ---- rules.c ------------------------------------------------------------------ */

struct rule {
	uint8_t action; /* NFMETA_ACTION_*; NONE: there is no rule */
	uint32_t after; /* SHUNT: packets that the NF gets */
	unsigned int line;
};

struct rules {
	struct rule app[APPS_MAX];  /* by nDPI's number */
	struct rule udp, tcp, rest; /* without a rule of their own, or not known yet */
	unsigned int n;
	bool any_rest; /* there are such */
};

struct dpi;

/* Of the sections [filter] and [shunt].  0, or -1 and the line said. */
int rules_read(struct rules *r, const char *path, const struct dpi *dpi);
/* NULL: none. */
const struct rule *rules_find(const struct rules *r, uint32_t app_id, uint8_t proto);

/* ---- dpi.c, dpi-none.c ---------------------------------------------------------- */

/* For so many flows at a time.  NULL: failed, the line said. */
struct dpi *dpi_open(uint16_t flows);
void dpi_close(struct dpi *d);
const char *dpi_version(const struct dpi *d);
/* By number, NULL behind the last. */
const char *const *dpi_names(const struct dpi *d);

struct dpi_result {
	uint32_t app_id; /* as in the record; 0: not known */
	bool more;	 /* another packet may tell more */
};
void dpi_begin(struct dpi *d, uint16_t slot);
/* l3: the IP packet, whole. */
struct dpi_result dpi_look(struct dpi *d, uint16_t slot, const uint8_t *l3, uint16_t len,
			   uint64_t ms);
/* Gives back what it holds for the flow. */
void dpi_end(struct dpi *d, uint16_t slot);

/* ---- apps.c ---------------------------------------------------------------------- */

/* flow.app_state */
#define APP_NEW 0
#define APP_LOOKING 1
#define APP_DONE 2

struct app_count {
	uint64_t flows;		     /* that have ended */
	uint64_t packets, bytes;     /* of them */
	uint64_t inspected;	     /* of their packets: given to the NF */
	uint64_t shunted, discarded; /* not so: by a rule */
};

struct apps_counts {
	uint64_t known, unknown; /* flows, looked at to the end */
	uint64_t pushed_out;	 /* of the unknown: others needed the room */
	uint64_t packets;	 /* looked at */
	uint64_t reloads, reloads_failed;
};

struct apps_opts {
	const char *rules; /* NULL: none */
	uint16_t flows;	   /* looked at at a time */
	uint8_t packets;   /* with payload, of a flow: then it stays unknown */
};

struct apps {
	struct dpi *dpi;
	struct flow_table *flows; /* set it before the first packet */
	struct apps_opts o;
	struct rules rules;
	uint8_t edition; /* of the rules */
	uint16_t next;	 /* slot */
	struct flow **slots;
	struct apps_counts c;
	struct app_count by_app[APPS_MAX];
	uint8_t copy[65535]; /* of a packet in segments */
};

/* NULL: failed, the line said. */
struct apps *apps_open(const struct apps_opts *o);
/* The file of rules once more; what is wrong with it is said, and the old rules stay. */
void apps_reload(struct apps *a);
/* What there is to be said about this packet's flow; before flow.decision is looked at. */
void apps_look(struct apps *a, struct flow *f, const struct rte_mbuf *m,
	       const struct nfmeta_record *r, uint64_t ms);
/* The flow ends. */
void apps_forget(struct apps *a, struct flow *f);
void apps_close(struct apps *a);

/* Is there anything to be said about its next packet? */
static inline bool
apps_want(const struct apps *a, const struct flow *f)
{
	return f->app_state != APP_DONE || f->rules != a->edition;
}

static inline struct app_count *
apps_count(struct apps *a, const struct flow *f)
{
	uint32_t app = f->app_id & 0xffff;

	return &a->by_app[app < APPS_MAX ? app : 0];
}

#endif
