package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
)

// TestMemory runs what only reads with no more memory than 64 MiB, whatever it is given: the kernel ends a process that takes
// more. None of it may take long either, nor crash.
func TestMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup needs root")
	}
	procs, home, dir := limitedCgroup(t, 64<<20), testHome(t), t.TempDir()
	run := func(t *testing.T, want int, args ...string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, procs, os.Args[0]}, args...)...)
		cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+home, "HOME="+dir)
		var out, failed bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &failed
		if len(args) > 1 && args[len(args)-1] == "-" {
			cmd.Stdin, _ = os.Open("/dev/zero")
		}
		cmd.Run() // its exit code tells
		code, said := cmd.ProcessState.ExitCode(), failed.String()
		refused := (code == exitUsage || code == exitFailed) && strings.HasPrefix(said, "david: ") && len(said) < 4096 // no crash
		if done := code == exitDone; done != (want == exitDone) || !done && !refused {
			t.Errorf("%v: %.300s", cmd.ProcessState, said)
		}
	}
	big := bigStore(t, filepath.Join(home, "experiments", "compare-big"))
	for _, args := range []string{"list", "show latest", "report latest", "report --format md latest", "report --format json latest", "explain latest", "price latest", "show " + big,
		"price volumes --iops 20000 --size 1TiB", "server list", "config", "doctor", "facts", "follower list", "gc", "kernel", "plan --data 100GB --tps 1000", "rm compare-big",
		"storage plan --iops 20000 --size 1TiB", "version", "man " + t.TempDir(), "completion bash",
		"manifest --cpus 4 --memory 16Gi --size 50Gi --storage ebs-gp3 --out " + filepath.Join(dir, "k8s"), "manifest check " + filepath.Join(dir, "k8s")} {
		t.Run(args, func(t *testing.T) { run(t, exitDone, strings.Fields(args)...) })
	}
	for name, dir := range hostileStores(t, big) {
		for _, args := range []string{"show", "report", "explain", "rollback"} {
			t.Run(args+" "+name, func(t *testing.T) { run(t, exitUsage, append(strings.Fields(args), dir)...) })
		}
	}
	for name, path := range hostileTexts(t) {
		for _, args := range []string{"experiment run --dry-run", "price catalogue --catalogue", "audit --cnf", "manifest check", "manifest check --crds " + path,
			"manifest check --kubeconfig " + path} {
			t.Run(args+" "+name, func(t *testing.T) { run(t, exitUsage, append(strings.Fields(args), path)...) })
		}
	}
	t.Run("list of hostile ones", func(t *testing.T) {
		for name, dir := range hostileStores(t, big) {
			if err := os.Rename(dir, filepath.Join(home, "experiments", name)); err != nil {
				t.Fatal(err)
			}
		}
		run(t, exitDone, "list")
	})
	t.Run("standard input", func(t *testing.T) { run(t, exitUsage, "manifest", "check", "-") })
}

