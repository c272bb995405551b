//go:build results

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/testserver"
	"david/internal/tune"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestResultsProofShared cuts the power of a server that loses what was not flushed, as its control does: the
// winner is not blamed, and all of it is told.
func TestResultsProofShared(t *testing.T) {
	if err := sandbox.NoDisk(proofFilesystem); err != nil {
		t.Skip(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	w, err := sandbox.Open(t.Context(), home, sandbox.Options{Need: cutBytes(proofLoad), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := testserver.Find(t, "mariadb")
	store, err := result.Create(filepath.Join(home, "experiments", "tune-1"), result.Experiment{ID: "tune-1", Kind: result.KindTune})
	if err != nil {
		t.Fatal(err)
	}
	r := recorded{prepared: prepared{opened: opened{tools: tools{binary: b}, workspace: w, Lab: Lab{Home: home, Log: os.Stderr, Show: func(e experiment.Event) { t.Log(e.Text, e.Line) },
		Words: Words{Kill: func(int, int, result.Kill) string { return "a cut" }}}}}, store: store}
	control := rules.Control(b.Flavour)
	safe := control
	control.Settings = append(control.Settings[:len(control.Settings):len(control.Settings)], mycnf.Setting{Name: "innodb_flush_log_at_trx_commit", Value: "2"})
	winner := control
	winner.Name = "winner"
	plan := tune.Plan{TunePlan: result.TunePlan{Power: "volatile", Kills: 6, RecoveryMs: 60000, Budget: 900, Seed: 1}}
	p := result.Proof{}
	if _, err := r.crashProof(t.Context(), winner, control, plan, &p); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s | %s | %s", p.Crash.Verdict, p.Control.Verdict, p.Shared)
	if p.Crash.Proved || p.Control.Proved || !strings.Contains(p.Shared, "the control's server meets the same") {
		t.Errorf("%+v", p)
	}
	p = result.Proof{}
	if _, err := r.crashProof(t.Context(), winner, safe, plan, &p); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s | %s | %s", p.Crash.Verdict, p.Control.Verdict, alone(p))
	if p.Crash.Proved || !p.Control.Proved || p.Shared != "" || !strings.Contains(alone(p), "the control survived 6 of 6") {
		t.Errorf("%+v", p)
	}
}
