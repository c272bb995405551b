package cli

import (
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
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
	f.user = "root"
	if flag := fs.Lookup("user"); flag != nil {
		flag.Value = also{flag.Value, &f.user}
	} else {
		fs.StringVar(&f.user, "user", f.user, "pod: the server's user")
	}
	fs.DurationVar(&f.deadline, "deadline", 0, "pod: when the client's Job is ended at the latest (default by the length of the trials)")
	fs.DurationVar(&f.patience, "start-timeout", 2*time.Minute, "pod: how long the server may take to be ready, and a client to get a node, an image, a volume")
	fs.IntVar(&f.clients, "clients", 1, "pod: clients the threads are spread over, each a Job, started together")
}

// also is the value of a flag that is told to somebody else as well.
type also struct {
	pflag.Value
	other *string
}

// Set sets both.
func (v also) Set(text string) error {
	*v.other = text
	return v.Value.Set(text)
}

func (f *podFlags) asked() bool { return f.pod != "" }

// podOnly lists the flags that go with --pod. --clients does not: other machines may help to load any remote
// server (david bench-hand).
func podOnly() []string {
	return []string{"kubeconfig", "context", "client-node", "client-image", "client-cpus", "client-memory", "secret", "deadline", "start-timeout"}
}

// check refuses what does not go together.
func (f *podFlags) check(fs *pflag.FlagSet, b benchFlags) error {
	for _, name := range podOnly() {
		if fs.Changed(name) && !f.asked() {
			return usage("--%s is for a pod: name it with --pod NAMESPACE/NAME", name)
		}
	}
	switch {
	case f.asked() && b.named():
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
	if err := b.checkDeadline(); err != nil {
		return err
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
