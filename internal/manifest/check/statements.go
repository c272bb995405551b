package check

import (
	"fmt"
	"regexp"
	"strings"

	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// initFile reports a file of statements that the server runs at each start.
func (c *checker) initFile(s server) {
	if file := s.asked()["init_file"]; file != "" {
		c.reportSetting(SeverityWarning, "durability", s.setter("init_file"), "init_file",
			fmt.Sprintf("init_file=%s: what it runs is not seen: it can switch durability off after the start", file), "see that no statement in it sets a variable of the durability lock, or take the line out")
	}
}

// texts looks at what stands in a ConfigMap or a Secret, which somebody may run: as a script, or as SQL when a database is made.
func (c *checker) texts(d stream.Document) {
	for _, e := range entries(d) {
		if call, why := switchedOff(e.text); why != "" {
			if d.Kind() != "Secret" { // whose text is not shown: a password may stand beside
				why = fmt.Sprintf("%.80q: %s", call, why)
			}
			c.report(SeverityWarning, "flushes-left-out", d, e.path, why, "take the command out")
		}
		c.statements(d, e.path, e.text)
	}
}

// statements reports SQL by which a running server gives up what the durability lock holds.
func (c *checker) statements(d stream.Document, at, text string) {
	if why := unlocking(text); why != "" {
		c.report(SeverityWarning, "durability", d, at, why, "take the statement out")
	}
}

// unlocking names the first statement in a text that gives up what the durability lock holds; "" where there is none.
func unlocking(text string) string {
	text = sqlComment.ReplaceAllString(text, " ")
	if found := redoOff.FindString(text); found != "" {
		return fmt.Sprintf("%.80q: the server runs without its redo log, so that none of its data outlives a crash", found)
	}
	for _, statement := range setStatement.FindAllString(text, -1) {
		if !globally.MatchString(statement) {
			continue
		}
		for _, m := range assignment.FindAllStringSubmatch(statement, -1) {
			name, value := mycnf.Normalise(m[1]), strings.Trim(m[2], `'"`)
			if lost := unsafeEverywhere(name, value); lost != "" {
				return fmt.Sprintf("it sets %s to %.40s on a running server: lost is %s", name, value, lost)
			}
		}
	}
	return ""
}

// unsafeEverywhere tells what is lost where a variable has a value that no flavour calls safe that has it in its lock; "" else.
func unsafeEverywhere(name, value string) (lost string) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		unsafe := false
		for _, v := range mycnf.CheckLock(f, map[string]string{name: value}) {
			if v.Name == name {
				lost, unsafe = v.Lost, true
			}
		}
		if !unsafe && mycnf.Locked(f, name) {
			return ""
		}
	}
	return lost
}

var (
	// Comments, whole lines of them included; not those whose text a server runs: /*!80000 SET ... */.
	sqlComment   = regexp.MustCompile(`(?s)/\*(?:[^!M].*?)??\*/|/\*M?!\d*|\*/|(?m:^\s*(?:--\s|#)[^\n]*$)`)
	redoOff      = regexp.MustCompile(`(?i)\bDISABLE\s+INNODB\s+REDO_LOG\b`)
	setStatement = regexp.MustCompile(`(?i)\bSET\s[^;]*`)
	globally     = regexp.MustCompile(`(?i)\b(?:GLOBAL|PERSIST|PERSIST_ONLY)\b`)
	assignment   = regexp.MustCompile("([A-Za-z_]{4,64})`?\\s*:?=\\s*('[^']*'|\"[^\"]*\"|[^\\s,;'\"`)\\\\]+)")
)
