package apt

import (
	"bufio"
	"path"
	"slices"
	"strings"
)

// source is one entry of apt's configuration: binary packages of some suites of an archive, below some URIs.
type source struct {
	URIs       []string
	Suites     []string
	Components []string
	SignedBy   string // file of the keyring; "" where the system's trusted keys count, or where the key stands in the entry
}

// parseOneLine reads the older format: `deb [option=value ...] uri suite component ...`, an entry a line.
func parseOneLine(text string) []source {
	var all []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !ok || rest == "" || !strings.ContainsAny(rest[:1], " \t[") {
			continue
		}
		var s source
		if options, after, ok := cutOptions(rest); ok {
			s.SignedBy, rest = signedBy(options), after
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		s.URIs, s.Suites, s.Components = fields[:1], fields[1:2], fields[2:]
		all = append(all, s)
	}
	return all
}

// cutOptions splits `[options] rest`.
func cutOptions(s string) (options, rest string, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimSpace(s), "[")
	if !ok {
		return "", "", false
	}
	return strings.Cut(s, "]")
}

func signedBy(options string) string {
	for _, option := range strings.Fields(options) {
		if name, value, _ := strings.Cut(option, "="); strings.EqualFold(name, "signed-by") {
			return value
		}
	}
	return ""
}

// parseDeb822 reads the newer format: stanzas of `Field: value`, continued on lines that begin with a blank.
func parseDeb822(text string) []source {
	var all []source
	for _, fields := range stanzas(text) {
		if strings.EqualFold(fields["enabled"], "no") || !slices.Contains(strings.Fields(fields["types"]), "deb") {
			continue
		}
		s := source{
			URIs:       strings.Fields(fields["uris"]),
			Suites:     strings.Fields(fields["suites"]),
			Components: strings.Fields(fields["components"]),
		}
		if key := fields["signed-by"]; strings.HasPrefix(key, "/") {
			s.SignedBy = key
		}
		if len(s.URIs) > 0 && len(s.Suites) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// stanzas splits a deb822 file into its stanzas' fields, their names in lower case.
func stanzas(text string) []map[string]string {
	var all []map[string]string
	fields, last := map[string]string{}, ""
	flush := func() {
		if len(fields) > 0 {
			all = append(all, fields)
		}
		fields, last = map[string]string{}, ""
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				fields[last] = strings.TrimSpace(fields[last] + "\n" + strings.TrimSpace(line))
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return all
}

// Archive says where apt gets packages from, and whose signature their lists must bear.
type Archive struct {
	Suites  []string
	URIs    []string
	Keyring string
	Contrib bool // also the part of what needs something that is not free beside it
}

// archiveOf finds the distribution's own mirrors among the system's sources. Entries of others that happen to
// use the distribution's suite names cannot do harm: what david fetches must be signed with the
// distribution's own key.
func archiveOf(d distribution, sources []source) Archive {
	a := Archive{Suites: d.Suites, Keyring: d.Keyring}
	for _, s := range sources {
		if !slices.Contains(s.Components, "main") || !d.hasSuite(s.Suites) || !d.trusts(s.SignedBy) {
			continue
		}
		for _, uri := range s.URIs {
			if !strings.HasPrefix(uri, "cdrom:") && !slices.Contains(a.URIs, uri) {
				a.URIs = append(a.URIs, uri)
			}
		}
	}
	return a
}

// securityOf finds the mirrors of a Debian release's security updates among the system's sources; they may be
// none.
func securityOf(d distribution, release string, sources []source) Archive {
	a := Archive{Suites: []string{release + "-security"}, Keyring: d.Keyring}
	for _, s := range sources {
		security := slices.ContainsFunc(s.Suites, func(suite string) bool { return strings.HasSuffix(suite, "-security") })
		if !slices.Contains(s.Components, "main") || !security || !d.trusts(s.SignedBy) {
			continue
		}
		for _, uri := range s.URIs {
			if !slices.Contains(a.URIs, uri) {
				a.URIs = append(a.URIs, uri)
			}
		}
	}
	return a
}

// deb822 renders the archive as apt's configuration. The signature is always checked.
func (a Archive) deb822() string {
	components := "main"
	if a.Contrib {
		components += " contrib"
	}
	return "Types: deb\nURIs: " + strings.Join(a.URIs, " ") + "\nSuites: " + strings.Join(a.Suites, " ") +
		"\nComponents: " + components + "\nSigned-By: " + a.Keyring + "\n"
}

// distribution tells where a system's packages come from.
type distribution struct {
	Name    string
	Mirrors []string // suites of the system's sources that lie on the distribution's mirrors
	Suites  []string // suites to take the server from
	Keyring string
}

// distributionOf reads /etc/os-release; ok is false for a system that is neither Debian nor Ubuntu.
func distributionOf(osRelease string) (d distribution, ok bool) {
	fields := map[string]string{}
	for line := range strings.Lines(osRelease) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[name] = strings.Trim(value, `"'`)
	}
	codename := fields["VERSION_CODENAME"]
	if ubuntu := fields["UBUNTU_CODENAME"]; ubuntu != "" { // set by Ubuntu's derivatives too
		suites := []string{ubuntu, ubuntu + "-updates", ubuntu + "-security"}
		return distribution{"Ubuntu", suites, suites, "/usr/share/keyrings/ubuntu-archive-keyring.gpg"}, true
	}
	if fields["ID"] != "debian" {
		return distribution{}, false
	}
	// No stable Debian carries Oracle's MySQL; the unstable suite, sid, does.
	mirrors := []string{codename, "oldstable", "stable", "testing", "unstable", "sid"}
	return distribution{"Debian", mirrors, []string{"sid"}, "/usr/share/keyrings/debian-archive-keyring.gpg"}, true
}

func (d distribution) hasSuite(suites []string) bool {
	return slices.ContainsFunc(suites, func(s string) bool { return s != "" && slices.Contains(d.Mirrors, s) })
}

// trusts tells whether an entry with this Signed-By may be one of the distribution's own.
func (d distribution) trusts(signedBy string) bool {
	return signedBy == "" || strings.HasPrefix(path.Base(signedBy), strings.ToLower(d.Name)+"-archive-")
}
