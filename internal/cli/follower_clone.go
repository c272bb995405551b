package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"david/internal/follower"
	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/mysqld"
)

// cloneFlags are those of david follower clone.
type cloneFlags struct {
	serverFlags
	clonePodFlags
	imageFlags
	dir, pool, account                string
	port                              int
	create, copy, apply, verify, json bool
	pause, catchUp                    time.Duration
}

// cloneDocument is what david follower clone --json prints.
type cloneDocument struct {
	Applied  bool              `json:"applied"`
	Files    int               `json:"files"`
	Bytes    int64             `json:"bytes"` // of the leader's data, on the disk
	Follower *follower.Record  `json:"follower"`
	Verdict  *follower.Verdict `json:"verdict,omitempty"`
}

func (a *app) followerCloneCommand() *cobra.Command {
	var f cloneFlags
	cmd := &cobra.Command{
		Use:   "clone NAME",
		Short: "Make a follower of a running server from a clone of its data; shows what it would do, with --apply does it",
		Long: "Make a follower of a running server of this machine. Its process is stopped for some hundredths of a second (--max-pause\n" +
			"at most) while its data are cloned by sharing blocks. On ZFS and on Ceph RBD (--image) a snapshot is cloned instead,\n" +
			"and the leader is not stopped. The follower recovers on the clone as from a crash, with its own server_id and UUID,\n" +
			"and replicates what the leader wrote after the clone. For that it has an account on the leader: a new one\n" +
			"(--create-account) or one of yours (--account).\n" +
			"With --pod the leader is a pod; the follower is another pod, on a volume made from a snapshot in the same cluster.\n" +
			"Without --apply nothing is changed (docs/follower.md).",
		Args: exactArgs(1, "a name for the follower"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.check(cmd.Flags())
			if err == nil {
				err = podFollowerError(a.followerClone(cmd.Context(), f, args[0]))
			}
			if err != nil && cmd.Context().Err() != nil { // what was made is removed, or the error says what is not
				return codedError{exitInterrupted, err}
			}
			return err
		},
	}
	fs := cmd.Flags()
	f.serverFlags.addBare(fs, leaderDSN, leaderFile) // --port is the follower's
	fs.StringVar(&f.dir, "dir", "", "the folder to make the follower's in, on the filesystem of the leader's data (beside them)")
	fs.IntVar(&f.port, "port", 0, "port of the follower on 127.0.0.1 (a free one)")
	fs.StringVar(&f.pool, "buffer-pool", "", "its buffer pool, as 4G (the leader's, a quarter of the free memory at most)")
	fs.BoolVar(&f.create, "create-account", false, "make an account for replication on the leader, of a random password, for this follower alone; drop drops it")
	fs.StringVar(&f.account, "account", "", "an option file whose [client] group has user and password of an account with REPLICATION SLAVE")
	f.imageFlags.add(fs, "the Ceph RBD image under the leader's data: it is cloned while the leader runs on")
	fs.BoolVar(&f.copy, "copy", false, "copy the data block by block, where they cannot be shared; the leader stands still meanwhile")
	fs.DurationVar(&f.pause, "max-pause", 3*time.Second, "how long the leader may stand still at most")
	fs.DurationVar(&f.catchUp, "catch-up", catchUp, "how long the follower may take to catch up")
	fs.BoolVar(&f.verify, "verify", false, "compare the rows of all tables afterwards, as david follower verify does")
	fs.BoolVar(&f.apply, "apply", false, "do it")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	f.clonePodFlags.add(fs)
	return cmd
}

func (a *app) followerClone(ctx context.Context, f cloneFlags, name string) error {
	q, err := a.cloneRequest(f, name)
	if err != nil {
		return err
	}
	if f.pod != "" {
		return a.clonePod(ctx, f, name)
	}
	plan, err := follower.Prepare(ctx, q)
	if err != nil {
		return err
	}
	doc := cloneDocument{Files: plan.Place.Files, Bytes: plan.Place.Bytes, Follower: &plan.Record}
	if !f.apply {
		if f.json {
			return a.printJSON(doc)
		}
		a.printClonePlan(plan, f)
		return nil
	}
	if !f.create && q.Account == nil {
		return usage("the follower needs an account on the leader: --create-account makes one, --account FILE names one")
	}
	began := time.Now()
	if doc.Follower, err = follower.Make(ctx, a.home, q, plan); err != nil {
		return err
	}
	doc.Applied = true
	if f.verify {
		err = a.withFollower(followerFlags{serverFlags: f.serverFlags}, name, func(r *follower.Record, leader mysqld.Addr) error {
			v, err := r.Verify(ctx, leader)
			doc.Verdict = &v
			a.remarkChanged(v)
			return err
		})
	}
	if f.json {
		return errors.Join(err, a.printJSON(doc))
	}
	a.printCloned(doc, time.Since(began))
	return err
}

