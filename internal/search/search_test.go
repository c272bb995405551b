package search

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// small returns a space of 12 points.
func small() Space {
	return Space{
		Knobs: []Knob{
			List("page_size", Reinitialise, "4K", "16K"),
			List("instances", Restart, "1", "4"),
			{Name: "delay", Levels: []Level{{Value: "0", Special: true}, {Value: "100", Number: 100}, {Value: "500", Number: 500}}},
		},
		Start: Point{1, 0, 0},
	}
}

func seen(p Point, ratio, se float64, reference int) Observation {
	return Observation{Point: p, Against: Point{1, 0, 0}, LogRatio: ratio, SE: se, Reference: reference}
}

func TestRange(t *testing.T) {
	k := Range("io_capacity", Dynamic, 100, 10000, 10, "0")
	var values []string
	for _, l := range k.Levels {
		values = append(values, l.Value)
	}
	if got := strings.Join(values, " "); got != "0 100 170 280 460 770 1290 2150 3590 5990 10000" {
		t.Errorf("levels %s", got)
	}
	if k.Levels[0].Special != true || k.Levels[1].Special {
		t.Error("0 alone is special")
	}
	more := k.With(2000)
	if more.Levels[7].Number != 2000 || more.Levels[8].Number != 2150 || len(k.Levels) != 11 {
		t.Errorf("2000 has to stand before 2150 and only in the new knob: %v", more.Levels)
	}
	if same := more.With(2000); len(same.Levels) != 12 {
		t.Errorf("a level was added twice: %v", same.Levels)
	}
	if few := Range("threads", Restart, 1, 4, 1); len(few.Levels) != 4 {
		t.Errorf("1 to 4 in whole numbers are four levels, not %v", few.Levels)
	}
}

func TestCheck(t *testing.T) {
	if err := small().Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Space){
		"without a knob":       func(s *Space) { s.Knobs = nil },
		"at most 8":            func(s *Space) { s.Knobs = make([]Knob, 9) },
		"there twice":          func(s *Space) { s.Knobs[1] = s.Knobs[0] },
		`"b" is there twice`:   func(s *Space) { s.Knobs[1] = List("x", Restart, "a", "b", "b") },
		"an effect of -1":      func(s *Space) { s.Knobs[1].Effect = -1 },
		"it has 1 levels":      func(s *Space) { s.Knobs[1] = List("x", Restart, "a") },
		"unknown cost 3":       func(s *Space) { s.Knobs[1].Cost = 3 },
		"at most 256":          func(s *Space) { s.Knobs[1] = List("x", Restart, make([]string, 257)...) },
		"positive and to asc":  func(s *Space) { s.Knobs[2].Levels[2].Number = 100 },
		"0 after 0":            func(s *Space) { s.Knobs[2].Levels[1].Number = 0 },
		"cannot start at [1 0": func(s *Space) { s.Start = Point{1, 0} },
		"cannot start at [1 2": func(s *Space) { s.Start = Point{1, 2, 0} },
	} {
		s := small()
		if spoil(&s); s.Check() == nil || !strings.Contains(s.Check().Error(), want) {
			t.Errorf("want an error with %q, got %v", want, s.Check())
		}
	}
}

// TestNextExhausts goes through a space until nothing is left: no point twice, none that is forbidden, not
// the start.
func TestNextExhausts(t *testing.T) {
	s := small()
	s.Feasible = func(p Point) bool { return p[0] != 0 || p[2] != 2 }
	rng := generator(1)
	var history []Observation
	found := map[string]bool{key(s.Start): true}
	for {
		p, ok := Next(s, history, rng)
		if !ok {
			break
		}
		if found[key(p)] || !s.Feasible(p) {
			t.Fatalf("%v after %v: seen or forbidden", p, history)
		}
		found[key(p)] = true
		o := seen(p, 0.1*rng.NormFloat64(), 0.05, 0)
		if len(history)%3 == 2 {
			o.Infeasible = "did not start"
		}
		history = append(history, o)
	}
	if len(found) != 10 {
		t.Errorf("%d of 10 points were proposed", len(found))
	}
}

