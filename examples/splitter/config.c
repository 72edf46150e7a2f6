/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Options in a file: the names of the command line, "yes" or "no" for those without a
 * value; "eal" for what stands behind "--" there.  Rules may be in the same file.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "splitter.h"

#define NAMES_MAX 64

/* Values live as long as the program. */
static struct kept {
	struct kept *next;
	char text[];
} * kept;

static char *
keep(const char *text)
{
	size_t n = strlen(text) + 1;
	struct kept *k = malloc(sizeof(*k) + n);

	if (k == NULL)
		return NULL;
	memcpy(k->text, text, n);
	k->next = kept;
	kept = k;
	return k->text;
}

static int
eal_words(const struct ini *i, char *text, struct splitter_opts *o)
{
	char *word, *rest = NULL;

	for (word = strtok_r(text, " \t", &rest); word != NULL;
	     word = strtok_r(NULL, " \t", &rest)) {
		if (o->eal_argc == (int)RTE_DIM(o->eal_argv))
			return ini_bad(i, "eal: more than %d words", o->eal_argc);
		o->eal_argv[o->eal_argc++] = word;
	}
	return 0;
}

/* Those that make no sense in a file. */
static bool
is_outside(const char *name)
{
	return strcmp(name, "config") == 0 || strcmp(name, "check") == 0 ||
	       strcmp(name, "help") == 0;
}

static const struct option *
find(const struct ini *i, const struct option *options)
{
	const char *names[NAMES_MAX + 2];
	char near[160];
	int n = 0;

	for (; options->name != NULL; options++) {
		if (is_outside(options->name))
			continue;
		if (strcmp(options->name, i->key) == 0)
			return options;
		if (n < NAMES_MAX)
			names[n++] = options->name;
	}
	names[n++] = "eal";
	names[n] = NULL;
	ini_bad(i, "there is no option \"%s\"%s", i->key,
		nearest(i->key, names, near, sizeof(near)));
	return NULL;
}

static int
line(const struct ini *i, const struct option *options,
     int (*set)(int option, const char *value, struct splitter_opts *o), struct splitter_opts *o)
{
	const struct option *option;
	char *value = keep(i->value);
	int rc;

	if (value == NULL)
		return complain("out of memory");
	if (strcmp(i->key, "eal") == 0)
		return eal_words(i, value, o);
	option = find(i, options);
	if (option == NULL)
		return -1;
	if (*value == '\0')
		return ini_bad(i, "%s has no value", i->key);
	if (option->has_arg == no_argument) {
		if (strcmp(value, "no") == 0)
			return 0;
		if (strcmp(value, "yes") != 0)
			return ini_bad(i, "%s = \"%s\": yes or no is wanted", i->key, value);
	}
	say_where(i->path, i->line);
	rc = set(option->val, value, o);
	say_where(NULL, 0);
	return rc;
}

int
config_read(const char *path, const struct option *options,
	    int (*set)(int option, const char *value, struct splitter_opts *o),
	    struct splitter_opts *o)
{
	bool any_rules = false, any_policy = false;
	struct ini i;
	int rc;

	if (ini_open(&i, o->check ? "--check" : "--config", path) != 0)
		return -1;
	while ((rc = ini_next(&i)) == 1) {
		if (strcmp(i.section, "filter") == 0 || strcmp(i.section, "shunt") == 0) {
			any_rules = true;
			continue;
		}
		if (strcmp(i.section, "policy") == 0) {
			any_policy = true;
			continue;
		}
		if (strcmp(i.section, "splitter") != 0)
			rc = ini_bad(&i,
				     "there is no section [%s]; there are [splitter], [policy],"
				     " [filter] and [shunt]",
				     i.section);
		else
			rc = line(&i, options, set, o);
		if (rc != 0)
			break;
		o->settings++;
	}
	if (rc == 0 && any_rules && o->rules == NULL)
		o->rules = path;
	else if (rc == 0 && any_rules && strcmp(o->rules, path) != 0)
		rc = complain("%s has rules of its own and names a file of rules, \"%s\"", path,
			      o->rules);
	if (rc == 0 && any_policy && o->policy_file == NULL)
		o->policy_file = path;
	else if (rc == 0 && any_policy && strcmp(o->policy_file, path) != 0)
		rc = complain("%s has a policy of its own and names a file with one, \"%s\"", path,
			      o->policy_file);
	ini_close(&i);
	return rc;
}

/* Rules of the policy that it has; -1: bad, the line said. */
static int
check_policy(const struct splitter_opts *o)
{
	const char *names[LINKS_MAX + 1] = {NULL};
	struct first first;
	struct policy *p;
	uint8_t i;
	int n;

	if (o->policy_file == NULL)
		return 0;
	for (i = 0; i < o->links; i++)
		names[i] = o->link[i].name;
	first_init(&first, o->links);
	p = policy_open(o->policy_file, &first, names);
	if (p == NULL)
		return -1;
	n = (int)p->rules.n;
	policy_close(p);
	return n;
}

int
config_check(const struct splitter_opts *o)
{
	const struct apps_opts ao = {.rules = o->rules, .flows = 1, .packets = 1};
	int policy = check_policy(o);
	struct apps *a = NULL;

	if (policy < 0)
		return -1;

	if (o->rules != NULL && (a = apps_open(&ao)) == NULL)
		return -1;
	printf("%s: ok: %u settings, %u rules", o->config, o->settings, a != NULL ? a->rules.n : 0);
	if (o->policy_file != NULL)
		printf(", %d of policy", policy);
	printf("\n");
	apps_close(a);
	return 1;
}
