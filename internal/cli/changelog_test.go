package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestChangelog holds CHANGELOG.md to the form of keepachangelog.com: unreleased changes first, then versions with
// their dates, the newest first and this one among them; kinds of changes in their order; one line a change.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range changelogFaults(string(text)) {
		t.Errorf("CHANGELOG.md: %s", fault)
	}
}

// TestChangelogForm: what TestChangelog has to notice.
func TestChangelogForm(t *testing.T) {
	t.Parallel()
	const head = "# Changelog\n\nWhat.\n\n## [Unreleased]\n\n"
	released := "## [" + version + "] - 2026-11-24\n\n### Added\n\n- A.\n"
	if faults := changelogFaults(head + released); len(faults) > 0 {
		t.Errorf("a right one: %v", faults)
	}
	for _, wrong := range []string{"# Changelog\n\n" + released, head, head + "## 0.1.0\n", head + released + "\n### Added\n\n- B.\n", head + released + "- no end\n",
		head + released + "  goes on.\n", head + released + "\n### Improved\n\n- B.\n", head + released + "\n## [99.0.0] - 2026-11-25\n\n### Added\n\n- C.\n",
		head + released + "- " + strings.Repeat("long ", 50) + "\n", head + "- of no kind.\n\n" + released} {
		if len(changelogFaults(wrong)) == 0 {
			t.Errorf("taken as right:\n%s", wrong)
		}
	}
}

var changelogVersion = regexp.MustCompile(`^## \[(\d+\.\d+\.\d+)\] - (20\d\d-\d\d-\d\d)$`)

func changelogFaults(text string) (faults []string) {
	kinds := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	if !strings.HasPrefix(text, "# Changelog\n") || strings.Index(text, "\n## ") != strings.Index(text, "\n## [Unreleased]\n") {
		faults = append(faults, "it begins with # Changelog, a word on its form, and ## [Unreleased]")
	}
	if !strings.Contains(text, "\n## ["+version+"] - ") {
		faults = append(faults, "this version, "+version+", is missing")
	}
	_, body, _ := strings.Cut(text, "\n## [Unreleased]\n")
	kind, newer := -1, ""
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		at := changelogVersion.FindStringSubmatch(line)
		title, isKind := strings.CutPrefix(line, "### ")
		switch {
		case line == "":
		case at != nil:
			if newer != "" && at[2] > newer {
				faults = append(faults, line+": versions stand with the newest first")
			}
			kind, newer = -1, at[2]
		case isKind:
			next := slices.Index(kinds, title)
			if next <= kind {
				faults = append(faults, line+": one of "+strings.Join(kinds, ", ")+", once, in that order")
			}
			kind = next
		case !strings.HasPrefix(line, "- ") || !strings.HasSuffix(line, ".") || kind < 0 || utf8.RuneCountInString(line) > 200:
			faults = append(faults, "a change is one line of at most 200 characters with a full stop, under its kind: "+line)
		}
	}
	return faults
}
