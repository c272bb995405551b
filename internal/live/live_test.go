package live_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/testserver"
)

// target describes a server under test, with traffic of its own.
type target struct {
	*testserver.Server
	t     *testing.T
	query atomic.Pointer[string] // what the traffic asks
}

// TestLive goes through what can happen to a run. Each test has a server's variables to itself and mostly
// waits, so there are two servers of each flavour, side by side.
func TestLive(t *testing.T) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for part, tests := range map[string]map[string]func(*target){"runs": runs(f), "deaths": deaths(f)} {
			t.Run(string(f)+" "+part, func(t *testing.T) {
				t.Parallel()
				s := testserver.Start(t, f, "--performance-schema=ON")
				s.Exec("CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY)", "INSERT INTO shop.item VALUES (1), (2), (3)")
				for name, test := range tests {
					t.Run(name, func(t *testing.T) { test(begin(t, s)) })
				}
				if part == "deaths" { // the last, as the server is another one afterwards
					t.Run("restarted", func(t *testing.T) { begin(t, s).restarted() })
				}
			})
		}
	}
}

// runs are the tests in which david lives, those of MySQL alone among them.
func runs(f mycnf.Flavour) map[string]func(*target) {
	tests := map[string]func(*target){
		"kept": (*target).kept, "worse": (*target).worse, "stalled": (*target).stalled, "errors": (*target).errors,
		"interrupted": (*target).interrupted, "changed": (*target).changed, "denied": (*target).denied, "follows": (*target).follows,
		"recorded only": (*target).recordedOnly, "quiet": (*target).quiet, "busy": (*target).busy, "sizes": (*target).sizes,
	}
	if f == mycnf.MySQL { // MariaDB has no SET PERSIST, and lowers innodb_io_capacity where MySQL clips the other
		tests["persisted"], tests["clipped"] = (*target).persisted, (*target).clipped
	}
	return tests
}

const fine = "SELECT id, 1 FROM shop.item WHERE id = 2"

// begin starts the traffic of three users, until the test ends.
func begin(t *testing.T, s *testserver.Server) *target {
	x := &target{Server: s, t: t}
	x.ask(fine)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	const users = 3
	for range users {
		go func() {
			defer func() { ended <- struct{}{} }()
			x.traffic(ctx)
		}()
	}
	t.Cleanup(func() {
		stop()
		for range users {
			<-ended
		}
	})
	return x
}

func (x *target) ask(query string) { x.query.Store(&query) }

// traffic asks until it is told to stop; errors are a matter of the test.
func (x *target) traffic(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := mysqld.Open(ctx, x.Root())
		for c != nil && (err == nil || mysqld.Number(err) != 0) { // a server that goes down answers with a number, too
			if query := *x.query.Load(); query != "" {
				_, err = c.Pairs(ctx, query)
			}
			if ctx.Err() != nil {
				break
			}
			time.Sleep(6 * time.Millisecond)
		}
		if c != nil {
			c.Close()
		}
		time.Sleep(time.Millisecond)
	}
}

// step changes two variables that every version has, and of which the traffic knows nothing.
func (x *target) step() result.LiveStep {
	return result.LiveStep{Name: "first", Changes: []result.LiveChange{x.change("innodb_io_capacity_max", "25000"), x.change("innodb_spin_wait_delay", "11")}}
}

func (x *target) change(name, value string) result.LiveChange {
	return result.LiveChange{Setting: mycnf.Setting{Name: name, Value: value}, Before: x.value(name)}
}

func (x *target) value(name string) string {
	x.t.Helper()
	c, err := mysqld.Open(context.Background(), x.Root())
	if err != nil {
		x.t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Pairs(context.Background(), "SHOW GLOBAL VARIABLES LIKE '"+name+"'")
	if err != nil {
		x.t.Fatal(err)
	}
	return v[name]
}

// run returns a run of one step that is watched for four seconds. changed is called when the step's first
// line is said.
func (x *target) run(changed func()) *live.Run {
	x.t.Helper()
	id, err := live.Identify(context.Background(), x.Open())
	if err != nil {
		x.t.Fatal(err)
	}
	record, err := live.Create(x.t.TempDir(), id)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { // so that a test that fails does not fail the next ones
		if _, err := live.Rollback(context.Background(), x.Open(), record); err != nil {
			x.t.Error(err)
		}
	})
	return &live.Run{Addr: x.Socket("david"), Steps: []result.LiveStep{x.step()}, Record: record, Watchdog: []string{asWatchdog}, Watch: 4 * time.Second, MaxP95: 1.5, Say: func(text string) {
		x.t.Log(text)
		if strings.HasPrefix(text, "step first: ") && changed != nil {
			changed()
		}
	}}
}

