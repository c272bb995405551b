package operator

import (
	"strings"

	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// View says where an operator's resource keeps what the rules look at.
type View struct {
	Group, Kind string
	Flavour     mycnf.Flavour
	Version     mycnf.Version // where the image tells none
	Image       string        // paths, from here on
	Cnf         string        // of the my.cnf's text
	Replicas    string
	Resources   string
	Class       string
	Replicates  func(stream.Document) bool
	Budget      string
	HostNetwork string // of the field that puts the pods into their node's network; "" where there is none
	Annotations string // of the pods
}

// Views lists those of the resources that david renders.
func Views() []View {
	always := func(stream.Document) bool { return true }
	eight := render.LongTerm(mycnf.MySQL)
	return []View{
		{Group: "pxc.percona.com", Kind: "PerconaXtraDBCluster", Flavour: mycnf.Percona, Version: eight, Image: "spec.pxc.image", Cnf: "spec.pxc.configuration", Replicas: "spec.pxc.size",
			Resources: "spec.pxc.resources", Class: "spec.pxc.volumeSpec.persistentVolumeClaim.storageClassName", Replicates: always, Budget: "spec.pxc.podDisruptionBudget", Annotations: "spec.pxc.annotations"},
		{Group: "ps.percona.com", Kind: "PerconaServerMySQL", Flavour: mycnf.Percona, Version: eight, Image: "spec.mysql.image", Cnf: "spec.mysql.configuration", Replicas: "spec.mysql.size",
			Resources: "spec.mysql.resources", Class: "spec.mysql.volumeSpec.persistentVolumeClaim.storageClassName", Replicates: always, Budget: "spec.mysql.podDisruptionBudget", Annotations: "spec.mysql.annotations"},
		{Group: "mysql.oracle.com", Kind: "InnoDBCluster", Flavour: mycnf.MySQL, Version: eight, Cnf: "spec.mycnf", Replicas: "spec.instances", Resources: "spec.podSpec.containers[0].resources",
			Class: "spec.datadirVolumeClaimTemplate.storageClassName", Replicates: always, HostNetwork: "spec.podSpec.hostNetwork", Annotations: "spec.podAnnotations"},
		{Group: "apps.kubeblocks.io", Kind: "Cluster", Flavour: mycnf.MySQL, Version: eight, Replicas: "spec.componentSpecs[0].replicas", Resources: "spec.componentSpecs[0].resources",
			Class: "spec.componentSpecs[0].volumeClaimTemplates[0].spec.storageClassName", Replicates: always, Annotations: "spec.componentSpecs[0].annotations"},
		{Group: "moco.cybozu.com", Kind: "MySQLCluster", Flavour: mycnf.MySQL, Version: eight, Image: "spec.podTemplate.spec.containers[0].image", Replicas: "spec.replicas",
			Resources: "spec.podTemplate.spec.containers[0].resources", Class: "spec.volumeClaimTemplates[0].spec.storageClassName", Replicates: always,
			HostNetwork: "spec.podTemplate.spec.hostNetwork", Annotations: "spec.podTemplate.metadata.annotations"},
		{Group: "k8s.mariadb.com", Kind: "MariaDB", Flavour: mycnf.MariaDB, Version: render.LongTerm(mycnf.MariaDB), Image: "spec.image", Cnf: "spec.myCnf", Replicas: "spec.replicas",
			Resources: "spec.resources", Class: "spec.storage.volumeClaimTemplate.storageClassName", Budget: "spec.podDisruptionBudget", Annotations: "spec.podMetadata.annotations",
			Replicates: func(d stream.Document) bool {
				return d.Get("spec.galera.enabled") == true || d.Get("spec.replication.enabled") == true
			}},
	}
}

// ViewOf finds the view of an operator's resource; ok is false for other objects.
func ViewOf(d stream.Document) (view View, ok bool) {
	for _, view := range Views() {
		if strings.HasPrefix(d.APIVersion(), view.Group+"/") && d.Kind() == view.Kind {
			return view, true
		}
	}
	return view, false
}
