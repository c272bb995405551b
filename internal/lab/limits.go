package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"david/internal/host"
	"david/internal/result"
)

// limitsKey names what is probed: the machine, the device and the caps. The device of sandboxes' data is
// that of david's folder; the number of its loop device changes.
func (l Lab) limitsKey(ctx context.Context, dir string, caps result.Caps) (string, error) {
	where := "sandbox"
	if dir == "" {
		dir = l.Home
	} else {
		where = "folder"
	}
	f, err := host.Read(ctx, dir)
	if err != nil {
		return "", err
	}
	id, err := os.ReadFile("/etc/machine-id") // machines may share a home
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("cannot tell this machine from others: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%d\n%s %s %s\n%+v", id, Machine(f), f.Kernel, where, os.Geteuid(), f.Data.Device, f.Data.Type, f.Data.Mount, caps))
	return where + "-" + hex.EncodeToString(sum[:6]), nil
}

// Machine tells one machine from another.
func Machine(f host.Facts) string {
	return fmt.Sprintf("%s, %.4g CPUs, %s", f.CPU.Model, f.CPU.Usable, host.Size(f.Memory.Total))
}

// limitsLast bounds how old the limits may be that a machine is judged by.
const limitsLast = 24 * time.Hour

// keptLimits are the limits of a key that were measured within a day. A file that cannot be read is as
// good as none, and said.
func (l Lab) keptLimits(key string) (result.Limits, bool) {
	known, ok, err := result.KeptLimits(l.Home, key)
	if err != nil {
		l.logf("limits measured before are not used: %v", err)
		return known, false
	}
	age := time.Since(known.Measured)
	return known, ok && age >= 0 && age < limitsLast
}

// knownLimits reads those kept for where the data of an experiment lies, under the caps of its first arm,
// else without caps; nil where there are none. They are recorded with it: whoever explains it later may
// not have david's folder.
func (l Lab) knownLimits(ctx context.Context, layout string, arms []result.Arm) (*result.Limits, error) {
	var tried []result.Caps
	if len(arms) > 0 {
		tried = append(tried, arms[0].Caps)
	}
	for _, caps := range append(tried, result.Caps{}) {
		key, err := l.limitsKey(ctx, "", caps)
		if err != nil {
			return nil, err
		}
		if known, ok := l.keptLimits(key); ok && known.Device.Layout == layout { // with --no-volume it lies elsewhere
			return &known, nil
		}
	}
	return nil, nil
}
