// Package spec is the declarative description of an experiment: a YAML file naming arms, workloads and how
// long to run them, and the studies that are shipped with david in that form.
//
// Parse reads a file strictly and refuses what could never run; a Spec built from flags starts from Default
// and is held to the same rules by Checked. Workloads, Design, CapsOf and Settings give what the engine
// needs; Trials what a dry run shows. spec runs nothing and knows no server.
package spec

import (
	"math"
	"path/filepath"
	"time"

	"david/internal/mycnf"
	"david/internal/result"
)

// Version is the version of the file format. Another one is refused.
const Version = 1

// Spec describes one experiment: arms x workloads x threads, in blocks.
type Spec struct {
	Version int    `yaml:"version" json:"version"`
	Title   string `yaml:"title" json:"title"`
	Server  string `yaml:"server" json:"server"`   // auto, mysql, mariadb, mysql:9.7, or a path
	Control string `yaml:"control" json:"control"` // the arm the others are compared with
	// CrossFlavour allows arms on servers of different flavours.
	CrossFlavour bool   `yaml:"cross_flavour" json:"cross_flavour"`
	Arms         []Arm  `yaml:"arms" json:"arms"`
	Loads        []Load `yaml:"workloads" json:"workloads"`

	Time   Duration `yaml:"time" json:"time"`     // measured time of a trial
	Warmup Duration `yaml:"warmup" json:"warmup"` // before it, not measured
	// Blocks to run; 0: until Precision is reached or Budget is used up.
	Blocks    int      `yaml:"blocks" json:"blocks"`
	Precision Share    `yaml:"precision" json:"precision"`
	Budget    Duration `yaml:"budget" json:"budget"`

	Seed      uint64 `yaml:"seed" json:"seed"` // of the order within blocks; 0: to be drawn and recorded by who runs it
	Steady    bool   `yaml:"steady" json:"steady"`
	SkipNoops bool   `yaml:"skip_noops" json:"skip_noops"`
	Caps      Caps   `yaml:"caps" json:"caps"` // on the server of every arm
}

// Arm is one configuration: the server's defaults, then the option file, then Set, then the list of the
// server's flavour.
type Arm struct {
	Name   string `yaml:"name" json:"name"`
	Title  string `yaml:"title" json:"title"`
	Cnf    string `yaml:"cnf" json:"cnf"`       // an option file, relative to the spec's folder
	Server string `yaml:"server" json:"server"` // another one than the experiment's
	Set    Sets   `yaml:"set" json:"set"`
	// MySQL and MariaDB are set on servers of that flavour only; Percona Server takes MySQL's.
	MySQL   Sets `yaml:"mysql" json:"mysql"`
	MariaDB Sets `yaml:"mariadb" json:"mariadb"`
	Caps    Caps `yaml:"caps" json:"caps"` // each replaces the experiment's cap of that name
	// Unsafe says that the arm gives up durability on purpose: it is measured, and has no verdict.
	Unsafe bool `yaml:"unsafe" json:"unsafe"`
}

// Load is a workload under one or more numbers of threads.
type Load struct {
	Name      string  `yaml:"name" json:"name"`
	Tables    int     `yaml:"tables" json:"tables"`
	TableSize int     `yaml:"table_size" json:"table_size"` // rows per table
	Threads   Threads `yaml:"threads" json:"threads"`
	RandType  string  `yaml:"rand_type" json:"rand_type"`
	Rate      float64 `yaml:"rate" json:"rate"` // transactions/s that arrive; 0: a closed loop
}

// Caps are limits put on a server; 0 means none.
type Caps struct {
	CPUs      float64 `yaml:"cpus" json:"cpus"`
	Memory    Size    `yaml:"memory" json:"memory"`
	IOPS      int64   `yaml:"iops" json:"iops"`           // operations/s, reads and writes each
	Bandwidth Size    `yaml:"bandwidth" json:"bandwidth"` // bytes/s, reads and writes each
}

// database is the schema of the workloads, sysbench's own default.
const database = "sbtest"

// Default is a spec without arms and workloads, every other key at its default. Blocks is left to Checked, as
// it depends on what else is given.
func Default() Spec {
	return Spec{Version: Version, Server: "auto", Time: Duration(time.Minute), Warmup: Duration(15 * time.Second)}
}

// DefaultLoad is the workload of which nothing is said but its name.
func DefaultLoad() Load {
	return Load{Tables: 10, TableSize: 1_000_000, Threads: Threads{4}, RandType: "uniform"}
}