func TestNothingFeasible(t *testing.T) {
	for _, s := range []Space{small(), cells()[0].space()} {
		s.Feasible = func(Point) bool { return false }
		if p, ok := Next(s, nil, generator(1)); ok {
			t.Errorf("%v is not feasible", p)
		}
	}
}

func TestSameSeedSameSearch(t *testing.T) {
	run := func(seed uint64) []Observation {
		l := &lab{surface: cells()[0].surface(), noise: 0.05, rng: generator(seed)}
		runSearch(l, 9)
		return l.history
	}
	if !reflect.DeepEqual(run(3), run(3)) {
		t.Error("the same seed gave another search")
	}
	if reflect.DeepEqual(run(3), run(4)) {
		t.Error("another seed gave the same search")
	}
}

// TestInfeasibleSteers shows the search that its largest buffer pools are killed, and that those which are
// not are fast the larger they are, which would draw it there.
func TestInfeasibleSteers(t *testing.T) {
	s := cells()[1].space()
	rng := generator(2)
	var history []Observation
	c := newChooser(s, nil, rng)
	for i := range 12 {
		p := c.draw()
		p[0] = i % 10
		o := Observation{Point: p, Against: s.Start, LogRatio: 0.02 * float64(p[0]), SE: 0.04}
		if p[0] >= 7 {
			o.Infeasible = "killed"
		}
		history = append(history, o)
	}
	count := func(history []Observation) (high int) {
		for seed := range uint64(20) {
			if p, _ := Next(s, history, generator(seed)); p[0] >= 7 {
				high++
			}
		}
		return high
	}
	told := count(history)
	for i := range history {
		history[i].Infeasible = ""
	}
	if untold := count(history); told > 5 || untold < 15 {
		t.Errorf("of 20 proposals %d were where points are killed, %d where they are not", told, untold)
	}
}

// TestSurrogateWeighs looks at what one observation does: less than it shows, the less so the surer it is.
func TestSurrogateWeighs(t *testing.T) {
	p := Point{1, 1, 0}
	last := 0.0
	for _, se := range []float64{0.5, 0.1, 0.01} {
		b := Best(small(), []Observation{seen(p, 0.2, se, 0)})
		if !slices.Equal(b.Point, p) || b.Gain <= last || b.Gain >= 0.2 {
			t.Errorf("a gain of 0.2 with an error of %v is held to be %v at %v; want between %v and 0.2", se, b.Gain, b.Point, last)
		}
		if b.SE <= 0 || b.SE >= se*1.01 {
			t.Errorf("an error of %v became one of %v", se, b.SE)
		}
		last = b.Gain
	}
	if b := Best(small(), []Observation{seen(p, -0.2, 0.1, 0)}); !slices.Equal(b.Point, small().Start) || b.Gain != 0 {
		t.Errorf("of a start and a worse point the best is %v", b)
	}
	refused := seen(p, 0.2, 0.1, 0)
	refused.Infeasible = "killed"
	if b := Best(small(), []Observation{seen(p, 0.2, 0.1, 0), refused}); !slices.Equal(b.Point, small().Start) {
		t.Errorf("%v was killed once and cannot be the best", b.Point)
	}
}

// TestReferenceShared: two points that beat the same trial of the incumbent may owe it to that one's bad
// luck; two that beat two trials of it, less so.
func TestReferenceShared(t *testing.T) {
	gain := func(reference int) float64 {
		m := collect(small(), []Observation{seen(Point{1, 1, 0}, 0.1, 0.1, 0), seen(Point{0, 0, 0}, 0.1, 0.1, reference)})
		for _, k := range small().Knobs {
			m.kernel.tables = append(m.kernel.tables, k.correlation())
			m.kernel.scale = append(m.kernel.scale, 0.01)
		}
		m.solve()
		mean, _ := m.gains(small().Start)(Point{1, 1, 0})
		return mean
	}
	if own, shared := gain(1), gain(0); math.Abs(own-0.1*2/3) > 1e-9 || math.Abs(shared-0.1*0.02/0.035) > 1e-9 {
		t.Errorf("by hand 0.0667 and 0.0571, got %v and %v", own, shared)
	}
}

