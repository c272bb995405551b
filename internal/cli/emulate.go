package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/result"
)

// emulation names the machine that a sandbox is capped to, and says how well that stands in for it.
type emulation struct {
	machine *result.PricedMachine
	notes   []string
}

// capTo fills in the caps that --like asks for and that were not given by themselves.
func (f *tuneFlags) capTo(ctx context.Context, a *app) (e emulation, err error) {
	if f.like == "" {
		if f.catalogue != "" {
			return e, usage("--catalogue is for --like")
		}
		return e, nil
	}
	c, err := prices(f.catalogue)
	if err != nil {
		return e, err
	}
	m, err := c.Find("--like", f.like)
	if err != nil {
		return e, codedError{exitUsage, err}
	}
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return e, err
	}
	has := ability{cpus: facts.CPU.Usable, memory: facts.Memory.Limit, io: os.Geteuid() == 0 && !f.noVolume}
	f.capFlags, e.notes = has.standFor(m, f.capFlags)
	usd, ok := c.USD(m.Price)
	if !ok && f.objective == result.ForCost {
		return e, usage("--objective cost --like %s: it is priced in %s and the catalogue states no exchange rate: state one with --catalogue, or name a machine priced in US$", m.Name, m.Price.Currency)
	}
	e.machine = &result.PricedMachine{Name: m.Name, CPUs: m.CPUs, USDMonth: usd, Source: m.Source, Date: m.Date}
	return e, nil
}

// ability bounds what this machine can be capped to.
type ability struct {
	cpus   float64
	memory int64 // bytes
	io     bool  // I/O can be capped: by root, on a volume of david's own
}

// standFor makes caps of a machine of the catalogue, leaving those that were given, and says what they cannot
// stand in for.
func (b ability) standFor(m price.Machine, given capFlags) (f capFlags, notes []string) {
	f = given
	var not []string
	switch {
	case f.cpus != "":
	case m.CPUs < b.cpus:
		f.cpus = strconv.FormatFloat(m.CPUs, 'g', -1, 64)
	case m.CPUs > b.cpus:
		not = append(not, fmt.Sprintf("its %g CPUs, as david may use %.4g here", m.CPUs, b.cpus))
	}
	switch {
	case f.memory != "":
	case int64(m.Memory) < b.memory:
		f.memory = mycnf.FormatSize(int64(m.Memory))
	case int64(m.Memory) > b.memory:
		not = append(not, fmt.Sprintf("its %s of memory, as david may use %s here", host.Size(int64(m.Memory)), host.Size(b.memory)))
	}
	not = append(not, b.volumeCaps(m, &f)...)
	not = append(not, "its volume's commit latency and bursts", "its network", "the speed of its CPUs")
	return f, []string{
		fmt.Sprintf("stands in for %s (%s %s a month): %s", m.Name, m.Price.Currency, price.Money(m.Price.Amount, m.Doubt("price")), describeCaps(f)),
		"what it could not stand in for: " + strings.Join(not, "; "),
	}
}

// volumeCaps caps the I/O to what the machine sustains on its volumes.
func (b ability) volumeCaps(m price.Machine, f *capFlags) (not []string) {
	switch {
	case f.iops != "" || f.bandwidth != "":
		return nil
	case m.LocalDisk:
		return []string{"its local disk, whose speed is not in the catalogue: I/O is not capped"}
	case m.OwnIOPS() == 0 && m.Volume == 0:
		return []string{"its volume's IOPS, which are not in the catalogue: give --iops"}
	case !b.io:
		return []string{"its volume's IOPS, as I/O can be capped by root only, on a volume of david's own"}
	}
	if m.OwnIOPS() > 0 {
		f.iops = strconv.FormatInt(int64(m.OwnIOPS()), 10)
	}
	if m.Doubt("volume_iops") || m.Doubt("included_iops") {
		not = append(not, fmt.Sprintf("an IOPS limit that is certain: %.0f is an estimate", m.OwnIOPS()))
	}
	if m.Volume > 0 {
		f.bandwidth = mycnf.FormatSize(int64(m.Volume))
	}
	return not
}

// describeCaps names the caps in words.
func describeCaps(f capFlags) string {
	var parts []string
	for _, c := range []struct{ name, value string }{{"CPUs", f.cpus}, {"of memory", f.memory}, {"IOPS", f.iops}, {"bytes/s", f.bandwidth}} {
		if c.value != "" {
			parts = append(parts, c.value+" "+c.name)
		}
	}
	if len(parts) == 0 {
		return "capped at nothing"
	}
	return "capped at " + strings.Join(parts, ", ")
}
