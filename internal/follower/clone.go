// Package follower makes a server that follows another from a clone of its data, without copying them through
// the network:
//
//	Look (is it a leader, which process) -> survey (how its data can be taken) -> take (the process held, blocks shared;
//	  or a snapshot of its volume) -> start (recover as from a crash, own identity) -> attach (replication from where the data end) -> catch up -> verify
//
// The data are taken while the leader's process is stopped (package hold), for some hundredths of a second,
// and so are what a kill -9 of it would have left. All that is made is on record in david's home before it is
// made; what a david that died has half-made, Reap undoes.
package follower

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/ceph"
	"david/internal/clone"
	"david/internal/hold"
	"david/internal/host"
	"david/internal/input"
	"david/internal/mysqld"
)

// Request says what follower is wanted, of which leader.
type Request struct {
	Name     string
	Leader   mysqld.Addr // its account is used on the follower, too, which has the same ones
	Dir      string      // where the follower's folder is made; "" beside the leader's data
	Port     int         // 0 for a free one
	Pool     int64       // bytes of the buffer pool; 0 for the leader's, a quarter of what is free at most
	Copy     bool        // copy the blocks
	Image    *ceph.Image // that the leader's filesystem lies on; nil where it lies on no RBD image
	MaxPause time.Duration
	CatchUp  time.Duration // how long it may take to catch up
	Account  *Account      // for replication; nil to make one
	Guard    []string      // the arguments that have this program be a guard
	Say      func(string)
}

// Account is one of the leader's that replicas use.
type Account struct {
	User     string
	Password mysqld.Secret
}

// Plan is what would be done.
type Plan struct {
	Leader Leader
	Place  Place
	Record Record
	Pool   int64
}

// Prepare looks at the leader and its data, and decides. It changes nothing.
func Prepare(ctx context.Context, q Request) (p Plan, err error) {
	if !name.MatchString(q.Name) {
		return p, refuse("cannot call a follower %q: give it lower-case letters, digits and dashes, a letter first, 24 at most", q.Name)
	}
	conn, err := mysqld.Open(ctx, q.Leader)
	if err != nil {
		return p, err
	}
	defer conn.Close()
	if p.Leader, err = Look(ctx, conn); err != nil {
		return p, err
	}
	if p.Place, err = survey(ctx, p.Leader, q); err != nil {
		return p, err
	}
	l := p.Leader
	r := Record{Name: q.Name, State: Making, Made: time.Now(), Flavour: l.Flavour, Version: l.Version,
		Leader: conn.Addr().String(), UUID: l.UUID, At: spotOf(l.Variables),
		Way: p.Place.Way, Dir: filepath.Join(p.Place.In, folderOf(q.Name)), UID: l.UID, GID: l.GID, Launch: l.Launch, Events: l.Variables["event_scheduler"]}
	if r.Way == Image {
		r.Volume = p.Place.volume(*q.Image, q.Name)
	}
	if r.Way == Dataset {
		r.ZFS = p.Place.named(q.Name)
	}
	if r.UID == 0 { // a follower of a server that runs as root does not
		a, err := account.Find()
		if err != nil {
			return p, err
		}
		r.UID, r.GID = a.UID, a.GID
	}
	if os.Geteuid() != 0 && os.Geteuid() != r.UID {
		return p, refuse("cannot clone data of %s as %s: run david as root or as that user", account.Name(r.UID), account.Name(os.Geteuid()))
	}
	if err := r.runs(ctx); err != nil {
		return p, err
	}
	if len(r.Socket()) > 107 {
		return p, refuse("cannot make a follower in %s: the path of its socket would be longer than 107 bytes; name a folder with a shorter one with --dir", p.Place.In)
	}
	if r.Port, err = port(q.Port); err != nil {
		return p, err
	}
	if r.ID, err = ServerID(l.Variables["server_id"]); err != nil {
		return p, err
	}
	if p.Pool, err = pool(q.Pool, l.Variables["innodb_buffer_pool_size"]); err != nil {
		return p, err
	}
	p.Record = r
	return p, q.temporary(ctx, conn, l)
}

// temporary warns of temporary tables that may be open on a leader whose binary log names such: no clone has them, and a follower stops
// at the first statement that reads one. MariaDB does not tell which are open, but how many were made and dropped, not counting those
// that went with their connections.
func (q Request) temporary(ctx context.Context, leader *mysqld.Conn, l Leader) error {
	if !mariaDB(l.Flavour) || l.Variables["binlog_format"] == "ROW" {
		return nil
	}
	counts, err := leader.Pairs(ctx, `SHOW GLOBAL STATUS LIKE 'Com\_%temporary\_table'`)
	if err != nil {
		return err
	}
	made, err := strconv.ParseUint(counts["com_create_temporary_table"], 10, 64)
	dropped, also := strconv.ParseUint(counts["com_drop_temporary_table"], 10, 64)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	if made > dropped {
		q.Say(fmt.Sprintf("the leader may have temporary tables open, which no clone has (%d made, %d dropped): with binlog_format=%s a statement that reads one stops the follower; "+
			"close the connections that have some first, or set binlog_format=ROW for all", made, dropped, l.Variables["binlog_format"]))
	}
	return nil
}

