package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestValidate holds what a server says of its settings without data.
func TestValidate(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			b := testserver.Find(t, flavour)
			w := open(t, newHome(t), Options{NoVolume: true})
			good := []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "256M"}, {Name: "max_connections", Value: "50"}, {Name: "skip_log_bin"}}
			if err := w.Validate(context.Background(), b, good); err != nil {
				t.Error(err)
			}
			for _, bad := range []mycnf.Setting{{Name: "no_such_variable", Value: "3"}, {Name: "innodb_flush_method", Value: "teleport"}, {Name: "innodb_buffer_pool_size", Value: "abc"}} {
				err := w.Validate(context.Background(), b, append(good, bad))
				var refused *StartError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), bad.Value) && !strings.Contains(err.Error(), bad.Name) {
					t.Errorf("%s=%s: %v", bad.Name, bad.Value, err)
				}
			}
		})
	}
}
