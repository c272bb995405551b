// Package crash proves on a throwaway server that what it acknowledged survives its crash. A ledger is
// written by several connections; what was acknowledged is written down outside the server; the server is
// killed at random moments, started again on the data it left, and the tables and the binary log are held
// against what was written down.
//
//	load -> SIGKILL -> Restart (recovery, timed) -> check -> load ...
//
// A kill takes the process and its memory. What the process had handed to the kernel is still written, so a
// kill cannot show what a power failure would lose. Power does (docs/crash.md): the disk under the server is
// recorded, cut off at moments that are chosen afterwards, and each of its states is recovered and checked.
package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/server"
)

// database is the ledger's schema.
const database = "ledger"

// loadTime says how long, at most, the server is under load before a kill. Most logs that are not flushed at
// a commit are once a second.
const loadTime = 2 * time.Second

// leastPatience is how long a recovery is waited for at least.
const leastPatience = 2 * time.Minute

// Test says what to prove.
type Test struct {
	Workspace *sandbox.Workspace
	Binary    server.Binary
	Settings  []mycnf.Setting // of the server; the durability lock is the caller's to hold
	Caps      result.Caps     // put on the server, its recovery included
	Threads   int             // connections that write
	Kills     int
	Limit     time.Duration // of a recovery
	Seed      uint64        // of the kills' moments and of what is written
	LogPath   string        // where the error log of the server's last start is kept; "" for nowhere
	// Mishap returns the error that blames what is not the server's own doing, as that somebody killed it or that its disk is
	// full; nil where the server is to blame. One that does not come back by a mishap proves nothing. Nil: there is none.
	Mishap func(error) error
	// Live sees the server's variables before the first load; its error ends the test. Nil for none.
	Live func(vars map[string]string) error
	// Report is told each round when it ends; nil for nobody.
	Report func(n, of int, k result.Kill)
}

// patience is how long a recovery is waited for: one beyond the limit can still be told in figures.
func (t Test) patience() time.Duration { return max(leastPatience, 2*t.Limit) }

// crashRun carries a test that runs.
type crashRun struct {
	Test
	server *sandbox.Server
	ledger *ledger
	random *rand.Rand
	vars   map[string]string
	read   map[string]bool    // the binary logs that were
	logged map[ledgerKey]bool // what they hold
	result result.CrashTest
}

// Run kills and checks, and returns the record with its verdict. A server that does not come back, or not in
// time, ends the test and is part of the verdict; an error says that nothing can be concluded.
func (t Test) Run(ctx context.Context) (c result.CrashTest, err error) {
	empty, err := t.emptyLedger(ctx, t.key())
	if err != nil {
		return c, err
	}
	s, _, err := t.Workspace.Start(ctx, empty, sandbox.StartOptions{Settings: t.Settings, LogPath: t.LogPath, Caps: t.Caps})
	if err != nil {
		return c, err
	}
	defer func() { // a cancelled context must not leave the server running
		_, stopErr := s.Stop(context.WithoutCancel(ctx))
		err = errors.Join(err, stopErr)
	}()
	r := t.on(s, newLedger(t.Seed, t.Threads))
	r.random = rand.New(rand.NewPCG(t.Seed, uint64(t.Threads)))
	r.result = result.CrashTest{Server: t.Binary.Record(), Threads: t.Threads, Seed: t.Seed, LimitMs: ms(t.Limit)}
	if err := r.look(ctx); err != nil {
		return c, err
	}
	if err := s.Throttle(true); err != nil {
		return c, err
	}
	for n := 1; n <= t.Kills && r.result.Failed == ""; n++ {
		if err := died(s, r.round(ctx, n)); err != nil {
			return c, fmt.Errorf("kill %d: %w", n, cmp.Or(t.mishap(err), err))
		}
	}
	return r.result.Judge(), nil
}

// on is a test of a server that has a ledger.
func (t Test) on(s *sandbox.Server, l *ledger) *crashRun {
	return &crashRun{Test: t, server: s, ledger: l, read: map[string]bool{}, logged: map[ledgerKey]bool{}}
}

// key names the data template of an empty ledger.
func (t Test) key() sandbox.TemplateKey {
	return sandbox.TemplateKey{Binary: t.Binary, PageSize: mycnf.PageSize(t.Settings), Tables: 1, Rows: t.Threads, Fill: "crash ledger 1", Database: database}
}

// emptyLedger is the data template of a ledger in which nothing is written yet.
func (t Test) emptyLedger(ctx context.Context, k sandbox.TemplateKey) (sandbox.Template, error) {
	kept, found, err := t.Workspace.Template(k)
	if err != nil || found {
		return kept, err
	}
	f, err := t.Workspace.NewTemplate(ctx, k)
	if err != nil {
		return kept, err
	}
	return f.Done(ctx, prepare(ctx, f.Addr(), t.Threads))
}

