package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/testserver"
	"david/internal/workload"
)

// dsn is the server's address for one of its users; the password goes through the environment.
func dsn(s *testserver.Server, user string) string {
	return fmt.Sprintf("%s@tcp(%s)/", user, s.TCP(user).Address)
}

// loggedIn has the password of the users of a test's server.
func loggedIn(home string) at { return withPassword(home, testserver.Password) }

func withPassword(home, password string) at {
	return at{home: home, env: []string{"MYSQL_PWD=" + password}}
}

// TestRemote is a bench of a server that is not david's: as it is, over TCP with TLS, and nothing is left on
// it.
func TestRemote(t *testing.T) {
	t.Parallel()
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		dir := testHome(t)
		password := testserver.Password
		bench := func(want int, args ...string) (out, errOut string) {
			t.Helper()
			load := []string{"bench", "--tables", "2", "--table-size", "2000", "--time", "1s", "--warmup", "0s"}
			out, errOut, code := withPassword(dir, password).david(t, append(load, args...)...)
			if code != want {
				t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errOut)
			}
			if strings.Contains(out+errOut, testserver.Password) {
				t.Error("the password is shown")
			}
			return out, errOut
		}
		address := dsn(s, "david")
		bench(exitDone, "--dsn", address, "--json")
		if out, _, _ := david(t, dir, "list"); !strings.Contains(out, "transactions/s") || strings.Contains(out, "interrupted") {
			t.Errorf("david list says\n%s", out)
		}
		if n := schemas(t, s); n != 0 {
			t.Errorf("%d schemas are left on the server", n)
		}
		bench(exitDone, "--dsn", "mysql://david@"+s.TCP("david").Address+"/?ssl-mode=VERIFY_CA&ssl-ca="+s.CA, "--keep")
		if n := schemas(t, s); n != 1 {
			t.Errorf("%d schemas with --keep, want 1", n)
		}
		bench(exitDone, "--dsn", address)                        // takes the kept one, and leaves it
		s.Exec("DROP DATABASE sbtest", "CREATE DATABASE sbtest") // empty, and somebody's
		bench(exitUsage, "--dsn", address)
		if n := schemas(t, s); n != 1 {
			t.Error("an empty schema of somebody else was dropped")
		}
		s.Exec("CREATE TABLE sbtest.precious (id INT PRIMARY KEY)")
		if _, errOut := bench(exitUsage, "--dsn", address); !strings.Contains(errOut, "--force") {
			t.Errorf("no word about --force:\n%s", errOut)
		}
		s.Exec("INSERT INTO sbtest.precious VALUES (1)") // it is still there
		bench(exitDone, "--dsn", address, "--force")

		file := filepath.Join(t.TempDir(), "my.cnf")
		if err := os.WriteFile(file, []byte(clientGroup(s)), 0o600); err != nil {
			t.Fatal(err)
		}
		password = ""
		bench(exitDone, "--defaults-file", file)
		password = "wrong"
		bench(exitTarget, "--dsn", address)
		password = testserver.Password
		bench(exitTarget, "--dsn", dsn(s, "limited"))
		s.Exec("SET GLOBAL read_only=ON")
		s.Exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM david@'%'", "GRANT CREATE, DROP, SELECT, INSERT, UPDATE, DELETE, INDEX ON *.* TO david@'%'")
		if _, errOut := bench(exitTarget, "--dsn", address); !strings.Contains(errOut, "read") {
			t.Errorf("no word about the server being read-only:\n%s", errOut)
		}
	})
}

// TestSilentServer is one that lets david in and says nothing more: what it may take is a flag.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	address := "u@tcp(" + testserver.Listen(t, func(conn net.Conn) {
		testserver.WritePacket(conn, 0, testserver.Greeting("mysql_native_password", make([]byte, 20), 0))
		testserver.ReadPacket(conn)
		testserver.WritePacket(conn, 2, []byte{0, 0, 0, 2, 0, 0, 0})
		for {
			command, _, err := testserver.ReadPacket(conn)
			if err != nil {
				return
			}
			if command[0] == 14 { // COM_PING
				testserver.WritePacket(conn, 1, []byte{0, 0, 0, 2, 0, 0, 0})
			}
		}
	}) + ")/"
	for deadline, want := range map[string]int{"100ms": exitTarget, "0s": exitUsage, "-1s": exitUsage} {
		_, errOut, code := david(t, testHome(t), "audit", "--dsn", address, "--statement-deadline", deadline)
		if code != want || !strings.Contains(errOut, "--statement-deadline") {
			t.Errorf("%s: exit code %d, want %d: %s", deadline, code, want, errOut)
		}
	}
}

// TestSchemaLeft: a run drops the schema that one before it left because it was cut short, and leaves one that was to be kept.
func TestSchemaLeft(t *testing.T) {
	t.Parallel()
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		sysbench, err := workload.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // sysbench does not run as root
			t.Fatal(err)
		}
		target := workload.Target{Addr: s.TCP("david"), Sysbench: sysbench, Dir: dir}
		w := result.Workload{Name: "oltp_read_write", Tables: 1, TableSize: 100, Threads: 1, Seconds: 1, RandType: "uniform", Database: database}
		for i, c := range []struct {
			keep, drop bool
		}{{false, true}, {false, true}, {true, false}, {false, false}} { // none of them ends, as where david is killed
			drop, err := lab.Schema{Target: target, Load: w, Keep: c.keep}.Prepare(t.Context(), s.Open(), func(text string) { t.Log(text) })
			if err != nil || drop != c.drop {
				t.Errorf("run %d: drop %v, want %v (%v)", i, drop, c.drop, err)
			}
		}
	})
}

// TestTLSOfOptionFile has somebody answer in a server's place, with a certificate of their own, where a DSN says nothing
// of TLS and the option file with the password does, in the words and groups of any client.
func TestTLSOfOptionFile(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MySQL)
	for _, lines := range []string{
		"[client]\nssl-mode=VERIFY_IDENTITY", "[client]\nloose-ssl_mode=VERIFY_CA", "[client-mariadb]\nssl-verify-server-cert",
		"[client-server]\nloose_ssl-verify-server-cert=1", "[mariadb-client]\nssl-ca=" + s.CA,
	} {
		liar, addr := s.Between(testserver.Lie{TLS: true, Method: "caching_sha2_password", Forgot: true})
		home := t.TempDir()
		text := clientGroup(s) + lines + "\n"
		if err := os.WriteFile(filepath.Join(home, ".my.cnf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := at{home: testHome(t), env: []string{"HOME=" + home, "MYSQL_PWD="}}
		out, errOut, code := run.david(t, "audit", "--dsn", "david@tcp("+addr.Address+")/")
		if code == exitDone || !strings.Contains(errOut, "TLS") || liar.Lied() == 0 || liar.Told() {
			t.Errorf("%q: exit code %d, asked %d times, told %v\n%s%s", lines, code, liar.Lied(), liar.Told(), out, errOut)
		}
	}
}

// clientGroup writes what a user's ~/.my.cnf would say, quoted as MySQL's clients read it.
func clientGroup(s *testserver.Server) string {
	host, port, _ := strings.Cut(s.TCP("david").Address, ":")
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(testserver.Password)
	return fmt.Sprintf("[client]\nuser=david\npassword=\"%s\"\nhost=%s\nport=%s\n", quoted, host, port)
}

func schemas(t *testing.T, s *testserver.Server) (n int) {
	t.Helper()
	if err := s.Open().Row(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'sbtest'", nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
