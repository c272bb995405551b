package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"david/internal/host"
	"david/internal/result"
)

var some = result.Caps{CPUs: 1.9, Memory: 512<<20 + 1, IOPS: 1000, Bandwidth: 16 << 20}

// write makes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedV2 is a v2 hierarchy as files in a folder, with david in system.slice/david.service.
func recordedV2(t *testing.T, controllers string) (root string, members []host.Membership) {
	root = t.TempDir()
	write(t, root, map[string]string{
		"cgroup.controllers": controllers + "\n", "cgroup.subtree_control": "cpu memory pids\n",
		"system.slice/cgroup.subtree_control": "memory pids\n", "system.slice/david.service/cgroup.subtree_control": "\n",
	})
	return root, []host.Membership{{Controllers: []string{"name=systemd"}, Mount: "/nowhere", Path: "."}, {Mount: root, Path: "system.slice/david.service"}}
}

// TestPlanV2 puts the group beside david's, and finds what has to be enabled above it.
func TestPlanV2(t *testing.T) {
	root, members := recordedV2(t, "cpuset cpu io memory pids")
	g := &Group{Caps: some, Device: Device{7, 3}}
	if v1, err := g.planV1(members, "david-1"); v1 || err == nil {
		t.Errorf("a v1 controller was found: %v", err)
	}
	if err := g.planV2(members, "david-1"); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "system.slice/david-1"); g.folder("cpu") != want {
		t.Errorf("folder %s, want %s", g.folder("cpu"), want)
	}
	if got, want := fmt.Sprint(g.Enabled), fmt.Sprintf("[{%s [io]} {%s/system.slice [cpu io]}]", root, root); got != want {
		t.Errorf("to enable: %s, want %s", got, want)
	}
	if err := g.makeV2(); err != nil { // plain files: it is seen what is written
		t.Fatal(err)
	}
	if err := g.readBack(); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{"cgroup.subtree_control": "+cpu +memory +io", "system.slice/david-1/cpu.max": "190000 100000", "system.slice/david-1/memory.max": "536870912"} {
		if b, err := os.ReadFile(filepath.Join(root, file)); err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s holds %q (%v), want %q", file, b, err, want)
		}
	}
}

// TestNoController names what is missing.
func TestNoController(t *testing.T) {
	_, members := recordedV2(t, "cpu memory")
	g := &Group{Caps: some}
	if err := g.planV2(members, "david-1"); err == nil || !strings.Contains(err.Error(), "no io controller") {
		t.Errorf("error %v", err)
	}
	if err := g.planV2(members[:1], "david-1"); err == nil || !strings.Contains(err.Error(), "no v2 hierarchy") {
		t.Errorf("error %v", err)
	}
}

// TestReadBack does not believe a kernel that took another value.
func TestReadBack(t *testing.T) {
	g := &Group{Caps: result.Caps{CPUs: 2}, Version: 2, Root: t.TempDir(), Paths: map[string]string{"": "x"}}
	write(t, g.folder(""), map[string]string{"cpu.max": "150000 100000\n"})
	if err := g.readBack(); err == nil || !strings.Contains(err.Error(), "200000 100000") {
		t.Errorf("error %v", err)
	}
}

func TestLimits(t *testing.T) {
	for version, want := range map[int][]string{
		1: {"/r/blkio/blkio.throttle.read_iops_device 7:3 1000|7:3 0", "/r/blkio/blkio.throttle.write_iops_device 7:3 1000|7:3 0",
			"/r/blkio/blkio.throttle.read_bps_device 7:3 16777216|7:3 0", "/r/blkio/blkio.throttle.write_bps_device 7:3 16777216|7:3 0"},
		2: {"/r/g/io.max 7:3 riops=1000|7:3 riops=max", "/r/g/io.max 7:3 wiops=1000|7:3 wiops=max",
			"/r/g/io.max 7:3 rbps=16777216|7:3 rbps=max", "/r/g/io.max 7:3 wbps=16777216|7:3 wbps=max"},
	} {
		g := &Group{Caps: some, Version: version, Device: Device{7, 3}, Root: "/r", Paths: map[string]string{"": "g", "blkio": "."}}
		var got []string
		for _, l := range g.limits() {
			got = append(got, l.path+" "+l.on+"|"+l.off)
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: %q", version, got)
		}
	}
}

