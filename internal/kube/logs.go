package kube

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
)

// LogOptions says which log, and how much of it.
type LogOptions struct {
	Container string // "" where the pod has one
	Previous  bool   // of the container before it was started again
	Tail      int64  // lines at its end; 0: all
}

// Logs returns what a container wrote.
func (c *Cluster) Logs(ctx context.Context, namespace, pod string, o LogOptions) (string, error) {
	options := &corev1.PodLogOptions{Container: o.Container, Previous: o.Previous}
	if o.Tail > 0 {
		options.TailLines = &o.Tail
	}
	text, err := c.core.Pods(namespace).GetLogs(pod, options).DoRaw(ctx)
	return string(text), explain(err, fmt.Sprintf("cannot read the log of pod %s/%s", namespace, pod), "get", "pods/log")
}

// Follow copies what a container writes until it ends, or until the connection does: a caller who needs all
// of it reads Logs afterwards.
func (c *Cluster) Follow(ctx context.Context, namespace, pod, container string, to io.Writer) (err error) {
	stream, err := c.core.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return explain(err, fmt.Sprintf("cannot follow the log of pod %s/%s", namespace, pod), "get", "pods/log")
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	_, err = io.Copy(to, stream)
	return err
}
