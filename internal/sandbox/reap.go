package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	if j.Owner.Alive() {
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
	for _, d := range j.Disks {
		if err := j.checkDisk(d, run); err != nil {
			return err
		}
	}
	for _, p := range j.Processes {
		if err := ours(p, run); err != nil {
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

// checkFolders looks at the runtime folder, and at those for a probe's files and for layouts' volumes, which are
// called after it, and returns the first: "" where none was made.
func (j *journal) checkFolders() (run string, err error) {
	for _, dir := range j.Folders {
		base := filepath.Base(dir)
		switch {
		case !filepath.IsAbs(dir) || dir != filepath.Clean(dir):
			return "", fmt.Errorf("%q is no place of a folder", dir)
		case run == "" && runName.MatchString(base):
			run = dir
		case run == "" || base != ".david-"+filepath.Base(run) && dir != filepath.Join(j.home, layoutsDir, filepath.Base(run)):
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
var mountName = regexp.MustCompile(`^(data|server(-[0-9]+)?|(tmpfs|device|disk|layout|rbd)-[0-9]+)$`)

func checkMount(point, run string) error {
	if run == "" || filepath.Dir(point) != run || !mountName.MatchString(filepath.Base(point)) {
		return fmt.Errorf("david mounts nothing on %s", point)
	}
	return nil
}

// checkGroup looks at cgroups, and at the devices whose limits go with them: loop devices that have david's
// volume, or one of the layouts that it built, or nothing any more.
func (j *journal) checkGroup(g *cgroup.Group, run string) error {
	if run == "" || g == nil {
		return errors.New("it has cgroups without a runtime folder")
	}
	if err := g.Check(filepath.Base(run)); err != nil {
		return err
	}
	for _, d := range append(slices.Clone(g.Beside), g.Device) {
		if d != (cgroup.Device{}) && !j.loop(d, filepath.Base(run)) && !j.disk(d) {
			return fmt.Errorf("the device %s is not that of david's volume", d)
		}
	}
	return nil
}

// disk tells whether a device is one of the disks that the journal's david built on, or none any more.
func (j *journal) disk(d cgroup.Device) bool {
	number := text(fmt.Sprintf("/sys/dev/block/%s", d), "uevent")
	return len(j.Disks) > 0 && (number == "" || slices.ContainsFunc(j.Disks, func(o disk) bool {
		return strings.Contains("\n"+number+"\n", "\nDEVNAME="+filepath.Base(o.Path)+"\n")
	}))
}

// loop tells whether a device is a loop device of david's, or of nobody.
func (j *journal) loop(d cgroup.Device, run string) bool {
	const loopMajor = 7 // Documentation/admin-guide/devices.txt
	backing, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%s/loop/backing_file", d))
	file := strings.TrimSuffix(string(backing), "\n")
	ours := file == VolumePath(j.home) || file == filepath.Join(j.home, volumeFile) || filepath.Dir(file) == filepath.Join(j.home, layoutsDir, run) || j.shown(file)
	return d.Major == loopMajor && (err != nil || ours)
}
