package price

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// Experiment holds what an experiment's store holds of what a price needs.
type Experiment struct {
	result.Experiment
	Arms   []result.Arm
	Trials []result.Trial
	Finish *result.Finish // nil: not finished
}

// Payer says what the measured machine costs: the machine of the catalogue it is, or US$ a month without one.
// Assumed says why, where it was not given.
type Payer struct {
	Name     string  `json:"name,omitempty"` // of the catalogue
	USDMonth float64 `json:"usd_month"`
	CPUs     float64 `json:"cpus,omitempty"`        // 0: not known
	IOPS     float64 `json:"volume_iops,omitempty"` // its volumes'; 0: not known
	Assumed  string  `json:"assumed,omitempty"`
	Doubtful bool    `json:"uncertain,omitempty"` // the price is
	Source   string  `json:"source,omitempty"`
	Date     string  `json:"date,omitempty"`
}

// Quote puts an experiment in money.
type Quote struct {
	Experiment string   `json:"experiment"`
	Machine    Payer    `json:"machine"`
	CPUs       float64  `json:"cpus"` // that the control was measured with
	Arms       []Arm    `json:"arms"`
	Control    string   `json:"control"`          // the arm others are held against
	Winner     string   `json:"winner,omitempty"` // the arm the value is of; "" where no arm beat a control
	Values     []Value  `json:"value_unlocked,omitempty"`
	Line       []Point  `json:"untuned,omitempty"` // the catalogue's machines that give the most predicted untuned throughput for their price
	Notes      []string `json:"notes"`
}

// Arm tells what an arm's throughput costs.
type Arm struct {
	Name     string         `json:"name"`
	Workload string         `json:"workload"`
	TPS      float64        `json:"tps"`
	TPSRange stats.Interval `json:"tps_interval"` // 95 %; zeros: none
	Trials   int            `json:"trials"`
	// USDPer1000 counts US$ a month for each 1,000 transactions/s; Interval follows from that of the
	// throughput.
	USDPer1000 float64        `json:"usd_per_1000_tps"`
	Interval   stats.Interval `json:"interval"`
	Note       string         `json:"note,omitempty"`
}

// Shown returns the arms of a chart of throughput against price: the control and the winner of the first
// workload, or all of it where neither was measured.
func (q Quote) Shown() []Arm {
	var all, two []Arm
	for _, a := range q.Arms {
		if a.Workload != q.Arms[0].Workload {
			continue
		}
		all = append(all, a)
		if a.Name == q.Winner || a.Name == q.Control {
			two = append(two, a)
		}
	}
	if len(two) == 0 {
		return all
	}
	return two
}

// Value holds what the winner's throughput would cost untuned: an estimate.
type Value struct {
	Kind string `json:"kind"` // "machine" or "managed database"
	// Name is the cheapest one of the catalogue that is predicted to reach the throughput with the control's
	// configuration; "" where none is, and Why then says so.
	Name      string  `json:"name,omitempty"`
	Why       string  `json:"why,omitempty"`
	USDMonth  float64 `json:"usd_month,omitempty"`
	Predicted float64 `json:"predicted_tps,omitempty"`
	Unlocked  float64 `json:"unlocked_usd_month"` // USDMonth less what the measured machine costs; may be negative
	// Least and Most are USDMonth at the ends of the interval of the winner's ratio; 0 where there is none.
	Least     float64 `json:"usd_month_least,omitempty"`
	Most      float64 `json:"usd_month_most,omitempty"`
	Uncertain bool    `json:"uncertain,omitempty"`
}

// Point places a machine on the chart of throughput against price.
type Point struct {
	Name     string  `json:"name"`
	USDMonth float64 `json:"usd_month"`
	TPS      float64 `json:"tps"` // predicted
}

// ErrNothing says that no arm has a throughput to price.
var ErrNothing = errors.New("no valid trial: there is no throughput to price")

// Quote prices an experiment's arms on a machine.
func (c Catalogue) Quote(e Experiment, by Payer) (Quote, error) {
	q := Quote{Experiment: e.ID, Machine: by, CPUs: e.cpus(), Control: e.control()}
	list, goal := e.compared()
	for _, comparison := range list {
		for _, a := range comparison.Arms {
			if a.Trials > 0 {
				priced := priceArm(a, comparison.Workload, by.USDMonth)
				priced.Note = strings.TrimSuffix(e.unsafe(a.Name)+priced.Note, "; ")
				q.Arms = append(q.Arms, priced)
			}
		}
	}
	if len(q.Arms) == 0 {
		return q, ErrNothing
	}
	q.Notes = append(q.Notes, goal...)
	if by.Assumed != "" {
		q.Notes = append(q.Notes, by.Assumed)
	}
	q.Notes = append(q.Notes, by.otherCPUs(q.CPUs)...)
	if by.Doubtful {
		q.Notes = append(q.Notes, "the price of "+by.Name+" is uncertain")
	}
	c.unlock(&q, e, list)
	return q, nil
}

