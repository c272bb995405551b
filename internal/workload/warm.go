package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"david/internal/result"
)

// Warm puts the workload's load on a server before it is measured, in a run of its own, so that it can end
// when the server has settled. After every second settled, which may be nil, gets the points so far; the run
// is stopped as soon as it says yes, at the latest after w.Warmup seconds, and settledOK is whether it did.
// onPoint, which may be nil, gets every second as it is printed. With a warm-up of 0 nothing is run.
//
// sysbench is stopped by a signal in the midst of its transactions: the server rolls them back as it notices,
// which may be a moment after Warm has returned. seconds is how long the load was on. The error is like
// Run's; what was seen up to then is returned with it.
func Warm(ctx context.Context, t Target, w result.Workload, settled func([]result.Point) bool, onPoint func(result.Point)) (points []result.Point, seconds float64, settledOK bool, err error) {
	if err := Validate(w); err != nil || w.Warmup == 0 {
		return nil, 0, false, err
	}
	u := warmUp{limit: w.Warmup, settled: settled, onPoint: onPoint}
	err = t.execute(ctx, runArgs(t.Addr, w, w.Warmup+spare), t.patience(w.Warmup+spare), u.line)
	seconds = u.last.Sub(u.began).Seconds()
	if err == nil && !u.over {
		err = errors.New("sysbench ended before the warm-up was over")
	}
	if err = t.asWhom(explain(err, u.parser.Output())); err != nil {
		err = fmt.Errorf("cannot warm up %s on %s: %w", w.Name, t.Addr, err)
	}
	return u.points, seconds, u.done, err
}

// spare says by how many seconds the time sysbench is given exceeds that of the warm-up, so that it is always
// david who ends it.
const spare = 60

// warmUp follows a warm-up line by line.
type warmUp struct {
	limit      int // seconds
	settled    func([]result.Point) bool
	onPoint    func(result.Point)
	parser     Parser
	points     []result.Point
	began      time.Time // of the threads
	last       time.Time // line since then
	done, over bool      // settled said yes; the process was told to stop
}

func (u *warmUp) line(line string) error {
	if u.over { // printed before it heard of it
		return nil
	}
	point, err := u.parser.Line(line)
	if u.parser.out.Started {
		u.last = time.Now()
	}
	if u.began.IsZero() {
		u.began = u.last
	}
	if err != nil || point == nil {
		return err
	}
	point.Warm = true
	u.points = append(u.points, *point)
	if u.onPoint != nil {
		u.onPoint(*point)
	}
	u.done = u.settled != nil && u.settled(u.points)
	if u.over = u.done || point.Second >= u.limit; u.over {
		return errEnough
	}
	return nil
}
