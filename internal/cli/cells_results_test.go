//go:build results

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/host"
	"david/internal/tune"
)

// TestResultsCells measures the cells of docs/results.md that results/ does not hold yet, and writes the
// page's table after each: an hour a cell, give or take. An interrupted cell goes on where it stopped, and
// what is finished can be committed. DAVID_CELL=NAME,... picks cells, DAVID_CELL_BUDGET is that of each tune,
// DAVID_CELL_TUNED the output folder of the one cell's tune where it was run by hand. It runs bin/david in
// the user's own $DAVID_HOME.
func TestResultsCells(t *testing.T) {
	for _, c := range pickedCells(t) {
		t.Run(c.name, func(t *testing.T) {
			if err := c.measure(t); err != nil {
				t.Error(err)
			}
			t.Setenv("DAVID_UPDATE", "1")
			TestCellTable(t)
		})
	}
}

func pickedCells(t *testing.T) []resultCell {
	all, wanted := resultCells(), os.Getenv("DAVID_CELL")
	if wanted == "" {
		return all
	}
	var list []resultCell
	for _, name := range strings.Split(wanted, ",") {
		i := slices.IndexFunc(all, func(c resultCell) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("DAVID_CELL: there is no cell %q", name)
		}
		list = append(list, all[i])
	}
	return list
}

// measure tunes the cell and races what comes of it, unless that is done.
func (c resultCell) measure(t *testing.T) error {
	dir, err := filepath.Abs(filepath.Join(resultsDir, c.name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if !there(dir, cellTune) {
		if err := c.tuned(dir, t.TempDir()); err != nil {
			return err
		}
	}
	if there(dir, cellRace) {
		return nil
	}
	document, err := binDavid(dir, c.race()...)
	if err != nil {
		return err
	}
	return put(dir, cellRace, document)
}

func there(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return !errors.Is(err, fs.ErrNotExist)
}

// tuned keeps what a tune in the folder work comes to. Its document is written last: without it the tune is
// run again.
func (c resultCell) tuned(dir, work string) error {
	budget := os.Getenv("DAVID_CELL_BUDGET")
	if budget == "" {
		budget = "40m"
	}
	out, command := filepath.Join(work, c.name), c.tune(budget)
	if by := os.Getenv("DAVID_CELL_TUNED"); by != "" { // by hand
		out, command = by, []string{"report", by, "--format", "json"}
	}
	document, err := binDavid(work, command...)
	if err != nil {
		return err
	}
	cnf, err := os.ReadFile(filepath.Join(out, "my.cnf"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, cellCnf), cnf, 0o644); err != nil {
		return err
	}
	if err := recordPoints(filepath.Join(out, "experiment"), filepath.Join(dir, cellPoints)); err != nil {
		return err
	}
	return put(dir, cellTune, document)
}

// tune is the command that tunes the cell; the same one goes on after an interruption.
func (c resultCell) tune(budget string) []string {
	return slices.Concat([]string{"tune", "--json", "--budget", budget}, c.load, []string{"--out", c.name})
}

// recordPoints writes what the search of a tune on record saw; nothing where it had none.
func recordPoints(store, to string) error {
	d, err := loadDir(store)
	if err != nil {
		return err
	}
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if !ok {
		return fmt.Errorf("cannot read the plan of the tune in %s", store)
	}
	e, w := d.Experiment, d.Experiment.Workloads[0]
	about := fmt.Sprintf("%s %s, %s, %.4g CPUs, %s of memory, %.0f writes/s; %s, %d tables of %d rows, %d threads, %d s a trial; %s", e.Server.Flavour.Product(), e.Server.Version,
		e.Host.CPU.Model, plan.Machine.CPUs, host.Size(plan.Machine.Memory), plan.Machine.WriteIOPS, w.Name, w.Tables, w.TableSize, w.Threads, plan.Short.Seconds, e.Created.UTC().Format("2006-01-02"))
	r, ok := plan.Recording(tune.History{Arms: d.Arms, Trials: d.Trials, Proofs: d.Proofs}, about)
	if !ok {
		return nil
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// put keeps a document, thinned.
func put(dir, file string, document []byte) error {
	thin, err := thinned(document)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), thin, 0o644)
}

// binDavid runs bin/david in a folder, so that its version is on record, and returns the document it prints.
// A failed gate is an exit code, and its document is kept: the table says invalid.
func binDavid(dir string, args ...string) ([]byte, error) {
	binary, err := filepath.Abs("../../bin/david")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	document, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitInvalid && json.Valid(document) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("david %s: %w", strings.Join(args, " "), err)
	}
	return document, nil
}
