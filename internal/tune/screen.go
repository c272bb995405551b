package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// screen tries each group's proposal beside the incumbent, those first that fit the bottleneck. One that is
// faster beyond the noise becomes the incumbent. Where the incumbent has the proposal already, it is run
// without the group, which tells what that is worth.
func (st *state) screen() (Action, bool) {
	if st.finished != nil {
		return Action{}, false
	}
	var done []string
	for _, a := range st.h.Arms { // those on record first, in their order: the causes may be others by now
		if a.Phase == result.Screen {
			done = append(done, screenedGroup(a))
			st.judgeScreen(a)
		}
	}
	for _, g := range byCauses(groups(), st.h.Causes) {
		if slices.Contains(done, g.name) {
			continue
		}
		arm, ok := st.proposal(g)
		if !ok {
			continue
		}
		n := st.left(result.Screen, st.Screens, screenUntil, arm)
		if n == 0 { // another group's may fit, in place
			continue
		}
		return st.pair(result.Screen, arm, "screening "+g.title+": "+arm.Title, n+st.Searches+st.Prunes), true
	}
	return Action{}, false
}

// screenName names the arm that screens a group; screenedGroup gives the group again.
func screenName(group string) string { return "screen-" + group }

func screenedGroup(a result.Arm) string { return strings.TrimPrefix(a.Name, screenName("")) }

// judgeScreen takes an arm of the screen for the incumbent where it was faster, and notes what its group is
// worth.
func (st *state) judgeScreen(a result.Arm) {
	logs := st.logs(result.Screen, a.Name, a.Base)
	if st.out(a.Name) || len(logs) == 0 {
		return
	}
	gain, noise := stats.Mean(logs), st.noise()
	st.worth[screenedGroup(a)] = math.Abs(gain) / noise
	if a.Base == st.incumbent && gain > noise && !st.slow(result.Screen, a.Name) {
		st.incumbent = a.Name
	}
}

// proposal returns the arm that screens a group: with its settings, or without them where the incumbent has
// them. False where neither would change anything.
func (st *state) proposal(g knobGroup) (result.Arm, bool) {
	base := st.arms[st.incumbent]
	wanted := st.changing(base, st.free(st.Problem.Known(g.settings(st.Problem))))
	name := screenName(g.name)
	if len(wanted) > 0 {
		return st.arm(name, "with "+listed(wanted), result.Screen, base, wanted), true
	}
	var has []string
	for _, s := range st.own(base) {
		if groupOf(s) == g.name && !st.bears(base, s.Name) {
			has = append(has, s.Name)
		}
	}
	if len(has) == 0 {
		return result.Arm{}, false
	}
	return st.reduced(name, result.Screen, base, has), true
}

// free leaves out what the user's own file fixes only where the plan says so; today every knob may be
// changed, and is named in the difference.
func (st *state) free(settings []mycnf.Setting) []mycnf.Setting { return settings }

// changing returns the settings whose value is not the one that the arm's server uses already.
func (st *state) changing(arm result.Arm, settings []mycnf.Setting) (list []mycnf.Setting) {
	for _, s := range settings {
		if got, ok := arm.Effective[s.Name]; !ok || mycnf.MatchValues(s.Name, s.Value, got) == mycnf.Different {
			list = append(list, s)
		}
	}
	return list
}

// own returns the settings of an arm that are not the control's.
func (st *state) own(arm result.Arm) (list []mycnf.Setting) {
	for _, s := range arm.Settings {
		same := func(c mycnf.Setting) bool { return c.Name == s.Name && c.Value == s.Value }
		if !slices.ContainsFunc(st.Control.Settings, same) {
			list = append(list, s)
		}
	}
	return list
}

// reduced returns an arm without some of its settings: what the control has of them is as the control has it.
func (st *state) reduced(name string, phase result.Phase, base result.Arm, names []string) result.Arm {
	a := result.Arm{Name: name, Title: "without " + strings.Join(names, ", "), Phase: phase, Base: base.Name, Caps: st.Control.Caps, Changes: []mycnf.Setting{}}
	for _, s := range base.Settings {
		if !slices.Contains(names, s.Name) {
			a.Settings = append(a.Settings, s)
		}
	}
	for _, s := range st.Control.Settings {
		if slices.Contains(names, s.Name) {
			a.Settings = append(a.Settings, s)
		}
	}
	return a
}

func listed(settings []mycnf.Setting) string {
	var list []string
	for _, s := range settings {
		list = append(list, strings.TrimSuffix(fmt.Sprintf("%s=%s", s.Name, s.Value), "="))
	}
	return strings.Join(list, ", ")
}
