package lab

import (
	"slices"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
)

// TestHeard says of advice that cannot race why it is not among the rivals.
func TestHeard(t *testing.T) {
	control := rules.Control(mycnf.MariaDB)
	kept := rules.Locked{Name: "sync_binlog", Shipped: "0", Lost: "commits"}
	for _, c := range []struct {
		name     string
		settings []mycnf.Setting
		rivals   int
		notes    []string
	}{
		{"settings", []mycnf.Setting{{Name: "table_open_cache", Value: "4000"}}, 1, nil},
		{"none", nil, 0, []string{TunerArm + ": " + kept.Short(), "mysqltuner is left out: it advises nothing that can be set"}},
		{"the control's", control.Settings[:1], 0, []string{TunerArm + ": " + kept.Short(), "mysqltuner is left out: the control has all that it advises"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, notes := heard(control, rules.Baseline{Name: TunerArm, Settings: c.settings, Locked: []rules.Locked{kept}})
			if len(list) != c.rivals || !slices.Equal(notes, c.notes) {
				t.Errorf("%d rivals, notes %q", len(list), notes)
			}
		})
	}
}
