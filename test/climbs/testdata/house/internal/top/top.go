package top

import "house/internal/mid"

type app struct{ lines int }

// run goes down once, and hands a method down.
func (a *app) run() error { return mid.Work(a.show) }

func (a *app) show(string) { a.lines++ }

// other is not followed from run.
func (a *app) other() { mid.Unused(a.show) }

func Main() error {
	a := &app{}
	a.other()
	return a.run()
}
