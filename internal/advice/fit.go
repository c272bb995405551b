package advice

import (
	"fmt"
	"math"

	"david/internal/mycnf"
	"david/internal/rules"
)

// parts are those of a server that share its memory: they are sized together, so that what is followed for
// one leads to no finding about another. Sizes are in bytes.
type parts struct {
	facts       Facts
	seen        bool // memory, pool and connections are
	pool, log   int64
	global      int64           // what all connections share besides, beyond what is counted with the server itself
	given       map[string]bool // what of that goes back to its default
	connections int64
	each        int64    // what a connection may take
	used        int64    // connections used at most so far; 0: not seen
	reset       []string // session buffers that go back to their default
}

// A session buffer above 4 MiB is large: most of the time it is allocated and cleared for nothing. Fewer
// connections than the servers' default are proposed only where nothing else is left, and never fewer than
// 10.
const (
	largeBuffer      = 4 * mib
	minConnections   = 151
	leastConnections = 10
	mostConnections  = 100_000 // that servers take
)

// fit returns the parts as they are.
func (in Facts) fit() parts {
	p := parts{facts: in, log: min(in.sum("innodb_log_buffer_size"), 1<<40), used: int64(in.counter("max_used_connections")), each: in.perConnection()}
	pool, sized := in.size("innodb_buffer_pool_size")
	connections, counted := in.size("max_connections")
	p.pool, p.connections = min(pool, 1<<60), min(connections, mostConnections)
	p.global = p.globals()
	p.seen = sized && counted && in.Machine.Memory > 0
	return p
}

// perConnection returns what a connection may take: one of each session buffer, and no less than the rules
// count.
func (in Facts) perConnection() (sum int64) {
	for _, name := range sessionBuffers() {
		n, _ := in.size(name)
		sum += min(n, 1<<40)
	}
	return max(sum, rules.EachConnection(in.Flavour))
}

func (p parts) ceiling() int64 { return rules.MemoryCeiling(p.facts.Machine.Memory) }

// need returns what the server takes with all connections busy.
func (p parts) need() int64 { return p.facts.server(p.pool, p.log+p.global) + p.connections*p.each }

// over tells whether that is more than a server should have of the memory.
func (p parts) over() bool { return p.need() > p.ceiling() }

// deadly is the severity of more than there is, where that is more than the rule's own; "": it is not.
func (p parts) deadly() Severity {
	if p.need() > p.facts.Machine.Memory {
		return Down
	}
	return ""
}

// greedy lists the session buffers above 4 MiB, where the server has too little memory for all parts, or
// these buffers of all connections would take more than a quarter of it.
func (p parts) greedy() (names []string) {
	total := int64(0)
	for _, name := range sessionBuffers() {
		now, _ := p.facts.size(name)
		if now <= largeBuffer {
			continue
		}
		if least, err := mycnf.ParseSize(Defaults(p.facts.Flavour, p.facts.Version)[name]); err == nil && least < now {
			names, total = append(names, name), total+min(now, 1<<40)
		}
	}
	if p.over() || total*p.connections > p.facts.Machine.Memory/4 {
		return names
	}
	return nil
}

func (p parts) tooLarge(pool int64) bool {
	return pool > p.facts.Machine.Memory || p.facts.server(pool, 0) > p.facts.Machine.Memory
}

// room returns how many connections the memory has room for.
func (p parts) room() int64 {
	return max(0, (p.ceiling()-p.facts.server(p.pool, p.log+p.global))/p.each)
}

// few returns how many connections are left at least, where the memory has room for them.
func (p parts) few() int64 { return min(p.connections, max(minConnections, p.used)) }

// fitted makes the parts fit: shared memory that nobody uses and large session buffers first, then connections that nobody used, then the pool,
// at last the connections that are left.
func (p parts) fitted() parts {
	p.shrinkBuffers()
	if !p.over() {
		return p
	}
	if p.tooLarge(p.pool) || p.room() < p.few() {
		if pool := p.largest(p.connections); pool < p.largest(p.few())/2 {
			p.connections = p.few()
		}
		p.pool = min(p.pool, p.largest(p.connections))
	}
	if room := p.room(); p.over() && room >= leastConnections {
		p.connections = min(p.connections, room)
	}
	return p
}

// shrinkBuffers gives shared memory that nobody uses its default, and large session buffers where that is not enough.
func (p *parts) shrinkBuffers() {
	if p.reset != nil {
		return
	}
	if p.given == nil {
		p.given = map[string]bool{}
		for _, g := range p.freed() {
			p.given[g.variable] = true
			p.global -= p.facts.beyond(g)
		}
	}
	p.reset = p.greedy()
	for _, name := range p.reset {
		now, _ := p.facts.size(name)
		p.each -= min(now, 1<<40) - rules.SizeOf(Defaults(p.facts.Flavour, p.facts.Version)[name])
	}
	p.each = max(p.each, rules.EachConnection(p.facts.Flavour))
}

// largest returns the largest pool that leaves room for so many connections, and no more than holds the data.
func (p parts) largest(connections int64) int64 {
	problem := p.facts.problem()
	problem.Connections, problem.PerConnection, problem.LogBuffer = int(connections), p.each, p.log+p.global
	return problem.Whole(rules.BufferPool(problem))
}

// most returns what the pool should grow to, what it has to grow by to be
// worth a note, and what bounds it, in words. On a running server that is
// bounded by what its machine has free: others on it want some too.
func (p parts) most() (pool int64, least float64, why string) {
	fitted := p.fitted()
	pool, least = fitted.largest(fitted.connections), poolNote
	why = fmt.Sprintf("leaves room for %d connections of %s and the server itself", fitted.connections, bytesText(fitted.each))
	if p.facts.Machine.DataSeen && pool >= p.facts.Machine.Data {
		why = "holds all data and a quarter more"
	}
	const share, overhead = 0.8, 1.05
	free := p.pool + int64(share*math.Min(float64(p.facts.Machine.Available), 1<<60)/overhead)
	if p.facts.Machine.Available > 0 && free < pool {
		pool, least, why = p.facts.problem().Whole(free), freeNote, fmt.Sprintf("takes 80 %% of the %s that the machine has free", bytesText(p.facts.Machine.Available))
	}
	return pool, least, why
}
