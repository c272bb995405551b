package crash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"david/internal/blocklog"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
)

// diskBytes is the size of the disk whose power is cut; it takes what is written to it.
const diskBytes = 16 << 30

// Power says what to prove of a server whose disk loses its power, instead of being killed: Kills of the test
// is how often.
//
//	a disk that is recorded -> load -> images of what cuts leave -> mount -> Start (recovery, timed) -> check
type Power struct {
	Test
	Filesystem string         // of sandbox.Filesystems
	Load       time.Duration  // of the server, while its disk is recorded
	Schema     bool           // it is changed meanwhile: tables are made, altered, renamed, emptied, dropped
	Cache      blocklog.Cache // of the disk
	// Every has it cut before every flush of the load in turn, the last Kills of them at most; else at flushes and other
	// moments that are drawn.
	Every bool
	// Within bounds the time of the test: of the cuts those that do not fit are left out, evenly over the load, but
	// for leastCuts. 0: all are made.
	Within time.Duration
}

// leastCuts are made however long they take.
const leastCuts = 3

// powerRun carries a test that runs.
type powerRun struct {
	Power
	disk   *sandbox.Disk
	ledger *ledger
	random *rand.Rand
	first  int64 // moments: the load began
	last   int64 // and ended
	began  time.Time
	result result.CrashTest
}

// Run records, cuts and checks, and returns the record with its verdict. A disk or a server that does not come back is
// part of the verdict; an error says that nothing can be concluded.
func (p Power) Run(ctx context.Context) (c result.CrashTest, err error) {
	began := time.Now()
	empty, err := p.emptyLedger(ctx, p.key())
	if err != nil {
		return c, err
	}
	disk, err := p.Workspace.NewDisk(ctx, empty, p.Filesystem, diskBytes)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	r := &powerRun{Power: p, began: began, disk: disk, ledger: newLedger(p.Seed, p.Threads), random: rand.New(rand.NewPCG(p.Seed, uint64(p.Threads)))}
	r.ledger.schema = &schema{logsOnly: !p.Schema}
	r.result = result.CrashTest{Server: p.Binary.Record(), Threads: p.Threads, Seed: p.Seed, LimitMs: ms(p.Limit),
		Power: &result.Power{Filesystem: p.Filesystem, Cache: string(p.Cache), Every: p.Every}}
	if err := r.record(ctx); err != nil {
		return c, err
	}
	return r.cuts(ctx)
}

// record puts the server under load on the recorded disk.
func (r *powerRun) record(ctx context.Context) (err error) {
	recording, err := r.disk.Record(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, recording.Close()) }()
	s, _, err := r.disk.Start(ctx, recording.Mounted, sandbox.StartOptions{Settings: r.Settings, LogPath: r.LogPath, Caps: r.Caps}, r.patience())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(ctx, s)) }()
	seen := &crashRun{Test: r.Test, server: s}
	if err := seen.look(ctx); err != nil {
		return err
	}
	r.result.Log = seen.result.Log
	if err := hurry(ctx, s.Addr()); err != nil {
		return err
	}
	r.ledger.keep(recording.Moment)
	if r.first, err = recording.Moment(); err != nil {
		return err
	}
	if _, err := killUnderLoad(ctx, s, r.ledger, r.Load); err != nil {
		return died(s, err)
	}
	r.last, err = recording.Moment()
	return err
}

// end ends a server whose data stay, without a shutdown.
func end(ctx context.Context, s *sandbox.Server) error {
	err := s.Kill()
	_, stopErr := s.Stop(context.WithoutCancel(ctx))
	return errors.Join(err, stopErr)
}

// hurry has a server write changed pages soon, so that cuts meet them on their way: otherwise a few seconds
// of load hardly write any. What may be lost does not depend on it.
func hurry(ctx context.Context, addr mysqld.Addr) error {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, set := range []string{"innodb_io_capacity_max = 20000", "innodb_io_capacity = 10000", "innodb_max_dirty_pages_pct_lwm = 0", "innodb_max_dirty_pages_pct = 0"} {
		if err := conn.Exec(ctx, "SET GLOBAL "+set); err != nil {
			return err
		}
	}
	return nil
}

