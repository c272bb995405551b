//go:build results

// The long measurements behind docs/method.md: `make results` runs them, one after the other, on a machine
// with nothing else to do. They take about two hours and assert only what the documentation promises.
package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"david/internal/result"
	"david/internal/stats"
)

// number reads how often a measurement is repeated from the environment.
func number(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return standard
}

// compared holds what david compare --json says, as far as it is looked at here.
type compared struct {
	Floor float64 `json:"noise_floor"`
	Arms  []struct {
		Name     string         `json:"name"`
		Ratio    float64        `json:"ratio"`
		Interval stats.Interval `json:"interval"`
		Verdict  stats.Verdict  `json:"verdict"`
		Why      string         `json:"why"`
	} `json:"arms"`
}

// compareJSON runs david compare and returns its document.
func compareJSON(t *testing.T, dir string, args ...string) (doc compared) {
	t.Helper()
	out, errOut, code := david(t, dir, append([]string{"compare", "--json", "--fresh"}, args...)...)
	if code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// share is k of n with its 95 % interval by Clopper and Pearson.
func share(k, n int) string {
	low, high := 0.0, 1.0
	if k > 0 {
		low = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(0.025)
	}
	if k < n {
		high = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.975)
	}
	return fmt.Sprintf("%d of %d (%.1f %%, 95 %% interval %.1f to %.1f %%)", k, n, 100*float64(k)/float64(n), 100*low, 100*high)
}

// TestResultsAA compares the control with an arm that is the same, on real servers, in slices: every claim is
// a false one. DAVID_AA is how many for each flavour, a minute each; DAVID_WAY=trials has them in trials.
func TestResultsAA(t *testing.T) {
	n, dir := number("DAVID_AA", 20), testHome(t)
	how := []string{"--time", "2s", "--warmup", "2s", "--blocks", "8"}
	if os.Getenv("DAVID_WAY") == "trials" {
		how = []string{"--trials", "--time", "1s", "--warmup", "1s", "--blocks", "4"}
	}
	claims, held, invalid := 0, 0, 0
	for _, flavour := range []string{"mariadb", "mysql"} {
		for i := range n {
			doc := compareJSON(t, dir, append([]string{"--server", flavour, "--tables", "2", "--table-size", "20000", "--arm", "control", "--arm", "same"}, how...)...)
			same := doc.Arms[1]
			t.Logf("%s %d: ratio %.3f [%.3f, %.3f], floor %.1f %%: %s %s", flavour, i+1, same.Ratio, same.Interval[0], same.Interval[1], 100*doc.Floor, same.Verdict, same.Why)
			switch same.Verdict {
			case stats.Invalid:
				invalid++
				continue
			case stats.Faster, stats.Slower:
				claims++
			}
			held++
		}
	}
	t.Logf("false claims: %s; %d more were invalid", share(claims, held), invalid)
}

// TestResultsPower finds known differences: caps on the CPU 5 % and 10 % lower, and a delay of every group
// commit. The blocks of one long experiment are taken apart into comparisons of 4, 6, 10 and 20.
func TestResultsPower(t *testing.T) {
	dir, blocks := testHome(t), number("DAVID_BLOCKS", 20)
	file := filepath.Join(t.TempDir(), "power.yaml")
	text := fmt.Sprintf(`version: 1
server: mysql
arms:
  - {name: control, caps: {cpus: 1.0}}
  - {name: cpu-95, caps: {cpus: 0.95}}
  - {name: cpu-90, caps: {cpus: 0.9}}
  - {name: delay-300us, caps: {cpus: 1.0}, set: [binlog_group_commit_sync_delay=300]}
workloads:
  - {name: oltp_read_write, tables: 2, table_size: 20000, threads: 4}
time: 2s
warmup: 1s
blocks: %d
`, blocks)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := david(t, dir, "experiment", "run", file); code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	} else {
		t.Log(out)
	}
	list, err := result.List(dir)
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	store, err := result.Open(list[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := store.Trials()
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4, 6, 10, 20} {
		found, n := map[string]int{}, blocks/size
		for i := range n {
			part := slices.DeleteFunc(slices.Clone(trials), func(one result.Trial) bool { return one.Block <= i*size || one.Block > (i+1)*size })
			for _, arm := range stats.Compare(store.Experiment().Design, arms, part)[0].Arms {
				if arm.Verdict == stats.Slower {
					found[arm.Name]++
				}
			}
		}
		for _, arm := range arms[1:] {
			t.Logf("%d blocks: %s found slower in %s", size, arm.Name, share(found[arm.Name], max(1, n)))
		}
	}
}

