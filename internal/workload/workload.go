// Package workload drives sysbench 1.0.20: it loads the tables, runs a workload against a server and turns
// what sysbench prints into a result.
//
// The steps: Find the program, Validate what is asked, Prepare the tables and VerifyRows, then Warm and Run
// as often as wanted; Counts and CountRows hold what came of it against the server and its tables. On a
// server that is not david's own, Inspect, CreateSchema and DropSchema keep david away from schemas it did
// not create. Parse alone reads recorded output.
package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/result"
)

// mix names a sysbench script with the options that make it a workload.
type mix struct {
	name    string
	script  string
	options []string
}

// mixes returns the workloads david offers. The last three hold 20 statements a transaction, of which 20, 50
// and 80 % write: index and non-index updates, and a delete with an insert.
func mixes() []mix {
	shares := func(points, index, nonIndex int) []string {
		return []string{
			"--range-selects=off", "--delete-inserts=1", fmt.Sprintf("--point-selects=%d", points),
			fmt.Sprintf("--index-updates=%d", index), fmt.Sprintf("--non-index-updates=%d", nonIndex),
		}
	}
	return []mix{
		{"oltp_read_write", "oltp_read_write", nil},
		{"oltp_read_only", "oltp_read_only", nil},
		{"oltp_write_only", "oltp_write_only", nil},
		{"oltp_point_select", "oltp_point_select", nil},
		{"oltp_update_index", "oltp_update_index", nil},
		{"read-intensive", "oltp_read_write", shares(16, 1, 1)},
		{"balanced", "oltp_read_write", shares(10, 4, 4)},
		{"write-intensive", "oltp_read_write", shares(4, 7, 7)},
	}
}

// Names returns the names of the workloads, in the order to show them.
func Names() []string {
	var names []string
	for _, m := range mixes() {
		names = append(names, m.name)
	}
	return names
}

// RandTypes returns the distributions of rows sysbench 1.0.20 knows.
func RandTypes() []string { return []string{"uniform", "special", "gaussian", "pareto"} }

// Bounds of what Validate lets through. Rows are numbered by a signed 32-bit column; a day is ample for one
// trial; no server takes more than 100,000 connections (max_connections).
const (
	maxRows    = math.MaxInt32
	maxTables  = 100_000
	maxThreads = 100_000
	maxSeconds = 24 * 3600
	maxRate    = 1_000_000
)

// Validate refuses a workload sysbench or the server could not run, and names the nearest word for a misspelt
// one. A rate must be whole, as sysbench reads no other. Threads are the most transactions that can be in
// work at a time: with a rate give plenty (rate times the longest latency that matters), or what waits for a
// thread measures sysbench and not the server.
func Validate(w result.Workload) error {
	if err := oneOf("workload", w.Name, Names()); err != nil {
		return err
	}
	if err := oneOf("rand-type", w.RandType, RandTypes()); err != nil {
		return err
	}
	limits := []struct {
		what            string
		value, min, max int
	}{
		{"tables", w.Tables, 1, maxTables},
		{"table size", w.TableSize, 1, maxRows},
		{"threads", w.Threads, 1, maxThreads},
		{"seconds of measured time", w.Seconds, 1, maxSeconds},
		{"seconds of warm-up", w.Warmup, 0, maxSeconds},
	}
	for _, l := range limits {
		if l.value < l.min || l.value > l.max {
			return fmt.Errorf("cannot run %s with %d %s: give %d to %d", w.Name, l.value, l.what, l.min, l.max)
		}
	}
	if err := validateRate(w.Rate); err != nil {
		return err
	}
	return validateSchema(w.Database)
}

// validateRate refuses what is not 0 or a whole number that sysbench keeps up with; NaN is none.
func validateRate(rate float64) error {
	if rate >= 0 && rate <= maxRate && rate == math.Trunc(rate) {
		return nil
	}
	return fmt.Errorf("cannot run at a rate of %v transactions/s: give a whole number of 1 to %d, or 0 for a closed loop", rate, maxRate)
}

// validateSchema refuses names the server does not take and the server's own schemas.
func validateSchema(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsAny(name, "\x00/\\") || strings.HasSuffix(name, " ") {
		return fmt.Errorf("cannot use schema %q: give a name of 1 to 64 characters without / and \\", name)
	}
	if slices.Contains([]string{"mysql", "sys", "information_schema", "performance_schema"}, strings.ToLower(name)) {
		return fmt.Errorf("cannot use schema %s: it is the server's own", name)
	}
	return nil
}

func oneOf(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return fmt.Errorf("cannot use %s %q: did you mean %s? (known: %s)", what, word, nearest(word, known), strings.Join(known, ", "))
}

func nearest(word string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return distance(word, a) - distance(word, b) })
}

// distance counts as Levenshtein's does: how many bytes to insert, delete or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// find returns the mix of a workload that Validate let through.
func find(name string) mix {
	all := mixes()
	return all[slices.IndexFunc(all, func(m mix) bool { return m.name == name })]
}
