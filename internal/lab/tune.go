package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/tune"
)

// Tune asks for the fastest safe configuration.
type Tune struct {
	Server   string
	Load     result.Workload // how long its trials are the plan says
	Wish     tune.Wish       // what of it is known before the server, the data and the rivals are
	Budget   time.Duration   // for everything
	Caps     result.Caps
	Memory   int64                 // bytes that the server may use
	Base     string                // an option file that the control runs with
	Trials   bool                  // each on a fresh server, instead of slices
	NoLight  bool                  // without the winner's light speed
	Like     *result.PricedMachine // that the sandbox stands in for
	Notes    []string
	Fresh    bool
	NoVolume bool
}

// Tuned has found what it looked for. Servers can be started until it is closed.
type Tuned struct {
	Store *result.Store
	at    recorded
	best  result.Arm
	load  result.Workload
}

// Ready is a tune whose server and control are known, and allowed.
type Ready struct {
	lab   Lab
	asked Tune
	found tools
	start start
}

// start holds what a tune begins with.
type start struct {
	control  result.Arm
	began    time.Time
	unlocked []string // of the durability lock, each with what can be lost
}

// Check refuses a budget that holds no tune.
func (t Tune) Check() error {
	_, err := t.plan(rules.Problem{}, result.Arm{}, nil, t.Budget)
	return err
}

// Ready finds the server and refuses what it cannot run with, before anything is opened.
func (t Tune) Ready(ctx context.Context, l Lab) (r Ready, err error) {
	r = Ready{lab: l, asked: t, start: start{began: time.Now()}}
	if t.Wish.Power != "" {
		if err := sandbox.NoDisk(proofFilesystem); err != nil {
			return r, err
		}
	}
	if r.found, err = l.find(ctx, t.Server); err != nil {
		return r, err
	}
	r.start.control, r.start.unlocked, err = t.control(ctx, l, r.found.binary)
	return r, err
}

// Run finds, confirms and proves. Where there is no error, Close gives back what it holds.
func (r Ready) Run(ctx context.Context) (done Tuned, err error) {
	t, s := r.asked, r.start
	o, err := r.lab.open(ctx, r.found, opening{kind: result.KindTune, need: bytesWanted(t.Load) + t.proofBytes(), volume: t.Caps.IO(), noVolume: t.NoVolume})
	if err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			err = o.close(err)
		}
	}()
	if t.Base != "" { // before minutes go into data
		if err := o.workspace.Validate(ctx, o.binary, s.control.Settings); err != nil {
			return done, blame(err, true)
		}
	}
	p, err := o.prepare(ctx, []result.Arm{s.control}, []result.Workload{t.Load})
	if err != nil {
		return done, blame(err, t.Base != "")
	}
	if t.Wish.Slices, err = p.tuneSlices(ctx, t, s.control); err != nil {
		return done, err
	}
	rec, job, err := p.planned(ctx, t, s)
	if err != nil {
		return done, err
	}
	return rec.phases(ctx, t, job)
}

// proofBytes is the disk space of the crash proof.
func (t Tune) proofBytes() int64 {
	if t.Wish.Power != "" {
		return cutBytes(proofLoad)
	}
	return crashBytes(mostProofKills)
}

// mostProofKills is the most kills of a tune's crash proof, for the space they take.
const mostProofKills = 20

// phases runs the phases and the winner's ceiling, and finishes the record.
func (r recorded) phases(ctx context.Context, t Tune, job experiment.Tuning) (done Tuned, err error) {
	done = Tuned{Store: r.store, at: r, load: job.Load}
	end, err := r.engine.Tune(ctx, job)
	if err == nil {
		done.best, err = r.arm(end.Best)
	}
	if err == nil && !t.NoLight {
		err = r.lightSpeed(ctx, done.best, job.Load)
	}
	if err != nil {
		return done, r.failed(ctx, blame(err, t.Base != ""))
	}
	return done, r.finish(result.Finish{Best: done.best.Name})
}

