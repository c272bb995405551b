package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/podoverhead"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
)

// resolve holds the arms that were asked for against the binaries, and notes what that changes.
func (r *Request) resolve(ctx context.Context, l Lab, t *tools) ([]result.Arm, error) {
	binaries, err := r.binaries(ctx, l, t)
	if err != nil {
		return nil, err
	}
	start := rules.Control
	if mixed(binaries) {
		start = rules.Beside
		if slices.ContainsFunc(binaries, isMariaDB) {
			r.note(besideNote)
		}
	}
	var arms []result.Arm
	for i, want := range r.Arms {
		settings, err := want.resolve(ctx, l, r, binaries[i])
		if err != nil {
			return nil, fmt.Errorf("arm %s: %w", want.Name, err)
		}
		arm := want.upon(start(binaries[i].Flavour), settings, r.Caps)
		if want.Server != "" {
			arm.Server = binaries[i].Record()
		}
		arms = append(arms, arm)
	}
	if r.Equal {
		return arms, r.unequal(arms, flavours(binaries))
	}
	if r.Kind == result.KindCompare {
		return arms, r.noVerdict(arms, flavours(binaries))
	}
	return arms, nil
}

// Foresee refuses the settings, option files and baselines that a run would refuse before its first trial, by asking the
// servers themselves, and runs nothing. Where a server is not installed it says so, and asks none.
func (l Lab) Foresee(ctx context.Context, r Request) error {
	binary, err := l.findServer(ctx, r.Server)
	if err == nil {
		l.logf("the server would be %s %s", binary.Flavour.Product(), binary.Version)
		_, err = r.resolve(ctx, l, &tools{binary: binary})
	}
	var missing TargetError
	if errors.As(err, &missing) {
		l.logf("%v; so the settings are not held against a server here", missing)
		return nil
	}
	return err
}

// besideNote says what rules.Beside adds.
const besideNote = "the arms on MariaDB run with binlog_format=ROW, log_slave_updates=ON and innodb_snapshot_isolation=OFF unless they set them: what MySQL does, without which no verdict could be given"

// binaries finds the server of each arm, and keeps those that are not the experiment's.
func (r Request) binaries(ctx context.Context, l Lab, t *tools) (list []server.Binary, err error) {
	t.others = map[string]server.Binary{}
	for _, want := range r.Arms {
		binary := t.binary
		if want.Server != "" {
			if binary, err = l.findServer(ctx, want.Server); err != nil {
				return nil, err
			}
			t.others[binary.Path] = binary
		}
		if binary.Flavour != t.binary.Flavour && !r.CrossFlavour {
			return nil, refuse("arm %s runs on %s, the experiment on %s: --cross-flavour compares them all the same", want.Name, binary.Flavour.Product(), t.binary.Flavour.Product())
		}
		list = append(list, binary)
	}
	return list, nil
}

// mixed tells whether the servers are several, of other flavours or releases.
func mixed(binaries []server.Binary) bool {
	return slices.ContainsFunc(binaries, func(b server.Binary) bool {
		return b.Flavour != binaries[0].Flavour || b.Version != binaries[0].Version
	})
}

func flavours(binaries []server.Binary) (list []mycnf.Flavour) {
	for _, b := range binaries {
		list = append(list, b.Flavour)
	}
	return list
}

func isMariaDB(b server.Binary) bool { return b.Flavour == mycnf.MariaDB }

// resolve gives the settings an arm adds.
func (a Arm) resolve(ctx context.Context, l Lab, r *Request, b server.Binary) ([]mycnf.Setting, error) {
	if a.Settings != nil {
		return a.Settings, nil
	}
	base, err := a.baseline(ctx, l, r, b)
	if err != nil {
		return nil, err
	}
	sets := a.Sets
	if a.More != nil {
		memory, err := l.Memory(ctx)
		if err != nil {
			return nil, err
		}
		more, err := a.More(b.Flavour, memory)
		if err != nil {
			return nil, InputError{err}
		}
		sets = append(slices.Clip(sets), more...)
	}
	own, err := l.UserSettings(ctx, b, a.Cnf, sets)
	if err != nil || a.Baseline == "" {
		return own, err
	}
	return rules.Merge(base, own), nil
}

// baseline gives the settings of what an arm is to be configured like, for its server; none where it is like
// nobody.
func (a Arm) baseline(ctx context.Context, l Lab, r *Request, b server.Binary) ([]mycnf.Setting, error) {
	if a.Baseline == "" {
		return nil, nil
	}
	race := Race{Caps: merged(r.Caps, a.Caps), Loads: r.Loads, Seed: r.Design.Seed}
	all, err := race.baselines(ctx, l, b)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(of rules.Baseline) bool { return of.Name == a.Baseline })
	if i < 0 {
		return nil, refuse("there is no file and no baseline %s; for %s %s there are %s", a.Baseline, b.Flavour.Product(), b.Version, strings.Join(names(all), ", "))
	}
	r.note(all[i].Notes()...)
	return all[i].Settings, nil
}

// What says what an arm sets, for a reader; "" where that is nothing.
func (a Arm) What() string {
	switch {
	case a.Cnf != "":
		return "the settings of " + a.Cnf
	case a.Baseline != "":
		return strings.Join(append([]string{a.Baseline}, a.Sets...), ", ")
	}
	return strings.Join(a.Sets, ", ")
}

// upon is an arm that begins as another one and adds its own settings, under the caps of all or its own.
func (a Arm) upon(arm result.Arm, settings []mycnf.Setting, caps result.Caps) result.Arm {
	arm.Name, arm.Server, arm.Caps, arm.Baseline = a.Name, result.Server{}, merged(caps, a.Caps), a.Baseline
	arm.ClientCPUs, arm.Ceiling, arm.Pod, arm.Kernel, arm.Path, arm.Layout = a.ClientCPUs, a.Ceiling, a.Pod, a.Kernel, a.Path, a.Layout
	if arm.Pod.QoS == podoverhead.BestEffort {
		arm.Caps = result.Caps{}
	}
	if title := cmp.Or(a.Title, a.What()); title != "" {
		arm.Title = title
	}
	if len(settings) > 0 {
		arm.Changes, arm.Settings = settings, rules.Merge(arm.Settings, settings)
	}
	return arm
}

// merged are the experiment's caps with an arm's own in their place.
func merged(all, own result.Caps) result.Caps {
	if own.CPUs > 0 {
		all.CPUs = own.CPUs
	}
	if own.Memory > 0 {
		all.Memory = own.Memory
	}
	if own.IOPS > 0 {
		all.IOPS = own.IOPS
	}
	if own.Bandwidth > 0 {
		all.Bandwidth = own.Bandwidth
	}
	return all
}
