package podnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"david/internal/kube"
	"david/internal/podrun"
	"david/internal/result"
)

// unavailable is why a path leads nowhere although all that it takes is there: the other paths can be
// measured without it.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }

// unusable tells by what became of a client that tried a path whether the path is at fault, or anything else.
// The client is asked for while the path's balancer is there, so that where there is no place for it the
// balancer has that.
func (r *Request) unusable(n Network, err error) error {
	var client *podrun.ClientError
	var failure *kube.Failure
	switch {
	case errors.As(err, &client) && client.Lost():
		if n.Way == LoadBalancer { // a cloud's takes minutes
			err = fmt.Errorf("%w; --start-timeout waits longer", err)
		}
		return unavailable{err}
	case n.Way == Balancer && errors.As(err, &failure) && failure.Waited:
		alone := *failure
		alone.Waited = false // to wait longer does not help
		return unavailable{fmt.Errorf("the HAProxy that david started has taken the place of a client's pod on node %s, which has room for one of them: %w", r.clientNode, &alone)}
	}
	return err
}

// drop goes on without a path that is unavailable, and says so. It fails where too little is left to compare.
func (r *Request) drop(n Network, why unavailable) error {
	text := fmt.Sprintf("path %s: unavailable: %v", n.Name, why)
	r.Say(text)
	if n.Name == r.Networks[0].Name {
		return fmt.Errorf("path %s, the first, which the others are compared with, is unavailable: %w; leave it out of --path", n.Name, why)
	}
	r.note(text)
	r.dropped = append(r.dropped, n.Name)
	left := slices.DeleteFunc(slices.Clone(r.Networks), func(other Network) bool { return other.Name == n.Name })
	if len(left) < 2 {
		return fmt.Errorf("nothing is left to compare path %s with: path %s is unavailable: %w; leave %s out of --path, and name others",
			left[0].Name, n.Name, why, strings.Join(r.dropped, " and "))
	}
	r.Networks = left
	return nil
}

// undo removes what was made for a path. A balancer has what the clients of the other paths may need.
func (r *Request) undo(ctx context.Context, run kube.Run, n Network, to *corev1.Pod, ports []int) error {
	name := n.partName(to)
	r.balancers = slices.DeleteFunc(r.balancers, func(pod *corev1.Pod) bool { return pod.Name == name })
	return r.Cluster.RemoveObjects(ctx, run.ID, r.parts(name, n, to, ports)...)
}

// arms describes all that are measured.
func (r Request) arms() (list []result.Arm) {
	for _, n := range r.Networks {
		list = append(list, r.arm(n))
	}
	return list
}

// kept are those of the arms whose networks are still there.
func (r Request) kept(arms []result.Arm) []result.Arm {
	return slices.DeleteFunc(arms, func(arm result.Arm) bool {
		return !slices.ContainsFunc(r.Networks, func(n Network) bool { return n.Name == arm.Name })
	})
}
