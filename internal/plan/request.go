package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/price"
)

// Own names one's own hardware among the providers.
const Own = "own"

// Failure is what may be lost.
type Failure string

// The failures, each worse than the one before.
const (
	Machine Failure = "machine" // the server's machine; its volumes are left
	Disk    Failure = "disk"    // a volume or a disk under the data
	Zone    Failure = "zone"    // a zone, or a site
	Region  Failure = "region"
)

// Failures lists them, the mildest first.
func Failures() []Failure { return []Failure{Machine, Disk, Zone, Region} }

const onDemand = "on-demand" // of Request.Commitment

// Request holds what is asked of a database.
type Request struct {
	Data    price.Size `json:"data_bytes"`           // today
	TPS     float64    `json:"tps"`                  // transactions/s at the busiest
	Queries float64    `json:"queries_per_tx"`       // queries of a transaction
	Writes  float64    `json:"write_share"`          // the share of the queries that write
	P99     float64    `json:"p99_ms,omitempty"`     // ms that 99 % of the transactions may take; 0: not asked
	RPO     *float64   `json:"rpo_s,omitempty"`      // seconds of acknowledged commits that may be lost; nil: not asked
	RTO     *float64   `json:"rto_s,omitempty"`      // seconds until writes go on; nil: not asked
	Survive Failure    `json:"survive,omitempty"`    // RPO and RTO hold for this failure, and the milder ones; "": none is asked for
	Budget  float64    `json:"usd_month,omitempty"`  // 0: none
	On      []string   `json:"on,omitempty"`         // providers, Own among them; none: all of the catalogue
	Regions int        `json:"regions"`              // in which data can be read
	RTT     float64    `json:"region_rtt,omitempty"` // ms between regions; 0: not known
	People  float64    `json:"people"`               // persons who can be called at any hour
	// ReadScaling: reads are served by more than one server; ConsistentReads: each of them sees every
	// acknowledged commit.
	ReadScaling       bool          `json:"read_scaling,omitempty"`
	ConsistentReads   bool          `json:"consistent_reads,omitempty"`
	MultiMaster       bool          `json:"multi_master,omitempty"`
	ChangeApplication bool          `json:"change_application,omitempty"` // for sharding, or another engine
	Kubernetes        bool          `json:"kubernetes,omitempty"`
	Flavour           mycnf.Flavour `json:"flavour"`
	Commitment        string        `json:"commitment"` // "on-demand", "reserved" or "spot"
	// Figures holds what was given or measured, by name; Sources what measured ones are from.
	Figures map[string]float64 `json:"figures,omitempty"`
	Sources map[string]string  `json:"figure_sources,omitempty"`
	// Measured is the experiment that figures are from; nil: none. FixedPool: the buffer pool stays as it was
	// measured.
	Measured  *Measured `json:"measured,omitempty"`
	FixedPool bool      `json:"fixed_pool,omitempty"`
	// Costs are what experiments of the user's own machine say that parts cost in throughput.
	Costs  []Cost             `json:"costs_measured,omitempty"`
	Today  time.Time          `json:"today"`
	values map[string]float64 // all figures: see filled
}

func (r Request) withDefaults() Request {
	if r.Survive == "" && (r.RPO != nil || r.RTO != nil) {
		r.Survive = Machine
	}
	if r.Flavour == "" {
		r.Flavour = mycnf.MySQL
	}
	if r.Commitment == "" {
		r.Commitment = onDemand
	}
	if r.Regions == 0 {
		r.Regions = 1
	}
	return r.filled()
}

// reaches tells whether the request asks to survive a failure.
func (r Request) reaches(f Failure) bool {
	return slices.Index(Failures(), f) <= slices.Index(Failures(), r.Survive)
}

// zero tells whether no acknowledged commit may be lost.
func (r Request) zero() bool { return r.RPO != nil && *r.RPO == 0 }

// stretched tells whether nothing may be lost with a region.
func (r Request) stretched() bool { return r.zero() && r.reaches(Region) }

// together tells whether only copies that commit together over regions meet what is asked: with those that follow, something
// is lost, somebody has to act, and reads are stale.
func (r Request) together() bool {
	late := r.People == 0 || r.RTO != nil && *r.RTO < r.figure("respond")+r.figure("by-hand")
	return r.reaches(Region) && (r.zero() || late) || r.ConsistentReads && r.Regions > 1
}

// inTime tells whether a commit that waits for another region is within p99. A round trip that is not known is not.
func (r Request) inTime() bool { return r.P99 == 0 || r.RTT > 0 && r.RTT <= r.P99 }

