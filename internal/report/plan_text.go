package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"david/internal/plain"
	"david/internal/plan"
	"david/internal/price"
)

// PlanText writes a plan for a terminal: the lines that decide, then what they rest on, and with why the
// chain of rules behind each verdict.
func PlanText(w io.Writer, p plan.Plan, why bool) error {
	b := terminal{columns: columns}
	b.paragraphs(p.Head())
	planFitting(&b, p)
	for i, c := range p.Told() {
		planTold(&b, p, c, i == 0)
	}
	if t := planTurns(p); len(t.Rows) > 0 {
		b.WriteString("\n")
		b.paragraph("with each assumption at half and at twice of it (US$ a month of what is decided then):")
		b.fit(t)
	}
	b.WriteString("\n")
	b.paragraphs(planNotes(p))
	if why {
		planWhy(&b, p)
	}
	return b.flush(w)
}

// planFitting lists the architectures that meet everything, then the others, each with what it fails first.
func planFitting(b *terminal, p plan.Plan) {
	t := table{"", []column{left("these meet everything"), right("US$/month"), right("in all"), right("servers"), left("a lost machine takes")}, nil}
	for _, c := range p.CheapestOfEach(true) {
		o := c.Outcomes[0]
		t.Cols[2].Head = fmt.Sprintf("in %g years", c.Bill.Years)
		t = t.add(c.Title+" at "+c.Provider, plan.Marked(c.Bill.USDMonth, c.Bill.Uncertain), plan.Marked(c.Bill.USDYears, c.Bill.Uncertain), c.Servers(), "RPO "+o.Data+"; RTO "+o.Wait)
	}
	if len(t.Rows) > 0 {
		b.WriteString("\n")
		b.fit(t)
	}
	list := p.CheapestOfEach(false)
	if len(list) > 0 {
		b.WriteString("\nnot these (all of it: --why):\n")
	}
	for _, c := range list {
		at := ""
		if c.Priced {
			at = fmt.Sprintf(" (US$%s)", plan.Marked(c.Bill.USDMonth, c.Bill.Uncertain))
		}
		b.paragraph(fmt.Sprintf("%s%s: %s", c.Title, at, c.Fails()))
	}
}

// planTold tells the bill of a choice, what failures take of it, what it costs in throughput, and how it is
// made.
func planTold(b *terminal, p plan.Plan, c plan.Choice, decided bool) {
	if !c.Priced {
		b.WriteString("\n")
		b.paragraph(c.Title + " at " + c.Provider + " has no bill: " + c.Refused)
	} else {
		b.WriteString("\n")
		b.paragraph(c.Name() + ", the bill:")
		b.fit(planBill(c.Bill).without(planYears))
		b.paragraphs(planSizing(p, c, decided))
	}
	b.WriteString("\nif it is lost:\n")
	for _, o := range c.Outcomes {
		b.paragraph(fmt.Sprintf("%s: RPO %s; RTO %s [%s]", o.Failure, o.Data, o.Wait, o.Rule))
	}
	if len(c.Costs) > 0 {
		b.WriteString("\nwhat it costs in throughput:\n")
	}
	for _, x := range c.Costs {
		b.paragraph(fmt.Sprintf("%s: %s (%s; %s)", x.What, x.Says, planBy(x), x.From()))
	}
	if len(c.Commands) > 0 {
		b.WriteString("\nit is made by:\n")
	}
	b.commands(c.Commands)
}

// commands writes lines that are whole, to be copied.
func (b *terminal) commands(list []string) {
	for _, command := range list {
		b.WriteString(strings.Join(plain.Command("  "+command, b.columns), "\n") + "\n")
	}
}

func planBy(c plan.Cost) string {
	if c.Measured {
		return "measured by david"
	}
	return "not measured by david"
}

// planWhy tells which rules held for each architecture, and what each rests on.
func planWhy(b *terminal, p plan.Plan) {
	for _, c := range p.Each() {
		verdict := "fits"
		if !c.Fits() {
			verdict = "fails " + c.Failed()
		}
		b.WriteString("\n")
		b.paragraph(c.Name() + ": " + verdict)
		for _, v := range c.Verdicts {
			held := "no"
			if v.Met {
				held = "yes"
			}
			b.paragraph(fmt.Sprintf("%s %s [%s] %s", held, v.For, v.Rule, v.Says))
		}
		for _, x := range c.Own() {
			b.paragraph(fmt.Sprintf("by %s: %s (%s)", x.What, x.Value, x.From()))
		}
	}
	b.WriteString("\nthe figures:\n")
	for _, x := range p.Shared() {
		b.paragraph(fmt.Sprintf("%s: %s (%s)", x.What, x.Value, x.From()))
	}
	b.WriteString("\nthe rules:\n")
	for _, x := range p.Applied() {
		b.paragraph(fmt.Sprintf("[%s] %s (%s, %s)", x.Name, x.Says, x.Source, x.Date))
	}
}

// Densities writes a table of write IOPS per GB for a terminal.
func Densities(w io.Writer, list []plan.Density) error {
	t := table{"", []column{left("what"), right("writes/s"), right("most"), right("GB"), right("per GB"), right("used"), right("most used"), left("source")}, nil}
	for _, d := range list {
		source := d.Source + " " + d.Date
		if d.Note != "" {
			source += "; " + d.Note
		}
		if d.GB == 0 {
			t = t.add(d.Name, "", "", "", fmt.Sprintf("%g", d.PerGB), "", "", source)
			continue
		}
		t = t.add(d.Name, planRate(d, d.Writes), planRate(d, d.Most), commas(strconv.FormatFloat(d.GB, 'f', 1, 64)), fmt.Sprintf("%.1f", d.PerGB), fmt.Sprintf("%.1f", d.PerUsed), fmt.Sprintf("%.1f", d.MostUsed), source)
	}
	b := terminal{columns: columns}
	b.fit(t)
	return b.flush(w)
}

func planRate(d plan.Density, x float64) string {
	if d.Uncertain {
		return price.Number(x) + "?"
	}
	return price.Number(x)
}

// Ceph writes the ratios of a Ceph pool, settings for its nodes, and what became of study P4's settings.
func Ceph(w io.Writer, settings []string) error {
	b := terminal{columns: columns}
	b.WriteString("ratios (study P4 in 2016; today):\n")
	for _, x := range plan.Ratios() {
		b.paragraph(fmt.Sprintf("%s: %s; %s (%s)", x.What, x.Then, x.Today, x.Source))
	}
	b.WriteString("\nsettings:\n")
	b.commands(settings)
	b.WriteString("\nwhat became of study P4's settings:\n")
	for _, x := range plan.FileStore() {
		b.paragraph(fmt.Sprintf("%s: %s (%s)", x.Then, x.Today, x.Source))
	}
	return b.flush(w)
}
