package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"david/internal/mycnf"
)

// Live describes a running server that a plan is made for. Of its problem, what is not known is 0: memory,
// CPUs, free disk, writes/s. Sizes are in bytes.
type Live struct {
	Problem
	Variables map[string]string // as SHOW GLOBAL VARIABLES gives them
	Status    map[string]string // as SHOW GLOBAL STATUS does; nil: not seen
	Available int64             // memory of its machine that nobody uses; 0: not seen
	Data      int64             // its tables and indexes; 0: not seen
	Pod       bool              // it runs in a pod: memory and CPUs are its container's limits
}

// LivePlan lists what can be changed on a running server, in the order in which it is, and what only a
// restart changes.
type LivePlan struct {
	Steps  []LiveStep   `json:"steps"`
	Advice []LiveChange `json:"advice"` // takes a restart
	Notes  []string     `json:"notes"`  // what was left out, and why
}

// LiveStep groups what is changed together, and watched together.
type LiveStep struct {
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Changes []LiveChange `json:"changes"` // in the order in which they are made
}

// LiveChange pairs a setting with the value it replaces, as the server reports it.
type LiveChange struct {
	mycnf.Setting
	Before string `json:"before"`
}

// PlanLive goes through the sizing rules, what is undone fastest first: logging, concurrency, flushing, redo,
// memory. No member of the durability lock is changed, nothing that holds memory or redo is made smaller, and
// what follows from a fact that is not known is left out with a note.
func PlanLive(l Live) LivePlan {
	p := LivePlan{Steps: []LiveStep{}, Advice: []LiveChange{}, Notes: []string{}}
	sets := Sizing(l.sized())
	slices.Reverse(sets)
	for _, rules := range sets {
		step := LiveStep{Name: rules.Name, Title: rules.Title, Changes: []LiveChange{}}
		for _, s := range l.settings(rules, &p) {
			l.place(s, &step, &p)
		}
		l.order(step.Changes)
		if len(step.Changes) > 0 {
			p.Steps = append(p.Steps, step)
		}
	}
	return p
}

// sized returns the problem with as many threads as may connect.
func (l Live) sized() Problem {
	p := l.Problem
	p.Threads = int(min(l.size("max_connections"), 1<<20))
	p.Tables = 0 // the table cache follows from the counters
	return p
}

// settings returns those of a set of rules, as far as they follow from what is known of a running server.
func (l Live) settings(rules RuleSet, p *LivePlan) (list []mycnf.Setting) {
	for _, s := range rules.Settings {
		if lacks := l.lacks(s.Name); lacks != "" {
			p.Notes = append(p.Notes, s.Name+": nothing is proposed: "+lacks)
		} else if s, ok := l.adapted(s, p); ok {
			list = append(list, s)
		}
	}
	if rules.Name == "concurrency" {
		list = append(list, l.tables(p)...)
	}
	return list
}

// adapted returns a setting of the rules as a running server gets it; ok is false where it gets none.
func (l Live) adapted(s mycnf.Setting, p *LivePlan) (adapted mycnf.Setting, ok bool) {
	switch s.Name {
	case "innodb_buffer_pool_size":
		pool, reason := l.goal()
		if pool == 0 {
			p.Notes = append(p.Notes, s.Name+" stays: "+reason)
			return s, false
		}
		s.Value, s.Reason = mycnf.FormatSize(pool), reason
	case "innodb_buffer_pool_instances":
		pool, _ := l.goal()
		return s, pool >= SizeOf(s.Value)*gib
	}
	s.Reason = l.reason(s)
	return s, true
}

// reason returns why a running server is given a value, where the rules' own words are of a sandbox.
func (l Live) reason(s mycnf.Setting) string {
	switch {
	case s.Name == "innodb_io_capacity" && l.WriteIOPS > 0:
		most := ""
		if n := SizeOf(s.Value); n < int64(0.3*l.WriteIOPS) {
			most = fmt.Sprintf(", %d at most", n)
		}
		return fmt.Sprintf("30 %% of the %.0f random writes/s that its disk is said to do%s, so that commits and reads keep the rest", l.WriteIOPS, most)
	case s.Name == "performance_schema":
		return "instrumentation costs CPU on every statement and wait; the price is observability: no p95 for david's guard either"
	}
	return s.Reason
}

