package storage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/price"
)

// Request holds what is asked of the storage of one database.
type Request struct {
	// Wish counts operations of 16 KiB; a bandwidth of 0 is that of as many pages as operations.
	price.Wish
	WriteShare float64 // of the operations, 0 to 1
	// Survive counts the volumes, or nodes, that may be lost without losing data.
	Survive int
	Machine *price.Machine // the database's: nil where none is named
}

// Plan lays the layouts side by side, cheapest first.
type Plan struct {
	Choices   []Choice        `json:"choices"`
	Refused   []price.Refusal `json:"refused"`
	Notes     []string        `json:"notes"`
	Catalogue string          `json:"catalogue"` // its date
	asked     Request
}

// mostSurvived returns how many lost volumes the safest of the layouts survives.
func mostSurvived() (most int) {
	for _, r := range Rules() {
		most = max(most, r.Survives)
	}
	return most
}

func (r Request) check() error {
	switch {
	case !(r.IOPS > 0) || math.IsInf(r.IOPS, 0):
		return fmt.Errorf("--iops %v: give operations per second, more than 0", r.IOPS)
	case !(r.Size > 0) || math.IsInf(float64(r.Size), 0):
		return errors.New("--size: give more than nothing")
	case !(r.WriteShare >= 0 && r.WriteShare <= 1):
		return fmt.Errorf("--write-share %v: give the share of the operations that are writes, 0 to 1", r.WriteShare)
	case r.Survive < 0:
		return fmt.Errorf("--survive %d: give how many volumes may be lost, 0 or more", r.Survive)
	case r.Survive > mostSurvived():
		return fmt.Errorf("--survive %d: no layout that david knows survives more than %d lost volumes (RAIDZ2, Ceph with 3 replicas); for more, replicate the database", r.Survive, mostSurvived())
	case r.Machine != nil && r.Machine.Managed:
		return fmt.Errorf("--like %s: a managed database, whose storage takes no layout; see: david price volumes --instance %[1]s", r.Machine.Name)
	}
	return nil
}

// New finds the layouts that meet a request. An error says what of the request makes no sense.
func New(c price.Catalogue, r Request) (Plan, error) {
	if err := r.check(); err != nil {
		return Plan{}, err
	}
	if r.Bandwidth == 0 {
		r.Bandwidth = price.Bandwidth(r.IOPS * page)
	}
	volumes := r.volumes(c)
	if len(volumes) == 0 {
		return Plan{}, errors.New("no volumes to choose from: the catalogue has none, or --like and --provider name two providers")
	}
	p := Plan{Choices: []Choice{}, Refused: []price.Refusal{}, Catalogue: c.Date, asked: r}
	why := reasons{}
	for _, rule := range Rules() {
		if err := r.excluded(rule); err != nil {
			p.Refused = append(p.Refused, price.Refusal{Name: rule.Title, Why: err.Error()})
			continue
		}
		for _, v := range volumes {
			choice, err := r.choose(c, rule, v)
			if err != nil {
				why[v.Name+"\n"+err.Error()] = append(why[v.Name+"\n"+err.Error()], rule.Title)
				continue
			}
			p.Choices = append(p.Choices, choice)
		}
	}
	p.Refused = append(p.Refused, why.refusals()...)
	p.sort()
	p.Notes = p.notes()
	return p, nil
}

// excluded says why a layout is none for any volume.
func (r Request) excluded(rule Rule) error {
	if rule.Survives < r.Survive {
		return rule.tooWeak(r.Survive)
	}
	return r.beyond(rule)
}

// reasons holds the layouts that a volume is refused for, by volume and reason in two lines.
type reasons map[string][]string

// volumes lists those that the machine can have. Without a machine, all but a managed database's own.
func (r Request) volumes(c price.Catalogue) (list []price.Volume) {
	for _, v := range c.Volumes {
		if r.Machine == nil && !v.Managed() || r.Machine != nil && r.Machine.Takes(v) {
			list = append(list, v)
		}
	}
	return list
}

