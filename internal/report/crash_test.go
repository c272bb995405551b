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

func TestKillLine(t *testing.T) {
	k := result.Kill{AfterMs: 1240, Acknowledged: 50, RecoveryMs: 700}
	if got := KillLine(2, 5, k); got != "kill 2 of 5 after 1.2 s: 50 acknowledged, 0 lost; recovered in 700 ms" {
		t.Error(got)
	}
	k.Lost, k.Damage.OnlyLogged = 3, 4
	if got := KillLine(2, 5, k); !strings.Contains(got, "3 lost, 4 transactions are in the binary log only") {
		t.Error(got)
	}
}
