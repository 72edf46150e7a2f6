/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * nfmeta - tools around the links between DPDK network functions.
 */
#include <stdio.h>
#include <string.h>

#include <nfmeta/version.h>

#include "tools.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
} commands[] = {
	{"doctor", doctor_main, "what would keep an NF from attaching, or a primary from starting"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
usage(FILE *to)
{
	size_t i;

	fputs("usage: nfmeta COMMAND [OPTION...]\n\n", to);
	for (i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].about);
	fputs("\n\"nfmeta COMMAND --help\" tells its options; \"nfmeta --version\" the version.\n",
	      to);
}

int
main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return TOOLS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("nfmeta " NFMETA_VERSION_STRING);
		return 0;
	}
	for (i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "nfmeta: there is no command \"%s\": see nfmeta --help\n", argv[1]);
	return TOOLS_USAGE;
}
