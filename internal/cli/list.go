package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/home"
	"david/internal/plain"
	"david/internal/report"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
)

// listed is an experiment in a list.
type listed struct {
	result.Summary
	Size int64 `json:"size_bytes"` // on the disk
	outcome
}

// listDocument is david list --json.
type listDocument struct {
	Home        string          `json:"home"`
	Experiments []listed        `json:"experiments"`
	Volume      *sandbox.Volume `json:"volume,omitempty"` // the sparse file that prepared data lie in
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the experiments in david's folder, newest first: size, ratio, verdict",
		Long: "List the experiments in david's folder, newest first. SIZE is what an experiment takes on the disk; RATIO, with its 95 % interval, and VERDICT\n" +
			"are of the arm a tune handed over, of others of the arm that did best. A run in which a gate failed is called invalid.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			doc, err := a.listing()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(doc)
			}
			return a.printListing(doc)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// listing reads what there is.
func (a *app) listing() (doc listDocument, err error) {
	doc = listDocument{Home: a.home, Experiments: []listed{}}
	found, err := result.List(a.home)
	if err != nil {
		return doc, err
	}
	known, notKept := a.outcomes(), error(nil)
	for _, s := range found {
		row := listed{Summary: s}
		if row.Size, err = home.Allocated(s.Dir); err != nil {
			return doc, err
		}
		if row.outcome, err = a.came(known, s); errors.Is(err, errNotKept) {
			notKept = err
		}
		doc.Experiments = append(doc.Experiments, row)
	}
	if err := errors.Join(notKept, known.prune(found)); err != nil {
		fmt.Fprintf(a.err, "david: %v\n", err)
	}
	v, ok, err := sandbox.SeeVolume(a.home)
	if ok {
		doc.Volume = &v
	}
	return doc, err
}

// came is what an experiment came to; nothing of one that has no trials, or is on no readable record.
func (a *app) came(known *outcomes, s result.Summary) (outcome, error) {
	switch {
	case s.Err == "" && s.Kind == result.KindLive:
		return a.cameLive(s), nil
	case s.Err != "" || s.Trials == 0 || s.Kind == result.KindCrash:
		return outcome{}, nil
	}
	o, err := known.of(s)
	if err != nil && !errors.Is(err, errNotKept) {
		o.Why, err = err.Error(), nil
	}
	return o, err
}

// cameLive is what a tune of a running server came to. It is not kept: a rollback changes it, and it is soon worked out.
func (a *app) cameLive(s result.Summary) outcome {
	d, err := a.loadShown(s.Dir)
	if err != nil {
		return outcome{Why: err.Error()}
	}
	verdict, why := report.LiveVerdict(d)
	return outcome{Verdict: verdict, Why: why}
}

// printListing prints the table, and what the folder takes.
func (a *app) printListing(doc listDocument) error {
	var rows bytes.Buffer
	w := tabwriter.NewWriter(&rows, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "EXPERIMENT\tSERVER\tTRIALS\tSIZE\tRATIO\tVERDICT")
	total := int64(0)
	for _, s := range doc.Experiments {
		total += s.Size
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", plain.Line(s.ID), plain.Line(serverShort(s.Server)), s.Trials, shortSize(s.Size), s.ratio(), plain.Line(s.said()))
	}
	if err := errors.Join(w.Flush(), printStyled(a.out, rows.String(), doc.Experiments)); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\n%s in %s: %s\n", pluralise(len(doc.Experiments), "experiment"), filepath.Join(doc.Home, "experiments"), shortSize(total))
	if v := doc.Volume; v != nil {
		fmt.Fprintf(a.out, "prepared data in %s: %s of the disk (its length, %s, is the most it may grow to); david gc shrinks it\n", v.Path, shortSize(v.Bytes), shortSize(v.Length))
	}
	return nil
}

// printStyled prints the table with the words of each verdict in their style: a line for each experiment, under one of
// heads.
func printStyled(out io.Writer, table string, list []listed) error {
	for i, line := range strings.SplitAfter(table, "\n") {
		style, word := plain.Style(""), ""
		if i > 0 && i <= len(list) {
			style = list[i-1].style()
			word, _, _ = strings.Cut(plain.Line(list[i-1].said()), ":")
		}
		before, after, found := cutLast(line, word)
		if style == "" || !found {
			before, word, after = line, "", ""
		}
		_, err := io.WriteString(out, before)
		if err := errors.Join(err, plain.Styled(out, style, word)); err != nil {
			return err
		}
		if _, err := io.WriteString(out, after); err != nil {
			return err
		}
	}
	return nil
}

// cutLast cuts a line around the last place where a word stands.
func cutLast(line, word string) (before, after string, found bool) {
	at := strings.LastIndex(line, word)
	if word == "" || at < 0 {
		return line, "", false
	}
	return line[:at], line[at+len(word):], true
}

// style is that of a verdict in a list; "" for those that are neither good nor bad.
func (l listed) style() plain.Style {
	switch l.Verdict {
	case stats.Faster, report.Kept:
		return plain.Good
	case stats.Slower, stats.Invalid, report.SetBack, report.NotSetBack:
		return plain.Bad
	}
	if l.Err != "" {
		return plain.Bad
	}
	return ""
}

// firstNumbers is a version without what a distribution added.
var firstNumbers = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*`)

func serverShort(s result.Server) string {
	version := firstNumbers.FindString(s.Version)
	if version == "" {
		version = s.Version
	}
	return string(s.Flavour) + " " + version
}

// shortSize is a size in three digits.
func shortSize(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, next
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

func (l listed) ratio() string {
	switch {
	case l.Ratio == 0:
		return "-"
	case l.Interval == stats.Interval{}:
		return fmt.Sprintf("%.2fx", l.Ratio)
	}
	return fmt.Sprintf("%.2fx [%.2f, %.2f]", l.Ratio, l.Interval[0], l.Interval[1])
}

// said tells how far an experiment got, and what it came to.
func (l listed) said() string {
	s := l.Summary
	switch {
	case s.Err != "":
		return "unreadable: " + s.Err
	case !s.Finished && l.Verdict != "":
		return string(l.Verdict) + " so far; interrupted, or running"
	case !s.Finished:
		return "interrupted, or running"
	case s.Failed:
		return "failed before its first trial"
	case s.Kind == result.KindLive && l.Why != "":
		return firstLine(l.Why)
	case s.Kind == result.KindCrash:
		return "finished: " + s.Best
	case l.Verdict == stats.Invalid:
		return "invalid: " + firstLine(l.Why)
	case l.Verdict == "" && l.Why != "":
		return "not judged: " + firstLine(l.Why)
	case s.Kind == result.KindTune && s.Best == stats.Control:
		return "nothing surely faster than the control"
	case l.Verdict != "":
		return strings.TrimSuffix(string(l.Verdict)+": "+l.Arm, ": ")
	case l.TPS > 0:
		return fmt.Sprintf("%.4g transactions/s", l.TPS)
	}
	return "finished"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
