package report

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
)

// podNotes returns what the cluster said of the pod that was measured, and what it counted.
func podNotes(d Data) []string {
	p := d.Experiment.Pod
	if p == nil {
		return nil
	}
	list := []string{podLine(*p), fmt.Sprintf("image %s (%s), Kubernetes %s", p.Image, p.ImageID, p.Kubernetes), clientLine(*p)}
	if d.Finish != nil && d.Finish.Cluster != nil {
		list = append(list, counted("the pod", d.Finish.Cluster.Before.Pod, d.Finish.Cluster.After.Pod), counted("its node", d.Finish.Cluster.Before.Node, d.Finish.Cluster.After.Node))
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

func podLine(p result.PodFacts) string {
	of := func(request, limit string) string { return orNone(request) + " requested, limit " + orNone(limit) }
	line := fmt.Sprintf("pod %s/%s on node %s, QoS class %s: CPU %s; memory %s", p.Namespace, p.Name, p.Node, p.QoS, of(p.CPURequest, p.CPULimit), of(p.MemoryRequest, p.MemoryLimit))
	if p.Restarts > 0 {
		line += fmt.Sprintf("; restarts of its container before: %d", p.Restarts)
	}
	return line
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func clientLine(p result.PodFacts) string {
	switch len(p.Clients) {
	case 0:
		return ""
	case 1:
		return "the client ran on node " + p.Clients[0]
	}
	return fmt.Sprintf("%d clients ran on nodes %s", len(p.Clients), strings.Join(p.Clients, ", "))
}

// counted returns what a cgroup used between two readings, as far as it was told. A counter that fell was set
// back, or a device of its sum went away: what was used is not known then.
func counted(what string, before, after result.CgroupCounters) string {
	seconds := after.At.Sub(before.At).Seconds()
	if seconds <= 0 {
		return what + "'s counters were not read anew: the run was too short for them"
	}
	var parts []string
	add := func(a, b *float64, format string, scale float64) {
		if a != nil && b != nil && *b >= *a {
			parts = append(parts, fmt.Sprintf(format, (*b-*a)*scale))
		}
	}
	if before.CPUSeconds != nil && after.CPUSeconds != nil {
		used := *after.CPUSeconds - *before.CPUSeconds
		parts = append(parts, fmt.Sprintf("%.1f s of CPU (%.2f CPUs)", used, used/seconds))
	}
	add(before.ThrottledSeconds, after.ThrottledSeconds, "throttled for %.1f s", 1)
	add(before.ThrottledPeriods, after.ThrottledPeriods, "in %.0f periods", 1)
	if after.WorkingSetBytes != nil {
		parts = append(parts, fmt.Sprintf("%.0f MiB of memory in use at the end", *after.WorkingSetBytes/(1<<20)))
	}
	add(before.MajorFaults, after.MajorFaults, "%.0f major page faults", 1)
	add(before.ReadBytes, after.ReadBytes, "%.0f MiB read", 1.0/(1<<20))
	add(before.WriteBytes, after.WriteBytes, "%.0f MiB written", 1.0/(1<<20))
	add(before.OOMEvents, after.OOMEvents, "%.0f kills for memory", 1)
	return fmt.Sprintf("%s, by the kubelet's counters over %.0f s that include the trials: %s", what, seconds, strings.Join(parts, ", "))
}
