package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"david/internal/result"
)

// TestPageForItsReader: what somebody who opens a report looks for first, on a screen of any width.
func TestPageForItsReader(t *testing.T) {
	b := newBrowser(t)
	noisy := compareFixture()
	for i := range noisy.Trials { // a noise floor beyond 1, whose band would begin below a ratio of 0
		if noisy.Trials[i].Twin {
			noisy.Trials[i].TPS *= float64(1 + 7*(i%3))
		}
	}
	for name, d := range map[string]Data{"phases": phasesFixture(), "priced": pricedFixture(), "noisy": noisy} {
		t.Run(name, func(t *testing.T) {
			b.open(t, d)
			b.checkContents(t)
			b.checkShown(t, d)
			b.checkFirstScreen(t, d)
			for _, width := range []int64{390, 1400} {
				b.Run(t, chromedp.EmulateViewport(width, 900))
				b.checkIdentifiers(t, width)
				b.checkAxes(t)
			}
		})
	}
}

// checkContents: the links at the top are the page's sections.
func (b *browser) checkContents(t *testing.T) {
	t.Helper()
	var links, sections []string
	b.Eval(t, `[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href') + ' ' + a.textContent)`, &links)
	b.Eval(t, `[...document.querySelectorAll('main > section')].map(s => '#' + s.id + ' ' + s.querySelector('h2').textContent)`, &sections)
	if len(sections) < 5 || !slices.Equal(links, sections) {
		t.Errorf("the contents are %q, the sections %q", links, sections)
	}
}

// checkShown: of the winner and of the control a run is drawn from the start.
func (b *browser) checkShown(t *testing.T, d Data) {
	t.Helper()
	var arms []string
	b.Eval(t, `[...document.querySelectorAll('#pick input:checked')].map(i => JSON.parse(document.getElementById('data').textContent).trials[i.value].arm)`, &arms)
	for _, want := range []string{winnerOf(d, comparisons(d)), d.Experiment.Design.Control} {
		if want != "" && !slices.Contains(arms, want) {
			t.Errorf("runs of %q are drawn, and none of %s", arms, want)
		}
	}
}

// checkFirstScreen: what to do next stands before the numbers, a price beside the headline.
func (b *browser) checkFirstScreen(t *testing.T, d Data) {
	t.Helper()
	var next, cards string
	b.Eval(t, `document.querySelector('main section').innerText`, &next)
	b.Eval(t, `document.querySelector('.cards').textContent`, &cards)
	if !strings.Contains(next, "What to do next") || !strings.Contains(next, "david show "+d.Experiment.ID) || strings.Contains(next, "`") {
		t.Errorf("the page begins with %q", next)
	}
	if d.Price != nil && !strings.Contains(cards, "US$ a month per 1,000 transactions/s, "+d.Price.Shown()[0].Name+number(d.Price.Shown()[0].USDPer1000)) {
		t.Errorf("beside the headline stands %q, and no price", cards)
	}
}

// checkIdentifiers: no name is broken in its middle, and on a telephone no table has to be moved sideways.
func (b *browser) checkIdentifiers(t *testing.T, width int64) {
	t.Helper()
	var broken, wide []string
	b.Eval(t, `(() => {
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
		while (texts.nextNode()) {
			const node = texts.currentNode;
			if (!node.parentElement.closest('main, header') || node.parentElement.closest('script, style, pre')) continue;
			for (const m of node.data.matchAll(/[A-Za-z0-9]+(_[A-Za-z0-9]+)+/g)) {
				const range = document.createRange();
				range.setStart(node, m.index);
				range.setEnd(node, m.index + m[0].length);
				if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) found.push(m[0]);
			}
		}
		return found; })()`, &broken)
	if len(broken) > 0 {
		t.Errorf("at %d px these names are broken: %q", width, broken)
	}
	b.Eval(t, `[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute('aria-label'))`, &wide)
	if width == 390 && len(wide) > 0 {
		t.Errorf("at %d px these tables have to be moved sideways: %q", width, wide)
	}
}

// checkAxes: no axis of a ratio goes below zero.
func (b *browser) checkAxes(t *testing.T) {
	t.Helper()
	for id, axis := range map[string]string{"forest": "x", "race": "x", "worth": "x", "history": "y"} {
		var least float64
		b.Eval(t, fmt.Sprintf(`Chart.getChart(%q)?.scales.%s.min ?? 0`, id, axis), &least)
		if least < 0 {
			t.Errorf("the axis of %s begins at %g", id, least)
		}
	}
}

// TestUselessInterval: one arm of which nothing is known leaves the others' places on the axis.
func TestUselessInterval(t *testing.T) {
	b := newBrowser(t)
	d := compareFixture()
	d.Trials = slices.DeleteFunc(d.Trials, func(t result.Trial) bool { return t.Block > 3 })
	for i := range d.Trials { // in one block of three it does a tenth
		if d.Trials[i].Arm == "memory" && d.Trials[i].Block == 1 {
			d.Trials[i].TPS /= 10
		}
	}
	b.open(t, d)
	var most, widest float64
	b.Eval(t, `Chart.getChart('forest').scales.x.max`, &most)
	b.Eval(t, `Math.max(...JSON.parse(document.getElementById('data').textContent).comparisons[0].arms.map(a => a.interval?.[1] ?? 0))`, &widest)
	if widest < 20 || most > 6 {
		t.Errorf("the widest interval ends at %g, the axis at %g", widest, most)
	}
}

// TestShownRuns: the winner's and the control's runs are among the six that a chart begins with, however many arms
// ran before them.
func TestShownRuns(t *testing.T) {
	t.Parallel()
	d := Data{Experiment: result.Experiment{Design: result.Design{Control: "control", Tune: &result.TunePlan{}}}, Finish: &result.Finish{Best: "winner"}}
	for _, arm := range []string{"a", "b", "c", "d", "e", "f", "g", "control"} {
		d.Trials = append(d.Trials, result.Trial{Arm: arm, Phase: result.Race})
	}
	for _, arm := range []string{"rival", "control", "winner"} {
		d.Trials = append(d.Trials, result.Trial{Arm: arm, Phase: result.Confirm})
	}
	var shown []string
	for i, run := range runsOfArms(d, nil) {
		if run.Shown {
			shown = append(shown, string(d.Trials[i].Phase)+" "+d.Trials[i].Arm)
		}
	}
	if want := []string{"confirm rival", "confirm control", "confirm winner"}; !slices.Equal(shown, want) {
		t.Errorf("drawn from the start: %q, want %q", shown, want)
	}
}

// TestPoolSize: a pool is told as large as it is.
func TestPoolSize(t *testing.T) {
	t.Parallel()
	if got := size(17920 << 20); got != "17.5 GiB" {
		t.Errorf("17920M is told as %s", got)
	}
}

// TestNamesInTerminal: a table on a terminal breaks no name, where a table below the first has room for it.
func TestNamesInTerminal(t *testing.T) {
	t.Parallel()
	const name = "innodb_buffer_pool_dump_at_shutdown=OFF"
	long := table{"", []column{left("arm"), left("what it is"), left("settings")}, [][]string{{"winner", strings.Repeat("prose ", 8), "some words, and " + name + " at the end"}}}
	b := terminal{columns: columns}
	b.fit(long)
	if !strings.Contains(b.String(), name) {
		t.Errorf("%s is broken:\n%s", name, b.String())
	}
}
