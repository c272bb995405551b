package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Effect says how far a setting can matter to a database on this machine.
type Effect string

// The effects, the greatest first.
const (
	Some   Effect = "some"
	Little Effect = "little"
	None   Effect = "none"
	Absent Effect = "absent" // this kernel has no such setting, or hides it
)

// throughCache is where the page cache's settings are a database's all the same.
const throughCache = "MySQL 8.0 and 5.7 default to fsync, which goes through the page cache: set innodb_flush_method=O_DIRECT first"

// pastCache is why they are not.
const pastCache = "with O_DIRECT, the default of MySQL 8.4+ and MariaDB 10.6+, the data files never wait in the page cache, and the logs are flushed at each commit; " + throughCache

func some(why string) func(Machine) (Effect, string) {
	return func(Machine) (Effect, string) { return Some, why }
}

func little(why string) func(Machine) (Effect, string) {
	return func(Machine) (Effect, string) { return Little, why }
}

// swap is the condition of vm.swappiness.
func swap(m Machine) (Effect, string) {
	if m.Swap == 0 {
		return None, "there is no swap"
	}
	if _, err := os.Stat(filepath.Join(m.Root, "sys/fs/cgroup/memory/memory.swappiness")); err == nil {
		return Little, "each group of cgroup v1 has a memory.swappiness of its own, copied when it was made"
	}
	return Some, "memory of a server can be swapped out in favour of cached files"
}

// dirty is the condition of a ratio whose place another setting takes.
func dirty(name, path string) func(Machine) (Effect, string) {
	return func(m Machine) (Effect, string) {
		if m.number(path) != 0 {
			return None, name + " is set, and counts in its place"
		}
		return Little, pastCache
	}
}

// dirtyBytes keeps a ratio from being set where that drops what took its place, which setting it back does
// not bring back.
func dirtyBytes(name, path string) func(Machine, string) error {
	return func(m Machine, _ string) error {
		if n := m.number(path); n != 0 {
			return fmt.Errorf("%s is %d and counts instead: setting the ratio would drop it", name, n)
		}
		return nil
	}
}

// nodes is the condition of NUMA balancing.
func nodes(m Machine) (Effect, string) {
	list, err := filepath.Glob(filepath.Join(m.Root, "sys/devices/system/node/node[0-9]*"))
	if err != nil || len(list) < 2 {
		return None, "there is one NUMA node"
	}
	return Some, fmt.Sprintf("there are %d NUMA nodes", len(list))
}

// inUse is the condition of a limit: how much of it is taken.
func inUse(what, taken, limit string) func(Machine) (Effect, string) {
	return func(m Machine) (Effect, string) {
		n, most := m.number(taken), m.number(limit)
		effect := Little
		if n > most/2 {
			effect = Some
		}
		return effect, fmt.Sprintf("it is a limit: %d of %d %s are taken", n, most, what)
	}
}

// used keeps a limit from being set near what is taken of it.
func used(taken, what string) func(Machine, string) error {
	return func(m Machine, value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if have := m.number(taken); err == nil && n/2 < have {
			return fmt.Errorf("%d %s are taken by now: give %d or more", have, what, 2*have)
		}
		return nil
	}
}

