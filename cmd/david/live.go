package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"david/internal/audit"
	"david/internal/host"
	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/workload"
)

// liveFlags are those of david tune for a running server.
type liveFlags struct {
	dsn, defaultsFile    string
	apply, persist, load bool
	watch                time.Duration
	freeDisk             string
	pod                  bool // the running server is a pod
}

func (f *liveFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.dsn, "dsn", "", "tune a running server instead of a sandbox: user@tcp(host:3306)/ or user@unix(/path/socket)/; nothing is changed without --apply (docs/live.md)")
	fs.StringVar(&f.defaultsFile, "defaults-file", "", "running server: an option file whose [client] group names it")
	fs.BoolVar(&f.apply, "apply", false, "running server: change its dynamic variables, step by step, and set back what makes its traffic worse")
	fs.BoolVar(&f.persist, "persist", false, "running server: SET PERSIST what was kept, so that it outlives a restart")
	fs.BoolVar(&f.load, "load", false, "running server: put david's own load on it while it is changed, in a schema that is dropped again: --workload, --threads, --tables, --table-size")
	fs.DurationVar(&f.watch, "watch", time.Minute, "running server: how long the traffic is watched before the first step and after each")
	fs.StringVar(&f.freeDisk, "free-disk", "", "running server: free disk under its data, as 100G (seen where the server is here)")
}

// asked tells whether a running server is meant.
func (f *liveFlags) asked() bool { return f.dsn != "" || f.defaultsFile != "" || f.pod }

// check refuses what does not go together.
func (f *liveFlags) check(fs *pflag.FlagSet) (err error) {
	ours := []string{"apply", "persist", "load", "watch", "free-disk"}
	load := []string{"workload", "threads", "tables", "table-size", "rand-type", "rate", "warmup"}
	both := append([]string{"dsn", "defaults-file", "memory", "cpus", "iops", "max-p95", "json", "pod", "relay"}, podOnly()...)
	fs.Visit(func(flag *pflag.Flag) {
		mine := slices.Contains(ours, flag.Name)
		switch {
		case err != nil:
		case mine && !f.asked():
			err = usage("--%s is for a running server: name it with --dsn, --defaults-file or --pod", flag.Name)
		case f.asked() && slices.Contains(load, flag.Name):
			if !f.load {
				err = usage("--%s is for a sandbox, or for david's own load on a running server: give --load with it", flag.Name)
			}
		case f.asked() && !mine && !slices.Contains(both, flag.Name):
			err = usage("--%s is for a sandbox: a running server (--dsn) is tuned under its own traffic", flag.Name)
		case mine && !f.apply && flag.Name != "free-disk":
			err = usage("--%s goes with --apply: without it nothing is changed", flag.Name)
		}
	})
	switch {
	case err != nil:
		return err
	case f.watch < time.Second:
		return usage("--watch %s: watch for a second at least", f.watch)
	}
	return nil
}

// liveDocument is what david tune --dsn --json prints.
type liveDocument struct {
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Of       string        `json:"of"`       // the server's address
	Hardware []string      `json:"hardware"` // what is known of it, with units
	rules.LivePlan
	// Barred is why david does not change this server; then Group has the commands for whoever may.
	Barred string                `json:"barred,omitempty"`
	Group  *rules.ParameterGroup `json:"parameter_group,omitempty"`
	Load   *result.Workload      `json:"load,omitempty"` // david's own, --load
	Run    *live.Outcome         `json:"run,omitempty"`
	Dir    string                `json:"dir,omitempty"` // of the record, for david rollback
}

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
	}
	known, doc, err := a.seeLive(ctx, f)
	if err != nil {
		return err
	}
	doc.LivePlan = rules.PlanLive(known)
	doc.Notes = append(doc.Notes, "nothing of this was measured: these are david's sizing rules; david tune measures them on a sandbox")
	addr, err := a.remoteAddr(f.live.dsn, f.live.defaultsFile)
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
	run := live.Run{Addr: addr, Steps: doc.Steps, Watch: f.live.watch, MaxP95: limit, Persist: f.live.persist}
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

