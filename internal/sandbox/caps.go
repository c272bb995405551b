package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"david/internal/cgroup"
	"david/internal/probe"
	"david/internal/result"
)

// group makes the cgroups of one server, or of a probe, in a place; nil where there are no caps.
func (w *Workspace) group(caps result.Caps, at place) (*cgroup.Group, error) {
	if caps == (result.Caps{}) {
		return nil, nil
	}
	if caps.IO() && len(at.devices) == 0 {
		return nil, fmt.Errorf("%w I/O: the data does not lie on a volume of david's own, and a cap on another device would hit everybody who uses it", cgroup.ErrCap)
	}
	w.groups++
	g, err := cgroup.Plan(fmt.Sprintf("%s-%d", filepath.Base(w.run), w.groups), caps, at.devices...)
	if err != nil {
		return nil, err
	}
	if err := w.journal.group(g); err != nil {
		return nil, err
	}
	if err := g.Make(); err != nil {
		return nil, errors.Join(err, w.journal.ungroup(g))
	}
	return g, nil
}

// Hold makes groups that hold a load generator to so many CPUs, for Group.Start. Release removes them.
func (w *Workspace) Hold(cpus float64) (*cgroup.Group, error) {
	return w.group(result.Caps{CPUs: cpus}, place{})
}

// Under makes groups with caps, those on I/O on a layout's devices, for Group.Start and Throttle; nil without caps.
// Release removes them.
func (w *Workspace) Under(layout string, caps result.Caps) (*cgroup.Group, error) {
	at, err := w.place(layout)
	if err != nil {
		return nil, err
	}
	return w.group(caps, at)
}

// Release removes the groups that Hold made, once the load generator has ended.
func (w *Workspace) Release(g *cgroup.Group) error { return w.ungroup(g) }

// ungroup removes the groups, once what ran in them has ended.
func (w *Workspace) ungroup(g *cgroup.Group) error {
	if g == nil {
		return nil
	}
	if err := g.Remove(); err != nil {
		return err // the journal still has it
	}
	return w.journal.ungroup(g)
}

// deviceOf returns the device a folder's filesystem is on.
func deviceOf(dir string) (cgroup.Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return cgroup.Device{}, err
	}
	return cgroup.Device{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev)}, nil
}

// Throttle puts the server's caps on I/O into force, or lifts them, as they are until then: a server's start
// and the reading of its tables are not measured. Without such caps it does nothing.
//
// Servers share the volume, and a cap of version 1 is one on its device: only one at a time may be under its
// caps.
func (s *Server) Throttle(on bool) error {
	if s.group == nil || !s.group.Caps.IO() {
		return nil
	}
	if on && s.w.throttled != nil && s.w.throttled != s {
		return fmt.Errorf("%w the I/O of two servers at a time: they share the volume", cgroup.ErrCap)
	}
	if !on && s.w.throttled != nil && s.w.throttled != s {
		return nil // lifting this one's would lift the other's
	}
	if err := s.group.Throttle(on); err != nil {
		return err
	}
	s.w.throttled = nil
	if on {
		s.w.throttled = s
	}
	return nil
}

// CapStat returns what the kernel counted under the server's caps; zero without any.
func (s *Server) CapStat() (cgroup.Stat, error) {
	if s.group == nil {
		return cgroup.Stat{}, nil
	}
	return s.group.Stat()
}

// ErrMemory marks a server that ended for want of memory.
var ErrMemory = errors.New("the kernel killed it as it went beyond its cap on memory")

// killed adds to why the server ended that it was for want of memory, where the cap on it is the cause.
func (s *Server) killed(cause error) error {
	if stat, err := s.CapStat(); err != nil || stat.Kills == 0 {
		return cause
	}
	return fmt.Errorf("%w: %w of %d MiB", cause, ErrMemory, s.group.Caps.Memory>>20)
}

// How VerifyCaps probes a cap on I/O, and by what share fio may go beyond it: the kernel counts in slices of
// 100 ms.
const (
	probeBytes   = 64 << 20
	probeSeconds = 2
	mostIO       = 1.15
)

