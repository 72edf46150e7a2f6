/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_NFMETA_H
#define NFMETA_NFMETA_H

/*
 * nfmeta.h - everything: the record, classify, links, EAL help, errors.
 *
 * Reading order for a newcomer: abi.h (the bytes), record.h (read and write
 * them), link.h (hand packets over), classify.h (fill records), eal.h (hosts
 * that are not DPDK programs).
 *
 * One error rule: functions that return int return 0, or a negated number from
 * <errno.h> or abi.h; functions named _burst return how many.  The library
 * never exits, never prints and never installs a signal handler.
 */

#include <nfmeta/version.h>
#include <nfmeta/abi.h>
#include <nfmeta/error.h>
#include <nfmeta/record.h>
#include <nfmeta/classify.h>
#include <nfmeta/link.h>
#include <nfmeta/eal.h>

#endif
