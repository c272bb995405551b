// Package hold keeps a server's process, or a filesystem, still for a bounded time, and lets it go again
// whatever happens to david:
//
//	Begin (a guard starts, holds, says so) -> what needs stillness -> End (the guard lets go, and says whether it had to before)
//
// The guard is a process in a session of its own. It lets go when it is told to, when david dies, and at its
// deadline, whichever is first. Where the guard dies, david lets go. Where both die the next david does, by
// Release: what is held must be on record before Begin.
//
// A process that is stopped (SIGSTOP) starts no write any more, so its files, taken one after the other
// meanwhile, are as a kill -9 would leave them: whatever it was told to be written is there, and of what was
// under way any part may be. That is what databases recover from. A filesystem that is frozen (FIFREEZE)
// cannot share blocks between files meanwhile, as that is a write to it: freezing is for snapshots that are
// taken below the filesystem.
package hold

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"david/internal/process"
)

// Target is what is held: a process, or the filesystem that is mounted at a folder.
type Target struct {
	Process    process.ID `json:"process,omitzero"`
	Filesystem string     `json:"filesystem,omitempty"`
}

// String names it in errors.
func (t Target) String() string {
	if t.Filesystem != "" {
		return "the filesystem at " + t.Filesystem
	}
	return fmt.Sprintf("process %d", t.Process.PID)
}

// ErrExpired says that what was held was let go at the deadline, so that what was done meanwhile is not of
// one moment.
var ErrExpired = errors.New("it took longer than it may be held")

// leash is what the guard reads first.
type leash struct {
	Target
	Most time.Duration
}

// The words that go between a david and its guard.
const (
	wordHolding  = "holding" // from now on it may be held
	wordHeld     = "held"
	wordRelease  = "release\n"
	wordReleased = "released"
	wordExpired  = "expired"
)

// patience says for how long a guard is waited for beyond what it is allowed.
const patience = 2 * time.Second

// Hold is a guard at work.
type Hold struct {
	target Target
	most   time.Duration
	pipe   io.WriteCloser
	words  chan string   // what it says
	gone   chan struct{} // closed when it has ended, and what it held is free
	cmd    *exec.Cmd
	err    error // of letting go in the guard's place; valid after gone
}

// Begin starts this very program once more, with argv, as the guard, and returns when the target is held, at
// most so long from now on.
func Begin(ctx context.Context, argv []string, t Target, most time.Duration) (*Hold, error) {
	h := &Hold{target: t, most: most, cmd: exec.Command("/proc/self/exe", argv...), words: make(chan string, 4), gone: make(chan struct{})}
	if err := h.start(); err != nil {
		return nil, fmt.Errorf("cannot start the guard, which lets %s go again: %w", t, err)
	}
	err := json.NewEncoder(h.pipe).Encode(leash{t, most})
	if err == nil {
		err = h.expect(ctx, wordHeld)
	}
	if err != nil {
		h.pipe.Close()
		h.dismiss()
		return nil, fmt.Errorf("cannot hold %s: %w", t, errors.Join(err, h.err))
	}
	return h, nil
}

// dismiss waits until the guard has ended, which its pipe's end has it do; one that does not is killed.
func (h *Hold) dismiss() {
	select {
	case <-h.gone:
	case <-time.After(h.most + patience):
		h.cmd.Process.Kill() // then listen lets go in its place
		<-h.gone
	}
}

func (h *Hold) start() error {
	h.cmd.Args[0] = "david"
	h.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if h.pipe, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := Promptly(h.cmd.Start); err != nil { // the guard is as prompt
		return err
	}
	go h.listen(out)
	return nil
}

// listen hands on what the guard says. Where it ends without having let go, that is done in its place at
// once.
func (h *Hold) listen(out io.Reader) {
	defer close(h.gone)
	defer close(h.words)
	held := false
	for lines := bufio.NewScanner(io.LimitReader(out, 1<<16)); lines.Scan(); {
		word := lines.Text()
		if word == wordHolding {
			held = true
			continue
		}
		held = held && word == wordHeld
		select {
		case h.words <- word:
		default: // more than it has to say
		}
	}
	if held {
		h.err = h.target.Release()
	}
	h.cmd.Wait() // that it ends is all that counts
}

// errSilent says that the guard ended without a word.
var errSilent = errors.New("the guard died, and it was let go in its place")

// errLet says that what was held ran on before it was let go.
var errLet = errors.New("somebody else has let it go meanwhile (SIGCONT)")

// expect waits for a word.
func (h *Hold) expect(ctx context.Context, word string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.most+patience, errors.New("the guard does not answer"))
	defer cancel()
	select {
	case said, ok := <-h.words:
		if !ok {
			return errSilent
		}
		if said != word {
			_, err := judged(said)
			return err
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End lets go. It returns how long the target was held at most; ErrExpired where that is more than it may be, as where the guard
// itself stood still, or it was let go before, by the guard or by somebody else. When it returns the target is free and the guard
// gone, also with an error.
func (h *Hold) End() (held time.Duration, err error) {
	let := h.target.runs()
	_, write := io.WriteString(h.pipe, wordRelease)
	h.pipe.Close()
	h.dismiss()
	said, ok := <-h.words
	if !ok {
		return 0, errors.Join(errSilent, write, h.err)
	}
	held, err = judged(said)
	switch {
	case err == nil && let:
		err = fmt.Errorf("%s: %w", h.target, errLet)
	case err == nil && held > h.most:
		err = fmt.Errorf("%w: it was held for %s", ErrExpired, held.Round(time.Millisecond))
	}
	return held, errors.Join(err, h.err)
}

// judged reads the guard's last word: "released 12ms", "expired 3s", "error: ...".
func judged(said string) (held time.Duration, err error) {
	word, rest, _ := strings.Cut(said, " ")
	switch word {
	case wordReleased, wordExpired:
		held, err = time.ParseDuration(rest)
	default:
		return 0, errors.New(strings.TrimPrefix(said, "error: "))
	}
	if err == nil && word == wordExpired {
		err = fmt.Errorf("%w: it was let go after %s", ErrExpired, held.Round(time.Millisecond))
	}
	return held, err
}

// Guard is the guard: it reads what to hold, holds it, and lets go.
func Guard(in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	var l leash
	line, err := input.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &l)
	}
	if err != nil {
		return fmt.Errorf("cannot read what to hold: %w", err)
	}
	told := make(chan struct{})
	go func() {
		input.ReadBytes('\n') // told to, or david is dead: either way it ends
		close(told)
	}()
	if err := l.guard(told, out); err != nil {
		fmt.Fprintf(out, "error: %v\n", err)
		return err
	}
	return nil
}

// guard holds the target until it is told, or the time is up, which runs from before the first of it is
// still.
func (l leash) guard(told <-chan struct{}, out io.Writer) error {
	began := time.Now()
	late := time.After(l.Most)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	grip, err := l.Target.grip()
	if err != nil {
		return err
	}
	defer grip.close()
	if _, err := fmt.Fprintln(out, wordHolding); err != nil {
		return err
	}
	still := make(chan error, 1)
	go func() { still <- grip.hold(ctx); close(still) }()
	word := wordExpired
	select {
	case err := <-still:
		if err == nil {
			_, err = fmt.Fprintln(out, wordHeld)
		}
		if err != nil {
			return errors.Join(err, grip.free())
		}
		select {
		case <-told:
			word = wordReleased
		case <-late:
		}
	case <-told: // before it was held
	case <-late:
	}
	cancel()
	<-still // or what was let go is held afterwards, for good
	if err := grip.free(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, word, time.Since(began))
	return err
}
