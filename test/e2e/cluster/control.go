package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// writeCertificates makes the authority and a certificate and kubeconfig for everyone who talks to the API
// server.
func (s *state) writeCertificates() error {
	ca, err := newAuthority(s.path("pki"))
	if err != nil {
		return err
	}
	if err := ca.issue("apiserver", "kube-apiserver", "kubernetes", s.HostIP, "127.0.0.1", s.serviceIP(), "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"); err != nil {
		return err
	}
	clients := []struct{ name, user, group string }{{"admin", "admin", "system:masters"}}
	if s.whole() {
		clients = append(clients, []struct{ name, user, group string }{
			{"controller-manager", "system:kube-controller-manager", "kubernetes"},
			{"scheduler", "system:kube-scheduler", "kubernetes"},
			{"proxy", "system:kube-proxy", "kubernetes"},
		}...)
	}
	for _, c := range clients {
		if err := errors.Join(ca.issue(c.name, c.user, c.group), s.kubeconfig(c.name)); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes { // a kubelet serves with its certificate, too
		if err := errors.Join(ca.issue("kubelet-"+n.Name, "system:node:"+n.Name, "system:nodes", n.IP, n.Name), s.kubeconfig("kubelet-"+n.Name)); err != nil {
			return err
		}
	}
	return nil
}

// choosePorts takes the usual ones where nobody else does. The API server's address has to exist already.
func (s *state) choosePorts() (err error) {
	for _, p := range []struct {
		port   *int
		ip     string
		wanted int
	}{{&s.Ports.API, s.HostIP, 6443}, {&s.Ports.Etcd, "127.0.0.1", 12379}, {&s.Ports.EtcdPeer, "127.0.0.1", 12380}} {
		if *p.port, err = freePort(p.ip, p.wanted); err != nil {
			return err
		}
	}
	return nil
}

// startAPI starts etcd and the API server. etcd does not wait for the disk: its data are thrown away.
func (s *state) startAPI() error {
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", s.Ports.Etcd), fmt.Sprintf("http://127.0.0.1:%d", s.Ports.EtcdPeer)
	if _, err := s.start("etcd", s.binary("etcd"), "--data-dir", s.path("etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
		"--unsafe-no-fsync", "--log-level", "warn"); err != nil {
		return err
	}
	pki := func(name string) string { return s.path("pki", name) }
	args := []string{s.binary("kube-apiserver"), "--etcd-servers", client,
		"--bind-address", s.HostIP, "--advertise-address", s.HostIP, "--secure-port", fmt.Sprint(s.Ports.API),
		"--service-cluster-ip-range", s.Services, "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--allow-privileged", "--client-ca-file", pki("ca.crt"), "--tls-cert-file", pki("apiserver.crt"), "--tls-private-key-file", pki("apiserver.key"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", pki("sa.pub"), "--service-account-signing-key-file", pki("sa.key"),
		"--cert-dir", s.path("pki"),
	}
	if !s.whole() {
		args = append(args, "--endpoint-reconciler-type", "none") // 127.0.0.1 cannot be a Service's endpoint
	} else {
		args = append(args, "--kubelet-client-certificate", pki("admin.crt"), "--kubelet-client-key", pki("admin.key"),
			"--kubelet-certificate-authority", pki("ca.crt"), "--kubelet-preferred-address-types", "InternalIP", "--enable-aggregator-routing")
	}
	_, err := s.start("apiserver", args...)
	return err
}

// startControllers starts the controller manager and the scheduler, which serve nothing themselves.
func (s *state) startControllers() error {
	if _, err := s.start("controller-manager", s.binary("kube-controller-manager"), "--kubeconfig", s.path("controller-manager.kubeconfig"),
		"--secure-port", "0", "--leader-elect=false", "--allocate-node-cidrs=false", "--cluster-cidr", s.PodCIDR,
		"--service-account-private-key-file", s.path("pki", "sa.key"), "--root-ca-file", s.path("pki", "ca.crt"),
		"--cluster-signing-cert-file", s.path("pki", "ca.crt"), "--cluster-signing-key-file", s.path("pki", "ca.key"), "--use-service-account-credentials"); err != nil {
		return err
	}
	_, err := s.start("scheduler", s.binary("kube-scheduler"), "--kubeconfig", s.path("scheduler.kubeconfig"), "--secure-port", "0", "--leader-elect=false")
	return err
}

func (s *state) binary(name string) string { return s.Bin + "/" + name }

// api is the API server seen with the administrator's certificate.
type api struct {
	url    string
	client http.Client
}

func (s *state) api() (*api, error) {
	pair, err := tls.LoadX509KeyPair(s.path("pki", "admin.crt"), s.path("pki", "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the administrator's certificate: %w", err)
	}
	ca, err := readCertificate(s.path("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &api{fmt.Sprintf("https://%s:%d", s.HostIP, s.Ports.API), http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	return a.do(ctx, http.MethodGet, path, "")
}

// do sends a request; a body is a merge patch.
func (a *api) do(ctx context.Context, method, path, patch string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(patch))
	if err != nil {
		return nil, err
	}
	if patch != "" {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, lastLines(string(body), 1))
	}
	return body, err
}

// waitFor asks until the answer is no error; then the last one tells what was missing.
func waitFor(ctx context.Context, what string, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %s: %w", what, patience, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// waitAPI waits for the API server; it also ends where the server does.
func (s *state) waitAPI(ctx context.Context) error {
	a, err := s.api()
	if err != nil {
		return err
	}
	return s.explain("apiserver", waitFor(ctx, "the API server is not ready", 2*time.Minute, func() error {
		_, err := a.get(ctx, "/readyz")
		return err
	}))
}

// explain adds the last words of a component to an error.
func (s *state) explain(component string, err error) error {
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile(s.path("log", component+".log"))
	if readErr != nil || len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s says: %s", err, component, lastLines(string(text), 3))
}

// check says what is missing for a whole cluster on this machine.
func check() error {
	if os.Geteuid() != 0 {
		return targetError{errors.New("a cluster with a node needs root; without, there is: cluster envtest")}
	}
	for _, c := range []struct{ command, pkg string }{
		{"containerd", "containerd"}, {"ctr", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"runc", "runc"}, {"iptables", "iptables"},
		{"nft", "nftables"}, {"ip", "iproute2"}, {"nsenter", "util-linux"}, {"unshare", "util-linux"}, {"mount", "mount"},
	} {
		if _, err := exec.LookPath(c.command); err != nil {
			return targetError{fmt.Errorf("%s is missing (package %s); scripts/setup e2e installs what is needed", c.command, c.pkg)}
		}
	}
	_, err := tracking(hierarchies())
	return err
}
