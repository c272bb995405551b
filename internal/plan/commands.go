package plan

import (
	"fmt"
	"math"

	"david/internal/mycnf"
	"david/internal/price"
)

// commands lists what makes a choice: david's own commands for files, the servers' for the rest.
func (r Request) commands(a Architecture, x Choice) []string {
	list := r.storageCommand(x)
	switch a.Kind {
	case Semisync, Vitess:
		list = append(list, r.semisync()...)
	case Async:
		list = append(list, "# on all: gtid_mode=ON, enforce_gtid_consistency=ON, sync_binlog=1, innodb_flush_log_at_trx_commit=1; on the replica: super_read_only=ON, relay_log_recovery=ON",
			"mysql -e \"CHANGE REPLICATION SOURCE TO SOURCE_HOST='PRIMARY', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1; START REPLICA\"")
	case Group:
		list = append(list, "mysqlsh USER@HOST1 -- dba create-cluster db --consistency="+r.groupConsistency()+" --exitStateAction=OFFLINE_MODE   # then cluster.addInstance() twice",
			"# group_replication_unreachable_majority_timeout=30, so that a member without a majority ends its waiting commits; MySQL Router in front")
	case Galera:
		list = append(list, r.galera()...)
	case DRBD:
		list = append(list, "# resource: protocol C; options { quorum majority; on-no-quorum io-error; } with the tiebreaker as a diskless third node; Pacemaker with stonith-enabled=true, or not at all",
			"drbdadm create-md mysql && drbdadm up mysql   # on both; on one: drbdadm primary --force mysql && mkfs.xfs /dev/drbd0")
	case NDB:
		list = append(list, "# config.ini: [ndbd default] NoOfReplicas=2, DataMemory as in the bill; ArbitrationRank=1 on the management nodes")
	case Ceph:
		list = append(list, r.manifest(a, x), "# without Kubernetes: rbd create, rbd map --exclusive, mkfs.xfs; fail over: rbd lock rm first, then map on the spare")
		if h, err := r.hardware(); err == nil {
			if memory, err := h.osdMemory(); err == nil {
				list = append(list, cephSettings(memory)...)
			}
		}
	}
	if r.Kubernetes && !a.Managed && a.Kind != Ceph {
		list = append(list, r.manifest(a, x))
	}
	return list
}

func (r Request) storageCommand(x Choice) []string {
	if x.Provider == Own || x.Volumes == "" || x.Volumes == "included" {
		return nil
	}
	what := "storage plan --like"
	if x.Kind == Managed || x.Kind == ManagedHA {
		what = "price volumes --instance"
	}
	return []string{fmt.Sprintf("david %s %s --iops %.0f --size %.0fGiB", what, x.Machine, x.server.wish.IOPS, x.server.wish.Size.GiB())}
}

// semisync lists the settings without which semi-synchronous replication loses what it promises.
func (r Request) semisync() []string {
	if r.Flavour == mycnf.MariaDB {
		return []string{"# on all: rpl_semi_sync_master_enabled=ON, rpl_semi_sync_slave_enabled=ON, rpl_semi_sync_master_wait_point=AFTER_SYNC (the default is AFTER_COMMIT)",
			"# on all: rpl_semi_sync_master_timeout=4294967295, rpl_semi_sync_master_wait_no_slave=ON, log_slave_updates=ON, sync_binlog=1, innodb_flush_log_at_trx_commit=1, read_only=ON but for the primary"}
	}
	return []string{"# on all: plugin_load_add='semisync_source.so;semisync_replica.so', rpl_semi_sync_source_enabled=ON, rpl_semi_sync_replica_enabled=ON, rpl_semi_sync_source_wait_point=AFTER_SYNC",
		"# on all: rpl_semi_sync_source_timeout=4294967295, rpl_semi_sync_source_wait_for_replica_count=1, rpl_semi_sync_source_wait_no_replica=ON, gtid_mode=ON, enforce_gtid_consistency=ON, sync_binlog=1, innodb_flush_log_at_trx_commit=1, relay_log_recovery=ON, super_read_only=ON but for the primary",
		"# alarm on Rpl_semi_sync_source_status=OFF: from then on a lost primary loses commits"}
}

func (r Request) groupConsistency() string {
	if r.ConsistentReads {
		return "BEFORE"
	}
	return "BEFORE_ON_PRIMARY_FAILOVER"
}

func (r Request) galera() []string {
	list := []string{"# on all: innodb_flush_log_at_trx_commit=1, sync_binlog=1 where it has a binary log; every table with a primary key; alarm on wsrep_flow_control_paused"}
	if r.ConsistentReads {
		list = append(list, "# wsrep_sync_wait=1 for sessions that must read what was acknowledged elsewhere")
	}
	return list
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
