package report

import (
	"bytes"
	_ "embed" // for the template
	"fmt"
	"html/template"
	"io"
	"strconv"

	"david/internal/plan"
)

//go:embed assets/plan.html
var planTemplate string

// planSection is a part of a plan's report: what every form of it shows alike.
type planSection struct {
	Title  string
	Lines  []string
	Tables []table
	Bars   []planBar
	Code   []string
}

// planBar is a bar of the tornado. X, Width and At, the decision as it is, are in percent of the chart's
// width.
type planBar struct {
	Label        string
	X, Width, At string
	Y            int
}

// TextY is where the bar's label stands.
func (b planBar) TextY() int { return b.Y + 13 }

// Height is the tornado's, in pixels.
func (s planSection) Height() int { return barHeight*len(s.Bars) + 8 }

const barHeight = 24

// planPage fills assets/plan.html.
type planPage struct {
	Policy    string
	Style     template.CSS
	What      string // of david's commands made it
	Foot      string
	Title     string
	Big, Rest string
	Head      []string
	Cards     []card
	Sections  []planSection
}

// PlanHTML writes a plan as one self-contained page without scripts: the decision first.
func PlanHTML(w io.Writer, p plan.Plan) error {
	t, err := pageTemplates()
	if err == nil {
		t, err = t.Parse(planTemplate)
	}
	if err != nil {
		return fmt.Errorf("cannot parse the page's template: %w", err)
	}
	head := p.Head()
	page := planPage{Policy: policy(pageStyle, nil...), Style: template.CSS(pageStyle), What: "plan", Foot: "Made by david plan. Nothing of it was measured unless it says so.", Title: head[0], Big: "Nothing meets all of it", Head: head[1:], Cards: planCards(p), Sections: planSections(p)}
	if d, ok := p.Decision(); ok {
		page.Big, page.Rest = d.Title, fmt.Sprintf("at %s, US$%s a month", d.Provider, plan.Marked(d.Bill.USDMonth, d.Bill.Uncertain))
		if p.Stale != "" {
			page.Rest += "; old prices: " + p.Stale
		}
	}
	if err := t.ExecuteTemplate(w, "plan", page); err != nil {
		return fmt.Errorf("cannot make the page of the plan: %w", err)
	}
	return nil
}

