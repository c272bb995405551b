package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"david/internal/result"
)

// equivalenceLevel sets the level of each of the two one-sided tests; the interval that goes with it is the
// one of 1 - 2 * level, 90 %.
const equivalenceLevel = 0.05

// The verdicts of an equivalence test, beside Faster and Slower.
const (
	Equivalent Verdict = "equivalent"
	Undecided  Verdict = "undecided"
)

// Equivalence holds the test whether a ratio is 1 but for a margin: two one-sided t tests of the mean
// logarithm of paired ratios, one against the margin's lower end and one against its upper one, at 5 % each
// (Schuirmann, A comparison of the two one-sided tests procedure and the power approach for assessing the
// equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). Both
// reject exactly where the 90 % interval lies within the margin.
type Equivalence struct {
	N int `json:"n"` // pairs
	// Margin sets how far from 1 a ratio may be and still count as the same: from 1 - Margin to 1 / (1 -
	// Margin), alike to either side in logarithms.
	Margin     float64  `json:"margin"`
	Ratio      float64  `json:"ratio"`
	Interval90 Interval `json:"interval_90"`
	Interval95 Interval `json:"interval_95"`
	// P of a ratio at or below the margin's lower end, and at or above its upper end.
	PLower  float64 `json:"p_lower"`
	PUpper  float64 `json:"p_upper"`
	Verdict Verdict `json:"verdict"`
}

// TOST tests paired ratios against a margin, as 0.03 of 3 %. Its verdict is
//
//	Equivalent   both tests reject: the 90 % interval lies within the margin
//	Slower       they do not, and the 95 % interval lies below 1
//	Faster       they do not, and the 95 % interval lies above 1
//	Undecided    neither
//	Invalid      fewer than two pairs, a ratio that is not positive, or a margin that is not between 0 and 1
func TOST(ratios []float64, margin float64) Equivalence {
	e := Equivalence{N: len(ratios), Margin: margin, Verdict: Invalid, PLower: 1, PUpper: 1}
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		if !(r > 0) || math.IsInf(r, 1) {
			return e
		}
		logs[i] = math.Log(r)
	}
	if len(logs) < 2 || !(margin > 0 && margin < 1) {
		return e
	}
	mean, se := Mean(logs), StdDev(logs)/math.Sqrt(float64(len(logs)))
	t := distuv.StudentsT{Sigma: 1, Nu: float64(len(logs) - 1)}
	limit := e.limit()
	e.Ratio = math.Exp(mean)
	e.Interval90, e.Interval95 = around(mean, t.Quantile(1-equivalenceLevel)*se), around(mean, tQuantile(float64(len(logs)-1))*se)
	e.PLower, e.PUpper = oneSided(t, mean+limit, se), oneSided(t, limit-mean, se)
	e.Verdict = e.judge()
	return e
}

// limit returns how far the logarithm of a ratio may be from 0.
func (e Equivalence) limit() float64 { return -math.Log1p(-e.Margin) }

// oneSided returns the p of a difference at or below 0, where it was seen to be so far above.
func oneSided(t distuv.StudentsT, above, se float64) float64 {
	switch {
	case se > 0:
		return t.Survival(above / se)
	case above > 0:
		return 0
	}
	return 1
}

func (e Equivalence) judge() Verdict {
	switch {
	case max(e.PLower, e.PUpper) < equivalenceLevel:
		return Equivalent
	case e.Interval95[1] < 1:
		return Slower
	case e.Interval95[0] > 1:
		return Faster
	}
	return Undecided
}

// Beyond tells whether the whole 95 % interval lies outside of the margin.
func (e Equivalence) Beyond() bool {
	limit := math.Exp(e.limit())
	return e.Verdict != Invalid && (e.Interval95[1] < 1/limit || e.Interval95[0] > limit)
}

// Paired holds the ratio of one figure between an arm and the control, block by block.
type Paired struct {
	Ratio    float64  `json:"ratio"`    // geometric mean; 0 where there is none
	Interval Interval `json:"interval"` // 95 % t interval
	Pairs    int      `json:"pairs"`
}

// Tax tells what an arm costs beside the control, in an experiment that asks whether they are equivalent.
// Each ratio is the arm's figure over the control's.
type Tax struct {
	Throughput Equivalence `json:"throughput"`
	P95        Paired      `json:"p95"`
	P99        Paired      `json:"p99"`
	ServerCPU  Paired      `json:"server_cpu"` // of one transaction
}

// tax compares an arm's figures with the control's. Its throughput is that of the arm's ratios, which are
// there already.
func (b blocks) tax(r *Arm, s *armSample) {
	r.Tax = &Tax{
		Throughput: b.equivalence(r, s),
		P95:        b.paired(s, p95),
		P99:        b.paired(s, p99),
		ServerCPU:  b.paired(s, serverCPU),
	}
	if r.Verdict == Invalid {
		r.Tax.Throughput.Verdict = Invalid
	}
}

// equivalence returns the test of an arm's throughput: of slices by the model of their rounds, whose
// probabilities stand for the tests' p.
func (b blocks) equivalence(r *Arm, s *armSample) Equivalence {
	if !b.sliced {
		return TOST(r.Ratios, b.margin)
	}
	x := FromRounds(b.rounds(s, b.metric.Worth))
	e := Equivalence{N: x.Rounds, Margin: b.margin, Ratio: x.Ratio, Interval90: x.Interval90, Interval95: x.Interval, Verdict: Invalid, PLower: 1, PUpper: 1}
	if x.posterior != nil {
		e.PLower, e.PUpper = x.posterior.below(-e.limit()), 1-x.posterior.below(e.limit())
		e.Verdict = e.judge()
	}
	return e
}

// paired returns the ratio of a figure of an arm's trials to the control's, by block.
func (b blocks) paired(s *armSample, value func(result.Trial) float64) Paired {
	if b.sliced {
		x := FromRounds(b.rounds(s, value))
		return Paired{Ratio: x.Ratio, Interval: x.Interval, Pairs: x.Rounds}
	}
	var logs []float64
	control := b.samples[b.name].logs(value)
	for block, x := range byBlock(s.logs(value)) {
		if y, ok := control[block]; ok {
			logs = append(logs, x-y)
		}
	}
	mean, half, _ := tInterval(logs)
	p := Paired{Pairs: len(logs)}
	if p.Pairs > 0 {
		p.Ratio = math.Exp(mean)
	}
	if p.Pairs > 1 {
		p.Interval = around(mean, half)
	}
	return p
}

// serverCPU tells what a trial's transaction took of the server's CPU, in microseconds; 0 where that is not
// known.
func serverCPU(t result.Trial) float64 {
	if t.Costs.ServerCPU == nil {
		return 0
	}
	return *t.Costs.ServerCPU
}
