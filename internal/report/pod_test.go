package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

func TestPodNotes(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	at := time.Unix(1000, 0)
	d := Data{Experiment: result.Experiment{Pod: &result.PodFacts{Namespace: "db", Name: "mysql-0", Node: "n1", QoS: "Guaranteed", Image: "mysql:8.4", ImageID: "sha256:1", CPURequest: "4", CPULimit: "4",
		MemoryRequest: "16Gi", MemoryLimit: "16Gi", Restarts: 2, Kubernetes: "v1.34.4", Clients: []string{"n2", "n3"}}},
		Finish: &result.Finish{Cluster: &result.ClusterCounters{
			Before: result.PodStats{Pod: result.CgroupCounters{At: at, CPUSeconds: n(10), ThrottledSeconds: n(1), WriteBytes: n(0)}, Node: result.CgroupCounters{At: at}},
			After: result.PodStats{Pod: result.CgroupCounters{At: at.Add(10 * time.Second), CPUSeconds: n(45), ThrottledSeconds: n(1.5), WriteBytes: n(10 << 20), WorkingSetBytes: n(1 << 30)},
				Node: result.CgroupCounters{At: at}}}}}
	want := []string{
		"pod db/mysql-0 on node n1, QoS class Guaranteed: CPU 4 requested, limit 4; memory 16Gi requested, limit 16Gi; restarts of its container before: 2",
		"image mysql:8.4 (sha256:1), Kubernetes v1.34.4",
		"2 clients ran on nodes n2, n3",
		"the pod, by the kubelet's counters over 10 s that include the trials: 35.0 s of CPU (3.50 CPUs), throttled for 0.5 s, 1024 MiB of memory in use at the end, 10 MiB written",
		"its node's counters were not read anew: the run was too short for them",
	}
	if got := podNotes(d); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d.Finish, d.Experiment.Pod = nil, &result.PodFacts{Namespace: "db", Name: "a", QoS: "BestEffort"}
	if got := podNotes(d); len(got) != 2 || !strings.Contains(got[0], "CPU none requested, limit none") {
		t.Errorf("%q", got)
	}
	if got := podNotes(Data{}); got != nil {
		t.Errorf("%q", got)
	}
}

// TestCountedBackwards: a node's counter is a sum over devices, and falls when one of them goes away: no
// negative reads are told.
func TestCountedBackwards(t *testing.T) {
	at := func(seconds int, read float64) result.CgroupCounters {
		return result.CgroupCounters{At: time.Unix(int64(seconds), 0), ReadBytes: &read, MajorFaults: &read}
	}
	if line := counted("the node", at(0, 2<<30), at(20, 1<<20)); strings.Contains(line, "-") || strings.Contains(line, "MiB read") {
		t.Error(line)
	}
	if line := counted("the node", at(0, 1<<20), at(20, 3<<20)); !strings.Contains(line, "2 MiB read") {
		t.Error(line)
	}
}
