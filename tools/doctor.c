/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "tools.h"

static const char usage[] =
	"usage: nfmeta doctor [OPTION...]\n"
	"\n"
	"Says, before EAL is tried, what would keep an NF (DPDK secondary) from attaching\n"
	"to an upfront NF (primary), or a primary from starting.  Changes nothing.\n"
	"\n"
	"  --file-prefix P   of the primary (rte)\n"
	"  --program FILE    the NF: a program, and each plug-in that it loads (repeat);\n"
	"                    without it libraries are not looked at\n"
	"  --proc-type T     what is to start: secondary, primary (secondary)\n"
	"  --huge-dir DIR    hugetlbfs that a primary is to use (any that is mounted)\n"
	"  --json            an array of {check, status, text, advice, exit}\n"
	"  --quiet           only what is not well\n"
	"  --help            this\n"
	"\n"
	"Run it as the user, and in the namespaces and with the LD_LIBRARY_PATH, of the NF.\n"
	"As another user than the primary's, or without rights, it sees less and says so.\n"
	"\n"
	"Exit status: 0 all well (warnings are), 1 the doctor failed, 2 wrong usage; else the\n"
	"first of: 10 primary, 11 dead primary, 12 rights, 13 namespaces, 14 hugepages,\n"
	"15 DPDK version, 16 program, 17 tailq, 18 mempool ops, 19 addresses, 20 lcore ids,\n"
	"21 links.\n";

/* What nfmeta_eal_attach() allows. */
static bool
is_prefix(const char *s)
{
	return s[0] != '\0' && s[0] != '.' && strlen(s) <= 100 && strpbrk(s, "/% \t\n") == NULL;
}

static int
wrong(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "nfmeta doctor: %s \"%s\": %s is wanted\n", option, value, wanted);
	return USAGE;
}

static int
options(struct doctor *d, int argc, char **argv, bool *json, bool *quiet)
{
	static const struct option known[] = {
		{"file-prefix", required_argument, NULL, 'f'},
		{"program", required_argument, NULL, 'p'},
		{"proc-type", required_argument, NULL, 't'},
		{"huge-dir", required_argument, NULL, 'd'},
		{"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'f':
			if (!is_prefix(optarg))
				return wrong("--file-prefix", optarg, "a DPDK file prefix");
			d->prefix = optarg;
			break;
		case 'p':
			d->programs = room(d->programs,
					   (size_t)(d->nprograms + 1) * sizeof(*d->programs));
			d->programs[d->nprograms++] = optarg;
			break;
		case 't':
			if (strcmp(optarg, "primary") != 0 && strcmp(optarg, "secondary") != 0)
				return wrong("--proc-type", optarg, "primary or secondary");
			d->as_primary = strcmp(optarg, "primary") == 0;
			break;
		case 'd':
			d->huge_dir = optarg;
			break;
		case 'j':
			*json = true;
			break;
		case 'q':
			*quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return -1;
		default:
			fputs("see nfmeta doctor --help\n", stderr);
			return USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "nfmeta doctor: \"%s\" is no option: see nfmeta doctor --help\n",
			argv[optind]);
		return USAGE;
	}
	return 0;
}

int
doctor_main(int argc, char **argv)
{
	struct doctor d = {.prefix = "rte"};
	bool json = false, quiet = false;
	int rc = options(&d, argc, argv, &json, &quiet);

	if (rc != 0)
		return rc < 0 ? WELL : rc;
	where(&d);
	check_primary(&d);
	check_rights(&d);
	check_namespaces(&d);
	check_hugepages(&d);
	load_programs(&d);
	trial(&d);
	check_version(&d);
	if (!d.as_primary) {
		check_tailqs(&d);
		check_mempool(&d);
		check_addresses(&d);
		check_lcores(&d);
		check_links(&d);
	}
	check_others(&d);
	return report(json, quiet);
}
