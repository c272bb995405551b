package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"david/internal/ceph"
	"david/internal/sandbox"
)

// CephWrites asks how many pages a second clients write to a Ceph pool: each client to an image of its own, all
// of which is written before.
type CephWrites struct {
	Cluster ceph.Cluster
	Pools   []string
	// Used are the shares of the cluster's room to fill it to, the least first; none: as it is, with the least
	// that is measured on.
	Used    []float64
	Clients []int
	Depth   int // writes that each client has under way
	Rounds  int
	Each    time.Duration
}

// CephCell is what was measured of a pool at one fill.
type CephCell struct {
	Pool     string    `json:"pool"`
	Replicas int       `json:"replicas"`
	Used     float64   `json:"used"`  // share of the cluster's room, as it was
	Bytes    int64     `json:"bytes"` // of data that the clients write to, counted once
	Rows     []CephRow `json:"rows"`
}

// CephRow is one load on a cell, a figure for each round.
type CephRow struct {
	Clients int       `json:"clients"`
	Sync    bool      `json:"sync"` // each write is flushed before the next
	IOPS    []float64 `json:"iops"`
	P99     []float64 `json:"p99_ms"`
}

// leastImage is the smallest image that is measured on, in bytes.
const leastImage = 64 << 20

// Run measures. What it makes in the pools is gone afterwards. Where a cell cannot be measured the others come with the error.
func (c CephWrites) Run(ctx context.Context, l Lab) (cells []CephCell, err error) {
	release, err := l.Sharing.Lock(l.Home, "david study", l.Beside)
	if err != nil {
		return nil, err
	}
	defer release()
	shares := c.Used
	if len(shares) == 0 {
		shares = []float64{0}
	}
	empty, err := c.Cluster.Usage(ctx)
	if err != nil {
		return nil, err
	}
	for _, pool := range c.Pools {
		for _, share := range shares {
			cell, failed := c.cell(ctx, l, pool, share)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("pool %s: %w", pool, failed))
			} else {
				cells = append(cells, cell)
			}
			if stop := c.freed(ctx, l, empty); stop != nil {
				return cells, errors.Join(err, stop)
			}
		}
	}
	return cells, err
}

// How long an OSD may take to give back the room of images that are gone, and what may be left of it, a share of all: its
// database's. The next fill counts that.
const (
	freeing  = 5 * time.Minute
	freeRoom = 0.03
)

// freed waits until the room of the last cell's images is there again: OSDs free it after the image is gone, and the next
// cell would be filled by what they still count. Where somebody else has filled it meanwhile it goes on.
func (c CephWrites) freed(ctx context.Context, l Lab, empty ceph.Usage) error {
	for began := time.Now(); ; {
		u, err := c.Cluster.Usage(ctx)
		if err != nil || u.Share()-empty.Share() < freeRoom || time.Since(began) > freeing {
			return err
		}
		l.say("waiting for the room of what is gone: %.0f %% of the cluster are used, %.0f %% were before", 100*u.Share(), 100*empty.Share())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
}

// cell fills a pool and measures it.
func (c CephWrites) cell(ctx context.Context, l Lab, pool string, share float64) (cell CephCell, err error) {
	p, err := c.Cluster.Pool(ctx, pool)
	if err != nil {
		return cell, err
	}
	w, err := sandbox.OpenIn(l.Home, "")
	if err != nil {
		return cell, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	cell = CephCell{Pool: pool, Replicas: p.Replicas}
	images, err := c.fill(ctx, l, w, &cell, share)
	if err != nil {
		return cell, err
	}
	return cell, c.rounds(ctx, l, &cell, images)
}

// fill makes an image for each client, together so large that the cluster is as full as asked.
func (c CephWrites) fill(ctx context.Context, l Lab, w *sandbox.Workspace, cell *CephCell, share float64) (images []ceph.Image, err error) {
	u, err := c.Cluster.Usage(ctx)
	if err != nil {
		return nil, err
	}
	n := c.Clients[len(c.Clients)-1]
	each := int64((share*float64(u.Total)-float64(u.Used))/float64(cell.Replicas*n)) >> 22 << 22 // whole objects of 4 MiB
	if each < leastImage && share > 0 {
		return nil, refuse("the cluster is %.0f %% full before anything is written: %.0f %% leave no room for %d images of %d MiB", 100*u.Share(), 100*share, n, leastImage>>20)
	}
	each = max(each, leastImage)
	for i := range n {
		l.say("%s: writing image %d of %d, %d MiB each", cell.Pool, i+1, n, each>>20)
		image, err := w.Image(ctx, ceph.Place{Cluster: c.Cluster, Pool: cell.Pool}, each)
		if err != nil {
			return nil, err
		}
		if err := image.Fill(ctx, each); err != nil {
			return nil, err
		}
		images, cell.Bytes = append(images, image), cell.Bytes+each
	}
	cell.Used, err = c.settled(ctx)
	return images, err
}

// settled is the share of the room that is used, once the cluster's manager has counted: it does every few
// seconds.
func (c CephWrites) settled(ctx context.Context) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(7 * time.Second):
	}
	u, err := c.Cluster.Usage(ctx)
	if err != nil {
		return 0, err
	}
	const risky = 0.94 // Ceph's own limit is 0.95
	most, err := c.Cluster.Fullest(ctx)
	if err != nil {
		return 0, err
	}
	if most > risky && u.Share() < risky {
		return 0, fmt.Errorf("its fullest OSD is %.0f %% full, of %.0f %% in all: writes would soon wait for ever; let Ceph's balancer spread the data, or fill it less (--used)", 100*most, 100*u.Share())
	}
	return u.Share(), nil
}

// rounds puts every load on the images in each round, in random order.
func (c CephWrites) rounds(ctx context.Context, l Lab, cell *CephCell, images []ceph.Image) error {
	for _, sync := range []bool{false, true} {
		for _, n := range c.Clients {
			cell.Rows = append(cell.Rows, CephRow{Clients: n, Sync: sync})
		}
	}
	for round := range c.Rounds {
		l.say("%s, %.0f %% used: round %d of %d", cell.Pool, 100*cell.Used, round+1, c.Rounds)
		for _, i := range rand.Perm(len(cell.Rows)) {
			row := &cell.Rows[i]
			r, err := c.Cluster.Write(ctx, ceph.Load{Images: images[:row.Clients], Depth: c.Depth, Sync: row.Sync, Last: c.Each})
			if err != nil {
				return err
			}
			row.IOPS, row.P99 = append(row.IOPS, r.IOPS), append(row.P99, r.P99.Seconds()*1000)
		}
	}
	return nil
}
