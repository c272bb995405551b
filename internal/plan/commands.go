package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/price"
)

// commands lists what makes a choice: david's own commands for files, the servers' for the rest.
func (r Request) commands(a Architecture, x Choice) []string {
	if a.Kind == Ceph {
		return r.onCeph(a, x)
	}
	list := append(r.storageCommand(x), r.recipe(a, x)...)
	if !r.Kubernetes || a.Managed {
		return list
	}
	manifest := r.manifest(a, x)
	if strings.HasPrefix(manifest, "#") {
		return append([]string{manifest}, list...)
	}
	// The operator does what is typed on hosts; what is to be known stays.
	list = slices.DeleteFunc(list, func(line string) bool { return !strings.HasPrefix(line, "# on all: ") })
	return append(list, manifest, "kubectl apply -f k8s")
}

func (r Request) onCeph(a Architecture, x Choice) []string {
	list := []string{r.manifest(a, x), "# without Kubernetes: rbd create, rbd map --exclusive, mkfs.xfs; fail over: rbd lock rm first, then map on the spare"}
	if h, err := r.hardware(); err == nil {
		if memory, err := h.osdMemory(); err == nil {
			list = append(list, cephSettings(memory)...)
		}
	}
	return list
}

// storageCommand lists what the data lie on: of a rented machine david's own plan of it.
func (r Request) storageCommand(x Choice) []string {
	switch {
	case x.Provider == Own && x.Kind == DRBD:
		return r.ownDisks()
	case x.Provider == Own:
		return append(r.ownDisks(), filesystem())
	case x.Volumes == "" || x.Volumes == "included":
		return nil
	}
	what := "storage plan --like"
	if x.Kind == Managed || x.Kind == ManagedHA {
		what = "price volumes --instance"
	}
	return []string{fmt.Sprintf("david %s %s --iops %.0f --size %.0fGiB", what, x.Machine, x.server.wish.IOPS, x.server.wish.Size.GiB())}
}

// semisync lists the settings without which semi-synchronous replication loses what it promises. The source's half is the primary's
// alone: a replica that has it waits for ever for somebody to acknowledge what it applies (seen with MySQL 9.7: "Waiting for semi-sync
// ACK from replica" in its applier). Vitess turns both halves on and off itself.
func (r Request) semisync(x Choice) []string {
	if r.Flavour == mycnf.MariaDB {
		return []string{"# on all: rpl_semi_sync_master_wait_point=AFTER_SYNC (the default is AFTER_COMMIT), rpl_semi_sync_master_timeout=4294967295, rpl_semi_sync_master_wait_no_slave=ON",
			"# on the primary alone: rpl_semi_sync_master_enabled=ON; on replicas: rpl_semi_sync_slave_enabled=ON, rpl_semi_sync_master_enabled=OFF, or they wait for ever for an acknowledgement of what they apply",
			"# who promotes a replica, before anybody writes there: SET GLOBAL rpl_semi_sync_master_enabled=ON, and in its my.cnf"}
	}
	list := []string{"# on all: plugin_load_add='semisync_source.so;semisync_replica.so', rpl_semi_sync_source_wait_point=AFTER_SYNC, rpl_semi_sync_source_timeout=4294967295, rpl_semi_sync_source_wait_for_replica_count=1, rpl_semi_sync_source_wait_no_replica=ON",
		"# alarm on Rpl_semi_sync_source_status=OFF on a primary: from then on a lost one loses commits"}
	if x.Kind == Vitess {
		return list
	}
	return append(list,
		"# on the primary alone: rpl_semi_sync_source_enabled=ON; on replicas: rpl_semi_sync_replica_enabled=ON, rpl_semi_sync_source_enabled=OFF, or they wait for ever for an acknowledgement of what they apply",
		"# who promotes a replica, before anybody writes there: SET PERSIST rpl_semi_sync_source_enabled=ON, rpl_semi_sync_replica_enabled=OFF")
}

func (r Request) groupConsistency() string {
	if r.ConsistentReads {
		return "BEFORE"
	}
	return "BEFORE_ON_PRIMARY_FAILOVER"
}

// operated is an operator's flavour of david manifest, with what it asks for: an odd number of copies up to
// a most.
type operated struct {
	flags string
	most  int
}

// operators lists which flavour renders an architecture; none renders the others. TestManifestCommands runs
// them.
func operators(f mycnf.Flavour) map[Kind]operated {
	if f == mycnf.MariaDB {
		return map[Kind]operated{Galera: {"--flavor mariadb-operator --ha galera", 9}, Semisync: {"--flavor mariadb-operator --ha semi-sync", 9}}
	}
	return map[Kind]operated{Galera: {"--flavor percona-pxc", 5}, Group: {"--flavor oracle", 9}, Semisync: {"--flavor moco --image IMAGE", 9}}
}

// manifest is the command that renders the objects; a remark where there is none.
func (r Request) manifest(a Architecture, x Choice) string {
	flavor := ""
	if a.Kind != Single && a.Kind != Ceph && a.Kind != Local {
		o, ok := operators(r.Flavour)[a.Kind]
		if !ok || x.Copies%2 == 0 || x.Copies > o.most {
			return "# david manifest has no flavour that renders this: run the servers outside of the cluster, or take another architecture"
		}
		flavor = fmt.Sprintf(" %s --replicas %d", o.flags, x.Copies)
	}
	storage := map[string]string{"EC2": "ebs-gp3", "Google": "gce-hyperdisk", "Azure": "azure-premium-v2"}[x.Provider]
	if storage == "" {
		storage = "zfs"
	}
	if a.Kind == Ceph {
		storage = "ceph-rbd"
	}
	memory := int(max(1, math.Floor(x.Load.Pool*x.Load.Room.GiB()/r.figure("pool-of-memory"))))
	return fmt.Sprintf("david manifest%s --from latest --cpus %.0f --memory %dGi --size %.0fGi --storage %s --name db --out k8s", flavor, math.Ceil(x.Load.Cores/r.figure("fill")), memory,
		math.Ceil(price.Size(float64(x.Load.Room)/r.figure("fill")).GiB()), storage)
}
