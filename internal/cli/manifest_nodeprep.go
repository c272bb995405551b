package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"david/internal/manifest/render"
)

// nodePrepFlags holds the options of david manifest node-prep.
type nodePrepFlags struct {
	storage, disks, layout, node, pool string
}

func (a *app) nodePrepCommand() *cobra.Command {
	var f nodePrepFlags
	cmd := &cobra.Command{
		Use:   "node-prep",
		Short: "Print a script that prepares a node's disks for --storage zfs: pool, dataset, label",
		Long: "Print a script for sh, to be read and then run as root on the node. It refuses disks that hold anything, for which it reads all of each, and makes the pool, the datasets and the\n" +
			"node's label only with --apply. david itself touches no disk.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			p := render.NodePrep{Storage: f.storage, Layout: f.layout, Node: f.node, Pool: f.pool}
			if f.disks != "" {
				p.Disks = strings.Split(f.disks, ",")
			}
			script, err := p.Script()
			if err != nil {
				return codedError{exitUsage, err}
			}
			_, err = fmt.Fprint(a.out, script)
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.storage, "storage", render.ZFS, "zfs or zfs-localpv: both take the same pool")
	fs.StringVar(&f.disks, "disks", "", "the whole disks of the pool, with commas, as in /dev/nvme1n1,/dev/nvme2n1")
	fs.StringVar(&f.layout, "layout", render.Stripe, "stripe, fastest and lost with one disk; or raidz, which survives the loss of one and costs reads")
	fs.StringVar(&f.node, "node", "", "NAME of the node, for its label")
	fs.StringVar(&f.pool, "pool", render.DefaultPool, "NAME of the pool")
	return cmd
}
