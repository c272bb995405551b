package audit

import (
	"fmt"

	"david/internal/mycnf"
	"david/internal/rules"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// What counts as a pool too small: less than half of what the memory allows; pages missed in more than one of
// a hundred looks, once there were enough of them to tell.
const (
	poolShare  = 0.5
	missShare  = 0.01
	fewLookups = 100_000
)

func memoryRules() []Rule {
	const manual = "MySQL manual, How MySQL Uses Memory"
	return []Rule{
		{
			Name: "buffer-pool-small", Severity: Slow, Variables: []string{"innodb_buffer_pool_size"}, find: poolSmall,
			When:   "the pool is less than half of what the memory allows, or 128 MiB at most where the memory is not seen; a note where the data fit into it",
			Reason: "pages that are not in the pool are read from the disk: a low hit rate costs most of the throughput",
			Source: "study P2, low hit rate; MySQL manual, Configuring InnoDB Buffer Pool Size; 75 % of the memory at most",
		},
		{
			Name: "buffer-pool-misses", Severity: Slow, Needs: []Need{NeedStatus}, find: poolMisses,
			When:   "more than 1 % of at least 100,000 page requests since the start were reads from the disk, with a pool as large as the memory allows",
			Reason: "the pages in use do not fit: more memory, or fewer pages to read, is what helps",
			Source: "study P2, low hit rate; MySQL manual, InnoDB Buffer Pool Optimization",
		},
		{
			Name: "buffer-pool-too-large", Severity: Conflict, Needs: []Need{NeedMemory}, Variables: []string{"innodb_buffer_pool_size"}, find: poolLarge,
			When:   "the pool (1.05 times its size) and 540 MiB for the server are more than the memory",
			Reason: "the server swaps, or the kernel kills it, once the pool is full",
			Source: manual + "; the server's own share as measured on an idle MySQL 9.7",
		},
		{
			Name: "memory-overcommitted", Severity: Conflict, Needs: []Need{NeedMemory}, find: overcommitted,
			Variables: append([]string{"max_connections", "innodb_log_buffer_size"}, sessionBuffers()...),
			When:      "the server, its pool and max_connections with one of each session buffer are more than 90 % of the memory",
			Reason:    "with all connections busy the kernel may kill the server",
			Source:    manual + "; the safe bound is 90 % of the memory",
		},
		{
			Name: "dedicated-in-container", Severity: Conflict, Needs: []Need{NeedRAM}, Variables: []string{"innodb_dedicated_server"}, find: dedicated,
			When:   "innodb_dedicated_server is ON, container_aware is not, and the server may use less memory than the machine has",
			Reason: "it sizes the pool by the machine's memory, not by the container's, and is killed for it",
			Source: "MySQL 9.7.4 in a cgroup of 4 GiB chose a pool of 17.25 GiB, with container_aware=ON 2 GiB",
		},
		{
			Name: "container-unaware", Severity: Note, Needs: []Need{NeedRAM}, Variables: []string{"container_aware"}, find: unaware,
			When:   "container_aware is OFF (the default from MySQL 9.3 on) and the server may use less memory than the machine has",
			Reason: "whatever the server sizes by itself it sizes by the whole machine: threads, and a dedicated server's pool",
			Source: "MySQL 9.3 manual, container_aware",
		},
		{
			Name: "buffer-pool-instances", Severity: Conflict, Variables: []string{"innodb_buffer_pool_size"}, find: instances,
			When:   "there is more than one buffer pool instance, and less than 1 GiB for each",
			Reason: "small instances only split the free pages; below a pool of 1 GiB the server uses one",
			Source: "MySQL manual, Configuring Multiple Buffer Pool Instances",
		},
	}
}

// sessionBuffers returns what a connection may allocate, one of each.
func sessionBuffers() []string {
	return []string{"thread_stack", "sort_buffer_size", "join_buffer_size", "read_buffer_size", "read_rnd_buffer_size", "net_buffer_length", "binlog_cache_size"}
}

func poolSmall(in Input) []hit {
	pool, ok := in.size("innodb_buffer_pool_size")
	if !ok || !in.poolCouldGrow(pool) {
		return nil
	}
	h := hit{variable: "innodb_buffer_pool_size", evidence: in.says("innodb_buffer_pool_size")}
	if in.Machine.Memory > 0 {
		h.line = in.advised("innodb_buffer_pool_size")
		h.evidence += fmt.Sprintf(", %.2g %% of %s of memory", 100*float64(pool)/float64(in.Machine.Memory), bytesText(in.Machine.Memory))
	} else {
		h.evidence += "; the memory is not seen, so no size is proposed"
	}
	if in.Machine.DataSeen {
		h.evidence += "; data: " + bytesText(in.Machine.Data)
		if in.Machine.Data <= pool {
			h.severity, h.evidence = Note, h.evidence+", which fit into it as yet"
		}
	}
	if share, ok := in.misses(); ok {
		h.evidence += fmt.Sprintf("; %.2g %% of page requests read from the disk", 100*share)
	}
	return []hit{h}
}

// poolCouldGrow tells whether the pool is far below what the memory allows.
func (in Input) poolCouldGrow(pool int64) bool {
	if in.Machine.Memory == 0 {
		return pool <= 128*mib
	}
	return float64(pool) < poolShare*float64(rules.BufferPool(in.problem()))
}

// misses returns the share of page requests that had to read from the disk; ok is false where there were too
// few to tell.
func (in Input) misses() (share float64, ok bool) {
	requests := in.counter("innodb_buffer_pool_read_requests")
	if requests < fewLookups {
		return 0, false
	}
	return in.counter("innodb_buffer_pool_reads") / requests, true
}

func poolMisses(in Input) []hit {
	pool, seen := in.size("innodb_buffer_pool_size")
	share, ok := in.misses()
	if !seen || !ok || share <= missShare || in.poolCouldGrow(pool) {
		return nil
	}
	evidence := fmt.Sprintf("%.2g %% of %.3g page requests read from the disk; %s", 100*share, in.counter("innodb_buffer_pool_read_requests"),
		in.says("innodb_buffer_pool_size"))
	if in.Machine.DataSeen {
		evidence += "; data: " + bytesText(in.Machine.Data)
	}
	return []hit{{variable: "innodb_buffer_pool_size", evidence: evidence}}
}

func poolLarge(in Input) []hit {
	pool, ok := in.size("innodb_buffer_pool_size")
	if !ok || !in.poolTooLarge(pool) {
		return nil
	}
	return []hit{{variable: "innodb_buffer_pool_size", line: in.advised("innodb_buffer_pool_size"), evidence: fmt.Sprintf(
		"%s: the server with it takes %s of %s", in.says("innodb_buffer_pool_size"), bytesText(in.server(pool, 0)), bytesText(in.Machine.Memory))}}
}

func (in Input) poolTooLarge(pool int64) bool {
	return pool > in.Machine.Memory || in.server(pool, 0) > in.Machine.Memory
}

// server returns what the server takes with a pool and other buffers, in bytes.
func (in Input) server(pool, others int64) int64 {
	return rules.ServerMemory(pool, others, in.Variables["performance_schema"])
}

func overcommitted(in Input) []hit {
	pool, seen := in.size("innodb_buffer_pool_size")
	connections, ok := in.size("max_connections")
	buffer, each, ceiling := in.sum("innodb_log_buffer_size"), in.sum(sessionBuffers()...), rules.MemoryCeiling(in.Machine.Memory)
	if !seen || !ok || each == 0 || in.poolTooLarge(pool) {
		return nil
	}
	server := in.server(pool, buffer)
	room := max(0, (ceiling-server)/each)
	if connections <= room {
		return nil
	}
	evidence := fmt.Sprintf("%d connections of %s each and %s for the server with a pool of %s are %.3g GiB of %s", connections, bytesText(each),
		bytesText(server), bytesText(pool), (float64(server)+float64(connections)*float64(each))/float64(gib), bytesText(in.Machine.Memory))
	used := in.counter("max_used_connections")
	if used > 0 {
		evidence += fmt.Sprintf("; %.0f were used at most", used)
	}
	h := hit{variable: "max_connections", evidence: evidence, line: line("max_connections", text(max(1, room)))}
	if smaller := rules.BufferPool(in.problem()); room < max(minConnections, int64(used)) && smaller < pool {
		h.variable, h.line = "innodb_buffer_pool_size", in.advised("innodb_buffer_pool_size")
	}
	return []hit{h}
}

// minConnections is the servers' default: fewer are not proposed.
const minConnections = 151

// boxed tells whether the server may use clearly less memory than the machine has.
func (in Input) boxed() bool {
	return in.Machine.Memory > 0 && float64(in.Machine.Memory) < 0.95*float64(in.Machine.RAM)
}

func (in Input) box() string {
	return fmt.Sprintf("%s of the machine's %s", bytesText(in.Machine.Memory), bytesText(in.Machine.RAM))
}

func dedicated(in Input) []hit {
	if !in.is("innodb_dedicated_server", "ON") || in.is("container_aware", "ON") || !in.boxed() {
		return nil
	}
	return []hit{{variable: "innodb_dedicated_server", line: line("innodb_dedicated_server", "OFF"),
		evidence: in.says("innodb_dedicated_server") + "; the server may use " + in.box()}}
}

func unaware(in Input) []hit {
	if !in.is("container_aware", "OFF") || !in.boxed() {
		return nil
	}
	return []hit{{variable: "container_aware", line: line("container_aware", "ON"),
		evidence: in.says("container_aware") + "; the server may use " + in.box()}}
}

func instances(in Input) []hit {
	n, ok := in.size("innodb_buffer_pool_instances")
	pool, seen := in.size("innodb_buffer_pool_size")
	if _, has := mycnf.Lookup("innodb_buffer_pool_instances", in.Flavour, in.Version); !has || !ok || !seen || n <= 1 || pool/n >= gib {
		return nil
	}
	return []hit{{variable: "innodb_buffer_pool_instances", line: line("innodb_buffer_pool_instances", text(max(1, pool/gib))),
		evidence: fmt.Sprintf("%d instances share a pool of %s: %s each", n, bytesText(pool), bytesText(pool/n))}}
}
