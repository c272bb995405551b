package blocklog

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
)

// The units in which writes are torn: what disks write at once is 512 B or 4 KiB.
const (
	sector    = 512
	bigSector = 4096
)

// Cache says which writes a device may lose when its power is cut.
type Cache string

// The caches there are.
const (
	Volatile  Cache = "volatile"  // those that were not flushed
	Protected Cache = "protected" // those it has not acknowledged yet: its cache outlives the cut, or it has none
	Lying     Cache = "lying"     // its last ones, flushed or not
)

// Caches lists them.
func Caches() []string { return []string{string(Volatile), string(Protected), string(Lying)} }

// lies is how many of its last writes a lying device may lose. Those before them it has had time to write.
const lies = 1024

// Cut says when the power is cut, and what becomes of the writes at risk then: those of the records from Risk
// to At that were not acknowledged by the moment Safe. The others are durable.
type Cut struct {
	At    int     // how many records had happened
	Risk  int     // the first record that may be at risk
	Safe  int64   // a moment: a length of the log, in bytes
	Keep  float64 // the chance of each write at risk to be kept whole, 0 to 1
	Tear  float64 // the chance to be torn; else it is lost
	Grain int64   // a torn write is kept in whole units of so many bytes
	Seed  uint64  // of the chances
}

// Fate tells what became of the writes at risk.
type Fate struct {
	AtRisk, Lost, Torn int
}

// Cuts chooses n cuts between two moments (lengths of the log), in the order of time. Half are just before a
// flush, at each of them where there are no more than that; of the others half are at random, and half where
// the more bytes are at risk the likelier: pages on their way to their files are rare and large.
func (l *Log) Cuts(n int, from, to int64, cache Cache, random *rand.Rand) []Cut {
	first, end := l.until(from), l.until(to)
	if end <= first {
		return nil
	}
	moments := l.flushes(first, end)
	random.Shuffle(len(moments), func(i, k int) { moments[i], moments[k] = moments[k], moments[i] })
	moments = moments[:min(len(moments), (n+1)/2)]
	heavy := l.weights(first, end, cache)
	for len(moments) < n {
		moments = append(moments, first+1+random.IntN(end-first))
		if len(moments) < n && heavy[len(heavy)-1] > 0 {
			at, _ := slices.BinarySearch(heavy, 1+random.Int64N(heavy[len(heavy)-1]))
			moments = append(moments, first+1+at)
		}
	}
	slices.Sort(moments)
	return l.cutAt(moments, cache, random)
}

// FlushPoints counts the flushes between two moments that come after a write: one that follows another at once leaves
// what that left.
func (l *Log) FlushPoints(from, to int64) int { return len(l.flushes(l.until(from), l.until(to))) }

// EveryFlush chooses a cut just before each flush between two moments that comes after a write, in turn: the last n
// where there are more, as what was acknowledged until then is at stake at each.
func (l *Log) EveryFlush(n int, from, to int64, cache Cache, random *rand.Rand) []Cut {
	moments := l.flushes(l.until(from), l.until(to))
	return l.cutAt(moments[max(0, len(moments)-n):], cache, random)
}

func (l *Log) cutAt(moments []int, cache Cache, random *rand.Rand) (cuts []Cut) {
	for _, at := range moments {
		cuts = append(cuts, l.cut(at, cache, random))
	}
	return cuts
}

// until counts the records until a moment.
func (l *Log) until(moment int64) int {
	n, _ := slices.BinarySearchFunc(l.Records, moment+1, func(r Record, at int64) int { return cmp.Compare(r.End, at) })
	return n
}

// flushes lists the flushes that come after a write.
func (l *Log) flushes(first, end int) (list []int) {
	written := false
	for i := first; i < end; i++ {
		switch r := l.Records[i]; {
		case r.Write():
			written = true
		case r.Flush() && written:
			list, written = append(list, i), false
		}
	}
	return list
}

// weights sums up, record by record, how many bytes are at risk after each: nearly so, as those are counted
// too that are done out of their turn.
func (l *Log) weights(first, end int, cache Cache) []int64 {
	written := make([]int64, 1, len(l.Records)+1) // before each record
	for _, r := range l.Records {
		length := int64(0)
		if r.Write() {
			length = r.length
		}
		written = append(written, written[len(written)-1]+length)
	}
	sums, sum := make([]int64, 0, end-first), int64(0)
	for at := first + 1; at <= end; at++ {
		risk, _ := l.atRisk(at, cache)
		sum += written[at] - written[risk]
		sums = append(sums, sum)
	}
	return sums
}

// cut draws what becomes of the writes at risk: in one cut of eight all of them are lost.
func (l *Log) cut(at int, cache Cache, random *rand.Rand) Cut {
	c := Cut{At: at, Grain: sector, Seed: random.Uint64()}
	c.Risk, c.Safe = l.atRisk(at, cache)
	if random.IntN(2) == 0 {
		c.Grain = bigSector
	}
	if random.IntN(8) > 0 {
		c.Keep = random.Float64()
		c.Tear = (1 - c.Keep) * random.Float64()
	}
	return c
}

// atRisk returns Risk and Safe of a cut when so many records have happened.
func (l *Log) atRisk(at int, cache Cache) (first int, safe int64) {
	if at == 0 {
		return 0, 0
	}
	switch cache {
	case Lying:
		for writes := 0; at > 0 && writes < lies; at-- {
			if l.Records[at-1].Write() {
				writes++
			}
		}
		return at, 0
	case Protected:
		safe = l.Records[at-1].End
	default:
		safe = l.safe[at-1]
	}
	first, _ = slices.BinarySearch(l.latest[:at], safe+1)
	return first, safe
}

// Replay brings the image of a device, as it was before anything was recorded, through the records.
type Replay struct {
	log   *Log
	image *os.File
	done  int
}

// Replay begins with an image, which it changes.
func (l *Log) Replay(image string) (*Replay, error) {
	f, err := os.OpenFile(image, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Replay{log: l, image: f}, nil
}

// Until does all that happened before a record. It goes forward only.
func (r *Replay) Until(n int) error {
	if n < r.done {
		return fmt.Errorf("cannot take back record %d of the block device", n)
	}
	for ; r.done < n; r.done++ {
		one := r.log.Records[r.done]
		if err := r.log.apply(r.image, one, one.offset, one.end()); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the image.
func (r *Replay) Close() error { return r.image.Close() }

// Apply does to an image that has all that was durable what the cut left of the writes at risk.
func (l *Log) Apply(image io.WriterAt, c Cut) (f Fate, err error) {
	random := rand.New(rand.NewPCG(c.Seed, uint64(c.At)))
	for _, r := range l.Records[c.Risk:c.At] {
		if !r.Write() {
			continue
		}
		drawn := 0.0
		if r.done > c.Safe {
			f.AtRisk++
			drawn = random.Float64()
		}
		switch {
		case r.done <= c.Safe, drawn < c.Keep:
			err = l.apply(image, r, r.offset, r.end())
		case drawn < c.Keep+c.Tear:
			f.Torn++
			err = l.tear(image, r, c.Grain, random)
		default:
			f.Lost++
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// tear writes each unit of a write, as they lie on the device, or not.
func (l *Log) tear(image io.WriterAt, r Record, grain int64, random *rand.Rand) error {
	for at := r.offset; at < r.end(); {
		next := min((at/grain+1)*grain, r.end())
		if random.IntN(2) == 0 {
			if err := l.apply(image, r, at, next); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}
