package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
)

// TestStorageMeasureFlags refuses what makes no sense before anything is built, and names layouts apart.
func TestStorageMeasureFlags(t *testing.T) {
	for text, args := range map[string][]string{
		"a layout is empty":                          {"--layout", "one,,stripe4"},
		"raidz2xN, with N volumes, or ceph-rbd":      {"--layout", "mirror"},
		"one stands there twice":                     {"--layout", "one,one"},
		"give 10iops or more":                        {"--volume", "5iops"},
		`"lvn" is none of btrfs, md, lvm, zfs`:       {"--with", "lvn"},
		"md stands there twice":                      {"--with", "md,md"},
		`"jfs" is none of xfs, ext4, zfs`:            {"--fs", "xfs,jfs"},
		"--fs zfs,xfs begins with zfs":               {"--fs", "zfs,xfs", "--mount", "discard"},
		"none, mq-deadline, kyber or bfq":            {"--scheduler", "cfq"},
		"KiB, 0 to 65536":                            {"--read-ahead", "70000"},
		"--recordsize 12K: a power of two":           {"--recordsize", "12K", "--layout", "raidz4"},
		"--recordsize 2K: a power of two":            {"--recordsize", "2K", "--layout", "raidz4"},
		"--recordsize 2M: a power of two":            {"--recordsize", "16K,2M", "--layout", "raidz4"},
		"--recordsize large: a power of two":         {"--recordsize", "large", "--layout", "raidz4"},
		"8K stands there twice":                      {"--recordsize", "8K,8192", "--layout", "raidz4"},
		"one,stripe4,raid10x4 has none: give":        {"--recordsize", "128K"},
		"--layout one,stripe2 has none: give":        {"--recordsize", "16K", "--layout", "one,stripe2"},
		"--layout one,raid10x2 has none: give":       {"--recordsize", "16K,8K", "--layout", "one,raid10x2", "--with", "btrfs,md"},
		"--fio-time 1ms":                             {"--fio-time", "1ms"},
		"--fio-rounds -1":                            {"--fio-rounds", "-1"},
		"nothing is left to measure":                 {"--fio-only", "--fio-rounds", "0"},
		"--size much":                                {"--size", "much"},
		"nobody":                                     {"--provider", "nobody"},
		"--threads 0":                                {"--threads", "0"},
		"--no-volume: not with layouts":              {"--no-volume"},
		"takes no arguments":                         {"stripe4"},
		"--disks names no disk":                      {"--disks", ""},
		"relatime, strictatime, lazytime or discard": {"--mount", "barrier=0"},
		"give --ceph-conf FILE and --pool NAME":      {"--layout", "one,ceph-rbd", "--pool", "mysql"},
		"are for --layout ceph-rbd":                  {"--pool", "mysql"},
		"cannot use the Ceph configuration":          {"--layout", "ceph-rbd", "--pool", "mysql", "--ceph-conf", "/nowhere/ceph.conf"},
	} {
		var out, failed strings.Builder
		a := app{out: &out, err: &failed, home: t.TempDir(), env: func(string) string { return "" }, argv: append([]string{"storage", "measure"}, args...)}
		if code := a.execute(t.Context()); code != exitUsage || !strings.Contains(failed.String(), text) {
			t.Errorf("%v: exit code %d, %s, want %q", args, code, failed.String(), text)
		}
	}
}

// TestStorageMeasureArms: what differs from one volume differs in one thing.
func TestStorageMeasureArms(t *testing.T) {
	f := storageMeasureFlags{layout: "one,stripe4,raid10x4,raidz4", volume: "300iops", with: "btrfs,md", fs: "ext4,xfs", mount: []string{"discard", "relatime"},
		scheduler: []string{"bfq"}, readAhead: []string{"0"}, capped: true}
	f.loadFlags = loadFlags{workload: "oltp_read_write", tables: 1, tableSize: 1000, threads: "2", time: time.Second, randType: "uniform"}
	arms, err := f.arms()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range arms {
		l := a.Layout
		got = append(got, fmt.Sprint(a.Name, " ", l.Kind, l.Volumes, " ", l.Tool, " ", l.Filesystem, " ", l.Mount, l.Scheduler, l.ReadAheadKB))
		if a.Name != l.Name || a.Caps != (result.Caps{IOPS: 300}) || l.Bytes < 512<<20 || l.Bytes%4096 != 0 {
			t.Errorf("%+v: %+v", a, l)
		}
	}
	want := `one one1  ext4 noatime
one-xfs one1  xfs noatime
one-discard one1  ext4 noatime,discard
one-relatime one1  ext4 relatime
one-bfq one1  ext4 noatimebfq
one-read-ahead-0 one1  ext4 noatime0
stripe4 stripe4 btrfs btrfs noatime,nodatacow
stripe4-md stripe4 md xfs noatime
raid10x4 raid104 btrfs btrfs noatime,nodatacow
raid10x4-md raid104 md xfs noatime
raidz4 raidz14 zfs zfs noatime`
	if all := strings.Join(got, "\n"); all != want {
		t.Errorf("%s\nwant\n%s", all, want)
	}
}

