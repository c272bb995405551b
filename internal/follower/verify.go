package follower

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"david/internal/mysqld"
	"david/internal/process"
)

// Verdict says what a comparison of rows found.
type Verdict struct {
	Tables    int      `json:"tables"`
	Different []string `json:"different,omitempty"`
	Changed   []string `json:"changed,omitempty"` // each time they were looked at, and by no snapshot kept as they were: not compared
	At        string   `json:"at"`                // the GTIDs that both had
}

// ErrDifferent says that leader and follower differ in rows, ErrChanged that some tables were not compared.
var (
	ErrDifferent = errors.New("rows differ")
	ErrChanged   = errors.New("tables were changed by CREATE, ALTER, RENAME, TRUNCATE or DROP each time they were looked at, or written though no snapshot keeps them (sequences, engines without transactions), and so not compared; all others have the same rows")
)

// errStays says that a follower was left as it was for a comparison.
var errStays = errors.New("the follower may apply nothing since")

// attempts to have a follower stand exactly where the leader was looked at.
const attempts = 3

// looks at what differs, each at other GTIDs: a snapshot of transactions does not keep tables as they were from DDL.
const looks = 3

// lockPatience is how long the leader may take to be looked at, in seconds: others wait for what waits for a
// lock.
const lockPatience = 5

// Verify compares the rows of all tables but the servers' own, as both servers have them at the same GTIDs: the
// leader in a snapshot of its transactions, the follower stopped there. The leader's rows are read once or twice
// (sides.same); nothing waits for that, but old versions of them are kept meanwhile. MEMORY tables are left out: no
// clone has their rows.
func (r *Record) Verify(ctx context.Context, leader mysqld.Addr) (v Verdict, err error) {
	if r.State != Following {
		return v, refuse("cannot compare the follower %s: it is %s", r.Name, r.State)
	}
	if r.Promoting != nil {
		return v, refuse("cannot compare the follower %s: a promotion was interrupted: david follower promote or start ends that", r.Name)
	}
	if err := r.answers(); err != nil {
		return v, err
	}
	p, err := r.reachBoth(ctx, leader)
	if err != nil {
		return v, err
	}
	defer p.close()
	if err := r.takeUp(ctx, p); err != nil {
		return v, err
	}
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return v, err
	}
	r.Comparing = &self // whoever finds it there later knows that the follower may have been left as it was
	if err := r.save(); err != nil {
		return v, err
	}
	v, err = p.verify(ctx)
	if errors.Is(err, errStays) {
		return v, fmt.Errorf("%w; %w", err, r.next(p))
	}
	r.Comparing = nil
	return v, errors.Join(err, r.save())
}

// hears refuses a follower that receives nothing before its other thread is stopped for a comparison: it could never stand where its
// leader is, and of MariaDB's it could not be started again.
func (p pair) hears(ctx context.Context) error {
	s, err := p.replication(ctx)
	switch {
	case err != nil:
		return err
	case s == nil:
		return refuse("cannot compare the rows: the follower follows nobody any more: david follower promote makes it a server of its own, for good")
	case purged(s):
		return fmt.Errorf("cannot compare the rows: %w (%s)", ErrPurged, s["last_io_error"])
	case s["io_running"] == "No" && s["sql_running"] == "No": // by errors: to start one would have MariaDB throw away what was received
		return refuse("cannot compare the rows: the follower neither receives (%s) nor applies (%s): mend that first", cmp.Or(s["last_io_error"], "stopped"), cmp.Or(s["last_sql_error"], "stopped"))
	case s["io_running"] == "No":
		return refuse("cannot compare the rows: the follower receives nothing (%s): mend that, then %s IO_THREAD there", cmp.Or(s["last_io_error"], "somebody has just stopped that"), p.start)
	}
	return nil
}

// next says what to do with a follower that a comparison has left stopped.
func (r *Record) next(p pair) error {
	ctx, cancel := context.WithTimeout(context.Background(), resumePatience)
	defer cancel()
	if p.maria {
		if err := r.keeps(ctx, p); err != nil {
			return err
		}
	}
	return errors.New("david follower start has it go on")
}

