package mysqld_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

func TestServer(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		t.Run("facts", func(t *testing.T) { testFacts(t, s) })
		t.Run("access", func(t *testing.T) { testAccess(t, s) })
		t.Run("TLS", func(t *testing.T) { testTLS(t, s) })
		t.Run("privileges", func(t *testing.T) { testPrivileges(t, s) })
		t.Run("read-only", func(t *testing.T) { testReadOnly(t, s) })
		t.Run("hung", func(t *testing.T) { testHung(t, s) })
		t.Run("restart", func(t *testing.T) { testRestart(t, s) })
	})
}

func testFacts(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	c := s.Open()
	version, comment, err := c.Version(ctx)
	if err != nil || version == "" || comment == "" || strings.Contains(version, "MariaDB") != (s.Flavour == mycnf.MariaDB) {
		t.Errorf("version %q, comment %q, %v", version, comment, err)
	}
	variables, err := c.Variables(ctx)
	if err != nil || variables["innodb_buffer_pool_size"] != "67108864" {
		t.Errorf("innodb_buffer_pool_size is %q, %v", variables["innodb_buffer_pool_size"], err)
	}
	before, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec("CREATE DATABASE facts", "CREATE TABLE facts.t (a INT)", "INSERT INTO facts.t VALUES (1),(2),(3)", "DROP DATABASE facts")
	after, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := mysqld.Delta(mysqld.Counters(before), mysqld.Counters(after)); d["innodb_rows_inserted"] < 3 && d["com_insert"] < 1 {
		t.Errorf("the insert is not in the counters: %v %v", d["innodb_rows_inserted"], d["com_insert"])
	}
}

func testAccess(t *testing.T, s *testserver.Server) {
	wrong := s.TCP("david")
	wrong.Password = "s3cret"
	closed := s.TCP("david")
	closed.Address = "127.0.0.1:1"
	missing := mysqld.Addr{Network: "unix", Address: "/nonexistent/socket", User: "david"}
	for _, c := range []struct {
		addr mysqld.Addr
		kind error
	}{{wrong, mysqld.ErrAccess}, {closed, mysqld.ErrUnreachable}, {missing, mysqld.ErrUnreachable}} {
		_, err := mysqld.Open(context.Background(), c.addr)
		if !errors.Is(err, c.kind) {
			t.Errorf("%v: %v is not %v", c.addr, err, c.kind)
		} else if strings.Contains(fmt.Sprintf("%v %+v", err, err), "s3cret") || !strings.Contains(err.Error(), "check") {
			t.Errorf("the error tells the password or no next step: %v", err)
		}
	}
}

func testTLS(t *testing.T, s *testserver.Server) {
	for _, c := range []struct {
		tls  mysqld.TLS
		kind error
		on   bool
	}{
		{mysqld.TLS{}, nil, true},
		{mysqld.TLS{Mode: "DISABLED"}, nil, false},
		{mysqld.TLS{Mode: "REQUIRED"}, nil, true},
		{mysqld.TLS{Mode: "VERIFY_CA", CA: s.CA}, nil, true},
		{mysqld.TLS{Mode: "VERIFY_IDENTITY", CA: s.CA}, nil, true},
		{mysqld.TLS{Mode: "VERIFY_IDENTITY", CA: s.CA, Name: "localhost"}, nil, true},
		{mysqld.TLS{Mode: "VERIFY_IDENTITY", CA: s.CA, Name: "another.invalid"}, mysqld.ErrTLS, false},
		{mysqld.TLS{Mode: "VERIFY_CA"}, mysqld.ErrTLS, false},
		{mysqld.TLS{Mode: "VERIFY_IDENTITY"}, mysqld.ErrTLS, false},
	} {
		a := s.TCP("david")
		a.TLS = c.tls
		seen, err := mysqld.Certificate(context.Background(), a)
		if !errors.Is(err, c.kind) || (seen != nil) != c.on {
			t.Errorf("%+v: certificate %v, %v", c.tls, seen != nil, err)
		}
	}
}

func testPrivileges(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	for user, kind := range map[string]error{"david": nil, "limited": mysqld.ErrPrivilege} {
		c, err := mysqld.Open(ctx, s.TCP(user))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.CheckPrivileges(ctx, "sbtest"); !errors.Is(err, kind) {
			t.Errorf("%s: %v", user, err)
		}
		if err := c.Exec(ctx, "CREATE DATABASE other"); !errors.Is(err, kind) {
			t.Errorf("%s: %v", user, err)
		}
	}
	s.Exec("DROP DATABASE other")
}

func testReadOnly(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	s.Exec("CREATE USER writer@'%'", "GRANT CREATE ON *.* TO writer@'%'", "SET GLOBAL read_only = 1")
	defer s.Exec("SET GLOBAL read_only = 0")
	if why, err := s.Open().ReadOnly(ctx); err != nil || !strings.HasPrefix(why, "read_only=") {
		t.Errorf("got %q, %v", why, err)
	}
	a := s.Socket("writer")
	a.Password = ""
	c, err := mysqld.Open(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(ctx, "CREATE DATABASE other"); !errors.Is(err, mysqld.ErrReadOnly) {
		t.Error(err)
	}
}

// A hung server still accepts connections, since the kernel does so for it.
func testHung(t *testing.T, s *testserver.Server) {
	s.Signal(syscall.SIGSTOP)
	defer s.Signal(syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := mysqld.Open(ctx, s.TCP("david")); !errors.Is(err, mysqld.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func testRestart(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	c := s.Open()
	before, err := c.Identity(ctx)
	if err != nil || before.UUID == "" {
		t.Fatalf("%+v, %v", before, err)
	}
	single, err := c.Single(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if pairs, err := single.Pairs(ctx, "SELECT 'Name', 'Value'"); err != nil || pairs["name"] != "Value" {
		t.Errorf("%q, %v", pairs, err)
	}
	same, err := c.Identity(ctx)
	if err != nil || mysqld.Restarted(before, same) {
		t.Errorf("%+v, then %+v, %v: taken for a restart", before, same, err)
	}
	s.Kill()
	if _, err := c.Status(ctx); !errors.Is(err, mysqld.ErrUnreachable) {
		t.Errorf("a dead server gives %v", err)
	}
	s.Restart()
	if pairs, err := single.Pairs(ctx, "SELECT 1, 2"); !errors.Is(err, mysqld.ErrUnreachable) {
		t.Errorf("a single connection came back: %q, %v", pairs, err)
	}
	if err := single.Close(); err != nil {
		t.Error(err)
	}
	after, err := c.Identity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	before.At = before.At.Add(-10e9) // as if it had been asked ten seconds before
	before.Uptime += 10e9
	if !mysqld.Restarted(before, after) {
		t.Errorf("%+v, then %+v: not taken for a restart", before, after)
	}
}
