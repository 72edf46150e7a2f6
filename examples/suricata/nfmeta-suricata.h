/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SURICATA_H
#define EXAMPLES_SURICATA_H

/*
 * A capture source for Suricata: packets come from a link and go back to it.
 *
 *   plugin.c   what Suricata calls: registration, run mode, threads
 *   args.c     --capture-plugin-args
 *   guard.c    is this the Suricata that the plug-in was built for?
 *   attach.c   DPDK and the link
 *   capture.c  the worker: its loop, and packets on their way back
 *   packet.c   a packet on its way in: bytes, and what the record says
 *   flows.c    which flow of the upfront NF is which of Suricata's
 *   told.c     what the upfront NF tells of its flows
 *   bypass.c   flows that Suricata need not see any more
 *   reject.c   the answers of "reject" rules
 *   stats.c    counters, stats=FILE, compare=N
 *   compat.h   Suricata's headers, 7.0 and 8.0
 */

#include "compat.h"

#include <nfmeta/nfmeta.h>

#define BURST 32
#define VERDICTS 64 /* that wait to be sent; a message takes more */
#define WORKERS 64  /* queues of a link */

#define EXIT_PEER 3 /* exit status: the primary died */

/* ---- args.c ------------------------------------------------------------------- */

struct opts {
	char *link;
	char *file_prefix;
	char *stats;
	int first_queue, last_queue; /* -1: all */
	bool ips;
	bool ignore_records;
	bool attach_late; /* eal=run */
	uint32_t wait;	  /* seconds */
	uint32_t compare; /* packets of a chunk; 0: off */
	uint32_t idle_us; /* longest sleep when nothing comes; 0: none */
};

extern struct opts opts;

/* Ends Suricata with a line when something is wrong. */
void args_parse(const char *args);

/* ---- the worker ------------------------------------------------------------------ */

/* What a worker counts; stats.c has the names, in this order. */
struct counts {
	uint64_t packets, bytes;
	uint64_t records, no_record;
	uint64_t checksum_good, checksum_bad, checksum_unknown;
	uint64_t segmented, too_big, no_packet; /* the last two went back unseen */
	uint64_t forwarded, dropped;
	uint64_t injected, not_injected; /* answers to "reject" */
	uint64_t verdicts_sent, verdicts_refused;
	uint64_t shunted_packets, shunted_bytes; /* as COUNTERS told */
	uint64_t deletes_in, deletes_matched;
	uint64_t messages, snapshots, resets;
	uint64_t flows_ended_out; /* by Suricata: a time-out of its own, lack of memory */
	uint64_t cpu_ns;	  /* of the worker's thread */
	uint64_t idle_cpu_ns;	  /* of this, while nothing came; with stats= or compare= */
};
#define COUNTS (sizeof(struct counts) / sizeof(uint64_t))

/* compare=N: chunks of N packets, by turns with and without records. */
struct chunks {
	uint32_t left; /* packets of this one */
	bool busy;     /* else packets are waited for */
	uint32_t n, room;
	uint32_t *ns;			     /* CPU time of each; the even ones with records */
	uint64_t began, idle_began, idle_ns; /* idle_ns: all there was when it began */
	uint64_t packets[2], cpu_ns[2];
};

struct seen;

struct worker {
	/* touched by every packet */
	struct nfmeta_link *link;
	struct nfmeta_field field;
	ThreadVars *tv;
	TmSlot *slot; /* the decoder; the rest of the pipeline is behind it */
	LiveDevice *device;
	SCTime_t now;
	bool ips;
	bool records; /* to be used; compare=N toggles it */
	bool loading; /* a snapshot is being told */
	bool carrier; /* verdicts can be sent */
	bool at_work; /* the link is the thread's own */
	uint16_t queue;
	uint16_t backs;
	uint8_t how[BURST * 2];
	struct rte_mbuf *back[BURST * 2];
	struct counts c;

	/* flows.c, told.c, bypass.c */
	struct seen **pages;
	uint32_t pages_used;
	uint32_t mark; /* number of the last snapshot */
	uint32_t sweep, table_flows;
	const struct nfmeta_table_flow *table; /* the carrier; NULL: messages, or none */
	uint32_t verdicts;
	struct nfmeta_flow_verdict verdict[VERDICTS];

	/* stats.c */
	uint16_t ids[COUNTS]; /* of Suricata's counters */
	uint16_t bypassed_packets, bypassed_bytes;
	uint64_t device_packets;
	struct chunks chunks;
};

