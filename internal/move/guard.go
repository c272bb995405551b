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
)

// guardLog is the file in the record's folder with what a guard did.
const guardLog = "guard.log"

// wordDone tells a guard that there is nothing for it to do.
const wordDone = "done\n"

// duty is the first line that a guard reads.
type duty struct {
	Link   string // the folder, by the path that the server knows
	Start  []string
	Log    string
	Within time.Duration // for which it waits for a server that still stops
}

// guard is a process in a session of its own that reads a pipe whose other end only david has. The kernel closes
// that however david dies: then the guard starts the server, which david would have.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// station starts this very program once more, as a guard; nil where the request has none.
func (j *journey) station() (g *guard, err error) {
	if len(j.q.Guard) == 0 {
		return nil, nil
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
	if g.pipe, err = g.cmd.StdinPipe(); err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the guard, which starts the server where david dies: %w", err)
	}
	err = json.NewEncoder(g.pipe).Encode(duty{j.r.Route.Link, j.d.start, j.d.log, j.q.StopWithin})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot tell the guard its duty: %w", err), g.dismiss())
	}
	return g, nil
}

// dismiss tells the guard that the server was started, or never stopped.
func (g *guard) dismiss() error {
	if g == nil {
		return nil
	}
	_, err := io.WriteString(g.pipe, wordDone)
	return errors.Join(err, g.pipe.Close(), g.cmd.Wait())
}

// What a guard waits for: a folder that nobody has used for so long has no server, and what has used it for so
// long is one.
const (
	deserted = 2 * time.Second
	manned   = 10 * time.Second
)

// StandGuard is the guard. Where its input ends before it is told that all is done, david is dead; then it
// starts the server unless somebody else does.
func StandGuard(in io.Reader, log io.Writer) error {
	var d duty
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("cannot read what to guard: %w", err)
	}
	rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), in))
	if err == nil && strings.TrimSpace(string(rest)) == strings.TrimSpace(wordDone) {
		return nil
	}
	fmt.Fprintf(log, "%s david died while the server was away\n", time.Now().Format(time.RFC3339))
	empty, err := d.watch()
	if err != nil || !empty {
		fmt.Fprintf(log, "%s the server runs\n", time.Now().Format(time.RFC3339))
		return err
	}
	fmt.Fprintf(log, "%s %s\n", time.Now().Format(time.RFC3339), strings.Join(d.Start, " "))
	done, err := daemon{log: d.Log}.run(d.Start)
	if err != nil {
		return err
	}
	return <-done
}

// watch tells whether the folder has no server, and nobody starts one.
func (d duty) watch() (empty bool, err error) {
	since := time.Now()
	for end := time.Now().Add(d.Within + manned); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		folder, err := filepath.EvalSymlinks(d.Link)
		if err != nil {
			return false, err
		}
		left, err := writers(folder)
		if err != nil {
			return false, err
		}
		if now := len(left) == 0; now != empty {
			empty, since = now, time.Now()
		}
		if empty && time.Since(since) > deserted || !empty && time.Since(since) > manned {
			return empty, nil
		}
	}
	return false, nil
}
