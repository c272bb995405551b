package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"david/internal/live"
)

// watchdogChild is the command that david starts of itself while it changes a running server.
const watchdogChild = "live-watchdog"

func (a *app) watchdogCommand() *cobra.Command {
	return watchCommand(watchdogChild, "Set back a step of david tune --apply whose david died: what that starts of itself",
		func(in io.Reader) error { return live.StandWatch(in, a.out, a.err) })
}

// childCommand is a command that david starts of itself. Unlike other commands it cleans nothing up first: the
// david that started it is at work.
func childCommand(use, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Hidden: true, Args: args, RunE: run,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }}
}

// watchCommand is a child that waits for the death of the david that started it.
func watchCommand(use, short string, stand func(in io.Reader) error) *cobra.Command {
	return childCommand(use, short, exactArgs(0, "nothing"), func(cmd *cobra.Command, _ []string) error {
		// Who ends david by a signal to all of a session's processes wants this to be done too. Caught, not
		// ignored: a server that it starts would inherit that.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP)
		return stand(cmd.InOrStdin())
	})
}

// unstopped keeps Ctrl-Z from stopping david in the midst of a step, which nobody would watch then.
func unstopped() { signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP) }

// heard returns a function that shows lines, and a context that ends when one cannot be shown: nobody sees
// any more what is done to the server.
func heard(ctx context.Context, out io.Writer) (tell func(string), until context.Context, end func()) {
	until, cancel := context.WithCancelCause(ctx)
	tell = func(text string) {
		if _, err := fmt.Fprintln(out, text); err != nil {
			cancel(fmt.Errorf("what david does can no longer be shown: %w", err))
		}
	}
	return tell, until, func() { cancel(nil) }
}
