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
	return loadDir(dir)
}

func loadDir(dir string) (report.Data, error) {
	store, err := result.Open(dir)
	if err != nil {
		return report.Data{}, codedError{exitUsage, err}
	}
	if store.Experiment().Kind == result.KindLive {
		return report.Data{}, usage("%s changed a running server and measured nothing: its changes are in %s, and david rollback sets them back", dir, live.RecordFile)
	}
	return load(store)
}

func load(store *result.Store) (d report.Data, err error) {
	d.Experiment = store.Experiment()
	if d.Arms, err = store.Arms(); err != nil {
		return d, err
	}
	trials, err := store.Trials()
	if err != nil {
		return d, err
	}
	if d.Trials, err = store.WithPoints(trials); err != nil {
		return d, err
	}
	if d.Replaced, err = store.Replaced(); err != nil {
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
		data, err := loadDir(whole)
		return data, "", err
	}
	parent, name := filepath.Split(strings.TrimRight(arg, "/"))
	dir, inner := result.Resolve(a.home, strings.TrimRight(parent, "/"))
	if parent == "" || inner != nil {
		return report.Data{}, "", codedError{exitUsage, err}
	}
	data, err := loadDir(dir)
	return data, name, err
}
