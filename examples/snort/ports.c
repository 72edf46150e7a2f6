/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "nfmeta-daq.h"

/*
 * "dpdk:DEVICE" or "dpdk:DEVICE::DEVICE": ports of this process's own, no upfront NF. DEVICE
 * is as EAL has it in --vdev or -a. Of two ports what comes in at one goes out at the
 * other; of one what comes in ends here. An instance has the queue of its number on each.
 */

#define MBUFS 16383
#define DESCRIPTORS 1024
#define ARGS_MAX 32

/* Of the process: the first instance that starts opens the ports, the last one closes them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char opened[1024]; /* input that EAL was started with; "": not started */
static uint16_t ports[2], n_ports;
static struct rte_mempool *pool;
static unsigned int users;

/* ---- EAL ---------------------------------------------------------------------- */

static bool
is_pci(const char *device)
{
	return isxdigit((unsigned char)*device) && strchr(device, ':') != NULL;
}

struct args {
	int n;
	char *v[ARGS_MAX];
};

static void
arg(struct args *a, const char *text)
{
	if (a->n < ARGS_MAX - 1)
		a->v[a->n++] = strdup(text); /* EAL keeps pointers into it */
}

static char run_dir[PATH_MAX];

/* EAL leaves the folder, empty, also when it did not start. */
static void
cleanup(void)
{
	if (opened[0] != '\0')
		rte_eal_cleanup();
	rmdir(run_dir);
}

static int
start_eal(struct core *c, char *const *devices, uint16_t n)
{
	char *more = strdup(c->o.eal), *rest = more, *word;
	static struct args a; /* EAL is started once */
	bool pci = false;
	uint16_t i;
	int rc;

	arg(&a, "daq_nfmeta");
	arg(&a, "--file-prefix");
	arg(&a, c->o.file_prefix);
	arg(&a, "--in-memory"); /* nobody attaches, nothing is left behind */
	arg(&a, "--log-level=error");
	for (i = 0; i < n; i++) {
		pci |= is_pci(devices[i]);
		arg(&a, is_pci(devices[i]) ? "-a" : "--vdev");
		arg(&a, devices[i]);
	}
	if (!pci)
		arg(&a, "--no-pci");
	while ((word = strsep(&rest, " ")) != NULL)
		if (*word != '\0')
			arg(&a, word);
	free(more);
	atexit(cleanup);
	rc = rte_eal_init(a.n, a.v);
	snprintf(run_dir, sizeof(run_dir), "%s", rte_eal_get_runtime_dir());
	if (rc < 0)
		return core_fail(c, "EAL does not start for \"%s\": %s (its own lines are above)",
				 c->o.input, rte_strerror(rte_errno));
	return 0;
}

/* ---- ports -------------------------------------------------------------------------- */

/* Both directions of a flow have to meet the same queue. */
static uint8_t symmetric[64];

static int
open_port(struct core *c, uint16_t port, uint16_t queues)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	uint16_t q, rx = DESCRIPTORS, tx = DESCRIPTORS;
	int rc;

	rc = rte_eth_dev_info_get(port, &info);
	if (rc == 0 && (queues > info.max_rx_queues || queues > info.max_tx_queues))
		return core_fail(c,
				 "port %u of \"%s\" has %u queues at most, %u are wanted (queues,"
				 " instances)",
				 port, c->o.input, RTE_MIN(info.max_rx_queues, info.max_tx_queues),
				 queues);
	if (queues > 1 && info.flow_type_rss_offloads != 0) {
		for (q = 0; q < sizeof(symmetric); q++)
			symmetric[q] = q % 2 == 0 ? 0x6d : 0x5a;
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) &
			info.flow_type_rss_offloads;
		conf.rx_adv_conf.rss_conf.rss_key = symmetric;
		conf.rx_adv_conf.rss_conf.rss_key_len =
			(uint8_t)RTE_MIN(info.hash_key_size, sizeof(symmetric));
	}
	if (rc == 0)
		rc = rte_eth_dev_configure(port, queues, queues, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	for (q = 0; rc == 0 && q < queues; q++) {
		rc = rte_eth_rx_queue_setup(port, q, rx, rte_eth_dev_socket_id(port), NULL, pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(port, q, tx, rte_eth_dev_socket_id(port), NULL);
	}
	if (rc == 0)
		rc = rte_eth_dev_start(port);
	if (rc != 0)
		return core_fail(c, "port %u of \"%s\" does not start: %s", port, c->o.input,
				 rte_strerror(-rc));
	rte_eth_promiscuous_enable(port);
	return 0;
}

/* "a::b" into devices; returns how many, or -1. */
static int
split(struct core *c, char *text, char *devices[2])
{
	char *next = strstr(text, "::");

	devices[0] = text;
	devices[1] = NULL;
	if (next != NULL) {
		*next = '\0';
		devices[1] = next + 2;
	}
	if (*devices[0] == '\0' || (devices[1] != NULL && *devices[1] == '\0') ||
	    (devices[1] != NULL && strstr(devices[1], "::") != NULL))
		return core_fail(c, "-i %s: dpdk:DEVICE or dpdk:DEVICE::DEVICE is wanted",
				 c->o.input);
	if (devices[1] == NULL && c->o.is_inline)
		return core_fail(c,
				 "-i %s: inline wants two ports, dpdk:DEVICE::DEVICE: what comes"
				 " in at one goes out at the other",
				 c->o.input);
	return devices[1] != NULL ? 2 : 1;
}

static int
find_port(struct core *c, const char *device, uint16_t *port)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return 0;
	return core_fail(c,
			 "DPDK made no port of \"%s\": is its driver there, and for a NIC, is it"
			 " bound to vfio-pci?",
			 device);
}

