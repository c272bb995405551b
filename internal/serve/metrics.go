package serve

import (
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"david/internal/report"
	"david/internal/result"
)

const (
	// lastNoted is how much of the end of what was noted holds the present, in bytes.
	lastNoted = 16 << 10
	// fresh is how old a second of load may be that is told as the present one.
	fresh = 5 * time.Second
	// ratiosEvery is how often ratios are worked out at most: that takes up to a second of a CPU.
	ratiosEvery = time.Minute
)

// Metrics answers with figures of what is measured under david's folder, in the text format of Prometheus.
func Metrics(home string) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{home: home, facts: described()})
	m := http.NewServeMux()
	m.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return m
}

// described has a description of each figure, by a short name.
func described() map[string]*prometheus.Desc {
	list := map[string]*prometheus.Desc{}
	add := func(short, name, help string, labels ...string) {
		list[short] = prometheus.NewDesc("david_"+name, help, labels, nil)
	}
	add("on", "measuring", "1 while something is measured under david's folder, else 0.")
	add("run", "run_info", "Always 1: the experiment that is measured, and its kind.", "experiment", "kind")
	add("now", "arm_info", "Always 1: the arm that is measured now, and the phase of a tune.", "arm", "phase")
	add("tps", "transactions_per_second", "Transactions in the last second of load on the arm.", "arm")
	add("p95", "latency_p95_seconds", "The p95 latency of the last second of load on the arm.", "arm")
	add("warm", "warming_up", "1 while the load only warms the server up, else 0.")
	add("left", "time_left_seconds", "Expected time until the measurement ends; missing where nobody knows.")
	add("round", "round", "The round, or block, that is measured, from 1.")
	add("rounds", "arm_rounds", "Rounds, or blocks, in which the arm and the control both count.", "arm")
	add("ratio", "ratio", "Throughput of the arm over the control's, of the rounds so far.", "arm")
	add("low", "ratio_low", "Lower end of the 95 % interval of david_ratio.", "arm")
	add("high", "ratio_high", "Upper end of the 95 % interval of david_ratio.", "arm")
	return list
}

// collector reads the figures anew whenever it is asked.
type collector struct {
	home  string
	facts map[string]*prometheus.Desc
	mu    sync.Mutex // guards what follows
	known ratios
}

// ratios are those of one record, as it was at some time.
type ratios struct {
	dir  string
	of   [4]int64
	at   time.Time
	list []ratio
}

// ratio is what the rounds so far say about an arm.
type ratio struct {
	arm              string
	value, low, high float64
	rounds           int
}

// Describe names what there is.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.facts {
		out <- d
	}
}

// Collect tells what there is now.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	tell := func(short string, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.facts[short], prometheus.GaugeValue, value, labels...)
	}
	fail := func(err error) { out <- prometheus.NewInvalidMetric(c.facts["on"], err) }
	dir, err := result.Running(c.home)
	if err != nil {
		fail(err)
		return
	}
	if dir == "" {
		tell("on", 0)
		return
	}
	tell("on", 1)
	if err := c.present(dir, tell); err != nil {
		fail(err)
		return
	}
	list, err := c.ratios(dir)
	if err != nil {
		fail(err)
		return
	}
	for _, r := range list {
		tell("ratio", r.value, r.arm)
		tell("rounds", float64(r.rounds), r.arm)
		if r.high > 0 {
			tell("low", r.low, r.arm)
			tell("high", r.high, r.arm)
		}
	}
}

// present tells of the moment.
func (c *collector) present(dir string, tell func(string, float64, ...string)) error {
	store, err := result.Open(dir)
	if err != nil {
		return err
	}
	tell("run", 1, filepath.Base(dir), string(store.Experiment().Kind))
	list, _, _, err := result.Moments(dir, -lastNoted)
	if err != nil {
		return err
	}
	var last result.Moment
	for _, m := range list {
		if m.Line == "" {
			last = m.Moment
		}
	}
	if last.Arm != "" {
		tell("now", 1, last.Arm, string(last.Phase))
		tell("round", float64(last.Round))
	}
	if last.Left > 0 {
		tell("left", max(0, last.Left-time.Since(last.At).Seconds()))
	}
	if p := last.Point; p != nil && time.Since(last.At) < fresh {
		warm := 0.0
		if p.Warm {
			warm = 1
		}
		tell("tps", p.TPS, last.Arm)
		tell("p95", p.P95/1000, last.Arm)
		tell("warm", warm)
	}
	return nil
}

// ratios returns what the rounds say so far, or said a minute ago. Of several workloads it is the first one's.
func (c *collector) ratios(dir string) ([]ratio, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := look(dir); c.known.dir != dir || c.known.of != of && time.Since(c.known.at) >= ratiosEvery {
		list, err := ratiosOf(dir)
		if err != nil {
			return nil, err
		}
		c.known = ratios{dir, of, time.Now(), list}
	}
	return c.known.list, nil
}

func ratiosOf(dir string) (list []ratio, err error) {
	store, err := result.Open(dir)
	if err != nil {
		return nil, err
	}
	d := report.Data{Experiment: store.Experiment()}
	if d.Arms, err = store.Arms(); err != nil {
		return nil, err
	}
	if d.Trials, err = store.Trials(); err != nil {
		return nil, err
	}
	compared := report.Comparisons(d)
	if len(compared) == 0 {
		return nil, nil
	}
	for _, a := range compared[0].Arms {
		if a.Name != compared[0].Control && a.Ratio > 0 {
			list = append(list, ratio{a.Name, a.Ratio, a.Interval[0], a.Interval[1], a.Pairs})
		}
	}
	return list, nil
}
