package result

import (
	"slices"
	"testing"
)

// TestMeasured takes what only shows for nothing that makes another command.
func TestMeasured(t *testing.T) {
	plain := []string{"david", "tune", "--budget", "10m"}
	for _, argv := range [][]string{
		{"david", "tune", "--budget", "10m", "-v"},
		{"david", "tune", "--fresh", "--metrics", "127.0.0.1:9104", "--budget", "10m", "--quiet"},
		{"david", "tune", "--metrics=127.0.0.1:9104", "--json", "--budget", "10m", "--no-color", "--verbose"},
	} {
		if got := measured(argv); !slices.Equal(got, plain) {
			t.Errorf("%q", got)
		}
	}
	if got := measured([]string{"david", "tune", "--budget", "11m"}); slices.Equal(got, plain) {
		t.Error("another budget is another command")
	}
}

// TestQuick: a record is of --quick where its command line said so.
func TestQuick(t *testing.T) {
	for want, lines := range map[bool][][]string{
		true:  {{"david", "study", "p3", "--quick"}, {"david", "study", "p3", "--quick=true", "--rounds", "20"}},
		false: {nil, {"david", "study", "p3"}, {"david", "study", "p3", "--quick=false"}, {"david", "study", "p3", "--quiet"}},
	} {
		for _, argv := range lines {
			if got := (Experiment{Argv: argv}).Quick(); got != want {
				t.Errorf("%q: %t", argv, got)
			}
		}
	}
}
