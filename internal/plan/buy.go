package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"david/internal/price"
)

// set is what is bought for an architecture.
type set struct {
	topology
	machine, volumes string
	load             Load
	bill             Bill
	striped          bool // a server has several volumes
	server           server
}

// shop is the catalogue, with what was found in it for one request: many architectures take the same servers.
type shop struct {
	price.Catalogue
	servers map[shelf]found
	volumes map[string][]price.Volume // by provider and zones
}

// volumesFor lists those that a machine's data may lie on.
func (s *shop) volumesFor(m price.Machine) []price.Volume {
	key := fmt.Sprint(m.Provider, m.Zones)
	if _, ok := s.volumes[key]; !ok {
		s.volumes[key] = slices.DeleteFunc(slices.Clone(s.Volumes), func(v price.Volume) bool { return !m.Takes(v) })
	}
	return s.volumes[key]
}

type shelf struct {
	provider string
	managed  bool
	zones    int
	topology
	memory float64
}

type found struct {
	server
	err error
}

func newShop(c price.Catalogue) *shop {
	return &shop{c, map[shelf]found{}, map[string][]price.Volume{}}
}

// providersOf lists those of the catalogue's machines.
func providersOf(c price.Catalogue) (list []string) {
	for _, m := range c.Machines {
		if !slices.Contains(list, m.Provider) {
			list = append(list, m.Provider)
		}
	}
	return list
}

// providers lists where an architecture could be: managed databases at those that have them, own disks on
// own hardware.
func (r Request) providers(c price.Catalogue, a Architecture) (list []string) {
	for _, provider := range providersOf(c) {
		managed := slices.ContainsFunc(c.Machines, func(m price.Machine) bool { return m.Provider == provider && m.Managed })
		if managed == a.Managed && a.Kind != Local && a.Kind != Ceph && (len(r.On) == 0 || slices.Contains(r.On, provider)) {
			list = append(list, provider)
		}
	}
	_, priced := r.Figures["server-price"]
	if !a.Managed && a.Kind != Single && (slices.Contains(r.On, Own) || len(r.On) == 0 && priced) {
		list = append(list, Own)
	}
	if len(list) == 0 && a.Kind == Ceph && len(r.On) == 0 {
		list = append(list, Own)
	}
	return list
}

// buy finds the cheapest set that carries the load, over the numbers of shards and copies that an
// architecture may have; together: all commit together over regions.
func (r Request) buy(at *shop, a Architecture, provider string, together bool) (best set, err error) {
	found := false
	failed := fmt.Errorf("a group has %d members at most, and --consistent-reads in %d regions takes one in each", mostServers, r.Regions)
	for _, shards := range shardCounts(a) {
		for copies := r.fewestCopies(a); copies <= r.mostCopies(a); copies += a.step() {
			t := r.topology(a, shards, copies, together)
			s, err := r.buyTopology(at, a, provider, t)
			switch {
			case err != nil:
				failed = err
				if _, missing := err.(missingFigure); missing {
					return best, err
				}
			case !found || cents(s.bill.USDMonth) < cents(best.bill.USDMonth):
				best, found = s, true
			}
		}
	}
	if !found {
		return best, failed
	}
	return best, nil
}

// shardCounts lists the numbers that are tried.
func shardCounts(a Architecture) []int {
	if a.Kind == Vitess {
		return []int{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}
	}
	return []int{1}
}

// topology lays out copies: those that lie in other regions follow, where not all commit together.
func (r Request) topology(a Architecture, shards, copies int, together bool) topology {
	t := topology{shards: shards, copies: copies, readers: r.readers(copies), blocks: a.Kind == DRBD, together: together}
	switch {
	case together:
		t.followers = max(0, r.Regions-copies)
	case a.replicated():
		t.followers = r.regionCopies()
	}
	return t
}

// fewestCopies: a copy that follows reads what is not the latest, so each region has a member where that is asked.
func (r Request) fewestCopies(a Architecture) int {
	n := a.Copies
	for r.ConsistentReads && a.Consistent && a.spans() && n < r.Regions {
		n += a.step()
	}
	return n
}

