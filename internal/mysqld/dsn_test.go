package mysqld

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseDSN(t *testing.T) {
	t.Setenv("MYSQL_PWD", "fromenv")
	for dsn, want := range map[string]struct{ addr, db, user, password, mode string }{
		"u:p@tcp(db1:3307)/shop":                            {"db1:3307 (tcp)", "shop", "u", "p", ""},
		"u:p@tcp(db1)/":                                     {"db1:3306 (tcp)", "", "u", "p", ""},
		"u:p@tcp([::1]:3307)/":                              {"[::1]:3307 (tcp)", "", "u", "p", ""},
		"u:p@/":                                             {"127.0.0.1:3306 (tcp)", "", "u", "p", ""},
		"u@unix(/run/my/s.sock)/shop?tls=false":             {"socket /run/my/s.sock", "shop", "u", "fromenv", "DISABLED"},
		"u:a:b@c/d?e@tcp(h:1)/x?tls=true":                   {"h:1 (tcp)", "x", "u", "a:b@c/d?e", "VERIFY_IDENTITY"},
		"u:p@tcp(h)/x?tls=skip-verify":                      {"h:3306 (tcp)", "x", "u", "p", "REQUIRED"},
		"mysql://u:p%40%2Fx@h:3307/shop?ssl-mode=verify_ca": {"h:3307 (tcp)", "shop", "u", "p@/x", "VERIFY_CA"},
		"mysql://u@[::1]/shop":                              {"[::1]:3306 (tcp)", "shop", "u", "fromenv", ""},
		"mysql://u:p@localhost/d?socket=/run/s":             {"socket /run/s", "d", "u", "p", ""},
	} {
		a, db, err := ParseDSN(dsn, nil)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if a.String() != want.addr || db != want.db || a.User != want.user || string(a.Password) != want.password || a.TLS.Mode != want.mode {
			t.Errorf("%s: got %v %q %q %q %q", dsn, a, db, a.User, string(a.Password), a.TLS.Mode)
		}
	}
}

// TestParseDSNWithOptions is a DSN beside ~/.my.cnf: what it says wins.
func TestParseDSNWithOptions(t *testing.T) {
	options := map[string]string{"user": "file", "password": "infile"}
	for _, c := range []struct{ dsn, env, user, password string }{
		{"tcp(h)/", "", "file", "infile"},
		{"mysql://h/", "", "file", "infile"},
		{"tcp(h)/", "fromenv", "file", "fromenv"},
		{"u@tcp(h)/", "", "u", "infile"},
		{"u:p@tcp(h)/", "fromenv", "u", "p"},
		{":p@tcp(h)/", "", "file", "p"},
	} {
		t.Setenv("MYSQL_PWD", c.env)
		a, _, err := ParseDSN(c.dsn, options)
		if err != nil || a.User != c.user || string(a.Password) != c.password {
			t.Errorf("%s: got %q, %q, %v", c.dsn, a.User, string(a.Password), err)
		}
	}
}

// TestParseDSNWithTLSOfOptions is a DSN beside a ~/.my.cnf that says how its password may travel.
func TestParseDSNWithTLSOfOptions(t *testing.T) {
	strict := map[string]string{"ssl_mode": "verify_identity", "ssl-ca": "/ca", "ssl_cert": "/cert", "ssl_key": "/key"}
	for _, c := range []struct {
		dsn     string
		options map[string]string
		want    TLS
	}{
		{"u@tcp(h)/", strict, TLS{Mode: "VERIFY_IDENTITY", CA: "/ca", Cert: "/cert", Key: "/key"}},
		{"mysql://u@h/", map[string]string{"ssl_ca": "/ca"}, TLS{Mode: "VERIFY_CA", CA: "/ca"}},
		{"u@tcp(h)/", map[string]string{"ssl_verify_server_cert": ""}, TLS{Mode: "VERIFY_IDENTITY"}},
		{"mysql://u@h/?ssl-mode=REQUIRED", strict, TLS{Mode: "REQUIRED", CA: "/ca", Cert: "/cert", Key: "/key"}},
		{"u@tcp(h)/?tls=preferred", map[string]string{"ssl_mode": "REQUIRED"}, TLS{Mode: "PREFERRED"}},
		{"u@tcp(h)/?ssl-ca=/own", strict, TLS{Mode: "VERIFY_IDENTITY", CA: "/own", Cert: "/cert", Key: "/key"}},
		{"u@tcp(h)/?ssl-ca=/own", nil, TLS{Mode: "VERIFY_CA", CA: "/own"}},
		{"u@tcp(h)/", nil, TLS{}},
	} {
		if a, _, err := ParseDSN(c.dsn, c.options); err != nil || a.TLS != c.want {
			t.Errorf("%s with %v: got %+v, want %+v, %v", c.dsn, c.options, a.TLS, c.want, err)
		}
	}
	if _, _, err := ParseDSN("u@tcp(h)/", map[string]string{"ssl_mode": "always"}); err == nil {
		t.Error("an ssl-mode of the options that does not exist was passed over")
	}
}

