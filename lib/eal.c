/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_eal_memconfig.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_service_component.h>
#include <rte_version.h>

#include "internal.h"

#define POLL_US 10000

/* What EAL makes of a failure, by a piece of its log; it has no error numbers for them. */
static const struct {
	const char *text;
	int code;
} causes[] = {
	{"DPDK version mismatch", NFMETA_EDPDKVERSION},
	{"Cannot mmap memory for rte_config at", NFMETA_EADDRESS},
	{"Cannot get a virtual area at requested address", NFMETA_EADDRESS},
	{"Cannot reserve", NFMETA_EADDRESS},
	{"Cannot preallocate VA space", NFMETA_EADDRESS},
	{"Cannot attach to primary process memseg lists", NFMETA_EADDRESS},
	{"Could not map memory from primary process", NFMETA_ENOHUGE},
	{"Couldn't get fd on hugepage file", NFMETA_ENOHUGE},
	{"Cannot get hugepage information", NFMETA_ENOHUGE},
};

/* EAL is once per process, and so is this. */
static struct {
	int lcore; /* lock on the lcore id; -1: not attached */
	char lcore_path[PATH_MAX];
	int log;      /* file, or -1 */
	FILE *stream; /* EAL writes here as long as its threads live */
	int failed;   /* rte_eal_init was called, in vain */
	int running;  /* rte_eal_init is: the rest is being filled */
	int cause;    /* index into causes[], or -1 */
	char cause_line[200];
	char line[2][160]; /* the last two error lines, older first */
} eal = {.lcore = -1, .log = -1};

/* ---- Finding the primary ------------------------------------------------------- */

/* Where DPDK puts the files of this prefix: eal_create_runtime_dir() does the same. */
static void
runtime_dir(char out[PATH_MAX], const char *prefix)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir == NULL)
		dir = getuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");
	snprintf(out, PATH_MAX, "%s/dpdk/%s", dir != NULL ? dir : "/tmp", prefix);
}

static int
check_prefix(const char *prefix)
{
	if (prefix[0] == '\0' || strlen(prefix) > 100 || strpbrk(prefix, "/% \t\n") != NULL ||
	    prefix[0] == '.')
		return nfmeta__fail(EINVAL, "'%.100s' cannot be a DPDK file prefix", prefix);
	return 0;
}

/*
 * The first two words of DPDK's shared configuration: RTE_MAGIC when the primary
 * is ready, and its version.  EAL would wait for the first without end, and give
 * up on the second without saying which versions they are.
 */
static int
check_config(int fd, const char *dir)
{
	unsigned int year = 0, month = 0, minor = 0;
	uint32_t head[2];

	if (pread(fd, head, sizeof(head), 0) != sizeof(head) || head[0] != RTE_MAGIC)
		return nfmeta__fail(NFMETA_ENOPRIMARY, "the primary under %s is not ready yet",
				    dir);
	sscanf(rte_version(), "%*[^0-9]%u.%u.%u", &year, &month, &minor);
	/* The last byte tells release candidates. */
	if (head[1] >> 8 == (year << 16 | month << 8 | minor))
		return 0;
	return nfmeta__fail(
		NFMETA_EDPDKVERSION,
		"the primary under %s runs DPDK %u.%02u.%u, this side %s: install the same "
		"DPDK on both sides",
		dir, head[1] >> 24, head[1] >> 16 & 0xff, head[1] >> 8 & 0xff, rte_version());
}

static int
find_primary(const char *dir)
{
	char path[PATH_MAX + 16];
	int fd, rc, err;

	snprintf(path, sizeof(path), "%s/config", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = errno;
	if (fd < 0 && err == ENOENT)
		return nfmeta__fail(
			NFMETA_ENOPRIMARY,
			"no DPDK primary under %s: start it with this --file-prefix, as the "
			"same user, and not with --in-memory or --no-shconf",
			dir);
	if (fd < 0)
		return nfmeta__fail(NFMETA_EEAL,
				    "cannot read %s: %s; run as the user of the primary", path,
				    strerror(err));
	if (lockf(fd, F_TEST, 0) == 0) {
		close(fd);
		return nfmeta__fail(
			NFMETA_EPRIMARYDEAD,
			"the primary under %s is dead, only its files are there: start it", dir);
	}
	rc = check_config(fd, dir);
	close(fd);
	if (rc != 0)
		return rc;
	snprintf(path, sizeof(path), "%s/hugepage_info", dir);
	if (access(path, R_OK) != 0)
		return nfmeta__fail(
			NFMETA_ENOHUGE,
			"the primary under %s runs without hugepages (no %s): nothing can "
			"attach to it; start it without --no-huge",
			dir, path);
	return 0;
}

/* ---- One lcore id per process ------------------------------------------------------ */

static int
lcore_lock(const char *path)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct stat have, now;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), err = EAGAIN;

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_OFD_SETLK, &l) != 0)
		err = errno;
	/* The file goes with its holder: it may be another one by now. */
	else if (fstat(fd, &have) == 0 && stat(path, &now) == 0 && have.st_ino == now.st_ino &&
		 have.st_dev == now.st_dev)
		return fd;
	close(fd);
	return -err;
}

