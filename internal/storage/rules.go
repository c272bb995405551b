// Package storage plans what a database's data lie on. It is pure: catalogues and wishes in, layouts out.
//
//	rules   what n equal volumes give together: reads, writes, room, and what is left when one is lost (Rules)
//	plan    the layouts that give so many IOPS and so much room, cheapest first, and what they survive (New)
//	make    the commands that make one (Layout.Recipes)
//
// Prices and limits of volumes are those of package price.
package storage

import (
	"math"

	"david/internal/price"
)

// Kind names a way to put volumes together.
type Kind string

// The kinds, as they stand in JSON.
const (
	One    Kind = "one"
	Stripe Kind = "stripe"
	RAID10 Kind = "raid10"
	RAIDZ1 Kind = "raidz1"
	RAIDZ2 Kind = "raidz2"
	Ceph2  Kind = "ceph2"
	Ceph3  Kind = "ceph3"
)

// Rule says what n equal volumes give, as multiples of what one of them gives. IOPS are of 16 KiB.
type Rule struct {
	Kind  Kind
	Title string
	Least int // volumes
	Step  int // 2: only even numbers
	Most  int
	// Survives counts the volumes, whichever they are, whose loss costs no data.
	Survives int
	// The figures as a reader finds them in docs/storage.md, and where they are from.
	Reads, Writes, Usable, Source string

	copies  func(n int) float64 // bytes written for each byte of data
	fill    float64             // the share of the room that may be filled
	reads   func(n int) float64
	writes  func(n int) float64
	left    func(n int) (reads, writes float64) // the shares of the IOPS that are left when one is lost
	guessed func(n int) bool                    // IOPS that no load of a database was measured to get
}

// fullest is how far a Ceph pool is planned to be filled: study P4 met its goal at 14 % of the room, and fell
// slightly below it at 87 %.
const fullest = 0.7

// Rules lists what david knows of layouts, simplest first.
func Rules() []Rule {
	all := func(n int) float64 { return float64(n) }
	const most = price.MostVolumes
	return []Rule{
		{Kind: One, Title: "one volume", Least: 1, Step: 1, Most: 1, Reads: "1", Writes: "1", Usable: "1", Source: "the volume's own limits",
			copies: times(1), fill: 1, reads: all, writes: all, left: nothing, guessed: never},
		{Kind: Stripe, Title: "stripe", Least: 2, Step: 1, Most: most, Reads: "n", Writes: "n", Usable: "n",
			Source: "sum of the limits; measured of four capped volumes: 3.4 to 4.5 times one (btrfs), 3.3 to 3.6 (ZFS)",
			copies: times(1), fill: 1, reads: all, writes: all, left: nothing, guessed: never},
		{Kind: RAID10, Title: "RAID 10", Least: 2, Step: 2, Most: most, Survives: 1, Reads: "n", Writes: "n / 2", Usable: "n / 2",
			Source: "md(4): every block is written to two disks, and read from one",
			copies: times(2), fill: 1, reads: all, writes: shared(2), left: half, guessed: never},
		raidz(RAIDZ1, "RAIDZ1", 1), raidz(RAIDZ2, "RAIDZ2", 2), ceph(Ceph2, 2), ceph(Ceph3, 3),
	}
}

func never(int) bool  { return false }
func always(int) bool { return true }

func times(x float64) func(int) float64 { return func(int) float64 { return x } }

func shared(by float64) func(int) float64 { return func(n int) float64 { return float64(n) / by } }

func nothing(int) (reads, writes float64) { return 0, 0 }

// half is left of a mirror's reads: what goes to all pairs evenly waits for the one that has lost half. Each
// pair writes as fast as before.
func half(int) (reads, writes float64) { return 0.5, 1 }

// oneLess is left where the others take over evenly.
func oneLess(n int) (reads, writes float64) {
	share := float64(n-1) / float64(n)
	return share, share
}

// raidzWrites is what RAIDZ1 of four disks of 500 IOPS wrote of their sum: 1,318 of 2,000 (fio, 16 KiB, a
// single run in an emulated guest), unsynced; most likely they waited for the emulation's CPU and not for the disks, and synced ones are
// 0.14 to 0.36 of the sum (docs/storage.md). Its 660 reads are the sum divided by the three disks that a record's data
// lie on: 667.
const raidzWrites = 0.66

