package cli

import "testing"

// TestPlanExamples runs the cases of docs/plan.md.
func TestPlanExamples(t *testing.T) {
	t.Parallel()
	runShown(t, "../../docs/plan.md", 11)
}
