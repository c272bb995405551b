package check

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"david/internal/manifest/stream"
)

// TestServedKnowsTheKinds holds the API server's schemas against the types that objects are decoded into:
// what can be created has both.
func TestServedKnowsTheKinds(t *testing.T) {
	schemas, err := readOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := builtInKinds()
	if err != nil {
		t.Fatal(err)
	}
	uncreated := []string{"ComponentStatus", "Eviction", "PodStatusResult", "RangeAllocation", "Scale"}
	for kind, goType := range kinds.AllKnownTypes() {
		_, object := goType.FieldByName("ObjectMeta")
		d := stream.Document{Value: map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}}
		schema, err := schemas.of(d)
		if err != nil {
			t.Fatal(err)
		}
		if want := object && !slices.Contains(uncreated, kind.Kind); (schema != nil) != want {
			t.Errorf("%s %s: a schema: %v, want %v", d.APIVersion(), kind.Kind, schema != nil, want)
		}
	}
}

// refusals picks the findings of what an API server refuses.
func refusals(found []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool {
		return !slices.Contains([]string{"schema", "unknown-field", "duplicate-field", "syntax", "selector"}, f.Rule) && !strings.Contains(f.Why, "the API server refuses")
	})
}

// TestCheckTakesWhatServersTake holds objects that a real API server takes, as TestServed of test/e2e sees
// to: probes with named ports, quantities as numbers, nulls, status, and whatever a field has to have.
func TestCheckTakesWhatServersTake(t *testing.T) {
	files, err := filepath.Glob("testdata/accepted/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range refusals(inspected(t, string(text), Known{}).Findings) {
			t.Errorf("%s:%d: %+v", file, f.Line, f)
		}
	}
}

const (
	podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: "
	a       = "{name: a, image: nginx}"
)

