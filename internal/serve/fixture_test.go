package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
)

// put makes an experiment of two arms in slices; its tuned arm has so many times the control's throughput.
func put(t *testing.T, home, id string, day int, times float64) *result.Store {
	t.Helper()
	load := result.Workload{Name: "oltp_read_write", Tables: 2, TableSize: 1000, Threads: 4, Seconds: 4}
	s, err := result.Create(filepath.Join(home, "experiments", id), result.Experiment{Kind: result.KindCompare, Created: time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC),
		Target: result.TargetSandbox, Server: result.Server{Flavour: mycnf.MySQL, Version: "9.7.4"}, Workloads: []result.Workload{load}, Argv: []string{"compare"},
		Design: result.Design{Control: "control", Slices: &result.Slices{Seconds: 4, Rounds: 6, Incarnations: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	arms := []result.Arm{{Name: "control", Title: "the server's defaults"},
		{Name: "tuned", Base: "control", Title: "more memory", Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: fmt.Sprintf("%dG", day)}}}}
	for _, a := range arms {
		if err := s.PutArm(a); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 24 {
		round, arm, tps := n/2+1, "control", 100+float64(n%5)
		if n%2 == 1 {
			arm, tps = "tuned", times*tps
		}
		trial := result.Trial{ID: fmt.Sprintf("t%d", n), Arm: arm, Block: round, Incarnation: 1 + round/7, Session: 1, Place: n%2 + 1, Workload: load, Seconds: 4,
			Started: time.Date(2026, 1, day, 12, 0, 10*n, 0, time.UTC), TPS: tps, QPS: 20 * tps, Transactions: int64(4 * tps), Latency: result.Latency{P50: 30, P95: 40, P99: 60},
			Points: []result.Point{{Second: 1, TPS: tps, P95: 40}, {Second: 2, TPS: tps, P95: 41}}, Gates: []result.Gate{{Name: result.GateServer, OK: true}}}
		if err := s.AppendTrial(trial); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ended makes an experiment that has come to its end.
func ended(t *testing.T, home, id string, day int, times float64) {
	t.Helper()
	if err := put(t, home, id, day, times).Finish(result.Finish{WallSeconds: 100, MeasureSeconds: 90, Utilisation: 0.9}); err != nil {
		t.Fatal(err)
	}
}

func load(dir string) (d report.Data, err error) {
	s, err := result.Open(dir)
	if err != nil {
		return d, err
	}
	d.Experiment = s.Experiment()
	if d.Arms, err = s.Arms(); err != nil {
		return d, err
	}
	trials, err := s.Trials()
	if err != nil {
		return d, err
	}
	if d.Trials, err = s.WithPoints(trials); err != nil {
		return d, err
	}
	if f, ok, err := s.Finished(); ok && err == nil {
		d.Finish = &f
	}
	return d, err
}

// served is a site, and who has its cookie.
type served struct {
	*Site
	*httptest.Server
	client *http.Client
}

// serveStore serves a store; program is run for a tune.
func serveStore(t *testing.T, home, program string) *served {
	t.Helper()
	site, err := New(Options{Home: home, Load: load, Program: program, Report: func(w io.Writer, dir string) (bool, error) {
		d, err := load(dir)
		if err != nil {
			return true, err
		}
		return true, report.HTML(w, d)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{site, httptest.NewServer(site), &http.Client{Jar: jar}}
	t.Cleanup(func() { s.CloseClientConnections(); s.Server.Close() })
	if code, _ := s.get(t, "/?token="+site.Token()); code != http.StatusOK {
		t.Fatalf("the token gives %d", code)
	}
	return s
}

func (s *served) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return answer(t)(s.client.Get(s.URL + path))
}

// post sends a form as a page here does.
func (s *served) post(t *testing.T, path, choice string) (int, string) {
	t.Helper()
	return answer(t)(s.client.PostForm(s.URL+path, url.Values{"form": {s.formOf}, "choice": {choice}}))
}

func answer(t *testing.T) func(*http.Response, error) (int, string) {
	return func(r *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
}

// script writes a program that stands in for david.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "david")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
