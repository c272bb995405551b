package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"david/internal/lab"
	"david/internal/live"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/workload"
)

// syntheticLoad is put on a running server while david changes it, where --load asks for one.
type syntheticLoad struct {
	lab.Schema
	err io.Writer // progress
}

// longestLoad bounds what sysbench is asked for, in seconds: it is ended when the last step was watched.
const longestLoad = 24 * 3600

// syntheticWorkload checks the flags of david's own load.
func (f tuneFlags) syntheticWorkload() (result.Workload, error) {
	const longest = 2 * time.Hour // so that the load outlasts all windows
	if f.live.watch > longest {
		return result.Workload{}, usage("--watch %s: with --load, watch for %s at most", f.live.watch, longest)
	}
	given := f.loadFlags
	given.time = longestLoad * time.Second
	loads, err := given.workloads()
	if err != nil {
		return result.Workload{}, err
	}
	if len(loads) > 1 {
		return result.Workload{}, usage("--threads %s: the load runs with one number of threads", f.threads)
	}
	return loads[0], nil
}

// newSyntheticLoad makes sure that the server may be loaded, before anything of it is changed. done gives
// back what that took of this machine; it is never nil.
func (a *app) newSyntheticLoad(ctx context.Context, load result.Workload, conn *mysqld.Conn) (s *syntheticLoad, done func() error, err error) {
	done = func() error { return nil }
	sysbench, err := workload.Find(ctx)
	if err != nil {
		return nil, done, err
	}
	if err := lab.Writable(ctx, conn, load.Database); err != nil {
		return nil, done, err
	}
	schema := lab.Schema{Target: workload.Target{Addr: conn.Addr(), Sysbench: sysbench}, Load: load}
	if err := schema.Free(ctx, conn); err != nil {
		return nil, done, err
	}
	private, give, err := a.lab().Take("david tune --load of a remote server")
	if err != nil {
		return nil, done, err
	}
	schema.Target.Dir = private
	return &syntheticLoad{schema, a.err}, give, nil
}

// begin makes the schema and puts the load on the server until it is stopped, which drops the schema again.
// It returns when the warm-up is over.
func (s *syntheticLoad) begin(ctx context.Context) (*live.Load, error) {
	drop, err := s.prepare(ctx)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	fmt.Fprintf(s.err, "loading %s with %s, %d threads; warming up for %d s\n", s.Target.Addr, s.Load.Name, s.Load.Threads, s.Load.Warmup)
	running, stop := context.WithCancel(ctx)
	warm, ended := make(chan struct{}), make(chan struct{})
	end := func() error {
		stop()
		<-ended
		return drop()
	}
	l := live.NewLoad(end)
	var failure error
	go func() {
		defer close(ended)
		failure = s.run(running, l, warm)
		l.End(failure)
	}()
	select {
	case <-warm:
		return l, nil
	case <-ended:
		return nil, errors.Join(failure, end())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), end())
	}
}

// prepare makes the schema as david bench --dsn does. drop, which is never nil, removes it where it is not to
// be kept.
func (s *syntheticLoad) prepare(ctx context.Context) (drop func() error, err error) {
	drop = func() error { return nil }
	conn, err := mysqld.Open(ctx, s.Target.Addr)
	if err != nil {
		return drop, err
	}
	defer conn.Close()
	p := newProgress(s.err, false)
	defer p.end()
	ours, err := s.Prepare(ctx, conn, p.text)
	if ours {
		drop = func() error { return s.Drop(ctx) }
	}
	return drop, err
}

// run runs sysbench, hands on its seconds once they are those of a warm server, and closes warm when they
// begin.
func (s *syntheticLoad) run(ctx context.Context, l *live.Load, warm chan struct{}) error {
	_, err := workload.Run(ctx, s.Target, s.Load, func(p result.Point) {
		if p.Second <= s.Load.Warmup {
			return
		}
		if p.Second == s.Load.Warmup+1 {
			close(warm)
		}
		l.Add(live.Second{Transactions: p.TPS, P95: p.P95})
	})
	return err
}
