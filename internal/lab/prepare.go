package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"david/internal/host"
	"david/internal/result"
	"david/internal/rules"
)

// prepared has the data of all arms, besides.
type prepared struct {
	opened
	ids   []string         // what tells the data templates from others
	bytes map[string]int64 // of an arm's copy, by the arm's name
	began time.Time        // when all was ready
	// shares tells how many arms have an arm's server together; nil: each has its own.
	shares func(result.Arm) int
}

// prepare makes the data of all arms ready, showing how far it is.
func (o opened) prepare(ctx context.Context, arms []result.Arm, loads []result.Workload) (prepared, error) {
	p := prepared{opened: o, bytes: map[string]int64{}}
	o.say("looking for the prepared data")
	o.target.Loading = func(done, total int) {
		o.say("preparing the data once, to be cloned for every trial: %d of %d tables", done, total)
	}
	for _, load := range loads {
		for _, arm := range arms {
			g, _, err := o.target.Prepare(ctx, arm, load)
			if err != nil {
				return p, fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			if !slices.Contains(p.ids, g.ID()) {
				p.ids = append(p.ids, g.ID())
			}
			p.bytes[arm.Name] = max(p.bytes[arm.Name], g.Bytes())
		}
	}
	if o.target.TemplateTime > 0 {
		o.line(fmt.Sprintf("the data was prepared in %s; later runs clone it", o.target.TemplateTime.Round(time.Second)))
	}
	p.began = time.Now()
	return p, nil
}

// keptFree is the memory, in bytes, that stays free beside servers that are up together: for the load
// generator, david, and what else runs here.
const keptFree = 1 << 30

// room is the memory, in bytes, for servers that are up together.
func (p prepared) room(ctx context.Context) (int64, error) {
	limit, err := p.Memory(ctx)
	return min(limit, p.facts.Memory.Available) - keptFree, err
}

// besideEachOther sees how much memory servers have that are up together. Where not even two of them fit, the
// arms are measured in trials, and the notes say so.
func (p prepared) besideEachOther(ctx context.Context, r *Request, arms []result.Arm) (room int64, err error) {
	if room, err = p.room(ctx); err != nil || r.Design.Slices == nil {
		return room, err
	}
	most, control := int64(0), int64(0)
	for _, arm := range arms {
		if need := p.footprint(arm, r.Loads); arm.Name == r.Design.Control {
			control = need
		} else {
			most = max(most, need)
		}
	}
	if control+most <= room {
		return room, nil
	}
	r.note(fmt.Sprintf("measured in trials: two servers that are up together would take %s, and %s are free", host.Size(control+most), host.Size(room)))
	*r = r.apart()
	return room, nil
}

// footprint is the memory, in bytes, that an arm's server, or its part of one, takes at the most while it is loaded.
func (p prepared) footprint(arm result.Arm, loads []result.Workload) int64 {
	threads := 0
	for _, w := range loads {
		threads = max(threads, w.Threads)
	}
	all := rules.Footprint(arm, p.bytes[arm.Name], threads)
	if p.shares != nil {
		all /= int64(max(1, p.shares(arm)))
	}
	return all
}

// bytesWanted estimates the disk space of a workload's data, in bytes: a row and its index entries take
// up to 335 bytes (measured: 285 in MySQL 9.7, 335 in MariaDB 10.11), a clone's changes, redo and binary
// log as much again.
func bytesWanted(w result.Workload) int64 {
	const row, server = 335, 1 << 30
	rows := int64(w.Tables) * int64(w.TableSize)
	return 2*rows*row + server
}

// wanted is the disk space of an experiment, in bytes: of every data template, and of what one trial writes.
func wanted(arms []result.Arm, loads []result.Workload) (need int64) {
	type copied struct {
		server, page, fill string
		tables, rows       int
	}
	seen := map[copied]bool{}
	for _, w := range loads {
		for _, arm := range arms {
			c := copied{server: arm.Server.Path, tables: w.Tables, rows: w.TableSize, fill: w.RandType}
			for _, s := range arm.Settings {
				if s.Name == "innodb_page_size" {
					c.page = s.Value
				}
			}
			if !seen[c] {
				seen[c] = true
				need += bytesWanted(w)
			}
		}
	}
	return need
}
