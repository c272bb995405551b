package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/workload"
)

// The memory proof: at most so many connections sort for so long. What more of them would take follows from
// what these did.
const (
	mostBusy = 500
	busyTime = 5 * time.Second
)

// MemoryProof starts a server of an arm, reads the tables in and has all its connections sort rows of the
// first one at a time. It says what the server took, and what it would with its whole buffer pool touched;
// limit counts bytes. A server that is killed for memory fails the proof; any other end of it is an error.
func MemoryProof(ctx context.Context, t Target, arm result.Arm, load result.Workload, limit int64, log string) (m result.MemoryProof, err error) {
	m.Limit = limit
	s, err := t.Begin(ctx, arm, load, log)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.End(context.WithoutCancel(ctx))) }()
	err = observeBusy(ctx, s, load, &m)
	if err == nil {
		return m.Judge(), nil
	}
	if err = alive(ctx, s, err); errors.Is(err, sandbox.ErrMemory) {
		m.Peak = max(m.Peak, limit+1) // it was killed for having more
		return m.Judge(), nil
	}
	return m, err
}

// observeBusy fills in what is seen.
func observeBusy(ctx context.Context, s Session, load result.Workload, m *result.MemoryProof) error {
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	vars, err := conn.Variables(ctx)
	if err != nil {
		return err
	}
	if m.Allowed, err = strconv.Atoi(vars["max_connections"]); err != nil {
		return fmt.Errorf("cannot read max_connections: %w", err)
	}
	if err := workload.Prewarm(ctx, conn, load); err != nil {
		return err
	}
	idle, err := resident(s.PID(), "VmRSS")
	if err != nil {
		return err
	}
	m.Connections = min(m.Allowed, mostBusy) - 1 // this one is idle
	if err := sortAll(ctx, conn, load, m.Connections); err != nil {
		return err
	}
	if m.Peak, err = resident(s.PID(), "VmHWM"); err != nil {
		return err
	}
	m.Each = max(0, m.Peak-idle) / int64(max(1, m.Connections))
	m.Empty, err = unused(ctx, conn)
	return err
}

// sortAll has so many connections sort at a time.
func sortAll(ctx context.Context, conn *mysqld.Conn, load result.Workload, n int) (err error) {
	// Rows of a derived table, which takes temporary memory, ordered by what no index has, which takes a sort
	// buffer.
	query := fmt.Sprintf("SELECT pad FROM (SELECT * FROM `%s`.sbtest1 LIMIT 4000) AS t ORDER BY pad, c LIMIT 1", load.Database)
	list := make([]*mysqld.Single, 0, n)
	defer func() {
		for _, c := range list {
			err = errors.Join(err, c.Close())
		}
	}()
	for range n { // one after the other: a server takes only so many that are not answered yet (back_log)
		c, err := conn.Single(ctx)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() { errs[i] = sorts(ctx, c, query) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// sorts has one connection sort until the time is over.
func sorts(ctx context.Context, c *mysqld.Single, query string) (err error) {
	for end := time.Now().Add(busyTime); err == nil && time.Now().Before(end); {
		_, err = c.Rows(ctx, 0, query)
	}
	return err
}

// unused returns what of the buffer pool has not been touched, in bytes.
func unused(ctx context.Context, conn *mysqld.Conn) (int64, error) {
	status, err := conn.Status(ctx)
	if err != nil {
		return 0, err
	}
	counters := mysqld.Counters(status)
	return int64(counters["innodb_buffer_pool_pages_free"] * counters["innodb_page_size"]), nil
}

// resident reads a process's memory from /proc, in bytes: "VmRSS" now, "VmHWM" at the most so far.
func resident(pid int, name string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("cannot see the server's memory: %w", err)
	}
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != name+":" {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot see the server's memory: %s: %w", name, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("cannot see the server's memory: /proc/%d/status has no %s", pid, name)
}
