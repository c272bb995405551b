// Package audit judges the settings of a server, or of an option file, against its hardware and against what
// is known of the versions: which endanger data, which cost throughput, which contradict each other. Its
// rules are a table; docs/audit.md shows it. audit is pure: values in, findings out.
package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Severity says what a finding costs.
type Severity string

// The severities, the most severe first.
const (
	Danger   Severity = "danger"   // data can be lost
	Slow     Severity = "slow"     // it costs throughput
	Conflict Severity = "conflict" // settings contradict each other, the version or the hardware
	Note     Severity = "note"     // worth knowing
)

// Severities lists them, the most severe first.
func Severities() []Severity { return []Severity{Danger, Slow, Conflict, Note} }

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
	Line     string   `json:"line"`     // of a my.cnf: what to write; after "# " what to take out; "" where no setting helps
	Restart  bool     `json:"restart"`  // the line takes effect only when the server is started with it
	NewData  bool     `json:"new_data"` // the line takes effect only in a new data directory
	Reason   string   `json:"reason"`
	Source   string   `json:"source"`
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

	find func(Input) []hit
}

// hit tells what a rule found, before it is a finding.
type hit struct {
	variable string
	evidence string
	line     string
	severity Severity // "": the rule's
	reason   string   // "": the rule's
}

// Run applies all rules.
func Run(in Input) Report {
	r := Report{Findings: []Finding{}, Unseen: slices.Clone(in.Unseen)}
	skipped := map[Need][]string{}
	missing := map[string]bool{}
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
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
	r.Unseen = append(append(append([]string{}, r.Unseen...), unapplied(skipped)...), in.unreported(missing)...)
	return r
}

// concerned tells whether the version has any of the variables that a rule looks at.
func (in Input) concerned(rule Rule) bool {
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

func (in Input) unreported(missing map[string]bool) (lines []string) {
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
func (in Input) finding(rule Rule, h hit) Finding {
	f := Finding{Name: rule.Name, Severity: cmp.Or(h.severity, rule.Severity), Variable: h.variable, Value: in.Variables[h.variable],
		Evidence: h.evidence, Line: h.line, Reason: cmp.Or(h.reason, rule.Reason), Source: rule.Source}
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

// stuck tells whether a server does not change a dynamic variable from the value it has. The doublewrite
// buffer cannot be switched on while the server runs without it (MySQL manual, innodb_doublewrite).
func (in Input) stuck(name string) bool {
	return name == "innodb_doublewrite" && slices.Contains([]string{"OFF", "0", "FALSE"}, strings.ToUpper(in.Variables[name]))
}

// statement begins the one line that is SQL and no setting.
const statement = "ALTER INSTANCE"
