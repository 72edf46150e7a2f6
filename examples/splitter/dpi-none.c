/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "../common/common.h"
#include "apps.h"

struct dpi *
dpi_open(uint16_t flows)
{
	(void)flows;
	complain("--rules and --apps: this program was built without nDPI (libndpi-dev)");
	return NULL;
}

/* There never is one. */

void
dpi_close(struct dpi *d)
{
	(void)d;
}

const char *
dpi_version(const struct dpi *d)
{
	(void)d;
	return "";
}

const char *const *
dpi_names(const struct dpi *d)
{
	static const char *const none[] = {NULL, NULL};

	(void)d;
	return none;
}

void
dpi_begin(struct dpi *d, uint16_t slot)
{
	(void)d;
	(void)slot;
}

struct dpi_result
dpi_look(struct dpi *d, uint16_t slot, const uint8_t *l3, uint16_t len, uint64_t ms)
{
	(void)d;
	(void)slot;
	(void)l3;
	(void)len;
	(void)ms;
	return (struct dpi_result){0};
}

void
dpi_end(struct dpi *d, uint16_t slot)
{
	(void)d;
	(void)slot;
}
