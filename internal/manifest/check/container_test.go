package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// podText writes a pod with one container, whose fields follow its name.
func podText(container string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec:\n  containers:\n    - name: a\n      " + strings.ReplaceAll(strings.TrimSpace(container), "\n", "\n      ") + "\n"
}

// has tells whether a finding of a rule is there whose path ends so.
func has(found []Finding, rule, path string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.Rule == rule && f.Severity == SeverityError && strings.HasSuffix(f.Path, path)
	})
}

// TestCheckSeesServers holds which containers count as servers: those are told that nothing is mounted for
// their data.
func TestCheckSeesServers(t *testing.T) {
	for container, want := range map[string]bool{
		"image: mysql:8.4": true,
		"image: example.com/e2e-test-images/mysql:8.0": true,
		"image: mariadb":                    true,
		"image: percona/percona-server:8.4": true,
		"image: mysql/mysql-server@sha256:" + strings.Repeat("a", 64): true,
		"image: mysql-80-c9s": true,
		"image: mysql:8.4\nenvFrom: [{secretRef: {name: s}}]":                  true,
		"image: shop-mysql-prod:1\nports: [{containerPort: 3306}]":             true,
		"image: shop-mysql-prod:1\nenvFrom: [{secretRef: {name: s}}]":          true,
		"image: shop-mysql-prod:1\nenv: [{name: MYSQL_DATABASE, value: shop}]": true,
		"image: shop-mysql-prod:1":                                             false,
		"image: shop:1\nports: [{containerPort: 3306}]":                        false,
		"image: debian\ncommand: [/usr/sbin/mysqld]":                           true,
		"image: debian\ncommand: [sh, -c, 'exec mariadbd --user=mysql']":       true,
		"image: mysql:8.4\nargs: [--max-connections=9]":                        true,
		"image: mysql:8.4\nargs: [mysqldump, shop]":                            false,
		"image: mysql:8.4\ncommand: [sh, -c, 'mysqldump shop > /b']":           false,
		"image: mysql:8.4\ncommand: [mysql, -h, db]":                           false,
		"image: prom/mysqld-exporter\nports: [{containerPort: 3306}]":          false,
		"image: mysql-client:8":                                                false,
		"image: example.com/proxysql\nenv: [{name: MYSQL_DATABASE, value: a}]": false,
		"image: nginx": false,
		"image: phpmyadmin:5\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}, {name: PMA_HOST, value: db}]":    false,
		"image: phpmyadmin\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]":                                   false,
		"image: adminer\nenvFrom: [{secretRef: {name: s}}]\nports: [{containerPort: 8080}]":                    false,
		"image: shop:1\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}, {name: DB_HOST, value: db}]":           false,
		"image: shop:1\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]\nports: [{containerPort: 8080}]":       false,
		"image: shop-mysql-prod:1\nenv: [{name: MYSQL_DATABASE, value: a}, {name: MYSQL_HOST, value: db}]":     false,
		"image: percona/percona-server-mongodb:8\nenvFrom: [{secretRef: {name: s}}]":                           false,
		"image: percona-xtradb-cluster-operator:1.17-haproxy\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]": false,
		"image: mysql:8.4\ncommand: [sleep, infinity]\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]":        false,
		"image: mysql:8.4\ncommand: [sh, -c, sleep 1d]\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]":       false,
		"image: mysql:8.4\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}, {name: MYSQL_HOST, value: db}]":     true,
		"image: own:1\nenv: [{name: MYSQL_ROOT_PASSWORD, value: $(A)}]\nports: [{containerPort: 3306}]":        true,
		"image: own:1\nenv: [{name: MYSQL_ROOT_PASSWORD, valueFrom: {secretKeyRef: {name: s, key: p}}}]":       false, // sqlpad, say
	} {
		if got := has(inspected(t, podText(container), Known{}).Findings, "volumes", "volumeMounts"); got != want {
			t.Errorf("%q: a server: %v, want %v", container, got, want)
		}
	}
}

