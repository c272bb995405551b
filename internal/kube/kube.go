// Package kube talks to a Kubernetes cluster: the one package with a client of the API server.
//
// The steps: Open the cluster a kubeconfig names, Create the objects of a run (each with the run's label),
// WaitPod and JobDone until they are ready, done, or have failed in the cluster's own words, read Logs and
// PodStats, and Remove all that carries the run's label. Sweep removes what runs left that were killed before
// they could. DryRun has the API server check objects and keep none. What is to stay in a cluster the user
// applies.
//
// What to create is decided elsewhere (internal/manifest, internal/cli): this package is given values and
// gives values back.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	storagev1 "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"david/internal/input"
)

// Cluster talks to a cluster whose API server answered.
type Cluster struct {
	// Context is the kubeconfig's name for it, Server the address of its API server, Version what that says
	// it is ("v1.34.4"), Namespace the context's own ("default" where it has none).
	Context, Server, Version, Namespace string
	// Patience says how long a pod may wait for what may still come: a node with room, a volume, an image.
	Patience time.Duration

	// Not the whole clientset: that of all groups is a fifth of david's binary.
	core      corev1.CoreV1Interface
	batch     batchv1.BatchV1Interface
	storage   storagev1.StorageV1Interface
	discovery discovery.DiscoveryInterface
	any       dynamic.Interface
	mapper    meta.RESTMapper
	config    *rest.Config

	mu   sync.Mutex
	made map[string][]ref // by run: what Create made in this process
}

const (
	patience   = 2 * time.Minute
	reachLimit = 10 * time.Second // until the API server counts as unreachable
)

// Open reads the kubeconfig ("" for $KUBECONFIG, else ~/.kube/config, else the service account of the pod
// david runs in) and asks the API server of the context ("" for the current one) for its version. The error
// is ErrConfig where the file or the context is wrong, ErrUnreachable where the server does not answer,
// ErrForbidden where it does not know the credentials.
func Open(ctx context.Context, kubeconfig, contextName string) (*Cluster, error) {
	c := &Cluster{Context: contextName, Patience: patience, made: map[string][]ref{}}
	config, err := c.load(kubeconfig, contextName)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // they would be printed over david's own output
	config.QPS, config.Burst = 50, 100        // david asks little; the default of 5 a second delays cleaning up
	config.UserAgent = "david"
	c.Server = config.Host
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, c.reach(ctx)
}

// connect makes the clients; nothing is asked yet.
func (c *Cluster) connect(config *rest.Config) (err error) {
	c.config = config
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	c.discovery, c.mapper = found, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	if c.core, err = corev1.NewForConfig(config); err != nil {
		return err
	}
	if c.batch, err = batchv1.NewForConfig(config); err != nil {
		return err
	}
	if c.storage, err = storagev1.NewForConfig(config); err != nil {
		return err
	}
	c.any, err = dynamic.NewForConfig(config)
	return err
}

// reach asks for the version.
func (c *Cluster) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	var v struct{ GitVersion string }
	body, err := c.discovery.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = decode(body, &v)
	}
	c.Version = v.GitVersion
	return explain(err, "cannot reach the cluster "+c.name(), "get", "/version")
}

func (c *Cluster) name() string {
	if c.Context == "" {
		return c.Server
	}
	return fmt.Sprintf("%s (%s)", c.Context, c.Server)
}

// load reads the client's configuration, and sets the context's name and namespace.
func (c *Cluster) load(kubeconfig, contextName string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if err := readable(rules); err != nil {
		return nil, err
	}
	files := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
	raw, err := files.RawConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no kubeconfig %s", ErrConfig, kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("%w: cannot read the kubeconfig: %w", ErrConfig, err)
	case len(raw.Contexts) == 0 && contextName == "" && kubeconfig == "":
		return c.inside(rules)
	}
	if c.Context == "" {
		c.Context = raw.CurrentContext
	}
	if err := known(raw, c.Context); err != nil {
		return nil, err
	}
	if err := readableNamed(raw, c.Context); err != nil {
		return nil, err
	}
	if c.Namespace, _, err = files.Namespace(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	config, err := files.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: context %s: %w", ErrConfig, c.Context, err)
	}
	return config, nil
}

// The most that is read of a kubeconfig, and of a file that it names, in bytes.
const (
	longestConfig = 1 << 20
	longestNamed  = 256 << 10
)

// readable makes sure of the files before client-go reads them, which would wait for a pipe, and read a device without end.
func readable(rules *clientcmd.ClientConfigLoadingRules) error {
	for _, path := range rules.GetLoadingPrecedence() {
		_, err := input.ReadDocument(path, longestConfig)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: cannot read the kubeconfig: %w", ErrConfig, err)
		}
	}
	return nil
}

// readableNamed makes sure of the files that a context names.
func readableNamed(raw clientcmdapi.Config, name string) error {
	var paths []string
	if c := raw.Clusters[raw.Contexts[name].Cluster]; c != nil {
		paths = append(paths, c.CertificateAuthority)
	}
	if u := raw.AuthInfos[raw.Contexts[name].AuthInfo]; u != nil {
		paths = append(paths, u.ClientCertificate, u.ClientKey, u.TokenFile)
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, err := input.Read(path, longestNamed); err != nil {
			return fmt.Errorf("%w: context %s: %w", ErrConfig, name, err)
		}
	}
	return nil
}

// inside returns the configuration of a pod in a cluster.
func (c *Cluster) inside(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: no kubeconfig: none of %s names a cluster; give --kubeconfig FILE", ErrConfig, strings.Join(rules.Precedence, ", "))
	}
	c.Namespace = "default"
	if text, err := input.Read("/var/run/secrets/kubernetes.io/serviceaccount/namespace", 4096); err == nil {
		c.Namespace = strings.TrimSpace(string(text))
	}
	return config, nil
}

// known makes sure that there is a context of that name.
func known(raw clientcmdapi.Config, name string) error {
	names := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	switch {
	case names == "":
		return fmt.Errorf("%w: the kubeconfig has no contexts", ErrConfig)
	case name == "":
		return fmt.Errorf("%w: the kubeconfig has no current context; give --context, one of: %s", ErrConfig, names)
	case raw.Contexts[name] == nil:
		return fmt.Errorf("%w: the kubeconfig has no context %s; it has: %s", ErrConfig, name, names)
	}
	return nil
}
