package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the assets
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

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
	Trial int
	Label string
}

// pickedRun offers a trial to pick; Shown ones are picked from the start.
type pickedRun struct {
	Label string
	Shown bool
}

// HTML writes one self-contained file: it needs no network and no other file, and its policy forbids both.
func HTML(w io.Writer, d Data) error {
	t, err := template.New("").Parse(pageTemplate)
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
	// Without its last line, which names a map for debuggers that is not here.
	library, _, _ := strings.Cut(chartScript, "//# sourceMappingURL=")
	p := page{
		ID: d.Experiment.ID, Subject: subject(d), Head: r.Headline,
		Machine: machineTable(d), Method: methodTable(d, r.order), Gates: gateTable(d.Trials),
		TPSChart:     chart{"tps", "Transactions per second", seriesAltText(d, "transactions/s", tpsRange)},
		P95Chart:     chart{"p95", "p95 latency of each second, ms", seriesAltText(d, "ms", p95Range)},
		LatencyChart: chart{"latency", "How long transactions took", latencyAltText(d)},
		Words:        words(),
		Policy:       policy(pageStyle, library, pageScript),
		Style:        template.CSS(pageStyle), Chart: template.JS(library), Script: template.JS(pageScript), JSON: template.JS(doc),
	}
	for _, s := range r.Sections {
		if s.page != nil {
			s.page(&p)
		}
	}
	p.Caveats = slices.Concat(r.Light, p.UnsafeBaselines, r.Caveats)
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

// runsOfArms returns all runs, of which one of each arm is shown.
func runsOfArms(d Data) []pickedRun {
	var list []pickedRun
	arms, labels := 0, trialLabels(d)
	for i, t := range d.Trials {
		shown := t.Workload == d.Trials[0].Workload && t.Block == d.Trials[0].Block && !t.Twin && arms < shownAtFirst
		if shown {
			arms++
		}
		list = append(list, pickedRun{labels[i], shown})
	}
	return list
}
