package result

// IO tells whether I/O is capped.
func (c Caps) IO() bool { return c.IOPS > 0 || c.Bandwidth > 0 }
