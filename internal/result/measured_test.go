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
