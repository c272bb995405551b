package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
)

// Clients drive one load together, on as many machines or pods: this one, the first, and its workers
// (Worker). They meet on the server they load, in a table of the workload's schema, and go by the server's
// clock: the first writes an order with the moments at which all begin to warm up and to measure, each worker
// reads it, runs its share, and writes back what it measured. While the load is on nobody looks at the table.
type Clients struct {
	conn    *mysqld.Conn
	table   string
	clients int
	number  int // of the newest order
	clock   clock
	order   order
}

// meetingTable has the clients meet. Other versions of david know it, and the orders, by these names.
const meetingTable = "david_crew"

// How the clients keep time.
const (
	// notice passes from the writing of an order until it is carried out: workers look every pollEvery.
	notice    = 2 * time.Second
	pollEvery = 200 * time.Millisecond
	// warmGap keeps the measured run clear of the warm-up, which clients end up to a second apart.
	warmGap = 3 * time.Second
	// joinLimit bounds how long the clients wait for each other to come: images are pulled meanwhile.
	joinLimit = 5 * time.Minute
	// reportLimit bounds how much longer than the first client a worker may take to tell what it measured.
	reportLimit = 90 * time.Second
)

// The kinds of orders.
const (
	orderJoin    = "meet"
	orderTrial   = "trial"
	orderRelease = "dismiss"
)

// order tells the workers what to do. Times are the server's, in seconds since 1970.
type order struct {
	ID        string          `json:"id"` // of the clients, so that nobody follows those that are gone
	Kind      string          `json:"kind"`
	Workload  result.Workload `json:"workload,omitzero"`
	Warm, Run float64
}

// report tells the first client what a worker measured.
type report struct {
	Name    string       `json:"name"`
	Started float64      `json:"started"`
	Trial   result.Trial `json:"trial"`
	Failed  string       `json:"failed,omitempty"`
}

// ErrClients says that a client of a spread load did not come, or failed.
var ErrClients = errors.New("a client of the load failed")

// Join makes the table and waits until all workers have come. id tells these clients from others; conn is
// theirs from now on.
func Join(ctx context.Context, conn *mysqld.Conn, database, id string, clients int, say func(string)) (*Clients, error) {
	c := &Clients{conn: conn, table: quote(database) + "." + meetingTable, clients: clients, order: order{ID: id, Kind: orderJoin}}
	if err := conn.Exec(ctx, "DROP TABLE IF EXISTS "+c.table); err != nil {
		return nil, err
	}
	if err := conn.Exec(ctx, "CREATE TABLE "+c.table+" (client INT NOT NULL PRIMARY KEY, number INT NOT NULL, body LONGTEXT NOT NULL)"); err != nil {
		return nil, err
	}
	var err error
	if c.clock, err = readClock(ctx, conn); err != nil {
		return nil, err
	}
	if err := put(ctx, conn, c.table, 0, 0, c.order); err != nil {
		return nil, err
	}
	say(fmt.Sprintf("waiting for %d more clients", clients-1))
	return c, c.await(ctx, 0, joinLimit, "come")
}

