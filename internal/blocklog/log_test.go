package blocklog

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// deviceBytes is the size of the devices here.
const deviceBytes = 64 << 10

// recorded makes a log of a device that was zeros: writes, each of bytes of its own, and flushes.
func recorded(t testing.TB, random *rand.Rand, records int) string {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := recorder{file: f}
	var open []int64                    // the moments of writes that are not done
	came := make([]int64, 5, 5+records) // the moments when flushes may have come that are recorded when they have had their time
	for n := range records {
		came = append(came, r.now())
		from := random.Int64N(deviceBytes/sector) * sector
		b := bytes.Repeat([]byte{byte(n%255 + 1)}, int(min(deviceBytes-from, (1+random.Int64N(32))*sector)))
		kind := []byte{write, write, write, zero, flush, done, done, done}[random.IntN(8)]
		switch {
		case kind == done && len(open) > 0: // in any order
			i := random.IntN(len(open))
			add(t, &r, done, open[i], 0, nil)
			open = slices.Delete(open, i, i+1)
		case kind == flush, kind == done:
			add(t, &r, flush, came[len(came)-1-random.IntN(5)], 0, nil)
		case kind == zero:
			open = append(open, add(t, &r, zero, from, int64(len(b)), nil))
		default:
			open = append(open, add(t, &r, write, from, int64(len(b)), b))
		}
	}
	return path
}

