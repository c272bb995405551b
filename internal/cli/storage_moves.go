package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"david/internal/move"
)

// movesEntry is a move that david storage moves lists.
type movesEntry struct {
	Datadir string     `json:"datadir"` // the path that the server knows
	Phase   move.Phase `json:"phase"`
	Since   time.Time  `json:"since"`
	InUse   string     `json:"in_use"`
	Idle    string     `json:"idle"` // the place that is not in use
	// Unseen says why it is not known which is which, or who works in the place that is not in use; "" for neither.
	Unseen string `json:"unseen,omitempty"`
	Record string `json:"record"`
}

func (a *app) storageMovesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "moves",
		Short: "List the moves that have not ended, or whose other place is still there: which place is in use, which is not",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			list := []movesEntry{}
			for r, err := range move.All(a.home) {
				if err != nil {
					return err
				}
				if r.Pending() {
					list = append(list, entryOf(r))
				}
			}
			if asJSON {
				return a.printJSON(list)
			}
			return a.printMoves(list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func entryOf(r *move.Record) movesEntry {
	e := movesEntry{Datadir: r.Route.Link, Phase: r.Phase, Record: r.Dir()}
	if n := len(r.Steps); n > 0 {
		e.Since = r.Steps[n-1].At
	}
	var err error
	if e.InUse, e.Idle, err = r.Places(); err == nil {
		err = move.Deserted(e.Idle)
	}
	if err != nil {
		e.Unseen = err.Error()
	}
	return e
}

func (a *app) printMoves(list []movesEntry) error {
	if len(list) == 0 {
		a.tell("no moves; begin one with: david storage move --datadir DIR --to DIR")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "DATADIR\tPHASE\tSINCE\tIN USE\tNOT IN USE")
	for _, e := range list {
		since := e.Since.Local().Format(time.DateTime)
		fmt.Fprintln(w, strings.Join([]string{e.Datadir, string(e.Phase), since, cmp.Or(e.InUse, "?"), cmp.Or(e.Idle, "?")}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range list {
		switch {
		case e.Unseen != "":
			a.remark("%s: %s", e.Datadir, e.Unseen)
		case e.Phase == move.Moved:
			a.remark("%s: david storage move --datadir %[1]s --back goes back, --forget removes what is not in use", e.Datadir)
		case e.Phase == move.Back:
			a.remark("%s: david storage move --datadir %[1]s --forget removes what is not in use", e.Datadir)
		default:
			a.remark("%s: this was interrupted, or goes on: the command that began it goes on; --back gives it up", e.Datadir)
		}
	}
	return nil
}
