package plan

import (
	"fmt"
	"math"
	"strings"

	"david/internal/mycnf"
)

// What only the user knows stands in capitals: HOST1, PRIMARY, SECRET. HOST1 is the primary where there is one.

// recipe lists what makes an architecture's servers into one: for hosts, in the order in which it is typed. A line that begins with #
// is for a file, or for the reader.
func (r Request) recipe(a Architecture, x Choice) []string {
	switch a.Kind {
	case Local, Single:
		return append([]string{"david tune --out tuned   # on it: my.cnf for this machine and load"}, failOver(x)...)
	case Async:
		return append(r.replicas(x), r.manager(x)...)
	case Semisync:
		return append(append(r.semisync(x), r.replicas(x)...), r.manager(x)...)
	case Group:
		return append(r.innodbCluster(x), groupByHand(x)...)
	case Galera:
		return append(r.galera(x), r.afterGalera(x)...)
	case DRBD:
		return drbd(x)
	case NDB:
		return r.ndb(x)
	case Vitess:
		return append(r.semisync(x), r.vitess(x)...)
	case Managed, ManagedHA:
		return managed(x)
	}
	return nil
}

// failOver tells how a volume comes to the spare machine.
func failOver(x Choice) []string {
	move := map[string]string{
		"EC2":    "aws ec2 detach-volume --volume-id VOLUME --force && aws ec2 wait volume-available --volume-ids VOLUME && aws ec2 attach-volume --volume-id VOLUME --instance-id SPARE --device /dev/sdf",
		"Google": "gcloud compute instances detach-disk HOST1 --disk=VOLUME && gcloud compute instances attach-disk SPARE --disk=VOLUME",
		"Azure":  "az vm disk detach --resource-group GROUP --vm-name HOST1 --name VOLUME && az vm disk attach --resource-group GROUP --vm-name SPARE --name VOLUME",
	}[x.Provider]
	switch {
	case x.Kind == Local:
		return nil
	case move == "":
		return []string{"# the machine is lost: attach its volumes to a new one, assemble and mount them, start the server: crash recovery does the rest"}
	}
	return []string{"# the machine is lost: stop it for good, then each volume goes to the spare; there assemble and mount, start the server: crash recovery does the rest", move}
}

// replicas lists what makes the servers besides the primary replicas of it, by GTID; those of other regions are made alike.
func (r Request) replicas(x Choice) []string {
	where := fmt.Sprintf("   # each of %d", x.Copies-1+x.Followers)
	if x.Followers > 0 {
		where += fmt.Sprintf(", of them %d in other regions", x.Followers)
	}
	if r.Flavour == mycnf.MariaDB {
		return []string{
			"# my.cnf of all: server_id=1 to N, log_bin, log_slave_updates=ON, gtid_strict_mode=ON, sync_binlog=1, innodb_flush_log_at_trx_commit=1, relay_log_recovery=ON; read_only=ON but for the primary",
			`mariadb -h PRIMARY -e "CREATE USER 'repl'@'%' IDENTIFIED BY 'SECRET' REQUIRE SSL; GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%'"`,
			"mariadb-backup --backup --stream=mbstream | ssh REPLICA 'mbstream -x -C /var/lib/mysql && mariadb-backup --prepare --target-dir=/var/lib/mysql && chown -R mysql: /var/lib/mysql'   # on the primary; the replica's server is down, its folder empty",
			`mariadb -h REPLICA -e "SET GLOBAL gtid_slave_pos='GTID'; CHANGE MASTER TO MASTER_HOST='PRIMARY', MASTER_USER='repl', MASTER_PASSWORD='SECRET', MASTER_SSL=1, MASTER_USE_GTID=slave_pos; START REPLICA"` + where + "; GTID: the third field of the backup's xtrabackup_binlog_info (from 11.1: mariadb_backup_binlog_info)",
		}
	}
	return []string{
		"# my.cnf of all: server_id=1 to N, gtid_mode=ON, enforce_gtid_consistency=ON, plugin_load_add=mysql_clone.so, sync_binlog=1, innodb_flush_log_at_trx_commit=1, relay_log_recovery=ON; super_read_only=ON but for the primary, once it replicates",
		`mysql -h PRIMARY -e "CREATE USER 'repl'@'%' IDENTIFIED BY 'SECRET' REQUIRE SSL; GRANT REPLICATION SLAVE, BACKUP_ADMIN ON *.* TO 'repl'@'%'"`,
		`mysql -h REPLICA -e "SET GLOBAL clone_valid_donor_list='PRIMARY:3306'; CLONE INSTANCE FROM 'repl'@'PRIMARY':3306 IDENTIFIED BY 'SECRET' REQUIRE SSL"` + where + "; its data are replaced, and it starts again",
		`mysql -h REPLICA -e "CHANGE REPLICATION SOURCE TO SOURCE_HOST='PRIMARY', SOURCE_USER='repl', SOURCE_PASSWORD='SECRET', SOURCE_SSL=1, SOURCE_AUTO_POSITION=1; START REPLICA; SET PERSIST super_read_only=ON"` + where,
	}
}