// TestCheckOfASilentServer is a pod that tells of its server by the image alone, with all that is wrong with
// it.
func TestCheckOfASilentServer(t *testing.T) {
	text := podText("image: mysql:8.4\nenvFrom: [{secretRef: {name: s}}]\nresources: {limits: {memory: 1Gi}}\nlivenessProbe: {tcpSocket: {port: 3306}, periodSeconds: 1, failureThreshold: 1}\n"+
		"volumeMounts: [{name: c, mountPath: /etc/mysql/conf.d}]") +
		"  volumes: [{name: c, configMap: {name: c}}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  my.cnf: |\n    [mysqld]\n    innodb_buffer_pool_size=64G\n    innodb_flush_log_at_trx_commit=0\n"
	found := inspected(t, text, Known{}).Findings
	for _, rule := range []string{"memory", "durability", "startup-probe", "volumes"} {
		if !has(found, rule, "") {
			t.Errorf("%s is not found among %+v", rule, found)
		}
	}
}

// TestCheckDataFolders holds mounts against where a server keeps its data.
func TestCheckDataFolders(t *testing.T) {
	for fields, want := range map[string]bool{
		"volumeMounts: [{name: d, mountPath: /var/lib/mysql}]":                             false,
		"volumeMounts: [{name: d, mountPath: /var/lib/mysql/data}]":                        false,
		"volumeMounts: [{name: d, mountPath: /bitnami/mysql}]":                             false,
		"volumeMounts: [{name: d, mountPath: /var/lib/mysql-files}]":                       true,
		"args: [--datadir=/data/db]\nvolumeMounts: [{name: d, mountPath: /data}]":          false,
		"args: [--datadir=/data/db]\nvolumeMounts: [{name: d, mountPath: /var/lib/mysql}]": true,
	} {
		text := podText("image: mysql:8.4\n"+fields) + "  volumes: [{name: d, persistentVolumeClaim: {claimName: d}}]\n"
		if got := has(inspected(t, text, Known{}).Findings, "volumes", "volumeMounts"); got != want {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
}

// TestCheckVolumesOfData holds the volume that the data lie on against what happens to it when the pod goes.
func TestCheckVolumesOfData(t *testing.T) {
	const none = Severity("")
	for _, tc := range []struct {
		volume, pod string
		want        Severity
	}{
		{"persistentVolumeClaim: {claimName: d}", "", none},
		{"emptyDir: {}", "", SeverityError},
		{"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}", "", SeverityError},
		{"hostPath: {path: /d}", "", SeverityNote},
		{"hostPath: {path: /d}", "nodeSelector: {a: b}", none},
		{"hostPath: {path: /d}", "nodeName: a", none},
	} {
		text := podText("image: mysql:8.4\nvolumeMounts: [{name: d, mountPath: /var/lib/mysql}]") + "  volumes: [{name: d, " + tc.volume + "}]\n"
		if tc.pod != "" {
			text += "  " + tc.pod + "\n"
		}
		found, got := inspected(t, text, Known{}).Findings, none
		if i := slices.IndexFunc(found, func(f Finding) bool { return f.Path == "spec.volumes[0]" && f.Rule == "volumes" }); i >= 0 {
			got = found[i].Severity
		}
		if got != tc.want {
			t.Errorf("%s, %s: %q, want %q", tc.volume, tc.pod, got, tc.want)
		}
	}
}

// TestCheckReadsArguments holds the settings of a server's command line against the rules.
func TestCheckReadsArguments(t *testing.T) {
	const limits = "image: mysql:8.4\nresources: {limits: {memory: 1Gi}}\n"
	for fields, rule := range map[string]string{
		"args: [--innodb-buffer-pool-size=4G, --max-connections=2000]":            "memory",
		"args: [mysqld, --innodb_buffer_pool_size, 4G]":                           "memory",
		"command: [sh, -c, 'exec mysqld --innodb-buffer-pool-size=4G']":           "memory",
		"args: [--innodb-flush-log-at-trx-commit=2]":                              "durability",
		"args: [--innodb-dedicated-server]":                                       "dedicated-server",
		"command: [mysqld]\nargs: [--loose-innodb-dedicated-server=ON, --user=m]": "dedicated-server",
	} {
		found := inspected(t, podText(limits+fields), Known{}).Findings
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == rule })
		if i < 0 || found[i].Severity != SeverityError || found[i].Line < 9 {
			t.Errorf("%s: %s is not found where it is: %+v", fields, rule, found)
		}
	}
	if found := inspected(t, podText(limits+"args: [--innodb-buffer-pool-size=128M, --max-connections=50]"), Known{}).Findings; has(found, "memory", "") || has(found, "durability", "") {
		t.Errorf("sound arguments: %+v", found)
	}
}

