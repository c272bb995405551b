//go:build results

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestResultsStudyP3 repeats study P3 whole between two nodes whose pods have a veth pair each, and its remark on Best Effort:
// an hour and a half. Both nodes are this machine, which it says.
func TestResultsStudyP3(t *testing.T) {
	a := twoNodes(t)
	a.whole(t, []string{"--network=ptp", "--verbose"}, "Study p3", "host beside ptp", "both nodes are one machine")
	a.whole(t, []string{"--qos", "--verbose"}, "BestEffort", "both nodes are one machine")
}

// whole runs the study as it is, and looks for words in what it prints.
func (a across) whole(t *testing.T, args []string, words ...string) {
	var out, errOut bytes.Buffer
	cmd := exec.Command(a.david, append([]string{"study", "p3", "--image=" + a.image}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.facts.Kubeconfig, "DAVID_HOME="+a.home)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	t.Log(out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	for _, want := range words {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}
