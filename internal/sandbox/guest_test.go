package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// invited returns a guest and the command that runs it, as a container would.
func invited(t *testing.T, w *Workspace, g Template, settings ...mycnf.Setting) (*Guest, *exec.Cmd) {
	t.Helper()
	guest, _, err := w.Invite(g, StartOptions{Settings: settings, Host: everywhere, LogPath: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.reach(g.key.Binary)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(b.Launch[0], append(b.Launch[1:], guest.Args...)...)
	if b.Basedir != "" {
		cmd.Args = append(cmd.Args, "--basedir="+b.Basedir)
	}
	runtime.LockOSThread() // until the test ends: the signal is tied to the thread that forks
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: w.owner.Credential()}
	cmd.Dir = guest.Folders[0].Path
	return guest, cmd
}

func running() error { return nil }

// TestGuest runs a server on what was prepared for it, as somebody else would: it is the server david would
// have started.
func TestGuest(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			b := testserver.Find(t, flavour)
			w := open(t, newHome(t), Options{NoVolume: true})
			g := template(t, w, key(b))
			guest, cmd := invited(t, w, g, mycnf.Setting{Name: "innodb_buffer_pool_size", Value: "64M"})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := guest.Await(context.Background(), net.JoinHostPort("127.0.0.1", guest.Port), running); err != nil {
				t.Fatal(err)
			}
			if guest.PID() != cmd.Process.Pid || guest.Alive(running) != nil {
				t.Errorf("process %d, want %d; %v", guest.PID(), cmd.Process.Pid, guest.Alive(running))
			}
			same := SameBinary(guest.PID(), b)
			if through := len(b.Launch) > 1; through != (same != nil) || through && !strings.Contains(same.Error(), "not the same build") {
				t.Errorf("run by a loader %v: %v", through, same)
			}
			look(t, guest)
			behind(t, w, guest)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			var start *StartError
			if err := guest.Alive(func() error { return ErrMemory }); !errors.As(err, &start) || !errors.Is(err, ErrMemory) {
				t.Errorf("a dead server: %v", err)
			}
			released(t, guest)
		})
	}
}

// look makes sure of the data, the settings and the password's file.
func look(t *testing.T, guest *Guest) {
	t.Helper()
	conn, err := mysqld.Open(context.Background(), guest.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := count(t, conn); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	vars, err := conn.Variables(context.Background())
	if err != nil || vars["innodb_buffer_pool_size"] != "67108864" || vars["skip_name_resolve"] != "ON" || vars["datadir"] != guest.Data()+"/" {
		t.Errorf("pool %q, skip_name_resolve %q, datadir %q, %v", vars["innodb_buffer_pool_size"], vars["skip_name_resolve"], vars["datadir"], err)
	}
	if _, err := os.Stat(filepath.Join(guest.Folders[0].Path, "init.sql")); !os.IsNotExist(err) {
		t.Errorf("the file with the password is still there: %v", err)
	}
}

// behind makes sure that the folders are told where they lie, without david's own bind mount.
func behind(t *testing.T, w *Workspace, guest *Guest) {
	t.Helper()
	f := guest.Folders[1]
	one, err := os.Stat(f.Source)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(one, other) || w.owner.Switched && !strings.HasPrefix(f.Source, w.home) {
		t.Errorf("the data %s lies in %s", f.Path, f.Source)
	}
}

func released(t *testing.T, guest *Guest) {
	t.Helper()
	if err := guest.Release(); err != nil {
		t.Error(err)
	}
	for _, f := range guest.Folders {
		if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
			t.Errorf("%s is left", f.Path)
		}
	}
}

// TestGuestThatEnds: one that is said to have ended is not waited for, and the server's own words are told.
func TestGuestThatEnds(t *testing.T) {
	b := testserver.Find(t, "mariadb")
	w := open(t, newHome(t), Options{NoVolume: true})
	guest, cmd := invited(t, w, template(t, w, key(b)), mycnf.Setting{Name: "no_such_variable", Value: "1"})
	if err := cmd.Run(); err == nil {
		t.Fatal("it started")
	}
	gone := errors.New("the pod has failed")
	err := guest.Await(context.Background(), net.JoinHostPort("127.0.0.1", guest.Port), func() error { return gone })
	var start *StartError
	if !errors.As(err, &start) || !errors.Is(err, gone) || !strings.Contains(err.Error(), "no_such_variable") {
		t.Errorf("got %v", err)
	}
	released(t, guest)
}

// TestGuestIsKilled: a server that still runs when its guest is given back is ended first, and Close does so
// as well.
func TestGuestIsKilled(t *testing.T) {
	b := testserver.Find(t, "mariadb")
	w := open(t, newHome(t), Options{NoVolume: true})
	g := template(t, w, key(b))
	for _, end := range []func(*Guest) error{(*Guest).Release, func(*Guest) error { return w.Close() }} {
		guest, cmd := invited(t, w, g)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		if err := guest.Await(context.Background(), net.JoinHostPort("127.0.0.1", guest.Port), running); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- cmd.Wait() }()
		if err := end(guest); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("it ended with %v", err)
		}
	}
}
