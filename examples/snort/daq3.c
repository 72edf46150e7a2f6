/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include <daq_dlt.h>
#include <daq_module_api.h>

#include "nfmeta-daq.h"
#include "nfmeta_slot.h"

/* What goes with item i of the core, for the engine. */
struct desc {
	DAQ_Msg_t msg;
	union {
		DAQ_PktHdr_t packet;
		DAQ_FlowStats_t flow;
	} hdr;
	DAQ_PktDecodeData_t decode;
	struct nfmeta_flow_delete ended;
	struct item *item;
};

struct daq3 {
	struct core *c;
	struct desc *descs;
	DAQ_ModuleInstance_h instance;
	DAQ_Stats_t reset;
};

_Static_assert((int)DAQ_VERDICT_PASS == (int)VERDICT_PASS &&
		       (int)DAQ_VERDICT_BLOCK == (int)VERDICT_BLOCK &&
		       (int)DAQ_VERDICT_REPLACE == (int)VERDICT_REPLACE &&
		       (int)DAQ_VERDICT_WHITELIST == (int)VERDICT_WHITELIST &&
		       (int)DAQ_VERDICT_BLACKLIST == (int)VERDICT_BLACKLIST &&
		       (int)DAQ_VERDICT_IGNORE == (int)VERDICT_IGNORE,
	       "verdicts");
_Static_assert(NFMETA_DAQ_NEAR_SLOT > DAQ_PKT_META_TCP_ACK_DATA &&
		       NFMETA_DAQ_SLOT < DAQ_MSG_META_SLOTS,
	       "slots that libdaq does not use");

static DAQ_BaseAPI_t base;

static int
fail(struct daq3 *d, int rc)
{
	base.set_errbuf(d->instance, "%s", d->c->err);
	return rc;
}

/* ---- load, begin, end ----------------------------------------------------------- */

static int
load(const DAQ_BaseAPI_t *api)
{
	if (api->api_version != DAQ_BASE_API_VERSION || api->api_size != sizeof(base))
		return DAQ_ERROR;
	base = *api;
	return DAQ_SUCCESS;
}

static int
unload(void)
{
	return DAQ_SUCCESS;
}

static int
get_variable_descs(const DAQ_VariableDesc_t **out)
{
	static DAQ_VariableDesc_t descs[32];
	unsigned int i;

	for (i = 0; i < vars_n; i++)
		descs[i] = (DAQ_VariableDesc_t){.name = vars[i].name,
						.description = vars[i].help,
						.flags = DAQ_VAR_DESC_REQUIRES_ARGUMENT};
	*out = descs;
	return (int)vars_n;
}

static int
configure(struct opts *o, DAQ_ModuleConfig_h config, char *err, size_t size)
{
	const char *key = NULL, *value = NULL;
	unsigned int id = base.config_get_instance_id(config);
	unsigned int total = base.config_get_total_instances(config);
	int snaplen = base.config_get_snaplen(config);

	vars_defaults(o);
	if (vars_input(o, base.config_get_input(config), err, size) != 0)
		return -1;
	base.config_first_variable(config, &key, &value);
	for (; key != NULL; base.config_next_variable(config, &key, &value))
		if (vars_set(o, key, value, err, size) != 0)
			return -1;
	o->is_inline = base.config_get_mode(config) == DAQ_MODE_INLINE;
	o->snaplen = snaplen > 0 ? (uint32_t)snaplen : 0;
	o->timeout_ms = base.config_get_timeout(config);
	o->items = base.config_get_msg_pool_size(config);
	o->items = o->items == 0 ? 4 * BURST : RTE_MIN(o->items, (uint32_t)UINT16_MAX);
	o->instance = id > 0 ? id - 1 : 0; /* they count from 1; one alone is 0 */
	o->queues = RTE_MAX(o->queues, total);
	return 0;
}

static void
destroy(void *handle)
{
	struct daq3 *d = handle;

	if (d->c != NULL)
		core_free(d->c);
	free(d->descs);
	free(d);
}

