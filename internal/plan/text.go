package plan

import (
	"fmt"
	"slices"
	"strings"

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
	for _, why := range p.unpricedAlone() {
		notes = append(notes, "not priced, though they meet everything else: "+why)
	}
	if r.P99 > 0 && r.RTT == 0 && (r.reaches(Zone) || r.Regions > 1) {
		notes = append(notes, "copies that commit together over regions are left out: without --region-rtt it cannot be told whether a commit there is within --p99")
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

// near says what would have to give: the cheapest few, as the first screen has room for; all are in the JSON.
func (p Plan) near() (list []string) {
	for _, g := range p.Nearest[:min(len(p.Nearest), 4)] {
		list = append(list, fmt.Sprintf("without %s: %s, US$%s a month", g.Give, g.Choice, Money(g.USDMonth)))
	}
	if len(list) == 0 && len(p.Choices) > 0 {
		c := slices.MinFunc(p.Choices, func(a, b Choice) int { return len(a.Broken) - len(b.Broken) })
		list = []string{fmt.Sprintf("giving up one requirement is not enough; nearest: %s, which fails %s", c.Name(), c.Failed())}
		if c.lacks != "" {
			list[0] += "; " + c.lacks
		}
	}
	return list
}

func (p Plan) sure(d Choice) string {
	text := "published prices and limits added up; needs of a transaction "
	if p.Asked.Sources["cpu-per-transaction"] != "" {
		text += "measured by you (" + p.Asked.Sources["cpu-per-transaction"] + ")" + p.Span.String()
	} else {
		text += "are david's own, not yours"
		if p.Span != nil {
			text += "; what a pod costs measured by you" + p.Span.String()
		}
	}
	if d.Load.Extrapolated != "" {
		text += "; EXTRAPOLATED: " + d.Load.Extrapolated
	}
	if p.Asked.P99 > 0 {
		text += "; p99 is not predicted: david bench --slo on such a machine finds what keeps it"
	}
	if p.Asked.RTO != nil {
		text += "; RTO is the least that is published or assumed: rehearse it"
	}
	if d.Load.UncertainIOPS {
		text += "; the IOPS of its volumes are uncertain (?)"
	}
	if d.Load.MachineIOPS == 0 && d.Provider != Own {
		text += "; how many IOPS " + d.Machine + " lets through is not known: nothing was held against it"
	}
	for _, x := range remarks() {
		if len(x.Kinds) > 0 && x.holds(d.Kind) {
			text += "; " + clause(x.Says)
		}
	}
	if d.Together {
		text += "; every commit waits for another region, " + away(p.Asked.RTT)
	}
	for _, c := range d.Costs {
		if !c.Measured {
			return text + "; what " + c.What + " costs in throughput: not measured"
		}
	}
	return text
}

// away says how far another region is, in ms.
func away(rtt float64) string {
	if rtt == 0 {
		return "and how far that is was not given (--region-rtt)"
	}
	return fmt.Sprintf("%g ms away", rtt)
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

// Servers counts those that hold the data, and those that follow in other regions: of each shard, where there are several.
func (c Choice) Servers() string {
	copies := fmt.Sprint(c.Copies)
	if c.Followers > 0 {
		copies = fmt.Sprintf("%d + %d", c.Copies, c.Followers)
	}
	switch {
	case c.Shards > 1 && c.Followers > 0:
		return fmt.Sprintf("%d x (%s)", c.Shards, copies)
	case c.Shards > 1:
		return fmt.Sprintf("%d x %s", c.Shards, copies)
	}
	return copies
}

// Fails says which requirement a choice fails first, by which rule, and how many verdicts more go against
// it; "" for one that fits.
func (c Choice) Fails() string {
	if len(c.Broken) == 0 {
		return ""
	}
	v := c.Broken[0]
	text := fmt.Sprintf("%s [%s]: %s", v.For, v.Rule, v.Says)
	if more := len(c.Broken) - 1; more > 0 {
		text += fmt.Sprintf("; %d more", more)
	}
	return text
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

// Sizing says what the busiest server of the decision carries, with the interval of what was measured; ""
// without one.
func (p Plan) Sizing() string {
	if p.Span == nil {
		return ""
	}
	lo, hi := p.Span.LowLoad, p.Span.HighLoad
	d, _ := p.Decision()
	l := d.Load
	return fmt.Sprintf("the busiest server carries [95 %% of what was measured]: cores %.2f [%.2f, %.2f] of %g; IOPS %.0f [%.0f, %.0f] of %s", l.Cores, lo.Cores, hi.Cores, l.OfCores, l.IOPS, lo.IOPS, hi.IOPS, orUnknown(l.OfIOPS))
}

// Money writes the bill of a month at an end.
func (e End) Money() string {
	if e.USDMonth == 0 {
		return "nothing fits"
	}
	return Money(e.USDMonth)
}

// Each lists the cheapest of each architecture, those that fit first.
func (p Plan) Each() []Choice {
	return slices.Concat(p.CheapestOfEach(true), p.CheapestOfEach(false))
}

// Applied lists the rules that judged any of Each, and the remarks that are to be known with them.
func (p Plan) Applied() (list []Rule) {
	used := map[string]bool{}
	for _, c := range p.Each() {
		used[managerRule] = used[managerRule] || c.Manager
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
