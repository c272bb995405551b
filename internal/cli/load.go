package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/report"
	"david/internal/result"
)

// load reads an experiment with its points.
func (a *app) load(arg string) (report.Data, error) {
	dir, err := result.Resolve(a.home, arg)
	if err != nil {
		return report.Data{}, codedError{exitUsage, err}
	}
	return a.loadDir(dir)
}

// loadFor is load for what use makes of the experiment. Of "latest" it is the newest that can be made use of.
func (a *app) loadFor(arg string, use func(report.Data) error) (data report.Data, err error) {
	if arg != "latest" {
		if data, err = a.load(arg); err == nil {
			err = use(data)
		}
		return data, err
	}
	_, err = result.ResolveFor(a.home, arg, func(dir string) error {
		if data, err = a.loadDir(dir); err != nil {
			return err
		}
		return use(data)
	})
	var coded codedError
	if err != nil && !errors.As(err, &coded) {
		err = codedError{exitUsage, err}
	}
	return data, err
}

// memoryVariable names how much memory david may take to read a record, 64 MiB where it says nothing.
const memoryVariable = "DAVID_MEMORY"

// programRoom is how much of the memory, in bytes, is not a record's arms and trials.
const programRoom = 44 << 20

// usualMemory is how much memory is enough for a command that only reads, in bytes.
const usualMemory = 64 << 20

// memory is how many bytes david may take to read.
func (a *app) memory() (int64, error) {
	text := a.env(memoryVariable)
	if text == "" {
		return usualMemory, nil
	}
	n, err := mycnf.ParseSize(text)
	if err != nil || n < usualMemory {
		return 0, usage("%s=%s: give a size of 64M or more, as 256M", memoryVariable, text)
	}
	return n, nil
}

// openRecord opens the store of an experiment to read it.
func (a *app) openRecord(dir string) (*result.Store, error) {
	memory, err := a.memory()
	if err != nil {
		return nil, err
	}
	store, err := result.OpenWithin(dir, memory-programRoom)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	return store, nil
}

func (a *app) loadDir(dir string) (report.Data, error) {
	store, err := a.openRecord(dir)
	if err != nil {
		return report.Data{}, err
	}
	if store.Experiment().Kind == result.KindLive {
		return report.Data{}, usage("%s changed a running server, and has no trials: david show and david report tell of it, david rollback sets it back", dir)
	}
	d, err := load(store)
	return d, a.inRoom(err)
}

// loadShown reads an experiment to tell of it: also a tune of a running server, which has no trials.
func (a *app) loadShown(dir string) (report.Data, error) {
	store, err := a.openRecord(dir)
	if err != nil {
		return report.Data{}, err
	}
	if store.Experiment().Kind == result.KindLive {
		return loadLive(store)
	}
	d, err := load(store)
	return d, a.inRoom(err)
}

// loadLive reads a tune of a running server: what was planned and seen, and what became of each change.
func loadLive(store *result.Store) (d report.Data, err error) {
	d.Experiment = store.Experiment()
	if d.Live, err = store.LiveTune(); err != nil {
		return d, codedError{exitUsage, err}
	}
	if d.Live == nil {
		d.Live = &result.LiveTune{LivePlan: result.LivePlan{Notes: []string{"its david put neither the plan nor the traffic on record"}}}
	}
	record, err := live.Open(store.Dir())
	if err != nil && !errors.Is(err, live.ErrNoRecord) {
		return d, codedError{exitUsage, err}
	}
	if err == nil {
		for _, c := range record.Changes() {
			d.Changes = append(d.Changes, report.ChangedVariable{Step: c.Step, Name: c.Name, Before: c.Before, After: c.After, Kept: c.Kept, Persisted: c.Persist, Undone: c.Undone})
		}
	}
	if f, ended, err := store.Finished(); err != nil {
		return d, err
	} else if ended {
		d.Finish = &f
	}
	lines := report.KeptSettings(d)
	if len(lines) == 0 {
		return d, nil
	}
	var text strings.Builder
	err = mycnf.Render(&text, report.LiveCnfHead(d), lines)
	d.Cnf = text.String()
	return d, err
}

// inRoom says how a record gets more memory, where that is what it wants.
func (a *app) inRoom(err error) error {
	if memory, known := a.memory(); known == nil && errors.Is(err, result.ErrRoom) {
		return usage("%w: %s=%dM, or more, allows more than the %dM that it has", err, memoryVariable, 4*memory>>20, memory>>20)
	}
	return err
}

func load(store *result.Store) (d report.Data, err error) {
	d.Experiment, d.Full = store.Experiment(), store.Full
	if d.Arms, err = store.Arms(); err != nil {
		return d, err
	}
	if d.Trials, d.Replaced, err = store.Figures(); err != nil {
		return d, err
	}
	if f, ended, err := store.Finished(); err != nil {
		return d, err
	} else if ended {
		d.Finish = &f
	}
	if err := likePrice(&d); err != nil {
		return d, err
	}
	return d, fillTune(store, &d)
}

// fillTune adds what follows from the record of a tune: its my.cnf, and what was proved and pruned.
func fillTune(store *result.Store, d *report.Data) (err error) {
	if d.Experiment.Kind != result.KindTune || len(d.Trials) == 0 {
		return nil
	}
	if d.Proofs, err = store.Proofs(); err != nil {
		return err
	}
	plan, h, err := planOf(*d)
	if err != nil { // not of this david
		return nil
	}
	d.Pruned, d.Searched = plan.Pruned(h), plan.Searched(h)
	if d.Finish == nil || d.Finish.Failed != "" {
		return nil
	}
	var text strings.Builder
	err = mycnf.Render(&text, report.CnfHead(*d), plan.Winner(h, d.Finish.Best))
	d.Cnf = text.String()
	return err
}

// likePrice adds the prices to the report of an experiment that stood in for a machine of the catalogue.
func likePrice(d *report.Data) error {
	if d.Experiment.Like == nil || d.Experiment.Like.USDMonth == 0 {
		return nil
	}
	c, err := prices("")
	if err != nil {
		return err
	}
	e := price.Experiment{Experiment: d.Experiment, Arms: d.Arms, Trials: report.Quoted(*d).Trials, Finish: d.Finish}
	by, err := c.Payer(e, "", 0)
	if err != nil {
		return err
	}
	q, err := c.Quote(e, by)
	if errors.Is(err, price.ErrNothing) {
		return nil // the report says so anyway
	}
	d.Price = &q
	return err
}

// loadPart loads the experiment that an argument names. The part after its last slash is what is meant of the experiment,
// unless the whole names one.
func (a *app) loadPart(arg string) (report.Data, string, error) {
	whole, err := result.Resolve(a.home, arg)
	if err == nil {
		data, err := a.loadDir(whole)
		return data, "", err
	}
	parent, name := filepath.Split(strings.TrimRight(arg, "/"))
	dir, inner := result.Resolve(a.home, strings.TrimRight(parent, "/"))
	if parent == "" || inner != nil {
		return report.Data{}, "", codedError{exitUsage, err}
	}
	data, err := a.loadDir(dir)
	return data, name, err
}
