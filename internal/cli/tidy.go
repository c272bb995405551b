package cli

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

	"github.com/spf13/cobra"

	"david/internal/experiment"
	"david/internal/home"
	"david/internal/mycnf"
	"david/internal/plain"
	"david/internal/result"
	"david/internal/tidy"
)

// tidyDocument is what rm and gc say with --json.
type tidyDocument struct {
	Items   []tidy.Item `json:"items"`   // in the order in which they go
	Bytes   int64       `json:"bytes"`   // that they take on the disk
	Removed bool        `json:"removed"` // false: nothing was removed, as --yes was not given
	Notes   []string    `json:"notes"`   // what stays although it was asked for
}

func (a *app) rmCommand() *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove experiments from david's folder; without --yes say what would go",
		Long: "Remove experiments, named as david list names them. Without --yes nothing is removed. One that a david is at work on stays, and so does the\n" +
			"record of a running server's changes that are not set back.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s takes the names of experiments, as david list has them; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.remove(cmd.Context(), args, yes, asJSON) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove them")
	noYes(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// remove removes experiments, all or, where one cannot go, none.
func (a *app) remove(ctx context.Context, ids []string, yes, asJSON bool) error {
	known, err := result.List(a.home)
	if err != nil {
		return err
	}
	f := tidy.OfExperiments(a.home)
	var doc tidyDocument
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		i := slices.IndexFunc(known, func(s result.Summary) bool { return s.ID == id })
		if i < 0 {
			return usage("cannot remove %q: no experiment in %s is called so; david list has their names", id, filepath.Join(a.home, "experiments"))
		}
		if why := f.Held(known[i]); why != "" {
			return usage("%s stays: %s", id, why)
		}
		item, err := f.Experiment(known[i])
		if err != nil {
			return err
		}
		doc.add(item)
	}
	return a.tidied(ctx, f, doc, yes, asJSON)
}

func (d *tidyDocument) add(items ...tidy.Item) {
	for _, item := range items {
		d.Items, d.Bytes = append(d.Items, item), d.Bytes+item.Bytes
	}
}

// gcFlags holds the options of david gc.
type gcFlags struct {
	older, experiments, free string
	yes, json                bool
}

func (a *app) gcCommand() *cobra.Command {
	var f gcFlags
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Give disk space back: prepared data, old servers, old experiments; without --yes say what would go first",
		Long: "Give disk space back. What can be made again goes first: space that the volume of prepared data does not use, prepared data (those used longest ago\n" +
			"first), images, servers of which david has installed a newer version. Experiments go only with --older or --experiments, the oldest first. Without\n" +
			"--yes nothing is removed. It waits for nobody: while anything is measured on this machine --yes ends with an error, and what would go is told with the\n" +
			"name of what is measured, without what lies on the volume of prepared data.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.gc(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.older, "older", "", "experiments, too, that began longer ago, as 30d or 12h")
	fs.StringVar(&f.experiments, "experiments", "", "the oldest experiments, too, until the rest take at most so much, as 2G")
	fs.StringVar(&f.free, "free", "", "no more than it takes to free so much, as 10G")
	fs.BoolVar(&f.yes, "yes", false, "remove it")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	noYes(cmd)
	return cmd
}

// noYes gives a command the flag that other tools have for what it does anyhow without --yes.
func noYes(cmd *cobra.Command) {
	cmd.Flags().Bool("dry-run", false, "only say what would go, as without --yes")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
}

// wish turns the flags into what may go.
func (f gcFlags) wish() (w tidy.Wish, err error) {
	w = tidy.Wish{Now: time.Now(), Experiments: -1}
	if f.older != "" {
		if w.OlderThan, err = ageOf(f.older); err != nil {
			return w, err
		}
	}
	for _, s := range []struct {
		flag, text string
		into       *int64
	}{{"experiments", f.experiments, &w.Experiments}, {"free", f.free, &w.Free}} {
		if s.text == "" {
			continue
		}
		if *s.into, err = mycnf.ParseSize(s.text); err != nil {
			return w, usage("--%s %s: give a size, as 2G", s.flag, s.text)
		}
	}
	return w, nil
}

// ageOf reads a time with its unit, days among them.
func ageOf(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	n, err := strconv.ParseUint(days, 10, 16)
	d := time.Duration(n) * 24 * time.Hour
	if !ok {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 {
		return 0, usage("--older %s: give a time above 0, as 30d or 12h", text)
	}
	return d, nil
}

func (a *app) gc(ctx context.Context, f gcFlags) (err error) {
	w, err := f.wish()
	if err != nil {
		return err
	}
	folder, release, err := a.tidyFolder(ctx)
	var busy []string
	if !f.yes && home.IsInUse(err) { // who only wants to know what would go takes nothing from a measurement
		folder, release = tidy.Look(a.home), func() {}
		busy = []string{fmt.Sprintf("nothing can be removed now, and the volume of prepared data is left out: %v", err)}
	} else if err != nil {
		return err
	}
	defer release()
	defer func() { err = errors.Join(err, folder.Close()) }()
	items, notes, err := folder.Plan(w)
	if err != nil {
		return err
	}
	doc := tidyDocument{Notes: append(notes, busy...)}
	doc.add(items...)
	return a.tidied(ctx, folder, doc, f.yes, f.json)
}

// tidyFolder opens david's folder for tidying up, with nobody else at work there until release is called.
func (a *app) tidyFolder(ctx context.Context) (f *tidy.Folder, release func(), err error) {
	release, err = a.sharing.Lock(a.home, "david gc", a.env(experiment.BesideVariable))
	if err != nil {
		return nil, nil, err
	}
	if f, err = tidy.Open(ctx, a.home); err != nil {
		release()
	}
	return f, release, err
}

// tidied removes what is in the document where that was agreed to, and says so.
func (a *app) tidied(ctx context.Context, f *tidy.Folder, doc tidyDocument, yes, asJSON bool) (err error) {
	if yes {
		planned := doc
		doc = tidyDocument{Removed: true, Notes: planned.Notes}
		var gone []tidy.Item
		gone, err = f.Remove(ctx, planned.Items)
		doc.add(gone...)
	}
	if asJSON {
		doc.Items, doc.Notes = append([]tidy.Item{}, doc.Items...), append([]string{}, doc.Notes...)
		return errors.Join(a.printJSON(doc), err)
	}
	return errors.Join(a.printTidied(doc), err)
}

func (a *app) printTidied(doc tidyDocument) error {
	if len(doc.Items) > 0 {
		if err := a.fit(doc.table); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	for _, note := range doc.Notes {
		if err := say(a.out, plain.Line(note)); err != nil {
			return err
		}
	}
	what := pluralise(len(doc.Items), "thing")
	switch {
	case len(doc.Items) == 0:
		fmt.Fprintln(a.out, "nothing to remove")
	case doc.Removed:
		fmt.Fprintf(a.out, "removed: %s, %s\n", what, shortSize(doc.Bytes))
	default:
		fmt.Fprintf(a.out, "would remove %s, %s; nothing was removed: --yes does it\n", what, shortSize(doc.Bytes))
	}
	return nil
}

func (d tidyDocument) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tNAME\tSIZE\tLAST USED\tWHY")
	for _, item := range d.Items {
		used := "-"
		if !item.Used.IsZero() {
			used = item.Used.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", item.Kind, plain.Line(item.Name), shortSize(item.Bytes), used, plain.Line(item.Why))
	}
	return w.Flush()
}
