package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// Report holds what there is to tell of an experiment. The forms (text, Markdown, HTML, JSON) go through its
// parts and do not ask what kind of experiment it is.
type Report struct {
	Headline headline
	Light    []string // how near it came to light speed
	Sections []Section
	Caveats  []string // what must be read with the numbers

	data   Data
	server string // what was measured, in a line of text
	method table  // how it was measured
	order  string // how the arms were laid out in time; "" where none are compared
	// What the JSON document has besides the store.
	comparisons     []stats.Comparison
	light           []stats.LightSpeed
	unsafeBaselines []unsafeBaseline
	tune            *tuneDocument
	live            *liveDocument
}

// Section shows a part of a report in each form; nil where a form has it not.
type Section struct {
	text     func(b *terminal)
	markdown func(b *bytes.Buffer)
	page     func(p *page)
}

// Build makes the report of an experiment, and asks once of which kind it is.
func Build(d Data) Report {
	e := d.Experiment
	r := Report{data: d, server: fmt.Sprintf("%s (%s), sysbench %s", serverName(e.Server), target(e), e.Sysbench)}
	switch design := d.Experiment.Design; {
	case d.Live != nil:
		r.server = fmt.Sprintf("%s (%s)", serverName(e.Server), target(e))
		r.ofLive()
	case fioAlone(d) && len(layoutRows(d, Prices{})) > 0:
		r.ofLayouts()
	case design.Tune != nil:
		r.ofTune()
	case slices.Contains([]result.Kind{result.KindRace, result.KindExperiment, result.KindStudy}, d.Experiment.Kind):
		r.ofRace()
	case design.Control != "" && d.Experiment.Kind != result.KindBench: // a bench's ceiling is no contender
		r.ofComparison()
	case design.SLO != nil:
		r.ofSearch()
	default:
		r.ofBench()
	}
	if len(r.method.Rows) == 0 {
		r.method = methodTable(d, r.order)
	}
	r.finishHeadline()
	r.finishCaveats()
	return r
}

// ofTune tells of the confirmation, and of the phases that led to it.
func (r *Report) ofTune() {
	d := r.data
	safe := honest(d)
	r.tune = history(d)
	r.compare()
	r.Headline = phasedHeadline(safe, r.comparisons)
	r.Caveats = phasedCaveats(safe, r.order)
	r.lit(func(l stats.LightSpeed) string {
		if l.Arm == stats.Control {
			return "the control"
		}
		return "the tuned server"
	})
	for _, c := range r.comparisons {
		v := viewOf(c)
		for _, line := range []string{rivalLine(safe), promiseLine(safe)} {
			if line != "" {
				v.Remarks = append([]string{line}, v.Remarks...)
			}
		}
		r.add(comparedSection(v, len(r.comparisons) > 1))
	}
	title, hollow, promise := "Arms against the control", "", ""
	if len(trialsOf(d, result.Confirm)) > 0 {
		title, hollow = "Confirmed in fresh blocks: against the control", "; a hollow diamond is what short trials had promised"
		if d.Experiment.Design.Tune.Slices != nil {
			title = "Confirmed in fresh starts: against the control"
		}
		promise = "; " + promiseLine(safe)
	}
	r.add(chartsSection(d, r.comparisons, title, hollow, promise))
	for _, v := range phaseViews(d, r.tune) {
		r.add(phaseSection(v))
	}
	r.add(armsSection(d), Section{text: func(b *terminal) { failedGates(b, d.Trials); b.WriteString("\n") }})
	r.finish(blockTable(d), runsOfArms(d, r.comparisons), func(a result.Arm) string { return "Unsafe, no verdict: " + a.Name })
}

// ofRace tells of baselines, or a file's arms, against a control. Its unsafe arms are what their authors ship or
// ask for, and no ceilings.
func (r *Report) ofRace() {
	r.unsafeBaselines = unsafeBaselines(r.data)
	r.ofArms()
}

// ofComparison tells of arms against a control, as also what Kubernetes costs.
func (r *Report) ofComparison() {
	r.lit(yourServer)
	r.ofArms()
}

