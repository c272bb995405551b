package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollEvery says how often a pod or a Job is looked at.
const pollEvery = 500 * time.Millisecond

// Pod returns a pod as it is.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	return pod, explain(err, fmt.Sprintf("cannot look at pod %s/%s", namespace, name), "get", "pods")
}

// Node returns a node as it is.
func (c *Cluster) Node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := c.core.Nodes().Get(ctx, name, metav1.GetOptions{})
	return node, explain(err, "cannot look at node "+name, "get", "nodes")
}

// StorageClass returns a storage class as it is.
func (c *Cluster) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	class, err := c.storage.StorageClasses().Get(ctx, name, metav1.GetOptions{})
	return class, explain(err, "cannot look at storage class "+name, "get", "storageclasses.storage.k8s.io")
}

// WaitPod waits until a pod is ready. A pod that cannot become so is a *Failure with what the cluster says of
// it: at once where waiting does not help (an image that cannot be pulled, a missing Secret, a crash loop,
// killed for memory, evicted), after Patience where it might (no node has room, a volume is pending).
func (c *Cluster) WaitPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	began := time.Now()
	for {
		pod, err := c.Pod(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		if ready(pod) {
			return pod, nil
		}
		if err := c.stuck(ctx, pod, began); err != nil {
			return pod, err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return pod, fmt.Errorf("waiting for pod %s/%s: %w", namespace, name, err)
		}
	}
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// stuck returns the failure of a pod that does not get on.
func (c *Cluster) stuck(ctx context.Context, pod *corev1.Pod, began time.Time) error {
	f, final := trouble(pod)
	impatient := time.Since(began) > c.Patience
	if f == nil && impatient && pod.Status.Phase == corev1.PodPending {
		f = &Failure{Reason: "Pending", Message: fmt.Sprintf("for %s", c.Patience)}
	}
	if f == nil && impatient && !ready(pod) && pod.Status.Phase == corev1.PodRunning && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		f = &Failure{Reason: "NotReady", Message: fmt.Sprintf("for %s", c.Patience)}
	}
	if f == nil || !final && !impatient {
		return nil
	}
	f.Object, f.Waited = fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name), !final
	c.tell(ctx, pod, f)
	return f
}

