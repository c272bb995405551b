package experiment

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"david/internal/netpath"
	"david/internal/result"
	"david/internal/rules"
)

// TestNetworked: arms share one server over their paths, and a slice in which a link of its path went down is
// the one that does not count, and is named.
func TestNetworked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	e, s := engine(t, "mysql")
	slicing(t, e, 3)
	x := e.Store.Experiment()
	x.Design.Slices.Incarnations = 1
	if err := e.Store.Amend(x); err != nil {
		t.Fatal(err)
	}
	paths := []result.Path{{Kind: netpath.Host}, {Kind: netpath.Bridge}, {Kind: netpath.Loopback, TLS: true}, {Kind: netpath.Host, Compressed: true}}
	network, err := netpath.Build(paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	var arms []result.Arm
	for i, p := range paths {
		arm := rules.Control(s.Binary.Flavour)
		if arm.Path = p; i > 0 {
			arm.Name = netpath.Name(p)
		}
		arms = append(arms, arm)
	}
	flaps := 0
	e.Report = func(ev Event) {
		if strings.HasPrefix(ev.Text, "bridge,") && strings.Contains(ev.Text, "measuring,") && flaps == 0 {
			flaps++
			flap(t, network)
		}
	}
	e.Target = &Networked{Sandboxed: s, Net: network}
	load := small
	load.Seconds, load.Warmup = 1, 0
	if err := e.RunSlices(context.Background(), arms, []result.Workload{load}); err != nil {
		t.Fatal(err)
	}
	_, trials := stored(t, e)
	bad, sent := 0, map[string]float64{}
	for _, tr := range trials {
		for _, g := range tr.Gates { // others may fail on a busy machine
			if g.Name != result.GatePath {
				continue
			}
			bad++
			ends := strings.Contains(g.Detail, "path2") || strings.Contains(g.Detail, "pod") // whichever is seen down first
			if g.OK || tr.Arm != "bridge" || !ends {
				t.Errorf("%s: %+v", tr.Arm, g)
			}
		}
		if tr.Costs.Network != nil {
			sent[tr.Arm] = *tr.Costs.Network
		}
		if tr.TPS <= 0 {
			t.Errorf("%s had %.0f transactions/s", tr.Arm, tr.TPS)
		}
	}
	if !(sent["host-compressed"] < 0.8*sent["control"]) {
		t.Errorf("bytes of a transaction: %v", sent)
	}
	if flaps != 1 || bad != 1 || len(trials) != 3*len(arms) {
		t.Errorf("%d flaps, %d slices do not count of %d", flaps, bad, len(trials))
	}
}

// flap takes the client's end of the second path down for a moment.
func flap(t *testing.T, n *netpath.Net) {
	err := n.Client.Do(func() error {
		link, err := netlink.LinkByName("path2")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		return netlink.LinkSetUp(link)
	})
	if err != nil {
		t.Error(err)
	}
}
