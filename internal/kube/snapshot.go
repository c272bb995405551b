package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Claim returns a claim for a volume as it is.
func (c *Cluster) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := c.core.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	return claim, explain(err, fmt.Sprintf("cannot look at the claim %s/%s", namespace, name), "get", "persistentvolumeclaims")
}

// SecretValue returns what a Secret has under a key.
func (c *Cluster) SecretValue(ctx context.Context, namespace, name, key string) (string, error) {
	secret, err := c.core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", explain(err, fmt.Sprintf("cannot read the Secret %s/%s", namespace, name), "get", "secrets")
	}
	value, ok := secret.Data[key]
	if !ok {
		return "", fmt.Errorf("the Secret %s/%s has no key %s: %w", namespace, name, key, ErrNotFound)
	}
	return string(value), nil
}

// StatefulSetNotes returns the annotations of a StatefulSet of david's.
func (c *Cluster) StatefulSetNotes(ctx context.Context, namespace, name string) (map[string]string, error) {
	set, err := c.any.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err, fmt.Sprintf("cannot look at the StatefulSet %s/%s", namespace, name), "get", "statefulsets.apps")
	}
	if set.GetLabels()[ManagedBy] != manager {
		return nil, fmt.Errorf("the StatefulSet %s/%s: %w", namespace, name, ErrForeign)
	}
	return set.GetAnnotations(), nil
}

// WaitSnapshot waits until volumes can be made of a snapshot. What its driver says is wrong may get better, so that it
// is an error, a *Failure, after Patience only.
func (c *Cluster) WaitSnapshot(ctx context.Context, namespace, name string) error {
	snapshots := c.any.Resource(schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}).Namespace(namespace)
	for began := time.Now(); ; {
		u, err := snapshots.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return explain(err, fmt.Sprintf("cannot look at the snapshot %s/%s", namespace, name), "get", "volumesnapshots.snapshot.storage.k8s.io")
		}
		if usable, _, _ := unstructured.NestedBool(u.Object, "status", "readyToUse"); usable { // what is not there is false
			return nil
		}
		if time.Since(began) > c.Patience {
			said, _, _ := unstructured.NestedString(u.Object, "status", "error", "message")
			if said == "" {
				said = fmt.Sprintf("no driver has made it within %s: is there a snapshot controller, and a VolumeSnapshotClass of the volume's driver?", c.Patience)
			}
			return &Failure{Object: fmt.Sprintf("snapshot %s/%s", namespace, name), Reason: "NotReady", Message: said, Waited: true}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return fmt.Errorf("waiting for the snapshot %s/%s: %w", namespace, name, err)
		}
	}
}
