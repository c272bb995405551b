package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/host"
	"david/internal/plan"
	"david/internal/result"
)

// shownCase is a console block of docs/plan.md: a command, and lines of what it prints.
type shownCase struct {
	title   string // of one of the ten cases: "1. One machine of US$66."
	command []string
	lines   []string
}

// planCases reads the blocks of docs/plan.md.
func planCases(t *testing.T) (list []shownCase) {
	t.Helper()
	text, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	title := regexp.MustCompile(`(?m)^\*\*(\d+\. .*?)\*\*`)
	before := "" // what stands between the block before and this one
	for i, part := range strings.Split(string(text), "```console\n") {
		if i > 0 {
			block, _, _ := strings.Cut(part, "```")
			lines := strings.Split(strings.TrimSpace(block), "\n")
			c := shownCase{command: strings.Fields(strings.TrimPrefix(lines[0], "$ david ")), lines: lines[1:]}
			if m := title.FindAllStringSubmatch(before, -1); len(m) > 0 {
				c.title = m[len(m)-1][1]
			}
			list = append(list, c)
		}
		if before = part; i > 0 {
			_, before, _ = strings.Cut(part, "```")
		}
	}
	return list
}

// TestPlanExamples runs the commands of docs/plan.md, and looks for every line that stands below each.
func TestPlanExamples(t *testing.T) {
	t.Parallel()
	cases := planCases(t)
	if len(cases) != 12 {
		t.Fatalf("%d examples", len(cases))
	}
	for i, c := range cases {
		out := planPrints(t, c.command...)
		for _, line := range c.lines {
			if !strings.Contains(out, squeezed(line)) {
				t.Errorf("%s: no line %q in\n%s", c.title, line, out)
			}
		}
		if i < 10 && !strings.HasPrefix(c.title, fmt.Sprint(i+1, ". ")) {
			t.Errorf("block %d belongs to no case of that number: %q", i+1, c.title)
		}
		if i < 10 {
			c.answers(t)
		}
	}
}

// answers makes sure that a case has its decision with a bill, what answers an objection, and that without --why nobody is
// told of that.
func (c shownCase) answers(t *testing.T) {
	t.Helper()
	if c.command[0] != "plan" || c.command[len(c.command)-1] != "--why" || len(c.lines) < 3 || !regexp.MustCompile(`^decision: .* US\$[0-9,.]+\?? a month, [0-9,.]+\?? over 3 years$`).MatchString(c.lines[0]) {
		t.Errorf("%s: no decision of david plan --why first: %q %q", c.title, c.command, c.lines)
	}
	shortly := planPrints(t, append(slices.Clone(c.command[:len(c.command)-1]), "--sensitivity=false")...)
	answered := false
	for _, line := range c.lines {
		if strings.HasPrefix(line, "[") {
			answered = true
			if strings.Contains(shortly, squeezed(line)) {
				t.Errorf("%s: it is told without --why: %s", c.title, line)
			}
		}
	}
	if !answered {
		t.Errorf("%s answers no objection", c.title)
	}
}

// squeezed has a blank where a terminal breaks a line.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

// planPrints runs a command as of the day of the catalogue, whatever the date is.
func planPrints(t *testing.T, args ...string) string {
	t.Helper()
	if args[0] == "plan" && strings.HasPrefix(args[1], "--") {
		args = append(slices.Clone(args), "--today", "2026-11-25")
	}
	out, errOut, code := david(t, t.TempDir(), args...)
	if code != exitDone {
		t.Errorf("david %s: exit code %d\n%s", strings.Join(args, " "), code, errOut)
	}
	return squeezed(out)
}

