package ceph

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPlain refuses names that a program would take for something else.
func TestPlain(t *testing.T) {
	for name, want := range map[string]bool{"mysql": true, "replicas-2": true, "a.b_C9": true, "": false, "-p": false, "--conf": false, "a/b": false, "a@snap": false, "a b": false} {
		if got := plain(name) == nil; got != want {
			t.Errorf("%q is taken: %v", name, got)
		}
	}
	for _, i := range []Image{{Pool: "-x", Name: "a"}, {Pool: "p", Name: "a@s"}} {
		if err := i.Create(t.Context(), 1<<30); err == nil || !strings.Contains(err.Error(), "is no name") {
			t.Errorf("%+v: %v", i, err)
		}
	}
}

// TestRate reads what fio says of writes alone, and of writes with a flush after each.
func TestRate(t *testing.T) {
	const alone = `fio remarks {"jobs": [{"error": 0, "write": {"iops": 900.5, "lat_ns": {"mean": 2000000}, "clat_ns": {"percentile": {"99.000000": 9000000}}}, "sync": {"lat_ns": {"mean": 0}}}]}`
	text := alone[len("fio remarks "):]
	flushed := strings.Replace(text, `"mean": 0`, `"mean": 3000000, "percentile": {"99.000000": 4000000}`, 1)
	for name, c := range map[string]struct {
		text string
		want Rate
	}{
		"alone":   {alone, Rate{900.5, 2 * time.Millisecond, 9 * time.Millisecond}},
		"flushed": {flushed, Rate{900.5, 5 * time.Millisecond, 13 * time.Millisecond}},
	} {
		if got, err := parseRate([]byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "{}", `{"jobs": []}`, `{"jobs": [{"error": 5, "write": {"iops": 3}}]}`, `{"jobs": [{"write": {"iops": 0}}]}`} {
		if _, err := parseRate([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestNoMonitor: Ceph's programs wait for ever where nobody answers. What they are run by does not, says which
// cluster it is, and ends what they started.
func TestNoMonitor(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\nsleep 1000 &\necho $! >" + bin + "/child\nwait\n"
	if err := os.WriteFile(filepath.Join(bin, "ceph"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c := Cluster{Conf: "/some/ceph.conf"}
	began := time.Now()
	_, err := c.run(context.Background(), time.Second, filepath.Join(bin, "ceph"), "osd", "stat")
	if err == nil || !strings.Contains(err.Error(), "does the cluster of /some/ceph.conf run") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	child, err := os.ReadFile(filepath.Join(bin, "child"))
	if err != nil {
		t.Fatal(err)
	}
	if args, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/cmdline"); strings.HasPrefix(string(args), "sleep") { // a zombie has none
		t.Error("what it started is still there")
	}
}

// TestTrust takes a configuration that nobody else can have written, and no link to one.
func TestTrust(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "ceph.conf")
	link := filepath.Join(dir, "link.conf")
	if err := errors.Join(os.WriteFile(conf, nil, 0o600), os.Symlink(conf, link)); err != nil {
		t.Fatal(err)
	}
	if err := (Cluster{Conf: conf}).Trust(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{link, dir, filepath.Join(dir, "nowhere")} {
		if err := (Cluster{Conf: bad}).Trust(); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if err := os.Chmod(conf, 0o622); err != nil {
		t.Fatal(err)
	}
	if err := (Cluster{Conf: conf}).Trust(); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("%v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(conf, 0o600), os.Lchown(conf, 54321, 54321)); err != nil {
		t.Fatal(err)
	}
	if err := (Cluster{Conf: conf}).Trust(); err == nil || !strings.Contains(err.Error(), "belongs to uid 54321") {
		t.Errorf("%v", err)
	}
}

// TestMissing names the package where a program is not there.
func TestMissing(t *testing.T) {
	if err := Find("ceph-that-nobody-has"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install ceph-common") {
		t.Errorf("%v", err)
	}
}

// TestEnviron keeps what leads Ceph's programs elsewhere from them.
func TestEnviron(t *testing.T) {
	t.Setenv("CEPH_ARGS", "--conf=/other")
	for _, v := range (Cluster{Conf: "/c"}).Environ() {
		if strings.HasPrefix(v, "CEPH_") && v != "CEPH_CONF=/c" {
			t.Errorf("it has %s", v)
		}
	}
}
