package follower

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/home"
	"david/internal/mysqld"
	"david/internal/process"
)

// Promote makes a follower a server of its own that takes writes: what it has received is applied, it follows
// nobody any more, and the account that was made for it is dropped, on both. The leader need not answer: its
// account is left then, and the error is ErrAccountLeft. It is the caller's to see that nobody writes to the
// leader any more: what it has lacked of the leader by its promotion, of a leader that answers, is returned as GTIDs. What else
// the user should know is said.
func (r *Record) Promote(ctx context.Context, leader mysqld.Addr, say func(string)) (lacks string, err error) {
	if r.State == Promoted && r.Account != "" { // an earlier promotion got so far
		return "", r.expel(ctx, leader)
	}
	if r.State != Following {
		return "", refuse("cannot promote the follower %s: it is %s", r.Name, r.State)
	}
	if err := r.meant(ctx, leader); err != nil {
		return "", err
	}
	own, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		if all, also := r.processes(); also == nil && len(all) == 0 {
			err = fmt.Errorf("%w; its server does not run: david follower start %s starts it", err, r.Name)
		}
		return "", err
	}
	defer own.Close()
	p := r.pair(nil, own)
	p.say = say
	if of, err := r.reach(ctx, leader); err == nil {
		defer of.Close()
		p.leader = of
	}
	if err := p.only(ctx); err != nil {
		return "", err
	}
	was, err := p.replication(ctx)
	if err != nil {
		return "", err
	}
	if r.Promoting != nil && was != nil && p.leader != nil { // cut short before it was free: its leader may have more by now
		if err := r.takeUp(ctx, p); err != nil {
			return "", err
		}
	}
	if err := r.goOn(ctx, p); err != nil {
		return "", err
	}
	if p.leader != nil {
		p.nearly(ctx)
	}
	if err := p.receiving(ctx); err != nil {
		return "", err
	}
	if err := p.applied(ctx); err != nil {
		return "", err
	}
	if lacks, err = p.lacks(ctx); err != nil {
		return "", err
	}
	if err := p.remarks(ctx, was); err != nil {
		return "", err
	}
	return lacks, r.free(ctx, p, leader)
}

// only refuses a follower that replicates from others, too: it would take writes and theirs, or lose what was set up.
func (p pair) only(ctx context.Context) error {
	ask, column, undo := p.status, "channel_name", "STOP REPLICA FOR CHANNEL '%[1]s'; RESET REPLICA ALL FOR CHANNEL '%[1]s'"
	if p.maria {
		ask, column, undo = "SHOW ALL SLAVES STATUS", "connection_name", "STOP SLAVE '%[1]s'; RESET SLAVE '%[1]s' ALL"
	}
	rows, err := p.follower.Records(ctx, ask)
	for _, row := range rows {
		if called := row[column]; err == nil && called != "" {
			err = refuse("the follower replicates from %s, too, by the connection %s: %s there first", row["source_host"]+row["master_host"], called, fmt.Sprintf(undo, called))
		}
	}
	return err
}

// remarks tells what a follower that is about to be promoted may lack, and what is open on it, by what it said of its replication
// before anything was done.
func (p pair) remarks(ctx context.Context, was map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if value := was[name]; strings.HasPrefix(name, "replicate_") && value != "" {
			p.say(fmt.Sprintf("its replication was filtered (%s=%s): rows that its leader has may be missing", name, value))
		}
	}
	if p.leader == nil && was != nil {
		if err := p.upTo(ctx, was); err != nil {
			return err
		}
	}
	open, err := p.follower.Records(ctx, "XA RECOVER")
	if err == nil && len(open) > 0 { // who may not ask is no reason not to promote
		p.say(fmt.Sprintf("it has %d prepared transactions, which hold their locks: XA RECOVER shows them, XA COMMIT or XA ROLLBACK ends each", len(open)))
	}
	return nil
}

// upTo tells what a follower has of a leader that does not answer.
func (p pair) upTo(ctx context.Context, was map[string]string) error {
	at, err := p.got(ctx)
	if err != nil {
		return err
	}
	stopped := ""
	if was["io_running"] == "No" {
		stopped = "; it had not been receiving before (" + cmp.Or(was["last_io_error"], "its replication was stopped") + "), so what its leader wrote after that is missing, if anything"
	}
	p.say("its leader does not answer: it has what it received of that, up to " + at + stopped)
	p.say("see to it that its leader does not come back as it was: it would take writes as well")
	return nil
}

