package report

import (
	"strings"
	"testing"

	"david/internal/result"
)

func TestCrashText(t *testing.T) {
	c := result.CrashTest{Threads: 4, Seed: 9, LimitMs: 60000, Notes: []string{"a note"}, Log: "it is off", Unlocked: []string{"x=0, at risk: all"},
		Rounds: []result.Kill{{Acknowledged: 1200, Lost: 7, RecoveryMs: 900, ServerMs: 450}, {Acknowledged: 100, RecoveryMs: 1100}}}.Judge()
	var b strings.Builder
	if err := Crash(&b, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lost 7 of 1300: 2 kills, 1,300 transactions acknowledged, 7 lost; UNLOCKED: x=0, at risk: all", "4 connections, seed 9",
		"median 1000 ms of 2, at most 1100 ms (limit 60000 ms)", "at most 450 ms", "not held against the tables: it is off", "a note"} {
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// sentencesOf counts the sentences of a first screen, and fails where a line of it is too wide.
func sentencesOf(t *testing.T, text string) (n int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len(line) > columns+1 {
			t.Errorf("too wide: %s", line)
		}
		if !strings.HasPrefix(line, " ") {
			n++
		}
	}
	return n
}

// TestCrashBrief: five sentences within 80 columns; what a kill cannot show is next where nothing was lost.
func TestCrashBrief(t *testing.T) {
	c := result.CrashTest{Threads: 8, Seed: 3996750639051527, LimitMs: 60000, Rounds: []result.Kill{{Acknowledged: 1200, RecoveryMs: 900}}}.Judge()
	power := c
	power.Power = &result.Power{}
	lost := result.CrashTest{LimitMs: 60000, Log: "it is off", Unlocked: []string{"sync_binlog=0, at risk: transactions"}, Rounds: []result.Kill{{Acknowledged: 10, Lost: 3}}}.Judge()
	for name, test := range map[string]struct {
		test result.CrashTest
		want []string
	}{
		"proved": {c, []string{"proved: 1 kill, 1,200", "at most 900 ms of the 60000 allowed; the binary log was held", "`david crash-test --power` does; `david show crash-1`"}},
		"power":  {power, []string{"next: `david show crash-1` has"}},
		"lost":   {lost, []string{"lost 3 of 10", "UNLOCKED: sync_binlog=0", "was not held against the tables: it is off", "next: `david show crash-1` has"}},
	} {
		var b strings.Builder
		if err := CrashBrief(&b, test.test, "crash-1"); err != nil {
			t.Fatal(err)
		}
		sentences := sentencesOf(t, b.String())
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.String())
			}
		}
		if sentences != 5 {
			t.Errorf("%s: %d sentences:\n%s", name, sentences, b.String())
		}
	}
}

func TestKillLine(t *testing.T) {
	k := result.Kill{AfterMs: 1240, Acknowledged: 50, RecoveryMs: 700}
	if got := KillLine(2, 5, k); got != "kill 2 of 5 after 1.2 s: 50 acknowledged, 0 lost; recovered in 700 ms" {
		t.Error(got)
	}
	k.Lost, k.Late, k.Damage.OnlyLogged = 3, 2, 4
	if got := KillLine(2, 5, k); !strings.Contains(got, "3 lost, 2 right at a second look only, 4 transactions are in the binary log only") {
		t.Error(got)
	}
}

// TestPowerText: what decides stands in the first lines: cuts, losses, pages repaired, the time of recovery.
func TestPowerText(t *testing.T) {
	cut := result.Cut{AtFlush: true, AtRisk: 1, Torn: 1, Grain: 512, Repaired: 3}
	failed := result.Cut{AtRisk: 9, Lost: 4, Torn: 2, Grain: 4096, Failed: "page 7 is corrupt"}
	c := result.CrashTest{Threads: 4, LimitMs: 60000, Power: &result.Power{Filesystem: "ext4", Cache: "lying", Writes: 12345, Flushes: 678},
		Rounds: []result.Kill{{Acknowledged: 1200, RecoveryMs: 900, Cut: &cut}, {Acknowledged: 100, Cut: &failed}}}.Judge()
	var b strings.Builder
	if err := Crash(&b, c); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"the server did not come back from 1 of 2 cuts: page 7 is corrupt: 2 power cuts, 1,300 transactions acknowledged, those before several cuts counted in each, 0 lost; 3 pages restored from the doublewrite buffer, recovery p50 900 ms, at most 900 ms",
		"the disk (ext4, lying cache) was told 12,345 writes and to flush 678 times; over all cuts 4 writes at risk were lost and 3 torn", "IGNORED FLUSHES", "after every recovery"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	three := c
	three.Rounds = []result.Kill{c.Rounds[0], c.Rounds[0], c.Rounds[0]}
	if got := CrashLine(three.Judge()); !strings.Contains(got, "; so at most 63 % of such cuts lose anything (95 %)") { // three: 1 - 0.05^(1/3)
		t.Error(got)
	}
	for points, want := range map[int]string{3: "it was cut before the 3 flushes that came after a write, each in turn", 1500: "before the last 3 of the 1,500 flushes that came"} {
		if got := diskLine(result.Power{Every: true, FlushPoints: points}, 3); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
	if got := KillLine(1, 2, c.Rounds[0]); got != "cut 1 of 2 at a flush, 1 write at risk, 0 lost, 1 torn (512 B): 1200 acknowledged, 0 lost; recovered in 900 ms, 3 pages restored" {
		t.Error(got)
	}
	if got := KillLine(2, 2, c.Rounds[1]); got != "cut 2 of 2 at random, 9 writes at risk, 4 lost, 2 torn (4096 B): 100 acknowledged; did not come back: page 7 is corrupt" {
		t.Error(got)
	}
	failed.AgainFailed = "the disk is full"
	if got := KillLine(2, 2, c.Rounds[1]); !strings.HasSuffix(got, "page 7 is corrupt; no further recovery: the disk is full") {
		t.Error(got)
	}
	failed.Again, failed.AgainBad, failed.AgainFailed = 2, 1, ""
	if got := KillLine(2, 2, c.Rounds[1]); !strings.HasSuffix(got, "page 7 is corrupt; the same disk again: 1 of 2 recoveries not right") {
		t.Error(got)
	}
}
