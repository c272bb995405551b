package cli

import (
	"fmt"
	"math"
	"strings"

	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// studyResult holds what was measured here of an arm of a study.
type studyResult struct {
	text     string // where not "", that is all
	noop     bool
	trials   []result.Trial // valid ones
	compared stats.Arm
}

// figures makes rows of a study's published numbers, with those measured here beside them where there are
// any.
func figures(st spec.Study, here map[string]studyResult) [][]string {
	head := []string{"", "published"}
	if len(here) > 0 {
		head = append(head, "here")
	}
	rows := [][]string{head}
	for _, p := range st.Published {
		row := []string{p.What, withUnit(fmt.Sprintf("%.10g", p.Value), p.Unit)}
		if len(here) > 0 {
			row = append(row, measuredFigure(p, here[p.Arm]))
		}
		rows = append(rows, row)
	}
	return rows
}

func withUnit(value, unit string) string { return strings.TrimSpace(value + " " + unit) }

// measuredFigure says what was measured here of a figure: a mean of the valid trials, or a ratio with its
// interval.
func measuredFigure(p spec.Figure, arm studyResult) string {
	switch {
	case arm.text != "":
		return arm.text
	case p.Of == "ratio" && arm.noop:
		return "no-op: no effective variable differs, not run"
	case p.Of == "ratio" && arm.compared.Pairs == 1:
		return fmt.Sprintf("%.2f x (1 block, no interval): %s", arm.compared.Ratio, arm.compared.Verdict)
	case p.Of == "ratio" && arm.compared.Pairs > 1:
		c := arm.compared
		return fmt.Sprintf("%.2f x (%.2f to %.2f, %s): %s", c.Ratio, c.Interval[0], c.Interval[1], pluralise(c.Pairs, "block"), c.Verdict)
	case p.Of == "" || p.Of == "ratio" || len(arm.trials) == 0:
		return "-"
	}
	return withUnit(fmt.Sprintf("%.2f", mean(arm.trials, p.Of)), p.Unit) + " (" + pluralise(len(arm.trials), "run") + ")"
}

// mean takes that of a figure of trials; of the least and the most latency it is the least and the most.
func mean(trials []result.Trial, of string) float64 {
	sum, least, most := 0.0, math.Inf(1), 0.0
	for _, t := range trials {
		sum += map[string]float64{"tps": t.TPS, "qps": t.QPS, "avg": t.Latency.Avg, "p95": t.Latency.P95}[of]
		least, most = min(least, t.Latency.Min), max(most, t.Latency.Max)
	}
	switch of {
	case "min":
		return least
	case "max":
		return most
	}
	return sum / float64(len(trials))
}

// studyResults looks up what the newest run of each of a study's experiments measured, by arm; of an arm that
// is in several, what the first says.
func (a *app) studyResults(st spec.Study) (map[string]studyResult, error) {
	list, err := result.List(a.home)
	if err != nil {
		return nil, err
	}
	here := map[string]studyResult{}
	for _, s := range st.Specs {
		for _, sum := range list {
			if sum.Kind != result.KindStudy || sum.Err != "" {
				continue
			}
			store, err := result.Open(sum.Dir)
			if err != nil {
				return nil, err
			}
			if store.Experiment().Title == s.Title {
				if err := addStudyResults(here, store); err != nil {
					return nil, err
				}
				break
			}
		}
	}
	return here, nil
}

// addStudyResults adds an experiment's arms, under its first workload.
func addStudyResults(here map[string]studyResult, store *result.Store) error {
	arms, err := store.Arms()
	if err != nil {
		return err
	}
	trials, _, err := store.Figures()
	if err != nil {
		return err
	}
	list := stats.Compare(store.Experiment().Design, arms, trials)
	for _, arm := range arms {
		if _, known := here[arm.Name]; known {
			continue
		}
		h := studyResult{noop: arm.Noop}
		for _, t := range trials {
			if ok, _ := t.Valid(); ok && t.Arm == arm.Name && t.Workload == store.Experiment().Workloads[0] {
				h.trials = append(h.trials, t)
			}
		}
		if len(list) > 0 {
			h.compared = list[0].Of(arm.Name)
		}
		here[arm.Name] = h
	}
	return nil
}
