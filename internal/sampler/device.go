package sampler

import "david/internal/host"

// BlockDevice names the block device a folder lies on as /sys/block and /proc/diskstats list it, "vda", "loop0": of a
// partition the whole disk. The error says why it cannot be told.
func BlockDevice(dir string) (string, error) {
	return host.DiskUnder(dir)
}