// got returns the GTIDs that a follower has of its leader, those that somebody applied by hand among them.
func (p pair) got(ctx context.Context) (string, error) {
	if !p.maria {
		return p.at(ctx, p.follower)
	}
	replicated, logged, err := p.applies(ctx)
	if err != nil {
		return "", err
	}
	last := map[string]string{}
	for one := range strings.SplitSeq(logged, ",") {
		one = strings.TrimSpace(one)
		last[one[:max(0, strings.LastIndex(one, "-"))]] = one
	}
	list := strings.Split(replicated, ",")
	for i, one := range list {
		one = strings.TrimSpace(one)
		if by := last[one[:max(0, strings.LastIndex(one, "-"))]]; by != "" && includes(by, one) {
			list[i] = by
		}
	}
	return gtids(strings.Join(list, ","))
}

// free has a follower that has applied all take writes, and follow nobody.
func (r *Record) free(ctx context.Context, p pair, leader mysqld.Addr) error {
	for _, step := range r.freeing(ctx, p) {
		if err := step(); err != nil {
			return fmt.Errorf("cannot promote the follower %s, the same command goes on: %w", r.Name, err)
		}
	}
	return r.expel(ctx, leader)
}

// freeing are the steps of a promotion. Where it is cut short between any two of them, and the server ends, too, none that still
// follows starts as one that takes writes: my.cnf is changed once it is on the disk that it follows nobody.
func (r *Record) freeing(ctx context.Context, p pair) (steps []func() error) {
	does := func(statements ...string) {
		for _, s := range statements {
			steps = append(steps, func() error { return p.follower.Exec(ctx, s) })
		}
	}
	steps = append(steps, r.begins)
	does(p.stop, p.reset)
	steps = append(steps, func() error {
		return r.guarded(ctx, startPatience, func() error { return flush(ctx, r.data()) })
	}, func() error { return r.reconfigure(true) })
	if !p.maria {
		does("SET GLOBAL super_read_only = OFF")
	}
	does("SET GLOBAL read_only = OFF")
	if r.Account != "" {
		does("DROP USER IF EXISTS " + r.Account)
	}
	if on(r.Events) {
		does("SET GLOBAL event_scheduler = ON")
	}
	return append(steps, func() error {
		r.State, r.Comparing, r.Promoting = Promoted, nil, nil
		return r.save()
	})
}

// begins notes that a promotion is past what can be refused: whoever finds that later asks the server how far it came.
func (r *Record) begins() error {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return err
	}
	r.Promoting = &self
	return r.save()
}

// settle ends what a promotion has left that was cut short: a follower that follows nobody is promoted, one that still follows is
// read-only again, also where an earlier david had changed its my.cnf first.
func (r *Record) settle(ctx context.Context, own *mysqld.Conn, leader mysqld.Addr) error {
	if r.State != Following || r.Promoting == nil && !r.opened() {
		return nil
	}
	p := r.pair(nil, own)
	s, err := p.replication(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return r.free(ctx, p, leader)
	}
	statements := []string{"SET GLOBAL read_only = ON", "SET GLOBAL event_scheduler = OFF"}
	if !p.maria {
		statements = append(statements, "SET GLOBAL super_read_only = ON")
	}
	if err := r.reconfigure(false); err != nil {
		return err
	}
	for _, s := range statements {
		if err := own.Exec(ctx, s); err != nil {
			return fmt.Errorf("cannot have the follower %s be read-only again: %w", r.Name, err)
		}
	}
	r.Promoting = nil
	return r.save()
}

// withheld are options that keep a server from replication, writes and events, whatever its my.cnf says and its data hold.
func (r *Record) withheld() []string {
	options := []string{"--" + r.words().skip, "--read-only=ON", "--event-scheduler=OFF"}
	if !mariaDB(r.Flavour) {
		options = append(options, "--super-read-only=ON")
	}
	return options
}

// nearPatience is how long a follower may take to have what its leader had when it was to be promoted.
const nearPatience = 5 * time.Second

// nearly lets a follower of a leader that answers receive what that has by now. One that cannot is promoted all the same:
// what it lacks then is told.
func (p pair) nearly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, nearPatience)
	defer cancel()
	if goal, err := p.at(ctx, p.leader); err == nil {
		_ = p.reach(ctx, goal) // applied says why it cannot
	}
}