// VerifyCaps makes groups with the caps, probes for a few seconds whether they hold, and returns what a
// report must say of them. One that the system does not grant, or that does not hold, is a cgroup.ErrCap.
func (w *Workspace) VerifyCaps(ctx context.Context, caps result.Caps) (notes []string, err error) {
	at, err := w.place("")
	if err != nil {
		return nil, err
	}
	g, err := w.group(caps, at)
	if g == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.ungroup(g)) }()
	if notes, err = g.Verify(ctx); err != nil || !caps.IO() {
		return notes, err
	}
	more, err := w.verifyIO(ctx, g)
	return append(notes, more...), err
}

// Capped has start put commands under the caps, while do runs; throttle puts those on I/O into force, or
// lifts them. What was started must have ended when do returns. Without caps, start just starts.
func (w *Workspace) Capped(layout string, caps result.Caps, do func(start func(*exec.Cmd) error, throttle func(on bool) error) error) error {
	at, err := w.place(layout)
	if err != nil {
		return err
	}
	g, err := w.group(caps, at)
	if err != nil {
		return err
	}
	if g == nil {
		return do((*exec.Cmd).Start, func(bool) error { return nil })
	}
	return errors.Join(do(g.Start, g.Throttle), w.ungroup(g))
}

// Scratch makes a folder among the data, or on a layout, for something that lasts as long as the workspace; the
// next one removes what is left. It is the servers' user's, as whom fio runs.
func (w *Workspace) Scratch(layout string) (string, error) {
	at, err := w.place(layout)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(at.dir, "probe-")
	if err == nil {
		err = w.owner.Own(dir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for a probe: %w", err)
	}
	return dir, nil
}

// verifyIO reads and writes on the volume, under the caps.
func (w *Workspace) verifyIO(ctx context.Context, g *cgroup.Group) (notes []string, err error) {
	dir, err := w.Scratch("")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "f")
	if err := w.writeProbe(file); err != nil {
		return nil, fmt.Errorf("cannot probe the volume: %w", err)
	}
	if err := g.Throttle(true); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Throttle(false)) }()
	var got []string
	for _, way := range []string{"reads", "writes"} {
		rate, err := probe.Random(ctx, file, way == "writes", probeSeconds, g.Start)
		if errors.Is(err, probe.ErrNoFio) {
			return []string{ioNote(g.Caps) + ": set and read back, not probed: " + err.Error(), apart(g), latency}, nil
		}
		if err != nil {
			return nil, err
		}
		if beyond(rate, g.Caps) {
			return nil, fmt.Errorf("%w I/O: under a %s, fio got %.0f random 16 KiB %s/s", cgroup.ErrCap, ioNote(g.Caps), rate.IOPS, way)
		}
		got = append(got, fmt.Sprintf("%.0f %s/s", rate.IOPS, way))
	}
	return []string{ioNote(g.Caps) + ": random 16 KiB, one after the other: " + strings.Join(got, ", "), apart(g), latency}, nil
}

// writeProbe writes a file that is on the disk: reads of blocks never written would not get there.
func (w *Workspace) writeProbe(path string) (err error) {
	f, err := w.create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := []byte(strings.Repeat("david", 1<<20/5+1))[:1<<20]
	for range probeBytes / len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Sync()
}

func beyond(r probe.Rate, c result.Caps) bool {
	return c.IOPS > 0 && r.IOPS > mostIO*float64(c.IOPS) || c.Bandwidth > 0 && r.Bytes > mostIO*float64(c.Bandwidth)
}

func ioNote(c result.Caps) string {
	var parts []string
	if c.IOPS > 0 {
		parts = append(parts, fmt.Sprintf("%d operations/s", c.IOPS))
	}
	if c.Bandwidth > 0 {
		parts = append(parts, fmt.Sprintf("%.4g MiB/s", float64(c.Bandwidth)/(1<<20)))
	}
	return "cap of " + strings.Join(parts, " and ")
}

// apart says how the cap is counted.
func apart(g *cgroup.Group) string {
	return fmt.Sprintf("a v%d cap counts reads and writes apart: together they can reach twice of it; a cloud volume's limit is on their sum", g.Version)
}

// latency names what no cap does.
const latency = "no cap imitates a cloud volume's commit latency: a sync is as quick here as this disk makes it"