// spans tells whether the architecture can commit over regions.
func (a Architecture) spans() bool { return slices.Contains([]Kind{Semisync, Group, Galera}, a.Kind) }

// layouts lists how the copies may lie: at home with others that follow in further regions, and, where that is no slower than
// --p99, over regions, which takes fewer servers, and outlives more. false comes first, and wins where both cost the same.
func (r Request) layouts(a Architecture) []bool {
	switch {
	case !a.spans():
		return []bool{false}
	case r.together():
		return []bool{true}
	case r.inTime() && (r.reaches(Zone) || r.Regions > 1):
		return []bool{false, true}
	}
	return []bool{false}
}

// step keeps groups odd: an even one survives no more than one less.
func (a Architecture) step() int {
	if a.Kind == Group || a.Kind == Galera {
		return 2
	}
	return 1
}

// mostServers bounds the copies for reads: a group has at most nine members. What shards has more shards
// instead.
const mostServers = 9

func (r Request) mostCopies(a Architecture) int {
	if r.ReadScaling && a.ReadScaling && !a.WriteScaling {
		return mostServers
	}
	return a.Copies
}

// readers is how many servers carry the reads when one is lost.
func (r Request) readers(copies int) int {
	if !r.ReadScaling {
		return 1
	}
	return max(1, copies-1)
}

func (r Request) buyTopology(at *shop, a Architecture, provider string, t topology) (set, error) {
	switch {
	case a.Kind == NDB && provider == Own:
		return set{}, errors.New("own hardware of two kinds (data nodes by memory, SQL nodes by CPU) is not planned")
	case a.Kind == NDB:
		return r.buyNDB(at, a, provider)
	case provider == Own:
		return r.buyOwn(a, t)
	}
	s, err := r.cheapestServer(at, a, provider, t, 0)
	if err != nil {
		return set{}, err
	}
	lines, err := s.lines(r, t, t.servers(), r.spare(a, t))
	if err != nil {
		return set{}, err
	}
	return r.finish(at, a, provider, t, s, lines)
}

// servers counts those with data: of all shards, and of each further region.
func (t topology) servers() int { return t.perShard() * t.shards }

// regionCopies counts the copies of a shard that follow in other regions.
func (r Request) regionCopies() int {
	regions := r.Regions
	if r.reaches(Region) {
		regions = max(regions, 2)
	}
	return regions - 1
}

// finish adds what goes with the servers: small machines, traffic.
func (r Request) finish(at *shop, a Architecture, provider string, t topology, s server, lines []Line) (set, error) {
	small, err := r.smallMachines(at, a, provider)
	if err != nil {
		return set{}, err
	}
	traffic, err := r.traffic(a, provider, t)
	if err != nil {
		return set{}, err
	}
	lines = slices.Concat(lines, small, traffic)
	volumes := "included"
	if s.option.Volumes > 0 {
		volumes = s.option.Name
	}
	return set{t, s.machine.Name, volumes, s.load, r.bill(lines, float64(t.shards)*s.load.IOPS), s.option.Volumes > 1, s}, nil
}

// server is one machine with its volumes.
type server struct {
	machine price.Machine
	option  price.Option // its volumes; none: those that come with the machine
	wish    price.Wish   // what they were bought for
	load    Load
	usd     float64 // of both, a month
}

// cheapestServer finds the machine and volumes that carry a topology's busiest server for the least money,
// with so much memory at least.
func (r Request) cheapestServer(at *shop, a Architecture, provider string, t topology, memory float64) (best server, err error) {
	key := shelf{provider, a.Managed, a.Zones, t, memory}
	if known, ok := at.servers[key]; ok {
		return known.server, known.err
	}
	best, err = r.cheapestOf(at, key)
	at.servers[key] = found{best, err}
	return best, err
}

