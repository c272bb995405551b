package render

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/mycnf"
	"david/internal/rules"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// Lines derives the my.cnf of the pod: what is sized from CPUs and memory is sized anew for the pod's limits
// with david's rules, where these differ from the tune's machine; other tuned lines stay. What a server would
// size by looking at the node is set. An error wraps ErrBad where the memory does not hold the configuration,
// and says what fits.
func Lines(req Request) ([]mycnf.Setting, error) {
	d, err := derive(req)
	return d.lines, err
}

// Notes says what became of tuned lines that the pod's my.cnf does not have as they were, one sentence each,
// and what else the user has to know of the request. Those of an operator's flavour come on top.
func Notes(req Request) ([]string, error) {
	d, err := derive(req)
	if req.Replicas > 1 && req.HA == HANone {
		d.notes = append(d.notes, separate(req.Replicas))
	}
	return d.notes, err
}

// derived holds a my.cnf under construction.
type derived struct {
	req   Request
	rules map[string]mycnf.Setting // david's for the pod, by variable
	lines []mycnf.Setting
	notes []string
}

// derive goes through the tuned lines, then adds what a pod needs, then makes the memory fit.
func derive(req Request) (derived, error) {
	d := derived{req: req, rules: map[string]mycnf.Setting{}}
	given, left := mycnf.Isolate(rules.Merge(nil, req.Settings))
	for _, name := range left {
		d.note("%s is left out: %s", name, elsewhere(name))
	}
	if err := req.acceptable(given); err != nil {
		return d, err
	}
	d.doubtful(given)
	d.binlog(given)
	problem := req.problem(Connections(given))
	for _, set := range rules.Sizing(problem) {
		for _, s := range set.Settings {
			d.rules[s.Name] = req.disk(s)
		}
	}
	if req.byRules() {
		given = slices.SortedFunc(maps.Values(d.rules), func(a, b mycnf.Setting) int { return strings.Compare(a.Name, b.Name) })
		given = rules.Merge(given, rules.Control(req.Server).Settings)
		d.note("no tune and no my.cnf was given: the lines are david's rules, and nothing was measured")
	}
	for _, s := range given {
		d.take(s)
	}
	d.complete()
	return d, d.fit()
}

// byRules tells whether the lines are david's rules, for want of a tune and a my.cnf.
func (req Request) byRules() bool { return len(req.Settings) == 0 && !req.FromTune }

// elsewhere says why a line that ties a server to its place is not the pod's.
func elsewhere(name string) string {
	name = mycnf.WithoutLoose(name)
	switch {
	case strings.HasPrefix(name, "ssl_"):
		return "the file is not in the pod, whose server makes a certificate of its own; for yours, mount a Secret that holds it and add the line"
	case name == "bind_address" || name == "skip_networking":
		return "the server listens at the pod's address, where clients and other pods reach it; who may is the NetworkPolicy's"
	case name == "server_id":
		return "it is one server's own, and the same my.cnf may go to several; before one replicates, give each its own"
	case strings.HasSuffix(name, "port"):
		return "the container and its Services have theirs"
	case strings.HasPrefix(name, "wsrep_"):
		return "replication is an operator's flavour"
	case name == "report_host":
		return "it names another machine"
	case name == "user" || name == "chroot" || name == "daemonize":
		return "the image and the pod say how the server is run"
	}
	return "it is a place on another machine, and the image and the volume have their own"
}

// on tells whether a line turns a switch on, as one without a value does.
func on(s mycnf.Setting) bool {
	return s.Value == "" || mycnf.MatchValues(mycnf.WithoutLoose(s.Name), "ON", s.Value) == mycnf.Same
}