// TestStorageMeasureRecords: of each layout of ZFS there is one with each other size of records, which differs in that
// alone; of other layouts there is none.
func TestStorageMeasureRecords(t *testing.T) {
	f := storageMeasureFlags{layout: "one,stripe4,raidz4,raidz2x4", volume: "300iops", with: "btrfs,zfs", fs: "xfs,zfs", recordSize: []string{"8k", "16K", "131072", "1M"}, fioOnly: true}
	f.loadFlags = loadFlags{workload: "oltp_read_write", tables: 1, tableSize: 1000, threads: "2", time: time.Second, randType: "uniform"}
	arms, err := f.arms()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var usual result.Layout
	for _, a := range arms {
		l := *a.Layout
		got = append(got, a.Name)
		if l.RecordSize == "" {
			usual = l
			continue
		}
		if a.Name != usual.Name+"-recordsize-"+l.RecordSize || !strings.Contains(a.Title, "recordsize "+l.RecordSize) {
			t.Errorf("%s, %s: %+v", a.Name, a.Title, l)
		}
		small := l.Kind == "raidz2" && l.RecordSize == "8K"
		if l.Name, l.RecordSize = usual.Name, ""; small {
			l.Bytes -= usual.Bytes / 2
		}
		if !reflect.DeepEqual(l, usual) {
			t.Errorf("%+v\n%+v", l, usual)
		}
	}
	want := "one one-zfs one-zfs-recordsize-8K one-zfs-recordsize-128K one-zfs-recordsize-1M stripe4 stripe4-zfs stripe4-zfs-recordsize-8K stripe4-zfs-recordsize-128K stripe4-zfs-recordsize-1M " +
		"raidz4 raidz4-recordsize-8K raidz4-recordsize-128K raidz4-recordsize-1M raidz2x4 raidz2x4-recordsize-8K raidz2x4-recordsize-128K raidz2x4-recordsize-1M"
	if all := strings.Join(got, " "); all != want {
		t.Errorf("%s\nwant\n%s", all, want)
	}
}

// TestOnDisks gives layouts their disks in order; too few, or one twice, is refused.
func TestOnDisks(t *testing.T) {
	arms := func() (list []lab.Arm) {
		for _, l := range []result.Layout{{Name: "one", Volumes: 1}, {Name: "stripe2", Volumes: 2}} {
			list = append(list, lab.Arm{Name: l.Name, Layout: &l})
		}
		return list
	}
	served := arms()
	notes, err := onDisks(served, []string{"/dev/a", "/dev/b", "/dev/c", "/dev/d"})
	if err != nil || fmt.Sprint(served[0].Layout.Disks, served[1].Layout.Disks) != "[/dev/a] [/dev/b /dev/c]" {
		t.Errorf("%+v, %v", served, err)
	}
	if want := "[not used, as no layout needs it: /dev/d]"; fmt.Sprint(notes) != want {
		t.Errorf("%v, want %s", notes, want)
	}
	for want, disks := range map[string][]string{
		"one 1, stripe2 2, which is 3, and --disks names 2": {"/dev/a", "/dev/b"},
		"a disk without a name":                             {"", "", ""},
		"/dev/a stands there twice":                         {"/dev/a", "/dev/b", "/dev/a"},
	} {
		if _, err := onDisks(arms(), disks); exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestStorageMeasureOfUser: without root nothing is built; the rules are told, and what it needs.
func TestStorageMeasureOfUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run david as another user")
	}
	home := t.TempDir()
	if err := errors.Join(os.Chown(home, stranger, stranger), os.Chmod(filepath.Dir(home), 0o711)); err != nil {
		t.Fatal(err)
	}
	cmd := at{home: home, dir: "/"}.command("storage", "measure")
	cmd.Path, cmd.SysProcAttr = "/proc/self/exe", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not measured, by the rules: stripe4: 4x the reads, 4x the writes", "loop devices, mounts and caps need root"} {
		if !strings.Contains(string(out), want) || cmd.ProcessState.ExitCode() != exitUsage {
			t.Errorf("exit code %d, %s, without %q", cmd.ProcessState.ExitCode(), out, want)
		}
	}
}