// TestCheckFindsPasswordsInCommands holds the commands of pods that are no servers.
func TestCheckFindsPasswordsInCommands(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: b}\nspec:\n  schedule: '@daily'\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'mysql:8.4', "
	for fields, want := range map[string]bool{
		"command: [mysqldump, -uroot, -phunter2, shop]":                  true,
		"command: [sh, -c, 'mysqldump -uroot -phunter2 shop > /b']":      true,
		"command: [mysqldump], args: [--password=hunter2, shop]":         true,
		"command: [sh, -c, 'x && mariadb-dump --password=\"h\" shop']":   true,
		"command: [sh, -c, 'mysqldump -p\"$MYSQL_PWD\" shop']":           false,
		"command: [sh, -c, 'mysqldump --password=$P shop; mkdir -pv x']": false,
		"command: [mysqldump, -P3306, shop]":                             false,
		"command: [sh, -c, 'MYSQL_PWD=hunter2 mysqladmin ping']":         true,
		"command: [env, MYSQL_PWD=hunter2, mysqladmin, ping]":            true,
		"command: [sh, -c, 'export MYSQL_PWD=\"h\"; mysqladmin ping']":   true,
		"command: [sh, -c, 'MYSQL_PWD=\"$P\" mysqladmin ping']":          false,
		"command: [sh, -c, 'MYSQL_PWD=$(cat /p) mysqladmin ping']":       false,
		"command: [sh, -c, 'MYSQL_PWD=`cat /p` mysqladmin ping']":        false,
		"command: [sh, -c, 'MYSQL_PWD= mysqladmin ping']":                false,
		"command: [ssh, -p2222, mysql]":                                  false,
		"command: [/bin/mysqld_exporter, -port=3306]":                    false,
	} {
		found := inspected(t, job+fields+"}]}}}}\n", Known{}).Findings
		if got := has(found, "clear-secret", ""); got != want {
			t.Errorf("%s: %v, want %v: %+v", fields, got, want, found)
		}
		if has(found, "volumes", "") {
			t.Errorf("%s: a dump counts as a server", fields)
		}
	}
}

// TestCheckKnowsKubernetesKinds holds versions and kinds of Kubernetes' own groups, and what it asks of them.
func TestCheckKnowsKubernetesKinds(t *testing.T) {
	const template = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: nginx}]}}"
	for text, path := range map[string]string{
		"apiVersion: apps/v1beta1\nkind: Deployment\nspec: {" + template + "}": "apiVersion",
		"apiVersion: v1\nkind: Foo":                                                                                                      "apiVersion",
		"apiVersion: extensions/v1beta1\nkind: Ingress":                                                                                  "apiVersion",
		"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget":                                                                          "apiVersion",
		"apiVersion: networking.k8s.io/v1beta1\nkind: Ingress":                                                                           "apiVersion",
		"apiVersion: storage.k8s.io/v1\nkind: StorageKlass":                                                                              "apiVersion",
		"apiVersion: a/b/c\nkind: Foo":                                                                                                   "apiVersion",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {" + template + "}":                                                                "spec.selector",
		"apiVersion: v1\nkind: Service\nspec: {type: Foo}":                                                                               "spec.type",
		"apiVersion: v1\nkind: Pod\nspec: {containers: []}":                                                                              "spec.containers",
		"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: a\nreclaimPolicy: Keep":                                         "reclaimPolicy",
		"apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot":                                                                   "",
		"apiVersion: storage.k8s.io/v1beta1\nkind: VolumeAttributesClass":                                                                "",
		"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim":                                                                            "",
		"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nspec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: a}}": "",
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]":                  "",
		"apiVersion: v1\nkind: Service\nspec: {type: NodePort, ports: [{port: 1}]}":                                                      "",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchLabels: {a: b}}, " + template + "}":                               "",
	} {
		found := inspected(t, text+"\nmetadata: {name: a}\n", Known{}).Findings
		if path == "" && has(found, "schema", "") || path != "" && !has(found, "schema", path) {
			t.Errorf("%s: want %q, found %+v", text, path, found)
		}
	}
}

