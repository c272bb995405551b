package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/kube"
	"david/internal/relay"
	"david/internal/result"
)

func TestClusterCodes(t *testing.T) {
	for want, list := range map[int][]error{
		exitUsage:  {kube.ErrConfig, kube.ErrNotFound, kube.ErrForeign, kube.ErrInvalid},
		exitTarget: {kube.ErrUnreachable, kube.ErrForbidden, kube.ErrFailed, &kube.Failure{Reason: "Evicted"}},
		exitFailed: {errors.New("something else")},
	} {
		for _, err := range list {
			if got := exitCode(fmt.Errorf("x: %w", err)); got != want {
				t.Errorf("%v: exit code %d, want %d", err, got, want)
			}
		}
	}
	for from, want := range map[int32]int{1: exitFailed, 2: exitUsage, 3: exitInvalid, 4: exitTarget, 127: exitTarget, 137: exitTarget} {
		if got := ofClient(from); got != want {
			t.Errorf("a client that ends with %d: %d, want %d", from, got, want)
		}
	}
}

// TestPodPassword finds where the password is, never what it is.
func TestPodPassword(t *testing.T) {
	server := corev1.Container{Env: []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "root"}, Key: "pw"}}}}}
	for _, c := range []struct {
		flags       podFlags
		server      corev1.Container
		secret, key string
		bad         bool
	}{
		{podFlags{user: "root"}, server, "root", "pw", false},
		{podFlags{user: "root", secret: "mine"}, server, "mine", "password", false},
		{podFlags{user: "bench", secret: "mine:k"}, corev1.Container{}, "mine", "k", false},
		{podFlags{user: "bench"}, server, "", "", true},
		{podFlags{user: "root"}, corev1.Container{}, "", "", true},
		{podFlags{user: "root", secret: ":k"}, server, "", "", true},
		{podFlags{user: "root", secret: "n:"}, server, "", "", true},
	} {
		secret, key, err := c.flags.password(c.server)
		if secret != c.secret || key != c.key || (err != nil) != c.bad {
			t.Errorf("%+v: %s, %s, %v", c.flags, secret, key, err)
		}
	}
}

// TestWaited: where david gave up waiting, the flag that waits longer is named; where waiting is of no use it is not.
func TestWaited(t *testing.T) {
	f := podFlags{patience: 2 * time.Minute}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", &kube.Failure{Object: "pod db/mysql-0", Reason: "NotReady", Waited: true}), "x: pod db/mysql-0: NotReady; david waited for 2m0s, and --start-timeout waits longer"},
		{&kube.Failure{Object: "pod db/mysql-0", Reason: "CrashLoopBackOff"}, "pod db/mysql-0: CrashLoopBackOff"},
		{kube.ErrNotFound, kube.ErrNotFound.Error()},
	} {
		got := f.waited(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) || exitCode(got) != exitCode(c.err) {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
	if f.waited(nil) != nil {
		t.Error("an error of nothing")
	}
}

func TestPodArgs(t *testing.T) {
	f := benchFlags{loadFlags: loadFlags{workload: "oltp_read_write", tables: 2, tableSize: 10, threads: "1,4", time: time.Minute, warmup: 5 * time.Second, randType: "uniform"}, repeat: 3, force: true}
	f.pod.clients = 2
	got := strings.Join(podArgs(f, "crew"), " ")
	want := "bench --relay --workload oltp_read_write --rand-type uniform --threads 1,4 --tables=2 --table-size=10 --time=1m0s --warmup=5s --rate=0 --repeat=3 --force --clients=2 --crew=crew"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if name := runName("bench-20260102-030405.678"); name != "david-bench-20260102-030405-678" {
		t.Error(name)
	}
}

func TestAllowance(t *testing.T) {
	one := allowance([]result.Workload{{Tables: 1, TableSize: 1000, Seconds: 60, Warmup: 15}}, result.Design{Blocks: 1})
	four := allowance([]result.Workload{{Tables: 1, TableSize: 1000, Seconds: 60, Warmup: 15}, {Seconds: 60, Warmup: 15}}, result.Design{Blocks: 2})
	if one < jobSlack+75*time.Second || four-one < 3*75*time.Second {
		t.Errorf("%s for one trial, %s for four", one, four)
	}
}

// TestCarry takes a client's log, written as the client writes it, into a store: as a whole, and cut off in the middle.
func TestCarry(t *testing.T) {
	theirs, err := result.Create(filepath.Join(t.TempDir(), "theirs"), result.Experiment{ID: "bench-1", David: "other", Server: result.Server{Version: "9.7.4"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	end, err := benchFlags{relay: true}.relayed(&app{out: &log}, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs.LogPath("t1", "sysbench"), []byte("sysbench said\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	trial := result.Trial{ID: "t1", Arm: "pod", TPS: 5, Points: []result.Point{{Second: 1, TPS: 5}}, Gates: []result.Gate{}}
	if err := errors.Join(theirs.PutArm(result.Arm{Name: "pod"}), theirs.AppendTrial(trial), theirs.Finish(result.Finish{Best: "x"}), end()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, n := range []int{3, len(lines)} {
		c := newCarrier(t)
		for _, line := range append([]string{"david: warming up"}, lines[:n]...) {
			if err := c.line(t.Context(), line); err != nil {
				t.Fatal(err)
			}
		}
		trials, err := c.store.Trials()
		if err != nil || len(trials) != 1 || trials[0].TPS != 5 {
			t.Errorf("%d lines: %d trials, %v", n, len(trials), err)
		}
		if text, err := os.ReadFile(c.store.LogPath("t1", "sysbench")); string(text) != "sysbench said\n" {
			t.Errorf("%d lines: the log is %q, %v", n, text, err)
		}
		e := c.store.Experiment()
		if e.ID != "bench-2" || e.Server.Version != "9.7.4" || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "david") {
			t.Errorf("%d lines: %+v", n, e)
		}
		if c.reader.Ended() != (n == len(lines)) || (c.ended != nil) != (n == len(lines)) {
			t.Errorf("%d lines: ended %v, %v", n, c.reader.Ended(), c.ended)
		}
	}
}

func newCarrier(t *testing.T) *carrier {
	t.Helper()
	e := result.Experiment{ID: "bench-2", David: "this", Pod: &result.PodFacts{}}
	store, err := result.Create(filepath.Join(t.TempDir(), "ours"), e)
	if err != nil {
		t.Fatal(err)
	}
	// No API server answers: the counters are not read, which is no error of the measurement.
	c := &carrier{experiment: e, store: store, progress: newProgress(io.Discard), home: t.TempDir()}
	c.cluster, c.pod = unreachable(t), &corev1.Pod{}
	return c
}

// unreachable is a cluster that has gone since it was opened.
func unreachable(t *testing.T) *kube.Cluster {
	t.Helper()
	s := newVersionServer(t)
	path := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + s.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Open(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return c
}

// TestCarryRefuses what a client may not send: a file elsewhere than in the experiment's folder.
func TestCarryRefuses(t *testing.T) {
	c := newCarrier(t)
	for _, name := range []string{"../x", "/etc/x", "a/b"} {
		if err := c.document(t.Context(), relay.Document{Files: map[string]string{name: "x"}}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := c.document(t.Context(), relay.Document{End: true, Failed: "set back", Code: exitInvalid}); err != nil || exitCode(c.failed) != exitInvalid {
		t.Errorf("%v, %v", err, c.failed)
	}
}

// newVersionServer answers as an API server that is asked for its version, and nothing else.
func newVersionServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"gitVersion":"v1.34.4"}`) }))
	t.Cleanup(s.Close)
	return s
}