// manager lists what fails over by itself; nothing where somebody does.
func (r Request) manager(x Choice) []string {
	if !x.Manager {
		return nil
	}
	return []string{
		"# orchestrator.conf.json on three machines: RaftEnabled true, RaftNodes [M1, M2, M3], RecoverMasterClusterFilters [\"*\"], DetachLostReplicasAfterMasterFailover true",
		"orchestrator-client -c discover -i PRIMARY:3306   # then rehearse: orchestrator-client -c graceful-master-takeover-auto -i PRIMARY:3306",
	}
}

// innodbCluster lists what MySQL Shell does; copies that follow in other regions are its read replicas.
func (r Request) innodbCluster(x Choice) []string {
	several := ""
	if r.MultiMaster {
		several = " --multiPrimary=true --force=true"
	}
	list := []string{
		`mysqlsh --js -e "dba.configureInstance('USER@HOST1', {restart: true})"   # and each other host`,
		"mysqlsh USER@HOST1 -- dba create-cluster db --consistency=" + r.groupConsistency() + " --exitStateAction=OFFLINE_MODE" + several,
	}
	for n := 2; n <= x.Copies; n++ {
		list = append(list, fmt.Sprintf(`mysqlsh USER@HOST1 --js -e "dba.getCluster().addInstance('USER@HOST%d', {recoveryMethod: 'clone'})"`, n))
	}
	for n := 1; n <= x.Followers; n++ {
		list = append(list, fmt.Sprintf(`mysqlsh USER@HOST1 --js -e "dba.getCluster().addReplicaInstance('USER@REGION%d', {label: 'region%[1]d', replicationSources: 'primary', recoveryMethod: 'clone'})"   # in another region, asynchronous`, n+1))
	}
	return append(list,
		`mysql -h HOST1 -e "SET PERSIST group_replication_unreachable_majority_timeout=30"   # and each other host: one without a majority ends its waiting commits`,
		"mysqlrouter --bootstrap USER@HOST1 --user=mysqlrouter   # beside each application")
}

// groupByHand is the same without MySQL Shell.
func groupByHand(x Choice) []string {
	var seeds []string
	for n := 1; n <= x.Copies; n++ {
		seeds = append(seeds, fmt.Sprintf("HOST%d:33061", n))
	}
	return []string{
		"# or without MySQL Shell, my.cnf of all: server_id=1 to N, gtid_mode=ON, enforce_gtid_consistency=ON, plugin_load_add=group_replication.so, plugin_load_add=mysql_clone.so, group_replication_group_name=UUID, group_replication_local_address=HOSTn:33061, group_replication_group_seeds=" + strings.Join(seeds, ",") + ", group_replication_start_on_boot=OFF, group_replication_recovery_use_ssl=ON",
		`mysql -h HOST1 -e "CREATE USER 'repl'@'%' IDENTIFIED BY 'SECRET' REQUIRE SSL; GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO 'repl'@'%'; SET GLOBAL group_replication_bootstrap_group=ON; START GROUP_REPLICATION USER='repl', PASSWORD='SECRET'; SET GLOBAL group_replication_bootstrap_group=OFF"`,
		`mysql -h HOST2 -e "RESET BINARY LOGS AND GTIDS; START GROUP_REPLICATION USER='repl', PASSWORD='SECRET'"   # and each other host, empty ones; then group_replication_start_on_boot=ON`,
	}
}

