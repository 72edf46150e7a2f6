/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TESTS_TWOPROC_H
#define NFMETA_TESTS_TWOPROC_H

/*
 * twoproc.h - tests between processes, on real hugepages.  Check's child of each
 * test is the primary; the secondaries are the same program again, started with a
 * role, and say what they have to say in lines "RC TEXT" on their stdout.
 */

#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

#include <nfmeta/nfmeta.h>

#define POOL_SIZE 4095

static char base[64]; /* starts the file prefix of every EAL of this run */
static char hugedir[256];
static struct rte_mempool *pool;

static inline uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline const char *
prefix_of(const char *what)
{
	static __thread char prefix[96];

	snprintf(prefix, sizeof(prefix), "%s%s", base, what);
	return prefix;
}

static inline const char *
run_file(const char *what, const char *file)
{
	static __thread char path[256];

	snprintf(path, sizeof(path), "/var/run/dpdk/%s/%s", prefix_of(what), file);
	return path;
}

/* ---- What a child process does ---------------------------------------------------- */

static inline void
say(int rc)
{
	printf("%d %s\n", rc, rc != 0 ? nfmeta_error() : "ok");
	fflush(stdout);
}

/* The parent lets go by closing our stdin. */
static inline void
wait_for_parent(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

/* A role: it gets its arguments, and returns the exit status. */
struct role {
	const char *name;
	int args;
	int (*run)(char **);
};

/* ---- Children -------------------------------------------------------------------- */

struct child {
	pid_t pid;
	int in, out;
	int rc; /* of the line that it said last */
	char line[512];
	char *says; /* ... and the rest of it */
};

static inline struct child
start(const char *role, ...)
{
	struct child c = {0};
	const char *argv[10] = {"peer", base, hugedir, role};
	int in[2], out[2], n = 4;
	va_list ap;

	va_start(ap, role);
	while (n < 9 && (argv[n] = va_arg(ap, const char *)) != NULL)
		n++;
	va_end(ap);
	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	c.pid = fork();
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execv("/proc/self/exe", (char **)(uintptr_t)argv);
		_exit(127);
	}
	ck_assert_int_gt(c.pid, 0);
	close(in[0]);
	close(out[1]);
	c.in = in[1];
	c.out = out[0];
	return c;
}

#define START(...) start(__VA_ARGS__, (char *)NULL)

/* Read a line "RC TEXT". */
static inline void
listen_to(struct child *c)
{
	size_t n = 0;
	struct pollfd p = {.fd = c->out, .events = POLLIN};

	for (;;) {
		ck_assert_msg(poll(&p, 1, 30000) == 1, "a child says nothing for 30 s");
		if (read(c->out, &c->line[n], 1) != 1 || c->line[n] == '\n' ||
		    n == sizeof(c->line) - 1)
			break;
		n++;
	}
	c->line[n] = '\0';
	ck_assert_msg(n > 0, "a child ended without a word");
	c->rc = (int)strtol(c->line, &c->says, 10);
}

