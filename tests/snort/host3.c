/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * libdaq 3: what Snort 3 does with a module, by libdaq's own functions.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <daq.h>
#include <daq_module_api.h>

#include <nfmeta/abi.h>

#include "../../examples/snort/nfmeta_slot.h"
#include "host.h"

#define INSTANCES 8
#define BATCH 1024

static DAQ_Module_h module;
static DAQ_Instance_h instances[INSTANCES];
static unsigned int at; /* the instance whose turn it is */

static void
show_vars(void)
{
	const DAQ_VariableDesc_t *v;
	int n = daq_module_get_variable_descs(module, &v), i;

	for (i = 0; i < n; i++)
		printf("%s: %s\n", v[i].name, v[i].description);
	exit(0);
}

static DAQ_Config_h
make_config(void)
{
	DAQ_ModuleConfig_h m = NULL;
	DAQ_Config_h config;
	char *value;
	int i;

	if (daq_config_new(&config) != DAQ_SUCCESS ||
	    daq_module_config_new(&m, module) != DAQ_SUCCESS)
		host_fail("no memory");
	if (o.input != NULL)
		daq_config_set_input(config, o.input);
	daq_config_set_msg_pool_size(config, (uint32_t)o.pool);
	daq_config_set_snaplen(config, (int)o.snaplen);
	daq_config_set_timeout(config, (unsigned int)o.timeout_ms);
	if (o.instances > 1)
		daq_config_set_total_instances(config, (unsigned int)o.instances);
	if (daq_module_config_set_mode(m, o.read_file	? DAQ_MODE_READ_FILE
					  : o.is_inline ? DAQ_MODE_INLINE
							: DAQ_MODE_PASSIVE) != DAQ_SUCCESS)
		host_fail("libdaq: the module has no read-file mode");
	for (i = 0; i < o.nvars; i++) {
		char *name = strdup(o.vars[i]);

		value = strchr(name, '=');
		if (value != NULL)
			*value++ = '\0';
		daq_module_config_set_variable(m, name, value);
		free(name);
	}
	daq_config_push_module_config(config, m);
	return config;
}

static void
init(void)
{
	DAQ_Config_h config = make_config();
	char err[256] = "";
	unsigned int i;

	for (i = 0; i < o.instances; i++) {
		if (o.instances > 1)
			daq_config_set_instance_id(config, i + 1);
		if (daq_instance_instantiate(config, &instances[i], err, sizeof(err)) !=
		    DAQ_SUCCESS)
			host_fail(err);
		if (o.filter != NULL &&
		    daq_instance_set_filter(instances[i], o.filter) != DAQ_SUCCESS)
			host_fail(daq_instance_get_error(instances[i]));
	}
	daq_config_destroy(config);
}

void
daq_open(void)
{
	const char *dirs[2] = {o.dirs[0], NULL};

	if (daq_load_dynamic_modules(dirs) != DAQ_SUCCESS)
		host_fail("libdaq loads no modules");
	module = daq_find_module("nfmeta");
	if (module == NULL)
		host_fail("libdaq has no module \"nfmeta\"");
	if (o.show_vars)
		show_vars();
	if (o.instances > INSTANCES)
		host_fail("too many instances");
	init();
}

void
daq_begin(void)
{
	DAQ_MsgPoolInfo_t pool;
	static bool ended;
	unsigned int i;

	if (ended) { /* for libdaq, one that was stopped cannot start again */
		for (i = 0; i < o.instances; i++)
			daq_instance_destroy(instances[i]);
		init();
	}
	ended = true;
	for (i = 0; i < o.instances; i++) {
		if (daq_instance_start(instances[i]) != DAQ_SUCCESS)
			host_fail(daq_instance_get_error(instances[i]));
		if (daq_instance_get_msg_pool_info(instances[i], &pool) != DAQ_SUCCESS ||
		    pool.size != o.pool || pool.available != pool.size)
			host_fail("the pool is not as asked for, or not all of it is there");
	}
}

void
daq_twice(void)
{
	DAQ_Config_h config = make_config();
	DAQ_Instance_h second;
	char err[256] = "";

	if (daq_instance_instantiate(config, &second, err, sizeof(err)) != DAQ_SUCCESS) {
		host_line(err);
	} else {
		if (daq_instance_start(second) != DAQ_SUCCESS)
			host_line(daq_instance_get_error(second));
		else
			host_line("the second one has started");
		daq_instance_destroy(second);
	}
	daq_config_destroy(config);
}

