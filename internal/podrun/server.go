package podrun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"david/internal/kube"
	"david/internal/podjob"
	"david/internal/result"
)

// Server says in which pod, found ready, a server runs, and how to reach it.
type Server struct {
	Pod       *corev1.Pod
	Container corev1.Container
	Address   string // host:port
}

// ErrPod marks a pod that cannot be a server.
var ErrPod = errors.New("no server can be in it")

// Find waits for the pod to be ready and finds its server. clientNode, unless it is "", has to be there.
func Find(ctx context.Context, c *kube.Cluster, namespace, name, clientNode string, say func(string)) (s Server, err error) {
	if clientNode != "" {
		// A node that may not be asked for is left to the scheduler, which says so.
		if _, err := c.Node(ctx, clientNode); err != nil && !errors.Is(err, kube.ErrForbidden) {
			return s, err
		}
	}
	say(fmt.Sprintf("waiting for pod %s/%s to be ready", namespace, name))
	if s.Pod, err = c.WaitPod(ctx, namespace, name); err != nil {
		return s, err
	}
	container, port, err := podjob.Server(s.Pod)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrPod, err)
	}
	s.Container, s.Address = container, net.JoinHostPort(s.Pod.Status.PodIP, strconv.Itoa(int(port)))
	return s, nil
}

// facts tell what a cluster of that version says of the pod.
func (s Server) facts(kubernetes string) *result.PodFacts {
	quantity := func(list corev1.ResourceList, name corev1.ResourceName) string {
		if q, ok := list[name]; ok {
			return q.String()
		}
		return ""
	}
	r := s.Container.Resources
	f := &result.PodFacts{Namespace: s.Pod.Namespace, Name: s.Pod.Name, Node: s.Pod.Spec.NodeName,
		QoS: string(s.Pod.Status.QOSClass), Container: s.Container.Name, Image: s.Container.Image,
		CPURequest: quantity(r.Requests, corev1.ResourceCPU), CPULimit: quantity(r.Limits, corev1.ResourceCPU),
		MemoryRequest: quantity(r.Requests, corev1.ResourceMemory), MemoryLimit: quantity(r.Limits, corev1.ResourceMemory),
		Kubernetes: kubernetes}
	for _, status := range s.Pod.Status.ContainerStatuses {
		if status.Name == s.Container.Name {
			f.ImageID, f.Restarts = status.ImageID, int(status.RestartCount)
		}
	}
	return f
}
