package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"david/internal/account"
	"david/internal/home"
	"david/internal/result"
)

// Sustained writes random 16 KiB at queue depth 32 for so many seconds, second by second: a volume that lives
// on credits slows down once they are used up.
func (p Place) Sustained(ctx context.Context, seconds int) (b *result.Burst, err error) {
	engine, _, err := engine(ctx)
	if err != nil {
		return nil, err
	}
	file, err := p.layOut(ctx)
	defer func() { err = errors.Join(err, remove(file)) }()
	if err != nil {
		return nil, err
	}
	if err := p.throttle(true); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.throttle(false)) }()
	if p.Say != nil {
		p.Say(fmt.Sprintf("random writes for %d s", seconds))
	}
	log := filepath.Join(p.Dir, "series")
	j := ioJob{way: result.RandomWrite, bytes: 16 << 10, depth: 32}
	args := append(p.ioArgs(j, engine), fmt.Sprintf("--runtime=%d", seconds), "--write_iops_log="+log, "--log_avg_msec=1000") // the last runtime counts
	if _, err := (job{p.Start, file, "write", time.Duration(seconds) * time.Second}).run(ctx, args...); err != nil {
		return nil, err
	}
	text, err := p.series(log + "_iops.1.log")
	if err != nil {
		return nil, fmt.Errorf("cannot read fio's series: %w", err)
	}
	series, err := parseSeries(string(text), seconds)
	if err != nil {
		return nil, err
	}
	return burst(series), os.Remove(log + "_iops.1.log")
}

// series reads what fio wrote, which lies in a folder of its user's.
func (p Place) series(path string) ([]byte, error) {
	a, err := account.Find()
	if err != nil {
		return nil, err
	}
	return home.Read(path, mostSeries, a.UID)
}

// mostSeries bounds fio's series, in bytes: a line of some twenty for each second.
const mostSeries = 16 << 20

// parseSeries reads fio's log of operations/s, lines "MSEC, VALUE, DIRECTION, ...", into one value a second.
// A second that has none is a stall.
func parseSeries(text string, seconds int) ([]float64, error) {
	series, found := make([]float64, seconds), false
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) < 2 {
			return nil, fmt.Errorf("cannot read %q of fio's series", strings.TrimSpace(line))
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(fields[0]), 64)
		value, err2 := strconv.ParseFloat(strings.TrimSpace(fields[1]), 64)
		if err = errors.Join(err, err2); err != nil || !(ms >= 0) || !(value >= 0) {
			return nil, errors.Join(fmt.Errorf("cannot read %q of fio's series", strings.TrimSpace(line)), err)
		}
		if s := (ms+500)/1000 - 1; s < float64(seconds) && seconds > 0 { // an entry stands at the end of its second
			series[max(0, int(s))], found = value, true
		}
	}
	if !found {
		return nil, errors.New("cannot read fio's series: it is empty")
	}
	return series, nil
}

// How far below the first minute throughput must stay, and for how long, to be called fallen: a pause of some
// seconds is not an empty bucket.
const (
	fallen       = 0.7
	firstSeconds = 60
	staySeconds  = 10
)

// burst looks for the second from which throughput stayed low until the end.
func burst(series []float64) *result.Burst {
	b := &result.Burst{Seconds: len(series), FirstSeconds: min(firstSeconds, (len(series)+1)/2), Series: series}
	if len(series) == 0 {
		return b
	}
	b.First = mean(series[:b.FirstSeconds])
	low := fallen * b.First
	at := len(series)
	for at > 0 && mean(series[max(0, at-staySeconds):at]) < low {
		at--
	}
	if at == len(series) {
		return b
	}
	at = step(series, max(0, at-staySeconds+1))                        // from where the first low window begins
	if len(series)-at < min(staySeconds, len(series)-b.FirstSeconds) { // a pause at the end
		return b
	}
	b.Empty, b.Then = at+1, figure(series[at:]).Value
	return b
}

// step returns the second, within a window from one on, at which a step down fits best, by least squares: one
// low second before it is a pause.
func step(series []float64, from int) (at int) {
	until := min(len(series)-1, from+staySeconds)
	begin, end := max(0, from-staySeconds), min(len(series), until+staySeconds)
	least := math.Inf(1)
	for k := from; k <= until; k++ {
		if rest := scatter(series[begin:k]) + scatter(series[k:end]); rest < least {
			at, least = k, rest
		}
	}
	return at
}

// scatter returns the sum of squares about the mean.
func scatter(v []float64) (sum float64) {
	middle := mean(v)
	for _, x := range v {
		sum += (x - middle) * (x - middle)
	}
	return sum
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}
