package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"david/internal/price"
)

// notes says what must be read with a plan.
func (p Plan) notes() []string {
	r := p.Asked
	notes := []string{
		fmt.Sprintf("sized for %s at the end of %g years, %g %% a year; a cloud's volumes can be bought as the data grow, for less than this until then", price.GiB(r.room().GiB()), r.figure("years"), 100*r.figure("growth")),
		"needs of a transaction: " + r.needsFrom(),
		"no architecture survives a DROP TABLE: copies repeat it. Backups are not in the bill; keep them elsewhere, and restore them to see that they work",
		"US$ without VAT; support, backups and traffic to clients are not in the bill; ? marks what rests on an uncertain price or assumption",
		"left out, as no price is known here: Aurora, RDS Multi-AZ clusters, HeatWave, PlanetScale, and others whose prices the catalogue lacks",
	}
	if t := p.Third; t != nil {
		notes = append(notes, t.String())
	}
	return notes
}

// needsFrom says where the figures of a transaction are from.
func (r Request) needsFrom() string {
	if s := r.Sources["cpu-per-transaction"]; s != "" {
		return s
	}
	return "as david measured them with sysbench on its own machine (docs/plan.md), not yours: --from an experiment of yours replaces them"
}

// Text prints the decision, how sure it is, what it cannot survive, what would turn it over and what to do next; then all
// architectures, the bill, what failures take.
func (p Plan) Text(out io.Writer) error {
	for _, line := range p.Head() {
		fmt.Fprintln(out, line)
	}
	if err := p.table(out); err != nil {
		return err
	}
	p.refused(out)
	if d, ok := p.Decision(); ok {
		if err := d.details(out); err != nil {
			return err
		}
	}
	p.sizing(out)
	if err := p.tornado(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if v := p.Value; v != nil {
		fmt.Fprintln(out, v)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(out, n)
	}
	return nil
}

// String tells what being tuned is worth.
func (v *Value) String() string {
	if v.Saved < 0 {
		return fmt.Sprintf("value unlocked: none: untuned it would be %s at US$%s a month", v.Untuned, Money(v.USDMonth))
	}
	return fmt.Sprintf("value unlocked (estimate): with the control's needs it would be %s at US$%s a month: US$%s a month more, %s over the years", v.Untuned, Money(v.USDMonth), Money(v.Saved), Money(v.Years))
}

// Head returns the five lines that decide.
func (p Plan) Head() []string {
	d, ok := p.Decision()
	if !ok {
		return append([]string{"decision: nothing meets all of it" + p.stale()}, p.near()...)
	}
	b := d.Bill
	return []string{
		fmt.Sprintf("decision: %s: US$%s a month, %s over %g years%s", d.Name(), Marked(b.USDMonth, b.Uncertain), Marked(b.USDYears, b.Uncertain), b.Years, p.stale()),
		"how sure: " + p.sure(d),
		"it cannot survive: " + d.weakness(),
		"turned over by: " + p.turned(),
		"next: " + d.next(),
	}
}

// String says what the bill is over the interval of what was measured.
func (s *Span) String() string {
	if s == nil {
		return ", of too few runs for an interval"
	}
	text := fmt.Sprintf("; over its 95 %% interval US$%s to %s a month", s.Low.Money(), s.High.Money())
	for _, e := range []End{s.Low, s.High} {
		if !e.same {
			text += ", there for " + e.Decision
		}
	}
	return text
}

func (p Plan) stale() string {
	if p.Stale == "" {
		return ""
	}
	return fmt.Sprintf("; OLD PRICES, over %d days: %s", StaleDays, p.Stale)
}

// near says what would have to give.
func (p Plan) near() (list []string) {
	for _, g := range p.Nearest {
		list = append(list, fmt.Sprintf("without %s: %s, US$%s a month", g.Give, g.Choice, Money(g.USDMonth)))
	}
	if len(list) == 0 && len(p.Choices) > 0 {
		c := slices.MinFunc(p.Choices, func(a, b Choice) int { return len(a.Broken) - len(b.Broken) })
		list = []string{fmt.Sprintf("giving up one requirement is not enough; nearest: %s, which fails %s", c.Name(), c.Fails())}
	}
	return list
}

func (p Plan) sure(d Choice) string {
	text := "published prices and limits added up; needs of a transaction "
	if p.Asked.Sources["cpu-per-transaction"] != "" {
		text += "measured by you (" + p.Asked.Sources["cpu-per-transaction"] + ")" + p.Span.String()
	} else {
		text += "are david's own, not yours"
	}
	if d.Load.Extrapolated != "" {
		text += "; EXTRAPOLATED: " + d.Load.Extrapolated
	}
	if p.Asked.P99 > 0 {
		text += "; p99 is not predicted: david bench --slo on such a machine finds what keeps it"
	}
	if d.Load.UncertainIOPS {
		text += "; the IOPS of its volumes are uncertain (?)"
	}
	if d.Load.MachineIOPS == 0 && d.Provider != Own {
		text += "; how many IOPS " + d.Machine + " lets through is not known: nothing was held against it"
	}
	for _, c := range d.Costs {
		if !c.Measured {
			return text + "; what " + c.What + " costs in throughput: not measured"
		}
	}
	return text
}

// weakness names the mildest failure that takes acknowledged commits.
func (c Choice) weakness() string {
	for _, o := range c.Outcomes {
		if o.lost != none {
			return fmt.Sprintf("%s lost: %s; RTO %s", o.Failure, o.Data, o.Wait)
		}
	}
	return "a DROP TABLE, as nothing does"
}

// turned names the assumption that turns the decision with the least change.
func (p Plan) turned() string {
	best := Turn{}
	for _, t := range p.Turns {
		if t.TurnsAt > 0 && (best.TurnsAt == 0 || t.change() < best.change()) {
			best = t
		}
	}
	switch {
	case best.TurnsAt > 0:
		return fmt.Sprintf("--%s %s instead of %s: then %s", best.Name, best.Write(best.TurnsAt), best.Write(best.At), best.To)
	case len(p.Turns) == 0:
		return "not asked (--sensitivity)"
	}
	return "no assumption alone, between half and twice of it"
}

// Write writes a value of the assumption with its unit.
func (t Turn) Write(x float64) string {
	switch t.Unit {
	case Size:
		return price.GiB(x / (1 << 30))
	case Duration:
		return span(x)
	}
	return fmt.Sprintf("%.4g", x)
}

func (c Choice) next() string {
	if len(c.Commands) > 0 && !strings.HasPrefix(c.Commands[0], "#") {
		return c.Commands[0]
	}
	return "the commands below; then david bench there, and david plan --from what it measured"
}

// CheapestOfEach keeps the first choice of each architecture, of those that fit or of the others.
func (p Plan) CheapestOfEach(fits bool) (list []Choice) {
	seen := map[Kind]bool{}
	for _, c := range p.Choices {
		if !seen[c.Kind] && c.Fits() == fits {
			list = append(list, c)
		}
		seen[c.Kind] = true
	}
	return list
}

func (p Plan) table(out io.Writer) error {
	fit := p.CheapestOfEach(true)
	if len(fit) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nthese meet everything (the cheapest of each; all: --json):")
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ARCHITECTURE\tUS$/MONTH\tOVER THE YEARS\tPER 1,000 TPS\tPER IOPS\tPER GB\tSERVERS\tMACHINE LOST: RPO\tRTO")
	for _, c := range fit {
		o := c.Outcomes[0]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.4f\t%.4f\t%s\t%s\t%s\n", c.Name(), Marked(c.Bill.USDMonth, c.Bill.Uncertain), Marked(c.Bill.USDYears, c.Bill.Uncertain), c.Bill.Per1000, c.Bill.PerIOPS, c.Bill.PerGB,
			c.servers(), o.Data, o.Wait)
	}
	return w.Flush()
}

