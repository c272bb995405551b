package cli

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"david/internal/manifest/check"
	"david/internal/netpath"
	"david/internal/result"
)

// TestNetworkCosts: what records of networks say is taken of the newest of each, and of those alone that differ in
// what is asked about.
func TestNetworkCosts(t *testing.T) {
	a := &app{home: testHome(t)}
	load := result.Workload{Name: "oltp_read_only", Tables: 1, TableSize: 10, Threads: 1, Seconds: 1, RandType: "uniform", Database: "sbtest"}
	scatter := 1.0
	argv := []string{"david"}
	add := func(id string, age time.Duration, kind result.Kind, tps float64, paths ...result.Path) {
		e := result.Experiment{
			ID: id, Kind: kind, Argv: argv, Created: time.Now().Add(-age), Workloads: []result.Workload{load},
			Design: result.Design{Control: cmp.Or(netpath.Name(paths[0]), "control"), Blocks: 3, Seed: 1},
		}
		store, err := result.Create(a.home+"/experiments/"+id, e)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range paths {
			arm := result.Arm{Name: cmp.Or(netpath.Name(p), "control"), Path: p}
			if err := store.PutArm(arm); err != nil {
				t.Fatal(err)
			}
			for block := 1; block <= 3; block++ {
				trial := result.Trial{ID: result.TrialID(arm, load, block, 0, false, result.Server{}, id), Arm: arm.Name, Block: block, Workload: load, TPS: 100 + float64(block), Gates: []result.Gate{}}
				if i > 0 {
					trial.TPS *= tps * math.Pow(scatter, float64(block))
				}
				if err := store.AppendTrial(trial); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := store.Finish(result.Finish{Ended: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	host, vxlan, macvlan := result.Path{Kind: netpath.Host}, result.Path{Kind: netpath.Vxlan}, result.Path{Kind: netpath.Macvlan}
	jumbo, encrypted, slow := vxlan, host, host
	jumbo.MTU, encrypted.TLS, slow.Rate = 9000, true, 1e9
	add("compare-1", 3*time.Hour, result.KindCompare, 0.5, host, vxlan)
	add("compare-2", time.Hour, result.KindCompare, 0.8, host, vxlan, macvlan, encrypted, result.Path{Kind: netpath.Unix})
	add("compare-3", 2*time.Hour, result.KindCompare, 1.1, vxlan, jumbo)
	add("compare-4", time.Hour, result.KindCompare, 0.3, slow, vxlan)
	add("study-1", 2*time.Hour, result.KindStudy, 0.9, host, result.Path{Kind: "calico"})
	add("compare-5", time.Minute, result.KindCompare, 0.9, result.Path{}, vxlan) // arms that are no paths
	scatter = 3
	add("compare-6", time.Minute, result.KindCompare, 1, host, vxlan, macvlan) // which tell nothing
	scatter = 1.05
	add("study-2", time.Minute, result.KindStudy, 0.93, host, result.Path{Kind: "calico"}) // undecided, where an older one is not
	add("study-3", 2*time.Minute, result.KindStudy, 0.94, host, result.Path{Kind: "cilium"})
	add("study-4", 3*time.Minute, result.KindStudy, 0.95, host, result.Path{Kind: "cilium"}) // no newer, and no more decided
	scatter, argv = 1, []string{"david", "study", "p3", "--quick"}
	add("study-5", time.Minute, result.KindStudy, 0.2, host, result.Path{Kind: "calico"})
	add("study-6", time.Minute, result.KindStudy, 0.2, host, result.Path{Kind: "weave"})
	got, err := a.networkCosts()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		list []check.NetworkCost
		want string
	}{
		"pods": {got.Pods, "calico/host 0.90 study-1, cilium/host 1.04 study-3 (not shown), " +
			"vxlan/host 0.80 compare-2, macvlan/host 0.80 compare-2"},
		"macvlan": {got.Macvlan, "macvlan/host 0.80 compare-2"},
		"MTU":     {got.MTU, "vxlan-mtu9000/vxlan 1.10 compare-3"},
	} {
		var texts []string
		for _, n := range c.list {
			text := fmt.Sprintf("%s/%s %.2f %s", n.Network, n.Against, n.Ratio, n.Experiment)
			if !n.Differs {
				text += " (not shown)"
			}
			texts = append(texts, text)
		}
		if text := strings.Join(texts, ", "); text != c.want {
			t.Errorf("%s: %s; want %s", what, text, c.want)
		}
	}
}
