package storage

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"david/internal/price"
)

func catalogue(t *testing.T, provider string) price.Catalogue {
	t.Helper()
	c, err := price.Default()
	if err == nil {
		c, err = c.OnlyOf(provider)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask is a request of so many IOPS, half of them writes, on so many GiB.
func ask(iops, gib float64) Request {
	return Request{Wish: price.Wish{IOPS: iops, Size: price.Size(gib * (1 << 30))}, WriteShare: 0.5}
}

func like(t *testing.T, r Request, name string) Request {
	t.Helper()
	m, ok := catalogue(t, "").Machine(name)
	if !ok {
		t.Fatal("no " + name)
	}
	r.Machine = &m
	return r
}

func plan(t *testing.T, provider string, r Request) Plan {
	t.Helper()
	p, err := New(catalogue(t, provider), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p Plan) of(t *testing.T, kind Kind, volume string) Choice {
	t.Helper()
	c, found := p.find(func(c Choice) bool { return c.Layout == kind && c.Volume == volume })
	if !found {
		t.Fatalf("no %s of %s; refused: %+v", kind, volume, p.Refused)
	}
	return c
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-3*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Volumes of 256 GB (238.42 GiB) and 5,000 IOPS at US$8, nodes at US$66: what each layout of them gives.
func TestLayouts(t *testing.T) {
	for _, x := range []struct {
		kind                          Kind
		iops, gib                     float64 // asked for
		n                             int
		usd, reads, writes, mix       float64
		usable                        float64
		survives                      int
		degradedReads, degradedWrites float64
		lost                          string
	}{
		{One, 5000, 200, 1, 8, 5000, 5000, 5000, 238.42, 0, 0, 0, "all data"},
		{Stripe, 20_000, 900, 4, 32, 20_000, 20_000, 20_000, 953.67, 0, 0, 0, "all data"},
		{Stripe, 20_000, 1024, 5, 40, 25_000, 25_000, 25_000, 1192.09, 0, 0, 0, "all data"}, // 4.3 are a TiB
		// A pair reads with both and writes as one; 1 / (.5/40,000 + .5/20,000).
		{RAID10, 20_000, 900, 8, 64, 40_000, 20_000, 26_667, 953.67, 1, 20_000, 20_000, "the other of its pair"},
		{RAID10, 6000, 200, 2, 16, 10_000, 5000, 6667, 238.42, 1, 5000, 5000, "the next one"},
		// 4 x 5,000 / 3 and x .66; a record of 4 sectors takes 6: 4 x 238.42 x 4/6; three of four are left.
		{RAIDZ1, 8500, 600, 4, 32, 6667, 13_200, 8859, 635.78, 1, 5000, 9900, "fewer IOPS than asked for"},
		// A record's data lie on 2 of 4 disks; it takes 9 sectors where RAIDZ1's takes 6: .66 x 6/9 = .44.
		{RAIDZ2, 9000, 400, 4, 32, 10_000, 8800, 9362, 423.86, 2, 7500, 6600, "no data"},
		// 3 x (8 + 66); 3 x 238.42 / 2 x .7.
		{Ceph2, 9000, 240, 3, 222, 15_000, 7500, 10_000, 250.34, 1, 10_000, 5000, "105 %, and Ceph copies nothing to a disk above 90 %"},
		{Ceph3, 7000, 160, 3, 222, 15_000, 5000, 7500, 166.89, 2, 10_000, 3333, "each that is left has its copy already"},
	} {
		c := plan(t, "E2E", ask(x.iops, x.gib)).of(t, x.kind, "e2e-volume")
		name := c.Name
		near(t, name+", volumes", float64(c.Volumes), float64(x.n))
		near(t, name+", US$", c.USDMonth, x.usd)
		near(t, name+", reads", c.IOPS.Reads, x.reads)
		near(t, name+", writes", c.IOPS.Writes, x.writes)
		near(t, name+", mix", c.IOPS.Mix, x.mix)
		near(t, name+", GiB", c.UsableGiB, x.usable)
		if c.Survives != x.survives || !strings.Contains(c.Lost, x.lost) || (c.Degraded == nil) != (x.survives == 0) {
			t.Errorf("%s: survives %d, %q, %v", name, c.Survives, c.Lost, c.Degraded)
		}
		if c.Degraded != nil {
			near(t, name+", reads with one lost", c.Degraded.Reads, x.degradedReads)
			near(t, name+", writes with one lost", c.Degraded.Writes, x.degradedWrites)
		}
	}
}

// TestLostBandwidth: with a lost volume its bandwidth is lost, too, where that is what bounds the whole: 3 x 140 MiB/s are 26,880 pages, of which
// two thirds are left.
func TestLostBandwidth(t *testing.T) {
	r := ask(20_000, 1024)
	r.Bandwidth = 100 << 20
	for kind, copies := range map[Kind]float64{Ceph2: 2, Ceph3: 3} {
		c := plan(t, "Google", r).of(t, kind, "gcp-hyperdisk-balanced")
		near(t, c.Name+", nodes", float64(c.Volumes), 3)
		near(t, c.Name+", reads", c.IOPS.Reads, 26_880)
		near(t, c.Name+", reads with one lost", c.Degraded.Reads, 17_920)
		near(t, c.Name+", writes with one lost", c.Degraded.Writes, 17_920/copies)
		if !strings.Contains(c.Lost, "fewer IOPS than asked for") {
			t.Errorf("%s: %q", c.Name, c.Lost)
		}
	}
}

// What was measured under ZFS of RAIDZ1 of four disks of 500 IOPS; it is said to be a guess, as the writes were not synced.
func TestRAIDZAsMeasured(t *testing.T) {
	r, _ := Layout{RAIDZ1, 4}.rule()
	if reads, writes := 500*r.reads(4), 500*r.writes(4); math.Abs(reads-660) > 10 || math.Abs(writes-1318) > 10 {
		t.Errorf("reads %v, writes %v", reads, writes)
	}
	for _, l := range []Layout{{RAIDZ1, 3}, {RAIDZ1, 4}, {RAIDZ1, 5}, {RAIDZ1, 9}, {RAIDZ2, 4}, {RAIDZ2, 6}} {
		r, _ := l.rule()
		if !r.guessed(l.N) || r.writes(l.N) > 0.66*float64(l.N) {
			t.Errorf("%v: guessed %v, writes %v", l, r.guessed(l.N), r.writes(l.N))
		}
	}
}

// Two of four monitors are no majority: five nodes are, at least, where two may be lost.
func TestMonitors(t *testing.T) {
	r := ask(7000, 160)
	c := plan(t, "E2E", r).of(t, Ceph3, "e2e-volume")
	if c.Volumes != 3 || !strings.Contains(strings.Join(c.Notes, "\n"), "no majority of its monitors") {
		t.Errorf("%+v", c)
	}
	r.Survive = 2
	c = plan(t, "E2E", r).of(t, Ceph3, "e2e-volume")
	if c.Volumes != 5 || strings.Contains(strings.Join(c.Notes, "\n"), "majority") {
		t.Errorf("%+v", c)
	}
}

// printed is all that david storage plan prints.
func printed(p Plan, out io.Writer) error { return errors.Join(p.Text(out), p.Recipes(out)) }

// What the catalogue does not know of a machine is said, and what it may not take.
func TestUnknownLimits(t *testing.T) {
	r := like(t, ask(40_000, 900), "do-8vcpu-16gb")
	var out strings.Builder
	if err := printed(plan(t, "", r), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nthe catalogue does not know how many IOPS do-8vcpu-16gb lets through: nothing was held against it", "\nmore than 8 volumes: see how many volumes the machine takes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := printed(plan(t, "", like(t, ask(3000, 200), "ec2-m6i.large")), &out); err != nil || strings.Contains(out.String(), "lets through: nothing") || strings.Contains(out.String(), "more than 8") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// The first lines name another provider, and stay with the cheapest's own where they can.
func TestHeadProviders(t *testing.T) {
	a, b := Choice{Layout: Stripe, Provider: "A", Volume: "va", Name: "stripe of 2 va", Volumes: 2, USDMonth: 1}, Choice{Layout: One, Provider: "B", Volume: "vb", Name: "one vb", Volumes: 1, USDMonth: 2, UncertainPrice: true}
	mirror := Choice{Layout: RAID10, Provider: "B", Name: "RAID 1 of 2 vb", Survives: 1, USDMonth: 3}
	p := Plan{Choices: []Choice{a, b, mirror}}
	if got := p.bargain(a); got != "what US$1.00 of 2 volumes gives, US$2.00? of one would, at B (vb)" {
		t.Error(got)
	}
	if got := p.weakness(a); !strings.HasSuffix(got, "the cheapest that can: RAID 1 of 2 vb, US$3.00, at B") {
		t.Error(got)
	}
	mirror.Provider, mirror.Name, mirror.USDMonth = "A", "RAID 1 of 2 va", 4
	p.Choices = append(p.Choices, mirror)
	if got := p.weakness(a); !strings.HasSuffix(got, "the cheapest that can: RAID 1 of 2 va, US$4.00") {
		t.Error(got)
	}
}

// The room of a record of 4 sectors, by the rule of the OpenZFS documentation.
func TestRecordSectors(t *testing.T) {
	for _, x := range []struct{ n, parity, want int }{{3, 1, 6}, {4, 1, 6}, {5, 1, 6}, {9, 1, 6}, {4, 2, 9}, {5, 2, 9}, {6, 2, 6}, {9, 2, 6}} {
		near(t, "sectors", recordSectors(x.n, x.parity), float64(x.want))
	}
}

// The study's sum that does not add up, and its room that is no TiB, are told with its volumes.
func TestStudyP1Said(t *testing.T) {
	var out strings.Builder
	if err := printed(plan(t, "E2E", ask(20_000, 900)), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"US$138", "66 + 4 x 8 = 98", "4 x 232.8 GiB are 931 GiB", "660 reads/s and 1,318 writes/s under ZFS, single runs in an emulated guest",
		"what US$32.00 of 4 volumes gives, US$32.00? of one would (e2e-volume-large)", "it cannot survive: the loss of any volume", "the server must not start without the mount: systemctl edit mysql, [Unit] RequiresMountsFor=MOUNTPOINT"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if at := strings.Index(out.String(), "\n\n"); strings.Count(out.String()[:at], "\n") != 4 {
		t.Errorf("the head is not of five lines:\n%s", out.String())
	}
}

func TestMachineBinds(t *testing.T) {
	r := like(t, ask(3000, 2000), "ec2-m6i.large") // it sustains 3,600 IOPS, .78 Gbit/s
	p := plan(t, "", r)
	c := p.of(t, Stripe, "ebs-gp3")
	near(t, "IOPS", c.IOPS.Mix, 3600)
	near(t, "with the machine", c.WithMachine, 160+0.096*730)
	if !strings.Contains(c.Cap, "3,600 of the 6,000") {
		t.Errorf("%q", c.Cap)
	}
	ceph := p.of(t, Ceph2, "ebs-gp3")
	near(t, "through the network", ceph.IOPS.Reads, 0.78e9/8/16384)
	if ceph.Node != "ec2-m6i.large" || !strings.Contains(ceph.Cap, "network") {
		t.Errorf("%+v", ceph)
	}
	for _, want := range []string{"RAID 10: it takes 4,500 IOPS of its volumes, and ec2-m6i.large sustains 3,600 on them", "RAIDZ1: it takes 5,273 IOPS"} {
		if !p.refuses(want) {
			t.Errorf("no %q in %+v", want, p.Refused)
		}
	}
	r.IOPS = 6000
	if p := plan(t, "", r); len(p.Choices) > 0 || !p.refuses("Ceph, 2 replicas: the network of ec2-m6i.large lets 5,950 pages") {
		t.Errorf("%+v", p)
	}
	r.IOPS, r.Bandwidth = 3000, 100<<20
	if p := plan(t, "", r); !p.refuses("stripe: it takes 100 MiB/s of its volumes, and ec2-m6i.large sustains 77 on them") {
		t.Errorf("%+v", p.Refused)
	}
}

// 10,000 pages of 16 KiB are 156.25 MiB/s, and 125 come with a gp3: 100 x .08 + 7,000 x .005 + 31.25 x .04.
// Asked for less bandwidth than that, it gives as many pages as go through: 125 MiB/s are 8,000.
func TestBandwidth(t *testing.T) {
	r := ask(10_000, 100)
	near(t, "US$", plan(t, "EC2", r).of(t, One, "ebs-gp3").USDMonth, 44.25)
	r.IOPS, r.Bandwidth = 8000, 100<<20
	near(t, "US$", plan(t, "EC2", r).of(t, One, "ebs-gp3").USDMonth, 33)
	near(t, "pages", plan(t, "EC2", r).of(t, One, "ebs-gp3").IOPS.Mix, 8000)
	r.Bandwidth = 100 << 20
	r.IOPS = 3000
	near(t, "pages", plan(t, "EC2", r).of(t, RAID10, "ebs-gp3").IOPS.Writes, 3000) // of 2 x 3,000
}

func (p Plan) refuses(text string) bool {
	return slices.ContainsFunc(p.Refused, func(r price.Refusal) bool { return strings.HasPrefix(r.Name+": "+r.Why, text) })
}

func TestRefused(t *testing.T) {
	r := ask(20_000, 1024)
	r.Survive = 2
	p := plan(t, "", r)
	for _, want := range []string{"one volume: a lost volume takes all", "stripe: a lost volume takes all", "RAID 10: two lost volumes may be the two of a pair", "RAIDZ1: it survives 1 lost, and 2 are asked for",
		"Ceph, 2 replicas: it survives 1", "hetzner-volume, Ceph, 3 replicas: it is priced in EUR, and the catalogue states no exchange rate",
		"do-volume, RAIDZ2: at most 5,000 IOPS a volume, and no more than 9 are tried"} {
		if !p.refuses(want) {
			t.Errorf("no %q in %+v", want, p.Refused)
		}
	}
	if p := plan(t, "DigitalOcean", ask(1e6, 100)); len(p.Choices) > 0 || !p.refuses("do-volume, stripe, RAID 10, Ceph, 2 replicas, Ceph, 3 replicas: at most 5,000 IOPS a volume, and no more than 16 are tried") {
		t.Errorf("%+v", p.Refused)
	}
}

// A rate lets prices in another currency take part, nodes included.
func TestCurrency(t *testing.T) {
	c := catalogue(t, "Hetzner")
	c.Rates = []price.Rate{{Currency: "EUR", USD: 1.1}}
	p, err := New(c, ask(9000, 100))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "stripe of 2, 100 GiB", p.of(t, Stripe, "hetzner-volume").USDMonth, 100*1.073742*0.0572*1.1)
	p.of(t, Ceph2, "hetzner-volume")
}

func TestBadRequests(t *testing.T) {
	with := func(change func(*Request)) Request {
		r := ask(100, 100)
		change(&r)
		return r
	}
	for _, x := range []struct {
		r    Request
		want string
	}{
		{ask(0, 100), "--iops 0"},
		{ask(-1, 100), "--iops -1"},
		{ask(math.NaN(), 100), "--iops NaN"},
		{ask(math.Inf(1), 100), "--iops +Inf"},
		{ask(100, 0), "--size"},
		{ask(100, math.NaN()), "--size"},
		{ask(100, math.Inf(1)), "--size"},
		{with(func(r *Request) { r.WriteShare = -0.1 }), "--write-share -0.1"},
		{with(func(r *Request) { r.WriteShare = 1.1 }), "--write-share 1.1"},
		{with(func(r *Request) { r.WriteShare = math.NaN() }), "--write-share NaN"},
		{with(func(r *Request) { r.Survive = -1 }), "--survive -1"},
		{with(func(r *Request) { r.Survive = 3 }), "more than 2 lost volumes"},
		{like(t, ask(100, 100), "rds-m6i.large"), "a managed database"},
		{like(t, ask(100, 100), "vultr-hf-4c-16gb"), "no volumes to choose from"},
	} {
		if _, err := New(catalogue(t, ""), x.r); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.r, err, x.want)
		}
	}
}

// randomRequest asks for anything between little and very much.
func randomRequest(rnd *rand.Rand) Request {
	r := ask(math.Ceil(math.Pow(10, 1+4.5*rnd.Float64())), math.Pow(10, 4.3*rnd.Float64()))
	r.WriteShare, r.Survive = []float64{0, 0.2, 0.5, 0.8, 1, rnd.Float64()}[rnd.IntN(6)], rnd.IntN(3)
	if rnd.IntN(3) == 0 {
		r.Bandwidth = price.Bandwidth(math.Pow(10, 6+3*rnd.Float64()))
	}
	return r
}

// What is chosen gives what was asked for, adds up, survives what it must, and stands in order of price.
func TestEveryChoice(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(18, 1))
	providers := []string{"EC2", "Google", "Azure", "DigitalOcean", "E2E"}
	for range 40 {
		r := randomRequest(rnd)
		last := 0.0
		for _, c := range plan(t, providers[rnd.IntN(len(providers))], r).Choices {
			if r.Bandwidth == 0 && c.IOPS.Mix < r.IOPS*(1-1e-9) || c.UsableGiB < r.Size.GiB()*(1-1e-9) || c.Survives < r.Survive {
				t.Errorf("%s gives %+v, %v GiB, survives %d: asked for %+v", c.Name, c.IOPS, c.UsableGiB, c.Survives, r)
			}
			if r.Survive > 0 && (c.Layout == Stripe || c.Layout == One) {
				t.Errorf("%s is to survive %d", c.Name, r.Survive)
			}
			if d := c.Degraded; d != nil && (d.Reads > c.IOPS.Reads*(1+1e-9) || d.Writes > c.IOPS.Writes*(1+1e-9) || d.Mix > c.IOPS.Mix*(1+1e-9)) {
				t.Errorf("%s gives more with one lost: %+v, %+v", c.Name, *d, c.IOPS)
			}
			sum := 0.0
			for _, part := range c.Parts {
				sum += part.USDMonth
			}
			near(t, c.Name+", its parts", sum, c.USDMonth)
			if c.USDMonth < last-0.01 {
				t.Errorf("%s stands behind US$%v", c.Name, last)
			}
			last = c.USDMonth
		}
	}
}

// More IOPS, more room and more to survive never cost less.
func TestMoreNeverCostsLess(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(18, 2))
	c := catalogue(t, "")
	cheapest := func(r Request) float64 {
		p, err := New(c, r)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Choices) == 0 {
			return math.Inf(1)
		}
		return p.Choices[0].USDMonth
	}
	for range 15 {
		r := randomRequest(rnd)
		usd := cheapest(r)
		more := r
		more.IOPS = math.Ceil(r.IOPS * (1 + rnd.Float64()))
		if got := cheapest(more); got < usd-0.02 {
			t.Errorf("%v IOPS cost %v, %v cost %v: %+v", r.IOPS, usd, more.IOPS, got, r)
		}
		more = r
		more.Size *= price.Size(1 + rnd.Float64())
		if got := cheapest(more); got < usd-0.02 {
			t.Errorf("%v cost %v, %v cost %v: %+v", r.Size, usd, more.Size, got, r)
		}
		if more = r; r.Survive < 2 {
			more.Survive++
			if got := cheapest(more); got < usd-0.02 {
				t.Errorf("to survive one more costs %v instead of %v: %+v", got, usd, r)
			}
		}
	}
}

func TestRecipes(t *testing.T) {
	for _, x := range []struct {
		l     Layout
		tools string
		want  []string
	}{
		{Layout{One, 1}, "xfs", []string{"mkfs.xfs /dev/DISK1", "mount -o noatime /dev/DISK1 MOUNTPOINT",
			`echo "UUID=$(blkid -s UUID -o value /dev/DISK1) MOUNTPOINT xfs noatime 0 0" >> /etc/fstab`}},
		{Layout{Stripe, 2}, "mdadm or lvm or zpool or btrfs", []string{"mdadm --create /dev/md/mysql --name=mysql --level=0 --raid-devices=2 /dev/DISK1 /dev/DISK2",
			"mdadm --detail --brief /dev/md/mysql >> /etc/mdadm/mdadm.conf", "update-initramfs -u", "/etc/mdadm.conf, and dracut -f",
			`value /dev/md/mysql) MOUNTPOINT xfs`, `value /dev/mysql/data) MOUNTPOINT xfs`, `value /dev/DISK1) MOUNTPOINT btrfs noatime,nodatacow 0 0`,
			"lvcreate --type striped --stripes 2 --stripesize 64k --extents 100%FREE --name data mysql", "-O mountpoint=MOUNTPOINT mysql /dev/DISK1 /dev/DISK2",
			"mkfs.btrfs --data raid0 --metadata raid1 /dev/DISK1 /dev/DISK2"}},
		{Layout{RAID10, 2}, "mdadm or lvm or zpool", []string{"--level=10 --raid-devices=2", "--type raid1 --mirrors 1 --extents", "mysql mirror /dev/DISK1 /dev/DISK2",
			"mdadm --wait /dev/md/mysql", "lvs -o name,sync_percent mysql", synchronises}},
		{Layout{RAID10, 4}, "mdadm or lvm or zpool", []string{"--type raid10 --mirrors 1 --stripes 2", "mirror /dev/DISK1 /dev/DISK2 mirror /dev/DISK3 /dev/DISK4"}},
		{Layout{RAIDZ2, 4}, "zpool", []string{"recordsize=16K", "raidz2 /dev/DISK1 /dev/DISK2 /dev/DISK3 /dev/DISK4"}},
		{Layout{Ceph3, 3}, "ceph", []string{"osd NODE3:/dev/DISK", "mysql size 3", "min_size 2", "--size 102502M", "mkfs.xfs /dev/rbd/mysql/data", "/etc/ceph/rbdmap",
			"systemctl enable rbdmap.service", "/dev/rbd/mysql/data MOUNTPOINT xfs noatime,noauto 0 0"}},
		{Layout{Ceph2, 3}, "ceph", []string{"mysql size 2", "min_size 1, which Ceph warns of: with one node away a commit is acknowledged by one copy"}},
	} {
		recipes := x.l.Recipes(100.1)
		var all []string
		for _, r := range recipes {
			all = append(append(all, r.Commands...), r.Note)
		}
		if text := strings.Join(all, "\n"); tools(recipes) != x.tools || slices.ContainsFunc(x.want, func(w string) bool { return !strings.Contains(text, w) }) {
			t.Errorf("%+v: %s\n%s\nwant %q", x.l, tools(recipes), text, x.want)
		} else if strings.Contains(text, synchronises) != (x.l.Kind == RAID10) {
			t.Errorf("%+v: only mirrors synchronise\n%s", x.l, text)
		}
	}
}
