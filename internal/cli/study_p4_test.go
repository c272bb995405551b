package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestStudyP4 repeats the study, cut down, on the Ceph that `make ceph` has up: nothing is concluded from it.
func TestStudyP4(t *testing.T) {
	conf := os.Getenv(localCeph)
	if conf == "" || os.Geteuid() != 0 {
		t.Skip("a Ceph is no part of the set-up: make ceph brings one up and runs this, as root")
	}
	out, errOut, code := david(t, testHome(t), "study", "p4", "--verbose", "--quick", "--local")
	if code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	for _, want := range []string{"Writes of 16 KiB at random to Ceph RBD, 3 OSDs", "each flushed", "Servers beside each other, each on an RBD image of its own of the pool replicas-2, with 8 clients of its own",
		"pool-20-unsafe (unsafe, no verdict)", "RBD image of the Ceph pool replicas-2, 2 copies", "Azure Premium"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	for n, clients := range map[string]string{"1": "8", "2": "16", "4": "32"} {
		if !regexp.MustCompile(`(?m)^` + n + ` +` + clients + ` +[0-9.]*[1-9][0-9.]* +\[`).MatchString(out) {
			t.Errorf("of %s servers with %s clients in all no transactions are told:\n%s", n, clients, out)
		}
	}
	// What a fill still counts of the images before it, which are gone, it leaves out: 80 % instead of 87.
	for pool, fills := range map[string][]string{"replicas-2": {"14", "87"}, "replicas-3": {"14", "87"}} {
		for _, used := range fills {
			if !regexp.MustCompile(`(?m)^` + pool + ` +\d +` + used + ` %`).MatchString(out) {
				t.Errorf("%s was not measured %s %% full:\n%s", pool, used, out)
			}
		}
	}
}
