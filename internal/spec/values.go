package spec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"david/internal/mycnf"
)

// Duration is a time in whole seconds, written "60s" or "30m".
type Duration time.Duration

// UnmarshalText reads a duration as time.ParseDuration does; parts of a second and negative ones are refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 || v%time.Second != 0 {
		return fmt.Errorf("cannot read time %q: give whole seconds, as in 60s or 30m, not negative", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d Duration) seconds() int { return int(time.Duration(d) / time.Second) }

// Size is a number of bytes, written "4G" or "125M".
type Size int64

// UnmarshalText reads a size as mycnf.ParseSize does.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := mycnf.ParseSize(string(text))
	*s = Size(n)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(mycnf.FormatSize(int64(s))), nil }

// Share is a part of one, written as a percentage: "2%" is 0.02.
type Share float64

// UnmarshalText reads a percentage.
func (s *Share) UnmarshalText(text []byte) error {
	p, err := percentage(string(text))
	*s = Share(p)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Share) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(s)*100, 'g', 15, 64) + "%"), nil
}

// percentage reads "2%" as 0.02.
func percentage(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("cannot read percentage %q: write it as in 2%%", text)
	}
	return v / 100, nil
}

// Threads are numbers of threads: one number, or a list of them.
type Threads []int

// UnmarshalYAML reads 4 as [4].
func (t *Threads) UnmarshalYAML(n *yaml.Node) error {
	var one int
	if n.Kind == yaml.ScalarNode && n.Decode(&one) == nil {
		*t = Threads{one}
		return nil
	}
	var list []int
	if err := n.Decode(&list); err != nil {
		return errors.New("cannot read numbers of threads: give one, or a list as in [4, 16]")
	}
	*t = list
	return nil
}

// UnmarshalYAML fills what is not said with DefaultLoad.
func (l *Load) UnmarshalYAML(n *yaml.Node) error {
	type plain Load // without this method
	p := plain(DefaultLoad())
	if err := n.Decode(&p); err != nil {
		return err
	}
	*l = Load(p)
	return nil
}

// Sets are settings, each NAME=VALUE: in the file a list of them, or a mapping of names to values.
//
// The value may be a relative size: "75%" of the memory the server may use, "50% of data" of the tables'
// estimated size, and "min(12G, 75%)" the smallest of several. They are rounded down to 1 MiB, and are never
// below 8 MiB, the least that both a redo log and a buffer pool take.
type Sets []string

// UnmarshalYAML reads the list or the mapping, in the order of the file.
func (s *Sets) UnmarshalYAML(n *yaml.Node) error {
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return fmt.Errorf("cannot read the settings (line %d): want NAME=VALUE", item.Line)
			}
			*s = append(*s, item.Value)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
				return fmt.Errorf("cannot read the settings (line %d): %s needs one value", value.Line, name.Value)
			}
			*s = append(*s, name.Value+"="+value.Value)
		}
	default:
		return errors.New("cannot read the settings: want a list of NAME=VALUE, or a mapping of names to values")
	}
	return nil
}

// measures holds what relative sizes are relative to, in bytes; 0 where it is not known.
type measures struct{ memory, data int64 }

// leastSize is the smallest value a relative size is rounded to.
const leastSize = 8 << 20

// resolve works out the relative size of a setting; one without is returned as it is.
func (m measures) resolve(setting string) (string, error) {
	name, value, _ := strings.Cut(setting, "=")
	if !regexp.MustCompile(`^\s*(min\(|[0-9.]+%)`).MatchString(value) {
		return setting, nil
	}
	inner, isMin := strings.CutPrefix(strings.TrimSpace(value), "min(")
	inner, closed := strings.CutSuffix(strings.TrimSpace(inner), ")")
	if isMin != closed {
		return "", fmt.Errorf("cannot read %s: want min(SIZE, SIZE)", setting)
	}
	least := int64(math.MaxInt64)
	for _, part := range strings.Split(inner, ",") {
		n, err := m.size(strings.TrimSpace(part))
		if err != nil {
			return "", fmt.Errorf("cannot work out %s: %w", setting, err)
		}
		least = min(least, n)
	}
	const mib = 1 << 20
	return name + "=" + mycnf.FormatSize(max(leastSize, least/mib*mib)), nil
}

// size is one relative or absolute size, in bytes.
func (m measures) size(text string) (int64, error) {
	if !strings.Contains(text, "%") {
		return mycnf.ParseSize(text)
	}
	digits, of, _ := strings.Cut(text, "%")
	share, err := percentage(digits + "%")
	if err != nil {
		return 0, err
	}
	var whole int64
	switch strings.TrimSpace(of) {
	case "", "of memory":
		whole = m.memory
	case "of data":
		whole = m.data
	default:
		return 0, fmt.Errorf("cannot take %s: want %s%% of memory or %s%% of data", text, digits, digits)
	}
	if whole <= 0 {
		return 0, fmt.Errorf("cannot take %s: that size is not known, or not the same for all workloads; give it in bytes", text)
	}
	v := share * float64(whole)
	if v >= math.MaxInt64 {
		return 0, fmt.Errorf("cannot take %s: it is too large", text)
	}
	return int64(v), nil
}
