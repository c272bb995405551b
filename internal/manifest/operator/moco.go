package operator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

func moco() managed {
	return managed{
		server: mycnf.MySQL, longest: 40, versions: []string{"8.0", "8.4"},
		deaf: map[string]string{"secret": "moco makes all passwords itself"},
		modes: []replication{
			{name: HASemiSync, replicas: 3, least: 3, most: 9, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by semi-synchronous replication from one primary. A COMMIT returns when half of the replicas have the " +
					"transaction in their relay log; they apply it later, so a read there may be late. With 3 servers one may be lost without losing a commit.\n" +
					"Not replicated: SET GLOBAL, logs; tables of other engines are refused. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: one server, no copy of its data."),
		},
		taken: replicationNames(because("moco sets it and lets nobody change it", "skip_name_resolve", "secure_file_priv", "slow_query_log_file",
			"replication_optimize_for_static_plugin_config", "replication_sender_observe_commit_only", "rpl_semi_sync_source_enabled",
			"rpl_semi_sync_replica_enabled", "log_error", "disabled_storage_engines", "default_storage_engine")),
		forced: []mycnf.Setting{instrumented("moco reads how far a copy has come from the performance schema")},
		undone: mocoDefaults,
		render: renderMoco,
	}
}

// mocoDefaults put back the server's defaults, with which the tune was measured, where moco has others of
// consequence.
func mocoDefaults(req render.Request) []mycnf.Setting {
	const source = "moco's source, pkg/mycnf/generator.go"
	adaptive := "ON"
	if req.Version.AtLeast(8, 4, 0) {
		adaptive = "OFF"
	}
	s := func(group, name, value, reason string) mycnf.Setting {
		return mycnf.Setting{Name: name, Value: value, Group: group, Reason: reason, Source: source}
	}
	return []mycnf.Setting{
		s("tables", "table_open_cache", "4000", "moco's 65536 takes memory that the pool was given"),
		s("tables", "table_definition_cache", "2000", "moco's 65536 takes memory that the pool was given"),
		s("memory", "sort_buffer_size", "256K", "the server's default, for which the pool leaves room; moco gives every connection 4M"),
		s("memory", "join_buffer_size", "256K", "the server's default, for which the pool leaves room; moco gives every connection 2M"),
		s("durability", "transaction_isolation", "REPEATABLE-READ", "the server's default, with which the tune was measured; moco has READ-COMMITTED"),
		s("binlog", "binlog_transaction_compression", "OFF", "the server's default: compression costs the CPU of every commit; moco turns it on"),
		s("concurrency", "innodb_adaptive_hash_index", adaptive, "the server's default, with which the tune was measured; moco turns it on"),
		s("redo", "innodb_log_write_ahead_size", "8192", "the server's default; moco's 512 makes the kernel read a page before each write of less than one"),
	}
}

func renderMoco(d deployment) ([]render.Object, error) {
	if d.Image == "" {
		return nil, render.Bad("flavour moco needs --image: a build of mysqld for moco, which its documentation names")
	}
	labels := map[string]any{"app.kubernetes.io/name": "mysql", "app.kubernetes.io/instance": d.Name}
	template := map[string]any{
		"affinity": apart(labels), "topologySpreadConstraints": spread(labels), "terminationGracePeriodSeconds": d.graceSeconds(),
		"securityContext": map[string]any{"fsGroup": 10000, "fsGroupChangePolicy": "OnRootMismatch"},
		"containers":      []any{map[string]any{"name": "mysqld", "image": d.Image, "resources": d.guaranteed()}},
	}
	spec := map[string]any{
		"replicas": d.Replicas, "mysqlConfigMapName": d.Name + "-cnf", "startupWaitSeconds": max(3600, d.startSeconds()),
		"podTemplate":            map[string]any{"spec": template},
		"primaryServiceTemplate": map[string]any{"spec": map[string]any{"type": d.serviceType()}},
		"volumeClaimTemplates":   []any{map[string]any{"metadata": map[string]any{"name": "mysql-data"}, "spec": d.claim()}},
	}
	reasons := map[string]string{
		"spec.replicas":                                       "an odd number: a majority has every commit",
		"spec.mysqlConfigMapName":                             "david's lines; moco merges them over its own and restarts the servers, one by one, where they change",
		"spec.startupWaitSeconds":                             d.startReason() + "; moco's hour is kept where it is more",
		"spec.podTemplate.spec.affinity":                      whyApart + "; moco only prefers it",
		"spec.podTemplate.spec.containers[0]":                 whyGuaranteed + ". moco's own containers have equal requests and limits already; its probes ask its agent, which outlasts a busy server",
		"spec.podTemplate.spec.securityContext":               "moco's own group; files of a large volume change their owner only where the folder's is wrong",
		"spec.volumeClaimTemplates[0]":                        whySize,
		"spec.podTemplate.spec.terminationGracePeriodSeconds": whyGrace,
		"spec.podTemplate.spec.topologySpreadConstraints":     whyZones,
	}
	metadata := map[string]any{}
	if d.annotated(metadata, "annotations", "spec.podTemplate.metadata.annotations", reasons); len(metadata) > 0 {
		spec["podTemplate"].(map[string]any)["metadata"] = metadata
	}
	d.inHost(template, "spec.podTemplate.spec", reasons)
	if d.mode.name == render.HANone {
		reasons["spec.replicas"] = "one server: nothing is replicated"
	}
	config, err := d.mocoConfig()
	if err != nil {
		return nil, err
	}
	cr := d.custom("moco.cybozu.com/v1beta2", "MySQLCluster", "mysqlcluster.yaml", spec, reasons)
	cr.Reasons[""] += "\nmoco makes all passwords itself: kubectl moco credential shows them, and a Secret given to david is not used."
	return d.with(config, cr), nil
}

// mocoConfig makes the ConfigMap of moco's form: one key for each variable.
func (d deployment) mocoConfig() (render.Object, error) {
	data, reasons := map[string]any{}, map[string]string{}
	for _, s := range d.settings {
		data[s.Name] = s.Value
		reasons[fmt.Sprintf("data[%q]", s.Name)] = why(s)
	}
	head := "david's lines for mysqld, one variable a key, as moco wants them."
	for _, line := range append(slices.Clone(d.Head), leftOut(d.left)...) {
		head += "\n" + line
	}
	reasons[""] = head
	maps.DeleteFunc(reasons, func(_, text string) bool { return text == "" })
	return render.Object{File: "configmap.yaml", Reasons: reasons, Value: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": d.customMeta(d.Name+"-cnf", nil), "data": data}}, nil
}

// why tells a setting's reason with its source and measured effect.
func why(s mycnf.Setting) string {
	text := s.Reason
	if s.Source != "" {
		text += "\nsource: " + s.Source
	}
	if s.Effect != "" {
		text += "\nmeasured: " + s.Effect
	}
	return text
}

// leftOut makes comment lines that name what the operator does not take.
func leftOut(left []string) []string {
	if len(left) == 0 {
		return nil
	}
	return append([]string{"Left out:"}, left...)
}

// plainNumber writes a size without a unit: some mechanisms take numbers only.
func plainNumber(s mycnf.Setting) string {
	if n, err := mycnf.ParseSize(s.Value); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return s.Value
}
