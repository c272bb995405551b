package follower

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// Remote is a follower whose server somebody else starts on a copy of the leader's data, as in a cluster; both are
// reached by connections.
type Remote struct {
	Name             string
	Leader, Follower *mysqld.Conn
	Of               Leader // as Ask saw it
}

// Cuttable makes sure that a copy of a server's volume, taken at one moment without the server's help, has all that its
// binary log says: what a power cut would leave.
func (l Leader) Cuttable() error {
	v := l.Variables
	if v["innodb_flush_log_at_trx_commit"] != "1" || v["sync_binlog"] != "1" {
		return refuse("cannot follow from a snapshot of a server with innodb_flush_log_at_trx_commit=%s and sync_binlog=%s: as after a power cut, data and binary log could differ; set both to 1 first",
			v["innodb_flush_log_at_trx_commit"], v["sync_binlog"])
	}
	if !mycnf.Doubled(v["innodb_doublewrite"]) {
		return refuse("cannot follow from a snapshot of a server with innodb_doublewrite=%s: as after a power cut, a page could be torn; set it to ON first", v["innodb_doublewrite"])
	}
	return l.whole()
}

// Valid tells whether a follower can be called so.
func Valid(called string) error {
	if !name.MatchString(called) {
		return refuse("cannot call a follower %q: give it lower-case letters, digits and dashes, a letter first, 24 at most", called)
	}
	return nil
}

// hosts matches what a leader's address may be: it becomes part of a statement.
var hosts = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.:-]{0,254}$`)

// At has the follower come to the leader at an address of its own.
func (l *Leader) At(host string, port int) error {
	if !hosts.MatchString(host) {
		return refuse("cannot follow a leader at %.60q: give its name or IP", host)
	}
	l.Address, l.Port = host, port
	return nil
}

// AccountFor names the account of a follower that may come from anywhere.
func AccountFor(called string) string { return "'" + accountOf(called) + "'@'%'" }

// Grant makes that account. made tells whether there is something to drop.
func (r *Remote) Grant(ctx context.Context) (a *Account, made bool, err error) {
	a, err = r.Of.grant(ctx, r.Leader, r.Name, AccountFor(r.Name))
	return a, !errors.Is(err, errForeign), err
}

// Expel drops it.
func Expel(ctx context.Context, leader *mysqld.Conn, called string) error {
	return leader.Exec(ctx, "DROP USER IF EXISTS "+AccountFor(called))
}

// Attach has the follower follow from where its data end, and waits until it has caught up.
func (r *Remote) Attach(ctx context.Context, id uint32, a Account, patience time.Duration) error {
	var own string
	if err := r.Follower.Row(ctx, "SELECT @@GLOBAL.server_id", nil, &own); err != nil {
		return err
	}
	if own != fmt.Sprint(id) {
		return fmt.Errorf("the follower's server has server_id %s, and was given %d: its image does not hand options on", own, id)
	}
	if err := r.apart(ctx); err != nil {
		return err
	}
	p := r.both()
	from, err := p.end(ctx)
	if err != nil {
		return err
	}
	if err := p.follow(ctx, r.Of, from, a); err != nil {
		return err
	}
	return p.catchUp(ctx, patience)
}

// apart makes sure that the follower has a UUID of its own.
func (r *Remote) apart(ctx context.Context) error {
	if mariaDB(r.Of.Flavour) { // its servers are told apart by server_id alone
		return nil
	}
	who, err := r.Follower.Identity(ctx)
	if err == nil && who.UUID == r.Of.UUID {
		err = errors.New("the follower's server has the leader's UUID: its auto.cnf was not removed")
	}
	return err
}

func (r *Remote) both() pair {
	like := Record{Flavour: r.Of.Flavour, Version: r.Of.Version}
	return like.pair(r.Leader, r.Follower)
}

// Verify compares the rows of all tables, as Record.Verify does.
func (r *Remote) Verify(ctx context.Context) (Verdict, error) { return r.both().verify(ctx) }

// ParsedVersion is the leader's.
func (l Leader) ParsedVersion() mycnf.Version { return l.version }
