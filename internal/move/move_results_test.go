//go:build results

package move

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestResultsMove measures how long a server with 20 tables of a million rows, about 4.5 GB, is away while it is
// moved, and on the way back: under load, with a buffer pool of 128 MiB.
func TestResultsMove(t *testing.T) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(f), func(t *testing.T) {
			s := testserver.Start(t, f, "--innodb-buffer-pool-size=128M", "--skip-log-bin")
			furnish(s)
			s.Exec("CREATE DATABASE sbtest")
			fill(t, s, 20)
			q := request(t, s)
			q.ProofWithin = 10 * time.Second
			l := clients(t, q.Addr, 1)
			var r *Record
			loaded(t, s, func() { r, _ = apply(t, q) })
			l.check()
			loaded(t, s, func() {
				out, err := Return(t.Context(), q, r)
				if t.Logf("way back: %+v", out); err != nil {
					t.Error(err)
				}
			})
			l.check()
			t.Logf("longest time in which a client was told nothing: %s", time.Duration(l.gap.Load()))
		})
	}
}

// fill makes sysbench's tables, all but the first as copies of that: a server takes files in faster than rows.
func fill(t *testing.T, s *testserver.Server, tables int) {
	t.Helper()
	sysbench(t, t.Context(), s, "prepare", "--tables=1")
	one, err := s.Open().Single(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	run := func(format string, args ...any) {
		t.Helper()
		if err := one.Exec(t.Context(), fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 2; i <= tables; i++ {
		run("CREATE TABLE sbtest.sbtest%d LIKE sbtest.sbtest1", i)
		run("ALTER TABLE sbtest.sbtest%d DISCARD TABLESPACE", i)
	}
	run("FLUSH TABLES sbtest.sbtest1 FOR EXPORT")
	for i := 2; i <= tables; i++ {
		for _, end := range []string{".ibd", ".cfg"} {
			from, to := filepath.Join(s.Data(), "sbtest", "sbtest1"+end), filepath.Join(s.Data(), "sbtest", fmt.Sprintf("sbtest%d%s", i, end))
			if out, err := exec.Command("cp", "--preserve", from, to).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	run("UNLOCK TABLES")
	for i := 2; i <= tables; i++ {
		run("ALTER TABLE sbtest.sbtest%d IMPORT TABLESPACE", i)
	}
}

// loaded does something while sysbench loads the server; that ends with the server's stop.
func loaded(t *testing.T, s *testserver.Server, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sysbench(t, ctx, s, "run", "--tables=20", "--threads=4", "--time=3600")
	}()
	time.Sleep(30 * time.Second)
	do()
	cancel()
	<-done
}

// sysbench runs a command of its; what ends a run is not looked at.
func sysbench(t *testing.T, ctx context.Context, s *testserver.Server, command string, options ...string) {
	args := append([]string{"oltp_read_write", "--table-size=1000000", "--mysql-socket=" + s.Root().Address, "--mysql-user=root", "--db-driver=mysql"}, options...)
	cmd := exec.CommandContext(ctx, "sysbench", append(args, command)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if t.Logf("sysbench %s: %v: %s", command, err, out[max(0, len(out)-300):]); command == "prepare" && err != nil {
		t.Fatal(err)
	}
}
