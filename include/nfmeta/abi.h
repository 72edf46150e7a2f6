/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_ABI_H
#define NFMETA_ABI_H

/*
 * abi.h - the bytes that processes share.
 *
 * This header needs <stdint.h> and nothing else, and may be copied into any
 * program.  It holds every layout and every number that two processes, or two
 * languages, must agree on.  The normative text is in bindings-spec/README.md;
 * what stands here is short for reading along.
 *
 * Rules of this file: fixed-width integers only; constants are #defines;
 * reserved bytes are written as zero and ignored when read; every offset is
 * asserted.  Integers are little-endian (every machine that DPDK multi-process
 * is used on today is), network-order fields say so.
 */

#include <stdint.h>

#if defined(__cplusplus)
#define NFMETA_STATIC_ASSERT(c, m) static_assert(c, m)
#else
#define NFMETA_STATIC_ASSERT(c, m) _Static_assert(c, m)
#endif
#define NFMETA_OFFSET(s, f) __builtin_offsetof(struct s, f)

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the nfmeta ABI is little-endian"
#endif

/*
 * Version of the layouts in this file; not the version of the library.
 * Another MAJOR: do not touch anything behind the version.  Another MINOR:
 * fields were appended, what is known here is still where it was.
 */
#define NFMETA_ABI_MAJOR 1
#define NFMETA_ABI_MINOR 1

/* ---- The record: what is known about one packet ------------------------- */

/*
 * A placement carries the first 8, 16, 32 or 64 bytes of this struct; size says
 * how many.  Bytes at and behind size do not exist: look before you read.
 */
struct nfmeta_record {
	/* the word, bytes 0-7 */
	uint8_t abi;	  /* NFMETA_ABI_MAJOR of the writer */
	uint8_t size;	  /* 8, 16, 32 or 64; 0 in a copy: no record */
	uint16_t flags;	  /* NFMETA_L2_VALID ... */
	uint32_t flow_id; /* with NFMETA_FLOW_KNOWN; any value, 0 too */
	/* the core, bytes 8-15: offsets count from the first byte of the packet */
	uint16_t l3_off;      /* IPv4/IPv6 header, or NFMETA_OFF_NONE */
	uint16_t l4_off;      /* TCP/UDP/SCTP/ICMP header, or NFMETA_OFF_NONE */
	uint16_t payload_off; /* first byte behind the L4 header, or NFMETA_OFF_NONE */
	uint16_t flow_gen;    /* with NFMETA_FLOW_KNOWN: id + generation name a flow */
	/* bytes 16-31 */
	uint32_t app_id;     /* nDPI numbers: master << 16 | application; 0 not known */
	uint16_t port;	     /* port of the upfront NF the packet came in on */
	uint16_t vlan_outer; /* TCI of the outermost tag, if vlan_count > 0 */
	uint16_t vlan_inner; /* TCI of the second tag, if vlan_count > 1 */
	uint8_t vlan_count;  /* tags in front of L3, stripped ones too */
	uint8_t action;	     /* NFMETA_ACTION_*: what the upfront NF decided for the flow */
	uint8_t seal[4];     /* in headroom: see struct nfmeta_field; elsewhere 0 */
	/* bytes 32-63 */
	uint64_t timestamp; /* ns since 1970-01-01 UTC; 0 not known */
	uint32_t tenant;    /* tenant or VRF, the upfront NF's numbering; 0 none */
	uint8_t chain;	    /* place in the chain of NFs, from 0 */
	uint8_t tunnels;    /* tunnels the upfront NF took off before */
	uint8_t reserved1[2];
	uint8_t user[16]; /* never touched by libnfmeta */
};

#define NFMETA_RECORD_WORD 8  /* bytes 0-7 */
#define NFMETA_RECORD_CORE 16 /* bytes 0-15 */
#define NFMETA_RECORD_WIDE 32 /* bytes 0-31 */
#define NFMETA_RECORD_FULL 64 /* all */

#define NFMETA_OFF_NONE 0xffff /* "there is no such header" */

/*
 * Record flags.  One paragraph each, normative, in bindings-spec/README.md.
 * A checksum is GOOD, BAD, or (neither bit) not known; both bits are never set.
 */
