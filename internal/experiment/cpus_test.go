package experiment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/netpath"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/workload"
)

func TestSetOf(t *testing.T) {
	var want, other unix.CPUSet
	want.Set(0)
	want.Set(65)
	other.Set(3)
	if got, err := setOf("0,65", other); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := setOf("", other); err != nil || got != other {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"x", "-1", "0,", "0-1"} {
		if _, err := setOf(bad, other); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestFrom: what is started runs on the CPUs of the set, and the thread does not afterwards.
func TestFrom(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := cpusOf(0)
	if err != nil {
		t.Fatal(err)
	}
	var first unix.CPUSet
	for cpu := 0; first.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			first.Set(cpu)
		}
	}
	failed := errors.New("failed")
	seen := unix.CPUSet{}
	err = from(first, func(fn func() error) error { return fn() })(func() (err error) {
		if seen, err = cpusOf(0); err != nil {
			return err
		}
		return failed
	})
	after, afterErr := cpusOf(0)
	if !errors.Is(err, failed) || afterErr != nil || seen != first || after != before {
		t.Errorf("%v %v: %v meanwhile, want %v; %v afterwards, want %v", err, afterErr, seen, first, after, before)
	}
}

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
	type placed struct{ client, server unix.CPUSet }
	want := []placed{{own, own}}
	for i := range paths[1:] {
		p, err := netpath.Place(paths[1+i])
		if err != nil {
			t.Fatal(err)
		}
		paths[1+i] = p
		client, clientErr := setOf(p.ClientCPUs, own)
		server, serverErr := setOf(p.ServerCPUs, own)
		if clientErr != nil || serverErr != nil {
			t.Fatal(clientErr, serverErr)
		}
		want = append(want, placed{client, server})
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
		load := up[n].Load()
		if restricted := paths[n].CPUs != ""; restricted != (load.CPUs > 0) || restricted && load.CPUs != want[n].client.Count() {
			t.Errorf("%s: the client has %d CPUs", netpath.Name(paths[n]), load.CPUs)
		}
		if got := client(t, load); got != want[n].client {
			t.Errorf("%s: the client runs on %v, want %v", netpath.Name(paths[n]), got, want[n].client)
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

// client returns the set of a program that is started as a load would be.
func client(t *testing.T, load workload.Target) (set unix.CPUSet) {
	cmd := exec.Command("sleep", "60")
	if err := load.Inside(cmd.Start); err != nil {
		t.Fatal(err)
	}
	set, err := cpusOf(cmd.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	cmd.Process.Kill()
	cmd.Wait() // it was killed
	return set
}