// acceptable refuses lines with which nobody could use the server as it should be. What the operators set
// themselves is left out, and not looked at.
func (req Request) acceptable(lines []mycnf.Setting) error {
	for _, s := range lines {
		if d, absent := req.absent(s); absent && d.Unknown {
			return Bad("%s: no server that david knows has a variable of this name, and one without it does not start; correct it, or write loose_%s, which a server without it ignores", s.Name, s.Name)
		}
		n, err := mycnf.ParseSize(s.Value)
		switch mycnf.WithoutLoose(s.Name) {
		case "super_read_only": // MySQL manual, super_read_only: it binds administrators too, and the image's entry point makes root's accounts with SQL
			if on(s) && req.Flavor == StatefulSet && req.Server != mycnf.MariaDB {
				return Bad("%s: the image could not make root's account in a new data directory, and nobody could write; leave it out, and SET GLOBAL it on a server that is to follow another", s.Name)
			}
		case "transaction_read_only", "tx_read_only": // each transaction begins as if by SET TRANSACTION READ ONLY, an entry point's and an operator's too
			if on(s) {
				return Bad("%s: nobody could write, and no account could be made in a new data directory; leave it out, and have sessions SET it that only read", s.Name)
			}
		case "skip_grant_tables":
			if value := strings.ToUpper(s.Value); value != "0" && value != "OFF" && value != "FALSE" {
				return Bad("%s: whoever connects would be root, and MySQL turns its network off with it; leave it out", s.Name)
			}
		case "max_connections":
			if err == nil && n < 1 {
				return Bad("max_connections=%s: nobody could connect; give 1 or more, or leave it out for the default of 151", s.Value)
			}
		}
	}
	return nil
}

// absent tells whether the server does not start with a line for its name; what a plugin may have is not known.
func (req Request) absent(s mycnf.Setting) (mycnf.Doubt, bool) {
	o := mycnf.Resolve(req.Server, req.Version, s.Name, s.Value, s.Value == "")
	at := slices.IndexFunc(o.Doubts, func(d mycnf.Doubt) bool { return d.Refused })
	if !o.Absent || at < 0 || o.Doubts[at].Unknown && mycnf.AnyServers(o.Name) {
		return mycnf.Doubt{}, false
	}
	return o.Doubts[at], true
}

// doubtful says of lines what they do in a pod, where that may not be meant.
func (d *derived) doubtful(lines []mycnf.Setting) {
	for _, s := range lines {
		switch mycnf.WithoutLoose(s.Name) {
		case "read_only":
			if on(s) && d.req.Flavor == StatefulSet {
				d.note("%s: only administrators can write; leave it out unless the server is to follow another", s.Name)
			}
		case "tmp_table_size", "tmp_memory_table_size":
			d.beyond(s, "it bounds no temporary table there")
		case "max_heap_table_size":
			d.beyond(s, "a MEMORY table may grow until the kernel kills the server")
		}
	}
}

// beyond says so where a size is more than the pod's memory.
func (d *derived) beyond(s mycnf.Setting, so string) {
	if n, err := mycnf.ParseSize(s.Value); err == nil && n > d.req.Memory {
		d.note("%s=%s is more than the pod's memory of %s: %s; give a small part of what the pool leaves, as 64M", s.Name, s.Value, Mebi(d.req.Memory), so)
	}
}

// binlog says so where the binary log was given a place, and goes to the data directory.
func (d *derived) binlog(given []mycnf.Setting) {
	was := func(s mycnf.Setting) bool { return mycnf.WithoutLoose(s.Name) == "log_bin" }
	from, to := slices.IndexFunc(d.req.Settings, was), slices.IndexFunc(given, was)
	if from < 0 || to < 0 || d.req.Settings[from].Value == given[to].Value {
		return
	}
	given[to].Reason = fmt.Sprintf("the binary log stays on, in the data directory on the pod's volume; given was %s=%s, a place on another machine", given[to].Name, d.req.Settings[from].Value)
	d.note("%s=%s: the binary log goes to the data directory on the pod's volume", given[to].Name, d.req.Settings[from].Value)
}

// disk puts a rule's reason right that speaks of a disk: here it is a volume that was bought, or the disk of
// the tune's machine.
func (req Request) disk(s mycnf.Setting) mycnf.Setting {
	if s.Name != "innodb_io_capacity" {
		return s
	}
	const rest = "so that commits and reads keep the rest"
	switch iops := req.volumeIOPS(); {
	case iops > 0:
		s.Reason = fmt.Sprintf("30 %% of the %d operations/s that the volume is provisioned with (not measured), %s", iops, rest)
	case req.Measured.WriteIOPS > 0:
		s.Reason = fmt.Sprintf("30 %% of the %.0f random 16 KiB writes/s measured on the disk of the tune's machine, %s; the pod's volume was not measured", req.Measured.WriteIOPS, rest)
	}
	return s
}

