package mysqld

import (
	"slices"
	"testing"
)

func TestMissingPrivileges(t *testing.T) {
	all := needed()
	for _, c := range []struct {
		grants  []string
		missing []string
	}{
		{[]string{"GRANT ALL PRIVILEGES ON *.* TO `u`@`%`"}, nil},
		{[]string{"GRANT USAGE ON *.* TO `u`@`%`", "GRANT ALL PRIVILEGES ON `sbtest`.* TO `u`@`%`"}, nil},
		{[]string{"GRANT USAGE ON *.* TO `u`@`%`", "GRANT ALL PRIVILEGES ON `sb%`.* TO `u`@`%`"}, nil},
		{[]string{"GRANT ALL PRIVILEGES ON `sb\\_test`.* TO `u`@`%`"}, all},
		{[]string{"GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO `u`@`%`", "GRANT CREATE, DROP ON `sbtest`.* TO `u`@`%`"}, []string{"INDEX"}},
		{[]string{"GRANT SELECT ON `other`.* TO `u`@`%`"}, all},
		{[]string{"GRANT ALL PRIVILEGES ON `sbtest`.`t` TO `u`@`%`"}, all},
		{[]string{"GRANT USAGE ON *.* TO `u`@`%`", "GRANT `admin`@`%` TO `u`@`%`"}, nil},
	} {
		if got := missingPrivileges(c.grants, "sbtest"); !slices.Equal(got, c.missing) && len(got)+len(c.missing) > 0 {
			t.Errorf("%q: missing %q, want %q", c.grants, got, c.missing)
		}
	}
}

func TestCountersAndDelta(t *testing.T) {
	before := Counters(map[string]string{"queries": "10", "open": "5", "name": "x", "rate": "NaN"})
	after := Counters(map[string]string{"queries": "25", "open": "3", "new": "1", "name": "x"})
	got := Delta(before, after)
	if len(got) != 2 || got["queries"] != 15 || got["open"] != -2 {
		t.Errorf("got %v", got)
	}
}
