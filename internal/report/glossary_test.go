package report

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"david/internal/result"
)

// TestWords: there are ten at most, and docs/glossary.md says of each what the report says of it.
func TestWords(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	page, html := string(b), string(render(t, HTML, benchFixture()))
	list := words()
	if len(list) > 10 || strings.Count(page, "\n| ") != len(list)+2 {
		t.Errorf("%d words, and a table of %d lines", len(list), strings.Count(page, "\n| "))
	}
	for _, w := range list {
		if !strings.Contains(page, "| "+w.Name+" | "+w.Means+" |\n") {
			t.Errorf("docs/glossary.md does not say what the report says of %q", w.Name)
		}
		if !strings.Contains(html, `<dt id="`+w.Anchor()+`">`+w.Name+"</dt>") {
			t.Errorf("the report does not explain %q", w.Name)
		}
	}
}

// wordLink is a link to one of david's words.
var wordLink = regexp.MustCompile(`<a class="word" href="#[a-z-]*">([^<]*)</a>`)

// slicedFixture is the fixture of a comparison, measured in slices on two starts.
func slicedFixture() Data {
	d := compareFixture()
	d.Experiment.Design.Slices = &result.Slices{Seconds: 5, Rounds: 3, Incarnations: 2}
	for i := range d.Trials {
		d.Trials[i].Incarnation = 1 + d.Trials[i].Block%2
	}
	return d
}

// TestWordsAreLinked: each of the words leads to what it means where a page uses it first, and once.
func TestWordsAreLinked(t *testing.T) {
	t.Parallel()
	all := string(render(t, HTML, compareFixture())) + string(render(t, HTML, slicedFixture()))
	for _, w := range words() {
		if n := strings.Count(all, `href="#`+w.Anchor()+`"`); n == 0 || n > 2 {
			t.Errorf("%q is linked %d times in two pages", w.Name, n)
		}
	}
	l := newLinker()
	if got := l.say("it does not start: 2 starts of <b>, trials"); got != `it does not start: 2 <a class="word" href="#word-start">starts</a> of &lt;b&gt;, <a class="word" href="#word-trial">trials</a>` {
		t.Error(got)
	}
	if got := l.say("a trial"); got != "a trial" {
		t.Error(got)
	}
}

// TestIdentifiersStayWhole: a table for a narrow terminal has another table below it before it breaks the name of a variable.
func TestIdentifiersStayWhole(t *testing.T) {
	t.Parallel()
	const name = "innodb_purge_rseg_truncate_frequency"
	list := table{"x", []column{left("arm"), left("what it is"), left("what it changed")}, nil}
	list = list.add("screen-instrumentation", "screen: logging and instrumentation", "it sets "+name+": 128 -> 64")
	for _, columns := range []int{80, 60} {
		b := terminal{columns: columns}
		b.fit(list)
		if !strings.Contains(b.String(), name) {
			t.Errorf("%d columns:\n%s", columns, b.String())
		}
	}
}

// TestDisturbedIsNotNeeded: of a line whose trials were disturbed nobody knows whether the server runs without it.
func TestDisturbedIsNotNeeded(t *testing.T) {
	t.Parallel()
	text := worthAltText([]lineWorth{{Lines: []string{"a"}}, {Lines: []string{"b"}, Why: "killed"}})
	if !strings.Contains(text, "a not measured: its trials were disturbed; b cannot be run without") {
		t.Error(text)
	}
}
