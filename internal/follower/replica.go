package follower

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// The errors of a follower that cannot go on.
var (
	ErrPurged   = errors.New("the leader has purged binary logs that the follower needs: drop it and clone again")
	ErrDiverged = errors.New("the follower has transactions that the leader has not")
	ErrBehind   = errors.New("the follower has not caught up")
	ErrMidst    = errors.New("the leader was in the midst of a CREATE, ALTER, RENAME, TRUNCATE or DROP when its data were taken, which the follower's server has ended by itself, and its leader would send once more: clone again, by the same command")
	ErrOther    = errors.New("the clone lacks transactions that the leader had before it was taken: it is of other data than the leader's")
)

// words are how a flavour says the same things.
type words struct {
	start, stop, reset, status string
	position                   string // what a server has, GTIDs
	wait                       string // for GTIDs, some seconds
	until                      string // of a start of the applying thread: GTIDs, or where they end in the leader's binary log
	skip                       string // the option that starts without replication
	replicas                   string // lists a server's
	logs                       string // how far the binary log is
}

func (r *Record) words() words {
	if mariaDB(r.Flavour) {
		return words{"START SLAVE", "STOP SLAVE", "RESET SLAVE ALL", "SHOW SLAVE STATUS", "@@GLOBAL.gtid_binlog_pos",
			"SELECT MASTER_GTID_WAIT('%s', %d)", "START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE = '%[2]s', MASTER_LOG_POS = %[3]s", "skip-slave-start", "SHOW SLAVE HOSTS", ""}
	}
	w := words{"START REPLICA", "STOP REPLICA", "RESET REPLICA ALL", "SHOW REPLICA STATUS", "@@GLOBAL.gtid_executed",
		"SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', %d)", "START REPLICA SQL_THREAD UNTIL SQL_AFTER_GTIDS = '%[1]s'", "skip-replica-start", "SHOW REPLICAS", "SHOW MASTER STATUS"}
	if v, err := mycnf.ParseVersion(r.Version); err == nil {
		w.logs = logStatus(r.Flavour, v)
		if !v.AtLeast(8, 0, 26) {
			w.skip = "skip-slave-start"
		}
	}
	return w
}

// pair is a leader and its follower.
type pair struct {
	leader, follower *mysqld.Conn
	words
	maria bool
	say   func(string)
	since string // GTIDs that the follower's data must have: the leader had them before they were taken
}

func (r *Record) pair(leader, follower *mysqld.Conn) pair {
	return pair{leader: leader, follower: follower, words: r.words(), maria: mariaDB(r.Flavour)}
}

// sets are GTIDs in the forms of both flavours, on one line: what a server says becomes part of a statement.
var sets = regexp.MustCompile(`^[0-9A-Za-z_:, -]*$`)

// gtids returns what a server says of its GTIDs on one line.
func gtids(said string) (string, error) {
	said = strings.ReplaceAll(said, "\n", "")
	if !sets.MatchString(said) {
		return "", fmt.Errorf("cannot read %.40q as GTIDs: %w", said, mysqld.ErrProtocol)
	}
	return said, nil
}

// at returns the GTIDs that a server has, on one line.
func (p pair) at(ctx context.Context, c *mysqld.Conn) (string, error) {
	var said string
	if err := c.Row(ctx, "SELECT "+p.position, nil, &said); err != nil {
		return "", err
	}
	return gtids(said)
}

// replicate makes the account where that was asked for, and has the follower follow from where its data end.
func (r *Record) replicate(ctx context.Context, q Request, l Leader, p pair) error {
	from, err := p.end(ctx)
	if err != nil {
		return err
	}
	account := q.Account
	if account == nil {
		if account, err = r.admit(ctx, l, p.leader); err != nil {
			return err
		}
	}
	return p.follow(ctx, l, from, *account)
}

