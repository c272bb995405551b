// Package check finds what is wrong with manifests: against the schemas of their kinds, offline, and against
// david's rules for database servers. It is pure: objects in, findings out.
package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"david/internal/manifest/stream"
)

// Severity says what a finding of a check costs.
type Severity string

// The severities, the most severe first.
const (
	SeverityError   Severity = "error"   // the cluster refuses it, or data or the server are at risk
	SeverityWarning Severity = "warning" // it runs, and costs speed or comfort
	SeverityNote    Severity = "note"    // worth knowing
)

func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityNote}, s)
}

// Finding tells of one thing that is wrong with a manifest, or worth knowing.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`
	Object   string   `json:"object"` // "StatefulSet databases/orders"; "" where it is of no object
	File     string   `json:"file"`
	Line     int      `json:"line"` // 0: not known
	Path     string   `json:"path"` // of the field
	Why      string   `json:"why"`
	Do       string   `json:"do"` // what to do
}

// Where says where the finding is: "statefulset.yaml:12".
func (f Finding) Where() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// String tells of the finding in a line: severity, place, object and field, why, what to do.
func (f Finding) String() string {
	object := strings.TrimSpace(f.Object + " " + f.Path)
	if object != "" {
		object += ": "
	}
	return fmt.Sprintf("%s %s [%s] %s%s; %s", f.Severity, f.Where(), f.Rule, object, f.Why, f.Do)
}

// Inspection holds what a check says.
type Inspection struct {
	Objects  int       `json:"objects"`
	Findings []Finding `json:"findings"`
	Unseen   []string  `json:"unseen"` // what could not be judged, and why
}

// Errors counts the findings that are errors.
func (i Inspection) Errors() (n int) {
	for _, f := range i.Findings {
		if f.Severity == SeverityError {
			n++
		}
	}
	return n
}

// Sort orders findings by severity, then by place.
func (i Inspection) Sort() {
	slices.SortStableFunc(i.Findings, func(a, b Finding) int {
		return cmp.Or(a.Severity.rank()-b.Severity.rank(), strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Path, b.Path),
			strings.Compare(a.Rule, b.Rule))
	})
}

// Text prints a line for each finding. path is what was checked.
func (i Inspection) Text(out io.Writer, path string) error {
	for _, f := range i.Findings {
		fmt.Fprintln(out, f)
	}
	for _, u := range i.Unseen {
		fmt.Fprintf(out, "not seen: %s\n", u)
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s, %s\n", path, plural(i.Objects, "object"), plural(i.Errors(), "error"), plural(len(i.Findings)-i.Errors(), "other finding"))
	return err
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Read reads the objects of a stream, and finds what is wrong with the stream itself.
func Read(file string, text []byte) (docs []stream.Document, found []Finding) {
	docs, problems := stream.Documents(file, text)
	for _, p := range problems {
		found = append(found, Finding{Severity: SeverityError, Rule: p.Rule, Object: p.Object, File: p.File, Line: p.Line, Path: p.Path, Why: p.Why, Do: p.Do})
	}
	return docs, found
}

// Known holds what a check is told besides the objects.
type Known struct {
	Schemas  Schemas       // of custom resources
	Recovery time.Duration // from a crash, as measured; 0: not known
	// Networks looks up what networks were measured to cost; nil: nobody did.
	Networks func() (NetworkCosts, error)
}

// Inspect checks the objects of a stream: against the schemas of their kinds, and against david's rules for
// servers. Findings of reading the stream are the caller's, see Documents.
func Inspect(docs []stream.Document, known Known) (Inspection, error) {
	c := checker{Known: known, docs: docs, unseen: map[string]bool{}, used: map[string]bool{}}
	var err error
	if c.kinds, err = builtInKinds(); err != nil {
		return Inspection{}, fmt.Errorf("cannot load the built-in kinds: %w", err)
	}
	for _, d := range docs {
		c.schema(d)
		c.clearSecrets(d)
	}
	c.duplicates()
	c.servers()
	c.flushes()
	c.budgets()
	if c.broken != nil {
		return Inspection{}, fmt.Errorf("cannot read david's schemas of built-in kinds: %w", c.broken)
	}
	result := Inspection{Objects: len(docs), Findings: c.found, Unseen: []string{}}
	if result.Findings == nil {
		result.Findings = []Finding{}
	}
	for text := range c.unseen {
		result.Unseen = append(result.Unseen, text)
	}
	slices.Sort(result.Unseen)
	result.Sort()
	return result, nil
}

// checker carries a check out.
type checker struct {
	Known
	kinds   *runtime.Scheme
	openAPI *openAPI // nil until a built-in kind is met
	broken  error    // of david's own schemas
	docs    []stream.Document
	found   []Finding
	unseen  map[string]bool
	used    map[string]bool // classes of the servers' volumes
}

// report adds a finding about a field of an object.
func (c *checker) report(s Severity, rule string, d stream.Document, path, why, do string) {
	c.found = append(c.found, Finding{Severity: s, Rule: rule, Object: d.Object(), File: d.File, Line: d.LineAt(path), Path: path, Why: why, Do: do})
}

// reportSetting adds a finding about a line of an option file.
func (c *checker) reportSetting(s Severity, rule string, from optionFile, name, why, do string) {
	c.report(s, rule, from.doc, from.path, why, do)
	if line := from.lines[name]; line > 0 {
		c.found[len(c.found)-1].Line = line
	}
}

// find looks up the object of a kind and name; namespaced ones without a namespace match any.
func (c *checker) find(kind, namespace, name string) (stream.Document, bool) {
	i := slices.IndexFunc(c.docs, func(d stream.Document) bool {
		return d.Kind() == kind && d.Name() == name && (namespace == "" || d.Namespace() == "" || d.Namespace() == namespace)
	})
	if i < 0 {
		return stream.Document{}, false
	}
	return c.docs[i], true
}

// duplicates finds objects that stand twice in the stream: the last one applied wins.
func (c *checker) duplicates() {
	seen := map[string]stream.Document{}
	for _, d := range c.docs {
		key := d.APIVersion() + " " + d.Object()
		if first, there := seen[key]; there && d.Name() != "" {
			c.report(SeverityError, "duplicate-object", d, "metadata.name", fmt.Sprintf("the object stands in %s:%d already; the one applied last wins", first.File, first.Line),
				"remove or rename one")
			continue
		}
		seen[key] = d
	}
}
