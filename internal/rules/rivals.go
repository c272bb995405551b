package rules

import (
	"fmt"
	"math"

	"david/internal/mycnf"
)

// rivals returns the named baselines for the problem's flavour and version, the server's defaults first.
// Formulas are those of the sources, their corner cases too, and deliberately not made safe.
func rivals(p Problem) []rival {
	list := []rival{defaults(p), david2025(p)}
	if p.Flavour != mycnf.MariaDB && p.Version.AtLeast(8, 0, 14) {
		list = append(list, dedicated(p)...)
	}
	return append(list, kubeblocks(p), perconaPXC(p), perconaPS(p), moco(p), bitpoke(p), rds(p), oracleOperator())
}

func sized(name string, n int64) string { return name + "=" + mycnf.FormatSize(n) }

func counted(name string, n int64) string { return fmt.Sprintf("%s=%d", name, n) }

// defaults returns the server's. MariaDB's as shipped keep no binary log, which the control does.
func defaults(p Problem) rival {
	r := rival{name: "mysql-default", title: "the server's defaults", source: "what the server does with an empty my.cnf"}
	if p.Flavour == mycnf.MariaDB {
		r.name, r.set = "mariadb-default", []string{"skip_log_bin", "sync_binlog=0"}
	}
	return r
}

// david2025 returns the my.cnf of study P1, written for 16 GiB and 4 CPUs, its sizes scaled to the memory.
func david2025(p Problem) rival {
	return rival{name: "david-2025", title: "study P1's my.cnf, its sizes scaled to the memory", source: "study P1 (2025), docs/baselines.md", set: []string{
		sized("innodb_buffer_pool_size", p.Memory*3/4/mib*mib), "innodb_buffer_pool_instances=4", "innodb_old_blocks_time=1000",
		sized("innodb_log_file_size", p.Memory*3/16/mib*mib), "innodb_log_buffer_size=32M", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1",
		"innodb_io_capacity=2000", "innodb_io_capacity_max=4000", "innodb_read_io_threads=4", "innodb_write_io_threads=4",
		"innodb_page_cleaners=4", "innodb_flush_method=O_DIRECT", "innodb_file_per_table=ON", "innodb_open_files=400",
		"table_definition_cache=1400", "table_open_cache=2000", "join_buffer_size=2M", "sort_buffer_size=4M", "read_rnd_buffer_size=2M",
		"read_buffer_size=1M", "tmp_table_size=64M", "max_heap_table_size=64M", "max_connections=150", "thread_cache_size=16",
		"max_prepared_stmt_count=16384"}}
}

// dedicated returns innodb_dedicated_server by the rules of 8.0 and of 8.4, as values. Where the server is
// capped, the switch itself joins: it sizes the server from the node's memory, whatever the cgroup allows.
func dedicated(p Problem) []rival {
	const manual = "MySQL manual, Enabling Automatic InnoDB Configuration for a Dedicated MySQL Server, "
	list := []rival{{name: "dedicated-8.0", title: "innodb_dedicated_server by the rules of 8.0: redo by the memory", source: manual + "8.0",
		set: append(dedicatedRedo80(p), sized("innodb_buffer_pool_size", dedicatedPool(p.Memory)), "innodb_flush_method=O_DIRECT_NO_FSYNC")}}
	node := rival{name: "dedicated-node", title: "innodb_dedicated_server itself, which sees the node's memory and not the cap", source: manual + "8.0",
		set: []string{"innodb_dedicated_server=ON", "innodb_flush_method=O_DIRECT_NO_FSYNC"}}
	if p.Version.AtLeast(8, 4, 0) {
		list = append(list, rival{name: "dedicated-8.4", title: "innodb_dedicated_server by the rules of 8.4, RDS's default there: redo by the CPUs",
			source: manual + "8.4", set: []string{sized("innodb_buffer_pool_size", dedicatedPool(p.Memory)),
				sized("innodb_redo_log_capacity", dedicatedRedo84(p.CPUs))}})
		node.source, node.set = manual+"8.4", node.set[:1]
	}
	if p.Node > p.Memory {
		list = append(list, node)
	}
	return list
}

func dedicatedPool(memory int64) int64 {
	switch {
	case memory < gib:
		return DefaultPool
	case memory <= 4*gib:
		return memory / 2
	}
	return memory / 4 * 3
}

// dedicatedRedo80 follows the buffer pool, which the manual expresses by the memory: 8 GiB and 128 GiB of
// pool are 10.66 and 170.66 GiB of memory.
func dedicatedRedo80(p Problem) []string {
	pool := dedicatedPool(p.Memory)
	if !p.Version.AtLeast(8, 0, 30) {
		return dedicatedFiles(pool)
	}
	memory := float64(p.Memory) / float64(gib)
	redo := 128 * gib
	switch {
	case memory < 2:
		redo = 100 * mib
	case memory <= 4:
		redo = gib
	case pool < 8*gib:
		redo = int64(math.Round(0.75*memory)) * gib / 2
	case pool <= 128*gib:
		redo = int64(math.Round(0.5625*memory)) * gib
	}
	return []string{sized("innodb_redo_log_capacity", redo)}
}

