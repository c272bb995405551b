package follower

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/hold"
	"david/internal/home"
	"david/internal/mycnf"
	"david/internal/process"
)

// Folder is where the records of followers lie in david's home: followers/NAME/follower.json.
const Folder = "followers"

const (
	recordFile = "follower.json"
	lockFile   = "lock"
	schema     = 1
	mostRecord = 1 << 16 // bytes; those of david have a few thousand
)

// State says how far a follower is.
type State string

// The states of a follower. What is found Making or Dropping, by a david that can take its lock, is
// half-made: it is undone.
const (
	Making    State = "making"
	Following State = "following"
	Promoted  State = "promoted"
	Dropping  State = "dropping"
)

// Way says how the data are taken.
type Way string

// The ways of taking the data.
const (
	Reflink   Way = "reflink"   // file by file, sharing blocks
	Subvolume Way = "subvolume" // a snapshot of a btrfs subvolume
	Copy      Way = "copy"      // file by file, block by block
	Image     Way = "image"     // a snapshot of the whole filesystem's RBD image, and a clone of that
	Dataset   Way = "dataset"   // a snapshot of the whole ZFS dataset, and a clone of that
)

// Record says all there is of a follower. No secret is in it.
type Record struct {
	Schema  int           `json:"schema"`
	Name    string        `json:"name"`
	State   State         `json:"state"`
	Made    time.Time     `json:"made"`
	Flavour mycnf.Flavour `json:"flavour"`
	Version string        `json:"version"`
	Leader  string        `json:"leader"` // as its address is shown
	UUID    string        `json:"leader_uuid,omitempty"`
	At      Spot          `json:"leader_at,omitzero"`
	Way     Way           `json:"way"`
	Volume  *Volume       `json:"volume,omitempty"` // of the way Image
	ZFS     *ZFS          `json:"zfs,omitempty"`    // of the way Dataset
	Dir     string        `json:"dir"`              // of the follower: data, run, my.cnf
	UID     int           `json:"uid"`              // that the server runs as
	GID     int           `json:"gid"`
	Launch  []string      `json:"launch"` // the server's command up to its own options
	Port    int           `json:"port"`
	ID      uint32        `json:"server_id"`
	// Account is the one for replication that david made on the leader: "'david_x'@'127.0.0.1'"; "" for none.
	Account string `json:"account,omitempty"`
	Events  string `json:"event_scheduler,omitempty"` // the leader's, for when it is promoted
	// Held is what is held while the data are taken: whoever undoes it lets it go first.
	Held *hold.Target `json:"held,omitempty"`
	// Comparing is the david that compares its rows, or has not had it go on afterwards.
	Comparing *process.ID `json:"comparing,omitempty"`
	// Promoting is the david that promotes it, or was cut short when all was applied and it was about to be free, or was.
	Promoting *process.ID `json:"promoting,omitempty"`
	Times     Times       `json:"times"`

	dir  string // of the record
	lock *os.File
}

// Spot is where a leader is found: no two servers of one machine share port or data directory, no two that replicate a server_id.
type Spot struct {
	Port    int    `json:"port"`
	Datadir string `json:"datadir"` // as the server has it
	Host    string `json:"hostname,omitempty"`
	ID      string `json:"server_id,omitempty"`
}

// spotOf is where a server is found by its variables.
func spotOf(v map[string]string) Spot {
	port, err := strconv.Atoi(v["port"])
	if err != nil {
		port = 0 // which no server has
	}
	return Spot{port, v["datadir"], v["hostname"], v["server_id"]}
}

// is tells whether a server that is found somewhere now is the one that was found here: one thing may have been changed since.
// Earlier davids have two of the four on record, which both have to be as they were.
func (s Spot) is(now Spot) bool {
	same := 0
	for _, one := range []bool{s.Port == now.Port, s.Datadir == now.Datadir, s.Host == "" || s.Host == now.Host, s.ID == "" || s.ID == now.ID} {
		if one {
			same++
		}
	}
	if s.Host == "" && s.ID == "" {
		return same == 4
	}
	return same >= 3
}

// Times says how long the steps of a clone took, in seconds.
type Times struct {
	Held    float64 `json:"held_s"`   // the leader's server stood still
	Data    float64 `json:"data_s"`   // the data were taken, the wait for it to stand still among it
	Start   float64 `json:"start_s"`  // the follower's server recovered and answered
	CatchUp float64 `json:"caught_s"` // it had what the leader had meanwhile
	All     float64 `json:"all_s"`
}

// Pause says how long the leader stood still.
func (t Times) Pause() string {
	if t.Held == 0 {
		return "the leader went on all the time"
	}
	return fmt.Sprintf("the leader stood still for %.3f s", t.Held)
}

