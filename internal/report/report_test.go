package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"david/internal/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// within80 fails where a line is wider than a terminal, but for a path or a URL alone.
func within80(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > 80 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if strings.HasSuffix(name, ".txt") {
		within80(t, string(got))
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Split(string(want), "\n")
	for i, line := range strings.Split(string(got), "\n") {
		if i >= len(old) || line != old[i] {
			t.Fatalf("%s differs from line %d on; go test -update writes it anew. Got:\n%.300s", path, i+1, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has more lines than it should", path)
	}
}

func render(t testing.TB, write func(io.Writer, Data) error, d Data) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	fixtures := map[string]Data{"bench": benchFixture(), "compare": compareFixture(), "slo": sloFixture(), "phases": phasesFixture()}
	for name, d := range fixtures {
		golden(t, name+".txt", render(t, Text, d))
		golden(t, name+".brief.txt", render(t, func(w io.Writer, d Data) error { return Brief(w, d, "a folder/{my.cnf,report.html}") }, d))
		golden(t, name+".md", render(t, Markdown, d))
		golden(t, name+".json", render(t, JSON, thinned(d)))
	}
}

// thinned keeps the golden JSON readable: three points and buckets a run.
func thinned(d Data) Data {
	d.Trials = append([]result.Trial{}, d.Trials...)
	for i := range d.Trials {
		d.Trials[i].Points, d.Trials[i].Histogram = d.Trials[i].Points[:3], d.Trials[i].Histogram[:3]
		d.Trials[i].Samples = d.Trials[i].Samples[:min(2, len(d.Trials[i].Samples))]
	}
	return d
}

func TestJSONHoldsTheWholeStore(t *testing.T) {
	d := benchFixture()
	b := render(t, JSON, d)
	if bytes.Count(b, []byte("\n")) != 1 {
		t.Error("more than one line")
	}
	var doc document
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(doc.Trials, d.Trials) || !reflect.DeepEqual(doc.Experiment, d.Experiment) || !reflect.DeepEqual(doc.Finish, d.Finish) {
		t.Error("what was read back differs")
	}
	if doc.Schema != 1 || len(doc.Arms) != len(d.Arms) {
		t.Errorf("schema %d, %d arms", doc.Schema, len(doc.Arms))
	}
}

func TestJSONOfNothingHasEmptyLists(t *testing.T) {
	b := render(t, JSON, Data{Experiment: result.Experiment{Kind: "bench"}})
	for _, want := range []string{`"trials":[]`, `"arms":[]`, `"finish":null`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestHeadline(t *testing.T) {
	const most = "716.23 transactions/s, p95 35.59 ms, with 16 threads, the most of 3 workloads (2 runs, 711.50 to 721.00 transactions/s, no interval)"
	cut := benchFixture()
	cut.Finish = nil
	invalid := benchFixture()
	invalid.Trials = invalid.Trials[:1]
	invalid.Trials[0].Gates = []result.Gate{{Name: "row counts", Detail: "999 of 1000"}}
	unsafe := benchFixture()
	unsafe.Trials = unsafe.Trials[:1]
	unsafe.Trials[0].Unsafe = []string{"sync_binlog=0"}
	stalled := Data{Experiment: result.Experiment{Kind: "bench"}, Finish: &result.Finish{}}
	for want, d := range map[string]Data{
		most: benchFixture(),
		most + "; interrupted: only what was measured until then":                                                        cut,
		"No result: no run is valid (row counts: 999 of 1000)":                                                           invalid,
		"190.50 transactions/s, p95 8.43 ms, with 1 thread (1 run, no interval); unsafe: measured without sync_binlog=0": unsafe,
		"No result: no run is valid": stalled,
	} {
		if got := Headline(d); got != want {
			t.Errorf("headline is %q\n            want %q", got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for got, want := range map[string]string{
		number(2244.84):    "2,244.84",
		number(-1234567.5): "-1,234,567.50",
		number(0):          "0.00",
		round(999.6):       "1,000",
		times(0):           "-",
		times(1.523):       "1.52x",
		size(140 << 30):    "140 GiB",
		size(1536):         "1.5 KiB",
		sized("134217728") + sized("0") + sized("ON"):                    "128 MiB0ON",
		legible("17920M") + legible("1") + legible("ON") + legible("4G"): "17.5 GiB1ON4 GiB",
		duration(318.4):                                     "5.3 min",
		plural(1, "run") + plural(2000, "run"):              "1 run2,000 runs",
		command([]string{"david", "", "it's", "--set=a=b"}): `david '' 'it'\''s' --set=a=b`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	for name, d := range map[string]Data{"tune": hostile(), "compare": hostileCompare()} {
		html := string(render(t, HTML, d))
		if strings.Contains(html, "<img") || strings.Count(html, "</script>") != 3 {
			t.Errorf("%s: a value broke out of the page", name)
		}
		if md := string(render(t, Markdown, d)); strings.Contains(withoutCode(md), "<img") {
			t.Errorf("%s: a value broke out of the Markdown", name)
		}
	}
}

// withoutCode drops the lines of indented code, where nothing is HTML.
func withoutCode(md string) string {
	var b strings.Builder
	for line := range strings.Lines(md) {
		if !strings.HasPrefix(line, "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestFailedWritesAreErrors(t *testing.T) {
	for name, write := range map[string]func(io.Writer, Data) error{"text": Text, "markdown": Markdown, "json": JSON, "html": HTML} {
		if err := write(fullDisk{}, benchFixture()); err == nil || !strings.Contains(err.Error(), "cannot write the report") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestChartLibraryIsTheOneNamed(t *testing.T) {
	readme, err := os.ReadFile("assets/README.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(chartScript))
	if !bytes.Contains(readme, []byte(hex.EncodeToString(sum[:]))) {
		t.Errorf("assets/README.md does not name the sum %x", sum)
	}
}

// BenchmarkReport1000Trials reads 1,000 trials from a store and makes every form of their report.
func BenchmarkReport1000Trials(b *testing.B) {
	dir := thousand(b)
	for name, write := range map[string]func(io.Writer, Data) error{"text": Text, "markdown": Markdown, "json": JSON, "html": HTML} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := write(io.Discard, load(b, dir)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func thousand(b *testing.B) string {
	d := benchFixture()
	s, err := result.Create(filepath.Join(b.TempDir(), d.Experiment.ID), d.Experiment)
	if err != nil {
		b.Fatal(err)
	}
	store(b, s, d)
	for i := range 1000 - len(d.Trials) {
		t := d.Trials[i%len(d.Trials)]
		t.ID, t.Block = fmt.Sprintf("more%d", i), 2+i
		if err := s.AppendTrial(t); err != nil {
			b.Fatal(err)
		}
	}
	return s.Dir()
}

func store(t testing.TB, s *result.Store, d Data) {
	t.Helper()
	for _, a := range d.Arms {
		if err := s.PutArm(a); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range d.Trials {
		if err := s.AppendTrial(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(*d.Finish); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, dir string) Data {
	t.Helper()
	s, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	arms, err1 := s.Arms()
	trials, err2 := s.Trials()
	finish, _, err3 := s.Finished()
	full, err4 := s.WithPoints(trials)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return Data{Experiment: s.Experiment(), Arms: arms, Trials: full, Finish: &finish}
}

func TestReportOfAStoreIsThatOfItsValues(t *testing.T) {
	d := benchFixture()
	s, err := result.Create(filepath.Join(t.TempDir(), d.Experiment.ID), d.Experiment)
	if err != nil {
		t.Fatal(err)
	}
	store(t, s, d)
	d.Cnf = ""
	if !bytes.Equal(render(t, JSON, load(t, s.Dir())), render(t, JSON, d)) {
		t.Error("the store changed the report")
	}
}

// The title of a spec stands before everything else, and one is not made up.
func TestTitleComesFirst(t *testing.T) {
	d := compareFixture()
	for _, render := range []func(io.Writer, Data) error{Text, Markdown} {
		var b bytes.Buffer
		d.Experiment.Title = "sizes of the pool"
		if err := render(&b, d); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(b.String(), "# "); !strings.HasPrefix(got, "sizes of the pool\n") || !strings.Contains(got[:80], Headline(d)[:20]) {
			t.Errorf("%.200s", got)
		}
	}
}

// Trials that an interruption made worthless are named in every form.
func TestSetAsideIsSaid(t *testing.T) {
	d := compareFixture()
	d.Replaced = 3
	for _, render := range []func(io.Writer, Data) error{Text, Markdown, HTML} {
		var b bytes.Buffer
		if err := render(&b, d); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "3 trials of blocks that were cut short were set aside, their blocks run again") {
			t.Errorf("%.3000s", got)
		}
	}
}

// TestBriefSharedProof: what the winner lost and the control lost as well was not proved, and is not called so.
func TestBriefSharedProof(t *testing.T) {
	d := phasesFixture()
	for i := range d.Proofs {
		if p := &d.Proofs[i]; p.Arm == d.Finish.Best {
			p.Crash.Proved, p.Crash.Verdict, p.Shared = false, "not proved", "2 of 9 cuts of the power were not survived, of the control's 3 of 9"
		}
	}
	text := strings.Join(strings.Fields(string(render(t, func(w io.Writer, d Data) error { return Brief(w, d, "") }, d))), " ")
	if !strings.Contains(text, "proved: memory, durability lock; NOT proved: crashes: 2 of 9 cuts") {
		t.Error(text)
	}
	if got := safety(d); got != "not proved safe from crashes" {
		t.Error(got)
	}
	d.Experiment.Design.Tune.Unlocked = []string{"sync_binlog"}
	if got := provedSafe(d); !strings.HasPrefix(got, "proved: memory; NOT") {
		t.Error(got)
	}
}

// TestProofTable: what is not proved is not called so, and a lock that reads back otherwise is not the control's.
func TestProofTable(t *testing.T) {
	d := Data{Proofs: []result.Proof{{Arm: "a", Shared: "as often", Crash: &result.CrashTest{}}}}
	said := strings.Join(proofSaid(d), "\n")
	if !strings.Contains(said, "crash (a), not proved: ") || !strings.Contains(said, "durability lock (a), failed: read back from the server that was killed and recovered: not as the control's") {
		t.Error(said)
	}
}
