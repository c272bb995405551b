package report

import (
	"html/template"
	"regexp"
	"strings"
)

// word is one of david's own, with what it means.
type word struct{ Name, Means string }

// words returns all that a reader has to learn; docs/glossary.md holds the same. Everything else is the field's.
func words() []word {
	return []word{
		{"arm", "One configuration of one server that takes part in a comparison."},
		{"control", "The arm that the others are compared with: the server's defaults, or your own file."},
		{"trial", "One measured run of the load on one arm: sysbench for some seconds, after a warm-up."},
		{"slice", "A short trial of some seconds on a server that stays up and warm, and is stopped while others are loaded."},
		{"round", "One slice of every arm, one after the other in random order."},
		{"block", "One trial of every arm on a freshly started server, one after the other in random order."},
		{"start", "One start of an arm's server on a fresh copy of the data. Two starts of the same configuration can differ by some percent, so there is more than one."},
		{"gate", "A check that has to hold for a trial to count: no errors, no restart, no lost connection, a client that keeps up."},
		{"durability lock", "The settings that decide what a crash can lose (flush at commit, sync of the binary log, doublewrite, checksums). david never changes them to be faster, and reads them back from every server."},
		{"no-op", "A change that leaves the running server as it was, so that there is nothing to measure."},
	}
}

// Anchor is the ID of a word's place in a page.
func (w word) Anchor() string { return "word-" + strings.ReplaceAll(w.Name, " ", "-") }

// pattern finds the word in a text. A start is counted, as servers also start.
func (w word) pattern() *regexp.Regexp {
	before := `^|[ (]`
	if w.Name == "start" {
		before = `[0-9] `
	}
	return regexp.MustCompile(`(?i)(` + before + `)(` + w.Name + `s?)($|[ ,.:;)])`)
}

// linker leads the first use of each of david's words on a page to what it means.
type linker struct {
	words    []word
	patterns []*regexp.Regexp // nil: linked
}

func newLinker() *linker {
	l := &linker{words: words()}
	for _, w := range l.words {
		l.patterns = append(l.patterns, w.pattern())
	}
	return l
}

// say escapes a text, and links the words in it that were not linked before.
func (l *linker) say(text string) template.HTML {
	for i, pattern := range l.patterns {
		if pattern == nil {
			continue
		}
		if at := pattern.FindStringSubmatchIndex(text); at != nil {
			l.patterns[i] = nil
			link := `<a class="word" href="#` + l.words[i].Anchor() + `">` + template.HTMLEscapeString(text[at[4]:at[5]]) + `</a>`
			return l.say(text[:at[4]]) + template.HTML(link) + l.say(text[at[5]:])
		}
	}
	return template.HTML(template.HTMLEscapeString(text))
}