/* From the top, where primaries hardly ever are. */
static int
take_lcore(const char *dir)
{
	int id, fd = -EAGAIN;

	for (id = RTE_MAX_LCORE - 1; id >= 0 && (fd == -EAGAIN || fd == -EACCES); id--) {
		snprintf(eal.lcore_path, sizeof(eal.lcore_path), "%.4000s/nfmeta.lcore.%d", dir,
			 id);
		fd = lcore_lock(eal.lcore_path);
		if (fd >= 0) {
			eal.lcore = fd;
			return id;
		}
	}
	return nfmeta__fail(NFMETA_EEAL, "no EAL lcore id can be locked in %s: %s", dir,
			    strerror(-fd));
}

static void
drop_lcore(void)
{
	if (eal.lcore < 0)
		return;
	unlink(eal.lcore_path);
	close(eal.lcore);
	eal.lcore = -1;
}

/* ---- EAL's log ------------------------------------------------------------------------ */

static void
note_error(const char *buf, size_t len)
{
	size_t i;

	while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == ' '))
		len--;
	if (len == 0)
		return;
	memcpy(eal.line[0], eal.line[1], sizeof(eal.line[0]));
	snprintf(eal.line[1], sizeof(eal.line[1]), "%.*s", (int)len, buf);
	for (i = 0; eal.cause < 0 && i < RTE_DIM(causes); i++)
		if (strstr(eal.line[1], causes[i].text) != NULL) {
			eal.cause = (int)i;
			memcpy(eal.cause_line, eal.line[1], sizeof(eal.line[1]));
		}
}

static ssize_t
log_write(void *cookie __rte_unused, const char *buf, size_t len)
{
	ssize_t rc __rte_unused;

	if (eal.running && rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR)
		note_error(buf, len);
	if (eal.log >= 0)
		rc = write(eal.log, buf, len);
	return (ssize_t)len;
}

static int
open_log(const char *file)
{
	static const cookie_io_functions_t io = {.write = log_write};

	if (file != NULL) {
		eal.log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
		if (eal.log < 0)
			return nfmeta__fail(EINVAL, "cannot open log_file %s: %s", file,
					    strerror(errno));
	}
	if (eal.stream == NULL)
		eal.stream = fopencookie(NULL, "w", io);
	if (eal.stream == NULL)
		return nfmeta__fail(NFMETA_EEAL, "no memory for a log stream");
	setvbuf(eal.stream, NULL, _IOLBF, 1024);
	rte_openlog_stream(eal.stream);
	return 0;
}

static void
close_log(void)
{
	if (eal.log >= 0)
		close(eal.log);
	eal.log = -1;
}

/* ---- Attach ----------------------------------------------------------------------------- */

