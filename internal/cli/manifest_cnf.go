package cli

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"david/internal/lab"
	"david/internal/manifest/check"
	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// fromTune takes configuration, server, machine and recovery time from the record of a tune.
func (a *app) fromTune(f manifestFlags, req *render.Request) error {
	d, err := a.load(f.from)
	if err != nil {
		return err
	}
	plan, h, err := planOf(d)
	if d.Experiment.Kind != result.KindTune || err != nil || d.Cnf == "" {
		return usage("--from %s: %s is no finished david tune, so it has no configuration to deploy; see: david list", f.from, d.Experiment.ID)
	}
	flavour, version := d.Experiment.Server.Flavour, plan.Problem.Version
	if req.Server != "" && req.Server != flavour {
		return usage("--server %s: the tune was of %s %s, whose configuration is not another server's", f.server, flavour.Product(), version)
	}
	req.Server = flavour
	if req.Version == (mycnf.Version{}) {
		req.Version = version
	}
	req.Settings, req.FromTune = plan.Winner(h, d.Finish.Best), true
	if d.Finish.Best == stats.Control {
		a.remark("%s: the tune found nothing faster than the control, so this is the control's configuration, with what a pod needs besides by david's rules, which the tune did not measure", d.Experiment.ID)
	}
	req.Head = append([]string{"Derived from a my.cnf that says of itself:"}, report.CnfHead(d)...)
	m, w := plan.Machine, d.Experiment.Workloads[0]
	req.Measured = render.Measured{CPUs: m.CPUs, Memory: m.Memory, WriteIOPS: m.WriteIOPS, Threads: w.Threads, Tables: w.Tables}
	for _, p := range d.Proofs {
		if p.Arm == d.Finish.Best && p.Crash != nil && !f.given("recovery") {
			req.Recovery = time.Duration(p.Crash.RecoveryMs.Max * float64(time.Millisecond))
		}
	}
	return nil
}

// fromCnf takes the settings of a my.cnf.
func (f *manifestFlags) fromCnf(req *render.Request) error {
	defaultServer(req)
	file, err := lab.ReadCnf(f.cnf)
	if err != nil {
		return err
	}
	req.Settings = file.Settings(mycnf.ServerGroups(req.Server, req.Version)...)
	if len(req.Settings) == 0 {
		return usage("--cnf %s sets nothing for a %s %s; leave it out for david's rules", f.cnf, req.Server.Product(), req.Version)
	}
	for i, s := range req.Settings {
		if err := lab.Possible(s, math.MaxInt64); err != nil {
			return err
		}
		if check.IsSecret(s) {
			return usage("--cnf %s sets %s, a secret: the my.cnf becomes a ConfigMap, which everybody who may list objects reads; remove the line, and give the secret to the server in another way", f.cnf, s.Name)
		}
		req.Settings[i].Reason, req.Settings[i].Source = "as it was given", filepath.Base(f.cnf)
		if v, ok := mycnf.Lookup(s.Name, req.Server, req.Version); ok {
			req.Settings[i].Group = v.Group
		}
	}
	req.Head = []string{fmt.Sprintf("Derived from %s, of which david measured nothing.", filepath.Base(f.cnf))}
	return nil
}

// locked refuses a configuration that can lose committed transactions, unless that was unlocked; then the
// my.cnf says so. A tune says itself what it unlocked.
func (a *app) locked(f manifestFlags, req *render.Request) error {
	defaultServer(req)
	if err := lab.LockMembers(req.Server, f.unlock); err != nil {
		return err
	}
	if f.from != "" {
		return nil
	}
	unlocked, err := lab.Lifted(req.Server, mycnf.Asked(req.Server, req.Version, req.Settings), f.unlock)
	if err != nil || len(unlocked) == 0 {
		return err
	}
	req.Head = append(req.Head, "UNLOCKED, not as durable as it could be: "+strings.Join(unlocked, "; ")+".")
	for _, u := range unlocked {
		a.remark("UNLOCKED: %s", u)
	}
	return nil
}

// defaultServer fills in what neither --server nor a tune says.
func defaultServer(req *render.Request) {
	if req.Server == "" {
		req.Server = cmp.Or(operator.Server(req.Flavor), mycnf.MySQL)
	}
	if req.Version == (mycnf.Version{}) {
		req.Version = req.Flavor.DefaultVersion(req.Server)
	}
}