// problem describes the pod as the rules see a machine.
func (req Request) problem(connections int64) rules.Problem {
	p := rules.Problem{Flavour: req.Server, Version: req.Version, CPUs: float64(req.CPUs), Memory: req.Memory, FreeDisk: req.Size, PageSize: 16 * kib,
		Threads: max(req.Measured.Threads, int(connections)-10), Tables: req.Measured.Tables, WriteIOPS: req.Measured.WriteIOPS}
	if iops := req.volumeIOPS(); iops > 0 {
		p.WriteIOPS = float64(iops)
	}
	return p
}

func (d *derived) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// take puts a tuned line where it belongs: as it is, derived anew, or nowhere.
func (d *derived) take(s mycnf.Setting) {
	name := mycnf.WithoutLoose(s.Name)
	if why := nodeBound(name); why != "" {
		d.note("%s=%s is left out: %s", s.Name, s.Value, why)
		return
	}
	by := sizedBy(name)
	redo := name == "innodb_redo_log_capacity" || name == "innodb_log_file_size" || name == "innodb_log_files_in_group"
	_, has := mycnf.Lookup(name, d.req.Server, d.req.Version)
	known := mycnf.Known(name)
	_, absent := d.req.absent(s)
	if !known && name == s.Name && !absent {
		d.note("%s is not known to david: a server that does not know it either will not start", s.Name)
	}
	switch {
	case redo && (!has || !d.same(by)):
		d.redo(s)
	case known && !has && name == s.Name:
		why := mycnf.Why(name, d.req.Server, d.req.Version)
		if strings.HasPrefix(why, "removed") {
			why = "was " + why
		}
		d.note("%s=%s is left out: it %s", s.Name, s.Value, why)
	case absent:
		d.note("%s=%s is left out: %s %s has no such option", s.Name, s.Value, d.req.Server.Product(), d.req.Version)
	case by == "" || d.same(by):
		d.lines = append(d.lines, d.keep(s, by))
	default:
		d.anew(s, by)
	}
}

// keep leaves a line as it was given; flushing beyond what the volume was bought with is said, and a
// tuned line's reason speaks of the tune's disk, not the pod's.
func (d *derived) keep(s mycnf.Setting, by string) mycnf.Setting {
	if by != byDisk {
		return s
	}
	iops := d.req.volumeIOPS()
	if n, err := mycnf.ParseSize(s.Value); err == nil && iops > 0 && n > iops && s.Name == "innodb_io_capacity" {
		d.note("%s=%s is more than the %d operations/s that the volume is provisioned with: flushing can leave commits and reads none; david's rule is 30 %%", s.Name, s.Value, iops)
	}
	if rule, ok := d.rules[s.Name]; ok && rules.RestsOnDisk(s) {
		s.Reason, s.OfDisk = rule.Reason, rule.OfDisk
	}
	return s
}

// same tells whether the pod has of something what the tune's machine had, so that its lines are as good
// here.
func (d *derived) same(by string) bool {
	m := d.req.Measured
	switch by {
	case byMemory:
		return m.Memory == d.req.Memory
	case byCPUs:
		return m.CPUs == float64(d.req.CPUs)
	case byDisk:
		iops := d.req.volumeIOPS()
		return iops == 0 || m.WriteIOPS == 0 || float64(iops) == m.WriteIOPS // what was measured on no disk was the user's choice
	}
	return true
}

// What a variable's value follows from.
const (
	byMemory = "memory"
	byCPUs   = "CPUs"
	byDisk   = "disk"
)

// sizedBy tells what a variable's value follows from; "" where it does not depend on the machine's size.
func sizedBy(name string) string {
	switch name {
	case "innodb_buffer_pool_size", "innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group", "temptable_max_ram", "innodb_buffer_pool_size_max",
		"innodb_buffer_pool_size_auto_min":
		return byMemory
	case "innodb_buffer_pool_instances", "innodb_page_cleaners", "innodb_purge_threads", "innodb_read_io_threads", "innodb_write_io_threads", "innodb_sync_spin_loops",
		"innodb_spin_wait_delay", "innodb_thread_concurrency", "thread_pool_size", "innodb_parallel_read_threads":
		return byCPUs
	case "innodb_io_capacity", "innodb_io_capacity_max":
		return byDisk
	}
	return ""
}

