package rules

import (
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
)

// instrumentation counts what the performance schema takes, in bytes, of what ServerMemory counts for the
// server itself: 530 MiB were resident in an idle MySQL 9.7 with it, 283 without.
const instrumentation = 240 * mib

// ServerMemory returns what a server takes, in bytes: itself, its buffer pool with what describes the pages,
// and other buffers that are there from the start or at the worst. schema is the value of performance_schema,
// "" where it is not known.
func ServerMemory(pool, others int64, schema string) int64 {
	need := baseMemory + int64(poolOverhead*float64(pool)) + others
	if schema != "" && mycnf.MatchValues("performance_schema", "OFF", schema) == mycnf.Same {
		need -= instrumentation
	}
	return need
}

// Footprint returns the memory, in bytes, that an arm's server has at the most while so many threads load it,
// on data of that size: itself, what describes the pages of its pool, and of the pool itself no more than
// holds the data and half as much again (undo logs, temporary tables, what the load adds). What the arm is
// known to use, it is asked for; else what it sets, else the default.
func Footprint(a result.Arm, data int64, threads int) int64 {
	value := func(name string) string {
		if v, ok := a.Effective[name]; ok {
			return v
		}
		i := slices.IndexFunc(a.Settings, func(s mycnf.Setting) bool { return s.Name == name })
		if i < 0 {
			return ""
		}
		return a.Settings[i].Value
	}
	pool := WholePool(value)
	log := max(logBuffer, SizeOf(value("innodb_log_buffer_size")))
	need := ServerMemory(pool, log+int64(threads)*perConnection, value("performance_schema")) - max(0, pool-data*3/2)
	if a.Caps.Memory > 0 {
		need = min(need, a.Caps.Memory)
	}
	return need
}

// MemoryCeiling returns how much of the memory a whole server may reach, in bytes.
func MemoryCeiling(memory int64) int64 { return int64(memoryCeiling * float64(memory)) }

// Need returns what the memory rule counts for a server, in bytes, with all its connections busy. value is
// what a variable has, "" for the default.
func (p Problem) Need(value func(name string) string) int64 {
	size := func(name string, standard int64) int64 {
		if n := SizeOf(value(name)); n > 0 {
			return n
		}
		return standard
	}
	connections := min(size("max_connections", int64(p.connections())), 100_000) // the most that servers take
	return ServerMemory(WholePool(value), size("innodb_log_buffer_size", logBuffer)+connections*p.perConnection(), value("performance_schema"))
}

// WholePool returns a server's buffer pool, in bytes: it rounds up to whole chunks of each instance.
func WholePool(value func(name string) string) int64 {
	step := Chunk * max(1, SizeOf(value("innodb_buffer_pool_instances")))
	pool := SizeOf(value("innodb_buffer_pool_size"))
	if pool == 0 {
		pool = DefaultPool
	}
	return (pool + step - 1) / step * step
}

// Held tells whether a server keeps the memory rule, or at least needs no more than one that ran. With no
// more than the default pool every server does: there is nothing smaller to propose.
func (p Problem) Held(value func(name string) string, ran int64) bool {
	return WholePool(value) <= DefaultPool || p.Need(value) <= max(MemoryCeiling(p.Memory), ran)
}
