package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobPod returns the newest pod of a Job, nil where it has none yet.
func (c *Cluster) JobPod(ctx context.Context, namespace, job string) (*corev1.Pod, error) {
	list, err := c.core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		return nil, explain(err, fmt.Sprintf("cannot list the pods of job %s/%s", namespace, job), "list", "pods")
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	pod := slices.MaxFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &pod, nil
}

// WaitJobPod waits until a Job's pod runs or has run, and fails as WaitPod does.
func (c *Cluster) WaitJobPod(ctx context.Context, namespace, job string) (*corev1.Pod, error) {
	began := time.Now()
	for {
		pod, err := c.JobPod(ctx, namespace, job)
		if err != nil {
			return nil, err
		}
		if pod != nil && (pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			return pod, nil
		}
		if err := c.jobStuck(ctx, namespace, job, pod, began); err != nil {
			return nil, err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return nil, fmt.Errorf("waiting for job %s/%s: %w", namespace, job, err)
		}
	}
}

// JobDone looks once: it tells whether a Job has ended, with a *Failure where it cannot begin, its pod
// failed, or it is past its deadline. began is since when it is waited for.
func (c *Cluster) JobDone(ctx context.Context, namespace, job string, began time.Time) (bool, error) {
	done, err := c.jobDone(ctx, namespace, job)
	if done || err != nil {
		return done, err
	}
	pod, err := c.JobPod(ctx, namespace, job)
	if err != nil {
		return false, err
	}
	return false, c.jobStuck(ctx, namespace, job, pod, began)
}

// jobDone tells whether a Job has ended, with an error where it ended badly.
func (c *Cluster) jobDone(ctx context.Context, namespace, name string) (bool, error) {
	conditions, err := c.jobConditions(ctx, namespace, name)
	if err != nil {
		return false, err
	}
	for _, condition := range conditions {
		switch condition.Type {
		case batchv1.JobComplete:
			return true, nil
		case batchv1.JobFailed:
			return true, c.jobFailure(ctx, namespace, name, condition)
		}
	}
	return false, nil
}

// jobNotices is how long a cluster may take to tell of a Job that it failed, after its pod has ended.
const jobNotices = 10 * time.Second

// JobFailed waits until a Job whose client has ended says why it failed, which its pod does not know: past
// its deadline a Job ends its pod as anybody would. The error is a *Failure, or nil where the Job does not
// fail within ten seconds.
func (c *Cluster) JobFailed(ctx context.Context, namespace, name string) error {
	for began := time.Now(); time.Since(began) < jobNotices; {
		conditions, err := c.jobConditions(ctx, namespace, name)
		if err != nil {
			return err
		}
		for _, condition := range conditions {
			if condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobFailureTarget { // it comes first
				return c.jobFailure(ctx, namespace, name, condition)
			}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return fmt.Errorf("waiting for job %s/%s to fail: %w", namespace, name, err)
		}
	}
	return nil
}

// jobConditions lists what holds of a Job.
func (c *Cluster) jobConditions(ctx context.Context, namespace, name string) ([]batchv1.JobCondition, error) {
	job, err := c.batch.Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err, fmt.Sprintf("cannot look at job %s/%s", namespace, name), "get", "jobs.batch")
	}
	return slices.DeleteFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Status != corev1.ConditionTrue }), nil
}

// jobFailure says why a Job failed: by its pod, which knows more, unless it is the Job's own deadline.
func (c *Cluster) jobFailure(ctx context.Context, namespace, name string, condition batchv1.JobCondition) error {
	f := &Failure{Object: fmt.Sprintf("job %s/%s", namespace, name), Reason: condition.Reason, Message: condition.Message}
	pod, err := c.JobPod(ctx, namespace, name)
	if err != nil || pod == nil || condition.Reason == batchv1.JobReasonDeadlineExceeded {
		return f
	}
	if why, _ := trouble(pod); why != nil {
		why.Object = f.Object
		c.tell(ctx, pod, why)
		return why
	}
	return f
}

// jobStuck returns the failure of a Job whose pod does not get on, or that has none.
func (c *Cluster) jobStuck(ctx context.Context, namespace, job string, pod *corev1.Pod, began time.Time) error {
	if pod != nil && pod.Status.Phase == corev1.PodFailed {
		if err := c.JobFailed(ctx, namespace, job); err != nil {
			return err
		}
	}
	if pod != nil {
		return c.stuck(ctx, pod, began)
	}
	if done, err := c.jobDone(ctx, namespace, job); done || err != nil {
		return err
	}
	if time.Since(began) < c.Patience {
		return nil
	}
	f := &Failure{Object: fmt.Sprintf("job %s/%s", namespace, job), Reason: "NoPod", Message: fmt.Sprintf("it had no pod for %s", c.Patience), Waited: true}
	if j, err := c.batch.Jobs(namespace).Get(ctx, job, metav1.GetOptions{}); err == nil { // quotas and admission speak in its events
		f.Message = cmp.Or(c.Said(ctx, namespace, string(j.UID)), f.Message)
	}
	return f
}
