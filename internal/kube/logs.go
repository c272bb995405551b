package kube

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"david/internal/input"
)

// LogOptions says which log, and how much of it.
type LogOptions struct {
	Container string // "" where the pod has one
	Previous  bool   // of the container before it was started again
	Tail      int64  // lines at its end; 0: all
}

// logBytes is the longest log that is read: container runtimes keep 10 MiB of it by default, and a record of
// hours of measuring has a few.
const logBytes = 64 << 20

// Logs returns what a container wrote. A log of more than 64 MiB is an error.
func (c *Cluster) Logs(ctx context.Context, namespace, pod string, o LogOptions) (string, error) {
	options := &corev1.PodLogOptions{Container: o.Container, Previous: o.Previous}
	if o.Tail > 0 {
		options.TailLines = &o.Tail
	}
	text, err := c.log(ctx, namespace, pod, options)
	return string(text), explain(err, fmt.Sprintf("cannot read the log of pod %s/%s", namespace, pod), "get", "pods/log")
}

func (c *Cluster) log(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (text []byte, err error) {
	stream, err := c.core.Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	return input.All(stream, "it", logBytes)
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
