package joblog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"david/internal/result"
)

// record is a log with documents of several lines among other lines.
func record(t testing.TB) (docs []Document, lines []string) {
	t.Helper()
	trial := result.Trial{ID: "a", Arm: "pod"}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		trial.Points = append(trial.Points, result.Point{Second: i, TPS: r.Float64(), P95: r.Float64()})
	}
	docs = []Document{{Experiment: &result.Experiment{ID: "bench-1"}}, {Arm: &result.Arm{Name: "pod"}}, {Trial: &trial, Log: "sysbench 1.0\n"},
		{Finish: &result.Finish{Best: "x"}}, {End: true}}
	var b bytes.Buffer
	w := NewWriter(&b)
	for i, d := range docs {
		fmt.Fprintf(&b, "progress %d\n", i)
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	return docs, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func read(t *testing.T, r *Reader, lines []string) (got []Document) {
	t.Helper()
	for _, l := range lines {
		docs, err := r.Line(l)
		if err != nil {
			t.Fatalf("%.60s: %v", l, err)
		}
		got = append(got, docs...)
	}
	return got
}

func TestRelay(t *testing.T) {
	docs, lines := record(t)
	var r Reader
	if got := read(t, &r, lines); !reflect.DeepEqual(got, docs) || !r.Ended() {
		t.Errorf("%d documents of %d, ended %v", len(got), len(docs), r.Ended())
	}
	if got := read(t, &r, lines); len(got) != 0 {
		t.Errorf("a second pass gives %d documents again", len(got))
	}
	for _, l := range lines {
		if len(l) > 16<<10 {
			t.Errorf("a line of %d bytes", len(l))
		}
	}
}

// TestRelayInPieces reads a log that was cut in the middle, then all of it, and one whose lines came in
// another order.
func TestRelayInPieces(t *testing.T) {
	docs, lines := record(t)
	var r Reader
	got := read(t, &r, lines[:len(lines)/2])
	if len(got) >= len(docs) || r.Ended() {
		t.Fatalf("half a log gives %d documents", len(got))
	}
	if got = append(got, read(t, &r, lines)...); !reflect.DeepEqual(got, docs) {
		t.Errorf("%d documents of %d", len(got), len(docs))
	}
	var shuffled Reader
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if got := read(t, &shuffled, lines); !reflect.DeepEqual(got, docs) {
		t.Errorf("shuffled: %d documents of %d", len(got), len(docs))
	}
}

func TestBrokenRelay(t *testing.T) {
	_, lines := record(t)
	first := lines[1]
	for name, line := range map[string]string{
		"cut":        first[:len(first)-9],
		"no part":    mark + "0",
		"negative":   mark + "-1 0 1 aa bb",
		"beyond":     mark + "0 1 1 aa bb",
		"not base64": mark + "0 0 1 aa !!",
		"not gzip":   mark + "0 0 1 " + sum([]byte("x")) + " eA==",
	} {
		var r Reader
		if _, err := r.Line(line); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var r Reader
	if _, err := r.Line(mark + "0 0 2 aa bb"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Line(mark + "0 1 2 ab bb"); !errors.Is(err, ErrBroken) {
		t.Errorf("two documents of one number: %v", err)
	}
}

// TestRelayTakesWhatComes has lines that announce far more than they bring.
func TestRelayTakesWhatComes(t *testing.T) {
	var r Reader
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for number := range 1000 {
		if _, err := r.Line(fmt.Sprintf("%s%d %d %d aa bb", mark, number+1, maxParts-1, maxParts)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 {
		t.Errorf("1000 lines of a few bytes took %d MiB", took)
	}
	for _, number := range []int{maxAhead + 1, math.MaxInt} {
		if _, err := r.Line(fmt.Sprintf("%s%d 0 1 aa bb", mark, number)); !errors.Is(err, ErrBroken) {
			t.Errorf("document %d: %v", number, err)
		}
	}
	r.held = maxBytes
	if _, err := r.Line(mark + "1 0 16384 aa bb"); !errors.Is(err, ErrBroken) {
		t.Errorf("more than fits: %v", err)
	}
}

func FuzzLine(f *testing.F) {
	_, lines := record(f)
	for _, l := range lines[:4] {
		f.Add(l)
	}
	f.Add(mark + "0 0 16385 aa bb")
	f.Fuzz(func(t *testing.T, line string) {
		var r Reader
		docs, err := r.Line(line)
		if err != nil && !errors.Is(err, ErrBroken) {
			t.Error(err)
		}
		if len(docs) > 0 && !Ours(line) {
			t.Error("documents of a line that is no record's")
		}
	})
}
