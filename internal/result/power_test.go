package result

import (
	"strings"
	"testing"
)

// TestJudgePower: a cut that the server did not come back from is no proof, whatever the others show, and the
// sums are those of the cuts, however often it is judged.
func TestJudgePower(t *testing.T) {
	good := Kill{Acknowledged: 10, RecoveryMs: 300, Cut: &Cut{AtRisk: 5, Lost: 2, Torn: 1, Repaired: 1}}
	c := CrashTest{LimitMs: 1000, Power: &Power{Filesystem: "xfs", Writes: 7}, Rounds: []Kill{good, good}}
	c = c.Judge().Judge()
	if want := (Power{Filesystem: "xfs", Writes: 7, Lost: 4, Torn: 2, Repaired: 2}); !c.Proved || c.Kills != 2 || *c.Power != want {
		t.Errorf("%+v, %+v", c, *c.Power)
	}
	c.Rounds = append(c.Rounds, Kill{Acknowledged: 10, Cut: &Cut{Failed: "page 7 is corrupt"}})
	if c = c.Judge(); c.Proved || c.Power.DidNotReturn != 1 || !strings.Contains(c.Verdict, "did not come back from 1 of 3 cuts: page 7 is corrupt") || len(c.RecoveryMs.Each) != 2 {
		t.Errorf("%+v", c)
	}
	c.Rounds = []Kill{{Acknowledged: 10, RecoveryMs: 1, Damage: Damage{Schema: 1}, Cut: &Cut{}}}
	if c = c.Judge(); c.Proved || c.Damaged != 1 || !strings.Contains(c.Verdict, "changes of the schema") {
		t.Errorf("%+v", c)
	}
}
