package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// flushesOf looks at a recorded machine; zfs is what its tool would print.
func flushesOf(t *testing.T, files map[string]string, folder, zfs string) Flushes {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if link, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(link, file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(_ context.Context, dataset string) (string, error) {
		if zfs == "" {
			return "", errors.New("no zfs here")
		}
		return strings.ReplaceAll(zfs, "DATASET", dataset), nil
	}
	w := flushWalk{ctx: t.Context(), m: factSource{root: root}, ask: ask, seen: map[string]bool{}}
	if err := w.folder(folder); err != nil {
		t.Fatal(err)
	}
	return w.Flushes
}

// walked does the same, and gives the findings as lines.
func walked(t *testing.T, files map[string]string, folder, zfs string) (found, unseen string) {
	t.Helper()
	f := flushesOf(t, files, folder, zfs)
	for _, u := range f.LeftOut {
		found += strings.TrimSuffix(map[bool]string{true: "", false: "? "}[u.Sure]+u.String(), "\n") + "\n"
	}
	return found, strings.Join(f.Unseen, "\n")
}

const (
	rootMount = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
	sda       = "-> ../devices/ata1/sda"
)

// disks is a machine with a disk sda of the kernel's names, its root on sda1.
func disks(more map[string]string) map[string]string {
	files := map[string]string{
		"proc/self/mountinfo":                    rootMount,
		"sys/dev/block/8:1":                      "-> ../../devices/ata1/sda/sda1",
		"sys/class/block/sda1":                   "-> ../../devices/ata1/sda/sda1",
		"sys/class/block/sda":                    "-> ../../devices/ata1/sda",
		"sys/devices/ata1/sda/sda1/partition":    "1",
		"sys/devices/ata1/sda/queue/write_cache": "write back\n",
		"sys/devices/ata1/sda/queue/rotational":  "1\n",
		"sys/devices/ata1/sda/device/model":      "SPINNER 4000\n",
		"sys/block/sda":                          sda,
	}
	for path, text := range more {
		files[path] = text
	}
	return files
}

func TestUnflushedFilesystems(t *testing.T) {
	mount := func(line string) map[string]string {
		return disks(map[string]string{"proc/self/mountinfo": rootMount + line + "\n"})
	}
	for _, c := range []struct {
		files map[string]string
		zfs   string
		want  []string // parts of the lines found, in order
	}{
		{files: disks(nil)},
		{files: mount("30 22 8:1 / /data rw - ext4 /dev/sda1 rw,nobarrier"), want: []string{"mount /data (ext4, /dev/sda1): nobarrier: no flush"}},
		{files: mount("30 22 8:1 / /data rw,barrier=0 - ext3 /dev/sda1 rw"), want: []string{"barrier=0: no flush"}},
		{files: mount("30 22 8:1 / /data rw - ext4 /dev/sda1 rw,barrier=1,data=ordered")},
		{files: mount("30 22 8:1 / /data rw - f2fs /dev/sda1 rw,fsync_mode=nobarrier"), want: []string{"does not flush the device's cache"}},
		{files: mount("30 22 0:30 / /data rw - overlay overlay rw,lowerdir=/a,upperdir=/nowhere/b,workdir=/c,volatile"), want: []string{"every fsync is left out"}},
		{files: mount("30 22 0:30 / /data rw - tmpfs tmpfs rw,size=1g"), want: []string{"it is memory"}},
		{files: mount("30 22 0:44 / /data rw,relatime - zfs tank/mysql rw,xattr,noacl"), zfs: "sync\tstandard\nlogbias\tlatency\n"},
		{files: mount("30 22 0:44 / /data rw,relatime - zfs tank/mysql rw,xattr,noacl"), zfs: "sync\tdisabled\nlogbias\tthroughput\n",
			want: []string{"mount /data (zfs, tank/mysql): sync=disabled: fsync returns at once", "? mount /data (zfs, tank/mysql): logbias=throughput"}},
		{files: disks(map[string]string{"proc/self/mountinfo": rootMount + "30 22 0:44 / /data rw - zfs tank/mysql rw\n",
			"sys/module/zfs/parameters/zfs_nocacheflush": "1\n"}), zfs: "sync\tstandard\n", want: []string{"zfs_nocacheflush=1"}},
	} {
		found, _ := walked(t, c.files, "/data/mysql", c.zfs)
		lines := strings.Split(strings.TrimSpace(found), "\n")
		if found == "" {
			lines = nil
		}
		if len(lines) != len(c.want) {
			t.Errorf("%s: found %q, want %q", c.files["proc/self/mountinfo"], lines, c.want)
			continue
		}
		for i, part := range c.want {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%s: found %q, want %q", c.files["proc/self/mountinfo"], lines[i], part)
			}
		}
	}
	if _, unseen := walked(t, mount("30 22 0:44 / /data rw - zfs tank/mysql rw"), "/data", ""); !strings.Contains(unseen, "tank/mysql: no zfs here") {
		t.Errorf("without the tool nothing is said: %q", unseen)
	}
}

