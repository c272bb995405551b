package podrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"david/internal/kube"
)

// ClientError carries the error of the david in a client's container.
type ClientError struct {
	Code int // for david to exit with
	error
}

// Unwrap returns the error without its code.
func (e *ClientError) Unwrap() error { return e.error }

// Lost tells whether the client did not reach what it was sent to, or lost it.
func (e *ClientError) Lost() bool { return e.Code == clientLostServer }

// The exit codes of the david in a client's container, which may be of another version.
const (
	clientFailed     = 1
	clientUsage      = 2
	clientInvalid    = 3
	clientLostServer = 4

	clientInterrupted = 130
)

// exitCode tells david's exit code by the container's; one of another program counts as a target that failed.
func exitCode(container int32) int {
	switch container {
	case clientFailed, clientUsage, clientInvalid:
		return int(container)
	}
	return clientLostServer
}

// blame finds why a run failed: the server's pod comes first, then what the client said, then what the
// cluster says of the client.
func (j *jobRunner) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var failure *kube.Failure
	if !errors.As(err, &failure) {
		return err
	}
	if ended := j.serverEnded(ctx, failure.Exit); ended != nil {
		return ended
	}
	if failure.Exit == 0 || failure.Reason == "OOMKilled" {
		return err
	}
	for _, line := range strings.Split(failure.Log, " | ") {
		if text, ok := strings.CutPrefix(line, errorPrefix); ok {
			j.complaint = text
		}
	}
	if j.complaint == "" {
		return err
	}
	return &ClientError{exitCode(failure.Exit), fmt.Errorf("the client in the cluster (%s): %s", failure.Object, j.complaint)}
}

// stopped finds why a client ended that sent its whole record. Nobody here interrupted it, so where it says
// that it was, the cluster knows why: its Job was past its deadline, for one.
func (j *jobRunner) stopped(ctx context.Context) error {
	var client *ClientError
	if ctx.Err() != nil || !errors.As(j.failed, &client) || client.Code != clientInterrupted {
		return j.failed
	}
	why := j.Cluster.JobFailed(ctx, j.Server.Pod.Namespace, j.jobs[0])
	if why == nil {
		return j.failed
	}
	return fmt.Errorf("%w; the client in the cluster: %v", why, j.failed)
}

// A kubelet tells of a container that ended a second or two later than the container's clients notice it.
const (
	endedWait  = 6 * time.Second
	endedEvery = 500 * time.Millisecond
)

// serverEnded tells how the server's pod has ended, nil where it runs. A client that lost its server is
// reason to look for a while.
func (j *jobRunner) serverEnded(ctx context.Context, exit int32) error {
	for began := time.Now(); ; {
		err := j.Cluster.Ended(ctx, j.Server.Pod)
		if err != nil || exit != clientLostServer || time.Since(began) > endedWait {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(endedEvery):
		}
	}
}
