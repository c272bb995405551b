package live

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// meter reads the counters of the user's traffic through the session. Where that is lost it is not replaced:
// the loss is to be noticed.
type meter struct {
	conn  *session
	Sight result.LiveSight
	hides bool  // its own statements are not in performance_schema
	load  *Load // david's own; nil: none
	asked float64
}

// picosecond is the unit of performance_schema's timers, in seconds.
const picosecond = 1e-12

const (
	histogramQuery = "SELECT BUCKET_NUMBER, BUCKET_TIMER_LOW, BUCKET_TIMER_HIGH, COUNT_BUCKET FROM performance_schema.events_statements_histogram_global WHERE COUNT_BUCKET > 0"
	summaryQuery   = "SELECT 'all', SUM(COUNT_STAR), SUM(SUM_TIMER_WAIT), SUM(SUM_ERRORS) FROM performance_schema.events_statements_summary_global_by_event_name"
	statusQuery    = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Questions', 'Threads_running', 'Aborted_clients', 'Connection_errors_internal', 'Connection_errors_max_connections', 'Innodb_deadlocks')"
	hideStatement  = "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()"
)

// openMeter finds out what can be seen.
func openMeter(ctx context.Context, s *session, flavour mycnf.Flavour) (*meter, error) {
	v, err := variables(ctx, s, "performance_schema")
	if err != nil {
		return nil, err
	}
	m := &meter{conn: s}
	return m, m.look(ctx, flavour, v["performance_schema"] == "ON")
}

// look finds out what can be seen.
func (m *meter) look(ctx context.Context, flavour mycnf.Flavour, schemaOn bool) error {
	if !schemaOn {
		m.Sight.Notes = []string{"performance_schema is off: neither p95 nor failed statements can be seen; the guard has statements/s, threads running at once and broken connections"}
		return nil
	}
	if _, err := m.rows(ctx, 0, hideStatement); err == nil {
		m.hides = true
	} else if mysqld.Number(err) == 0 {
		return err
	}
	sees := func(query string) (bool, error) {
		_, err := m.rows(ctx, 4, query)
		if err != nil && mysqld.Number(err) == 0 {
			return false, err
		}
		if err != nil {
			m.Sight.Notes = append(m.Sight.Notes, err.Error())
		}
		return err == nil, nil
	}
	summary, err := sees(summaryQuery)
	if err != nil {
		return err
	}
	m.Sight.Mean, m.Sight.Errors = summary, summary
	if flavour == mycnf.MariaDB {
		m.Sight.Notes = append(m.Sight.Notes, "MariaDB keeps no histogram of all statements: p95 cannot be seen, the mean latency stands in for it")
		return nil
	}
	if m.Sight.P95, err = sees(histogramQuery); err != nil || !m.Sight.P95 {
		return err
	}
	m.Sight.Notes = append(m.Sight.Notes, "p95 of all statements of the server, from performance_schema's histogram; failed statements")
	return nil
}

// loaded tells the guard of david's own load. Where the server shows no latency, the load's is what is
// judged.
func (m *meter) loaded(l *Load) {
	if m.load = l; l == nil {
		return
	}
	note := "david's own load is part of the traffic that is judged"
	if !m.Sight.P95 && !m.Sight.Mean {
		note = "p95 is that of the transactions of david's own load, from sysbench's report of each second: the latency of the users' own statements is not seen"
	}
	m.Sight.Notes = append(m.Sight.Notes, note)
}

func (m *meter) rows(ctx context.Context, columns int, query string) ([][]string, error) {
	m.asked++
	return m.conn.Rows(ctx, columns, query)
}

// counterReading describes the counters at one moment.
type counterReading struct {
	at         time.Time
	uptime     float64 // seconds
	running    float64 // threads, without this one
	statements float64
	busy       float64 // seconds that statements took
	errors     float64
	histogram  map[string]bucket
	load       []Second // of david's own load, since it began
}

