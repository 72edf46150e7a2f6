/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What an ELF file says without being loaded.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define TAILQ_NAME 32 /* RTE_TAILQ_NAMESIZE */

/* n things of this size at this place, or NULL: the file may be anything. */
static const void *
part(const struct elf *e, uint64_t offset, uint64_t n, uint64_t size)
{
	if (offset > e->len || offset % 8 != 0 || n > (e->len - offset) / size)
		return NULL;
	return e->bytes + offset;
}

static const Elf64_Ehdr *
header(const struct elf *e)
{
	return (const void *)e->bytes;
}

int
elf_open(struct elf *e, const char *path)
{
	static Elf64_Half machine;
	struct stat st;
	struct elf own;
	void *p;
	int fd;

	if (machine == 0 && strcmp(path, "/proc/self/exe") != 0 &&
	    elf_open(&own, "/proc/self/exe") == 0) {
		machine = header(&own)->e_machine;
		elf_close(&own);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return -ENOEXEC;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	e->bytes = p;
	e->len = (size_t)st.st_size;
	if (memcmp(e->bytes, ELFMAG, SELFMAG) == 0 && e->bytes[EI_CLASS] == ELFCLASS64 &&
	    (machine == 0 || header(e)->e_machine == machine))
		return 0;
	elf_close(e);
	return -ENOEXEC;
}

void
elf_close(struct elf *e)
{
	munmap((void *)(uintptr_t)e->bytes, e->len);
	e->bytes = NULL;
}

static const Elf64_Phdr *
segments(const struct elf *e, unsigned int *n)
{
	*n = header(e)->e_phnum;
	return part(e, header(e)->e_phoff, *n, sizeof(Elf64_Phdr));
}

static const Elf64_Shdr *
section(const struct elf *e, Elf64_Word type)
{
	const Elf64_Ehdr *h = header(e);
	const Elf64_Shdr *s = part(e, h->e_shoff, h->e_shnum, sizeof(*s));
	unsigned int i;

	for (i = 0; s != NULL && i < h->e_shnum; i++)
		if (s[i].sh_type == type)
			return &s[i];
	return NULL;
}

bool
elf_dynamic(const struct elf *e)
{
	unsigned int i, n;
	const Elf64_Phdr *p = segments(e, &n);

	for (i = 0; p != NULL && i < n; i++)
		if (p[i].p_type == PT_DYNAMIC)
			return true;
	return false;
}

unsigned int
elf_fixed(const struct elf *e, uint64_t start[8], uint64_t end[8])
{
	unsigned int i, n, found = 0;
	const Elf64_Phdr *p = segments(e, &n);

	if (header(e)->e_type != ET_EXEC)
		return 0;
	for (i = 0; p != NULL && i < n && found < 8; i++) {
		if (p[i].p_type != PT_LOAD)
			continue;
		start[found] = p[i].p_vaddr;
		end[found++] = p[i].p_vaddr + p[i].p_memsz;
	}
	return found;
}

/* The dynamic symbol of this name; defined or not. */
static const Elf64_Sym *
symbol(const struct elf *e, const char *name)
{
	const Elf64_Ehdr *h = header(e);
	const Elf64_Shdr *all = part(e, h->e_shoff, h->e_shnum, sizeof(*all));
	const Elf64_Shdr *s = section(e, SHT_DYNSYM), *str;
	const Elf64_Sym *sym;
	size_t len = strlen(name) + 1;
	uint64_t i, n;

	if (s == NULL || s->sh_link >= h->e_shnum)
		return NULL;
	str = &all[s->sh_link];
	n = s->sh_size / sizeof(*sym);
	sym = part(e, s->sh_offset, n, sizeof(*sym));
	if (sym == NULL || str->sh_offset > e->len || str->sh_size > e->len - str->sh_offset)
		return NULL;
	for (i = 0; i < n; i++)
		if (sym[i].st_name < str->sh_size && len <= str->sh_size - sym[i].st_name &&
		    memcmp(e->bytes + str->sh_offset + sym[i].st_name, name, len) == 0)
			return &sym[i];
	return NULL;
}

bool
elf_imports(const struct elf *e, const char *name)
{
	const Elf64_Sym *s = symbol(e, name);

	return s != NULL && s->st_shndx == SHN_UNDEF;
}

bool
elf_defines(const struct elf *e, const char *name, uint64_t *value, uint64_t *size)
{
	const Elf64_Sym *s = symbol(e, name);

	if (s == NULL || s->st_shndx == SHN_UNDEF)
		return false;
	*value = s->st_value;
	*size = s->st_size;
	return true;
}

bool
elf_has(const struct elf *e, const char *piece)
{
	return memmem(e->bytes, e->len, piece, strlen(piece)) != NULL;
}

/* Characters of a name that fills its place with NULs; 0: it is none. */
static size_t
tailq_name(const uint8_t *p)
{
	size_t i, len = 0;

	while (len < TAILQ_NAME && ((p[len] >= 'A' && p[len] <= 'Z') || p[len] == '_' ||
				    (p[len] >= '0' && p[len] <= '9')))
		len++;
	for (i = len; i < TAILQ_NAME; i++)
		if (p[i] != '\0')
			return 0;
	return len < TAILQ_NAME && len >= 3 ? len : 0;
}

/*
 * struct rte_tailq_elem as the linker left it, in writable data: a pointer and two
 * links, all empty, then the name.  The symbols are local and stripped.
 */
unsigned int
elf_tailqs(const struct elf *e, void (*found)(void *, const char *), void *arg)
{
	static const uint8_t empty[24];
	unsigned int i, n, names = 0;
	const Elf64_Phdr *p = segments(e, &n);
	uint64_t at, end;

	for (i = 0; p != NULL && i < n; i++) {
		if (p[i].p_type != PT_LOAD || (p[i].p_flags & PF_W) == 0 ||
		    p[i].p_offset > e->len || p[i].p_filesz > e->len - p[i].p_offset)
			continue;
		end = p[i].p_offset + p[i].p_filesz;
		for (at = (p[i].p_offset + 7) & ~7ull; at + sizeof(empty) + TAILQ_NAME <= end;
		     at += 8) {
			const uint8_t *name = e->bytes + at + sizeof(empty);

			if (memcmp(e->bytes + at, empty, sizeof(empty)) != 0 ||
			    tailq_name(name) == 0)
				continue;
			found(arg, (const char *)name);
			names++;
		}
	}
	return names;
}

bool
elf_plugins(const struct elf *e, char out[PATH_MAX])
{
	static const char mark[] = "/pmds-";
	const uint8_t *at = e->bytes, *start, *end, *last = e->bytes + e->len;
	struct stat st;

	while ((at = memmem(at, (size_t)(last - at), mark, strlen(mark))) != NULL) {
		for (start = at; start > e->bytes && start[-1] != '\0';)
			start--;
		end = memchr(at, '\0', (size_t)(last - at));
		if (end == NULL)
			return false;
		if (*start == '/' && end - start < PATH_MAX) {
			memcpy(out, start, (size_t)(end - start) + 1);
			if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
				return true;
		}
		at = end;
	}
	return false;
}