// widest is the largest number of disks that OpenZFS recommends for a RAIDZ.
const widest = 9

// raidz takes what was measured to other numbers of disks: reads by the disks that a record's data lie on, as
// each of them has to be read; writes by the sectors that a record takes, as all of them have to be written.
func raidz(kind Kind, title string, parity int) Rule {
	r := Rule{Kind: kind, Title: title, Least: parity + 2, Step: 1, Most: widest, Survives: parity, Reads: "n / d, where the data of a record lie on d = n - 1 disks, at most 4",
		Writes: "n x 0.66 x 6 / sectors that a record takes", Usable: "n x 4 / sectors that a record of 4 takes: 6 of three or more disks",
		Source: "RAIDZ1 of four disks of 500 IOPS, measured under ZFS, single runs in an emulated guest: 660 reads, 1,318 writes; room and up to 9 disks: OpenZFS documentation, RAIDZ"}
	if parity == 2 {
		r.Reads, r.Writes = "as RAIDZ1, d = n - 2", "as RAIDZ1, at most n x 0.66"
		r.Usable, r.Source = "n x 4 / sectors: 9 of four or five disks, 6 of six or more", "derived from RAIDZ1, not measured"
	}
	r.copies = func(n int) float64 { return recordSectors(n, parity) / sectors }
	r.fill, r.left = 1, oneLess
	r.reads = func(n int) float64 { return float64(n) / float64(min(n-parity, sectors)) }
	r.writes = func(n int) float64 {
		return float64(n) * min(1, raidzWrites*recordSectors(4, 1)/recordSectors(n, parity))
	}
	r.guessed = always // of four only the reads were measured as a database does them
	return r
}

// sectors counts those of 4 KiB (ashift=12) in a record of 16 KiB.
const sectors = 4

// recordSectors counts those that a record takes on n disks: each row of it has its parity, and the whole is
// rounded up to a multiple of parity + 1.
func recordSectors(n, parity int) float64 {
	rows := math.Ceil(sectors / float64(n-parity))
	unit := float64(parity + 1)
	return math.Ceil((sectors+rows*float64(parity))/unit) * unit
}

// ceph has a volume on each of n nodes. A read asks one of them, a write as many as there are replicas.
func ceph(kind Kind, replicas int) Rule {
	r := Rule{Kind: kind, Title: "Ceph, 2 replicas", Least: 3, Step: 1, Most: price.MostVolumes, Survives: replicas - 1, Reads: "n", Writes: "n / 2", Usable: "n / 2 x 0.7",
		Source: "a write goes to every replica, a read to one (Ceph documentation, architecture); 70 %: study P4"}
	if replicas == 3 {
		r.Title, r.Writes, r.Usable = "Ceph, 3 replicas", "n / 3", "n / 3 x 0.7"
	}
	r.copies, r.fill, r.left = times(float64(replicas)), fullest, oneLess
	r.reads, r.writes, r.guessed = shared(1), shared(float64(replicas)), always
	return r
}

func (r Rule) isCeph() bool { return r.Kind == Ceph2 || r.Kind == Ceph3 }

// fiveMonitors is the smallest number of a cluster's monitors that keep a majority when two are lost.
const fiveMonitors = 5

// least returns the fewest volumes with which a layout survives so many lost ones and goes on.
func (r Rule) least(survive int) int {
	if r.isCeph() && survive > 1 {
		return max(r.Least, fiveMonitors)
	}
	return r.Least
}

// usable returns the room of n volumes, as a multiple of one's.
func (r Rule) usable(n int) float64 { return float64(n) / r.copies(n) * r.fill }

// cost returns the operations on volumes that one operation on the layout takes, where so many are writes.
func (r Rule) cost(n int, writeShare float64) float64 {
	return (1-writeShare)*float64(n)/r.reads(n) + writeShare*float64(n)/r.writes(n)
}

// byteCost is the same of bytes.
func (r Rule) byteCost(n int, writeShare float64) float64 {
	return 1 - writeShare + writeShare*r.copies(n)
}
