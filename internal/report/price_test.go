package report

import (
	"bytes"
	"strings"
	"testing"

	"david/internal/price"
)

// pricedFixture returns a comparison with what it costs.
func pricedFixture() Data {
	d := compareFixture()
	c, err := price.Default()
	if err != nil {
		panic(err) // the catalogue is david's own
	}
	e := price.Experiment{Experiment: d.Experiment, Arms: d.Arms, Trials: d.Trials, Finish: d.Finish}
	by, err := c.Payer(e, "e2e-c3.16gb", 0)
	if err != nil {
		panic(err)
	}
	q, err := c.Quote(e, by)
	if err != nil {
		panic(err)
	}
	d.Price = &q
	return d
}

// Every form shows the prices, and calls the estimate one.
func TestPrices(t *testing.T) {
	d := pricedFixture()
	for name, form := range map[string][]byte{"text": render(t, Text, d), "markdown": render(t, Markdown, d), "html": render(t, HTML, d), "json": render(t, JSON, d)} {
		for _, want := range []string{"e2e-c3.16gb", "estimate"} {
			if !bytes.Contains(form, []byte(want)) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	if alt := priceAlt(d.Price); !strings.Contains(alt, "control ") || !strings.Contains(alt, "predicted untuned: ") {
		t.Errorf("the chart in words: %s", alt)
	}
}

func TestValueLine(t *testing.T) {
	v := price.Value{Kind: "machine", Name: "m", USDMonth: 80, Predicted: 400, Unlocked: 60, Least: 40, Most: 160}
	want := "value unlocked (estimate, a lower bound): untuned, the throughput of fast would need m, the cheapest machine predicted to reach it (400 transactions/s), at US$80.00 a month " +
		"(US$40.00 to 160.00 over the interval of the ratio): US$60.00 a month more than this one"
	if got := ValueLine("fast", v); got != want {
		t.Errorf("%s", got)
	}
	v.Unlocked = -5
	if got := ValueLine("fast", v); !strings.HasSuffix(got, "US$5.00 a month less than this one, so nothing is unlocked") {
		t.Errorf("%s", got)
	}
	if got := ValueLine("fast", price.Value{Why: "none"}); got != "value unlocked: none" {
		t.Errorf("%s", got)
	}
}
