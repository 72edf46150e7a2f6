/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * What somebody may have meant.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common.h"

#define WORD_MAX 48

static unsigned int
least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Letters to change, add or leave out; case does not count. */
static unsigned int
distance(const char *a, const char *b)
{
	unsigned int row[WORD_MAX + 1], i, j, corner, above;
	size_t na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	if (na >= 3 && nb >= 3 && (strcasestr(a, b) != NULL || strcasestr(b, a) != NULL))
		return 1;
	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		corner = row[0];
		row[0] = i;
		for (j = 1; j <= nb; j++) {
			above = row[j];
			corner += tolower((unsigned char)a[i - 1]) !=
				  tolower((unsigned char)b[j - 1]);
			row[j] = least(corner, least(row[j - 1], above) + 1);
			corner = above;
		}
	}
	return row[nb];
}

const char *
nearest(const char *word, const char *const *names, char *text, size_t size)
{
	const char *best[3] = {NULL, NULL, NULL};
	unsigned int how_far[3], d, i, k;

	for (i = 0; names[i] != NULL; i++) {
		d = distance(word, names[i]);
		if (d > 1 + strlen(word) / 3)
			continue;
		for (k = 3; k > 0 && (best[k - 1] == NULL || d < how_far[k - 1]); k--) {
			if (k < 3) {
				best[k] = best[k - 1];
				how_far[k] = how_far[k - 1];
			}
			best[k - 1] = names[i];
			how_far[k - 1] = d;
		}
	}
	text[0] = '\0';
	for (k = 0; k < 3 && best[k] != NULL; k++)
		snprintf(text + strlen(text), size - strlen(text), "%s%s",
			 k == 0 ? "; near it: " : ", ", best[k]);
	return text;
}
