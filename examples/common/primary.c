/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <mntent.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "common.h"

#define ARGS_MAX 128 /* of EAL */

static char prefix[64]; /* "": nothing was started */
static char run_dir[PATH_MAX];
static char log_line[256]; /* the last line that EAL logged */

/* ---- EAL's log: kept from view, its last line kept for ours ----------------- */

static ssize_t
log_write(void *cookie, const char *text, size_t len)
{
	size_t n = len;

	(void)cookie;
	while (n > 0 && strchr("\n .", text[n - 1]) != NULL)
		n--;
	if (n > 0) {
		if (n >= sizeof(log_line))
			n = sizeof(log_line) - 1;
		memcpy(log_line, text, n);
		log_line[n] = '\0';
	}
	return (ssize_t)len;
}

static void
log_keep(void)
{
	static const cookie_io_functions_t io = {.write = log_write};
	FILE *f = fopencookie(NULL, "w", io);

	if (f == NULL)
		return;
	setvbuf(f, NULL, _IOLBF, BUFSIZ);
	rte_openlog_stream(f);
	rte_log_set_global_level(RTE_LOG_ERR);
}

/* EAL prints its whole usage text on a bad option; put stdout and stderr away. */
static void
hush(int saved[2])
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), i;

	fflush(stdout);
	for (i = 0; i < 2; i++) {
		saved[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
		if (null >= 0)
			dup2(null, i + 1);
	}
	if (null >= 0)
		close(null);
}

static void
unhush(const int saved[2])
{
	int i;

	fflush(stdout);
	for (i = 0; i < 2; i++) {
		if (saved[i] >= 0) {
			dup2(saved[i], i + 1);
			close(saved[i]);
		}
	}
}

/* ---- what EAL leaves in the file system -------------------------------------- */

/* As EAL itself finds it. */
static void
find_run_dir(void)
{
	const char *base = getenv("RUNTIME_DIRECTORY");

	if (base == NULL && getuid() == 0)
		base = "/var/run";
	if (base == NULL)
		base = getenv("XDG_RUNTIME_DIR");
	if (base == NULL)
		base = "/tmp";
	snprintf(run_dir, sizeof(run_dir), "%s/dpdk/%s", base, prefix);
}