// TestMoreMemory: where a record takes more than it was given, david names more than that.
func TestMoreMemory(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "DAVID_MEMORY=256M, or more, allows more than the 64M", "512M": "DAVID_MEMORY=2048M, or more, allows more than the 512M"} {
		a := &app{env: func(string) string { return given }}
		if err := a.inRoom(result.ErrRoom); exitCode(err) != exitUsage || !errors.Is(err, result.ErrRoom) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// bigStore makes a record of 45 minutes of slices, with all that is sampled beside them.
func bigStore(t *testing.T, dir string) string {
	t.Helper()
	server := result.Server{Flavour: mycnf.MySQL, Version: "9.7.4"}
	load := result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1000, Threads: 4, Seconds: 5, RandType: "uniform", Database: database}
	s, err := result.Create(dir, result.Experiment{Kind: result.KindCompare, Created: time.Now(), Target: "sandbox", Server: server, Workloads: []result.Workload{load},
		Design: result.Design{Control: "control", Slices: &result.Slices{Seconds: 5, Rounds: 9, Incarnations: 5}},
		Host:   host.Facts{CPU: host.CPU{Online: 2, Usable: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for i := range 650 {
		variables[fmt.Sprintf("innodb_variable_number_%d", i)] = fmt.Sprint("value ", i)
	}
	arms := 12
	for i := range arms {
		name := "control"
		if i > 0 {
			name = fmt.Sprintf("arm%d", i)
		}
		if err := s.PutArm(result.Arm{Name: name, Effective: variables}); err != nil {
			t.Fatal(err)
		}
		for block := range 45 {
			if err := s.AppendTrial(slice(name, load, block+1, i+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Finish(result.Finish{Best: "arm1"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// slice is a trial of a slice as large as real ones are.
func slice(arm string, load result.Workload, block, place int) result.Trial {
	x := result.Trial{ID: fmt.Sprintf("%s-%d", arm, block), Arm: arm, Block: block, Place: place, Incarnation: 1 + block/10, Session: 1, Workload: load, Started: time.Now(), Seconds: 5,
		TPS: 500 + float64((block*7+place*3)%11), Transactions: 2500, Counters: map[string]float64{}, Sampling: result.Sampling{Samples: 6},
		Gates: []result.Gate{{Name: "errors", OK: true, Detail: "0 errors"}}, Profile: &result.Profile{Looks: 10, Connections: 4}}
	for i := range 200 {
		x.Histogram = append(x.Histogram, result.Bucket{Ms: 1.5 + float64(i)/7, Count: int64(100 + i)})
	}
	for i := range 350 {
		x.Counters[fmt.Sprintf("innodb_counter_number_%d", i)] = float64(i) * 1.5
	}
	for second := range 6 {
		sample := result.Sample{At: float64(second), Values: map[string]float64{}}
		for i := range 80 {
			sample.Values[fmt.Sprintf("server.value_number_%d_per_s", i)] = float64(i) * 1.25
		}
		x.Samples = append(x.Samples, sample)
		x.Points = append(x.Points, result.Point{Second: second + 1, TPS: 500, QPS: 10000, P95: 11})
	}
	return x
}

// hostileStores are records with one file replaced by what is endless, huge, or small and takes much room.
func hostileStores(t *testing.T, like string) map[string]string {
	experiment, err := os.ReadFile(filepath.Join(like, "experiment.json"))
	if err != nil {
		t.Fatal(err)
	}
	trial := `{"schema":1,"id":"a","arm":"control","workload":{"threads":1},"gates":[],"clients":[` + strings.Repeat("{},", 50_000) + "{}]}\n"
	stores := map[string]string{}
	for file, contents := range map[string]map[string]func(path string) error{
		"experiment.json": {"pipe": fifo, "device": device, "endless": sparse, "workloads": text(`{"schema":1,"kind":"bench","workloads":[` + strings.Repeat("{},", 340_000) + "{}]}")},
		"trials.jsonl":    {"pipe": fifo, "device": device, "endless": sparse, "clients": text(strings.Repeat(trial, 300)), "lines": text(strings.Repeat(`{"schema":1,"id":"a"}`+"\n", 200_000))},
		"arms/a.json":     {"pipe": fifo, "device": device, "endless": sparse, "deep": text(`{"schema":1,"effective":` + strings.Repeat(`{"a":`, 200_000))},
		"arms/b.json":     {"variables": text(`{"schema":1,"effective":{` + strings.Repeat(`"a":"b",`, 120_000) + `"a":"b"}}`)},
		"finish.json":     {"pipe": fifo, "device": device, "endless": sparse},
	} {
		for kind, put := range contents {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.MkdirAll(filepath.Join(dir, "arms"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string][]byte{"experiment.json": experiment, "trials.jsonl": nil} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, file)
			os.Remove(path) // where it is one of those
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			stores[filepath.Base(file)+"-"+kind] = dir
		}
	}
	return stores
}

func fifo(path string) error   { return syscall.Mkfifo(path, 0o644) }
func device(path string) error { return os.Symlink("/dev/zero", path) }

func sparse(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, 1<<40)
}

// text writes one.
func text(content string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o644) }
}

// hostileTexts are files for commands that read one.
func hostileTexts(t *testing.T) map[string]string {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	files := map[string]string{"zero": "/dev/zero"}
	for name, put := range map[string]func(path string) error{"pipe": fifo, "endless": sparse, "deep": text(strings.Repeat("[", 250_000)), "wide": text("arms: [" + strings.Repeat("a,", 120_000) + "a]"),
		"lines": text(strings.Repeat("a:\n", 80_000)), "bomb": text(bomb + "arms: *a12\nmachines: *a12\n"), "long line": text("arms: " + strings.Repeat("a", 5<<20)), "deeper": text(strings.Repeat("- ", 100_000))} {
		files[name] = filepath.Join(t.TempDir(), "file.yaml")
		if err := put(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
