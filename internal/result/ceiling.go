package result

import "slices"

// WithoutCeilings returns the arms that take part in a comparison, and their trials: none of an arm that is a
// ceiling.
func WithoutCeilings(arms []Arm, trials []Trial) ([]Arm, []Trial) {
	ceilings := map[string]bool{}
	for _, a := range arms {
		if a.Ceiling {
			ceilings[a.Name] = true
		}
	}
	if len(ceilings) == 0 {
		return arms, trials
	}
	arms = slices.DeleteFunc(slices.Clone(arms), func(a Arm) bool { return a.Ceiling })
	trials = slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return ceilings[t.Arm] })
	return arms, trials
}
