package move

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mysqld"
	"david/internal/process"
)

// TestGuardWatches has the server that david was stopping take longer than what counts as a server that runs: the
// guard waits for its end. It stays away from what another server, or another david, has taken up.
func TestGuardWatches(t *testing.T) {
	t.Parallel()
	const deserted, manned = 200 * time.Millisecond, 500 * time.Millisecond
	for _, c := range []struct {
		name, lasts, want string
		own               bool // it is the server that was being stopped
		during            func(d duty) error
	}{
		{name: "a slow stop", lasts: "1.5", own: true},
		{name: "another server", lasts: "100", want: "the server runs"},
		{name: "another david", lasts: "100", own: true, want: "another david", during: func(d duty) error { return os.WriteFile(d.Record, nil, 0o600) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := duty{Link: dir + "/data", Record: dir + "/record", Within: time.Minute}
			if err := errors.Join(os.Mkdir(d.Link, 0o700), os.WriteFile(d.Record, nil, 0o600), os.Chtimes(d.Record, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
				t.Fatal(err)
			}
			server := exec.Command("sh", "-c", "exec 3>f; echo; exec sleep "+c.lasts)
			server.Dir = d.Link
			out, err := server.StdoutPipe()
			if err == nil {
				err = server.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			out.Read(make([]byte, 1))
			gone := make(chan error, 1)
			go func() { gone <- server.Wait() }()
			t.Cleanup(func() { server.Process.Kill(); <-gone })
			if c.own {
				if d.Server, err = process.Identify(server.Process.Pid); err != nil {
					t.Fatal(err)
				}
			}
			if c.during != nil {
				time.AfterFunc(deserted, func() {
					if err := c.during(d); err != nil {
						t.Error(err)
					}
				})
			}
			needless, err := d.watch(deserted, manned)
			if err != nil || needless == "" && c.want != "" || !strings.Contains(needless, c.want) {
				t.Errorf("%q, %v, want %q", needless, err, c.want)
			}
			if c.want == "" && d.Server.Alive() {
				t.Error("it did not wait for the end of the server")
			}
		})
	}
}

// TestStandGuard tells a guard that all is done, and does not: only then it runs the command.
func TestStandGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	started := dir + "/started"
	d := duty{Link: dir, Record: dir + "/record", Log: filepath.Join(dir, logFile), Start: []string{"touch", started}, Within: time.Minute}
	text, err := json.Marshal(d)
	if err = errors.Join(err, os.WriteFile(d.Record, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]bool{wordDone: false, "": true} {
		var out bytes.Buffer
		if err := StandGuard(strings.NewReader(string(text)+"\n"+said), &out, io.Discard); err != nil || out.String() != wordReady {
			t.Errorf("%q: %v, it says %q", said, err, out.String())
		}
		if _, err := os.Stat(started); want != (err == nil) {
			t.Errorf("%q: started %v", said, err)
		}
		os.Remove(started)
	}
}

// TestGuardThatFails starts a guard that is none: the server is not stopped without one.
func TestGuardThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := &journey{q: Request{Guard: []string{"-test.run=^$"}}, r: &Record{dir: dir}, from: dir}
	if g, err := j.station(); g != nil || err == nil || !strings.Contains(err.Error(), "cannot start the guard") {
		t.Errorf("%v, %v", g, err)
	}
}

// TestStartedMeanwhile has a david that was killed just now have begun to start the server: it is not started twice,
// as the second would wait for the first one's end and then use the data.
func TestStartedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := exec.Command("sh", "-c", "read word; exec 3>f; exec sleep 100")
	server.Dir = dir
	in, err := server.StdinPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	record := filepath.Join(dir, recordFile)
	go func() {
		for _, err := os.Stat(record); err != nil && t.Context().Err() == nil; _, err = os.Stat(record) {
			time.Sleep(time.Millisecond)
		}
		in.Close()
	}()
	j := &journey{q: Request{Addr: mysqld.Addr{Network: "unix", Address: dir + "/sock"}, Say: func(line string) { t.Error(line) }}, r: &Record{dir: dir}, d: daemon{log: dir + "/log", start: []string{"true"}}}
	if err := j.running(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
