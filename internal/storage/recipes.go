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

// Recipe holds the commands that make a layout with one tool. DISK1, NODE1 and MOUNTPOINT stand for what only
// the user knows.
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
	return []string{"mkfs.xfs " + device, "mount -o noatime " + device + " MOUNTPOINT", fstab(device, "xfs noatime")}
}

// fstab has a filesystem mounted after a reboot, by its UUID: names of disks change.
func fstab(device, how string) string {
	return fmt.Sprintf(`echo "UUID=$(blkid -s UUID -o value %s) MOUNTPOINT %s 0 0" >> /etc/fstab`, device, how)
}

// synchronises says of a new mirror what a measurement must wait for.
const synchronises = "the first synchronisation takes IOPS until it ends: measure after it"

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
	r := Recipe{Tool: "mdadm", Commands: append([]string{
		fmt.Sprintf("mdadm --create /dev/md/mysql --name=mysql --level=%s --raid-devices=%d %s", level, l.N, l.disks()),
		"mdadm --detail --brief /dev/md/mysql >> /etc/mdadm/mdadm.conf",
		"update-initramfs -u",
	}, xfs("/dev/md/mysql")...), Note: "of RHEL the file is /etc/mdadm.conf, and dracut -f takes the place of update-initramfs -u"}
	if l.Kind == RAID10 {
		r.Commands = append(r.Commands, "mdadm --wait /dev/md/mysql")
		r.Note += "; " + synchronises + " (mdadm --wait)"
	}
	return r
}

func (l Layout) mirrored() string {
	if l.N == 2 {
		return "--type raid1 --mirrors 1"
	}
	return fmt.Sprintf("--type raid10 --mirrors 1 --stripes %d --stripesize 64k", l.N/2)
}

func (l Layout) lvm(how string) Recipe {
	r := Recipe{Tool: "lvm", Commands: append([]string{
		"pvcreate " + l.disks(),
		"vgcreate mysql " + l.disks(),
		"lvcreate " + how + " --extents 100%FREE --name data mysql",
	}, xfs("/dev/mysql/data")...)}
	if l.Kind == RAID10 {
		r.Commands = append(r.Commands, "lvs -o name,sync_percent mysql")
		r.Note = synchronises + " (sync_percent 100)"
	}
	return r
}

// zpool sets what study P1 did: a page is a record and is cached once, by InnoDB.
func (l Layout) zpool(disks string) Recipe {
	return Recipe{Tool: "zpool", Commands: []string{
		"zpool create -o ashift=12 -O recordsize=16K -O primarycache=metadata -O compression=lz4 -O atime=off -O mountpoint=MOUNTPOINT mysql " + disks,
	}}
}

// btrfs goes without copies on write, which cost four fifths of the writes measured; with them go the
// checksums.
func (l Layout) btrfs() Recipe {
	return Recipe{Tool: "btrfs", Commands: []string{
		"mkfs.btrfs --data raid0 --metadata raid1 " + l.disks(),
		"mount -o noatime,nodatacow /dev/DISK1 MOUNTPOINT",
		fstab("/dev/DISK1", "btrfs noatime,nodatacow"),
	}, Note: "nodatacow: with copies on write 3,750 instead of 18,324 writes/s were measured; it has no checksums of the data, so not for mirrors"}
}

// ceph asks a cluster that cephadm runs. With fewer replicas than min_size the pool stops. After a reboot
// rbdmap.service maps the image and mounts it: noauto, as there is no device before.
func (l Layout) ceph(replicas int, gib float64) Recipe {
	var list []string
	for i := range l.N {
		list = append(list, fmt.Sprintf("ceph orch daemon add osd NODE%d:/dev/DISK", i+1))
	}
	r := Recipe{Tool: "ceph", Commands: append(list,
		"ceph osd pool create mysql",
		fmt.Sprintf("ceph osd pool set mysql size %d", replicas),
		fmt.Sprintf("ceph osd pool set mysql min_size %d", replicas-1),
		"rbd pool init mysql",
		fmt.Sprintf("rbd create mysql/data --size %.0fM", math.Floor(gib*1024)),
		"rbd map mysql/data",
		"mkfs.xfs /dev/rbd/mysql/data",
		"mount -o noatime /dev/rbd/mysql/data MOUNTPOINT",
		`echo "mysql/data id=admin,keyring=/etc/ceph/ceph.client.admin.keyring" >> /etc/ceph/rbdmap`,
		"systemctl enable rbdmap.service",
		`echo "/dev/rbd/mysql/data MOUNTPOINT xfs noatime,noauto 0 0" >> /etc/fstab`,
	)}
	if replicas == 2 {
		r.Note = "in a cluster that cephadm made of the nodes. min_size 1, which Ceph warns of: with one node away a commit is acknowledged by one copy, and is lost if that disk dies before the other is back; " +
			"min_size 2 stops the database instead"
	} else {
		r.Note = "in a cluster that cephadm made of the nodes. min_size 2: with two nodes lost the data are there, but the database stops until a second copy is"
	}
	return r
}
