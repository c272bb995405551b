package operator

import (
	"david/internal/manifest/render"
	"david/internal/mycnf"
)

func perconaPXC() managed {
	return managed{
		server: mycnf.Percona, longest: 22, versions: []string{"8.0", "8.4"},
		deaf: map[string]string{"host-network": noHostNetwork},
		modes: []replication{
			{name: HAGalera, replicas: 3, least: 3, most: 5, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by Galera. A COMMIT returns when every server has received and certified the transaction " +
					"(a conflict with another server fails it there); the others apply it a moment later, so a read elsewhere may be late unless wsrep_sync_wait is set. " +
					"With 3 servers one may be lost.\n" +
					"Not replicated: tables of other engines, SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: one server, no copy of its data. The operator calls that unsafe."),
		},
		taken: replicationNames(because("the operator and Galera need their own value", "innodb_autoinc_lock_mode", "pxc_strict_mode",
			"pxc_encrypt_cluster_traffic", "default_storage_engine", "wsrep_cluster_name", "wsrep_node_address", "wsrep_node_incoming_address",
			"wsrep_sst_donor", "wsrep_sst_auth", "wsrep_sst_method", "admin_address")),
		undone: func(render.Request) []mycnf.Setting { return nil },
		render: renderPXC,
	}
}

func renderPXC(d deployment) ([]render.Object, error) {
	cnf, err := d.cnf()
	if err != nil {
		return nil, err
	}
	labels := map[string]any{"app.kubernetes.io/instance": d.Name, "app.kubernetes.io/component": "pxc"}
	image := d.Image
	if image == "" {
		image = map[int]string{0: "percona/percona-xtradb-cluster:8.0.41-32.1", 4: "percona/percona-xtradb-cluster:8.4.3-3.1"}[d.Version.Minor]
	}
	spec := map[string]any{
		"crVersion": "1.17.0", "secretsName": d.SecretName(), "updateStrategy": "SmartUpdate",
		"upgradeOptions": map[string]any{"apply": "disabled"},
		"initContainer":  map[string]any{"resources": small()},
		"pxc": map[string]any{
			"size": d.Replicas, "image": image, "autoRecovery": true, "configuration": cnf, "resources": d.guaranteed(), "gracePeriod": d.graceSeconds(),
			"affinity": map[string]any{"antiAffinityTopologyKey": "kubernetes.io/hostname"}, "topologySpreadConstraints": spread(labels),
			"podDisruptionBudget": map[string]any{"maxUnavailable": 1},
			"volumeSpec":          map[string]any{"persistentVolumeClaim": d.claim()},
			"livenessProbes":      map[string]any{"initialDelaySeconds": d.startSeconds(), "timeoutSeconds": 30, "periodSeconds": 10, "failureThreshold": 6},
			"podSecurityContext":  map[string]any{"fsGroup": 1001, "supplementalGroups": []any{1001}, "fsGroupChangePolicy": "OnRootMismatch"},
		},
		"haproxy":      map[string]any{"enabled": true, "size": 2, "image": "percona/haproxy:2.8.14", "resources": equal("1", "512Mi"), "exposePrimary": map[string]any{"enabled": true, "type": d.serviceType()}, "affinity": map[string]any{"antiAffinityTopologyKey": "kubernetes.io/hostname"}, "podDisruptionBudget": map[string]any{"maxUnavailable": 1}},
		"logcollector": map[string]any{"enabled": false},
	}
	reasons := map[string]string{
		"spec.crVersion":                     "the operator's release that this resource is written for",
		"spec.secretsName":                   "root's password; the operator adds those of its own accounts",
		"spec.upgradeOptions":                "the server stays the version that was measured",
		"spec.initContainer":                 whyAside,
		"spec.logcollector":                  "no second container beside the server: its CPU would come out of the server's node, and its resources would decide the pod's class",
		"spec.pxc.configuration":             whyCnf + "; innodb_buffer_pool_size and max_connections in it stop the operator from computing its own",
		"spec.pxc.resources":                 whyGuaranteed,
		"spec.pxc.gracePeriod":               whyGrace,
		"spec.pxc.affinity":                  whyApart,
		"spec.pxc.size":                      "an odd number, 3 at least: a majority decides who goes on",
		"spec.pxc.volumeSpec":                whySize,
		"spec.pxc.livenessProbes":            d.startReason() + "; the operator has no start-up probe. " + whyLiveness,
		"spec.pxc.podSecurityContext":        "the operator's own user; files of a large volume change their owner only where the folder's is wrong",
		"spec.haproxy":                       "sends all writes to one server, so that no two of them conflict at COMMIT; what it costs is measured by david bench through this Service and past it",
		"spec.pxc.podDisruptionBudget":       whyBudget,
		"spec.pxc.topologySpreadConstraints": whyZones,
	}
	d.annotated(spec["pxc"].(map[string]any), "annotations", "spec.pxc.annotations", reasons)
	if d.mode.name == render.HANone {
		spec["unsafeFlags"] = map[string]any{"pxcSize": true}
		reasons["spec.unsafeFlags"] = "the operator refuses fewer than 3 servers without it"
		reasons["spec.pxc.size"] = "one server: nothing is replicated"
	}
	cr := d.custom("pxc.percona.com/v1", "PerconaXtraDBCluster", "perconaxtradbcluster.yaml", spec, reasons)
	return d.with(cr), nil
}

