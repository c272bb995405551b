package report

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"david/internal/result"
	"david/internal/stats"
	"david/internal/testbrowser"
)

// browser is a Chromium that shows reports.
type browser struct{ *testbrowser.Browser }

func newBrowser(t *testing.T) *browser { return &browser{testbrowser.New(t)} }

// open opens the report of d from a file.
func (b *browser) open(t *testing.T, d Data) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, render(t, HTML, d), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Heard()
	b.Run(t, chromedp.Navigate("file://"+file), chromedp.WaitReady("footer"))
	complaints, requests := b.Heard()
	if len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
	for _, url := range requests {
		if url != "file://"+file && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page asked for %s", url)
		}
	}
}

func TestPageInABrowser(t *testing.T) {
	b := newBrowser(t)
	for name, d := range map[string]Data{"bench": benchFixture(), "hostile": hostile(), "empty": {},
		"compare": compareFixture(), "hostile compare": hostileCompare(), "slo": sloFixture(), "workloads": twoWorkloads(), "priced": pricedFixture(), "phases": phasesFixture()} {
		t.Run(name, func(t *testing.T) {
			b.open(t, d)
			b.checkHeadline(t, d)
			page, err := Build(d).page()
			if err != nil {
				t.Fatal(err)
			}
			b.checkCells(t, "#runs-section", page.Trials)
			if len(page.Compared) > 0 {
				b.checkComparison(t, d)
			}
			if len(page.Phases) > 0 {
				b.checkPhases(t, d)
			}
			if d.Price != nil {
				b.checkCells(t, "#price-section", priceTable(d.Price))
				b.checkPrices(t, d)
			}
			if name == "bench" {
				b.checkDocument(t, d)
			}
			if len(d.Trials) > 0 {
				b.checkCanvases(t)
			}
			b.checkWidths(t)
			if slices.Contains([]string{"bench", "workloads", "priced", "phases"}, name) { // which have all there is between them
				b.Accessible(t)
			}
			if len(d.Trials) > 0 { // drawn anew at the last width, with the next frame
				b.Run(t, chromedp.Poll(inked+`.every(c => c.pixels >= 1000)`, nil, chromedp.WithPollingTimeout(10*time.Second)))
			}
		})
	}
	t.Run("dark", b.checkDark)
	t.Run("choice", b.checkChoice)
	t.Run("print", b.checkPrint)
	t.Run("samples", b.checkSamples)
	t.Run("words", b.checkWords)
}

func (b *browser) checkHeadline(t *testing.T, d Data) {
	var got string
	if b.Eval(t, `document.querySelector('h1').textContent`, &got); got != Headline(d) {
		t.Errorf("the headline is %q, want %q", got, Headline(d))
	}
}

// checkCells compares the first table of a section that is not a chart's, cell by cell.
func (b *browser) checkCells(t *testing.T, section string, want table) {
	t.Helper()
	var got [][]string
	b.Eval(t, `[...document.querySelector('`+section+` .scroll:not(.alt .scroll)').querySelectorAll('tbody tr')].
		map(row => [...row.cells].map(cell => cell.textContent))`, &got)
	if len(got) != len(want.Rows) {
		t.Fatalf("%s: %d rows, want %d", section, len(got), len(want.Rows))
	}
	for i, row := range want.Rows {
		if strings.Join(got[i], "¦") != strings.Join(row, "¦") {
			t.Errorf("%s, row %d: %q, want %q", section, i, got[i], row)
		}
	}
}

