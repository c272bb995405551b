package ceph

import "testing"

// TestAddresses takes those of clients and of machines, and nothing that a program could take for more.
func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"10.0.0.5": true, "10.0.0.5:0/123456": true, "[fd00::1]:0/7": true, "fd00::1": true,
		"": false, "--id": false, "10.0.0.5:0": false, "10.0.0.5:0/x": false, "host": false, "10.0.0.5:0/1 x": false, "10.0.0.0/8": false,
	} {
		if err := CheckAddress(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, c := range []struct {
		fence, client string
		want          bool
	}{
		{"10.0.0.5", "10.0.0.5:0/1", true}, {"10.0.0.5", "10.0.0.50:0/1", false}, {"10.0.0.5:0/1", "10.0.0.5:0/1", true}, {"10.0.0.5:0/1", "10.0.0.5:0/12", false},
		{"fd00::1", "[fd00::1]:0/7", true}, {"10.0.0.5", "", false},
	} {
		if got := Covers(c.fence, c.client); got != c.want {
			t.Errorf("%s covers %s: %v", c.fence, c.client, got)
		}
	}
}
