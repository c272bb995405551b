package mysqld_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// tricks ask for the password in every way that clients answer.
func tricks() map[string]testserver.Lie {
	return map[string]testserver.Lie{
		"clear":            {Method: "mysql_clear_password"},
		"dialog":           {Method: "dialog"},
		"old":              {Method: "mysql_old_password"},
		"RSA, sha256":      {Method: "sha256_password"},
		"RSA, caching":     {Method: "caching_sha2_password", Forgot: true},
		"a method of none": {Method: "tell_me"},
	}
}

// TestNoPasswordInClear has somebody in between ask for the password, once by every method.
func TestNoPasswordInClear(t *testing.T) {
	s := testserver.Start(t, mycnf.MySQL)
	for name, lie := range tricks() {
		t.Run(name, func(t *testing.T) {
			liar, addr := s.Between(lie)
			_, err := mysqld.Open(context.Background(), addr)
			if liar.Lied() == 0 || liar.Told() {
				t.Errorf("the password was told, or nobody asked: %v", err)
			}
			if name == "a method of none" {
				if !errors.Is(err, mysqld.ErrAccess) {
					t.Errorf("got %v", err)
				}
			} else if !errors.Is(err, mysqld.ErrDowngrade) || !strings.Contains(err.Error(), "downgrade refused") {
				t.Errorf("the error does not name the downgrade: %v", err)
			}
		})
	}
	liar, addr := s.Between(testserver.Lie{Method: "caching_sha2_password", Forgot: true})
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "tcp", addr.Address, addr.User, string(addr.Password)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := connector.Connect(context.Background()); err == nil {
		conn.Close()
	}
	if !liar.Told() {
		t.Error("the driver by itself does not tell the password: this test shows nothing")
	}
}

// TestPasswordThroughTLS logs in by every method that servers have: where the server has to have the password itself, over TLS
// and by the socket, and from then on, since it knows the account, without.
func TestPasswordThroughTLS(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		methods := []string{"caching_sha2_password", "sha256_password"}
		if s.Flavour == mycnf.MariaDB {
			methods = []string{"mysql_native_password"}
		}
		for _, method := range methods {
			literal := "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(testserver.Password) + "'"
			create := "CREATE USER m@'%' IDENTIFIED WITH " + method + " BY " + literal
			if s.Flavour == mycnf.MariaDB {
				create = "CREATE USER m@'%' IDENTIFIED VIA " + method + " USING PASSWORD(" + literal + ")"
			}
			s.Exec(create)
			plain := s.TCP("m")
			plain.TLS.Mode = "DISABLED"
			tells := s.Flavour == mycnf.MySQL
			if tells {
				testLogin(t, method+", plain, unknown", plain, mysqld.ErrDowngrade)
			}
			testLogin(t, method+", TLS", s.TCP("m"), nil)
			wrong := s.TCP("m")
			wrong.Password = "another"
			testLogin(t, method+", wrong", wrong, mysqld.ErrAccess)
			if method == "sha256_password" {
				testLogin(t, method+", plain", plain, mysqld.ErrDowngrade)
			} else {
				testLogin(t, method+", plain", plain, nil)
				testLogin(t, method+", socket", s.Socket("m"), nil)
			}
			s.Exec("DROP USER m@'%'")
		}
	})
}

// TestEd25519 holds the signature against the standard library's, whose keys are of 32 bytes as this password is; the method's
// own are of any length.
func TestEd25519(t *testing.T) {
	password, nonce := "a password that has 32 bytes, yes", bytes.Repeat([]byte("n"), 32)
	password = password[:32]
	answers := make(chan []byte, 1)
	addr := mysqld.Addr{Network: "tcp", User: "m", Password: mysqld.Secret(password)}
	addr.Address = testserver.Listen(t, func(conn net.Conn) {
		testserver.WritePacket(conn, 0, testserver.Greeting("mysql_native_password", nonce, 0))
		testserver.ReadPacket(conn)
		testserver.WritePacket(conn, 2, append([]byte("\xfeclient_ed25519\x00"), nonce...))
		answer, _, _ := testserver.ReadPacket(conn)
		answers <- answer
	})
	if _, err := mysqld.Open(t.Context(), addr); !errors.Is(err, mysqld.ErrUnreachable) {
		t.Error(err)
	}
	key := ed25519.NewKeyFromSeed([]byte(password))
	if answer := <-answers; !bytes.Equal(answer, ed25519.Sign(key, nonce)) {
		t.Errorf("got %x", answer)
	}
}

func testLogin(t *testing.T, what string, addr mysqld.Addr, kind error) {
	t.Helper()
	c, err := mysqld.Open(context.Background(), addr)
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
	if err == nil {
		c.Close()
	}
}

// TestDowngrade takes TLS away: from the first connection, where it was asked for, and from a later one, where it was seen before.
func TestDowngrade(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		for _, tls := range []mysqld.TLS{{Mode: "REQUIRED"}, {Mode: "VERIFY_CA", CA: s.CA}, {Mode: "VERIFY_IDENTITY", CA: s.CA}} {
			liar, addr := s.Between(testserver.Lie{Strip: true})
			addr.TLS = tls
			_, err := mysqld.Open(context.Background(), addr)
			if !errors.Is(err, mysqld.ErrTLS) || !strings.Contains(err.Error(), "downgrade refused") || liar.Told() {
				t.Errorf("%s: got %v", tls.Mode, err)
			}
		}
		_, addr := s.Between(testserver.Lie{Strip: true, Honest: 1})
		c, err := mysqld.Open(context.Background(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held, err := c.Single(t.Context()) // the only connection, so that the next statement makes another
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if err := c.Exec(t.Context(), "DO 1"); !errors.Is(err, mysqld.ErrTLS) || !strings.Contains(err.Error(), "offered TLS before") {
			t.Errorf("got %v", err)
		}
		if tls := c.Addr().TLS; !tls.Seen || tls.Asked() {
			t.Errorf("the address says %+v once TLS was seen, which nobody asked for", tls)
		}
		liar, addr := s.Between(testserver.Lie{Strip: true})
		addr.TLS = c.Addr().TLS // as the record of a live tune keeps it
		if _, err := mysqld.Open(context.Background(), addr); !errors.Is(err, mysqld.ErrTLS) || liar.Told() {
			t.Errorf("by an address that was seen to have TLS: got %v", err)
		}
		testCertificates(t, s)
	})
}

// testCertificates has somebody with a certificate of their own answer.
func testCertificates(t *testing.T, s *testserver.Server) {
	for _, mode := range []string{"VERIFY_CA", "VERIFY_IDENTITY"} {
		liar, addr := s.Between(testserver.Lie{TLS: true, Method: "caching_sha2_password", Forgot: true})
		addr.TLS = mysqld.TLS{Mode: mode, CA: s.CA}
		if _, err := mysqld.Open(context.Background(), addr); !errors.Is(err, mysqld.ErrTLS) || liar.Told() || liar.Lied() == 0 {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}
