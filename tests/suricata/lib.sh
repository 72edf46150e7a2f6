# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What the Suricata tests share; on top of what the chain tests share. To be sourced by
# bash. CTest sets, beside theirs:
#
#   NFMETA_SURICATA_PLUGIN   nfmeta-suricata.so
#   NFMETA_FEEDER            the upfront NF of these tests
#   NFMETA_SURICATA_PROGRAM  suricata

# shellcheck source-path=SCRIPTDIR source=../chain/lib.sh
. "$(dirname "$0")/../chain/lib.sh"

# shellcheck disable=SC2034 # used by the tests
here=$NFMETA_SOURCE/tests/suricata
gen=$here/gen.py
suricata=${NFMETA_SURICATA_PROGRAM:-suricata}
plugin=${NFMETA_SURICATA_PLUGIN:-$NFMETA_EXAMPLES/suricata/nfmeta-suricata.so}
feeder=${NFMETA_FEEDER:-$NFMETA_EXAMPLES/../tests/suricata/feeder}
# shellcheck disable=SC2034 # used by the tests
sample=$NFMETA_SOURCE/tests/data/sample.pcap
conf=$here/suricata.yaml
rules=$here/test.rules
sets=() # arguments of Suricata, in both runs
owner=  # of the folder it writes to, if not root

command -v "$suricata" >/dev/null || die "there is no \"$suricata\": run examples/suricata/install"
for path in "$plugin" "$feeder" "$splitter"; do
	[ -e "$path" ] || die "there is no $path: configure with -DNFMETA_SURICATA, and build"
done

suricata_common() {
	local name=$1
	rm -rf "${work:?}/$name"
	mkdir -p "$work/$name"
	[ -z "$owner" ] || chown "$owner" "$work/$name"
	common=("$suricata" -c "$conf" ${rules:+-S "$rules"} -l "$work/$name" -k all
		"${sets[@]}")
}

# file_run NAME FILE [argument...]: the reference; $work/NAME/eve.json
file_run() {
	local name=$1 file=$2
	shift 2
	suricata_common "$name"
	"${common[@]}" -r "$file" --runmode single "$@" >"$work/$name/out" 2>&1 && return
	fail "suricata -r $file: status $?"
	shows "$work/$name/out"
	return 1
}

# start_suricata NAME "key=value;..." [argument...]: at the link of $prefix
start_suricata() {
	local name=$1 args=$2
	shift 2
	suricata_common "$name"
	# What it says goes to stdout.
	# shellcheck disable=SC2016 # sh's own variables
	start "$name" sh -c 'exec "$0" "$@" >&2' "${common[@]}" \
		--set plugins.0="$plugin" --capture-plugin=nfmeta \
		--capture-plugin-args="file-prefix=$prefix;stats=$work/$name.json;$args" "$@"
}

start_feeder() {
	start feeder "$feeder" --file-prefix "$prefix" --json "$work/feeder.json" "$@" "${eal[@]}"
}

# How Suricata at the link is started by link_run.
link_args='link=ids'
at_link=()

# link_run NAME FILE QUEUES [splitter argument...]
# From end to end; $work/NAME/eve.json, .json of splitter and NAME, $work/out.pcap. All
# that holds always is looked at here.
link_run() {
	local name=$1 file=$2 queues=$3
	shift 3
	start_splitter --in "pcap:$file" --out "pcap:$work/out.pcap" --queues "$queues" \
		--flows "$work/flows.csv" "$@"
	start_suricata "$name" "$link_args" "${at_link[@]}"
	expect_status splitter 0
	expect_status "$name" 0
	counters_close
	expect splitter '.lost == 0 and .packets_in > 0 and .flow_state.queues_unheard == 0'
	no_complaints "$name"
	nothing_left
}

# all_back FILTER: of a splitter that a signal ended: every packet that the link took came
# back and went out, and FILTER of its report is true. (One burst may be at hand that the
# link did not take any more.) $through: packets that it took
all_back() {
	expect splitter '.lost == 0 and .ended_by == "a signal" and .dropped.stopped <= 32 and
		.packets_in == .packets_out + .dropped.stopped + .dropped.nf_died'
	expect splitter "$1"
	# shellcheck disable=SC2034 # used by the tests
	through=$(number splitter '.packets_in - .dropped.stopped')
}

# no_complaints NAME: Suricata said nothing that is an error or a warning
no_complaints() {
	if grep -E '(Error|Warning): ' "$work/$1.err" >"$work/complaints"; then
		fail "$1 complains"
		shows "$work/complaints"
	fi
}

# expect_peer_status NAME: it ended because its primary died
expect_peer_status() {
	expect_status "$1" 3
	grep -q "died" "$work/$1.err" || fail "$1 does not say that the primary died"
}

# same_out WHAT FILE [capdiff option...]: $work/out.pcap against FILE
same_out() {
	local what=$1 file=$2
	shift 2
	"$capdiff" -t "$@" "$file" "$work/out.pcap" >"$work/diff" && return
	fail "$what: what came out differs"
	shows "$work/diff"
}

# same_eve WHAT FILE-RUN LINK-RUN [compare option...]
same_eve() {
	local what=$1 ref=$2 link=$3
	shift 3
	if "$here/compare.py" "$@" "$work/$ref/eve.json" "$work/$link/eve.json" \
		>"$work/compare" 2>&1; then
		say "$what: $(tail -n 1 "$work/compare")"
	else
		fail "$what: Suricata saw something else"
		shows "$work/compare"
	fi
}

# eve NAME FILTER: what jq makes of the records of a run
eve() {
	jq -r "$2" "$work/$1/eve.json"
}

# eve_count NAME CONDITION: how many records are so
eve_count() {
	jq -c "select($2)" "$work/$1/eve.json" | wc -l
}

# equal WHAT GOT WANTED
equal() {
	[ "$2" = "$3" ] || fail "$1: $2, not $3"
}