// TestSurrogateKnowsItsError counts how often the truth is within two standard deviations of what the
// surrogate holds.
func TestSurrogateKnowsItsError(t *testing.T) {
	s := cells()[0].surface()
	inside, all := 0, 0
	for seed := range uint64(8) {
		l := &lab{surface: s, noise: 0.05, rng: generator(seed)}
		runRandom(l, 25)
		gain := fit(s.space, l.history).gains(s.space.Start)
		for range 50 {
			p, _ := newChooser(s.space, nil, l.rng).random()
			mean, sd := gain(p)
			all++
			if math.Abs(mean-s.value(p)+s.value(s.space.Start)) < 2*sd {
				inside++
			}
		}
	}
	if share := float64(inside) / float64(all); share < 0.8 {
		t.Errorf("the truth was within two standard deviations in %.0f %% of %d predictions", 100*share, all)
	}
}

func TestRemeasure(t *testing.T) {
	p := Point{0}
	if !Remeasure(nil, 0) || Remeasure(p, 0) || Remeasure(p, stale-1) || !Remeasure(p, stale) {
		t.Error("the incumbent is to be measured before anything else and after so many trials")
	}
}

// TestHopeless races simulated trials of six stretches, with the noise of trials on top, which their
// stretches share.
func TestHopeless(t *testing.T) {
	const noise, stretch, races = 0.042, 0.03, 2000
	stopped := func(truth float64) (share, stretches float64) {
		rng := generator(9)
		for range races {
			shared := truth + noise*rng.NormFloat64()
			var ratios []float64
			for len(ratios) < 6 {
				ratios = append(ratios, shared+stretch*rng.NormFloat64())
				if Hopeless(ratios, noise, 4) {
					share += 1.0 / races
					break
				}
			}
			stretches += float64(len(ratios)) / races
		}
		return share, stretches
	}
	if share, _ := stopped(-worse); share > risk {
		t.Errorf("points exactly that much worse: %.1f %% stopped, at most 5 %% may be", 100*share)
	}
	if share, _ := stopped(0); share > 0.005 {
		t.Errorf("points as good as the incumbent: %.1f %% stopped", 100*share)
	}
	if share, stretches := stopped(-0.4); share < 0.95 || stretches > 4.5 {
		t.Errorf("points a third slower: %.0f %% stopped after %.1f of 6 stretches, want nearly all after 4.5 at most", 100*share, stretches)
	}
	if Hopeless([]float64{-5, -5}, 0, 1) || Hopeless([]float64{0.5, 0.5, 0.5}, 0, 1) || !Hopeless([]float64{-1, -1, -1}, 0.05, 1) {
		t.Error("two ratios do not stop, faster ones do not, three that agree on a third of the speed do")
	}
}

// guardSeeds are fewer than the benchmark's.
const guardSeeds = 15

// TestBeatsRandomAndGrid guards what BenchmarkSearch prints.
func TestBeatsRandomAndGrid(t *testing.T) {
	for _, c := range cells() {
		for _, where := range lost(c.surface(), 0.03, guardSeeds, 0) {
			t.Error(where)
		}
	}
}

// TestRecording writes points of a synthetic surface, reads them, and searches the surface made of them.
func TestRecording(t *testing.T) {
	l := &lab{surface: cells()[1].surface(), noise: 0.03, rng: generator(1)}
	runRandom(l, 300)
	written := Recording{"synthetic, of a test", l.surface.space, l.history}
	var file bytes.Buffer
	if err := written.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := ReadRecording(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range written.Observations {
		if o := &written.Observations[i]; o.Infeasible != "" && read.Observations[i].Infeasible == "" {
			t.Fatalf("observation %d lost its reason", i)
		}
	}
	if !reflect.DeepEqual(read, written) {
		t.Fatal("what was read is not what was written")
	}
	s := recorded(read, "recorded")
	truth, killed := 0.0, 0
	rng := generator(7)
	for range 200 {
		p, _ := newChooser(s.space, nil, rng).random()
		_, ok := s.log(p)
		_, really := l.surface.log(p)
		if ok != really {
			killed++
		} else if ok {
			truth += math.Abs(s.value(p)-l.surface.value(p)+l.surface.value(s.space.Start)) / 200
		}
	}
	if truth > 0.15 || killed > 50 {
		t.Errorf("the surface of the recording is off by %.2f, and wrong about what is killed in %d of 200", truth, killed)
	}
}

// behindBy says how far behind another method the search may be on a surface of few real trials, which mostly
// has their noise: the median regret of 100 seeds is known to about a point.
const behindBy = 0.01

// TestRealPoints holds the search against surfaces made of real trials.
func TestRealPoints(t *testing.T) {
	files := recordings(t)
	if len(files) == 0 {
		t.Fatal("no points of real trials are recorded in testdata")
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s, noise := realSurface(t, name)
			if behind := lost(s, noise, 100, behindBy); len(behind) > 0 {
				t.Error(strings.Join(behind, "\n"))
			}
		})
	}
}

