/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * onebox - splitter and inspectors as threads of one process, without
 * hugepages: for a look at the chain where two processes cannot be had.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../inspector/inspector.h"
#undef BURST
#include "../splitter/splitter.h"

#define NFS_MAX (LINKS_MAX * NFMETA_QUEUES_MAX)

struct nf {
	pthread_t thread;
	struct inspector_opts o;
	struct inspector_result r;
};

static void *
run_nf(void *arg)
{
	struct nf *nf = arg;

	inspector_run(&nf->o, &nf->r);
	return NULL;
}

/* 2: an option of the inspector, with a value; 1: one without; 0: the splitter's. */
static int
is_mine(const char *arg)
{
	static const char *const with[] = {"--mode",	   "--drop-every", "--verdict-after",
					   "--drop-after", "--cost",	   "--sleep"};
	size_t i;

	for (i = 0; i < RTE_DIM(with); i++)
		if (strcmp(arg, with[i]) == 0)
			return 2;
	return strcmp(arg, "--no-flow-state") == 0;
}

static int
options(int argc, char **argv, struct splitter_opts *so, struct inspector_opts *io)
{
	char *mine[16], *theirs[128];
	int n = 0, m = 0, i, rc, words;

	mine[m++] = argv[0];
	for (i = 0; i < argc; i++) {
		if (n > 120 || m > 12)
			return complain("too many options");
		if (strcmp(argv[i], "--help") == 0)
			printf("usage: %s [--mode M] [--drop-every N] [--verdict-after N]"
			       " [--drop-after N] [--no-flow-state] and the options of "
			       "splitter:\n\n",
			       say_name());
		words = is_mine(argv[i]);
		if (words > 0 && i + words <= argc) {
			mine[m++] = argv[i];
			if (words == 2)
				mine[m++] = argv[++i];
		} else {
			theirs[n++] = argv[i];
		}
	}
	mine[m] = theirs[n] = NULL;
	rc = inspector_options(m, mine, io);
	return rc != 0 ? rc : splitter_options(n, theirs, so);
}

/* Goes into the splitter's report: one object for each queue, link after link. */
static void
json_nfs(struct json *j, const void *arg)
{
	const struct nf *nfs = arg;
	char name[16];
	uint16_t q;

	json_object(j, "inspectors");
	for (q = 0; q < NFS_MAX && nfs[q].r.ended != NULL; q++) {
		snprintf(name, sizeof(name), "%u", q);
		json_object(j, name);
		inspector_json(j, &nfs[q].o, &nfs[q].r);
		json_end(j);
	}
	json_end(j);
}

int
main(int argc, char **argv)
{
	static struct nf nfs[NFS_MAX];
	struct inspector_opts io;
	struct splitter_opts so;
	char prefix[32];
	struct splitter *s;
	uint16_t q, n = 0;
	uint8_t i;
	int rc;

	say_program(argv[0]);
	inspector_defaults(&io);
	splitter_defaults(&so);
	snprintf(prefix, sizeof(prefix), "onebox-%d", (int)getpid()); /* nobody attaches */
	so.file_prefix = prefix;
	rc = options(argc, argv, &so, &io);
	if (rc != 0)
		return rc > 0 ? EXIT_OK : EXIT_BAD;
	so.one_process = true;
	so.json_more = json_nfs;
	so.json_arg = nfs;
	io.thread = true;
	io.policy = so.policy;
	io.max_flows = so.max_flows;
	stop_install();
	s = splitter_open(&so);
	if (s == NULL)
		return EXIT_BAD;
	for (i = 0; i < so.links; i++) {
		for (q = 0; q < so.link[i].queues; q++, n++) {
			nfs[n].o = io;
			nfs[n].o.link = so.link[i].name;
			nfs[n].o.queue = q;
			pthread_create(&nfs[n].thread, NULL, run_nf, &nfs[n]);
		}
	}
	rc = splitter_run(s);
	for (q = 0; q < n; q++)
		pthread_join(nfs[q].thread, NULL);
	for (q = 0; q < n && !so.quiet; q++)
		if (nfs[q].r.ended != NULL)
			inspector_summary(&nfs[q].o, &nfs[q].r);
	return splitter_close(s, rc);
}
