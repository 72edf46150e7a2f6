/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_H
#define EXAMPLES_SPLITTER_H

/*
 * The splitter is the upfront NF: it classifies every packet once, owns the
 * flow table, stamps a record on every packet, hands them to the NFs of its links
 * and forwards what comes back.
 *
 *   options.c  command line            input.c   where packets come from
 *   capture.c  captures, both ways     output.c  where packets go
 *   flows.c    packets into flows      expire.c  the flow table, ends of flows
 *   first.c    a flow's first packet:  chain.c   from a link to the next one
 *              its links and queues    path.c    packets to the NF, back, and
 *   feed.c     messages to and from              by it
 *              the NFs                 run.c     the loop between
 *   life.c     start and end           apps.h    applications and rules
 *   policy.h   which flows, which NFs
 *   balance.c  queues of new sessions  spread.c  what they have to do
 *   report.c   figures                 lookup.c  from keys to flows
 *   config.c   options in a file
 *   correlate.c  data flows and their control sessions; announced.c: what these say
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#include "../common/common.h"
#include "apps.h"
#include "balance.h"
#include "correlate.h"
#include "flows.h"
#include "policy.h"

#define BURST 32

/* ---- options.c -------------------------------------------------------------- */

/* Sessions over the queues of a link. */
struct spread_opts {
	uint8_t balance; /* BALANCE_* */
	bool own;	 /* of this link; else as all have it */
	bool weighted;	 /* weights were given: */
	uint16_t weight[NFMETA_QUEUES_MAX];
	uint16_t weights;     /* in --weights; 0: none */
	uint16_t weight_last; /* the last queue of --weight */
	uint64_t move;	      /* seconds; UINT64_MAX: live sessions stay */
};

struct link_opts {
	const char *name;
	char room[128]; /* for the name, if it is a part of an option's value */
	uint16_t queues;
	uint32_t ring_size;
	uint8_t when_full; /* NFMETA_FULL_*; 0: as the input is */
	struct spread_opts spread;
};

struct splitter_opts {
	const char *in;	 /* capture file or port, without "pcap:" */
	const char *out; /* likewise */
	bool in_capture;
	bool out_capture;
	bool out_none;
	struct link_opts link[LINKS_MAX];
	uint8_t links;
	struct link_opts all; /* what a link has that has nothing of its own */
	bool links_over;      /* the next link takes the place of those there are */
	const char *file_prefix;
	const char *json;
	const char *flows;	 /* CSV of flows */
	const char *rules;	 /* by application; NULL: none */
	const char *policy_file; /* by addresses and ports; NULL: none */
	bool apps;		 /* applications are looked for */
	uint16_t app_flows;
	uint8_t app_packets;
	uint32_t max_flows;
	uint32_t blanks;   /* per queue: for packets and in-band messages of NFs */
	uint8_t placement; /* NFMETA_PLACE_* */
	uint8_t carrier;   /* NFMETA_CARRIER_*; 0: no flow state */
	bool flow_table;   /* shared with the NFs */
	bool replay;	   /* read the capture into memory, then replay it */
	uint64_t loops;	   /* 0: without end */
	uint64_t count;	   /* packets; 0: no limit */
	uint64_t first;	   /* of the capture: so many packets are used */
	uint64_t seconds;  /* 0: no limit */
	/* of a flow, seconds: idle, UDP, TCP after its end */
	uint64_t timeout, timeout_udp, timeout_closed;
	uint64_t wait_nf;		 /* seconds */
	uint64_t fence;			 /* seconds that an NF may stand still; 0: any time */
	struct correlate_opts correlate; /* n 0: none */
	uint64_t megabytes;
	uint32_t policy; /* NFMETA_CLASSIFY_* */
	uint64_t rate;	 /* captures: packets a second; 0: as fast as it goes */
	bool quiet;
	bool verbose;
	bool one_process;   /* NFs are threads of this process; no hugepages */
	const char *config; /* the file that options came from */
	bool check;	    /* of that file only */
	unsigned int settings;
	int eal_argc;
	char *eal_argv[64];
	/* adds to the JSON report, if set */
	void (*json_more)(struct json *j, const void *arg);
	const void *json_arg;
};

void splitter_defaults(struct splitter_opts *o);
/* 0: run; 1: help was asked for and printed; -1: bad, the line is said. */
int splitter_options(int argc, char **argv, struct splitter_opts *o);

/* ---- config.c --------------------------------------------------------------- */

struct option;

/*
 * The section [splitter]: each line is given to set(), as an option of that name would be.
 * Other sections are rules.  0, or -1 and the line said.
 */
