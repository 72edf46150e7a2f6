# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
#
# Another Debian in a folder, and commands in it. What is mounted in the folder is so
# only for the commands in it. To be sourced by bash, after common.sh; the script that
# does so has set
#   root      the folder
#   suite     the release that it has, or gets
#   packages  what is installed in it
# and may define install_more, which runs when these are installed.

# shellcheck source-path=SCRIPTDIR source=../examples/suricata/apt.sh
. "$NFMETA_ROOT/examples/suricata/apt.sh"

debian_done=etc/nfmeta-folder # in the folder; comes last: it is whole

# --- commands that end with this script --------------------------------------

debian_child=
debian_stop() {
	[ -n "$debian_child" ] || return 0
	{
		kill -KILL -- "-$debian_child" || true
		wait
	} 2>/dev/null
}

# run COMMAND...: a signal ends this script at once, and the command with it; so does
# the end of this script, if it is killed.
run() {
	local status=0
	set -m
	setpriv --pdeathsig KILL -- "$@" 9<&- </dev/null &
	debian_child=$!
	set +m
	wait "$debian_child" || status=$?
	debian_child=
	return "$status"
}

# alone COMMAND...: with mounts and process ids of its own: none survives it
alone() {
	run unshare --mount --pid --fork --kill-child "$@"
}

# inside COMMAND...: in the folder $root, the project read-only at /src
inside() {
	# shellcheck disable=SC2016,SC2154 # the inner shell's variables; root: who sources this
	alone sh -ec 'root=$1 project=$2 huge=$3
		shift 3
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=0755 nfmeta "$root/run"
		mount -o bind,ro "$project" "$root/src"
		if [ -n "$huge" ]; then
			mkdir -p "$root$huge"
			mount --bind "$huge" "$root$huge"
		fi
		# Not chroot alone: unshare wants / to be a mount, and paths in /proc are to be
		# those of inside.
		cd "$root"
		pivot_root . .
		umount -l .
		exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 \
			NFMETA_HUGE_DIR="$huge" "$@"' sh "$root" "$NFMETA_ROOT" "${NFMETA_HUGE_DIR:-}" "$@"
}

debian_log=$(mktemp)
on_exit rm -f "$debian_log"
on_exit debian_stop
# quietly COMMAND...: what it says is shown if it fails
quietly() {
	"$@" >"$debian_log" 2>&1 && return
	tail -n 20 "$debian_log" >&2
	return 1
}

# --- the folder --------------------------------------------------------------

install_more() {
	:
}

debian_install() {
	# What the machine needs to reach its mirror, the folder needs.
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Force|Retries)' \
		>"$root/etc/apt/apt.conf.d/50nfmeta" || true
	quietly inside apt-get -q update || die "apt-get update fails in $root."
	# shellcheck disable=SC2154 # packages: who sources this
	quietly inside apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install \
		"${packages[@]}" || die "installing fails in $root."
	install_more
}

debian_make() {
	local whole=$root
	if ! command -v debootstrap >/dev/null; then
		say "installing debootstrap"
		quietly apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends \
			install debootstrap || die "debootstrap cannot be installed: apt-get install debootstrap."
	fi
	debian_codename=
	# shellcheck disable=SC1091 # where there is none, apt's sources name the release
	[ ! -r /etc/os-release ] || debian_codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt_begin
	apt_mirror
	root=$root.part # what an earlier run was killed over goes
	rm -rf --one-file-system "$root"
	on_exit rm -rf --one-file-system "$root"
	on_exit debian_stop # before that
	# shellcheck disable=SC2154,SC2031 # suite: who sources this
	say "Debian $suite into $whole, some minutes"
	# shellcheck disable=SC2031 # no subshell
	quietly alone debootstrap --variant=minbase "$suite" "$root" "$debian_mirror" ||
		die "debootstrap $suite from $debian_mirror fails."
	mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/nfmeta" # faster; nothing here is precious
	printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' \
		'path-exclude=/usr/share/locale/*' >>"$root/etc/dpkg/dpkg.cfg.d/nfmeta"
	echo 'Acquire::Languages "none";' >"$root/etc/apt/apt.conf.d/51nfmeta"
	mkdir -p "$root/src" "$root/build"
	debian_install
	inside apt-get clean
	echo "${packages[@]}" >"$root/$debian_done"
	rmdir "$whole" 2>/dev/null || true
	mv -T "$root" "$whole"
	root=$whole
}

# debian_folder: makes $root what it is to be, or finds it so
debian_folder() {
	mkdir -p "$(dirname "$root")" || die "$(dirname "$root") cannot be made."
	root=$(cd "$(dirname "$root")" && pwd)/$(basename "$root")
	if [ -e "$root" ] && [ ! -e "$root/$debian_done" ] && [ -n "$(ls -A "$root" 2>/dev/null || echo file)" ]; then
		die "$root is there and was not made by this script: remove it, or name another folder."
	fi
	exec 9<"$(dirname "$root")"
	flock -n 9 || die "another run is at work in $(dirname "$root")."
	[ -e "$root/$debian_done" ] || debian_make
	[ "$(<"$root/$debian_done")" = "${packages[*]}" ] && return
	debian_install
	echo "${packages[@]}" >"$root/$debian_done"
}
