package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"david/internal/plan"
	"david/internal/price"
	"david/internal/storage"
)

// TestPlanBuysWhatStoragePlanBuys: over a grid of loads, sizes and providers the volumes on david plan's bill are those that the
// command it prints (david storage plan, of a managed database david price volumes) has first, in kind, number and US$.
func TestPlanBuysWhatStoragePlanBuys(t *testing.T) {
	t.Parallel()
	c, err := price.Default()
	if err != nil {
		t.Fatal(err)
	}
	compared, striped := 0, map[int]bool{}
	for _, gib := range []float64{10, 61, 200, 777, 3000} {
		for _, tps := range []float64{5, 37, 110, 290} {
			r := plan.Request{Data: price.Size(gib * (1 << 30)), TPS: tps, Queries: 20, Writes: 0.2, People: 1, ChangeApplication: true, Today: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
			p, err := plan.New(c, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range p.Choices {
				if !x.Priced || x.Provider == plan.Own || x.Volumes == "included" {
					continue
				}
				name, n, usd := bought(t, c, x.Commands[0])
				servers := float64(x.Shards * (x.Copies + x.Followers))
				if x.Kind == plan.NDB {
					servers = x.Bill.Lines[0].Count
				}
				billed := 0.0
				for _, l := range x.Bill.Lines {
					if strings.HasPrefix(l.What, name+", ") {
						billed += l.USDMonth
					}
				}
				if math.Abs(billed-usd*servers) > 0.01*3 || !strings.HasPrefix(x.Volumes, fmt.Sprintf("%s, %s", name, map[bool]string{true: "one volume", false: fmt.Sprintf("stripe of %d", n)}[n == 1])) {
					t.Errorf("%g GiB, %g/s, %s: the bill has %s at US$%.2f for %g servers, and %s buys %d %s at %.2f each", gib, tps, x.Name(), x.Volumes, billed, servers, x.Commands[0], n, name, usd)
				}
				compared++
				striped[n] = true
			}
		}
	}
	if compared < 500 || len(striped) < 4 {
		t.Errorf("%d compared, of %v volumes", compared, striped)
	}
}

// bought is what a command that a plan prints has first: the kind of its volumes, their number, US$ a month.
func bought(t *testing.T, c price.Catalogue, command string) (name string, volumes int, usd float64) {
	t.Helper()
	fields := strings.Fields(command)
	after := func(flag string) string { return fields[slices.Index(fields, flag)+1] }
	iops, err := strconv.ParseFloat(after("--iops"), 64)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	w := price.Wish{IOPS: iops}
	if w.Size, err = price.ParseSize(after("--size")); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	if fields[1] == "price" {
		m, _ := c.Machine(after("--instance"))
		ways, refused := c.Ways(w, &m)
		if len(ways) == 0 {
			t.Fatalf("%s: %v", command, refused)
		}
		return ways[0].Volume, ways[0].Volumes, ways[0].USDMonth
	}
	m, _ := c.Machine(after("--like"))
	p, err := storage.New(c, storage.Request{Wish: w, WriteShare: 0.5, Machine: &m})
	if err != nil || len(p.Choices) == 0 {
		t.Fatalf("%s: %v, %+v", command, err, p.Refused)
	}
	return p.Choices[0].Volume, p.Choices[0].Volumes, p.Choices[0].USDMonth
}
