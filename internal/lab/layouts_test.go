package lab

import (
	"errors"
	"testing"
	"time"

	"david/internal/experiment"
)

// TestPatiently: what takes long is told of once, what does not is not; its error comes back either way.
func TestPatiently(t *testing.T) {
	want := errors.New("it failed")
	for takes, told := range map[time.Duration]int{0: 0, 300 * time.Millisecond: 1} {
		said := 0
		l := Lab{Show: func(experiment.Event) { said++ }}
		long := time.Minute
		if told > 0 {
			long = takes / 10
		}
		err := l.patiently(long, "it takes long", func() error { time.Sleep(takes); return want })
		if !errors.Is(err, want) || said != told {
			t.Errorf("%s: %v, told %d times", takes, err, said)
		}
	}
}
