package stream

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func encoded(t *testing.T, value any, reasons map[string]string) string {
	t.Helper()
	text, err := Write(value, reasons)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEncodeTyped(t *testing.T) {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: map[string]string{"a.b/c": "off"}},
		Spec: appsv1.StatefulSetSpec{ServiceName: "db", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "mysql", Image: "mysql:8.4", Args: []string{"a\nb", "1e3", "yes", "0123", "null", "", "x: y # z", "1:30"}}},
			Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}}},
	}
	got := encoded(t, set, map[string]string{
		"": "the document\n\tkubectl stays on its line " + strings.Repeat("whatever ", 20) + "\nthen goes on", `metadata.annotations["a.b/c"]`: "a key with dots", "spec.template.spec.containers[0]": "an element",
		"spec.template.spec.containers[0].image": strings.Repeat("long ", 30),
	})
	want := `# the document
#   kubectl stays on its line whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever whatever
# then goes on
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  annotations:
    # a key with dots
    a.b/c: "off"
spec:
  selector: null
  template:
    metadata: {}
    spec:
      volumes:
        - name: tmp
          emptyDir: {}
      containers:
        # an element
        - name: mysql
          # long long long long long long long long long long long long long long long long long long long long long
          # long long long long long long long long long
          image: mysql:8.4
          args:
            - |-
              a
              b
            - "1e3"
            - "yes"
            - "0123"
            - "null"
            - ""
            - "x: y # z"
            - "1:30"
          resources: {}
  serviceName: db
  updateStrategy: {}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReasonsNeedTheirField(t *testing.T) {
	for _, path := range []string{"spec", "metadata.nothing", "list[2]", "list[0].x", "a..b", `metadata["name`} {
		value := map[string]any{"metadata": map[string]any{"name": "x"}, "list": []any{1, 2}}
		if _, err := Write(value, map[string]string{path: "why"}); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
