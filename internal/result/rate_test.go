package result

import "testing"

func TestSearchEnd(t *testing.T) {
	var open *Finish
	for _, c := range []struct {
		finish *Finish
		want   RateSearch
	}{
		{open, RateSearch{}},
		{&Finish{}, RateSearch{}},
		{&Finish{Best: "any words", RateSearch: &RateSearch{RateFound, 300}}, RateSearch{RateFound, 300}},
		{&Finish{Best: "300 any words", RateSearch: &RateSearch{Outcome: RateNone}}, RateSearch{Outcome: RateNone}},
		// records from before the field
		{&Finish{Best: "1,300 transactions/s keep p99 at or below 20 ms: 18 ms at worst in 2 runs"}, RateSearch{RateFound, 1300}},
		{&Finish{Best: "No rate keeps p99 at or below 20 ms: the best seen was 21 ms"}, RateSearch{Outcome: RateNone}},
		{&Finish{Best: "No rate can be judged: closed loop with 1 thread"}, RateSearch{Outcome: RateUnjudged}},
	} {
		if got := c.finish.SearchEnd(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.finish, got, c.want)
		}
	}
}
