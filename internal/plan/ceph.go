package plan

import (
	"fmt"
	"math"

	"david/internal/price"
)

// Ratio is what a Ceph pool is planned with: study P4's figure beside today's.
type Ratio struct{ What, Then, Today, Source string }

// Ratios lists them.
func Ratios() []Ratio {
	return []Ratio{
		{"OSDs on an NVMe disk", "4", "1", "Red Hat Ceph Storage 9, Operations Guide: do not deploy multiple OSDs per device for NVMe SSDs (seen in excerpts)"},
		{"physical cores for an NVMe disk", "10, more NVMe per core is counterproductive", "10 is planned with; Ceph's own minimum is 1 to 2 for an OSD, and it counts IOPS per core", "study P4; Ceph documentation, hardware recommendations"},
		{"memory of an OSD", "not said", "4 GiB (osd_memory_target) and more where there is more; 16 GiB of a node are left for the rest", "Ceph documentation, BlueStore configuration"},
		{"replicas", "2 or 3", "3, min_size 2", "Ceph documentation, pools"},
		{"monitors", "3", "3; 5 from five nodes on, so that two may be lost", "Ceph documentation, monitors; docs/storage.md"},
		{"failure domain", "host", "host; rack or room where there are three", "Ceph documentation, CRUSH maps"},
		{"nodes at least", "not said (8 in the reference)", "5: four at 70 % would fill to 93 % without one of them, and Ceph copies nothing to a disk above 90 %", "docs/storage.md"},
		{"network", "10 Gbit/s", "10 Gbit/s at least, 25 for NVMe; two networks or none: what clients write crosses it three times", "study P4; Ceph documentation, hardware recommendations"},
		{"room that is filled", "70 %: 30 IOPS/GB at 14 %, slightly below at 87 %", "70 %; nearfull warns at 85 %", "study P4; Ceph documentation, storage capacity"},
	}
}

// Row writes the ratio as docs/plan.md has it.
func (r Ratio) Row() string {
	return "| " + r.What + " | " + r.Then + " | " + r.Today + " | " + r.Source + " |"
}

// Became is a setting of study P4's Ceph, and what became of it.
type Became struct{ Then, Today, Source string }

// FileStore lists them: FileStore is gone since Reef.
func FileStore() []Became {
	return []Became{
		{"FileStore on XFS", "gone: BlueStore writes to the device itself", "Ceph Reef release notes"},
		{"osd_op_threads = 32", "gone: osd_op_num_shards_ssd (8) times osd_op_num_threads_per_shard_ssd (2); leave the defaults", "Ceph configuration reference"},
		{"osd_op_num_shards = 5", "8 for flash by default (osd_op_num_shards_ssd); a restart of the OSD", "Ceph configuration reference"},
		{"filestore_queue_max_ops, filestore_queue_max_bytes, filestore_max_sync_interval raised", "gone: bluestore_throttle_bytes (64 MiB) and bluestore_throttle_deferred_bytes (128 MiB); leave the defaults", "IBM Storage Ceph, BlueStore configuration options"},
		{"osd_journal_size of 1 GB", "gone: small writes go through RocksDB's log; on all flash no device of its own", "Ceph documentation, BlueStore configuration"},
		{"background work throttled by hand", "osd_op_queue mclock_scheduler with osd_mclock_profile high_client_ops (default balanced); see to osd_mclock_max_capacity_iops_ssd, which OSDs measure when they start, and mis-measure (ceph PR #59743)", "Ceph documentation, mClock"},
		{"tcmalloc with a larger cache", "osd_memory_target decides; the packages set TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES to 128 MiB", "Ceph documentation, BlueStore configuration"},
		{"net.core.rmem_max and wmem_max = 125829120, netdev_max_backlog = 10000", "to be measured: docs/kernel.md says when they matter", "docs/kernel.md"},
		{"vm.swappiness = 1", "as it was, on nodes with swap at all", "docs/kernel.md"},
		{"tuned profile throughput-performance", "as it was: it sets the CPU governor", "study P4"},
		{"XFS with barriers for MySQL on RBD, O_DIRECT", "as it was; barriers cannot be switched off any more", "xfs(5)"},
		{"several doublewrite buffers for MySQL", "innodb_doublewrite_files is 2 by default, and to be measured; MariaDB has one", "MySQL Reference Manual, InnoDB options" + recall},
		{"a buffer pool of 20 % of the data for uniform access", "to be measured: david study p4 has 5 to 80 %", "docs/studies/p4.md"},
		{"innodb_flush_log_at_trx_commit = 0 where a second's loss is acceptable", "never: david's durability lock", "docs/method.md"},
	}
}

