package cli

import (
	"context"
	"fmt"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/podrun"
	"david/internal/result"
	"david/internal/workload"
)

// benchPod measures a server that is a pod: as it is, by Jobs beside it that run this same david. What they
// measure comes back trial by trial into the store here. Everything created is removed again.
func (a *app) benchPod(ctx context.Context, f benchFlags, loads []result.Workload) (err error) {
	for _, w := range loads {
		if err := workload.Spreadable(w, f.pod.clients); err != nil {
			return codedError{exitUsage, err}
		}
	}
	defer func() {
		err = endedEarly(ctx, "the trials that came back are kept, and the same command begins a new experiment", err)
	}()
	design, err := f.design()
	if err != nil {
		return err
	}
	if design.MaxSteal, err = a.maxSteal(); err != nil { // what it means, the client notes
		return err
	}
	a.generous()
	p := newProgress(a.err, a.verbose)
	defer p.end()
	if f.pod.deadline == 0 {
		f.pod.deadline = podrun.BenchDeadline(loads, design)
	}
	r, err := a.podRequest(ctx, f.pod, p)
	if err != nil {
		return err
	}
	e := a.lab().NewExperiment(result.KindBench, loads, workload.Sysbench{})
	e.Design = design
	if e.Host, err = host.Read(ctx, a.home); err != nil { // until the client tells its own
		return err
	}
	r.Args, r.Every, r.Experiment = podArgs(f), f.deadlineArgs(), e
	store, err := podrun.Bench(ctx, r)
	if err != nil {
		return lab.Failed(ctx, store, f.pod.waited(err))
	}
	p.end()
	return a.print(store, f.json, "")
}

// endedEarly says of an interrupted bench of a server that is not david's what became of it: unlike a
// sandbox's it is not gone on with.
func endedEarly(ctx context.Context, became string, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return codedError{exitInterrupted, fmt.Errorf("interrupted; %s (%w)", became, err)}
}

// podArgs gives the david in the client's container the same flags, but for where the server is.
func podArgs(f benchFlags) []string {
	args := []string{"bench", "--relay", "-v", "--workload", f.workload, "--rand-type", f.randType, "--threads", f.threads,
		fmt.Sprintf("--tables=%d", f.tables), fmt.Sprintf("--table-size=%d", f.tableSize), fmt.Sprintf("--time=%s", f.time), fmt.Sprintf("--warmup=%s", f.warmup),
		fmt.Sprintf("--rate=%g", f.rate), fmt.Sprintf("--repeat=%d", f.repeat)}
	if f.slo != "" {
		args = append(args, "--slo="+f.slo)
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{{"--steady", f.steady}, {"--force", f.force}, {"--keep", f.keep}} {
		if flag.on {
			args = append(args, flag.name)
		}
	}
	return args
}
