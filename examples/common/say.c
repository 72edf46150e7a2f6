/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static const char *program = "example";
static const char *where_file; /* what is complained about stands there */
static unsigned int where_line;

void
say_program(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	program = slash != NULL ? slash + 1 : argv0;
}

const char *
say_name(void)
{
	return program;
}

/* In one write, so that lines of several processes do not mix. */
static void
say_line(const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (where_file != NULL)
		fprintf(stderr, "%s: %s:%u: %s\n", program, where_file, where_line, text);
	else
		fprintf(stderr, "%s: %s\n", program, text);
}

void
say_where(const char *file, unsigned int line)
{
	where_file = file;
	where_line = line;
}

int
complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(fmt, ap);
	va_end(ap);
	return -1;
}

void
note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(fmt, ap);
	va_end(ap);
}

int
bad_option(int c, char **argv)
{
	char letter[3] = {'-', (char)optopt, '\0'};
	bool is_letter = optopt > 0 && optopt < 256;
	const char *word = is_letter ? letter : argv[optind - 1];

	if (c == ':')
		return complain("%s needs a value (see --help)", word);
	return complain("unknown option %s (see --help)", word);
}

int
parse_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || *value < min ||
	    *value > max)
		return complain("%s \"%s\": a number from %ju to %ju is wanted", option, text,
				(uintmax_t)min, (uintmax_t)max);
	return 0;
}

int
parse_choice(const char *option, const char *text, const char *const *names, int *index)
{
	char all[256] = "";
	int i;

	for (i = 0; names[i] != NULL; i++) {
		if (strcmp(names[i], text) == 0) {
			*index = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? ", " : "",
			 names[i]);
	}
	return complain("%s \"%s\": one of %s is wanted", option, text, all);
}