#define NFMETA_L2_VALID 0x0001	   /* Ethernet header and all tags are whole */
#define NFMETA_L3_VALID 0x0002	   /* IP header is whole and its lengths fit the packet */
#define NFMETA_L4_VALID 0x0004	   /* L4 header is whole and its lengths fit the datagram */
#define NFMETA_L3_CSUM_GOOD 0x0008 /* IPv4 header checksum was verified: right */
#define NFMETA_L3_CSUM_BAD 0x0010  /* ... wrong */
#define NFMETA_L4_CSUM_GOOD 0x0020 /* L4 checksum was verified: right */
#define NFMETA_L4_CSUM_BAD 0x0040  /* ... wrong */
#define NFMETA_FRAG_FIRST 0x0080   /* fragment at offset 0: L4 header is here */
#define NFMETA_FRAG_LATER 0x0100   /* fragment at another offset: no L4 header */
#define NFMETA_FLOW_KNOWN 0x0200   /* flow_id (and flow_gen) name a flow */
#define NFMETA_FLOW_NEW 0x0400	   /* first packet of its flow; set once per flow */
#define NFMETA_FLOW_REVERSE 0x0800 /* against the direction of the flow's first packet */
#define NFMETA_TUNNEL_OUTER 0x1000 /* record describes the outer headers of a tunnel */
#define NFMETA_FLAGS_ALL 0x1fff	   /* others: written as 0, ignored when read */

#define NFMETA_L3_CSUM_MASK (NFMETA_L3_CSUM_GOOD | NFMETA_L3_CSUM_BAD)
#define NFMETA_L4_CSUM_MASK (NFMETA_L4_CSUM_GOOD | NFMETA_L4_CSUM_BAD)
#define NFMETA_FRAG_MASK (NFMETA_FRAG_FIRST | NFMETA_FRAG_LATER)

#define NFMETA_ACTION_NONE 0	/* nothing decided */
#define NFMETA_ACTION_FORWARD 1 /* forward, inspection not asked for */
#define NFMETA_ACTION_DROP 2
#define NFMETA_ACTION_INSPECT 3
#define NFMETA_ACTION_SHUNT 4 /* later packets of the flow pass by the NF */

/* ---- Where the record of an mbuf is ------------------------------------- */

#define NFMETA_PLACE_AUTO 0	/* asks for a choice; never published */
#define NFMETA_PLACE_DYNFIELD 1 /* mbuf dynamic field, 16 (or 32) bytes */
#define NFMETA_PLACE_UDATA64 2	/* the word alone, in the room of the old udata64 */
#define NFMETA_PLACE_HEADROOM 3 /* 64 bytes from buf_addr on, seal inside */

#define NFMETA_HEADROOM_ROOM 64 /* bytes of headroom that NFMETA_PLACE_HEADROOM takes */

/*
 * The seal proves that a record still belongs to the packet it was made for:
 * it covers the record, the key, and the packet's start and length.  16 bits
 * beside a dynamic field; 32 bits, bytes 28-31 of the record, in headroom.
 */
struct nfmeta_field {
	uint64_t flag;	      /* the one bit of ol_flags that says "record present" */
	uint64_t key;	      /* mixed into every seal; drawn when the field is registered */
	uint16_t offset;      /* of the record: from the mbuf, HEADROOM: from buf_addr */
	uint16_t seal_offset; /* of the seal: likewise */
	uint8_t placement;    /* NFMETA_PLACE_* */
	uint8_t size;	      /* bytes of record there are */
	uint8_t reserved[10];
};

/* ---- Canonical flow key -------------------------------------------------- */

/*
 * Both directions of a flow give the same 48 bytes.  The two ends (address and
 * port together) are sorted as one unit, so distinct flows stay distinct.
 * Compare with memcmp; every byte that is not used is zero.
 */
struct nfmeta_flow_key {
	uint8_t addr_a[16]; /* lower end; IPv4 in the first 4 bytes; network order */
	uint8_t addr_b[16]; /* higher end */
	uint8_t port_a[2];  /* network order; ICMP echo: the identifier, in both */
	uint8_t port_b[2];  /* 0 for later fragments and other protocols */
	uint8_t vlan[2][2]; /* VLAN ids outer, inner; network order; 0 if not in the key */
	uint8_t proto;	    /* IP protocol behind all extension headers */
	uint8_t ip_version; /* 4 or 6; 0: not IP, the whole key is zero */
	uint8_t fragment;   /* 1: later fragment (no ports), else 0 */
	uint8_t reserved;
	uint8_t tenant[4]; /* network order; 0 none */
};

/* ---- A link, as its primary publishes it -------------------------------- */

