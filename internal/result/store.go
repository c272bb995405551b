package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"david/internal/input"
	"david/internal/mycnf"
)

// The files of a store. Names that begin with a dot are unfinished writes of a process that died; nobody
// reads them.
const (
	experimentFile = "experiment.json"
	finishFile     = "finish.json"
	trialsFile     = "trials.jsonl"
	crashFile      = "crash.json"
	armsDir        = "arms"
	pointsDir      = "points"
	logsDir        = "logs"
)

// Store keeps one experiment's folder. It has one writer at a time (david's host-wide lock sees to that) and
// is not safe for concurrent use; reading while another process writes is safe.
type Store struct {
	dir        string
	experiment Experiment
	end        int64 // size of trials.jsonl after this store's last append; -1 before the first
	told       func(any) error
	own        map[string]bool // the trials that this process has stored
	more       bool            // it has more time, and nothing of that is on disk yet
	room       room
	places     map[string]int64 // where in trials.jsonl the line of each trial is, after Figures
	live       *os.File         // live.jsonl, while something is noted there
}

// Watch has every Arm, Trial (with its points and samples) and Finish told as soon as it is stored. What told
// returns is the error of the call that stored it.
func (s *Store) Watch(told func(any) error) { s.told = told }

func (s *Store) tell(document any) error {
	if s.told == nil {
		return nil
	}
	return s.told(document)
}

// Amend writes experiment.json anew, before the first trial: what could not be known when the store was made.
func (s *Store) Amend(e Experiment) error {
	e.Schema = Schema
	if err := writeJSON(s.path(experimentFile), e); err != nil {
		return fmt.Errorf("cannot store the experiment in %s: %w", s.dir, err)
	}
	s.experiment = e
	return nil
}

// GoOn gives an experiment in slices that has ended so many more seconds. On disk it stays one that has ended
// until something more is stored: a session that dies before that has changed nothing.
func (s *Store) GoOn(seconds float64) error {
	if _, ended, err := s.Finished(); err != nil || !ended {
		return errors.Join(err, fmt.Errorf("cannot give more time to the experiment in %s: it has not ended", s.dir))
	}
	trials, err := s.Trials()
	if err != nil {
		return err
	}
	proofs, err := s.Proofs()
	if err != nil {
		return err
	}
	spent := 0.0
	for _, t := range trials {
		spent += t.Took()
	}
	for _, p := range proofs {
		spent += p.Seconds
	}
	d := &s.experiment.Design
	if t := d.Tune; t != nil {
		plan, in := *t, *t.Slices
		in.Incarnations++
		plan.Budget, plan.Slices = max(plan.Budget, spent)+seconds, &in
		d.Tune = &plan
	} else {
		d.Blocks, d.Precision, d.Budget = 0, 0, spent+seconds
	}
	s.more = true
	return nil
}

// reopen writes down that an experiment with more time goes on: from here on it has not ended.
func (s *Store) reopen() error {
	if !s.more {
		return nil
	}
	if err := s.Amend(s.experiment); err != nil {
		return err
	}
	if err := os.Remove(s.path(finishFile)); err != nil {
		return fmt.Errorf("cannot go on with the experiment in %s: %w", s.dir, err)
	}
	s.more = false
	return nil
}

// Create makes a new store in dir, which must not exist or be empty, and writes experiment.json. It sets e's
// schema, and its ID to the folder's name where it is empty.
func Create(dir string, e Experiment) (*Store, error) {
	e.Schema = Schema
	if e.ID == "" {
		e.ID = filepath.Base(dir)
	}
	err := makeRoom(dir)
	if err == nil {
		err = layOut(dir, e)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create an experiment in %s: %w", dir, err)
	}
	return &Store{dir: dir, experiment: e, end: -1}, nil
}

// beginning names the folder of an experiment until it is complete: one whose david died in between is no
// experiment, and the next one removes it.
const beginning = ".beginning-"

// layOut puts a complete experiment in the place of an empty folder.
func layOut(dir string, e Experiment) error {
	parent := filepath.Dir(filepath.Clean(dir))
	stale, err := filepath.Glob(filepath.Join(parent, beginning+"*"))
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(parent, beginning)
	if err != nil {
		return err
	}
	if err := fillIn(tmp, e); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return syncDir(parent)
}

func fillIn(dir string, e Experiment) error {
	for _, sub := range []string{armsDir, pointsDir, logsDir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(dir, trialsFile), nil); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	return writeJSON(filepath.Join(dir, experimentFile), e)
}

// makeRoom makes sure that dir can be made: that its parent is there, and itself either not or empty.
func makeRoom(dir string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = errors.New("the folder is not empty: name another one")
	}
	return err
}

// Open opens the store in dir to read it or to append to it. A store of another schema is refused.
func Open(dir string) (*Store, error) {
	var e Experiment
	err := readJSON(dir, filepath.Join(dir, experimentFile), &e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot open %s: it holds no %s: name an experiment's folder, an ID of `david list`, or latest: %w",
			dir, experimentFile, err)
	}
	if err != nil {
		return nil, err
	}
	return &Store{dir: dir, experiment: e, end: -1}, nil
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// Experiment returns what experiment.json says.
func (s *Store) Experiment() Experiment { return s.experiment }

