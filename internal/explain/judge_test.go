package explain

import "testing"

func TestJudge(t *testing.T) {
	faster := Confirm{Expect: Faster, Ratio: 2}
	slower := Confirm{Expect: Slower, Ratio: 0.7}
	same := Confirm{Expect: NotSlower, Ratio: 1}
	for name, c := range map[string]struct {
		confirm Confirm
		outcome Outcome
		want    Judgement
	}{
		"as expected":           {faster, Outcome{1.9, [2]float64{1.7, 2.1}, 4, nil}, Confirmed},
		"a third of it":         {faster, Outcome{1.27, [2]float64{1.1, 1.4}, 4, nil}, Confirmed},
		"too little":            {faster, Outcome{1.05, [2]float64{0.99, 1.11}, 4, nil}, Refuted},
		"the other way":         {faster, Outcome{0.8, [2]float64{0.7, 0.9}, 4, nil}, Refuted},
		"a wide interval":       {faster, Outcome{1.3, [2]float64{0.9, 1.8}, 4, nil}, Undecided},
		"sure, and very little": {faster, Outcome{1.04, [2]float64{1.03, 1.05}, 9, nil}, Refuted},
		"slower as expected":    {slower, Outcome{0.72, [2]float64{0.68, 0.76}, 4, nil}, Confirmed},
		"not slower after all":  {slower, Outcome{0.99, [2]float64{0.96, 1.02}, 4, nil}, Refuted},
		"slower, a wide one":    {slower, Outcome{0.85, [2]float64{0.6, 1.2}, 2, nil}, Undecided},
		"one block":             {faster, Outcome{2, [2]float64{0, 0}, 1, nil}, Undecided},
		"not slower":            {same, Outcome{1.02, [2]float64{0.98, 1.06}, 4, nil}, Confirmed},
		"slower with fewer":     {same, Outcome{0.6, [2]float64{0.55, 0.66}, 4, nil}, Refuted},
		"perhaps not slower":    {same, Outcome{0.97, [2]float64{0.9, 1.05}, 4, nil}, Undecided},
	} {
		if got, why := c.confirm.Judge(c.outcome); got != c.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", name, got, why, c.want)
		}
	}
}
