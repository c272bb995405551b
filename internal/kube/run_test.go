package kube

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGone tells whether a run is over, by its process and by its time.
func TestGone(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := owner("/proc", cmd.Process.Pid)
	own := owner("/proc", os.Getpid())
	if child == "" || own == "" || child == own {
		t.Fatalf("owners %q and %q", own, child)
	}
	now := time.Now()
	later, earlier := now.Add(time.Hour).Format(time.RFC3339), now.Add(-time.Hour).Format(time.RFC3339)
	if gone("/proc", child, later, now) {
		t.Error("the run of a living process is gone")
	}
	cmd.Process.Kill()
	cmd.Wait()
	fields := strings.Split(own, "/")
	fields[3] = "1" // the same PID, another process
	for name, c := range map[string]struct {
		owner, until string
		want         bool
	}{
		"own":             {own, later, false},
		"dead":            {child, later, true},
		"PID taken":       {strings.Join(fields, "/"), later, true},
		"past its time":   {own, earlier, true},
		"another machine": {"boot/4026531836/1/1", later, false},
		"unknown":         {"", later, false},
		"nothing said":    {"", "", false},
		"not a time":      {own, "tomorrow", false},
	} {
		if got := gone("/proc", c.owner, c.until, now); got != c.want {
			t.Errorf("%s: gone is %v", name, got)
		}
	}
}

// TestStamp marks an object and the pods it will have.
func TestStamp(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "b"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"c": "d"}}}}}
	u, err := Object(job)
	if err != nil {
		t.Fatal(err)
	}
	run := NewRun("r-1", time.Hour)
	stamp(u, run)
	if l := u.GetLabels(); l["a"] != "b" || l[ManagedBy] != "david" || l[RunLabel] != "r-1" {
		t.Errorf("labels %v", l)
	}
	if n := u.GetAnnotations(); n[ownerNote] != run.Owner || gone("/proc", n[ownerNote], n[untilNote], time.Now()) {
		t.Errorf("annotations %v", n)
	}
	template := u.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any)
	if template["c"] != "d" || template[RunLabel] != "r-1" {
		t.Errorf("the pods' labels %v", template)
	}
	if u.GetKind() != "Job" || u.GetAPIVersion() != "batch/v1" || u.Object["status"] != nil || job.Labels[RunLabel] != "" {
		t.Errorf("%v", u.Object)
	}
}

func TestObject(t *testing.T) {
	u, err := Object(map[string]any{"apiVersion": "x/v1", "kind": "Foo", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"n": 3, "list": []string{"x"}}})
	if err != nil || u.GetKind() != "Foo" {
		t.Fatal(u, err)
	}
	u.DeepCopy() // panics on what is no JSON value
	if _, err := Object(7); err == nil {
		t.Error("a number is an object")
	}
	if _, err := Object(map[string]any{"spec": 1}); err == nil {
		t.Error("a map without a kind is an object")
	}
}
