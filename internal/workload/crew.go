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

// Crew is a load spread over several clients, on as many machines or pods: this one, the lead, and its hands (Hand). They meet on the server they load, in a
// table of the workload's schema, and go by the server's clock: the lead writes an order with the moments at which all begin to warm up and to measure, each
// hand reads it, runs its share, and writes back what it measured. While the load is on nobody looks at the table.
type Crew struct {
	conn    *mysqld.Conn
	table   string
	clients int
	number  int // of the newest order
	clock   clock
	order   order
}

// crewed is the table in which the clients meet.
const crewed = "david_crew"

// How the clients keep time.
const (
	// notice is from the writing of an order until it is carried out: hands look every crewPoll.
	notice   = 2 * time.Second
	crewPoll = 200 * time.Millisecond
	// crewGap is between the end of the warm-up and the measured run: clients end the warm-up up to a second apart.
	crewGap = 3 * time.Second
	// crewMeet is how long the clients wait for each other to come: images are pulled meanwhile.
	crewMeet = 5 * time.Minute
	// crewLate is how much longer than the lead a hand may take to tell what it measured.
	crewLate = 90 * time.Second
)

// The kinds of orders.
const (
	orderMeet    = "meet"
	orderTrial   = "trial"
	orderDismiss = "dismiss"
)

// order is what the lead writes. Times are the server's, in seconds since 1970.
type order struct {
	ID        string          `json:"id"` // the crew's, so that nobody follows one that is gone
	Kind      string          `json:"kind"`
	Workload  result.Workload `json:"workload,omitzero"`
	Warm, Run float64
}

// report is what a hand writes.
type report struct {
	Name    string       `json:"name"`
	Started float64      `json:"started"`
	Trial   result.Trial `json:"trial"`
	Failed  string       `json:"failed,omitempty"`
}

// ErrCrew says that a client of a spread load did not come, or failed.
var ErrCrew = errors.New("a client of the load failed")

// Meet makes the table and waits until all hands have come. id tells this crew from others; conn is the crew's own from now on.
func Meet(ctx context.Context, conn *mysqld.Conn, database, id string, clients int, say func(string)) (*Crew, error) {
	c := &Crew{conn: conn, table: quote(database) + "." + crewed, clients: clients, order: order{ID: id, Kind: orderMeet}}
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
	return c, c.await(ctx, 0, crewMeet, "come")
}

// await waits until every hand has written a report of that number.
func (c *Crew) await(ctx context.Context, number int, limit time.Duration, what string) error {
	for end := time.Now().Add(limit); ; {
		var ready int
		if err := c.conn.Row(ctx, "SELECT COUNT(*) FROM "+c.table+" WHERE client > 0 AND number = ?", []any{number}, &ready); err != nil {
			return err
		}
		if ready == c.clients-1 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %d of %d did not %s within %s", ErrCrew, c.clients-1-ready, c.clients-1, what, limit)
		}
		if err := sleep(ctx, time.Now().Add(crewPoll)); err != nil {
			return err
		}
	}
}

