//go:build results

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/stats"
)

// How each pair is measured, both ways with the same warm-up: 12 rounds on two starts of each server, and
// three blocks of trials whose servers are never frozen.
const (
	frozenWarmup = "10s"
	frozenRounds = "12"
	frozenBlocks = "3"
	frozenTrial  = "20s"
)

// TestResultsFrozen measures the pairs that results/frozen does not hold yet, in slices and in trials, and
// writes the table of docs/method.md after each: 4 minutes for slices of 5 s, 6 for trials.
// DAVID_PAIR=NAME,... picks pairs, DAVID_WAY=trials,2,5,10,20 how they are measured (trials,5). It runs
// bin/david in the user's own $DAVID_HOME.
func TestResultsFrozen(t *testing.T) {
	ways := strings.Split(os.Getenv("DAVID_WAY"), ",")
	if ways[0] == "" {
		ways = []string{"trials", "5"}
	}
	wanted := strings.Split(os.Getenv("DAVID_PAIR"), ",")
	if err := os.MkdirAll(frozenDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range frozenPairs() {
		if wanted[0] != "" && !slices.Contains(wanted, p.name) {
			continue
		}
		for _, way := range ways {
			if !there(frozenDir, filepath.Base(p.file(frozenDir, way))) {
				p.measure(t, way)
			}
		}
		t.Setenv("DAVID_UPDATE", "1")
		TestFrozenTable(t)
	}
}

// measure compares the pair one way and keeps what came of it.
func (p frozenPair) measure(t *testing.T, way string) {
	how := []string{"--time", way + "s", "--blocks", frozenRounds}
	if way == "trials" {
		how = []string{"--trials", "--time", frozenTrial, "--blocks", frozenBlocks}
	}
	args := slices.Concat([]string{"compare", "--json", "--fresh", "--warmup", frozenWarmup}, how, p.args)
	document, err := binDavid(t.TempDir(), args...)
	if err != nil {
		t.Errorf("%s, %s: %v", p.name, way, err)
		return
	}
	var d struct {
		Experiment struct {
			Created time.Time `json:"created"`
			David   string    `json:"david"`
		} `json:"experiment"`
		Comparisons []stats.Comparison `json:"comparisons"`
	}
	if err := json.Unmarshal(document, &d); err != nil || len(d.Comparisons) != 1 || len(d.Comparisons[0].Arms) != 2 {
		t.Errorf("%s, %s: %v in %.300s", p.name, way, err, document)
		return
	}
	a := d.Comparisons[0].Arms[1]
	if a.Ratio == 0 || a.Interval[0] <= 0 {
		t.Errorf("%s, %s: nothing came of it: %s %s", p.name, way, a.Verdict, a.Why)
		return
	}
	f := frozenFigure{Ratio: a.Ratio, Interval: a.Interval, Pairs: a.Pairs, Command: "david " + strings.Join(args, " "), Date: d.Experiment.Created.UTC().Format("2006-01-02"), David: d.Experiment.David}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file(frozenDir, way), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s: %s", p.name, way, f.text())
}
