/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_BENCH_H
#define NFMETA_BENCH_H

/*
 * bench.h - what the two halves of micro share: micro.c measures packets and
 * records, and has main; flow.c measures flow state.
 */

#include <stdint.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#define BURST 32
#define FLOWS 4096
#define PKT_LEN 64
#define MBUFS 16384
#define ROUNDS_MAX 99

/* Offset of the L4 header in the packets that are made here. */
#define L4_OFF (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))

#define WORK_QUIT UINT32_MAX

/* In a memzone.  The primary gives orders, the secondary carries them out. */
struct control {
	/* written by the primary */
	uint32_t seq; /* number of the order; a new one starts the secondary */
	uint32_t work;
	uint32_t link;
	uint32_t stop; /* the order with this number has ended */
	/* written by the secondary */
	uint32_t done __rte_cache_aligned;
	uint64_t bursts; /* of the order that is done */
	uint64_t packets;
	uint64_t deletes;
	uint64_t idle; /* TSC ticks without a packet */
	uint64_t sum;  /* so that nothing that is read can be left out */
	double ns;     /* what it measured itself */
} __rte_cache_aligned;

struct options {
	const char *json;
	const char *prefix;
	const char *huge_dir;
	unsigned int rounds;
	unsigned int run_ms;
	unsigned int warm_ms;
	int cores[2];
	int write_header;
	int flow; /* flow.c */
};

struct spread {
	double median, min, max;
};

extern struct options opt;
extern struct control *control;
extern struct rte_mbuf *mbufs[MBUFS];

void __rte_noreturn __rte_format_printf(1, 2) die(const char *fmt, ...);
void order(uint32_t work, uint32_t link);
/* Until the secondary has carried out the order. */
void await(void);
void check_child(void);

/* A packet pool, and MBUFS packets of it in mbufs, in no order of addresses. */
struct rte_mempool *make_mbufs(void);

/* Of opt.rounds values, one a round. */
struct spread spread_of(const double *values);
/* Of each round's ratio, as load on the machine differs from round to round. */
struct spread ratio_of(const double *values, const double *base);

void __rte_format_printf(5, 6)
	add_bar(const char *unit, double value, double limit, int at_least, const char *fmt, ...);
void print_bars(void);

/* A JSON file with what is known of the machine in it; the object is left open. */
FILE *json_open(const char *path);
void json_runs(FILE *f, const char *name, const double *values);
void json_spread(FILE *f, struct spread s);
/* The bars, and the end of the object. */
void json_close(FILE *f, const char *path);

static inline uint64_t
ms_to_tsc(unsigned int ms)
{
	return rte_get_tsc_hz() / 1000 * ms;
}

static inline double
tsc_to_ns(uint64_t tsc)
{
	return (double)tsc * 1e9 / (double)rte_get_tsc_hz();
}

/* GCC emits it for no target that DPDK is built for by default. */
static inline void
prefetch_write(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const uint8_t *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

/* ---- flow.c ------------------------------------------------------------------ */

void flow_make(void);	   /* primary, before the secondary looks for what is made */
void flow_measure(void);   /* primary; the secondary is there */
void flow_report(void);	   /* the same, when the secondary has left */
void flow_attach(void);	   /* secondary */
void flow_serve(uint32_t); /* secondary: carry out the order with this number */
void flow_detach(void);

#endif