extern struct worker workers[WORKERS];
extern uint16_t workers_n;

/* What stays with a packet while Suricata has it: in Packet.plugin_v. */
struct in_hand {
	struct worker *w;
	struct rte_mbuf *m;
	uint32_t flow_id;
	uint32_t app_id;
	uint16_t flow_gen;
	uint16_t flags; /* of the record; 0: there was none */
	bool shunted;	/* by this packet */
	bool swapped;	/* the flow's first packet went to Suricata's client */
};
_Static_assert(sizeof(struct in_hand) <= PLUGIN_VAR_SIZE, "room in a Packet");

static inline struct in_hand *
in_hand(Packet *p)
{
	return (struct in_hand *)(void *)p->plugin_v;
}

/* ---- guard.c: end Suricata with a line ------------------------------------------ */

void guard_version(void);
void guard_modules(int slot);
/* In the run mode: tv was just made under that name. */
void guard_layout(const ThreadVars *tv, const char *name);

/* ---- attach.c --------------------------------------------------------------------- */

/* DPDK; all queues: fills workers[]. They end Suricata with a line when they cannot. */
void attach_eal(void);
void attach_link(void);
void detach_all(void);

/* ---- capture.c -------------------------------------------------------------------- */

void capture_register(int receive_slot, int decode_slot);
/* A packet goes back to the upfront NF, with the next burst. */
void capture_give_back(struct worker *w, struct rte_mbuf *m, uint8_t how);

/* ---- packet.c --------------------------------------------------------------------- */

/* NULL: there is none to be had for it, or it is too big. */
Packet *packet_make(struct worker *w, struct rte_mbuf *m);

/* ---- flows.c: no lock of Suricata is held, but where it is said ------------------- */

struct seen {
	const Flow *flow; /* to compare, hash and start of two may be the same; and to be fetched */
	SCTime_t start;
	uint32_t hash;
	uint16_t gen;
	uint16_t state;	     /* SEEN_* */
	uint32_t mark;	     /* of the last snapshot, or newer news, that knew it */
	const void *session; /* only to be fetched */
};

#define SEEN_OPEN 0x01	  /* Suricata has, or had, a flow for it */
#define SEEN_SWAPPED 0x02 /* shunted: its first packet went to Suricata's client */
#define SEEN_LEAVING 0x04 /* the shared table does not have it any more */

#define PAGE_IDS 4096

void flows_register(void); /* before Suricata lays out its flows */
void flows_unregister(void);
int flows_start(struct worker *w);
/* NULL: no memory, and nothing is known of the flow. */
struct seen *flows_seen(struct worker *w, uint32_t id);
/* Suricata's flow, locked; or NULL. */
Flow *flows_find(const struct seen *s);
/* True: Suricata ends its flow now. */
bool flows_end(struct worker *w, struct seen *s);
/* Into the cache: what is known of the flows of a burst; what Suricata has of a packet's. */
void flows_fetch_seen(const struct worker *w, struct rte_mbuf *const *pkts,
		      const struct seen **seen, uint16_t n);
void flows_fetch(const struct seen *s);
/* Suricata is done with a packet of a known flow. */
void flows_packet(struct worker *w, const Packet *p, const struct in_hand *h);
void flows_app(Flow *f, uint32_t app_id);
uint64_t flows_ended(uint16_t queue);
void flows_stop(void);

/* ---- told.c ------------------------------------------------------------------------- */

/* Messages there were. */
unsigned int told_messages(struct worker *w);
/* With a table as carrier: now and then, and at the end. */
void told_sweep(struct worker *w);
void told_close(struct worker *w);

/* ---- bypass.c ----------------------------------------------------------------------- */

int bypass_packet(Packet *p);
void bypass_send(struct worker *w);
/* f is locked. */
void bypass_counters(struct worker *w, Flow *f, const struct nfmeta_flow_counters *c, bool swapped);

/* ---- reject.c ----------------------------------------------------------------------- */

void reject_packet(struct worker *w, Packet *p, const struct rte_mbuf *m);

/* ---- stats.c ------------------------------------------------------------------------ */

void stats_open(void);
void stats_register(struct worker *w);
void stats_update(struct worker *w);
void stats_write(void);
/* compare=N: the worker waits; it does not any more; a chunk is full. */
void stats_idle(struct worker *w);
void stats_busy(struct worker *w);
void stats_chunk(struct worker *w);

#endif
