package live

import (
	"bufio"
	"cmp"
	"context"
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

	"david/internal/mysqld"
)

// watchFor says for how long a watchdog tries to set back what a david that died has left.
const watchFor = 10 * time.Minute

// startWithin says how long a watchdog may take until it has reached the server.
const startWithin = 30 * time.Second

// The words that go between a david and its watchdog.
const (
	wordReady = "ready\n"
	wordDone  = "done\n"
)

// watchdogLog is the name of the file in the experiment's folder with what a watchdog did.
const watchdogLog = "watchdog.log"

// leash is the first line that a watchdog reads. The password is nowhere else: neither in a file, nor among
// the arguments, nor in the environment.
type leash struct {
	Network, Address, User, Password string
	TLS                              mysqld.TLS
	Deadline                         time.Duration
	Dir                              string // of the record
}

// watchdog is a process in a session of its own that reads a pipe whose other end only david has. The kernel
// closes that however david dies.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	log  string
	gone chan struct{} // closed when it has ended
}

// startWatchdog starts this very program once more, waits until it has reached the server, and puts it on
// record.
func (r *Run) startWatchdog(ctx context.Context) (w *watchdog, err error) {
	dir, err := filepath.Abs(filepath.Dir(r.Record.journal.path))
	if err != nil {
		return nil, fmt.Errorf("cannot start the watchdog: %w", err)
	}
	w = &watchdog{cmd: exec.Command("/proc/self/exe", r.Watchdog...), log: filepath.Join(dir, watchdogLog), gone: make(chan struct{})}
	if err := w.start(ctx, r.leash(dir)); err != nil {
		return nil, fmt.Errorf("cannot start the watchdog, which sets a step back where david dies: %w", err)
	}
	if err := r.Record.note(recordLine{Event: guarded, PID: w.pid()}); err != nil {
		return nil, errors.Join(err, w.dismiss())
	}
	r.say("should david die before a step is judged, process %d sets it back; all that was changed: %s", w.pid(), r.Record.command())
	return w, nil
}

func (r *Run) leash(dir string) leash {
	a := r.Addr
	return leash{a.Network, a.Address, a.User, string(a.Password), a.TLS, a.Deadline, dir}
}

func (w *watchdog) start(ctx context.Context, l leash) error {
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	w.cmd.Args[0] = "david"
	w.cmd.Stderr = log
	w.cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "MYSQL_PWD=") })
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if w.pipe, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	err = w.greet(ctx, l, out)
	go func() {
		defer close(w.gone)
		w.cmd.Wait() // what it did is on record and in its log
	}()
	if err != nil {
		w.abandon()
		<-w.gone
		return cmp.Or(ctx.Err(), w.said(), err)
	}
	return nil
}

// greet tells the watchdog what it needs, and waits until it is ready.
func (w *watchdog) greet(ctx context.Context, l leash, out io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.cmd.Process.Kill() })
	defer stop()
	if err := json.NewEncoder(w.pipe).Encode(l); err != nil {
		return err
	}
	word := make([]byte, len(wordReady))
	if _, err := io.ReadFull(out, word); err != nil {
		return fmt.Errorf("it was not ready within %s: %w", startWithin, cmp.Or(ctx.Err(), err))
	}
	return nil
}

// said returns the first line of what the watchdog wrote to its log as an error; nil where it wrote none.
func (w *watchdog) said() error {
	text, err := os.ReadFile(w.log)
	if said, _, _ := strings.Cut(string(text), "\n"); err == nil && said != "" {
		return errors.New(strings.TrimPrefix(said, "david: "))
	}
	return err
}

func (w *watchdog) pid() int { return w.cmd.Process.Pid }

// alive is an error where the watchdog has ended, so that no step is made without one.
func (w *watchdog) alive() error {
	select {
	case <-w.gone:
		return errors.Join(fmt.Errorf("the watchdog, process %d, is gone, and without one nothing is changed", w.pid()), w.said())
	default:
		return nil
	}
}

// dismiss tells the watchdog that there is nothing for it to do, and waits for its end.
func (w *watchdog) dismiss() error {
	_, err := io.WriteString(w.pipe, wordDone)
	w.abandon()
	select {
	case <-w.gone: // also where it went before it was told
		return nil
	case <-time.After(startWithin):
		return errors.Join(fmt.Errorf("the watchdog, process %d, does not end", w.pid()), err)
	}
}

// abandon closes the pipe, as david's death does.
func (w *watchdog) abandon() { w.pipe.Close() }

// StandWatch is the watchdog. It reads where the server and the record are, says that it has reached the
// server, and waits. Where its input ends before it is told that all is done, david is dead, and what is on
// record as neither kept nor undone is set back.
func StandWatch(in io.Reader, out, log io.Writer) error {
	input := bufio.NewReader(in)
	var l leash
	line, err := input.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &l)
	}
	if err != nil {
		return fmt.Errorf("cannot read what to watch: %w", err)
	}
	addr := mysqld.Addr{Network: l.Network, Address: l.Address, User: l.User, Password: mysqld.Secret(l.Password), TLS: l.TLS, Deadline: l.Deadline}
	r, err := reach(addr, l.Dir)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, wordReady); err != nil {
		return fmt.Errorf("cannot say that the watchdog is ready: %w", err)
	}
	if rest, err := io.ReadAll(input); err == nil && string(rest) == wordDone {
		return nil
	}
	return r.bury(addr, log)
}

// reach opens the record, and makes sure that its server answers.
func reach(addr mysqld.Addr, dir string) (*Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	is, err := Identify(ctx, conn)
	if err == nil && !r.Server.is(is) {
		err = ErrOther
	}
	return r, err
}

// bury sets back what a david that died has left.
func (r *Record) bury(addr mysqld.Addr, log io.Writer) error {
	if err := r.again(); err != nil {
		return err
	}
	left := r.unproven()
	fmt.Fprintf(log, "%s david died; changes to be set back: %d\n", time.Now().Format(time.RFC3339), len(left))
	ctx, cancel := context.WithTimeout(context.Background(), watchFor)
	defer cancel()
	err := setBack(ctx, addr, nil, r)
	fmt.Fprintf(log, "%s left to be set back: %d\n", time.Now().Format(time.RFC3339), len(r.unproven()))
	return err
}