// lacks says which fact is missing for a variable's rule; "" for none.
func (l Live) lacks(name string) string {
	switch name {
	case "innodb_buffer_pool_size", "innodb_buffer_pool_instances", "innodb_log_buffer_size":
		if l.Memory == 0 {
			return l.unsized("memory", "--memory")
		}
	case "innodb_redo_log_capacity", "innodb_log_file_size":
		switch {
		case l.Memory == 0:
			return l.unsized("memory", "--memory")
		case l.FreeDisk == 0:
			return "the free disk under the server's data is not known (--free-disk)"
		case RedoSize(l.Problem) > l.FreeDisk/4:
			return fmt.Sprintf("a quarter of the free disk, %s, is less than any size it proposes", gibText(l.FreeDisk/4))
		}
	case "innodb_io_capacity", "innodb_io_capacity_max":
		if l.WriteIOPS == 0 && !l.Rotational {
			return "what the disk can do is not known, and measuring it would load it (--iops)"
		}
	case "innodb_purge_threads", "innodb_sync_spin_loops", "innodb_spin_wait_delay":
		if l.CPUs == 0 {
			return l.unsized("CPU", "--cpus")
		}
	}
	return ""
}

// unsized says that nobody knows how much of something the server may use, and which flag tells.
func (l Live) unsized(what, flag string) string {
	if l.Pod {
		return fmt.Sprintf("the server's container has no limit of %s (%s tells what it may use)", what, flag)
	}
	return fmt.Sprintf("the %s of the server's machine is not known (%s)", what, flag)
}

// place puts a setting where it belongs: into the step, under advice, or nowhere.
func (l Live) place(s mycnf.Setting, step *LiveStep, p *LivePlan) {
	entry, known := mycnf.Lookup(s.Name, l.Flavour, l.Version)
	now, there := l.Variables[s.Name]
	if !known || !there || mycnf.MatchValues(s.Name, s.Value, now) == mycnf.Same {
		return
	}
	if growsOnly(s.Name) && l.size(s.Name) > SizeOf(s.Value) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s stays at %s: the rule's %s is less, and a running server is given no less", s.Name, now, s.Value))
		return
	}
	change := LiveChange{s, now}
	switch apply := entry.ApplyIn(l.Flavour, l.Version); {
	case apply == mycnf.Init || entry.Locked && apply == mycnf.Dynamic:
	case apply == mycnf.Restart || s.Name == "innodb_buffer_pool_size" && l.poolFixed():
		p.Advice = append(p.Advice, change)
	default:
		if err := Reversible(s.Name, now, s.Value); err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("%s stays at %s, as david could not set it back: %v", s.Name, now, err))
			return
		}
		step.Changes = append(step.Changes, change)
	}
}

// order puts innodb_io_capacity_max first where it rises, as the server clips innodb_io_capacity to it.
func (l Live) order(changes []LiveChange) {
	most := slices.IndexFunc(changes, func(c LiveChange) bool { return c.Name == "innodb_io_capacity_max" })
	if most > 0 && changes[most-1].Name == "innodb_io_capacity" && SizeOf(changes[most].Value) > l.size("innodb_io_capacity_max") {
		changes[most-1], changes[most] = changes[most], changes[most-1]
	}
}

// goal returns the buffer pool to grow to, in bytes, and why; 0 where it stays, and why.
func (l Live) goal() (value int64, reason string) {
	now := l.size("innodb_buffer_pool_size")
	most, why := l.poolBound(now)
	unit := l.poolUnit()
	if l.Data > 0 {
		if now >= l.Data*5/4 {
			return 0, fmt.Sprintf("it holds all data (%s) and a quarter more", gibText(l.Data))
		}
		if want := (l.Data*5/4 + unit - 1) / unit * unit; want < most {
			most, why = want, fmt.Sprintf("it then holds all data (%s) and a quarter more", gibText(l.Data))
		}
	}
	value = most / unit * unit
	if value < now+now/10 {
		return 0, fmt.Sprintf("it is %s, and %s", gibText(now), why)
	}
	return value, why
}

