/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SNORT_H
#define EXAMPLES_SNORT_H

/*
 * A data acquisition (DAQ) module for Snort: packets come from a link and go back to it.
 *
 *   daq2.c     the module as libdaq 2 wants it (Snort 2.9)
 *   daq3.c     the module as libdaq 3 wants it (Snort 3)
 *   core.c     an instance: packets in, verdicts out; knows neither of the two
 *   vars.c     DAQ variables
 *   link.c     source and destination: the queue of a link
 *   ports.c    source and destination: DPDK ports of its own, no upfront NF
 *   flows.c    the flows that the engine saw, what the upfront NF tells of them
 *   stats.c    stats=FILE
 *   nfmeta_eof.cc   for Snort 3: a flow ends when the upfront NF says so
 *   nfmeta_near.cc  for Snort 3: a flow is in the cache before its packet comes
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#include <pcap/pcap.h>

#include <nfmeta/nfmeta.h>

#include "nfmeta_slot.h"

#define BURST 32
#define VERDICTS 64 /* that wait to be sent; a message takes more */
#define HELD 64	    /* packets that wait for their next try (RETRY) */
#define PACKET_MAX 65535

/* ---- vars.c ------------------------------------------------------------------- */

enum time_from {
	TIME_AUTO, /* the record's, if it is near the clock */
	TIME_RECORD,
	TIME_CLOCK
};
enum groups {
	GROUPS_NO,
	GROUPS_PORT,
	GROUPS_TENANT
};
enum tell {
	TELL_BOTH, /* begin and end of flows */
	TELL_END,
	TELL_NONE
};

struct opts {
	char input[1024]; /* name of the link, or "dpdk:DEVICE[::DEVICE]" */
	char file_prefix[64];
	char stats[256];
	char eal[256]; /* dpdk: more arguments of EAL */
	uint32_t queue, queues;
	uint32_t wait; /* seconds */
	uint32_t who;
	int time;	   /* enum time_from */
	int groups;	   /* enum groups */
	int flow_messages; /* enum tell */
	int tenant_is_space;
	int ignore_records;
	int keep_verdicts;
	/* of the engine's own configuration */
	bool is_inline;
	uint32_t snaplen;
	uint32_t timeout_ms; /* 0: none */
	uint32_t items;	     /* messages that the engine can have at a time */
	uint32_t instance;   /* 0, 1, ... */
};

struct var {
	const char *name, *help;
};
extern const struct var vars[];
extern const unsigned int vars_n;

void vars_defaults(struct opts *o);
/* 0, or -1 and a line in err; value NULL: none was given. */
int vars_set(struct opts *o, const char *name, const char *value, char *err, size_t size);
int vars_input(struct opts *o, const char *input, char *err, size_t size);

/* ---- core.c ------------------------------------------------------------------- */

/* In the order of both libdaqs' DAQ_Verdict. */
enum verdict {
	VERDICT_PASS,
	VERDICT_BLOCK,
	VERDICT_REPLACE,
	VERDICT_WHITELIST,
	VERDICT_BLACKLIST,
	VERDICT_IGNORE,
	VERDICT_RETRY,
	VERDICTS_N
};

enum status {
	ST_OK,
	ST_TIMEOUT,
	ST_INTERRUPTED,
	ST_STARVED, /* the engine has all items */
	ST_END,	    /* the link is closed, and all was received */
	ST_ERROR,   /* the primary died, or cut this NF off */
	ST_NOTHING  /* core_next: nothing now */
};

/* A flow that the engine saw, by the upfront NF's id: what every packet looks at ... */
struct mark {
	uint16_t gen;
	uint8_t state; /* FLOW_* */
	uint8_t said;  /* NFMETA_ACTION_* that went up */
	uint32_t seen; /* the last snapshot, or newer news, that knew it */
	uint32_t app_id;
	uint32_t reserved;
};

