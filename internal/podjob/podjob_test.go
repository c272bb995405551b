package podjob

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func client() Client {
	return Client{Name: "david-1", Namespace: "db", Image: "i", Args: []string{"bench", "--dsn=root@tcp(10.0.0.1:3306)/"}, Secret: "s", Key: "k",
		Server: map[string]string{"app": "mysql"}, Deadline: 90 * time.Second, Env: []corev1.EnvVar{{Name: "DAVID_MAX_STEAL", Value: "20%"}}}
}

// TestJob holds a client against the restricted Pod Security Standard, and its bounds.
func TestJob(t *testing.T) {
	job := Job(client())
	pod, c := job.Spec.Template.Spec, job.Spec.Template.Spec.Containers[0]
	s := c.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || *pod.AutomountServiceAccountToken {
		t.Errorf("not restricted: %+v, %+v", pod.SecurityContext, s)
	}
	if *job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds != 90 || *job.Spec.TTLSecondsAfterFinished == 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", job.Spec)
	}
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %+v", v)
		}
	}
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "DAVID_MAX_STEAL" && e.Value == "20%" }) {
		t.Errorf("what is set here is not there: %+v", c.Env)
	}
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "MYSQL_PWD" })
	if i < 0 || c.Env[i].Value != "" || c.Env[i].ValueFrom.SecretKeyRef.Name != "s" || c.Env[i].ValueFrom.SecretKeyRef.Key != "k" {
		t.Errorf("the password: %+v", c.Env)
	}
}

func TestPlacement(t *testing.T) {
	free := Job(client()).Spec.Template.Spec.Affinity
	terms := free.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if free.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || len(terms) != 2 || terms[1].PodAffinityTerm.LabelSelector.MatchLabels["app"] != "mysql" {
		t.Errorf("%+v", free)
	}
	c := client()
	c.Node = "n1"
	text, err := json.Marshal(Job(c).Spec.Template.Spec.Affinity)
	if err != nil || !strings.Contains(string(text), `"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestResources(t *testing.T) {
	r := Job(client()).Spec.Template.Spec.Containers[0].Resources
	if _, capped := r.Limits[corev1.ResourceCPU]; capped || r.Limits.Memory().IsZero() {
		t.Errorf("%+v", r)
	}
	c := client()
	c.CPU, c.Memory = resource.MustParse("2"), resource.MustParse("512Mi")
	r = Job(c).Spec.Template.Spec.Containers[0].Resources
	if r.Limits.Cpu().String() != "2" || r.Requests.Cpu().String() != "2" || r.Limits.Memory().String() != "512Mi" || r.Requests.Memory().String() != "512Mi" {
		t.Errorf("%+v", r)
	}
}

func TestServer(t *testing.T) {
	ref := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar"},
		{Name: "db", Ports: []corev1.ContainerPort{{ContainerPort: 33060}, {Name: "mysql", ContainerPort: 3307}}, Env: []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: ref}}}}}}
	c, port, err := Server(pod)
	if err != nil || c.Name != "db" || port != 3307 {
		t.Errorf("%s, %d, %v", c.Name, port, err)
	}
	if secret, key, ok := RootSecret(c); !ok || secret != "s" || key != "k" {
		t.Errorf("%s, %s, %v", secret, key, ok)
	}
	if _, _, ok := RootSecret(pod.Spec.Containers[0]); ok {
		t.Error("a container without a password has one")
	}
	pod.Spec.Containers = pod.Spec.Containers[:1]
	if c, port, err := Server(pod); err != nil || c.Name != "sidecar" || port != 3306 {
		t.Errorf("%s, %d, %v", c.Name, port, err)
	}
	pod.Spec.Containers = nil
	if _, _, err := Server(pod); err == nil {
		t.Error("a pod without containers has a server")
	}
}
