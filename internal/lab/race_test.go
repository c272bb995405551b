package lab

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
)

func TestRoughly(t *testing.T) {
	for n, want := range map[int64]int64{0: 1, 1: 1, 2: 2, 3: 2, 1023: 512, 1024: 1024, 80 << 30: 64 << 30} {
		if got := roughly(n); got != want {
			t.Errorf("roughly(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestShippedArms: unsafe arms are ceilings, say what they can lose, and are those that were asked for.
func TestShippedArms(t *testing.T) {
	p := rules.Problem{Flavour: mycnf.MySQL, Version: mycnf.Version{Major: 9, Minor: 7}, CPUs: 2, Memory: 4 << 30, FreeDisk: 64 << 30, Threads: 4, Tables: 10, Seed: 1}
	all := rules.Baselines(p)
	l := Lineup{Flavour: p.Flavour, Baselines: rules.Distinct(all), all: all}
	for _, c := range []struct {
		f    Race
		want int
	}{{Race{}, 0}, {Race{AsShipped: true, Only: "moco,rds-8.0"}, 1}, {Race{AsShipped: true}, 5}} {
		l.race = c.f
		unsafe := 0
		for _, arm := range l.arms() {
			if arm.Ceiling != strings.HasSuffix(arm.Name, "-shipped") || arm.Ceiling && !strings.Contains(arm.Title, "unsafe") {
				t.Errorf("%s: %s", arm.Name, arm.Title)
			}
			if arm.Ceiling {
				unsafe++
			}
		}
		if unsafe != c.want {
			t.Errorf("%+v: %d unsafe arms, want %d", c.f, unsafe, c.want)
		}
	}
	if arms := l.arms(); arms[0].Name != "control" || !strings.Contains(arms[0].Title, "mysql-default, oracle-operator") {
		t.Errorf("the first arm is %+v", arms[0])
	}
}