func TestUnflushedDisks(t *testing.T) {
	const through = "write through\n"
	cache := "sys/devices/ata1/sda/queue/write_cache"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"cache flushed": {disks(nil), ""},
		"overridden": {disks(map[string]string{cache: through, "sys/devices/ata1/sda/device/scsi_disk/0:0:0:0/cache_type": "write back\n"}),
			"disk sda: it says that it has a volatile write cache"},
		"rotating": {disks(map[string]string{cache: through, "sys/devices/ata1/sda/device/scsi_disk/0:0:0:0/cache_type": through}),
			"? disk sda: SPINNER 4000 rotates"},
		"flash":   {disks(map[string]string{cache: through, "sys/devices/ata1/sda/queue/rotational": "0\n"}), ""},
		"virtual": {disks(map[string]string{cache: through, "sys/devices/ata1/sda/device/model": ""}), ""},
		"in a volume": {disks(map[string]string{cache: through, "sys/devices/ata1/sda/device/scsi_disk/0:0:0:0/cache_type": "write back\n",
			"sys/dev/block/8:1": "-> ../../devices/virtual/block/dm-0", "sys/devices/virtual/block/dm-0/slaves/sda1/x": "", "sys/block/dm-0": "-> ../devices/virtual/block/dm-0"}),
			"disk sda: it says that"},
		"behind a loop device": {disks(map[string]string{"sys/dev/block/7:0": "-> ../../devices/virtual/block/loop0", "sys/block/loop0": "-> ../devices/virtual/block/loop0",
			"sys/devices/virtual/block/loop0/loop/backing_file": "/images/x.img\n",
			"proc/self/mountinfo":                               rootMount + "30 22 7:0 / /data rw - ext4 /dev/loop0 rw\n31 22 8:1 / /images rw - ext4 /dev/sda1 rw,nobarrier\n"}),
			"mount /images (ext4, /dev/sda1): nobarrier"},
	} {
		found, unseen := walked(t, c.files, "/data", "")
		if !strings.HasPrefix(found, c.want) || c.want == "" && found != "" || strings.Count(found, "\n") > 1 || unseen != "" {
			t.Errorf("%s: found %q, want %q; unseen %q", name, found, c.want, unseen)
		}
	}
}

func TestVolatileCaches(t *testing.T) {
	const cache = "sys/devices/ata1/sda/queue/write_cache"
	for says, want := range map[string][]string{"write back\n": {"sda"}, "write through\n": nil} {
		if f := flushesOf(t, disks(map[string]string{cache: says}), "/data", ""); !slices.Equal(f.Volatile, want) {
			t.Errorf("a cache that is %q: volatile are %q, want %q", says, f.Volatile, want)
		}
	}
}

// TestUnflushedLoopDevice mounts a real filesystem that leaves barriers out.
func TestUnflushedLoopDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	dir := t.TempDir()
	image, point := filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
	}
	run("truncate", "-s", "64M", image)
	run("mkfs.ext4", "-q", image)
	for options, want := range map[string]int{"loop": 0, "loop,barrier=0": 1} {
		run("mount", "-o", options, image, point)
		found, err := FindFlushes(t.Context(), filepath.Join(point, "mysql"))
		run("umount", point)
		if err != nil {
			t.Fatal(err)
		}
		var here []string
		for _, u := range found.LeftOut {
			if strings.Contains(u.Where, point) {
				here = append(here, u.String())
			}
		}
		if len(here) != want || want > 0 && !strings.Contains(here[0], "no flush reaches the device") {
			t.Errorf("mounted with %s: %q", options, here)
		}
	}
}

func TestPreloaded(t *testing.T) {
	root := t.TempDir()
	const maps = `7f0000000000-7f0000001000 r-xp 00000000 08:01 42                         /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000001000-7f0000002000 r-xp 00000000 08:01 43                         /usr/lib/x86_64-linux-gnu/libeatmydata.so.1.3.0
7f0000002000-7f0000003000 rw-p 00001000 08:01 43                         /usr/lib/x86_64-linux-gnu/libeatmydata.so.1.3.0
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
`
	if err := os.MkdirAll(filepath.Join(root, "proc/7"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/7/maps"), []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := factSource{root: root}.preloaded("7")
	if err != nil || !slices.Equal(names, []string{"/usr/lib/x86_64-linux-gnu/libeatmydata.so.1.3.0"}) {
		t.Error(names, err)
	}
	if names, err := Preloaded(os.Getpid()); err != nil || len(names) > 0 {
		t.Error("this process flushes:", names, err)
	}
	if got := PreloadedForAll("/lib/libjemalloc.so libeatmydata.so:/x/libnosync.so"); len(got) < 2 || got[0] != "libeatmydata.so" {
		t.Error(got)
	}
	if line, err := CommandLine(os.Getpid()); err != nil || len(line) == 0 || line[0] != os.Args[0] {
		t.Error(line, err)
	}
}

func FuzzDroppedBy(f *testing.F) {
	f.Add("ext4", "rw,barrier=0")
	f.Add("overlay", "volatile,upperdir=/x")
	f.Add("zfs", "sync=disabled,logbias=throughput")
	f.Fuzz(func(t *testing.T, kind, options string) {
		for _, u := range DroppedBy(kind, strings.Split(options, ",")) {
			if u.Why == "" || len(u.Why) > len(options)+200 {
				t.Fatalf("%+v", u)
			}
		}
		zfsProperties(options)
	})
}
