package experiment

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/netpath"
	"david/internal/result"
	"david/internal/rules"
)

// TestApart: an arm has server and client run where its path says while it is loaded, and no other arm has.
func TestApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	own, err := cpusOf(0)
	if err != nil {
		t.Fatal(err)
	}
	if own.Count() < 2 {
		t.Skip("one CPU")
	}
	_, s := engine(t, "mariadb")
	paths := []result.Path{{Kind: netpath.Host}, {Kind: netpath.Host, CPUs: netpath.Apart}, {Kind: netpath.Unix, CPUs: netpath.Together}}
	type placed struct {
		client []int
		server unix.CPUSet
	}
	want := []placed{{nil, own}}
	for i := range paths[1:] {
		p, err := netpath.Place(paths[1+i])
		if err != nil {
			t.Fatal(err)
		}
		paths[1+i] = p
		client, clientErr := p.ClientCPUs.Numbers()
		server, serverErr := p.ServerCPUs.Numbers()
		if clientErr != nil || serverErr != nil {
			t.Fatal(clientErr, serverErr)
		}
		want = append(want, placed{client, setOf(server, own)})
	}
	network, err := netpath.Build(paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	target := &Networked{Sandboxed: s, Net: network}
	var up []Session
	for _, p := range paths {
		arm := rules.Control(s.Binary.Flavour)
		arm.Path = p
		session, err := target.Begin(t.Context(), arm, small, t.TempDir()+"/server.log")
		if err != nil {
			t.Fatal(err)
		}
		up = append(up, session)
	}
	for _, n := range []int{0, 1, 2, 0} {
		if err := up[n].Freeze(false); err != nil {
			t.Fatal(err)
		}
		if got := threads(t, up[n].PID()); len(got) != 1 || got[0] != want[n].server {
			t.Errorf("%s: the server's threads run on %v, want %v", netpath.Name(paths[n]), got, want[n].server)
		}
		if load := up[n].Load(); !slices.Equal(load.CPUs, want[n].client) {
			t.Errorf("%s: the client is to run on %v, want %v", netpath.Name(paths[n]), load.CPUs, want[n].client)
		}
		if err := up[n].Freeze(true); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range up {
		if err := errors.Join(one.Freeze(false), one.End(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// threads returns the sets that the threads of a process have, each once.
func threads(t *testing.T, pid int) (sets []unix.CPUSet) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		one, err := cpusOf(tid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(sets, one) {
			sets = append(sets, one)
		}
	}
	return sets
}