// TestIsSecret tells secrets from settings that are named like them.
func TestIsSecret(t *testing.T) {
	for text, want := range map[string]bool{"report_password=a": true, "loose_master_password=a": true, "wsrep_sst_auth=a:b": true, "authentication_ldap_simple_bind_root_pwd=x": true,
		"wsrep_provider_options=socket.ssl_key_password=x": true, "report_password=": false, "innodb_ft_min_token_size=2": false, "validate_password=ON": false,
		"mysql_native_password=ON": false, "password_history=5": false, "max_connections=5": false} {
		name, value, _ := strings.Cut(text, "=")
		if got := IsSecret(mycnf.Setting{Name: name, Value: value}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestNoPassword: variables that ask for a password to be made up hold none.
func TestNoPassword(t *testing.T) {
	for name, want := range map[string]bool{"MYSQL_RANDOM_ROOT_PASSWORD": false, "MARIADB_RANDOM_ROOT_PASSWORD": false, "MYSQL_ONETIME_PASSWORD": false, "MYSQL_ROOT_PASSWORD": true} {
		if hasPassword(name, "yes") != want {
			t.Errorf("%s is a password: %v, want %v", name, !want, want)
		}
	}
}

// setText writes a StatefulSet of one server with an option file and a Service; each part may be changed.
func setText(cnf, key, mount, container, pod, ports string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
        - name: mysql
          image: mysql:8.4
          %s
          volumeMounts: [{name: data, mountPath: /var/lib/mysql}, {name: conf, %s}]
      volumes: [{name: conf, configMap: {name: db}}]
      %s
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [%s]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
data:
  %s: |
    %s
`, container, mount, pod, ports, key, strings.ReplaceAll(cnf, "\n", "\n    "))
}

// TestCheckSeesReplication: servers that a sidecar, a script or the image's variables make replicate are not
// called lonely; those of a Deployment share a volume all the same.
func TestCheckSeesReplication(t *testing.T) {
	// As in Kubernetes' tutorial "Run a Replicated Stateful Application".
	const sidecar = "        - name: xtrabackup\n          image: xtrabackup:1.0\n          command: [bash, -c, 'mysql -h 127.0.0.1 -e \"$(<change_master_to.sql.in), MASTER_HOST=mysql-0.mysql; START SLAVE;\"']\n"
	alone := strings.Replace(setText("[mysqld]\nlog-bin", "my.cnf", "mountPath: /etc/mysql/conf.d", "", "", "{port: 3306}"), "  serviceName", "  replicas: 3\n  serviceName", 1)
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"alone":      {alone, true},
		"sidecar":    {strings.Replace(alone, "      volumes: [", sidecar+"      volumes: [", 1), false},
		"script":     {alone + "  init.sql: CHANGE REPLICATION SOURCE TO SOURCE_HOST='a';\n", false},
		"Galera":     {strings.Replace(alone, "log-bin", "wsrep_cluster_address=gcomm://a", 1), false},
		"variables":  {strings.Replace(alone, "image: mysql:8.4", "image: mariadb:11.4\n          env: [{name: MARIADB_REPLICATION_USER, value: r}]", 1), false},
		"Deployment": {strings.Replace(strings.Replace(alone, "log-bin", "wsrep_cluster_address=gcomm://a", 1), "kind: StatefulSet", "kind: Deployment", 1), true},
	} {
		found := inspected(t, test.text, Known{}).Findings
		if got := slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "no-replication" }); got != test.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, test.want, found)
		}
	}
}

// TestCheckCountsThePod holds requests and limits of a pod as a whole against the class that Kubernetes gives
// it, and the memory of its server.
func TestCheckCountsThePod(t *testing.T) {
	const cnf = "args: [--innodb-buffer-pool-size=4G]\n"
	for pod, want := range map[string]string{
		"{limits: {cpu: 2, memory: 16Gi}, requests: {cpu: 2, memory: 16Gi}}": "",
		"{limits: {cpu: 2500m, memory: 16Gi}}":                               "",
		"{limits: {cpu: 2, memory: 16Gi}, requests: {cpu: 1}}":               "warning qos",
		"{limits: {memory: 16Gi}}":                                           "warning qos",
		"{limits: {cpu: 2}}":                                                 "error memory",
		"{limits: {cpu: 2, memory: 2Gi}}":                                    "error memory",
		"{}":                                                                 "error memory, error qos",
	} {
		text := podText("image: mysql:8.4\n"+cnf+"volumeMounts: [{name: d, mountPath: /var/lib/mysql}]") + "    - {name: b, image: busybox}\n  resources: " + pod + "\n  volumes: [{name: d, persistentVolumeClaim: {claimName: d}}]\n"
		var got []string
		for _, f := range inspected(t, text, Known{}).Findings {
			if f.Rule == "qos" || f.Rule == "memory" {
				got = append(got, fmt.Sprintf("%s %s", f.Severity, f.Rule))
			}
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", pod, got, want)
		}
	}
}
