package workload_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"david/internal/mysqld"
	"david/internal/testserver"
	"david/internal/workload"
)

// bait is a run that somebody in between wants the password of.
func bait(t *testing.T, addr mysqld.Addr) error {
	w := small("oltp_point_select")
	w.Warmup, w.Seconds, w.Threads = 0, 1, 1
	_, err := workload.Run(context.Background(), target(t, addr), w, nil)
	return err
}

// tricks ask for the password in every way that sysbench's client library answers.
func tricks() map[string]testserver.Lie {
	return map[string]testserver.Lie{
		"clear":        {Honest: 1, Method: "mysql_clear_password"},
		"dialog":       {Honest: 1, Method: "dialog"},
		"RSA, sha256":  {Honest: 1, Method: "sha256_password"},
		"RSA, caching": {Honest: 1, Method: "caching_sha2_password", Forgot: true},
	}
}

// TestSysbenchTellsNoPassword has somebody who lets david through ask sysbench for the password, where the connection is not
// encrypted. By itself sysbench tells it each time.
func TestSysbenchTellsNoPassword(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		testLogin(t, s.TCP("david")) // over TLS: from now on the server knows the account
		for name, lie := range tricks() {
			liar, addr := s.Between(lie)
			addr.TLS.Mode = "DISABLED"
			err := bait(t, addr)
			if liar.Lied() == 0 || liar.Told() {
				t.Errorf("%s: the password was told, or nobody asked: %v", name, err)
			}
			if err == nil || strings.Contains(err.Error(), testserver.Password) || !errors.Is(err, mysqld.ErrDowngrade) {
				t.Errorf("%s: got %v", name, err)
			}
			lie.Honest = 0
			liar, addr = s.Between(lie)
			sysbenchAlone(t, addr)
			if !liar.Told() {
				t.Errorf("%s: sysbench alone does not tell the password: this shows nothing", name)
			}
		}
		addr := s.TCP("david")
		addr.TLS.Mode = "DISABLED"
		if err := bait(t, addr); err == nil || !strings.Contains(err.Error(), "1049") {
			t.Errorf("sysbench was not let in where nobody lies: %v", err)
		}
	})
}

func testLogin(t *testing.T, addr mysqld.Addr) {
	t.Helper()
	c, err := mysqld.Open(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// sysbenchAlone runs sysbench as anybody would. It fails, which is not what it is run for.
func sysbenchAlone(t *testing.T, addr mysqld.Addr) {
	host, port, _ := net.SplitHostPort(addr.Address)
	cmd := exec.CommandContext(t.Context(), "sysbench", "oltp_point_select", "--db-driver=mysql", "--mysql-host="+host, "--mysql-port="+port,
		"--mysql-user="+addr.User, "--time=1", "run")
	cmd.Env = append(cmd.Environ(), "MYSQL_PWD="+string(addr.Password))
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("sysbench measured a server that is none: %s", out)
	}
}

// TestSysbenchKeepsToTheCertificate has somebody who lets david through take TLS away, or show a certificate of their own.
func TestSysbenchKeepsToTheCertificate(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		lies := []testserver.Lie{{Honest: 1, Strip: true}, {Honest: 1, TLS: true, Method: "caching_sha2_password", Forgot: true}, {Honest: 1, TLS: true, Method: "mysql_clear_password"}}
		for name, lie := range tricks() {
			if name != "dialog" {
				lies = append(lies, lie)
			}
		}
		for _, lie := range lies {
			for _, tls := range []mysqld.TLS{{}, {Mode: "VERIFY_IDENTITY", CA: s.CA}} {
				what := fmt.Sprintf("%+v, ssl-mode=%s", lie, tls.Mode)
				liar, addr := s.Between(lie)
				addr.TLS = tls
				err := bait(t, addr)
				if liar.Lied() == 0 || liar.Told() {
					t.Errorf("%s: the password was told, or nobody asked: %v", what, err)
				}
				if !errors.Is(err, mysqld.ErrTLS) {
					t.Errorf("%s: got %v", what, err)
				}
			}
		}
	})
}

// TestOtherClientLibrary has a sysbench without MariaDB's client library, which cannot be told whom to trust: it gets no password
// over TCP. No other one is installed here; this program is linked to none.
func TestOtherClientLibrary(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addr := mysqld.Addr{Network: "tcp", Address: "192.0.2.1:1", User: "david", Password: testserver.Password}
	tgt := workload.Target{Addr: addr, Sysbench: workload.Sysbench{Path: own}, Dir: t.TempDir()}
	if _, err := workload.Run(t.Context(), tgt, small("oltp_point_select"), nil); !errors.Is(err, mysqld.ErrDowngrade) || !strings.Contains(err.Error(), "ssh -L") {
		t.Errorf("got %v", err)
	}
	for _, tls := range []mysqld.TLS{{Mode: "REQUIRED"}, {Mode: "VERIFY_CA"}, {Mode: "VERIFY_IDENTITY"}, {Mode: "PREFERRED"}, {Seen: true}} {
		tgt.Addr.Address, tgt.Addr.TLS = "127.0.0.1:1", tls // which may be a tunnel's end
		_, err := workload.Run(t.Context(), tgt, small("oltp_point_select"), nil)
		if errors.Is(err, mysqld.ErrDowngrade) != tls.Asked() || err == nil {
			t.Errorf("to this machine, with %+v: got %v", tls, err)
		}
	}
}
