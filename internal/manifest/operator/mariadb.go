package operator

import (
	"david/internal/manifest/render"
	"david/internal/mycnf"
)

// mariadbInit says what david cannot give: the definition wants the image with the resources, and which one
// is the operator's to say.
const mariadbInit = ". The operator's init container has none of its own: give initContainer its image with equal requests and limits, or the pod is Burstable"

func mariadbOperator() managed {
	return managed{
		server: mycnf.MariaDB, longest: 45, versions: []string{"10.6", "10.11", "11.4", "11.8", "12.1", "12.2"},
		modes: []replication{
			{name: HAGalera, replicas: 3, least: 3, most: 9, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by Galera. A COMMIT returns when every server has received and certified the transaction " +
					"(a conflict with another server fails it there); the others apply it a moment later, so a read elsewhere may be late unless wsrep_sync_wait is set. " +
					"With 3 servers one may be lost.\n" +
					"Not replicated: tables of other engines, SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			{name: HASemiSync, replicas: 2, least: 2, most: 9,
				says: "Replicated: all tables and all DDL, by semi-synchronous replication from one primary. A COMMIT returns when one replica has the transaction in its relay log; " +
					"when none answers within the timeout the primary goes on alone, and what it commits then can be lost with it.\n" +
					"Not replicated: SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: one server, no copy of its data."),
		},
		taken: replicationNames(because("the operator sets it for its replication", "log_basename", "gtid_strict_mode", "gtid_domain_id", "innodb_autoinc_lock_mode",
			"default_storage_engine", "rpl_semi_sync_master_enabled", "rpl_semi_sync_slave_enabled", "rpl_semi_sync_master_timeout", "rpl_semi_sync_master_wait_point",
			"wsrep_cluster_name", "wsrep_node_address", "wsrep_node_name", "wsrep_provider_options", "wsrep_slave_threads", "wsrep_sst_method")),
		undone: func(render.Request) []mycnf.Setting { return nil },
		deaf:   map[string]string{"host-network": noHostNetwork},
		render: renderMariaDB,
	}
}

func renderMariaDB(d deployment) ([]render.Object, error) {
	cnf, err := d.cnf()
	if err != nil {
		return nil, err
	}
	labels := map[string]any{"app.kubernetes.io/instance": d.Name, "app.kubernetes.io/name": "mariadb"}
	const period = 10
	spec := map[string]any{
		"image":                    d.ImageName(),
		"rootPasswordSecretKeyRef": map[string]any{"name": d.SecretName(), "key": "root-password", "generate": false},
		"myCnf":                    cnf, "replicas": d.Replicas, "resources": d.guaranteed(), "terminationGracePeriodSeconds": d.graceSeconds(),
		"storage":                   map[string]any{"volumeClaimTemplate": d.claim(), "size": render.Amount(d.Size)},
		"affinity":                  map[string]any{"antiAffinityEnabled": true},
		"topologySpreadConstraints": spread(labels),
		"podDisruptionBudget":       map[string]any{"maxUnavailable": 1},
		"startupProbe":              map[string]any{"periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": (d.startSeconds() + period - 1) / period},
		"livenessProbe":             map[string]any{"periodSeconds": 10, "timeoutSeconds": 30, "failureThreshold": 6},
		"podSecurityContext": map[string]any{"runAsUser": 999, "runAsGroup": 999, "runAsNonRoot": true, "fsGroup": 999, "fsGroupChangePolicy": "OnRootMismatch",
			"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}},
		"service":         map[string]any{"type": d.serviceType()},
	}
	reasons := map[string]string{
		"spec.rootPasswordSecretKeyRef":      "an existing Secret, by reference; the operator generates nothing",
		"spec.myCnf":                         whyCnf,
		"spec.replicas":                      "how many copies there are; Galera wants an odd number",
		"spec.resources":                     whyGuaranteed,
		"spec.storage":                       whySize,
		"spec.affinity":                      whyApart,
		"spec.startupProbe":                  d.startReason() + "; the operator's own gives a single server up after 50 s, in the middle of a recovery",
		"spec.livenessProbe":                 whyLiveness + "; the operator's own asks a query and waits 5 s",
		"spec.podSecurityContext":            "the image's own user, never root; files of a large volume change their owner only where the folder's is wrong",
		"spec.podDisruptionBudget":           whyBudget,
		"spec.securityContext":               "a server needs no privilege that it does not have at its start",
		"spec.topologySpreadConstraints":     whyZones,
		"spec.terminationGracePeriodSeconds": whyGrace,
	}
	switch d.mode.name {
	case HAGalera:
		spec["galera"] = map[string]any{"enabled": true, "sst": "mariabackup", "agent": map[string]any{"resources": small()},
			"primary": map[string]any{"autoFailover": true}}
		reasons["spec.galera.agent.resources"] = whyAside + mariadbInit
		reasons["spec.galera.sst"] = "a server that joins copies the data without locking the one it copies from"
		spec["primaryService"] = spec["service"]
	case HASemiSync:
		spec["replication"] = map[string]any{"enabled": true, "semiSyncEnabled": true, "semiSyncWaitPoint": "AfterSync", "syncBinlog": 1, "gtidStrictMode": true,
			"agent":   map[string]any{"resources": small()},
			"primary": map[string]any{"autoFailover": true}}
		reasons["spec.replication.semiSyncWaitPoint"] = "a commit is seen by others only when a replica has it: none that was seen is lost at a failover"
		reasons["spec.replication.syncBinlog"] = "of the durability lock: the binary log is on the disk when the commit returns"
		reasons["spec.replication.agent.resources"] = whyAside + mariadbInit
		spec["primaryService"] = spec["service"]
	default:
		reasons["spec.replicas"] = "one server: nothing is replicated"
	}
	metadata := map[string]any{}
	if d.annotated(metadata, "annotations", "spec.podMetadata.annotations", reasons); len(metadata) > 0 {
		spec["podMetadata"] = metadata
	}
	cr := d.custom("k8s.mariadb.com/v1alpha1", "MariaDB", "mariadb.yaml", spec, reasons)
	return d.with(cr), nil
}
