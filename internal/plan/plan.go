// Package plan finds how a MySQL should be run: which architecture meets what is asked, what it costs, and
// why the others do not. It is pure: requirements and a catalogue of prices in, a plan out.
//
//	ask      what is asked, and the figures a plan is computed with, with source and date (Request, Figures)
//	rules    what holds of which architecture, one line each with source and date (Rules, Architectures)
//	needs    what one server has to carry: CPUs, operations, room, network (Request.need)
//	buy      the cheapest machines and volumes that carry it; own hardware; the bill (Bill)
//	decide   all architectures in order of cost, with what they fail (New); what would turn that (Tornado)
//	tell     the lines that decide (Plan.Head), what is to be read with them; package report writes them
//
// A price or figure that is not known is an error that names it, and never 0.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"david/internal/price"
)

// Plan is the answer: all architectures, those that meet everything first, cheapest first.
type Plan struct {
	// Choices has the cheapest of each architecture at each provider.
	Choices []Choice `json:"choices"`
	// Nearest says what would have to give, cheapest first, where nothing meets everything.
	Nearest []Giving `json:"nearest,omitempty"`
	Third   *Third   `json:"a_third,omitempty"`
	// Span is the decision at both ends of what an experiment measured; nil where it has no interval.
	Span  *Span  `json:"interval,omitempty"`
	Value *Value `json:"value_unlocked,omitempty"`
	// Turns says what each assumption does to the decision, the strongest first.
	Turns     []Turn   `json:"tornado,omitempty"`
	Notes     []string `json:"notes"`
	Catalogue string   `json:"catalogue"` // its date
	// Stale names what the decision's prices are older than StaleDays of; "" where nothing is.
	Stale string  `json:"stale,omitempty"`
	Asked Request `json:"asked"`
	// Shown are the architectures that are told of as the decision is: bill, failures, commands.
	Shown []Kind `json:"-"`
}

// Told lists what is told of in full: the decision, then the cheapest of each architecture that is shown.
func (p Plan) Told() (list []Choice) {
	d, ok := p.Decision()
	if ok {
		list = append(list, d)
	}
	for _, c := range p.Each() {
		if slices.Contains(p.Shown, c.Kind) && !(ok && c.Kind == d.Kind) {
			list = append(list, c)
		}
	}
	return list
}

// Giving is a requirement that could be given up, and the decision without it.
type Giving struct {
	Give     string  `json:"give"`
	Choice   string  `json:"choice"`
	USDMonth float64 `json:"usd_month"`
}

// Choice is an architecture at a provider.
type Choice struct {
	Kind     Kind   `json:"kind"`
	Title    string `json:"title"`
	Provider string `json:"provider"`
	Machine  string `json:"machine,omitempty"`
	Volumes  string `json:"volumes,omitempty"` // of one server
	Shards   int    `json:"shards"`
	Copies   int    `json:"copies"` // of the data that servers hold, in each shard
	// Together: the copies lie in three regions or more and commit together, so that every commit waits for another region.
	// Followers are further copies of each shard, in other regions, which do not.
	Together  bool `json:"over_regions,omitempty"`
	Followers int  `json:"followers,omitempty"`
	Bill      Bill `json:"bill"`
	Load      Load `json:"load"` // what its busiest server carries, and of how much
	// Priced is false where no bill could be made; Refused then says why not.
	Priced  bool   `json:"priced"`
	Refused string `json:"refused,omitempty"`
	// Broken are the requirements it fails; none: it fits.
	Broken   []Verdict `json:"broken,omitempty"`
	Verdicts []Verdict `json:"verdicts"` // the whole chain
	Outcomes []Outcome `json:"outcomes"`
	Costs    []Cost    `json:"throughput_costs"`
	Commands []string  `json:"commands"`
	Manager  bool      `json:"failover_manager,omitempty"`
	// Figures are those it rests on, each with its source: of what has a bill.
	Figures []Sourced `json:"figures,omitempty"`
	lacks   string    // what gives the price that is not known
	server  server    // what is rented; of own hardware nothing
}

// Fits tells whether it meets everything and has a price.
func (c Choice) Fits() bool { return c.Priced && len(c.Broken) == 0 }

// Name says what is bought where.
func (c Choice) Name() string {
	name := c.Title + " at " + c.Provider
	if c.Machine != "" {
		name += ", " + c.Machine
	}
	return name
}

// Verdict is a rule as it was applied.
type Verdict struct {
	Rule string `json:"rule"` // its name in the table
	Met  bool   `json:"met"`
	// For names the requirement, as its flag is written; "" where none asked.
	For  string `json:"for,omitempty"`
	Says string `json:"says"`
}

