package move

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"david/internal/home"
	"david/internal/process"
)

// guardLog is the file in the record's folder with what a guard did.
const guardLog = "guard.log"

// The words that go between a david and its guard.
const (
	wordReady = "ready\n" // it is there
	wordDone  = "done\n"  // there is nothing for it to do
)

// readyWithin is how long a guard may take until it is there.
const readyWithin = 30 * time.Second

// duty is the first line that a guard reads.
type duty struct {
	Link   string // the folder, by the path that the server knows
	Start  []string
	Log    string
	Record string        // the file
	Server process.ID    // that is being stopped; zero where it is not seen
	Within time.Duration // for which it waits for a server that still stops
}

// guard is a process in a session of its own that reads a pipe whose other end only david has. The kernel closes
// that however david dies: then the guard starts the server, which david would have.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// station starts this very program once more, as a guard, and waits until it is there; nil where the request has
// none.
func (j *journey) station() (g *guard, err error) {
	if len(j.q.Guard) == 0 {
		return nil, nil
	}
	d := duty{Link: j.r.Route.Link, Start: j.d.start, Log: j.d.log, Record: filepath.Join(j.r.dir, recordFile), Within: j.q.StopWithin}
	server, seen, err := serverOf(j.from)
	if err != nil {
		return nil, err
	}
	if seen {
		d.Server = server.ID
	}
	log, err := home.Open(filepath.Join(j.r.dir, guardLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	g = &guard{cmd: exec.Command("/proc/self/exe", j.q.Guard...)}
	g.cmd.Args[0], g.cmd.Stderr, g.cmd.Dir = "david", log, "/"
	g.cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "MYSQL_PWD=") })
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := g.start(d); err != nil {
		return nil, fmt.Errorf("cannot start the guard, which starts the server where david dies (%s): %w", log.Name(), err)
	}
	return g, nil
}

func (g *guard) start(d duty) (err error) {
	if g.pipe, err = g.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(readyWithin, func() { g.cmd.Process.Kill() })
	defer late.Stop()
	said := make([]byte, len(wordReady))
	if err = json.NewEncoder(g.pipe).Encode(d); err == nil {
		_, err = io.ReadFull(out, said)
	}
	if err == nil && string(said) != wordReady {
		err = fmt.Errorf("it says %q", said)
	}
	if err != nil {
		return errors.Join(err, g.dismiss())
	}
	return nil
}

// dismiss tells the guard that the server was started, or never stopped.
func (g *guard) dismiss() error {
	if g == nil {
		return nil
	}
	_, err := io.WriteString(g.pipe, wordDone)
	if err = errors.Join(err, g.pipe.Close(), g.cmd.Wait()); err != nil {
		return fmt.Errorf("the guard ended before it was told to: %w", err)
	}
	return nil
}

// What a guard waits for: a folder that nobody has used for so long has no server, and what has used it for so
// long is one.
const (
	deserted = 2 * time.Second
	manned   = 10 * time.Second
)

// StandGuard is the guard. Where its input ends before it is told that all is done, david is dead; then it
// starts the server unless somebody else does.
func StandGuard(in io.Reader, out, log io.Writer) error {
	var d duty
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("cannot read what to guard: %w", err)
	}
	if _, err := io.WriteString(out, wordReady); err != nil {
		return fmt.Errorf("cannot say that the guard is there: %w", err)
	}
	rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), in))
	if err == nil && strings.TrimSpace(string(rest)) == strings.TrimSpace(wordDone) {
		return nil
	}
	say := func(what string) { fmt.Fprintf(log, "%s %s\n", time.Now().Format(time.RFC3339), what) }
	say("david died while the server was away")
	needless, err := d.watch(deserted, manned)
	if err != nil {
		return err
	}
	if needless != "" {
		say(needless)
		return nil
	}
	say(strings.Join(d.Start, " "))
	_, done, err := daemon{log: d.Log}.run(d.Start)
	if err != nil {
		return err
	}
	return <-done
}

// watch waits until the folder has no server, and nobody starts one; else it tells why none is to be started. The
// server that david was stopping may take its time.
func (d duty) watch(deserted, manned time.Duration) (needless string, err error) {
	died, err := os.Stat(d.Record)
	if err != nil {
		return "", err
	}
	empty, since := false, time.Now()
	for end := time.Now().Add(d.Within + manned); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now, err := os.Stat(d.Record); err != nil || !now.ModTime().Equal(died.ModTime()) {
			return "another david goes on with the move", err
		}
		folder, err := filepath.EvalSymlinks(d.Link)
		if err != nil {
			return "", err
		}
		left, err := servers(folder)
		if err != nil {
			return "", err
		}
		if now := len(left) == 0; now != empty || d.Server.Alive() {
			empty, since = now, time.Now()
		}
		if empty && time.Since(since) > deserted {
			return "", nil
		}
		if !empty && time.Since(since) > manned {
			break
		}
	}
	return "the server runs", nil
}
