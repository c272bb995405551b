package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is a line of the table: what holds of which architectures, from where, as of when.
type Rule struct {
	Name   string
	Kinds  []Kind // none: all
	Says   string
	Source string
	Date   string
	// loss is what a failure takes; nil: the rule is about something else, and fails says what.
	loss  *loss
	fails func(r Request, a Architecture, provider string) (asked string, fails bool)
	// remark says that it fails nobody, and is to be known all the same.
	remark bool
}

// loss says what is gone after a failure, and for how long nothing is written.
type loss struct {
	of   Failure
	data data
	// wait counts seconds, as published or measured; with human, once somebody acts, where it is not --by-hand.
	wait  float64
	human bool // somebody has to act first
	// manager is the same with a fail-over manager; nil: it makes no difference.
	manager *loss
	restore bool   // the data come from a backup
	unknown bool   // nobody publishes how long it takes
	at      string // the provider whose wait it is, as others publish none; "": any
}

// data says which acknowledged commits a failure takes.
type data int

const (
	none data = iota
	lag       // what a replica had not received: no server bounds it
	backup
)

const (
	manual  = "MySQL 9.5 Reference Manual, "
	looked  = "2026-11"
	follows = "follows from "
	etcd    = "etcd documentation, hardware recommendations: two to four cores, 8 GB"
	recall  = ", from memory: not read for this table"
)

// managerRule is the rule of what a fail-over manager takes.
const managerRule = "manager"

// Rules lists all there is to know, and nothing is known elsewhere.
func Rules() []Rule { return slices.Concat(losses(), conditions()) }