/* What an NF wants done with a packet; the low 3 bits of an up-ring element. */
#define NFMETA_FORWARD 0  /* pass it on */
#define NFMETA_DROP 1	  /* do not pass it on; the upfront NF frees it */
#define NFMETA_BACKWARD 2 /* send it back where it came from */
#define NFMETA_META 3	  /* no packet: a meta packet, see "Flow state"; down rings have it, too */
#define NFMETA_INJECTED 4 /* bit: was a blank, was filled by the NF */
#define NFMETA_HOW_MASK 7

/* What a full link does with a packet; see nfmeta_send_burst(). */
#define NFMETA_FULL_DROP 1   /* caller drops it; counted */
#define NFMETA_FULL_WAIT 2   /* wait a bounded time first */
#define NFMETA_FULL_BYPASS 3 /* caller forwards it uninspected (fail-open); counted */

#define NFMETA_NAME_SIZE 32	/* bytes of a name field, with the closing zero */
#define NFMETA_LINK_NAME_MAX 15 /* letters, digits, '_', '-', '.' */
#define NFMETA_QUEUES_MAX 64
#define NFMETA_LINK_MAGIC UINT64_C(0x314b4e4c464e2d31) /* "1-NFLNK1" */
#define NFMETA_MBUF_POINTS 16

#define NFMETA_LINK_BUILDING 0
#define NFMETA_LINK_READY 1
#define NFMETA_LINK_CLOSING 2

#define NFMETA_QUEUE_FREE 0
#define NFMETA_QUEUE_TAKEN 1
#define NFMETA_QUEUE_DEAD 2 /* the primary takes back what a dead NF had */

/* One per queue.  Each 64-byte line has one writer. */
struct nfmeta_shared_queue {
	/* bytes 0-127: written once by the primary */
	char down[NFMETA_NAME_SIZE];  /* ring: packets to the NF */
	char up[NFMETA_NAME_SIZE];    /* ring: packets back, disposition in the low bits */
	char blank[NFMETA_NAME_SIZE]; /* ring: blanks for injection; "" if there is none */
	/* since ABI 1.1: number of the struct that serves the queue now, because an NF stood
	   still and was cut off; 0: this one does */
	uint32_t moved;
	uint8_t reserved0[28];
	/* bytes 128-191: written by the NF */
	uint32_t state;	    /* NFMETA_QUEUE_* */
	uint32_t epoch;	    /* attaches so far; the present NF's number */
	uint64_t heartbeat; /* counts up when the NF receives or checks */
	uint64_t received;  /* packets taken from the down ring since the link was made */
	uint64_t returned;  /* packets given to the up ring, injected ones not counted */
	uint64_t blanks;    /* blanks taken */
	uint64_t injected;  /* blanks given back, filled or not */
	/* since ABI 1.1 */
	uint64_t meta_received; /* of received: meta packets */
	uint64_t meta_returned; /* of returned: meta packets */
	/* bytes 192-255: written by the primary */
	uint64_t sent;	    /* packets put on the down ring */
	uint64_t refused;   /* packets not accepted by a full link */
	uint64_t collected; /* packets taken from the up ring, injected ones not counted */
	uint64_t stocked;   /* blanks put on the blank ring */
	uint64_t unstocked; /* blanks taken from the up ring, filled or not */
	/* since ABI 1.1 */
	uint64_t meta_sent;	 /* of sent: meta packets */
	uint64_t meta_collected; /* of collected: meta packets */
	uint8_t reserved2[8];
	/* since ABI 1.1; there if flow_carrier is not 0 */
	/* bytes 256-319: written once by the primary */
	char flow_down[NFMETA_NAME_SIZE]; /* ring of 8-byte words: messages to the NF; or "" */
	char flow_up[NFMETA_NAME_SIZE];	  /* ring of 8-byte words: messages back; or "" */
	/* bytes 320-383: written by the NF, seldom; read by the primary for every message */
	uint64_t flow_types; /* bit 1 << type: the NF wants such messages; 0: none at all */
	uint8_t reserved3[56];
	/* bytes 384-447: written by the NF */
	uint64_t flow_seen;    /* sequence of the last message it took in order */
	uint64_t flow_replies; /* messages it put on the way up */
	uint8_t reserved4[48];
	/* bytes 448-511: written by the primary */
	uint64_t flow_sent;	 /* sequence of the last message on its way, given up ones too */
	uint64_t flow_lost;	 /* messages given up: the NF has to be told the whole state anew */
	uint64_t flow_collected; /* messages taken from the way up */
	uint8_t reserved5[40];
};

/*
 * The handshake: memzone "nfmeta." + link name.  queue_count structs
 * nfmeta_shared_queue follow at queue_offset, queue_size bytes apart.
 */