static int
packet(DAQ_Instance_h in, DAQ_Msg_h msg)
{
	const DAQ_PktHdr_t *h = daq_msg_get_pkthdr(msg);
	const DAQ_PktDecodeData_t *p = daq_msg_get_meta(msg, DAQ_PKT_META_DECODE_DATA);
	const struct nfmeta_record *r = daq_msg_get_meta(msg, NFMETA_DAQ_SLOT);
	int v;
	struct seen s = {
		.data = daq_msg_get_data(msg),
		.caplen = daq_msg_get_data_len(msg),
		.pktlen = h->pktlen,
		.ts = h->ts,
		.flow_id = h->flow_id,
		.opaque = h->opaque,
		.tenant = h->tenant_id,
		.space = h->address_space_id,
		.ingress = h->ingress_index,
		.group = h->ingress_group,
		.has_flow = (h->flags & DAQ_PKT_FLAG_FLOWID_IS_VALID) != 0,
		.has_opaque = (h->flags & DAQ_PKT_FLAG_OPAQUE_IS_VALID) != 0,
		.is_new = (h->flags & DAQ_PKT_FLAG_NEW_FLOW) != 0,
		.reverse = (h->flags & DAQ_PKT_FLAG_REV_FLOW) != 0,
		.significant = (h->flags & DAQ_PKT_FLAG_SIGNIFICANT_GROUPS) != 0,
		.record = r != NULL,
		.decode = p != NULL,
	};

	if (((h->flags & DAQ_PKT_FLAG_NOT_FORWARDING) != 0) != !o.is_inline)
		host_fail("NOT_FORWARDING is not as the mode is");
	if (r != NULL)
		s.gen = r->flow_gen;
	if (p != NULL) {
		s.l3_good = p->flags.bits.l3_checksum;
		s.l4_good = p->flags.bits.l4_checksum;
		s.csum_error = p->flags.bits.checksum_error;
		s.l3_off = p->l3_offset;
		s.l4_off = p->l4_offset;
		s.may_be_new = (p->flags.bits.tcp || p->flags.bits.udp) &&
			       (r->flags & (NFMETA_FRAG_MASK | NFMETA_TUNNEL_OUTER)) == 0;
		s.tcp_good = p->flags.bits.tcp && p->flags.bits.l4_checksum;
		if (p->flags.bits.l3 && !p->flags.bits.ipv4 && !p->flags.bits.ipv6)
			host_fail("L3 is neither IPv4 nor IPv6");
		if (p->payload_offset != DAQ_PKT_DECODE_OFFSET_INVALID)
			host_fail("Snort would take WHITELIST back");
	}
	v = host_packet(&s);
	if (want_inject != NULL)
		host_injected(daq_instance_inject_relative(in, msg, want_inject, want_inject_len,
							   o.inject_back) == DAQ_SUCCESS);
	if (want_break)
		daq_instance_interrupt(in);
	if (v == BLACKLIST) {
		DIOCTL_SetPacketVerdictReason why = {.msg = msg, .verdict_reason = 7};

		if (daq_instance_ioctl(in, DIOCTL_SET_PACKET_VERDICT_REASON, &why, sizeof(why)) !=
		    DAQ_SUCCESS)
			host_fail("no reason can be set");
	}
	return v;
}

static void
flow(DAQ_Msg_h msg)
{
	const DAQ_FlowStats_t *s = daq_msg_get_hdr(msg);
	const struct nfmeta_flow_delete *d = daq_msg_get_meta(msg, NFMETA_DAQ_SLOT);
	struct ended e = {
		.is_end = daq_msg_get_type(msg) == DAQ_MSG_TYPE_EOF,
		.named = true,
		.flow_id = d->flow_id,
		.gen = d->flow_gen,
		.reason = d->reason,
		.packets = s->initiator_pkts + s->responder_pkts,
		.bytes = s->initiator_bytes + s->responder_bytes,
		.port = {ntohs(s->initiator_port), ntohs(s->responder_port)},
		.proto = s->protocol,
	};

	if (daq_msg_get_hdr_len(msg) != sizeof(*s))
		host_fail("not a DAQ_FlowStats_t");
	host_flow(&e);
}

static void
finish(DAQ_Instance_h in, DAQ_Msg_h msg, int v)
{
	if (daq_instance_msg_finalize(in, msg, (DAQ_Verdict)(v == RETRY ? PASS : v)) != DAQ_SUCCESS)
		host_fail("a message cannot be finalized");
}

