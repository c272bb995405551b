package storage

import (
	"fmt"

	"david/internal/price"
)

// Rates holds operations of 16 KiB a second: all reads, all writes, and at the share asked for.
type Rates struct {
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	Mix    float64 `json:"mix"`
}

// Choice is one layout of one kind of volume that meets a request.
type Choice struct {
	Layout   Kind   `json:"layout"`
	Name     string `json:"name"`
	Volume   string `json:"volume"`
	Provider string `json:"provider"`
	Volumes  int    `json:"volumes"`
	Node     string `json:"node,omitempty"` // the machine that each volume of a Ceph pool has
	// USDMonth is for volumes and nodes, WithMachine with the database's machine; 0: its price is not known.
	USDMonth    float64      `json:"usd_month"`
	WithMachine float64      `json:"usd_month_with_machine,omitempty"`
	Parts       []price.Part `json:"parts"` // they add up to USDMonth
	IOPS        Rates        `json:"iops"`
	UsableGiB   float64      `json:"usable_gib"`
	RawGiB      float64      `json:"raw_gib"`
	Survives    int          `json:"survives"`
	// Lost says what one lost volume costs; Degraded is what is left then, nil where that is nothing.
	Lost     string `json:"lost"`
	Degraded *Rates `json:"degraded_iops,omitempty"`
	// Cap says how much of the volumes' sum the machine lets through, "" where it does not bind.
	Cap            string   `json:"cap,omitempty"`
	UncertainPrice bool     `json:"uncertain_price,omitempty"`
	UncertainIOPS  bool     `json:"uncertain_iops,omitempty"`
	Recipes        []Recipe `json:"recipes"`
	Notes          []string `json:"notes,omitempty"`
	Rule           string   `json:"rule"` // where the layout's figures are from
	Source         string   `json:"source"`
	Date           string   `json:"date"`
}

func (c Choice) doubt() int {
	if c.UncertainPrice || c.UncertainIOPS {
		return 1
	}
	return 0
}

// choice says what the volumes bought give through the layout.
func (r Request) choice(rule Rule, v price.Volume, o price.Option) Choice {
	n := o.Volumes
	l := Layout{rule.Kind, n}
	c := Choice{Layout: rule.Kind, Name: l.Name() + " " + v.Name, Volume: v.Name, Provider: v.Provider, Volumes: n, USDMonth: o.USDMonth, WithMachine: o.WithMachine, Parts: o.Parts,
		UsableGiB: o.EachGiB * rule.usable(n), RawGiB: o.GiB, Survives: rule.Survives, Recipes: l.Recipes(o.EachGiB * rule.usable(n)),
		UncertainPrice: o.UncertainPrice, UncertainIOPS: o.UncertainIOPS || rule.guessed(n), Rule: rule.Source, Source: o.Source, Date: o.Date}
	c.IOPS = r.rates(o.IOPS*rule.reads(n)/float64(n), o.IOPS*rule.writes(n)/float64(n))
	if pages := o.MiBs * (1 << 20) / page; pages > 0 {
		c.IOPS = c.IOPS.least(r.rates(pages, pages/rule.copies(n)))
	}
	switch sum := float64(n) * o.EachIOPS; {
	case rule.isCeph():
		c.Node = o.Name
		r.throughNetwork(&c)
	case sum > o.IOPS+1:
		c.Cap = fmt.Sprintf("%s lets %s of the %s IOPS of its volumes through", r.Machine.Name, price.Number(o.IOPS), price.Number(sum))
	}
	c.Lost, c.Degraded = r.lost(rule, o, c.IOPS)
	if o.Note != "" {
		c.Notes = []string{o.Volume + ": " + o.Note}
	}
	c.Notes = append(c.Notes, rule.limits(n)...)
	return c
}

// fewVolumes is how many any machine takes, or nearly.
const fewVolumes = 8

// limits says what of n volumes, or nodes, the figures do not show.
func (r Rule) limits(n int) []string {
	switch {
	case r.Kind == Ceph3 && n < fiveMonitors:
		return []string{"Ceph of three or four nodes: two lost leave no majority of its monitors, and the pool stops, though a copy is left; --survive 2 takes five nodes or more"}
	case !r.isCeph() && n > fewVolumes:
		return []string{"more than 8 volumes: see how many volumes the machine takes: DigitalOcean attaches 15, small Azure machines 4 to 8"}
	}
	return nil
}

// rates mixes reads and writes by the time that each takes.
func (r Request) rates(reads, writes float64) Rates {
	return Rates{reads, writes, 1 / ((1-r.WriteShare)/reads + r.WriteShare/writes)}
}

func (a Rates) least(b Rates) Rates {
	return Rates{min(a.Reads, b.Reads), min(a.Writes, b.Writes), min(a.Mix, b.Mix)}
}

// lost says what is left when one volume is.
func (r Request) lost(rule Rule, o price.Option, whole Rates) (string, *Rates) {
	if rule.Survives == 0 {
		return "all data: they come back from a backup only", nil
	}
	n := o.Volumes
	reads, writes := rule.left(n)
	left := r.rates(min(whole.Reads, o.EachIOPS*rule.reads(n)*reads), min(whole.Writes, o.EachIOPS*rule.writes(n)*writes))
	if pages := float64(n) * o.EachMiBs * (1 << 20) / page; pages > 0 { // their bandwidth is lost with them
		left = left.least(r.rates(pages*reads, pages/rule.copies(n)*writes))
	}
	what := rule.danger(n)
	if left.Mix < r.IOPS-0.5 {
		what += "; fewer IOPS than asked for"
	}
	return what, &left
}

// danger says what the loss of one of n volumes leads to, where that takes no data.
func (r Rule) danger(n int) string {
	what := "no data"
	switch {
	case r.Kind == RAID10 && n > 2:
		what += ", but the other of its pair takes them until it is replaced"
	case r.Survives == 1:
		what += ", but the next one takes them until it is replaced"
	}
	if r.isCeph() {
		what += r.healing(n)
	}
	return what
}

// backfillFull is how full a disk may be, in %, for Ceph to copy to it what was on a lost one.
const backfillFull = 90

// healing says where n nodes of a pool cannot make up for a lost one among themselves.
func (r Rule) healing(n int) string {
	full := 100 * r.fill * float64(n) / float64(n-1)
	switch {
	case r.copies(n) >= float64(n):
		return "; it heals with a new node only: each that is left has its copy already"
	case full > backfillFull:
		return fmt.Sprintf("; it heals with a new node only: what is on %d would fill the others to %.0f %%, and Ceph copies nothing to a disk above %d %%", n, full, backfillFull)
	}
	return ""
}

// throughNetwork bounds a pool's IOPS by the network.
func (r Request) throughNetwork(c *Choice) {
	most := r.networkPages()
	if c.IOPS.Reads <= most && c.IOPS.Writes <= most {
		return
	}
	c.IOPS = c.IOPS.least(Rates{most, most, most})
	c.Cap = fmt.Sprintf("the network of %s lets %s pages of 16 KiB a second through", r.Machine.Name, price.Number(most))
}
