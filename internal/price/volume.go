package price

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Volume describes a kind of network volume. Either it has Sizes, or any size at a price for its GiB or GB.
// What is 0 is not known, or not so.
type Volume struct {
	Name     string `yaml:"name" json:"name"`
	Provider string `yaml:"provider" json:"provider"`
	Price    Price  `yaml:"price" json:"price,omitzero"` // of a GiB or GB a month
	Sizes    []Disk `yaml:"sizes" json:"sizes,omitempty"`
	// A volume has BaseIOPS + IOPSPerGiB for each GiB without further payment, at least MinIOPS.
	BaseIOPS   float64 `yaml:"base_iops" json:"base_iops,omitempty"`
	IOPSPerGiB float64 `yaml:"iops_per_gib" json:"iops_per_gib,omitempty"`
	MinIOPS    float64 `yaml:"min_iops" json:"min_iops,omitempty"`
	MaxIOPS    float64 `yaml:"max_iops" json:"max_iops,omitempty"`
	// MaxPerGiB bounds the IOPS that can be bought for a volume's size.
	MaxPerGiB float64 `yaml:"max_iops_per_gib" json:"max_iops_per_gib,omitempty"`
	// Extra are the prices of an IOPS a month, each above a number of IOPS; the first number are those in the
	// price.
	Extra          []Tier    `yaml:"iops_price" json:"iops_price,omitempty"`
	BaseBandwidth  Bandwidth `yaml:"base_bandwidth" json:"base_bandwidth,omitempty"` // bytes/s
	MaxBandwidth   Bandwidth `yaml:"max_bandwidth" json:"max_bandwidth,omitempty"`
	BandwidthPrice Price     `yaml:"bandwidth_price" json:"bandwidth_price,omitzero"`
	MinSize        Size      `yaml:"min_size" json:"min_size,omitempty"` // bytes
	MaxSize        Size      `yaml:"max_size" json:"max_size,omitempty"`
	Stripe         *bool     `yaml:"stripe" json:"stripe,omitempty"` // false: a database has one, and no stripe
	Zones          int       `yaml:"zones" json:"zones,omitempty"`   // of the managed databases it is for; 0: one
	Burst          string    `yaml:"burst" json:"burst,omitempty"`   // its rule, in words: bursts are not counted
	Uncertain      []string  `yaml:"uncertain" json:"uncertain,omitempty"`
	Note           string    `yaml:"note" json:"note,omitempty"`
	Source         string    `yaml:"source" json:"source"`
	Date           string    `yaml:"date" json:"date"`
}

// Disk describes a volume of one size.
type Disk struct {
	Size      Size    `yaml:"size" json:"size"` // bytes
	Price     Price   `yaml:"price" json:"price"`
	IOPS      float64 `yaml:"iops" json:"iops"`
	Uncertain bool    `yaml:"uncertain" json:"uncertain,omitempty"`
}

// Tier describes the price of each IOPS a month above a number of them.
type Tier struct {
	Above float64 `yaml:"above" json:"above"`
	Price Price   `yaml:"price" json:"price"`
}

func (v Volume) check() error {
	err := firstError(named(v.Name, v.Provider), known(v.Uncertain, reflect.TypeOf(v)), v.checkPrices(), v.checkTiers(), v.checkNumbers(), v.oneCurrency(),
		dated(v.Source, v.Date))
	return errorOf(err, "volume", v.Name)
}

func (v Volume) checkPrices() error {
	if len(v.Sizes) == 0 {
		return priced(v.Price, "GiB", "GB")
	}
	if v.Price.Currency != "" || v.Extra != nil || v.IOPSPerGiB != 0 || v.BaseIOPS != 0 {
		return errors.New("it has sizes, each with its price and IOPS: leave out price, iops_price, base_iops and iops_per_gib")
	}
	for _, d := range v.Sizes {
		if err := firstError(priced(d.Price, ""), positive("size", float64(d.Size)), positive("iops", d.IOPS)); err != nil {
			return err
		}
	}
	return nil
}

