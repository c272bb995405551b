package account

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// found is the account of a david that is root; the tests of this package are about no other.
func found(t *testing.T) Account {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root runs programs as another user")
	}
	a, err := Find()
	if err != nil || !a.Switched || a.UID == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	return a
}

// closed is a folder below one that only root may enter, with a program in it and a secret beside it.
func closed(t *testing.T) (dir string) {
	t.Helper()
	above := t.TempDir()
	if err := os.Chmod(above, 0o700); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(above, "a dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nid -u\nid -G\ncat \"$1/file\"\ncat \"$1/../secret\" && echo LEAKED\n"
	for path, text := range map[string]string{filepath.Join(dir, "program"): script, filepath.Join(dir, "file"): "read\n", filepath.Join(above, "secret"): "secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDoor runs a program that the account could not get to: as the account, without root's groups, and
// without a way to what is above the folder.
func TestDoor(t *testing.T) {
	a, dir := found(t), closed(t)
	d, err := a.Door(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cmd := exec.CommandContext(context.Background(), filepath.Join(dir, "program"), dir)
	d.Prepare(cmd)
	out, _ := cmd.CombinedOutput()
	if want := fmt.Sprintf("%d\n%d\nread\n", a.UID, a.GID); !strings.HasPrefix(string(out), want) {
		t.Errorf("it printed %q, want %q first", out, want)
	}
	if strings.Contains(string(out), "LEAKED") {
		t.Errorf("it saw what lies above its folder: %q", out)
	}
	for text, want := range map[string]string{"--x=" + dir: "--x=" + d.as, dir + "/a:" + dir + ":" + dir: d.as + "/a:" + d.as + ":" + d.as, "/x" + dir + "/a": "/x" + dir + "/a", dir + "s": dir + "s"} {
		if got := d.inward(text); got != want {
			t.Errorf("inward %q, want %q", got, want)
		}
	}
	if text := d.Outward("at " + d.as + "/file"); text != "at "+dir+"/file" {
		t.Errorf("outward %q", text)
	}
}

// TestDoorWithoutNeed leaves paths that everybody can follow as they are.
func TestDoorWithoutNeed(t *testing.T) {
	a := found(t)
	d, err := a.Door("/usr/bin")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cmd := exec.Command("/usr/bin/id", "-u")
	d.Prepare(cmd)
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(a.UID) || len(cmd.ExtraFiles) > 0 {
		t.Errorf("%q, %v, files %v", out, err, cmd.ExtraFiles)
	}
}