// PlanMarkdown writes a plan for a ticket.
func PlanMarkdown(w io.Writer, p plan.Plan) error {
	var b bytes.Buffer
	for i, line := range p.Head() {
		if i == 0 {
			fmt.Fprintf(&b, "**%s**\n\n", escape(line))
			continue
		}
		fmt.Fprintf(&b, "- %s\n", escape(line))
	}
	b.WriteString("\n")
	for _, s := range planSections(p) {
		section(&b, s.Title, s.Tables...)
		for _, line := range s.Lines {
			fmt.Fprintf(&b, "- %s\n", escape(line))
		}
		for _, line := range s.Code {
			fmt.Fprintf(&b, "    %s\n", line)
		}
		if len(s.Lines)+len(s.Code) > 0 {
			b.WriteString("\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func planCards(p plan.Plan) []card {
	d, ok := p.Decision()
	if !ok {
		return nil
	}
	o, b := d.Outcomes[0], d.Bill
	return []card{
		{fmt.Sprintf("over %g years, US$", b.Years), plan.Marked(b.USDYears, b.Uncertain)},
		{"US$ a month per 1,000 transactions/s", number(b.Per1000)},
		{"a lost machine takes", o.Data},
		{"and keeps it from writing", o.Wait},
	}
}

// planYears is the column of what a bill comes to over the years bought for.
const planYears = "US$ over the years"

// planSections lays a plan out.
func planSections(p plan.Plan) []planSection {
	sections := []planSection{{Title: "The architectures", Tables: []table{planChoices(p)}}}
	_, decided := p.Decision()
	for i, c := range p.Told() {
		of := ": " + c.Title + " at " + c.Provider
		if decided && i == 0 {
			of = ""
		}
		sections = append(sections, planOne(p, c, of)...)
		if of == "" {
			sections = append(sections, planSection{Title: "What would turn the decision over", Tables: []table{planTurns(p)}, Bars: planBars(p)})
		}
	}
	tables := []table{planFigures(p)}
	for _, c := range p.Told() {
		tables = append(tables, planOwnFigures(c))
	}
	return append(sections, planSection{Title: "To be read with it", Lines: planNotes(p)}, planSection{Title: "The chain of rules", Tables: []table{planChain(p)}},
		planSection{Title: "Sources: the rules", Tables: []table{planRules(p)}}, planSection{Title: "Sources: the figures", Tables: tables})
}

// planOne tells of one choice; of says of which, where that is not the decision.
func planOne(p plan.Plan, c plan.Choice, of string) []planSection {
	bill := planSection{Title: "The bill" + of, Lines: []string{c.Refused}}
	if c.Priced {
		bill = planSection{Title: "The bill" + of, Tables: []table{planBill(c.Bill)}, Lines: planSizing(p, c, of == "")}
	}
	return []planSection{bill, {Title: "What a failure takes" + of, Tables: []table{planOutcomes(c)}},
		{Title: "What it costs in throughput" + of, Tables: []table{planCosts(c)}}, {Title: "How it is made" + of, Code: c.Commands}}
}

func planNotes(p plan.Plan) []string {
	if p.Value == nil {
		return p.Notes
	}
	return append([]string{p.Value.String()}, p.Notes...)
}

func planChoices(p plan.Plan) table {
	t := table{"Architectures in order of cost", []column{left("architecture"), {"verdict", "verdict"}, right("US$/month"), right(planYears), left("which requirement it fails, by which rule")}, nil}
	for _, c := range p.Each() {
		verdict := "fails"
		if c.Fits() {
			verdict = "fits"
		}
		month, years := none, none
		if c.Priced {
			month, years = plan.Marked(c.Bill.USDMonth, c.Bill.Uncertain), plan.Marked(c.Bill.USDYears, c.Bill.Uncertain)
		}
		t = t.add(c.Title+" at "+c.Provider, verdict, month, years, c.Failed())
	}
	return t
}

func planBill(b plan.Bill) table {
	t := table{"The bill of a month", []column{left("what"), right("count"), right("US$ each"), right("US$/month"), right(planYears), left("source")}, nil}
	for _, l := range b.Lines {
		each := strconv.FormatFloat(l.USDEach, 'g', 6, 64)
		if l.USDOnce > 0 {
			each += " once"
		}
		t = t.add(l.What, strconv.FormatFloat(l.Count, 'g', 6, 64), each, plan.Marked(l.USDMonth, l.Uncertain), plan.Marked(l.USDYears, l.Uncertain), l.Source+" "+l.Date)
	}
	return t.add("total", "", "", plan.Marked(b.USDMonth, b.Uncertain), plan.Marked(b.USDYears, b.Uncertain), "")
}

// planSizing tells what the busiest server carries, and what a month costs for each of what is asked; of the
// decision also over the interval of what was measured.
func planSizing(p plan.Plan, d plan.Choice, decided bool) []string {
	b := d.Bill
	lines := []string{d.Load.String(), fmt.Sprintf("US$ a month: %s per 1,000 transactions/s, %.4f per IOPS, %.4f per GB", number(b.Per1000), b.PerIOPS, b.PerGB)}
	if s := p.Sizing(); s != "" && decided {
		lines = append(lines, s)
	}
	return lines
}

func planOutcomes(c plan.Choice) table {
	t := table{"RPO and RTO of each failure", []column{left("lost"), left("commits lost with it (RPO)"), left("until writes go on (RTO)"), left("rule")}, nil}
	for _, o := range c.Outcomes {
		t = t.add(string(o.Failure), o.Data, o.Wait, o.Rule)
	}
	return t
}

func planTurns(p plan.Plan) table {
	t := table{"Each assumption at half and at twice of it", []column{left("assumption"), right("is"), right("US$/month at half"), right("at twice"), left("turns over at")}, nil}
	for _, x := range p.Turns {
		turns := none
		if x.TurnsAt > 0 {
			turns = x.Write(x.TurnsAt) + ": " + x.To
		}
		t = t.add(x.Name, x.Write(x.At), x.Half.Money(), x.Full.Money(), turns)
	}
	return t
}

// mostTornado bounds the bars; the table has all assumptions.
const mostTornado = 12

// planBars draws the tornado: what each assumption makes of the bill between its half and its double.
func planBars(p plan.Plan) (bars []planBar) {
	d, _ := p.Decision()
	most := d.Bill.USDMonth
	for _, t := range p.Turns {
		most = max(most, t.Half.USDMonth, t.Full.USDMonth)
	}
	percent := func(usd float64) string { return strconv.FormatFloat(45+50*usd/most, 'f', 2, 64) + "%" }
	for i, t := range p.Turns[:min(len(p.Turns), mostTornado)] {
		low, high := min(t.Half.USDMonth, t.Full.USDMonth), max(t.Half.USDMonth, t.Full.USDMonth)
		bars = append(bars, planBar{fmt.Sprintf("%s: %s to %s", t.Name, t.Half.Money(), t.Full.Money()), percent(low), strconv.FormatFloat(max(0.3, 50*(high-low)/most), 'f', 2, 64) + "%",
			percent(d.Bill.USDMonth), 4 + barHeight*i})
	}
	return bars
}

func planCosts(c plan.Choice) table {
	t := table{"Costs in throughput", []column{left("part"), left("what it costs"), left("measured by david"), left("source")}, nil}
	for _, x := range c.Costs {
		measured := "no"
		if x.Measured {
			measured = "yes"
		}
		t = t.add(x.What, x.Says, measured, x.From())
	}
	return t
}

func planChain(p plan.Plan) table {
	t := table{"Which rule held for which architecture", []column{left("architecture"), left("requirement"), {"held", "verdict"}, left("rule"), left("it says")}, nil}
	for _, c := range p.Each() {
		for _, v := range c.Verdicts {
			held, asked := "no", v.For
			if v.Met {
				held = "yes"
			}
			if asked == "" {
				asked = none
			}
			t = t.add(c.Title, asked, held, v.Rule, v.Says)
		}
	}
	return t
}

func planRules(p plan.Plan) table {
	t := table{"The rules, with source and date", []column{left("rule"), left("says"), left("source"), left("date")}, nil}
	for _, x := range p.Applied() {
		t = t.add(x.Name, x.Says, x.Source, x.Date)
	}
	return t
}

// planFigures lists what was computed with and is no choice's own: what was given, what was measured, and what was assumed.
func planFigures(p plan.Plan) table {
	t := table{"The figures, with source and date", []column{left("figure"), right("value"), left("what"), left("source")}, nil}
	what := map[string]string{}
	for _, f := range plan.Figures() {
		what[f.Name] = f.What
	}
	for _, x := range p.Shared() {
		t = t.add(x.What, x.Value, what[x.What], x.From())
	}
	return t
}

// planOwnFigures lists the figures that are those of one choice.
func planOwnFigures(c plan.Choice) table {
	t := table{"The figures of " + c.Name(), []column{left("figure"), left("value"), left("source")}, nil}
	for _, x := range c.Own() {
		t = t.add(x.What, x.Value, x.From())
	}
	return t
}
