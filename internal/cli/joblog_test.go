package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"david/internal/joblog"
	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/testserver"
)

// documents reads those of a client's log.
func documents(t *testing.T, log string) (list []joblog.Document) {
	t.Helper()
	var r joblog.Reader
	for line := range strings.Lines(log) {
		docs, err := r.Line(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, docs...)
	}
	if !r.Ended() {
		t.Fatalf("the record has no end:\n%.2000s", log)
	}
	if strings.Contains(log, testserver.Password) {
		t.Error("the password is in the log")
	}
	return list
}

// TestBenchRelay is a bench as a Job runs it, its load spread over two clients: what comes over the log is
// the whole record.
func TestBenchRelay(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	address := dsn(s, "david")
	worker, seen := loggedIn(testHome(t)).spawn(t, "bench-hand", "--dsn", address, "--crew", "c-1", "--number", "1", "--clients", "2")
	out, errOut, code := loggedIn(testHome(t)).david(t, append([]string{"bench", "--dsn", address, "--relay", "--crew", "c-1", "--clients", "2", "--threads", "3,5"}, small...)...)
	if code != exitDone && !(code == exitInvalid && strings.Contains(errOut, "clients: ")) {
		t.Fatalf("exit code %d\n%s\n%s", code, errOut, seen)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker: %v\n%s", err, seen)
	}
	var trials []result.Trial
	var e *result.Experiment
	var arms, finished int
	for _, d := range documents(t, out) {
		switch {
		case d.Experiment != nil:
			e = d.Experiment
		case d.Arm != nil:
			arms++
		case d.Trial != nil:
			trials = append(trials, *d.Trial)
			if !strings.Contains(d.Log, "sysbench") {
				t.Errorf("no log of sysbench with trial %s: %q", d.Trial.ID, d.Log)
			}
		case d.Finish != nil:
			finished++
		}
	}
	if e == nil || e.Server.Version == "" || arms == 0 || finished != 1 || len(trials) != 2 {
		t.Fatalf("experiment %+v, %d arms, %d trials, %d finished", e, arms, len(trials), finished)
	}
	for i, threads := range []int{3, 5} {
		if tr := trials[i]; tr.Workload.Threads != threads || len(tr.Clients) != 2 || tr.Clients[0].Threads+tr.Clients[1].Threads != threads || len(tr.Points) == 0 || tr.Arm != "pod" {
			t.Errorf("trial %d: %+v", i, tr)
		}
	}
	if n := schemas(t, s); n != 0 {
		t.Errorf("%d schemas are left on the server", n)
	}
}

// TestTuneRelay is a live tune as a Job runs it: the plan alone, and carried out with its record.
func TestTuneRelay(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB, "--performance-schema=ON")
	busy(t, s)
	home, address := testHome(t), dsn(s, "david")
	here := loggedIn(home)
	out, errOut, code := here.david(t, liveArgs(address, "--relay", "--json")...)
	if docs := documents(t, out); code != exitDone || len(docs) != 2 || docs[0].Tune == nil {
		t.Fatalf("exit code %d, %d documents\n%s", code, len(docs), errOut)
	}
	out, errOut, code = here.david(t, liveArgs(address, "--relay", "--json", "--apply", "--watch", "2s")...)
	var doc liveDocument
	var record string
	var e *result.Experiment
	for _, d := range documents(t, out) {
		switch {
		case d.Experiment != nil:
			e = d.Experiment
		case d.Files != nil:
			record = d.Files[live.RecordFile]
		case d.Tune != nil:
			if err := json.Unmarshal(d.Tune, &doc); err != nil {
				t.Fatal(err)
			}
		case d.Code != code:
			t.Errorf("the record says exit code %d, it was %d", d.Code, code)
		}
	}
	if doc.Run == nil || len(doc.Run.Steps) == 0 || e == nil || e.Kind != result.KindLive || !strings.Contains(record, `"intended"`) {
		t.Errorf("exit code %d, %+v, %+v\n%s\n%s", code, doc.Run, e, record, errOut)
	}
	// One that may not log in says so in the record's end, as its Job's exit code alone would not.
	out, _, code = withPassword(home, "wrong").david(t, liveArgs(address, "--relay", "--json")...)
	docs := documents(t, out)
	if last := docs[len(docs)-1]; code != exitTarget || last.Code != exitTarget || last.Failed == "" {
		t.Errorf("exit code %d, %+v", code, last)
	}
}
