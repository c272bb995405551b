
# Without --apply it only checks and says what it would do.
apply=no
case "${1:-}" in
--apply) apply=yes ;;
'') ;;
*)
	echo "usage: $0 [--apply]" >&2
	exit 2
	;;
esac

complaints=0
complain() {
	printf 'node-prep: %s\n' "$1" >&2
	complaints=$((complaints + 1))
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# check_empty complains of a disk that has a byte which is not zero, anywhere: data need no signature that a tool knows.
check_empty() {
	if ! bytes=$(blockdev --getsize64 "$1"); then
		complain "$1 does not tell its size"
	elif [ "$bytes" -lt 67108864 ]; then
		complain "$1 is smaller than 64 MiB, which is too small for a pool"
	else
		echo "node-prep: reading all $((bytes / 1048576)) MiB of $1, to see that nothing is on it: this takes minutes, or hours on a large or slow disk" >&2
		cmp -s -n "$bytes" "$1" /dev/zero ||
			complain "$1 is not empty, or cannot be read: not all of its $bytes bytes are zero. If nothing on it is needed, empty it yourself: blkdiscard -z $1"
	fi
}

# check_disk complains of whatever says that a disk is in use, or holds something.
check_disk() {
	disk=$1
	before=$complaints
	if [ ! -b "$disk" ]; then
		complain "$disk is no block device"
		return
	fi
	real=$(readlink -f "$disk")
	name=${real##*/}
	for other in $seen; do
		[ "$other" != "$real" ] || complain "$disk is named twice"
	done
	seen="$seen $real"
	case "$(lsblk -dno TYPE "$real")" in
	disk | mpath | loop) ;;
	*) complain "$disk is no whole disk" ;;
	esac
	[ "$(lsblk -dno RO "$real" | tr -d ' ')" = 0 ] || complain "$disk is read-only"
	[ "$(lsblk -no NAME "$real" | wc -l)" -eq 1 ] || complain "$disk has partitions, or something is built on it: see lsblk $disk"
	[ -z "$(ls "/sys/class/block/$name/holders" 2>/dev/null)" ] || complain "$disk is in use: see /sys/class/block/$name/holders"
	[ -z "$(lsblk -no MOUNTPOINT "$real" | tr -d ' \n')" ] || complain "$disk is mounted, or is swap"
	while read -r source _; do
		case "$source" in
		/dev/*) [ "$(readlink -f "$source")" != "$real" ] || complain "$disk is mounted, or is swap" ;;
		esac
	done <<-END
		$(cat /proc/mounts /proc/swaps)
	END
	if ! signatures=$(wipefs -n "$real" 2>&1); then
		complain "$disk cannot be looked at: $signatures"
	elif [ -n "$signatures" ]; then
		complain "$disk has a partition table or a filesystem: see wipefs -n $disk"
	fi
	found=0
	blkid -p "$real" >/dev/null 2>&1 || found=$?
	[ "$found" -eq 2 ] || complain "$disk holds something that blkid knows, or cannot be read: see blkid -p $disk"
	# What was refused already needs no long reading.
	[ "$complaints" -ne "$before" ] || check_empty "$disk"
}

[ "$(id -u)" -eq 0 ] || complain "must be run as root"
for tool in lsblk blkid wipefs blockdev readlink cmp; do
	have "$tool" || complain "$tool is missing: install util-linux, coreutils and diffutils"
done
if ! have zpool || ! have zfs; then
	complain "ZFS is missing: install it (Debian, Ubuntu: zfsutils-linux)"
elif [ ! -e /sys/module/zfs ]; then
	complain "the kernel module is not loaded: modprobe zfs"
elif zpool list -H -o name "$pool" >/dev/null 2>&1; then
	complain "there is a pool $pool already: nothing is done to it"
fi
if [ "$complaints" -eq 0 ] || have lsblk; then
	seen=
	for disk in $disks; do
		check_disk "$disk"
	done
fi
if [ "$complaints" -ne 0 ]; then
	echo "node-prep: nothing was changed" >&2
	exit 1
fi

raid=
[ "$layout" = stripe ] || raid=$layout
if [ "$apply" = no ]; then
	echo "would make the pool $pool ($layout) of $disks, the datasets $pool/mysql and $pool/snapshots, and label the node; --apply does it"
	exit 0
fi

# Unquoted on purpose: one word for each disk, none for no raid. Without -f, zpool refuses what is in use once more.
# shellcheck disable=SC2086
zpool create -o ashift=12 -O mountpoint=none -O atime=off -O compression=lz4 "$pool" $raid $disks
zfs create -o recordsize=16k -o primarycache=metadata -o compression=lz4 -o atime=off "$pool/mysql"
zfs create "$pool/snapshots"
zpool status "$pool"

if [ -n "$node" ] && have kubectl && kubectl label node "$node" "$label"; then
	exit 0
fi
echo "now label the node, where kubectl reaches the cluster: kubectl label node ${node:-NODE} $label"