static int
instantiate(DAQ_ModuleConfig_h config, DAQ_ModuleInstance_h instance, void **handle)
{
	char err[256];
	struct daq3 *d;
	struct opts o;

	if (configure(&o, config, err, sizeof(err)) != 0) {
		base.set_errbuf(instance, "%s", err);
		return DAQ_ERROR_INVAL;
	}
	d = calloc(1, sizeof(*d));
	if (d != NULL) {
		d->instance = instance;
		d->c = core_new(&o);
		d->descs = d->c != NULL ? calloc(d->c->o.items, sizeof(*d->descs)) : NULL;
	}
	if (d == NULL || d->c == NULL || d->descs == NULL) {
		base.set_errbuf(instance, "nfmeta: no memory");
		if (d != NULL)
			destroy(d);
		return DAQ_ERROR_NOMEM;
	}
	*handle = d;
	return DAQ_SUCCESS;
}

static int
start(void *handle)
{
	struct daq3 *d = handle;

	return core_start(d->c) == 0 ? DAQ_SUCCESS : fail(d, DAQ_ERROR);
}

static int
stop(void *handle)
{
	core_stop(((struct daq3 *)handle)->c);
	return DAQ_SUCCESS;
}

static int
set_filter(void *handle, const char *filter)
{
	struct daq3 *d = handle;

	return core_filter(d->c, filter) == 0 ? DAQ_SUCCESS : fail(d, DAQ_ERROR_INVAL);
}

static int
interrupt(void *handle)
{
	core_interrupt(((struct daq3 *)handle)->c);
	return DAQ_SUCCESS;
}

/* ---- a packet --------------------------------------------------------------------- */

