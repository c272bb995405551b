package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"david/test/daemon"
)

// The storage driver's names: its own, as csi/main.go has it, and that of the classes of volumes and snapshots.
const (
	driverName   = "loop.csi.david"
	storageClass = "david-loop"
)

// storageObjects tell the cluster of the driver: it needs no attaching, and kubelet gives its volumes their group.
const storageObjects = `apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ` + driverName + `}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: File, volumeLifecycleModes: [Persistent]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: ` + storageClass + `}
provisioner: ` + driverName + `
volumeBindingMode: Immediate
reclaimPolicy: Delete
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: ` + storageClass + `}
driver: ` + driverName + `
deletionPolicy: Delete
`

// addStorage gives a running cluster of one node a storage driver with snapshots and clones: the driver is in the node's
// namespaces, Kubernetes' sidecars beside it.
func (s *state) addStorage(ctx context.Context, say func(string, ...any)) error {
	began := time.Now()
	if len(s.Nodes) != 1 {
		return usageError{errors.New("the storage driver is for a cluster of one node: its volumes are that node's")}
	}
	n := s.Nodes[0]
	folder := s.path(n.Name, "storage")
	if err := os.Mkdir(folder, 0o700); errors.Is(err, os.ErrExist) {
		return usageError{errors.New("the cluster has its storage driver already")}
	} else if err != nil {
		return err
	}
	containerd := daemon.Naming(s.path(n.Name), "containerd")
	if len(containerd) == 0 {
		return targetError{errors.New("the node's containerd is not there")}
	}
	if err := s.applyStorage(ctx); err != nil {
		return err
	}
	socket, inside := filepath.Join(folder, "csi.sock"), []string{"nsenter", "--net", "--mount", "--target", strconv.Itoa(containerd[0].PID)}
	kubeconfig := "--kubeconfig=" + s.path("admin.kubeconfig")
	for _, p := range []struct {
		name string
		argv []string
	}{
		{"csi", append(inside, s.binary("csi/csi"), "--dir="+folder, "--socket="+socket, "--registration=/var/lib/kubelet/plugins_registry/"+driverName+".sock", "--node="+n.Name)},
		{"csi-provisioner", []string{s.binary("csi/csi-provisioner"), kubeconfig, "--csi-address=" + socket, "--timeout=1m"}},
		{"csi-snapshotter", []string{s.binary("csi/csi-snapshotter"), kubeconfig, "--csi-address=" + socket}},
		{"snapshot-controller", []string{s.binary("csi/snapshot-controller"), kubeconfig}},
	} {
		if _, err := s.start(p.name, p.argv...); err != nil {
			return err
		}
	}
	a, err := s.api()
	if err != nil {
		return err
	}
	if err := s.explain("csi", waitFor(ctx, "kubelet does not know the storage driver", time.Minute, func() error {
		_, err := a.get(ctx, "/apis/storage.k8s.io/v1/csinodes/"+n.Name)
		if err != nil {
			return err
		}
		out, err := output(ctx, s.Kubectl, "--kubeconfig", s.Kubeconfig, "get", "csinode", n.Name, "-o", "jsonpath={.spec.drivers[*].name}")
		if err == nil && out != driverName {
			err = fmt.Errorf("it knows %q", out)
		}
		return err
	})); err != nil {
		return err
	}
	say("storage class %s, with snapshots, in %s", storageClass, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// applyStorage makes the kinds of snapshots, and the driver's objects.
func (s *state) applyStorage(ctx context.Context) error {
	objects := s.path("storage.yaml")
	if err := os.WriteFile(objects, []byte(storageObjects), 0o600); err != nil {
		return err
	}
	kubectl := func(args ...string) error {
		_, err := output(ctx, append([]string{s.Kubectl, "--kubeconfig", s.Kubeconfig}, args...)...)
		return err
	}
	if err := kubectl("apply", "-f", s.binary("csi/crds")); err != nil {
		return err
	}
	if err := kubectl("wait", "--for=condition=Established", "--timeout=1m", "-f", s.binary("csi/crds")); err != nil {
		return err
	}
	return kubectl("apply", "-f", objects)
}

// canStore says what is missing for the storage driver on this machine.
func canStore() error {
	for _, path := range []string{"/dev/loop-control", "/sbin/mkfs.xfs"} {
		if err := unix.Access(path, unix.R_OK); err != nil {
			return targetError{fmt.Errorf("the storage driver needs %s: %w", path, err)}
		}
	}
	return nil
}
