/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

struct opts opts = {.first_queue = -1, .last_queue = -1, .wait = 10, .idle_us = 1000};

static uint32_t
number(const char *key, const char *text, uint32_t min, uint32_t max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || !isdigit((unsigned char)*text) || n < min || n > max)
		FatalError("%s=%s: a number from %u to %u is wanted", key, text, min, max);
	return (uint32_t)n;
}

/* 0 or 1: which of the two words it is. */
static bool
choice(const char *key, const char *text, const char *a, const char *b)
{
	if (strcmp(text, a) != 0 && strcmp(text, b) != 0)
		FatalError("%s=%s: %s or %s is wanted", key, text, a, b);
	return strcmp(text, b) == 0;
}

/* "N": the first N; "A-B": from A to B. */
static void
queues(const char *key, char *text)
{
	char *dash = strchr(text, '-');

	if (dash == NULL) {
		opts.first_queue = 0;
		opts.last_queue = (int)number(key, text, 1, WORKERS) - 1;
		return;
	}
	*dash = '\0';
	opts.first_queue = (int)number(key, text, 0, WORKERS - 1);
	opts.last_queue = (int)number(key, dash + 1, 0, WORKERS - 1);
	if (opts.last_queue < opts.first_queue)
		FatalError("%s=%s-%s: the first is not below the last", key, text, dash + 1);
}

static const char *const keys[] = {"link",    "file-prefix", "queues", "mode", "wait", "records",
				   "compare", "stats",	     "eal",    "idle", NULL};

static void
option(unsigned int key, char *value)
{
	const char *name = keys[key];

	switch (key) {
	case 0:
		opts.link = value;
		break;
	case 1:
		opts.file_prefix = value;
		break;
	case 2:
		queues(name, value);
		break;
	case 3:
		opts.ips = choice(name, value, "ids", "ips");
		break;
	case 4:
		opts.wait = number(name, value, 0, 3600);
		break;
	case 5:
		opts.ignore_records = choice(name, value, "use", "ignore");
		break;
	case 6:
		opts.compare = number(name, value, 1, 1000000000);
		break;
	case 7:
		opts.stats = value;
		break;
	case 8:
		opts.attach_late = choice(name, value, "init", "run");
		break;
	case 9:
		opts.idle_us = number(name, value, 0, 100000);
		break;
	}
}

void
args_parse(const char *args)
{
	char *text = SCStrdup(args != NULL ? args : ""), *rest = text, *word, *value;
	uint32_t had = 0;
	unsigned int i;

	if (text == NULL)
		FatalError("no memory");
	while ((word = strsep(&rest, ";")) != NULL) {
		if (*word == '\0')
			continue;
		value = strchr(word, '=');
		if (value != NULL)
			*value++ = '\0';
		for (i = 0; keys[i] != NULL && strcmp(keys[i], word) != 0; i++)
			;
		if (keys[i] == NULL)
			FatalError(
				"unknown key \"%s\" in --capture-plugin-args: there are"
				" link, file-prefix, queues, mode, wait, records, compare, stats,"
				" eal and idle",
				word);
		if (value == NULL || *value == '\0')
			FatalError("%s has no value: %s=VALUE is wanted", word, word);
		if ((had & 1u << i) != 0)
			FatalError("%s is there twice", word);
		had |= 1u << i;
		option(i, value);
	}
	if (opts.link == NULL)
		FatalError("no link: --capture-plugin-args=\"link=NAME;...\" is wanted");
	if (opts.compare != 0 && opts.ignore_records)
		FatalError("compare and records=ignore do not go together");
	/* text stays: the options point into it */
}
