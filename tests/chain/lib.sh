# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What the chain tests share. To be sourced by bash. CTest sets NFMETA_SOURCE,
# NFMETA_EXAMPLES (folder of the built programs) and NFMETA_WORK (to write to).

set -euo pipefail
: "${NFMETA_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NFMETA_EXAMPLES:=$NFMETA_SOURCE/build/release/examples}"
# shellcheck source=../../scripts/common.sh
. "$NFMETA_SOURCE/scripts/common.sh"

need_root
gen=$NFMETA_SOURCE/tests/chain/gen.py
splitter=$NFMETA_EXAMPLES/splitter
inspector=$NFMETA_EXAMPLES/inspector
# shellcheck disable=SC2034 # used by the tests
capdiff=$NFMETA_EXAMPLES/capdiff
prefix=${NFMETA_RUN_ID:-$(run_id)}-$NFMETA_ME-$$
work=${NFMETA_WORK:-${TMPDIR:-/tmp}}/$prefix
slow=${NFMETA_SLOW:-1} # sanitizers: waits are that much longer
failures=0
declare -A pid=() # of the programs that were started

mkdir -p "$work"
on_exit rm -rf "$work"
if [ -z "${NFMETA_HUGE_DIR:-}" ]; then
	on_exit hugepages_restore
	hugepages_ensure 256 || die "the chain tests need hugepages."
fi
eal=(-- --huge-dir "$NFMETA_HUGE_DIR")
# Without randomisation EAL's shared memory lies where a hole between libraries
# happens to be, and whether an NF has the same hole is luck: a place far from them.
[ "$slow" -eq 1 ] || eal+=(--base-virtaddr 0x7ea000000000)

chain_cleanup() {
	local name
	for name in "${!pid[@]}"; do
		kill -KILL "${pid[$name]}" 2>/dev/null || true
	done
	wait
	dpdk_cleanup "$prefix" "$NFMETA_HUGE_DIR"
}
on_exit chain_cleanup
trap 'exit 130' INT TERM

fail() {
	complain "FAIL: $*"
	failures=$((failures + 1))
}

# shows FILE: what a program said, for the log of a failed test
shows() {
	sed 's/^/    | /' "$1" >&2
}

finish() {
	[ "$failures" -eq 0 ] || die "$failures failed"
	say "all passed"
}

capture() {
	"$gen" "$1" "$work/$1.pcap"
}

# start NAME PROGRAM ARGUMENT...
# In the background; its output goes to $work/NAME.out and .err, its id to
# ${pid[NAME]}.
start() {
	local name=$1
	shift
	rm -f "$work/$name.json"
	: >"$work/$name.err"
	"$@" >"$work/$name.out" 2>"$work/$name.err" &
	pid[$name]=$!
}

start_splitter() {
	start splitter "$splitter" --file-prefix "$prefix" --json "$work/splitter.json" "$@" \
		"${eal[@]}"
}

# start_inspector QUEUE ARGUMENT...
start_inspector() {
	local q=$1
	shift
	start "inspector$q" "$inspector" --file-prefix "$prefix" --queue "$q" \
		--timeout $((20 * slow)) --json "$work/inspector$q.json" "$@"
}

# ended NAME: waits for it; its exit status is in $status
ended() {
	local i
	for ((i = 0; i < 600 * slow; i++)); do
		kill -0 "${pid[$1]}" 2>/dev/null || break
		sleep 0.05
	done
	if kill -0 "${pid[$1]}" 2>/dev/null; then
		fail "$1 does not end"
		shows "$work/$1.err"
		kill -KILL "${pid[$1]}" || true
	fi
	status=0
	wait "${pid[$1]}" 2>/dev/null || status=$?
	unset "pid[$1]"
}

# expect_status NAME STATUS
expect_status() {
	ended "$1"
	[ "$status" -eq "$2" ] && return
	fail "$1 ended with status $status, not $2"
	shows "$work/$1.err"
}

# number JSON FILTER
number() {
	jq -r "$2" "$work/$1.json"
}

# expect JSON FILTER: a filter of jq that has to give true
expect() {
	jq -e "$2" "$work/$1.json" >/dev/null 2>&1 && return
	fail "$1.json: not true: $2"
	[ ! -e "$work/$1.json" ] || jq -c . "$work/$1.json" >&2
}

counters_close() {
	expect splitter '.packets_in + .packets_injected == .packets_out + .packets_backward
		+ ([.dropped[]] | add) + .lost'
}

nothing_left() {
	local name path
	for name in "${!pid[@]}"; do
		fail "$name still runs"
	done
	for path in "$NFMETA_HUGE_DIR/${prefix}map_"* "/var/run/dpdk/$prefix"; do
		[ ! -e "$path" ] || fail "$path is left"
	done
}

# wait_for TEXT NAME: until the program has said it
wait_for() {
	local i
	for ((i = 0; i < 400 * slow; i++)); do
		! grep -q -- "$1" "$work/$2.err" || return 0
		sleep 0.05
	done
	fail "$2 does not say \"$1\""
	shows "$work/$2.err"
	return 1
}

# A run from end to end: chain CAPTURE QUEUES [splitter argument...]; the
# inspectors' arguments are in the array nf.
nf=(--mode audit)
chain() {
	local file=$1 queues=$2 q
	shift 2
	start_splitter --in "pcap:$file" --out "pcap:$work/out.pcap" --queues "$queues" "$@"
	for ((q = 0; q < queues; q++)); do
		start_inspector "$q" "${nf[@]}"
	done
	expect_status splitter 0
	for ((q = 0; q < queues; q++)); do
		expect_status "inspector$q" 0
	done
	counters_close
	nothing_left
}
