package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/experiment"
	"david/internal/kube"
	"david/internal/podjob"
	"david/internal/relay"
	"david/internal/result"
)

// carrier runs clients in a cluster and carries what they measure into the store.
type carrier struct {
	podSession
	// experiment is what is known of it; store is nil until there is something to record.
	experiment result.Experiment
	store      *result.Store
	home       string        // of david, where a store is made that is nil
	grace      time.Duration // in which a client that is stopped tells its last; 0: nothing that it could tell matters
	progress   *progress
	jobs       []string // the lead's first
	began      time.Time
	reader     relay.Reader
	said       string // the client's last word on an error
	ended      *result.Finish
	counters   *result.ClusterCounters
	uncounted  bool  // the counters are of no interest
	blind      error // why the counters could not be read
	leadPod    string
	tune       []byte // what a live tune printed
	failed     error  // of a client that told its record whole
}

// run creates the clients, carries their record until it has ended, and removes them, also where it fails or is interrupted.
func (c *carrier) run(ctx context.Context, f podFlags, args []string) (err error) {
	run := kube.NewRun(c.experiment.ID, f.deadline+f.patience+time.Hour)
	defer func() {
		c.progress.say("removing the client from the cluster")
		heard := c.lastWords(ctx)
		if gone := c.cluster.Remove(ctx, run.ID, c.namespace); gone != nil {
			err = errors.Join(err, gone)
		}
		err = errors.Join(err, heard())
	}()
	c.began = time.Now()
	if err := c.create(ctx, f, run, args); err != nil {
		return err
	}
	if err := c.placed(ctx); err != nil {
		return c.blame(ctx, f.waited(err))
	}
	if err := c.carry(ctx); err != nil {
		return c.blame(ctx, err)
	}
	c.after(ctx)
	return c.failed
}

// lastWords follows the log of a client that is interrupted until it has ended, where what it does then has to be known. heard, which is called after the client
// was told to end, waits for it.
func (c *carrier) lastWords(ctx context.Context) (heard func() error) {
	if ctx.Err() == nil || c.grace == 0 || c.leadPod == "" || c.reader.Ended() {
		return func() error { return nil }
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.grace)
	var text bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- c.cluster.Follow(ctx, c.namespace, c.leadPod, "", &text) }()
	return func() error {
		defer cancel()
		err := <-ended
		for line := range strings.Lines(text.String()) {
			err = errors.Join(err, c.line(ctx, strings.TrimSuffix(line, "\n")))
		}
		if !c.reader.Ended() {
			err = errors.Join(err, errors.New("the client was stopped before it told all it did: see what is set on the server"))
		}
		return err
	}
}

// create creates the lead's Job and those of its hands.
func (c *carrier) create(ctx context.Context, f podFlags, run kube.Run, args []string) error {
	name := runName(run.ID)
	for i := range max(1, f.clients) {
		job := name
		if i > 0 {
			job = fmt.Sprintf("%s-%d", name, i)
			args = []string{"bench-hand", "--crew=" + name, fmt.Sprintf("--number=%d", i), fmt.Sprintf("--clients=%d", f.clients)}
		}
		client, err := c.job(f, job, args)
		if err != nil {
			return err
		}
		client.Grace = c.grace
		if err := c.cluster.Create(ctx, run, podjob.Job(client)); err != nil {
			return err
		}
		c.jobs = append(c.jobs, job)
	}
	return nil
}

// placed waits for the clients' pods and notes where they run.
func (c *carrier) placed(ctx context.Context) error {
	e := &c.experiment
	for i, job := range c.jobs {
		c.progress.say("waiting for client %d of %d to start", i+1, len(c.jobs))
		pod, err := c.cluster.WaitJobPod(ctx, c.namespace, job)
		if err != nil {
			return err
		}
		if i == 0 {
			c.leadPod = pod.Name
		}
		e.Pod.Clients = append(e.Pod.Clients, pod.Spec.NodeName)
	}
	if slices.Contains(e.Pod.Clients, c.pod.Spec.NodeName) {
		e.Notes = append(e.Notes, fmt.Sprintf("a client ran on the server's node, %s: they took CPU time from each other (--client-node names another)", c.pod.Spec.NodeName))
	}
	return c.save()
}

