package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
)

// explained holds what david explain --json says, as far as it is looked at here.
type explained struct {
	Findings []struct {
		Cause    string   `json:"cause"`
		Share    float64  `json:"share"`
		Evidence []string `json:"evidence"`
	} `json:"findings"`
	Unexplained  float64                                          `json:"unexplained"`
	Confirmation struct{ Cause, Question, Judgement, Why string } `json:"confirmation"`
}

// line is the explanation in a line: causes with their shares in per cent.
func (e explained) line() string {
	var parts []string
	for _, f := range e.Findings {
		if f.Share >= 0.05 || len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", f.Cause, 100*f.Share))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", unexplained %.0f %%", 100*e.Unexplained)
}

// newest is the ID of the newest experiment of one of these kinds.
func newest(t *testing.T, dir string, kinds ...result.Kind) string {
	t.Helper()
	list, err := result.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range list {
		if slices.Contains(kinds, sum.Kind) {
			return sum.ID
		}
	}
	t.Fatalf("there is none of %v", kinds)
	return ""
}