func (r Request) galera(x Choice) []string {
	var hosts []string
	for n := 1; n <= x.Copies; n++ {
		hosts = append(hosts, fmt.Sprintf("HOST%d", n))
	}
	apart := ""
	if x.Together {
		apart = " gmcast.segment=N, the region's number, and evs.suspect_timeout above ten round trips, in wsrep_provider_options."
	}
	list := []string{"# on all: innodb_flush_log_at_trx_commit=1, sync_binlog=1 where it has a binary log; every table with a primary key; alarm on wsrep_flow_control_paused." + apart}
	if r.ConsistentReads {
		list = append(list, "# wsrep_sync_wait=1 for sessions that must read what was acknowledged elsewhere")
	}
	common := "binlog_format=ROW, innodb_autoinc_lock_mode=2, default_storage_engine=InnoDB, wsrep_cluster_name=db, wsrep_cluster_address=gcomm://" + strings.Join(hosts, ",") + ", wsrep_node_address=its own"
	if r.Flavour == mycnf.MariaDB {
		return append(list,
			"# my.cnf of all: wsrep_on=ON, wsrep_provider=/usr/lib/galera/libgalera_smm.so (of RHEL /usr/lib64/galera-4), "+common+", wsrep_sst_method=mariabackup, wsrep_sst_auth=sst:SECRET",
			"galera_new_cluster   # on HOST1, where no other runs",
			`mariadb -e "CREATE USER 'sst'@'localhost' IDENTIFIED BY 'SECRET'; GRANT RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR ON *.* TO 'sst'@'localhost'"   # on HOST1`,
			"systemctl start mariadb   # on each other host, one after the other",
			`mariadb -e "SHOW STATUS LIKE 'wsrep_cluster_size'"   # `+fmt.Sprint(x.Copies))
	}
	return append(list,
		"# Percona XtraDB Cluster, my.cnf of all: wsrep_provider=/usr/lib/galera4/libgalera_smm.so (of RHEL /usr/lib64/galera4), "+common+", wsrep_sst_method=clone or xtrabackup-v2, pxc_strict_mode=ENFORCING, and the same ssl_ca, ssl_cert, ssl_key",
		"systemctl start mysql@bootstrap.service   # on HOST1, where no other runs",
		"systemctl start mysql   # on each other host, one after the other",
		`mysql -e "SHOW STATUS LIKE 'wsrep_cluster_size'"   # `+fmt.Sprint(x.Copies))
}

// afterGalera lists what makes copies that follow a Galera cluster in other regions.
func (r Request) afterGalera(x Choice) []string {
	switch {
	case x.Followers == 0:
		return nil
	case r.Flavour == mycnf.MariaDB:
		return []string{
			"# my.cnf of the cluster, so that every node's binary log has the same GTIDs: wsrep_gtid_mode=ON, wsrep_gtid_domain_id=1, server_id=1, log_bin, log_slave_updates=ON, gtid_domain_id=11 to 1N, each its own",
			"mariadb-backup --backup --stream=mbstream | ssh REGION2 'mbstream -x -C /var/lib/mysql && mariadb-backup --prepare --target-dir=/var/lib/mysql && chown -R mysql: /var/lib/mysql'   # on HOST2",
			fmt.Sprintf(`mariadb -h REGION2 -e "SET GLOBAL gtid_slave_pos='GTID'; CHANGE MASTER TO MASTER_HOST='HOST2', MASTER_USER='repl', MASTER_PASSWORD='SECRET', MASTER_SSL=1, MASTER_USE_GTID=slave_pos; START REPLICA"   # each of %d in other regions; HOST2 lost: another MASTER_HOST`, x.Followers),
		}
	}
	return []string{
		"# my.cnf of the cluster: gtid_mode=ON, enforce_gtid_consistency=ON, log_bin, log_replica_updates=ON, the same server_id on all; the copy in another region is restored from one node's xtrabackup",
		fmt.Sprintf(`mysql -h REGION2 -e "CHANGE REPLICATION SOURCE TO SOURCE_HOST='HOST2', SOURCE_USER='repl', SOURCE_PASSWORD='SECRET', SOURCE_SSL=1, SOURCE_AUTO_POSITION=1; START REPLICA"   # each of %d in other regions; HOST2 lost: another SOURCE_HOST`, x.Followers),
	}
}

