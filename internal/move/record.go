package move

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"david/internal/home"
	"david/internal/mysqld"
)

// Folder is where records lie in david's home: moves/1/move.json, moves/2/move.json, ...
const Folder = "moves"

// The files of a record: what was done, the sums of all files at the stop, their sizes and times, what commands printed.
const (
	recordFile = "move.json"
	sumsFile   = "files.sha256"
	statsFile  = "files.stat"
	besideFile = "beside.stat" // as statsFile, of what lies elsewhere
	logFile    = "commands.log"
)

// schema is the version of the record's format.
const schema = 1

// mostRecord bounds a record that is read, in bytes; those of david have some thousand, and a hundred for each table that lies
// elsewhere.
const mostRecord = 1 << 24

// Phase says how far a move has come. Where the data are in use the filesystem tells, not the phase.
type Phase string

// The phases.
const (
	Copying    Phase = "copying"    // the copy is not whole
	Stopping   Phase = "stopping"   // the server is being stopped, is away, or is started
	Moved      Phase = "moved"      // the server runs on the new place; the old one is as it was at the stop
	Returning  Phase = "returning"  // the old place is being brought up to date
	Leaving    Phase = "leaving"    // the server is being stopped to go back
	Retreating Phase = "retreating" // the path is led back to the old place, which is as it was at the stop
	Back       Phase = "back"       // the server runs on the old place again; the new one is as it was at the stop
	Forgotten  Phase = "forgotten"  // the place that is not in use is gone
	Dropped    Phase = "dropped"    // a copy that was never used is gone
)

// Step is something that was done.
type Step struct {
	At    time.Time `json:"at"`
	Phase Phase     `json:"phase"`
	What  string    `json:"what"`
}

// Record tells what a move did. It is rewritten as a whole, so that a david that is killed leaves the old one
// or the new one. It is not safe for concurrent use.
type Record struct {
	Schema int   `json:"schema"`
	N      int   `json:"n"`
	Route  Route `json:"route"`
	Phase  Phase `json:"phase"`
	// System is the file that a server locks, in the folder; "" where it has none there.
	System string `json:"system_file,omitempty"`
	Server string `json:"server"` // server_uuid, or MariaDB's server_uid
	// Network and Address say where it was reached.
	Network string   `json:"network"`
	Address string   `json:"address"`
	Stop    []string `json:"stop"`
	Start   []string `json:"start"`
	// Pages is what the variables of calm were, while david has them at 0; nil else.
	Pages map[string]string `json:"dirty_pages,omitempty"`
	// Beside are the server's data that lie elsewhere, and do not move.
	Beside []Elsewhere `json:"beside,omitempty"`
	// Log is the binary log that lies elsewhere; "" for none there.
	Log string `json:"log,omitempty"`
	// Left tells that the server went back without what was written on the new place, which has that alone.
	Left  bool     `json:"left,omitempty"`
	Steps []Step   `json:"steps"`
	Last  *Outcome `json:"last,omitempty"` // of the last move or way back that ended
	dir   string
}

// Dir returns the record's folder.
func (r *Record) Dir() string { return r.dir }

// Pending tells whether there is anything left to go on with, to go back from or to forget.
func (r *Record) Pending() bool { return r.Phase != Forgotten && r.Phase != Dropped }

// command keeps how the server is stopped and started, where that was said anew.
func (r *Record) command(q Request) {
	if len(q.Stop) > 0 {
		r.Stop, r.Start = q.Stop, q.Start
	}
}

// create begins a record, the next one.
func create(dir string, r *Record) error {
	records := filepath.Join(dir, Folder)
	if err := os.MkdirAll(records, 0o700); err != nil {
		return fmt.Errorf("cannot begin the record of the move: %w", err)
	}
	numbers, err := numbers(records)
	if err != nil {
		return err
	}
	r.Schema, r.N = schema, 1
	if len(numbers) > 0 {
		r.N = numbers[len(numbers)-1] + 1
	}
	r.dir = filepath.Join(records, strconv.Itoa(r.N))
	if err := errors.Join(os.Mkdir(r.dir, 0o700), syncFolder(dir), syncFolder(records)); err != nil {
		return fmt.Errorf("cannot begin the record of the move: %w", err)
	}
	return nil
}

