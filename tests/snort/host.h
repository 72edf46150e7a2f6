/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef TESTS_SNORT_HOST_H
#define TESTS_SNORT_HOST_H

/*
 * A host of DAQ modules for the tests, in place of Snort: does with packets what it is
 * told, and says what it saw.  host.c knows no libdaq, host2.c and host3.c nothing else.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#define VARS_MAX 24
#define CYCLE_MAX 16

/* In the order of both libdaqs. */
enum {
	PASS,
	BLOCK,
	REPLACE,
	WHITELIST,
	BLACKLIST,
	IGNORE,
	RETRY,
	VERDICTS
};

struct options {
	const char *dirs[4], *input, *filter, *out, *json;
	char *vars[VARS_MAX];
	int nvars, ndirs;
	bool is_inline, read_file, show_vars, reverse_finalize, twice, wait_signal;
	uint64_t snaplen, timeout_ms, pool, count, instances, batch;
	uint64_t break_after, restart_after, reload_after;
	uint64_t inject_every, hold_us;
	bool inject_back, inject_big;
	int cycle[CYCLE_MAX], ncycle;
	uint16_t rule_port;
	int rule_verdict;
};
extern struct options o;

/* What a module says of one packet; what it does not know is 0. */
struct seen {
	uint8_t *data;
	uint32_t caplen, pktlen;
	struct timeval ts;
	uint32_t flow_id, opaque, tenant, space;
	int32_t ingress, group;
	uint16_t gen; /* of the record */
	bool has_flow, has_opaque, is_new, reverse, tcp_good, record;
	bool l3_good, l4_good, csum_error, decode;
	bool may_be_new; /* the first one of a flow that is to say so */
	uint16_t l3_off, l4_off;
	bool significant;
};

struct ended {
	bool is_end;
	bool named; /* id and generation are known */
	uint32_t flow_id;
	uint16_t gen, reason;
	uint64_t packets, bytes;
	uint16_t port[2]; /* host order */
	uint8_t proto;
	uint8_t addr[2][16];
};

struct totals {
	uint64_t hw_received, hw_dropped, received, filtered, injected, outstanding;
	uint64_t verdict[VERDICTS];
};

/* What became of a call that gets packets. */
enum got {
	GOT_OK,
	GOT_TIMEOUT,
	GOT_INTERRUPTED,
	GOT_END,
	GOT_ERROR,
	GOT_NOBUF
};
extern const char *const got_names[];

extern volatile sig_atomic_t told_to_stop;
/* Set by host_packet: the module's break is wanted, a packet is to be injected. */
extern bool want_break;
extern const uint8_t *want_inject;
extern uint32_t want_inject_len;

/* Returns the verdict. Thread-safe if it is called with the lock held. */
int host_packet(const struct seen *s);
void host_flow(const struct ended *e);
void host_injected(bool good);
__attribute__((noreturn)) void host_fail(const char *text);
void host_line(const char *text); /* something that a test looks for */

/* ---- host2.c, host3.c ---------------------------------------------------------- */

void daq_open(void);
void daq_begin(void);
/* At most max packets; counts what came. */
enum got daq_get(uint64_t max);
void daq_interrupt_now(void); /* in a signal handler */
void daq_reload(void);
void daq_end(void);
void daq_totals(struct totals *t);
void daq_close(void);
const char *daq_error(void);
/* A second instance in this process, on the same queue; a line says what became of it. */
void daq_twice(void);

#endif