// add records something of a device that does nothing, and returns the moment.
func add(t testing.TB, r *recorder, kind byte, offset, length int64, data []byte) int64 {
	t.Helper()
	at, err := r.record(kind, offset, length, data, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func openLog(t testing.TB, path string) *Log {
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestOpen reads a log back; one that was cut off, at any byte, up to its last whole record.
func TestOpen(t *testing.T) {
	path := recorded(t, rand.New(rand.NewPCG(1, 1)), 6)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := openLog(t, path).Records
	if len(all) != 6 || all[5].End != int64(len(whole)) {
		t.Fatalf("%d records, the last ends at %d of %d", len(all), all[5].End, len(whole))
	}
	for n := 0; n < len(whole); n += 37 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got := openLog(t, path).Records
		same := func(a, b Record) bool { return a.kind == b.kind && a.offset == b.offset && a.End == b.End }
		if !slices.EqualFunc(got, all[:len(got)], same) || len(got) < 6 && all[len(got)].End <= int64(n) {
			t.Fatalf("of %d bytes: %d records", n, len(got))
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("what is no log was read as one")
	}
}

// image brings a device to a cut.
func image(t *testing.T, l *Log, c Cut) ([]byte, Fate) {
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, make([]byte, deviceBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := l.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Until(c.Risk); err != nil {
		t.Fatal(err)
	}
	fate, err := l.Apply(r.image, c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, fate
}

// atRisk tells, from the records alone and one by one, whether a write may be lost at a cut.
func atRisk(records []Record, i, at int, cache Cache) bool {
	ended := func(before int64) bool { // it was done at a moment
		return slices.ContainsFunc(records, func(r Record) bool { return r.kind == done && r.offset == records[i].End && r.End <= before })
	}
	switch cache {
	case Protected:
		return !ended(records[at-1].End)
	case Volatile:
		return !slices.ContainsFunc(records[:at], func(r Record) bool { return r.Flush() && ended(r.offset) })
	}
	return true
}

// TestCut: whatever a cut leaves, each sector is as one of the writes left it that may have been the last:
// those at risk, and the last that was not.
func TestCut(t *testing.T) {
	for _, cache := range []Cache{Volatile, Protected} {
		t.Run(string(cache), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(2, 2))
			l := openLog(t, recorded(t, random, 240))
			cuts := l.Cuts(40, l.Records[50].End, l.Records[239].End, cache, random)
			if len(cuts) != 40 || !slices.IsSortedFunc(cuts, func(a, b Cut) int { return a.At - b.At }) {
				t.Fatalf("%d cuts, or not in order", len(cuts))
			}
			var sum Fate
			for _, c := range cuts {
				if c.At < 51 || c.At > 240 {
					t.Fatalf("%+v is at no moment of the load", c)
				}
				fate := checkCut(t, l, c, cache)
				sum = Fate{sum.AtRisk + fate.AtRisk, sum.Lost + fate.Lost, sum.Torn + fate.Torn}
			}
			if sum.AtRisk == 0 || sum.Lost == 0 || sum.Torn == 0 || sum.Lost+sum.Torn >= sum.AtRisk {
				t.Errorf("%+v: want writes lost, torn and kept", sum)
			}
		})
	}
}

// TestEveryFlush: the power is cut just before each flush that follows a write, one after the other, and nowhere else.
// Where fewer cuts are asked for than there are such flushes, the last ones are cut. Each leaves what a cut may leave.
func TestEveryFlush(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	l := openLog(t, recorded(t, random, 240))
	first, from, to := 50, l.Records[49].End, l.Records[219].End
	var want []int
	for at := first; at < 220; at++ {
		before := at - 1
		for before >= first && !l.Records[before].Write() && !l.Records[before].Flush() {
			before--
		}
		if l.Records[at].Flush() && before >= first && l.Records[before].Write() {
			want = append(want, at)
		}
	}
	if n := l.FlushPoints(from, to); n != len(want) || n < 5 {
		t.Fatalf("%d flushes after a write, want %d", n, len(want))
	}
	for _, n := range []int{1000, 3} {
		cuts := l.EveryFlush(n, from, to, Volatile, random)
		if len(cuts) != min(n, len(want)) {
			t.Fatalf("%d cuts of %d flushes, with %d at most", len(cuts), len(want), n)
		}
		for i, c := range cuts {
			if c.At != want[len(want)-len(cuts)+i] {
				t.Errorf("cut %d is before record %d of %v", i, c.At, want)
			}
			checkCut(t, l, c, Volatile)
		}
	}
}

// checkCut holds a cut's image against the records, sector by sector.
func checkCut(t *testing.T, l *Log, c Cut, cache Cache) Fate {
	t.Helper()
	got, fate := image(t, l, c)
	risky := 0
	may := make([][][]byte, deviceBytes/sector)
	for i := range may {
		may[i] = [][]byte{make([]byte, sector)}
	}
	for i, r := range l.Records[:c.At] {
		if !r.Write() {
			continue
		}
		risk := atRisk(l.Records, i, c.At, cache)
		count(&risky, risk)
		for at := r.offset / sector; at < r.end()/sector; at++ {
			if !risk {
				may[at] = nil
			}
			may[at] = append(may[at], content(t, l, r))
		}
	}
	for i := range may {
		if !slices.ContainsFunc(may[i], func(b []byte) bool { return bytes.Equal(b, got[i*sector:(i+1)*sector]) }) {
			t.Fatalf("%+v: the sector at %d is none that was written", c, i*sector)
		}
	}
	if fate.AtRisk != risky {
		t.Errorf("%+v: %d writes at risk, want %d", c, fate.AtRisk, risky)
	}
	return fate
}

func count(n *int, is bool) {
	if is {
		*n++
	}
}

// content returns what a record wrote to a sector.
func content(t *testing.T, l *Log, r Record) []byte {
	b := make([]byte, sector)
	if r.kind == write {
		if _, err := l.file.ReadAt(b, r.data); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestFates: what is kept is there whole, what is lost is not there, what is torn is in whole units.
func TestFates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r := recorder{file: f}
	page := bytes.Repeat([]byte{7}, 16<<10)
	add(t, &r, flush, 0, 0, nil)
	add(t, &r, write, 16<<10, int64(len(page)), page)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path)
	kept, _ := image(t, l, Cut{At: 2, Risk: 1, Keep: 1})
	lost, _ := image(t, l, Cut{At: 2, Risk: 1})
	if n := bytes.Count(kept, []byte{7}); n != 16<<10 || bytes.IndexByte(kept, 7) != 16<<10 {
		t.Errorf("kept: %d bytes", n)
	}
	if n := bytes.Count(lost, []byte{7}); n != 0 {
		t.Errorf("lost: %d bytes are there", n)
	}
	for _, grain := range []int{sector, bigSector} {
		torn, fate := image(t, l, Cut{At: 2, Risk: 1, Tear: 1, Grain: int64(grain), Seed: 3})
		n := bytes.Count(torn, []byte{7})
		if n == 0 || n == 16<<10 || fate.Torn != 1 {
			t.Errorf("torn by %d: %d bytes are there, %+v", grain, n, fate)
		}
		for at := 0; at < deviceBytes; at += grain {
			if unit := torn[at : at+grain]; bytes.Count(unit, unit[:1]) != grain {
				t.Errorf("torn by %d: the unit at %d is not whole", grain, at)
			}
		}
	}
}

// TestLying: a disk that ignores flushes may lose what was flushed, but no more than its last writes.
func TestLying(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	l := openLog(t, recorded(t, random, 3000))
	for _, c := range l.Cuts(20, 0, l.Records[2999].End, Lying, random) {
		_, fate := image(t, l, c)
		if writes := fate.AtRisk; writes != lies && c.Risk > 0 {
			t.Errorf("%+v: %d writes at risk, want %d", c, writes, lies)
		}
	}
}

// FuzzOpen: whatever is given for a log, no record lies outside of it.
func FuzzOpen(f *testing.F) {
	b, err := os.ReadFile(recorded(f, rand.New(rand.NewPCG(5, 5)), 5))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:30])
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(path)
		if err != nil {
			return
		}
		defer l.Close()
		for _, r := range l.Records {
			if r.End > int64(len(b)) || r.length < 0 || r.offset < 0 {
				t.Errorf("%+v in %d bytes", r, len(b))
			}
		}
	})
}
