package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ending are the signals that end david in good order. A lost terminal sends SIGHUP; who said nohup wants
// david to go on without it.
func ending() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// untilSignal returns a context that ends with the first of those signals, or when gone is called: whatever
// david has begun is then undone.
//
// SIGPIPE is caught, so that a write to a reader that is gone fails instead of ending david with everything
// as it is.
func untilSignal(parent context.Context) (ctx context.Context, gone func()) {
	ctx, gone = context.WithCancel(parent)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, ending()...)
	go func() {
		select {
		case <-caught:
			gone()
		case <-ctx.Done(): // a reader is gone
		}
		// A second Ctrl-C ends david at once, and the next start cleans up after it. Not within two seconds:
		// supervisors signal the process and its group.
		time.Sleep(2 * time.Second)
		signal.Stop(caught)
	}()
	return ctx, gone
}

// reader watches whoever reads what david prints. Where that is gone, as when the tee of a pipeline was
// interrupted, nobody waits for what david does, and gone is called.
type reader struct {
	file *os.File
	gone func()
}

func (r reader) Write(p []byte) (int, error) {
	n, err := r.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		r.gone()
	}
	return n, err
}

// Fd tells whether a terminal reads.
func (r reader) Fd() uintptr { return r.file.Fd() }