// poolBound returns how large the pool may become, in bytes: with all connections busy the server stays
// within 90 % of its memory, the pool takes three quarters of it at most, and what it grows by is free now.
func (l Live) poolBound(now int64) (most int64, why string) {
	others := baseMemory + max(l.size("innodb_log_buffer_size"), logBuffer) + l.size("max_connections")*l.perConnection()
	rest := (memoryCeiling*float64(l.Memory) - float64(others)) / poolOverhead
	most = int64(math.Min(rest, poolShare*float64(l.Memory)))
	why = fmt.Sprintf("of the %s that the server may use, the rest is for %s connections, the log buffer and the server itself",
		gibText(l.Memory), l.Variables["max_connections"])
	const share = 0.8 // of what is free: others on the machine want some too
	if free := now + int64(share*float64(l.Available)/poolOverhead); l.Available > 0 && free < most {
		most, why = free, fmt.Sprintf("only %s of the machine's memory are free", gibText(l.Available))
	}
	if limit := l.size("innodb_buffer_pool_size_max"); limit > now && limit < most {
		most, why = limit, "innodb_buffer_pool_size_max bounds it until the next start"
	}
	return most, why
}

// perConnection returns what a connection may take, in bytes: the rules' figure, or the sum of the buffers
// set where that is more.
func (l Live) perConnection() int64 {
	sum := int64(0)
	for _, name := range []string{"thread_stack", "sort_buffer_size", "join_buffer_size", "read_buffer_size", "read_rnd_buffer_size", "net_buffer_length", "binlog_cache_size"} {
		sum += min(l.size(name), 1<<40)
	}
	return max(perConnection, sum)
}

// poolFixed tells whether the server cannot grow its pool while it runs: MariaDB from 10.11.12 on reserves
// the addresses at its start.
func (l Live) poolFixed() bool {
	limit, ok := l.Variables["innodb_buffer_pool_size_max"]
	return ok && SizeOf(limit) <= l.size("innodb_buffer_pool_size")
}

// poolUnit returns what the pool's size is a multiple of.
func (l Live) poolUnit() int64 {
	unit := l.size("innodb_buffer_pool_chunk_size") * max(1, l.size("innodb_buffer_pool_instances"))
	if unit <= 0 {
		return Chunk
	}
	return unit
}

// tables returns the table cache doubled, where its counters say that it overflows and the files may be
// opened.
func (l Live) tables(p *LivePlan) []mycnf.Setting {
	const most = 20000
	cache, open := l.size("table_open_cache"), count(l.Status["open_tables"])
	overflows := count(l.Status["table_open_cache_overflows"])
	if cache == 0 || open < cache || overflows == 0 || cache >= most {
		return nil
	}
	want := min(2*cache, most)
	if limit := l.size("open_files_limit"); limit < 10+l.size("max_connections")+2*want {
		p.Notes = append(p.Notes, fmt.Sprintf("table_open_cache: it overflows, and open_files_limit (%d) allows no more", limit))
		return nil
	}
	return []mycnf.Setting{{Name: "table_open_cache", Value: fmt.Sprint(want), Group: "concurrency",
		Reason: fmt.Sprintf("all %d places are taken, and tables were closed %d times to make room", cache, overflows),
		Source: "MySQL manual, How MySQL Opens and Closes Tables"}}
}

// size returns a variable's number; 0 where it was not seen or is none.
func (l Live) size(name string) int64 { return SizeOf(l.Variables[name]) }

// SizeOf returns a size as text in bytes; 0 where it is none.
func SizeOf(s string) int64 {
	n, err := mycnf.ParseSize(s)
	if err != nil {
		return 0
	}
	return n
}

func count(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
