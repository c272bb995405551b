package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"david/internal/host"
	"david/internal/live"
	"david/internal/relay"
	"david/internal/result"
	"david/internal/workload"
)

// tuneGrace is how long a live tune that is stopped has to set back the step it is watching: it tries to reach a lost server for two minutes.
const tuneGrace = 150 * time.Second

// checkPod refuses what does not go with a pod.
func (f *tuneFlags) checkPod(fs *pflag.FlagSet) error {
	if err := f.pod.check(fs, benchFlags{dsn: f.live.dsn, defaultsFile: f.live.defaultsFile}); err != nil {
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

// tunePod plans for a server that is a pod and, with --apply, carries the plan out: david tune --dsn as a Job beside it.
func (a *app) tunePod(ctx context.Context, f tuneFlags) (err error) {
	if _, err := f.p95(); err != nil {
		return err
	}
	var loads []result.Workload
	if f.live.load {
		load, err := f.ownWorkload()
		if err != nil {
			return err
		}
		loads = append(loads, load)
	}
	p := newProgress(a.err)
	defer p.end()
	s, err := a.findPod(ctx, f.pod, p)
	if err != nil {
		return err
	}
	if f.pod.deadline == 0 {
		f.pod.deadline = f.tuneAllowance()
	}
	e := newExperiment(a, result.KindLive, loads, workload.Sysbench{})
	e.Target, e.Pod, e.Server = "pod", s.facts(), result.Server{Address: s.address}
	if e.Host, err = host.Read(ctx, existing(a.home)); err != nil {
		return err
	}
	began := time.Now()
	c := &carrier{podSession: s, experiment: e, progress: p, home: a.home, grace: tuneGrace, uncounted: true}
	ran := c.run(ctx, f.pod, f.podArgs(s.server))
	p.end()
	return errors.Join(a.showTune(c, f.json), c.finishTune(began), ran)
}

// tuneAllowance is how long the Job may take: a window before the first step and two, where the guard wants a longer one, after each.
func (f tuneFlags) tuneAllowance() time.Duration {
	const steps = 6
	all := jobSlack + (1+2*steps)*f.live.watch + tuneGrace
	if f.live.load {
		all += f.warmup + time.Duration(int64(f.tables)*int64(f.tableSize)/rowsASecond)*time.Second
	}
	return all
}

// podArgs are the arguments of the david in the client's container. The server's hardware is what the pod may use, not what its node has.
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
func (a *app) showTune(c *carrier, asJSON bool) error {
	if c.tune == nil {
		return nil
	}
	var doc liveDocument
	if err := json.Unmarshal(c.tune, &doc); err != nil {
		return fmt.Errorf("cannot read what the client in the cluster planned: %w", err)
	}
	if c.store != nil {
		doc.Dir = c.store.Dir()
	}
	doc.Notes = append(doc.Notes, "what takes a restart, and what is to outlive one, belongs into the pod's ConfigMap: david manifest renders it")
	if asJSON {
		return a.printJSON(doc)
	}
	if err := a.printLive(doc, false); err != nil || doc.Run == nil {
		return err
	}
	fmt.Fprintln(a.out)
	printOutcome(a.out, *doc.Run)
	if c.store != nil && doc.changed() {
		fmt.Fprintf(a.err, "david: a restart of the pod undoes what was changed; before that david rollback %s --dsn USER@tcp(HOST:PORT)/ does, through kubectl port-forward\n", c.store.Dir())
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

// finishTune closes the record of what was changed; one that was interrupted stays open.
func (c *carrier) finishTune(began time.Time) error {
	if c.store == nil || !c.reader.Ended() {
		return nil
	}
	return c.finish(began)
}

// tuneRelayed is david tune --dsn in a pod: what it prints and what it leaves go to the log.
func (a *app) tuneRelayed(ctx context.Context, f tuneFlags) error {
	w := relay.NewWriter(a.out)
	var printed bytes.Buffer
	inner := *a
	inner.out = &printed
	err := inner.tuneLive(ctx, f)
	if sent := sendTune(w, printed.Bytes()); sent != nil {
		return errors.Join(err, sent)
	}
	end := relay.Document{End: true}
	if err != nil {
		end.Failed, end.Code = err.Error(), exitCode(err)
	}
	return errors.Join(err, w.Write(end))
}

// sendTune sends a live tune's document and, where it made one, the record of its changes.
func sendTune(w *relay.Writer, printed []byte) error {
	if len(bytes.TrimSpace(printed)) == 0 {
		return nil
	}
	var doc struct {
		Dir string `json:"dir"`
	}
	if err := json.Unmarshal(printed, &doc); err != nil {
		return err
	}
	if doc.Dir == "" {
		return w.Write(relay.Document{Tune: printed})
	}
	store, err := result.Open(doc.Dir)
	if err != nil {
		return err
	}
	e, files := store.Experiment(), map[string]string{}
	for _, name := range []string{live.RecordFile, "load.log"} {
		f, err := os.Open(filepath.Join(doc.Dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var text strings.Builder
		_, err = io.Copy(&text, io.LimitReader(f, mostLog))
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		files[name] = text.String()
	}
	return errors.Join(w.Write(relay.Document{Experiment: &e}), w.Write(relay.Document{Files: files}), w.Write(relay.Document{Tune: printed}))
}
