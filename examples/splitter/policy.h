/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_POLICY_H
#define EXAMPLES_SPLITTER_POLICY_H

/*
 * The user's policy: which flows go by which NFs, by addresses, ports, protocol and VLAN.
 * A flow is looked up once, at its first packet.
 *
 *   policy.c  the file, and what became of it
 *   acl.c     rules as DPDK's rte_acl has them
 */

#include <stdbool.h>
#include <stdint.h>

#include "first.h"

#define POLICY_NAME 32
#define POLICY_LIST 32 /* values of one condition */

/* Of a flow_decision: no NF says so. */
#define POLICY_WHO (UINT16_MAX - 1)

struct net {
	uint8_t version; /* 4, 6; 0: any */
	uint8_t bits;
	uint8_t addr[16];
};

struct range {
	uint16_t low, high;
};

/* Values of a condition; n 0: any. */
struct nets {
	unsigned int n;
	struct net v[POLICY_LIST];
};

struct ranges {
	unsigned int n;
	struct range v[POLICY_LIST];
};

struct policy_rule {
	char name[POLICY_NAME];
	unsigned int line;
	uint8_t chain; /* first.h */
	bool shunt;    /* ... and packets pass by after so many */
	uint32_t after;
	uint16_t slot; /* its counters */
	/* from and to: of the flow's first packet; either: the first of them, at any end */
	bool either_net, either_port;
	struct nets from, to;
	struct ranges from_port, to_port;
	struct ranges vlan; /* VLAN_NONE: no tag */
	struct ranges proto;
};

#define VLAN_NONE 4096

/* What came under a rule; the name outlives the rule. */
struct policy_count {
	char name[POLICY_NAME];
	uint64_t flows;		 /* that ended */
	uint64_t packets, bytes; /* of them, and of what had no flow */
	uint64_t inspected;	 /* of the packets: given to the first NF of the chain */
};

struct rte_acl_ctx;
struct acl {
	struct rte_acl_ctx *ip4, *ip6; /* NULL: no rule can match */
};

struct policy_rules {
	struct policy_rule *rule;
	unsigned int n, room;
	struct policy_rule rest, non_ip;
	struct acl acl;
};

struct policy {
	const char *path;
	const char *const *links; /* names, NULL behind the last */
	struct first *first;
	struct policy_rules rules;
	struct policy_count *counts;
	unsigned int ncounts;
	uint64_t reloads, reloads_failed;
};

struct flow;
struct flow_table;

/* ---- policy.c ------------------------------------------------------------------- */

/* Reads the file; needs no EAL.  NULL: the line said. */
struct policy *policy_open(const char *path, struct first *first, const char *const *links);
/* Makes it ready for policy_find().  0, or -1 and the line said. */
int policy_build(struct policy *p);
/* Once more; what is wrong with it is said, and the old one stays. */
void policy_reload(struct policy *p);
/* The rule of a packet that begins a flow, or has none; reverse: it comes from end b. */
const struct policy_rule *policy_find(const struct policy *p, const struct nfmeta_flow_key *key,
				      bool reverse, const struct nfmeta_record *r);
/* The flow ends. */
void policy_count(struct policy *p, const struct flow_table *t, struct flow *f);
void policy_close(struct policy *p);

/* ---- acl.c -------------------------------------------------------------------------- */

/* 0, or -1 and the line said. */
int acl_build(struct acl *acl, const struct policy_rules *rules, const char *path);
/* Number of the first rule that matches; -1: none. */
int acl_find(const struct acl *acl, const struct nfmeta_flow_key *key, bool reverse, uint16_t vlan);
void acl_free(struct acl *acl);

#endif
