package price

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const dollar = "US$"

// HoursPerMonth turns prices an hour into prices a month, as the providers do.
const HoursPerMonth = 730

// Price states an amount of money for a month of what Per names: "" for the thing itself, else a unit such as
// "GiB" or "IOPS".
type Price struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // "US$" or "EUR"; "" where there is no price
	Per      string  `json:"per,omitempty"`
}

// The units of quantities, in bytes, bytes/s and bits/s.
func sizeUnits() map[string]float64 {
	return map[string]float64{"MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30, "TB": 1e12, "TiB": 1 << 40, "PB": 1e15, "PiB": 1 << 50}
}

func bandwidthUnits() map[string]float64 {
	return map[string]float64{"MB/s": 1e6, "MiB/s": 1 << 20, "GB/s": 1e9, "GiB/s": 1 << 30}
}

func bitUnits() map[string]float64 { return map[string]float64{"Mbit/s": 1e6, "Gbit/s": 1e9} }

// priceUnits returns what a price may be for.
func priceUnits() []string { return []string{"GB", "GiB", "IOPS", "MB/s", "MiB/s"} }

// ParsePrice reads "66 US$/month", "0.096 US$/h", "0.08 US$/GiB-month", "15.99 EUR/month".
func ParsePrice(text string) (Price, error) {
	amount, unit, err := quantity(text)
	if err != nil {
		return Price{}, err
	}
	currency, per, _ := strings.Cut(unit, "/")
	if currency != dollar && currency != "EUR" {
		return Price{}, fmt.Errorf("unknown currency in %q: want US$ or EUR, as in \"66 US$/month\"", text)
	}
	p := Price{Amount: amount, Currency: currency}
	of, monthly := strings.CutSuffix(per, "-month")
	switch {
	case per == "month":
	case per == "h":
		p.Amount *= HoursPerMonth
	case monthly && slices.Contains(priceUnits(), of):
		p.Per = of
	default:
		return Price{}, fmt.Errorf("unknown unit in %q: want %s/month, %[2]s/h, or %[2]s/UNIT-month with %s", text, currency, strings.Join(priceUnits(), ", "))
	}
	return p, nil
}

var errNoUnit = errors.New("has no unit: write it behind the number")

// quantity reads a number, a blank and a unit. A number that is negative or none at all is refused.
func quantity(text string) (x float64, unit string, err error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	x, err = strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		return 0, "", fmt.Errorf("%q does not begin with a number", text)
	case x < 0 || math.Signbit(x):
		return 0, "", fmt.Errorf("%q is negative", text)
	case unit == "":
		return 0, "", fmt.Errorf("%q %w", text, errNoUnit)
	}
	return x, strings.TrimSpace(unit), nil
}

// in reads a quantity that has one of these units.
func in(units map[string]float64, text string) (float64, error) {
	x, unit, err := quantity(text)
	if err != nil {
		return 0, err
	}
	scale, ok := units[unit]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q: want %s", unit, strings.Join(sorted(units), ", "))
	}
	if x == 0 || math.IsInf(x*scale, 0) {
		return 0, fmt.Errorf("%q is no amount", text)
	}
	return x * scale, nil
}

func sorted(units map[string]float64) []string {
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(math.Copysign(1, units[a]-units[b])) })
	return names
}

// Size counts bytes, written "256 GB" (10^9) or "900 GiB" (2^30).
type Size float64

// GiB returns the size in GiB.
func (s Size) GiB() float64 { return float64(s) / (1 << 30) }

// ParseSize reads a size with its unit; the blank before the unit may be left out.
func ParseSize(text string) (Size, error) {
	x, err := typed(sizeUnits(), text, "1TiB")
	return Size(x), err
}

// typed reads a quantity as users type it, without a blank; example is one.
func typed(units map[string]float64, text, example string) (float64, error) {
	x, err := in(units, spaced(text))
	if errors.Is(err, errNoUnit) {
		err = fmt.Errorf("%w, as in %s", err, example)
	}
	return x, err
}

// Bandwidth counts bytes/s, written "125 MiB/s".
type Bandwidth float64

// spaced puts a blank between a number and its unit.
func spaced(text string) string {
	at := strings.LastIndexAny(text, "0123456789") + 1
	if at == 0 || at == len(text) {
		return text
	}
	return text[:at] + " " + strings.TrimSpace(text[at:])
}

// ParseBandwidth reads a bandwidth with its unit; the blank before the unit may be left out.
func ParseBandwidth(text string) (Bandwidth, error) {
	x, err := typed(bandwidthUnits(), text, "300MiB/s")
	return Bandwidth(x), err
}

// MiB returns the bandwidth in MiB/s.
func (b Bandwidth) MiB() float64 { return float64(b) / (1 << 20) }

// Bits counts bits/s, written "1.56 Gbit/s".
type Bits float64

// UnmarshalYAML reads a price of a catalogue.
func (p *Price) UnmarshalYAML(n *yaml.Node) error {
	return unmarshal(n, func(text string) (err error) { *p, err = ParsePrice(text); return err })
}

// UnmarshalYAML reads a size of a catalogue.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	return unmarshal(n, func(text string) error { x, err := in(sizeUnits(), text); *s = Size(x); return err })
}

// UnmarshalYAML reads a bandwidth of a catalogue.
func (b *Bandwidth) UnmarshalYAML(n *yaml.Node) error {
	return unmarshal(n, func(text string) error { x, err := in(bandwidthUnits(), text); *b = Bandwidth(x); return err })
}

// UnmarshalYAML reads a network's bandwidth of a catalogue.
func (b *Bits) UnmarshalYAML(n *yaml.Node) error {
	return unmarshal(n, func(text string) error { x, err := in(bitUnits(), text); *b = Bits(x); return err })
}

func unmarshal(n *yaml.Node, read func(string) error) error {
	if n.Kind != yaml.ScalarNode {
		return lineError{n.Line, fmt.Errorf("want a number with its unit")}
	}
	if err := read(n.Value); err != nil {
		return lineError{n.Line, err}
	}
	return nil
}

// lineError says what is wrong in a line of a file.
type lineError struct {
	line int
	err  error
}

func (e lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e lineError) Unwrap() error { return e.err }
