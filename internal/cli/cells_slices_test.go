package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/stats"
)

// cellSlices is the file of a cell with what `david compare --json` printed of its my.cnf beside the control and the
// best rival, in slices, thinned.
const cellSlices = "slices.json"

// slicedCells are the cells that are measured in slices: those of docs/results.md that have been tuned.
func slicedCells() []resultCell {
	return append(resultCells()[:5:5], loadCell("rw", "iops5000", "", 4))
}

// slicedRow is a cell's row of the table of cells in slices.
func (d *cellDocument) slicedRow(name string) []string {
	rival := ""
	for _, a := range d.Arms {
		if a.Name != stats.Control && a.Name != "winner" {
			rival = a.Name
		}
	}
	design := d.Experiment.Design
	winner := ofArm(stats.Compare(design, d.Arms, d.Trials), "winner")
	beside := unmeasured
	if rival != "" {
		design.Control = rival
		a := ofArm(stats.Compare(design, d.Arms, d.Trials), "winner")
		beside = fmt.Sprintf("%s, %s, %s", ratioOf(a), rival, a.Verdict)
	}
	half := unmeasured
	if winner.Interval[0] > 0 {
		half = fmt.Sprintf("±%.1f %%", 100*(winner.Interval[1]/winner.Interval[0]-1)/2)
	}
	e := d.Experiment
	return []string{"`" + name + "`", ratioOf(winner) + ", " + string(winner.Verdict), half, beside,
		fmt.Sprintf("%d, %d, %d", winner.Pairs, winner.Incarnations, winner.Sessions), e.Created.UTC().Format("2006-01-02") + ", " + e.David}
}

// slicedTable is the table of what lies under dir, and the commands behind each row.
func slicedTable(dir string) (string, error) {
	var rows, commands strings.Builder
	for _, c := range slicedCells() {
		d, err := readCell(filepath.Join(dir, c.name), cellSlices)
		if err != nil {
			return "", err
		}
		if d == nil {
			continue
		}
		fmt.Fprintf(&rows, "| %s |\n", strings.Join(d.slicedRow(c.name), " | "))
		fmt.Fprintf(&commands, "- `%s`: `%s`\n", c.name, strings.Join(d.Experiment.Argv, " "))
	}
	if rows.Len() == 0 {
		return "No cell is measured in slices yet.\n", nil
	}
	head := []string{"cell", "winner / control [95 %]", "half-width", "winner / best rival [95 %]", "rounds, starts, sessions", "begun, david"}
	return fmt.Sprintf("| %s |\n|%s\n%s\n%s", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)), rows.String(), commands.String()), nil
}

// TestSlicedCells holds the table of cells in slices of docs/results.md against results/. DAVID_UPDATE=1 writes it
// again.
func TestSlicedCells(t *testing.T) {
	table, err := slicedTable(resultsDir)
	if err != nil {
		t.Fatal(err)
	}
	holdTable(t, resultsPage, "<!-- cells in slices: made from results/ -->\n", table)
}

// holdTable holds a table that stands in a page between a line and "<!-- end -->"; with DAVID_UPDATE it writes it.
func holdTable(t *testing.T, page, begin, table string) {
	t.Helper()
	const end = "<!-- end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no %q", page, begin)
	}
	want := before + begin + table + end + after
	switch {
	case want == string(text):
	case os.Getenv("DAVID_UPDATE") == "":
		t.Fatalf("%s is not what was recorded; DAVID_UPDATE=1 go test -run %s writes it again:\n%s", page, t.Name(), table)
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