int config_read(const char *path, const struct option *options,
		int (*set)(int option, const char *value, struct splitter_opts *o),
		struct splitter_opts *o);
/* Says what a checked file has, its rules included; 1, or -1 and the line said. */
int config_check(const struct splitter_opts *o);

/* ---- capture.c --------------------------------------------------------------- */

/* What a look through the capture, or its first packets, says. */
struct capture_info {
	uint64_t packets;
	uint64_t bytes;
	uint64_t segments;     /* mbufs that hold all of them */
	uint32_t max_segments; /* mbufs of the largest packet */
	bool nano;	       /* time stamps finer than 1 us */
};

/* 0, or -1 and the line said: missing, empty, cut off, not Ethernet ... */
int capture_check(const char *path, uint64_t first, struct capture_info *info);

/* net_pcap gives time stamps in us; this reads them in ns beside it. */
struct capture_clock;
struct capture_clock *capture_clock_open(const char *path);
uint64_t capture_clock_next(struct capture_clock *c); /* ns; 0 at the end */
void capture_clock_close(struct capture_clock *c);

struct capture_writer;
struct capture_writer *capture_writer_open(const char *path, bool nano);
/* 0, or -1 and the line said (disk full). */
int capture_write(struct capture_writer *w, const struct rte_mbuf *m, uint64_t ns);
int capture_writer_close(struct capture_writer *w);

/* ---- feed.c ------------------------------------------------------------------ */

extern const char *const carrier_names[]; /* by NFMETA_CARRIER_* */

struct feed_counts {
	uint64_t messages;	      /* down, given up ones too */
	uint64_t given_up;	      /* of them */
	uint64_t deletes;	      /* flows told to have ended */
	uint64_t delete_messages;     /* in so many messages */
	uint64_t verdicts;	      /* that came */
	uint64_t verdicts_applied;    /* of them */
	uint64_t verdicts_late;	      /* of them: the flow had ended */
	uint64_t verdicts_kept;	      /* of them: a sticky one stays */
	uint64_t resyncs;	      /* asked for */
	uint64_t resyncs_answered;    /* with a whole snapshot */
	uint64_t refused;	      /* what was no message */
	uint64_t stale;		      /* of an NF before */
	uint64_t unheard;	      /* queues whose NF did not say at the end that all is done */
	struct nfmeta_flow_load load; /* the last of each queue, added up */
};

/* What the NF of a queue said of itself last. */
struct feed_said {
	struct nfmeta_flow_load load;
	uint32_t loads; /* so many of them came */
	uint32_t epoch; /* of that NF */
	bool drains;	/* it wants no new sessions: drain.h */
};

/*
 * One for each link.  What is to be told gathers here and goes out with feed_flush(): before the
 * packets of a burst, after a round of the timer, after the NFs' messages.  All
 * messages of a flow go to the queue of its packets.
 */
struct feed *feed_create(uint8_t number, uint16_t queues, uint8_t carrier);
/* Where to; without a link what is told goes nowhere. */
void feed_start(struct feed *f, struct nfmeta_link *link, struct flow_table *flows);
void feed_new(struct feed *f, const struct flow *flow);
void feed_update(struct feed *f, const struct flow *flow);
void feed_end(struct feed *f, struct flow *flow, uint16_t reason);
void feed_flush(struct feed *f);
/* Takes the NFs' messages, goes on with snapshots; returns how many messages came. */
unsigned int feed_round(struct feed *f, uint64_t now);
/* Every NF that is there has been told what there is. */
bool feed_ready(const struct feed *f);
/* Messages of a queue wait for room. */
bool feed_behind(const struct feed *f, uint16_t q);
/* Messages wait for an NF that has moved within patience (TSC). */
bool feed_held_up(struct feed *f, uint64_t now, uint64_t patience);
/* Asks the NFs whether all is done; true: it is, or those left have not moved for so long. */
bool feed_settle(struct feed *f, uint64_t now, uint64_t patience);
struct feed_said *feed_said(struct feed *f, uint16_t q);
const struct feed_counts *feed_counts(struct feed *f);
void feed_counts_add(struct feed_counts *sum, const struct feed_counts *c);
void feed_destroy(struct feed *f);

/* ---- input.c ----------------------------------------------------------------- */

struct input {
	uint16_t port;
	bool started;	      /* the port is */
	bool capture;	      /* the port is a net_pcap of ours */
	int fd;		      /* the capture it reads */
	uint64_t left;	      /* packets still to come; UINT64_MAX: no end known */
	uint64_t packets_max; /* packets that the pool is sure to hold */
	struct capture_clock *clock;
	struct rte_mempool *pool;
	struct rte_mbuf **replay; /* the capture in memory */
	uint64_t replay_count;
	uint64_t replay_next;
	uint64_t rate, rate_start, rate_done; /* packets a second, at most */
};