func losses() []Rule {
	manager := &loss{wait: 25}
	byHand := func(f Failure, d data) *loss {
		return &loss{of: f, data: d, human: true, manager: &loss{of: f, data: d, wait: manager.wait}}
	}
	return []Rule{
		lost("local-machine", []Kind{Local}, &loss{of: Machine, data: backup, human: true, restore: true}, "the disks are in the machine: what is not in a backup is gone with it", "study P4: no fault-tolerant storage", "2016"),
		lost("local-disk", []Kind{Local}, &loss{of: Disk}, "own disks are planned as RAID 10: one that is lost costs nothing, the other of its pair all", "md(4)", looked),
		lost("single-machine", []Kind{Single}, &loss{of: Machine, human: true},
			"the volume outlives the machine: attached to another one it has every acknowledged commit, as the log is flushed at commit; nobody publishes how long that takes, so it is --respond and --by-hand", "Amazon EBS User Guide: volumes persist independently of an instance; of other providers that is assumed; study P4: a failed leader's volume is attached elsewhere", looked),
		lost("single-disk", []Kind{Single, Managed}, &loss{of: Disk, data: backup, human: true, restore: true}, "a volume that is gone comes back from a backup: EBS gp3 promises 99.8 to 99.9 % a year", "Amazon EBS User Guide, durability", looked),
		lost("managed-backup", []Kind{Managed, ManagedHA}, nil, "RDS keeps transaction logs besides backups: the last 5 minutes are lost as a rule, within the region. Of other managed databases nothing is taken for granted: --backup-every", "Amazon RDS User Guide, Restoring a DB instance to a specified time", looked),
		lost("single-zone", []Kind{Local, Single, Ceph, Managed}, &loss{of: Zone, data: backup, human: true, restore: true}, "machine and volume are in one zone, or one site", "Amazon EBS User Guide: a volume belongs to one zone; of other providers that is assumed", looked),
		lost("ceph-machine", []Kind{Ceph}, &loss{of: Machine, human: true, wait: 12}, "the image is mapped on the spare server: 11.7 s measured in all, 10.5 of them to shut the old client out (rbd lock rm, blocklist), once somebody acts",
			"tried with Ceph 16.2 and rbd-fuse on one machine, a single run", looked),
		lost("ceph-disk", []Kind{Ceph}, &loss{of: Disk, wait: 20}, "three replicas, min_size 2, on five nodes or more: a lost disk or node loses nothing, and heals within backfillfull. Where it falls silent, what it held waits until it is marked down, after 20 s (osd_heartbeat_grace)", "Ceph documentation, Monitor/OSD interaction; docs/storage.md", looked),
		lost("async-machine", []Kind{Async}, byHand(Machine, lag), "what the replica had not received is lost, and no server bounds how much: watch the lag with a heartbeat", manual+"Replication"+recall, looked),
		lost("semisync-machine", []Kind{Semisync, Vitess}, byHand(Machine, none),
			"lossless while a replica acknowledges: AFTER_SYNC (MariaDB's default is AFTER_COMMIT), acknowledged when written to the relay log, of which the disk has all with sync_relay_log=1 alone: source and replica losing power at once is another matter. After rpl_semi_sync_source_timeout (10 s by default) it goes on asynchronously, and clients are not told, so the plan sets 4294967295 ms and takes two replicas: with both gone writes wait. The old source may hold commits that nobody acknowledged: it is rebuilt, never put back",
			"MySQL Replication excerpt, Configuring Semisynchronous Replication; WL#6355; MariaDB documentation, sync_relay_log", looked),
		lost(managerRule, []Kind{Async, Semisync, Vitess}, nil, "a fail-over manager on three machines (Orchestrator; Vitess has VTOrc): 10 to 13 s of outage as a rule, up to 25 s seen, by Orchestrator at GitHub; of others that is assumed", "MySQL High Availability at GitHub", "2018-06"),
		lost("replica-disk", []Kind{Async}, byHand(Disk, lag), "the replica takes over, as for its machine", follows+"async-machine", looked),
		lost("semisync-disk", []Kind{Semisync, Vitess}, byHand(Disk, none), "a replica takes over, as for its machine", follows+"semisync-machine", looked),
		lost("async-zone", []Kind{Async}, byHand(Zone, lag), "the copies are in two zones", follows+"async-machine", looked),
		lost("semisync-zone", []Kind{Semisync, Vitess}, byHand(Zone, none), "the copies are in three zones, so every commit waits for another zone", follows+"semisync-machine", looked),
		lost("group-machine", []Kind{Group}, &loss{of: Machine, wait: 10},
			"a majority has received a transaction before it commits, so a minority may be lost. A member is suspected after 5 s and expelled 5 s later (group_replication_member_expel_timeout); the new primary lets nobody in before its backlog is applied (BEFORE_ON_PRIMARY_FAILOVER, the default since 8.4). Received is in memory, not on disk: all members losing power at once is another matter",
			manual+"Group Replication, Expel Timeout; MySQL Shell 8.4, Configuring Failover Consistency; WL#13773", looked),
		lost("group-disk", []Kind{Group}, &loss{of: Disk, wait: 10}, "the other members go on, as for a machine", follows+"group-machine", looked),
		lost("group-zone", []Kind{Group}, &loss{of: Zone, wait: 10}, "one member in each of three zones keeps a majority", follows+"group-machine", looked),
		lost("galera-machine", []Kind{Galera}, &loss{of: Machine, wait: 5},
			"by its documentation (Jepsen saw otherwise: galera-limits) a write set is on every node before the commit is acknowledged, in memory; each node then certifies and applies it by itself. A silent node is suspected after 5 s (evs.suspect_timeout), and the primary component goes on without it", "MariaDB documentation, wsrep_provider_options; Galera Cluster documentation, certification"+recall, looked),
		lost("galera-disk", []Kind{Galera}, &loss{of: Disk, wait: 5}, "the other nodes go on, as for a machine", follows+"galera-machine", looked),
		lost("galera-zone", []Kind{Galera}, &loss{of: Zone, wait: 5}, "one node in each of three zones keeps the primary component", follows+"galera-machine", looked),
		lost("drbd-machine", []Kind{DRBD}, &loss{of: Machine, wait: 63}, "protocol C: a write is on both disks when it is acknowledged. 3 s until Corosync misses the token, up to 60 s to fence the other node (stonith-timeout), then crash recovery; never without fencing",
			"RHEL 8.4 release notes (token); pacemaker-fenced(7); DRBD 9 User's Guide"+recall, looked),
		lost("drbd-disk", []Kind{DRBD}, &loss{of: Disk}, "the server goes on over the network, without a disk of its own", "DRBD 9 User's Guide, handling disk errors"+recall, looked),
		lost("drbd-zone", []Kind{DRBD}, &loss{of: Zone, wait: 63}, "the disks in two zones, the tiebreaker in a third; fencing has to work while the other zone is silent (the provider's API, or a watchdog), or nothing takes over", follows+"drbd-machine", looked),
		lost("ndb-machine", []Kind{NDB}, &loss{of: Machine, wait: 20}, "a transaction is committed on both nodes of its group, in memory; a node that is silent for four heartbeats of 5 s is dead. Logs reach the disk every 2 s (TimeBetweenGlobalCheckpoints): the whole cluster losing power loses those", manual+"Defining NDB Cluster Data Nodes"+recall, looked),
		lost("ndb-disk", []Kind{NDB}, &loss{of: Disk, wait: 20}, "the other node of the group goes on", follows+"ndb-machine", looked),
		lost("ndb-zone", []Kind{NDB}, &loss{of: Zone, wait: 20}, "the nodes of a group in two zones, the arbitrator in a third", follows+"ndb-machine", looked),
		lost("managed-machine", []Kind{Managed}, &loss{of: Machine, unknown: true}, "the provider starts another machine on the same volume; how long that takes was not found published", "Amazon RDS User Guide", looked),
		lost("managed-ha-machine", []Kind{ManagedHA}, &loss{of: Machine, wait: 120, at: "RDS"}, "synchronous to a standby in another zone; RDS's fail-over typically takes 60 to 120 s, longer with a long recovery. Cloud SQL begins its own after about 60 s of silence, and says of no end", "Amazon RDS User Guide, Failing over a Multi-AZ DB instance; Cloud SQL documentation, high availability", looked),
		lost("managed-ha-disk", []Kind{ManagedHA}, &loss{of: Disk, wait: 120, at: "RDS"}, "the standby has volumes of its own", "Amazon RDS User Guide, Multi-AZ DB instance deployments", looked),
		lost("managed-ha-zone", []Kind{ManagedHA}, &loss{of: Zone, wait: 120, at: "RDS"}, "the standby is in another zone", "Amazon RDS User Guide, Multi-AZ DB instance deployments", looked),
		lost("not-placed", []Kind{Async, Semisync, Group, Galera, DRBD, NDB, Vitess}, nil, "copies are put into other zones and regions only where that is asked (--survive, --regions), as the traffic between them is paid for; else they are gone together, and a backup elsewhere is left", "arithmetic", looked),
		lost("region-copy", []Kind{Async, Semisync, Group, Galera, Vitess}, &loss{of: Region, data: lag, human: true}, "a copy in another region follows asynchronously: what it had not received is lost, and somebody has to decide", follows+"async-machine", looked),
		lost("region-together", []Kind{Semisync, Group, Galera}, nil, "the copies lie in three regions or more and commit together, so a lost region is a lost machine, and every commit waits for another region: taken where that is asked for, or costs less than copies that follow", follows+"semisync-machine, group-machine and galera-machine", looked),
		lost("region-backup", []Kind{Local, Single, Ceph, DRBD, NDB, Managed, ManagedHA}, &loss{of: Region, data: backup, human: true, restore: true}, "only a backup that lies in another region is left", follows+"managed-backup and single-disk", looked),
	}
}