// measureSmall measures two layouts in seconds, of data that a pool of 8 MiB does not hold.
var measureSmall = []string{"storage", "measure", "--layout", "one,stripe4,raidz4", "--volume", "300iops", "--server", "mariadb", "--workload", "oltp_read_only",
	"--tables", "1", "--table-size", "60000", "--threads", "8", "--time", "1s", "--warmup", "0s", "--blocks", "3", "--set", "innodb_buffer_pool_size=8M",
	"--fio-time", "300ms", "--fio-rounds", "2"}

// TestStorageMeasureFioOnly needs no server, says that none was measured, and leaves nothing built.
func TestStorageMeasureFioOnly(t *testing.T) {
	needLayouts(t)
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	args := []string{"storage", "measure", "--layout", "one,stripe4,raidz4", "--volume", "300iops", "--server", "/nowhere/mysqld", "--fio-only", "--fio-time", "300ms", "--fio-rounds", "2"}
	out, errOut, code := here.david(t, append(args, "--json")...)
	var doc struct {
		Experiment string
		Says       []string
		Layouts    []report.LayoutRow
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone || len(doc.Layouts) < 2 {
		t.Fatalf("exit code %d, %v, %s\n%s", code, err, out, errOut)
	}
	for _, l := range doc.Layouts {
		if l.Database != nil || len(l.Fio) != 5 || l.Fio[0].Rounds != 2 || l.Fio[0].IOPS <= 0 {
			t.Errorf("%+v", l)
		}
	}
	if says := strings.Join(doc.Says, "; "); !strings.Contains(says, "no database was measured") {
		t.Error(says)
	}
	for _, shown := range [][]string{{"show", doc.Experiment}, {"list"}} {
		if out, errOut, code := here.david(t, shown...); code != exitDone || !strings.Contains(out, doc.Experiment) {
			t.Errorf("david %v: exit code %d, %s\n%s", shown, code, out, errOut)
		}
	}
	if left := layoutsLeft(here.home, nil); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// needLayouts skips where nothing can be built.
func needLayouts(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("building layouts needs root, and btrfs-progs")
	}
}

// TestStorageMeasure measures a stripe of four capped volumes against one: it gives more, in fio and of a load
// that reads from the disk, and nothing of it is left.
func TestStorageMeasure(t *testing.T) {
	needLayouts(t)
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	out, errOut, code := here.david(t, append(measureSmall, "--json")...)
	if code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	var doc struct {
		Says    []string           `json:"says"`
		Notes   []string           `json:"notes"`
		Layouts []report.LayoutRow `json:"layouts"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Layouts) != 2 || len(doc.Says) != 5 || !strings.Contains(strings.Join(doc.Notes, "\n"), "raidz4: unavailable here: ") {
		t.Fatalf("%+v", doc)
	}
	for _, f := range doc.Layouts[1].Fio {
		t.Logf("%s of %d, fsync %t: %.0f, %.2f times one", f.Way, f.Bytes, f.Sync, f.IOPS, f.Ratio)
		if !f.Sync && (f.Ratio < 2 || f.Ratio > 6) {
			t.Errorf("a stripe of 4 gives %.2f times one's %s of %d", f.Ratio, f.Way, f.Bytes)
		}
	}
	database := doc.Layouts[1].Database
	if database == nil || code == exitDone && !(database.Ratio > 1.2) {
		t.Errorf("the database on it: %+v", database)
	}
	t.Logf("exit code %d, the database on it: %+v", code, database)
	if left := layoutsLeft(here.home, nil); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestStorageMeasureOptions measures a server on one volume with other options: they are what the kernel has while it is
// measured, and nothing of them is left.
func TestStorageMeasureOptions(t *testing.T) {
	needLayouts(t)
	if text, err := os.ReadFile("/sys/block/loop0/queue/scheduler"); err != nil || !strings.Contains(string(text), "bfq") {
		t.Skipf("the kernel has no bfq: %s, %v", text, err)
	}
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan map[string]bool)
	go func() { seen <- seenOf(ctx, here.home) }()
	args := append(slices.Clone(measureSmall), "--layout", "one", "--fs", "ext4", "--mount", "relatime", "--scheduler", "bfq", "--json")
	out, errOut, code := here.david(t, args...)
	stop()
	kernel := <-seen
	if code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	var doc struct {
		Layouts []report.LayoutRow `json:"layouts"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range doc.Layouts {
		names = append(names, l.Name)
		if l.Database != nil {
			t.Logf("%s: %.1f transactions/s of %d trials, %s", l.Name, l.Database.TPS, l.Database.Trials, l.Database.Verdict)
		}
		if len(l.Fio) != 5 || l.Database == nil && code == exitDone {
			t.Errorf("%+v", l)
		}
	}
	if got := strings.Join(names, " "); got != "one one-relatime one-bfq" {
		t.Errorf("%s\n%s", got, out)
	}
	for _, want := range []string{"ext4 noatime", "ext4 relatime", "[bfq]", "server on bfq"} {
		if !kernel[want] {
			t.Errorf("%s was not seen: %v", want, kernel)
		}
	}
	if left := layoutsLeft(here.home, nil); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// seenOf watches the volumes of a folder until it is told to end: how they are mounted, which scheduler they have, and
// whether it is there while a server has files open on them.
func seenOf(ctx context.Context, home string) map[string]bool {
	seen := map[string]bool{}
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		mounts, _ := os.ReadFile("/proc/self/mounts")
		servers, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, number := range devicesOf(home) {
			disk, _ := os.Readlink("/sys/dev/block/" + number)
			scheduler, _ := os.ReadFile(filepath.Join("/sys/dev/block", number, "queue/scheduler"))
			bfq := strings.Contains(string(scheduler), "[bfq]")
			seen["[bfq]"] = seen["[bfq]"] || bfq
			for line := range strings.Lines(string(mounts)) {
				words := strings.Fields(line)
				if len(words) < 4 || words[0] != "/dev/"+filepath.Base(disk) {
					continue
				}
				for _, option := range strings.Split(words[3], ",") {
					if strings.HasSuffix(option, "atime") {
						seen[words[2]+" "+option] = true
					}
				}
				seen["server on bfq"] = seen["server on bfq"] || bfq && slices.ContainsFunc(servers, func(cwd string) bool {
					to, err := os.Readlink(cwd)
					return err == nil && strings.HasPrefix(to, words[1]+"/")
				})
			}
		}
	}
	return seen
}

// TestStorageMeasureKilled kills david -9 at random moments of a measurement: the next command leaves nothing of
// it. DAVID_KILLS=50 makes it as thorough as a release needs.
func TestStorageMeasureKilled(t *testing.T) {
	needLayouts(t)
	t.Parallel()
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("DAVID_KILLS")); err == nil {
		kills = n
	}
	here := at{home: sharedHome(t), dir: t.TempDir()}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		moment := time.Duration(random.Int64N(int64(12 * time.Second)))
		cmd, seen := here.spawn(t, append(measureSmall, "--fresh")...)
		time.Sleep(moment)
		devices := devicesOf(here.home)
		journals, err := filepath.Glob(filepath.Join(here.home, "run", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		var folders []string
		for _, j := range journals {
			b, err := os.ReadFile(j)
			var journal struct{ Folders, Mounts []string }
			if err == nil {
				err = json.Unmarshal(b, &journal)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			folders = append(folders, append(journal.Folders, journal.Mounts...)...)
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		cmd.Wait() // it was killed
		out, errOut, code := here.david(t, "list")
		if code != exitDone {
			t.Fatalf("seed %d, killed after %s: exit code %d, %s%s\n%s", seed, moment, code, out, errOut, seen)
		}
		left := append(leftByKilled(here.home), layoutsLeft(here.home, devices)...)
		for _, f := range folders {
			if _, err := os.Lstat(f); err == nil {
				left = append(left, f)
			}
		}
		t.Logf("killed after %s, with %d devices, %d folders and mounts", moment, len(devices), len(folders))
		if len(left) > 0 {
			t.Errorf("seed %d, killed after %s, left: %v", seed, moment, left)
		}
	}
}

// devicesOf are the loop devices that have a layout's file, by their numbers.
func devicesOf(home string) (list []string) {
	found, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range found {
		b, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(b), filepath.Join(home, "layouts")) {
			continue
		}
		if number, err := os.ReadFile(filepath.Join(filepath.Dir(f), "../dev")); err == nil {
			list = append(list, strings.TrimSpace(string(number)))
		}
	}
	return list
}

// layoutsLeft lists files of layouts, and caps on devices that they had.
func layoutsLeft(home string, devices []string) (left []string) {
	for _, pattern := range []string{"layouts/*", "run/*"} {
		found, _ := filepath.Glob(filepath.Join(home, pattern))
		left = append(left, found...)
	}
	limits, _ := filepath.Glob("/sys/fs/cgroup/blkio/blkio.throttle.*_device")
	for _, f := range limits {
		b, err := os.ReadFile(f)
		for _, d := range devices {
			if err == nil && strings.Contains("\n"+string(b), "\n"+d+" 300\n") {
				left = append(left, f+": "+d)
			}
		}
	}
	return left
}
