package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
)

// Record holds what an experiment's store holds of what can be explained.
type Record struct {
	Experiment result.Experiment
	Arms       []result.Arm
	Trials     []result.Trial
	Finish     *result.Finish // nil: not finished
	// Full gives a trial with its counters, profile and samples; nil where Trials have them.
	Full func(result.Trial) (result.Trial, error)
}

// Pick finds the trial that a name means: the median of an arm's, or the one trial of that ID; "" means the winner's, or the
// last arm's. which says in words which it is of how many.
func (d Record) Pick(name string) (in Input, which string, err error) {
	if len(d.Trials) == 0 {
		return in, "", fmt.Errorf("cannot explain %s: it has no trial yet", d.Experiment.ID)
	}
	arm, trials, err := d.named(name)
	if err != nil {
		return in, "", err
	}
	t, of := median(trials)
	if d.Full != nil {
		if t, err = d.Full(t); err != nil {
			return in, "", err
		}
	}
	if err := explainable(d.Experiment.ID, t); err != nil {
		return in, "", err
	}
	server := d.Experiment.Server
	if arm.Server != (result.Server{}) {
		server = arm.Server
	}
	in = Input{Experiment: d.Experiment.ID, Arm: arm, Server: server, Trial: t, Host: d.Experiment.Host, Probed: d.Experiment.Limits}
	return in, fmt.Sprintf("%s, arm %s, trial %s%s", d.Experiment.ID, arm.Name, t.ID, of), nil
}

// named gives the arm and the trials that a name means: the arm's, or the one trial's; without a name the winner's, or the
// last arm's that has trials.
func (d Record) named(name string) (result.Arm, []result.Trial, error) {
	if name == "" {
		name = d.defaultArm()
	}
	for _, arm := range d.Arms {
		if arm.Name != name {
			continue
		}
		if trials := d.lastLoad(those(d.Trials, func(t result.Trial) bool { return t.Arm == name })); len(trials) > 0 {
			return arm, trials, nil
		}
		return arm, nil, fmt.Errorf("cannot explain arm %s: it has no trial; those with one: %s", name, strings.Join(d.armsWithTrials(), ", "))
	}
	trials := those(d.Trials, func(t result.Trial) bool { return t.ID == name })
	i := slices.IndexFunc(d.Arms, func(arm result.Arm) bool { return len(trials) > 0 && arm.Name == trials[0].Arm })
	if i < 0 {
		return result.Arm{}, nil, fmt.Errorf("%s has no arm or trial %q; arms: %s; trials: %s", d.Experiment.ID, name,
			strings.Join(d.armsWithTrials(), ", "), strings.Join(d.trialNames(), ", "))
	}
	return d.Arms[i], trials, nil
}

// defaultArm is the winner of a tune, else the last arm that has trials, and is no ceiling where there is another.
func (d Record) defaultArm() string {
	if d.Finish != nil && d.Finish.Best != "" {
		return d.Finish.Best
	}
	kept := d
	kept.Arms = slices.DeleteFunc(slices.Clone(d.Arms), func(arm result.Arm) bool { return arm.Ceiling })
	if names := kept.armsWithTrials(); len(names) > 0 {
		return names[len(names)-1]
	}
	if names := d.armsWithTrials(); len(names) > 0 {
		return names[len(names)-1]
	}
	return d.Trials[len(d.Trials)-1].Arm
}

func (d Record) armsWithTrials() (names []string) {
	for _, arm := range d.Arms {
		if slices.ContainsFunc(d.Trials, func(t result.Trial) bool { return t.Arm == arm.Name }) {
			names = append(names, arm.Name)
		}
	}
	return names
}

// trialsNamed is how many trials an error lists.
const trialsNamed = 10

// trialNames says which trials there are.
func (d Record) trialNames() (names []string) {
	for _, t := range d.Trials[:min(trialsNamed, len(d.Trials))] {
		names = append(names, fmt.Sprintf("%s (%s, block %d, threads %d, %.0f tps)", t.ID, t.Arm, t.Block, t.Workload.Threads, t.TPS))
	}
	if more := len(d.Trials) - trialsNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

func those(trials []result.Trial, keep func(result.Trial) bool) []result.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return !keep(t) })
}

// lastLoad keeps the trials of the experiment's last workload that has any.
func (d Record) lastLoad(trials []result.Trial) []result.Trial {
	for _, w := range slices.Backward(d.Experiment.Workloads) {
		if own := those(trials, func(t result.Trial) bool { return t.Workload == w }); len(own) > 0 {
			return own
		}
	}
	return trials
}

// median is the trial in the middle by throughput, of those whose gates hold where there are any, and says so.
func median(trials []result.Trial) (result.Trial, string) {
	if len(trials) == 1 {
		return trials[0], ""
	}
	valid := those(trials, func(t result.Trial) bool { ok, _ := t.Valid(); return ok })
	kind := "trials"
	if len(valid) > 0 {
		trials = valid
	} else {
		kind = "trials, of which none counts"
	}
	slices.SortStableFunc(trials, func(x, y result.Trial) int { return cmp.Compare(x.TPS, y.TPS) })
	return trials[(len(trials)-1)/2], fmt.Sprintf(" (the median by throughput of %d %s)", len(trials), kind)
}

// explainable refuses a trial whose record does not say what its connections did.
func explainable(id string, t result.Trial) error {
	var missing []string
	if len(t.Counters) == 0 {
		missing = append(missing, "the server's counters")
	}
	if t.Profile == nil {
		missing = append(missing, "the profile of what its connections did")
	}
	if len(missing) > 0 {
		return fmt.Errorf("cannot explain trial %s of %s: its record lacks %s, as nothing could be seen: measure it again",
			t.ID, id, strings.Join(missing, " and "))
	}
	return nil
}
