package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/search"
)

const mib = int64(1) << 20

// knob describes a variable that a search may move, inside the bounds of docs/baselines.md and of the memory
// rule.
type knob struct {
	search.Knob
	group   string // "memory": one of groups
	section string // of a my.cnf
	bytes   bool   // its numbers are sizes
	reason  string
	// also follows from the knob's number, as innodb_io_capacity_max does; nil for nothing.
	also func(number float64) mycnf.Setting
}

// How much a knob is known to do, as search.Knob.Effect has it.
const (
	dominant = 0.3
	medium   = 0.1
	small    = 0.03
)

// knobs returns those that a search may move on the problem's server, dominant ones first.
func knobs(p rules.Problem) []knob {
	var list []knob
	for _, k := range slices.Concat(sizes(p), rates(p), switches(p)) {
		if v, ok := mycnf.Lookup(k.Name, p.Flavour, p.Version); ok {
			k.section = v.Group
			list = append(list, k)
		}
	}
	return list
}

// redoName returns the variable that sizes the redo log, or each of its files.
func redoName(p rules.Problem) string {
	if p.Flavour == mycnf.MariaDB || !p.Version.AtLeast(8, 0, 30) {
		return "innodb_log_file_size"
	}
	return "innodb_redo_log_capacity"
}

// sizes returns the memory and the redo log.
func sizes(p rules.Problem) []knob {
	most := float64(max(p.Pool(), 2*rules.DefaultPool))
	redo := float64(max(2*rules.LeastRedo, min(rules.MostRedo, p.FreeDisk/4)))
	name := redoName(p)
	if name == "innodb_log_file_size" && p.Flavour != mycnf.MariaDB {
		redo /= rules.LogFiles
	}
	pool := known(search.Range("innodb_buffer_pool_size", search.Restart, math.Max(float64(rules.DefaultPool), most/8), most, float64(rules.Chunk)), dominant)
	return []knob{
		{Knob: pool, group: "memory", bytes: true, reason: "what the search found best within the memory there is"},
		{Knob: known(search.Range(name, cost(p, name), float64(rules.DefaultPool), redo, float64(64*mib)), dominant), group: "redo", bytes: true,
			reason: "what the search found best within a quarter of the free disk"},
		{Knob: known(search.Range("innodb_log_buffer_size", cost(p, "innodb_log_buffer_size"), float64(16*mib), float64(rules.MostLogBuffer), float64(8*mib)), small), group: "redo", bytes: true,
			reason: found},
	}
}

const found = "what the search found best"

func known(k search.Knob, effect float64) search.Knob {
	k.Effect = effect
	return k
}

// cost returns what changing a variable takes.
func cost(p rules.Problem, name string) search.Cost {
	if v, ok := mycnf.Lookup(name, p.Flavour, p.Version); ok && v.ApplyIn(p.Flavour, p.Version) == mycnf.Dynamic {
		return search.Dynamic
	}
	return search.Restart
}

// rates returns the I/O capacity and what goes with it.
func rates(p rules.Problem) []knob {
	iops := p.WriteIOPS
	if iops <= 0 {
		iops = rules.FallbackWriteIOPS
	}
	capacity := search.Range("innodb_io_capacity", search.Dynamic, math.Max(100, 0.1*iops), math.Max(1000, math.Min(0.8*iops, rules.MostIOCapacity)), 50)
	count := func(name, group string, effect, low, high float64, special ...string) knob {
		return knob{Knob: known(search.Range(name, cost(p, name), low, high, 1, special...), effect), group: group, reason: found}
	}
	delay := "binlog_group_commit_sync_delay"
	if p.Flavour == mycnf.MariaDB {
		delay = "binlog_commit_wait_usec"
	}
	return []knob{
		{Knob: known(capacity, medium), group: "flush", reason: "what the search found best, within 80 % of the writes/s measured", also: func(n float64) mycnf.Setting {
			return mycnf.Setting{Name: "innodb_io_capacity_max", Value: strconv.Itoa(int(2 * n)), Group: "io", Reason: "twice innodb_io_capacity, for when flushing falls behind",
				Source: "MySQL manual, innodb_io_capacity_max"}
		}},
		count(delay, "commit", small, 20, 500, "0"),
		count("innodb_lru_scan_depth", "flush", small, 256, 2048),
		count("innodb_thread_concurrency", "concurrency", small, math.Max(2, 2*p.CPUs), math.Max(16, 8*p.CPUs), "0"),
		count("innodb_max_dirty_pages_pct_lwm", "flush", small, 5, 50, "0"),
		count("innodb_adaptive_flushing_lwm", "redo", small, 5, 50),
		count("innodb_sync_spin_loops", "concurrency", small, 5, 60, "0"),
	}
}

