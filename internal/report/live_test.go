package report

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// liveFixture is a tune of a running server: two steps are kept, the third is set back, the fourth is not begun.
func liveFixture() Data {
	e := fixtureExperiment(result.KindLive)
	e.Workloads, e.Sysbench, e.Target, e.Server = []result.Workload{}, "", result.TargetRemote, result.Server{Flavour: mycnf.MySQL, Version: "9.7.4", Address: "db:3306"}
	e.Argv = []string{"david", "tune", "--dsn", "app@tcp(db:3306)/", "--apply"}
	e.Notes = []string{"the machine described is the client's", "the changes are in changes.jsonl; david rollback sets them back"}
	change := func(name, before, value, why string) result.LiveChange {
		return result.LiveChange{Setting: mycnf.Setting{Name: name, Value: value, Group: "flush", Reason: why, Source: "MySQL manual, " + name}, Before: before}
	}
	random := rand.New(rand.NewPCG(21, 21))
	window := func(after time.Duration, seconds, rate, ms float64) *result.LiveWindow {
		p95, mean := ms, ms/4
		w := &result.LiveWindow{Began: e.Created.Add(after), Seconds: seconds, Statements: seconds * rate, Running: 3.2, P95: &p95, Mean: &mean}
		for i := range 30 {
			now := cents(ms * (1 + 0.06*random.NormFloat64()))
			w.Looks = append(w.Looks, result.LiveLook{At: cents(seconds * float64(i+1) / 30), Rate: cents(rate * (1 + 0.04*random.NormFloat64())), Ms: &now})
			if i%3 == 2 {
				w.Parts = append(w.Parts, now)
			}
		}
		return w
	}
	return Data{
		Experiment: e,
		Live: &result.LiveTune{
			Schema: result.Schema,
			LivePlan: result.LivePlan{
				Steps: []result.LiveStep{
					{Name: "logging", Title: "what is logged", Changes: []result.LiveChange{change("general_log", "ON", "OFF", "it writes every statement")}},
					{Name: "flushing", Title: "writes to the disk", Changes: []result.LiveChange{change("innodb_io_capacity", "200", "1400", "30 % of what the disk does"), change("innodb_io_capacity_max", "2000", "2800", "twice innodb_io_capacity")}},
					{Name: "redo", Title: "the redo log", Changes: []result.LiveChange{change("innodb_redo_log_capacity", "104857600", "2G", "a quarter of the memory")}},
					{Name: "memory", Title: "the buffer pool", Changes: []result.LiveChange{change("innodb_buffer_pool_size", "134217728", "6G", "what leaves room for the rest")}},
				},
				Advice: []result.LiveChange{change("innodb_flush_method", "fsync", "O_DIRECT", "pages are cached once")},
				Decide: []result.LiveChange{change("sync_binlog", "0", "1", "what can be lost: transactions that were acknowledged")},
				Notes:  []string{"nothing of this was measured before"},
			},
			Hardware: []string{"4 CPUs", "16 GiB of memory"}, Watch: 60, MaxP95: 1.1,
			Run: &result.LiveOutcome{
				Sight:  result.LiveSight{P95: true, Mean: true, Errors: true, Notes: []string{"p95 of all statements of the server, from performance_schema's histogram; failed statements"}},
				Before: window(0, 60, 1210, 12.4),
				Steps: []result.LiveStepOutcome{
					{Name: "logging", Kept: true, Traffic: window(62*time.Second, 60, 1235, 11.8), Undone: false},
					{Name: "flushing", Kept: true, Traffic: window(124*time.Second, 60, 1300, 9.9)},
					{Name: "redo", Why: "the step made the traffic worse: p95 is 15.1 ms, 1.22x of the 12.4 ms before (1.1x is allowed)", Traffic: window(186*time.Second, 6, 1100, 15.1), Undone: true},
				},
			},
			Ended: "step redo was set back: the step made the traffic worse",
		},
		Changes: []ChangedVariable{
			{Step: "logging", Name: "general_log", Before: "ON", After: "OFF", Kept: true},
			{Step: "flushing", Name: "innodb_io_capacity", Before: "200", After: "1400", Kept: true},
			{Step: "flushing", Name: "innodb_io_capacity_max", Before: "2000", After: "2800", Kept: true},
			{Step: "redo", Name: "innodb_redo_log_capacity", Before: "104857600", After: "2147483648", Undone: true},
		},
		Finish: &result.Finish{Ended: e.Created.Add(200 * time.Second), WallSeconds: 200, MeasureSeconds: 186, Utilisation: 0.93},
		Cnf:    "# Set on the running server\n\n[mysqld]\ngeneral_log=OFF\ninnodb_io_capacity=1400\ninnodb_io_capacity_max=2800\n",
	}
}

