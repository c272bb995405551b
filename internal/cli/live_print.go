package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
)

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
	if len(d.Decide) > 0 {
		fmt.Fprintln(a.out, "\nYours to decide: david does not change these on a running server")
		if err := printChanges(a.out, d.Decide); err != nil {
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

func printChanges(out io.Writer, changes []result.LiveChange) error {
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