// ofArms tells what races and comparisons have in common.
func (r *Report) ofArms() {
	d := r.data
	design, safe := d.Experiment.Design, honest(d)
	taxed := design.Margin > 0
	r.compare()
	switch {
	case design.Against != "":
		r.Headline = standingHeadline(safe, r.comparisons)
	case taxed:
		r.Headline = overheadHeadline(safe, r.comparisons)
	case d.armNamed(design.Control).Path != (result.Path{}):
		r.Headline = pathHeadline(safe, r.comparisons)
	case overEngines(d):
		r.Headline = enginesHeadline(safe, r.comparisons)
	default:
		r.Headline = compareHeadline(safe, r.comparisons)
	}
	r.Caveats = compareCaveats(safe, r.order)
	for _, c := range r.comparisons {
		v := viewOf(c)
		if taxed {
			v.Overhead, v.Overheads = overheadTable(c), overheadLines(d, c)
		}
		v.Paths, v.PathLines = pathTable(d, c)
		r.add(comparedSection(v, len(r.comparisons) > 1))
	}
	r.add(durabilitySection(safe), layoutSection(d), chartsSection(d, r.comparisons, "Arms against the control", "", ""),
		unsafeBaselineSection(unsafeBaselineLines(r.unsafeBaselines)), armsSection(d),
		Section{text: func(b *terminal) { b.fit(gateTable(d.Trials)); b.WriteString("\n") }})
	r.finish(blockTable(d), runsOfArms(d, r.comparisons), func(a result.Arm) string { return "Unsafe, no verdict: " + a.Name })
}

// ofLayouts tells what fio alone got out of layouts.
func (r *Report) ofLayouts() {
	rows := layoutRows(r.data, Prices{})
	r.server = "no server: fio alone"
	r.Headline = headline{Big: "Layouts", Rest: ": " + strings.TrimPrefix(found(rows), "found: "), Sure: strings.TrimPrefix(howSure(rows), "how sure: "), Tone: "none"}
	r.add(layoutSection(r.data))
}

// ofSearch tells of the highest rate that keeps a goal. It has a run or two for each rate: its table says all
// there is.
func (r *Report) ofSearch() {
	d := r.data
	r.Headline = sloHeadline(honest(d))
	r.lit(yourServer)
	rates := sloTable(d)
	r.add(Section{
		text:     func(b *terminal) { b.fit(rates); b.WriteString("\n") },
		markdown: func(b *bytes.Buffer) { section(b, "The rates tried", rates) },
		page:     func(p *page) { p.Rates = rates },
	}, figuresSection(d, r.light))
	r.finish(trialTable(d), firstRuns(d), func(result.Arm) string { return unsafeLimit })
}

// ofBench tells of the runs of one server.
func (r *Report) ofBench() {
	d := r.data
	safe := honest(d)
	r.Headline = benchHeadline(safe)
	r.Caveats = append(repeats(safe), knee(safe)...)
	r.lit(yourServer)
	r.add(Section{text: func(b *terminal) { benchText(b, d) }}, figuresSection(d, r.light))
	r.finish(trialTable(d), firstRuns(d), func(result.Arm) string { return unsafeLimit })
}

func yourServer(stats.LightSpeed) string { return "your server" }

func (r *Report) add(s ...Section) { r.Sections = append(r.Sections, s...) }

// compare works out what the blocks say.
func (r *Report) compare() {
	r.comparisons = comparisons(r.data)
	r.order = order(r.data, r.comparisons)
}

// lit says how near the server that subject names came to its ceiling.
func (r *Report) lit(subject func(stats.LightSpeed) string) {
	r.light = stats.LightSpeeds(r.data.Arms, Quoted(r.data).Trials)
	r.Light = lightLines(r.data.Arms, r.light, subject)
}

// finish adds what every report ends with. unsafeTitle stands over the settings of an arm that is unsafe on
// purpose.
func (r *Report) finish(table table, shown []pickedRun, unsafeTitle func(result.Arm) string) {
	d := r.data
	r.add(priceSection(d.Price), Section{
		markdown: func(b *bytes.Buffer) { section(b, "Runs", table) },
		page: func(p *page) {
			p.Trials, p.Runs = table, shown
			p.TPSChart = chart{"tps", "Transactions per second", seriesAltText(d, "transactions/s", tpsRange)}
			p.P95Chart = chart{"p95", "p95 latency of each second, ms", seriesAltText(d, "ms", p95Range)}
			p.LatencyChart = chart{"latency", "How long transactions took", latencyAltText(d)}
		},
	}, Section{markdown: func(b *bytes.Buffer) { settingSections(b, d.Arms, unsafeTitle) }}, Section{
		markdown: func(b *bytes.Buffer) { cnfSection(b, d.Cnf) },
		page:     func(p *page) { p.Cnf = d.Cnf },
	})
}

// finishHeadline adds what holds of every headline.
func (r *Report) finishHeadline() {
	d := honest(r.data)
	if d.Finish != nil && d.Finish.Failed != "" {
		r.Headline = headline{Big: "Failed", Rest: " before its first trial: " + d.Finish.Failed, Tone: "invalid"}
		return
	}
	if d.Finish == nil {
		r.Headline.beside("interrupted: only what was measured until then")
	}
	if u := unsafe(d.Trials); u != "" {
		r.Headline.beside("unsafe: measured without " + u)
	}
}

