/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include <daq_api.h>
#include <sfbpf_dlt.h>

#include "nfmeta-daq.h"

/*
 * The engine keeps headers, and with them priv_ptr, longer than packets. So it points to
 * a copy of the record, which stays until so many more packets have come; a record of
 * size 0 says that there was none.
 */
#define COPIES 16384

struct daq2 {
	struct core *c;
	DAQ_State state;
	const DAQ_PktHdr_t *hdr; /* of the packet that the engine has now */
	const struct item *item;
	struct nfmeta_record *copies;
	uint32_t copy;
	uint64_t filtered_before, packets_before; /* of reset_stats */
	DAQ_Stats_t reset;
	char err[DAQ_ERRBUF_SIZE];
};

_Static_assert((int)DAQ_VERDICT_PASS == (int)VERDICT_PASS &&
		       (int)DAQ_VERDICT_BLOCK == (int)VERDICT_BLOCK &&
		       (int)DAQ_VERDICT_REPLACE == (int)VERDICT_REPLACE &&
		       (int)DAQ_VERDICT_WHITELIST == (int)VERDICT_WHITELIST &&
		       (int)DAQ_VERDICT_BLACKLIST == (int)VERDICT_BLACKLIST &&
		       (int)DAQ_VERDICT_IGNORE == (int)VERDICT_IGNORE &&
		       (int)DAQ_VERDICT_RETRY == (int)VERDICT_RETRY &&
		       (int)MAX_DAQ_VERDICT == (int)VERDICTS_N,
	       "verdicts");

static int
fail(struct daq2 *d, int rc)
{
	snprintf(d->err, sizeof(d->err), "%s", d->c->err);
	return rc;
}

/* ---- begin and end ---------------------------------------------------------------- */

static void
shut_down(void *handle)
{
	struct daq2 *d = handle;

	if (d->c != NULL)
		core_free(d->c);
	free(d->copies);
	free(d);
}

static int
configure(struct opts *o, const DAQ_Config_t *config, char *err, size_t size)
{
	const struct _daq_dict_entry *e;

	vars_defaults(o);
	if (vars_input(o, config->name, err, size) != 0)
		return -1;
	for (e = config->values; e != NULL; e = e->next)
		if (vars_set(o, e->key, e->value, err, size) != 0)
			return -1;
	o->is_inline = config->mode == DAQ_MODE_INLINE;
	o->snaplen = config->snaplen > 0 ? (uint32_t)config->snaplen : 0;
	o->timeout_ms = config->timeout;
	o->items = BURST + HELD;
	return 0;
}

static int
initialize(const DAQ_Config_t *config, void **handle, char *err, size_t size)
{
	struct daq2 *d;
	struct opts o;

	if (configure(&o, config, err, size) != 0)
		return DAQ_ERROR_INVAL;
	d = calloc(1, sizeof(*d));
	if (d != NULL) {
		d->c = core_new(&o);
		d->copies = calloc(COPIES, sizeof(*d->copies));
	}
	if (d == NULL || d->c == NULL || d->copies == NULL) {
		snprintf(err, size, "nfmeta: no memory");
		if (d != NULL)
			shut_down(d);
		return DAQ_ERROR_NOMEM;
	}
	d->state = DAQ_STATE_INITIALIZED;
	*handle = d;
	return DAQ_SUCCESS;
}

/* Here, not before: Snort's -D forks in between, and DPDK's threads would be gone. */
static int
start(void *handle)
{
	struct daq2 *d = handle;

	if (core_start(d->c) != 0)
		return fail(d, DAQ_ERROR);
	d->state = DAQ_STATE_STARTED;
	return DAQ_SUCCESS;
}

static int
stop(void *handle)
{
	struct daq2 *d = handle;

	core_stop(d->c);
	d->state = DAQ_STATE_STOPPED;
	return DAQ_SUCCESS;
}

static int
set_filter(void *handle, const char *filter)
{
	struct daq2 *d = handle;

	return core_filter(d->c, filter) == 0 ? DAQ_SUCCESS : fail(d, DAQ_ERROR_INVAL);
}

/* ---- packets ----------------------------------------------------------------------- */