// await waits until every worker has written a report of that number.
func (c *Clients) await(ctx context.Context, number int, limit time.Duration, what string) error {
	for end := time.Now().Add(limit); ; {
		var ready int
		if err := c.conn.Row(ctx, "SELECT COUNT(*) FROM "+c.table+" WHERE client > 0 AND number = ?", []any{number}, &ready); err != nil {
			return err
		}
		if ready == c.clients-1 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %d of %d did not %s within %s", ErrClients, c.clients-1-ready, c.clients-1, what, limit)
		}
		if err := sleep(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// Warm warms up with all clients: it takes all its time, as they agreed on it, and ends shortly before the
// measured run is to begin.
func (c *Clients) Warm(ctx context.Context, t Target, w result.Workload, settled func([]result.Point) bool, onPoint func(result.Point)) (points []result.Point, seconds float64, settledOK bool, err error) {
	if err := Spreadable(w, c.clients); err != nil {
		return nil, 0, false, err
	}
	if c.clock, err = readClock(ctx, c.conn); err != nil {
		return nil, 0, false, err
	}
	warm := time.Now().Add(notice)
	run := warm.Add(time.Duration(w.Warmup) * time.Second)
	if w.Warmup > 0 {
		run = run.Add(warmGap)
	}
	c.number++
	c.order = order{ID: c.order.ID, Kind: orderTrial, Workload: w, Warm: c.clock.server(warm), Run: c.clock.server(run)}
	if err := put(ctx, c.conn, c.table, 0, c.number, c.order); err != nil {
		return nil, 0, false, err
	}
	if err := sleep(ctx, warm); err != nil {
		return nil, 0, false, err
	}
	full := func(p []result.Point) bool { return len(p) >= w.Warmup && settled != nil && settled(p) }
	points, seconds, settledOK, err = Warm(ctx, t, share(w, 0, c.clients), full, onPoint)
	if err != nil {
		return points, seconds, settledOK, err
	}
	return points, seconds, settledOK, sleep(ctx, run.Add(-time.Second))
}

// Run makes the measured run that Warm has agreed on, and merges what all measured.
func (c *Clients) Run(ctx context.Context, t Target, onPoint func(result.Point)) (result.Trial, error) {
	w := c.order.Workload
	own, err := c.clock.runAt(ctx, t, share(w, 0, c.clients), c.order.Run, onPoint)
	if err != nil {
		return own.trial, err
	}
	if err := c.await(ctx, c.number, reportLimit, "end its run"); err != nil {
		return own.trial, err
	}
	parts := []clientPart{own}
	for i := 1; i < c.clients; i++ {
		p, err := c.collect(ctx, i)
		if err != nil {
			return own.trial, err
		}
		parts = append(parts, p)
	}
	return merge(w, parts), nil
}

// collect reads what client i measured.
func (c *Clients) collect(ctx context.Context, i int) (clientPart, error) {
	var r report
	if _, err := get(ctx, c.conn, c.table, i, &r); err != nil {
		return clientPart{}, err
	}
	if r.Failed != "" {
		return clientPart{}, fmt.Errorf("%w: client %d of %d (%s): %s", ErrClients, i+1, c.clients, r.Name, r.Failed)
	}
	return clientPart{name: r.Name, started: ofSeconds(r.Started), trial: r.Trial}, nil
}

// Release tells the workers to end, waits a moment for them to read it, and removes the table.
func (c *Clients) Release(ctx context.Context) error {
	c.number++
	err := put(ctx, c.conn, c.table, 0, c.number, order{ID: c.order.ID, Kind: orderRelease})
	if err == nil {
		err = sleep(ctx, time.Now().Add(4*pollEvery))
	}
	return errors.Join(err, c.conn.Exec(ctx, "DROP TABLE IF EXISTS "+c.table))
}

// Worker follows the first client. Number is its own, from 1; Name is told with what it measured.
type Worker struct {
	Conn     *mysqld.Conn
	Target   Target
	Database string
	ID       string // of the clients that belong together
	Number   int
	Clients  int
	Name     string
	Say      func(string)
}

// Work carries out the first client's orders until it is released. A run that fails is reported to the first,
// which ends.
func (w Worker) Work(ctx context.Context) error {
	table := quote(w.Database) + "." + meetingTable
	if err := w.join(ctx, table); err != nil {
		return err
	}
	w.Say("waiting for the lead's orders")
	for done := 0; ; {
		var o order
		n, err := get(ctx, w.Conn, table, 0, &o)
		if err != nil {
			return err
		}
		switch {
		case o.ID != w.ID:
			return fmt.Errorf("%w: the other clients of this load are gone", ErrClients)
		case o.Kind == orderRelease:
			return nil
		case n > done:
			r := w.trial(ctx, o)
			if err := put(ctx, w.Conn, table, w.Number, n, r); err != nil {
				return err
			}
			if done = n; r.Failed != "" {
				return fmt.Errorf("%w: %s", ErrClients, r.Failed)
			}
		}
		if err := sleep(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// join waits for the first client's table, which is made when the data is there, and signs on.
func (w Worker) join(ctx context.Context, table string) error {
	for {
		var o order
		_, err := get(ctx, w.Conn, table, 0, &o)
		if err == nil && o.ID == w.ID {
			return put(ctx, w.Conn, table, w.Number, 0, report{Name: w.Name})
		}
		if err != nil && !missing(err) {
			return err
		}
		if err := sleep(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// missing tells whether an error is that of a schema, a table or a row that is not there yet.
func missing(err error) bool {
	n := mysqld.Number(err)
	return n == 1049 || n == 1146 || errors.Is(err, errNoOrder)
}

func (w Worker) trial(ctx context.Context, o order) report {
	r := report{Name: w.Name}
	c, err := readClock(ctx, w.Conn)
	var p clientPart
	load := share(o.Workload, w.Number, w.Clients)
	if err == nil && load.Warmup > 0 {
		w.Say(fmt.Sprintf("warming up with %d threads", load.Threads))
		if err = sleep(ctx, c.local(o.Warm)); err == nil {
			_, _, _, err = Warm(ctx, w.Target, load, nil, nil)
		}
	}
	if err == nil {
		p, err = c.runAt(ctx, w.Target, load, o.Run, nil)
		w.Say(fmt.Sprintf("%d threads: %.1f transactions/s", load.Threads, p.trial.TPS))
	}
	if err != nil {
		r.Failed = err.Error()
		return r
	}
	r.Started, r.Trial = float64(p.started.UnixMicro())/1e6, p.trial
	return r
}

// clock tells the server's time from this machine's: at is when it was server there. at has the steady
// clock's reading, so that nothing changes where this machine's clock is set.
type clock struct{ at, there time.Time }

// readClock asks the server for its time a few times, and believes the answer that came soonest.
func readClock(ctx context.Context, conn *mysqld.Conn) (clock, error) {
	best, c := time.Hour, clock{}
	for range 5 {
		var now float64
		before := time.Now()
		if err := conn.Row(ctx, "SELECT UNIX_TIMESTAMP(NOW(6))", nil, &now); err != nil {
			return c, err
		}
		if took := time.Since(before); took < best {
			best, c = took, clock{before.Add(took / 2), ofSeconds(now)}
		}
	}
	return c, nil
}

func ofSeconds(s float64) time.Time { return time.UnixMicro(int64(s * 1e6)) }

// on returns the server's time at a moment of this process.
func (c clock) on(t time.Time) time.Time { return c.there.Add(t.Sub(c.at)) }

func (c clock) server(t time.Time) float64 { return float64(c.on(t).UnixMicro()) / 1e6 }

func (c clock) local(s float64) time.Time { return c.at.Add(ofSeconds(s).Sub(c.there)) }

// runAt measures from that moment on.
func (c clock) runAt(ctx context.Context, t Target, w result.Workload, at float64, onPoint func(result.Point)) (clientPart, error) {
	if err := sleep(ctx, c.local(at)); err != nil {
		return clientPart{}, err
	}
	trial, err := Run(ctx, t, w, onPoint)
	return clientPart{name: "lead", started: c.on(trial.Started), trial: trial}, err
}

// sleep waits until that moment; one that is over is no wait.
func sleep(ctx context.Context, until time.Time) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// put writes a client's row.
func put(ctx context.Context, conn *mysqld.Conn, table string, client, number int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return conn.Exec(ctx, "REPLACE INTO "+table+" (client, number, body) VALUES (?, ?, ?)", client, number, string(text))
}

// errNoOrder says that the table has no row of that client yet.
var errNoOrder = errors.New("no order yet")

// get reads a client's row.
func get(ctx context.Context, conn *mysqld.Conn, table string, client int, body any) (number int, err error) {
	var found int
	var text string
	err = conn.Row(ctx, "SELECT COUNT(*), COALESCE(MAX(number), 0), COALESCE(MAX(body), '') FROM "+table+" WHERE client = ?", []any{client}, &found, &number, &text)
	if err != nil {
		return 0, err
	}
	if found == 0 {
		return 0, errNoOrder
	}
	if err := json.Unmarshal([]byte(text), body); err != nil {
		return 0, fmt.Errorf("cannot read what client %d wrote: %w", client, err)
	}
	return number, nil
}