func perconaPS() managed {
	return managed{
		server: mycnf.Percona, longest: render.MostName, versions: []string{"8.0", "8.4"},
		deaf: map[string]string{"host-network": noHostNetwork},
		modes: []replication{
			{name: HAGroupReplication, replicas: 3, least: 3, most: 7, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by group replication with one primary. A COMMIT returns when a majority has received and certified the " +
					"transaction; the others apply it a moment later. With 3 servers one may be lost without losing a commit.\n" +
					"Not replicated: tables of other engines, SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: one server, no copy of its data. The operator calls that unsafe."),
		},
		taken: replicationNames(because("the operator sets it for its group", "group_replication_group_name", "group_replication_local_address",
			"group_replication_group_seeds", "group_replication_start_on_boot", "group_replication_single_primary_mode", "binlog_checksum",
			"transaction_write_set_extraction", "disabled_storage_engines", "admin_address")),
		forced: []mycnf.Setting{instrumented("the operator reads the group's state from the performance schema")},
		undone: func(render.Request) []mycnf.Setting { return nil },
		render: renderPS,
	}
}

func renderPS(d deployment) ([]render.Object, error) {
	cnf, err := d.cnf()
	if err != nil {
		return nil, err
	}
	labels := map[string]any{"app.kubernetes.io/instance": d.Name, "app.kubernetes.io/component": "database"}
	image := d.Image
	if image == "" {
		image = map[int]string{0: "percona/percona-server:8.0.43-34.1", 4: "percona/percona-server:8.4.6-6.1"}[d.Version.Minor]
	}
	spec := map[string]any{
		"crVersion": "1.0.0", "secretsName": d.SecretName(), "updateStrategy": "SmartUpdate",
		"upgradeOptions": map[string]any{"apply": "disabled"},
		"initContainer":  map[string]any{"resources": small()},
		"mysql": map[string]any{
			"clusterType": "group-replication", "size": d.Replicas, "image": image, "autoRecovery": true, "configuration": cnf,
			"resources": d.guaranteed(), "gracePeriod": d.graceSeconds(),
			"affinity": map[string]any{"antiAffinityTopologyKey": "kubernetes.io/hostname"}, "topologySpreadConstraints": spread(labels),
			"podDisruptionBudget": map[string]any{"maxUnavailable": 1},
			"volumeSpec":          map[string]any{"persistentVolumeClaim": d.claim()},
			"livenessProbe":       map[string]any{"initialDelaySeconds": 15, "timeoutSeconds": 30, "periodSeconds": 10, "failureThreshold": 6},
			"podSecurityContext":  map[string]any{"fsGroup": 1001, "supplementalGroups": []any{1001}, "fsGroupChangePolicy": "OnRootMismatch"},
		},
		"proxy": map[string]any{"haproxy": map[string]any{"enabled": true, "size": 2, "image": "percona/haproxy:2.8.15", "resources": equal("1", "512Mi"),
			"affinity": map[string]any{"antiAffinityTopologyKey": "kubernetes.io/hostname"}, "expose": map[string]any{"type": d.serviceType()}}},
		"orchestrator": map[string]any{"enabled": false},
		"backup":       map[string]any{"enabled": false, "image": map[int]string{0: "percona/percona-xtrabackup:8.0.35-34.1", 4: "percona/percona-xtrabackup:8.4.0-4.1"}[d.Version.Minor]},
		"toolkit":      map[string]any{"image": "percona/percona-toolkit:3.7.0-2"},
	}
	reasons := map[string]string{
		"spec.crVersion":                       "the operator's release that this resource is written for",
		"spec.secretsName":                     "root's password; the operator adds those of its own accounts",
		"spec.upgradeOptions":                  "the server stays the version that was measured",
		"spec.initContainer":                   whyAside,
		"spec.backup":                          "without it no second container runs beside the server; its resources would decide the pod's class. Give it equal requests and limits where you turn it on",
		"spec.mysql.configuration":             whyCnf + "; innodb_buffer_pool_size and max_connections in it stop the operator from computing its own",
		"spec.mysql.resources":                 whyGuaranteed,
		"spec.mysql.gracePeriod":               whyGrace,
		"spec.mysql.affinity":                  whyApart,
		"spec.mysql.size":                      "an odd number, 3 at least: a majority decides who goes on",
		"spec.mysql.volumeSpec":                whySize,
		"spec.mysql.livenessProbe":             whyLiveness + ". The operator's start-up probe is left alone: it lasts 12 hours, since it joins the server to its group",
		"spec.mysql.podSecurityContext":        "the operator's own user; files of a large volume change their owner only where the folder's is wrong",
		"spec.mysql.podDisruptionBudget":       whyBudget,
		"spec.mysql.topologySpreadConstraints": whyZones,
		"spec.proxy.haproxy":                   "sends writes to the primary; what it costs is measured by david bench through this Service and past it",
		"spec.toolkit":                         "the operator wants the image named, though only asynchronous replication uses it",
	}
	d.annotated(spec["mysql"].(map[string]any), "annotations", "spec.mysql.annotations", reasons)
	if d.mode.name == render.HANone {
		spec["unsafeFlags"] = map[string]any{"mysqlSize": true}
		reasons["spec.unsafeFlags"] = "the operator refuses fewer than 3 servers without it"
		reasons["spec.mysql.size"] = "one server: nothing is replicated"
	}
	cr := d.custom("ps.percona.com/v1", "PerconaServerMySQL", "perconaservermysql.yaml", spec, reasons)
	return d.with(cr), nil
}
