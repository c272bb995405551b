// Package rules has what is known of configurations before anything is measured: david's sizing rules, what
// others would configure (Baselines), names across versions, advice as others print it, the memory that a
// server takes, ceilings, and what may be proposed for a running server. It is pure. Each setting carries its
// reason and the source of the rule.
package rules

import (
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
)

// Problem holds what the rules know. Sizes are in bytes.
type Problem struct {
	Flavour    mycnf.Flavour
	Version    mycnf.Version
	CPUs       float64 // usable ones; a cgroup's quota can make it a fraction
	Memory     int64   // what the server may use
	FreeDisk   int64   // on the filesystem of the data
	Rotational bool
	WriteIOPS  float64 // 16 KiB random writes/s as measured; 0 where they were not
	PageSize   int64   // of the data the control runs on
	Threads    int     // the most the workload uses
	Tables     int
	// Node is the memory of the machine where Memory is a cap on the server, which need not know of it; 0: no
	// cap.
	Node int64
	Seed uint64 // of the random baseline
	// Data are the tables and indexes of the server that is sized; 0: not known, or a load's that stand in
	// for others.
	Data          int64
	Connections   int   // how many may connect; 0: as many as servers allow by default, and the workload's threads
	PerConnection int64 // what one may take; 0: a thread stack and the default session buffers
	LogBuffer     int64 // the redo log's buffer is no smaller; 0: the rules' own
	// PoolChunk and PoolInstances are what the server makes its pool of, where that is not the rules' to say; 0: the
	// servers' default chunk, and as many instances as the rules set.
	PoolChunk     int64
	PoolInstances int64
	// Sandbox tells that nobody but the workload connects: where memory is small, the rules then take
	// connections and the performance schema for it. The users of a server that runs would miss them.
	Sandbox bool
}

// RuleSet groups rules that belong together. PageSize is set where the data has to be initialised for them.
type RuleSet struct {
	Name     string // "memory"
	Title    string
	PageSize int64
	Settings []mycnf.Setting
}

// Control returns the arm everything is compared with: the server's defaults, made as durable as every arm
// has to be.
func Control(flavour mycnf.Flavour) result.Arm {
	s, title := normalise(flavour), "the server's defaults"
	if len(s) > 0 {
		title += ", with the binary log on and synced"
	}
	return result.Arm{Name: "control", Title: title, Changes: s, Settings: s}
}

// normalise returns what makes a flavour's defaults as durable as MySQL's: MariaDB keeps no binary log by
// default, and does not sync the one it is told to keep.
func normalise(flavour mycnf.Flavour) []mycnf.Setting {
	if flavour != mycnf.MariaDB {
		return nil
	}
	const why = "the durability lock: MariaDB's default would lose or not keep what MySQL keeps, so both run alike"
	return []mycnf.Setting{
		{Name: "log_bin", Value: "binlog", Group: "durability", Reason: why, Source: "MariaDB manual, Binary Log"},
		{Name: "sync_binlog", Value: "1", Group: "durability", Reason: why, Source: "MariaDB manual, sync_binlog"},
	}
}

// Beside returns Control where it is compared with other servers: a MariaDB then also keeps in its binary log
// what MySQL does by default, every change as rows, those of a replica too, and has its transactions see what
// MySQL's do, which it does by default up to 11.5. Arms that keep less, or lock otherwise, get no verdict.
func Beside(flavour mycnf.Flavour) result.Arm {
	arm := Control(flavour)
	if flavour != mycnf.MariaDB {
		return arm
	}
	const why = "the durability lock: MySQL's default, so that the binary logs of both flavours hold the same"
	s := append(arm.Settings,
		mycnf.Setting{Name: "binlog_format", Value: "ROW", Group: "durability", Reason: why, Source: "MariaDB manual, binlog_format"},
		mycnf.Setting{Name: "log_slave_updates", Value: "ON", Group: "durability", Reason: why, Source: "MariaDB manual, log_slave_updates"},
		mycnf.Setting{Name: "loose_innodb_snapshot_isolation", Value: "OFF", Group: "durability", // not in the first releases of 10.11
			Reason: "the durability lock: MySQL's REPEATABLE READ, so that the same transactions fail", Source: "MariaDB manual, innodb_snapshot_isolation"})
	return result.Arm{Name: arm.Name, Title: "the server's defaults, with the binary log on, synced, and holding what MySQL's does", Changes: s, Settings: s}
}

// Merge adds settings to a configuration; a later value of the same variable replaces the earlier one in its
// place. A bare skip_log_bin is a value of log_bin.
func Merge(base, more []mycnf.Setting) []mycnf.Setting {
	merged := append([]mycnf.Setting{}, base...)
	at := map[string]int{}
	for i, s := range merged {
		at[variable(s)] = i
	}
	for _, s := range more {
		if i, ok := at[variable(s)]; ok {
			merged[i] = s
			continue
		}
		at[variable(s)] = len(merged)
		merged = append(merged, s)
	}
	return merged
}

func variable(s mycnf.Setting) string { return strings.TrimPrefix(s.Name, "skip_") }

// On returns the problem as it was on the machine of a plan on record: what is measured of a disk is another
// figure each time.
func (p Problem) On(m result.TuneMachine) Problem {
	p.CPUs, p.Memory, p.FreeDisk, p.Rotational, p.WriteIOPS, p.Node = m.CPUs, m.Memory, m.FreeDisk, m.Rotational, m.WriteIOPS, m.Node
	return p
}
