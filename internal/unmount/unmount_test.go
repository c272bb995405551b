package unmount

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMountedWedged: a mount whose server never answers is seen without waiting for it.
func TestMountedWedged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer server.Close() // which ends all that waits for it
	for _, path := range []string{dir, dir + "/no/where"} {
		if there, err := Mounted(path); err != nil || there {
			t.Errorf("%s: %v, %v before it is", path, there, err)
		}
	}
	if err := unix.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Now(dir); err != nil {
			t.Error(err)
		}
	}()
	seen := make(chan error, 1)
	go func() {
		there, err := Mounted(dir)
		if err == nil && !there {
			err = fmt.Errorf("%s is not mounted", dir)
		}
		seen <- err
	}()
	select {
	case err := <-seen:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the server")
	}
}