// drops counts the packets that were dropped since the machine started for a queue that was full: the second
// column, in hexadecimal, a line a CPU.
func (m Machine) drops() (sum uint64) {
	for line := range strings.Lines(m.text("proc/net/softnet_stat")) {
		if fields := strings.Fields(line); len(fields) > 1 {
			if n, err := strconv.ParseUint(fields[1], 16, 32); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// dropped is the condition of net.core.netdev_max_backlog.
func dropped(m Machine) (Effect, string) {
	if n := m.drops(); n > 0 {
		return Some, fmt.Sprintf("%d packets were dropped since the machine started, as the queue was full", n)
	}
	return Little, "no packet was dropped since the machine started, as the queue never was full"
}

// syncookies is the condition of net.ipv4.tcp_max_syn_backlog.
func syncookies(m Machine) (Effect, string) {
	if m.number("proc/sys/net/ipv4/tcp_syncookies") != 0 {
		return None, "with SYN cookies (net.ipv4.tcp_syncookies), which are on, the kernel does not look at it"
	}
	return Little, "it bounds connections that are half open; those by the unix socket never are"
}

// stacked tells whether a block device only hands I/O on to others.
func stacked(disk string) bool {
	return slices.ContainsFunc([]string{"loop", "dm-", "md", "drbd", "zram", "nbd"}, func(p string) bool { return strings.HasPrefix(disk, p) })
}

// under names what a block device hands I/O on to, down to the disks.
func (m Machine) under(disk string) string {
	var names []string
	for todo := []string{disk}; len(todo) > 0; todo = todo[1:] {
		list, err := os.ReadDir(filepath.Join(m.Root, "sys/block", todo[0], "slaves"))
		if err != nil {
			list = nil // a partition, or a kernel that hides it
		}
		for _, e := range list {
			todo = append(todo, e.Name())
		}
		if len(list) == 0 && todo[0] != disk && !slices.Contains(names, todo[0]) {
			names = append(names, todo[0])
		}
	}
	if len(names) == 0 {
		return "other devices"
	}
	return strings.Join(names, ", ")
}

// schedulers lists what the kernel offers for the data's disk.
func (m Machine) schedulers(disk string) []string {
	return strings.FieldsFunc(m.text(fmt.Sprintf("sys/block/%s/queue/scheduler", disk)), func(r rune) bool { return strings.ContainsRune("[] \n", r) })
}

// scheduler is its condition.
func scheduler(m Machine) (Effect, string) {
	switch {
	case stacked(m.Disk):
		return None, fmt.Sprintf("%s lies on %s, whose schedulers count; look at: lsblk -s /dev/%[1]s", m.Disk, m.under(m.Disk))
	case len(m.schedulers(m.Disk)) < 2:
		return None, "the kernel offers nothing else for " + m.Disk
	case m.virtual():
		return Little, m.Disk + " is a virtual disk: the host orders the I/O once more"
	}
	return Some, "it orders the I/O of " + m.Disk
}

// offered keeps to what the kernel has.
func offered(m Machine, value string) error {
	if list := m.schedulers(m.Disk); !slices.Contains(list, value) {
		return fmt.Errorf("the kernel offers %s for %s", strings.Join(list, ", "), m.Disk)
	}
	return nil
}

// simpler wants a scheduler for servers in the place of one for desktops.
func simpler(m Machine, now string) string {
	if now != "bfq" && now != "cfq" {
		return ""
	}
	want := "none"
	if !m.virtual() && m.text(fmt.Sprintf("sys/block/%s/queue/rotational", m.Disk)) == "1" {
		want = "mq-deadline"
	}
	if offered(m, want) != nil {
		return ""
	}
	return want
}

// above wants a number that is not above most.
func above(most uint64) func(Machine, string) string {
	return func(_ Machine, now string) string {
		if n, err := strconv.ParseUint(now, 10, 64); err != nil || n <= most {
			return ""
		}
		return strconv.FormatUint(most, 10)
	}
}

// below wants a number that is not below least.
func below(least uint64) func(Machine, string) string {
	return func(_ Machine, now string) string {
		if n, err := strconv.ParseUint(now, 10, 64); err != nil || n >= least {
			return ""
		}
		return strconv.FormatUint(least, 10)
	}
}

// instead wants one word for another.
func instead(bad, good string) func(Machine, string) string {
	return func(_ Machine, now string) string {
		if now != bad {
			return ""
		}
		return good
	}
}

// scarce tells of a limit that more than half of it is taken.
func scarce(now, taken uint64) bool { return taken > now/2 }

// raised wants least for a limit that is too low, doubled until it is twice what is taken, and so above what
// the limit is; nothing where that would be above most. A limit is low where it is below least or scarce.
func raised(low func(now, taken uint64) bool, file string, least, most uint64) func(Machine, string) string {
	return func(m Machine, text string) string {
		taken := m.number(file)
		now, err := strconv.ParseUint(text, 10, 64)
		if err != nil || !low(now, taken) {
			return ""
		}
		value := least
		for value/2 < taken {
			if value > most/2 {
				return ""
			}
			value *= 2
		}
		return strconv.FormatUint(value, 10)
	}
}

// whereDropped wants a queue that is not below least where packets were dropped.
func whereDropped(least uint64) func(Machine, string) string {
	longer := below(least)
	return func(m Machine, now string) string {
		if m.drops() == 0 {
			return ""
		}
		return longer(m, now)
	}
}
