package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"david/internal/result"
)

// Output holds what sysbench printed.
type Output struct {
	OpenLoop   bool           // the run has a rate: a line on the queue follows that of each interval
	Started    bool           // "Threads started!" was printed: all threads are connected
	Points     []result.Point // one a report interval; Warm is not set
	Final      *Summary       // nil where sysbench did not come to its end
	Histogram  []result.Bucket
	Fatal      []string // what followed "FATAL: ", repetitions left out
	Unfinished int64    // transactions cut off by a forced shutdown
}

// Summary describes a block of "SQL statistics" and what follows it. Rates are per second, latencies in ms.
type Summary struct {
	Transactions, Queries, Errors, Reconnects int64
	TPS, QPS                                  float64
	Seconds                                   float64 // "total time", from the start of the threads
	Events                                    int64
	Min, Avg, Max, Percentile                 float64
	PercentileRank                            int // 95
}

// Parser reads sysbench's output line by line. The zero value is ready to use.
type Parser struct {
	out       Output
	open      *Summary // the block being read
	histogram bool     // reading rows of the histogram
}

// Output returns what was read so far.
func (p *Parser) Output() Output { return p.out }

// Line reads one line without its newline and returns the point it completes, if any: with a rate that is the
// second line of an interval, which tells of the queue. It is an error when a line begins as one that carries
// figures but does not go on so.
func (p *Parser) Line(line string) (*result.Point, error) {
	switch {
	case strings.HasPrefix(line, "[ "):
		return p.interval(line)
	case strings.HasPrefix(line, "FATAL: "):
		p.fatal(strings.TrimPrefix(line, "FATAL: "))
	case strings.HasPrefix(line, "Target transaction rate: "):
		p.out.OpenLoop = true
	case line == "Threads started!":
		p.out.Started = true
	case strings.HasPrefix(line, "Latency histogram"):
		p.histogram = true
	case line == "SQL statistics:":
		p.begin()
	case p.histogram:
		return nil, p.bucket(line)
	case strings.HasPrefix(line, "Number of unfinished transactions on forced shutdown:"):
		return nil, number(line, lastField(line), &p.out.Unfinished)
	case p.open != nil:
		return nil, p.open.line(line)
	}
	return nil, nil
}

// fatal notes a message once: each thread prints its own.
func (p *Parser) fatal(message string) {
	for _, known := range p.out.Fatal {
		if known == message {
			return
		}
	}
	p.out.Fatal = append(p.out.Fatal, message)
}

func (p *Parser) begin() {
	p.histogram = false
	p.open = new(Summary)
	p.out.Final = p.open
}

// interval reads what begins with "[ 5s ] ".
func (p *Parser) interval(line string) (*result.Point, error) {
	word, rest, ok := strings.Cut(strings.TrimPrefix(line, "[ "), "s ] ")
	second, err := strconv.Atoi(word)
	if !ok || err != nil || second < 0 {
		return nil, unreadable(line)
	}
	if queue, ok := strings.CutPrefix(rest, "queue length: "); ok {
		return p.queue(line, queue, second)
	}
	point, err := point(line, rest)
	if err != nil {
		return nil, err
	}
	point.Second = second
	p.out.Points = append(p.out.Points, point)
	if p.out.OpenLoop { // not complete before its queue is read
		return nil, nil
	}
	return &point, nil
}

// queue reads "N, concurrency: M", which sysbench prints after the other figures of the same second.
func (p *Parser) queue(line, rest string, second int) (*result.Point, error) {
	last := len(p.out.Points) - 1
	length, busy, ok := strings.Cut(rest, ", concurrency: ")
	if !ok || last < 0 || p.out.Points[last].Second != second {
		return nil, unreadable(line)
	}
	point := &p.out.Points[last]
	if err := errors.Join(number(line, length, &point.Queue), number(line, busy, &point.Busy)); err != nil {
		return nil, err
	}
	complete := *point
	return &complete, nil
}

// point reads "thds: 4 tps: T qps: Q (r/w/o: a/b/c) lat (ms,95%): x err/s: e reconn/s: r".
func point(line, rest string) (result.Point, error) {
	var p result.Point
	var err error
	for _, f := range []struct {
		after string
		to    *float64
	}{{"tps: ", &p.TPS}, {"qps: ", &p.QPS}, {"%): ", &p.P95}, {"err/s: ", &p.Errors}, {"reconn/s: ", &p.Reconnects}} {
		_, tail, ok := strings.Cut(rest, f.after)
		if !ok {
			return p, unreadable(line)
		}
		var word string
		word, rest, _ = strings.Cut(tail, " ")
		if *f.to, err = finite(word); err != nil {
			return p, unreadable(line)
		}
	}
	return p, nil
}

// bucket reads a row of the histogram, "%12.3f |**** count"; the histogram ends with a line without a bar.
func (p *Parser) bucket(line string) error {
	value, rest, ok := strings.Cut(line, "|")
	if !ok {
		p.histogram = strings.Contains(line, "distribution") // its heading
		return nil
	}
	ms, err := finite(strings.TrimSpace(value))
	if err != nil {
		return unreadable(line)
	}
	b := result.Bucket{Ms: ms}
	if err := number(line, lastField(rest), &b.Count); err != nil {
		return err
	}
	p.out.Histogram = append(p.out.Histogram, b)
	return nil
}

// line reads one line of a block of statistics; lines of no interest pass.
func (s *Summary) line(line string) error {
	key, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
	if !ok {
		return nil
	}
	value, rate, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch key {
	case "transactions":
		return both(line, value, rate, &s.Transactions, &s.TPS)
	case "queries":
		return both(line, value, rate, &s.Queries, &s.QPS)
	case "ignored errors":
		return number(line, value, &s.Errors)
	case "reconnects":
		return number(line, value, &s.Reconnects)
	case "total number of events":
		return number(line, value, &s.Events)
	case "total time":
		return decimal(line, strings.TrimSuffix(value, "s"), &s.Seconds)
	case "min":
		return decimal(line, value, &s.Min)
	case "avg":
		return decimal(line, value, &s.Avg)
	case "max":
		return decimal(line, value, &s.Max)
	}
	if rank, ok := strings.CutSuffix(key, "th percentile"); ok {
		return s.percentile(line, rank, value)
	}
	return nil
}

func (s *Summary) percentile(line, rank, value string) (err error) {
	if s.PercentileRank, err = strconv.Atoi(rank); err != nil {
		return unreadable(line)
	}
	return decimal(line, value, &s.Percentile)
}

// both reads "1930   (963.28 per sec.)".
func both(line, value, rate string, n *int64, perSecond *float64) error {
	if err := number(line, value, n); err != nil {
		return err
	}
	rate, ok := strings.CutSuffix(strings.TrimSpace(rate), " per sec.)")
	if !ok {
		return unreadable(line)
	}
	return decimal(line, strings.TrimPrefix(rate, "("), perSecond)
}

func number(line, word string, to *int64) error {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return unreadable(line)
	}
	*to = n
	return nil
}

func decimal(line, word string, to *float64) error {
	f, err := finite(word)
	if err != nil {
		return unreadable(line)
	}
	*to = f
	return nil
}

// finite reads a figure; NaN and infinity are none, nor is anything negative.
func finite(word string) (float64, error) {
	f, err := strconv.ParseFloat(word, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0) || f < 0) {
		err = strconv.ErrRange
	}
	return f, err
}

func lastField(line string) string { return line[strings.LastIndexAny(line, " *|")+1:] }

func unreadable(line string) error {
	return fmt.Errorf("cannot read what sysbench printed: %.200q", line)
}