// lost says where the search is behind another method by so much and more, in median regret after 15 and 30
// trials.
func lost(s surface, noise float64, seeds int, by float64) (list []string) {
	counts := []int{15, 30}
	search := regrets(s, noise, methods()[0], counts, seeds)
	for _, m := range methods()[1:] {
		other := regrets(s, noise, m, counts, seeds)
		for i, n := range counts {
			if mine, theirs := median(search[i]), median(other[i]); mine >= theirs+by {
				list = append(list, fmt.Sprintf("%s, %d trials: the search leaves %s, %s %s", s.name, n, percent(mine), m.name, percent(theirs)))
			}
		}
	}
	return list
}

// recordings returns the files with points of real trials.
func recordings(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readRecording(t testing.TB, name string) Recording {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ReadRecording(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// realSurface returns the surface of a recording and the noise of its trials: pairs have twice the variance.
func realSurface(t testing.TB, name string) (surface, float64) {
	r := readRecording(t, name)
	var errors []float64
	for _, o := range r.Observations {
		if o.Infeasible == "" {
			errors = append(errors, o.SE)
		}
	}
	return recorded(r, filepath.Base(name)), median(errors) / math.Sqrt2
}

func TestReadRecordingErrors(t *testing.T) {
	const head = `{"schema":1,"about":"","knobs":[{"name":"a","levels":[{"value":"0","special":true},{"value":"9","number":9}],"cost":"restart"}],"start":{"a":"0"}}` + "\n"
	for text, want := range map[string]string{
		"":   "it is empty",
		"{}": "schema 0 is not known",
		strings.Replace(head, `"schema":1`, `"schema":2`, 1):   "schema 2 is not known",
		strings.Replace(head, "restart", "reboot", 1):          "unknown cost",
		strings.Replace(head, `{"a":"0"}`, `{"a":"7"}`, 1):     `"7" is not a level of "a"`,
		strings.Replace(head, `"number":9`, `"number":-9`, 1):  "-9 after 0",
		head + `{"at":{"b":"9"},"against":{"a":"0"},"se":1}`:   `line 2 of the recording: cannot place a point without a value of "a"`,
		head + `{"at":{"a":"9"},"against":{"a":"0"}}`:          "the error above 0",
		head + `{"at":{"a":"9"},"against":{"a":"0"},"x":1}`:    `unknown field "x"`,
		head + `{"at":{"a":"9"},"against":{"a":"0"},"se":1} 2`: "more than one value",
	} {
		if _, err := ReadRecording(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwant an error with %q, got %v", text, want, err)
		}
	}
}

func FuzzReadRecording(f *testing.F) {
	var file bytes.Buffer
	r := Recording{"a seed", small(), []Observation{seen(Point{0, 1, 2}, 0.1, 0.05, 1), {Point: Point{0, 0, 1}, Against: Point{1, 0, 0}, Infeasible: "killed"}}}
	if err := r.Write(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := ReadRecording(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := read.Write(&again); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if twice, err := ReadRecording(&again); err != nil || !reflect.DeepEqual(twice, read) {
			t.Fatalf("what was written reads differently: %v", err)
		}
		if _, ok := Next(read.Space, read.Observations, generator(1)); !ok && read.Space.size(enumerable) > len(read.Observations)*2+2 {
			t.Fatal("points are left, and none was proposed")
		}
	})
}
