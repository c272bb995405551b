package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// liveReport is what a test reads of a live tune's JSON document.
type liveReport struct {
	Headline string
	Live     struct {
		Run     *result.LiveOutcome
		Changes []report.ChangedVariable
		Judged  []struct {
			Name, State, What, Why string
			Before                 float64 `json:"before_ms"`
			After                  float64 `json:"after_ms"`
			Ratio                  float64
			Interval               *stats.Interval
		}
	}
}

// reportAgrees looks a live tune up in every form there is: all of them tell the numbers that the run itself told.
func (a at) reportAgrees(t *testing.T, id string, run *result.LiveOutcome, verdict stats.Verdict) {
	t.Helper()
	shown := func(args ...string) string {
		t.Helper()
		out, errOut, code := a.david(t, args...)
		if code != exitDone {
			t.Fatalf("%q: exit code %d\n%s", args, code, errOut)
		}
		return out
	}
	var doc liveReport
	if err := json.Unmarshal([]byte(shown("report", id, "--format", "json")), &doc); err != nil {
		t.Fatal(err)
	}
	if run != nil && !reflect.DeepEqual(doc.Live.Run, run) {
		t.Errorf("on record is %+v, told was %+v", doc.Live.Run, run)
	}
	if len(doc.Live.Judged) == 0 || doc.Live.Judged[0].What == "" || len(doc.Live.Changes) == 0 {
		t.Fatalf("no step was judged: %+v", doc)
	}
	doc.agreesCSV(t, shown("report", id, "--format", "csv"))
	all := shown("show", id, "-v")
	fits(t, all)
	doc.agreesText(t, "show -v", all)
	doc.agreesText(t, "md", strings.NewReplacer(`\`, "", "|", " ").Replace(shown("report", id, "--format", "md")))
	doc.agreesText(t, "html", html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(shown("report", id, "--format", "html"), " ")))

	listed := inList(t, shown("list", "--json"), id)
	first := shown("show", id)
	fits(t, first)
	found, _, _ := strings.Cut(listed.Why, ":")
	if flat := strings.Join(strings.Fields(first), " "); listed.Verdict != verdict || found == "" || !strings.HasPrefix(flat, found) || !strings.HasPrefix(doc.Headline, found) {
		t.Errorf("the list has %s, want %s, and %q; show has\n%s\nand the document %q", listed.Verdict, verdict, listed.Why, first, doc.Headline)
	}
	if n := len(firstScreen(t, first)); n != 5 {
		t.Errorf("%d sentences:\n%s", n, first)
	}
}

// agreesCSV holds the lines of the CSV against the document, to the last digit.
func (doc liveReport) agreesCSV(t *testing.T, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(doc.Live.Judged)+1 {
		t.Fatalf("%d lines of %d steps, %v", len(rows), len(doc.Live.Judged), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for i, j := range doc.Live.Judged {
		want := map[string]string{"step": j.Name, "state": j.State, "latency": j.What, "why": j.Why}
		numbers := map[string]float64{"before_ms": j.Before, "after_ms": j.After, "ratio": j.Ratio}
		if j.Interval != nil {
			numbers["ratio_low"], numbers["ratio_high"] = j.Interval[0], j.Interval[1]
		}
		for name, text := range want {
			if got := rows[i+1][column[name]]; got != text {
				t.Errorf("csv, %s of %s: %q, want %q", name, j.Name, got, text)
			}
		}
		for name, n := range numbers {
			if got := rows[i+1][column[name]]; n != 0 && got != strconv.FormatFloat(n, 'g', -1, 64) {
				t.Errorf("csv, %s of %s: %q, want %v", name, j.Name, got, n)
			}
		}
	}
}

// agreesText holds the table of the steps against the document, and wants each variable with what it was set to.
func (doc liveReport) agreesText(t *testing.T, form, text string) {
	t.Helper()
	text = regexp.MustCompile(`([0-9]),([0-9]{3})`).ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1$2")
	for _, j := range doc.Live.Judged {
		row := []string{j.Name, "-", "-", "-", "-", j.State}
		if j.What != "" {
			row[1], row[2], row[3] = inMs(j.Before), inMs(j.After), fmt.Sprintf("%.2fx", j.Ratio)
		}
		if j.Interval != nil {
			row[4] = fmt.Sprintf("[%.2f, %.2f]", j.Interval[0], j.Interval[1])
		}
		if want := strings.Join(row, " "); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", form, want, text)
		}
	}
	for _, c := range doc.Live.Changes {
		if !strings.Contains(text, " "+c.Name+" ") {
			t.Errorf("%s: no %s in\n%s", form, c.Name, text)
		}
	}
}

// inMs is a latency as a report writes it.
func inMs(ms float64) string {
	if ms < 1 {
		return fmt.Sprintf("%.3f", ms)
	}
	return fmt.Sprintf("%.2f", ms)
}

// inList is an experiment in a list.
func inList(t *testing.T, text, id string) listed {
	t.Helper()
	var doc listDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, l := range doc.Experiments {
		if l.ID == id {
			return l
		}
	}
	t.Fatalf("no %s in %s", id, text)
	return listed{}
}
