package price

import (
	"fmt"
	"math"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
)

// Find returns the machine of that name, which a flag gave.
func (c Catalogue) Find(flag, name string) (Machine, error) {
	if m, ok := c.Machine(name); ok {
		return m, nil
	}
	hint := ""
	if near, ok := mycnf.Nearest(name, c.Names()); ok {
		hint = "; did you mean " + near + "?"
	}
	return Machine{}, fmt.Errorf("%s %s: the catalogue has no such machine%s; see: david price catalogue", flag, name, hint)
}

// Payer says what the machine costs that an experiment was measured on: what was said of it, its price or its
// name ("" and 0: nothing), else what the record tells, else the cheapest that could stand for it.
func (c Catalogue) Payer(e Experiment, machine string, usdMonth float64) (Payer, error) {
	switch {
	case usdMonth > 0:
		return Payer{USDMonth: usdMonth}, nil
	case machine != "":
		m, err := c.Find("--machine", machine)
		if err != nil {
			return Payer{}, err
		}
		return c.pays(m, "")
	case e.Like != nil && e.Like.USDMonth > 0:
		return Payer{Name: e.Like.Name, CPUs: e.Like.CPUs, USDMonth: e.Like.USDMonth, Source: e.Like.Source, Date: e.Like.Date}, nil
	case e.Target == result.TargetRemote:
		return Payer{}, fmt.Errorf("the server of %s was a remote one, and what machine it ran on is not known: give --machine or --usd-month", e.ID)
	}
	cpus, memory := e.Needs()
	m, ok := c.Cheapest(cpus, memory)
	if !ok {
		return Payer{}, fmt.Errorf("no machine of the catalogue has %.4g CPUs and %s of memory: give --machine or --usd-month", cpus, host.Size(int64(memory)))
	}
	return c.pays(m, fmt.Sprintf("assumed: the price is that of %s, the cheapest of the catalogue with the %.4g CPUs and %s of memory measured; say otherwise with --machine or --usd-month",
		m.Name, cpus, host.Size(int64(memory))))
}

// pays makes a machine of the catalogue the payer; an error says that its price cannot be told in US$.
func (c Catalogue) pays(m Machine, assumed string) (Payer, error) {
	usd, ok := c.USD(m.Price)
	if !ok {
		return Payer{}, fmt.Errorf("%s is priced in %s (%.2f a month), and the catalogue states no exchange rate: give one with --catalogue, or --usd-month", m.Name,
			m.Price.Currency, m.Price.Amount)
	}
	iops := m.OwnIOPS()
	if m.LocalDisk || assumed != "" { // an assumed machine's volumes are not what was measured
		iops = 0
	}
	return Payer{Name: m.Name, USDMonth: math.Round(usd*100) / 100, CPUs: m.CPUs, IOPS: iops, Assumed: assumed, Doubtful: m.Doubt("price"), Source: m.Source, Date: m.Date}, nil
}
