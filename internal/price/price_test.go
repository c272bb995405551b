package price

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"david/internal/host"
	"david/internal/result"
	"david/internal/stats"
)

func own(t *testing.T) Catalogue {
	t.Helper()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.005*max(1, math.Abs(want)/1000) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// option finds the one of that name; its parts must add up.
func option(t *testing.T, w Wish, m *Machine, name string) Option {
	t.Helper()
	options, refused := own(t).Ways(w, m)
	last := 0.0
	for _, o := range options {
		sum := 0.0
		for _, p := range o.Parts {
			sum += p.USDMonth
			near(t, o.Name+": "+p.What, p.Count*p.USDEach, p.USDMonth)
		}
		near(t, o.Name+": its parts", sum, o.USDMonth)
		if o.IOPS < w.IOPS || o.GiB < w.Size.GiB()-1e-9 {
			t.Errorf("%s gives %v IOPS and %v GiB", o.Name, o.IOPS, o.GiB)
		}
		if o.USDMonth < last-cent {
			t.Errorf("%s is not in order", o.Name)
		}
		last = o.USDMonth
	}
	for _, o := range options {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no option %q in %+v; refused: %+v", name, options, refused)
	return Option{}
}

func wish(iops, gib float64) Wish { return Wish{IOPS: iops, Size: Size(gib * (1 << 30))} }

func TestStudyP1(t *testing.T) {
	m, ok := own(t).Machine("e2e-c3.16gb")
	if !ok {
		t.Fatal("no e2e-c3.16gb")
	}
	o := option(t, wish(20_000, 900), &m, "e2e-volume, stripe of 4")
	near(t, "US$", o.USDMonth, 32)                 // 4 x 8
	near(t, "with the machine", o.WithMachine, 98) // 66 + 32; the study says 138
	near(t, "IOPS", o.IOPS, 20_000)                // 4 x 5,000
	near(t, "GiB", o.GiB, 953.67)                  // 4 x 256 x 10^9 / 2^30
	near(t, "US$/IOPS", 1000*o.USDPerIOPS, 1.6)    // 32 / 20,000
	if len(o.Parts) != 1 || o.Parts[0].Count != 4 || o.Parts[0].USDEach != 8 || !strings.Contains(o.Note, "138") {
		t.Errorf("%+v", o)
	}
	// A TiB is more than 4 of them: 1,024 / 238.42 = 4.3, so 5 at 8.
	near(t, "1 TiB", option(t, wish(20_000, 1024), nil, "e2e-volume, stripe of 5").USDMonth, 40)
}

func TestStudyP4(t *testing.T) {
	ssd, gp2 := option(t, wish(3000, 1000), nil, "gcp-pd-ssd, one volume"), option(t, wish(3000, 1000), nil, "ebs-gp2, one volume")
	near(t, "Google PD SSD, IOPS per GiB", ssd.IOPSPerGiB, 30)
	near(t, "EBS general purpose SSD, IOPS per GiB", gp2.IOPSPerGiB, 3)
	near(t, "pd-ssd", ssd.USDMonth, 170) // 1,000 x .17
	near(t, "gp2", gp2.USDMonth, 100)    // 1,000 x .10
}

func TestVolumes(t *testing.T) {
	for _, x := range []struct {
		name            string
		iops, gib, mib  float64
		usd, gotIOPS, n float64 // n: GiB in all
	}{
		{"ebs-gp3, one volume", 3000, 100, 0, 8, 3000, 100},                                 // 100 x .08
		{"ebs-gp3, one volume, provisioned", 10_000, 1000, 0, 115, 10_000, 1000},            // 80 + 7,000 x .005
		{"ebs-gp3, one volume, provisioned", 3000, 1000, 225, 84, 3000, 1000},               // 80 + 100 x .04
		{"ebs-gp3, stripe of 8", 20_000, 1024, 0, 81.92, 24_000, 1024},                      // 1,024 x .08, 8 x 3,000
		{"ebs-gp3, stripe of 2, provisioned", 20_000, 1024, 0, 151.92, 20_000, 1024},        // 81.92 + 2 x 7,000 x .005
		{"ebs-gp2, one volume", 6000, 100, 0, 200, 6000, 2000},                              // 6,000 / 3 = 2,000 GiB x .10
		{"ebs-io1, one volume, provisioned", 20_000, 100, 0, 1350, 20_000, 400},             // 20,000 / 50 = 400 GiB x .125 + 20,000 x .065
		{"ebs-io2, one volume, provisioned", 70_000, 100, 0, 3756.5, 70_000, 100},           // 12.5 + 32,000 x .065 + 32,000 x .046 + 6,000 x .032
		{"azure-premium, one volume", 4000, 100, 0, 135.17, 5000, 1024},                     // P30
		{"do-volume, stripe of 2", 8000, 100, 0, 10.73742, 10_000, 100},                     // 100 x 1.0737 x .10
		{"rds-gp3, one volume", 3000, 100, 0, 46, 12_000, 400},                              // 400 GiB is the least: x .115
		{"gcp-hyperdisk-balanced, one volume, provisioned", 3000, 100, 150, 8.4, 3000, 100}, // 8 + 10 x .04
	} {
		w := wish(x.iops, x.gib)
		w.Bandwidth = Bandwidth(x.mib * (1 << 20))
		o := option(t, w, nil, x.name)
		near(t, x.name+", US$", o.USDMonth, x.usd)
		near(t, x.name+", IOPS", o.IOPS, x.gotIOPS)
		near(t, x.name+", GiB", o.GiB, x.n)
	}
}

func TestRefusals(t *testing.T) {
	m, _ := own(t).Machine("ec2-m6i.large")
	for _, x := range []struct {
		w    Wish
		m    *Machine
		name string
		why  string
	}{
		{wish(20_000, 900), nil, "ebs-gp3, one volume, provisioned", "at most 16,000 IOPS"},
		{wish(20_000, 900), nil, "ebs-gp2, one volume", "at most 16,000 IOPS"},
		{wish(300_000, 900), nil, "ebs-gp3, stripe of 16, provisioned", "no more than 16 volumes"},
		{wish(3000, 20_000), nil, "ebs-gp2, one volume", "at most 16384 GiB"},
		{wish(3000, 900), nil, "hetzner-volume, one volume", "priced in EUR"},
		{wish(6000, 900), &m, "ebs-gp3, one volume, provisioned", "ec2-m6i.large sustains 3,600 IOPS"},
		{wish(9000, 900), nil, "azure-premium, one volume", "at most 7,500 IOPS"},
	} {
		_, refused := own(t).Ways(x.w, x.m)
		found := false
		for _, r := range refused {
			found = found || r.Name == x.name && strings.Contains(r.Why, x.why)
		}
		if !found {
			t.Errorf("%s: no %q in %+v", x.name, x.why, refused)
		}
	}
}

// A machine lets no more through than it sustains, and has its provider's volumes.
func TestInstanceBounds(t *testing.T) {
	m, _ := own(t).Machine("ec2-m6i.large")
	o := option(t, wish(3000, 2000), &m, "ebs-gp2, one volume")
	near(t, "IOPS", o.IOPS, 3600)                      // of the 6,000 of 2,000 GiB
	near(t, "with the machine", o.WithMachine, 270.08) // 200 + .096 x 730
	options, refused := own(t).Ways(wish(3000, 100), &m)
	for _, o := range options {
		if !strings.HasPrefix(o.Name, "ebs-") {
			t.Errorf("%s on EC2", o.Name)
		}
	}
	for _, r := range refused {
		if !strings.HasPrefix(r.Name, "ebs-") {
			t.Errorf("%s on EC2", r.Name)
		}
	}
}

const machine = `machines: [{name: m, provider: p, cpus: 4, memory: 16 GiB, price: 10 US$/month, source: s, date: 2026}]`

func TestBadCatalogues(t *testing.T) {
	entry := func(keys string) string {
		return "date: 2026\nmachines:\n  - {name: m, provider: p, cpus: 4, memory: 16 GiB, " + keys + "source: s, date: 2026-11}\n"
	}
	volume := func(keys string) string {
		return "volumes:\n  - {name: v, provider: p, " + keys + ", source: s, date: 2026-11}\n"
	}
	for _, x := range []struct{ text, want string }{
		{"", "empty"},
		{"[]", "f:1: "},
		{entry("price: 10 US$/month, colour: red, "), "f:3: unknown key colour"},
		{entry("price: 10 US$/year, "), "f:3: unknown unit"},
		{entry("price: 10 CHF/month, "), "f:3: unknown currency"},
		{entry("price: 10, "), "f:3: \"10\" has no unit"},
		{entry("price: -10 US$/month, "), "is negative"},
		{entry("price: NaN US$/month, "), "number"},
		{entry("price: 1e999 US$/month, "), "number"},
		{entry("price: 1 US$/GiB-month, "), "want one per month or hour"},
		{entry("price: {a: b}, "), "f:3: want a number with its unit"},
		{entry(""), "f:3: machine \"m\": it has no price"},
		{strings.Replace(entry("price: 1 US$/h, "), "16 GiB", "16 GiP", 1), "unknown unit"},
		{strings.Replace(entry("price: 1 US$/h, "), "16 GiB", "0 GiB", 1), "no amount"},
		{strings.Replace(entry("price: 1 US$/h, "), "cpus: 4", "cpus: -4", 1), "cpus -4"},
		{strings.Replace(entry("price: 1 US$/h, "), "cpus: 4", "cpus: four", 1), "f:3: "},
		{strings.Replace(entry("price: 1 US$/h, "), "source: s", "source: ''", 1), "no source"},
		{strings.Replace(entry("price: 1 US$/h, "), "2026-11", "lately", 1), "date \"lately\""},
		{strings.Replace(entry("price: 1 US$/h, "), ", date: 2026-11", "", 1), "date \"\""},
		{strings.Replace(entry("price: 1 US$/h, "), "name: m, ", "", 1), "no name"},
		{entry("price: 1 US$/h, uncertain: [colour], "), "no key of it"},
		{entry("price: 1 US$/h, price: 2 US$/h, "), "already"},
		{entry("price: 1 US$/h, ") + entry("price: 1 US$/h, ")[len("date: 2026\nmachines:\n"):], "f:4: machine m: the name stands twice"},
		{machine + "\n---\n" + machine, "more than one document"},
		{volume("base_iops: 1"), "no price"},
		{volume("price: 1 US$/GiB-month"), "nothing of IOPS"},
		{volume("price: 1 US$/GiB-month, base_iops: -1"), "base_iops -1"},
		{volume("price: 1 US$/GiB-month, iops_price: [{above: 0, price: 1 EUR/IOPS-month}], max_iops: 5"), "US$ and in EUR"},
		{volume("price: 1 US$/GiB-month, iops_price: [{above: 0, price: 1 US$/GB-month}], max_iops: 5"), "want one per IOPS"},
		{volume("price: 1 US$/GiB-month, iops_price: [{above: 0, price: 1 US$/IOPS-month}]"), "without max_iops"},
		{volume("sizes: [{size: 1 GB, price: 1 US$/month}]"), "iops 0"},
		{volume("sizes: [{size: 1 GB, price: 1 US$/month, iops: 1}], base_iops: 5"), "leave out"},
		{volume("price: 1 US$/GiB-month, base_iops: 3000, max_iops: 100"), "max_iops is 100, but 3000 come"},
		{"rates: [{currency: USD, usd: 1, source: s, date: 2026}]", "want EUR"},
		{"rates: [{currency: EUR, usd: -1, source: s, date: 2026}]", "usd -1"},
		{"machines: [null]", "nothing in it"},
	} {
		_, err := Parse(strings.NewReader(x.text), "f")
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s\n%v, want %q", x.text, err, x.want)
		}
	}
}

func TestWith(t *testing.T) {
	more, err := Parse(strings.NewReader("rates: [{currency: EUR, usd: 1.10, source: s, date: 2026}]\n"+strings.Replace(machine, "name: m", "name: e2e-c3.16gb", 1)), "f")
	if err != nil {
		t.Fatal(err)
	}
	before := own(t)
	c := before.With(more)
	m, _ := c.Machine("e2e-c3.16gb")
	if m.Price.Amount != 10 || len(c.Machines) != len(before.Machines) || len(before.Rates) != 0 {
		t.Errorf("%+v", m)
	}
	h, _ := c.Machine("hetzner-cx43")
	usd, ok := c.USD(h.Price)
	near(t, "15.99 EUR", usd, 17.589) // x 1.10
	if _, before := before.USD(h.Price); before || !ok {
		t.Error("euros need a rate, and have one now")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(machine)
	f.Add("volumes: [{name: v, provider: p, price: 1 US$/GiB-month, base_iops: 3, iops_price: [{above: 3, price: 1 US$/IOPS-month}], max_iops: 9000, " +
		"base_bandwidth: 1 MB/s, bandwidth_price: 1 US$/MB/s-month, source: s, date: 2026}]")
	f.Add("x: &a {machines: []}\n<<: *a\n")
	f.Add("volumes: [{name: v, provider: p, sizes: [{size: 1 GB, price: 1 EUR/month, iops: 5}], source: s, date: 2026}]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(strings.NewReader(text), "f")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
			return
		}
		options, _ := c.Ways(wish(5000, 100), nil)
		for _, o := range options {
			if !(o.USDMonth >= 0) || o.GiB < 100-1e-6 || o.IOPS < 5000-1e-6 {
				t.Errorf("%+v", o)
			}
		}
	})
}