struct nfmeta_shared_link {
	uint64_t magic; /* NFMETA_LINK_MAGIC */
	uint16_t abi_major;
	uint16_t abi_minor;
	uint32_t size;		    /* bytes of the memzone in use */
	uint64_t features_required; /* an NF that does not know one of these refuses */
	uint64_t features_offered;
	uint32_t instance; /* drawn anew for every link made; never 0 */
	uint32_t state;	   /* NFMETA_LINK_* */
	uint16_t queue_count;
	uint16_t queue_size;
	uint16_t queue_offset;
	uint8_t when_full; /* NFMETA_FULL_* */
	uint8_t reserved0;
	uint32_t ring_size; /* packets that can be at the NF per queue, in rings and hands */
	uint32_t blanks;    /* blanks that can be at the NF per queue */
	struct nfmeta_field field;
	char name[NFMETA_NAME_SIZE];
	char library_version[NFMETA_NAME_SIZE];
	char dpdk_version[NFMETA_NAME_SIZE];
	char pool_name[NFMETA_NAME_SIZE]; /* "" if none was given */
	char pool_ops[NFMETA_NAME_SIZE];
	/* size of struct rte_mbuf, then the offsets listed in bindings-spec */
	uint16_t mbuf_layout[NFMETA_MBUF_POINTS];
	/* since ABI 1.1 */
	char flow_table[NFMETA_NAME_SIZE]; /* memzone of the shared flow table; "": none */
	uint32_t flow_ring;		   /* words that a flow ring holds; 0: there is none */
	uint8_t flow_carrier;		   /* NFMETA_CARRIER_*; 0: no flow state on this link */
	uint8_t reserved1[67];
	/* bytes 384-447: written by the primary while the link lives */
	uint64_t heartbeat;
	uint8_t reserved2[120];
};

/* Bits of features_required and features_offered. */
#define NFMETA_FEATURE_INBAND UINT64_C(1) /* meta packets on the down ring */

/* ---- Flow state: messages -------------------------------------------------- */

/*
 * How the messages of a link travel.  What they say is the same.
 * A message is a struct nfmeta_flow_batch and, behind it, count entries of
 * entry_size bytes each, all of one type.
 */
#define NFMETA_CARRIER_RING 1	/* a ring per queue and direction, served before packets */
#define NFMETA_CARRIER_INBAND 2 /* meta packets between the packets */
#define NFMETA_CARRIER_TABLE 3	/* down: nothing travels, the table is read; up: a ring */

struct nfmeta_flow_batch {
	uint32_t magic; /* NFMETA_FLOW_MAGIC */
	uint8_t abi;	/* NFMETA_ABI_MAJOR */
	uint8_t type;	/* NFMETA_MSG_* */
	uint8_t flags;	/* NFMETA_MSG_FIRST ... */
	uint8_t reserved;
	uint16_t count;	     /* entries behind this header */
	uint16_t entry_size; /* bytes each; a multiple of 8; may be more than is known here */
	uint16_t source;     /* queue of the link that it belongs to */
	uint16_t ask;	     /* RESYNC: its number; SNAPSHOT: the number it answers; else 0 */
	uint32_t instance;   /* of the link */
	uint32_t epoch;	     /* of the NF: which attach of the queue this is for, or from */
	uint64_t seq;	     /* 1, 2, 3 ... per queue and direction; see bindings-spec */
	uint64_t barrier;    /* down: not before so many packets of the queue were received */
};

#define NFMETA_FLOW_MAGIC UINT32_C(0x314c464e) /* "NFL1" */
#define NFMETA_FLOW_BYTES 2048		       /* count * entry_size is at most this */
#define NFMETA_FLOW_MESSAGE_BYTES (40 + NFMETA_FLOW_BYTES)

/* Down: from the upfront NF, which owns the flows.     entries */
#define NFMETA_MSG_NEW 1       /* flows began		nfmeta_flow_state */
#define NFMETA_MSG_UPDATE 2    /* application, action	nfmeta_flow_state */
#define NFMETA_MSG_DELETE 3    /* flows ended		nfmeta_flow_delete */
#define NFMETA_MSG_COUNTERS 4  /* what the NF did not get	nfmeta_flow_counters */
#define NFMETA_MSG_SNAPSHOT 5  /* flows there are	nfmeta_flow_state */
#define NFMETA_MSG_RESET 6     /* all flows ended	none */
#define NFMETA_MSG_HEARTBEAT 7 /* wants an ACK		none */
/* Up: from the NF. */
#define NFMETA_MSG_VERDICT 16 /* what is to happen	nfmeta_flow_verdict */
#define NFMETA_MSG_LOAD 17    /* how busy it is		nfmeta_flow_load, one */
#define NFMETA_MSG_RESYNC 18  /* a message is missing	nfmeta_flow_mark, one */
#define NFMETA_MSG_ACK 19     /* all up to here is done	nfmeta_flow_mark, one */
/* Bit: who does not know the type skips it.  Without it: refuses it. */
#define NFMETA_MSG_OPTIONAL 0x80
/* From here to 0xff: optional types of users' own, by agreement of both sides. */
#define NFMETA_MSG_OWN 0xe0

