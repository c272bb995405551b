package result

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// Summary holds one line of a list of experiments. Err says why the experiment cannot be read; then only Dir
// and ID hold.
type Summary struct {
	Dir      string    `json:"dir"`
	ID       string    `json:"id"`
	Kind     Kind      `json:"kind"`
	Created  time.Time `json:"created"`
	Server   Server    `json:"server"`
	Trials   int       `json:"trials"`         // lines stored
	Torn     bool      `json:"torn,omitempty"` // killed while it wrote a trial
	Finished bool      `json:"finished"`
	Failed   bool      `json:"failed,omitempty"` // finished before its first trial, with an error
	Best     string    `json:"best,omitempty"`
	Err      string    `json:"error,omitempty"`
	// Bytes is how long the trials' file is, and Changed when the record was last written to: another one has another
	// outcome.
	Bytes   int64     `json:"-"`
	Changed time.Time `json:"-"`
}

// List summarises the experiments under $DAVID_HOME, newest first; those that cannot be read come last, with
// their error.
func List(home string) ([]Summary, error) {
	root := filepath.Join(home, "experiments")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the experiments: %w", err)
	}
	var list []Summary
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			list = append(list, summarise(filepath.Join(root, entry.Name())))
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return newer(list[i], list[j]) })
	return list, nil
}

func newer(a, b Summary) bool {
	if (a.Err == "") != (b.Err == "") {
		return a.Err == ""
	}
	if !a.Created.Equal(b.Created) {
		return a.Created.After(b.Created)
	}
	return a.ID > b.ID
}

func summarise(dir string) Summary {
	sum, err := summary(dir)
	if err != nil {
		return Summary{Dir: dir, ID: filepath.Base(dir), Err: err.Error()}
	}
	return sum
}

func summary(dir string) (Summary, error) {
	s, err := Open(dir)
	if err != nil {
		return Summary{}, err
	}
	finish, finished, err := s.Finished()
	if err != nil {
		return Summary{}, err
	}
	trials := 0
	torn, err := s.lines(func(int, int64, []byte) error { trials++; return nil })
	if err != nil {
		return Summary{}, err
	}
	e := s.experiment
	server := e.Server
	for _, text := range []*string{(*string)(&server.Flavour), &server.Version, &server.Comment, &server.Path, &server.SHA256, &server.Address, (*string)(&e.Kind), &finish.Best} {
		*text = shortened(*text)
	}
	sum := Summary{
		Dir: dir, ID: filepath.Base(dir), Kind: e.Kind, Created: e.Created, Server: server,
		Trials: trials, Torn: torn, Finished: finished, Failed: finish.Failed != "", Best: finish.Best,
	}
	err = s.stamp(&sum)
	return sum, err
}

// stamp says when a record was last written to.
func (s *Store) stamp(sum *Summary) error {
	for _, name := range []string{experimentFile, trialsFile, finishFile, proofsFile} {
		info, err := os.Stat(s.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot look at the record: %w", err)
		}
		if name == trialsFile {
			sum.Bytes = info.Size()
		}
		if info.ModTime().After(sum.Changed) {
			sum.Changed = info.ModTime()
		}
	}
	return nil
}

// shortened keeps a list of hostile experiments from filling the memory; what david writes is shorter.
func shortened(text string) string {
	const longest = 4096
	return strings.Clone(text[:min(len(text), longest)])
}

// Unfinished returns the newest experiment under $DAVID_HOME that the same command began, unless it came to
// its end; nil where there is none. The title tells the experiments of one study apart. Flags that change
// nothing of what is measured do not make it another command.
func Unfinished(home string, kind Kind, title string, argv []string) (*Store, error) {
	list, err := List(home)
	if err != nil {
		return nil, err
	}
	for _, sum := range list {
		if sum.Err != "" || sum.Kind != kind {
			continue
		}
		s, err := Open(sum.Dir)
		if err != nil {
			return nil, err
		}
		if s.experiment.Title != title || !slices.Equal(measured(s.experiment.Argv), measured(argv)) {
			continue
		}
		if sum.Finished {
			return nil, nil
		}
		return s, nil
	}
	return nil, nil
}

