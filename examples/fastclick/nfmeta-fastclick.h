/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_FASTCLICK_H
#define NFMETA_FASTCLICK_H

/*
 * What the FastClick elements decide, in plain C that knows nothing of Click:
 *
 *   stamp.c  a packet's headers and annotations into a record
 *   flows.c  aggregates (Click's flow numbers) into flow ids, verdicts
 *   tell.c   messages to and from the NFs
 *   mbuf.c   bytes into mbufs
 *
 * The elements are thin: tonfmeta.cc, fromnfmeta.cc, nfmetaflow.cc, nfmetaaction.cc;
 * shared.cc has what those of one link share, walk.cc looks for what may have written to
 * a packet since it was checked.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FC_BURST 32

/* ---- stamp.c ------------------------------------------------------------------- */

/* Checksums that an element upstream has verified: packets with a wrong one did not pass. */
#define FC_CHECKED_IP 0x01
#define FC_CHECKED_TCP 0x02
#define FC_CHECKED_UDP 0x04
#define FC_CHECKED_ICMP 0x08

/* Four bytes alike for both directions of an IP packet at l3_off; 0 if it is none. */
uint32_t fc_pair(const uint8_t *data, uint32_t len, uint16_t l3_off);
/* The same of a flow key. */
uint32_t fc_pair_of_key(const struct nfmeta_flow_key *key);

static inline uint16_t
fc_queue(uint32_t pair, uint16_t queues)
{
	return (uint16_t)((uint64_t)pair * queues >> 32);
}

/* nfmeta_record_init() for the core alone, which is what a dynamic field carries. */
static inline void
fc_record_core(struct nfmeta_record *r)
{
	const uint64_t empty[2] = {NFMETA_ABI_MAJOR | NFMETA_RECORD_CORE << 8, 0xffffffffffff};

	memcpy(r, empty, sizeof(empty));
}

/*
 * The record of a packet whose IPv4 header is at l3_off, as an annotation says.
 * Lengths and offsets are looked at here; checksums are good where checked says
 * so and the record may.  Other packets get a record that promises nothing.
 * Without a flow, NFMETA_FLOW_REVERSE is what a classification says.
 *
 * r: empty; len: bytes at data.  Returns RTE_PTYPE_* of the mbuf.
 */
uint32_t fc_stamp(struct nfmeta_record *r, const uint8_t *data, uint32_t len, uint16_t l3_off,
		  unsigned int checked);

/*
 * What nearly all packets are: Ethernet, IPv4 without options, no fragment, TCP or UDP, whole.
 * The core of their records, but for flow, direction and payload's offset, depends on the
 * protocol alone.
 */
struct fc_plain_words {
	uint64_t tcp, udp, udp_absent; /* first word of the record; absent: checksum */
};

void fc_plain_init(struct fc_plain_words *plain, unsigned int checked);

#define FC_PLAIN_OFF 14			       /* of the IP header */
#define FC_FLAG(flag) ((uint64_t)(flag) << 16) /* in the first word of a record */

static inline uint32_t
fc_be16(const uint8_t *p)
{
	uint16_t w;

	memcpy(&w, p, 2);
	return rte_be_to_cpu_16(w);
}

static inline uint32_t
fc_word(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, 4);
	return w;
}

static inline bool
fc_is_tunnel(uint32_t port)
{
	return port == 4789 || port == 6081 || port == 2152; /* VXLAN, Geneve, GTP-U */
}

/* core: the words of the record.  Returns RTE_PTYPE_*; 0: it is not such a packet. */
static inline uint32_t
fc_plain(const struct fc_plain_words *plain, const uint8_t *data, uint32_t len, uint64_t core[2])
{
	const uint32_t ipv4 = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN;
	const uint64_t offsets = FC_PLAIN_OFF | (FC_PLAIN_OFF + 20) << 16;
	const uint8_t *ip = data + FC_PLAIN_OFF, *l4 = ip + 20;
	uint32_t total, header, udp;

	if (len < 54 || len > 65535 ||
	    (fc_word(data + 12) & RTE_BE32(0xffffff00)) != RTE_BE32(0x08004500) ||
	    (fc_word(ip + 4) & RTE_BE32(0x3fff)) != 0)
		return 0;
	total = fc_be16(ip + 2);
	if (total - 40 > len - 54) /* less than 40 wraps around */
		return 0;
	if (likely(ip[9] == 6)) {
		header = (uint32_t)(l4[12] >> 4) * 4;
		if (header - 20 > total - 40)
			return 0;
		core[0] = plain->tcp;
		core[1] = offsets | (uint64_t)(34 + header) << 32;
		return ipv4 | RTE_PTYPE_L4_TCP;
	}
	udp = fc_be16(l4 + 4);
	if (ip[9] != 17 || udp < 8 || udp > total - 20 || fc_is_tunnel(fc_be16(l4 + 2)))
		return 0;
	core[0] = fc_be16(l4 + 6) != 0 ? plain->udp : plain->udp_absent;
	core[1] = offsets | UINT64_C(42) << 32;
	return ipv4 | RTE_PTYPE_L4_UDP;
}

