package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/stats"
)

// startup says how long connecting all threads and preparing their statements may take on top of a run's
// time.
const startup = time.Minute

// ErrQueueFull says that with a rate more transactions came than the server got done, until sysbench had
// 131,072 waiting, as many as it can hold (MAX_QUEUE_LEN), and gave up without its statistics.
var ErrQueueFull = errors.New("transactions arrive faster than they are done, until sysbench cannot hold those that wait; ask for a lower rate")

// Run measures a workload once, without warming up (see Warm), and returns what it measured: the trial's
// workload, start, figures, histogram and points, the rest is the caller's. onPoint, which may be nil, gets
// every second as it is printed. The error matches mysqld's kinds (ErrAccess, ErrUnreachable, ...) where the
// server was the cause, and ErrQueueFull; the points up to then are returned with it.
func Run(ctx context.Context, t Target, w result.Workload, onPoint func(result.Point)) (result.Trial, error) {
	return RunUntil(ctx, t, w, nil, onPoint)
}

// RunUntil is Run that may end before its time: enough, which may be nil, gets the seconds so far after each
// of them, and says why nothing more is wanted; "" to go on. sysbench is then stopped and tells no
// statistics: the trial's figures are those of its seconds.
func RunUntil(ctx context.Context, t Target, w result.Workload, enough func([]result.Point) string, onPoint func(result.Point)) (result.Trial, error) {
	m := measured{trial: result.Trial{Schema: result.Schema, Workload: w}, enough: enough, onPoint: onPoint}
	if err := Validate(w); err != nil {
		return m.trial, err
	}
	err := t.execute(ctx, runArgs(t.Addr, w, w.Seconds), t.patience(w.Seconds), m.line)
	out := m.parser.Output()
	fill(&m.trial, out)
	switch {
	case err == nil && m.trial.EndedEarly != "":
		summed(&m.trial)
	case err == nil:
		err = check(out)
	}
	if err = t.asWhom(explain(err, out)); err != nil {
		return m.trial, fmt.Errorf("cannot run %s on %s: %w", w.Name, t.Addr, err)
	}
	return m.trial, nil
}

// measured follows a measured run line by line.
type measured struct {
	trial   result.Trial
	parser  Parser
	enough  func([]result.Point) string
	onPoint func(result.Point)
}

func (m *measured) line(line string) error {
	if m.trial.EndedEarly != "" { // printed before it heard of it
		return nil
	}
	point, err := m.parser.Line(line)
	if m.trial.Started.IsZero() && m.parser.out.Started {
		m.trial.Started = time.Now()
	}
	if point == nil || err != nil {
		return err
	}
	if m.onPoint != nil {
		m.onPoint(*point)
	}
	if m.enough == nil || point.Second >= m.trial.Workload.Seconds {
		return nil
	}
	if m.trial.EndedEarly = m.enough(m.parser.out.Points); m.trial.EndedEarly != "" {
		return errEnough
	}
	return nil
}

// summed gives a trial that ended early the figures of its seconds. Its p95 is the mean of theirs, by their
// transactions: the percentile of all is lost with the histogram.
func summed(t *result.Trial) {
	var done, queries, failed, lost, p95 float64
	for _, p := range t.Points {
		done, queries, failed, lost, p95 = done+p.TPS, queries+p.QPS, failed+p.Errors, lost+p.Reconnects, p95+p.TPS*p.P95
	}
	t.Seconds = float64(len(t.Points)) // one a second
	t.TPS, t.QPS = done/t.Seconds, queries/t.Seconds
	t.Transactions, t.Queries, t.Errors, t.Reconnects = int64(math.Round(done)), int64(math.Round(queries)), int64(math.Round(failed)), int64(math.Round(lost))
	if done > 0 {
		t.Latency = result.Latency{P95: p95 / done}
	}
}

// patience bounds a run of that many seconds.
func (t Target) patience(seconds int) patience {
	return patience{quiet: orMinute(t.Quiet), total: startup + time.Duration(seconds)*time.Second + orMinute(t.Grace)}
}

func orMinute(d time.Duration) time.Duration {
	if d == 0 {
		return time.Minute
	}
	return d
}

// execute runs sysbench with the arguments, writes what it prints to the log and hands it to onLine.
func (t Target) execute(ctx context.Context, args []string, limit patience, onLine func(string) error) (err error) {
	log, err := openLog(t.Log, limit.total)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	way, err := t.findWay(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, way.remove()) }()
	if t.Compressed {
		way.options = append(way.options, "--mysql-compression=on")
	}
	cmd := exec.Command(t.Sysbench.Path, append(args, way.options...)...)
	cmd.Dir = way.folder() // not the user's: sysbench would prefer a script lying there to its own
	cmd.Env = environment(t.Addr)
	if err := t.unprivileged(cmd, way); err != nil {
		return err
	}
	if err := log.line("# " + strings.Join(cmd.Args, " ")); err != nil {
		return err
	}
	return supervise(ctx, cmd, limit, t.start, t.started, func(line string) error {
		if err := log.line(line); err != nil {
			return err
		}
		return onLine(line)
	})
}

func (t Target) start(cmd *exec.Cmd) error {
	return t.inside(func() error {
		if t.Start != nil {
			return t.Start(cmd)
		}
		return cmd.Start()
	})
}

