package report

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// serverOf returns the server that an arm ran on.
func (d Data) serverOf(a result.Arm) result.Server {
	if a.Server.Version != "" {
		return a.Server
	}
	return d.Experiment.Server
}

// overEngines tells whether the arms are servers of several flavours or releases, so that the server is
// what is compared.
func overEngines(d Data) bool {
	control := d.serverOf(d.armNamed(d.Experiment.Design.Control))
	return slices.ContainsFunc(d.Arms, func(a result.Arm) bool {
		own := d.serverOf(a)
		return own.Flavour != control.Flavour || own.Version != control.Version
	})
}

// Servers names those that the arms ran on, each once.
func Servers(d Data) string {
	names := []string{serverName(d.serverOf(d.armNamed(d.Experiment.Design.Control)))}
	for _, a := range d.Arms {
		if name := serverName(d.serverOf(a)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// engine names a server as people do: "MariaDB 10.11.19".
func engine(s result.Server) string {
	if v, err := mycnf.ParseVersion(s.Version); err == nil {
		return s.Flavour.Product() + " " + v.String()
	}
	return s.Flavour.Product() + " " + s.Version
}

// engineOf names an arm by its server, and by its own name where others run on the same.
func engineOf(d Data, name string) string {
	own := d.serverOf(d.armNamed(name))
	if slices.ContainsFunc(d.Arms, func(a result.Arm) bool { return a.Name != name && !a.Ceiling && d.serverOf(a) == own }) {
		return name + " (" + engine(own) + ")"
	}
	return engine(own)
}

// enginesHeadline says how the servers stand to the control's, at which durability, and how each was
// configured.
func enginesHeadline(d Data, list []stats.Comparison) headline {
	all := contenders(list)
	h := headline{Tone: "none"}
	for _, c := range all {
		if c.Verdict == stats.Invalid || c.Ratio == 0 {
			continue
		}
		if c.Verdict == stats.Faster {
			h.Tone = "gain"
		}
		big, rest := engineOf(d, c.Name)+": "+ratio(c.Arm), toEngine(d, c, len(list) > 1)
		if h.Big == "" {
			h.Big, h.Rest = big, rest
		} else {
			h.Rest += "; " + big + rest
		}
	}
	if h.Big == "" {
		return headline{Big: "No verdict", Rest: noVerdict(d, all), Beside: keptAlike(d), Tone: "invalid"}
	}
	for _, what := range []string{keptAlike(d), configured(d), gated(all)} {
		h.beside(what)
	}
	return h
}

// toEngine says what a ratio is to, how sure it is, and what follows.
func toEngine(d Data, c contender, several bool) string {
	text := c.by.Than(engineOf(d, d.Experiment.Design.Control))
	if several {
		text += " with " + short(c.on)
	}
	text += " (" + spread(c.Arm) + "), " + string(c.Verdict)
	if c.Verdict == stats.Undecided && c.Odds > 0 {
		text += ", " + chances(c.Odds)
	}
	return text
}

// keptAlike says whether the servers, as they were read back, are as durable as the control's; "" where none was.
func keptAlike(d Data) string {
	control := d.armNamed(d.Experiment.Design.Control)
	base := d.serverOf(control)
	var unflushed, flushed bool
	read := 0
	for _, a := range d.Arms {
		if a.Ceiling || a.Effective == nil {
			continue
		}
		read++
		if mycnf.DoublewriteUnflushed(a.Effective) {
			unflushed = true
		} else {
			flushed = true
		}
		if list := mycnf.CompareServers(base.Flavour, d.serverOf(a).Flavour, control.Effective, a.Effective); len(list) > 0 {
			return "NOT at equal durability, as read back: " + list[0].Between(control.Name, a.Name)
		}
	}
	unsafe := mycnf.CheckLock(base.Flavour, control.Effective)
	switch {
	case read < 2 || control.Effective == nil:
		return ""
	case len(unsafe) > 0:
		return "equally unsafe, as read back: " + unsafe[0].String()
	case unflushed && flushed && !writtenThrough(d):
		return "equal durability, as read back, but for one flush: " + mycnf.UnflushedDoublewrite + ", which a disk with a volatile cache needs (docs/crash.md)"
	}
	return "equal durability, as read back"
}

// writtenThrough tells whether the disk with the data says that it has no cache that forgets.
func writtenThrough(d Data) bool {
	h := d.Experiment.Host
	return slices.ContainsFunc(h.Disks, func(one host.Disk) bool { return one.Name == h.Data.Disk && one.WriteCache == "write through" })
}

// configured says what was compared with what: defaults, the sizing rules, or settings of one's own.
func configured(d Data) string {
	var kinds, each []string
	for _, a := range d.Arms {
		kind := "defaults"
		switch {
		case a.Baseline != "" && len(added(a)) == 0:
			kind = a.Baseline
		case len(added(a)) > 0:
			kind = "settings of its own"
		}
		kinds, each = append(kinds, kind), append(each, a.Name+" with "+kind)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(kinds)))) > 1 || slices.Contains(kinds, "settings of its own") {
		return strings.Join(each, ", ")
	}
	return kinds[0] + " against " + kinds[0]
}

// added are the settings that somebody gave: david's own have a reason each.
func added(a result.Arm) (list []mycnf.Setting) {
	for _, s := range a.Settings {
		if s.Reason == "" {
			list = append(list, s)
		}
	}
	return list
}

// durabilityTable has what each server was read back to keep, a row for each respect, and a column for
// each arm.
func durabilityTable(d Data) table {
	t := table{"Durability, as read back from the servers", []column{left("variable")}, nil}
	rows := map[int][]string{}
	for _, a := range d.Arms {
		if a.Effective == nil {
			continue
		}
		t.Cols = append(t.Cols, left(a.Name))
		for i, k := range mycnf.Durability(a.Effective) {
			if rows[i] == nil {
				rows[i] = []string{k.Name}
			}
			if !strings.Contains(rows[i][0], k.Name) {
				rows[i][0] += " / " + k.Name
			}
			rows[i] = append(rows[i], cmp.Or(k.Value, none))
		}
	}
	for i := range len(rows) {
		t = t.add(rows[i]...)
	}
	return t
}

// durabilitySection shows that table where servers are compared.
func durabilitySection(d Data) Section {
	if !overEngines(d) {
		return Section{}
	}
	t := durabilityTable(d)
	return Section{
		text:     func(b *terminal) { b.paragraph(t.Name); b.fit(t); b.WriteString("\n") },
		markdown: func(b *bytes.Buffer) { section(b, t.Name, t) },
		page:     func(p *page) { p.Durability = t },
	}
}