/* DPDK's own time stamp field, in ns here; offset -1: packets have none. */
extern int timestamp_offset;
extern uint64_t timestamp_flag;

/* Blanks of a queue, at least, for in-band messages of the NF. */
#define BLANKS 32

/* Mbufs that the pool must have. */
uint32_t input_mbufs(const struct splitter_opts *o, const struct capture_info *info);

/* Hugepage memory that so many mbufs take, in bytes. */
static inline uint64_t
mbufs_memory(uint32_t mbufs)
{
	return (uint64_t)mbufs * (sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE + 128);
}

/* Find and start a port.  0, or -1 and the line said. */
int port_open(const char *option, const char *name, struct rte_mempool *pool, uint16_t *port);
/* 0, or -1 and the line said; then input_close() is still to be called. */
int input_open(struct input *in, const struct splitter_opts *o, const struct capture_info *info,
	       struct rte_mempool *pool);
/* out: packets that were received and are not freed yet. */
uint16_t input_burst(struct input *in, struct rte_mbuf **pkts, uint16_t n, uint64_t out);
void input_close(struct input *in);

/* Time stamp of a packet in ns; 0: none. */
static inline uint64_t
packet_time(const struct rte_mbuf *m)
{
	if (timestamp_offset < 0 || (m->ol_flags & timestamp_flag) == 0)
		return 0;
	return *RTE_MBUF_DYNFIELD(m, timestamp_offset, rte_mbuf_timestamp_t *);
}

/* ---- output.c ---------------------------------------------------------------- */

struct output {
	struct capture_writer *writer;
	uint16_t port;
	bool to_port;
	bool own_port; /* not the input's as well */
};

int output_open(struct output *out, const struct splitter_opts *o, const struct input *in,
		bool nano, struct rte_mempool *pool);
/* Takes all packets; returns how many went out, or -1 and the line said. */
int output_burst(struct output *out, struct rte_mbuf **pkts, uint16_t n);
/* 0, or -1 and the line said: the last of the capture could not be written. */
int output_close(struct output *out);
/* Out of any port; returns how many were sent, the others are freed. */
uint16_t port_send(uint16_t port, struct rte_mbuf **pkts, uint16_t n);

/* ---- report.c ------------------------------------------------------------------ */

struct splitter_counts {
	/* in + injected = out + backward + dropped (drop_*) + lost; shunted ones are out */
	uint64_t in, in_bytes;
	uint64_t out, out_bytes;
	uint64_t injected; /* made by NFs */
	uint64_t bypassed; /* of the out: not inspected, the link was full */
	uint64_t shunted;  /* of the out: not inspected, the NF or a rule said so */
	uint64_t shunted_bytes;
	uint64_t shunted_rule;	/* of the shunted: a rule */
	uint64_t shunted_held;	/* of the shunted: waited for the NF, for the order's sake */
	uint64_t not_shunted;	/* to be shunted, but inspected: too many waited */
	uint64_t forwarded;	/* of the out: not inspected, the policy said so */
	uint64_t backward;	/* sent back out of the port they came from */
	uint64_t drop_full;	/* the link was full */
	uint64_t drop_nf;	/* the NF wanted it */
	uint64_t drop_verdict;	/* the NF wanted the flow dropped */
	uint64_t drop_rule;	/* a rule says that its application is discarded */
	uint64_t drop_policy;	/* the policy says so */
	uint64_t drop_backward; /* the NF sent it back, and there is no way back */
	uint64_t drop_output;	/* the port did not take it */
	uint64_t drop_stopped;	/* read, but the link was closing already */
	uint64_t drop_unserved; /* waited for an NF, and none came */
	uint64_t drop_dead;	/* the NF died before it gave them back */
	uint64_t drop_fenced;	/* the NF stood still and was cut off */
	uint64_t lost;		/* handed to the NF, never came back */
	uint64_t deaths;	/* of NFs */
	uint64_t fenced;	/* NFs that were cut off */
	uint64_t reclaimed;	/* dropped or bypassed: were at an NF when it died */
	uint64_t orphans;	/* of the reclaimed: in its hands */
	uint32_t memzones;	/* when the link was made */
};

/* Of a queue; packets: that came for it, refused ones too. */
struct queue_report {
	uint64_t packets, refused, depth, depth_max;
	double depth_mean;
	uint64_t flows, sessions; /* now, ever */
	uint32_t busy;		  /* permille, as its NF said last */
	uint32_t weight;
	double speed; /* packets a second that its NF was seen to do */
	bool drains, there;
};

