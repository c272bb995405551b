package tune

import (
	"fmt"
	"slices"

	"david/internal/mycnf"
	"david/internal/rules"
)

// knobGroup names knobs that are screened together. Its settings are what david's rules propose; causes are
// those of explain that it may relieve.
type knobGroup struct {
	name, title string
	settings    func(rules.Problem) []mycnf.Setting
	causes      []string
	holds       []string // groups of the catalogue
}

// groups are screened in this order where no bottleneck is known.
func groups() []knobGroup {
	rule := func(sets ...func(rules.Problem) rules.RuleSet) func(rules.Problem) []mycnf.Setting {
		return func(p rules.Problem) (all []mycnf.Setting) {
			for _, of := range sets {
				all = rules.Merge(all, of(p).Settings)
			}
			return all
		}
	}
	return []knobGroup{
		{"memory", "the buffer pool", rule(rules.Memory), []string{"read I/O", "page flushing"}, []string{"memory"}},
		{"redo", "redo log and checkpoints", rule(rules.Redo), []string{"redo capacity", "page flushing", "doublewrite"}, []string{"redo"}},
		{"flush", "flushing and I/O", rule(rules.Flushing), []string{"page flushing", "doublewrite", "read I/O"}, []string{"flush", "io"}},
		{"commit", "the commit pipeline", commitPipeline, []string{"commit/fsync"}, []string{"binlog", "commit"}},
		{"concurrency", "concurrency and CPU", rule(rules.Concurrency), []string{"server CPU", "CPU throttling", "latches", "row locks", "scheduling"}, []string{"concurrency", "connections", "tables"}},
		{"logging", "logging and instrumentation", rule(rules.Logging), []string{"server CPU", "CPU throttling", "client CPU"}, []string{"logging", "instrumentation"}},
	}
}

// commitPipeline waits for company at each group commit, where there is any.
func commitPipeline(p rules.Problem) []mycnf.Setting {
	const reason = "a group commit waits up to 100 us for others, so that one sync serves more of them; a lone commit takes that much longer"
	if p.Threads < 4 {
		return nil
	}
	company := fmt.Sprint(max(2, p.Threads/2))
	if p.Flavour == mycnf.MariaDB {
		return []mycnf.Setting{
			{Name: "binlog_commit_wait_usec", Value: "100", Group: "binlog", Reason: reason, Source: "MariaDB manual, Group Commit for the Binary Log"},
			{Name: "binlog_commit_wait_count", Value: company, Group: "binlog", Reason: "half of the connections are company enough", Source: "MariaDB manual, Group Commit for the Binary Log"}}
	}
	return []mycnf.Setting{
		{Name: "binlog_group_commit_sync_delay", Value: "100", Group: "binlog", Reason: reason, Source: "MySQL manual, binlog_group_commit_sync_delay"},
		{Name: "binlog_group_commit_sync_no_delay_count", Value: company, Group: "binlog", Reason: "half of the connections are company enough",
			Source: "MySQL manual, binlog_group_commit_sync_no_delay_count"}}
}

// groupOf returns the name of the group that a setting belongs to; "other" where none does.
func groupOf(s mycnf.Setting) string {
	if s.Name == "performance_schema" { // the catalogue has it under what it takes
		return "logging"
	}
	for _, g := range groups() {
		if slices.Contains(g.holds, s.Group) {
			return g.name
		}
	}
	return "other"
}

// byCauses orders the groups by the most costly cause that each may relieve; those that fit none come last.
func byCauses(list []knobGroup, causes []string) []knobGroup {
	rank := func(g knobGroup) int {
		i := slices.IndexFunc(causes, func(c string) bool { return slices.Contains(g.causes, c) })
		if i < 0 {
			return len(causes)
		}
		return i
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b knobGroup) int { return rank(a) - rank(b) })
	return list
}
