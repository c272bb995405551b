package render

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"

	"david/internal/mycnf"
)

// zfsProvisioner names democratic-csi's driver as the Helm values do.
const zfsProvisioner = "org.democratic-csi.zfs-local-dataset"

// ZFSLabel and its value mark the nodes that have the pool.
const (
	ZFSLabel      = "storage"
	ZFSLabelValue = "zfs"
)

// recordSize tells InnoDB's page size, as ZFS takes it: 16k, unless the my.cnf asks for other pages.
func (req Request) recordSize() string {
	return fmt.Sprintf("%dk", mycnf.PageSize(req.Settings)>>10)
}

// zfsProperties list those of a dataset that holds InnoDB's files, and why.
func (req Request) zfsProperties() (properties map[string]any, reasons map[string]string) {
	return map[string]any{"recordsize": req.recordSize(), "primarycache": "metadata", "compression": "lz4", "atime": "off"}, map[string]string{
		"recordsize":   "InnoDB's page size: a page is one record, so that no write reads or writes more than a page",
		"primarycache": "pages are cached once, in the buffer pool, and not again by ZFS",
		"compression":  "costs little CPU, and fewer bytes reach the disk",
		"atime":        "reading a file writes nothing",
	}
}

// zfs makes a dataset of the node's own pool for each volume.
func (req Request) zfs() []Object {
	inherit := "the dataset inherits primarycache=metadata, compression=lz4 and atime=off from " + req.dataset() + ", which david manifest node-prep makes"
	openebs := req.class("zfs.csi.openebs.io", map[string]string{"poolname": req.dataset(), "fstype": "zfs", "recordsize": req.recordSize(), "compression": "lz4", "thinprovision": "no"},
		map[string]string{
			"parameters.fstype":        "a dataset, not a volume with a filesystem of its own on it",
			"parameters.recordsize":    "InnoDB's page size: a page is one record, so that no write reads or writes more than a page",
			"parameters.poolname":      inherit,
			"parameters.thinprovision": "the room is reserved: a pool that others filled would stop the server",
		})
	if req.Storage == ZFSLocalPV {
		return []Object{openebs, req.zfsNote("OpenEBS zfs-localpv (Helm chart openebs-zfslocalpv/zfs-localpv)")}
	}
	class := req.class(zfsProvisioner, map[string]string{"csi.storage.k8s.io/fstype": "zfs"}, map[string]string{
		`parameters["csi.storage.k8s.io/fstype"]`: "a dataset, mounted as it is; its properties are in the Helm values, democratic-csi.values.yaml",
		"allowVolumeExpansion":                    "false: democratic-csi's node-local drivers have no resizer yet; ask for enough room, or use --storage zfs-localpv",
	})
	no := false
	class.Value.(*storagev1.StorageClass).AllowVolumeExpansion = &no
	other := req
	other.Storage = ZFSLocalPV
	openebs.Value.(*storagev1.StorageClass).Name = other.StorageClassName()
	openebs.File, openebs.Aside = "zfs-localpv.storageclass.yaml", true
	openebs.Reasons[""] = "The same storage through OpenEBS zfs-localpv, to choose instead: david manifest --storage zfs-localpv"
	return []Object{class, req.democratic(), openebs, req.zfsNote("democratic-csi (Helm chart democratic-csi/democratic-csi, with democratic-csi.values.yaml)")}
}

// dataset names the parent of the volumes' datasets.
func (req Request) dataset() string { return req.pool() + "/mysql" }

// democratic makes the Helm values of democratic-csi's node-local driver.
func (req Request) democratic() Object {
	properties, why := req.zfsProperties()
	reasons := map[string]string{
		"":                                    "Helm values for democratic-csi:\n\thelm upgrade --install --namespace democratic-csi --create-namespace zfs-local democratic-csi/democratic-csi --values democratic-csi.values.yaml",
		"storageClasses":                      "the StorageClass is one of the resources, storageclass.yaml",
		"node.nodeSelector":                   "the nodes that david manifest node-prep prepared and labelled",
		"controller.strategy":                 "each node provisions its own datasets",
		"controller.externalResizer":          "the driver cannot resize when it is distributed over the nodes",
		"csiDriver.fsGroupPolicy":             "the kubelet gives the dataset to the server's group",
		"csiDriver.storageCapacity":           "the scheduler knows how much room each node's pool has left",
		"driver.config.zfs.datasetParentName": "made by david manifest node-prep",
		"driver.config.zfs.datasetEnableReservation": "the room is reserved: a pool that others filled would stop the server",
	}
	for name, text := range why {
		reasons["driver.config.zfs.datasetProperties."+name] = text
	}
	local := []any{"--leader-election=false", "--node-deployment=true"}
	return Object{File: "democratic-csi.values.yaml", Aside: true, Reasons: reasons, Value: map[string]any{
		"csiDriver":      map[string]any{"name": zfsProvisioner, "storageCapacity": true, "fsGroupPolicy": "File"},
		"storageClasses": []any{},
		"controller": map[string]any{
			"strategy": "node",
			"externalProvisioner": map[string]any{"extraArgs": append(local[:2:2], "--node-deployment-immediate-binding=false", "--feature-gates=Topology=true", "--strict-topology=true",
				"--enable-capacity=true", "--capacity-ownerref-level=1")},
			"externalResizer":     map[string]any{"enabled": false},
			"externalSnapshotter": map[string]any{"enabled": true, "extraArgs": local},
		},
		"node": map[string]any{"nodeSelector": map[string]any{ZFSLabel: ZFSLabelValue}},
		"driver": map[string]any{"config": map[string]any{"driver": "zfs-local-dataset", "zfs": map[string]any{
			"datasetParentName": req.dataset(), "detachedSnapshotsDatasetParentName": req.pool() + "/snapshots",
			"datasetEnableQuotas": true, "datasetEnableReservation": true, "datasetProperties": properties,
		}}},
	}}
}

func (req Request) zfsNote(driver string) Object {
	return storageNote("1. On each storage node, as root: david manifest node-prep --storage zfs --disks /dev/sdX,... --node NODE --pool " + req.pool() + "\n" +
		"   prints a script that makes the pool and the dataset " + req.dataset() + " and labels the node " + ZFSLabel + "=" + ZFSLabelValue + ". It refuses disks that hold data, and reads all of\n" +
		"   each disk for that, which can take hours.\n" +
		"2. In the cluster: " + driver + ".\n" +
		"3. kubectl apply -k THIS-FOLDER\n" +
		"The data lie on one node: when it is gone, so are they, but for backups and replicas. A stripe (--layout stripe) loses all with one disk;\n" +
		"--layout raidz survives the loss of one, at a cost: measured with four disks of 500 IOPS 17 % of the writes and 64 % of the reads per second.\n")
}
