package explain

// Cause names who is to blame for the time of a transaction.
type Cause string

// The causes.
const (
	ServerCPU  Cause = "server CPU"
	ClientCPU  Cause = "client CPU"
	Commit     Cause = "commit/fsync"
	Redo       Cause = "redo capacity"
	ReadIO     Cause = "read I/O"
	Flushing   Cause = "page flushing"
	Doublewr   Cause = "doublewrite"
	RowLocks   Cause = "row locks"
	Latches    Cause = "latches"
	Scheduling Cause = "scheduling"
	Network    Cause = "network round trips"
	Bandwidth  Cause = "network bandwidth"
	Throttling Cause = "CPU throttling"
	Neighbour  Cause = "noisy neighbour"
)

// Causes returns all of them.
func Causes() []Cause {
	return []Cause{ServerCPU, ClientCPU, Commit, Redo, ReadIO, Flushing, Doublewr, RowLocks, Latches, Scheduling, Network, Bandwidth, Throttling, Neighbour}
}

// Limits of the rules. A device that does 85 % of the operations it may do on average, or in half of the
// seconds, is at its limit as far as those who wait are concerned: the load of a database is uneven. The same
// holds for the CPUs of a machine.
const (
	deviceFull = 0.85
	cpusFull   = 0.85
	// Without a cap or a probed limit, only a device with operations under way all the time and a long queue
	// is taken for full: one that does many at once is never idle well before that.
	busyFull  = 95
	queueFull = 8
)

// blame gives each cause its share of the connections' time.
type blame map[Cause]float64

// causes assigns every symptom but the unexplained to causes; the sum stays the same.
func (t dividedTrial) causes() blame {
	a := t.did
	c := blame{ServerCPU: a[ServerRan], Throttling: a[QuotaWait], ClientCPU: a[ClientRan], RowLocks: a[RowLock]}
	t.blameQueues(c, a)
	t.blameIO(c, a)
	c[t.way()] += a[Between]
	return c
}

// way names what lies between server and client: a network, which is waited for because it is far or because it
// is full, or on a unix socket nothing but the kernel waking up threads. A sandbox listens to no network unless
// the load uses it.
func (t dividedTrial) way() Cause {
	if !t.networked() {
		return Scheduling
	}
	if t.wire.full {
		return Bandwidth
	}
	return Network
}

func (t dividedTrial) networked() bool {
	if kind := t.Arm.Path.Kind; kind != "" {
		return kind != pathSocket
	}
	address := t.Server.Address
	return address != "" && address[0] != '/' || address == "" && t.Arm.Effective["skip_networking"] == "OFF"
}

// throttled tells whether a CPU quota held the server back: a cap that was asked for and is used up, or a
// quota seen to hold.
func (t dividedTrial) throttled() bool {
	cores, ok := t.mean("server.cpu_cores")
	if limit := t.Arm.Caps.CPUs; ok && limit > 0 {
		return cores >= cpusFull*limit
	}
	const held = 0.01 // of the measured time
	return t.Trial.ServerThrottled != nil && *t.Trial.ServerThrottled > held
}

// blameQueues blames waiting for a CPU on those who use the CPUs up, in proportion; where the CPUs are not
// used up, on whoever waits.
func (t dividedTrial) blameQueues(c blame, a amounts) {
	if t.throttled() {
		c[Throttling] += a[ServerQueued]
	} else {
		t.blameQueue(c, a[ServerQueued], ServerCPU)
	}
	t.blameQueue(c, a[ClientQueued], ClientCPU)
}

func (t dividedTrial) blameQueue(c blame, amount float64, own Cause) {
	users := t.cpuUsers()
	sum := users[ServerCPU] + users[ClientCPU] + users[Neighbour]
	if cpus := t.sharedCPUs(); cpus <= 0 || sum < cpusFull*cpus {
		c[own] += amount
		return
	}
	for cause, cores := range users {
		c[cause] += amount * cores / sum
	}
}

