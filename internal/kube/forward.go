package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward opens a port of 127.0.0.1 that leads to one of a pod's, by way of the API server, as kubectl
// port-forward does, and returns its address. stop closes it. It ends with the pod, too.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error) {
	what := fmt.Sprintf("cannot reach port %d of pod %s/%s by way of the API server", port, namespace, pod)
	dialer, err := c.dialer(namespace, pod)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", what, err)
	}
	ended, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(port)}, ended, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", what, err)
	}
	failed := make(chan error, 1)
	go func() { failed <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err = <-failed:
		return "", nil, explain(err, what, "create", "pods/portforward")
	case <-ctx.Done():
		close(ended)
		return "", nil, ctx.Err()
	}
	ports, err := f.GetPorts()
	if err != nil || len(ports) != 1 {
		close(ended)
		return "", nil, fmt.Errorf("%s: %d ports were opened: %w", what, len(ports), err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), func() { close(ended); <-failed }, nil
}

// dialer speaks WebSocket, and SPDY with API servers and proxies that do not take that.
func (c *Cluster) dialer(namespace, pod string) (httpstream.Dialer, error) {
	url := c.core.RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	socket, err := portforward.NewSPDYOverWebsocketDialer(url, c.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(socket, old, func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) }), nil
}