// tell adds to a failure what the cluster's events and the container's log say.
func (c *Cluster) tell(ctx context.Context, pod *corev1.Pod, f *Failure) {
	if text := c.Said(ctx, pod.Namespace, string(pod.UID)); text != "" && !strings.Contains(f.Message, text) && f.Reason != "OOMKilled" {
		f.Message = text
	}
	if text := c.claims(ctx, pod); text != "" && pod.Status.Phase == corev1.PodPending && !scheduled(pod) {
		f.Message = join(f.Message, text)
	}
	container := failed(pod)
	if container == "" {
		return
	}
	for _, previous := range []bool{false, true} {
		if log, err := c.Logs(ctx, pod.Namespace, pod.Name, LogOptions{Container: container, Previous: previous, Tail: 5}); err == nil && log != "" {
			f.Log = strings.Join(strings.Split(strings.TrimSpace(log), "\n"), " | ")
			return
		}
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// failed returns the name of the container that ended badly, "" where there is none.
func failed(pod *corev1.Pod) string {
	for _, s := range statuses(pod) {
		if s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 || s.LastTerminationState.Terminated != nil {
			return s.Name
		}
	}
	return ""
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// hopeless returns the reasons for which a container waits and will go on waiting.
func hopeless() []string {
	return []string{"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
		"CrashLoopBackOff"}
}

// behind tells of a kubelet that has not yet got a Secret or ConfigMap to look at, as on a busy node; it tries again.
func behind(message string) bool { return strings.Contains(message, "failed to sync ") }

// trouble returns what is wrong with a pod, nil where nothing is, and whether waiting longer is of no use.
func trouble(pod *corev1.Pod) (f *Failure, final bool) {
	for _, s := range statuses(pod) {
		if f := killed(s); f != nil {
			return f, true
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		f := &Failure{Reason: cmp.Or(pod.Status.Reason, "Failed"), Message: pod.Status.Message}
		for _, s := range statuses(pod) {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				f.Exit = t.ExitCode
				f.Message = join(f.Message, fmt.Sprintf("container %s ended with exit code %d", s.Name, t.ExitCode))
			}
		}
		return f, true
	}
	for _, s := range statuses(pod) {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "" {
			return &Failure{Reason: w.Reason, Message: w.Message}, slices.Contains(hopeless(), w.Reason) && !behind(w.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &Failure{Reason: cmp.Or(c.Reason, "Unschedulable"), Message: c.Message}, false
		}
	}
	return nil, false
}

// killed returns a container that was killed for memory, now or before it was started again.
func killed(s corev1.ContainerStatus) *Failure {
	for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t != nil && t.Reason == "OOMKilled" {
			return &Failure{Reason: "OOMKilled", Message: fmt.Sprintf("container %s was killed: it went over its memory limit", s.Name), Exit: t.ExitCode}
		}
	}
	return nil
}

// Said returns the newest warning among an object's events, "" where there is none or they may not be read.
// One that says that something is tried again later counts only where there is no other.
func (c *Cluster) Said(ctx context.Context, namespace, uid string) string {
	list, err := c.core.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + uid})
	if err != nil {
		return ""
	}
	return newest(list.Items)
}

func newest(events []corev1.Event) (text string) {
	var at time.Time
	rank := -1
	for _, e := range events {
		r := 1
		if strings.HasPrefix(e.Reason, "BackOff") || e.Message == "Error: ErrImagePull" || e.Message == "Error: ImagePullBackOff" {
			r = 0
		}
		when := e.LastTimestamp.Time
		if when.IsZero() {
			when = e.EventTime.Time
		}
		if e.Type == corev1.EventTypeWarning && (r > rank || r == rank && !when.Before(at)) {
			text, at, rank = e.Message, when, r
		}
	}
	return text
}

// claims says which of a pod's volumes are pending, and why.
func (c *Cluster) claims(ctx context.Context, pod *corev1.Pod) string {
	var list []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		claim, err := c.core.PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			list = append(list, fmt.Sprintf("PVC %s does not exist", name))
			continue
		}
		if err != nil || claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		text := fmt.Sprintf("PVC %s is %s", name, claim.Status.Phase)
		if said := c.Said(ctx, pod.Namespace, string(claim.UID)); said != "" {
			text += ": " + said
		} else if class := claim.Spec.StorageClassName; class != nil {
			text += ": no volume of storage class " + *class
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// Ended says how a pod that was seen running before has ended or been started anew since: a *Failure, nil
// where it runs on.
func (c *Cluster) Ended(ctx context.Context, before *corev1.Pod) error {
	now, err := c.core.Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
	object := fmt.Sprintf("pod %s/%s", before.Namespace, before.Name)
	switch {
	case apierrors.IsNotFound(err):
		return &Failure{Object: object, Reason: "Deleted", Message: cmp.Or(c.Said(ctx, before.Namespace, string(before.UID)), "it is not there any more")}
	case err != nil:
		return explain(err, "cannot look at "+object, "get", "pods")
	case now.UID != before.UID:
		return &Failure{Object: object, Reason: "Replaced", Message: cmp.Or(c.Said(ctx, before.Namespace, string(before.UID)), "another pod has its name now")}
	}
	restarts := map[string]int32{}
	for _, s := range statuses(before) {
		restarts[s.Name] = s.RestartCount
	}
	again := slices.ContainsFunc(statuses(now), func(s corev1.ContainerStatus) bool { return s.RestartCount > restarts[s.Name] })
	if !again && now.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(statuses(now), func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil }) {
		return nil
	}
	f, _ := trouble(now)
	if f == nil {
		f = &Failure{Reason: "Restarted", Message: "a container of it ended and was started again"}
	}
	f.Object = object
	c.tell(ctx, now, f)
	return f
}
