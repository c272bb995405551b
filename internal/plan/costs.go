package plan

import (
	"fmt"
	"slices"
)

// Cost is what a part of an architecture costs in throughput.
type Cost struct {
	What     string `json:"what"`
	Says     string `json:"says"`
	Measured bool   `json:"measured"` // by david; else it is what others publish
	Source   string `json:"source"`
	Date     string `json:"date"`
	// Ratio is what is left of a throughput, Low and High its 95 % interval: of a pod alone, which is counted. 0
	// where it is in words only.
	Ratio float64 `json:"ratio,omitempty"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	kinds []Kind  // none: all
	pods  bool    // only in Kubernetes
}

// The parts that an experiment of the user's own machine may tell of.
const (
	podPart    = "pod"
	pathPart   = "network path"
	stripePart = "stripe"
	cephPart   = "Ceph RBD"
	apartPart  = "regions" // of copies that commit together over them
)

// podFigure is what is left of a process's throughput in a pod, where its CPUs bind.
const podFigure = "pod-throughput"

// Costs lists them as they are where the user has measured none of them.
func Costs() []Cost {
	const open = "david compare on two such servers would tell"
	pod := figureNamed(podFigure)
	return []Cost{
		{What: podPart, Says: "0.952 [0.935, 0.970] of the process's throughput where CPUs bind, Guaranteed, 52 pairs; counted in the plan", Measured: true, Source: "docs/results.md", Date: pod.Date, Ratio: pod.Default, pods: true},
		{What: pathPart, Says: "the best path between pods (plain routing) left 0.87 of bare metal's throughput", Source: "study P3", Date: "2020", pods: true},
		{What: stripePart, Says: "four volumes of 1,000 IOPS did 3.5 to 3.9 times the transactions of one", Measured: true, Source: "docs/storage.md, single runs on a busy machine", Date: "2026-11", kinds: []Kind{Single, Async, Semisync, Group, Galera, DRBD, Vitess}},
		{What: cephPart, Says: "a write goes to three disks, a read to one; containers come close to bare metal, KVM guests are well behind", Source: "study P4; Ceph documentation", Date: "2016", kinds: []Kind{Ceph}},
		{What: apartPart, Says: "where copies commit together over regions, every commit waits for the round trip to another one", Source: open, Date: looked, kinds: []Kind{Semisync, Group, Galera}},
		{What: "semi-sync", Says: "a commit waits for a round trip and a flush of a relay log more", Source: open, Date: looked, kinds: []Kind{Semisync, Vitess}},
		{What: "group", Says: "a commit waits for a round trip of a majority, then for certification", Source: open, Date: looked, kinds: []Kind{Group}},
		{What: "Galera", Says: "a commit waits for a round trip to the farthest node; flow control stops all for the slowest", Source: open, Date: looked, kinds: []Kind{Galera}},
		{What: "DRBD", Says: "every write of the log waits for the other node's disk", Source: open, Date: looked, kinds: []Kind{DRBD}},
		{What: "NDB", Says: "another engine: no figure of InnoDB holds", Source: open, Date: looked, kinds: []Kind{NDB}},
		{What: "VTGate", Says: "a hop more for every query", Source: open, Date: looked, kinds: []Kind{Vitess}},
	}
}

// costs are those of an architecture, with what the user measured or gave in the place of david's.
func (r Request) costs(a Architecture) (list []Cost) {
	for _, c := range Costs() {
		if (len(c.kinds) == 0 || slices.Contains(c.kinds, a.Kind)) && (!c.pods || r.Kubernetes && !a.Managed) {
			list = append(list, r.asKnown(c))
		}
	}
	return list
}

// asKnown returns a cost as the user knows it.
func (r Request) asKnown(c Cost) Cost {
	given, is := r.Figures[podFigure]
	if c.What == podPart && is && r.Sources[podFigure] == "" {
		c.Says, c.Measured, c.Source, c.Date, c.Ratio = fmt.Sprintf("%.4g of the process's throughput, as given; counted in the plan", given), false, byFlag(podFigure), "", given
		return c
	}
	if i := slices.IndexFunc(r.Costs, func(x Cost) bool { return x.What == c.What }); i >= 0 {
		m := r.Costs[i]
		m.kinds, m.pods = c.kinds, c.pods
		return m
	}
	return c
}

// WithCosts returns the request with what was measured of parts in the place of david's figures; what was given
// stays.
func (r Request) WithCosts(list []Cost) Request {
	r.Costs = list
	for _, c := range list {
		if _, given := r.Figures[podFigure]; c.What == podPart && !given {
			r = r.with(podFigure, c.Ratio)
			sources := map[string]string{podFigure: c.Source + ", " + c.Date}
			for name, from := range r.Sources {
				sources[name] = from
			}
			r.Sources = sources
		}
	}
	return r
}

// Row writes the cost as docs/plan.md has it.
func (c Cost) Row() string {
	return "| " + c.What + " | " + c.Says + " | " + yes(c.Measured) + " | " + c.Source + ", " + c.Date + " |"
}

// From says where the cost is from.
func (c Cost) From() string { return dated(c.Source, c.Date) }
