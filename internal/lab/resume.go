package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"david/internal/result"
)

// begun is the experiment to go on with: one that has more time, else the newest that the same command was
// interrupted in; nil where there is none.
func (l Lab) begun(kind result.Kind, title string, fresh bool) (*result.Store, error) {
	if l.On != nil {
		return l.On, nil
	}
	old, err := result.Unfinished(l.Home, kind, title, l.Argv)
	if fresh {
		old = nil
	}
	return old, err
}

// openStore goes on with the experiment that is to go on, or begins a new one. One whose server, data,
// machine or question is another one by now is refused: its trials could not be compared.
func (l Lab) openStore(e result.Experiment, fresh bool) (*result.Store, error) {
	old, err := l.begun(e.Kind, e.Title, fresh)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return l.create(e)
	}
	began := old.Experiment()
	if changed := changes(began.Design.Pinned, e.Design.Pinned); len(changed) > 0 {
		return nil, refuse("cannot go on with %s, which the same command began: %s; --fresh begins anew", began.ID, strings.Join(changed, "; "))
	}
	trials, err := old.Trials()
	if err != nil {
		return nil, err
	}
	if l.On == nil {
		l.logf("going on with %s, which was interrupted after %s", began.ID, count(len(trials), "trial"))
	}
	return old, nil
}

// changes tells in words what differs between two sets of pins.
func changes(before, after map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			list = append(list, fmt.Sprintf("its %s was %s, now it is %s", name, before[name], after[name]))
		}
	}
	return list
}

// pins returns what must be the same whenever an experiment is gone on with.
func pins(e result.Experiment, arms []result.Arm, data []string) map[string]string {
	return map[string]string{
		"kernel":        e.Host.Kernel,
		"machine":       Machine(e.Host),
		"server binary": binaries(e, arms),
		"sysbench":      e.Sysbench,
		"data":          strings.Join(data, ", "),
		"specification": fingerprint(arms, e.Workloads, e.Design),
	}
}

func binaries(e result.Experiment, arms []result.Arm) string {
	list := []string{e.Server.Version + " " + short(e.Server.SHA256)}
	for _, arm := range arms {
		if arm.Server.SHA256 != "" {
			list = append(list, arm.Server.Version+" "+short(arm.Server.SHA256))
		}
	}
	return strings.Join(list, ", ")
}

func short(hash string) string { return hash[:min(12, len(hash))] }

// fingerprint is a hash of the question: the arms as they were asked for, the workloads and the design.
// A ceiling follows from another arm and from the memory of the moment: it was not asked for, and the
// one on record stays.
func fingerprint(arms []result.Arm, loads []result.Workload, d result.Design) string {
	type asked struct {
		Name     string
		Settings [][2]string
		Caps     result.Caps
		Pod      result.Pod             `json:",omitzero"`
		Kernel   []result.KernelSetting `json:",omitempty"`
		Path     result.Path            `json:",omitzero"`
		Layout   *result.Layout         `json:",omitempty"`
	}
	var list []asked
	asking, _ := result.WithoutCeilings(arms, nil)
	for _, arm := range asking {
		one := asked{Name: arm.Name, Caps: arm.Caps, Pod: arm.Pod, Kernel: arm.Kernel, Path: arm.Path, Layout: arm.Layout.Asked()}
		for _, s := range arm.Settings {
			one.Settings = append(one.Settings, [2]string{s.Name, s.Value})
		}
		list = append(list, one)
	}
	d.Pinned, d.Seed = nil, 0
	b, err := json.Marshal([]any{list, loads, d})
	if err != nil {
		panic(err) // strings and finite numbers only: cannot fail
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func count(n int, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
