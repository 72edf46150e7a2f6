/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_ERROR_H
#define NFMETA_ERROR_H

/*
 * error.h - what went wrong, in words, and which library this is.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define NFMETA_API __attribute__((visibility("default")))

/**
 * The sentence for the last call of this thread that failed: what was wrong,
 * with both sides' values where two sides differ, and what to do.
 *
 * @return never NULL; "" if nothing failed yet.  Stays valid until the next
 *         failing call of the same thread.
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_API const char *nfmeta_error(void);

/**
 * Short name of an error number, for logs: "NFMETA_ENOLINK", "EINVAL".
 *
 * @param rc  what a function returned (negative), or its positive form
 * @return a string constant; "OK" for 0, "unknown error" for foreign numbers.
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_API const char *nfmeta_strerror(int rc);

/**
 * Version of the library that is loaded (compare NFMETA_VERSION_STRING, the
 * version of the headers).
 *
 * @return a string constant such as "0.1.0".
 *
 * Any thread, any process.  Since 0.1.
 */
NFMETA_API const char *nfmeta_version(void);

#ifdef __cplusplus
}
#endif
#endif
