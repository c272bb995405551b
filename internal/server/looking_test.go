package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/account"
)

// TestLookingIsNotRoot: what lies in the folders that are searched runs as the servers' user, also where that
// user could not get there, and sees nothing of root's environment.
func TestLookingIsNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs programs as another user")
	}
	a, err := account.Find()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MYSQL_PWD", "s3cret")
	home := t.TempDir()
	if err := os.Chmod(filepath.Dir(home), 0o700); err != nil {
		t.Fatal(err)
	}
	const says = `echo "$0  Ver 9.7.4-uid$(id -u)-$MYSQL_PWD for Linux on x86_64 (MySQL Community Server - GPL)"`
	script := fakeServer(t, filepath.Join(home, "servers/mysql-9.7.4/usr/sbin/mysqld"), "")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(script, says)
	want := fmt.Sprintf("9.7.4-uid%d-", a.UID)
	for _, b := range List(context.Background(), home) {
		if b.Path == script && b.Version != want {
			t.Errorf("its --version saw %q, want %q", b.Version, want)
		}
	}
	b, err := Find(context.Background(), home, script)
	if err != nil || b.Version != want || b.Path != script {
		t.Fatalf("found %+v, %v; want %q", b, err, want)
	}
	write(script, `echo "-------- ------"; echo "user $(id -u)"; echo "here $0"; echo`)
	known, err := Options(context.Background(), b)
	if err != nil || known["user"] != fmt.Sprint(a.UID) || known["here"] != script {
		t.Errorf("its --help saw %v, %v", known, err)
	}
	tuner := tunerIn(filepath.Join(home, "servers", Tuner+"-2.9"))
	if err := os.MkdirAll(filepath.Dir(tuner), 0o755); err != nil {
		t.Fatal(err)
	}
	write(tuner, `echo "MySQLTuner 2.9 as $(id -u)"`)
	if help, err := TunerHelp(context.Background(), tuner); err != nil || !strings.Contains(help, fmt.Sprintf("as %d", a.UID)) {
		t.Errorf("MySQLTuner's --help said %q, %v", help, err)
	}
}

// TestLookingLeavesNobody: a program that leaves another one behind does not have it for long.
func TestLookingLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mysqld")
	text := "#!/bin/sh\nsleep 60 >/dev/null 2>&1 &\necho $!\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Find(context.Background(), dir, path)
	if err == nil {
		t.Fatal("it was taken for a server")
	}
	_, left, _ := strings.Cut(err.Error(), `printed "`)
	left, _, _ = strings.Cut(left, `"`)
	for range 100 {
		stat, err := os.ReadFile("/proc/" + left + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s still runs", left)
}