// otherCPUs says that what is paid for is not what was measured.
func (p Payer) otherCPUs(measured float64) []string {
	if p.CPUs == 0 || p.CPUs == measured {
		return nil
	}
	but := "it would do less, and cost more per 1,000 transactions/s"
	if p.CPUs > measured {
		but = "it may do more, and cost less per 1,000 transactions/s"
	}
	return []string{fmt.Sprintf("%s has %g CPUs, and this was measured with %.4g: %s", p.Name, p.CPUs, measured, but)}
}

// compared returns the arms' throughputs by workload; of a search for a rate, those at the rate it found.
func (e Experiment) compared() (list []stats.Comparison, notes []string) {
	trials := e.Trials
	if s := e.Design.SLO; s != nil {
		rate := e.Finish.SearchEnd().TPS
		trials = slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return t.Workload.Rate != rate || rate == 0 })
		notes = append(notes, fmt.Sprintf("at %s transactions/s, the highest rate found that keeps p%g at or below %g ms", Number(rate), s.Percentile, s.Ms))
		if rate == 0 {
			notes = []string{"no rate was found that keeps the goal"}
		}
	}
	return stats.Compare(e.Design, e.Arms, trials), notes
}

// unsafe returns a warning before the note on an arm that ran without all of the durability lock; "" for any
// other.
func (e Experiment) unsafe(arm string) string {
	i := slices.IndexFunc(e.Trials, func(t result.Trial) bool { return t.Arm == arm && len(t.Unsafe) > 0 })
	if i < 0 {
		return ""
	}
	return "UNSAFE, no price of a server to be kept: " + strings.Join(e.Trials[i].Unsafe, "; ") + "; "
}

func priceArm(a stats.Arm, w result.Workload, usd float64) Arm {
	p := Arm{Name: a.Name, Workload: workload(w), TPS: a.TPS, TPSRange: a.TPSInterval, Trials: a.Trials, USDPer1000: per1000(usd, a.TPS)}
	if a.Invalid > 0 {
		p.Note = fmt.Sprintf("%d of %s invalid and left out", a.Invalid, count(a.Invalid+a.Trials, "trial"))
	}
	if a.TPSInterval == (stats.Interval{}) {
		p.Note = strings.TrimPrefix(fmt.Sprintf("%s; %s of one block: no interval", p.Note, count(a.Trials, "trial")), "; ")
		return p
	}
	p.Interval = stats.Interval{per1000(usd, a.TPSInterval[1]), per1000(usd, a.TPSInterval[0])}
	return p
}

func workload(w result.Workload) string {
	s := fmt.Sprintf("%s, %s", w.Name, count(w.Threads, "thread"))
	if w.Rate > 0 {
		s += fmt.Sprintf(", %s/s offered", Number(w.Rate))
	}
	return s
}

// per1000 returns US$ a month for 1,000 transactions/s.
func per1000(usd, tps float64) float64 { return usd / tps * 1000 }

// control returns the arm that the winner is held against.
func (e Experiment) control() string { return cmp.Or(e.Design.Control, stats.Control) }

func (e Experiment) arm(name string) result.Arm {
	for _, a := range e.Arms {
		if a.Name == name {
			return a
		}
	}
	return result.Arm{}
}

// cpus returns those the control was measured with: its cap, else what david may use.
func (e Experiment) cpus() float64 {
	if c := e.arm(e.control()).Caps.CPUs; c > 0 {
		return c
	}
	return e.Host.CPU.Usable
}

// Needs returns the CPUs and the bytes of memory that a machine must have to stand for the one measured: the
// caps', else the host's. Arms with caps of their own count with the largest.
func (e Experiment) Needs() (cpus, memory float64) {
	for _, a := range e.Arms {
		own, bytes := e.Host.CPU.Usable, float64(e.Host.Memory.Limit)
		if a.Caps.CPUs > 0 {
			own = a.Caps.CPUs
		}
		if a.Caps.Memory > 0 {
			bytes = float64(a.Caps.Memory)
		}
		cpus, memory = max(cpus, own), max(memory, bytes)
	}
	return cpus, memory
}

// winner returns the arm of the highest verdict: of a tune the one it ended on, of a comparison the fastest
// of those found faster.
func (e Experiment) winner(c stats.Comparison) (win stats.Arm, ratio stats.Interval, ok bool) {
	if e.Kind == result.KindTune {
		if e.Finish == nil || e.Finish.Best == e.control() {
			return win, ratio, false
		}
		i := slices.IndexFunc(c.Arms, func(a stats.Arm) bool { return a.Name == e.Finish.Best && a.Trials > 0 })
		if i < 0 {
			return win, ratio, false
		}
		return c.Arms[i], ratio, true
	}
	for _, a := range c.Arms {
		if a.Verdict == stats.Faster && a.TPS > win.TPS {
			win, ratio, ok = a, a.Interval, true
		}
	}
	return win, ratio, ok
}

// scale predicts untuned throughput on other machines from the control's.
type scale struct{ tps, cpus, iops float64 }

