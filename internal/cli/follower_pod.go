package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"david/internal/follower"
	"david/internal/kube"
	"david/internal/manifest/render"
	"david/internal/mysqld"
	"david/internal/podfollow"
	"david/internal/podjob"
)

// leaderPodFlags say which pod's server is the leader, and who logs in to it and its follower.
type leaderPodFlags struct {
	clusterFlags
	pod, secret, user string
	patience          time.Duration
}

func (f *leaderPodFlags) add(fs *pflag.FlagSet) {
	f.clusterFlags.add(fs)
	fs.StringVar(&f.pod, "pod", "", "the leader is a pod: NAMESPACE/NAME, and so is the follower (docs/follower.md)")
	fs.StringVar(&f.secret, "secret", "", "pod: NAME[:KEY] of the Secret with the password, in the pod's namespace (default MYSQL_PWD, else root's, as the pod has it; KEY: password)")
	f.user = "root"
	if flag := fs.Lookup("user"); flag != nil {
		flag.Value = also{flag.Value, &f.user}
	} else {
		fs.StringVar(&f.user, "user", f.user, "pod: the user, on leader and follower")
	}
	fs.DurationVar(&f.patience, "start-timeout", 2*time.Minute, "pod: how long a snapshot, a volume, or the follower's pod may take to be ready")
}

// clonePodFlags are those of a clone in a cluster.
type clonePodFlags struct {
	leaderPodFlags
	class, leaderHost string
	direct            bool
}

func (f *clonePodFlags) add(fs *pflag.FlagSet) {
	f.leaderPodFlags.add(fs)
	fs.StringVar(&f.class, "snapshot-class", "", "pod: the VolumeSnapshotClass (the default of the volume's driver)")
	fs.BoolVar(&f.direct, "no-snapshot", false, "pod: have the driver clone the leader's volume, without a snapshot between")
	fs.StringVar(&f.leaderHost, "leader-host", "", "pod: the name or IP by which the follower finds the leader (default the name that a StatefulSet gives its pod)")
}

// forPods are the flags that go with --pod alone, and those that do not go with it.
func forPods() (only, never []string) {
	return []string{"kubeconfig", "context", "secret", "start-timeout", "snapshot-class", "no-snapshot", "leader-host"},
		[]string{"dsn", "defaults-file", "host", "socket", "login-path", "dir", "port", "buffer-pool", "copy", "image", "ceph-conf", "max-pause"}
}

// check refuses flags that do not go together.
func (f *leaderPodFlags) check(fs *pflag.FlagSet) error {
	only, never := forPods()
	for _, name := range only {
		if fs.Changed(name) && f.pod == "" {
			return usage("--%s is for a leader in a pod: name it with --pod NAMESPACE/NAME", name)
		}
	}
	for _, name := range never {
		if fs.Changed(name) && f.pod != "" {
			return usage("--pod finds the leader by itself, and its follower is a pod as well: leave out --%s", name)
		}
	}
	if f.patience < time.Second {
		return usage("--start-timeout %s: give a time of at least 1s", f.patience)
	}
	if f.pod == "" {
		return nil
	}
	if f.secret != "" {
		if _, _, err := (&podFlags{secret: f.secret}).secretKey(); err != nil {
			return err
		}
	}
	_, _, err := f.name()
	return err
}

func (f *leaderPodFlags) name() (namespace, name string, err error) {
	return (&podFlags{pod: f.pod}).name()
}

// podLeader opens the cluster and finds the password.
func (a *app) podLeader(ctx context.Context, f leaderPodFlags, server serverFlags, name string) (q podfollow.Request, err error) {
	q = podfollow.Request{Name: name, Say: a.tell}
	if q.Namespace, q.Pod, err = f.name(); err != nil {
		return q, err
	}
	if q.Cluster, err = kube.Open(ctx, f.kubeconfig, f.context); err != nil {
		return q, err
	}
	q.Cluster.Patience = f.patience
	q.Addr = mysqld.Addr{User: f.user, Deadline: server.statement, Longer: "--" + deadlineFlag + " allows more"}
	password, err := a.podPassword(ctx, f, server, q)
	q.Addr.Password = mysqld.Secret(password)
	a.hide(password)
	return q, err
}

// podPassword is the one that was asked for, else that of MYSQL_PWD, else a Secret's: that which is named, or the one
// that the pod has root's from.
func (a *app) podPassword(ctx context.Context, f leaderPodFlags, server serverFlags, q podfollow.Request) (string, error) {
	if p := server.password; p != nil && p.asked {
		return p.secret, nil
	}
	if text, set := os.LookupEnv("MYSQL_PWD"); set && f.secret == "" {
		return text, nil
	}
	pod, err := q.Cluster.Pod(ctx, q.Namespace, q.Pod)
	if err != nil {
		return "", err
	}
	container, _, err := podjob.Server(pod)
	if err != nil {
		return "", err
	}
	named := podFlags{secret: f.secret, user: f.user}
	secret, key, err := named.password(container)
	if err != nil {
		return "", err
	}
	return q.Cluster.SecretValue(ctx, q.Namespace, secret, key)
}

// podCloneDocument is what david follower clone --pod --json prints.
type podCloneDocument struct {
	Applied  bool              `json:"applied"`
	Name     string            `json:"name"`
	Pod      string            `json:"pod"` // NAMESPACE/NAME
	Leader   string            `json:"leader"`
	ServerID uint32            `json:"server_id"`
	Objects  []any             `json:"objects"`
	Times    *podfollow.Times  `json:"times,omitempty"`
	Verdict  *follower.Verdict `json:"verdict,omitempty"`
}