func (r Request) cheapestOf(at *shop, k shelf) (best server, err error) {
	failed := fmt.Errorf("the catalogue has no such machine of %s", k.provider)
	largest, found := price.Machine{}, false
	for _, m := range at.Machines {
		if m.Provider != k.provider || m.Managed != k.managed || k.managed && m.Zones != k.zones {
			continue
		}
		if usd, ok := at.USD(m.Price); found && ok && r.atLeast(usd) > best.usd {
			continue
		}
		s, err := r.server(at, m, k.topology, k.memory)
		switch {
		case err != nil && (unknown(failed) || !bigger(m, largest) && !unknown(err)):
		case err != nil: // that a price is missing says more than that a machine is too small
			failed, largest = err, m
		case !found || cents(s.usd) < cents(best.usd) || cents(s.usd) == cents(best.usd) && !m.Doubt("price"):
			best, found = s, true
		}
	}
	if !found {
		return best, failed
	}
	return best, nil
}

// unknown tells an error of a price that is not known from one of a load that nothing carries.
func unknown(err error) bool {
	var missing missingFigure
	return errors.As(err, &missing) || errors.Is(err, price.ErrNoRate) || errors.Is(err, errNoVolumes)
}

func bigger(a, b price.Machine) bool {
	return a.CPUs > b.CPUs || a.CPUs == b.CPUs && a.Memory >= b.Memory
}

// server fits a machine and the cheapest volumes for it to what it has to carry.
func (r Request) server(at *shop, m price.Machine, t topology, memory float64) (s server, err error) {
	n, err := r.need(t, float64(m.Memory))
	if err != nil {
		return s, err
	}
	if err := r.fitsMachine(m, n, memory); err != nil {
		return s, err
	}
	usd, unpriced := r.priceOf(at, m)
	s = server{machine: m, load: r.loadOf(n), usd: usd}
	s.load.OfCores, s.load.OfNetwork, s.load.MachineIOPS = m.CPUs, float64(m.Network), m.IOPS
	room := price.Size(float64(n.room) / r.figure("fill"))
	if m.IncludedIOPS >= n.iops() && m.IncludedSize >= room {
		s.load.OfIOPS, s.load.OfRoom, s.load.UncertainIOPS = m.IncludedIOPS, m.IncludedSize, m.Doubt("included_iops")
		return s, unpriced
	}
	iops := math.Ceil(max(1, n.iops())) // whole numbers, as a command says them
	s, err = s.withVolumes(at, price.Wish{IOPS: iops, Size: price.Size(math.Ceil(room.GiB()) * (1 << 30)), Bandwidth: price.Bandwidth(iops * page)})
	if err != nil { // that it cannot be had comes before that it has no price
		return s, err
	}
	return s, unpriced
}

// priceOf is what a machine costs a month under the commitment asked for.
func (r Request) priceOf(at *shop, m price.Machine) (float64, error) {
	usd, ok := at.USD(m.Price)
	if !ok {
		return 0, fmt.Errorf("%s is priced in %s, and %w", m.Name, m.Price.Currency, price.ErrNoRate)
	}
	return r.committed(m, usd)
}

const page = 16 << 10

// errNoVolumes: a machine without any is no load that is too large.
var errNoVolumes = errors.New("the catalogue has no volumes of this provider")

// withVolumes buys the cheapest volumes for a machine, one or a stripe, as david storage plan does.
func (s server) withVolumes(at *shop, w price.Wish) (server, error) {
	m := s.machine
	var why error
	var best *price.Option
	for _, v := range at.volumesFor(m) {
		most := price.MostVolumes
		if v.Managed() {
			most = 1
		}
		o, err := price.Cheapest(1, most, 1, func(n int) (price.Option, error) { return at.Set(v, n, w, &m) })
		switch {
		case err != nil && why != nil && unknown(why):
		case err != nil:
			why = fmt.Errorf("%s: %w", v.Name, err)
		case best == nil || price.Cheaper(o, *best) < 0:
			best = &o
		}
	}
	if best == nil && why == nil {
		return s, fmt.Errorf("%s of %s: %w", m.Name, m.Provider, errNoVolumes)
	}
	if best == nil {
		return s, fmt.Errorf("%s IOPS on %s for %s: %w", price.Number(w.IOPS), price.GiB(w.Size.GiB()), m.Name, why)
	}
	s.option, s.wish = *best, w
	s.usd += best.USDMonth
	s.load.OfIOPS, s.load.OfRoom, s.load.UncertainIOPS = best.IOPS, price.Size(best.GiB*(1<<30)), best.UncertainIOPS
	return s, nil
}

