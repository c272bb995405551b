package workload

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"david/internal/input"
	"david/internal/mysqld"
)

// TestFill tells sysbench the same in the same order every time, and reads keys as long as david's own
// connections do.
func TestFill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(key, make([]byte, mysqld.PEMBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mysqld.Addr{Network: "tcp", Address: "db:3306", TLS: mysqld.TLS{Cert: key, Key: key}}
	want := "--mysql-host=host={db};restricted-auth={" + methods + "};server-public-key={" + dir + "/rsa-key};ssl-fp={DA39A3EE5E6B4B0D3255BFEF95601890AFD80709};" +
		"ssl-cert={" + dir + "/ssl-cert};ssl-key={" + dir + "/ssl-key};"
	for range 20 {
		w := way{path: dir}
		if err := w.fill(a, &x509.Certificate{}); err != nil || w.options[0] != want {
			t.Fatalf("%v: %s\nwant\n%s", err, w.options, want)
		}
	}
	if err := os.Truncate(key, mysqld.PEMBytes+1); err != nil {
		t.Fatal(err)
	}
	if err := (&way{path: dir}).fill(a, &x509.Certificate{}); !errors.Is(err, input.ErrLong) {
		t.Errorf("a longer key: %v", err)
	}
}