func (m *meter) read(ctx context.Context) (r counterReading, err error) {
	load, err := m.load.soFar()
	if err != nil {
		return r, err
	}
	rows, err := m.rows(ctx, 2, statusQuery)
	if err != nil {
		return r, err
	}
	status := map[string]float64{}
	for _, row := range rows {
		status[row[0]] = number(row[1])
	}
	r = counterReading{at: time.Now(), load: load, uptime: status["Uptime"], running: max(0, status["Threads_running"]-1), statements: status["Questions"] - m.asked,
		errors: status["Aborted_clients"] + status["Connection_errors_internal"] + status["Connection_errors_max_connections"] + status["Innodb_deadlocks"]}
	if m.Sight.Mean {
		if rows, err = m.rows(ctx, 4, summaryQuery); err != nil {
			return r, err
		}
		if err := r.summary(rows); err != nil {
			return r, err
		}
	}
	if m.Sight.P95 {
		if rows, err = m.rows(ctx, 4, histogramQuery); err != nil {
			return r, err
		}
		r.histogram = histogram(rows)
	}
	return r, nil
}

// summary puts what performance_schema counts in the place of the status counters.
func (r *counterReading) summary(rows [][]string) error {
	if len(rows) != 1 || len(rows[0]) != 4 {
		return fmt.Errorf("cannot read performance_schema's summary of statements: %d rows", len(rows))
	}
	r.statements, r.busy, r.errors = number(rows[0][1]), number(rows[0][2])*picosecond, number(rows[0][3])
	return nil
}

// histogram reads buckets; rows of another form are left out.
func histogram(rows [][]string) map[string]bucket {
	all := make(map[string]bucket, len(rows))
	for _, row := range rows {
		if len(row) == 4 {
			all[row[0]] = bucket{number(row[1]) * picosecond, number(row[2]) * picosecond, number(row[3])}
		}
	}
	return all
}

// number returns a counter; 0 for text that is none.
func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0
	}
	return f
}

// between returns the traffic between two readings. running are the threads seen at each look.
func between(a, b counterReading, running []float64) result.LiveWindow {
	w := result.LiveWindow{Seconds: b.at.Sub(a.at).Seconds(), Statements: max(0, b.statements-a.statements), Errors: max(0, b.errors-a.errors)}
	for _, n := range running {
		w.Running += n / float64(len(running))
	}
	w.LoadP95 = loadP95(b.load[len(a.load):])
	if w.Statements >= enough {
		w.P95, w.Mean = latencies(a, b)
	}
	return w
}

// latencies returns p95 and the mean of the statements between two readings, in ms; nil: not seen.
func latencies(a, b counterReading) (p95, mean *float64) {
	if n := b.statements - a.statements; n > 0 && b.busy > a.busy {
		ms := (b.busy - a.busy) / n * 1e3
		mean = &ms
	}
	if b.histogram != nil {
		if ms := percentile(grown(a.histogram, b.histogram), 0.95) * 1e3; ms > 0 {
			p95 = &ms
		}
	}
	return p95, mean
}

// A window is divided into so many parts at most, each with enough statements for a p95 of its own.
const (
	mostParts = 10
	partHas   = 40
)

// divided returns the latencies of the parts of a window, of readings in turn: of the kind that latency
// judges by.
func divided(readings []counterReading) (parts []float64) {
	first, last := readings[0], readings[len(readings)-1]
	each := max(partHas, (last.statements-first.statements)/mostParts)
	from := first
	for _, now := range readings[1:] {
		if now.statements-from.statements < each {
			continue
		}
		if ms := latency(from, now); ms > 0 {
			parts = append(parts, ms)
		}
		from = now
	}
	return parts
}

// latency returns that of the statements between two readings, in ms and of the kind that windows are compared
// by; 0: not seen.
func latency(from, now counterReading) float64 {
	p95, mean := latencies(from, now)
	switch {
	case p95 != nil:
		return *p95
	case mean != nil:
		return *mean
	}
	return secondsP95(now.load[len(from.load):])
}

// mostLooks bounds how many looks of a window are on record.
const mostLooks = 120

// looks returns what was seen between readings in turn, of several together where there are many.
func looks(readings []counterReading) (list []result.LiveLook) {
	first, from := readings[0], readings[0]
	each := max(1, (len(readings)+mostLooks-2)/mostLooks) // of one reading, too: a window may end before its second
	for i := each; i < len(readings); i += each {
		now := readings[i]
		done := max(0, now.statements-from.statements)
		look := result.LiveLook{At: now.at.Sub(first.at).Seconds(), Rate: done / max(now.at.Sub(from.at).Seconds(), 1e-3)}
		if ms := latency(from, now); ms > 0 && done >= partHas {
			look.Ms = &ms
		}
		list, from = append(list, look), now
	}
	return list
}
