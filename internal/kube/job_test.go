package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestJobDoneAtDeadline has a Job's pod end by the signal that it gets at the Job's deadline, a moment before
// the Job says so: the reason is the deadline, and not what the pod ended with. A cluster tells the one
// before the other now and then.
func TestJobDoneAtDeadline(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{batchv1.JobReasonDeadlineExceeded: "DeadlineExceeded", batchv1.JobReasonBackoffLimitExceeded: "exit code 130"} {
		var looks atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var answer any = corev1.EventList{}
			switch {
			case r.URL.Path == "/version":
				answer = map[string]string{"gitVersion": "v1.34.4"}
			case strings.HasSuffix(r.URL.Path, "/jobs/j"):
				var job batchv1.Job
				if looks.Add(1) > 2 {
					job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse},
						{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "it took too long"}}
				}
				answer = job
			case strings.HasSuffix(r.URL.Path, "/pods"):
				answer = corev1.PodList{Items: []corev1.Pod{{Status: ended(corev1.PodFailed, "Error", 130)}}}
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(answer)
		}))
		defer s.Close()
		c, err := Open(t.Context(), kubeconfig(t, s.URL, "one"), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.JobDone(t.Context(), "db", "j", time.Now())
		if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), want) || looks.Load() < 3 {
			t.Errorf("%s: %v after %d looks", reason, err, looks.Load())
		}
	}
}
