package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"david/internal/price"
)

// topology is how many servers share the work.
type topology struct {
	shards  int
	copies  int // of each shard, in the home region, or committing together over several
	readers int // servers of a shard that reads are spread over, with one of them lost
	blocks  bool
	// together: the copies lie in three regions or more, and every commit waits for another one.
	together bool
	// followers are copies of each shard in further regions, which follow asynchronously.
	followers int
}

// perShard counts the servers that hold a shard's data.
func (t topology) perShard() int { return t.copies + t.followers }

// copied returns the bytes that a transaction sends to a copy: its binary log, or, where disks are copied,
// every page.
func (r Request) copied(t topology) float64 {
	if t.blocks {
		return r.figure("writes-per-transaction") * page
	}
	return r.figure("binlog-per-transaction")
}

// need is what one server has to carry so that it is used to --fill of it.
type need struct {
	cores         float64
	reads, writes float64 // operations/s of 16 KiB
	network       float64 // bits/s
	room          price.Size
	pool          float64 // share of the data that its buffer pool holds
	extrapolated  string  // what no measurement stands behind
}

func (n need) iops() float64 { return n.reads + n.writes }

// room returns the size of all data at the end of the time bought for.
func (r Request) room() price.Size {
	return price.Size(float64(r.Data) * math.Pow(1+r.figure("growth"), r.figure("years")))
}

// need says what the busiest server of a topology carries on a machine with so much memory. Reads of pages
// and the CPU they take fall in a line with the share of the data that the pool holds: right for uniform
// keys, the worst case.
func (r Request) need(t topology, memory float64) (need, error) {
	measured := r.figure("measured-pool")
	n := need{room: price.Size(float64(r.room()) / float64(t.shards))}
	n.pool = min(1, r.figure("pool-of-memory")*memory/float64(n.room))
	cold := 0.0
	switch {
	case r.FixedPool:
		n.pool, cold = min(n.pool, measured), 1
	case n.pool < 1 && measured >= 1:
		return n, errors.New("it was measured with all data in the buffer pool, and these are larger: what is read then is not known; measure with a smaller pool, or give --reads-per-transaction and --measured-pool")
	case n.pool < 1:
		cold = (1 - n.pool) / (1 - measured)
	}
	if n.pool < measured && !r.FixedPool {
		n.extrapolated = fmt.Sprintf("the pool would hold %.1f %% of the data, and %.1f %% was measured", 100*n.pool, 100*measured)
	}
	if far := r.beyond(); far != "" {
		n.extrapolated = strings.TrimPrefix(n.extrapolated+"; "+far, "; ")
	}
	warm := min(r.figure("cpu-in-memory"), r.figure("cpu-per-transaction"))
	cpu := warm + (r.figure("cpu-per-transaction")-warm)*cold
	writes, err := r.writesScale()
	if err != nil {
		return n, err
	}
	tps := r.TPS / float64(t.shards) * r.Queries / r.figure("measured-queries") // transactions of the measured length
	carried := r.Writes + (1-r.Writes)/float64(t.readers)
	fill := r.figure("fill")
	n.cores = tps * cpu * carried / 1e6 / fill
	if r.Kubernetes {
		n.cores /= r.figure(podFigure)
	}
	n.reads = tps * r.figure("reads-per-transaction") * cold * carried / fill
	dry := min(r.figure("writes-in-memory"), r.figure("writes-per-transaction"))
	n.writes = tps * (dry + (r.figure("writes-per-transaction")-dry)*cold) * writes / fill
	n.network = 8 * tps * (r.figure("network-per-transaction")*carried + float64(t.perShard()-1)*r.copied(t)*writes) / fill
	return n, nil
}

// writesScale is how much more the queries write than the measured ones.
func (r Request) writesScale() (float64, error) {
	measured := r.figure("measured-writes")
	switch {
	case r.Writes == 0:
		return 0, nil
	case measured == 0:
		return 0, errors.New("what was measured writes nothing, and --writes is not 0: measure a load that writes")
	}
	return r.Writes / measured, nil
}

// Load is what the busiest server carries, of how much.
type Load struct {
	Cores   float64 `json:"cores"` // busy
	OfCores float64 `json:"of_cores"`
	IOPS    float64 `json:"iops"`
	OfIOPS  float64 `json:"of_iops"` // 0: not known
	// UncertainIOPS marks OfIOPS where the catalogue calls it uncertain.
	UncertainIOPS bool       `json:"uncertain_iops,omitempty"`
	MachineIOPS   float64    `json:"machine_iops,omitempty"` // that the machine lets through; 0: not known
	Room          price.Size `json:"room_bytes"`
	OfRoom        price.Size `json:"of_room_bytes"`
	Network       float64    `json:"network_bits"`
	OfNetwork     float64    `json:"of_network_bits,omitempty"` // 0: not known
	Pool          float64    `json:"pool_share"`
	Extrapolated  string     `json:"extrapolated,omitempty"`
}

// loadOf is a need without the room that is kept free.
func (r Request) loadOf(n need) Load {
	fill := r.figure("fill")
	return Load{Cores: n.cores * fill, IOPS: n.iops() * fill, Room: n.room, Network: n.network * fill, Pool: n.pool, Extrapolated: n.extrapolated}
}

func (l Load) String() string {
	text := fmt.Sprintf("the busiest server: %.1f of %g cores, %s of %s IOPS, %s of %s, the pool holds %.0f %%", l.Cores, l.OfCores, price.Number(math.Ceil(l.IOPS)), orUnknown(l.OfIOPS)+map[bool]string{true: "?"}[l.UncertainIOPS], price.GiB(l.Room.GiB()),
		price.GiB(l.OfRoom.GiB()), 100*l.Pool)
	if l.Extrapolated != "" {
		text += "; extrapolated: " + l.Extrapolated
	}
	return text
}

func orUnknown(x float64) string {
	if x == 0 {
		return "?"
	}
	return price.Number(x)
}
