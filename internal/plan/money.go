package plan

import (
	"fmt"
	"math"
	"strings"

	"david/internal/price"
)

// Line is a position of a bill.
type Line struct {
	What     string  `json:"what"`
	Count    float64 `json:"count"`
	USDEach  float64 `json:"usd_each"` // a month; of Once lines: once
	USDMonth float64 `json:"usd_month"`
	// USDOnce is paid once and spread over the time; USDMonth holds its share of a month.
	USDOnce   float64 `json:"usd_once,omitempty"`
	USDYears  float64 `json:"usd_years"` // over the time bought for
	Uncertain bool    `json:"uncertain,omitempty"`
	Source    string  `json:"source,omitempty"`
	Date      string  `json:"date,omitempty"`
}

// Bill is what something costs. Its lines are rounded to cents, and add up.
type Bill struct {
	Lines    []Line  `json:"lines"`
	USDMonth float64 `json:"usd_month"`
	USDOnce  float64 `json:"usd_once,omitempty"`
	USDYears float64 `json:"usd_years"` // over Years
	Years    float64 `json:"years"`
	// What a month costs for each of what is asked: an operation per second of the busiest servers, 1,000
	// transactions/s, a GB of data.
	PerIOPS   float64 `json:"usd_per_iops"`
	Per1000   float64 `json:"usd_per_1000_tps"`
	PerGB     float64 `json:"usd_per_gb"`
	Uncertain bool    `json:"uncertain,omitempty"`
}

// cents rounds to a whole number of them.
func cents(usd float64) float64 { return math.Round(100 * usd) }

func toCents(usd float64) float64 { return cents(usd) / 100 }

// monthly is a line of what is paid each month.
func monthly(what string, count, each float64, source, date string, uncertain bool) Line {
	return Line{What: what, Count: count, USDEach: each, USDMonth: toCents(count * each), Source: source, Date: date, Uncertain: uncertain}
}

// once is a line of what is paid once, spread over years.
func once(what string, count, each, years float64, source, date string) Line {
	usd := toCents(count * each)
	return Line{What: what, Count: count, USDEach: each, USDOnce: usd, USDYears: usd, USDMonth: toCents(usd / (12 * years)), Source: source, Date: date}
}

// bill adds lines up. A rent over the years is as many months of it.
func (r Request) bill(lines []Line, iops float64) Bill {
	b := Bill{Lines: lines, Years: r.figure("years")}
	for i, l := range lines {
		if l.USDYears == 0 {
			lines[i].USDYears = toCents(l.USDMonth * 12 * b.Years)
		}
		b.USDMonth += l.USDMonth
		b.USDOnce += l.USDOnce
		b.USDYears += lines[i].USDYears
		b.Uncertain = b.Uncertain || l.Uncertain
	}
	b.USDMonth, b.USDOnce, b.USDYears = toCents(b.USDMonth), toCents(b.USDOnce), toCents(b.USDYears)
	b.Per1000, b.PerGB = b.USDMonth/r.TPS*1000, b.USDMonth/(float64(r.room())/1e9)
	if iops > 0 {
		b.PerIOPS = b.USDMonth / iops
	}
	return b
}

// Third is study P4's rule: hardware that is bought must come in at a third of the cloud's bill per IOPS
// over the same years, as power, cooling and people cost as much again twice.
type Third struct {
	Hardware float64 `json:"hardware_usd_per_iops"` // over the years, hardware alone
	Cloud    float64 `json:"cloud_usd_per_iops"`
	Share    float64 `json:"share"`
	Holds    bool    `json:"holds"`
	Own      string  `json:"own"`
	Rented   string  `json:"rented"`
	// Delivered is the same by what either delivers; nil where that is not known of both.
	Delivered *Delivered `json:"delivered,omitempty"`
}

