package cli

import (
	"github.com/spf13/cobra"

	"david/internal/blocklog"
)

// recorderCommand serves a block device for the david that started it. It cleans nothing up at its start, as
// other commands do: that david is at work.
func (a *app) recorderCommand() *cobra.Command {
	return &cobra.Command{
		Use:               blocklog.Command + " FOLDER IMAGE LOG",
		Short:             "Serve a block device whose writes are recorded: what david crash-test --power starts of itself",
		Hidden:            true,
		Args:              exactArgs(3, "a folder, an image and a log"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(_ *cobra.Command, args []string) error { return blocklog.Serve(args[0], args[1], args[2]) },
	}
}
