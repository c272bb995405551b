package cli

import (
	"testing"
)

func TestSLOBelowAMillisecond(t *testing.T) {
	goal, err := parseSLO("p99=100ns")
	if err != nil || goal.Ms != 0.0001 {
		t.Errorf("%v, %v", goal, err)
	}
}
