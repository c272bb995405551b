package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Parse reads a whole output. A last line without its newline, torn off when sysbench was killed, is left
// out.
func Parse(r io.Reader) (Output, error) {
	var p Parser
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return p.out, nil
		}
		if err != nil {
			return p.out, fmt.Errorf("cannot read sysbench's output: %w", err)
		}
		if _, err := p.Line(strings.TrimSuffix(line, "\n")); err != nil {
			return p.out, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func parsed(t *testing.T, name string) Output {
	t.Helper()
	out, err := Parse(bytes.NewReader(recorded(t, name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func eachFlavour(t *testing.T, test func(t *testing.T, flavour string)) {
	for _, f := range []string{"mysql", "mariadb"} {
		t.Run(f, func(t *testing.T) { test(t, f) })
	}
}

func TestParseNormal(t *testing.T) {
	out := parsed(t, "normal-mysql")
	if !out.Started || len(out.Points) != 3 || out.OpenLoop || out.Final == nil || len(out.Fatal) > 0 {
		t.Fatalf("got %+v", out)
	}
	text := string(recorded(t, "normal-mysql"))
	final := text[strings.LastIndex(text, "SQL statistics:"):]
	for _, figure := range []string{"2013 ", "min:", "95th percentile:"} {
		if !strings.Contains(final, figure) {
			t.Fatalf("the recording has changed: no %q", figure)
		}
	}
	if s := out.Final; s.Transactions != 2013 || s.Events != 2013 || s.PercentileRank != 95 || s.TPS <= 0 || s.QPS < 19*s.TPS || s.Min <= 0 || s.Max < s.Avg {
		t.Errorf("got %+v", *s)
	}
	if p := out.Points[1]; p.Second != 2 || p.TPS <= 0 || p.QPS <= p.TPS || p.P95 <= 0 || p.Errors != 0 || p.Reconnects != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestHistogramCoversWhatTheStatisticsCover(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		for _, name := range []string{"normal", "threads10", "deadlock", "stall", "rate", "overload"} {
			out := parsed(t, name+"-"+flavour)
			var sum int64
			for _, b := range out.Histogram {
				sum += b.Count
			}
			if sum != out.Final.Events {
				t.Errorf("%s: %d in the histogram, %d events", name, sum, out.Final.Events)
			}
			if got := stats.Percentile(out.Histogram, 95); got < out.Final.Percentile-0.006 || got > out.Final.Percentile+0.006 {
				t.Errorf("%s: p95 is %.3f, sysbench printed %.2f", name, got, out.Final.Percentile)
			}
		}
	})
}

func TestParseDeadlocks(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		out := parsed(t, "deadlock-"+flavour)
		if out.Final.Errors == 0 || out.Points[1].Errors == 0 || len(out.Fatal) > 0 {
			t.Errorf("no ignored errors in %+v", *out.Final)
		}
	})
}

func TestParseStall(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		out := parsed(t, "stall-"+flavour)
		trial := result.Trial{Workload: result.Workload{Seconds: 5}}
		fill(&trial, out)
		if trial.Stalls != 1 || trial.Latency.Max < 2000 || trial.StdDevTPS == 0 {
			t.Errorf("stalls %d, max %v ms, standard deviation %v", trial.Stalls, trial.Latency.Max, trial.StdDevTPS)
		}
	})
}

func TestParseQueue(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		out := parsed(t, "queue-"+flavour)
		if out.Points[0].Queue < 50_000 || out.Final != nil || len(out.Fatal) != 1 || !strings.Contains(out.Fatal[0], "queue is full") {
			t.Errorf("got %+v", out)
		}
		if err := explain(check(out), out); !errors.Is(err, ErrQueueFull) {
			t.Errorf("got %v", err)
		}
	})
}

// The load was 1.3 times what the server gets done: both threads are always busy and the queue grows.
func TestParseQueueOfEachSecond(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		out := parsed(t, "overload-"+flavour)
		if !out.OpenLoop || len(out.Points) < 3 || out.Points[2].Queue <= out.Points[0].Queue || out.Points[1].Busy != 2 {
			t.Errorf("got %+v", out.Points)
		}
	})
}

