package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDatabase: what `david manifest` renders runs each server, as it was rendered; a pod that is deleted by
// force comes back with its data, and with all connections busy it stays within its memory.
func TestDatabase(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name, server, client string
	}{{"mariadb", "mariadb:10.11", "mariadb"}, {"mysql", "mysql:9.7", "mysql"}} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c := need(t)
			image := c.image(t, s.name)
			ns := c.manifest(t, "db", "--server", s.server, "--image", image)
			c.wait(t, ns, "jsonpath={.status.readyReplicas}=1", "statefulset/db", 5*time.Minute)
			pod := c.kubectl(t, "get", "pod", "db-0", "--namespace", ns, "-o", "jsonpath={.metadata.uid} {.status.qosClass}")
			uid, qos, _ := strings.Cut(pod, " ")
			if qos != "Guaranteed" {
				t.Errorf("the pod's QoS class is %q", qos)
			}
			sql := func(query string) string { return c.query(t, ns, "db-0", s.client, "127.0.0.1", query) }
			if got := sql("SELECT @@max_connections, @@innodb_buffer_pool_size, @@sync_binlog"); got != "77 134217728 1" {
				t.Errorf("the rendered my.cnf is not the server's: %q", got)
			}
			sql("CREATE DATABASE IF NOT EXISTS kept; CREATE TABLE IF NOT EXISTS kept.t (id INT PRIMARY KEY) ENGINE=InnoDB; REPLACE INTO kept.t VALUES (1), (2), (42)")
			c.kubectl(t, "delete", "pod", "db-0", "--namespace", ns, "--force", "--grace-period=0")
			eventually(t, 5*time.Minute, func() error {
				out, err := c.try("", "get", "pod", "db-0", "--namespace", ns, "-o", `jsonpath={.metadata.uid} {.status.containerStatuses[0].ready}`)
				if err != nil {
					return err
				}
				if now, ready, _ := strings.Cut(out, " "); now == uid || ready != "true" {
					return fmt.Errorf("the pod is %s, the one deleted was %s", out, uid)
				}
				return nil
			})
			if got := sql("SELECT SUM(id), COUNT(*) FROM kept.t"); got != "45 3" {
				t.Errorf("after the pod came back there is %q, wanted the 3 rows written before, with a sum of 45", got)
			}
			// The names that clients use: the pod's own, and that of the Service with an address.
			for _, host := range []string{"db-0.db-headless." + ns + ".svc.cluster.local", "db"} {
				if got := c.query(t, ns, "db-0", s.client, host, "SELECT @@hostname"); got != "db-0" {
					t.Errorf("by the name %s one gets to %q", host, got)
				}
			}
			c.fullLoad(t, ns, 77)
		})
	}
}

// manifest renders a server with a small my.cnf, on a folder of the node, in a namespace named after the
// test; and applies it.
func (c *cluster) manifest(t *testing.T, name string, flags ...string) (ns string) {
	t.Helper()
	volume := filepath.Join(c.dir, "volumes", namespaceName(t))
	if err := os.MkdirAll(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	return c.deploy(t, name, "max_connections=77\n", append([]string{"--storage", "local", "--node", c.facts.Node, "--path", volume}, flags...)...)
}

// deploy is manifest with other lines of my.cnf, and another volume.
func (c *cluster) deploy(t *testing.T, name, lines string, flags ...string) (ns string) {
	t.Helper()
	ns = namespaceName(t)
	work := t.TempDir()
	cnf, out := filepath.Join(work, "my.cnf"), filepath.Join(work, "rendered")
	if err := os.WriteFile(cnf, []byte("[mysqld]\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"manifest", "--cnf", cnf, "--name", name, "--namespace", ns, "--cpus", "1", "--memory", "1Gi", "--size", "2Gi", "--out", out}, flags...)
	cmd := exec.Command(david(t), args...)
	cmd.Env = append(os.Environ(), "DAVID_HOME="+filepath.Join(work, "david"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("david %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	// Cleanups run the last first: the namespace goes before the objects that are in none.
	t.Cleanup(func() {
		if _, err := c.try("", "delete", "-k", out, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	c.keep(t, ns)
	c.apply(t, ns, out)
	return ns
}

// query runs SQL with the client in a server's pod, again until there is an answer; columns are joined by a
// space.
func (c *cluster) query(t *testing.T, ns, pod, client, host, sql string) string {
	t.Helper()
	var out string
	eventually(t, 3*time.Minute, func() (err error) {
		out, err = c.try("", "exec", pod, "--namespace", ns, "--", "sh", "-c", `MYSQL_PWD=$MYSQL_ROOT_PASSWORD exec "$@"`,
			"sh", client, "-h", host, "-u", "root", "-N", "-B", "-e", sql)
		return err
	})
	return strings.Join(strings.Fields(out), " ")
}
