package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// PageBytes is what a write of a Load carries: InnoDB's page.
const PageBytes = 16 << 10

// Load is random writing over images, by a client for each at a time.
type Load struct {
	Images []Image
	Depth  int  // writes that each client has under way
	Sync   bool // each write is flushed before the next, as a commit is: Depth is 1
	Last   time.Duration
}

// Rate holds what a load got done, all clients together. Times are of one write, with its flush.
type Rate struct {
	IOPS      float64
	Mean, P99 time.Duration
}

// grace is for fio to start, and for what it wrote last.
const grace = time.Minute

// Write puts a load on images, by fio's own client of RBD: no filesystem and no loop device are between. It runs
// as david's user, whose the cluster's key is.
func (c Cluster) Write(ctx context.Context, l Load) (Rate, error) {
	args := []string{"--rw=randwrite", fmt.Sprintf("--bs=%d", PageBytes), "--norandommap", "--time_based", "--runtime=" + l.Last.String(), "--group_reporting"}
	if l.Sync {
		args = append(args, "--iodepth=1", "--fsync=1")
	} else {
		args = append(args, fmt.Sprintf("--iodepth=%d", l.Depth))
	}
	out, err := c.fio(ctx, l.Last+grace, l.Images, args...)
	if err != nil {
		return Rate{}, err
	}
	return parseRate(out)
}

// Fill writes all of an image once. bytes is its size.
func (i Image) Fill(ctx context.Context, bytes int64) error {
	const slowest = 4 << 20 // bytes a second
	limit := grace + time.Duration(bytes/slowest)*time.Second
	_, err := i.fio(ctx, limit, []Image{i}, "--rw=write", "--bs=4m", "--iodepth=4", "--end_fsync=1")
	return err
}

// fio runs it with a job for each image.
func (c Cluster) fio(ctx context.Context, limit time.Duration, images []Image, args ...string) ([]byte, error) {
	argv := append([]string{"--output-format=json", "--thread", "--ioengine=rbd", "--clientname=admin", "--randrepeat=0"}, args...)
	for _, i := range images {
		if err := i.Check(); err != nil {
			return nil, err
		}
		argv = append(argv, "--name="+i.Name, "--pool="+i.Pool, "--rbdname="+i.Name)
	}
	return c.run(ctx, limit, "fio", argv...)
}

// parseRate reads fio's JSON (version 3: times in ns).
func parseRate(out []byte) (r Rate, err error) {
	type latency struct {
		Mean       float64            `json:"mean"`
		Percentile map[string]float64 `json:"percentile"`
	}
	var doc struct {
		Jobs []struct {
			Error int `json:"error"`
			Write struct {
				IOPS  float64 `json:"iops"`
				Total latency `json:"lat_ns"`
				Done  latency `json:"clat_ns"`
			} `json:"write"`
			Sync struct {
				Total latency `json:"lat_ns"`
			} `json:"sync"`
		} `json:"jobs"`
	}
	if at := bytes.IndexByte(out, '{'); at > 0 { // what fio and Ceph remark comes first
		out = out[at:]
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) != 1 || doc.Jobs[0].Error != 0 || !(doc.Jobs[0].Write.IOPS > 0) {
		return r, errors.Join(errors.New("cannot read fio's output: it has no writes"), err)
	}
	j := doc.Jobs[0]
	r = Rate{IOPS: j.Write.IOPS, Mean: time.Duration(j.Write.Total.Mean), P99: time.Duration(j.Write.Done.Percentile["99.000000"])}
	if len(j.Sync.Total.Percentile) > 0 {
		r.Mean += time.Duration(j.Sync.Total.Mean)
		r.P99 += time.Duration(j.Sync.Total.Percentile["99.000000"])
	}
	return r, nil
}
