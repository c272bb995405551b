package lab

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
)

// unequal refuses arms that are asked for with another durability than the control's, before anything is
// started. What they do not set is told by their servers, which the engine asks before it loads them.
func (r Request) unequal(arms []result.Arm, flavours []mycnf.Flavour) error {
	control := 0
	for i, arm := range arms {
		if arm.Name == r.Design.Control {
			control = i
		}
	}
	base := asked(flavours[control], arms[control])
	var reasons []string
	for i, arm := range arms {
		if i == control || arm.Ceiling {
			continue
		}
		for _, v := range mycnf.CompareServers(flavours[control], flavours[i], base, asked(flavours[i], arm)) {
			reasons = append(reasons, v.Between(arms[control].Name, arm.Name))
		}
	}
	if len(reasons) > 0 {
		return refuse("durability differs, and speed that was bought with data that can be lost is no speed: %s; set it alike in both arms", strings.Join(reasons, "; "))
	}
	return nil
}

// noVerdict refuses arms that are asked for with less durability than the control's, or with more: measured they would
// get no verdict (stats.Compare).
func (r Request) noVerdict(arms []result.Arm, flavours []mycnf.Flavour) error {
	given := func(i int) string {
		var list []string
		for _, v := range mycnf.CheckLock(flavours[i], mycnf.Asked(flavours[i], mycnf.Version{}, arms[i].Settings)) {
			if v.Got != "" {
				list = append(list, v.Name+"="+v.Got)
			}
		}
		return strings.Join(list, ", ")
	}
	control := max(0, slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Name == r.Design.Control }))
	for i, arm := range arms {
		if own, base := given(i), given(control); own != base && !arm.Ceiling {
			return refuse("arm %s gets no verdict, as its durability is not the control's: it is asked for with %s, %s with %s; set it alike in both", arm.Name, cmp.Or(own, "nothing unsafe"), arms[control].Name, cmp.Or(base, "nothing unsafe"))
		}
	}
	return nil
}

// asked returns what an arm sets of the durability lock, and of the rest what servers do unless they are told
// otherwise, as far as that is everywhere the same: see rules.Beside.
func asked(f mycnf.Flavour, arm result.Arm) map[string]string {
	vars := map[string]string{"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "transaction_isolation": "REPEATABLE-READ"}
	for _, l := range mycnf.Lock(f) {
		if len(l.Safe) > 0 {
			vars[l.Name] = l.Safe[0]
		}
	}
	for name, value := range mycnf.Asked(f, mycnf.Version{}, arm.Settings) {
		vars[name] = value
	}
	return vars
}

// Objections lists why a comparison of servers, each named by its flavour, gives no verdict: too few
// blocks, or another durability. No server is asked; memory is what this process may use, in bytes.
func (r Request) Objections(memory int64) (reasons []error, err error) {
	var arms []result.Arm
	var flavours []mycnf.Flavour
	for _, want := range r.Arms {
		e, ok := server.ParseEngine(want.Server)
		if !ok {
			return nil, refuse("arm %s: the server %q is none of %s", want.Name, want.Server, server.EngineForm)
		}
		settings, err := want.assigned(e.Flavour, memory)
		if err != nil {
			return nil, err
		}
		arms, flavours = append(arms, want.upon(rules.Beside(e.Flavour), settings, r.Caps)), append(flavours, e.Flavour)
	}
	for _, err := range []error{r.unequal(arms, flavours), r.Fits()} {
		var input InputError
		if errors.As(err, &input) {
			reasons = append(reasons, err)
		}
	}
	return reasons, nil
}

// assigned are the settings an arm is given one by one.
func (a Arm) assigned(f mycnf.Flavour, memory int64) (list []mycnf.Setting, err error) {
	sets := a.Sets
	if a.More != nil {
		if sets, err = a.More(f, memory); err != nil {
			return nil, err
		}
	}
	for _, text := range sets {
		s, err := mycnf.ParseSetting(text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
