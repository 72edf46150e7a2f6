/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_memzone.h>
#include <rte_random.h>

#include "internal.h"

/*
 * Names of the dynamic field and flag of each placement.  They carry the ABI
 * major, so that two majors can live beside each other; DPDK refuses a name
 * that somebody registered with another size.
 */
static const char *const dyn_names[] = {
	[NFMETA_PLACE_DYNFIELD] = "nfmeta_record_v1",
	[NFMETA_PLACE_UDATA64] = "nfmeta_udata64_v1",
	[NFMETA_PLACE_HEADROOM] = "nfmeta_headroom_v1", /* flag only */
};
#define SEAL_NAME "nfmeta_seal_v1"

/*
 * The names of all dynamic fields, from DPDK's own dump; there is no other way
 * to list them.  Lines look like "  name=NAME offset=…".
 */
static void
dynfield_names(char *out, size_t len)
{
	char *dump = NULL, *line, *save, *end;
	size_t dump_len = 0, used = 0;
	FILE *f = open_memstream(&dump, &dump_len);

	snprintf(out, len, "none");
	if (f == NULL)
		return;
	rte_mbuf_dyn_dump(f);
	fclose(f);
	for (line = strtok_r(dump, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, "flags:") != NULL)
			break;
		line = strstr(line, "name=");
		if (line == NULL)
			continue;
		line += strlen("name=");
		end = strchr(line, ' ');
		if (end != NULL)
			*end = '\0';
		if (used < len)
			used += (size_t)snprintf(out + used, len - used, "%s%s", used ? ", " : "",
						 line);
	}
	free(dump);
}

static int
dynfield(const char *name, size_t size, size_t align, uint16_t *offset)
{
	struct rte_mbuf_dynfield wish = {.size = size, .align = align}, have;
	char names[640];
	int at;

	snprintf(wish.name, sizeof(wish.name), "%s", name);
	at = rte_mbuf_dynfield_register(&wish);
	if (at >= 0) {
		*offset = (uint16_t)at;
		return 0;
	}
	if (rte_errno == EEXIST && rte_mbuf_dynfield_lookup(name, &have) >= 0)
		return nfmeta__fail(NFMETA_EFIELD,
				    "dynamic field '%s' exists with %zu bytes, %zu are wanted: "
				    "another program uses the name for something else",
				    name, have.size, size);
	if (rte_errno != ENOENT && rte_errno != ENOMEM)
		return nfmeta__fail(NFMETA_EFIELD, "cannot register dynamic field '%s': %s", name,
				    rte_strerror(rte_errno));
	dynfield_names(names, sizeof(names));
	return nfmeta__fail(
		NFMETA_ENOROOM,
		"no room for %zu bytes of dynamic field '%s' in the mbuf; it is held by: "
		"%s; drop one of them or take another placement",
		size, name, names);
}

/* Room for the record; the seal's room follows from it. */
static int
place(struct nfmeta_field *f, uint8_t placement, uint8_t size, uint16_t headroom_use)
{
	int rc;

	f->placement = placement;
	f->size = size;
	if (placement == NFMETA_PLACE_HEADROOM) {
		if (NFMETA_HEADROOM_ROOM + headroom_use > RTE_PKTMBUF_HEADROOM)
			return nfmeta__fail(NFMETA_ENOROOM,
					    "headroom has %d bytes, the record needs %d beside the "
					    "%u that the program uses",
					    RTE_PKTMBUF_HEADROOM, NFMETA_HEADROOM_ROOM,
					    headroom_use);
		f->offset = 0;
		f->seal_offset = offsetof(struct nfmeta_record, seal);
		return 0;
	}
	/* DPDK cannot unregister: the small one first, it is the lesser waste. */
	rc = dynfield(SEAL_NAME, 2, 2, &f->seal_offset);
	if (rc != 0)
		return rc;
	return dynfield(dyn_names[placement], size, 8, &f->offset);
}

