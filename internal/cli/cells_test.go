package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/host"
	"david/internal/result"
	"david/internal/stats"
)

// resultsDir holds what was measured of each cell, docs/results.md what follows from it.
const (
	resultsDir  = "../../results"
	resultsPage = "../../docs/results.md"
)

// The files of a cell. The last one is written when all is measured.
const (
	cellCnf    = "my.cnf"       // what the tune handed over
	cellTune   = "tune.json"    // what it printed, thinned
	cellPoints = "points.jsonl" // what its search saw; not there where it had none
	cellRace   = "race.json"    // what the race against the file printed, thinned
)

// resultCell is a load under caps that david tunes, and then races with the baselines.
type resultCell struct {
	name string
	load []string // flags of the load, the server and the caps
}

// resultCells are all cells, those to be measured first in front.
func resultCells() []resultCell {
	list := []resultCell{loadCell("rw", "none", "", 16), loadCell("rw", "iops5000", "", 16), loadCell("rw", "memory1g-iops3000", "", 16),
		loadCell("write", "iops5000", "", 16), loadCell("rw", "iops5000", "mariadb", 16)}
	add := func(c resultCell) {
		if !slices.ContainsFunc(list, func(x resultCell) bool { return x.name == c.name }) {
			list = append(list, c)
		}
	}
	for _, caps := range []string{"none", "iops5000", "memory1g-iops3000"} {
		add(loadCell("rw", caps, "", 4))
	}
	for _, load := range []string{"read", "balanced", "write"} {
		for _, caps := range []string{"none", "iops5000", "memory1g-iops3000"} {
			add(loadCell(load, caps, "", 16))
		}
	}
	for _, caps := range []string{"none", "memory1g-iops3000"} {
		add(loadCell("rw", caps, "mariadb", 16))
	}
	return list
}

// loadCell is a cell of 10 tables of a million rows; server "" is MySQL.
func loadCell(load, caps, server string, threads int) resultCell {
	workloads := map[string]string{"rw": "oltp_read_write", "read": "read-intensive", "balanced": "balanced", "write": "write-intensive"}
	limits := map[string][]string{"iops5000": {"--iops", "5000"}, "memory1g-iops3000": {"--memory", "1G", "--iops", "3000"}}
	c := resultCell{name: load + "-" + caps}
	if threads != 16 {
		c.name += fmt.Sprintf("-%dt", threads)
	}
	if server == "" {
		server = "mysql"
	} else {
		c.name += "-" + server
	}
	c.load = append([]string{"--server", server, "--workload", workloads[load], "--threads", fmt.Sprint(threads), "--tables", "10", "--table-size", "1000000"}, limits[caps]...)
	return c
}

// race is the command that races the my.cnf of this folder with the baselines.
func (c resultCell) race() []string {
	return slices.Concat([]string{"race", "--json", "--against", cellCnf, "--blocks", "12"}, c.load)
}

// cellDocument holds what david prints with --json, as far as it is looked at here.
type cellDocument struct {
	Experiment  result.Experiment  `json:"experiment"`
	Arms        []result.Arm       `json:"arms"`
	Trials      []result.Trial     `json:"trials"`
	Finish      *result.Finish     `json:"finish"`
	Comparisons []stats.Comparison `json:"comparisons"`
	Proofs      []result.Proof     `json:"proofs"`
	Searched    *result.Searched   `json:"searched"`
}

// thinned leaves out of a document what a table needs not and what belongs to the machine alone: series,
// counters, histograms, profiles, gates that held, effective variables, reasons, paths. What a transaction
// cost stays, as ratios are adjusted by it. A tune's would be several MB, and is a tenth of that so.
func thinned(document []byte) ([]byte, error) {
	in := json.NewDecoder(bytes.NewReader(document))
	in.UseNumber()
	var d map[string]any
	if err := in.Decode(&d); err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	drop(d, "gates", "arms.effective", "arms.changes", "arms.settings.reason", "arms.settings.source", "arms.settings.group", "arms.settings.effect",
		"trials.points", "trials.samples", "trials.counters", "trials.histogram", "trials.profile", "trials.sampling",
		"trials.debt_before", "trials.debt_after", "trials.warnings", "trials.overhead_seconds", "experiment.server.path", "experiment.host.cgroup",
		"experiment.host.disks", "experiment.host.kernel_settings", "experiment.host.data_filesystem", "experiment.limits", "proofs.crash.rounds")
	trials, _ := d["trials"].([]any)
	for _, t := range trials {
		if trial, ok := t.(map[string]any); ok {
			gates, _ := trial["gates"].([]any)
			trial["gates"] = slices.DeleteFunc(gates, func(g any) bool { gate, ok := g.(map[string]any); return ok && gate["ok"] == true })
		}
	}
	thin, err := json.Marshal(d)
	return append(thin, '\n'), err
}

