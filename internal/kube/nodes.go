package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nodes returns the cluster's nodes.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := c.core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain(err, "cannot look at the nodes", "list", "nodes")
	}
	return list.Items, nil
}