// measured returns a command line without what changes nothing of what is measured.
func measured(argv []string) (list []string) {
	shown := []string{"--fresh", "--json", "-v", "--verbose", "--quiet", "--no-color"}
	for i, arg := range argv {
		looked := arg == "--metrics" || strings.HasPrefix(arg, "--metrics=") || i > 0 && argv[i-1] == "--metrics"
		if !looked && !slices.Contains(shown, arg) {
			list = append(list, arg)
		}
	}
	return list
}

// Resolve returns the folder of the experiment arg names: a folder, one that david tune wrote (it holds a
// link named experiment), an ID under $DAVID_HOME, or "latest".
func Resolve(home, arg string) (string, error) {
	if arg == "latest" {
		return resolveLatest(home)
	}
	byID := filepath.Join(home, "experiments", arg)
	for _, dir := range []string{arg, filepath.Join(arg, "experiment"), byID} {
		if _, err := os.Stat(filepath.Join(dir, experimentFile)); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("cannot find experiment %q: neither %s nor %s holds an %s: see `david list`", arg, arg, byID, experimentFile)
}

// ResolveFor is Resolve, where "latest" is the newest experiment that fits, of which fits returns nil. Where none does the
// error is the newest one's.
func ResolveFor(home, arg string, fits func(dir string) error) (string, error) {
	newest, err := Resolve(home, arg)
	if arg != "latest" || err != nil {
		return newest, err
	}
	why := fits(newest)
	if why == nil {
		return newest, nil
	}
	list, err := List(home)
	if err != nil {
		return "", err
	}
	for _, s := range list {
		if s.Err == "" && s.Dir != newest && fits(s.Dir) == nil {
			return s.Dir, nil
		}
	}
	return "", why
}

func resolveLatest(home string) (string, error) {
	list, err := List(home)
	if err != nil {
		return "", err
	}
	if len(list) > 0 && list[0].Err != "" { // those that can be read come first
		return "", fmt.Errorf("cannot find the latest experiment: none of %d can be read; %s: %s", len(list), list[0].ID, list[0].Err)
	}
	if len(list) == 0 {
		return "", fmt.Errorf("cannot find the latest experiment: there is none under %s: run `david tune` or `david bench` first",
			filepath.Join(home, "experiments"))
	}
	return list[0].Dir, nil
}

// TrialID names a trial by what it measures: the arm, what it sets, of the kernel too, its caps, the layout of its
// data, its network path, the workload, the block, its place there where an arm has several (else 0), which half
// of an A/A pair it is, the server's binary and version, and the data (whatever tells two data templates apart,
// such as the page size). Equal measurements have equal IDs on every machine; reasons and titles do not count, nor
// does the order of the settings.
func TrialID(a Arm, w Workload, block, place int, twin bool, s Server, data string) string {
	type setting struct{ Name, Value string }
	settings := make([]setting, len(a.Settings))
	for i, v := range a.Settings {
		settings[i] = setting{v.Name, v.Value}
	}
	sort.SliceStable(settings, func(i, j int) bool { return settings[i].Name < settings[j].Name })
	key := []any{Schema, a.Name, settings, a.Caps, w, block, twin, s.SHA256, s.Version, s.Address, data}
	if place > 0 {
		key = append(key, place)
	}
	if len(a.Kernel) > 0 {
		key = append(key, a.Kernel)
	}
	if a.Path != (Path{}) {
		key = append(key, a.Path)
	}
	if a.Layout != nil {
		key = append(key, a.Layout.Asked())
	}
	b, err := json.Marshal(key)
	if err != nil {
		panic(err) // strings and finite numbers only: cannot fail
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
