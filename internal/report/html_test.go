package report

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"david/internal/result"
	"david/internal/stats"
)

// findChromium skips the test where there is no browser.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium found: `make setup` installs it")
	return ""
}

// browser describes one headless Chromium and what its page complained about or asked for.
type browser struct {
	ctx        context.Context
	mu         sync.Mutex // guards what follows: events come on another goroutine
	complaints []string
	requests   []string
}

// newBrowser starts a browser whose files, too, live in a folder of the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, home := findChromium(t), t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("TMPDIR="+home, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	parent, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for all pages, on a busy machine too
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(parent, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	t.Cleanup(func() { // before the others: waits until the browser has ended and let go of its folder
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
	})
	b := &browser{ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(t, network.Enable(), runtime.Enable(), log.Enable())
	return b
}

// listen collects errors of the console, exceptions, and everything that is asked for besides the page
// itself.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %s", e.Type, arg.Value))
		}
	case *log.EventEntryAdded: // what the browser itself says: a breach of the page's policy, a file not found
		b.complaints = append(b.complaints, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval evaluates JavaScript on the page into v.
func (b *browser) eval(t *testing.T, js string, v any) {
	t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(js, v)); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
}

// open opens the report of d from a file.
func (b *browser) open(t *testing.T, d Data) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, render(t, HTML, d), 0o644); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.complaints, b.requests = nil, nil
	b.mu.Unlock()
	b.run(t, chromedp.Navigate("file://"+file), chromedp.WaitReady("footer"))
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		t.Errorf("the console says %q", b.complaints)
	}
	for _, url := range b.requests {
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
			if len(d.Trials) > 0 { // drawn anew at the last width, with the next frame
				b.run(t, chromedp.Poll(inked+`.every(c => c.pixels >= 1000)`, nil, chromedp.WithPollingTimeout(10*time.Second)))
			}
		})
	}
	t.Run("dark", b.checkDark)
	t.Run("choice", b.checkChoice)
	t.Run("print", b.checkPrint)
	t.Run("samples", b.checkSamples)
}

func (b *browser) checkHeadline(t *testing.T, d Data) {
	var got string
	if b.eval(t, `document.querySelector('h1').textContent`, &got); got != Headline(d) {
		t.Errorf("the headline is %q, want %q", got, Headline(d))
	}
}

// checkCells compares the first table of a section that is not a chart's, cell by cell.
func (b *browser) checkCells(t *testing.T, section string, want table) {
	t.Helper()
	var got [][]string
	b.eval(t, `[...document.querySelector('`+section+` .scroll:not(.alt .scroll)').querySelectorAll('tbody tr')].
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
	b.eval(t, `(() => { const d = document.querySelector('[data-chart=price]'); d.open = true; d.dispatchEvent(new Event('toggle'));
		const rows = [...d.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent)); d.open = false; return rows; })()`, &rows)
	if want := len(d.Price.Shown()) + len(d.Price.Line); len(rows) != want {
		t.Fatalf("%d rows, want %d: %q", len(rows), want, rows)
	}
	if got, want := strings.Join(rows[0], " "), "control 66.00 "+number(d.Price.Shown()[0].TPS)+" measured"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// checkDocument compares the numbers that the charts are drawn from with the store's.
func (b *browser) checkDocument(t *testing.T, d Data) {
	var got []struct {
		TPS    float64        `json:"tps"`
		Points []result.Point `json:"points"`
	}
	b.eval(t, `JSON.parse(document.getElementById('data').textContent).trials`, &got)
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
	b.eval(t, inked, &got)
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
	for _, width := range []int64{360, 390, 768, 1280} {
		var scroll int64
		b.run(t, chromedp.EmulateViewport(width, 800))
		b.eval(t, `document.documentElement.scrollWidth`, &scroll)
		if scroll > width {
			var culprits string
			b.eval(t, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll,pre')).
				map(e => e.tagName + '#' + e.id).join(' ')`, &culprits)
			t.Errorf("at %d px the page is %d px wide: %s", width, scroll, culprits)
		}
	}
}

// checkDark asks for dark mode on an open page: the paper is dark, and the charts are drawn again in other
// colours.
func (b *browser) checkDark(t *testing.T) {
	b.open(t, benchFixture())
	const look = `[getComputedStyle(document.body).backgroundColor, document.getElementById('tps').toDataURL()]`
	var light, dark []string
	b.eval(t, look, &light)
	mode := func(value string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
	}
	b.run(t, mode("dark"))
	b.eval(t, fmt.Sprintf(`window.light = %q`, light[1]), nil)
	b.run(t, chromedp.Poll(`document.getElementById('tps').toDataURL() !== light`, nil)) // drawn anew with the next frame
	b.eval(t, look, &dark)
	if light[0] != "rgb(255, 255, 255)" || dark[0] == light[0] {
		t.Errorf("paper %s, in the dark %s", light[0], dark[0])
	}
	b.checkCanvases(t)
	b.checkWidths(t)
	b.run(t, mode("light"))
}

