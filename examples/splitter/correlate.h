/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_CORRELATE_H
#define EXAMPLES_SPLITTER_CORRELATE_H

/*
 * Data flows and the control sessions that announce them: FTP's data, SIP's RTP and RTCP
 * go to the NF that has their control session, as it alone knows what they are.
 *
 * A control session is known by its port.  What it announces (announced.h) is expected for
 * some time at an address and port; who else will be there is not known before.  A flow is
 * compared with what is expected at its first packet, and never again.
 */

#include <stdbool.h>
#include <stdint.h>

struct flow;
struct flow_table;
struct nfmeta_record;
struct rte_mbuf;

/* flow.control */
#define CONTROL_FTP 1
#define CONTROL_SIP 2

#define CONTROL_PORTS_MAX 16

struct correlate_opts {
	uint32_t max;	  /* expectations at a time; then the oldest goes */
	uint64_t seconds; /* that one waits for its flow */
	uint8_t n;
	struct {
		uint16_t port;
		uint8_t control; /* CONTROL_* */
	} ports[CONTROL_PORTS_MAX];
};

struct correlate_counts {
	uint64_t controls;   /* control sessions */
	uint64_t expected;   /* expectations made; the same again is none */
	uint64_t matched;    /* flows that were expected */
	uint64_t expired;    /* expectations whose time was over and that no flow had */
	uint64_t replaced;   /* ... that another control session took over */
	uint64_t pushed_out; /* expectations that went as there were too many */
	uint64_t waiting;    /* now */
};

struct correlate;

/* "ftp,sip", with ports "ftp:2121", or "none".  0, or -1 and the line said. */
int correlate_parse(const char *option, const char *text, struct correlate_opts *o);

/* hz: of the flows' TSC.  NULL on failure, the line said. */
struct correlate *correlate_open(const struct correlate_opts *o, struct flow_table *flows,
				 uint64_t hz);
/* A flow begins. True: it was expected, and has the queues of its control session. */
bool correlate_first(struct correlate *c, struct flow *f);
/* A packet of a control session; dir: 0 from end a of the key, 1 from end b. */
void correlate_look(struct correlate *c, const struct flow *f, const struct rte_mbuf *m,
		    const struct nfmeta_record *r, unsigned int dir);
/* The control session of a flow that was expected; it may have ended long ago. */
void correlate_master(const struct correlate *c, const struct flow *f, uint32_t *id,
		      uint16_t *generation);
const struct correlate_counts *correlate_counts(struct correlate *c, uint64_t now);
void correlate_close(struct correlate *c);

#endif
