package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"

	"david/internal/plan"
	"david/internal/price"
)

// planned is a plan for a machine, a zone and a minute.
func planned(t *testing.T) plan.Plan {
	t.Helper()
	c, err := price.Default()
	if err != nil {
		t.Fatal(err)
	}
	none, minute := 0.0, 60.0
	p, err := plan.New(c, plan.Request{Data: 200 << 30, TPS: 100, Queries: 20, Writes: 0.2, People: 1, RPO: &none, RTO: &minute, Survive: plan.Zone, On: []string{"EC2", "RDS"},
		Today: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	p.Turns = p.Tornado(c)
	return p
}

// Every form of a plan has the decision first, and the same figures, rules and sources.
func TestPlanForms(t *testing.T) {
	t.Parallel()
	p := planned(t)
	for name, write := range map[string]func(io.Writer, plan.Plan) error{"html": PlanHTML, "markdown": PlanMarkdown} {
		var b bytes.Buffer
		if err := write(&b, p); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\\[", "[", "\\]", "]", "\\_", "_", "&#39;", "'").Replace(b.String())
		for _, want := range []string{"Group Replication (InnoDB Cluster)", "801.92", "28,869.12", "--rto 60 s", "managed-ha-machine", "between zones, GB", "semisync-machine", "AFTER_SYNC", "MySQL High Availability at GitHub",
			"old prices", "turns over at", "cpu-per-transaction", "not measured", "-- dba create-cluster db"} {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if first := strings.Index(text, "801.92"); first < 0 || first > strings.Index(text, "The bill") {
			t.Errorf("%s: the decision is not first", name)
		}
	}
}

// TestPlanText: the decision is first, and no line is wider than a terminal but a command, which is there
// to be copied.
func TestPlanText(t *testing.T) {
	t.Parallel()
	p := planned(t)
	var b bytes.Buffer
	if err := PlanText(&b, p, true); err != nil {
		t.Fatal(err)
	}
	text, commands := b.String(), 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if d, _ := p.Decision(); slices.ContainsFunc(d.Commands, func(c string) bool {
			command, _, _ := strings.Cut(c, "   # ")
			return command == strings.TrimSpace(line)
		}) {
			commands++
			continue
		}
		if utf8.RuneCountInString(line) > columns {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	squeezed := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"managed MySQL, two zones (US$979.68", "[managed-ha-machine]", "total 801.92", "reads-per-transaction 23.1 444.03", "the rules: [single-machine] the volume outlives the machine"} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if commands == 0 || !strings.HasPrefix(text, "decision: Group Replication") {
		t.Errorf("%d commands in\n%s", commands, text)
	}
}

// TestPlanPage opens the page in a browser: its policy is kept, nothing else is asked for, the tornado has
// its bars, and no table hides its last column.
func TestPlanPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := PlanHTML(&b, planned(t)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	w := newBrowser(t)
	w.Run(t, chromedp.EmulateViewport(1200, 900), chromedp.Navigate("file://"+file))
	var bars int
	var wide bool
	w.Eval(t, `document.querySelectorAll("svg rect").length`, &bars)
	w.Eval(t, `document.querySelector(".scroll").scrollWidth > document.querySelector(".scroll").clientWidth + 1`, &wide)
	w.Accessible(t)
	complaints, requests := w.Heard()
	if bars < 8 || wide || len(complaints) > 0 || len(requests) > 1 {
		t.Errorf("%d bars, too wide: %v, %q, %q", bars, wide, complaints, requests)
	}
}