// drop removes what lies at these paths, of every element where a list is on the way.
func drop(from any, paths ...string) {
	for _, path := range paths {
		name, rest, deeper := strings.Cut(path, ".")
		switch x := from.(type) {
		case []any:
			for _, one := range x {
				drop(one, path)
			}
		case map[string]any:
			if deeper {
				drop(x[name], rest)
			} else {
				delete(x, name)
			}
		}
	}
}

// readCell reads a document of a cell; nil where it is not there.
func readCell(dir, file string) (*cellDocument, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var d cellDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("cannot read %s of %s: %w", file, dir, err)
	}
	return &d, nil
}

// unmeasured stands in a cell of the table that nothing is known for.
const unmeasured = "–"

// cellRow is a row of the table: a cell's files, read.
func cellRow(dir, name string) ([]string, error) {
	tuned, err := readCell(dir, cellTune)
	if err != nil || tuned == nil {
		return []string{"`" + name + "`", "not measured"}, err
	}
	raced, err := readCell(dir, cellRace)
	if err != nil {
		return nil, err
	}
	lines, err := cnfLines(filepath.Join(dir, cellCnf))
	if err != nil {
		return nil, err
	}
	e := tuned.Experiment
	row := []string{"`" + name + "`", e.Server.Flavour.Product() + " " + e.Server.Version, fmt.Sprint(e.Workloads[0].Threads), tuned.winner(), tuned.rival()}
	row = append(row, raced.standing()...)
	return append(row, fmt.Sprint(lines), tuned.proof(), tuned.search(), e.Created.UTC().Format("2006-01-02")+", "+e.David), nil
}

// cnfLines counts the lines of a my.cnf that set something.
func cnfLines(path string) (n int, err error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "[") {
			n++
		}
	}
	return n, err
}

// ofArm returns what a comparison says of an arm; the zero Arm where it is not in it.
func ofArm(list []stats.Comparison, name string) stats.Arm {
	for _, c := range list {
		for _, a := range c.Arms {
			if a.Name == name {
				return a
			}
		}
	}
	return stats.Arm{}
}

