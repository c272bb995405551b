package probe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/result"
)

// TestWriteIOPS measures a real disk, and leaves nothing on it.
func TestWriteIOPS(t *testing.T) {
	dir := t.TempDir()
	iops, err := WriteIOPS(context.Background(), dir)
	if err != nil || iops <= 0 {
		t.Errorf("%.0f IOPS, %v", iops, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := WriteIOPS(context.Background(), dir+"/missing"); err == nil {
		t.Error("a folder that is not there was measured")
	}
}

// TestRandom reads and writes a real file.
func TestRandom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a:b")
	if err := os.WriteFile(file, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	owned(t, filepath.Dir(file))
	owned(t, file)
	for _, write := range []bool{false, true} {
		r, err := Random(context.Background(), file, write, 1, nil)
		if err != nil || r.IOPS <= 0 || r.Bytes < 16000*r.IOPS {
			t.Errorf("write %v: %+v, %v", write, r, err)
		}
	}
	if _, err := Random(context.Background(), file+"missing", true, 1, nil); err == nil {
		t.Error("a file that is not there was written")
	}
}

// TestParseShot reads what fio 3.33 printed for a second of appends with fdatasync.
func TestParseShot(t *testing.T) {
	b, err := os.ReadFile("testdata/append.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseShot(b, "write")
	if err != nil {
		t.Fatal(err)
	}
	if s.syncs == 0 || s.p50 <= 0 || s.p99 < s.p50 || s.mean < s.p50/2 || s.cycle < s.mean {
		t.Errorf("%+v", s)
	}
	if _, err := parseShot(b, "read"); err == nil {
		t.Error("reads were found where there were none")
	}
}

func FuzzParseShot(f *testing.F) {
	f.Add([]byte(`{"jobs":[{"read":{"iops":123.5,"bw_bytes":2023424,"runtime":1000,"total_ios":124}}]}`), "read")
	f.Add([]byte(`fio: a remark {"jobs":[{"write":{"iops":1,"bw_bytes":512},"sync":{"lat_ns":{"N":5,"mean":1000.5,"percentile":{"50.000000":900}}}}]}`), "write")
	f.Add([]byte(`{"jobs":[{}]}`), "write")
	f.Fuzz(func(t *testing.T, b []byte, way string) {
		s, err := parseShot(b, way)
		if err == nil && !(s.IOPS > 0 && s.Bytes > 0 && s.p50 >= 0 && s.p99 >= 0 && s.mean >= 0 && s.cycle >= 0) {
			t.Errorf("%+v", s)
		}
	})
}

func TestParseSeries(t *testing.T) {
	got, err := parseSeries("1000, 500, 1, 16384, 0, 0\n2001, 400, 1, 16384, 0, 0\n4000, 7, 1, 16384, 0\n9999, 1, 1\n", 5)
	if err != nil || len(got) != 5 || got[0] != 500 || got[1] != 400 || got[2] != 0 || got[3] != 7 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x, 1\n", "1000\n", "1000, -1\n", "NaN, 1\n"} {
		if _, err := parseSeries(bad, 5); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzParseSeries(f *testing.F) {
	f.Add("1000, 500, 1, 16384, 0, 0\n2001, 400, 1, 16384, 0, 0\n", 5)
	f.Fuzz(func(t *testing.T, text string, seconds int) {
		if seconds < 0 || seconds > 1000 {
			return
		}
		series, err := parseSeries(text, seconds)
		if err == nil && len(series) != seconds {
			t.Errorf("%d values for %d seconds", len(series), seconds)
		}
		if b := burst(series); b.Empty < 0 || b.Empty > max(0, seconds) {
			t.Errorf("fell at second %d of %d", b.Empty, seconds)
		}
	})
}

// steps makes a series of (seconds, value) steps.
func steps(pairs ...float64) (series []float64) {
	for i := 0; i < len(pairs); i += 2 {
		for range int(pairs[i]) {
			series = append(series, pairs[i+1])
		}
	}
	return series
}

// TestBurst tells an empty bucket from a steady disk, from pauses and from what recovers.
func TestBurst(t *testing.T) {
	for name, c := range map[string]struct {
		series []float64
		empty  int
		then   float64
	}{
		"steady":               {steps(600, 1000), 0, 0},
		"empty after 5 min":    {steps(300, 3000, 300, 100), 301, 100},
		"a little less":        {steps(300, 1000, 300, 800), 0, 0},
		"a pause":              {steps(100, 1000, 5, 0, 495, 1000), 0, 0},
		"a pause at the end":   {steps(595, 1000, 5, 0), 0, 0},
		"recovers":             {steps(100, 1000, 100, 100, 400, 1000), 0, 0},
		"low with one peak":    {steps(100, 1000, 50, 100, 1, 3000, 449, 100), 101, 100},
		"in the first minute":  {steps(30, 1000, 270, 300), 31, 300},
		"a short run":          {steps(6, 1000, 14, 100), 7, 100},
		"a low second before":  {steps(8, 2000, 1, 896, 1, 2000, 1, 1800, 1, 1193, 18, 400), 13, 400},
		"one second":           {steps(1, 10), 0, 0},
		"nothing was measured": {nil, 0, 0},
	} {
		b := burst(c.series)
		if b.Empty != c.empty || b.Then != c.then {
			t.Errorf("%s: fell at %d to %.0f, want %d, %.0f", name, b.Empty, b.Then, c.empty, c.then)
		}
	}
}

func TestFigure(t *testing.T) {
	if f := figure([]float64{3, 1, 2}); f != (result.Figure{Value: 2, Low: 1, High: 3, Rounds: 3}) {
		t.Errorf("%+v", f)
	}
	if f := figure([]float64{1, 2}); f.Value != 1.5 {
		t.Errorf("%+v", f)
	}
	if f := figure(nil); f != (result.Figure{}) {
		t.Errorf("%+v", f)
	}
}

// TestRemarks says what was measured where there is no disk of this machine's.
func TestRemarks(t *testing.T) {
	for fs, want := range map[string]string{"tmpfs": "no disk was measured", "nfs4": "network filesystem", "fuse.thing": "user space", "ext4": "no direct I/O"} {
		if got := strings.Join(remarks(result.Device{Filesystem: fs}), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", fs, got, want)
		}
	}
	if got := remarks(result.Device{Filesystem: "xfs", Direct: true}); got != nil {
		t.Errorf("xfs: %q", got)
	}
}

// TestRoom takes a smaller file where there is little room, and none where there is too little.
func TestRoom(t *testing.T) {
	for free, want := range map[int64]int64{10 << 30: 512 << 20, 600 << 20: 256 << 20, 161 << 20: 64 << 20} {
		if got, err := room("/x", free); err != nil || got != want {
			t.Errorf("%d MiB free: %d, %v, want %d", free>>20, got, err, want)
		}
	}
	if _, err := room("/x", 100<<20); err == nil || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("error %v", err)
	}
}

// TestRing is one cycle: a chase passes every element before it comes back.
func TestRing(t *testing.T) {
	r := newRing(1 << 20)
	n, at := 0, uint32(0)
	for {
		n++
		if at = r[at]; at == 0 {
			break
		}
	}
	if n != len(r) {
		t.Errorf("the cycle has %d of %d elements", n, len(r))
	}
}
