package result

import (
	"reflect"
	"testing"
)

func TestJudge(t *testing.T) {
	good := Kill{Acknowledged: 10, RecoveryMs: 500}
	for name, c := range map[string]struct {
		rounds  []Kill
		failed  string
		verdict string
	}{
		"proved":       {[]Kill{good, good}, "", "proved"},
		"lost":         {[]Kill{good, {Acknowledged: 5, Lost: 2, RecoveryMs: 1}}, "", "lost 2 of 15"},
		"slow":         {[]Kill{good, {Acknowledged: 5, RecoveryMs: 1001}}, "", "recovery took up to 1001 ms, the limit is 1000 ms"},
		"at the limit": {[]Kill{{Acknowledged: 5, RecoveryMs: 1000}}, "", "proved"},
		"half":         {[]Kill{{Acknowledged: 5, RecoveryMs: 1, Damage: Damage{Half: 1}}}, "", "1 accounts disagree with their rows (half a transaction)"},
		"dead":         {[]Kill{good, {Acknowledged: 5}}, "corrupt", "the server did not come back: corrupt"},
		"no load":      {[]Kill{{RecoveryMs: 1}}, "", "nothing was acknowledged before a kill: nothing is proved"},
		"both logs": {[]Kill{{Acknowledged: 5, Lost: 1, RecoveryMs: 1, Damage: Damage{OnlyLogged: 1, Unlogged: 2}}}, "",
			"lost 1 of 5; 1 transactions are in the binary log only (replicas have them, this server does not); 2 transactions are not in the binary log (replicas never get them)"},
	} {
		got := CrashTest{Rounds: c.rounds, Failed: c.failed, LimitMs: 1000}.Judge()
		if got.Verdict != c.verdict || got.Proved != (c.verdict == "proved") || got.Kills != len(c.rounds) {
			t.Errorf("%s: %q, %+v", name, got.Verdict, got)
		}
	}
}

func TestJudgeSums(t *testing.T) {
	got := CrashTest{LimitMs: 1000, Rounds: []Kill{{Acknowledged: 3, RecoveryMs: 700}, {Acknowledged: 4, Lost: 1, RecoveryMs: 100, Damage: Damage{Twice: 2}},
		{Acknowledged: 5, RecoveryMs: 300, Late: 2, Damage: Damage{Returned: 1}}, {Acknowledged: 1}}, Failed: "x"}.Judge()
	if got.Acknowledged != 13 || got.Lost != 1 || got.Damaged != 3 || got.Late != 2 || !reflect.DeepEqual(got.RecoveryMs, RecoveryMs{[]float64{700, 100, 300}, 300, 700}) {
		t.Errorf("%+v", got)
	}
	if none := (CrashTest{}).Judge(); none.RecoveryMs.Each == nil || none.Proved {
		t.Errorf("%+v", none)
	}
}

// TestDamage has every kind counted, and told in words.
func TestDamage(t *testing.T) {
	kinds := reflect.TypeFor[Damage]().NumField()
	for i := range kinds {
		var d Damage
		reflect.ValueOf(&d).Elem().Field(i).SetInt(3)
		if d.Sum() != 3 || len(d.Words()) != 1 || d.plus(d).Sum() != 6 {
			t.Errorf("%+v: sum %d, words %q", d, d.Sum(), d.Words())
		}
	}
}

func TestCrashIsStored(t *testing.T) {
	s := newStore(t)
	if c, err := s.Crash(); c != nil || err != nil {
		t.Errorf("before it was stored: %+v, %v", c, err)
	}
	want := CrashTest{LimitMs: 1000, Rounds: []Kill{{Acknowledged: 3, RecoveryMs: 700, Damage: Damage{Half: 1}}}, Unlocked: []string{"x"}}.Judge()
	if err := s.PutCrash(want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Crash(); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
