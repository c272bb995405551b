package cli

import (
	"strings"
	"testing"

	"david/internal/podnet"
)

// TestReadPodPaths: each path once, the control first, and nothing that is no path.
func TestReadPodPaths(t *testing.T) {
	list, err := readPodPaths([]string{"pod", "balancer", "host"})
	if err != nil || len(list) != 3 || list[0].Name != "pod" || list[1].Way != podnet.Balancer || !list[2].Host {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range []string{"", "host", "host,host", "host,vxlan", "host,service,service", "host,"} {
		if _, err := readPodPaths(strings.Split(bad, ",")); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