// drbd lists what makes two disks one, with a third host that only votes, and what moves the server.
func drbd(x Choice) []string {
	disk := "/dev/md/mysql"
	if x.Provider != Own && x.server.option.Volumes == 1 {
		disk = "/dev/DISK1"
	}
	return []string{
		"echo 'resource mysql { net { protocol C; } options { quorum majority; on-no-quorum io-error; } device /dev/drbd0; disk " + disk + "; meta-disk internal; on HOST1 { node-id 0; address IP1:7789; } on HOST2 { node-id 1; address IP2:7789; } on HOST3 { node-id 2; disk none; address IP3:7789; } connection-mesh { hosts HOST1 HOST2 HOST3; } }' > /etc/drbd.d/mysql.res   # on all three",
		"drbdadm create-md mysql   # on HOST1 and HOST2, before there is a filesystem on the disk",
		"drbdadm up mysql   # on all three",
		"drbdadm primary --force mysql && mkfs.xfs /dev/drbd0   # on HOST1",
		"pcs cluster setup db HOST1 HOST2 HOST3 --start --enable",
		"pcs stonith create fence AGENT OPTIONS && pcs property set stonith-enabled=true   # fence_aws, fence_gce, fence_azure_arm, fence_ipmilan; without one a lost host is not told from a silent one",
		"pcs resource create drbd ocf:linbit:drbd drbd_resource=mysql op monitor interval=15s role=Promoted monitor interval=30s role=Unpromoted promotable promoted-max=1 promoted-node-max=1 clone-max=3 clone-node-max=1 notify=true",
		"pcs constraint location drbd-clone rule role=Promoted score=-INFINITY '#uname' eq HOST3 && pcs constraint location db avoids HOST3   # the second once db is there",
		"pcs resource create files ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/var/lib/mysql fstype=xfs options=noatime --group db",
		"pcs resource create address ocf:heartbeat:IPaddr2 ip=ADDRESS --group db && pcs resource create server systemd:mysql --group db",
		"pcs constraint colocation add Started db with Promoted drbd-clone INFINITY && pcs constraint order promote drbd-clone then start db",
	}
}

// ndb lists what makes the nodes that were bought.
func (r Request) ndb(x Choice) []string {
	nodes := 2.0
	if len(x.Bill.Lines) > 0 {
		nodes = x.Bill.Lines[0].Count
	}
	memory := math.Ceil(2 * r.room().GiB() / nodes)
	return []string{
		fmt.Sprintf("# config.ini of MGM1 and MGM2: [ndbd default] NoOfReplicas=2, DataMemory=%.0fG, DataDir=/var/lib/mysql-cluster; [ndb_mgmd] HostName and ArbitrationRank=1 twice; [ndbd] HostName %g times; [mysqld] HostName twice", memory, nodes),
		"ndb_mgmd --config-file=/var/lib/mysql-cluster/config.ini --configdir=/var/lib/mysql-cluster --initial   # on MGM1 and MGM2",
		fmt.Sprintf("ndbmtd --ndb-connectstring=MGM1,MGM2 --initial   # on each of %g data nodes; --initial the first time only: it empties them", nodes),
		"mysqld --ndbcluster --ndb-connectstring=MGM1,MGM2   # on both SQL nodes",
		"ndb_mgm --ndb-connectstring=MGM1,MGM2 --execute=show",
		`mysql -h SQL1 -e "ALTER TABLE db.TABLE ENGINE=NDB"   # each table: another engine holds nothing in the cluster`,
	}
}

