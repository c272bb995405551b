package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unflushed is something between a program and the platter that leaves out what fsync asks for.
type Unflushed struct {
	Where string // "mount /var/lib/mysql (ext4, /dev/sdb1)", "disk sdb"
	Why   string // what it does, in a sentence
	Sure  bool   // else it may
}

// String says it in one line.
func (u Unflushed) String() string { return u.Where + ": " + u.Why }

// Flushes says what becomes of an fsync under a folder.
type Flushes struct {
	LeftOut  []Unflushed
	Volatile []string // disks that say that they lose what was not flushed, by name
	Unseen   []string // what could not be looked at, and why
}

// FindFlushes looks at everything under a folder: the filesystem with its options, loop devices and the files
// behind them, volumes made of others, and the disks' caches.
func FindFlushes(ctx context.Context, dir string) (Flushes, error) {
	folder, err := existing(dir)
	if err != nil {
		return Flushes{}, err
	}
	w := flushWalk{m: factSource{root: "/"}, ask: askZFS, ctx: ctx, seen: map[string]bool{}}
	if err := w.folder(folder); err != nil {
		return Flushes{}, fmt.Errorf("cannot find what is under %s: %w", dir, err)
	}
	return w.Flushes, nil
}

// flushWalk goes from a folder down to the disks.
type flushWalk struct {
	ctx  context.Context
	m    factSource
	ask  func(ctx context.Context, dataset string) (string, error)
	seen map[string]bool // folders, and disks
	Flushes
}

func (w *flushWalk) add(sure bool, where, why string) {
	w.LeftOut = append(w.LeftOut, Unflushed{Where: where, Why: why, Sure: sure})
}

func (w *flushWalk) addAll(where string, found []Unflushed) {
	for _, u := range found {
		w.add(u.Sure, where, u.Why)
	}
}

// folder looks at the filesystem that a folder lies on.
func (w *flushWalk) folder(path string) error {
	d := Filesystem{Path: path}
	if err := w.m.readMount(&d); err != nil {
		return err
	}
	if w.seen[d.Mount] {
		return nil
	}
	w.seen[d.Mount] = true
	where := fmt.Sprintf("mount %s (%s, %s)", d.Mount, d.Type, d.Device)
	w.addAll(where, DroppedBy(d.Type, d.Options))
	switch d.Type {
	case "zfs":
		w.zfs(where, d.Device)
	case "overlay":
		w.upper(d.Options)
	}
	w.disk(d.Disk)
	return nil
}

// upper goes on with the folder that an overlay writes to, where it can be seen.
func (w *flushWalk) upper(options []string) {
	for _, o := range options {
		dir, found := strings.CutPrefix(o, "upperdir=")
		if real, err := existing(dir); found && err == nil && filepath.IsAbs(dir) {
			if err := w.folder(real); err != nil {
				w.Unseen = append(w.Unseen, fmt.Sprintf("the filesystem under the overlay's %s: %v", dir, err))
			}
		}
	}
}

// DroppedBy tells what a filesystem of a kind does to flushes under its options (Documentation/filesystems of
// the kernel; mount(8); zfsprops(7)). Where is left to the caller; kind may be "".
func DroppedBy(kind string, options []string) (found []Unflushed) {
	for _, o := range options {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(o)), "=")
		switch {
		case name == "nobarrier", (name == "barrier" || name == "barriers") && slices.Contains([]string{"0", "none", "off"}, value):
			found = append(found, Unflushed{Sure: true, Why: o + ": no flush reaches the device, so what its cache holds is lost at a power failure, and the filesystem may be, too"})
		case name == "volatile" && (kind == "overlay" || kind == ""):
			found = append(found, Unflushed{Sure: true, Why: "volatile: every fsync is left out"})
		case name == "fsync_mode" && value == "nobarrier":
			found = append(found, Unflushed{Sure: true, Why: o + ": fsync does not flush the device's cache"})
		case name == "sync" && value == "disabled":
			found = append(found, Unflushed{Sure: true, Why: o + ": fsync returns at once, and what was acknowledged in the last seconds is lost at a crash of the machine"})
		case name == "logbias" && value == "throughput":
			found = append(found, Unflushed{Why: o + ": commits bypass the log device and wait for the pool's own disks, whose caches then have to keep their word"})
		}
	}
	if slices.Contains([]string{"tmpfs", "ramfs"}, kind) {
		found = append(found, Unflushed{Sure: true, Why: "it is memory: all of it is lost when the machine stops"})
	}
	return found
}

// zfs asks for the properties that mounts do not show.
func (w *flushWalk) zfs(where, dataset string) {
	for _, name := range []string{"zfs_nocacheflush", "zil_nocacheflush"} {
		text, err := w.m.text("sys/module/zfs/parameters/" + name)
		if err == nil && text != "0" && text != "" {
			w.add(true, where, name+"="+text+": no flush reaches the disks of any pool")
		}
	}
	text, err := w.ask(w.ctx, dataset)
	if err != nil {
		w.Unseen = append(w.Unseen, fmt.Sprintf("sync and logbias of ZFS dataset %s: %v", dataset, err))
		return
	}
	w.addAll(where, DroppedBy("zfs", zfsProperties(text)))
}

