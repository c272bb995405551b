package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
)

// printLive shows a plan: in five lines what could be set, or with -v all of it.
func (a *app) printLive(d liveDocument, asJSON bool) error {
	switch {
	case asJSON:
		return a.printJSON(d)
	case a.verbose:
		return a.printPlan(d)
	}
	var steps []string
	for _, step := range d.Steps {
		steps = append(steps, step.Name+": "+proposals(step.Changes))
	}
	return errors.Join(say(a.out, d.found()+"; "+d.server()), labelled(a.out, "steps", strings.Join(steps, "; ")),
		labelled(a.out, "yours", proposals(d.Decide)), labelled(a.out, "restart", proposals(d.Advice)), labelled(a.out, "next", d.next()))
}

// variables counts what the steps change.
func (d liveDocument) variables() (n int) {
	for _, step := range d.Steps {
		n += len(step.Changes)
	}
	return n
}

// found says how much of a server can be changed.
func (d liveDocument) found() string {
	n := d.variables()
	if n == 0 {
		return "nothing to change while it runs"
	}
	return fmt.Sprintf("%s to change while it runs, in %s; nothing of it was measured", pluralise(n, "variable"), pluralise(len(d.Steps), "step"))
}

// server says which one a plan is for.
func (d liveDocument) server() string {
	return fmt.Sprintf("%s %s, %s; %s", d.Flavour.Product(), d.Version, d.Of, cmp.Or(strings.Join(d.Hardware, ", "), "hardware not known"))
}

// proposals lists what is proposed, as an audit does.
func proposals(changes []result.LiveChange) string {
	var list []string
	for _, c := range changes {
		list = append(list, arrow(c))
	}
	return strings.Join(list, ", ")
}

// arrow says what a change does to its variable.
func arrow(c result.LiveChange) string {
	return advice.Arrow(c.Name, cmp.Or(mycnf.AsWritten(c.Name, c.Before), "empty"), c.Value)
}

// next says how a plan is carried out, and where the rest of it is.
func (d liveDocument) next() string {
	rest := "the same with -v has reasons and sources"
	if n := len(d.Notes); n > 0 {
		rest += ", " + pluralise(n, "note")
	}
	switch {
	case d.Group != nil:
		return "david does not change this server: " + d.Barred + "; " + rest + ", and the commands for whoever may"
	case d.Dir != "": // it is being carried out
		return ""
	case len(d.Steps) > 0:
		return "the same with --apply sets it, step by step, under a guard; " + rest
	}
	return rest
}

// printPlan shows all of a plan.
func (a *app) printPlan(d liveDocument) error {
	err := say(a.out, d.server())
	fmt.Fprintln(a.out)
	if len(d.Steps) == 0 {
		fmt.Fprintln(a.out, "nothing to change while it runs")
	}
	for i, step := range d.Steps {
		err = errors.Join(err, say(a.out, fmt.Sprintf("Step %d, %s: %s", i+1, step.Name, step.Title)), printChanges(a.out, step.Changes))
	}
	for _, part := range []struct {
		title   string
		changes []result.LiveChange
	}{{"Yours to decide: david does not change these on a running server", d.Decide}, {"Takes a restart, so david does not change it", d.Advice}} {
		if len(part.changes) > 0 {
			fmt.Fprintln(a.out, "\n"+part.title)
			err = errors.Join(err, printChanges(a.out, part.changes))
		}
	}
	err = errors.Join(err, printList(a.out, "\nNotes", d.Notes))
	if d.Group == nil {
		return err
	}
	fmt.Fprintln(a.out)
	err = errors.Join(err, say(a.out, "david does not change this server: "+d.Barred))
	printCommands(a.out, "\nAs a parameter group (NAME is that of the server's own): to apply", d.Group.Apply)
	printCommands(a.out, "to revert", d.Group.Revert)
	return err
}

func printChanges(out io.Writer, changes []result.LiveChange) (err error) {
	for _, c := range changes {
		err = errors.Join(err, hang(out, "  ", arrow(c)),
			hang(out, "    ", fmt.Sprintf("%s (%s)", c.Reason, c.Source)))
	}
	return err
}

func printList(out io.Writer, title string, list []string) (err error) {
	for i, one := range list {
		if i == 0 {
			fmt.Fprintln(out, title)
		}
		err = errors.Join(err, wrapped(out, "  ", "    ", one))
	}
	return err
}

// printCommands prints commands as they are given to a shell: a line each, however long.
func printCommands(out io.Writer, title string, list []string) {
	fmt.Fprintln(out, title)
	for _, one := range list {
		fmt.Fprintf(out, "  %s\n", one)
	}
}

// printLiveRun shows what a run came to, from its record.
func (a *app) printLiveRun(store *result.Store) error {
	d, err := loadLive(store)
	if err != nil {
		return err
	}
	if a.verbose {
		return report.Text(a.out, d)
	}
	return report.Brief(a.out, d, "")
}
