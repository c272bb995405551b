package advice_test

import (
	"slices"
	"strings"
	"testing"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/rules"
)

// unadvised are the variables of sizing rules for which the adviser has no row, or one that goes by more than the
// machine, each with the reason.
func unadvised() map[string]string {
	return map[string]string{
		"innodb_page_size":   "fixed when the data are initialised",
		"performance_schema": "worth its price to whoever watches a server; a tune measures it",
		// MySQL 9.7 goes by the CPUs itself, and MariaDB has none.
		"innodb_buffer_pool_instances": "worth little that could be shown; a tune measures it",
	}
}

// TestSizingIsAdvised holds the two tables together, of sizing rules and of advice: to a server that is sized by the
// rules but for one value the adviser proposes that value.
func TestSizingIsAdvised(t *testing.T) {
	compared := map[string]int{}
	for _, s := range []struct {
		flavour mycnf.Flavour
		version string
	}{
		{mycnf.MySQL, "9.7.4"}, {mycnf.MySQL, "8.0.36"}, {mycnf.Percona, "8.4.6"},
		{mycnf.MariaDB, "10.11.19"}, {mycnf.MariaDB, "11.4.5"},
	} {
		for _, m := range sizedMachines() {
			p := rules.Problem{
				Flavour: s.flavour, Version: parsed(t, s.version),
				CPUs: m.CPUs, Memory: m.Memory, FreeDisk: m.FreeDisk, WriteIOPS: m.WriteIOPS,
			}
			var sized []mycnf.Setting
			for _, set := range rules.Sizing(p) {
				sized = append(sized, set.Settings...)
			}
			for i, want := range sized {
				if unadvised()[want.Name] != "" {
					continue
				}
				but := slices.Clone(sized)
				but[i].Value = wrong(want)
				found := advice.Of(configuration{"", s.flavour, p.Version, but}.server(m)).Findings
				at := slices.IndexFunc(found, func(f advice.Finding) bool { return f.Variable == want.Name })
				if at < 0 {
					t.Errorf("%s %s, %d GiB: nothing is said of %s=%s", s.flavour, s.version, m.Memory>>30, want.Name, but[i].Value)
					continue
				}
				if got, ok := found[at].Setting(); !ok || mycnf.MatchValues(want.Name, got.Value, want.Value) == mycnf.Different {
					t.Errorf("%s %s, %d GiB: %s=%s is advised, the sizing rule has %s", s.flavour, s.version, m.Memory>>30, want.Name, got.Value, want.Value)
				}
				compared[want.Name]++
			}
		}
	}
	if len(compared) < 10 {
		t.Errorf("only %v were compared", compared)
	}
}

// sizedMachines are small to large. None has 1 GiB: there a MariaDB's 151 connections leave no room even for the
// least pool, and advice is about them first.
func sizedMachines() []advice.Machine {
	const disk = 500 << 30
	return []advice.Machine{
		{Memory: 2 << 30, CPUs: 1, FreeDisk: disk},
		{Memory: 16 << 30, CPUs: 4, FreeDisk: disk},
		{Memory: 24 << 30, CPUs: 2, FreeDisk: disk},
		{Memory: 64 << 30, CPUs: 16, FreeDisk: disk, WriteIOPS: 30000},
	}
}

// wrong is a value that no sizing rule has.
func wrong(s mycnf.Setting) string {
	switch s.Value {
	case "ON":
		return "OFF"
	case "OFF":
		return "ON"
	case "O_DIRECT":
		return "fsync"
	}
	if strings.Contains(s.Name, "purge") {
		return "32"
	}
	return "1"
}
