package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// unheard is a user whose terminal takes no line: what is said of a step comes before it, with the SQL that
// sets it back, and then when it is set back already.
func (x *target) unheard() {
	ctx, interrupt := context.WithCancel(x.t.Context())
	defer interrupt()
	run := x.run(nil)
	run.MaxP95 = 50
	var said []string
	run.Say = func(text string) {
		x.back(run.Steps[0])
		if said = append(said, text); strings.HasPrefix(text, "step first: ") {
			time.AfterFunc(2*time.Second, interrupt)
		}
	}
	if out, err := run.Do(ctx); !errors.Is(err, live.ErrInterrupted) || len(out.Steps) != 1 || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	text := strings.Join(said, "\n")
	byHand := "by hand it is set back with: SET GLOBAL innodb_spin_wait_delay = " + x.value("innodb_spin_wait_delay") + "; SET GLOBAL innodb_io_capacity_max = " + x.value("innodb_io_capacity_max") + ";"
	if !strings.Contains(text, byHand) || !strings.Contains(text, "sets it back; all that was changed: david rollback ") || !strings.HasPrefix(said[len(said)-1], "step first is set back") {
		x.t.Errorf("said:\n%s\nwant %s", text, byHand)
	}
}

// sessionLost ends the connection that holds the lock while a step is watched: another david could change the
// server by now.
func (x *target) sessionLost() {
	run := x.run(func() {
		time.AfterFunc(2*time.Second, func() {
			var id string
			if err := x.Open().Row(context.Background(), "SELECT IS_USED_LOCK('david live tune')", nil, &id); err != nil {
				x.t.Error(err)
			}
			x.Exec("KILL " + id)
		})
	})
	run.MaxP95 = 50
	if out, err := run.Do(x.t.Context()); !errors.Is(err, mysqld.ErrUnreachable) || len(out.Steps) != 1 || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

// meddled has somebody else change one of the two variables while the step is watched: that one is left.
func (x *target) meddled() {
	run := x.run(func() { time.AfterFunc(2*time.Second, func() { x.Exec("SET GLOBAL innodb_io_capacity_max = 26000") }) })
	run.MaxP95 = 50
	out, err := run.Do(x.t.Context())
	if !errors.Is(err, live.ErrChanged) || !errors.Is(err, live.ErrNotUndone) || !strings.Contains(err.Error(), "it is 26000 now") || out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	if p := run.Record.Pending(); len(p) != 1 || p[0].Name != "innodb_io_capacity_max" {
		x.t.Errorf("pending: %+v", p)
	}
	x.Exec("SET GLOBAL innodb_io_capacity_max = 25000")
}

// recordLost takes the record away while a step is watched, as a full or a broken disk does.
func (x *target) recordLost() {
	ctx, interrupt := context.WithCancel(x.t.Context())
	defer interrupt()
	run := x.run(nil)
	dir := x.recordWith(run.Record.Server, "")
	record, err := live.Open(dir)
	if err != nil {
		x.t.Fatal(err)
	}
	run.Record, run.MaxP95 = record, 50
	run.Say = func(text string) {
		if strings.HasPrefix(text, "step first: ") {
			time.AfterFunc(2*time.Second, func() {
				if err := os.RemoveAll(dir); err != nil {
					x.t.Error(err)
				}
				interrupt()
			})
		}
	}
	out, err := run.Do(ctx)
	if err == nil || errors.Is(err, live.ErrNotUndone) || !strings.Contains(err.Error(), "is set back, but not on record") || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

// hung has the server hang while a step is watched: the step is set back when it answers again.
func (x *target) hung() {
	run := x.run(func() {
		time.AfterFunc(2*time.Second, func() { x.Signal(syscall.SIGSTOP) })
		time.AfterFunc(30*time.Second, func() { x.Signal(syscall.SIGCONT) })
	})
	run.MaxP95 = 50
	if out, err := run.Do(x.t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer within") || !out.Steps[0].Undone {
		x.t.Errorf("%+v, %v", out, err)
	}
	x.back(run.Steps[0])
}

// growing is a david that died when it had just told the server to grow its buffer pool, of which the server
// does not show anything yet.
func (x *target) growing() {
	before := x.value("innodb_buffer_pool_size")
	run := x.run(nil)
	dir := x.recordWith(run.Record.Server, `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_buffer_pool_size","before":"`+before+`","after":"2G"}`+"\n")
	record, err := live.Open(dir)
	if err != nil {
		x.t.Fatal(err)
	}
	x.Exec("SET GLOBAL innodb_buffer_pool_size = 2147483648")
	u, err := live.Rollback(x.t.Context(), x.Open(), record)
	if err != nil || len(u.Restored)+len(u.Already) != 1 {
		x.t.Errorf("%+v, %v", u, err)
	}
	for range 30 {
		if now := x.value("innodb_buffer_pool_size"); now != before {
			x.t.Fatalf("the pool is %s, was %s before", now, before)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// watched is the watchdog of a david that died with one step kept and one not: it waits until the lock that
// died with that david is free, and sets back what was not kept.
func (x *target) watched() {
	run := x.run(nil)
	before := x.value("innodb_spin_wait_delay")
	capacity := x.value("innodb_io_capacity_max")
	dir := x.recordWith(run.Record.Server, `{"schema":2,"n":1,"event":"intended","step":"a","name":"innodb_io_capacity_max","before":"`+capacity+`","after":"25000"}`+"\n"+
		`{"schema":2,"n":1,"event":"set","after":"25000"}`+"\n"+`{"schema":2,"n":1,"event":"kept"}`+"\n"+
		`{"schema":2,"n":2,"event":"intended","step":"b","name":"innodb_spin_wait_delay","before":"`+before+`","after":"11"}`+"\n"+`{"schema":2,"n":2,"ev`)
	x.Exec("SET GLOBAL innodb_io_capacity_max = 25000", "SET GLOBAL innodb_spin_wait_delay = 11")
	locker, err := x.Open().Single(x.t.Context())
	if err == nil {
		_, err = locker.Rows(x.t.Context(), 0, "SELECT GET_LOCK('david live tune', 0)")
	}
	if err != nil {
		x.t.Fatal(err)
	}
	in, david := io.Pipe()
	out, log := &bytes.Buffer{}, &bytes.Buffer{}
	ended := make(chan error, 1)
	go func() { ended <- live.StandWatch(in, out, log) }()
	addr := x.Socket("david")
	leash := map[string]string{"Network": addr.Network, "Address": addr.Address, "User": addr.User, "Password": string(addr.Password), "Dir": dir}
	if err := errors.Join(json.NewEncoder(david).Encode(leash), david.Close()); err != nil {
		x.t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if now := x.value("innodb_spin_wait_delay"); now != "11" {
		x.t.Errorf("it was set back to %s by a watchdog that did not have the lock", now)
	}
	if _, err := locker.Rows(x.t.Context(), 0, "SELECT RELEASE_LOCK('david live tune')"); err != nil {
		x.t.Fatal(err)
	}
	if err := <-ended; err != nil || out.String() != "ready\n" || !strings.Contains(log.String(), "left to be set back: 0") {
		x.t.Errorf("%v, %q, %s", err, out, log)
	}
	if delay, most := x.value("innodb_spin_wait_delay"), x.value("innodb_io_capacity_max"); delay != before || most != "25000" {
		x.t.Errorf("innodb_spin_wait_delay is %s, innodb_io_capacity_max %s", delay, most)
	}
	record, err := live.Open(dir)
	if err != nil || len(record.Pending()) != 1 {
		x.t.Fatalf("%+v, %v", record, err)
	}
	if u, err := live.Rollback(x.t.Context(), x.Open(), record); err != nil || len(u.Restored) != 1 || x.value("innodb_io_capacity_max") != capacity {
		x.t.Errorf("%+v, %v", u, err)
	}
}

// unguarded is a run whose watchdog does not start: nothing is changed. What the watchdog says is told, and
// no password is.
func (x *target) unguarded() {
	run := x.run(nil)
	run.Watch, run.Watchdog = time.Second, []string{"-test.run=^$", "-no-such-flag"}
	if out, err := run.Do(x.t.Context()); err == nil || !strings.HasPrefix(err.Error(), "nothing was changed: cannot start the watchdog") || len(out.Steps) != 0 {
		x.t.Errorf("%+v, %v", out, err)
	}
	if c := run.Record.Changes(); len(c) != 0 {
		x.t.Errorf("on record: %+v", c)
	}
}

// watchdogDied kills the watchdog between two steps: the second is not made.
func (x *target) watchdogDied() {
	run := x.run(nil)
	run.Watch, run.MaxP95 = 5*time.Second, 50 // 500 statements end in it, on a busy machine too
	run.Steps = []result.LiveStep{{Name: "first", Changes: run.Steps[0].Changes[:1]}, {Name: "second", Changes: run.Steps[0].Changes[1:]}}
	dir := x.recordWith(run.Record.Server, "")
	var err error
	if run.Record, err = live.Open(dir); err != nil {
		x.t.Fatal(err)
	}
	run.Say = func(text string) {
		if strings.HasPrefix(text, "step first is kept") {
			x.killWatchdog(dir)
		}
	}
	out, err := run.Do(x.t.Context())
	if err == nil || !strings.Contains(err.Error(), "is gone, and without one nothing is changed") || len(out.Steps) != 2 || !out.Steps[0].Kept || out.Steps[1].Kept {
		x.t.Errorf("%+v, %v", out, err)
	}
	if c := run.Record.Changes(); len(c) != 1 {
		x.t.Errorf("on record: %+v", c)
	}
	if _, err := live.Rollback(x.t.Context(), x.Open(), run.Record); err != nil {
		x.t.Error(err)
	}
	x.back(run.Steps[0])
}

// killWatchdog kills the process that a record names.
func (x *target) killWatchdog(dir string) {
	x.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, live.RecordFile))
	if err != nil {
		x.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l struct {
			Event string `json:"event"`
			PID   int    `json:"pid"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			x.t.Fatal(err)
		}
		if l.Event == "watchdog" && l.PID > 1 {
			if err := syscall.Kill(l.PID, syscall.SIGKILL); err != nil {
				x.t.Error(err)
			}
			time.Sleep(time.Second) // until david has been told
			return
		}
	}
	x.t.Errorf("no watchdog is on record:\n%s", text)
}

// hostile are records that name this very server, and that no david wrote: nothing of them reaches it.
func (x *target) hostile() {
	run := x.run(nil)
	before, err := x.Open().Variables(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	event := func(name, before, after string) string {
		b, err := json.Marshal(map[string]any{"schema": 1, "n": 1, "event": "intended", "step": "s", "name": name, "before": before, "after": after})
		if err != nil {
			x.t.Fatal(err)
		}
		return string(b) + "\n"
	}
	delay := x.value("innodb_spin_wait_delay")
	for _, text := range []string{event("innodb_flush_log_at_trx_commit", "0", "1"), event("init_connect", "DROP DATABASE shop", ""),
		event("innodb_spin_wait_delay = "+delay+", GLOBAL sync_binlog", "0", x.value("sync_binlog")), event("innodb_spin_wait_delay", delay+", GLOBAL sync_binlog = 0", delay),
		event("innodb_spin_wait_delay", "7", delay) + event("max_connections", "1", x.value("max_connections")), event("innodb_buffer_pool_size", "64G", x.value("innodb_buffer_pool_size"))} {
		dir := x.recordWith(run.Record.Server, text)
		record, err := live.Open(dir)
		if err == nil {
			u, err := live.Rollback(x.t.Context(), x.Open(), record)
			x.t.Errorf("taken: %s%+v, %v", text, u, err)
		}
	}
	after, err := x.Open().Variables(x.t.Context())
	if d := mycnf.Diff(before, after); err != nil || len(d) > 0 {
		x.t.Errorf("changed: %+v, %v", d, err)
	}
}

// deaths are the tests of this file, those of MySQL alone among them.
func deaths(f mycnf.Flavour) map[string]func(*target) {
	tests := map[string]func(*target){"unheard": (*target).unheard, "session lost": (*target).sessionLost, "meddled": (*target).meddled, "record lost": (*target).recordLost,
		"watched": (*target).watched, "unguarded": (*target).unguarded, "watchdog died": (*target).watchdogDied, "hostile": (*target).hostile}
	if f == mycnf.MySQL { // where a MariaDB 10.11 cannot grow its pool; and once is enough for what takes half a minute
		tests["growing"], tests["hung"] = (*target).growing, (*target).hung
	}
	return tests
}