/* ... and what is told of it; untouched as long as nobody wants to know */
struct flow {
	uint64_t packets[2], bytes[2]; /* seen; [0] from its initiator */
	uint64_t began;		       /* us since 1970 */
	uint32_t app_id;
	uint32_t tenant;
	uint16_t gen;
	uint16_t vlan; /* id of the outermost tag in the bytes, 0: none */
	uint16_t port; /* it came in on */
	uint8_t proto;
	uint8_t reserved[9];
	/* touched at its begin and end */
	uint8_t addr[2][16]; /* initiator, responder; IPv4 as IPv4-mapped IPv6 */
	uint16_t l4_port[2]; /* ICMP: type, 0 */
	uint32_t reserved2;
	uint32_t passed_packets[2]; /* by this NF, as COUNTERS told */
	uint64_t passed_bytes[2];
};
_Static_assert(sizeof(struct flow) == 128, "two cache lines");

#define FLOW_OPEN 0x01	/* the engine saw it */
#define FLOW_FRESH 0x02 /* its first packet is about to be seen */

enum kind {
	KIND_PACKET,
	KIND_BEGAN,
	KIND_ENDED
};

/* What the engine gets and gives back. */
struct item {
	enum kind kind;
	uint16_t index; /* 0 to opts.items - 1 */
	bool first;	/* of its flow, for this engine */
	bool copied;	/* data is not the mbuf's */
	uint8_t why;	/* the engine's reason for its verdict */
	uint8_t tries;
	struct timeval ts;
	struct rte_mbuf *m;
	struct nfmeta_daq_near *near; /* of the flow; NULL: it is not known */
	struct item *next;	      /* the engine got it after this one */
	uint8_t *data;		      /* in one piece */
	uint32_t len;		      /* of data: snaplen at most */
	uint32_t whole;		      /* length of the packet */
	uint32_t app_id;
	uint32_t id; /* KIND_BEGAN, KIND_ENDED: of the flow */
	uint16_t reason;
	uint8_t *room;		/* for what is in pieces */
	struct nfmeta_record r; /* size 0: none */
	struct flow flow;	/* KIND_BEGAN, KIND_ENDED */
};

/* What an instance counts; stats.c has the names, in this order. */
struct counts {
	uint64_t packets, bytes;
	uint64_t records, no_record;
	uint64_t checksum_good, checksum_bad, checksum_unknown;
	uint64_t segmented, truncated;
	uint64_t filtered, no_room, unseen;    /* gone back unseen */
	uint64_t forwarded, dropped, not_sent; /* the last: of the forwarded, no port took it */
	uint64_t injected, not_injected;
	uint64_t verdict[VERDICTS_N];
	uint64_t retries, retry_dropped;
	uint64_t verdicts_sent, verdicts_refused;
	uint64_t shunted_packets, shunted_bytes; /* as COUNTERS told */
	uint64_t flows_began, flows_ended;	 /* told to the engine */
	uint64_t deletes_in, deletes_matched;
	uint64_t messages, snapshots, resets;
	uint64_t cpu_ns; /* of the thread that starts and stops, from the first packet */
};
#define COUNTS (sizeof(struct counts) / sizeof(uint64_t))

struct core;

/* Where packets come from and go to. */
struct source {
	int (*start)(struct core *c);
	void (*stop)(struct core *c);
	uint16_t (*receive)(struct core *c, struct rte_mbuf **pkts);
	/* Gives back c->back[]. */
	void (*flush)(struct core *c);
	/* For a packet of the engine's own; NULL: none now. */
	struct rte_mbuf *(*blank)(struct core *c);
	/* ST_OK, ST_END or ST_ERROR; seldom */
	int (*check)(struct core *c);
	/* since the start: what came this way, and of that what was lost before */
	void (*stats)(struct core *c, uint64_t *came, uint64_t *lost);
};
extern const struct source source_link, source_ports;

struct held {
	struct item *item;
	uint64_t due; /* us */
};

