/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

struct finding {
	const char *check;
	enum status status;
	int exit;
	const char *text;
	const char *advice;
};

static struct finding *findings;
static size_t count;

static const char *const status_names[] = {"ok", "warning", "problem", "unknown"};

void *
room(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (p == NULL) {
		fputs("nfmeta doctor: no memory\n", stderr);
		exit(FAILED);
	}
	return p;
}

static char *
vtext(const char *fmt, va_list ap)
{
	char *p;

	if (vasprintf(&p, fmt, ap) < 0)
		p = room(NULL, SIZE_MAX / 2); /* says so and ends */
	return p;
}

char *
text(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = vtext(fmt, ap);
	va_end(ap);
	return p;
}

void
list_add(char *list, size_t size, const char *item, unsigned int n, unsigned int most)
{
	size_t used = strlen(list);

	if (n > most)
		return;
	snprintf(list + used, size - used, "%s%s", n > 0 ? ", " : "", n < most ? item : "...");
}

void
say(const char *check, enum status status, int exit, const char *advice, const char *fmt, ...)
{
	struct finding *f;
	va_list ap;

	findings = room(findings, (count + 1) * sizeof(*findings));
	f = &findings[count++];
	f->check = check;
	f->status = status;
	f->exit = status == PROBLEM ? exit : WELL;
	f->advice = advice != NULL ? advice : "";
	va_start(ap, fmt);
	f->text = vtext(fmt, ap);
	va_end(ap);
}

static void
print_json_text(const char *s)
{
	putchar('"');
	for (; *s != '\0'; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
			printf("\\u%04x", (unsigned char)*s); /* names of files: any bytes */
		else
			putchar(*s);
	putchar('"');
}

static void
print_json(const struct finding *f)
{
	printf("{\"check\":");
	print_json_text(f->check);
	printf(",\"status\":");
	print_json_text(status_names[f->status]);
	printf(",\"text\":");
	print_json_text(f->text);
	printf(",\"advice\":");
	print_json_text(f->advice);
	printf(",\"exit\":%d}", f->exit);
}

/* One line, whatever bytes the names in it have. */
static void
print_line(const char *s)
{
	for (; *s != '\0'; s++)
		putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static void
print_text(const struct finding *f)
{
	printf("%-8s %s: ", status_names[f->status], f->check);
	print_line(f->text);
	if (f->advice[0] != '\0') {
		printf("; ");
		print_line(f->advice);
	}
	putchar('\n');
}

int
report(bool json, bool quiet)
{
	const char *between = "";
	int exit = WELL;
	size_t i;

	if (json)
		putchar('[');
	for (i = 0; i < count; i++) {
		const struct finding *f = &findings[i];

		if (f->exit != WELL && (exit == WELL || f->exit < exit))
			exit = f->exit;
		if (quiet && f->status == OK)
			continue;
		if (json) {
			printf("%s\n", between);
			print_json(f);
			between = ",";
		} else {
			print_text(f);
		}
	}
	if (json)
		puts("\n]");
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("nfmeta doctor: standard output");
		return FAILED;
	}
	return exit;
}