// clonePod makes a follower in a cluster, or prints its objects.
func (a *app) clonePod(ctx context.Context, f cloneFlags, name string) error {
	q, err := a.podLeader(ctx, f.leaderPodFlags, f.serverFlags, name)
	if err != nil {
		return err
	}
	q.SnapshotClass, q.Clone, q.Host, q.CatchUp = f.class, f.direct, f.leaderHost, f.catchUp
	if f.account != "" {
		if q.Account, err = a.replicationAccount(f.account); err != nil {
			return err
		}
	}
	plan, err := podfollow.Prepare(ctx, q)
	if err != nil {
		return err
	}
	doc := podCloneDocument{Name: name, Pod: q.Namespace + "/" + plan.Follower.Pod(), Leader: q.Namespace + "/" + q.Pod, ServerID: plan.Follower.ServerID}
	for _, o := range plan.Objects {
		doc.Objects = append(doc.Objects, o.Value)
	}
	a.leftOut(plan)
	if !f.apply {
		return a.printPodPlan(doc, plan, f)
	}
	if !f.create && q.Account == nil {
		return usage("the follower needs an account on the leader: --create-account makes one, --account FILE names one")
	}
	times, err := podfollow.Make(ctx, q, plan)
	if err != nil {
		return err
	}
	doc.Applied, doc.Times = true, &times
	if f.verify {
		if doc.Verdict, err = verifyPod(ctx, q); doc.Verdict != nil {
			a.remarkChanged(*doc.Verdict)
		}
	}
	if f.json {
		return errors.Join(err, a.printJSON(doc))
	}
	a.printPodCloned(doc)
	return err
}

func verifyPod(ctx context.Context, q podfollow.Request) (*follower.Verdict, error) {
	opened, err := podfollow.Open(ctx, q)
	if err != nil {
		return nil, err
	}
	v, err := opened.Verify(ctx)
	return &v, err
}

// leftOut says which containers the follower's pod has not got.
func (a *app) leftOut(p podfollow.Plan) {
	for _, name := range p.Follower.LeftOut() {
		a.remark("the container %s of the leader's pod is left out: it is not the server", name)
	}
}

// printPodPlan prints the objects, to be read: they make a server on a copy, and david makes it follow.
func (a *app) printPodPlan(doc podCloneDocument, p podfollow.Plan, f cloneFlags) error {
	if f.json {
		return a.printJSON(doc)
	}
	if err := render.Encode(a.out, p.Objects); err != nil {
		return err
	}
	a.tell(fmt.Sprintf("%s would follow %s (%s %s, %s:%d) with server_id %d, read-only, events off; replication is begun by SQL once its server has recovered",
		doc.Pod, doc.Leader, p.Leader.Flavour.Product(), p.Leader.Version, p.Leader.Address, p.Leader.Port, doc.ServerID))
	if !f.create && f.account == "" {
		a.tell("it needs an account on the leader: --create-account makes one, --account FILE names one")
	}
	a.tell("nothing was changed: --apply does it")
	return nil
}

func (a *app) printPodCloned(d podCloneDocument) {
	fmt.Fprintf(a.out, "%s follows %s: caught up after %.1f s\n", d.Pod, d.Leader, d.Times.All)
	fmt.Fprintf(a.out, "  the snapshot took %.1f s, volume, pod and recovery %.1f s, catching up %.1f s; the leader was not stopped\n", d.Times.Snapshot, d.Times.Start, d.Times.CatchUp)
	fmt.Fprintf(a.out, "  server_id %d, read-only\n", d.ServerID)
	if d.Verdict != nil && len(d.Verdict.Different) == 0 {
		fmt.Fprintf(a.out, "  no row differs in %d tables\n", d.Verdict.Tables)
	}
	fmt.Fprintf(a.out, "next: david follower verify %[1]s --pod %[2]s, david follower drop %[1]s --pod %[2]s\n", d.Name, d.Leader)
}

// withPodFollower finds a follower in a cluster while something is done.
func (a *app) withPodFollower(ctx context.Context, f followerFlags, name string, do func(*podfollow.Opened) error) error {
	q, err := a.podLeader(ctx, f.leaderPodFlags, f.serverFlags, name)
	if err != nil {
		return podFollowerError(err)
	}
	opened, err := podfollow.Open(ctx, q)
	if err == nil {
		err = do(opened)
	}
	return podFollowerError(err)
}

func (a *app) dropPod(ctx context.Context, f followerFlags, o *podfollow.Opened) error {
	what := o.Has()
	if !f.apply {
		fmt.Fprintf(a.out, "would be removed: %s\nnothing was changed: --apply does it\n", what)
		return nil
	}
	if err := o.Drop(ctx); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(map[string]any{"dropped": true})
	}
	fmt.Fprintf(a.out, "removed: %s\n", what)
	return nil
}

// podFollowerError gives what is the user's to mend, or the cluster's, its exit code.
func podFollowerError(err error) error {
	var coded codedError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.Is(err, render.ErrBad):
		return codedError{exitUsage, err}
	case clusterCode(err) != exitFailed:
		return codedError{clusterCode(err), err}
	}
	return followerError(err)
}
