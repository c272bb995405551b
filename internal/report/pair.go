package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/host"
	"david/internal/plain"
	"david/internal/result"
	"david/internal/stats"
)

// Side is one arm of an experiment, beside another one's.
type Side struct {
	ID       string          `json:"experiment"`
	Created  time.Time       `json:"created"`
	Arm      string          `json:"arm"`
	Server   string          `json:"server"`
	Workload result.Workload `json:"workload"`
	TPS      float64         `json:"tps"`
	TPSSpan  stats.Interval  `json:"tps_interval"`
	P95      float64         `json:"p95_ms"`
	P99      float64         `json:"p99_ms"`
	Control  float64         `json:"control_tps,omitempty"`
	Ratio    float64         `json:"ratio,omitempty"` // to its control
	Span     stats.Interval  `json:"ratio_interval"`
	Runs     int             `json:"runs"`

	data    Data
	arm     result.Arm
	figures stats.Arm
	control result.Arm
	unsafe  string
}

// Pair holds two arms of stored experiments against each other.
type Pair struct {
	A             Side       `json:"a"`
	B             Side       `json:"b"`
	stats.Between            // of B to A
	Why           string     `json:"why,omitempty"` // nothing is concluded
	How           string     `json:"how"`
	Conditions    []string   `json:"conditions"` // in which the two were measured, that differ
	Settings      [][]string `json:"settings"`   // variable, A's value, B's value
}

// NewPair holds an arm of b against one of a; an empty name is the arm that was handed over, or did best. Where they
// cannot be compared Why says so, and there is no ratio.
func NewPair(a, b Data, armA, armB string) (p Pair, err error) {
	if p.A, p.B, err = sides(a, b, armA, armB); err != nil {
		return p, err
	}
	p.Conditions, p.Settings = conditions(p.A, p.B), differing(p.A, p.B)
	if p.Why = apart(p.A, p.B); p.Why != "" {
		p.Verdict, p.How = stats.Invalid, "nothing is compared"
		return p, nil
	}
	if a.Experiment.ID == b.Experiment.ID && p.A.Arm != p.B.Arm {
		return p.within(a), nil
	}
	p.infer()
	return p, nil
}

// sides finds both arms under the first workload that both experiments have.
func sides(a, b Data, armA, armB string) (x, y Side, err error) {
	listA, listB := comparisons(a), comparisons(b)
	if len(listA) == 0 || len(listB) == 0 {
		return x, y, fmt.Errorf("cannot hold %s against %s: one of them has no trial", b.Experiment.ID, a.Experiment.ID)
	}
	at, other := listA[0], listB[0]
	for _, c := range listA {
		i := slices.IndexFunc(listB, func(d stats.Comparison) bool { return sameLoad(c.Workload, d.Workload) })
		if i >= 0 {
			at, other = c, listB[i]
			break
		}
	}
	if x, err = side(a, at, armA); err != nil {
		return x, y, err
	}
	y, err = side(b, other, armB)
	return x, y, err
}

// sameLoad tells whether two loads are the same but for how long they last.
func sameLoad(a, b result.Workload) bool {
	b.Seconds, b.Warmup = a.Seconds, a.Warmup
	return a == b
}

func side(d Data, c stats.Comparison, name string) (s Side, err error) {
	if name == "" {
		name = handedOver(d, c)
	}
	i := slices.IndexFunc(c.Arms, func(a stats.Arm) bool { return a.Name == name })
	if i < 0 {
		return s, fmt.Errorf("%s has no arm %q to compare: it has %s", d.Experiment.ID, name, strings.Join(armNames(c), ", "))
	}
	f := c.Arms[i]
	s = Side{ID: d.Experiment.ID, Created: d.Experiment.Created, Arm: name, Workload: c.Workload, TPS: f.TPS, TPSSpan: f.TPSInterval, P95: f.P95, P99: f.P99, Runs: f.Trials,
		data: d, arm: d.armNamed(name), control: d.armNamed(c.Control), figures: f}
	server := d.Experiment.Server
	if s.arm.Server != (result.Server{}) {
		server = s.arm.Server
	}
	s.Server = serverName(server)
	if c.Control != "" {
		s.Control, s.Ratio, s.Span = c.Of(c.Control).TPS, f.Ratio, f.Interval
	}
	s.unsafe = unsafe(slices.DeleteFunc(slices.Clone(Quoted(d).Trials), func(t result.Trial) bool { return t.Arm != name }))
	return s, nil
}

