package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"david/internal/price"
)

// Quote prints what an experiment's throughput costs.
func Quote(out io.Writer, q price.Quote) error {
	name := q.Experiment
	if q.Machine.Name != "" {
		name += ", " + q.Machine.Name
	}
	fmt.Fprintf(out, "%s: US$%s a month\n\n", name, price.Money(q.Machine.USDMonth, q.Machine.Doubtful))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ARM\tWORKLOAD\tTPS\tUS$/MONTH PER 1,000 TPS\t95 %\tTRIALS")
	for _, arm := range q.Arms {
		interval := arm.Note
		if arm.Note == "" {
			interval = fmt.Sprintf("%.2f to %.2f", arm.Interval[0], arm.Interval[1])
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%s\t%d\n", arm.Name, arm.Workload, arm.TPS, arm.USDPer1000, interval, arm.Trials)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, v := range q.Values {
		fmt.Fprintln(out, ValueLine(q.Winner, v))
	}
	for _, n := range q.Notes {
		fmt.Fprintln(out, n)
	}
	return nil
}
