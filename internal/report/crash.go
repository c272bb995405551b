package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"david/internal/plain"
	"david/internal/result"
)

// Crash writes a crash test for a terminal.
func Crash(w io.Writer, c result.CrashTest) error {
	b := terminal{columns: columns}
	b.crashVerdict(c)
	b.WriteString("\n")
	b.paragraph(fmt.Sprintf("%s, %d connections, seed %d", serverName(c.Server), c.Threads, c.Seed))
	r := c.RecoveryMs
	b.paragraph(fmt.Sprintf("recovery, from the start of the process until it answers: median %.0f ms of %d, at most %.0f ms (limit %.0f ms)%s",
		r.Median, len(r.Each), r.Max, c.LimitMs, serversOwn(c.Rounds)))
	if c.Power != nil {
		b.paragraph(diskLine(*c.Power, c.Kills))
	}
	if c.Log != "" {
		b.paragraph("the binary log was not held against the tables: " + c.Log)
	} else {
		b.paragraph("the binary log was held against the tables after every recovery, transaction by transaction")
	}
	b.badRounds(c)
	b.WriteString("\n")
	for _, n := range c.Notes {
		b.paragraph(n)
	}
	return b.flush(w)
}

// mostBad is how many of the rounds that were not survived are told one by one.
const mostBad = 5

// badRounds tells of the first rounds after which something was wrong.
func (b *terminal) badRounds(c result.CrashTest) {
	told := 0
	for i, k := range c.Rounds {
		if c.Kept(k) && k.Late == 0 {
			continue
		}
		if told++; told > mostBad {
			continue
		}
		if told == 1 {
			b.WriteString("\n")
		}
		line := KillLine(i+1, c.Kills, k)
		if k.Missing != "" {
			line += "; missing: " + k.Missing
		}
		b.paragraph(line)
	}
	if told > mostBad {
		b.paragraph(fmt.Sprintf("and %d more, in the record", told-mostBad))
	}
}

// crashVerdict writes what a crash test found, its verdict in the colour of good news or bad.
func (b *terminal) crashVerdict(c result.CrashTest) {
	style := plain.Bad
	if c.Proved {
		style = plain.Good
	}
	b.paragraph(CrashLine(c))
	b.mark(0, c.Verdict, style)
}

// CrashBrief writes the first screen of a crash test, a sentence each; Crash has the rest. id names its record.
func CrashBrief(w io.Writer, c result.CrashTest, id string) error {
	b := terminal{columns: columns}
	b.crashVerdict(c)
	held := "the binary log was held against the tables after every recovery"
	if c.Log != "" {
		held = "the binary log was not held against the tables: " + c.Log
	}
	b.labelled("how sure", fmt.Sprintf("recovery took at most %.0f ms of the %.0f allowed; %s", c.RecoveryMs.Max, c.LimitMs, held))
	b.labelled("rests on", fmt.Sprintf("%s, %d connections that write, seed %d", serverName(c.Server), c.Threads, c.Seed))
	b.labelled("written", "the record "+id)
	b.labelled("next", crashNext(c)+fmt.Sprintf("`david show %s` has what was seen", id))
	return b.flush(w)
}

// crashNext gives the command to go on with, before that which shows all.
func crashNext(c result.CrashTest) string {
	if c.Power != nil || !c.Proved {
		return ""
	}
	return "a kill does not show what only a power failure loses: `david crash-test --power` does; "
}

// CrashLine returns the verdict of a crash test in one sentence; no loss of the lock goes unsaid in it.
func CrashLine(c result.CrashTest) string {
	counted := ""
	if c.Power != nil { // each cut has all that was acknowledged before it
		counted = ", those before several cuts counted in each"
	}
	s := fmt.Sprintf("%s: %s, %s acknowledged%s, %d lost", c.Verdict, plural(c.Kills, event(c)), plural(int(c.Acknowledged), "transaction"), counted, c.Lost)
	if c.Power != nil {
		s += fmt.Sprintf("; %s restored from the doublewrite buffer, recovery p50 %.0f ms, at most %.0f ms", plural(c.Power.Repaired, "page"), c.RecoveryMs.Median, c.RecoveryMs.Max)
		if c.Proved {
			s += fmt.Sprintf("; so at most %.2g %% of such cuts lose anything (95 %%)", 100*atMost(c.Kills))
		}
	}
	if c.Late > 0 {
		s += fmt.Sprintf("; %d were not right when the server answered first, and were half a second later", c.Late)
	}
	if len(c.Unlocked) > 0 {
		s += "; UNLOCKED: " + strings.Join(c.Unlocked, "; ")
	}
	return s
}