// nodeBound says why a line makes no sense in a pod; "" where it does.
func nodeBound(name string) string {
	switch name {
	case "innodb_dedicated_server":
		return "it sizes the server by the node's memory, not the pod's; what it would size is set"
	case "server_memory":
		return "it only steers innodb_dedicated_server, which a pod cannot rely on"
	case "large_pages":
		return "the pod asks for no huge pages, without which the server would fall back"
	case "innodb_buffer_pool_chunk_size":
		return "the pool is sized in the server's own chunks of 128 MiB"
	case "innodb_numa_interleave":
		return "it takes the capability SYS_NICE, and the pod has none"
	}
	return ""
}

// redo takes the size of the redo log from the rules, under the name that this server knows it by.
func (d *derived) redo(s mycnf.Setting) {
	for _, name := range []string{"innodb_redo_log_capacity", "innodb_log_file_size"} {
		rule, ok := d.rules[name]
		if ok && !d.has(name) {
			d.lines = append(d.lines, d.instead(rule, s))
		}
	}
	if s.Name == "innodb_log_files_in_group" {
		d.note("%s=%s is left out: the redo log is sized as a whole", s.Name, s.Value)
	}
}

// anew takes a line from the rules for the pod's CPUs, memory or disk.
func (d *derived) anew(s mycnf.Setting, by string) {
	rule, ok := d.rules[s.Name]
	if !ok {
		rule, ok = d.own(s)
	}
	if !ok {
		d.note("%s=%s is left out: it was tuned for other %s, and david's rules do not set it for these", s.Name, s.Value, by)
		return
	}
	if !d.has(rule.Name) {
		d.lines = append(d.lines, d.instead(rule, s))
	}
}

// instead puts a rule's line in the place of a given one, and says so.
func (d *derived) instead(rule, given mycnf.Setting) mycnf.Setting {
	rule.Effect = ""
	if rule.Value == given.Value && rule.Name == given.Name {
		return rule
	}
	where := "the my.cnf given"
	if d.req.Measured.Memory > 0 {
		where = "the machine it was tuned on"
	}
	rule.Reason += fmt.Sprintf("; derived for the pod's limits, %s had %s=%s", where, given.Name, given.Value)
	return rule
}

// own gives rules for variables that the sizing rules do not set, and a tuned file may.
func (d *derived) own(s mycnf.Setting) (mycnf.Setting, bool) {
	cpus := d.req.CPUs
	rule := func(value int, reason, source string) (mycnf.Setting, bool) {
		return mycnf.Setting{Name: s.Name, Value: strconv.Itoa(value), Group: "concurrency", Reason: reason, Source: source}, true
	}
	switch s.Name {
	case "innodb_read_io_threads", "innodb_write_io_threads":
		return rule(max(4, cpus/2), "half of the pod's CPUs, 4 at least", "MySQL manual, "+s.Name)
	case "innodb_page_cleaners":
		return rule(max(1, min(8, cpus)), "no more than the pod's CPUs; the server uses one for each instance of the pool at most", "MySQL manual, innodb_page_cleaners")
	case "thread_pool_size":
		return rule(cpus, "one group for each CPU of the pod: the server would count the node's", "MariaDB manual, thread_pool_size")
	case "innodb_thread_concurrency":
		return d.perCPU(s)
	}
	return s, false
}

// perCPU keeps the threads per CPU that were tuned. 0 is no limit, on any machine.
func (d *derived) perCPU(s mycnf.Setting) (mycnf.Setting, bool) {
	n, err := strconv.Atoi(s.Value)
	if err != nil || d.req.Measured.CPUs <= 0 || n == 0 {
		return s, err == nil && n == 0
	}
	s.Value = strconv.Itoa(max(2, int(math.Round(float64(n)/d.req.Measured.CPUs*float64(d.req.CPUs)))))
	s.Reason += "; as many for each CPU as were tuned"
	return s, true
}

