package stats

import (
	"math"

	"david/internal/result"
)

// LightSpeed tells how near an arm comes to its ceiling under one workload. Numbers are 0 where there are
// none; Why says then what is missing.
type LightSpeed struct {
	Workload result.Workload `json:"workload"`
	Arm      string          `json:"arm"`
	Ceiling  string          `json:"ceiling"` // the name of the unsafe arm
	// TPS and CeilingTPS are in transactions/s: the geometric means over the blocks in which both are valid,
	// and over all where none is.
	TPS             float64  `json:"tps"`
	TPSInterval     Interval `json:"tps_interval"`
	CeilingTPS      float64  `json:"ceiling_tps"`
	CeilingInterval Interval `json:"ceiling_tps_interval"`
	// Share is the arm's throughput over the ceiling's: 0.72 is "72 % of the unsafe upper limit". Interval is its 95 % t
	// interval, over the log-ratios of Pairs blocks; zero with fewer than two.
	Share    float64  `json:"share"`
	Interval Interval `json:"interval"`
	Pairs    int      `json:"pairs"`
	Why      string   `json:"why,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// LightSpeeds holds each arm that has a ceiling against it, workload by workload, in the order of their first
// trials. A ceiling without any trial has one entry, which says why. Trials count where all their gates hold.
func LightSpeeds(arms []result.Arm, trials []result.Trial) []LightSpeed {
	var list []LightSpeed
	for _, a := range arms {
		if !a.Ceiling {
			continue
		}
		for _, own := range perWorkload(a, trials) {
			list = append(list, lightSpeed(a, own))
		}
	}
	return list
}

// perWorkload returns the trials of each workload that the ceiling was measured under; one empty list where
// it was not.
func perWorkload(ceiling result.Arm, trials []result.Trial) [][]result.Trial {
	at := map[result.Workload]int{}
	var groups [][]result.Trial
	for _, t := range trials {
		if t.Arm == ceiling.Name {
			if _, seen := at[t.Workload]; !seen {
				at[t.Workload], groups = len(groups), append(groups, nil)
			}
		}
	}
	for _, t := range inOrder(append([]result.Trial{}, trials...)) {
		if i, ok := at[t.Workload]; ok {
			groups[i] = append(groups[i], t)
		}
	}
	if len(groups) == 0 {
		groups = [][]result.Trial{nil}
	}
	return groups
}

func lightSpeed(ceiling result.Arm, trials []result.Trial) LightSpeed {
	l := LightSpeed{Arm: ceiling.Base, Ceiling: ceiling.Name}
	if len(trials) > 0 {
		l.Workload = trials[0].Workload
	}
	samples := collect([]result.Arm{ceiling, {Name: ceiling.Base}}, trials)
	own, limit := samples[ceiling.Base], samples[ceiling.Name]
	if len(limit.valid) == 0 {
		_, l.Why = unmeasured(ceiling, limit)
		return l
	}
	l.Warnings = append(counted(limit.invalid, "of the unsafe upper limit"), counted(own.invalid, "of "+l.Arm)...)
	logs := paired(own, limit)
	if l.Pairs = len(logs); l.Pairs > 0 { // what stands beside the share must give it
		own, limit = own.within(limit), limit.within(own)
	}
	l.CeilingTPS, l.CeilingInterval = limit.mean(tps)
	l.TPS, l.TPSInterval = own.mean(tps)
	if l.Pairs == 0 {
		l.Why = "no block has a valid run both of " + l.Arm + " and of the unsafe upper limit"
		return l
	}
	mean, half, _ := tInterval(logs)
	if l.Share = math.Exp(mean); l.Pairs > 1 {
		l.Interval = around(mean, half)
	}
	if l.Share > 1 {
		l.Warnings = append(l.Warnings, "above 100 %: durability and the disk cost less here than runs differ by")
	}
	return l
}

// paired returns the log-ratios of two samples in the blocks that have both.
func paired(own, other *armSample) []float64 {
	var logs []float64
	theirs := other.logs(tps)
	for block, x := range byBlock(own.logs(tps)) {
		if y, ok := theirs[block]; ok {
			logs = append(logs, x-y)
		}
	}
	return logs
}

// within returns the valid trials in blocks in which other has some too.
func (s *armSample) within(other *armSample) *armSample {
	in, theirs := &armSample{}, other.logs(tps)
	for _, t := range s.valid {
		if _, ok := theirs[t.Block]; ok {
			in.valid = append(in.valid, t)
		}
	}
	return in
}

func counted(invalid []string, of string) []string {
	if len(invalid) == 0 {
		return nil
	}
	return []string{"left out " + count(len(invalid), "invalid run") + " " + of + ": " + invalid[0]}
}