struct core {
	struct opts o;
	const struct source *source;
	char err[256];
	bool started, interrupted;
	bool gone; /* the primary: packets are not to be touched any more */
	bool closing;
	/* the burst at hand */
	struct rte_mbuf *pkts[BURST];
	struct nfmeta_record recs[BURST]; /* size 0: none */
	uint16_t at, n;
	bool dry; /* the last one gave nothing */
	struct timeval now;
	uint64_t now_us, checked; /* us */
	uint64_t cpu_before;
	uint64_t first_us, last_us; /* when packets came */
	/* going back */
	uint16_t backs;
	uint8_t how[BURST * 2];
	struct rte_mbuf *back[BURST * 2];
	/* items */
	struct item *items;
	struct item **free;
	uint32_t n_free;
	struct item *newest; /* that the engine got */
	uint32_t n_held;
	struct held held[HELD];
	struct bpf_program filter;
	struct counts c;
	uint64_t came, lost; /* before the last start; see struct source */
	/* link.c */
	struct nfmeta_link *link;
	struct nfmeta_field field;
	uint16_t queue;
	bool bypass; /* what was not looked at may go on */
	bool carrier;
	uint64_t came_before, lost_before; /* of other NFs at this queue */
	/* ports.c */
	uint16_t port[2];
	uint16_t ports, turn;
	struct rte_mempool *pool;
	/* flows.c */
	bool subscribed;
	struct page **pages;
	uint32_t pages_used;
	uint32_t snapshot; /* see struct mark */
	bool near;	   /* some plug-in has said where flows are */
	uint64_t sweep;	   /* next id to look at; NO_SWEEP: none */
	const struct nfmeta_flow_batch *batch;
	uint16_t entry;
	uint32_t verdicts;
	struct nfmeta_flow_verdict verdict[VERDICTS];
};

/* NULL: no memory. */
struct core *core_new(const struct opts *o);
void core_free(struct core *c);
/* 0, or -1 and a line in c->err. */
int core_start(struct core *c);
void core_stop(struct core *c);
int core_filter(struct core *c, const char *filter);
__attribute__((format(printf, 2, 3))) int core_fail(struct core *c, const char *fmt, ...);

/* The next item without waiting; or NULL and ST_NOTHING, ST_STARVED. */
struct item *core_next(struct core *c, int *status);
/* Waits for it; or NULL and why. Before it everything goes back that is due. */
struct item *core_get(struct core *c, int *status);
/* The item is the module's again. */
void core_finish(struct core *c, struct item *i, enum verdict v);
/* Packet of the engine's own, on the way of "like", or against it; like may be NULL.
   0, -EAGAIN: no blank now; -EINVAL: too long; the line is in c->err. */
int core_inject(struct core *c, const struct item *like, const uint8_t *data, uint32_t len,
		bool reverse);
/* Any thread, or a signal handler. */
void core_interrupt(struct core *c);
/* What came, and of that what was lost before it could be received. */
void core_came(struct core *c, uint64_t *came, uint64_t *lost);
static inline uint32_t
core_outstanding(const struct core *c)
{
	return c->o.items - c->n_free;
}

/* For the sources and flows.c. */
void core_give_back(struct core *c, struct rte_mbuf *m, uint8_t how);
/* NULL: none is free. */
struct item *core_item(struct core *c, enum kind kind);
void core_item_free(struct core *c, struct item *i);

/* ---- flows.c ------------------------------------------------------------------- */

#define NO_SWEEP UINT64_MAX

int flows_start(struct core *c);
void flows_stop(struct core *c);
/* What flows_before() of packets with these records will touch. */
void flows_prefetch(const struct core *c, const struct nfmeta_record *recs, uint16_t n);
/* Before a packet: what has to be told of its flow first, or NULL. There is a free item. */
struct item *flows_before(struct core *c, const struct rte_mbuf *m, const struct nfmeta_record *r);
/* A packet of a known flow is about to be seen. */
void flows_packet(struct core *c, struct item *i);
/* What the upfront NF tells, or NULL: nothing more now. There is a free item. */
struct item *flows_told(struct core *c);
/* The engine's decision about a flow goes up, once. */
void flows_say(struct core *c, const struct item *i, uint8_t action, uint8_t flags);
void flows_send(struct core *c);

/* Does a record name a flow? An id without a generation is no name. */
static inline bool
names_flow(const struct nfmeta_record *r)
{
	return r->size >= NFMETA_RECORD_CORE && (r->flags & NFMETA_FLOW_KNOWN) != 0;
}

/* ---- stats.c ---------------------------------------------------------------------- */

/* 0, or -1 and the line: a bad path shows before the work. */
int stats_check(struct core *c);
void stats_write(struct core *c);

#endif
