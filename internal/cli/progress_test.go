package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"david/internal/experiment"
	"david/internal/plain"
)

// openTerminal opens one, and collects what is written to it. Close waits for the last of it.
func openTerminal(t *testing.T) (tty *os.File, seen *lines, closed func()) {
	t.Helper()
	master, tty := openPair(t)
	var reader sync.WaitGroup
	seen = newLines()
	reader.Go(func() { io.Copy(seen, master) }) // ends with EIO, once nobody has the terminal open
	return tty, seen, func() { tty.Close(); reader.Wait(); master.Close() }
}

// openPair opens a terminal of 120 columns, and the end of it that a user's keyboard and screen are at.
func openPair(t *testing.T) (master, tty *os.File) {
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
	return master, tty
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
	alone := func(line string) bool { return strings.HasPrefix(line, "david: interrupted") } // its words may take two lines
	if code != exitInterrupted || !slices.ContainsFunc(shown[max(0, len(shown)-3):], alone) || shown[len(shown)-1] != "" {
		t.Errorf("exit code %d, the terminal shows %q", code, shown)
	}
}

// TestProgressOfOthers shows events with texts of a hostile server on a terminal: the line is still david's to clear, and they do
// not move the cursor.
func TestProgressOfOthers(t *testing.T) {
	tty, seen, closed := openTerminal(t)
	p := newProgress(plain.NewWriter(reader{tty, func() {}}), false)
	if p.columns == nil {
		t.Fatal("there is no line on a terminal")
	}
	p.show(experiment.Event{Text: "8.0\x1b[2J\rforged", Done: time.Second, Left: time.Second})
	p.show(experiment.Event{Line: "a server said \x1b]0;title\a\u009b31m"})
	p.end()
	closed()
	text := seen.String()
	if strings.ContainsAny(text, "\x1b\a\u009b") || !strings.Contains(text, `8.0\u001b[2J\u000dforged`) || !strings.Contains(text, `a server said \u001b]0;title\u0007\u009b31m`) {
		t.Errorf("the terminal saw %q", text)
	}
	if !strings.Contains(text, "\r") || !strings.Contains(text, "1s left") {
		t.Errorf("there is no time left: %q", text)
	}
}

// TestProgressFits: on terminals of any width there is one line, with the figures of the moment and the time left.
func TestProgressFits(t *testing.T) {
	t.Parallel()
	step := "percona-operator-8.4, 16 threads, run 12: measuring"
	for columns, want := range map[uint16]string{
		120: step + ", 12345 tps, p95 1234.5 ms",
		80:  "percona-operator-8.4, 16 thread..., 12345 tps, p95 1234.5 ms",
		40:  "12345 tps, p95 1234.5 ms",
		15:  "",
		10:  "12345 ...",
	} {
		tty, seen, closed := openTerminal(t)
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
			t.Fatal(err)
		}
		p := newProgress(tty, false)
		p.show(experiment.Event{Text: "preparing"})
		p.show(experiment.Event{Trial: true, Step: step, Text: step + ", 12345 tps, p95 1234.5 ms", Left: 754 * time.Second})
		closed()
		lines := strings.Split(strings.TrimRight(seen.String(), " "), "\r")
		last := lines[len(lines)-1]
		if !strings.Contains(last, want) || strings.HasSuffix(last, "12m34s left") != (columns > 12) || len(last) >= int(columns) || strings.Contains(seen.String(), "\n") {
			t.Errorf("%d columns: %q of %d", columns, last, len(last))
		}
	}
}

// TestLog: a log has a line for a trial, and its steps where they are asked for.
func TestLog(t *testing.T) {
	t.Parallel()
	for _, steps := range []bool{false, true} {
		var out strings.Builder
		p := newProgress(&out, steps)
		p.text("preparing the data")
		p.show(experiment.Event{Trial: true, Text: "control: starting a fresh server", Left: 20 * time.Second})
		p.show(experiment.Event{Trial: true, Step: "control: measuring", Text: "control: measuring, 5 tps", Left: 10 * time.Second})
		p.show(experiment.Event{Trial: true, Step: "control: measuring", Text: "control: measuring, 6 tps", Left: 9 * time.Second})
		p.show(experiment.Event{Line: "control 5.5 transactions/s"})
		p.text("writing the report")
		want := []string{"preparing the data", "control 5.5 transactions/s", "writing the report (9s left)"}
		if steps {
			want = []string{"preparing the data", "control: starting a fresh server (20s left)", "control: measuring, 5 tps (10s left)", "control 5.5 transactions/s", "writing the report (9s left)"}
		}
		if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
			t.Errorf("steps %v:\n%s", steps, got)
		}
	}
}

