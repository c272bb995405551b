package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/mycnf"
)

// The labels of every object.
const (
	ManagedBy     = "app.kubernetes.io/managed-by"
	labelName     = "app.kubernetes.io/name"
	labelInstance = "app.kubernetes.io/instance"
)

// ClientLabel, with the request's name as its value, marks pods of other namespaces that may connect.
const ClientLabel = "david/client-of"

// PasswordKey names the key of the Secret that holds root's password.
const PasswordKey = "root-password"

// KustomizationFile names the file of the folder that lists the others.
const KustomizationFile = "kustomization.yaml"

// SecretFile names the file of the folder that holds the Secret, which nobody else may read.
const SecretFile = "secret.yaml"

// ConfigKey names the key of the ConfigMap that holds the my.cnf.
const ConfigKey = "my.cnf"

func (req Request) labels() map[string]string {
	l := req.selector()
	l[ManagedBy] = "david"
	return l
}

// selector lists the labels that find the server's pods.
func (req Request) selector() map[string]string {
	return map[string]string{labelName: string(req.Server), labelInstance: req.Name}
}

func (req Request) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: req.Namespace, Labels: req.labels()}
}

// NamespaceObjects makes the request's own namespace; none for "default", which is there.
func (req Request) NamespaceObjects() []Object {
	if req.Namespace == metav1.NamespaceDefault {
		return nil
	}
	return []Object{{File: "namespace.yaml", Value: &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: req.Namespace, Labels: map[string]string{ManagedBy: "david"}},
	}}}
}

// SecretObjects makes the Secret of the generated password; none where the request has none.
func (req Request) SecretObjects() []Object {
	if req.Password == "" || req.Flavor == Moco { // moco makes its passwords itself
		return nil
	}
	key, data := req.secretKeys()
	data = maps.Clone(data)
	if data == nil {
		data = map[string]string{}
	}
	data[key] = req.Password
	return []Object{{File: SecretFile, Value: &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: req.Meta(req.SecretName()),
		Type:       corev1.SecretTypeOpaque,
		StringData: data,
	}, Reasons: map[string]string{
		"stringData": "generated once, and kept when this folder is rendered again. Keep it out of version control, or delete this file and name a Secret of your own with --secret",
	}}}
}

// PasswordIn returns what a Secret's YAML has under a key; "" where it has nothing there.
func PasswordIn(content []byte, key string) string {
	var secret struct {
		StringData map[string]string `yaml:"stringData"`
	}
	if err := yaml.Unmarshal(content, &secret); err != nil {
		return ""
	}
	return secret.StringData[key]
}

// SecretCommand says how the Secret is created where none is rendered, with its namespace where that is not
// there yet; the password is not in its arguments.
func (req Request) SecretCommand() string {
	key, others := req.secretKeys()
	namespace := ""
	if req.Namespace != metav1.NamespaceDefault {
		namespace = fmt.Sprintf("kubectl create namespace %s --dry-run=client -o yaml | kubectl apply -f - && ", req.Namespace)
	}
	command := namespace + fmt.Sprintf("head -c 24 /dev/urandom | base64 | tr -d '\\n' | kubectl -n %s create secret generic %s --from-file=%s=/dev/stdin", req.Namespace, req.SecretName(), key)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		command += fmt.Sprintf(" --from-literal=%s=%s", name, others[name])
	}
	return command
}

// configMap makes the my.cnf, and the hash of it.
func (req Request) configMap(lines []mycnf.Setting) (o Object, hash string, err error) {
	text, err := req.Cnf(lines)
	if err != nil {
		return o, "", err
	}
	sum := sha256.Sum256([]byte(text))
	return Object{File: "configmap.yaml", Value: &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: req.Meta(req.Name + "-config"),
		Data:       map[string]string{ConfigKey: text},
	}, Reasons: map[string]string{"data": "derived for the pod's limits; each line has its reason"}}, hex.EncodeToString(sum[:16]), nil
}

// Cnf writes the my.cnf of the pod with its head.
func (req Request) Cnf(lines []mycnf.Setting) (string, error) {
	head := []string{fmt.Sprintf("For a pod with CPU %d and memory %s on a volume of %s; rendered by david manifest.", req.CPUs, Mebi(req.Memory), Mebi(req.Size))}
	if req.byRules() {
		head = append(head, "David's rules: nothing was measured. Other workloads, data and machines may want others: david tune finds out.")
	}
	var text bytes.Buffer
	err := mycnf.Render(&text, append(head, req.Head...), lines)
	return text.String(), err
}

// SecretKey names the key of the Secret that holds root's password; "" where the operator makes its passwords
// itself.
func (req Request) SecretKey() string {
	if req.Flavor == Moco {
		return ""
	}
	key, _ := req.secretKeys()
	return key
}

// secretKeys lists the keys that the flavour's Secret has besides the password, and the password's.
func (req Request) secretKeys() (password string, others map[string]string) {
	switch req.Flavor {
	case PerconaPXC, PerconaPS:
		return "root", nil
	case Oracle:
		return "rootPassword", map[string]string{"rootUser": "root", "rootHost": "%"}
	case KubeBlocks:
		return "password", map[string]string{"username": "root"}
	}
	return PasswordKey, nil
}