// back makes sure that all variables of the step have their old values.
func (x *target) back(step result.LiveStep) {
	x.t.Helper()
	for _, c := range step.Changes {
		if now := x.value(c.Name); now != c.Before {
			x.t.Errorf("%s is %s, was %s before", c.Name, now, c.Before)
		}
	}
}

func (x *target) kept() {
	run := x.run(nil)
	run.MaxP95 = 50 // whatever else the machine does is not this test's subject
	out, err := run.Do(x.t.Context())
	if err != nil || !out.Steps[0].Kept || out.Before.Statements == 0 {
		x.t.Fatalf("%+v, %v", out, err)
	}
	if sees := out.Sight; sees.P95 != (x.Flavour == mycnf.MySQL) || !sees.Mean || !sees.Errors || len(sees.Notes) == 0 {
		x.t.Errorf("%+v", sees)
	}
	if (out.Before.P95 != nil) != (x.Flavour == mycnf.MySQL && out.Before.Statements >= 500) {
		x.t.Errorf("p95 %v of %.0f statements", out.Before.P95, out.Before.Statements)
	}
	if got := x.value("innodb_spin_wait_delay"); got != "11" {
		x.t.Errorf("innodb_spin_wait_delay is %s", got)
	}
	u, err := live.Rollback(x.t.Context(), x.Open(), run.Record)
	if err != nil || len(u.Restored) != 2 || u.Restored[0].Name != "innodb_spin_wait_delay" || len(run.Record.Pending()) != 0 {
		x.t.Errorf("%+v, %v", u, err)
	}
	x.back(run.Steps[0])
	if u, err = live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil || len(u.Restored)+len(u.Already) != 0 {
		x.t.Errorf("a second rollback: %+v, %v", u, err)
	}
}

