package podrun

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/joblog"
	"david/internal/kube"
	"david/internal/result"
)

// TestArgs: each client is told the server; of several, the first is told how many there are, the others whom
// to follow.
func TestArgs(t *testing.T) {
	r := Request{Args: []string{"bench", "--relay"}, Every: []string{"--statement-deadline=20s"}, Server: Server{Address: "10.0.0.1:3306"}, Clients: Clients{Count: 1, User: "root"}}
	const id, name, dsn = "bench-20260102-030405.678", "david-bench-20260102-030405-678", " --statement-deadline=20s --dsn=root@tcp(10.0.0.1:3306)/"
	for _, c := range []struct {
		count, i  int
		job, want string
	}{
		{1, 0, name, "bench --relay" + dsn},
		{3, 0, name, "bench --relay --clients=3 --crew=" + name + dsn},
		{3, 2, name + "-2", "bench-hand --crew=" + name + " --number=2 --clients=3" + dsn},
	} {
		r.Clients.Count = c.count
		r.Server.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db"}}
		job := r.job(id, c.i, time.Minute)
		if got := strings.Join(job.Args, " "); got != c.want || job.Name != c.job || job.Namespace != "db" || job.Grace != time.Minute {
			t.Errorf("client %d of %d: %+v\nwant %s", c.i, c.count, job, c.want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	load := result.Workload{Tables: 1, TableSize: 1000, Seconds: 60, Warmup: 15}
	one := BenchDeadline([]result.Workload{load}, result.Design{Blocks: 1})
	four := BenchDeadline([]result.Workload{load, {Seconds: 60, Warmup: 15}}, result.Design{Blocks: 2})
	if one < jobSlack+75*time.Second || four-one < 3*75*time.Second {
		t.Errorf("%s for one trial, %s for four", one, four)
	}
	alone, loaded := TuneDeadline(time.Minute, nil), TuneDeadline(time.Minute, &load)
	if alone < TuneGrace+13*time.Minute || loaded-alone < 15*time.Second {
		t.Errorf("%s without a load, %s with one", alone, loaded)
	}
}

func TestExitCodes(t *testing.T) {
	for from, want := range map[int32]int{1: clientFailed, 2: clientUsage, 3: clientInvalid, 4: clientLostServer, 127: clientLostServer, 137: clientLostServer} {
		if got := exitCode(from); got != want {
			t.Errorf("a client that ends with %d: %d, want %d", from, got, want)
		}
	}
}

// TestSent takes a client's log, written as the client writes it, into a store: as a whole, and cut off in
// the middle.
func TestSent(t *testing.T) {
	theirs, err := result.Create(filepath.Join(t.TempDir(), "theirs"), result.Experiment{ID: "bench-1", David: "other", Server: result.Server{Version: "9.7.4"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	end, err := Send(&log, theirs)
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
		j := runner(t)
		for _, line := range append([]string{"david: warming up"}, lines[:n]...) {
			if err := j.line(t.Context(), line); err != nil {
				t.Fatal(err)
			}
		}
		trials, err := j.store.Trials()
		if err != nil || len(trials) != 1 || trials[0].TPS != 5 {
			t.Errorf("%d lines: %d trials, %v", n, len(trials), err)
		}
		if text, err := os.ReadFile(j.store.LogPath("t1", "sysbench")); string(text) != "sysbench said\n" {
			t.Errorf("%d lines: the log is %q, %v", n, text, err)
		}
		e := j.store.Experiment()
		if e.ID != "bench-2" || e.Server.Version != "9.7.4" || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "david") {
			t.Errorf("%d lines: %+v", n, e)
		}
		if j.reader.Ended() != (n == len(lines)) || (j.ended != nil) != (n == len(lines)) {
			t.Errorf("%d lines: ended %v, %v", n, j.reader.Ended(), j.ended)
		}
	}
}

// TestSentTune: what a live tune printed comes back with its error, and with the record of its changes where
// it has one.
func TestSentTune(t *testing.T) {
	store, err := result.Create(filepath.Join(t.TempDir(), "theirs"), result.Experiment{ID: "live-tune-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.Dir(), "record.json"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		printed, record string
		failed          error
	}{
		{"", "", errors.New("no server")},
		{`{"dir":""}`, "", nil},
		{`{"dir":"` + store.Dir() + `"}`, "changed", errors.New("set back")},
	} {
		var log bytes.Buffer
		if err := SendTune(&log, []byte(c.printed), []string{"record.json", "missing"}, c.failed, clientInvalid); err != nil {
			t.Fatal(err)
		}
		j := runner(t)
		j.store = nil
		for line := range strings.Lines(log.String()) {
			if err := j.line(t.Context(), strings.TrimSuffix(line, "\n")); err != nil {
				t.Fatal(err)
			}
		}
		var failed *ClientError
		if string(j.tune) != c.printed || !j.reader.Ended() || errors.As(j.failed, &failed) != (c.failed != nil) {
			t.Errorf("%q: %q, ended %v, %v", c.printed, j.tune, j.reader.Ended(), j.failed)
		}
		if c.record == "" {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(j.store.Dir(), "record.json")); string(text) != c.record {
			t.Errorf("the record is %q, %v", text, err)
		}
	}
}

// runner has a cluster that does not answer: the counters are not read, which is no error of the measurement.
func runner(t *testing.T) *jobRunner {
	t.Helper()
	e := result.Experiment{ID: "bench-2", David: "this", Pod: &result.PodFacts{}}
	store, err := result.Create(filepath.Join(t.TempDir(), "ours"), e)
	if err != nil {
		t.Fatal(err)
	}
	j := &jobRunner{Request: Request{Home: t.TempDir(), Say: func(string) {}}, experiment: e, store: store}
	j.Cluster, j.Server.Pod = unreachable(t), &corev1.Pod{}
	return j
}

// unreachable is a cluster that has gone since it was opened.
func unreachable(t *testing.T) *kube.Cluster {
	t.Helper()
	c, s := open(t, func(string) string { return "" })
	s.Close()
	return c
}

// opened is a cluster that gives these answers.
func opened(t *testing.T, answer func(path string) string) *kube.Cluster {
	t.Helper()
	c, s := open(t, answer)
	t.Cleanup(s.Close)
	return c
}

func open(t *testing.T, answer func(path string) string) (*kube.Cluster, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			io.WriteString(w, `{"gitVersion":"v1.34.4"}`)
			return
		}
		io.WriteString(w, answer(r.URL.Path))
	}))
	path := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + s.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Open(t.Context(), path, "")
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	return c, s
}

// TestRefuses what a client may not send: a file elsewhere than in the experiment's folder.
func TestRefuses(t *testing.T) {
	j := runner(t)
	for _, name := range []string{"../x", "/etc/x", "a/b"} {
		if err := j.document(t.Context(), joblog.Document{Files: map[string]string{name: "x"}}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	for _, d := range []joblog.Document{{Arm: &result.Arm{Name: "a"}}, {Trial: &result.Trial{ID: "x"}}} {
		j := runner(t)
		j.store = nil
		if err := j.document(t.Context(), d); err == nil || !strings.Contains(err.Error(), "before its experiment") {
			t.Errorf("an arm or a trial before an experiment: %v", err)
		}
	}
	var failed *ClientError
	err := j.document(t.Context(), joblog.Document{End: true, Failed: "set back", Code: clientInvalid})
	if err != nil || !errors.As(j.failed, &failed) || failed.Code != clientInvalid {
		t.Errorf("%v, %v", err, j.failed)
	}
}

// TestStopped: a client that was interrupted, and not by the user, was so for a reason that the cluster
// knows; one that failed of itself has its own.
func TestStopped(t *testing.T) {
	for code, want := range map[int]string{clientInterrupted: "job db/david-1: DeadlineExceeded: it took too long; the client in the cluster: set back", clientInvalid: "set back"} {
		j := &jobRunner{failed: &ClientError{code, errors.New("set back")}, jobs: []string{"david-1"}}
		j.Server.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db"}}
		j.Cluster = opened(t, func(path string) string {
			if !strings.HasSuffix(path, "/namespaces/db/jobs/david-1") {
				return `{"items":[]}`
			}
			return `{"status":{"conditions":[{"type":"FailureTarget","status":"True","reason":"DeadlineExceeded","message":"it took too long"}]}}`
		})
		var client *ClientError
		err := j.stopped(t.Context())
		if err == nil || err.Error() != want || errors.As(err, &client) != (code == clientInvalid) || errors.Is(err, kube.ErrFailed) != (code == clientInterrupted) {
			t.Errorf("%d: %v, want %s", code, err, want)
		}
	}
}

// TestSlot: the one trial of a client comes into another's record, by that one's names; nothing else of its
// record does.
func TestSlot(t *testing.T) {
	j := runner(t)
	ours := j.store
	arm := result.Arm{Name: "calico", Path: result.Path{Kind: "calico"}}
	j.store, j.slot = nil, &Slot{Store: ours, Arm: &arm, Block: 3, Place: 2, Twin: true}
	for _, d := range []joblog.Document{
		{Experiment: &result.Experiment{ID: "theirs", Sysbench: "1.0.20", Server: result.Server{Version: "9.7.4"}}},
		{Arm: &result.Arm{Name: "pod", Effective: map[string]string{"port": "3306"}}},
		{Trial: &result.Trial{ID: "x", Arm: "pod", Block: 1, TPS: 5, Gates: []result.Gate{}}, Log: "sysbench said"},
		{Finish: &result.Finish{Best: "pod"}}, {End: true},
	} {
		if err := j.document(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	trials, err := ours.Trials()
	if err != nil || len(trials) != 1 || trials[0].Arm != "calico" || trials[0].Block != 3 || trials[0].Place != 2 || !trials[0].Twin || trials[0].ID == "x" || trials[0].TPS != 5 {
		t.Fatalf("%+v, %v", trials, err)
	}
	if text, err := os.ReadFile(ours.LogPath(trials[0].ID, "sysbench")); string(text) != "sysbench said" {
		t.Errorf("the log is %q, %v", text, err)
	}
	arms, err := ours.Arms()
	if err != nil || len(arms) != 1 || arms[0].Name != "calico" || arms[0].Effective["port"] != "3306" {
		t.Errorf("%+v, %v", arms, err)
	}
	if e := j.experiment; e.ID != "bench-2" || e.Sysbench != "1.0.20" || e.Server.Version != "9.7.4" {
		t.Errorf("%+v", e)
	}
	j.slot = &Slot{Arm: &arm} // thrown away
	if err := j.document(t.Context(), joblog.Document{Trial: &result.Trial{ID: "y", Gates: []result.Gate{}}}); err != nil {
		t.Error(err)
	}
	if again, err := ours.Trials(); err != nil || len(again) != 1 {
		t.Errorf("%d trials, %v", len(again), err)
	}
	if _, ended, err := ours.Finished(); ended || err != nil || j.store != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
}
