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
	for n := range records {
		kind, from := byte(write), random.Int64N(deviceBytes/sector)*sector
		b := bytes.Repeat([]byte{byte(n%255 + 1)}, int(min(deviceBytes-from, (1+random.Int64N(32))*sector)))
		switch random.IntN(5) {
		case 0:
			kind, from, b = flush, 0, nil
		case 1:
			kind = zero
		}
		data, length := b, int64(len(b))
		if kind == zero {
			data = nil
		}
		if err := r.record(kind, from, length, data, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return path
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
		if !slices.Equal(got, all[:len(got)]) || len(got) < 6 && all[len(got)].End <= int64(n) {
			t.Errorf("of %d bytes: %d records", n, len(got))
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

// TestCut: whatever a cut leaves, each sector is as the last flush left it or as a later write would have it,
// and the first flush before it is the bound.
func TestCut(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	l := openLog(t, recorded(t, random, 400))
	cuts := l.Cuts(200, l.Records[50].End, l.Records[399].End, false, random)
	if len(cuts) != 200 || !slices.IsSortedFunc(cuts, func(a, b Cut) int { return a.At - b.At }) {
		t.Fatalf("%d cuts, or not in order", len(cuts))
	}
	var sum Fate
	for _, c := range cuts {
		if c.At < 51 || c.At > 400 || c.Risk > 0 && !l.Records[c.Risk-1].Flush() || slices.ContainsFunc(l.Records[c.Risk:c.At], Record.Flush) {
			t.Fatalf("%+v is at no moment of the load, or its bound at no flush", c)
		}
		durable, _ := image(t, l, Cut{At: c.Risk, Risk: c.Risk})
		got, fate := image(t, l, c)
		sum = Fate{sum.AtRisk + fate.AtRisk, sum.Lost + fate.Lost, sum.Torn + fate.Torn}
		for at := 0; at < deviceBytes; at += sector {
			may := [][]byte{durable[at : at+sector]}
			for _, r := range l.Records[c.Risk:c.At] {
				if r.offset <= int64(at) && r.end() > int64(at) {
					may = append(may, content(t, l, r))
				}
			}
			if !slices.ContainsFunc(may, func(b []byte) bool { return bytes.Equal(b, got[at:at+sector]) }) {
				t.Fatalf("%+v: the sector at %d is none that was written", c, at)
			}
		}
	}
	if sum.AtRisk == 0 || sum.Lost == 0 || sum.Torn == 0 || sum.Lost+sum.Torn >= sum.AtRisk {
		t.Errorf("%+v: want writes lost, torn and kept", sum)
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
	for _, kind := range []byte{flush, write} {
		data := map[byte][]byte{write: page}[kind]
		if err := r.record(kind, 16<<10, int64(len(data)), data, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
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

// TestLying: a disk that ignores flushes loses what was flushed, as far back as it may; a real one does not.
func TestLying(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	l := openLog(t, recorded(t, random, 2000))
	for _, c := range l.Cuts(20, 0, l.Records[1999].End, true, random) {
		writes := 0
		for _, r := range l.Records[c.Risk:c.At] {
			if !r.Flush() {
				writes++
			}
		}
		if writes != Lying && c.Risk > 0 {
			t.Errorf("%+v: %d writes at risk, want %d", c, writes, Lying)
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
