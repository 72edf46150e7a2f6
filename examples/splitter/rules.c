/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Rules as PF_RING FT has them:
 *
 *     [filter]                      [shunt]
 *     YouTube = discard             TLS = 10
 *     Netflix = shunt               default = 100
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <netinet/in.h>

#include "../common/common.h"
#include "apps.h"

/* One protocol, named differently by versions of nDPI. */
static const char *const also[][2] = {
	{"SSL", "TLS"},
	{"SMB", "SMBv23"},
	{"Office365", "Microsoft365"},
	{"Skype", "Skype_Teams"},
	{"GoogleHangout", "GoogleHangoutDuo"},
};

static int
number_of(const struct dpi *dpi, const char *name)
{
	const char *const *names = dpi_names(dpi);
	int i;

	for (i = 0; names[i] != NULL && i < APPS_MAX; i++)
		if (strcasecmp(names[i], name) == 0)
			return i;
	return -1;
}

static int
find(const struct dpi *dpi, const char *name)
{
	int n = number_of(dpi, name);
	size_t i, k;

	for (i = 0; n < 0 && i < RTE_DIM(also); i++)
		for (k = 0; n < 0 && k < 2; k++)
			if (strcasecmp(also[i][k], name) == 0)
				n = number_of(dpi, also[i][!k]);
	return n;
}

static int
parse_filter(const struct ini *i, struct rule *r)
{
	if (strcasecmp(i->value, "discard") == 0)
		r->action = NFMETA_ACTION_DROP;
	else if (strcasecmp(i->value, "shunt") == 0)
		r->action = NFMETA_ACTION_SHUNT;
	else if (strcasecmp(i->value, "forward") == 0)
		r->action = NFMETA_ACTION_INSPECT;
	else
		return ini_bad(i, "%s = \"%s\": discard, shunt or forward is wanted", i->key,
			       i->value);
	return 0;
}

static int
parse_shunt(const struct ini *i, struct rule *r)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(i->value, &end, 10);
	if (i->value[0] < '0' || i->value[0] > '9' || *end != '\0' || errno != 0 || v > UINT32_MAX)
		return ini_bad(i, "%s = \"%s\": a number of packets from 0 to %u is wanted", i->key,
			       i->value, UINT32_MAX);
	r->action = NFMETA_ACTION_SHUNT;
	r->after = (uint32_t)v;
	return 0;
}

/* The rule that a line is about; NULL: the line said. */
static struct rule *
place(struct rules *r, const struct ini *i, const struct dpi *dpi, bool is_shunt)
{
	char near[160];
	int n;

	if (is_shunt) {
		if (strcasecmp(i->key, "default") == 0)
			return &r->rest;
		if (strcasecmp(i->key, "tcp") == 0)
			return &r->tcp;
		if (strcasecmp(i->key, "udp") == 0)
			return &r->udp;
	}
	n = find(dpi, i->key);
	if (n > 0) /* 0 is "Unknown" */
		return &r->app[n];
	ini_bad(i, "[%s] \"%s\" is no protocol of nDPI %s%s", i->section, i->key, dpi_version(dpi),
		nearest(i->key, dpi_names(dpi) + 1, near, sizeof(near)));
	return NULL;
}

static int
line(struct rules *r, const struct ini *i, const struct dpi *dpi)
{
	bool is_shunt = strcmp(i->section, "shunt") == 0;
	struct rule *rule;

	if (strcmp(i->section, "splitter") == 0 || strcmp(i->section, "policy") == 0)
		return 0; /* of the configuration, which may be the same file */
	if (!is_shunt && strcmp(i->section, "filter") != 0)
		return ini_bad(i, "there is no section [%s]; rules are in [filter] and [shunt]",
			       i->section);
	rule = place(r, i, dpi, is_shunt);
	if (rule == NULL)
		return -1;
	if (rule->line != 0)
		return ini_bad(i, "%s has a rule already, in line %u", i->key, rule->line);
	rule->line = i->line;
	r->n++;
	return is_shunt ? parse_shunt(i, rule) : parse_filter(i, rule);
}

int
rules_read(struct rules *r, const char *path, const struct dpi *dpi)
{
	struct ini i;
	int rc;

	memset(r, 0, sizeof(*r));
	if (ini_open(&i, "--rules", path) != 0)
		return -1;
	while ((rc = ini_next(&i)) == 1)
		if (line(r, &i, dpi) != 0) {
			rc = -1;
			break;
		}
	ini_close(&i);
	r->any_rest = r->rest.line + r->tcp.line + r->udp.line > 0;
	return rc;
}

const struct rule *
rules_find(const struct rules *r, uint32_t app_id, uint8_t proto)
{
	uint32_t app = app_id & 0xffff, master = app_id >> 16;

	if (app < APPS_MAX && r->app[app].action != NFMETA_ACTION_NONE)
		return &r->app[app];
	if (master < APPS_MAX && r->app[master].action != NFMETA_ACTION_NONE)
		return &r->app[master];
	if (proto == IPPROTO_TCP && r->tcp.action != NFMETA_ACTION_NONE)
		return &r->tcp;
	if (proto == IPPROTO_UDP && r->udp.action != NFMETA_ACTION_NONE)
		return &r->udp;
	return r->rest.action != NFMETA_ACTION_NONE ? &r->rest : NULL;
}
