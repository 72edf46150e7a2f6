/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdlib.h>
#include <string.h>

#include <ndpi_api.h>

#include "../common/common.h"
#include "apps.h"

struct dpi {
	struct ndpi_detection_module_struct *module;
	struct ndpi_flow_struct *flows;
	const char *names[APPS_MAX + 1];
};

struct dpi *
dpi_open(uint16_t flows)
{
	struct dpi *d = calloc(1, sizeof(*d));
	NDPI_PROTOCOL_BITMASK all;
	unsigned int i;

	if (d == NULL || (d->flows = calloc(flows, sizeof(*d->flows))) == NULL) {
		complain("no memory to look into %u flows: take a smaller --app-flows", flows);
		dpi_close(d);
		return NULL;
	}
	d->module = ndpi_init_detection_module(ndpi_dont_load_tor_hosts);
	if (d->module == NULL) {
		complain("nDPI cannot be started");
		dpi_close(d);
		return NULL;
	}
	NDPI_BITMASK_SET_ALL(all);
	ndpi_set_protocol_detection_bitmask2(d->module, &all);
	ndpi_finalize_initialization(d->module);
	for (i = 0; i < APPS_MAX && i < ndpi_get_num_supported_protocols(d->module); i++)
		d->names[i] = ndpi_get_proto_name(d->module, (uint16_t)i);
	return d;
}

void
dpi_close(struct dpi *d)
{
	if (d == NULL)
		return;
	if (d->module != NULL)
		ndpi_exit_detection_module(d->module);
	free(d->flows);
	free(d);
}

const char *
dpi_version(const struct dpi *d)
{
	(void)d;
	return ndpi_revision();
}

const char *const *
dpi_names(const struct dpi *d)
{
	return d->names;
}

void
dpi_begin(struct dpi *d, uint16_t slot)
{
	memset(&d->flows[slot], 0, sizeof(d->flows[slot]));
}

/*
 * What nDPI would guess from a port or an address does not count: whoever can choose
 * these would choose what is not inspected.
 */
struct dpi_result
dpi_look(struct dpi *d, uint16_t slot, const uint8_t *l3, uint16_t len, uint64_t ms)
{
	struct ndpi_flow_struct *f = &d->flows[slot];
	struct dpi_result r = {.more = true};
	ndpi_protocol p = ndpi_detection_process_packet(d->module, f, l3, len, ms);

	if (p.app_protocol == NDPI_PROTOCOL_UNKNOWN || f->confidence < NDPI_CONFIDENCE_DPI_CACHE)
		return r;
	r.app_id = (uint32_t)p.master_protocol << 16 | p.app_protocol;
	r.more = ndpi_extra_dissection_possible(d->module, f) != 0;
	return r;
}

void
dpi_end(struct dpi *d, uint16_t slot)
{
	ndpi_free_flow_data(&d->flows[slot]);
}
