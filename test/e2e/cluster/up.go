package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"david/test/daemon"
)

// up starts a cluster with its nodes, or takes down what it had started.
func up(ctx context.Context, o options, say func(string, ...any)) (*state, error) {
	if o.cpuManager != "none" && o.cpuManager != "static" {
		return nil, usageError{fmt.Errorf("--cpu-manager is none or static, not %q", o.cpuManager)}
	}
	if err := o.checkNetwork(); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	for _, tar := range o.images {
		if _, err := os.Stat(tar); err != nil {
			return nil, usageError{fmt.Errorf("cannot load an image: %w", err)}
		}
	}
	bin, err := binaries(ctx, o.bin, say)
	if err != nil {
		return nil, err
	}
	s := &state{Dir: o.dir, Bin: bin, CPUManager: o.cpuManager, Network: o.network, Rate: o.rate}
	if o.network == kubeRouter {
		if s.Router, err = routerBinary(ctx, say); err != nil {
			return nil, err
		}
	}
	for i := range o.nodes {
		s.Nodes = append(s.Nodes, node{Name: nodeName(i), Containerd: filepath.Join(o.dir, nodeName(i), "containerd.sock")})
	}
	return s.bringUp(ctx, o, say, func() error { return s.startCluster(ctx, o.images, say) })
}

// envtest starts etcd and an API server only.
func envtest(ctx context.Context, o options, say func(string, ...any)) (*state, error) {
	bin, err := binaries(ctx, o.bin, say)
	if err != nil {
		return nil, err
	}
	s := &state{Dir: o.dir, Bin: bin, HostIP: "127.0.0.1", Services: "10.250.128.0/17"}
	return s.bringUp(ctx, o, say, func() error {
		if err := s.prepareAPI(); err != nil {
			return err
		}
		return s.waitAPI(ctx)
	})
}

// bringUp holds for both kinds: one at a time, the state written first, all taken down again where starting
// failed.
func (s *state) bringUp(ctx context.Context, o options, say func(string, ...any), start func() error) (*state, error) {
	began := time.Now()
	if o.owner != 0 {
		owner, err := daemon.Find(o.owner)
		if err != nil {
			return nil, usageError{fmt.Errorf("there is no process %d to own the cluster: %w", o.owner, err)}
		}
		s.Owner = owner
	}
	release, err := s.claim(ctx, o.wait, say)
	if err != nil {
		return nil, err
	}
	err = start()
	if err == nil && s.Owner.PID != 0 {
		err = s.spawnGuard()
	}
	if err == nil {
		s.Ready = true
		err = s.save()
	}
	defer release()
	if err != nil {
		return nil, errors.Join(err, takeDown(s.Dir, say))
	}
	say("up in %s; kubectl is %s, its configuration %s", time.Since(began).Round(100*time.Millisecond), s.Kubectl, s.Kubeconfig)
	return s, nil
}

// claim makes the folder this cluster's, with the lock held. A cluster that is up is left alone, but one
// whose owner has ended is taken down.
func (s *state) claim(ctx context.Context, patience time.Duration, say func(string, ...any)) (release func(), err error) {
	deadline := time.Now().Add(patience)
	for told := false; ; told = true {
		release, err := lock(s.Dir)
		if err != nil {
			return nil, err
		}
		err = s.claimLocked(say)
		if err == nil {
			return release, nil
		}
		release()
		var busy busyError
		if !errors.As(err, &busy) || time.Now().After(deadline) {
			return nil, err
		}
		if !told {
			say("waiting: %v", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// busyError: another cluster is up.
type busyError struct{ targetError }

func (e busyError) Unwrap() error { return e.targetError }

func (s *state) claimLocked(say func(string, ...any)) error {
	dirs := []string{s.Dir}
	if other := namesOwner(); s.whole() && other != "" && other != s.Dir {
		dirs = append(dirs, other)
	}
	for _, dir := range dirs {
		if err := dismiss(dir, say); err != nil {
			return err
		}
	}
	if s.whole() {
		if err := namesFree(); err != nil {
			return err
		}
	}
	if err := privateFolder(s.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the cluster's folder: %w", err)
	}
	if err := os.MkdirAll(s.path("log"), 0o700); err != nil {
		return fmt.Errorf("cannot make the cluster's folder: %w", err)
	}
	s.Kubeconfig, s.Kubectl = s.path("admin.kubeconfig"), s.binary("kubectl")
	before, err := snapshot(s.Dir) // only now is nothing of an earlier cluster there
	if err != nil {
		return err
	}
	if s.whole() {
		s.Before, s.Sysctls = &before, before.Sysctls
	}
	return s.save()
}

// dismiss takes down a cluster that has lost its owner; one that has not is in the way.
func dismiss(dir string, say func(string, ...any)) error {
	old, err := loadState(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return targetError{fmt.Errorf("%w; clean up with: cluster down --dir %s", err, dir)}
	case old.Owner.PID == 0 || old.Owner.Alive():
		return busyError{targetError{fmt.Errorf("a cluster is up in %s already; end it with: cluster down --dir %s", dir, dir)}}
	}
	say("an earlier cluster in %s has lost its owner (process %d); taking it down", dir, old.Owner.PID)
	return takeDown(dir, say)
}

// namesFree makes sure that nothing on the machine bears the names this cluster gives: left by one without a
// folder.
func namesFree() error {
	paths := []string{"/sys/class/net/" + bridgeName}
	for i := range mostNodes {
		name := nodeName(i)
		paths = append(paths, "/sys/class/net/"+vethName(name), "/sys/class/net/"+deviceName(name), "/run/netns/"+name)
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			return targetError{fmt.Errorf("%s exists, and belongs to no cluster that is known; remove it with: cluster down", path)}
		}
	}
	return nil
}

// prepareAPI makes certificates and starts etcd and the API server.
func (s *state) prepareAPI() error {
	if err := s.choosePorts(); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	if err := s.writeCertificates(); err != nil {
		return err
	}
	return s.startAPI()
}

// startCluster starts everything of a cluster with nodes; containerd gets ready while the API server does.
func (s *state) startCluster(ctx context.Context, images []string, say func(string, ...any)) error {
	if err := s.chooseAddresses(ctx); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	for _, make := range []func() error{s.makeFolders, func() error { return s.makeNetwork(ctx) }, s.makeGroups, s.prepareAPI} {
		if err := make(); err != nil {
			return err
		}
	}
	var containerds []int
	for _, n := range s.Nodes {
		pid, err := s.startContainerd(ctx, n, images)
		if err != nil {
			return err
		}
		containerds = append(containerds, pid)
	}
	if err := s.waitAPI(ctx); err != nil {
		return err
	}
	if err := s.startControllers(); err != nil {
		return err
	}
	for i, n := range s.Nodes {
		if err := s.startKubelet(n, containerds[i]); err != nil {
			return err
		}
	}
	if err := s.tellNodes(ctx); err != nil {
		return err
	}
	if s.flannelBackend() != "" {
		if err := s.startFlannel(ctx, containerds); err != nil {
			return err
		}
	}
	if s.Router != "" {
		if err := s.startRouter(ctx, containerds); err != nil {
			return err
		}
	}
	return s.waitNodes(ctx)
}