/* Let it go; its exit status, or 128 + the signal. */
static inline int
finish(struct child *c)
{
	int status;

	close(c->in);
	ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
	close(c->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void
murder(struct child *c)
{
	kill(c->pid, SIGKILL);
	ck_assert_int_eq(finish(c), 128 + SIGKILL);
}

#define ck_said(child, code)                                                                       \
	do {                                                                                       \
		listen_to(child);                                                                  \
		ck_assert_msg((child)->rc == -(code), "%s", (child)->line);                        \
	} while (0)
#define ck_says(child, text)                                                                       \
	ck_assert_msg(strstr((child)->says, text) != NULL, "'%s' is not in:%s", text, (child)->says)

#define ck_ok(call) ck_assert_msg((call) == 0, "%s", nfmeta_error())

/* ---- The primary ------------------------------------------------------------------- */

static inline void
start_primary(const char *vdev)
{
	char prefix[96];
	char *argv[] = {"test",	 "--no-pci",	   "-m",	  "128",    "-l",
			"0",	 "--no-telemetry", "--log-level", "error",  "--huge-dir",
			hugedir, "--file-prefix",  prefix,	  "--vdev", (char *)(uintptr_t)vdev,
			NULL};
	cpu_set_t cpus;

	snprintf(prefix, sizeof(prefix), "%s", prefix_of(""));
	pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	ck_assert_msg(rte_eal_init(vdev != NULL ? 15 : 13, argv) >= 0,
		      "no primary with 128 MiB of hugepages in '%s': %s", hugedir,
		      rte_strerror(rte_errno));
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pool = rte_pktmbuf_pool_create("p", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(pool);
}

/* The library's files; it leaves none.  DPDK's own go with the directory, later. */
static inline unsigned int
walk_lease_files(const char *start, bool remove)
{
	DIR *d = opendir(run_file("", ""));
	struct dirent *e;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, start, strlen(start)) != 0)
			continue;
		n++;
		if (remove)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	return n;
}

static inline unsigned int
lease_files(void)
{
	return walk_lease_files("nfmeta.", false);
}

/* A process that was killed leaves its lcore id behind, unlocked. */
static inline void
remove_dead_lcores(void)
{
	walk_lease_files("nfmeta.lcore.", true);
}

static inline void
setup(void)
{
	start_primary(NULL);
	walk_lease_files("nfmeta.", true); /* of a test that failed */
}

static inline void
teardown(void)
{
	ck_assert_uint_eq(lease_files(), 0);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
	rte_mempool_free(pool);
	rte_eal_cleanup();
}

static inline void
count_zone(const struct rte_memzone *mz, void *arg)
{
	(void)mz;
	(*(unsigned int *)arg)++;
}

static inline unsigned int
memzones(void)
{
	unsigned int zones = 0;

	rte_memzone_walk(count_zone, &zones);
	return zones;
}

/* ---- Before and behind all tests --------------------------------------------------- */

static inline void
find_hugedir(void)
{
	const char *env = getenv("NFMETA_HUGE_DIR");
	struct mntent *e;
	FILE *f;

	if (env != NULL && env[0] != '\0') {
		snprintf(hugedir, sizeof(hugedir), "%s", env);
		return;
	}
	f = setmntent("/proc/self/mounts", "r");
	while (f != NULL && hugedir[0] == '\0' && (e = getmntent(f)) != NULL)
		if (strcmp(e->mnt_type, "hugetlbfs") == 0)
			snprintf(hugedir, sizeof(hugedir), "%s", e->mnt_dir);
	if (f != NULL)
		endmntent(f);
}

/* Remove what DPDK leaves of our prefixes: hugepages and runtime directories. */
static inline void
clean(const char *dir, bool is_hugedir)
{
	char path[1024];
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, base, strlen(base)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (!is_hugedir) {
			DIR *sub = opendir(path);
			struct dirent *f;
			char file[1300];

			while (sub != NULL && (f = readdir(sub)) != NULL) {
				snprintf(file, sizeof(file), "%s/%s", path, f->d_name);
				unlink(file);
			}
			if (sub != NULL)
				closedir(sub);
			rmdir(path);
		} else if (strstr(e->d_name, "map_") != NULL) {
			unlink(path);
		}
	}
	if (d != NULL)
		closedir(d);
}

/*
 * A child of ours, BASE HUGEDIR ROLE ARGUMENTS?  Then do what it is for, and return
 * its exit status; else -1.
 */
static inline int
play_role(int argc, char **argv, const struct role *roles, size_t n)
{
	size_t i;

	if (argc <= 3)
		return -1;
	snprintf(base, sizeof(base), "%s", argv[1]);
	snprintf(hugedir, sizeof(hugedir), "%s", argv[2]);
	for (i = 0; i < n; i++)
		if (strcmp(argv[3], roles[i].name) == 0 && argc == 4 + roles[i].args)
			return roles[i].run(argv + 4);
	return 126;
}

/* Run a suite under file prefixes of its own, and clean up; returns the exit status. */
static inline int
run_suite(Suite *s, const char *name)
{
	const char *run = getenv("NFMETA_RUN_ID");
	SRunner *sr = srunner_create(s);
	int failed;

	/* No run's base starts another one's. */
	snprintf(base, sizeof(base), "%s-%s-%d_", run != NULL ? run : "nfmeta", name, getpid());
	find_hugedir();
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	if (hugedir[0] != '\0')
		clean(hugedir, true);
	clean("/var/run/dpdk", false);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
