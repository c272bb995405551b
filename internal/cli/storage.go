package cli

import (
	"errors"
	"github.com/spf13/cobra"

	"david/internal/price"
	"david/internal/storage"
)

// storagePlanFlags are those of david storage plan.
type storagePlanFlags struct {
	volumesFlags
	survive    int
	writeShare float64
}

// likeFlag names the database's machine, as tune's --like does.
const likeFlag = "like"

func (a *app) storageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "storage",
		Short: "What lies under the data: layouts of volumes; moving a running server's data",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.storagePlanCommand(), a.storageMeasureCommand(), a.storageMoveCommand(), a.storageMovesCommand())
	return cmd
}

func (a *app) storagePlanCommand() *cobra.Command {
	f := storagePlanFlags{volumesFlags: volumesFlags{priceFlags: &priceFlags{}}}
	cmd := &cobra.Command{
		Use:   "plan --iops N --size SIZE",
		Short: "Layouts that give so many IOPS on so much room: one volume, stripe, RAID 10, RAIDZ, Ceph; their price, what a lost disk costs, the commands",
		Args:  exactArgs(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return a.storagePlan(f) },
	}
	fs := cmd.Flags()
	f.volumesFlags.add(fs, likeFlag)
	fs.Lookup("bandwidth").Usage = "bytes per second they must sustain, as in 300MiB/s (default: that of --iops pages of 16 KiB)"
	fs.IntVar(&f.survive, "survive", 0, "volumes, or nodes of a Ceph pool, that may be lost without losing data: 0, 1 or 2")
	fs.Float64Var(&f.writeShare, "write-share", 0.5, "share of the operations that are writes, 0 to 1")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// storagePlan tells which layouts give what is asked for.
func (a *app) storagePlan(f storagePlanFlags) error {
	c, r, err := f.request()
	if err != nil {
		return err
	}
	plan, err := storage.New(c, r)
	if err != nil {
		return codedError{exitUsage, err}
	}
	if f.json {
		return a.printJSON(plan)
	}
	return errors.Join(a.fit(plan.Text), plan.Recipes(a.out))
}

// request reads the flags: what may be bought, and what is asked of it.
func (f storagePlanFlags) request() (c price.Catalogue, r storage.Request, err error) {
	r = storage.Request{WriteShare: f.writeShare, Survive: f.survive}
	c, r.Wish, r.Machine, err = f.asked(likeFlag)
	return c, r, err
}
