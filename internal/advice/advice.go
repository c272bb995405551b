// Package advice is david's one adviser: a table of rules, each a condition on what is known of a server and
// its load, with the value it proposes, the reason, the source, the risk, and how its worth was measured. A
// running server, an option file, a pod and a trial are Facts; the same facts get the same advice, whoever
// asks: audit, the plan for a running server, explain, the check of manifests. docs/audit.md shows the table.
// A size that it proposes, as the buffer pool's, is the one that a tune begins with (internal/rules). It asks no
// server and reads no file: facts go in, findings come out.
package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Severity says what a finding costs.
type Severity string

// The severities, the most severe first.
const (
	Danger   Severity = "danger"   // data can be lost, or are anybody's
	Down     Severity = "down"     // the server does not start, or is killed for memory
	Slow     Severity = "slow"     // it costs throughput
	Conflict Severity = "conflict" // settings contradict each other, the version or the hardware
	Note     Severity = "note"     // worth knowing
)

// Severities lists them, the most severe first.
func Severities() []Severity { return []Severity{Danger, Down, Slow, Conflict, Note} }

// Rank is 0 for the most severe; what is no severity ranks last.
func (s Severity) Rank() int {
	if i := slices.Index(Severities(), s); i >= 0 {
		return i
	}
	return len(Severities())
}

// Finding names one thing to change, or to know.
type Finding struct {
	Name     string   `json:"name"` // of the rule
	Severity Severity `json:"severity"`
	Variable string   `json:"variable"`
	Value    string   `json:"value"`    // as the server reports it, or as it follows from the file
	Evidence string   `json:"evidence"` // numbers with units
	Line     string   `json:"line"`     // to write into my.cnf; behind "# " one to take out, or (Choice) to weigh; "": none helps
	Restart  bool     `json:"restart"`  // the line takes effect only when the server is started with it
	NewData  bool     `json:"new_data"` // the line takes effect only in a new data directory
	Reason   string   `json:"reason"`
	Source   string   `json:"source"`
	Risk     string   `json:"risk"`            // what following it can cost
	Measured string   `json:"measured"`        // how its worth was measured, or can be
	Where    string   `json:"where,omitempty"` // file and line of the option file that set the variable: "my.cnf:12"
	// Choice tells that the line, behind "# ", is right in some places only: it is for somebody to weigh.
	Choice bool `json:"choice,omitempty"`
	// Before is the value that the line replaces, as a my.cnf has it; "" where it is not seen.
	Before string `json:"-"`
}

// Setting returns what a finding proposes; ok is false where that is no value of a variable.
func (f Finding) Setting() (s mycnf.Setting, ok bool) {
	name, value, ok := strings.Cut(f.Line, "=")
	if !ok || strings.HasPrefix(f.Line, "#") {
		return s, false
	}
	return mycnf.Setting{Name: name, Value: value, Reason: f.Reason, Source: f.Source}, true
}

// Report holds what an audit says.
type Report struct {
	Findings []Finding `json:"findings"` // the most severe first, then in the order of the rules
	Unseen   []string  `json:"unseen"`   // what could not be judged, and why
}

// Rule holds one row of the table.
type Rule struct {
	Name      string
	Severity  Severity // of most of its findings
	When      string   // the condition, in words
	Variables []string // what it looks at: where the version has one of them that is not seen, the report says so
	Needs     []Need   // without these it is not applied, and the report says so
	Reason    string
	Source    string
	Risk      string // of following it; "": none is known
	Measured  string // how its worth was measured, or can be; "": it was not, and follows from the manual

	find func(Facts) []hit
}

// hit tells what a rule found, before it is a finding.
type hit struct {
	variable string
	evidence string
	line     string
	severity Severity // "": the rule's
	reason   string   // "": the rule's
	where    string   // "": where the variable was set
	choice   bool     // the line is for somebody to weigh
}

// rounds bounds how often what follows from followed advice is looked for.
const rounds = 4

