package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

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
		Long: "List the experiments in david's folder, newest first. SIZE is what an experiment takes on the disk; the verdict, and the ratio with its 95 % interval,\n" +
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
		a.remark("%v", err)
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
	rows := [][]string{{"EXPERIMENT", "SERVER", "SIZE"}}
	total := int64(0)
	for _, s := range doc.Experiments {
		total += s.Size
		rows = append(rows, []string{plain.Line(s.ID), plain.Line(serverShort(s.Server)), shortSize(s.Size)})
	}
	var err error
	for i, head := range heads(rows) {
		if i == 0 {
			_, err = fmt.Fprintln(a.out, head+"VERDICT, RATIO")
			continue
		}
		err = errors.Join(err, printVerdict(a.out, head, doc.Experiments[i-1]))
	}
	fmt.Fprintln(a.out)
	fmt.Fprintf(a.out, "%s in %s: %s\n", pluralise(len(doc.Experiments), "experiment"), filepath.Join(doc.Home, "experiments"), shortSize(total))
	if v := doc.Volume; v != nil {
		err = errors.Join(err, say(a.out, fmt.Sprintf("prepared data: %s of the disk, and at most %s, the length of their file; david gc shrinks it", shortSize(v.Bytes), shortSize(v.Length))))
		fmt.Fprintf(a.out, "  %s\n", v.Path)
	}
	return err
}

// heads sets rows in columns that are two blanks apart.
func heads(rows [][]string) []string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	w.Flush() // a Builder takes everything
	return strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
}

// narrowest is how narrow the column of verdicts may be: what an experiment with a longer name came to stands below it.
const narrowest = 20

// printVerdict prints what an experiment came to behind what it is, its first words in their style.
func printVerdict(out io.Writer, head string, l listed) error {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	if columns-len(indent) < narrowest {
		indent = "  "
		head = strings.TrimRight(head, " ") + "\n" + indent
	}
	lines := report.Wrap(plain.Line(l.said()), columns-len(indent))
	if l.Err != "" || l.Verdict == stats.Invalid {
		lines = shortened(lines, columns-len(indent))
	}
	word, _, _ := strings.Cut(plain.Line(l.said()), ":")
	rest, found := strings.CutPrefix(lines[0], word)
	if !found {
		word, rest = "", lines[0]
	}
	_, err := io.WriteString(out, head)
	err = errors.Join(err, styled(out, l.style(), word))
	for _, line := range lines[1:] {
		rest += "\n" + indent + line
	}
	_, last := fmt.Fprintln(out, rest)
	return errors.Join(err, last)
}

// shortened keeps a list a list: of why something came to nothing three lines are enough; --json has it whole.
func shortened(lines []string, width int) []string {
	const most, more = 3, " ..."
	if len(lines) <= most {
		return lines
	}
	last := report.Wrap(lines[most-1], width-len(more))[0]
	return append(lines[:most-1], last+more)
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
	return stats.Digits(v, 3) + " " + unit
}

// ratio is that of the arm the verdict is of, with its interval; "" where nothing is compared.
func (l listed) ratio() string {
	switch {
	case l.Ratio == 0:
		return ""
	case l.Interval == stats.Interval{}:
		return fmt.Sprintf(", %.2fx", l.Ratio)
	}
	return fmt.Sprintf(", %.2fx [%.2f, %.2f]", l.Ratio, l.Interval[0], l.Interval[1])
}

// said tells how far an experiment got, and what it came to.
func (l listed) said() string {
	s := l.Summary
	switch {
	case s.Err != "":
		return "unreadable: " + s.Err
	case !s.Finished && l.Verdict != "":
		return "interrupted, or running; so far " + string(l.Verdict) + l.ratio()
	case !s.Finished:
		return "interrupted, or running"
	case s.Failed:
		return "failed before its first trial"
	case s.Kind == result.KindLive && l.Why != "":
		return firstLine(l.Why)
	case s.Kind == result.KindCrash:
		return "finished: " + s.Best
	case l.Verdict == stats.Invalid:
		return "invalid: " + strings.TrimPrefix(firstLine(l.Why), invalidText)
	case l.Verdict == "" && l.Why != "":
		return "not judged: " + firstLine(l.Why)
	case s.Kind == result.KindTune && s.Best == stats.Control:
		return "nothing surely faster than the control" + l.ratio()
	case l.Verdict != "":
		return strings.TrimSuffix(string(l.Verdict)+": "+l.Arm, ": ") + l.ratio()
	case l.TPS > 0:
		return stats.Digits(l.TPS, 4) + " transactions/s"
	}
	return "finished"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
