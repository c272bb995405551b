package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/experiment"
	"david/internal/plain"
)

// openTerminal opens one, and collects what is written to it. Close waits for the last of it.
func openTerminal(t *testing.T) (tty *os.File, seen *lines, closed func()) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	seen = newLines()
	reader.Go(func() { io.Copy(seen, master) }) // ends with EIO, once nobody has the terminal open
	return tty, seen, func() { tty.Close(); reader.Wait(); master.Close() }
}

// shownLines are the lines of a terminal to which that text was written.
func shownLines(text string) (shown []string) {
	cells, at := []rune{}, 0
	for _, r := range text {
		switch {
		case r == '\n':
			shown = append(shown, strings.TrimSpace(string(cells)))
			cells, at = nil, 0
		case r == '\r':
			at = 0
		case at < len(cells):
			cells[at], at = r, at+1
		default:
			cells, at = append(cells, r), at+1
		}
	}
	return append(shown, strings.TrimSpace(string(cells)))
}

// TestProbeTakesItsBarOff interrupts a probe on a terminal: what is said of it stands alone on its line.
func TestProbeTakesItsBarOff(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	tty, seen, closed := openTerminal(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		seen.waitFor("measuring", time.Minute)
		stop()
	}()
	a := &app{out: io.Discard, err: tty, home: home, env: os.Getenv, argv: []string{"probe", "--quick"}, build: Build{Version: "dev"}, sharing: beside(home)}
	code := a.execute(ctx)
	closed()
	shown := shownLines(seen.String())
	if code != exitInterrupted || len(shown) < 2 || !strings.HasPrefix(shown[len(shown)-2], "david: interrupted") || shown[len(shown)-1] != "" {
		t.Errorf("exit code %d, the terminal shows %q", code, shown)
	}
}

// TestProgressOfOthers shows events with texts of a hostile server on a terminal: the bar still moves the cursor, and they do
// not.
func TestProgressOfOthers(t *testing.T) {
	tty, seen, closed := openTerminal(t)
	p := newProgress(plain.NewWriter(reader{tty, func() {}}))
	if p.bar == nil {
		t.Fatal("there is no bar on a terminal")
	}
	p.show(experiment.Event{Text: "8.0\x1b[2J\rforged", Done: time.Second, Left: time.Second})
	p.show(experiment.Event{Line: "a server said \x1b]0;title\a\u009b31m"})
	p.end()
	closed()
	text := seen.String()
	if strings.ContainsAny(text, "\x1b\a\u009b") || !strings.Contains(text, `8.0\u001b[2J\u000dforged`) || !strings.Contains(text, `a server said \u001b]0;title\u0007\u009b31m`) {
		t.Errorf("the terminal saw %q", text)
	}
	if !strings.Contains(text, "\r") || !strings.Contains(text, "% |") {
		t.Errorf("there is no bar: %q", text)
	}
}
