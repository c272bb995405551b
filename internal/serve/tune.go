package serve

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// choice is a tune that can be started here.
type choice struct {
	Name, Text string
	args       []string
}

// choices are all that can be started: what a page sends is the name of one, and never an argument.
func choices() []choice {
	return []choice{
		{"quarter", "A tune, 15 minutes", []string{"tune"}},
		{"long", "A long tune, 40 minutes: enough to take lines out", []string{"tune", "--budget", "40m"}},
		{"quick", "A quick look: what a tune does, nothing to rely on", []string{"tune", "--quick"}},
	}
}

// mostSaid is how much of what a tune prints is kept, in bytes.
const mostSaid = 4 << 10

// tuning is the tune that was started here.
type tuning struct {
	On   bool   `json:"on"`
	What string `json:"what,omitempty"` // its command
	Said string `json:"said,omitempty"` // the end of what it printed, once it has ended
}

// tunes starts tunes, one at a time.
type tunes struct {
	program, home string
	mu            sync.Mutex // guards what follows
	now           tuning
	process       *os.Process
	said          *tail
	ended         chan struct{}
}

func (t *tunes) state() tuning {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// start starts a tune. It ends in good order when david serve does, also by kill -9.
func (t *tunes) start(c choice) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.On {
		return errors.New("a tune that was started here is still running")
	}
	said := &tail{}
	cmd := exec.Command(t.program, c.args...)
	cmd.Env = append(os.Environ(), "DAVID_HOME="+t.home)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread whose death ends the tune ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			t.over(cmd.Wait())
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	t.process, t.said, t.ended = cmd.Process, said, ended
	t.now = tuning{On: true, What: "david " + strings.Join(c.args, " ")}
	return nil
}

// over keeps what a tune said last.
func (t *tunes) over(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.On, t.now.Said, t.process = false, t.said.String(), nil
	if err != nil {
		t.now.Said += "\n(" + err.Error() + ")"
	}
}

// stop does what Ctrl-C would.
func (t *tunes) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.process == nil {
		return errors.New("no tune that was started here is running")
	}
	return t.process.Signal(os.Interrupt)
}

// close stops a tune and waits for its end.
func (t *tunes) close() {
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	if t.stop() == nil {
		<-ended
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if cut := len(t.text) - mostSaid; cut > 0 {
		t.text = append(t.text[:0], t.text[cut:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}

// tune starts the tune that a form names.
func (s *Site) tune(w http.ResponseWriter, r *http.Request) {
	for _, c := range choices() {
		if c.Name != r.PostFormValue("choice") {
			continue
		}
		if err := s.tunes.start(c); err != nil {
			s.refuse(w, http.StatusConflict, "No tune was started", err.Error())
			return
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.refuse(w, http.StatusBadRequest, "No tune was started", "Choose one of the list.")
}

// stop ends the tune that was started here.
func (s *Site) stop(w http.ResponseWriter, r *http.Request) {
	if err := s.tunes.stop(); err != nil {
		s.refuse(w, http.StatusConflict, "Nothing was stopped", err.Error())
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
