package plan

import (
	"cmp"
	"math"
	"slices"

	"david/internal/price"
)

// Turn is what an assumption does to the decision when it is half as large, and twice.
type Turn struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
	Unit Unit    `json:"unit"`
	Half End     `json:"half"`
	Full End     `json:"double"`
	// TurnsAt is the value nearest to At from which on the decision is another; 0 where neither end is.
	TurnsAt float64 `json:"turns_at,omitempty"`
	To      string  `json:"turns_to,omitempty"`
}

// change is how far the assumption has to move until the decision turns, as the logarithm of a factor.
func (t Turn) change() float64 { return math.Abs(math.Log(t.TurnsAt / t.At)) }

// End is the decision at one end.
type End struct {
	Value    float64 `json:"value"`
	USDMonth float64 `json:"usd_month"` // of what is decided there; 0 where nothing meets everything
	Decision string  `json:"decision"`
	same     bool
}

// Swing is how far the bill of a month moves between the ends.
func (t Turn) Swing() float64 { return math.Abs(t.Full.USDMonth - t.Half.USDMonth) }

// knob is something that is assumed, and how another value is put in its place.
type knob struct {
	name string
	at   float64
	unit Unit
	most float64 // 0: none
	// least is the smallest it may be.
	least float64
	set   func(Request, float64) Request
}

func (r Request) knobs() []knob {
	list := []knob{
		{"data", float64(r.Data), Size, 0, 0, func(r Request, x float64) Request { r.Data = price.Size(x); return r }},
		{"tps", r.TPS, Number, 0, 0, func(r Request, x float64) Request { r.TPS = x; return r }},
		{"writes", r.Writes, Share, 1, 0, func(r Request, x float64) Request { r.Writes = x; return r }},
	}
	for _, f := range Figures() {
		_, given := r.Figures[f.Name]
		if f.Given && !given || r.figure(f.Name) == 0 || f.Name == "measured-queries" || f.Name == "measured-writes" { // the last two say what was measured
			continue
		}
		k := knob{f.Name, r.figure(f.Name), f.Unit, 0, 0, func(r Request, x float64) Request { return r.with(f.Name, x) }}
		if f.Unit == Share && f.Name != "growth" {
			k.most = 1
		}
		if f.Name == cooling {
			k.least = 1
		}
		list = append(list, k)
	}
	return list
}

// Tornado asks what each assumption does to the decision. A plan without a decision has none.
func (p Plan) Tornado(c price.Catalogue) (list []Turn) {
	d, ok := p.Decision()
	if !ok {
		return nil
	}
	for _, k := range p.Asked.knobs() {
		if t := p.Asked.turn(c, k, d); t.Swing() > 0 || t.TurnsAt > 0 {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b Turn) int { return cmp.Compare(b.Swing(), a.Swing()) })
	return list
}

func (r Request) turn(c price.Catalogue, k knob, d Choice) Turn {
	double := 2 * k.at
	if k.most > 0 {
		double = min(double, k.most)
	}
	t := Turn{Name: k.name, At: k.at, Unit: k.unit, Half: r.end(c, k, max(k.at/2, k.least), d), Full: r.end(c, k, double, d)}
	for _, e := range []End{t.Half, t.Full} {
		if !e.same {
			at := r.turning(c, k, e.Value, d)
			if t.To == "" || (Turn{At: k.at, TurnsAt: at}).change() < t.change() {
				t.TurnsAt, t.To = at, e.Decision
			}
		}
	}
	return t
}

// end decides anew with another value.
func (r Request) end(c price.Catalogue, k knob, x float64, d Choice) End {
	e := End{Decision: nothing}
	if p, err := k.set(r, x).decide(c); err == nil {
		e = p.end(d)
	}
	e.Value = x
	return e
}

const nothing = "nothing meets everything"

// end tells a plan's decision beside another one.
func (p Plan) end(d Choice) End {
	best, ok := p.Decision()
	if !ok {
		return End{Decision: nothing}
	}
	return End{Decision: best.Title + " at " + best.Provider, USDMonth: best.Bill.USDMonth, same: best.Kind == d.Kind && best.Provider == d.Provider}
}

// turning looks for the value nearest to the assumed one from which on the decision is another, to half a
// percent.
func (r Request) turning(c price.Catalogue, k knob, other float64, d Choice) float64 {
	same := k.at
	for range 7 {
		middle := math.Sqrt(same * other)
		if r.end(c, k, middle, d).same {
			same = middle
		} else {
			other = middle
		}
	}
	return other
}
