/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TOOLS_H
#define NFMETA_TOOLS_H

/* The commands of the program; argv[0] is the command's name. */

#define TOOLS_USAGE 2 /* exit status: not called as it wants to be */

int doctor_main(int argc, char **argv);

#endif