/* The source of a plain packet is the higher end of the canonical key: address and port are one. */
static inline bool
fc_plain_reverse(const uint8_t *data)
{
	const uint8_t *ip = data + FC_PLAIN_OFF;
	uint32_t src = rte_be_to_cpu_32(fc_word(ip + 12)), dst = rte_be_to_cpu_32(fc_word(ip + 16));

	return src > dst || (src == dst && fc_be16(ip + 20) > fc_be16(ip + 22));
}

/* ---- flows.c ------------------------------------------------------------------- */

/* One cache line.  The flow id is: number of the slot, and in the low bits the instance. */
struct fc_flow {
	uint32_t aggregate;
	uint16_t generation;
	uint8_t state; /* FC_* */
	uint8_t queue; /* with FC_SEEN */
	uint32_t next; /* list of free ones, list of ending ones */
	uint16_t reason;
	uint16_t reserved;
	struct nfmeta_flow_decision decision;
	/* the NF did not get them; [0]: in the direction of the first packet */
	uint64_t passed[2], passed_bytes[2];
} __attribute__((aligned(64)));

#define FC_OPEN 0x01
#define FC_ENDING 0x02 /* to be told after the burst */
#define FC_SEEN 0x04   /* a packet of it was on its way to the NF, which was told */
#define FC_NONE UINT32_MAX

struct fc_counts {
	uint64_t begun, ended;					      /* flows that got an id */
	uint64_t no_room;					      /* flows that did not */
	uint64_t told_new, told_deletes, told_counters, told_updates; /* entries */
	uint64_t delete_messages;
	uint64_t given_up; /* messages: the NF is too slow and will ask for all */
	uint64_t verdicts, verdicts_applied, verdicts_late, verdicts_kept;
	uint64_t resyncs, resyncs_answered;
	uint64_t refused; /* what was no message */
};

#define FC_DELETES 256
#define FC_STATES 128
#define FC_COUNTERS 51

/* What is to be told to the NF of a queue. */
struct fc_told {
	uint16_t ndeletes, nnews, nupdates, ncounters;
	bool asked;	 /* for a snapshot */
	bool begun;	 /* FIRST is out */
	uint32_t cursor; /* next slot of it */
	struct nfmeta_flow_load load;
	struct nfmeta_flow_delete deletes[FC_DELETES];
	struct nfmeta_flow_state news[FC_STATES];
	struct nfmeta_flow_state updates[FC_STATES];
	struct nfmeta_flow_counters counters[FC_COUNTERS];
};

/*
 * The flows of one AggregateIPFlows, which is one thread's.  That thread alone
 * calls what is below.
 */
struct fc_flows {
	struct fc_flow *slots;
	uint32_t *index; /* slot + 1 by aggregate, open addressing; 0: nothing */
	uint32_t nslots;
	uint32_t mask;	      /* of the index */
	uint32_t used;	      /* slots that were ever used */
	uint32_t free, freed; /* list of free ones: first, last */
	uint32_t ending, ended_last;
	uint32_t nending;
	uint32_t instance, shift; /* of how many bits it is in the ids */
	struct nfmeta_link *link; /* NULL: nobody is told */
	uint16_t queue, queues;	  /* of the link: first, how many */
	struct fc_told *told;
	struct fc_counts c;
};

/* 0, or -ENOMEM. */
int fc_flows_init(struct fc_flows *f, uint32_t max_flows);
/* Which of how many this is; before the first flow. */
void fc_flows_number(struct fc_flows *f, uint32_t instance, uint32_t instances);
void fc_flows_free(struct fc_flows *f);