// TestResultsPool compares a buffer pool of 128 MiB with one of 1 GiB on 2 GiB of data under 2,000 IOPS: the
// larger one must be found faster every time.
func TestResultsPool(t *testing.T) {
	n, dir, faster := number("DAVID_POOL", 20), testHome(t), 0
	for i := range n {
		doc := compareJSON(t, dir, "--trials", "--server", "mysql", "--tables", "10", "--table-size", "750000", "--time", "3s", "--warmup", "1s", "--blocks", "3", "--iops", "2000",
			"--threads", "8", "--arm", "control=innodb_buffer_pool_size=128M", "--arm", "large=innodb_buffer_pool_size=1G")
		large := doc.Arms[1]
		t.Logf("%d: ratio %.2f [%.2f, %.2f], floor %.1f %%: %s %s", i+1, large.Ratio, large.Interval[0], large.Interval[1], 100*doc.Floor, large.Verdict, large.Why)
		if large.Verdict == stats.Faster {
			faster++
		}
	}
	if faster < n {
		t.Errorf("found faster %d times of %d", faster, n)
	}
}

// TestResultsSLO looks for a rate and runs it again for a minute: it must hold.
func TestResultsSLO(t *testing.T) {
	dir := testHome(t)
	load := []string{"bench", "--server", "mysql", "--tables", "4", "--table-size", "100000", "--warmup", "5s", "--threads", "32", "--set", "innodb_buffer_pool_size=1G", "--set", "innodb_redo_log_capacity=2G", "--json"}
	out, errOut, code := david(t, dir, append(load, "--time", "10s", "--slo", "p99=40ms")...)
	var doc struct {
		Headline string `json:"headline"`
		Trials   []struct {
			Histogram []result.Bucket `json:"histogram"`
		} `json:"trials"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v\n%s", code, err, errOut)
	}
	t.Log(errOut, doc.Headline)
	rate, _, _ := strings.Cut(doc.Headline, " ")
	out, errOut, code = david(t, dir, append(load, "--time", "60s", "--rate", rate)...)
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v\n%s", code, err, errOut)
	}
	again := stats.Percentile(doc.Trials[0].Histogram, 99)
	t.Logf("%s transactions/s again for 60 s: p99 %.2f ms", rate, again)
	if again > 40 {
		t.Errorf("the rate %s does not hold: p99 %.2f ms", rate, again)
	}
}

// TestResultsUtilisation measures three blocks of 60 s trials: warming up and measuring must take 85 % of the
// time.
func TestResultsUtilisation(t *testing.T) {
	dir := testHome(t)
	doc := compareJSON(t, dir, "--trials", "--server", "mysql", "--tables", "10", "--table-size", "1000000", "--blocks", "3", "--arm", "control", "--arm", "large=innodb_buffer_pool_size=4G")
	t.Logf("%+v", doc)
	list, err := result.List(dir)
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	store, err := result.Open(list[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	end, _, err := store.Finished()
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := david(t, dir, "show", "latest")
	t.Log(out)
	if end.Utilisation < 0.85 {
		t.Errorf("utilisation %.0f %%", 100*end.Utilisation)
	}
}
