package failover

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// once refuses a device whose filesystem is mounted from another one, or whose disk is in use by another name: two
// paths lead to one disk (multipath), or it is a copy. The kernel takes the two for different ones.
func (p *Plan) once() error {
	twin, err := usedTwin("/sys", p.q.Device)
	if err != nil {
		return err
	}
	if twin != "" {
		return refuse("%s and %s are the same disk by their names for life (wwid), and the second is in use: unmount it there first", p.q.Device, twin)
	}
	return p.mountedNowhere()
}

// mountedNowhere refuses a device whose filesystem is mounted from another one.
func (p *Plan) mountedNowhere() error {
	own, err := lookAt(p.q.Device)
	if err != nil || own.uuid == "" {
		return err
	}
	mounts, err := everyMount()
	if err != nil {
		return err
	}
	for device, m := range mounts {
		if family(m.FSType) != family(own.kind) {
			continue
		}
		other, err := lookAt(device)
		if err != nil {
			return fmt.Errorf("what is mounted on %s may be the filesystem of %s: %w", m.Mountpoint, p.q.Device, err)
		}
		if other.uuid == own.uuid {
			return refuse("the filesystem of %s is mounted already, from %s on %s: both have the UUID %s; unmount it there, or where %[1]s is a copy give that a UUID of its own: %[5]s",
				p.q.Device, device, m.Mountpoint, own.uuid, newUUID(own.kind, p.q.Device))
		}
	}
	return nil
}

// newUUID is the command that gives a filesystem another one.
func newUUID(kind, device string) string {
	switch family(kind) {
	case "ext":
		return "e2fsck -f " + device + "; tune2fs -U random " + device
	case "xfs":
		return "xfs_admin -U generate " + device + " (where its log is dirty mount it with -o nouuid and unmount it before)"
	case "btrfs":
		return "btrfstune -u " + device
	}
	return "by the tool of " + kind
}

// family is what the drivers of a filesystem have in common: that of ext4 mounts ext2 and ext3, too.
func family(kind string) string { return strings.TrimRight(kind, "0123456789") }

// mount is one as a process sees it.
type mount struct {
	*mountinfo.Info
	seer procfs.Proc
	here bool // in david's own mount namespace
}

// elsewhere says where a device is mounted in another mount namespace alone, and how it is unmounted there; "" where it is not, or
// nobody can tell.
func elsewhere(device string) string {
	mounts, err := everyMount()
	m, mounted := mounts[device]
	if err != nil || !mounted || m.here {
		return ""
	}
	called, err := m.seer.Comm()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("on %s in another mount namespace, that of %s (process %d): nsenter --mount --target %[3]d umount %[1]s", m.Mountpoint, called, m.seer.PID)
}

// everyMount is what is mounted from a block device, in whichever mount namespace, by device.
func everyMount() (map[string]mount, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	self, err := procfs.Self()
	if err != nil {
		return nil, err
	}
	seen, mounts := map[string]bool{}, map[string]mount{}
	for _, p := range append(procfs.Procs{self}, processes...) { // what is mounted here, too, is told as such
		dir := fmt.Sprintf("/proc/%d/", p.PID)
		namespace, err := os.Readlink(dir + "ns/mnt")
		if err != nil || seen[namespace] {
			continue // it has ended, or its mounts are known
		}
		text, err := os.ReadFile(dir + "mountinfo")
		if err != nil {
			continue // it has ended
		}
		list, err := mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
		if err != nil {
			return nil, err
		}
		seen[namespace] = true
		for _, m := range list {
			if device := mountedFrom(m); device != "" && mounts[device].Info == nil {
				mounts[device] = mount{m, p, p == self}
			}
		}
	}
	return mounts, nil
}

// mountedFrom is the block device of a mount; "" where it has none. A mount of btrfs has a number that is no device's,
// and its device by name alone.
func mountedFrom(m *mountinfo.Info) string {
	if m.Major == 0 {
		if filepath.Dir(m.Source) == "/dev" || strings.HasPrefix(m.Source, "/dev/mapper/") {
			return m.Source
		}
		return ""
	}
	link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", m.Major, m.Minor))
	if err != nil {
		return ""
	}
	return "/dev/" + strings.ReplaceAll(filepath.Base(link), "!", "/")
}

// filesystem is what blkid(8) knows of a device.
type filesystem struct{ uuid, kind string }

// patience is how long another device may take to tell its filesystem.
const patience = 10 * time.Second

// lookAt reads which filesystem a device has; none where blkid knows nothing on it. One that does not answer is left to
// its blkid, which cannot be killed while it waits for a disk.
func lookAt(device string) (f filesystem, err error) {
	var out bytes.Buffer
	cmd := exec.Command("blkid", "-p", "-u", "filesystem", "-o", "export", "-s", "UUID", "-s", "TYPE", device)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return f, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-time.After(patience):
		err = errors.Join(errors.New("it does not answer"), cmd.Process.Kill())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 { // blkid(8): nothing that it knows
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("cannot tell which filesystem %s has: blkid: %w", device, err)
	}
	for line := range strings.Lines(out.String()) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "UUID":
			f.uuid = value
		case "TYPE":
			f.kind = value
		}
	}
	return f, nil
}

// usedTwin finds another path to a device's disk by which that is in use; "" where there is none, or a disk has no name
// of its own. sys is where sysfs is.
func usedTwin(sys, device string) (string, error) {
	own := filepath.Base(device)
	if _, err := os.Stat(filepath.Join(sys, "class/block", own, "partition")); err == nil {
		real, err := filepath.EvalSymlinks(filepath.Join(sys, "class/block", own))
		if err != nil {
			return "", err
		}
		own = filepath.Base(filepath.Dir(real))
	}
	id := wwid(filepath.Join(sys, "block", own))
	disks, err := filepath.Glob(filepath.Join(sys, "block/*"))
	for _, d := range disks {
		if other := filepath.Base(d); id != "" && other != own && wwid(d) == id && inUse("/dev/"+other) {
			return "/dev/" + other, nil
		}
	}
	return "", err
}

// wwid is the name of a disk that no other has, by whichever path it is reached: of NVMe, of SCSI.
func wwid(disk string) string {
	for _, name := range []string{"wwid", "device/wwid"} {
		text, err := os.ReadFile(filepath.Join(disk, name))
		if id := strings.TrimSpace(string(text)); err == nil && id != "" {
			return id
		}
	}
	return ""
}

// inUse tells whether the system uses a disk, or a part of it: mounted, in a RAID, by LVM.
func inUse(disk string) bool {
	f, err := os.OpenFile(disk, os.O_RDONLY|os.O_EXCL, 0)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, unix.EBUSY)
}