/* IPv4 or IPv6, and what is behind: the record has it from the mbuf's packet type. */
static void
set_protocols(DAQ_PktDecodeData_t *p, const struct item *i)
{
	uint32_t type = i->m->packet_type;

	p->flags.bits.ipv4 = RTE_ETH_IS_IPV4_HDR(type) != 0;
	p->flags.bits.ipv6 = RTE_ETH_IS_IPV6_HDR(type) != 0;
	if (p->flags.bits.l4 == 0)
		return;
	p->flags.bits.tcp = (type & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_TCP;
	p->flags.bits.udp = (type & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_UDP;
	p->flags.bits.icmp = (type & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_ICMP;
}

/* The engine takes "validated" at its word, if the offset is where it finds the header. */
static void
set_decoded(DAQ_PktDecodeData_t *p, const struct item *i)
{
	const struct nfmeta_record *r = &i->r;

	*p = (DAQ_PktDecodeData_t){
		.l2_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
		.l3_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
		.l4_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
		/* Snort goes on decoding in tunnels, and then takes back its WHITELIST. */
		.payload_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
		.checksum_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
	};
	p->flags.bits.l2 = p->flags.bits.ethernet = (r->flags & NFMETA_L2_VALID) != 0;
	p->flags.bits.l3 = (r->flags & NFMETA_L3_VALID) != 0;
	p->flags.bits.l4 = (r->flags & NFMETA_L4_VALID) != 0;
	p->flags.bits.l3_checksum = (r->flags & NFMETA_L3_CSUM_GOOD) != 0;
	p->flags.bits.l4_checksum = (r->flags & NFMETA_L4_CSUM_GOOD) != 0;
	p->flags.bits.checksum_error = (r->flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0;
	set_protocols(p, i);
	if ((r->flags & NFMETA_L2_VALID) != 0)
		p->l2_offset = 0;
	if ((r->flags & NFMETA_L3_VALID) != 0)
		p->l3_offset = r->l3_off;
	if ((r->flags & NFMETA_L4_VALID) != 0)
		p->l4_offset = r->l4_off;
	if ((r->flags & NFMETA_L2_VALID) != 0 && r->l3_off != NFMETA_OFF_NONE) {
		p->flags.bits.vlan = r->l3_off >= 18;
		p->flags.bits.vlan_qinq = r->l3_off >= 22;
	}
}

static void
set_origin(const struct opts *o, DAQ_PktHdr_t *h, const struct nfmeta_record *r)
{
	if (r->size >= NFMETA_RECORD_WIDE && r->port != RTE_MBUF_PORT_INVALID) {
		h->ingress_index = r->port;
		if (o->groups == GROUPS_PORT && r->port <= INT16_MAX)
			h->ingress_group = (int16_t)r->port;
	}
	if (r->size < NFMETA_RECORD_FULL)
		return;
	if (o->tenant_is_space)
		h->address_space_id = r->tenant;
	else
		h->tenant_id = r->tenant;
	if (o->groups == GROUPS_TENANT && r->tenant <= INT16_MAX) {
		h->ingress_group = h->egress_group = (int16_t)r->tenant;
		h->flags |= DAQ_PKT_FLAG_SIGNIFICANT_GROUPS;
	}
}

/*
 * Snort ends a flow that it has when a packet of the same key is the first of a new one.
 * So only where both sides mean the same by a flow: pieces of a datagram are one flow for
 * Snort and two upfront, and pings of several programs, or what is in a tunnel, as well.
 */
static bool
is_new_flow(const struct item *i)
{
	uint32_t l4 = i->m->packet_type & RTE_PTYPE_L4_MASK;

	return i->first && (i->r.flags & (NFMETA_FRAG_MASK | NFMETA_TUNNEL_OUTER)) == 0 &&
	       (l4 == RTE_PTYPE_L4_TCP || l4 == RTE_PTYPE_L4_UDP);
}

static void
fill_packet(struct daq3 *d, struct desc *e, struct item *i)
{
	const struct nfmeta_record *r = &i->r;
	DAQ_PktHdr_t *h = &e->hdr.packet;

	*h = (DAQ_PktHdr_t){
		.ts = i->ts,
		.pktlen = i->whole,
		.ingress_index = DAQ_PKTHDR_UNKNOWN,
		.egress_index = DAQ_PKTHDR_UNKNOWN,
		.ingress_group = DAQ_PKTHDR_UNKNOWN,
		.egress_group = DAQ_PKTHDR_UNKNOWN,
		.flags = d->c->o.is_inline ? 0 : DAQ_PKT_FLAG_NOT_FORWARDING,
	};
	e->msg.type = DAQ_MSG_TYPE_PACKET;
	e->msg.hdr_len = sizeof(*h);
	e->msg.data = i->data;
	e->msg.data_len = i->len;
	e->msg.meta[NFMETA_DAQ_NEAR_SLOT] = i->near;
	if (r->size == 0)
		return;
	e->msg.meta[NFMETA_DAQ_SLOT] = &i->r;
	if (r->size >= NFMETA_RECORD_CORE) { /* one of 8 bytes does not say where headers are */
		set_decoded(&e->decode, i);
		e->msg.meta[DAQ_PKT_META_DECODE_DATA] = &e->decode;
	}
	if ((r->flags & NFMETA_FLOW_KNOWN) != 0) {
		h->flow_id = r->flow_id;
		h->flags |= DAQ_PKT_FLAG_FLOWID_IS_VALID |
			    ((r->flags & NFMETA_FLOW_REVERSE) != 0 ? DAQ_PKT_FLAG_REV_FLOW : 0) |
			    (is_new_flow(i) ? DAQ_PKT_FLAG_NEW_FLOW : 0);
	}
	if (i->app_id != 0) {
		h->opaque = i->app_id;
		h->flags |= DAQ_PKT_FLAG_OPAQUE_IS_VALID;
	}
	set_origin(&d->c->o, h, r);
}

/* ---- begin and end of a flow --------------------------------------------------------- */

static void
fill_flow(struct daq3 *d, struct desc *e, const struct item *i)
{
	const struct opts *o = &d->c->o;
	const struct flow *f = &i->flow;
	bool ended = i->kind == KIND_ENDED;
	DAQ_FlowStats_t *s = &e->hdr.flow;

	*s = (DAQ_FlowStats_t){
		.ingress_group = DAQ_PKTHDR_UNKNOWN,
		.egress_group = DAQ_PKTHDR_UNKNOWN,
		.ingress_intf = DAQ_PKTHDR_UNKNOWN,
		.egress_intf = DAQ_PKTHDR_UNKNOWN,
		.initiator_port = htons(f->l4_port[0]),
		.responder_port = htons(f->l4_port[1]),
		.opaque = f->app_id,
		.sof_timestamp = {(time_t)(f->began / 1000000), (suseconds_t)(f->began % 1000000)},
		.address_space_id = o->tenant_is_space ? f->tenant : 0,
		.tenant_id = o->tenant_is_space ? 0 : f->tenant,
		.vlan_tag = f->vlan,
		.protocol = f->proto,
	};
	memcpy(s->initiator_ip, f->addr[0], 16);
	memcpy(s->responder_ip, f->addr[1], 16);
	if (o->groups == GROUPS_TENANT && f->tenant <= INT16_MAX) {
		s->ingress_group = s->egress_group = (int16_t)f->tenant;
		s->flags |= DAQ_FS_FLAG_SIGNIFICANT_GROUPS;
	} else if (o->groups == GROUPS_PORT && f->port <= INT16_MAX) {
		s->ingress_group = (int16_t)f->port;
	}
	if (ended) {
		s->initiator_pkts = f->packets[0] + f->passed_packets[0];
		s->responder_pkts = f->packets[1] + f->passed_packets[1];
		s->initiator_bytes = f->bytes[0] + f->passed_bytes[0];
		s->responder_bytes = f->bytes[1] + f->passed_bytes[1];
		s->eof_timestamp = i->ts;
	}
	e->ended = (struct nfmeta_flow_delete){
		.flow_id = i->id, .flow_gen = f->gen, .reason = i->reason};
	e->msg.meta[NFMETA_DAQ_SLOT] = &e->ended;
	e->msg.type = ended ? DAQ_MSG_TYPE_EOF : DAQ_MSG_TYPE_SOF;
	e->msg.hdr_len = sizeof(*s);
	e->msg.data = NULL;
	e->msg.data_len = 0;
}

/* ---- receive and finalize -------------------------------------------------------------- */

static const DAQ_Msg_t *
message(struct daq3 *d, struct item *i)
{
	struct desc *e = &d->descs[i->index];

	memset(e->msg.meta, 0, sizeof(e->msg.meta));
	e->item = i;
	e->msg.hdr = &e->hdr;
	e->msg.owner = d->instance;
	e->msg.priv = e;
	if (i->kind == KIND_PACKET)
		fill_packet(d, e, i);
	else
		fill_flow(d, e, i);
	return &e->msg;
}

static unsigned int
msg_receive(void *handle, const unsigned int max, const DAQ_Msg_t *msgs[], DAQ_RecvStatus *status)
{
	static const DAQ_RecvStatus map[] = {
		[ST_OK] = DAQ_RSTAT_OK,		[ST_TIMEOUT] = DAQ_RSTAT_TIMEOUT,
		[ST_STARVED] = DAQ_RSTAT_NOBUF, [ST_INTERRUPTED] = DAQ_RSTAT_INTERRUPTED,
		[ST_END] = DAQ_RSTAT_EOF,	[ST_ERROR] = DAQ_RSTAT_ERROR,
	};
	struct daq3 *d = handle;
	unsigned int n = 0;
	struct item *i;
	int st = ST_OK;

	*status = DAQ_RSTAT_OK;
	if (max == 0)
		return 0;
	i = core_get(d->c, &st);
	if (i == NULL) {
		*status = map[st];
		return st == ST_ERROR ? (unsigned int)fail(d, 0) : 0;
	}
	do
		msgs[n++] = message(d, i);
	while (n < max && (i = core_next(d->c, &st)) != NULL);
	return n;
}

static int
msg_finalize(void *handle, const DAQ_Msg_t *msg, DAQ_Verdict verdict)
{
	struct daq3 *d = handle;
	struct desc *e = msg->priv;
	struct item *i = e->item;

	if (i == NULL)
		return DAQ_ERROR_INVAL;
	e->item = NULL;
	core_finish(d->c, i, verdict < MAX_DAQ_VERDICT ? (enum verdict)verdict : VERDICT_PASS);
	return DAQ_SUCCESS;
}

static int
injected(struct daq3 *d, int rc)
{
	if (rc == 0)
		return DAQ_SUCCESS;
	return fail(d, rc == -EAGAIN ? DAQ_ERROR_AGAIN : DAQ_ERROR_INVAL);
}

static int
inject(void *handle, DAQ_MsgType type, const void *hdr, const uint8_t *data, uint32_t len)
{
	struct daq3 *d = handle;

	(void)hdr;
	if (type != DAQ_MSG_TYPE_PACKET)
		return DAQ_ERROR_NOTSUP;
	return injected(d, core_inject(d->c, NULL, data, len, false));
}

static int
inject_relative(void *handle, const DAQ_Msg_t *msg, const uint8_t *data, uint32_t len, int reverse)
{
	struct daq3 *d = handle;
	const struct desc *e = msg->priv;

	return injected(d, core_inject(d->c, e->item, data, len, reverse != 0));
}

/* ---- questions ----------------------------------------------------------------------------- */

static int
ioctl(void *handle, DAQ_IoctlCmd cmd, void *arg, size_t arglen)
{
	struct daq3 *d = handle;
	DIOCTL_SetPacketVerdictReason *reason = arg;
	DIOCTL_QueryDeviceIndex *device = arg;
	struct desc *e;

	switch (cmd) {
	case DIOCTL_SET_PACKET_VERDICT_REASON: /* goes up with the verdict on the flow */
		if (arglen != sizeof(*reason) || reason->msg == NULL)
			return DAQ_ERROR_INVAL;
		e = reason->msg->priv;
		if (e->item == NULL)
			return DAQ_ERROR_INVAL;
		e->item->why = reason->verdict_reason;
		return DAQ_SUCCESS;
	case DIOCTL_GET_DEVICE_INDEX:
		if (arglen != sizeof(*device) || device->device == NULL)
			return DAQ_ERROR_INVAL;
		if (strcmp(device->device, d->c->o.input) != 0)
			return DAQ_ERROR_NODEV;
		device->index = 0;
		return DAQ_SUCCESS;
	default:
		return DAQ_ERROR_NOTSUP;
	}
}

static int
get_stats(void *handle, DAQ_Stats_t *stats)
{
	struct daq3 *d = handle;
	const struct counts *n = &d->c->c;
	const DAQ_Stats_t *r = &d->reset;
	int v;

	*stats = (DAQ_Stats_t){
		.packets_received = n->packets - n->filtered - r->packets_received,
		.packets_filtered = n->filtered - r->packets_filtered,
		.packets_injected = n->injected - r->packets_injected,
		.packets_outstanding = core_outstanding(d->c),
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
	struct daq3 *d = handle;
	DAQ_Stats_t now;

	memset(&d->reset, 0, sizeof(d->reset));
	get_stats(d, &now);
	d->reset = now;
}

static int
get_snaplen(void *handle)
{
	return (int)((struct daq3 *)handle)->c->o.snaplen;
}

static uint32_t
get_capabilities(void *handle)
{
	(void)handle;
	return DAQ_CAPA_BLOCK | DAQ_CAPA_REPLACE | DAQ_CAPA_INJECT | DAQ_CAPA_WHITELIST |
	       DAQ_CAPA_BLACKLIST | DAQ_CAPA_INTERRUPT | DAQ_CAPA_BPF | DAQ_CAPA_DEVICE_INDEX;
}

static int
get_datalink_type(void *handle)
{
	(void)handle;
	return DLT_EN10MB;
}

static int
get_msg_pool_info(void *handle, DAQ_MsgPoolInfo_t *info)
{
	const struct daq3 *d = handle;

	info->size = d->c->o.items;
	info->available = d->c->n_free;
	info->mem_size = d->c->o.items * (sizeof(struct item) + sizeof(struct desc));
	return DAQ_SUCCESS;
}

/* ---- reload: the engine's rules change, the queue stays ------------------------------------ */

static int
config_load(void *handle, void **config)
{
	(void)handle;
	*config = NULL;
	return DAQ_SUCCESS;
}

static int
config_swap(void *handle, void *config, void **old)
{
	(void)handle;
	(void)config;
	*old = NULL;
	return DAQ_SUCCESS;
}

static int
config_free(void *handle, void *config)
{
	(void)handle;
	(void)config;
	return DAQ_SUCCESS;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const DAQ_ModuleAPI_t DAQ_MODULE_DATA = {
	.api_version = DAQ_MODULE_API_VERSION,
	.api_size = sizeof(DAQ_ModuleAPI_t),
	.module_version =
		NFMETA_VERSION_MAJOR << 16 | NFMETA_VERSION_MINOR << 8 | NFMETA_VERSION_PATCH,
	.name = "nfmeta",
	.type = DAQ_TYPE_INTF_CAPABLE | DAQ_TYPE_INLINE_CAPABLE | DAQ_TYPE_MULTI_INSTANCE,
	.load = load,
	.unload = unload,
	.get_variable_descs = get_variable_descs,
	.instantiate = instantiate,
	.destroy = destroy,
	.set_filter = set_filter,
	.start = start,
	.inject = inject,
	.inject_relative = inject_relative,
	.interrupt = interrupt,
	.stop = stop,
	.ioctl = ioctl,
	.get_stats = get_stats,
	.reset_stats = reset_stats,
	.get_snaplen = get_snaplen,
	.get_capabilities = get_capabilities,
	.get_datalink_type = get_datalink_type,
	.config_load = config_load,
	.config_swap = config_swap,
	.config_free = config_free,
	.msg_receive = msg_receive,
	.msg_finalize = msg_finalize,
	.get_msg_pool_info = get_msg_pool_info,
};
