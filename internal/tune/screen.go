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
func (m *state) screen() (Action, bool) {
	if m.finished != nil {
		return Action{}, false
	}
	var done []string
	for _, a := range m.h.Arms { // those on record first, in their order: the causes may be others by now
		if a.Phase == result.Screen {
			done = append(done, strings.TrimPrefix(a.Name, "screen-"))
			m.judgeScreen(a)
		}
	}
	for _, g := range byCauses(groups(), m.h.Causes) {
		if slices.Contains(done, g.name) {
			continue
		}
		arm, ok := m.proposal(g)
		if !ok {
			continue
		}
		n := m.left(result.Screen, m.Screens, screenUntil, arm)
		if n == 0 { // another group's may fit, in place
			continue
		}
		return m.pair(result.Screen, arm, "screening "+g.title+": "+arm.Title, n+m.Searches+m.Prunes), true
	}
	return Action{}, false
}

// judgeScreen takes an arm of the screen for the incumbent where it was faster, and notes what its group is
// worth.
func (m *state) judgeScreen(a result.Arm) {
	logs := m.logs(result.Screen, a.Name, a.Base)
	if m.out(a.Name) || len(logs) == 0 {
		return
	}
	gain, noise := stats.Mean(logs), m.noise()
	m.worth[strings.TrimPrefix(a.Name, "screen-")] = math.Abs(gain) / noise
	if a.Base == m.incumbent && gain > noise && !m.slow(result.Screen, a.Name) {
		m.incumbent = a.Name
	}
}

// proposal returns the arm that screens a group: with its settings, or without them where the incumbent has
// them. False where neither would change anything.
func (m *state) proposal(g knobGroup) (result.Arm, bool) {
	base := m.arms[m.incumbent]
	wanted := m.changing(base, m.free(m.Problem.Known(g.settings(m.Problem))))
	name := "screen-" + g.name
	if len(wanted) > 0 {
		return m.arm(name, "with "+listed(wanted), result.Screen, base, wanted), true
	}
	var has []string
	for _, s := range m.own(base) {
		if groupOf(s) == g.name && !m.bears(base, s.Name) {
			has = append(has, s.Name)
		}
	}
	if len(has) == 0 {
		return result.Arm{}, false
	}
	return m.reduced(name, result.Screen, base, has), true
}

// free leaves out what the user's own file fixes only where the plan says so; today every knob may be
// changed, and is named in the difference.
func (m *state) free(settings []mycnf.Setting) []mycnf.Setting { return settings }

// changing returns the settings whose value is not the one that the arm's server uses already.
func (m *state) changing(arm result.Arm, settings []mycnf.Setting) (list []mycnf.Setting) {
	for _, s := range settings {
		if got, ok := arm.Effective[s.Name]; !ok || mycnf.MatchValues(s.Name, s.Value, got) == mycnf.Different {
			list = append(list, s)
		}
	}
	return list
}

// own returns the settings of an arm that are not the control's.
func (m *state) own(arm result.Arm) (list []mycnf.Setting) {
	for _, s := range arm.Settings {
		same := func(c mycnf.Setting) bool { return c.Name == s.Name && c.Value == s.Value }
		if !slices.ContainsFunc(m.Control.Settings, same) {
			list = append(list, s)
		}
	}
	return list
}

// reduced returns an arm without some of its settings: what the control has of them is as the control has it.
func (m *state) reduced(name, phase string, base result.Arm, names []string) result.Arm {
	a := result.Arm{Name: name, Title: "without " + strings.Join(names, ", "), Phase: phase, Base: base.Name, Caps: m.Control.Caps, Changes: []mycnf.Setting{}}
	for _, s := range base.Settings {
		if !slices.Contains(names, s.Name) {
			a.Settings = append(a.Settings, s)
		}
	}
	for _, s := range m.Control.Settings {
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