// look reads the server's variables, and finds out whether its binary log can be read.
func (r *crashRun) look(ctx context.Context) error {
	conn, err := mysqld.Open(ctx, r.server.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if r.vars, err = conn.Variables(ctx); err != nil {
		return err
	}
	status, err := conn.Status(ctx)
	if err != nil {
		return err
	}
	for _, l := range mycnf.Lock(r.Binary.Flavour) {
		if v, ok := status[l.Name]; ok && l.Status {
			r.vars[l.Name] = v
		}
	}
	r.result.Log = unreadable(r.vars)
	if r.Live == nil {
		return nil
	}
	return r.Live(r.vars)
}

// unreadable returns why a server's binary log cannot be held against the tables; "" where it can.
func unreadable(vars map[string]string) string {
	on := func(name string) bool { return strings.EqualFold(vars[name], "ON") }
	switch {
	case !on("log_bin"):
		return "it is off"
	case on("binlog_encryption"), on("encrypt_binlog"):
		return "it is encrypted"
	case on("binlog_transaction_compression"), on("log_bin_compress"):
		return "it is compressed"
	}
	return ""
}

// round loads, kills, restarts and checks once.
func (r *crashRun) round(ctx context.Context, n int) error {
	r.ledger.begin()
	after, err := killUnderLoad(ctx, r.server, r.ledger, time.Duration(r.random.Int64N(int64(loadTime))))
	if err != nil {
		return err
	}
	k := result.Kill{AfterMs: ms(after), Acknowledged: r.ledger.acknowledged()}
	took, err := r.server.Restart(ctx, r.patience())
	if dead := r.failed(ctx, err); dead != nil {
		r.result.Failed = dead.Error()
		r.result.Rounds = append(r.result.Rounds, k)
		return nil
	}
	if err != nil {
		return err
	}
	k.RecoveryMs = ms(took)
	if k, err = r.inspect(ctx, k); err != nil {
		return err
	}
	r.result.Rounds = append(r.result.Rounds, k)
	if r.Report != nil {
		r.Report(n, r.Kills, k)
	}
	return nil
}

// failed returns how a server did not come back, where that is its own doing; nil for any other error, and for none.
func (t Test) failed(ctx context.Context, err error) (dead *sandbox.StartError) {
	if ctx.Err() != nil || !errors.As(err, &dead) || t.mishap(err) != nil {
		return nil
	}
	return dead
}

func (t Test) mishap(err error) error {
	if t.Mishap == nil {
		return nil
	}
	return t.Mishap(err)
}

// ledgerBytes is the most that reading the ledger back may take: some ten million transactions.
const ledgerBytes = 4 << 30

// inspect fills in what is there after a recovery.
func (r *crashRun) inspect(ctx context.Context, k result.Kill) (result.Kill, error) {
	log, err := r.server.Log()
	if err != nil {
		return k, err
	}
	k.ServerMs = ms(recovery(log))
	addr := r.server.Addr()
	addr.Answer = ledgerBytes
	pool, err := mysqld.Open(ctx, addr)
	if err != nil {
		return k, err
	}
	defer pool.Close()
	conn, err := pool.Single(ctx)
	if err != nil {
		return k, err
	}
	defer conn.Close()
	there, late, err := settled(ctx, r.ledger, func() (tables, error) { return read(ctx, conn) })
	if err != nil {
		return k, err
	}
	told, found := r.ledger.check(there)
	k.Lost, k.Late, k.Kept, k.Damage, k.Missing = told.Lost, late, told.Kept, told.Damage, told.Missing
	if r.result.Log == "" {
		k.Damage.OnlyLogged, k.Damage.Unlogged, err = r.compareLog(ctx, conn, found)
	}
	return k, err
}

// secondLook is how long a server has to show what is missing at first: its recovery may not be over when it answers.
const secondLook = 500 * time.Millisecond

// settled reads the tables, and a second time where something is missing. late counts what was missing at first only.
func settled(ctx context.Context, l *ledger, read func() (tables, error)) (t tables, late int64, err error) {
	missing := func() int64 {
		k := l.look(t)
		return k.Lost + k.Damage.Half
	}
	if t, err = read(); err != nil || missing() == 0 {
		return t, 0, err
	}
	first := missing()
	select {
	case <-time.After(secondLook):
	case <-ctx.Done():
		return t, 0, ctx.Err()
	}
	if t, err = read(); err != nil {
		return t, 0, err
	}
	return t, max(0, first-missing()), nil
}

// compareLog reads the binary logs that the server has closed since the last time: it begins a new one at
// every start.
func (r *crashRun) compareLog(ctx context.Context, conn *mysqld.Single, found round) (onlyLogged, unlogged int64, err error) {
	list, err := conn.Rows(ctx, 1, "SHOW BINARY LOGS")
	if err != nil {
		return 0, 0, err
	}
	fresher := map[ledgerKey]bool{}
	for _, l := range list[:max(0, len(list)-1)] {
		if r.read[l[0]] {
			continue
		}
		r.read[l[0]] = true
		if err := addLogged(fresher, r.server, l[0]); err != nil {
			return 0, 0, err
		}
	}
	maps.Copy(r.logged, fresher)
	onlyLogged, unlogged = found.compare(r.logged, fresher)
	return onlyLogged, unlogged, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