// New finds the plan. An error says what is asked that contradicts itself, or which figure is missing.
func New(c price.Catalogue, r Request) (Plan, error) {
	r = r.withDefaults()
	if err := r.check(c); err != nil {
		return Plan{}, err
	}
	p, err := r.decide(c)
	if err != nil {
		return p, err
	}
	if len(p.fitting()) == 0 {
		p.Nearest = r.nearest(c)
		if err := p.undecided(); err != nil {
			return p, err
		}
	}
	if p.Span, err = p.span(c); err != nil {
		return p, err
	}
	p.Third = p.third()
	p.Stale = p.staleness()
	p.Notes = p.notes()
	p.tellSources()
	return p, nil
}

// tellSources says where the figures of each priced choice are from; it is not asked where decisions are only compared.
func (p *Plan) tellSources() {
	for i, c := range p.Choices {
		if c.Priced {
			p.Choices[i].Figures = p.Asked.sourced(architecture(c.Kind), c)
		}
	}
}

// decide judges and prices every architecture at every provider.
func (r Request) decide(c price.Catalogue) (Plan, error) {
	p := Plan{Catalogue: c.Date, Asked: r}
	at := newShop(c)
	for _, a := range Architectures() {
		for _, provider := range r.providers(c, a) {
			choice, err := r.choose(at, a, provider)
			if err != nil {
				return p, err
			}
			p.Choices = append(p.Choices, choice)
		}
	}
	slices.SortStableFunc(p.Choices, byCost)
	return p, nil
}

// undecided is an error where nothing meets everything only because a price is not known, by each such reason.
func (p Plan) undecided() error {
	list := p.unpricedAlone()
	if len(list) == 0 {
		return nil
	}
	text := strings.Join(list, "; ")
	if near := p.near(); len(p.Nearest) > 0 {
		text += "; or " + near[0]
	}
	return fmt.Errorf("nothing that has a price meets all of it, and whether anything else does cannot be told: %s", text)
}

// unpricedAlone lists what meets everything but has no price, each reason once, with where that is.
func (p Plan) unpricedAlone() (list []string) {
	var whys []string
	at := map[string][]string{}
	for _, c := range p.Choices {
		_, described := p.Asked.Figures["server-price"]
		if c.Priced || len(c.Broken) != 1 || c.Broken[0].Rule != priceUnknown || c.Provider == Own && !described { // of which nobody spoke
			continue
		}
		why := c.lacks
		if at[why] == nil {
			whys = append(whys, why)
		}
		if !slices.Contains(at[why], c.Provider) {
			at[why] = append(at[why], c.Provider)
		}
	}
	for _, why := range whys {
		list = append(list, strings.Join(at[why], ", ")+": "+why)
	}
	return list
}

// byCost puts what fits first, then what has a price, each by the bill; of equals the certain, the one whose commits wait for
// no other region, the one that loses less with a machine, the one that needs nobody's hand, the simpler.
func byCost(a, b Choice) int {
	x, y := a.Outcomes[0], b.Outcomes[0]
	return cmp.Or(rank(a)-rank(b), cmp.Compare(cents(a.Bill.USDMonth), cents(b.Bill.USDMonth)), doubt(a.Bill)-doubt(b.Bill), order(a.Together)-order(b.Together), int(x.lost)-int(y.lost), order(x.Human)-order(y.Human))
}

// order puts false before true.
func order(is bool) int {
	if is {
		return 1
	}
	return 0
}

func rank(c Choice) int {
	switch {
	case c.Fits():
		return 0
	case c.Priced:
		return 1
	}
	return 2
}

func doubt(b Bill) int { return order(b.Uncertain) }

// fitting lists what meets everything, cheapest first.
func (p Plan) fitting() []Choice {
	n := slices.IndexFunc(p.Choices, func(c Choice) bool { return !c.Fits() })
	if n < 0 {
		n = len(p.Choices)
	}
	return p.Choices[:n]
}

// Decision returns the cheapest that meets everything; false where nothing does.
func (p Plan) Decision() (Choice, bool) {
	if fit := p.fitting(); len(fit) > 0 {
		return fit[0], true
	}
	return Choice{}, false
}

// choose takes the cheapest of the ways in which an architecture's copies may lie. Its error is a figure that is missing and
// that the user alone can know.
func (r Request) choose(at *shop, a Architecture, provider string) (best Choice, err error) {
	for i, together := range r.layouts(a) {
		x, err := r.chooseLaid(at, a, provider, together)
		if err != nil {
			return x, err
		}
		if i == 0 || x.Priced && (!best.Priced || cents(x.Bill.USDMonth) < cents(best.Bill.USDMonth)) {
			best = x
		}
	}
	return best, nil
}

