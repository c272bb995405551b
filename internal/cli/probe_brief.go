package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"david/internal/lab"
	"david/internal/result"
)

// The figures of a probe's first screen: a commit is about an append of so many bytes and a sync, and what a server
// reads and writes at random are pages, many at a time.
const (
	commitBytes = 4 << 10
	deepQueue   = 32
)

// printLimitsBrief prints the first screen of a probe: five sentences.
func (a *app) printLimitsBrief(p lab.Probed, quick bool) error {
	return errors.Join(say(a.out, limitsFound(p.Limits)),
		labelled(a.out, "how sure", limitsSure(p.Limits)),
		labelled(a.out, "rests on", limitsRest(p)),
		labelled(a.out, "written", limitsWritten(p, quick)),
		labelled(a.out, "next", limitsNext(p, quick)))
}

// limitsFound says what the disk gives at best; of a machine whose disk was not measured what a CPU does.
func limitsFound(l result.Limits) string {
	var parts []string
	if s, ok := l.Sync(result.Append, commitBytes); ok {
		parts = append(parts, fmt.Sprintf("one thread appends 4 KiB and waits for fdatasync %s us (p50; p99 %s us), %s times a second",
			threeDigits(s.P50.Value), threeDigits(s.P99.Value), threeDigits(1e6/s.Cycle.Value)))
	}
	reads, read := l.Find(result.RandomRead, deepQueue)
	writes, written := l.Find(result.RandomWrite, deepQueue)
	if read && written {
		parts = append(parts, fmt.Sprintf("at depth %d the disk does %s random reads/s of 16 KiB and %s writes/s", deepQueue, threeDigits(reads.IOPS.Value), threeDigits(writes.IOPS.Value)))
	}
	if l.Burst != nil {
		parts = append(parts, burstText(*l.Burst))
	}
	if len(parts) == 0 {
		m := l.Machine
		return fmt.Sprintf("the disk was not measured; one thread does %s million rounds/s of integers, %s do %s", threeDigits(m.IntegerOne.Value), pluralise(m.CPUs, "thread"), threeDigits(m.IntegerAll.Value))
	}
	return strings.Join(parts, "; ")
}

// limitsSure says how far the rounds of what was found lie apart, and what must be read with it.
func limitsSure(l result.Limits) string {
	text := "one round: orders of magnitude alone"
	if n := l.Machine.IntegerOne.Rounds; n > 1 {
		text = fmt.Sprintf("medians of %s", pluralise(n, "round"))
		if ranges := limitsRanges(l); ranges != "" {
			text += ", least to most: " + ranges
		}
	}
	return strings.Join(append([]string{text}, l.Notes...), "; ")
}

// limitsRanges are the least and the most of each figure that limitsFound names.
func limitsRanges(l result.Limits) string {
	var parts []string
	add := func(what string, f result.Figure) {
		parts = append(parts, fmt.Sprintf("%s %s-%s", what, threeDigits(f.Low), threeDigits(f.High)))
	}
	if s, ok := l.Sync(result.Append, commitBytes); ok {
		add("fdatasync p50", s.P50)
	}
	for _, way := range []struct{ name, way string }{{"reads/s", result.RandomRead}, {"writes/s", result.RandomWrite}} {
		if io, ok := l.Find(way.way, deepQueue); ok {
			add(way.name, io.IOPS)
		}
	}
	return strings.Join(parts, ", ")
}

// limitsRest says what was measured, under which caps, and when.
func limitsRest(p lab.Probed) string {
	when := "measured now"
	if p.Before {
		when = "measured " + age(time.Since(p.Limits.Measured)) + " ago"
	}
	return fmt.Sprintf("%s; caps: %s; %s, in %.0f s", deviceText(p.Limits), p.Limits.Caps.Text(), when, p.Limits.Seconds)
}

// limitsWritten says where the limits are kept, if they are.
func limitsWritten(p lab.Probed, quick bool) string {
	switch {
	case quick && !p.Before:
		return "nothing: what --quick finds is not kept"
	case p.Flaw != nil:
		return "nothing: the error says why"
	}
	return fmt.Sprintf("probes/%s.json in david's folder, for a day; experiments of that day have it in their records", p.Limits.Key)
}

// limitsNext gives the command to go on with.
func limitsNext(p lab.Probed, quick bool) string {
	next := "`david bench`, then `david explain latest`, holds a server against these"
	switch {
	case len(p.Limits.IO) == 0:
		next = "`david probe --dir DIR` probes the disk of another folder"
	case quick:
		next = "`david probe` takes a minute and is kept"
	}
	return next + "; the same with -v has every figure"
}