func (v Volume) checkTiers() error {
	for i, t := range v.Extra {
		if err := firstError(priced(t.Price, "IOPS"), notNegative("above", t.Above)); err != nil {
			return fmt.Errorf("iops_price: %w", err)
		}
		if i > 0 && t.Above <= v.Extra[i-1].Above {
			return errors.New("iops_price: above must rise")
		}
	}
	if len(v.Extra) > 0 && v.MaxIOPS == 0 {
		return errors.New("iops_price without max_iops: say how many can be bought")
	}
	if len(v.Extra) > 0 && v.Extra[0].Above != v.BaseIOPS {
		return fmt.Errorf("iops_price begins above %v, but base_iops is %v", v.Extra[0].Above, v.BaseIOPS)
	}
	if v.BandwidthPrice.Currency != "" {
		if err := priced(v.BandwidthPrice, "MB/s", "MiB/s"); err != nil {
			return fmt.Errorf("bandwidth_price: %w", err)
		}
	}
	return nil
}

func (v Volume) checkNumbers() error {
	if v.MaxIOPS > 0 && max(v.BaseIOPS, v.MinIOPS) > v.MaxIOPS {
		return fmt.Errorf("max_iops is %v, but %v come with every volume", v.MaxIOPS, max(v.BaseIOPS, v.MinIOPS))
	}
	if len(v.Sizes) == 0 && v.BaseIOPS == 0 && v.IOPSPerGiB == 0 && v.Extra == nil {
		return errors.New("it says nothing of IOPS: give base_iops, iops_per_gib, iops_price or sizes")
	}
	return firstError(notNegative("base_iops", v.BaseIOPS), notNegative("iops_per_gib", v.IOPSPerGiB), notNegative("min_iops", v.MinIOPS),
		notNegative("max_iops", v.MaxIOPS), notNegative("max_iops_per_gib", v.MaxPerGiB))
}

// oneCurrency refuses a volume whose prices are in more than one currency.
func (v Volume) oneCurrency() error {
	all := []Price{v.Price, v.BandwidthPrice}
	for _, d := range v.Sizes {
		all = append(all, d.Price)
	}
	for _, t := range v.Extra {
		all = append(all, t.Price)
	}
	for _, p := range all {
		if p.Currency != "" && p.Currency != v.currency() {
			return fmt.Errorf("its prices are in %s and in %s", v.currency(), p.Currency)
		}
	}
	return nil
}

func (v Volume) currency() string {
	if len(v.Sizes) > 0 {
		return v.Sizes[0].Price.Currency
	}
	return v.Price.Currency
}

// Wish holds what is asked of the volumes together.
type Wish struct {
	IOPS      float64
	Size      Size
	Bandwidth Bandwidth // 0: not asked for
}

// bought returns one of n equal volumes of a kind: what it gives and costs a month, in the kind's currency.
type bought struct {
	gib, iops, extra   float64
	bandwidth, moreMiB Bandwidth // moreMiB: what is bought above the base, in bytes/s
	cost               float64
	disk               *Disk
}

// shareOf buys one of n volumes that meet the wish together. The room of several that are sold by the GiB is a
// multiple of as many GiB, or of the next power of two: else eleven could be had for some cents less than four,
// as their sizes round better. Without provision only what comes with the size is used. An error says why it
// cannot be.
func (v Volume) shareOf(n int, w Wish, provision bool) (bought, error) {
	part := Wish{w.IOPS / float64(n), Size(float64(w.Size) / float64(n)), Bandwidth(float64(w.Bandwidth) / float64(n))}
	if len(v.Sizes) > 0 {
		return v.disk(part)
	}
	if n > 1 {
		even := math.Exp2(math.Ceil(math.Log2(float64(n))))
		part.Size = Size(math.Ceil(w.Size.GiB()/even) * even / float64(n) * (1 << 30))
	}
	b, err := v.size(part, provision)
	if err == nil {
		err = v.buyBandwidth(&b, part.Bandwidth, provision)
	}
	b.cost = b.gib*v.perGiB() + v.iopsCost(b.iops, b.extra) + b.moreMiB.in(v.BandwidthPrice.Per)*v.BandwidthPrice.Amount
	return b, err
}

// disk picks the cheapest of the fixed sizes.
func (v Volume) disk(w Wish) (bought, error) {
	var best *Disk
	most := v.Sizes[0]
	for i, d := range v.Sizes {
		if d.IOPS >= w.IOPS && d.Size >= w.Size && (best == nil || d.Price.Amount < best.Price.Amount) {
			best = &v.Sizes[i]
		}
		if d.IOPS > most.IOPS || d.IOPS == most.IOPS && d.Size > most.Size {
			most = d
		}
	}
	if best == nil {
		return bought{}, fmt.Errorf("at most %s IOPS and %s a volume", Number(most.IOPS), GiB(most.Size.GiB()))
	}
	return bought{gib: best.Size.GiB(), iops: best.IOPS, cost: best.Price.Amount, disk: best}, nil
}

