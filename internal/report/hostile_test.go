package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/plain"
)

// TestHostileTexts has every text of a record be what would do something to a terminal, a page or a list, and writes the
// report as david does.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\u009b31m\u202e</script><img src=x onerror=alert(1)>\r\n# forged\n- forged |"
	for name, d := range map[string]Data{"bench": benchFixture(), "compare": compareFixture(), "live": liveFixture()} {
		e := &d.Experiment
		e.Title, e.Sysbench, e.Server.Version, e.Server.Comment, e.Host.CPU.Model, e.Notes = hostile, hostile, hostile, hostile, hostile, []string{hostile}
		for i := range d.Arms {
			d.Arms[i].Title, d.Arms[i].Changes = hostile, []mycnf.Setting{{Name: "init_connect", Value: hostile, Reason: hostile, Source: hostile}}
		}
		for i := range d.Trials {
			for j := range d.Trials[i].Gates {
				d.Trials[i].Gates[j].Detail, d.Trials[i].Gates[j].OK = hostile, i%2 == 0
			}
		}
		d.Cnf = "# " + hostile
		if d.Live != nil {
			d.Live.Ended, d.Live.Notes, d.Live.Hardware, d.Live.Run.Sight.Notes, d.Live.Run.Steps[2].Why = hostile, []string{hostile}, []string{hostile}, []string{hostile}, hostile
			d.Live.Steps[0].Changes[0].Reason, d.Live.Steps[3].Name, d.Live.Advice[0].Name, d.Live.Advice[0].Value = hostile, hostile, hostile, hostile
		}
		for form, write := range map[string]func(*bytes.Buffer) error{
			"text": func(b *bytes.Buffer) error { return Text(plain.NewWriter(b), d) }, "md": func(b *bytes.Buffer) error { return Markdown(plain.NewWriter(b), d) },
			"html": func(b *bytes.Buffer) error { return HTML(plain.NewWriter(b), d) }, "json": func(b *bytes.Buffer) error { return JSON(plain.NewWriter(b), d) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			got := b.String()
			if plain.Text(got) != got || strings.ContainsAny(got, "\x1b\r") {
				t.Errorf("%s as %s holds control characters", name, form)
			}
			if form == "html" && (strings.Contains(got, "<img src=x") || strings.Contains(got, "</script><img")) {
				t.Errorf("%s: the page has an element of another's", name)
			}
			for line := range strings.Lines(got) {
				if form == "md" && (strings.HasPrefix(line, "# forged") || strings.HasPrefix(line, "- forged")) {
					t.Errorf("%s as %s has the line %s", name, form, line)
				}
			}
			if form != "json" {
				continue
			}
			var doc document
			if err := json.Unmarshal(b.Bytes(), &doc); err != nil || doc.Experiment.Title != hostile || len(d.Trials) > 0 && !reflect.DeepEqual(doc.Trials[0].Gates, d.Trials[0].Gates) {
				t.Errorf("%s as JSON: %v, title %q", name, err, doc.Experiment.Title)
			}
		}
	}
}

// TestPageIsNotChanged sees that what david itself puts on a page passes the writer as it is: its policy names the hashes.
func TestPageIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"page.html": pageTemplate, "page.css": pageStyle, "page.js": pageScript, "chart.umd.js": chartScript} {
		if plain.Text(text) != text {
			t.Errorf("%s holds control characters", name)
		}
	}
}

// TestRowsStayRows sets a table with ends of lines in its cells.
func TestRowsStayRows(t *testing.T) {
	t.Parallel()
	tab := pairs("a table", []string{"one\nforged", "1\r\n"}, []string{"two\u2028forged", "2"})
	var text, md bytes.Buffer
	tab.text(&text)
	tab.markdown(&md)
	if n := bytes.Count(text.Bytes(), []byte("\n")); n != 3 {
		t.Errorf("%d lines of text:\n%s", n, text.Bytes())
	}
	if n := strings.Count(strings.TrimSpace(md.String()), "\n"); n != 3 {
		t.Errorf("%d ends of lines in Markdown:\n%s", n, md.Bytes())
	}
}
