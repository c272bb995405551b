package experiment

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/rules"
)

// TestKernelArm: an arm's kernel settings hold while it is loaded, and not while the control is; it is no
// no-op, though no variable of its server differs; afterwards the machine is as before.
func TestKernelArm(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the kernel's settings")
	}
	const path = "/proc/sys/net/ipv4/tcp_max_syn_backlog"
	now := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(b))
	}
	e, s := engine(t, "mariadb")
	before := now()
	n, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	value := strconv.Itoa(n + 1)
	slicing(t, e, 3)
	x := e.Store.Experiment()
	x.Design.SkipNoops = true
	if err := e.Store.Amend(x); err != nil {
		t.Fatal(err)
	}
	control := rules.Control(s.Binary.Flavour)
	arm := control
	arm.Name, arm.Kernel = "kernel", []result.KernelSetting{{Name: "net.ipv4.tcp_max_syn_backlog", Value: value}}
	e.Target = &Switched{Sandboxed: s, Alone: func(result.Arm) bool { return false }}
	seen := map[string][]string{}
	e.Report = func(ev Event) {
		if name, _, _ := strings.Cut(ev.Text, ","); strings.Contains(ev.Text, "measuring,") && !slices.Contains(seen[name], now()) {
			seen[name] = append(seen[name], now())
		}
	}
	load := small
	load.Seconds = 1
	if err := e.RunSlices(context.Background(), []result.Arm{control, arm}, []result.Workload{load}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen["kernel"], []string{value}) || !slices.Equal(seen["control"], []string{before}) || now() != before {
		t.Errorf("%v, and %s afterwards; before %s", seen, now(), before)
	}
	started := map[int]int{} // servers, by incarnation: a server's first slice has what starting it took
	arms, trials := stored(t, e)
	for _, one := range trials {
		if one.Overhead.Start > 0 {
			started[one.Incarnation]++
		}
	}
	for n, servers := range started {
		if servers != 1 {
			t.Errorf("incarnation %d: both arms were to share a server, and %d were started", n, servers)
		}
	}
	if len(started) == 0 || len(trials) != 6 || arms[1].Noop || len(arms[1].Kernel) != 1 {
		t.Errorf("%d slices, %+v", len(trials), arms[1].Kernel)
	}
}

// TestSwitched: arms whose settings a running server follows share one, each with its own settings while it is loaded;
// an arm with one that counts at the start has its own; the last one to end takes the shared one down.
func TestSwitched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the kernel's settings")
	}
	_, s := engine(t, "mariadb")
	ctx := t.Context()
	control := rules.Control(s.Binary.Flavour)
	arm, own := control, control
	arm.Name, arm.Kernel = "kernel", []result.KernelSetting{{Name: "net.ipv4.tcp_keepalive_probes", Value: "8"}}
	own.Name = "own"
	target := &Switched{Sandboxed: s, Alone: func(a result.Arm) bool { return a.Name == "own" }}
	probes := func() string {
		b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_keepalive_probes")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := probes()
	var up []Session
	for _, a := range []result.Arm{control, arm, own} {
		session, err := target.Begin(ctx, a, small, t.TempDir()+"/server.log")
		if err != nil {
			t.Fatal(err)
		}
		up = append(up, session)
	}
	if up[0].PID() != up[1].PID() || up[0].PID() == up[2].PID() {
		t.Errorf("processes %d, %d, %d", up[0].PID(), up[1].PID(), up[2].PID())
	}
	if up[0].Cost().Start <= 0 || up[1].Cost().Start != 0 {
		t.Errorf("starts of %v and %v s: one of them was none", up[0].Cost().Start, up[1].Cost().Start)
	}
	var seen []string
	for _, one := range []Session{up[1], up[0], up[1]} {
		if err := one.Freeze(false); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, probes())
		if err := one.Freeze(true); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []string{"8", before, "8"}) || probes() != before {
		t.Errorf("%v, and %s afterwards; before %s", seen, probes(), before)
	}
	if err := errors.Join(up[1].Freeze(false), up[1].End(ctx)); err != nil || up[0].Alive() != nil || probes() != before {
		t.Errorf("after the first of two has ended: %v, %v, %s", err, up[0].Alive(), probes())
	}
	for _, one := range []Session{up[0], up[2]} {
		if err := errors.Join(one.Freeze(false), one.End(ctx)); err != nil || one.Alive() == nil {
			t.Errorf("%v, alive: %v", err, one.Alive() == nil)
		}
	}
}