// switches lists the knobs of two or three values. innodb_flush_method is none: it is a member of the
// durability lock.
func switches(p rules.Problem) []knob {
	list := func(name, group string, effect float64, values ...string) knob {
		return knob{Knob: known(search.List(name, cost(p, name), values...), effect), group: group, reason: found}
	}
	return []knob{
		list("innodb_flush_neighbors", "flush", small, "0", "1"),
		list("innodb_use_fdatasync", "flush", small, "ON", "OFF"),
		list("innodb_doublewrite_pages", "flush", small, "32", "64", "128"),
		list("innodb_log_writer_threads", "commit", small, "ON", "OFF"),
		list("innodb_adaptive_hash_index", "concurrency", small, "ON", "OFF"),
		list("performance_schema", "logging", small, "ON", "OFF"),
		list("innodb_change_buffering", "flush", small, "none", "all"),
		list("binlog_order_commits", "commit", small, "ON", "OFF"),
		list("innodb_purge_threads", "concurrency", small, "1", "2", "4"),
	}
}

// setting returns a level of the knob as a line of a my.cnf.
func (k knob) setting(level int) []mycnf.Setting {
	l := k.Levels[level]
	s := mycnf.Setting{Name: k.Name, Value: l.Value, Group: k.section, Reason: k.reason, Source: "docs/method.md, The search"}
	if k.bytes && !l.Special {
		s.Value = mycnf.FormatSize(int64(l.Number))
	}
	list := []mycnf.Setting{s}
	if k.also != nil && !l.Special {
		list = append(list, k.also(l.Number))
	}
	return list
}

// place finds the level of the value an arm's server uses, adding one where none has it. False where the
// server does not tell, or tells no number where there should be one.
func (k knob) place(arm result.Arm) (knob, int, bool) {
	value, ok := arm.Effective[k.Name]
	if !ok || value == "" {
		return k, 0, false
	}
	for i, l := range k.Levels {
		if l.Special && mycnf.MatchValues(k.Name, l.Value, value) == mycnf.Same {
			return k, i, true
		}
	}
	if k.Levels[len(k.Levels)-1].Special { // no range: a further word
		k.Levels = append(slices.Clone(k.Levels), search.Level{Value: value, Special: true})
		return k, len(k.Levels) - 1, true
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return k, 0, false
	}
	k.Knob = k.With(n)
	return k, k.Place(strconv.FormatFloat(n, 'f', -1, 64)), true
}

// field bounds a search: the space, the knobs of its dimensions and the arm it starts at.
type field struct {
	space search.Space
	knobs []knob
	start result.Arm
}

// fieldAround returns the space around an arm: of the knobs that its server has, the at most eight that
// matter most. weight says how much the screen and the bottleneck speak for a group.
func fieldAround(p rules.Problem, start result.Arm, fixed []string, weight func(group string) float64) (field, bool) {
	f := field{start: start}
	var places []int
	for _, k := range ranked(p, fixed, weight) {
		k, at, ok := k.place(start)
		if !ok || len(k.Levels) < 2 || len(f.knobs) == search.MaxKnobs {
			continue
		}
		f.knobs, places = append(f.knobs, k), append(places, at)
	}
	for _, k := range f.knobs {
		f.space.Knobs = append(f.space.Knobs, k.Knob)
	}
	f.space.Start = places
	f.space.Feasible = func(at search.Point) bool { return safe(p, f, at) }
	return f, f.space.Check() == nil
}

