/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_VERSION_H
#define NFMETA_VERSION_H

/**
 * @file
 * Version of the library.
 *
 * The three numbers stand here and nowhere else: CMake reads them from this
 * file, and refuses to configure when lib/nfmeta.map or CHANGELOG.md disagree.
 *
 * The version of the *record and of shared memory* is another thing, see
 * bindings-spec/. It changes rarely; this one changes with every release.
 *
 * The file includes nothing and holds preprocessor lines only.
 */

#define NFMETA_VERSION_MAJOR 0
#define NFMETA_VERSION_MINOR 1
#define NFMETA_VERSION_PATCH 0

/** One number for a version, to compare in \#if. Each part is 0 to 255. */
#define NFMETA_VERSION_NUM(major, minor, patch) (((major) << 16) | ((minor) << 8) | (patch))

/** Version of the headers as a number. */
#define NFMETA_VERSION                                                                             \
	NFMETA_VERSION_NUM(NFMETA_VERSION_MAJOR, NFMETA_VERSION_MINOR, NFMETA_VERSION_PATCH)

#define NFMETA_VERSION_STR_(x) #x
#define NFMETA_VERSION_STR(x) NFMETA_VERSION_STR_(x)

/** Version of the headers as a string, "major.minor.patch". */
#define NFMETA_VERSION_STRING                                                                      \
	NFMETA_VERSION_STR(NFMETA_VERSION_MAJOR)                                                   \
	"." NFMETA_VERSION_STR(NFMETA_VERSION_MINOR) "." NFMETA_VERSION_STR(NFMETA_VERSION_PATCH)

#endif /* NFMETA_VERSION_H */