// TestCheckAsksWhatServersAsk holds findings that no type tells: each is one, where it is, in words that name
// the values.
func TestCheckAsksWhatServersAsk(t *testing.T) {
	for text, want := range map[string]string{
		podHead + "{containers: [{image: nginx}]}":                                                           "spec.containers[0].name: it is missing",
		podHead + "{containers: [{name: '', image: nginx}]}":                                                 "spec.containers[0].name: it is empty",
		podHead + "{containers: [{name: null, image: nginx}]}":                                               "spec.containers[0].name: it is missing",
		podHead + "{containers: [{name: a, image: nginx, imagePullPolicy: Sometimes}]}":                      `spec.containers[0].imagePullPolicy: "Sometimes" is none of Always, IfNotPresent, Never`,
		podHead + "{containers: [{name: a, image: nginx, ports: [{containerPort: 1, protocol: tcp}]}]}":      `spec.containers[0].ports[0].protocol: "tcp" is none of SCTP, TCP, UDP`,
		podHead + "{containers: [{name: a, image: nginx, ports: [{name: a}]}]}":                              "spec.containers[0].ports[0].containerPort: it is missing",
		podHead + "{containers: [{name: a, image: nginx, livenessProbe: {tcpSocket: {host: a}}}]}":           "spec.containers[0].livenessProbe.tcpSocket.port: it is missing",
		podHead + "{containers: [" + a + "], initContainers: [{image: nginx}]}":                              "spec.initContainers[0].name: it is missing",
		podHead + "{containers: [" + a + "], tolerations: [{key: a, operator: exists}]}":                     `spec.tolerations[0].operator: "exists" is none of Equal, Exists`,
		podHead + "{containers: [" + a + "], topologySpreadConstraints: [{maxSkew: 1, topologyKey: a}]}":     "spec.topologySpreadConstraints[0].whenUnsatisfiable: it is missing",
		podHead + "{containers: [" + a + "], volumes: [{name: a, persistentVolumeClaim: {readOnly: true}}]}": "spec.volumes[0].persistentVolumeClaim.claimName: it is missing",
		podHead + "{containers: [" + a + "], volumes: [{name: a, hostPath: {path: /a, type: Folder}}]}":      `spec.volumes[0].hostPath.type: "Folder" is none of BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate, Socket`,
		podHead + "{containers: []}":   "spec.containers: it is empty",
		podHead + "{restartPolicy: A}": "spec.containers: it is missing; spec.restartPolicy: \"A\" is none of Always, Never, OnFailure",
		podHead + "null":               "spec: it is missing",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}":                                                                                                                                             "spec: it is missing",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}":                                                             "spec.template.spec: it is missing",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: Loadbalancer, ports: [{port: 1}]}":                                                                                                      `spec.type: "Loadbalancer" is none of ClusterIP, ExternalName, LoadBalancer, NodePort`,
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWrite], resources: {requests: {storage: 1Gi}}}":                                                               `spec.accessModes[0]: "ReadWrite" is none of ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod`,
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{http: {paths: [{path: /, backend: {service: {name: a, port: {number: 1}}}}]}}]}":                                   "spec.rules[0].http.paths[0].pathType: it is missing",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: a}\nspec: {podSelector: {}, policyTypes: [ingress]}":                                                                             `spec.policyTypes[0]: "ingress" is none of Egress, Ingress`,
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nsubjects: [{kind: User}]\nroleRef: {kind: Role, name: a}":                                                              "subjects[0].name: it is missing",
		"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: a}\nvolumeBindingMode: Later":                                                                                                        `provisioner: it is missing; volumeBindingMode: "Later" is none of Immediate, WaitForFirstConsumer`,
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [" + a + "]}}}}, concurrencyPolicy: None}": `spec.concurrencyPolicy: "None" is none of Allow, Forbid, Replace`,
		// What decoding finds is not said again.
		podHead + "{containers: [{name: [], image: nginx}]}":                                 "spec.containers[0].name: its value does not fit",
		podHead + "{containers: [" + a + "], restartPolicy: no}":                             "spec.restartPolicy: its value does not fit",
		podHead + "{containers: {name: a}}":                                                  "spec.containers: its value does not fit",
		podHead + "{containers: [{nam: a, image: nginx}]}":                                   "spec.containers[0].nam: v1 Pod has no such field; spec.containers[0].name: it is missing",
		podHead + "{containers: [null, " + a + "]}":                                          "spec.containers[0].image: it is missing; spec.containers[0].name: it is missing",
		podHead + "{containers: [" + a + "]}\nstatus: {conditions: [{type: Ready}]}":         "",
		podHead + "{containers: [" + a + "], dnsPolicy: '', restartPolicy: null}":            "",
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}":         "",
		"apiVersion: v1\nkind: PodList\nmetadata: {}\nitems: []\n":                           "metadata: metadata.name is missing",
		"apiVersion: v1\nkind: LimitRange\nmetadata: {name: a}\nspec: {limits: [{max: {}}]}": "spec.limits[0].type: it is missing",
	} {
		found := refusals(inspected(t, text, Known{}).Findings)
		said := []string{}
		for _, f := range found {
			why, _, _ := strings.Cut(f.Why, ": ")
			said = append(said, f.Path+": "+why)
			if f.Line == 0 || f.Do == "" {
				t.Errorf("%s\nno line, or nothing to do: %+v", text, f)
			}
		}
		slices.Sort(said)
		if got := strings.Join(said, "; "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestCheckRefuses holds what the API server's code refuses and no schema tells.
func TestCheckRefuses(t *testing.T) {
	workload := func(kind, spec, pod string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: a}\nspec: {" + spec + "template: {metadata: {labels: {a: b}}, spec: " + pod + "}}"
	}
	job := func(pod string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: " + pod + "}}"
	}
	inPod := func(pod, container string) string {
		if pod != "" {
			pod += ", "
		}
		return podHead + "{" + pod + "containers: [{name: a, image: b, " + container + "}]}"
	}
	service := func(spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {" + spec + "}"
	}
	budget := func(spec string) string {
		return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {" + spec + "}"
	}
	const matching, one = "selector: {matchLabels: {a: b}}, ", "spec.containers[0]."
	for text, want := range map[string][]string{
		workload("Deployment", "selector: {matchLabels: {a: c}}, ", "{containers: ["+a+"]}"):                                   {"spec.selector"},
		workload("DaemonSet", "selector: {}, ", "{containers: ["+a+"]}"):                                                       {"spec.selector"},
		workload("Deployment", matching, "{containers: ["+a+"]}"):                                                              nil,
		workload("StatefulSet", matching, "{containers: [{name: a}]}"):                                                         {"spec.template.spec.containers[0].image"},
		workload("Deployment", matching, "{restartPolicy: Never, containers: ["+a+"]}"):                                        {"spec.template.spec.restartPolicy"},
		workload("Deployment", matching, "{restartPolicy: Always, containers: ["+a+"]}"):                                       nil,
		job("{containers: [" + a + "]}"):                                                                                       {"spec.template.spec.restartPolicy"},
		job("{restartPolicy: Always, containers: [" + a + "]}"):                                                                {"spec.template.spec.restartPolicy"},
		job("{restartPolicy: OnFailure, containers: [" + a + "]}"):                                                             nil,
		podHead + "{containers: [" + a + "], initContainers: [{name: b, image: c, volumeMounts: [{name: d, mountPath: /d}]}]}": {"spec.initContainers[0].volumeMounts[0]"},
		podHead + "{restartPolicy: Never, containers: [" + a + "]}":                                                            nil,
		workload("StatefulSet", matching+"volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce]}}], ",
			"{containers: [{name: a, image: b, volumeMounts: [{name: d, mountPath: /d}]}]}"): {"spec.volumeClaimTemplates[0].spec.resources.requests.storage"},
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {resources: {requests: {storage: 1Gi}}}":                     {"spec.accessModes"},
		"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: a}\nprovisioner: a\nreclaimPolicy: Recycle":                      {"reclaimPolicy"},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selector: {a: b}}":                                                        {"spec.ports"},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selector: {a: b}, clusterIP: None}":                                       nil,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: ExternalName, externalName: a.example.com}":                         nil,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{name: a, port: 1}, {port: 2}]}":                                  {"spec.ports[1].name"},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1, targetPort: mysql}]}":                                   nil,
		workload("StatefulSet", "selector: {matchLabels: {a: c}}, ", "{containers: ["+a+"]}"):                                                 {"spec.selector"},
		inPod("", "ports: [{containerPort: 0}, {containerPort: 65536}, {containerPort: 1, hostPort: 70000}]"):                                 {one + "ports[0].containerPort", one + "ports[1].containerPort", one + "ports[2].hostPort"},
		inPod("", "ports: [{containerPort: 1, name: mysql-server-port}, {containerPort: 2, name: MySQL}]"):                                    {one + "ports[0].name", one + "ports[1].name"},
		inPod("", "ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]"):                                                        {one + "ports[1].name"},
		inPod("", "ports: [{containerPort: 3306, name: mysql}, {containerPort: 3306}, {containerPort: 33060}]"):                               nil,
		inPod("", "livenessProbe: {periodSeconds: 5}"):                                                                                        {one + "livenessProbe"},
		inPod("", "livenessProbe: {tcpSocket: {port: 1}, exec: {command: [a]}}"):                                                              {one + "livenessProbe"},
		inPod("", "livenessProbe: {exec: {command: []}}"):                                                                                     {one + "livenessProbe.exec.command"},
		inPod("", "livenessProbe: {tcpSocket: {port: '3306'}}"):                                                                               {one + "livenessProbe.tcpSocket.port"},
		inPod("", "livenessProbe: {tcpSocket: {port: 0}}"):                                                                                    {one + "livenessProbe.tcpSocket.port"},
		inPod("", "livenessProbe: {tcpSocket: {}}"):                                                                                           {one + "livenessProbe.tcpSocket.port"},
		inPod("", "livenessProbe: {tcpSocket: {port: 1}, successThreshold: 2}"):                                                               {one + "livenessProbe.successThreshold"},
		inPod("", "startupProbe: {tcpSocket: {port: 1}, successThreshold: 2, failureThreshold: -1}"):                                          {one + "startupProbe.failureThreshold", one + "startupProbe.successThreshold"},
		inPod("", "readinessProbe: {tcpSocket: {port: mysql}, successThreshold: 2, failureThreshold: 0}"):                                     nil,
		inPod("", "readinessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 5}"):                                                 {one + "readinessProbe.terminationGracePeriodSeconds"},
		inPod("", "livenessProbe: {tcpSocket: {port: 1}, successThreshold: 1, terminationGracePeriodSeconds: 5}"):                             nil,
		inPod("", "lifecycle: {preStop: {}}"):                                                                                                 {one + "lifecycle.preStop"},
		inPod("", "lifecycle: {preStop: {sleep: {seconds: 31}}}"):                                                                             {one + "lifecycle.preStop.sleep.seconds"},
		inPod("terminationGracePeriodSeconds: 60", "lifecycle: {preStop: {sleep: {seconds: 31}}}"):                                            nil,
		inPod("", "resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1024Mi}}"):                                       {one + "resources.requests.cpu"},
		inPod("resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}", "stdin: false"):                                                  {"spec.resources.requests.memory"},
		inPod("volumes: [{name: a}, {name: a}, {name: A_b}]", "stdin: false"):                                                                 {"spec.volumes[1].name", "spec.volumes[2].name"},
		inPod("volumes: [{name: a}]", "volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a, subPath: b}]"):                       {one + "volumeMounts[1].mountPath"},
		inPod("", "env: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"):                                            {one + "env[0].valueFrom"},
		inPod("", "env: [{name: A, valueFrom: {}}, {name: B, valueFrom: {secretKeyRef: {key: a}}}]"):                                          {one + "env[0].valueFrom", one + "env[1].valueFrom.secretKeyRef.name"},
		inPod("", "env: [{name: A, value: '', valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"):                                           nil,
		inPod("", "envFrom: [{prefix: a}, {secretRef: {optional: true}}, {configMapRef: {name: a}}]"):                                         {one + "envFrom[0]", one + "envFrom[1].secretRef.name"},
		inPod("volumes: [{name: a, emptyDir: {}, configMap: {name: a}}]", "stdin: false"):                                                     {"spec.volumes[0]"},
		inPod("volumes: [{name: a, emptyDir: {}, configMap: null}, {name: b}]", "stdin: false"):                                               nil,
		inPod("volumes: [{name: a, secret: {}}, {name: b, configMap: {}}]", "stdin: false"):                                                   {"spec.volumes[0].secret.secretName", "spec.volumes[1].configMap.name"},
		workload("StatefulSet", matching+"replicas: -1, persistentVolumeClaimRetentionPolicy: {whenScaled: Keep}, ", "{containers: ["+a+"]}"): {"spec.persistentVolumeClaimRetentionPolicy.whenScaled", "spec.replicas"},
		inPod("initContainers: [{name: a, image: b}]", "stdin: false"):                                                                        {"spec.initContainers[0].name"},
		inPod("initContainers: [{name: b, image: b, livenessProbe: {tcpSocket: {port: 1}}}]", "stdin: false"):                                 {"spec.initContainers[0].livenessProbe"},
		inPod("initContainers: [{name: b, image: b, restartPolicy: Always, livenessProbe: {tcpSocket: {port: 1}}}]", "stdin: false"):          nil,
		workload("StatefulSet", matching+"volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOncePod, ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], ",
			"{volumes: [{name: d}], containers: [{name: a, image: b, volumeMounts: [{name: d, mountPath: /d}]}]}"): {"spec.volumeClaimTemplates[0].spec.accessModes"},
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOncePod, ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}": nil,
		service("clusterIP: None, type: LoadBalancer, ports: [{port: 1}]"):                                                                                                   {"spec.clusterIP"},
		service("ports: [{name: a, port: 1}, {name: a, port: 2}]"):                                                                                                           {"spec.ports[1].name"},
		service("ports: [{name: a, port: 1}, {name: b, port: 1}]"):                                                                                                           {"spec.ports[1].port"},
		service("ports: [{name: a, port: 1}, {name: b, port: 1, protocol: UDP}]"):                                                                                            nil,
		service("ports: [{name: My_SQL, port: 0, targetPort: '3306'}]"):                                                                                                      {"spec.ports[0].name", "spec.ports[0].port", "spec.ports[0].targetPort"},
		service("ports: [{port: 1, targetPort: 0}]"):                                                                                                                         nil,
		budget("minAvailable: 1, maxUnavailable: 1, selector: {matchLabels: {a: b}}"):                                                                                        {"spec"},
		budget("maxUnavailable: -1"):                                                                                                                                         {"spec.maxUnavailable"},
		budget("maxUnavailable: '1'"):                                                                                                                                        {"spec.maxUnavailable"},
		budget("maxUnavailable: 101%"):                                                                                                                                       {"spec.maxUnavailable"},
		budget("maxUnavailable: 50%, minAvailable: null, selector: {matchLabels: {a: b}}"):                                                                                   nil,
	} {
		var got []string
		for _, f := range refusals(inspected(t, text, Known{}).Findings) {
			got = append(got, f.Path)
		}
		slices.Sort(got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %v\nwant %v", text, got, want)
		}
	}
}

