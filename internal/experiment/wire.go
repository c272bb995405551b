package experiment

import (
	"context"

	"david/internal/netpath"
	"david/internal/result"
)

// wired is a session whose load goes over a network.
type wired interface {
	// Wire reads the link by which the client reaches the server; nil for none.
	Wire(ctx context.Context) (*netpath.Wire, error)
}

// wire reads the link of a session; nil where there is none, or it cannot be read: nothing rests on it but
// what explain says of bandwidth.
func wire(ctx context.Context, s Session) *netpath.Wire {
	w, ok := s.(wired)
	if !ok {
		return nil
	}
	read, err := w.Wire(ctx)
	if err != nil {
		return nil
	}
	return read
}

// carried is what a link carried from one reading to the next, while a load ran for so many seconds; nil where
// it was not the same link.
func carried(before, after *netpath.Wire, seconds float64) *result.Wire {
	if before == nil || after == nil || before.Link != after.Link || after.In < before.In || after.Out < before.Out || seconds <= 0 {
		return nil
	}
	rate := func(then, now uint64) float64 { return 8 * float64(now-then) / seconds }
	return &result.Wire{Link: after.Link, Rate: after.Rate, In: rate(before.In, after.In), Out: rate(before.Out, after.Out)}
}
