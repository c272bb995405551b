// Package price turns measured throughput and wanted IOPS into money. It is pure: catalogues and measurements
// in, US$ out.
//
//	catalogue   machines, managed databases and volumes with their prices and limits, each with source and date (Default, Parse, With)
//	volumes     the ways to get so many IOPS and GiB, side by side (Catalogue.Ways)
//	experiment  US$ a month per 1,000 transactions/s of each arm, and what an untuned machine of that throughput would cost (Catalogue.Quote)
//
// What is uncertain says so; currencies are not mixed: an entry in EUR takes part in sums of US$ only where
// the catalogue states a rate.
package price

import (
	"cmp"
	"fmt"
	"slices"
)

// Catalogue holds what is known of prices. It is dated as a whole, and every entry by itself.
type Catalogue struct {
	Date     string    `yaml:"date" json:"date"`
	Rates    []Rate    `yaml:"rates" json:"rates,omitempty"`
	Machines []Machine `yaml:"machines" json:"machines"`
	Volumes  []Volume  `yaml:"volumes" json:"volumes"`
}

// Rate says how many US$ one unit of a currency is.
type Rate struct {
	Currency string  `yaml:"currency" json:"currency"`
	USD      float64 `yaml:"usd" json:"usd"`
	Source   string  `yaml:"source" json:"source"`
	Date     string  `yaml:"date" json:"date"`
}

// Machine describes a machine, or a managed database, for rent. A limit of 0 is not known.
type Machine struct {
	Name     string  `yaml:"name" json:"name"`
	Provider string  `yaml:"provider" json:"provider"`
	CPUs     float64 `yaml:"cpus" json:"cpus"`
	Memory   Size    `yaml:"memory" json:"memory"` // bytes
	Price    Price   `yaml:"price" json:"price"`   // a month, without volumes unless IncludedIOPS says otherwise
	// IOPS and Volume (bytes/s) bound what it sustains on its volumes together; IncludedIOPS is what the
	// volume in its price gives.
	IOPS         float64   `yaml:"volume_iops" json:"volume_iops,omitempty"`
	IncludedIOPS float64   `yaml:"included_iops" json:"included_iops,omitempty"`
	IncludedSize Size      `yaml:"included_size" json:"included_size,omitempty"` // bytes of that volume
	Volume       Bandwidth `yaml:"volume_bandwidth" json:"volume_bandwidth,omitempty"`
	Network      Bits      `yaml:"network" json:"network,omitempty"` // bits/s
	// LocalDisk tells whether data may lie on disks of the machine, which the limits on volumes do not bound.
	LocalDisk bool     `yaml:"local_disk" json:"local_disk,omitempty"`
	Shared    bool     `yaml:"shared" json:"shared,omitempty"`   // its CPUs are shared with others
	Managed   bool     `yaml:"managed" json:"managed,omitempty"` // a database as a service
	Zones     int      `yaml:"zones" json:"zones,omitempty"`     // that a managed database runs in at once, standbys in the price; 0: one
	Uncertain []string `yaml:"uncertain" json:"uncertain,omitempty"`
	Note      string   `yaml:"note" json:"note,omitempty"`
	Source    string   `yaml:"source" json:"source"`
	Date      string   `yaml:"date" json:"date"`
}

// Doubt tells whether the figure under a key is uncertain.
func (m Machine) Doubt(key string) bool { return slices.Contains(m.Uncertain, key) }

// Takes tells whether a volume is for the machine: its provider's, and of as many zones.
func (m Machine) Takes(v Volume) bool { return m.Provider == v.Provider && m.Zones == v.Zones }

// OwnIOPS returns what its data can count on: of the volume that comes with it, else what it sustains on any.
// 0: not known.
func (m Machine) OwnIOPS() float64 { return cmp.Or(m.IncludedIOPS, m.IOPS) }

// Machine finds a machine by its name.
func (c Catalogue) Machine(name string) (Machine, bool) {
	for _, m := range c.Machines {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}

// Names lists the machines.
func (c Catalogue) Names() []string {
	var names []string
	for _, m := range c.Machines {
		names = append(names, m.Name)
	}
	return names
}

// USD returns a price in US$; false where it is in a currency without a rate.
func (c Catalogue) USD(p Price) (float64, bool) {
	if p.Currency == dollar {
		return p.Amount, true
	}
	for _, r := range c.Rates {
		if r.Currency == p.Currency {
			return p.Amount * r.USD, true
		}
	}
	return 0, false
}

// With returns the catalogue with the entries of another added: one of a name that is there already replaces
// it.
func (c Catalogue) With(other Catalogue) Catalogue {
	c.Date = cmp.Or(other.Date, c.Date)
	c.Rates = merged(c.Rates, other.Rates, func(r Rate) string { return r.Currency })
	c.Machines = merged(c.Machines, other.Machines, func(m Machine) string { return m.Name })
	c.Volumes = merged(c.Volumes, other.Volumes, func(v Volume) string { return v.Name })
	return c
}

func merged[T any](old, more []T, name func(T) string) []T {
	old = slices.Clone(old)
	for _, x := range more {
		if i := slices.IndexFunc(old, func(o T) bool { return name(o) == name(x) }); i >= 0 {
			old[i] = x
		} else {
			old = append(old, x)
		}
	}
	return old
}

// Cheapest returns the machine of the lowest price in US$, no managed database and of certain price, with at
// least so many CPUs and bytes of memory; false where there is none.
func (c Catalogue) Cheapest(cpus, memory float64) (Machine, bool) {
	return c.cheapest(func(m Machine) bool {
		return !m.Managed && !m.Doubt("price") && m.CPUs >= cpus && float64(m.Memory) >= memory
	})
}

func (c Catalogue) cheapest(fits func(Machine) bool) (best Machine, found bool) {
	least := 0.0
	for _, m := range c.Machines {
		usd, ok := c.USD(m.Price)
		if ok && fits(m) && (!found || usd < least) {
			best, least, found = m, usd, true
		}
	}
	return best, found
}

// left counts the machines without a price in US$, for a note.
func (c Catalogue) left() []string {
	n := 0
	for _, m := range c.Machines {
		if _, ok := c.USD(m.Price); !ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("left out: %d machines priced in another currency, for which the catalogue states no exchange rate", n)}
}
