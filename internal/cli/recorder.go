package cli

import (
	"github.com/spf13/cobra"

	"david/internal/blocklog"
)

// recorderCommand serves a block device for the david that started it.
func (a *app) recorderCommand() *cobra.Command {
	return childCommand(blocklog.Command+" FOLDER IMAGE LOG",
		"Serve a block device whose writes are recorded: what david crash-test --power starts of itself",
		exactArgs(3, "a folder, an image and a log"),
		func(_ *cobra.Command, args []string) error { return blocklog.Serve(args[0], args[1], args[2]) })
}
