package experiment

import (
	"testing"

	"david/internal/result"
)

// TestSayOfServer: of a server that is not david's nobody is told that it is started or shut down.
func TestSayOfServer(t *testing.T) {
	for name, c := range map[string]struct {
		target Target
		want   int
	}{"david's": {&Sandboxed{}, 1}, "the user's": {Remote{}, 0}} {
		said := 0
		e := &Engine{Target: c.target, Report: func(Event) { said++ }}
		e.sayOfServer(trialJob{arm: &result.Arm{Name: "pod"}}, "starting a fresh server")
		if said != c.want {
			t.Errorf("%s: said %d times, want %d", name, said, c.want)
		}
	}
}
