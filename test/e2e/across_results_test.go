//go:build results

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestResultsStudyP3 repeats study P3 whole between two nodes, whose pods have a veth pair each, or a link of the node's, or are joined by kube-router or by Flannel in either of two ways,
// and its remark on Best Effort: five hours. Both nodes are this machine, which it says.
func TestResultsStudyP3(t *testing.T) {
	home := t.TempDir() // one for all: each network is a row of the last table
	for _, network := range []string{"ptp", "kube-router", "host-device", "flannel-vxlan", "flannel-hostgw"} {
		t.Run(network, func(t *testing.T) {
			a := twoNodes(t, network)
			a.home = home
			if strings.HasPrefix(network, "flannel-") {
				a.joined(t)
			}
			a.whole(t, []string{"--network=" + network, "--verbose"}, "Study p3", "host beside "+network, "both nodes are one machine")
			if network == "ptp" {
				a.whole(t, []string{"--qos", "--verbose"}, "BestEffort", "both nodes are one machine")
			}
		})
	}
}

// TestResultsAcrossNodes cuts study P3 down as TestAcrossNodes does, on those of the cluster's networks that this one has not: ten minutes. In the
// end of Flannel's, all that Flannel runs is killed by kill -9, and what is left over then is a failure, too.
func TestResultsAcrossNodes(t *testing.T) {
	for _, network := range []string{"flannel-hostgw", "kube-router", "bridge", "ptp", "vxlan", "macvlan", "host-device"} {
		t.Run(network, func(t *testing.T) {
			a := twoNodes(t, network)
			if network == "flannel-hostgw" {
				a.joined(t)
				defer func() {
					for range 2 { // one on each node
						kill(t, a.find(t, "flanneld"))
					}
				}()
			}
			a.killed(t)
			a.measures(t)
		})
	}
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
