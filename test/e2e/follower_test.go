package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFollower: a follower of a server in a pod, from a snapshot of its volume that was taken under load, and from a clone
// without one: an identity of its own, caught up, no row differs, also after its pod was deleted; dropped nothing is left.
// It is not run beside others, whose pods would want the same CPUs: a minute of MariaDB, with DAVID_FOLLOWERS=all four of both.
func TestFollower(t *testing.T) {
	all := os.Getenv("DAVID_FOLLOWERS") == "all"
	for _, s := range []struct{ name, server, client, lines string }{
		{"mariadb", "mariadb:10.11", "mariadb", "max_connections=50\nlog_bin=changes\nserver_id=7\n"},
		{"mysql", "mysql:9.7", "mysql", "max_connections=50\nlog_bin=changes\nserver_id=7\ngtid_mode=ON\nenforce_gtid_consistency=ON\n"},
	} {
		t.Run(s.name, func(t *testing.T) { // one after the other: leader and follower take the CPUs of a node that has two
			c := need(t)
			class := c.storage(t)
			x := following{t, c, c.deploy(t, "db", s.lines, "--server", s.server, "--image", c.image(t, s.name), "--storage", "class:"+class), s.client, t.TempDir()}
			c.wait(t, x.ns, "jsonpath={.status.readyReplicas}=1", "statefulset/db", 5*time.Minute)
			x.sql("db-0", "CREATE DATABASE app; CREATE TABLE app.a (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(200)) ENGINE=InnoDB; CREATE TABLE app.b LIKE app.a; INSERT INTO app.a (s) VALUES ('x'), ('y')")
			objects := x.david(0, "clone", "reports")
			if out, err := c.try(objects, "apply", "--namespace", x.ns, "--dry-run=server", "--validate=strict", "-f", "-"); err != nil || !strings.Contains(out, "volumesnapshot.snapshot.storage.k8s.io/reports created") {
				t.Errorf("the rendered objects: %v\n%s\n%s", err, out, objects)
			}
			x.david(2, "clone", "reports", "--apply") // no account
			end := x.load()
			x.follows("reports", "--snapshot-class", class)
			end()
			if all {
				x.survives("reports")
			}
			x.david(2, "clone", "reports", "--create-account", "--apply") // it is there
			x.sql("reports-0", "SELECT 1")                                // and is left alone
			x.dropped("reports")
			if all {
				x.follows("copy", "--no-snapshot")
				x.dropped("copy")
			}
		})
		if !all {
			break
		}
	}
}

// following is a leader in a namespace.
type following struct {
	t      *testing.T
	c      *cluster
	ns     string
	client string
	home   string
}

func (x following) sql(pod, query string) string {
	x.t.Helper()
	return x.c.query(x.t, x.ns, pod, x.client, "127.0.0.1", query)
}

// david runs david follower, which ends as expected, and returns what it printed.
func (x following) david(code int, args ...string) string {
	x.t.Helper()
	cmd := exec.Command(david(x.t), append([]string{"follower", args[0], args[1], "--pod", x.ns + "/db-0", "--start-timeout", "5m"}, args[2:]...)...)
	cmd.Env = append(os.Environ(), "DAVID_HOME="+filepath.Join(x.home, "david"), "KUBECONFIG="+x.c.facts.Kubeconfig)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		x.t.Fatalf("%q: exit code %d, wanted %d\n%s%s", args, got, code, out, complaints.String())
	}
	return string(out)
}

// load writes to the leader until it is ended.
func (x following) load() (end func()) {
	const loop = `i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo "INSERT INTO app.a (s) VALUES ('$i'); INSERT INTO app.b (s) VALUES ('$i');"; sleep 0.05; done | MYSQL_PWD=$MYSQL_ROOT_PASSWORD ` + "exec "
	done := make(chan error, 1)
	go func() {
		_, err := x.c.try("", "exec", "db-0", "--namespace", x.ns, "--", "sh", "-c", "rm -f /tmp/enough; "+loop+x.client+" -h 127.0.0.1 -u root")
		done <- err
	}()
	return func() {
		if _, err := x.c.try("", "exec", "db-0", "--namespace", x.ns, "--", "touch", "/tmp/enough"); err != nil {
			x.t.Error(err)
		}
		if err := <-done; err != nil {
			x.t.Error(err)
		}
	}
}