#define NFMETA_MSG_FIRST 0x01 /* SNAPSHOT: the first message of one */
#define NFMETA_MSG_LAST 0x02  /* SNAPSHOT: the last one; may be the first, too */

struct nfmeta_flow_state {
	uint32_t flow_id;
	uint16_t flow_gen;
	uint8_t action; /* NFMETA_ACTION_* */
	uint8_t reserved1;
	uint32_t app_id; /* as in the record; 0 not known (yet) */
	uint8_t reserved2[4];
};

struct nfmeta_flow_delete {
	uint32_t flow_id;
	uint16_t flow_gen;
	uint16_t reason; /* NFMETA_END_* */
};

#define NFMETA_END_NONE 0    /* not said */
#define NFMETA_END_TIMEOUT 1 /* idle for too long */
#define NFMETA_END_CLOSED 2  /* TCP: FIN from both ends */
#define NFMETA_END_RESET 3   /* TCP: RST */
#define NFMETA_END_EVICTED 4 /* the table was full, this had to make room */
#define NFMETA_END_REUSED 5  /* the same tuple began again */
#define NFMETA_END_STOPPED 6 /* the upfront NF ends */

/* [0]: in the direction of the flow's first packet, [1]: against it */
struct nfmeta_flow_counters {
	uint32_t flow_id;
	uint16_t flow_gen;
	uint8_t reserved[2];
	uint64_t packets[2]; /* of the flow, that passed by this NF so far */
	uint64_t bytes[2];   /* whole packets from the Ethernet header on */
};

struct nfmeta_flow_verdict {
	uint32_t flow_id;
	uint16_t flow_gen;
	uint8_t verdict; /* NFMETA_ACTION_FORWARD, _DROP, _INSPECT or _SHUNT */
	uint8_t flags;	 /* NFMETA_VERDICT_STICKY */
	uint32_t after;	 /* SHUNT: after so many more packets of the flow; else 0 */
	uint32_t ttl;	 /* seconds it holds; 0: as long as the flow lives */
	uint16_t who;	 /* the NF's own number for who says so (rule set, module) */
	uint16_t why;	 /* the NF's own number for the reason */
	uint8_t reserved[4];
};

#define NFMETA_VERDICT_STICKY 0x01 /* only a sticky verdict replaces it */

struct nfmeta_flow_load {
	uint32_t busy;	   /* of the NF's time, in 1/1000 */
	uint32_t flows;	   /* that it keeps state for */
	uint64_t overload; /* packets it let pass unseen because it was too busy, so far */
};

struct nfmeta_flow_mark {
	uint64_t seq; /* RESYNC: the next one that was expected; ACK: the last one that is done */
};

/* ---- Flow state: the shared table -------------------------------------------- */

/*
 * Memzone: a struct nfmeta_shared_table, then flows entries of 64 bytes.  The
 * flow id is the index.  Only the primary writes.
 *
 * seq, a seqlock: the writer makes it odd, writes, makes it even again.  A reader
 * that finds it odd, or changed behind its copy, reads again.  Each counter is
 * one 8-byte store and may change without seq.
 */
struct nfmeta_table_flow {
	uint32_t seq;
	uint16_t flow_gen;
	uint8_t state; /* NFMETA_TABLE_*, NFMETA_TABLE_REVERSE, action << 4; 0: no flow */
	uint8_t proto; /* as in the flow key */
	uint32_t app_id;
	/* the canonical key: lower end a, higher end b; network order */
	uint8_t port_a[2];
	uint8_t port_b[2];
	uint8_t addr_a[16]; /* IPv4: as IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) */
	uint8_t addr_b[16];
	/* packets << 36 | bytes; a part that is full stays at its maximum */
	uint64_t from_a; /* packets that end a sent */
	uint64_t from_b;
};

