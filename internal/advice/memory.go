package advice

import (
	"fmt"

	"david/internal/mycnf"
	"david/internal/rules"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// What counts as a pool too small: less than half of what it could be costs throughput, less than ten
// elevenths is worth a note. Pages missed count in more than one of a hundred looks, once there were enough
// of them to tell.
const (
	poolShare  = 0.5
	poolNote   = 1.1
	freeNote   = 1.25 // bounded by what is free: four fifths of that are taken, and of the last fifth no more
	missShare  = 0.01
	fewLookups = 100_000
)

// The rules about a server that is killed for memory.
const (
	poolLargeRule     = "buffer-pool-too-large"
	buffersRule       = "session-buffers-large"
	overcommittedRule = "memory-overcommitted"
	globalsRule       = "global-buffers-large"
	dedicatedRule     = "dedicated-in-container"
)

func memoryRules() []Rule {
	const manual = "MySQL manual, How MySQL Uses Memory"
	return []Rule{
		{
			Name: "buffer-pool-small", Severity: Slow, Variables: []string{"innodb_buffer_pool_size"}, find: poolSmall,
			When:     "the pool is less than half of what the memory allows and the data (and a quarter more) need, a note where it is a tenth less; 128 MiB at most where the memory is not seen; never where the data fit into it",
			Reason:   "pages that are not in the pool are read from the disk: a low hit rate costs most of the throughput",
			Source:   "study P2, low hit rate; MySQL manual, Configuring InnoDB Buffer Pool Size; 75 % of the memory at most",
			Risk:     "memory that nobody else has then",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "buffer-pool-misses", Severity: Slow, Needs: []Need{NeedStatus}, find: poolMisses,
			When:   "more than 1 % of at least 100,000 page requests since the start were reads from the disk, with a pool as large as the memory allows",
			Reason: "the pages in use do not fit: more memory, or fewer pages to read, is what helps",
			Source: "study P2, low hit rate; MySQL manual, InnoDB Buffer Pool Optimization",
		},
		{
			Name: poolLargeRule, Severity: Down, Needs: []Need{NeedMemory}, Variables: []string{"innodb_buffer_pool_size"}, find: poolLarge,
			When:     "the pool (1.05 times its size) and 540 MiB for the server are more than the memory",
			Reason:   "the server swaps, or the kernel kills it, once the pool is full",
			Source:   manual + "; the server's own share as measured on an idle MySQL 9.7",
			Risk:     "more pages are read from the disk",
			Measured: "no: arithmetic; 540 MiB were measured on an idle server",
		},
		{
			Name: buffersRule, Severity: Conflict, Needs: []Need{NeedMemory}, find: largeBuffers, Variables: sessionBuffers(),
			When: "a session buffer is above 4 MiB, and with all connections busy these take more than a quarter of the memory, " +
				"or the server more than 90 % of it; down where all together are more than the memory",
			Reason:   "each connection may take one of each, or several: it is memory that the buffer pool should have, and large ones cost time to allocate; give them to the session that needs them",
			Source:   manual,
			Risk:     "large sorts and joins go to the disk, unless their session SETs more",
			Measured: "no: arithmetic",
		},
		{
			Name: globalsRule, Severity: Conflict, Needs: []Need{NeedMemory}, find: largeGlobals, Variables: []string{"key_buffer_size", "aria_pagecache_buffer_size"},
			When: "with MyISAM's key buffer, Aria's page cache (both beyond their defaults) and the query cache the server takes more than 90 % of the memory " +
				"(down: than all of it), and no counter shows that they were filled beyond that",
			Reason:   "they are of no use to InnoDB tables: it is memory that the buffer pool and connections should have",
			Source:   manual,
			Risk:     "MyISAM's and Aria's tables are read from the disk more",
			Measured: "no: arithmetic",
		},
		{
			Name: overcommittedRule, Severity: Conflict, Needs: []Need{NeedMemory}, find: overcommitted,
			Variables: append([]string{"max_connections", "innodb_log_buffer_size"}, sessionBuffers()...),
			When: "the server, its pool, other memory that all connections share, and max_connections with one of each session buffer (2 MiB at least, large ones at their default) are more " +
				"than 90 % of the memory (down: than all of it): connections beyond 151 and those used give way first, then the pool",
			Reason:   "with all connections busy the kernel may kill the server",
			Source:   manual + "; the safe bound is 90 % of the memory",
			Risk:     "connections beyond the limit are refused; a smaller pool reads more from the disk",
			Measured: "no: arithmetic; david tune proves the memory of what it proposes",
		},
		{
			Name: dedicatedRule, Severity: Conflict, Needs: []Need{NeedRAM}, Variables: []string{"innodb_dedicated_server"}, find: dedicated,
			When:     "innodb_dedicated_server is ON, container_aware is not, and the server may use less memory than the machine has; down where three quarters of the machine's are more than it may use",
			Reason:   "it sizes the pool by the machine's memory, not by the container's, and is killed for it",
			Source:   "MySQL 9.7.4 in a cgroup of 4 GiB chose a pool of 17.25 GiB, with container_aware=ON 2 GiB",
			Measured: "on MySQL 9.7.4 in a cgroup",
		},
		{
			Name: "container-unaware", Severity: Note, Needs: []Need{NeedRAM}, Variables: []string{"container_aware"}, find: unaware,
			When:     "container_aware is OFF (the default from MySQL 9.3 on) and the server may use less memory than the machine has",
			Reason:   "whatever the server sizes by itself it sizes by the whole machine: threads, and a dedicated server's pool",
			Source:   "MySQL 9.3 manual, container_aware",
			Measured: "on MySQL 9.7.4 in a cgroup",
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

func poolSmall(in Facts) []hit {
	const name = "innodb_buffer_pool_size"
	pool, ok := in.size(name)
	if !ok || in.Machine.DataSeen && in.Machine.Data <= pool {
		return nil
	}
	h := hit{variable: name, evidence: in.says(name)}
	if in.Machine.Memory == 0 {
		if pool > 128*mib {
			return nil
		}
		h.evidence += "; the memory is not seen, so no size is proposed"
	} else {
		want, least, why := in.fit().most()
		switch {
		case float64(want) < least*float64(pool):
			return nil
		case float64(pool) >= poolShare*float64(want):
			h.severity = Note
		}
		h.line = line(name, mycnf.FormatSize(want))
		h.evidence += fmt.Sprintf(", %.2g %% of %s of memory; %s %s", 100*float64(pool)/float64(in.Machine.Memory), bytesText(in.Machine.Memory), bytesText(want), why)
	}
	if in.Machine.DataSeen {
		h.evidence += "; data: " + bytesText(in.Machine.Data)
	}
	if share, ok := in.misses(); ok {
		h.evidence += fmt.Sprintf("; %.2g %% of page requests read from the disk", 100*share)
	}
	return in.withInstances(h)
}

// withInstances adds to a hit that proposes a pool how many instances that is of, where a server to which nobody says so
// would make more of it.
func (in Facts) withInstances(h hit) []hit {
	s, ok := Finding{Line: h.line}.Setting()
	pool, err := mycnf.ParseSize(s.Value)
	p := in.problem()
	if !ok || err != nil || p.PoolInstances > 0 || p.RoundedUp(pool) == pool {
		return []hit{h}
	}
	const name = "innodb_buffer_pool_instances"
	return []hit{h, {variable: name, severity: h.severity, line: line(name, text(p.Instances(pool))), reason: "the server rounds the pool up to whole chunks of each instance",
		evidence: fmt.Sprintf("%s is not set: of a pool of %s the server would make %s", name, bytesText(pool), bytesText(p.RoundedUp(pool)))}}
}

// misses returns the share of page requests that had to read from the disk; ok is false where there were too
// few to tell.
func (in Facts) misses() (share float64, ok bool) {
	requests := in.counter("innodb_buffer_pool_read_requests")
	if requests < fewLookups {
		return 0, false
	}
	return in.counter("innodb_buffer_pool_reads") / requests, true
}

func poolMisses(in Facts) []hit {
	pool, seen := in.size("innodb_buffer_pool_size")
	share, ok := in.misses()
	if !seen || !ok || share <= missShare || len(poolSmall(in)) > 0 || in.Machine.DataSeen && in.Machine.Data <= pool {
		return nil
	}
	evidence := fmt.Sprintf("%.2g %% of %.0f page requests read from the disk; %s", 100*share, in.counter("innodb_buffer_pool_read_requests"),
		in.says("innodb_buffer_pool_size"))
	if in.Machine.DataSeen {
		evidence += "; data: " + bytesText(in.Machine.Data)
	}
	return []hit{{variable: "innodb_buffer_pool_size", evidence: evidence}}
}

func poolLarge(in Facts) []hit {
	p := in.fit()
	if !p.seen || !p.tooLarge(p.pool) {
		return nil
	}
	h := hit{variable: "innodb_buffer_pool_size", evidence: fmt.Sprintf("%s: the server with it takes %s of %s",
		in.says("innodb_buffer_pool_size"), bytesText(in.server(p.pool, 0)), bytesText(in.Machine.Memory))}
	if fitted := p.fitted(); fitted.pool < p.pool {
		h.line = line(h.variable, mycnf.FormatSize(fitted.pool))
	}
	return in.withInstances(h)
}

// server returns what the server takes with a pool and other buffers, in bytes.
func (in Facts) server(pool, others int64) int64 {
	return rules.ServerMemory(pool, others, in.Variables["performance_schema"])
}

func largeBuffers(in Facts) (hits []hit) {
	p := in.fit()
	if !p.seen {
		return nil
	}
	for _, name := range p.greedy() {
		hits = append(hits, hit{variable: name, severity: p.deadly(), line: line(name, mycnf.FormatSize(rules.SizeOf(Defaults(in.Flavour, in.Version)[name]))),
			evidence: fmt.Sprintf("%s: %d connections may take %s of %s of memory for it", in.says(name), p.connections, bytesText(in.sum(name)*p.connections), bytesText(in.Machine.Memory))})
	}
	return hits
}

func overcommitted(in Facts) []hit {
	p := in.fit()
	p.shrinkBuffers()
	if !p.seen || !p.over() || p.tooLarge(p.pool) && p.fitted().connections == p.connections && !p.fitted().over() {
		return nil
	}
	evidence := p.says()
	if p.used > 0 {
		evidence += fmt.Sprintf("; %d were used at most", p.used)
	}
	h := hit{variable: "max_connections", severity: p.deadly(), evidence: evidence}
	fitted := p.fitted()
	var hits []hit
	if fitted.pool < p.pool && !p.tooLarge(p.pool) {
		hits = in.withInstances(hit{variable: "innodb_buffer_pool_size", severity: p.deadly(), evidence: evidence, line: line("innodb_buffer_pool_size", mycnf.FormatSize(fitted.pool))})
	}
	switch {
	case fitted.connections < p.connections:
		h.line = line("max_connections", text(fitted.connections))
	case len(hits) > 0:
		return hits
	default:
		h.evidence += ": more memory is what helps"
	}
	return append(hits, h)
}

// boxed tells whether the server may use clearly less memory than the machine has.
func (in Facts) boxed() bool {
	return in.Machine.Memory > 0 && float64(in.Machine.Memory) < 0.95*float64(in.Machine.RAM)
}

func (in Facts) box() string {
	return fmt.Sprintf("%s of the machine's %s", bytesText(in.Machine.Memory), bytesText(in.Machine.RAM))
}

func dedicated(in Facts) []hit {
	if !in.is("innodb_dedicated_server", "ON") || in.is("container_aware", "ON") || !in.boxed() {
		return nil
	}
	h := hit{variable: "innodb_dedicated_server", line: line("innodb_dedicated_server", "OFF"),
		evidence: in.says("innodb_dedicated_server") + "; the server may use " + in.box()}
	if in.server(in.Machine.RAM/4*3, 0) > in.Machine.Memory {
		h.severity = Down
	}
	return []hit{h}
}

func unaware(in Facts) []hit {
	if !in.is("container_aware", "OFF") || !in.boxed() {
		return nil
	}
	return []hit{{variable: "container_aware", line: line("container_aware", "ON"),
		evidence: in.says("container_aware") + "; the server may use " + in.box()}}
}

func instances(in Facts) []hit {
	n, ok := in.size("innodb_buffer_pool_instances")
	pool, seen := in.size("innodb_buffer_pool_size")
	if _, has := mycnf.Lookup("innodb_buffer_pool_instances", in.Flavour, in.Version); !has || !ok || !seen || n <= 1 || pool/n >= gib {
		return nil
	}
	return []hit{{variable: "innodb_buffer_pool_instances", line: line("innodb_buffer_pool_instances", text(max(1, pool/gib))),
		evidence: fmt.Sprintf("%d instances share a pool of %s: %s each", n, bytesText(pool), bytesText(pool/n))}}
}