// seeLive sees the server as david audit does, and its hardware as far as it is here or told by flags.
func (a *app) seeLive(ctx context.Context, f tuneFlags) (known rules.Live, doc liveDocument, err error) {
	in, seen, err := a.auditServer(ctx, auditFlags{dsn: f.live.dsn, defaultsFile: f.live.defaultsFile, memory: f.memory})
	if err != nil {
		return known, doc, err
	}
	if in.Machine.Memory > 0 { // it is here
		facts, err := host.Read(ctx, a.home)
		if err != nil {
			return known, doc, err
		}
		known.Available = facts.Memory.Available
	}
	iops, err := f.told(&in.Machine)
	if err != nil {
		return known, doc, err
	}
	m := in.Machine
	known.Problem = rules.Problem{Flavour: in.Flavour, Version: in.Version, CPUs: m.CPUs, Memory: m.Memory, FreeDisk: m.FreeDisk,
		Rotational: m.Spinning, WriteIOPS: iops, PageSize: 16 << 10}
	known.Variables, known.Status, known.Data, known.Pod = in.Variables, in.Status, m.Data, f.relay
	doc = liveDocument{Flavour: in.Flavour, Version: seen.Version, Of: seen.Of, Hardware: hardware(m)}
	if iops > 0 {
		doc.Hardware = append(doc.Hardware, fmt.Sprintf("%.0f writes/s", iops))
	}
	return known, doc, nil
}

// told puts what the flags say of the hardware in the place of what was seen. iops are the writes/s, 0 where nobody told.
func (f tuneFlags) told(m *audit.Machine) (iops float64, err error) {
	for _, s := range []struct {
		flag, text string
		into       *int64
	}{{"memory", f.memory, &m.Memory}, {"free-disk", f.live.freeDisk, &m.FreeDisk}} {
		if s.text == "" {
			continue
		}
		if *s.into, err = mycnf.ParseSize(s.text); err != nil || *s.into == 0 {
			return 0, usage("--%s %s: give a size above 0, as 16G", s.flag, s.text)
		}
	}
	if f.cpus != "" {
		if m.CPUs, err = strconv.ParseFloat(f.cpus, 64); err != nil || !(m.CPUs > 0 && m.CPUs < 1e5) {
			return 0, usage("--cpus %s: give a number above 0", f.cpus)
		}
	}
	if f.iops != "" {
		if iops, err = strconv.ParseFloat(f.iops, 64); err != nil || !(iops >= 1 && iops < 1e9) {
			return 0, usage("--iops %s: give the random writes/s the disk can do, as 5000", f.iops)
		}
	}
	return iops, nil
}

// bar finds out whether david may change the server: a replica or a read-only server it may not, nor one that denies SET GLOBAL.
// Where it may not the document has the commands that others give.
func bar(ctx context.Context, conn *mysqld.Conn, srv live.Server, doc *liveDocument) (barred, err error) {
	var names []string
	for _, step := range doc.Steps {
		for _, c := range step.Changes {
			names = append(names, c.Name)
		}
	}
	why, seen, err := live.Follows(ctx, conn, srv)
	if err != nil {
		return nil, err
	}
	if !seen {
		doc.Notes = append(doc.Notes, "whether it is a replica is not seen: that takes the privilege REPLICATION CLIENT (MariaDB: REPLICA MONITOR)")
	}
	if why != "" {
		barred = fmt.Errorf("%s has %s: tune its primary, or set the variables there by hand", doc.Of, why)
	} else if err := live.MaySet(ctx, conn, names); errors.Is(err, mysqld.ErrUnreachable) {
		return nil, err
	} else if err != nil {
		barred = fmt.Errorf("SET GLOBAL is denied on %s (it takes SYSTEM_VARIABLES_ADMIN or SUPER): %w", doc.Of, err)
	}
	if barred != nil {
		group := rules.RenderGroup(doc.LivePlan)
		doc.Barred, doc.Group = barred.Error(), &group
	}
	return barred, nil
}

// persistable refuses --persist where the server has no SET PERSIST.
func (f *liveFlags) persistable(known rules.Live) error {
	switch {
	case !f.persist:
	case known.Flavour == mycnf.MariaDB || !known.Version.AtLeast(8, 0, 0):
		return usage("--persist: this server has no SET PERSIST: leave it out, and write what is kept into its my.cnf")
	case known.Variables["persisted_globals_load"] != "ON":
		return usage("--persist: persisted_globals_load is %s, so the server does not read at its start what SET PERSIST writes", known.Variables["persisted_globals_load"])
	}
	return nil
}

