package rules

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"david/internal/mycnf"
)

// MySQLTuner returns the baseline that mysqltuner advised after it had looked at the control under its load:
// output was printed by the program. What it says and gives no value for is among Translated, word for word.
func MySQLTuner(output string, p Problem) (Baseline, error) {
	advised, rest, err := Advice(output)
	if err != nil {
		return Baseline{}, err
	}
	b := Baseline{Name: "mysqltuner", Title: "what MySQLTuner advises after the control's load", Source: "MySQLTuner, \"Variables to adjust\""}
	var wanted []mycnf.Setting
	for _, s := range advised {
		if n, err := mycnf.ParseSize(s.Value); s.Name == "innodb_buffer_pool_size" && err == nil && n > p.Memory {
			rest = append(rest, fmt.Sprintf("%s=%s, \"if possible\": it is not, with %s of memory", s.Name, s.Value, mycnf.FormatSize(p.Memory)))
			continue
		}
		s.Reason, s.Source = "what MySQLTuner advises", b.Source
		wanted = append(wanted, s)
	}
	b.Shipped, b.Translated = p.translate(wanted)
	for _, line := range rest {
		b.Translated = append(b.Translated, "no setting follows from: "+line)
	}
	b.Settings, b.Locked = p.normalised(b.Shipped)
	return b, nil
}

// adviceHead comes before the advice, and adviceNone stands where there is none.
const (
	adviceHead = "Variables to adjust:"
	adviceNone = "No additional performance recommendations are available."
	adviceTail = "General recommendations:"
)

// The shapes of a line: a value or the first of two, a bound in parentheses, a bound after the present value,
// a bound in words.
var (
	adviceValue = regexp.MustCompile(`^([A-Za-z][\w-]*) ?= ?([\w.-]+)(?: or [\w.-]+)?(?: \(.*)?$`)
	adviceBound = regexp.MustCompile(`^([A-Za-z][\w-]*?) ?(?:should be )?\((=|>=|<=|>|~|start at|) ?([0-9][0-9.]*[KMGTB]?)(?:[,)].*)$`)
	adviceAfter = regexp.MustCompile(`^([A-Za-z][\w-]*) \([0-9]+\) > ([0-9]+)\b`)
)

// Advice reads what MySQLTuner lists as variables to adjust. A bound becomes the value nearest to it, but ">
// N", which only says that the present N is too little, becomes twice N. rest are the lines that name no
// value. That the output has no advice at all, not even that there is none, is an error.
func Advice(output string) (settings []mycnf.Setting, rest []string, err error) {
	lines, found := adviceLines(output)
	if !found && !strings.Contains(output, adviceNone) && !strings.Contains(output, adviceTail) {
		return nil, nil, fmt.Errorf("cannot find advice in the output of mysqltuner: it has no line %q", adviceHead)
	}
	for _, line := range lines {
		s, ok := advised(line)
		if !ok {
			rest = append(rest, line)
			continue
		}
		settings = Merge(settings, []mycnf.Setting{s})
	}
	return settings, rest, nil
}

// adviceLines returns the indented lines below the heading; those with asterisks are warnings.
func adviceLines(output string) (lines []string, found bool) {
	for line := range strings.Lines(output) {
		text := strings.TrimSpace(line)
		switch {
		case text == adviceHead:
			lines, found = nil, true
		case found && !strings.HasPrefix(line, "  "):
			return lines, true
		case found && text != "" && !strings.HasPrefix(text, "*"):
			lines = append(lines, text)
		}
	}
	return lines, found
}

func advised(line string) (mycnf.Setting, bool) {
	name, relation, value := "", "=", ""
	if m := adviceAfter.FindStringSubmatch(line); m != nil {
		name, relation, value = m[1], ">", m[2]
	} else if m := adviceBound.FindStringSubmatch(line); m != nil {
		name, relation, value = m[1], m[2], m[3]
	} else if m := adviceValue.FindStringSubmatch(line); m != nil {
		name, value = m[1], m[2]
	} else {
		return mycnf.Setting{}, false
	}
	if n, ok := adviceSize(value); ok {
		if relation == ">" {
			n *= 2
		}
		value = mycnf.FormatSize(n)
	}
	s, err := mycnf.ParseSetting(name + "=" + value)
	if err == nil { // no server reads some values back from a file: too long ones
		err = mycnf.Render(io.Discard, nil, []mycnf.Setting{s})
	}
	return s, err == nil && value != ""
}

// adviceSize reads a size as MySQLTuner writes it, "2.3G" or "16.0M", and rounds it up to a whole MiB where
// it has a fraction. Sizes no server has are none.
func adviceSize(text string) (int64, bool) {
	if n, err := mycnf.ParseSize(text); err == nil && n <= math.MaxInt64/2 {
		return n, true
	}
	unit, known := map[byte]int64{'K': 1 << 10, 'M': mib, 'G': gib, 'T': 1 << 40}[text[len(text)-1]]
	x, err := strconv.ParseFloat(text[:len(text)-1], 64)
	if !known || err != nil || !(x >= 0 && x < 1<<20) {
		return 0, false
	}
	n := int64(math.Ceil(x * float64(unit)))
	if n%unit != 0 && unit >= mib {
		n = (n + mib - 1) / mib * mib
	}
	return n, true
}