// reach connects to the leader, and makes sure that it is the one.
func (r *Record) reach(ctx context.Context, leader mysqld.Addr) (*mysqld.Conn, error) {
	conn, err := mysqld.Open(ctx, leader)
	if err != nil {
		return nil, err
	}
	led, err := r.led(ctx, conn)
	if err == nil && !led {
		err = refuse("%s is not the leader of the follower %s, which is %s: name that one with --dsn", leader, r.Name, r.Leader)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// led tells whether a server is the leader: MySQL's by its UUID, MariaDB's, which has none, by where it is found. Followers of
// the earliest davids do not have that on record.
func (r *Record) led(ctx context.Context, c *mysqld.Conn) (bool, error) {
	if !mariaDB(r.Flavour) {
		who, err := c.Identity(ctx)
		return who.UUID == r.UUID, err
	}
	v, err := c.Variables(ctx)
	return r.At == Spot{} || r.At.is(spotOf(v)), err
}

// meant refuses a server that answers and is not the leader, before anything is done by which there is no way back. One that
// does not answer is no reason.
func (r *Record) meant(ctx context.Context, leader mysqld.Addr) error {
	if r.Account == "" {
		return nil
	}
	conn, err := r.reach(ctx, leader)
	if errors.Is(err, ErrInput) {
		return err
	}
	if err != nil {
		return nil
	}
	return conn.Close()
}

// reachBoth connects to a leader and its follower.
func (r *Record) reachBoth(ctx context.Context, leader mysqld.Addr) (pair, error) {
	of, err := r.reach(ctx, leader)
	if err != nil {
		return pair{}, err
	}
	own, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		return pair{}, errors.Join(err, of.Close())
	}
	return r.pair(of, own), nil
}

func (p pair) close() error { return errors.Join(p.leader.Close(), p.follower.Close()) }

func (p pair) verify(ctx context.Context) (v Verdict, err error) {
	for _, side := range []*mysqld.Conn{p.leader, p.follower} {
		if err := sighted(ctx, side); err != nil {
			return v, err
		}
	}
	if err := p.hears(ctx); err != nil {
		return v, err
	}
	session, err := p.leader.Single(ctx)
	if err != nil {
		return v, err
	}
	defer session.Close()
	defer func() { err = errors.Join(err, p.resume()) }()
	own, err := p.follower.Single(ctx)
	if err != nil {
		return v, err
	}
	defer own.Close()
	var at spot
	var f found
	for i := range looks {
		if at, err = p.meet(ctx, session); err != nil {
			return v, err
		}
		if f, err = (sides{session, own}).compare(ctx, f.open()); err != nil {
			return v, err
		}
		v.At, v.Different = at.gtids, f.different
		if i == 0 {
			v.Tables = f.tables
		}
		if len(f.open()) == 0 {
			return v, nil
		}
	}
	v.Different, v.Changed, err = f.altered(ctx, session, at)
	v.Tables -= len(v.Changed)
	switch {
	case len(v.Different) > 0:
		err = errors.Join(fmt.Errorf("%w in %d of %d tables, %s among them: drop the follower%s", ErrDifferent, len(v.Different), v.Tables, v.Different[0], p.wrote(ctx)), err)
	case len(v.Changed) > 0:
		err = errors.Join(fmt.Errorf("%w (%d, %s among them)", ErrChanged, len(v.Changed), v.Changed[0]), err)
	}
	return v, err
}

// wrote tells of a follower's own transactions, where it says that it has some.
func (p pair) wrote(ctx context.Context) string {
	if more, err := p.strays(ctx); err == nil && more != "" {
		return " (somebody wrote to it: it has transactions that its leader has not, " + more + ")"
	}
	return ""
}

// spot is where a leader was looked at: the GTIDs it had, and how far its binary log was.
type spot struct{ gtids, file, position string }

// meet looks at the leader, and has the follower stand exactly there. It goes on receiving: what a leader has acknowledged
// meanwhile is not lost with it.
func (p pair) meet(ctx context.Context, session *mysqld.Single) (at spot, err error) {
	for range attempts {
		if err := p.follower.Exec(ctx, p.stop+" SQL_THREAD"); err != nil {
			return at, err
		}
		if at, err = p.look(ctx, session); err != nil {
			return at, err
		}
		if err := p.apply(ctx, fmt.Sprintf(p.until, at.gtids, at.file, at.position)); err != nil {
			return at, err
		}
		if err := p.reach(ctx, at.gtids); errors.Is(err, errHalted) {
			continue
		} else if err != nil {
			return at, err
		}
		if err := p.follower.Exec(ctx, p.stop+" SQL_THREAD"); err != nil {
			return at, err
		}
		if exact, err := p.stands(ctx, at.gtids); exact || err != nil {
			return at, err
		}
		more, err := p.strays(ctx)
		if err != nil {
			return at, err
		}
		if more != "" && !p.maria { // which stands elsewhere for other reasons
			return at, fmt.Errorf("cannot compare the rows: %w: %s; somebody wrote to it: drop it and clone again", ErrDiverged, more)
		}
	}
	return at, fmt.Errorf("cannot compare the rows: the follower does not stop where it is told to (%s)", at.gtids)
}

// resumePatience is how long a follower may take to go on.
const resumePatience = 2 * time.Minute

// resume has the follower go on, also where the comparison was given up.
func (p pair) resume() error {
	ctx, cancel := context.WithTimeout(context.Background(), resumePatience)
	defer cancel()
	if err := errors.Join(p.follower.Exec(ctx, p.stop+" SQL_THREAD"), p.apply(ctx, p.start+" SQL_THREAD")); err != nil {
		return fmt.Errorf("%w: %w", errStays, err)
	}
	return nil
}

// apply starts the applying thread. A MariaDB whose receiving thread has stopped meanwhile would throw away what it has received:
// it is left as it is then.
func (p pair) apply(ctx context.Context, start string) error {
	if p.maria {
		s, err := p.replication(ctx)
		if err != nil {
			return err
		}
		if s["io_running"] == "No" {
			return fmt.Errorf("its receiving thread has stopped while its rows were compared (%s), and to start the other would throw away what it has received", cmp.Or(s["last_io_error"], "by somebody"))
		}
	}
	return p.follower.Exec(ctx, start)
}

// look begins a snapshot of the leader's transactions, and returns where that is. MySQL takes no two such
// things at once, so that writers are held off for a moment; MariaDB tells of its snapshot.
func (p pair) look(ctx context.Context, s *mysqld.Single) (at spot, err error) {
	for _, text := range []string{"ROLLBACK", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"} {
		if err := s.Exec(ctx, text); err != nil {
			return at, err
		}
	}
	const begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
	if p.maria {
		if err := s.Exec(ctx, begin); err != nil {
			return at, err
		}
		of, err := s.Pairs(ctx, "SHOW STATUS LIKE 'binlog_snapshot_%'")
		if err != nil {
			return at, err
		}
		at.file, at.position = of["binlog_snapshot_file"], of["binlog_snapshot_position"]
		at.gtids, err = one(ctx, s, fmt.Sprintf("SELECT BINLOG_GTID_POS('%s', %s)", at.file, at.position))
		return at, err
	}
	if err := s.Exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", lockPatience)); err != nil {
		return at, err
	}
	if err := s.Exec(ctx, "FLUSH TABLES WITH READ LOCK"); err != nil {
		return at, fmt.Errorf("cannot have a moment without writers within %d s: %w", lockPatience, err)
	}
	if err = s.Exec(ctx, begin); err == nil {
		at, err = p.here(ctx, s)
	}
	return at, errors.Join(err, s.Exec(ctx, "UNLOCK TABLES"))
}

