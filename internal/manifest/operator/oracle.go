package operator

import (
	"slices"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

func oracle() managed {
	return managed{
		server: mycnf.MySQL, longest: 40, versions: []string{"8.0", "8.4", "9.0", "9.1", "9.2", "9.3", "9.4", "9.5", "9.6", "9.7"},
		deaf: map[string]string{"image": "the operator takes its own, by --server and its version"},
		modes: []replication{
			{name: HAGroupReplication, replicas: 3, least: 3, most: 9, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by group replication with one primary. A COMMIT returns when a majority has received and certified the " +
					"transaction; the others apply it a moment later. With 3 servers one may be lost without losing a commit.\n" +
					"Not replicated: tables of other engines, SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: a group of one server, no copy of its data."),
		},
		taken: replicationNames(because("the operator sets it for its group", "group_replication_group_name", "group_replication_local_address",
			"group_replication_group_seeds", "group_replication_start_on_boot", "local_infile", "log_error_verbosity", "skip_log_error")),
		forced: []mycnf.Setting{instrumented("MySQL Shell, with which the operator makes the cluster, refuses servers without the performance schema")},
		undone: func(render.Request) []mycnf.Setting { return nil },
		render: renderOracle,
	}
}

func renderOracle(d deployment) ([]render.Object, error) {
	if d.Version.Patch == mycnf.LastOfSeries { // whichever that is today
		return nil, render.Bad("flavour oracle needs the whole version of the server, as --server mysql:8.4.6; %s is a series", d.Version)
	}
	cnf, err := d.cnf()
	if err != nil {
		return nil, err
	}
	labels := map[string]any{"mysql.oracle.com/cluster": d.Name, "component": "mysqld"}
	claim := d.claim()
	beside := func(names ...string) (list []any) {
		for _, n := range names {
			list = append(list, map[string]any{"name": n, "resources": equal("250m", "512Mi")})
		}
		return list
	}
	containers := slices.Concat([]any{map[string]any{"name": "mysql", "resources": d.guaranteed()}}, beside("sidecar"))
	spec := map[string]any{
		"secretName": d.SecretName(), "instances": d.Replicas, "version": d.Version.String(), "edition": "community",
		"tlsUseSelfSigned": true, "mycnf": cnf,
		"datadirVolumeClaimTemplate": claim,
		"datadirPermissions":         map[string]any{"setRightsUsingInitContainer": false, "fsGroupChangePolicy": "OnRootMismatch"},
		"router":                     map[string]any{"instances": min(2, d.Replicas)},
		"service":                    map[string]any{"type": d.serviceType()},
		"podSpec": map[string]any{
			"terminationGracePeriodSeconds": 60 + d.graceSeconds(), "affinity": apart(labels), "topologySpreadConstraints": spread(labels),
			"containers": containers, "initContainers": append(beside("initconf"), map[string]any{"name": "initmysql", "resources": d.guaranteed()}),
		},
	}
	reasons := map[string]string{
		"spec.secretName":                            "rootUser, rootHost and rootPassword",
		"spec.tlsUseSelfSigned":                      "connections are encrypted; for checked certificates give tlsSecretName and tlsCASecretName instead",
		"spec.mycnf":                                 whyCnf,
		"spec.instances":                             "an odd number: a majority decides who goes on",
		"spec.version":                               "the server stays the version that was measured",
		"spec.datadirVolumeClaimTemplate":            whySize,
		"spec.datadirPermissions":                    "files of a large volume change their owner only where the folder's is wrong; no container runs as root for it",
		"spec.router":                                "sends writes to the primary; what it costs is measured by david bench through this Service and past it",
		"spec.podSpec.initContainers[1].resources":   "the server's: it initialises the data directory with the same lines, the whole buffer pool among them",
		"spec.podSpec.terminationGracePeriodSeconds": "the operator waits 60 s before it shuts the server down. " + whyGrace,
		"spec.podSpec.affinity":                      whyApart,
		"spec.podSpec.topologySpreadConstraints":     whyZones,
		"spec.podSpec.containers[0].resources":       whyGuaranteed,
		"spec.podSpec.containers[1].resources":       whyAside,
		"spec.podSpec.initContainers":                whyAside + ". The operator's probes are left alone: its start-up probe lasts over 8 hours, its liveness pings without a query",
	}
	d.annotated(spec, "podAnnotations", "spec.podAnnotations", reasons)
	d.inHost(spec["podSpec"].(map[string]any), "spec.podSpec", reasons)
	if d.mode.name == render.HANone {
		reasons["spec.instances"] = "one server: nothing is replicated"
	}
	cr := d.custom("mysql.oracle.com/v2", "InnoDBCluster", "innodbcluster.yaml", spec, reasons)
	return d.with(cr), nil
}
