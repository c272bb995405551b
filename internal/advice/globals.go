package advice

import (
	"fmt"
	"strings"

	"david/internal/mycnf"
	"david/internal/rules"
)

// global is memory that all connections share besides InnoDB's, as a variable sizes it.
type global struct {
	variable string
	enough   int64 // what of it is counted with the server itself: 540 MiB have room for it
	// A server's counter of the blocks that were in use at most, and their size: what was used does not give way. "": there is none.
	blocks string
	block  int64
}

// globals are such memory of a server. Temporary tables are none of it: their sizes are limits that few statements come near.
func (in Facts) globals() (list []global) {
	defaults := Defaults(in.Flavour, in.Version)
	for _, g := range []global{
		{"key_buffer_size", rules.SizeOf(defaults["key_buffer_size"]), "key_blocks_used", 1 << 10},
		{"aria_pagecache_buffer_size", rules.SizeOf(defaults["aria_pagecache_buffer_size"]), "aria_pagecache_blocks_used", 8 << 10},
		{"query_cache_size", 0, "", 0},
	} {
		if _, known := mycnf.Lookup(g.variable, in.Flavour, in.Version); known && in.beyond(g) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// beyond returns what one takes besides what is counted with the server itself.
func (in Facts) beyond(g global) int64 {
	size, _ := in.size(g.variable)
	if g.variable == "query_cache_size" && len(queryCache(in)) == 0 {
		return 0
	}
	return max(0, min(size, 1<<40)-g.enough)
}

// spare tells of memory that nobody is known to use: of a file all, on a server what was never filled.
func (in Facts) spare(g global) bool {
	return g.blocks == "" || in.counter(g.blocks)*float64(g.block) <= float64(g.enough)
}

func (p parts) globals() (sum int64) {
	for _, g := range p.facts.globals() {
		sum += p.facts.beyond(g)
	}
	return sum
}

// freed lists what of that gives way where the memory is too little for all parts.
func (p parts) freed() (list []global) {
	if !p.over() {
		return nil
	}
	for _, g := range p.facts.globals() {
		if p.facts.spare(g) {
			list = append(list, g)
		}
	}
	return list
}

func largeGlobals(in Facts) (hits []hit) {
	p := in.fit()
	if !p.seen {
		return nil
	}
	for _, g := range p.freed() {
		if g.variable == "query_cache_size" { // the rule about it says so already
			continue
		}
		evidence := fmt.Sprintf("%s; %s", in.says(g.variable), p.says())
		if g.blocks != "" && in.Status != nil {
			evidence += fmt.Sprintf("; of it %s were used at most", bytesText(int64(in.counter(g.blocks))*g.block))
		}
		hits = append(hits, hit{variable: g.variable, severity: p.deadly(), line: line(g.variable, mycnf.FormatSize(rules.SizeOf(Defaults(in.Flavour, in.Version)[g.variable]))), evidence: evidence})
	}
	return hits
}

// says tells the sum: what the parts of the server take, and of how much.
func (p parts) says() string {
	var also []string
	for _, g := range p.facts.globals() {
		if p.global > 0 && !p.given[g.variable] {
			also = append(also, g.variable+" "+p.facts.shown(g.variable))
		}
	}
	with := "a pool of " + bytesText(p.pool)
	if len(also) > 0 {
		with += ", " + strings.Join(also, ", ")
	}
	return fmt.Sprintf("%d connections of %s each and %s for the server with %s are %s of %s", p.connections, bytesText(p.each),
		bytesText(p.facts.server(p.pool, p.log+p.global)), with, bytesText(p.need()), bytesText(p.facts.Machine.Memory))
}