func (c Choice) servers() string {
	if c.Shards > 1 {
		return fmt.Sprintf("%d x %d", c.Shards, c.Copies)
	}
	return fmt.Sprint(c.Copies)
}

// refused prints what does not meet everything, with what it fails.
func (p Plan) refused(out io.Writer) {
	list := p.CheapestOfEach(false)
	if len(list) > 0 {
		fmt.Fprintln(out, "\nnot these:")
	}
	for _, c := range list {
		at := ""
		if c.Priced {
			at = fmt.Sprintf(" (US$%s)", Marked(c.Bill.USDMonth, c.Bill.Uncertain))
		}
		fmt.Fprintf(out, "  %s%s: %s\n", c.Title, at, c.Fails())
	}
}

// Fails says which requirements a choice fails, and by which rule.
func (c Choice) Fails() string {
	var list []string
	for _, v := range c.Broken {
		list = append(list, fmt.Sprintf("%s [%s]: %s", v.For, v.Rule, v.Says))
	}
	return strings.Join(list, "; ")
}

// Failed names the requirements that a choice fails, each with the rules by which it does.
func (c Choice) Failed() string {
	var asked []string
	rules := map[string][]string{}
	for _, v := range c.Broken {
		if rules[v.For] == nil {
			asked = append(asked, v.For)
		}
		rules[v.For] = append(rules[v.For], v.Rule)
	}
	for i, name := range asked {
		asked[i] = name + " (" + strings.Join(rules[name], ", ") + ")"
	}
	return strings.Join(asked, "; ")
}

