package experiment

import (
	"context"
	"errors"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/workload"
)

// Loaded puts a workload on a fresh server of an arm, and calls look when it has ended and before the server
// is shut down. What it measures is nobody's: logs go to the folder.
func Loaded(ctx context.Context, t Target, sysbench workload.Sysbench, arm result.Arm, load result.Workload, logs string, look func(mysqld.Addr) error) (err error) {
	s, err := t.Begin(ctx, arm, load, logs+"/server.log")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.End(context.WithoutCancel(ctx))) }()
	if err := s.Throttle(true); err != nil {
		return err
	}
	target := s.Load()
	target.Sysbench, target.Log = sysbench, logs+"/sysbench.log"
	if _, err := workload.Run(ctx, target, load, nil); err != nil {
		return alive(ctx, s, err)
	}
	return look(s.Addr())
}
