package advice

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"david/internal/mycnf"
	"david/internal/rules"
)

// Facts holds all that an audit knows. What is not seen stays empty.
type Facts struct {
	Flavour mycnf.Flavour
	Version mycnf.Version
	Live    bool // the variables are a running server's
	// Variables are the effective values by name: what SHOW GLOBAL VARIABLES gives, or see Effective.
	Variables map[string]string
	// Set are the settings somebody wrote, by name: in the file, or as far as the server tells where its
	// values come from. Nil: not seen.
	Set map[string]string
	// Lines of the option file, as the server takes them; nil: there is none, or it was not seen.
	Lines []mycnf.Line
	// Lost are the names of variables that were set on the running server and not persisted.
	Lost []string
	// Status are the server's counters since its start; nil: not seen.
	Status map[string]string
	// Known are all the names this very server takes, from the binary; nil: not seen.
	Known []string
	// Preloaded are the lines by which the option file has mysqld_safe load a library that makes fsync do
	// nothing.
	Preloaded []mycnf.Setting
	Machine   Machine
	Unseen    []string // what the caller could not see, and why
}

// Machine describes the hardware under the server. Sizes are in bytes, 0 where they are not seen.
type Machine struct {
	Memory   int64   // what the server may use: RAM, or its cgroup's limit where that is smaller
	RAM      int64   // of the whole machine
	CPUs     float64 // usable ones
	FreeDisk int64   // on the filesystem of the data
	Data     int64   // of tables and indexes; see DataSeen
	DataSeen bool
	Spinning bool // the disk under the data rotates
	// Available is what nobody uses of the memory of the running server's machine.
	Available int64
	WriteIOPS float64 // random writes/s of the disk, measured or told
	Pod       bool    // memory and CPUs are a container's limits
	// Unflushed tells what under the data leaves out what fsync asks for, and in the server's process; see
	// StorageSeen.
	Unflushed   []Unflushed
	Volatile    []string // disks under the data that say that they lose what was not flushed
	StorageSeen bool
}

// Unflushed is something that leaves out flushes, or may do so where it is not sure.
type Unflushed struct {
	Evidence string
	Sure     bool
}

// Need names something a rule cannot do without.
type Need string

// What rules need.
const (
	NeedMemory  Need = "memory of the server's machine (--memory gives it)"
	NeedRAM     Need = "whether the server runs in a container or a cgroup with less memory than the machine"
	NeedDisk    Need = "free disk under the data"
	NeedStatus  Need = "status counters of a running server"
	NeedStorage Need = "the storage under the data"
	NeedCPUs    Need = "CPUs of the server's machine (--cpus gives them)"
	NeedSet     Need = "which values were set, and where"
)

func needs() []Need {
	return []Need{NeedMemory, NeedCPUs, NeedRAM, NeedDisk, NeedStorage, NeedStatus, NeedSet}
}

func (in Facts) has(n Need) bool {
	switch n {
	case NeedMemory:
		return in.Machine.Memory > 0
	case NeedCPUs:
		return in.Machine.CPUs > 0
	case NeedRAM:
		return in.Machine.RAM > 0
	case NeedDisk:
		return in.Machine.FreeDisk > 0
	case NeedStorage:
		return in.Machine.StorageSeen
	case NeedStatus:
		return in.Status != nil
	}
	return in.Set != nil
}

func (in Facts) lacking(all []Need) (list []Need) {
	for _, n := range all {
		if !in.has(n) {
			list = append(list, n)
		}
	}
	return list
}

// absent lists the variables that the version has and that were not seen.
func (in Facts) absent(names []string) (list []string) {
	for _, name := range names {
		_, there := in.Variables[name]
		if _, known := mycnf.Lookup(name, in.Flavour, in.Version); known && !there {
			list = append(list, name)
		}
	}
	return list
}

// is tells whether a variable has one of the values, as the server compares them. One that was not seen has
// none.
func (in Facts) is(name string, values ...string) bool {
	got, ok := in.Variables[name]
	return ok && slices.ContainsFunc(values, func(v string) bool {
		if name == "log_bin" { // given a file's name it is ON, whatever the name
			return v == got
		}
		return mycnf.MatchValues(name, v, got) == mycnf.Same
	})
}

// size returns a variable's number; ok is false where it was not seen, or is no whole number below 2^63.
func (in Facts) size(name string) (n int64, ok bool) {
	n, err := mycnf.ParseSize(in.Variables[name])
	return n, err == nil
}

// sum adds up variables; those not seen count nothing.
func (in Facts) sum(names ...string) (total int64) {
	for _, name := range names {
		n, _ := in.size(name)
		total += n
	}
	return total
}

// says returns a variable with its value, and whether it is a default: "sync_binlog is 0 (not set: the
// default)".
func (in Facts) says(name string) string {
	text := fmt.Sprintf("%s is %s", name, in.shown(name))
	if _, set := in.Set[name]; in.Set == nil || set {
		return text
	}
	if mycnf.MatchValues(name, Defaults(in.Flavour, in.Version)[name], in.Variables[name]) == mycnf.Same {
		return text + " (not set: the default)"
	}
	return text + " (not set)"
}

// shown returns a variable's value as people write it.
func (in Facts) shown(name string) string {
	entry, _ := mycnf.Lookup(name, in.Flavour, in.Version)
	if n, ok := in.size(name); ok && entry.Kind == mycnf.KindSize {
		return bytesText(n)
	}
	return cmp.Or(in.Variables[name], empty)
}

// empty stands for a value without letters.
const empty = "empty"

// bytesText returns a size with its unit: "96 MiB".
func bytesText(n int64) string {
	const unit = 1024
	v, i := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for v >= unit && i < len(units)-1 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.4g %s", v, units[i])
}

// float returns a variable's number; 0 where it was not seen or is none.
func (in Facts) float(name string) float64 { return number(in.Variables[name]) }

// counter returns a status counter; 0 where the server has none of that name.
func (in Facts) counter(name string) float64 { return number(in.Status[name]) }

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// hours returns a number of seconds as hours or, where they are few, as it is.
func hours(seconds int64) string {
	if seconds < 3600 {
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%.3g h", float64(seconds)/3600)
}

// line returns a setting as a my.cnf has it.
func line(name, value string) string { return name + "=" + value }

// problem returns what david's sizing rules are asked. A disk that is not seen is taken for a large one.
func (in Facts) problem() rules.Problem {
	disk := in.Machine.FreeDisk
	if disk == 0 {
		disk = math.MaxInt64
	}
	p := rules.Problem{Flavour: in.Flavour, Version: in.Version, CPUs: in.Machine.CPUs, Memory: in.Machine.Memory, FreeDisk: disk,
		Rotational: in.Machine.Spinning, WriteIOPS: in.Machine.WriteIOPS}
	if in.Machine.DataSeen {
		p.Data = max(1, in.Machine.Data)
	}
	p.PoolChunk, _ = in.size("innodb_buffer_pool_chunk_size")
	p.PoolInstances, _ = in.size("innodb_buffer_pool_instances")
	return p
}

// sized returns the sizing rules' setting for a variable; ok is false where they have none.
func (in Facts) sized(name string) (s mycnf.Setting, ok bool) {
	for _, set := range rules.Sizing(in.problem()) {
		for _, s := range set.Settings {
			if s.Name == name {
				return s, true
			}
		}
	}
	return s, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