// receiving refuses a follower whose leader answers and has what it lacks, where it does not even ask for that.
func (p pair) receiving(ctx context.Context) error {
	s, err := p.replication(ctx)
	if err != nil || s == nil || s["io_running"] != "No" {
		return err
	}
	lacks, err := p.lacks(ctx)
	if err != nil || lacks == "" {
		return err
	}
	if why := s["last_io_error"]; why != "" {
		return refuse("the follower lacks what its leader has (%s), and cannot get it (%s): drop it and clone again, or stop the leader, without which it is promoted as it is", lacks, why)
	}
	return refuse("the follower lacks what its leader has (%s), and does not ask for it: %s there first; of a leader that does not answer it is promoted without", lacks, p.start)
}

// lacks returns the GTIDs that the leader has and the follower has not; "" where there are none, or the leader does not
// answer any more.
func (p pair) lacks(ctx context.Context) (string, error) {
	if p.leader == nil {
		return "", nil
	}
	now, err := p.at(ctx, p.leader)
	if err != nil {
		return "", nil
	}
	own, err := p.at(ctx, p.follower)
	if err != nil {
		return "", err
	}
	if p.maria {
		done, err := p.has(ctx, now)
		if done || err != nil {
			return "", err
		}
		return "past " + own + " to " + now, nil
	}
	var left string
	if err := p.follower.Row(ctx, "SELECT GTID_SUBTRACT('"+now+"', '"+own+"')", nil, &left); err != nil {
		return "", err
	}
	return gtids(left)
}

// goOn has a follower apply what it has received, where it does not. MariaDB with GTIDs throws its relay log away when it is
// started with both threads stopped, to fetch it anew (sql/sql_repl.cc, start_slave); of a leader that does not answer, what was
// received and not applied is nowhere else, and only the user can apply it.
func (r *Record) goOn(ctx context.Context, p pair) error {
	if r.Comparing != nil { // a comparison that was interrupted may have it stop somewhere
		if err := p.follower.Exec(ctx, p.stop+" SQL_THREAD"); err != nil {
			return err
		}
	}
	s, err := p.replication(ctx)
	if err != nil || s == nil || s["sql_running"] != "No" {
		return err
	}
	if p.maria && s["io_running"] == "No" {
		return r.keeps(ctx, p) // of a leader that has it all receiving says what to do
	}
	if err := p.follower.Exec(ctx, p.start+" SQL_THREAD"); err != nil {
		return fmt.Errorf("cannot have the follower apply what it has received: %w", err)
	}
	return nil
}

// keeps refuses where a follower of MariaDB's, both of whose threads have stopped, has received what it has not applied and its
// leader does not have: to start it would throw that away.
func (r *Record) keeps(ctx context.Context, p pair) error {
	left, err := r.unapplied(ctx, p)
	if err != nil || left.to == "" {
		return err
	}
	why := "its leader does not answer"
	if p.leader != nil {
		sends, err := p.sends(ctx, left.to)
		if err != nil || sends {
			return err
		}
		why = "its leader has not got (any more) what that begins or ends with"
	}
	return refuse("both threads of its replication have stopped, %s, and what it has received is not all applied (to %s): %s would throw that away. "+
		"Apply it by hand: %s; then promote it", why, left.to, p.start, left.byHand())
}

// sends tells whether a leader of MariaDB's has all from what its follower has applied to a position.
func (p pair) sends(ctx context.Context, position string) (bool, error) {
	now, err := p.at(ctx, p.leader)
	if err != nil || !ahead(now, position) {
		return false, err
	}
	logs, err := p.leader.Records(ctx, "SHOW BINARY LOGS")
	if err != nil || len(logs) == 0 {
		return false, err
	}
	var begins string // of the first log that is left
	if err := p.leader.Row(ctx, "SELECT BINLOG_GTID_POS(?, 4)", []any{logs[0]["log_name"]}, &begins); err != nil {
		return false, err
	}
	applied, _, err := p.applies(ctx)
	return ahead(applied, begins), err
}

// applies returns what a follower of MariaDB's has applied: by replication, and by its binary log's state, somebody by hand among
// them.
func (p pair) applies(ctx context.Context) (replicated, logged string, err error) {
	err = p.follower.Row(ctx, "SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_state", nil, &replicated, &logged)
	return replicated, logged, err
}

// has tells whether a follower of MariaDB has all up to a position: what replication has applied, or, by the leader's own GTIDs,
// somebody by hand. The follower's own writes, which may have the same numbers, do not count.
func (p pair) has(ctx context.Context, position string) (bool, error) {
	replicated, logged, err := p.applies(ctx)
	return err == nil && (ahead(replicated, position) || includes(logged, position)), err
}