static void
fill(struct daq2 *d, DAQ_PktHdr_t *h, const struct item *i)
{
	const struct opts *o = &d->c->o;
	const struct nfmeta_record *r = &i->r;
	struct nfmeta_record *copy = &d->copies[d->copy++ % COPIES];

	*copy = *r;
	*h = (DAQ_PktHdr_t){
		.ts = i->ts,
		.caplen = i->len,
		.pktlen = i->whole,
		.ingress_index = DAQ_PKTHDR_UNKNOWN,
		.egress_index = DAQ_PKTHDR_UNKNOWN,
		.ingress_group = DAQ_PKTHDR_UNKNOWN,
		.egress_group = DAQ_PKTHDR_UNKNOWN,
		.flags = o->is_inline ? 0 : DAQ_PKT_FLAG_NOT_FORWARDING,
		.priv_ptr = copy,
	};
	if (r->size == 0)
		return;
	if ((r->flags & NFMETA_L4_CSUM_GOOD) != 0 &&
	    RTE_ETH_IS_IPV4_HDR(i->m->packet_type) + RTE_ETH_IS_IPV6_HDR(i->m->packet_type) != 0 &&
	    (i->m->packet_type & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_TCP)
		h->flags |= DAQ_PKT_FLAG_HW_TCP_CS_GOOD;
	if ((r->flags & NFMETA_FLOW_KNOWN) != 0)
		h->flow_id = r->flow_id;
	if (i->app_id != 0) {
		h->opaque = i->app_id;
		h->flags |= DAQ_PKT_FLAG_OPAQUE_IS_VALID;
	}
	if (r->size >= NFMETA_RECORD_WIDE && r->port != RTE_MBUF_PORT_INVALID) {
		h->ingress_index = r->port;
		if (o->groups == GROUPS_PORT)
			h->ingress_group = r->port;
	}
	if (r->size >= NFMETA_RECORD_FULL) {
		if (o->groups == GROUPS_TENANT)
			h->ingress_group = h->egress_group = (int32_t)r->tenant;
		if (o->tenant_is_space && r->tenant <= UINT16_MAX)
			h->address_space_id = (uint16_t)r->tenant;
	}
}

static void
tell(const struct daq2 *d, const struct item *i, DAQ_Meta_Func_t metaback, void *user)
{
	const struct flow *f = &i->flow;
	DAQ_MetaHdr_t h = {.type = i->kind == KIND_BEGAN ? DAQ_METAHDR_TYPE_SOF
							 : DAQ_METAHDR_TYPE_EOF};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	Flow_Stats_t s = {
		.ingressZone = DAQ_PKTHDR_UNKNOWN,
		.egressZone = DAQ_PKTHDR_UNKNOWN,
		.ingressIntf = f->port,
		.egressIntf = DAQ_PKTHDR_UNKNOWN,
		.initiatorPort = htons(f->l4_port[0]),
		.responderPort = htons(f->l4_port[1]),
		.protocol = f->proto,
		.initiatorPkts = f->packets[0] + f->passed_packets[0],
		.responderPkts = f->packets[1] + f->passed_packets[1],
		.initiatorBytes = f->bytes[0] + f->passed_bytes[0],
		.responderBytes = f->bytes[1] + f->passed_bytes[1],
		.opaque = f->app_id,
		.vlan_tag = f->vlan,
		.sof_timestamp = {(time_t)(f->began / 1000000), (suseconds_t)(f->began % 1000000)},
		.eof_timestamp = i->ts,
	};

	s.version = memcmp(f->addr[0], mapped, sizeof(mapped)) == 0 ? DAQ_FLOWSTATS_IPV4
								    : DAQ_FLOWSTATS_IPV6;
	memcpy(s.initiatorIp, f->addr[0], 16);
	memcpy(s.responderIp, f->addr[1], 16);
	if (d->c->o.tenant_is_space && f->tenant <= UINT16_MAX)
		s.address_space_id = (uint16_t)f->tenant;
	metaback(user, &h, (const uint8_t *)&s);
}

static void
give(struct daq2 *d, struct item *i, DAQ_Analysis_Func_t callback, void *user)
{
	DAQ_Verdict v;
	DAQ_PktHdr_t h;

	fill(d, &h, i);
	d->hdr = &h;
	d->item = i;
	v = callback(user, &h, i->data);
	d->hdr = NULL;
	d->item = NULL;
	core_finish(d->c, i, v >= MAX_DAQ_VERDICT ? VERDICT_PASS : (enum verdict)v);
}

static int
acquire(void *handle, int cnt, DAQ_Analysis_Func_t callback, DAQ_Meta_Func_t metaback, void *user)
{
	struct daq2 *d = handle;
	int had = 0, status;
	struct item *i;

	while (cnt <= 0 || had < cnt) {
		i = had == 0 || d->c->interrupted ? NULL : core_next(d->c, &status);
		if (i == NULL)
			i = core_get(d->c, &status);
		if (i == NULL)
			return status == ST_END	    ? DAQ_READFILE_EOF
			       : status == ST_ERROR ? fail(d, DAQ_ERROR)
						    : DAQ_SUCCESS;
		if (i->kind != KIND_PACKET) {
			if (metaback != NULL)
				tell(d, i, metaback, user);
			core_finish(d->c, i, VERDICT_PASS);
			continue;
		}
		had++;
		give(d, i, callback, user);
	}
	return DAQ_SUCCESS;
}

static int
inject(void *handle, const DAQ_PktHdr_t *hdr, const uint8_t *data, uint32_t len, int reverse)
{
	struct daq2 *d = handle;
	int rc = core_inject(d->c, hdr == d->hdr ? d->item : NULL, data, len, reverse != 0);

	if (rc == 0)
		return DAQ_SUCCESS;
	return fail(d, rc == -EAGAIN ? DAQ_ERROR_AGAIN : DAQ_ERROR_INVAL);
}

static int
breakloop(void *handle)
{
	core_interrupt(((struct daq2 *)handle)->c);
	return DAQ_SUCCESS;
}

/* ---- questions ---------------------------------------------------------------------- */

static DAQ_State
check_status(void *handle)
{
	return ((struct daq2 *)handle)->state;
}

static int
get_stats(void *handle, DAQ_Stats_t *stats)
{
	struct daq2 *d = handle;
	const struct counts *n = &d->c->c;
	DAQ_Stats_t *r = &d->reset;
	int v;

	*stats = (DAQ_Stats_t){
		.packets_received = n->packets - n->filtered - r->packets_received,
		.packets_filtered = n->filtered - r->packets_filtered,
		.packets_injected = n->injected - r->packets_injected,
	};
	core_came(d->c, &stats->hw_packets_received, &stats->hw_packets_dropped);
	stats->hw_packets_received -= r->hw_packets_received;
	stats->hw_packets_dropped -= r->hw_packets_dropped;
	for (v = 0; v < MAX_DAQ_VERDICT; v++)
		stats->verdicts[v] = n->verdict[v] - r->verdicts[v];
	return DAQ_SUCCESS;
}

static void
reset_stats(void *handle)
{
	struct daq2 *d = handle;
	DAQ_Stats_t now;

	memset(&d->reset, 0, sizeof(d->reset));
	get_stats(d, &now);
	d->reset = now;
}

static int
get_snaplen(void *handle)
{
	return (int)((struct daq2 *)handle)->c->o.snaplen;
}

static uint32_t
get_capabilities(void *handle)
{
	(void)handle;
	return DAQ_CAPA_BLOCK | DAQ_CAPA_REPLACE | DAQ_CAPA_INJECT | DAQ_CAPA_WHITELIST |
	       DAQ_CAPA_BLACKLIST | DAQ_CAPA_BREAKLOOP | DAQ_CAPA_BPF | DAQ_CAPA_DEVICE_INDEX |
	       DAQ_CAPA_RETRY;
}

static int
get_datalink_type(void *handle)
{
	(void)handle;
	return DLT_EN10MB;
}

static const char *
get_errbuf(void *handle)
{
	return ((struct daq2 *)handle)->err;
}

static void
set_errbuf(void *handle, const char *text)
{
	struct daq2 *d = handle;

	snprintf(d->err, sizeof(d->err), "%s", text != NULL ? text : "");
}

static int
get_device_index(void *handle, const char *device)
{
	struct daq2 *d = handle;

	return strcmp(device, d->c->o.input) == 0 ? 0 : DAQ_ERROR_NODEV;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const DAQ_Module_t DAQ_MODULE_DATA = {
	.api_version = DAQ_API_VERSION,
	.module_version =
		NFMETA_VERSION_MAJOR << 16 | NFMETA_VERSION_MINOR << 8 | NFMETA_VERSION_PATCH,
	.name = "nfmeta",
	.type = DAQ_TYPE_INTF_CAPABLE | DAQ_TYPE_INLINE_CAPABLE | DAQ_TYPE_MULTI_INSTANCE,
	.initialize = initialize,
	.set_filter = set_filter,
	.start = start,
	.acquire = acquire,
	.inject = inject,
	.breakloop = breakloop,
	.stop = stop,
	.shutdown = shut_down,
	.check_status = check_status,
	.get_stats = get_stats,
	.reset_stats = reset_stats,
	.get_snaplen = get_snaplen,
	.get_capabilities = get_capabilities,
	.get_datalink_type = get_datalink_type,
	.get_errbuf = get_errbuf,
	.set_errbuf = set_errbuf,
	.get_device_index = get_device_index,
};
