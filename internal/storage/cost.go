package storage

import (
	"fmt"

	"david/internal/price"
)

// Each is what one volume of a layout does and holds.
type Each struct {
	IOPS float64
	Size price.Size
}

// Cheapest returns what n such volumes cost, of the kind of which one is the cheapest. An error says that
// no volume of the catalogue gives as much.
func (e Each) Cheapest(c price.Catalogue, n int) (price.Option, error) {
	var best price.Option
	var kind price.Volume
	for _, v := range c.Volumes {
		if v.Managed() {
			continue
		}
		o, err := c.Set(v, 1, price.Wish{IOPS: e.IOPS, Size: e.Size}, nil)
		if err == nil && (kind.Name == "" || o.USDMonth < best.USDMonth-0.01) {
			best, kind = o, v
		}
	}
	if kind.Name == "" {
		return best, fmt.Errorf("no volume of the catalogue is priced that gives %s IOPS on %s", price.Number(e.IOPS), price.GiB(e.Size.GiB()))
	}
	if n == 1 {
		return best, nil
	}
	return c.Set(kind, n, price.Wish{IOPS: float64(n) * e.IOPS, Size: price.Size(n) * e.Size}, nil)
}

// Bargain sets the price of n volumes beside that of one which has the sum of their IOPS and room.
func (e Each) Bargain(c price.Catalogue, n int) string {
	several, err := e.Cheapest(c, n)
	if err != nil {
		return "not priced: " + err.Error()
	}
	if n == 1 {
		return fmt.Sprintf("US$%s of one volume (%s)", price.Money(several.USDMonth, several.UncertainPrice), several.Volume)
	}
	gives := fmt.Sprintf("what US$%s of %s gives (%s), ", price.Money(several.USDMonth, several.UncertainPrice), count(n), several.Volume)
	sum := Each{float64(n) * e.IOPS, price.Size(n) * e.Size}
	near, err := c.OnlyOf(provider(c, several.Volume))
	if err != nil {
		near = c
	}
	one, err := sum.Cheapest(near, 1)
	if err != nil {
		one, err = sum.Cheapest(c, 1)
	}
	if err != nil {
		return gives + "no one volume of the catalogue does"
	}
	return gives + fmt.Sprintf("US$%s of one would (%s)", price.Money(one.USDMonth, one.UncertainPrice), one.Volume)
}

// Expected says what the rules make of a layout, beside one of its volumes: "stripe4: 4x the reads, 4x the
// writes".
func (l Layout) Expected() string {
	r, ok := l.rule()
	if !ok {
		return l.String() + ": no rule"
	}
	text := fmt.Sprintf("%s: %.3gx the reads, %.3gx the writes of one volume", l, r.reads(l.N), r.writes(l.N))
	if r.guessed(l.N) {
		text += ", by no load of a database measured"
	}
	return text
}

// provider finds whose volume it is.
func provider(c price.Catalogue, volume string) string {
	for _, v := range c.Volumes {
		if v.Name == volume {
			return v.Provider
		}
	}
	return ""
}
