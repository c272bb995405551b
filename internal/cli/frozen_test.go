package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/stats"
)

// frozenDir holds what pairs of known difference came to, in slices on servers that are frozen in between,
// and in long trials on servers that never are.
const frozenDir = "../../results/frozen"

// frozenPair is two configurations whose difference is measured both ways.
type frozenPair struct {
	name, about string
	args        []string // of david compare: the load, the caps, the arms
}

// frozenPairs touch what looks at the clock: page cleaner, adaptive flushing, checkpoints, purge, read-ahead,
// the binary log.
func frozenPairs() []frozenPair {
	small := []string{"--tables", "4", "--table-size", "250000", "--threads", "4"}
	with := func(more ...string) []string { return append(append([]string{}, small...), more...) }
	const pool = "innodb_buffer_pool_size=1G"
	return []frozenPair{
		{"pool", "a pool of 1 GiB for 128 MiB, 3,000 IOPS", with("--iops", "3000", "--arm", "control", "--arm", "arm="+pool)},
		{"redo", "a redo log of 2 GiB for 100 MiB, 3,000 IOPS", with("--iops", "3000", "--control", "before", "--arm", "before="+pool, "--arm", "arm="+pool+",innodb_redo_log_capacity=2G")},
		{"io-capacity", "innodb_io_capacity 10000 for 200, 5,000 IOPS", with("--iops", "5000", "--control", "before", "--arm", "before="+pool+",innodb_io_capacity=200,innodb_io_capacity_max=400", "--arm",
			"arm="+pool+",innodb_io_capacity=10000,innodb_io_capacity_max=20000")},
		{"page-size", "pages of 4 KiB for 16, 3,000 IOPS", with("--iops", "3000", "--arm", "control", "--arm", "arm=innodb_page_size=4096")},
		{"doublewrite", "no doublewrite buffer (the lock lifted, no verdict), 3,000 IOPS", with("--iops", "3000", "--control", "before", "--arm", "before="+pool, "--arm", "arm="+pool+",innodb_doublewrite=OFF")},
		{"write-intensive", "write-intensive, a pool of 1 GiB and a redo log of 2 GiB for the defaults, 3,000 IOPS", with("--workload", "write-intensive", "--iops", "3000", "--arm", "control", "--arm",
			"arm="+pool+",innodb_redo_log_capacity=2G")},
		{"memory", "1 GiB of memory: a pool of 384 MiB for 128, 3,000 IOPS", with("--memory", "1G", "--iops", "3000", "--arm", "control", "--arm", "arm=innodb_buffer_pool_size=384M,max_connections=100")},
		{"mariadb", "MariaDB, a pool of 1 GiB for 128 MiB, 3,000 IOPS", with("--server", "mariadb", "--iops", "3000", "--arm", "control", "--arm", "arm="+pool)},
		{"cpu", "without the performance schema, no cap", with("--control", "before", "--arm", "before="+pool, "--arm", "arm="+pool+",performance_schema=OFF")},
	}
}

// frozenWays lists how each pair is measured: trials, and slices of so many seconds. The last is the usual
// length.
func frozenWays() []string { return []string{"trials", "2", "10", "20", "5"} }

// frozenFigure holds what a pair came to, one way.
type frozenFigure struct {
	Ratio    float64        `json:"ratio"`
	Interval stats.Interval `json:"interval"`
	Pairs    int            `json:"pairs"`
	Command  string         `json:"command"`
	Date     string         `json:"date"`
	David    string         `json:"david"`
}

func (p frozenPair) file(dir, way string) string { return filepath.Join(dir, p.name+"-"+way+".json") }

// figure is one that was measured; nil where it was not.
func (p frozenPair) figure(dir, way string) (*frozenFigure, error) {
	text, err := os.ReadFile(p.file(dir, way))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f frozenFigure
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", p.file(dir, way), err)
	}
	return &f, nil
}

func (f *frozenFigure) text() string {
	if f == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f], %d", f.Ratio, f.Interval[0], f.Interval[1], f.Pairs)
}

// apart is a ratio over another with its 95 % interval, as if the logarithms of both were normal and
// independent, and whether the 90 % interval lies within 5 %.
func (f *frozenFigure) apart(other *frozenFigure) string {
	if f == nil || other == nil {
		return "–"
	}
	middle, wide := f.over(other)
	return judgedApart(middle, wide)
}

// over is the logarithm of a ratio over another and the half-width of its 95 % interval.
func (f *frozenFigure) over(other *frozenFigure) (middle, wide float64) {
	half := func(x *frozenFigure) float64 { return math.Log(x.Interval[1]/x.Interval[0]) / 2 }
	return math.Log(f.Ratio / other.Ratio), math.Hypot(half(f), half(other))
}

func judgedApart(middle, wide float64) string {
	verdict := "open"
	const within, of90 = 0.05, 1.645 / 1.96
	switch limit := -math.Log1p(-within); {
	case math.Abs(middle)+of90*wide < limit:
		verdict = "equivalent"
	case math.Abs(middle) > wide:
		verdict = "different"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f], %s", math.Exp(middle), math.Exp(middle-wide), math.Exp(middle+wide), verdict)
}

// frozenTable is the table of what dir holds.
func frozenTable(dir string) (string, error) {
	var b strings.Builder
	b.WriteString("| pair | slices of 2 s | 5 s | 10 s | 20 s | trials | slices of 5 s / trials |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	weights, sum, pairs := 0.0, 0.0, 0
	for _, p := range frozenPairs() {
		got := map[string]*frozenFigure{}
		for _, way := range frozenWays() {
			f, err := p.figure(dir, way)
			if err != nil {
				return "", err
			}
			got[way] = f
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", p.about, got["2"].text(), got["5"].text(), got["10"].text(), got["20"].text(), got["trials"].text(), got["5"].apart(got["trials"]))
		if a, b := got["5"], got["trials"]; a != nil && b != nil {
			middle, wide := a.over(b)
			weights, sum, pairs = weights+1/(wide*wide), sum+middle/(wide*wide), pairs+1
		}
	}
	if pairs > 1 {
		fmt.Fprintf(&b, "| %d pairs together, each by how sure it is | | | | | | %s |\n", pairs, judgedApart(sum/weights, 1/math.Sqrt(weights)))
	}
	return b.String(), nil
}

// TestFrozenTable holds the table of docs/method.md against results/frozen. DAVID_UPDATE=1 writes it again.
func TestFrozenTable(t *testing.T) {
	table, err := frozenTable(frozenDir)
	if err != nil {
		t.Fatal(err)
	}
	holdTable(t, "../../docs/method.md", "<!-- frozen: made from results/frozen -->\n", table)
}

// TestFrozenApart tells what is the same within 5 % from what is not, and from what nobody knows.
func TestFrozenApart(t *testing.T) {
	one := &frozenFigure{Ratio: 2, Interval: stats.Interval{1.96, 2.04}}
	for want, other := range map[string]*frozenFigure{
		"equivalent": {Ratio: 2.02, Interval: stats.Interval{1.98, 2.06}},
		"different":  {Ratio: 2.5, Interval: stats.Interval{2.4, 2.6}},
		"open":       {Ratio: 2.1, Interval: stats.Interval{1.7, 2.6}},
	} {
		if got := one.apart(other); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := one.apart(nil); got != "–" {
		t.Error(got)
	}
}