func TestLiveGolden(t *testing.T) {
	d := liveFixture()
	golden(t, "live.txt", render(t, Text, d))
	golden(t, "live.brief.txt", render(t, func(w io.Writer, d Data) error { return Brief(w, d, "") }, d))
	golden(t, "live.md", render(t, Markdown, d))
	golden(t, "live.json", render(t, JSON, d))
	golden(t, "live.csv", render(t, CSV, d))
}

// TestLiveVerdicts: what a live tune came to, from its record as it is after this and that.
func TestLiveVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Data)
		verdict  stats.Verdict
		headline string
		next     string
	}{
		"kept in part": {func(*Data) {}, KeptPartly, "2 of 4 steps kept: p95 9.90 ms against 12.40 ms before, 0.82x", "has the 3 lines for its my.cnf"},
		"all kept": {func(d *Data) {
			d.Live.Steps, d.Live.Run.Steps, d.Changes, d.Live.Ended = d.Live.Steps[:2], d.Live.Run.Steps[:2], d.Changes[:3], ""
		}, Kept, "2 of 2 steps kept: p95", "david rollback"},
		"persisted": {func(d *Data) {
			for i := range d.Changes {
				d.Changes[i].Persisted = d.Changes[i].Kept
			}
		}, KeptPartly, "2 of 4 steps kept", "SET PERSIST included"},
		"rolled back": {func(d *Data) {
			for i := range d.Changes {
				d.Changes[i].Undone = true
			}
		}, RolledBack, "Set back: 2 steps kept, and rolled back since", "has every figure"},
		"the first step set back": {func(d *Data) {
			d.Live.Run.Steps, d.Changes = d.Live.Run.Steps[2:], d.Changes[3:]
		}, SetBack, "No step was kept; redo was set back: the step made the traffic worse", "has every figure"},
		"killed before a step was judged": {func(d *Data) {
			d.Live.Run.Steps, d.Finish, d.Changes[3].Undone = d.Live.Run.Steps[:2], nil, false
		}, NotSetBack, "NOT set back: innodb_redo_log_capacity have what david gave them", "david rollback"},
		"too little traffic": {func(d *Data) {
			d.Live.Run.Before, d.Live.Run.Steps, d.Changes = nil, nil, nil
			d.Live.Ended = "too little traffic: 3 statements ended in 600 s"
		}, Unchanged, "Nothing was changed: too little traffic: 3 statements", "has every figure"},
		"killed before anything": {func(d *Data) { d.Live.Run, d.Changes, d.Finish, d.Live.Ended = nil, nil, nil, "" }, Unchanged, "Nothing was changed; interrupted", "has every figure"},
		"an older record":        {func(d *Data) { d.Live = &result.LiveTune{} }, KeptPartly, "2 of 3 steps kept: latency was not seen", "david rollback"},
		"no latency in one":      {func(d *Data) { d.Live.Run.Steps[1].Traffic.P95, d.Live.Run.Steps[1].Traffic.Mean = nil, nil }, KeptPartly, "2 of 4 steps kept: latency was not seen", ""},
		"below a millisecond": {func(d *Data) {
			for _, w := range []*result.LiveWindow{d.Live.Run.Before, d.Live.Run.Steps[1].Traffic} {
				*w.P95 /= 100
			}
		}, KeptPartly, "2 of 4 steps kept: p95 0.099 ms against 0.124 ms before, 0.82x", ""},
		"few parts": {func(d *Data) { d.Live.Run.Before.Parts = d.Live.Run.Before.Parts[:2] }, KeptPartly, "2 of 4 steps kept: p95 9.90 ms against 12.40 ms before, 0.80x;", ""},
	} {
		d := liveFixture()
		c.change(&d)
		verdict, _ := LiveVerdict(d)
		if h := Headline(d); verdict != c.verdict || !strings.HasPrefix(h, c.headline) {
			t.Errorf("%s: %s, %q; want %s, %q", name, verdict, h, c.verdict, c.headline)
		}
		brief := strings.Join(strings.Fields(string(render(t, func(w io.Writer, d Data) error { return Brief(w, d, "") }, d))), " ")
		if _, next, _ := strings.Cut(brief, "next: "); !strings.Contains(next, c.next) {
			t.Errorf("%s: next: %q, want %q", name, next, c.next)
		}
		for form, write := range map[string]func(io.Writer, Data) error{"text": Text, "md": Markdown, "json": JSON, "csv": CSV, "html": HTML} {
			if got := render(t, write, d); len(got) < 100 {
				t.Errorf("%s as %s: %s", name, form, got)
			}
		}
	}
}

