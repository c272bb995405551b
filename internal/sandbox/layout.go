package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/ceph"
	"david/internal/cgroup"
	"david/internal/home"
	"david/internal/loopdev"
	"david/internal/result"
)

// ErrUnavailable marks a layout that this machine cannot have, and says what it lacks.
var ErrUnavailable = errors.New("unavailable here")

// layoutsDir is where the files of layouts' volumes lie in david's folder, in one that is called as the
// runtime folder of their workspace.
const layoutsDir = "layouts"

// place is where servers' clones lie: a folder, and the devices under it whose I/O can be capped.
type place struct {
	dir     string
	devices []cgroup.Device
	disks   []string // their names, of a layout's
	pool    string   // of ZFS; "" on other filesystems
}

// place finds that of a layout; "" is the data's own.
func (w *Workspace) place(layout string) (place, error) {
	if layout == "" {
		p := place{dir: w.data}
		if w.device != (cgroup.Device{}) {
			p.devices = []cgroup.Device{w.device}
		}
		return p, nil
	}
	p, ok := w.places[layout]
	if !ok {
		return p, fmt.Errorf("the layout %s was not built", layout)
	}
	return p, nil
}

// Build puts the volumes of a layout together, sparse files behind loop devices, and mounts what they make. It
// returns the layout with its devices. ErrUnavailable says what this machine lacks for it. What was built is
// gone when the workspace is closed, or by the next david should this one be killed.
func (w *Workspace) Build(ctx context.Context, l result.Layout) (result.Layout, error) {
	if err := w.Lacks(&l); err != nil {
		return l, err
	}
	devices, id, release, err := w.volumesOf(ctx, l)
	defer release() // those that are mounted stay
	if err != nil {
		return l, fmt.Errorf("cannot make the volumes of %s: %w", l.Name, err)
	}
	p := place{dir: filepath.Join(w.run, fmt.Sprintf("layout-%d", len(w.places)))}
	l.Devices = nil
	for _, path := range devices {
		device, err := numberOf(path)
		if err != nil {
			return l, err
		}
		p.devices, p.disks = append(p.devices, device), append(p.disks, filepath.Base(path))
	}
	if devices, err = w.assemble(ctx, l, devices); err == nil {
		if l.Tool == "zfs" {
			p.pool = devices[0]
		}
		err = w.journal.guarded(formatting, func() error { return w.format(ctx, l, id, devices, p.dir) })
	}
	if err == nil && len(l.Disks) > 0 {
		err = w.journal.made(id)
	}
	if err != nil {
		return l, fmt.Errorf("cannot build %s: %w", l.Name, err)
	}
	if w.places == nil {
		w.places = map[string]place{}
	}
	l.Devices, w.places[l.Name] = p.disks, p
	return l, nil
}

// volumesOf returns a layout's devices: its disks, with the UUID that the filesystem on them is to have, or loop
// devices of files, which go when release is called unless they are mounted.
func (w *Workspace) volumesOf(ctx context.Context, l result.Layout) (devices []string, id string, release func(), err error) {
	if len(l.Disks) > 0 {
		devices, id, err = w.takeDisks(l)
		return devices, id, func() {}, err
	}
	if l.Ceph != nil {
		loop, err := w.attachImage(ctx, ceph.Place{Cluster: ceph.Cluster{Conf: l.Ceph.Conf}, Pool: l.Ceph.Pool}, l.Bytes)
		if err != nil {
			return nil, "", func() {}, err
		}
		return []string{loop.Name()}, newUUID(), func() { loop.Close() }, nil
	}
	w.granted += int64(l.Volumes) * l.Bytes // sparse files take room as they fill
	if err := roomIn(w.need+w.granted, w.home); err != nil {
		return nil, "", func() {}, err
	}
	var loops []*os.File
	release = func() {
		for _, loop := range loops {
			loop.Close()
		}
	}
	files, err := w.volumes(l)
	for _, file := range files {
		loop, err := attachFile(file)
		if err != nil {
			return nil, "", release, err
		}
		loops, devices = append(loops, loop), append(devices, loop.Name())
	}
	return devices, newUUID(), release, err
}

// layoutFolder makes the folder for files of layouts, which is the workspace's alone.
func (w *Workspace) layoutFolder() (string, error) {
	dir := filepath.Join(w.home, layoutsDir, filepath.Base(w.run))
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		return dir, err
	}
	if err := w.journal.folder(dir); err != nil {
		return "", err
	}
	return dir, errors.Join(os.MkdirAll(dir, 0o700), w.journal.mark(dir))
}

