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

int
nfmeta__check_name(const char *what, const char *name)
{
	size_t i;

	if (name == NULL || name[0] == '\0')
		return nfmeta__fail(EINVAL, "a %s needs a name: 1 to %d characters", what,
				    NFMETA_LINK_NAME_MAX);
	for (i = 0; name[i] != '\0'; i++) {
		char c = name[i];

		if (i == NFMETA_LINK_NAME_MAX)
			return nfmeta__fail(EINVAL, "no %s can be called '%.40s': longer than %d",
					    what, name, NFMETA_LINK_NAME_MAX);
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return nfmeta__fail(EINVAL,
					    "no %s can be called '%.40s': character %zu is 0x%02x; "
					    "letters, digits, '_', '-' and '.' are allowed",
					    what, name, i + 1, (unsigned char)c);
	}
	return 0;
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
		NAME(NFMETA_EEAL),	 NAME(NFMETA_EMESSAGE),	    NAME(NFMETA_EGAP),
		NAME(NFMETA_ENOFLOW),	 NAME(NFMETA_EFENCED),
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