/* Of one link. */
struct hop_counts {
	uint64_t dropped;	  /* its NF wanted it */
	uint64_t verdict;	  /* dropped: ... of the flow */
	uint64_t full;		  /* dropped: it was full */
	uint64_t bypassed;	  /* passed by: it was full, or had no NF */
	uint64_t shunted;	  /* passed by: its NF, or a rule, said so */
	uint64_t dead, fenced;	  /* dropped: with the NF */
	uint64_t deaths, cut_off; /* NFs */
};

struct hop;
struct report {
	const struct splitter_opts *o;
	const struct hop *hop; /* o->links of them */
	const struct splitter_counts *c;
	const struct flow_counts *flows;
	const struct feed_counts *feed;
	const struct apps *apps;		  /* NULL: applications were not looked for */
	const struct correlate_counts *correlate; /* NULL: control sessions were not */
	const struct policy *policy;		  /* NULL: none */
	const struct nfmeta_field *field;
	double seconds;
	const char *ended; /* why */
};

/* A line a second. */
struct progress {
	uint64_t next;
	uint64_t start;
	uint64_t in, out;
	uint64_t queue[NFMETA_QUEUES_MAX]; /* packets */
};
void progress_line(struct progress *p, const struct report *r, uint64_t now, uint32_t in_flight);
void report_summary(const struct report *r);
int report_json(struct json *j, const struct report *r);

/* ---- path.c, chain.c --------------------------------------------------------------- */

/*
 * The way of a queue's packets to the NF and back.  The NF returns them in the
 * order sent, so a packet's place among the sent says when it is back: when
 * "back" has reached it.
 */
struct way {
	uint64_t sent, back; /* packets; blanks are not counted */
	uint64_t refused;    /* there was no room for, and did not wait */
	/* shunted packets that wait for their flow's earlier ones */
	struct rte_mbuf **held;
	uint64_t *place; /* ... which are back when this one is; never falls */
	uint32_t head, tail, mask;
	/* from the link before; wait for room: chain.c */
	struct rte_mbuf *first, *last;
	uint32_t waiting;
};

#define HELD_MAX 1024 /* per queue; or its ring size, if that is less */

/* A link, its NFs, and the ways to them. */
struct hop {
	const struct link_opts *o;
	struct nfmeta_link *link;
	struct feed *feed;
	struct balance *balance;
	uint32_t loads[NFMETA_QUEUES_MAX]; /* LOAD messages that were heard */
	uint8_t number;
	bool gone; /* everything passes by it from now on */
	struct hop_counts c;
	uint64_t absent[NFMETA_QUEUES_MAX]; /* TSC since when; 0: an NF is there */
	uint64_t beat[NFMETA_QUEUES_MAX];   /* heartbeat of the NF */
	uint64_t still[NFMETA_QUEUES_MAX];  /* TSC when it changed last; 0: it has not yet */
	uint32_t epoch[NFMETA_QUEUES_MAX];  /* of that NF */
	bool died[NFMETA_QUEUES_MAX];	    /* the last NF did, no other one was seen since */
	struct way way[NFMETA_QUEUES_MAX];
	/* packets of one burst, sorted by queue */
	struct rte_mbuf *sorted[NFMETA_QUEUES_MAX][BURST];
	uint16_t nsorted[NFMETA_QUEUES_MAX];
};

struct splitter;

int ways_open(struct splitter *s);
/* What is held goes out: nothing will come back any more. */
void ways_release(struct splitter *s);
void ways_close(struct splitter *s);
/* Packets at the NFs, and those that wait for them. */
uint64_t ways_in_flight(const struct splitter *s);
/* Those of them that an NF may still give back. */
uint64_t ways_alive(const struct splitter *s);
/* The NF of a queue died: takes back what it had.  0, or not now. */
int bury(struct splitter *s, struct hop *h, uint16_t q);
/* It stands still: nothing comes back from it any more.  0, or the line said. */
int cut_off(struct splitter *s, struct hop *h, uint16_t q);
/* Its NF left, and its sessions go elsewhere: takes back what waits for the next one. */
void take_back_waiting(struct splitter *s, struct hop *h, uint16_t q);
/* One burst back from every queue; returns how many packets came. */
unsigned int collect(struct splitter *s);
/* The NFs' messages; returns how many came. */
unsigned int feeds_round(struct splitter *s, uint64_t now);
void feeds_flush(struct splitter *s);
/* Packets of the input on their way. */
void work(struct splitter *s, struct rte_mbuf **pkts, uint16_t n, uint64_t now);