// save writes what is known of the experiment.
func (c *carrier) save() error {
	if c.store == nil {
		return nil
	}
	return c.store.Amend(c.experiment)
}

// lookEvery is how often the Jobs and the server's pod are looked at while the log is followed.
const lookEvery = 2 * time.Second

// carry follows the lead's log until the record has ended, and looks after the pods meanwhile.
func (c *carrier) carry(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go c.follow(ctx, lines)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !c.reader.Ended() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line := <-lines:
			if err := c.line(ctx, line); err != nil {
				return err
			}
		case <-tick.C:
			over, err := c.look(ctx)
			if over || err != nil {
				return c.over(ctx, err)
			}
		}
	}
	return nil
}

// over reads the rest of the record of a client that has ended: what was followed may have missed its end. A record that is whole is one, however the
// client ended after it.
func (c *carrier) over(ctx context.Context, why error) error {
	text, err := c.cluster.Logs(ctx, c.namespace, c.leadPod, kube.LogOptions{})
	if err != nil {
		return cmp.Or(why, err) // why a client failed tells more than that its log is gone
	}
	if err := c.rest(ctx, text); err != nil {
		return errors.Join(why, err)
	}
	if c.reader.Ended() {
		return nil
	}
	return cmp.Or(why, errors.New("the client ended without the end of its record"))
}

