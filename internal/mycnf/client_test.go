package mycnf

import (
	"maps"
	"strings"
	"testing"
)

// TestClientOptions reads what clients do: their groups alone, loose_ before a name is no part of it, the last
// one counts.
func TestClientOptions(t *testing.T) {
	f, err := Parse(strings.NewReader("[client]\nloose-ssl-mode=REQUIRED\nssl_mode=VERIFY_CA\nLOOSE_ssl-ca=/ca\n[client-mariadb]\nloose_ssl\n[mysqld]\nport=1\n"), "my.cnf")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"ssl_mode": "VERIFY_CA", "ssl_ca": "/ca", "ssl": ""}
	if got := f.ClientOptions("client", "client-mariadb"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