// follow has a follower whose data end somewhere go on from there.
func (p pair) follow(ctx context.Context, l Leader, from string, a Account) error {
	for _, statement := range append(p.begin(from), l.source(p.maria, a), p.start) {
		if err := p.follower.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// end returns the GTIDs of the data, and makes sure that they are the leader's: that they hold what it had before they
// were taken, and nothing that it has not; and that it has what follows.
func (p pair) end(ctx context.Context) (string, error) {
	end, err := p.at(ctx, p.follower)
	if err != nil {
		return "", err
	}
	if p.maria { // what it has not got any more it says itself when it is asked to go on from there
		if err := p.midst(ctx, end); err != nil {
			return "", err
		}
		now, err := p.at(ctx, p.leader)
		switch {
		case err != nil:
			return "", err
		case !ahead(end, p.since):
			return "", ErrOther
		case !ahead(now, end):
			return "", ErrDiverged
		}
		return end, nil
	}
	var known, kept, whole string
	query := "SELECT GTID_SUBSET('" + end + "', @@GLOBAL.gtid_executed), GTID_SUBSET(@@GLOBAL.gtid_purged, '" + end + "'), GTID_SUBSET('" + p.since + "', '" + end + "')"
	if err := p.leader.Row(ctx, query, nil, &known, &kept, &whole); err != nil {
		return "", err
	}
	switch {
	case known != "1":
		return "", ErrDiverged
	case whole != "1":
		return "", ErrOther
	case kept != "1":
		return "", ErrPurged
	}
	return end, nil
}

// midst refuses data that end with a GTID of the follower's own: as it recovers, MariaDB ends a DDL statement that was under way and
// writes it to its binary log. The leader has that by another GTID, and to apply it twice can fail, or undo what came between.
func (p pair) midst(ctx context.Context, end string) error {
	var id string
	if err := p.follower.Row(ctx, "SELECT @@GLOBAL.server_id", nil, &id); err != nil {
		return err
	}
	if strings.Contains(end, "-"+id+"-") {
		return fmt.Errorf("%w (%s)", ErrMidst, end)
	}
	return nil
}

// ahead tells whether a position of MariaDB's, the last DOMAIN-SERVER-NUMBER of each domain, is at another or past it.
func ahead(position, other string) bool {
	last := func(list string) map[string]uint64 {
		numbers := map[string]uint64{}
		for one := range strings.SplitSeq(list, ",") {
			parts := strings.Split(strings.TrimSpace(one), "-")
			if n, err := strconv.ParseUint(parts[len(parts)-1], 10, 64); err == nil {
				numbers[parts[0]] = max(n, numbers[parts[0]])
			}
		}
		return numbers
	}
	at := last(position)
	for domain, n := range last(other) {
		if at[domain] < n {
			return false
		}
	}
	return true
}

// begin says from where a follower goes on: MySQL knows it from its own binary log.
func (p pair) begin(from string) []string {
	if p.maria {
		return []string{mycnf.SetStatement("GLOBAL", "gtid_slave_pos", from)}
	}
	return nil
}

// admit makes an account for the follower alone, of a random password that nobody but the follower keeps. It
// is on record first.
func (r *Record) admit(ctx context.Context, l Leader, leader *mysqld.Conn) (*Account, error) {
	r.Account = "'" + accountOf(r.Name) + "'@'" + l.Address + "'"
	if err := r.save(); err != nil {
		return nil, err
	}
	a, err := l.grant(ctx, leader, r.Name, r.Account)
	if errors.Is(err, errForeign) {
		r.Account = ""
		return nil, errors.Join(err, r.save())
	}
	return a, err
}

// errForeign says that an account was not made: what there is of its name is another's.
var errForeign = errors.New("the account is not the follower's")

// grant makes the account of a follower on its leader.
func (l Leader) grant(ctx context.Context, leader *mysqld.Conn, name, quoted string) (*Account, error) {
	// Of 32 characters at most, as replication takes, with one of each kind that rules for passwords ask for.
	a := &Account{User: accountOf(name), Password: mysqld.Secret(rand.Text() + "-a1Z")}
	create := "CREATE USER " + quoted + " IDENTIFIED BY '" + string(a.Password) + "'"
	if mariaDB(l.Flavour) { // which writes the statement to its binary log as it stands; MySQL masks it
		create = "CREATE USER " + quoted + " IDENTIFIED BY PASSWORD '" + nativeHash(string(a.Password)) + "'"
	}
	if l.TLS {
		create += " REQUIRE SSL"
	}
	if err := leader.Exec(ctx, create); err != nil {
		err = fmt.Errorf("cannot make the follower's account %[1]s: %[2]w; if one of that name is left there and nobody needs it: DROP USER %[1]s; else give the follower another name, or --account", quoted, err)
		if mysqld.Number(err) != 0 { // the server's own: it may be there already, and is another's then
			err = foreign{err}
		}
		return nil, err
	}
	if err := leader.Exec(ctx, "GRANT REPLICATION SLAVE ON *.* TO "+quoted); err != nil {
		return nil, fmt.Errorf("cannot let the follower's account replicate, which takes REPLICATION SLAVE WITH GRANT OPTION (or name another account, with --account): %w", err)
	}
	return a, nil
}

// nativeHash is what mysql_native_password keeps of a password: * and SHA1(SHA1(password)) in hexadecimal digits (MariaDB's
// documentation, PASSWORD()).
func nativeHash(password string) string {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

// foreign keeps an error's words.
type foreign struct{ error }

func (f foreign) Unwrap() []error { return []error{errForeign, f.error} }

// accountOf names the account of a follower.
func accountOf(name string) string { return "david_" + strings.ReplaceAll(name, "-", "_") }

// source is the statement that says whom to follow. Of what it holds, errors and logs quote the first two
// words at most.
func (l Leader) source(maria bool, a Account) string {
	say := "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%[1]s', SOURCE_PORT=%[2]d, SOURCE_USER='%[3]s', SOURCE_PASSWORD='%[4]s', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=5, %[5]s"
	secure := "SOURCE_SSL=1"
	switch {
	case maria:
		say = "CHANGE MASTER TO MASTER_HOST='%[1]s', MASTER_PORT=%[2]d, MASTER_USER='%[3]s', MASTER_PASSWORD='%[4]s', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=5, %[5]s"
		secure = fmt.Sprintf("MASTER_SSL=%d, MASTER_SSL_VERIFY_SERVER_CERT=0", map[bool]int{true: 1}[l.TLS])
	case !l.TLS: // which newer MySQLs insist on unless they are told; on this machine alone: the key that it asks for is the leader's
		secure = "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1"
	}
	quote := strings.NewReplacer(`\`, `\\`, "'", "''").Replace
	return fmt.Sprintf(say, l.Address, l.Port, quote(a.User), quote(string(a.Password)), secure)
}

// catchUp waits until the follower has what the leader had less than a second ago.
func (p pair) catchUp(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %s: see whether it ever can under this load; --catch-up allows more", ErrBehind, patience))
	defer cancel()
	for {
		goal, err := p.at(ctx, p.leader)
		if err != nil {
			return cause(ctx, err)
		}
		began := time.Now()
		if err := p.reach(ctx, goal); err != nil {
			return cause(ctx, err)
		}
		if time.Since(began) < time.Second {
			return nil
		}
	}
}

// cause is why a context ended, else the error.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reach waits until the follower has these GTIDs.
func (p pair) reach(ctx context.Context, goal string) error {
	halted := false
	for {
		var left string
		if err := p.follower.Row(ctx, fmt.Sprintf(p.wait, goal, 1), nil, &left); err != nil {
			return err
		}
		if left == "0" {
			return nil
		}
		err := p.healthy(ctx)
		if err != nil && (halted || !errors.Is(err, errHalted) && !errors.Is(err, errDeaf)) { // which the goal itself can have done since it was waited for
			return err
		}
		halted = err != nil
	}
}

// errHalted says that a follower applies nothing, and not for an error.
var errHalted = errors.New("the follower's applying thread is stopped (STOP REPLICA, STOP SLAVE): david follower start has it go on, or says what keeps it from that")

// errDeaf says that a follower receives nothing, and not for an error.
var errDeaf = errors.New("the follower's receiving thread is stopped (STOP REPLICA, STOP SLAVE): david follower start has it go on, or says what keeps it from that")

// replication is what a follower says of its replication, by names without "replica", "slave", "source" and
// "master"; nil where it follows nobody.
func (p pair) replication(ctx context.Context) (map[string]string, error) {
	rows, err := p.follower.Records(ctx, p.status)
	rows = slices.DeleteFunc(rows, func(row map[string]string) bool { return row["channel_name"] != "" }) // somebody's own
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	status := map[string]string{}
	plain := strings.NewReplacer("replica_", "", "slave_", "", "source_", "", "master_", "", "_source", "", "_master", "")
	for name, value := range rows[0] {
		status[plain.Replace(name)] = value
	}
	return status, nil
}

// purged tells whether a leader said that it has not got any more what a replica asks for:
// ER_MASTER_FATAL_ERROR_READING_BINLOG, which newer MySQLs number otherwise, has other reasons, too.
func purged(status map[string]string) bool {
	number, text := status["last_io_errno"], status["last_io_error"]
	return (number == "1236" || number == "13114") && (strings.Contains(text, "purged") || strings.Contains(text, "ould not find"))
}

// healthy says why a follower does not go on; a leader that does not answer is asked again by the follower
// itself.
func (p pair) healthy(ctx context.Context) error {
	s, err := p.replication(ctx)
	switch {
	case err != nil:
		return err
	case s == nil:
		return errors.New("the follower follows nobody any more")
	case purged(s):
		return fmt.Errorf("%w (%s)", ErrPurged, s["last_io_error"])
	case s["sql_running"] == "No" && s["last_sql_error"] != "":
		return fmt.Errorf("the follower stopped: %s", s["last_sql_error"])
	case s["sql_running"] == "No":
		return errHalted
	case s["io_running"] == "No" && s["last_io_error"] != "":
		return fmt.Errorf("the follower cannot read from the leader: %s", s["last_io_error"])
	case s["io_running"] == "No":
		return errDeaf
	}
	return nil
}
