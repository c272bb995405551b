package live

import (
	"math"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

func ms(v float64) *float64 { return &v }

func TestWorse(t *testing.T) {
	before := result.LiveWindow{Seconds: 60, Statements: 60000, Errors: 10, Running: 4, P95: ms(10), Mean: ms(3)}
	for name, c := range map[string]struct {
		change func(*result.LiveWindow)
		want   string
	}{
		"the same":             {func(*result.LiveWindow) {}, ""},
		"at the limit":         {func(w *result.LiveWindow) { w.P95 = ms(11) }, ""},
		"p95 above it":         {func(w *result.LiveWindow) { w.P95 = ms(11.5) }, "p95 is 11.5 ms, 1.15x"},
		"mean beside p95":      {func(w *result.LiveWindow) { w.Mean = ms(9) }, ""},
		"twice the errors":     {func(w *result.LiveWindow) { w.Errors = 20 }, ""},
		"many more errors":     {func(w *result.LiveWindow) { w.Errors = 40 }, "errors grew: 40"},
		"errors with traffic":  {func(w *result.LiveWindow) { w.Statements, w.Errors = 240000, 45 }, ""},
		"less traffic":         {func(w *result.LiveWindow) { w.Statements, w.Running = 600, 0.1 }, ""},
		"a stall":              {func(w *result.LiveWindow) { w.Statements, w.Running, w.P95 = 600, 40, nil }, "statements stall"},
		"too few for a p95":    {func(w *result.LiveWindow) { w.P95 = nil }, ""},
		"nothing to do by now": {func(w *result.LiveWindow) { *w = result.LiveWindow{Seconds: 60} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := before
			c.change(&now)
			if got := worse(before, now, 1.1); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	blind := before
	blind.P95 = nil
	slow := blind
	slow.Mean = ms(4)
	if got := worse(blind, slow, 1.1); !strings.Contains(got, "mean latency is 4 ms") {
		t.Errorf("without p95: %q", got)
	}
}

// TestUnproven: a step is kept only where the whole interval of the ratio is within the limit.
func TestUnproven(t *testing.T) {
	around := func(center, spread float64) (parts []float64) {
		for i := range 10 {
			parts = append(parts, center+spread*float64(i%3-1))
		}
		return parts
	}
	before := result.LiveWindow{Seconds: 60, Statements: 60000, P95: ms(10), Parts: around(10, 0.3)}
	for name, c := range map[string]struct {
		now  result.LiveWindow
		want string
	}{
		"the same":              {result.LiveWindow{Statements: 60000, P95: ms(10), Parts: around(10, 0.3)}, ""},
		"faster":                {result.LiveWindow{Statements: 60000, P95: ms(5), Parts: around(5, 0.3)}, ""},
		"slower within it":      {result.LiveWindow{Statements: 60000, P95: ms(10.5), Parts: around(10.5, 0.1)}, ""},
		"at the limit":          {result.LiveWindow{Statements: 60000, P95: ms(11), Parts: around(11, 0.3)}, "and 1.1x is allowed"},
		"the same, but uneven":  {result.LiveWindow{Statements: 60000, P95: ms(10), Parts: around(10, 6)}, "p95 is between"},
		"too few parts to tell": {result.LiveWindow{Statements: 600, P95: ms(10), Parts: around(10, 0)[:2]}, "between 0x and"},
		"too few statements":    {result.LiveWindow{Statements: 3}, "3 since, and it takes 500 each"},
	} {
		if got := unproven(before, c.now, 1.1); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	before := map[string]bucket{"1": {0, 1, 50}, "2": {1, 2, 5}}
	after := map[string]bucket{"1": {0, 1, 140}, "2": {1, 2, 10}, "3": {2, 4, 5}}
	// 90, 5 and 5 were added: the 95th of 100 is the end of the second bucket, the 98th lies in the third
	for share, want := range map[float64]float64{0.45: 0.5, 0.95: 2, 0.98: 3.2} {
		if got := percentile(grown(before, after), share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: got %v, want %v", share, got, want)
		}
	}
	if got := percentile(grown(after, before), 1); got != 2 {
		t.Errorf("emptied in between: %v", got)
	}
	if got := percentile(nil, 0.95); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func FuzzHistogram(f *testing.F) {
	f.Add("1", "10", "20", "3")
	f.Add("449", "1e30", "18446744073709551615", "NaN")
	f.Fuzz(func(t *testing.T, key, low, high, count string) {
		all := histogram([][]string{{key, low, high, count}, {"short"}})
		if p := percentile(all, 0.95); math.IsNaN(p) || math.IsInf(p, 0) {
			t.Errorf("%v of %v", p, all)
		}
	})
}

func FuzzParse(f *testing.F) {
	head := `{"schema":1,"server":{"uuid":"u"}}` + "\n"
	f.Add([]byte(head))
	f.Add([]byte(head + `{"schema":1,"n":1,"event":"intended","name":"x","before":"1","after":"2"}` + "\n" + `{"schema":1,"n":1,"event":"set","after":"3"}` + "\n" + `{"sch`))
	f.Add([]byte(head + `{"schema":1,"n":2,"event":"undone"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, whole, err := parse(b)
		if err != nil {
			return
		}
		if whole > len(b) || whole > 0 && b[whole-1] != '\n' {
			t.Errorf("%d of %d bytes are whole", whole, len(b))
		}
		for i, c := range r.changes {
			if c.N != i+1 || c.Name == "" {
				t.Errorf("change %d is %+v", i, c)
			}
		}
	})
}

func TestParse(t *testing.T) {
	head := `{"schema":1,"server":{"uuid":"u"}}` + "\n"
	for text, want := range map[string]string{
		"":                         "unexpected end",
		`{"schema":1}` + "\n":      "names the server",
		`{"schema":2,"server":{}}`: "unexpected end", // torn: nothing is left
		head + head:                "no other, names the server",
		head + "{\"schema\":9}\n":  "schema 9",
		head + "{\"schema\":1,\"n\":1,\"event\":\"set\"}\n": "not there",
	} {
		if _, _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestLooks: a window that was interrupted at its first reading has no looks; a long one has few. Counting those of one
// reading once never ended, and the step was not set back.
func TestLooks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 121: 120, 122: 60, 1000: 111} {
		readings := make([]counterReading, n)
		for i := range readings {
			readings[i].at = time.Unix(int64(i), 0)
			readings[i].statements = float64(10 * i)
		}
		got := looks(readings)
		if len(got) != want || len(got) > mostLooks {
			t.Errorf("%d readings: %d looks, want %d", n, len(got), want)
		}
		for _, l := range got {
			if l.Rate < 9.999 || l.Rate > 10.001 {
				t.Errorf("%d readings: %+v, want 10 a second", n, l)
			}
		}
	}
}
