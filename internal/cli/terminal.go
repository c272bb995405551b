package cli

import (
	"golang.org/x/term"
)

// onTerminal tells whether what is written goes to a terminal.
func onTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
