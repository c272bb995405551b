package images

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// password has what SQL and shells would trip over.
const password = `it's a "pass" \ word`

func TestServerImages(t *testing.T) {
	needDebian(t)
	build, links := tool(t, "testservers"), t.TempDir()
	said := command(t, build, "-links", links)
	t.Setenv("http_proxy", "http://127.0.0.1:9") // nobody: the second time needs no network
	t.Setenv("https_proxy", "http://127.0.0.1:9")
	if again := command(t, build, "-links", links); again != said || strings.Count(said, "\n") != 4 {
		t.Errorf("built again, not taken from the cache: %q, %q", said, again)
	}
	for _, server := range []string{"mariadb", "mysql"} {
		i := open(t, filepath.Join(links, server+"-image.tar"))
		i.want(t, "usr/local/bin/entrypoint", "usr/bin/mysql", "usr/bin/mysqladmin", "usr/bin/sh", "etc/mysql/conf.d", "etc/david/packages")
		config := i.config.Config
		if i.name != "localhost/"+server+":e2e" {
			t.Errorf("%s: its name is %s", server, i.name)
		}
		if config.User != "999:999" || i.files["var/lib/mysql"].Uid != 999 {
			t.Errorf("%s: it runs as %s, and its data are of user %d", server, config.User, i.files["var/lib/mysql"].Uid)
		}
		if command := slices.Concat(config.Entrypoint, config.Cmd); !slices.Equal(command, serverCommand(server)) {
			t.Errorf("%s: it runs %q", server, command)
		}
		t.Logf("%s: %.1f MB packed, %.1f MB unpacked", server, float64(i.size)/1e6, float64(i.unpacked())/1e6)
	}
	if i := open(t, filepath.Join(links, "pause-image.tar")); i.name != "localhost/pause:e2e" || !slices.Equal(i.config.Config.Entrypoint, []string{"/pause"}) {
		t.Errorf("pause: %s, %+v", i.name, i.config.Config)
	}
	c := startContainerd(t)
	for _, name := range []string{"mariadb", "mysql", "haproxy", "pause"} {
		c.load(filepath.Join(links, name+"-image.tar"))
	}
	t.Run("pause", func(t *testing.T) { checkPause(t, c) })
	t.Run("haproxy", func(t *testing.T) { checkBalancer(t, c) })
	for _, server := range []string{"mariadb", "mysql"} {
		t.Run(server, func(t *testing.T) { checkServer(t, c, server) })
	}
}

// serverProgram is the name of the server's program in an image.
func serverProgram(image string) string {
	return map[string]string{"mariadb": "mariadbd", "mysql": "mysqld"}[image]
}

// serverCommand is the command line that a server's image has as its default: startServer types it, with a shell around.
func serverCommand(image string) []string {
	return []string{"/usr/local/bin/entrypoint", serverProgram(image)}
}

// checkBalancer: it is there, with all that it is linked to.
func checkBalancer(t *testing.T, c *containerd) {
	cmd, _ := c.start("localhost/haproxy:e2e", nil, "/usr/sbin/haproxy", "-v")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "HAProxy version 2.6") {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkPause(t *testing.T, c *containerd) {
	cmd, name := c.start("localhost/pause:e2e", nil)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A program that is told to end before it listens for that ends by the signal.
	before := ""
	until(t, "pause sleeps", func() string { return "" }, func() bool {
		now := c.sleeps(name)
		was := before
		before = now
		return now != "" && now == was
	})
	c.signal(name, syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("pause was told to end: %v", err)
	}
}

// instance is a server in a container.
type instance struct {
	c      *containerd
	cmd    *exec.Cmd
	name   string
	port   string
	output string // the file with what the server prints
}

// log returns the text that the server has written to its standard output and errors until now.
func (i *instance) log() string {
	text, err := os.ReadFile(i.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// startServer starts a server on a data folder. ctr, unlike the kubelet, hides the image's /run: the socket
// goes to /tmp.
func startServer(t *testing.T, c *containerd, image, data string, env ...string) *instance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()
	conf := t.TempDir()
	cnf := "[mysqld]\nport=" + port + "\nsocket=/tmp/sock\npid-file=/tmp/pid\ninnodb_buffer_pool_size=20M\nmax_connections=37\n"
	if image == "mysql" {
		cnf += "mysqlx=OFF\n"
	}
	if err := os.WriteFile(filepath.Join(conf, "david.cnf"), []byte(cnf), 0o644); err != nil {
		t.Fatal(err)
	}
	options := []string{"--mount", "type=bind,src=" + data + ",dst=/var/lib/mysql,options=rbind:rw", "--mount", "type=bind,src=" + conf + ",dst=/etc/mysql/conf.d,options=rbind:ro"}
	for _, e := range env {
		options = append(options, "--env", e)
	}
	i := &instance{c: c, port: port}
	i.cmd, i.name, i.output = c.startLogged("localhost/"+image+":e2e", options, serverCommand(image)...)
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return i
}

// end waits until the server has ended, and returns all that it printed, and how ctr ended.
func (i *instance) end() (log string, err error) {
	err = i.cmd.Wait()
	return i.log(), err
}

func (i *instance) query(sql string) (string, error) {
	// A statement is not retried by the client, and the password is in its environment, not its arguments.
	return i.c.exec(i.name, "env", "MYSQL_PWD="+password, "mysql", "--no-defaults", "-uroot", "-h127.0.0.1", "-P"+i.port, "--protocol=tcp", "-N", "-B", "-e", sql)
}

func (i *instance) ready(t *testing.T) {
	t.Helper()
	until(t, "the server answers", i.log, func() bool { out, err := i.query("SELECT 1"); return err == nil && out == "1" })
}

func (i *instance) stop(t *testing.T) {
	t.Helper()
	i.c.signal(i.name, syscall.SIGTERM)
	if log, err := i.end(); err != nil || !strings.Contains(log, "Shutdown complete") {
		t.Errorf("the server was told to end: %v\n%s", err, log)
	}
}

func until(t *testing.T, what string, log func() string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited three minutes until %s\n%s", what, log())
		}
	}
}

