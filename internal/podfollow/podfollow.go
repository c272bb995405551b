// Package podfollow makes a follower of a server that runs in a pod, in the same cluster:
//
//	Prepare (the pod, its server, its claim) -> Plan: the objects -> Make: snapshot -> claim of it -> pod -> follow, caught up
//
// The volume's driver takes the data at one moment, as a power cut would leave them; nothing of the server is held or
// locked for it. The servers are reached by way of the API server. What there is of a follower is in the cluster, under
// its name: whoever may look there can compare and drop it (Open).
package podfollow

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/follower"
	"david/internal/kube"
	"david/internal/manifest/render"
	"david/internal/mysqld"
	"david/internal/podjob"
)

// Request says which pod is followed by what.
type Request struct {
	Cluster        *kube.Cluster
	Namespace, Pod string // the leader
	Name           string
	Addr           mysqld.Addr // user, password and deadlines, for both servers
	SnapshotClass  string      // "" for the driver's default
	Clone          bool        // the driver clones the volume, without a snapshot between
	Host           string      // by which the follower finds the leader; "" for its pod's name
	Account        *follower.Account
	CatchUp        time.Duration
	Say            func(string)
}

// Plan is what would be made.
type Plan struct {
	Leader   follower.Leader
	Follower render.Follower
	Objects  []render.Object
}

// Times says how long the steps took, in seconds.
type Times struct {
	Snapshot float64 `json:"snapshot_s"` // until volumes could be made of it
	Start    float64 `json:"start_s"`    // volume and pod were there, and the server had recovered and answered
	CatchUp  float64 `json:"caught_s"`
	All      float64 `json:"all_s"`
}

// Prepare looks at the leader and renders the follower. It changes nothing.
func Prepare(ctx context.Context, q Request) (p Plan, err error) {
	if err := errors.Join(follower.Valid(q.Name), q.free(ctx)); err != nil {
		return p, err
	}
	pod, err := q.Cluster.WaitPod(ctx, q.Namespace, q.Pod)
	if err != nil {
		return p, err
	}
	container, port, err := podjob.Server(pod)
	if err != nil {
		return p, err
	}
	leader, done, err := q.connect(ctx, q.Pod, port)
	if err != nil {
		return p, err
	}
	defer done()
	if p.Leader, err = follower.Ask(ctx, leader); err != nil {
		return p, err
	}
	if err := follower.Volatile(ctx, leader); err != nil {
		return p, err
	}
	if err := p.Leader.Cuttable(); err != nil {
		return p, err
	}
	if err := p.Leader.At(q.host(pod), int(port)); err != nil {
		return p, fmt.Errorf("%w; the pod has no name of its own, so --leader-host has to say where it is found", err)
	}
	p.Follower = render.Follower{Name: q.Name, Leader: pod, Container: container.Name, Datadir: p.Leader.Datadir, Class: q.SnapshotClass, Clone: q.Clone,
		Server: p.Leader.Flavour, Version: p.Leader.ParsedVersion(), UUID: p.Leader.UUID, Port: port}
	if q.Account == nil {
		p.Follower.Account = follower.AccountFor(q.Name)
	}
	claim, mount, err := render.DataMount(pod, container, p.Leader.Datadir)
	if err != nil {
		return p, err
	}
	p.Follower.Mount = mount
	if p.Follower.Claim, err = q.Cluster.Claim(ctx, q.Namespace, claim); err != nil {
		return p, err
	}
	if p.Follower.ServerID, err = follower.ServerID(p.Leader.Variables["server_id"]); err != nil {
		return p, err
	}
	p.Objects, err = p.Follower.Objects()
	return p, err
}

// free makes sure that nothing in the namespace has the follower's name.
func (q Request) free(ctx context.Context) error {
	notes, err := q.Cluster.StatefulSetNotes(ctx, q.Namespace, q.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: there is a follower %s/%s already, of pod %s: david follower drop %s --pod %s removes it", follower.ErrInput,
		q.Namespace, q.Name, notes[render.LeaderNote], q.Name, notes[render.LeaderNote])
}

// host is the name under which a pod of a StatefulSet is found by others.
func (q Request) host(pod *corev1.Pod) string {
	switch {
	case q.Host != "":
		return q.Host
	case pod.Spec.Hostname == "" || pod.Spec.Subdomain == "":
		return ""
	}
	return pod.Spec.Hostname + "." + pod.Spec.Subdomain + "." + pod.Namespace + ".svc"
}

// connect opens connections to a pod's server, by way of the API server. done closes both.
func (q Request) connect(ctx context.Context, pod string, port int32) (c *mysqld.Conn, done func(), err error) {
	address, stop, err := q.Cluster.Forward(ctx, q.Namespace, pod, int(port))
	if err != nil {
		return nil, nil, err
	}
	a := q.Addr
	a.Network, a.Address = "tcp", address
	if c, err = mysqld.Open(ctx, a); err != nil {
		stop()
		return nil, nil, fmt.Errorf("the server of pod %s/%s: %w", q.Namespace, pod, err)
	}
	return c, func() { c.Close(); stop() }, nil
}

// run is the label of what a follower consists of. It is nobody's process: a follower stays.
func run(name string) kube.Run { return kube.Run{ID: "follower-" + name} }

