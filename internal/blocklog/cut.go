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

// Cut says when the power is cut, and what becomes of the writes that were not flushed by then.
type Cut struct {
	At    int // so many records had happened
	Risk  int // the first record that is not durable for sure
	Keep  float64
	Tear  float64 // chances of each write at risk; else it is lost
	Grain int64   // in bytes: what is torn is kept in whole units of this
	Seed  uint64
}

// Fate tells what became of the writes at risk.
type Fate struct {
	AtRisk, Lost, Torn int
}

// Lying says how many of the last writes a device may lose that acknowledges flushes and does nothing: those
// before them it has had time to write.
const Lying = 1024

// Cuts chooses n cuts between two moments (lengths of the log), in the order of time. Half are just before a
// flush, at each of them where there are no more than that; of the others half are at random, and half where
// the more bytes are at risk the likelier: pages on their way to their files are rare and large. A device
// that is lying ignores flushes.
func (l *Log) Cuts(n int, from, to int64, lying bool, random *rand.Rand) []Cut {
	first, _ := slices.BinarySearchFunc(l.Records, from, func(r Record, at int64) int { return cmp.Compare(r.End, at) })
	end, _ := slices.BinarySearchFunc(l.Records, to, func(r Record, at int64) int { return cmp.Compare(r.End, at+1) })
	if end <= first {
		return nil
	}
	moments := l.flushes(first, end)
	random.Shuffle(len(moments), func(i, k int) { moments[i], moments[k] = moments[k], moments[i] })
	moments = moments[:min(len(moments), (n+1)/2)]
	heavy := l.weights(first, end)
	for len(moments) < n {
		moments = append(moments, first+1+random.IntN(end-first))
		if len(moments) < n && heavy[len(heavy)-1] > 0 {
			at, _ := slices.BinarySearch(heavy, 1+random.Int64N(heavy[len(heavy)-1]))
			moments = append(moments, first+1+at)
		}
	}
	slices.Sort(moments)
	cuts := make([]Cut, 0, n)
	for _, at := range moments {
		cuts = append(cuts, l.cut(at, lying, random))
	}
	return cuts
}

// flushes lists the flushes that have something to flush.
func (l *Log) flushes(first, end int) (list []int) {
	for i := max(first, 1); i < end; i++ {
		if l.Records[i].Flush() && !l.Records[i-1].Flush() {
			list = append(list, i)
		}
	}
	return list
}

// weights sums up, record by record, how many bytes are at risk after each.
func (l *Log) weights(first, end int) []int64 {
	sums, sum, risk := make([]int64, 0, end-first), int64(0), int64(0)
	for _, r := range l.Records[first:end] {
		if risk += r.length; r.Flush() {
			risk = 0
		}
		sum += risk
		sums = append(sums, sum)
	}
	return sums
}

// cut draws what becomes of the writes at risk: in one cut of eight all of them are lost.
func (l *Log) cut(at int, lying bool, random *rand.Rand) Cut {
	c := Cut{At: at, Risk: l.atRisk(at, lying), Grain: sector, Seed: random.Uint64()}
	if random.IntN(2) == 0 {
		c.Grain = bigSector
	}
	if random.IntN(8) > 0 {
		c.Keep = random.Float64()
		c.Tear = (1 - c.Keep) * random.Float64()
	}
	return c
}

// atRisk returns the first record that is not durable when at of them have happened.
func (l *Log) atRisk(at int, lying bool) int {
	i, writes := at, 0
	for ; i > 0; i-- {
		if !lying && l.Records[i-1].Flush() || writes == Lying {
			break
		}
		if !l.Records[i-1].Flush() {
			writes++
		}
	}
	return i
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
		if r.Flush() {
			continue
		}
		f.AtRisk++
		switch drawn := random.Float64(); {
		case drawn < c.Keep:
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
