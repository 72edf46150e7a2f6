# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What the tests with a real FastClick share. To be sourced by bash. CTest sets, beside what
# tests/chain/lib.sh wants, NFMETA_FASTCLICK (prefix of FastClick) and NFMETA_CLICKPATH (folder
# with lib/nfmeta.uo).

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${NFMETA_FASTCLICK:?no FastClick: give cmake -DNFMETA_FASTCLICK=PREFIX}"
# shellcheck source-path=SCRIPTDIR source=../chain/lib.sh
. "$here/../chain/lib.sh"
# shellcheck disable=SC2034 # used by the tests
conf=$NFMETA_SOURCE/examples/fastclick/conf
: "${NFMETA_CLICKPATH:=$NFMETA_SOURCE/build/release/examples/fastclick}"
export CLICKPATH=$NFMETA_CLICKPATH
ctl=$work/ctl
cores=0
wait_nf=20
vdevs=()

# from PCAP-IN PCAP-OUT: port 0 reads the one, port 1 writes the other; what goes back: back.pcap
from() {
	vdevs=(--vdev "net_pcap0,rx_pcap=$1,tx_pcap=$work/back.pcap"
		--vdev "net_pcap1,tx_pcap=$2")
}

# start_click CONFIG [NAME=VALUE...]
start_click() {
	rm -f "$ctl"
	start click "$NFMETA_FASTCLICK/bin/click" --dpdk -l "$cores" --file-prefix "$prefix" --no-pci \
		--huge-dir "$NFMETA_HUGE_DIR" -m 128 --log-level error "${vdevs[@]}" -- \
		-u "$ctl" "$1" BUFFERS=16383 WAIT_NF="$wait_nf" "${@:2}"
}

ask() {
	"$here/ask.py" "$ctl" "$@"
}

# value HANDLER
value() {
	ask read "$1" || echo none
}

# until HANDLER VALUE
until_is() {
	ask until "$1" "$2" $((20 * slow)) && return
	fail "$1 is not $2"
	shows "$work/click.err"
}

# is WHAT HAS WANTED
is() {
	[ "$2" = "$3" ] || fail "$1 is $2, not $3"
}

# stop_click: ends it as a user does, and everything is given back
stop_click() {
	kill -TERM "${pid[click]}"
	expect_status click 0
	! grep -E 'error|were at NFs|does not leave' "$work/click.err" >&2 || fail "click complains"
	dpdk_cleanup "$prefix" "$NFMETA_HUGE_DIR" # FastClick leaves EAL's files
}

# no_padding PCAP OUT: what CheckIPHeader makes of it
no_padding() {
	"$here/no-padding.py" "$1" "$2"
}

packets() {
	tshark -r "$1" -T fields -e frame.number 2>/dev/null | wc -l
}
