/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A child process loads the DPDK libraries that the program links, and then EAL's
 * plug-ins in EAL's order, and tells what came of it: version, mempool ops,
 * libraries.  EAL itself is not called.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"

#define SECONDS 60
#define OPS_MAX 16 /* RTE_MEMPOOL_MAX_OPS_IDX */

void
ops_layout(uint64_t table_size, uint64_t *first, uint64_t *stride)
{
	/* A lock and the number, then 16 of a struct in whole cache lines. */
	*stride = table_size / OPS_MAX & ~63ull;
	*first = table_size - OPS_MAX * *stride;
}

static bool
is_dpdk(const char *path)
{
	return strncmp(base_name(path), "librte_", 7) == 0;
}

static bool
ends(const char *s, const char *with)
{
	size_t a = strlen(s), b = strlen(with);

	return a >= b && strcmp(s + a - b, with) == 0;
}

/* ---- the child ------------------------------------------------------------------- */

/* Dependencies stand behind what needs them, and are initialised first. */
static void
load_backwards(const struct lib *l)
{
	if (l == NULL)
		return;
	load_backwards(l->next);
	if (is_dpdk(l->path))
		dlopen(l->path, RTLD_NOW);
}

static void
load_plugins(const char *folder)
{
	const char *version = strrchr(folder, '-');
	DIR *dir = opendir(folder);
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		if (ends(e->d_name, ".so") ||
		    (version != NULL && ends(e->d_name, text(".so.%s", version + 1))))
			dlopen(text("%s/%s", folder, e->d_name), RTLD_NOW);
	if (dir != NULL)
		closedir(dir);
}

static void
tell_ops(FILE *to, const char *path)
{
	void *lib = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	const uint8_t *table = lib != NULL ? dlsym(lib, "rte_mempool_ops_table") : NULL;
	uint64_t value, size = 0, first, stride;
	uint32_t i, n;
	struct elf e;

	if (table == NULL || elf_open(&e, path) != 0)
		return;
	elf_defines(&e, "rte_mempool_ops_table", &value, &size);
	elf_close(&e);
	ops_layout(size, &first, &stride);
	memcpy(&n, table + 4, sizeof(n));
	for (i = 0; i < n && i < OPS_MAX && stride > 0; i++)
		fprintf(to, "O%.31s\n", (const char *)table + first + i * stride);
}

static int
tell_lib(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (is_dpdk(info->dlpi_name))
		fprintf(arg, "L%s\n", info->dlpi_name);
	if (strncmp(base_name(info->dlpi_name), "librte_mempool.", 15) == 0)
		tell_ops(arg, info->dlpi_name);
	return 0;
}

static void
child(const struct doctor *d, const char *eal, int to)
{
	const char *(*version)(void);
	char folder[PATH_MAX];
	int null = open("/dev/null", O_RDWR);
	FILE *out = fdopen(to, "w");
	struct elf e;
	void *lib;

	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	alarm(SECONDS);
	load_backwards(d->libs);
	lib = dlopen(eal, RTLD_NOW);
	if (lib == NULL || out == NULL)
		_exit(1);
	*(void **)&version = dlsym(lib, "rte_version");
	if (version != NULL)
		fprintf(out, "V%s\n", version());
	if (elf_open(&e, eal) == 0) {
		if (elf_plugins(&e, folder)) {
			fprintf(out, "P%s\n", folder);
			load_plugins(folder);
		}
		elf_close(&e);
	}
	dl_iterate_phdr(tell_lib, out);
	_exit(fflush(out) == 0 ? 0 : 1);
}

/* ---- the parent --------------------------------------------------------------------- */

static void
listen_to(struct doctor *d, FILE *from)
{
	const char *folder = "";
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, from) > 0) {
		line[strcspn(line, "\n")] = '\0';
		switch (line[0]) {
		case 'V':
			snprintf(d->nf_version, sizeof(d->nf_version), "%.47s", line + 1);
			break;
		case 'P':
			folder = text("EAL's plug-ins in %s", line + 1);
			break;
		case 'L':
			lib_add(d, line + 1, folder);
			break;
		case 'O':
			if (d->nf_ops.n < OPS_MAX)
				snprintf(d->nf_ops.name[d->nf_ops.n++], sizeof(d->nf_ops.name[0]),
					 "%.31s", line + 1);
			break;
		}
	}
	free(line);
}

void
trial(struct doctor *d)
{
	const struct lib *l, *eal = NULL;
	int pipes[2], status = -1;
	pid_t pid;
	FILE *from;

	for (l = d->libs; l != NULL; l = l->next)
		if (strncmp(base_name(l->path), "librte_eal.", 11) == 0)
			eal = l;
	if (eal == NULL || pipe2(pipes, O_CLOEXEC) != 0)
		return;
	pid = fork();
	if (pid == 0)
		child(d, eal->path, pipes[1]);
	close(pipes[1]);
	from = fdopen(pipes[0], "r");
	if (from != NULL) {
		listen_to(d, from);
		fclose(from);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	d->tried = status == 0;
	if (!d->tried)
		say("program", UNKNOWN, WELL, "see what ldd says about it",
		    "%s cannot be loaded to look at its version and plug-ins", eal->path);
}
