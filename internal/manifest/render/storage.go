package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/price"
)

// The kinds of storage. "class:NAME" is a StorageClass that is there already.
const (
	ZFS        = "zfs"         // democratic-csi's zfs-local-dataset
	ZFSLocalPV = "zfs-localpv" // OpenEBS zfs-localpv
	CephRBD    = "ceph-rbd"
	Local      = "local"
	GP3        = "ebs-gp3"
	IO2        = "ebs-io2"
	Hyperdisk  = "gce-hyperdisk"
	PremiumV2  = "azure-premium-v2"

	ClassPrefix = "class:"
)

// Storages lists them.
func Storages() []string {
	return []string{ZFS, ZFSLocalPV, CephRBD, Local, GP3, IO2, Hyperdisk, PremiumV2, ClassPrefix + "NAME"}
}

// StorageClassName names the class that the volumes are of; "" where there are none (hostPath).
func (req Request) StorageClassName() string {
	if name, ok := strings.CutPrefix(req.Storage, ClassPrefix); ok {
		return name
	}
	switch {
	case req.HostPath:
		return ""
	case req.Storage == Local:
		return "david-local-" + req.Name
	case req.Storage == CephRBD: // its pool is the database's own, and a class cannot be changed
		return "david-" + req.Storage + "-" + req.Name
	case req.Storage == ZFSLocalPV:
		return "david-" + req.Storage + req.poolSuffix()
	}
	return "david-" + req.Storage + req.provisioned()
}

// provisioned tells classes of other figures apart, as in "-6000iops-250mibps": what is provisioned is the
// class's. "" is what the volumes include.
func (req Request) provisioned() string {
	suffix := ""
	if req.IOPS > 0 {
		suffix += fmt.Sprintf("-%diops", req.IOPS)
	}
	if req.MiBps > 0 {
		suffix += fmt.Sprintf("-%dmibps", req.MiBps)
	}
	return suffix
}

// poolSuffix tells classes of other pools and page sizes apart: the parameters of a class cannot be changed.
// "" is the default of both.
func (req Request) poolSuffix() string {
	suffix := ""
	if pool := req.pool(); pool != DefaultPool {
		if len(validation.IsDNS1123Label(pool)) > 0 { // as with capitals and underscores
			sum := sha256.Sum256([]byte(pool))
			pool = hex.EncodeToString(sum[:6])
		}
		suffix = "-" + pool
	}
	if size := req.recordSize(); size != "16k" {
		suffix += "-" + size
	}
	return suffix
}

// pool names the nodes' ZFS pool.
func (req Request) pool() string {
	if req.Pool != "" {
		return req.Pool
	}
	return DefaultPool
}

// DefaultPool names the ZFS pool that node-prep makes.
const DefaultPool = "david"

// StorageObjects gives the resources of a request's storage and the files that lie beside them.
func (req Request) StorageObjects() []Object {
	switch req.Storage {
	case ZFS, ZFSLocalPV:
		return req.zfs()
	case CephRBD:
		return req.ceph()
	case Local:
		return req.local()
	case GP3, IO2, Hyperdisk, PremiumV2:
		return req.cloud()
	}
	return []Object{storageNote("The StorageClass " + req.StorageClassName() + " must be there: david renders none, and knows nothing of it. It should have\n" +
		"volumeBindingMode WaitForFirstConsumer, allowVolumeExpansion true and reclaimPolicy Retain, and volumes that hold 16 KiB pages well.\n")}
}

// storageNote says what has to be prepared.
func storageNote(text string) Object {
	return Object{File: "STORAGE.txt", Text: text, Aside: true}
}

// class makes a StorageClass with what all of david's have in common, and why.
func (req Request) class(provisioner string, parameters map[string]string, reasons map[string]string) Object {
	retain, wait, expand := corev1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingWaitForFirstConsumer, true
	all := map[string]string{
		"reclaimPolicy":        "Retain: deleting the claim by mistake does not delete the database with it",
		"volumeBindingMode":    "the volume is made where the pod is scheduled, in its zone or on its node",
		"allowVolumeExpansion": "a full volume can grow without copying the data",
	}
	for path, why := range reasons {
		all[path] = why
	}
	return Object{File: "storageclass.yaml", Reasons: all, Value: &storagev1.StorageClass{
		TypeMeta:             metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:           metav1.ObjectMeta{Name: req.StorageClassName(), Labels: map[string]string{ManagedBy: "david"}},
		Provisioner:          provisioner,
		Parameters:           parameters,
		ReclaimPolicy:        &retain,
		VolumeBindingMode:    &wait,
		AllowVolumeExpansion: &expand,
	}}
}

