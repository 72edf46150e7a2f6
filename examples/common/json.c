/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"

int
json_open(struct json *j, const char *path)
{
	int fd;

	memset(j, 0, sizeof(*j));
	if (path == NULL)
		return 0;
	j->path = path;
	if (strcmp(path, "-") == 0) {
		j->file = stdout;
		return 0;
	}
	/* What is there stays until there is a report to put in its place. */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	j->created = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	j->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (j->file == NULL)
		return complain("--json: cannot write \"%s\": %s", path, strerror(errno));
	return 0;
}

static bool
json_key(struct json *j, const char *key)
{
	if (j->file == NULL)
		return false;
	fprintf(j->file, "%s\n%*s", j->comma ? "," : "", 2 * j->depth, "");
	if (key != NULL)
		fprintf(j->file, "\"%s\": ", key);
	j->comma = true;
	return true;
}

void
json_object(struct json *j, const char *key)
{
	if (j->file == NULL)
		return;
	if (j->depth > 0)
		json_key(j, key);
	fputc('{', j->file);
	j->depth++;
	j->comma = false;
}

void
json_end(struct json *j)
{
	if (j->file == NULL)
		return;
	j->depth--;
	fprintf(j->file, "\n%*s}", 2 * j->depth, "");
	j->comma = true;
}

void
json_text(struct json *j, const char *key, const char *value)
{
	if (!json_key(j, key))
		return;
	fputc('"', j->file);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', j->file);
		if ((unsigned char)*value < 0x20)
			fprintf(j->file, "\\u%04x", (unsigned char)*value);
		else
			fputc(*value, j->file);
	}
	fputc('"', j->file);
}

void
json_number(struct json *j, const char *key, uint64_t value)
{
	if (json_key(j, key))
		fprintf(j->file, "%ju", (uintmax_t)value);
}

void
json_real(struct json *j, const char *key, double value)
{
	if (json_key(j, key))
		fprintf(j->file, "%.3f", value);
}

int
json_close(struct json *j)
{
	struct stat st;
	int bad;

	if (j->file == NULL)
		return 0;
	while (j->depth > 0)
		json_end(j);
	fputc('\n', j->file);
	bad = ferror(j->file) || fflush(j->file) != 0;
	if (!bad && j->file != stdout && fstat(fileno(j->file), &st) == 0 && S_ISREG(st.st_mode))
		bad |= ftruncate(fileno(j->file), ftello(j->file)) != 0; /* a longer old one */
	if (j->file == stdout)
		bad |= fflush(stdout) != 0;
	else
		bad |= fclose(j->file) != 0;
	j->file = NULL;
	if (bad)
		return complain("--json: writing \"%s\" failed: %s", j->path, strerror(errno));
	return 0;
}

void
json_discard(struct json *j)
{
	if (j->file != NULL && j->file != stdout) {
		fclose(j->file);
		if (j->created)
			unlink(j->path);
	}
	j->file = NULL;
}