// Make carries a plan out. On an error nothing of it is left, or the error says what is.
func Make(ctx context.Context, q Request, p Plan) (t Times, err error) {
	began := time.Now()
	leader, done, err := q.connect(ctx, q.Pod, p.Follower.Port)
	if err != nil {
		return t, err
	}
	defer done()
	granted := false
	if err := q.create(ctx, p, &t); err != nil {
		return t, q.undo(leader, granted, err)
	}
	own, stop, err := q.connect(ctx, p.Follower.Pod(), p.Follower.Port)
	if err != nil {
		return t, q.undo(leader, granted, err)
	}
	defer stop()
	r := follower.Remote{Name: q.Name, Leader: leader, Follower: own, Of: p.Leader}
	account := q.Account
	if account == nil {
		if account, granted, err = r.Grant(ctx); err != nil {
			return t, q.undo(leader, granted, err)
		}
	}
	since := time.Now()
	if err := r.Attach(ctx, p.Follower.ServerID, *account, q.CatchUp); err != nil {
		return t, q.undo(leader, granted, err)
	}
	t.CatchUp, t.All = time.Since(since).Seconds(), time.Since(began).Seconds()
	return t, nil
}

// create makes the objects, the snapshot first, and waits until the follower's server answers.
func (q Request) create(ctx context.Context, p Plan, t *Times) error {
	objects, began := p.Objects, time.Now()
	if !p.Follower.Clone {
		if err := q.Cluster.Create(ctx, run(q.Name), objects[0].Value); err != nil {
			return err
		}
		if err := q.Cluster.WaitSnapshot(ctx, q.Namespace, q.Name); err != nil {
			return err
		}
		t.Snapshot = time.Since(began).Seconds()
		q.Say(fmt.Sprintf("the snapshot is there after %.1f s", t.Snapshot))
		objects, began = objects[1:], time.Now()
	}
	for _, o := range objects {
		if err := q.Cluster.Create(ctx, run(q.Name), o.Value); err != nil {
			return err
		}
	}
	if err := q.await(ctx, p.Follower.Pod()); err != nil {
		return err
	}
	t.Start = time.Since(began).Seconds()
	q.Say(fmt.Sprintf("the follower's server is up after %.1f s", t.Start))
	return nil
}

// await waits for a pod that a controller is about to make.
func (q Request) await(ctx context.Context, pod string) error {
	for began := time.Now(); ; {
		_, err := q.Cluster.WaitPod(ctx, q.Namespace, pod)
		if !errors.Is(err, kube.ErrNotFound) || time.Since(began) > q.Cluster.Patience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// undoPatience is how long it may take to remove the account of what was not made.
const undoPatience = time.Minute

// undo removes what was made so far, unless it is another's that was in the way.
func (q Request) undo(leader *mysqld.Conn, granted bool, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), undoPatience)
	defer cancel()
	if granted {
		why = errors.Join(why, follower.Expel(ctx, leader, q.Name))
	}
	if err := q.Cluster.RemoveMade(ctx, run(q.Name).ID); err != nil {
		why = errors.Join(why, fmt.Errorf("cannot remove what was made of the follower %s: %w", q.Name, err))
	}
	return why
}

// Opened is a follower that is there.
type Opened struct {
	q       Request
	account string // that was made for it; "" for none
}

// Open finds a follower of a leader in its namespace.
func Open(ctx context.Context, q Request) (*Opened, error) {
	if err := follower.Valid(q.Name); err != nil {
		return nil, err
	}
	notes, err := q.Cluster.StatefulSetNotes(ctx, q.Namespace, q.Name)
	if err != nil {
		return nil, err
	}
	if of := notes[render.LeaderNote]; of != q.Namespace+"/"+q.Pod {
		return nil, fmt.Errorf("%w: the follower %s/%s is of pod %q, not of %s/%s", kube.ErrForeign, q.Namespace, q.Name, of, q.Namespace, q.Pod)
	}
	return &Opened{q, notes[render.AccountNote]}, nil
}

// Verify compares the rows of all tables, as both servers have them at the same GTIDs.
func (o *Opened) Verify(ctx context.Context) (v follower.Verdict, err error) {
	leader, done, err := o.leader(ctx)
	if err != nil {
		return v, err
	}
	defer done()
	of, err := follower.Ask(ctx, leader)
	if err != nil {
		return v, err
	}
	own, stop, err := o.connect(ctx, render.Follower{Name: o.q.Name}.Pod())
	if err != nil {
		return v, err
	}
	defer stop()
	r := follower.Remote{Name: o.q.Name, Leader: leader, Follower: own, Of: of}
	return r.Verify(ctx)
}

func (o *Opened) leader(ctx context.Context) (*mysqld.Conn, func(), error) {
	return o.connect(ctx, o.q.Pod)
}

// connect opens connections to the server of a pod that is there.
func (o *Opened) connect(ctx context.Context, name string) (*mysqld.Conn, func(), error) {
	pod, err := o.q.Cluster.Pod(ctx, o.q.Namespace, name)
	if err != nil {
		return nil, nil, err
	}
	_, port, err := podjob.Server(pod)
	if err != nil {
		return nil, nil, err
	}
	return o.q.connect(ctx, name, port)
}

// Has says what Drop removes.
func (o *Opened) Has() string {
	what := fmt.Sprintf("the pod %s/%s, its StatefulSet, Service, claim, volume and snapshot", o.q.Namespace, render.Follower{Name: o.q.Name}.Pod())
	if o.account != "" {
		what += ", the account " + o.account + " on " + o.q.Namespace + "/" + o.q.Pod
	}
	return what
}

// Drop removes a follower, and its account on the leader: follower.ErrAccountLeft where that cannot be reached.
func (o *Opened) Drop(ctx context.Context) error {
	if err := o.q.Cluster.Remove(ctx, run(o.q.Name).ID, o.q.Namespace); err != nil {
		return err
	}
	if o.account == "" {
		return nil
	}
	leader, done, err := o.leader(ctx)
	if err == nil {
		defer done()
		err = follower.Expel(ctx, leader, o.q.Name)
	}
	if err != nil {
		return fmt.Errorf("%w: DROP USER %s there (%w)", follower.ErrAccountLeft, o.account, err)
	}
	return nil
}