// TestLimitsOfSeveral: each device of a layout is under the caps by itself.
func TestLimitsOfSeveral(t *testing.T) {
	for version, want := range map[int][]string{
		1: {"blkio.throttle.read_iops_device 7:3 1000", "blkio.throttle.write_iops_device 7:3 1000", "blkio.throttle.read_iops_device 7:9 1000", "blkio.throttle.write_iops_device 7:9 1000"},
		2: {"io.max 7:3 riops=1000", "io.max 7:3 wiops=1000", "io.max 7:9 riops=1000", "io.max 7:9 wiops=1000"},
	} {
		g := &Group{Caps: result.Caps{IOPS: 1000}, Version: version, Device: Device{7, 3}, Beside: []Device{{7, 9}}, Root: "/r", Paths: map[string]string{"": "g", "blkio": "."}}
		var got []string
		for _, l := range g.limits() {
			got = append(got, filepath.Base(l.path)+" "+l.on)
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: %q", version, got)
		}
	}
}

func TestParseLimit(t *testing.T) {
	const v1 = "8:0 5\n7:3 1000\n"
	const v2 = "8:0 rbps=1 wbps=max riops=max wiops=max\n7:3 rbps=max wbps=2097152 riops=1000 wiops=max\n"
	for _, c := range []struct {
		text, key string
		want      int64
	}{{v1, "", 1000}, {"", "", 0}, {"7:30 1\n", "", 0}, {v2, "riops", 1000}, {v2, "wbps", 2097152}, {v2, "rbps", 0}, {v2, "", 0}} {
		if got, err := parseLimit(c.text, "7:3", c.key); err != nil || got != c.want {
			t.Errorf("%q %s: %d, %v, want %d", c.text, c.key, got, err, c.want)
		}
	}
	for _, bad := range []string{"7:3 x", "7:3 -1", "7:3 99999999999999999999"} {
		if _, err := parseLimit(bad, "7:3", ""); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	f.Add("7:3 1000\n", "")
	f.Add("7:3 rbps=max wbps=2097152 riops=1000 wiops=max\n", "riops")
	f.Fuzz(func(t *testing.T, text, key string) {
		if n, err := parseLimit(text, "7:3", key); err == nil && n < 0 {
			t.Errorf("%q: %d", text, n)
		}
	})
}

// made plans and makes real groups.
func made(t *testing.T, caps result.Caps) *Group {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup needs root")
	}
	g, err := Plan(fmt.Sprintf("david-test-%d", os.Getpid()), caps, Device{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gone(t, g) })
	return g
}

// gone removes the groups, and fails the test where one is left.
func gone(t *testing.T, g *Group) {
	t.Helper()
	if err := errors.Join(g.Remove(), g.Remove()); err != nil { // twice: nothing there is no error
		t.Error(err)
	}
	for c := range g.Paths {
		if _, err := os.Stat(g.folder(c)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", g.folder(c), err)
		}
	}
}

// TestStart starts a process in real groups: it begins inside, and david stays outside.
func TestStart(t *testing.T) {
	g := made(t, result.Caps{CPUs: 0.5, Memory: 300 << 20})
	before, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command("cat", "/proc/self/cgroup")
	cmd.Stdout = &out
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), fmt.Sprintf("/david-test-%d", os.Getpid())); n != len(g.Paths) {
		t.Errorf("it is in %d of the %d groups:\n%s", n, len(g.Paths), out.String())
	}
	if after, err := os.ReadFile("/proc/thread-self/cgroup"); err != nil || string(after) != string(before) {
		t.Errorf("david moved: %s, %v", after, err)
	}
}

