package podrun

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"david/internal/joblog"
	"david/internal/kube"
	"david/internal/podjob"
	"david/internal/result"
)

// jobRunner runs the clients of a request and stores what they measure.
type jobRunner struct {
	Request
	experiment result.Experiment // as far as it is known
	store      *result.Store     // nil until there is something to record
	grace      time.Duration     // in which a client that is stopped sends its last; 0: nothing of it matters
	uncounted  bool              // the pod's counters are of no interest
	began      time.Time
	jobs       []string // the first client's first
	firstPod   string   // its pod
	reader     joblog.Reader
	complaint  string // the first client's last word on an error
	ended      *result.Finish
	counters   *result.ClusterCounters
	unread     error  // why the counters were not read
	tune       []byte // what a live tune printed
	asked      []byte // what a client that asks has found
	slot       *Slot  // of the one trial that is wanted; nil: the client's record is the record
	failed     error  // of a client that sent its whole record
}

// newRunner completes the experiment by what the cluster says of the server.
func newRunner(r Request) *jobRunner {
	j := &jobRunner{Request: r, experiment: r.Experiment}
	e := &j.experiment
	e.Target, e.Pod, e.Server = result.TargetPod, r.Server.facts(r.Cluster.Version), result.Server{Address: r.Server.Address}
	return j
}

// say shows progress.
func (j *jobRunner) say(format string, args ...any) { j.Say(fmt.Sprintf(format, args...)) }

// run creates the clients, follows their record until it has ended, and removes them, also where it fails or
// is interrupted.
func (j *jobRunner) run(ctx context.Context) (err error) {
	run := kube.NewRun(j.experiment.ID, j.Clients.Deadline+j.Cluster.Patience+time.Hour)
	defer func() {
		j.say("removing the client from the cluster")
		heard := j.lastWords(ctx)
		if gone := j.Cluster.Remove(ctx, run.ID, j.Server.Pod.Namespace); gone != nil {
			err = errors.Join(err, gone)
		}
		err = errors.Join(err, heard())
	}()
	j.began = time.Now()
	if err := j.create(ctx, run); err != nil {
		return err
	}
	if err := j.placed(ctx); err != nil {
		return j.blame(ctx, err)
	}
	if err := j.follow(ctx); err != nil {
		return j.blame(ctx, err)
	}
	j.countAfter(ctx)
	return j.stopped(ctx)
}

// lastWords follows the log of a client that is interrupted until it has ended, where what it does then has
// to be known. heard, which is called after the client was told to end, waits for it.
func (j *jobRunner) lastWords(ctx context.Context) (heard func() error) {
	if ctx.Err() == nil || j.grace == 0 || j.firstPod == "" || j.reader.Ended() {
		return func() error { return nil }
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.grace)
	var text bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- j.Cluster.Follow(ctx, j.Server.Pod.Namespace, j.firstPod, "", &text) }()
	return func() error {
		defer cancel()
		err := <-ended
		for line := range strings.Lines(text.String()) {
			err = errors.Join(err, j.line(ctx, strings.TrimSuffix(line, "\n")))
		}
		if !j.reader.Ended() {
			err = errors.Join(err, errors.New("the client was stopped before it told all it did: see what is set on the server"))
		}
		return err
	}
}

// create creates the clients' Jobs.
func (j *jobRunner) create(ctx context.Context, run kube.Run) error {
	for i := range max(1, j.Clients.Count) {
		client := j.job(run.ID, i, j.grace)
		if err := j.Cluster.Create(ctx, run, podjob.Job(client)); err != nil {
			return err
		}
		j.jobs = append(j.jobs, client.Name)
	}
	return nil
}

// placed waits for the clients' pods and notes where they run.
func (j *jobRunner) placed(ctx context.Context) error {
	e := &j.experiment
	for i, job := range j.jobs {
		j.say("waiting for client %d of %d to start", i+1, len(j.jobs))
		pod, err := j.Cluster.WaitJobPod(ctx, j.Server.Pod.Namespace, job)
		if err != nil {
			return err
		}
		if i == 0 {
			j.firstPod = pod.Name
		}
		e.Pod.Clients = append(e.Pod.Clients, pod.Spec.NodeName)
	}
	if node := j.Server.Pod.Spec.NodeName; slices.Contains(e.Pod.Clients, node) {
		e.Notes = append(e.Notes, fmt.Sprintf("a client ran on the server's node, %s: they took CPU time from each other (--client-node names another)", node))
	}
	return j.save()
}

// checkEvery spaces the looks at the Jobs and the server's pod while the log is followed.
const checkEvery = 2 * time.Second

// follow takes the first client's log until the record has ended, and looks after the pods meanwhile.
func (j *jobRunner) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go j.tail(ctx, lines)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for !j.reader.Ended() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line := <-lines:
			if err := j.line(ctx, line); err != nil {
				return err
			}
		case <-tick.C:
			over, err := j.check(ctx)
			if over || err != nil {
				return j.over(ctx, err)
			}
		}
	}
	return nil
}

// tail sends the lines of the first client's log; where the connection ends it is made again.
func (j *jobRunner) tail(ctx context.Context, lines chan<- string) {
	for ctx.Err() == nil {
		r, w := io.Pipe()
		go func() { w.CloseWithError(j.Cluster.Follow(ctx, j.Server.Pod.Namespace, j.firstPod, "", w)) }()
		in := bufio.NewScanner(r)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
			}
		}
		r.Close()
		select { // check finds whether the Job has ended
		case <-ctx.Done():
		case <-time.After(checkEvery):
		}
	}
}

// check returns the failure of a client or of the server's pod; over is true where the first client has
// ended.
func (j *jobRunner) check(ctx context.Context) (over bool, err error) {
	if err := j.Cluster.Ended(ctx, j.Server.Pod); err != nil {
		return true, err
	}
	for i, job := range j.jobs {
		done, err := j.Cluster.JobDone(ctx, j.Server.Pod.Namespace, job, j.began)
		if err != nil {
			return true, err
		}
		over = over || done && i == 0
	}
	return over, nil
}

// over reads the whole log of a client that has ended, as what was followed may have missed its end. A record
// that is whole counts, however the client ended after it.
func (j *jobRunner) over(ctx context.Context, why error) error {
	text, err := j.Cluster.Logs(ctx, j.Server.Pod.Namespace, j.firstPod, kube.LogOptions{})
	if err != nil {
		return cmp.Or(why, err) // why a client failed tells more than that its log is gone
	}
	if err := j.rest(ctx, text); err != nil {
		return errors.Join(why, err)
	}
	if j.reader.Ended() {
		return nil
	}
	return cmp.Or(why, errors.New("the client ended without the end of its record"))
}
