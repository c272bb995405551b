package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/kube"
	"david/internal/lab"
	"david/internal/podjob"
	"david/internal/podrun"
)

// clusterFlags say which cluster.
type clusterFlags struct{ kubeconfig, context string }

func (f *clusterFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "cluster: the kubeconfig (default $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&f.context, "context", "", "cluster: the context of the kubeconfig (default its current one)")
}

// podFlags say which pod the server is, and how the clients run that load it.
type podFlags struct {
	clusterFlags
	pod, node, image, secret, user, cpus, memory string
	clients                                      int
	deadline, patience                           time.Duration
}

// clientImage names david's own image, as images/david builds it.
const clientImage = "localhost/david:dev"

func (f *podFlags) add(fs *pflag.FlagSet) {
	f.clusterFlags.add(fs)
	fs.StringVar(&f.pod, "pod", "", "a server that is a pod: NAMESPACE/NAME; the client runs as a Job beside it (docs/kubernetes.md)")
	fs.StringVar(&f.node, "client-node", "", "pod: the node the client runs on (default any but the server's, where there is another)")
	fs.StringVar(&f.image, "client-image", clientImage, "pod: the image with david and sysbench")
	fs.StringVar(&f.cpus, "client-cpus", "", "pod: CPUs of each client, request and limit, as 2 (default no limit)")
	fs.StringVar(&f.memory, "client-memory", "", "pod: memory of each client, request and limit, as 512Mi (default a limit of 1Gi)")
	fs.StringVar(&f.secret, "secret", "", "pod: NAME[:KEY] of the Secret with the password, in the pod's namespace (default that of root, as the pod has it; KEY: password)")
	fs.StringVar(&f.user, "user", "root", "pod: the server's user")
	fs.DurationVar(&f.deadline, "deadline", 0, "pod: when the client's Job is ended at the latest (default by the length of the trials)")
	fs.DurationVar(&f.patience, "start-timeout", 2*time.Minute, "pod: how long the server may take to be ready, and a client to get a node, an image, a volume")
	fs.IntVar(&f.clients, "clients", 1, "pod: clients the threads are spread over, each a Job, started together")
}

func (f *podFlags) asked() bool { return f.pod != "" }

// podOnly lists the flags that go with --pod. --clients does not: other machines may help to load any remote
// server (david bench-hand).
func podOnly() []string {
	return []string{"kubeconfig", "context", "client-node", "client-image", "client-cpus", "client-memory", "secret", "user", "deadline", "start-timeout"}
}

// check refuses what does not go together.
func (f *podFlags) check(fs *pflag.FlagSet, b benchFlags) error {
	for _, name := range podOnly() {
		if fs.Changed(name) && !f.asked() {
			return usage("--%s is for a pod: name it with --pod NAMESPACE/NAME", name)
		}
	}
	switch {
	case f.asked() && (b.dsn != "" || b.defaultsFile != ""):
		return usage("--pod finds the server by itself: leave out --dsn and --defaults-file")
	case f.clients < 1:
		return usage("--clients %d: at least 1", f.clients)
	case f.clients > 1 && !f.asked() && b.group == "":
		return usage("--clients is for a pod: name it with --pod NAMESPACE/NAME")
	case f.clients > 1 && (b.slo != "" || b.steady):
		return usage("--clients spreads loads of a fixed length: leave out --slo and --steady")
	case f.deadline != 0 && f.deadline < time.Second:
		return usage("--deadline %s: give a time of at least 1s, or leave it out", f.deadline)
	case f.patience < time.Second:
		return usage("--start-timeout %s: give a time of at least 1s", f.patience)
	}
	if !f.asked() {
		return nil
	}
	if _, _, err := f.name(); err != nil {
		return err
	}
	if err := f.names(); err != nil {
		return err
	}
	_, err := f.quantities()
	return err
}

// name reads NAMESPACE/NAME.
func (f *podFlags) name() (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(f.pod, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", usage("--pod %s: give NAMESPACE/NAME, as db/mysql-0", f.pod)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", usage("--pod %s: no names that Kubernetes takes: lower case letters, digits and dashes, as db/mysql-0", f.pod)
	}
	return namespace, name, nil
}

// imageReference matches what a runtime takes for an image, roughly: the runtime says the rest.
var imageReference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// names refuses names that no cluster can have, before one is asked.
func (f *podFlags) names() error {
	if f.node != "" && len(validation.IsDNS1123Subdomain(f.node)) > 0 {
		return usage("--client-node %q is no name that a node can have: lower case letters, digits, dashes and dots", f.node)
	}
	if !imageReference.MatchString(f.image) {
		return usage("--client-image %q is no name of an image, as %s", f.image, clientImage)
	}
	if f.secret == "" {
		return nil
	}
	_, _, err := f.secretKey()
	return err
}

// secretKey reads --secret.
func (f *podFlags) secretKey() (secret, key string, err error) {
	secret, key, given := strings.Cut(f.secret, ":")
	if !given {
		key = "password"
	}
	if len(validation.IsDNS1123Subdomain(secret)) > 0 || len(validation.IsConfigMapKey(key)) > 0 {
		return "", "", usage("--secret %q: give NAME or NAME:KEY, as Kubernetes names them", f.secret)
	}
	return secret, key, nil
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

// waited adds to a failure for which david waited in vain how it waits longer.
func (f podFlags) waited(err error) error {
	var failure *kube.Failure
	if !errors.As(err, &failure) || !failure.Waited {
		return err
	}
	return fmt.Errorf("%w; david waited for %s, and --start-timeout waits longer", err, f.patience)
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
		fmt.Fprintf(a.err, "david: removed from the cluster what run %s left, which was interrupted\n", run)
	}
	return c, err
}