// Delivered is the rule by the IOPS that what was bought and what was rented deliver, be they needed or not.
type Delivered struct {
	OwnIOPS   float64 `json:"own_iops"`
	CloudIOPS float64 `json:"cloud_iops"`
	Hardware  float64 `json:"hardware_usd_per_iops"`
	Cloud     float64 `json:"cloud_usd_per_iops"`
	Share     float64 `json:"share"`
	Holds     bool    `json:"holds"`
}

// ThirdOf holds the rule against what hardware and a cloud cost over the same years for so many IOPS each.
func ThirdOf(hardwareUSD, hardwareIOPS, cloudUSD, cloudIOPS float64) Third {
	t := Third{Hardware: hardwareUSD / hardwareIOPS, Cloud: cloudUSD / cloudIOPS}
	t.Share = t.Hardware / t.Cloud
	t.Holds = t.Share <= 1.0/3
	return t
}

// third compares the cheapest own hardware that fits with the cheapest that is rented; nil where there are
// not both.
func (p Plan) third() *Third {
	var own, rented *Choice
	for _, c := range p.fitting() {
		switch {
		case c.Provider == Own && own == nil:
			own = &c
		case c.Provider != Own && rented == nil:
			rented = &c
		}
	}
	if own == nil || rented == nil || own.Load.IOPS == 0 || rented.Load.IOPS == 0 {
		return nil
	}
	t := ThirdOf(own.Bill.USDOnce, own.all(own.Load.IOPS), rented.Bill.USDYears, rented.all(rented.Load.IOPS))
	t.Own, t.Rented = own.Name(), rented.Name()
	if has, gives := own.all(own.Load.OfIOPS), rented.all(rented.Load.OfIOPS); has > 0 && gives > 0 {
		d := ThirdOf(own.Bill.USDOnce, has, rented.Bill.USDYears, gives)
		t.Delivered = &Delivered{has, gives, d.Hardware, d.Cloud, d.Share, d.Holds}
	}
	return &t
}

// all is what the busiest servers of all shards do, of which each does so much.
func (c Choice) all(iops float64) float64 { return iops * float64(c.Shards) }

func (t Third) String() string {
	text := fmt.Sprintf("P4's rule of a third %s for the IOPS that are needed: hardware at US$%.4f for each (%s) is %.2f of the rented US$%.4f (%s)", holding(t.Holds), t.Hardware, t.Own, t.Share, t.Cloud, t.Rented)
	if d := t.Delivered; d != nil {
		text += fmt.Sprintf("; it %s for those that each delivers: %s at US$%.4f are %.2f of the rented %s at US$%.4f", holding(d.Holds), price.Number(d.OwnIOPS), d.Hardware, d.Share, price.Number(d.CloudIOPS), d.Cloud)
	}
	return text
}

func holding(is bool) string {
	if is {
		return "holds"
	}
	return "does not hold"
}

// Value is what being tuned saves: the same requirement with the needs of an untuned server, less the
// decision.
type Value struct {
	Untuned  string  `json:"untuned"`
	USDMonth float64 `json:"usd_month"`
	Saved    float64 `json:"unlocked_usd_month"`
	Years    float64 `json:"unlocked_usd_years"`
}

// Money writes US$ with cents and commas: 2,376.00.
func Money(usd float64) string {
	text := fmt.Sprintf("%.2f", math.Abs(usd))
	for i := len(text) - 6; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if usd < 0 {
		return "-" + text
	}
	return text
}

// Marked writes US$ with a "?" where they rest on uncertain prices.
func Marked(usd float64, uncertain bool) string {
	if uncertain {
		return Money(usd) + "?"
	}
	return Money(usd)
}

// span writes a duration shortly: 5 s, 15 min, 1 h 20 min, 24 h.
func span(seconds float64) string {
	switch {
	case seconds < 120:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", seconds), ".0") + " s"
	case seconds < 7200:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", seconds/60), ".0") + " min"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", seconds/3600), ".0") + " h"
}
