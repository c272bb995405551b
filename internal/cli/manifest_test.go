package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// storedTune puts a finished tune's record where david finds it, and returns its ID.
func storedTune(t *testing.T, home string, d report.Data, finish bool) string {
	t.Helper()
	id := d.Experiment.ID
	store, err := result.Create(filepath.Join(home, "experiments", id), d.Experiment)
	if err != nil {
		t.Fatal(err)
	}
	for _, arm := range d.Arms {
		if err := store.PutArm(arm); err != nil {
			t.Fatal(err)
		}
	}
	for _, trial := range d.Trials {
		if err := store.AppendTrial(trial); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range d.Proofs {
		if err := store.PutProof(p); err != nil {
			t.Fatal(err)
		}
	}
	if finish {
		if err := store.Finish(*d.Finish); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// tunedRecord is a tune on 2 CPUs and 8 GiB whose winner has three lines, and recovered from kills in 150 s
// at most.
func tunedRecord() report.Data {
	d := cellTuned()
	d.Experiment.Design.Tune.Machine = result.TuneMachine{CPUs: 2, Memory: 8 << 30, FreeDisk: 100 << 30, WriteIOPS: 4800}
	d.Arms[2].Settings = []mycnf.Setting{
		{Name: "innodb_buffer_pool_size", Value: "6G", Group: "memory", Reason: "what the search found best"},
		{Name: "innodb_redo_log_capacity", Value: "2G", Group: "redo", Reason: "what the search found best"},
		{Name: "innodb_adaptive_hash_index", Value: "ON", Group: "concurrency", Reason: "what the search found best"},
	}
	d.Proofs[0].Crash.RecoveryMs.Max = 150_000
	return d
}

// TestManifestFromTune: configuration, server and recovery time are the tune's; on limits like its machine's
// the lines are those that were measured.
func TestManifestFromTune(t *testing.T) {
	home := testHome(t)
	id := storedTune(t, home, tunedRecord(), true)
	t.Chdir(t.TempDir())
	deploy := func(more ...string) (string, string, int) {
		return david(t, home, append([]string{"manifest", "--from", id, "--size", "50Gi", "--storage", "class:fast", "--stdout", "--secret", "mine"}, more...)...)
	}
	contains := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	same, errOut, code := deploy("--cpus", "2", "--memory", "8Gi")
	if code != exitDone {
		t.Fatal(errOut)
	}
	contains(same, "innodb_buffer_pool_size=6G", "innodb_redo_log_capacity=2G", "innodb_adaptive_hash_index=ON", "Tuned by david v9 on 2026-03-01; experiment tune-1.", "image: mysql:9.7",
		"measured to take 2m30s", "failureThreshold: 45")
	other, errOut, code := deploy("--cpus", "4", "--memory", "16Gi", "--recovery", "1s")
	if code != exitDone {
		t.Fatal(errOut)
	}
	contains(other, "innodb_buffer_pool_size=12G", "innodb_redo_log_capacity=4G", "innodb_adaptive_hash_index=ON", "measured to take 1s", "failureThreshold: 30")
	if _, errOut, code = deploy("--cpus", "2", "--memory", "8Gi", "--server", "mariadb"); code != exitUsage {
		t.Error(code)
	}
	contains(errOut, "the tune was of MySQL 9.7.4")
	older, errOut, code := deploy("--cpus", "2", "--memory", "8Gi", "--server", "mysql:8.0.20")
	if code != exitDone {
		t.Fatal(errOut)
	}
	contains(older, "innodb_log_file_size=1G", "image: mysql:8.0")
}

// TestManifestFromATuneWithoutAWinner: the control's configuration, and what is said of it is true.
func TestManifestFromATuneWithoutAWinner(t *testing.T) {
	home := testHome(t)
	d := tunedRecord()
	d.Finish.Best = stats.Control
	id := storedTune(t, home, d, true)
	out, errOut, code := david(t, home, "manifest", "--from", id, "--cpus", "2", "--memory", "8Gi", "--size", "50Gi", "--storage", "class:fast", "--stdout", "--secret", "mine")
	if code != exitDone {
		t.Fatal(errOut)
	}
	if !strings.Contains(errOut, "nothing faster than the control, so this is the control's configuration, with what a pod needs besides by david's rules") ||
		strings.Contains(errOut, "no tune and no my.cnf") {
		t.Error(errOut)
	}
	if strings.Contains(out, "innodb_io_capacity=") || !strings.Contains(out, "innodb_buffer_pool_size=") || !strings.Contains(out, "experiment "+id) || strings.Contains(out, "nothing was measured") {
		t.Error(out)
	}
}

// TestManifestFromOthers: only a finished tune has a configuration to deploy.
func TestManifestFromOthers(t *testing.T) {
	home := testHome(t)
	open, race := tunedRecord(), cellRaced()
	open.Experiment.ID, race.Experiment.ID = "tune-2", "race-1"
	for _, id := range []string{storedTune(t, home, open, false), storedTune(t, home, race, true)} {
		_, errOut, code := david(t, home, "manifest", "--from", id, "--cpus", "2", "--memory", "8Gi", "--size", "50Gi", "--storage", "zfs", "--stdout")
		if code != exitUsage || !strings.Contains(errOut, id+" is no finished david tune") {
			t.Errorf("%s: exit code %d: %s", id, code, errOut)
		}
	}
}

// TestManifestKeepsItsFolderWhole: what cannot be rendered leaves the folder as it was.
func TestManifestKeepsItsFolderWhole(t *testing.T) {
	home, dir := testHome(t), t.TempDir()
	out := filepath.Join(dir, "k8s")
	if _, errOut, code := david(t, home, "manifest", "--cpus", "2", "--memory", "8Gi", "--size", "50Gi", "--storage", "class:fast", "--out", out); code != exitDone {
		t.Fatal(errOut)
	}
	before := folderText(t, out)
	if _, _, code := david(t, home, "manifest", "--cpus", "2", "--memory", "600Mi", "--size", "50Gi", "--storage", "class:fast", "--out", out); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if after := folderText(t, out); after != before {
		t.Errorf("the folder changed:\n%s", after)
	}
	if _, _, code := david(t, home, "manifest", "--cpus", "2", "--memory", "600Mi", "--size", "50Gi", "--storage", "class:fast", "--out", filepath.Join(dir, "none")); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder was made for nothing")
	}
}

func folderText(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(e.Name() + "\n" + string(content))
	}
	return text.String()
}
