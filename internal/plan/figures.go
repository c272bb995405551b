package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Unit says what a figure counts.
type Unit string

// The units; a share is written 0.7, a duration as 15m, a size as 128GiB.
const (
	Share    Unit = "share"
	Number   Unit = "number"
	Duration Unit = "duration" // seconds
	Size     Unit = "size"     // bytes
	USD      Unit = "US$"
)

// Figure is a number that plans are computed with. Each is a flag of its name.
type Figure struct {
	Name    string
	Unit    Unit
	Default float64
	Given   bool // it has no default: only the user can know it
	What    string
	Source  string
	Date    string
}

// Figures lists them. Needs of a transaction are of sysbench oltp_read_write as david measured it; --from
// replaces them.
func Figures() []Figure {
	const cell = "measured by david: winner of rw-memory1g-iops3000 (docs/results.md), MySQL 9.7.4, oltp_read_write, uniform keys"
	const day = "2026-11-23"
	const yours = "an assumption of david's: rehearse it and give yours"
	return []Figure{
		{"growth", Share, 0, false, "growth of the data in a year, 0.3 for 30 %", "none is assumed", "2026-11"},
		{"years", Number, 3, false, "for how long is bought", "study P4: three years", "2016"},
		{"fill", Share, 0.7, false, "share of CPUs, IOPS, network and room that is planned to be used", "study P4: plan for 70 %", "2016"},
		{"pool-of-memory", Share, 0.75, false, "share of a machine's memory that is the buffer pool", "study P1: 12 GB of 16", "2025"},
		{"cpu-per-transaction", Number, 4331, false, "microseconds of CPU of a transaction of 20 queries at measured-pool", cell, day},
		{"cpu-in-memory", Number, 1912, false, "the same with all data in the buffer pool", "measured by david: winner of rw-iops5000 (docs/results.md)", "2026-11-22"},
		{"reads-per-transaction", Number, 23.1, false, "pages read by a transaction at measured-pool; none with all data in the pool, a line between (uniform keys)", cell, day},
		{"writes-per-transaction", Number, 23.9, false, "pages written by a transaction, doublewrite and logs included", cell, day},
		{"writes-in-memory", Number, 23.9, false, "the same with all data in the pool", "taken as with a part of them: what was measured in memory (2.4 to 4 pages) had put writes off", day},
		{"measured-pool", Share, 0.163, false, "buffer pool of the measured server as a share of its data: 384 MiB of 2.3 GiB", cell, day},
		{"measured-queries", Number, 20, false, "queries of the measured transaction", "sysbench oltp_read_write; study P1: 2,244.84 of 112.24", "2025"},
		{"measured-writes", Share, 0.2, false, "share of its queries that write", "sysbench oltp_read_write: 4 of 20", "2025"},
		{"binlog-per-transaction", Number, 1710, false, "bytes of binary log of a transaction of 20 queries: 6 row images of 190 bytes and 570 of event headers",
			"derived from sysbench's table, row format, full images; not measured", "2026-11"},
		{"network-per-transaction", Number, 46300, false, "bytes on the network for a transaction of 20 queries", "study P3: 2,700 transactions/s through 1 Gbit/s", "2020"},
		{podFigure, Share, 0.952, false, "throughput of a Guaranteed pod as a share of a process's, where CPUs bind", "measured by david: 0.935 to 0.970, 52 pairs (docs/results.md)", "2026-11-22"},
		{"respond", Duration, 900, false, "until somebody who was called acts", yours, "2026-11"},
		{"by-hand", Duration, 300, false, "a fail-over by hand, once somebody acts", yours, "2026-11"},
		{"backup-every", Duration, 86400, false, "time between backups, or copies of the binary log, that lie elsewhere", yours, "2026-11"},
		{"region-traffic", USD, 0, true, "US$ a GB sent to another region", "", ""},
		{"zone-traffic", USD, 0, true, "US$ a GB between zones, both ways together (EC2: 0.02 is known)", "", ""},
		{"reserved-discount", Share, 0, true, "what a commitment takes off a machine's price, 0.4 for 40 %", "", ""},
		{"spot-discount", Share, 0, true, "what spot takes off a machine's price", "", ""},
		{"server-price", USD, 0, true, "own hardware: US$ for one server with its disks", "", ""},
		{"server-cpus", Number, 0, true, "own hardware: physical cores of a server", "", ""},
		{"server-memory", Size, 0, true, "own hardware: memory of a server", "", ""},
		{"server-disks", Number, 0, true, "own hardware: NVMe disks of a server", "", ""},
		{"server-disk", Size, 0, true, "own hardware: room of one of its disks", "", ""},
		{"server-iops", Number, 0, true, "own hardware: random 16 KiB writes/s one of its disks sustains; david probe measures it", "", ""},
		{"server-network", Number, 10, false, "own hardware: Gbit/s of a server", "study P4: 10 GbE", "2016"},
		{"helper-cpus", Number, 2, false, "own hardware: cores of what only votes, routes or watches", etcd, looked},
		{"helper-memory", Size, 8 << 30, false, "own hardware: memory of it", etcd, looked},
		{"helper-price", USD, 0, true, "own hardware: US$ of a small server for it; with it in the place of a share of a server", "", ""},
		{"running", Number, 2, false, "own hardware: power, cooling and people over three years, as a multiple of its price", "study P4: they cost as much again twice", "2016"},
		{"server-watts", Number, 0, true, "own hardware: W a server takes; with the six below in the place of --running", "", ""},
		{"kwh-price", USD, 0, true, "own hardware: US$ of a kWh", "", ""},
		{cooling, Number, 0, true, "own hardware: kWh paid for each that servers take (PUE), as in 1.5", "", ""},
		{"server-units", Number, 0, true, "own hardware: rack units of a server", "", ""},
		{"unit-price", USD, 0, true, "own hardware: US$ a month for a rack unit", "", ""},
		{"admin-hours", Number, 0, true, "own hardware: hours a month that people work on a server", "", ""},
		{"hour-price", USD, 0, true, "own hardware: US$ of such an hour", "", ""},
	}
}