// ratioOf is a ratio with its interval.
func ratioOf(a stats.Arm) string {
	if a.Ratio == 0 {
		return unmeasured
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", a.Ratio, a.Interval[0], a.Interval[1])
}

// winner is the confirmed ratio of what was handed over to the control.
func (d *cellDocument) winner() string {
	if d.Finish == nil || d.Finish.Best == stats.Control {
		return "no significant gain"
	}
	a := ofArm(d.Comparisons, d.Finish.Best)
	if a.Verdict != stats.Faster {
		return ratioOf(a) + ", " + string(a.Verdict)
	}
	return ratioOf(a)
}

// rival is the ratio of what was handed over to the best rival that was confirmed beside it, block by block.
func (d *cellDocument) rival() string {
	if d.Finish == nil || d.Finish.Best == stats.Control {
		return unmeasured
	}
	var arms []result.Arm
	var trials []result.Trial
	confirmed := func(a result.Arm) bool {
		return slices.ContainsFunc(d.Trials, func(t result.Trial) bool { return t.Phase == result.Confirm && t.Arm == a.Name })
	}
	rival := ""
	for _, a := range d.Arms {
		if a.Name == d.Finish.Best && a.Phase == result.Race {
			return "it is " + a.Name
		}
		if confirmed(a) && a.Phase == result.Race {
			rival = a.Name
		}
		arms = append(arms, a)
	}
	for _, t := range d.Trials {
		if t.Phase == result.Confirm {
			trials = append(trials, t)
		}
	}
	if rival == "" {
		return unmeasured
	}
	return ratioOf(ofArm(stats.Compare(result.Design{Control: rival}, arms, trials), d.Finish.Best)) + ", " + rival
}

// standing says to how many baselines the my.cnf is non-inferior, and whether it is faster than the best of
// them.
func (d *cellDocument) standing() []string {
	if d == nil {
		return []string{"not raced", unmeasured}
	}
	// From its trials, so that all races are judged by today's rules.
	comparisons := stats.Compare(d.Experiment.Design, d.Arms, d.Trials)
	if len(comparisons) == 0 || comparisons[0].Standing == nil {
		return []string{"not raced", unmeasured}
	}
	s := comparisons[0].Standing
	text := fmt.Sprintf("%d of %d", s.NotWorse, s.Of)
	if s.Widest != "" {
		text += fmt.Sprintf(" (%s %.2f to %.2f)", s.Widest, s.Interval[0], s.Interval[1])
	}
	best := stats.Opponent{}
	for _, o := range s.Against {
		if o.AtMost > 0 && o.Ratio > best.Ratio {
			best = o
		}
	}
	verdict := map[stats.Verdict]string{stats.Slower: "yes", stats.Faster: "no", stats.Equivalent: "equivalent", stats.Undecided: "undecided"}[best.Verdict]
	if verdict == "" {
		return []string{text, unmeasured}
	}
	return []string{text, fmt.Sprintf("%s (%s %.2f [%.2f, %.2f])", verdict, best.Arm, best.Ratio, best.Interval[0], best.Interval[1])}
}

// proof tells what was proved of what was handed over.
func (d *cellDocument) proof() string {
	for _, p := range d.Proofs {
		if d.Finish == nil || p.Arm != d.Finish.Best {
			continue
		}
		var parts []string
		if c := p.Crash; c != nil {
			parts = append(parts, fmt.Sprintf("%s, %d lost, recovery %.0f ms at most", pluralise(c.Kills, "kill"), c.Lost, c.RecoveryMs.Max))
		}
		if m := p.Memory; m != nil {
			parts = append(parts, fmt.Sprintf("%s of %s", host.Size(m.Worst), host.Size(m.Limit)))
		}
		if !p.OK {
			parts = append(parts, "FAILED: "+p.Why)
		}
		return strings.Join(parts, "; ")
	}
	return unmeasured
}

// search says how soon the search had tried what has 95 % of the gain.
func (d *cellDocument) search() string {
	if d.Searched == nil {
		return unmeasured
	}
	return fmt.Sprintf("%d of %d", d.Searched.Enough, d.Searched.Trials)
}

// cellTable is the table of what lies under dir, and the commands behind each row.
func cellTable(dir string) (string, error) {
	var rows, commands strings.Builder
	var missing []string
	measured := 0
	for _, c := range resultCells() {
		row, err := cellRow(filepath.Join(dir, c.name), c.name)
		if err != nil {
			return "", err
		}
		if len(row) == 2 {
			missing = append(missing, row[0])
			continue
		}
		measured++
		fmt.Fprintf(&rows, "| %s |\n", strings.Join(row, " | "))
		if err := c.commands(&commands, dir); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	if measured == 0 {
		text.WriteString("No cell is measured yet.\n")
	} else {
		head := []string{"cell", "server", "threads", "winner / control [95 %]", "winner / best rival [95 %]", "non-inferior to (widest interval)", "faster than the best",
			"lines of my.cnf", "proofs", "trials to 95 % of the gain", "date, david"}
		fmt.Fprintf(&text, "| %s |\n|%s\n%s\n%s", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)), rows.String(), commands.String())
	}
	if len(missing) > 0 {
		fmt.Fprintf(&text, "\nNot measured: %s.\n", strings.Join(missing, ", "))
	}
	return text.String(), nil
}

// commands writes what was run for a cell.
func (c resultCell) commands(to *strings.Builder, dir string) error {
	for _, file := range []string{cellTune, cellRace} {
		d, err := readCell(filepath.Join(dir, c.name), file)
		if err != nil {
			return err
		}
		if d != nil {
			fmt.Fprintf(to, "- `%s`: `%s`\n", c.name, strings.Join(d.Experiment.Argv, " "))
		}
	}
	return nil
}

// TestCellTable holds the table of docs/results.md against results/. DAVID_UPDATE=1 writes it again.
func TestCellTable(t *testing.T) {
	table, err := cellTable(resultsDir)
	if err != nil {
		t.Fatal(err)
	}
	holdTable(t, resultsPage, "<!-- cells in trials: made from results/ -->\n", table)
}

// TestCells: every cell has a name of its own, and those to be measured first are in front.
func TestCells(t *testing.T) {
	seen := map[string]bool{}
	list := resultCells()
	for _, c := range list {
		if seen[c.name] {
			t.Errorf("two cells are called %s", c.name)
		}
		seen[c.name] = true
	}
	if len(list) != 18 || list[0].name != "rw-none" || list[2].name != "rw-memory1g-iops3000" || list[4].name != "rw-iops5000-mariadb" || !seen["rw-iops5000-4t"] {
		t.Errorf("%d cells: %v", len(list), list)
	}
	if got := strings.Join(list[2].race(), " "); got != "race --json --against my.cnf --blocks 12 --server mysql --workload oltp_read_write --threads 16 --tables 10 --table-size 1000000 --memory 1G --iops 3000" {
		t.Error(got)
	}
}
