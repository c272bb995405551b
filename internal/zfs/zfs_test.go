package zfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCheck: what is no name of a dataset never reaches the program.
func TestCheck(t *testing.T) {
	for _, name := range []string{"tank", "tank/mysql", "tank/a b/c_d.e:f-g", "rpool/ROOT/debian-1"} {
		if err := Check(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "-r", "tank/-r", "tank/", "/tank", "tank//a", "tank/a@b", "tank/a@b%c", "tank/a@b,c", "tank/a#b", "tank/a\nb", "/dev/zd0", "tank/" + strings.Repeat("x", 300)} {
		if Check(name) == nil {
			t.Errorf("%q is taken for a dataset", name)
		}
		if name == "tank/a@b" {
			continue
		}
		if _, err := (Tool{}).run(t.Context(), "list", name); err == nil || errors.Is(err, ErrNone) || !errors.Is(err, ErrMissing) && !strings.Contains(err.Error(), "no name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestProperties reads what zfs get prints, whatever a user has set.
func TestProperties(t *testing.T) {
	wanted := []string{"origin", "david:follower", "recordsize"}
	got, err := properties("origin\t-\t-\ndavid:follower\ta\tb 17\tinherited from tank\nrecordsize\t16384\tlocal\n", wanted)
	if err != nil || got["origin"] != (Property{"-", "-"}) || got["david:follower"] != (Property{"a\tb 17", "inherited from tank"}) || got["recordsize"] != (Property{"16384", "local"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "origin\t-\t-\n", "origin\t-\t-\ndavid:follower\tx\norigin\ty\tlocal\n", "origin\t-\t-\norigin\t-\t-\nrecordsize\t1\tlocal\n", "who\tknows\n"} {
		if got, err := properties(out, wanted); err == nil {
			t.Errorf("%q: %+v", out, got)
		}
	}
}

// TestBecause tells what is not there from what is wrong, by the words of ZFS 0.8 to 2.3.
func TestBecause(t *testing.T) {
	for said, none := range map[string]bool{
		"cannot open 'tank/x': dataset does not exist\n":                                true,
		"cannot open 'tank/x@y': dataset does not exist\n":                              true,
		"could not find any snapshots to destroy; check snapshot names.\n":              true,
		"cannot open 'tank': no such pool\n":                                            true,
		"cannot destroy 'tank/x': dataset is busy\n":                                    false,
		"cannot destroy 'tank/x': filesystem has children\nuse '-r' to destroy\ntank\n": false,
		"The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root.\n":  false,
		"": false,
	} {
		if err := because(errors.New("exit status 1"), said); errors.Is(err, ErrNone) != none {
			t.Errorf("%q: %v", said, err)
		}
	}
}

// program puts a script in the place of zfs, whose arguments it writes into a file.
func program(t *testing.T, script string) (asked func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "zfs"), []byte("#!/bin/sh\nprintf '%s|' \"$@\" >>"+log+"\necho >>"+log+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}

// TestCommands: what is asked for, in which words.
func TestCommands(t *testing.T) {
	asked := program(t, `case $1 in
list) printf 'tank/a\ntank/a@one\ntank/a/b\ntank/a/b@two words\n' ;;
get) printf 'guid\t17\t-\n' ;;
destroy) echo "cannot open 'tank/a@x': dataset does not exist" >&2; exit 1 ;;
esac
`)
	var z Tool
	below, err := z.Below(t.Context(), "tank/a")
	if err != nil || fmt.Sprint(below) != "[tank/a@one tank/a/b tank/a/b@two words]" {
		t.Errorf("%q, %v", below, err)
	}
	has, err := z.Properties(t.Context(), "tank", "guid")
	if err != nil || has["guid"].Value != "17" {
		t.Errorf("%v, %v", has, err)
	}
	set := map[string]string{"mountpoint": "/srv/a b", "canmount": "noauto"}
	if err := errors.Join(z.Snapshot(t.Context(), "tank/a@x", map[string]string{"david:follower": "x 1"}), z.Clone(t.Context(), "tank/a@x", "tank/x", set), z.Mount(t.Context(), "tank/x"), z.Destroy(t.Context(), "tank/a@x")); err != nil {
		t.Error(err)
	}
	want := `list|-H|-r|-t|filesystem,volume,snapshot|-o|name|tank/a|
get|-H|-p|-o|property,value,source|guid|tank|
snapshot|-o|david:follower=x 1|tank/a@x|
clone|-o|canmount=noauto|-o|mountpoint=/srv/a b|tank/a@x|tank/x|
mount|tank/x|
destroy|tank/a@x|`
	if got := strings.Join(asked(), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestHold: a command keeps what it was given open, also once the caller has closed it.
func TestHold(t *testing.T) {
	program(t, "sleep 1\n")
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	held, other := open(), open()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Tool{Hold: held}.Mount(t.Context(), "tank/x") }()
	time.Sleep(300 * time.Millisecond)
	held.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the lock is free while the command runs: %v", err)
	}
	if err := errors.Join(<-done, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB)); err != nil {
		t.Error(err)
	}
}
