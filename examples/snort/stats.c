/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nfmeta-daq.h"

static const char *const names[] = {
	"packets",
	"bytes",
	"records",
	"no_record",
	"checksum_good",
	"checksum_bad",
	"checksum_unknown",
	"segmented",
	"truncated",
	"filtered",
	"no_room",
	"unseen",
	"forwarded",
	"dropped",
	"not_sent",
	"injected",
	"not_injected",
	/* in the order of the verdicts */
	"pass",
	"block",
	"replace",
	"whitelist",
	"blacklist",
	"ignore",
	"retry",
	"retries",
	"retry_dropped",
	"verdicts_sent",
	"verdicts_refused",
	"shunted_packets",
	"shunted_bytes",
	"flows_began",
	"flows_ended",
	"deletes_in",
	"deletes_matched",
	"messages",
	"snapshots",
	"resets",
	"cpu_ns",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == COUNTS, "a name for each");

static void
path(const struct core *c, char *out, size_t size)
{
	if (c->o.instance > 0)
		snprintf(out, size, "%s.%u", c->o.stats, c->o.instance);
	else
		snprintf(out, size, "%s", c->o.stats);
}

int
stats_check(struct core *c)
{
	char name[300];
	FILE *f;

	if (c->o.stats[0] == '\0')
		return 0;
	path(c, name, sizeof(name));
	f = fopen(name, "ae");
	if (f == NULL)
		return core_fail(c, "%s cannot be written (stats): %s", name, strerror(errno));
	fclose(f);
	return 0;
}

void
stats_write(struct core *c)
{
	const uint64_t *n = (const uint64_t *)&c->c;
	char name[300];
	unsigned int i;
	FILE *f;

	if (c->o.stats[0] == '\0')
		return;
	path(c, name, sizeof(name));
	f = fopen(name, "we");
	if (f == NULL)
		return;
	fprintf(f, "{\"program\": \"daq_nfmeta\", \"version\": \"%s\", \"queue\": %u",
		NFMETA_VERSION_STRING, c->queue);
	fprintf(f, ",\n \"seconds\": %.6f", (double)(c->last_us - c->first_us) / 1e6);
	for (i = 0; i < COUNTS; i++)
		fprintf(f, ",\n \"%s\": %" PRIu64, names[i], n[i]);
	fprintf(f, "}\n");
	fclose(f);
}
