package podrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"david/internal/joblog"
	"david/internal/result"
)

// errorPrefix begins david's errors in the log.
const errorPrefix = "david: "

// rest takes the lines of the whole log that matter once more.
func (j *jobRunner) rest(ctx context.Context, text string) error {
	for line := range strings.Lines(text) {
		if !joblog.Ours(line) && !strings.HasPrefix(line, errorPrefix) { // progress, shown already
			continue
		}
		if err := j.line(ctx, strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// line takes a line of the first client's log: of the record, or of its progress.
func (j *jobRunner) line(ctx context.Context, line string) error {
	if !joblog.Ours(line) {
		if text, ok := strings.CutPrefix(line, errorPrefix); ok {
			j.complaint = text
		} else if line != "" {
			j.Say(line)
		}
		return nil
	}
	docs, err := j.reader.Line(line)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if err := j.document(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// document puts a document into the store.
func (j *jobRunner) document(ctx context.Context, d joblog.Document) error {
	switch {
	case j.slot != nil && (d.Experiment != nil || d.Arm != nil || d.Trial != nil || d.Finish != nil):
		return j.slotted(d)
	case j.store == nil && (d.Arm != nil || d.Trial != nil):
		return errors.New("the client sent an arm or a trial before its experiment: its image has another david, or none")
	case d.Experiment != nil:
		if !j.uncounted {
			j.countBefore(ctx)
		}
		return j.amend(*d.Experiment)
	case d.Arm != nil:
		return j.store.PutArm(*d.Arm)
	case d.Trial != nil:
		if err := j.store.AppendTrial(*d.Trial); err != nil {
			return err
		}
		return os.WriteFile(j.store.LogPath(d.Trial.ID, "sysbench"), []byte(d.Log), 0o644)
	case d.Finish != nil:
		j.ended = d.Finish
	case d.Tune != nil:
		j.tune = d.Tune
	case d.Network != nil:
		j.asked = d.Network
	case d.End && d.Code != 0:
		j.failed = &ClientError{d.Code, errors.New(d.Failed)}
	}
	return j.files(d.Files)
}

// slotted takes of a client's record what belongs into another's: its trial, by that one's names.
func (j *jobRunner) slotted(d joblog.Document) error {
	s := j.slot
	switch {
	case d.Experiment != nil:
		e := &j.experiment
		e.Server, e.Host, e.Sysbench = d.Experiment.Server, d.Experiment.Host, d.Experiment.Sysbench
	case d.Arm != nil:
		s.Arm.Effective = d.Arm.Effective
		if s.Store != nil {
			return s.Store.PutArm(*s.Arm)
		}
	case d.Trial != nil && s.Store != nil:
		t := *d.Trial
		t.Arm, t.Block, t.Place, t.Twin = s.Arm.Name, s.Block, s.Place, s.Twin
		t.ID = result.TrialID(*s.Arm, t.Workload, t.Block, t.Place, t.Twin, j.experiment.Server, "")
		if err := s.Store.AppendTrial(t); err != nil {
			return err
		}
		return os.WriteFile(s.Store.LogPath(t.ID, "sysbench"), []byte(d.Log), 0o644)
	}
	return nil
}

// files writes files into the experiment's folder, beside david's own.
func (j *jobRunner) files(list map[string]string) error {
	const ours = "experiment.json" // it says where a record is from, which no client decides
	for name, text := range list {
		if name != filepath.Base(name) || name == ours || j.store == nil {
			return fmt.Errorf("the client sent a file %q that has no place", name)
		}
		if err := os.WriteFile(filepath.Join(j.store.Dir(), name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// amend adds to the experiment what only the client knows, and makes the store where there is none yet.
func (j *jobRunner) amend(theirs result.Experiment) (err error) {
	e := &j.experiment
	e.Server, e.Host, e.Sysbench, e.Workloads = theirs.Server, theirs.Host, theirs.Sysbench, theirs.Workloads
	e.Notes = append(theirs.Notes, e.Notes...)
	if theirs.David != e.David {
		e.Notes = append(e.Notes, fmt.Sprintf("the david in the client's image is %s, this one %s", theirs.David, e.David))
	}
	if j.store == nil {
		j.store, err = result.Create(filepath.Join(j.Home, "experiments", e.ID), *e)
		return err
	}
	return j.save()
}

// save writes what is known of the experiment.
func (j *jobRunner) save() error {
	if j.store == nil {
		return nil
	}
	return j.store.Amend(j.experiment)
}

// finish writes how the experiment ended, with the pod's counters.
func (j *jobRunner) finish() error {
	if j.unread != nil {
		j.experiment.Notes = append(j.experiment.Notes, "the pod's counters were not read: "+j.unread.Error())
		if err := j.save(); err != nil {
			return err
		}
	}
	if j.ended == nil {
		j.ended = &result.Finish{Ended: time.Now()}
	}
	j.ended.WallSeconds, j.ended.Cluster = time.Since(j.began).Seconds(), j.counters
	return j.store.Finish(*j.ended)
}

// podStats reads the counters of the server's pod.
func (j *jobRunner) podStats(ctx context.Context) (result.PodStats, error) {
	pod := j.Server.Pod
	return j.Cluster.PodStats(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name)
}

// countBefore reads the counters when the data is there and the trials begin.
func (j *jobRunner) countBefore(ctx context.Context) {
	stats, err := j.podStats(ctx)
	if err != nil {
		j.unread = err
		return
	}
	j.counters = &result.ClusterCounters{Before: stats}
}

// The kubelet reads its counters every 10 to 15 seconds: the last reading before the end misses what came
// after it.
const (
	statsWait  = 25 * time.Second
	statsEvery = 2 * time.Second
)

// countAfter reads the counters once they include the end of the trials.
func (j *jobRunner) countAfter(ctx context.Context) {
	if j.counters == nil {
		return
	}
	j.say("reading the pod's counters")
	ended := time.Now()
	for {
		stats, err := j.podStats(ctx)
		if err != nil {
			j.counters, j.unread = nil, err
			return
		}
		j.counters.After = stats
		if stats.Pod.At.After(ended) || time.Since(ended) > statsWait || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(statsEvery):
		}
	}
}
