package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"david/internal/experiment"
	"david/internal/kube"
	"david/internal/mycnf"
	"david/internal/podoverhead"
	"david/internal/result"
	"david/internal/workload"
)

// PodOverhead asks what Kubernetes costs: a request whose arms are a process and pods of this node.
type PodOverhead struct {
	Request
	Image   string
	Node    string // "": found by its address
	Cluster *kube.Cluster
}

// Run measures, or the rest of it, and returns the record. What it makes in the cluster is gone afterwards.
func (r PodOverhead) Run(ctx context.Context, l Lab) (store *result.Store, err error) {
	nodes, err := r.Cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	node, err := podoverhead.FindNode(nodes, r.Node)
	if err != nil {
		return nil, err
	}
	if err := l.CheckCaps(ctx, []result.Arm{{Caps: r.Caps}}, r.NoVolume); err != nil {
		return nil, err
	}
	sysbench, err := workload.Find(ctx)
	if err != nil {
		return nil, err
	}
	o, err := l.open(ctx, tools{sysbench: sysbench}, opening{kind: r.Kind, need: wanted([]result.Arm{{}}, r.Loads), noVolume: r.NoVolume})
	if err != nil {
		return nil, err
	}
	defer func() { err = o.close(err) }()
	o.target.Host = node.Here
	run := kube.NewRun(fmt.Sprintf("podtax-%08x", rand.Uint32()), r.longest())
	t := &podoverhead.Target{Plain: o.target, Cluster: r.Cluster, Run: run, Namespace: "david-" + run.ID, Node: node}
	defer func() { l.say("removing what was made in the cluster"); err = errors.Join(err, t.Close(ctx)) }()
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	return r.inCluster(ctx, o, t)
}

// longest bounds how long a run takes.
func (r PodOverhead) longest() time.Duration {
	return 2*time.Duration(r.Design.Blocks)*experiment.OneBlock(len(r.Arms)+1, r.Loads) + 2*time.Hour
}

// inCluster measures, once the machine and the cluster are ready for it.
func (r PodOverhead) inCluster(ctx context.Context, o opened, t *podoverhead.Target) (*result.Store, error) {
	o.say("taking the server out of the image %s", r.Image)
	build, err := t.Unpack(ctx, o.Home, result.Pod{Image: r.Image, Node: t.Node.Name})
	if err != nil {
		return nil, err
	}
	o.binary, o.target.Binary, t.Command = build.Binary, build.Binary, build.Command
	q := r.located(build.ImageID, t.Node.Name)
	arms, err := q.resolve(ctx, o.Lab, &o.tools)
	if err != nil {
		return nil, err
	}
	if err := fitsIn(arms[0].Settings, q.Caps.Memory); err != nil {
		return nil, err
	}
	if q.Notes, err = o.verify(ctx, arms); err != nil {
		return nil, err
	}
	q.note(podoverhead.Notes(t.Node, q.pods())...)
	p, err := o.prepare(ctx, arms, q.Loads)
	if err != nil {
		return nil, q.blame(err)
	}
	p.target.Data = p.ids
	return q.measured(ctx, p, arms, place{target: t, name: "node " + t.Node.Name, pinned: map[string]string{"image": build.ImageID, "node": t.Node.Facts}})
}

// located is the request with the pods' image and node filled in.
func (r PodOverhead) located(imageID, node string) Request {
	q := r.Request
	q.Arms = append([]Arm{}, q.Arms...)
	for i := range q.Arms {
		if pod := &q.Arms[i].Pod; *pod != (result.Pod{}) {
			pod.Image, pod.ImageID, pod.Node = r.Image, imageID, node
		}
	}
	return q
}

// pods lists those of the arms.
func (r Request) pods() (list []result.Pod) {
	for _, arm := range r.Arms {
		list = append(list, arm.Pod)
	}
	return list
}

// fitsIn refuses settings that cannot work within the caps' memory: the pod would be killed for it.
func fitsIn(settings []mycnf.Setting, memory int64) error {
	for _, s := range settings {
		if err := Possible(s, memory); err != nil {
			return err
		}
	}
	return nil
}