// details prints the bill of a choice, what failures take of it, what it costs in throughput, and how it is made.
func (c Choice) details(out io.Writer) error {
	fmt.Fprintf(out, "\n%s, the bill:\n", c.Name())
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tWHAT\tUS$ EACH\tUS$/MONTH\tSOURCE")
	for _, l := range c.Bill.Lines {
		each := fmt.Sprintf("%.6g", l.USDEach)
		if l.USDOnce > 0 {
			each += " once"
		}
		fmt.Fprintf(w, "%.6g\t%s\t%s\t%s\t%s %s\n", l.Count, l.What, each, Marked(l.USDMonth, l.Uncertain), l.Source, l.Date)
	}
	fmt.Fprintf(w, "\ttotal\t\t%s\t\n", Marked(c.Bill.USDMonth, c.Bill.Uncertain))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, c.Load)
	fmt.Fprintln(out, "\nif it is lost:")
	for _, o := range c.Outcomes {
		fmt.Fprintf(out, "  %s: RPO %s; RTO %s [%s]\n", o.Failure, o.Data, o.Wait, o.Rule)
	}
	c.printCosts(out)
	if len(c.Commands) > 0 {
		fmt.Fprintln(out, "\nit is made by:")
	}
	for _, command := range c.Commands {
		fmt.Fprintln(out, "  "+command)
	}
	return nil
}

func (c Choice) printCosts(out io.Writer) {
	if len(c.Costs) > 0 {
		fmt.Fprintln(out, "\nwhat it costs in throughput:")
	}
	for _, cost := range c.Costs {
		by := "not measured by david"
		if cost.Measured {
			by = "measured by david"
		}
		fmt.Fprintf(out, "  %s: %s (%s; %s, %s)\n", cost.What, cost.Says, by, cost.Source, cost.Date)
	}
}

// sizing prints what the busiest server of the decision carries, with the interval of what was measured.
func (p Plan) sizing(out io.Writer) {
	if p.Span == nil {
		return
	}
	lo, hi := p.Span.LowLoad, p.Span.HighLoad
	d, _ := p.Decision()
	l := d.Load
	fmt.Fprintln(out, "\nthe busiest server carries [95 % of what was measured]:")
	fmt.Fprintf(out, "  cores %.2f [%.2f, %.2f] of %g; IOPS %.0f [%.0f, %.0f] of %s; network %.3f Gbit/s; room %s of %s; the pool holds %.0f %%\n", l.Cores, lo.Cores, hi.Cores, l.OfCores, l.IOPS, lo.IOPS, hi.IOPS,
		orUnknown(l.OfIOPS), l.Network/1e9, price.GiB(l.Room.GiB()), price.GiB(l.OfRoom.GiB()), 100*l.Pool)
}

// tornado prints what each assumption does, the strongest first, as bars.
func (p Plan) tornado(out io.Writer) error {
	if len(p.Turns) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nwith each assumption at half and at twice of it (US$ a month of what is decided then):")
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ASSUMPTION\tIS\tAT HALF\tAT TWICE\t\tTURNS OVER AT")
	most := p.Turns[0].Swing()
	for _, t := range p.Turns {
		turns := "-"
		if t.TurnsAt > 0 {
			turns = fmt.Sprintf("%s: %s", t.Write(t.TurnsAt), t.To)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.Write(t.At), t.Half.Money(), t.Full.Money(), bar(t.Swing(), most), turns)
	}
	return w.Flush()
}

// Money writes the bill of a month at an end.
func (e End) Money() string {
	if e.USDMonth == 0 {
		return "nothing fits"
	}
	return Money(e.USDMonth)
}

func bar(x, most float64) string {
	if most == 0 {
		return ""
	}
	return strings.Repeat("#", int(20*x/most+0.5))
}

// Why prints the chain of rules of each architecture: which held, which did not, and what each rests on.
func (p Plan) Why(out io.Writer) {
	for _, c := range p.Each() {
		verdict := "fails"
		if c.Fits() {
			verdict = "fits"
		}
		fmt.Fprintf(out, "\n%s: %s\n", c.Name(), verdict)
		for _, v := range c.Verdicts {
			mark, asked := "no ", v.For
			if v.Met {
				mark = "yes"
			}
			if asked == "" {
				asked = "-"
			}
			fmt.Fprintf(out, "  %s  %s  [%s] %s\n", mark, asked, v.Rule, v.Says)
		}
	}
	fmt.Fprintln(out, "\nthe rules:")
	for _, x := range p.Applied() {
		fmt.Fprintf(out, "  [%s] %s (%s, %s)\n", x.Name, x.Says, x.Source, x.Date)
	}
}

// Each lists the cheapest of each architecture, those that fit first.
func (p Plan) Each() []Choice {
	return slices.Concat(p.CheapestOfEach(true), p.CheapestOfEach(false))
}

// Applied lists the rules that judged any of Each, and the remarks that are to be known with them.
func (p Plan) Applied() (list []Rule) {
	used := map[string]bool{}
	for _, c := range p.Each() {
		used["manager"] = used["manager"] || c.Manager
		for _, v := range c.Verdicts {
			used[v.Rule] = true
		}
	}
	used["managed-backup"] = used["managed-machine"] || used["managed-ha-machine"]
	for _, x := range Rules() {
		if used[x.Name] || x.remark {
			list = append(list, x)
		}
	}
	return list
}