func lost(name string, kinds []Kind, l *loss, says, source, date string) Rule {
	return Rule{Name: name, Kinds: kinds, Says: says, Source: source, Date: date, loss: l}
}

func conditions() []Rule { return slices.Concat(abilities(), places(), remarks()) }

// abilities is what an architecture cannot do, wherever it is.
func abilities() []Rule {
	return []Rule{
		condition("reads-one-server", "one server serves the reads: there is no other, or its standby serves none; read replicas of managed databases are not planned", "study P4; Amazon RDS User Guide: the standby cannot serve reads", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--read-scaling", r.ReadScaling && !a.ReadScaling
			}),
		condition("reads-stale", "reads from a replica may be stale: it applies a commit after it was acknowledged. Group Replication with group_replication_consistency BEFORE or AFTER, Galera with wsrep_sync_wait, and NDB read what was acknowledged, and pay a wait for it",
			manual+"Group Replication, Transaction Consistency Guarantees; Galera Cluster documentation, wsrep_sync_wait"+recall, looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--consistent-reads", r.ConsistentReads && !a.Consistent
			}),
		condition("one-writer", "one server takes the writes. Where all do (Group Replication's multi-primary mode, Galera), each still applies every write, so writes do not scale, and the later of two that touch a row fails, at its commit at the latest",
			"study P4; "+manual+"Group Replication; Galera Cluster documentation, certification"+recall, looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--multi-master", r.MultiMaster && !a.MultiMaster
			}),
		only(Vitess, condition("sharding-key", "sharding changes the application: Vitess wants a sharding key in every large table, queries without it go to all shards, and transactions over shards are READ COMMITTED, and commit shard by shard by default", "Vitess documentation, MySQL Compatibility; vitess issue #16245", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "the application as it is", !r.ChangeApplication
			})),
		only(NDB, condition("other-engine", "another engine changes the application: NDB knows READ COMMITTED only, has no gap locks, and joins over the network", manual+"NDB Cluster limitations"+recall, looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "the application as it is", !r.ChangeApplication
			})),
		condition("flavour", "Group Replication and Vitess are of MySQL and Percona Server, NDB of MySQL alone", "MariaDB documentation, incompatibilities; Percona documentation"+recall, looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--flavour " + string(r.Flavour), !a.Managed && slices.Contains(a.Not, r.Flavour)
			}),
		condition("managed-flavour", "the managed databases of the catalogue are MySQL, neither Percona Server nor MariaDB", "the providers' documentation, as collected", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--flavour " + string(r.Flavour), a.Managed && slices.Contains(a.Not, r.Flavour)
			}),
	}
}