// TestCheckFindsPasswordsOfOperators: the resources of operators have variables, commands and option files,
// too.
func TestCheckFindsPasswordsOfOperators(t *testing.T) {
	const secret = "valueFrom: {secretKeyRef: {name: a, key: b}}"
	for text, want := range map[string][]string{
		"apiVersion: pxc.percona.com/v1\nkind: PerconaXtraDBCluster\nspec: {pxc: {sidecars: [{name: a, env: [{name: DB_PASSWORD, value: hunter2}]}]}}":                                    {"spec.pxc.sidecars[0].env[0]"},
		"apiVersion: pxc.percona.com/v1\nkind: PerconaXtraDBCluster\nspec: {pxc: {livenessProbes: {exec: {command: [mysqladmin, -phunter2, ping]}}}}":                                     {"spec.pxc.livenessProbes.exec.command"},
		"apiVersion: pxc.percona.com/v1\nkind: PerconaXtraDBCluster\nspec: {pxc: {configuration: \"[client]\\npassword=hunter2\\n\"}}":                                                    {"spec.pxc.configuration"},
		"apiVersion: pxc.percona.com/v1\nkind: PerconaXtraDBCluster\nspec: {pxc: {configuration: \"[mysqld]\\nmysql_native_password=ON\\ninnodb_ft_min_token_size=2\\n\"}}":               nil,
		"apiVersion: mysql.oracle.com/v2\nkind: InnoDBCluster\nspec: {podSpec: {containers: [{name: mysql, env: [{name: MYSQL_ROOT_PASSWORD, value: hunter2}]}]}}":                        {"spec.podSpec.containers[0].env[0]"},
		"apiVersion: mysql.oracle.com/v2\nkind: InnoDBCluster\nspec: {podSpec: {initContainers: [{name: a, command: [sh, -c, 'mysql -uroot -phunter2']}]}}":                               {"spec.podSpec.initContainers[0].command"},
		"apiVersion: moco.cybozu.com/v1beta2\nkind: MySQLCluster\nspec: {podTemplate: {spec: {containers: [{name: a, command: [mysqldump], args: [--password=hunter2, shop]}]}}}":         {"spec.podTemplate.spec.containers[0].args"},
		"apiVersion: moco.cybozu.com/v1beta2\nkind: MySQLCluster\nspec: {podTemplate: {spec: {containers: [{name: a, lifecycle: {preStop: {exec: {command: [mysql, -phunter2]}}}}]}}}":    {"spec.podTemplate.spec.containers[0].lifecycle.preStop.exec.command"},
		"apiVersion: k8s.mariadb.com/v1alpha1\nkind: MariaDB\nspec: {env: [{name: MARIADB_ROOT_PASSWORD, value: hunter2}, {name: TZ, value: UTC}]}":                                       {"spec.env[0]"},
		"apiVersion: k8s.mariadb.com/v1alpha1\nkind: MariaDB\nspec: {env: [{name: MARIADB_ROOT_PASSWORD, " + secret + "}], args: [--max-connections=9]}":                                  nil,
		"apiVersion: k8s.mariadb.com/v1alpha1\nkind: MariaDB\nspec: {env: [{name: MARIADB_ALLOW_EMPTY_ROOT_PASSWORD, value: '1'}]}":                                                       {"spec.env[0]"},
		"apiVersion: apps.kubeblocks.io/v1\nkind: Cluster\nspec: {componentSpecs: [{env: [{name: MYSQL_PASSWORD, value: hunter2}]}]}":                                                     {"spec.componentSpecs[0].env[0]"},
		"apiVersion: example.com/v1\nkind: Anything\nspec: {deep: {list: [{template: {spec: {containers: [{command: [mysql, -phunter2], livenessProbe: {exec: {command: [true]}}}]}}}]}}": {"spec.deep.list[0].template.spec.containers[0].command"},
		"apiVersion: example.com/v1\nkind: Anything\nspec: {command: mysql -phunter2, args: {a: b}, env: [PASSWORD], innodb: [{name: innodb_ft_max_token_size, value: '84'}]}":            nil,
	} {
		var got []string
		for _, f := range inspected(t, text+"\nmetadata: {name: a}\n", Known{}).Findings {
			if f.Rule == "clear-secret" {
				got = append(got, f.Path)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %v\nwant %v", text, got, want)
		}
	}
}