// TestPlanStoredCosts: what this machine was measured to do takes the place of david's figures, the newest of it; what is
// another machine's, or has not come to its end, does not.
func TestPlanStoredCosts(t *testing.T) {
	t.Parallel()
	dir := testHome(t)
	here, err := host.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	other := here
	other.CPU.Model = "another one"
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	pod := func(share float64) func(*result.Store) {
		return storedArms(t, share, result.Arm{Name: "process"}, result.Arm{Name: "guaranteed", Pod: result.Pod{QoS: "Guaranteed"}, Caps: result.Caps{CPUs: 1}})
	}
	path := func(kind string) result.Arm { return result.Arm{Name: kind, Path: result.Path{Kind: kind}} }
	for _, s := range []struct {
		id     string
		kind   result.Kind
		on     host.Facts
		age    time.Duration
		ended  bool
		filled func(*result.Store)
	}{
		{"podtax-old", result.KindPodTax, here, 3 * time.Hour, true, pod(0.5)},
		{"podtax-new", result.KindPodTax, here, 2 * time.Hour, true, pod(0.75)},
		{"podtax-other", result.KindPodTax, other, time.Hour, true, pod(0.4)},
		{"podtax-cut", result.KindPodTax, here, time.Minute, false, pod(0.3)},
		{"compare-path", result.KindCompare, here, time.Hour, true, storedArms(t, 0.9, path("host"), path("vxlan"))},
		{"compare-settings", result.KindCompare, here, time.Minute, true, storedArms(t, 2, result.Arm{Name: "control"}, result.Arm{Name: "tuned"})},
	} {
		e := result.Experiment{ID: s.id, Kind: s.kind, Created: now.Add(-s.age), Host: s.on, Workloads: []result.Workload{storedLoad()}, Design: result.Design{Blocks: 3, Control: "process", Margin: 0.03, Seed: 1}}
		if s.kind == result.KindCompare {
			e.Design.Control, e.Design.Margin = map[string]string{"compare-path": "host", "compare-settings": "control"}[s.id], 0
		}
		store, err := result.Create(filepath.Join(dir, "experiments", s.id), e)
		if err != nil {
			t.Fatal(err)
		}
		s.filled(store)
		if s.ended {
			if err := store.Finish(result.Finish{Ended: now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := []string{"plan", "--on", "EC2", "--data", "100GiB", "--tps", "50", "--kubernetes", "--sensitivity=false", "--today", "2026-11-25"}
	out, errOut, _ := david(t, dir, ask...)
	for _, want := range []string{"pod: 0.75", "measured: experiment podtax-new, 2026-11-20)", "network path: of the throughput of host: vxlan 0.9", "measured: experiment compare-path, 2026-11-20)", "what a pod costs measured by you; over its 95 % interval US$"} {
		if !strings.Contains(squeezed(out), want) {
			t.Errorf("no %q in\n%s%s", want, out, errOut)
		}
	}
	for _, without := range [][]string{{"--stored=false"}, {"--pod-throughput", "0.952"}} {
		out, _, _ := david(t, dir, append(ask, without...)...)
		if strings.Contains(out, "podtax-new") || !strings.Contains(out, "0.952") {
			t.Errorf("%q:\n%s", without, out)
		}
	}
}

func storedLoad() result.Workload {
	return result.Workload{Name: "oltp_read_write", Tables: 1, TableSize: 10, Threads: 1, Seconds: 1, RandType: "uniform", Database: "sbtest"}
}

// storedArms fills a record with three blocks: the second arm does a share of what the first does.
func storedArms(t *testing.T, share float64, arms ...result.Arm) func(*result.Store) {
	return func(store *result.Store) {
		t.Helper()
		for _, arm := range arms {
			if err := store.PutArm(arm); err != nil {
				t.Fatal(err)
			}
		}
		for block := 1; block <= 3; block++ {
			for i, arm := range arms {
				tps := 100 + float64(block*(i+1)%3)
				if i > 0 {
					tps *= share
				}
				trial := result.Trial{ID: result.TrialID(arm, storedLoad(), block, 0, false, result.Server{}, store.Experiment().ID), Arm: arm.Name, Block: block, Workload: storedLoad(), TPS: tps, Gates: []result.Gate{}}
				if err := store.AppendTrial(trial); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestPlansCommands: every david command that a plan prints is one that david takes, whatever is planned where.
func TestPlansCommands(t *testing.T) {
	t.Parallel()
	own := strings.Fields("--on EC2,RDS,Google,CloudSQL,Azure,AzureMySQL,E2E,own --zone-traffic 0.02 --region-traffic 0.02 --server-price 12000 --server-cpus 40 --server-memory 256GiB --server-disks 4 --server-disk 7.68TB --server-iops 40000")
	seen := map[plan.Kind]int{}
	for _, more := range []string{"", "--kubernetes", "--kubernetes --flavour mariadb", "--kubernetes --flavour percona", "--rpo 0s --rto 1m --survive region --people 1", "--change-application --read-scaling"} {
		args := slices.Concat([]string{"plan", "--data", "100GiB", "--tps", "50", "--sensitivity=false", "--json"}, own, strings.Fields(more))
		out, errOut, code := david(t, t.TempDir(), args...)
		var p plan.Plan
		if code != exitDone || json.Unmarshal([]byte(out), &p) != nil {
			t.Fatalf("%s: exit code %d\n%s", more, code, errOut)
		}
		for _, c := range p.Choices {
			for _, command := range c.Commands {
				args, ok := strings.CutPrefix(command, "david ")
				if !ok {
					continue
				}
				seen[c.Kind]++
				args, _, _ = strings.Cut(args, "   #")
				if _, err := parses(strings.Fields(args)); err != nil {
					t.Errorf("%s: %s: %v", c.Name(), command, err)
				}
			}
			if c.Priced && c.Kind == plan.Ceph && !strings.HasPrefix(c.Commands[0], "david manifest --from latest --cpus ") {
				t.Errorf("%q", c.Commands)
			}
		}
	}
	for _, k := range []plan.Kind{plan.Single, plan.Ceph, plan.Group, plan.Galera, plan.Semisync, plan.Managed, plan.ManagedHA} {
		if seen[k] == 0 {
			t.Errorf("no command of %s was seen", k)
		}
	}
}

// TestManifestCommands has david manifest render what david plan --kubernetes says, with an option file in
// the place of a tune.
func TestManifestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cnf := filepath.Join(dir, "my.cnf")
	if err := os.WriteFile(cnf, []byte("[mysqld]\ninnodb_buffer_pool_size=1G\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rendered := map[plan.Kind]int{}
	own := strings.Fields("--server-price 12000 --server-cpus 40 --server-memory 256GiB --server-disks 4 --server-disk 7.68TB --server-iops 40000")
	for _, flavour := range []string{"mysql", "mariadb"} {
		out, errOut, code := david(t, dir, append([]string{"plan", "--on", "EC2,own", "--data", "100GiB", "--tps", "50", "--kubernetes", "--flavour", flavour, "--sensitivity=false", "--json"}, own...)...)
		if code != exitDone {
			t.Fatal(errOut)
		}
		var p plan.Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Choices {
			for _, command := range c.Commands {
				args, ok := strings.CutPrefix(command, "david manifest ")
				if !ok {
					continue
				}
				rendered[c.Kind]++
				args = strings.Replace(args, "--from latest", "--cnf "+cnf+" --recovery 60s --server "+flavour, 1)
				args = strings.Replace(strings.Replace(args, "--out k8s", "--stdout", 1), "IMAGE", "moco/mysql:8.4.7", 1)
				if _, errOut, code := david(t, dir, strings.Fields("manifest "+args)...); code != exitDone {
					t.Errorf("%s, %s: %s: exit code %d\n%s", flavour, c.Kind, command, code, errOut)
				}
			}
		}
	}
	for _, k := range []plan.Kind{plan.Single, plan.Local, plan.Ceph, plan.Group, plan.Galera, plan.Semisync} {
		if rendered[k] == 0 {
			t.Errorf("no manifest of %s was rendered: %v", k, rendered)
		}
	}
}
