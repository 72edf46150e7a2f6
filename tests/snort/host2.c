/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * libdaq 2: what Snort 2.9 does with a module, by libdaq's own functions.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <daq.h>
#include <daq_api.h>

#include <nfmeta/abi.h>

#include "host.h"

static const DAQ_Module_t *module;
static DAQ_Config_t config;
static void *handle;
static bool asked_to_break;

#define KEPT 64
/* What priv_ptr pointed to, some packets ago: it has to be there still. */
static struct {
	const struct nfmeta_record *at;
	struct nfmeta_record was;
} kept[KEPT];
static uint64_t n_kept;

static void
fill_config(void)
{
	static char *input;
	char *value;
	int i;

	input = strdup(o.input != NULL ? o.input : "");
	config.name = input;
	config.snaplen = (int)o.snaplen;
	config.timeout = (unsigned int)o.timeout_ms;
	config.mode = o.read_file   ? DAQ_MODE_READ_FILE
		      : o.is_inline ? DAQ_MODE_INLINE
				    : DAQ_MODE_PASSIVE;
	for (i = 0; i < o.nvars; i++) {
		char *name = strdup(o.vars[i]);

		value = strchr(name, '=');
		if (value != NULL)
			*value++ = '\0';
		daq_config_set_value(&config, name, value);
		free(name);
	}
}

static void
init(void)
{
	char err[256] = "";

	if (daq_initialize(module, &config, &handle, err, sizeof(err)) != DAQ_SUCCESS)
		host_fail(err);
	if (o.filter != NULL && daq_set_filter(module, handle, o.filter) != DAQ_SUCCESS)
		host_fail(daq_get_error(module, handle));
}

void
daq_open(void)
{
	const char *dirs[2] = {o.dirs[0], NULL};

	if (daq_load_modules(dirs) != 0)
		host_fail("libdaq loads no modules");
	module = daq_find_module("nfmeta");
	if (module == NULL)
		host_fail("libdaq has no module \"nfmeta\"");
	fill_config();
	init();
}

void
daq_begin(void)
{
	static bool ended;

	if (ended) { /* for libdaq, one that was stopped cannot start again */
		daq_shutdown(module, handle);
		memset(kept, 0, sizeof(kept));
		init();
	}
	ended = true;
	if (daq_start(module, handle) != DAQ_SUCCESS)
		host_fail(daq_get_error(module, handle));
}

void
daq_twice(void)
{
	char err[256] = "";
	const DAQ_Module_t *m = module;
	void *second;

	if (o.ndirs > 1) { /* another copy of the module, which libdaq would not take */
		void *so;

		snprintf(err, sizeof(err), "%s/daq_nfmeta.so", o.dirs[1]);
		so = dlopen(err, RTLD_NOW | RTLD_LOCAL);
		m = so != NULL ? dlsym(so, "DAQ_MODULE_DATA") : NULL;
		if (m == NULL)
			host_fail(dlerror());
	}
	if (daq_initialize(m, &config, &second, err, sizeof(err)) != DAQ_SUCCESS) {
		host_line(err);
		return;
	}
	if (daq_start(m, second) != DAQ_SUCCESS)
		host_line(daq_get_error(m, second));
	else
		host_line("the second one has started");
	daq_shutdown(m, second);
}

static void
look_at_kept(const struct nfmeta_record *r)
{
	uint64_t k = n_kept++ % KEPT;

	if (kept[k].at != NULL && memcmp(kept[k].at, &kept[k].was, sizeof(*r)) != 0)
		host_fail("what priv_ptr pointed to has changed");
	kept[k].at = r;
	kept[k].was = *r;
}

