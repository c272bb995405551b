package report

import (
	"fmt"

	"david/internal/result"
	"david/internal/stats"
)

// unsafeBaseline holds a baseline as it is shipped, where that is less durable than the control: measured,
// and never in the verdict.
type unsafeBaseline struct {
	Name  string `json:"name"`
	Title string `json:"title"` // says what can be lost
	// Workload and Threads are those of the figures.
	Workload string `json:"workload"`
	Threads  int    `json:"threads"`
	// TPS is in transactions/s, and Ratio that over the control's: means over Pairs blocks; 0 where there are
	// none.
	TPS         float64        `json:"tps"`
	TPSInterval stats.Interval `json:"tps_interval"`
	Ratio       float64        `json:"ratio"`
	Interval    stats.Interval `json:"interval"` // 95 %; zero with fewer than two blocks
	Pairs       int            `json:"pairs"`
	Why         string         `json:"why,omitempty"` // it has no ratio
}

// unsafeBaselines returns those of a race, under each workload.
func unsafeBaselines(d Data) []unsafeBaseline {
	list := []unsafeBaseline{}
	for _, l := range stats.LightSpeeds(d.Arms, d.Trials) {
		s := unsafeBaseline{Name: l.Ceiling, Title: titleOf(d.Arms, l.Ceiling), Workload: l.Workload.Name, Threads: l.Workload.Threads,
			TPS: l.CeilingTPS, TPSInterval: l.CeilingInterval, Pairs: l.Pairs, Why: l.Why}
		if l.Share > 0 {
			s.Ratio = 1 / l.Share
		}
		if l.Interval[0] > 0 {
			s.Interval = stats.Interval{1 / l.Interval[1], 1 / l.Interval[0]}
		}
		list = append(list, s)
	}
	return list
}

func titleOf(arms []result.Arm, name string) string {
	for _, a := range arms {
		if a.Name == name {
			return a.Title
		}
	}
	return ""
}

// unsafeBaselineLines say how fast the unsafe ones were, and what that would cost.
func unsafeBaselineLines(list []unsafeBaseline) []string {
	var lines []string
	for _, s := range list {
		line := s.Name + " (unsafe, no verdict): "
		if s.Ratio == 0 {
			line += s.Why
		} else {
			line += fmt.Sprintf("%s transactions/s, %sx the control's%s", brief(s.TPS)+tpsSpread(s.TPSInterval), fixed(s.Ratio, 2), unsafeBaselineSpread(s))
		}
		lines = append(lines, line+"; "+s.Title)
	}
	return lines
}

func unsafeBaselineSpread(s unsafeBaseline) string {
	if s.Interval == (stats.Interval{}) {
		return " (1 run, no interval)"
	}
	return fmt.Sprintf(" (95 %% interval %s to %s, %s)", fixed(s.Interval[0], 2), fixed(s.Interval[1], 2), plural(s.Pairs, "block"))
}
