package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/cgroup"
	"david/internal/mycnf"
	"david/internal/process"
	"david/internal/result"
	"david/internal/testserver"
)

// needRoot skips where nothing can be capped.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("cgroups and a volume need root")
	}
}

// own is the place of a workspace's own data.
func own(t *testing.T, w *Workspace) place {
	t.Helper()
	p, err := w.place("")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// capsLeft lists what is left of a workspace's caps: groups, and limits of its device.
func capsLeft(t *testing.T, name string, d cgroup.Device) (left []string) {
	t.Helper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // groups of others come and go
		}
		limits, _ := filepath.Match("blkio.throttle.*_device", e.Name())
		switch {
		case e.IsDir() && strings.HasPrefix(e.Name(), name):
			left = append(left, path)
		case limits || e.Name() == "io.max":
			if b, err := os.ReadFile(path); err == nil && strings.Contains("\n"+string(b), "\n"+d.String()+" ") {
				left = append(left, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// burn keeps two of the server's threads busy until ctx ends.
func burn(ctx context.Context, t *testing.T, s *Server) {
	for range 2 {
		c := connect(t, s)
		go c.Exec(ctx, "DO BENCHMARK(4000000000, SHA2('x', 512))")
	}
}

// TestCaps runs servers that want more than their caps.
func TestCaps(t *testing.T) {
	needRoot(t)
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			w := open(t, newHome(t), Options{Volume: true})
			g := template(t, w, key(testserver.Find(t, flavour)))
			t.Run("busy", func(t *testing.T) { testCaps(t, w, g) })
			t.Run("greedy", func(t *testing.T) { testMemoryCap(t, w, g) })
		})
	}
}

// testCaps has a busy server stay below its caps, of which nothing is left when it has stopped.
func testCaps(t *testing.T, w *Workspace, g Template) {
	caps := result.Caps{CPUs: 0.5, Memory: 1 << 30, IOPS: 1000, Bandwidth: 50e6}
	s := start(t, w, g, StartOptions{Caps: caps})
	defer stop(t, s)
	if left := capsLeft(t, filepath.Base(w.run), w.device); len(left) < 1 {
		t.Errorf("groups: %v", left)
	}
	testSecond(t, w, g, s, caps)
	testBusy(t, s, caps.CPUs)
	if err := s.Throttle(true); err != nil || !w.limited(t) {
		t.Errorf("the limits are not there (%v)", err)
	}
	if err := s.Throttle(false); err != nil || w.limited(t) {
		t.Errorf("the limits are still there (%v)", err)
	}
	if err := s.Throttle(true); err != nil || !w.limited(t) {
		t.Errorf("the limits are not there (%v)", err)
	}
	stop(t, s)
	if left := capsLeft(t, filepath.Base(w.run), w.device); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if entries, _ := os.ReadDir(filepath.Join(w.data, "clones")); len(entries) > 0 {
		t.Errorf("%d clones are left", len(entries))
	}
}

// testSecond has another server with capped I/O beside the first: only one of them at a time is held back, as
// they share the volume. One that is killed under its caps leaves the place to the other.
func testSecond(t *testing.T, w *Workspace, g Template, first *Server, caps result.Caps) {
	t.Helper()
	second := start(t, w, g, StartOptions{Caps: caps})
	defer stop(t, second)
	if err := second.Throttle(true); err != nil {
		t.Fatal(err)
	}
	if err := first.Throttle(true); !errors.Is(err, cgroup.ErrCap) {
		t.Errorf("the I/O of two at a time: %v", err)
	}
	if err := first.Throttle(false); err != nil || !w.limited(t) {
		t.Errorf("the first one lifted the second one's limits (%v)", err)
	}
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	stop(t, second)
	if err := first.Throttle(true); err != nil {
		t.Errorf("after the second one was killed: %v", err)
	}
	if err := first.Throttle(false); err != nil || w.limited(t) {
		t.Errorf("the limits are still there (%v)", err)
	}
}

// limited tells whether the volume's device has limits.
func (w *Workspace) limited(t *testing.T) bool {
	return len(capsLeft(t, "no such group", w.device)) > 0
}

// prefer gives a server CPU time before others, so that its cap is what holds it back on a busy machine too.
func prefer(t *testing.T, s *Server) {
	t.Helper()
	weighted := false
	for _, dir := range capsLeft(t, filepath.Base(s.w.run), s.w.device) {
		for file, most := range map[string]string{"cpu.shares": "262144", "cpu.weight": "10000"} {
			path := filepath.Join(dir, file)
			if _, err := os.Stat(path); err != nil {
				continue
			}
			if err := os.WriteFile(path, []byte(most), 0); err != nil {
				t.Fatal(err)
			}
			weighted = true
		}
	}
	if !weighted {
		t.Error("the server's group has no weight")
	}
}

// testBusy has a server use all that its cap on CPU lets it, and no more. On a busy machine it may not even
// get that much, so it is looked at until the cap was what held it back.
func testBusy(t *testing.T, s *Server, cpus float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	burn(ctx, t, s)
	prefer(t, s)
	for tries := 10; ; tries-- {
		used, held := heldBack(t, s)
		if used > 1.15*cpus {
			t.Errorf("under a cap of %g CPUs the server used %.2f", cpus, used)
		}
		if held > 0 && used >= cpus/3 {
			return
		}
		if tries == 0 {
			t.Errorf("under a cap of %g CPUs the server used %.2f, held back in %d periods", cpus, used, held)
			return
		}
	}
}

// heldBack returns the CPU a server used in two seconds, in cores, and the periods in which its cap held it
// back.
func heldBack(t *testing.T, s *Server) (used float64, periods uint64) {
	t.Helper()
	before, err := s.CapStat()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	time.Sleep(2 * time.Second)
	after, err := s.CapStat()
	if err != nil {
		t.Fatal(err)
	}
	return (after.CPU - before.CPU) / time.Since(began).Seconds(), uint64(after.Periods - before.Periods)
}

// testMemoryCap has the kernel end a server that wants more than its cap: the error says so.
func testMemoryCap(t *testing.T, w *Workspace, g Template) {
	settings := []mycnf.Setting{{Name: "max_allowed_packet", Value: "1G"}}
	s := start(t, w, g, StartOptions{Settings: settings, Caps: result.Caps{Memory: 700 << 20}})
	defer stop(t, s)
	if err := connect(t, s).Exec(context.Background(), "DO LENGTH(REPEAT('x', 1000000000))"); err == nil {
		t.Error("the server had more memory than its cap")
	}
	<-s.child.done
	if err := s.Alive(); err == nil || !strings.Contains(err.Error(), "cap on memory of 700 MiB") {
		t.Errorf("error %v", err)
	}
	stop(t, s)
	if left := capsLeft(t, filepath.Base(w.run), w.device); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestIOCap holds direct and buffered writes below a cap.
func TestIOCap(t *testing.T) {
	needRoot(t)
	w := open(t, newHome(t), Options{Volume: true})
	caps := result.Caps{IOPS: 1000}
	notes, err := w.VerifyCaps(context.Background(), caps) // direct
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "counts reads and writes apart") {
		t.Fatalf("%q, %v", notes, err)
	}
	t.Log(notes)
	g, err := w.group(caps, own(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Throttle(true); err != nil {
		t.Fatal(err)
	}
	if rate := w.buffered(t, g); rate > mostIO*1000 || rate < 300 {
		t.Errorf("%.0f buffered writes/s under a cap of 1000", rate)
	}
	if err := w.ungroup(g); err != nil {
		t.Error(err)
	}
	if left := capsLeft(t, filepath.Base(w.run), w.device); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// buffered writes through the page cache for some seconds and counts what reaches the device.
func (w *Workspace) buffered(t *testing.T, g *cgroup.Group) (perSecond float64) {
	t.Helper()
	dir, err := os.MkdirTemp(w.data, "probe-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("fio", "--name=w", "--thread", "--rw=randwrite", "--bs=16k", "--size=256m", "--ioengine=psync", "--io_size=64m",
		"--end_fsync=1", "--filename="+filepath.Join(dir, "f"))
	before, began := w.written(t), time.Now()
	var out strings.Builder
	cmd.Stdout = &out
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return float64(w.written(t)-before) / time.Since(began).Seconds()
}

// written returns how many writes the volume's device has completed.
func (w *Workspace) written(t *testing.T) (n int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%s/stat", w.device))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(strings.Fields(string(b))[4], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNoVolume refuses to cap I/O where others would be hit.
func TestNoVolume(t *testing.T) {
	w := open(t, newHome(t), Options{NoVolume: true})
	if _, err := w.VerifyCaps(context.Background(), result.Caps{IOPS: 1000}); !errors.Is(err, cgroup.ErrCap) || !strings.Contains(err.Error(), "volume") {
		t.Errorf("error %v", err)
	}
}

// TestHelperCapped is no test: it holds a capped server until it is killed.
func TestHelperCapped(t *testing.T) {
	home := os.Getenv("DAVID_TEST_CAPPED")
	if home == "" {
		t.Skip("started by TestReapCaps")
	}
	w, err := Open(context.Background(), home, Options{Need: 400 << 20, Volume: true})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, w, template(t, w, key(testserver.Find(t, "mariadb"))), StartOptions{Caps: result.Caps{CPUs: 0.5, Memory: 1 << 30, IOPS: 1000}})
	if err := s.Throttle(true); err != nil {
		t.Fatal(err)
	}
	fmt.Println("holding", s.PID(), w.run, w.device.Major, w.device.Minor)
	time.Sleep(time.Hour)
}

// TestReapCaps kills a david with a capped server: Reap removes its groups and limits.
func TestReapCaps(t *testing.T) {
	needRoot(t)
	home := newHome(t)
	cmd, line := helper(t, home, "TestHelperCapped", "holding ", "DAVID_TEST_CAPPED="+home)
	var pid int
	var run string
	var d cgroup.Device
	if _, err := fmt.Sscan(line, &pid, &run, &d.Major, &d.Minor); err != nil {
		t.Fatal(err)
	}
	if left := capsLeft(t, filepath.Base(run), d); len(left) < 2 {
		t.Errorf("groups and limits: %v", left)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if err := Reap(home, func(s string) { t.Log(s) }); err != nil {
		t.Error(err)
	}
	if _, err := process.StartTime(pid); err == nil {
		t.Error("the server is still there")
	}
	if left := capsLeft(t, filepath.Base(run), d); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
