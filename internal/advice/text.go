package advice

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Document holds what an audit says, and of what.
type Document struct {
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Assumed  string        `json:"assumed,omitempty"` // of flavour and version, where nobody said them: why these
	Of       string        `json:"of"`                // the server's address, or the file
	Hardware []string      `json:"hardware"`          // what is seen of it, with units
	Report
}

// Words says what is seen of a machine, with units.
func (m Machine) Words() (list []string) {
	if m.Memory > 0 {
		list = append(list, "memory "+bytesText(m.Memory))
	}
	if m.CPUs > 0 {
		list = append(list, fmt.Sprintf("%.4g CPUs", m.CPUs))
	}
	if m.FreeDisk > 0 {
		list = append(list, "free disk "+bytesText(m.FreeDisk))
	}
	if m.WriteIOPS > 0 {
		list = append(list, fmt.Sprintf("%.0f writes/s", m.WriteIOPS))
	}
	if m.DataSeen {
		list = append(list, "data "+bytesText(m.Data))
	}
	return list
}

// Worse counts the findings that are so severe or worse.
func (r Report) Worse(than Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity.Rank() <= than.Rank() {
			n++
		}
	}
	return n
}

// Why says why a finding is one, where that is from, and what following it can cost.
func (f Finding) Why() string {
	if f.Risk == noRisk || f.Line == "" {
		return fmt.Sprintf("%s (%s)", f.Reason, f.Source)
	}
	return fmt.Sprintf("%s (%s); the risk: %s", f.Reason, f.Source, f.Risk)
}

// Threat says in a clause what a finding is dangerous for, of those that are: data or the server. "": neither.
func (f Finding) Threat() string {
	switch {
	case f.Severity == Danger && f.Name == skipGrantsRule:
		return "anybody may read and change all data"
	case f.Severity == Danger:
		return "data can be lost"
	case f.Severity == Down && slices.Contains([]string{poolLargeRule, buffersRule, globalsRule, overcommittedRule, dedicatedRule}, f.Name):
		return "the server can be killed for memory"
	case f.Severity == Down:
		return "the server does not start"
	}
	return ""
}

// Change says what a finding would have done to the variable: "innodb_doublewrite OFF -> ON", "remove x=1"; its
// name where no line helps.
func (f Finding) Change() string {
	text, commented := strings.CutPrefix(f.Line, "# ")
	name, value, sets := strings.Cut(text, "=")
	switch {
	case f.Line == "":
		return f.Name
	case f.removes():
		return "remove " + text
	case !sets: // SQL
		return text
	case commented:
		return "perhaps " + Arrow(name, f.Before, value)
	}
	return Arrow(name, f.Before, value)
}

// Arrow writes a change of a variable: the value that there is, and the one that is proposed. One that is not
// known is left out.
func Arrow(name, before, value string) string {
	if before == "" {
		return name + "=" + value
	}
	return fmt.Sprintf("%s %s -> %s", name, before, value)
}

// Located returns the evidence behind the place in the option file, where there is one.
func (f Finding) Located() string {
	if f.Where == "" {
		return f.Evidence
	}
	return f.Where + ": " + f.Evidence
}

// AtOnce is when a line takes effect that needs no restart.
const AtOnce = "at once"

// Applies says when a finding's line takes effect; "" where there is none.
func (f Finding) Applies() string {
	switch {
	case f.Line == "":
		return ""
	case f.NewData:
		return "new data directory"
	case f.Restart:
		return "restart"
	}
	return AtOnce
}