// Stands tells whether the leader has to stand still while its data are taken. A snapshot of its volume is of one
// moment by itself, and has all that a power cut would leave, which is all of a server that writes through. One of a ZFS
// dataset has what was not synced, too (Place.tears).
func (p Plan) Stands() bool {
	switch p.Place.Way {
	case Image:
		return p.Leader.Cuttable() != nil
	case Dataset:
		return p.Place.Tears
	}
	return true
}

// ServerID is a number that no other server of the leader's is likely to have.
func ServerID(leader string) (uint32, error) {
	var b [4]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return 0, err
		}
		if id := binary.LittleEndian.Uint32(b[:]) >> 1; id > 1000 && fmt.Sprint(id) != leader {
			return id, nil
		}
	}
}

// Make carries a plan out. On an error nothing of it is left, or the error says what is.
func Make(ctx context.Context, home string, q Request, p Plan) (r *Record, err error) {
	began := time.Now()
	record := p.Record
	r = &record
	if err := create(home, r); err != nil {
		return nil, err
	}
	if !r.gone() {
		return nil, errors.Join(refuse("%s is there already: remove it, or name another folder with --dir", r.Dir), r.forget())
	}
	conn, err := mysqld.Open(ctx, q.Leader)
	if err == nil {
		err = errors.Join(r.make(ctx, q, p, conn), conn.Close())
	}
	if err != nil {
		return nil, errors.Join(err, r.unmake(q.Leader))
	}
	r.State, r.Times.All = Following, time.Since(began).Seconds()
	if err := r.save(); err != nil {
		return nil, errors.Join(err, r.unmake(q.Leader))
	}
	return r, r.Close()
}

// Start starts the server of a follower that is there, as after a reboot, and waits until a following one has
// caught up. One that runs is left as it is, and only waited for. A promotion that was cut short is ended (settle): the state tells.
func (r *Record) Start(ctx context.Context, leader mysqld.Addr, patience time.Duration) error {
	if r.State != Following && r.State != Promoted {
		return refuse("cannot start the follower %s: it is %s", r.Name, r.State)
	}
	if err := r.remount(ctx); err != nil {
		return err
	}
	own, err := r.comes(ctx, leader)
	if err != nil {
		return err
	}
	err = r.settle(ctx, own, leader)
	own.Close()
	if err != nil || r.State == Promoted {
		return err
	}
	p, err := r.reachBoth(ctx, leader)
	if err != nil {
		return r.waits(ctx, leader, err)
	}
	defer p.close()
	if err := r.takeUp(ctx, p); err != nil {
		return err
	}
	return p.catchUp(ctx, patience)
}

// comes starts the follower's server, or waits for the one that was started. What its my.cnf would let it do waits where a promotion
// was cut short, until the server has told how far that came.
func (r *Record) comes(ctx context.Context, leader mysqld.Addr) (*mysqld.Conn, error) {
	running, err := r.processes()
	if err != nil {
		return nil, err
	}
	switch {
	case len(running) > 0:
		return r.comesUp(ctx, leader)
	case r.State == Following && (r.Promoting != nil || r.opened()):
		return r.start(ctx, leader, r.withheld()...)
	case r.State == Following && mariaDB(r.Flavour): // which throws away what it has received and not applied when replication starts: not before the leader answers
		return r.start(ctx, leader, "--"+r.words().skip)
	}
	return r.start(ctx, leader)
}

// takeUp starts what of replication is stopped and not by an error, unless that would lose what was received; a comparison that was
// interrupted is over.
func (r *Record) takeUp(ctx context.Context, p pair) error {
	if r.Comparing != nil { // it may be on its way to where the two were to be compared
		if err := p.follower.Exec(ctx, p.stop+" SQL_THREAD"); err != nil {
			return err
		}
	}
	s, err := p.replication(ctx)
	if err != nil || s == nil {
		return err
	}
	receives, applies := s["io_running"] != "No", s["sql_running"] != "No"
	switch {
	case !receives && !applies:
		if p.maria {
			err = r.keeps(ctx, p)
		}
		if err == nil {
			err = p.follower.Exec(ctx, p.start)
		}
	case !applies && s["last_sql_error"] == "":
		err = p.follower.Exec(ctx, p.start+" SQL_THREAD")
	case !receives && s["last_io_error"] == "":
		err = p.follower.Exec(ctx, p.start+" IO_THREAD")
	}
	if err != nil || r.Comparing == nil {
		return err
	}
	r.Comparing = nil
	return r.save()
}