// includes tells whether a binary log's state, the last GTID of each domain and server, has all of a position.
func includes(state, position string) bool {
	last := map[string]uint64{}
	each := func(list string, do func(of string, n uint64) bool) bool {
		for one := range strings.SplitSeq(list, ",") {
			one = strings.TrimSpace(one)
			i := strings.LastIndex(one, "-")
			if i < 0 {
				continue
			}
			n, err := strconv.ParseUint(one[i+1:], 10, 64)
			if err != nil || !do(one[:i], n) {
				return false
			}
		}
		return true
	}
	each(state, func(of string, n uint64) bool { last[of] = n; return true })
	return each(position, func(of string, n uint64) bool { return last[of] >= n })
}

// applied waits until all that the follower has received of its leader is applied, and has it receive no more. Where that
// fails it goes on receiving.
func (p pair) applied(ctx context.Context) error {
	s, err := p.replication(ctx)
	if err != nil || s == nil { // it follows nobody: an earlier promotion got so far
		return err
	}
	if err := p.appliedOf(ctx, s); err != nil {
		return err
	}
	if err := p.follower.Exec(ctx, p.stop+" IO_THREAD"); err != nil {
		return err
	}
	if s, err = p.replication(ctx); err == nil {
		err = p.appliedOf(ctx, s)
	}
	if err != nil && !p.maria { // whose relay log would be gone where both threads have stopped
		err = errors.Join(err, p.follower.Exec(ctx, p.start+" IO_THREAD"))
	}
	return err
}

// appliedOf waits until what a follower had received, by what it said of its replication, is applied.
func (p pair) appliedOf(ctx context.Context, s map[string]string) error {
	received := s["retrieved_gtid_set"]
	if p.maria {
		received = s["gtid_io_pos"]
	}
	received, err := gtids(received)
	if err != nil || received == "" {
		return err
	}
	if p.maria { // also where it was applied by hand
		if done, err := p.has(ctx, received); err != nil || done {
			return err
		}
	}
	for said := false; ; said = true {
		var left string
		if err := p.follower.Row(ctx, fmt.Sprintf(p.wait, received, 1), nil, &left); err != nil {
			return err
		}
		if left == "0" {
			return nil
		}
		if !said {
			p.say("waiting until the follower has applied what it has received, to " + received + delayed(s))
		}
		if s, err = p.replication(ctx); err != nil {
			return err
		}
		if s["sql_running"] == "No" {
			return fmt.Errorf("cannot apply what the follower has received, its replication is stopped: %s; mend that there, then %s SQL_THREAD and promote it again%s",
				cmp.Or(s["last_sql_error"], "somebody stopped it"), p.start, p.discards())
		}
	}
}

// delayed tells of a follower that is meant to be late.
func delayed(s map[string]string) string {
	if late := s["sql_delay"]; late != "" && late != "0" {
		return "; its replication is set to be " + late + " s late"
	}
	return ""
}

// discards warns of what loses a relay log.
func (p pair) discards() string {
	if p.maria {
		return "; " + p.start + " with both threads stopped throws away what was received"
	}
	return ""
}

// opened tells whether the follower's my.cnf has its server take writes. With one that cannot be read no server starts.
func (r *Record) opened() bool {
	text, err := home.Read(r.cnf(), mostConfigured)
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "read_only=OFF")
}

// mostConfigured is read of a follower's my.cnf, in bytes.
const mostConfigured = 1 << 20

// reconfigure has the follower's my.cnf let its server take writes and run events, or not. When it returns nil that is there after a
// crash.
func (r *Record) reconfigure(open bool) error {
	text, err := home.Read(r.cnf(), mostConfigured)
	if err != nil {
		return fmt.Errorf("cannot read the follower's my.cnf: %w", err)
	}
	from, to := []string{"read_only=ON", "super_read_only=ON"}, []string{"read_only=OFF", "super_read_only=OFF"}
	if on(r.Events) {
		from, to = append(from, "event_scheduler=OFF"), append(to, "event_scheduler=ON")
	}
	if !open {
		from, to = to, from
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if at := slices.Index(from, line); at >= 0 {
			lines[i] = to[at]
		}
	}
	if err := home.Replace(r.cnf(), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return fmt.Errorf("cannot write the follower's my.cnf: %w", err)
	}
	return nil
}
