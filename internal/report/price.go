package report

import (
	"bytes"
	"fmt"
	"slices"

	"david/internal/price"
)

// ValueLine returns what a throughput would cost untuned, in a sentence.
func ValueLine(winner string, v price.Value) string {
	if v.Name == "" {
		return "value unlocked: " + v.Why
	}
	doubt := ""
	if v.Uncertain {
		doubt = "?"
	}
	s := fmt.Sprintf("value unlocked (estimate, a lower bound): untuned, the throughput of %s would need %s, the cheapest %s predicted to reach it (%s transactions/s), at US$%s%s a month",
		winner, v.Name, v.Kind, round(v.Predicted), number(v.USDMonth), doubt)
	if v.Most > 0 {
		s += fmt.Sprintf(" (US$%s to %s over the interval of the ratio)", number(v.Least), number(v.Most))
	}
	if v.Unlocked < 0 {
		return s + fmt.Sprintf(": US$%s a month less than this one, so nothing is unlocked", number(-v.Unlocked))
	}
	return s + fmt.Sprintf(": US$%s a month more than this one", number(v.Unlocked))
}

// priceTable has a row for each arm.
func priceTable(q *price.Quote) table {
	t := table{"US$ a month per 1,000 transactions/s", []column{left("arm"), left("workload"), right("transactions/s"),
		right("US$/month per 1,000 tps"), right("95 %"), right("trials")}, nil}
	for _, a := range q.Arms {
		interval := a.Note
		if a.Note == "" {
			interval = number(a.Interval[0]) + " to " + number(a.Interval[1])
		}
		t = t.add(a.Name, a.Workload, number(a.TPS), number(a.USDPer1000), interval, integer(int64(a.Trials)))
	}
	return t
}

// priceNotes returns what is to be read with the prices.
func priceNotes(q *price.Quote) []string {
	var list []string
	for _, v := range q.Values {
		list = append(list, ValueLine(q.Winner, v))
	}
	return append(list, q.Notes...)
}

// payerLine says what is paid for.
func payerLine(q *price.Quote) string {
	doubt := ""
	if q.Machine.Doubtful {
		doubt = "?"
	}
	if q.Machine.Name == "" {
		return fmt.Sprintf("The machine: US$%s a month.", number(q.Machine.USDMonth))
	}
	return fmt.Sprintf("The machine: %s at US$%s%s a month (%s, %s).", q.Machine.Name, number(q.Machine.USDMonth), doubt, q.Machine.Source, q.Machine.Date)
}

func (p *page) fillPrice(q *price.Quote) {
	if q == nil {
		return
	}
	p.Cards = slices.Concat(priceCards(q), p.Cards)
	p.Price, p.PriceNotes, p.Payer = priceTable(q), priceNotes(q), payerLine(q)
	p.PriceChart = chart{"price", "Throughput against price: measured arms, and untuned machines as they are predicted (an estimate)", priceAlt(q)}
}

// priceCards are the prices beside the headline.
func priceCards(q *price.Quote) (cards []card) {
	for _, a := range q.Shown() {
		cards = append(cards, card{"US$ a month per 1,000 transactions/s, " + a.Name, number(a.USDPer1000)})
	}
	return cards
}

// priceAlt tells the chart of throughput against price in words.
func priceAlt(q *price.Quote) string {
	s := fmt.Sprintf("Chart of transactions/s against US$ a month. Measured, at US$%s:", number(q.Machine.USDMonth))
	for _, a := range q.Shown() {
		s += fmt.Sprintf(" %s %s;", a.Name, round(a.TPS))
	}
	s += " predicted untuned:"
	for _, x := range q.Line {
		s += fmt.Sprintf(" %s US$%s %s;", x.Name, number(x.USDMonth), round(x.TPS))
	}
	return s
}

func priceSection(q *price.Quote) Section {
	if q == nil {
		return Section{}
	}
	return Section{
		text: func(b *terminal) {
			b.paragraph(payerLine(q))
			b.fit(priceTable(q))
			for _, n := range priceNotes(q) {
				b.paragraph(n)
			}
			b.WriteString("\n")
		},
		markdown: func(b *bytes.Buffer) {
			section(b, "The price")
			fmt.Fprintf(b, "%s\n\n", escape(payerLine(q)))
			priceTable(q).markdown(b)
			items(b, priceNotes(q))
		},
		page: func(p *page) { p.fillPrice(q) },
	}
}
