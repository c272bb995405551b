package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAPIServer: etcd and an API server alone start as whoever runs the tests and, where that is root, as an
// ordinary user, too; a strict dry run takes what is right and names what is wrong.
func TestAPIServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("an API server takes longer than -short allows")
	}
	t.Run("here", func(t *testing.T) { apiServer(t, nil) })
	t.Run("ordinary user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("the other test is this one")
		}
		apiServer(t, &syscall.Credential{Uid: 65534, Gid: 65534})
	})
}

func apiServer(t *testing.T, as *syscall.Credential) {
	program, bin, dir := envtestPrograms(t, as)
	run := func(program string, input string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		cmd.Dir = filepath.Dir(dir)
		cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(dir), "KUBECONFIG="+filepath.Join(dir, "admin.kubeconfig"))
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() {
		if out, err := run(program, "", "down", "--dir", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if out, err := run(program, "", "leftovers", "--dir", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	if out, err := run(program, "", "envtest", "--dir", dir, "--bin", bin); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := run(program, "", "envtest", "--dir", dir, "--bin", bin); err == nil || !strings.Contains(out, "is up in "+dir+" already") {
		t.Errorf("a second one beside it: %v: %s", err, out)
	}
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {a: b}\n"
	dryRun := []string{"apply", "--dry-run=server", "--validate=strict", "-f", "-"}
	if out, err := run(filepath.Join(bin, "kubectl"), good, dryRun...); err != nil || !strings.Contains(out, "configmap/a created (server dry run)") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run(filepath.Join(bin, "kubectl"), strings.Replace(good, "\ndata:", "\ndota:", 1), dryRun...); err == nil || !strings.Contains(out, `unknown field "dota"`) {
		t.Errorf("a field that does not exist: %v: %s", err, out)
	}
	if out, err := run(filepath.Join(bin, "kubectl"), "", "get", "configmap", "a"); err == nil {
		t.Errorf("a dry run has made something: %s", out)
	}
}

// envtestPrograms are the cluster program, the binaries' folder, and a private folder yet to be made; for
// another user, copies where that user may read them.
func envtestPrograms(t *testing.T, as *syscall.Credential) (program, bin, dir string) {
	t.Helper()
	work, err := os.MkdirTemp("", "david-envtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	c := &cluster{}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(c.work) })
	out, err := c.run("build")
	if err != nil {
		t.Fatal(err)
	}
	if as == nil {
		return c.program, strings.TrimSpace(out), filepath.Join(work, "api")
	}
	if err := os.Chown(work, int(as.Uid), int(as.Gid)); err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(work, "bin")
	for from, to := range map[string]string{c.program: "cluster", filepath.Join(strings.TrimSpace(out), "kube"): "bin/kube"} {
		if said, err := exec.Command("install", "-D", "-m", "755", from, filepath.Join(work, to)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if err := os.Symlink("kube", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(work, "cluster"), bin, filepath.Join(work, "api")
}
