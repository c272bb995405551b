package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"david/internal/host"
	"david/internal/live"
	"david/internal/podrun"
	"david/internal/result"
	"david/internal/workload"
)

// checkPod refuses what does not go with a pod.
func (f *tuneFlags) checkPod(fs *pflag.FlagSet) error {
	if err := f.pod.check(fs, benchFlags{serverFlags: f.live.serverFlags}); err != nil {
		return err
	}
	switch {
	case f.pod.asked() && f.live.persist:
		return usage("--persist: a pod's settings belong into its ConfigMap (david manifest): SET PERSIST would write them into its volume, and win over the ConfigMap from then on")
	case f.pod.clients > 1:
		return usage("--clients is for david bench")
	}
	return nil
}

// tunePod plans for a server that is a pod and, with --apply, carries the plan out: david tune --dsn as a Job
// beside it.
func (a *app) tunePod(ctx context.Context, f tuneFlags) (err error) {
	if _, err := f.p95(); err != nil {
		return err
	}
	var loads []result.Workload
	var load *result.Workload
	if f.live.load {
		own, err := f.syntheticWorkload()
		if err != nil {
			return err
		}
		loads, load = []result.Workload{own}, &own
	}
	a.generous()
	p := newProgress(a.err, a.verbose)
	defer p.end()
	if f.pod.deadline == 0 {
		f.pod.deadline = podrun.TuneDeadline(f.live.watch, load)
	}
	r, err := a.podRequest(ctx, f.pod, p)
	if err != nil {
		return err
	}
	e := a.lab().NewExperiment(result.KindLive, loads, workload.Sysbench{})
	if e.Host, err = host.Read(ctx, a.home); err != nil {
		return err
	}
	r.Args, r.Every, r.Experiment = f.podArgs(r.Server.Container), f.live.deadlineArgs(), e
	tuned, ran := podrun.Tune(ctx, r)
	p.end()
	return errors.Join(a.showTune(tuned, f.json), f.pod.waited(ran))
}

// podArgs tell the david in the client's container what to do, and that the server has the hardware its pod
// may use, not that of the node.
func (f tuneFlags) podArgs(server corev1.Container) []string {
	args := []string{"tune", "--relay", "--json", "--max-p95=" + f.maxP95}
	limits := server.Resources.Limits
	memory, cpus := f.memory, f.cpus
	if q, ok := limits[corev1.ResourceMemory]; ok && memory == "" {
		memory = fmt.Sprint(q.Value())
	}
	if q, ok := limits[corev1.ResourceCPU]; ok && cpus == "" {
		cpus = fmt.Sprint(q.AsApproximateFloat64())
	}
	for _, flag := range []struct{ name, value string }{{"memory", memory}, {"cpus", cpus}, {"iops", f.iops}, {"free-disk", f.live.freeDisk}} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	if !f.live.apply {
		return args
	}
	args = append(args, "--apply", fmt.Sprintf("--watch=%s", f.live.watch))
	if f.live.load {
		args = append(args, "--load", "--workload="+f.loadFlags.workload, "--rand-type="+f.randType, "--threads="+f.threads, fmt.Sprintf("--tables=%d", f.tables),
			fmt.Sprintf("--table-size=%d", f.tableSize), fmt.Sprintf("--rate=%g", f.rate), fmt.Sprintf("--warmup=%s", f.warmup))
	}
	return args
}

// showTune prints what the client planned and did.
func (a *app) showTune(tuned podrun.Tuned, asJSON bool) error {
	if tuned.Document == nil {
		return nil
	}
	var doc liveDocument
	if err := json.Unmarshal(tuned.Document, &doc); err != nil {
		return fmt.Errorf("cannot read what the client in the cluster planned: %w", err)
	}
	if tuned.Store != nil {
		doc.Dir = tuned.Store.Dir()
	}
	doc.Notes = append(doc.Notes, "what takes a restart, and what is to outlive one, belongs into the pod's ConfigMap: david manifest renders it")
	if asJSON {
		return a.printJSON(doc)
	}
	if err := a.printLive(doc, false); err != nil || doc.Run == nil {
		return err
	}
	fmt.Fprintln(a.out)
	if tuned.Store != nil {
		if err := a.printLiveRun(tuned.Store); err != nil {
			return err
		}
	}
	if tuned.Store != nil && doc.changed() {
		a.remark("a restart of the pod undoes what was changed; before that david rollback %s --dsn USER@tcp(HOST:PORT)/ does, through kubectl port-forward", doc.Dir)
	}
	return nil
}

// changed tells whether a step was kept.
func (d liveDocument) changed() bool {
	for _, s := range d.Run.Steps {
		if s.Kept {
			return true
		}
	}
	return false
}

// tuneRelayed runs david tune --dsn in a pod: what it prints and what it leaves go to the log.
func (a *app) tuneRelayed(ctx context.Context, f tuneFlags) error {
	var printed bytes.Buffer
	inner := *a
	inner.out = &printed
	err := inner.tuneLive(ctx, f)
	sent := podrun.SendTune(a.out, printed.Bytes(), []string{live.RecordFile, result.LiveTuneFile, "load.log"}, err, exitCode(err))
	return errors.Join(err, sent)
}
