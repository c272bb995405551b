package experiment

import (
	"context"
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
	if arms, trials := stored(t, e); len(trials) != 6 || arms[1].Noop || len(arms[1].Kernel) != 1 {
		t.Errorf("%d slices, %+v", len(trials), arms[1].Kernel)
	}
}