// cuts cuts and checks.
func (r *powerRun) cuts(ctx context.Context) (c result.CrashTest, err error) {
	log, err := r.disk.Log()
	if err != nil {
		return c, err
	}
	for _, one := range log.Records {
		switch {
		case one.End <= r.first || one.End > r.last:
		case one.Flush():
			r.result.Power.Flushes++
		case one.Write():
			r.result.Power.Writes++
		}
	}
	r.result.Power.FlushPoints = log.FlushPoints(r.first, r.last)
	_, r.result.Power.SchemaSteps = r.ledger.schema.until(r.last)
	spent := time.Duration(0) // on cuts
	left := r.choose(log)
	again := badCuts
	for n, of := 0, len(left); len(left) > 0; n++ {
		cut := left[0]
		left = left[1:]
		began := time.Now()
		k, err := r.cut(ctx, cut, log.Records[:cut.At])
		if err != nil {
			return c, fmt.Errorf("cut %d: %w", n+1, cmp.Or(r.mishap(err), err))
		}
		took := time.Since(began)
		spent += took
		if bad(k) && again > 0 && r.affords(took) {
			again--
			err := r.again(ctx, cut, log.Records[:cut.At], k.Cut)
			if ctx.Err() != nil {
				return c, ctx.Err()
			}
			if err != nil { // what was found stays
				k.Cut.AgainFailed = cmp.Or(r.mishap(err), err).Error()
			}
		}
		k.Cut.AtFlush = cut.At < len(log.Records) && log.Records[cut.At].Flush()
		r.result.Rounds = append(r.result.Rounds, k)
		if r.Report != nil {
			r.Report(n+1, of, k)
		}
		if r.Within > 0 {
			each := spent / time.Duration(n+1)
			left = evenly(left, max(leastCuts-(n+1), int((r.Within-time.Since(r.began))/each)))
		}
	}
	return r.result.Judge(), nil
}

// The first badCuts cuts that are not survived are recovered from anew, retries times each: what the disk lacks is lacked
// every time, what is now there and now not is a matter of the server's recovery.
const (
	badCuts = 3
	retries = 2
)

// affords tells whether a cut that took so long can be recovered from twice more: one after which the server was waited
// for in vain is not, nor one that would take a tenth of the time there is.
func (r *powerRun) affords(took time.Duration) bool {
	const mostEach = 10 * time.Second
	return took <= mostEach && (r.Within == 0 || retries*took <= (r.Within-time.Since(r.began))/10)
}

// again recovers from a cut anew, from the same disk, and counts how that goes.
func (r *powerRun) again(ctx context.Context, cut blocklog.Cut, before []blocklog.Record, told *result.Cut) error {
	for range retries {
		k, err := r.cut(ctx, cut, before)
		if err != nil {
			return err
		}
		told.Again++
		if bad(k) {
			told.AgainBad++
		}
	}
	return nil
}

// bad tells whether a recovery lacked or damaged anything, or there was none.
func bad(k result.Kill) bool { return k.Lost > 0 || k.Damage.Sum() > 0 || k.Cut.Failed != "" }

// choose says when the power is cut.
func (r *powerRun) choose(log *blocklog.Log) (cuts []blocklog.Cut) {
	if r.Every {
		return log.EveryFlush(r.Kills, r.first, r.last, r.Cache, r.random)
	}
	return log.Cuts(r.Kills, r.first, r.last, r.Cache, r.random)
}

// evenly returns n of a list, or all where there are no more: as far apart as they can be.
func evenly[T any](list []T, n int) (kept []T) {
	if n >= len(list) {
		return list
	}
	for i := range n {
		kept = append(kept, list[(2*i+1)*len(list)/(2*n)])
	}
	return kept
}

