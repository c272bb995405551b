package result

import "time"

// Client describes one of several that a trial's load was spread over.
type Client struct {
	Name         string  `json:"name"` // of its pod or machine
	Threads      int     `json:"threads"`
	LateMs       float64 `json:"late_ms"` // behind the first, when its threads started
	TPS          float64 `json:"tps"`
	Transactions int64   `json:"transactions"`
	P95          float64 `json:"p95_ms"`
}

// PodFacts describes the pod that was measured, as the cluster described it before the first trial.
type PodFacts struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	QoS       string `json:"qos"` // Guaranteed, Burstable, BestEffort
	Container string `json:"container"`
	Image     string `json:"image"`
	ImageID   string `json:"image_id"` // as the container runtime names it
	// Requests and limits of the container, as the manifest has them: "2", "16Gi"; "" where it has none.
	CPURequest    string `json:"cpu_request,omitempty"`
	CPULimit      string `json:"cpu_limit,omitempty"`
	MemoryRequest string `json:"memory_request,omitempty"`
	MemoryLimit   string `json:"memory_limit,omitempty"`
	Restarts      int    `json:"restarts"`
	Kubernetes    string `json:"kubernetes"` // the API server's version
	// Clients says where the load came from: a node for each client.
	Clients []string `json:"client_nodes,omitempty"`
}

// ClusterCounters holds what a cluster counted of a pod and of its node, before the first trial and after the
// last.
type ClusterCounters struct {
	Before PodStats `json:"before"`
	After  PodStats `json:"after"`
}

// PodStats describes the counters of a pod and of its node, at one time.
type PodStats struct {
	Pod  CgroupCounters `json:"pod"`
	Node CgroupCounters `json:"node"`
}

// CgroupCounters describes a cgroup's since it was made, as a kubelet tells them. It reads them every 10 to
// 15 seconds: At is when. What it does not tell is nil.
type CgroupCounters struct {
	At               time.Time `json:"at"`
	CPUSeconds       *float64  `json:"cpu_seconds,omitempty"`
	Periods          *float64  `json:"periods,omitempty"` // of the CPU quota; nil where there is none
	ThrottledPeriods *float64  `json:"throttled_periods,omitempty"`
	ThrottledSeconds *float64  `json:"throttled_seconds,omitempty"`
	WorkingSetBytes  *float64  `json:"working_set_bytes,omitempty"` // memory now, without what could be dropped
	RSSBytes         *float64  `json:"rss_bytes,omitempty"`
	MajorFaults      *float64  `json:"major_faults,omitempty"`
	PageFaults       *float64  `json:"page_faults,omitempty"`
	ReadBytes        *float64  `json:"read_bytes,omitempty"`
	WriteBytes       *float64  `json:"write_bytes,omitempty"`
	Reads            *float64  `json:"reads,omitempty"`
	Writes           *float64  `json:"writes,omitempty"`
	ReceiveBytes     *float64  `json:"receive_bytes,omitempty"`
	TransmitBytes    *float64  `json:"transmit_bytes,omitempty"`
	OOMEvents        *float64  `json:"oom_events,omitempty"`
}
