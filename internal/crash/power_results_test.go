//go:build results

package crash

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"david/internal/blocklog"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/testserver"
)

// powerCase is a row of the table in docs/crash.md.
type powerCase struct {
	name    string
	flavour string
	cache   blocklog.Cache
	fs      string
	schema  bool
	every   bool // before every flush in turn
	sets    []string
	cuts    int  // 0: DAVID_CUTS
	proves  bool // nothing may be lost; else something has to be
	either  bool // whichever: it is told what the server does
}

// powerCases lists them.
func powerCases() (list []powerCase) {
	for _, flavour := range []string{"mariadb", "mysql"} {
		// MySQL does not flush its doublewrite buffer with O_DIRECT, so that only a disk whose cache keeps
		// what it was given, or another way of flushing, survives a cut (docs/crash.md).
		synced := map[string][]string{"mysql": {"innodb_flush_method=fsync"}}[flavour]
		list = append(list,
			powerCase{flavour: flavour, name: "winner", cache: blocklog.Volatile, fs: "xfs", sets: synced, proves: true},
			powerCase{flavour: flavour, name: "ext4", cache: blocklog.Volatile, fs: "ext4", sets: synced, cuts: 100, proves: true},
			powerCase{flavour: flavour, name: "protected", cache: blocklog.Protected, fs: "xfs", cuts: 100, proves: true},
			powerCase{flavour: flavour, name: "schema changes", cache: blocklog.Volatile, fs: "xfs", sets: synced, schema: true, cuts: 200, either: true},
			powerCase{flavour: flavour, name: "every flush", cache: blocklog.Volatile, fs: "xfs", sets: synced, schema: true, every: true, either: true},
			powerCase{flavour: flavour, name: "no doublewrite", cache: blocklog.Volatile, fs: "xfs", cuts: 60, sets: append([]string{"innodb_doublewrite=0"}, synced...)},
			powerCase{flavour: flavour, name: "redo flushed once a second", cache: blocklog.Volatile, fs: "xfs", cuts: 20, sets: append([]string{"innodb_flush_log_at_trx_commit=2"}, synced...)},
			powerCase{flavour: flavour, name: "binary log not synced", cache: blocklog.Volatile, fs: "xfs", cuts: 20, sets: append([]string{"sync_binlog=0"}, synced...)},
			powerCase{flavour: flavour, name: "flushes ignored", cache: blocklog.Lying, fs: "xfs", cuts: 20, sets: synced})
	}
	return append(list, powerCase{flavour: "mysql", name: "O_DIRECT", cache: blocklog.Volatile, fs: "xfs", cuts: 60, sets: []string{"innodb_flush_method=O_DIRECT"}})
}

// TestResultsPower makes the table of docs/crash.md: 1,000 cuts of each flavour with the lock on, in which
// nothing that was acknowledged may be lost, a thousand flushes in a row, each cut in turn, and each way of losing, which
// has to be seen. DAVID_CUTS=N cuts the winners, and at every flush, N times instead, DAVID_CASE=NAME,... picks rows.
func TestResultsPower(t *testing.T) {
	powered := openPower(t)
	for _, c := range powerCases() {
		t.Run(strings.ReplaceAll(c.flavour+" "+c.name, " ", "_"), func(t *testing.T) {
			if wanted := os.Getenv("DAVID_CASE"); wanted != "" && !strings.Contains(","+wanted+",", ","+c.name+",") {
				t.Skip("not asked for")
			}
			p := powered(c.flavour)
			p.Filesystem, p.Cache, p.Schema, p.Every, p.Load = c.fs, c.cache, c.schema, c.every, 10*time.Second
			p.Report = func(n, _ int, k result.Kill) {
				if k.Lost > 0 || k.Damage.Sum() > 0 || k.Cut.Failed != "" {
					t.Logf("cut %d: %+v %+v", n, k, *k.Cut)
				}
			}
			if p.Kills = c.cuts; p.Kills == 0 {
				p.Kills = winnerCuts(t)
			}
			r := p.run(t, c.sets...)
			t.Logf("| %s %s | %s, %s | %s | %d | %d | %d | %d | %d | %.0f, %.0f |", c.flavour, testserver.Find(t, c.flavour).Version, c.fs, c.cache,
				strings.Join(c.sets, ", "), r.Kills, r.Lost, r.Damaged, r.Power.DidNotReturn, r.Power.Repaired, r.RecoveryMs.Median, r.RecoveryMs.Max)
			if c.proves && firstPageAlone(r) {
				t.Logf("%d cuts tore the page that MySQL reads before it can restore it: a fault of its own, which docs/crash.md tells", r.Power.DidNotReturn)
				return
			}
			if r.Proved != c.proves && !c.either {
				t.Errorf("proved %v: %s", r.Proved, r.Verdict)
			}
		})
	}
}

// firstPageAlone tells whether nothing is wrong but that a server did not start for want of one page, which MySQL reads before its doublewrite
// buffer can restore it: about 1.7 of 1,000 cuts.
func firstPageAlone(r result.CrashTest) bool {
	if r.Lost > 0 || r.Damaged > 0 || r.Power.DidNotReturn == 0 {
		return false
	}
	for _, k := range r.Rounds {
		if k.Cut.Failed != "" && !strings.Contains(k.Cut.Failed, mycnf.FirstPage) {
			return false
		}
	}
	return true
}

// winnerCuts is how often the power of the winners is cut.
func winnerCuts(t *testing.T) int {
	text := os.Getenv("DAVID_CUTS")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("DAVID_CUTS=%q is no number of cuts", text)
	}
	return n
}
