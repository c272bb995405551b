package kube

import (
	"errors"
	"testing"
	"time"
)

const summary = `{"node":{"nodeName":"kn1","cpu":{"time":"2026-01-02T03:04:05Z","usageCoreNanoSeconds":5000000000},"memory":{"workingSetBytes":1048576,"pageFaults":7,"majorPageFaults":1}},
"pods":[{"podRef":{"name":"a","namespace":"db","uid":"u"},"cpu":{"time":"2026-01-02T03:04:06Z","usageCoreNanoSeconds":2500000000},
"memory":{"workingSetBytes":2097152,"rssBytes":1048576,"pageFaults":100,"majorPageFaults":3},"network":{"rxBytes":10,"txBytes":20}},{"podRef":{"name":"b","namespace":"db"}}]}`

const cadvisor = `# HELP container_cpu_cfs_periods_total Number of elapsed enforcement period intervals.
# TYPE container_cpu_cfs_periods_total counter
container_cpu_cfs_periods_total{container="server",id="/x",image="i,{}\"q\"",name="n",namespace="db",pod="a"} 40 1700000000000
container_cpu_cfs_periods_total{container="",id="/x",image="",name="",namespace="db",pod="a"} 999 1700000000000
container_cpu_cfs_periods_total{container="server",id="/x",image="",name="",namespace="other",pod="a"} 999
container_cpu_cfs_throttled_seconds_total{container="server",id="/x",image="",name="",namespace="db",pod="a"} 1.5
container_fs_writes_bytes_total{container="server",device="/dev/a",id="/x",namespace="db",pod="a"} 100
container_fs_writes_bytes_total{container="server",device="/dev/b",id="/x",namespace="db",pod="a"} 11
container_fs_writes_bytes_total{container="",device="/dev/b",id="/",namespace="",pod=""} 5000
container_fs_reads_bytes_total{container="",device="/dev/b",id="/x",namespace="db",pod="a"} 77
container_fs_reads_total{broken
not a metric
`

func TestStats(t *testing.T) {
	s, err := fromSummary([]byte(summary), "db", "a")
	if err != nil {
		t.Fatal(err)
	}
	fromCadvisor([]byte(cadvisor), "db", "a", &s)
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"CPU": {s.Pod.CPUSeconds, 2.5}, "node CPU": {s.Node.CPUSeconds, 5}, "memory": {s.Pod.WorkingSetBytes, 2 << 20}, "rss": {s.Pod.RSSBytes, 1 << 20}, "faults": {s.Pod.MajorFaults, 3},
		"periods": {s.Pod.Periods, 40}, "throttled": {s.Pod.ThrottledSeconds, 1.5}, "writes": {s.Pod.WriteBytes, 111}, "node writes": {s.Node.WriteBytes, 5000}, "reads, of the pod's own": {s.Pod.ReadBytes, 77}, "network": {s.Pod.TransmitBytes, 20},
	} {
		if c.got == nil || *c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if s.Pod.Reads != nil || s.Node.Periods != nil || !s.Pod.At.Equal(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)) {
		t.Errorf("%+v", s)
	}
	if _, err := fromSummary([]byte(summary), "db", "c"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := fromSummary([]byte("<html>"), "db", "a"); err == nil {
		t.Error("HTML was read")
	}
}

func FuzzParseMetric(f *testing.F) {
	f.Add(`a{b="c"} 1`)
	f.Add(`a{b="c\"",d="}"} 1 2`)
	f.Add(`a{b="\`)
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := parseMetric(line); ok && m.name == "" {
			t.Errorf("%q has no name", line)
		}
	})
}