// zfsProperties reads what zfs get -H -o property,value prints, as options.
func zfsProperties(text string) (options []string) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 {
			options = append(options, words[0]+"="+words[1])
		}
	}
	return options
}

// askZFS asks the tool; a dataset's name may not pass for a flag.
func askZFS(ctx context.Context, dataset string) (string, error) {
	if dataset == "" || dataset[0] == '-' {
		return "", fmt.Errorf("%q is no dataset's name", dataset)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "zfs", "get", "-H", "-o", "property,value", "sync,logbias", dataset).Output()
	return string(out), err
}

// disk looks at a device and what it is made of.
func (w *flushWalk) disk(name string) {
	if name == "" || w.seen["disk "+name] {
		return
	}
	w.seen["disk "+name] = true
	block := filepath.Join("sys/block", name)
	if file, err := w.m.text(filepath.Join(block, "loop/backing_file")); err == nil && filepath.IsAbs(file) {
		if err := w.folder(filepath.Dir(file)); err != nil {
			w.Unseen = append(w.Unseen, fmt.Sprintf("the filesystem under %s, the file behind %s: %v", file, name, err))
		}
		return
	}
	parts, err := os.ReadDir(filepath.Join(w.m.root, block, "slaves"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Unseen = append(w.Unseen, fmt.Sprintf("what %s is made of: %v", name, err))
	}
	for _, p := range parts {
		w.disk(w.m.whole(p.Name()))
	}
	if len(parts) == 0 {
		w.cache(name, block)
	}
}

// whole names the disk that a partition belongs to; a disk is its own.
func (m factSource) whole(name string) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(m.root, "sys/class/block", name))
	if err != nil {
		return name
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		return filepath.Base(filepath.Dir(dir))
	}
	return name
}

// cache holds what the kernel believes of a disk's cache against what else is known. Where it believes that a
// write is on the disk once it was acknowledged (write through), it sends no flush.
func (w *flushWalk) cache(name, block string) {
	d, err := w.m.disk(name)
	if err == nil && d.WriteCache == "write back" {
		w.Volatile = append(w.Volatile, name)
	}
	if err != nil || d.WriteCache != "write through" {
		return
	}
	says := ""
	kinds, _ := filepath.Glob(filepath.Join(w.m.root, block, "device/scsi_disk/*/cache_type")) // the pattern is sound
	if len(kinds) == 1 {
		text, err := os.ReadFile(kinds[0])
		if says = strings.TrimSpace(string(text)); err != nil {
			w.Unseen = append(w.Unseen, fmt.Sprintf("the cache of disk %s: %v", name, err))
		}
	}
	where := "disk " + name
	switch {
	case strings.HasPrefix(says, "write back"):
		w.add(true, where, "it says that it has a volatile write cache, and the kernel was told (queue/write_cache) that it has none: no flush is sent")
	case d.Rotational && d.Model != "" && !strings.HasPrefix(name, "vd") && !strings.HasPrefix(name, "xvd"):
		w.add(false, where, fmt.Sprintf("%s rotates, as disks with a volatile write cache do, and is taken for one without: no flush is sent; hdparm -W /dev/%s tells whether its cache is off", d.Model, name))
	}
}

// Preloaded names the libraries in a process that make fsync do nothing, such as libeatmydata.
func Preloaded(pid int) (names []string, err error) {
	return factSource{root: "/"}.preloaded(strconv.Itoa(pid))
}

func (m factSource) preloaded(pid string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(m.root, "proc", pid, "maps"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), " ", 6)
		if file := strings.TrimSpace(fields[len(fields)-1]); len(fields) == 6 && DropsFsync(file) && !slices.Contains(names, file) {
			names = append(names, file)
		}
	}
	return names, nil
}

// DropsFsync tells whether a library or a program is one that is made to leave out fsync.
func DropsFsync(path string) bool {
	name := filepath.Base(path)
	return slices.ContainsFunc([]string{"eatmydata", "libnosync", "nosync.so", "libeat", "libnofsync", "nofsync.so"}, func(part string) bool { return strings.Contains(name, part) })
}

// PreloadedForAll lists the libraries that make fsync do nothing in whatever david starts: what LD_PRELOAD and
// /etc/ld.so.preload name.
func PreloadedForAll(preload string) (names []string) {
	text, err := os.ReadFile("/etc/ld.so.preload")
	if err != nil {
		text = nil // there is none
	}
	for _, file := range strings.FieldsFunc(preload+" "+string(text), func(r rune) bool { return strings.ContainsRune(" :\n\t", r) }) {
		if DropsFsync(file) {
			names = append(names, file)
		}
	}
	return names
}

// CommandLine gives a process's arguments, its program first.
func CommandLine(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"), nil
}
