/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Is what the primary shares the same thing here?
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "namespaces"

enum same
same_namespace(pid_t pid, const char *kind)
{
	char own[64], other[64];
	ssize_t a = readlink(text("/proc/self/ns/%s", kind), own, sizeof(own));
	ssize_t b = readlink(text("/proc/%d/ns/%s", (int)pid, kind), other, sizeof(other));

	if (a < 0 || b < 0)
		return NOT_SEEN;
	return a == b && memcmp(own, other, (size_t)a) == 0 ? SAME : OTHER;
}

/* Hugepage files of the primary that are another file, or none, at their path here. */
static void
hugepages(const struct doctor *d)
{
	unsigned int all = 0, gone = 0, other = 0;
	const char *start = text("%smap_", d->prefix), *path = NULL;
	struct stat st;
	size_t i;

	for (i = 0; i < d->maps.n; i++) {
		const struct map *m = &d->maps.v[i];

		if (strncmp(base_name(m->path), start, strlen(start)) != 0)
			continue;
		all++;
		if (m->deleted) {
			gone++;
			path = m->path;
		} else if (stat(m->path, &st) != 0 ? errno == ENOENT : st.st_ino != m->ino) {
			other++;
			path = m->path;
		}
	}
	if (gone > 0)
		say("hugepages", PROBLEM, BAD_HUGEPAGES,
		    "start the primary anew, without --huge-unlink",
		    "%u of the primary's %u hugepage files are removed, such as %s: nothing can "
		    "attach",
		    gone, all, path);
	if (other > 0)
		say(CHECK, PROBLEM, BAD_NAMESPACE,
		    "mount the primary's hugetlbfs (the same mount, bind it) at the same place",
		    "%u of the primary's %u hugepage files are not here, such as %s", other, all,
		    path);
	if (all > 0 && gone == 0 && other == 0)
		say(CHECK, OK, WELL, NULL, "all %u hugepage files of the primary are here", all);
}

void
check_namespaces(struct doctor *d)
{
	if (d->as_primary || d->primary < PRIMARY_STARTING || d->primary == PRIMARY_HIDDEN)
		return;
	if (d->pid == 0) {
		say(CHECK, WARNING, WELL,
		    "two processes of one prefix must not have the same pid: share the pid "
		    "namespace (and look from the primary's to see more)",
		    "the primary runs in another pid namespace");
		say(CHECK, UNKNOWN, WELL, NULL,
		    "its libraries, mempool ops and addresses cannot be compared");
		return;
	}
	if (same_namespace(d->pid, "pid") == OTHER)
		say(CHECK, WARNING, WELL,
		    "two processes of one prefix must not have the same pid: share the pid "
		    "namespace",
		    "the primary runs in another pid namespace");
	if (same_namespace(d->pid, "mnt") == OTHER)
		say(CHECK, WARNING, WELL, "program and libraries may be others there",
		    "the primary runs in another mount namespace, and shares %s", d->dir);
	if (same_namespace(d->pid, "net") == OTHER)
		say(CHECK, OK, WELL, NULL,
		    "the primary runs in another network namespace; links do not care");
	if (same_namespace(d->pid, "mnt") == NOT_SEEN)
		say(CHECK, UNKNOWN, WELL, "run as its user or as root",
		    "the namespaces of process %d are not to be seen", (int)d->pid);
	if (d->maps_read)
		hugepages(d);
}