// TestLiveSettings: what a restart undoes becomes lines of a my.cnf, and nothing else does.
func TestLiveSettings(t *testing.T) {
	d := liveFixture()
	d.Changes[0].Persisted = true
	var got []string
	for _, s := range KeptSettings(d) {
		got = append(got, s.Name+"="+s.Value)
	}
	if want := "innodb_io_capacity=1400 innodb_io_capacity_max=2800"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// TestLiveFits: all that is shown of a live tune is within 80 columns, and no name is broken, however long names and values
// are.
func TestLiveFits(t *testing.T) {
	d := liveFixture()
	mode := "ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
	long := result.LiveChange{Setting: mycnf.Setting{Name: "performance_schema_events_statements_history_long_size", Value: "10000000", Reason: strings.Repeat("a reason that goes on ", 6), Source: "a manual"}, Before: "1000000"}
	d.Live.Decide = append(d.Live.Decide, result.LiveChange{Setting: mycnf.Setting{Name: "sql_mode", Value: "STRICT_TRANS_TABLES," + mode, Reason: "r", Source: "s"}, Before: mode})
	d.Live.Steps[1].Changes, d.Live.Advice = append(d.Live.Steps[1].Changes, long), append(d.Live.Advice, long)
	d.Changes = append(d.Changes, ChangedVariable{Step: "flushing", Name: long.Name, Before: long.Before, After: long.Value, Kept: true})
	d.Experiment.Server.Address = "/var/lib/mysql-of-the-second-instance/the-folder-of-its-socket/mysqld.sock"
	var cnf strings.Builder
	if err := mycnf.Render(&cnf, LiveCnfHead(d), KeptSettings(d)); err != nil {
		t.Fatal(err)
	}
	d.Cnf = cnf.String()
	for form, text := range map[string]string{"show -v": string(render(t, Text, d)), "show": string(render(t, func(w io.Writer, d Data) error { return Brief(w, d, "") }, d))} {
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%s: %d columns: %s", form, n, line)
			}
		}
		names := []string{"live-tune-20250102-150405", "mysqld.sock"}
		if form == "show -v" {
			names = append(names, long.Name, "\ninnodb_io_capacity_max=2800\n", "ERROR_FOR_DIVISION_BY_ZERO", "NO_ENGINE_SUBSTITUTION")
		}
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("%s: no %s in\n%s", form, name, text)
			}
		}
	}
}

// TestLivePage shows the page in a browser: its parts, its charts, its tables.
func TestLivePage(t *testing.T) {
	b, d := newBrowser(t), liveFixture()
	b.open(t, d)
	b.checkHeadline(t, d)
	b.checkContents(t)
	b.checkFirstScreen(t, d)
	steps := stepsView(d, d.judge())
	b.checkCells(t, "#phase-0-section", steps.Table)
	b.checkCanvases(t)
	var bars []*stats.Interval
	b.Eval(t, `Chart.getChart('steps').data.datasets[0].data`, &bars)
	judged := d.judge()
	if len(bars) != 3 || bars[0] == nil || *bars[0] != *judged[0].Interval {
		t.Errorf("the intervals drawn are %v", bars)
	}
	for id, want := range map[string]int{"steps": 3, "live-ms": 120, "live-rate": 120} {
		var n int
		b.Eval(t, fmt.Sprintf(`(() => { const d = document.querySelector('[data-chart="%s"]'); d.open = true; d.dispatchEvent(new Event('toggle'));
			const n = d.querySelectorAll('tbody tr').length; d.open = false; return n; })()`, id), &n)
		if n != want {
			t.Errorf("chart %s has %d rows, want %d", id, n, want)
		}
	}
	b.checkWidths(t)
	for _, width := range []int64{390, 1400} {
		b.Run(t, chromedp.EmulateViewport(width, 900))
		b.checkIdentifiers(t, width)
		b.Accessible(t)
	}
}
