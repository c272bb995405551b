package render

const (
	rookNamespace   = "rook-ceph"
	rbdProvisioner  = "rook-ceph.rbd.csi.ceph.com"
	rbdFeatures     = "layering,fast-diff,object-map,deep-flatten,exclusive-lock"
	csiSecretName   = "rook-csi-rbd-provisioner"
	csiNodeSecret   = "rook-csi-rbd-node"
	csiSecretPrefix = "csi.storage.k8s.io/"
)

// ceph makes an RBD image of a Rook cluster for each volume, with snapshots, and a follower's volume as a
// clone of one.
func (req Request) ceph() []Object {
	pool := "david-" + req.Name
	parameters := map[string]string{"clusterID": rookNamespace, "pool": pool, "imageFormat": "2", "imageFeatures": rbdFeatures, csiSecretPrefix + "fstype": "xfs"}
	for _, what := range []string{"provisioner", "controller-expand", "node-stage"} {
		name := csiSecretName
		if what == "node-stage" {
			name = csiNodeSecret
		}
		parameters[csiSecretPrefix+what+"-secret-name"] = name
		parameters[csiSecretPrefix+what+"-secret-namespace"] = rookNamespace
	}
	class := req.class(rbdProvisioner, parameters, map[string]string{
		"parameters.imageFeatures":                "exclusive-lock fences a server whose volume moved to another node; object-map, fast-diff and deep-flatten make snapshots and clones cheap, layering makes them copy-on-write. It needs a kernel of 5.4 or later",
		`parameters["csi.storage.k8s.io/fstype"]`: "xfs: parallel writes into one file, and no lost+found in the data directory",
	})
	return append([]Object{{File: "cephblockpool.yaml", Value: map[string]any{
		"apiVersion": "ceph.rook.io/v1", "kind": "CephBlockPool",
		"metadata": map[string]any{"name": pool, "namespace": rookNamespace, "labels": map[string]any{ManagedBy: "david"}},
		"spec":     map[string]any{"failureDomain": "host", "replicated": map[string]any{"size": 3, "requireSafeReplicaSize": true}},
	}, Reasons: map[string]string{
		"spec.failureDomain":                     "each copy on another host, so that losing one loses nothing",
		"spec.replicated.size":                   "three copies: with one host gone, two are left and writes go on",
		"spec.replicated.requireSafeReplicaSize": "refuses fewer copies than are safe",
	}}, class, req.snapshotClass()}, req.follower()...)
}

func (req Request) snapshotClass() Object {
	return Object{File: "volumesnapshotclass.yaml", Value: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
		"metadata": map[string]any{"name": req.StorageClassName(), "labels": map[string]any{ManagedBy: "david"}},
		"driver":   rbdProvisioner, "deletionPolicy": "Delete",
		"parameters": map[string]any{"clusterID": rookNamespace, csiSecretPrefix + "snapshotter-secret-name": csiSecretName,
			csiSecretPrefix + "snapshotter-secret-namespace": rookNamespace},
	}, Reasons: map[string]string{
		"deletionPolicy": "a snapshot that is deleted frees its room; clones of it stay whole",
	}}
}

// follower makes a snapshot of the first server's volume, and a volume cloned from it. Both are applied when
// there are data.
func (req Request) follower() []Object {
	snapshot, claim := req.Name+"-follower", "data-"+req.Name+"-follower-0"
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": req.Namespace, "labels": map[string]any{ManagedBy: "david"}}
	}
	size := quantity(req.Size)
	return []Object{
		{File: "follower.snapshot.yaml", Aside: true, Value: map[string]any{
			"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": meta(snapshot),
			"spec": map[string]any{"volumeSnapshotClassName": req.StorageClassName(), "source": map[string]any{"persistentVolumeClaimName": "data-" + req.Name + "-0"}},
		}, Reasons: map[string]string{"spec.source": "as after a power cut at that moment: the follower's server recovers from its redo log, and loses no commit"}},
		{File: "follower.pvc.yaml", Aside: true, Value: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta(claim),
			"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": req.StorageClassName(),
				"dataSource": map[string]any{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": snapshot},
				"resources":  map[string]any{"requests": map[string]any{"storage": size.String()}}},
		}, Reasons: map[string]string{
			"metadata.name":   "the name that the StatefulSet of david manifest --name " + req.Name + "-follower looks for",
			"spec.dataSource": "a copy-on-write clone: there in seconds, and it takes room only for what changes",
		}},
		storageNote("1. A Rook Ceph cluster in namespace " + rookNamespace + " with its RBD CSI driver, and for followers the snapshot controller and its resources.\n" +
			"2. kubectl apply -k THIS-FOLDER\n" +
			"3. A follower, once there are data: kubectl apply -f follower.snapshot.yaml -f follower.pvc.yaml, then david manifest with the same sizes and\n" +
			"   --name " + req.Name + "-follower --namespace " + req.Namespace + " --secret " + req.SecretName() + " --storage class:" + req.StorageClassName() + "\n" +
			"   (a claim is cloned within its namespace, and the clone has the first server's passwords). Before it replicates it needs a server_id of its own, and its auto.cnf (the server's UUID)\n" +
			"   removed; replication itself is set up by you: a clone is a copy, and follows nobody.\n" +
			"Plan for 70 % of the cluster's room at most: it gets slower when it fills.\n"),
	}
}