static int
place_auto(struct nfmeta_field *f, uint16_t headroom_use)
{
	static const uint8_t order[][2] = {
		{NFMETA_PLACE_DYNFIELD, NFMETA_RECORD_CORE},
		{NFMETA_PLACE_HEADROOM, NFMETA_RECORD_FULL},
		{NFMETA_PLACE_UDATA64, NFMETA_RECORD_WORD},
	};
	char names[640];
	size_t i;
	int rc;

	for (i = 0; i < RTE_DIM(order); i++) {
		rc = place(f, order[i][0], order[i][1], headroom_use);
		if (rc != -NFMETA_ENOROOM)
			return rc;
	}
	dynfield_names(names, sizeof(names));
	return nfmeta__fail(
		NFMETA_ENOROOM,
		"no placement fits: dynamic fields in the way: %s; headroom has %d bytes, "
		"%d are needed beside the %u that the program uses",
		names, RTE_PKTMBUF_HEADROOM, NFMETA_HEADROOM_ROOM, headroom_use);
}

/* Sizes that a placement can have; 0 in the wish asks for the first. */
static int
size_of(uint8_t placement, uint8_t wish, uint8_t *size)
{
	switch (placement) {
	case NFMETA_PLACE_AUTO:
		*size = 0;
		return wish == 0;
	case NFMETA_PLACE_DYNFIELD:
		*size = wish ? wish : NFMETA_RECORD_CORE;
		return *size == NFMETA_RECORD_CORE || *size == NFMETA_RECORD_WIDE;
	case NFMETA_PLACE_UDATA64:
		*size = NFMETA_RECORD_WORD;
		return wish == 0 || wish == *size;
	case NFMETA_PLACE_HEADROOM:
		*size = NFMETA_RECORD_FULL;
		return wish == 0 || wish == *size;
	default:
		return 0;
	}
}

int
nfmeta_field_register(const struct nfmeta_field_opts *opts, struct nfmeta_field *field)
{
	static const struct nfmeta_field_opts defaults = NFMETA_FIELD_OPTS();
	struct rte_mbuf_dynflag flag = {0};
	const struct rte_memzone *mz;
	struct nfmeta_field_opts o;
	struct nfmeta_field f = {0};
	char name[RTE_MEMZONE_NAMESIZE];
	uint8_t size;
	int rc, bit;

	if (opts == NULL)
		opts = &defaults;
	if (nfmeta__opts(&o, sizeof(o), opts, opts->sz) != 0)
		return nfmeta__fail(
			EINVAL,
			"nfmeta_field_opts.sz is %u, %zu is known here, and the rest must "
			"be 0: set it with NFMETA_FIELD_OPTS()",
			opts->sz, sizeof(o));
	if (!size_of(o.placement, o.size, &size))
		return nfmeta__fail(
			EINVAL,
			"no record of %u bytes in placement %u: DYNFIELD takes 16 or 32, "
			"the others one size each (0)",
			o.size, o.placement);
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return nfmeta__fail(NFMETA_EROLE,
				    "a record field is registered by the primary process only; a "
				    "secondary gets it from its link");

	rc = o.placement == NFMETA_PLACE_AUTO ? place_auto(&f, o.headroom_use)
					      : place(&f, o.placement, size, o.headroom_use);
	if (rc != 0)
		return rc;
	snprintf(flag.name, sizeof(flag.name), "%s", dyn_names[f.placement]);
	bit = rte_mbuf_dynflag_register(&flag);
	if (bit < 0)
		return nfmeta__fail(NFMETA_ENOROOM,
				    "no free bit in ol_flags for the dynamic flag '%s': %s",
				    flag.name, rte_strerror(rte_errno));

	/* One key per field, kept where the whole primary finds it: records must
	 * read the same whoever registered first.
	 */
	snprintf(name, sizeof(name), "nfm.field.%u.%u", f.placement, f.size);
	mz = rte_memzone_lookup(name);
	if (mz == NULL) {
		f.flag = UINT64_C(1) << bit;
		f.key = rte_rand();
		mz = rte_memzone_reserve(name, sizeof(f), SOCKET_ID_ANY, 0);
		if (mz == NULL)
			return nfmeta__fail(ENOMEM, "no memory for memzone '%s' of %zu bytes", name,
					    sizeof(f));
		memcpy(mz->addr, &f, sizeof(f));
	}
	memcpy(field, mz->addr, sizeof(*field));
	return 0;
}
