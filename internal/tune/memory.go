package tune

// ServerMemory is what a server takes, in bytes: itself, its buffer pool with what describes the pages, and other buffers
// that are there from the start or at the worst.
func ServerMemory(pool, others int64) int64 {
	return baseMemory + int64(poolOverhead*float64(pool)) + others
}

// MemoryCeiling is how much of the memory a whole server may reach, in bytes.
func MemoryCeiling(memory int64) int64 { return int64(memoryCeiling * float64(memory)) }