// Prove starts a server with an option file and compares its variables with those of the arm that was
// measured.
func (t Tuned) Prove(ctx context.Context, cnf string) error {
	t.at.say("starting a server with the written my.cnf, to prove it")
	g, _, err := t.at.target.Prepare(ctx, t.best, t.load)
	if err != nil {
		return err
	}
	return experiment.Prove(ctx, t.at.workspace, g, t.at.binary.Flavour, cnf, t.best, sandbox.StartOptions{LogPath: t.Store.LogPath("prove", "server"), Caps: t.best.Caps})
}

// Close gives everything back, and adds what goes wrong with that to the error so far.
func (t Tuned) Close(err error) error { return t.at.close(err) }

// arm is an arm on record.
func (r recorded) arm(name string) (result.Arm, error) {
	arms, err := r.store.Arms()
	if err != nil {
		return result.Arm{}, err
	}
	for _, a := range arms {
		if a.Name == name {
			return a, nil
		}
	}
	return result.Arm{}, fmt.Errorf("cannot find arm %s in %s", name, r.store.Dir())
}

// control is the arm a tune begins with, under its caps, with the user's own file where there is one.
// What that sets of the durability lock has to be safe or unlocked; unlocked says what can be lost.
func (t Tune) control(ctx context.Context, l Lab, b server.Binary) (arm result.Arm, unlocked []string, err error) {
	arm = rules.Control(b.Flavour)
	arm.Caps = t.Caps
	if err := l.CheckCaps(ctx, []result.Arm{arm}, t.NoVolume); err != nil {
		return arm, nil, err
	}
	if err := LockMembers(b.Flavour, t.Wish.Unlocked); err != nil {
		return arm, nil, err
	}
	own, err := l.UserSettings(ctx, b, t.Base, nil)
	if err != nil {
		return arm, nil, err
	}
	if len(own) > 0 {
		for i := range own {
			own[i].Source = t.Base
		}
		arm.Title += ", with " + filepath.Base(t.Base)
		arm.Settings = rules.Merge(arm.Settings, own)
		arm.Changes = arm.Settings
	}
	if unlocked, err = Lifted(b.Flavour, mycnf.Asked(b.Flavour, mycnf.Version{}, arm.Settings), t.Wish.Unlocked); err != nil {
		return arm, nil, err
	}
	for _, u := range unlocked {
		l.logf("UNLOCKED for this run: %s", u)
	}
	return arm, unlocked, nil
}

// plan divides what is left of the budget among the rivals and everything after them.
func (t Tune) plan(p rules.Problem, control result.Arm, rivals []rules.Baseline, left time.Duration) (tune.Plan, error) {
	w := t.Wish
	w.Budget, w.Rivals, w.Seed = left.Seconds(), rivals, p.Seed
	plan, err := tune.NewPlan(p, control, w)
	if err != nil {
		return plan, refuse("--budget %s: %w; give more time, or --time for shorter trials", t.Budget, err)
	}
	return plan, nil
}

// tuneSlices tells a tune in slices what it has to know; nil where it is measured in trials: as asked for,
// with a length of their own, a few of them only, or where what counts is the p99 latency, which takes longer
// than a slice to be seen.
func (p prepared) tuneSlices(ctx context.Context, t Tune, control result.Arm) (*result.TuneSlices, error) {
	if t.Trials || t.Wish.Quick || t.Wish.Time > 0 || t.Wish.Objective == result.ForP99 || t.Budget.Seconds() < tune.LeastSliced {
		return nil, nil
	}
	room, err := p.room(ctx)
	if err != nil {
		return nil, err
	}
	bytes, threads := p.bytes[control.Name], t.Load.Threads
	large := control // the incumbent and an arm beside it may both have all the memory for their pools
	large.Effective, large.Settings = nil, rules.Merge(large.Settings, []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: fmt.Sprint(t.Memory)}})
	if need := rules.Footprint(control, bytes, threads) + 2*rules.Footprint(large, bytes, threads); need > room {
		p.logf("measured in trials: a control and two servers with large pools would take %s beside each other, and %s are free", host.Size(need), host.Size(room))
		return nil, nil
	}
	return &result.TuneSlices{Room: room, Data: bytes, Threads: threads}, nil
}