func TestParseDSNRefusesWithoutThePassword(t *testing.T) {
	for _, dsn := range []string{
		"u:s3cret", "u:s3cret@", "u:s3cret@tcp(h", "u:s3cret@udp(h)/x", "u:s3cret@tcp(h:99999)/x", "u:s3cret@tcp(h)/x?tls=maybe",
		"u:s3cret@tcp(h)/x?colour=red", "u:s3cret@tcp(h)/x?ssl-cert=c", "u:s3cret@tcp(h)/x?ssl-mode=never", "u:s3cret@tcp(a:b:c:d)/x",
		"mysql://u:s3cret%@h/x", "mysql://u:s3cret@h:port/x", "mysql://u:s3cret/@h/x", "mysql://u:s3cret", "u:s3cret/x@y", "s3cret/x",
		"u:s3cret@tcp(h)/x?ssl-ca=%zz",
	} {
		a, _, err := ParseDSN(dsn, nil)
		if err == nil {
			if shown := fmt.Sprintf("%v %+v %#v", a, a, a); !strings.Contains(dsn, "@") && !strings.Contains(shown, "s3cret") {
				continue
			}
			t.Errorf("%s: accepted as %v", dsn, a)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestAddrHidesPassword(t *testing.T) {
	a := Addr{Network: "tcp", Address: "h:1", User: "u", Password: "s3cret"}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), fmt.Sprintf("%v", a), fmt.Sprintf("%+v", a), fmt.Sprintf("%#v", a), fmt.Sprintf("%s %q %x", a.Password, a.Password, a.Password)} {
		if strings.Contains(shown, "s3cret") || strings.Contains(shown, "733363726574") {
			t.Errorf("the password shows in %s", shown)
		}
	}
}

func TestAddrFromOptions(t *testing.T) {
	t.Setenv("MYSQL_PWD", "")
	for name, c := range map[string]struct {
		options          map[string]string
		addr, user, mode string
	}{
		"empty is the socket":     {map[string]string{"user": "u"}, "socket " + DefaultSocket, "u", ""},
		"localhost is the socket": {map[string]string{"user": "u", "host": "localhost", "port": "3307", "socket": "/run/s"}, "socket /run/s", "u", ""},
		"unless tcp is asked":     {map[string]string{"user": "u", "host": "localhost", "protocol": "TCP"}, "localhost:3306 (tcp)", "u", ""},
		"host":                    {map[string]string{"user": "u", "host": "db1", "port": "3307", "ssl_mode": "required"}, "db1:3307 (tcp)", "u", "REQUIRED"},
		"IPv6":                    {map[string]string{"user": "u", "host": "::1"}, "[::1]:3306 (tcp)", "u", ""},
		"a CA is there to check":  {map[string]string{"user": "u", "host": "db1", "ssl-ca": "/ca.pem"}, "db1:3306 (tcp)", "u", "VERIFY_CA"},
		"MariaDB's words":         {map[string]string{"user": "u", "host": "db1", "ssl-verify-server-cert": ""}, "db1:3306 (tcp)", "u", "VERIFY_IDENTITY"},
		"MariaDB without":         {map[string]string{"user": "u", "host": "db1", "ssl": "0"}, "db1:3306 (tcp)", "u", "DISABLED"},
	} {
		a, err := AddrFromOptions(c.options)
		if err != nil || a.String() != c.addr || a.User != c.user || a.TLS.Mode != c.mode {
			t.Errorf("%s: got %v %q %q, %v", name, a, a.User, a.TLS.Mode, err)
		}
	}
	if _, err := AddrFromOptions(map[string]string{"protocol": "pipe"}); err == nil {
		t.Error("protocol=pipe was accepted")
	}
}

func FuzzParseDSN(f *testing.F) {
	for _, seed := range []string{"u:p@tcp(h:1)/d?tls=true", "mysql://u:p@h:1/d?ssl-mode=REQUIRED", "u@unix(/s)/d", "@/", "mysql://", "u:p@tcp([::1])/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		a, _, err := ParseDSN(dsn, nil)
		if err == nil && (a.Address == "" && a.Network == "tcp" || a.Network != "tcp" && a.Network != "unix") {
			t.Errorf("%q gives no address: %+v", dsn, a)
		}
	})
}
