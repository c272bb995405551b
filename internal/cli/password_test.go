package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestPasswordIsAskedFor: -p asks for the password on the terminal, and shows it neither there nor in what david prints;
// without a terminal it says so.
func TestPasswordIsAskedFor(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	here := at{home: testHome(t)}
	args := []string{"audit", "-S", s.Socket("david").Address, "-u", "david", "-p"}

	master, tty := openPair(t)
	var out bytes.Buffer
	cmd := here.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	screen := newLines()
	var reader sync.WaitGroup
	reader.Go(func() { io.Copy(screen, master) })
	if !screen.waitFor("Enter password: ", 30*time.Second) {
		t.Errorf("it does not ask:\n%s", screen)
	}
	if t0, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS); err != nil || t0.Lflag&unix.ECHO != 0 {
		t.Errorf("what is typed when it asks is shown: %v", err)
	}
	if _, err := io.WriteString(master, testserver.Password+"\n"); err != nil {
		t.Error(err)
	}
	err := cmd.Wait()
	master.Close()
	reader.Wait()
	if err != nil || !strings.Contains(out.String(), "MariaDB ") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if strings.Contains(screen.String()+out.String(), testserver.Password) {
		t.Error("the password is shown")
	}

	alone := here.command(args...)
	alone.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if text, _ := alone.CombinedOutput(); alone.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(text), "no terminal to ask for the password on") {
		t.Errorf("exit code %d\n%s", alone.ProcessState.ExitCode(), text)
	}
}
