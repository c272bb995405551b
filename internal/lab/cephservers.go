package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"david/internal/ceph"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/workload"
)

// CephServers asks what several servers get done beside each other on one Ceph: each has its data on an image of its own,
// and clients of its own.
type CephServers struct {
	Place   ceph.Place
	Server  string // as of a request
	Arm     Arm    // how each is configured
	Load    result.Workload
	Servers []int // how many at once, the fewest first
	Rounds  int   // of all of these, in random order
}

// CephCrowd is what so many servers got done, a figure for each round.
type CephCrowd struct {
	Servers int       `json:"servers"`
	Clients int       `json:"clients"` // of each
	TPS     []float64 `json:"tps"`     // of all together
	Least   []float64 `json:"least"`   // of the server that got least done
	P95     []float64 `json:"p95_ms"`  // of the slowest server
}

// Run measures. The images are gone afterwards. Servers that are not loaded stand still meanwhile.
func (c CephServers) Run(ctx context.Context, l Lab) (crowds []CephCrowd, err error) {
	found, err := l.find(ctx, c.Server)
	if err != nil {
		return nil, err
	}
	settings, err := c.settings(ctx, l, found)
	if err != nil {
		return nil, err
	}
	o, err := l.open(ctx, found, opening{kind: result.KindStudy, need: bytesWanted(c.Load)})
	if err != nil {
		return nil, err
	}
	defer func() { err = o.close(err) }()
	arm := c.Arm.upon(rules.Control(found.binary.Flavour), settings, result.Caps{})
	data, _, err := o.target.Prepare(ctx, arm, c.Load)
	if err != nil {
		return nil, err
	}
	var servers []*sandbox.Server
	defer func() { err = errors.Join(err, stopAll(servers)) }()
	for n := range c.Servers[len(c.Servers)-1] {
		s, failed := c.start(ctx, o, data, arm, n)
		if failed != nil {
			return nil, failed
		}
		servers = append(servers, s)
	}
	return c.rounds(ctx, o, servers)
}

func (c CephServers) settings(ctx context.Context, l Lab, found tools) (sets []mycnf.Setting, err error) {
	memory, err := l.Memory(ctx)
	if err != nil {
		return nil, err
	}
	own, err := c.Arm.More(found.binary.Flavour, memory)
	if err != nil {
		return nil, InputError{err}
	}
	return l.UserSettings(ctx, found.binary, "", own)
}

// start starts a server on a copy of the data, on an image of its own, and has it stand still.
func (c CephServers) start(ctx context.Context, o opened, data sandbox.Template, arm result.Arm, n int) (*sandbox.Server, error) {
	const unit = 1 << 20 // an image has whole ones
	layout := result.Layout{Name: fmt.Sprintf("ceph-rbd-%d", n+1), Kind: "ceph-rbd", Volumes: 1, Filesystem: "xfs", Mount: "noatime",
		Bytes: bytesWanted(c.Load) / unit * unit, Ceph: &result.CephPool{Conf: c.Place.Cluster.Conf, Pool: c.Place.Pool}}
	o.say("server %d: an image of the pool %s, and a copy of the data", n+1, c.Place.Pool)
	layout, err := o.workspace.Build(ctx, layout)
	if err != nil {
		return nil, err
	}
	s, _, err := o.workspace.Start(ctx, data, sandbox.StartOptions{Settings: arm.Settings, Layout: layout.Name})
	if err != nil {
		return nil, err
	}
	if err := s.Freeze(true); err != nil {
		return nil, errors.Join(err, stopAll([]*sandbox.Server{s}))
	}
	return s, nil
}

func stopAll(servers []*sandbox.Server) (err error) {
	for _, s := range servers {
		_, stopErr := s.Stop(context.Background())
		err = errors.Join(err, stopErr)
	}
	return err
}

// rounds loads each number of servers in each round, in random order.
func (c CephServers) rounds(ctx context.Context, o opened, servers []*sandbox.Server) ([]CephCrowd, error) {
	var crowds []CephCrowd
	for _, n := range c.Servers {
		crowds = append(crowds, CephCrowd{Servers: n, Clients: c.Load.Threads})
	}
	for round := range c.Rounds {
		for _, i := range rand.Perm(len(crowds)) {
			crowd := &crowds[i]
			o.say("round %d of %d: %s at once", round+1, c.Rounds, count(crowd.Servers, "server"))
			trials, err := c.together(ctx, o, servers[:crowd.Servers])
			if err != nil {
				return nil, err
			}
			crowd.add(trials)
		}
	}
	return crowds, nil
}

// add takes the trials of a round in.
func (c *CephCrowd) add(trials []result.Trial) {
	sum, least, p95 := 0.0, trials[0].TPS, 0.0
	for _, t := range trials {
		sum, least, p95 = sum+t.TPS, min(least, t.TPS), max(p95, t.Latency.P95)
	}
	c.TPS, c.Least, c.P95 = append(c.TPS, sum), append(c.Least, least), append(c.P95, p95)
}

// together loads servers at the same time, each by a load generator of its own, and has them stand still again.
func (c CephServers) together(ctx context.Context, o opened, servers []*sandbox.Server) (trials []result.Trial, err error) {
	for _, s := range servers {
		if err := s.Freeze(false); err != nil {
			return nil, err
		}
	}
	warm := c.Load
	warm.Seconds = max(1, c.Load.Warmup)
	if _, err := c.each(ctx, o, servers, warm); err != nil {
		return nil, err
	}
	if trials, err = c.each(ctx, o, servers, c.Load); err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(servers) {
		err = errors.Join(err, s.Freeze(true))
	}
	return trials, err
}

func (c CephServers) each(ctx context.Context, o opened, servers []*sandbox.Server, load result.Workload) ([]result.Trial, error) {
	trials, failed := make([]result.Trial, len(servers)), make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			trials[i], failed[i] = workload.Run(ctx, workload.Target{Addr: s.Addr(), Sysbench: o.sysbench, Dir: o.workspace.Private()}, load, nil)
			if failed[i] != nil {
				failed[i] = errors.Join(fmt.Errorf("server %d: %w", i+1, failed[i]), s.Alive())
			}
		})
	}
	all.Wait()
	return trials, errors.Join(failed...)
}
