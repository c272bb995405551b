// Package search proposes which point of a space to measure next, where each measurement is dear and noisy.
// It knows no MySQL: a point is one level of each of at most eight knobs, an observation is the logarithm of
// a ratio to the incumbent measured beside it, with its standard error, or the reason why the point cannot be
// measured.
//
// The steps of a search, each of them a function of the space and of all that was seen so far:
//
//  1. Remeasure says whether the incumbent has to be run before anything else: the reference of what follows.
//  2. Next proposes a point.
//  3. Hopeless says, while a point is measured, whether it may be stopped.
//  4. Best names the point that all observations together speak for, by how much, and how sure that is.
//
// It is pure: values in, values out; chance comes from the generator it is given. docs/method.md, The search,
// says how well it does and against what; a Recording keeps observations in a file, so that this can be
// measured on real ones.
package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// MaxKnobs bounds the knobs active at once. Thirty noisy trials cannot tell more of them apart.
const MaxKnobs = 8

// levels sets into how many a range is divided. Neighbours of ten over two decades differ by 1.7 times, about
// the least that a noisy trial can show.
const levels = 10

// maxLevels bounds the levels of a knob: each fits a byte.
const maxLevels = 256

// Cost says what it takes to change a knob.
type Cost int

// The costs, least first.
const (
	Dynamic      Cost = iota // SET GLOBAL
	Restart                  // a restart of the server
	Reinitialise             // a new data directory
)

// Level names one value of a knob. A special level is no neighbour of others: a word, or a number that means
// something else than its size, such as 0 for "no limit".
type Level struct {
	Value   string  `json:"value"`
	Number  float64 `json:"number,omitempty"` // positive, in the unit of the knob; unused where special
	Special bool    `json:"special,omitempty"`
}

// Knob describes one dimension of a space. Its levels that are not special ascend.
type Knob struct {
	Name   string  `json:"name"`
	Levels []Level `json:"levels"`
	Cost   Cost    `json:"cost"`
	// Effect says what the knob is expected to do over its levels: the standard deviation of ln(throughput),
	// 0.3 where it is known to matter much, 0.03 where little; 0 where nothing is known. It only says where
	// to look first; observations overrule it.
	Effect float64 `json:"effect,omitempty"`
}

// Point picks one level of each knob, by their places.
type Point []int

// Space bounds a search.
type Space struct {
	Knobs []Knob
	Start Point // the incumbent when the search begins; gains are relative to it
	// Feasible tells whether a point keeps the bounds that are known beforehand; nil where there are none.
	Feasible func(Point) bool
}

// List returns a knob of values that have no order, such as ON and OFF.
func List(name string, cost Cost, values ...string) Knob {
	k := Knob{Name: name, Cost: cost}
	for _, v := range values {
		k.Levels = append(k.Levels, Level{Value: v, Special: true})
	}
	return k
}

// Range returns a knob of about ten values from low to high, both positive, equally far apart by their
// logarithms and rounded to multiples of step, after the special ones.
func Range(name string, cost Cost, low, high, step float64, special ...string) Knob {
	k := List(name, cost, special...)
	for i := range levels {
		x := low * math.Pow(high/low, float64(i)/(levels-1))
		k = k.With(max(step, math.Round(x/step)*step))
	}
	return k
}

// With returns the knob with one more level, in its place, where it had none of that number: the incumbent's
// own value need not be one of the ten.
func (k Knob) With(number float64) Knob {
	at := len(k.Levels)
	for i, l := range k.Levels {
		if l.Special {
			continue
		}
		if l.Number == number {
			return k
		}
		if l.Number > number {
			at = min(at, i)
		}
	}
	level := Level{Value: strconv.FormatFloat(number, 'f', -1, 64), Number: number}
	k.Levels = slices.Insert(slices.Clone(k.Levels), at, level)
	return k
}

// Place returns which level has the value, -1 where none has.
func (k Knob) Place(value string) int {
	return slices.IndexFunc(k.Levels, func(l Level) bool { return l.Value == value })
}

// Check tells what is wrong with a space: no or too many knobs, one without a choice or with levels that do
// not ascend or share a value, or a start that is not a point of it.
func (s Space) Check() error {
	if len(s.Knobs) == 0 {
		return errors.New("cannot search without a knob")
	}
	if len(s.Knobs) > MaxKnobs {
		return fmt.Errorf("cannot search %d knobs at once; leave at most %d active", len(s.Knobs), MaxKnobs)
	}
	names := map[string]bool{}
	for _, k := range s.Knobs {
		if names[k.Name] {
			return fmt.Errorf("cannot search %q: it is there twice", k.Name)
		}
		names[k.Name] = true
		if err := k.check(); err != nil {
			return err
		}
	}
	if !s.holds(s.Start) {
		return fmt.Errorf("cannot start at %v: it is not one level of each of the %d knobs", s.Start, len(s.Knobs))
	}
	return nil
}

func (k Knob) check() error {
	if k.Cost < Dynamic || k.Cost > Reinitialise {
		return fmt.Errorf("cannot search %q: unknown cost %d", k.Name, k.Cost)
	}
	if !(k.Effect >= 0) || math.IsInf(k.Effect, 0) {
		return fmt.Errorf("cannot search %q: an effect of %v; it has to be 0 or above", k.Name, k.Effect)
	}
	if len(k.Levels) < 2 {
		return fmt.Errorf("cannot search %q: it has %d levels; leave it out or give it two", k.Name, len(k.Levels))
	}
	if len(k.Levels) > maxLevels {
		return fmt.Errorf("cannot search %q: it has %d levels; leave it at most %d", k.Name, len(k.Levels), maxLevels)
	}
	last := 0.0
	for i, l := range k.Levels {
		if k.Place(l.Value) != i {
			return fmt.Errorf("cannot search %q: its value %q is there twice", k.Name, l.Value)
		}
		if l.Special {
			continue
		}
		if !(l.Number > last) || math.IsInf(l.Number, 0) {
			return fmt.Errorf("cannot search %q: %v after %v; its levels have to be positive and to ascend", k.Name, l.Number, last)
		}
		last = l.Number
	}
	return nil
}

// holds tells whether p is a point of the space, feasible or not.
func (s Space) holds(p Point) bool {
	if len(p) != len(s.Knobs) {
		return false
	}
	for i, level := range p {
		if level < 0 || level >= len(s.Knobs[i].Levels) {
			return false
		}
	}
	return true
}

// feasible tells whether p keeps the bounds known beforehand.
func (s Space) feasible(p Point) bool { return s.Feasible == nil || s.Feasible(p) }

// size returns the number of points, at most limit.
func (s Space) size(limit int) int {
	n := 1
	for _, k := range s.Knobs {
		if n *= len(k.Levels); n >= limit {
			return limit
		}
	}
	return n
}