// atMost is the largest share of tries that may fail where n of n did not: the end of the 95 % interval of a
// binomial share (Clopper and Pearson, Biometrika 26, 1934).
func atMost(n int) float64 { return 1 - math.Pow(1-confidence, 1/float64(n)) }

const confidence = 0.95

// event is what is done to the server.
func event(c result.CrashTest) string {
	if c.Power != nil {
		return "power cut"
	}
	return "kill"
}

// diskLine tells of the disk whose power was cut.
func diskLine(p result.Power, cuts int) string {
	s := fmt.Sprintf("the disk (%s, %s cache) was told %s and to flush %s; over all cuts %d writes at risk were lost and %d torn",
		p.Filesystem, p.Cache, plural(p.Writes, "write"), plural(p.Flushes, "time"), p.Lost, p.Torn)
	s += fmt.Sprintf("; changes of the schema and rotations of the binary log that were acknowledged meanwhile: %d", p.SchemaSteps)
	if p.Every {
		s += "; it was cut before " + flushesMet(p.FlushPoints, cuts)
	}
	if p.Cache == "lying" {
		s += "; the disk IGNORED FLUSHES, as was asked for"
	}
	return s
}

// flushesMet says which of the flushes were cut in turn.
func flushesMet(points, cuts int) string {
	first := ""
	if cuts < points {
		first = fmt.Sprintf("the last %s of ", integer(int64(cuts)))
	}
	return fmt.Sprintf("%sthe %s flushes that came after a write, each in turn", first, integer(int64(points)))
}

// cutLine tells of one cut in one line.
func cutLine(n, of int, k result.Kill) string {
	when := "at random"
	if k.Cut.AtFlush {
		when = "at a flush"
	}
	s := fmt.Sprintf("cut %d of %d %s, %s at risk, %d lost, %d torn (%d B): ", n, of, when, plural(k.Cut.AtRisk, "write"), k.Cut.Lost, k.Cut.Torn, k.Cut.Grain)
	if k.Cut.Failed != "" {
		return s + fmt.Sprintf("%d acknowledged; did not come back: %s", k.Acknowledged, k.Cut.Failed) + again(*k.Cut)
	}
	s += thereAfter(k)
	if k.Cut.Schema != "" {
		s += " (" + k.Cut.Schema + ")"
	}
	return s + fmt.Sprintf("; recovered in %.0f ms, %s restored", k.RecoveryMs, plural(k.Cut.Repaired, "page")) + again(*k.Cut)
}

// thereAfter says what was there after a recovery.
func thereAfter(k result.Kill) string {
	words := []string{fmt.Sprintf("%d acknowledged, %d lost", k.Acknowledged, k.Lost)}
	if k.Late > 0 {
		words = append(words, fmt.Sprintf("%d right at a second look only", k.Late))
	}
	return strings.Join(append(words, k.Damage.Words()...), ", ")
}

// again says how further recoveries of the same disk went.
func again(c result.Cut) string {
	failed := ""
	if c.AgainFailed != "" {
		failed = "; no further recovery: " + c.AgainFailed
	}
	if c.Again == 0 {
		return failed
	}
	return fmt.Sprintf("; the same disk again: %d of %d recoveries not right", c.AgainBad, c.Again) + failed
}

// KillLine tells of one kill, or one cut of the power, in one line.
func KillLine(n, of int, k result.Kill) string {
	if k.Cut != nil {
		return cutLine(n, of, k)
	}
	return fmt.Sprintf("kill %d of %d after %.1f s: ", n, of, k.AfterMs/1000) + thereAfter(k) + fmt.Sprintf("; recovered in %.0f ms", k.RecoveryMs)
}

// serversOwn returns what the server's log says of its recoveries, where it does.
func serversOwn(rounds []result.Kill) string {
	most := 0.0
	for _, r := range rounds {
		most = max(most, r.ServerMs)
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("; of that, by its own log, at most %.0f ms for InnoDB's and the binary log's", most)
}