func FuzzUnits(f *testing.F) {
	f.Add("66 US$/month")
	f.Add("1TiB")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePrice(text); err == nil && !(p.Amount >= 0) {
			t.Errorf("%q is %v", text, p)
		}
		if s, err := ParseSize(text); err == nil && !(s > 0) {
			t.Errorf("%q is %v", text, s)
		}
	})
}

func trial(arm string, block int, tps float64) result.Trial {
	return result.Trial{Arm: arm, Block: block, TPS: tps, Workload: result.Workload{Name: "oltp_read_write", Threads: 4}, Settled: true,
		Gates: []result.Gate{{Name: "rows", OK: true}}}
}

// capped returns a comparison on 2 CPUs and 3,000 IOPS in which an arm makes three times the control's
// throughput.
func capped() Experiment {
	caps := result.Caps{CPUs: 2, Memory: 4 << 30, IOPS: 3000}
	e := Experiment{Experiment: result.Experiment{ID: "compare-1", Kind: "compare", Design: result.Design{Control: "control"},
		Host: host.Facts{CPU: host.CPU{Usable: 8}, Memory: host.Memory{Limit: 64 << 30}}},
		Arms: []result.Arm{{Name: "control", Caps: caps}, {Name: "fast", Caps: caps, Diff: []result.Difference{{Name: "x"}}}}}
	for block, tps := range []float64{100, 102, 98, 100} {
		twin := trial("control", block+1, tps)
		twin.Twin = true
		e.Trials = append(e.Trials, trial("control", block+1, tps), twin, trial("fast", block+1, 3*tps))
	}
	return e
}

