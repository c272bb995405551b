package price

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Money writes US$ with cents, and a "?" where it is uncertain.
func Money(x float64, uncertain bool) string {
	if uncertain {
		return fmt.Sprintf("%.2f?", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// figure writes a number, and a "?" where it is uncertain.
func figure(x float64, uncertain bool) string {
	if uncertain {
		return fmt.Sprintf("%.0f?", math.Floor(x))
	}
	return fmt.Sprintf("%.0f", math.Floor(x))
}

// Text prints the ways in a table, and below it what must be read with them.
func (d Volumes) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "OPTION\tUS$/MONTH\tWITH MACHINE\tIOPS\tGIB\tIOPS/GIB\tUS$/IOPS\tPARTS")
	for _, o := range d.Options {
		total := "-"
		if o.WithMachine > 0 {
			total = Money(o.WithMachine, o.UncertainPrice)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\t%.1f\t%.5f\t%s\n", o.Name, Money(o.USDMonth, o.UncertainPrice), total, figure(o.IOPS, o.UncertainIOPS), o.GiB, o.IOPSPerGiB,
			o.USDPerIOPS, Bill(o.Parts))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(d.Refused) > 0 {
		fmt.Fprintln(out, "\nnot this way:")
	}
	for _, r := range d.Refused {
		fmt.Fprintf(out, "  %s: %s\n", r.Name, r.Why)
	}
	fmt.Fprintln(out)
	for _, n := range append(entryNotes(d.Options), d.Notes...) {
		fmt.Fprintln(out, n)
	}
	return nil
}

// entryNotes says what the catalogue says of the volumes shown, once for each.
func entryNotes(options []Option) []string {
	var notes []string
	for _, o := range options {
		if n := o.Volume + ": " + o.Note; o.Note != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	return notes
}

// Bill writes the positions: "4 x volume of 238.4 GiB at US$8".
func Bill(parts []Part) string {
	var list []string
	for _, p := range parts {
		list = append(list, fmt.Sprintf("%s x %s at US$%.4g", plainCount(p.Count), p.What, p.USDEach))
	}
	return strings.Join(list, " + ")
}

// plainCount is a count to three digits after the point, never as 1e+06.
func plainCount(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 3, 64), "0"), ".")
}

// Text prints the machines and the volumes, each in a table.
func (c Catalogue) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MACHINE\tCPUS\tGIB\tA MONTH\tVOLUME IOPS\tDATE\tSOURCE")
	for _, m := range c.Machines {
		fmt.Fprintf(w, "%s\t%g\t%g\t%s %s\t%s\t%s\t%s\n", m.Name, m.CPUs, m.Memory.GiB(), m.Price.Currency, Money(m.Price.Amount, m.Doubt("price")),
			orDash(m.OwnIOPS(), m.Doubt("volume_iops") || m.Doubt("included_iops")), m.Date, m.Source)
	}
	fmt.Fprintln(w, "\nVOLUME\tIOPS IN IT\tIOPS/GIB\tA MONTH\tMOST IOPS\tDATE\tSOURCE")
	for _, v := range c.Volumes {
		of := "by size"
		if len(v.Sizes) == 0 {
			of = fmt.Sprintf("%s %g/%s", v.Price.Currency, v.Price.Amount, v.Price.Per)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, orDash(v.BaseIOPS, slices.Contains(v.Uncertain, "base_iops")),
			orDash(v.IOPSPerGiB, slices.Contains(v.Uncertain, "iops_per_gib")), of, orDash(v.MaxIOPS, slices.Contains(v.Uncertain, "max_iops")), v.Date, v.Source)
	}
	return w.Flush()
}

// orDash writes a figure, or a dash for 0.
func orDash(x float64, uncertain bool) string {
	if x == 0 {
		return "-"
	}
	return figure(x, uncertain)
}