// vitess lists what makes the shards. A copy in another region is a replica in that region's cell.
func (r Request) vitess(x Choice) []string {
	const topo = "--topo_implementation etcd2 --topo_global_server_address ETCD1:2379,ETCD2:2379,ETCD3:2379 --topo_global_root /vitess/global"
	list := []string{
		"vtctldclient --server VTCTLD:15999 AddCellInfo --root /vitess/CELL --server-address ETCD1:2379,ETCD2:2379,ETCD3:2379 CELL",
		"vtctldclient --server VTCTLD:15999 CreateKeyspace --durability-policy=semi_sync db",
		fmt.Sprintf("vtctldclient --server VTCTLD:15999 GenerateShardRanges %d   # their names: RANGE below", x.Shards),
		fmt.Sprintf("vttablet %s --tablet-path CELL-UID --init_keyspace db --init_shard RANGE --init_tablet_type replica --port 15100 --grpc_port 16100 --service_map grpc-queryservice,grpc-tabletmanager,grpc-updatestream   # on each of %d servers, %d of a shard, after: mysqlctl --tablet_uid UID --mysql_port 3306 init", topo, x.Shards*x.Copies, x.Copies),
		"vtorc " + topo + "   # elects each shard's primary, and the next one; else: vtctldclient --server VTCTLD:15999 PlannedReparentShard db/RANGE --new-primary CELL-UID",
		"vtctldclient --server VTCTLD:15999 ApplyVSchema --vschema-file vschema.json db   # the sharding key of each table",
		"vtgate " + topo + " --cell CELL --cells_to_watch CELL --tablet_types_to_wait PRIMARY,REPLICA --mysql_server_port 3306 --service_map grpc-vtgateservice   # on two machines",
	}
	if x.Followers > 0 {
		list = append(list, fmt.Sprintf("# in each of %d other regions: AddCellInfo for a cell of its own, REGION2, and a vttablet --tablet-path REGION2-UID for each shard; --durability-policy=semi_sync counts replicas of every cell, cross_cell would wait for another one", x.Followers))
	}
	return list
}

// managed lists what orders a managed database.
func managed(x Choice) []string {
	m, o := x.server.machine, x.server.option
	high := x.Kind == ManagedHA
	choose := func(yes, no string) string {
		if high {
			return yes
		}
		return no
	}
	switch x.Provider {
	case "RDS":
		class := "db." + strings.TrimSuffix(strings.TrimPrefix(m.Name, "rds-"), "-2az")
		storage := "gp3"
		if strings.Contains(o.Volume, "io2") {
			storage = "io2"
		}
		bought := ""
		if storage == "io2" || strings.Contains(o.Name, "provisioned") {
			bought = fmt.Sprintf(" --iops %.0f", o.EachIOPS)
		}
		return []string{fmt.Sprintf("aws rds create-db-instance --db-instance-identifier db --engine mysql --engine-version 8.4 --db-instance-class %s --allocated-storage %.0f --storage-type %s%s %s --storage-encrypted --master-username admin --manage-master-user-password",
			class, o.EachGiB, storage, bought, choose("--multi-az", "--no-multi-az"))}
	case "CloudSQL":
		return []string{fmt.Sprintf("gcloud sql instances create db --database-version=MYSQL_8_4 --edition=enterprise --tier=db-custom-%g-%.0f --availability-type=%s --storage-type=SSD --storage-size=%.0fGB --region=REGION --backup-start-time=02:00 --enable-bin-log",
			m.CPUs, m.Memory.GiB()*1024, choose("REGIONAL", "ZONAL"), o.EachGiB)}
	case "AzureMySQL":
		return []string{fmt.Sprintf("az mysql flexible-server create --resource-group GROUP --name db --tier GeneralPurpose --sku-name Standard_D%gds_v4 --storage-size %.0f --version 8.4 --high-availability %s", m.CPUs, math.Max(o.EachGiB, m.IncludedSize.GiB()), choose("ZoneRedundant", "Disabled"))}
	}
	return []string{"# order " + m.Name + " in the provider's console"}
}

// ownDisks lists what makes a server's own disks one.
func (r Request) ownDisks() []string {
	h, err := r.hardware()
	if err != nil {
		return nil
	}
	var disks []string
	for n := 1; n <= int(h.disks); n++ {
		disks = append(disks, fmt.Sprintf("/dev/DISK%d", n))
	}
	return []string{
		fmt.Sprintf("mdadm --create /dev/md/mysql --name=mysql --level=10 --raid-devices=%d %s", len(disks), strings.Join(disks, " ")),
		"mdadm --detail --brief /dev/md/mysql >> /etc/mdadm/mdadm.conf && update-initramfs -u   # the disks' data are gone; wait for it: mdadm --wait /dev/md/mysql",
	}
}

// filesystem is what the disks of one server get; those under DRBD have theirs above it.
func filesystem() string {
	return "mkfs.xfs /dev/md/mysql && mount -o noatime /dev/md/mysql /var/lib/mysql"
}
