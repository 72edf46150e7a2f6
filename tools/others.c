/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What dead processes left: files, locks, hugepages.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "others"

unsigned int
huge_files(const char *folder, const char *prefix, unsigned long long *bytes)
{
	const char *start = text("%smap_", prefix);
	DIR *dir = opendir(folder);
	struct dirent *e;
	struct stat st;
	unsigned int n = 0;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (strncmp(e->d_name, start, strlen(start)) != 0)
			continue;
		n++;
		if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0)
			*bytes += (unsigned long long)st.st_size;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Is this the file of a line of /proc/locks, "8: FLOCK ADVISORY READ 1490 00:2b:77 0 EOF"? */
static pid_t
lock_on(const char *line, const struct stat *st)
{
	unsigned int major_, minor_;
	unsigned long ino;
	int pid;

	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major_, &minor_, &ino) != 4)
		return 0;
	return pid > 0 && ino == st->st_ino && major_ == major(st->st_dev) &&
			       minor_ == minor(st->st_dev)
		       ? pid
		       : 0;
}

/* Processes of DPDK lock (shared) each memory list that they have mapped. */
unsigned int
memory_holders(const char *dir, pid_t pids[8])
{
	char *locks = slurp("/proc/locks", NULL), *copy, *line, *save;
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;
	unsigned int i, n = 0;
	pid_t pid;

	while (locks != NULL && d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, "fbarray_", 8) != 0 ||
		    fstatat(dirfd(d), e->d_name, &st, 0) != 0)
			continue;
		copy = text("%s", locks);
		save = NULL;
		for (line = strtok_r(copy, "\n", &save); line != NULL && n < 8;
		     line = strtok_r(NULL, "\n", &save)) {
			pid = lock_on(line, &st);
			for (i = 0; i < n && pids[i] != pid;)
				i++;
			if (pid != 0 && i == n)
				pids[n++] = pid;
		}
		free(copy);
	}
	if (d != NULL)
		closedir(d);
	free(locks);
	return n;
}

static unsigned long long
pages_of(const char *prefix)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	unsigned long long bytes = 0;
	struct mntent *m;

	while (mounts != NULL && (m = getmntent(mounts)) != NULL)
		if (strcmp(m->mnt_type, "hugetlbfs") == 0)
			huge_files(m->mnt_dir, prefix, &bytes);
	if (mounts != NULL)
		endmntent(mounts);
	return bytes;
}

void
check_others(struct doctor *d)
{
	char base[PATH_MAX], list[512] = "", living[512] = "";
	unsigned long long bytes = 0, of_this;
	unsigned int dead = 0, alive = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(base, sizeof(base), "%s", d->dir);
	*strrchr(base, '/') = '\0';
	dir = opendir(base);
	if (dir == NULL && errno != ENOENT)
		say(CHECK, UNKNOWN, WELL, NULL, "other prefixes: %s cannot be read", base);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		const char *config = text("%s/%s/config", base, e->d_name);
		int fd;

		if (e->d_name[0] == '.' || strcmp(e->d_name, d->prefix) == 0)
			continue;
		fd = open(config, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (fcntl(fd, F_GETLK, &l) == 0 && l.l_type == F_UNLCK) {
			of_this = pages_of(e->d_name);
			bytes += of_this;
			list_add(list, sizeof(list), text("%s: %llu MiB", e->d_name, of_this >> 20),
				 dead++, 5);
		} else {
			/* pid 0: of another pid namespace */
			list_add(living, sizeof(living),
				 l.l_pid > 0 ? text("%s: process %d (%s)", e->d_name, (int)l.l_pid,
						    process_name(l.l_pid))
					     : e->d_name,
				 alive++, 5);
		}
		close(fd);
	}
	if (dir != NULL)
		closedir(dir);
	if (alive > 0)
		say(CHECK, OK, WELL, NULL, "other prefixes with a primary: %u (%s)", alive, living);
	if (dead > 0)
		say(CHECK, OK, WELL, NULL,
		    "other prefixes whose primary is dead: %u, and keep %llu MiB of hugepages (%s)",
		    dead, bytes >> 20, list);
}
