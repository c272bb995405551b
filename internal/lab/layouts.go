package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"david/internal/cgroup"
	"david/internal/probe"
	"david/internal/result"
	"david/internal/sandbox"
)

// Fio says how layouts are driven by fio before servers run on them.
type Fio struct {
	Rounds int           // of all layouts and loads; 0: not at all
	Each   time.Duration // a load lasts
	Alone  bool          // no server runs on them afterwards
	// Unsynced is how long ZFS is driven with writes that nobody syncs, in each round; 0: not at all.
	Unsynced time.Duration
}

// fioBytes is the size of the file that fio drives. Its I/O is direct: nothing of it is cached. ZFS is made to do
// likewise: data are not kept in its cache, and before ZFS 2.3 each write is synced.
const fioBytes = 128 << 20

// unsyncedBytes is the size of the file that writes which nobody syncs go to: of a smaller one the same block would be
// written again before it was on the disk.
const unsyncedBytes = 1 << 30

// UnsyncedRoom is the room a layout has to have for it: what is written anew is freed some seconds later.
const UnsyncedRoom = 3 << 30

// hasLayout tells an arm whose data lie on a layout of its own.
func hasLayout(arm result.Arm) bool { return arm.Layout != nil }

// LayoutRoom is the room a layout has to have for a workload: its data, a clone's changes, fio's file, and what
// a filesystem takes for itself.
func LayoutRoom(w result.Workload) int64 { return bytesWanted(w) + FioRoom }

// FioRoom is the room a layout has to have where fio alone drives it.
const FioRoom = 1 << 30

// build builds the layouts of the arms. Those that this machine cannot have are left out, and noted; it is an
// error where nothing is left.
func (o opened) build(ctx context.Context, r *Request, arms []result.Arm) (built []result.Arm, err error) {
	if !slices.ContainsFunc(arms, hasLayout) {
		return arms, nil
	}
	var missing error
	for _, arm := range arms {
		if err := o.workspace.Lacks(arm.Layout); err != nil {
			if hasLayout(arm) && arm.Layout.RecordSize != "" { // what was asked for by itself is not left out
				return nil, InputError{fmt.Errorf("%w: leave --recordsize out, and the others are measured", err)}
			}
			missing = errors.Join(missing, err)
			r.note(err.Error())
			continue
		}
		built = append(built, arm)
	}
	if err := r.without(built, missing); err != nil {
		return nil, err
	}
	if err := o.checkDisks(ctx, built); err != nil {
		return nil, err
	}
	for i := range built {
		if built[i].Layout == nil {
			continue
		}
		o.say("building %s: %s", built[i].Name, built[i].Layout.Text())
		var l result.Layout
		err := o.patiently(slow, "still building "+built[i].Name+slowNote, func() (err error) {
			l, err = o.workspace.Build(ctx, *built[i].Layout)
			return err
		})
		if err != nil {
			return nil, err
		}
		built[i].Layout = &l
	}
	if arms[0].Caps.IO() {
		r.note(apartNote)
	}
	if slices.ContainsFunc(built, onZFS) {
		r.note(zfsNote)
	}
	return built, nil
}

// slow is when it is said that a layout takes long to build, and slowNote why it may.
const (
	slow     = 10 * time.Second
	slowNote = ": its tools may wait for a device or a mount of this machine that does not answer, as that of a dead rbd-fuse"
)

// patiently does something, and says a text once where that takes long. What is done says nothing itself.
func (l Lab) patiently(long time.Duration, text string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(long):
	}
	l.text(text)
	return <-done
}

// apartNote says what caps on volumes are not.
const apartNote = "a volume's cap counts reads and writes apart: together they can reach twice of it, where a cloud volume's limit is on their sum; no cap imitates a cloud's latency"

func onZFS(arm result.Arm) bool { return hasLayout(arm) && arm.Layout.Filesystem == "zfs" }

// zfsNote says what fio's figures on ZFS are of.
const zfsNote = "ZFS: records of 16 KiB where a layout's name says no other, not compressed, data not kept in ZFS's cache (primarycache=metadata); before ZFS 2.3 O_DIRECT is taken and ignored, so that each write of fio's is synced (O_DSYNC), " +
	"where on other filesystems it is direct; writes of several threads go to the disks together"

// checkDisks makes sure of all real disks before anything is written to one.
func (o opened) checkDisks(ctx context.Context, arms []result.Arm) error {
	var disks []string
	need := int64(0)
	for _, arm := range arms {
		if arm.Layout != nil && len(arm.Layout.Disks) > 0 {
			disks, need = append(disks, arm.Layout.Disks...), max(need, arm.Layout.Bytes)
		}
	}
	return sandbox.CheckDisks(ctx, disks, need, func(path string, size int64) {
		o.say("reading all %d MiB of %s, to see that nothing is on it", size>>20, path)
	})
}

// without has the request do with the arms that are left.
func (r *Request) without(arms []result.Arm, missing error) error {
	if len(arms) == 0 {
		return InputError{fmt.Errorf("no layout can be built: %w", missing)}
	}
	if !slices.ContainsFunc(arms, func(a result.Arm) bool { return a.Name == r.Design.Control }) {
		r.Design.Control = arms[0].Name
	}
	if len(arms) == 1 { // measured all the same, with nothing to stand beside
		*r = r.apart()
		r.Design = result.Design{Blocks: 1, Seed: r.Design.Seed}
	}
	return nil
}

