# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# Finds DPDK by pkg-config and defines the target nfmeta::dpdk: the compile
# flags that the inline functions in nfmeta's headers need, and no libraries.
# A program that calls DPDK by itself links the DPDK libraries it calls.
#
# Used by the build of the library and, installed beside nfmetaConfig.cmake, by
# the programs that use it. Sets nfmeta_dpdk_error to a sentence on failure.

set(NFMETA_DPDK_MIN 21.11) # the first that names mbuf flags RTE_MBUF_F_*
set(nfmeta_dpdk_error "")

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
	set(nfmeta_dpdk_error "nfmeta needs pkg-config to find DPDK.")
	return()
endif()
pkg_check_modules(NFMETA_DPDK QUIET libdpdk>=${NFMETA_DPDK_MIN})
if(NOT NFMETA_DPDK_FOUND)
	set(
		nfmeta_dpdk_error
		"nfmeta needs DPDK ${NFMETA_DPDK_MIN} or later: \"pkg-config libdpdk\" finds none (Debian: libdpdk-dev)."
	)
	return()
endif()

if(NOT TARGET nfmeta::dpdk)
	add_library(nfmeta::dpdk INTERFACE IMPORTED)
	target_include_directories(nfmeta::dpdk SYSTEM INTERFACE ${NFMETA_DPDK_INCLUDE_DIRS})
	# As one string: CMake would drop the second of two equal words.
	list(JOIN NFMETA_DPDK_CFLAGS_OTHER " " nfmeta_dpdk_flags)
	target_compile_options(nfmeta::dpdk INTERFACE "SHELL:${nfmeta_dpdk_flags}")
	unset(nfmeta_dpdk_flags)
endif()