// dataFolder is a folder like a fresh volume: with a lost+found, for the server's user.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 999, 999); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkServer holds an image against the contract: initialised once, with the password, from an unfinished
// attempt too; the user's option file is read; the server is process 1, ends when told, and finds its data
// again.
func checkServer(t *testing.T, c *containerd, image string) {
	data := dataFolder(t)
	i := startServer(t, c, image, data)
	if log, err := i.end(); err == nil || !strings.Contains(log, "set MARIADB_ROOT_PASSWORD or MYSQL_ROOT_PASSWORD") {
		t.Errorf("without a password: %v\n%s", err, log)
	}
	unfinished := filepath.Join(data, ".initialising", "mysql")
	if err := os.MkdirAll(unfinished, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(unfinished), 999, 999); err != nil {
		t.Fatal(err)
	}
	i = startServer(t, c, image, data, "MYSQL_ROOT_PASSWORD="+password)
	i.ready(t)
	want := map[string]string{
		"SELECT current_user(), @@max_connections, @@datadir":                          "root@%\t37\t/var/lib/mysql/",
		"SELECT count(*) FROM mysql.user WHERE user NOT LIKE 'm%.%'":                   "2",
		"CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (5)":      "",
		"SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE '.%'": "0",
	}
	for sql, answer := range want {
		if got, err := i.query(sql); err != nil || got != answer {
			t.Errorf("%s: got %q, %v", sql, got, err)
		}
	}
	checkProcess(t, i, serverProgram(image))
	i.stop(t)
	again := startServer(t, c, image, data) // the password is in the data
	again.ready(t)
	got, err := again.query("SELECT a FROM d.t")
	if err != nil || got != "5" {
		t.Errorf("after a restart: got %q, %v", got, err)
	}
	again.stop(t)
	checkForeign(t, c, image)
}

// checkProcess looks at the server from inside: process 1, user 999, root with the password through the
// socket too, without it nowhere.
func checkProcess(t *testing.T, i *instance, server string) {
	t.Helper()
	out, err := i.c.exec(i.name, "sh", "-c", "id -u; cat /proc/1/comm; tr '\\0' '\\n' < /proc/1/environ | grep -c PASSWORD; true")
	if lines := strings.Fields(out); len(lines) != 3 || lines[0] != "999" || lines[1] != server || lines[2] != "0" || err != nil {
		t.Errorf("inside: %q, %v", out, err)
	}
	if out, err := i.c.exec(i.name, "env", "MYSQL_PWD="+password, "mysql", "--no-defaults", "-uroot", "-S/tmp/sock", "-NBe", "SELECT current_user()"); err != nil || out != "root@localhost" {
		t.Errorf("through the socket: %q, %v", out, err)
	}
	for _, way := range [][]string{{"-h127.0.0.1", "-P" + i.port}, {"-S/tmp/sock"}} {
		if out, err := i.c.exec(i.name, append([]string{"mysql", "--no-defaults", "-uroot", "-e", "SELECT 1"}, way...)...); err == nil || !strings.Contains(out, "Access denied") {
			t.Errorf("without a password, %v: %q, %v", way, out, err)
		}
	}
}

// checkForeign makes sure that a folder with somebody else's files is left alone, and that a command is run
// as it is.
func checkForeign(t *testing.T, c *containerd, image string) {
	t.Helper()
	data := dataFolder(t)
	if err := os.WriteFile(filepath.Join(data, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	i := startServer(t, c, image, data, "MYSQL_ROOT_PASSWORD="+password)
	if log, err := i.end(); err == nil || !strings.Contains(log, "thesis.txt among them") {
		t.Errorf("a foreign folder: %v\n%s", err, log)
	}
	out, err := c.runLogged("localhost/"+image+":e2e", "/usr/local/bin/entrypoint", "sh", "-c", "echo as it is")
	if err != nil || strings.TrimSpace(out) != "as it is" {
		t.Errorf("another command: %q, %v", out, err)
	}
}
