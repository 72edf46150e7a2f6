/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Is there a primary?  The same questions as nfmeta_eal_attach() asks, and then why
 * not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "primary"
#define MAGIC 19820526 /* RTE_MAGIC: the primary is ready */

/* Of the user who runs this, as EAL chooses it. */
static const char *
runtime_base(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir == NULL)
		dir = getuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");
	return dir != NULL ? dir : "/tmp";
}

enum primary
primary_look(const char *config, pid_t *pid, uint32_t *version)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	uint32_t head[2] = {0, 0};
	int fd = open(config, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	*pid = 0;
	*version = 0;
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? PRIMARY_NONE : PRIMARY_HIDDEN;
	n = pread(fd, head, sizeof(head), 0);
	if (fcntl(fd, F_GETLK, &l) != 0)
		l.l_type = F_UNLCK;
	close(fd);
	if (n == sizeof(head))
		*version = head[1];
	if (l.l_type == F_UNLCK)
		return PRIMARY_DEAD;
	*pid = l.l_pid > 0 ? l.l_pid : 0;
	return n == sizeof(head) && head[0] == MAGIC ? PRIMARY_ALIVE : PRIMARY_STARTING;
}

void
where(struct doctor *d)
{
	const char *config;
	struct stat st;

	snprintf(d->dir, sizeof(d->dir), "%.3800s/dpdk/%s", runtime_base(), d->prefix);
	config = text("%s/config", d->dir);
	d->primary = primary_look(config, &d->pid, &d->version);
	d->uid = stat(config, &st) == 0 ? st.st_uid : (uid_t)-1;
	if (d->pid != 0)
		d->maps_read = maps_read(d->pid, &d->maps) == 0;
}

unsigned int
primary_huge_dirs(const struct doctor *d, char dirs[4][PATH_MAX])
{
	size_t len, at;
	char *info = slurp(text("%s/hugepage_info", d->dir), &len);
	unsigned int i, n = 0;
	uint64_t size;

	/* An array of {uint64_t page size, char folder[PATH_MAX], ...}. */
	for (at = 0; info != NULL && n < 4 && at + 8 + PATH_MAX <= len; at += 8) {
		memcpy(&size, info + at, sizeof(size));
		if (size < 4096 || (size & (size - 1)) != 0 || info[at + 8] != '/' ||
		    memchr(info + at + 8, '\0', PATH_MAX) == NULL)
			continue;
		for (i = 0; i < n && strcmp(dirs[i], info + at + 8) != 0;)
			i++;
		if (i == n)
			snprintf(dirs[n++], PATH_MAX, "%s", info + at + 8);
	}
	free(info);
	return n;
}

/* ---- dead ------------------------------------------------------------------------- */

static void
dead(const struct doctor *d)
{
	char files[256] = "", dirs[4][PATH_MAX];
	unsigned int i, n = 0, pages = 0, holders, ndirs = primary_huge_dirs(d, dirs);
	const char *owner = user_name(d->uid), *huge = "", *also = "";
	unsigned long long bytes = 0;
	struct dirent *e;
	DIR *dir = opendir(d->dir);
	pid_t pids[8];
	bool theirs = geteuid() != 0 && geteuid() != d->uid;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			list_add(files, sizeof(files), e->d_name, n++, 5);
	if (dir != NULL)
		closedir(dir);
	for (i = 0; i < ndirs; i++) {
		pages += huge_files(dirs[i], d->prefix, &bytes);
		also = text("%s %s/%smap_*", also, dirs[i], d->prefix);
	}
	if (pages > 0)
		huge = text(" and %u hugepage files (%llu MiB)", pages, bytes >> 20);
	holders = memory_holders(d->dir, pids);
	for (i = 0; i < holders; i++)
		say("dead", PROBLEM, BAD_DEAD, "end it: a new primary cannot start before",
		    "process %d (%s) still holds the memory of the dead primary", (int)pids[i],
		    process_name(pids[i]));
	if (d->as_primary && holders == 0 && !theirs)
		say("dead", OK, WELL, NULL,
		    "a dead primary left %u files in %s (%s)%s; a new one takes them over", n,
		    d->dir, files, huge);
	else
		say("dead", PROBLEM, BAD_DEAD,
		    theirs ? text("user %s starts it again, or %s or root removes %s%s", owner,
				  owner, d->dir, also)
			   : text("start it again: it takes them over; or remove %s%s", d->dir,
				  also),
		    "the primary is dead; %u files of user %s are left in %s (%s)%s", n, owner,
		    d->dir, files, huge);
}

/* ---- the check ----------------------------------------------------------------------- */

static const char *
which(const struct doctor *d)
{
	if (d->pid == 0)
		return "a process that is not to be seen from here";
	return text("process %d (%s) of user %s", (int)d->pid, process_name(d->pid),
		    user_name(process_uid(d->pid)));
}

void
check_primary(struct doctor *d)
{
	switch (d->primary) {
	case PRIMARY_NONE:
		if (d->as_primary)
			say(CHECK, OK, WELL, NULL, "%s is free", d->dir);
		else if (!check_elsewhere(d))
			say(CHECK, PROBLEM, BAD_PRIMARY,
			    "start it with this --file-prefix, as the same user, and not with "
			    "--in-memory or --no-shconf",
			    "no DPDK primary under %s", d->dir);
		break;
	case PRIMARY_DEAD:
		dead(d);
		break;
	case PRIMARY_HIDDEN:
		say("rights", PROBLEM, BAD_RIGHTS,
		    text("run as user %s or as root",
			 d->uid != (uid_t)-1 ? user_name(d->uid) : "of the primary"),
		    "%s/config cannot be read: %s", d->dir, strerror(EACCES));
		break;
	case PRIMARY_STARTING:
		say(CHECK, WARNING, WELL, "wait; if it stays so, look what the primary waits for",
		    "%s has %s and is not ready yet", which(d), d->dir);
		break;
	case PRIMARY_ALIVE:
		if (d->as_primary)
			say(CHECK, PROBLEM, BAD_PRIMARY, "end it, or take another --file-prefix",
			    "%s is the primary under %s already", which(d), d->dir);
		else if (d->pid != 0 && process_stopped(d->pid))
			say(CHECK, PROBLEM, BAD_PRIMARY,
			    text("let it go on: kill -CONT %d, or end the debugger", (int)d->pid),
			    "%s is the primary under %s, and is stopped: it answers no NF",
			    which(d), d->dir);
		else
			say(CHECK, OK, WELL, NULL, "%s is the primary under %s", which(d), d->dir);
		break;
	}
	if (d->primary >= PRIMARY_STARTING && d->pid != 0 && !d->maps_read)
		say(CHECK, UNKNOWN, WELL, "run as its user or as root to see more",
		    "the memory map of process %d cannot be read: libraries, mempool ops and "
		    "addresses are not compared",
		    (int)d->pid);
}