#define NFMETA_TABLE_NONE 0	   /* no flow has this id now */
#define NFMETA_TABLE_OPEN 1	   /* packets of one direction were seen */
#define NFMETA_TABLE_ESTABLISHED 2 /* ... of both */
#define NFMETA_TABLE_CLOSING 3	   /* TCP: FIN from both ends, or RST */
#define NFMETA_TABLE_STATE_MASK 0x07
#define NFMETA_TABLE_REVERSE 0x08 /* end b sent the flow's first packet */
#define NFMETA_TABLE_ACTION_SHIFT 4

#define NFMETA_TABLE_PACKETS_SHIFT 36
#define NFMETA_TABLE_PACKETS_MAX ((UINT64_C(1) << 28) - 1)
#define NFMETA_TABLE_BYTES_MAX ((UINT64_C(1) << 36) - 1)

#define NFMETA_TABLE_MAGIC UINT64_C(0x314c42544d464e2d) /* "-NFMTBL1" */

struct nfmeta_shared_table {
	uint64_t magic; /* NFMETA_TABLE_MAGIC */
	uint16_t abi_major;
	uint16_t abi_minor;
	uint16_t entry_size;   /* 64 */
	uint16_t entry_offset; /* of entry 0, from the start of the memzone */
	uint32_t flows;	       /* entries there are */
	uint32_t instance;     /* drawn anew for every table made; never 0 */
	uint8_t reserved[40];
};

/* ---- Errors -------------------------------------------------------------- */

/*
 * Functions return 0, a count, or one of these negated, or a negated errno.
 * nfmeta_error() has the sentence.
 */
#define NFMETA_ENOPRIMARY 2001	 /* no primary runs under this file prefix */
#define NFMETA_EPRIMARYDEAD 2002 /* only the files of a dead primary are there */
#define NFMETA_EDPDKVERSION 2003 /* the two sides run different DPDK versions */
#define NFMETA_EABI 2004	 /* the two sides speak different ABI majors */
#define NFMETA_EMBUF 2005	 /* the two sides have different rte_mbuf layouts */
#define NFMETA_EPOOLOPS 2006	 /* the pool's ops mean something else on this side */
#define NFMETA_EROLE 2007	 /* not for this kind of process */
#define NFMETA_EQUEUETAKEN 2008	 /* another NF serves this queue */
#define NFMETA_ENOHUGE 2009	 /* no hugepages, or too little memory */
#define NFMETA_EADDRESS 2010	 /* the primary's addresses are in use on this side */
#define NFMETA_EFEATURE 2011	 /* the link requires a feature not known here */
#define NFMETA_ENOLINK 2012	 /* no link of this name within the time given */
#define NFMETA_EFORMAT 2013	 /* the bytes are not a handshake */
#define NFMETA_ENOROOM 2014	 /* no placement fits into the mbuf */
#define NFMETA_EFIELD 2015	 /* the dynamic field exists with another shape */
#define NFMETA_ECLOSING 2016	 /* the primary is closing the link */
#define NFMETA_EPRIMARYGONE 2017 /* the primary died while attached */
#define NFMETA_EDEADNF 2018	 /* an NF died on the queue, what it had is not reclaimed yet */
#define NFMETA_EEAL 2019	 /* EAL failed for another reason */
#define NFMETA_EMESSAGE 2020	 /* a message that must be understood is not known here */
#define NFMETA_EGAP 2021	 /* messages were given up: begin the snapshot anew */
#define NFMETA_ENOFLOW 2022	 /* the link was made without a carrier for flow state */
#define NFMETA_EFENCED 2023	 /* this NF stood still and was cut off */

/* ---- Proof --------------------------------------------------------------- */

#define NFMETA_AT(s, f, off) NFMETA_STATIC_ASSERT(NFMETA_OFFSET(s, f) == (off), #s "." #f)

NFMETA_AT(nfmeta_record, abi, 0);
NFMETA_AT(nfmeta_record, size, 1);
NFMETA_AT(nfmeta_record, flags, 2);
NFMETA_AT(nfmeta_record, flow_id, 4);
NFMETA_AT(nfmeta_record, l3_off, 8);
NFMETA_AT(nfmeta_record, l4_off, 10);
NFMETA_AT(nfmeta_record, payload_off, 12);
NFMETA_AT(nfmeta_record, flow_gen, 14);
NFMETA_AT(nfmeta_record, app_id, 16);
NFMETA_AT(nfmeta_record, port, 20);
NFMETA_AT(nfmeta_record, vlan_outer, 22);
NFMETA_AT(nfmeta_record, vlan_inner, 24);
NFMETA_AT(nfmeta_record, vlan_count, 26);
NFMETA_AT(nfmeta_record, action, 27);
NFMETA_AT(nfmeta_record, seal, 28);
NFMETA_AT(nfmeta_record, timestamp, 32);
NFMETA_AT(nfmeta_record, tenant, 40);
NFMETA_AT(nfmeta_record, chain, 44);
NFMETA_AT(nfmeta_record, tunnels, 45);
NFMETA_AT(nfmeta_record, reserved1, 46);
NFMETA_AT(nfmeta_record, user, 48);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_record) == 64, "nfmeta_record");

