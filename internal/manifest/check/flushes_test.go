package check

import (
	"fmt"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// database is a server on a volume of the class fast, with whatever stands in its pod besides.
func database(pod string) string {
	return `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: d}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
        - name: server
          image: mysql:8.4
          volumeMounts: [{name: data, mountPath: /var/lib/mysql}]
` + pod + `
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`
}

// TestFlushesLeftOut: what is under a database, or is done to it, and leaves out flushes is named; what only
// looks so is not.
func TestFlushesLeftOut(t *testing.T) {
	const class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: x\nallowVolumeExpansion: true\n"
	const volume = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec:\n  storageClassName: fast\n  capacity: {storage: 10Gi}\n  accessModes: [ReadWriteOnce]\n  "
	initially := func(command string) string {
		return database("      initContainers: [{name: i, image: x, command: " + command + "}]")
	}
	for name, c := range map[string]struct {
		text string
		want Severity // "": nothing is found
	}{
		"a sound class":                {database("") + class + "mountOptions: [noatime, barrier=1]\nparameters: {recordsize: 16k, sync: always, logbias: latency}\n", ""},
		"a mount option":               {database("") + class + "mountOptions: [noatime, nobarrier]\n", SeverityError},
		"one of several in a text":     {database("") + class + "mountOptions: [\"noatime,barrier=0\"]\n", SeverityError},
		"of a class nobody uses":       {strings.ReplaceAll(database("")+class+"mountOptions: [nobarrier]\n", "name: fast", "name: other"), SeverityWarning},
		"a ZFS parameter":              {database("") + class + "parameters: {sync: disabled}\n", SeverityError},
		"a driver's ZFS parameter":     {database("") + class + "parameters: {zfs.csi.example/sync: Disabled}\n", SeverityError},
		"ZFS without its log":          {database("") + class + "parameters: {logbias: throughput}\n", SeverityWarning},
		"mount options of a driver":    {database("") + class + "parameters: {mountOptions: \"discard,nobarrier\"}\n", SeverityError},
		"a filesystem in memory":       {database("") + class + "parameters: {csi.storage.k8s.io/fstype: tmpfs}\n", SeverityError},
		"a hypervisor's cache":         {database("") + class + "parameters: {cache: unsafe}\n", SeverityError},
		"a hypervisor without cache":   {database("") + class + "parameters: {cache: none}\n", ""},
		"a class of attributes":        {database("") + "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: a}\ndriverName: x\nparameters: {sync: disabled}\n", SeverityWarning},
		"a volume's mount option":      {database("") + volume + "hostPath: {path: /srv}\n  mountOptions: [barrier=none]\n", SeverityError},
		"a volume's annotation":        {strings.Replace(database("")+volume+"hostPath: {path: /srv}\n", "{name: v}", "{name: v, annotations: {volume.beta.kubernetes.io/mount-options: \"ro,nobarrier\"}}", 1), SeverityError},
		"a volume's attribute":         {database("") + volume + "csi: {driver: x, volumeHandle: h, volumeAttributes: {sync: disabled}}\n", SeverityError},
		"a volume in memory":           {database("") + volume + "local: {path: /dev/shm/mysql}\n", SeverityError},
		"a volume that is no memory":   {database("") + volume + "local: {path: /dev/shmem}\n", ""},
		"a folder in memory":           {strings.Replace(database("      volumes: [{name: data, hostPath: {path: /run/mysql}}]"), "volumeClaimTemplates", "x", 1), SeverityError},
		"an inline volume":             {strings.Replace(database("      volumes: [{name: data, csi: {driver: x, volumeAttributes: {sync: disabled}}}]"), "volumeClaimTemplates", "x", 1), SeverityError},
		"an emptyDir in memory":        {strings.Replace(database("      volumes: [{name: data, emptyDir: {medium: Memory}}]"), "volumeClaimTemplates", "x", 1), SeverityError},
		"a property set":               {initially(`[zfs, set, sync=disabled, pool/mysql]`), SeverityError},
		"a property set by a shell":    {initially(`[sh, -c, "chroot /host zfs set -u sync=disabled pool/mysql"]`), SeverityError},
		"a property of a new dataset":  {initially(`["zfs", "create", "-o", "recordsize=16k", "-o", "sync=disabled", "pool/mysql"]`), SeverityError},
		"a log that is passed by":      {initially(`[sh, -c, "zfs set logbias=throughput pool/mysql"]`), SeverityError},
		"a property in one word":       {initially(`[sh, -c, "zfs create -osync=disabled pool/mysql"]`), SeverityError},
		"one of many properties":       {initially(`[sh, -c, "zfs create -o recordsize=16k -o compression=lz4 -o atime=off -o xattr=sa -o primarycache=metadata -o redundant_metadata=most -o mountpoint=/var/lib/mysql -o acltype=posixacl -o quota=1T -o sync=disabled p/m"]`), SeverityError},
		"a line that goes on":          {initially(`[sh, -c, "mount \\\n  -o noatime,nobarrier /dev/sdb /data"]`), SeverityError},
		"a long option":                {initially(`[mount, "--options=noatime,barrier=0", /dev/sdb, /data]`), SeverityError},
		"a mount, and another line":    {initially(`[sh, -c, "mount /dev/sdb /data\necho nobarrier is not meant, nor volatile"]`), ""},
		"a library for all":            {initially(`[sh, -c, "echo /usr/lib/libnosync.so >> /host/etc/ld.so.preload"]`), SeverityError},
		"a property read":              {initially(`[sh, -c, "zfs get sync pool/mysql; echo not sync=disabled"]`), ""},
		"a remount":                    {initially(`[sh, -c, "mount -o remount,nobarrier /data"]`), SeverityError},
		"a sound remount":              {initially(`[sh, -c, "mount -o remount,noatime /data"]`), ""},
		"a disk's cache denied":        {initially(`[sh, -c, "echo 'write through' > /sys/block/sda/queue/write_cache"]`), SeverityError},
		"a module's parameter":         {initially(`[sh, -c, "echo 1 > /sys/module/zfs/parameters/zfs_nocacheflush"]`), SeverityError},
		"a library under the server":   {strings.Replace(database(""), "image: mysql:8.4", "image: mysql:8.4\n          env: [{name: LD_PRELOAD, value: /usr/lib/libeatmydata.so}]", 1), SeverityError},
		"a library named by a command": {strings.Replace(database(""), "image: mysql:8.4", "image: mysql:8.4\n          command: [eatmydata, mysqld]", 1), SeverityError},
		"another library":              {strings.Replace(database(""), "image: mysql:8.4", "image: mysql:8.4\n          env: [{name: LD_PRELOAD, value: /usr/lib/libjemalloc.so}]", 1), ""},
		"a script":                     {database("") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {up.sh: \"zfs set sync=disabled p\\n\"}\n", SeverityWarning},
	} {
		docs, problems := Read(name, []byte(c.text))
		result, err := Inspect(docs, Known{})
		if err != nil || len(problems) > 0 {
			t.Fatal(name, err, problems)
		}
		got := Severity("")
		for _, f := range result.Findings {
			if f.Rule == "flushes-left-out" || f.Rule == "volumes" && strings.Contains(f.Why, "emptyDir") {
				got = f.Severity
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, result.Findings)
		}
	}
}

// TestCheckReadsAsTheServer: a line counts as the pod's own server reads it, wherever it stands.
func TestCheckReadsAsTheServer(t *testing.T) {
	shown := func(image, volume, kind, data string) string {
		return strings.Replace(strings.Replace(database("      volumes: [{name: cnf, "+volume+"}]"), "mysql:8.4", image, 1), "volumeMounts: [", "volumeMounts: [{name: cnf, mountPath: /etc/mysql/conf.d}, ", 1) +
			"---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: cnf, namespace: d}\n" + data + "\n"
	}
	config := func(image, field, text string) string {
		return shown(image, "configMap: {name: cnf}", "ConfigMap", field+": {my.cnf: "+text+"}")
	}
	secret := func(data string) string { return shown("mysql:9.7", "secret: {secretName: cnf}", "Secret", data) }
	projected := func(sources, kind, data string) string {
		return shown("mysql:9.7", "projected: {sources: ["+sources+"]}", kind, data)
	}
	const unsafe, safe = "W215c3FsZF0Kc3luY19iaW5sb2c9MAo=", "W215c3FsZF0Kc3luY19iaW5sb2c9MQo=" // sync_binlog=0, sync_binlog=1
	args := func(image, list string) string {
		return strings.Replace(database(""), "image: mysql:8.4", "image: "+image+"\n          args: ["+list+"]", 1)
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a key and a dot":                   {config("mariadb:10.11", "data", `"[mysqld]\nhot.innodb_force_recovery=6\n"`), true},
		"a key and a dot, another server":   {config("mysql:9.7", "data", `"[mysqld]\nhot.innodb_force_recovery=6\n"`), false}, // does not start with it
		"capitals, and a word like a 1":     {config("mariadb:10.11", "data", `"[mysqld]\nDEBUG-NO_SYNC=1e-9\n"`), true},
		"a word that is no switch":          {config("mariadb:10.11", "data", `"[mysqld]\ninnodb_doublewrite=no\n"`), false},
		"the same to another server":        {config("mysql:8.0", "data", `"[mysqld]\ninnodb_doublewrite=0\n"`), true},
		"bytes":                             {config("mysql:9.7", "binaryData", "W215c3FsZF0KoHN5bmNfYmlubG9nPTAK"), true}, // a blank of latin1 before sync_binlog=0
		"bytes that are safe":               {config("mysql:9.7", "binaryData", "W215c3FsZF0Kc3luY19iaW5sb2c9MQo="), false},
		"a Secret":                          {secret("data: {my.cnf: " + unsafe + "}"), true},
		"a Secret that is safe":             {secret("data: {my.cnf: " + safe + "}"), false},
		"a Secret line by line":             {secret("stringData:\n  my.cnf: |\n    [mysqld]\n    sync_binlog=0\n"), true},
		"a Secret's text over its data":     {secret("data: {my.cnf: " + unsafe + "}\nstringData: {my.cnf: \"[mysqld]\\nsync_binlog=1\\n\"}"), false},
		"a Secret's data under its text":    {secret("data: {my.cnf: " + safe + "}\nstringData: {my.cnf: \"[mysqld]\\nsync_binlog=0\\n\"}"), true},
		"a projected ConfigMap":             {projected("{configMap: {name: cnf}}", "ConfigMap", `data: {my.cnf: "[mysqld]\nsync_binlog=0\n"}`), true},
		"a projected Secret":                {projected("{serviceAccountToken: {path: t}}, {secret: {name: cnf, items: [{key: a, path: z.cnf}]}}", "Secret", "data: {a: "+unsafe+", my.cnf: "+safe+"}"), true},
		"what a projection leaves out":      {projected("{secret: {name: cnf, items: [{key: a, path: z.cnf}]}}", "Secret", "data: {my.cnf: "+unsafe+", a: "+safe+"}"), false},
		"a skip":                            {config("mysql:9.7", "data", `"[mysqld]\nskip-innodb-doublewrite\n"`), true},
		"an argument with a key":            {args("mariadb:10.11", "--x.innodb-flush-method=nosync"), true},
		"an argument that skips":            {args("mysql:9.7", "--skip-innodb-doublewrite"), true},
		"an argument after one":             {args("mysql:9.7", "--sync-binlog, '0'"), true},
		"an argument that takes an option":  {args("mysql:9.7", "--sync-binlog, --max-connections=9"), true},
		"an argument that is taken":         {args("mysql:9.7", "--sync-binlog=0, --max-connections, --sync-binlog=1"), true},
		"an argument that is safe":          {args("mysql:9.7", "--sync-binlog=1"), false},
		"an argument over a file":           {strings.Replace(config("mysql:9.7", "data", `"[mysqld]\nsync_binlog=0\n"`), "image: mysql:9.7", "image: mysql:9.7\n          args: [--sync-binlog=1]", 1), false},
		"a shortened argument of MariaDB's": {args("mariadb:10.11", "--innodb-flush-log-at-trx=2"), true},
	} {
		docs, problems := Read(name, []byte(c.text))
		result, err := Inspect(docs, Known{})
		if err != nil || len(problems) > 0 {
			t.Fatal(name, err, problems)
		}
		got := false
		for _, f := range result.Findings {
			got = got || f.Rule == "durability" && f.Severity == SeverityError && f.Line > 0
		}
		if got != c.want {
			t.Errorf("%s: %v: %+v", name, got, result.Findings)
		}
	}
}

// TestFlushesOfAClustersClass: a class that only the cluster has is judged as one of the stream, at the claim
// that names it.
func TestFlushesOfAClustersClass(t *testing.T) {
	docs, problems := Read("db.yaml", []byte(database("")))
	uses := Classes(docs)
	if len(problems) > 0 || len(uses) != 1 {
		t.Fatal(problems, uses)
	}
	class := &storagev1.StorageClass{MountOptions: []string{"noatime"}, Parameters: map[string]string{"recordsize": "16k"}}
	if found, err := uses[0].Flushes(class); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	class.MountOptions = append(class.MountOptions, "nobarrier")
	class.Parameters["sync"] = "disabled"
	found, err := uses[0].Flushes(class)
	if err != nil || len(found) != 2 || found[0].Line == 0 || !strings.HasPrefix(found[0].Why, "StorageClass fast of the cluster: nobarrier") || found[1].File != "db.yaml" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestUnseenOptionFiles: what the server's option files may stand in, and the stream does not hold, is named;
// Secrets with keys are not.
func TestUnseenOptionFiles(t *testing.T) {
	for volume, want := range map[string]bool{
		"mountPath: /etc/mysql/conf.d}; secret: {secretName: x}":                                      true,
		"mountPath: /etc/mysql/conf.d}; projected: {sources: [{secret: {name: x}}]}":                  true,
		"mountPath: /etc/my.cnf, subPath: a}; secret: {secretName: x}":                                true,
		"mountPath: /x}; projected: {sources: [{secret: {name: x, items: [{key: a, path: a.cnf}]}}]}": true,
		"mountPath: /etc/tls}; secret: {secretName: x}":                                               false,
		"mountPath: /etc/mysql/conf.d}; emptyDir: {}":                                                 false,
	} {
		mount, source, _ := strings.Cut(volume, "; ")
		text := strings.Replace(database("      volumes: [{name: v, "+source+"}]"), "volumeMounts: [", "volumeMounts: [{name: v, "+mount+", ", 1)
		got := strings.Contains(strings.Join(inspected(t, text, Known{}).Unseen, "\n"), "the my.cnf of StatefulSet d/db: Secret x is not in the stream")
		if got != want {
			t.Errorf("%s: %v: %v", volume, got, inspected(t, text, Known{}).Unseen)
		}
	}
}

// TestSecretIsNotQuoted: a script in a Secret that switches flushes off is found, and nothing beside it is shown.
func TestSecretIsNotQuoted(t *testing.T) {
	for kind, shown := range map[string]bool{"ConfigMap": true, "Secret": false} {
		text := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: c}\n" + map[bool]string{true: "data", false: "stringData"}[shown] + ": {up.sh: \"zfs set sync=disabled p hunter2\\n\"}\n"
		docs, _ := Read("x.yaml", []byte(database("")+"---\n"+text))
		result, err := Inspect(docs, Known{})
		if err != nil {
			t.Fatal(err)
		}
		found := fmt.Sprintf("%+v", result.Findings)
		if !strings.Contains(found, "flushes-left-out") || strings.Contains(found, "hunter2") != shown {
			t.Errorf("%s: %s", kind, found)
		}
	}
}
