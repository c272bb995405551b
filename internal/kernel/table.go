package kernel

import "math"

// Table lists the settings of the published studies P1 and P4, and what belongs to them: huge pages, NUMA
// balancing, the data's disk. Within its bounds each value is one that some kernel has by default, or some
// study set, so that what david changed can be set back.
func Table() []Setting {
	var all []Setting
	for _, part := range [][]Setting{memory(), files(), sockets(), tcp(), disks()} {
		all = append(all, part...)
	}
	return all
}

func memory() []Setting {
	const vm = "Linux, admin-guide/sysctl/vm.rst"
	return []Setting{{
		Name: "vm.swappiness", path: "proc/sys/vm/swappiness", P1: "10", P4: "1", values: bounds{least: 0, most: 200},
		matters: swap, want: above(10),
		Reason: "a page of the buffer pool that was swapped out costs two I/Os where a page read again costs one",
		Risk:   "near 0 the kernel kills processes for memory sooner", Source: vm + "; studies P1, P4",
	}, {
		Name: "vm.vfs_cache_pressure", path: "proc/sys/vm/vfs_cache_pressure", P1: "50", values: bounds{least: 1, most: 1000},
		matters: little("the names and inodes of a server's tables are a few MiB, and stay cached while they are used"),
		Reason:  "a server keeps its tables open (table_open_cache) and its pages in the buffer pool",
		Risk:    "low values keep memory in caches of names that a server does not need", Source: vm,
	}, {
		Name: "vm.dirty_ratio", path: "proc/sys/vm/dirty_ratio", P1: "15", values: bounds{least: 1, most: 90},
		matters: dirty("vm.dirty_bytes", "proc/sys/vm/dirty_bytes"), bars: dirtyBytes("vm.dirty_bytes", "proc/sys/vm/dirty_bytes"),
		Reason: pastCache,
		Risk:   "low values make backups and imports wait for the disk; setting it drops vm.dirty_bytes", Source: vm,
	}, {
		Name: "vm.dirty_background_ratio", path: "proc/sys/vm/dirty_background_ratio", P1: "5", values: bounds{least: 0, most: 80},
		matters: dirty("vm.dirty_background_bytes", "proc/sys/vm/dirty_background_bytes"), bars: dirtyBytes("vm.dirty_background_bytes", "proc/sys/vm/dirty_background_bytes"),
		Reason: pastCache,
		Risk:   "low values write the same page more often; setting it drops vm.dirty_background_bytes", Source: vm,
	}, {
		Name: "vm.dirty_expire_centisecs", path: "proc/sys/vm/dirty_expire_centisecs", P1: "500", values: bounds{least: 100, most: 360000},
		matters: little(pastCache),
		Reason:  "what a server has to have on disk it flushes itself; the age of other pages is nobody's latency; " + throughCache,
		Risk:    "low values write temporary files that would have been deleted first", Source: vm,
	}, {
		Name: "transparent_hugepage", path: "sys/kernel/mm/transparent_hugepage/enabled", AtStart: true, values: bounds{words: []string{"always", "madvise", "never"}},
		matters: some("it decides whether the kernel makes huge pages of a buffer pool that did not ask for them"), want: instead("always", "madvise"),
		Reason: "with always, memory that was given back a little at a time stays, and compaction stalls a thread now and then; madvise leaves it to programs that ask",
		Risk:   "a server of huge tables that fit into memory may lose some TLB hits", Source: "Linux, admin-guide/mm/transhuge.rst",
		lasting: "the kernel parameter transparent_hugepage=VALUE, or in /etc/tmpfiles.d: w /sys/kernel/mm/transparent_hugepage/enabled - - - - VALUE",
	}, {
		Name: "kernel.numa_balancing", path: "proc/sys/kernel/numa_balancing", values: bounds{least: 0, most: 3},
		matters: nodes, want: above(0),
		Reason: "every thread touches all of a buffer pool, so that no node is its place; sampling it costs page faults (innodb_numa_interleave=ON spreads it)",
		Risk:   "other programs of the machine lose their balancing", Source: "Linux, admin-guide/sysctl/kernel.rst; MySQL manual, innodb_numa_interleave",
	}}
}

// fewFiles tells of a limit of file handles that it is lower than study P1's.
func fewFiles(now, _ uint64) bool { return now < 65536 }

