/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "splitter.h"

#define VDEV "net_pcap_splitter"
#define POOL_CACHE 256

int timestamp_offset = -1;
uint64_t timestamp_flag;

/* ---- ports -------------------------------------------------------------------------- */

static int
port_find(const char *option, const char *name, uint16_t *port)
{
	char all[256] = "", one[RTE_ETH_NAME_MAX_LEN];
	uint64_t number;
	uint16_t id;
	char *end;

	number = strtoull(name, &end, 10);
	if (isdigit((unsigned char)name[0]) && *end == '\0' && number < RTE_MAX_ETHPORTS &&
	    rte_eth_dev_is_valid_port((uint16_t)number)) {
		*port = (uint16_t)number;
		return 0;
	}
	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return 0;
	RTE_ETH_FOREACH_DEV (id) {
		if (rte_eth_dev_get_name_by_port(id, one) == 0)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), " %u=%s", id, one);
	}
	return complain("%s \"%s\": there is no such port; there %s%s; EAL options behind \"--\""
			" make ports (--vdev, -a)",
			option, name, all[0] != '\0' ? "are:" : "are none", all);
}

/* One queue each way; promiscuous, where the device can. */
static int
port_start(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf;
	struct rte_eth_dev_info info;
	int rc;

	memset(&conf, 0, sizeof(conf));
	rc = rte_eth_dev_info_get(port, &info);
	if (rc == 0) {
		conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
		conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
		rc = rte_eth_dev_configure(port, 1, 1, &conf);
	}
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL);
	if (rc == 0)
		rc = rte_eth_dev_start(port);
	if (rc != 0)
		return complain("port %u cannot be started: %s", port, rte_strerror(-rc));
	rte_eth_promiscuous_enable(port);
	return 0;
}

/*
 * These devices have as many queues as the user gave them, and packets in all of them
 * whatever is set up here; elsewhere the maximum is only what could be set up.
 */
static int
check_queues(const char *name, uint16_t port)
{
	static const char *const fixed[] = {"net_af_packet", "net_pcap"};
	struct rte_eth_dev_info info;
	size_t i;

	if (rte_eth_dev_info_get(port, &info) != 0 || info.max_rx_queues <= 1)
		return 0;
	for (i = 0; i < RTE_DIM(fixed); i++)
		if (strcmp(info.driver_name, fixed[i]) == 0)
			return complain("--in \"%s\": it has %u RX queues, and only one is read:"
					" give it one",
					name, info.max_rx_queues);
	return 0;
}

int
port_open(const char *option, const char *name, struct rte_mempool *pool, uint16_t *port)
{
	if (port_find(option, name, port) != 0)
		return -1;
	return port_start(*port, pool);
}

static void
port_stop(uint16_t port)
{
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}

/* ---- captures ------------------------------------------------------------------------- */

/*
 * The device gets the path of an open file, so that any file name will do.  It
 * is a path that only this process has: an NF's EAL tries to open the device as
 * well, and has no use for it.
 */
static int
capture_open(struct input *in, const char *path)
{
	char args[128];
	int rc;

	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return complain("cannot open capture \"%s\": %s", path, strerror(errno));
	snprintf(args, sizeof(args), "rx_pcap=/proc/self/task/%d/fd/%d", (int)getpid(), in->fd);
	rc = rte_vdev_init(VDEV, args);
	if (rc != 0)
		return complain("DPDK's net_pcap cannot read \"%s\": %s; is the driver installed?",
				path, rte_strerror(-rc));
	in->capture = true;
	rc = rte_eth_dev_get_port_by_name(VDEV, &in->port);
	if (rc != 0)
		return complain("DPDK's net_pcap made no port: %s", rte_strerror(-rc));
	if (port_start(in->port, in->pool) != 0)
		return -1;
	in->started = true;
	timestamp_offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	rc = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
	if (rc < 0)
		timestamp_offset = -1;
	else
		timestamp_flag = UINT64_C(1) << rc;
	return 0;
}

