package rules

import (
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Baseline holds what somebody else would configure on the same machine: a named arm of a race.
type Baseline struct {
	Name string `json:"name"`
	// Also names others whose Settings are the very same, and which are run under this name; see Distinct.
	Also   []string `json:"also,omitempty"`
	Title  string   `json:"title"`
	Source string   `json:"source"`
	// Shipped says what its author sets, in the names that this server knows.
	Shipped []mycnf.Setting `json:"shipped"`
	// Settings are the same, as durable as every arm has to be; none where they are the server's defaults.
	Settings []mycnf.Setting `json:"settings"`
	// Translated says what became of names that this server does not have, one sentence each.
	Translated []string `json:"translated,omitempty"`
	// Locked says what the durability lock took from Shipped.
	Locked []Locked `json:"locked,omitempty"`
}

// Notes says in a line what became of a baseline's settings; none where all stayed.
func (b Baseline) Notes() []string {
	parts := slices.Clone(b.Translated)
	for _, k := range b.Locked {
		parts = append(parts, k.Short())
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{b.Name + ": " + strings.Join(parts, "; ")}
}

// Locked names a setting that the durability lock replaced.
type Locked struct {
	Name    string `json:"name"`
	Shipped string `json:"shipped"`
	Instead string `json:"instead,omitempty"` // the safe value; "": the variable is left as the control has it
	Lost    string `json:"lost"`              // what can be lost as shipped
}

// String says it in a sentence.
func (l Locked) String() string { return l.Short() + ": " + l.Lost }

// Short leaves out of String what can be lost.
func (l Locked) Short() string {
	what := strings.TrimSuffix(l.Name+"="+l.Shipped, "=")
	if l.Instead == "" {
		return what + " is left as the control has it"
	}
	return what + " became " + l.Instead
}

// Baselines lists what others would configure for the problem, the server's own defaults first: those that
// apply to its flavour and version. docs/baselines.md has the formulas and where they are from. Nothing is
// clipped to what is safe, but for the random one and david's own.
func Baselines(p Problem) []Baseline {
	var list []Baseline
	for _, r := range rivals(p) {
		list = append(list, p.baseline(r))
	}
	return append(list, p.own(), p.random())
}

// Distinct leaves each configuration once: of baselines with the same settings the first stays and names the
// others.
func Distinct(list []Baseline) []Baseline {
	var kept []Baseline
	at := map[string]int{}
	for _, b := range list {
		key := Fingerprint(b.Settings)
		if i, ok := at[key]; ok {
			kept[i].Also = append(slices.Clip(kept[i].Also), b.Name)
			continue
		}
		at[key] = len(kept)
		kept = append(kept, b)
	}
	return kept
}

// Fingerprint returns the same for settings that mean the same: 1024M is 1G, and the order does not matter.
func Fingerprint(settings []mycnf.Setting) string {
	lines := make([]string, len(settings))
	for i, s := range settings {
		value := strings.ToUpper(s.Value)
		if n, err := mycnf.ParseSize(s.Value); err == nil {
			value = mycnf.FormatSize(n)
		}
		lines[i] = s.Name + "=" + value
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// rival holds a baseline as its author wrote it, whatever the server.
type rival struct {
	name, title, source string
	set                 []string // name=value
}

// baseline fits a rival to the problem's server.
func (p Problem) baseline(r rival) Baseline {
	b := Baseline{Name: r.name, Title: r.title, Source: r.source}
	var written []mycnf.Setting
	for _, text := range r.set {
		name, value, _ := strings.Cut(text, "=")
		written = append(written, mycnf.Setting{Name: name, Value: value, Reason: "what " + r.name + " sets", Source: r.source})
	}
	b.Shipped, b.Translated = p.translate(written)
	b.Settings, b.Locked = p.normalised(b.Shipped)
	return b
}

// normalised replaces what the durability lock does not allow, and says what that was.
func (p Problem) normalised(shipped []mycnf.Setting) (settings []mycnf.Setting, taken []Locked) {
	settings = []mycnf.Setting{}
	members := map[string]mycnf.LockVariable{}
	for _, l := range mycnf.Lock(p.Flavour) {
		members[l.Name] = l
	}
	for _, s := range shipped {
		l, locked := members[variable(s)]
		if !locked || p.allowed(l, s) {
			settings = append(settings, s)
			continue
		}
		t := Locked{Name: s.Name, Shipped: s.Value, Lost: l.Lost}
		if len(l.Safe) > 0 && l.Name == s.Name && !slices.Contains(p.controlled(), s.Name) {
			t.Instead, s.Value = l.Safe[0], l.Safe[0]
			settings = append(settings, s)
		}
		taken = append(taken, t)
	}
	return settings, taken
}

// controlled returns the variables that the control has a safe value of already.
func (p Problem) controlled() (names []string) {
	for _, s := range normalise(p.Flavour) {
		names = append(names, s.Name)
	}
	return names
}

// allowed tells whether a member of the lock has a safe value, or one that must only be everybody's and is
// the default.
func (p Problem) allowed(l mycnf.LockVariable, s mycnf.Setting) bool {
	if len(l.Safe) == 0 {
		standard, known := p.standard()[l.Name]
		return known && mycnf.MatchValues(l.Name, s.Value, standard) == mycnf.Same
	}
	for _, v := range mycnf.CheckLock(p.Flavour, map[string]string{l.Name: s.Value}) {
		if v.Name == l.Name {
			return false
		}
	}
	return true
}

// standard returns the defaults of variables that every arm must have alike, of those that rivals set.
func (p Problem) standard() map[string]string {
	d := map[string]string{"binlog_format": "ROW", "binlog_row_image": "FULL", "transaction_isolation": "REPEATABLE-READ"}
	if p.Flavour == mycnf.MariaDB {
		d["binlog_format"] = "MIXED"
	}
	return d
}

// own returns david's: all of the sizing rules, unmeasured.
func (p Problem) own() Baseline {
	b := Baseline{Name: "david-rules", Title: "all of david's sizing rules, none of them tried", Source: "docs/baselines.md"}
	for _, rules := range Sizing(p) {
		if rules.PageSize == 0 { // the data are there already
			b.Shipped = Merge(b.Shipped, rules.Settings)
		}
	}
	b.Settings, b.Locked = p.normalised(b.Shipped)
	return b
}