// With a rate a second is handed on once, with its queue; without one, with its first line.
func TestLineHandsOnWholeSeconds(t *testing.T) {
	const figures = "[ 1s ] thds: 2 tps: 830.22 qps: 16620.45 (r/w/o: 11637.11/3320.89/1662.44) lat (ms,95%): 943.16 err/s: 0.00 reconn/s: 0.00"
	var closed, open Parser
	if p, err := closed.Line(figures); err != nil || p == nil || p.Second != 1 {
		t.Errorf("closed loop: %v, %v", p, err)
	}
	for _, line := range []string{"Target transaction rate: 100/sec", figures} {
		if p, err := open.Line(line); err != nil || p != nil {
			t.Errorf("open loop: %v, %v", p, err)
		}
	}
	p, err := open.Line("[ 1s ] queue length: 17, concurrency: 2")
	if err != nil || p == nil || p.Second != 1 || p.TPS != 830.22 || p.Queue != 17 || p.Busy != 2 {
		t.Errorf("open loop: %+v, %v", p, err)
	}
}

func TestParseForcedShutdown(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		out := parsed(t, "forced-"+flavour)
		if out.Unfinished != 2 || len(out.Histogram) != 0 || out.Final == nil || len(out.Fatal) != 1 {
			t.Errorf("got %+v", out)
		}
		if check(out) == nil {
			t.Error("taken for a whole run")
		}
	})
}

func TestFailuresNameTheirCause(t *testing.T) {
	eachFlavour(t, func(t *testing.T, flavour string) {
		for name, c := range map[string]struct{ number int }{
			"wrongpass": {1045}, "nodb": {1049}, "notable": {1146}, "prepared": {1461}, "killed": {2013},
		} {
			out := parsed(t, name+"-"+flavour)
			if number, said := blame(out.Fatal); number != c.number {
				t.Errorf("%s: error %d (%s), want %d", name, number, said, c.number)
			}
			if check(out) == nil {
				t.Errorf("%s: taken for a whole run", name)
			}
		}
	})
}

func TestParseLeavesATornLineOut(t *testing.T) {
	text := recorded(t, "normal-mysql")
	for n := range text {
		if _, err := Parse(bytes.NewReader(text[:n])); err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func TestParseRefusesGarbledFigures(t *testing.T) {
	const secondOne = "[ 1s ] thds: 2 tps: 1 qps: 1 (r/w/o: 1/1/1) lat (ms,95%): 1 err/s: 0.00 reconn/s: 0.00\n"
	for _, text := range []string{
		"[ 1s ] thds: 2 tps: x qps: 1 (r/w/o: 1/1/1) lat (ms,95%): 1 err/s: 0.00 reconn/s: 0.00\n",
		"[ 1s ] thds: 2 tps: nan qps: 1 (r/w/o: 1/1/1) lat (ms,95%): 1 err/s: 0.00 reconn/s: 0.00\n",
		"[ 1s ] thds: 2\n", "[ xs ] Checkpoint\n", "[ 1s ] queue length: 1, concurrency: 1\n",
		secondOne + "[ 1s ] queue length: many, concurrency: 1\n", secondOne + "[ 2s ] queue length: 1, concurrency: 1\n",
		secondOne + "[ 1s ] queue length: 1\n",
		"SQL statistics:\n    transactions:   12\n", "SQL statistics:\n         min:    fast\n",
		"Latency histogram (values are in milliseconds)\n   0.1 |** many\n",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := Parse(bytes.NewReader(text))
		if err != nil {
			return
		}
		trial := result.Trial{}
		fill(&trial, out)
		if trial.TPS < 0 || trial.Latency.P95 < 0 || trial.Stalls > len(out.Points) {
			t.Errorf("nonsense: %+v", trial)
		}
	})
}

// BenchmarkParse parses 1,000 outputs an operation.
func BenchmarkParse(b *testing.B) {
	text := recorded(b, "threads10-mysql")
	b.SetBytes(int64(1000 * len(text)))
	for b.Loop() {
		for range 1000 {
			if _, err := Parse(bytes.NewReader(text)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Two threads wrote at once: a line held both texts, and the next one neither.
func TestIndexesBegun(t *testing.T) {
	for line, want := range map[string]int{
		"Creating a secondary index on 'sbtest1'...": 1, "": 0, "Inserting 100 records into 'sbtest1'": 0,
		"Creating a secondary index on 'sbtest1'...Creating a secondary index on 'sbtest2'...": 2,
	} {
		if got := indexesBegun(line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}
