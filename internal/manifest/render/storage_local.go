package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkLocal holds local storage against the nodes and the path.
func (req Request) checkLocal() error {
	switch {
	case len(req.Nodes) == 0:
		return Bad("--storage local: give --node NAME, the node that has the disk, once for each replica")
	case len(req.Nodes) != req.Replicas:
		return Bad("--storage local: %d of --node for %d replicas; each has its own disk on a node", len(req.Nodes), req.Replicas)
	case len(slices.Compact(slices.Sorted(slices.Values(req.Nodes)))) < len(req.Nodes):
		return Bad("--storage local: a node is named twice in --node %s; no two of the servers run on one node, so one would wait for ever", strings.Join(req.Nodes, " --node "))
	case req.HostPath && req.Replicas > 1:
		return Bad("--host-path: %d servers cannot share one folder; leave it out, and each has a volume of its own", req.Replicas)
	case !strings.HasPrefix(req.path(0), "/") || path.Clean(req.path(0)) != req.path(0) || strings.Count(req.path(0), "/") < 2:
		return Bad("--path %q: give the folder on the node, as in /mnt/nvme0/mysql", req.Path)
	}
	return nil
}

// path names the folder of a replica on its node.
func (req Request) path(replica int) string {
	base := req.Path
	if base == "" {
		base = "/var/lib/david-volumes/" + req.Namespace + "/" + req.Name // two databases of a name never share a folder
	}
	if replica > 0 {
		return fmt.Sprintf("%s-%d", base, replica)
	}
	return base
}

// local makes a folder or a disk of the node: a static volume for each replica, or hostPath, for which there
// is nothing but the note.
func (req Request) local() []Object {
	if req.HostPath {
		return []Object{req.localNote()}
	}
	class := req.class("kubernetes.io/no-provisioner", nil, map[string]string{
		"provisioner":          "nobody makes the volumes: they are in this folder",
		"allowVolumeExpansion": "false: a folder or a disk of the node has the size it has",
	})
	no := false
	class.Value.(*storagev1.StorageClass).AllowVolumeExpansion = &no
	objects := []Object{class}
	for i, node := range req.Nodes {
		objects = append(objects, req.localVolume(i, node))
	}
	return append(objects, req.localNote())
}

func (req Request) localVolume(i int, node string) Object {
	mode := corev1.PersistentVolumeFilesystem
	return Object{File: fmt.Sprintf("persistentvolume-%d.yaml", i), Value: &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%s-%d", req.Namespace, req.Name, i), Labels: req.labels()},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: quantity(req.Size)},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode:                    &mode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              req.StorageClassName(),
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: req.Namespace, Name: fmt.Sprintf("data-%s-%d", req.Name, i)},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: req.path(i)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}},
		},
	}, Reasons: map[string]string{
		"spec.persistentVolumeReclaimPolicy": "Retain: deleting the claim by mistake does not delete the database with it",
		"spec.claimRef":                      "kept for this server: no other claim may take it",
		"spec.local.path":                    "must be there before the pod: the kubelet makes no folders for local volumes",
		"spec.nodeAffinity":                  "the data are on this node, so the pod runs there and nowhere else",
	}}
}

func (req Request) localNote() Object {
	var text strings.Builder
	for i, node := range req.Nodes {
		fmt.Fprintf(&text, "On node %s, as root, on an empty disk's filesystem (xfs): install -d -o %d -g %d -m 0750 %s\n", node, req.user(), req.user(), req.path(i))
	}
	text.WriteString("The data lie on that node alone: when it is gone, so are they, but for backups and replicas.\n")
	return storageNote(text.String())
}