static void
port_release(struct input *in)
{
	if (in->started)
		port_stop(in->port);
	if (in->capture)
		rte_vdev_uninit(VDEV);
	in->started = in->capture = false;
	capture_clock_close(in->clock);
	in->clock = NULL;
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

/* net_pcap's time stamps are us; here they are ns. */
static void
fix_times(struct input *in, struct rte_mbuf **pkts, uint16_t n)
{
	rte_mbuf_timestamp_t *t;
	uint16_t i;

	for (i = 0; i < n && timestamp_offset >= 0; i++) {
		t = RTE_MBUF_DYNFIELD(pkts[i], timestamp_offset, rte_mbuf_timestamp_t *);
		*t = in->clock != NULL ? capture_clock_next(in->clock) : *t * 1000;
	}
}

/* The whole capture into memory; then neither file nor device is needed. */
static int
load_replay(struct input *in, const struct splitter_opts *o, const struct capture_info *info)
{
	uint64_t n = 0, silent = 0;
	uint16_t got;

	in->replay = calloc(info->packets, sizeof(*in->replay));
	if (in->replay == NULL)
		return complain("no memory for %ju packets", (uintmax_t)info->packets);
	while (n < info->packets && silent < 1000) {
		got = rte_eth_rx_burst(in->port, 0, in->replay + n,
				       (uint16_t)RTE_MIN(info->packets - n, (uint64_t)BURST));
		fix_times(in, in->replay + n, got);
		n += got;
		silent = got > 0 ? 0 : silent + 1;
	}
	in->replay_count = n;
	if (n < info->packets)
		return complain("capture \"%s\": packet %ju of %ju could not be read into memory",
				o->in, (uintmax_t)n + 1, (uintmax_t)info->packets);
	port_release(in);
	in->left = o->loops == 0 ? UINT64_MAX : o->loops * info->packets;
	return 0;
}

/* ---- all kinds -------------------------------------------------------------------------- */

/* Of the pool, but never packets of the input: what NFs put messages and packets into. */
static uint32_t
blanks(const struct splitter_opts *o)
{
	uint32_t n = 0;
	uint8_t i;

	for (i = 0; i < o->links; i++)
		n += o->link[i].queues * 2u * o->blanks;
	return n;
}

/*
 * What can be out at one time: the rings of the links, packets that wait for those,
 * bursts in hand, the cache of the pool.  Big packets take more; they may make less
 * to be out at a time.
 */
uint32_t
input_mbufs(const struct splitter_opts *o, const struct capture_info *info)
{
	uint64_t n = 8 * BURST + POOL_CACHE;
	const struct link_opts *l;

	for (l = o->link; l < &o->link[o->links]; l++)
		n += (uint64_t)l->queues *
		     (l->ring_size + RTE_MIN(l->ring_size, (uint32_t)HELD_MAX));
	if (!o->in_capture)
		return (uint32_t)(n + 2 * 1024 + blanks(o)); /* queues of the ports */
	n *= RTE_MIN(info->max_segments, 4u);
	if (o->replay)
		n += info->segments;
	n += (uint64_t)BURST * info->max_segments + blanks(o);
	return (uint32_t)RTE_MIN(n, (uint64_t)UINT32_MAX);
}

int
input_open(struct input *in, const struct splitter_opts *o, const struct capture_info *info,
	   struct rte_mempool *pool)
{
	memset(in, 0, sizeof(*in));
	in->fd = -1;
	in->pool = pool;
	in->left = UINT64_MAX;
	in->packets_max = UINT64_MAX;
	if (!o->in_capture) {
		if (port_find("--in", o->in, &in->port) != 0 ||
		    check_queues(o->in, in->port) != 0 || port_start(in->port, pool) != 0)
			return -1;
		in->started = true;
	} else {
		in->left = info->packets;
		in->packets_max = (pool->size - blanks(o)) / info->max_segments;
		if (info->nano) {
			in->clock = capture_clock_open(o->in);
			if (in->clock == NULL)
				return -1;
		}
		if (capture_open(in, o->in) != 0)
			return -1;
		if (o->replay && load_replay(in, o, info) != 0)
			return -1;
		in->rate = o->rate;
	}
	if (o->count > 0 && o->count < in->left)
		in->left = o->count;
	return 0;
}

static uint16_t
replay_burst(struct input *in, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		pkts[i] = rte_pktmbuf_copy(in->replay[in->replay_next], in->pool, 0, UINT32_MAX);
		if (pkts[i] == NULL)
			break; /* all are out: take it when some are back */
		if (++in->replay_next == in->replay_count)
			in->replay_next = 0;
		rte_prefetch0(rte_pktmbuf_mtod(in->replay[in->replay_next], const void *));
	}
	return i;
}

/* How many of n are due. */
static uint16_t
in_time(struct input *in, uint16_t n)
{
	uint64_t now = rte_rdtsc();
	double due;

	if (in->rate_start == 0)
		in->rate_start = now;
	due = (double)(now - in->rate_start) / (double)rte_get_tsc_hz() * (double)in->rate;
	return (uint16_t)RTE_MIN((double)n, RTE_MAX(0.0, due - (double)in->rate_done));
}

uint16_t
input_burst(struct input *in, struct rte_mbuf **pkts, uint16_t n, uint64_t out)
{
	n = (uint16_t)RTE_MIN((uint64_t)n, in->left);
	if (in->rate != 0)
		n = in_time(in, n);
	if (in->replay != NULL) {
		n = replay_burst(in, pkts, n);
	} else {
		/* net_pcap loses a packet that it finds no mbuf for: do not ask then */
		if (out + n > in->packets_max)
			n = (uint16_t)(out < in->packets_max ? in->packets_max - out : 0);
		if (n > 0)
			n = rte_eth_rx_burst(in->port, 0, pkts, n);
		if (in->capture)
			fix_times(in, pkts, n);
	}
	if (in->left != UINT64_MAX)
		in->left -= n;
	in->rate_done += n;
	return n;
}

void
input_close(struct input *in)
{
	uint64_t i;

	for (i = 0; i < in->replay_count; i++)
		rte_pktmbuf_free(in->replay[i]);
	free(in->replay);
	in->replay = NULL;
	in->replay_count = 0;
	port_release(in);
}
