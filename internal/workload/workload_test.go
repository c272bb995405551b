package workload

import (
	"math"
	"slices"
	"strings"
	"testing"

	"david/internal/mysqld"
	"david/internal/result"
)

func small(name string) result.Workload {
	return result.Workload{Name: name, Tables: 2, TableSize: 1000, Threads: 2, Seconds: 2, Warmup: 1, RandType: "uniform", Database: "sbtest"}
}

func TestValidate(t *testing.T) {
	for _, name := range Names() {
		if err := Validate(small(name)); err != nil {
			t.Error(err)
		}
	}
	for want, change := range map[string]func(*result.Workload){
		"did you mean oltp_read_write?": func(w *result.Workload) { w.Name = "oltp_read_writ" },
		"did you mean balanced?":        func(w *result.Workload) { w.Name = "balance" },
		"did you mean uniform?":         func(w *result.Workload) { w.RandType = "unifrom" },
		"zipfian":                       func(w *result.Workload) { w.RandType = "zipfian" },
		"0 threads":                     func(w *result.Workload) { w.Threads = 0 },
		"-1 threads":                    func(w *result.Workload) { w.Threads = -1 },
		"0 tables":                      func(w *result.Workload) { w.Tables = 0 },
		"0 table size":                  func(w *result.Workload) { w.TableSize = 0 },
		"2147483648 table size":         func(w *result.Workload) { w.TableSize = 1 << 31 },
		"0 seconds":                     func(w *result.Workload) { w.Seconds = 0 },
		"-5 seconds":                    func(w *result.Workload) { w.Seconds = -5 },
		"-1 seconds of warm-up":         func(w *result.Workload) { w.Warmup = -1 },
		"server's own":                  func(w *result.Workload) { w.Database = "MySQL" },
		"1 to 64":                       func(w *result.Workload) { w.Database = "" },
	} {
		w := small("oltp_read_write")
		change(&w)
		if err := Validate(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The mixes hold 20 statements a transaction with the promised share of writes.
func TestMixes(t *testing.T) {
	for name, writes := range map[string]int{"read-intensive": 4, "balanced": 10, "write-intensive": 16} {
		var points, updates int
		for _, o := range find(name).options {
			key, value, _ := strings.Cut(o, "=")
			n := 0
			for _, digit := range value {
				n = n*10 + int(digit-'0')
			}
			switch key {
			case "--point-selects":
				points = n
			case "--index-updates", "--non-index-updates":
				updates += n
			}
		}
		if updates+2 != writes || points+writes != 20 {
			t.Errorf("%s: %d reads, %d writes", name, points, updates+2)
		}
	}
}

func TestPreparedStatementsStayBelowTheLimit(t *testing.T) {
	w := small("oltp_read_write")
	w.Tables = 10
	for threads, want := range map[int]string{1: "auto", 178: "auto", 179: "disable", 100_000: "disable"} { // 178*92 = 16,376
		w.Threads = threads
		if got := psMode(w); got != want {
			t.Errorf("%d threads: %s", threads, got)
		}
	}
}

func TestRunArgs(t *testing.T) {
	a := mysqld.Addr{Network: "tcp", Address: "localhost:3307", User: "u", Password: "s3cret"}
	args := runArgs(a, small("balanced"), 2)
	for _, want := range []string{"--time=2", "--rand-type=uniform", "--percentile=95"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in %q", want, args)
		}
	}
	if strings.Contains(strings.Join(args, " "), "s3cret") {
		t.Errorf("the password is in %q", args)
	}
	if strings.Contains(strings.Join(args, " "), "--rate") {
		t.Errorf("a rate in a closed loop: %q", args)
	}
	w := small("balanced")
	w.Rate = 1e6
	if args := runArgs(a, w, 2); !slices.Contains(args, "--rate=1000000") {
		t.Errorf("no rate in %q", args)
	}
}

func TestValidateRate(t *testing.T) {
	w := small("oltp_read_write")
	for _, rate := range []float64{0, 1, 250, 1_000_000} {
		w.Rate = rate
		if err := Validate(w); err != nil {
			t.Error(err)
		}
	}
	for _, rate := range []float64{-1, 0.5, 10.7, 1_000_001, math.NaN(), math.Inf(1), math.Inf(-1)} {
		w.Rate = rate
		if err := Validate(w); err == nil || !strings.Contains(err.Error(), "closed loop") {
			t.Errorf("%v: %v", rate, err)
		}
	}
}