// fitsMachine holds a need against what a machine has.
func (r Request) fitsMachine(m price.Machine, n need, memory float64) error {
	switch {
	case n.cores > m.CPUs:
		return fmt.Errorf("%.1f cores are needed to use %.0f %% of them, and %s has %g", n.cores, 100*r.figure("fill"), m.Name, m.CPUs)
	case float64(m.Memory) < memory:
		return fmt.Errorf("%s of memory are needed, and %s has %s", price.GiB(memory/(1<<30)), m.Name, price.GiB(m.Memory.GiB()))
	case m.IOPS > 0 && math.Ceil(n.iops()) > m.IOPS:
		return fmt.Errorf("%s IOPS are needed to use %.0f %% of them, and %s lets %s through", price.Number(math.Ceil(n.iops())), 100*r.figure("fill"), m.Name, price.Number(m.IOPS))
	case m.Network > 0 && n.network > float64(m.Network):
		return fmt.Errorf("%.2f Gbit/s are needed, and %s has %.2f", n.network/1e9, m.Name, float64(m.Network)/1e9)
	case m.Shared && r.P99 > 0:
		return fmt.Errorf("the CPUs of %s are shared with others: no p99 can be promised on them", m.Name)
	}
	return nil
}

// atLeast is the least that a machine of a price can cost under the commitment asked for.
func (r Request) atLeast(usd float64) float64 {
	if r.Commitment == "reserved" {
		return usd * (1 - r.figure("reserved-discount"))
	}
	return usd
}

// committed returns the machine's price under the commitment asked for. Spot is for copies for reads alone;
// see lines.
func (r Request) committed(m price.Machine, usd float64) (float64, error) {
	if r.Commitment != "reserved" {
		return usd, nil
	}
	off, err := r.known("reserved-discount")
	if err != nil {
		return 0, fmt.Errorf("the reserved price of %s: %w", m.Name, err)
	}
	return usd * (1 - off), nil
}

// spare counts the servers that only reads need, which may be spot machines.
func (r Request) spare(a Architecture, t topology) int {
	if r.Commitment != "spot" {
		return 0
	}
	return (t.copies - a.Copies) * t.shards
}

// lines bills n servers, some of them spot machines.
func (s server) lines(r Request, t topology, n, spot int) (list []Line, err error) {
	m, usd := s.machine, s.usd-s.option.USDMonth
	list = []Line{monthly(m.Name, float64(n-spot), usd, m.Source, m.Date, m.Doubt("price"))}
	if r.regionCopies() > 0 || t.together {
		list[0].What += " (in every region at the first one's price)"
		list[0].Uncertain = true
	}
	if spot > 0 {
		off, err := r.known("spot-discount")
		if err != nil {
			return nil, fmt.Errorf("the spot price of %s: %w", m.Name, err)
		}
		list = append(list, monthly(m.Name+", spot, for reads", float64(spot), usd*(1-off), dated(m.Source, m.Date)+", less "+byFlag("spot-discount"), "", false))
	}
	for _, p := range s.option.Parts {
		list = append(list, monthly(s.option.Volume+", "+p.What, float64(n)*p.Count, p.USDEach, s.option.Source, s.option.Date, s.option.UncertainPrice))
	}
	return list, nil
}