// numbers are those of the records of a folder, in their order.
func numbers(records string) (list []int, err error) {
	entries, err := os.ReadDir(records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot look for records of moves: %w", err)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && strconv.Itoa(n) == e.Name() {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}

// note puts a step on record. When it returns nil it is there after a crash.
func (r *Record) note(phase Phase, format string, args ...any) error {
	r.Phase = phase
	r.Steps = append(r.Steps, Step{time.Now(), phase, fmt.Sprintf(format, args...)})
	return r.save()
}

func (r *Record) save() error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = r.write(recordFile, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot write the record of the move: %w", err)
	}
	return nil
}

// write writes a file of the record anew, in one step.
func (r *Record) write(name string, content []byte) error {
	return home.Replace(filepath.Join(r.dir, name), content, 0o600)
}

// ErrNoRecord says that there is no move to go on with.
var ErrNoRecord = errors.New("david has moved nothing from there")

// All are the records of moves in david's home, the last one first. Those after one that cannot be read are not reached.
func All(home string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		records := filepath.Join(home, Folder)
		list, err := numbers(records)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, n := range slices.Backward(list) {
			r, err := read(filepath.Join(records, strconv.Itoa(n)))
			if errors.Is(err, fs.ErrNotExist) { // david was killed before its first step
				continue
			}
			if err != nil {
				yield(nil, fmt.Errorf("cannot use the record of a move in %s: %w", filepath.Join(records, strconv.Itoa(n)), err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// find returns the last record that is pending and wanted.
func find(home string, wanted func(*Record) bool) (*Record, error) {
	for r, err := range All(home) {
		if err != nil || r.Pending() && wanted(r) {
			return r, err
		}
	}
	return nil, ErrNoRecord
}

// from wants the records of a folder, by the path that the server knows.
func from(link string) func(*Record) bool {
	return func(r *Record) bool { return r.Route.Link == link }
}

// Find returns the last move from a folder, or from any, that can be gone on with, gone back from or forgotten.
func Find(home, datadir string) (*Record, error) {
	if datadir == "" {
		return onlyOne(home)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(datadir)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return find(home, from(filepath.Join(parent, filepath.Base(filepath.Clean(datadir)))))
}

// onlyOne returns the last move that is pending, where no other folder has one.
func onlyOne(home string) (*Record, error) {
	r, err := find(home, func(*Record) bool { return true })
	if err != nil {
		return nil, err
	}
	other, err := find(home, func(o *Record) bool { return o.Route.Link != r.Route.Link })
	switch {
	case errors.Is(err, ErrNoRecord):
		return r, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: moves of several folders are on record, of %s and %s: name one with --datadir, or its server with --dsn", ErrInput, r.Route.Link, other.Route.Link)
}

// FindServer returns the last such move of the server at an address.
func FindServer(home string, addr mysqld.Addr) (*Record, error) {
	return find(home, func(r *Record) bool { return r.Network == addr.Network && r.Address == addr.Address })
}

// read reads a record that nobody but david's user can have written.
func read(dir string) (*Record, error) {
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := home.Own(d); err != nil {
			return nil, err
		}
	}
	b, err := home.ReadOwn(filepath.Join(dir, recordFile), mostRecord)
	if err != nil {
		return nil, err
	}
	r := &Record{dir: dir}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, err
	}
	return r, r.check()
}

// check says why no david wrote the record.
func (r *Record) check() error {
	if r.Schema != schema {
		return fmt.Errorf("it has the format %d, this david knows %d", r.Schema, schema)
	}
	if strconv.Itoa(r.N) != filepath.Base(r.dir) {
		return fmt.Errorf("it says that it is number %d", r.N)
	}
	for _, path := range []string{r.Route.Link, r.Route.Old, r.Route.New} {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return fmt.Errorf("%.80q is no folder that david moves", path)
		}
	}
	if r.Route.Was == "" && r.Route.Old != r.Route.Link+oldSuffix {
		return fmt.Errorf("the old place of %s is not called after it", r.Route.Link)
	}
	return nil
}