// here returns how far a MySQL is whose writers are held off.
func (p pair) here(ctx context.Context, s *mysqld.Single) (at spot, err error) {
	log, err := s.Rows(ctx, 2, p.logs)
	if err != nil {
		return at, err
	}
	if len(log) != 1 {
		return at, mysqld.ErrProtocol
	}
	at.file, at.position = log[0][0], log[0][1]
	at.gtids, err = one(ctx, s, "SELECT "+p.position)
	return at, err
}

// one returns the GTIDs that are the only value that a query has.
func one(ctx context.Context, s *mysqld.Single, query string) (string, error) {
	rows, err := s.Rows(ctx, 1, query)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", mysqld.ErrProtocol
	}
	return gtids(rows[0][0])
}

// stands tells whether the follower has these GTIDs and no other.
func (p pair) stands(ctx context.Context, at string) (bool, error) {
	if p.maria {
		var now string
		err := p.follower.Row(ctx, "SELECT @@GLOBAL.gtid_slave_pos", nil, &now)
		return sameSet(now, at), err
	}
	var same string
	err := p.follower.Row(ctx, "SELECT GTID_SUBSET(@@GLOBAL.gtid_executed, '"+at+"')", nil, &same)
	return same == "1", err
}

// strays returns the GTIDs of transactions that a follower has and its leader has not; of MariaDB's the last one of its own in each
// domain.
func (p pair) strays(ctx context.Context) (string, error) {
	if p.maria {
		var state, id string
		err := p.follower.Row(ctx, "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.server_id", nil, &state, &id)
		own := strings.Split(state, ",")
		own = slices.DeleteFunc(own, func(one string) bool { return !strings.Contains(one, "-"+id+"-") })
		return strings.Join(own, ","), err
	}
	own, err := p.at(ctx, p.follower)
	if err != nil {
		return "", err
	}
	var more string
	if err := p.leader.Row(ctx, "SELECT GTID_SUBTRACT('"+own+"', @@GLOBAL.gtid_executed)", nil, &more); err != nil {
		return "", err
	}
	return gtids(more)
}

// sameSet compares MariaDB's positions: the last GTID of each domain, in any order.
func sameSet(a, b string) bool {
	split := func(s string) []string { f := strings.Split(s, ","); slices.Sort(f); return f }
	return slices.Equal(split(a), split(b))
}
