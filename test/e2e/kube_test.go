package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/kube"
)

// TestKube holds internal/kube against a real API server, scheduler and kubelet.
func TestKube(t *testing.T) {
	t.Parallel()
	c := need(t)
	ns := c.namespace(t)
	k, err := kube.Open(t.Context(), c.facts.Kubeconfig, "")
	if err != nil || k.Version == "" {
		t.Fatal(k, err)
	}
	k.Patience = 3 * time.Second
	for _, s := range []struct {
		name string
		test func(*testing.T, *cluster, *kube.Cluster, string)
	}{{"foreign", foreignObject}, {"dry run", dryRuns}, {"pending volume", pendingVolume}, {"remove", removeRun}, {"log", crashLog}} {
		t.Run(s.name, func(t *testing.T) { s.test(t, c, k, ns) })
	}
	if _, err := k.StorageClass(t.Context(), "nowhere"); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("a storage class that does not exist: %v", err)
	}
}

func configMap(ns, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: ns}, Data: map[string]string{"a": value}}
}

// foreignObject is one that somebody else made: it is neither overwritten nor removed.
func foreignObject(t *testing.T, c *cluster, k *kube.Cluster, ns string) {
	value := func() string {
		return c.kubectl(t, "get", "configmap", "settings", "--namespace", ns, "-o", "jsonpath={.data.a}")
	}
	c.kubectl(t, "create", "configmap", "settings", "--namespace", ns, "--from-literal=a=theirs")
	if err := k.Create(t.Context(), kube.NewRun("foreign", time.Hour), configMap(ns, "ours")); !errors.Is(err, kube.ErrForeign) || !strings.Contains(err.Error(), "settings") {
		t.Errorf("Create: %v", err)
	}
	if err := k.Remove(t.Context(), "foreign", ns); err != nil || value() != "theirs" {
		t.Errorf("Remove: %v, the value is %s", err, value())
	}
}

// dryRuns checks objects, also those of a namespace that is yet to come, and keeps none.
func dryRuns(t *testing.T, c *cluster, k *kube.Cluster, ns string) {
	unknown := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dry", "namespace": ns}, "dota": map[string]any{"a": "b"}}
	good := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dry", "namespace": ns}}
	errs := k.DryRun(t.Context(), unknown, good,
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "to-come"}}, configMap("to-come", "x"), configMap("nowhere", "x"),
		map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": "a"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "Not_DNS"}, Provisioner: "x"})
	for i, want := range []struct {
		kind error
		says string
	}{{kube.ErrInvalid, "dota"}, {nil, ""}, {nil, ""}, {nil, ""}, {kube.ErrNotFound, "nowhere"}, {kube.ErrInvalid, "Foo"}, {kube.ErrInvalid, "Not_DNS"}} {
		if !errors.Is(errs[i], want.kind) || want.kind != nil && !strings.Contains(errs[i].Error(), want.says) {
			t.Errorf("object %d: %v, want %v with %q", i, errs[i], want.kind, want.says)
		}
	}
	if out, err := c.try("", "get", "configmap", "dry", "--namespace", ns); err == nil {
		t.Errorf("a dry run has made something: %s", out)
	}
}

// pendingVolume is a pod whose volume nobody can provide.
func pendingVolume(t *testing.T, c *cluster, k *kube.Cluster, ns string) {
	c.apply(t, ns, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: not-there, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits}
spec:
  containers: [{name: c, image: localhost/pause:e2e, imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
	_, err := k.WaitPod(t.Context(), ns, "waits")
	if !errors.Is(err, kube.ErrFailed) || !strings.Contains(err.Error(), "PVC data is Pending") || !strings.Contains(err.Error(), "not-there") {
		t.Errorf("%v", err)
	}
}

func pod(ns, name, image string, command ...string) *corev1.Pod {
	grace := int64(1) // sleep as a container's first process takes no SIGTERM
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: corev1.PullNever, Command: command}}}}
}

// removeRun removes a run's objects, all of them and no others, and what a run left whose time is over.
func removeRun(t *testing.T, c *cluster, k *kube.Cluster, ns string) {
	k.Patience = time.Minute
	image := c.image(t, "mariadb")
	run, other := kube.NewRun("remove-1", time.Hour), kube.NewRun("remove-2", -time.Hour)
	if err := k.Create(t.Context(), run, pod(ns, "mine", image, "sleep", "1000")); err != nil {
		t.Fatal(err)
	}
	if err := k.Create(t.Context(), other, pod(ns, "theirs", image, "sleep", "1000")); err != nil {
		t.Fatal(err)
	}
	if _, err := k.WaitPod(t.Context(), ns, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := k.Create(t.Context(), run, pod(ns, "mine", image)); err == nil || errors.Is(err, kube.ErrForeign) {
		t.Errorf("created twice: %v", err)
	}
	if err := k.Remove(t.Context(), run.ID, ns); err != nil {
		t.Error(err)
	}
	if left := c.kubectl(t, "get", "pods", "--namespace", ns, "-l", kube.RunLabel, "-o", "name"); left != "pod/theirs\n" {
		t.Errorf("left: %q", left)
	}
	if swept, err := k.Sweep(t.Context(), ns); err != nil || len(swept) != 1 || swept[0] != other.ID {
		t.Errorf("swept %v, %v", swept, err)
	}
	if left := c.kubectl(t, "get", "pods", "--namespace", ns, "-l", kube.RunLabel, "-o", "name"); left != "" {
		t.Errorf("left: %q", left)
	}
}

// crashLog is a pod that crashes again and again: its last words are told.
func crashLog(t *testing.T, c *cluster, k *kube.Cluster, ns string) {
	k.Patience = time.Minute
	run := kube.NewRun("crash-1", time.Hour)
	crashes := pod(ns, "crashes", c.image(t, "mariadb"), "sh", "-c", "echo cannot open the data; exit 7")
	// Without a probe it is ready for the moment that it runs.
	crashes.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}}
	if err := k.Create(t.Context(), run, crashes); err != nil {
		t.Fatal(err)
	}
	_, err := k.WaitPod(t.Context(), ns, "crashes")
	if !errors.Is(err, kube.ErrFailed) || !strings.Contains(err.Error(), "CrashLoopBackOff") || !strings.Contains(err.Error(), "cannot open the data") {
		t.Errorf("%v", err)
	}
	if err := k.Remove(t.Context(), run.ID, ns); err != nil {
		t.Error(err)
	}
}