// waits says of a follower whose leader does not answer that its replication is stopped, where it is.
func (r *Record) waits(ctx context.Context, leader mysqld.Addr, why error) error {
	own, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		return errors.Join(why, err)
	}
	defer own.Close()
	s, err := r.pair(nil, own).replication(ctx)
	if err == nil && s != nil && s["io_running"] == "No" && s["sql_running"] == "No" {
		why = fmt.Errorf("%w; the follower's server runs, and its replication stays stopped until its leader answers this command; without the leader: david follower promote %s", why, r.Name)
	}
	return errors.Join(why, err)
}

// unmake removes what was made so far, also where the user does not want to wait any more.
func (r *Record) unmake(leader mysqld.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := r.Drop(ctx, leader, false); err != nil {
		return fmt.Errorf("cannot remove what was made of the follower %s: %w", r.Name, errors.Join(err, r.Close()))
	}
	return nil
}

func (r *Record) make(ctx context.Context, q Request, p Plan, leader *mysqld.Conn) error {
	since, err := r.pair(leader, nil).at(ctx, leader)
	if err != nil {
		return err
	}
	if err := r.collect(ctx, q, p); err != nil {
		return err
	}
	q.Say("the data are cloned: " + r.Times.Pause())
	if err := r.configure(p); err != nil {
		return err
	}
	began := time.Now()
	follower, err := r.start(ctx, q.Leader, "--"+r.words().skip)
	if err != nil {
		return err
	}
	defer follower.Close()
	r.Times.Start = time.Since(began).Seconds()
	q.Say(fmt.Sprintf("the follower's server is up after %.1f s", r.Times.Start))
	began = time.Now()
	pair := r.pair(leader, follower)
	pair.since = since
	if err := r.replicate(ctx, q, p.Leader, pair); err != nil {
		return err
	}
	if err := pair.catchUp(ctx, q.CatchUp); err != nil {
		return err
	}
	r.Times.CatchUp = time.Since(began).Seconds()
	if !pair.maria {
		return nil
	}
	// MariaDB does not sync what it notes of its leader (master.info): after a crash soon the follower would know none.
	return r.guarded(ctx, startPatience, func() error { return flush(ctx, r.data()) })
}

// collect makes the follower's folder and takes the data into it.
func (r *Record) collect(ctx context.Context, q Request, p Plan) (err error) {
	if err := r.folder(); err != nil {
		return err
	}
	began := time.Now()
	if r.Volume != nil {
		if err := r.Volume.leads(ctx, p.Place.From); err != nil {
			return err
		}
	}
	if err := flush(ctx, p.Place.From); err != nil { // so that little is left to be written while the leader stands still
		return err
	}
	if r.Volume != nil {
		r.Volume.Taking = true
	}
	if err := r.save(); err != nil {
		return err
	}
	if p.Stands() {
		err = r.stand(ctx, q, p)
	} else {
		err = p.Place.take(ctx, r)
	}
	if err != nil {
		return err
	}
	if r.Volume != nil {
		if err := r.unfold(ctx); err != nil {
			return err
		}
	}
	if r.ZFS != nil {
		if err := r.part(ctx, p.Place.Like); err != nil {
			return err
		}
	}
	err = r.guarded(ctx, startPatience, func() error { return r.adopt(p.Leader) })
	r.Times.Data = time.Since(began).Seconds()
	return errors.Join(err, r.save())
}

// stand takes the data while the leader stands still.
func (r *Record) stand(ctx context.Context, q Request, p Plan) error {
	r.Held = &hold.Target{Process: p.Leader.Process}
	if err := r.save(); err != nil {
		return err
	}
	err := hold.Promptly(func() error { return r.still(ctx, q, p.Place) })
	r.Held = nil
	late := errors.Is(err, hold.ErrExpired) || errors.Is(err, context.DeadlineExceeded)
	if late && r.Volume != nil {
		return refuse("cannot take a snapshot of %s within --max-pause %s, after which the leader went on: allow more", r.Volume.leaders().Spec(), q.MaxPause)
	}
	if late && r.ZFS != nil {
		return refuse("cannot take a snapshot of %s within --max-pause %s, after which the leader went on: allow more, or set innodb_doublewrite=ON", r.ZFS.Of, q.MaxPause)
	}
	if late && r.Way == Copy {
		return refuse("cannot copy %s in %d files within --max-pause %s, after which the leader went on: allow more, or put the data where blocks can be shared, without --copy (docs/follower.md)",
			host.Size(p.Place.Bytes), p.Place.Files, q.MaxPause)
	}
	if late {
		return refuse("cannot take %d files within --max-pause %s, after which the leader went on: allow more, or have fewer tables", p.Place.Files, q.MaxPause)
	}
	return err
}

