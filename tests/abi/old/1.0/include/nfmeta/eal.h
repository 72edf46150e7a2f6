/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_EAL_H
#define NFMETA_EAL_H

/*
 * eal.h - become a DPDK secondary inside a program that is not a DPDK program
 * (a DAQ module, a capture plug-in).  Programs that call rte_eal_init
 * themselves do not need it.
 */

#include <stdint.h>

#include <nfmeta/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of nfmeta_eal_attach(); zero means "default" everywhere. */
struct nfmeta_eal_opts {
	uint32_t sz;		 /**< sizeof(struct nfmeta_eal_opts) */
	uint32_t timeout_ms;	 /**< how long to wait for a primary; 0: only look once */
	const char *file_prefix; /**< the primary's --file-prefix; NULL: "rte" */
	const char *log_file;	 /**< where EAL's log goes (appended); NULL: kept from view */
};
#define NFMETA_EAL_OPTS(...)                                                                       \
	{                                                                                          \
		.sz = sizeof(struct nfmeta_eal_opts), __VA_ARGS__                                  \
	}

/**
 * Initialise EAL as a secondary, without side effects on the host: an EAL
 * lcore id that no other process of the prefix uses (two processes with one
 * lcore id would share a mempool cache), the calling thread's CPU affinity
 * kept, no PCI devices, EAL's log off the host's stderr.
 *
 * @param opts  NULL: all defaults
 * @return 0, or
 *   -EINVAL                an option is not allowed
 *   -EALREADY              EAL is initialised in this process
 *   -NFMETA_ENOPRIMARY     no primary under this prefix within timeout_ms
 *   -NFMETA_EPRIMARYDEAD   only the files of a dead one
 *   -NFMETA_EDPDKVERSION   the primary runs another DPDK version
 *   -NFMETA_EADDRESS       the primary's addresses cannot be mapped here
 *   -NFMETA_ENOHUGE        the primary runs without hugepages, or they cannot be opened
 *   -NFMETA_EEAL           anything else; the sentence has EAL's own last error line
 * After a failure EAL cannot be tried again in this process if the sentence
 * says so (DPDK's rule).  In that case EAL has written one line to stderr by
 * itself; all that can be known before is tested before EAL is called.
 *
 * One thread, before any other DPDK call.  Since 0.1.
 */
NFMETA_API int nfmeta_eal_attach(const struct nfmeta_eal_opts *opts);

/**
 * Undo nfmeta_eal_attach(): release the lcore id and the log file, remove this
 * process's files from DPDK's runtime directory.  Detach from all links first.
 * EAL itself is not taken down: since DPDK 22.11 that cleans up the buses, and in
 * a secondary this can reset the primary's NIC.  Its two threads sleep until the
 * process ends, and the library stays loaded.
 *
 * One thread.  Since 0.1.
 */
NFMETA_API void nfmeta_eal_detach(void);

#ifdef __cplusplus
}
#endif
#endif