// Of applies all rules, and applies them again to the server as it would be with what they propose, so that
// whoever follows the advice is not given more of it: what that leads to is among the findings.
func Of(in Facts) Report {
	r, missing, skipped := in.look()
	for range rounds {
		more, _, _ := in.Following(r.Findings).look()
		changed := false
		for _, f := range more.Findings {
			switch {
			case r.revise(f):
				changed = true
			case f.Line != "" && !r.proposes(f):
				f.Where, f.Value, f.Before = in.where(f.Variable), in.Variables[f.Variable], in.before(f) // not as it would be
				r.Findings, changed = append(r.Findings, f), true
			}
		}
		if !changed {
			break
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
	r.agree()
	r.Unseen = append(append(append([]string{}, r.Unseen...), unapplied(skipped)...), in.unreported(missing)...)
	return r
}

// revise gives a finding the value that a later one proposes for the same variable, with all the others
// followed.
func (r Report) revise(later Finding) bool {
	want, ok := later.Setting()
	for i, f := range r.Findings {
		if s, proposes := f.Setting(); ok && proposes && s.Name == want.Name && s.Value != want.Value {
			r.Findings[i].Line = later.Line
			return true
		}
	}
	return false
}

// proposes tells whether a finding's variable has a line already, or the same rule has spoken of it.
func (r Report) proposes(f Finding) bool {
	return slices.ContainsFunc(r.Findings, func(g Finding) bool {
		return g.Variable == f.Variable && (g.Name == f.Name || g.Line != "") || g.Line != "" && g.Line == f.Line
	})
}

// agree has findings about one line propose one thing: a line that is to have another value is not to be taken
// out as well, and is taken out once.
func (r *Report) agree() {
	seen := map[string]bool{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		key := f.Variable + "\n" + f.Where
		twice := f.removes() && seen[key]
		seen[key] = seen[key] || f.removes()
		return twice
	})
	for i, f := range r.Findings {
		at := slices.IndexFunc(r.Findings, func(g Finding) bool {
			s, ok := g.Setting()
			return ok && s.Name == f.Variable
		})
		switch {
		case !f.removes() || at < 0:
		case f.Severity == Note: // what is said of the name stays worth knowing
			r.Findings[i].Line, r.Findings[i].Restart = "", false
		default:
			g := r.Findings[at]
			r.Findings[i].Line, r.Findings[i].Restart, r.Findings[i].NewData, r.Findings[i].Before = g.Line, g.Restart, g.NewData, g.Before
		}
	}
}

// removes tells whether the finding is about a line that is to be taken out.
func (f Finding) removes() bool { return strings.HasPrefix(f.Line, "# ") && !f.Choice }

// look applies all rules once.
func (in Facts) look() (r Report, missing map[string]bool, skipped map[Need][]string) {
	r = Report{Findings: []Finding{}, Unseen: slices.Clone(in.Unseen)}
	skipped, missing = map[Need][]string{}, map[string]bool{}
	for _, rule := range Rules(in.Flavour) {
		if !in.concerned(rule) {
			continue
		}
		for _, name := range in.absent(rule.Variables) {
			missing[name] = true
		}
		if lacking := in.lacking(rule.Needs); len(lacking) > 0 {
			for _, need := range lacking {
				skipped[need] = append(skipped[need], rule.Name)
			}
			continue
		}
		for _, h := range rule.find(in) {
			r.Findings = append(r.Findings, in.finding(rule, h))
		}
	}
	return r, missing, skipped
}

// concerned tells whether the version has any of the variables that a rule looks at.
func (in Facts) concerned(rule Rule) bool {
	return len(rule.Variables) == 0 || slices.ContainsFunc(rule.Variables, func(name string) bool {
		_, known := mycnf.Lookup(name, in.Flavour, in.Version)
		return known || in.Variables[name] != ""
	})
}

// unapplied says which rules were left out for want of what.
func unapplied(skipped map[Need][]string) (lines []string) {
	for _, need := range needs() {
		if rules := skipped[need]; len(rules) > 0 {
			lines = append(lines, fmt.Sprintf("%s: not judged: %s", need, strings.Join(rules, ", ")))
		}
	}
	return lines
}

func (in Facts) unreported(missing map[string]bool) (lines []string) {
	for _, name := range sortedKeys(missing) {
		why := "the server does not report it to this user"
		if !in.Live {
			why = "the file does not set it, and david does not know its default"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, why))
	}
	return lines
}

