/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SURICATA_COMPAT_H
#define EXAMPLES_SURICATA_COMPAT_H

/*
 * Suricata's headers, and the only place that knows 7.0 from 8.0.  The order
 * matters: decode.h before tm-modules.h.
 */
#include "suricata-common.h"
#include "suricata.h"
#include "suricata-plugin.h"
#include "decode.h"
#include "packet.h"
#include "action-globals.h"
#include "threadvars.h"
#include "tm-modules.h"
#include "tm-threads.h"
#include "tmqh-packetpool.h"
#include "runmodes.h"
#include "counters.h"
#include "flow.h"
#include "flow-private.h"
#include "flow-storage.h"
#include "flow-util.h"
#include "flow-var.h"
#include "util-affinity.h"
#include "util-datalink.h"
#include "util-device.h"
#include "util-time.h"
#include "util-var-name.h"
#ifdef SC_PACKAGE_VERSION
#define SURICATA_8
#include "util-device-private.h"
#endif

/* Of suricata.c, in none of its headers. */
extern SCInstance suricata;
extern volatile sig_atomic_t sigint_count, sigterm_count;

#ifdef SURICATA_8
/* Its plug-ins are for a minor version, 7.0's for a release: so much of "8.0.7" counts. */
#define VERSION_DOTS 2
#define PLUGIN_VERSIONS                                                                            \
	.version = SC_API_VERSION, .suricata_version = SC_PACKAGE_VERSION,                         \
	.plugin_version = NFMETA_VERSION_STRING,
/* What a run mode answers when it is asked whether it is an IPS. */
typedef int ips_answer;
#define IPS_ANSWER(yes) return yes
#else
#define VERSION_DOTS 3
#define PLUGIN_VERSIONS
typedef void ips_answer;
#define IPS_ANSWER(yes) return
#endif

/* A checksum that the upfront NF found to be wrong: Suricata does not compute it again. */
static inline void
packet_l3_csum_bad(Packet *p)
{
#ifdef SURICATA_8
	p->l3.csum_set = true;
	p->l3.csum = 0xffff;
#else
	p->level3_comp_csum = -2;
#endif
}

static inline void
packet_l4_csum_bad(Packet *p)
{
#ifdef SURICATA_8
	p->l4.csum_set = true;
	p->l4.csum = 0xffff;
#else
	p->level4_comp_csum = -2;
#endif
}

static inline int
packet_csums_untouched(const Packet *p)
{
#ifdef SURICATA_8
	return !p->l3.csum_set && !p->l4.csum_set;
#else
	return p->level3_comp_csum == -1 && p->level4_comp_csum == -1;
#endif
}

/* The flow manager finds that its time is over. */
static inline void
flow_time_is_over(Flow *f, SCTime_t now)
{
#ifdef SURICATA_8
	(void)now;
	f->timeout_policy = 0;
#else
	f->timeout_at = (uint32_t)SCTIME_SECS(now) - 1;
#endif
}

/* It begins anew. */
static inline void
flow_time_goes_on(Flow *f, SCTime_t now)
{
	f->lastts = now;
#ifndef SURICATA_8
	f->timeout_at = (uint32_t)SCTIME_SECS(now) + f->timeout_policy;
#endif
}

/* The headers that Suricata found, or NULL. */
#ifdef SURICATA_8
#define packet_is_tunnel(p) PacketIsTunnel(p)
#define packet_ipv4(p) ((const void *)(PacketIsIPv4(p) ? PacketGetIPv4(p) : NULL))
#define packet_ipv6(p) ((const void *)(PacketIsIPv6(p) ? PacketGetIPv6(p) : NULL))
#define packet_tcp(p) ((const void *)(PacketIsTCP(p) ? PacketGetTCP(p) : NULL))
#else
#define packet_is_tunnel(p) IS_TUNNEL_PKT(p)
#define packet_ipv4(p) ((const void *)(p)->ip4h)
#define packet_ipv6(p) ((const void *)(p)->ip6h)
#define packet_tcp(p) ((const void *)(p)->tcph)
#endif

#endif
