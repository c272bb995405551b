package follower

// Kill ends a follower's server as a crash does.
func (r *Record) Kill() error { return r.kill() }
