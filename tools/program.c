/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What a program loads, asked of the dynamic loader: it lists and runs nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "program"

bool
lib_add(struct doctor *d, const char *path, const char *by)
{
	char real[PATH_MAX];
	struct lib **end, *l;

	if (realpath(path, real) == NULL)
		snprintf(real, sizeof(real), "%s", path);
	for (end = &d->libs; *end != NULL; end = &(*end)->next)
		if (strcmp((*end)->path, real) == 0)
			return false;
	l = room(NULL, sizeof(*l));
	l->next = NULL;
	l->path = text("%s", real);
	l->by = by;
	*end = l;
	return true;
}

/* The loader that runs this program; the examined file's own is not trusted. */
static const char *
loader(void)
{
	const ElfW(Phdr) *p = (const void *)getauxval(AT_PHDR);
	unsigned long i, n = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (i = 0; p != NULL && i < n; i++)
		if (p[i].p_type == PT_PHDR)
			base = (uintptr_t)p - p[i].p_vaddr;
	for (i = 0; p != NULL && i < n; i++)
		if (p[i].p_type == PT_INTERP)
			return (const char *)(base + p[i].p_vaddr);
	return NULL;
}

static FILE *
list(const char *file, pid_t *pid)
{
	const char *ld = loader();
	int pipes[2], null;

	if (ld == NULL || pipe2(pipes, O_CLOEXEC) != 0)
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(pipes[1], 1);
		dup2(null, 2);
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1); /* as ldd does: list, do not run */
		execl(ld, ld, file, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (*pid < 0) {
		close(pipes[0]);
		return NULL;
	}
	return fdopen(pipes[0], "r");
}

/* "	librte_eal.so.23 => /usr/lib/librte_eal.so.23 (0x...)" */
static void
one_line(struct doctor *d, const char *file, char *line)
{
	char *name = line + strspn(line, " \t"), *path = strstr(line, " => "), *end;

	if (path == NULL)
		return; /* the vdso and the loader itself */
	*path = '\0';
	path += 4;
	if (strncmp(path, "not found", 9) == 0) {
		say(CHECK, PROBLEM, BAD_PROGRAM,
		    "install it, or set LD_LIBRARY_PATH (and run ldconfig after an installation)",
		    "%s needs %s, which is not found", file, name);
		return;
	}
	end = strrchr(path, ' ');
	if (end != NULL && strncmp(end, " (", 2) == 0)
		*end = '\0';
	lib_add(d, path, file);
}

static void
load(struct doctor *d, const char *file)
{
	struct elf e;
	char *line = NULL;
	size_t size = 0;
	bool dynamic;
	int rc = elf_open(&e, file), status = 0;
	pid_t pid;
	FILE *f;

	if (rc != 0) {
		say(CHECK, PROBLEM, BAD_PROGRAM,
		    "name the program itself (not a script that starts it) or a plug-in (.so)",
		    "%s: %s", file,
		    rc == -ENOEXEC ? "no ELF file of this kind of machine" : strerror(-rc));
		return;
	}
	dynamic = elf_dynamic(&e);
	elf_close(&e);
	lib_add(d, file, file);
	if (!dynamic)
		return;
	f = list(file, &pid);
	while (f != NULL && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		one_line(d, file, line);
	}
	free(line);
	if (f != NULL) {
		fclose(f);
		waitpid(pid, &status, 0);
	}
	if (f == NULL || status != 0)
		say(CHECK, UNKNOWN, WELL, "see what ldd says about it",
		    "the dynamic loader cannot list what %s loads", file);
}

void
load_programs(struct doctor *d)
{
	const struct lib *l;
	struct elf e;
	int i;

	for (i = 0; i < d->nprograms; i++)
		load(d, d->programs[i]);
	for (l = d->libs; l != NULL && !d->has_dpdk; l = l->next) {
		if (strncmp(base_name(l->path), "librte_eal.", 11) == 0)
			d->has_dpdk = true;
		if (elf_open(&e, l->path) != 0)
			continue;
		if (elf_has(&e, "Cannot initialize tailq"))
			d->has_dpdk = true; /* linked statically */
		elf_close(&e);
	}
	if (d->libs != NULL && !d->has_dpdk)
		say(CHECK, UNKNOWN, WELL,
		    "name the plug-in that does with one more --program, or the program that loads "
		    "it",
		    "%s does not load DPDK by itself", d->programs[0]);
}
