package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/advice"
	"david/internal/host"
	"david/internal/live"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/workload"
)

// tuneLive plans for a running server and, with --apply, carries it out.
func (a *app) tuneLive(ctx context.Context, f tuneFlags) (err error) {
	limit, err := f.p95()
	if err != nil {
		return err
	}
	var load result.Workload
	if f.live.load {
		if load, err = f.syntheticWorkload(); err != nil {
			return err
		}
		a.generous()
	}
	known, doc, err := a.seeLive(ctx, f)
	if err != nil {
		return err
	}
	doc.LivePlan = advice.PlanLive(known)
	doc.Notes = append(doc.Notes, "nothing of this was measured: it is what david audit finds; david tune measures on a sandbox")
	addr, err := a.remoteAddr(f.live.serverFlags)
	if err != nil {
		return err
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	srv, err := live.Identify(ctx, conn)
	if err != nil {
		return err
	}
	barred, err := bar(ctx, conn, srv, &doc)
	if err != nil {
		return err
	}
	if !f.live.apply || barred != nil || len(doc.Steps) == 0 {
		return errors.Join(a.printLive(doc, f.json), applyOnly(f.live.apply, barred))
	}
	if err := f.live.persistable(known); err != nil {
		return err
	}
	run := live.Run{Addr: conn.Addr(), Steps: doc.Steps, Watch: f.live.watch, MaxP95: limit, Persist: f.live.persist}
	if !f.live.load {
		return a.applyLive(ctx, f, &doc, run, srv, nil)
	}
	own, done, err := a.newSyntheticLoad(ctx, load, conn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return a.applyLive(ctx, f, &doc, run, srv, own)
}

// applyOnly is the error of a server that is barred, where it was to be changed.
func applyOnly(apply bool, barred error) error {
	if !apply || barred == nil {
		return nil
	}
	return codedError{exitUsage, fmt.Errorf("nothing was changed: %w", barred)}
}

// applyLive makes the store and the record, and carries the plan out, with david's own load unless that is
// nil.
func (a *app) applyLive(ctx context.Context, f tuneFlags, doc *liveDocument, run live.Run, srv live.Server, own *syntheticLoad) (err error) {
	unstopped()
	store, err := a.liveStore(ctx, *doc, srv, own)
	if err != nil {
		return err
	}
	if own != nil {
		own.Target.Log = filepath.Join(store.Dir(), "load.log")
		run.Load, doc.Load = own.begin, &own.Load
	}
	if run.Record, err = live.Create(store.Dir(), srv); err != nil {
		return err
	}
	tune := result.LiveTune{LivePlan: doc.LivePlan, Hardware: doc.Hardware, Watch: run.Watch.Seconds(), MaxP95: run.MaxP95, Persist: run.Persist}
	if err := store.PutLiveTune(tune); err != nil {
		return err
	}
	run.Note = func(out result.LiveOutcome) error {
		tune.Run = &out
		return store.PutLiveTune(tune)
	}
	doc.Dir = store.Dir()
	if !f.json {
		if err := a.printLive(*doc, false); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	began := time.Now()
	say, until, end := heard(ctx, a.err)
	defer end()
	run.Say, run.Watchdog = say, []string{watchdogChild}
	out, err := run.Do(until)
	doc.Run = &out
	if len(run.Record.Pending()) > 0 {
		defer a.remark("david rollback %s sets back what was changed", store.Dir())
	}
	tune.Run, tune.Ended = toldOf(out, err)
	err = errors.Join(err, store.PutLiveTune(tune))
	if err == nil || endedByTraffic(err) {
		err = errors.Join(err, store.Finish(liveFinish(out, time.Since(began))))
	}
	if f.json {
		err = errors.Join(err, a.printJSON(doc))
	} else {
		err = errors.Join(err, a.printLiveRun(store))
	}
	return liveError(err)
}

// toldOf is what goes on record of a run and of its end. The words of an error that is not of the traffic stay out
// of it: they may say who david logged in as.
func toldOf(out result.LiveOutcome, end error) (*result.LiveOutcome, string) {
	switch {
	case end == nil:
		return &out, ""
	case endedByTraffic(end):
		return &out, strings.TrimPrefix(firstLine(end.Error()), "nothing was changed: ")
	}
	why := "an error ended the run"
	if errors.Is(end, live.ErrInterrupted) {
		why = "the run was interrupted"
	}
	out.Steps = slices.Clone(out.Steps)
	for i := range out.Steps {
		if !out.Steps[i].Kept {
			out.Steps[i].Why = why
		}
	}
	return &out, why
}

// liveFinish is the end of a run, with the time in which the traffic was watched.
func liveFinish(out result.LiveOutcome, wall time.Duration) result.Finish {
	f := result.Finish{Ended: time.Now(), WallSeconds: wall.Seconds()}
	if out.Before != nil {
		f.MeasureSeconds = out.Before.Seconds
	}
	for _, s := range out.Steps {
		if s.Traffic != nil {
			f.MeasureSeconds += s.Traffic.Seconds
		}
	}
	if f.WallSeconds > 0 {
		f.Utilisation = min(1, f.MeasureSeconds/f.WallSeconds)
	}
	return f
}

// endedByTraffic tells of a run that ended by what its traffic was.
func endedByTraffic(err error) bool {
	return errors.Is(err, live.ErrWorse) || errors.Is(err, live.ErrUnproven) || errors.Is(err, live.ErrQuiet) || errors.Is(err, live.ErrBlind)
}

// liveError gives a run's error its exit code.
func liveError(err error) error {
	switch {
	case errors.Is(err, live.ErrBusy), errors.Is(err, live.ErrOther), errors.Is(err, live.ErrChanged), errors.Is(err, live.ErrNoRecord):
		return codedError{exitUsage, err}
	case endedByTraffic(err) && !errors.Is(err, live.ErrNotUndone):
		return codedError{exitInvalid, err}
	}
	return err
}

func (a *app) liveStore(ctx context.Context, doc liveDocument, srv live.Server, own *syntheticLoad) (*result.Store, error) {
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return nil, err
	}
	loads, sysbench := []result.Workload{}, workload.Sysbench{}
	if own != nil {
		loads, sysbench = append(loads, own.Load), own.Target.Sysbench
	}
	e := a.lab().NewExperiment(result.KindLive, loads, sysbench)
	e.Target, e.Host = result.TargetRemote, facts
	e.Server = result.Server{Flavour: srv.Flavour, Version: srv.Version, Address: srv.Address}
	e.Notes = append([]string{"the machine described is the client's", "the changes are in " + live.RecordFile + "; david rollback sets them back"}, doc.Notes...)
	return result.Create(filepath.Join(a.home, "experiments", e.ID), e)
}
