package check

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/advice"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// facts describes a pod's server to the adviser: what its files and arguments set, and its container's
// limits. The size of its data is not known, nor what its volume has free.
func (s server) facts() advice.Facts {
	f := advice.Facts{Flavour: s.flavour, Version: s.version, Machine: advice.Machine{Memory: s.memory, Pod: true}}
	f.Variables, f.Set = advice.Effective(s.flavour, s.version, s.lines())
	if q, err := resource.ParseQuantity(fmt.Sprint(s.doc.Get(s.resources + ".limits.cpu"))); err == nil {
		f.Machine.CPUs = q.AsApproximateFloat64()
	}
	return f
}

// advised reports what the adviser finds of the variables that the files set; what nobody sets is the
// server's own. What the check's own rules say in the words of a cluster is left to them.
func (c *checker) advised(s server) {
	if len(s.cnfs) == 0 || s.version == (mycnf.Version{}) {
		return
	}
	for _, f := range advice.Of(s.facts()).Findings {
		severity := SeverityWarning
		if f.Severity == advice.Danger {
			severity = SeverityError
		}
		value, from, set := s.setting(f.Variable)
		if !set || f.Severity == advice.Note || f.Line == "" || c.says(s, f) {
			continue
		}
		c.reportSetting(severity, f.Name, from, f.Variable, fmt.Sprintf("%s=%s: %s", f.Variable, value, f.Reason), do(f))
	}
}

// says tells whether another rule of the check is about what a finding is about.
func (c *checker) says(s server, f advice.Finding) bool {
	return mycnf.Locked(s.flavour, f.Variable) || f.Variable == "innodb_dedicated_server" || f.Name == "unknown-variable" || f.Name == "option-misread" || memoryRule(f)
}

// memoryRule tells of a finding that is about the server's memory as a whole.
func memoryRule(f advice.Finding) bool {
	return f.Name == "buffer-pool-too-large" || f.Name == "memory-overcommitted" || f.Name == "session-buffers-large" || f.Name == "global-buffers-large"
}

func do(f advice.Finding) string {
	if out, drop := strings.CutPrefix(f.Line, "# "); drop {
		return "take out " + out
	}
	return "set " + f.Line
}

// memoryAdvice returns what the adviser would have the parts of the server's memory be: lines, and the first
// finding's evidence.
func (s server) memoryAdvice() (lines []string, evidence string) {
	for _, f := range advice.Of(s.facts()).Findings {
		if memoryRule(f) && f.Line != "" {
			lines, evidence = append(lines, f.Line), cmp.Or(evidence, f.Evidence)
		}
	}
	return lines, evidence
}

// Facts lists what the adviser is told of the servers of a stream, one each.
func Facts(docs []stream.Document) (list []advice.Facts) {
	c := checker{docs: docs, unseen: map[string]bool{}, used: map[string]bool{}}
	for _, d := range docs {
		if s, ok := c.server(d); ok {
			list = append(list, s.facts())
		}
	}
	return list
}