// sharedCPUs is how many server and client share: the machine's, but where their path has both on the same ones. Where
// each has its own it is the machine's as well, which they then never fill by waiting for one another.
func (t dividedTrial) sharedCPUs() float64 {
	if p := t.Arm.Path; p.ServerCPUs != "" && p.ServerCPUs == p.ClientCPUs {
		return float64(p.ServerCPUs.Len())
	}
	return t.Host.CPU.Usable
}

// cpuUsers returns how many CPUs the server, the client and strangers used.
func (t dividedTrial) cpuUsers() map[Cause]float64 {
	server, _ := t.mean("server.cpu_cores")
	client, _ := t.mean("client.cpu_cores")
	strange := 0.0
	if d := t.Trial.Disturbance; d != nil {
		strange = (d.Steal + d.Others) * float64(t.Host.CPU.Online)
	}
	return map[Cause]float64{ServerCPU: server, ClientCPU: client, Neighbour: strange}
}

// blameIO blames waits for the device. Where it is not at its limit each wait has its own cause. Where it is,
// all who wait for it wait because of those who use it up.
func (t dividedTrial) blameIO(c blame, a amounts) {
	d := t.disk
	pool := 0.0
	take := func(amount float64, shared bool, own Cause) {
		if shared {
			pool += amount
		} else {
			c[own] += amount
		}
	}
	take(a[Reading], d.shared, ReadIO)
	take(a[Committing], d.writes, Commit)
	take(a[Writing]+a[FreePage], d.writes, t.writingCause())
	// Who holds a latch and computes holds it for microseconds; where CPUs are free, latches are held while a
	// page is written or, for those who only read, while it is read.
	take(a[Changing], d.writes && d.known && !t.busy(), Latches)
	if d.reads && !t.busy() {
		c[ReadIO] += a[Looking]
	} else {
		c[Latches] += a[Looking]
	}
	// Waiting for room is the redo log's fault, unless the pages behind it cannot be written any faster.
	take(a[RedoRoom], d.writes && d.known, Redo)
	for cause, share := range d.users {
		c[cause] += pool * share
	}
}

// busy tells whether the server used half of the CPUs or more.
func (t dividedTrial) busy() bool {
	cores, ok := t.mean("server.cpu_cores")
	return ok && cores >= 0.5*t.usable("server.cpu_cores")
}

// writingCause returns why pages are written: the redo log has to be emptied, and a larger one would save
// most of it, or they have to be written anyway. Larger is four times as large, and most is more than half:
// twice the write operations would save that half as well.
func (t dividedTrial) writingCause() Cause {
	if t.full() && t.spared() > 0.5 && t.evicted() < 0.5 {
		return Redo
	}
	return Flushing
}

// device says how the data's device is used.
type device struct {
	reads, writes bool // at its limit
	shared        bool // reads and writes have one limit
	known         bool // the limit is a cap or was probed
	users         blame
	seen          []string // what says so
}

// device tells whether the device is at its limit, and who uses it.
func (t dividedTrial) device() device {
	d := device{}
	if !t.atLimit(&d) {
		return d
	}
	d.users = t.deviceUsers(d)
	if len(d.users) == 0 { // nothing was counted: nobody to blame
		return device{seen: d.seen}
	}
	return d
}