func (d *derived) has(name string) bool { return d.index(name) >= 0 }

func (d *derived) index(name string) int {
	return slices.IndexFunc(d.lines, func(s mycnf.Setting) bool { return mycnf.WithoutLoose(s.Name) == name })
}

// complete adds what a pod needs and the tuned lines do not say: the pool, the durability that an image's or
// an operator's own file could take away, and what the server would otherwise size by the node.
func (d *derived) complete() {
	for _, name := range []string{"innodb_buffer_pool_size", "innodb_buffer_pool_instances", "innodb_purge_threads"} {
		if rule, ok := d.rules[name]; ok {
			d.add(rule)
		}
	}
	const locked = "the durability lock: set, so that no other file's value holds"
	d.add(mycnf.Setting{Name: "innodb_flush_log_at_trx_commit", Value: "1", Group: "durability", Reason: locked + "; every commit is on the disk before it is acknowledged",
		Source: "MySQL manual, innodb_flush_log_at_trx_commit"})
	d.add(mycnf.Setting{Name: "sync_binlog", Value: "1", Group: "durability", Reason: locked + "; the binary log is synced with every commit", Source: "MySQL manual, sync_binlog"})
	d.add(mycnf.Setting{Name: "max_connections", Value: "151", Group: "connections", Reason: "the server's default, set because the buffer pool leaves room for so many and no more",
		Source: "MySQL manual, max_connections"})
	d.add(mycnf.Setting{Name: "skip_name_resolve", Value: "ON", Group: "connections",
		Reason: "a new connection does not wait for the cluster's DNS, and the kubelet's probes do not get the node's address blocked; accounts are named by address",
		Source: "MySQL manual, DNS Lookups and the Host Cache"})
	if ram := max(16*mib, d.req.Memory/32/mib*mib); ram < gib {
		d.add(mycnf.Setting{Name: "temptable_max_ram", Value: mycnf.FormatSize(ram), Group: "memory",
			Reason: "3 % of the pod's memory, within the tenth that the pool leaves free: the default is 1 GiB or more, sized by the node from 8.4 on; larger temporary tables go to disk",
			Source: "MySQL manual, temptable_max_ram"})
	}
}

// add adds a line that is not there, where the server knows it.
func (d *derived) add(s mycnf.Setting) {
	if _, ok := mycnf.Lookup(s.Name, d.req.Server, d.req.Version); ok && !d.has(s.Name) {
		d.lines = append(d.lines, s)
	}
}

// fit makes the server fit into the memory with all connections busy. A pool that the rules sized is made
// smaller, down to the server's default; one that was tuned for as much memory is not.
func (d *derived) fit() error {
	if d.req.Memory <= 0 {
		return Bad("memory: it is %d bytes; give the pod's, as in 16Gi", d.req.Memory)
	}
	pool := number(d.lines, "innodb_buffer_pool_size", defaultPool)
	for !d.req.Holds(d.lines) && pool > defaultPool && !d.same(byMemory) {
		pool = d.resize(pool - defaultPool)
	}
	if d.req.Holds(d.lines) {
		return nil
	}
	return d.tooSmall(pool)
}

// resize gives the pool a size, and no more instances than it has GiB, and returns the size in whole chunks
// of each instance.
func (d *derived) resize(pool int64) int64 {
	instances := max(1, min(number(d.lines, "innodb_buffer_pool_instances", 1), pool/gib))
	if at := d.index("innodb_buffer_pool_instances"); at >= 0 {
		d.lines[at].Value = strconv.FormatInt(instances, 10)
	}
	pool = max(defaultPool, pool/(defaultPool*instances)*(defaultPool*instances))
	d.lines[d.index("innodb_buffer_pool_size")].Value = mycnf.FormatSize(pool)
	return pool
}

// defaultPool sets the servers' default buffer pool and their chunk of it, in bytes.
const defaultPool = 128 * mib

// Holds tells whether the pod's memory holds a server with these lines and all its connections busy, the
// tenth that is kept free not counted.
func (req Request) Holds(lines []mycnf.Setting) bool {
	return Need(lines) <= rules.MemoryCeiling(req.Memory)
}

