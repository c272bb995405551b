package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"david/internal/cgroup"
	"david/internal/home"
)

// mostJournal bounds a journal, in bytes: the longest had some thousand.
const mostJournal = 1 << 20

// Reap removes what davids that are dead left behind in a folder of david's: processes it can tell by number
// and start time, mounts and runtime folders. Those of a living david are left alone. It is quick where there
// is nothing. A journal that names what is not david's is refused as a whole: nothing of it is touched.
func Reap(dir string, say func(string)) error {
	runs := filepath.Join(dir, "run")
	entries, err := os.ReadDir(runs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look for what a killed david left behind: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		if err := reapOne(dir, filepath.Join(runs, e.Name()), say); err != nil {
			return err
		}
	}
	return nil
}

func reapOne(dir, path string, say func(string)) error {
	j, err := readJournal(dir, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its owner ended meanwhile
	}
	if err != nil {
		return err
	}
	if j.Owner.alive() {
		return nil
	}
	if err := j.check(); err != nil {
		return fmt.Errorf("the journal %s names what is not david's, so nothing was touched: %w; look at it, end and remove by hand what is david's, then remove the journal", path, err)
	}
	if err := j.undo(say); err != nil {
		return fmt.Errorf("cannot remove what david with pid %d left behind: %w", j.Owner.PID, err)
	}
	say(fmt.Sprintf("removed what david with pid %d left behind when it was killed", j.Owner.PID))
	return nil
}

// escapeGlob keeps a folder's name from being read as a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func readJournal(dir, path string) (*journal, error) {
	b, err := home.Read(path, mostJournal)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	j := &journal{}
	if err := json.Unmarshal(b, j); err != nil {
		return nil, fmt.Errorf("cannot read the journal %s: %w; remove it once no server of david's runs", path, err)
	}
	j.home, j.path = dir, path
	if j.name() != filepath.Base(path) {
		return nil, fmt.Errorf("cannot trust the journal %s: it says that it is %s; remove it once no server of david's runs", path, j.name())
	}
	return j, nil
}

// runName matches the names of runtime folders.
var runName = regexp.MustCompile(`^david-[0-9]+$`)

// check says what of a journal's entries is not of the kinds, or not in the places, that david makes.
func (j *journal) check() error {
	run, err := j.checkFolders()
	if err != nil {
		return err
	}
	for _, m := range j.Mounts {
		if err := checkMount(m, run); err != nil {
			return err
		}
	}
	for _, p := range j.Processes {
		if err := p.ours(run); err != nil {
			return err
		}
	}
	if err := j.checkKernel(); err != nil {
		return err
	}
	if err := j.checkImages(run); err != nil {
		return err
	}
	for _, g := range j.Groups {
		if err := j.checkGroup(g, run); err != nil {
			return err
		}
	}
	return nil
}

// checkFolders looks at the runtime folder, and at the one for a probe's files, which is called after it, and
// returns the first: "" where none was made.
func (j *journal) checkFolders() (run string, err error) {
	for _, dir := range j.Folders {
		base := filepath.Base(dir)
		switch {
		case !filepath.IsAbs(dir) || dir != filepath.Clean(dir):
			return "", fmt.Errorf("%q is no place of a folder", dir)
		case run == "" && runName.MatchString(base):
			run = dir
		case run == "" || base != ".david-"+filepath.Base(run):
			return "", fmt.Errorf("david makes no folder that is called %s", dir)
		}
		if above, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			dir = filepath.Join(above, base)
		}
		if err := j.marked(dir); err != nil {
			return "", err
		}
	}
	return run, nil
}

// mountName matches the names of mount points in a runtime folder.
var mountName = regexp.MustCompile(`^(data|rbd-[0-9]+|server(-[0-9]+)?|tmpfs-[0-9]+)$`)

func checkMount(point, run string) error {
	if run == "" || filepath.Dir(point) != run || !mountName.MatchString(filepath.Base(point)) {
		return fmt.Errorf("david mounts nothing on %s", point)
	}
	return nil
}

// checkGroup looks at cgroups, and at the device whose limits go with them: a loop device that has david's
// volume, or nothing any more.
func (j *journal) checkGroup(g *cgroup.Group, run string) error {
	if run == "" || g == nil {
		return errors.New("it has cgroups without a runtime folder")
	}
	if err := g.Check(filepath.Base(run)); err != nil {
		return err
	}
	if g.Device == (cgroup.Device{}) {
		return nil
	}
	const loopMajor = 7 // Documentation/admin-guide/devices.txt
	backing, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%s/loop/backing_file", g.Device))
	file := strings.TrimSuffix(string(backing), "\n")
	ours := file == filepath.Join(j.home, volumeFile) || j.shown(file)
	if g.Device.Major != loopMajor || err == nil && !ours {
		return fmt.Errorf("the device %s is not that of david's volume", g.Device)
	}
	return nil
}
