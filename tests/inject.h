/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_TESTS_INJECT_H
#define NFMETA_TESTS_INJECT_H

/*
 * inject.h - put before each file of lib/ (-include) for test_inject: every call below
 * asks first whether it is to fail, and fails as the real one can.  tests/inject-all
 * sees that none is missing.
 */

#include "../lib/link.h" /* first: it chooses the memory model of rte_ring */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

/* Is this call to fail?  Then errno and rte_errno are set. */
bool inject(const char *call, int error);
/* Heap and maps of the library, so that what is left can be told. */
void *inject_took(void *block);
void inject_gave(void *block);
void *inject_mapped(void *map, size_t len);
void inject_unmapped(size_t len);

/* clang-format off */
#define malloc(size)		(inject("malloc", ENOMEM) ? NULL : inject_took(malloc(size)))
#define calloc(n, size)		(inject("calloc", ENOMEM) ? NULL : inject_took(calloc(n, size)))
#define aligned_alloc(a, size)	(inject("aligned_alloc", ENOMEM) ? NULL : inject_took(aligned_alloc(a, size)))
#define free(p)			do { void *p_ = (p); inject_gave(p_); free(p_); } while (0)
#define mmap(a, len, ...)	(inject("mmap", ENOMEM) ? MAP_FAILED : inject_mapped(mmap(a, len, __VA_ARGS__), len))
#define munmap(a, len)		(inject_unmapped(len), munmap(a, len))
#define open_memstream(p, len)	(inject("open_memstream", ENOMEM) ? NULL : open_memstream(p, len))
#define fopencookie(c, m, io)	(inject("fopencookie", ENOMEM) ? NULL : fopencookie(c, m, io))

#define open(...)		(inject("open", EMFILE) ? -1 : open(__VA_ARGS__))
/* to give up a lock that touches no other one cannot fail */
#define fcntl(fd, cmd, l) \
	((l)->l_type != F_UNLCK && inject("fcntl", ENOLCK) ? -1 : fcntl(fd, cmd, l))
#define stat(path, s)		(inject("stat", ENOMEM) ? -1 : stat(path, s))
#define fstat(fd, s)		(inject("fstat", ENOMEM) ? -1 : fstat(fd, s))
#define access(path, mode)	(inject("access", ENOMEM) ? -1 : access(path, mode))
#define pread(fd, p, n, at)	(inject("pread", EIO) ? -1 : pread(fd, p, n, at))
#define unlink(path)		(inject("unlink", EROFS) ? -1 : unlink(path))
#define rename(from, to)	(inject("rename", EROFS) ? -1 : rename(from, to))
#define opendir(path)		(inject("opendir", EMFILE) ? NULL : opendir(path))
#define pthread_getaffinity_np(t, n, cpus) \
	(inject("pthread_getaffinity_np", ESRCH) ? ESRCH : pthread_getaffinity_np(t, n, cpus))

#define rte_eal_init(n, argv)	(inject("rte_eal_init", EAGAIN) ? -1 : rte_eal_init(n, argv))
#define rte_mp_action_register(name, f) \
	(inject("rte_mp_action_register", ENOMEM) ? -1 : rte_mp_action_register(name, f))
#define rte_memzone_reserve(...) \
	(inject("rte_memzone_reserve", ENOMEM) ? NULL : rte_memzone_reserve(__VA_ARGS__))
#define rte_memzone_reserve_aligned(...) \
	(inject("rte_memzone_reserve_aligned", ENOMEM) ? NULL : rte_memzone_reserve_aligned(__VA_ARGS__))
#define rte_memzone_lookup(name) \
	(inject("rte_memzone_lookup", ENOENT) ? NULL : rte_memzone_lookup(name))
#define rte_ring_create(...)	(inject("rte_ring_create", ENOMEM) ? NULL : rte_ring_create(__VA_ARGS__))
#define rte_ring_lookup(name)	(inject("rte_ring_lookup", ENOENT) ? NULL : rte_ring_lookup(name))
#define rte_mempool_lookup(name) \
	(inject("rte_mempool_lookup", ENOENT) ? NULL : rte_mempool_lookup(name))
#define rte_mbuf_dynfield_register(f) \
	(inject("rte_mbuf_dynfield_register", ENOMEM) ? -1 : rte_mbuf_dynfield_register(f))
#define rte_mbuf_dynfield_lookup(name, f) \
	(inject("rte_mbuf_dynfield_lookup", ENOENT) ? -1 : rte_mbuf_dynfield_lookup(name, f))
#define rte_mbuf_dynflag_register(f) \
	(inject("rte_mbuf_dynflag_register", ENOMEM) ? -1 : rte_mbuf_dynflag_register(f))
#define rte_pktmbuf_alloc(pool)	(inject("rte_pktmbuf_alloc", ENOMEM) ? NULL : rte_pktmbuf_alloc(pool))
#define rte_pktmbuf_alloc_bulk(pool, m, n) \
	(inject("rte_pktmbuf_alloc_bulk", ENOENT) ? -ENOENT : rte_pktmbuf_alloc_bulk(pool, m, n))
/* clang-format on */

#endif