// size finds the smallest volume that holds its share of the data and has, or may be sold, its share of the
// IOPS.
func (v Volume) size(w Wish, provision bool) (b bought, err error) {
	need := math.Ceil(w.IOPS)
	if v.MaxIOPS > 0 && need > v.MaxIOPS {
		return b, fmt.Errorf("at most %s IOPS a volume", Number(v.MaxIOPS))
	}
	b.gib = max(math.Ceil(w.Size.GiB()), math.Ceil(v.MinSize.GiB()), 1)
	switch {
	case v.free(b.gib) >= need:
	case provision:
		if len(v.Extra) == 0 {
			return b, errors.New("no IOPS can be bought besides those of its size")
		}
		if v.MaxPerGiB > 0 {
			b.gib = max(b.gib, math.Ceil(need/v.MaxPerGiB))
		}
		b.extra = max(0, need-v.free(b.gib))
	case v.IOPSPerGiB == 0:
		return b, fmt.Errorf("%s IOPS a volume come with it", Number(v.BaseIOPS))
	default:
		b.gib = max(b.gib, math.Ceil((need-v.BaseIOPS)/v.IOPSPerGiB))
	}
	if v.MaxSize > 0 && b.gib > v.MaxSize.GiB() {
		return b, fmt.Errorf("at most %s a volume", GiB(v.MaxSize.GiB()))
	}
	b.iops = v.free(b.gib) + b.extra
	return b, nil
}

// free returns what comes with a volume of so many GiB.
func (v Volume) free(gib float64) float64 {
	iops := max(v.BaseIOPS+v.IOPSPerGiB*gib, v.MinIOPS)
	if v.MaxIOPS > 0 {
		iops = min(iops, v.MaxIOPS)
	}
	return iops
}

func (v Volume) buyBandwidth(b *bought, want Bandwidth, provision bool) error {
	b.bandwidth = max(v.BaseBandwidth, 0)
	if want <= v.BaseBandwidth || v.BaseBandwidth == 0 { // where nothing is known of it nothing can be said
		return nil
	}
	switch {
	case v.BandwidthPrice.Currency == "" || !provision:
		return fmt.Errorf("%s a volume come with it", mib(v.BaseBandwidth))
	case v.MaxBandwidth > 0 && want > v.MaxBandwidth:
		return fmt.Errorf("at most %s a volume", mib(v.MaxBandwidth))
	}
	b.moreMiB, b.bandwidth = want-v.BaseBandwidth, want
	return nil
}

// perGiB returns the price of a GiB.
func (v Volume) perGiB() float64 {
	if v.Price.Per == "GB" {
		return v.Price.Amount * (1 << 30) / 1e9
	}
	return v.Price.Amount
}

// in returns the bandwidth in MiB/s or MB/s.
func (b Bandwidth) in(unit string) float64 {
	if unit == "MB/s" {
		return float64(b) / 1e6
	}
	return b.MiB()
}

// iopsCost returns the price of the extra ones among a volume's IOPS, tier by tier.
func (v Volume) iopsCost(iops, extra float64) (cost float64) {
	for i, t := range v.Extra {
		from, to := max(t.Above, iops-extra), iops
		if i+1 < len(v.Extra) {
			to = min(to, v.Extra[i+1].Above)
		}
		cost += max(0, to-from) * t.Price.Amount
	}
	return cost
}

// MostVolumes bounds the volumes of a stripe: more than that, few machines can be given.
const MostVolumes = 16

// layout meets a wish with one kind of volume.
type layout struct {
	name string
	n    int
	one  bought
	err  error
}

// layouts lists one volume with what comes with it, one with more bought, and stripes of both where they are
// of use: one without purchases where it is cheaper than one volume, one with them where one volume cannot be
// sold enough.
func (v Volume) layouts(w Wish) (list []layout) {
	plain := v.layout(1, w, false)
	if v.hasOwn() {
		list = append(list, plain)
	}
	more := plain
	if v.sold() && plain.err != nil {
		more = v.layout(1, w, true)
		list = append(list, more)
	}
	if v.Managed() {
		return list
	}
	if stripe := v.cheapestStripe(w); v.hasOwn() && (plain.err != nil || stripe.err == nil && stripe.cost() < plain.cost()-cent) {
		list = append(list, stripe)
	}
	if v.sold() && more.err != nil {
		list = append(list, v.shortestStripe(w))
	}
	return list
}