/* What is to happen to a packet that was decided about. */
enum fate {
	TO_NF,
	PASSES, /* by the NF, now */
	TAKEN,	/* it is dropped, or held until its time */
};

/* Out of the last link; returns how many left, the others are counted. */
uint16_t forward(struct splitter *s, struct rte_mbuf **pkts, uint16_t n);
enum fate act(struct splitter *s, struct hop *h, struct flow *f, struct rte_mbuf *m, bool back,
	      uint64_t tsc);
/* The link did not take these. */
void turn_away(struct splitter *s, struct hop *h, uint16_t q, struct rte_mbuf **pkts, uint16_t n);

/*
 * Several links.  What leaves a link goes to the next one of its flow's chain.  What the
 * splitter itself has to know of a packet for that lies in the private area of the mbuf:
 * an NF may change the packet, or take its record off.
 */
struct note {
	struct rte_mbuf *next; /* that waits for the same queue */
	uint32_t flow_id;      /* with known */
	uint16_t generation;
	bool known;
	bool back; /* against the direction of the flow's first packet */
	uint8_t chain;
	uint8_t position; /* in it */
};

/* A cache line, or none with one link: the packet's own lines stay where they are. */
#define NOTE_ROOM RTE_CACHE_LINE_SIZE
_Static_assert(sizeof(struct note) <= NOTE_ROOM, "the note has room");

static inline struct note *
note_of(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/* n <= BURST packets leave their link, for the next one or out; as forward(). */
uint16_t go_on(struct splitter *s, struct rte_mbuf **pkts, uint16_t n);
/* It is dropped: the NFs of the links to come do not get it. */
void never_came(struct splitter *s, struct rte_mbuf *m);
/* The places of those that wait are anew: others before them did not go to the NF. */
void renumber(struct splitter *s, struct hop *h, uint16_t q);
/* Those that wait for room, as far as there is. */
void waiting_round(struct splitter *s);
/* Has this flow packets that are still to get to a link? */
bool under_way(const void *splitter, const struct flow *f);

/* ---- spread.c --------------------------------------------------------------------- */

enum {
	SPREAD_BALANCE,
	SPREAD_WEIGHTS,
	SPREAD_WEIGHT,
	SPREAD_MOVE,
	SPREADS
};

/* NULL on failure, the line said. */
struct balance *spread_create(const struct link_opts *o, uint64_t hz);
/* Every millisecond. */
void spread_look(struct splitter *s, struct hop *h, uint64_t now);
struct queue_report spread_queue(const struct hop *h, uint16_t q);
void spread_defaults(struct spread_opts *o);
/* Options: 0, or -1 and the line said. */
int spread_parse(int what, const char *option, const char *text, struct spread_opts *o);
int spread_check(const struct link_opts *l);

/* ---- life.c, run.c ---------------------------------------------------------------- */

struct splitter {
	const struct splitter_opts *o;
	struct capture_info info;
	struct json json;
	struct rte_mempool *pool;
	struct input in;
	struct output out;
	struct nfmeta_field field;
	struct first first;
	const char *link_names[LINKS_MAX + 1];
	struct flow_table *flows;
	struct apps *apps;	     /* NULL: applications are not looked for */
	struct correlate *correlate; /* NULL: control sessions are not */
	struct splitter_counts c;
	struct progress progress;
	uint64_t hz, start, end;
	uint64_t next_timer, next_peer; /* TSC */
	const char *ended;		/* why; NULL: running */
	int status;
	bool time_over;	      /* --seconds */
	bool closing;	      /* links take no more */
	uint64_t hurry_until; /* TSC; flows.hurry */
	uint64_t waiting;     /* packets that wait between links: chain.c */
	uint8_t nhops;
	struct hop hop[LINKS_MAX];
};

/* Everything up to the published links.  NULL: failed, the line said, nothing left. */
struct splitter *splitter_open(const struct splitter_opts *o);
/* Runs to the end of the input or until told to stop; returns an exit status. */
int splitter_run(struct splitter *s);
/* Takes all down, reports; returns an exit status, not better than the given one. */
int splitter_close(struct splitter *s, int status);
void end_run(struct splitter *s, const char *why, int status);
/* There are no more at the end than at the start. */
uint32_t memzones(void);
/* What is done by time: flows that end, signals, NFs that left. */
void tick(struct splitter *s, uint64_t now);
/* "queue 0", with several links: "queue 0 of link "ids""; until the next call. */
const char *queue_name(const struct splitter *s, const struct hop *h, uint16_t q);

#endif
