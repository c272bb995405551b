package live

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

func TestSecondsP95(t *testing.T) {
	many := func(n int, s Second) (list []Second) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	usual, slow := Second{100, 10}, Second{100, 200}
	for name, c := range map[string]struct {
		seconds   []Second
		low, high float64
	}{
		"alike":                 {many(30, usual), 9.999, 10.001},
		"none ended":            {many(30, Second{}), 0, 0},
		"nothing":               {nil, 0, 0},
		"a stall beside them":   {append(many(30, usual), Second{}), 9.999, 10.001},
		"one slow second of 60": {append(many(59, usual), slow), 10.5, 12},
		"a sixth of them slow":  {append(many(50, usual), many(10, slow)...), 50, 200},
		"all slow":              {many(5, slow), 199.99, 200.01},
		"slow, and few":         {append(many(59, usual), Second{1, 1000}), 10, 10.1},
	} {
		if got := secondsP95(c.seconds); got < c.low || got > c.high || math.IsNaN(got) {
			t.Errorf("%s: %v ms, want %v to %v", name, got, c.low, c.high)
		}
	}
	if got := loadP95(many(4, usual)); got != nil {
		t.Errorf("p95 %v of 400 transactions", *got)
	}
	if got := loadP95(many(5, usual)); got == nil {
		t.Error("no p95 of 500 transactions")
	}
}

// TestLoadIsJudged is a server that shows no latency, under david's own load.
func TestLoadIsJudged(t *testing.T) {
	before := result.LiveWindow{Seconds: 60, Statements: 60000, LoadP95: ms(10)}
	now := before
	now.LoadP95 = ms(12)
	if got := worse(before, now, 1.1); !strings.Contains(got, "p95 of david's own load is 12 ms, 1.20x") {
		t.Errorf("got %q", got)
	}
	before.Mean, now.Mean = ms(3), ms(3)
	if got := worse(before, now, 1.1); got != "" {
		t.Errorf("the load was judged where the server's statements can be: %q", got)
	}
}

// TestLonger: a window with too little traffic is longer, ten times before the first step and three times
// after one; then the run ends, and the step is set back.
func TestLonger(t *testing.T) {
	r := Run{Watch: time.Minute, MaxP95: 1.1}
	parts := []float64{10, 10.1, 9.9, 10, 10.1, 9.9}
	before := result.LiveWindow{Seconds: 60, Statements: 600, Mean: ms(10), Parts: parts}
	for name, c := range map[string]struct {
		before *result.LiveWindow
		now    result.LiveWindow
		longer bool
		err    error
	}{
		"enough":                     {nil, result.LiveWindow{Seconds: 60, Statements: 600, Mean: ms(10)}, false, nil},
		"too few":                    {nil, result.LiveWindow{Seconds: 60, Statements: 300}, true, nil},
		"none at all":                {nil, result.LiveWindow{Seconds: 540}, true, nil},
		"none for too long":          {nil, result.LiveWindow{Seconds: 600}, false, ErrQuiet},
		"shown":                      {&before, before, false, nil},
		"not shown yet":              {&before, result.LiveWindow{Seconds: 60, Statements: 600, Mean: ms(10), Parts: parts[:2]}, true, nil},
		"not shown":                  {&before, result.LiveWindow{Seconds: 180, Statements: 600, Mean: ms(10), Parts: parts[:2]}, false, ErrUnproven},
		"too few after a step":       {&before, result.LiveWindow{Seconds: 120, Statements: 30}, true, nil},
		"too few after it, too long": {&before, result.LiveWindow{Seconds: 180, Statements: 30}, false, ErrUnproven},
	} {
		if longer, err := r.longer(c.before, c.now); longer != c.longer || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, longer, err)
		}
	}
}

// TestLoadEnds is a load that ends by itself: what is read then counts for nothing.
func TestLoadEnds(t *testing.T) {
	l := NewLoad(func() error { return nil })
	for range 3 {
		l.Add(Second{1, 1})
	}
	if s, err := l.soFar(); len(s) != 3 || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	why := errors.New("no more")
	l.End(why)
	if _, err := l.soFar(); !errors.Is(err, why) {
		t.Error(err)
	}
	over := NewLoad(nil)
	over.End(nil)
	if _, err := over.soFar(); err == nil {
		t.Error("a load that ended goes unnoticed")
	}
	if s, err := (*Load)(nil).soFar(); s != nil || err != nil {
		t.Errorf("no load: %v, %v", s, err)
	}
	run := Run{Load: func(context.Context) (*Load, error) { return nil, why }, Watch: time.Second}
	if _, end, err := run.begin(t.Context()); !errors.Is(err, why) || end() != nil {
		t.Error(err)
	}
}

// TestSameServer is whom a record is of. A MariaDB whose machine has no MAC address does not know its
// server_uid.
func TestSameServer(t *testing.T) {
	a := Server{UUID: "a", Hostname: "h", Port: "1", Datadir: "/d"}
	nobody, other := a, a
	nobody.UUID = "unknown"
	other.UUID, other.Datadir = "unknown", "/e"
	for name, c := range map[string]struct {
		a, b Server
		want bool
	}{
		"itself":                     {a, a, true},
		"another":                    {a, Server{UUID: "b", Hostname: "h", Port: "1", Datadir: "/d"}, false},
		"moved":                      {a, Server{UUID: "a", Hostname: "g"}, true},
		"unknown, the same place":    {nobody, nobody, true},
		"unknown, another place":     {nobody, other, false},
		"unknown, and one that is":   {nobody, a, false},
		"unknown, and without a uid": {nobody, Server{Hostname: "h", Port: "1", Datadir: "/d"}, true},
	} {
		if c.a.is(c.b) != c.want || c.b.is(c.a) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}