const cooling = "cooling" // a figure: 1 or more

// figureNamed finds a figure; a name that is none is a mistake of the code, which the tests meet.
func figureNamed(name string) Figure {
	list := Figures()
	return list[slices.IndexFunc(list, func(f Figure) bool { return f.Name == name })]
}

// figure returns what was given or measured, else the default.
func (r Request) figure(name string) float64 { return r.values[name] }

// filled returns the request with every figure at hand.
func (r Request) filled() Request {
	r.values = map[string]float64{}
	for _, f := range Figures() {
		r.values[f.Name] = f.Default
	}
	maps.Copy(r.values, r.Figures)
	return r
}

// missingFigure is a figure that only the user can know.
type missingFigure struct{ Figure }

func (m missingFigure) Error() string {
	return fmt.Sprintf("--%s is not known (%s): give it; a figure that is not known is never 0", m.Name, m.What)
}

// known returns a figure that has no default.
func (r Request) known(name string) (float64, error) {
	if x, ok := r.Figures[name]; ok {
		return x, nil
	}
	return 0, missingFigure{figureNamed(name)}
}

// with returns the request with another figure.
func (r Request) with(name string, x float64) Request {
	figures := map[string]float64{}
	maps.Copy(figures, r.Figures)
	figures[name] = x
	r.Figures = figures
	return r.filled()
}

func (r Request) checkFigures() error {
	for _, f := range Figures() {
		x, given := r.Figures[f.Name]
		if !given {
			continue
		}
		if err := f.check(x); err != nil {
			return err
		}
	}
	return nil
}

// check holds a value against what the figure may be.
func (f Figure) check(x float64) error {
	mayBeNone := slices.Contains([]string{"growth", "reads-per-transaction", "writes-per-transaction", "writes-in-memory", "measured-writes", "running", "admin-hours", "respond", "by-hand"}, f.Name) || f.Unit == USD
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return fmt.Errorf("--%s %v is no number", f.Name, x)
	case x > f.most():
		return fmt.Errorf("--%s %v: at most %g (%s)", f.Name, x, f.most(), f.What)
	case f.Name == "growth" && x < 0:
		return fmt.Errorf("--growth %v: data that shrink are planned as they are today: give 0 or more", x)
	case x < 0:
		return fmt.Errorf("--%s %v: it is not negative (%s)", f.Name, x, f.What)
	case f.Name == cooling && x < 1:
		return fmt.Errorf("--cooling %v: what servers take is paid for in any case: give 1 or more (%s)", x, f.What)
	case x == 0 && !mayBeNone:
		return fmt.Errorf("--%s 0: give more than 0 (%s)", f.Name, f.What)
	}
	return nil
}

// most bounds a figure: beyond lies a slip of the keyboard.
func (f Figure) most() float64 {
	switch {
	case f.Name == "growth":
		return 100
	case f.Name == "years":
		return 30
	case f.Name == podFigure: // what is measured to cost nothing comes out on either side of 1
		return 2
	case f.Unit == Share:
		return 1
	}
	return 1e15
}

// write writes a value of the figure with its unit.
func (f Figure) write(x float64) string { return Turn{Unit: f.Unit}.Write(x) }

// Row writes the figure as docs/plan.md has it.
func (f Figure) Row() string {
	value := fmt.Sprintf("%g", f.Default)
	switch {
	case f.Given:
		return fmt.Sprintf("| `--%s` | – | %s | yours: there is no default |", f.Name, f.What)
	case f.Unit == Duration:
		value = span(f.Default)
	case f.Unit == Size:
		value = f.write(f.Default)
	}
	return fmt.Sprintf("| `--%s` | %s | %s | %s, %s |", f.Name, value, f.What, f.Source, f.Date)
}