// volumes makes the files of a layout.
func (w *Workspace) volumes(l result.Layout) (files []string, err error) {
	dir, err := w.layoutFolder()
	if err != nil {
		return nil, err
	}
	for i := range l.Volumes {
		file := filepath.Join(dir, fmt.Sprintf("%s-%d", l.Name, i+1))
		f, err := home.Create(file, 0o600)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(f.Truncate(l.Bytes), f.Close()); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func attachFile(file string) (*os.File, error) {
	backing, err := home.Open(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	return loopdev.Attach(backing, 0)
}

// numberOf returns the number of a device.
func numberOf(path string) (cgroup.Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return cgroup.Device{}, err
	}
	return cgroup.Device{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}

// format makes the filesystem with a UUID on the layout's devices, and mounts it where servers' clones are to lie.
func (w *Workspace) format(ctx context.Context, l result.Layout, id string, devices []string, point string) error {
	if l.Tool != "zfs" { // whose pool is a filesystem already
		if err := makeFilesystem(ctx, mkfs(l, id, devices)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(point, 0o755); err != nil {
		return fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := w.journal.mount(point); err != nil {
		return err
	}
	flags, data := mountOptions(l.Mount)
	if len(devices) > 1 { // instead of a scan, which would look at all devices of the machine
		data = append(data, "device="+strings.Join(devices[1:], ",device="))
	}
	if err := unix.Mount(devices[0], point, l.Filesystem, unix.MS_NODEV|unix.MS_NOSUID|flags, strings.Join(data, ",")); err != nil {
		return fmt.Errorf("cannot mount it: %w", err)
	}
	return errors.Join(keep(point), keep(filepath.Join(point, "clones")))
}

// makeFilesystem runs mkfs. That of btrfs looks at every loop device which is mounted anywhere, and fails while the
// file of somebody's lies on a FUSE filesystem that has died: that is waited for.
func makeFilesystem(ctx context.Context, argv []string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, formatting, fmt.Errorf("%s did not end within %s", argv[0], formatting))
	defer cancel()
	for {
		err = runTool(ctx, argv)
		if err == nil || !strings.Contains(err.Error(), "Transport endpoint is not connected") {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// formatting is how long making a filesystem may take: seconds, but on a slow Ceph, which gets some 70 MiB.
const formatting = 5 * time.Minute

// runTool runs a program that ends with david: one that went on would keep devices that nobody knows of.
func runTool(ctx context.Context, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// mkfs is the command that makes the filesystem on the first l.Bytes of each device. What it would leave to be
// done later, as ext4 its tables of inodes, would be a load beside the one that is measured.
func mkfs(l result.Layout, id string, devices []string) []string {
	size := fmt.Sprint(l.Bytes)
	if l.Tool == "md" || l.Tool == "lvm" { // which have made one device of all
		return append([]string{"mkfs.xfs", "-q", "-f", "-m", "uuid=" + id}, devices...)
	}
	switch l.Filesystem {
	case "ext4":
		argv := append([]string{"mkfs.ext4", "-q", "-F", "-U", id, "-E", "lazy_itable_init=0,lazy_journal_init=0"}, devices...)
		return append(argv, fmt.Sprintf("%dk", l.Bytes>>10))
	case "btrfs":
		return append([]string{"mkfs.btrfs", "-q", "-f", "-U", id, "-b", size, "-d", btrfsProfile(l), "-m", "raid1"}, devices...)
	}
	return append([]string{"mkfs.xfs", "-q", "-f", "-m", "reflink=1,uuid=" + id, "-d", "size=" + size}, devices...)
}

// btrfsProfile is how btrfs lays data over its devices.
func btrfsProfile(l result.Layout) string {
	switch {
	case l.Kind == "stripe":
		return "raid0"
	case l.Volumes == 2:
		return "raid1"
	}
	return "raid10"
}

// atimes are mount options that are flags of mount(2); all others are the filesystem's own.
var atimes = map[string]uintptr{"noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME, "strictatime": unix.MS_STRICTATIME, "lazytime": unix.MS_LAZYTIME}

func mountOptions(text string) (flags uintptr, data []string) {
	for _, o := range strings.Split(text, ",") {
		if flag, ok := atimes[o]; ok {
			flags |= flag
		} else if o != "" {
			data = append(data, o)
		}
	}
	return flags, data
}

// Lacks says what this machine has not and a layout needs, as ErrUnavailable; nil where it can be built, or is nil.
func (w *Workspace) Lacks(l *result.Layout) error {
	if l == nil {
		return nil
	}
	if err := w.lacks(*l); err != nil {
		return fmt.Errorf("%s: %w: %w", l.Name, ErrUnavailable, err)
	}
	return nil
}

func (w *Workspace) lacks(l result.Layout) error {
	if os.Geteuid() != 0 || !w.owner.Switched {
		return errors.New("it needs root, for loop devices and mounts")
	}
	if l.Ceph != nil {
		if err := ceph.Find("ceph", "rbd", "rbd-fuse"); err != nil {
			return err
		}
	} else if err := lacksTool(l); err != nil {
		return err
	}
	if !kernelHas(l.Filesystem, l.Filesystem) {
		return fmt.Errorf("the kernel has no %s", l.Filesystem)
	}
	if l.Tool == "zfs" {
		return nil
	}
	return lacksMkfs(l.Filesystem)
}

// lacksMkfs says where the program that makes a filesystem comes from; nil where it is installed.
func lacksMkfs(filesystem string) error {
	if program := "mkfs." + filesystem; !installed(program) {
		packages := map[string]string{"xfs": "xfsprogs", "ext4": "e2fsprogs", "btrfs": "btrfs-progs"}
		return fmt.Errorf("%s is missing: apt-get install %s", program, packages[filesystem])
	}
	return nil
}

// maps tells whether the kernel's device mapper is there. LVM makes /dev/mapper/control also where it is not.
func maps() bool {
	devices, err := os.ReadFile("/proc/misc")
	return err == nil && strings.Contains(string(devices), "device-mapper")
}

// lacksTool says why nothing can be put together by a tool here.
func lacksTool(l result.Layout) error {
	tool, real := l.Tool, len(l.Disks) > 0
	switch {
	case tool == "md" && !isThere("/proc/mdstat") && !kernelHas("", "raid0"):
		return errors.New("the kernel has no md")
	case tool == "lvm" && !maps() && !kernelHas("", "dm-mod"):
		return errors.New("the kernel has no device mapper, which LVM needs")
	case tool == "md" && !installed("mdadm"):
		return errors.New("mdadm is missing: apt-get install mdadm")
	case tool == "lvm" && !installed("lvcreate"):
		return errors.New("lvcreate is missing: apt-get install lvm2")
	case tool == "zfs" && !isThere("/sys/module/zfs") && !kernelHas("zfs", "zfs"):
		return errors.New("the kernel has no ZFS")
	case tool == "zfs" && !installed("zpool"):
		return errors.New("zpool is missing: apt-get install zfsutils-linux")
	case (tool == "md" || tool == "lvm" || tool == "zfs") && real:
		return errors.New("on real disks david builds with btrfs alone; the commands: david storage plan")
	case tool == "lvm" && l.Kind != "stripe":
		return errors.New("with LVM david builds stripes alone; mirrors: --with md")
	case tool == "ceph":
		return errors.New("it needs nodes, which david does not make; of a cluster that is there: --layout ceph-rbd --ceph-conf FILE --pool NAME")
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// kernelHas tells whether the kernel has a filesystem, or a module that it can load.
func kernelHas(filesystem, module string) bool {
	known, err := os.ReadFile("/proc/filesystems")
	if err == nil && filesystem != "" && strings.Contains(string(known), "\t"+filesystem+"\n") {
		return true
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		b, err := os.ReadFile(filepath.Join("/lib/modules", unix.ByteSliceToString(u.Release[:]), list))
		if err == nil && strings.Contains(string(b), "/"+module+".ko") {
			return true
		}
	}
	return false
}

// dropVolumes takes apart what is built on the files of a folder, once nothing of it is mounted, and waits until no
// loop device has one any more.
func dropVolumes(dir string) error {
	if err := dismantle(dir); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := detached(file); err != nil {
			return err
		}
	}
	return nil
}

// Tuned are the kernel's settings of the devices of a layout that was built, for SetKernel: they hold while it
// is used.
func (w *Workspace) Tuned(l *result.Layout) (list []result.KernelSetting) {
	if l == nil {
		return nil
	}
	for _, disk := range w.places[l.Name].disks {
		for _, s := range []result.KernelSetting{{Name: "disk.scheduler", Value: l.Scheduler}, {Name: "disk.read_ahead_kb", Value: l.ReadAheadKB}} {
			if s.Disk = disk; s.Value != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// Calm waits until what the server's devices have to write is written.
func (s *Server) Calm() error { return s.at.calm() }

// calm waits until everything that was written is on the devices, and they have nothing under way.
func (p place) calm() error {
	if len(p.devices) == 0 {
		return nil
	}
	if err := syncfs(p.dir); err != nil {
		return err
	}
	quiet := 0
	for began := time.Now(); quiet < 5 && time.Since(began) < calmWithin; time.Sleep(20 * time.Millisecond) {
		idle, err := p.idle()
		if err != nil {
			return fmt.Errorf("cannot see whether the volume is idle: %w", err)
		}
		if quiet++; !idle {
			quiet = 0
		}
	}
	return nil
}

func (p place) idle() (bool, error) {
	for _, d := range p.devices {
		b, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%s/inflight", d))
		if err != nil {
			return false, err
		}
		if strings.Join(strings.Fields(string(b)), " ") != "0 0" {
			return false, nil
		}
	}
	return true, nil
}
