package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// writerDir names the environment variable that turns this test binary into a process that appends trials for
// ever.
const writerDir = "DAVID_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := appendForEver(dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendForEver appends trials and prints the ID of each after it was stored, until it is killed or nobody
// listens.
func appendForEver(dir string, out io.Writer) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	stored, err := s.Trials()
	if err != nil {
		return err
	}
	for n := len(stored); ; n++ {
		t := sampleTrial(fmt.Sprintf("t%d", n))
		t.Arm = strings.Repeat("x", 100_000) // a long line is a longer time to be killed in
		if err := s.AppendTrial(t); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, t.ID); err != nil {
			return err
		}
	}
}

func TestKilledWriterLosesNoStoredTrial(t *testing.T) {
	s := newStore(t)
	var acknowledged []string
	for round := range 25 {
		acknowledged = append(acknowledged, killWriter(t, s.Dir(), 1+round%4)...)
		checkStored(t, s.Dir(), acknowledged)
		trials, err := s.Trials()
		if err != nil {
			t.Fatal(err)
		}
		acknowledged = acknowledged[:0]
		for _, trial := range trials { // one more than was acknowledged may be there
			acknowledged = append(acknowledged, trial.ID)
		}
	}
}

// killWriter starts a writer, kills it after n trials while it goes on writing, and returns all IDs it
// printed.
func killWriter(t *testing.T, dir string, n int) (ids []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		ids = append(ids, lines.Text())
		if len(ids) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(ids) < n {
		t.Fatalf("the writer ended by itself after %d trials", len(ids))
	}
	return ids
}

func checkStored(t *testing.T, dir string, acknowledged []string) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if trials, err = s.WithPoints(trials); err != nil {
		t.Fatal(err)
	}
	if len(trials) < len(acknowledged) {
		t.Fatalf("%d trials were stored, %d are there", len(acknowledged), len(trials))
	}
	for i, id := range acknowledged {
		if trials[i].ID != id || len(trials[i].Points) != 2 {
			t.Errorf("trial %d is %s with %d points, want %s with 2", i, trials[i].ID, len(trials[i].Points), id)
		}
	}
}

func FuzzParseTrials(f *testing.F) {
	line, err := json.Marshal(sampleTrial("a"))
	if err != nil {
		f.Fatal(err)
	}
	line = append(line, '\n')
	f.Add(line)
	f.Add(append(bytes.Clone(line), line[:40]...))
	f.Add([]byte("{\"schema\":7}\n"))
	f.Add([]byte("{\"schema\":1,\x00\n"))
	f.Add([]byte("\n\n{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parse := func(b []byte) (trials int, end int64, err error) {
			end, _, err = eachLine(bytes.NewReader(b), func(_ int, _ int64, line []byte) error {
				trials++
				return decodeLine("dir", line, new(Trial))
			})
			return trials, end, err
		}
		trials, end, err := parse(b)
		if end > 0 && b[end-1] != '\n' {
			t.Fatalf("it ends within a line: %d", end)
		}
		if err != nil {
			return
		}
		if lines := bytes.Count(b[:end], []byte("\n")); trials != lines {
			t.Errorf("%d trials of %d lines", trials, lines)
		}
		again, _, err := parse(append(bytes.Clone(b[:end]), line...))
		if err != nil || again != trials+1 {
			t.Errorf("after one more: %d trials, then %d, %v", trials, again, err)
		}
	})
}

// realistic returns a trial of the size real ones have: 75 points, 200 buckets, 350 counters.
func realistic(id string) Trial {
	t := sampleTrial(id)
	t.Points, t.Histogram = nil, nil
	for i := range 75 {
		t.Points = append(t.Points, Point{Second: i + 1, Warm: i < 15, TPS: 512.25 + float64(i), QPS: 10245.5, P95: 11.24})
	}
	for i := range 200 {
		t.Histogram = append(t.Histogram, Bucket{Ms: 1.5 + float64(i)/7, Count: int64(1000 - i)})
	}
	for i := range 350 {
		t.Counters[fmt.Sprintf("Innodb_counter_number_%d", i)] = float64(i) * 1.5
	}
	return t
}

func BenchmarkAppendTrial(b *testing.B) {
	s := newStore(b)
	t := realistic("t")
	for b.Loop() {
		if err := s.AppendTrial(t); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead1000Trials(b *testing.B) {
	s := newStore(b)
	for i := range 1000 {
		mustAppend(b, s, realistic(fmt.Sprintf("t%d", i)))
	}
	for b.Loop() {
		trials, err := s.Trials()
		if err != nil {
			b.Fatal(err)
		}
		if trials, err = s.WithPoints(trials); err != nil || len(trials) != 1000 {
			b.Fatal(len(trials), err)
		}
	}
}
