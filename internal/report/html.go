package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the assets
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

//go:embed assets/page.html
var pageTemplate string

//go:embed assets/page.css
var pageStyle string

//go:embed assets/page.js
var pageScript string

// chartScript holds Chart.js; assets/README.md says which.
//
//go:embed assets/chart.umd.js
var chartScript string

// page fills assets/page.html.
type page struct {
	ID, Subject, Cnf                           string
	Contents                                   []link
	Next                                       [][]piece // what to do, a sentence each
	Head                                       headline
	Cards                                      []card
	BarChart, TPSChart, P95Chart, LatencyChart chart
	Runs                                       []pickedRun
	Compared                                   []comparedView
	Phases                                     []phaseView
	CompareTitle                               string
	Forest, Scatter                            chart
	Series                                     []chart
	Sampled                                    []sampledRun
	Rates, Arms, Durability                    table
	UnsafeBaselines, Caveats                   []string
	Payer                                      string
	Price                                      table
	PriceChart                                 chart
	PriceNotes                                 []string
	Trials                                     table
	Machine, Method, Gates                     table
	Words                                      []word
	Policy                                     string
	Style                                      template.CSS
	Chart, Script, JSON                        template.JS
}

// card shows a figure beside the headline.
type card struct{ Label, Value string }

// chart describes a canvas: Alt tells in words what it shows.
type chart struct{ ID, Caption, Alt string }

// comparedView lays out one workload's comparison.
type comparedView struct {
	Workload, Floor string
	Arms, Costs     table
	// Standing and Stands are of the user's own file against the baselines.
	Standing table
	Stands   string
	// Overhead and Taxes are what Kubernetes costs, as a table and in sentences.
	Overhead  table
	Overheads []string
	Paths     table // of a network
	PathLines []string
	Remarks   []string
}

// sampledRun offers a trial whose samples one may look at: Trial is its place in the document.
type sampledRun struct {
	Trial  int
	Label  string
	Picked bool // shown first
}

// link leads to a section of the page.
type link struct{ ID, Title string }

// piece is a piece of a sentence; Code is set as what one types.
type piece struct {
	Text string
	Code bool
}

// sentences splits a text at semicolons, and takes what stands between backticks for code.
func sentences(text string) (list [][]piece) {
	for _, s := range strings.Split(text, "; ") {
		var parts []piece
		for i, part := range strings.Split(s, "`") {
			if part != "" {
				parts = append(parts, piece{part, i%2 == 1})
			}
		}
		list = append(list, parts)
	}
	return list
}

// contents lists the sections of the page, as assets/page.html has them.
func (p page) contents() (list []link) {
	add := func(there bool, id, title string) {
		if there {
			list = append(list, link{id, title})
		}
	}
	add(len(p.Next) > 0, "next", "What to do next")
	add(p.BarChart.ID != "", "bars", "Runs side by side")
	add(len(p.Rates.Rows) > 0, "rates", "The rates tried")
	add(len(p.Compared) > 0, "compare", p.CompareTitle)
	for i, v := range p.Phases {
		add(true, fmt.Sprintf("phase-%d", i), v.Title)
	}
	add(len(p.Compared) > 0, "arms", "The arms")
	add(len(p.Price.Rows) > 0, "price", "The price")
	add(p.TPSChart.ID != "", "time", "Second by second")
	add(p.LatencyChart.ID != "", "latency", "Latency of all transactions")
	add(len(p.Sampled) > 0, "samples", "Beside the load")
	add(len(p.Trials.Cols) > 0, "runs", "Runs")
	add(p.Cnf != "", "cnf", "my.cnf")
	add(true, "caveats", "Read with the numbers")
	add(true, "machine", "The machine")
	add(true, "method", "How it was measured")
	return list
}

// pickedRun offers a trial to pick; Shown ones are picked from the start.
type pickedRun struct {
	Label string
	Shown bool
}

// pageTemplates are those of one page, on which each of david's words is linked once.
func pageTemplates() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{"say": newLinker().say}).Parse(pageTemplate)
}

// HTML writes one self-contained file: it needs no network and no other file, and its policy forbids both.
func HTML(w io.Writer, d Data) error {
	t, err := pageTemplates()
	if err != nil {
		return fmt.Errorf("cannot parse the page's template: %w", err)
	}
	p, err := Build(d).page()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "page", p); err != nil {
		return fmt.Errorf("cannot make the page of experiment %s: %w", d.Experiment.ID, err)
	}
	return d.fill(w, b.Bytes())
}

func (r Report) page() (page, error) {
	d := r.data
	doc, err := r.encode()
	if err != nil {
		return page{}, err
	}
	library := ChartScript()
	p := page{
		ID: d.Experiment.ID, Subject: subject(d), Head: r.Headline,
		Machine: machineTable(d), Method: r.method, Gates: gateTable(d.Trials),
		Words:  words(),
		Policy: policy(pageStyle, library, pageScript),
		Style:  template.CSS(pageStyle), Chart: template.JS(library), Script: template.JS(pageScript), JSON: template.JS(doc),
	}
	for _, s := range r.Sections {
		if s.page != nil {
			s.page(&p)
		}
	}
	p.Caveats = slices.Concat(r.Light, p.UnsafeBaselines, r.Caveats)
	if d.Experiment.ID != "" {
		p.Next = sentences(nextLine(d, r.Headline, d.Cnf))
	}
	p.Contents = p.contents()
	return p, nil
}

