/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What /proc says about a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

const char *
user_name(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	return pw != NULL ? text("%s", pw->pw_name) : text("%u", (unsigned int)uid);
}

char *
slurp(const char *path, size_t *len)
{
	size_t used = 0, size = 4096;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	char *buf;
	ssize_t n;

	if (fd < 0)
		return NULL;
	buf = room(NULL, size + 1);
	while ((n = read(fd, buf + used, size - used)) > 0) {
		used += (size_t)n;
		if (used == size) {
			size *= 2;
			buf = room(buf, size + 1);
		}
	}
	err = errno;
	close(fd);
	if (n < 0) {
		free(buf);
		errno = err;
		return NULL;
	}
	buf[used] = '\0';
	if (len != NULL)
		*len = used;
	return buf;
}

long long
file_number(const char *path)
{
	char *s = slurp(path, NULL), *end;
	long long v;

	if (s == NULL)
		return -1;
	v = strtoll(s, &end, 10);
	if (end == s)
		v = -1;
	free(s);
	return v;
}

pid_t
as_pid(const char *name)
{
	if (name[0] == '\0' || name[strspn(name, "0123456789")] != '\0' || strlen(name) > 9)
		return 0;
	return (pid_t)atol(name);
}

const char *
process_name(pid_t pid)
{
	char *s = slurp(text("/proc/%d/comm", (int)pid), NULL);

	if (s == NULL)
		return "?";
	s[strcspn(s, "\n")] = '\0';
	return s;
}

bool
process_stopped(pid_t pid)
{
	char *s = slurp(text("/proc/%d/stat", (int)pid), NULL), *end;
	bool stopped;

	/* "123 (name) T ...": the name may have anything in it */
	end = s != NULL ? strrchr(s, ')') : NULL;
	stopped = end != NULL && strlen(end) > 2 && (end[2] == 'T' || end[2] == 't');
	free(s);
	return stopped;
}

uid_t
process_uid(pid_t pid)
{
	struct stat st;

	return stat(text("/proc/%d", (int)pid), &st) == 0 ? st.st_uid : (uid_t)-1;
}

int
maps_read(pid_t pid, struct maps *maps)
{
	static const char gone[] = " (deleted)";
	char *all = slurp(text("/proc/%d/maps", (int)pid), NULL), *line, *save = NULL;
	char rights[8];
	size_t len;
	int at;

	if (all == NULL)
		return -errno;
	for (line = strtok_r(all, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		struct map m = {.path = NULL};

		at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*x:%*x %" SCNu64 " %n", &m.start,
			   &m.end, rights, &m.ino, &at) < 4 ||
		    at == 0)
			continue;
		m.path = line + at;
		m.reserved = strcmp(rights, "---p") == 0;
		len = strlen(m.path);
		if (len > sizeof(gone) && strcmp(m.path + len - sizeof(gone) + 1, gone) == 0) {
			m.deleted = true;
			m.path[len - sizeof(gone) + 1] = '\0';
		}
		maps->v = room(maps->v, (maps->n + 1) * sizeof(*maps->v));
		maps->v[maps->n++] = m;
	}
	return maps->n > 0 ? 0 : -ESRCH; /* the lines stay in memory: paths point to them */
}