// Need tells what a server with these lines takes with all its connections busy, in bytes: tune's memory
// rule, with the buffers that the lines set.
func Need(lines []mycnf.Setting) int64 {
	return rules.ServerMemory(number(lines, "innodb_buffer_pool_size", defaultPool), others(lines), performanceSchema(lines))
}

// performanceSchema finds the value of performance_schema; "" where no line sets it.
func performanceSchema(lines []mycnf.Setting) string {
	for _, s := range lines {
		if s.Name == "performance_schema" {
			return s.Value
		}
	}
	return ""
}

// others sum up the buffers besides the pool, in bytes.
func others(lines []mycnf.Setting) int64 {
	sum := number(lines, "innodb_log_buffer_size", 64*mib) + Connections(lines)*eachConnection(lines)
	for name, standard := range map[string]int64{"key_buffer_size": 16 * mib, "query_cache_size": mib, "aria_pagecache_buffer_size": 128 * mib} {
		sum += max(0, number(lines, name, standard)-standard) // the defaults are in the server's own share
	}
	return sum
}

// eachConnection tells what a connection may take, in bytes: tune's figure, or the sum of the buffers where
// they were set to more. The defaults are those of the reference manuals.
func eachConnection(lines []mycnf.Setting) int64 {
	sum := int64(0)
	for name, standard := range map[string]int64{"thread_stack": mib, "sort_buffer_size": 256 * kib, "join_buffer_size": 256 * kib, "read_buffer_size": 128 * kib,
		"read_rnd_buffer_size": 256 * kib, "net_buffer_length": 16 * kib, "binlog_cache_size": 32 * kib} {
		sum += number(lines, name, standard)
	}
	return max(2*mib, sum)
}

// BufferPool tells the size of the buffer pool that the lines give the server, in bytes.
func BufferPool(lines []mycnf.Setting) int64 {
	return number(lines, "innodb_buffer_pool_size", defaultPool)
}

// Connections tells how many the lines allow.
func Connections(lines []mycnf.Setting) int64 { return number(lines, "max_connections", 151) }

// number reads a line's size or count; standard where no line sets it, or it is none.
func number(lines []mycnf.Setting, name string, standard int64) int64 {
	for _, s := range lines {
		if s.Name != name {
			continue
		}
		if n, err := mycnf.ParseSize(s.Value); err == nil && n <= 1<<50 { // what is more no machine has, and sums stay in range
			return n
		}
	}
	return standard
}

// tooSmall says that the memory does not hold the configuration, and what fits.
func (d *derived) tooSmall(pool int64) error {
	least := int64(math.Ceil(float64(Need(d.lines))/0.9/float64(mib))) * mib
	for rules.MemoryCeiling(least) < Need(d.lines) {
		least += mib
	}
	most := rules.MemoryCeiling(d.req.Memory)
	text := fmt.Sprintf("memory %s does not hold the configuration: innodb_buffer_pool_size=%s and %d connections of %s take %s at the worst, and 90 %% of the limit are %s; what fits: memory %s",
		Mebi(d.req.Memory), mycnf.FormatSize(pool), Connections(d.lines), Mebi(eachConnection(d.lines)), Mebi(Need(d.lines)), Mebi(most), Mebi(least))
	n := (most - rules.ServerMemory(pool, others(d.lines)-Connections(d.lines)*eachConnection(d.lines), performanceSchema(d.lines))) / eachConnection(d.lines)
	if n >= 10 {
		text += fmt.Sprintf(", or max_connections=%d", n)
	}
	fits := slices.Clone(d.lines)
	for size := pool - defaultPool; size >= defaultPool; size -= defaultPool {
		fits[d.index("innodb_buffer_pool_size")].Value = mycnf.FormatSize(size)
		if d.req.Holds(fits) {
			return Bad("%s, or innodb_buffer_pool_size=%s", text, mycnf.FormatSize(size))
		}
	}
	return Bad("%s", text)
}

// Mebi writes a size as Kubernetes takes it, rounded down to MiB.
func Mebi(n int64) string {
	if n%gib == 0 {
		return fmt.Sprintf("%dGi", n/gib)
	}
	return fmt.Sprintf("%dMi", n/mib)
}