// adopt makes what was taken the follower's own.
func (r *Record) adopt(l Leader) error {
	if r.Volume != nil {
		if err := r.mount(); err != nil {
			return err
		}
	}
	if r.Way == Subvolume || r.Way == Image || r.Way == Dataset {
		if err := r.own(); err != nil {
			return err
		}
	}
	if err := r.relist(l); err != nil {
		return fmt.Errorf("cannot make the follower's list of binary logs: %w", err)
	}
	return flush(context.Background(), r.data())
}

// still takes the data while the leader's process is stopped.
func (r *Record) still(ctx context.Context, q Request, p Place) error {
	h, err := hold.Begin(ctx, q.Guard, *r.Held, q.MaxPause)
	if err != nil {
		return err
	}
	until, cancel := context.WithTimeout(ctx, q.MaxPause)
	defer cancel()
	err = p.take(until, r)
	held, ended := h.End()
	r.Times.Held = held.Seconds()
	return errors.Join(err, ended)
}

// take takes the data, which stand still.
func (p Place) take(ctx context.Context, r *Record) error {
	switch p.Way {
	case Subvolume:
		return snapshot(p.From, r.data())
	case Dataset:
		return r.zfs().Snapshot(ctx, r.ZFS.snapshot(), map[string]string{owned: r.mine()})
	case Image:
		if err := flush(ctx, p.From); err != nil {
			return err
		}
		err := r.Volume.leaders().Snapshot(ctx, r.Volume.Name)
		r.Volume.Taking = errors.Is(err, ceph.ErrUnknown)
		return err
	}
	o := clone.Options{Skip: identity, Shared: p.Way == Reflink}
	if os.Geteuid() == 0 {
		o.Own = func(fs.FileInfo) (uid, gid int) { return r.UID, r.GID }
	}
	return clone.Tree(ctx, p.From, r.data(), o)
}

// identity tells what is the leader's own, and no follower may have: its UUID, what SET PERSIST wrote for it,
// its process's number.
func identity(path string) bool {
	return path == "auto.cnf" || path == "mysqld-auto.cnf" || !strings.Contains(path, "/") && (filepath.Ext(path) == ".pid" || filepath.Ext(path) == ".lock")
}

// own removes the leader's identity from a snapshot, and gives it to the server's user where that is another
// than the leader's.
func (r *Record) own() error {
	root, err := os.OpenRoot(r.data())
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case identity(path):
			return root.Remove(path)
		case os.Geteuid() == 0:
			return root.Lchown(path, r.UID, r.GID)
		}
		return nil
	})
}

// relist has the follower's list of binary logs name its own. The leader's may name them by whole paths
// (where log_bin is one), by which the follower would open and purge the leader's; and it may be called
// anything (log_bin_index).
func (r *Record) relist(l Leader) error {
	root, err := os.OpenRoot(r.data())
	if err != nil {
		return err
	}
	defer root.Close()
	logs, _ := l.within("log_bin_basename")
	list, _ := l.within("log_bin_index")
	text, err := readIn(root, list)
	if err != nil {
		return err
	}
	own, err := l.relative(string(text))
	if err != nil {
		return err
	}
	return r.replace(root, logs+".index", own)
}

// mostList is read of a list of binary logs, in bytes: some 100,000 logs.
const mostList = 16 << 20

// readIn reads a file of a folder that the server's user may write to: a pipe could keep it waiting.
func readIn(root *os.Root, path string) ([]byte, error) {
	in, err := root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, input.ErrKind)
	}
	if err != nil {
		return nil, err
	}
	return input.All(in, path, mostList)
}

// relative returns a list of binary logs with each as it is seen from the data directory.
func (l Leader) relative(list string) (string, error) {
	var own strings.Builder
	for line := range strings.Lines(list) {
		rel, ok := l.inside(strings.TrimSuffix(line, "\n"))
		if !ok {
			return "", refuse("the leader's names %s, outside of its data directory: PURGE BINARY LOGS up to those inside first", strings.TrimSpace(line))
		}
		own.WriteString("./" + rel + "\n")
	}
	return own.String(), nil
}

// replace writes a file of the server's anew, below its folder.
func (r *Record) replace(root *os.Root, path, text string) error {
	if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, r.give(out), out.Close())
}

// flush brings what was written on a folder's filesystem to the disk. Where that does not answer only ctx ends it.
func flush(ctx context.Context, dir string) error {
	done := make(chan error, 1)
	go func() {
		f, err := os.Open(dir)
		if err == nil {
			err = errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
		}
		done <- err
	}()
	err := error(nil)
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s to the disk: %w", dir, err)
	}
	return nil
}