const cent = 0.01

// hasOwn tells whether a volume has IOPS that need not be bought.
func (v Volume) hasOwn() bool {
	return len(v.Sizes) > 0 || v.BaseIOPS > 0 || v.IOPSPerGiB > 0 || v.MinIOPS > 0
}

func (v Volume) layout(n int, w Wish, provision bool) layout {
	b, err := v.shareOf(n, w, provision)
	name := "one volume"
	if n > 1 {
		name = fmt.Sprintf("stripe of %d", n)
	}
	if provision {
		name += ", provisioned"
	}
	return layout{name, n, b, err}
}

// cheapestStripe returns that of 2 to MostVolumes volumes with what comes with them, of the fewest among
// equals.
func (v Volume) cheapestStripe(w Wish) (best layout) {
	for n := 2; n <= MostVolumes; n++ {
		l := v.layout(n, w, false)
		if n == 2 || best.err != nil || l.err == nil && l.cost() < best.cost()-cent {
			best = l
		}
	}
	return best.tried()
}

// shortestStripe returns the one of the fewest volumes with IOPS bought: each one less to fail.
func (v Volume) shortestStripe(w Wish) (l layout) {
	for n := 2; n <= MostVolumes; n++ {
		if l = v.layout(n, w, true); l.err == nil {
			return l
		}
	}
	return l.tried()
}

// tried adds to an error how many volumes it is about.
func (l layout) tried() layout {
	if l.err != nil {
		l.err = fmt.Errorf("%w, and no more than %d volumes are tried", l.err, MostVolumes)
	}
	return l
}

func (l layout) cost() float64 { return float64(l.n) * l.one.cost }

// Option names one way to get the IOPS and the room.
type Option struct {
	Name       string  `json:"name"`
	Volume     string  `json:"volume"`
	Layout     string  `json:"layout"`
	USDMonth   float64 `json:"usd_month"`
	IOPS       float64 `json:"iops"` // of all volumes together, as the machine lets through
	GiB        float64 `json:"gib"`
	MiBs       float64 `json:"mib_s,omitempty"` // 0: not known
	Volumes    int     `json:"volumes"`
	EachIOPS   float64 `json:"each_iops"` // of one volume, as it is sold
	EachGiB    float64 `json:"each_gib"`
	EachMiBs   float64 `json:"each_mib_s,omitempty"` // 0: not known
	IOPSPerGiB float64 `json:"iops_per_gib"`
	USDPerIOPS float64 `json:"usd_per_iops"`
	// WithMachine is USDMonth and the price of the machine they are for; 0 where none was named, or its price
	// is not in US$.
	WithMachine float64 `json:"usd_month_with_machine,omitempty"`
	Parts       []Part  `json:"parts"` // they add up to USDMonth
	// UncertainPrice and UncertainIOPS mark figures that are to be shown with a "?".
	UncertainPrice bool   `json:"uncertain_price,omitempty"`
	UncertainIOPS  bool   `json:"uncertain_iops,omitempty"`
	Note           string `json:"note,omitempty"`
	Source         string `json:"source"`
	Date           string `json:"date"`
}

// Part describes a position of the bill.
type Part struct {
	What     string  `json:"what"`
	Count    float64 `json:"count"`
	USDEach  float64 `json:"usd_each"`
	USDMonth float64 `json:"usd_month"`
}

// Refusal names a way that does not lead there.
type Refusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Ways lays the ways to get so many IOPS on so much room side by side, cheapest first, and says why others
// cannot. A machine bounds what its volumes give and whose they are; nil: any.
func (c Catalogue) Ways(w Wish, m *Machine) (options []Option, refused []Refusal) {
	for _, v := range c.Volumes {
		if m != nil && !m.Takes(v) {
			continue
		}
		for _, l := range v.layouts(w) {
			o, err := c.option(v, l, w, m)
			if err != nil {
				refused = append(refused, Refusal{v.Name + ", " + l.name, err.Error()})
				continue
			}
			options = append(options, o)
		}
	}
	slices.SortStableFunc(options, func(a, b Option) int {
		return cmp.Or(cmp.Compare(math.Round(100*a.USDMonth), math.Round(100*b.USDMonth)), doubt(a)-doubt(b))
	})
	return options, refused
}

