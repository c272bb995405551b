package result

import "testing"

// TestWithoutCeilings leaves what it was given as it was.
func TestWithoutCeilings(t *testing.T) {
	arms := []Arm{{Name: "a"}, {Name: "light", Ceiling: true}, {Name: "b"}}
	trials := []Trial{{Arm: "light"}, {Arm: "a"}, {Arm: "b"}, {Arm: "light"}}
	safe, rest := WithoutCeilings(arms, trials)
	if len(safe) != 2 || safe[0].Name != "a" || safe[1].Name != "b" || len(rest) != 2 || rest[0].Arm != "a" || rest[1].Arm != "b" {
		t.Errorf("%+v, %+v", safe, rest)
	}
	if arms[1].Name != "light" || arms[2].Name != "b" || trials[0].Arm != "light" || trials[3].Arm != "light" {
		t.Errorf("changed: %+v, %+v", arms, trials)
	}
}