// finding makes a rule's hit whole.
func (in Facts) finding(rule Rule, h hit) Finding {
	f := Finding{Name: rule.Name, Severity: cmp.Or(h.severity, rule.Severity), Variable: h.variable, Value: in.Variables[h.variable],
		Evidence: h.evidence, Line: h.line, Reason: cmp.Or(h.reason, rule.Reason), Source: rule.Source,
		Risk: cmp.Or(rule.Risk, noRisk), Measured: cmp.Or(rule.Measured, notMeasured), Where: cmp.Or(h.where, in.where(h.variable)),
		Choice: h.choice}
	f.Before = in.before(f)
	if f.Line == "" || strings.HasPrefix(f.Line, statement) {
		return f
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Line, "# "), "=")
	switch entry, ok := mycnf.Lookup(name, in.Flavour, in.Version); {
	case !ok: // what only start-up reads, as the options that are taken out
		f.Restart = true
	default:
		apply := entry.ApplyIn(in.Flavour, in.Version)
		f.NewData = apply == mycnf.Init
		f.Restart = apply != mycnf.Dynamic || in.stuck(mycnf.Normalise(name))
	}
	return f
}

// before returns the value that a finding's line replaces; what the server does not start with is as it was written.
func (in Facts) before(f Finding) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Line, "# "), "=")
	written, set := in.Set[name]
	asWritten := mycnf.Setting{Name: name, Value: written}
	if refused := set && !in.Live && !mycnf.Starts(in.Flavour, in.Version, asWritten); refused {
		return cmp.Or(written, empty)
	}
	value, seen := in.Variables[name]
	if !seen {
		return ""
	}
	return cmp.Or(mycnf.AsWritten(name, value), empty)
}

// stuck tells whether a server does not change a dynamic variable from the value it has. The doublewrite
// buffer cannot be switched on while the server runs without it (MySQL manual, innodb_doublewrite). MariaDB
// from 10.11.12 on reserves the addresses of its pool at the start.
func (in Facts) stuck(name string) bool {
	most, bounded := in.size("innodb_buffer_pool_size_max")
	if name == "innodb_buffer_pool_size" && bounded && in.Live {
		want, _, _ := in.fit().most()
		return want > most
	}
	return name == "innodb_doublewrite" && slices.Contains([]string{"OFF", "0", "FALSE"}, strings.ToUpper(in.Variables[name]))
}

// statement begins the one line that is SQL and no setting.
const statement = "ALTER INSTANCE"

// What is said of a rule that says nothing else.
const (
	noRisk      = "none known"
	notMeasured = "no: it follows from the manual; david compare measures it on your load"
)

// where returns the file and the line that set a variable, the last one where there are several; "" where
// none did.
func (in Facts) where(name string) (at string) {
	for _, l := range in.Lines {
		entry, _ := mycnf.Lookup(l.Option.Name, in.Flavour, in.Version)
		if l.Option.Name == name || entry.Reports == name || oldNames()[l.Option.Name] == name {
			at = l.Where()
		}
	}
	return at
}

// Following returns the facts as they would be with what findings propose: the server started anew, so
// without its counters.
func (in Facts) Following(findings []Finding) Facts {
	out := in
	out.Lines, out.Preloaded, out.Lost, out.Status = nil, nil, nil, nil
	out.Variables, out.Set = maps.Clone(in.Variables), maps.Clone(in.Set)
	for _, f := range findings {
		if f.removes() {
			name, _, _ := strings.Cut(strings.TrimPrefix(f.Line, "# "), "=")
			delete(out.Set, name)
			if _, known := mycnf.Lookup(name, in.Flavour, in.Version); !known {
				delete(out.Variables, name)
			}
			continue
		}
		s, ok := f.Setting()
		if !ok {
			continue
		}
		if out.Set != nil {
			out.Set[s.Name] = s.Value
			delete(out.Set, "skip_"+s.Name)
		}
		out.Variables[s.Name] = s.Value
		if s.Name == "log_bin" { // it is given a name
			out.Variables[s.Name] = "ON"
		}
	}
	if free := in.Machine.Available; free > 0 { // the pool takes of it
		out.Machine.Available = max(1, free-(out.fit().pool-in.fit().pool)/20*21)
	}
	if _, before, ok := in.redoLog(); in.Live && ok && in.Machine.FreeDisk > 0 { // the disk has its files
		_, now, _ := out.redoLog()
		out.Machine.FreeDisk = max(1, in.Machine.FreeDisk+before-now)
	}
	if !in.Live && in.Set != nil {
		var settings []mycnf.Setting
		for _, name := range sortedKeys(out.Set) {
			settings = append(settings, mycnf.Setting{Name: name, Value: out.Set[name]})
		}
		out.Variables, _ = Effective(in.Flavour, in.Version, settings)
	}
	return out
}