// name matches what a follower may be called: it is part of a folder's and an account's name.
var name = regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`)

// ErrInput marks what the user has to mend: a name, a leader that cannot be followed, a filesystem that
// cannot clone.
var ErrInput = errors.New("cannot be done so")

// refuse is an error of the user's, in its own words.
func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

type refusal struct{ error }

func (r refusal) Unwrap() []error { return []error{ErrInput, r.error} }

// ErrBusy says that another david works on the follower.
var ErrBusy = errors.New("another david works on it: wait for it to end")

// create begins a record, held by this process until it is closed.
func create(home string, r *Record) error {
	r.Schema, r.dir = schema, filepath.Join(home, Folder, r.Name)
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return fmt.Errorf("cannot begin the follower's record: %w", err)
	}
	err := os.Mkdir(r.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return refuse("there is a follower %s already: david follower list shows it, david follower drop %s removes it", r.Name, r.Name)
	}
	if err == nil {
		err = r.take()
	}
	if err != nil {
		return fmt.Errorf("cannot begin the follower's record: %w", err)
	}
	return r.save()
}

// take takes the record's lock, which is free again when the process that has it ends.
func (r *Record) take() error {
	f, err := home.Open(filepath.Join(r.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(ErrBusy, f.Close())
	}
	r.lock = f
	return nil
}

// Close gives the record back.
func (r *Record) Close() error {
	if r.lock == nil {
		return nil
	}
	err := r.lock.Close()
	r.lock = nil
	return err
}

// Open reads a follower's record and takes it: nobody else works on it until it is closed.
func Open(home, called string) (*Record, error) {
	if !name.MatchString(called) {
		return nil, refuse("%q is no name of a follower: david follower list shows those there are", called)
	}
	r := &Record{dir: filepath.Join(home, Folder, called)}
	if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("there is no follower %s: david follower list shows those there are", called)
	}
	if err := r.take(); err != nil {
		return nil, fmt.Errorf("cannot take the follower %s: %w", called, err)
	}
	if err := r.read(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// read reads what the record says. fs.ErrNotExist where it was begun and never written.
func (r *Record) read() error {
	path := filepath.Join(r.dir, recordFile)
	b, err := home.ReadOwn(path, mostRecord)
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return fmt.Errorf("cannot read the follower's record: %w", err)
	}
	if r.Schema != schema {
		return fmt.Errorf("cannot read %s: it is of schema %d, this david knows %d", path, r.Schema, schema)
	}
	if r.Name != filepath.Base(r.dir) || filepath.Base(r.Dir) != folderOf(r.Name) || !filepath.IsAbs(r.Dir) {
		return fmt.Errorf("cannot trust %s: it is not of the follower %s", path, filepath.Base(r.dir))
	}
	if r.Volume != nil {
		if err := r.Volume.check(); err != nil {
			return fmt.Errorf("cannot trust %s: %w", path, err)
		}
	}
	if r.ZFS != nil {
		if err := r.ZFS.check(r.Name); err != nil {
			return fmt.Errorf("cannot trust %s: %w", path, err)
		}
	}
	return nil
}

// save writes the record. When it returns nil it is there after a crash.
func (r *Record) save() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(r.dir, recordFile)
	if err := home.Replace(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write the follower's record: %w", err)
	}
	return nil
}

// forget removes the record, its lock last.
func (r *Record) forget() error {
	for _, file := range []string{recordFile, recordFile + ".tmp", lockFile} {
		if err := os.Remove(filepath.Join(r.dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the follower's record: %w", err)
		}
	}
	return errors.Join(os.Remove(r.dir), r.Close())
}

// List returns the records there are, by name. Those that another david holds are among them.
func List(home string) ([]*Record, error) {
	entries, err := os.ReadDir(filepath.Join(home, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the followers: %w", err)
	}
	var all []*Record
	for _, e := range entries {
		r := &Record{dir: filepath.Join(home, Folder, e.Name())}
		err := r.read()
		if errors.Is(err, fs.ErrNotExist) { // just begun, or just gone
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// folderOf names the folder of a follower's own.
func folderOf(name string) string { return "david-" + name }

func (r *Record) data() string {
	switch {
	case r.Volume != nil:
		return filepath.Join(r.point(), r.Volume.Below)
	case r.ZFS != nil:
		return filepath.Join(r.point(), r.ZFS.Below)
	}
	return filepath.Join(r.Dir, "data")
}

func (r *Record) run() string { return filepath.Join(r.Dir, "run") }
func (r *Record) cnf() string { return filepath.Join(r.Dir, "my.cnf") }
func (r *Record) log() string { return filepath.Join(r.run(), "error.log") }

// Socket is where its server listens, beside its port.
func (r *Record) Socket() string { return filepath.Join(r.run(), "sock") }