// cloneRequest reads the flags.
func (a *app) cloneRequest(f cloneFlags, name string) (q follower.Request, err error) {
	q = follower.Request{Name: name, Dir: f.dir, Port: f.port, Copy: f.copy, MaxPause: f.pause, CatchUp: f.catchUp, Guard: []string{holdGuard}}
	q.Say = a.step
	if f.create && f.account != "" {
		return q, usage("--create-account and --account: give one of them")
	}
	if f.image != "" && f.copy {
		return q, usage("--image and --copy: give one of them")
	}
	if q.Image, err = f.imageFlags.read(); err != nil {
		return q, err
	}
	if f.pause < 50*time.Millisecond || f.pause > 10*time.Minute {
		return q, usage("--max-pause %s: give a time from 50ms to 10m", f.pause)
	}
	if f.catchUp <= 0 {
		return q, usage("--catch-up %s: give a time above 0, as 10m", f.catchUp)
	}
	if f.pool != "" {
		if q.Pool, err = mycnf.ParseSize(f.pool); err != nil || q.Pool < 5<<20 {
			return q, usage("--buffer-pool %s: give a size of 5M at least", f.pool)
		}
	}
	if f.account != "" {
		if q.Account, err = a.replicationAccount(f.account); err != nil {
			return q, err
		}
	}
	if f.pod != "" {
		return q, f.checkDeadline()
	}
	q.Leader, err = a.remoteAddr(f.serverFlags)
	return q, err
}

// replicationAccount reads an account from an option file: what stands on a command line is in the list of
// processes.
func (a *app) replicationAccount(path string) (*follower.Account, error) {
	file, err := lab.ReadOptions(path)
	if err != nil {
		return nil, err
	}
	options := file.ClientOptions("client")
	if options["user"] == "" || options["password"] == "" {
		return nil, usage("--account %s: its [client] group has no user, or no password", path)
	}
	a.hide(options["password"])
	return &follower.Account{User: options["user"], Password: mysqld.Secret(options["password"])}, nil
}

func (a *app) printClonePlan(p follower.Plan, f cloneFlags) {
	r := p.Record
	fmt.Fprintf(a.out, "leader: %s %s at %s, process %d\n", r.Flavour.Product(), r.Version, r.Leader, p.Leader.Process.PID)
	how := fmt.Sprintf("the leader's process is stopped for it, %s at most", f.pause)
	if !p.Stands() {
		how = "the leader goes on"
	}
	fmt.Fprintf(a.out, "data: %s; %s\n", p.Place, how)
	port := fmt.Sprintf("port %d", r.Port)
	if f.port == 0 {
		port = fmt.Sprintf("a free port, as %d", r.Port)
	}
	fmt.Fprintf(a.out, "follower: %s in %s, %s, server_id %d, buffer pool %s, read-only, events off\n",
		r.Name, r.Dir, port, r.ID, host.Size(p.Pool))
	if r.Volume != nil {
		fmt.Fprintf(a.out, "the cluster gets: %s\n", r.Volume)
	}
	if r.ZFS != nil {
		fmt.Fprintf(a.out, "the pool gets: %s\n", r.ZFS)
	}
	switch {
	case f.create:
		fmt.Fprintf(a.out, "the leader gets: an account for it with REPLICATION SLAVE, of a random password that the follower alone keeps\n")
	case f.account == "":
		fmt.Fprintf(a.out, "it needs an account on the leader: --create-account makes one, --account FILE names one\n")
	}
	fmt.Fprintln(a.out, "nothing was changed: --apply does it")
}

func (a *app) printCloned(d cloneDocument, took time.Duration) {
	r, t := d.Follower, d.Follower.Times
	fmt.Fprintf(a.out, "%s follows %s: %s in %d files cloned, caught up after %.1f s\n", r.Name, r.Leader, host.Size(d.Bytes), d.Files, took.Seconds())
	fmt.Fprintf(a.out, "  %s; recovery took %.1f s, catching up %.1f s\n", t.Pause(), t.Start, t.CatchUp)
	fmt.Fprintf(a.out, "  port %d, socket %s, server_id %d, read-only\n", r.Port, r.Socket(), r.ID)
	if d.Verdict != nil && len(d.Verdict.Different) == 0 {
		fmt.Fprintf(a.out, "  no row differs in %d tables\n", d.Verdict.Tables)
	}
	fmt.Fprintf(a.out, "next: david follower promote %[1]s --dsn LEADER --apply, or: david follower drop %[1]s --dsn LEADER --apply\n",
		r.Name)
}