func armNames(c stats.Comparison) (list []string) {
	for _, a := range c.Arms {
		list = append(list, a.Name)
	}
	return list
}

// handedOver names the arm of a tune that was handed over, of others the one that did most.
func handedOver(d Data, c stats.Comparison) string {
	best := ""
	for _, a := range c.Arms {
		if d.Finish != nil && a.Name == d.Finish.Best {
			return a.Name
		}
		if a.Trials > 0 && (best == "" || a.TPS > c.Of(best).TPS) {
			best = a.Name
		}
	}
	if best == "" && len(c.Arms) > 0 {
		best = c.Arms[0].Name
	}
	return best
}

// apart says why two arms cannot be compared; "" where they can.
func apart(a, b Side) string {
	switch {
	case !sameLoad(a.Workload, b.Workload):
		return "the loads are not the same: " + strings.Join(describe([]result.Workload{a.Workload}), "") + " against " + strings.Join(describe([]result.Workload{b.Workload}), "")
	case a.Runs == 0 || b.Runs == 0:
		return "one of them has no valid run"
	case a.unsafe != b.unsafe:
		return fmt.Sprintf("durability differs: A ran without %s, B without %s", orNothing(a.unsafe), orNothing(b.unsafe))
	}
	return ""
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// within compares two arms of one experiment as it would have been with the first as its control.
func (p Pair) within(d Data) Pair {
	d = Quoted(d)
	design := d.Experiment.Design
	design.Control = p.A.Arm
	for _, c := range stats.Compare(design, d.Arms, d.Trials) {
		if c.Workload == p.B.Workload {
			x := c.Of(p.B.Arm)
			p.Between, p.Why = stats.Between{Ratio: x.Ratio, Interval: x.Interval, Odds: x.Odds, Verdict: x.Verdict}, x.Why
		}
	}
	p.How = "both ran in the rounds or blocks of one experiment: B is held against A in each"
	return p
}

// infer compares two experiments: by what each is worth beside its own control, where the two controls are alike,
// else by their throughputs.
func (p *Pair) infer() {
	if p.yardstick() {
		p.Between = stats.Compared(p.A.beside(), p.B.beside())
		p.How = fmt.Sprintf("each arm was held against its own control, which ran beside it, and so the machine's speed of the hour is in neither (control: %s, then %s transactions/s); "+
			"what lies between two sessions all the same is in the interval", round(p.A.Control), round(p.B.Control))
		return
	}
	p.Between = stats.Compared(p.A.alone(), p.B.alone())
	p.How = "they have no control in common, so throughputs of different hours are compared: the interval is as wide as a shared machine's speed was seen to move between sessions; " +
		"`david compare` in one session knows more"
}

// yardstick tells whether both arms have a control that is the same server with the same settings.
func (p *Pair) yardstick() bool {
	a, b := p.A, p.B
	if a.Ratio <= 0 || b.Ratio <= 0 || a.data.Experiment.Server.SHA256 != b.data.Experiment.Server.SHA256 || a.control.Server != b.control.Server || a.control.Caps != b.control.Caps {
		return false
	}
	return a.data.Experiment.Server.SHA256 != "" && maps.Equal(setTo(a.control), setTo(b.control))
}

// setTo is what an arm sets.
func setTo(a result.Arm) map[string]string {
	m := map[string]string{}
	for _, s := range a.Settings {
		m[s.Name] = s.Value
	}
	return m
}

func (s Side) beside() stats.Figure {
	f := stats.Figure{Value: s.Ratio, Interval: s.Span, Beside: true, Sessions: s.figures.Sessions}
	if s.figures.Verdict == stats.IsControl { // known to be 1
		f.Interval, f.Sessions = stats.Interval{1 - 1e-9, 1 + 1e-9}, 2
	}
	return f
}

func (s Side) alone() stats.Figure { return stats.Figure{Value: s.TPS, Interval: s.TPSSpan} }

// conditions lists in what the two were measured under that differs.
func conditions(a, b Side) (list []string) {
	x, y := a.data.Experiment, b.data.Experiment
	differ := func(what, of, other string) {
		if of != other {
			list = append(list, fmt.Sprintf("%s: A %s, B %s", what, orNothing(of), orNothing(other)))
		}
	}
	differ("server", a.Server+binaryOf(a), b.Server+binaryOf(b))
	differ("target", target(x), target(y))
	differ("CPUs", fmt.Sprintf("%.4g of %s", x.Host.CPU.Usable, x.Host.CPU.Model), fmt.Sprintf("%.4g of %s", y.Host.CPU.Usable, y.Host.CPU.Model))
	differ("memory", host.Size(x.Host.Memory.Limit), host.Size(y.Host.Memory.Limit))
	differ("kernel", x.Host.Kernel, y.Host.Kernel)
	differ("filesystem", x.Host.Data.Type, y.Host.Data.Type)
	differ("network path", a.arm.Path.Kind+where(a.arm.Path), b.arm.Path.Kind+where(b.arm.Path))
	differ("caps", a.arm.Caps.Text(), b.arm.Caps.Text())
	differ("how it is measured", measuredHow(x.Design), measuredHow(y.Design))
	differ("time of a run", fmt.Sprintf("%d s after %d s", a.Workload.Seconds, a.Workload.Warmup), fmt.Sprintf("%d s after %d s", b.Workload.Seconds, b.Workload.Warmup))
	differ("sysbench", x.Sysbench, y.Sysbench)
	return list
}

// where says on which CPUs a path has client and server.
func where(p result.Path) string {
	if p.CPUs == "" {
		return ""
	}
	return fmt.Sprintf(", the client on CPU %s, the server on CPU %s", p.ClientCPUs, p.ServerCPUs)
}

func binaryOf(s Side) string {
	sum := s.data.Experiment.Server.SHA256
	if s.arm.Server.SHA256 != "" {
		sum = s.arm.Server.SHA256
	}
	if sum == "" {
		return ""
	}
	return " (" + sum[:min(8, len(sum))] + ")"
}

func measuredHow(d result.Design) string {
	if d.Slices != nil || d.Tune != nil && d.Tune.Slices != nil {
		return "slices"
	}
	return "trials"
}

// differing has a row for each variable that the two arms set differently.
func differing(a, b Side) [][]string {
	x, y := setTo(a.arm), setTo(b.arm)
	rows := [][]string{}
	both := maps.Clone(x)
	maps.Copy(both, y)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		of, ok := x[name]
		other, too := y[name]
		if of == other && ok == too {
			continue
		}
		row := []string{name, "default", "default"}
		if ok {
			row[1] = of
		}
		if too {
			row[2] = other
		}
		rows = append(rows, row)
	}
	return rows
}