func files() []Setting {
	const mostAIO = 1 << 24
	const doc = "Linux, admin-guide/sysctl/fs.rst"
	return []Setting{{
		Name: "fs.file-max", path: "proc/sys/fs/file-max", P1: "65536", values: bounds{least: 8192, most: math.MaxInt64},
		matters: inUse("file handles", "proc/sys/fs/file-nr", "proc/sys/fs/file-max"), want: raised(fewFiles, "proc/sys/fs/file-nr", 65536, math.MaxInt64), bars: used("proc/sys/fs/file-nr", "file handles"),
		Reason: "the kernel sizes it by the memory, and study P1's value is less than that today; a server's own limit is open_files_limit",
		Risk:   "lowered, every program of the machine fails to open files once it is reached", Source: doc,
	}, {
		Name: "fs.aio-max-nr", path: "proc/sys/fs/aio-max-nr", AtStart: true, P1: "1048576", values: bounds{least: 4096, most: mostAIO},
		matters: inUse("asynchronous requests", "proc/sys/fs/aio-nr", "proc/sys/fs/aio-max-nr"), want: raised(scarce, "proc/sys/fs/aio-nr", 1<<20, mostAIO), bars: used("proc/sys/fs/aio-nr", "asynchronous requests"),
		Reason: "a server takes some thousand when it starts, and without them starts without native I/O or not at all; it is a limit, and no server is faster for a higher one",
		Risk:   "each request that is taken pins kernel memory", Source: doc + "; MySQL manual, innodb_use_native_aio",
	}}
}

func sockets() []Setting {
	const doc = "Linux, admin-guide/sysctl/net.rst"
	return []Setting{{
		Name: "net.core.somaxconn", path: "proc/sys/net/core/somaxconn", AtStart: true, P1: "4096", values: bounds{least: 128, most: 65535},
		matters: some("a server's back_log, which is max_connections in MySQL 8, is cut to it when it begins to listen; that of unix sockets too"), want: below(4096),
		Reason: "4096 is the kernel's default since 5.4; with the 128 before, a thousand clients that connect at once were refused or waited a second",
		Risk:   "a longer queue hides a server that does not keep up; a server sees it when it starts", Source: doc + "; MySQL worklog 9704 (back_log)",
	}, {
		Name: "net.core.netdev_max_backlog", path: "proc/sys/net/core/netdev_max_backlog", P1: "4000", P4: "10000", values: bounds{least: 100, most: 1000000},
		matters: dropped, want: whereDropped(4000),
		Reason: "it holds packets that arrive faster than a CPU takes them, and matters once some were dropped for it (/proc/net/softnet_stat, column 2)",
		Risk:   "a longer queue makes latency of what would be loss", Source: doc,
	}, {
		Name: "net.core.rmem_max", path: "proc/sys/net/core/rmem_max", P1: "16777216", P4: "125829120", values: bounds{least: 65536, most: 1 << 30},
		matters: little("it limits what a program asks for by SO_RCVBUF, and MySQL's do not ask: TCP sizes itself by net.ipv4.tcp_rmem"),
		Reason:  "TCP's own limit is net.ipv4.tcp_rmem, which the studies leave",
		Risk:    "any program can take that much kernel memory for each socket", Source: doc + "; Linux, tcp(7)",
	}, {
		Name: "net.core.wmem_max", path: "proc/sys/net/core/wmem_max", P1: "16777216", P4: "125829120", values: bounds{least: 65536, most: 1 << 30},
		matters: little("it limits what a program asks for by SO_SNDBUF, and MySQL's do not ask: TCP sizes itself by net.ipv4.tcp_wmem"),
		Reason:  "TCP's own limit is net.ipv4.tcp_wmem, which the studies leave",
		Risk:    "any program can take that much kernel memory for each socket", Source: doc + "; Linux, tcp(7)",
	}}
}

