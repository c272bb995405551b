package search

import (
	"fmt"
	"math"
)

// Observation tells what one trial says about a point: ln(its throughput / that of the incumbent's trial
// beside it).
type Observation struct {
	Point    Point
	Against  Point   // the incumbent of that trial
	LogRatio float64 // meaningless where Infeasible
	SE       float64 // standard error of LogRatio: the noise of both trials; positive
	// Reference numbers the incumbent's trial. Observations with the same number share its noise: half of
	// their variance.
	Reference  int
	Infeasible string // why it could not be measured: did not start, killed for memory, timed out; in the server's words
}

// Check tells what is wrong with an observation in that space.
func (o Observation) Check(s Space) error {
	if !s.holds(o.Point) || !s.holds(o.Against) {
		return fmt.Errorf("cannot use an observation of %v against %v: not points of the space", o.Point, o.Against)
	}
	if o.Infeasible != "" {
		return nil
	}
	if !(o.SE > 0) || math.IsInf(o.SE, 0) || math.IsNaN(o.LogRatio) || math.IsInf(o.LogRatio, 0) {
		return fmt.Errorf("cannot use a log-ratio of %v with a standard error of %v at %v: both have to be finite, the error above 0", o.LogRatio, o.SE, o.Point)
	}
	return nil
}

// Estimate tells what all observations together say about a point. Gain is ln(its throughput / that of the
// start), SE how sure that is: the standard deviation of what the surrogate holds possible.
type Estimate struct {
	Point Point
	Gain  float64
	SE    float64
}

// Best returns the point of those observed, or the start, that the surrogate holds the best. It never is the
// best single trial only because its noise was lucky: its neighbours have a say.
func Best(s Space, history []Observation) Estimate {
	return fit(s, history).best(s.Start)
}

// Gains returns ln(throughput of a point / that of the start), as the surrogate of all observations has it;
// -Inf for a point that cannot be run.
func Gains(s Space, history []Observation) func(Point) float64 {
	m := fit(s, history)
	gain := m.gains(s.Start)
	return func(p Point) float64 {
		if m.refused[key(p)] {
			return math.Inf(-1)
		}
		mean, _ := gain(p)
		return mean
	}
}

// Remeasure tells whether the incumbent has to be measured before the next point: where that never happened
// (incumbent is nil), or so many trials ago that the machine may have drifted, and the noise of its last
// trial is in all that followed. What is run then is Best: where that is another point than the incumbent, it
// becomes the incumbent, and the trial is one more observation of it against the old one's.
func Remeasure(incumbent Point, since int) bool { return incumbent == nil || since >= stale }

// stale sets after how many trials the incumbent is measured again.
const stale = 8
