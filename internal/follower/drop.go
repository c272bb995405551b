package follower

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"

	"david/internal/mysqld"
	"david/internal/process"
)

// ErrAccountLeft says that the account of a follower that is gone is still on its leader.
var ErrAccountLeft = errors.New("its account is left on the leader")

// ErrImageLeft says that the image of a follower, or the leader's snapshot, is still in its Ceph cluster.
var ErrImageLeft = errors.New("its image is left in its cluster")

// ErrDatasetLeft says that the dataset of a follower, or the leader's snapshot, is still in its ZFS pool.
var ErrDatasetLeft = errors.New("its dataset is left in its pool")

// Drop ends a follower's server, and removes its data, its account on the leader, and its record. It goes on
// where an earlier one was cut short. leaveImage leaves what is in a Ceph cluster or a
// ZFS pool to the user, as where that is gone.
func (r *Record) Drop(ctx context.Context, leader mysqld.Addr, leaveImage bool) error {
	if !leaveImage {
		if err := r.elsewhere(ctx); err != nil {
			return err
		}
	}
	if !r.gone() { // else it is half-dropped already
		if err := errors.Join(r.meant(ctx, leader), r.alone(), r.plain(), r.unfollowed(ctx, leader)); err != nil {
			return err
		}
	}
	r.State = Dropping
	if err := r.save(); err != nil {
		return err
	}
	if err := r.clear(); err != nil {
		return err
	}
	if leaveImage {
		r.Volume, r.ZFS = nil, nil
	}
	if err := r.discard(ctx); err != nil {
		return err
	}
	if err := r.expel(ctx, leader); err != nil {
		return err
	}
	return r.forget()
}

// alone refuses to drop a follower in whose folder another process than its server writes, as a server that a user has
// started there by other options.
func (r *Record) alone() error {
	all, err := process.Writers(r.Dir)
	if err != nil {
		return err
	}
	own, err := r.processes()
	if err != nil {
		return err
	}
	for _, w := range all {
		if !slices.Contains(own, w.ID) {
			return refuse("cannot drop the follower %s: %s works in %s: stop it first, if what it writes is to go", r.Name, w, r.Dir)
		}
	}
	return nil
}

// Replicas names the servers that replicate from a follower, as its server lists them; none where that does not answer. One
// that answers and does not tell is an error.
func (r *Record) Replicas(ctx context.Context, leader mysqld.Addr) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, replicasPatience)
	defer cancel()
	rows, err := r.listed(ctx, leader)
	switch {
	case mysqld.Number(err) != 0:
		return nil, refuse("the server of %s does not tell who replicates from it: %w; give an account that it lets in and that has REPLICATION SLAVE, or end it first", r.Name, err)
	case err != nil:
		return nil, nil
	}
	for _, row := range rows {
		name := "server_id " + row["server_id"]
		if row["host"] != "" { // which it reports where it was told to
			name += " at " + net.JoinHostPort(row["host"], row["port"])
		}
		names = append(names, name)
	}
	return names, nil
}

// Unique says why a follower's data may be nowhere else; "" where all that it has is its leader's. The record alone does not tell: a
// promotion may have been cut short, or somebody have promoted it by hand.
func (r *Record) Unique(ctx context.Context, leader mysqld.Addr) (string, error) {
	if r.State == Promoted {
		return "was promoted", nil
	}
	if r.State != Following || r.gone() {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, replicasPatience)
	defer cancel()
	why, err := r.unlike(ctx, leader)
	switch {
	case mysqld.Number(err) != 0:
		return "", refuse("the server of %s does not tell whether it follows its leader: %w; give an account that it lets in and that may ask (SHOW REPLICA STATUS), or end it first", r.Name, err)
	case err == nil:
		return why, nil
	case r.Promoting != nil || r.opened():
		return "was about to be promoted when that was cut short, and its server, which does not answer, may have taken writes since (david follower start ends what was begun)", nil
	}
	return "", nil
}

