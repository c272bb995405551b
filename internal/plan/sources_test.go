package plan

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// everywhere lists requests under which, all together, each architecture is planned at each provider that has it.
func everywhere() (list []Request) {
	base := func(change func(*Request)) {
		r := ask(100*gib, 50).own().figures("zone-traffic", 0.02, "region-traffic", 0.02, "reserved-discount", 0.3, "spot-discount", 0.5)
		r.On = []string{"EC2", "RDS", "Google", "CloudSQL", "Azure", "AzureMySQL", "E2E", "DigitalOcean", Own}
		r.ChangeApplication = true
		change(&r)
		list = append(list, r)
	}
	base(func(*Request) {})
	base(func(r *Request) { *r = r.goals(60, 3600, Region); r.Regions = 2 })
	base(func(r *Request) { *r = r.goals(0, 30, Zone); r.Kubernetes = true })
	base(func(r *Request) { *r = r.goals(0, 60, Region); r.RTT, r.P99 = 5, 20 })
	base(func(r *Request) { r.Commitment, r.Flavour, r.MultiMaster = "reserved", mycnf.MariaDB, true })
	base(func(r *Request) { r.Commitment, r.ReadScaling = "spot", true; r.TPS *= 6 })
	base(func(r *Request) {
		*r = r.figures("server-watts", 400, "kwh-price", 0.15, cooling, 1.5, "server-units", 1, "unit-price", 20, "admin-hours", 2, "hour-price", 60)
	})
	base(func(r *Request) {
		*r, _ = r.From(Measured{Experiment: "compare-1", Arm: "tuned", Workload: "oltp_read_write", Runs: 3, Flavour: mycnf.MySQL, Figures: map[string]float64{"cpu-per-transaction": 4000, "measured-pool": 0.2}})
	})
	return list
}

// TestEveryFigureHasItsSource: of every architecture, at every provider, that has a bill, each figure says where it is from: a
// source and a date, a flag, or an experiment. A figure whose change changes the bill, the load or an outcome is among them, and so
// are machine, volumes, and each line of the bill.
func TestEveryFigureHasItsSource(t *testing.T) {
	t.Parallel()
	c := catalogue(t)
	dated := regexp.MustCompile(`^20\d\d(-\d\d){0,2}$`)
	planned := map[string]bool{}
	for _, r := range everywhere() {
		p, err := New(c, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Choices {
			if !x.Priced {
				continue
			}
			planned[string(x.Kind)+" at "+x.Provider] = true
			told := ""
			for _, f := range x.Figures {
				told += f.What + "\n"
				self := strings.Contains(f.Source, "a flag, --") || strings.HasPrefix(f.Source, "measured: experiment ")
				if f.What == "" || f.Value == "" || f.Source == "" || !self && !dated.MatchString(f.Date) || self && f.Date != "" && !strings.HasPrefix(f.Source, "measured") {
					t.Errorf("%s: %+v", x.Name(), f)
				}
			}
			for _, l := range x.Bill.Lines {
				if !strings.Contains(told, "price of "+l.What+"\n") {
					t.Errorf("%s: no source of %+v", x.Name(), l)
				}
			}
			if m := x.server.machine.Name; x.Provider != Own && (m == "" || !strings.Contains(told, m+"\n") || !strings.Contains(told, x.server.option.Volume+"\n")) {
				t.Errorf("%s: no source of its machine %q, or its volumes %q", x.Name(), m, x.server.option.Volume)
			}
			if !slices.Contains([]string{"EC2", "RDS", Own}, x.Provider) {
				continue
			}
			for _, name := range x.movedBy(t, p.Asked) {
				if !strings.Contains(told, name+"\n") {
					t.Errorf("%s: it rests on --%s, and does not say so", x.Name(), name)
				}
			}
		}
	}
	if len(planned) < 45 {
		t.Errorf("%d architectures at a provider: %v", len(planned), planned)
	}
	for _, a := range Architectures() {
		if !slices.ContainsFunc([]string{"EC2", "RDS", Own}, func(at string) bool { return planned[string(a.Kind)+" at "+at] }) {
			t.Errorf("%s was not planned", a.Kind)
		}
	}
}

// movedBy lists the figures of which a third more or less makes another bill, load or outcome of a choice.
func (x Choice) movedBy(t *testing.T, r Request) (list []string) {
	t.Helper()
	a, c := architecture(x.Kind), catalogue(t)
	was := x.shown(t)
	for _, f := range Figures() {
		if r.figure(f.Name) == 0 && r.Figures[f.Name] == 0 {
			continue
		}
		for _, by := range []float64{0.75, 1.3} {
			value := r.figure(f.Name) * by
			if f.check(value) != nil {
				continue
			}
			less := r.with(f.Name, value)
			is, err := less.chooseLaid(newShop(c), a, x.Provider, x.Together)
			if err != nil || !is.Priced || is.shown(t) != was {
				list = append(list, f.Name)
				break
			}
		}
	}
	return list
}

// shown is what of a choice rests on figures.
func (x Choice) shown(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal([]any{x.Bill, x.Load, x.Outcomes})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
