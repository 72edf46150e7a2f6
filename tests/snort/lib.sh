# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What the tests of the DAQ modules share; on top of what the chain tests share. To be
# sourced by bash, with the version of libdaq as the script's argument. CTest sets, beside
# theirs:
#
#   NFMETA_DAQ2_DIR, NFMETA_DAQ3_DIR   folders of daq_nfmeta.so; empty: not built
#   NFMETA_FEEDER                      an upfront NF that does what the splitter does not

version=${1:?usage: $0 2|3}
module_dir=NFMETA_DAQ${version}_DIR
if [ -z "${!module_dir:-}" ]; then
	if [ "$version" = 2 ]; then
		echo "NOT RUN: the module for libdaq 2 is not built: install libdaq-dev (scripts/setup)"
	else
		echo "NOT RUN: the module for libdaq 3 is not built: there is no libdaq >= 3" \
			"(pkg-config libdaq, or -DNFMETA_DAQ3=PREFIX)"
	fi
	exit 77
fi
# shellcheck source-path=SCRIPTDIR source=../chain/lib.sh
. "$(dirname "$0")/../chain/lib.sh"
module_dir=${!module_dir}
say "libdaq $version: $module_dir/daq_nfmeta.so"

host=$NFMETA_WORK/snort-host$version
# shellcheck disable=SC2034 # used by the tests
feeder=$NFMETA_FEEDER
# shellcheck disable=SC2034 # used by the tests
sample=$NFMETA_SOURCE/tests/data/sample.pcap

# start_host NAME argument...: a host at the link "ids" of $prefix
start_host() {
	local name=$1
	shift
	rm -f "$work/$name.stats"
	start "$name" "$host" --dir "$module_dir" --input ids --var "file_prefix=$prefix" \
		--var "stats=$work/$name.stats" --var wait=20 --json "$work/$name.json" "$@"
}

start_feeder() {
	start feeder "$feeder" --file-prefix "$prefix" --json "$work/feeder.json" "$@" "${eal[@]}"
}

# run WHAT FILE "splitter arguments" host-argument...: from end to end; everything comes
# back and everything is accounted for
run() {
	# shellcheck disable=SC2034 # used by the tests
	what=$1
	local file=$2 args=$3
	shift 3
	# shellcheck disable=SC2086 # words
	start_splitter --in "pcap:$file" --out "pcap:$work/out.pcap" $args
	start_host host "$@"
	expect_status host 0
	expect_status splitter 0
	counters_close
	nothing_left
	expect splitter '.lost == 0 and .packets_in > 0'
	expect host '.daq.outstanding == 0 and .late == 0 and .stray == 0 and .offsets_wrong == 0'
	cp "$work/host.stats" "$work/stats.json"
}

# same WHAT FILE FILE: the same packets
same() {
	"$capdiff" "${@:4}" "$2" "$3" >"$work/diff" && return
	fail "$1: packets differ"
	shows "$work/diff"
}
