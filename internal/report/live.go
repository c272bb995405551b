package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/mycnf"
	"david/internal/plain"
	"david/internal/result"
	"david/internal/stats"
)

// ChangedVariable is what became of a variable that a tune of a running server has set, by the record that
// `david rollback` goes by.
type ChangedVariable struct {
	Step      string `json:"step"`
	Name      string `json:"name"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Kept      bool   `json:"kept"`
	Persisted bool   `json:"persisted"`
	Undone    bool   `json:"undone"`
}

// still tells whether david's value is in place.
func (c ChangedVariable) still() bool { return !c.Undone }

// liveDocument is what the JSON document has of a live tune.
type liveDocument struct {
	result.LiveTune
	Changes []ChangedVariable `json:"changes"`
	// Judged are the steps as the guard saw them, in the order of the plan.
	Judged []judgedStep `json:"judged"`
}

// judgedStep is a step, and the latency under it beside that before the first one.
type judgedStep struct {
	Name  string  `json:"name"`
	State string  `json:"state"`          // "kept", "set back", "not begun", ...
	What  string  `json:"what,omitempty"` // the latency that was judged: "p95"
	Then  float64 `json:"before_ms,omitempty"`
	Is    float64 `json:"after_ms,omitempty"`
	Ratio float64 `json:"ratio,omitempty"` // of the latencies; 0: not seen
	// Interval is the 95 % interval of Ratio; nil where too little was seen.
	Interval *stats.Interval `json:"interval"`
	Ratios   []float64       `json:"ratios,omitempty"` // of the parts of the step's window to the mean of those before
	Why      string          `json:"why,omitempty"`

	traffic *result.LiveWindow
}

// The states of a step.
const (
	stateKept     = "kept"
	stateBack     = "set back"
	stateRolled   = "kept, and rolled back since"
	stateStill    = "NOT set back"
	stateNotBegun = "not begun"
)

// What a tune of a running server comes to, in a word.
const (
	Kept       stats.Verdict = "kept"         // every step
	KeptPartly stats.Verdict = "kept in part" // some steps
	SetBack    stats.Verdict = "set back"     // the first step, and there was no other
	NotSetBack stats.Verdict = "not set back" // a step is in place that was not shown to do no harm
	RolledBack stats.Verdict = "rolled back"  // by david rollback
	Unchanged  stats.Verdict = "unchanged"    // nothing was set
)

// judge looks at every step of the plan, and of a record without a plan at every step that was changed.
func (d Data) judge() (list []judgedStep) {
	var before *result.LiveWindow
	var done []result.LiveStepOutcome
	if run := d.Live.Run; run != nil {
		before, done = run.Before, run.Steps
	}
	for _, name := range d.liveSteps() {
		j := judgedStep{Name: name, State: d.stateOf(name)}
		if i := slices.IndexFunc(done, func(s result.LiveStepOutcome) bool { return s.Name == name }); i >= 0 {
			j.Why, j.traffic = done[i].Why, done[i].Traffic
		}
		if before != nil && j.traffic != nil {
			j.weigh(*before)
		}
		list = append(list, j)
	}
	return list
}

func (d Data) liveSteps() (names []string) {
	for _, s := range d.Live.Steps {
		names = append(names, s.Name)
	}
	for _, c := range d.Changes {
		if !slices.Contains(names, c.Step) {
			names = append(names, c.Step)
		}
	}
	return names
}

// stateOf tells by the record of changes what became of a step.
func (d Data) stateOf(step string) string {
	n, kept, back := 0, 0, 0
	for _, c := range d.Changes {
		if c.Step != step {
			continue
		}
		n++
		if c.Kept {
			kept++
		}
		if c.Undone {
			back++
		}
	}
	switch {
	case n == 0:
		return stateNotBegun
	case kept == n && back == n:
		return stateRolled
	case kept == n:
		return stateKept
	case back == n:
		return stateBack
	}
	return stateStill
}

// weigh holds the latency of a step's window against that before the first step, as the guard did.
func (j *judgedStep) weigh(before result.LiveWindow) {
	if j.What, j.Then, j.Is = result.LiveLatency(before, *j.traffic); j.What == "" {
		return
	}
	j.Ratio = j.Is / j.Then
	low, high := stats.RatioWithin(before.Parts, j.traffic.Parts)
	if math.IsInf(high, 1) {
		return
	}
	j.Ratio, j.Interval = math.Sqrt(low*high), &stats.Interval{low, high}
	was := 0.0
	for _, ms := range before.Parts {
		was += math.Log(ms) / float64(len(before.Parts))
	}
	for _, ms := range j.traffic.Parts {
		j.Ratios = append(j.Ratios, ms/math.Exp(was))
	}
}

// ofLive tells of a running server that was changed step by step, under its own traffic or david's.
func (r *Report) ofLive() {
	d := r.data
	r.live = &liveDocument{LiveTune: *d.Live, Changes: d.Changes, Judged: d.judge()}
	if r.live.Changes == nil {
		r.live.Changes = []ChangedVariable{}
	}
	r.Headline = liveHeadline(d, r.live.Judged)
	r.Caveats = liveCaveats(d)
	r.method = liveMethod(d)
	for _, v := range liveViews(d, r.live.Judged) {
		r.add(phaseSection(v))
	}
	r.add(Section{markdown: func(b *bytes.Buffer) { cnfSection(b, d.Cnf) }, page: func(p *page) { p.Cnf = d.Cnf },
		text: func(b *terminal) { liveCnf(b, d.Cnf) }})
}

// liveCnf shows the lines for the server's own my.cnf on a terminal.
func liveCnf(b *terminal, cnf string) {
	if cnf != "" {
		b.WriteString("For its my.cnf, as a restart undoes what was set\n" + narrowed(plain.Text(cnf), b.columns) + "\n")
	}
}

// narrowed breaks the comments of a my.cnf anew, into that many columns; its settings stay as they are.
func narrowed(cnf string, columns int) string {
	const more = "#   " // goes on with the comment above
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(cnf, "\n"+more, " ")) {
		text, comment := strings.CutPrefix(line, "# ")
		if !comment {
			out.WriteString(line)
			continue
		}
		for i, part := range Wrap(text, columns-len(more)) {
			head := more
			if i == 0 {
				head = "# "
			}
			out.WriteString(head + part + "\n")
		}
	}
	return out.String()
}

// KeptSettings are the settings that a live tune left in place and that a restart undoes, as lines for a my.cnf.
func KeptSettings(d Data) (list []mycnf.Setting) {
	for _, s := range d.Live.Steps {
		for _, c := range s.Changes {
			i := slices.IndexFunc(d.Changes, func(v ChangedVariable) bool { return v.Name == c.Name })
			if i < 0 || !d.Changes[i].Kept || d.Changes[i].Undone || d.Changes[i].Persisted {
				continue
			}
			set := c.Setting
			set.Effect = ""
			list = append(list, set)
		}
	}
	return list
}

// LiveCnfHead is the comment at the top of those lines.
func LiveCnfHead(d Data) []string {
	e := d.Experiment
	return []string{
		fmt.Sprintf("Set on the running server by david %s on %s; experiment %s.", e.David, e.Created.UTC().Format("2006-01-02"), e.ID),
		Headline(d),
		"No member of the durability lock is among them. Other traffic may differ: watch yours.",
	}
}

func liveHeadline(d Data, steps []judgedStep) headline {
	h := headline{Tone: "none"}
	kept, still := of(steps, stateKept), of(steps, stateStill)
	rolled := of(steps, stateRolled)
	switch {
	case len(still) > 0:
		h.Big, h.Tone = stateStill, "invalid"
		h.Rest = ": " + strings.Join(d.inPlace(still), ", ") + " have what david gave them, and it was not shown to do no harm"
		h.Decides = fmt.Sprintf("`david rollback %s` sets them back", d.Experiment.ID)
	case len(kept) > 0:
		h.Big = fmt.Sprintf("%d of %s kept", len(kept), plural(len(steps), "step"))
		last := kept[len(kept)-1]
		if h.Rest = last.said(); last.Interval != nil {
			h.Sure = fmt.Sprintf("95 %% interval of the ratio %s to %s, and up to %sx was allowed", fixed(last.Interval[0], 2), fixed(last.Interval[1], 2), trimmed(d.Live.MaxP95, 2))
			if last.Interval[1] < 1 {
				h.Tone = "gain"
			}
		}
	case len(rolled) > 0:
		h.Big, h.Rest = "Set back", fmt.Sprintf(": %s kept, and rolled back since; the server is as it was before", plural(len(rolled), "step"))
	case len(d.Changes) > 0:
		h.Big, h.Rest, h.Tone = "No step was kept", "", "invalid"
	default:
		h.Big, h.Rest, h.Tone = "Nothing was changed", "", "invalid"
		if d.Live.Ended != "" {
			h.Rest = ": " + d.Live.Ended
		}
	}
	for _, s := range of(steps, stateBack) {
		h.beside(s.Name + " was set back" + strings.TrimSuffix(": "+s.Why, ": "))
	}
	return h
}

// said tells what the latency came to.
func (j judgedStep) said() string {
	if j.What == "" {
		return ": latency was not seen"
	}
	return fmt.Sprintf(": %s %s ms against %s ms before, %sx", j.What, inMs(j.Is), inMs(j.Then), fixed(j.Ratio, 2))
}

func of(steps []judgedStep, state string) (list []judgedStep) {
	for _, s := range steps {
		if s.State == state {
			list = append(list, s)
		}
	}
	return list
}

// inPlace names the variables of some steps that are not set back.
func (d Data) inPlace(steps []judgedStep) (names []string) {
	for _, c := range d.Changes {
		if c.still() && slices.ContainsFunc(steps, func(s judgedStep) bool { return s.Name == c.Step }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// liveCaveats say what must be read with the numbers.
func liveCaveats(d Data) []string {
	list := []string{"before and after are different minutes: what else changed in the traffic is in the ratio, too"}
	if d.Live.Run != nil {
		list = append(list, d.Live.Run.Sight.Notes...)
	}
	return append(list, "judged under this traffic and this data: other traffic may differ")
}

// liveViews are the parts of the report.
func liveViews(d Data, steps []judgedStep) []phaseView {
	list := []phaseView{stepsView(d, steps)}
	if d.Live.Run != nil && d.Live.Run.Before != nil {
		list = append(list, latencyView(d, steps), rateView(d, steps))
	}
	list = append(list, changesView(d))
	for _, v := range []struct {
		title   string
		changes []result.LiveChange
	}{{"Takes a restart, so david does not change it", d.Live.Advice}, {"Yours to decide: david does not change these on a running server", d.Live.Decide}} {
		if len(v.changes) > 0 {
			list = append(list, adviceView(v.title, v.changes))
		}
	}
	if len(d.Live.Notes) > 0 {
		list = append(list, phaseView{Title: "Notes of the plan", Lines: d.Live.Notes})
	}
	for i := range list {
		list[i].short = list[i].Table
	}
	return list
}

func stepsView(d Data, steps []judgedStep) phaseView {
	what, alt := "latency", []string{}
	t := table{"The steps", []column{left("step"), right("before, ms"), right("after, ms"), right("ratio"), right("95 %"), {"state", "verdict"}}, nil}
	var lines []string
	for _, s := range steps {
		row := []string{s.Name, none, none, none, none, s.State}
		if s.What != "" {
			what = s.What
			row[1], row[2], row[3] = inMs(s.Then), inMs(s.Is), fixed(s.Ratio, 2)+"x"
		}
		if s.Interval != nil {
			row[4] = fmt.Sprintf("[%s, %s]", fixed(s.Interval[0], 2), fixed(s.Interval[1], 2))
			alt = append(alt, fmt.Sprintf("%s %sx %s", s.Name, row[3], s.State))
		}
		if s.Why != "" {
			lines = append(lines, s.Name+" was set back: "+s.Why)
		}
		t = t.add(row...)
	}
	v := phaseView{Title: "The steps: " + what + " to what it was before the first", Table: t, Lines: lines}
	if len(alt) > 0 {
		v.Chart = chart{"steps", fmt.Sprintf("%s after each step, ratio to before the first, with its 95 %% interval; the line is what was allowed, %sx", what, trimmed(d.Live.MaxP95, 2)),
			"Ratio of " + what + " after each step to that before the first, with its 95 % interval: " + strings.Join(alt, ", ")}
	}
	return v
}

// windows are the windows of a run with a name each.
func windows(d Data, steps []judgedStep) (names []string, list []result.LiveWindow) {
	names, list = append(names, "before"), append(list, *d.Live.Run.Before)
	for _, s := range steps {
		if s.traffic != nil && s.traffic.Seconds > 0 {
			names, list = append(names, "after "+s.Name), append(list, *s.traffic)
		}
	}
	return names, list
}

func latencyView(d Data, steps []judgedStep) phaseView {
	t := table{"Latency of each window", []column{left("window"), right("watched, s"), right("p95, ms"), right("mean, ms"), right("p95 of the load, ms")}, nil}
	names, list := windows(d, steps)
	loaded, seen := false, false
	for i, w := range list {
		loaded = loaded || w.LoadP95 != nil
		seen = seen || slices.ContainsFunc(w.Looks, func(l result.LiveLook) bool { return l.Ms != nil })
		t = t.add(names[i], round(w.Seconds), millis(w.P95), millis(w.Mean), millis(w.LoadP95))
	}
	if !loaded {
		t = t.without("p95 of the load, ms")
	}
	v := phaseView{Title: "Latency, before and after", Table: t}
	if seen {
		v.Chart = chart{"live-ms", "latency, ms, look by look; a colour is a window", "Latency of the statements over the time of the run, in milliseconds: " + t.spoken()}
	}
	return v
}

func rateView(d Data, steps []judgedStep) phaseView {
	t := table{"Traffic of each window", []column{left("window"), right("statements"), right("statements/s"), right("errors"), right("running at once")}, nil}
	names, list := windows(d, steps)
	looks := 0
	for i, w := range list {
		looks += len(w.Looks)
		t = t.add(names[i], round(w.Statements), number(w.Rate()), round(w.Errors), trimmed(w.Running, 1))
	}
	v := phaseView{Title: "Traffic, before and after", Table: t}
	if looks > 0 {
		v.Chart = chart{"live-rate", "statements/s, look by look; a colour is a window", "Statements a second over the time of the run: " + t.spoken()}
	}
	return v
}

func millis(ms *float64) string {
	if ms == nil {
		return none
	}
	return inMs(*ms)
}

// inMs formats a latency, one below a millisecond with a digit more.
func inMs(ms float64) string {
	if ms < 1 {
		return fixed(ms, 3)
	}
	return number(ms)
}

// spoken says a table in a sentence.
func (t table) spoken() string {
	var rows []string
	for _, row := range t.Rows {
		var cells []string
		for i, cell := range row[1:] {
			cells = append(cells, t.Cols[i+1].Head+" "+cell)
		}
		rows = append(rows, row[0]+": "+strings.Join(cells, ", "))
	}
	return strings.Join(rows, "; ")
}

// changesView tells of each variable what it was, what it was given, and what became of that.
func changesView(d Data) phaseView {
	t := table{"What was set", []column{left("variable"), right("before"), right("set to"), {"now", "verdict"}}, nil}
	var lines []string
	for _, c := range d.Changes {
		state := stateStill
		switch {
		case c.Kept && c.Undone:
			state = "rolled back"
		case c.Undone:
			state = stateBack
		case c.Kept && c.Persisted:
			state = "kept, persisted"
		case c.Kept:
			state = stateKept
		}
		t = t.add(c.Name, sized(c.Before), sized(c.After), state)
	}
	for _, s := range d.Live.Steps {
		for _, c := range s.Changes {
			lines = append(lines, reasoned(c))
		}
	}
	if len(d.Changes) == 0 {
		return phaseView{Title: "What was planned", Lines: lines}
	}
	return phaseView{Title: "What was set, and why", Table: t, Lines: lines}
}

func reasoned(c result.LiveChange) string {
	return fmt.Sprintf("%s: %s (%s)", c.Name, c.Reason, c.Source)
}

func adviceView(title string, changes []result.LiveChange) phaseView {
	t := table{title, []column{left("variable"), right("now"), right("advised")}, nil}
	var lines []string
	for _, c := range changes {
		t = t.add(c.Name, sized(c.Before), sized(c.Value))
		lines = append(lines, reasoned(c))
	}
	return phaseView{Title: title, Table: t, Lines: lines}
}

// liveMethod says how it was done.
func liveMethod(d Data) table {
	e, l := d.Experiment, d.Live
	t := pairs("How it was measured", []string{"experiment", e.ID}, []string{"started", e.Created.UTC().Format("2006-01-02 15:04:05 UTC")},
		[]string{"command", command(e.Argv)}, []string{"david", e.David}, []string{"server", serverName(e.Server)}, []string{"target", target(e)})
	if len(l.Hardware) > 0 {
		t = t.add("the server's hardware", strings.Join(l.Hardware, ", "))
	}
	if l.Watch > 0 {
		t = t.add("watched", duration(l.Watch)+" before the first step and after each, longer where that was not enough").
			add("latency allowed", fmt.Sprintf("up to %sx of what it was before, with the upper end of a 95 %% interval", trimmed(l.MaxP95, 2))).
			add("ratio", "of the parts that each window is cut into, as its interval is; of the whole windows it may be another")
	}
	if f := d.Finish; f != nil {
		t = t.add("time", fmt.Sprintf("%s, of which %s (%.0f %%) watching the traffic", duration(f.WallSeconds), duration(f.MeasureSeconds), 100*f.Utilisation))
	}
	t = t.add("load", "the server's own traffic")
	for i, line := range describe(e.Workloads) {
		if t = t.add("david's own", line); i == 0 {
			t.Rows[len(t.Rows)-2][1] += ", and david's own"
		}
	}
	return t
}

// liveRests says what a live tune rests on.
func liveRests(d Data) string {
	var parts []string
	if d.Experiment.Server.Version != "" {
		parts = append(parts, fmt.Sprintf("%s (%s)", serverName(d.Experiment.Server), target(d.Experiment)))
	}
	if own := describe(d.Experiment.Workloads); len(own) > 0 {
		parts = append(parts, "david's own load: "+own[0])
	}
	if run := d.Live.Run; run != nil && run.Before != nil {
		parts = append(parts, fmt.Sprintf("%s statements/s in %s before the first step, as long after each", number(run.Before.Rate()), duration(math.Round(run.Before.Seconds))), seenBy(run.Sight, d))
	}
	return strings.Join(parts, "; ")
}

// seenBy says which latency was judged.
func seenBy(s result.LiveSight, d Data) string {
	switch {
	case s.P95:
		return "p95 of all statements"
	case s.Mean:
		return "the mean latency of all statements"
	case len(d.Experiment.Workloads) > 0:
		return "p95 of david's own load"
	}
	return "no latency was seen"
}

// liveNext gives the command to go on with.
func liveNext(d Data, h headline) string {
	id := d.Experiment.ID
	show := fmt.Sprintf("`david show %s -v`", id)
	kept, persisted := 0, 0
	for _, c := range d.Changes {
		if c.Kept && c.still() {
			kept++
			if c.Persisted {
				persisted++
			}
		}
	}
	var parts []string
	switch {
	case h.Decides != "":
		parts = append(parts, h.Decides)
	case kept > persisted:
		parts = append(parts, fmt.Sprintf("a restart undoes what was kept: %s has the %s for its my.cnf; `david rollback %s` undoes it now", show, plural(kept-persisted, "line"), id))
	case kept > 0:
		parts = append(parts, fmt.Sprintf("`david rollback %s` sets back what was kept, SET PERSIST included", id))
	}
	if kept == persisted {
		parts = append(parts, show+" has every figure")
	}
	if n := len(d.Live.Advice); n > 0 && kept > 0 {
		parts = append(parts, fmt.Sprintf("%s more by a restart, listed there", plural(n, "setting")))
	}
	return strings.Join(parts, "; ")
}

// LiveVerdict is what a live tune came to, in a word or two and in a sentence.
func LiveVerdict(d Data) (verdict stats.Verdict, sentence string) {
	steps := d.judge()
	h := liveHeadline(d, steps)
	switch kept := of(steps, stateKept); {
	case len(of(steps, stateStill)) > 0:
		verdict = NotSetBack
	case len(kept) > 0 && len(kept) == len(steps):
		verdict = Kept
	case len(kept) > 0:
		verdict = KeptPartly
	case len(of(steps, stateRolled)) > 0:
		verdict = RolledBack
	case len(d.Changes) > 0:
		verdict = SetBack
	default:
		verdict = Unchanged
	}
	return verdict, h.Big + cmp.Or(h.Rest, strings.TrimSuffix(": "+h.Beside, ": "))
}

// liveCSV writes a line for each step.
func liveCSV(w io.Writer, d Data) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "step", "state", "variables", "latency", "before_ms", "after_ms", "ratio", "ratio_low", "ratio_high", "statements_s_before", "statements_s_after", "errors_before", "errors_after", "why"}}
	for _, s := range d.judge() {
		row := []string{d.Experiment.ID, s.Name, s.State, strings.Join(d.setIn(s.Name), " "), s.What, figure(s.Then), figure(s.Is), figure(s.Ratio), "", "", "", "", "", "", s.Why}
		if s.Interval != nil {
			row[8], row[9] = figure(s.Interval[0]), figure(s.Interval[1])
		}
		if before := d.Live.Run; s.traffic != nil && before != nil && before.Before != nil {
			row[10], row[11] = figure(before.Before.Rate()), figure(s.traffic.Rate())
			row[12], row[13] = strconv.FormatFloat(before.Before.Errors, 'f', 0, 64), strconv.FormatFloat(s.traffic.Errors, 'f', 0, 64)
		}
		rows = append(rows, row)
	}
	return errors.Join(c.WriteAll(rows), c.Error())
}

// setIn lists what a step set, as variable=value.
func (d Data) setIn(step string) (list []string) {
	for _, c := range d.Changes {
		if c.Step == step {
			list = append(list, c.Name+"="+c.After)
		}
	}
	return list
}
