/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static __thread char sentence[1024];

int
nfmeta__fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return -code;
}

const char *
nfmeta_error(void)
{
	return sentence;
}

const char *
nfmeta_strerror(int rc)
{
#define NAME(e)                                                                                    \
	{                                                                                          \
		e, #e                                                                              \
	}
	static const struct {
		int code;
		const char *name;
	} names[] = {
		NAME(NFMETA_ENOPRIMARY), NAME(NFMETA_EPRIMARYDEAD), NAME(NFMETA_EDPDKVERSION),
		NAME(NFMETA_EABI),	 NAME(NFMETA_EMBUF),	    NAME(NFMETA_EPOOLOPS),
		NAME(NFMETA_EROLE),	 NAME(NFMETA_EQUEUETAKEN),  NAME(NFMETA_ENOHUGE),
		NAME(NFMETA_EADDRESS),	 NAME(NFMETA_EFEATURE),	    NAME(NFMETA_ENOLINK),
		NAME(NFMETA_EFORMAT),	 NAME(NFMETA_ENOROOM),	    NAME(NFMETA_EFIELD),
		NAME(NFMETA_ECLOSING),	 NAME(NFMETA_EPRIMARYGONE), NAME(NFMETA_EDEADNF),
		NAME(NFMETA_EEAL),
	};
#undef NAME
	const char *name;
	size_t i;

	if (rc == 0)
		return "OK";
	if (rc < 0)
		rc = -rc;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == rc)
			return names[i].name;
	name = strerrorname_np(rc); /* glibc >= 2.32 */
	return name != NULL ? name : "unknown error";
}

const char *
nfmeta_version(void)
{
	return NFMETA_VERSION_STRING;
}
