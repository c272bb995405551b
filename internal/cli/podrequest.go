package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/kube"
	"david/internal/lab"
	"david/internal/podjob"
	"david/internal/podrun"
)

// waited adds to a failure for which david waited in vain how it waits longer.
func (f podFlags) waited(err error) error { return waitedFor(err, f.patience) }

func waitedFor(err error, patience time.Duration) error {
	var failure *kube.Failure
	if !errors.As(err, &failure) || !failure.Waited {
		return err
	}
	return fmt.Errorf("%w; david waited for %s, and --start-timeout waits longer", err, patience)
}

// clusterCode tells the exit code of an error of a cluster.
func clusterCode(err error) int {
	switch {
	case errors.Is(err, kube.ErrConfig), errors.Is(err, kube.ErrNotFound), errors.Is(err, kube.ErrForeign), errors.Is(err, kube.ErrInvalid), errors.Is(err, podrun.ErrPod):
		return exitUsage
	case errors.Is(err, kube.ErrUnreachable), errors.Is(err, kube.ErrForbidden), errors.Is(err, kube.ErrFailed):
		return exitTarget
	}
	return exitFailed
}

// podRequest finds the server and checks what can be checked before anything is created.
func (a *app) podRequest(ctx context.Context, f podFlags, p *progress) (r podrun.Request, err error) {
	namespace, name, err := f.name()
	if err != nil {
		return r, err
	}
	r = podrun.Request{Home: a.home, Say: p.text}
	if r.Cluster, err = a.openCluster(ctx, f.clusterFlags, f.patience, namespace); err != nil {
		return r, err
	}
	if r.Server, err = podrun.Find(ctx, r.Cluster, namespace, name, f.node, r.Say); err != nil {
		return r, f.waited(err)
	}
	q, err := f.quantities()
	if err != nil {
		return r, err
	}
	r.Clients = podrun.Clients{Count: f.clients, Image: f.image, Node: f.node, User: f.user, CPU: q[0], Memory: q[1], Deadline: f.deadline}
	if text := a.env(lab.StealVariable); text != "" { // what is set here matters there
		r.Clients.Env = append(r.Clients.Env, corev1.EnvVar{Name: lab.StealVariable, Value: text})
	}
	r.Clients.Secret, r.Clients.Key, err = f.password(r.Server.Container)
	return r, err
}

// openCluster opens the cluster and removes what interrupted runs left in the namespace.
func (a *app) openCluster(ctx context.Context, f clusterFlags, patience time.Duration, namespace string) (*kube.Cluster, error) {
	c, err := kube.Open(ctx, f.kubeconfig, f.context)
	if err != nil {
		return nil, err
	}
	c.Patience = patience
	swept, err := c.Sweep(ctx, namespace)
	for _, run := range swept {
		a.remark("removed from the cluster what run %s left, which was interrupted", run)
	}
	return c, err
}

// quantities reads the clients' resources: CPUs, then memory; zero where not given.
func (f *podFlags) quantities() (list [2]resource.Quantity, err error) {
	for i, q := range []struct{ flag, text, example string }{{"client-cpus", f.cpus, "2"}, {"client-memory", f.memory, "512Mi"}} {
		if q.text == "" {
			continue
		}
		if list[i], err = resource.ParseQuantity(q.text); err != nil || list[i].Sign() <= 0 {
			return list, usage("--%s %s: give a quantity above 0, as %s", q.flag, q.text, q.example)
		}
	}
	return list, nil
}

// password says which Secret of the cluster gives the clients theirs.
func (f *podFlags) password(server corev1.Container) (secret, key string, err error) {
	if f.secret != "" {
		return f.secretKey()
	}
	secret, key, ok := podjob.RootSecret(server)
	if !ok || f.user != "root" {
		return "", "", usage("the pod does not say which Secret holds the password of %s: give --secret NAME:KEY", f.user)
	}
	return secret, key, nil
}