// mostBars bounds the runs of a bench one can read as bars.
const mostBars = 40

// policy allows this style and these scripts, and nothing else: nothing is loaded, nothing is sent.
func policy(style string, scripts ...string) string {
	var allowed []string
	for _, s := range scripts {
		allowed = append(allowed, hash(s))
	}
	if len(allowed) == 0 {
		allowed = []string{"'none'"}
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " + hash(style) +
		"; script-src " + strings.Join(allowed, " ")
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func subject(d Data) string {
	parts := []string{serverName(d.Experiment.Server) + " (" + target(d.Experiment) + ")"}
	if d.Experiment.Title != "" {
		parts = slices.Insert(parts, 0, d.Experiment.Title)
	}
	return strings.Join(append(parts, describe(d.Experiment.Workloads)...), "; ")
}

func timeCard(d Data) []card {
	if d.Finish == nil {
		return nil
	}
	what := "time, and the share of it spent measuring"
	if before(d) > 0 {
		what += ", since it was gone on with"
	}
	return []card{{what,
		fmt.Sprintf("%s, %.0f %%", duration(d.Finish.WallSeconds), 100*d.Finish.Utilisation)}}
}

// benchCards shows the figures of the fastest valid run.
func benchCards(d Data, list []stats.LightSpeed) []card {
	light := lightCards(list)
	d = honest(d)
	fastest := -1
	for i, t := range d.Trials {
		if ok, _ := t.Valid(); ok && (fastest < 0 || t.TPS > d.Trials[fastest].TPS) {
			fastest = i
		}
	}
	if fastest < 0 {
		return timeCard(d)
	}
	t, of := d.Trials[fastest], ""
	if len(d.Trials) > 1 {
		of = " of " + trialLabels(d)[fastest]
	}
	l := t.Latency
	return append(append(light, []card{
		{"queries/s" + of, number(t.QPS)},
		{"latency p50 / p95 / p99, ms" + of, number(l.P50) + " / " + number(l.P95) + " / " + number(l.P99)},
		{"stalls" + of, plural(t.Stalls, "second")},
	}...), timeCard(d)...)
}

// shownAtFirst sets how many runs the charts of a bench begin with: more lines than that are hard to tell
// apart.
const shownAtFirst = 6

// firstRuns returns all runs, of which the first are shown.
func firstRuns(d Data) []pickedRun {
	var list []pickedRun
	for i, label := range trialLabels(d) {
		list = append(list, pickedRun{label, i < shownAtFirst})
	}
	return list
}

// runsOfArms returns all runs, of which one of each arm is shown: the winner's and the control's in any case.
func runsOfArms(d Data, compared []stats.Comparison) []pickedRun {
	var list []pickedRun
	for _, label := range trialLabels(d) {
		list = append(list, pickedRun{Label: label})
	}
	firsts := firstOfArms(d)
	order := slices.Concat([]string{winnerOf(d, compared), d.Experiment.Design.Control}, slices.Collect(maps.Keys(firsts)))
	slices.Sort(order[2:])
	slices.SortStableFunc(order[2:], func(a, b string) int { return firsts[a] - firsts[b] })
	shown := 0
	for _, arm := range order {
		if i, ok := firsts[arm]; ok && !list[i].Shown && shown < shownAtFirst {
			list[i].Shown = true
			shown++
		}
	}
	return list
}

// firstOfArms gives each arm's first run that may be quoted, under the first workload, by its place among all.
// Where a run of it is valid it is that one.
func firstOfArms(d Data) map[string]int {
	firsts := map[string]int{}
	phase, tuned := result.QuotedPhase(d.Trials), d.Experiment.Design.Tune != nil
	var first *result.Workload
	for _, wantValid := range []bool{true, false} {
		for i, t := range d.Trials {
			if tuned && t.Phase != phase || t.Twin || first != nil && t.Workload != *first {
				continue
			}
			if valid, _ := t.Valid(); wantValid && !valid {
				continue
			}
			first = &t.Workload
			if _, there := firsts[t.Arm]; !there {
				firsts[t.Arm] = i
			}
		}
	}
	return firsts
}

// winnerOf names the arm that a report is about: what a tune hands over, else the fastest that a verdict calls
// faster; "" where there is none.
func winnerOf(d Data, list []stats.Comparison) string {
	if d.Experiment.Design.Tune != nil && d.Finish != nil {
		return d.Finish.Best
	}
	best, ratio := "", 0.0
	for _, c := range list {
		for _, a := range c.Arms {
			if a.Verdict == stats.Faster && a.Ratio > ratio {
				best, ratio = a.Name, a.Ratio
			}
		}
	}
	return best
}