// dedicatedFiles returns the redo log of servers before 8.0.30: files of a size, as many as the pool has GiB.
func dedicatedFiles(pool int64) []string {
	size, files := 2*gib, int64(64)
	switch gibs := float64(pool) / float64(gib); {
	case pool < 8*gib:
		size, files = 512*mib, max(2, int64(math.Round(gibs)))
	case pool <= 128*gib:
		size, files = gib, int64(math.Round(0.75*gibs))
	}
	return []string{sized("innodb_log_file_size", size), counted("innodb_log_files_in_group", files)}
}

// dedicatedRedo84 returns half a GiB a CPU, 16 GiB at most.
func dedicatedRedo84(cpus float64) int64 {
	return min(max(1, int64(cpus))*gib/2, 16*gib)
}

func kubeblocks(p Problem) rival {
	r := rival{name: "kubeblocks", title: "KubeBlocks' template for MySQL 8.0",
		source: "apecloud/kubeblocks pkg/controller/render/builtin_functions.go; apecloud/kubeblocks-addons addons/mysql/config/mysql8.0-config.tpl",
		set: []string{
			counted("max_connections", p.Memory/4/1605632), "thread_stack=262144", "thread_cache_size=60", "table_open_cache=4000",
			"max_prepared_stmt_count=16382", "read_buffer_size=262144", "read_rnd_buffer_size=524288", "join_buffer_size=262144",
			"sort_buffer_size=262144", "back_log=5285", "log_error_verbosity=2", "log_output=FILE", "slow_query_log=ON", "long_query_time=5",
			"general_log=ON", "innodb_doublewrite_batch_size=16", "innodb_doublewrite_pages=32", "innodb_flush_method=O_DIRECT",
			"innodb_io_capacity=200", "innodb_io_capacity_max=2000", "innodb_log_buffer_size=8388608", "innodb_open_files=4000",
			"innodb_purge_threads=1", "innodb_read_io_threads=4", "key_buffer_size=16777216", "binlog_cache_size=32768", "binlog_format=MIXED",
			"binlog_row_image=FULL", "binlog_order_commits=ON", "max_binlog_size=134217728",
			fmt.Sprintf("innodb_buffer_pool_size=%dM", kubeblocksPool(p.Memory, int64(math.Ceil(p.CPUs)))),
			sized("innodb_redo_log_capacity", kubeblocksRedo(p.Memory))}}
	if p.Memory < 8*gib {
		r.set = append(r.set, "performance_schema=OFF")
	}
	return r
}

// kubeblocksPool counts in MiB: 0 and below where the reserve is more than there is.
func kubeblocksPool(memory, cpus int64) int64 {
	m := memory / mib
	switch {
	case memory < gib || cpus < 1:
		return 128
	case memory == gib || cpus == 1:
		return 256
	}
	reserve := min(m/2, 2048) + max(64*cpus, m/64) + m/64 + 285
	pool, step := (m-reserve)*75/100, int64(128)
	if pool > 1024 {
		step = 1024
	}
	return pool / step * step
}

// kubeblocksRedo counts whole GiB of memory. Its 0.6525 and the half GiB of the middle range are its own.
func kubeblocksRedo(memory int64) int64 {
	half := func(share float64) int64 { return int64(math.Round(share*float64(memory/gib))) * gib / 2 }
	switch m := memory / gib; {
	case m < 2:
		return 100 * mib
	case m < 4:
		return half(0.5)
	case m < 11:
		return half(0.75)
	case m < 170:
		return half(0.6525)
	}
	return 128 * gib
}

// bytesPerConnection divides the memory, in Percona's operators and in RDS, to give max_connections.
const bytesPerConnection = 12582880

func perconaPXC(p Problem) rival {
	r := rival{name: "percona-pxc", title: "Percona XtraDB Cluster operator, one node of it without Galera",
		source: "percona/percona-xtradb-cluster-operator pkg/pxc/app/config/autotune.go; percona/percona-docker pxc-80 node.cnf",
		set: []string{counted("max_connections", p.Memory/bytesPerConnection), "innodb_flush_log_at_trx_commit=0", "innodb_flush_method=O_DIRECT",
			"innodb_file_per_table=1", "innodb_autoinc_lock_mode=2", "binlog_format=ROW"}}
	pool := p.Memory / 100 * 75
	if p.Memory-pool < 1_000_000_000 {
		pool = p.Memory / 100 * 50
	}
	pool = (pool + Chunk - 1) / Chunk * Chunk
	if pool > gib { // rounded up even where nothing is left over
		own := pool/8/mib*mib + mib
		pool = 8 * own
		r.set = append(r.set, sized("innodb_buffer_pool_chunk_size", own))
	}
	r.set = append(r.set, sized("innodb_buffer_pool_size", pool))
	return r
}