// filled gives the defaults that follow from other keys.
func (s Spec) filled() Spec {
	if s.Control == "" && s.arm("control") >= 0 {
		s.Control = "control"
	}
	if s.Steady && s.Warmup == Default().Warmup { // the checkpoint age of a large redo log takes that long to level off
		s.Warmup = Duration(20 * time.Minute)
	}
	switch {
	case s.Blocks == 0 && s.Precision == 0 && s.Budget == 0:
		s.Blocks = 6 // the fewest pairs a rank-based interval can be made of
	case s.Blocks == 0 && s.Budget == 0:
		s.Budget = Duration(30 * time.Minute)
	}
	return s
}

// arm is the place of the arm of that name, -1 where there is none.
func (s Spec) arm(name string) int {
	for i, a := range s.Arms {
		if a.Name == name {
			return i
		}
	}
	return -1
}

// Workloads gives the workloads in the order of the file, each once for every number of threads.
func (s Spec) Workloads() []result.Workload {
	var list []result.Workload
	for _, l := range s.Loads {
		for _, n := range l.Threads {
			list = append(list, s.workload(l, n))
		}
	}
	return list
}

func (s Spec) workload(l Load, threads int) result.Workload {
	return result.Workload{Name: l.Name, Tables: l.Tables, TableSize: l.TableSize, Threads: threads, Seconds: s.Time.seconds(),
		Warmup: s.Warmup.seconds(), RandType: l.RandType, Database: database, Rate: l.Rate}
}

// Design gives how the trials are laid out. The control always has its twin: without an A/A pair nothing says
// how much is noise.
func (s Spec) Design() result.Design {
	return result.Design{Control: s.Control, Blocks: s.Blocks, Precision: float64(s.Precision), Budget: time.Duration(s.Budget).Seconds(),
		Twin: true, SkipNoops: s.SkipNoops, Steady: s.Steady, Seed: s.Seed}
}

// CapsOf gives the caps of an arm: its own, else the experiment's.
func (s Spec) CapsOf(a Arm) result.Caps {
	c := result.Caps{CPUs: a.Caps.CPUs, Memory: int64(a.Caps.Memory), IOPS: a.Caps.IOPS, Bandwidth: int64(a.Caps.Bandwidth)}
	if c.CPUs == 0 {
		c.CPUs = s.Caps.CPUs
	}
	if c.Memory == 0 {
		c.Memory = int64(s.Caps.Memory)
	}
	if c.IOPS == 0 {
		c.IOPS = s.Caps.IOPS
	}
	if c.Bandwidth == 0 {
		c.Bandwidth = int64(s.Caps.Bandwidth)
	}
	return c
}

// ServerOf gives the server an arm runs on, as server.Find takes it.
func (s Spec) ServerOf(a Arm) string {
	if a.Server != "" {
		return a.Server
	}
	return s.Server
}

// CnfPath gives the path of the arm's option file, "" where it has none. dir is the spec's folder.
func (a Arm) CnfPath(dir string) string {
	if a.Cnf == "" || filepath.IsAbs(a.Cnf) {
		return a.Cnf
	}
	return filepath.Join(dir, a.Cnf)
}

// Settings gives what an arm sets on a server of the flavour after its option file, each as NAME=VALUE, with
// relative sizes (see Sets) worked out. memory is what this process may use, in bytes; a cap of the arm that
// is smaller replaces it.
func (s Spec) Settings(a Arm, flavour mycnf.Flavour, memory int64) ([]string, error) {
	if limit := s.CapsOf(a).Memory; limit > 0 {
		memory = min(memory, limit)
	}
	sizes := measures{memory: memory, data: s.data(flavour)}
	own := a.MySQL
	if flavour == mycnf.MariaDB {
		own = a.MariaDB
	}
	var list []string
	for _, sets := range []Sets{a.Set, own} {
		for _, text := range sets {
			resolved, err := sizes.resolve(text)
			if err != nil {
				return nil, err
			}
			list = append(list, resolved)
		}
	}
	return list, nil
}

// data estimates the size of the tables, in bytes; 0 where the workloads differ in it. A row with its index
// entries was measured to take 285 bytes in MySQL 9.7 and 335 in MariaDB 10.11.
func (s Spec) data(flavour mycnf.Flavour) int64 {
	row := int64(285)
	if flavour == mycnf.MariaDB {
		row = 335
	}
	var size int64
	for _, l := range s.Loads {
		n := int64(l.Tables) * int64(l.TableSize)
		if n > math.MaxInt64/row || size != 0 && size != n*row {
			return 0
		}
		size = n * row
	}
	return size
}
