/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The NF's DPDK against the primary's: version, tailqs, mempool ops.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_config.h> /* these two for numbers only: no DPDK is linked */
#include <rte_version.h>

#include "doctor.h"

#define NO_PROGRAM "name the NF, and each plug-in that it loads, with --program"

/* ---- version ---------------------------------------------------------------------- */

static const char *
version_text(uint32_t v)
{
	return text("DPDK %u.%02u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
}

void
check_version(struct doctor *d)
{
	unsigned int year = 0, month = 0, minor = 0;
	bool judged = d->nf_version[0] != '\0';
	const char *of, *mine;
	uint32_t have;

	if (judged)
		sscanf(d->nf_version, "%*[^0-9]%u.%u.%u", &year, &month, &minor);
	/* The last byte tells release candidates. */
	have = judged ? year << 24 | month << 16 | minor << 8 : RTE_VERSION & ~0xffu;
	mine = judged ? d->nf_version : version_text(have);
	of = judged ? "the NF" : "this libnfmeta (built with it)";
	if (d->as_primary || d->primary != PRIMARY_ALIVE)
		say("version", OK, WELL, NULL, "%s has %s", of, mine);
	else if ((d->version & ~0xffu) != have)
		say("version", PROBLEM, BAD_VERSION, "install the same DPDK on both sides",
		    "the primary runs %s, %s has %s", version_text(d->version), of, mine);
	else
		say("version", OK, WELL, NULL, "the primary runs %s, %s has the same",
		    version_text(d->version), of);
}

/* ---- tailqs ------------------------------------------------------------------------- */

struct missing {
	const char *config; /* the primary's */
	size_t len;
	char names[128];
	unsigned int n;
};

/* Names of tailqs stand in the primary's shared configuration, NULs behind them. */
static void
tailq(void *arg, const char *name)
{
	struct missing *m = arg;

	if (memmem(m->config, m->len, name, strlen(name) + 1) == NULL)
		list_add(m->names, sizeof(m->names), name, m->n++, 3);
}

static bool
primary_has(const struct doctor *d, const char *path)
{
	size_t i;

	for (i = 0; i < d->maps.n; i++)
		if (strcmp(base_name(d->maps.v[i].path), base_name(path)) == 0)
			return true;
	return false;
}

/* Names of the tailqs of this library that the primary lacks; false: it has all. */
static bool
lacks(const struct doctor *d, const char *path, struct missing *m)
{
	bool registers, is_static;
	unsigned int names = 0;
	struct elf e;

	m->names[0] = '\0';
	m->n = 0;
	if (elf_open(&e, path) != 0)
		return false;
	registers = elf_imports(&e, "rte_eal_tailq_register");
	is_static = !registers && strncmp(base_name(path), "librte_", 7) != 0 &&
		    elf_has(&e, "Cannot initialize tailq");
	if (registers || is_static)
		names = elf_tailqs(&e, tailq, m);
	elf_close(&e);
	if (registers && names == 0 && d->maps_read && !primary_has(d, path)) {
		snprintf(m->names, sizeof(m->names), "of unknown name");
		m->n = 1;
	}
	return m->n > 0;
}

void
check_tailqs(struct doctor *d)
{
	struct missing m = {.config = NULL};
	unsigned int all = 0, lacking = 0;
	const struct lib *l;

	if (d->primary != PRIMARY_ALIVE)
		return;
	if (d->nprograms == 0) {
		say("tailq", UNKNOWN, WELL, NO_PROGRAM,
		    "libraries of the NF are not compared with the primary's");
		return;
	}
	if (!d->has_dpdk)
		return; /* said */
	m.config = slurp(text("%s/config", d->dir), &m.len);
	if (m.config == NULL)
		return; /* PRIMARY_HIDDEN */
	for (l = d->libs; l != NULL; l = l->next, all++) {
		if (!lacks(d, l->path, &m))
			continue;
		lacking++;
		say("tailq", PROBLEM, BAD_TAILQ,
		    text("link the primary to it too, start the primary with EAL's \"-d %s\", or "
			 "link the NF without it",
			 l->path),
		    "%s (loaded by %s) registers the tailq %s, which the primary has not: "
		    "rte_eal_init in the NF would end with \"Cannot initialize tailq\"",
		    base_name(l->path), l->by, m.names);
	}
	free((void *)(uintptr_t)m.config);
	if (lacking == 0 && all > 0)
		say("tailq", OK, WELL, NULL,
		    "%u files that the NF loads register no tailq that the primary lacks", all);
}

/* ---- mempool ops --------------------------------------------------------------------- */

static int
peek(pid_t pid, uint64_t from, void *to, size_t len)
{
	struct iovec local = {to, len}, remote = {(void *)(uintptr_t)from, len};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -1;
}

/* Where a file lies in the primary, if it defines the table. */
static bool
table_in(const struct doctor *d, const char *file, const char *path, uint64_t *at, uint64_t *size)
{
	uint64_t starts[8], ends[8];
	struct elf e;
	bool found;
	size_t i;

	if (elf_open(&e, file) != 0)
		return false;
	found = elf_defines(&e, "rte_mempool_ops_table", at, size);
	if (found && elf_fixed(&e, starts, ends) == 0) {
		for (i = 0; i < d->maps.n && strcmp(d->maps.v[i].path, path) != 0;)
			i++;
		found = i < d->maps.n;
		if (found)
			*at += d->maps.v[i].start;
	}
	elf_close(&e);
	return found;
}

/* A program that uses the table has it itself; all others are sent there. */
static bool
primary_ops(const struct doctor *d, struct ops *ops)
{
	uint64_t at = 0, size = 0, first, stride;
	const char *exe = text("/proc/%d/exe", (int)d->pid);
	char path[PATH_MAX];
	uint32_t i, n = 0;
	ssize_t len = readlink(exe, path, sizeof(path) - 1);
	bool found;

	path[len > 0 ? len : 0] = '\0';
	found = table_in(d, exe, path, &at, &size);
	for (i = 0; !found && i < d->maps.n; i++)
		if (strncmp(base_name(d->maps.v[i].path), "librte_mempool.", 15) == 0)
			found = table_in(d, text("/proc/%d/root%s", (int)d->pid, d->maps.v[i].path),
					 d->maps.v[i].path, &at, &size);
	ops_layout(size, &first, &stride);
	if (!found || stride == 0 || peek(d->pid, at + 4, &n, sizeof(n)) != 0)
		return false;
	memset(ops, 0, sizeof(*ops));
	for (; ops->n < n && ops->n < 16; ops->n++) {
		if (peek(d->pid, at + first + ops->n * stride, ops->name[ops->n], 31) != 0)
			return false;
	}
	return ops->n > 0;
}

void
check_mempool(struct doctor *d)
{
	char list[512] = "";
	struct ops theirs;
	unsigned int i, common = 16;
	bool vital;

	if (d->primary != PRIMARY_ALIVE || !d->maps_read || !d->has_dpdk)
		return; /* said */
	if (!primary_ops(d, &theirs) || !d->tried || d->nf_ops.n == 0) {
		say("mempool", UNKNOWN, WELL, NULL, "mempool ops of %s cannot be read",
		    !d->tried || d->nf_ops.n == 0 ? "the NF" : "the primary");
		return;
	}
	for (i = 0; i < theirs.n; i++) {
		list_add(list, sizeof(list), theirs.name[i], i, 16);
		if (common == 16 && strncmp(theirs.name[i], "ring_", 5) == 0)
			common = i;
	}
	for (i = 0; i < theirs.n && strcmp(theirs.name[i], d->nf_ops.name[i]) == 0;)
		i++;
	if (i == theirs.n) {
		say("mempool", OK, WELL, NULL, "the NF has the primary's mempool ops: %s", list);
		return;
	}
	vital = i <= common; /* pools are of ring ops if nothing else is asked for */
	say("mempool", vital ? PROBLEM : WARNING, BAD_MEMPOOL,
	    "load the same librte_mempool_* in the same order on both sides: link none of them, or "
	    "the same",
	    "mempool ops %u are %s in the primary and %s in the NF (the primary's: %s)%s", i,
	    theirs.name[i], i < d->nf_ops.n ? d->nf_ops.name[i] : "none", list,
	    vital ? ": packets would be freed by the wrong code"
		  : "; pools of ring ops are not concerned");
}