// TestVerify has a cap that holds, and one that is set wider than it is said to be.
func TestVerify(t *testing.T) {
	g := made(t, result.Caps{CPUs: 0.5, Memory: 300 << 20})
	before, err := os.ReadFile(g.weight())
	if err != nil {
		t.Fatal(err)
	}
	weight := strings.TrimSpace(string(before))
	busy(t) // as other tests beside this one may make it
	notes, err := g.Verify(context.Background())
	if err != nil || len(notes) != 2 || strings.Contains(notes[1], "not held back") {
		t.Fatalf("%q, %v", notes, err)
	}
	if s, err := g.Stat(); err != nil || s.Periods == 0 || s.Throttled == 0 || s.CPU == 0 {
		t.Errorf("nothing was counted: %+v, %v", s, err)
	}
	g.Caps.CPUs = 0.2
	if _, err := g.Verify(context.Background()); !errors.Is(err, ErrCap) {
		t.Errorf("a cap that does not hold: %v", err)
	}
	if got, err := os.ReadFile(g.weight()); err != nil || strings.TrimSpace(string(got)) != weight {
		t.Errorf("the weight is left as %q, was %s: %v", got, weight, err)
	}
}

// busy keeps the machine busy until the test ends: each CPU has two loops, in sessions of their own, as the
// scheduler may share the CPU out by session.
func busy(t *testing.T) {
	runtime.LockOSThread() // the loops end with the thread that started them
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
}

// TestKills counts a process that the kernel kills for want of memory.
func TestKills(t *testing.T) {
	g := made(t, result.Caps{Memory: 64 << 20})
	cmd := exec.Command("sh", "-c", "head -c 200m /dev/zero | tail")
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if s, err := g.Stat(); err != nil || s.Kills == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestImpossible asks for a quota the kernel does not take.
func TestImpossible(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup needs root")
	}
	g, err := Plan(fmt.Sprintf("david-test-%d", os.Getpid()), result.Caps{CPUs: math.MaxInt32 * 1e3}, Device{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Make(); !errors.Is(err, ErrCap) || !strings.Contains(err.Error(), "CPU") {
		t.Errorf("error %v", err)
	}
	gone(t, g)
}

// TestRealV2 makes a group in the real v2 hierarchy, where that has the controllers.
func TestRealV2(t *testing.T) {
	members, err := host.Memberships()
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{Caps: result.Caps{CPUs: 0.5, Memory: 300 << 20}}
	if err := g.planV2(members, fmt.Sprintf("david-test-%d", os.Getpid())); err != nil || os.Geteuid() != 0 {
		t.Skipf("needs root and a v2 hierarchy with the controllers: %v", err)
	}
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	defer gone(t, g)
	if notes, err := g.Verify(context.Background()); err != nil {
		t.Errorf("%q, %v", notes, err)
	}
}

// TestCheck lets what Plan plans here pass, and nothing that Remove should not touch.
func TestCheck(t *testing.T) {
	plan := func() *Group {
		g, err := Plan("david-1-1", result.Caps{CPUs: 1, Memory: 64 << 20}, Device{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if err := plan().Check("david-1"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Group){
		"of another name":  func(g *Group) { set(g, "system.slice") },
		"another david's":  func(g *Group) { set(g, "david-2-1") },
		"above the mount":  func(g *Group) { set(g, "../david-1-1") },
		"a root group":     func(g *Group) { set(g, ".") },
		"no hierarchy":     func(g *Group) { g.Root = t.TempDir() },
		"no controller":    func(g *Group) { g.Paths["../../tmp"] = "david-1-1" },
		"no version":       func(g *Group) { g.Version = 3 },
		"folders enabled":  func(g *Group) { g.Enabled = []Enabled{{"/etc", []string{"cpu"}}} },
		"not controllers":  func(g *Group) { g.Version, g.Enabled = 2, []Enabled{{g.Root, []string{"cpu\n-memory"}}} },
		"folders by a dot": func(g *Group) { g.Enabled = []Enabled{{g.Root + "/../../etc", []string{"cpu"}}} },
	} {
		g := plan()
		change(g)
		if err := g.Check("david-1"); err == nil {
			t.Errorf("%s: %+v passes", name, g)
		}
	}
}

// set gives every group of g that path.
func set(g *Group, path string) {
	for c := range g.Paths {
		g.Paths[c] = path
	}
}
