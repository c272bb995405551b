package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}

func ended(phase corev1.PodPhase, reason string, code int32) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}}}}
}

// TestTrouble reads what is wrong with a pod out of its status.
func TestTrouble(t *testing.T) {
	again := waiting("CrashLoopBackOff", "back-off 10s")
	again.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	unschedulable := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		reason string
		says   string
		final  bool
		exit   int32
	}{
		"no image":       {waiting("ImagePullBackOff", `Back-off pulling image "x"`), "ImagePullBackOff", "pulling", true, 0},
		"first try":      {waiting("ErrImagePull", "not found"), "ErrImagePull", "not found", false, 0},
		"never pulled":   {waiting("ErrImageNeverPull", "not present"), "ErrImageNeverPull", "not present", true, 0},
		"no secret":      {waiting("CreateContainerConfigError", `secret "db" not found`), "CreateContainerConfigError", "secret", true, 0},
		"secret late":    {waiting("CreateContainerConfigError", "failed to sync secret cache: timed out waiting for the condition"), "CreateContainerConfigError", "cache", false, 0},
		"crash loop":     {waiting("CrashLoopBackOff", "back-off"), "CrashLoopBackOff", "back-off", true, 0},
		"OOM, again":     {again, "OOMKilled", "memory limit", true, 137},
		"OOM":            {ended(corev1.PodFailed, "OOMKilled", 137), "OOMKilled", "container c", true, 137},
		"evicted":        {evicted, "Evicted", "low on resource", true, 0},
		"failed":         {ended(corev1.PodFailed, "Error", 3), "Failed", "exit code 3", true, 3},
		"unschedulable":  {unschedulable, "Unschedulable", "Insufficient cpu", false, 0},
		"creating":       {waiting("ContainerCreating", ""), "", "", false, 0},
		"running":        {corev1.PodStatus{Phase: corev1.PodRunning}, "", "", false, 0},
		"just scheduled": {corev1.PodStatus{Phase: corev1.PodPending}, "", "", false, 0},
	} {
		f, final := trouble(&corev1.Pod{Status: c.status})
		if c.reason == "" {
			if f != nil || final {
				t.Errorf("%s: %v", name, f)
			}
			continue
		}
		if f == nil || f.Reason != c.reason || !strings.Contains(f.Message, c.says) || final != c.final || f.Exit != c.exit || !errors.Is(f, ErrFailed) {
			t.Errorf("%s: %+v, final %v", name, f, final)
		}
	}
}

func TestReady(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if !ready(pod) {
		t.Error("a ready pod is not")
	}
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	if ready(pod) {
		t.Error("a pod that ends is ready")
	}
}

// TestNewest takes the newest warning, and one that says why rather than one that says again.
func TestNewest(t *testing.T) {
	at := func(s int64, kind, reason, message string) corev1.Event {
		return corev1.Event{Type: kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(time.Unix(s, 0))}
	}
	pull := at(2, "Warning", "Failed", `Failed to pull image "x": not found`)
	list := []corev1.Event{at(9, "Normal", "Pulling", "Pulling image"), pull, at(1, "Warning", "Failed", "older"), at(3, "Warning", "BackOff", "Back-off pulling"),
		at(4, "Warning", "Failed", "Error: ErrImagePull")}
	if got := newest(list); got != pull.Message {
		t.Errorf("%q", got)
	}
	if got := newest(list[3:4]); got != "Back-off pulling" {
		t.Errorf("%q", got)
	}
	if got := newest(list[:1]); got != "" {
		t.Errorf("%q", got)
	}
}

func TestFailureSays(t *testing.T) {
	f := &Failure{Object: "pod db/x", Reason: "CrashLoopBackOff", Message: "back-off", Log: "cannot open /data"}
	if got, want := f.Error(), "pod db/x: CrashLoopBackOff: back-off; its log ends: cannot open /data"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
