//go:build results

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestResultsStudyP3 repeats study P3 whole between two nodes whose pods have a veth pair each: an hour. Both nodes are this
// machine, which it says.
func TestResultsStudyP3(t *testing.T) {
	a := twoNodes(t)
	var out, errOut bytes.Buffer
	cmd := exec.Command(a.david, "study", "p3", "--image="+a.image, "--network=ptp")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.facts.Kubeconfig, "DAVID_HOME="+a.home)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	t.Log(out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	for _, want := range []string{"Study p3", "host beside ptp", "both nodes are one machine"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}
