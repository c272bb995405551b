package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"david/internal/price"
)

// hardware is one's own server, as figures describe it.
type hardware struct {
	price, cores, memory, disks, disk, iops, network float64
}

func (r Request) hardware() (h hardware, err error) {
	for name, to := range map[string]*float64{"server-price": &h.price, "server-cpus": &h.cores, "server-memory": &h.memory, "server-disks": &h.disks, "server-disk": &h.disk, "server-iops": &h.iops} {
		x, missing := r.known(name)
		if missing != nil && (err == nil || missing.Error() < err.Error()) { // the first by name, whatever the map's order
			err = missing
		}
		*to = x
	}
	h.network = 1e9 * r.figure("server-network")
	return h, err
}

// buyOwn plans one's own servers: each with its disks as RAID 10, or on a Ceph pool.
func (r Request) buyOwn(a Architecture, t topology) (set, error) {
	h, err := r.hardware()
	if err != nil {
		return set{}, err
	}
	n, err := r.need(t, h.memory)
	if err != nil {
		return set{}, err
	}
	switch {
	case n.cores > h.cores:
		return set{}, fmt.Errorf("%.1f cores are needed to use %.0f %% of them, and --server-cpus is %g", n.cores, 100*r.figure("fill"), h.cores)
	case n.network > h.network:
		return set{}, fmt.Errorf("%.2f Gbit/s are needed, and --server-network is %g", n.network/1e9, h.network/1e9)
	case a.Kind == Ceph:
		return r.buyCeph(h, n)
	}
	load := r.loadOf(n)
	load.OfCores, load.OfNetwork = h.cores, h.network
	load.OfIOPS, load.OfRoom, err = h.mirror(n, r.figure("fill"))
	load.UncertainIOPS = true // computed from one disk's
	if err != nil {
		return set{}, err
	}
	lines, err := r.ownLines("server", float64(t.servers()), 1)
	if err != nil {
		return set{}, err
	}
	if n, what := r.helpers(a); n > 0 {
		small, err := r.ownLines(what+fmt.Sprintf(" (each %.4g of a server)", r.helperShare(h)), n, r.helperShare(h))
		if err != nil {
			return set{}, err
		}
		small[0].Source = r.helperSource()
		lines = slices.Concat(lines, small)
	}
	traffic, err := r.traffic(a, Own, t)
	lines = slices.Concat(lines, traffic)
	return set{t, "own server", fmt.Sprintf("RAID 10 of %g disks", h.disks), load, r.bill(lines, float64(t.shards)*load.IOPS), false, server{}}, err
}

// mirror tells what a server's disks give as RAID 10 (writes go to two): the IOPS of this mix, and the room.
func (h hardware) mirror(n need, fill float64) (iops float64, room price.Size, err error) {
	if h.disks < 2 || math.Mod(h.disks, 2) != 0 {
		return 0, 0, fmt.Errorf("--server-disks %g: RAID 10 takes an even number of disks", h.disks)
	}
	room = price.Size(h.disks * h.disk / 2)
	cost := (n.reads + 2*n.writes) / max(1, n.iops())
	iops = h.disks * h.iops / max(1, cost)
	switch {
	case float64(n.room)/fill > float64(room):
		return 0, 0, fmt.Errorf("%s are needed to use %.0f %% of them, and a server's RAID 10 has %s", price.GiB(float64(n.room)/fill/(1<<30)), 100*fill, price.GiB(room.GiB()))
	case n.iops() > iops:
		return 0, 0, fmt.Errorf("%s IOPS are needed, and a server's RAID 10 gives %s of this mix", price.Number(n.iops()), price.Number(iops))
	}
	return iops, room, nil
}

// The ratios of a Ceph pool. Five nodes are the fewest that make up for a lost one within backfillfull
// (docs/storage.md).
const (
	replicas     = 3
	fewestNodes  = 5
	coresPerDisk = 10 // study P4: one NVMe for 10 physical cores; more NVMe per core is counterproductive
)