// unlike asks a follower's server whether it takes others' changes than its leader's.
func (r *Record) unlike(ctx context.Context, leader mysqld.Addr) (string, error) {
	conn, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	s, err := r.pair(nil, conn).replication(ctx)
	if err != nil {
		return "", err
	}
	if s == nil {
		return "follows nobody any more", nil
	}
	bound, err := conn.ReadOnly(ctx)
	if err != nil {
		return "", err
	}
	if bound == "" {
		return "takes writes (its server is not read_only)", nil
	}
	return r.written(ctx, leader, conn)
}

// written tells of transactions that a follower has and its leader has not; of MySQL's only the leader knows, where it answers.
func (r *Record) written(ctx context.Context, leader mysqld.Addr, own *mysqld.Conn) (string, error) {
	p := r.pair(nil, own)
	if !p.maria {
		of, err := r.reach(ctx, leader)
		if err != nil {
			return "", nil
		}
		defer of.Close()
		p.leader = of
	}
	more, err := p.strays(ctx)
	if err != nil || more == "" {
		return "", err
	}
	return "has transactions that its leader has not (" + more + ")", nil
}

// listed asks a follower's server for its replicas.
func (r *Record) listed(ctx context.Context, leader mysqld.Addr) ([]map[string]string, error) {
	conn, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Records(ctx, r.words().replicas)
}

// replicasPatience is how long a follower's server may take to list its replicas.
const replicasPatience = 10 * time.Second

// unfollowed refuses to drop a follower from which others replicate.
func (r *Record) unfollowed(ctx context.Context, leader mysqld.Addr) error {
	names, err := r.Replicas(ctx, leader)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return refuse("cannot drop the follower %s: %s replicates from it: stop that first (its server may list it for another half a minute)", r.Name, strings.Join(names, ", "))
	}
	return nil
}

// plain refuses to remove a folder in which something is mounted, or another subvolume lies: neither is david's, and the one
// would be emptied, the other not removed.
func (r *Record) plain() error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(r.Dir))
	if err != nil {
		return fmt.Errorf("cannot see what is mounted in %s: %w", r.Dir, err)
	}
	for _, m := range mounts {
		if m.Mountpoint != r.point() && m.Mountpoint != r.shown() {
			return refuse("cannot remove the follower %s: something is mounted on %s: umount it first", r.Name, m.Mountpoint)
		}
	}
	if fsid(r.Dir) == "" { // not on btrfs
		return nil
	}
	return filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || !d.IsDir() || path == r.Dir || path == filepath.Join(r.Dir, "data"):
			return nil
		case path == r.point() || path == r.shown(): // of another filesystem
			return fs.SkipDir
		case isSubvolume(path):
			return refuse("cannot remove the follower %s: first remove what somebody made in it: btrfs subvolume delete %s", r.Name, path)
		}
		return nil
	})
}

// letGo has a leader go on that stands still.
func (r *Record) letGo() error {
	if r.Held == nil {
		return nil
	}
	return r.Held.Release()
}