// cut cuts the power once: what is left has to be mounted, and has to be recovered by a server.
func (r *powerRun) cut(ctx context.Context, cut blocklog.Cut, before []blocklog.Record) (k result.Kill, err error) {
	moment := before[len(before)-1].End
	past := r.ledger.at(moment)
	fate, err := r.disk.Image(cut)
	if err != nil {
		return k, err
	}
	k = result.Kill{Acknowledged: past.acknowledged(), Cut: &result.Cut{AtRisk: fate.AtRisk, Lost: fate.Lost, Torn: fate.Torn, Grain: cut.Grain}}
	m, err := r.disk.Mount()
	if errors.Is(err, sandbox.ErrMount) && ctx.Err() == nil {
		k.Cut.Failed = "the filesystem: " + err.Error()
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, took, err := r.disk.Start(ctx, m, sandbox.StartOptions{Settings: telling(r.Binary.Flavour, r.Settings), LogPath: r.LogPath, Caps: r.Caps}, r.patience())
	if dead := r.failed(ctx, err); dead != nil {
		k.Cut.Failed = strings.TrimRight(dead.Line(), ": ")
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, end(ctx, s)) }()
	k.RecoveryMs = ms(took)
	seen, err := r.inspect(ctx, s, past, moment, k)
	if err != nil && ctx.Err() == nil && (serverSays(err) || ended(s)) {
		return cannotRead(k, err), nil
	}
	return seen, err
}

// serverSays tells whether what could not be read is the server's failure: it says so itself, or what it wrote is
// damaged. An answer that is too large, a connection that cannot be made, a file that david may not read say nothing
// of the server: nothing is concluded then.
func serverSays(err error) bool {
	return mysqld.Number(err) != 0 && !errors.Is(err, mysqld.ErrUnreachable) || errors.Is(err, errLog)
}

// endsWithin is how long a server that has broken a connection off may take to be gone.
const endsWithin = 5 * time.Second

// ended tells whether a server has ended by itself, as one does that meets a damaged page.
func ended(s *sandbox.Server) bool {
	for began := time.Now(); time.Since(began) < endsWithin; time.Sleep(50 * time.Millisecond) {
		if s.Alive() != nil {
			return true
		}
	}
	return false
}

// cannotRead makes a server that came back and does not tell what it has, as a table or a log of it is
// damaged, a failure of the cut.
func cannotRead(k result.Kill, err error) result.Kill {
	cut := *k.Cut
	cut.Failed = "it came back, and cannot be read: " + err.Error()
	k.Cut = &cut
	return k
}

// telling has a server say which pages it repairs.
func telling(f mycnf.Flavour, settings []mycnf.Setting) []mycnf.Setting {
	if f == mycnf.MariaDB {
		return settings
	}
	return append(settings[:len(settings):len(settings)], mycnf.Setting{Name: "log_error_verbosity", Value: "3"})
}

// inspect fills in what is there after a recovery.
func (r *powerRun) inspect(ctx context.Context, s *sandbox.Server, past *ledger, moment int64, k result.Kill) (result.Kill, error) {
	one := r.on(s, past)
	one.result = r.result
	k, err := one.inspect(ctx, k)
	if err != nil {
		return k, err
	}
	log, err := s.Log()
	if err != nil {
		return k, err
	}
	k.Cut.Repaired = repaired(log)
	pool, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return k, err
	}
	defer pool.Close()
	conn, err := pool.Single(ctx)
	if err != nil {
		return k, err
	}
	defer conn.Close()
	there, err := found(ctx, conn)
	if err != nil {
		return k, err
	}
	if k.Cut.Schema = r.ledger.schema.wrong(moment, there); k.Cut.Schema != "" {
		k.Damage.Schema = 1
	}
	return k, nil
}

// repaired counts the pages that a server says it has restored from its doublewrite buffer: both flavours say
// "Recovered page [page id: space=0, page number=7] ... from the doublewrite buffer".
func repaired(log []byte) (n int) {
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("Recovered page ")) && bytes.Contains(line, []byte("from the doublewrite buffer")) {
			n++
		}
	}
	return n
}
