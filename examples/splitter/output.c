/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "splitter.h"

#define SEND_TRIES 1000 /* a busy port gets about a millisecond */

int
output_open(struct output *out, const struct splitter_opts *o, const struct input *in, bool nano,
	    struct rte_mempool *pool)
{
	memset(out, 0, sizeof(*out));
	if (o->out_none)
		return 0;
	if (o->out_capture) {
		out->writer = capture_writer_open(o->out, nano);
		return out->writer != NULL ? 0 : -1;
	}
	/* out of the port it came in on: that one is started already */
	if (!o->in_capture && strcmp(o->in, o->out) == 0)
		out->port = in->port;
	else if (port_open("--out", o->out, pool, &out->port) != 0)
		return -1;
	else
		out->own_port = true;
	out->to_port = true;
	return 0;
}

/* What the port does not take in time is freed. */
uint16_t
port_send(uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0, tries;

	for (tries = 0; sent < n && tries < SEND_TRIES; tries++) {
		sent += rte_eth_tx_burst(port, 0, pkts + sent, (uint16_t)(n - sent));
		if (sent < n)
			rte_delay_us_block(1);
	}
	rte_pktmbuf_free_bulk(pkts + sent, n - sent);
	return sent;
}

int
output_burst(struct output *out, struct rte_mbuf **pkts, uint16_t n)
{
	int done = n;
	uint16_t i;

	if (out->to_port)
		return port_send(out->port, pkts, n);
	for (i = 0; out->writer != NULL && i < n; i++) {
		if (capture_write(out->writer, pkts[i], packet_time(pkts[i])) != 0) {
			done = -1;
			break;
		}
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return done;
}

int
output_close(struct output *out)
{
	int rc;

	if (out->own_port) {
		rte_eth_dev_stop(out->port);
		rte_eth_dev_close(out->port);
	}
	rc = capture_writer_close(out->writer);
	memset(out, 0, sizeof(*out));
	return rc;
}
