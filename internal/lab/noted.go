package lab

import (
	"cmp"
	"time"

	"david/internal/experiment"
	"david/internal/result"
)

// noted shows what happens and notes it in the record too, where david serve and --metrics look. A measurement goes on
// without it.
func (l Lab) noted(store *result.Store) func(experiment.Event) {
	broken := false
	return func(ev experiment.Event) {
		l.show(ev)
		if broken {
			return
		}
		if err := store.Note(moment(ev)); err != nil {
			broken = true
			l.logf("%v; david serve and --metrics cannot follow this run", err)
		}
	}
}

func moment(ev experiment.Event) result.Moment {
	return result.Moment{At: time.Now(), Text: cmp.Or(ev.Step, ev.Text), Line: ev.Line, Phase: ev.Phase, Arm: ev.Arm, Round: ev.Round, Left: ev.Left.Seconds(), Point: ev.Point}
}
