package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"david/internal/experiment"
	"david/internal/kernel"
)

func (a *app) kernelRollbackCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rollback [DIR|latest]",
		Short: "Set back what david kernel apply changed, the last change first",
		Long: "Set back what one david kernel apply changed. DIR is its folder or its number. Without it, or with latest,\n" +
			"it is the newest that is still in force. Where somebody else has changed one of its settings since, that is\n" +
			"said, and nothing is set back. After an interruption the same command goes on.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("%s takes one folder or number, or latest; see: %s -h", cmd.CommandPath(), cmd.CommandPath())
			}
			return a.kernelRollback(cmd.Context(), append(args, "latest")[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) kernelRollback(ctx context.Context, which string, asJSON bool) error {
	m, err := a.kernelMachine(ctx, "")
	if err != nil {
		return err
	}
	release, err := a.sharing.Lock(a.home, "david kernel rollback", a.env(experiment.BesideVariable))
	if err != nil {
		return err
	}
	defer release()
	r, err := openRecord(m, a.home, which)
	if err != nil {
		return codedError{exitUsage, err}
	}
	u, err := m.Rollback(r)
	if err != nil {
		return kernelError(errors.Join(err, undoneSoFar(u)))
	}
	if asJSON {
		err = a.printJSON(u)
	} else {
		a.printKernelUndone(u, r.Dir())
	}
	return errors.Join(err, a.remarkInForce(m))
}

// openRecord opens a record of kernel settings, by its folder or number, or the one that is next.
func openRecord(m kernel.Machine, home, which string) (*kernel.Record, error) {
	if which == "latest" {
		return m.Newest(home)
	}
	return kernel.Open(home, which)
}

// remarkInForce tells what david has changed beside, and when.
func (a *app) remarkInForce(m kernel.Machine) error {
	others, err := m.InForce(a.home)
	for _, o := range others {
		a.remark("still in force since %s: %s: david kernel rollback %d", o.Created.Format(time.DateTime), m.Holds(o), o.N)
	}
	return err
}

// printKernelUndone tells what was set back of a record.
func (a *app) printKernelUndone(u kernel.Undone, record string) {
	for _, c := range u.Restored {
		fmt.Fprintf(a.out, "%s: %s -> %s\n", c.Title(), c.After, c.Before)
	}
	for _, c := range u.Already {
		if c.Before == c.After {
			fmt.Fprintf(a.out, "%s: was %s before, too, and stays\n", c.Title(), c.Before)
			continue
		}
		fmt.Fprintf(a.out, "%s: is not david's %s any more, and is left\n", c.Title(), c.After)
	}
	if u.Removed != "" {
		fmt.Fprintf(a.out, "%s is removed\n", u.Removed)
	}
	if len(u.Restored)+len(u.Already) == 0 {
		fmt.Fprintf(a.out, "nothing is left to do: all that %s has on record is set back\n", record)
	}
}

// undoneSoFar tells of a rollback that ended early how far it came.
func undoneSoFar(u kernel.Undone) error {
	if n := len(u.Restored) + len(u.Already); n > 0 {
		return fmt.Errorf("%d are set back; the same command goes on", n)
	}
	return nil
}
