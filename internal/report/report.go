// Package report tells what an experiment found: as text for a terminal, as Markdown, as one JSON document,
// and as one self-contained HTML file that works offline. It is pure: the values of a store in, an io.Writer
// out.
//
// Build asks once what kind of experiment it is, and makes a Report of it; all forms go through its parts, so
// that they cannot differ: a headline, sections, caveats (a number is never shown without them). The charts
// of HTML are drawn from the very document that JSON writes.
package report

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// Data holds one experiment as the store has it.
type Data struct {
	Experiment result.Experiment
	Arms       []result.Arm
	Trials     []result.Trial // with their points
	// Full gives a trial with its counters, profile and samples, one at a time, as they take much room; nil where
	// Trials have them.
	Full func(result.Trial) (result.Trial, error)
	// Replaced counts the trials that were set aside, as their blocks were cut short and run again.
	Replaced int
	Finish   *result.Finish // nil where the experiment is running or was interrupted
	// Cnf is the my.cnf that `david tune` wrote, shown as it is; empty where there is none.
	Cnf string
	// Pruned and Proofs are a tune's: what its lines are worth, and what was proved of who was to be handed
	// over.
	Pruned []result.Worth
	Proofs []result.Proof
	// Searched sums a tune's search up; nil where there was none.
	Searched *result.Searched
	// Live is a tune of a running server, and Changes what became of what it set; nil for others.
	Live    *result.LiveTune
	Changes []ChangedVariable
	// Price holds what the throughput costs, where the machine's price is known; else nil.
	Price *price.Quote
}

// Headline returns the result in one plain sentence.
func Headline(d Data) string { return Build(d).Headline.String() }

// headline tells the result in a sentence, part by part.
type headline struct {
	Big, Rest string // what was found: a few big words, and what follows them
	Sure      string // how sure that is: "95 % interval 2.1 to 2.4, 24 rounds, 2 starts"; "" where Rest says it
	Beside    string // what must not be passed over: what speaks against it, what became of other arms
	Decides   string // what may decide what is open: "`david compare --continue 10m` adds rounds, ..."
	Tone      string // "gain", "none" or "invalid"
}

// After returns the sentence without its big words.
func (h headline) After() string {
	text := h.Rest
	if h.Sure != "" {
		text += " (" + h.Sure + ")"
	}
	if h.Beside != "" {
		text += "; " + h.Beside
	}
	if h.Decides != "" {
		text += ": " + h.Decides
	}
	return text
}

// beside adds something that must not be passed over; nothing where it is "".
func (h *headline) beside(what string) {
	if h.Beside != "" && what != "" {
		h.Beside += "; "
	}
	h.Beside += what
}

func (h headline) String() string { return h.Big + h.After() }

func benchHeadline(d Data) headline {
	var best stats.Runs
	var at result.Workload
	groups := byWorkload(d.Trials)
	for _, g := range groups {
		for _, r := range stats.RunsOf(d.Arms, g.trials) {
			if r.TPS > best.TPS {
				best, at = r, g.workload
			}
		}
	}
	if best.TPS == 0 {
		return headline{Big: "No result", Rest: ": no run is valid" + whyInvalid(d.Trials), Tone: "invalid"}
	}
	rest := fmt.Sprintf(" transactions/s, p95 %s ms, with %s", number(best.P95), plural(at.Threads, "thread"))
	if len(groups) > 1 {
		rest += fmt.Sprintf(", the most of %d workloads", len(groups))
	}
	return headline{Big: number(best.TPS), Rest: rest, Sure: best.Warnings[0], Tone: "none"}
}

func whyInvalid(trials []result.Trial) string {
	for _, t := range trials {
		if ok, failed := t.Valid(); !ok {
			return " (" + strings.Join(failed, "; ") + ")"
		}
	}
	return ""
}

// workloadTrials groups the trials of one workload.
type workloadTrials struct {
	workload result.Workload
	trials   []result.Trial
}

func byWorkload(trials []result.Trial) []workloadTrials {
	var groups []workloadTrials
	for _, t := range trials {
		i := slices.IndexFunc(groups, func(g workloadTrials) bool { return g.workload == t.Workload })
		if i < 0 {
			i, groups = len(groups), append(groups, workloadTrials{workload: t.Workload})
		}
		groups[i].trials = append(groups[i].trials, t)
	}
	return groups
}

func unsafe(trials []result.Trial) string {
	var parts []string
	for _, t := range trials {
		parts = append(parts, t.Unsafe...)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}

// setAside says how much was measured that the numbers do not hold.
func setAside(d Data) []string {
	if d.Replaced == 0 {
		return nil
	}
	return []string{fmt.Sprintf("interrupted and gone on with: %s of blocks that were cut short were set aside, their blocks run again", plural(d.Replaced, "trial"))}
}

// threadsAndRate returns what differs between the workloads of a bench.
func threadsAndRate(w result.Workload) string {
	if w.Rate > 0 {
		return plural(w.Threads, "thread") + ", " + rate(w)
	}
	return plural(w.Threads, "thread")
}

// knee says from how many threads on more of them bring no more throughput; nothing where one number was
// measured.
func knee(d Data) []string {
	var threads []int
	var tps []float64
	for _, g := range byWorkload(d.Trials) {
		rows := stats.RunsOf(d.Arms, g.trials)
		if g.workload.Rate > 0 || len(rows) != 1 || rows[0].TPS == 0 {
			return nil
		}
		threads, tps = append(threads, g.workload.Threads), append(tps, rows[0].TPS)
	}
	if len(threads) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("the knee: %s; more bring latency and no throughput that could be told from noise (within %.0f %% of the most)",
		plural(stats.Knee(threads, tps), "thread"), 100*stats.RestartNoise)}
}

// repeats says how many runs stand behind each number of a bench.
func repeats(d Data) []string {
	var list []string
	for _, g := range byWorkload(d.Trials) {
		for _, r := range stats.RunsOf(d.Arms, g.trials) {
			if r.Trials > 0 {
				list = append(list, fmt.Sprintf("%s: %s transactions/s (%s)", threadsAndRate(g.workload),
					number(r.TPS), strings.Join(r.Warnings, "; ")))
			}
		}
	}
	return list
}
