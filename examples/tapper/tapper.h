/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_TAPPER_H
#define EXAMPLES_TAPPER_H

/*
 * The tapper is an NF for programs that know nothing of DPDK (Zeek, tcpdump, whatever reads
 * by libpcap): it writes a copy of every packet of its queue to a kernel interface, where such
 * a program listens, and gives the packet back to be forwarded. All packets of a flow are on
 * one queue, so N tappers with an interface each spread whole connections over N programs.
 *
 *   main.c   options, the loop, figures     iface.c   the interface
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include <nfmeta/nfmeta.h>

#include "../common/common.h"

#define BURST 32

struct tapper_opts {
	const char *link;
	const char *file_prefix;
	const char *json;
	const char *tap;   /* a tap of this name; NULL: iface */
	const char *iface; /* an interface that is there */
	uint16_t queue;
	uint32_t mtu;	  /* of the tap; 0: as it is */
	uint64_t timeout; /* seconds to wait for primary and link */
	bool quiet;
	bool verbose;
};

/* packets = written + too_big + down + no_room + gone */
struct iface_counts {
	uint64_t written;
	uint64_t too_big; /* for the interface, or in too many pieces */
	uint64_t down;
	uint64_t no_room;
	uint64_t gone; /* the interface was */
};

struct iface {
	int fd;
	bool tap;
	const char *name;
	struct iface_counts c;
};

/* 0, or -1 and the line said, nothing left. */
int iface_open(struct iface *i, const struct tapper_opts *o);
/* A copy of each; n <= BURST. 0, or -1 and the line said: the interface is gone. */
int iface_write(struct iface *i, struct rte_mbuf *const *pkts, uint16_t n);
/* A tap that was made by iface_open() is gone then. */
void iface_close(struct iface *i);

#endif
