/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "hugepages"
#define SYS "/sys/kernel/mm/hugepages"
#define HUGETLBFS 0x958458f6 /* HUGETLBFS_MAGIC */

struct pool {
	long long kib, total, free, reserved;
};

static const char *
size_name(long long kib)
{
	return kib >= 1 << 20 ? text("%lld GiB", kib >> 20) : text("%lld MiB", kib >> 10);
}

static unsigned int
pools_read(struct pool pools[8])
{
	DIR *dir = opendir(SYS);
	struct dirent *e;
	unsigned int n = 0;

	while (dir != NULL && n < 8 && (e = readdir(dir)) != NULL) {
		struct pool *p = &pools[n];

		if (sscanf(e->d_name, "hugepages-%lldkB", &p->kib) != 1)
			continue;
		p->total = file_number(text(SYS "/%s/nr_hugepages", e->d_name));
		p->free = file_number(text(SYS "/%s/free_hugepages", e->d_name));
		p->reserved = file_number(text(SYS "/%s/resv_hugepages", e->d_name));
		n++;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* /proc/meminfo knows the default size only; a container may be shown other numbers. */
static void
compare_meminfo(const struct pool *pools, unsigned int n)
{
	char *info = slurp("/proc/meminfo", NULL), *total, *size;
	unsigned int i;

	total = info != NULL ? strstr(info, "HugePages_Total:") : NULL;
	size = info != NULL ? strstr(info, "Hugepagesize:") : NULL;
	for (i = 0; total != NULL && size != NULL && i < n; i++)
		if (pools[i].kib == atoll(size + 13) && pools[i].total != atoll(total + 16))
			say(CHECK, WARNING, WELL, "EAL goes by the latter",
			    "/proc/meminfo says there are %lld pages of %s, " SYS " %lld",
			    atoll(total + 16), size_name(pools[i].kib), pools[i].total);
	free(info);
}

/* Says how many there are; true: a primary could have some. */
static bool
number(const struct doctor *d, const struct pool *pools, unsigned int n)
{
	bool needed = d->as_primary || d->primary <= PRIMARY_DEAD;
	long long total = 0, left = 0;
	const char *list = "";
	unsigned int i;

	for (i = 0; i < n; i++) {
		list = text("%s%s%lld of %s (%lld free)", list, i > 0 ? ", " : "", pools[i].total,
			    size_name(pools[i].kib), pools[i].free - pools[i].reserved);
		total += pools[i].total;
		left += pools[i].free - pools[i].reserved;
	}
	if (n == 0)
		say(CHECK, needed ? PROBLEM : WARNING, BAD_HUGEPAGES,
		    "use a kernel that has them; in a container mount /sys", "there is no " SYS);
	else if (total == 0)
		say(CHECK, needed ? PROBLEM : WARNING, BAD_HUGEPAGES,
		    "as root: echo 512 > " SYS "/hugepages-2048kB/nr_hugepages",
		    "there are none: %s", list);
	else if (left <= 0)
		say(CHECK, needed ? PROBLEM : WARNING, BAD_HUGEPAGES,
		    "add pages to nr_hugepages, end another primary, or remove what dead ones left",
		    "none is free: %s", list);
	else
		say(CHECK, OK, WELL, NULL, "%s", list);
	return total > 0;
}

static const struct pool *
pool_of(const struct pool *pools, unsigned int n, long long kib)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (pools[i].kib == kib)
			return &pools[i];
	return NULL;
}

/* Of a folder: what EAL could not do with it, or NULL; its page size. */
static const char *
folder_fault(const char *path, const struct pool *pools, unsigned int n, long long *kib)
{
	const struct pool *p;
	struct statfs fs;

	*kib = 0;
	if (statfs(path, &fs) != 0)
		return text("%s", strerror(errno));
	if ((uint32_t)fs.f_type != HUGETLBFS)
		return "it is no hugetlbfs";
	*kib = (long long)fs.f_bsize >> 10;
	p = pool_of(pools, n, *kib);
	if (p != NULL && p->total == 0)
		return text("its pages are of %s, and there are none of these", size_name(*kib));
	if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) != 0)
		return text("user %s may not write to it: %s", user_name(geteuid()),
			    strerror(errno));
	return NULL;
}

