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
#define NFMETA_ABI_MINOR 0

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

/* One per queue.  Each 64-byte line has one writer. */
struct nfmeta_shared_queue {
	/* bytes 0-127: written once by the primary */
	char down[NFMETA_NAME_SIZE];  /* ring: packets to the NF */
	char up[NFMETA_NAME_SIZE];    /* ring: packets back, disposition in the low bits */
	char blank[NFMETA_NAME_SIZE]; /* ring: blanks for injection; "" if there is none */
	uint8_t reserved0[32];
	/* bytes 128-191: written by the NF */
	uint32_t state;	    /* NFMETA_QUEUE_* */
	uint32_t epoch;	    /* attaches so far; the present NF's number */
	uint64_t heartbeat; /* counts up when the NF receives or checks */
	uint64_t received;  /* packets taken from the down ring since the link was made */
	uint64_t returned;  /* packets given to the up ring, injected ones not counted */
	uint64_t blanks;    /* blanks taken */
	uint64_t injected;  /* blanks given back, filled or not */
	uint8_t reserved1[16];
	/* bytes 192-255: written by the primary */
	uint64_t sent;	    /* packets put on the down ring */
	uint64_t refused;   /* packets not accepted by a full link */
	uint64_t collected; /* packets taken from the up ring, injected ones not counted */
	uint64_t stocked;   /* blanks put on the blank ring */
	uint64_t unstocked; /* blanks taken from the up ring, filled or not */
	uint8_t reserved2[24];
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
	uint8_t reserved1[104];
	/* bytes 384-447: written by the primary while the link lives */
	uint64_t heartbeat;
	uint8_t reserved2[120];
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
#define NFMETA_EDEADNF 2018	 /* the queue was left by an NF that died */
#define NFMETA_EEAL 2019	 /* EAL failed for another reason */

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
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_shared_queue) == 256, "nfmeta_shared_queue");

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
NFMETA_AT(nfmeta_shared_link, heartbeat, 384);
NFMETA_STATIC_ASSERT(sizeof(struct nfmeta_shared_link) == 512, "nfmeta_shared_link");

#endif
