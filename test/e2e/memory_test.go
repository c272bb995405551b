package e2e

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// fullLoad keeps as many connections as the rendered my.cnf allows busy with sorts and temporary tables,
// through the Service, from the host; and checks that the server stays within the pod's limit: no OOM kill,
// no restart.
func (c *cluster) fullLoad(t *testing.T, ns string, connections int) {
	t.Helper()
	encoded := c.kubectl(t, "get", "secret", "db-credentials", "--namespace", ns, "-o", `jsonpath={.data.root-password}`)
	password, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	config := mysql.NewConfig()
	config.Net, config.User, config.Passwd, config.DBName = "tcp", "root", string(password), "kept"
	config.Addr = net.JoinHostPort(c.kubectl(t, "get", "service", "db", "--namespace", ns, "-o", "jsonpath={.spec.clusterIP}"), "3306")
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(connections)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // a minute or two, where the tests beside it leave some CPU
	defer cancel()
	for _, statement := range []string{
		"CREATE TABLE kept.load1 (id INT AUTO_INCREMENT PRIMARY KEY, k INT, pad CHAR(200))",
		"INSERT INTO kept.load1 (k, pad) VALUES (1, REPEAT('a', 200)), (2, REPEAT('b', 200)), (3, REPEAT('c', 200)), (4, REPEAT('d', 200))",
		// 4, 20, 420, 4,620 rows: a MiB, several times what a sort has
		"INSERT INTO kept.load1 (k, pad) SELECT a.k * b.k, SHA2(RAND(), 256) FROM kept.load1 a, kept.load1 b",
		"INSERT INTO kept.load1 (k, pad) SELECT a.k * b.k, SHA2(RAND(), 256) FROM kept.load1 a, kept.load1 b",
		"INSERT INTO kept.load1 (k, pad) SELECT a.k + b.id, SHA2(RAND(), 256) FROM kept.load1 a, kept.load1 b WHERE b.id <= 10",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	// All are open before the first is used.
	open := make([]*sql.Conn, connections)
	for i := range open {
		if open[i], err = db.Conn(ctx); err != nil {
			t.Fatalf("connection %d of %d: %v", i+1, connections, err)
		}
		defer open[i].Close()
	}
	failed := make(chan error)
	for _, conn := range open {
		go func() { failed <- sorts(ctx, conn) }()
	}
	for range open {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := c.kubectl(t, "get", "pod", "db-0", "--namespace", ns, "-o", `jsonpath={.status.containerStatuses[0].restartCount}{.status.containerStatuses[0].lastState}`); got != "0{}" {
		t.Errorf("with %d connections busy the server was restarted: %s", connections, got)
	}
	peak := c.peak(t, ns, "db-0")
	t.Logf("with %d connections busy the pod took at most %d MiB of 1024 MiB, page cache included", connections, peak>>20)
}

// sorts runs statements that want memory of their own: sorts, a join without an index, temporary tables.
func sorts(ctx context.Context, conn *sql.Conn) error {
	for _, query := range []string{
		"SELECT COUNT(*) FROM (SELECT DISTINCT pad FROM kept.load1) d",
		"SELECT COUNT(*) FROM (SELECT pad, k FROM kept.load1 ORDER BY pad LIMIT 4000) s",
		"SELECT COUNT(*) FROM (SELECT k, MAX(pad) FROM kept.load1 GROUP BY k) g",
		"SELECT COUNT(*) FROM kept.load1 a JOIN kept.load1 b ON a.pad = b.pad WHERE b.id <= 50",
	} {
		var n int
		if err := conn.QueryRowContext(ctx, query).Scan(&n); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// peak is the most memory a pod's control group has had, in bytes.
func (c *cluster) peak(t *testing.T, ns, pod string) int64 {
	t.Helper()
	uid := c.kubectl(t, "get", "pod", pod, "--namespace", ns, "-o", "jsonpath={.metadata.uid}")
	for _, path := range []string{"memory/david-e2e/kn1/kubepods/pod" + uid + "/memory.max_usage_in_bytes", "david-e2e/kn1/kubepods/pod" + uid + "/memory.peak"} {
		text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", path))
		if err != nil {
			continue
		}
		peak, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return peak
	}
	return 0 // kernels before 5.19 do not count it with cgroup v2
}