// checkChoice takes a run out, and reads the chart's numbers as a table.
func (b *browser) checkChoice(t *testing.T) {
	d := benchFixture()
	b.open(t, d)
	last := len(d.Trials) - 1
	var heads []string
	b.run(t, chromedp.Click(`[data-chart="tps"] summary`), chromedp.WaitVisible(`[data-chart="tps"] table`), chromedp.Click(fmt.Sprintf(`#pick input[value="%d"]`, last)))
	b.eval(t, `[...document.querySelectorAll('[data-chart="tps"] thead th')].map(e => e.textContent)`, &heads)
	if want := append([]string{"second"}, trialLabels(d)[:last]...); !slices.Equal(heads, want) {
		t.Errorf("the table shows %q, want %q", heads, want)
	}
	var cells []string
	b.eval(t, `[...[...document.querySelectorAll('[data-chart="tps"] tbody tr')][9].cells].map(e => e.textContent)`, &cells)
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
	b.run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}))
	b.eval(t, paper, &before)
	b.eval(t, `dispatchEvent(new Event('beforeprint')), `+paper, &during)
	b.checkCanvases(t)
	b.eval(t, `dispatchEvent(new Event('afterprint')), `+paper, &after)
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
	if b.eval(t, `document.querySelector('#compare-section h2').nextElementSibling.textContent`, &text); !strings.Contains(text, floor(c)) {
		t.Errorf("the comparison begins with %q, want %q", text, floor(c))
	}
	for _, id := range []string{"forest", "scatter", "latency", "server-cpu", "device-iops", "checkpoint-age"} {
		if d.Experiment.Design.Tune != nil && len(id) > len("scatter") { // its fixture was not sampled
			continue
		}
		var there bool
		if b.eval(t, fmt.Sprintf(`document.getElementById(%q) !== null`, id), &there); !there {
			t.Errorf("no chart %s", id)
		}
	}
	var bars []*stats.Interval
	b.eval(t, `Chart.getChart('forest').data.datasets[0].data`, &bars)
	for i, a := range c.Arms {
		drawn := a.Ratio > 0 && a.Verdict != stats.IsControl
		if (bars[i] != nil) != drawn || drawn && *bars[i] != a.Interval {
			t.Errorf("the forest plot draws %s as %v, want %v", a.Name, bars[i], a.Interval)
		}
	}
	const rows = `document.querySelector('details[data-chart="forest"]').open = true,
		new Promise(done => setTimeout(() => done(document.querySelectorAll('[data-chart="forest"] tbody tr').length), 100))`
	var n int
	b.run(t, chromedp.Evaluate(rows, &n, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
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
		b.eval(t, fmt.Sprintf(`(() => { const d = document.querySelector('[data-chart=%s]'); d.open = true; d.dispatchEvent(new Event('toggle'));
			const n = d.querySelectorAll('tbody tr').length; d.open = false; return n; })()`, id), &n)
		if n != want {
			t.Errorf("chart %s has %d rows, want %d", id, n, want)
		}
	}
	var drawn map[string]int
	b.eval(t, `Object.fromEntries(Chart.getChart('history').data.datasets.map(s => [s.label, s.data.length]))`, &drawn)
	want := map[string]int{"screen": 1, "search": 1, "prune (on the floor: below it)": 3, "best so far, run again": 4, "best so far": 12, "infeasible": 1, "invalid": 1, "no-op: not run": 1}
	if !maps.Equal(drawn, want) {
		t.Errorf("the history draws %v, want %v", drawn, want)
	}
	var bars [][2]float64
	if b.eval(t, `Chart.getChart('worth').data.datasets[0].data`, &bars); len(bars) != 2 || bars[0] != [2]float64{0.4, 1} {
		t.Errorf("the bars of what lines are worth are %v", bars)
	}
}

// checkSamples picks another run's samples: the charts beside the load are drawn anew, from that run.
func (b *browser) checkSamples(t *testing.T) {
	d := compareFixture()
	b.open(t, d)
	b.run(t, chromedp.Click(`[data-chart="server-cpu"] summary`), chromedp.WaitVisible(`[data-chart="server-cpu"] table`))
	for _, run := range []int{0, 5} {
		var got string
		b.eval(t, fmt.Sprintf(`sampled = document.getElementById('sampled'), sampled.value = '%d', sampled.dispatchEvent(new Event('change')),
			document.querySelector('[data-chart="server-cpu"] tbody tr:nth-child(4) td').textContent`, run), &got)
		if want := number(d.Trials[run].Samples[3].Values["server.cpu_cores"]); got != want {
			t.Errorf("run %d used %s cores in its fourth second, want %s", run, got, want)
		}
	}
}