// follows makes a follower, and looks at it.
func (x following) follows(name string, flags ...string) {
	x.t.Helper()
	out := x.david(0, append([]string{"clone", name, "--create-account", "--apply", "--verify", "--json"}, flags...)...)
	var doc struct {
		Applied bool
		Times   map[string]float64
		Verdict struct{ Tables int }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || !doc.Applied || doc.Verdict.Tables != 2 {
		x.t.Fatalf("%v\n%s", err, out)
	}
	x.t.Logf("%s: %v", name, doc.Times)
	pod := name + "-0"
	// Each by itself: MariaDB says 0 of a variable beside COUNT(*) of an InnoDB table.
	if got, rows := x.sql(pod, "SELECT @@read_only, @@event_scheduler"), x.sql(pod, "SELECT COUNT(*) FROM app.a"); got != "1 OFF" || rows == "0" {
		x.t.Errorf("%s is %q and has %s rows", pod, got, rows)
	}
	if id := x.sql(pod, "SELECT @@server_id"); id == x.sql("db-0", "SELECT @@server_id") {
		x.t.Errorf("%s has the leader's server_id, %s", pod, id)
	}
	if x.client == "mysql" && x.sql(pod, "SELECT @@server_uuid") == x.sql("db-0", "SELECT @@server_uuid") {
		x.t.Error("it has the leader's UUID")
	}
	x.reaches(pod)
}

// reaches waits until what is written to the leader now is on the follower.
func (x following) reaches(pod string) {
	x.t.Helper()
	mark := fmt.Sprint(time.Now().UnixNano())
	x.sql("db-0", "INSERT INTO app.b (s) VALUES ('"+mark+"')")
	eventually(x.t, time.Minute, func() error {
		if got := x.sql(pod, "SELECT COUNT(*) FROM app.b WHERE s = '"+mark+"'"); got != "1" {
			return fmt.Errorf("%s has %s rows of it", pod, got)
		}
		return nil
	})
}

// survives deletes a follower's pod: the next one is the same server, and goes on.
func (x following) survives(name string) {
	x.t.Helper()
	who := "SELECT @@server_id"
	if x.client == "mysql" {
		who = "SELECT @@server_id, @@server_uuid"
	}
	before := x.sql(name+"-0", who)
	x.c.kubectl(x.t, "delete", "pod", name+"-0", "--namespace", x.ns)
	x.c.wait(x.t, x.ns, "jsonpath={.status.readyReplicas}=1", "statefulset/"+name, 5*time.Minute)
	if after := x.sql(name+"-0", who); after != before {
		x.t.Errorf("it was %s, and is %s", before, after)
	}
	x.reaches(name + "-0")
	x.david(0, "verify", name)
}

// dropped drops a follower: nothing is left in the cluster, and no account on the leader.
func (x following) dropped(name string) {
	x.t.Helper()
	x.david(0, "drop", name)
	x.sql(name+"-0", "SELECT 1") // nothing was changed
	x.david(0, "drop", name, "--apply")
	eventually(x.t, 2*time.Minute, func() error {
		left, err := x.c.try("", "get", "statefulsets,services,pods,persistentvolumeclaims,volumesnapshots", "--namespace", x.ns, "-l", "david/follower", "-o", "name")
		volumes, err2 := x.c.try("", "get", "persistentvolumes", "-o", "jsonpath={.items[*].spec.claimRef.namespace}/{.items[*].spec.claimRef.name}")
		if err != nil || err2 != nil || left != "" || strings.Contains(volumes, name) {
			return fmt.Errorf("left: %s, %s (%v, %v)", left, volumes, err, err2)
		}
		return nil
	})
	if got := x.sql("db-0", "SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'david%'"); got != "0" {
		x.t.Errorf("%s accounts are left on the leader", got)
	}
}