// chooseLaid judges an architecture at a provider, and prices it where that can be done.
func (r Request) chooseLaid(at *shop, a Architecture, provider string, together bool) (Choice, error) {
	x := Choice{Kind: a.Kind, Title: a.Title, Provider: provider, Shards: 1, Copies: a.Copies, Together: together, Manager: r.wantsManager(a)}
	x.Outcomes = r.outcomes(a, x)
	x.Verdicts = r.judge(a, x)
	x.Costs = r.costs(a)
	set, err := r.buy(at, a, provider, together)
	var missing missingFigure
	if errors.As(err, &missing) && provider == Own && len(r.On) > 0 && missing.Name != "region-traffic" {
		return x, missing
	}
	if err != nil {
		x.Refused, x.lacks = err.Error(), lacking(err)
		x.Verdicts = append(x.Verdicts, unpriced(err))
	} else {
		x.take(set)
		x.Verdicts = append(x.Verdicts, Verdict{Rule: "capacity", Met: true, For: "the load", Says: x.Load.String()}, r.withinBudget(x.Bill))
		x.Commands = r.commands(a, x)
	}
	x.Broken = slices.DeleteFunc(slices.Clone(x.Verdicts), func(v Verdict) bool { return v.Met })
	return x, nil
}

// unpriced tells a load that nothing carries from a price that is not known.
func unpriced(err error) Verdict {
	if unknown(err) {
		return Verdict{Rule: priceUnknown, For: "the bill", Says: err.Error()}
	}
	return Verdict{Rule: "capacity", For: "the load", Says: err.Error()}
}

const priceUnknown = "price-unknown" // a rule

// lacking names what gives a price that is not known; "" where none is missing.
func lacking(err error) string {
	var missing missingFigure
	switch {
	case errors.As(err, &missing):
		return missing.Error()
	case errors.Is(err, errNoVolumes):
		return errNoVolumes.Error() + ": --catalogue FILE may"
	case errors.Is(err, price.ErrNoRate):
		return "priced in another currency, and the catalogue states no exchange rate: --catalogue FILE may, as in \"rates: [{currency: EUR, usd: ..., source: ..., date: ...}]\""
	}
	return ""
}

func (x *Choice) take(s set) {
	if !s.together {
		x.Costs = slices.DeleteFunc(x.Costs, func(c Cost) bool { return c.What == apartPart })
	}
	if !s.striped {
		x.Costs = slices.DeleteFunc(x.Costs, func(c Cost) bool { return c.What == stripePart })
	}
	x.Priced, x.Shards, x.Copies, x.Followers, x.Machine, x.Volumes, x.Load, x.Bill, x.server = true, s.shards, s.copies, s.followers, s.machine, s.volumes, s.load, s.bill, s.server
}

func (r Request) withinBudget(b Bill) Verdict {
	v := Verdict{Rule: "budget", Met: true, For: "", Says: "no budget was given"}
	if r.Budget > 0 {
		v = Verdict{"budget", b.USDMonth <= r.Budget, "--budget", fmt.Sprintf("US$%s a month of %s", Money(b.USDMonth), Money(r.Budget))}
	}
	return v
}

// nearest gives up one requirement after the other, and keeps what helps, cheapest first.
func (r Request) nearest(c price.Catalogue) (list []Giving) {
	for _, g := range r.givings() {
		p, err := g.without.decide(c)
		if err != nil {
			continue
		}
		if d, ok := p.Decision(); ok {
			list = append(list, Giving{g.name, d.Name(), d.Bill.USDMonth})
		}
	}
	slices.SortStableFunc(list, func(a, b Giving) int { return cmp.Compare(a.USDMonth, b.USDMonth) })
	return list
}

// StaleDays is how old prices may be before the headline says so.
const StaleDays = 180

// staleness names the oldest price of the decision's bill, and the catalogue where it is old itself.
func (p Plan) staleness() string {
	if old := days(p.Catalogue, p.Asked.Today); old > StaleDays {
		return fmt.Sprintf("the catalogue is of %s, %d days ago", p.Catalogue, old)
	}
	d, ok := p.Decision()
	if !ok {
		return ""
	}
	oldest := Line{}
	for _, l := range d.Bill.Lines {
		if l.Date != "" && (oldest.Date == "" || l.Date < oldest.Date) {
			oldest = l
		}
	}
	if days(oldest.Date, p.Asked.Today) > StaleDays {
		return fmt.Sprintf("%s is priced as of %s (%s)", oldest.What, oldest.Date, oldest.Source)
	}
	return ""
}

// days returns how many have passed since the end of a date that may be a year or a month only; 0 where it
// is none.
func days(date string, today time.Time) int {
	for i, layout := range []string{time.DateOnly, "2006-01", "2006"} {
		if t, err := time.Parse(layout, date); err == nil {
			end := []time.Time{t, t.AddDate(0, 1, -1), t.AddDate(1, 0, -1)}[i]
			return max(0, int(today.Sub(end).Hours()/24))
		}
	}
	return 0
}
