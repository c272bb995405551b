package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// api is an API server with the operators' real definitions, and david.
type api struct {
	kubeconfig, kubectl, david, home string
	crds                             string // the definitions' folder
}

// TestFlavours has an API server judge, by strict dry runs, what david renders for every operator, against
// the operators' own definitions with their rules in CEL: david manifest check does it. What has no
// definition here is skipped (see test/crds).
func TestFlavours(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("an API server takes longer than -short allows")
	}
	a := definitions(t)
	for _, args := range [][]string{
		{"--flavor", "statefulset", "--storage", "ceph-rbd"},
		{"--flavor", "statefulset", "--storage", "zfs"},
		{"--flavor", "statefulset", "--storage", "local", "--node", "n1"},
		{"--flavor", "statefulset", "--host-network"},
		{"--flavor", "statefulset", "--multus", "fast/storage-net@net1", "--mtu", "9000"},
		{"--flavor", "percona-pxc", "--multus", "storage-net"},
		{"--flavor", "percona-pxc"},
		{"--flavor", "percona-pxc", "--ha", "none", "--expose", "loadbalancer"},
		{"--flavor", "percona-ps"},
		{"--flavor", "percona-ps", "--ha", "none", "--expose", "nodeport"},
		{"--flavor", "oracle"},
		{"--flavor", "oracle", "--host-network"},
		{"--flavor", "oracle", "--ha", "none", "--expose", "loadbalancer"},
		{"--flavor", "kubeblocks"},
		{"--flavor", "kubeblocks", "--ha", "group-replication", "--expose", "loadbalancer"},
		{"--flavor", "moco", "--image", "example/mysql:8.4.6"},
		{"--flavor", "moco", "--image", "example/mysql:8.4.6", "--host-network"},
		{"--flavor", "kubeblocks", "--multus", "storage-net", "--mtu", "9000"},
		{"--flavor", "mariadb-operator", "--multus", "storage-net"},
		{"--flavor", "moco", "--image", "example/mysql:8.4.6", "--ha", "none", "--expose", "nodeport"},
		{"--flavor", "mariadb-operator"},
		{"--flavor", "mariadb-operator", "--ha", "semi-sync", "--expose", "loadbalancer"},
		{"--flavor", "mariadb-operator", "--ha", "none"},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), "--", ""), func(t *testing.T) { a.judged(t, args) })
	}
	t.Run("refused", a.refused)
}

// definitions starts an API server and gives it the definitions.
func definitions(t *testing.T) api {
	t.Helper()
	program, bin, dir := envtestPrograms(t, nil)
	work := t.TempDir()
	a := api{kubeconfig: filepath.Join(dir, "admin.kubeconfig"), kubectl: filepath.Join(bin, "kubectl"), david: filepath.Join(work, "david"),
		home: filepath.Join(work, "home"), crds: filepath.Join(work, "crds")}
	out, err := exec.Command("go", "run", "-C", "../crds", ".", "-out", a.crds).CombinedOutput()
	if err != nil && strings.Contains(string(out), "cannot download") {
		t.Skipf("the operators' definitions cannot be had: %s", out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	if out, err := exec.Command("go", "build", "-o", a.david, "../../cmd/david").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(program, "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	if out, err := exec.Command(program, "envtest", "--dir", dir, "--bin", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.run(t, a.kubectl, 0, "create", "-f", a.crds)
	a.run(t, a.kubectl, 0, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	a.run(t, a.kubectl, 0, "create", "namespace", "rook-ceph") // where Rook keeps its pools
	return a
}

// run runs a program and wants its exit code.
func (a api) run(t *testing.T, program string, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.kubeconfig, "DAVID_HOME="+a.home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s %s: exit code %d, want %d\n%s", filepath.Base(program), strings.Join(args, " "), got, code, out.String())
	}
	return out.String()
}

// judged renders a request and has the API server judge it.
func (a api) judged(t *testing.T, args []string) {
	folder := filepath.Join(t.TempDir(), "k8s")
	all := append([]string{"manifest", "--cpus", "4", "--memory", "16Gi", "--size", "50Gi", "--recovery", "40s", "--name", "orders", "--namespace", "databases", "--out", folder}, args...)
	if !strings.Contains(strings.Join(args, " "), "--storage") {
		all = append(all, "--storage", "ebs-gp3")
	}
	a.run(t, a.david, 0, all...)
	offline := a.run(t, a.david, 0, "manifest", "check", folder, "--crds", a.crds, "--recovery", "40s")
	if _, unknown, there := strings.Cut(offline, "not seen: the schema of "); there {
		t.Skipf("no definition of %s: set DAVID_CRDS", strings.SplitN(unknown, ":", 2)[0])
	}
	said := a.run(t, a.david, 0, "manifest", "check", folder, "--recovery", "40s", "--kubeconfig", a.kubeconfig)
	if !strings.Contains(said, " 0 errors, ") || strings.Contains(said, "not seen: the ") {
		t.Errorf("the API server's opinion is missing: %s", said)
	}
	followers, err := filepath.Glob(filepath.Join(folder, "follower.*.yaml")) // applied by hand, when there are data
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range followers {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		moved := filepath.Join(t.TempDir(), "follower.yaml")
		if err := os.WriteFile(moved, bytes.ReplaceAll(text, []byte("namespace: databases"), []byte("namespace: default")), 0o600); err != nil {
			t.Fatal(err)
		}
		a.run(t, a.kubectl, 0, "create", "--dry-run=server", "--validate=strict", "-f", moved)
	}
}

// refused are objects that the API server or the cluster does not take, and clusters that cannot be asked.
func (a api) refused(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const claim = "apiVersion: k8s.mariadb.com/v1alpha1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"
	cluster := write("cluster.yaml", "apiVersion: pxc.percona.com/v1\nkind: PerconaXtraDBCluster\nmetadata: {name: a, namespace: default}\nspec:\n  pxc:\n    size: three\n"+
		"    volumeSpec: {persistentVolumeClaim: {storageClassName: nowhere}}\n    resources: {limits: {cpu: \"1\", memory: 2Gi}, requests: {cpu: \"1\", memory: 2Gi}}\n")
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{2, "[dry-run] PerconaXtraDBCluster default/a", []string{cluster}},
		{2, "the cluster has no StorageClass nowhere", []string{cluster}},
		{2, "[dry-run] Unknown default/a", []string{write("unknown.yaml", claim)}},
		{2, "no context nope", []string{cluster, "--context", "nope"}},
	} {
		said := a.run(t, a.david, test.code, append([]string{"manifest", "check", "--kubeconfig", a.kubeconfig}, test.args...)...)
		if !strings.Contains(said, test.want) {
			t.Error(fmt.Errorf("%v: no %q in %s", test.args, test.want, said))
		}
	}
}