// Headline says what the two come to.
func (p Pair) Headline() string {
	if p.Why != "" && p.Ratio == 0 {
		return "No ratio: " + p.Why
	}
	return fmt.Sprintf("B does %sx what A does: %s (95 %% interval %s to %s)", fixed(p.Ratio, 2), p.Verdict, fixed(p.Interval[0], 2), fixed(p.Interval[1], 2))
}

// figures is the table of both sides.
func (p Pair) figures() table {
	t := table{"A and B", []column{left(""), left("A"), left("B")}, nil}
	row := func(what string, of func(Side) string) { t = t.add(what, of(p.A), of(p.B)) }
	row("experiment", func(s Side) string { return s.ID })
	row("began", func(s Side) string { return s.Created.UTC().Format("2006-01-02 15:04 MST") })
	row("arm", func(s Side) string { return s.Arm })
	row("server", func(s Side) string { return s.Server })
	row("transactions/s", func(s Side) string { return spanned(s.TPS, s.TPSSpan, 0) })
	row("p95, ms", func(s Side) string { return latency(s.P95) })
	row("p99, ms", func(s Side) string { return latency(s.P99) })
	if p.A.Ratio > 0 || p.B.Ratio > 0 {
		row("to its control", func(s Side) string { return spanned(s.Ratio, s.Span, 2) })
	}
	row("runs", func(s Side) string { return strconv.Itoa(s.Runs) })
	return t
}

func latency(ms float64) string {
	if ms == 0 {
		return none
	}
	return number(ms)
}

func spanned(x float64, i stats.Interval, digits int) string {
	switch {
	case x == 0:
		return none
	case i == (stats.Interval{}):
		return fixed(x, digits)
	}
	return fmt.Sprintf("%s [%s, %s]", fixed(x, digits), fixed(i[0], digits), fixed(i[1], digits))
}

func (p Pair) settings() table {
	return table{"What they set differently", []column{left("variable"), left("A"), left("B")}, p.Settings}
}

