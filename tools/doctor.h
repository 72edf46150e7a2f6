/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TOOLS_DOCTOR_H
#define NFMETA_TOOLS_DOCTOR_H

/* What the rooms of "nfmeta doctor" share. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit statuses; of several the lowest, for it is to be put right first. */
enum {
	WELL = 0,
	FAILED = 1, /* the doctor itself: no memory */
	USAGE = 2,
	BAD_PRIMARY = 10,
	BAD_DEAD = 11,
	BAD_RIGHTS = 12,
	BAD_NAMESPACE = 13,
	BAD_HUGEPAGES = 14,
	BAD_VERSION = 15,
	BAD_PROGRAM = 16,
	BAD_TAILQ = 17,
	BAD_MEMPOOL = 18,
	BAD_ADDRESS = 19,
	BAD_LCORE = 20,
	BAD_LINK = 21,
};

enum primary {
	PRIMARY_NONE,
	PRIMARY_DEAD,
	PRIMARY_STARTING,
	PRIMARY_ALIVE,
	PRIMARY_HIDDEN, /* there may be one; its files cannot be read */
};

/* A file that is loaded into a process. */
struct lib {
	struct lib *next;
	char *path;
	const char *by; /* --program, or the folder of EAL's plug-ins */
};

struct map {
	uint64_t start, end;
	uint64_t ino;
	bool deleted;
	bool reserved; /* no access: kept for later */
	char *path;    /* "" when it is of no file */
};

struct maps {
	struct map *v;
	size_t n;
};

/* Mempool ops by index; the index is what pools in shared memory know. */
struct ops {
	char name[16][32];
	unsigned int n;
};

struct doctor {
	const char *prefix;
	const char *huge_dir; /* NULL: any */
	char **programs;
	int nprograms;
	bool as_primary; /* --proc-type primary: could one start? */

	char dir[PATH_MAX]; /* DPDK's runtime directory of the prefix */
	enum primary primary;
	pid_t pid;	  /* of the primary; 0: not to be seen from here */
	uid_t uid;	  /* owner of its files */
	uint32_t version; /* of its DPDK, as RTE_VERSION */
	bool maps_read;
	struct maps maps; /* its memory */

	struct lib *libs; /* what an NF has loaded after rte_eal_init */
	bool has_dpdk;	  /* it is among them, or linked statically */
	bool tried;	  /* trial() could load them */
	char nf_version[48];
	struct ops nf_ops;
};

/* ---- report.c ------------------------------------------------------------------ */

enum status {
	OK,
	WARNING,
	PROBLEM,
	UNKNOWN
};

/* One finding.  exit: BAD_*, counts with PROBLEM only.  advice: what to do, or NULL. */
__attribute__((format(printf, 5, 6))) void say(const char *check, enum status status, int exit,
					       const char *advice, const char *fmt, ...);
/* Prints them and gives the exit status. */
int report(bool json, bool quiet);
/* Text in memory that is never freed; ends the program when there is no memory. */
__attribute__((format(printf, 1, 2))) char *text(const char *fmt, ...);
/* "a", "a, b", "a, b, ..." of at most `most`, out of n. */
void list_add(char *list, size_t size, const char *item, unsigned int n, unsigned int most);
void *room(void *old, size_t size);

/* ---- process.c ------------------------------------------------------------------- */

const char *user_name(uid_t uid);
/* "splitter"; "?" when it cannot be read. */
const char *process_name(pid_t pid);
uid_t process_uid(pid_t pid);
bool process_stopped(pid_t pid); /* by SIGSTOP or a debugger */
/* 0, or -errno. */
int maps_read(pid_t pid, struct maps *maps);
/* Whole file, ended with a NUL; NULL and errno. */
char *slurp(const char *path, size_t *len);
/* A number in a file of /proc or /sys; -1: not to be read. */
long long file_number(const char *path);
/* "123" only; 0: no pid. */
pid_t as_pid(const char *name);

/* ---- elf.c ------------------------------------------------------------------------- */

struct elf {
	const uint8_t *bytes;
	size_t len;
};

/* 0, or -errno; -ENOEXEC: no ELF file of this kind of machine. */
int elf_open(struct elf *e, const char *path);
void elf_close(struct elf *e);
bool elf_dynamic(const struct elf *e);
/* Address ranges of a program that is not position independent; their number. */
unsigned int elf_fixed(const struct elf *e, uint64_t start[8], uint64_t end[8]);
bool elf_imports(const struct elf *e, const char *symbol);
bool elf_defines(const struct elf *e, const char *symbol, uint64_t *value, uint64_t *size);
bool elf_has(const struct elf *e, const char *piece);
/* Calls found() with each name of a DPDK tailq that the file registers; their number. */
unsigned int elf_tailqs(const struct elf *e, void (*found)(void *, const char *), void *arg);
/* The folder where this librte_eal looks for plug-ins; false: none. */
bool elf_plugins(const struct elf *e, char out[PATH_MAX]);

/* ---- the checks, in their order ------------------------------------------------------ */

void where(struct doctor *d);		      /* primary.c: finds the primary, says nothing */
void check_primary(struct doctor *d);	      /* primary.c */
bool check_elsewhere(const struct doctor *d); /* for primary.c; false: said nothing */
void check_rights(struct doctor *d);
void check_namespaces(struct doctor *d);
void check_hugepages(struct doctor *d);
void load_programs(struct doctor *d); /* program.c: fills d->libs; says what is missing */
void trial(struct doctor *d);	      /* trial.c: fills nf_*, adds to d->libs */
void check_version(struct doctor *d); /* libraries.c */
void check_tailqs(struct doctor *d);
void check_mempool(struct doctor *d);
void check_addresses(struct doctor *d);
void check_lcores(struct doctor *d); /* links.c */
void check_links(struct doctor *d);
void check_others(struct doctor *d); /* others.c: information */

/* ---- what several use ------------------------------------------------------------------ */

/* program.c: adds a library once; false: it was there. */
bool lib_add(struct doctor *d, const char *path, const char *by);
/* trial.c: where the names are in rte_mempool_ops_table, from its size. */
void ops_layout(uint64_t table_size, uint64_t *first, uint64_t *stride);
/* primary.c: who holds a config file; pid 0: not to be seen. */
enum primary primary_look(const char *config, pid_t *pid, uint32_t *version);
/* namespaces.c: is this process in the same one ("mnt", "pid", ...)? */
enum same {
	SAME,
	OTHER,
	NOT_SEEN
};
enum same same_namespace(pid_t pid, const char *kind);
/* primary.c: mount points where the primary has its hugepages, from hugepage_info. */
unsigned int primary_huge_dirs(const struct doctor *d, char dirs[4][PATH_MAX]);
/* others.c: hugepage files of a prefix in a folder; their number. */
unsigned int huge_files(const char *folder, const char *prefix, unsigned long long *bytes);
/* others.c: pids that hold a lock on an fbarray file of this runtime directory. */
unsigned int memory_holders(const char *dir, pid_t pids[8]);
const char *base_name(const char *path);

#endif
