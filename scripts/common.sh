# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What the scripts share. To be sourced by bash.

# shellcheck disable=SC2034 # used by the scripts
NFMETA_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
NFMETA_ME=$(basename "$0")

say() {
	printf '%s: %s\n' "$NFMETA_ME" "$*"
}

complain() {
	printf '%s: %s\n' "$NFMETA_ME" "$*" >&2
}

die() {
	complain "$*"
	exit 1
}

need_root() {
	[ "$(id -u)" -eq 0 ] || die "this needs root (packages, hugepages): run it as root or with sudo."
}

# on_exit FUNCTION [ARGUMENT...]
# Runs the function when the script ends, however it ends; last in, first out.
nfmeta_at_exit=()
on_exit() {
	nfmeta_at_exit=("$(printf '%q ' "$@")" "${nfmeta_at_exit[@]}")
	trap nfmeta_run_exit EXIT
}

nfmeta_run_exit() {
	local status=$? command
	# A child that was ended between fork and exec is here, too.
	[ "$BASHPID" = "$$" ] || exit "$status"
	trap '' INT TERM
	for command in "${nfmeta_at_exit[@]}"; do
		eval "$command" || true
	done
	exit "$status"
}

# run_id
# Prints a name that no other run on this machine has now. Used as the start of
# EAL file prefixes, so that what a run leaves behind can be told from others'.
run_id() {
	printf 'nfm-%d-%d\n' "$$" "$BASHPID"
}

# --- hugepages (2 MiB) -------------------------------------------------------

nfmeta_huge_sys=/sys/kernel/mm/hugepages/hugepages-2048kB
nfmeta_huge_added=0 # pages that this script added
nfmeta_huge_mounted= # directory that this script mounted

# Pages that are free and not promised to a mapping.
nfmeta_huge_free() {
	echo $(($(<"$nfmeta_huge_sys/free_hugepages") - $(<"$nfmeta_huge_sys/resv_hugepages")))
}

# nfmeta_huge_grow PAGES: asks for more pages until so many are free.
nfmeta_huge_grow() {
	local total free
	total=$(<"$nfmeta_huge_sys/nr_hugepages")
	free=$(nfmeta_huge_free)
	[ "$free" -ge "$1" ] && return 0
	local before=$nfmeta_huge_added
	nfmeta_huge_added=$((before + $1 - free)) # first: the script may be ended in between
	echo $((total + $1 - free)) 2>/dev/null >"$nfmeta_huge_sys/nr_hugepages"
	nfmeta_huge_added=$((before + $(<"$nfmeta_huge_sys/nr_hugepages") - total))
	[ "$(nfmeta_huge_free)" -ge "$1" ]
}

# Prints the first writable mount of hugetlbfs with 2 MiB pages.
nfmeta_huge_find_mount() {
	local dir type options _rest
	while read -r _rest dir type options _rest; do
		[ "$type" = hugetlbfs ] || continue
		dir=$(printf '%b' "$dir")
		case ,$options, in
		*,pagesize=2M,*) [ -w "$dir" ] && echo "$dir" && return 0 ;;
		esac
	done </proc/mounts
	return 1
}

# Removes the mounts of earlier runs that were killed.
nfmeta_huge_sweep() {
	local dir
	for dir in /run/nfmeta/huge-*; do
		if [ ! -d "$dir" ] || [ -d "/proc/${dir##*-}" ]; then
			continue
		fi
		umount "$dir" 2>/dev/null
		rmdir "$dir" 2>/dev/null
	done
	return 0
}