/* "3@(0-5,8)": lcore id 3, on the CPUs that the caller may use. */
static void
lcores_option(char *out, size_t len, int id, const cpu_set_t *cpus)
{
	size_t used = (size_t)snprintf(out, len, "--lcores=%d@(", id);
	int first, last;
	const char *comma = "";

	for (first = 0; first < CPU_SETSIZE; first = last + 1) {
		last = first;
		if (!CPU_ISSET(first, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		used += (size_t)snprintf(out + used, len - used, first == last ? "%s%d" : "%s%d-%d",
					 comma, first, last);
		comma = ",";
	}
	snprintf(out + used, len - used, ")");
}

/* EAL's threads run on after a host has unloaded us; the code has to stay. */
static void
pin(void *function)
{
	Dl_info info;

	if (dladdr(function, &info) != 0 && info.dli_fname != NULL)
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Signals of the host are for the host's threads, not for those that EAL starts. */
static void
block_signals(sigset_t *old)
{
	static const int synchronous[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
					  SIGABRT, SIGTRAP, SIGSYS};
	sigset_t set;
	size_t i;

	sigfillset(&set);
	for (i = 0; i < RTE_DIM(synchronous); i++)
		sigdelset(&set, synchronous[i]);
	pthread_sigmask(SIG_SETMASK, &set, old);
}

static int
init_failed(const char *dir)
{
	static const char end[] = "EAL cannot be tried again in this process";

	if (rte_errno == EALREADY)
		return nfmeta__fail(EALREADY, "EAL is initialised in this process already");
	if (eal.cause >= 0)
		return nfmeta__fail(causes[eal.cause].code,
				    "cannot attach to the primary under %s: %s; %s", dir,
				    eal.cause_line, end);
	return nfmeta__fail(NFMETA_EEAL, "rte_eal_init failed for %s: %s%s%s; %s", dir, eal.line[0],
			    eal.line[0][0] != '\0' ? "; " : "",
			    eal.line[1][0] != '\0' ? eal.line[1] : "it gives no reason", end);
}

static int
init(const char *prefix, const char *dir)
{
	char program[64], prefix_option[128], lcores[4096];
	char secondary[] = "--proc-type=secondary", no_pci[] = "--no-pci";
	char *argv[] = {program, secondary, prefix_option, no_pci, lcores, NULL};
	cpu_set_t cpus;
	sigset_t signals;
	int id, rc, err;

	err = pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (err != 0)
		return nfmeta__fail(NFMETA_EEAL, "cannot read this thread's CPU affinity: %s",
				    strerror(err));
	id = take_lcore(dir);
	if (id < 0)
		return id;
	/* EAL calls openlog() with it: the host's own name does no harm. */
	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	snprintf(prefix_option, sizeof(prefix_option), "--file-prefix=%s", prefix);
	lcores_option(lcores, sizeof(lcores), id, &cpus);

	eal.cause = -1;
	eal.line[0][0] = eal.line[1][0] = '\0';
	pin((void *)(uintptr_t)rte_eal_init);
	pin((void *)(uintptr_t)nfmeta_eal_attach);
	block_signals(&signals);
	rte_errno = 0;
	eal.running = 1;
	rc = rte_eal_init((int)RTE_DIM(argv) - 1, argv);
	eal.running = 0;
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (rc >= 0) {
		/*
		 * 150 KB of the primary's memory, which nobody gives back when this process
		 * ends or is killed.  They are for service cores; there are none.
		 */
		rte_service_finalize();
		return 0;
	}
	eal.failed = 1;
	drop_lcore();
	return init_failed(dir);
}

int
nfmeta_eal_attach(const struct nfmeta_eal_opts *opts)
{
	static const struct nfmeta_eal_opts defaults = NFMETA_EAL_OPTS();
	char dir[PATH_MAX];
	struct nfmeta_eal_opts o;
	uint64_t end, now;
	int rc;

	if (opts == NULL)
		opts = &defaults;
	if (nfmeta__opts(&o, sizeof(o), opts, opts->sz) != 0)
		return nfmeta__fail(
			EINVAL,
			"nfmeta_eal_opts.sz is %u, %zu is known here, and the rest must be "
			"0: set it with NFMETA_EAL_OPTS()",
			opts->sz, sizeof(o));
	if (o.file_prefix == NULL)
		o.file_prefix = "rte";
	rc = check_prefix(o.file_prefix);
	if (rc != 0)
		return rc;
	if (eal.failed)
		return nfmeta__fail(EALREADY,
				    "rte_eal_init failed in this process before: EAL cannot "
				    "be tried again, start a new one");
	if (rte_lcore_count() != 0)
		return nfmeta__fail(EALREADY, "EAL is initialised in this process already");

	runtime_dir(dir, o.file_prefix);
	end = nfmeta__now_us() + (uint64_t)o.timeout_ms * 1000;
	for (;;) {
		rc = find_primary(dir);
		now = nfmeta__now_us();
		if ((rc != -NFMETA_ENOPRIMARY && rc != -NFMETA_EPRIMARYDEAD) || now >= end)
			break;
		usleep((useconds_t)RTE_MIN(end - now, (uint64_t)POLL_US));
	}
	if (rc == 0)
		rc = open_log(o.log_file);
	if (rc == 0)
		rc = init(o.file_prefix, dir);
	if (rc != 0)
		close_log();
	return rc;
}

/*
 * What EAL keeps in the runtime directory for this process alone.  While its
 * socket is there, a primary that changes its memory waits seconds for an answer
 * that a process on its way out may not give.
 */
static void
remove_own_files(void)
{
	const char *dir = rte_eal_get_runtime_dir();
	char socket[32], mark[32];
	struct dirent *e;
	const char *at;
	size_t len;
	DIR *d = opendir(dir);

	if (d == NULL)
		return;
	snprintf(socket, sizeof(socket), "mp_socket_%d_", getpid());
	/* fbarray_<of the primary>_<pid>; later releases put _<time> behind */
	len = (size_t)snprintf(mark, sizeof(mark), "_%d", getpid());
	while ((e = readdir(d)) != NULL) {
		at = strncmp(e->d_name, "fbarray_", 8) == 0 ? strchr(e->d_name + 8, '_') : NULL;
		if (strncmp(e->d_name, socket, strlen(socket)) == 0 ||
		    (at != NULL && strncmp(at, mark, len) == 0 &&
		     (at[len] == '\0' || at[len] == '_')))
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
}

/*
 * rte_eal_cleanup() is left out: since DPDK 22.11 it cleans up the buses, drivers
 * act on the primary's devices then.  EAL's threads sleep on.
 */
void
nfmeta_eal_detach(void)
{
	/* The lock keeps the primary from asking just now.  A dead one may hold it. */
	if (eal.lcore >= 0 && rte_eal_primary_proc_alive(NULL)) {
		rte_mcfg_mem_read_lock();
		remove_own_files();
		rte_mcfg_mem_read_unlock();
	} else if (eal.lcore >= 0) {
		remove_own_files();
	}
	drop_lcore();
	close_log();
}
