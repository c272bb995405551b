package report

import (
	"fmt"
	"io"
	"strings"

	"david/internal/result"
)

// Crash writes a crash test for a terminal.
func Crash(w io.Writer, c result.CrashTest) error {
	b := terminal{columns: columns}
	b.paragraph(CrashLine(c))
	fmt.Fprintf(&b, "\n%s, %d connections, seed %d\n", serverName(c.Server), c.Threads, c.Seed)
	r := c.RecoveryMs
	b.paragraph(fmt.Sprintf("recovery, from the start of the process until it answers: median %.0f ms of %d, at most %.0f ms (limit %.0f ms)%s",
		r.Median, len(r.Each), r.Max, c.LimitMs, serversOwn(c.Rounds)))
	if c.Log != "" {
		b.paragraph("the binary log was not held against the tables: " + c.Log)
	} else {
		b.paragraph("the binary log was held against the tables after every kill, transaction by transaction")
	}
	b.WriteString("\n")
	for _, n := range c.Notes {
		b.paragraph(n)
	}
	return flush(w, &b.Buffer)
}

// CrashLine returns the verdict of a crash test in one sentence; no loss of the lock goes unsaid in it.
func CrashLine(c result.CrashTest) string {
	s := fmt.Sprintf("%s: %s, %s acknowledged, %d lost", c.Verdict, plural(c.Kills, "kill"), plural(int(c.Acknowledged), "transaction"), c.Lost)
	if len(c.Unlocked) > 0 {
		s += "; UNLOCKED: " + strings.Join(c.Unlocked, "; ")
	}
	return s
}

// KillLine tells of one kill in one line.
func KillLine(n, of int, k result.Kill) string {
	s := fmt.Sprintf("kill %d of %d after %.1f s: %d acknowledged, %d lost", n, of, k.AfterMs/1000, k.Acknowledged, k.Lost)
	return strings.Join(append([]string{s}, k.Damage.Words()...), ", ") + fmt.Sprintf("; recovered in %.0f ms", k.RecoveryMs)
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