// places is what cannot be had at a provider, or over regions.
func places() []Rule {
	return []Rule{
		condition("zones", "david knows zones of EC2, RDS, Google, Cloud SQL and Azure alone, and own hardware is planned for one site", "the providers' documentation", looked,
			func(r Request, a Architecture, provider string) (string, bool) {
				return "--survive " + string(r.Survive), r.reaches(Zone) && a.replicated() && !zonesKnown(provider)
			}),
		condition("region-zero", "to lose nothing with a region, every commit has to reach another one before it is acknowledged: semi-synchronous and group replication and Galera can, over three regions, and take its round trip", follows+"region-copy and region-together", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--rpo 0s --survive region", r.stretched() && !a.spans()
			}),
		condition("region-reads", "data that can be read in several regions take a copy in each", follows+"region-copy", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				can := slices.Contains([]Kind{Async, Semisync, Group, Galera, Vitess}, a.Kind)
				return "--regions", r.Regions > 1 && !can
			}),
		condition("volume-latency", "a commit waits for the volume: network volumes promise single-digit ms (gp3, PD), below 1 ms at best (io2, Premium v2), so 99 % within 1 ms are promised by none", "the providers' documentation, as collected", looked,
			func(r Request, a Architecture, provider string) (string, bool) {
				return "--p99", r.P99 > 0 && r.P99 < 1 && provider != Own
			}),
		condition("round-trip", "a synchronous commit over three regions takes their round trip at least", follows+"region-together", looked,
			func(r Request, a Architecture, _ string) (string, bool) {
				return "--p99", r.together() && a.spans() && !r.inTime()
			}),
		condition("nobody", "without people who can be called, somebody else has to replace disks and machines", "study P4: people cost as much as hardware", "2016",
			func(r Request, a Architecture, provider string) (string, bool) {
				return "--people 0", r.People == 0 && provider == Own
			}),
	}
}

// remarks are to be known, or follow from the bill.
func remarks() []Rule {
	return []Rule{
		remark("spot", "a provider takes spot machines back within minutes: only copies for reads, beyond those that RPO counts on, are bought so", "Amazon EC2 User Guide, Spot interruptions"+recall, looked),
		remark("helpers", "what only votes, routes or watches (tiebreaker, VTGate, etcd, fail-over manager) is no whole server: of a provider it is the cheapest machine, of own hardware --helper-cpus and --helper-memory as a share of a server that other things run on, never of one that holds the data it decides on; --helper-price for small servers of their own", etcd, looked),
		remark("drop-table", "no architecture survives a DROP TABLE or a wrong UPDATE: copies repeat it. Backups with binary logs do, to --backup-every", follows+"how each copies", looked),
		only(Galera, remark("galera-limits", "Jepsen saw Galera lose acknowledged commits with process crashes and network partitions, and lose updates without any fault; the slowest node slows all (flow control), and hot rows and large transactions fail at certification", "Jepsen, MariaDB Galera Cluster 12.1.2 to 12.2.2 (its summary was read); Galera Cluster documentation"+recall, "2026-03")),
		arithmetic("capacity", "a server carries no more than --fill of what its machine and volumes are published, or were measured, to sustain", "study P4: plan for 70 %; docs/price.md", looked),
		arithmetic(priceUnknown, "a price that is not known makes no bill, and is never 0: the flag that gives it is named", "docs/price.md", looked),
		arithmetic("budget", "the bill of a month is within the budget", "arithmetic", looked),
	}
}

func condition(name, says, source, date string, fails func(Request, Architecture, string) (string, bool)) Rule {
	return Rule{Name: name, Says: says, Source: source, Date: date, fails: fails}
}

// remark is a rule that fails nobody.
func remark(name, says, source, date string) Rule {
	x := arithmetic(name, says, source, date)
	x.remark = true
	return x
}

// arithmetic is a rule that follows from the bill, and is applied where that is made.
func arithmetic(name, says, source, date string) Rule {
	return Rule{Name: name, Says: says, Source: source, Date: date}
}

// only narrows a rule to an architecture.
func only(k Kind, x Rule) Rule {
	x.Kinds = []Kind{k}
	return x
}

// holds tells whether a rule is about an architecture.
func (x Rule) holds(k Kind) bool { return len(x.Kinds) == 0 || slices.Contains(x.Kinds, k) }

// Row writes the rule as docs/plan.md has it.
func (x Rule) Row() string {
	of := "all"
	if len(x.Kinds) > 0 {
		var names []string
		for _, k := range x.Kinds {
			names = append(names, string(k))
		}
		of = strings.Join(names, ", ")
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s, %s |", x.Name, of, x.Says, x.Source, x.Date)
}