// clear undoes what is on this machine: it lets go what is held, ends the server, and removes the data.
func (r *Record) clear() error {
	if err := errors.Join(r.letGo(), r.plain()); err != nil {
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	ours, err := r.marked()
	if err != nil || !ours {
		return err
	}
	if r.Volume == nil && r.ZFS == nil && isSubvolume(r.data()) {
		if err := destroy(r.data()); err != nil {
			return fmt.Errorf("cannot remove the snapshot %s: %w", r.data(), err)
		}
	}
	return r.wipe()
}

// wipe removes the follower's folder, last of all the mark that says whose it is: so it can be done again.
func (r *Record) wipe() error {
	entries, err := os.ReadDir(r.Dir)
	for _, e := range entries {
		if err == nil && e.Name() != markFile {
			err = os.RemoveAll(filepath.Join(r.Dir, e.Name()))
		}
	}
	if err == nil {
		err = os.RemoveAll(r.Dir)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the follower's data: %w", err)
	}
	return nil
}

// expel drops the account that was made on the leader.
func (r *Record) expel(ctx context.Context, leader mysqld.Addr) error {
	if r.Account == "" {
		return nil
	}
	left := func(err error) error {
		again := ""
		if r.State == Dropping { // to drop one that was promoted is no advice
			again = ", or david follower drop " + r.Name + " once more when it answers"
		}
		// The rest is done, so this is no error of the user's input any more (ErrInput), whatever the cause was: %v, not %w.
		return fmt.Errorf("%w: DROP USER %s there%s (%v)", ErrAccountLeft, r.Account, again, err)
	}
	conn, err := r.reach(ctx, leader)
	if err != nil {
		return left(err)
	}
	defer conn.Close()
	if err := conn.Exec(ctx, "DROP USER IF EXISTS "+r.Account); err != nil {
		return left(err)
	}
	r.Account = ""
	return r.save()
}

// Reap undoes what davids that are dead have half-made, and finishes what they have half-dropped. Accounts on
// a leader stay, as nobody says how to reach it, and images and datasets whose cluster or pool does not answer; their records
// stay, too, until they are dropped.
func Reap(home string, say func(string)) error {
	entries, err := os.ReadDir(filepath.Join(home, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look for half-made followers: %w", err)
	}
	for _, e := range entries {
		err = errors.Join(err, reap(&Record{dir: filepath.Join(home, Folder, e.Name())}, say))
	}
	return err
}

func reap(r *Record, say func(string)) error {
	err := r.take()
	if errors.Is(err, ErrBusy) || errors.Is(err, fs.ErrNotExist) { // its david lives, or it is gone
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at the follower %s: %w", filepath.Base(r.dir), err)
	}
	defer r.Close()
	switch err := r.read(); {
	case errors.Is(err, fs.ErrNotExist): // nothing was made yet
		return r.forget()
	case err != nil:
		return err
	case r.State != Making && r.State != Dropping:
		return nil
	case r.State == Dropping && (r.Account != "" || r.Volume != nil) && r.gone(): // said once
		return nil
	}
	r.State = Dropping
	if err := r.save(); err != nil {
		return err
	}
	if err := r.letGo(); err != nil {
		return fmt.Errorf("the leader of the half-made follower %s may stand still: %w", r.Name, err)
	}
	if err := r.clear(); err != nil { // somebody sits in its folder: no reason to refuse all other commands
		say(fmt.Sprintf("cannot remove the half-made follower %s: %v; each command tries again, or: david follower drop %s --apply", r.Name, err, r.Name))
		return nil
	}
	account := ""
	if r.Account != "" {
		account = fmt.Sprintf("; its account %s is left on %s: david follower drop %s drops it", r.Account, r.Leader, r.Name)
	}
	if err := r.discard(context.Background()); err != nil { // its cluster is away: to wait for it at each command helps nobody
		say(fmt.Sprintf("removed the half-made follower %s from this machine; %v%s", r.Name, err, account))
		return nil
	}
	if account != "" {
		say("removed the half-made follower " + r.Name + account)
		return nil
	}
	say("removed the half-made follower " + r.Name)
	return r.forget()
}

// gone tells whether nothing of it is left on this machine.
func (r *Record) gone() bool {
	_, err := os.Lstat(r.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// kind says what a record is of, in a word, or what has become of it.
func (r *Record) kind() string {
	if r.State == Following && r.Promoting != nil && !r.Promoting.Alive() {
		return "follower, a promotion was interrupted (david follower promote or start ends that)"
	}
	if r.State == Following {
		return "follower"
	}
	return string(r.State)
}

// Status says how a follower is, in a few words.
func (r *Record) Status() string {
	all, err := r.processes()
	switch {
	case err != nil:
		return err.Error()
	case r.gone():
		return r.kind() + ", its data are gone"
	case len(all) == 0:
		return r.kind() + ", its server does not run"
	case r.State == Following && r.Comparing != nil && !r.Comparing.Alive():
		return r.kind() + ", its server runs; a comparison was interrupted: it may apply nothing; david follower start has it go on, or says what keeps it from that"
	case r.State == Following: // whether it does its server alone can tell, and one has to log in to ask
		return r.kind() + ", its server runs"
	}
	return r.kind()
}