// small has machines whose prices and predictions can be seen at once.
func small(t *testing.T) Catalogue {
	t.Helper()
	m := func(name string, cpus, iops, usd int, more string) string {
		return strings.NewReplacer("NAME", name, "CPUS", strconv.Itoa(cpus), "IOPS", strconv.Itoa(iops), "USD", strconv.Itoa(usd), "MORE", more).Replace(
			"  - {name: NAME, provider: p, cpus: CPUS, memory: 8 GiB, volume_iops: IOPS, price: USD US$/month, MOREsource: s, date: 2026}\n")
	}
	c, err := Parse(strings.NewReader("machines:\n"+m("two", 2, 3000, 20, "")+m("four", 4, 6000, 40, "")+m("many", 16, 3000, 50, "")+m("eight", 8, 12000, 80, "")+
		m("sixteen", 16, 20000, 160, "")+m("db8", 8, 9000, 300, "managed: true, ")), "f")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestQuote(t *testing.T) {
	q, err := small(t).Quote(capped(), Payer{Name: "two", USDMonth: 20})
	if err != nil {
		t.Fatal(err)
	}
	control, fast := q.Arms[0], q.Arms[1]
	// ln of 100, 102, 98, 100: mean 4.605070, sd 0.016332; t(3) = 3.18245, so half = 3.18245 x 0.016332 / 2 =
	// 0.025988.
	near(t, "tps", control.TPS, 99.99)                   // e^4.605070
	near(t, "US$ per 1,000", control.USDPer1000, 200.02) // 20 / 99.99 x 1,000
	near(t, "from", control.Interval[0], 194.89)         // 20 / (99.99 x e^.025988) x 1,000
	near(t, "to", control.Interval[1], 205.29)           // 20 / (99.99 / e^.025988) x 1,000
	near(t, "fast", fast.USDPer1000, 66.67)              // a third
	if q.Winner != "fast" || len(q.Values) != 2 {
		t.Fatalf("%+v", q)
	}
	// Three times the throughput wants 6 CPUs and 9,000 IOPS: "many" has the CPUs and 3,000 IOPS, "four"
	// neither.
	v := q.Values[0]
	if v.Name != "eight" || v.USDMonth != 80 || v.Unlocked != 60 {
		t.Errorf("%+v", v)
	}
	near(t, "predicted", v.Predicted, 399.96) // 99.99 x min(8/2, 12,000/3,000)
	if v.Least != 80 || v.Most != 80 {        // every pair is exactly 3
		t.Errorf("%+v", v)
	}
	if db := q.Values[1]; db.Name != "db8" || db.Unlocked != 280 { // 9,000 IOPS are just enough
		t.Errorf("%+v", db)
	}
	if shown := q.Shown(); len(shown) != 2 {
		t.Errorf("the chart shows %+v", shown)
	}
	var names []string
	for _, p := range q.Line {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "two four eight" {
		t.Errorf("the line is %s", got)
	}
}

// A machine of more CPUs than were measured is said to be one.
func TestOtherCPUs(t *testing.T) {
	for cpus, want := range map[float64]string{0: "", 2: "", 4: "it may do more", 1: "it would do less"} {
		q, err := small(t).Quote(capped(), Payer{Name: "x", USDMonth: 20, CPUs: cpus})
		if got := strings.Join(q.Notes, "\n"); err != nil || strings.Contains(got, "was measured with 2:") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%v CPUs: %s %v", cpus, got, err)
		}
	}
}

func TestQuoteUnreachable(t *testing.T) {
	e := capped()
	for i := range e.Trials {
		if e.Trials[i].Arm == "fast" {
			e.Trials[i].TPS *= 10
		}
	}
	q, err := small(t).Quote(e, Payer{USDMonth: 20})
	if err != nil || q.Values[0].Name != "" || !strings.Contains(q.Values[0].Why, "no machine of the catalogue is predicted") {
		t.Errorf("%+v %v", q.Values, err)
	}
}

func TestQuoteOneTrial(t *testing.T) {
	e := capped()
	e.Trials, e.Design.Control = e.Trials[:1], ""
	q, err := small(t).Quote(e, Payer{USDMonth: 20})
	if err != nil || len(q.Arms) != 1 || q.Arms[0].Note != "1 trial of one block: no interval" || q.Arms[0].Interval != (stats.Interval{}) {
		t.Errorf("%+v %v", q, err)
	}
	near(t, "US$", q.Arms[0].USDPer1000, 200) // 20 / 100 x 1,000
}

// TestQuoteUnsafe: what can lose data has its price marked.
func TestQuoteUnsafe(t *testing.T) {
	e := capped()
	e.Trials, e.Design.Control = e.Trials[:1], ""
	e.Trials[0].Unsafe = []string{"sync_binlog is 0"}
	q, err := small(t).Quote(e, Payer{USDMonth: 20})
	if err != nil || len(q.Arms) != 1 || !strings.HasPrefix(q.Arms[0].Note, "UNSAFE") || !strings.Contains(q.Arms[0].Note, "sync_binlog is 0") {
		t.Errorf("%+v %v", q, err)
	}
}

func TestQuoteNothing(t *testing.T) {
	e := capped()
	for i := range e.Trials {
		e.Trials[i].Gates = []result.Gate{{Name: "steal"}}
	}
	if _, err := small(t).Quote(e, Payer{USDMonth: 20}); err != ErrNothing {
		t.Errorf("%v", err)
	}
}

// At a goal for the latency, only the runs at the rate found count.
func TestQuoteSLO(t *testing.T) {
	e := capped()
	e.Design = result.Design{SLO: &result.SLO{Percentile: 99, Ms: 20}}
	e.Trials = nil
	for block, rate := range []float64{0, 80, 80, 90} {
		x := trial("control", block, rate+0.5)
		x.Workload.Rate = rate
		e.Trials = append(e.Trials, x)
	}
	e.Finish = &result.Finish{Best: "80 transactions/s keep p99 at or below 20 ms: 18 ms at worst in 2 runs"}
	q, err := small(t).Quote(e, Payer{USDMonth: 20})
	if err != nil || len(q.Arms) != 1 || q.Arms[0].Trials != 2 || q.Arms[0].Note != "" {
		t.Fatalf("%+v %v", q, err)
	}
	near(t, "US$", q.Arms[0].USDPer1000, 248.447)                      // 20 / 80.5 x 1,000
	e.Finish.RateSearch = &result.RateSearch{Outcome: result.RateNone} // which counts, and not the words
	if _, err := small(t).Quote(e, Payer{USDMonth: 20}); err != ErrNothing {
		t.Errorf("%v", err)
	}
}

func TestCheapest(t *testing.T) {
	m, ok := own(t).Cheapest(4, 16<<30)
	if !ok || m.Name != "e2e-c3.16gb" { // 66; EC2 m7g.xlarge is 119.14, gcp-n2-standard-4 113.46
		t.Errorf("%+v", m)
	}
	if _, ok := own(t).Cheapest(4000, 1); ok {
		t.Error("there is no such machine")
	}
}

// TestSet buys a given number of volumes, the cheaper way.
func TestSet(t *testing.T) {
	c := own(t)
	for _, x := range []struct {
		volume    string
		n         int
		iops, gib float64
		usd, each float64
	}{
		{"ebs-gp3", 8, 20_000, 1024, 81.92, 3000},  // 3,000 come with each
		{"ebs-gp3", 4, 20_000, 1024, 121.92, 5000}, // 81.92 + 4 x 2,000 x .005
		{"ebs-io1", 1, 20_000, 400, 1350, 20_000},  // all are bought
		{"e2e-volume", 5, 20_000, 1024, 40, 5000},  // 5 x 8
		{"gcp-pd-ssd", 2, 6000, 100, 34, 3000},     // 6,000 / 30 = 200 GiB x .17
	} {
		v := c.Volumes[slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Name == x.volume })]
		o, err := c.Set(v, x.n, wish(x.iops, x.gib), nil)
		if err != nil {
			t.Fatal(err)
		}
		near(t, o.Name+", US$", o.USDMonth, x.usd)
		near(t, o.Name+", each", o.EachIOPS, x.each)
		near(t, o.Name+", volumes", float64(o.Volumes), float64(x.n))
	}
	gp3 := c.Volumes[slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Name == "ebs-gp3" })]
	if _, err := c.Set(gp3, 1, wish(20_000, 100), nil); err == nil || !strings.Contains(err.Error(), "at most 16,000 IOPS a volume") {
		t.Errorf("%v", err)
	}
	hetzner := c.Volumes[slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Name == "hetzner-volume" })]
	if _, err := c.Set(hetzner, 1, wish(100, 100), nil); !errors.Is(err, ErrNoRate) {
		t.Errorf("%v", err)
	}
}

// A file that is no catalogue may be a secret: nothing of it stands in an error.
func TestNothingOfForeignFilesInErrors(t *testing.T) {
	for name, text := range map[string]string{
		"passwords": "root:$6$hunter2:19000:0:99999:7:::\n", "a mapping": "hunter2: hunter2\n", "a list": "[hunter2]\n", "an anchor": "*hunter2\n",
	} {
		if _, err := Parse(strings.NewReader(text), "x"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
