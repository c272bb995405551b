package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// The kinds of what goes wrong, for errors.Is.
var (
	ErrConfig      = errors.New("cannot use the kubeconfig")
	ErrUnreachable = errors.New("the API server does not answer")
	ErrForbidden   = errors.New("the cluster does not allow it")
	ErrNotFound    = errors.New("the cluster has none of that name")
	ErrForeign     = errors.New("david did not create it")
	ErrInvalid     = errors.New("the API server refuses it")
	// ErrFailed marks a pod or a Job that did not become ready or did not end well; the error is a *Failure.
	ErrFailed = errors.New("it failed in the cluster")
)

// Failure tells how a pod or a Job failed, in the cluster's own words.
type Failure struct {
	Object  string // "pod db/mysql-0"
	Reason  string // the cluster's word: ImagePullBackOff, Unschedulable, OOMKilled, DeadlineExceeded, Evicted, ...
	Message string // the event's own message, or the status's
	Log     string // the last lines of the container's log, "" where it has none
	Exit    int32  // of the container; 0 where it did not run
	Waited  bool   // it might have become well: Cluster.Patience was over
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("%s: %s", f.Object, f.Reason)
	if f.Message != "" && f.Message != f.Reason {
		text += ": " + f.Message
	}
	if f.Log != "" {
		text += "; its log ends: " + f.Log
	}
	return text
}

// Is makes every failure an ErrFailed.
func (f *Failure) Is(target error) bool { return target == ErrFailed }

// explain gives an error of a client call its kind, and says what was tried. verb and resource are what a
// role would have to allow.
func explain(err error, what, verb, resource string) error {
	var status apierrors.APIStatus
	var network net.Error
	var address *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: %w; it takes a role with the verb %s on %s", what, ErrForbidden, err, verb, resource)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w: the credentials of the kubeconfig are not accepted: %w", what, ErrForbidden, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s: %w: the cluster does not know this kind: %w; are the operator's custom resource definitions installed?", what, ErrInvalid, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s: %w: %w", what, ErrInvalid, err)
	case errors.As(err, &status):
		return fmt.Errorf("%s: %w", what, err)
	case errors.As(err, &network), errors.As(err, &address), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", what, ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func decode(body []byte, to any) error {
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("cannot read the API server's answer: %w", err)
	}
	return nil
}