// helpers counts the small machines that an architecture takes beside those that hold data, and says what for.
func (r Request) helpers(a Architecture) (n float64, what string) {
	if r.wantsManager(a) && a.Kind != Vitess { // whose VTOrc runs beside VTGate
		return float64(a.Small) + 3, "fail-over manager"
	}
	return float64(a.Small), a.SmallFor
}

// smallMachines bills arbitrators, routers and the fail-over manager on the provider's cheapest machine.
func (r Request) smallMachines(at *shop, a Architecture, provider string) ([]Line, error) {
	n, what := r.helpers(a)
	if n == 0 {
		return nil, nil
	}
	var best *price.Machine
	least := 0.0
	for _, m := range at.Machines {
		usd, ok := at.USD(m.Price)
		if m.Provider == provider && !m.Managed && ok && (best == nil || usd < least) {
			best, least = &m, usd
		}
	}
	if best == nil {
		return nil, fmt.Errorf("the catalogue has no machine of %s for its %s", provider, what)
	}
	return []Line{monthly(best.Name+" ("+what+")", n, least, best.Source, best.Date, best.Doubt("price"))}, nil
}

// month is 730 hours, in seconds.
const month = price.HoursPerMonth * 3600

// traffic bills what copies are sent across zones and regions. Between a managed database's zones it is in
// the price.
func (r Request) traffic(a Architecture, provider string, t topology) (list []Line, err error) {
	if !a.replicated() {
		return nil, nil
	}
	scale, err := r.writesScale()
	if err != nil {
		return nil, err
	}
	gb := r.TPS * r.Queries / r.figure("measured-queries") * scale * r.copied(t) * month / 1e9 // to one copy
	copies := float64(t.copies - 1)
	switch {
	case t.together:
		return r.sent(list, "to other regions, GB", "region-traffic", float64(t.perShard()-1)*gb, 0)
	case r.reaches(Zone) && provider != Own: // which lies in one site: rule zones
		known := 0.0
		if provider == "EC2" {
			known = 0.02
		}
		if list, err = r.sent(list, "between zones, GB", "zone-traffic", copies*gb, known); err != nil {
			return nil, err
		}
	}
	if t.followers > 0 {
		return r.sent(list, "to other regions, GB", "region-traffic", float64(t.followers)*gb, 0)
	}
	return list, nil
}

// sent bills traffic at a figure's price, else at what is known of the provider.
func (r Request) sent(list []Line, what, figure string, gb, known float64) ([]Line, error) {
	if gb == 0 {
		return list, nil
	}
	usd, err := r.known(figure)
	source, date := r.from(figure)
	if err != nil && known == 0 {
		return nil, err
	}
	if err != nil {
		usd, source, date = known, "US$.01 a GB each way, as collected from the provider", "2026-11"
	}
	return append(list, monthly(what, math.Ceil(gb), usd, source, date, false)), nil
}

// buyNDB buys data nodes that hold the data twice in memory, and two SQL nodes. What they do in
// transactions/s nobody here has measured: InnoDB's CPU stands in for it.
func (r Request) buyNDB(at *shop, a Architecture, provider string) (set, error) {
	var failed error
	for nodes := 2; nodes <= 144; nodes += 2 {
		memory := 2 * float64(r.room()) / float64(nodes) / r.figure("fill")
		t := topology{shards: 1, copies: 1, readers: 1}
		s, err := r.cheapestServer(at, a, provider, t, memory)
		if err != nil {
			failed = err
			continue
		}
		lines, err := s.lines(r, t, nodes, 0)
		if err != nil {
			return set{}, err
		}
		lines[0].What += " (data nodes)"
		lines = append(lines, monthly(s.machine.Name+" (SQL nodes)", 2, s.usd-s.option.USDMonth, s.machine.Source, s.machine.Date, true))
		lines[0].Uncertain = true
		out, err := r.finish(at, a, provider, topology{shards: 1, copies: 2, readers: 1}, s, lines)
		out.load.Extrapolated = "NDB was not measured: InnoDB's figures stand in for it"
		return out, err
	}
	return set{}, failed
}