// checkPrices opens the table of the chart of prices: the arms measured, then every machine of the line.
func (b *browser) checkPrices(t *testing.T, d Data) {
	var rows [][]string
	b.Eval(t, `(() => { const d = document.querySelector('[data-chart=price]'); d.open = true; d.dispatchEvent(new Event('toggle'));
		const rows = [...d.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent)); d.open = false; return rows; })()`, &rows)
	if want := len(d.Price.Shown()) + len(d.Price.Line); len(rows) != want {
		t.Fatalf("%d rows, want %d: %q", len(rows), want, rows)
	}
	if got, want := strings.Join(rows[0], " "), "control 66.00 "+number(d.Price.Shown()[0].TPS)+" measured"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// checkWords follows the links of david's words: each opens the list and leads to its word, and each word has one at most.
func (b *browser) checkWords(t *testing.T) {
	b.open(t, compareFixture())
	var followed []string
	b.Eval(t, `[...document.querySelectorAll('a.word')].map(a => {
		const list = document.getElementById('words'); list.open = false; a.click();
		return list.open && document.querySelector(a.getAttribute('href')).textContent || 'nothing'; })`, &followed)
	slices.Sort(followed)
	if want := []string{"arm", "block", "control", "durability lock", "gate", "no-op", "trial"}; !slices.Equal(followed, want) {
		t.Errorf("the links to david's words: %q, want %q", followed, want)
	}
}

// checkDocument compares the numbers that the charts are drawn from with the store's.
func (b *browser) checkDocument(t *testing.T, d Data) {
	var got []struct {
		TPS    float64        `json:"tps"`
		Points []result.Point `json:"points"`
	}
	b.Eval(t, `JSON.parse(document.getElementById('data').textContent).trials`, &got)
	if len(got) != len(d.Trials) {
		t.Fatalf("%d trials, want %d", len(got), len(d.Trials))
	}
	for i, x := range d.Trials {
		if got[i].TPS != x.TPS || len(got[i].Points) != len(x.Points) || got[i].Points[9] != x.Points[9] {
			t.Errorf("trial %d differs: %v tps, want %v", i, got[i].TPS, x.TPS)
		}
	}
}

// inked counts the pixels of every canvas that are not transparent.
const inked = `[...document.querySelectorAll('canvas')].map(c => ({
	id: c.id, alt: c.getAttribute('aria-label'), role: c.getAttribute('role'),
	pixels: c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length}))`

func (b *browser) checkCanvases(t *testing.T) {
	t.Helper()
	var got []struct {
		ID, Alt, Role string
		Pixels        int
	}
	b.Eval(t, inked, &got)
	if len(got) < 3 {
		t.Errorf("%d charts", len(got))
	}
	for _, c := range got {
		if c.Pixels < 1000 || len(c.Alt) < 40 || c.Role != "img" {
			t.Errorf("chart %+v", c)
		}
	}
}

// checkWidths looks for anything that makes the page scroll sideways.
func (b *browser) checkWidths(t *testing.T) {
	t.Helper()
	for _, width := range []int64{360, 390, 768, 1280} {
		if wide := b.Wide(t, width); wide != "" {
			t.Error(wide)
		}
	}
}

// checkDark asks for dark mode on an open page: the paper is dark, and the charts are drawn again in other
// colours.
func (b *browser) checkDark(t *testing.T) {
	b.open(t, benchFixture())
	const look = `[getComputedStyle(document.body).backgroundColor, document.getElementById('tps').toDataURL()]`
	var light, dark []string
	b.Eval(t, look, &light)
	mode := func(value string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
	}
	b.Run(t, mode("dark"))
	b.Eval(t, fmt.Sprintf(`window.light = %q`, light[1]), nil)
	b.Run(t, chromedp.Poll(`document.getElementById('tps').toDataURL() !== light`, nil)) // drawn anew with the next frame
	b.Eval(t, look, &dark)
	if light[0] != "rgb(255, 255, 255)" || dark[0] == light[0] {
		t.Errorf("paper %s, in the dark %s", light[0], dark[0])
	}
	b.checkCanvases(t)
	b.checkWidths(t)
	b.Accessible(t)
	b.Run(t, mode("light"))
}

// checkChoice takes a run out, and reads the chart's numbers as a table.
func (b *browser) checkChoice(t *testing.T) {
	d := benchFixture()
	b.open(t, d)
	last := len(d.Trials) - 1
	var heads []string
	b.Run(t, chromedp.Click(`[data-chart="tps"] summary`), chromedp.WaitVisible(`[data-chart="tps"] table`), chromedp.Click(fmt.Sprintf(`#pick input[value="%d"]`, last)))
	b.Eval(t, `[...document.querySelectorAll('[data-chart="tps"] thead th')].map(e => e.textContent)`, &heads)
	if want := append([]string{"second"}, trialLabels(d)[:last]...); !slices.Equal(heads, want) {
		t.Errorf("the table shows %q, want %q", heads, want)
	}
	var cells []string
	b.Eval(t, `[...[...document.querySelectorAll('[data-chart="tps"] tbody tr')][9].cells].map(e => e.textContent)`, &cells)
	want := []string{"10"}
	for _, x := range d.Trials[:last] {
		want = append(want, fmt.Sprintf("%.2f", x.Points[9].TPS))
	}
	if !slices.Equal(cells, want) {
		t.Errorf("second 10 is %q, want %q", cells, want)
	}
}

// checkPrint prints in dark mode: the paper is white all the same, and the page is itself again afterwards.
func (b *browser) checkPrint(t *testing.T) {
	b.open(t, benchFixture())
	var before, during, after string
	const paper = `getComputedStyle(document.body).backgroundColor`
	b.Run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	b.Eval(t, paper, &before)
	b.Eval(t, `dispatchEvent(new Event('beforeprint')), `+paper, &during)
	b.checkCanvases(t)
	b.Eval(t, `dispatchEvent(new Event('afterprint')), `+paper, &after)
	if during != "rgb(255, 255, 255)" || before == during || after != before {
		t.Errorf("paper %s, printed %s, then %s", before, during, after)
	}
}

// checkComparison looks for the noise floor before any number, the tables, and the charts that only a
// comparison has.
func (b *browser) checkComparison(t *testing.T, d Data) {
	t.Helper()
	c := comparisons(d)[0]
	b.checkCells(t, "#compare-section", armTable(c))
	b.checkCells(t, "#arms-section", contentsTable(d))
	var text string
	if b.Eval(t, `document.querySelector('#compare-section h2').nextElementSibling.textContent`, &text); !strings.Contains(text, floor(c)) {
		t.Errorf("the comparison begins with %q, want %q", text, floor(c))
	}
	for _, id := range []string{"forest", "scatter", "latency", "server-cpu", "device-iops", "checkpoint-age"} {
		if d.Experiment.Design.Tune != nil && len(id) > len("scatter") { // its fixture was not sampled
			continue
		}
		var there bool
		if b.Eval(t, fmt.Sprintf(`document.getElementById(%q) !== null`, id), &there); !there {
			t.Errorf("no chart %s", id)
		}
	}
	var bars []*stats.Interval
	b.Eval(t, `Chart.getChart('forest').data.datasets[0].data`, &bars)
	for i, a := range c.Arms {
		drawn := a.Ratio > 0 && a.Verdict != stats.IsControl
		if (bars[i] != nil) != drawn || drawn && *bars[i] != a.Interval {
			t.Errorf("the forest plot draws %s as %v, want %v", a.Name, bars[i], a.Interval)
		}
	}
	const rows = `document.querySelector('details[data-chart="forest"]').open = true,
		new Promise(done => setTimeout(() => done(document.querySelectorAll('[data-chart="forest"] tbody tr').length), 100))`
	var n int
	b.Run(t, chromedp.Evaluate(rows, &n, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if want := len(comparisons(d)) * len(Quoted(d).Arms); n != want {
		t.Errorf("the forest plot has %d rows, want %d", n, want)
	}
}

// checkPhases holds the charts of a tune against the record: the table under each, and what is drawn of the
// search.
func (b *browser) checkPhases(t *testing.T, d Data) {
	t.Helper()
	h := history(d)
	for id, want := range map[string]int{"race": len(h.Race[0].Arms), "history": len(h.Tried), "worth": len(h.Lines)} {
		var n int
		b.Eval(t, fmt.Sprintf(`(() => { const d = document.querySelector('[data-chart=%s]'); d.open = true; d.dispatchEvent(new Event('toggle'));
			const n = d.querySelectorAll('tbody tr').length; d.open = false; return n; })()`, id), &n)
		if n != want {
			t.Errorf("chart %s has %d rows, want %d", id, n, want)
		}
	}
	var drawn map[string]int
	b.Eval(t, `Object.fromEntries(Chart.getChart('history').data.datasets.map(s => [s.label, s.data.length]))`, &drawn)
	want := map[string]int{"screen": 1, "search": 1, "prune (on the floor: below it)": 3, "best so far, run again": 4, "best so far": 12, "infeasible": 1, "invalid": 1, "no-op: not run": 1}
	if !maps.Equal(drawn, want) {
		t.Errorf("the history draws %v, want %v", drawn, want)
	}
	var bars [][2]float64
	if b.Eval(t, `Chart.getChart('worth').data.datasets[0].data`, &bars); len(bars) != 2 || bars[0] != [2]float64{0.4, 1} {
		t.Errorf("the bars of what lines are worth are %v", bars)
	}
}

// checkSamples picks another run's samples: the charts beside the load are drawn anew, from that run.
func (b *browser) checkSamples(t *testing.T) {
	d := compareFixture()
	b.open(t, d)
	b.Run(t, chromedp.Click(`[data-chart="server-cpu"] summary`), chromedp.WaitVisible(`[data-chart="server-cpu"] table`))
	for _, run := range []int{0, 5} {
		var got string
		b.Eval(t, fmt.Sprintf(`sampled = document.getElementById('sampled'), sampled.value = '%d', sampled.dispatchEvent(new Event('change')),
			document.querySelector('[data-chart="server-cpu"] tbody tr:nth-child(4) td').textContent`, run), &got)
		if want := number(d.Trials[run].Samples[3].Values["server.cpu_cores"]); got != want {
			t.Errorf("run %d used %s cores in its fourth second, want %s", run, got, want)
		}
	}
}
