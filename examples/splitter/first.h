/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_FIRST_H
#define EXAMPLES_SPLITTER_FIRST_H

/*
 * What is decided at a flow's first packet, and holds as long as the flow lives: the links
 * that it goes by, and its queue at each.
 */

#include <stdbool.h>
#include <stdint.h>

#include <nfmeta/nfmeta.h>

#define LINKS_MAX 8
#define CHAINS_MAX 256

/* Links in the order in which packets go by them. */
struct chain {
	uint8_t n;
	uint8_t mask; /* bit per link */
	uint8_t link[LINKS_MAX];
};

#define CHAIN_ALL 0  /* all links, in the order they were given */
#define CHAIN_NONE 1 /* none: no NF gets the packets */
#define CHAIN_DROP 2 /* nobody gets them */

struct balance;
struct flow;
struct flow_table;
struct policy;

struct first {
	uint8_t links;
	struct balance *balance[LINKS_MAX]; /* by link */
	struct policy *policy;		    /* NULL: all flows go by all links */
	uint16_t nchains;
	struct chain chains[CHAINS_MAX]; /* one that a flow may have is never changed */
};

void first_init(struct first *d, uint8_t links);
/* The number of the chain of these links; -1: there are too many. */
int first_chain(struct first *d, const uint8_t *links, uint8_t n);
/* Its chain. f: begun, with its key and nothing else; r: the packet's, as it was classified. */
void first_packet(const struct first *d, const struct flow_table *t, struct flow *f,
		  const struct nfmeta_record *r);
/* Its queue at each link of its chain: wanted, by link, if there is an NF; NULL: any. */
void first_queues(const struct first *d, const struct flow_table *t, struct flow *f,
		  const uint8_t *wanted);
/* It ends. */
void first_leave(const struct first *d, const struct flow_table *t, struct flow *f);
/* A packet that gets no flow: its chain, its queue at a link. */
uint8_t lone_chain(const struct first *d, const struct nfmeta_flow_key *key,
		   const struct nfmeta_record *r, uint32_t bytes);
uint16_t lone_queue(const struct first *d, const struct nfmeta_flow_key *key, uint8_t link);

#endif
