package explain

import (
	"errors"

	"david/internal/result"
)

// Prediction holds what the commit-path model says of a trial from the limits that were probed, beside what
// was measured.
type Prediction struct {
	CommitPrediction
	// Error is predicted over measured throughput, less 1: 0.1 is 10 % too much.
	Error float64 `json:"error"`
	Why   string  `json:"why,omitempty"` // nothing could be predicted
}

// CommitOf returns the commit path's input of a trial: what its transactions cost, on that arm, with those
// limits. It is an error where the costs are not known.
func CommitOf(l result.Limits, arm result.Arm, t result.Trial) (CommitInput, error) {
	c := t.Costs
	if c.ServerCPU == nil || c.ClientCPU == nil || t.TPS <= 0 {
		return CommitInput{}, errors.New("cannot predict: the CPU time of a transaction is not known")
	}
	on := func(name, want string) bool { return arm.Effective[name] == want }
	in := CommitInput{Limits: l, Threads: t.Workload.Threads, Caps: arm.Caps, ServerCPU: *c.ServerCPU, ClientCPU: *c.ClientCPU, Trips: t.QPS / t.TPS,
		Redo: on("innodb_flush_log_at_trx_commit", "1"), Binlog: on("log_bin", "ON") && on("sync_binlog", "1")}
	if t.Transactions > 0 {
		n := float64(t.Transactions)
		in.Reads = t.Counters["innodb_buffer_pool_reads"] / n
		in.Writes = t.Counters["innodb_pages_written"] / n
	}
	return in, nil
}

// predicted holds the model against the trial; nil without limits, or where the load is no closed loop.
func (t dividedTrial) predicted() *Prediction {
	if t.Probed == nil || t.Trial.Workload.Rate > 0 || t.Trial.TPS <= 0 {
		return nil
	}
	in, err := CommitOf(*t.Probed, t.Arm, t.Trial)
	if err != nil {
		return &Prediction{Why: err.Error()}
	}
	p, err := PredictCommit(in)
	if err != nil {
		return &Prediction{Why: err.Error()}
	}
	return &Prediction{CommitPrediction: p, Error: p.TPS/t.Trial.TPS - 1}
}

// text returns the prediction in a sentence.
func (p Prediction) text(measured float64) string {
	if p.Why != "" {
		return "prediction: " + p.Why
	}
	return say("from the probed limits: %.1f transactions/s predicted, %.1f measured (the prediction is off by %+.0f %%); the ceiling is %.1f, by %s", p.TPS,
		measured, 100*p.Error, p.Ceiling, p.Binds)
}

// probed returns the limits that the probe of the data's device found.
func probed(l result.Limits) (out Limits) {
	if read, ok := l.Find(result.RandomRead, 32); ok {
		out.ReadIOPS = read.IOPS.Value
	}
	if write, ok := l.Find(result.RandomWrite, 32); ok {
		out.WriteIOPS = write.IOPS.Value
	}
	if write, ok := l.Find(result.Write, 8); ok {
		out.Bandwidth = write.MB.Value * 1e6
	}
	return out
}