func doubt(o Option) int {
	if o.UncertainPrice || o.UncertainIOPS {
		return 1
	}
	return 0
}

func (c Catalogue) option(v Volume, l layout, w Wish, m *Machine) (Option, error) {
	if l.err != nil {
		return Option{}, l.err
	}
	rate, ok := c.USD(Price{Amount: 1, Currency: v.currency()})
	if !ok {
		return Option{}, fmt.Errorf("it is priced in %s, and %w", v.currency(), ErrNoRate)
	}
	n := float64(l.n)
	o := Option{Name: v.Name + ", " + l.name, Volume: v.Name, Layout: l.name, IOPS: n * l.one.iops, GiB: n * l.one.gib, MiBs: n * l.one.bandwidth.MiB(),
		Volumes: l.n, EachIOPS: l.one.iops, EachGiB: l.one.gib, EachMiBs: l.one.bandwidth.MiB(),
		Note: note(v), Source: v.Source, Date: v.Date, UncertainPrice: v.doubts("price", "iops_price", "bandwidth_price", "sizes"),
		UncertainIOPS: v.doubts("base_iops", "iops_per_gib", "min_iops", "max_iops", "max_iops_per_gib")}
	if l.one.disk != nil && l.one.disk.Uncertain {
		o.UncertainPrice = true
	}
	if err := m.bound(&o, w); err != nil {
		return Option{}, err
	}
	o.Parts = v.parts(l, rate)
	for _, p := range o.Parts {
		o.USDMonth += p.USDMonth
	}
	if m != nil {
		if usd, ok := c.USD(m.Price); ok {
			o.WithMachine = o.USDMonth + usd
		}
	}
	o.IOPSPerGiB, o.USDPerIOPS = o.IOPS/o.GiB, o.USDMonth/o.IOPS
	return o, nil
}

func note(v Volume) string {
	switch {
	case v.Burst == "":
		return v.Note
	case v.Note == "":
		return "bursts: " + v.Burst
	}
	return v.Note + "; bursts: " + v.Burst
}

func (v Volume) doubts(keys ...string) bool {
	return slices.ContainsFunc(v.Uncertain, func(key string) bool { return slices.Contains(keys, key) })
}

// bound applies the machine's own limits on its volumes, which lie below those of large volumes.
func (m *Machine) bound(o *Option, w Wish) error {
	if m == nil {
		return nil
	}
	if m.IOPS > 0 {
		if w.IOPS > m.IOPS {
			return fmt.Errorf("%s sustains %s IOPS on its volumes", m.Name, Number(m.IOPS))
		}
		o.IOPS = min(o.IOPS, m.IOPS)
		o.UncertainIOPS = o.UncertainIOPS || m.Doubt("volume_iops")
	}
	if m.Volume > 0 {
		if w.Bandwidth > m.Volume {
			return fmt.Errorf("%s sustains %s on its volumes", m.Name, mib(m.Volume))
		}
		o.MiBs = min(o.MiBs, m.Volume.MiB())
	}
	return nil
}

// parts returns the bill. rate is the US$ of one unit of the volume's currency.
func (v Volume) parts(l layout, rate float64) []Part {
	n, b := float64(l.n), l.one
	position := func(what string, count, cost float64) Part {
		return Part{what, count, rate * cost / count, rate * cost}
	}
	if b.disk != nil {
		return []Part{position("volume of "+GiB(b.gib), n, n*b.cost)}
	}
	parts := []Part{position(fmt.Sprintf("GiB in %s of %s", count(l.n, "volume"), GiB(b.gib)), n*b.gib, n*b.gib*v.perGiB())}
	if b.extra > 0 {
		parts = append(parts, position(fmt.Sprintf("IOPS above %s a volume", Number(b.iops-b.extra)), n*b.extra, n*v.iopsCost(b.iops, b.extra)))
	}
	if b.moreMiB > 0 {
		more := b.moreMiB.in(v.BandwidthPrice.Per)
		parts = append(parts, position(fmt.Sprintf("%s above %s a volume", v.BandwidthPrice.Per, mib(v.BaseBandwidth)), n*more, n*more*v.BandwidthPrice.Amount))
	}
	return parts
}
