#!/bin/sh
# Writes of 16 KiB at random that nobody syncs, in 10 s from the start, of a stripe and of a RAIDZ1, each of four volumes capped at $1
# operations/s (0: not), made anew for each of $2 rounds. A line for each: the kind, writes/s.
set -eu
cd /scratch
modprobe zfs
devices=
for i in 1 2 3 4; do
	truncate -s 6G "volume$i"
	devices="$devices $(losetup -f --show --direct-io=on "volume$i")"
done
cap() {
	for device in $devices; do
		for way in read write; do
			echo "$(cat "/sys/block/${device#/dev/}/dev") $1" >"/sys/fs/cgroup/blkio/blkio.throttle.${way}_iops_device"
		done
	done
}
round=0
while [ "$round" -lt "$2" ]; do
	for kind in stripe raidz; do
		# shellcheck disable=SC2086 # words; a stripe is a pool without a word for it
		zpool create -f -o ashift=12 -o cachefile=none -O recordsize=16K -O compression=off -O primarycache=metadata -O atime=off -m /mnt/pool pool ${kind#stripe} $devices
		mountpoint -q /mnt/pool
		cap "$1"
		fio --name=writes --directory=/mnt/pool --rw=randwrite --bs=16k --ioengine=libaio --direct=1 --iodepth=16 --size=1G --runtime=10 --time_based --output-format=terse --terse-version=3 |
			awk -F';' -v kind="$kind" '$1 == 3 { print kind, $49 }'
		cap 0
		zpool destroy pool
	done
	round=$((round + 1))
done
