/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "rights"
#define FILES_BESIDE 64 /* open files that a process has beside its hugepages */

static bool
may(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* EAL opens all of them for writing, hugepage_info excepted. */
static bool
wanted(const char *name)
{
	return strcmp(name, "config") == 0 || strncmp(name, "fbarray_mem", 11) == 0 ||
	       strcmp(name, "mp_socket") == 0 || strncmp(name, "nfmeta.", 7) == 0;
}

static unsigned int
refused_in(const char *folder, const char *start, char *list, size_t size, unsigned int n)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (start != NULL ? strncmp(e->d_name, start, strlen(start)) != 0
				  : !wanted(e->d_name))
			continue;
		if (!may(text("%s/%s", folder, e->d_name), R_OK | W_OK))
			list_add(list, size, e->d_name, n++, 3);
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Where the runtime directory is, or would be made. */
static void
directory(const struct doctor *d)
{
	char path[PATH_MAX], *slash;

	snprintf(path, sizeof(path), "%s", d->dir);
	while (access(path, F_OK) != 0 && errno == ENOENT && (slash = strrchr(path, '/')) != NULL &&
	       slash != path)
		*slash = '\0';
	if (may(path, R_OK | W_OK | X_OK))
		say(CHECK, OK, WELL, NULL, "user %s may write to %s", user_name(geteuid()), path);
	else
		say(CHECK, PROBLEM, BAD_RIGHTS, "run as its owner or as root, or change its rights",
		    "user %s may not make files in %s: %s", user_name(geteuid()), path,
		    strerror(errno));
}

static void
files(const struct doctor *d)
{
	char list[256] = "", dirs[4][PATH_MAX];
	unsigned int i, n = 0, ndirs = primary_huge_dirs(d, dirs);

	n = refused_in(d->dir, NULL, list, sizeof(list), n);
	for (i = 0; i < ndirs; i++)
		n = refused_in(dirs[i], text("%smap_", d->prefix), list, sizeof(list), n);
	if (n > 0)
		say(CHECK, PROBLEM, BAD_RIGHTS,
		    text("run the NF as user %s or as root", user_name(d->uid)),
		    "user %s may not open %u files of user %s for writing (%s)",
		    user_name(geteuid()), n, user_name(d->uid), list);
	else if (geteuid() != d->uid)
		say(CHECK, OK, WELL, NULL, "user %s may open the files of user %s",
		    user_name(geteuid()), user_name(d->uid));
}

/* EAL raises the soft limit; it keeps a file open for every hugepage. */
static void
open_files(const struct doctor *d)
{
	char dirs[4][PATH_MAX];
	unsigned int i, pages = 0, ndirs = primary_huge_dirs(d, dirs);
	unsigned long long bytes;
	struct rlimit l;

	for (i = 0; i < ndirs; i++)
		pages += huge_files(dirs[i], d->prefix, &bytes);
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_max != RLIM_INFINITY &&
	    l.rlim_max < pages + FILES_BESIDE)
		say(CHECK, PROBLEM, BAD_RIGHTS, "raise the hard limit (ulimit -Hn, LimitNOFILE=)",
		    "at most %llu files may be open, and the primary has %u hugepage files",
		    (unsigned long long)l.rlim_max, pages);
}

static void
memlock(void)
{
	struct rlimit l;

	if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
		return;
	say(CHECK, OK, WELL, NULL,
	    "%llu KiB may be locked: hugepages do not count, but a primary with devices through "
	    "vfio wants more",
	    (unsigned long long)l.rlim_cur >> 10);
}

void
check_rights(struct doctor *d)
{
	if (d->primary == PRIMARY_HIDDEN)
		return; /* said */
	directory(d);
	if (!d->as_primary && d->primary != PRIMARY_NONE) {
		files(d);
		open_files(d);
	}
	memlock();
}