static DAQ_Verdict
packet(void *user, const DAQ_PktHdr_t *h, const uint8_t *data)
{
	const struct nfmeta_record *r = h->priv_ptr;
	int v;
	struct seen s = {
		.data = (uint8_t *)(uintptr_t)data,
		.caplen = h->caplen,
		.pktlen = h->pktlen,
		.ts = h->ts,
		.flow_id = h->flow_id,
		.opaque = h->opaque,
		.space = h->address_space_id,
		.ingress = h->ingress_index,
		.group = h->ingress_group,
		.has_opaque = (h->flags & DAQ_PKT_FLAG_OPAQUE_IS_VALID) != 0,
		.tcp_good = (h->flags & DAQ_PKT_FLAG_HW_TCP_CS_GOOD) != 0,
	};

	(void)user;
	if (r == NULL)
		host_fail("there is no priv_ptr");
	look_at_kept(r);
	s.record = r->size != 0;
	s.may_be_new = true;
	if (s.record) {
		s.gen = r->flow_gen;
		s.has_flow = (r->flags & NFMETA_FLOW_KNOWN) != 0;
		s.is_new = (r->flags & NFMETA_FLOW_NEW) != 0;
		s.reverse = (r->flags & NFMETA_FLOW_REVERSE) != 0;
		s.l3_good = (r->flags & NFMETA_L3_CSUM_GOOD) != 0;
		s.l4_good = (r->flags & NFMETA_L4_CSUM_GOOD) != 0;
		s.csum_error = (r->flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0;
		s.decode = r->size >= NFMETA_RECORD_CORE;
		s.l3_off = (r->flags & NFMETA_L3_VALID) != 0 ? r->l3_off : 0xffff;
		s.l4_off = (r->flags & NFMETA_L4_VALID) != 0 ? r->l4_off : 0xffff;
	}
	v = host_packet(&s);
	if (want_inject != NULL)
		host_injected(daq_inject(module, handle, h, want_inject, want_inject_len,
					 o.inject_back) == DAQ_SUCCESS);
	if (want_break) {
		asked_to_break = true;
		daq_breakloop(module, handle);
	}
	return (DAQ_Verdict)v;
}

static int
meta(void *user, const DAQ_MetaHdr_t *h, const uint8_t *data)
{
	const Flow_Stats_t *s = (const Flow_Stats_t *)data;
	struct ended e = {
		.is_end = h->type == DAQ_METAHDR_TYPE_EOF,
		.packets = s->initiatorPkts + s->responderPkts,
		.bytes = s->initiatorBytes + s->responderBytes,
	};

	(void)user;
	if (s->protocol == 0 && s->initiatorPort != 0)
		host_fail("a flow with ports and no protocol");
	host_flow(&e);
	return 0;
}

enum got
daq_get(uint64_t max)
{
	int rc;

	asked_to_break = false;
	rc = daq_acquire_with_meta(module, handle, (int)max, packet, meta, NULL);
	if (rc == DAQ_READFILE_EOF)
		return GOT_END;
	if (rc < 0)
		return GOT_ERROR;
	return asked_to_break ? GOT_INTERRUPTED : GOT_OK;
}

void
daq_interrupt_now(void)
{
	if (handle != NULL)
		daq_breakloop(module, handle);
}

void
daq_reload(void)
{
	void *config_new = NULL, *config_old = NULL;
	int rc = daq_hup_prep(module, handle, &config_new);

	/* nothing of the module's is in a file: it has no such calls */
	if (rc == DAQ_SUCCESS && daq_hup_apply(module, handle, config_new, &config_old) == 0)
		daq_hup_post(module, handle, config_old);
}

void
daq_end(void)
{
	if (daq_stop(module, handle) != DAQ_SUCCESS)
		host_fail("the module does not stop");
	if (daq_check_status(module, handle) != DAQ_STATE_STOPPED)
		host_fail("the module is not stopped");
}

void
daq_totals(struct totals *t)
{
	DAQ_Stats_t s;
	int v;

	if (daq_get_stats(module, handle, &s) != DAQ_SUCCESS)
		host_fail("no statistics");
	*t = (struct totals){.hw_received = s.hw_packets_received,
			     .hw_dropped = s.hw_packets_dropped,
			     .received = s.packets_received,
			     .filtered = s.packets_filtered,
			     .injected = s.packets_injected};
	for (v = 0; v < VERDICTS; v++)
		t->verdict[v] = s.verdicts[v];
	daq_reset_stats(module, handle);
	daq_get_stats(module, handle, &s);
	if (s.packets_received != 0 || s.hw_packets_received != 0 || s.verdicts[PASS] != 0)
		host_fail("the statistics are not 0 after reset_stats");
}

const char *
daq_error(void)
{
	return daq_get_error(module, handle);
}

void
daq_close(void)
{
	void *h = handle;

	handle = NULL;
	daq_shutdown(module, h);
	daq_config_clear_values(&config);
	daq_unload_modules();
}