// sizes take the server a while.
func (x *target) sizes() {
	run := x.run(nil)
	run.MaxP95 = 50
	changes := []result.LiveChange{x.change("innodb_log_file_size", "128M")}
	if x.Flavour == mycnf.MySQL {
		changes = []result.LiveChange{x.change("innodb_redo_log_capacity", "128M"), x.change("innodb_buffer_pool_size", "128M")}
	}
	run.Steps = []result.LiveStep{{Name: "first", Changes: changes}}
	if _, err := run.Do(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	if u, err := live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil || len(u.Restored) != len(changes) {
		x.t.Errorf("%+v, %v", u, err)
	}
	x.back(run.Steps[0])
}

// clipped is a value of which the server takes less: the step is set back.
func (x *target) clipped() {
	x.Exec("SET GLOBAL innodb_io_capacity = 1500")
	run := x.run(nil)
	run.Watch, run.MaxP95 = time.Second, 50
	run.Steps = []result.LiveStep{{Name: "first", Changes: []result.LiveChange{x.change("innodb_io_capacity_max", "1000")}}}
	out, err := run.Do(x.t.Context())
	if err == nil || !strings.Contains(err.Error(), "still reports 1500") || len(out.Steps) != 1 || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

func (x *target) persisted() {
	x.Exec("SET PERSIST innodb_spin_wait_delay = 7")
	defer x.Exec("RESET PERSIST innodb_spin_wait_delay")
	run := x.run(nil)
	run.MaxP95, run.Persist = 50, true
	if out, err := run.Do(x.t.Context()); err != nil {
		x.t.Fatalf("%+v, %v", out, err)
	}
	const query = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables"
	p, err := x.Open().Pairs(x.t.Context(), query)
	if err != nil || p["innodb_spin_wait_delay"] != "11" || p["innodb_io_capacity_max"] != "25000" {
		x.t.Errorf("persisted: %v, %v", p, err)
	}
	if u, err := live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil || len(u.Restored) != 2 {
		x.t.Errorf("%+v, %v", u, err)
	}
	p, err = x.Open().Pairs(x.t.Context(), query)
	if _, there := p["innodb_io_capacity_max"]; err != nil || p["innodb_spin_wait_delay"] != "7" || there {
		x.t.Errorf("persisted after the rollback: %v, %v", p, err)
	}
	x.back(run.Steps[0])
}

// enough returns how long it takes this machine's traffic to be enough for a p95, also when it is slower by
// half.
func (x *target) enough() time.Duration {
	x.t.Helper()
	questions := func() float64 {
		status, err := x.Open().Status(context.Background())
		if err != nil {
			x.t.Fatal(err)
		}
		return mysqld.Counters(status)["questions"]
	}
	began, before := time.Now(), questions()
	time.Sleep(2 * time.Second)
	rate := (questions() - before) / time.Since(began).Seconds()
	return min(max(4*time.Second, time.Duration(1500/rate*float64(time.Second))), 3*time.Minute)
}

// worse makes some of the traffic slow once the step is made, so that its latency is as if the step had done
// it.
func (x *target) worse() {
	watch, what := x.enough(), "p95 is"
	if x.Flavour == mycnf.MariaDB {
		what = "the mean latency is"
	}
	run := x.run(func() { x.ask("SELECT id, SLEEP(IF(RAND() < 0.15, 0.01, 0)) FROM shop.item WHERE id = 1") })
	run.Watch = watch
	out, err := run.Do(x.t.Context())
	if !errors.Is(err, live.ErrWorse) || !strings.Contains(err.Error(), what) || out.Steps[0].Kept || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
	if len(run.Record.Pending()) != 0 {
		x.t.Errorf("pending: %+v", run.Record.Pending())
	}
}

// stalled locks the table once the step is made: no statement ends, so none shows a latency.
func (x *target) stalled() {
	locker, err := x.Open().Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer locker.Close()
	run := x.run(func() {
		if _, err := locker.Rows(context.Background(), 0, "LOCK TABLES shop.item WRITE"); err != nil {
			x.t.Error(err)
		}
	})
	out, err := run.Do(x.t.Context())
	if _, err := locker.Rows(context.Background(), 0, "UNLOCK TABLES"); err != nil {
		x.t.Error(err)
	}
	if !errors.Is(err, live.ErrWorse) || !strings.Contains(err.Error(), "stall") {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

// quiet is a server without users: after a while the run ends, with nothing changed.
func (x *target) quiet() {
	x.ask("")
	run := x.run(nil)
	run.Watch = 200 * time.Millisecond
	out, err := run.Do(x.t.Context())
	if !errors.Is(err, live.ErrQuiet) || !strings.Contains(err.Error(), "nothing was changed") || len(out.Steps) != 0 || len(run.Record.Changes()) != 0 {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

func (x *target) errors() {
	run := x.run(func() { x.ask("SELECT nothing, 1 FROM shop.item") })
	run.MaxP95 = 50
	if _, err := run.Do(x.t.Context()); !errors.Is(err, live.ErrWorse) || !strings.Contains(err.Error(), "errors grew") {
		x.t.Error(err)
	}
	x.back(run.Steps[0])
}

func (x *target) interrupted() {
	ctx, interrupt := context.WithCancel(x.t.Context())
	run := x.run(func() { time.AfterFunc(2*time.Second, interrupt) })
	run.Watch, run.MaxP95 = 3*time.Second, 50
	if out, err := run.Do(ctx); !errors.Is(err, context.Canceled) || len(out.Steps) != 1 || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

// changed makes somebody else change one of the two variables after the run.
func (x *target) changed() {
	run := x.run(nil)
	run.MaxP95 = 50
	if _, err := run.Do(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	x.Exec("SET GLOBAL innodb_io_capacity_max = 26000")
	if _, err := live.Rollback(x.t.Context(), x.Open(), run.Record); !errors.Is(err, live.ErrChanged) || !strings.Contains(err.Error(), "it is 26000 now") {
		x.t.Error(err)
	}
	if got := x.value("innodb_spin_wait_delay"); got != "11" {
		x.t.Errorf("a refused rollback set innodb_spin_wait_delay to %s", got)
	}
	other := *run.Record
	other.Server.UUID, other.Server.Hostname = "another", "elsewhere"
	if _, err := live.Rollback(x.t.Context(), x.Open(), &other); !errors.Is(err, live.ErrOther) {
		x.t.Error(err)
	}
	x.Exec("SET GLOBAL innodb_io_capacity_max = 25000")
	if _, err := live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil {
		x.t.Error(err)
	}
	x.back(run.Steps[0])
}

// denied asks for all variables that a plan can have; none may change, whoever asks.
func (x *target) denied() {
	names := []string{"innodb_buffer_pool_size", "innodb_log_buffer_size", "innodb_io_capacity", "innodb_io_capacity_max", "innodb_flush_neighbors",
		"innodb_sync_spin_loops", "innodb_spin_wait_delay", "table_open_cache", "general_log"}
	if x.Flavour == mycnf.MySQL {
		names = append(names, "innodb_redo_log_capacity", "innodb_use_fdatasync")
	} else {
		names = append(names[:1], append(names[2:], "innodb_log_file_size", "innodb_purge_threads")...)
	}
	before, err := x.Open().Variables(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for user, kind := range map[string]error{"david": nil, "limited": mysqld.ErrPrivilege} {
		c, err := mysqld.Open(x.t.Context(), x.Socket(user))
		if err != nil {
			x.t.Fatal(err)
		}
		defer c.Close()
		for _, name := range names {
			if err := live.MaySet(x.t.Context(), c, []string{name}); !errors.Is(err, kind) {
				x.t.Errorf("%s, %s: %v", user, name, err)
			}
		}
	}
	after, err := x.Open().Variables(x.t.Context())
	if d := mycnf.Diff(before, after); err != nil || len(d) > 0 {
		x.t.Errorf("asking changed %+v, %v", d, err)
	}
}

func (x *target) follows() {
	c := x.Open()
	id, err := live.Identify(x.t.Context(), c)
	if err != nil {
		x.t.Fatal(err)
	}
	if why, seen, err := live.Follows(x.t.Context(), c, id); why != "" || !seen || err != nil {
		x.t.Errorf("%q, %v, %v", why, seen, err)
	}
	source := "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1"
	forget := "RESET REPLICA ALL"
	if x.Flavour == mycnf.MariaDB {
		source, forget = "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1", "RESET SLAVE ALL"
	}
	x.Exec(source)
	if why, _, err := live.Follows(x.t.Context(), c, id); !strings.Contains(why, "replicates") || err != nil {
		x.t.Errorf("a replica: %q, %v", why, err)
	}
	x.Exec(forget, "SET GLOBAL read_only = ON")
	defer x.Exec("SET GLOBAL read_only = OFF")
	if why, _, err := live.Follows(x.t.Context(), c, id); !strings.HasPrefix(why, "read_only=") || err != nil {
		x.t.Errorf("a read-only server: %q, %v", why, err)
	}
}

// recordedOnly is a david that died between the record and the change: there is nothing to set back. With the
// change made and not yet seen there is.
func (x *target) recordedOnly() {
	run := x.run(nil)
	text := `{"schema":1,"n":1,"event":"intended","step":"s","name":"innodb_io_capacity_max","before":"` + x.value("innodb_io_capacity_max") + `","after":"25000"}` + "\n"
	dir := x.recordWith(run.Record.Server, text+`{"schema":1,"n":1,"ev`)
	for _, made := range []bool{false, true} {
		record, err := live.Open(dir)
		if err != nil {
			x.t.Fatal(err)
		}
		if made {
			dir = x.recordWith(run.Record.Server, text)
			if record, err = live.Open(dir); err != nil {
				x.t.Fatal(err)
			}
			x.Exec("SET GLOBAL innodb_io_capacity_max = 25000")
		}
		before := x.sets()
		u, err := live.Rollback(x.t.Context(), x.Open(), record)
		if err != nil || (len(u.Restored) == 1) != made || (len(u.Already) == 1) == made {
			x.t.Errorf("made %v: %+v, %v", made, u, err)
		}
		if n := x.sets() - before; n != 2 { // the connection's timeout, and the variable
			x.t.Errorf("made %v: %v times SET: a server may take a value and not show it yet", made, n)
		}
		if again, err := live.Open(dir); err != nil || len(again.Pending()) != 0 {
			x.t.Errorf("the record after the rollback: %+v, %v", again, err)
		}
	}
	x.back(run.Steps[0])
}

// sets returns how many SET statements the server has had.
func (x *target) sets() float64 {
	x.t.Helper()
	status, err := x.Open().Status(context.Background())
	if err != nil {
		x.t.Fatal(err)
	}
	return mysqld.Counters(status)["com_set_option"]
}

// recordWith returns a folder with a record that goes on with a text.
func (x *target) recordWith(s live.Server, text string) (dir string) {
	x.t.Helper()
	dir = x.t.TempDir()
	if _, err := live.Create(dir, s); err != nil {
		x.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, live.RecordFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		x.t.Fatal(err)
	}
	return dir
}

func (x *target) busy() {
	run, other := x.run(nil), x.run(nil)
	run.MaxP95 = 50
	run.Say = func(text string) {
		if strings.HasPrefix(text, "step first: ") {
			if _, err := other.Do(x.t.Context()); !errors.Is(err, live.ErrBusy) {
				x.t.Errorf("a second david beside it: %v", err)
			}
		}
	}
	if _, err := run.Do(x.t.Context()); err != nil {
		x.t.Error(err)
	}
	if _, err := live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil {
		x.t.Error(err)
	}
}

// restarted kills the server in the middle of a step: the change is gone with it, and the record says so once
// it is back, also where the value before was another than the one the server starts with.
func (x *target) restarted() {
	x.Exec("SET GLOBAL innodb_spin_wait_delay = 9")
	again := make(chan struct{})
	run := x.run(func() {
		time.AfterFunc(time.Second, func() {
			defer close(again)
			x.Restart()
		})
	})
	run.MaxP95 = 50
	out, err := run.Do(x.t.Context())
	<-again
	if !errors.Is(err, mysqld.ErrUnreachable) || len(out.Steps) != 1 || !out.Steps[0].Undone || len(run.Record.Pending()) != 0 {
		x.t.Errorf("%+v, %v, pending %+v", out, err, run.Record.Pending())
	}
	if now := x.value("innodb_spin_wait_delay"); now == "11" || now == "9" {
		x.t.Errorf("innodb_spin_wait_delay is %s, as if the server had not been restarted", now)
	}
}