static int
open_all(struct core *c)
{
	char text[1024], *devices[2];
	int n, i;

	snprintf(text, sizeof(text), "%s", c->o.input + strlen("dpdk:"));
	n = split(c, text, devices);
	if (n < 0)
		return -1;
	if (opened[0] == '\0') {
		if (rte_lcore_count() != 0)
			return core_fail(c, "something else in this process has DPDK already");
		if (start_eal(c, devices, (uint16_t)n) != 0)
			return -1;
		strcpy(opened, c->o.input);
	} else if (strcmp(opened, c->o.input) != 0) {
		return core_fail(c,
				 "this process has \"%s\" open already: other ports want a process"
				 " of their own",
				 opened);
	}
	if (users > 0)
		return 0;
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create("daq_nfmeta", MBUFS, 256, 0,
					       RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id());
	if (pool == NULL)
		return core_fail(c, "no memory for %d packets: %s", MBUFS, rte_strerror(rte_errno));
	for (i = 0; i < n; i++)
		if (find_port(c, devices[i], &ports[i]) != 0 ||
		    open_port(c, ports[i], (uint16_t)c->o.queues) != 0)
			return -1;
	n_ports = (uint16_t)n;
	return 0;
}

static int
start(struct core *c)
{
	int rc;

	if (c->o.instance + c->o.queue >= c->o.queues)
		return core_fail(c, "queue %u of %u: there are fewer (queues)",
				 c->o.instance + c->o.queue, c->o.queues);
	pthread_mutex_lock(&lock);
	rc = open_all(c);
	if (rc == 0)
		users++;
	pthread_mutex_unlock(&lock);
	if (rc != 0)
		return rc;
	c->queue = (uint16_t)(c->o.queue + c->o.instance);
	c->ports = n_ports;
	memcpy(c->port, ports, sizeof(ports));
	c->pool = pool;
	c->bypass = false;
	c->came_before = c->c.packets;
	return 0;
}

static void
stop(struct core *c)
{
	uint16_t i;

	(void)c;
	pthread_mutex_lock(&lock);
	if (--users == 0)
		for (i = 0; i < n_ports; i++)
			rte_eth_dev_stop(ports[i]);
	pthread_mutex_unlock(&lock);
}

/* ---- packets --------------------------------------------------------------------------- */

static uint16_t
receive(struct core *c, struct rte_mbuf **pkts)
{
	uint16_t n, i;

	if (c->ports == 1)
		return rte_eth_rx_burst(c->port[0], c->queue, pkts, BURST);
	for (i = 0; i < 2; i++) { /* by turns */
		c->turn ^= 1;
		n = rte_eth_rx_burst(c->port[c->turn], c->queue, pkts, BURST);
		if (n > 0)
			return n;
	}
	return 0;
}

/* Where a packet goes: the other port; if there is none, only what the engine made goes out. */
static int
way_out(const struct core *c, const struct rte_mbuf *m, uint8_t how)
{
	bool from_second = c->ports == 2 && m->port == c->port[1];

	if ((how & NFMETA_DROP) != 0)
		return -1;
	if (c->ports == 1)
		return (how & NFMETA_INJECTED) != 0 ? 0 : -1;
	if (!c->o.is_inline && (how & NFMETA_INJECTED) == 0)
		return -1;
	return (how & NFMETA_BACKWARD) != 0 ? from_second : !from_second;
}

static void
flush(struct core *c)
{
	uint16_t i, sent;
	int way;

	for (i = 0; i < c->backs; i++) {
		way = way_out(c, c->back[i], c->how[i]);
		sent = way >= 0 ? rte_eth_tx_burst(c->port[way], c->queue, &c->back[i], 1) : 0;
		if (sent == 0) {
			c->c.not_sent += way >= 0;
			rte_pktmbuf_free(c->back[i]);
		}
	}
}

static struct rte_mbuf *
blank(struct core *c)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(c->pool);

	if (m != NULL)
		m->port = c->port[0];
	return m;
}

static int
check(struct core *c)
{
	(void)c;
	return ST_OK;
}

/* The ports' own counters are of all queues: the first instance has them. */
static void
stats(struct core *c, uint64_t *came, uint64_t *lost)
{
	struct rte_eth_stats s;
	uint16_t i;

	*came = c->c.packets - c->came_before;
	*lost = 0;
	for (i = 0; c->o.instance == 0 && i < c->ports; i++)
		if (rte_eth_stats_get(c->port[i], &s) == 0)
			*lost += s.imissed;
	*came += *lost;
}

const struct source source_ports = {
	.start = start,
	.stop = stop,
	.receive = receive,
	.flush = flush,
	.blank = blank,
	.check = check,
	.stats = stats,
};
