package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"david/internal/experiment"
	"david/internal/plain"
)

// progress shows events: one line that is written again and again on a terminal, in a log a line for each
// result.
type progress struct {
	out     io.Writer
	own     io.Writer  // where the cursor's own moves go
	columns func() int // of the terminal; nil where there is none
	shown   int        // columns that the line has now
	steps   bool       // a log has each step of a trial
	began   time.Time
	clock   countdown
	step    string    // the last one printed as a line of a log
	at      time.Time // when a line was printed
}

// silence bounds the time in which a log has no line.
const silence = time.Minute

func newProgress(out io.Writer, steps bool) *progress {
	p := &progress{out: out, own: out, steps: steps, began: time.Now()}
	if w, ok := out.(*plain.Writer); ok {
		p.own = w.Own()
	}
	p.columns = terminalColumns(out)
	return p
}

// text shows what is done outside of an experiment's plan.
func (p *progress) text(text string) { p.show(experiment.Event{Text: text}) }

func (p *progress) show(ev experiment.Event) {
	left, known := p.clock.left(time.Now(), ev.Left)
	if p.columns == nil {
		p.lines(ev, left, known)
		return
	}
	if ev.Line != "" {
		p.end()
		_ = fitted(p.out, func(out io.Writer) error {
			_, err := fmt.Fprintln(out, ev.Line)
			return err
		})
		return
	}
	tail := ""
	if done := time.Since(p.began); known {
		tail = fmt.Sprintf("  %2d %%  %s left", int(100*done/(done+left)), left)
	}
	p.write(ev, tail)
}

// write puts a text and its tail on the terminal's line. What would be too long is shortened: the figures of
// the moment and the time left stay.
func (p *progress) write(ev experiment.Event, tail string) {
	room := p.columns() - 1 // in the last column some terminals begin a new line
	if room < 40 {
		tail = tail[strings.LastIndex(tail, "%")+1:] // the time alone
	}
	if width(tail) > room {
		tail = ""
	}
	step, figures := plain.Line(ev.Text), ""
	if own := plain.Line(ev.Step); own != "" && strings.HasPrefix(step, own) {
		step, figures = own, step[len(own):]
	}
	if step = cut(step, room-width(figures+tail)); step == "" {
		figures = strings.TrimPrefix(figures, ", ")
	}
	text := cut(step+figures, room-width(tail))
	line := text + strings.Repeat(" ", max(0, min(room, 72)-width(text+tail))) + tail
	fmt.Fprint(p.own, "\r")
	fmt.Fprint(p.out, line+strings.Repeat(" ", max(0, p.shown-width(line))))
	p.shown = width(line)
}

func width(text string) int { return utf8.RuneCountInString(text) }

// cut shortens a text to so many columns; where they are too few for any of it, to none.
func cut(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	if columns < 4 {
		return ""
	}
	return string([]rune(text)[:columns-3]) + "..."
}

// lines prints results at once, and what is being done when that changes. Of a trial's steps it prints none
// but where it has been silent for long.
func (p *progress) lines(ev experiment.Event, left time.Duration, known bool) {
	step, text := cmp.Or(ev.Step, ev.Text), ev.Text
	if ev.Line != "" {
		step, text, known = p.step, ev.Line, false
	} else if late := time.Since(p.at) >= silence; !late && (step == p.step || ev.Trial && !p.steps) {
		return
	}
	p.step, p.at = step, time.Now()
	if known {
		text += fmt.Sprintf(" (%s left)", left)
	}
	fmt.Fprintln(p.out, text)
}

// end takes the line off the screen.
func (p *progress) end() {
	if p.shown > 0 {
		fmt.Fprintf(p.own, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}

// countdown tells a time left that only falls, of estimates that also rise.
type countdown struct {
	told, estimate time.Duration
	at             time.Time // when it was told
}

// left returns what to tell now, where so much is estimated to be left; 0: nobody knows, so the last estimate
// holds. Where the estimate has risen, what is told falls by less than the time that passes, and so comes to
// its end with it. known is false before the first estimate.
func (c *countdown) left(now time.Time, estimate time.Duration) (left time.Duration, known bool) {
	passed := now.Sub(c.at)
	switch {
	case estimate <= 0 && c.at.IsZero():
		return 0, false
	case estimate <= 0:
		estimate = max(0, c.estimate-passed)
	}
	if c.at.IsZero() {
		c.told = estimate
	} else if estimate+passed > 0 {
		c.told = min(estimate, time.Duration(float64(c.told)*float64(estimate)/float64(estimate+passed)))
	}
	c.estimate, c.at = estimate, now
	return max(time.Second, c.told.Round(time.Second)), true
}