// follow sends the lines of the lead's log; where the connection ends it is made again.
func (c *carrier) follow(ctx context.Context, lines chan<- string) {
	for ctx.Err() == nil {
		r, w := io.Pipe()
		go func() { w.CloseWithError(c.cluster.Follow(ctx, c.namespace, c.leadPod, "", w)) }()
		in := bufio.NewScanner(r)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
			}
		}
		r.Close()
		select { // look sees whether the Job has ended
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// look is the failure of a client or of the server's pod; over is true where the lead has ended.
func (c *carrier) look(ctx context.Context) (over bool, err error) {
	if err := c.cluster.Ended(ctx, c.pod); err != nil {
		return true, err
	}
	for i, job := range c.jobs {
		done, err := c.cluster.JobDone(ctx, c.namespace, job, c.began)
		if err != nil {
			return true, err
		}
		over = over || done && i == 0
	}
	return over, nil
}

// rest takes the lines of the whole log that matter once more.
func (c *carrier) rest(ctx context.Context, text string) error {
	for line := range strings.Lines(text) {
		if !relay.Ours(line) && !strings.HasPrefix(line, complaint) { // progress, shown already
			continue
		}
		if err := c.line(ctx, strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// complaint is how david's errors begin.
const complaint = "david: "

// line takes a line of the lead's log: of the record, or of its progress.
func (c *carrier) line(ctx context.Context, line string) error {
	if !relay.Ours(line) {
		if text, ok := strings.CutPrefix(line, complaint); ok {
			c.said = text
		} else if line != "" {
			c.progress.show(experiment.Event{Text: line})
		}
		return nil
	}
	docs, err := c.reader.Line(line)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if err := c.document(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// document puts a document into the store.
func (c *carrier) document(ctx context.Context, d relay.Document) error {
	switch {
	case d.Experiment != nil:
		if !c.uncounted {
			c.before(ctx)
		}
		return c.amend(*d.Experiment)
	case d.Arm != nil:
		return c.store.PutArm(*d.Arm)
	case d.Trial != nil:
		if err := c.store.AppendTrial(*d.Trial); err != nil {
			return err
		}
		return os.WriteFile(c.store.LogPath(d.Trial.ID, "sysbench"), []byte(d.Log), 0o644)
	case d.Finish != nil:
		c.ended = d.Finish
	case d.Tune != nil:
		c.tune = d.Tune
	case d.End && d.Code != 0:
		c.failed = codedError{d.Code, errors.New(d.Failed)}
	}
	for name, text := range d.Files {
		if name != filepath.Base(name) || c.store == nil {
			return fmt.Errorf("the client sent a file %q that has no place", name)
		}
		if err := os.WriteFile(filepath.Join(c.store.Dir(), name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// amend adds to the experiment what only the client knows, and makes the store where there is none yet.
func (c *carrier) amend(theirs result.Experiment) (err error) {
	e := &c.experiment
	e.Server, e.Host, e.Sysbench, e.Workloads = theirs.Server, theirs.Host, theirs.Sysbench, theirs.Workloads
	e.Notes = append(theirs.Notes, e.Notes...)
	if theirs.David != e.David {
		e.Notes = append(e.Notes, fmt.Sprintf("the david in the client's image is %s, this one %s", theirs.David, e.David))
	}
	if c.store == nil {
		c.store, err = result.Create(filepath.Join(c.home, "experiments", e.ID), *e)
		return err
	}
	return c.save()
}

// before reads the counters when the data is there and the trials begin.
func (c *carrier) before(ctx context.Context) {
	stats, err := c.cluster.PodStats(ctx, c.pod.Spec.NodeName, c.namespace, c.pod.Name)
	if err != nil {
		c.blind = err
		return
	}
	c.counters = &result.ClusterCounters{Before: stats}
}

// The kubelet reads its counters every 10 to 15 seconds: the last reading before the end misses what came after it.
const (
	statsWait  = 25 * time.Second
	statsEvery = 2 * time.Second
)

// after reads the counters once they include the end of the trials.
func (c *carrier) after(ctx context.Context) {
	if c.counters == nil {
		return
	}
	c.progress.say("reading the pod's counters")
	ended := time.Now()
	for {
		stats, err := c.cluster.PodStats(ctx, c.pod.Spec.NodeName, c.namespace, c.pod.Name)
		if err != nil {
			c.counters, c.blind = nil, err
			return
		}
		if c.counters.After = stats; stats.Pod.At.After(ended) || time.Since(ended) > statsWait || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(statsEvery):
		}
	}
}

// finish writes how the experiment ended, with the counters.
func (c *carrier) finish(began time.Time) error {
	if c.blind != nil {
		c.experiment.Notes = append(c.experiment.Notes, "the pod's counters were not read: "+c.blind.Error())
		if err := c.save(); err != nil {
			return err
		}
	}
	if c.ended == nil {
		c.ended = &result.Finish{Ended: time.Now()}
	}
	c.ended.WallSeconds, c.ended.Cluster = time.Since(began).Seconds(), c.counters
	return c.store.Finish(*c.ended)
}

// blame is why a run failed: the server's pod first, then what the client said, then what the cluster says of the client.
func (c *carrier) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var failure *kube.Failure
	if !errors.As(err, &failure) {
		return err
	}
	if ended := c.serverEnded(ctx, failure.Exit); ended != nil {
		return ended
	}
	if failure.Exit == 0 || failure.Reason == "OOMKilled" {
		return err
	}
	for _, line := range strings.Split(failure.Log, " | ") {
		if text, ok := strings.CutPrefix(line, complaint); ok {
			c.said = text
		}
	}
	if c.said == "" {
		return err
	}
	return codedError{ofClient(failure.Exit), fmt.Errorf("the client in the cluster (%s): %s", failure.Object, c.said)}
}

// A kubelet tells of a container that ended a second or two later than the container's clients notice it.
const (
	endedWait  = 6 * time.Second
	endedEvery = 500 * time.Millisecond
)

// serverEnded is how the server's pod has ended, nil where it runs. A client that lost its server is reason to look for a while.
func (c *carrier) serverEnded(ctx context.Context, exit int32) error {
	for began := time.Now(); ; {
		err := c.cluster.Ended(ctx, c.pod)
		if err != nil || exit != exitTarget || time.Since(began) > endedWait {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(endedEvery):
		}
	}
}

// ofClient is the exit code of the david that ran as a client; one of another program counts as a target that failed.
func ofClient(code int32) int {
	switch code {
	case exitFailed, exitUsage, exitInvalid:
		return int(code)
	}
	return exitTarget
}
