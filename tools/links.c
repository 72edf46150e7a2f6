/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Leases in the runtime directory: who holds the lock is there (lib/eal.c, lib/link.c).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_config.h>

#include "doctor.h"

/* Bytes of a link's lease. */
#define LEASE_NF 0
#define LEASE_PRIMARY 1

enum queue {
	FREE,
	TAKEN,
	LEFT,
	REFUSED
};

struct queues {
	char *link;
	unsigned int n[4]; /* queues of each kind */
	const char *list;
};

static bool
held(int fd, int byte)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

void
check_lcores(struct doctor *d)
{
	char taken[256] = "", left[256] = "";
	unsigned int ntaken = 0, nleft = 0, all = 0;
	DIR *dir = opendir(d->dir);
	struct dirent *e;
	int fd;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		const char *id = e->d_name + strlen("nfmeta.lcore.");

		if (strncmp(e->d_name, "nfmeta.lcore.", strlen("nfmeta.lcore.")) != 0 ||
		    id[strspn(id, "0123456789")] != '\0')
			continue;
		all++;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && held(fd, 0))
			list_add(taken, sizeof(taken), id, ntaken++, 16);
		else if (fd >= 0)
			list_add(left, sizeof(left), id, nleft++, 16);
		if (fd >= 0)
			close(fd);
	}
	if (dir != NULL)
		closedir(dir);
	if (all > ntaken + nleft)
		say("lcores", UNKNOWN, WELL, "run as user of the primary or as root",
		    "%u lcore id files cannot be read", all - ntaken - nleft);
	if (ntaken >= RTE_MAX_LCORE)
		say("lcores", PROBLEM, BAD_LCORE, "end an NF", "all %u EAL lcore ids are taken",
		    ntaken);
	else if (ntaken > 0)
		say("lcores", OK, WELL, NULL, "lcore ids taken by NFs: %s; %s", taken,
		    "nfmeta_eal_attach takes another one, an NF with its own EAL options must");
	if (nleft > 0)
		say("lcores", OK, WELL, NULL, "lcore ids left by dead NFs, free again: %s", left);
}

static struct queues *
queues_of(struct queues **all, unsigned int *n, const char *link)
{
	unsigned int i;

	for (i = 0; i < *n; i++)
		if (strcmp((*all)[i].link, link) == 0)
			return &(*all)[i];
	*all = room(*all, (*n + 1) * sizeof(**all));
	memset(&(*all)[*n], 0, sizeof(**all));
	(*all)[*n].link = text("%s", link);
	(*all)[*n].list = "";
	return &(*all)[(*n)++];
}

static enum queue
ask(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	enum queue q = REFUSED;

	if (fd < 0)
		return q;
	q = !held(fd, LEASE_PRIMARY) ? LEFT : held(fd, LEASE_NF) ? TAKEN : FREE;
	close(fd);
	return q;
}

static unsigned int
read_links(const char *path, struct queues **all)
{
	static const char *const names[] = {"free", "taken", "left by a dead primary",
					    "not to be read"};
	DIR *dir = opendir(path);
	unsigned int n = 0;
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		char *name = text("%s", e->d_name), *q = strrchr(name, '.');
		struct queues *l;
		enum queue state;

		if (strncmp(name, "nfmeta.", 7) == 0 && q != NULL && q > name + 7 && q[1] == 'q' &&
		    as_pid(q + 2) + (strcmp(q + 2, "0") == 0) > 0) {
			state = ask(dirfd(dir), e->d_name);
			*q = '\0';
			l = queues_of(all, &n, name + 7);
			l->list = text("%s%s%s %s", l->list, l->list[0] != '\0' ? ", " : "", q + 2,
				       names[state]);
			l->n[state]++;
		}
		free(name);
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

void
check_links(struct doctor *d)
{
	struct queues *all = NULL;
	unsigned int i, n, left = 0, open = 0, refused = 0;

	if (d->primary == PRIMARY_NONE || d->primary == PRIMARY_HIDDEN)
		return;
	n = read_links(d->dir, &all);
	if (n == 0 && d->primary == PRIMARY_ALIVE)
		say("links", WARNING, WELL,
		    "wait until it has; or is it a primary without libnfmeta?",
		    "the primary has no link yet");
	for (i = 0; i < n; i++) {
		say("links", all[i].n[REFUSED] > 0 ? UNKNOWN : OK, WELL, NULL,
		    "link '%s': queue %s", all[i].link, all[i].list);
		left += all[i].n[FREE];
		refused += all[i].n[REFUSED];
		open += all[i].n[FREE] + all[i].n[TAKEN];
	}
	if (n > 0 && left == 0 && refused == 0 && d->primary == PRIMARY_ALIVE)
		say("links", PROBLEM, BAD_LINK,
		    open > 0 ? "end an NF, or create the link with more queues"
			     : "wait until the primary creates it anew",
		    "no queue of any link is free");
	free(all);
}