// ranked returns the knobs, those first that are expected to do most, without those that are fixed.
func ranked(p rules.Problem, fixed []string, weight func(group string) float64) []knob {
	list := slices.DeleteFunc(knobs(p), func(k knob) bool { return slices.Contains(fixed, k.Name) })
	slices.SortStableFunc(list, func(a, b knob) int { return cmp.Compare(weight(b.group)*b.Effect, weight(a.group)*a.Effect) })
	return list
}

// safe tells whether a point keeps the memory rule and leaves three quarters of the free disk to the data.
// The start is what it is: it ran. Where that takes more memory than the rule has, as a rival's may, a point
// takes no more than the start. No point has a smaller buffer pool, which would buy memory for buffers that
// matter less.
func safe(p rules.Problem, f field, at search.Point) bool {
	if slices.Equal(at, f.space.Start) {
		return true
	}
	value, start := f.valuesAt(at), f.valuesAt(f.space.Start)
	return rules.WholePool(value) >= rules.WholePool(start) && p.Held(value, p.Need(start)) && redoAt(p, f, at) <= max(rules.LeastRedo, p.FreeDisk/4)
}

// valuesAt returns the variables of a point: of its own levels, else the start's.
func (f field) valuesAt(at search.Point) func(name string) string {
	return func(name string) string {
		for i, k := range f.knobs {
			if k.Name == name {
				return k.Levels[at[i]].Value
			}
		}
		return f.start.Effective[name]
	}
}

// redoAt returns the redo log with all its files.
func redoAt(p rules.Problem, f field, at search.Point) int64 {
	value := f.valuesAt(at)
	redo, files := rules.SizeOf(value("innodb_redo_log_capacity")), rules.SizeOf(value("innodb_log_file_size"))
	switch {
	case redo > 0:
		return redo
	case p.OneLogFile():
		return files
	default:
		return files * rules.LogFiles
	}
}

// settings returns a point as lines of a my.cnf: those of its levels that are not the start's.
func (f field) settings(at search.Point) (list []mycnf.Setting) {
	for i, k := range f.knobs {
		if at[i] != f.space.Start[i] {
			list = append(list, k.setting(at[i])...)
		}
	}
	return list
}

// title says what a point changes.
func (f field) title(at search.Point) string {
	var parts []string
	for _, s := range f.settings(at) {
		parts = append(parts, fmt.Sprintf("%s=%s", s.Name, s.Value))
	}
	return strings.Join(parts, ", ")
}

// has tells whether a variable is a knob of the field, or follows from one.
func (f field) has(name string) bool {
	return slices.ContainsFunc(f.knobs, func(k knob) bool { return k.Name == name || k.also != nil && k.also(1).Name == name })
}

// point returns where an arm of this field lies: by what it asks for, the start where it does not ask. False
// where it asks for a variable that is no knob here, or for a value that is no level.
func (f field) point(arm result.Arm) (search.Point, bool) {
	at := slices.Clone(f.space.Start)
	if arm.Name == f.start.Name {
		return at, true
	}
	asked := map[string]string{}
	for _, s := range arm.Changes {
		if !f.has(s.Name) {
			return nil, false
		}
		asked[s.Name] = s.Value
	}
	for i, k := range f.knobs {
		value, ok := asked[k.Name]
		if !ok {
			continue
		}
		level := slices.IndexFunc(k.Levels, func(l search.Level) bool {
			return l.Value == value || k.bytes && !l.Special && mycnf.FormatSize(int64(l.Number)) == value
		})
		if level < 0 {
			return nil, false
		}
		at[i] = level
	}
	return at, true
}
