// Package podrun runs david's clients in a cluster, beside a server that is a pod, and brings what they
// measure into a store here.
//
//	Find (the server's pod) -> Bench or Tune: create a Job for each client -> follow the first one's log ->
//	store each document as it comes -> remove the Jobs
//
// In the container the same david runs: Send and SendTune write what it measures to its log. Where a load is
// spread over several clients, the first prepares the data and waits for the others by Join, and each of them
// does its share by Work.
package podrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/kube"
	"david/internal/podjob"
	"david/internal/result"
)

// Request says what to run, on which server, by which clients.
type Request struct {
	Cluster *kube.Cluster
	Server  Server
	Clients Clients
	Args    []string // of the first client's david: its command with its flags; the server's address is added
	Every   []string // further flags of every client's
	// Experiment has what is known before the clients run. Where it runs, the pod and the server are added.
	Experiment result.Experiment
	Home       string            // of david, where the record goes
	Say        func(text string) // takes progress
}

// Clients says how the clients run.
type Clients struct {
	Count       int    // the load's threads are spread over so many; 1 at least
	Image, Node string // Node "": any but the server's, where there is another
	HostNetwork bool   // they are in their node's network
	User        string // of the server; "": none is logged in to
	Secret, Key string // of its password
	CPU, Memory resource.Quantity
	Env         []corev1.EnvVar
	Deadline    time.Duration // ends their Jobs
}

// TuneGrace gives a live tune that is stopped the time to set back the step it is watching: it tries to reach
// a lost server for two minutes.
const TuneGrace = 150 * time.Second

// Bench measures a server and returns the store with the record. On an error the store, nil where none was
// made, holds the trials that came back, and its record stays open.
func Bench(ctx context.Context, r Request) (*result.Store, error) {
	j := newRunner(r)
	var err error
	j.store, err = result.Create(filepath.Join(r.Home, "experiments", j.experiment.ID), j.experiment)
	if err != nil {
		return nil, err
	}
	if err := j.run(ctx); err != nil {
		return j.store, err
	}
	return j.store, j.finish()
}

// Tuned holds what came of a live tune.
type Tuned struct {
	Document []byte        // as david tune --json prints it; nil where the client sent none
	Store    *result.Store // nil where nothing was changed
}

// Tune changes a running server, or plans to. The result is there on an error too, as far as the client sent
// it.
func Tune(ctx context.Context, r Request) (Tuned, error) {
	j := newRunner(r)
	j.grace, j.uncounted = TuneGrace, true
	err := j.run(ctx)
	if j.store != nil && j.reader.Ended() { // one that was interrupted stays open
		err = errors.Join(j.finish(), err)
	}
	return Tuned{Document: j.tune, Store: j.store}, err
}

// Slot is the place of one trial in an experiment whose record is open: which arm it is of, and when it was.
type Slot struct {
	Store        *result.Store // nil: the trial is thrown away
	Arm          *result.Arm   // what the server's variables were seen to be is filled in
	Block, Place int
	Twin         bool // the control's second trial of the block
}

// Trial runs a bench of one trial, and puts that into its slot. It returns what the client says of itself and
// of the server.
func Trial(ctx context.Context, r Request, slot Slot) (theirs result.Experiment, err error) {
	j := newRunner(r)
	j.uncounted, j.slot = true, &slot
	err = j.run(ctx)
	return j.experiment, err
}

// Ask runs a client that measures a network and no server, and returns what it printed as JSON.
func Ask(ctx context.Context, r Request) ([]byte, error) {
	j := newRunner(r)
	j.uncounted = true
	err := j.run(ctx)
	return j.asked, err
}

// What a Job may take besides its trials: the image, its data (rows/s that a slow server loads), and a
// search's steps.
const (
	jobSlack     = 10 * time.Minute
	rowsASecond  = 3000
	searchTrials = 20
	trialSlack   = time.Minute
)

// BenchDeadline allows a bench generous time.
func BenchDeadline(loads []result.Workload, d result.Design) time.Duration {
	trials := max(1, d.Blocks)
	if d.SLO != nil {
		trials = searchTrials
	}
	all := jobSlack + loading(loads[0])
	for _, w := range loads {
		all += time.Duration(trials) * (time.Duration(w.Seconds+w.Warmup)*time.Second + trialSlack)
	}
	return all
}

// TuneDeadline allows a live tune a window before the first step and two, where the guard wants a longer one,
// after each. load is nil where david puts none on the server itself.
func TuneDeadline(watch time.Duration, load *result.Workload) time.Duration {
	const steps = 6
	all := jobSlack + (1+2*steps)*watch + TuneGrace
	if load != nil {
		all += time.Duration(load.Warmup)*time.Second + loading(*load)
	}
	return all
}

// loading estimates how long a slow server takes to load the data.
func loading(w result.Workload) time.Duration {
	return time.Duration(int64(w.Tables)*int64(w.TableSize)/rowsASecond) * time.Second
}

// jobName makes a DNS label of a run's ID. Job i is the i-th client's; 0 is the first.
func jobName(id string, i int) string {
	name := "david-" + strings.ReplaceAll(id, ".", "-")
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}

// args tell the i-th client's david what to do. Images of other versions of david know the flags by these
// names.
func (r Request) args(id string, i int) []string {
	args := r.Args
	count, group := fmt.Sprintf("--clients=%d", r.Clients.Count), "--crew="+jobName(id, 0)
	switch {
	case i > 0:
		args = []string{"bench-hand", group, fmt.Sprintf("--number=%d", i), count}
	case r.Clients.Count > 1:
		args = slices.Concat(args, []string{count, group})
	}
	args = slices.Concat(args, r.Every)
	if r.Clients.User == "" {
		return args
	}
	return append(args, "--dsn="+r.Clients.User+"@tcp("+r.Server.Address+")/")
}

// job describes the i-th client's Job.
func (r Request) job(id string, i int, grace time.Duration) podjob.Client {
	c := r.Clients
	return podjob.Client{Name: jobName(id, i), Namespace: r.Server.Pod.Namespace, Image: c.Image, Args: r.args(id, i),
		Env: c.Env, Secret: c.Secret, Key: c.Key, Node: c.Node, HostNetwork: c.HostNetwork, Server: r.Server.Pod.Labels,
		CPU: c.CPU, Memory: c.Memory, Deadline: c.Deadline, Grace: grace}
}
