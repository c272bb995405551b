package podoverhead

import (
	"fmt"
	"slices"

	"david/internal/result"
)

// Notes say what a reader must know of the pods and the process they are compared with.
func Notes(node Node, pods []result.Pod) []string {
	notes := []string{node.Facts,
		fmt.Sprintf("the client is a plain process on the node in all arms, over TCP: to the process at %s, to a pod at its own address, through the pod network", node.Here),
		"beside every arm alike: the client, david, and the node's own kubelet, container runtime and pods; david started nothing else",
		"the process has the kernel's default weight for CPU time, a pod what Kubernetes gives it, a BestEffort pod the least there is: that is part of what is compared"}
	if slices.ContainsFunc(pods, func(p result.Pod) bool { return p.QoS == BestEffort }) {
		notes = append(notes, "the BestEffort pod has no limits and is compared with the capped process: it can win where CPUs are idle beyond the cap, and loses to whatever else runs on the node")
	}
	if slices.ContainsFunc(pods, func(p result.Pod) bool { return p.HostNetwork }) {
		notes = append(notes, "the pod in the node's network is reached at "+node.Address)
	}
	return notes
}