NFMETA_AT(nfmeta_field, flag, 0);
NFMETA_AT(nfmeta_field, key, 8);
NFMETA_AT(nfmeta_field, offset, 16);
NFMETA_AT(nfmeta_field, seal_offset, 18);
NFMETA_AT(nfmeta_field, placement, 20);
NFMETA_AT(nfmeta_field, size, 21);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_field) == 32, "nfmeta_field");

NFMETA_AT(nfmeta_flow_key, addr_b, 16);
NFMETA_AT(nfmeta_flow_key, port_a, 32);
NFMETA_AT(nfmeta_flow_key, port_b, 34);
NFMETA_AT(nfmeta_flow_key, vlan, 36);
NFMETA_AT(nfmeta_flow_key, proto, 40);
NFMETA_AT(nfmeta_flow_key, ip_version, 41);
NFMETA_AT(nfmeta_flow_key, fragment, 42);
NFMETA_AT(nfmeta_flow_key, tenant, 44);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_key) == 48, "nfmeta_flow_key");

NFMETA_AT(nfmeta_shared_queue, up, 32);
NFMETA_AT(nfmeta_shared_queue, blank, 64);
NFMETA_AT(nfmeta_shared_queue, moved, 96);
NFMETA_AT(nfmeta_shared_queue, state, 128);
NFMETA_AT(nfmeta_shared_queue, epoch, 132);
NFMETA_AT(nfmeta_shared_queue, heartbeat, 136);
NFMETA_AT(nfmeta_shared_queue, received, 144);
NFMETA_AT(nfmeta_shared_queue, returned, 152);
NFMETA_AT(nfmeta_shared_queue, blanks, 160);
NFMETA_AT(nfmeta_shared_queue, injected, 168);
NFMETA_AT(nfmeta_shared_queue, sent, 192);
NFMETA_AT(nfmeta_shared_queue, refused, 200);
NFMETA_AT(nfmeta_shared_queue, collected, 208);
NFMETA_AT(nfmeta_shared_queue, stocked, 216);
NFMETA_AT(nfmeta_shared_queue, unstocked, 224);
NFMETA_AT(nfmeta_shared_queue, flow_down, 256);
NFMETA_AT(nfmeta_shared_queue, flow_up, 288);
NFMETA_AT(nfmeta_shared_queue, flow_types, 320);
NFMETA_AT(nfmeta_shared_queue, flow_seen, 384);
NFMETA_AT(nfmeta_shared_queue, flow_replies, 392);
NFMETA_AT(nfmeta_shared_queue, meta_received, 176);
NFMETA_AT(nfmeta_shared_queue, meta_returned, 184);
NFMETA_AT(nfmeta_shared_queue, flow_sent, 448);
NFMETA_AT(nfmeta_shared_queue, flow_lost, 456);
NFMETA_AT(nfmeta_shared_queue, flow_collected, 464);
NFMETA_AT(nfmeta_shared_queue, meta_sent, 232);
NFMETA_AT(nfmeta_shared_queue, meta_collected, 240);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_shared_queue) == 512, "nfmeta_shared_queue");

NFMETA_AT(nfmeta_shared_link, abi_major, 8);
NFMETA_AT(nfmeta_shared_link, abi_minor, 10);
NFMETA_AT(nfmeta_shared_link, size, 12);
NFMETA_AT(nfmeta_shared_link, features_required, 16);
NFMETA_AT(nfmeta_shared_link, features_offered, 24);
NFMETA_AT(nfmeta_shared_link, instance, 32);
NFMETA_AT(nfmeta_shared_link, state, 36);
NFMETA_AT(nfmeta_shared_link, queue_count, 40);
NFMETA_AT(nfmeta_shared_link, queue_size, 42);
NFMETA_AT(nfmeta_shared_link, queue_offset, 44);
NFMETA_AT(nfmeta_shared_link, when_full, 46);
NFMETA_AT(nfmeta_shared_link, ring_size, 48);
NFMETA_AT(nfmeta_shared_link, blanks, 52);
NFMETA_AT(nfmeta_shared_link, field, 56);
NFMETA_AT(nfmeta_shared_link, name, 88);
NFMETA_AT(nfmeta_shared_link, library_version, 120);
NFMETA_AT(nfmeta_shared_link, dpdk_version, 152);
NFMETA_AT(nfmeta_shared_link, pool_name, 184);
NFMETA_AT(nfmeta_shared_link, pool_ops, 216);
NFMETA_AT(nfmeta_shared_link, mbuf_layout, 248);
NFMETA_AT(nfmeta_shared_link, flow_table, 280);
NFMETA_AT(nfmeta_shared_link, flow_ring, 312);
NFMETA_AT(nfmeta_shared_link, flow_carrier, 316);
NFMETA_AT(nfmeta_shared_link, heartbeat, 384);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_shared_link) == 512, "nfmeta_shared_link");