func perconaPS(p Problem) rival {
	pool, own := p.Memory*50/100, Chunk
	if pool > gib {
		own = pool / 8 / mib * mib
		pool = 8 * own
	} else {
		pool = (pool + Chunk - 1) / Chunk * Chunk
	}
	return rival{name: "percona-ps", title: "Percona Server operator", source: "percona/percona-server-mysql-operator pkg/mysql/config.go",
		set: []string{sized("innodb_buffer_pool_size", pool), sized("innodb_buffer_pool_chunk_size", own),
			counted("max_connections", p.Memory/bytesPerConnection)}}
}

func moco(p Problem) rival {
	pool := max(p.Memory/100*70/mib*mib, 128*mib)
	return rival{name: "moco", title: "MOCO", source: "cybozu-go/moco pkg/mycnf/generator.go", set: []string{
		sized("innodb_buffer_pool_size", pool), "innodb_log_file_size=800M", "innodb_log_files_in_group=2", "back_log=900", "max_connections=100000",
		"max_allowed_packet=1G", "max_heap_table_size=64M", "sort_buffer_size=4M", "join_buffer_size=2M", "thread_cache_size=100",
		"table_open_cache=65536", "table_definition_cache=65536", "transaction_isolation=READ-COMMITTED", "tmp_table_size=64M", "slow_query_log=ON",
		"long_query_time=2", "log_error_verbosity=3", "loose_binlog_transaction_compression=ON", "temptable_use_mmap=OFF",
		"innodb_flush_method=O_DIRECT", "innodb_lock_wait_timeout=60", "innodb_print_all_deadlocks=1",
		"innodb_online_alter_log_max_size=1073741824", "innodb_adaptive_hash_index=ON", "loose_innodb_numa_interleave=ON",
		"innodb_buffer_pool_in_core_file=OFF", "innodb_buffer_pool_dump_at_shutdown=1", "innodb_buffer_pool_load_at_startup=0",
		"innodb_flush_neighbors=0", "innodb_random_read_ahead=OFF", "innodb_read_ahead_threshold=0", "innodb_log_write_ahead_size=512",
		"innodb_undo_log_truncate=OFF", "binlog_format=ROW", "skip_name_resolve=ON"}}
}

func bitpoke(p Problem) rival {
	r := rival{name: "bitpoke", title: "Bitpoke's MySQL operator",
		source: "bitpoke/mysql-operator pkg/internal/mysqlcluster/defaults.go, pkg/controller/mysqlcluster/internal/syncer/config_map.go",
		set: []string{sized("innodb_log_file_size", bitpokeLog(p.Memory)), "innodb_log_files_in_group=2", "innodb_flush_method=O_DIRECT",
			"innodb_flush_log_at_trx_commit=2", "innodb_file_per_table=1", "sync_binlog=1", "binlog_format=ROW", "key_buffer_size=32M",
			"max_allowed_packet=16M", "tmp_table_size=32M", "max_heap_table_size=32M", "max_connections=500", "thread_cache_size=50",
			"open_files_limit=65535", "table_definition_cache=4096", "table_open_cache=4096", "skip_name_resolve=ON"}}
	pool := bitpokePool(p.Memory)
	if pool > 0 {
		r.set = append(r.set, sized("innodb_buffer_pool_size", bitpokeRound(pool)))
	}
	instances := max(1, min(int64(math.Ceil(p.CPUs)), pool/gib))
	r.set = append(r.set, counted("innodb_buffer_pool_instances", instances))
	return r
}

func bitpokeLog(memory int64) int64 {
	switch {
	case memory < gib:
		return 48 * mib
	case memory <= 4*gib:
		return 128 * mib
	case memory <= 8*gib:
		return 512 * mib
	case memory <= 16*gib:
		return gib
	}
	return 2 * gib
}

// bitpokePool returns 0 where it sets none.
func bitpokePool(memory int64) int64 {
	share := func(of float64, less int64) int64 { return int64(of * float64(memory-less)) }
	switch {
	case memory <= 512*mib:
		return 0
	case memory <= gib:
		return share(0.5, 256*mib)
	case memory <= 4*gib:
		return share(0.75, 256*mib)
	}
	return share(0.8, 512*mib)
}

// bitpokeRound returns how it writes a size: in the largest unit of which no more than a thousandth is left
// over.
func bitpokeRound(n int64) int64 {
	for _, unit := range []int64{gib, mib, 1 << 10} {
		if n >= unit && n%unit <= n/1000 {
			return n / unit * unit
		}
	}
	return n
}

func rds(p Problem) rival {
	return rival{name: "rds-8.0", title: "the default parameter group of RDS for MySQL 8.0",
		source: "Amazon RDS User Guide, default parameter group of mysql8.0; study P2 for the redo log",
		set: []string{sized("innodb_buffer_pool_size", p.Memory/4*3), counted("max_connections", p.Memory/bytesPerConnection),
			"innodb_redo_log_capacity=100M", "innodb_flush_method=O_DIRECT"}}
}

func oracleOperator() rival {
	return rival{name: "oracle-operator", title: "Oracle's MySQL operator, which sets nothing that matters here",
		source: "mysql/mysql-operator mysqloperator/controller/innodbcluster/cluster_objects.py"}
}
