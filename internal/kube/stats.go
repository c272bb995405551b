package kube

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"david/internal/result"
)

// Counters holds a cgroup's, and Stats those of a pod and of its node.
type (
	Counters = result.CgroupCounters
	Stats    = result.PodStats
)

// PodStats reads the counters of a pod's cgroup and of the whole node from the node's kubelet, through the
// API server's proxy. It takes the verb get on nodes/proxy: ErrForbidden where that is not allowed.
func (c *Cluster) PodStats(ctx context.Context, node, namespace, pod string) (s Stats, err error) {
	summary, err := c.kubelet(ctx, node, "stats/summary")
	if err != nil {
		return s, err
	}
	if s, err = fromSummary(summary, namespace, pod); err != nil {
		return s, err
	}
	metrics, err := c.kubelet(ctx, node, "metrics/cadvisor")
	if err != nil {
		return s, err
	}
	fromCadvisor(metrics, namespace, pod, &s)
	return s, nil
}

func (c *Cluster) kubelet(ctx context.Context, node, path string) ([]byte, error) {
	body, err := c.core.RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix(path).DoRaw(ctx)
	return body, explain(err, fmt.Sprintf("cannot read %s of node %s", path, node), "get", "nodes/proxy")
}

// figures holds what the kubelet's summary says of a node or a pod.
type figures struct {
	CPU struct {
		Time                 time.Time `json:"time"`
		UsageCoreNanoSeconds *float64  `json:"usageCoreNanoSeconds"`
	} `json:"cpu"`
	Memory struct {
		WorkingSetBytes *float64 `json:"workingSetBytes"`
		RSSBytes        *float64 `json:"rssBytes"`
		PageFaults      *float64 `json:"pageFaults"`
		MajorPageFaults *float64 `json:"majorPageFaults"`
	} `json:"memory"`
	Network struct {
		RxBytes *float64 `json:"rxBytes"`
		TxBytes *float64 `json:"txBytes"`
	} `json:"network"`
}

func (f figures) counters() Counters {
	c := Counters{At: f.CPU.Time, WorkingSetBytes: f.Memory.WorkingSetBytes, RSSBytes: f.Memory.RSSBytes, PageFaults: f.Memory.PageFaults, MajorFaults: f.Memory.MajorPageFaults,
		ReceiveBytes: f.Network.RxBytes, TransmitBytes: f.Network.TxBytes}
	if f.CPU.UsageCoreNanoSeconds != nil {
		seconds := *f.CPU.UsageCoreNanoSeconds / 1e9
		c.CPUSeconds = &seconds
	}
	return c
}

// fromSummary reads the kubelet's stats/summary.
func fromSummary(body []byte, namespace, pod string) (s Stats, err error) {
	var summary struct {
		Node figures `json:"node"`
		Pods []struct {
			PodRef struct{ Name, Namespace string } `json:"podRef"`
			figures
		} `json:"pods"`
	}
	if err := decode(body, &summary); err != nil {
		return s, err
	}
	s.Node = summary.Node.counters()
	for _, p := range summary.Pods {
		if p.PodRef.Name == pod && p.PodRef.Namespace == namespace {
			s.Pod = p.counters()
			return s, nil
		}
	}
	return s, fmt.Errorf("the kubelet has no figures of pod %s/%s: %w", namespace, pod, ErrNotFound)
}

// fromCadvisor adds what only the kubelet's metrics/cadvisor has: throttling, and I/O, summed over the
// devices. A pod's figures are those of its containers, or of its own cgroup where the container runtime
// tells none of them.
func fromCadvisor(body []byte, namespace, pod string, s *Stats) {
	var containers, whole Counters
	in := bufio.NewScanner(bytes.NewReader(body))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		m, ok := parseMetric(in.Text())
		mine := ok && m.labels["namespace"] == namespace && m.labels["pod"] == pod && m.labels["container"] != "POD"
		switch {
		case ok && m.labels["id"] == "/":
			add(&s.Node, m)
		case mine && m.labels["container"] == "":
			add(&whole, m)
		case mine:
			add(&containers, m)
		}
	}
	to, from, instead := metrics(&s.Pod), metrics(&containers), metrics(&whole)
	for name, p := range to {
		if *p = *from[name]; *p == nil {
			*p = *instead[name]
		}
	}
}

// metrics returns the counters that cAdvisor has, by its names.
func metrics(c *Counters) map[string]**float64 {
	return map[string]**float64{
		"container_cpu_cfs_periods_total":           &c.Periods,
		"container_cpu_cfs_throttled_periods_total": &c.ThrottledPeriods,
		"container_cpu_cfs_throttled_seconds_total": &c.ThrottledSeconds,
		"container_fs_reads_bytes_total":            &c.ReadBytes,
		"container_fs_writes_bytes_total":           &c.WriteBytes,
		"container_fs_reads_total":                  &c.Reads,
		"container_fs_writes_total":                 &c.Writes,
		"container_oom_events_total":                &c.OOMEvents,
	}
}

// add sums a metric up with those of the same name.
func add(c *Counters, m metric) {
	to := metrics(c)[m.name]
	if to == nil {
		return
	}
	sum := m.value
	if *to != nil {
		sum += **to
	}
	*to = &sum
}

type metric struct {
	name   string
	labels map[string]string
	value  float64
}

// parseMetric reads a line of the Prometheus text format, name{label="value",...} value [time].
func parseMetric(line string) (m metric, ok bool) {
	open := strings.IndexByte(line, '{')
	end := strings.LastIndexByte(line, '}')
	if open < 1 || end < open || line[0] == '#' {
		return m, false
	}
	m.name, m.labels = line[:open], map[string]string{}
	for rest := line[open+1 : end]; rest != ""; {
		key, after, found := strings.Cut(rest, `="`)
		if !found {
			return m, false
		}
		value, tail, found := quoted(after)
		if !found {
			return m, false
		}
		m.labels[key] = value
		rest = strings.TrimPrefix(tail, ",")
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) == 0 {
		return m, false
	}
	var err error
	m.value, err = strconv.ParseFloat(fields[0], 64)
	return m, err == nil
}

// quoted reads up to the closing quote; a backslash takes the next byte as it is.
func quoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case '"':
			return b.String(), text[i+1:], true
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}
