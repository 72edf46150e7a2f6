/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfmeta-daq.h"

enum {
	VAR_FILE_PREFIX,
	VAR_QUEUE,
	VAR_QUEUES,
	VAR_WAIT,
	VAR_RECORDS,
	VAR_VERDICT,
	VAR_FLOW_MESSAGES,
	VAR_TIME,
	VAR_TENANT,
	VAR_GROUPS,
	VAR_WHO,
	VAR_STATS,
	VAR_EAL
};

const struct var vars[] = {
	[VAR_FILE_PREFIX] = {"file_prefix", "EAL's --file-prefix of the upfront NF (rte)"},
	[VAR_QUEUE] = {"queue", "queue of the link; of several instances the first one's (0)"},
	[VAR_QUEUES] = {"queues",
			"dpdk: receive queues of every port, at least one per instance (1)"},
	[VAR_WAIT] = {"wait", "seconds to wait for the upfront NF and its link at the start (10)"},
	[VAR_RECORDS] = {"records", "use, or ignore: as if there were none (use)"},
	[VAR_VERDICT] = {"verdicts",
			 "send: verdicts on flows go to the upfront NF; keep: they do not"
			 " (send)"},
	[VAR_FLOW_MESSAGES] = {"flow_messages",
			       "both, end or none: begin and end of flows as messages"
			       " (both)"},
	[VAR_TIME] = {"time",
		      "clock, record, or auto: the record's if within 10 s of the clock (auto)"},
	[VAR_TENANT] = {"tenant",
			"id or space: the record's tenant is tenant id or address space (id)"},
	[VAR_GROUPS] = {"groups",
			"no, port: the port is the ingress group; tenant: the tenant is both"
			" groups, and they tell flows apart (no)"},
	[VAR_WHO] = {"who", "this NF's number in its verdicts, 0 to 65535 (1)"},
	[VAR_STATS] = {"stats",
		       "file for a JSON object at the end; several instances: FILE.INSTANCE"},
	[VAR_EAL] = {"eal", "dpdk: more arguments of EAL, with a space between two"},
};
const unsigned int vars_n = sizeof(vars) / sizeof(vars[0]);

void
vars_defaults(struct opts *o)
{
	*o = (struct opts){.file_prefix = "rte",
			   .queues = 1,
			   .wait = 10,
			   .who = 1,
			   .snaplen = PACKET_MAX,
			   .items = BURST};
}

static int
number(const char *name, const char *text, uint32_t max, uint32_t *out, char *err, size_t size)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || !isdigit((unsigned char)*text) || n > max) {
		snprintf(err, size, "nfmeta: %s=%s: a number from 0 to %u is wanted", name, text,
			 max);
		return -1;
	}
	*out = (uint32_t)n;
	return 0;
}

/* words: "use ignore" */
static int
choice(const char *name, const char *text, const char *words, int *out, char *err, size_t size)
{
	size_t len = strlen(text);
	const char *w = words;
	int i;

	for (i = 0; *w != '\0'; i++) {
		if (strcspn(w, " ") == len && strncmp(w, text, len) == 0) {
			*out = i;
			return 0;
		}
		w += strcspn(w, " ");
		w += *w == ' ';
	}
	snprintf(err, size, "nfmeta: %s=%s: one of \"%s\" is wanted", name, text, words);
	return -1;
}

static int
text(const char *name, const char *from, char *to, size_t room, char *err, size_t size)
{
	if (strlen(from) < room) {
		strcpy(to, from);
		return 0;
	}
	snprintf(err, size, "nfmeta: %s: longer than %zu characters", name, room - 1);
	return -1;
}

static int
unknown(const char *name, char *err, size_t size)
{
	size_t at = (size_t)snprintf(err, size, "nfmeta: unknown variable \"%s\"; there are", name);
	unsigned int i;

	for (i = 0; i < vars_n && at < size; i++)
		at += (size_t)snprintf(err + at, size - at, " %s", vars[i].name);
	return -1;
}

int
vars_set(struct opts *o, const char *name, const char *value, char *err, size_t size)
{
	unsigned int i;

	for (i = 0; i < vars_n && strcmp(vars[i].name, name) != 0; i++)
		;
	if (i == vars_n)
		return unknown(name, err, size);
	if (value == NULL || *value == '\0') {
		snprintf(err, size, "nfmeta: %s has no value: %s=VALUE is wanted", name, name);
		return -1;
	}
	switch (i) {
	case VAR_FILE_PREFIX:
		return text(name, value, o->file_prefix, sizeof(o->file_prefix), err, size);
	case VAR_QUEUE:
		return number(name, value, NFMETA_QUEUES_MAX - 1, &o->queue, err, size);
	case VAR_QUEUES:
		return number(name, value, NFMETA_QUEUES_MAX, &o->queues, err, size);
	case VAR_WAIT:
		return number(name, value, 3600, &o->wait, err, size);
	case VAR_RECORDS:
		return choice(name, value, "use ignore", &o->ignore_records, err, size);
	case VAR_VERDICT:
		return choice(name, value, "send keep", &o->keep_verdicts, err, size);
	case VAR_FLOW_MESSAGES:
		return choice(name, value, "both end none", &o->flow_messages, err, size);
	case VAR_TIME:
		return choice(name, value, "auto record clock", &o->time, err, size);
	case VAR_TENANT:
		return choice(name, value, "id space", &o->tenant_is_space, err, size);
	case VAR_GROUPS:
		return choice(name, value, "no port tenant", &o->groups, err, size);
	case VAR_WHO:
		return number(name, value, UINT16_MAX, &o->who, err, size);
	case VAR_STATS:
		return text(name, value, o->stats, sizeof(o->stats), err, size);
	default:
		return text(name, value, o->eal, sizeof(o->eal), err, size);
	}
}

int
vars_input(struct opts *o, const char *input, char *err, size_t size)
{
	if (input == NULL || *input == '\0') {
		snprintf(err, size,
			 "nfmeta: no input: -i NAME, the name of the upfront NF's link,"
			 " or -i dpdk:DEVICE is wanted");
		return -1;
	}
	return text("-i", input, o->input, sizeof(o->input), err, size);
}