static bool
another_primary(void)
{
	char config[PATH_MAX + 8];

	snprintf(config, sizeof(config), "%s/config", run_dir);
	return rte_eal_primary_proc_alive(config) != 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

/* Hugepage files have our prefix in their names, in every hugetlbfs there is. */
static void
remove_pages(void)
{
	FILE *mounts = setmntent("/proc/mounts", "r");
	char start[sizeof(prefix) + 8];
	struct mntent *mnt;
	struct dirent *e;
	DIR *dir;

	if (mounts == NULL)
		return;
	snprintf(start, sizeof(start), "%smap_", prefix);
	while ((mnt = getmntent(mounts)) != NULL) {
		if (strcmp(mnt->mnt_type, "hugetlbfs") != 0)
			continue;
		dir = opendir(mnt->mnt_dir);
		if (dir == NULL)
			continue;
		while ((e = readdir(dir)) != NULL)
			if (strncmp(e->d_name, start, strlen(start)) == 0)
				unlinkat(dirfd(dir), e->d_name, 0);
		closedir(dir);
	}
	endmntent(mounts);
}

static void
remove_files(void)
{
	remove_pages();
	nftw(run_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- EAL's arguments ------------------------------------------------------------ */

/* EAL may change the texts, and keeps pointers to some. */
struct args {
	int n;
	char *v[ARGS_MAX];
	char text[8192];
	size_t used;
};

static void
arg(struct args *a, const char *text)
{
	size_t size = strlen(text) + 1;

	if (a->n == ARGS_MAX - 1 || size > sizeof(a->text) - a->used)
		return;
	a->v[a->n++] = memcpy(a->text + a->used, text, size);
	a->used += size;
}

/* One EAL thread that may use every CPU this process may use. */
static void
arg_lcores(struct args *a)
{
	char text[1024] = "0@(";
	cpu_set_t cpus;
	size_t n;
	int i;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return;
	for (i = 0; i < CPU_SETSIZE; i++) {
		n = strlen(text);
		if (CPU_ISSET(i, &cpus) && n < sizeof(text) - 16)
			snprintf(text + n, sizeof(text) - n, "%s%d", n > 3 ? "," : "", i);
	}
	strcat(text, ")");
	arg(a, "--lcores");
	arg(a, text);
}

/* "-a" or "--allow", with or without a value in the same word. */
static bool
given(const struct primary_opts *o, const char *names)
{
	char word[64], list[128], *name, *save;
	int i;

	for (i = 0; i < o->argc; i++) {
		snprintf(word, sizeof(word), "%s", o->argv[i]);
		if (strncmp(word, "--", 2) == 0)
			word[strcspn(word, "=")] = '\0';
		else if (word[0] == '-')
			word[2] = '\0';
		snprintf(list, sizeof(list), "%s", names);
		for (name = strtok_r(list, " ", &save); name != NULL;
		     name = strtok_r(NULL, " ", &save))
			if (strcmp(word, name) == 0)
				return true;
	}
	return false;
}

static int
make_args(const struct primary_opts *o, struct args *a)
{
	char text[64];
	int i;

	if (given(o, "--file-prefix -m --proc-type"))
		return complain("EAL options: give --file-prefix and -m before the \"--\";"
				" --proc-type is always primary");
	arg(a, say_name());
	arg(a, "--file-prefix");
	arg(a, prefix);
	if (!given(o, "-a --allow -b --block --no-pci"))
		arg(a, "--no-pci");
	if (!given(o, "-l -c --lcores"))
		arg_lcores(a);
	if (o->megabytes > 0) {
		snprintf(text, sizeof(text), "%ju", (uintmax_t)o->megabytes);
		arg(a, "-m");
		arg(a, text);
	}
	if (o->megabytes > 0 && !o->one_process) {
		/* -m alone is where EAL starts; it would take more */
		arg(a, "--socket-limit");
		arg(a, text);
	}
	if (o->one_process) {
		arg(a, "--no-huge"); /* goes with --no-shconf, not with --in-memory */
		arg(a, "--no-shconf");
	}
	for (i = 0; i < o->argc; i++)
		arg(a, o->argv[i]);
	return 0;
}

/* ---- start and end -------------------------------------------------------------- */

static int
use_prefix(const char *name)
{
	if (name[0] == '\0' || strlen(name) >= sizeof(prefix) || name[0] == '.' ||
	    name[strspn(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] !=
		    '\0')
		return complain(
			"--file-prefix \"%s\": letters, digits, '_', '-' and '.' are wanted", name);
	snprintf(prefix, sizeof(prefix), "%s", name);
	find_run_dir();
	return 0;
}

static int
start_failed(const struct primary_opts *o)
{
	const char *why = log_line[0] != '\0' ? log_line : rte_strerror(rte_errno);
	const char *hint = "";

	if (another_primary()) {
		prefix[0] = '\0';
		return complain("another primary has just started under the file prefix \"%s\"",
				o->file_prefix);
	}
	remove_files();
	prefix[0] = '\0';
	if (strstr(why, "command line") != NULL)
		return complain("EAL does not know one of the options behind \"--\"; --verbose"
				" shows which");
	if (strstr(why, "hugepage") != NULL)
		hint = ": hugepages and a mounted hugetlbfs are wanted";
	if (strstr(why, "emory") != NULL)
		hint = ": more free hugepages are wanted";
	if (o->megabytes > 0)
		return complain("EAL does not start with -m %ju: %s%s", (uintmax_t)o->megabytes,
				why, hint);
	return complain("EAL does not start: %s%s", why, hint);
}

static bool in_eal_init;
static int saved[2] = {-1, -1}; /* stdout, stderr while they are hushed */

/* Since 25.07 EAL ends the process by itself over an option that it does not know. */
static void
ended_by_eal(void)
{
	if (!in_eal_init)
		return;
	unhush(saved);
	complain("EAL does not know one of the options behind \"--\"; --verbose shows which");
	remove_files();
	_exit(1);
}

int
primary_start(const struct primary_opts *o)
{
	static struct args a;
	int rc;

	memset(&a, 0, sizeof(a));
	if (use_prefix(o->file_prefix) != 0)
		return -1;
	if (another_primary()) {
		prefix[0] = '\0';
		return complain("a primary runs under the file prefix \"%s\" already: end it, or"
				" take another --file-prefix",
				o->file_prefix);
	}
	if (make_args(o, &a) != 0) {
		prefix[0] = '\0';
		return -1;
	}
	if (!o->verbose) {
		log_keep();
		hush(saved);
	}
	atexit(ended_by_eal);
	in_eal_init = true;
	rc = rte_eal_init(a.n, a.v);
	in_eal_init = false;
	unhush(saved);
	if (rc < 0)
		return start_failed(o);
	snprintf(run_dir, sizeof(run_dir), "%s", rte_eal_get_runtime_dir());
	return 0;
}

static struct {
	pthread_mutex_t files; /* removes them, and ends the process */
	unsigned int seconds;
	int status;
} end = {.files = PTHREAD_MUTEX_INITIALIZER};

static void *
end_anyway(void *arg __rte_unused)
{
	sleep(end.seconds);
	pthread_mutex_lock(&end.files);
	if (prefix[0] == '\0')
		return NULL;
	complain("DPDK did not end within %u s, because an NF was killed inside of it; nothing is"
		 " lost",
		 end.seconds);
	remove_files();
	_exit(end.status);
}

void
primary_end_within(unsigned int seconds, int status)
{
	pthread_attr_t detached;
	pthread_t t;

	end.seconds = seconds;
	end.status = status;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &detached, end_anyway, NULL) != 0)
		note("no thread to watch over the end: %s", strerror(errno));
	pthread_attr_destroy(&detached);
}

void
primary_end(void)
{
	if (prefix[0] == '\0')
		return;
	rte_eal_cleanup();
	pthread_mutex_lock(&end.files);
	remove_files();
	prefix[0] = '\0';
	pthread_mutex_unlock(&end.files);
}