func (r Rule) tooWeak(survive int) error {
	switch {
	case r.Survives == 0:
		return errors.New("a lost volume takes all data with it")
	case r.Kind == RAID10:
		return errors.New("two lost volumes may be the two of a pair")
	}
	return fmt.Errorf("it survives %d lost, and %d are asked for", r.Survives, survive)
}

// refusals lists reasons once for each volume, with the layouts they hold for.
func (r reasons) refusals() (list []price.Refusal) {
	for key, titles := range r {
		volume, reason, _ := strings.Cut(key, "\n")
		list = append(list, price.Refusal{Name: volume + ", " + strings.Join(titles, ", "), Why: reason})
	}
	slices.SortFunc(list, func(a, b price.Refusal) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Why, b.Why)) })
	return list
}

// sort puts the cheapest first; of equals the certain, then the one with fewer volumes.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(math.Round(100*a.USDMonth), math.Round(100*b.USDMonth)), a.doubt()-b.doubt(), a.Volumes-b.Volumes)
	})
}

// choose finds the number of volumes of a kind that meets the request for the least money; of equals the certain,
// then the smallest.
func (r Request) choose(c price.Catalogue, rule Rule, v price.Volume) (Choice, error) {
	best, failed := price.Cheapest(rule.least(r.Survive), rule.Most, rule.Step, func(n int) (price.Option, error) { return r.buy(c, rule, v, n) })
	if failed == nil {
		return r.choice(rule, v, best), nil
	}
	if rule.Most > rule.Least && !errors.Is(failed, price.ErrNoRate) {
		failed = fmt.Errorf("%w, and no more than %d are tried", failed, rule.Most)
	}
	return Choice{}, failed
}

// beyond says why no number of volumes helps: the database's machine lets less through than the layout needs.
func (r Request) beyond(rule Rule) error {
	m := r.Machine
	switch {
	case m == nil:
		return nil
	case rule.isCeph():
		if most := r.networkPages(); r.IOPS > most {
			return fmt.Errorf("the network of %s lets %s pages of 16 KiB a second through", m.Name, price.Number(most))
		}
		return nil
	}
	iops, bytes := math.Inf(1), math.Inf(1)
	for n := rule.Least; n <= rule.Most; n += rule.Step {
		iops = min(iops, r.IOPS*rule.cost(n, r.WriteShare))
		bytes = min(bytes, float64(r.Bandwidth)*rule.byteCost(n, r.WriteShare))
	}
	switch {
	case m.IOPS > 0 && iops > m.IOPS:
		return fmt.Errorf("it takes %s IOPS of its volumes, and %s sustains %s on them", price.Number(math.Ceil(iops)), m.Name, price.Number(m.IOPS))
	case m.Volume > 0 && bytes > float64(m.Volume):
		return fmt.Errorf("it takes %.0f MiB/s of its volumes, and %s sustains %.0f on them", bytes/(1<<20), m.Name, m.Volume.MiB())
	}
	return nil
}

// networkPages returns how many pages a second the network of the database's machine lets through, which is
// all that it sees of a pool.
func (r Request) networkPages() float64 {
	if r.Machine == nil || r.Machine.Network == 0 {
		return math.Inf(1)
	}
	return float64(r.Machine.Network) / 8 / page
}

// page is the size of InnoDB's, and of the operations that are counted.
const page = 16 << 10

// buy buys n volumes that give what is asked for through the layout.
func (r Request) buy(c price.Catalogue, rule Rule, v price.Volume, n int) (price.Option, error) {
	w := price.Wish{IOPS: r.IOPS * rule.cost(n, r.WriteShare), Bandwidth: price.Bandwidth(float64(r.Bandwidth) * rule.byteCost(n, r.WriteShare)),
		Size: price.Size(float64(r.Size) * float64(n) / rule.usable(n))}
	if rule.isCeph() {
		return r.buyNodes(c, v, n, w)
	}
	return c.Set(v, n, w, r.Machine)
}