static void
one_folder(const char *path, const struct pool *pools, unsigned int n)
{
	long long kib;
	const char *fault = folder_fault(path, pools, n, &kib);

	if (fault != NULL)
		say(CHECK, PROBLEM, BAD_HUGEPAGES,
		    text("mount -t hugetlbfs -o pagesize=2M,uid=%s nodev %s", user_name(geteuid()),
			 path),
		    "%s: %s", path, fault);
	else
		say(CHECK, OK, WELL, NULL, "%s has pages of %s and may be written to", path,
		    size_name(kib));
}

/* Any mount will do for a primary. */
static void
any_folder(const struct pool *pools, unsigned int n)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const char *faults = "", *good = NULL, *fault;
	unsigned int seen = 0;
	struct mntent *m;
	long long kib, good_kib = 0;

	while (mounts != NULL && (m = getmntent(mounts)) != NULL) {
		if (strcmp(m->mnt_type, "hugetlbfs") != 0)
			continue;
		seen++;
		fault = folder_fault(m->mnt_dir, pools, n, &kib);
		if (fault == NULL && good == NULL) {
			good = text("%s", m->mnt_dir);
			good_kib = kib;
		} else if (fault != NULL) {
			faults =
				text("%s%s%s: %s", faults, seen > 1 ? ", " : "", m->mnt_dir, fault);
		}
	}
	if (mounts != NULL)
		endmntent(mounts);
	if (good != NULL)
		say(CHECK, OK, WELL, NULL, "%s has pages of %s and may be written to", good,
		    size_name(good_kib));
	else
		say(CHECK, PROBLEM, BAD_HUGEPAGES,
		    text("as root: mkdir -p /dev/hugepages && mount -t hugetlbfs -o uid=%s nodev "
			 "/dev/hugepages",
			 user_name(geteuid())),
		    seen == 0 ? "no hugetlbfs is mounted%s" : "no hugetlbfs can be used: %s",
		    faults);
}

/* The one mount that an NF needs is the primary's. */
static void
primary_folders(const struct doctor *d, const struct pool *pools, unsigned int n)
{
	char dirs[4][PATH_MAX];
	unsigned int i, ndirs = primary_huge_dirs(d, dirs);
	long long kib;

	if (ndirs == 0 && access(text("%s/hugepage_info", d->dir), F_OK) != 0)
		say(CHECK, PROBLEM, BAD_HUGEPAGES, "start it without --no-huge",
		    "the primary runs without hugepages (no %s/hugepage_info): nothing can attach "
		    "to it",
		    d->dir);
	for (i = 0; i < ndirs; i++) {
		const char *fault = folder_fault(dirs[i], pools, n, &kib);
		unsigned long long bytes = 0;
		unsigned int files = fault != NULL ? 0 : huge_files(dirs[i], d->prefix, &bytes);

		if (fault != NULL)
			say(CHECK, PROBLEM, BAD_HUGEPAGES,
			    text("give the NF the mount that the primary uses at %s, and rights",
				 dirs[i]),
			    "the primary's hugepages are in %s: %s", dirs[i], fault);
		else if (files == 0)
			say(CHECK, PROBLEM, BAD_HUGEPAGES,
			    "another hugetlbfs is mounted there (give the NF the primary's), or "
			    "the primary runs with --huge-unlink (start it without)",
			    "the primary has its hugepages in %s, but no file %smap_* is there",
			    dirs[i], d->prefix);
		else
			say(CHECK, OK, WELL, NULL, "the primary has %u files (%llu MiB) in %s",
			    files, bytes >> 20, dirs[i]);
	}
}

void
check_hugepages(struct doctor *d)
{
	struct pool pools[8];
	unsigned int n = pools_read(pools);
	bool some = number(d, pools, n);

	compare_meminfo(pools, n);
	if (!d->as_primary && d->primary >= PRIMARY_STARTING) {
		if (d->primary == PRIMARY_ALIVE)
			primary_folders(d, pools, n);
	} else if (d->huge_dir != NULL) {
		one_folder(d->huge_dir, pools, n);
	} else if (some) {
		any_folder(pools, n);
	}
}
