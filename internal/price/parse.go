package price

import (
	"bytes"
	_ "embed" // for the catalogue
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed catalogue.yaml
var catalogue []byte

// Default returns the catalogue david brings along.
func Default() (Catalogue, error) { return Parse(bytes.NewReader(catalogue), "catalogue.yaml") }

// Parse reads a catalogue strictly: a key or unit it does not know, a price that is negative or missing, a
// name that stands twice, an entry without source or date are errors that name the file and the line.
func Parse(r io.Reader, name string) (Catalogue, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Catalogue{}, fmt.Errorf("cannot read the catalogue %s: %w", name, err)
	}
	c, err := parse(text)
	if err == nil {
		return c, nil
	}
	var at lineError
	if errors.As(err, &at) {
		return Catalogue{}, fmt.Errorf("cannot use the catalogue %s:%d: %w", name, at.line, at.err)
	}
	return Catalogue{}, fmt.Errorf("cannot use the catalogue %s: %w", name, err)
}

func parse(text []byte) (c Catalogue, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		if strings.Contains(err.Error(), "unknown anchor") { // which the library quotes
			return c, errors.New("it refers to an anchor that is not there")
		}
		return c, plain(err)
	}
	if !meant(doc) {
		return c, lineError{1, errors.New("it is no catalogue: want a mapping with machines, volumes or rates; see: david price catalogue")}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); errors.Is(err, io.EOF) {
		return c, errors.New("it is empty")
	} else if err != nil {
		return c, plain(err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return c, errors.New("it holds more than one document")
	}
	return c, c.check(linesOf(doc))
}

// meant tells a document that was meant to be a catalogue from any other, of which nothing may stand in an error.
func meant(doc yaml.Node) bool {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return len(doc.Content) == 0 || doc.Content[0].Tag == "!!null"
	}
	for i, key := range doc.Content[0].Content {
		if i%2 == 0 && slices.Contains([]string{"machines", "volumes", "rates"}, key.Value) {
			return true
		}
	}
	return len(doc.Content[0].Content) == 0
}

// plain returns an error of the YAML library with its line, without the names of Go's types.
func plain(err error) error {
	var at lineError
	var types *yaml.TypeError
	if errors.As(err, &at) {
		return at
	}
	text := err.Error()
	if errors.As(err, &types) {
		text = types.Errors[0]
	}
	text = strings.Join(strings.Fields(strings.TrimPrefix(text, "yaml: ")), " ")
	if m := regexp.MustCompile(`^field (\S+) not found in type .*`).FindStringSubmatch(after(text)); m != nil {
		return lineError{lineOf(text), fmt.Errorf("unknown key %s", m[1])}
	}
	if line := lineOf(text); line > 0 {
		return lineError{line, errors.New(strings.ReplaceAll(after(text), "into price.", "into a "))}
	}
	return errors.New(text)
}

// lineOf returns the number in "line 7: ..."; 0 without one.
func lineOf(text string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "line "), ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

func after(text string) string {
	if lineOf(text) == 0 {
		return text
	}
	_, rest, _ := strings.Cut(text, ": ")
	return rest
}

// linesOf returns the line of each entry, by its list's key.
func linesOf(doc yaml.Node) map[string][]int {
	lines := map[string][]int{}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return lines
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		list := top[i+1]
		if list.Kind == yaml.AliasNode {
			list = list.Alias
		}
		for _, item := range list.Content {
			lines[top[i].Value] = append(lines[top[i].Value], item.Line)
		}
	}
	return lines
}

// check holds every entry against what an entry must be.
func (c Catalogue) check(lines map[string][]int) error {
	if len(lines["machines"]) > len(c.Machines) || len(lines["volumes"]) > len(c.Volumes) || len(lines["rates"]) > len(c.Rates) {
		return errors.New("a list has an entry with nothing in it") // the library leaves those out
	}
	seen := map[string]bool{}
	for i, m := range c.Machines {
		if err := firstError(once(seen, "machine "+m.Name), m.check()); err != nil {
			return lineError{lineAt(lines["machines"], i), err}
		}
	}
	for i, v := range c.Volumes {
		if err := firstError(once(seen, "volume "+v.Name), v.check()); err != nil {
			return lineError{lineAt(lines["volumes"], i), err}
		}
	}
	for i, r := range c.Rates {
		if err := firstError(once(seen, "rate of "+r.Currency), r.check()); err != nil {
			return lineError{lineAt(lines["rates"], i), err}
		}
	}
	return nil
}

// lineAt returns that of an entry; the first where it cannot be told, as entries may be merged in by YAML's
// own means.
func lineAt(lines []int, i int) int {
	if i >= len(lines) {
		return 1
	}
	return lines[i]
}

// firstError returns the first there is.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func once(seen map[string]bool, name string) error {
	if seen[name] {
		return fmt.Errorf("%s: the name stands twice in this file", name)
	}
	seen[name] = true
	return nil
}

func (m Machine) check() error {
	err := firstError(named(m.Name, m.Provider), known(m.Uncertain, reflect.TypeOf(m)), priced(m.Price, ""), positive("cpus", m.CPUs),
		positive("memory", float64(m.Memory)), notNegative("volume_iops", m.IOPS), notNegative("included_iops", m.IncludedIOPS), notNegative("zones", float64(m.Zones)), dated(m.Source, m.Date))
	return errorOf(err, "machine", m.Name)
}

func (r Rate) check() error {
	if r.Currency != "EUR" {
		return fmt.Errorf("rate of %q: want EUR, the one currency besides US$", r.Currency)
	}
	return errorOf(firstError(positive("usd", r.USD), dated(r.Source, r.Date)), "rate of", r.Currency)
}

func errorOf(err error, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", kind, name, err)
}

func named(name, provider string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd }):
		return errors.New("a name has no blanks and no control characters")
	case provider == "":
		return errors.New("it has no provider")
	}
	return nil
}

// known refuses a doubt about a key that is none.
func known(keys []string, t reflect.Type) error {
	for _, key := range keys {
		if !slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("yaml") == key }) {
			return fmt.Errorf("uncertain names %q, which is no key of it", key)
		}
	}
	return nil
}

// priced refuses a price that is missing, or for another unit than these.
func priced(p Price, units ...string) error {
	switch {
	case p.Currency == "":
		return errors.New("it has no price")
	case !slices.Contains(units, p.Per):
		return fmt.Errorf("a price per %s: want one per %s", orThing(p.Per), orThing(strings.Join(units, " or ")))
	}
	return nil
}

func orThing(unit string) string {
	if unit == "" {
		return "month or hour"
	}
	return unit + "-month"
}

func positive(key string, x float64) error {
	if !(x > 0) || math.IsInf(x, 0) {
		return fmt.Errorf("%s %v: want more than 0", key, x)
	}
	return nil
}

func notNegative(key string, x float64) error {
	if !(x >= 0) || math.IsInf(x, 0) {
		return fmt.Errorf("%s %v: want 0 or more", key, x)
	}
	return nil
}

func dated(source, date string) error {
	if strings.TrimSpace(source) == "" {
		return errors.New("it has no source")
	}
	for _, layout := range []string{time.DateOnly, "2006-01", "2006"} {
		if _, err := time.Parse(layout, date); err == nil {
			return nil
		}
	}
	return fmt.Errorf("date %q: want the date of the source, as in 2026-11-21, 2026-11 or 2026", date)
}
