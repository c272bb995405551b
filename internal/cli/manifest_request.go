package cli

import (
	"cmp"
	"slices"
	"strings"

	"david/internal/manifest/operator"
	"david/internal/manifest/render"
)

// deployment is the request that the flags make.
func (a *app) deployment(f manifestFlags) (req render.Request, err error) {
	req = render.Request{Name: f.name, Namespace: cmp.Or(f.namespace, f.name), Flavor: render.Flavor(f.flavor), Image: f.image, Storage: f.storage, IOPS: f.iops, MiBps: f.throughput,
		Pool: f.pool, Nodes: f.nodes, Path: f.path, HostPath: f.hostPath, Replicas: f.replicas, HA: f.ha, Expose: render.Expose(f.expose), Secret: f.secret, Recovery: f.recovery,
		HostNetwork: f.hostNetwork, Multus: f.multus, MTU: f.mtu}
	if !slices.Contains(render.Flavors(), req.Flavor) {
		return req, usage("--flavor %s: choose %s", f.flavor, flavorList())
	}
	if err := operator.Hears(req.Flavor, f.given); err != nil {
		return req, codedError{exitUsage, err}
	}
	f.replication(&req)
	if f.given("mtu") && f.mtu <= 0 {
		return req, usage("--mtu %d: give bytes, as in 9000", f.mtu)
	}
	if f.storage == "" {
		return req, usage("--storage is missing: choose one of %s", strings.Join(render.Storages(), ", "))
	}
	if err := f.sizes(&req); err != nil {
		return req, err
	}
	if f.iops < 0 || f.throughput < 0 {
		return req, usage("--iops %d, --throughput %d: give a number above 0", f.iops, f.throughput)
	}
	if f.given("recovery") && f.recovery <= 0 {
		return req, usage("--recovery %s: give how long recovery from a crash took, as in 30s", f.recovery)
	}
	if req.Server, req.Version, err = f.wantedServer(); err != nil {
		return req, err
	}
	switch {
	case len(f.unlock) > 0 && f.cnf == "":
		return req, usage("--unlock is for --cnf: a tune says itself what it unlocked, and david's rules unlock nothing")
	case f.from != "" && f.cnf != "":
		return req, usage("--from and --cnf both say what to configure: give one")
	case f.from != "":
		err = a.fromTune(f, &req)
	case f.cnf != "":
		err = f.fromCnf(&req)
	}
	if err != nil {
		return req, err
	}
	return req, a.locked(f, &req)
}

// replication fills in what an operator's flavour has of its own, where the flags do not say.
func (f manifestFlags) replication(req *render.Request) {
	if req.Flavor == render.StatefulSet {
		return
	}
	wanted := ""
	if f.given("ha") {
		wanted = f.ha
	}
	ha, replicas := operator.Defaults(req.Flavor, wanted)
	req.HA = ha
	if !f.given("replicas") {
		req.Replicas = replicas
	}
}

func flavorList() string {
	var list []string
	for _, flavor := range render.Flavors() {
		list = append(list, string(flavor))
	}
	return strings.Join(list, ", ")
}