// Warm is Warm with the whole crew: it has all its time, as the clients agreed on it, and ends shortly before the measured run is to begin.
func (c *Crew) Warm(ctx context.Context, t Target, w result.Workload, settled func([]result.Point) bool, onPoint func(result.Point)) (points []result.Point, seconds float64, settledOK bool, err error) {
	if err := Spreadable(w, c.clients); err != nil {
		return nil, 0, false, err
	}
	if c.clock, err = readClock(ctx, c.conn); err != nil {
		return nil, 0, false, err
	}
	warm := time.Now().Add(notice)
	run := warm.Add(time.Duration(w.Warmup) * time.Second)
	if w.Warmup > 0 {
		run = run.Add(crewGap)
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

// Run is the measured run that Warm has agreed on, merged.
func (c *Crew) Run(ctx context.Context, t Target, onPoint func(result.Point)) (result.Trial, error) {
	w := c.order.Workload
	own, err := c.clock.runAt(ctx, t, share(w, 0, c.clients), c.order.Run, onPoint)
	if err != nil {
		return own.trial, err
	}
	if err := c.await(ctx, c.number, crewLate, "end its run"); err != nil {
		return own.trial, err
	}
	parts := []part{own}
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
func (c *Crew) collect(ctx context.Context, i int) (part, error) {
	var r report
	if _, err := get(ctx, c.conn, c.table, i, &r); err != nil {
		return part{}, err
	}
	if r.Failed != "" {
		return part{}, fmt.Errorf("%w: client %d of %d (%s): %s", ErrCrew, i+1, c.clients, r.Name, r.Failed)
	}
	return part{name: r.Name, started: ofSeconds(r.Started), trial: r.Trial}, nil
}

// Dismiss tells the hands to end, waits a moment for them to read it, and removes the table.
func (c *Crew) Dismiss(ctx context.Context) error {
	c.number++
	err := put(ctx, c.conn, c.table, 0, c.number, order{ID: c.order.ID, Kind: orderDismiss})
	if err == nil {
		err = sleep(ctx, time.Now().Add(4*crewPoll))
	}
	return errors.Join(err, c.conn.Exec(ctx, "DROP TABLE IF EXISTS "+c.table))
}

// Hand is a client that follows a lead. Number is its own, from 1; Name is told with what it measured.
type Hand struct {
	Conn     *mysqld.Conn
	Target   Target
	Database string
	ID       string // of the crew
	Number   int
	Clients  int
	Name     string
	Say      func(string)
}

// Work carries out the lead's orders until it is dismissed. A run that fails is reported to the lead, who ends.
func (h Hand) Work(ctx context.Context) error {
	table := quote(h.Database) + "." + crewed
	if err := h.meet(ctx, table); err != nil {
		return err
	}
	h.Say("waiting for the lead's orders")
	for done := 0; ; {
		var o order
		n, err := get(ctx, h.Conn, table, 0, &o)
		if err != nil {
			return err
		}
		switch {
		case o.ID != h.ID:
			return fmt.Errorf("%w: the crew of this client is gone", ErrCrew)
		case o.Kind == orderDismiss:
			return nil
		case n > done:
			r := h.trial(ctx, o)
			if err := put(ctx, h.Conn, table, h.Number, n, r); err != nil {
				return err
			}
			if done = n; r.Failed != "" {
				return fmt.Errorf("%w: %s", ErrCrew, r.Failed)
			}
		}
		if err := sleep(ctx, time.Now().Add(crewPoll)); err != nil {
			return err
		}
	}
}

// meet waits for the lead's table, which is made when the data is there, and signs on.
func (h Hand) meet(ctx context.Context, table string) error {
	for {
		var o order
		_, err := get(ctx, h.Conn, table, 0, &o)
		if err == nil && o.ID == h.ID {
			return put(ctx, h.Conn, table, h.Number, 0, report{Name: h.Name})
		}
		if err != nil && !missing(err) {
			return err
		}
		if err := sleep(ctx, time.Now().Add(crewPoll)); err != nil {
			return err
		}
	}
}

// missing tells whether an error is that of a schema, a table or a row that is not there yet.
func missing(err error) bool {
	n := mysqld.Number(err)
	return n == 1049 || n == 1146 || errors.Is(err, errNoOrder)
}

func (h Hand) trial(ctx context.Context, o order) report {
	r := report{Name: h.Name}
	c, err := readClock(ctx, h.Conn)
	var p part
	w := share(o.Workload, h.Number, h.Clients)
	if err == nil && w.Warmup > 0 {
		h.Say(fmt.Sprintf("warming up with %d threads", w.Threads))
		if err = sleep(ctx, c.local(o.Warm)); err == nil {
			_, _, _, err = Warm(ctx, h.Target, w, nil, nil)
		}
	}
	if err == nil {
		p, err = c.runAt(ctx, h.Target, w, o.Run, nil)
		h.Say(fmt.Sprintf("%d threads: %.1f transactions/s", w.Threads, p.trial.TPS))
	}
	if err != nil {
		r.Failed = err.Error()
		return r
	}
	r.Started, r.Trial = float64(p.started.UnixMicro())/1e6, p.trial
	return r
}

// clock tells the server's time from this machine's.
type clock struct{ offset time.Duration }

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
			best, c.offset = took, ofSeconds(now).Sub(before.Add(took/2))
		}
	}
	return c, nil
}

func ofSeconds(s float64) time.Time { return time.UnixMicro(int64(s * 1e6)) }

func (c clock) server(t time.Time) float64 { return float64(t.Add(c.offset).UnixMicro()) / 1e6 }

func (c clock) local(s float64) time.Time { return ofSeconds(s).Add(-c.offset) }

// runAt measures from that moment on.
func (c clock) runAt(ctx context.Context, t Target, w result.Workload, at float64, onPoint func(result.Point)) (part, error) {
	if err := sleep(ctx, c.local(at)); err != nil {
		return part{}, err
	}
	trial, err := Run(ctx, t, w, onPoint)
	return part{name: "lead", started: trial.Started.Add(c.offset), trial: trial}, err
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
