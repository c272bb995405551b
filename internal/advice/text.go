package advice

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"david/internal/mycnf"
	"david/internal/plain"
)

// Document holds what an audit says, and of what.
type Document struct {
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Of       string        `json:"of"`       // the server's address, or the file
	Hardware []string      `json:"hardware"` // what is seen of it, with units
	Report
}

// Words says what is seen of a machine, with units.
func (m Machine) Words() (list []string) {
	if m.Memory > 0 {
		list = append(list, "memory "+bytesText(m.Memory))
	}
	if m.CPUs > 0 {
		list = append(list, fmt.Sprintf("%.4g CPUs", m.CPUs))
	}
	if m.FreeDisk > 0 {
		list = append(list, "free disk "+bytesText(m.FreeDisk))
	}
	if m.WriteIOPS > 0 {
		list = append(list, fmt.Sprintf("%.0f writes/s", m.WriteIOPS))
	}
	if m.DataSeen {
		list = append(list, "data "+bytesText(m.Data))
	}
	return list
}

// Worse counts the findings that are so severe or worse.
func (r Report) Worse(than Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity.Rank() <= than.Rank() {
			n++
		}
	}
	return n
}

// Text prints the findings, why each is one, and what was not seen.
func (d Document) Text(out io.Writer) error {
	seen := "hardware not seen"
	if len(d.Hardware) > 0 {
		seen = strings.Join(d.Hardware, ", ")
	}
	fmt.Fprintf(out, "%s %s, %s; %s\n\n", d.Flavour.Product(), d.Version, d.Of, seen)
	if len(d.Findings) == 0 {
		fmt.Fprintln(out, "nothing found")
	} else {
		var rows strings.Builder
		w := tabwriter.NewWriter(&rows, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "SEVERITY\tFINDING\tLINE\tAPPLIES\tEVIDENCE")
		for _, f := range d.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Severity, f.Name, cmp.Or(f.Line, "-"), f.applies(), f.located())
		}
		if err := errors.Join(w.Flush(), printRows(out, rows.String())); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nWhy")
		for _, f := range d.Findings {
			risk := ""
			if f.Risk != noRisk && f.Line != "" {
				risk = "; the risk: " + f.Risk
			}
			fmt.Fprintf(out, "  %s: %s (%s)%s\n", f.Name, f.Reason, f.Source, risk)
		}
	}
	for i, u := range d.Unseen {
		if i == 0 {
			fmt.Fprintln(out, "\nNot seen")
		}
		fmt.Fprintf(out, "  %s\n", u)
	}
	return nil
}

// printRows prints the table, the severity of what endangers data in a style.
func printRows(out io.Writer, table string) error {
	for line := range strings.Lines(table) {
		rest, danger := strings.CutPrefix(line, string(Danger))
		if danger {
			if err := plain.Styled(out, plain.Bad, string(Danger)); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(out, rest); err != nil {
			return err
		}
	}
	return nil
}

// located returns the evidence behind the place in the option file, where there is one.
func (f Finding) located() string {
	if f.Where == "" {
		return f.Evidence
	}
	return f.Where + ": " + f.Evidence
}

// applies says when a finding's line takes effect.
func (f Finding) applies() string {
	switch {
	case f.Line == "":
		return "-"
	case f.NewData:
		return "new data directory"
	case f.Restart:
		return "restart"
	}
	return "at once"
}
