package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/result"
)

// borrowedMax bounds the share of the redo that was written that may be left to be paid for by flushing pages
// later.
const borrowedMax = 0.10

// Borrowed says so where more redo debt is left than there was before: a longer run pays for it. before and
// after are checkpoint ages and written is the redo made between them, all in bytes; "" where the server does
// not tell them.
func Borrowed(before, after *float64, written float64) string {
	if before == nil || after == nil || written <= 0 {
		return ""
	}
	grown := *after - *before
	if grown <= borrowedMax*written {
		return ""
	}
	return fmt.Sprintf("the checkpoint age grew from %v to %v MiB, so the pages behind %.0f %% of the redo it wrote are still to be flushed", tenths(*before/(1<<20)), tenths(*after/(1<<20)), 100*grown/written)
}

// tenths rounds x, so that a small growth is seen.
func tenths(x float64) float64 { return math.Round(10*x) / 10 }

// Debts tells in how many of the incarnations of an arm, in slices, more redo debt was left at the end of its
// last slice than there was at the beginning of its first: a longer run pays for it. seen is the first of
// them in words. Incarnations whose server does not tell are left out.
func Debts(trials []result.Trial) (incarnations, borrowed int, seen string) {
	type start struct{ session, incarnation int }
	groups := map[start][]result.Trial{}
	var order []start
	for _, t := range trials {
		at := start{t.Session, t.Incarnation}
		if groups[at] == nil {
			order = append(order, at)
		}
		groups[at] = append(groups[at], t)
	}
	for _, at := range order {
		own := groups[at]
		slices.SortStableFunc(own, inTime)
		before, after := own[0].Before.CheckpointAge, own[len(own)-1].After.CheckpointAge
		written := 0.0
		for _, t := range own {
			if t.Costs.RedoBytes != nil {
				written += *t.Costs.RedoBytes * float64(t.Transactions)
			}
		}
		if before == nil || after == nil || written <= 0 {
			continue
		}
		incarnations++
		if text := Borrowed(before, after, written); text != "" {
			borrowed++
			seen = cmp.Or(seen, text)
		}
	}
	return incarnations, borrowed, seen
}

// debts returns the warning of an arm's debts; none where it has none.
func (s *armSample) debts() []string {
	of, borrowed, seen := Debts(s.valid)
	if borrowed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %s: %s", borrowed, count(of, "start"), result.Warning{Kind: result.BorrowedSpeed, Text: seen})}
}
