package mycnf

import (
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"8.4.6": {8, 4, 6}, "9.7.4-2": {9, 7, 4}, "8.0.36-28": {8, 0, 36}, "26.7.1": {26, 7, 1}, "8.10": {8, 10, 0},
		"10.11.19-MariaDB-0+deb12u1": {10, 11, 19}, "5.5.5-10.11.19-MariaDB-log": {10, 11, 19},
		"8.0.45-0ubuntu0.24.04.1": {8, 0, 45}, " 9.7.4 ": {9, 7, 4}, "5.5.5-m3": {5, 5, 5},
	} {
		got, err := ParseVersion(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "8", "eight", "8.", "8.4.", "8.4.6x", "8..4", "-8.4", "99999.1", "8.4\n9"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("accepted %q as %v", bad, v)
		}
	}
}

// TestParseRelease: a series means its last release, whatever it is called; a whole version means itself.
func TestParseRelease(t *testing.T) {
	for text, want := range map[string]string{"8.0": "8.0", "10.6-jammy": "10.6", " 8.4 ": "8.4", "8.0.0": "8.0.0", "8.0.36-28": "8.0.36", "5.5.5-10.11.19-MariaDB-log": "10.11.19"} {
		v, err := ParseRelease(text)
		if err != nil || v.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, v, err, want)
		}
		_, capacity := Lookup("innodb_redo_log_capacity", MySQL, v) // since 8.0.30
		if v.Major == 8 && capacity == (text == "8.0.0") {
			t.Errorf("%q: has innodb_redo_log_capacity: %v", text, capacity)
		}
	}
	if v, err := ParseRelease("eight"); err == nil {
		t.Error(v)
	}
	series, next := Version{8, 0, LastOfSeries}, Version{8, 1, 0}
	if !series.AtLeast(8, 0, 9999) || next.Compare(series) <= 0 {
		t.Error("the last release of a series is out of order")
	}
}

func TestVersionsAreInOrder(t *testing.T) {
	order := []Version{{8, 0, 30}, {8, 0, 36}, {8, 4, 6}, {8, 10, 0}, {9, 7, 4}, {10, 11, 19}, {26, 7, 1}}
	if !slices.IsSortedFunc(order, Version.Compare) {
		t.Error("versions are out of order")
	}
	v := Version{8, 4, 6}
	if !v.AtLeast(8, 4, 6) || v.AtLeast(8, 10, 0) || !v.AtLeast(8, 0, 30) || v.AtLeast(9, 0, 0) {
		t.Error("AtLeast is wrong")
	}
	if v.String() != "8.4.6" {
		t.Error(v.String())
	}
}

func TestFlavourOf(t *testing.T) {
	for _, c := range []struct {
		version, comment string
		want             Flavour
	}{
		{"10.11.19-MariaDB-0+deb12u1", "Debian 12", MariaDB}, {"11.4.2", "mariadb.org binary distribution", MariaDB},
		{"8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19", Percona},
		{"9.7.4", "MySQL Community Server - GPL", MySQL}, {"9.7.4-2", "(Debian)", MySQL},
	} {
		if got := FlavourOf(c.version, c.comment); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.version, c.comment, got, c.want)
		}
	}
}

func TestServerGroups(t *testing.T) {
	if got := ServerGroups(MySQL, Version{8, 4, 6}); !slices.Equal(got, []string{"mysql_cluster", "mysqld", "server", "mysqld-8.4"}) {
		t.Error(got)
	}
	want := strings.Fields("mysqld server mysqld-10.11 mariadb mariadb-10.11 mariadbd mariadbd-10.11 client-server galera")
	if got := ServerGroups(MariaDB, Version{10, 11, 19}); !slices.Equal(got, want) {
		t.Error(got)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"8.4.6", "9.7.4-2", "5.5.5-10.11.19-MariaDB", "26.7.1", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err != nil {
			return
		}
		if again, err := ParseVersion(v.String()); err != nil || again != v {
			t.Errorf("%q is %v, which reads as %v, %v", s, v, again, err)
		}
	})
}
