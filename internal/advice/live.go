package advice

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// PlanLive sorts the advice for a running server: what david changes while it runs, step by step, what is
// undone fastest first (logging, concurrency, flushing, redo, memory), what takes a restart, and what is for
// others to decide: members of the durability lock among it, which david changes on no running server.
// Nothing that holds memory or redo is made smaller, and what follows from a fact that is not known is no
// step, with a note.
func PlanLive(in Facts) result.LivePlan {
	p := result.LivePlan{Steps: []result.LiveStep{}, Advice: []result.LiveChange{}, Decide: []result.LiveChange{}, Notes: []string{}}
	report := Of(in)
	for _, set := range steps() {
		step := result.LiveStep{Name: set.name, Title: set.title, Changes: []result.LiveChange{}}
		for _, name := range set.variables {
			in.place(report.changeOf(name), &step, &p)
		}
		in.order(step.Changes)
		if len(step.Changes) > 0 {
			p.Steps = append(p.Steps, step)
		}
	}
	for _, f := range report.Findings {
		in.leave(f, &p)
	}
	in.missing(report, &p)
	return p
}

// step names the variables that are changed, and watched, together.
type step struct {
	name, title string
	variables   []string
}

// steps holds the variables that david changes on a running server, in the order in which it does.
func steps() []step {
	return []step{
		{"logging", "logging off", []string{"general_log"}},
		{"concurrency", "threads and spinning sized to the CPUs", []string{"innodb_purge_threads", "innodb_sync_spin_loops", "innodb_spin_wait_delay", "table_open_cache"}},
		{"flushing", "flushing and I/O sized to the disk", []string{"innodb_io_capacity", "innodb_io_capacity_max", "innodb_use_fdatasync", "innodb_flush_neighbors"}},
		{"redo", "redo log sized to the write rate", []string{"innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_buffer_size"}},
		{"memory", "buffer pool sized to memory and data", []string{"innodb_buffer_pool_size"}},
	}
}

// changeOf returns the finding that gives a variable a value; nil where none does.
func (r Report) changeOf(name string) *Finding {
	for i, f := range r.Findings {
		if s, ok := f.Setting(); ok && s.Name == name && f.Name != notPersistedRule {
			return &r.Findings[i]
		}
	}
	return nil
}

// place puts a finding into the step, where a running server can be given its value.
func (in Facts) place(f *Finding, step *result.LiveStep, p *result.LivePlan) {
	if f == nil || f.Restart || f.NewData || in.already(*f) {
		return
	}
	c := in.change(*f)
	switch why := in.barred(c); {
	case why != "":
		p.Notes = append(p.Notes, fmt.Sprintf("%s stays at %s, and is not set to %s: %s", c.Name, c.Before, c.Value, why))
	default:
		step.Changes = append(step.Changes, c)
	}
}

// leave tells of a finding that no step has.
func (in Facts) leave(f Finding, p *result.LivePlan) {
	s, ok := f.Setting()
	switch {
	case f.Name == notPersistedRule, in.already(f):
	case !ok && f.Severity == Note:
	case !ok:
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %s; %s", f.Name, f.Evidence, f.Reason))
	case f.Restart || f.NewData:
		p.Advice = append(p.Advice, in.change(f))
	case !slices.ContainsFunc(steps(), func(st step) bool { return slices.Contains(st.variables, s.Name) }):
		p.Decide = append(p.Decide, in.change(f))
	}
}

// already tells whether the server has the value that a finding proposes for its option file.
func (in Facts) already(f Finding) bool {
	s, ok := f.Setting()
	return ok && mycnf.MatchValues(s.Name, s.Value, in.Variables[s.Name]) == mycnf.Same
}

// change pairs a finding's line with the value it replaces.
func (in Facts) change(f Finding) result.LiveChange {
	s, _ := f.Setting()
	s.Reason = f.Evidence
	if !strings.Contains(f.Evidence, f.Reason) { // the reason of a rule of several variables stands beside one of them
		s.Reason += ": " + f.Reason
	}
	return result.LiveChange{Setting: s, Before: in.Variables[s.Name]}
}

// barred says why david does not make a change on a running server; "" where it does.
func (in Facts) barred(c result.LiveChange) string {
	if lacks := in.lacks(c.Name); lacks != "" {
		return lacks
	}
	if rules.GrowsOnly(c.Name) && rules.SizeOf(c.Before) > rules.SizeOf(c.Value) {
		return "it is less, and a running server is given no less"
	}
	if entry, known := mycnf.Lookup(c.Name, in.Flavour, in.Version); !known || entry.Locked {
		return "david changes no member of the durability lock on a running server"
	}
	if err := rules.Reversible(c.Name, c.Before, c.Value); err != nil {
		return fmt.Sprintf("david could not set it back: %v", err)
	}
	return ""
}

// lacks says which fact david wants to know before it changes a variable of a running server; "" for none.
func (in Facts) lacks(name string) string {
	m := in.Machine
	switch {
	case slices.Contains([]string{"innodb_buffer_pool_size", "innodb_redo_log_capacity", "innodb_log_file_size"}, name) && m.Memory == 0:
		return m.unsized("memory", "--memory")
	case slices.Contains([]string{"innodb_redo_log_capacity", "innodb_log_file_size"}, name) && m.FreeDisk == 0:
		return "the free disk under the server's data is not known (--free-disk)"
	case slices.Contains([]string{"innodb_purge_threads", "innodb_sync_spin_loops", "innodb_spin_wait_delay"}, name) && m.CPUs == 0:
		return m.unsized("CPU", "--cpus")
	case slices.Contains([]string{"innodb_io_capacity", "innodb_io_capacity_max"}, name) && m.WriteIOPS == 0 && !m.Spinning:
		return "what the disk can do is not known, and measuring it would load it (--iops)"
	}
	return ""
}

// unsized says that nobody knows how much of something the server may use, and which flag tells.
func (m Machine) unsized(what, flag string) string {
	if m.Pod {
		return fmt.Sprintf("the server's container has no limit of %s (%s tells what it may use)", what, flag)
	}
	return fmt.Sprintf("the %s of the server's machine is not known (%s)", what, flag)
}

// order puts innodb_io_capacity_max first where it rises, as the server clips innodb_io_capacity to it.
func (in Facts) order(changes []result.LiveChange) {
	most := slices.IndexFunc(changes, func(c result.LiveChange) bool { return c.Name == "innodb_io_capacity_max" })
	if most > 0 && changes[most-1].Name == "innodb_io_capacity" && rules.SizeOf(changes[most].Value) > rules.SizeOf(changes[most].Before) {
		changes[most-1], changes[most] = changes[most], changes[most-1]
	}
}

// missing says of the variables of which nothing was found whether a fact was missing for it, and why the
// pool stays.
func (in Facts) missing(r Report, p *result.LivePlan) {
	for _, set := range steps() {
		for _, name := range set.variables {
			now, there := in.Variables[name]
			if _, known := mycnf.Lookup(name, in.Flavour, in.Version); !known || !there || r.changeOf(name) != nil {
				continue
			}
			if lacks := in.lacks(name); lacks != "" {
				p.Notes = append(p.Notes, fmt.Sprintf("%s stays at %s: %s", name, now, lacks))
			} else if name == "innodb_buffer_pool_size" {
				most, _, why := in.fit().most()
				p.Notes = append(p.Notes, fmt.Sprintf("%s stays at %s: %s %s", name, in.shown(name), bytesText(most), why))
			}
		}
	}
}