func (t Target) inside(start func() error) error {
	fn := start
	if len(t.CPUs) > 0 {
		fn = func() error { return onCPUs(t.CPUs, start) }
	}
	if t.Inside != nil {
		return t.Inside(fn)
	}
	return fn()
}

func (t Target) started(pid int) {
	if t.Started != nil {
		t.Started(pid)
	}
}

// The most that a run may print, in bytes: sysbench prints a short line a second, and one for each thread that fails.
const (
	mostOutput    = 16 << 20
	mostPerSecond = 4 << 10
)

// runLog keeps what sysbench prints in a file, if any. Lines are written at once, so they outlive david, and synced
// at the end only: a sync each second would disturb the disk being measured.
type runLog struct {
	file       *os.File
	most, left int64 // bytes
}

// openLog opens the log of a run that takes so long at most.
func openLog(path string, total time.Duration) (*runLog, error) {
	l := &runLog{most: mostOutput + mostPerSecond*int64(total/time.Second)}
	l.left = l.most
	if path == "" {
		return l, nil
	}
	var err error
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o644); err != nil {
		return nil, fmt.Errorf("cannot keep sysbench's output: %w", err)
	}
	return l, nil
}

func (l *runLog) line(text string) error {
	if l.left -= int64(len(text)) + 1; l.left < 0 {
		return fmt.Errorf("sysbench printed more than %d MiB and was stopped", l.most>>20)
	}
	if l.file == nil {
		return nil
	}
	if _, err := l.file.WriteString(text + "\n"); err != nil {
		return fmt.Errorf("cannot keep sysbench's output: %w", err)
	}
	return nil
}

// Close syncs and closes the file.
func (l *runLog) Close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.file.Sync(), l.file.Close())
}

// check makes sure the output is that of a whole run.
func check(o Output) error {
	switch {
	case len(o.Fatal) > 0:
		return errors.New("sysbench gave up")
	case o.Final == nil:
		return errors.New("sysbench ended without its statistics")
	case o.Final.Events > 0 && len(o.Histogram) == 0:
		return errors.New("sysbench ended without its histogram")
	}
	return nil
}

// fill turns an output into a trial's figures.
func fill(t *result.Trial, o Output) {
	t.Points = o.Points
	t.StdDevTPS, t.Stalls = spread(t.Points)
	if o.Final == nil {
		return
	}
	s := o.Final
	t.Seconds = s.Seconds
	t.TPS, t.QPS = s.TPS, s.QPS
	t.Transactions, t.Queries, t.Errors, t.Reconnects = s.Transactions, s.Queries, s.Errors, s.Reconnects
	t.Histogram = o.Histogram
	t.Latency = latency(s, o.Histogram)
}

// latency takes percentiles from the histogram and keeps them within the exact minimum and maximum, beyond
// which the middle of a bucket can lie.
func latency(s *Summary, histogram []result.Bucket) result.Latency {
	at := func(p float64) float64 {
		return math.Max(s.Min, math.Min(stats.Percentile(histogram, p), s.Max))
	}
	return result.Latency{Min: s.Min, Avg: s.Avg, P50: at(50), P95: at(95), P99: at(99), Max: s.Max}
}

// spread returns the sample standard deviation of transactions/s over the seconds, and how many of them saw
// no transaction.
func spread(points []result.Point) (stddev float64, stalls int) {
	var tps []float64
	for _, p := range points {
		tps = append(tps, p.TPS)
		if p.TPS == 0 {
			stalls++
		}
	}
	return stats.StdDev(tps), stalls
}

// explain adds to a failure what sysbench said, and gives it the kind of the server's error number in it.
func explain(err error, o Output) error {
	if err == nil || len(o.Fatal) == 0 {
		return err
	}
	if slices.ContainsFunc(o.Fatal, func(f string) bool { return strings.Contains(f, "event queue is full") }) {
		return fmt.Errorf("%w: %w", err, ErrQueueFull)
	}
	number, said := blame(o.Fatal)
	said = brief(said)
	switch number {
	case 5010, 2000: // the first with a name out of freed memory, the second with none: see way.fill
		return fmt.Errorf("%w: %w: the server asks sysbench for the password itself, which it did not ask david for; somebody may sit in between, "+
			"or the server has just been restarted", err, mysqld.ErrDowngrade)
	}
	err = fmt.Errorf("%w: %s", err, said)
	switch number {
	case 1461:
		return fmt.Errorf("%w; raise max_prepared_stmt_count", err)
	case 1146, 1049:
		return fmt.Errorf("%w; load the tables first", err)
	}
	return mysqld.KindOf(number, said, err)
}

// brief cuts the statement short that a message ends with: sysbench's INSERTs take pages.
func brief(said string) string {
	const query, most = " for query '", 60
	at := strings.Index(said, query)
	if at < 0 || len(said) <= at+len(query)+most {
		return said
	}
	return strings.ToValidUTF8(said[:at+len(query)+most], "") + "...'"
}

// blame picks the message that names an error of the server or client library, else the first, with its
// number.
func blame(fatal []string) (number int, said string) {
	pattern := regexp.MustCompile(`\berror:? (\d{4})\b|\berrno = (\d{4})\b`)
	for _, f := range fatal {
		if m := pattern.FindStringSubmatch(f); m != nil {
			if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
				return n, f
			}
		}
	}
	return 0, fatal[0]
}
