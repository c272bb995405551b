package storage

import (
	"fmt"

	"david/internal/price"
)

// leastNode is the memory of a node with one OSD: 4 GiB that an OSD aims at, and as much for the rest.
const leastNode = 8 << 30

// nodes lists the machines that may be a node of a pool: ones like the database's, else all of the volumes'
// provider.
func (r Request) nodes(c price.Catalogue, provider string) []price.Machine {
	if r.Machine != nil {
		return []price.Machine{*r.Machine}
	}
	var list []price.Machine
	for _, m := range c.Machines {
		if m.Provider == provider && !m.Managed && float64(m.Memory) >= leastNode {
			list = append(list, m)
		}
	}
	return list
}

// buyNodes buys n nodes with a volume each, of the machine that makes them cheapest. Its name is the
// option's.
func (r Request) buyNodes(c price.Catalogue, v price.Volume, n int, w price.Wish) (price.Option, error) {
	part := price.Wish{IOPS: w.IOPS / float64(n), Size: price.Size(float64(w.Size) / float64(n)), Bandwidth: price.Bandwidth(float64(w.Bandwidth) / float64(n))}
	var best price.Option
	failed := fmt.Errorf("the catalogue has no machine of %s with 8 GiB for its nodes", v.Provider)
	for _, m := range r.nodes(c, v.Provider) {
		o, err := c.Set(v, 1, part, &m)
		if err == nil && o.WithMachine == 0 {
			err = fmt.Errorf("its nodes are priced in %s, and %w", m.Price.Currency, price.ErrNoRate)
		}
		switch {
		case err != nil:
			failed = err
		case best.Volumes == 0 || o.WithMachine < best.WithMachine:
			best = nodeOf(o, m)
		}
	}
	if best.Volumes == 0 {
		return best, failed
	}
	return r.pool(c, best, n), nil
}

// nodeOf is one node with its volume: it gives no more than its machine lets through.
func nodeOf(o price.Option, m price.Machine) price.Option {
	usd := o.WithMachine - o.USDMonth
	o.Name, o.EachIOPS, o.EachMiBs = m.Name, o.IOPS, o.MiBs
	o.Parts = append(o.Parts, price.Part{What: "node " + m.Name, Count: 1, USDEach: usd, USDMonth: usd})
	o.UncertainPrice = o.UncertainPrice || m.Doubt("price")
	return o
}

// pool is n times one node.
func (r Request) pool(c price.Catalogue, one price.Option, n int) price.Option {
	x := float64(n)
	o := one
	o.Volumes, o.IOPS, o.GiB, o.MiBs, o.USDMonth = n, x*one.IOPS, x*one.GiB, x*one.MiBs, x*one.WithMachine
	o.Parts = nil
	for _, p := range one.Parts {
		o.Parts = append(o.Parts, price.Part{What: p.What, Count: x * p.Count, USDEach: p.USDEach, USDMonth: x * p.USDMonth})
	}
	o.WithMachine = 0
	if r.Machine != nil {
		if usd, ok := c.USD(r.Machine.Price); ok {
			o.WithMachine = o.USDMonth + usd
		}
	}
	return o
}
