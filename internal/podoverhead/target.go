package podoverhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/kube"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/workload"
)

// Target runs the arms that are pods in a cluster, and leaves the others to Plain. It implements
// experiment.Target.
type Target struct {
	Plain     *experiment.Sandboxed // with the build that the image has
	Cluster   *kube.Cluster
	Run       kube.Run // all that is created carries its ID, or one that begins with it
	Namespace string
	Node      Node
	Command   string // the server's path in the image
	pods      int
}

// Prepare makes the namespace. Close removes it.
func (t *Target) Prepare(ctx context.Context) error {
	return t.Cluster.Create(ctx, t.Run, namespace(t.Namespace)...)
}

// Close removes all that the run has created, and waits until it is gone; also where ctx is cancelled.
func (t *Target) Close(ctx context.Context) error {
	return t.Cluster.Remove(ctx, t.Run.ID, t.Namespace)
}

// podSlack bounds how long a pod may live beyond its load: until it is scheduled, the tables are read, and it
// has shut down.
const podSlack = 30 * time.Minute

// Begin implements experiment.Target.
func (t *Target) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (experiment.Session, error) {
	if arm.Pod == (result.Pod{}) {
		return t.Plain.Begin(ctx, arm, load, logPath)
	}
	g, err := t.Plain.Copy(ctx, arm, load)
	if err != nil {
		return nil, err
	}
	guest, cloned, err := t.Plain.Workspace.Invite(g, sandbox.StartOptions{Settings: arm.Settings, Host: "*", LogPath: logPath})
	if err != nil {
		return nil, err
	}
	t.pods++
	lasts := time.Duration(load.Seconds+load.Warmup)*time.Second + podSlack
	s := &session{target: t, guest: guest, run: kube.NewRun(fmt.Sprintf("%s-%d", t.Run.ID, t.pods), lasts), cost: result.Overhead{Reset: cloned.Seconds()}}
	began := time.Now()
	if err := s.begin(ctx, arm, lasts); err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	s.cost.Start = time.Since(began).Seconds()
	return s, nil
}

// session runs one server in a pod.
type session struct {
	target *Target
	guest  *sandbox.Guest
	run    kube.Run
	pod    *corev1.Pod // once it runs
	cost   result.Overhead
}

// begin creates the pod, waits until its server answers, and makes sure that it is what was asked for.
func (s *session) begin(ctx context.Context, arm result.Arm, lasts time.Duration) (err error) {
	t := s.target
	p := podSpec{name: fmt.Sprintf("server-%d", t.pods), namespace: t.Namespace, pod: arm.Pod, caps: arm.Caps, command: []string{t.Command}, args: s.guest.Args,
		folders: s.guest.Folders, uid: s.guest.UID, gid: s.guest.GID, lasts: lasts}
	if err := t.Cluster.Create(ctx, s.run, p.object()); err != nil {
		return err
	}
	if s.pod, err = t.Cluster.WaitPod(ctx, t.Namespace, p.name); err != nil {
		var failed *kube.Failure
		if errors.As(err, &failed) && failed.Exit != 0 { // the server itself said no
			return s.guest.Blame(cause(err))
		}
		if strings.Contains(err.Error(), "hostPath type check failed") {
			err = fmt.Errorf("%w; the kubelet does not see david's volume: it lives in a mount namespace that this machine's mounts do not reach; --no-volume keeps the data on the filesystem of david's folder", err)
		}
		return err
	}
	if err := s.guest.Await(ctx, s.address(arm), s.seldom(ctx)); err != nil {
		return err
	}
	return s.verify(arm)
}

func (s *session) address(arm result.Arm) string {
	if arm.Pod.HostNetwork {
		return net.JoinHostPort(s.target.Node.Address, s.guest.Port)
	}
	return net.JoinHostPort(s.pod.Status.PodIP, s.guest.Port)
}

// seldom asks the cluster how the pod has ended, once a second at most.
func (s *session) seldom(ctx context.Context) func() error {
	last := time.Now()
	return func() error {
		if time.Since(last) < time.Second {
			return nil
		}
		last = time.Now()
		return cause(s.target.Cluster.Ended(ctx, s.pod))
	}
}

// cause marks a pod that was killed for memory as a server that was.
func cause(err error) error {
	var f *kube.Failure
	if errors.As(err, &f) && f.Reason == "OOMKilled" {
		return fmt.Errorf("%w: %w", sandbox.ErrMemory, err)
	}
	return err
}

// verify makes sure that the pod's server is the process's binary, and that it has the class and the limits
// that were asked for.
func (s *session) verify(arm result.Arm) error {
	if got := string(s.pod.Status.QOSClass); got != arm.Pod.QoS {
		return fmt.Errorf("the cluster made pod %s %s, not %s: does something in the cluster set requests and limits?", s.pod.Name, got, arm.Pod.QoS)
	}
	if err := sandbox.SameBinary(s.guest.PID(), s.target.Plain.Binary); err != nil {
		return err
	}
	cpus, err := host.CPULimit(s.guest.PID())
	if err != nil {
		return err
	}
	memory, err := host.MemoryLimit(s.guest.PID())
	if err != nil {
		return err
	}
	return limited(arm, cpus, memory)
}

// limited holds the limits the kernel has against those asked for. A BestEffort pod has those of all pods
// together.
func limited(arm result.Arm, cpus float64, memory int64) error {
	if arm.Pod.QoS != Guaranteed {
		return nil
	}
	if math.Abs(cpus-arm.Caps.CPUs) > 0.001 {
		return fmt.Errorf("the pod's CPUs are limited to %.4g, not %.4g: it cannot be compared (0 is none: does the kubelet run with --cpu-cfs-quota=false?)", cpus, arm.Caps.CPUs)
	}
	if memory/4096 != arm.Caps.Memory/4096 {
		return fmt.Errorf("the pod's memory is limited to %d bytes, not %d: it cannot be compared", memory, arm.Caps.Memory)
	}
	return nil
}

func (s *session) Addr() mysqld.Addr { return s.guest.Addr() }

func (s *session) Load() workload.Target {
	return workload.Target{Addr: s.Addr(), Dir: s.target.Plain.Workspace.Private()}
}

func (s *session) Alive() error {
	return s.guest.Alive(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for ctx.Err() == nil { // the kubelet takes a moment to tell
			if err := s.target.Cluster.Ended(ctx, s.pod); err != nil {
				return cause(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		return nil
	})
}

func (s *session) PID() int              { return s.guest.PID() }
func (s *session) Data() string          { return s.guest.Data() }
func (s *session) Throttle(bool) error   { return nil }
func (s *session) Interrupted() []string { return nil }
func (s *session) Freeze(on bool) error  { return s.guest.Freeze(on, s.Alive) }
func (s *session) Calm() error           { return s.target.Plain.Workspace.Calm() }
func (s *session) Cost() result.Overhead { return s.cost }

// End ends the server, removes its pod, and drops its clone.
func (s *session) End(ctx context.Context) error {
	began := time.Now()
	if err := s.guest.Kill(); err != nil {
		return err
	}
	if err := s.target.Cluster.Remove(ctx, s.run.ID, s.target.Namespace); err != nil {
		return err // its clone is still in use
	}
	err := s.guest.Release()
	s.cost.Stop = time.Since(began).Seconds()
	return err
}
