package price

import (
	"cmp"
	"errors"
	"math"
)

// ErrNoRate says that a price is in a currency of which the catalogue does not know what it is in US$.
var ErrNoRate = errors.New("the catalogue states no exchange rate")

// Set buys n equal volumes of a kind that meet a wish together, in the cheaper of two ways: with what comes with them,
// or with more bought. A machine bounds what they give; nil: none does. An error says why it cannot be.
func (c Catalogue) Set(v Volume, n int, w Wish, m *Machine) (Option, error) {
	plain, err := c.option(v, v.layout(n, w, false), w, m)
	if !v.sold() {
		return plain, err
	}
	more, without := c.option(v, v.layout(n, w, true), w, m)
	switch {
	case without != nil && err != nil:
		return Option{}, without
	case without != nil || err == nil && plain.USDMonth <= more.USDMonth:
		return plain, nil
	}
	return more, nil
}

// Cheaper orders what gives the same: the lower price to the cent, then the certain figures, then the fewer volumes, as each is one
// more to lose.
func Cheaper(a, b Option) int {
	return cmp.Or(cmp.Compare(math.Round(100*a.USDMonth), math.Round(100*b.USDMonth)), doubt(a)-doubt(b), a.Volumes-b.Volumes)
}

// Cheapest buys the best number of volumes, from least to most in steps: the first of Cheaper. All that david plans volumes
// for asks here, so that the same need buys the same. An error says why no number can be bought.
func Cheapest(least, most, step int, buy func(n int) (Option, error)) (best Option, err error) {
	found := false
	for n := least; n <= most; n += step {
		o, why := buy(n)
		switch {
		case why != nil:
			err = why
		case !found || Cheaper(o, best) < 0:
			best, found = o, true
		}
	}
	if found {
		return best, nil
	}
	return best, err
}

// sold tells whether IOPS or bandwidth can be bought besides those that come with a volume.
func (v Volume) sold() bool { return len(v.Extra) > 0 || v.BandwidthPrice.Currency != "" }

// Managed tells a volume that only a managed database has.
func (v Volume) Managed() bool { return v.Stripe != nil && !*v.Stripe }