// Row writes it as docs/plan.md has it.
func (b Became) Row() string { return "| " + b.Then + " | " + b.Today + " | " + b.Source + " |" }

// osds tells how many OSDs a node has: one a disk, as far as its cores reach. It is an error where they reach for none, or its
// memory for none of them.
func (h hardware) osds() (float64, error) {
	disks := math.Floor(min(h.disks, h.cores/coresPerDisk))
	switch least := cephSystem + disks*leastOSD; {
	case h.disks < 1:
		return 0, fmt.Errorf("a Ceph node has an NVMe disk at least, and --server-disks is %g", h.disks)
	case disks < 1:
		return 0, fmt.Errorf("a Ceph node takes %d cores for an NVMe disk (study P4), and --server-cpus is %g", coresPerDisk, h.cores)
	case h.memory < least:
		return 0, fmt.Errorf("%g OSDs of 4 GiB each take a Ceph node of %s, 16 GiB of them for monitor, manager and the system, and --server-memory is %s", disks, price.GiB(least/(1<<30)), price.GiB(h.memory/(1<<30)))
	}
	return disks, nil
}

// What a node's memory is for, in bytes.
const (
	cephSystem = 16 << 30 // monitor, manager and the system
	leastOSD   = 4 << 30
)

// poolWrites returns the writes/s of pages that a pool of such nodes does: what their disks do, or their networks, which each
// write crosses three times.
func (h hardware) poolWrites(nodes, osds float64) float64 {
	return min(nodes*osds*h.iops/replicas, nodes*h.network/(replicas*page*8))
}

// osdMemory renders what an OSD may have for a cache: what its node's memory leaves for it.
func (h hardware) osdMemory() (string, error) {
	disks, err := h.osds()
	if err != nil {
		return "", err
	}
	memory := max(leastOSD, 0.9*(h.memory-cephSystem)/disks)
	return fmt.Sprintf("ceph config set osd osd_memory_target %.0f   # %s; %g OSDs on a node", math.Floor(memory), price.GiB(math.Floor(memory/(1<<30))), disks), nil
}

// cephSettings renders today's settings; memory is the line of what an OSD may have.
func cephSettings(memory string) []string {
	return []string{
		memory,
		"ceph config set osd osd_mclock_profile high_client_ops   # the default is balanced: recovery takes half",
		"ceph config show osd.0 osd_mclock_max_capacity_iops_ssd   # far from what fio gives for 4 KiB random writes? set it by hand",
		"ceph osd pool create mysql && ceph osd pool set mysql size 3 && ceph osd pool set mysql min_size 2 && rbd pool init mysql",
		"rbd create mysql/data --size SIZE --image-feature layering,exclusive-lock,object-map,fast-diff,deep-flatten",
	}
}

// CephSettings returns today's settings for nodes as figures describe them: of their disks, cores and memory all
// or none is given.
func (r Request) CephSettings() ([]string, error) {
	r = r.withDefaults()
	if err := r.checkFigures(); err != nil {
		return nil, err
	}
	var h hardware
	var missing error
	given := 0
	for _, part := range []struct {
		name string
		to   *float64
	}{{"server-cpus", &h.cores}, {"server-disks", &h.disks}, {"server-memory", &h.memory}} {
		x, err := r.known(part.name)
		switch *part.to = x; {
		case err == nil:
			given++
		case missing == nil:
			missing = err
		}
	}
	switch {
	case given == 0:
		return cephSettings("ceph config set osd osd_memory_target BYTES   # 4 GiB and more: --server-memory, --server-cpus and --server-disks of a node tell how much"), nil
	case missing != nil:
		return nil, missing
	}
	memory, err := h.osdMemory()
	if err != nil {
		return nil, err
	}
	return cephSettings(memory), nil
}
