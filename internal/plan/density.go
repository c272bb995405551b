package plan

import (
	"cmp"
	"fmt"
	"slices"

	"david/internal/price"
)

// Density is how many writes a second come with a GB (10^9 bytes), study P4's measure.
type Density struct {
	Name      string  `json:"name"`
	Writes    float64 `json:"write_iops"`     // that come with it
	Most      float64 `json:"write_iops_max"` // that can be bought for it
	GB        float64 `json:"gb"`             // usable; 0: per GB as published
	PerGB     float64 `json:"per_gb"`
	PerUsed   float64 `json:"per_gb_used,omitempty"` // with the room filled as planned
	MostUsed  float64 `json:"max_per_gb_used,omitempty"`
	Uncertain bool    `json:"uncertain,omitempty"`
	Note      string  `json:"note,omitempty"`
	Source    string  `json:"source"`
	Date      string  `json:"date"`
}

// density divides; fill is the share of the room that is used.
func density(name string, writes, most, gb, fill float64, uncertain bool, source, date string) Density {
	return Density{Name: name, Writes: writes, Most: most, GB: gb, PerGB: writes / gb, PerUsed: writes / gb / fill, MostUsed: most / gb / fill, Uncertain: uncertain, Source: source, Date: date}
}

// Densities lists the catalogue's volumes of a size, own hardware where it is described, what an experiment
// wrote, and what study P4 has.
func (r Request) Densities(c price.Catalogue, size price.Size) ([]Density, error) {
	r = r.withDefaults()
	if err := r.checkFigures(); err != nil {
		return nil, err
	}
	fill := r.figure("fill")
	var list []Density
	for _, v := range c.Volumes {
		if o, err := c.Set(v, 1, price.Wish{IOPS: 1, Size: size}, nil); err == nil {
			most := o.IOPS
			if len(v.Extra) > 0 {
				most = max(most, boughtMost(v, o.GiB))
			}
			own := o.IOPS
			if len(v.Sizes) == 0 && v.BaseIOPS+v.IOPSPerGiB+v.MinIOPS == 0 { // every one is bought
				own = 0
			}
			list = append(list, density(v.Name, own, most, o.GiB*(1<<30)/1e9, fill, o.UncertainIOPS, v.Source, v.Date))
		}
	}
	slices.SortStableFunc(list, func(a, b Density) int { return cmp.Compare(b.PerGB, a.PerGB) })
	own, err := r.ownDensities(fill)
	if err != nil {
		return nil, err
	}
	list = append(list, own...)
	if m := r.Measured; m != nil {
		pages := m.Figures["writes-in-memory"]
		d := density("measured: "+m.Experiment+", arm "+m.Arm, m.TPS*pages, m.TPS*pages, m.DataBytes/1e9, 1, false, m.String(), "")
		d.Note = "written by its load, not what its disk can do (david probe)"
		list = append(list, d)
		if m.DiskWrites > 0 {
			list = append(list, density("measured: its disk, as probed", m.DiskWrites, m.DiskWrites, m.DataBytes/1e9, 1, false, "experiment "+m.Experiment, ""))
		}
	}
	return append(list, studyDensities()...), nil
}

// boughtMost is how many IOPS may be bought for a volume of so many GiB.
func boughtMost(v price.Volume, gib float64) float64 {
	most := v.MaxIOPS
	if v.MaxPerGiB > 0 {
		most = min(most, v.MaxPerGiB*gib)
	}
	return most
}

// ownDensities describes a server of one's own, and a pool of the fewest nodes; none where nothing is known
// of it.
func (r Request) ownDensities(fill float64) ([]Density, error) {
	if _, ok := r.Figures["server-disk"]; !ok {
		return nil, nil
	}
	h, err := r.hardware()
	if err != nil {
		return nil, err
	}
	mirror := h.disks * h.iops / 2
	list := []Density{density("own, RAID 10 of a server", mirror, mirror, h.disks*h.disk/2/1e9, fill, true, byFlag("server-iops"), "")}
	disks, err := h.osds()
	if err != nil {
		return list, nil // servers that carry no Ceph
	}
	writes := h.poolWrites(fewestNodes, disks)
	source := byFlag("server-iops") + "; each replica is written"
	if writes < fewestNodes*disks*h.iops/replicas {
		source = byFlag("server-network") + ", which binds; each replica crosses it"
	}
	return append(list, density(fmt.Sprintf("own, Ceph of %d nodes, %d replicas", fewestNodes, replicas), writes, writes, fewestNodes*disks*h.disk/replicas/1e9, fill, true, source, "")), nil
}

func studyDensities() []Density {
	study := func(name string, per float64, note string) Density {
		return Density{Name: "study P4: " + name, PerGB: per, Note: note, Source: "study P4", Date: "2016"}
	}
	return []Density{study("Google PD SSD", 30, ""), study("EBS provisioned IOPS", 30, "3 to 10 in RDS"), study("EBS general purpose SSD", 3, ""), study("Azure Premium", 4, "4 to 5"),
		study("Ceph, all flash", 30, "met at 14 % of capacity used, slightly below at 87 %")}
}
