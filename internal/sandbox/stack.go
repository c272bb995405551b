package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/result"
)

// assemble puts a layout's devices together with md, LVM or ZFS, and returns what the filesystem is made on, the array
// or logical volume, or what is mounted, the pool. What a filesystem puts together itself are the devices as they are.
func (w *Workspace) assemble(ctx context.Context, l result.Layout, devices []string) ([]string, error) {
	var commands [][]string
	switch name := fmt.Sprintf("%s-%d", filepath.Base(w.run), len(w.places)); l.Tool {
	case "md":
		commands = [][]string{mdadm(l, name, devices)}
	case "lvm":
		commands = lvm(name, devices)
	case "zfs":
		return []string{name}, makePool(ctx, zpool(l, name, devices))
	default:
		return devices, nil
	}
	for _, argv := range commands {
		if err := runTool(ctx, argv); err != nil {
			return nil, err
		}
	}
	top := topOf(devices[0])
	if top == "" {
		return nil, fmt.Errorf("%s made no device of %s", l.Tool, strings.Join(devices, " "))
	}
	return []string{top}, nil
}

// mdadm makes an array. Files that were never written are alike, so that a mirror of them need not synchronise,
// which would be a load beside the one that is measured.
func mdadm(l result.Layout, name string, devices []string) []string {
	argv := []string{"mdadm", "--create", "/dev/md/" + name, "--name=" + name, "--homehost=any", "--run", fmt.Sprintf("--raid-devices=%d", len(devices))}
	if l.Kind == "stripe" {
		argv = append(argv, "--level=0")
	} else {
		argv = append(argv, "--level=10", "--assume-clean")
	}
	return append(argv, devices...)
}

// lvm makes a group of the devices with one stripe over all of it. It looks at nothing but them, and keeps nothing in
// the system's folders.
func lvm(name string, devices []string) [][]string {
	var ours []string
	for _, d := range devices {
		ours = append(ours, fmt.Sprintf("%q", "a|^"+d+"$|"))
	}
	config := fmt.Sprintf("--config=devices { use_devicesfile=0 filter=[%s, \"r|.*|\"] } backup { backup=0 archive=0 } activation { monitoring=0 udev_sync=0 udev_rules=0 }", strings.Join(ours, ", "))
	return [][]string{
		append([]string{"pvcreate", "--quiet", "--yes", config}, devices...),
		append([]string{"vgcreate", "--quiet", "--yes", config, name}, devices...),
		{"lvcreate", "--quiet", "--yes", config, "--wipesignatures", "n", "--extents", "100%FREE", "--name", "data", "--type", "striped",
			"--stripes", fmt.Sprint(len(devices)), "--stripesize", "64k", name},
	}
}

// holders lists what is built on a device: "md127", "dm-3".
func holders(name string) (list []string) {
	found, err := filepath.Glob(filepath.Join("/sys/block", name, "holders", "*"))
	if err != nil {
		return nil
	}
	for _, f := range found {
		list = append(list, filepath.Base(f))
	}
	return list
}

// topOf returns the device that is built on another one, through all levels; "" where none is.
func topOf(device string) string {
	top := ""
	for name := filepath.Base(device); ; {
		up := holders(name)
		if len(up) == 0 {
			return top
		}
		name = up[0]
		top = "/dev/" + name
	}
}

// dismantle takes apart what is built on the loop devices of a folder's files: nothing of somebody else's can be, as
// nobody else gets at the files.
func dismantle(dir string) error {
	if err := dropPools(dir); err != nil {
		return err
	}
	for range 100 { // a logical volume has others below it, which come to light when it is gone
		left := builtOn(dir)
		if len(left) == 0 {
			return nil
		}
		var errs error
		for _, name := range left {
			errs = errors.Join(errs, unbuild(name))
		}
		if errs != nil {
			time.Sleep(50 * time.Millisecond)
			if len(builtOn(dir)) == len(left) {
				return errs
			}
		}
	}
	return fmt.Errorf("what is built on the files in %s does not end", dir)
}

// builtOn lists the topmost of what is built on the loop devices of a folder's files.
func builtOn(dir string) (list []string) {
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil
	}
	for _, f := range loops {
		backing, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(backing), dir+"/") {
			continue
		}
		if top := topOf(strings.Split(f, "/")[3]); top != "" && !slices.Contains(list, filepath.Base(top)) {
			list = append(list, filepath.Base(top))
		}
	}
	return list
}

// unbuild ends an array, or a device of the device mapper.
func unbuild(name string) error {
	argv := []string{"mdadm", "--stop", "/dev/" + name}
	if strings.HasPrefix(name, "dm-") {
		argv = []string{"dmsetup", "remove", "--noudevsync", text(filepath.Join("/sys/block", name, "dm"), "name")}
	}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot take %s apart: %s: %w: %s", name, argv[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