func tcp() []Setting {
	const doc = "Linux, networking/ip-sysctl.rst"
	const dead = "it finds peers that are gone; no connection that is used is faster for it, and those by the unix socket do not have it"
	const idle = "lower it where a load balancer or a firewall forgets connections that are idle for less than two hours; throughput is the same"
	return []Setting{{
		Name: "net.ipv4.tcp_fin_timeout", path: "proc/sys/net/ipv4/tcp_fin_timeout", P1: "30", values: bounds{least: 5, most: 120},
		matters: little("it is about connections that the other side never closed; TIME_WAIT, which it is taken for, is always 60 s"),
		Reason:  "connections of a pool stay, and one that is closed by both sides never waits for it",
		Risk:    "low values reset a slow peer", Source: doc,
	}, {
		Name: "net.ipv4.tcp_keepalive_time", path: "proc/sys/net/ipv4/tcp_keepalive_time", P1: "300", values: bounds{least: 30, most: 86400},
		matters: little(dead), Reason: idle, Risk: "low values end connections over a short outage", Source: doc,
	}, {
		Name: "net.ipv4.tcp_keepalive_probes", path: "proc/sys/net/ipv4/tcp_keepalive_probes", P1: "5", values: bounds{least: 1, most: 50},
		matters: little(dead), Reason: idle, Risk: "low values end connections over a short outage", Source: doc,
	}, {
		Name: "net.ipv4.tcp_keepalive_intvl", path: "proc/sys/net/ipv4/tcp_keepalive_intvl", P1: "15", values: bounds{least: 1, most: 600},
		matters: little(dead), Reason: idle, Risk: "low values end connections over a short outage", Source: doc,
	}, {
		Name: "net.ipv4.tcp_max_syn_backlog", path: "proc/sys/net/ipv4/tcp_max_syn_backlog", P1: "4096", values: bounds{least: 128, most: 1 << 20},
		matters: syncookies,
		Reason:  "the queue of a listening socket is as long as its backlog; this is looked at only without SYN cookies",
		Risk:    "without SYN cookies a longer queue takes memory in a flood", Source: doc + "; net/ipv4/tcp_input.c, tcp_conn_request",
	}, {
		Name: "net.ipv4.tcp_tw_reuse", path: "proc/sys/net/ipv4/tcp_tw_reuse", P1: "1", values: bounds{least: 0, most: 2},
		matters: little("it is for whoever opens connections: a server opens none, and 2, for loopback, is the default since Linux 4.19"),
		Reason:  "the kernel's documentation advises against changing it without an expert; a pool of connections does not need it",
		Risk:    "little: it is for outgoing connections, and works only where both sides have TCP timestamps", Source: doc,
	}, {
		Name: "net.ipv4.ip_local_port_range", path: "proc/sys/net/ipv4/ip_local_port_range", P1: "10000 65000", values: bounds{least: 1024, most: 65535, ports: true},
		matters: little("it is for whoever opens connections: the default has 28,232 to one address at a time, or 470 new ones a second"),
		Reason:  "a client that needs more opens a connection for every statement: a pool is the remedy",
		Risk:    "a program that listens above 10000 finds its port taken now and then", Source: doc,
	}, {
		Name: "net.ipv4.tcp_slow_start_after_idle", path: "proc/sys/net/ipv4/tcp_slow_start_after_idle", P1: "0", values: bounds{least: 0, most: 1},
		matters: little("it slows results above some 14 KiB after a pause, over a network; not on loopback, nor by the unix socket"),
		Reason:  "transactions have small results; where rows of many KiB cross a network between zones, measure it",
		Risk:    "a burst after a pause can meet a network that has become slower", Source: doc + "; RFC 2861, RFC 6928",
	}}
}

func disks() []Setting {
	return []Setting{{
		Name: "disk.scheduler", path: "sys/block/%s/queue/scheduler", values: bounds{words: []string{"none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"}},
		matters: scheduler, want: simpler, bars: offered,
		Reason: "study P1 found no gain; only bfq and cfq, which are for desktops, cost a database throughput",
		Risk:   "under none a stream of reads can hold up writes on a slow disk", Source: "Linux, block/switching-sched.rst; study P1, step 4",
		lasting: `a udev rule: ACTION=="add|change", KERNEL=="DISK", ATTR{queue/scheduler}="VALUE"`,
	}, {
		Name: "disk.read_ahead_kb", path: "sys/block/%s/queue/read_ahead_kb", values: bounds{least: 0, most: 65536},
		matters: little("the kernel reads nothing ahead for O_DIRECT; InnoDB does so itself (innodb_read_ahead_threshold); " + throughCache),
		Reason:  "it is for files that are read through the page cache from end to end, as backups and binary logs are; " + throughCache,
		Risk:    "high values read what nobody asked for from a disk with few IOPS", Source: "Linux, ABI/stable/sysfs-block",
		lasting: `a udev rule: ACTION=="add|change", KERNEL=="DISK", ATTR{queue/read_ahead_kb}="VALUE"`,
	}}
}
