package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asUndoer names the environment variable that makes the test binary wait for its end as david does, and say
// on its standard error when it has undone what it began.
const asUndoer = "DAVID_TEST_AS_UNDOER"

// undoer is that process.
func undoer() int {
	ctx, gone := untilSignal(context.Background())
	out := reader{os.Stdout, gone}
	one, two, err := brokenConnection()
	if err != nil {
		return 1
	}
	two.Close()
	for range 10 { // as one to a server that was killed
		one.Write([]byte("lost"))
	}
	time.Sleep(50 * time.Millisecond)
	if ctx.Err() != nil {
		return 2
	}
	fmt.Fprintln(out, "begun")
	for ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		if os.Getenv(asUndoer) == "talking" {
			fmt.Fprintln(out, "a line")
		}
	}
	fmt.Fprintln(out, "undoing") // nobody may read it
	fmt.Fprintln(os.Stderr, "undone")
	return exitInterrupted
}

func brokenConnection() (one, two net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if one, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	two, err = l.Accept()
	return one, two, err
}

// begun starts the process, and returns once it has begun.
func begun(t *testing.T, manner string, shell ...string) (cmd *exec.Cmd, out io.ReadCloser, said *strings.Builder) {
	t.Helper()
	cmd = exec.Command("/bin/sh", "-c", strings.Join(append(shell, "exec "+os.Args[0]), "; "))
	cmd.Env = append(os.Environ(), asUndoer+"="+manner)
	said = &strings.Builder{}
	cmd.Stderr = said
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { r.Close(); cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, r, said
}

// undone waits for the process, and makes sure that it has undone what it began.
func undone(t *testing.T, cmd *exec.Cmd, said *strings.Builder) {
	t.Helper()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(said.String(), "undone") {
		t.Errorf("it ended with %v, and said %q", cmd.ProcessState, said)
	}
}

// TestSignals: whatever ends david and can be caught has it undo what it began.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) { // tests under nohup: what david inherits ignored it leaves so
			continue
		}
		cmd, _, said := begun(t, "silent")
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		undone(t, cmd, said)
	}
}

// TestReaderGone: a reader that is gone ends david as a signal does, and not before it has undone what it
// began.
func TestReaderGone(t *testing.T) {
	cmd, out, said := begun(t, "talking")
	out.Close()
	undone(t, cmd, said)
}

// TestNohup: who said nohup wants david to go on without the terminal.
func TestNohup(t *testing.T) {
	cmd, _, said := begun(t, "silent", "trap '' HUP")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil || said.Len() > 0 {
		t.Fatalf("it ended: %v, %q", err, said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	undone(t, cmd, said)
}
