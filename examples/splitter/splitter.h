/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_H
#define EXAMPLES_SPLITTER_H

/*
 * The splitter is the upfront NF: it classifies every packet once, owns the
 * flow table, stamps a record on every packet, hands them to the NF of a link
 * and forwards what comes back.
 *
 *   options.c  command line            input.c   where packets come from
 *   capture.c  captures, both ways     output.c  where packets go
 *   flows.c    the flow table          report.c  figures
 *   life.c     start and end           run.c     the loop between
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#include "../common/common.h"

#define BURST 32

/* ---- options.c -------------------------------------------------------------- */

struct splitter_opts {
	const char *in;	 /* capture file or port, without "pcap:" */
	const char *out; /* likewise */
	bool in_capture;
	bool out_capture;
	bool out_none;
	const char *link;
	const char *file_prefix;
	const char *json;
	const char *flows; /* CSV of flows */
	uint16_t queues;
	uint32_t ring_size;
	uint32_t max_flows;
	uint8_t when_full; /* NFMETA_FULL_* */
	uint8_t placement; /* NFMETA_PLACE_* */
	bool replay;	   /* read the capture into memory, then replay it */
	uint64_t loops;	   /* 0: without end */
	uint64_t count;	   /* packets; 0: no limit */
	uint64_t first;	   /* of the capture: so many packets are used */
	uint64_t seconds;  /* 0: no limit */
	uint64_t timeout;  /* of a flow, seconds */
	uint64_t wait_nf;  /* seconds */
	uint64_t megabytes;
	uint32_t policy; /* NFMETA_CLASSIFY_* */
	bool quiet;
	bool verbose;
	bool one_process; /* NFs are threads of this process; no hugepages */
	int eal_argc;
	char **eal_argv;
	/* adds to the JSON report, if set */
	void (*json_more)(struct json *j, const void *arg);
	const void *json_arg;
};

void splitter_defaults(struct splitter_opts *o);
/* 0: run; 1: help was asked for and printed; -1: bad, the line is said. */
int splitter_options(int argc, char **argv, struct splitter_opts *o);

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

/* ---- flows.c ----------------------------------------------------------------- */

struct flow_table;

struct flow_counts {
	uint64_t flows;	 /* made since the start */
	uint64_t active; /* in the table now */
	uint64_t timed_out;
	uint64_t reused;  /* of the made: a TCP tuple used again */
	uint64_t unknown; /* packets that got no flow: table full */
};

/* csv: NULL, or a path.  NULL on failure, the line said. */
struct flow_table *flows_create(uint32_t max_flows, uint64_t timeout_s, const char *csv);
/* Put a flow into the record of every IP packet.  n <= BURST. */
void flows_burst(struct flow_table *t, struct rte_mbuf *const *pkts, struct nfmeta_record *recs,
		 const struct nfmeta_flow_key *keys, uint16_t n, uint64_t now);
const struct flow_counts *flows_counts(const struct flow_table *t);
/* Hugepage memory that a table of this size takes, in bytes. */
uint64_t flows_memory(uint32_t max_flows);
/* 0, or -1 and the line said: the CSV could not be written. */
int flows_destroy(struct flow_table *t);

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
};

/* DPDK's own time stamp field, in ns here; offset -1: packets have none. */
extern int timestamp_offset;
extern uint64_t timestamp_flag;

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
	/* in = out + backward + dropped (drop_*) + lost */
	uint64_t in, in_bytes;
	uint64_t out, out_bytes;
	uint64_t bypassed;	/* of the out: not inspected */
	uint64_t backward;	/* sent back out of the port they came from */
	uint64_t drop_full;	/* the link was full */
	uint64_t drop_nf;	/* the NF wanted it */
	uint64_t drop_backward; /* the NF sent it back, and there is no way back */
	uint64_t drop_output;	/* the port did not take it */
	uint64_t drop_stopped;	/* read, but the link was closing already */
	uint64_t lost;		/* handed to the NF, never came back */
	uint64_t pool_lost;	/* mbufs that a dead NF had in its hands */
};

struct report {
	const struct splitter_opts *o;
	const struct splitter_counts *c;
	const struct flow_counts *flows;
	const struct nfmeta_field *field;
	double seconds;
	const char *ended; /* why */
};

/* A line a second. */
struct progress {
	uint64_t next;
	uint64_t start;
	uint64_t in, out;
};
void progress_line(struct progress *p, const struct report *r, uint64_t now, uint32_t in_flight);
void report_summary(const struct report *r);
int report_json(struct json *j, const struct report *r);

/* ---- life.c, run.c ---------------------------------------------------------------- */

struct splitter {
	const struct splitter_opts *o;
	struct capture_info info;
	struct json json;
	struct rte_mempool *pool;
	struct input in;
	struct output out;
	struct nfmeta_field field;
	struct flow_table *flows;
	struct nfmeta_link *link;
	struct splitter_counts c;
	struct progress progress;
	uint64_t hz, start, end;
	uint64_t next_timer, next_peer;	    /* TSC */
	uint64_t absent[NFMETA_QUEUES_MAX]; /* TSC since when; 0: an NF is there */
	const char *ended;		    /* why; NULL: running */
	int status;
	bool nf_gone; /* everything is bypassed from now on */
	/* packets of one burst, sorted by queue */
	struct rte_mbuf *sorted[NFMETA_QUEUES_MAX][BURST];
	uint16_t nsorted[NFMETA_QUEUES_MAX];
};

/* Everything up to the published link.  NULL: failed, the line said, nothing left. */
struct splitter *splitter_open(const struct splitter_opts *o);
/* Runs to the end of the input or until told to stop; returns an exit status. */
int splitter_run(struct splitter *s);
/* Takes all down, reports; returns an exit status, not better than the given one. */
int splitter_close(struct splitter *s, int status);

#endif
