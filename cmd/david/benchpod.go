package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/host"
	"david/internal/kube"
	"david/internal/podjob"
	"david/internal/result"
	"david/internal/workload"
)

// benchPod measures a server that is a pod: as it is, by Jobs beside it that run this same david. What they measure comes back over their log, trial
// by trial, into the store here. Everything created is removed again.
func (a *app) benchPod(ctx context.Context, f benchFlags, loads []result.Workload) (err error) {
	for _, w := range loads {
		if err := workload.Spreadable(w, f.pod.clients); err != nil {
			return codedError{exitUsage, err}
		}
	}
	defer func() { err = endedEarly(ctx, err) }()
	design, err := f.design()
	if err != nil {
		return err
	}
	steal, err := a.maxSteal()
	if err != nil {
		return err
	}
	p := newProgress(a.err)
	defer p.end()
	s, err := a.findPod(ctx, f.pod, p)
	if err != nil {
		return err
	}
	if f.pod.deadline == 0 {
		f.pod.deadline = allowance(loads, design)
	}
	e := newExperiment(a, result.KindBench, loads, workload.Sysbench{})
	e.Target, e.Design, e.Pod, e.Server = "pod", design, s.facts(), result.Server{Address: s.address}
	e.Design.MaxSteal = steal                                       // what it means, the client notes
	if e.Host, err = host.Read(ctx, existing(a.home)); err != nil { // until the client tells its own
		return err
	}
	store, err := result.Create(filepath.Join(a.home, "experiments", e.ID), e)
	if err != nil {
		return err
	}
	began := time.Now()
	c := &carrier{podSession: s, experiment: e, store: store, progress: p}
	if err := c.run(ctx, f.pod, podArgs(f, runName(e.ID))); err != nil {
		return failed(ctx, store, err)
	}
	if err := c.finish(began); err != nil {
		return err
	}
	p.end()
	return a.print(store, f.json)
}

// endedEarly says of an interrupted bench of a pod what became of it: unlike a sandbox's it is not gone on with.
func endedEarly(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return codedError{exitInterrupted, fmt.Errorf("interrupted; the trials that came back are kept, and the same command begins a new experiment (%w)", err)}
}

// podSession is a pod that was found ready, and how to reach it.
type podSession struct {
	cluster          *kube.Cluster
	pod              *corev1.Pod
	server           corev1.Container
	address          string // host:port
	secret, key      string // of the password
	namespace, image string
	env              []corev1.EnvVar // of the clients: what is set here and matters there
}

// findPod finds the server and checks what can be checked before anything is created.
func (a *app) findPod(ctx context.Context, f podFlags, p *progress) (s podSession, err error) {
	namespace, name, err := f.name()
	if err != nil {
		return s, err
	}
	s = podSession{namespace: namespace, image: f.image}
	if text := a.env(stealVariable); text != "" {
		s.env = append(s.env, corev1.EnvVar{Name: stealVariable, Value: text})
	}
	if s.cluster, err = a.openCluster(ctx, f.clusterFlags, f.patience, namespace); err != nil {
		return s, err
	}
	if f.node != "" {
		if _, err := s.cluster.Node(ctx, f.node); err != nil && !errors.Is(err, kube.ErrForbidden) { // the scheduler will say so
			return s, err
		}
	}
	p.say("waiting for pod %s to be ready", f.pod)
	if s.pod, err = s.cluster.WaitPod(ctx, namespace, name); err != nil {
		return s, f.waited(err)
	}
	container, port, err := podjob.Server(s.pod)
	if err != nil {
		return s, codedError{exitUsage, err}
	}
	s.server, s.address = container, net.JoinHostPort(s.pod.Status.PodIP, strconv.Itoa(int(port)))
	s.secret, s.key, err = f.password(container)
	return s, err
}

// facts are what the cluster says of the pod.
func (s podSession) facts() *result.PodFacts {
	quantity := func(list corev1.ResourceList, name corev1.ResourceName) string {
		if q, ok := list[name]; ok {
			return q.String()
		}
		return ""
	}
	r := s.server.Resources
	f := &result.PodFacts{Namespace: s.namespace, Name: s.pod.Name, Node: s.pod.Spec.NodeName, QoS: string(s.pod.Status.QOSClass), Container: s.server.Name, Image: s.server.Image,
		CPURequest: quantity(r.Requests, corev1.ResourceCPU), CPULimit: quantity(r.Limits, corev1.ResourceCPU),
		MemoryRequest: quantity(r.Requests, corev1.ResourceMemory), MemoryLimit: quantity(r.Limits, corev1.ResourceMemory), Kubernetes: s.cluster.Version}
	for _, status := range s.pod.Status.ContainerStatuses {
		if status.Name == s.server.Name {
			f.ImageID, f.Restarts = status.ImageID, int(status.RestartCount)
		}
	}
	return f
}

// What a Job may take besides its trials: the image, its data (rows/s that a slow server loads), and a search's steps.
const (
	jobSlack     = 10 * time.Minute
	rowsASecond  = 3000
	searchTrials = 20
	trialSlack   = time.Minute
)

// allowance is how long a Job may take, generously.
func allowance(loads []result.Workload, d result.Design) time.Duration {
	trials := max(1, d.Blocks)
	if d.SLO != nil {
		trials = searchTrials
	}
	w := loads[0]
	all := jobSlack + time.Duration(int64(w.Tables)*int64(w.TableSize)/rowsASecond)*time.Second
	for _, w := range loads {
		all += time.Duration(trials) * (time.Duration(w.Seconds+w.Warmup)*time.Second + trialSlack)
	}
	return all
}

// runName is the name of a run's objects: a DNS label.
func runName(id string) string { return "david-" + strings.ReplaceAll(id, ".", "-") }

// podArgs are the arguments of the david in the client's container: the same flags, but for where the server is.
func podArgs(f benchFlags, crew string) []string {
	args := []string{"bench", "--relay", "--workload", f.workload, "--rand-type", f.randType, "--threads", f.threads,
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
	if f.pod.clients > 1 {
		args = append(args, fmt.Sprintf("--clients=%d", f.pod.clients), "--crew="+crew)
	}
	return args
}

// job is client i's Job: 0 is the lead.
func (s podSession) job(f podFlags, name string, args []string) (podjob.Client, error) {
	q, err := f.quantities()
	return podjob.Client{Name: name, Namespace: s.namespace, Image: f.image, Args: append(args, "--dsn="+f.user+"@tcp("+s.address+")/"),
		Secret: s.secret, Key: s.key, Node: f.node, Server: s.pod.Labels, CPU: q[0], Memory: q[1], Deadline: f.deadline, Env: s.env}, err
}
