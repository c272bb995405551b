package plan

import (
	"slices"

	"david/internal/mycnf"
)

// Kind names an architecture.
type Kind string

// The kinds.
const (
	Local     Kind = "local"
	Single    Kind = "single"
	Ceph      Kind = "ceph"
	Async     Kind = "async"
	Semisync  Kind = "semisync"
	Group     Kind = "group"
	Galera    Kind = "galera"
	NDB       Kind = "ndb"
	DRBD      Kind = "drbd"
	Vitess    Kind = "vitess"
	Managed   Kind = "managed"
	ManagedHA Kind = "managed-ha"
)

// Architecture is a row of study P4's table, brought to today.
type Architecture struct {
	Kind   Kind
	Title  string
	Copies int // servers that hold the data, at least; in each shard
	// The columns of P4's table: whether data, and a table, may be larger than one host; what serves reads and
	// writes; whether a commit is on two machines when it is acknowledged; whether every server takes writes.
	DataOverHost, TableOverHost, ReadScaling, WriteScaling bool
	Sync                                                   string
	MultiMaster                                            bool
	Consistent                                             bool // reads from every server can see every acknowledged commit
	Managed                                                bool
	Zones                                                  int // 2: the provider keeps a standby in another zone
	Small                                                  int // further small machines that it takes: arbitrators, routers
	SmallFor                                               string
	Not                                                    []mycnf.Flavour
	Today                                                  string // what became of P4's row
}

// Architectures lists them, the simplest first.
func Architectures() []Architecture {
	mariadb := []mycnf.Flavour{mycnf.MariaDB} // what is not of it
	mysql := []mycnf.Flavour{mycnf.MariaDB, mycnf.Percona}
	return []Architecture{
		{Kind: Local, Title: "single server on its own disks", Copies: 1, Sync: "no", Today: "not in P4's table; a commit waits for no network"},
		{Kind: Single, Title: "single server on a cloud volume", Copies: 1, Sync: "volume", Today: "not in P4's table: since then volumes sell the IOPS"},
		{Kind: Ceph, Title: "single server on Ceph RBD", Copies: 1, DataOverHost: true, TableOverHost: true, Sync: "volume",
			Today: "as P4 has it for one volume; BlueStore instead of FileStore, one OSD a disk instead of four"},
		{Kind: Async, Title: "asynchronous replication", Copies: 2, ReadScaling: true, Sync: "no", Today: "as P4 has it; GTIDs let a manager automate fail-over"},
		{Kind: Semisync, Title: "semi-synchronous replication", Copies: 3, ReadScaling: true, Sync: "one of two replicas", Today: "not in P4's table; lossless since AFTER_SYNC (MySQL 5.7)"},
		{Kind: Group, Title: "Group Replication (InnoDB Cluster)", Copies: 3, ReadScaling: true, Sync: "majority", MultiMaster: true, Consistent: true, Not: mariadb, Today: "not in P4's table"},
		{Kind: Galera, Title: "Galera (PXC, MariaDB)", Copies: 3, ReadScaling: true, Sync: "all, in memory", MultiMaster: true, Consistent: true, Today: "as P4 has it"},
		{Kind: DRBD, Title: "DRBD with Pacemaker", Copies: 2, Sync: "both disks", Small: 1, SmallFor: "tiebreaker of DRBD's quorum", Today: "as P4 has it; quorum since DRBD 9"},
		{Kind: NDB, Title: "MySQL Cluster (NDB)", Copies: 2, DataOverHost: true, TableOverHost: true, ReadScaling: true, WriteScaling: true, Sync: "both, in memory", MultiMaster: true, Consistent: true,
			Small: 2, SmallFor: "management nodes", Not: mysql, Today: "P4: 48 nodes read, 24 write; today 144 data nodes"},
		{Kind: Vitess, Title: "Vitess (sharding)", Copies: 3, DataOverHost: true, TableOverHost: true, ReadScaling: true, WriteScaling: true, Sync: "one of two replicas",
			Small: 5, SmallFor: "2 VTGates, 3 etcd", Not: mariadb, Today: "P4's sharding, with a router that knows SQL"},
		{Kind: Managed, Title: "managed MySQL, one zone", Copies: 1, Sync: "volume", Managed: true, Not: mysql, Today: "P4: 3 to 10 IOPS/GB in RDS"},
		{Kind: ManagedHA, Title: "managed MySQL, two zones", Copies: 1, Sync: "standby's volume", Managed: true, Zones: 2, Not: mysql, Today: "P4: 3 to 10 IOPS/GB in RDS"},
	}
}

// architecture finds one by its kind.
func architecture(k Kind) Architecture {
	list := Architectures()
	return list[slices.IndexFunc(list, func(a Architecture) bool { return a.Kind == k })]
}

// replicated tells whether servers copy the data to each other.
func (a Architecture) replicated() bool { return a.Copies > 1 }

// Row writes the architecture as docs/plan.md has it.
func (a Architecture) Row() string {
	return "| " + a.Title + " | " + yes(a.DataOverHost) + " | " + yes(a.TableOverHost) + " | " + yes(a.ReadScaling) + " | " + yes(a.WriteScaling) + " | " + a.Sync + " | " +
		yes(a.MultiMaster) + " | " + a.Today + " |"
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// zonesKnown tells whether a provider is known to have zones, or to be in the price.
func zonesKnown(provider string) bool {
	switch provider {
	case "EC2", "RDS", "Google", "CloudSQL", "Azure", "AzureMySQL":
		return true
	}
	return false
}
