package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"david/internal/experiment"
	"david/internal/plain"
)

// progress shows events: a bar on a terminal, lines elsewhere.
type progress struct {
	out  io.Writer
	bar  *progressbar.ProgressBar
	room int       // columns for what is being done
	step string    // the last one printed as a line
	at   time.Time // when
}

const barSteps = 1000

// A bar's columns, and those for its percentage, its frame and what is left; a line that does not fit cannot
// be cleared.
const (
	barColumns   = 12
	otherColumns = barColumns + 22
)

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	own := out // where the bar's own cursor moves go
	if w, ok := out.(*plain.Writer); ok {
		own = w.Own()
	}
	if f, ok := out.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		p.room = 64
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			p.room = max(12, min(p.room, columns-otherColumns))
		}
		p.bar = progressbar.NewOptions(barSteps, progressbar.OptionSetWriter(own), progressbar.OptionSetWidth(barColumns),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionClearOnFinish())
	}
	return p
}

// text shows what is done outside of an experiment's plan.
func (p *progress) text(text string) { p.show(experiment.Event{Text: text}) }

func (p *progress) show(ev experiment.Event) {
	if p.bar == nil {
		p.lines(ev)
		return
	}
	if ev.Line != "" {
		p.bar.Clear()
		fmt.Fprintln(p.out, ev.Line)
		return
	}
	ev.Text = plain.Line(ev.Text)
	if total := ev.Done + ev.Left; ev.Left > 0 {
		p.bar.Describe(fmt.Sprintf("%-*.*s %s left", p.room, p.room, ev.Text, ev.Left.Round(time.Second)))
		p.bar.Set(int(barSteps * ev.Done / total))
		return
	}
	p.bar.Describe(fmt.Sprintf("%-*.*s", p.room, p.room, ev.Text))
}

// lines prints results at once, and what is being done when it changes or every 15 seconds.
func (p *progress) lines(ev experiment.Event) {
	if ev.Line != "" {
		fmt.Fprintln(p.out, ev.Line)
		return
	}
	step := cmp.Or(ev.Step, ev.Text)
	if step == p.step && time.Since(p.at) < 15*time.Second {
		return
	}
	p.step, p.at = step, time.Now()
	if ev.Left > 0 {
		fmt.Fprintf(p.out, "%s (%s left)\n", ev.Text, ev.Left.Round(time.Second))
		return
	}
	fmt.Fprintln(p.out, ev.Text)
}

// end takes the bar off the screen.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
