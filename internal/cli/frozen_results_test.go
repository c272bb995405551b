//go:build results

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/server"
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
// bin/david in the user's own $DAVID_HOME; with DAVID_EXPERIMENT=ID it takes one on record instead.
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
	id := os.Getenv("DAVID_EXPERIMENT")
	if id == "" {
		document, err := binDavid(t.TempDir(), args...)
		if err != nil {
			t.Errorf("%s, %s: %v", p.name, way, err)
			return
		}
		var d struct {
			Experiment struct {
				ID string `json:"id"`
			} `json:"experiment"`
		}
		if err := json.Unmarshal(document, &d); err != nil {
			t.Errorf("%s, %s: %v in %.300s", p.name, way, err, document)
			return
		}
		id = d.Experiment.ID
	}
	f, err := recordedPair(filepath.Join(server.Home(os.Getenv), "experiments", id))
	if err != nil {
		t.Errorf("%s, %s: %v", p.name, way, err)
		return
	}
	f.Command = "david " + strings.Join(args, " ")
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file(frozenDir, way), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s: %s", p.name, way, f.text())
}

// recordedPair returns what an experiment on record says of its second arm. A difference in durability, which
// forbids a verdict, does not forbid to compare two ways of measuring.
func recordedPair(dir string) (f frozenFigure, err error) {
	d, err := loadDir(dir)
	if err != nil {
		return f, err
	}
	for _, t := range d.Trials {
		for i := range t.Gates {
			t.Gates[i].OK = t.Gates[i].OK || t.Gates[i].Name == result.GateDurability
		}
	}
	c := stats.Compare(d.Experiment.Design, d.Arms, d.Trials)
	if len(c) != 1 || len(c[0].Arms) != 2 || c[0].Arms[1].Interval[0] <= 0 {
		return f, fmt.Errorf("nothing came of %s", dir)
	}
	a := c[0].Arms[1]
	return frozenFigure{Ratio: a.Ratio, Interval: a.Interval, Pairs: a.Pairs, Date: d.Experiment.Created.UTC().Format("2006-01-02"), David: d.Experiment.David}, nil
}