// check refuses what makes no sense, and what contradicts itself.
func (r Request) check(c price.Catalogue) error {
	for _, err := range []error{r.checkNumbers(), r.checkFigures(), r.checkProviders(c), r.checkToday(c), r.contradiction()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r Request) checkNumbers() error {
	switch {
	case !(r.Data > 0) || r.Data > 1<<60:
		return errors.New("--data: give the size of the data today, as in 200GiB, 1 EiB at most")
	case !(r.TPS > 0) || r.TPS > 1e10:
		return fmt.Errorf("--tps %v: give transactions/s at the busiest, more than 0", r.TPS)
	case !(r.Queries >= 1) || r.Queries > 1e10:
		return fmt.Errorf("--queries %v: give the queries of a transaction, 1 or more", r.Queries)
	case !(r.Writes >= 0 && r.Writes <= 1):
		return fmt.Errorf("--writes %v: give the share of the queries that write, 0 to 1", r.Writes)
	case !sane(r.P99, r.Budget, r.RTT, r.People):
		return errors.New("--p99, --budget, --region-rtt and --people are numbers, and not negative")
	case r.Regions < 1 || r.Regions > mostRegions:
		return fmt.Errorf("--regions %d: give 1 to %d; no provider has more", r.Regions, mostRegions)
	case r.RPO != nil && !(*r.RPO >= 0), r.RTO != nil && !(*r.RTO >= 0):
		return errors.New("--rpo and --rto are not negative")
	case r.Survive != "" && !slices.Contains(Failures(), r.Survive):
		return fmt.Errorf("--survive %s: want machine, disk, zone or region", r.Survive)
	case !slices.Contains([]string{onDemand, "reserved", "spot"}, r.Commitment):
		return fmt.Errorf("--commitment %s: want on-demand, reserved or spot", r.Commitment)
	}
	return nil
}

// mostRegions bounds them: beyond lies a slip of the keyboard.
const mostRegions = 100

// checkToday refuses a day on which the catalogue's prices were not known yet.
func (r Request) checkToday(c price.Catalogue) error {
	for _, layout := range []string{time.DateOnly, "2006-01", "2006"} {
		if from, err := time.Parse(layout, c.Date); err == nil && !r.Today.IsZero() && r.Today.Before(from) {
			return fmt.Errorf("--today %s is before the catalogue's own date, %s: its prices were not known yet", r.Today.Format(time.DateOnly), c.Date)
		}
	}
	return nil
}

// sane tells whether all of them are 0 or more, and not endless.
func sane(numbers ...float64) bool {
	return !slices.ContainsFunc(numbers, func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) })
}

func (r Request) checkProviders(c price.Catalogue) error {
	known := providersOf(c)
	for _, name := range r.On {
		if name != Own && !slices.Contains(known, name) {
			return fmt.Errorf("--on %s: the catalogue has %s; %s is one's own hardware", name, strings.Join(known, ", "), Own)
		}
	}
	return nil
}

// contradiction names two requirements that exclude each other.
func (r Request) contradiction() error {
	onlyOwn := len(r.On) == 1 && r.On[0] == Own
	switch {
	case r.together() && r.P99 > 0 && r.RTT == 0:
		return fmt.Errorf("%s makes every commit wait for another region, and how far that is is not known: give --region-rtt, which --p99 %gms is held against; a figure that is not known is never 0", r.apart(), r.P99)
	case r.together() && !r.inTime():
		return fmt.Errorf("%s makes every commit wait for another region, %g ms away (--region-rtt): no commit is as fast as --p99 %gms", r.apart(), r.RTT, r.P99)
	case r.RTO != nil && *r.RTO == 0:
		return errors.New("--rto 0s: every fail-over takes time, and be it to notice; the fastest that is published begins at 5 s (Galera)")
	case r.People == 0 && onlyOwn:
		return errors.New("--people 0 with --on own: nobody would be there who replaces a disk")
	case r.ConsistentReads && !r.ReadScaling:
		return errors.New("--consistent-reads is about reads from more than one server: give --read-scaling as well")
	case r.MultiMaster && r.Writes == 0:
		return errors.New("--multi-master with --writes 0: nothing is written")
	case r.Commitment == "spot" && !r.ReadScaling:
		return errors.New("--commitment spot without --read-scaling: a provider takes spot machines back at any time, so only further copies for reads may be some, never the ones that hold what was acknowledged")
	}
	return nil
}

// apart names what makes commits wait for another region: see together.
func (r Request) apart() string {
	switch {
	case r.stretched():
		return "--rpo 0s with --survive region"
	case r.ConsistentReads && r.Regions > 1:
		return fmt.Sprintf("--consistent-reads in %d regions", r.Regions)
	case r.People == 0:
		return "--people 0 with --survive region"
	}
	return fmt.Sprintf("--rto %s with --survive region", span(*r.RTO))
}

type giving struct {
	name    string
	without Request
}

// givings lists what could be given up, one at a time.
func (r Request) givings() (list []giving) {
	add := func(asked bool, name string, change func(*Request)) {
		if asked {
			less := r
			change(&less)
			list = append(list, giving{name, less})
		}
	}
	add(r.RTO != nil, "--rto", func(r *Request) { r.RTO = nil })
	add(r.RPO != nil, "--rpo", func(r *Request) { r.RPO = nil })
	add(r.reaches(Disk), "--survive "+string(r.Survive), func(r *Request) { r.Survive = Machine })
	add(r.P99 > 0, "--p99", func(r *Request) { r.P99 = 0 })
	add(r.Budget > 0, "--budget", func(r *Request) { r.Budget = 0 })
	add(r.ConsistentReads, "--consistent-reads", func(r *Request) { r.ConsistentReads = false })
	add(r.MultiMaster, "--multi-master", func(r *Request) { r.MultiMaster = false })
	add(r.Regions > 1, "--regions", func(r *Request) { r.Regions = 1 })
	add(!r.ReadScaling, "reads from one server (--read-scaling)", func(r *Request) { r.ReadScaling = true })
	add(!r.ChangeApplication, "the application as it is (--change-application)", func(r *Request) { r.ChangeApplication = true })
	add(r.People == 0, "--people 0", func(r *Request) { r.People = 1 })
	add(r.ReadScaling, "--read-scaling", func(r *Request) { r.ReadScaling, r.ConsistentReads = false, false })
	add(r.Commitment != onDemand, "--commitment "+r.Commitment, func(r *Request) { r.Commitment = onDemand })
	add(r.Flavour != mycnf.MySQL && r.Measured == nil, "--flavour "+string(r.Flavour), func(r *Request) { r.Flavour = mycnf.MySQL })
	add(len(r.On) > 0, "--on", func(r *Request) { r.On = nil })
	return list
}