enum got
daq_get(uint64_t max)
{
	static const enum got map[] = {
		[DAQ_RSTAT_OK] = GOT_OK,
		[DAQ_RSTAT_WOULD_BLOCK] = GOT_OK,
		[DAQ_RSTAT_TIMEOUT] = GOT_TIMEOUT,
		[DAQ_RSTAT_EOF] = GOT_END,
		[DAQ_RSTAT_INTERRUPTED] = GOT_INTERRUPTED,
		[DAQ_RSTAT_NOBUF] = GOT_NOBUF,
		[DAQ_RSTAT_ERROR] = GOT_ERROR,
		[DAQ_RSTAT_INVALID] = GOT_ERROR,
	};
	static bool ended[INSTANCES];
	DAQ_Instance_h in = instances[at];
	DAQ_RecvStatus st = DAQ_RSTAT_INVALID;
	DAQ_Msg_h msgs[BATCH];
	int verdicts[BATCH];
	unsigned int n, i, k;

	if (max > BATCH)
		max = BATCH;
	if (max > o.pool)
		max = o.pool;
	n = daq_instance_msg_receive(in, (unsigned int)max, msgs, &st);
	for (i = 0; i < n; i++) {
		verdicts[i] = PASS;
		if (daq_msg_get_type(msgs[i]) == DAQ_MSG_TYPE_PACKET)
			verdicts[i] = packet(in, msgs[i]);
		else
			flow(msgs[i]);
	}
	for (i = 0; i < n; i++) {
		k = o.reverse_finalize ? n - 1 - i : i;
		finish(in, msgs[k], verdicts[k]);
	}
	if (o.instances > 1 && st == DAQ_RSTAT_EOF) {
		ended[at] = true;
		st = DAQ_RSTAT_OK;
		for (i = 0; i < o.instances && ended[i]; i++)
			;
		if (i == o.instances)
			return GOT_END;
	}
	do
		at = (at + 1) % (unsigned int)o.instances;
	while (o.instances > 1 && ended[at]);
	return map[st];
}

void
daq_interrupt_now(void)
{
	unsigned int i;

	for (i = 0; i < o.instances; i++)
		if (instances[i] != NULL)
			daq_instance_interrupt(instances[i]);
}

void
daq_reload(void)
{
	void *config = NULL, *old = NULL;
	unsigned int i;

	for (i = 0; i < o.instances; i++)
		if (daq_instance_config_load(instances[i], &config) != DAQ_SUCCESS ||
		    daq_instance_config_swap(instances[i], config, &old) != DAQ_SUCCESS ||
		    daq_instance_config_free(instances[i], old) != DAQ_SUCCESS)
			host_fail("the module cannot be reloaded");
}

void
daq_end(void)
{
	unsigned int i;

	for (i = 0; i < o.instances; i++)
		if (daq_instance_stop(instances[i]) != DAQ_SUCCESS ||
		    daq_instance_check_status(instances[i]) != DAQ_STATE_STOPPED)
			host_fail("the module does not stop");
}

void
daq_totals(struct totals *t)
{
	unsigned int i;
	DAQ_Stats_t s;
	int v;

	for (i = 0; i < o.instances; i++) {
		if (daq_instance_get_stats(instances[i], &s) != DAQ_SUCCESS)
			host_fail("no statistics");
		t->hw_received += s.hw_packets_received;
		t->hw_dropped += s.hw_packets_dropped;
		t->received += s.packets_received;
		t->filtered += s.packets_filtered;
		t->injected += s.packets_injected;
		t->outstanding += s.packets_outstanding;
		for (v = 0; v < MAX_DAQ_VERDICT; v++)
			t->verdict[v] += s.verdicts[v];
		daq_instance_reset_stats(instances[i]);
		daq_instance_get_stats(instances[i], &s);
		if (s.packets_received != 0 || s.hw_packets_received != 0 || s.verdicts[PASS] != 0)
			host_fail("the statistics are not 0 after reset_stats");
	}
}

const char *
daq_error(void)
{
	unsigned int i;

	for (i = 0; i < o.instances; i++)
		if (daq_instance_get_error(instances[i])[0] != '\0')
			return daq_instance_get_error(instances[i]);
	return "no error was set";
}

void
daq_close(void)
{
	DAQ_Instance_h in;
	unsigned int i;

	for (i = 0; i < o.instances; i++) {
		in = instances[i];
		instances[i] = NULL;
		daq_instance_destroy(in);
	}
	daq_unload_modules();
}