// on returns the throughput predicted for a machine: in proportion to its CPUs, and no more than in
// proportion to its volumes' IOPS where both are known.
func (s scale) on(m Machine) float64 {
	factor := m.CPUs / s.cpus
	if iops := m.OwnIOPS(); s.iops > 0 && iops > 0 && !m.LocalDisk {
		factor = min(factor, iops/s.iops)
	}
	return s.tps * factor
}

// judged tells whether an arm besides the control got a verdict, or there is none besides it.
func judged(arms []stats.Arm, control string) bool {
	verdict := func(a stats.Arm) bool {
		return a.Name != control && a.Verdict != stats.Invalid && a.Verdict != stats.NotRun
	}
	return len(arms) < 2 || slices.ContainsFunc(arms, verdict)
}

// unlock adds what the winner's throughput would cost untuned, and the line of the chart.
func (c Catalogue) unlock(q *Quote, e Experiment, list []stats.Comparison) {
	if len(list) == 0 || q.CPUs <= 0 {
		return
	}
	first := list[0]
	i := slices.IndexFunc(first.Arms, func(a stats.Arm) bool { return a.Name == e.control() && a.Trials > 0 })
	if i < 0 {
		return
	}
	base := scale{first.Arms[i].TPS, q.CPUs, cmp.Or(float64(e.arm(e.control()).Caps.IOPS), q.Machine.IOPS)}
	win, ratio, ok := e.winner(first)
	target := first.Arms[i].TPS
	if ok {
		target = win.TPS
		q.Winner = win.Name
		q.Values = []Value{c.value("machine", base, win.TPS, ratio, q.Machine.USDMonth), c.value("managed database", base, win.TPS, ratio, q.Machine.USDMonth)}
	} else if judged(first.Arms, e.control()) {
		q.Notes = append(q.Notes, "no arm was found faster than the control: no value is unlocked")
	} else {
		q.Notes = append(q.Notes, "no arm got a verdict, so whether one is faster than the control is not known: no value is unlocked")
	}
	q.Line = c.line(base, target)
	q.Notes = append(q.Notes, base.assumption())
	q.Notes = append(q.Notes, "prices are of the machine; volumes, traffic and backups are not in them: david price volumes")
	q.Notes = append(q.Notes, c.left()...)
}

func (s scale) assumption() string {
	bound := "the measured volume's IOPS are not known, so volumes bound nothing"
	if s.iops > 0 {
		bound = fmt.Sprintf("no more than to the volume's IOPS (measured with %s) where the catalogue knows them", Number(s.iops))
	}
	return fmt.Sprintf("estimate: untuned throughput is taken to grow in proportion to vCPUs (measured with %.4g), %s; that is optimistic for the untuned machine, so its "+
		"price and the value unlocked are lower bounds; a vCPU is taken for a vCPU, whoever's", s.cpus, bound)
}

// value finds the cheapest of a kind for a throughput.
func (c Catalogue) value(kind string, base scale, tps float64, ratio stats.Interval, paid float64) Value {
	managed := kind != "machine"
	m, ok := c.reaching(base, tps, managed)
	if !ok {
		return Value{Kind: kind, Why: fmt.Sprintf("no %s of the catalogue is predicted to reach %s transactions/s untuned", kind, Number(tps))}
	}
	usd, _ := c.USD(m.Price) // it was chosen by it
	v := Value{Kind: kind, Name: m.Name, USDMonth: usd, Predicted: base.on(m), Unlocked: usd - paid, Uncertain: m.Doubt("price")}
	if ratio == (stats.Interval{}) {
		return v
	}
	low, okLow := c.reaching(base, base.tps*ratio[0], managed)
	high, okHigh := c.reaching(base, base.tps*ratio[1], managed)
	if okLow && okHigh {
		v.Least, _ = c.USD(low.Price)
		v.Most, _ = c.USD(high.Price)
	}
	return v
}

func (c Catalogue) reaching(base scale, tps float64, managed bool) (Machine, bool) {
	const rounding = 1e-9
	return c.cheapest(func(m Machine) bool { return m.Managed == managed && base.on(m) >= tps*(1-rounding) })
}

// line returns the machines one would choose untuned: each the cheapest for its predicted throughput, up to
// the first that reaches the target.
func (c Catalogue) line(base scale, target float64) []Point {
	var all, line []Point
	for _, m := range c.Machines {
		if usd, ok := c.USD(m.Price); ok && !m.Managed {
			all = append(all, Point{m.Name, usd, base.on(m)})
		}
	}
	slices.SortFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.USDMonth, b.USDMonth), cmp.Compare(b.TPS, a.TPS), cmp.Compare(a.Name, b.Name))
	})
	most := 0.0
	for _, p := range all {
		if p.TPS <= most {
			continue
		}
		line, most = append(line, p), p.TPS
		if p.TPS >= target*(1-1e-9) && len(line) > 1 {
			break
		}
	}
	return line
}