// fileName matches what an arm's name and a trial's ID must look like, as they name files.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// ValidName tells whether an arm may have that name.
func ValidName(name string) bool { return fileName.MatchString(name) }

// PutArm writes an arm, or replaces the one of that name. It sets the schema and the order: a new arm comes
// last, a replaced one stays where it was.
func (s *Store) PutArm(a Arm) error {
	if !fileName.MatchString(a.Name) {
		return fmt.Errorf("cannot store arm %q: a name holds letters, digits, dot, dash and underscore only", a.Name)
	}
	arms, err := s.Arms()
	if err != nil {
		return err
	}
	a.Schema, a.Order = Schema, place(arms, a.Name)
	if err := writeJSON(s.path(armsDir, a.Name+".json"), a); err != nil {
		return fmt.Errorf("cannot store arm %s: %w", a.Name, err)
	}
	return s.tell(a)
}

// place returns the order of the arm of that name: its own where it is among arms, else the one after the
// last.
func place(arms []Arm, name string) int {
	last := 0
	for _, a := range arms {
		if a.Name == name {
			return a.Order
		}
		last = max(last, a.Order)
	}
	return last + 1
}

// Arms returns the arms in the order in which they were first stored.
func (s *Store) Arms() ([]Arm, error) {
	files, err := input.Folder(s.path(armsDir))
	if err != nil {
		return nil, fmt.Errorf("cannot list the arms of %s: %w", s.dir, err)
	}
	var arms []Arm
	known := map[string]string{} // one copy of each text: arms have most of their variables in common
	for _, file := range files {
		name := file.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".json") {
			continue
		}
		var a Arm
		if err := readJSON(s.dir, s.path(armsDir, name), &a); err != nil {
			return nil, err
		}
		if err := s.room.take(s.dir, a.intern(known)); err != nil {
			return nil, err
		}
		arms = append(arms, a)
	}
	sort.SliceStable(arms, func(i, j int) bool { return arms[i].Order < arms[j].Order })
	return arms, nil
}

// intern has the arm share the texts of its variables with others, and returns about how many bytes it adds in memory.
func (a *Arm) intern(known map[string]string) int {
	added := 1000 + len(a.Title)
	one := func(text string) string {
		same, ok := known[text]
		if !ok {
			added += 64 + len(text)
			known[text], same = text, text
		}
		return same
	}
	for _, list := range [][]mycnf.Setting{a.Changes, a.Settings} {
		for _, v := range list {
			added += 128 + len(v.Name) + len(v.Value) + len(v.Reason) + len(v.Source) + len(v.Effect)
		}
	}
	for _, d := range a.Diff {
		added += 64 + len(d.Name) + len(d.Before) + len(d.After)
	}
	if a.Effective == nil {
		return added
	}
	shared := make(map[string]string, len(a.Effective))
	for name, value := range a.Effective {
		shared[one(name)] = one(value)
		added += 48
	}
	a.Effective = shared
	return added
}

// Finish writes finish.json; f's schema is set.
func (s *Store) Finish(f Finish) error {
	if err := s.reopen(); err != nil {
		return err
	}
	f.Schema = Schema
	if err := errors.Join(writeJSON(s.path(finishFile), f), s.endLive()); err != nil {
		return fmt.Errorf("cannot finish experiment %s: %w", s.dir, err)
	}
	return s.tell(f)
}

// Finished returns finish.json, and false where the experiment is running or was interrupted.
func (s *Store) Finished() (Finish, bool, error) {
	var f Finish
	err := readJSON(s.dir, s.path(finishFile), &f)
	if errors.Is(err, fs.ErrNotExist) {
		return Finish{}, false, nil
	}
	return f, err == nil, err
}

// LogPath returns where a trial's log of that kind ("sysbench", "server") belongs. The folder exists.
func (s *Store) LogPath(trialID, kind string) string {
	return s.path(logsDir, trialID+"."+kind+".log")
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// readJSON reads one file of the store in dir. The schema is checked first, as a newer format may differ in
// anything else.
func readJSON(dir, path string, v any) error {
	b, err := input.ReadDocument(path, longestFile)
	if err != nil {
		return fmt.Errorf("cannot read the store: %w", err)
	}
	if err := decode(dir, b, v); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}

// decode decodes one document of the store in dir.
func decode(dir string, b []byte, v any) error {
	if err := checkSchema(dir, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

func checkSchema(dir string, b []byte) error {
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	switch {
	case head.Schema == nil:
		return errors.New("it carries no schema: david did not write it")
	case *head.Schema > Schema:
		return fmt.Errorf("%s was written by a newer david (schema %d, this one knows %d): update david", dir, *head.Schema, Schema)
	case *head.Schema < Schema:
		return fmt.Errorf("%s has schema %d, this david knows %d only: measure again", dir, *head.Schema, Schema)
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(b, '\n'))
}

// writeFile replaces path by a file of content b, or leaves it as it was: also when the process or the
// machine dies.
func writeFile(path string, b []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".unfinished-*")
	if err != nil {
		return err
	}
	if err = fill(f, b); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// fill writes, syncs and closes f. CreateTemp makes files of mode 0600; a store is as readable as its folder
// allows.
func fill(f *os.File, b []byte) error {
	_, err := f.Write(b)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// syncDir makes a rename in dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
