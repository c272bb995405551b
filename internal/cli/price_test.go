package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"david/internal/price"
)

// TestPriceExamples runs the examples of docs/price.md.
func TestPriceExamples(t *testing.T) { runShown(t, "../../docs/price.md", 5) }

// runShown runs the examples of a page, of which it has so many at least: what stands under a command must be in what it
// prints, but for blanks.
func runShown(t *testing.T, page string, least int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blanks := regexp.MustCompile(`\s+`) // a terminal's line ends are none of the text's
	out, ran := "", 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			command, ok := strings.CutPrefix(line, "$ david ")
			if !ok {
				if !strings.Contains(out, blanks.ReplaceAllString(line, " ")) {
					t.Errorf("no line %q in\n%s", line, out)
				}
				continue
			}
			ran++
			printed, errOut, code := david(t, t.TempDir(), strings.Fields(command)...)
			if out = blanks.ReplaceAllString(printed, " "); code != exitDone {
				t.Errorf("david %s: exit code %d\n%s", command, code, errOut)
			}
		}
	}
	if ran < least {
		t.Errorf("%d examples were run", ran)
	}
}

// TestCatalogueInDocs reads the sample catalogue of docs/price.md.
func TestCatalogueInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/price.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	sample, _, _ := strings.Cut(after, "```")
	c, err := price.Parse(strings.NewReader(sample), "docs/price.md")
	if err != nil || len(c.Machines) != 1 || len(c.Volumes) != 1 || len(c.Rates) != 1 {
		t.Errorf("%v: %+v", err, c)
	}
}

func TestStandIn(t *testing.T) {
	m := price.Machine{Name: "m", CPUs: 4, Memory: 16 << 30, IOPS: 6000, Volume: 150e6, Price: price.Price{Amount: 66, Currency: "US$"}}
	all := ability{cpus: 8, memory: 64 << 30, io: true}
	for _, x := range []struct {
		name  string
		here  ability
		given capFlags
		want  capFlags
		notes []string
	}{
		{"larger here", all, capFlags{}, capFlags{"4", "16G", "6000", "150000000"}, []string{"commit latency", "network"}},
		{"smaller here", ability{2, 8 << 30, true}, capFlags{}, capFlags{"", "", "6000", "150000000"}, []string{"its 4 CPUs, as david may use 2 here", "its 16 GiB of memory"}},
		{"given caps win", all, capFlags{cpus: "1", iops: "500"}, capFlags{"1", "16G", "500", ""}, nil},
		{"no I/O caps", ability{8, 64 << 30, false}, capFlags{}, capFlags{"4", "16G", "", ""}, []string{"by root only"}},
	} {
		got, notes := x.here.standFor(m, x.given)
		if got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
		for _, want := range x.notes {
			if !strings.Contains(strings.Join(notes, "\n"), want) {
				t.Errorf("%s: no %q in %q", x.name, want, notes)
			}
		}
	}
}