// atLimit compares what the device did with its caps, else with what it was probed to do, else with its own
// queue.
func (t dividedTrial) atLimit(d *device) bool {
	if _, ok := t.mean("disk.write_iops"); !ok {
		return false
	}
	limits := t.limits()
	check := func(at *bool, limit float64, unit string, names ...string) {
		d.known = d.known || limit > 0
		if limit > 0 && (t.sum(names) >= deviceFull*limit || t.often(deviceFull*limit, names) >= 0.5) {
			*at = true
			d.seen = append(d.seen, say("the device is at its limit: %.0f of %.0f %s", t.sum(names), limit, unit))
		}
	}
	check(&d.reads, limits.ReadIOPS, "reads/s", "disk.read_iops", "disk.reads_merged_per_s")
	check(&d.writes, limits.WriteIOPS, "writes/s", writeOperations()...)
	check(&d.reads, limits.Bandwidth/1024, "KiB/s read", "disk.read_kb_per_s")
	check(&d.writes, limits.Bandwidth/1024, "KiB/s written", "disk.write_kb_per_s")
	if busy, queue := t.means["disk.busy_pct"], t.means["disk.queue"]; !d.known && busy >= busyFull && queue >= queueFull {
		d.reads, d.writes, d.shared = true, true, true
		d.seen = append(d.seen, say("the device is busy %.0f %% of the time, with %.1f operations under way", busy, queue))
	}
	return d.writes // where only reads are at their limit, readers alone wait for them
}

// writeOperations returns the samples that add up to the writes a limit counts: a cap of a cgroup counts each
// before neighbours are merged (blk-throttle works on bios). Flushes of the device's cache are among the
// kernel's writes.
func writeOperations() []string { return []string{"disk.write_iops", "disk.writes_merged_per_s"} }

// batches returns how many operations a second the doublewrite buffer takes.
func (t dividedTrial) batches() float64 {
	return max(t.rate("innodb_dblwr_writes"), t.rate("innodb_dblwr_pages_written")*t.pageSize()/bioBytes)
}

// limits returns those of the caps, else the probed ones.
func (t dividedTrial) limits() Limits {
	l := t.Limits
	if n := float64(t.Arm.Caps.IOPS); n > 0 {
		l.ReadIOPS, l.WriteIOPS = n, n
	}
	if n := float64(t.Arm.Caps.Bandwidth); n > 0 {
		l.Bandwidth = n
	}
	return l
}

// bioBytes bounds what one operation writes: a bio holds 256 pages of 4 KiB (BIO_MAX_VECS in the kernel's
// linux/bio.h).
const bioBytes = 1 << 20

// deviceUsers returns the share of the device's operations that each cause has, or of its bytes where these
// are at their limit. What the device wrote beside pages and doublewrite are logs and the filesystem's own
// journal.
func (t dividedTrial) deviceUsers(d device) blame {
	pages, copies := t.rate("innodb_pages_written"), t.rate("innodb_dblwr_pages_written")
	use := blame{t.writingCause(): pages, Doublewr: t.batches(), Commit: max(t.sum(writeOperations())-pages-t.batches(), t.syncs())}
	if !t.opsBind() {
		kib := t.pageSize() / 1024
		use[t.writingCause()], use[Doublewr] = pages*kib, copies*kib
		use[Commit] = max(0, t.means["disk.write_kb_per_s"]-(pages+copies)*kib)
	}
	if d.shared {
		use[ReadIO] = t.means["disk.read_iops"]
	}
	sum := 0.0
	for _, v := range use {
		sum += v
	}
	if sum <= 0 {
		return nil
	}
	for cause := range use {
		use[cause] /= sum
	}
	return use
}

// opsBind tells whether the writes' operations, and not their bytes, are nearer to their limit.
func (t dividedTrial) opsBind() bool {
	l := t.limits()
	return ratio(t.sum(writeOperations()), l.WriteIOPS) >= ratio(t.means["disk.write_kb_per_s"]*1024, l.Bandwidth)
}

// syncs returns how many syncs a second logs cost at least: InnoDB's, where they are counted apart, and one
// of the binary log for each group of commits.
func (t dividedTrial) syncs() float64 {
	logs := t.rate("innodb_os_log_fsyncs")
	if t.mariadb() {
		logs = t.rate("innodb_data_fsyncs")
	}
	if !t.on("log_bin") || t.number("sync_binlog") != 1 {
		return logs
	}
	if groups := t.rate("binlog_group_commits"); groups > 0 {
		return logs + groups
	}
	return 2 * logs
}
