package failover

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestOldName: a name that cannot be looked up is no server that does not answer.
func TestOldName(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if state, err := answers(ctx, "nobody.invalid:3306"); !errors.Is(err, ErrInput) {
		t.Errorf("%q, %v", state, err)
	}
}
