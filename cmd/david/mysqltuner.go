package main

import (
	"context"
	"fmt"
	"slices"

	"david/internal/experiment"
	"david/internal/lab"
	"david/internal/mysqld"
	"david/internal/mysqltuner"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
)

// tunerArm is the name of the arm that MySQLTuner advises.
const tunerArm = "mysqltuner"

// adviser is MySQLTuner, to be asked before a race.
type adviser struct {
	path    string
	problem rules.Problem
	own     *userConfig // that a race is run against; nil elsewhere
}

// tuner finds MySQLTuner, the one that david installed where there is none on the PATH that is new enough.
func (a *app) tuner(ctx context.Context) (path string, err error) {
	return mysqltuner.Find(ctx, server.Tuners(a.home)...)
}

// addAdvised adds the arm that MySQLTuner advises after it has looked at the control under its load. Where it cannot be had, a
// note says why, and the race goes on without it. A session that goes on with an experiment takes the advice on record.
func (l *session) addAdvised(ctx context.Context, a *app, q *question, arms []result.Arm, p *progress) ([]result.Arm, error) {
	if q.adviser == nil {
		return arms, nil
	}
	if old, ok, err := a.advisedBefore(q); err != nil || ok {
		return append(arms, old...), err // what was said of it is on record as well
	}
	b, err := l.advice(ctx, q, l.asked(q, arms[0]), p)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		q.notes = append(q.notes, fmt.Sprintf("mysqltuner is left out: %v", err))
		return arms, nil
	}
	q.notes = append(q.notes, told(b)...)
	if len(b.Settings) == 0 {
		q.notes = append(q.notes, "mysqltuner is left out: it advises nothing that can be set")
		return arms, nil
	}
	want := armSpec{name: b.Name, title: b.Title}
	at := slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Ceiling }) // before what has no verdict
	if at < 0 {
		at = len(arms)
	}
	return slices.Insert(arms, at, namedArm(want, rules.Control(l.binary.Flavour), q.adviser.own.on(b.Settings), result.Server{}, q.caps)), nil
}

// asked is the server that MySQLTuner looks at: the control, or where that runs with the user's own file the server's defaults, as
// every baseline is a rival on its own.
func (l *session) asked(q *question, control result.Arm) result.Arm {
	if q.adviser.own == nil {
		return control
	}
	plain := rules.Control(l.binary.Flavour)
	plain.Name, plain.Caps = control.Name, control.Caps
	return plain
}

// advisedBefore is the arm that an interrupted race of the same command has on record: none or one. ok is false where there
// is no such race.
func (a *app) advisedBefore(q *question) (arm []result.Arm, ok bool, err error) {
	old, err := result.Unfinished(a.home, q.kind, q.title, redacted(a.argv))
	if err != nil || old == nil || q.fresh {
		return nil, false, err
	}
	arms, err := old.Arms()
	if err != nil || len(arms) == 0 {
		return nil, false, err
	}
	i := slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Name == tunerArm })
	if i < 0 {
		return nil, true, nil
	}
	return arms[i : i+1], true, nil
}

// advice puts the load on the control and has MySQLTuner look at it.
func (l *session) advice(ctx context.Context, q *question, control result.Arm, p *progress) (b rules.Baseline, err error) {
	dir := l.workspace.Private()
	p.say("asking MySQLTuner after a load of %d s on the control", q.loads[0].Seconds)
	output := ""
	look := func(addr mysqld.Addr) error {
		var err error
		output, err = mysqltuner.Run(ctx, q.adviser.path, addr, q.adviser.problem.Memory, dir)
		return err
	}
	if err := experiment.Loaded(ctx, l.target, l.sysbench, control, q.loads[0], dir, look); err != nil {
		return b, err
	}
	if b, err = rules.MySQLTuner(output, q.adviser.problem); err != nil {
		return b, err
	}
	known, err := server.Options(ctx, l.binary)
	if err != nil {
		return b, err
	}
	lab.Strip(l.binary, q.adviser.problem.Version, known, &b)
	return b, nil
}
