/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A C program that uses the installed package.
 */
#include <nfmeta/nfmeta.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	puts(NFMETA_VERSION_STRING);
	if (strcmp(nfmeta_version(), NFMETA_VERSION_STRING) != 0) {
		fprintf(stderr, "headers of %s, library of %s\n", NFMETA_VERSION_STRING,
			nfmeta_version());
		return 1;
	}
	return 0;
}
