package lab

import (
	"context"
	"fmt"
	"slices"

	"david/internal/experiment"
	"david/internal/mysqld"
	"david/internal/mysqltuner"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
)

// TunerArm is the name of the arm that MySQLTuner advises.
const TunerArm = "mysqltuner"

// nothingToSet says that there is no such arm.
const nothingToSet = TunerArm + " is left out: it advises nothing that can be set"

// adviser is MySQLTuner, to be asked before a race.
type adviser struct {
	path    string
	problem rules.Problem
	own     *OwnFile // that a race is run against; nil elsewhere
}

// Tuner finds MySQLTuner, the one that david installed where there is none on the PATH that is new enough.
func (l Lab) Tuner(ctx context.Context) (path string, err error) {
	return mysqltuner.Find(ctx, server.Tuners(l.Home)...)
}

// addAdvised adds the arm that MySQLTuner advises after it has looked at the control under its load.
// Where it cannot be had, a note says why, and the race goes on without it. A session that goes on with
// an experiment takes the advice on record.
func (p prepared) addAdvised(ctx context.Context, r *Request, arms []result.Arm) ([]result.Arm, error) {
	if r.adviser == nil {
		return arms, nil
	}
	if old, ok, err := r.advisedBefore(p.Lab); err != nil || ok {
		return append(arms, old...), err // what was said of it is on record as well
	}
	b, err := p.advice(ctx, *r.adviser, p.asked(*r.adviser, arms[0]), r.Loads[0])
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		r.note(fmt.Sprintf("mysqltuner is left out: %v", err))
		return arms, nil
	}
	r.note(b.Notes()...)
	if len(b.Settings) == 0 {
		r.note(nothingToSet)
		return arms, nil
	}
	at := slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Ceiling }) // before what has no verdict
	if at < 0 {
		at = len(arms)
	}
	advised := Arm{Name: b.Name, Title: b.Title}.upon(rules.Control(p.binary.Flavour), r.adviser.own.on(b.Settings), r.Caps)
	return slices.Insert(arms, at, advised), nil
}

// asked is the server that MySQLTuner looks at: the control, or where that runs with the user's own file
// the server's defaults, as every baseline is a rival on its own.
func (p prepared) asked(a adviser, control result.Arm) result.Arm {
	if a.own == nil {
		return control
	}
	plain := rules.Control(p.binary.Flavour)
	plain.Name, plain.Caps = control.Name, control.Caps
	return plain
}

// advisedBefore is the arm that an interrupted race of the same command has on record: none or one. ok
// is false where there is no such race.
func (r Request) advisedBefore(l Lab) (arm []result.Arm, ok bool, err error) {
	old, err := l.begun(r.Kind, r.Title, r.Fresh)
	if err != nil || old == nil {
		return nil, false, err
	}
	arms, err := old.Arms()
	if err != nil || len(arms) == 0 {
		return nil, false, err
	}
	i := slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Name == TunerArm })
	if i < 0 {
		return nil, true, nil
	}
	return arms[i : i+1], true, nil
}

// advice puts the load on the control and has MySQLTuner look at it.
func (p prepared) advice(ctx context.Context, a adviser, control result.Arm, load result.Workload) (b rules.Baseline, err error) {
	dir := p.workspace.Private()
	p.say("asking MySQLTuner after a load of %d s on the control", load.Seconds)
	output := ""
	look := func(addr mysqld.Addr) error {
		var err error
		output, err = mysqltuner.Run(ctx, a.path, addr, a.problem.Memory, dir)
		return err
	}
	if err := experiment.Loaded(ctx, p.target, p.sysbench, control, load, dir, look); err != nil {
		return b, err
	}
	if b, err = rules.MySQLTuner(output, a.problem); err != nil {
		return b, err
	}
	known, err := server.Options(ctx, p.binary)
	if err != nil {
		return b, err
	}
	strip(p.binary, a.problem.Version, known, &b)
	return b, nil
}
