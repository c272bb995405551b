package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServiceAddress is where clients reach a Service.
type ServiceAddress struct {
	Host string // an IP address; of a load balancer perhaps a name
	// Short tells that nodes translate the address of a load balancer themselves, so that clients inside of the cluster do not go by it
	// (KEP-1860: ipMode VIP, which is also where none is given).
	Short bool
}

// WaitService waits until a pod behind a Service is ready and the Service has an address: of a LoadBalancer the one
// that the cluster's load balancers gave it. One that has none after Patience is a *Failure, as is one without such a pod.
// Whether it answers yet is not asked.
func (c *Cluster) WaitService(ctx context.Context, namespace, name string) (a ServiceAddress, err error) {
	for began := time.Now(); ; {
		a, err := c.serviceAddress(ctx, namespace, name)
		var missing *Failure
		if err == nil || !errors.As(err, &missing) || time.Since(began) > c.Patience {
			return a, err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return a, fmt.Errorf("waiting for service %s/%s: %w", namespace, name, err)
		}
	}
}

// serviceAddress is a *Failure where waiting may help.
func (c *Cluster) serviceAddress(ctx context.Context, namespace, name string) (a ServiceAddress, err error) {
	s, err := c.core.Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return a, explain(err, fmt.Sprintf("cannot look at service %s/%s", namespace, name), "get", "services")
	}
	ready, err := c.served(ctx, namespace, name)
	if err != nil {
		return a, err
	}
	if !ready {
		return a, &Failure{Object: fmt.Sprintf("service %s/%s", namespace, name), Reason: "NoEndpoints", Message: "no pod behind it is ready", Waited: true}
	}
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ServiceAddress{Host: s.Spec.ClusterIP}, nil
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			return ServiceAddress{in.IP, in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP}, nil
		}
		if in.Hostname != "" {
			return ServiceAddress{Host: in.Hostname}, nil
		}
	}
	return a, &Failure{Object: fmt.Sprintf("service %s/%s", namespace, name), Reason: "NoLoadBalancer", Message: "nothing in the cluster gave it an address: it takes a cloud's controller, or MetalLB or the like", Waited: true}
}

// served tells whether a pod behind a Service is ready.
func (c *Cluster) served(ctx context.Context, namespace, service string) (bool, error) {
	slices := schema.GroupVersionResource{Group: discoveryv1.GroupName, Version: "v1", Resource: "endpointslices"}
	list, err := c.any.Resource(slices).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return false, explain(err, fmt.Sprintf("cannot look at what is behind service %s/%s", namespace, service), "list", "endpointslices.discovery.k8s.io")
	}
	for _, item := range list.Items {
		ready, err := endpointReady(item)
		if ready || err != nil {
			return ready, err
		}
	}
	return false, nil
}

// endpointReady tells whether a slice has an endpoint that is ready. Not known counts as ready (Kubernetes API, EndpointConditions).
func endpointReady(item unstructured.Unstructured) (bool, error) {
	var s discoveryv1.EndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &s); err != nil {
		return false, fmt.Errorf("cannot read the endpoints %s: %w", item.GetName(), err)
	}
	for _, e := range s.Endpoints {
		if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
			return true, nil
		}
	}
	return false, nil
}
