package sampler

import (
	"math"
	"testing"
)

func TestThrottled(t *testing.T) {
	for text, want := range map[string]float64{
		"nr_periods 40\nnr_throttled 31\nthrottled_time 2541000123\nnr_bursts 0\nburst_time 0\n":                              2.541000123, // v1
		"usage_usec 900\nuser_usec 500\nsystem_usec 400\nnr_periods 12\nnr_throttled 9\nthrottled_usec 750000\nnr_bursts 0\n": 0.75,        // v2
		"usage_usec 411401396\nuser_usec 300000000\nsystem_usec 111401396\nnice_usec 0\ncore_sched.force_idle_usec 0\n":       0,           // v2's root
		"":               0, // no such file
		"throttled_usec": 0,
	} {
		if got := parseThrottled(text); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v s, want %v", text, got, want)
		}
	}
}

func TestKeyed(t *testing.T) {
	v := parseKeyed("pswpin 7\npswpout 12\nnr_free_pages 99\ntorn\nword x\n\n")
	if len(v) != 3 || v["pswpin"] != 7 || v["pswpout"] != 12 {
		t.Errorf("%v", v)
	}
}

func FuzzKeyed(f *testing.F) {
	f.Add("pswpin 7\npswpout 12\n")
	f.Add("throttled_time 18446744073709551615\nthrottled_usec nan\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name, v := range parseKeyed(text) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s is %v", name, v)
			}
		}
		if s := parseThrottled(text); s < 0 || math.IsNaN(s) {
			t.Errorf("%v s", s)
		}
	})
}

func TestCheckpointAge(t *testing.T) {
	for _, c := range []struct {
		status map[string]float64
		want   float64
	}{
		{map[string]float64{"innodb_checkpoint_age": 356, "innodb_lsn_current": 9, "innodb_lsn_last_checkpoint": 1}, 356}, // MariaDB
		{map[string]float64{"innodb_redo_log_current_lsn": 19433976, "innodb_redo_log_checkpoint_lsn": 19067503}, 366473}, // MySQL
		{map[string]float64{"innodb_redo_log_current_lsn": 5, "innodb_redo_log_checkpoint_lsn": 7}, 0},                    // read one after the other
		{map[string]float64{"innodb_redo_log_current_lsn": 5}, -1},
	} {
		got := checkpointAge(c.status)
		if got == nil && c.want >= 0 || got != nil && *got != c.want {
			t.Errorf("%v: %s, want %v", c.status, show(got), c.want)
		}
	}
}