// quantity writes a size as Kubernetes does.
func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// checkStorage holds the storage's parameters against its limits.
func (req Request) checkStorage() error {
	name, class := strings.CutPrefix(req.Storage, ClassPrefix)
	switch {
	case class:
		if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
			return Bad("--storage %s: %q is no name of a StorageClass", req.Storage, name)
		}
	case !slices.Contains(Storages(), req.Storage):
		return Bad("--storage %q is none of %s", req.Storage, strings.Join(Storages(), ", "))
	}
	_, paid := volumeOf(req.Storage)
	switch {
	case (req.IOPS != 0 || req.MiBps != 0) && !paid:
		return Bad("--iops and --throughput are for %s, %s, %s and %s, whose volumes are sold with them; %s takes neither", GP3, IO2, Hyperdisk, PremiumV2, req.Storage)
	case req.Pool != "" && req.Storage != ZFS && req.Storage != ZFSLocalPV:
		return Bad("--pool is for %s and %s, whose volumes lie in it; %s has none", ZFS, ZFSLocalPV, req.Storage)
	case req.HostPath && req.Storage != Local:
		return Bad("--host-path goes with --storage local")
	case req.Storage == Local:
		return req.checkLocal()
	case len(req.Nodes) > 0 || req.Path != "":
		return Bad("--node and --path go with --storage local: elsewhere the volume's place is the scheduler's choice")
	case !goodPool(req.pool()):
		return Bad("--pool %q is no name of a ZFS pool: letters, digits, dashes and underscores, as in tank", req.Pool)
	case paid:
		return req.checkVolume()
	}
	return nil
}

// volumeLimits list those that the price catalogue does not have.
type volumeLimits struct {
	catalogue string // the kind's name there
	minIOPS   int64
	maxMiBps  int64
	perIOPS   float64 // MiB/s for each IOPS, at most; 0: no such rule
}

// volumeOf tells the limits of a kind of cloud volume. Sources: Amazon EBS user guide (gp3: 0.25 MiB/s for
// each IOPS; io2's throughput follows from its IOPS); Google Cloud, Hyperdisk Balanced; Azure, Premium SSD v2
// (0.25 MB/s for each IOPS).
func volumeOf(storage string) (volumeLimits, bool) {
	l, ok := map[string]volumeLimits{
		GP3:       {catalogue: "ebs-gp3", minIOPS: 3000, maxMiBps: 1000, perIOPS: 0.25},
		IO2:       {catalogue: "ebs-io2", minIOPS: 100},
		Hyperdisk: {catalogue: "gcp-hyperdisk-balanced", minIOPS: 3000, maxMiBps: 2400},
		PremiumV2: {catalogue: "azure-premium-v2", minIOPS: 3000, maxMiBps: 1200, perIOPS: 0.25},
	}[storage]
	return l, ok
}

// volume finds the catalogue's entry of a request's storage.
func (req Request) volume() (v price.Volume, ok bool) {
	l, ok := volumeOf(req.Storage)
	if !ok {
		return v, false
	}
	c, err := price.Default()
	if err != nil {
		return v, false
	}
	i := slices.IndexFunc(c.Volumes, func(v price.Volume) bool { return v.Name == l.catalogue })
	if i < 0 {
		return v, false
	}
	return c.Volumes[i], true
}

// volumeIOPS tells what the volume was bought with, operations/s; 0 where it is not known.
func (req Request) volumeIOPS() int64 {
	if req.IOPS > 0 {
		return req.IOPS
	}
	v, _ := req.volume()
	return int64(v.BaseIOPS)
}

// checkVolume holds what is to be provisioned against the kind's limits.
func (req Request) checkVolume() error {
	l, _ := volumeOf(req.Storage)
	v, ok := req.volume()
	if !ok {
		return fmt.Errorf("cannot find volume %s in the price catalogue", l.catalogue)
	}
	gibs := float64(req.Size) / float64(gib)
	most := int64(v.MaxIOPS)
	if v.MaxPerGiB > 0 {
		most = min(most, max(l.minIOPS, int64(v.MaxPerGiB*gibs)))
	}
	switch {
	case req.Storage == IO2 && req.IOPS == 0:
		return Bad("--storage ebs-io2 is sold by its IOPS: give --iops")
	case req.IOPS != 0 && (req.IOPS < l.minIOPS || req.IOPS > most):
		return Bad("--iops %d: a volume of %s of %s has %d to %d (%s)", req.IOPS, req.Storage, Mebi(req.Size), l.minIOPS, most, v.Source)
	case v.MaxSize > 0 && float64(req.Size) > float64(v.MaxSize):
		return Bad("--size %s: a volume of %s has %.0f GiB at most (%s)", Mebi(req.Size), req.Storage, v.MaxSize.GiB(), v.Source)
	case req.MiBps != 0 && l.maxMiBps == 0:
		return Bad("--throughput: that of %s follows from its IOPS and is not bought", req.Storage)
	case req.MiBps != 0 && (req.MiBps < int64(v.BaseBandwidth.MiB()) || req.MiBps < 1 || req.MiBps > l.maxMiBps):
		return Bad("--throughput %d: a volume of %s has %.0f to %d MiB/s", req.MiBps, req.Storage, max(1, v.BaseBandwidth.MiB()), l.maxMiBps)
	case l.perIOPS > 0 && float64(req.MiBps) > l.perIOPS*float64(req.volumeIOPS()):
		return Bad("--throughput %d: %s allows %g MiB/s for each of its %d IOPS; what fits: --throughput %d, or --iops %d", req.MiBps, req.Storage, l.perIOPS, req.volumeIOPS(),
			int64(l.perIOPS*float64(req.volumeIOPS())), int64(float64(req.MiBps)/l.perIOPS))
	}
	return nil
}

// Amount writes a number of bytes as Kubernetes does.
func Amount(bytes int64) string {
	q := quantity(bytes)
	return q.String()
}
