package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"david/internal/experiment"
	"david/internal/probe"
	"david/internal/result"
	"david/internal/sandbox"
)

// probeFlags are those of david probe.
type probeFlags struct {
	capFlags
	dir         string
	sustained   time.Duration
	json, fresh bool
	quick       bool
}

func (a *app) probeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Measure what the machine and a disk can do at best: commit path, I/O, CPUs, timer",
		Long: "probe measures with fio and the kernel's counters, in less than a minute and 1.2 GiB of disk, and removes what it wrote. What it\n" +
			"found is kept for a day, and recorded with the experiments of that time.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.probe(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.dir, "dir", "", "the folder whose disk is probed; without it, where the data of sandboxes lies")
	fs.DurationVar(&f.sustained, "sustained", 0, "then write for so long, to see whether burst credits are used up, as in 10m")
	fs.BoolVar(&f.fresh, "fresh", false, "measure again, also where the same was measured within a day")
	fs.BoolVar(&f.quick, "quick", false, "one short round: orders of magnitude in about 15 seconds; not kept")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// probe shows what was measured within a day, or measures.
func (a *app) probe(ctx context.Context, f probeFlags) error {
	caps, err := f.check(ctx, a)
	if err != nil {
		return err
	}
	key, err := a.lab().LimitsKey(ctx, f.dir, caps)
	if err != nil {
		return err
	}
	if l, ok := a.lab().KeptLimits(key); ok && !f.fresh && !f.quick && f.sustainedBefore(l) {
		return a.printLimits(l, true, f.json)
	}
	release, err := experiment.Lock("david probe")
	if err != nil {
		return err
	}
	defer release()
	l := result.Limits{Schema: result.Schema, Key: key, David: version, Measured: time.Now(), Caps: caps}
	noDisk, err := a.measureLimits(ctx, f, &l)
	if err != nil {
		return err
	}
	if noDisk != nil { // incomplete: not kept
		l.Notes = append(l.Notes, noDisk.Error()+"; the CPUs and the kernel were")
		return errors.Join(a.printLimits(l, false, f.json), codedError{exitUsage, noDisk})
	}
	if !f.quick {
		err = result.KeepLimits(a.home, l)
	}
	return errors.Join(err, a.printLimits(l, false, f.json))
}

// check refuses flags that make no sense here.
func (f probeFlags) check(ctx context.Context, a *app) (caps result.Caps, err error) {
	if caps, err = f.caps(); err != nil {
		return caps, err
	}
	if f.sustained != 0 && (f.sustained < 10*time.Second || f.sustained > 24*time.Hour || f.sustained%time.Second != 0) {
		return caps, usage("--sustained %s: give whole seconds from 10s to 24h, as in 10m", f.sustained)
	}
	if f.dir != "" && caps.IO() {
		return caps, usage("--iops and --bandwidth are caps on a volume of david's own: leave out --dir")
	}
	if st, err := os.Stat(f.dir); f.dir != "" && (err != nil || !st.IsDir()) {
		return caps, usage("--dir %s: name a folder that exists", f.dir)
	}
	return caps, a.lab().CheckCaps(ctx, []result.Arm{{Caps: caps}}, false)
}

func (f probeFlags) effort() probe.Effort {
	if f.quick {
		return probe.Quick()
	}
	return probe.Full()
}

// sustainedBefore tells whether kept limits have the long look that is asked for.
func (f probeFlags) sustainedBefore(l result.Limits) bool {
	return f.sustained == 0 || l.Burst != nil && l.Burst.Seconds >= int(f.sustained/time.Second)
}

// measureLimits measures under the caps. noDisk says why the disk could not be.
func (a *app) measureLimits(ctx context.Context, f probeFlags, l *result.Limits) (noDisk, err error) {
	p := newProgress(a.err)
	w, noDisk, err := a.probeSpace(ctx, f, l)
	if err != nil {
		return nil, err
	}
	defer func() {
		l.Seconds = time.Since(l.Measured).Seconds()
		err = errors.Join(err, w.Close())
	}()
	err = w.Capped(l.Caps, func(start func(*exec.Cmd) error, throttle func(bool) error) (err error) {
		p.say("measuring the CPUs and the kernel")
		if l.Machine, err = probeMachine(ctx, l.Caps, f.effort().Rounds, start); err != nil || noDisk != nil {
			return err
		}
		dir, err := w.Scratch()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		place := probe.Place{Dir: dir, Device: l.Device, Caps: l.Caps, Effort: f.effort(), Start: start, Throttle: throttle, Say: func(s string) { p.say("%s", s) }}
		if err := place.Disk(ctx, l); err != nil || f.sustained == 0 {
			return err
		}
		l.Burst, err = place.Sustained(ctx, int(f.sustained/time.Second))
		return err
	})
	return noDisk, err
}

// probeNeed is the disk space of a probe, in bytes.
const probeNeed = 1200 << 20

// probeSpace opens the place to measure in and looks at what lies under it. Where that is no place for a probe of the disk,
// noDisk says why, and the workspace is good for the rest.
func (a *app) probeSpace(ctx context.Context, f probeFlags, l *result.Limits) (w *sandbox.Workspace, noDisk, err error) {
	if f.dir == "" {
		w, err = sandbox.Open(ctx, a.home, sandbox.Options{Need: probeNeed, Log: a.err, Volume: l.Caps.IO()})
	} else if noDisk = a.look(ctx, f.dir, l); noDisk == nil {
		w, err = sandbox.OpenIn(a.home, f.dir)
	}
	switch {
	case errors.Is(err, sandbox.ErrDiskFull) && !l.Caps.IO():
		noDisk, err = fmt.Errorf("%w: %w", probe.ErrDevice, err), nil
	case err == nil && noDisk == nil && f.dir == "":
		l.Device.Layout = w.Layout()
		noDisk = a.look(ctx, w.Dir(), l)
	}
	if err == nil && w == nil {
		w, err = sandbox.OpenIn(a.home, "")
	}
	if noDisk != nil && !errors.Is(noDisk, probe.ErrDevice) {
		return nil, nil, errors.Join(noDisk, w.Close())
	}
	return w, noDisk, err
}

// look notes what lies under a folder.
func (a *app) look(ctx context.Context, dir string, l *result.Limits) error {
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
