package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"david/internal/probe"
	"david/internal/result"
	"david/internal/sandbox"
)

// Probe asks what the machine and a disk can do at best.
type Probe struct {
	Dir       string // whose disk is probed; "": where the data of sandboxes lies
	Caps      result.Caps
	Sustained time.Duration // written for so long in the end
	Quick     bool          // one short round, not kept
	Fresh     bool          // measured again, also where the same was measured within a day
	Child     string        // the command of david that measures CPUs in a process of its own
}

// Probed holds the limits that were found, and how.
type Probed struct {
	Limits result.Limits
	Before bool  // it was measured before
	Flaw   error // why it is not whole, or was not kept; nil where all is well
}

// Run gives what was measured within a day, or measures.
func (p Probe) Run(ctx context.Context, l Lab) (found Probed, err error) {
	key, err := l.limitsKey(ctx, p.Dir, p.Caps)
	if err != nil {
		return found, err
	}
	if known, ok := l.keptLimits(key); ok && !p.Fresh && !p.Quick && p.sustainedBefore(known) {
		return Probed{Limits: known, Before: true}, nil
	}
	release, err := l.Sharing.Lock(l.Home, "david probe", l.Beside)
	if err != nil {
		return found, err
	}
	defer release()
	found.Limits = result.Limits{Schema: result.Schema, Key: key, David: l.David, Measured: time.Now(), Caps: p.Caps}
	noDisk, err := p.measure(ctx, l, &found.Limits)
	switch {
	case err != nil:
		return found, err
	case noDisk != nil: // incomplete: not kept
		found.Limits.Notes = append(found.Limits.Notes, noDisk.Error()+"; the CPUs and the kernel were")
		found.Flaw = InputError{noDisk}
	case !p.Quick:
		found.Flaw = result.KeepLimits(l.Home, found.Limits)
	}
	return found, nil
}

func (p Probe) effort() probe.Effort {
	if p.Quick {
		return probe.Quick()
	}
	return probe.Full()
}

// sustainedBefore tells whether kept limits have the long look that is asked for.
func (p Probe) sustainedBefore(l result.Limits) bool {
	return p.Sustained == 0 || l.Burst != nil && l.Burst.Seconds >= int(p.Sustained/time.Second)
}

// measure measures under the caps. noDisk says why the disk could not be.
func (p Probe) measure(ctx context.Context, l Lab, limits *result.Limits) (noDisk, err error) {
	w, noDisk, err := p.space(ctx, l, limits)
	if err != nil {
		return nil, err
	}
	defer func() {
		limits.Seconds = time.Since(limits.Measured).Seconds()
		err = errors.Join(err, w.Close())
	}()
	err = w.Capped("", p.Caps, func(start func(*exec.Cmd) error, throttle func(bool) error) (err error) {
		l.say("measuring the CPUs and the kernel")
		if limits.Machine, err = p.machine(ctx, start); err != nil || noDisk != nil {
			return err
		}
		dir, err := w.Scratch("")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		place := probe.Place{Dir: dir, Device: limits.Device, Caps: p.Caps, Effort: p.effort(), Start: start, Throttle: throttle, Say: l.text}
		if err := place.Disk(ctx, limits); err != nil || p.Sustained == 0 {
			return err
		}
		limits.Burst, err = place.Sustained(ctx, int(p.Sustained/time.Second))
		return err
	})
	return noDisk, err
}

// probeNeed is the disk space of a probe, in bytes.
const probeNeed = 1200 << 20

// space opens the place to measure in and looks at what lies under it. Where that is no place for a probe of
// the disk, noDisk says why, and the workspace is good for the rest.
func (p Probe) space(ctx context.Context, l Lab, limits *result.Limits) (w *sandbox.Workspace, noDisk, err error) {
	if p.Dir == "" {
		w, err = sandbox.Open(ctx, l.Home, sandbox.Options{Need: probeNeed, Log: l.Log, Volume: p.Caps.IO()})
	} else if noDisk = look(ctx, p.Dir, limits); noDisk == nil {
		w, err = sandbox.OpenIn(l.Home, p.Dir)
	}
	switch {
	case errors.Is(err, sandbox.ErrDiskFull) && !p.Caps.IO():
		noDisk, err = fmt.Errorf("%w: %w", probe.ErrDevice, err), nil
	case err == nil && noDisk == nil && p.Dir == "":
		limits.Device.Layout = w.Layout()
		noDisk = look(ctx, w.Dir(), limits)
	}
	if err == nil && w == nil {
		w, err = sandbox.OpenIn(l.Home, "")
	}
	if noDisk != nil && !errors.Is(noDisk, probe.ErrDevice) {
		return nil, nil, errors.Join(noDisk, w.Close())
	}
	return w, noDisk, err
}

// look notes what lies under a folder.
func look(ctx context.Context, dir string, l *result.Limits) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d, notes, err := probe.Look(ctx, dir)
	if d.Layout = l.Device.Layout; d.Layout == "" {
		d.Folder = dir
	}
	l.Device, l.Notes = d, append(l.Notes, notes...)
	return err
}
