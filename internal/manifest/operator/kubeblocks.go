package operator

import (
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

// kubeBlocksLeast bounds innodb_io_capacity_max, by KubeBlocks' schema.
const kubeBlocksLeast = 2000

// component names the servers' component in a Cluster of KubeBlocks.
const component = "mysql"

func kubeBlocks() managed {
	const fixed = "KubeBlocks fixes it when it makes the cluster and refuses a change"
	return managed{
		server: mycnf.MySQL, longest: 40, versions: []string{"8.0", "8.4"},
		deaf: map[string]string{"image": "the image is KubeBlocks' own, by the component definition", "host-network": noHostNetwork},
		modes: []replication{
			{name: HASemiSync, replicas: 2, least: 2, most: 9,
				says: "Replicated: all InnoDB tables and all DDL, from one primary by the replication of KubeBlocks' component definition mysql, semi-synchronous while a replica " +
					"answers and asynchronous when none does: then a commit that returned can be lost with the primary.\n" +
					"Not replicated: SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			{name: HAGroupReplication, replicas: 3, least: 3, most: 9, odd: true,
				says: "Replicated: all InnoDB tables and all DDL, by group replication with one primary (component definition mysql-mgr). A COMMIT returns when a majority has received and " +
					"certified the transaction. With 3 servers one may be lost without losing a commit.\n" +
					"Not replicated: tables of other engines, SET GLOBAL, logs. A mistaken DROP is replicated too: backups are not part of this resource."},
			single("Nothing is replicated: one server, no copy of its data."),
		},
		taken: replicationNames(because(fixed, "innodb_page_size", "innodb_doublewrite", "innodb_log_files_in_group", "innodb_undo_tablespaces",
			"innodb_temp_data_file_path", "innodb_data_file_path", "large_pages", "open_files_limit", "lower_case_table_names", "thread_handling",
			"skip_external_locking", "disabled_storage_engines", "innodb_force_recovery", "innodb_dedicated_server")),
		undone: kubeBlocksDefaults,
		render: renderKubeBlocks,
	}
}

// kubeBlocksDefaults put back what the template of KubeBlocks' MySQL computes or sets otherwise.
func kubeBlocksDefaults(req render.Request) []mycnf.Setting {
	const source = "KubeBlocks' addon mysql, config/mysql8.0-config.tpl"
	s := func(group, name, value, reason string) mycnf.Setting {
		return mycnf.Setting{Name: name, Value: value, Group: group, Reason: reason, Source: source}
	}
	list := []mycnf.Setting{
		s("logging", "general_log", "OFF", "the template turns it on: every statement is written to a file"),
		s("replication", "slave_exec_mode", "STRICT", "the template's IDEMPOTENT lets a replica differ from its primary in silence"),
		s("flush", "innodb_doublewrite_pages", "128", "the template's 32 writes smaller batches; still complete and synced"),
	}
	if req.HA == HAGroupReplication {
		list = append(list, instrumented("KubeBlocks reads the group's state from the performance schema, which its template turns off below 8 GiB"))
	}
	return list
}

func renderKubeBlocks(d deployment) ([]render.Object, error) {
	definition := "mysql-" + d.Version.Series()
	if d.mode.name == HAGroupReplication {
		definition = "mysql-mgr-" + d.Version.Series()
	}
	labels := map[string]any{"app.kubernetes.io/instance": d.Name, "apps.kubeblocks.io/component-name": component}
	server := map[string]any{
		"name": component, "componentDef": definition, "replicas": d.Replicas, "disableExporter": true, "resources": d.guaranteed(),
		"schedulingPolicy":     map[string]any{"affinity": apart(labels), "topologySpreadConstraints": spread(labels)},
		"volumeClaimTemplates": []any{map[string]any{"name": "data", "spec": d.claim()}},
	}
	reasons := map[string]string{
		"spec.terminationPolicy":                                            "deleting the Cluster leaves the data; change it to Delete when they may go",
		"spec.componentSpecs[0].componentDef":                               "all releases of the definition for this series; the server's image is KubeBlocks' own",
		"spec.componentSpecs[0].replicas":                                   "how many copies there are",
		"spec.componentSpecs[0].resources":                                  whyGuaranteed + ". KubeBlocks adds containers of its own: of the running pod, kubectl get pod -o yaml | david manifest check - tells its class",
		"spec.componentSpecs[0].disableExporter":                            "no second process reads the server's counters every few seconds; turn it on when it is wanted, it costs",
		"spec.componentSpecs[0].volumeClaimTemplates[0]":                    whySize,
		"spec.componentSpecs[0].schedulingPolicy.affinity":                  whyApart,
		"spec.componentSpecs[0].schedulingPolicy.topologySpreadConstraints": whyZones,
	}
	if d.Secret != "" || d.Password != "" {
		server["systemAccounts"] = []any{map[string]any{"name": "root", "secretRef": map[string]any{"name": d.SecretName(), "namespace": d.Namespace}}}
		reasons["spec.componentSpecs[0].systemAccounts"] = "root's password; KubeBlocks makes those of its own accounts"
	}
	d.annotated(server, "annotations", "spec.componentSpecs[0].annotations", reasons)
	spec := map[string]any{"terminationPolicy": "DoNotTerminate", "componentSpecs": []any{server}}
	if d.serviceType() != "ClusterIP" {
		spec["services"] = []any{map[string]any{"name": "outside", "serviceName": "outside", "componentSelector": component, "roleSelector": "primary",
			"spec": map[string]any{"type": d.serviceType(), "ports": []any{map[string]any{"name": "mysql", "port": 3306, "targetPort": "mysql", "protocol": "TCP"}}}}}
		reasons["spec.services[0]"] = "a second Service, for clients outside of the cluster, to the primary"
	}
	cr := d.custom("apps.kubeblocks.io/v1", "Cluster", "cluster.yaml", spec, reasons)
	return d.with(d.kubeBlocksParameter(), d.kubeBlocksBudget(), cr), nil
}

// kubeBlocksParameter makes the resource that KubeBlocks 1.0 takes parameters from; it has to be there before
// the Cluster.
func (d deployment) kubeBlocksParameter() render.Object {
	values, reasons := map[string]any{}, map[string]string{}
	for _, s := range d.settings {
		if n, err := mycnf.ParseSize(s.Value); err == nil && s.Name == "innodb_io_capacity_max" && n < kubeBlocksLeast {
			d.left = append(d.left, fmt.Sprintf("innodb_io_capacity_max: KubeBlocks refuses less than %d, which is what its template has", kubeBlocksLeast))
			continue
		}
		values[s.Name] = plainNumber(s)
		reasons["spec.componentParameters[0].parameters."+s.Name] = why(s)
	}
	head := "david's lines for KubeBlocks: values in bytes, since its schema takes no units. Apply it before the Cluster."
	for _, line := range append(slices.Clone(d.Head), leftOut(d.left)...) {
		head += "\n" + line
	}
	reasons[""] = head
	reasons[`metadata.labels["config.kubeblocks.io/init-parameters"]`] = "read before the servers start the first time; without it they would start with the template's pool and be restarted"
	return render.Object{File: "parameter.yaml", Reasons: reasons, Value: map[string]any{"apiVersion": "parameters.kubeblocks.io/v1alpha1", "kind": "Parameter",
		"metadata": d.customMeta(d.Name+"-cnf", map[string]any{"app.kubernetes.io/instance": d.Name, "config.kubeblocks.io/init-parameters": "true"}),
		"spec":     map[string]any{"clusterName": d.Name, "componentParameters": []any{map[string]any{"componentName": component, "parameters": values}}}}}
}

// kubeBlocksBudget makes a PodDisruptionBudget, which KubeBlocks does not make.
func (d deployment) kubeBlocksBudget() render.Object {
	one := intstr.FromInt32(1)
	return render.Object{File: "poddisruptionbudget.yaml", Reasons: map[string]string{"spec.maxUnavailable": whyBudget}, Value: &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: d.Meta(d.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"app.kubernetes.io/instance": d.Name, "apps.kubeblocks.io/component-name": component}}}}}
}