// finishCaveats adds what must be read with any numbers.
func (r *Report) finishCaveats() {
	d := honest(r.data)
	if d.Live != nil {
		r.Caveats = append(r.Caveats, d.Experiment.Notes...)
		return
	}
	list := slices.Concat(r.Caveats, setAside(d), loop(d), []string{"measured for this workload, this data and this machine: others may differ"})
	if u := unsafe(d.Trials); u != "" {
		list = append(list, "unsafe: ran without "+u+": do not compare with a durable server")
	}
	r.Caveats = slices.Concat(list, ceilingText(r.data.Arms, r.unsafeBaselines != nil), podNotes(r.data), d.Experiment.Notes)
}

// comparedSection returns what one workload says: the noise before the numbers, and after them what they cost
// and what speaks against them.
func comparedSection(v comparedView, several bool) Section {
	return Section{
		text:     func(b *terminal) { v.text(b, several) },
		markdown: v.markdown,
		page:     func(p *page) { p.Compared = append(p.Compared, v) },
	}
}

// unsafeBaselineSection returns the unsafe arms of a race, which on a page stand with the caveats.
func unsafeBaselineSection(lines []string) Section {
	return Section{
		text: func(b *terminal) { b.paragraphs(lines) },
		markdown: func(b *bytes.Buffer) {
			if len(lines) > 0 {
				items(b, lines)
			}
		},
		page: func(p *page) { p.UnsafeBaselines = lines },
	}
}

func phaseSection(v phaseView) Section {
	return Section{
		text: func(b *terminal) {
			b.paragraph(v.Title)
			if len(v.short.Rows) > 0 {
				b.fit(v.short)
			}
			b.paragraphs(slices.Concat(v.said, v.Lines))
			b.WriteString("\n")
		},
		markdown: func(b *bytes.Buffer) {
			if len(v.Table.Cols) > 0 {
				section(b, v.Title, v.Table)
			} else {
				section(b, v.Title)
			}
			if len(v.Lines) > 0 {
				items(b, v.Lines)
			}
		},
		page: func(p *page) { p.Phases = append(p.Phases, v) },
	}
}

// armsSection says what the arms are.
func armsSection(d Data) Section {
	contents := contentsTable(d)
	return Section{
		text: func(b *terminal) {
			for _, a := range honest(Quoted(d)).Arms {
				b.paragraph(armLine(a))
			}
			b.WriteString("\n")
		},
		markdown: func(b *bytes.Buffer) { section(b, "The arms", contents) },
		page:     func(p *page) { p.Arms = contents },
	}
}

// figuresSection returns the page's part of the runs of one server, which other forms have as tables.
func figuresSection(d Data, light []stats.LightSpeed) Section {
	return Section{page: func(p *page) {
		p.Cards = benchCards(d, light)
		if n := len(d.Trials); n > 1 && n <= mostBars {
			p.BarChart = chart{"bars", "Throughput of each run", runsAltText(d)}
		}
	}}
}

// text shows a comparison on a terminal.
func (v comparedView) text(b *terminal, several bool) {
	if several {
		b.paragraph(v.Workload)
	}
	b.paragraph(v.Floor)
	b.WriteString("\n")
	b.arms(v.Arms)
	b.WriteString("\n")
	if v.Stands != "" {
		b.fit(v.Standing)
		b.WriteString("\n")
		b.paragraph(v.Stands)
		b.WriteString("\n")
	}
	if len(v.Overhead.Rows) > 0 {
		b.fit(v.Overhead)
		b.WriteString("\n")
	}
	if len(v.Overheads) > 0 {
		b.paragraphs(v.Overheads)
		b.WriteString("\n")
	}
	if len(v.Paths.Rows) > 0 {
		b.fit(v.Paths)
		b.WriteString("\n")
		b.paragraphs(v.PathLines)
		b.WriteString("\n")
	}
	b.fit(v.Costs.transpose())
	b.WriteString("\n")
	b.paragraphs(v.Remarks)
	b.WriteString("\n")
}

func (v comparedView) markdown(b *bytes.Buffer) {
	section(b, "Arms against the control: "+v.Workload)
	fmt.Fprintf(b, "%s\n\n", escape(v.Floor))
	v.Arms.markdown(b)
	if v.Stands != "" {
		fmt.Fprintf(b, "%s\n\n", escape(v.Stands))
		v.Standing.markdown(b)
	}
	if len(v.Overheads) > 0 {
		items(b, v.Overheads)
	}
	if len(v.Overhead.Rows) > 0 {
		v.Overhead.markdown(b)
	}
	if len(v.Paths.Rows) > 0 {
		v.Paths.markdown(b)
		items(b, v.PathLines)
	}
	v.Costs.markdown(b)
	items(b, v.Remarks)
}
