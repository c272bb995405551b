package cli

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/plan"
	"david/internal/price"
)

// capacityDocument is what david plan capacity --json prints.
type capacityDocument struct {
	Measured plan.Measured `json:"measured"`
	Hardware plan.Hardware `json:"hardware"`
	plan.Capacity
	Low  float64 `json:"low"` // the ends of what was measured; 0: no interval
	High float64 `json:"high"`
}

func (a *app) capacityCommand() *cobra.Command {
	var f planFlags
	var caps capFlags
	var pool, shared string
	var json bool
	cmd := &cobra.Command{
		Use:   "capacity --from EXPERIMENT --cpus N|--iops N",
		Short: "How many transactions/s a server would carry, from what a transaction took in an experiment",
		Long: "How many transactions/s of an experiment's load a server with other CPUs, another buffer pool or other IOPS would carry, all of it in use: what a transaction\n" +
			"took is scaled, and nothing is measured. Reads between a full pool and the measured one fall in a line, as with uniform keys (docs/plan.md).",
		Args: exactArgs(0, "no arguments"),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.from, "from", "", "DIR, the record of an experiment, its name, an --out folder of david tune, or latest")
	fs.StringVar(&f.arm, "arm", "", "NAME of its arm (default: what the tune handed over, else the fastest that is safe)")
	fs.StringVar(&caps.cpus, "cpus", "", "CPUs that the server would have, as in 2 or 0.5 (default: as many as the measured one)")
	fs.StringVar(&shared, "shared-cpus", "", "CPUs of the machine on which the client runs beside the server, as in 2: what it took is counted (default: the client is elsewhere)")
	fs.StringVar(&caps.iops, "iops", "", "operations/s of 16 KiB that its volume would do, reads and writes each")
	fs.StringVar(&pool, "pool", "", "its buffer pool, as in 512M (default: the measured one)")
	fs.BoolVar(&json, "json", false, "print one JSON document")
	cmd.RunE = func(*cobra.Command, []string) error {
		f.given = func(string) bool { return false }
		d, err := a.capacity(&f, caps, pool, shared)
		switch {
		case err != nil:
			return err
		case json:
			return a.printJSON(d)
		}
		_, err = fmt.Fprint(a.out, d.text())
		return err
	}
	return cmd
}

// capacity reads the flags and the experiment.
func (a *app) capacity(f *planFlags, caps capFlags, pool, shared string) (d capacityDocument, err error) {
	if f.from == "" {
		return d, usage("--from is missing: name the experiment that says what a transaction takes, or latest")
	}
	limits, err := caps.caps()
	if err != nil {
		return d, err
	}
	d.Hardware = plan.Hardware{Cores: limits.CPUs, ReadIOPS: float64(limits.IOPS), WriteIOPS: float64(limits.IOPS)}
	if shared != "" {
		if d.Hardware.Shared, err = strconv.ParseFloat(shared, 64); err != nil || !(d.Hardware.Shared > 0) || math.IsInf(d.Hardware.Shared, 0) {
			return d, usage("--shared-cpus %s: give a number above 0, as in 2", shared)
		}
	}
	bytes, err := sizeFlag("--pool", pool, 1)
	if err != nil {
		return d, err
	}
	var r plan.Request
	if _, err := a.measured(f, &r); err != nil {
		return d, err
	}
	d.Measured = *r.Measured
	r.Data, r.Writes, r.Queries = price.Size(d.Measured.DataBytes), d.Measured.Figures["measured-writes"], d.Measured.Figures["measured-queries"]
	if d.Hardware.Pool = float64(bytes); bytes == 0 {
		d.Hardware.Pool = d.Measured.Pool
	}
	d.Hardware.Cores = cmp.Or(d.Hardware.Cores, d.Measured.CPUs)
	if d.Capacity, err = r.Capacity(d.Hardware); err != nil {
		return d, codedError{exitUsage, err}
	}
	d.Low, d.High, err = r.CapacityInterval(d.Hardware)
	return d, err
}

// client says where the client is taken to be.
func (d capacityDocument) client() string {
	switch took := d.Measured.ClientCPU; {
	case d.Hardware.Shared > 0:
		return fmt.Sprintf("the client runs beside the server, on %g CPUs together, and takes the %.0f us of a transaction that it took", d.Hardware.Shared, took)
	case took > 0:
		return fmt.Sprintf("the client is taken to be elsewhere; beside the server it took %.0f us of CPU of a transaction: --shared-cpus N counts it", took)
	}
	return "the client is taken to be elsewhere"
}

// text says the most first, then what it rests on.
func (d capacityDocument) text() string {
	between := ""
	if d.Low > 0 {
		between = fmt.Sprintf(" (%s to %s)", price.Number(d.Low), price.Number(d.High))
	}
	has := fmt.Sprintf("a pool of %s", host.Size(int64(d.Hardware.Pool)))
	if d.Hardware.Cores > 0 {
		has = fmt.Sprintf("%g CPU%s, %s", d.Hardware.Cores, map[bool]string{true: "s"}[d.Hardware.Cores > 1], has)
	}
	if d.Hardware.ReadIOPS > 0 {
		has += fmt.Sprintf(", %s IOPS", price.Number(d.Hardware.ReadIOPS))
	}
	text := fmt.Sprintf("up to %s transactions/s%s with %s; %s bind\nplan for 70 %% of it: %s transactions/s\n%s\n", price.Number(d.TPS), between, has, d.Binds,
		price.Number(0.7*d.TPS), d.Measured.String())
	text += d.client() + "\n"
	if d.Extrapolated != "" {
		text += "extrapolated: " + d.Extrapolated + "\n"
	}
	return text
}
