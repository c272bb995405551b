package cli

import (
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"david/internal/plain"
)

// onTerminal tells whether what is written goes to a terminal.
func onTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour has verdicts and dangers stand out on a terminal that can show it, unless the user wants no colours.
func (a *app) colour(cmd *cobra.Command) {
	unwanted := a.env("NO_COLOR") != "" // whatever it is
	if f := cmd.Flags().Lookup("no-color"); f != nil && f.Value.String() == "true" {
		unwanted = true
	}
	kind := a.env("TERM")
	if w, ok := a.out.(*plain.Writer); ok && !unwanted && kind != "" && kind != "dumb" && onTerminal(w) {
		w.Colour()
	}
}
