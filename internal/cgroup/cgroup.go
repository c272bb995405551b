// Package cgroup puts a server under caps on CPU, memory and I/O, in cgroups of its own, of version 1 or 2.
//
//	Plan (looks, makes nothing) -> Make -> Start (a process begins inside) -> Throttle -> Verify -> Remove
//
// A planned Group is plain data: it is kept in a journal before it is made, so that Remove can undo it after
// its david was killed.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/host"
	"david/internal/result"
)

// ErrCap marks a cap that the system does not let david put on a server, or that does not hold.
var ErrCap = errors.New("the system does not let david cap")

// period is over what time a quota of CPU is counted, in microseconds: the kernel's own default.
const period = 100_000

// Device is the block device whose I/O is capped: a loop device of david's own, as the caps on it may hit
// whoever uses it.
type Device struct {
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

func (d Device) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// Group is a server's cgroups, made or only planned.
type Group struct {
	Caps    result.Caps `json:"caps"`
	Version int         `json:"version"` // of the hierarchies it is in: 1 or 2
	Device  Device      `json:"device"`  // zero where I/O is not capped
	// Beside are the other devices of a layout, each under the caps for itself.
	Beside []Device `json:"beside,omitempty"`
	// Root is the folder with the mounts of the v1 controllers, or the mount of the v2 hierarchy.
	Root string `json:"root"`
	// Paths are the groups, by controller below its mount; v2 has one, under "". "." is a root group, which
	// is not david's.
	Paths map[string]string `json:"paths"`
	// Home has david's own group in each hierarchy, v1 only.
	Home map[string]string `json:"home,omitempty"`
	// Enabled are the folders of v2 in which controllers have to be enabled for the groups below, and which.
	Enabled []Enabled `json:"enabled,omitempty"`
}

// Enabled are controllers that were off for the groups below a folder of v2.
type Enabled struct {
	Folder      string   `json:"folder"`
	Controllers []string `json:"controllers"`
}

// Plan finds out how the caps can be put on a server here, in groups called name, those on I/O on each of some
// devices for itself. It makes nothing.
func Plan(name string, caps result.Caps, on ...Device) (*Group, error) {
	members, err := host.Memberships()
	if err != nil {
		return nil, capError(caps, fmt.Errorf("cannot see its cgroups: %w", err))
	}
	g := &Group{Caps: caps}
	if len(on) > 0 {
		g.Device, g.Beside = on[0], on[1:]
	}
	v1, err1 := g.planV1(members, name)
	if v1 {
		return g, nil
	}
	if err := g.planV2(members, name); err != nil {
		return nil, capError(caps, fmt.Errorf("%w; %w", err1, err))
	}
	return g, nil
}

// capError says which caps could not be put on a server.
func capError(caps result.Caps, err error) error {
	var what []string
	for name, capped := range map[string]bool{"CPU": caps.CPUs > 0, "memory": caps.Memory > 0, "I/O": caps.IO()} {
		if capped {
			what = append(what, name)
		}
	}
	slices.Sort(what)
	return fmt.Errorf("%w %s: %w", ErrCap, strings.Join(what, " and "), err)
}

// quota returns the microseconds of CPU in a period.
func quota(c result.Caps) int64 { return int64(math.Round(c.CPUs * period)) }

// memory is the cap as the kernel takes it: whole pages.
func memory(c result.Caps) int64 { return c.Memory / int64(os.Getpagesize()) * int64(os.Getpagesize()) }

// Make makes the groups and puts the caps on CPU and memory into force; those on I/O wait for Throttle. Each
// value is read back. On an error nothing is left.
func (g *Group) Make() error {
	set := g.makeV1
	if g.Version == 2 {
		set = g.makeV2
	}
	err := set()
	if err == nil {
		err = g.readBack()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		err = fmt.Errorf("%w; run david as root, outside a container that keeps its cgroups read-only", err)
	}
	if err != nil {
		return errors.Join(capError(g.Caps, err), g.Remove())
	}
	return nil
}

// folder is the group's folder for a controller, which v2 does not need.
func (g *Group) folder(controller string) string {
	if g.Version == 2 {
		controller = ""
	}
	return filepath.Join(g.Root, controller, g.Paths[controller])
}

// readBack makes sure that the kernel took the values.
func (g *Group) readBack() error {
	for path, want := range g.values() {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read a cap back: %w", err)
		}
		if got := strings.TrimSpace(string(b)); got != want {
			return fmt.Errorf("%s was set to %s, the kernel made it %s", path, want, got)
		}
	}
	return nil
}

// values returns what the files of the caps on CPU and memory must hold.
func (g *Group) values() map[string]string {
	v := map[string]string{}
	if g.Caps.CPUs > 0 && g.Version == 1 {
		v[filepath.Join(g.folder("cpu"), "cpu.cfs_quota_us")] = fmt.Sprint(quota(g.Caps))
		v[filepath.Join(g.folder("cpu"), "cpu.cfs_period_us")] = fmt.Sprint(period)
	} else if g.Caps.CPUs > 0 {
		v[filepath.Join(g.folder("cpu"), "cpu.max")] = fmt.Sprint(quota(g.Caps), " ", period)
	}
	if g.Caps.Memory > 0 {
		v[filepath.Join(g.folder("memory"), map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[g.Version])] = fmt.Sprint(memory(g.Caps))
	}
	if swap, ok := g.swap(); ok {
		v[swap] = map[int]string{1: fmt.Sprint(memory(g.Caps)), 2: "0"}[g.Version]
	}
	return v
}

// swap is the file that keeps the group from using swap beyond its memory: v1 counts both together, v2 swap
// alone. A kernel that does not count swap has none.
func (g *Group) swap() (path string, ok bool) {
	if g.Caps.Memory == 0 {
		return "", false
	}
	path = filepath.Join(g.folder("memory"), map[int]string{1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}[g.Version])
	_, err := os.Stat(path)
	return path, err == nil
}

// Remove lifts the caps and removes the groups, once the processes in them have ended; what is not there is
// no error.
func (g *Group) Remove() error {
	var err error
	if g.Caps.IO() {
		err = g.lift()
	}
	for _, controller := range slices.Sorted(maps.Keys(g.Paths)) {
		if g.Paths[controller] != "." {
			err = errors.Join(err, remove(g.folder(controller)))
		}
	}
	if err == nil {
		g.disable()
	}
	return err
}

// remove removes one group. The kernel keeps one for a moment after its last process was killed.
func remove(folder string) error {
	var err error
	for range 500 {
		err = os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("cannot remove a cgroup of david's: %w", err)
}
