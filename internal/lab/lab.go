// Package lab measures servers that are david's own, from a Request to a record in the store:
//
//	find tools -> open the workspace -> verify caps -> prepare the data -> record -> measure -> finish
//
// Each step returns what the next one needs. What is asked for comes as a value, and so does what there is
// to know of whoever asks (Lab): nothing here knows a command line or a terminal.
package lab

import (
	"context"
	"fmt"
	"io"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/result"
)

// Lab holds what a measurement has to know of whoever asks for it.
type Lab struct {
	Home     string        // david's folder
	David    string        // its version
	Argv     []string      // the command line, without secrets
	On       *result.Store // what goes on, as it has more time; nil: what the same command was interrupted in
	MaxSteal float64       // the share of CPU time that other guests may take; 0: as usual
	Beside   string        // the user whose hold of the machine's lock is put up with; "" for none
	Sharing  experiment.Sharing
	Log      io.Writer
	Show     func(experiment.Event) // how far it is
	Words    Words
}

// Words put what is found into a line each, as whoever asks would have it.
type Words struct {
	Kill   func(n, of int, k result.Kill) string
	Crash  func(result.CrashTest) string
	Memory func(result.MemoryProof) string
}

// Memory returns what this process and its children may use, in bytes.
func (l Lab) Memory(ctx context.Context) (int64, error) {
	f, err := host.Read(ctx, l.Home)
	if err != nil {
		return 0, err
	}
	return f.Memory.Limit, nil
}

// logf writes a line for the user beside the progress.
func (l Lab) logf(format string, args ...any) { fmt.Fprintf(l.Log, "david: "+format+"\n", args...) }

// say shows what is done outside of an experiment's plan.
func (l Lab) say(format string, args ...any) {
	l.text(fmt.Sprintf(format, args...))
}

// text is say for what is not formatted.
func (l Lab) text(text string) { l.show(experiment.Event{Text: text}) }

// line shows something that stays.
func (l Lab) line(text string) { l.show(experiment.Event{Line: text}) }

// show hands an event to whoever shows it, where there is somebody.
func (l Lab) show(ev experiment.Event) {
	if l.Show != nil {
		l.Show(ev)
	}
}