// TestCountdown: what is told only falls, comes to its end with the estimates, and stays to the end.
func TestCountdown(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		estimates []int // s, each ten seconds after the last; 0: nobody knows
		want      []int
	}{
		"as expected":   {[]int{30, 20, 10, 0, 0}, []int{30, 20, 10, 1, 1}},
		"longer":        {[]int{60, 90, 80, 70, 10}, []int{60, 54, 48, 42, 10}},
		"shorter":       {[]int{60, 20, 30, 20, 10}, []int{60, 20, 15, 10, 5}},
		"known late":    {[]int{0, 0, 20, 10, 5}, []int{0, 0, 20, 10, 3}},
		"then unknown":  {[]int{60, 0, 0, 0, 0}, []int{60, 50, 40, 30, 20}},
		"never at once": {[]int{5, 600, 600, 600, 600}, []int{5, 5, 5, 5, 5}},
	} {
		var clock countdown
		for n, s := range c.estimates {
			left, known := clock.left(begin.Add(time.Duration(10*n)*time.Second), time.Duration(s)*time.Second)
			if want := time.Duration(c.want[n]) * time.Second; left != want || known != (want > 0) {
				t.Errorf("%s: after %d s %v is told (%v), want %v", name, 10*n, left, known, want)
			}
		}
	}
}

// TestTablesFit: on a terminal of 80 columns no line of these is wider, but for commands and for words that are; in a pipe a row
// of a table is a line.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	words := func(text string) []string { // each number as N: free memory and room differ from one look to the next
		return strings.Fields(regexp.MustCompile(`[0-9.]+( ([KMGT]i)?B)?`).ReplaceAllString(strings.Join(strings.Fields(text), " "), "N"))
	}
	for _, line := range []string{"price volumes --iops 10000 --size 500GiB", "price catalogue", "storage plan --iops 20000 --size 1TiB --provider EC2", "race --list --memory 16G",
		"config show", "kernel plan", "facts", "study p1 --dry-run", "study p2 --dry-run", "plan --data 200GiB --tps 100 --rpo 0s --rto 1m --survive zone --why", "plan ceph",
		"plan iops-per-gb --size 1TiB", "server list", "doctor"} {
		argv := strings.Fields(line)
		seen, piped := bothWays(t, home, argv)
		for n := 0; n < 10 && line == "facts" && !slices.Equal(words(seen), words(piped)); n++ {
			seen, piped = bothWays(t, home, argv) // loop devices of other tests came or went in between
		}
		command := regexp.MustCompile(`^  [a-z./-]+ .*([-=/]|&&)`)
		for shown := range strings.Lines(strings.ReplaceAll(seen, "\r", "")) {
			if shown = strings.TrimSuffix(shown, "\n"); utf8.RuneCountInString(shown) > 80 && !command.MatchString(shown) && strings.Contains(strings.TrimSpace(shown), " ") {
				t.Errorf("%s: %d columns: %s", line, utf8.RuneCountInString(shown), shown)
			}
		}
		if got, want := words(seen), words(piped); !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s: the terminal says other words than a pipe: %q, not %q", line, got[at:min(at+5, len(got))], want[at:min(at+5, len(want))])
		}
	}
}

// bothWays runs a command twice and returns what it writes: onto a terminal of 80 columns, then into a pipe.
func bothWays(t *testing.T, home string, argv []string) (terminal, pipe string) {
	t.Helper()
	tty, seen, closed := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	var piped strings.Builder
	for _, out := range []io.Writer{tty, &piped} {
		// As main makes it, but for the output; nothing of the machine's locks and folders but the test's.
		a := &app{out: out, err: io.Discard, home: home, env: os.Getenv, argv: argv, build: Build{Version: "dev"}, sharing: beside(home)}
		if code := a.execute(t.Context()); code != exitDone {
			t.Fatalf("%v: exit code %d", argv, code)
		}
	}
	closed()
	return seen.String(), piped.String()
}

// TestNobodyReads: where whoever read has gone, as head does, nothing is said of it; of anything else it is.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	read.Close()
	home := testHome(t)
	for line, quiet := range map[string]bool{"price catalogue": true, "price no-such-experiment": false} {
		var said strings.Builder
		a := &app{out: write, err: &said, home: home, env: os.Getenv, argv: strings.Fields(line), build: Build{Version: "dev"}, sharing: beside(home)}
		if code := a.execute(t.Context()); code == exitDone || (said.String() == "") != quiet {
			t.Errorf("%s: exit code %d, %q", line, code, said.String())
		}
	}
}
