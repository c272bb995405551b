//go:build results

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

// slicedBudget is that of one session of a cell in slices: two starts of three servers, and their rounds.
const slicedBudget = "290s"

// TestResultsCellSlices measures the my.cnf of each cell beside the control and the rival that its tune confirmed, in
// slices, and writes the table of docs/results.md after each: five minutes a cell, and what its data take to load. Where
// $DAVID_HOME has a session of a cell another is added, which should be hours later. DAVID_CELL=NAME,... picks cells.
func TestResultsCellSlices(t *testing.T) {
	wanted := strings.Split(os.Getenv("DAVID_CELL"), ",")
	for _, c := range slicedCells() {
		if wanted[0] != "" && !slices.Contains(wanted, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if err := c.slice(); err != nil {
				t.Error(err)
			}
			t.Setenv("DAVID_UPDATE", "1")
			TestSlicedCells(t)
		})
	}
}

// slice measures a session of a cell.
func (c resultCell) slice() error {
	dir, err := filepath.Abs(filepath.Join(resultsDir, c.name))
	if err != nil {
		return err
	}
	d, err := readCell(dir, cellTune)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"compare", "--json", "--budget", slicedBudget, "--time", "5s", "--warmup", "10s"}, c.load)
	for _, a := range d.confirmed() {
		file := a.Name + ".cnf"
		if a.Name == "winner" {
			file = cellCnf
		} else if err := os.WriteFile(filepath.Join(dir, file), []byte(optionFile(a)), 0o644); err != nil {
			return err
		}
		args = append(args, "--arm", a.Name+"="+file)
	}
	if there(dir, cellSlices) {
		last, err := readCell(dir, cellSlices)
		if err != nil {
			return err
		}
		args = []string{"compare", "--json", "--continue", slicedBudget, "--of", last.Experiment.ID}
	}
	document, err := binDavid(dir, args...)
	if err != nil {
		return err
	}
	return put(dir, cellSlices, document)
}

// confirmed lists the arms of a tune's confirmation, the control first.
func (d *cellDocument) confirmed() (arms []result.Arm) {
	for _, a := range d.Arms {
		if slices.ContainsFunc(d.Trials, func(t result.Trial) bool { return t.Phase == result.Confirm && t.Arm == a.Name }) {
			arms = append(arms, a)
		}
	}
	slices.SortStableFunc(arms, func(a, b result.Arm) int {
		return strings.Compare(fmt.Sprint(a.Name != stats.Control), fmt.Sprint(b.Name != stats.Control))
	})
	return arms
}

// optionFile writes an arm's settings as a my.cnf.
func optionFile(a result.Arm) string {
	text := "[mysqld]\n"
	for _, s := range a.Settings {
		if s.Value == "" {
			text += s.Name + "\n"
			continue
		}
		text += s.Name + " = " + s.Value + "\n"
	}
	return text
}