NFMETA_AT(nfmeta_flow_batch, abi, 4);
NFMETA_AT(nfmeta_flow_batch, type, 5);
NFMETA_AT(nfmeta_flow_batch, flags, 6);
NFMETA_AT(nfmeta_flow_batch, count, 8);
NFMETA_AT(nfmeta_flow_batch, entry_size, 10);
NFMETA_AT(nfmeta_flow_batch, source, 12);
NFMETA_AT(nfmeta_flow_batch, ask, 14);
NFMETA_AT(nfmeta_flow_batch, instance, 16);
NFMETA_AT(nfmeta_flow_batch, epoch, 20);
NFMETA_AT(nfmeta_flow_batch, seq, 24);
NFMETA_AT(nfmeta_flow_batch, barrier, 32);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_batch) == 40, "nfmeta_flow_batch");

NFMETA_AT(nfmeta_flow_state, flow_gen, 4);
NFMETA_AT(nfmeta_flow_state, action, 6);
NFMETA_AT(nfmeta_flow_state, app_id, 8);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_state) == 16, "nfmeta_flow_state");

NFMETA_AT(nfmeta_flow_delete, flow_gen, 4);
NFMETA_AT(nfmeta_flow_delete, reason, 6);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_delete) == 8, "nfmeta_flow_delete");

NFMETA_AT(nfmeta_flow_counters, flow_gen, 4);
NFMETA_AT(nfmeta_flow_counters, packets, 8);
NFMETA_AT(nfmeta_flow_counters, bytes, 24);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_counters) == 40, "nfmeta_flow_counters");

NFMETA_AT(nfmeta_flow_verdict, flow_gen, 4);
NFMETA_AT(nfmeta_flow_verdict, verdict, 6);
NFMETA_AT(nfmeta_flow_verdict, flags, 7);
NFMETA_AT(nfmeta_flow_verdict, after, 8);
NFMETA_AT(nfmeta_flow_verdict, ttl, 12);
NFMETA_AT(nfmeta_flow_verdict, who, 16);
NFMETA_AT(nfmeta_flow_verdict, why, 18);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_verdict) == 24, "nfmeta_flow_verdict");

NFMETA_AT(nfmeta_flow_load, flows, 4);
NFMETA_AT(nfmeta_flow_load, overload, 8);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_load) == 16, "nfmeta_flow_load");

NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_flow_mark) == 8, "nfmeta_flow_mark");

NFMETA_AT(nfmeta_table_flow, flow_gen, 4);
NFMETA_AT(nfmeta_table_flow, state, 6);
NFMETA_AT(nfmeta_table_flow, proto, 7);
NFMETA_AT(nfmeta_table_flow, app_id, 8);
NFMETA_AT(nfmeta_table_flow, port_a, 12);
NFMETA_AT(nfmeta_table_flow, port_b, 14);
NFMETA_AT(nfmeta_table_flow, addr_a, 16);
NFMETA_AT(nfmeta_table_flow, addr_b, 32);
NFMETA_AT(nfmeta_table_flow, from_a, 48);
NFMETA_AT(nfmeta_table_flow, from_b, 56);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_table_flow) == 64, "nfmeta_table_flow");

NFMETA_AT(nfmeta_shared_table, abi_major, 8);
NFMETA_AT(nfmeta_shared_table, abi_minor, 10);
NFMETA_AT(nfmeta_shared_table, entry_size, 12);
NFMETA_AT(nfmeta_shared_table, entry_offset, 14);
NFMETA_AT(nfmeta_shared_table, flows, 16);
NFMETA_AT(nfmeta_shared_table, instance, 20);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_shared_table) == 64, "nfmeta_shared_table");

#endif