// applyLive makes the store and the record, and carries the plan out, with david's own load unless that is nil.
func (a *app) applyLive(ctx context.Context, f tuneFlags, doc *liveDocument, run live.Run, srv live.Server, own *syntheticLoad) (err error) {
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
	doc.Dir = store.Dir()
	if !f.json {
		if err := a.printLive(*doc, false); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	began := time.Now()
	run.Say = func(text string) { fmt.Fprintln(a.err, text) }
	out, err := run.Do(ctx)
	doc.Run = &out
	if len(run.Record.Pending()) > 0 {
		defer fmt.Fprintf(a.err, "david: david rollback %s sets back what was changed\n", store.Dir())
	}
	if f.json {
		err = errors.Join(err, a.printJSON(doc))
	} else {
		printOutcome(a.out, out)
	}
	if err == nil || errors.Is(err, live.ErrWorse) {
		err = errors.Join(err, store.Finish(result.Finish{Ended: time.Now(), WallSeconds: time.Since(began).Seconds()}))
	}
	return liveError(err)
}

// liveError gives a run's error its exit code.
func liveError(err error) error {
	switch {
	case errors.Is(err, live.ErrBusy), errors.Is(err, live.ErrOther), errors.Is(err, live.ErrChanged), errors.Is(err, live.ErrNoRecord):
		return codedError{exitUsage, err}
	case errors.Is(err, live.ErrWorse) && !errors.Is(err, live.ErrNotUndone):
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
	e.Target, e.Host = "remote", facts
	e.Server = result.Server{Flavour: srv.Flavour, Version: srv.Version, Address: srv.Address}
	e.Notes = append([]string{"the machine described is the client's", "the changes are in " + live.RecordFile + "; david rollback sets them back"}, doc.Notes...)
	return result.Create(filepath.Join(a.home, "experiments", e.ID), e)
}

// printLive shows a plan.
func (a *app) printLive(d liveDocument, asJSON bool) error {
	if asJSON {
		return a.printJSON(d)
	}
	known := "hardware not known"
	if len(d.Hardware) > 0 {
		known = strings.Join(d.Hardware, ", ")
	}
	fmt.Fprintf(a.out, "%s %s, %s; %s\n\n", d.Flavour.Product(), d.Version, d.Of, known)
	if len(d.Steps) == 0 {
		fmt.Fprintln(a.out, "nothing to change while it runs")
	}
	for i, step := range d.Steps {
		fmt.Fprintf(a.out, "Step %d, %s: %s\n", i+1, step.Name, step.Title)
		if err := printChanges(a.out, step.Changes); err != nil {
			return err
		}
	}
	if len(d.Advice) > 0 {
		fmt.Fprintln(a.out, "\nTakes a restart, so david does not change it")
		if err := printChanges(a.out, d.Advice); err != nil {
			return err
		}
	}
	printList(a.out, "\nNotes", d.Notes)
	if d.Group != nil {
		fmt.Fprintf(a.out, "\ndavid does not change this server: %s\n", d.Barred)
		printList(a.out, "\nAs a parameter group (NAME is that of the server's own): to apply", d.Group.Apply)
		printList(a.out, "to revert", d.Group.Revert)
	}
	return nil
}

func printChanges(out io.Writer, changes []rules.LiveChange) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, c := range changes {
		fmt.Fprintf(w, "  %s\t%s -> %s\t%s (%s)\n", c.Name, sizeShown(c.Name, c.Before), c.Value, c.Reason, c.Source)
	}
	return w.Flush()
}

// sizeShown is a size as my.cnf writes it, and any other value as it is.
func sizeShown(name, value string) string {
	n, err := mycnf.ParseSize(value)
	if size := mycnf.Plain(name, "1K") == "1024"; err != nil || !size {
		return value
	}
	return mycnf.FormatSize(n)
}

func printList(out io.Writer, title string, list []string) {
	for i, one := range list {
		if i == 0 {
			fmt.Fprintln(out, title)
		}
		fmt.Fprintf(out, "  %s\n", one)
	}
}

// printOutcome shows what became of the steps.
func printOutcome(out io.Writer, o live.Outcome) {
	for _, s := range o.Steps {
		if s.Kept {
			fmt.Fprintf(out, "%s: kept\n", s.Name)
		} else {
			fmt.Fprintf(out, "%s: set back: %s\n", s.Name, s.Why)
		}
	}
	printList(out, "The guard", o.Sight.Notes)
}
