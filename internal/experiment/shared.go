package experiment

// shared is a server that several arms have together: the first session brings it up, and the last takes it down.
type shared[S Session] struct {
	server S
	users  int // sessions that have it
}

// join has one more session have the server, which begin brings up for the first.
func (s *shared[S]) join(begin func() (S, error)) (first bool, err error) {
	if first = s.users == 0; first {
		if s.server, err = begin(); err != nil {
			return first, err
		}
	}
	s.users++
	return first, nil
}

// leave has one less have it, and tells whether it was the last.
func (s *shared[S]) leave() (last bool) {
	s.users--
	return s.users == 0
}
