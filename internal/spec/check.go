package spec

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/workload"
)

// Bounds of what Checked lets through: beyond them lies a slip of the keyboard.
const (
	maxBlocks = 1000
	maxTrials = 100_000
	maxBudget = Duration(30 * 24 * time.Hour)
	maxRate   = 1e7
)

// Checked fills in the defaults that follow from other keys and refuses what could never run. Its errors
// begin with the key they are about, as in "arms[1].name".
func (s Spec) Checked() (Spec, error) {
	s = s.filled()
	checks := []func(Spec) error{checkHead, checkArms, checkControl, checkFlavours, checkLoads, checkLength, checkCaps, checkSettings}
	for _, check := range checks {
		if err := check(s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func checkHead(s Spec) error {
	if s.Version != Version {
		return wrong("version", "cannot read version %d of the format: this david knows version %d", s.Version, Version)
	}
	if hasControl(s.Title) {
		return wrong("title", "it holds a control character, such as a line break: give one line of text")
	}
	if s.Server == "" {
		return wrong("server", "it is empty: give auto, mysql, mariadb or a path")
	}
	if s.Time < Duration(time.Second) {
		return wrong("time", "cannot measure for %s: give at least 1s", time.Duration(s.Time))
	}
	return nil
}

// checkArms wants names that can be those of files, each once.
func checkArms(s Spec) error {
	if len(s.Arms) == 0 {
		return wrong("arms", "there are none: name at least the control")
	}
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	for i, a := range s.Arms {
		key := fmt.Sprintf("arms[%d].name", i)
		if !name.MatchString(a.Name) {
			return wrong(key, "cannot name an arm %q: it names files, so use letters, digits, and . _ - after the first, 64 at most", a.Name)
		}
		if hasControl(a.Title) {
			return wrong(fmt.Sprintf("arms[%d].title", i), "it holds a control character, such as a line break: give one line of text")
		}
		if s.arm(a.Name) != i {
			return wrong(key, "two arms are named %s: rename one", a.Name)
		}
	}
	return nil
}

// hasControl tells whether a text would change a terminal or break a line of a report.
func hasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

func checkControl(s Spec) error {
	if s.Control == "" {
		return wrong("control", "no arm is named control: say which one the others are compared with")
	}
	if s.arm(s.Control) >= 0 {
		return nil
	}
	var names []string
	for _, a := range s.Arms {
		names = append(names, a.Name)
	}
	return wrong("control", "there is no arm %q%s", s.Control, suggestion(s.Control, names))
}

// checkFlavours refuses flavours that are named and differ; those of paths are known only once they are run.
func checkFlavours(s Spec) error {
	control := s.ServerOf(s.Arms[s.arm(s.Control)])
	for i, a := range s.Arms {
		pair := []string{flavourOf(control), flavourOf(s.ServerOf(a))}
		slices.Sort(pair)
		if !s.CrossFlavour && slices.Equal(pair, []string{"mariadb", "mysql"}) {
			return wrong(fmt.Sprintf("arms[%d].server", i), "the control runs on %s, this arm on %s: different servers are compared only with cross_flavour: true",
				control, s.ServerOf(a))
		}
	}
	return nil
}

// flavourOf is that of a server named by it, with or without a version: mysql of mysql:9.7.
func flavourOf(server string) string {
	flavour, _, _ := strings.Cut(server, ":")
	return flavour
}

func checkLoads(s Spec) error {
	if len(s.Loads) == 0 {
		return wrong("workloads", "there are none: name at least one of %s", strings.Join(workload.Names(), ", "))
	}
	var seen []result.Workload
	for i, l := range s.Loads {
		key := fmt.Sprintf("workloads[%d]", i)
		if len(l.Threads) == 0 {
			return wrong(key+".threads", "there are none: give at least one number")
		}
		if math.IsNaN(l.Rate) || l.Rate < 0 || l.Rate > maxRate {
			return wrong(key+".rate", "cannot run %v transactions/s: give 0 (as many as the threads get done) to %.0f", l.Rate, maxRate)
		}
		for _, n := range l.Threads {
			w := s.workload(l, n)
			if err := workload.Validate(w); err != nil {
				return keyError{loadKey(key, w), err}
			}
			if slices.Contains(seen, w) {
				return wrong(key, "%s with %d threads stands twice: blocks run it again", l.Name, n)
			}
			seen = append(seen, w)
		}
	}
	return nil
}

// loadKey is the key that made workload.Validate refuse a workload, as near as can be told.
func loadKey(key string, w result.Workload) string {
	switch {
	case !slices.Contains(workload.Names(), w.Name):
		return key + ".name"
	case !slices.Contains(workload.RandTypes(), w.RandType):
		return key + ".rand_type"
	}
	return key
}

// checkLength holds blocks, precision and budget against each other and against the time the trials take.
func checkLength(s Spec) error {
	switch {
	case s.Blocks < 0 || s.Blocks > maxBlocks:
		return wrong("blocks", "cannot run %d blocks: give 1 to %d", s.Blocks, maxBlocks)
	case s.Blocks > 0 && s.Precision > 0:
		return wrong("precision", "both blocks and precision are given: blocks fixes what precision would find out; leave one out")
	case s.Blocks > 0 && s.Budget > 0:
		return wrong("budget", "both blocks and budget are given: blocks fixes the time that is needed; leave one out")
	case s.Precision < 0 || s.Precision > 0.5 || math.IsNaN(float64(s.Precision)):
		return wrong("precision", "cannot reach a precision of %.4g%%: give more than 0%%, 50%% at most", s.Precision*100)
	case s.Budget < 0 || s.Budget > maxBudget:
		return wrong("budget", "cannot use a budget of %s: give 30 days at most", time.Duration(s.Budget))
	case s.Budget > 0 && time.Duration(s.Budget).Seconds() < s.BlockSeconds():
		least := time.Duration(math.Ceil(s.BlockSeconds())) * time.Second
		return wrong("budget", "%s is too short for one block of %d trials: give at least %s", time.Duration(s.Budget), s.blockTrials(), least)
	case s.planned()*s.blockTrials() > maxTrials:
		return wrong("workloads", "cannot plan %d trials: %d at most; name fewer workloads, threads, arms or blocks", s.planned()*s.blockTrials(), maxTrials)
	}
	return nil
}

func checkCaps(s Spec) error {
	if err := s.Caps.check("caps"); err != nil {
		return err
	}
	for i, a := range s.Arms {
		if err := a.Caps.check(fmt.Sprintf("arms[%d].caps", i)); err != nil {
			return err
		}
	}
	return nil
}

// check refuses limits under which no server runs, and numbers that are none.
func (c Caps) check(key string) error {
	const leastMemory = 256 << 20
	switch {
	case math.IsNaN(c.CPUs) || c.CPUs < 0 || c.CPUs > 0 && c.CPUs < 0.05 || c.CPUs > 4096:
		return wrong(key+".cpus", "cannot cap at %v CPUs: give 0.05 to 4096", c.CPUs)
	case c.Memory < 0 || c.Memory > 0 && c.Memory < leastMemory:
		return wrong(key+".memory", "cannot cap at %s: a server needs at least %s", mycnf.FormatSize(int64(c.Memory)), mycnf.FormatSize(leastMemory))
	case c.IOPS < 0 || c.IOPS > 0 && c.IOPS < 10:
		return wrong(key+".iops", "cannot cap at %d operations/s: give at least 10", c.IOPS)
	case c.Bandwidth < 0 || c.Bandwidth > 0 && c.Bandwidth < 64<<10:
		return wrong(key+".bandwidth", "cannot cap at %s/s: give at least 64K", mycnf.FormatSize(int64(c.Bandwidth)))
	}
	return nil
}

// checkSettings reads every setting once. Whether the server knows it is asked of the server.
func checkSettings(s Spec) error {
	for i, a := range s.Arms {
		key := fmt.Sprintf("arms[%d]", i)
		for _, list := range []struct {
			key  string
			sets Sets
		}{{"set", a.Set}, {"mysql", a.MySQL}, {"mariadb", a.MariaDB}} {
			for _, text := range list.sets {
				if err := s.checkSetting(text); err != nil {
					return keyError{key + "." + list.key, err}
				}
			}
		}
	}
	return nil
}

func (s Spec) checkSetting(text string) error {
	sizes := measures{memory: 1 << 40, data: s.data(mycnf.MySQL)}
	resolved, err := sizes.resolve(text)
	if err == nil {
		_, err = mycnf.ParseSetting(resolved)
	}
	return err
}