func (p Pair) underWhat() (title string, lines []string) {
	if len(p.Conditions) == 0 {
		return "Conditions", []string{"the same server, machine, caps and way of measuring; they were made in different sessions unless they are of one experiment"}
	}
	return "Made under different conditions", append(slices.Clone(p.Conditions), "the ratio is of all of this together, not of the settings alone")
}

// Text writes the pair for a terminal.
func (p Pair) Text(w io.Writer) error {
	b := terminal{columns: columns}
	b.paragraph(p.Headline())
	b.labelled("how", p.How)
	if p.Verdict == stats.Undecided {
		b.labelled("next", "`david compare` with both as arms decides it: in one session, in the same rounds")
	}
	b.WriteString("\n")
	b.fit(p.figures())
	title, lines := p.underWhat()
	b.WriteString("\n" + title + "\n")
	for _, line := range lines {
		b.paragraph("- " + plain.Line(line))
	}
	if len(p.Settings) > 0 {
		b.WriteString("\nWhat they set differently\n")
		b.fit(p.settings())
	}
	return b.flush(w)
}

// Markdown writes it for a ticket.
func (p Pair) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", escape(p.Headline()), escape(p.How))
	p.figures().markdown(&b)
	title, lines := p.underWhat()
	fmt.Fprintf(&b, "## %s\n\n", title)
	items(&b, lines)
	if len(p.Settings) > 0 {
		section(&b, "What they set differently", p.settings())
	}
	return flush(w, &b)
}

// JSON writes one document.
func (p Pair) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(p)
}

// CSV writes a line for each side and one for the ratio of B to A.
func (p Pair) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"what", "experiment", "arm", "tps", "tps_low", "tps_high", "p95_ms", "p99_ms", "ratio", "ratio_low", "ratio_high", "verdict"}}
	for i, s := range []Side{p.A, p.B} {
		rows = append(rows, []string{string("AB"[i]), s.ID, s.Arm, figure(s.TPS), figure(s.TPSSpan[0]), figure(s.TPSSpan[1]), figure(s.P95), figure(s.P99), figure(s.Ratio), figure(s.Span[0]), figure(s.Span[1]), string(s.figures.Verdict)})
	}
	rows = append(rows, []string{"B/A", "", "", "", "", "", "", "", figure(p.Ratio), figure(p.Interval[0]), figure(p.Interval[1]), string(p.Verdict)})
	return errors.Join(c.WriteAll(rows), c.Error())
}

// figure is a number for a program; empty for none.
func figure(x float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// HTML writes one page without scripts.
func (p Pair) HTML(w io.Writer) error {
	t, err := pageTemplates()
	if err == nil {
		t, err = t.Parse(planTemplate)
	}
	if err != nil {
		return fmt.Errorf("cannot parse the page's template: %w", err)
	}
	title, lines := p.underWhat()
	page := planPage{Policy: policy(pageStyle, nil...), Style: template.CSS(pageStyle), What: "comparison", Title: p.B.ID + " against " + p.A.ID, Big: p.Headline(), Head: []string{p.How},
		Foot:     "Made by david from two stored experiments.",
		Sections: []planSection{{Title: "A and B", Tables: []table{p.figures()}}, {Title: title, Lines: lines}, {Title: "What they set differently", Tables: []table{p.settings()}}}}
	if err := t.ExecuteTemplate(w, "plan", page); err != nil {
		return fmt.Errorf("cannot make the page: %w", err)
	}
	return nil
}

// CSV writes a line for each arm under each workload.
func CSV(w io.Writer, d Data) error {
	if d.Live != nil {
		return liveCSV(w, d)
	}
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "workload", "threads", "rate", "arm", "runs", "invalid", "tps", "tps_low", "tps_high", "p95_ms", "p99_ms", "ratio", "ratio_low", "ratio_high", "odds", "verdict"}}
	for _, x := range comparisons(d) {
		for _, a := range x.Arms {
			rows = append(rows, []string{d.Experiment.ID, x.Workload.Name, strconv.Itoa(x.Workload.Threads), figure(x.Workload.Rate), a.Name, strconv.Itoa(a.Trials), strconv.Itoa(a.Invalid),
				figure(a.TPS), figure(a.TPSInterval[0]), figure(a.TPSInterval[1]), figure(a.P95), figure(a.P99), figure(a.Ratio), figure(a.Interval[0]), figure(a.Interval[1]), figure(a.Odds), string(a.Verdict)})
		}
	}
	return errors.Join(c.WriteAll(rows), c.Error())
}