// devices are those of the layouts, by arm.
func devices(arms []result.Arm) map[string][]string {
	list := map[string][]string{}
	for _, arm := range arms {
		if arm.Layout != nil {
			list[arm.Name] = arm.Layout.Devices
		}
	}
	return list
}

// driven has fio drive the layouts in rounds, each in random order, and puts what it got on the arms. A record
// that has them already keeps those it has.
func (p prepared) driven(ctx context.Context, f Fio, rec recorded, arms []result.Arm) (err error) {
	known, err := rec.store.Arms()
	if err != nil || len(known) > 0 || f.Rounds == 0 || !slices.ContainsFunc(arms, hasLayout) {
		return err
	}
	targets := map[string][]target{}
	for i := range arms {
		list, remove, err := p.targets(ctx, f, arms[i])
		defer func() { err = errors.Join(err, remove()) }()
		if err != nil {
			return err
		}
		targets[arms[i].Name], arms[i].Layout.Fio = list, nil
		for _, t := range list {
			arms[i].Layout.Fio = append(arms[i].Layout.Fio, result.FioRate{Way: t.Way, Bytes: t.Bytes, Sync: t.Sync, Unsynced: t.Unsynced})
		}
	}
	order := rand.New(rand.NewPCG(rec.store.Experiment().Design.Seed, 0))
	for round := range f.Rounds {
		for _, i := range order.Perm(len(arms)) {
			p.say("fio, round %d of %d: %s", round+1, f.Rounds, arms[i].Name)
			if err := p.drive(ctx, targets[arms[i].Name], arms[i]); err != nil {
				return err
			}
		}
		p.line(fmt.Sprintf("fio, round %d: %s", round+1, roundOf(arms)))
	}
	return nil
}

// target is a load, the file that it goes to, and for how long.
type target struct {
	probe.Load
	file probe.File
	last time.Duration
}

// targets are the loads of a layout; remove removes their files.
func (p prepared) targets(ctx context.Context, f Fio, arm result.Arm) (list []target, remove func() error, err error) {
	var dirs []string
	remove = func() (err error) {
		for _, dir := range dirs {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	}
	write := func(bytes int64) (file probe.File, err error) {
		dir, err := p.workspace.Scratch(arm.Layout.Named())
		if err != nil {
			return file, err
		}
		dirs = append(dirs, dir)
		p.say("writing a file of %d MiB on %s", bytes>>20, arm.Name)
		return probe.LayOut(ctx, dir, bytes)
	}
	file, err := write(fioBytes)
	if err != nil {
		return nil, remove, err
	}
	for _, l := range probe.Loads() {
		list = append(list, target{l, file, f.Each})
	}
	if f.Unsynced == 0 || !onZFS(arm) {
		return list, remove, nil
	}
	file, err = write(unsyncedBytes)
	return append(list, target{probe.Unsynced(), file, f.Unsynced}), remove, err
}

// drive puts every load on one layout, under its caps.
func (p prepared) drive(ctx context.Context, targets []target, arm result.Arm) error {
	if err := p.workspace.SetKernel(p.workspace.Tuned(arm.Layout)); err != nil {
		return err
	}
	g, err := p.workspace.Under(arm.Layout.Name, arm.Caps)
	if err == nil {
		settle := func() error { return p.workspace.Settle(ctx, arm.Layout.Name) }
		err = errors.Join(loaded(ctx, targets, arm, g, settle), p.workspace.Release(g))
	}
	return errors.Join(err, p.workspace.ResetKernel())
}

// loaded puts every load on its file, in the groups of its layout; nil for none. settle makes sure that nothing of the
// load before is left in memory.
func loaded(ctx context.Context, targets []target, arm result.Arm, g *cgroup.Group, settle func() error) (err error) {
	var start probe.Start
	if g != nil {
		start = g.Start
		if err := g.Throttle(true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Throttle(false)) }()
	}
	for i, t := range targets {
		l := t.Load
		if err := settle(); err != nil {
			return err
		}
		rate, err := t.file.Drive(ctx, l, t.last, start)
		if err != nil {
			return err
		}
		if most := mostThrough(arm.Caps.IOPS, t.last) * float64(arm.Layout.Volumes); most > 0 && rate.IOPS > most && (l.Way == result.RandomRead || !onZFS(arm)) { // which writes together what many threads have synced
			return fmt.Errorf("%w I/O: on %s, of %d volumes of %d operations/s, fio got %.0f of %s", cgroup.ErrCap, arm.Layout.Name, arm.Layout.Volumes, arm.Caps.IOPS, rate.IOPS, l)
		}
		arm.Layout.Fio[i].IOPS = append(arm.Layout.Fio[i].IOPS, rate.IOPS)
	}
	return nil
}

// mostThrough is what may go through a cap of so many operations a second, a second: the kernel counts in
// slices of 100 ms, and lets the first one's through at once.
func mostThrough(iops int64, last time.Duration) float64 {
	const slice, slack = 100 * time.Millisecond, 1.15
	return slack * float64(iops) * (1 + slice.Seconds()/last.Seconds())
}

// roundOf is what the screen keeps of a round.
func roundOf(arms []result.Arm) string {
	var parts []string
	for _, arm := range arms {
		reads, _ := arm.Layout.Rate(result.RandomRead, 16<<10, false)
		writes, _ := arm.Layout.Rate(result.RandomWrite, 16<<10, false)
		parts = append(parts, fmt.Sprintf("%s %.0f reads/s, %.0f writes/s", arm.Name, reads.IOPS[len(reads.IOPS)-1], writes.IOPS[len(writes.IOPS)-1]))
	}
	return strings.Join(parts, "; ")
}
