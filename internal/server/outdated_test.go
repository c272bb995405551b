package server

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOutdated names what david has a newer version of: by numbers, each product for itself, and nothing that it did not install.
func TestOutdated(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, name := range []string{"mysql-9.7.4-2", "mysql-9.10.0-1", "mysql-8.4.3-1", "mariadb-11.8.1-1", "mysqltuner-2.9.3-2", "mysqltuner-2.10.0-1", "own-1", "own-2", ".install-1"} {
		if err := os.MkdirAll(filepath.Join(home, "servers", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, o := range Outdated(home) {
		got = append(got, o.Name+"<"+o.Newer)
	}
	want := []string{"mysql-8.4.3-1<mysql-9.10.0-1", "mysql-9.7.4-2<mysql-9.10.0-1", "mysqltuner-2.9.3-2<mysqltuner-2.10.0-1"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