# hugepages_ensure MIB
# Makes sure that so many MiB of 2 MiB pages are free, and mounts a hugetlbfs of
# its own (or takes one that is there, where mounting is forbidden); sets
# NFMETA_HUGE_DIR to where. Fails with a sentence when that is not possible.
# Say "on_exit hugepages_restore" before: the script may be ended in between.
hugepages_ensure() {
	local mib=$1 pages=$((($1 + 1) / 2))

	if [ ! -r "$nfmeta_huge_sys/nr_hugepages" ]; then
		complain "this kernel has no 2 MiB hugepages ($nfmeta_huge_sys is missing)."
		return 1
	fi
	if ! nfmeta_huge_grow "$pages"; then
		# Memory may be there, but in pieces: free caches, compact, once more.
		{
			sync
			echo 3 >/proc/sys/vm/drop_caches
			echo 1 >/proc/sys/vm/compact_memory
		} 2>/dev/null
		if ! nfmeta_huge_grow "$pages"; then
			complain "wanted $mib MiB of free 2 MiB hugepages, got $(($(nfmeta_huge_free) * 2))" \
				"MiB: free some memory, or raise $nfmeta_huge_sys/nr_hugepages by hand" \
				"(in a container: on the host)."
			hugepages_restore
			return 1
		fi
	fi
	[ "$nfmeta_huge_added" -eq 0 ] || say "hugepages: $((nfmeta_huge_added * 2)) MiB added"

	nfmeta_huge_sweep
	NFMETA_HUGE_DIR=/run/nfmeta/huge-$$
	nfmeta_huge_mounted=$NFMETA_HUGE_DIR
	if ! mkdir -p "$NFMETA_HUGE_DIR" ||
		! mount -t hugetlbfs -o pagesize=2M,mode=0700 nfmeta "$NFMETA_HUGE_DIR" 2>/dev/null; then
		nfmeta_huge_mounted=
		rmdir "$NFMETA_HUGE_DIR" 2>/dev/null
		if ! NFMETA_HUGE_DIR=$(nfmeta_huge_find_mount); then
			complain "mounting a hugetlbfs under /run/nfmeta failed, and none with 2 MiB" \
				"pages is mounted (in a container: mount it from the host)."
			hugepages_restore
			return 1
		fi
	fi
	say "hugepages: $mib MiB free, at $NFMETA_HUGE_DIR"
	export NFMETA_HUGE_DIR
}

# hugepages_restore
# Gives back the pages that hugepages_ensure added and removes its mount. Pages
# that somebody else has added in the meantime stay.
hugepages_restore() {
	local total
	if [ -n "$nfmeta_huge_mounted" ]; then
		if umount "$nfmeta_huge_mounted" 2>/dev/null || ! mountpoint -q "$nfmeta_huge_mounted"; then
			rmdir "$nfmeta_huge_mounted"
			rmdir /run/nfmeta 2>/dev/null
		else
			complain "$nfmeta_huge_mounted is still in use and stays mounted."
		fi
		nfmeta_huge_mounted=
	fi
	if [ "$nfmeta_huge_added" -ne 0 ]; then
		total=$(($(<"$nfmeta_huge_sys/nr_hugepages") - nfmeta_huge_added))
		[ "$total" -ge 0 ] || total=0
		echo "$total" >"$nfmeta_huge_sys/nr_hugepages"
		say "hugepages: $((nfmeta_huge_added * 2)) MiB given back"
		nfmeta_huge_added=0
	fi
	return 0
}

# --- DPDK --------------------------------------------------------------------

# dpdk_cleanup PREFIX HUGEDIR
# Removes what the EAL processes of a file prefix left behind. Only when they
# have ended.
dpdk_cleanup() {
	local prefix=$1 hugedir=$2
	if [[ ! $prefix =~ ^[A-Za-z0-9_-][A-Za-z0-9_.-]*$ ]]; then
		complain "\"$prefix\" is not an EAL file prefix; nothing is removed."
		return 1
	fi
	[ -z "$hugedir" ] || rm -f -- "$hugedir/${prefix}map_"*
	rm -rf -- "/var/run/dpdk/$prefix"
}

# dpdk_cleanup_run RUN_ID HUGEDIR
# The same for every prefix RUN_ID or RUN_ID-something.
dpdk_cleanup_run() {
	local id=$1 hugedir=$2 path
	for path in "/var/run/dpdk/$id" "/var/run/dpdk/$id"-*; do
		[ -e "$path" ] && dpdk_cleanup "${path##*/}" "$hugedir"
	done
	for path in "$hugedir/${id}map_"* "$hugedir/$id"-*map_*; do
		[ -e "$path" ] && rm -f -- "$path"
	done
	return 0
}