/* A flow begins.  NULL: there is no room for it, its packets go without a flow. */
struct fc_flow *fc_begin(struct fc_flows *f, uint32_t aggregate);
/* A flow ends.  It is there until fc_flush(): packets of it may be in the burst. */
void fc_end(struct fc_flows *f, uint32_t aggregate, uint16_t reason);
/* All flows end. */
void fc_end_all(struct fc_flows *f, uint16_t reason);
/* The slot is free again. */
void fc_drop(struct fc_flows *f, struct fc_flow *flow);

static inline uint32_t
fc_id(const struct fc_flows *f, const struct fc_flow *flow)
{
	return (uint32_t)(flow - f->slots) << f->shift | f->instance;
}

/*
 * AggregateIPFlows counts up: the number itself is a good hash, live flows lie side by
 * side.  Where the aggregate is in the index, or would be.
 */
static inline uint32_t
fc_place(const struct fc_flows *f, uint32_t aggregate)
{
	uint32_t i = aggregate & f->mask;

	while (f->index[i] != 0 && f->slots[f->index[i] - 1].aggregate != aggregate)
		i = (i + 1) & f->mask;
	return i;
}

static inline struct fc_flow *
fc_find(const struct fc_flows *f, uint32_t aggregate)
{
	uint32_t at = f->index[fc_place(f, aggregate)];

	return at != 0 ? &f->slots[at - 1] : NULL;
}

static inline struct fc_flow *
fc_by_id(const struct fc_flows *f, uint32_t id, uint16_t generation)
{
	uint32_t slot = id >> f->shift;
	struct fc_flow *flow;

	if (slot >= f->used || (slot << f->shift | f->instance) != id)
		return NULL;
	flow = &f->slots[slot];
	return flow->state != 0 && flow->generation == generation ? flow : NULL;
}

/*
 * The flow of a packet into its record.  queue: where packets of a flow go that
 * was not seen before.  Returns the queue.  Call fc_tell_new() before the packet is sent.
 */
uint16_t fc_put_flow(struct fc_flows *f, struct fc_flow *flow, struct nfmeta_record *r, int reverse,
		     uint16_t queue);

/*
 * The same for a plain packet's core, without a queue.  false: nothing was done, there is no
 * such flow, or fc_put_flow() has to tell of it.
 */
static inline bool
fc_put_plain(const struct fc_flows *f, uint32_t aggregate, uint64_t core[2], int reverse)
{
	uint32_t at = f->index[fc_place(f, aggregate)];
	const struct fc_flow *flow;

	if (unlikely(at == 0))
		return false;
	flow = &f->slots[--at];
	if (unlikely((flow->state & FC_SEEN) == 0))
		return false;
	core[0] |= (uint64_t)(at << f->shift | f->instance) << 32 | FC_FLAG(NFMETA_FLOW_KNOWN) |
		   (uint64_t)(reverse != 0) * FC_FLAG(NFMETA_FLOW_REVERSE);
	core[1] |= (uint64_t)flow->generation << 48;
	return true;
}

/* A packet that the NF does not get. */
static inline void
fc_pass(struct fc_flow *flow, int reverse, uint32_t bytes)
{
	flow->passed[reverse != 0]++;
	flow->passed_bytes[reverse != 0] += bytes;
}

/* ---- tell.c -------------------------------------------------------------------- */

/* The flows that the packets of this burst began: before they are sent. */
void fc_tell_new(struct fc_flows *f, uint16_t queue);
/*
 * The flows that ended, in messages as full as can be: when the burst of the packets
 * that ended them has been sent.
 */
void fc_flush(struct fc_flows *f);
/* Takes the messages of the NF of a queue, goes on with its snapshot; now, second: a clock. */
unsigned int fc_collect(struct fc_flows *f, uint16_t queue, uint64_t now, uint64_t second);
/* Asks whether all is done: true when every NF that listens has said so. */
bool fc_settled(struct fc_flows *f);

/* ---- mbuf.c -------------------------------------------------------------------- */

/* A copy of the bytes, in as many segments as it takes; NULL: no mbufs. */
struct rte_mbuf *fc_copy(struct rte_mempool *pool, const void *data, uint32_t len);

#ifdef __cplusplus
}
#endif
#endif
