package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"david/internal/input"
)

// kubeconfig returns a file with the contexts one and two, and no current one unless named.
func kubeconfig(t *testing.T, server, current string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: one, context: {cluster: c, user: u, namespace: db}}, {name: two, context: {cluster: c, user: u}}]
current-context: "` + current + `"
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// closed returns an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestOpenRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("contexts: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, context string
		kind          error
		says          string
	}{
		"no kubeconfig":    {"", "", ErrConfig, "--kubeconfig"},
		"no such file":     {"/nonexistent/config", "", ErrConfig, "/nonexistent/config"},
		"broken":           {broken, "", ErrConfig, "cannot read"},
		"empty":            {empty, "", ErrConfig, "no contexts"},
		"wrong context":    {kubeconfig(t, "http://127.0.0.1:1", "one"), "three", ErrConfig, "three; it has: one, two"},
		"context, no file": {"", "three", ErrConfig, "no contexts"},
		"no current":       {kubeconfig(t, "http://127.0.0.1:1", ""), "", ErrConfig, "one of: one, two"},
		"nobody listens":   {kubeconfig(t, closed(t), "one"), "", ErrUnreachable, "one"},
	} {
		_, err := Open(t.Context(), c.file, c.context)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.says)
		}
	}
}

func TestOpen(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Write([]byte(`{"gitVersion":"v1.34.4"}`))
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	c, err := Open(t.Context(), kubeconfig(t, s.URL, "two"), "one")
	if err != nil || c.Version != "v1.34.4" || c.Namespace != "db" || c.Context != "one" || c.Server != s.URL {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = Open(t.Context(), kubeconfig(t, s.URL, "two"), "")
	if err != nil || c.Namespace != "default" || c.Context != "two" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestOpenWrongCredentials(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	}))
	defer s.Close()
	if _, err := Open(t.Context(), kubeconfig(t, s.URL, "one"), ""); !errors.Is(err, ErrForbidden) {
		t.Errorf("%v", err)
	}
}

func TestExplain(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, c := range map[string]struct {
		err  error
		kind error
		says string
	}{
		"forbidden": {apierrors.NewForbidden(jobs, "x", errors.New("user bob cannot create")), ErrForbidden, "the verb create on jobs.batch"},
		"not found": {apierrors.NewNotFound(jobs, "x"), ErrNotFound, `"x" not found`},
		"invalid":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "x", field.ErrorList{field.Required(field.NewPath("spec"), "it is missing")}), ErrInvalid, "it is missing"},
		"strict":    {apierrors.NewBadRequest(`strict decoding error: unknown field "spec.x"`), ErrInvalid, "spec.x"},
		"no kind":   {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Foo"}}, ErrInvalid, "custom resource definitions"},
		"timeout":   {context.DeadlineExceeded, ErrUnreachable, ""},
		"cancelled": {context.Canceled, context.Canceled, ""},
		"refused":   {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, ErrUnreachable, "refused"},
	} {
		err := explain(c.err, "cannot create it", "create", "jobs.batch")
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "cannot create it: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if explain(nil, "x", "get", "y") != nil {
		t.Error("no error was explained")
	}
	if err := explain(&apierrors.StatusError{ErrStatus: metav1.Status{Message: "quota"}}, "x", "get", "y"); errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "quota") {
		t.Errorf("%v", err)
	}
}

// TestLogIsBounded reads logs that a pod writes on and on.
func TestLogIsBounded(t *testing.T) {
	size := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Write([]byte(`{"gitVersion":"v1.34.4"}`))
			return
		}
		for sent := 0; sent < size; sent += 1 << 20 {
			w.Write(make([]byte, 1<<20))
		}
	}))
	defer s.Close()
	c, err := Open(t.Context(), kubeconfig(t, s.URL, "one"), "")
	if err != nil {
		t.Fatal(err)
	}
	size = 1 << 20
	if text, err := c.Logs(t.Context(), "db", "pod", LogOptions{}); err != nil || len(text) != size {
		t.Errorf("%d bytes of %d, %v", len(text), size, err)
	}
	size = logBytes + 1<<20
	if text, err := c.Logs(t.Context(), "db", "pod", LogOptions{}); !errors.Is(err, input.ErrLong) || text != "" {
		t.Errorf("a longer one: %d bytes, %v", len(text), err)
	}
}

// TestOpenReadsFilesOnly refuses what is endless before client-go reads it, also where a kubeconfig names it.
func TestOpenReadsFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	naming := func(cluster, user string) string {
		path := filepath.Join(t.TempDir(), "config")
		text := "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n" +
			"contexts: [{name: one, context: {cluster: c, user: u}}]\ncurrent-context: one\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, path := range map[string]string{
		"is no regular file but a device":     "/dev/zero",
		"is no regular file but a pipe":       pipe,
		"/dev/zero is no regular file":        naming(", certificate-authority: /dev/zero", "token: t"),
		"/pipe is no regular file but a pipe": naming("", "tokenFile: "+pipe),
		"/dev/urandom is no regular file":     naming("", "client-certificate: /dev/urandom, client-key: /dev/urandom"),
	} {
		if _, err := Open(t.Context(), path, ""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
