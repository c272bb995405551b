package cli

import (
	"errors"
	"math"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/price"
)

// volumesFlags holds the options of david price volumes.
type volumesFlags struct {
	*priceFlags
	iops                      float64
	size, bandwidth, instance string
	provider                  string
}

func (a *app) volumesCommand(shared *priceFlags) *cobra.Command {
	f := volumesFlags{priceFlags: shared}
	cmd := &cobra.Command{
		Use:   "volumes --iops N --size SIZE",
		Short: "Ways to so many IOPS on so much room, cheapest first: a large volume, a stripe, provisioned IOPS",
		Args:  exactArgs(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return a.volumes(f) },
	}
	f.add(cmd.Flags(), instanceFlag)
	return cmd
}

const instanceFlag = "instance"

// add registers what is asked of volumes, with a name for the flag of the machine.
func (f *volumesFlags) add(fs *pflag.FlagSet, machine string) {
	fs.Var((*operations)(&f.iops), "iops", "operations per second the volumes must sustain, as in 20000")
	fs.StringVar(&f.size, "size", "", "room they must have, as in 1TiB or 900GiB; GB and TB are powers of ten")
	fs.StringVar(&f.bandwidth, "bandwidth", "", "bytes per second they must sustain, as in 300MiB/s (default: not asked)")
	fs.StringVar(&f.instance, machine, "", "NAME of the catalogue's machine they are for: its provider's volumes only, and no more than it lets through")
	fs.StringVar(&f.provider, "provider", "", "volumes of this provider only, as in EC2")
}

// operations is a flag's number of operations per second.
type operations float64

func (o *operations) String() string { return strconv.FormatFloat(float64(*o), 'f', -1, 64) }

// Type is a number's, so that it is held against the bounds of numbers.
func (*operations) Type() string { return "float64" }

// Set takes any number: which ones make sense, wish says.
func (o *operations) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("give operations per second in digits, as in 20000")
	}
	*o = operations(x)
	return nil
}

// wish reads what is asked of the volumes.
func (f volumesFlags) wish() (w price.Wish, err error) {
	if !(f.iops >= 1) || f.iops > mostNumber || f.iops != math.Trunc(f.iops) {
		return w, usage("--iops %v: give whole operations per second, 1 to %.0f", f.iops, float64(mostNumber))
	}
	w.IOPS = f.iops
	if f.size == "" {
		return w, usage("--size is missing: give the room the volumes must have, as in 1TiB")
	}
	if w.Size, err = price.ParseSize(f.size); err != nil {
		return w, usage("--size %s: %w", f.size, err)
	}
	const most = 1 << 50
	if w.Size > most {
		return w, usage("--size %s: more than 1,024 TiB", f.size)
	}
	if f.bandwidth == "" {
		return w, nil
	}
	if w.Bandwidth, err = price.ParseBandwidth(f.bandwidth); err != nil {
		return w, usage("--bandwidth %s: %w", f.bandwidth, err)
	}
	return w, nil
}

// asked reads all of them: what may be bought, what is asked of it, and the machine it is for, which the flag
// of that name gave; nil: none is.
func (f volumesFlags) asked(machine string) (c price.Catalogue, w price.Wish, m *price.Machine, err error) {
	if c, err = prices(f.catalogue); err != nil {
		return c, w, m, err
	}
	if w, err = f.wish(); err != nil {
		return c, w, m, err
	}
	if f.instance != "" {
		found, err := c.Find("--"+machine, f.instance)
		if err != nil {
			return c, w, m, codedError{exitUsage, err}
		}
		m = &found
	}
	if c, err = c.OnlyOf(f.provider); err != nil {
		return c, w, m, codedError{exitUsage, err}
	}
	return c, w, m, nil
}

func (a *app) volumes(f volumesFlags) error {
	c, w, m, err := f.asked(instanceFlag)
	if err != nil {
		return err
	}
	doc, err := c.VolumesFor(w, m)
	if err != nil {
		return codedError{exitUsage, err}
	}
	if f.json {
		return a.printJSON(doc)
	}
	return a.fit(doc.Text)
}
