# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# What install and get-headers share, on top of scripts/common.sh: apt with a suite
# more than the machine's configuration names, from the mirror that it names. Sources
# and package lists are in a folder of their own that goes when the script ends; those
# of the machine stay as they are. To be sourced by bash.

# debian_release: sets debian_codename; only where the project knows Suricata's package.
debian_release() {
	local ID='' VERSION_ID='' VERSION_CODENAME='' PRETTY_NAME=''
	# shellcheck disable=SC1091 # there on every machine with systemd's or Debian's base
	[ ! -r /etc/os-release ] || . /etc/os-release
	debian_codename=$VERSION_CODENAME
	case $ID-$VERSION_ID in
	debian-12 | debian-13) command -v apt-get >/dev/null && return ;;
	esac
	die "this is ${PRETTY_NAME:-an unknown system}, not Debian 12 or 13: install Suricata 7.0.10" \
		"or 8.0 and its build dependencies by hand; the headers are a source tree of the same" \
		"version in which configure was run."
}

# apt_begin: makes the folder. apt's user reads it, too.
apt_begin() {
	apt_dir=$(mktemp -d)
	on_exit rm -rf "$apt_dir"
	chmod 755 "$apt_dir"
	mkdir -p "$apt_dir/sources" "$apt_dir/lists/partial" "$apt_dir/none"
}

# own_apt apt-get|apt-cache ARGUMENT...: with the sources in $apt_dir/sources. What it
# says is in $apt_dir/log, too, where apt_reason finds why it failed.
own_apt() {
	local program=$1
	shift
	DEBIAN_FRONTEND=noninteractive LC_ALL=C "$program" -q \
		-o Dir::Etc::sourcelist="$apt_dir/none/sources.list" \
		-o Dir::Etc::sourceparts="$apt_dir/sources" -o Dir::State::lists="$apt_dir/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# apt_reason: the first error of the last quiet_apt, else its first warning, on one line
apt_reason() {
	local reason
	reason=$(grep -m 1 '^E: ' "$apt_dir/log" || grep -m 1 '^W: ' "$apt_dir/log" || true)
	printf '%s\n' "${reason:-apt said nothing}"
}

quiet_apt() {
	own_apt "$@" >"$apt_dir/log" 2>&1
}

# apt_archives: every archive of the machine's configuration, "URI SUITE" a line.
apt_archives() {
	local lists=$apt_dir/none
	# Asks nobody: where apt would look for news.
	LC_ALL=C apt-get --print-uris update -o Dir::State::lists="$lists" \
		-o Debug::NoLocking=1 2>/dev/null |
		sed -nE "s|^'(.*)/dists/(.*)/(In)?Release'.*|\1 \2|p" | sort -u
}

# apt_mirror: sets debian_mirror to where the machine has its release from.
apt_mirror() {
	local uri suite other=''
	debian_mirror=
	while read -r uri suite; do
		case $suite in
		"$debian_codename") debian_mirror=$uri && return ;;
		*/* | *-*) ;;
		stable | oldstable) other=$uri ;;
		esac
	done < <(apt_archives)
	debian_mirror=$other
	[ -n "$debian_mirror" ] && return
	die "apt's sources (/etc/apt/sources.list, /etc/apt/sources.list.d) name no mirror of" \
		"$debian_codename: packages are taken from where the machine has Debian from."
}

# apt_suite TYPES URI SUITE: one more archive for own_apt
apt_suite() {
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	{
		printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main\n' "$1" "$2" "$3"
		[ ! -r "$keyring" ] || printf 'Signed-By: %s\n' "$keyring"
	} >"$apt_dir/sources/nfmeta-$((apt_suites++)).sources"
}
apt_suites=0

# package_version PACKAGE: empty unless it is installed
package_version() {
	# shellcheck disable=SC2016 # dpkg's variables
	{ dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$1" 2>/dev/null || true; } |
		sed -n 's/^.i[^ ]* *//p'
}
