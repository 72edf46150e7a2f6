/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Files of [sections] with "key = value" lines.  (rte_cfgfile reads such files, too,
 * but cannot say in which line something is.)
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

int
ini_bad(const struct ini *i, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return complain("%s:%u: %s", i->path, i->line, text);
}

int
ini_open(struct ini *i, const char *option, const char *path)
{
	memset(i, 0, sizeof(*i));
	i->path = path;
	i->file = fopen(path, "re");
	if (i->file == NULL)
		return complain("%s: cannot read \"%s\": %s", option, path, strerror(errno));
	return 0;
}

static char *
trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

/* From a '#' or ';' at the start, or behind a blank. */
static void
cut_comment(char *s)
{
	char *p;

	for (p = s; *p != '\0'; p++)
		if ((*p == '#' || *p == ';') && (p == s || isspace((unsigned char)p[-1])))
			*p = '\0';
}

static int
section(struct ini *i, char *s)
{
	size_t n = strlen(s);

	if (s[n - 1] != ']' || n < 3)
		return ini_bad(i, "\"%s\": [section] is wanted", s);
	s[n - 1] = '\0';
	s = trim(s + 1);
	if (snprintf(i->section, sizeof(i->section), "%s", s) >= (int)sizeof(i->section))
		return ini_bad(i, "\"[%s]\": no section has so long a name", s);
	return 0;
}

int
ini_next(struct ini *i)
{
	ssize_t n;
	char *s, *equals;

	while ((n = getline(&i->text, &i->size, i->file)) >= 0) {
		i->line++;
		if (memchr(i->text, '\0', (size_t)n) != NULL)
			return ini_bad(i, "this is not a text file");
		cut_comment(i->text);
		s = trim(i->text);
		if (*s == '\0')
			continue;
		if (*s == '[') {
			if (section(i, s) != 0)
				return -1;
			continue;
		}
		equals = strchr(s, '=');
		if (equals == NULL || equals == s)
			return ini_bad(i, "\"%s\": name = value is wanted", s);
		*equals = '\0';
		i->key = trim(s);
		i->value = trim(equals + 1);
		if (i->section[0] == '\0')
			return ini_bad(i, "\"%s\" comes before any [section]", i->key);
		return 1;
	}
	if (ferror(i->file))
		return complain("cannot read \"%s\": %s", i->path, strerror(errno));
	return 0;
}

void
ini_close(struct ini *i)
{
	if (i->file != NULL)
		fclose(i->file);
	free(i->text);
	memset(i, 0, sizeof(*i));
}
