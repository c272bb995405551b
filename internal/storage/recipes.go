package storage

import (
	"fmt"
	"math"
	"strings"
)

// Layout puts n volumes together.
type Layout struct {
	Kind Kind
	N    int
}

// Name says it in words: "stripe of 4".
func (l Layout) Name() string {
	rule, _ := l.rule()
	switch {
	case l.Kind == One:
		return "one"
	case l.Kind == RAID10 && l.N == 2:
		return "RAID 1 of 2"
	case rule.isCeph():
		return fmt.Sprintf("%s, %d nodes with", rule.Title, l.N)
	}
	return fmt.Sprintf("%s of %d", rule.Title, l.N)
}

func (l Layout) rule() (Rule, bool) {
	for _, r := range Rules() {
		if r.Kind == l.Kind {
			return r, true
		}
	}
	return Rule{}, false
}

// Recipe holds the commands that make a layout with one tool. DISK1, NODE1 and MOUNTPOINT stand for what only the user
// knows.
type Recipe struct {
	Tool     string   `json:"tool"`
	Commands []string `json:"commands"`
	Note     string   `json:"note,omitempty"`
}

// Recipes lists the ways to make the layout. gib is the usable room: a Ceph image has a size of its own.
func (l Layout) Recipes(gib float64) []Recipe {
	switch l.Kind {
	case One:
		return []Recipe{{Tool: "xfs", Commands: xfs("/dev/DISK1")}}
	case Stripe:
		return []Recipe{l.mdadm("0"), l.lvm(fmt.Sprintf("--type striped --stripes %d --stripesize 64k", l.N)), l.zpool(l.disks()), l.btrfs()}
	case RAID10:
		return []Recipe{l.mdadm("10"), l.lvm(l.mirrored()), l.zpool(l.pairs())}
	case RAIDZ1, RAIDZ2:
		return []Recipe{l.zpool(string(l.Kind) + " " + l.disks())}
	case Ceph2:
		return []Recipe{l.ceph(2, gib)}
	case Ceph3:
		return []Recipe{l.ceph(3, gib)}
	}
	return nil
}

// xfs makes a filesystem on a device. Times of access would be a write for each file that is read.
func xfs(device string) []string {
	return []string{"mkfs.xfs " + device, "mount -o noatime " + device + " MOUNTPOINT"}
}

// disks lists the placeholders.
func (l Layout) disks() string {
	var list []string
	for i := range l.N {
		list = append(list, fmt.Sprintf("/dev/DISK%d", i+1))
	}
	return strings.Join(list, " ")
}

func (l Layout) pairs() string {
	var list []string
	for i := 1; i < l.N; i += 2 {
		list = append(list, fmt.Sprintf("mirror /dev/DISK%d /dev/DISK%d", i, i+1))
	}
	return strings.Join(list, " ")
}

func (l Layout) mdadm(level string) Recipe {
	return Recipe{Tool: "mdadm", Commands: append([]string{
		fmt.Sprintf("mdadm --create /dev/md0 --level=%s --raid-devices=%d %s", level, l.N, l.disks()),
		"mdadm --detail --scan >> /etc/mdadm/mdadm.conf",
	}, xfs("/dev/md0")...)}
}

func (l Layout) mirrored() string {
	if l.N == 2 {
		return "--type raid1 --mirrors 1"
	}
	return fmt.Sprintf("--type raid10 --mirrors 1 --stripes %d --stripesize 64k", l.N/2)
}

func (l Layout) lvm(how string) Recipe {
	return Recipe{Tool: "lvm", Commands: append([]string{
		"pvcreate " + l.disks(),
		"vgcreate mysql " + l.disks(),
		"lvcreate " + how + " --extents 100%FREE --name data mysql",
	}, xfs("/dev/mysql/data")...)}
}

// zpool sets what study P1 did: a page is a record and is cached once, by InnoDB.
func (l Layout) zpool(disks string) Recipe {
	return Recipe{Tool: "zpool", Commands: []string{
		"zpool create -o ashift=12 -O recordsize=16K -O primarycache=metadata -O compression=lz4 -O atime=off -O mountpoint=MOUNTPOINT mysql " + disks,
	}}
}

// btrfs goes without copies on write, which cost four fifths of the writes measured; with them go the checksums.
func (l Layout) btrfs() Recipe {
	return Recipe{Tool: "btrfs", Commands: []string{
		"mkfs.btrfs --data raid0 --metadata raid1 " + l.disks(),
		"mount -o noatime,nodatacow /dev/DISK1 MOUNTPOINT",
	}, Note: "nodatacow: with copies on write 3,750 instead of 18,324 writes/s were measured; it has no checksums of the data, so not for mirrors"}
}

// ceph asks a cluster that cephadm runs. With fewer replicas than min_size the pool stops.
func (l Layout) ceph(replicas int, gib float64) Recipe {
	var list []string
	for i := range l.N {
		list = append(list, fmt.Sprintf("ceph orch daemon add osd NODE%d:/dev/DISK", i+1))
	}
	r := Recipe{Tool: "ceph", Commands: append(append(list,
		"ceph osd pool create mysql",
		fmt.Sprintf("ceph osd pool set mysql size %d", replicas),
		fmt.Sprintf("ceph osd pool set mysql min_size %d", replicas-1),
		"rbd pool init mysql",
		fmt.Sprintf("rbd create mysql/data --size %.0fM", math.Floor(gib*1024)),
		"rbd map mysql/data",
	), xfs("/dev/rbd/mysql/data")...)}
	if replicas == 2 {
		r.Note = "in a cluster that cephadm made of the nodes. min_size 1: with one node lost a write has one copy; with min_size 2 the database stops instead"
	} else {
		r.Note = "in a cluster that cephadm made of the nodes. min_size 2: with two nodes lost the data are there, but the database stops until a second copy is"
	}
	return r
}
