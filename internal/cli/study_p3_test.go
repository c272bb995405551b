package cli

import (
	"math"
	"strings"
	"testing"
	"time"

	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// row is a pod network that relative to the nodes' own has so much of the throughput of a stream, of the round
// trip and of the transactions.
func row(name string, rate, rtt, tps float64) networkRow {
	end := func(rate, rtt, tps float64) networkEnd {
		return networkEnd{Alone: &result.PathProbe{Runs: 1, Rate: rate * 10e9, RTT50: rtt * 30, RTT99: rtt * 100}, TPS: tps * 500, P95: 10, Valid: 4}
	}
	return networkRow{Network: name, Measured: time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC), Host: end(1, 1, 1), Pod: end(rate, rtt, tps), Ratio: tps, Interval: [2]float64{tps - 0.05, tps + 0.05},
		Rounds: 4, Verdict: "slower", compared: stats.Arm{Ratio: tps, Pairs: 4, Interval: [2]float64{tps - 0.05, tps + 0.05}, Verdict: "slower"},
		hosts: []result.Trial{{TPS: 500}, {TPS: 520}}}
}

func TestNetworkTable(t *testing.T) {
	table := networkTable([]networkRow{row("calico", 0.8, 1.5, 0.9)})
	for i, want := range []string{"", "host beside calico|2026-11-24 15:00|10.00|0|30|100|500.0|10.00|1|", "calico|2026-11-24 15:00|8.00|0|45|150|450.0|10.00|0.900 [0.850, 0.950] of 4|slower"} {
		if got := strings.Join(table[i], "|"); i > 0 && got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestTogether: SR-IOV's shape, line rate and half the transactions, goes with the round trip and not with the
// throughput of a stream; of few networks nothing is told.
func TestTogether(t *testing.T) {
	few := []networkRow{row("a", 1, 1.2, 0.9), row("b", 0.5, 2, 0.6)}
	if list := together(few); len(list) != 0 || !strings.Contains(togetherLines(few)[0], "not told") {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct {
		what            string
		last            networkRow
		stream, journey func(float64) bool
	}{
		{"round trips alone", row("sr-iov", 1, 2, 0.5), func(r float64) bool { return r < 0.5 }, func(r float64) bool { return r < -0.99 }},
		{"bandwidth as well", row("slow", 0.5, 2, 0.5), func(r float64) bool { return r > 0.99 }, func(r float64) bool { return r < -0.99 }},
	} {
		list := together([]networkRow{row("a", 1/1.2, 1.2, 1/1.2), row("b", 1/1.5, 1.5, 1/1.5), c.last})
		if len(list) != 2 || list[0].N != 4 || !c.stream(list[0].R) || !c.journey(list[1].R) {
			t.Errorf("%s: %+v", c.what, list)
		}
	}
	if lines := togetherLines([]networkRow{row("a", 0.9, 1.2, 0.9), row("b", 0.7, 1.5, 0.8), row("c", 0.9, 2, 0.7), row("d", 0.4, 1.6, 0.9), row("e", 0.6, 1.1, 0.9)}); !strings.Contains(lines[0], "not shown, it may be chance") || !strings.Contains(lines[0], "] over 6") {
		t.Error(lines)
	}
	none := []networkRow{row("a", 1, 1, 1), row("b", 1, 1, 1), row("c", 1, 1, 1)}
	for _, r := range together(none) {
		if r.R != 0 || math.IsNaN(r.R) {
			t.Errorf("where nothing differs: %+v", r)
		}
	}
}

func TestBesidePublished(t *testing.T) {
	if here := besidePublished(nil); len(here) != 0 {
		t.Errorf("%+v", here)
	}
	here := besidePublished([]networkRow{row("a", 1, 1, 0.9), row("b", 1, 1, 0.5)}) // the best comes first
	if here[bestNetwork].compared.Ratio != 0.9 || len(here[hostNetwork].trials) != 2 {
		t.Errorf("%+v", here)
	}
}

// TestClusterSetup: the CPUs have their unit, as the first screen puts no heading beside them.
func TestClusterSetup(t *testing.T) {
	e := result.Experiment{Workloads: []result.Workload{{Threads: 1}}}
	for cpus, want := range map[string]string{"1": "1 CPU for the server, and as many for the client", "2": "2 CPUs for the server, and as many", "500m": "500m CPUs for the server"} {
		if got := clusterSetup(e, clusterStudyFlags{podNetworkFlags: podNetworkFlags{cpus: cpus}}).CPUs; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", cpus, got)
		}
	}
}

// TestNetworkRecords takes the newest record of each network, and leaves those under another load.
func TestNetworkRecords(t *testing.T) {
	a := &app{home: testHome(t)}
	load := result.Workload{Name: "oltp_read_only", Tables: 1, TableSize: 10, Threads: 1, Seconds: 1, RandType: "uniform", Database: "sbtest"}
	other := load
	other.Threads = 64
	version, cpus, ends := "8.4.8", 1.0, true
	add := func(id, network string, load result.Workload, age time.Duration, tps float64) *result.Store {
		e := result.Experiment{ID: id, Kind: result.KindStudy, Title: "p3: " + network, Created: time.Now().Add(-age), Workloads: []result.Workload{load},
			Server: result.Server{Flavour: "mysql", Version: version}, Design: result.Design{Control: hostNetwork, Blocks: 3, Seed: 1}}
		store, err := result.Create(a.home+"/experiments/"+id, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, arm := range []string{hostNetwork, network} {
			if err := store.PutArm(result.Arm{Name: arm, Caps: result.Caps{CPUs: cpus}, PathProbe: &result.PathProbe{Runs: 1, Rate: 1e9, RTT50: 30}}); err != nil {
				t.Fatal(err)
			}
		}
		for block := 1; block <= 3; block++ {
			for arm, each := range map[string]float64{hostNetwork: 100, network: tps} {
				trial := result.Trial{ID: result.TrialID(result.Arm{Name: arm}, load, block, 0, false, result.Server{}, id), Arm: arm, Block: block, Workload: load, TPS: each + float64(block), Gates: []result.Gate{}}
				if err := store.AppendTrial(trial); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ends {
			if err := store.Finish(result.Finish{Ended: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		return store
	}
	add("study-1", "calico", load, 3*time.Hour, 50)
	newest := add("study-2", "calico", load, time.Hour, 80)
	add("study-3", "flannel", load, 2*time.Hour, 90)
	add("study-4", "weave", other, 2*time.Hour, 90)
	version = "9.7.4"
	add("study-5", "cilium", load, 2*time.Hour, 90)
	version, cpus = "8.4.8", 4
	add("study-6", "kube-router", load, 2*time.Hour, 90)
	cpus, ends = 1, false
	add("study-7", "flannel", load, time.Minute, 10) // was interrupted
	st, err := spec.LoadStudy("p3")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := a.networkRows(st, newest)
	if err != nil || len(rows) != 2 || rows[0].Network != "flannel" || rows[1].Network != "calico" || rows[1].Pod.TPS != 82 || rows[1].Host.Valid != 3 {
		t.Errorf("%+v, %v", rows, err)
	}
}