// buyCeph plans a pool with three replicas, and two servers for the database: one runs, one is the spare.
func (r Request) buyCeph(h hardware, n need) (set, error) {
	disks, err := h.osds()
	if err != nil {
		return set{}, err
	}
	if n.iops()*page*8 > h.network {
		return set{}, fmt.Errorf("%.2f Gbit/s of pages are needed, and --server-network is %g", n.iops()*page*8/1e9, h.network/1e9)
	}
	fill := r.figure("fill")
	byRoom := replicas * float64(n.room) / fill / (disks * h.disk)
	byIOPS := (n.reads + replicas*n.writes) / (disks * h.iops)
	byNetwork := max(replicas*n.writes, 2*n.writes+n.reads) * page * 8 / h.network // received, sent
	nodes := max(fewestNodes, math.Ceil(byRoom), math.Ceil(byIOPS), math.Ceil(byNetwork))
	if nodes > 1000 {
		return set{}, errors.New("more than 1,000 nodes")
	}
	load := r.loadOf(n)
	load.OfCores, load.OfNetwork = h.cores, h.network
	load.OfRoom = price.Size(nodes * disks * h.disk / replicas)
	// What the pool's disks do of this mix, its networks, or that of the server that asks for it: computed, measured by none.
	all := max(1, n.iops())
	load.OfIOPS = min(nodes*disks*h.iops/((n.reads+replicas*n.writes)/all), nodes*all/max(byNetwork, 1e-9), h.network/(page*8))
	load.UncertainIOPS = true
	lines, err := r.ownLines("Ceph node, its monitor among them", nodes, 1)
	if err != nil {
		return set{}, err
	}
	database, err := r.ownLines("database server (one is the spare)", 2, 1)
	volumes := fmt.Sprintf("RBD on %g nodes, %g OSDs each", nodes, disks)
	return set{topology{shards: 1, copies: 1, readers: 1}, "own server", volumes, load, r.bill(slices.Concat(lines, database), load.IOPS), false, server{}}, err
}

// runningParts name what own hardware takes each month, in the place of --running.
func runningParts() []string {
	return []string{"server-watts", "kwh-price", "cooling", "server-units", "unit-price", "admin-hours", "hour-price"}
}

// runs tells whether any of them was given.
func (r Request) runs() bool {
	return slices.ContainsFunc(runningParts(), func(p string) bool { _, ok := r.Figures[p]; return ok })
}

// helperShare is the part of a server that what only votes, routes or watches is billed as, 1 at most: a virtual machine of its cores
// and memory on a server that other things run on, or a small server of its own.
func (r Request) helperShare(h hardware) float64 {
	if usd, given := r.Figures["helper-price"]; given && h.price > 0 {
		return min(1, usd/h.price)
	}
	return min(1, max(r.figure("helper-cpus")/h.cores, r.figure("helper-memory")/h.memory))
}

// helperSource says where the price of such a share is from.
func (r Request) helperSource() string {
	if _, given := r.Figures["helper-price"]; given {
		return byFlag("helper-price")
	}
	source, date := r.from("helper-cpus")
	return byFlag("server-price") + ", for a share of it (--helper-cpus: " + dated(source, date) + ")"
}

// ownLines bills n servers, or as many of a share of one: bought once, and what they take each month.
func (r Request) ownLines(what string, n, share float64) ([]Line, error) {
	usd, err := r.known("server-price")
	if err != nil {
		return nil, err
	}
	usd *= share
	years := r.figure("years")
	lines := []Line{once(what, n, usd, years, byFlag("server-price"), "")}
	if !r.runs() {
		source, date := r.from("running")
		l := monthly(what+": power, cooling, people", n, usd*r.figure("running")/36, source, date, true)
		l.USDYears = toCents(n * usd * r.figure("running") * years / 3)
		return append(lines, l), nil
	}
	x := map[string]float64{}
	for _, p := range runningParts() {
		if x[p], err = r.known(p); err != nil {
			return nil, err
		}
	}
	kwh := share * x["server-watts"] / 1000 * price.HoursPerMonth
	return append(lines,
		monthly(what+": power, kWh", n*kwh, x["kwh-price"], byFlag("server-watts", "kwh-price"), "", false),
		monthly(what+": cooling, kWh", n*kwh*max(0, x["cooling"]-1), x["kwh-price"], byFlag("cooling", "kwh-price"), "", false),
		monthly(what+": space, units", n*share*x["server-units"], x["unit-price"], byFlag("server-units", "unit-price"), "", false),
		monthly(what+": people, hours", n*share*x["admin-hours"], x["hour-price"], byFlag("admin-hours", "hour-price"), "", false)), nil
}
