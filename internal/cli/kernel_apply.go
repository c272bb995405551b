package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"david/internal/experiment"
	"david/internal/kernel"
)

// kernelApplyFlags are those of david kernel apply.
type kernelApplyFlags struct {
	dir                  string
	apply, persist, json bool
}

// kernelChanges is what david kernel apply --json prints.
type kernelChanges struct {
	Applied bool            `json:"applied"`
	Changes []kernel.Change `json:"changes"`
	Record  string          `json:"record,omitempty"` // the folder that david kernel rollback takes
	Notes   []string        `json:"notes,omitempty"`
}

func (a *app) kernelApplyCommand() *cobra.Command {
	var f kernelApplyFlags
	cmd := &cobra.Command{
		Use:   "apply [NAME[=VALUE] ...]",
		Short: "Set kernel settings: shows what it would do; with --apply it does it, and david kernel rollback sets it back",
		Long: "Set kernel settings of the table that david kernel plan shows, within david's bounds: all that it advises (of the disk only with --dir), or those that are named, to\n" +
			"today's advice or to a value. What each was is on record before it is changed. Without --apply nothing is changed (docs/kernel.md).",
		RunE: func(cmd *cobra.Command, args []string) error { return a.kernelApply(cmd.Context(), f, args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "dir", "", "where the database's data lie, for the settings of their disk (david's folder)")
	fs.BoolVar(&f.apply, "apply", false, "change them")
	fs.BoolVar(&f.persist, "persist", false, "have the sysctls survive a reboot, by a file of david's own in /etc/sysctl.d")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) kernelApply(ctx context.Context, f kernelApplyFlags, args []string) error {
	m, err := a.kernelMachine(ctx, f.dir)
	if err != nil {
		return err
	}
	steps, left, err := f.steps(m, args)
	if err != nil {
		return kernelError(err)
	}
	doc := kernelChanges{Changes: steps}
	if f.apply && len(steps) > 0 {
		doc, err = a.kernelChange(ctx, m, steps, f.persist)
	} else {
		doc.Notes, err = kernelPreview(m, steps, f.persist)
	}
	if err != nil {
		return err
	}
	doc.Notes = slices.Concat(doc.Notes, m.Together(steps), left)
	if f.json {
		return a.printJSON(doc)
	}
	return a.printKernelChanges(doc)
}

// steps are those that are named, else all that is advised, with what is left out of that.
func (f kernelApplyFlags) steps(m kernel.Machine, named []string) (steps []kernel.Change, left []string, err error) {
	if len(named) == 0 {
		return m.Advised(f.dir != "")
	}
	steps, err = m.Steps(named, f.persist)
	return steps, nil, err
}

// kernelPreview tells of changes that are not made yet how far they can matter, what they risk, and what is
// in the way.
func kernelPreview(m kernel.Machine, steps []kernel.Change, persist bool) (notes []string, err error) {
	rows, err := m.Plan()
	if err != nil {
		return nil, err
	}
	for _, c := range steps {
		for _, r := range rows {
			if r.Name == c.Name {
				notes = append(notes, fmt.Sprintf("%s matters: %s, %s; risk: %s", r.Title(), r.Effect, r.Because, r.Risk))
			}
		}
	}
	if persist && len(steps) > 0 {
		notes = append(notes, "a file of david's own in /etc/sysctl.d keeps what is a sysctl")
	}
	if err := m.Hindered(steps); err != nil {
		notes = append(notes, err.Error())
	}
	return notes, nil
}

// kernelChange makes the changes while nobody measures.
func (a *app) kernelChange(ctx context.Context, m kernel.Machine, steps []kernel.Change, persist bool) (doc kernelChanges, err error) {
	release, err := a.sharing.Lock(a.home, "david kernel apply", a.env(experiment.BesideVariable))
	if err != nil {
		return doc, err
	}
	defer release()
	r, err := m.Apply(ctx, a.home, steps, persist)
	if err != nil && ctx.Err() != nil {
		err = codedError{exitInterrupted, err}
	}
	if err != nil && r != nil && len(r.Pending()) > 0 {
		return doc, fmt.Errorf("%w; %d of %d settings are changed, david kernel rollback %d sets them back", err, len(r.Pending()), len(steps), r.N)
	}
	if err != nil {
		return doc, kernelError(err)
	}
	doc = kernelChanges{Applied: true, Changes: r.Changes, Record: r.Dir(), Notes: r.Lasting()}
	if !r.Persist {
		doc.Notes = append(doc.Notes, "a reboot undoes it; --persist makes sysctls last")
	} else {
		for _, what := range m.Overridden(r) {
			doc.Notes = append(doc.Notes, "after a reboot "+what+", which is read later than david's file")
		}
	}
	return doc, nil
}

func (a *app) printKernelChanges(d kernelChanges) error {
	if len(d.Changes) == 0 && len(d.Notes) == 0 {
		fmt.Fprintln(a.out, "nothing to do: each setting has its value already")
		return nil
	}
	for _, c := range d.Changes {
		fmt.Fprintf(a.out, "%s: %s -> %s\n", c.Title(), c.Before, c.After)
	}
	for _, note := range d.Notes {
		fmt.Fprintln(a.out, note)
	}
	switch {
	case d.Applied:
		fmt.Fprintf(a.out, "set back by: david kernel rollback %s\n", d.Record)
	case len(d.Changes) == 0:
		fmt.Fprintln(a.out, "nothing else is advised")
	default:
		fmt.Fprintln(a.out, "nothing was changed: --apply changes it")
	}
	return nil
}
