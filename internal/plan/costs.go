package plan

import "slices"

// Cost is what a part of an architecture costs in throughput.
type Cost struct {
	What     string `json:"what"`
	Says     string `json:"says"`
	Measured bool   `json:"measured"` // by david; else it is what others publish
	Source   string `json:"source"`
	Date     string `json:"date"`
	kinds    []Kind // none: all
	pods     bool   // only in Kubernetes
}

// Costs lists them.
func Costs() []Cost {
	const own = "docs/results.md"
	const open = "david compare on two such servers would tell"
	return []Cost{
		{"pod", "0.952 [0.935, 0.970] of the process's throughput where CPUs bind, Guaranteed, 52 pairs; counted in the plan", true, own, "2026-11-22", nil, true},
		{"network path", "the best path between pods (plain routing) left 0.87 of bare metal's throughput", false, "study P3", "2020", nil, true},
		{"stripe", "four volumes of 1,000 IOPS did 3.5 to 3.9 times the transactions of one", true, "docs/storage.md, single runs on a busy machine", "2026-11", []Kind{Single, Async, Semisync, Group, Galera, DRBD, Vitess}, false},
		{"Ceph RBD", "a write goes to three disks, a read to one; containers come close to bare metal, KVM guests are well behind", false, "study P4; Ceph documentation", "2016", []Kind{Ceph}, false},
		{"semi-sync", "a commit waits for a round trip and a flush of a relay log more", false, open, looked, []Kind{Semisync, Vitess}, false},
		{"group", "a commit waits for a round trip of a majority, then for certification", false, open, looked, []Kind{Group}, false},
		{"Galera", "a commit waits for a round trip to the farthest node; flow control stops all for the slowest", false, open, looked, []Kind{Galera}, false},
		{"DRBD", "every write of the log waits for the other node's disk", false, open, looked, []Kind{DRBD}, false},
		{"NDB", "another engine: no figure of InnoDB holds", false, open, looked, []Kind{NDB}, false},
		{"VTGate", "a hop more for every query", false, open, looked, []Kind{Vitess}, false},
	}
}

func (r Request) costs(a Architecture) (list []Cost) {
	for _, c := range Costs() {
		if (len(c.kinds) == 0 || slices.Contains(c.kinds, a.Kind)) && (!c.pods || r.Kubernetes && !a.Managed) {
			list = append(list, c)
		}
	}
	return list
}

// Row writes the cost as docs/plan.md has it.
func (c Cost) Row() string {
	by := "no"
	if c.Measured {
		by = "yes"
	}
	return "| " + c.What + " | " + c.Says + " | " + by + " | " + c.Source + ", " + c.Date + " |"
}
