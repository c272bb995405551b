package plan

import (
	"errors"
	"math"
)

// Hardware is what one server has; what is 0 does not bind.
type Hardware struct {
	Cores float64 `json:"cores,omitempty"`
	// Shared are the CPUs of the machine on which the client runs beside the server, as david's own does; 0: the client is elsewhere.
	Shared    float64 `json:"shared_cores,omitempty"`
	Pool      float64 `json:"buffer_pool_bytes"`
	ReadIOPS  float64 `json:"read_iops,omitempty"` // of 16 KiB
	WriteIOPS float64 `json:"write_iops,omitempty"`
	Bits      float64 `json:"network_bits,omitempty"` // a second
}

// Capacity is the most that a server carries.
type Capacity struct {
	TPS          float64 `json:"tps"`
	Binds        string  `json:"binds"`                  // "CPUs", "CPUs with the client's", "reads", "writes" or "network"
	Extrapolated string  `json:"extrapolated,omitempty"` // what no measurement stands behind
}

// Capacity returns how many transactions/s the hardware carries with all of it in use, by the same figures that plans are
// sized with: the other way round. It is an error where the hardware bounds nothing, or the figures do not say enough.
func (r Request) Capacity(h Hardware) (c Capacity, err error) {
	r = r.withDefaults()
	r.TPS = 1
	n, err := r.need(topology{shards: 1, copies: 1, readers: 1}, h.Pool/r.figure("pool-of-memory"))
	if err != nil {
		return c, err
	}
	fill := r.figure("fill")
	client := 0.0
	switch m := r.Measured; {
	case h.Shared == 0:
	case m == nil || m.ClientCPU == 0:
		return c, errors.New("what the client took of CPU was not seen, as of a remote server: plan with the client elsewhere")
	default:
		client = m.ClientCPU
	}
	c = Capacity{TPS: math.Inf(1), Extrapolated: n.extrapolated}
	for _, b := range []struct {
		name      string
		has, each float64
	}{
		{"CPUs", h.Cores, n.cores * fill}, {"CPUs with the client's", h.Shared, n.cores*fill + client/1e6}, {"reads", h.ReadIOPS, n.reads * fill}, {"writes", h.WriteIOPS, n.writes * fill},
		{"network", h.Bits, n.network * fill},
	} {
		if b.has > 0 && b.each > 0 && b.has/b.each < c.TPS {
			c.TPS, c.Binds = b.has/b.each, b.name
		}
	}
	if math.IsInf(c.TPS, 1) {
		return c, errors.New("nothing of the hardware bounds the load: give its cores or its IOPS")
	}
	return c, nil
}

// CapacityInterval returns the capacity at both ends of what was measured, the lesser first: 0 and 0 where there is no
// interval.
func (r Request) CapacityInterval(h Hardware) (low, high float64, err error) {
	if !r.hasInterval() {
		return 0, 0, nil
	}
	cheap, dear := r.ends()
	least, err := r.withDefaults().at(dear).Capacity(h)
	if err != nil {
		return 0, 0, err
	}
	most, err := r.withDefaults().at(cheap).Capacity(h)
	return least.TPS, most.TPS, err
}
